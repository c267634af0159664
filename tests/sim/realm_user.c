/* Users, and what they want. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

static int by_time(const void *a, const void *b)
{
	const struct realm_action *x = a, *y = b;
	return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

static enum realm_wish draw_wish(uint64_t dice, bool pool)
{
	static const struct {
		enum realm_wish wish;
		uint32_t weight;
	} of_containers[] = {{REALM_WANTS_CHILD, 36},         {REALM_WANTS_NAME, 12},    {REALM_WANTS_CHILD_GONE, 14},
	                     {REALM_WANTS_CONTAINER_GONE, 2}, {REALM_WANTS_ALL_GONE, 3}, {REALM_WANTS_LIST, 18},
	                     {REALM_WANTS_SITE, 9},           {REALM_WANTS_NO_SITE, 6}},
	  of_pools[] = {{REALM_WANTS_SIZE, 18},  {REALM_WANTS_MORE, 36}, {REALM_WANTS_POOL_GONE, 2},
	                {REALM_WANTS_WHOLE, 28}, {REALM_WANTS_SITE, 9},  {REALM_WANTS_NO_SITE, 7}};
	uint32_t of = (uint32_t)(dice % 100);
	for (uint32_t i = 0;; i++) {
		uint32_t weight = pool ? of_pools[i].weight : of_containers[i].weight;
		if (of < weight)
			return pool ? of_pools[i].wish : of_containers[i].wish;
		of -= weight;
	}
}

void realm_draw(struct realm *realm)
{
	struct sim_random random;
	uint64_t end_us = (uint64_t)realm->options.steps * REALM_STEP_US;
	sim_random_seed(&random, realm->options.seed, 2);
	realm->actions_count = realm->options.actions;
	realm->actions = calloc((size_t)realm->actions_count + 1, sizeof(*realm->actions));
	CHECK(realm->actions != NULL);
	for (uint32_t i = 0; i < realm->actions_count; i++) {
		struct realm_action *it = &realm->actions[i];
		it->dice = sim_random_next(&random);
		it->at_us = sim_random_below(&random, end_us);
		if (i > 0 && sim_random_chance(&random, 0.4)) /* with another one, at the same moment */
			it->at_us = realm->actions[i - 1].at_us + sim_random_below(&random, 100000);
		it->site = (uint32_t)sim_random_below(&random, realm->options.sites);
		it->slot = (uint32_t)sim_random_below(&random, REALM_SLOTS);
		it->wish = draw_wish(sim_random_next(&random), it->slot >= REALM_CONTAINERS);
		it->name = (uint32_t)sim_random_below(&random, REALM_NAMES);
	}
	qsort(realm->actions, realm->actions_count, sizeof(*realm->actions), by_time);
	for (uint32_t i = 0; i < realm->actions_count; i++)
		realm->actions[i].skipped = !sim_list_has(&realm->options.keep_actions, i);
	for (uint32_t i = 0; i < REALM_SLOTS; i++)
		realm->slots[i] = REALM_NOBODY;
}

/* ---- What they ask for ------------------------------------------------------------------------------------------------------- */

static bool has_nothing(const struct cross_division *division, site_id site)
{
	for (uint32_t i = 0; i < division->count; i++)
		if (division->shares[i].site == site)
			return division->shares[i].weight == 0;
	return false;
}

/* A site that has no share may be about to leave, and what it is given by hand at that moment it takes along (docs/cross.md): nobody does that here. */
static void draw_weights(struct realm_site *it, const struct replica_view *view, uint64_t dice,
                         struct cross_division *division)
{
	struct cross_division present;
	realm_division_now(it, view, &present);
	*division = (struct cross_division){0};
	for (int first = 1; first >= 0; first--)
		for (uint32_t i = 0; i < view->members_count; i++)
			if ((view->members[i].site == view->prime) == first && !view->members[i].leaving &&
			    !view->members[i].joining)
				cross_division_add(
					division, view->members[i].site,
					has_nothing(&present, view->members[i].site) ? 0 : (first ? 1 : 0) + (dice >> (2 * i)) % 4, NULL);
	for (uint32_t i = 0; i < division->count; i++)
		if (division->shares[i].weight > 0)
			return;
	*division = present;
}

