/* A site is dead, and others have much for it: that costs rows, and next to no work as long as it is dead:
 * neither timers nor messages become more with what waits. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, HOUR = 3600, ALL3 = 7, DEAD = 2 };

/* Of the first site, in an hour. */
struct cost {
	uint64_t turns; /* timers that fired, and messages of all */
	uint64_t rows;  /* read or put */
	uint32_t kept;  /* rows */
};

static struct cost sum_of(const struct world *world)
{
	const struct world_site *site = &world->sites[0];
	return (struct cost){.turns = site->ticks + world->sent, .rows = site->reads + site->puts};
}

/* `operations` are made for a site that is dead, on so many replicants, and an hour goes by. Then it is back, and has all of them. */
static struct cost cost_of(uint32_t replicants, uint32_t operations, bool noticed)
{
	struct world *world = world_new(3);
	for (uint32_t i = 1; i <= replicants; i++)
		world_create(world, 0, i, ALL3, "create 0");
	world_go(world, 60 * SECOND);
	world_crash(world, DEAD);
	world->sites[DEAD].unreachable = noticed;
	world_met(world);
	for (uint32_t i = 0; i < operations; i++) {
		world_ask(world, 0, 1 + i % replicants, "add 1");
		world_go(world, SECOND / 10);
	}
	world_go(world, 10 * 60 * (uint64_t)SECOND); /* what is tried again comes ever more rarely */
	struct cost before = sum_of(world);
	world_go(world, HOUR * (uint64_t)SECOND);
	struct cost cost = sum_of(world);
	cost.turns -= before.turns;
	cost.rows -= before.rows;
	cost.kept = world_rows(world, 0, REPLICA_OPERATIONS);
	world->sites[DEAD].unreachable = false;
	world_start(world, DEAD);
	world_met(world);
	world_go(world, 20 * 60 * (uint64_t)SECOND);
	for (uint32_t i = 1; i <= replicants; i++)
		assert_int_equal(world_item(world, DEAD, i)->value, operations / replicants);
	assert_int_equal(world_rows(world, 0, REPLICA_OPERATIONS), 0);
	world_free(world);
	return cost;
}

static void check(bool noticed)
{
	struct cost few = cost_of(1, 10, noticed);
	struct cost many[] = {cost_of(1, 1000, noticed), cost_of(500, 1000, noticed)};
	for (size_t i = 0; i < sizeof(many) / sizeof(many[0]); i++) {
		assert_int_equal(many[i].kept, 1000);
		assert_in_range(many[i].turns, 1, few.turns * 3 / 2);
		/* At most each of them a time or two whenever it is tried again: about once a minute. */
		assert_in_range(many[i].rows, 0, few.turns * 1000);
	}
	assert_in_range(few.turns, 1, 5 * 60); /* about one of each kind a minute */
}

static void test_dead_and_all_know_it(void **state)
{
	(void)state;
	check(true);
}

static void test_dead_and_nobody_knows(void **state)
{
	(void)state;
	check(false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dead_and_all_know_it),
		cmocka_unit_test(test_dead_and_nobody_knows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
