/* Equal states give equal texts: what may differ between replicas is left out, and the rest is written in one way.
 *
 *   members   sorted by their names, byte by byte; a name that is there twice stays so, in its order
 *   elements  in their order, which may mean something; those of which the description says that it does not (`sets`) like members
 *   strings   escaped where they have to be, and nowhere else
 *   numbers   as they are written. Made into doubles, two large ids that differ would be equal, and that is worse than to call
 *             1 and 1.0 different: replicas run the same software, and who is told of a difference can look at it
 *   links     without the host: each site has its own
 *   space     none
 *
 * An object's members, and a set's elements, are written in the order in which they come, each with a comma behind it. When it ends, it is
 * known where each begins in what was written, and they are put into order there: no tree is made, and besides the text
 * there are only those numbers, of what is open.
 */
#include "glue/glue_int.h"
#include "glue/json.h"
#include "glue/places.h"

#include "base/check.h"

#include <stdlib.h>

/* A member as it is written: where, how long `"name":` is, and all of it with its comma. Of a set, an element. */
struct member {
	uint32_t at;         /* from the beginning of what is written */
	uint32_t key_length; /* by which they are sorted */
	uint32_t length;
};

/* An object or array that is open. */
struct level {
	const struct glue_places_node *node;
	uint32_t next_index;   /* of an array */
	size_t members_before; /* of an object: how many bytes of the members' list are for those around it */
	size_t at;             /* where its first member or element is written */
	bool is_object;
	bool is_sorted; /* an object, or a set */
};

struct comparison {
	const struct glue_places *volatiles;
	const struct glue_places_node *coming; /* of the member whose name came last */
	struct buf *out;
	size_t begin;       /* of what is written in it */
	struct buf members; /* a list of struct member */
	struct buf sorted;
	struct buf scratch;
	bool is_link; /* the value that came last */
	uint32_t depth;
	struct level levels[LIMIT_GLUE_NESTING];
	struct glue_json json;
};

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

