/* Members that come and go: who adds, drops or moves what, drawn when the time has come from whoever is a member then; and
 * what has to be so of them at the end. */
#include "sim/choir.h"

#include "sim/alloc.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

enum {
	EXTEND_CHANCE = 50, /* per cent; else a drop */
	MOVE_CHANCE = 35,   /* of those that were added: another one is dropped once that is issued */
	KEEP_CHANCE = 20,
	PROMOTE_CHANCE = 50, /* of what lies at some sites only: a witness is to hold it */
	FORCE_CHANCE =
		25, /* of what nobody was added to: who is forced out may have added somebody whom nobody else knows */
	GIVE_UP_CHANCE = 10,
	GIVE_UP_AT_LAST_CHANCE = 40,
	ELSEWHERE_CHANCE = 40, /* a user comes to a site that may be a member, or not */
	TICKET = 40,           /* a bit of a ticket */
	MOVE_MOST_US = 10 * CHOIR_SECOND_US,
};

void choir_plan_members(struct choir *choir)
{
	struct sim_random random;
	sim_random_seed(&random, choir->options.seed, 8);
	if (!choir->options.members)
		return;
	uint64_t span_us = (uint64_t)choir->options.steps * CHOIR_STEP_US;
	choir->changes_count = (uint32_t)sim_random_range(&random, 1, 3 * choir->replicants_count);
	/* A move asks for one more. */
	choir->changes = calloc(2 * (size_t)choir->changes_count, sizeof(*choir->changes));
	CHECK(choir->changes != NULL);
	for (uint32_t i = 0; i < choir->changes_count; i++) {
		uint32_t replicant = (uint32_t)sim_random_below(&random, choir->replicants_count);
		uint64_t from_us = choir->actions[replicant].at_us;
		choir->changes[i] = (struct choir_change_of){.replicant = replicant,
		                                             .at_us = sim_random_range(&random, from_us, span_us),
		                                             .extends = sim_random_below(&random, 100) < EXTEND_CHANCE,
		                                             .moves = sim_random_below(&random, 100) < MOVE_CHANCE};
		choir->changes[i].promotes = sim_mix(choir->options.seed, i) % 100 < PROMOTE_CHANCE;
	}
	choir->changes_planned = choir->changes_count;
}

static bool is_referred_to(const struct choir *choir, uint32_t number)
{
	for (uint32_t i = 0; i < choir->replicants_count; i++)
		if (choir->replicants[i].refers == number + 1)
			return true;
	return false;
}

bool choir_look(struct choir_site *it, const struct choir_replicant *of, uint32_t *members, bool *leaving)
{
	struct arena arena;
	struct replica_view view;
	*members = 0;
	*leaving = false;
	if (!it->replica)
		return false;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	bool live = replica_look(it->replica, &arena, of->id, &view) == 0 && !view.deleted, whole = false;
	for (uint32_t i = 0; live && i < view.members_count; i++) {
		uint32_t site = choir_site_of(it->choir, view.members[i].site);
		*members |= site == CHOIR_NOBODY ? 0 : 1u << site;
		*leaving |= view.members[i].leaving;
		whole |= !view.members[i].leaving && !view.members[i].joining && !view.members[i].witness &&
		         view.members[i].rejected == 0 && view.members[i].in_doubt == 0 && view.members[i].local_id.length > 0;
	}
	/* All are to go: one has to stay. None that stays has all of it: who leaves waits for that. */
	*leaving = *leaving && whole;
	arena_free(&arena);
	sim_alloc_account(before);
	return live;
}

/* One that has it, beginning anywhere. */
static struct choir_site *find_asker(struct choir *choir, const struct choir_replicant *of, struct sim_random *random,
                                     uint32_t *members)
{
	bool leaving;
	uint32_t from = (uint32_t)sim_random_below(random, choir->options.sites);
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		struct choir_site *it = &choir->sites[(from + i) % choir->options.sites];
		if (choir_look(it, of, members, &leaving) && *members >> it->number & 1)
			return it;
	}
	return NULL;
}

/* Where it has not been, and what it refers to is. */
static uint32_t find_target(struct choir *choir, const struct choir_replicant *of, struct sim_random *random)
{
	uint32_t from = (uint32_t)sim_random_below(random, choir->options.sites);
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		uint32_t site = (from + i) % choir->options.sites;
		const struct choir_replicant *other = of->refers ? &choir->replicants[of->refers - 1] : NULL;
		bool there = !other;
		for (uint32_t k = 0; other && k < other->founders; k++)
			there |= other->members[k] == site;
		if (there && choir_member_of(of, site) == CHOIR_NOBODY && !choir->sites[site].removed)
			return site;
	}
	return CHOIR_NOBODY;
}

