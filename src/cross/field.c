/* Where fields are in a body, found in one pass by the scanner of JSON.
 *
 * A body may name a member twice. Its readers disagree on which one counts, so nothing is divided or summed by such a name: it is
 * refused, wherever on the way to a field it happens. */
#include "cross/cross_int.h"

#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

struct level {
	uint32_t fields; /* a bit for each whose pointer leads into here */
	uint32_t index;  /* of an array: of the next element */
	bool is_object;
	bool filled;
};

struct search {
	struct glue_json json;
	const struct cross_fields *fields;
	struct cross_place *places;
	struct str *segments[LIMIT_CROSS_FIELDS];
	uint32_t counts[LIMIT_CROSS_FIELDS];
	uint32_t reached[LIMIT_CROSS_FIELDS]; /* so many segments were met, and one more for the text itself */
	uint32_t coming;                      /* of the member whose name came last */
	uint32_t depth;
	uint32_t opened[LIMIT_GLUE_NESTING]; /* fields whose value the level is */
	struct level levels[LIMIT_GLUE_NESTING];
	struct buf scratch;
};

_Static_assert(LIMIT_CROSS_FIELDS <= 32, "a bit for each field");

/* ---- Pointers ------------------------------------------------------------------------------------------------------- */

bool cross_segment_next(struct str *rest, struct buf *scratch, struct str *segment)
{
	if (rest->length == 0)
		return false;
	buf_clear(scratch);
	size_t at = 1;
	for (; at < rest->length && rest->at[at] != '/'; at++) {
		char c = rest->at[at];
		if (c == '~' && at + 1 < rest->length && (rest->at[at + 1] == '0' || rest->at[at + 1] == '1'))
			c = rest->at[++at] == '0' ? '~' : '/';
		buf_put_char(scratch, c);
	}
	*segment = buf_str(scratch);
	*rest = str_make(rest->at + at, rest->length - at);
	return true;
}

static int check_pointer(struct str pointer, struct err *err)
{
	bool fine = pointer.length > 0 && pointer.at[0] == '/' && pointer.length <= LIMIT_GLUE_TEXT_BYTES;
	for (size_t i = 0; fine && i < pointer.length; i++) {
		bool whole = i + 1 == pointer.length || pointer.at[i + 1] == '/';
		fine = !(pointer.at[i] == '~' && (whole || (pointer.at[i + 1] != '0' && pointer.at[i + 1] != '1'))) &&
		       !(pointer.at[i] == '*' && pointer.at[i - 1] == '/' && whole);
	}
	return fine ? 0
	            : err_set(err, ERR_INVALID,
	                      TEXT_NAME_FMT " is no pointer to one field; one looks like `/size` or `/spec/replicas`",
	                      TEXT_NAME(pointer));
}

static int prepare(struct search *search, struct err *err)
{
	for (uint32_t i = 0; i < search->fields->count; i++) {
		struct str rest = search->fields->pointers[i], segment;
		int code = check_pointer(rest, err);
		if (code)
			return code;
		uint32_t most = 0;
		for (size_t k = 0; k < rest.length; k++)
			most += rest.at[k] == '/';
		search->segments[i] = calloc(most, sizeof(struct str));
		CHECK(search->segments[i] != NULL);
		while (cross_segment_next(&rest, &search->scratch, &segment)) {
			char *copy = malloc(segment.length + 1);
			CHECK(copy != NULL);
			memcpy(copy, segment.at, segment.length);
			search->segments[i][search->counts[i]++] = str_make(copy, segment.length);
		}
		search->places[i] = (struct cross_place){0};
	}
	return 0;
}

static void finish(struct search *search)
{
	for (uint32_t i = 0; i < search->fields->count; i++) {
		for (uint32_t k = 0; k < search->counts[i]; k++)
			free((char *)search->segments[i][k].at);
		free(search->segments[i]);
	}
	buf_free(&search->scratch);
	free(search);
}

/* ---- The walk -------------------------------------------------------------------------------------------------------- */

/* Which of the fields of this level go on with that name. */
static uint32_t going_on(const struct search *search, const struct level *level, struct str name)
{
	uint32_t fields = 0;
	for (uint32_t i = 0; level->fields >> i != 0; i++) {
		if (level->fields >> i & 1 && search->depth <= search->counts[i] &&
		    str_equal(search->segments[i][search->depth - 1], name))
			fields |= 1u << i;
	}
	return fields;
}

static void key(struct search *search)
{
	struct level *level = &search->levels[search->depth - 1];
	struct str name;
	level->filled = true;
	search->coming =
		level->fields && glue_json_string(search->json.token, search->json.escaped, &search->scratch, &name)
			? going_on(search, level, name)
			: 0;
}

