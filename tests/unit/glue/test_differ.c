/* Where two states differ, by JSON pointer; and an item's text, to make another one like it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/glue_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static const struct glue_type plain = {.name = STR_INIT("t.plain")};

static void put(void *context, const struct glue_difference *difference)
{
	struct buf *out = context;
	buf_printf(out, "%.*s %.*s %.*s|", STR_FMT(difference->pointer), STR_FMT(difference->a), STR_FMT(difference->b));
}

static void differences_of(const char *x, const char *y, uint32_t most, struct buf *out, bool *more)
{
	struct buf a = {0}, b = {0};
	assert_int_equal(glue_comparable(&plain, str_of(x), &a, NULL), 0);
	assert_int_equal(glue_comparable(&plain, str_of(y), &b, NULL), 0);
	glue_differences(buf_str(&a), buf_str(&b), most, more, put, out);
	buf_free(&a);
	buf_free(&b);
}

static void where_they_differ(void **state)
{
	(void)state;
	static const struct {
		const char *a, *b, *differences;
	} cases[] = {
		{"{}", "{}", ""},
		{"{\"a\":1,\"b\":2}", "{\"b\": 2, \"a\": 1}", ""},
		{"{\"a\":1}", "{\"a\":2}", "/a 1 2|"},
		{"{\"a\":1}", "{}", "/a 1 |"},
		{"{}", "{\"a\":\"x\"}", "/a  \"x\"|"},
		{"{\"b\":1,\"d\":1}", "{\"a\":1,\"b\":1,\"c\":1}", "/a  1|/c  1|/d 1 |"},
		{"{\"a\":{\"b\":[1,{\"c\":2}]}}", "{\"a\":{\"b\":[1,{\"c\":3}]}}", "/a/b/1/c 2 3|"},
		{"[1,2,3]", "[1,4]", "/1 2 4|/2 3 |"},
		{"[]", "[[]]", "/0  []|"},
		{"{\"a\":[]}", "{\"a\":{}}", "/a [] {}|"},
		{"1", "\"1\"", " 1 \"1\"|"},
		/* names as a pointer has them */
		{"{\"a/b\":1,\"c~d\":1,\"\":1}", "{}", "/ 1 |/a~1b 1 |/c~0d 1 |"},
		{"{\"q\\\"}\":1,\"x\":\"]\\\\\"}", "{\"q\\\"}\":2,\"x\":\"]\\\\\"}", "/q\"} 1 2|"},
		/* numbers are what they are written as */
		{"{\"n\":10000000000000000000001}", "{\"n\":10000000000000000000002}",
	     "/n 10000000000000000000001 10000000000000000000002|"},
		{"{\"n\":1}", "{\"n\":1.0}", "/n 1 1.0|"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = {0};
		bool more;
		differences_of(cases[i].a, cases[i].b, 10, &out, &more);
		assert_string_equal(buf_c(&out), cases[i].differences);
		assert_false(more);
		buf_free(&out);
	}
}

static void no_more_than_asked_for(void **state)
{
	(void)state;
	struct buf out = {0};
	bool more;
	differences_of("{\"a\":1,\"b\":1,\"c\":1}", "{}", 2, &out, &more);
	assert_string_equal(buf_c(&out), "/a 1 |/b 1 |");
	assert_true(more);
	buf_free(&out);
}

static void to_make_it_anew(void **state)
{
	(void)state;
	static struct str ids[] = {STR_INIT("/id")}, volatiles[] = {STR_INIT("/created")}, derived[] = {STR_INIT("/sum")};
	struct glue_type type = {.name = STR_INIT("t.t"),
	                         .object = STR_INIT("/server"),
	                         .ids = {ids, COUNT(ids)},
	                         .volatiles = {volatiles, COUNT(volatiles)},
	                         .derived = {derived, COUNT(derived)}};
	struct buf out = {0};
	struct str body =
		STR("{\"server\": {\"id\": 7, \"name\": \"x\", \"created\": 1, \"sum\": 2, \"in\": {\"id\": 8}}}");
	assert_int_equal(glue_anew(&type, body, false, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"server\":{\"in\":{\"id\":8},\"name\":\"x\"}}");
	buf_clear(&out);
	type.identity = GLUE_SUGGESTED;
	assert_int_equal(glue_anew(&type, body, false, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"server\":{\"in\":{\"id\":8},\"name\":\"x\"}}");
	buf_clear(&out);
	assert_int_equal(glue_anew(&type, body, true, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"server\":{\"id\":7,\"in\":{\"id\":8},\"name\":\"x\"}}");
	buf_clear(&out);
	assert_int_equal(glue_comparable(&type, body, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"server\":{\"id\":7,\"in\":{\"id\":8},\"name\":\"x\",\"sum\":2}}");
	buf_clear(&out);
	type.identity = GLUE_CHOSEN;
	assert_int_equal(glue_anew(&type, body, false, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"server\":{\"id\":7,\"in\":{\"id\":8},\"name\":\"x\"}}");
	buf_clear(&out);
	assert_int_equal(glue_anew(&type, STR("no JSON"), false, &out, NULL), ERR_INVALID);
	assert_int_equal(out.length, 0);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(where_they_differ),
		cmocka_unit_test(no_more_than_asked_for),
		cmocka_unit_test(to_make_it_anew),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
