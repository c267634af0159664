/* Parts of a resource become one body: exactly, or with a word on what is not in it. */
#include "cross_test.h"

static const struct cross_rule rules[] = {
	{STR_INIT("/size"), CROSS_TOGETHER},     {STR_INIT("/used"), CROSS_SUM},   {STR_INIT("/tags"), CROSS_UNION},
	{STR_INIT("/hosts"), CROSS_TOGETHER},    {STR_INIT("/least"), CROSS_MIN},  {STR_INIT("/most"), CROSS_MAX},
	{STR_INIT("/status/ready"), CROSS_SUM},  {STR_INIT("/log"), CROSS_CONCAT}, {STR_INIT("/owner"), CROSS_PRIME},
	{STR_INIT("/status/phase"), CROSS_PRIME}};

static struct cross_part parts[3];
static struct cross_combined combined;

/* The texts of three sites; NULL: missing. */
static void check(const char *a, const char *b, const char *c, const char *expected)
{
	static const struct str names[] = {STR_INIT("Site1"), STR_INIT("Site2"), STR_INIT("Site3")};
	const char *bodies[] = {a, b, c};
	struct buf out = {0};
	struct err err = {0};
	for (int i = 0; i < 3; i++)
		parts[i] = (struct cross_part){
			.site = names[i], .body = str_of(bodies[i] ? bodies[i] : ""), .missing = bodies[i] == NULL};
	int code = cross_combine(rules, sizeof(rules) / sizeof(rules[0]), parts, 3, &out, &combined, &err);
	assert_string_equal(code ? err.text : buf_c(&out), expected);
	assert_true(code == 0 || out.length == 0);
	buf_free(&out);
}

static void numbers_and_lists_come_together(void **state)
{
	(void)state;
	check("{ \"size\": 3, \"x\": 1.0 }", "{\"size\":2}", "{\"size\":1}", "{ \"size\": 6, \"x\": 1.0 }");
	assert_int_equal(combined.whole, 3);
	check("{\"used\":0.5}", "{\"used\":1.25}", "{\"used\":-1}", "{\"used\":0.75}");
	check("{\"hosts\":[\"a\"]}", "{\"hosts\":[]}", "{\"hosts\":[ {\"b\": 1} ,\"a\"]}",
	      "{\"hosts\":[\"a\",{\"b\": 1},\"a\"]}");
	check("{\"tags\":[{\"a\":1,\"b\":2},\"x\"]}", "{\"tags\":[{\"b\":2, \"a\":1}]}", "{\"tags\":[\"\\u0078\",1]}",
	      "{\"tags\":[{\"a\":1,\"b\":2},\"x\",1]}");
	check("{\"log\":[1]}", "{\"log\":[1]}", "{\"log\":[2]}", "{\"log\":[1,1,2]}");
	check("{\"least\":3,\"most\":\"b\"}", "{\"least\":2.50,\"most\":\"c\"}", "{\"least\":10,\"most\":\"a\"}",
	      "{\"least\":2.50,\"most\":\"c\"}");
	check("{\"owner\":\"me\",\"id\":1}", "{\"owner\":\"you\",\"id\":2}", "{\"owner\":0}",
	      "{\"owner\":\"me\",\"id\":1}");
}

static void what_the_base_lacks_is_added(void **state)
{
	(void)state;
	check("{\"id\":1}", "{\"used\":2}", "{\"used\":3}", "{\"id\":1,\"used\":5}");
	check("{}", "{\"status\":{\"ready\":2}}", "{\"used\":3,\"status\":{}}", "{\"used\":3,\"status\":{\"ready\":2}}");
	check("{\"status\":{\"phase\":\"x\"}}", "{\"status\":{\"ready\":2}}", "{}",
	      "{\"status\":{\"phase\":\"x\",\"ready\":2}}");
	check("{\"used\":null}", "{\"used\":2}", "{}", "{\"used\":2}");
	check("{\"status\":\"none\"}", "{\"status\":{\"ready\":2}}", "{}",
	      "the answer of `Site1` has no place for `/status/ready`, which other sites have");
}

static void who_is_missing_is_not_in_it(void **state)
{
	(void)state;
	check(NULL, "{\"size\":2,\"at\":2}", "{\"size\":1}", "{\"size\":3,\"at\":2}");
	assert_int_equal(combined.base, 1);
	assert_int_equal(combined.whole, 2);
	check(NULL, NULL, NULL, "no site has answered");
}

