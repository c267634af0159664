/* A create whose item the service names: at the other sites it is to have that very name, so the body that goes there has it.
 *
 *   {"metadata": {"generateName": "job-"}}          and the service answers that it is `job-x7k2p`
 *   {"metadata": {"name":"job-x7k2p","generateName": "job-"}}
 *
 * The member is put first in the object that is to have it; objects that are missing around it are made. One that is there, but
 * empty or null, is filled. Every other byte stays.
 */
#include "glue/glue_int.h"
#include "glue/json.h"

/* The pointer, taken apart, and how far the text has it. */
struct insertion {
	struct buf names[LIMIT_GLUE_SEGMENTS + 1]; /* one more shows that there are too many */
	uint32_t names_count;
	uint32_t depth;   /* of what is open in the text */
	uint32_t matched; /* how many of the objects around here are the pointer's */
	bool coming;      /* the value that comes is the next of the pointer's */
	/* The deepest object of the pointer that is there. */
	bool any;
	uint32_t inner;
	size_t inner_at; /* behind its brace */
	bool inner_empty;
	/* The value at the pointer's end. */
	bool there;
	bool blank;
	size_t value_at, value_end;
};

static void take_apart(struct insertion *insertion, struct str pointer)
{
	for (size_t i = 0; i < pointer.length && insertion->names_count <= LIMIT_GLUE_SEGMENTS; i++) {
		char c = pointer.at[i];
		if (c == '/') {
			insertion->names_count++;
			continue;
		}
		if (c == '~' && i + 1 < pointer.length)
			c = pointer.at[++i] == '1' ? '/' : '~';
		buf_put_char(&insertion->names[insertion->names_count - 1], c);
	}
}

static void key_told(struct insertion *insertion, const struct glue_json *json, struct buf *scratch)
{
	struct str name;
	uint32_t level = insertion->depth - 1;
	if (insertion->any && insertion->inner == level && insertion->matched == insertion->depth)
		insertion->inner_empty = false;
	insertion->coming = insertion->matched == insertion->depth && level < insertion->names_count &&
	                    glue_json_string(json->token, json->escaped, scratch, &name) &&
	                    str_equal(name, buf_str(&insertion->names[level]));
}

static void value_told(struct insertion *insertion, const struct glue_json *json)
{
	bool open = json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY;
	bool ours = insertion->depth == 0 || insertion->coming;
	bool last = insertion->depth == insertion->names_count;
	if (ours && last && insertion->depth > 0) {
		insertion->there = true;
		insertion->blank = false;
		insertion->value_at = json->token_at;
	} else if (ours && json->kind == GLUE_JSON_OBJECT && (!insertion->any || insertion->inner < insertion->depth)) {
		insertion->any = insertion->inner_empty = true;
		insertion->inner = insertion->depth;
		insertion->inner_at = json->token_at + 1;
	}
	if (open) {
		insertion->matched += ours && json->kind == GLUE_JSON_OBJECT && insertion->matched == insertion->depth;
		insertion->depth++;
	}
	if (open || !last)
		insertion->coming = false;
}

static void scalar_told(struct insertion *insertion, const struct glue_json *json)
{
	if (insertion->coming && insertion->depth == insertion->names_count) {
		insertion->blank = str_equal(json->token, STR("\"\"")) || str_equal(json->token, STR("null"));
		insertion->value_end = json->token_at + json->token.length;
	}
	insertion->coming = false;
}

static bool walk(struct insertion *insertion, struct str body, struct buf *scratch)
{
	struct glue_json json;
	glue_json_init(&json, false);
	glue_json_feed(&json, body);
	for (;;) {
		switch (glue_json_next(&json)) {
		case GLUE_JSON_KEY: key_told(insertion, &json, scratch); break;
		case GLUE_JSON_VALUE: value_told(insertion, &json); break;
		case GLUE_JSON_SCALAR: scalar_told(insertion, &json); break;
		case GLUE_JSON_CLOSE:
			insertion->depth--;
			insertion->matched = insertion->matched < insertion->depth ? insertion->matched : insertion->depth;
			break;
		case GLUE_JSON_MORE: glue_json_finish(&json); break;
		case GLUE_JSON_END: return true;
		case GLUE_JSON_BAD: return false;
		}
	}
}

static void put_member(struct insertion *insertion, struct str id, struct buf *out)
{
	uint32_t from = insertion->inner;
	for (uint32_t i = from; i < insertion->names_count; i++) {
		if (i > from)
			buf_put_char(out, '{');
		glue_json_put_string(out, buf_str(&insertion->names[i]));
		buf_put_char(out, ':');
	}
	glue_json_put_string(out, id);
	for (uint32_t i = from + 1; i < insertion->names_count; i++)
		buf_put_char(out, '}');
	if (!insertion->inner_empty)
		buf_put_char(out, ',');
}

bool glue_insert_id(const struct glue_operation *operation, struct str body, struct str id, struct buf *out)
{
	struct insertion insertion = {0};
	struct buf scratch = {0};
	struct str first = operation->type->ids.count > 0 ? operation->type->ids.at[0] : STR("");
	bool done = false;
	if (body.length == 0 || first.length == 0 || memchr(first.at, '*', first.length))
		return false;
	take_apart(&insertion, operation->object);
	take_apart(&insertion, first);
	if (insertion.names_count <= LIMIT_GLUE_SEGMENTS && walk(&insertion, body, &scratch)) {
		bool fill = insertion.there && insertion.blank;
		done = fill || (!insertion.there && insertion.any);
		size_t at = fill ? insertion.value_at : insertion.inner_at;
		size_t behind = fill ? insertion.value_end : insertion.inner_at;
		if (done)
			buf_put(out, str_make(body.at, at));
		if (fill)
			glue_json_put_string(out, id);
		else if (done)
			put_member(&insertion, id, out);
		if (done)
			buf_put(out, str_make(body.at + behind, body.length - behind));
	}
	for (uint32_t i = 0; i <= LIMIT_GLUE_SEGMENTS; i++)
		buf_free(&insertion.names[i]);
	buf_free(&scratch);
	return done;
}
