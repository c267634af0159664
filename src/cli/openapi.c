#include "cli/openapi.h"

#include <string.h>

enum { DEPTH_MOST = 16 }; /* of references and of what schemas are made of: documents may go round in circles */

static const char *text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));
	return text != NULL ? text : "";
}

bool openapi_open(struct openapi *document, const json_t *root, const char **why)
{
	*document = (struct openapi){.root = root, .paths = json_object_get(root, "paths")};
	if (text_of(root, "openapi")[0] != '3' && text_of(root, "swagger")[0] != '2') {
		*why = "it has neither `\"openapi\": \"3…\"` nor `\"swagger\": \"2…\"`";
		return false;
	}
	*why = "it has no `paths`";
	return json_is_object(document->paths);
}

void openapi_base(const struct openapi *document, struct buf *out)
{
	const char *url = text_of(json_array_get(json_object_get(document->root, "servers"), 0), "url");
	const char *scheme = strstr(url, "://");
	if (scheme != NULL)
		url = strchr(scheme + 3, '/') != NULL ? strchr(scheme + 3, '/') : "";
	if (url[0] == '\0')
		url = text_of(document->root, "basePath");
	size_t length = strlen(url);
	while (length > 0 && url[length - 1] == '/')
		length--;
	/* A variable of a server is anything. */
	if (url[0] == '/' && memchr(url, '{', length) == NULL)
		buf_put(out, str_make(url, length));
}

/* ---- References -------------------------------------------------------------------------------------------------- */

/* The member or element that a segment of a pointer names. */
static const json_t *step(const json_t *value, struct str segment)
{
	struct buf name = {0};
	for (size_t i = 0; i < segment.length; i++) {
		char c = segment.at[i];
		if (c == '~' && i + 1 < segment.length)
			c = "~/"[segment.at[++i] == '1'];
		buf_put_char(&name, c);
	}
	const json_t *found = json_object_get(value, buf_c(&name));
	buf_free(&name);
	return found;
}

static const json_t *look_up(const struct openapi *document, const char *reference)
{
	const json_t *value = document->root;
	if (strncmp(reference, "#/", 2) != 0)
		return NULL;
	for (const char *at = reference + 2; value != NULL;) {
		size_t length = strcspn(at, "/");
		value = step(value, str_make(at, length));
		if (at[length] == '\0')
			return value;
		at += length + 1;
	}
	return NULL;
}

const json_t *openapi_resolve(const struct openapi *document, const json_t *value)
{
	for (int i = 0; i < DEPTH_MOST; i++) {
		const char *reference = json_string_value(json_object_get(value, "$ref"));
		if (reference == NULL)
			return value;
		value = look_up(document, reference);
	}
	return NULL;
}

/* ---- Bodies ------------------------------------------------------------------------------------------------------ */

/* OpenAPI 3: {"application/json": {"schema": ...}} */
static const json_t *json_schema(const json_t *content)
{
	const char *type;
	json_t *media;
	json_object_foreach((json_t *)content, type, media)
	{
		if (strstr(type, "json") != NULL || strcmp(type, "*/*") == 0)
			return json_object_get(media, "schema");
	}
	return NULL;
}

const json_t *openapi_answer(const struct openapi *document, const json_t *operation)
{
	static const char *const statuses[] = {"200", "201", "202", "2XX", "default"};
	const json_t *responses = json_object_get(operation, "responses");
	for (size_t i = 0; i < sizeof(statuses) / sizeof(statuses[0]); i++) {
		const json_t *response = openapi_resolve(document, json_object_get(responses, statuses[i]));
		const json_t *schema = json_object_get(response, "schema");
		if (schema == NULL)
			schema = json_schema(json_object_get(response, "content"));
		if (schema != NULL)
			return openapi_resolve(document, schema);
	}
	return NULL;
}

const json_t *openapi_body(const struct openapi *document, const json_t *operation)
{
	const json_t *body = openapi_resolve(document, json_object_get(operation, "requestBody"));
	if (body != NULL)
		return openapi_resolve(document, json_schema(json_object_get(body, "content")));
	const json_t *parameters = json_object_get(operation, "parameters");
	for (size_t i = 0; i < json_array_size(parameters); i++) {
		const json_t *parameter = openapi_resolve(document, json_array_get(parameters, i));
		if (strcmp(text_of(parameter, "in"), "body") == 0)
			return openapi_resolve(document, json_object_get(parameter, "schema"));
	}
	return NULL;
}

/* ---- Schemas ----------------------------------------------------------------------------------------------------- */

struct walk {
	const struct openapi *document;
	bool (*visit)(void *context, const char *name, const json_t *schema);
	void *context;
};

static bool walk(const struct walk *of, const json_t *schema, int depth)
{
	schema = openapi_resolve(of->document, schema);
	if (schema == NULL || depth == DEPTH_MOST)
		return true;
	const char *name;
	json_t *property;
	json_object_foreach(json_object_get(schema, "properties"), name, property)
	{
		const json_t *resolved = openapi_resolve(of->document, property);
		if (resolved != NULL && !of->visit(of->context, name, resolved))
			return false;
	}
	const json_t *parts = json_object_get(schema, "allOf");
	for (size_t i = 0; i < json_array_size(parts); i++) {
		if (!walk(of, json_array_get(parts, i), depth + 1))
			return false;
	}
	return true;
}

void openapi_properties(const struct openapi *document, const json_t *schema,
                        bool (*visit)(void *context, const char *name, const json_t *schema), void *context)
{
	walk(&(struct walk){document, visit, context}, schema, 0);
}

struct wanted {
	const char *name;
	const json_t *found;
};

static bool is_wanted(void *context, const char *name, const json_t *schema)
{
	struct wanted *wanted = context;
	if (strcmp(name, wanted->name) != 0)
		return true;
	wanted->found = schema;
	return false;
}

const json_t *openapi_property(const struct openapi *document, const json_t *schema, const char *name)
{
	struct wanted wanted = {.name = name};
	openapi_properties(document, schema, is_wanted, &wanted);
	return wanted.found;
}

const char *openapi_type(const struct openapi *document, const json_t *schema)
{
	schema = openapi_resolve(document, schema);
	const json_t *type = json_object_get(schema, "type");
	/* OpenAPI 3.1: ["array", "null"] */
	if (json_is_array(type))
		type = json_array_get(type, 0);
	if (json_is_string(type))
		return json_string_value(type);
	if (json_object_get(schema, "properties") != NULL || json_object_get(schema, "allOf") != NULL)
		return "object";
	return json_object_get(schema, "items") != NULL ? "array" : "";
}
