/* What a body names of what is divided, and the answer to a part made that to the whole. */
#include "cross_test.h"

static const struct str pointers[] = {STR_INIT("/size"), STR_INIT("/a/hosts")};
static const struct cross_fields fields = {pointers, 2};

static void restored(const char *whole, const char *part, const char *expected)
{
	struct buf out = {0};
	assert_int_equal(cross_restore_body(str_of(whole), str_of(part), &fields, &out, NULL), 0);
	assert_string_equal(buf_c(&out), expected);
	buf_free(&out);
}

static void the_whole_comes_back_where_both_have_it(void **state)
{
	(void)state;
	restored("{\"size\": 10}", "{\"id\":1, \"size\" : 4 ,\"a\":{\"hosts\":[1]}}",
	         "{\"id\":1, \"size\" : 10 ,\"a\":{\"hosts\":[1]}}");
	restored("{\"a\":{\"hosts\":[1, 2]},\"size\":10}", "{\"size\":4,\"a\":{\"hosts\":[2]}}",
	         "{\"size\":10,\"a\":{\"hosts\":[1, 2]}}");
	restored("{\"size\":10,\"a\":{\"hosts\":[1,2]}}", "{\"a\":{\"hosts\":[]},\"size\":0}",
	         "{\"a\":{\"hosts\":[1,2]},\"size\":10}");
	restored("{\"name\":\"x\"}", "{\"size\":4}", "{\"size\":4}");
	restored("{\"size\":null}", "{\"size\":4}", "{\"size\":4}");
	restored("{\"size\":10}", "[]", "[]");
}

static void what_is_no_answer_stays(void **state)
{
	(void)state;
	struct buf out = {0};
	assert_int_not_equal(cross_restore_body(STR("{\"size\":1}"), STR("not found"), &fields, &out, NULL), 0);
	assert_int_not_equal(cross_restore_body(STR(""), STR("{\"size\":1}"), &fields, &out, NULL), 0);
	assert_int_equal(out.length, 0);
	buf_free(&out);
}

static void has(const char *body, int code, bool expected)
{
	bool found;
	assert_int_equal(cross_has_field(str_of(body), &fields, &found, NULL), code);
	if (code == 0)
		assert_int_equal(found, expected);
}

static void what_is_named_is_found(void **state)
{
	(void)state;
	has("{\"name\":1}", 0, false);
	has("{\"size\":1}", 0, true);
	has("{\"size\":null}", 0, true);
	has("{\"a\":{\"hosts\":[]}}", 0, true);
	has("{\"a\":{\"size\":1}}", 0, false);
	has("{\"size\":1,\"size\":1}", ERR_INVALID, false);
	has("size=1", ERR_INVALID, false);
}

static void filled(const char *body, const char *whole, const char *expected)
{
	struct buf out = {0};
	assert_int_equal(cross_fill_body(str_of(body), str_of(whole), &fields, &out, NULL), 0);
	assert_string_equal(buf_c(&out), expected);
	buf_free(&out);
}

static void what_a_body_lacks_is_put_into_it(void **state)
{
	(void)state;
	filled("{}", "{\"size\":7,\"a\":{\"hosts\":[1]}}", "{\"size\":7,\"a\":{\"hosts\":[1]}}");
	filled("{\"x\":1}", "{\"size\":7}", "{\"x\":1,\"size\":7}");
	filled("{\"size\":9,\"a\":{}}", "{\"size\":7,\"a\":{\"hosts\":[]}}", "{\"size\":9,\"a\":{\"hosts\":[]}}");
	filled("{\"a\":{\"b\":1}}", "{\"size\":null,\"a\":{\"hosts\":[2]}}", "{\"a\":{\"b\":1,\"hosts\":[2]}}");
	struct buf out = {0};
	struct err err = {0};
	assert_int_equal(cross_fill_body(STR("{\"a\":3}"), STR("{\"a\":{\"hosts\":[]}}"), &fields, &out, &err),
	                 ERR_INVALID);
	assert_string_equal(err.text, "`/a/hosts` cannot be put into the body: something else is in its way");
	assert_int_equal(out.length, 0);
	buf_free(&out);
}

static void empty(const char *body, const char *expected, bool is)
{
	struct buf out = {0};
	struct str field = STR("");
	bool found = !is;
	assert_int_equal(cross_is_empty(str_of(body), &fields, &found, &field, NULL), 0);
	assert_int_equal(found, is);
	assert_int_equal(cross_empty_body(str_of(body), &fields, &out, NULL), 0);
	assert_string_equal(buf_c(&out), expected);
	assert_int_equal(cross_is_empty(buf_str(&out), &fields, &found, &field, NULL), 0);
	assert_true(found);
	buf_free(&out);
}

static void who_comes_has_nothing(void **state)
{
	(void)state;
	empty("{\"size\":7,\"name\":\"x\",\"a\":{\"hosts\":[1,[2]],\"b\":3}}",
	      "{\"size\":0,\"name\":\"x\",\"a\":{\"hosts\":[],\"b\":3}}", false);
	empty("{\"a\":{\"hosts\":[ ]},\"size\":0.00}", "{\"a\":{\"hosts\":[]},\"size\":0}", true);
	empty("{\"size\":-1}", "{\"size\":0}", false);
	empty("{\"size\":null,\"b\":7}", "{\"size\":null,\"b\":7}", true);
	empty("{\"a\":{\"hosts\":[0]}}", "{\"a\":{\"hosts\":[]}}", false);
	struct buf out = {0};
	struct str field = STR("");
	bool is;
	assert_int_equal(cross_empty_body(STR("{\"size\":1,\"size\":2}"), &fields, &out, NULL), ERR_INVALID);
	assert_int_equal(cross_is_empty(STR("[1"), &fields, &is, &field, NULL), ERR_INVALID);
	assert_int_equal(cross_is_empty(STR("{\"size\":3}"), &fields, &is, &field, NULL), 0);
	assert_true(!is && str_equal(field, STR("/size")));
	assert_int_equal(out.length, 0);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_whole_comes_back_where_both_have_it),
		cmocka_unit_test(what_is_no_answer_stays),
		cmocka_unit_test(what_is_named_is_found),
		cmocka_unit_test(what_a_body_lacks_is_put_into_it),
		cmocka_unit_test(who_comes_has_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
