/* In doubt: the service was asked to do something, and whether it did is not known.
 *
 * At a restart, what was running:
 *   a user's, repeatable       is issued, and run again like one that was delivered
 *   a user's, not repeatable   is withheld: nobody hears of it; the service is asked as soon as it answers
 *   delivered, repeatable      is run again
 *   delivered, not repeatable  the service is asked
 *
 * Withheld. The operation gives up its number, since others of this site's users may follow, and gets one that is out of the
 * sequence. If it turns out that it happened, it is issued now: it gets its number, and X has it at the place where it was run
 * (unless a re-run has undone it: then it is run again). If it did not happen, or a user of this site has deleted the item since, no
 * trace stays; where that delete is not done yet, it is not decided before. If the service cannot tell, a person has to: replica_judge().
 *
 * A person's word on an operation that is issued and rejected or in doubt here: run it again, it did happen, or let it be. */
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Withheld ----------------------------------------------------------------------------------------------------------- */

static struct withheld *find_withheld(struct replicant *r, uint32_t number)
{
	for (uint32_t i = 0; i < r->withheld_count; i++)
		if (r->withheld[i].number == number)
			return &r->withheld[i];
	return NULL;
}

static uint32_t free_number(const struct replicant *r)
{
	uint32_t number = REPLICA_WITHHELD | 1u;
	for (uint32_t i = 0; i < r->withheld_count; i++)
		if (r->withheld[i].number >= number)
			number = r->withheld[i].number + 1;
	return number;
}

/* The intent of the task. Its number becomes the new one. */
void doubt_withhold(struct replica *replica, struct replicant *r, bool asking)
{
	struct op_row row;
	uint32_t number = free_number(r);
	if (op_fetch(replica, r, r->self, r->task.number, &row) != 0) {
		replica->broken = true;
		return;
	}
	op_store(replica, r, r->self, number, buf_str(&replica->row));
	if (row.flags & OP_BLOB) {
		blob_need(replica, r, r->self, number, &row.request, true);
		blob_done(replica, r, r->self, r->task.number);
	}
	op_unstore(replica, r, r->self, r->task.number);
	struct withheld *withheld = realloc(r->withheld, (r->withheld_count + 1) * sizeof(*withheld));
	CHECK(withheld != NULL);
	r->withheld = withheld;
	r->withheld[r->withheld_count++] = (struct withheld){number, r->steps_count, asking};
	r->task.number = number;
	replica->counters.in_doubt += !asking;
	r->lane_dirty = true;
	replica_tell(replica, r, number, r->self, r->self, REPLICA_IN_DOUBT);
	if (asking)
		lane_wait(replica, r);
}

static void drop_withheld(struct replica *replica, struct replicant *r, struct withheld *withheld, bool blob)
{
	if (blob)
		blob_done(replica, r, r->self, withheld->number);
	op_unstore(replica, r, r->self, withheld->number);
	uint32_t at = (uint32_t)(withheld - r->withheld);
	memmove(withheld, withheld + 1, (r->withheld_count - at - 1) * sizeof(*withheld));
	r->withheld_count--;
	r->lane_dirty = true;
	if (r->withheld_count > 0 || !vector_is_zero(r->known, r->members_count) || r->queue || r->task.what == TASK_FIRST)
		return;
	name_clear(replica, r);
	r->kind = REPLICANT_NONE; /* it was its create, which did not happen */
	references_wake(replica, r);
	r->head_dirty = true;
}

/* `number` is what it was withheld by: of two in one place, the later one came later. */
static void insert_step(struct replicant *r, uint32_t place, uint32_t number, const struct op *op)
{
	for (uint32_t i = 0; i < r->withheld_count; i++) {
		struct withheld *other = &r->withheld[i];
		if (other->place != UINT32_MAX && (other->place > place || (other->place == place && other->number > number)))
			other->place++;
	}
	lane_append(r, op);
	if (place + 1 >= r->steps_count)
		return;
	struct step step = r->steps[r->steps_count - 1];
	memmove(&r->steps[place + 1], &r->steps[place], (r->steps_count - 1 - place) * sizeof(step));
	r->steps[place] = step;
}

/* A user of this site has deleted it, which is not done here: it was refused, or is in doubt. If that loses, or as long as it is not done,
 * what is withheld is in what is there, and nothing else would tell. */
static bool is_to_be_deleted(struct replicant *r)
{
	return lane_is_closed(r) && !lane_is_deleted(r) && !lane_is_let_go(r);
}