static void make_slot(struct realm *realm, const struct realm_action *action)
{
	bool pool = action->slot >= REALM_CONTAINERS;
	uint64_t dice = sim_mix(action->dice, 3);
	uint32_t number = realm_thing_new(realm, pool ? REALM_POOL : REALM_CONTAINER);
	struct realm_thing *thing = &realm->things[number];
	struct cross_site sites[REALM_SITES];
	uint32_t count = 0;
	thing->maker = action->site;
	thing->optimistic = realm->options.optimistic && dice % 2 == 0;
	thing->cascades = dice / 2 % 2 == 0;
	thing->unset = dice / 4 % 2 == 0;
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		uint32_t site = (action->site + i) % realm->options.sites;
		if (i < 2 || dice >> (8 + i) & 1) {
			thing->holders |= 1u << site;
			sites[count++] = (struct cross_site){realm->sites[site].id, STR("")};
		}
	}
	struct realm_job *job = realm_job_new(realm, REALM_DO, action->site, number);
	job->holders = thing->holders;
	job->request.verb = REALM_MAKE;
	if (pool) {
		job->request.size = job->request.total = thing->least = (int64_t)(dice >> 20) % 1000;
		cross_division_evenly(sites, count, &job->request.division);
	}
	realm->slots[action->slot] = number;
	realm_job_begin(realm, job);
}

static void make_child(struct realm *realm, const struct realm_action *action, const struct replica_view *container)
{
	if (realm->things_count + 8 >= REALM_THINGS)
		return;
	uint32_t number = realm_thing_new(realm, REALM_CHILD);
	struct realm_thing *thing = &realm->things[number];
	uint64_t dice = sim_mix(action->dice, 4);
	thing->container = realm->slots[action->slot];
	thing->maker = action->site;
	thing->holders = 1u << action->site;
	for (uint32_t i = 0; i < container->members_count && dice % 5 < 2; i++)
		if (dice >> (8 + i) & 1 && !container->members[i].leaving && !container->members[i].joining)
			thing->holders |= 1u << realm_site_of(realm, container->members[i].site);
	struct realm_job *job = realm_job_new(realm, REALM_DO, action->site, number);
	job->holders = thing->holders;
	job->request.verb = REALM_MAKE;
	job->request.name = action->name;
	realm_job_begin(realm, job);
}

static void change_child(struct realm *realm, const struct realm_action *action)
{
	uint32_t children[REALM_THINGS];
	uint32_t count = realm_children_of(&realm->sites[action->site], realm->slots[action->slot], children);
	if (count == 0)
		return;
	struct realm_job *job = realm_job_new(realm, REALM_DO, action->site, children[(action->dice >> 16) % count]);
	job->request.verb = action->wish == REALM_WANTS_NAME ? REALM_RENAME : REALM_DELETE;
	job->request.name = action->name;
	realm_job_begin(realm, job);
}

static void change_pool(struct realm *realm, const struct realm_action *action, const struct replica_view *view)
{
	struct realm_site *it = &realm->sites[action->site];
	struct realm_thing *thing = &realm->things[realm->slots[action->slot]];
	struct realm_job *job = realm_job_new(realm, REALM_DO, action->site, realm->slots[action->slot]);
	uint64_t dice = sim_mix(action->dice, 5);
	bool sets = action->wish == REALM_WANTS_SIZE && !thing->unset;
	job->request.verb = sets ? REALM_SET : REALM_ADD;
	job->request.size = job->request.total = 1 + (int64_t)(dice % (sets ? 1000 : 20));
	if (sets && dice >> 32 & 1)
		draw_weights(it, view, dice >> 33, &job->request.division);
	else
		realm_division_now(it, view, &job->request.division);
	realm_job_begin(realm, job);
}

static void change_sites(struct realm *realm, const struct realm_action *action)
{
	bool adds = action->wish == REALM_WANTS_SITE;
	struct realm_job *job =
		realm_job_new(realm, adds ? REALM_EXTEND : REALM_WITHDRAW, action->site, realm->slots[action->slot]);
	job->other = (uint32_t)(sim_mix(action->dice, 6) % realm->options.sites);
	if (job->other == job->site && adds)
		job->other = (job->other + 1) % realm->options.sites;
	realm_job_begin(realm, job);
}

