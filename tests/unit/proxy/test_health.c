/* What answers and failures make of the path to a site; and that a satellite link, which loses packets, is not taken for a
 * dead one, while a dead one is noticed within a second. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

enum { MS = 1000, S = 1000 * MS };

static void the_first_answer_is_believed(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_true(proxy_health_answered(&health, 1 * S));
	assert_int_equal(health.state, PROXY_PATH_UP);
	assert_false(proxy_health_answered(&health, 2 * S));
}

static void two_errors_in_a_row_are(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_answered(&health, 1 * S);
	assert_false(proxy_health_failed(&health, 2 * S, PROXY_FAILURE));
	assert_false(proxy_health_answered(&health, 3 * S));
	assert_false(proxy_health_failed(&health, 4 * S, PROXY_FAILURE));
	assert_int_equal(health.state, PROXY_PATH_UP);
	assert_true(proxy_health_failed(&health, 5 * S, PROXY_FAILURE));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	assert_false(proxy_health_failed(&health, 6 * S, PROXY_FAILURE));
}

static void one_refusal_is(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_answered(&health, 1 * S);
	assert_true(proxy_health_failed(&health, 2 * S, PROXY_FAILURE_REFUSED));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
}

static void an_unknown_path_goes_down_by_the_same_rules(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_false(proxy_health_failed(&health, 1 * S, PROXY_FAILURE));
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_true(proxy_health_failed(&health, 2 * S, PROXY_FAILURE));
}

static void one_answer_ends_a_short_outage(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_failed(&health, 10 * S, PROXY_FAILURE_REFUSED);
	assert_true(proxy_health_answered(&health, 12 * S));
	assert_int_equal(health.state, PROXY_PATH_UP);
}

static void two_answers_in_a_row_end_a_long_one(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_failed(&health, 10 * S, PROXY_FAILURE_REFUSED);
	assert_false(proxy_health_answered(&health, 20 * S));
	assert_false(proxy_health_failed(&health, 21 * S, PROXY_FAILURE));
	assert_false(proxy_health_answered(&health, 22 * S));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	assert_true(proxy_health_answered(&health, 23 * S));
	assert_int_equal(health.state, PROXY_PATH_UP);
}

static void who_no_longer_looks_does_not_know(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_failed(&health, 10 * S, PROXY_FAILURE_REFUSED);
	proxy_health_forget(&health);
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_false(proxy_health_failed(&health, 99 * S, PROXY_FAILURE));
}

static void gossip_is_a_witness_where_nothing_else_is_known(void **state)
{
	(void)state;
	struct proxy_health health = {0}, used = {0};
	assert_true(proxy_health_failed(&health, 1 * S, PROXY_FAILURE_OF_LOST));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	/* A path that works is judged by itself. */
	proxy_health_answered(&used, 1 * S);
	assert_false(proxy_health_failed(&used, 2 * S, PROXY_FAILURE_OF_LOST));
	assert_int_equal(used.state, PROXY_PATH_UP);
	assert_true(proxy_health_failed(&used, 3 * S, PROXY_FAILURE_OF_LOST));
}

/* A probe that was sent then, and not heard of until now. */
static bool silent(struct proxy_health *health, uint64_t begun_us, uint64_t now_us, int64_t estimate_us)
{
	struct proxy_silence silence = {.begun_us = begun_us, .now_us = now_us, .estimate_us = estimate_us};
	return proxy_health_silent(health, &silence);
}

static unsigned silent_until_down(struct proxy_health *health, uint64_t begun_us, int64_t estimate_us)
{
	unsigned count = 1;
	while (!silent(health, begun_us + count * MS, begun_us + S, estimate_us))
		assert_in_range(++count, 1, 100);
	return count;
}

static void answer(struct proxy_health *health, uint64_t now_us, uint64_t rtt_us)
{
	proxy_health_measured(health, rtt_us, false);
	proxy_health_answered(health, now_us);
}

