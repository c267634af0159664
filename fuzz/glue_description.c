/* Any bytes as a description of an application: they are refused, with findings that have a place in the text, or make a
 * description whose every path leads to where it was written. */
#include "base/check.h"
#include "base/text.h"
#include "glue/glue_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct seen {
	uint32_t errors;
	uint32_t count;
	uint32_t line;
};

static void found(void *context, const struct glue_finding *finding)
{
	struct seen *seen = context;
	CHECK(finding->message.length > 0 && finding->line >= 1 && finding->column >= 1);
	CHECK(finding->line >= seen->line && ++seen->count <= LIMIT_GLUE_FINDINGS);
	seen->line = finding->line;
	seen->errors += finding->severity == GLUE_ERROR;
}

/* A path that the template fits. */
static void put_path(struct buf *out, const struct glue_template *template)
{
	for (uint32_t i = 0; i < template->segments_count; i++) {
		buf_put_char(out, '/');
		buf_put(out, template->segments[i].at != NULL ? template->segments[i] : STR("v%20"));
	}
	if (template->takes_rest)
		buf_put(out, STR("/more"));
}

static void check_match(const struct glue_request *request, const struct glue_match *match)
{
	struct buf text = {0};
	const char *end = request->path.at + request->path.length;
	CHECK(match->operation != NULL || match->needs_body);
	CHECK(match->collection.length == 0 || match->collection.at == request->path.at);
	CHECK(match->collection.length <= request->path.length);
	for (uint32_t i = 0; i < match->values_count; i++) {
		struct str value = match->values[i].text;
		CHECK(value.length > 0 && value.at > request->path.at && value.at + value.length <= end);
	}
	glue_type_put(match, &text);
	glue_collection_put(match, &text);
	CHECK(text.length > 1 && memchr(text.at, '\0', text.length) == NULL);
	buf_free(&text);
}

static void check_path(const struct glue *glue, const struct glue_operation *operation,
                       const struct glue_template *template)
{
	static const struct str methods[] = {STR_INIT("GET"),   STR_INIT("HEAD"),   STR_INIT("POST"),   STR_INIT("PUT"),
	                                     STR_INIT("PATCH"), STR_INIT("DELETE"), STR_INIT("OPTIONS")};
	struct buf path = {0};
	struct glue_match match;
	struct glue_value values[LIMIT_GLUE_VARIABLES];
	uint32_t values_count;
	const struct glue_type *type = operation->type;
	put_path(&path, template);
	struct glue_request request = {.service = type->service_name, .path = buf_str(&path), .query = STR("")};
	CHECK(glue_find_template(glue, request.service, request.path, values, &values_count, &type) != NULL);
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		bool plain = operation->contents.count == 0 && operation->conditions_count == 0;
		request.method = methods[i];
		bool known = glue_match(glue, &request, &match);
		CHECK(known || !plain || (operation->methods >> i & 1) == 0);
		if (known)
			check_match(&request, &match);
		if (known && match.needs_body)
			glue_match_body(glue, STR("{\"a\": 1}"), &match, NULL);
	}
	buf_free(&path);
}

static void check_type(const struct glue *glue, const struct glue_type *type)
{
	CHECK(text_is_printable(type->name) && type->operations_count <= LIMIT_GLUE_OPERATIONS);
	CHECK(type->facets_count >= 1 && type->facets_count <= LIMIT_GLUE_FACETS);
	for (uint32_t i = 0; i < type->operations_count; i++) {
		const struct glue_operation *operation = &type->operations[i];
		CHECK(operation->type == type && operation->effect < GLUE_EFFECTS);
		CHECK(str_equal(type->facets[operation->facet_number], operation->facet));
		for (uint32_t j = 0; j < type->operations_count; j++)
			CHECK(glue_resolve(type, operation, &type->operations[j]) < GLUE_RESOLUTIONS);
		for (uint32_t j = 0; j < operation->templates_count; j++)
			check_path(glue, operation, &operation->templates[j]);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = size ? str_make((const char *)data, size) : STR("");
	struct seen seen = {0};
	struct glue_options options = {.path = "fuzz.yaml", .hash_key = {1, 2}, .finding = found, .context = &seen};
	struct glue *glue = NULL;
	struct err err = {0};
	int code = glue_read(&glue, text, &options, &err);
	CHECK((code == 0) == (glue != NULL) && err.code == code && (code == 0) == (err.text[0] == '\0'));
	CHECK((code != 0) == (seen.errors > 0) || code == ERR_LIMIT);
	if (glue != NULL) {
		CHECK(glue_application(glue).length > 0);
		for (uint32_t i = 0; i < glue_types_count(glue); i++)
			check_type(glue, glue_type_at(glue, i));
	}
	glue_free(glue);
	return 0;
}