/* It did happen: the others get it. */
static void issue_withheld(struct replica *replica, struct replicant *r, struct withheld *withheld,
                           const struct replica_outcome *outcome)
{
	struct op_row row;
	struct buf content = {0};
	uint32_t place = withheld->place, number = withheld->number;
	if (op_fetch(replica, r, r->self, withheld->number, &row) != 0) {
		replica->broken = true;
		return;
	}
	bool blob = row.flags & OP_BLOB;
	/* It was deleted here since. Issued now, it would be a change behind the delete, which others may have forgotten. */
	if (lane_is_closed(r)) {
		drop_withheld(replica, r, withheld, blob);
		return;
	}
	buf_put(&content, op_content_of(&row, buf_str(&replica->row)));
	struct op *op = lane_number(replica, r, buf_str(&content));
	buf_free(&content);
	lane_issue(replica, r, op);
	drop_withheld(replica, r, withheld, blob);
	if (place != UINT32_MAX) {
		insert_step(r, place, number, op);
		lane_effect(replica, r, op->effect, outcome);
		replica->counters.executed++;
		replica_tell(replica, r, op->number, r->self, r->self, REPLICA_APPLIED);
	}
}

uint32_t doubt_take(struct replica *replica, struct replicant *to, struct replicant *from,
                    const struct withheld *withheld)
{
	struct op_row row;
	uint32_t number = free_number(to);
	if (op_fetch(replica, from, from->self, withheld->number, &row) != 0) {
		replica->broken = true;
		return number;
	}
	op_store(replica, to, to->self, number, buf_str(&replica->row));
	if (row.flags & OP_BLOB)
		blob_need(replica, to, to->self, number, &row.request, true);
	struct withheld *more = realloc(to->withheld, (to->withheld_count + 1) * sizeof(*more));
	CHECK(more != NULL);
	to->withheld = more;
	to->withheld[to->withheld_count++] = (struct withheld){number, to->steps_count, withheld->asking};
	to->lane_dirty = true;
	return number;
}

static bool has_blob(struct replica *replica, const struct replicant *r, uint32_t number)
{
	struct op_row row;
	return op_fetch(replica, r, r->self, number, &row) == 0 && (row.flags & OP_BLOB);
}

void doubt_drop(struct replica *replica, struct replicant *r, uint32_t number)
{
	struct withheld *withheld = find_withheld(r, number);
	if (withheld)
		drop_withheld(replica, r, withheld, has_blob(replica, r, number));
}

bool doubt_ask(struct replica *replica, struct replicant *r)
{
	struct op_row row;
	struct withheld *withheld = NULL;
	for (uint32_t i = 0; i < r->withheld_count && !withheld; i++)
		if (r->withheld[i].asking)
			withheld = &r->withheld[i];
	if (!withheld || op_fetch(replica, r, r->self, withheld->number, &row) != 0)
		return false;
	r->task =
		(struct task){.what = TASK_WITHHELD, .kind = REPLICA_INQUIRE, .member = r->self, .number = withheld->number};
	lane_execute(replica, r, &row);
	return true;
}

void doubt_answered(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	struct withheld *withheld = find_withheld(r, r->task.number);
	if (!withheld)
		return;
	switch (outcome->kind) {
	case REPLICA_ACCEPTED:
		if (!is_to_be_deleted(r)) {
			issue_withheld(replica, r, withheld, outcome);
			break;
		}
		withheld->asking = false; /* a person says so again when that is over */
		replica->counters.in_doubt++;
		r->lane_dirty = true;
		break;
	case REPLICA_REFUSED: drop_withheld(replica, r, withheld, has_blob(replica, r, withheld->number)); break;
	case REPLICA_CREDENTIAL:
	case REPLICA_UNKNOWN:
		withheld->asking = false;
		replica->counters.in_doubt++;
		r->lane_dirty = true;
		break;
	case REPLICA_FAILED: lane_wait(replica, r); break;
	}
}

/* ---- At a restart --------------------------------------------------------------------------------------------------------- */

static void recover_first(struct replica *replica, struct replicant *r)
{
	struct op *op = r->task.intent;
	if (op && task_runs_again(op)) {
		r->task.intent = NULL;
		outcome_stamp_anew(replica, r, op);
		lane_issue(replica, r, op);
		r->task.what = TASK_DELIVERED;
		r->unsure = true;
		return;
	}
	if (op) {
		doubt_withhold(replica, r, true);
		r->not_before_us = 0; /* at once */
	}
	free(r->task.intent);
	r->task = (struct task){0};
}

static void recover_delivered(struct replicant *r)
{
	const struct op *op = op_find(r, r->task.member, r->task.number);
	bool repeatable = op && task_is_repeatable(&r->task, op);
	r->unsure = op != NULL;
	if (!op)
		r->task = (struct task){0};
	else if (!repeatable)
		r->task.kind = task_inquiry(&r->task);
}

