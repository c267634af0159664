/* One name, made by several users at once (--rivals): counters of the same members, in groups of one name, that are created at about the
 * same time and only added to. What the other checks know of operations does not hold for them, as operations on one of them go on as
 * operations on another; in the end it has to be so:
 *
 * - at each member there is one item of the name, known by one replicant, to which the ids of the whole group lead, everywhere;
 * - its number is that of the create of this replicant, and all additions that were acknowledged, each once; of those whose users were told
 *   nothing certain, some.
 */
#include "sim/choir.h"

#include "sim/alloc.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { GROUP = 3, UNSURE_MOST = 16, TOGETHER_US = 3 * CHOIR_SECOND_US };

void choir_names_draw(const struct choir *choir, struct choir_replicant *it)
{
	const struct choir_replicant *first = &choir->replicants[it->number / GROUP * GROUP];
	it->kind = CHOIR_COUNTER;
	it->weak = false;
	it->conflict = true;
	it->refers = 0;
	it->name = 1 + it->number / GROUP;
	if (first == it) {
		memset(it->rules.resolutions, 255, sizeof(it->rules.resolutions));
		return;
	}
	it->rules = first->rules;
	it->members_count = it->founders = first->members_count;
	memcpy(it->members, first->members, sizeof(it->members));
}

void choir_names_action(const struct choir *choir, struct sim_random *random, struct choir_action *action)
{
	const struct choir_replicant *it = &choir->replicants[action->replicant];
	uint32_t first = it->number / GROUP * GROUP;
	bool creates = action->wish == CHOIR_WISH_CREATE;
	action->request.verb = creates ? CHOIR_CREATE : CHOIR_INCREMENT;
	action->request.kind = CHOIR_COUNTER;
	action->request.name = it->name;
	action->request.poison = 0;
	action->request.value.refers = action->request.value.entries_count = 0;
	if (creates && it->number != first)
		action->at_us = choir->actions[first].at_us + sim_random_below(random, TOGETHER_US);
	action->site = it->members[sim_random_below(random, it->members_count)];
}

/* ---- In the end ----------------------------------------------------------------------------------------------------- */

struct names {
	struct choir *choir;
	struct buf *why;
	uint32_t first, count; /* of the group */
	bool known[GROUP];     /* somebody has it */
	struct replica_id id;  /* to which all lead */
	bool found;
};

/* What a site needs for it is its own memory. */
static void look_end(struct choir_site *it, struct arena *arena)
{
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_free(arena);
	sim_alloc_account(before);
}

static bool look(struct choir_site *it, struct replica_id id, struct arena *arena, struct replica_view *view)
{
	int64_t *before = sim_alloc_account(&it->bytes);
	int status = replica_look(it->replica, arena, id, view);
	sim_alloc_account(before);
	return status == 0;
}

/* Additions whose users know nothing certain; the sum of the others is in *sum. */
static uint32_t collect(const struct names *names, int64_t *sum, int64_t unsure[UNSURE_MOST])
{
	uint32_t count = 0;
	for (uint32_t i = names->choir->replicants_count; i < names->choir->actions_count; i++) {
		const struct choir_action *action = &names->choir->actions[i];
		bool ours = action->replicant >= names->first && action->replicant < names->first + names->count;
		if (!ours || action->wish != CHOIR_WISH_CHANGE)
			continue;
		if (action->acknowledged)
			*sum += action->request.value.number;
		else if ((action->maybe || action->undecided) && count < UNSURE_MOST)
			unsure[count++] = action->request.value.number;
	}
	return count;
}

static bool is_sum(int64_t number, const int64_t *of, uint32_t count)
{
	if (number == 0 || count == 0)
		return number == 0;
	return is_sum(number, of + 1, count - 1) || is_sum(number - of[0], of + 1, count - 1);
}

/* For who looks for the reason: one addition that alone explains it. */
static void put_reason(const struct names *names, int64_t difference)
{
	for (uint32_t i = names->choir->replicants_count; i < names->choir->actions_count; i++) {
		const struct choir_action *action = &names->choir->actions[i];
		if (action->acknowledged && action->request.value.number == -difference)
			buf_printf(names->why, ": #%" PRIu32 " is missing", action->request.token);
		else if (action->request.value.number == difference)
			buf_printf(names->why, ": #%" PRIu32 " is too much", action->request.token);
	}
}

