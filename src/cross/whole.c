/* Between a whole and its parts: what is named in a body, and the answer of one site made that of all. */
#include "cross/cross_int.h"

#include "base/text.h"

int cross_has_field(struct str body, const struct cross_fields *fields, bool *has, struct err *err)
{
	struct cross_place places[LIMIT_CROSS_FIELDS];
	*has = false;
	int code = fields->count > 0 ? cross_find(body, fields, places, err) : 0;
	for (uint32_t i = 0; code == 0 && i < fields->count; i++)
		*has |= places[i].found;
	return code;
}

/* The one that stands first of those behind `after`; NULL: there is none. */
static const struct cross_place *next_place(const struct cross_place *places, uint32_t count, size_t after)
{
	const struct cross_place *next = NULL;
	for (uint32_t i = 0; i < count; i++)
		if (places[i].found && places[i].at >= after && (!next || places[i].at < next->at))
			next = &places[i];
	return next;
}

int cross_restore_body(struct str whole, struct str part, const struct cross_fields *fields, struct buf *out,
                       struct err *err)
{
	struct cross_place given[LIMIT_CROSS_FIELDS], places[LIMIT_CROSS_FIELDS];
	size_t copied = 0;
	int code = cross_find(whole, fields, given, err);
	if (code == 0)
		code = cross_find(part, fields, places, err);
	if (code)
		return code;
	for (const struct cross_place *place; (place = next_place(places, fields->count, copied)) != NULL;) {
		const struct cross_place *from = &given[place - places];
		bool known = from->found && !from->is_null;
		buf_put(out, str_make(part.at + copied, place->at - copied));
		buf_put(out,
		        known ? str_make(whole.at + from->at, from->length) : str_make(part.at + place->at, place->length));
		copied = place->at + place->length;
	}
	buf_put(out, str_make(part.at + copied, part.length - copied));
	return 0;
}

/* One after the other: each makes other places of those that follow. */
int cross_fill_body(struct str body, struct str whole, const struct cross_fields *fields, struct buf *out,
                    struct err *err)
{
	struct cross_place given[LIMIT_CROSS_FIELDS], place;
	struct buf filled = {0};
	int code = cross_find(whole, fields, given, err);
	buf_put(&filled, body);
	for (uint32_t i = 0; code == 0 && i < fields->count; i++) {
		struct cross_fields one = {&fields->pointers[i], 1};
		struct buf next = {0};
		code = cross_find(buf_str(&filled), &one, &place, err);
		if (code || place.found || !given[i].found || given[i].is_null)
			continue;
		if (!place.addable) {
			code = err_set(err, ERR_INVALID, TEXT_NAME_FMT " cannot be put into the body: something else is in its way",
			               TEXT_NAME(fields->pointers[i]));
			continue;
		}
		cross_insert(buf_str(&filled), fields->pointers[i], &place, str_make(whole.at + given[i].at, given[i].length),
		             &next);
		buf_free(&filled);
		filled = next;
	}
	if (code == 0)
		buf_put(out, buf_str(&filled));
	buf_free(&filled);
	return code;
}

int cross_empty_body(struct str body, const struct cross_fields *fields, struct buf *out, struct err *err)
{
	struct cross_place places[LIMIT_CROSS_FIELDS];
	size_t copied = 0;
	int code = cross_find(body, fields, places, err);
	if (code)
		return code;
	for (const struct cross_place *place; (place = next_place(places, fields->count, copied)) != NULL;) {
		buf_put(out, str_make(body.at + copied, place->at - copied));
		if (place->kind == GLUE_JSON_NUMBER)
			buf_put_char(out, '0');
		else if (place->kind == GLUE_JSON_ARRAY)
			buf_put(out, STR("[]"));
		else
			buf_put(out, str_make(body.at + place->at, place->length));
		copied = place->at + place->length;
	}
	buf_put(out, str_make(body.at + copied, body.length - copied));
	return 0;
}

static int is_nothing(struct str value, const struct cross_place *place, bool *nothing, struct err *err)
{
	struct cross_number number;
	struct cross_list list;
	int code = 0;
	*nothing = true;
	if (place->kind == GLUE_JSON_NUMBER && (code = cross_number_parse(value, &number, err)) == 0)
		*nothing = number.units == 0;
	if (place->kind == GLUE_JSON_ARRAY) {
		code = cross_list_read(value, &list, err);
		*nothing = code == 0 && list.count == 0;
		cross_list_free(&list);
	}
	return code;
}

int cross_is_empty(struct str body, const struct cross_fields *fields, bool *empty, struct str *field, struct err *err)
{
	struct cross_place places[LIMIT_CROSS_FIELDS];
	int code = cross_find(body, fields, places, err);
	*empty = true;
	for (uint32_t i = 0; i < fields->count && code == 0 && *empty; i++) {
		if (!places[i].found || places[i].is_null)
			continue;
		code = is_nothing(str_make(body.at + places[i].at, places[i].length), &places[i], empty, err);
		*field = fields->pointers[i];
	}
	return code;
}
