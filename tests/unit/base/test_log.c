#include "base_test.h"

#include "base/limits.h"
#include "base/log.h"

/* A sink that keeps the last line, in memory of its own size. */
struct kept {
	int lines_count;
	enum log_level level;
	size_t length;
	char text[LIMIT_LOG_LINE_BYTES + 1];
};

static void keep(void *context, enum log_level level, struct str line)
{
	struct kept *kept = context;
	assert_in_range(line.length, 1, LIMIT_LOG_LINE_BYTES);
	kept->lines_count++;
	kept->level = level;
	kept->length = line.length;
	memcpy(kept->text, line.at, line.length);
	kept->text[line.length] = '\0';
}

static struct log log_into(struct kept *kept, enum log_level level)
{
	kept->lines_count = 0;
	return (struct log){.level = level, .sink = {.write = keep, .context = kept}};
}

static void an_event_is_one_line(void **state)
{
	(void)state;
	struct kept kept;
	struct log log = log_into(&kept, LOG_DEBUG);
	log_event(&log, LOG_WARN, "peer unreachable", LOG_STR("site", STR("Site2")), LOG_INT("attempts", 3));
	assert_string_equal(kept.text, "level=warn msg=\"peer unreachable\" site=Site2 attempts=3");
	assert_int_equal(kept.level, LOG_WARN);
	assert_int_equal(kept.lines_count, 1);
	log_event(&log, LOG_INFO, "started");
	assert_string_equal(kept.text, "level=info msg=started");
	log_event(&log, LOG_ERROR, "");
	assert_string_equal(kept.text, "level=error msg=\"\"");
}

static void what_is_less_urgent_is_dropped(void **state)
{
	(void)state;
	for (int limit = LOG_ERROR; limit <= LOG_DEBUG; limit++) {
		for (int level = LOG_ERROR; level <= LOG_DEBUG; level++) {
			struct kept kept;
			struct log log = log_into(&kept, (enum log_level)limit);
			log_event(&log, (enum log_level)level, "event");
			assert_int_equal(kept.lines_count, level <= limit);
		}
	}
}

static void values_are_quoted_when_they_have_to_be(void **state)
{
	(void)state;
	const struct {
		struct str value;
		const char *shown;
	} cases[] = {
		{STR("Site1"), "Site1"},
		{{NULL, 0}, "\"\""},
		{STR("/sites/1?x"), "/sites/1?x"},
		{STR("C:\\temp"), "C:\\temp"},
		{STR("a b"), "\"a b\""},
		{STR("a=b"), "\"a=b\""},
		{STR("say \"hi\""), "\"say \\\"hi\\\"\""},
		{STR("a \\ b"), "\"a \\\\ b\""},
		{STR("\n"), "\"\\n\""},
		{STR("a\r\n\tb"), "\"a\\r\\n\\tb\""},
		{STR("\0"), "\"\\u0000\""},
		{STR("\x1b[31m"), "\"\\u001b[31m\""},
		{STR("\x1f\x7f"), "\"\\u001f\\u007f\""},
		{STR("\xc2\x80\xc2\x9b\xc2\x9f"), "\"\\u0080\\u009b\\u009f\""}, /* U+009B starts a terminal's commands too */
		{STR("\xc2\xa0"), "\xc2\xa0"},
		{STR("\xc3\xa9t\xc3\xa9"), "\xc3\xa9t\xc3\xa9"},
		{STR("\xf0\x9f\x98\x80 !"), "\"\xf0\x9f\x98\x80 !\""},
		{STR("\xe2\x80\x8d"), "\xe2\x80\x8d"},
		{STR("\xe2\x80\x8e\xe2\x80\x8f"), "\"\\u200e\\u200f\""},
		{STR("\xe2\x80\xa7"), "\xe2\x80\xa7"},
		{STR("\xe2\x80\xa8\xe2\x80\xae"), "\"\\u2028\\u202e\""},
		{STR("\xe2\x80\xaf"), "\xe2\x80\xaf"},
		{STR("\xe2\x81\xa6\xe2\x81\xa9"), "\"\\u2066\\u2069\""},
		{STR("\xe2\x81\xa5\xe2\x81\xaa"), "\xe2\x81\xa5\xe2\x81\xaa"},
		{STR("a\xffz"), "\"a\\ufffdz\""},
		{STR("\xe2\x82"), "\"\\ufffd\\ufffd\""},
		{STR("\xe2\x82\""), "\"\\ufffd\\ufffd\\\"\""}, /* a broken sequence does not hide the quote */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct kept kept;
		struct log log = log_into(&kept, LOG_INFO);
		char wanted[128];
		log_event(&log, LOG_INFO, "m", LOG_STR("k", cases[i].value), LOG_INT("n", i));
		snprintf(wanted, sizeof(wanted), "level=info msg=m k=%s n=%zu", cases[i].shown, i);
		assert_str_equal(str_make(kept.text, kept.length), str_of(wanted));
	}
}