static void a_verdict_that_came_too_early_is_taken_back(void **state)
{
	(void)state;
	struct proxy_health health = {0}, used = {0};
	assert_true(proxy_health_is_new(&health));
	assert_int_equal(silent_until_down(&health, 1 * S, 10 * MS), 5);
	assert_true(proxy_health_heard(&health, 3 * S));
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_false(silent(&health, 4 * S, 5 * S, 10 * MS));
	/* A path that has answered before is no new one: it has to answer again. */
	proxy_health_answered(&used, 1 * S);
	proxy_health_failed(&used, 2 * S, PROXY_FAILURE_REFUSED);
	assert_false(proxy_health_is_new(&used) || proxy_health_heard(&used, 3 * S));
	assert_int_equal(used.state, PROXY_PATH_DOWN);
}

/* ---- Silence ----------------------------------------------------------------------------------------------------- */

static void how_much_silence_is_believed_depends_on_the_loss(void **state)
{
	(void)state;
	static const struct {
		unsigned one_of; /* so many is lost; 0: none */
		unsigned least, most;
	} rows[] = {{0, 4, 4}, {50, 6, 6}, {20, 6, 8}, {7, 8, 14}, {3, 14, 18}, {1, 18, 18}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_health health = {0};
		answer(&health, 0, 20 * MS);
		for (unsigned n = 1; n <= 300; n++) {
			if (rows[i].one_of > 0 && n % rows[i].one_of == 0)
				proxy_health_lost(&health);
			if (rows[i].one_of != 1 || n == 300)
				answer(&health, n * S, 20 * MS);
		}
		assert_in_range(silent_until_down(&health, 301 * S, SCOPE_RTT_UNKNOWN), rows[i].least, rows[i].most);
	}
}

static void a_loss_is_forgotten_in_time(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (unsigned n = 0; n < 100; n++)
		answer(&health, n * S, 20 * MS);
	uint64_t steady_us = proxy_health_hang_us(&health, SCOPE_RTT_UNKNOWN);
	assert_false(silent(&health, 100 * S, 101 * S, SCOPE_RTT_UNKNOWN));
	answer(&health, 102 * S, 20 * MS);
	struct proxy_health later = health;
	assert_int_equal(silent_until_down(&later, 103 * S, SCOPE_RTT_UNKNOWN), 6);
	assert_true(proxy_health_hang_us(&health, SCOPE_RTT_UNKNOWN) > steady_us + S);
	for (unsigned n = 0; n < 150; n++)
		answer(&health, (103 + n) * S, 20 * MS);
	assert_int_equal(silent_until_down(&health, 300 * S, SCOPE_RTT_UNKNOWN), 4);
}

static void an_outage_is_no_loss(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (unsigned n = 0; n < 100; n++)
		answer(&health, n * S, 20 * MS);
	for (unsigned n = 0; n < 100; n++)
		silent(&health, (100 + n) * S, (101 + n) * S, SCOPE_RTT_UNKNOWN);
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	answer(&health, 300 * S, 20 * MS);
	answer(&health, 301 * S, 20 * MS);
	assert_int_equal(health.state, PROXY_PATH_UP);
	assert_int_equal(silent_until_down(&health, 302 * S, SCOPE_RTT_UNKNOWN), 4);
}

/* Who is far off, and nobody told, is not heard of in time; that is no loss. */
static void a_distance_that_nobody_told_is_no_loss(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (int i = 0; i < 3; i++)
		assert_false(silent(&health, 1 * S, 2 * S, 4 * MS));
	proxy_health_heard(&health, 2 * S);
	for (int i = 0; i < 3; i++)
		assert_false(silent(&health, 1 * S, 2 * S, 4 * MS));
	proxy_health_lost(&health);
	answer(&health, 3 * S, 1 * S);
	assert_int_equal(health.loss, 0);
}

