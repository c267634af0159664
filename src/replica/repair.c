/* Repair: a member that cannot get to E by re-running gets the state of another one.
 *
 * 1. Who is stuck says so in its report, with how far it is in line with E.
 * 2. A member that is settled, once all have said that they know the same, waits a while, a different one each, looks again whether that
 *    is still so, reads its own copy through the API, and issues it: a `replace` that had seen everything.
 * 3. It is ordered like any other operation. For who issued it, it is done: the state is there already. Two that did the same
 *    at once do no harm.
 *
 * Where an operation was rejected or is in doubt, something is missing from the state: what others have accepted would be lost with it.
 * Such a member gives nothing until a person has decided on it: it is run again, and there, if late; or it is let be. Who lacks what a
 * person let be gives its own only if all lack something, and nobody lacks what may still be done.
 *
 * What was made as another replicant (merge.c) is not given either, unless all have only that.
 *
 * Everybody is stuck: the one that is nearest to E, the first of several, does the same with what it has (it is stuck only once
 * it has run all that it knows).
 * Somebody has not met the others: it is waited for, for as long as it is a member. It may have changes of its own users that a state
 * would cover. It has met them, is nearer, or may be, and cannot be reached: it is waited for with a long patience (`repair_alone_us`)
 * without a word of it, since it may be away for no longer than it takes to start; but where a merge has left something foreign, always.
 * Files and other facets are a part of the state: each is an operation of its own, right behind that of the item, on its facet. A
 * member that has such a file already is told nothing new by it: so its blob is fetched only where the host, which looks, says
 * that it needs it (blob.c).
 * A person says whose copy is to be that of all, for instance after one was changed behind our back: 2. and 3. at once, and who
 * asked is answered. A member whose service has the item no more (404), since somebody deleted it there or a delete that was run there has
 * lost, makes it anew: REPLICA_RUN_ANEW, which would not be right twice; so if its outcome is lost the service is asked for its natural
 * name, and if that cannot tell it is in doubt. Nothing is left of what was run there before: what of that counts, and is not in the
 * state, is run again.
 * The copy cannot be given as a `replace`, or it was, and did not help: the report says `diverged`, it is counted, and nothing is guessed. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

enum assessment {
	REPAIR_NOT,
	REPAIR_SETTLED,
	REPAIR_NEAREST,
	REPAIR_ALONE, /* one of these, of those who can be reached */
};

/* Not all that counts has had its effect there. It is as that member has told, also of this one: if two did not agree on who lacks
 * something, each would wait for the other. */
static bool is_partial(const struct report *report)
{
	return report->excepted || report->lacking || report->foreign;
}

/* The less, the better is what it would give. Who has nothing (a delete was run there that lost) has nothing to give. */
static int rank_of(const struct report *report)
{
	return !report->created ? 2 : is_partial(report) ? 1 : 0;
}

static bool is_nearer(const struct replicant *r, uint32_t a, uint32_t b)
{
	int rank_a = rank_of(&r->members[a].report), rank_b = rank_of(&r->members[b].report);
	if (rank_a != rank_b)
		return rank_a < rank_b;
	uint32_t x = r->members[a].report.distance, y = r->members[b].report.distance;
	return x != y ? x > y : r->members[a].site < r->members[b].site;
}

/* It was given a state, and its service refused it: another one would not do better. A person sees it as rejected. */
bool repair_was_refused(const struct replicant *r, const struct report *report)
{
	for (uint32_t i = 0; i < report->exceptions_count; i++) {
		const struct op *op = op_find(r, report->exceptions[i].member, report->exceptions[i].number);
		if (op && (op->flags & OP_REPAIR))
			return true;
	}
	return false;
}

/* The last that is known is a repair that had seen all else. Who is stuck with that is not helped by another one. */
bool repair_was_in_vain(const struct replicant *r)
{
	const struct op *last = NULL;
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (last == NULL || r->ops[i]->stamp > last->stamp)
			last = r->ops[i];
	if (last == NULL || !(last->flags & OP_REPAIR))
		return false;
	for (uint32_t m = 0; m < r->members_count; m++)
		if (last->seen[m] + (m == last->member) < r->known[m])
			return false;
	return true;
}

