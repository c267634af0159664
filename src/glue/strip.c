/* Preconditions in bodies. They are judged where a request arrives, against the copy of that site; what goes to other sites is the
 * body without them, and with every other byte as it was.
 *
 *   {"metadata": {"name": "a", "resourceVersion": "7"}, "data": {}}
 *                            └──────── cut ─────────┘
 *   {"metadata": {"name": "a"}, "data": {}}
 *
 * A member goes with the comma before it; where nothing that stays is before it, with the one behind it. In a JSON patch (RFC 6902)
 * each `test` is a precondition, wherever it points.
 */
#include "glue/glue_int.h"
#include "glue/json.h"
#include "glue/places.h"

#include "base/check.h"

#include <stdlib.h>

/* An object or array that is open. */
struct level {
	const struct glue_places_node *node;
	const struct glue_places_node *below; /* of the member or element that was begun last, */
	size_t at;                            /* which begins here, */
	bool cut;                             /* and is to go */
	bool is_op;                           /* it is the `op` of an operation of a JSON patch */
	bool any_stays;                       /* of those before it; */
	size_t stays_to;                      /* the last one, up to here */
	uint32_t next_index;
};

struct strip {
	struct str text;
	struct buf *out;
	size_t copied;
	bool is_patch;
	bool found;
	struct buf scratch;
	uint32_t depth;
	struct level levels[LIMIT_GLUE_NESTING];
	struct glue_json json;
};

static void cut(struct strip *strip, size_t from, size_t to)
{
	if (from > strip->copied)
		buf_put(strip->out, str_make(strip->text.at + strip->copied, from - strip->copied));
	strip->copied = to;
	strip->found = true;
}

/* Behind the comma that follows, if one does. */
static size_t past_comma(struct str text, size_t end)
{
	size_t at = end;
	while (at < text.length && strchr(" \t\r\n", text.at[at]))
		at++;
	return at < text.length && text.at[at] == ',' ? at + 1 : end;
}

static struct level *innermost(struct strip *strip)
{
	return strip->depth > 0 ? &strip->levels[strip->depth - 1] : NULL;
}

/* ---- What the scanner tells -------------------------------------------------------------------------------------- */

static void key_told(struct strip *strip)
{
	struct level *level = innermost(strip);
	struct str name;
	CHECK(level); /* a key is in an object */
	bool readable = glue_json_string(strip->json.token, strip->json.escaped, &strip->scratch, &name);
	level->at = strip->json.token_at;
	level->below = level->node && readable ? glue_places_member(level->node, name) : NULL;
	level->cut = level->below && level->below->is_place;
	level->is_op = strip->is_patch && strip->depth == 2 && readable && str_equal(name, STR("op"));
}

static void value_told(struct strip *strip, const struct glue_places *places)
{
	struct level *level = innermost(strip);
	if (level && strip->json.in_array) {
		level->at = strip->json.token_at;
		level->below = level->node ? glue_places_element(level->node, level->next_index++) : NULL;
		level->cut = level->below && level->below->is_place;
	}
	if (strip->json.kind != GLUE_JSON_OBJECT && strip->json.kind != GLUE_JSON_ARRAY)
		return;
	const struct glue_places_node *node = level ? level->below : glue_places_root(places);
	if (level && level->cut)
		node = NULL;                                              /* goes as a whole */
	strip->levels[strip->depth++] = (struct level){.node = node}; /* the scanner refuses what is nested deeper */
}

static void value_ended(struct strip *strip, size_t end)
{
	struct level *level = innermost(strip);
	if (!level)
		return;
	if (!level->cut) {
		level->any_stays = true;
		level->stays_to = end;
	} else if (level->any_stays) {
		cut(strip, level->stays_to, end);
		level->stays_to = end;
	} else {
		cut(strip, level->at, past_comma(strip->text, end));
	}
	level->cut = false;
}

static void scalar_told(struct strip *strip)
{
	struct level *level = innermost(strip);
	struct str value;
	if (level && level->is_op && strip->json.kind == GLUE_JSON_STRING &&
	    glue_json_string(strip->json.token, strip->json.escaped, &strip->scratch, &value) &&
	    str_equal(value, STR("test")))
		strip->levels[0].cut = true;
	value_ended(strip, strip->json.token_at + strip->json.token.length);
}

/* False: it is no JSON. */
static bool walk(struct strip *strip, const struct glue_places *places)
{
	struct glue_json *json = &strip->json;
	glue_json_init(json, false);
	glue_json_feed(json, strip->text);
	for (;;) {
		switch (glue_json_next(json)) {
		case GLUE_JSON_KEY: key_told(strip); break;
		case GLUE_JSON_VALUE: value_told(strip, places); break;
		case GLUE_JSON_SCALAR: scalar_told(strip); break;
		case GLUE_JSON_CLOSE:
			strip->depth--;
			value_ended(strip, (size_t)(json->at - json->piece));
			break;
		case GLUE_JSON_MORE: glue_json_finish(json); break;
		case GLUE_JSON_END: return true;
		case GLUE_JSON_BAD: return false;
		}
	}
}

/* ---- Asked ------------------------------------------------------------------------------------------------------- */

static bool is_json_patch(struct str content_type)
{
	static const struct str patch = STR_INIT("application/json-patch+json");
	return content_type.length >= patch.length && str_equal_nocase(str_make(content_type.at, patch.length), patch);
}

bool glue_strip_preconditions(const struct glue_operation *operation, struct str content_type, struct str body,
                              struct buf *out)
{
	const struct glue_texts *pointers = &operation->type->preconditions;
	bool is_patch = is_json_patch(content_type);
	if (body.length == 0 || (pointers->count == 0 && !is_patch) || operation->body == GLUE_BODY_OPAQUE)
		return false;
	struct strip *strip = calloc(1, sizeof(*strip));
	struct glue_places *places = glue_places_new();
	struct buf pointer = {0};
	CHECK(strip != NULL);
	bool fine = true;
	for (uint32_t i = 0; i < pointers->count && !is_patch && fine; i++) {
		buf_clear(&pointer);
		buf_put(&pointer, operation->object);
		buf_put(&pointer, pointers->at[i]);
		fine = glue_places_add(places, buf_str(&pointer), GLUE_PLACE_NAME, NULL, NULL) == 0;
	}
	size_t before = out->length;
	strip->text = body;
	strip->out = out;
	strip->is_patch = is_patch;
	bool found = fine && walk(strip, places) && strip->found;
	if (found) {
		buf_put(out, str_make(body.at + strip->copied, body.length - strip->copied));
	} else if (out->at) {
		out->length = before;
		out->at[before] = '\0';
	}
	buf_free(&pointer);
	buf_free(&strip->scratch);
	glue_places_free(places);
	free(strip);
	return found;
}