void doubt_recover(struct replica *replica, struct replicant *r)
{
	if (r->kind != REPLICANT_LIVE || r->task.what == TASK_NONE || r->task.task != 0)
		return;
	r->lane_dirty = true;
	if (r->task.what == TASK_FIRST)
		recover_first(replica, r);
	else if (r->task.what == TASK_RESTORE)
		r->unsure = true;
	else if (r->task.what == TASK_DELIVERED && !blob_is_awaited(replica, r, r->task.member, r->task.number))
		recover_delivered(r);
	else
		r->task = (struct task){0};
}

/* ---- A person's word ------------------------------------------------------------------------------------------------------- */

static void set_secret(struct replica *replica, struct replicant *r, uint32_t member, uint32_t number,
                       struct str secret)
{
	struct op_row row;
	if (secret.length == 0 || op_fetch(replica, r, member, number, &row) != 0)
		return;
	row.request.secret = secret;
	op_store_again(replica, r, member, number, &row.request);
}

static int judge_withheld(struct replica *replica, struct replicant *r, uint32_t number, enum replica_verdict verdict,
                          struct err *err)
{
	struct withheld *withheld = find_withheld(r, number);
	struct op_row row;
	if (!withheld)
		return err_set(err, ERR_NOT_FOUND, "no such operation is in doubt");
	if (r->task.what == TASK_WITHHELD && r->task.number == number)
		return err_set(err, ERR_CONFLICT, "the service is being asked about it");
	if (verdict == REPLICA_HAPPENED && r->task.what == TASK_FIRST) /* it has the next number */
		return err_set(err, ERR_CONFLICT, "a user's operation is being executed: say so again when it is over");
	if (verdict == REPLICA_HAPPENED && is_to_be_deleted(r))
		return err_set(err, ERR_CONFLICT,
		               "this site has deleted the item, which is not done here yet: decide on that first");
	if (verdict == REPLICA_HAPPENED) {
		issue_withheld(replica, r, withheld, &(struct replica_outcome){.kind = REPLICA_ACCEPTED});
		return 0;
	}
	if (op_fetch(replica, r, r->self, number, &row) != 0)
		return err_set(err, ERR_CORRUPT, "its row cannot be read");
	bool blob = row.flags & OP_BLOB;
	if (verdict == REPLICA_RETRY) {
		for (const struct submission *each = r->queue; each; each = each->next)
			if (each->withheld == number)
				return err_set(err, ERR_CONFLICT, "it is being run again");
		struct submission *again = calloc(1, sizeof(*again));
		CHECK(again != NULL);
		again->withheld = number; /* until it starts */
		again->creates = row.class.effect == ORDER_CREATE;
		buf_put(&again->content, op_content_of(&row, buf_str(&replica->row)));
		queue_push(r, again);
		return 0;
	}
	replica_tell(replica, r, number, r->self, r->self, REPLICA_REJECTED);
	drop_withheld(replica, r, withheld, blob);
	return 0;
}

/* A state, or another replace, that had seen it was rejected. Nobody can say whether that had its effect before: what is repeated, as its answer was
 * lost, may be refused at last. It would be there twice if this one were run now; if the other one is run again, this one need not be. */
static bool is_in_what_was_refused(struct replicant *r, const struct op *op)
{
	for (uint32_t i = 0; i < r->steps_count; i++) {
		const struct op *other = op_find(r, r->steps[i].member, r->steps[i].number);
		const struct exception *exception = report_exception(own_report(r), other->member, other->number);
		bool undecided = exception && exception->state != EXCEPTION_DISMISSED;
		if (r->steps[i].how == ORDER_REJECTED && undecided && other->effect == ORDER_REPLACE &&
		    other->facet == op->facet && other->seen[op->member] >= op->number)
			return true;
	}
	return false;
}

