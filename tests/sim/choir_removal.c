/* A site is removed from the mesh (`cheops site remove`) while all goes on: its process ends for good, the others hear of it one after another, and
 * it is out of all resources. What it alone had is lost; nobody waits for it, and nothing is owed to it.
 *
 * Whom it had added to a resource, and nobody else knows of, nobody can know of: so it adds nobody in these worlds. Nor does anything refer to
 * something else here: what that waits for may have gone with the site; and no delete loses: what wins against it may have been there alone. */
#include "sim/choir.h"

#include "sim/alloc.h"

#include <inttypes.h>

enum { HEAR_MOST_US = 8 * CHOIR_SECOND_US };

void choir_plan_removal(struct choir *choir)
{
	struct sim_random random;
	choir->victim = CHOIR_NOBODY;
	if (!choir->options.removal)
		return;
	sim_random_seed(&random, choir->options.seed, 10);
	choir->victim = (uint32_t)sim_random_below(&random, choir->options.sites);
	uint64_t span_us = (uint64_t)choir->options.steps * CHOIR_STEP_US;
	choir_at(choir, sim_random_range(&random, span_us / 10, span_us), CHOIR_ACT_REMOVE, choir->victim);
}

void choir_remove_site(struct choir *choir, uint32_t number)
{
	struct choir_site *it = &choir->sites[number];
	if (it->removed)
		return;
	choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 " is removed from the mesh", number);
	choir_crash(choir, it);
	it->removed = true;
	for (uint32_t i = 0; i < choir->replicants_count; i++)
		choir->replicants[i].forced |= 1u << number;
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		choir->sites[i].hears_us = choir->sim.now_us + sim_mix(choir->options.seed, i) % HEAR_MOST_US;
		choir_at(choir, choir->sites[i].hears_us, CHOIR_ACT_HEAR, i);
	}
}

bool choir_has_heard(const struct choir *choir, const struct choir_site *it)
{
	return it->hears_us != 0 && choir->sim.now_us >= it->hears_us;
}

/* Also when it starts: it may have crashed before what it heard was durable. */
void choir_hear_of_removal(struct choir *choir, struct choir_site *it)
{
	if (!it->replica || !choir_has_heard(choir, it))
		return;
	choir_enter(it);
	replica_site_removed(it->replica, choir->sites[choir->victim].id, choir_now(choir, it));
	choir_leave(it);
}

/* Something is left there on which a person may still decide otherwise. */
static bool is_open(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	bool open = false;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	if (it->replica && replica_look(it->replica, &arena, of->id, &view) == 0) {
		for (uint32_t i = 0; i < view.members_count; i++)
			open |= view.members[i].site == it->id && view.members[i].rejected + view.members[i].in_doubt > 0;
	}
	arena_free(&arena);
	sim_alloc_account(before);
	return open;
}

/* Its service refused to make it, and a person let that be, and all that came behind it. */
bool choir_holds_nothing(struct choir *choir, const struct choir_replicant *of, uint32_t site)
{
	struct choir_site *it = &choir->sites[site];
	for (uint32_t i = 0; i < it->items_count; i++)
		if (it->items[i].number != 0 && it->items[i].replicant == of->number)
			return false;
	return choir_token(choir, of->creator + 1)->dismissed[site] && !is_open(it, of);
}

/* Nobody is left that holds it: whoever knows of it knows that as well. */
bool choir_is_lost_with_its_site(struct choir *choir, const struct choir_replicant *of)
{
	bool leaving, may_be = choir->options.removal || of->forced;
	uint32_t members = choir_members_now(choir, of, &leaving), holders = members & ~choir_witnesses_now(choir, of);
	for (uint32_t i = 0; i < choir->options.sites; i++)
		if (holders >> i & 1 && choir_holds_nothing(choir, of, i))
			holders &= ~(1u << i);
	return may_be && of->placed && members != 0 && holders == 0;
}

bool choir_knows_better(const struct choir *choir, const struct choir_site *it, const struct choir_action *action)
{
	return choir_has_heard(choir, it) && action->request.verb == CHOIR_CREATE &&
	       choir_member_of(&choir->replicants[action->replicant], choir->victim) != CHOIR_NOBODY;
}
