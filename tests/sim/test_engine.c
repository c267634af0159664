/* The engine alone, with a protocol of its own: nodes that ask each other in turn and count the answers. */
#include "sim/plan.h"
#include "sim/sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>

enum { NODES = 5, PERIOD_US = 10000, SECOND_US = 1000000 };

struct echo {
	struct sim sim;
	uint64_t next_us[NODES];
	uint32_t turn[NODES];
	uint32_t asked[NODES];    /* questions that came */
	uint32_t answered[NODES]; /* answers that came */
	uint64_t last_us[NODES];  /* when anything came */
	uint32_t acts;
};

static void echo_receive(void *context, uint32_t node, uint32_t from, struct str bytes)
{
	struct echo *echo = context;
	echo->last_us[node] = echo->sim.now_us;
	if (str_equal(bytes, STR("?"))) {
		echo->asked[node]++;
		sim_send(&echo->sim, node, from, STR("!"));
	} else {
		echo->answered[node]++;
	}
}

static void echo_tick(void *context, uint32_t node)
{
	struct echo *echo = context;
	uint32_t to = (node + 1 + echo->turn[node]++ % (NODES - 1)) % NODES;
	sim_send(&echo->sim, node, to, STR("?"));
	echo->next_us[node] = echo->sim.now_us + PERIOD_US;
}

static uint64_t echo_due(void *context, uint32_t node)
{
	return ((struct echo *)context)->next_us[node];
}

static void echo_act(void *context, uint64_t what)
{
	((struct echo *)context)->acts += (uint32_t)what;
}

static void echo_init(struct echo *echo, uint64_t seed, struct sim_weather weather)
{
	*echo = (struct echo){0};
	struct sim_network_options options = {.seed = seed, .nodes = NODES, .span_us = 5000, .weather = weather};
	struct sim_client client = {echo, echo_receive, echo_tick, echo_due, echo_act};
	sim_init(&echo->sim, &options, client);
	for (uint32_t i = 0; i < NODES; i++)
		sim_start(&echo->sim, i);
}

static uint64_t echo_digest(uint64_t seed)
{
	struct echo echo;
	echo_init(&echo, seed, (struct sim_weather){.loss = 0.1, .duplicate = 0.1, .reorder = 0.1, .jitter = 0.5});
	sim_run(&echo.sim, SECOND_US);
	uint64_t digest = echo.sim.digest;
	sim_free(&echo.sim);
	return digest;
}

/* ---- The queue and the numbers ----------------------------------------------------------------------------------- */

static void test_queue_gives_the_earliest_first_and_keeps_the_order_of_equals(void **state)
{
	(void)state;
	struct sim_queue queue = {0};
	struct sim_random random;
	sim_random_seed(&random, 1, 1);
	for (uint64_t i = 0; i < 5000; i++)
		sim_queue_put(&queue, (struct sim_event){.at_us = sim_random_below(&random, 100), .argument = i});
	struct sim_event event, before = {0};
	uint32_t taken = 0;
	for (; sim_queue_take(&queue, 49, &event); before = event, taken++) {
		assert_true(taken == 0 || event.at_us > before.at_us ||
		            (event.at_us == before.at_us && event.argument > before.argument));
		if (taken % 3 == 0) /* also while it is being emptied */
			sim_queue_put(&queue, (struct sim_event){.at_us = event.at_us + 60, .argument = 10000 + taken});
	}
	assert_true(taken > 2000 && taken < 3000);
	assert_int_equal(queue.count, 5000 - taken + (taken + 2) / 3);
	sim_queue_free(&queue);
}

static void test_random_numbers_come_from_seed_and_stream(void **state)
{
	(void)state;
	struct sim_random a, b, c;
	sim_random_seed(&a, 7, 1);
	sim_random_seed(&b, 7, 1);
	sim_random_seed(&c, 7, 2);
	double sum = 0;
	uint32_t same = 0;
	for (int i = 0; i < 10000; i++) {
		uint64_t number = sim_random_next(&a);
		assert_true(number == sim_random_next(&b));
		same += number == sim_random_next(&c);
		sum += sim_random_unit(&a);
		sim_random_unit(&b);
		assert_in_range(sim_random_range(&a, 3, 5), 3, 5);
		sim_random_range(&b, 3, 5);
	}
	assert_int_equal(same, 0);
	assert_true(sum > 4900 && sum < 5100);
}

