/* Worlds of sites: that runs repeat, that calm is calm, that the checks can fail, and that runs which failed once do not
 * any more. The many seeds are run by cheops-sim itself (meson.build). */
#include "sim/seeds.h"
#include "sim/swarm.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What a run gave; the violations are to be freed. */
struct outcome {
	bool sound;
	uint64_t digest;
	struct swarm_figures figures;
	struct buf violations;
};

static struct outcome run(const struct swarm_options *options)
{
	struct swarm swarm;
	swarm_init(&swarm, options);
	struct outcome outcome = {.sound = swarm_run(&swarm), .digest = swarm.sim.digest, .figures = swarm.figures};
	buf_put(&outcome.violations, buf_str(&swarm.violations));
	swarm_free(&swarm);
	return outcome;
}

static void must_be_sound(const struct swarm_options *options)
{
	struct outcome outcome = run(options);
	if (!outcome.sound)
		print_message("# seed %lu, %u sites, %u steps, %u faults:\n%s", (unsigned long)options->seed, options->sites,
		              options->steps, options->faults, buf_c(&outcome.violations));
	buf_free(&outcome.violations);
	assert_true(outcome.sound);
}

/* The run violates a check, and the check says this. */
static void must_fail(const struct swarm_options *options, const char *text)
{
	struct outcome outcome = run(options);
	bool found = strstr(buf_c(&outcome.violations), text) != NULL;
	if (!found)
		print_message("# '%s' is not in:\n%s", text, buf_c(&outcome.violations));
	buf_free(&outcome.violations);
	assert_false(outcome.sound);
	assert_true(found);
}

static struct swarm_options stormy(uint64_t seed, uint32_t sites)
{
	struct swarm_options options = swarm_options_default(seed, sites);
	options.steps = 200;
	options.faults = 12;
	return options;
}

/* ---- Runs repeat -------------------------------------------------------------------------------------------------- */

static void test_the_same_seed_gives_the_same_run(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct swarm_options options = stormy(seed, 8);
		struct outcome a = run(&options), b = run(&options);
		assert_true(a.digest == b.digest);
		assert_true(a.figures.events == b.figures.events);
		options.seed = seed + 100;
		struct outcome c = run(&options);
		assert_true(a.digest != c.digest);
		buf_free(&a.violations);
		buf_free(&b.violations);
		buf_free(&c.violations);
	}
}

/* ---- Calm weather ------------------------------------------------------------------------------------------------- */

static void test_twenty_sites_in_calm_weather(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(20, 20);
	options.steps = 0;
	options.calm_s = 120;
	options.crashes = 4;
	struct outcome outcome = run(&options);
	if (!outcome.sound)
		print_message("# %s", buf_c(&outcome.violations));
	buf_free(&outcome.violations);
	print_message("# median error of distances: %.1f %%\n", outcome.figures.error_median * 100);
	assert_true(outcome.sound);
	assert_true(outcome.figures.error_median < 0.15);
	assert_int_equal(outcome.figures.false_lost + outcome.figures.false_lost_calm, 0);
	assert_true(outcome.figures.calm_wire_bytes < 2000);
}

static void test_two_sites_are_enough(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(2, 2);
	options.steps = 0;
	options.calm_s = 20;
	must_be_sound(&options);
}

/* ---- The checks can fail ------------------------------------------------------------------------------------------ */

static void test_a_site_that_nobody_hears_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(1, 10);
	options.calm_s = 30;
	options.mutation = SWARM_MUTE;
	must_fail(&options, "lost, which runs and can be reached");
}

static void test_a_death_that_nobody_sees_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(2, 10);
	options.crashes = 1;
	options.mutation = SWARM_IMMORTAL;
	must_fail(&options, "do not know");
}

static void test_forged_records_that_are_believed_are_noticed(void **state)
{
	(void)state;
	struct swarm_options options = stormy(3, 6);
	options.kinds = 1u << SIM_LIAR;
	options.faults = 2;
	must_be_sound(&options);
	options.mutation = SWARM_GULLIBLE;
	must_fail(&options, "");
}

