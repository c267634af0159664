/* Deletes of what others need (--needed).
 *
 * Who deletes says who refers to it and is still on the way to some site, by what his own site knows (src/engine/submit.c does): at every
 * site that has heard of these the delete comes behind their creates. A create that his site had not heard of finds nothing where
 * the delete came first; it is rejected there, and people let it be. So is one that is still to come to the site of the delete itself: a user's
 * request does not wait. */
#include "sim/choir.h"

#include "sim/alloc.h"

#include <inttypes.h>

enum { DELETE_CHANCE = 25, SOON_MOST_US = 5 * CHOIR_SECOND_US };

/* It is deleted soon after something that needs it was made, mostly while that is on its way. */
void choir_needed_action(const struct choir *choir, struct sim_random *random, struct choir_action *action)
{
	uint32_t number = (uint32_t)sim_random_below(random, choir->replicants_count);
	const struct choir_replicant *needing = &choir->replicants[number];
	if (needing->refers == 0 || sim_random_below(random, 100) >= DELETE_CHANCE)
		return;
	const struct choir_replicant *it = &choir->replicants[needing->refers - 1];
	action->replicant = it->number;
	action->at_us = choir->actions[number].at_us + sim_random_below(random, SOON_MOST_US);
	action->site = needing->members[sim_random_below(random, needing->founders)];
	action->request = (struct choir_request){
		.verb = CHOIR_DELETE, .kind = (uint8_t)it->kind, .replicant = it->number, .name = it->name};
}

static bool is_on_its_way(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	bool is = false;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	if (replica_look(it->replica, &arena, of->id, &view) == 0 && !view.deleted)
		for (uint32_t i = 0; i < view.members_count; i++)
			is |= view.members[i].pending > 0;
	arena_free(&arena);
	sim_alloc_account(before);
	return is;
}

uint32_t choir_needed_by(struct choir *choir, struct choir_site *it, struct choir_action *action,
                         struct replica_id ids[CHOIR_NEEDING])
{
	uint32_t count = 0, before = action->needed_by;
	bool again = action->needed_asked;
	action->needed_by = 0;
	action->needed_asked = true;
	for (uint32_t i = 0; i < choir->replicants_count && i < CHOIR_NEEDING; i++) {
		const struct choir_replicant *needing = &choir->replicants[i];
		if (needing->refers != action->replicant + 1 || needing->weak || !is_on_its_way(it, needing))
			continue;
		action->needed_by |= 1u << i;
		ids[count++] = needing->id;
	}
	if (again) /* only one of his requests counts, and nobody knows which */
		action->needed_by &= before;
	return choir->options.mutation == CHOIR_OBLIVIOUS ? 0 : count;
}

bool choir_needed_names(const struct choir *choir, const struct choir_replicant *of, const struct choir_site *it)
{
	return choir->options.needed && of->refers != 0 &&
	       choir_member_of(&choir->replicants[of->refers - 1], it->number) != CHOIR_NOBODY;
}

/* A delete is to be run that somebody else issued: all that it is to come behind, and is known here, was tried, or will not be. */
void choir_check_needed(struct choir *choir, struct choir_site *it, const struct choir_request *request)
{
	if (request->verb != CHOIR_DELETE || request->token == 0 || request->token > choir->actions_count)
		return;
	const struct choir_action *action = &choir->actions[request->token - 1];
	for (uint32_t i = 0; i < choir->replicants_count && i < CHOIR_NEEDING; i++) {
		const struct choir_replicant *needing = &choir->replicants[i];
		for (uint32_t k = 0; action->needed_by >> i & 1 && k < needing->ops_count; k++) {
			const struct choir_op *op = &needing->ops[k];
			const struct choir_token *token = choir_token(choir, op->request.token);
			bool tried = token->ran[it->number] || token->refused[it->number] || token->doubted[it->number];
			if (op->effect != ORDER_CREATE || tried || !choir_peek_has(choir, it, needing, op) ||
			    choir_is_needless(choir, it, needing, op))
				continue;
			choir_violation(choir, action->replicant,
			                "s%" PRIu32 " runs the delete #%" PRIu32 " before #%" PRIu32
			                ", which needs what it deletes",
			                it->number, request->token, op->request.token);
		}
	}
}
