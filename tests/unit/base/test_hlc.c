#include "base_test.h"

#include "base/hlc.h"

static uint64_t stamp_of(uint64_t ms, uint64_t counter)
{
	return ms << 16 | counter;
}

static const uint64_t ms_last = ((uint64_t)1 << 48) - 2;

static void a_stamp_is_time_and_counter(void **state)
{
	(void)state;
	struct hlc clock = {0};
	uint64_t stamp = hlc_tick(&clock, 1700000000123);
	assert_int_equal(hlc_ms(stamp), 1700000000123);
	assert_int_equal(hlc_counter(stamp), 0);
	stamp = hlc_tick(&clock, 1700000000123);
	assert_int_equal(hlc_ms(stamp), 1700000000123);
	assert_int_equal(hlc_counter(stamp), 1);
	stamp = hlc_tick(&clock, 1700000000124);
	assert_int_equal(hlc_ms(stamp), 1700000000124);
	assert_int_equal(hlc_counter(stamp), 0);
}

static void ticks(void **state)
{
	(void)state;
	const struct {
		uint64_t last, now_ms, wanted;
	} cases[] = {
		{0, 0, 1}, /* zero is no stamp */
		{0, 5, stamp_of(5, 0)},
		{stamp_of(5, 0), 5, stamp_of(5, 1)},
		{stamp_of(5, 9), 4, stamp_of(5, 10)}, /* the wall clock stepped back */
		{stamp_of(5, 9), 0, stamp_of(5, 10)},
		{stamp_of(5, 9), 6, stamp_of(6, 0)},
		{stamp_of(5, 0xffff), 5, stamp_of(6, 0)}, /* borrowed */
		{stamp_of(6, 0), 6, stamp_of(6, 1)},      /* and time caught up */
		{stamp_of(6, 3), 5, stamp_of(6, 4)},
		{stamp_of(5, 1), ms_last, stamp_of(ms_last, 0)},
		{stamp_of(ms_last, 0xffff), ms_last, stamp_of(ms_last + 1, 0)},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct hlc clock = {.last = cases[i].last};
		assert_int_equal(hlc_tick(&clock, cases[i].now_ms), cases[i].wanted);
		assert_int_equal(clock.last, cases[i].wanted);
	}
}

static void observations(void **state)
{
	(void)state;
	const struct {
		uint64_t last, stamp, now_ms, max_ahead_ms;
		bool accepted;
		uint64_t wanted;
	} cases[] = {
		{stamp_of(10, 0), stamp_of(12, 7), 12, 100, true, stamp_of(12, 7)},
		{stamp_of(10, 0), stamp_of(9, 7), 12, 100, true, stamp_of(10, 0)}, /* from the past: nothing to learn */
		{stamp_of(10, 0), stamp_of(10, 0), 10, 0, true, stamp_of(10, 0)},
		{stamp_of(10, 0), stamp_of(110, 0xffff), 10, 100, true, stamp_of(110, 0xffff)}, /* just as far as allowed */
		{stamp_of(10, 0), stamp_of(111, 0), 10, 100, false, stamp_of(10, 0)},
		{stamp_of(10, 0), stamp_of(11, 0), 10, 0, false, stamp_of(10, 0)},
		{stamp_of(500, 0), stamp_of(111, 0), 10, 100, false, stamp_of(500, 0)}, /* refused though behind ours */
		{stamp_of(10, 0), stamp_of(1000, 0), 10, UINT64_MAX, true, stamp_of(1000, 0)},
		{stamp_of(10, 0), stamp_of(ms_last, 3), 10, UINT64_MAX, true, stamp_of(ms_last, 3)},
		{stamp_of(10, 0), stamp_of(ms_last + 1, 0), 10, UINT64_MAX, false, stamp_of(10, 0)}, /* nothing could follow */
		{stamp_of(10, 0), UINT64_MAX, ms_last, UINT64_MAX, false, stamp_of(10, 0)},
		{stamp_of(10, 0), stamp_of(20, 0), ms_last, UINT64_MAX, true, stamp_of(20, 0)},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct hlc clock = {.last = cases[i].last};
		bool accepted = hlc_observe(&clock, cases[i].stamp, cases[i].now_ms, cases[i].max_ahead_ms);
		assert_int_equal(accepted, cases[i].accepted);
		assert_int_equal(clock.last, cases[i].wanted);
	}
}

static void a_burst_borrows_the_next_millisecond(void **state)
{
	(void)state;
	struct hlc clock = {0};
	uint64_t before = hlc_tick(&clock, 1000);
	for (int i = 1; i < 200000; i++) {
		uint64_t stamp = hlc_tick(&clock, 1000);
		assert_int_equal(stamp, before + 1);
		before = stamp;
	}
	assert_int_equal(hlc_ms(before), 1000 + 199999 / 65536);
	assert_int_equal(hlc_counter(before), 199999 % 65536);
}

/* Three sites whose clocks jump about send one another stamps: what follows a stamp, in time or by message, is later. */
static void cause_comes_before_effect(void **state)
{
	(void)state;
	enum { SITES = 3, MAX_AHEAD_MS = 50 };
	struct hlc clocks[SITES] = {{0}};
	uint64_t walls[SITES] = {1000, 1020, 980};
	unsigned refused = 0;
	uint64_t seed = 11;
	for (int step = 0; step < 100000; step++) {
		size_t to = random_below(&seed, SITES);
		size_t from = random_below(&seed, SITES);
		walls[to] += random_below(&seed, 8);
		walls[to] -= random_below(&seed, 6);
		if (random_below(&seed, 1000) == 0)
			walls[to] = walls[from] > 100 ? walls[from] - 100 : walls[from] + 100;
		uint64_t sent = hlc_tick(&clocks[from], walls[from]);
		uint64_t before = clocks[to].last;
		bool accepted = hlc_observe(&clocks[to], sent, walls[to], MAX_AHEAD_MS);
		assert_int_equal(accepted, hlc_ms(sent) <= walls[to] + MAX_AHEAD_MS);
		assert_true(clocks[to].last >= before);
		refused += !accepted;
		uint64_t effect = hlc_tick(&clocks[to], walls[to]);
		assert_true(effect > before);
		assert_true(!accepted || effect > sent);
		assert_true(hlc_ms(effect) >= walls[to]);
	}
	assert_in_range(refused, 1, 90000);
}

static void call_in_microseconds(void *clock)
{
	hlc_tick(clock, 1700000000000000);
}

static void call_tick(void *clock)
{
	hlc_tick(clock, 5);
}

static void wrong_units_abort(void **state)
{
	(void)state;
	struct hlc clock = {0};
	assert_aborts(call_in_microseconds, &clock, "now_ms < ms_end");
	clock.last = UINT64_MAX;
	assert_aborts(call_tick, &clock, "clock->last < UINT64_MAX");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stamp_is_time_and_counter),
		cmocka_unit_test(ticks),
		cmocka_unit_test(observations),
		cmocka_unit_test(a_burst_borrows_the_next_millisecond),
		cmocka_unit_test(cause_comes_before_effect),
		cmocka_unit_test(wrong_units_abort),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
