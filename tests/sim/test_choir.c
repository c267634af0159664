/* Worlds of replicated resources: that runs repeat, that the checks can fail, that their own idea of the order is that of
 * DESIGN 7, and that runs which failed once do not any more. The many seeds are run by cheops-sim-replica (meson.build). */
#include "sim/choir.h"
#include "sim/seeds.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* What a run gave; the violations are to be freed. */
struct outcome {
	bool sound;
	uint64_t digest;
	struct choir_figures figures;
	struct buf violations;
};

static struct outcome run(const struct choir_options *options)
{
	struct choir choir;
	choir_init(&choir, options);
	struct outcome outcome = {.sound = choir_run(&choir), .digest = choir.sim.digest, .figures = choir.figures};
	buf_put(&outcome.violations, buf_str(&choir.violations));
	choir_free(&choir);
	return outcome;
}

static void must_be_sound(const struct choir_options *options)
{
	struct outcome outcome = run(options);
	if (!outcome.sound)
		print_message("# seed %lu, %u sites, %u steps, %u faults:\n%s", (unsigned long)options->seed, options->sites,
		              options->steps, options->faults, buf_c(&outcome.violations));
	buf_free(&outcome.violations);
	assert_true(outcome.sound);
}

/* Of some runs, one violates a check, and the check says this. */
static void must_fail(enum choir_mutation mutation, const char *text)
{
	bool found = false;
	struct buf said = {0};
	for (uint64_t seed = 1; seed <= 20 && !found; seed++) {
		struct choir_options options = choir_options_default(seed, 4);
		options.steps = 200;
		options.faults = 10;
		options.mutation = mutation;
		options.weak = mutation == CHOIR_ECHO;
		options.needed = mutation == CHOIR_OBLIVIOUS;
		struct outcome outcome = run(&options);
		found = !outcome.sound && strstr(buf_c(&outcome.violations), text) != NULL;
		buf_put(&said, buf_str(&outcome.violations));
		buf_free(&outcome.violations);
	}
	if (!found)
		print_message("# '%s' is not in:\n%s", text, buf_c(&said));
	buf_free(&said);
	assert_true(found);
}

/* ---- Runs repeat -------------------------------------------------------------------------------------------------- */

static void test_the_same_seed_gives_the_same_run(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct choir_options options = choir_options_default(seed, 5);
		struct outcome a = run(&options), b = run(&options);
		assert_true(a.digest == b.digest);
		assert_true(a.figures.executions == b.figures.executions);
		options.seed = seed + 100;
		struct outcome c = run(&options);
		assert_true(a.digest != c.digest);
		buf_free(&a.violations);
		buf_free(&b.violations);
		buf_free(&c.violations);
	}
}

/* Addresses of memory differ between two worlds that are there at once. */
static void test_randomness_from_outside_is_noticed(void **state)
{
	(void)state;
	struct choir_options options = choir_options_default(9, 5);
	options.mutation = CHOIR_FICKLE;
	struct choir a, b;
	choir_init(&a, &options);
	choir_init(&b, &options);
	choir_run(&a);
	choir_run(&b);
	assert_true(a.sim.digest != b.sim.digest);
	choir_free(&a);
	choir_free(&b);
}

/* ---- Calm --------------------------------------------------------------------------------------------------------- */

static void test_without_faults_all_is_acknowledged(void **state)
{
	(void)state;
	for (uint32_t sites = 2; sites <= CHOIR_SITES; sites++) {
		struct choir_options options = choir_options_default(sites, sites);
		options.faults = 0;
		options.weather = (struct sim_weather){0};
		struct outcome outcome = run(&options);
		if (!outcome.sound)
			print_message("# %u sites:\n%s", sites, buf_c(&outcome.violations));
		buf_free(&outcome.violations);
		assert_true(outcome.sound);
		assert_true(outcome.figures.acknowledged > outcome.figures.actions / 2);
		assert_int_equal(outcome.figures.lost_answers, 0);
	}
}

/* ---- The order ---------------------------------------------------------------------------------------------------- */

static struct choir_op op(uint32_t member, uint32_t number, uint64_t stamp, enum choir_verb verb, int64_t value)
{
	struct choir_op it = {.member = member, .number = number, .stamp = stamp, .class = (uint8_t)verb};
	it.effect = (uint8_t)choir_verb_effect(verb);
	it.request.verb = (uint8_t)verb;
	it.request.value.number = value;
	it.seen[0] = 1; /* the create */
	it.seen[member] = number - 1;
	return it;
}

