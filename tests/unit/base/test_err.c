#include "base_test.h"

#include "base/check.h"
#include "base/err.h"

#include <wchar.h>

enum { TEXT_MOST = LIMIT_ERROR_TEXT_BYTES - 1 };

static void each_code_has_a_phrase(void **state)
{
	(void)state;
	const char *unknown = err_phrase(-1000);
	assert_non_null(unknown);
	assert_string_equal(err_phrase(1), unknown);
	assert_string_equal(err_phrase(ERR_VERSION - 1), unknown);
	for (int code = 0; code >= ERR_VERSION; code--) {
		assert_string_not_equal(err_phrase(code), unknown);
		for (int other = code + 1; other <= 0; other++)
			assert_string_not_equal(err_phrase(code), err_phrase(other));
	}
	assert_string_equal(err_phrase(ERR_INVALID), "invalid");
	assert_string_equal(err_phrase(ERR_LIMIT), "past a limit");
}

static void each_level_adds_what_it_knows(void **state)
{
	(void)state;
	struct err err = {0};
	assert_int_equal(err_set(&err, ERR_INVALID, "line %d: no site '%s'", 3, "Site9"), ERR_INVALID);
	assert_int_equal(err.code, ERR_INVALID);
	assert_string_equal(err.text, "line 3: no site 'Site9'");
	assert_int_equal(err_context(&err, ERR_INVALID, "reading %s", "views.yaml"), ERR_INVALID);
	assert_int_equal(err_context(&err, ERR_INVALID, "cheops scope"), ERR_INVALID);
	assert_string_equal(err.text, "cheops scope: reading views.yaml: line 3: no site 'Site9'");
}

static void the_innermost_code_stays(void **state)
{
	(void)state;
	struct err err = {0};
	err_set(&err, ERR_IO, "disk full");
	assert_int_equal(err_context(&err, ERR_UNAVAILABLE, "storing"), ERR_IO);
	assert_int_equal(err.code, ERR_IO);
}

static void a_silent_failure_stays_a_failure(void **state)
{
	(void)state;
	struct err err = {0};
	assert_int_equal(err_context(&err, ERR_TIMEOUT, "asking Site2"), ERR_TIMEOUT);
	assert_int_equal(err.code, ERR_TIMEOUT);
	assert_string_equal(err.text, "asking Site2: no answer in time");
}

static void nobody_needs_the_text(void **state)
{
	(void)state;
	assert_int_equal(err_set(NULL, ERR_LIMIT, "%d", 1), ERR_LIMIT);
	assert_int_equal(err_context(NULL, ERR_CORRUPT, "%d", 1), ERR_CORRUPT);
}

static void the_old_text_may_be_an_argument(void **state)
{
	(void)state;
	struct err err = {0};
	err_set(&err, ERR_IO, "first");
	err_set(&err, ERR_IO, "second, after %s", err.text);
	assert_string_equal(err.text, "second, after first");
	err_context(&err, ERR_IO, "[%s]", err.text);
	assert_string_equal(err.text, "[second, after first]: second, after first");
}

static void long_texts_are_cut_at_their_end(void **state)
{
	(void)state;
	char x[2 * LIMIT_ERROR_TEXT_BYTES];
	for (int length = TEXT_MOST - 5; length < 2 * TEXT_MOST; length++) {
		memset(x, 'x', (size_t)length);
		struct err err;
		memset(&err, 0x7f, sizeof(err));
		err_set(&err, ERR_LIMIT, "%.*s", length, x);
		size_t wanted = (size_t)(length < TEXT_MOST ? length : TEXT_MOST);
		assert_int_equal(strlen(err.text), wanted);
		assert_int_equal(strspn(err.text, "x"), wanted);
		err_context(&err, ERR_LIMIT, "here");
		assert_memory_equal(err.text, "here: x", 7);
		assert_int_equal(strlen(err.text), wanted + 6 < TEXT_MOST ? wanted + 6 : TEXT_MOST);
		err_context(&err, ERR_LIMIT, "%.*s", length, x);
		assert_int_equal(strspn(err.text, "x"), wanted);
		assert_in_range(strlen(err.text), wanted, TEXT_MOST);
	}
}

/* The euro sign takes three bytes: at each offset a cut falls before, inside or behind one. */
static void a_cut_spares_characters(void **state)
{
	(void)state;
	char euros[3 * LIMIT_ERROR_TEXT_BYTES + 1] = "";
	for (size_t i = 0; i < LIMIT_ERROR_TEXT_BYTES; i++)
		memcpy(euros + 3 * i, "\xe2\x82\xac", 4);
	for (int shift = 0; shift < 3; shift++) {
		struct err err = {0};
		err_set(&err, ERR_LIMIT, "%.*s%s", shift, "xx", euros);
		size_t whole = (size_t)(TEXT_MOST - shift) / 3;
		assert_int_equal(strlen(err.text), (size_t)shift + 3 * whole);
		assert_int_equal(utf8_length(str_of(err.text)), (size_t)shift + whole);
		err_context(&err, ERR_LIMIT, "y");
		whole = (size_t)(TEXT_MOST - 3 - shift) / 3;
		assert_int_equal(strlen(err.text), 3 + (size_t)shift + 3 * whole);
		assert_int_equal(utf8_length(str_of(err.text)), 3 + (size_t)shift + whole);
	}
}

static void what_cannot_be_formatted_is_shown_raw(void **state)
{
	(void)state;
	struct err err = {0};
	/* A character that the "C" locale cannot write. */
	err_set(&err, ERR_INVALID, "odd %lc", (wint_t)0x20ac);
	assert_string_equal(err.text, "odd %lc");
}

static void call_set_success(void *err)
{
	err_set(err, 0, "fine");
}

static void call_context_success(void *err)
{
	err_context(err, 1, "fine");
}

static void success_is_no_error(void **state)
{
	(void)state;
	struct err err = {0};
	assert_aborts(call_set_success, &err, "code < 0");
	assert_aborts(call_context_success, &err, "code < 0");
	assert_aborts(call_set_success, NULL, "code < 0");
}

static void call_check(void *number)
{
	CHECK(*(int *)number == 1 + 1);
}

static void a_failed_check_names_its_place(void **state)
{
	(void)state;
	assert_false(aborts(call_check, &(int){2}));
	assert_string_equal(abort_said, "");
	assert_aborts(call_check, &(int){3}, "*(int *)number == 1 + 1\n");
	assert_non_null(strstr(abort_said, "test_err.c:"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_code_has_a_phrase),
		cmocka_unit_test(each_level_adds_what_it_knows),
		cmocka_unit_test(the_innermost_code_stays),
		cmocka_unit_test(a_silent_failure_stays_a_failure),
		cmocka_unit_test(nobody_needs_the_text),
		cmocka_unit_test(the_old_text_may_be_an_argument),
		cmocka_unit_test(long_texts_are_cut_at_their_end),
		cmocka_unit_test(a_cut_spares_characters),
		cmocka_unit_test(what_cannot_be_formatted_is_shown_raw),
		cmocka_unit_test(success_is_no_error),
		cmocka_unit_test(a_failed_check_names_its_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