/* ---- The engine -------------------------------------------------------------------------------------------------- */

static void test_the_same_seed_gives_the_same_run(void **state)
{
	(void)state;
	assert_true(echo_digest(1) == echo_digest(1));
	assert_true(echo_digest(1) != echo_digest(2));
}

static void test_without_faults_every_question_is_answered(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 3, (struct sim_weather){0});
	sim_run(&echo.sim, SECOND_US);
	for (uint32_t i = 0; i < NODES; i++)
		echo.next_us[i] = UINT64_MAX;
	sim_run(&echo.sim, 2 * SECOND_US);
	for (uint32_t i = 0; i < NODES; i++)
		assert_int_equal(echo.answered[i], 101);
	assert_int_equal(echo.sim.spins, 0);
	sim_free(&echo.sim);
}

static void test_the_network_loses_and_doubles_as_often_as_it_is_told(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 4, (struct sim_weather){.loss = 0.2, .duplicate = 0.3});
	sim_run(&echo.sim, 20 * SECOND_US);
	double sent = (double)echo.sim.datagrams;
	assert_true((double)echo.sim.network.lost > 0.18 * sent && (double)echo.sim.network.lost < 0.22 * sent);
	double doubled = (double)echo.sim.network.duplicated / (0.8 * sent);
	assert_true(doubled > 0.27 && doubled < 0.33);
	sim_free(&echo.sim);
}

static void test_a_one_way_cut_lets_the_other_way_through(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 5, (struct sim_weather){0});
	struct sim_rule *rule = sim_network_rule(&echo.sim.network);
	rule->from[0] = 1;
	memset(rule->to, 1, NODES);
	rule->loss = 1;
	sim_network_switch(&echo.sim.network, rule, true);
	sim_run(&echo.sim, SECOND_US);
	assert_true(echo.asked[0] > 90);
	assert_int_equal(echo.answered[0], 0);
	assert_true(echo.answered[1] > 70 && echo.answered[1] < 80); /* of those that it asked, one in four is node 0 */
	sim_network_heal(&echo.sim.network);
	sim_run(&echo.sim, 2 * SECOND_US);
	assert_true(echo.answered[0] > 90);
	sim_free(&echo.sim);
}

static void test_a_paused_process_finds_what_came_in_its_inbox(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 6, (struct sim_weather){0});
	sim_pause(&echo.sim, 2, SECOND_US / 2);
	sim_run(&echo.sim, SECOND_US / 2 - 1);
	assert_int_equal(echo.asked[2] + echo.sim.nodes[2].ticks, 0);
	uint32_t waiting = echo.sim.nodes[2].inbox;
	assert_true(waiting > 40);
	sim_run(&echo.sim, SECOND_US / 2);
	assert_true(echo.asked[2] >= waiting);
	assert_int_equal(echo.sim.nodes[2].inbox, 0);
	sim_pause(&echo.sim, 2, 5 * SECOND_US);
	sim_run(&echo.sim, 4 * SECOND_US);
	assert_int_equal(echo.sim.nodes[2].inbox, SIM_INBOX);
	assert_true(echo.sim.overflowed > 0);
	sim_free(&echo.sim);
}

static void test_a_slow_process_does_everything_late(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 7, (struct sim_weather){0});
	sim_lag(&echo.sim, 1, SECOND_US);
	sim_run(&echo.sim, SECOND_US - 1);
	assert_int_equal(echo.asked[1], 0);
	sim_run(&echo.sim, 2 * SECOND_US);
	assert_true(echo.asked[1] > 50);
	sim_free(&echo.sim);
}