static void test_a_storm_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = stormy(4, 10);
	options.mutation = SWARM_NOISY;
	must_fail(&options, "datagrams in one second");
}

static void test_memory_without_bound_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(5, 10);
	options.calm_s = 20;
	options.mutation = SWARM_LEAKY;
	must_fail(&options, "bytes of memory");
}

static void test_a_site_that_knows_nothing_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(6, 10);
	options.mutation = SWARM_BLANK;
	must_fail(&options, "no agreement");
}

static void test_a_name_that_is_there_twice_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = swarm_options_default(7, 10);
	options.mutation = SWARM_TWINS;
	must_fail(&options, "is there twice");
}

static void test_a_site_that_is_shut_out_and_shown_alive_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = stormy(8, 10);
	options.kinds = 1u << SIM_REVOKE;
	must_be_sound(&options);
	options.mutation = SWARM_GHOST;
	must_fail(&options, "is shut out");
}

static void test_a_site_that_is_shut_out_and_does_not_know_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = stormy(10, 12);
	options.kinds = 1u << SIM_REVOKE | 1u << SIM_PARTITION;
	must_be_sound(&options);
	options.mutation = SWARM_DISCREET;
	must_fail(&options, "is shut out, and does not know");
}

/* Addresses of memory differ between processes; within one they differ between two worlds that are there at once. */
static void test_randomness_from_outside_is_noticed(void **state)
{
	(void)state;
	struct swarm_options options = stormy(9, 6);
	options.mutation = SWARM_FICKLE;
	struct swarm a, b;
	swarm_init(&a, &options);
	swarm_init(&b, &options);
	swarm_run(&a);
	swarm_run(&b);
	assert_true(a.sim.digest != b.sim.digest);
	swarm_free(&a);
	swarm_free(&b);
}

/* ---- Seeds --------------------------------------------------------------------------------------------------------- */

static void test_runs_that_failed_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sim_named_seeds) / sizeof(sim_named_seeds[0]); i++) {
		const struct sim_named_seed *named = &sim_named_seeds[i];
		struct swarm_options options = swarm_options_default(named->seed, 2);
		options.steps = named->steps;
		swarm_options_vary(&options);
		print_message("# %s\n", named->what);
		must_be_sound(&options);
	}
}

static void test_crowds_that_failed_once(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(sim_named_crowds) / sizeof(sim_named_crowds[0]); i++) {
		const struct sim_named_crowd *crowd = &sim_named_crowds[i];
		struct swarm_options options = swarm_options_default(crowd->named.seed, crowd->sites);
		options.steps = crowd->named.steps;
		options.faults = crowd->faults;
		options.kinds = 1u << SIM_REVOKE | 1u << SIM_LIAR;
		options.warm = true;
		print_message("# %s\n", crowd->named.what);
		must_be_sound(&options);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_same_seed_gives_the_same_run),
		cmocka_unit_test(test_twenty_sites_in_calm_weather),
		cmocka_unit_test(test_two_sites_are_enough),
		cmocka_unit_test(test_a_site_that_nobody_hears_is_noticed),
		cmocka_unit_test(test_a_death_that_nobody_sees_is_noticed),
		cmocka_unit_test(test_forged_records_that_are_believed_are_noticed),
		cmocka_unit_test(test_a_storm_is_noticed),
		cmocka_unit_test(test_memory_without_bound_is_noticed),
		cmocka_unit_test(test_a_site_that_knows_nothing_is_noticed),
		cmocka_unit_test(test_a_name_that_is_there_twice_is_noticed),
		cmocka_unit_test(test_a_site_that_is_shut_out_and_shown_alive_is_noticed),
		cmocka_unit_test(test_a_site_that_is_shut_out_and_does_not_know_is_noticed),
		cmocka_unit_test(test_randomness_from_outside_is_noticed),
		cmocka_unit_test(test_runs_that_failed_once),
		cmocka_unit_test(test_crowds_that_failed_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
