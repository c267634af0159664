/* Long histories of what is divided: members are cut off, agents crash, services fail and forget, and changes go on for longer than what is kept for
 * running them again. In the end each site has its part of the same whole, and nobody is stuck. */
#include "chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SECOND = 1000000, STEPS = 160, CLASSES = 8, MARK = 2, ADD = 3, LET = 7, KEPT = 6 };

/* As the sample's pools have it: what is added lands on top of what was set. */
static void set_rules(struct world *world)
{
	static uint8_t resolutions[CLASSES * CLASSES];
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[LET * CLASSES + ADD] = ORDER_KEEP;
	resolutions[ADD * CLASSES + LET] = ORDER_REVERSE;
	world->span = REPLICA_DIVIDED;
	world->options.kept_most = KEPT;
	world->rules = (struct order_rules){.classes = CLASSES, .resolutions = resolutions, .create_replays = true};
}

struct how {
	bool services;
	uint32_t sets; /* of a hundred operations, that many set the whole */
};

static void ask(struct world *world, struct chance *chance, uint32_t site, const struct how *how)
{
	char text[32];
	uint32_t what = chance_draw(chance, 100);
	if (what < how->sets)
		snprintf(text, sizeof(text), "set %u", 100 + chance_draw(chance, 900));
	else if (what < 40)
		snprintf(text, sizeof(text), "let %u", 1 + chance_draw(chance, 900));
	else if (what < 50)
		snprintf(text, sizeof(text), "mark %c", 'a' + (char)chance_draw(chance, 26));
	else
		snprintf(text, sizeof(text), "add %u", 1 + chance_draw(chance, 9));
	if (world->sites[site].replica)
		world_ask(world, site, 1, text);
}

static void disturb(struct world *world, struct chance *chance, bool services)
{
	uint32_t site = chance_draw(chance, world->sites_count);
	switch (chance_draw(chance, services ? 8 : 5)) {
	case 0: world_cut(world, chance_draw(chance, 1u << world->sites_count)); break;
	case 1:
	case 2: world_cut(world, 0); break;
	case 3: world->lose_percent = chance_draw(chance, 2) * 30; break;
	case 4: chance_crash(world, site); break;
	default: chance_mood(world, site, chance_draw(chance, 3)); break;
	}
}

static uint64_t restores; /* so that it is known that this is tried */

static void check(struct world *world, uint64_t seed)
{
	struct world_item *first = world_item(world, 0, 1);
	for (uint32_t i = 0; i < world->sites_count; i++) {
		struct world_item *item = world_item(world, i, 1);
		struct replicant *r;
		assert_int_equal(replicant_load(world->sites[i].replica, world_id(1), &r), 0);
		bool fine = first && item && item->value == first->value * (i + 1) && item->mark == first->mark &&
		            !own_report(r)->stuck && !own_report(r)->diverged && own_report(r)->exceptions_count == 0;
		if (!fine)
			chance_show(world, 1);
		if (!fine)
			fail_msg("seed %llu: %lld%c at site 0, %lld%c at site %u", (unsigned long long)seed,
			         first ? (long long)first->value : -1, first ? first->mark : '!',
			         item ? (long long)item->value : -1, item ? item->mark : '!', i);
		lane_order(r);
		/* In the end not more is kept than has to be, and it is known from where to begin. */
		uint32_t behind = 0;
		bool resets = false;
		for (uint32_t k = r->sequence.ops_count; k-- > 0 && !resets; behind += !resets)
			resets = r->ops[r->sequence.ops[k]]->effect <= ORDER_REPLACE;
		if (behind > KEPT || (r->ops_count > 0 && !resets && !r->checkpointed)) {
			chance_show(world, 1);
			fail_msg("seed %llu: %u operations are kept at site %u, %s a checkpoint", (unsigned long long)seed,
			         r->ops_count, i, r->checkpointed ? "with" : "without");
		}
		restores += r->checkpointed;
	}
}

static void run(uint64_t seed, const void *context)
{
	const struct how *how = context;
	struct chance chance = chance_of(seed);
	struct world *world = chance_world(&chance, seed, 2);
	set_rules(world);
	for (uint32_t i = 0; i < world->sites_count; i++) { /* with these options */
		world_crash(world, i);
		world_start(world, i);
	}
	world_create(world, chance_draw(&chance, world->sites_count), 1, (1u << world->sites_count) - 1, "create 7");
	world_go(world, 2 * SECOND);
	for (uint32_t i = 0; i < STEPS; i++) {
		if (chance_draw(&chance, 6) == 0)
			disturb(world, &chance, how->services);
		else
			ask(world, &chance, chance_draw(&chance, world->sites_count), how);
		if (chance_draw(&chance, 2) == 0)
			world_go(world, chance_draw(&chance, 20) * 100000);
	}
	chance_heal(world);
	world_go(world, 2000ull * SECOND);
	check(world, seed);
	world_free(world);
}

static void test_changes_alone(void **state)
{
	(void)state;
	chance_seeds(300, run, &(struct how){false, 0});
	assert_true(restores > 0);
}

static void test_with_what_sets_the_whole(void **state)
{
	(void)state;
	chance_seeds(300, run, &(struct how){false, 3});
}

static void test_services_that_fail(void **state)
{
	(void)state;
	chance_seeds(300, run, &(struct how){true, 1});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_changes_alone),
		cmocka_unit_test(test_with_what_sets_the_whole),
		cmocka_unit_test(test_services_that_fail),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
