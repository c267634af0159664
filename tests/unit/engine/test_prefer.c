/* What is read from Prefer (RFC 7240). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_int.h"

static const struct {
	const char *value;
	bool respond_async;
	uint64_t wait_s;
} cases[] = {
	{"", false, 0},
	{"wait=10", false, 10},
	{"Wait = 10", false, 10},
	{"wait=\"10\"", false, 10},
	{"respond-async", true, 0},
	{"Respond-Async, wait=7", true, 7},
	{"wait=7,respond-async", true, 7},
	{"handling=lenient; foo=\"x\", wait=3 ; bar", false, 3},
	{"wait=3, wait=9", false, 3}, /* the first counts */
	{"wait=299", false, 299},
	{"wait=301", false, LIMIT_ENGINE_WAIT_S},
	{"wait=18446744073709551616", false, LIMIT_ENGINE_WAIT_S},
	{"wait", false, 0},
	{"wait=", false, 0},
	{"wait=0", false, 0},
	{"wait=-1", false, 0},
	{"wait=1s", false, 0},
	{"wait=\"", false, 0},
	{"waiting=5", false, 0},
	{"respond-async=", true, 0},
	{",,;,=,;=;, respond-async", true, 0},
};

static void what_is_preferred(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct preference preference = {0};
		engine_prefer_read(str_of(cases[i].value), &preference);
		assert_int_equal(preference.respond_async, cases[i].respond_async);
		assert_int_equal(preference.wait_s, cases[i].wait_s);
	}
}

/* A list may be said in several lines (RFC 9110, 5.2). */
static void all_lines_are_read(void **state)
{
	(void)state;
	struct str fields = STR("Host: a\r\nprefer: respond-async\r\nPreferred: wait=1\r\nPREFER:\twait=7 \r\n"), value;
	struct preference preference = {0};
	uint32_t lines = 0;
	for (; engine_field_next(&fields, STR("Prefer"), &value); lines++)
		engine_prefer_read(value, &preference);
	assert_int_equal(lines, 2);
	assert_true(preference.respond_async);
	assert_int_equal(preference.wait_s, 7);
	assert_int_equal(fields.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_is_preferred), cmocka_unit_test(all_lines_are_read)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