static void the_message_is_a_value_too(void **state)
{
	(void)state;
	struct kept kept;
	struct log log = log_into(&kept, LOG_INFO);
	log_event(&log, LOG_INFO, "two\nlines");
	assert_string_equal(kept.text, "level=info msg=\"two\\nlines\"");
}

static void numbers(void **state)
{
	(void)state;
	struct kept kept;
	struct log log = log_into(&kept, LOG_INFO);
	log_event(&log, LOG_INFO, "m", LOG_INT("a", 0), LOG_INT("b", -1), LOG_INT("c", INT64_MIN), LOG_INT("d", INT64_MAX));
	assert_string_equal(kept.text, "level=info msg=m a=0 b=-1 c=-9223372036854775808 d=9223372036854775807");
}

static size_t count_of(const char *text, char c)
{
	size_t count = 0;
	for (; *text != '\0'; text++)
		count += *text == c;
	return count;
}

/* The longest line that comes out of anything. */
static size_t most_bytes(void)
{
	static char x[2 * LIMIT_LOG_LINE_BYTES];
	memset(x, 'x', sizeof(x));
	struct kept kept;
	struct log log = log_into(&kept, LOG_INFO);
	log_event(&log, LOG_INFO, "m", LOG_STR("k", str_make(x, sizeof(x))));
	return kept.length;
}

static void a_long_line_is_cut(void **state)
{
	(void)state;
	size_t most = most_bytes();
	assert_in_range(most, LIMIT_LOG_LINE_BYTES - 64, LIMIT_LOG_LINE_BYTES);
	static const char head[] = "level=info msg=m k=";
	const struct {
		struct str unit;
		struct str shown;
		bool quoted;
	} cases[] = {
		{STR("x"), STR("x"), false},
		{STR("\xe2\x82\xac"), STR("\xe2\x82\xac"), false},
		{STR("\xf0\x9f\x98\x80"), STR("\xf0\x9f\x98\x80"), false},
		{STR("\xf0\x9f\x98\x80 "), STR("\xf0\x9f\x98\x80 "), true},
		{STR("\x01"), STR("\\u0001"), true},
		{STR("\xff"), STR("\\ufffd"), true},
		{STR("\""), STR("\\\""), true},
		{STR("\n "), STR("\\n "), true},
	};
	static char value[2 * LIMIT_LOG_LINE_BYTES];
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str unit = cases[i].unit;
		size_t head_bytes = strlen(head) + cases[i].quoted;
		/* From a value that fits with room to spare to one that is far too long. */
		size_t fitting = (most - head_bytes) / cases[i].shown.length;
		for (size_t units = fitting - 20; units * unit.length <= sizeof(value);
		     units += units < fitting + 20 ? 1 : 500) {
			for (size_t j = 0; j < units; j++)
				memcpy(value + j * unit.length, unit.at, unit.length);
			struct kept kept;
			struct log log = log_into(&kept, LOG_INFO);
			log_event(&log, LOG_INFO, "m", LOG_STR("k", str_make(value, units * unit.length)), LOG_INT("n", 1));
			assert_in_range(kept.length, 1, most);
			assert_memory_equal(kept.text, head, strlen(head));
			if (cases[i].quoted)
				assert_int_equal(kept.text[strlen(head)], '"');
			/* Whole characters and escapes only, then the closing quote. */
			const char *at = kept.text + head_bytes;
			size_t shown = 0;
			while (strncmp(at, cases[i].shown.at, cases[i].shown.length) == 0) {
				at += cases[i].shown.length;
				shown++;
			}
			size_t part = 0; /* of the last unit, where it has several characters */
			if (shown < units && cases[i].shown.at[cases[i].shown.length - 1] == ' ')
				while (*at != '"' && *at != '\0') {
					assert_int_equal(*at++, cases[i].shown.at[part++]);
				}
			assert_true(part == 0 || part == cases[i].shown.length - 1);
			if (cases[i].quoted)
				assert_int_equal(*at++, '"');
			/* A value that was cut is the last of its line, and the line is as full as it can be. */
			if (shown < units) {
				assert_string_equal(at, "");
				assert_true(kept.length + cases[i].shown.length > most);
			} else if (*at != '\0') {
				assert_string_equal(at, " n=1");
			} else {
				assert_true(kept.length + strlen(" n=1") > most);
			}
		}
	}
}

