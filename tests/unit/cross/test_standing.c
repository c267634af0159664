/* Are parts of one whole? */
#include "cross_test.h"

static struct cross_standing at(uint64_t operations, uint64_t digest)
{
	return (struct cross_standing){.settled = true, .operations = operations, .digest = digest, .sites = 7};
}

static void check(const struct cross_standing *standings, uint32_t count, const enum cross_verdict *expected)
{
	enum cross_verdict verdicts[8];
	uint64_t sites = 7;
	cross_standings_compare(standings, count, &sites, verdicts);
	for (uint32_t i = 0; i < count; i++)
		assert_int_equal(verdicts[i], expected[i]);
}

static void the_same_operations_are_a_whole(void **state)
{
	(void)state;
	check((struct cross_standing[]){at(3, 9), at(3, 9), at(3, 9)}, 3,
	      (enum cross_verdict[]){CROSS_FITS, CROSS_FITS, CROSS_FITS});
	check((struct cross_standing[]){at(3, 9), at(4, 8), at(4, 8)}, 3,
	      (enum cross_verdict[]){CROSS_BEHIND, CROSS_FITS, CROSS_FITS});
	check((struct cross_standing[]){at(4, 8), {0}}, 2, (enum cross_verdict[]){CROSS_FITS, CROSS_CHANGING});
	/* As many, and others: neither has all. */
	check((struct cross_standing[]){at(4, 8), at(4, 9), at(3, 1)}, 3,
	      (enum cross_verdict[]){CROSS_BEHIND, CROSS_BEHIND, CROSS_BEHIND});
}

static void other_sites_and_what_was_refused_are_told(void **state)
{
	(void)state;
	struct cross_standing lacks = at(3, 9), other = at(3, 9);
	enum cross_verdict verdicts[2];
	lacks.lacks = true;
	other.sites = 8;
	check((struct cross_standing[]){at(3, 9), lacks}, 2, (enum cross_verdict[]){CROSS_FITS, CROSS_LACKS});
	check((struct cross_standing[]){at(3, 9), other}, 2, (enum cross_verdict[]){CROSS_FITS, CROSS_OTHER_SITES});
	cross_standings_compare((struct cross_standing[]){at(3, 9), other}, 2, NULL, verdicts);
	assert_int_equal(verdicts[1], CROSS_FITS);
	for (enum cross_verdict i = 0; i < CROSS_VERDICTS; i++) {
		assert_true((cross_verdict_reason(i) == NULL) == (i == CROSS_FITS));
		assert_non_null(cross_verdict_phrase(i));
	}
}

static void sites_in_any_order(void **state)
{
	(void)state;
	site_id a[] = {1, 2, 3}, b[] = {3, 1, 2};
	assert_true(cross_sites_digest(a, 3) == cross_sites_digest(b, 3));
	assert_true(cross_sites_digest(a, 3) != cross_sites_digest(a, 2));
}

static void as_it_travels(void **state)
{
	(void)state;
	static const struct cross_standing all[] = {
		{0},
		{.settled = true, .operations = 12, .digest = 0xabcdef, .sites = UINT64_MAX},
		{.settled = true, .operations = 0, .digest = UINT64_MAX, .lacks = true},
		{.settled = true, .operations = 5, .digest = 1, .lost = 0xff},
		{.settled = true, .operations = 5, .digest = 1, .lacks = true, .lost = UINT64_MAX},
	};
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct buf text = {0};
		cross_standing_put(&all[i], &text);
		struct cross_standing read = cross_standing_parse(buf_str(&text));
		assert_true(read.settled == all[i].settled && read.operations == all[i].operations &&
		            read.digest == all[i].digest && read.sites == all[i].sites && read.lacks == all[i].lacks &&
		            read.lost == all[i].lost);
		/* Cut anywhere it is another one, or none, and never more than it was. */
		for (size_t length = 0; length < text.length; length++)
			cross_standing_parse(str_make(text.at, length));
		buf_free(&text);
	}
	static const char *const senseless[] = {"",
	                                        "-",
	                                        "x",
	                                        "1",
	                                        "1-2",
	                                        "1-2-",
	                                        "1-2-3-more",
	                                        "1-2-3-lost=",
	                                        "1-2-3-lost=x",
	                                        "1-2-3-lackslost=1",
	                                        "1-11112222333344445-1",
	                                        "99999999999999999999-1-1"};
	for (size_t i = 0; i < sizeof(senseless) / sizeof(senseless[0]); i++)
		assert_false(cross_standing_parse(str_of(senseless[i])).settled);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_operations_are_a_whole),
		cmocka_unit_test(other_sites_and_what_was_refused_are_told),
		cmocka_unit_test(sites_in_any_order),
		cmocka_unit_test(as_it_travels),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
