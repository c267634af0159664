/* Bodies as they go to other sites: without preconditions, with the name that the service made; every other byte as it was. */
#include "glue_test.h"

static const char description[] =
	"format: 1\n"
	"application: carried\n"
	"services: {shop: }\n"
	"types:\n"
	"  shop.cart:\n"
	"    collection: /carts\n"
	"    item: '/carts/{name}'\n"
	"    identity: chosen\n"
	"    id: /metadata/name\n"
	"    preconditions: [/metadata/version, /metadata/uid, /must, '/lines/*/was']\n"
	"    operations:\n"
	"      file: {method: PUT, path: '{item}/file', facet: file, body: opaque}\n"
	"  shop.wrapped:\n"
	"    collection: /wrapped\n"
	"    item: '/wrapped/{id}'\n"
	"    identity: chosen\n"
	"    object: /it\n"
	"    id: /a~1b/name\n"
	"    preconditions: /version\n"
	"  shop.plain: {collection: /plain, item: '/plain/{id}', operations: {json-patch: {}}}\n";

static const struct glue_operation *operation_of(const struct glue *glue, const char *request, const char *content)
{
	struct glue_request asked = request_of("shop", request);
	struct glue_match match;
	asked.content_type = str_of(content);
	assert_true(glue_match(glue, &asked, &match));
	return match.operation;
}

static void preconditions_are_left_out(void **state)
{
	(void)state;
	static const char json[] = "application/json", patch[] = "application/json-patch+json";
	static const struct {
		const char *request, *content, *body, *stripped; /* NULL: there are none */
	} cases[] = {
		{"PUT /carts/a", json, "{}", NULL},
		{"PUT /carts/a", json, "", NULL},
		{"PUT /carts/a", json, "{\"metadata\": {\"name\": \"a\"}, \"version\": 1}", NULL},
		{"PUT /carts/a", json, " {\"metadata\": { \"version\": \"7\" } }\n", " {\"metadata\": {  } }\n"},
		{"PUT /carts/a", json, "{\"metadata\": {\"name\": \"a\" , \"version\": \"7\" }, \"n\": 1.50}",
	     "{\"metadata\": {\"name\": \"a\" }, \"n\": 1.50}"},
		{"PUT /carts/a", json, "{\"metadata\":{\"version\":\"7\" , \"name\":\"a\"}}",
	     "{\"metadata\":{ \"name\":\"a\"}}"},
		{"PUT /carts/a", json, "{\"metadata\":{\"uid\":\"u\",\"version\":\"7\",\"name\":\"a\",\"uid\":\"v\"}}",
	     "{\"metadata\":{\"name\":\"a\"}}"},
		{"PUT /carts/a", json,
	     "{\"metadata\":{\"name\":\"a\",\"version\":\"7\",\"uid\":\"u\",\"b\":[{\"version\":1}]}}",
	     "{\"metadata\":{\"name\":\"a\",\"b\":[{\"version\":1}]}}"},
		{"PUT /carts/a", json, "{\"metadata\":{\"uid\":null,\"version\":{\"x\":[1,{}]}}}", "{\"metadata\":{}}"},
		{"PUT /carts/a", json, "{\"metadata\":{\"\\u0075id\":\"u\",\"a\":\"\\ud800\"}}",
	     "{\"metadata\":{\"a\":\"\\ud800\"}}"},
		{"DELETE /carts/a", json, "{\"kind\":\"Options\",\"must\":{\"uid\":\"u\",\"version\":\"7\"}}",
	     "{\"kind\":\"Options\"}"},
		{"PUT /carts/a", json, "{\"lines\":[{\"was\":1},{\"n\":2,\"was\":3},4]}", "{\"lines\":[{},{\"n\":2},4]}"},
		{"PUT /carts/a", json, "{\"metadata\":{\"version\":7}", NULL},
		{"PUT /carts/a", json, "metadata: {version: 7}\n", NULL},
		{"PUT /carts/a/file", json, "{\"must\":1}", NULL},
		{"PATCH /carts/a", "application/merge-patch+json", "{\"metadata\":{\"version\":\"7\"},\"x\":null}",
	     "{\"metadata\":{},\"x\":null}"},
		{"PUT /wrapped/a", json, "{\"it\":{\"version\":1},\"version\":2}", "{\"it\":{},\"version\":2}"},
		/* A `test` is one wherever it points; what is no operation of a patch is none. */
		{"PATCH /plain/a", patch,
	     "[{\"op\":\"test\",\"path\":\"/a\",\"value\":{\"op\":\"x\"}}, "
	     "{\"op\":\"add\",\"path\":\"/b\",\"value\":{\"op\":\"test\"}}]",
	     "[ {\"op\":\"add\",\"path\":\"/b\",\"value\":{\"op\":\"test\"}}]"},
		{"PATCH /plain/a", patch, "[{\"path\":\"/b\",\"op\":\"remove\"},{\"path\":\"/a\",\"value\":1,\"op\":\"test\"}]",
	     "[{\"path\":\"/b\",\"op\":\"remove\"}]"},
		{"PATCH /plain/a", patch, "[{\"op\":\"test\"}]", "[]"},
		{"PATCH /plain/a", patch, "[{\"op\":\"remove\",\"path\":\"/a\"}]", NULL},
		{"PATCH /plain/a", "application/merge-patch+json", "{\"op\":\"test\"}", NULL},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = {0};
		bool found = glue_strip_preconditions(operation_of(glue, cases[i].request, cases[i].content),
		                                      str_of(cases[i].content), str_of(cases[i].body), &out);
		if (found != (cases[i].stripped != NULL) || strcmp(buf_c(&out), found ? cases[i].stripped : "") != 0)
			fail_msg("%s became %s", cases[i].body, buf_c(&out));
		buf_free(&out);
	}
	glue_free(glue);
}

