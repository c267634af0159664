/* Percent-encoding: what is encoded is decoded to itself, and what is malformed is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

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
	proxy_percent_encode(&encoded, str_make(bytes, sizeof(bytes)));
	for (size_t i = 0; i < encoded.length; i++)
		assert_true(encoded.at[i] > 0x20 && encoded.at[i] < 0x7f && !strchr("/?#,;=\" \\&", encoded.at[i]));
	assert_true(proxy_percent_decode(&arena, buf_str(&encoded), &decoded));
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
		assert_false(proxy_percent_decode(&arena, bad[i], &decoded));
	assert_true(proxy_percent_decode(&arena, STR("a%2fB%2F"), &decoded));
	assert_true(str_equal(decoded, STR("a/B/")));
	assert_true(proxy_percent_decode(&arena, STR(""), &decoded));
	assert_int_equal(decoded.length, 0);
	arena_free(&arena);
}

static void a_trace_id_is_found_where_it_is_well_formed(void **state)
{
	(void)state;
	struct str good = STR("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
	assert_true(str_equal(proxy_trace_id(good), STR("0af7651916cd43dd8448eb211c80319c")));
	static const struct str bad[] = {STR_INIT(""), STR_INIT("00-"),
	                                 STR_INIT("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0"),
	                                 STR_INIT("00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"),
	                                 STR_INIT("00-0af7651916cd43dd8448eb211c80319cb7ad6b7169203331--01")};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(proxy_trace_id(bad[i]).length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte_survives),
		cmocka_unit_test(what_is_malformed_is_refused),
		cmocka_unit_test(a_trace_id_is_found_where_it_is_well_formed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
