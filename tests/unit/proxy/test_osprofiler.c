/* Traces of osprofiler. The texts and signatures were made by osprofiler 3.4.3 itself: signed_pack() of osprofiler._utils, and
 * generate_hmac() for what that would not make; what is refused here is refused by WsgiMiddleware, too, except where the test says so. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/osprofiler.h"

static const struct str key_list[] = {STR_INIT("LABKEY"), STR_INIT("second key")};
static const struct proxy_keys keys = {key_list, 2};

struct trace {
	const char *info, *hmac;
	const char *base_id; /* NULL: it is refused */
};

static void check(const struct trace *trace, const struct proxy_keys *known)
{
	struct arena arena;
	struct str base_id = STR("");
	arena_init(&arena, 0);
	bool read = proxy_profile_read(&arena, str_of(trace->info), str_of(trace->hmac), known, &base_id);
	if (read != (trace->base_id != NULL))
		fail_msg("%s: %s", trace->info, read ? "taken" : "refused");
	if (read && !str_equal(base_id, str_of(trace->base_id)))
		fail_msg("%s: `%.*s`", trace->info, STR_FMT(base_id));
	arena_free(&arena);
}

static void a_trace_that_osprofiler_made_is_read(void **state)
{
	(void)state;
	static const struct trace traces[] = {
		{"eyJiYXNlX2lkIjogIjRjN2Y4ZTJhLThhNGUtNGE3Ni04YjJhLTlmMGU2YTFkM2M1YiIsICJwYXJlbnRfaWQiOiAiMGQ4YjZjMWUtMWYyYS00Y"
	     "jNj"
	     "LTlkNGUtNWY2YTdiOGM5ZDBlIn0=",
	     "60c62d3e810691b3a6be0f4727be17031e2e6c93", "4c7f8e2a-8a4e-4a76-8b2a-9f0e6a1d3c5b"},
		/* by the second key, and without a parent */
		{"eyJiYXNlX2lkIjogIjRjN2Y4ZTJhLThhNGUtNGE3Ni04YjJhLTlmMGU2YTFkM2M1YiJ9",
	     "8065195495d9f95e1d80fe0b25bef1a029d7b3a2", "4c7f8e2a-8a4e-4a76-8b2a-9f0e6a1d3c5b"},
		{"eyJiYXNlX2lkIjogIlpcdTAwZmNyaWNoIFwiMVwiIiwgInBhcmVudF9pZCI6ICJwMCJ9",
	     "254528ed7157f3d3a8bf5964c3aba8053876b527", "Z\xc3\xbcrich \"1\""},
		{"eyJiYXNlX2lkIjogIng-PyIsICJwYXJlbnRfaWQiOiAicD8-fiJ9", "1b615c8af27fbe806716efe1a66dfdec749e54e0", "x>?"},
		{"eyJiYXNlX2lkIjogImEifQ==", "0e1321b48abb86765ecd3be21a178fc04fd13396", "a"},
		{"eyJiYXNlX2lkIjoiYSJ9IA==", "de951e9b78393b090d2b7a8a0d23c14a3b9a9456", "a"},
	};
	for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
		check(&traces[i], &keys);
}

