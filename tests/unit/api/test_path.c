/* Paths of the API. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/api_int.h"

static void which_route(void **state)
{
	(void)state;
	static const struct {
		const char *pattern;
		const char *target;
		bool matches;
	} cases[] = {
		{"/a/b", "/a/b", true},        {"/a/b", "/a/b?x=/c", true},
		{"/a/b", "/a/b/", false},      {"/a/b", "/a", false},
		{"/a/b", "/a/b/c", false},     {"/a/b", "/a/bc", false},
		{"/a/b", "a/b", false},        {"/a/b", "", false},
		{"/a/b", "/", false},          {"/a/b", "*", false},
		{"/a/{id}", "/a/x", true},     {"/a/{id}", "/a/x?y", true},
		{"/a/{id}", "/a/", false},     {"/a/{id}", "/a", false},
		{"/a/{id}", "/a/x/y", false},  {"/a/{id}/b", "/a/x/b", true},
		{"/a/{id}/b", "/a//b", false}, {"/a/{id}/b", "/a/x/c", false},
		{"/a/{id}/b", "/a/x", false},  {"/a/{id}/b", "/a/{id}/b", true},
		{"/a/{id}", "/a/?x", false},   {"/a/{hash}", "/a/x", true},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_int_equal(api_path_matches(str_of(cases[i].pattern), str_of(cases[i].target)), cases[i].matches);
	}
}

static void which_segment(void **state)
{
	(void)state;
	static const char *const segments[] = {"cheops", "v1", "operations", "x.y.1", "retry", ""};
	for (uint32_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++)
		assert_true(str_equal(api_segment(STR("/cheops/v1/operations/x.y.1/retry?a=/b"), i), str_of(segments[i])));
	assert_int_equal(api_segment(STR("cheops"), 0).length, 0);
	assert_int_equal(api_segment(STR(""), 3).length, 0);
}

static void which_number(void **state)
{
	(void)state;
	static const struct {
		const char *text;
		uint64_t most;
		bool good;
		uint64_t number;
	} cases[] = {
		{"0", 200, true, 0},    {"200", 200, true, 200},
		{"201", 200, false, 0}, {"0199", 200, true, 199},
		{"", 200, false, 0},    {"-1", 200, false, 0},
		{"1 ", 200, false, 0},  {"99999999999999999999999", UINT64_MAX / 10 - 1, false, 0},
	};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		uint64_t number = 0;
		assert_int_equal(api_number(str_of(cases[i].text), cases[i].most, &number), cases[i].good);
		if (cases[i].good)
			assert_int_equal(number, cases[i].number);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(which_route), cmocka_unit_test(which_segment),
	                                   cmocka_unit_test(which_number)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
