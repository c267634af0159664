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
	assert_false(proxy_health_failed(&health, 2 * S, false));
	assert_false(proxy_health_answered(&health, 3 * S));
	assert_false(proxy_health_failed(&health, 4 * S, false));
	assert_int_equal(health.state, PROXY_PATH_UP);
	assert_true(proxy_health_failed(&health, 5 * S, false));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	assert_false(proxy_health_failed(&health, 6 * S, false));
}

static void one_refusal_is(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_answered(&health, 1 * S);
	assert_true(proxy_health_failed(&health, 2 * S, true));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
}

static void an_unknown_path_goes_down_by_the_same_rules(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_false(proxy_health_failed(&health, 1 * S, false));
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_true(proxy_health_failed(&health, 2 * S, false));
}

static void one_answer_ends_a_short_outage(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_failed(&health, 10 * S, true);
	assert_true(proxy_health_answered(&health, 12 * S));
	assert_int_equal(health.state, PROXY_PATH_UP);
}

static void two_answers_in_a_row_end_a_long_one(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_failed(&health, 10 * S, true);
	assert_false(proxy_health_answered(&health, 20 * S));
	assert_false(proxy_health_failed(&health, 21 * S, false));
	assert_false(proxy_health_answered(&health, 22 * S));
	assert_int_equal(health.state, PROXY_PATH_DOWN);
	assert_true(proxy_health_answered(&health, 23 * S));
	assert_int_equal(health.state, PROXY_PATH_UP);
}

static void who_no_longer_looks_does_not_know(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	proxy_health_failed(&health, 10 * S, true);
	proxy_health_forget(&health);
	assert_int_equal(health.state, PROXY_PATH_UNKNOWN);
	assert_false(proxy_health_failed(&health, 99 * S, false));
}

/* ---- Time -------------------------------------------------------------------------------------------------------- */

static void the_first_time_out_comes_from_the_estimate(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_int_equal(proxy_health_timeout_us(&health, 0), 500 * MS);
	assert_int_equal(proxy_health_timeout_us(&health, 100 * MS), 800 * MS);
	assert_int_equal(proxy_health_timeout_us(&health, 2 * S), 5 * S);
	assert_in_range(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 1 * S, 5 * S);
}

static void a_connection_may_take_as_long_as_the_distance_needs(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	assert_int_equal(proxy_health_connect_us(&health, 0), 0);
	assert_int_equal(proxy_health_connect_us(&health, 2 * S), 20 * S);
	assert_in_range(proxy_health_connect_us(&health, SCOPE_RTT_UNKNOWN), 1 * S, 5 * S);
	proxy_health_measured(&health, 2 * S, false);
	assert_in_range(proxy_health_connect_us(&health, SCOPE_RTT_UNKNOWN), 20 * S, 21 * S);
	assert_in_range(proxy_health_connect_us(&health, 10 * MS), 20 * S, 21 * S);
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
	assert_in_range(proxy_health_timeout_us(&wild, SCOPE_RTT_UNKNOWN), 5 * S, 8 * S);
}

static void an_outage_does_not_blind(void **state)
{
	(void)state;
	struct proxy_health health = {0}, first = {0};
	proxy_health_measured(&first, 20 * S, true);
	assert_int_equal(proxy_health_timeout_us(&first, 0), 500 * MS);
	for (int i = 0; i < 100; i++)
		proxy_health_measured(&health, 10 * MS, false);
	proxy_health_measured(&health, 20 * S, true); /* it was stopped for so long */
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	for (int i = 0; i < 10; i++)
		proxy_health_measured(&health, 2 * S, true); /* it has become a satellite link */
	assert_in_range(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 3 * S, 8 * S);
}

static void requests_tell_how_far_it_is(void **state)
{
	(void)state;
	struct proxy_health health = {.first_byte_us = 20 * MS};
	assert_int_equal(proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN), 250 * MS);
	health.first_byte_us = 400 * MS;
	assert_int_equal(proxy_health_timeout_us(&health, 300 * MS), 1200 * MS);
	health.first_byte_us = 4 * S; /* a slow service: the estimate says more */
	assert_int_equal(proxy_health_timeout_us(&health, 20 * MS), 560 * MS);
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

