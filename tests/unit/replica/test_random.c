/* Histories by chance: members are cut off, messages are lost, services fail and forget, agents crash. Then all is well again, and
 * after a while every member has the same, nothing is pending, and each addition that was acknowledged counted once.
 * The simulator does this at large; here it is to find out quickly. CHEOPS_SEED=N runs one. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, REPLICANTS = 3, STEPS = 60, CLASSES = 6 };

struct chance {
	uint64_t state;
};

static uint32_t draw(struct chance *chance, uint32_t below)
{
	chance->state = chance->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((chance->state >> 33) % below);
}

static void ask(struct world *world, struct chance *chance, uint32_t site, uint32_t number)
{
	char text[32];
	uint32_t what = draw(chance, 20);
	if (what < 4 && world->rules.resolutions)
		snprintf(text, sizeof(text), "times %u", 2 + draw(chance, 3));
	else if (what < 8)
		snprintf(text, sizeof(text), "add %u", 1 + draw(chance, 9));
	else if (what < 13)
		snprintf(text, sizeof(text), "mark %c", 'a' + (char)draw(chance, 26));
	else if (what < 19)
		snprintf(text, sizeof(text), "set %u", 100 + draw(chance, 900));
	else
		snprintf(text, sizeof(text), "delete");
	if (world->sites[site].replica)
		world_ask(world, site, number, text);
}

static void disturb(struct world *world, struct chance *chance, bool services)
{
	uint32_t site = draw(chance, world->sites_count);
	switch (draw(chance, services ? 8 : 4)) {
	case 0: world_cut(world, draw(chance, 1u << world->sites_count)); break;
	case 1: world_cut(world, 0); break;
	case 2: world->lose_percent = draw(chance, 2) * 30; break;
	case 3:
		if (world->sites[site].replica)
			world_crash(world, site);
		else
			world_start(world, site);
		break;
	case 4: world->sites[site].mode = SERVICE_FINE; break;
	case 5: world->sites[site].mode = SERVICE_DOWN; break;
	case 6: world->sites[site].mode = SERVICE_LOSES_ANSWERS; break;
	case 7: world->sites[site].mode = SERVICE_LOSES_REQUESTS; break;
	}
}

static void heal(struct world *world)
{
	world_cut(world, 0);
	world->lose_percent = world->double_percent = 0;
	for (uint32_t i = 0; i < world->sites_count; i++) {
		world->sites[i].mode = SERVICE_FINE;
		if (!world->sites[i].replica)
			world_start(world, i);
	}
}

/* What is left, for who looks for the reason. */
static void show(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		for (uint32_t n = 1; n <= REPLICANTS; n++) {
			struct replicant *r;
			if (replicant_load(world->sites[i].replica, world_id(n), &r) != 0 || r->kind != REPLICANT_LIVE)
				continue;
			const struct report *own = own_report(r);
			print_message("site %u replicant %u: task %d, unsure %d, redo %d, withheld %u, stuck %d, diverged %d\n", i,
			              n, r->task.what, r->unsure, r->redo, r->withheld_count, own->stuck, own->diverged);
			for (uint32_t k = 0; k < r->ops_count; k++)
				print_message("  op %u.%u effect %u class %u\n", r->ops[k]->member, r->ops[k]->number,
				              r->ops[k]->effect, r->ops[k]->class);
			for (uint32_t k = 0; k < r->steps_count; k++)
				print_message("  x %u.%u how %u\n", r->steps[k].member, r->steps[k].number, r->steps[k].how);
			for (uint32_t m = 0; m < r->members_count; m++) {
				const struct member *member = &r->members[m];
				print_message("  member %u: report %u stuck %d told %u exceptions %u:", m, member->report.number,
				              member->report.stuck, member->told, member->report.exceptions_count);
				for (uint32_t k = 0; k < r->members_count; k++)
					print_message(" %u/%u/%u/%u", r->base[k], member->report.settled[k], member->has[k], r->known[k]);
				print_message("\n");
			}
		}
	}
}

static void check_same(struct world *world, uint32_t number, uint64_t seed)
{
	struct world_item *first = world_item(world, 0, number);
	for (uint32_t i = 1; i < world->sites_count; i++) {
		struct world_item *other = world_item(world, i, number);
		bool same = !first == !other && (!first || (first->value == other->value && first->mark == other->mark));
		if (!same)
			show(world);
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
				show(world);
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

static void run(uint64_t seed, bool services, const uint8_t *resolutions)
{
	struct chance chance = {seed * 2654435761u + 17};
	struct world *world = world_new(2 + draw(&chance, 3));
	world->random = seed;
	world->shuffle = draw(&chance, 2);
	world->double_percent = draw(&chance, 2) * 20;
	world->latency_us = 1000 + draw(&chance, 100000);
	world->rules = (struct order_rules){.classes = CLASSES,
	                                    .resolutions = resolutions,
	                                    .create_replays = draw(&chance, 2),
	                                    .delete_loses = draw(&chance, 4) == 0};
	for (uint32_t i = 1; i <= REPLICANTS; i++)
		world_create(world, draw(&chance, world->sites_count), i, (1u << world->sites_count) - 1, "create 7");
	world_go(world, draw(&chance, 2) * SECOND);
	for (uint32_t i = 0; i < STEPS; i++) {
		if (draw(&chance, 3) == 0)
			disturb(world, &chance, services);
		else
			ask(world, &chance, draw(&chance, world->sites_count), 1 + draw(&chance, REPLICANTS));
		if (draw(&chance, 2) == 0)
			world_go(world, draw(&chance, 20) * 100000);
	}
	heal(world);
	world_go(world, 2000ull * SECOND);
	for (uint32_t i = 1; i <= REPLICANTS; i++)
		check_same(world, i, seed);
	if (!all_lost_it(world))
		check_quiet(world, seed);
	world_free(world);
}

static void run_all(bool services, const uint8_t *resolutions, uint64_t count)
{
	const char *one = getenv("CHEOPS_SEED");
	const char *many = getenv("CHEOPS_SEEDS");
	if (one) {
		run(strtoull(one, NULL, 10), services, resolutions);
		return;
	}
	count = many ? strtoull(many, NULL, 10) : count;
	for (uint64_t seed = 1; seed <= count; seed++)
		run(seed, services, resolutions);
}

static void test_network_and_crashes(void **state)
{
	(void)state;
	run_all(false, NULL, 100);
}

static void test_services_too(void **state)
{
	(void)state;
	run_all(true, NULL, 100);
}

/* `times` and `add` do not commute: who did them in another order starts from a `set`, or takes the state of another one. */
static void test_order_matters(void **state)
{
	(void)state;
	uint8_t resolutions[CLASSES * CLASSES];
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[3 * CLASSES + 5] = resolutions[5 * CLASSES + 3] = ORDER_KEEP;
	run_all(false, resolutions, 100);
	run_all(true, resolutions, 100);
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