/* A state is given when every member has said that it knows the same as this one. What is issued from then on is later than all of that
 * (outcome.c), and so comes after the state in E: nothing that was acknowledged is covered unseen. */
static bool has_met(const struct replicant *r, uint32_t member)
{
	const struct report *report = &r->members[member].report;
	if (!vector_equal(r->members[member].has, r->known, r->members_count))
		return false;
	/* It has carried out the merges, too: what that makes it issue has stamps of before. */
	for (uint32_t i = 0; i < r->ops_count && !report->stuck; i++)
		if ((r->ops[i]->flags & OP_MERGE) && report->settled[r->ops[i]->member] < r->ops[i]->number)
			return false;
	return true;
}

/* Someone has what was made as another replicant (merge.c), and waits for the state. */
static bool has_foreign(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (!r->members[i].removed && r->members[i].report.foreign)
			return true;
	return false;
}

/* Something is missing there, and nobody has said yet that this is to be so: it may still be done. Not where there is no item. */
static bool is_undecided(const struct report *report)
{
	for (uint32_t i = 0; i < report->exceptions_count && report->excepted && report->created; i++)
		if (report->exceptions[i].state >= REPLICA_REJECTED)
			return true;
	return false;
}

/* Users' operations, and what people say, change X while the lane waits: there may be a way since it was found to be stuck. */
static bool is_still_stuck(struct replicant *r)
{
	struct order_next next = {0};
	lane_next(r, &next);
	return next.action == ORDER_STUCK || (next.action == ORDER_NOTHING && own_report(r)->foreign);
}

/* `heard_us`: when one of those was heard last who cannot be reached now, and would be waited for. */
static enum assessment assess(struct replica *replica, struct replicant *r, uint64_t *heard_us)
{
	const struct report *own = own_report(r);
	bool settled = !r->redo && vector_equal(own->settled, r->known, r->members_count);
	bool needed = false, alone = false, foreign = has_foreign(r);
	*heard_us = 0;
	/* What is withheld may be in the state that would be given, and would be issued once more later. */
	if (own->diverged || r->consistency == REPLICA_WEAK || r->span == REPLICA_DIVIDED || is_witness(r) ||
	    r->withheld_count > 0 || repair_was_in_vain(r) || (own->created && lane_lacks(r, true)))
		return REPAIR_NOT;
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct member *member = &r->members[i];
		if (i == r->self || member->removed || member_witnesses(member))
			continue;
		if (own->foreign && !member->report.foreign)
			return REPAIR_NOT; /* that one has it as it ought to be, or will */
		if (!has_met(r, i))
			return REPAIR_NOT;
		bool better = rank_of(own) > rank_of(&member->report), worse = rank_of(own) < rank_of(&member->report);
		if (settled ? better : !own->stuck || (better && !member->report.diverged))
			return REPAIR_NOT;
		if (is_partial(own) && is_undecided(&member->report))
			return REPAIR_NOT;
		needed |= member->report.stuck && !repair_was_refused(r, &member->report);
		/* A settled one gives what it has as soon as all have met; who is stuck, if nobody has anything better. */
		if (settled || ((member->report.stuck || worse) && !is_nearer(r, i, r->self)) || member->report.diverged)
			continue;
		if (foreign || replica->host.reachable(replica->host.context, member->site))
			return REPAIR_NOT;
		const struct peer *peer = peer_get(replica, member->site);
		*heard_us = peer->heard_us > *heard_us ? peer->heard_us : *heard_us;
		alone = true;
	}
	/* A state that is given behind a delete would make it again; and who had something rejected that is run again counts it as seen, so
	 * that a state without it would lose it. */
	if ((settled && !needed) || (!settled && !own->stuck) || lane_ends_deleted(r) || lane_is_redoing(r))
		return REPAIR_NOT;
	if (alone)
		return REPAIR_ALONE;
	return settled ? REPAIR_SETTLED : REPAIR_NEAREST;
}

