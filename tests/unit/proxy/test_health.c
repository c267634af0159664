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

static void two_failures_in_a_row_are(void **state)
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

static void a_verdict_that_came_too_early_is_taken_back(void **state)
{
	(void)state;
	struct proxy_health health = {0}, once = {0}, used = {0};
	assert_true(proxy_health_is_new(&health));
	proxy_health_failed(&health, 1 * S, PROXY_FAILURE);
	proxy_health_failed(&health, 2 * S, PROXY_FAILURE);
	assert_true(proxy_health_refuted(&health));
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_false(proxy_health_failed(&health, 3 * S, PROXY_FAILURE));
	/* One failure, likewise. */
	proxy_health_failed(&once, 1 * S, PROXY_FAILURE);
	assert_false(proxy_health_refuted(&once));
	assert_false(proxy_health_failed(&once, 2 * S, PROXY_FAILURE));
	/* A path that has answered before is no new one: it has to answer again. */
	proxy_health_answered(&used, 1 * S);
	proxy_health_failed(&used, 2 * S, PROXY_FAILURE_REFUSED);
	assert_false(proxy_health_is_new(&used) || proxy_health_refuted(&used));
	assert_int_equal(used.state, PROXY_PATH_DOWN);
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void the_first_time_out_comes_from_the_estimate(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_int_equal(proxy_health_timeout_us(&health, 0), 300 * MS);
	assert_int_equal(proxy_health_timeout_us(&health, 100 * MS), 500 * MS);
	assert_int_equal(proxy_health_timeout_us(&health, 300 * MS), 900 * MS);
	assert_int_equal(proxy_health_timeout_us(&health, 2 * S),
	                 14500 * MS); /* 4.3 s, and six times what is beyond 300 ms */
	assert_int_equal(proxy_health_timeout_us(&health, 20 * S), 35 * S);
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 500 * MS);
}

static void a_connection_that_was_taken_tells_the_distance(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_taken(&health, 0); /* the kernel did not measure */
	assert_int_equal(proxy_health_timeout_us(&health, 10 * MS), 320 * MS);
	proxy_health_taken(&health, 100 * MS); /* then a lost packet has time to be repeated, after three round trips */
	assert_int_equal(proxy_health_timeout_us(&health, 10 * MS), 900 * MS);
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 900 * MS);
	assert_int_equal(proxy_health_connect_us(&health, SCOPE_RTT_UNKNOWN), 1 * S);
	proxy_health_taken(&health, 2 * S);
	assert_int_equal(proxy_health_timeout_us(&health, 10 * MS), 22500 * MS);
	proxy_health_measured(&health, 5 * MS, false); /* what is measured counts more */
	assert_int_equal(proxy_health_timeout_us(&health, 10 * MS), 250 * MS);
}

/* However wrong the estimate is, some wait will be long enough in the end; but a site that comes back is not waited for. */
static void with_each_failure_the_first_time_out_grows(void **state)
{
	(void)state;
	static const uint64_t expected[] = {500 * MS, 500 * MS, 1 * S, 2 * S, 2 * S, 2 * S};
	struct proxy_health health = {0};
	for (size_t i = 0; i < sizeof(expected) / sizeof(expected[0]); i++) {
		assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), expected[i]);
		proxy_health_failed(&health, 1 * S, PROXY_FAILURE);
	}
	for (int i = 0; i < 100; i++)
		proxy_health_failed(&health, 1 * S, PROXY_FAILURE);
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 2 * S);
	assert_int_equal(proxy_health_timeout_us(&health, 2 * S), 14500 * MS);
}

/* What probe.c does on a new path: a second probe at the side of the first one, if that was not taken when it should have been. */
static void a_new_path_is_left_within_about_a_second(void **state)
{
	(void)state;
	static const struct {
		int64_t estimate_us;
		enum proxy_failure failure;
		uint64_t most_us;
	} rows[] = {
		{0, PROXY_FAILURE, 600 * MS},
		{100 * MS, PROXY_FAILURE, 800 * MS},
		{200 * MS, PROXY_FAILURE, 1000 * MS},
		{300 * MS, PROXY_FAILURE, 1300 * MS},
		{SCOPE_RTT_UNKNOWN, PROXY_FAILURE, 800 * MS},
		{0, PROXY_FAILURE_OF_LOST, 300 * MS},
		{300 * MS, PROXY_FAILURE_OF_LOST, 900 * MS},
		{SCOPE_RTT_UNKNOWN, PROXY_FAILURE_OF_LOST, 500 * MS},
		{2 * S, PROXY_FAILURE, 17 * S}, /* a satellite is farther away than that */
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_health health = {0};
		uint64_t first = proxy_health_timeout_us(&health, rows[i].estimate_us), second = 0;
		if (!proxy_health_failed(&health, first, rows[i].failure)) {
			second = proxy_health_second_us(&health, rows[i].estimate_us, false);
			assert_true(proxy_health_failed(&health, first + second, rows[i].failure));
		}
		assert_in_range(first + second, 0, rows[i].most_us);
		/* But not before a site that is there could have answered the second one, and a quarter later. */
		assert_true(rows[i].estimate_us < 0 || first > (uint64_t)rows[i].estimate_us * 5 / 4);
	}
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
		proxy_health_measured(&far, 200 * MS, false);
		proxy_health_measured(&wild, i % 2 ? 100 * MS : 3 * S, false);
	}
	assert_int_equal(proxy_health_timeout_us(&near, SCOPE_RTT_UNKNOWN), 250 * MS);
	/* Room for a packet that was lost and is repeated. */
	assert_in_range(proxy_health_timeout_us(&far, SCOPE_RTT_UNKNOWN), 500 * MS, 700 * MS);
	assert_in_range(proxy_health_timeout_us(&wild, SCOPE_RTT_UNKNOWN), 10 * S, 20 * S);
}