/* Create 23 everywhere; cut; set 29, increment 13, increment -12 at three sites; heal: 30 everywhere. */
static void test_the_example_of_the_design(void **state)
{
	(void)state;
	struct choir_rules rules = {0};
	memset(rules.resolutions, 255, sizeof(rules.resolutions));
	static const uint32_t orders[6][3] = {{2, 3, 4}, {2, 4, 3}, {3, 2, 4}, {3, 4, 2}, {4, 2, 3}, {4, 3, 2}};
	for (size_t i = 0; i < 6; i++) {
		struct choir_op ops[4] = {op(0, 1, 1, CHOIR_CREATE, 23), op(0, 2, orders[i][0], CHOIR_PUT, 29),
		                          op(1, 1, orders[i][1], CHOIR_INCREMENT, 13),
		                          op(2, 1, orders[i][2], CHOIR_INCREMENT, -12)};
		uint32_t sequence[4];
		assert_int_equal(choir_sequence(ops, 4, &rules, NULL, sequence), 4);
		struct choir_state state_of_e = {0};
		for (uint32_t k = 0; k < 4; k++)
			choir_apply(&state_of_e, &ops[sequence[k]].request);
		assert_int_equal(state_of_e.number, 30);
	}
}

static void test_of_two_replaces_the_later_counts(void **state)
{
	(void)state;
	struct choir_rules rules = {0};
	memset(rules.resolutions, 255, sizeof(rules.resolutions));
	struct choir_op ops[3] = {op(0, 1, 1, CHOIR_CREATE, 0), op(1, 1, 3, CHOIR_PUT, 1), op(2, 1, 2, CHOIR_PUT, 2)};
	uint32_t sequence[3];
	assert_int_equal(choir_sequence(ops, 3, &rules, NULL, sequence), 2);
	assert_int_equal(sequence[1], 1);
}

static void test_a_delete_wins_or_loses_whenever_it_comes(void **state)
{
	(void)state;
	struct choir_rules rules = {0};
	memset(rules.resolutions, 255, sizeof(rules.resolutions));
	for (uint64_t stamp = 2; stamp <= 4; stamp += 2) {
		struct choir_op ops[3] = {op(0, 1, 1, CHOIR_CREATE, 0), op(1, 1, stamp, CHOIR_DELETE, 0),
		                          op(2, 1, 3, CHOIR_INCREMENT, 2)};
		uint32_t sequence[3];
		rules.delete_loses = false;
		assert_int_equal(choir_sequence(ops, 3, &rules, NULL, sequence), 2);
		assert_int_equal(sequence[1], 1);
		rules.delete_loses = true;
		assert_int_equal(choir_sequence(ops, 3, &rules, NULL, sequence), 2);
		assert_int_equal(sequence[1], 2);
	}
}

/* Random histories: members issue, and hear of each other's, now and then. */
static uint32_t draw_history(struct sim_random *random, struct choir_op *ops, uint32_t members, uint32_t most)
{
	uint32_t known[CHOIR_SITES][CHOIR_SITES] = {{0}}, count = 1;
	uint64_t clock[CHOIR_SITES] = {1};
	bool deleted[CHOIR_SITES] = {false};
	ops[0] = op(0, 1, 1, CHOIR_CREATE, 0);
	ops[0].seen[0] = 0;
	known[0][0] = 1;
	while (count < most) {
		uint32_t at = (uint32_t)sim_random_below(random, members), from = (uint32_t)sim_random_below(random, members);
		if (at != from && sim_random_chance(random, 0.3)) {
			for (uint32_t i = 0; i < members; i++)
				known[at][i] = known[at][i] > known[from][i] ? known[at][i] : known[from][i];
			clock[at] = clock[at] > clock[from] ? clock[at] : clock[from];
			deleted[at] |= deleted[from];
		}
		if (known[at][0] == 0 || deleted[at]) {
			if (sim_random_chance(random, 0.02))
				break;
			continue;
		}
		enum choir_verb verb = (enum choir_verb)sim_random_range(random, CHOIR_PUT, CHOIR_UPLOAD);
		if (sim_random_chance(random, 0.03))
			verb = CHOIR_DELETE;
		clock[at] += sim_random_below(random, 3) + 1;
		struct choir_op next = op(at, known[at][at] + 1, clock[at], verb, 0);
		memcpy(next.seen, known[at], sizeof(next.seen));
		next.facet = verb == CHOIR_UPLOAD;
		known[at][at]++;
		deleted[at] |= verb == CHOIR_DELETE;
		ops[count++] = next;
	}
	return count;
}

