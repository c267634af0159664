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