static void a_site_that_talks_nonsense_is_left_out(void **state)
{
	(void)state;
	check("{\"size\":2}", "{\"size\":", "{\"size\":1}", "{\"size\":3}");
	assert_true(parts[1].left_out);
	assert_non_null(strstr(parts[1].why.text, "the answer of `Site2`"));
	check("{\"used\":2}", "{\"used\":\"4\"}", "{\"used\":1}", "{\"used\":3}");
	assert_string_equal(parts[1].why.text, "the answer of `Site2` has no number to add up at `/used`");
	assert_int_equal(combined.whole, 2);
	check("{\"used\":[],\"x\":1}", "{\"used\":4}", "{\"used\":1}", "{\"used\":5}");
	assert_int_equal(combined.base, 1);
	check("{\"size\":1,\"hosts\":[\"a\"]}", "{\"size\":2,\"hosts\":{}}", "{\"size\":4,\"hosts\":[\"c\"]}",
	      "{\"size\":5,\"hosts\":[\"a\",\"c\"]}");
	check("{\"size\":1}", "{\"size\":1,\"size\":100}", "{\"size\":1}", "{\"size\":2}");
	check("{\"least\":1}", "{\"least\":\"1\"}", "{\"least\":0}", "{\"least\":0}");
	check("{\"used\":1}", "{\"used\":99999999999999999999}", "{}", "{\"used\":1}");
	assert_string_equal(parts[1].why.text, "the answer of `Site2` has a number of more than 64 bits at `/used`");
	check("[", "{\"used\":true}", NULL,
	      "no site's part can be used: the answer of `Site1`: no JSON: it ends at byte 1, where there should be a "
	      "value or `]`");
}

static void a_sum_that_does_not_fit_is_refused(void **state)
{
	(void)state;
	check("{\"used\":9223372036854775807}", "{\"used\":1}", "{}",
	      "the sum of `/used` over all sites does not fit into 64 bits");
}

static void rules_that_contradict_are_refused(void **state)
{
	(void)state;
	struct cross_rule inside[] = {{STR_INIT("/a"), CROSS_UNION}, {STR_INIT("/a/0"), CROSS_SUM}};
	struct cross_part part = {.site = STR_INIT("Site1"), .body = STR_INIT("{\"a\":[1]}")};
	struct buf out = {0};
	struct err err = {0};
	assert_int_equal(cross_combine(inside, 2, &part, 1, &out, &combined, &err), ERR_INVALID);
	assert_string_equal(err.text, "`/a/0` is inside of, or the same as, another field that is combined");
	buf_free(&out);
}

/* Whatever the division, what is read is what was written. */
static void what_was_divided_comes_together_again(void **state)
{
	(void)state;
	uint64_t luck = 7;
	static const struct str pointers[] = {STR_INIT("/size"), STR_INIT("/list")};
	static const struct cross_rule together[] = {{STR_INIT("/size"), CROSS_TOGETHER},
	                                             {STR_INIT("/list"), CROSS_TOGETHER}};
	struct cross_fields fields = {pointers, 2};
	for (int i = 0; i < 500; i++) {
		uint64_t weights[5] = {1 + next_random(&luck) % 3, next_random(&luck) % 9, next_random(&luck) % 2, 7, 1};
		struct cross_division division = division_of(weights, 5);
		struct buf body = {0}, texts[5] = {{0}}, whole = {0};
		struct cross_part five[5];
		uint32_t count = (uint32_t)(next_random(&luck) % 20);
		int64_t size = (int64_t)(next_random(&luck) % 10000) - 5000;
		buf_printf(&body, "{\"n\":1, \"size\":%lld.%03d,\"list\":[", (long long)size, i % 1000);
		for (uint32_t k = 0; k < count; k++)
			buf_printf(&body, "%s%u", k ? "," : "", k);
		buf_printf(&body, "]}");
		for (uint32_t k = 0; k < 5; k++) {
			assert_int_equal(cross_divide_body(buf_str(&body), &fields, &division, 101 + k, &texts[k], NULL), 0);
			five[k] = (struct cross_part){.site = STR_INIT("x"), .body = buf_str(&texts[k])};
		}
		assert_int_equal(cross_combine(together, 2, five, 5, &whole, &combined, NULL), 0);
		struct cross_place was[2], is[2];
		struct cross_list list;
		assert_int_equal(cross_find(buf_str(&body), &fields, was, NULL), 0);
		assert_int_equal(cross_find(buf_str(&whole), &fields, is, NULL), 0);
		assert_true(
			str_equal(str_make(body.at + was[0].at, was[0].length), str_make(whole.at + is[0].at, is[0].length)));
		assert_int_equal(cross_list_read(str_make(whole.at + is[1].at, is[1].length), &list, NULL), 0);
		assert_int_equal(list.count, count);
		cross_list_free(&list);
		for (uint32_t k = 0; k < 5; k++)
			buf_free(&texts[k]);
		buf_free(&body);
		buf_free(&whole);
	}
}

static void names_of_functions(void **state)
{
	(void)state;
	enum cross_function function;
	assert_true(cross_function_parse(STR("union"), &function));
	assert_int_equal(function, CROSS_UNION);
	assert_string_equal(cross_function_name(CROSS_MAX), "max");
	assert_false(cross_function_parse(STR(""), &function));
	assert_false(cross_function_parse(STR("average"), &function));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_and_lists_come_together),
		cmocka_unit_test(what_the_base_lacks_is_added),
		cmocka_unit_test(who_is_missing_is_not_in_it),
		cmocka_unit_test(a_site_that_talks_nonsense_is_left_out),
		cmocka_unit_test(a_sum_that_does_not_fit_is_refused),
		cmocka_unit_test(rules_that_contradict_are_refused),
		cmocka_unit_test(what_was_divided_comes_together_again),
		cmocka_unit_test(names_of_functions),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
