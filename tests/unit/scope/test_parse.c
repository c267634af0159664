/* Texts and the one canonical form that they have. */
#include "scope_test.h"

#include "scope/scope_int.h"

struct row {
	const char *text;
	const char *canonical;
};

static void check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct outcome outcome = outcome_parse(str_of(rows[i].text));
		if (outcome.code)
			fail_msg("%s: %s", rows[i].text, outcome.diag.message);
		assert_string_equal(buf_c(&outcome.canonical), rows[i].canonical);
		outcome_free(&outcome);
	}
}

#define CHECK_ROWS(rows) check_rows((rows), sizeof(rows) / sizeof((rows)[0]))

static void test_forms(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"Site1", "Site1"},
		{"{Site1}", "Site1"},
		{"compute: Site1, image: Site2", "compute: Site1, image: Site2"},
		{"{compute:Site1,image:Site2}", "compute: Site1, image: Site2"},
		{" {\t compute :\r\n Site1 }\n", "compute: Site1"},
		{"Site1, image: Site2", "Site1, image: Site2"},
		{"ServiceB/Site2", "ServiceB: Site2"},
		{"{ServiceA/Site1, ServiceB/Site2}", "ServiceA: Site1, ServiceB: Site2"},
		{"\"my service\"/\"my site\"", "\"my service\": \"my site\""},
		{"{\"compute\": \"Site1\", \"image\": \"Site2 & Site3\"}", "compute: Site1, image: Site2 & Site3"},
		{"{\"image\":\"around(Site1,10ms);\\\"DC 2\\\"\"}", "image: around(Site1, 10ms); \"DC 2\""},
		{"{\"im\\u0061ge\": \" \\u0053ite1 \"}", "image: Site1"},
		/* not JSON: the value is a name, not a string of strings */
		{"{\"compute\": Site1}", "compute: Site1"},
		{"{\"a b\": \"DC 1\", c: Site2}", "\"a b\": \"DC 1\", c: Site2"},
		{"\"a b\": \"DC 1\"", "\"a b\": \"DC 1\""},
	};
	CHECK_ROWS(rows);
}

static void test_precedence_and_parentheses(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"a;b|c&d%e", "a; b | c & d % e"},
		{"a%b&c|d;e", "a % b & c | d; e"},
		{"(a;b)|c", "(a; b) | c"},
		{"(a|b)&c", "(a | b) & c"},
		{"(a&b)%c", "(a & b) % c"},
		{"a;(b|c)", "a; b | c"},
		{"((a))", "a"},
		{"(a&b)&(c&d)", "a & b & c & d"},
		{"a;(b;(c;d))", "a; b; c; d"},
		{"!(a)", "!a"},
		{"!(a&b)", "!(a & b)"},
		{"!!a", "!!a"},
		{"!a%b", "!a % b"},
		{"!(a%b)", "!(a % b)"},
		{"! around( a , 1s )", "!around(a, 1s)"},
		{"strong((a&b))", "strong(a & b)"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		/* some of these have no meaning, but all have a canonical form */
		struct outcome outcome = outcome_parse(str_of(rows[i].text));
		assert_string_equal(buf_c(&outcome.canonical), rows[i].canonical);
		outcome_free(&outcome);
	}
}

static void test_names(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"\"Site1\"", "Site1"},
		{"\"all\"", "\"all\""},
		{"\"10ms\" & \"3\"", "\"10ms\" & \"3\""},
		{"3com; 10.0.0.1; 2nd-floor; 1.5", "3com; 10.0.0.1; 2nd-floor; 1.5"},
		{"a.b-c_d", "a.b-c_d"},
		{"\"Zürich\" | \"東京\"", "\"Zürich\" | \"東京\""},
		{"\"say \\\"hi\\\"\" & \"back\\\\slash\"", "\"say \\\"hi\\\"\" & \"back\\\\slash\""},
		{"\"\\u00e9\\ud83d\\ude00\\/\"", "\"é😀/\""},
		{"all: Site1, 42: Site2", "all: Site1, 42: Site2"},
		{"\"a:b\": \"c,d\"", "\"a:b\": \"c,d\""},
		{"DC 1 & DC 2", "\"DC 1\" & \"DC 2\""},
		{"around(DC 1, 5ms)", "around(\"DC 1\", 5ms)"},
		{"!DC 7", "!\"DC 7\""},
		{"Service 1: a, Service B: b", "\"Service 1\": a, \"Service B\": b"},
		{"Site1, Site2: Site3", "Site1, Site2: Site3"},
	};
	CHECK_ROWS(rows);
}

static void test_functions(void **state)
{
	(void)state;
	static const struct row rows[] = {
		{"around(Site1,10ms)", "around(Site1, 10ms)"},
		{"around(Site1,1000us)", "around(Site1, 1ms)"},
		{"around(Site1,1.5ms)", "around(Site1, 1500us)"},
		{"around(Site1,0.25s)", "around(Site1, 250ms)"},
		{"around(Site1,0us)", "around(Site1, 0ms)"},
		{"around(Site1,86400s)", "around(Site1, 86400s)"},
		{"around(Site1,007ms)", "around(Site1, 7ms)"},
		{"around(3com,7ms)", "around(3com, 7ms)"},
		{"all( )", "all()"},
		{"nearest(3)", "nearest(3)"},
		{"nearest(256)", "nearest(256)"},
		{"tagged(region=west)", "tagged(region=west)"},
		{"tagged( \"a b\" = \"c d\" , tier=1)", "tagged(\"a b\"=\"c d\", tier=1)"},
		{"tagged(all=all)", "tagged(all=all)"},
		{"fallback(all())", "fallback(all())"},
		{"either(nearest(2))", "either(nearest(2))"},
		{"strong(a & b)", "strong(a & b)"},
		{"eventual(a & b); weak(c & d)", "eventual(a & b); weak(c & d)"},
		{"strong(strong(a & b))", "strong(strong(a & b))"},
		{"with_requirements( a&b )", "with_requirements(a & b)"},
		{"c: with_requirements(((a;b))), i: a", "c: with_requirements(a; b), i: a"},
		{"{\"c\": \"with_requirements(weak(a&b))\"}", "c: with_requirements(weak(a & b))"},
		{"\"with_requirements\" & a", "\"with_requirements\" & a"},
	};
	CHECK_ROWS(rows);
}

