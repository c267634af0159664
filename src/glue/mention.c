/* Which references a body has. Unlike a splicer, which replaces ids, this one looks for what is used at all: `true` in the place of
 * an id asks for any item of the type ("network": true), while null, false and "" ask for none.
 *
 * Who keeps what refers to what (glue_sayings()) is told as well where it stands, and what stands there no more: whatever the body
 * gives a value to, but for an object, of which only the members that it has are meant, as in a merge patch (RFC 7396). */
#include "glue/glue_int.h"
#include "glue/json.h"
#include "glue/places.h"

#include "base/check.h"

#include <stdlib.h>

struct around {
	const struct glue_places_node *node;
	uint32_t next_index;
};

/* One of the two. */
struct listener {
	void (*each)(void *context, const struct glue_mention *mention);
	void (*said)(void *context, const struct glue_saying *saying);
	void *context;
};

struct search {
	const struct glue_places *places;
	struct listener listener;
	struct buf path;                     /* of the value, where it is told */
	size_t lengths[LIMIT_GLUE_SEGMENTS]; /* of the paths of those around it */
	size_t object;                       /* of what is before the object */
	struct around around[LIMIT_GLUE_SEGMENTS];
	uint32_t depth;
	const struct glue_places_node *member;
	const struct glue_places_node *held;
	struct buf scratch;
	struct glue_json json;
};

/* As a JSON pointer has it. */
static void path_put(struct search *search, struct str name)
{
	search->path.length = search->lengths[search->depth - 1];
	buf_put_char(&search->path, '/');
	for (size_t i = 0; i < name.length; i++) {
		if (name.at[i] == '~' || name.at[i] == '/')
			buf_put(&search->path, name.at[i] == '~' ? STR("~0") : STR("~1"));
		else
			buf_put_char(&search->path, name.at[i]);
	}
}

/* A member that may be of interest under its name; under any other, too, but it has none that can be told. */
static void key(struct search *search)
{
	struct glue_json *json = &search->json;
	const struct glue_places_node *node = search->around[search->depth - 1].node;
	struct str name = STR("");
	if (json->token.length <= LIMIT_GLUE_VALUE_BYTES &&
	    glue_json_string(json->token, json->escaped, &search->scratch, &name))
		search->member = glue_places_member(node, name);
	else
		search->member = search->listener.said ? NULL : node->any;
	if (search->member == NULL)
		glue_json_skip(json);
	else if (search->listener.said)
		path_put(search, name);
}

static void say(struct search *search, const struct glue_places_node *node, struct str value)
{
	struct str path = buf_str(&search->path);
	if (!search->listener.said || path.length < search->object)
		return;
	struct glue_saying saying = {.place = str_make(path.at + search->object, path.length - search->object)};
	if (node)
		saying = (struct glue_saying){saying.place, node->type, node->relation, value};
	search->listener.said(search->listener.context, &saying);
}

static const struct glue_places_node *node_of_value(struct search *search)
{
	if (search->json.in_object)
		return search->member;
	if (!search->json.in_array)
		return glue_places_root(search->places);
	struct around *array = &search->around[search->depth - 1];
	uint32_t index = array->next_index;
	struct buf name = {0};
	array->next_index += index < UINT32_MAX;
	if (search->listener.said) {
		buf_put_number(&name, index, 1);
		path_put(search, buf_str(&name));
		buf_free(&name);
	}
	return glue_places_element(array->node, index);
}

static void value(struct search *search)
{
	struct glue_json *json = &search->json;
	const struct glue_places_node *node = node_of_value(search);
	bool is_container = json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY;
	/* A text that is no object is no item: a patch of another kind, perhaps. */
	bool is_whole = !json->in_object && !json->in_array;
	if (is_whole && search->listener.said && json->kind != GLUE_JSON_OBJECT)
		node = NULL;
	else if (node != NULL && !is_whole && json->kind != GLUE_JSON_OBJECT)
		say(search, NULL, STR(""));
	if (node != NULL && is_container && node->leads_on) {
		search->lengths[search->depth] = search->path.length;
		search->around[search->depth++] = (struct around){.node = node};
	} else if (node != NULL && !is_container && node->is_place && node->kind == GLUE_PLACE_REFERENCE)
		search->held = node;
	else
		glue_json_skip(json);
}

static void scalar(struct search *search)
{
	const struct glue_json *json = &search->json;
	const struct glue_places_node *node = search->held;
	struct glue_mention mention = {.type = node->type, .relation = node->relation, .value = STR("")};
	search->held = NULL;
	if (json->kind == GLUE_JSON_LITERAL && !str_equal(json->token, STR("true")))
		return;
	if (json->kind == GLUE_JSON_STRING) {
		if (json->token.length > LIMIT_GLUE_VALUE_BYTES ||
		    !glue_json_string(json->token, json->escaped, &search->scratch, &mention.value) ||
		    mention.value.length == 0)
			return;
	} else if (json->kind == GLUE_JSON_NUMBER) {
		mention.value = json->token;
	}
	if (search->listener.each)
		search->listener.each(search->listener.context, &mention);
	if (mention.value.length > 0)
		say(search, node, mention.value);
}

static int run(struct search *search, struct err *err)
{
	for (;;) {
		switch (glue_json_next(&search->json)) {
		case GLUE_JSON_KEY: key(search); break;
		case GLUE_JSON_VALUE: value(search); break;
		case GLUE_JSON_SCALAR: scalar(search); break;
		case GLUE_JSON_CLOSE: search->depth--; break;
		case GLUE_JSON_MORE: glue_json_finish(&search->json); break;
		case GLUE_JSON_END: return 0;
		case GLUE_JSON_BAD: return glue_json_complain(&search->json, err);
		}
	}
}

static int look(const struct glue_operation *operation, struct str body, const struct listener *listener,
                struct err *err)
{
	if (operation->request_places == NULL)
		return 0;
	struct search *search = malloc(sizeof(*search));
	CHECK(search != NULL);
	memset(search, 0, offsetof(struct search, json));
	search->places = operation->request_places;
	search->listener = *listener;
	search->object = operation->object.length;
	glue_json_init(&search->json, true);
	glue_json_feed(&search->json, body);
	int code = run(search, err);
	buf_free(&search->scratch);
	buf_free(&search->path);
	free(search);
	return code;
}

int glue_mentions(const struct glue_operation *operation, struct str body,
                  void (*each)(void *context, const struct glue_mention *mention), void *context, struct err *err)
{
	return look(operation, body, &(struct listener){.each = each, .context = context}, err);
}

int glue_sayings(const struct glue_operation *operation, struct str body,
                 void (*each)(void *context, const struct glue_saying *saying), void *context, struct err *err)
{
	return look(operation, body, &(struct listener){.said = each, .context = context}, err);
}