/* Two who read the same page and wrote it down without a look at each other's. */
static void test_the_room_and_the_checks_mean_the_same_order(void **state)
{
	(void)state;
	enum { MOST = 24 };
	for (uint64_t seed = 1; seed <= 3000; seed++) {
		struct sim_random random;
		struct choir_op ops[MOST];
		struct order_op theirs[MOST];
		uint32_t expected[MOST];
		struct choir_rules rules = {.delete_loses = seed % 5 == 0};
		sim_random_seed(&random, seed, 77);
		memset(rules.resolutions, 255, sizeof(rules.resolutions));
		for (size_t i = 0; seed % 3 == 0 && i < sizeof(rules.resolutions); i++)
			if (i / CHOIR_VERBS < CHOIR_DELETE && i % CHOIR_VERBS < CHOIR_DELETE)
				rules.resolutions[i] = (uint8_t)sim_random_below(&random, ORDER_REVERSE + 1);
		uint32_t members = (uint32_t)sim_random_range(&random, 2, 5), count = draw_history(&random, ops, members, MOST);
		for (uint32_t i = 0; i < count; i++) {
			const struct choir_op *it = &ops[i];
			theirs[i] =
				(struct order_op){.member = it->member, .number = it->number, .stamp = it->stamp, .seen = it->seen};
			theirs[i].effect = it->effect;
			theirs[i].class = it->class;
			theirs[i].facet = it->facet;
		}
		struct order_set set = {.ops = theirs, .ops_count = count, .members_count = members};
		set.rules = (struct order_rules){.classes = CHOIR_VERBS, .resolutions = rules.resolutions};
		set.rules.delete_loses = rules.delete_loses;
		struct order_sequence sequence;
		struct arena arena;
		arena_init(&arena, 0);
		order_build(&arena, &set, &sequence);
		uint32_t length = choir_sequence(ops, count, &rules, NULL, expected);
		if (length != sequence.ops_count || memcmp(expected, sequence.ops, length * sizeof(expected[0])) != 0)
			print_message("# history %lu\n", (unsigned long)seed);
		assert_int_equal(length, sequence.ops_count);
		assert_memory_equal(expected, sequence.ops, length * sizeof(expected[0]));
		arena_free(&arena);
	}
}

/* ---- The checks can fail ------------------------------------------------------------------------------------------ */

static const struct {
	enum choir_mutation mutation;
	const char *text;
} mutations[] = {
	{CHOIR_HASTY, ""},
	{CHOIR_AMNESIA, ""},
	{CHOIR_TWICE, ""},
	{CHOIR_NEVER, "ought to have"},
	{CHOIR_MUTE, ""},
	{CHOIR_GOSSIP, "is no member, and is sent"},
	{CHOIR_NOISY, "messages in one second"},
	{CHOIR_LEAKY, "bytes of memory"},
	{CHOIR_HOARDER, "in its outbox"},
	{CHOIR_LIAR, ""},
	{CHOIR_SWAPPED, "takes the id at"},
	{CHOIR_CREDULOUS, "has met a session"},
	{CHOIR_ECHO, "which is weak"},
	{CHOIR_OBLIVIOUS, "which needs what it deletes"},
};

static void test_the_checks_can_fail(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(mutations) / sizeof(mutations[0]); i++) {
		print_message("# mutation %d\n", (int)mutations[i].mutation);
		must_fail(mutations[i].mutation, mutations[i].text);
	}
}

/* ---- Rows --------------------------------------------------------------------------------------------------------- */

static void must_have(const struct choir_rows *rows, const char *key, const char *value)
{
	const struct choir_row *row = choir_rows_get(rows, REPLICA_KEYS, str_of(key));
	assert_true(value ? row && str_equal(choir_row_value(row), str_of(value)) : row == NULL);
}