static void what_is_heard_ends_silence(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (unsigned n = 0; n < 100; n++)
		answer(&health, n * S, 20 * MS);
	assert_false(silent(&health, 100 * S, 101 * S, SCOPE_RTT_UNKNOWN));
	assert_false(silent(&health, 100 * S + 100 * MS, 101 * S, SCOPE_RTT_UNKNOWN));
	assert_false(proxy_health_heard(&health, 100 * S + 500 * MS));
	assert_int_equal(health.state, PROXY_PATH_UP);
	/* One that should have been heard of by then was lost: it does not count. */
	for (int i = 0; i < 20; i++)
		assert_false(silent(&health, 100 * S + 300 * MS, 102 * S, SCOPE_RTT_UNKNOWN));
	assert_true(silent_until_down(&health, 101 * S, SCOPE_RTT_UNKNOWN) > 4);
}

/* Its kernel goes on taking connections: that is no news. */
static void a_new_path_to_an_agent_that_hangs_stays_down(void **state)
{
	(void)state;
	struct proxy_health health = {0}, silent = {0};
	proxy_health_asked(&health, 1 * S);
	assert_false(proxy_health_heard(&health, 1 * S + 10 * MS));
	assert_true(proxy_health_hangs(&health, 4 * S, 10 * MS));
	assert_false(proxy_health_heard(&health, 5 * S));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	proxy_health_answered(&health, 6 * S);
	assert_int_equal(health.state, PROXY_PATH_UP);
	/* Nothing was heard of that one before: it may only be far away. */
	proxy_health_asked(&silent, 1 * S);
	assert_true(proxy_health_hangs(&silent, 4 * S, 10 * MS));
	assert_true(proxy_health_heard(&silent, 5 * S));
	assert_int_equal(silent.state, PROXY_PATH_UNKNOWN);
}

static void an_agent_that_hangs_is_not_heard_of_for_ever(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (unsigned n = 0; n < 100; n++)
		answer(&health, n * S, 20 * MS);
	assert_false(proxy_health_hangs(&health, 200 * S, SCOPE_RTT_UNKNOWN)); /* nothing was asked */
	proxy_health_asked(&health, 200 * S);
	proxy_health_asked(&health, 200 * S + 300 * MS);
	proxy_health_heard(&health, 200 * S + 320 * MS);
	assert_false(proxy_health_hangs(&health, 200 * S + 500 * MS, SCOPE_RTT_UNKNOWN));
	assert_true(proxy_health_hangs(&health, 200 * S + 650 * MS, SCOPE_RTT_UNKNOWN));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void the_first_time_comes_from_the_estimate(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_int_equal(proxy_health_due_us(&health, 0), 250 * MS);
	assert_int_equal(proxy_health_due_us(&health, 200 * MS), 360 * MS);
	assert_int_equal(proxy_health_due_us(&health, 2 * S), 2600 * MS);
	assert_int_equal(proxy_health_due_us(&health, 20 * S), 8 * S);
	assert_int_equal(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), 500 * MS);
}

static void a_connection_that_was_taken_tells_the_distance(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_taken(&health, 0); /* the kernel did not measure */
	assert_int_equal(proxy_health_hang_us(&health, 10 * MS), 1060 * MS);
	proxy_health_taken(&health, 100 * MS);
	assert_int_equal(proxy_health_hang_us(&health, 10 * MS), 1600 * MS);
	assert_int_equal(proxy_health_hang_us(&health, SCOPE_RTT_UNKNOWN), 1600 * MS);
	assert_int_equal(proxy_health_connect_us(&health, SCOPE_RTT_UNKNOWN), 1 * S);
	proxy_health_taken(&health, 2 * S);
	assert_int_equal(proxy_health_hang_us(&health, 10 * MS), 23200 * MS);
	proxy_health_measured(&health, 5 * MS, false); /* what is measured counts more */
	assert_int_equal(proxy_health_due_us(&health, 10 * MS), 250 * MS);
}