static int judge_issued(struct replica *replica, struct replicant *r, uint32_t member, uint32_t number,
                        enum replica_verdict verdict, struct err *err)
{
	struct step *step = lane_find(r, member, number);
	if (!step || step->how == ORDER_DONE)
		return err_set(err, ERR_NOT_FOUND, "it is neither rejected nor in doubt at this site");
	if (verdict == REPLICA_HAPPENED && step->how != ORDER_DOUBT)
		return err_set(err, ERR_INVALID, "the service rejected it: it did not happen");
	if (verdict == REPLICA_DISMISS && r->newcomer && op_find(r, member, number)->effect == ORDER_ADOPT)
		return err_set(err, ERR_INVALID, "without its copy this site is no member: retry it, or drop the site");
	bool doubt = step->how == ORDER_DOUBT;
	const struct op *op = op_find(r, member, number);
	if (verdict == REPLICA_HAPPENED && op->effect == ORDER_REPLACE && op_makes(r, op))
		return err_set(err, ERR_INVALID,
		               "it was to be made anew, and nobody knows its id here: delete what was made, if anything was, "
		               "and retry it");
	if (verdict == REPLICA_RETRY && doubt && op->effect == ORDER_RELATIVE && is_in_what_was_refused(r, op))
		return err_set(
			err, ERR_CONFLICT,
			"a later operation that sets all of it, and may contain this one, was rejected here: decide on that first");
	/* The others would forget it before they heard of that. */
	if (verdict == REPLICA_DISMISS && op->effect == ORDER_DELETE && r->task.what == TASK_FIRST)
		return err_set(err, ERR_CONFLICT, "a user's operation is being executed: say so again when it is over");
	/* Until it is run again, or what is due without it, the report must not say that it is settled here: nobody would keep it. */
	if (verdict == REPLICA_RETRY || (verdict == REPLICA_DISMISS && doubt))
		report_except(own_report(r), &(struct exception){member, number, REPLICA_PENDING, 0, 0, NULL});
	else if (verdict == REPLICA_DISMISS && step->how != ORDER_KEPT)
		/* Nobody need look at it. Still, it has no effect here, nor sets what earlier ones would have set. */
		report_except(own_report(r), &(struct exception){member, number, EXCEPTION_DISMISSED, 0, 0, NULL});
	else
		report_unexcept(own_report(r), member, number);
	r->report_dirty = r->lane_dirty = true;
	r->head_dirty |= r->span == REPLICA_PLACED; /* from which is read whether this site will hold it */
	if (verdict == REPLICA_HAPPENED) {
		step->how = ORDER_DONE;
		lane_effect(replica, r, op_find(r, member, number)->effect,
		            &(struct replica_outcome){.kind = REPLICA_ACCEPTED});
		replica_tell(replica, r, number, member, r->self, REPLICA_APPLIED);
	} else if (verdict == REPLICA_DISMISS) {
		if (doubt) {
			step->how = ORDER_REJECTED; /* what it won against may be due now */
			r->redo = true;
			r->not_before_us = 0;
		}
		replica_tell(replica, r, number, member, r->self,
		             REPLICA_REJECTED); /* who follows sees that somebody decided */
	} else if (verdict == REPLICA_RETRY && step->how == ORDER_KEPT) {
		step->how = ORDER_DONE; /* it was done once, and was refused when it was to be done again */
		r->redo = true;
		r->not_before_us = 0;
		replica_tell(replica, r, number, member, r->self, REPLICA_PENDING);
	} else if (verdict == REPLICA_RETRY) {
		for (uint32_t i = 0; i < r->withheld_count; i++)
			if (r->withheld[i].place != UINT32_MAX && r->withheld[i].place > (uint32_t)(step - r->steps))
				r->withheld[i].place--;
		memmove(step, step + 1, (size_t)(r->steps + r->steps_count - step - 1) * sizeof(*step));
		r->steps_count--;
		r->redo = true;
		r->not_before_us = 0;
		replica_tell(replica, r, number, member, r->self, REPLICA_PENDING);
	}
	return 0;
}

void doubt_retry_create(struct replica *replica, struct replicant *r)
{
	for (uint32_t i = 0; i < r->ops_count && r->kind == REPLICANT_LIVE && r->name.length > 0; i++) {
		const struct op *op = r->ops[i];
		const struct exception *exception = report_exception(own_report(r), op->member, op->number);
		if ((op->effect == ORDER_CREATE || op->effect == ORDER_ADOPT) && exception &&
		    exception->state == REPLICA_REJECTED && exception->status == 409)
			judge_issued(replica, r, op->member, op->number, REPLICA_RETRY, NULL);
	}
}

int doubt_judge(struct replica *replica, struct replica_op_id op, enum replica_verdict verdict, struct str secret,
                struct err *err)
{
	struct replicant *r;
	merge_moved(replica, &op);
	int code = replicant_load(replica, op.replicant, &r);
	if (code != 0 || r->kind != REPLICANT_LIVE)
		return err_set(err, code ? code : ERR_NOT_FOUND, "no replicant of that id is known here");
	if (secret.length > LIMIT_REPLICA_SECRET_BYTES)
		return err_set(err, ERR_LIMIT, "credentials of %zu bytes; at most %d", secret.length,
		               LIMIT_REPLICA_SECRET_BYTES);
	uint32_t member = member_index(r, op.site);
	if (member == UINT32_MAX)
		return err_set(err, ERR_NOT_FOUND, "that site is no member of it");
	bool withheld = member == r->self && (op.number & REPLICA_WITHHELD) != 0;
	if (!withheld && op_find(r, member, op.number) == NULL)
		return err_set(err, ERR_NOT_FOUND, "no such operation is pending");
	if (verdict == REPLICA_RETRY)
		set_secret(replica, r, member, op.number, secret);
	code = withheld ? judge_withheld(replica, r, op.number, verdict, err)
	                : judge_issued(replica, r, member, op.number, verdict, err);
	work_add(replica, r);
	return code;
}
