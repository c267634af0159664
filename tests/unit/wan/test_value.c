#include "wan_test.h"

static void durations(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		int64_t ns;
		const char *shown;
	} cases[] = {
		{"10ms", 10000000, "10ms"}, {"0.5s", 500000000, "500ms"},    {"250us", 250000, "0.25ms"},      {"0", 0, "0ms"},
		{"0ms", 0, "0ms"},          {"60s", 60000000000, "60000ms"}, {"1.2345ms", 1234500, "1.2345ms"}};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int64_t ns = -1;
		struct buf out = {0};
		assert_int_equal(wan_read_duration(str_of(cases[i].text), &ns, NULL), 0);
		assert_int_equal(ns, cases[i].ns);
		wan_put_duration(&out, ns);
		assert_string_equal(buf_c(&out), cases[i].shown);
		assert_int_equal(wan_read_duration(buf_str(&out), &ns, NULL), 0);
		assert_int_equal(ns, cases[i].ns);
		buf_free(&out);
	}
}

static void what_is_no_value_is_refused_with_an_example(void **state)
{
	(void)state;
	static const char *const wrong[] = {"",     "10",  "ms",     "10 ms", "-1ms", "1e3ms", "10m",
	                                    "1.ms", ".5s", "1..2ms", "10%",   "61s",  "nan",   "99999999999999999999s"};
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int64_t ns = 42;
		struct err err = {0};
		assert_true(wan_read_duration(str_of(wrong[i]), &ns, &err) < 0);
		assert_int_equal(ns, 42);
		assert_true(strstr(err.text, "10ms") != NULL || strstr(err.text, "0 to 60s") != NULL);
	}
}

static void shares(void **state)
{
	(void)state;
	double share = -1;
	assert_int_equal(wan_read_share(STR("7%"), &share, NULL), 0);
	assert_true(share > 0.0699 && share < 0.0701);
	assert_int_equal(wan_read_share(STR("100%"), &share, NULL), 0);
	assert_true(share >= 1);
	assert_int_equal(wan_read_share(STR("0"), &share, NULL), 0);
	assert_true(share <= 0);
	struct err err = {0};
	assert_int_equal(wan_read_share(STR("101%"), &share, &err), ERR_LIMIT);
	assert_int_equal(wan_read_share(STR("0.07"), &share, &err), ERR_INVALID); /* 7 % or 0.07 %? */
	assert_non_null(strstr(err.text, "7%"));
	struct buf out = {0};
	wan_put_share(&out, 0.07);
	assert_string_equal(buf_c(&out), "7%");
	buf_free(&out);
}

static void rates(void **state)
{
	(void)state;
	uint64_t bps = 1;
	assert_int_equal(wan_read_rate(STR("10mbit"), &bps, NULL), 0);
	assert_int_equal(bps, 10000000);
	assert_int_equal(wan_read_rate(STR("unlimited"), &bps, NULL), 0);
	assert_int_equal(bps, 0);
	assert_int_equal(wan_read_rate(STR("0"), &bps, NULL), ERR_INVALID);
	assert_int_equal(wan_read_rate(STR("0.5kbit"), &bps, NULL), ERR_LIMIT);
	assert_int_equal(wan_read_rate(STR("10mb"), &bps, NULL), ERR_INVALID);
	struct buf out = {0};
	wan_put_rate(&out, 0);
	wan_put_rate(&out, 64000);
	assert_string_equal(buf_c(&out), "unlimited0.064mbit");
	buf_free(&out);
}

static void queues_are_time_or_bytes(void **state)
{
	(void)state;
	int64_t ns = 0;
	uint64_t bytes = 1;
	assert_int_equal(wan_read_queue(STR("100ms"), &ns, &bytes, NULL), 0);
	assert_true(ns == 100 * MS && bytes == 0);
	assert_int_equal(wan_read_queue(STR("64KiB"), &ns, &bytes, NULL), 0);
	assert_true(ns == 0 && bytes == 65536);
	struct err err = {0};
	assert_int_equal(wan_read_queue(STR("64"), &ns, &bytes, &err), ERR_INVALID);
	assert_non_null(strstr(err.text, "64KiB"));
	assert_int_equal(wan_read_queue(STR(""), &ns, &bytes, &err), ERR_INVALID);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(durations),
		cmocka_unit_test(what_is_no_value_is_refused_with_an_example),
		cmocka_unit_test(shares),
		cmocka_unit_test(rates),
		cmocka_unit_test(queues_are_time_or_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