static bool check_number(const struct names *names, const struct choir_site *it, const struct choir_item *item)
{
	int64_t sum = 0, unsure[UNSURE_MOST];
	uint32_t count = collect(names, &sum, unsure);
	uint32_t winner = choir_replicant_of(names->choir, names->id);
	sum += names->choir->actions[winner].request.value.number;
	if (count == UNSURE_MOST || is_sum(item->state.number - sum, unsure, count))
		return true;
	buf_clear(names->why);
	buf_printf(names->why, "s%" PRIu32 " has %" PRId64 " under name %" PRIu32 ", and ought to have %" PRId64,
	           it->number, item->state.number, item->name, sum);
	put_reason(names, item->state.number - sum);
	return false;
}

static bool check_item(const struct names *names, struct choir_site *it, const struct replica_view *view)
{
	const struct choir_replicant *of = &names->choir->replicants[names->first];
	const struct choir_item *item = NULL;
	uint32_t count = 0;
	char local_id[CHOIR_ID_BYTES] = "";
	for (uint32_t i = 0; i < it->items_count; i++) {
		if (it->items[i].number == 0 || it->items[i].kind != CHOIR_COUNTER || it->items[i].name != of->name)
			continue;
		item = &it->items[i];
		count++;
		choir_item_id(it, item, local_id);
	}
	for (uint32_t i = 0; i < view->members_count; i++) {
		const struct replica_member_view *member = &view->members[i];
		bool self = member->site == it->id;
		if (!member->settled || member->stuck || (self && !str_equal(member->local_id, str_of(local_id)))) {
			buf_clear(names->why);
			buf_printf(names->why,
			           "s%" PRIu32 " does not have name %" PRIu32 " in order: '%s', '%.*s' at s%" PRIu32
			           ", settled %d, stuck %d, diverged %d",
			           it->number, of->name, local_id, STR_FMT(member->local_id),
			           choir_site_of(names->choir, member->site), member->settled, member->stuck, member->diverged);
			return false;
		}
	}
	if (count == 1)
		return check_number(names, it, item);
	buf_clear(names->why);
	buf_printf(names->why, "s%" PRIu32 " has %" PRIu32 " items of name %" PRIu32, it->number, count, of->name);
	return false;
}

static bool check_at(struct names *names, struct choir_site *it, uint32_t number)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool known = look(it, names->choir->replicants[number].id, &arena, &view), right = true;
	if (known && !names->found) {
		names->id = view.id;
		names->found = true;
	}
	if (known != names->known[number - names->first] || (known && memcmp(&view.id, &names->id, sizeof(view.id)) != 0)) {
		buf_clear(names->why);
		buf_printf(names->why, "s%" PRIu32 " takes r%" PRIu32 " for r%d", it->number, number,
		           known ? (int)choir_replicant_of(names->choir, view.id) : -1);
		right = false;
	} else if (known) {
		right = check_item(names, it, &view);
	}
	look_end(it, &arena);
	return right;
}

static bool check_group(struct names *names)
{
	struct choir *choir = names->choir;
	const struct choir_replicant *of = &choir->replicants[names->first];
	for (uint32_t i = 0; i < names->count; i++)
		for (uint32_t k = 0; k < of->members_count && !names->known[i]; k++) {
			struct arena arena;
			struct replica_view view;
			arena_init(&arena, 0);
			names->known[i] = look(&choir->sites[of->members[k]], of[i].id, &arena, &view);
			look_end(&choir->sites[of->members[k]], &arena);
		}
	for (uint32_t i = 0; i < names->count; i++)
		for (uint32_t k = 0; k < of->members_count; k++)
			if (!check_at(names, &choir->sites[of->members[k]], names->first + i))
				return false;
	return true;
}

bool choir_names_converged(struct choir *choir, struct buf *why, uint32_t *of)
{
	for (uint32_t first = 0; choir->options.rivals && first < choir->replicants_count; first += GROUP) {
		struct names names = {.choir = choir, .why = why, .first = first, .count = GROUP};
		if (first + GROUP > choir->replicants_count)
			names.count = choir->replicants_count - first;
		*of = first;
		if (!check_group(&names))
			return false;
	}
	return true;
}