/* However wrong the estimate is, some wait will be long enough in the end; but a site that comes back is not waited for. */
static void with_each_silence_the_first_time_grows(void **state)
{
	(void)state;
	static const uint64_t expected[] = {500 * MS, 500 * MS, 500 * MS, 500 * MS, 500 * MS,
	                                    500 * MS, 1 * S,    2 * S,    2 * S};
	struct proxy_health health = {0};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), expected[i]);
		silent(&health, 1 * S, 2 * S, SCOPE_RTT_UNKNOWN);
	}
	for (int i = 0; i < 100; i++)
		silent(&health, 1 * S, 2 * S, SCOPE_RTT_UNKNOWN);
	assert_int_equal(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), 2 * S);
	assert_int_equal(proxy_health_due_us(&health, 2 * S), 2600 * MS);
}

static void a_connection_may_take_as_long_as_the_distance_needs(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_int_equal(proxy_health_connect_us(&health, 0), 0);
	assert_int_equal(proxy_health_connect_us(&health, 2 * S), 40400 * MS);
	assert_in_range(proxy_health_connect_us(&health, SCOPE_RTT_UNKNOWN), 1 * S, 5 * S);
	proxy_health_measured(&health, 2 * S, false);
	assert_in_range(proxy_health_connect_us(&health, SCOPE_RTT_UNKNOWN), 40 * S, 41 * S);
	assert_in_range(proxy_health_connect_us(&health, 10 * MS), 40 * S, 41 * S);
}

static void later_ones_come_from_what_was_measured(void **state)
{
	(void)state;
	struct proxy_health near = {0}, far = {0}, wild = {0};
	for (int i = 0; i < 100; i++) {
		proxy_health_measured(&near, 500, false);
		proxy_health_measured(&far, 400 * MS, false);
		proxy_health_measured(&wild, i % 2 ? 100 * MS : 160 * MS, false);
	}
	assert_int_equal(proxy_health_due_us(&near, SCOPE_RTT_UNKNOWN), 250 * MS);
	assert_in_range(proxy_health_due_us(&far, SCOPE_RTT_UNKNOWN), 500 * MS, 510 * MS);
	/* One that varies is not taken for one that loses. */
	assert_in_range(proxy_health_due_us(&wild, SCOPE_RTT_UNKNOWN), 250 * MS, 300 * MS);
	assert_in_range(wild.loss, 0, PROXY_LOSS_ALL / 50);
}

static void what_was_repeated_is_a_loss_and_no_distance(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (int i = 0; i < 100; i++)
		proxy_health_measured(&health, 300 * MS, false);
	uint64_t due_us = proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN);
	proxy_health_measured(&health, 800 * MS, false);
	assert_int_equal(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), due_us);
	assert_in_range(health.loss, PROXY_LOSS_ALL / 100, PROXY_LOSS_ALL / 50);
	for (int i = 0; i < 10; i++)
		proxy_health_measured(&health, 800 * MS, false); /* it has become longer */
	assert_in_range(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), 900 * MS, 3 * S);
}

static void an_outage_does_not_blind(void **state)
{
	(void)state;
	struct proxy_health health = {0}, first = {0};
	proxy_health_measured(&first, 20 * S, true);
	assert_int_equal(proxy_health_due_us(&first, 0), 250 * MS);
	for (int i = 0; i < 100; i++)
		proxy_health_measured(&health, 10 * MS, false);
	proxy_health_failed(&health, 1 * S, PROXY_FAILURE_REFUSED);
	proxy_health_measured(&health, 20 * S, true); /* it was stopped for so long */
	assert_int_equal(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	for (int i = 0; i < 10; i++)
		proxy_health_measured(&health, 2 * S, true); /* it has become a satellite link */
	assert_in_range(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), 2 * S, 8 * S);
}