/* The same; who is alone has to be so for long. Whether others can be reached is no event: who is stuck looks now and then. */
static enum assessment assess_patiently(struct replica *replica, struct replicant *r)
{
	uint64_t heard_us, patience_us = replica->options.repair_alone_us;
	enum assessment how = assess(replica, r, &heard_us);
	if (how != REPAIR_ALONE) {
		r->alone_us = 0;
		if (how == REPAIR_NOT && own_report(r)->stuck && !own_report(r)->diverged)
			replica_fire(replica, r, replica->now.us + patience_us);
		return how;
	}
	if (r->alone_us == 0)
		r->alone_us = replica->now.us;
	if (r->alone_us < heard_us)
		r->alone_us = heard_us;
	if (replica->now.us >= r->alone_us + patience_us)
		return REPAIR_ALONE;
	replica_fire(replica, r, r->alone_us + patience_us);
	return REPAIR_NOT;
}

void repair_consider(struct replica *replica, struct replicant *r)
{
	if (r->kind != REPLICANT_LIVE || r->task.task != 0)
		return;
	if (assess_patiently(replica, r) == REPAIR_NOT) {
		r->repair_us = 0;
		return;
	}
	if (r->repair_us == 0) {
		uint64_t random = replica_draw(replica);
		r->repair_us = replica->now.us + REPLICA_REPAIR_US + random % ((uint64_t)REPLICA_REPAIR_US * r->members_count);
	}
	uint64_t at_us = r->repair_us > r->not_before_us ? r->repair_us : r->not_before_us; /* the lane may wait */
	if (at_us > replica->now.us)
		replica_fire(replica, r, at_us);
	else
		work_add(replica, r);
}

bool repair_start(struct replica *replica, struct replicant *r)
{
	if (r->repair_us == 0 || r->repair_us > replica->now.us)
		return false;
	enum assessment how = assess_patiently(replica, r);
	if (how == REPAIR_NOT || (how != REPAIR_SETTLED && !is_still_stuck(r))) {
		r->repair_us = 0;
		return false;
	}
	if (how != REPAIR_SETTLED)
		lane_raise_handled(r);
	r->task = (struct task){.what = TASK_STATE, .kind = REPLICA_READ_STATE, .member = r->self};
	struct op_row row = {0};
	lane_execute(replica, r, &row);
	return true;
}

/* To who has something foreign, it is given right behind all that it had seen: what somebody issues at the same time is later. */
static uint64_t stamp_behind(struct replica *replica, const struct replicant *r)
{
	uint64_t last = 0;
	for (uint32_t i = 0; i < r->ops_count; i++)
		last = r->ops[i]->stamp > last ? r->ops[i]->stamp : last;
	uint64_t now = hlc_tick(&replica->clock, replica->now.wall_ms);
	return last > 0 && last + 1 < now && has_foreign(r) ? last + 1 : now;
}

static const struct op *issue_one(struct replica *replica, struct replicant *r, const struct replica_class *class,
                                  const struct replica_request *request)
{
	struct buf content = {0};
	op_content_put(&content, class, request, OP_REPAIR);
	struct op *op = lane_number_at(replica, r, buf_str(&content), stamp_behind(replica, r));
	buf_free(&content);
	lane_issue(replica, r, op);
	lane_append(r, op);
	if (r->handled[r->self] + 1 == op->number)
		r->handled[r->self]++;
	return op;
}

/* The item itself first: at a member that has lost it, its facets have nothing to be set on before. */
static void issue_state(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	const struct op *op = issue_one(replica, r, &outcome->state_class, &outcome->state);
	for (uint32_t i = 0; i < outcome->parts_count; i++)
		issue_one(replica, r, &outcome->parts[i].class, &outcome->parts[i].request);
	r->task.number = op->number;
	replica->counters.repaired++;
	if (replica->host.event) {
		struct replica_event event = {.kind = REPLICA_EVENT_REPAIRED, .op = op_id(r, op->member, op->number)};
		replica->host.event(replica->host.context, &event);
	}
}

/* ---- A person asks for it ----------------------------------------------------------------------------------------------- */

/* What is here is E as far as it is known, or all that is known was run, if not in the right order. Anything else is pending
 * for a moment only, and what is pending would be in the state and be run on top of it once more. */
