/* Where a scope is looked for: ids of traces. The rest of carrier.c is tested end to end (tests/e2e/sharing). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

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
		cmocka_unit_test(a_trace_id_is_found_where_it_is_well_formed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
