#include "base_test.h"

#include "base/timestamp.h"

#include <time.h>

static const int64_t ms_first = INT64_C(-62167219200000); /* 0000-01-01T00:00:00Z */
static const int64_t ms_last = INT64_C(253402300799999);  /* 9999-12-31T23:59:59.999Z */
static const int64_t day_ms = 86400000;

static void known_times_are_written(void **state)
{
	(void)state;
	const struct {
		int64_t ms;
		const char *text;
	} cases[] = {
		{0, "1970-01-01T00:00:00Z"},
		{1, "1970-01-01T00:00:00.001Z"},
		{-1, "1969-12-31T23:59:59.999Z"},
		{951782399999, "2000-02-28T23:59:59.999Z"},
		{951782400000, "2000-02-29T00:00:00Z"},
		{1700000000120, "2023-11-14T22:13:20.120Z"},
		{ms_first, "0000-01-01T00:00:00Z"},
		{ms_first - 1, "0000-01-01T00:00:00Z"},
		{INT64_MIN, "0000-01-01T00:00:00Z"},
		{ms_last, "9999-12-31T23:59:59.999Z"},
		{ms_last + 1, "9999-12-31T23:59:59.999Z"},
		{INT64_MAX, "9999-12-31T23:59:59.999Z"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		char text[TIMESTAMP_BYTES];
		timestamp_format(cases[i].ms, text);
		assert_string_equal(text, cases[i].text);
	}
}

/* Ten thousand years against the C library's calendar: each day of the 400 years after which it repeats, and a sample of
 * the others, at random times. */
static void all_days_are_written_and_read(void **state)
{
	(void)state;
	uint64_t seed = 13;
	const int64_t near_from = INT64_C(-5364662400000); /* 1800-01-01 */
	const int64_t near_to = INT64_C(7258118400000);    /* 2200-01-01 */
	for (int64_t day = ms_first; day <= ms_last; day += day >= near_from && day < near_to ? day_ms : 97 * day_ms) {
		int64_t ms = day + (int64_t)random_below(&seed, (size_t)day_ms);
		int64_t millisecond = ((ms % 1000) + 1000) % 1000;
		time_t seconds = (time_t)((ms - millisecond) / 1000);
		struct tm utc;
		assert_non_null(gmtime_r(&seconds, &utc));
		char wanted[80];
		int length = snprintf(wanted, sizeof(wanted), "%04d-%02d-%02dT%02d:%02d:%02d", utc.tm_year + 1900,
		                      utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec);
		if (millisecond > 0)
			length += snprintf(wanted + length, sizeof(wanted) - (size_t)length, ".%03d", (int)millisecond);
		wanted[length] = 'Z';
		wanted[length + 1] = '\0';
		char text[TIMESTAMP_BYTES];
		timestamp_format(ms, text);
		assert_string_equal(text, wanted);
		int64_t read = 0;
		assert_true(timestamp_parse(str_of(text), &read));
		assert_int_equal(read, ms);
	}
}

static void other_spellings_are_read(void **state)
{
	(void)state;
	const struct {
		const char *text;
		int64_t ms;
	} cases[] = {
		{"1970-01-01t00:00:00z", 0},
		{"1970-01-01 00:00:00Z", 0},
		{"1970-01-01T00:00:00+00:00", 0},
		{"1970-01-01T00:00:00-00:00", 0},
		{"1970-01-01T02:30:00+02:30", 0},
		{"1969-12-31T21:30:00-02:30", 0},
		{"1970-01-02T23:58:59+23:59", day_ms - 1000},
		{"1970-01-01T00:00:00.5Z", 500},
		{"1970-01-01T00:00:00.05Z", 50},
		{"1970-01-01T00:00:00.9999999999999999999999999999Z", 999},
		{"1970-01-01T23:59:60Z", day_ms}, /* a leap second */
		{"1972-02-29T00:00:00Z", (2 * 365 + 59) * day_ms},
		{"0000-01-01T00:00:00+00:01", ms_first - 60000},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t ms = -1;
		assert_true(timestamp_parse(str_of(cases[i].text), &ms));
		assert_int_equal(ms, cases[i].ms);
	}
}

static void what_is_no_time_is_refused(void **state)
{
	(void)state;
	const struct str cases[] = {
		{NULL, 0},
		STR("yesterday"),
		STR("1700000000"),
		STR("1970-00-01T00:00:00Z"),
		STR("1970-13-01T00:00:00Z"),
		STR("1970-01-00T00:00:00Z"),
		STR("1970-04-31T00:00:00Z"),
		STR("1970-02-29T00:00:00Z"),
		STR("1900-02-29T00:00:00Z"),
		STR("2000-02-30T00:00:00Z"),
		STR("1970-01-01T24:00:00Z"),
		STR("1970-01-01T00:60:00Z"),
		STR("1970-01-01T00:00:61Z"),
		STR("1970-01-01T00:00:00.Z"),
		STR("1970-01-01T00:00:00,5Z"),
		STR("1970-01-01T00:00:00+24:00"),
		STR("1970-01-01T00:00:00+00:60"),
		STR("1970-01-01T00:00:00+0000"),
		STR("1970-01-01T00:00:00 Z"),
		STR("1970-01-01T00:00:00ZZ"),
		STR("1970-01-01T00:00:00Z "),
		STR("1970-01-01T00:00:00Z\0"),
		STR("1970-01-01\0"
	        "00:00:00Z"),
		STR(" 1970-01-01T00:00:00Z"),
		STR("+970-01-01T00:00:00Z"),
		STR("-970-01-01T00:00:00Z"),
		STR("1970/01/01T00:00:00Z"),
		STR("1970-1-1T00:00:00Z"),
		STR("19700101T000000Z"),
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		int64_t ms = 77;
		if (timestamp_parse(cases[i], &ms))
			fail_msg("taken for a time: %.*s", STR_FMT(cases[i]));
		assert_int_equal(ms, 77);
	}
}

static void a_time_cut_short_is_refused(void **state)
{
	(void)state;
	static const char *const whole[] = {"2026-11-15T08:54:39Z", "2026-11-15T08:54:39+01:00"};
	for (size_t i = 0; i < COUNT(whole); i++) {
		for (size_t length = 0; length < strlen(whole[i]); length++) {
			/* In memory of its own, so that reading past the end is found. */
			char *cut = malloc(length + 1);
			assert_non_null(cut);
			memcpy(cut + 1, whole[i], length);
			int64_t ms;
			assert_false(timestamp_parse(str_make(cut + 1, length), &ms));
			free(cut);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_times_are_written),     cmocka_unit_test(all_days_are_written_and_read),
		cmocka_unit_test(other_spellings_are_read),    cmocka_unit_test(what_is_no_time_is_refused),
		cmocka_unit_test(a_time_cut_short_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