/* ---- Links ------------------------------------------------------------------------------------------------------- */

struct link {
	struct proxy_health health;
	uint64_t random;
	uint64_t rtt_us;
	unsigned loss_percent;
	uint64_t now_us;
	unsigned downs;
};

static unsigned draw(struct link *link, unsigned below)
{
	link->random = link->random * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(link->random >> 33) % below;
}

/* One question and its answer over TCP, which repeats what is lost after a time-out that doubles. */
static uint64_t ask(struct link *link)
{
	uint64_t took = link->rtt_us + draw(link, (unsigned)(link->rtt_us / 20) + 1);
	for (uint64_t wait = link->rtt_us + link->rtt_us / 4 + 200 * MS;; wait *= 2) {
		bool lost = draw(link, 100) < link->loss_percent || draw(link, 100) < link->loss_percent;
		if (!lost)
			return took;
		took += wait;
	}
}

static void answered(struct link *link, uint64_t took, bool late)
{
	proxy_health_measured(&link->health, took, late);
	proxy_health_answered(&link->health, link->now_us);
}

/* What probe.c does: one probe; where its time is over another one on a new connection, and the late answer counts. */
static void probe(struct link *link)
{
	uint64_t timeout = proxy_health_timeout_us(&link->health, (int64_t)link->rtt_us), took = ask(link);
	if (took <= timeout) {
		link->now_us += took;
		answered(link, took, false);
		return;
	}
	uint64_t left = took - timeout, again = ask(link) + ask(link);
	link->now_us += timeout;
	link->downs += proxy_health_failed(&link->health, link->now_us, false);
	uint64_t second = proxy_health_timeout_us(&link->health, (int64_t)link->rtt_us) + link->health.rtt_us;
	uint64_t first_of_them = left < again ? left : again;
	if (first_of_them > second) {
		link->now_us += second;
		link->downs += proxy_health_failed(&link->health, link->now_us, false);
		first_of_them -= second;
	}
	link->now_us += first_of_them;
	answered(link, left < again ? took : ask(link), left < again);
}

static void a_satellite_link_stays_up(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct link link = {.random = seed, .rtt_us = 2 * S, .loss_percent = 7};
		while (link.now_us < UINT64_C(3600) * S) {
			probe(&link);
			link.now_us += 250 * MS;
		}
		/* Once an hour may be bad luck: four packets lost one after the other. */
		assert_in_range(link.downs, 0, 1);
		assert_int_equal(link.health.state, PROXY_PATH_UP);
	}
}

static void a_steady_link_never_fails(void **state)
{
	(void)state;
	struct link link = {.random = 1, .rtt_us = 20 * MS, .loss_percent = 0};
	while (link.now_us < UINT64_C(3600) * S) {
		probe(&link);
		link.now_us += 250 * MS;
	}
	assert_int_equal(link.downs, 0);
}

static void a_dead_site_is_noticed_within_a_second(void **state)
{
	(void)state;
	struct proxy_health health = {0};
	for (int i = 0; i < 10; i++)
		proxy_health_measured(&health, 30 * MS, false);
	proxy_health_answered(&health, 1 * S);
	uint64_t first = proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN);
	assert_false(proxy_health_failed(&health, 1 * S + first, false));
	uint64_t second = proxy_health_timeout_us(&health, SCOPE_RTT_UNKNOWN) + health.rtt_us;
	assert_true(proxy_health_failed(&health, 1 * S + first + second, false));
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
		cmocka_unit_test(the_first_time_out_comes_from_the_estimate),
		cmocka_unit_test(a_connection_may_take_as_long_as_the_distance_needs),
		cmocka_unit_test(later_ones_come_from_what_was_measured),
		cmocka_unit_test(an_outage_does_not_blind),
		cmocka_unit_test(requests_tell_how_far_it_is),
		cmocka_unit_test(a_race_waits_twice_the_usual_time),
		cmocka_unit_test(times_are_smoothed),
		cmocka_unit_test(a_satellite_link_stays_up),
		cmocka_unit_test(a_steady_link_never_fails),
		cmocka_unit_test(a_dead_site_is_noticed_within_a_second),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
