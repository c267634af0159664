/* Items that were there before anybody replicated them (--found): a user makes one at the service of a site, behind the agent's back, and has it
 * adopted; then it is changed, and extended to other sites (choir_members.c), like any other. He asks again until it is so: the agent may be down, or
 * crash before what it was told is durable. What he made is there all the time, and exactly once. If its site is removed from the mesh, it goes along:
 * nobody asks any more, and nobody else has heard of what was not adopted by then. */
#include "sim/choir.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { FOUND_CHANCE = 60, AGAIN_US = CHOIR_SECOND_US };

/* It refers to nothing, and nobody else has its name. */
void choir_found_draw(const struct choir *choir, struct choir_replicant *it)
{
	struct sim_random random;
	sim_random_seed(&random, choir->options.seed, UINT64_C(12) << 32 | it->number);
	if (!choir->options.found || it->weak || it->conflict || it->witnesses != 0 ||
	    sim_random_below(&random, 100) >= FOUND_CHANCE)
		return;
	it->found = true;
	it->members[0] = it->members[sim_random_below(&random, it->members_count)];
	it->members_count = it->founders = 1;
	it->refers = 0;
	if (it->name)
		it->name = 1000 + it->number;
}

static void make(struct choir *choir, struct choir_site *it, struct choir_replicant *of,
                 const struct choir_action *action)
{
	struct choir_token *token = choir_token(choir, action->request.token);
	choir_item_make(choir, it, &action->request, of->found_id);
	token->effect[it->number] = token->ran[it->number] = true;
	token->runs[it->number]++;
	choir_tell(choir, of->number, "s%" PRIu32 " user: makes r%" PRIu32 " by himself, as %s", it->number, of->number,
	           of->found_id);
}

void choir_found_ask(struct choir *choir, uint32_t number)
{
	struct choir_action *action = &choir->actions[number];
	struct choir_replicant *of = &choir->replicants[action->replicant];
	struct choir_site *it = &choir->sites[of->members[0]];
	char name[16] = "";
	struct err err = {0};
	struct replica_id id;
	if (of->adopted || it->removed)
		return;
	if (of->found_id[0] == '\0')
		make(choir, it, of, action);
	choir_at(choir, choir->sim.now_us + AGAIN_US, CHOIR_ACT_USER, number);
	if (!it->replica)
		return;
	struct replica_create create = {.service = STR_INIT("choir"),
	                                .type = str_of(choir_types[of->kind].name),
	                                .rules = {.classes = CHOIR_VERBS,
	                                          .resolutions = of->rules.resolutions,
	                                          .delete_loses = of->rules.delete_loses,
	                                          .create_replays = of->rules.create_replays}};
	if (of->name) {
		snprintf(name, sizeof(name), "%" PRIu32, of->name);
		create.collection = STR("/all");
		create.name = str_of(name);
	}
	struct replica_adoption adoption = {.create = &create,
	                                    .replicant = of->id,
	                                    .local_id = str_of(of->found_id),
	                                    .local_id_quoted = of->kind != CHOIR_COUNTER};
	choir_enter(it);
	int code = replica_adopt(it->replica, &adoption, choir_now(choir, it), &id, &err);
	choir_leave(it);
	choir_tell(choir, of->number, "s%" PRIu32 " user: adopt r%" PRIu32 ": %s", it->number, of->number,
	           code ? err.text : "done");
	if (code == 0 && memcmp(&id, &of->id, sizeof(id)) != 0)
		choir_violation(choir, of->number, "s%" PRIu32 " takes it for another one", it->number);
	if (code != 0 && code != ERR_IO)
		choir_violation(choir, of->number, "s%" PRIu32 " does not adopt it: %s", it->number, err.text);
}

bool choir_found_waits(const struct choir *choir, const struct choir_replicant *of)
{
	return of->found && !of->adopted && of->found_id[0] != '\0' && !choir->sites[of->members[0]].removed;
}

/* It is durable: from now on it is as if it had been created, by an operation that nobody has ever seen. */
void choir_found_commit(struct choir *choir, struct choir_site *it, struct str key)
{
	struct replica_id id;
	if (!choir->options.found || key.length != sizeof(id.bytes))
		return;
	memcpy(id.bytes, key.at, sizeof(id.bytes));
	uint32_t number = choir_replicant_of(choir, id);
	struct choir_replicant *of = number != CHOIR_NOBODY ? &choir->replicants[number] : NULL;
	if (!of || !of->found || of->adopted || of->members[0] != it->number)
		return;
	struct choir_action *action = &choir->actions[of->creator];
	struct choir_op *op = choir_op_add(of);
	*op = (struct choir_op){.site = it->id,
	                        .number = 1,
	                        .stamp = 1,
	                        .effect = ORDER_CREATE,
	                        .class = CHOIR_CREATE,
	                        .issued = true,
	                        .known = 1u << it->number,
	                        .request = action->request};
	choir_token(choir, action->request.token)->op = (uint32_t)(op - of->ops) + 1;
	of->adopted = action->acknowledged = true;
	action->op = (struct replica_op_id){of->id, it->id, 1};
	choir->figures.acknowledged++;
}
