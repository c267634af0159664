/* Percent-encoding: what is encoded is decoded to itself, and what is malformed is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/percent.h"

static void every_byte_survives(void **state)
{
	(void)state;
	char bytes[256];
	for (int i = 0; i < 256; i++)
		bytes[i] = (char)i;
	struct buf encoded = {0};
	struct arena arena;
	struct str decoded;
	arena_init(&arena, 0);
	percent_encode(&encoded, str_make(bytes, sizeof(bytes)));
	for (size_t i = 0; i < encoded.length; i++)
		assert_true(encoded.at[i] > 0x20 && encoded.at[i] < 0x7f && !strchr("/?#,;=\" \\&", encoded.at[i]));
	assert_true(percent_decode(&arena, buf_str(&encoded), &decoded));
	assert_true(str_equal(decoded, str_make(bytes, sizeof(bytes))));
	buf_free(&encoded);
	arena_free(&arena);
}

static void what_is_malformed_is_refused(void **state)
{
	(void)state;
	static const struct str bad[] = {STR_INIT("%"), STR_INIT("a%2"), STR_INIT("%g0"), STR_INIT("%0g"),
	                                 STR_INIT("%%41")};
	struct arena arena;
	struct str decoded;
	arena_init(&arena, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(percent_decode(&arena, bad[i], &decoded));
	assert_true(percent_decode(&arena, STR("a%2fB%2F"), &decoded));
	assert_true(str_equal(decoded, STR("a/B/")));
	assert_true(percent_decode(&arena, STR(""), &decoded));
	assert_int_equal(decoded.length, 0);
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_survives),
		cmocka_unit_test(what_is_malformed_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