static void a_name_is_put_in(void **state)
{
	(void)state;
	static const struct {
		const char *request, *body, *named; /* NULL: it has one, or none can be put in */
	} cases[] = {
		{"POST /carts", "{\"metadata\": {\"generateName\": \"n-\"}, \"n\": 1.0}",
	     "{\"metadata\": {\"name\":\"n\\\"1\",\"generateName\": \"n-\"}, \"n\": 1.0}"},
		{"POST /carts", "{ }", "{\"metadata\":{\"name\":\"n\\\"1\"} }"},
		{"POST /carts", "{\"a\":[{\"metadata\":{}}]}",
	     "{\"metadata\":{\"name\":\"n\\\"1\"},\"a\":[{\"metadata\":{}}]}"},
		{"POST /carts", "{\"metadata\":{}}", "{\"metadata\":{\"name\":\"n\\\"1\"}}"},
		{"POST /carts", "{\"metadata\":{\"a\":{\"name\":1},\"name\" : \"\"}}",
	     "{\"metadata\":{\"a\":{\"name\":1},\"name\" : \"n\\\"1\"}}"},
		{"POST /carts", "{\"metadata\":{\"name\":null}}", "{\"metadata\":{\"name\":\"n\\\"1\"}}"},
		{"POST /carts", "{\"metadata\":{\"name\":\"mine\"}}", NULL},
		{"POST /carts", "{\"metadata\":{\"name\":{}}}", NULL},
		{"POST /carts", "[]", NULL},
		{"POST /carts", "7", NULL},
		{"POST /carts", "", NULL},
		{"POST /carts", "{\"metadata\":{}", NULL},
		{"POST /wrapped", "{\"it\":{\"a\":{}}}", "{\"it\":{\"a/b\":{\"name\":\"n\\\"1\"},\"a\":{}}}"},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = {0};
		bool put = glue_insert_id(operation_of(glue, cases[i].request, "application/json"), str_of(cases[i].body),
		                          STR("n\"1"), &out);
		if (put != (cases[i].named != NULL) || strcmp(buf_c(&out), put ? cases[i].named : "") != 0)
			fail_msg("%s became %s", cases[i].body, buf_c(&out));
		buf_free(&out);
	}
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(preconditions_are_left_out),
		cmocka_unit_test(a_name_is_put_in),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