static void any_other_is_ignored(void **state)
{
	(void)state;
	static const struct trace traces[] = {
		/* the signature: of another text, in capitals, too short, none */
		{"eyJiYXNlX2lkIjogImEifQ==", "1b615c8af27fbe806716efe1a66dfdec749e54e0", NULL},
		{"eyJiYXNlX2lkIjogImEifQ==", "0E1321B48ABB86765ECD3BE21A178FC04FD13396", NULL},
		{"eyJiYXNlX2lkIjogImEifQ==", "0e1321b48abb86765ecd3be21a178fc04fd1339", NULL},
		{"eyJiYXNlX2lkIjogImEifQ==", "", NULL},
		/* well signed: nothing, {}, not padded, cut short, no JSON, more members, no base_id, a list, a string */
		{"", "288bc84b8f688b2ed7ebfc27505834c5ec788a19", NULL},
		{"e30=", "fc96b486145bb0ef74624207905c1a02ffbc2456", NULL},
		{"eyJiYXNlX2lkIjogImEifQ", "ded293990773e6c72e95bfba1e69d8211a7f6a7f", NULL},
		{"eyJiYXNlX2lkIjoiYSI=", "fbea16aa685aa20a312dc1f85a80051f24edbc77", NULL},
		{"bm90IGpzb24=", "ac01d00b2df1febccdb2e774eacbe35c208ac9e2", NULL},
		{"eyJiYXNlX2lkIjogImEiLCAicGFyZW50X2lkIjogInAiLCAibW9yZSI6IDF9", "baafdc5eba6a030a884cd2e97f48811e65e87185",
	     NULL},
		{"eyJwYXJlbnRfaWQiOiAicCJ9", "3727ec8a39c263096861964bd0e0fc3d432698c0", NULL},
		{"WyJiYXNlX2lkIl0=", "4e3895c70dc655e4b241e1a1a6014f1dcae858a9", NULL},
		{"ImJhc2VfaWQi", "2d0b8a89197644a50298db434aa3ad1c069bc829", NULL},
		/* osprofiler takes these, and we do not: an id that is no text, or an empty one, or half a character; what is said twice; a
	     * space among the digits */
		{"eyJiYXNlX2lkIjogNSwgInBhcmVudF9pZCI6ICJwIn0=", "312dbc1d421d3c6bbb4e96a164234c24c5c17878", NULL},
		{"eyJiYXNlX2lkIjogeyJhIjogImIifX0=", "31a9beee4777ccb156ee2da49d778ceb72ec54fd", NULL},
		{"eyJiYXNlX2lkIjogIiJ9", "a688a7235b907f4f1dcb525c9b6085070d9af840", NULL},
		{"eyJiYXNlX2lkIjoiXHVkODAwIn0=", "7405abab6c8f3f5b2b5806759ba522e16c6ce960", NULL},
		{"eyJiYXNlX2lkIjoiYSIsImJhc2VfaWQiOiJiIn0=", "e3cf1ca61446791030964247f5968d0b30430c74", NULL},
		{"eyJiYXNl X2lkIjogImEifQ==", "bc5eade2b66dd78af3b7403f97ca6a17e3b59ce3", NULL},
	};
	for (size_t i = 0; i < sizeof(traces) / sizeof(traces[0]); i++)
		check(&traces[i], &keys);
	check(&(struct trace){"eyJiYXNlX2lkIjogImEifQ==", "0e1321b48abb86765ecd3be21a178fc04fd13396", NULL},
	      &(struct proxy_keys){key_list + 1, 1});
}

/* Byte for byte what osprofiler makes of the same ids. */
static void a_trace_is_made_as_osprofiler_makes_it(void **state)
{
	(void)state;
	struct buf made = {0};
	proxy_profile_put(&made, STR("4c7f8e2a-8a4e-4a76-8b2a-9f0e6a1d3c5b"), STR("0d8b6c1e-1f2a-4b3c-9d4e-5f6a7b8c9d0e"),
	                  key_list[0]);
	assert_string_equal(buf_c(&made),
	                    "X-Trace-Info: "
	                    "eyJiYXNlX2lkIjogIjRjN2Y4ZTJhLThhNGUtNGE3Ni04YjJhLTlmMGU2YTFkM2M1YiIsICJwYXJlbnRfaWQiO"
	                    "iAiMGQ4YjZjMWUtMWYyYS00YjNjLTlkNGUtNWY2YTdiOGM5ZDBlIn0=\r\n"
	                    "X-Trace-HMAC: 60c62d3e810691b3a6be0f4727be17031e2e6c93\r\n");
	buf_free(&made);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_trace_that_osprofiler_made_is_read),
		cmocka_unit_test(any_other_is_ignored),
		cmocka_unit_test(a_trace_is_made_as_osprofiler_makes_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