static void requests_tell_how_far_it_is(void **state)
{
	(void)state;
	struct proxy_health health = {.quickest_us = 20 * MS, .answer_us = 1 * S};
	assert_int_equal(proxy_health_due_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	health.quickest_us = 400 * MS;
	assert_int_equal(proxy_health_due_us(&health, 300 * MS), 500 * MS);
	health.quickest_us = 4 * S; /* a slow service: the estimate says more */
	assert_int_equal(proxy_health_due_us(&health, 20 * MS), 250 * MS);
}

/* Each time that an agent hung, with requests in it, it took longer to be left: 4 s, 8 s, 18 s. */
static void requests_that_waited_for_an_agent_that_hung_do_not(void **state)
{
	(void)state;
	struct proxy_health health = {.answer_us = 1 * S};
	proxy_health_first_byte(&health, 3 * MS);
	uint64_t before_us = proxy_health_hang_us(&health, SCOPE_RTT_UNKNOWN);
	for (int i = 0; i < 3; i++)
		proxy_health_first_byte(&health, 8 * S);
	assert_int_equal(proxy_health_hang_us(&health, SCOPE_RTT_UNKNOWN), before_us);
}

static void a_race_waits_twice_the_usual_time(void **state)
{
	(void)state;
	assert_int_equal(proxy_race_delay_us(1 * MS, SCOPE_RTT_UNKNOWN), 50 * MS);
	assert_int_equal(proxy_race_delay_us(100 * MS, 5 * S), 200 * MS);
	assert_int_equal(proxy_race_delay_us(9 * S, SCOPE_RTT_UNKNOWN), 1 * S);
	assert_in_range(proxy_race_delay_us(0, 20 * MS), 60 * MS, 200 * MS);
	assert_int_equal(proxy_race_delay_us(0, 2 * S), 1 * S);
	assert_in_range(proxy_race_delay_us(0, SCOPE_RTT_UNKNOWN), 50 * MS, 1 * S);
}

static void times_are_smoothed(void **state)
{
	(void)state;
	uint64_t smoothed = 0;
	for (int i = 0; i < 100; i++)
		smoothed = proxy_smooth_us(smoothed, 10 * MS);
	assert_in_range(smoothed, 9900, 10100);
	smoothed = proxy_smooth_us(smoothed, 90 * MS);
	assert_in_range(smoothed, 19 * MS, 21 * MS);
	assert_true(proxy_smooth_us(0, 0) > 0); /* 0 means that nothing is known */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_answer_is_believed),
		cmocka_unit_test(two_errors_in_a_row_are),
		cmocka_unit_test(one_refusal_is),
		cmocka_unit_test(an_unknown_path_goes_down_by_the_same_rules),
		cmocka_unit_test(one_answer_ends_a_short_outage),
		cmocka_unit_test(two_answers_in_a_row_end_a_long_one),
		cmocka_unit_test(who_no_longer_looks_does_not_know),
		cmocka_unit_test(gossip_is_a_witness_where_nothing_else_is_known),
		cmocka_unit_test(a_verdict_that_came_too_early_is_taken_back),
		cmocka_unit_test(how_much_silence_is_believed_depends_on_the_loss),
		cmocka_unit_test(a_loss_is_forgotten_in_time),
		cmocka_unit_test(an_outage_is_no_loss),
		cmocka_unit_test(a_distance_that_nobody_told_is_no_loss),
		cmocka_unit_test(what_is_heard_ends_silence),
		cmocka_unit_test(an_agent_that_hangs_is_not_heard_of_for_ever),
		cmocka_unit_test(a_new_path_to_an_agent_that_hangs_stays_down),
		cmocka_unit_test(the_first_time_comes_from_the_estimate),
		cmocka_unit_test(a_connection_that_was_taken_tells_the_distance),
		cmocka_unit_test(with_each_silence_the_first_time_grows),
		cmocka_unit_test(a_connection_may_take_as_long_as_the_distance_needs),
		cmocka_unit_test(later_ones_come_from_what_was_measured),
		cmocka_unit_test(what_was_repeated_is_a_loss_and_no_distance),
		cmocka_unit_test(an_outage_does_not_blind),
		cmocka_unit_test(requests_tell_how_far_it_is),
		cmocka_unit_test(requests_that_waited_for_an_agent_that_hung_do_not),
		cmocka_unit_test(a_race_waits_twice_the_usual_time),
		cmocka_unit_test(times_are_smoothed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
