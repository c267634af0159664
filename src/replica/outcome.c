/* What came of a task.
 *
 * A user's operation, run for the first time:
 *   accepted   it is issued: the others get it; the user is answered
 *   refused, or failed without an effect   no trace of it stays; the user is answered
 *   unknown    repeatable, without preconditions: it is issued, and run again until it is known. Else the service is asked whether
 *              it happened; if it cannot tell, the operation is withheld (doubt.c), and the user is told so
 * One of another member, or one that is run again:
 *   accepted   X has it
 *   refused    X has it as rejected, the report says so. A state that finds nothing to set (404): it is made anew
 *   failed     it is tried again after a while, for ever
 *   unknown    repeatable: it is run again until it is known, even if it is not due any more: it may have had its effect. Else
 *              the service is asked; if it cannot tell, X has it as in doubt, the report says so
 */
#include "replica/checkpoint.h"

#include <stdlib.h>

static void give_answer(struct replica *replica, const struct replicant *r, const struct replica_outcome *outcome,
                        bool kept)
{
	const struct task *task = &r->task;
	if (task->answered)
		return;
	struct replica_answer answer = {.ticket = task->ticket,
	                                .op = op_id(r, r->self, task->number),
	                                .outcome = *outcome,
	                                .text = STR(""),
	                                .kept = kept};
	replica->host.answer(replica->host.context, &answer);
}

void outcome_answer(struct replica *replica, const struct replicant *r, const struct replica_outcome *outcome)
{
	give_answer(replica, r, outcome, false);
}

void outcome_end(struct replicant *r)
{
	free(r->task.intent);
	buf_free(&r->task.key);
	buf_free(&r->task.content);
	r->task = (struct task){0};
	r->unsure = false;
	r->lane_dirty = true;
}

/* The task goes on in another way. */
static void go_on_as(struct replica *replica, struct replicant *r, enum replica_task_kind kind)
{
	struct op_row row;
	if (op_fetch(replica, r, r->task.member, r->task.number, &row) != 0) {
		replica->broken = true;
		return;
	}
	r->task.kind = kind;
	lane_execute(replica, r, &row);
}

static void inquire(struct replica *replica, struct replicant *r)
{
	go_on_as(replica, r, task_inquiry(&r->task));
}

/* It may have had its effect: X cannot be relied upon until that is known, so nothing else runs before. */
static void try_again(struct replica *replica, struct replicant *r)
{
	r->unsure = true;
	r->lane_dirty = true;
	queue_refuse(replica, r, ERR_UNAVAILABLE, "the service has not said what became of an earlier operation");
	lane_wait(replica, r);
}

/* ---- A user's own ---------------------------------------------------------------------------------------------------- */

static bool is_settled(const struct replicant *r)
{
	return !r->redo && vector_equal(r->members[r->self].report.settled, r->known, r->members_count);
}

/* While it ran, later ones came: nobody has heard of it, so it is later than those. What a member issues after it said what it has is
 * later than all of that, by which a state that is given (repair.c) covers nothing unseen. */
void outcome_stamp_anew(struct replica *replica, struct replicant *r, struct op *op)
{
	struct op_row row;
	struct buf bytes = {0};
	bool late = false;
	for (uint32_t i = 0; i < r->ops_count && !late; i++)
		late = r->ops[i]->stamp >= op->stamp;
	if (!late)
		return;
	if (op_fetch(replica, r, r->self, op->number, &row) != 0) {
		replica->broken = true;
		return;
	}
	op->stamp = hlc_tick(&replica->clock, replica->now.wall_ms);
	op_row_put(&bytes, op->stamp, op->seen, r->members_count, op_content_of(&row, buf_str(&replica->row)));
	op_store(replica, r, r->self, op->number, buf_str(&bytes));
	replica->counters.pending_operations--; /* it was there before */
	buf_free(&bytes);
}

static struct op *issue(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	struct op *op = r->task.intent;
	outcome_stamp_anew(replica, r, op);
	r->task.intent = NULL;
	if (r->task.key.length > 0)
		key_store(replica, buf_str(&r->task.key), op_id(r, r->self, op->number), outcome);
	lane_issue(replica, r, op);
	return op;
}