static void a_field_that_does_not_fit_ends_the_line(void **state)
{
	(void)state;
	size_t most = most_bytes();
	static char x[LIMIT_LOG_LINE_BYTES];
	memset(x, 'x', sizeof(x));
	size_t head = strlen("level=info msg=m k=");
	for (size_t room = 0; room < 40; room++) {
		struct kept kept;
		struct log log = log_into(&kept, LOG_INFO);
		struct str filling = str_make(x, most - head - room);
		log_event(&log, LOG_INFO, "m", LOG_STR("k", filling), LOG_INT("number", 1234567), LOG_INT("n", 1));
		const char *rest = kept.text + most - room;
		/* All digits or none, and what would fit behind a missing field stays away too. */
		assert_string_equal(rest, room < 15 ? "" : room < 19 ? " number=1234567" : " number=1234567 n=1");

		log_event(&log, LOG_INFO, "m", LOG_STR("k", filling), LOG_STR("text", STR("a b")), LOG_INT("n", 1));
		static const char *const quoted[] = {" text=\"\"", " text=\"a\"", " text=\"a \"", " text=\"a b\""};
		assert_string_equal(rest, room < 8    ? ""
		                          : room < 11 ? quoted[room - 8]
		                          : room < 15 ? quoted[3]
		                                      : " text=\"a b\" n=1");

		log_event(&log, LOG_INFO, "m", LOG_STR("k", filling), LOG_STR("text", STR("ab")), LOG_INT("n", 1));
		assert_string_equal(rest, room < 7 ? "" : room < 8 ? " text=a" : room < 12 ? " text=ab" : " text=ab n=1");
	}
}

/* Whatever the bytes: no control character, valid UTF-8, within the limit, quotes in pairs. */
static void random_values_make_sound_lines(void **state)
{
	(void)state;
	uint64_t seed = 9;
	for (int round = 0; round < 3000; round++) {
		static char value[6000];
		size_t length = random_below(&seed, round % 10 == 0 ? sizeof(value) : 40);
		for (size_t i = 0; i < length; i++)
			value[i] = (char)random_next(&seed);
		struct kept kept;
		struct log log = log_into(&kept, LOG_INFO);
		log_event(&log, LOG_INFO, "m", LOG_STR("k", str_make(value, length)));
		for (size_t i = 0; i < kept.length;) {
			uint32_t code_point = 0;
			size_t bytes = utf8_decode(str_make(kept.text + i, kept.length - i), &code_point);
			assert_int_not_equal(bytes, 0);
			assert_true(code_point >= 0x20 && !(code_point >= 0x7f && code_point <= 0x9f));
			i += bytes;
		}
		size_t escaped = 0;
		for (const char *at = kept.text; (at = strchr(at, '\\')) != NULL; at += 2)
			escaped += at[1] == '"';
		assert_true(count_of(kept.text, '"') - escaped == 2 || strchr(kept.text, '"') == NULL);
	}
}

static void level_names(void **state)
{
	(void)state;
	static const char *const names[] = {"error", "warn", "info", "debug"};
	for (int i = LOG_ERROR; i <= LOG_DEBUG; i++)
		assert_string_equal(log_level_name((enum log_level)i), names[i]);
}

static void call_unknown_level(void *context)
{
	(void)context;
	log_level_name((enum log_level)4);
}

static void a_level_is_one_of_four(void **state)
{
	(void)state;
	assert_aborts(call_unknown_level, NULL, "(unsigned)level < LEVELS_COUNT");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_event_is_one_line),
		cmocka_unit_test(what_is_less_urgent_is_dropped),
		cmocka_unit_test(values_are_quoted_when_they_have_to_be),
		cmocka_unit_test(the_message_is_a_value_too),
		cmocka_unit_test(numbers),
		cmocka_unit_test(a_long_line_is_cut),
		cmocka_unit_test(a_field_that_does_not_fit_ends_the_line),
		cmocka_unit_test(random_values_make_sound_lines),
		cmocka_unit_test(level_names),
		cmocka_unit_test(a_level_is_one_of_four),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