static int may_give(struct replicant *r, struct err *err)
{
	const struct report *own = own_report(r);
	bool settled = !r->redo && vector_equal(own->settled, r->known, r->members_count);
	if (r->withheld_count > 0)
		return err_set(err, ERR_CONFLICT,
		               "an operation of this site is in doubt, and may be in its state: decide on that first");
	if (!settled && (!own->stuck || !is_still_stuck(r)))
		return err_set(err, ERR_UNAVAILABLE,
		               "operations that are known at this site have not been carried out there yet");
	return 0;
}

void repair_ask(struct replica *replica, struct replica_id id, uint64_t ticket)
{
	struct replicant *r = NULL;
	struct err err = {0};
	CHECK(ticket != 0);
	int code = replicant_load(replica, id, &r);
	if (code == 0 && r->kind == REPLICANT_ALIAS)
		code = replicant_load(replica, r->alias, &r);
	if (code != 0)
		err_set(&err, ERR_NOT_FOUND, "no replicant of that id is known here");
	else if (r->kind != REPLICANT_LIVE || lane_is_closed(r))
		err_set(&err, ERR_NOT_FOUND, "it was deleted");
	else if (r->consistency == REPLICA_WEAK)
		err_set(&err, ERR_CONFLICT, "it is `weak`: nothing keeps its copies equal, and so nothing repairs them");
	else if (r->span == REPLICA_DIVIDED)
		err_set(&err, ERR_CONFLICT, "each site has a part of it, which is not to become that of the others");
	else if (!own_report(r)->created)
		err_set(&err, ERR_CONFLICT, "it was not made at this site");
	else if (r->ops_count >= LIMIT_REPLICA_OPERATIONS || r->queue_count >= LIMIT_REPLICA_QUEUE)
		err_set(&err, ERR_LIMIT, "too many operations on it have not been executed everywhere");
	else
		may_give(r, &err);
	if (err.code != 0) {
		submit_refuse(replica, ticket, err.code, err.text);
		return;
	}
	struct submission *queued = calloc(1, sizeof(*queued));
	CHECK(queued != NULL);
	queued->ticket = ticket;
	queued->gives = true;
	queue_push(r, queued);
	work_add(replica, r);
}

void repair_give(struct replica *replica, struct replicant *r, uint64_t ticket)
{
	struct op_row row = {0};
	struct err err = {0};
	if (may_give(r, &err) != 0) {
		submit_refuse(replica, ticket, err.code, err.text);
		work_add(replica, r);
		return;
	}
	if (own_report(r)->stuck)
		lane_raise_handled(r);
	r->task = (struct task){.what = TASK_STATE, .kind = REPLICA_READ_STATE, .member = r->self, .ticket = ticket};
	lane_execute(replica, r, &row);
}

/* Who asked is told, and may ask again: what failed is not a matter of the members. */
static void answer_giver(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome, bool fits)
{
	struct replica_outcome told = *outcome;
	if (!fits && told.kind == REPLICA_ACCEPTED) {
		told.kind = REPLICA_REFUSED;
		told.answer = STR("its state is too long to be given to others");
	}
	outcome_answer(replica, r, &told);
}

/* ---- The state is here -------------------------------------------------------------------------------------------------- */

static bool can_be_issued(const struct replica_class *class, const struct replica_request *request)
{
	return class->effect == ORDER_REPLACE && op_check(class, request, NULL) == 0;
}

void repair_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	bool fits = outcome->kind == REPLICA_ACCEPTED && can_be_issued(&outcome->state_class, &outcome->state);
	for (uint32_t i = 0; i < outcome->parts_count && fits; i++)
		fits = can_be_issued(&outcome->parts[i].class, &outcome->parts[i].request);
	r->repair_us = 0;
	if (fits)
		issue_state(replica, r, outcome);
	if (r->task.ticket != 0) {
		answer_giver(replica, r, outcome, fits);
	} else if (fits) {
		return;
	} else if (outcome->kind == REPLICA_FAILED || outcome->kind == REPLICA_UNKNOWN) {
		lane_wait(replica, r);
	} else {
		own_report(r)->diverged = r->unable = true;
		replica->counters.diverged++;
		r->report_dirty = r->lane_dirty = true;
	}
}
