/* What a person is told: errors.golden holds wrong inputs and the message that each gets, word for word.
 *
 * A block of the file is a line `> TEXT` (with C escapes for what cannot be printed), then the message as
 * scope_diag_render() has it, then an empty line. `# service` sets the service for what follows. To accept new messages
 * run the test with CHEOPS_UPDATE_GOLDEN=1, then read the difference as a user would.
 */
#include "scope_test.h"

#include "lib/golden.h"

#include <stdlib.h>

static const char golden_path[] = "tests/unit/scope/errors.golden";

struct golden {
	struct buf text;
	struct world world;
	char service[32];
};

static void unescape(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] != '\\' || i + 1 == text.length || !strchr("xn\\", text.at[i + 1])) {
			buf_put_char(out, text.at[i]);
		} else if (text.at[i + 1] == 'x') {
			char digits[3] = {text.at[i + 2], text.at[i + 3], 0};
			buf_put_char(out, (char)strtol(digits, NULL, 16));
			i += 3;
		} else {
			buf_put_char(out, text.at[++i] == 'n' ? '\n' : '\\');
		}
	}
}

/* The block as it ought to be for this input. */
static void make_block(struct golden *golden, struct buf *out, struct str input)
{
	struct buf text = {0};
	unescape(&text, input);
	struct outcome outcome = outcome_plan(&golden->world, buf_str(&text), golden->service);
	buf_printf(out, "> %.*s\n", STR_FMT(input));
	if (outcome.code == 0) {
		buf_put(out, STR("(accepted)\n"));
	} else {
		assert_true(outcome.diag.offset + outcome.diag.length <= text.length);
		buf_printf(out, "%s: ", scope_fault_name(outcome.diag.fault));
		scope_diag_render(out, buf_str(&text), &outcome.diag, false);
	}
	outcome_free(&outcome);
	buf_free(&text);
}

static bool starts_with(struct str line, const char *prefix)
{
	return line.length >= strlen(prefix) && memcmp(line.at, prefix, strlen(prefix)) == 0;
}

/* Makes the whole file anew from its inputs; counts them. */
static unsigned make_all(struct golden *golden, struct buf *out)
{
	unsigned count = 0;
	struct str rest = buf_str(&golden->text);
	while (rest.length > 0) {
		struct str line = golden_line(&rest);
		if (starts_with(line, "# ")) {
			struct buf service = {0};
			buf_put(&service, str_make(line.at + 2, line.length - 2));
			assert_true(service.length < sizeof(golden->service));
			memcpy(golden->service, service.at, service.length + 1);
			buf_free(&service);
			buf_printf(out, "%.*s\n\n", STR_FMT(line));
		} else if (starts_with(line, "> ")) {
			make_block(golden, out, str_make(line.at + 2, line.length - 2));
			buf_put_char(out, '\n');
			count++;
		}
	}
	return count;
}

static void test_messages_are_the_reviewed_ones(void **state)
{
	(void)state;
	struct golden golden = {.service = "compute"};
	struct buf made = {0};
	world_open(&golden.world);
	golden_read(golden_path, &golden.text);
	unsigned count = make_all(&golden, &made);
	assert_true(count >= 40);
	assert_null(strstr(buf_c(&made), "(accepted)"));
	golden_check(golden_path, &made);
	world_close(&golden.world);
	buf_free(&golden.text);
	buf_free(&made);
}

/* Every fault has a name of its own, and all but those that need a special input are in the file. */
static void test_every_fault_is_shown(void **state)
{
	(void)state;
	struct buf text = {0};
	golden_read(golden_path, &text);
	for (enum scope_fault fault = SCOPE_FAULT_NONE + 1; fault < SCOPE_FAULT_COUNT; fault++) {
		struct buf start = {0};
		buf_printf(&start, "\n%s: ", scope_fault_name(fault));
		bool limit = fault == SCOPE_FAULT_TOO_LONG || fault == SCOPE_FAULT_TOO_MANY_SITES ||
		             fault == SCOPE_FAULT_TOO_MANY_ENTRIES;
		if (!limit && !strstr(buf_c(&text), buf_c(&start)))
			fail_msg("no example of %s", scope_fault_name(fault));
		buf_free(&start);
	}
	buf_free(&text);
}

static void test_errors_for_programs(void **state)
{
	(void)state;
	struct outcome outcome = outcome_parse(STR("Site1 & \"x"));
	struct buf json = {0};
	scope_diag_json(&json, &outcome.diag);
	assert_string_equal(buf_c(&json), "{\"type\":\"unterminated-string\",\"message\":\"this quoted name does not end\","
	                                  "\"offset\":8,\"length\":2,\"hint\":\"close it with `\\\"`\"}");
	buf_free(&json);
	outcome_free(&outcome);
}

static void test_positions_count_characters_and_lines(void **state)
{
	(void)state;
	unsigned line, column;
	struct str text = STR("a: \"é\",\n\"ü\" b: c");
	struct outcome outcome = outcome_parse(text);
	scope_diag_position(text, &outcome.diag, &line, &column);
	assert_int_equal(line, 2);
	assert_int_equal(column, 5);
	outcome_free(&outcome);
}

/* A place far inside a long line is shown in a window, and colours surround but do not change the text. */
static void test_long_lines_are_cut_around_the_place(void **state)
{
	(void)state;
	struct buf text = {0}, plain = {0};
	for (int i = 0; i < 100; i++)
		buf_put(&text, STR("\"ééé\"; "));
	buf_put(&text, STR("Site1 Site2; "));
	for (int i = 0; i < 100; i++)
		buf_put(&text, STR("\"ééé\"; "));
	buf_put(&text, STR("x"));
	struct outcome outcome = outcome_parse(buf_str(&text));
	scope_diag_render(&plain, buf_str(&text), &outcome.diag, false);
	struct str rest = buf_str(&plain);
	golden_line(&rest);
	struct str shown = golden_line(&rest), carets = golden_line(&rest);
	assert_true(utf8_length(shown) < 180);
	assert_true(starts_with(shown, "  | …"));
	/* the carets stand below the place */
	size_t column = 0;
	while (carets.at[column] != '^')
		column++;
	uint32_t ignored;
	struct str at = shown;
	for (size_t i = 0; i < column; i++) {
		size_t length = utf8_decode(at, &ignored);
		at = str_make(at.at + length, at.length - length);
	}
	assert_true(starts_with(at, "Site2"));
	buf_clear(&plain);
	scope_diag_render(&plain, buf_str(&text), &outcome.diag, true);
	assert_non_null(strstr(buf_c(&plain), "\033[1;31man operator is missing before `Site2`\033[0m"));
	buf_free(&plain);
	buf_free(&text);
	outcome_free(&outcome);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_messages_are_the_reviewed_ones),
		cmocka_unit_test(test_every_fault_is_shown),
		cmocka_unit_test(test_errors_for_programs),
		cmocka_unit_test(test_positions_count_characters_and_lines),
		cmocka_unit_test(test_long_lines_are_cut_around_the_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
