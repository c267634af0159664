/* Sessions: a user whose change was acknowledged at one site reads at another one, with what he was given (`Cheops-Session`).
 *
 * At each step somebody asks some member whether it has met some session. If it says so, and has nothing left to do, the change was
 * dealt with there: it ran, was refused, or need not run. (What came since may have undone it for a while, see order_forget().) When all is right, every member has met every session of what it has. */
#include "sim/choir.h"

#include "sim/alloc.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

void choir_session_note(struct choir *choir, struct choir_site *it, struct replica_op_id op)
{
	if (choir->sessions_count == choir->sessions_capacity) {
		choir->sessions_capacity = choir->sessions_capacity ? 2 * choir->sessions_capacity : 16;
		choir->sessions = realloc(choir->sessions, choir->sessions_capacity * sizeof(*choir->sessions));
		CHECK(choir->sessions != NULL);
	}
	struct buf text = {0};
	int64_t *before = sim_alloc_account(&it->bytes);
	replica_session_put(it->replica, op.replicant, &text);
	struct choir_session *session = &choir->sessions[choir->sessions_count++];
	*session = (struct choir_session){.op = op, .text_length = (uint32_t)text.length};
	CHECK(text.length <= sizeof(session->text));
	if (text.length > 0)
		memcpy(session->text, text.at, text.length);
	buf_free(&text);
	sim_alloc_account(before);
}

/* What it has of it: nothing, or something that is deleted, has nothing to show. */
struct standing {
	bool live;
	bool settled; /* nothing is due: what was undone by what came since is run again some time */
	bool diverged;
	bool met;
};

static struct standing look_at(struct choir *choir, struct choir_site *it, const struct choir_session *session)
{
	struct arena arena;
	struct replica_view view;
	struct standing standing = {0};
	int64_t *before = sim_alloc_account(&it->bytes);
	arena_init(&arena, 0);
	standing.live = replica_look(it->replica, &arena, session->op.replicant, &view) == 0 && !view.deleted;
	for (uint32_t i = 0; standing.live && i < view.members_count; i++) {
		standing.diverged |= view.members[i].diverged;
		standing.settled |= view.members[i].site == it->id && view.members[i].settled;
	}
	standing.met = choir->options.mutation == CHOIR_CREDULOUS ||
	               replica_session_met(it->replica, str_make(session->text, session->text_length));
	arena_free(&arena);
	sim_alloc_account(before);
	return standing;
}

/* What was never made there is deleted without a word to the service. */
static bool is_absent(const struct choir_site *it, uint32_t replicant)
{
	for (uint32_t i = 0; i < it->items_count; i++)
		if (it->items[i].number != 0 && it->items[i].replicant == replicant)
			return false;
	return true;
}

/* Where something was refused, or its outcome is not known, what is due is in flux, and what a person says of it changes it again. */
static bool is_in_flux(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of)
{
	for (uint32_t i = 0; i < of->ops_count; i++) {
		const struct choir_token *token = choir_token(choir, of->ops[i].request.token);
		if (token->refused[it->number] || token->doubted[it->number] || token->rejected[it->number])
			return true;
	}
	return false;
}

/* With who was forced out went what it alone had, and what another one had that left it to that one. */
static bool is_lost(struct choir *choir, const struct choir_replicant *of, const struct choir_op *op)
{
	bool leaving;
	uint32_t members = of->forced ? choir_members_now(choir, of, &leaving) : 0;
	return members != 0 && !(op->known & members & ~of->forced); /* who was forced out may not have heard of that yet */
}

static void check(struct choir *choir, struct choir_site *it, const struct choir_session *session)
{
	struct choir_replicant *of = &choir->replicants[choir_replicant_of(choir, session->op.replicant)];
	uint32_t issuer = choir_member_of(of, choir_site_of(choir, session->op.site));
	const struct choir_op *op = choir_op_of(of, issuer, session->op.number);
	if (!op || of->members[issuer] == it->number || is_in_flux(choir, it, of))
		return;
	if (of->forced >> of->members[issuer] & 1 || is_lost(choir, of, op) || of->forced >> it->number & 1)
		return; /* it will not come; or it is not asked any more, and does not know */
	struct standing standing = look_at(choir, it, session);
	if (!standing.live || !standing.settled || !standing.met)
		return;
	const struct choir_token *token = choir_token(choir, op->request.token);
	bool dealt_with = token->ran[it->number] || token->refused[it->number] || token->doubted[it->number];
	dealt_with |= op->effect == ORDER_DELETE && is_absent(it, of->number);
	bool known =
		op->known >> it->number & 1 || choir_peek_has(choir, it, of, op) || choir_peek_forgotten(choir, it, of, op);
	/* The checks know what the agent has issued when that is durable. Until then it may know of something of its own, run already, that has won
	 * against this one. */
	bool in_commit = it->rows.changes_count > 0;
	if (!dealt_with && !in_commit && !(known && choir_is_needless(choir, it, of, op)))
		choir_violation(choir, of->number,
		                "s%" PRIu32 " says that it has met a session with #%" PRIu32 ", and has not run it: %.*s",
		                it->number, op->request.token, (int)session->text_length, session->text);
}

static struct choir_site *some_member(struct choir *choir, const struct choir_session *session)
{
	const struct choir_replicant *of = &choir->replicants[choir_replicant_of(choir, session->op.replicant)];
	struct choir_site *it = &choir->sites[of->members[sim_random_below(&choir->session_luck, of->members_count)]];
	bool witness = choir_witnesses_at(it, of) >> it->number & 1; /* it sends on who asks, with the session */
	return it->replica && !witness ? it : NULL;
}

void choir_check_sessions(struct choir *choir)
{
	if (choir->sessions_count == 0)
		return;
	const struct choir_session *session =
		&choir->sessions[sim_random_below(&choir->session_luck, choir->sessions_count)];
	struct choir_site *it = some_member(choir, session);
	if (it)
		check(choir, it, session);
}

void choir_check_sessions_end(struct choir *choir)
{
	for (uint32_t i = 0; i < choir->sessions_count; i++) {
		const struct choir_session *session = &choir->sessions[i];
		const struct choir_replicant *of = &choir->replicants[choir_replicant_of(choir, session->op.replicant)];
		for (uint32_t k = 0; k < of->members_count; k++) {
			if (choir->sites[of->members[k]].removed)
				continue;
			struct standing standing = look_at(choir, &choir->sites[of->members[k]], session);
			if (standing.live && !standing.diverged && !standing.met)
				choir_violation(choir, of->number, "s%" PRIu32 " has not met the session of s%" PRIu32 ".%" PRIu32,
				                of->members[k], choir_site_of(choir, session->op.site), session->op.number);
		}
	}
}
