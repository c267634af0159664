#include "base_test.h"

#include "base/text.h"

static void long_names_are_cut_between_characters(void **state)
{
	(void)state;
	struct buf text = {0}, name = {0};
	for (int i = 0; i < LIMIT_NAME_SHOWN_BYTES; i++)
		buf_put(&name, STR("é"));
	buf_printf(&text, TEXT_NAME_FMT, TEXT_NAME(STR("Site1")));
	assert_string_equal(buf_c(&text), "`Site1`");
	assert_int_equal(text_shown(buf_str(&name)).length, LIMIT_NAME_SHOWN_BYTES);
	assert_string_equal(text_ellipsis(buf_str(&name)), "…");
	struct str odd = str_make(buf_c(&name) + 1, name.length - 1); /* begins inside a character */
	assert_true(text_shown(odd).length <= LIMIT_NAME_SHOWN_BYTES);
	buf_free(&text);
	buf_free(&name);
}

static void of_long_paths_the_end_is_shown(void **state)
{
	(void)state;
	struct buf path = {0}, text = {0};
	buf_printf(&text, TEXT_PATH_FMT, TEXT_PATH("/etc/cheops/agent.yaml"));
	assert_string_equal(buf_c(&text), "/etc/cheops/agent.yaml");
	buf_clear(&text);
	for (int i = 0; i < 100; i++)
		buf_put(&path, STR("/é"));
	buf_printf(&text, TEXT_PATH_FMT, TEXT_PATH(buf_c(&path)));
	assert_memory_equal(text.at, "…/é", strlen("…/é"));
	assert_true(text.length <= LIMIT_PATH_SHOWN_BYTES + strlen("…"));
	assert_true(text_is_printable(buf_str(&text)));
	buf_free(&path);
	buf_free(&text);
}

static void what_disturbs_a_terminal_is_not_printable(void **state)
{
	(void)state;
	static const char *const bad[] = {"\x1b[31m", "a\nb",         "a\tb",         "\x7f",         "\xc2\x9b",    "\xff",
	                                  "\xc3",     "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x80\xa8", "\xed\xa0\x80"};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct buf out = {0};
		assert_false(text_is_printable(str_of(bad[i])));
		text_put_harmless(&out, str_of(bad[i]));
		assert_true(text_is_printable(buf_str(&out)));
		assert_non_null(strstr(buf_c(&out), "\xef\xbf\xbd"));
		buf_free(&out);
	}
	assert_true(text_is_printable(STR("")));
	assert_true(text_is_printable(STR("état 🏔 DC 1")));
	assert_false(text_is_printable(STR("a\0b")));
}

static void the_closest_is_suggested(void **state)
{
	(void)state;
	struct suggest suggest;
	char out[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, STR("servces"));
	suggest_offer(&suggest, STR("sites"));
	suggest_offer(&suggest, STR("services"));
	assert_string_equal(text_did_you_mean(&suggest, out), "; did you mean `services`?");
	suggest_start(&suggest, STR("zork"));
	suggest_offer(&suggest, STR("services"));
	assert_string_equal(text_did_you_mean(&suggest, out), "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(long_names_are_cut_between_characters),
		cmocka_unit_test(of_long_paths_the_end_is_shown),
		cmocka_unit_test(what_disturbs_a_terminal_is_not_printable),
		cmocka_unit_test(the_closest_is_suggested),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
