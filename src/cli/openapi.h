/* OpenAPI 3 and Swagger 2 documents, as JSON: what `cheops app import` asks of them. */
#ifndef CLI_OPENAPI_H
#define CLI_OPENAPI_H

#include "base/buf.h"
#include "base/str.h"

#include <jansson.h>

struct openapi {
	const json_t *root;
	const json_t *paths;
};

/* False: it is no such document; *why says what is missing. */
bool openapi_open(struct openapi *document, const json_t *root, const char **why);

/* The path of its first server or its `basePath`, without a `/` at the end; "": none. */
void openapi_base(const struct openapi *document, struct buf *out);

/* What a `$ref` within the document points to, as often as needed; NULL: nowhere. */
const json_t *openapi_resolve(const struct openapi *document, const json_t *value);

/* Of an operation: the schema of its answer when all went well, of its body; NULL: none that is JSON. */
const json_t *openapi_answer(const struct openapi *document, const json_t *operation);
const json_t *openapi_body(const struct openapi *document, const json_t *operation);

/* A property of a schema, also of those that it is made of (allOf); NULL: it has none of that name. */
const json_t *openapi_property(const struct openapi *document, const json_t *schema, const char *name);

/* Calls visit() with each property, until it returns false. */
void openapi_properties(const struct openapi *document, const json_t *schema,
                        bool (*visit)(void *context, const char *name, const json_t *schema), void *context);

/* "array", "object", "string"...; "": not said. */
const char *openapi_type(const struct openapi *document, const json_t *schema);

#endif