static void test_doubtful_scopes_give_warnings(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		const char *contains;
	} rows[] = {
		{"Site1; Site1", "stands twice in one `;`"},
		{"Site1 | Site2 | Site1", "stands twice in one `|`"},
		{"Site1 & Site2 % Site3", "`%` inside `&`"},
		{"strong(Site1)", "no other copy to agree with"},
		{"with_requirements(Site1; Site2)", "brings nothing along"},
		{"with_requirements(Site1 & (Site2; Site3))", NULL},
		{"Site1 & Site2", NULL},
		{"(Site1 & Site2); (Site1 & Site3)", NULL},
		{"Site1 & around(Site1, 10ms)", NULL},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome outcome = outcome_parse(str_of(rows[i].text));
		assert_int_equal(outcome.code, 0);
		if (rows[i].contains)
			assert_non_null(strstr(buf_c(&outcome.warnings), rows[i].contains));
		else
			assert_string_equal(buf_c(&outcome.warnings), "");
		outcome_free(&outcome);
	}
}

static void test_a_bare_location_can_be_bound_to_a_service(void **state)
{
	(void)state;
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct buf text = {0};
	arena_init(&arena, 0);
	assert_int_equal(scope_parse(&arena, STR("Site1 & Site2, image: Site3"), &scope, &diag), 0);
	scope_print(&text, scope, STR("compute"));
	assert_string_equal(buf_c(&text), "compute: Site1 & Site2, image: Site3");
	assert_true(str_equal(scope_text(scope), STR("Site1 & Site2, image: Site3")));
	assert_int_equal(scope_entries_count(scope), 2);
	assert_true(str_equal(scope_entry_service(scope, 1), STR("image")));
	assert_int_equal(scope_named_count(scope), 3);
	assert_true(str_equal(scope_named_site(scope, 2), STR("Site3")));
	assert_false(scope_needs_view(scope));
	assert_int_equal(scope_parse(&arena, STR("!Site1"), &scope, &diag), 0);
	assert_true(scope_needs_view(scope));
	buf_free(&text);
	arena_free(&arena);
}

static void test_which_services_a_text_names(void **state)
{
	(void)state;
	assert_true(scope_text_names(STR("compute: Site1, image: Site2"), STR("image")));
	assert_true(scope_text_names(STR("{\"image\": \"Site2\"}"), STR("image")));
	assert_false(scope_text_names(STR("compute: image, ima: Site2"), STR("image")));
	assert_false(scope_text_names(STR("image: &"), STR("image")));
	assert_false(scope_text_names(STR(""), STR("image")));
}

static void test_places_of_nodes_are_places_in_the_text(void **state)
{
	(void)state;
	static const char *const texts[] = {"{\"a\": \"(\\u0053ite1 & Site2); around(Site1, 10ms)\"}",
	                                    "a: (\"DC 1\" & Site2); around(Site1, 10ms)"};
	struct arena arena;
	struct scope_diag diag;
	arena_init(&arena, 0);
	for (size_t i = 0; i < 2; i++) {
		struct scope *scope;
		assert_int_equal(scope_parse(&arena, str_of(texts[i]), &scope, &diag), 0);
		const struct scope_node *group = scope->entries[0].location->first, *call = group->next;
		assert_memory_equal(texts[i] + call->offset, "around(Site1, 10ms)", call->length);
		assert_memory_equal(texts[i] + scope->sites[1]->offset, "Site2", scope->sites[1]->length);
		assert_int_equal(scope->sites[0]->offset, strcspn(texts[i], "(") + 1);
	}
	arena_free(&arena);
}

static void test_tokens(void **state)
{
	(void)state;
	struct arena arena;
	struct scope_token *tokens;
	struct scope_diag diag;
	uint32_t count;
	arena_init(&arena, 0);
	assert_int_equal(scope_tokens(&arena, STR("{a: \"b\\\"\" & !c(1)}"), &tokens, &count, &diag), 0);
	static const char *const kinds[] = {"{", "word", ":", "string", "&", "!", "word", "(", "word", ")", "}"};
	assert_int_equal(count, sizeof(kinds) / sizeof(kinds[0]));
	for (uint32_t i = 0; i < count; i++)
		assert_string_equal(scope_token_name(tokens[i].kind), kinds[i]);
	assert_true(str_equal(tokens[3].text, STR("b\"")));
	assert_int_equal(tokens[3].offset, 4);
	assert_int_equal(tokens[3].length, 5);
	assert_int_equal(scope_tokens(&arena, STR("a ' b"), &tokens, &count, &diag), ERR_INVALID);
	assert_int_equal(diag.offset, 2);
	assert_int_equal(scope_tokens(&arena, STR(""), &tokens, &count, &diag), 0);
	assert_int_equal(count, 0);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_precedence_and_parentheses),
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_doubtful_scopes_give_warnings),
		cmocka_unit_test(test_a_bare_location_can_be_bound_to_a_service),
		cmocka_unit_test(test_which_services_a_text_names),
		cmocka_unit_test(test_places_of_nodes_are_places_in_the_text),
		cmocka_unit_test(test_tokens),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
