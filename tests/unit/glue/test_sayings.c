/* What bodies say of the references of their items, and what they take back. */
#include "glue_test.h"

static const char description[] = "format: 1\n"
								  "application: said\n"
								  "services: {shop: }\n"
								  "types:\n"
								  "  shop.cart:\n"
								  "    collection: /carts\n"
								  "    item: '/carts/{id}'\n"
								  "    references:\n"
								  "      body:\n"
								  "        /secret: {type: shop.cart, kind: reliance}\n"
								  "        /logo: shop.cart\n"
								  "        /all/*: {type: shop.cart, kind: requirement}\n"
								  "        /env/*/from: {type: shop.cart, kind: reliance}\n"
								  "  shop.wrapped:\n"
								  "    collection: /wrapped\n"
								  "    item: '/wrapped/{id}'\n"
								  "    object: /it\n"
								  "    references: {body: {/secret: {type: shop.cart, kind: reliance}}}\n";

static void put_saying(void *context, const struct glue_saying *saying)
{
	struct buf *out = context;
	if (saying->value.length == 0)
		buf_printf(out, "-%.*s ", STR_FMT(saying->place));
	else
		buf_printf(out, "%.*s=%.*s(%s) ", STR_FMT(saying->place), STR_FMT(saying->value),
		           glue_kind_name(saying->relation));
}

static void bodies_say_what_is_where(void **state)
{
	(void)state;
	static const struct {
		const char *request, *body, *said;
	} cases[] = {
		{"PUT /carts/1", "{}", ""},
		{"PUT /carts/1", "{\"secret\": \"a\", \"else\": \"b\"}", "-/secret /secret=a(reliance) "},
		{"PATCH /carts/1", "{\"secret\": null}", "-/secret "},
		{"PATCH /carts/1", "{\"secret\": \"\"}", "-/secret "},
		{"PATCH /carts/1", "{\"secret\": {}}", ""}, /* it is no id, and what it means nobody knows */
		{"PATCH /carts/1", "{\"secret\": true}", "-/secret "},
		{"PATCH /carts/1", "{\"secret\": 12}", "-/secret /secret=12(reliance) "},
		{"PATCH /carts/1", "{\"logo\": \"l\"}", "-/logo /logo=l(none) "},
		{"PATCH /carts/1", "{\"all\": [\"a\", \"b\"]}",
	     "-/all -/all/0 /all/0=a(requirement) -/all/1 /all/1=b(requirement) "},
		{"PATCH /carts/1", "{\"all\": []}", "-/all "},
		{"PATCH /carts/1", "{\"env\": {\"A\": {\"from\": \"a\"}, \"b/~c\": {\"from\": null}}}",
	     "-/env/A/from /env/A/from=a(reliance) -/env/b~1~0c/from "},
		{"PATCH /carts/1", "{\"env\": {\"A\": null}}", "-/env/A "},
		{"PATCH /carts/1", "{\"env\": null}", "-/env "},
		{"PATCH /carts/1", "[{\"op\": \"replace\", \"path\": \"/secret\", \"value\": \"a\"}]", ""},
		{"PATCH /carts/1", "\"secret\"", ""},
		{"PATCH /wrapped/1", "{\"it\": {\"secret\": \"a\"}}", "-/secret /secret=a(reliance) "},
		{"PATCH /wrapped/1", "{\"it\": null}", "- "},
		{"PATCH /wrapped/1", "{\"secret\": \"a\"}", ""},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct glue_request asked = request_of("shop", cases[i].request);
		struct glue_match match;
		struct buf said = {0};
		assert_true(glue_match(glue, &asked, &match));
		assert_int_equal(glue_sayings(match.operation, str_of(cases[i].body), put_saying, &said, NULL), 0);
		if (strcmp(buf_c(&said), cases[i].said) != 0)
			fail_msg("%s: got \"%s\", expected \"%s\"", cases[i].body, buf_c(&said), cases[i].said);
		buf_free(&said);
	}
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(bodies_say_what_is_where)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