/* The only member has settled what it issues, for all, and forgets it: nobody needs its body any more, as soon as its user was answered. It
 * would be missing if that has to be run again. */
static bool is_forgotten_at_once(const struct replicant *r, const struct op *op)
{
	bool others = false;
	for (uint32_t i = 0; i < r->members_count; i++)
		others |= i != r->self && !r->members[i].removed;
	return (op->flags & OP_BLOB) && !others;
}

/* Would a restart that finds the intent alone issue the very same operation, and run it to the same end? The intent was durable before
 * it ran. Of what others look up (local ids, names, keys) nothing may change with it: that is not to be seen before it is durable. */
static bool is_kept(struct replicant *r, const struct replica_outcome *outcome)
{
	const struct op *op = r->task.intent;
	bool changes = op->effect == ORDER_ASSIGN || op->effect == ORDER_RELATIVE ||
	               (op->effect == ORDER_REPLACE && own_report(r)->created);
	return changes && r->task.kind == REPLICA_RUN && task_runs_again(op) && r->task.key.length == 0 &&
	       !outcome->carried && !is_forgotten_at_once(r, op);
}

static void first_accepted(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	bool simple = is_settled(r) && vector_equal(r->task.intent->seen, r->known, r->members_count);
	bool kept = is_kept(r, outcome);
	uint64_t stamp = r->task.intent->stamp;
	if (outcome->carried)
		op_store_again(replica, r, r->self, r->task.number, outcome->carried);
	const struct op *op = issue(replica, r, outcome);
	lane_append(r, op);
	if (r->handled[r->self] + 1 == op->number)
		r->handled[r->self]++;
	replica->counters.executed++;
	lane_effect(replica, r, op->effect, outcome);
	lane_made_whole(r, op);
	if (simple)
		lane_settle(r);
	replica_tell(replica, r, op->number, op->member, r->self, REPLICA_APPLIED);
	give_answer(replica, r, outcome, kept && op->stamp == stamp);
	if (op->effect == ORDER_CREATE)
		replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
	outcome_end(r);
}

/* As if it had never been. */
static void withdraw(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	bool creates = r->task.intent->effect == ORDER_CREATE && vector_is_zero(r->known, r->members_count);
	replica->counters.refused++;
	if (r->task.intent->flags & OP_BLOB)
		blob_done(replica, r, r->self, r->task.number);
	op_unstore(replica, r, r->self, r->task.number);
	if (r->task.key.length > 0)
		key_forget(replica, buf_str(&r->task.key));
	outcome_answer(replica, r, outcome);
	outcome_end(r);
	if (!creates || r->withheld_count > 0)
		return;
	queue_refuse(replica, r, ERR_NOT_FOUND, "it could not be created");
	name_clear(replica, r);
	r->kind = REPLICANT_NONE;
	references_wake(replica, r);
	r->head_dirty = r->lane_dirty = true;
}

static void first_unknown(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	struct replica_outcome told = *outcome;
	told.kind = REPLICA_UNKNOWN;
	if (r->task.kind == REPLICA_INQUIRE) {
		doubt_withhold(replica, r, outcome->kind == REPLICA_FAILED);
		outcome_answer(replica, r, &told);
		outcome_end(r);
	} else if (task_runs_again(r->task.intent)) {
		issue(replica, r, outcome);
		outcome_answer(replica, r, &told);
		r->task.what = TASK_DELIVERED;
		try_again(replica, r);
	} else {
		inquire(replica, r);
	}
}

static void take_first(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	bool asked = r->task.kind == REPLICA_INQUIRE;
	struct replica_outcome told = *outcome;
	if (outcome->kind == REPLICA_ACCEPTED) {
		first_accepted(replica, r, outcome);
	} else if (outcome->kind == REPLICA_UNKNOWN || (outcome->kind == REPLICA_FAILED && asked)) {
		first_unknown(replica, r, outcome);
	} else {
		/* Asked, the service says that it did not happen: the user may try again. */
		if (asked)
			told.kind = REPLICA_FAILED;
		withdraw(replica, r, &told);
	}
}

/* ---- Delivered -------------------------------------------------------------------------------------------------------- */