static void an_outage_does_not_blind(void **state)
{
	(void)state;
	struct proxy_health health = {0}, first = {0};
	proxy_health_measured(&first, 20 * S, true);
	assert_int_equal(proxy_health_timeout_us(&first, 0), 300 * MS);
	for (int i = 0; i < 100; i++)
		proxy_health_measured(&health, 10 * MS, false);
	proxy_health_failed(&health, 1 * S, PROXY_FAILURE_REFUSED);
	proxy_health_measured(&health, 20 * S, true); /* it was stopped for so long */
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	for (int i = 0; i < 10; i++)
		proxy_health_measured(&health, 2 * S, true); /* it has become a satellite link */
	assert_in_range(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 8 * S, 20 * S);
}

static void a_path_that_loses_packets_is_waited_for(void **state)
{
	(void)state;
	static const struct {
		uint64_t took_us;
		bool late;
		uint64_t timeout_us;
	} rows[] = {
		{20 * MS, false, 250 * MS},
		{120 * MS, false, 250 * MS},
		{240 * MS, false, 3250 * MS}, /* repeated after 200 ms and a round trip */
		{270 * MS, true, 3250 * MS},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct proxy_health health = {0};
		for (int n = 0; n < 100; n++)
			proxy_health_measured(&health, 20 * MS, false);
		proxy_health_measured(&health, rows[i].took_us, rows[i].late);
		assert_in_range(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), rows[i].timeout_us,
		                rows[i].timeout_us + 100 * MS);
		/* Then another probe goes at the side of the first, at the time that would be enough otherwise. */
		uint64_t second_us = proxy_health_second_us(&health, SCOPE_RTT_UNKNOWN, true);
		assert_int_equal(second_us == UINT64_MAX, rows[i].timeout_us < 1 * S);
		for (int n = 0; n < 64; n++)
			proxy_health_measured(&health, 20 * MS, false);
		assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	}
}

static void requests_tell_how_far_it_is(void **state)
{
	(void)state;
	struct proxy_health health = {.first_byte_us = 20 * MS};
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	health.first_byte_us = 400 * MS;
	assert_int_equal(proxy_health_timeout_us(&health, 300 * MS), 1200 * MS);
	health.first_byte_us = 4 * S; /* a slow service: the estimate says more */
	assert_int_equal(proxy_health_timeout_us(&health, 20 * MS), 340 * MS);
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

static void a_dead_site_is_noticed_within_a_second(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (int i = 0; i < 10; i++)
		proxy_health_measured(&health, 30 * MS, false);
	proxy_health_answered(&health, 1 * S);
	uint64_t first = proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN);
	assert_false(proxy_health_failed(&health, 1 * S + first, PROXY_FAILURE));
	uint64_t second = proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN) + health.rtt_us;
	assert_true(proxy_health_failed(&health, 1 * S + first + second, PROXY_FAILURE));
	assert_in_range(first + second, 0, 1 * S);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_answer_is_believed),
		cmocka_unit_test(two_failures_in_a_row_are),
		cmocka_unit_test(one_refusal_is),
		cmocka_unit_test(an_unknown_path_goes_down_by_the_same_rules),
		cmocka_unit_test(one_answer_ends_a_short_outage),
		cmocka_unit_test(two_answers_in_a_row_end_a_long_one),
		cmocka_unit_test(who_no_longer_looks_does_not_know),
		cmocka_unit_test(gossip_is_a_witness_where_nothing_else_is_known),
		cmocka_unit_test(a_verdict_that_came_too_early_is_taken_back),
		cmocka_unit_test(the_first_time_out_comes_from_the_estimate),
		cmocka_unit_test(a_connection_that_was_taken_tells_the_distance),
		cmocka_unit_test(with_each_failure_the_first_time_out_grows),
		cmocka_unit_test(a_new_path_is_left_within_about_a_second),
		cmocka_unit_test(a_connection_may_take_as_long_as_the_distance_needs),
		cmocka_unit_test(later_ones_come_from_what_was_measured),
		cmocka_unit_test(an_outage_does_not_blind),
		cmocka_unit_test(a_path_that_loses_packets_is_waited_for),
		cmocka_unit_test(requests_tell_how_far_it_is),
		cmocka_unit_test(a_race_waits_twice_the_usual_time),
		cmocka_unit_test(times_are_smoothed),
		cmocka_unit_test(a_dead_site_is_noticed_within_a_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
