#include "chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct chance chance_of(uint64_t seed)
{
	return (struct chance){seed * 2654435761u + 17};
}

uint32_t chance_draw(struct chance *chance, uint32_t below)
{
	chance->state = chance->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((chance->state >> 33) % below);
}

struct world *chance_world(struct chance *chance, uint64_t seed, uint32_t more)
{
	struct world *world = world_new(2 + chance_draw(chance, more + 1));
	world->random = seed;
	world->shuffle = chance_draw(chance, 2);
	world->double_percent = chance_draw(chance, 2) * 20;
	world->latency_us = 1000 + chance_draw(chance, 100000);
	return world;
}

void chance_crash(struct world *world, uint32_t site)
{
	if (world->sites[site].replica)
		world_crash(world, site);
	else
		world_start(world, site);
}

void chance_mood(struct world *world, uint32_t site, uint32_t mood)
{
	static const enum service_mode moods[] = {SERVICE_FINE, SERVICE_DOWN, SERVICE_LOSES_ANSWERS,
	                                          SERVICE_LOSES_REQUESTS};
	world->sites[site].mode = moods[mood];
}

void chance_heal(struct world *world)
{
	world_cut(world, 0);
	world->lose_percent = world->double_percent = 0;
	for (uint32_t i = 0; i < world->sites_count; i++) {
		world->sites[i].mode = SERVICE_FINE;
		if (!world->sites[i].replica)
			world_start(world, i);
	}
}

static void show_replicant(const struct replicant *r)
{
	const struct report *own = own_report((struct replicant *)r);
	print_message("task %d, unsure %d, redo %d, withheld %u, stuck %d, foreign %d, diverged %d, created %d\n",
	              r->task.what, r->unsure, r->redo, r->withheld_count, own->stuck, own->foreign, own->diverged,
	              own->created);
	print_message("  checkpoint %d, another one is read or waits %d\n", r->checkpointed, r->candidate != NULL);
	for (uint32_t k = 0; k < r->ops_count; k++)
		print_message("  op %u.%u effect %u class %u flags %u\n", r->ops[k]->member, r->ops[k]->number,
		              r->ops[k]->effect, r->ops[k]->class, r->ops[k]->flags);
	for (uint32_t k = 0; k < r->steps_count; k++)
		print_message("  x %u.%u how %u\n", r->steps[k].member, r->steps[k].number, r->steps[k].how);
	for (uint32_t m = 0; m < r->members_count; m++) {
		const struct member *member = &r->members[m];
		print_message("  member %u: report %u stuck %d foreign %d told %u exceptions %u:", m, member->report.number,
		              member->report.stuck, member->report.foreign, member->told, member->report.exceptions_count);
		for (uint32_t k = 0; k < r->members_count; k++)
			print_message(" %u/%u/%u/%u", r->base[k], member->report.settled[k], member->has[k], r->known[k]);
		print_message("\n");
	}
}

void chance_show(struct world *world, uint32_t count)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		for (uint32_t n = 1; n <= count; n++) {
			struct replicant *r;
			if (replicant_load(world->sites[i].replica, world_id(n), &r) != 0)
				continue;
			print_message("site %u replicant %u: ", i, n);
			if (r->kind == REPLICANT_LIVE)
				show_replicant(r);
			else if (r->kind == REPLICANT_ALIAS)
				print_message("alias of %u\n", r->alias.bytes[15]);
			else
				print_message("gone\n");
		}
	}
}

void chance_seeds(uint64_t count, void (*run)(uint64_t seed, const void *how), const void *how)
{
	const char *one = getenv("CHEOPS_SEED"), *many = getenv("CHEOPS_SEEDS");
	if (one) {
		run(strtoull(one, NULL, 10), how);
		return;
	}
	count = many ? strtoull(many, NULL, 10) : count;
	for (uint64_t seed = 1; seed <= count; seed++)
		run(seed, how);
}