static void extend(struct choir *choir, struct choir_site *it, struct choir_replicant *of, uint32_t number,
                   uint32_t target)
{
	struct err err = {0};
	bool is = choir_member_of(of, target) != CHOIR_NOBODY;
	uint32_t witnesses = of->witnesses, bit = 1u << target;
	struct replica_extension extension = {.site = choir->sites[target].id,
	                                      .hold = is || (of->placed && number % 2 == 0),
	                                      .ticket = UINT64_C(1) << TICKET | number};
	if (!is)
		of->members[of->members_count++] = target;
	of->witnesses = of->placed && !extension.hold ? witnesses | bit : witnesses & ~bit;
	of->promoted |= is;
	choir_tell(choir, of->number, "s%" PRIu32 " user: %s s%" PRIu32 " %s r%" PRIu32, it->number, is ? "let" : "add",
	           target,
	           is                    ? "hold"
	           : of->witnesses & bit ? "as a witness to"
	                                 : "to",
	           of->number);
	choir_enter(it);
	int status = replica_extend(it->replica, of->id, &extension, choir_now(choir, it), &err);
	choir_leave(it);
	choir->figures.promotes += status == 0 && is;
	if (status != 0) {
		choir_tell(choir, of->number, "s%" PRIu32 " user is told: %s", it->number, err.text);
		of->members_count -= !is; /* nobody has heard of it */
		of->witnesses = witnesses;
	}
}

static void drop(struct choir *choir, struct choir_site *it, struct choir_replicant *of, uint32_t members,
                 struct sim_random *random)
{
	struct err err = {0};
	uint32_t site;
	do {
		site = (uint32_t)sim_random_below(random, choir->options.sites);
	} while (!(members >> site & 1));
	struct replica_drop asked = {.site = choir->sites[site].id, .keep = sim_random_below(random, 100) < KEEP_CHANCE};
	/* Two that force each other out stay apart, each alone. */
	bool may_force =
		site != it->number && !(of->forced >> it->number & 1) && of->members_count == of->founders && !of->promoted;
	asked.force = may_force && sim_random_below(random, 100) < FORCE_CHANCE;
	of->kept |= asked.keep ? 1u << site : 0;
	choir_tell(choir, of->number, "s%" PRIu32 " user: drop s%" PRIu32 " from r%" PRIu32 "%s", it->number, site,
	           of->number,
	           asked.force  ? ", by force"
	           : asked.keep ? ", and keep what is there"
	                        : "");
	choir_enter(it);
	int status = replica_drop(it->replica, of->id, &asked, choir_now(choir, it), &err);
	choir_leave(it);
	choir->figures.drops += status == 0;
	of->dropped |= status == 0 ? 1u << site : 0;
	of->forced |= status == 0 && asked.force ? 1u << site : 0;
	if (status != 0)
		choir_tell(choir, of->number, "s%" PRIu32 " user is told: %s", it->number, err.text);
}

/* A witness that is to hold it. */
static uint32_t find_witness(struct choir *choir, struct choir_site *it, const struct choir_replicant *of,
                             struct sim_random *random)
{
	uint32_t witnesses = choir_witnesses_at(it, of), from = (uint32_t)sim_random_below(random, choir->options.sites);
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		uint32_t site = (from + i) % choir->options.sites;
		if (witnesses >> site & 1 && site != it->number && !choir->sites[site].removed)
			return site;
	}
	return CHOIR_NOBODY;
}

void choir_change(struct choir *choir, uint32_t number)
{
	struct choir_change_of *change = &choir->changes[number];
	struct choir_replicant *of = &choir->replicants[change->replicant];
	struct sim_random random;
	uint32_t members;
	sim_random_seed(&random, choir->options.seed, UINT64_C(6) << 32 | number);
	struct choir_site *it = of->weak || of->conflict ? NULL : find_asker(choir, of, &random, &members);
	uint32_t target = CHOIR_NOBODY, removed = choir->options.removal ? 1u << choir->victim : 0;
	bool may_extend = change->extends && !(of->forced & ~removed);
	/* Who only knows of it cannot give it to anybody. */
	for (uint32_t i = 0; it && of->placed && change->extends && i < choir->options.sites; i++)
		if (choir_witnesses_at(it, of) >> it->number & 1)
			it = find_asker(choir, of, &random, &members);
	may_extend = may_extend && it && it->number != choir->victim;
	if (may_extend && of->placed && change->promotes)
		target = find_witness(choir, it, of, &random);
	if (may_extend && target == CHOIR_NOBODY)
		target = find_target(choir, of, &random);
	if (target != CHOIR_NOBODY)
		extend(choir, it, of, number, target);
	else if (it && !change->extends && !is_referred_to(choir, of->number))
		drop(choir, it, of, members, &random);
}

bool choir_change_answered(struct choir *choir, struct choir_site *it, const struct choir_deed *deed)
{
	if (!(deed->ticket >> TICKET))
		return false;
	uint32_t number = (uint32_t)deed->ticket;
	const struct choir_change_of *change = &choir->changes[number];
	choir_tell(choir, change->replicant, "s%" PRIu32 " user of the new member is told: %s %s", it->number,
	           deed->code ? err_phrase(deed->code) : "done", buf_c(&deed->bytes));
	choir->figures.extends += deed->code == 0;
	if (deed->code != 0 || !change->moves || choir->healed || choir->changes_count == 2 * choir->changes_planned)
		return true;
	uint32_t next = choir->changes_count++;
	choir->changes[next] = (struct choir_change_of){.replicant = change->replicant};
	choir_at(choir, choir->sim.now_us + sim_mix(choir->options.seed, next) % MOVE_MOST_US, CHOIR_ACT_MEMBERS, next);
	return true;
}