/* It is no exception any more. Where a person had it run again, what follows may be due again as well: until that is done, nobody may
 * take it for settled here, and forget it. */
static void take_back(struct replicant *r, const struct op *op)
{
	struct report *report = own_report(r);
	if (!report_exception(report, op->member, op->number))
		return;
	if (r->redo)
		report_except(report, &(struct exception){op->member, op->number, REPLICA_PENDING, 0, 0, NULL});
	else
		report_unexcept(report, op->member, op->number);
	r->report_dirty = true;
}

static void done(struct replica *replica, struct replicant *r, enum order_done how,
                 const struct replica_outcome *outcome)
{
	const struct op *op = op_find(r, r->task.member, r->task.number);
	enum replica_member_state state = how == ORDER_DONE                     ? REPLICA_APPLIED
	                                  : how == ORDER_DOUBT                  ? REPLICA_IN_DOUBT
	                                  : outcome->kind == REPLICA_CREDENTIAL ? REPLICA_REJECTED_CREDENTIAL
	                                                                        : REPLICA_REJECTED;
	lane_step(r, &r->task, how);
	if (how == ORDER_DONE) {
		replica->counters.executed++;
		take_back(r, op);
		lane_effect(replica, r, op->effect, outcome);
		lane_made_whole(r, op);
		if (op_is_state(op))
			lane_undelete(r, op, r->task.kind == REPLICA_RUN_ANEW || r->task.kind == REPLICA_INQUIRE_ANEW);
	} else {
		size_t bytes = outcome->answer.length < UINT16_MAX ? outcome->answer.length : UINT16_MAX;
		replica->counters.rejected += how == ORDER_REJECTED;
		replica->counters.in_doubt += how == ORDER_DOUBT;
		report_except(own_report(r),
		              &(struct exception){op->member, op->number, (uint8_t)state, (uint16_t)outcome->status,
		                                  (uint16_t)bytes, (char *)outcome->answer.at});
		r->report_dirty = true;
		if (op->effect == ORDER_CREATE || op->effect == ORDER_ADOPT) {
			references_wake(replica, r);
			name_refused(replica, r);
		}
	}
	replica_tell(replica, r, op->number, op->member, r->self, state);
	r->retry_us = 0;
	outcome_end(r);
}

/* A delete that finds nothing has what it wanted: it may have been run before, and its answer was lost. */
static bool is_gone_already(const struct op *op, const struct replica_outcome *outcome)
{
	return op->effect == ORDER_DELETE && outcome->kind == REPLICA_REFUSED &&
	       (outcome->status == 404 || outcome->status == 410);
}

/* A state for what was made here, and that the service has no more: somebody deleted it behind our back, or a delete that was run here
 * has lost. Not where it may have been made anew already: it would be there twice. */
static bool is_missing(struct replicant *r, const struct op *op, const struct replica_outcome *outcome)
{
	const struct report *own = own_report(r);
	return r->task.kind == REPLICA_RUN && op_is_state(op) && outcome->kind == REPLICA_REFUSED &&
	       (outcome->status == 404 || outcome->status == 410) &&
	       ((own->created && own->local_id_bytes > 0) || lane_comes_back(r)) && !lane_is_made_in_doubt(r);
}

/* There is nothing that could be known by the id that it had. */
static void make_anew(struct replica *replica, struct replicant *r)
{
	struct report *own = own_report(r);
	r->report_dirty |= own->created;
	r->gone = true;
	own->created = false;
	local_clear(replica, r);
	go_on_as(replica, r, REPLICA_RUN_ANEW);
}

/* The host may know when it is worth to try again. */
static void wait_for(struct replica *replica, struct replicant *r, uint64_t again_us)
{
	if (again_us == 0) {
		lane_wait(replica, r);
		return;
	}
	r->not_before_us = replica->now.us + again_us;
	replica_fire(replica, r, r->not_before_us);
}