static uint32_t fields_here(struct search *search)
{
	if (search->json.in_object)
		return search->coming;
	if (!search->json.in_array)
		return search->fields->count < 32 ? (1u << search->fields->count) - 1 : UINT32_MAX;
	struct level *level = &search->levels[search->depth - 1];
	uint32_t index = level->index++;
	if (!level->fields)
		return 0;
	buf_clear(&search->scratch);
	buf_put_number(&search->scratch, index, 1);
	return going_on(search, level, buf_str(&search->scratch));
}

/* A value begins. Which fields' value is it? */
static int value(struct search *search, uint32_t *ends, struct err *err)
{
	struct glue_json *json = &search->json;
	uint32_t fields = fields_here(search), own = 0;
	for (uint32_t i = 0; fields >> i != 0; i++) {
		if ((fields >> i & 1) == 0)
			continue;
		if (search->reached[i] > search->depth)
			return err_set(err, ERR_INVALID, "on the way to " TEXT_NAME_FMT " a member is there twice",
			               TEXT_NAME(search->fields->pointers[i]));
		search->reached[i] = search->depth + 1;
		search->places[i].addable = json->kind == GLUE_JSON_OBJECT;
		search->places[i].depth = search->depth;
		if (search->counts[i] == search->depth) {
			own |= 1u << i;
			search->places[i].at = json->token_at;
			search->places[i].kind = json->kind;
		}
	}
	*ends = own;
	if (json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY) {
		search->opened[search->depth] = own;
		search->levels[search->depth++] =
			(struct level){.fields = fields & ~own, .is_object = json->kind == GLUE_JSON_OBJECT};
	}
	return 0;
}

static void ended(struct search *search, uint32_t own, size_t end)
{
	for (uint32_t i = 0; own >> i != 0; i++) {
		if (own >> i & 1) {
			search->places[i].found = true;
			search->places[i].length = end - search->places[i].at;
			search->places[i].is_null = search->places[i].kind == GLUE_JSON_LITERAL && search->json.token.length > 0 &&
			                            search->json.token.at[0] == 'n';
		}
	}
}

static void close_level(struct search *search)
{
	const struct level *level = &search->levels[--search->depth];
	size_t end = (size_t)(search->json.at - search->json.piece);
	for (uint32_t i = 0; level->fields >> i != 0; i++) {
		struct cross_place *place = &search->places[i];
		if (level->fields >> i & 1 && level->is_object && place->addable && place->depth == search->depth) {
			place->inner_end = end - 1;
			place->inner_filled = level->filled;
		}
	}
	ended(search, search->opened[search->depth], end);
}

static int walk(struct search *search, struct str body, struct err *err)
{
	struct glue_json *json = &search->json;
	uint32_t own = 0;
	int code = 0;
	glue_json_init(json, false);
	glue_json_feed(json, body);
	while (code == 0) {
		switch (glue_json_next(json)) {
		case GLUE_JSON_KEY: key(search); break;
		case GLUE_JSON_VALUE: code = value(search, &own, err); break;
		case GLUE_JSON_SCALAR: ended(search, own, json->token_at + json->token.length); break;
		case GLUE_JSON_CLOSE: close_level(search); break;
		case GLUE_JSON_MORE: glue_json_finish(json); break;
		case GLUE_JSON_END: return 0;
		case GLUE_JSON_BAD: return glue_json_complain(json, err);
		}
	}
	return code;
}

int cross_find(struct str body, const struct cross_fields *fields, struct cross_place *places, struct err *err)
{
	if (fields->count > LIMIT_CROSS_FIELDS)
		return err_set(err, ERR_LIMIT, "%u fields are more than the limit of %d", fields->count, LIMIT_CROSS_FIELDS);
	struct search *search = calloc(1, sizeof(*search));
	CHECK(search != NULL);
	search->fields = fields;
	search->places = places;
	int code = prepare(search, err);
	if (code == 0)
		code = walk(search, body, err);
	finish(search);
	return code;
}

void cross_insert(struct str body, struct str pointer, const struct cross_place *place, struct str value,
                  struct buf *out)
{
	struct buf scratch = {0};
	struct str segment;
	CHECK(!place->found && place->addable);
	buf_put(out, str_make(body.at, place->inner_end));
	if (place->inner_filled)
		buf_put_char(out, ',');
	uint32_t number = 0;
	for (struct str rest = pointer; cross_segment_next(&rest, &scratch, &segment); number++) {
		if (number < place->depth)
			continue;
		if (number > place->depth)
			buf_put_char(out, '{');
		glue_json_put_string(out, segment);
		buf_put_char(out, ':');
	}
	buf_put(out, value);
	buf_put_repeat(out, '}', number - place->depth - 1);
	buf_put(out, str_make(body.at + place->inner_end, body.length - place->inner_end));
	buf_free(&scratch);
}