bool choir_give_up(struct choir *choir, struct choir_site *it, const struct choir_op *copy)
{
	const struct choir_replicant *of = &choir->replicants[copy->request.replicant];
	struct replica_drop asked = {.site = it->id};
	if (sim_random_below(&choir->random, 100) >= (choir->healed ? GIVE_UP_AT_LAST_CHANCE : GIVE_UP_CHANCE))
		return false;
	choir_tell(choir, of->number, "s%" PRIu32 " person: gives up, s%" PRIu32 " is dropped", it->number, it->number);
	choir_enter(it);
	int status = replica_drop(it->replica, of->id, &asked, choir_now(choir, it), NULL);
	choir_leave(it);
	choir->figures.drops += status == 0;
	return status == 0;
}

/* Users come to those who were added, too, and to those who are gone. */
void choir_go_elsewhere(struct choir *choir, struct choir_action *action)
{
	const struct choir_replicant *of = &choir->replicants[action->replicant];
	if (!choir->options.members || of->conflict || action->keyed || action->wish != CHOIR_WISH_CHANGE)
		return;
	uint64_t dice = sim_mix(choir->options.seed, action->request.token);
	if (dice % 100 < ELSEWHERE_CHANCE)
		action->site = of->members[dice / 100 % of->members_count];
}

static bool is_alone(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	bool alone = replica_look(it->replica, &arena, of->id, &view) == 0 && !view.left && view.members_count == 1;
	arena_free(&arena);
	sim_alloc_account(before);
	return alone;
}

/* Had it others, they would hear of it now. */
void choir_check_alone(struct choir *choir, struct choir_site *it, struct str key)
{
	struct replica_id id;
	if ((!choir->options.members && !choir->options.removal) || key.length != sizeof(id.bytes))
		return;
	memcpy(id.bytes, key.at, sizeof(id.bytes));
	uint32_t replicant = choir_replicant_of(choir, id);
	if (replicant == CHOIR_NOBODY || !is_alone(it, &choir->replicants[replicant]))
		return;
	struct choir_replicant *of = &choir->replicants[replicant];
	for (uint32_t i = 0; i < of->ops_count; i++)
		if (of->members[of->ops[i].member] == it->number && choir_peek_issued(it, of, &of->ops[i]))
			of->ops[i].issued = true;
}

/* What a site has that began with another's copy: as if it had run what that one had. */
void choir_adopted(struct choir *choir, struct choir_site *it, const struct choir_call *call)
{
	const struct choir_token *token = choir_token(choir, call->request.token);
	struct choir_replicant *of = &choir->replicants[call->request.replicant];
	const struct choir_op *copy = token->op ? &of->ops[token->op - 1] : NULL;
	if (!copy || copy->effect != ORDER_ADOPT || copy->facet != 0)
		return;
	uint32_t from = of->members[copy->member];
	for (uint32_t i = 0; i < of->ops_count; i++) {
		if (!choir_saw(copy, &of->ops[i]))
			continue;
		struct choir_token *other = choir_token(choir, of->ops[i].request.token);
		of->ops[i].known |= 1u << it->number;
		other->ran[it->number] |= other->ran[from] || of->ops[i].repair;
		other->refused[it->number] |= other->refused[from];
		other->effect[it->number] = other->effect[from];
		other->dismissed[it->number] = other->dismissed[from];
	}
}

/* Who is a member, by whoever is; as bits. None: it is gone everywhere, or was never there. */
uint32_t choir_members_now(struct choir *choir, const struct choir_replicant *of, bool *leaving)
{
	uint32_t members = 0;
	for (uint32_t i = 0; i < of->members_count; i++)
		if (choir_look(&choir->sites[of->members[i]], of, &members, leaving))
			return members;
	*leaving = false;
	return 0;
}

uint32_t choir_witnesses_at(struct choir_site *it, const struct choir_replicant *of)
{
	struct arena arena;
	struct replica_view view;
	uint32_t witnesses = 0;
	if (!it->replica || !of->placed)
		return 0;
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	bool live = replica_look(it->replica, &arena, of->id, &view) == 0 && !view.deleted;
	for (uint32_t i = 0; live && i < view.members_count; i++)
		if (view.members[i].witness)
			witnesses |= 1u << choir_site_of(it->choir, view.members[i].site);
	arena_free(&arena);
	sim_alloc_account(before);
	return witnesses;
}

/* It is gone everywhere: who was never to hold it. */
uint32_t choir_witnesses_now(struct choir *choir, const struct choir_replicant *of)
{
	bool leaving;
	uint32_t members;
	for (uint32_t i = 0; i < of->members_count; i++)
		if (choir_look(&choir->sites[of->members[i]], of, &members, &leaving))
			return choir_witnesses_at(&choir->sites[of->members[i]], of);
	return of->witnesses;
}
