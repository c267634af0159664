#include "base_test.h"

#include "base/buf.h"

#include <wchar.h>

/* Sizes that cannot be had are part of these tests; by default the address sanitizer ends the program at one. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}

static volatile size_t too_much = PTRDIFF_MAX / 2;

static void an_empty_buffer_reads_as_nothing(void **state)
{
	(void)state;
	struct buf buf = {0};
	assert_string_equal(buf_c(&buf), "");
	assert_non_null(buf_str(&buf).at);
	assert_int_equal(buf_str(&buf).length, 0);
	buf_clear(&buf);
	buf_put(&buf, (struct str){NULL, 0});
	buf_put_repeat(&buf, 'x', 0);
	assert_int_equal(buf.length, 0);
	buf_printf(&buf, "%s", "");
	assert_string_equal(buf_c(&buf), "");
	buf_free(&buf);
	buf_free(&buf);
}

static void pieces_follow_one_another(void **state)
{
	(void)state;
	struct buf buf = {0};
	buf_put(&buf, STR("GET"));
	buf_put_char(&buf, ' ');
	buf_printf(&buf, "/%s/%d", "sites", 42);
	buf_put_repeat(&buf, '.', 3);
	buf_put(&buf, STR("a\0b"));
	assert_str_equal(buf_str(&buf), STR("GET /sites/42...a\0b"));
	assert_int_equal(buf_c(&buf)[buf.length], '\0');
	buf_free(&buf);
	assert_null(buf.at);
	assert_int_equal(buf.length, 0);
}

static void a_cleared_buffer_keeps_its_memory(void **state)
{
	(void)state;
	struct buf buf = {0};
	buf_put_repeat(&buf, 'x', 1000);
	const char *at = buf.at;
	buf_clear(&buf);
	assert_string_equal(buf_c(&buf), "");
	buf_put_repeat(&buf, 'y', 999);
	assert_ptr_equal(buf.at, at);
	assert_int_equal(strlen(buf.at), 999);
	buf_free(&buf);
}

/* Each kind of piece ends at, just before and just behind every place where memory grows. */
static void grows_wherever_its_end_is(void **state)
{
	(void)state;
	char text[301];
	memset(text, 'p', 300);
	text[300] = '\0';
	for (size_t before = 0; before < 140; before++) {
		for (size_t more = 0; more < 140; more++) {
			struct buf bufs[3] = {{0}};
			for (size_t i = 0; i < COUNT(bufs); i++)
				buf_put_repeat(&bufs[i], 'b', before);
			buf_put(&bufs[0], str_make(text, more));
			buf_put_repeat(&bufs[1], 'p', more);
			buf_printf(&bufs[2], "%.*s", (int)more, text);
			for (size_t i = 0; i < COUNT(bufs); i++) {
				buf_put_char(&bufs[i], '!');
				assert_int_equal(bufs[i].length, before + more + 1);
				assert_int_equal(strlen(buf_c(&bufs[i])), before + more + 1);
				assert_true(bufs[i].capacity > bufs[i].length);
				assert_int_equal(strspn(bufs[i].at, "b"), before);
				assert_int_equal(strspn(bufs[i].at + before, "p"), more);
				buf_free(&bufs[i]);
			}
		}
	}
}

static void json_strings(void **state)
{
	(void)state;
	const struct {
		struct str text;
		const char *json;
	} cases[] = {
		{{NULL, 0}, "\"\""},
		{STR("Site1"), "\"Site1\""},
		{STR("a\"b\\c/d"), "\"a\\\"b\\\\c/d\""},
		{STR("\b\f\n\r\t"), "\"\\b\\f\\n\\r\\t\""},
		{STR("\0\x01\x1f \x7f"), "\"\\u0000\\u0001\\u001f \x7f\""},
		{STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
		{STR("a\xff\x62"), "\"a\xef\xbf\xbd\x62\""},
		{STR("\xc3"), "\"\xef\xbf\xbd\""},                       /* cut short */
		{STR("\xe2\x82\""), "\"\xef\xbf\xbd\xef\xbf\xbd\\\"\""}, /* a broken sequence does not hide the quote */
		{STR("\xed\xa0\x80"), "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\""},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf buf = {0};
		buf_put_json(&buf, cases[i].text);
		assert_str_equal(buf_str(&buf), str_of(cases[i].json));
		buf_free(&buf);
	}
}

static void call_past_everything(void *buf)
{
	buf_put_repeat(buf, 'x', PTRDIFF_MAX);
}

static void call_out_of_memory(void *buf)
{
	buf_put_repeat(buf, 'x', too_much);
}

static void call_format_failing(void *buf)
{
	/* A character that the "C" locale cannot write. */
	buf_printf(buf, "%lc", (wint_t)0x20ac);
}

static void impossible_sizes_abort(void **state)
{
	(void)state;
	struct buf buf = {0};
	for (int i = 0; i < 2; i++) {
		assert_aborts(call_past_everything, &buf, "more < PTRDIFF_MAX");
		assert_aborts(call_out_of_memory, &buf, "at != NULL");
		assert_aborts(call_format_failing, &buf, "length >= 0");
		buf_put_char(&buf, 'x');
	}
	assert_int_equal(buf.length, 2);
	buf_free(&buf);
}

static void test_numbers_are_decimal_and_padded(void **state)
{
	(void)state;
	static const struct {
		uint64_t number;
		unsigned digits;
		const char *text;
	} rows[] = {
		{0, 1, "0"},    {0, 3, "000"},     {7, 0, "7"},
		{42, 3, "042"}, {1234, 3, "1234"}, {UINT64_MAX, 1, "18446744073709551615"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf buf = {0};
		buf_put_number(&buf, rows[i].number, rows[i].digits);
		assert_string_equal(buf_c(&buf), rows[i].text);
		buf_free(&buf);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_buffer_reads_as_nothing),
		cmocka_unit_test(pieces_follow_one_another),
		cmocka_unit_test(a_cleared_buffer_keeps_its_memory),
		cmocka_unit_test(grows_wherever_its_end_is),
		cmocka_unit_test(json_strings),
		cmocka_unit_test(test_numbers_are_decimal_and_padded),
		cmocka_unit_test(impossible_sizes_abort),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
