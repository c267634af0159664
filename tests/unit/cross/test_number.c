/* Numbers are read and written exactly. */
#include "cross_test.h"

static void check(const char *text, int64_t units, unsigned scale, const char *written)
{
	struct cross_number number;
	struct buf out = {0};
	assert_int_equal(cross_number_parse(str_of(text), &number, NULL), 0);
	assert_int_equal(number.units, units);
	assert_int_equal(number.scale, scale);
	cross_number_put(number, &out);
	assert_string_equal(buf_c(&out), written);
	buf_free(&out);
}

static void numbers_are_read_and_written(void **state)
{
	(void)state;
	check("0", 0, 0, "0");
	check("-0", 0, 0, "0");
	check("7", 7, 0, "7");
	check("4.50", 450, 2, "4.50");
	check("-0.05", -5, 2, "-0.05");
	check("1e3", 1000, 0, "1000");
	check("1.5E+1", 15, 0, "15");
	check("25e-1", 25, 1, "2.5");
	check("0e999999999999", 0, 0, "0");
	check("9223372036854775807", INT64_MAX, 0, "9223372036854775807");
	check("-9223372036854775808", INT64_MIN, 0, "-9223372036854775808");
	check("0.000000000000000001", 1, 18, "0.000000000000000001");
}

static void what_does_not_fit_is_refused(void **state)
{
	(void)state;
	struct cross_number number;
	struct err err = {0};
	assert_int_equal(cross_number_parse(STR("9223372036854775808"), &number, &err), ERR_LIMIT);
	assert_string_equal(err.text, "9223372036854775808 does not fit into 64 bits");
	assert_int_equal(cross_number_parse(STR("1e19"), &number, NULL), ERR_LIMIT);
	assert_int_equal(cross_number_parse(STR("1e-19"), &number, NULL), ERR_LIMIT);
	assert_int_equal(cross_number_parse(STR("1e999999999999999999999"), &number, NULL), ERR_LIMIT);
	assert_int_equal(cross_number_parse(STR("0x10"), &number, &err), ERR_INVALID);
	assert_int_equal(cross_number_parse(STR("01"), &number, NULL), ERR_INVALID);
	assert_int_equal(cross_number_parse(STR(""), &number, NULL), ERR_INVALID);
}

static void sums_are_exact_or_refused(void **state)
{
	(void)state;
	struct cross_number a = {15, 1}, b = {25, 2}, most = {INT64_MAX, 0};
	assert_true(cross_number_add(&a, b));
	assert_int_equal(a.units, 175);
	assert_int_equal(a.scale, 2);
	assert_false(cross_number_add(&most, (struct cross_number){1, 0}));
	assert_false(cross_number_add(&most, (struct cross_number){1, 1}));
	assert_int_equal(most.units, INT64_MAX);
	assert_true(cross_number_compare((struct cross_number){INT64_MIN, 18}, (struct cross_number){INT64_MAX, 0}) < 0);
	assert_int_equal(cross_number_compare((struct cross_number){150, 2}, (struct cross_number){15, 1}), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_are_read_and_written),
		cmocka_unit_test(what_does_not_fit_is_refused),
		cmocka_unit_test(sums_are_exact_or_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