static void take_delivered(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	bool asked = task_asks(&r->task);
	const struct op *op = op_find(r, r->task.member, r->task.number);
	bool repeatable = task_is_repeatable(&r->task, op);
	bool refused = outcome->kind == REPLICA_REFUSED || outcome->kind == REPLICA_CREDENTIAL;
	if (is_missing(r, op, outcome)) {
		make_anew(replica, r);
	} else if (outcome->kind == REPLICA_ACCEPTED || (!asked && is_gone_already(op, outcome))) {
		done(replica, r, ORDER_DONE, outcome);
	} else if (refused && !asked) {
		done(replica, r, ORDER_REJECTED, outcome);
	} else if (outcome->kind == REPLICA_UNKNOWN && asked) {
		done(replica, r, ORDER_DOUBT, outcome);
	} else if (outcome->kind == REPLICA_UNKNOWN && !repeatable) {
		inquire(replica, r);
	} else if (outcome->kind == REPLICA_UNKNOWN || r->unsure || (asked && !refused)) {
		if (refused) {
			outcome_end(r); /* asked, the service says that it did not happen */
			lane_wait(replica, r);
		} else {
			try_again(replica, r);
		}
	} else {
		outcome_end(r); /* it has had no effect, and may have one later */
		wait_for(replica, r, outcome->again_us);
	}
}

/* ---- Weak -------------------------------------------------------------------------------------------------------------- */

static void take_weak(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	struct op_row row;
	bool ours = !r->task.answered;
	int code = op_content_parse(buf_str(&r->task.content), &row);
	bool accepted = code == 0 && outcome->kind == REPLICA_ACCEPTED;
	bool creates = row.class.effect == ORDER_CREATE;
	if (accepted) {
		replica->counters.executed++;
		lane_effect(replica, r, row.class.effect, outcome);
		r->head_dirty = true;
	}
	if (ours && accepted && outcome->carried && op_check(&row.class, outcome->carried, NULL) == 0) {
		struct buf content = {0};
		op_content_put(&content, &row.class, outcome->carried, row.flags & OP_CONDITIONAL);
		sync_emit_weak(replica, r, buf_str(&content), creates);
		buf_free(&content);
	} else if (ours && accepted) {
		sync_emit_weak(replica, r, buf_str(&r->task.content), creates);
	}
	weak_ran(replica, r->task.loan, ours && accepted);
	outcome_answer(replica, r, outcome);
	outcome_end(r);
	bool over = accepted ? row.class.effect == ORDER_DELETE : creates && !own_report(r)->created;
	if (!over)
		return;
	queue_refuse(replica, r, ERR_NOT_FOUND, "it was deleted, or never created");
	name_clear(replica, r);
	r->kind = REPLICANT_NONE;
	r->head_dirty = r->lane_dirty = true;
}

/* ---- The part of this site, set again ---------------------------------------------------------------------------------- */

static void take_restored(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	bool refused = outcome->kind == REPLICA_REFUSED || outcome->kind == REPLICA_CREDENTIAL;
	if (outcome->kind == REPLICA_ACCEPTED) {
		outcome_end(r);
		checkpoint_restored(r);
	} else if (refused) {
		outcome_end(r);
		checkpoint_was_refused(r);
	} else if (outcome->kind == REPLICA_UNKNOWN || r->unsure) {
		try_again(replica, r);
	} else {
		outcome_end(r);
		wait_for(replica, r, outcome->again_us);
	}
}

void outcome_take(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	r->task.task = 0;
	switch (r->task.what) {
	case TASK_FIRST: take_first(replica, r, outcome); break;
	case TASK_DELIVERED: take_delivered(replica, r, outcome); break;
	case TASK_WITHHELD:
		doubt_answered(replica, r, outcome);
		outcome_end(r);
		break;
	case TASK_STATE:
		repair_read(replica, r, outcome);
		outcome_end(r);
		break;
	case TASK_COPY:
		outcome_end(r);
		members_read(replica, r, outcome);
		break;
	case TASK_LEAVE:
		outcome_end(r);
		members_deleted(replica, r, outcome);
		break;
	case TASK_WEAK: take_weak(replica, r, outcome); break;
	case TASK_CHECKPOINT:
		outcome_end(r);
		checkpoint_read(replica, r, outcome);
		break;
	case TASK_RESTORE: take_restored(replica, r, outcome); break;
	case TASK_NONE: break;
	}
	work_add(replica, r);
}