static void ask(struct realm *realm, const struct realm_action *action, const struct replica_view *view)
{
	uint32_t thing = realm->slots[action->slot];
	struct realm_job *job;
	switch (action->wish) {
	case REALM_WANTS_CHILD: make_child(realm, action, view); break;
	case REALM_WANTS_NAME:
	case REALM_WANTS_CHILD_GONE: change_child(realm, action); break;
	case REALM_WANTS_SIZE:
	case REALM_WANTS_MORE: change_pool(realm, action, view); break;
	case REALM_WANTS_SITE:
	case REALM_WANTS_NO_SITE: change_sites(realm, action); break;
	case REALM_WANTS_CONTAINER_GONE:
	case REALM_WANTS_POOL_GONE:
		job = realm_job_new(realm, REALM_DO, action->site, thing);
		job->request.verb = REALM_DELETE;
		realm_job_begin(realm, job);
		break;
	case REALM_WANTS_ALL_GONE: realm_job_begin(realm, realm_job_new(realm, REALM_EMPTY, action->site, thing)); break;
	case REALM_WANTS_LIST: realm_job_begin(realm, realm_job_new(realm, REALM_LIST, action->site, thing)); break;
	case REALM_WANTS_WHOLE: realm_job_begin(realm, realm_job_new(realm, REALM_READ, action->site, thing)); break;
	case REALM_WISHES: break;
	}
}

void realm_act_user(struct realm *realm, uint32_t number)
{
	const struct realm_action *action = &realm->actions[number];
	struct realm_site *it = &realm->sites[action->site];
	uint32_t thing = realm->slots[action->slot];
	struct arena arena;
	struct replica_view view;
	if (!it->replica)
		return;
	realm->figures.actions++;
	/* What was deleted, or could not be made, somebody makes anew. */
	if (thing == REALM_NOBODY || realm->things[thing].deleted ||
	    (!realm->things[thing].made && action->dice % 8 == 0)) {
		make_slot(realm, action);
		return;
	}
	realm_tell(realm, "s%" PRIu32 ": a user's action %" PRIu32 ", wish %d on thing %" PRIu32, it->number, number,
	           (int)action->wish, thing);
	arena_init(&arena, 0);
	if (realm_look(it, &arena, thing, &view) && realm_member(&view, it->id) &&
	    realm_member(&view, it->id)->local_id.length > 0)
		ask(realm, action, &view);
	arena_free(&arena);
}

/* ---- In the end --------------------------------------------------------------------------------------------------------------- */

/* A site that has it; NOBODY: none. */
static uint32_t somewhere(struct realm *realm, uint32_t thing, uint32_t from)
{
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		uint32_t site = (from + i) % realm->options.sites;
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		bool here = realm->sites[site].replica && realm_look(&realm->sites[site], &arena, thing, &view) &&
		            realm->items[site][thing].there;
		arena_free(&arena);
		if (here)
			return site;
	}
	return REALM_NOBODY;
}

void realm_read_all(struct realm *realm)
{
	for (uint32_t i = 0; i < realm->things_count; i++) {
		if (realm->things[i].kind == REALM_CHILD)
			continue;
		for (uint32_t site = 0; site < realm->options.sites; site++) {
			if (somewhere(realm, i, site) != site)
				continue;
			struct realm_job *job =
				realm_job_new(realm, realm->things[i].kind == REALM_POOL ? REALM_READ : REALM_LIST, site, i);
			job->final = true;
			realm_job_begin(realm, job);
		}
	}
}

void realm_delete_all(struct realm *realm)
{
	for (uint32_t i = 0; i < realm->things_count; i++) {
		uint32_t site = somewhere(realm, i, (uint32_t)sim_random_below(&realm->random, realm->options.sites));
		bool container = realm->things[i].kind == REALM_CONTAINER;
		if (site == REALM_NOBODY || (realm->things[i].kind == REALM_CHILD && i % 3 != 0))
			continue; /* those go with their container */
		struct realm_job *job = realm_job_new(realm, container ? REALM_EMPTY : REALM_DO, site, i);
		job->request.verb = REALM_DELETE;
		realm_job_begin(realm, job);
	}
}
