/* Facets that a new member gets by requests of their own: for each element of a list, or if the item shows a value (glue_facet_copying()). */
#include "engine/facets.h"

#include "base/check.h"

#include <jansson.h>

/* The next part of a pointer, in `name`; false: there is none. */
static bool next_name(struct str *pointer, struct buf *name)
{
	if (pointer->length == 0)
		return false;
	const char *slash = memchr(pointer->at + 1, '/', pointer->length - 1);
	size_t end = slash ? (size_t)(slash - pointer->at) : pointer->length;
	buf_clear(name);
	for (size_t i = 1; i < end; i++) {
		bool escaped = pointer->at[i] == '~' && i + 1 < end;
		buf_put_char(name, !escaped ? pointer->at[i] : pointer->at[++i] == '1' ? '/' : '~');
	}
	*pointer = str_make(pointer->at + end, pointer->length - end);
	return true;
}

/* NULL: nothing is there. */
static json_t *find(json_t *json, struct str pointer)
{
	struct buf name = {0};
	while (json && next_name(&pointer, &name))
		json = json_is_array(json) ? json_array_get(json, strtoul(buf_c(&name), NULL, 10))
		                           : json_object_get(json, buf_c(&name));
	buf_free(&name);
	return json;
}

/* In objects, which are made where there are none. */
static void put(json_t *json, struct str pointer, json_t *value)
{
	struct buf name = {0};
	while (next_name(&pointer, &name)) {
		json_t *there = pointer.length == 0 ? json_incref(value) : json_incref(json_object_get(json, buf_c(&name)));
		if (!json_is_object(there) && pointer.length > 0) {
			json_decref(there);
			there = json_object();
		}
		json_object_set_new(json, buf_c(&name), there);
		json = there;
	}
	buf_free(&name);
}

/* The body of the request for an element. */
static void put_body(const struct glue_copying *copying, json_t *element, struct buf *out)
{
	json_t *body = json_object();
	CHECK(body);
	for (uint32_t i = 0; i < copying->body_count; i++) {
		json_t *value = find(element, copying->from[i]);
		if (value && !json_is_null(value))
			put(body, copying->body[i], value);
	}
	char *text = json_dumps(body, JSON_COMPACT | JSON_ENCODE_ANY);
	CHECK(text);
	buf_put(out, str_of(text));
	free(text);
	json_decref(body);
}

int engine_elements(const struct glue_copying *copying, struct str shown, engine_element_each *each, void *context,
                    struct err *err)
{
	json_t *json = json_loadb(shown.at, shown.length, JSON_DECODE_ANY, NULL), *element;
	json_t *list = find(json, copying->each);
	size_t index, count = json_array_size(list);
	int code = 0;
	if (!json_is_array(list))
		code = err_set(err, ERR_INVALID, "what it shows has no list at `%.*s`", STR_FMT(copying->each));
	else if (count > LIMIT_ENGINE_ELEMENTS)
		code = err_set(err, ERR_LIMIT, "it has %zu elements; at most %d can be given to others", count,
		               LIMIT_ENGINE_ELEMENTS);
	for (index = 0; code == 0 && index < count; index++) {
		struct buf body = {0};
		element = json_array_get(list, index);
		put_body(copying, element, &body);
		each(context, buf_str(&body));
		buf_free(&body);
	}
	json_decref(json);
	return code;
}

bool engine_item_shows(const struct glue_type *type, const struct glue_copying *copying, struct str item)
{
	json_t *json = json_loadb(item.at, item.length, JSON_DECODE_ANY, NULL);
	const json_t *value = find(find(json, glue_type_object(type)), copying->place);
	bool shows = json_is_string(value) &&
	             str_equal(str_make(json_string_value(value), json_string_length(value)), copying->value);
	json_decref(json);
	return shows;
}
