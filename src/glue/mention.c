/* Which references a body has. Unlike a splicer, which replaces ids, this one looks for what is used at all: `true` in the place of
 * an id asks for any item of the type ("network": true), while null, false and "" ask for none. */
#include "glue/glue_int.h"
#include "glue/json.h"
#include "glue/places.h"

#include "base/check.h"

#include <stdlib.h>

struct around {
	const struct glue_places_node *node;
	uint32_t next_index;
};

struct search {
	const struct glue_places *places;
	void (*each)(void *context, const struct glue_mention *mention);
	void *context;
	struct around around[LIMIT_GLUE_SEGMENTS];
	uint32_t depth;
	const struct glue_places_node *member;
	const struct glue_places_node *held;
	struct buf scratch;
	struct glue_json json;
};

static void key(struct search *search)
{
	struct glue_json *json = &search->json;
	const struct glue_places_node *node = search->around[search->depth - 1].node;
	struct str name;
	if (json->token.length <= LIMIT_GLUE_VALUE_BYTES &&
	    glue_json_string(json->token, json->escaped, &search->scratch, &name))
		search->member = glue_places_member(node, name);
	else
		search->member = node->any;
	if (search->member == NULL)
		glue_json_skip(json);
}

static const struct glue_places_node *node_of_value(struct search *search)
{
	if (search->json.in_object)
		return search->member;
	if (!search->json.in_array)
		return glue_places_root(search->places);
	struct around *array = &search->around[search->depth - 1];
	uint32_t index = array->next_index;
	array->next_index += index < UINT32_MAX;
	return glue_places_element(array->node, index);
}

static void value(struct search *search)
{
	struct glue_json *json = &search->json;
	const struct glue_places_node *node = node_of_value(search);
	bool is_container = json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY;
	if (node != NULL && is_container && node->leads_on)
		search->around[search->depth++] = (struct around){.node = node};
	else if (node != NULL && !is_container && node->is_place && node->kind == GLUE_PLACE_REFERENCE)
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
	search->each(search->context, &mention);
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

int glue_mentions(const struct glue_operation *operation, struct str body,
                  void (*each)(void *context, const struct glue_mention *mention), void *context, struct err *err)
{
	if (operation->request_places == NULL)
		return 0;
	struct search *search = malloc(sizeof(*search));
	CHECK(search != NULL);
	memset(search, 0, offsetof(struct search, json));
	search->places = operation->request_places;
	search->each = each;
	search->context = context;
	glue_json_init(&search->json, true);
	glue_json_feed(&search->json, body);
	int code = run(search, err);
	buf_free(&search->scratch);
	free(search);
	return code;
}