static void test_a_process_that_died_is_gone_with_its_timers_and_inbox(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 8, (struct sim_weather){0});
	sim_pause(&echo.sim, 3, SECOND_US);
	sim_run(&echo.sim, SECOND_US / 2);
	sim_stop(&echo.sim, 3);
	echo.next_us[3] = UINT64_MAX;
	sim_start(&echo.sim, 3); /* not paused: it is another process */
	uint32_t before = echo.asked[3];
	sim_run(&echo.sim, SECOND_US);
	assert_int_equal(echo.sim.nodes[3].ticks, 0);
	assert_true(echo.asked[3] - before < 60); /* the news of half a second, not those of a whole one */
	sim_stop(&echo.sim, 3);
	before = echo.asked[3];
	sim_run(&echo.sim, 2 * SECOND_US);
	assert_int_equal(echo.asked[3], before);
	sim_free(&echo.sim);
}

static void test_what_was_asked_for_happens_at_its_time(void **state)
{
	(void)state;
	struct echo echo;
	echo_init(&echo, 9, (struct sim_weather){0});
	sim_at(&echo.sim, 100, 1);
	sim_at(&echo.sim, 200, 10);
	sim_run(&echo.sim, 199);
	assert_int_equal(echo.acts, 1);
	sim_run(&echo.sim, 200);
	assert_int_equal(echo.acts, 11);
	sim_free(&echo.sim);
}

/* ---- The plan ---------------------------------------------------------------------------------------------------- */

static void test_a_plan_comes_from_its_seed_and_keeps_within_its_time(void **state)
{
	(void)state;
	struct sim_plan a, b;
	struct sim_plan_options options = {.seed = 3, .sites = 60, .from_us = 1000, .to_us = 60000000, .faults = 200};
	options.kinds = SIM_SITE_FAULTS;
	sim_plan_draw(&a, &options);
	sim_plan_draw(&b, &options);
	uint32_t kinds = 0, permanent = 0;
	for (uint32_t i = 0; i < a.count; i++) {
		const struct sim_fault *fault = &a.faults[i];
		kinds |= 1u << fault->kind;
		assert_true(fault->kind == b.faults[i].kind && fault->at_us == b.faults[i].at_us);
		assert_true(fault->node == b.faults[i].node && fault->dice == b.faults[i].dice);
		permanent += fault->kind == SIM_CRASH_FOR_GOOD || fault->kind == SIM_LEAVE || fault->kind == SIM_REVOKE ||
		             fault->kind == SIM_FORGET;
		assert_true(fault->at_us >= 1000 && fault->at_us <= fault->until_us && fault->until_us <= 60000000);
		assert_true(i == 0 || fault->at_us >= a.faults[i - 1].at_us);
		assert_true(fault->node < options.sites + a.joiners);
	}
	assert_int_equal(kinds, SIM_SITE_FAULTS & ~(1u << SIM_STUTTER)); /* that one has to be asked for */
	assert_true(permanent > 0 && permanent <= 20);
	sim_plan_free(&a);
	sim_plan_free(&b);
}

static void test_kinds_of_faults_have_names(void **state)
{
	(void)state;
	uint32_t kinds;
	struct str unknown;
	assert_true(sim_fault_kinds(STR("crash,one-way"), &kinds, &unknown));
	assert_int_equal(kinds, 1u << SIM_CRASH | 1u << SIM_ONE_WAY);
	assert_false(sim_fault_kinds(STR("crash,earthquake"), &kinds, &unknown));
	assert_true(str_equal(unknown, STR("earthquake")));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_queue_gives_the_earliest_first_and_keeps_the_order_of_equals),
		cmocka_unit_test(test_random_numbers_come_from_seed_and_stream),
		cmocka_unit_test(test_the_same_seed_gives_the_same_run),
		cmocka_unit_test(test_without_faults_every_question_is_answered),
		cmocka_unit_test(test_the_network_loses_and_doubles_as_often_as_it_is_told),
		cmocka_unit_test(test_a_one_way_cut_lets_the_other_way_through),
		cmocka_unit_test(test_a_paused_process_finds_what_came_in_its_inbox),
		cmocka_unit_test(test_a_slow_process_does_everything_late),
		cmocka_unit_test(test_a_process_that_died_is_gone_with_its_timers_and_inbox),
		cmocka_unit_test(test_what_was_asked_for_happens_at_its_time),
		cmocka_unit_test(test_a_plan_comes_from_its_seed_and_keeps_within_its_time),
		cmocka_unit_test(test_kinds_of_faults_have_names),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
