/* Any bytes as a body that goes to other sites: without preconditions it means what its canonical text without them means, with a name
 * put in it is JSON that has one.
 *
 * The first byte says of which type it is, and whether it is a JSON patch; the rest is the body. */
#include "base/check.h"
#include "glue/glue_int.h"
#include "glue/places.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char description[] =
	"format: 1\n"
	"application: fuzz\n"
	"services: {a: }\n"
	"types:\n"
	"  a.a: {collection: /a, item: '/a/{n}', identity: chosen, id: /m/n, preconditions: [/m/v, /m/u, /p, '/l/*/w', "
	"/a~1b]}\n"
	"  a.b: {collection: /b, item: '/b/{n}', identity: chosen, id: /n, object: /o, preconditions: ['/*/v', /m]}\n";

static const char *const pointers[2][5] = {{"/m/v", "/m/u", "/p", "/l/*/w", "/a~1b"}, {"/o/*/v", "/o/m"}};

static struct glue *make(void)
{
	struct glue *glue;
	struct glue_options options = {.path = "fuzz"};
	CHECK(glue_read(&glue, str_of(description), &options, NULL) == 0);
	return glue;
}

static const struct glue_operation *find(const struct glue_type *type, enum glue_effect effect)
{
	for (uint32_t i = 0; i < type->operations_count; i++)
		if (type->operations[i].effect == effect)
			return &type->operations[i];
	return NULL;
}

static int canonical(struct str text, const char *const *without, struct buf *out)
{
	struct glue_places *places = glue_places_new();
	for (size_t i = 0; i < 5 && without && without[i]; i++)
		CHECK(glue_places_add(places, str_of(without[i]), GLUE_PLACE_NAME, NULL, NULL) == 0);
	int code = glue_places_without(places, text, out, NULL);
	glue_places_free(places);
	return code;
}

static void check_strip(const struct glue_operation *operation, const char *const *without, struct str body)
{
	struct buf stripped = {0}, expected = {0}, got = {0};
	bool found = glue_strip_preconditions(operation, STR("application/json"), body, &stripped);
	CHECK(found || stripped.length == 0);
	if (canonical(body, without, &expected) == 0) {
		CHECK(canonical(found ? buf_str(&stripped) : body, NULL, &got) == 0);
		CHECK(str_equal(buf_str(&expected), buf_str(&got)));
	} else {
		CHECK(!found);
	}
	buf_free(&stripped);
	buf_free(&expected);
	buf_free(&got);
}

static void check_patch(const struct glue_operation *operation, struct str body)
{
	static const struct str content = STR_INIT("application/json-patch+json");
	struct buf once = {0}, twice = {0}, text = {0};
	if (glue_strip_preconditions(operation, content, body, &once)) {
		CHECK(once.length < body.length && canonical(buf_str(&once), NULL, &text) == 0);
		CHECK(!glue_strip_preconditions(operation, content, buf_str(&once), &twice) && twice.length == 0);
	}
	buf_free(&once);
	buf_free(&twice);
	buf_free(&text);
}

static void check_insert(const struct glue_operation *operation, struct str body)
{
	struct buf named = {0}, again = {0}, text = {0};
	if (glue_insert_id(operation, body, STR("x\"y"), &named)) {
		CHECK(named.length > body.length && canonical(buf_str(&named), NULL, &text) == 0);
		CHECK(memmem(text.at, text.length, "\"n\":\"x\\\"y\"", 10));
		CHECK(!glue_insert_id(operation, buf_str(&named), STR("z"), &again));
	}
	CHECK(again.length == 0);
	buf_free(&named);
	buf_free(&again);
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct glue *glue;
	if (!glue)
		glue = make();
	if (size < 2)
		return 0;
	uint32_t which = data[0] % 2;
	const struct glue_type *type = &glue->types[which];
	struct str body = str_make((const char *)data + 1, size - 1);
	if (data[0] & 2)
		check_patch(find(type, GLUE_REPLACE), body);
	else
		check_strip(find(type, GLUE_REPLACE), pointers[which], body);
	check_insert(find(type, GLUE_CREATE), body);
	return 0;
}
