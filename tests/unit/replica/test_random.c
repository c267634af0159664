/* Histories by chance: members are cut off, messages are lost, services fail and forget, agents crash. Then all is well again, and
 * after a while every member has the same, nothing is pending, and each addition that was acknowledged counted once.
 * The simulator does this at large; here it is to find out quickly. */
#include "chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SECOND = 1000000, REPLICANTS = 3, STEPS = 60, CLASSES = 6 };

static void ask(struct world *world, struct chance *chance, uint32_t site, uint32_t number)
{
	char text[32];
	uint32_t what = chance_draw(chance, 20);
	if (what < 4 && world->rules.resolutions)
		snprintf(text, sizeof(text), "times %u", 2 + chance_draw(chance, 3));
	else if (what < 8)
		snprintf(text, sizeof(text), "add %u", 1 + chance_draw(chance, 9));
	else if (what < 13)
		snprintf(text, sizeof(text), "mark %c", 'a' + (char)chance_draw(chance, 26));
	else if (what < 19)
		snprintf(text, sizeof(text), "set %u", 100 + chance_draw(chance, 900));
	else
		snprintf(text, sizeof(text), "delete");
	if (world->sites[site].replica)
		world_ask(world, site, number, text);
}

static void disturb(struct world *world, struct chance *chance, bool services)
{
	uint32_t site = chance_draw(chance, world->sites_count);
	switch (chance_draw(chance, services ? 8 : 4)) {
	case 0: world_cut(world, chance_draw(chance, 1u << world->sites_count)); break;
	case 1: world_cut(world, 0); break;
	case 2: world->lose_percent = chance_draw(chance, 2) * 30; break;
	case 3: chance_crash(world, site); break;
	case 4: chance_mood(world, site, 0); break;
	case 5: chance_mood(world, site, 1); break;
	case 6: chance_mood(world, site, 2); break;
	case 7: chance_mood(world, site, 3); break;
	}
}

static void check_same(struct world *world, uint32_t number, uint64_t seed)
{
	struct world_item *first = world_item(world, 0, number);
	for (uint32_t i = 1; i < world->sites_count; i++) {
		struct world_item *other = world_item(world, i, number);
		bool same = !first == !other && (!first || (first->value == other->value && first->mark == other->mark));
		if (!same)
			chance_show(world, REPLICANTS);
		if (!same)
			fail_msg("seed %llu, replicant %u: %lld%c at site 0, %lld%c at site %u", (unsigned long long)seed, number,
			         first ? (long long)first->value : -1, first ? first->mark : '!',
			         other ? (long long)other->value : -1, other ? other->mark : '!', i);
	}
}

static void check_quiet(struct world *world, uint64_t seed)
{
	static const enum replica_table tables[] = {REPLICA_OUTBOX, REPLICA_BLOBS, REPLICA_OPERATIONS, REPLICA_LANES};
	uint32_t count = world->rules.resolutions ? 2 : 4; /* some are kept where the order matters */
	for (uint32_t i = 0; i < world->sites_count; i++)
		for (uint32_t t = 0; t < count; t++)
			if (world_rows(world, i, tables[t]) != 0) {
				chance_show(world, REPLICANTS);
				fail_msg("seed %llu: %u rows in table %u at site %u", (unsigned long long)seed,
				         world_rows(world, i, tables[t]), tables[t], i);
			}
}

/* Where a delete loses, two that are concurrent with changes of the other side both lose, though everybody has deleted it: there is
 * nobody left to take the state from. It is shown as diverged, and nothing is made up. */
static bool all_lost_it(struct world *world)
{
	uint64_t diverged = 0;
	for (uint32_t i = 0; i < world->sites_count; i++)
		diverged += replica_counters(world->sites[i].replica).diverged;
	return world->rules.delete_loses && diverged > 0;
}

struct how {
	bool services;
	const uint8_t *resolutions;
};

static void run(uint64_t seed, const void *context)
{
	const struct how *how = context;
	struct chance chance = chance_of(seed);
	struct world *world = chance_world(&chance, seed, 2);
	world->rules = (struct order_rules){.classes = CLASSES,
	                                    .resolutions = how->resolutions,
	                                    .create_replays = chance_draw(&chance, 2),
	                                    .delete_loses = chance_draw(&chance, 4) == 0};
	for (uint32_t i = 1; i <= REPLICANTS; i++)
		world_create(world, chance_draw(&chance, world->sites_count), i, (1u << world->sites_count) - 1, "create 7");
	world_go(world, chance_draw(&chance, 2) * SECOND);
	for (uint32_t i = 0; i < STEPS; i++) {
		if (chance_draw(&chance, 3) == 0)
			disturb(world, &chance, how->services);
		else
			ask(world, &chance, chance_draw(&chance, world->sites_count), 1 + chance_draw(&chance, REPLICANTS));
		if (chance_draw(&chance, 2) == 0)
			world_go(world, chance_draw(&chance, 20) * 100000);
	}
	chance_heal(world);
	world_go(world, 2000ull * SECOND);
	for (uint32_t i = 1; i <= REPLICANTS; i++)
		check_same(world, i, seed);
	if (!all_lost_it(world))
		check_quiet(world, seed);
	world_free(world);
}

static void test_network_and_crashes(void **state)
{
	(void)state;
	chance_seeds(100, run, &(struct how){false, NULL});
}

static void test_services_too(void **state)
{
	(void)state;
	chance_seeds(100, run, &(struct how){true, NULL});
}

/* `times` and `add` do not commute: who did them in another order starts from a `set`, or takes the state of another one. */
static void test_order_matters(void **state)
{
	(void)state;
	uint8_t resolutions[CLASSES * CLASSES];
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[3 * CLASSES + 5] = resolutions[5 * CLASSES + 3] = ORDER_KEEP;
	chance_seeds(100, run, &(struct how){false, resolutions});
	chance_seeds(100, run, &(struct how){true, resolutions});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_network_and_crashes),
		cmocka_unit_test(test_services_too),
		cmocka_unit_test(test_order_matters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