static void test_rows_that_are_not_committed_are_lost(void **state)
{
	(void)state;
	struct choir_rows rows = {0};
	choir_rows_put(&rows, REPLICA_KEYS, STR("b"), STR("1"));
	choir_rows_put(&rows, REPLICA_KEYS, STR("a"), STR("2"));
	choir_rows_commit(&rows);
	choir_rows_put(&rows, REPLICA_KEYS, STR("b"), STR("3"));
	choir_rows_put(&rows, REPLICA_KEYS, STR("b"), STR("4"));
	choir_rows_remove(&rows, REPLICA_KEYS, STR("a"));
	choir_rows_put(&rows, REPLICA_KEYS, STR("c"), STR("5"));
	must_have(&rows, "b", "4");
	must_have(&rows, "a", NULL);
	choir_rows_rollback(&rows);
	must_have(&rows, "a", "2");
	must_have(&rows, "b", "1");
	must_have(&rows, "c", NULL);
	choir_rows_free(&rows);
}

/* ---- Names --------------------------------------------------------------------------------------------------------- */

/* Several users make one name at once, and add to it: one resource in the end, and each addition counts once. Without services that
 * reject or keep silent: what people then decide is beyond this check. */
static void test_one_name_made_by_several(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++) {
		struct choir_options options = choir_options_default(seed, 3);
		options.steps = 300;
		options.faults = 15;
		options.kinds &= ~(1u << SIM_SERVICE_MUTE | 1u << SIM_SERVICE_REFUSES | 1u << SIM_SERVICE_LOGIN);
		options.rivals = true;
		must_be_sound(&options);
	}
}

/* ---- Seeds -------------------------------------------------------------------------------------------------------- */

/* `world`: which kind of. */
static void run_named(const struct sim_named_seed *named, size_t count, const struct choir_options *world)
{
	for (size_t i = 0; i < count; i++) {
		struct choir_options options = choir_options_default(named[i].seed, 2);
		options.steps = named[i].steps;
		options.rivals = world->rivals;
		options.placed = world->placed;
		options.losing_deletes = world->losing_deletes;
		options.members = world->members || world->found;
		options.found = world->found;
		options.removal = world->removal;
		options.needed = world->needed;
		choir_options_vary(&options);
		print_message("# %s\n", named[i].what);
		must_be_sound(&options);
	}
}

static void test_runs_that_failed_once(void **state)
{
	(void)state;
	run_named(choir_named_seeds, sizeof(choir_named_seeds) / sizeof(choir_named_seeds[0]), &(struct choir_options){0});
	run_named(choir_named_rivals, sizeof(choir_named_rivals) / sizeof(choir_named_rivals[0]),
	          &(struct choir_options){.rivals = true});
	run_named(choir_named_placed, sizeof(choir_named_placed) / sizeof(choir_named_placed[0]),
	          &(struct choir_options){.placed = true});
	run_named(choir_named_losing, sizeof(choir_named_losing) / sizeof(choir_named_losing[0]),
	          &(struct choir_options){.losing_deletes = true});
	run_named(choir_named_members, sizeof(choir_named_members) / sizeof(choir_named_members[0]),
	          &(struct choir_options){.members = true});
	run_named(choir_named_found, sizeof(choir_named_found) / sizeof(choir_named_found[0]),
	          &(struct choir_options){.found = true});
	run_named(choir_named_moved, sizeof(choir_named_moved) / sizeof(choir_named_moved[0]),
	          &(struct choir_options){.members = true, .placed = true});
	run_named(choir_named_removed, sizeof(choir_named_removed) / sizeof(choir_named_removed[0]),
	          &(struct choir_options){.removal = true, .members = true, .placed = true});
	run_named(choir_named_needed, sizeof(choir_named_needed) / sizeof(choir_named_needed[0]),
	          &(struct choir_options){.needed = true});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows_that_are_not_committed_are_lost),
		cmocka_unit_test(test_the_example_of_the_design),
		cmocka_unit_test(test_of_two_replaces_the_later_counts),
		cmocka_unit_test(test_a_delete_wins_or_loses_whenever_it_comes),
		cmocka_unit_test(test_the_room_and_the_checks_mean_the_same_order),
		cmocka_unit_test(test_the_same_seed_gives_the_same_run),
		cmocka_unit_test(test_without_faults_all_is_acknowledged),
		cmocka_unit_test(test_the_checks_can_fail),
		cmocka_unit_test(test_randomness_from_outside_is_noticed),
		cmocka_unit_test(test_one_name_made_by_several),
		cmocka_unit_test(test_runs_that_failed_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