/* What an escape stands for, as it is or, where it has to be, in the shortest escape: never longer than it was. */
static void put_escape(struct buf *out, uint32_t code_point)
{
	static const char escaped[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
	char bytes[4];
	size_t length = utf8_encode(code_point, bytes);
	const char *found = code_point > 0 && code_point < 0x80 ? strchr(escaped, (int)code_point) : NULL;
	if (found)
		buf_put(out, str_make((const char[]){'\\', letters[found - escaped]}, 2));
	else if (code_point < 0x20 || length == 0) /* 0: half a surrogate pair */
		buf_printf(out, "\\u%04x", (unsigned)code_point);
	else
		buf_put(out, str_make(bytes, length));
}

/* A string, number or word. */
static void put_token(struct buf *out, const struct glue_json *json)
{
	struct str token = json->token;
	if (!json->escaped) {
		buf_put(out, token);
		return;
	}
	for (size_t at = 0; at < token.length;) {
		const char *backslash = memchr(token.at + at, '\\', token.length - at);
		size_t run = (backslash ? (size_t)(backslash - token.at) : token.length) - at;
		buf_put(out, str_make(token.at + at, run));
		at += run;
		if (backslash)
			put_escape(out, glue_json_unescape(token, &at));
	}
}

static void cut(struct buf *buf, size_t length)
{
	buf->length = length;
	if (buf->at)
		buf->at[length] = '\0';
}

/* A string, from `"` to `"`. One without a path after its host stays. */
static void put_link(struct buf *out, const struct glue_json *json)
{
	size_t from = out->length + 1;
	put_token(out, json);
	struct str link = str_make(out->at + from, out->length - 1 - from);
	size_t host = glue_link_path(link);
	if (host == link.length)
		return;
	memmove(out->at + from, out->at + from + host, out->length - from - host);
	cut(out, out->length - host);
}

/* ---- Sorting ----------------------------------------------------------------------------------------------------- */

static int compare_members(const void *a, const void *b, void *text)
{
	const struct member *x = a, *y = b;
	const char *at = text;
	int order = str_compare(str_make(at + x->at, x->key_length), str_make(at + y->at, y->key_length));
	return order ? order : (x->at > y->at) - (x->at < y->at);
}

static struct member *members_from(struct comparison *comparison, size_t bytes, size_t *count)
{
	*count = (comparison->members.length - bytes) / sizeof(struct member);
	return *count > 0 ? (struct member *)(void *)(comparison->members.at + bytes) : NULL;
}

/* Puts the members of an object that ends, or the elements of a set, into order. */
static void sort_members(struct comparison *comparison, const struct level *level)
{
	size_t count;
	struct member *members = members_from(comparison, level->members_before, &count);
	char *text = comparison->out->at + comparison->begin;
	bool sorted = true;
	for (size_t i = 1; members && sorted && i < count; i++)
		sorted = compare_members(&members[i - 1], &members[i], text) < 0;
	if (!sorted) {
		buf_clear(&comparison->sorted);
		qsort_r(members, count, sizeof(*members), compare_members, text);
		for (size_t i = 0; i < count; i++)
			buf_put(&comparison->sorted, str_make(text + members[i].at, members[i].length));
		memcpy(comparison->out->at + level->at, comparison->sorted.at, comparison->sorted.length);
	}
	cut(&comparison->members, level->members_before);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

/* The places of links and sets are among them, and stay. */
static bool is_left_out(const struct glue_places_node *node)
{
	return node && node->is_place && node->kind != GLUE_PLACE_LINK && node->kind != GLUE_PLACE_SET;
}

static void key(struct comparison *comparison)
{
	struct glue_json *json = &comparison->json;
	const struct glue_places_node *node = comparison->levels[comparison->depth - 1].node;
	struct str name;
	comparison->coming = node && glue_json_string(json->token, json->escaped, &comparison->scratch, &name)
	                         ? glue_places_member(node, name)
	                     : node ? node->any
	                            : NULL;
	if (is_left_out(comparison->coming)) {
		glue_json_skip(json);
		return;
	}
	struct member member = {.at = (uint32_t)(comparison->out->length - comparison->begin)};
	put_token(comparison->out, json);
	buf_put_char(comparison->out, ':');
	member.key_length = (uint32_t)(comparison->out->length - comparison->begin) - member.at;
	buf_put(&comparison->members, str_make((const char *)&member, sizeof(member)));
}

static const struct glue_places_node *node_of_value(struct comparison *comparison)
{
	if (comparison->json.in_object)
		return comparison->coming;
	if (!comparison->json.in_array)
		return glue_places_root(comparison->volatiles);
	struct level *array = &comparison->levels[comparison->depth - 1];
	return array->node ? glue_places_element(array->node, array->next_index++) : NULL;
}

static void value(struct comparison *comparison)
{
	struct glue_json *json = &comparison->json;
	const struct glue_places_node *node = node_of_value(comparison);
	comparison->is_link = node && node->is_place && node->kind == GLUE_PLACE_LINK && json->kind == GLUE_JSON_STRING;
	if (is_left_out(node)) {
		glue_json_skip(json);
		return;
	}
	if (json->in_array && comparison->levels[comparison->depth - 1].is_sorted) {
		struct member element = {.at = (uint32_t)(comparison->out->length - comparison->begin)};
		buf_put(&comparison->members, str_make((const char *)&element, sizeof(element)));
	}
	if (json->kind != GLUE_JSON_OBJECT && json->kind != GLUE_JSON_ARRAY)
		return;
	buf_put_char(comparison->out, json->kind == GLUE_JSON_OBJECT ? '{' : '[');
	comparison->levels[comparison->depth++] = (struct level){
		.node = node,
		.members_before = comparison->members.length,
		.at = comparison->out->length,
		.is_object = json->kind == GLUE_JSON_OBJECT,
		.is_sorted = json->kind == GLUE_JSON_OBJECT || (node && node->is_place && node->kind == GLUE_PLACE_SET),
	};
}

/* A value is written. */
static void value_end(struct comparison *comparison)
{
	if (comparison->depth == 0)
		return;
	buf_put_char(comparison->out, ',');
	const struct level *level = &comparison->levels[comparison->depth - 1];
	if (level->is_sorted) {
		size_t count;
		struct member *members = members_from(comparison, level->members_before, &count);
		CHECK(members != NULL);
		struct member *last = &members[count - 1];
		last->length = (uint32_t)(comparison->out->length - comparison->begin) - last->at;
		if (!level->is_object)
			last->key_length = last->length - 1;
	}
}

static void close_level(struct comparison *comparison)
{
	const struct level *level = &comparison->levels[--comparison->depth];
	struct buf *out = comparison->out;
	if (level->is_sorted)
		sort_members(comparison, level);
	if (out->length > level->at)
		cut(out, out->length - 1); /* the last comma */
	buf_put_char(out, level->is_object ? '}' : ']');
	value_end(comparison);
}

static int run(struct comparison *comparison, struct err *err)
{
	struct glue_json *json = &comparison->json;
	for (;;) {
		switch (glue_json_next(json)) {
		case GLUE_JSON_MORE: glue_json_finish(json); break;
		case GLUE_JSON_KEY: key(comparison); break;
		case GLUE_JSON_VALUE: value(comparison); break;
		case GLUE_JSON_SCALAR:
			if (comparison->is_link)
				put_link(comparison->out, json);
			else
				put_token(comparison->out, json);
			value_end(comparison);
			break;
		case GLUE_JSON_CLOSE: close_level(comparison); break;
		case GLUE_JSON_END: return 0;
		case GLUE_JSON_BAD: return glue_json_complain(json, err);
		}
	}
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

int glue_places_without(const struct glue_places *places, struct str body, struct buf *out, struct err *err)
{
	if (body.length > LIMIT_GLUE_COMPARE_BYTES)
		return err_set(err, ERR_LIMIT, "a body of %zu bytes is too long to be compared; the limit is %d", body.length,
		               LIMIT_GLUE_COMPARE_BYTES);
	struct comparison *comparison = malloc(sizeof(*comparison));
	CHECK(comparison != NULL);
	memset(comparison, 0, offsetof(struct comparison, levels));
	comparison->volatiles = places;
	comparison->out = out;
	comparison->begin = out->length;
	glue_json_init(&comparison->json, false);
	glue_json_feed(&comparison->json, body);
	int code = run(comparison, err);
	if (code)
		cut(out, comparison->begin);
	buf_free(&comparison->members);
	buf_free(&comparison->sorted);
	buf_free(&comparison->scratch);
	free(comparison);
	return code;
}

/* What is the place of something else already stays it: what is left out is no link. */
static int add_places(struct glue_places *places, const struct glue_type *type, const struct glue_texts *texts,
                      enum glue_place_kind kind, struct err *err)
{
	struct buf pointer = {0};
	int code = 0;
	for (uint32_t i = 0; code == 0 && i < texts->count; i++) {
		buf_clear(&pointer);
		buf_put(&pointer, type->object);
		buf_put(&pointer, texts->at[i]);
		code = glue_places_add(places, buf_str(&pointer), kind, NULL, err);
		if (code == ERR_CONFLICT)
			code = 0;
	}
	buf_free(&pointer);
	return code;
}

/* Each site's application makes the parts of its copy: their ids say nothing elsewhere. A list of them goes as a whole. */
static int add_parts(struct glue_places *places, const struct glue_type *type, struct err *err)
{
	static const struct str each = STR_INIT("/*");
	struct buf pointer = {0};
	int code = 0;
	for (uint32_t i = 0; code == 0 && i < type->in_body.count; i++) {
		const struct glue_reference *reference = &type->in_body.at[i];
		struct str place = reference->place;
		if (reference->kind != GLUE_COMPOSITION)
			continue;
		while (place.length > each.length && memcmp(place.at + place.length - each.length, each.at, each.length) == 0)
			place.length -= each.length;
		buf_clear(&pointer);
		buf_put(&pointer, type->object);
		buf_put(&pointer, place);
		code = glue_places_add(places, buf_str(&pointer), GLUE_PLACE_ID, NULL, err);
	}
	buf_free(&pointer);
	return code;
}

bool glue_type_has_parts(const struct glue_type *type)
{
	for (uint32_t i = 0; i < type->in_body.count; i++)
		if (type->in_body.at[i].kind == GLUE_COMPOSITION)
			return true;
	return false;
}

int glue_without_parts(const struct glue_type *type, struct str body, struct buf *out, struct err *err)
{
	struct glue_places *places = glue_places_new();
	int code = add_parts(places, type, err);
	if (code == 0)
		code = glue_places_without(places, body, out, err);
	glue_places_free(places);
	return code;
}

int glue_comparable(const struct glue_type *type, struct str body, struct buf *out, struct err *err)
{
	struct glue_places *places = glue_places_new();
	int code = add_places(places, type, &type->volatiles, GLUE_PLACE_ID, err);
	if (code == 0)
		code = add_parts(places, type, err);
	if (code == 0)
		code = add_places(places, type, &type->links, GLUE_PLACE_LINK, err);
	if (code == 0)
		code = add_places(places, type, &type->sets, GLUE_PLACE_SET, err);
	if (code == 0)
		code = glue_places_without(places, body, out, err);
	glue_places_free(places);
	return code;
}

int glue_anew(const struct glue_type *type, struct str body, bool with_id, struct buf *out, struct err *err)
{
	struct glue_places *places = glue_places_new();
	int code = add_places(places, type, &type->volatiles, GLUE_PLACE_ID, err);
	if (code == 0)
		code = add_parts(places, type, err);
	if (code == 0)
		code = add_places(places, type, &type->derived, GLUE_PLACE_ID, err);
	bool says_id = type->identity == GLUE_CHOSEN || (with_id && type->identity == GLUE_SUGGESTED);
	if (code == 0 && !says_id)
		code = add_places(places, type, &type->ids, GLUE_PLACE_ID, err);
	if (code == 0 && type->identity != GLUE_CHOSEN)
		code = add_places(places, type, &type->links, GLUE_PLACE_ID, err);
	if (code == 0)
		code = glue_places_without(places, body, out, err);
	glue_places_free(places);
	return code;
}
