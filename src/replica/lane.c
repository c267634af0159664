/* A lane: what runs next on one replicant at this site.
 *
 * 1. A user's operation, if one waits: it gets its number, its stamp and what it had seen, its row is put, and it runs.
 * 2. Else what order_next() says, given all that is known and X, what was done so far. Where a single operation came that had
 *    seen all the rest, it is that one: nothing need be ordered.
 * 3. When there is nothing to run, the site is settled for what it knows, and reports it.
 * What comes of a run is in outcome.c.
 *
 * It cannot run yet: a replicant that it refers to is not here, or its blob: it waits for that, others do not. Too many run
 * already: it waits for one to end. It failed before: it waits a while, longer each time.
 * It makes no sense to run it: what was never made here is deleted without asking the service, and not changed.
 * Nothing that could be re-run resets what was done in another order: the report says `stuck`, and repair.c goes on. */
#include "replica/checkpoint.h"
#include "replica/order_int.h"
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

/* The only operation that is not settled here, if it had seen all others: it is the end of E. */
static struct op *find_simple(const struct replicant *r)
{
	const uint32_t *settled = r->members[r->self].report.settled;
	uint32_t member = UINT32_MAX;
	for (uint32_t i = 0; i < r->members_count; i++) {
		if (r->known[i] == settled[i])
			continue;
		if (member != UINT32_MAX || r->known[i] != settled[i] + 1)
			return NULL;
		member = i;
	}
	struct op *op = member == UINT32_MAX ? NULL : op_find(r, member, r->known[member]);
	return op && vector_equal(op->seen, settled, r->members_count) ? op : NULL;
}

/* ---- Handled ---------------------------------------------------------------------------------------------------------- */

/* It was done here, or lost against what was done here. */
static bool is_handled(const struct replicant *r, uint32_t index)
{
	for (uint32_t hops = 0; hops <= r->ops_count; hops++) {
		if (lane_has_done(r, index))
			return true;
		const struct order_place *place = &r->sequence.places[index];
		if (place->fate == ORDER_COUNTS)
			return false;
		index = place->by;
	}
	return false;
}

/* What an operation that is issued now has seen. It never shrinks: the operations of one member see more and more. */
void lane_raise_handled(struct replicant *r)
{
	lane_order(r);
	for (bool more = true; more;) {
		more = false;
		for (uint32_t m = 0; m < r->members_count; m++) {
			const struct op *op = op_find(r, m, r->handled[m] + 1);
			uint32_t before = r->handled[m];
			if (op == NULL)
				continue;
			r->handled[m]++; /* so that it covers the operation's own predecessor */
			if (vector_covers(r->handled, op->seen, r->members_count) && is_handled(r, op_index(r, m, op->number)))
				more = true;
			else
				r->handled[m] = before;
		}
	}
}

/* What was to be run again need not be any more; but what was in doubt, and did not happen, has no effect here. */
static void settle_exceptions(struct replicant *r)
{
	struct report *report = own_report(r);
	for (uint32_t i = report->exceptions_count; i-- > 0;) {
		struct exception *exception = &report->exceptions[i];
		if (exception->state != REPLICA_PENDING)
			continue;
		const struct step *step = lane_find(r, exception->member, exception->number);
		if (step && step->how == ORDER_REJECTED)
			exception->state = EXCEPTION_DISMISSED;
		else
			report_unexcept(report, exception->member, exception->number);
		r->report_dirty = true;
	}
}

void lane_settle(struct replicant *r)
{
	struct report *report = own_report(r);
	if (!vector_equal(report->settled, r->known, r->members_count) || report->stuck || report->diverged)
		r->report_dirty = true;
	vector_copy(report->settled, r->known, r->members_count);
	vector_copy(r->handled, r->known, r->members_count);
	report->stuck = report->diverged = r->unable = false;
	report->distance = 0;
	r->redo = false;
	settle_exceptions(r);
	r->lane_dirty = true;
}

static void get_stuck(struct replica *replica, struct replicant *r, uint32_t distance)
{
	struct report *report = own_report(r);
	/* Whoever deleted it has no state to give. That is over when a user changes what is left behind the delete: where its service refused it,
	 * the item is still there, and nobody else has a better one. */
	bool diverged = r->unable || repair_was_in_vain(r) || repair_was_refused(r, report) || lane_ends_deleted(r);
	if (report->stuck && report->distance == distance && report->diverged == diverged)
		return;
	replica->counters.diverged += diverged && !report->diverged;
	report->stuck = true;
	report->diverged = diverged;
	report->distance = distance;
	r->report_dirty = r->lane_dirty = true;
}

/* ---- Running ---------------------------------------------------------------------------------------------------------- */

/* The delete was run here; or there was nothing to delete here, since all else that is known is covered by it. */
bool lane_is_deleted(struct replicant *r)
{
	for (uint32_t i = r->steps_count; i-- > 0;) {
		const struct op *op = op_find(r, r->steps[i].member, r->steps[i].number);
		if (r->steps[i].how == ORDER_REJECTED)
			continue; /* without effect */
		if (op->effect == ORDER_DELETE)
			return r->steps[i].how == ORDER_DONE;
		if (op->effect == ORDER_CREATE || op->effect == ORDER_REPLACE)
			return false;
	}
	return r->ops_count > 0 && !own_report(r)->created &&
	       vector_equal(own_report(r)->settled, r->known, r->members_count) && lane_ends_deleted(r);
}

/* Who is stuck has run it. */
bool lane_is_redoing(struct replicant *r)
{
	struct order_next next = {0};
	if (r->redo)
		lane_next(r, &next);
	return next.action == ORDER_RUN || next.action == ORDER_RERUN || next.action == ORDER_RESTORE;
}

/* The service here refused the delete, and a person let it be: what is there is the service's own. The others forget it. */
bool lane_is_let_go(struct replicant *r)
{
	if (own_report(r)->exceptions_count == 0 || !lane_ends_deleted(r) || lane_is_redoing(r))
		return false;
	const struct op *last = r->ops[r->sequence.ops[r->sequence.ops_count - 1]];
	const struct exception *exception = report_exception(own_report(r), last->member, last->number);
	return exception && exception->state == EXCEPTION_DISMISSED;
}

/* Of what users may still ask for: one of this site's operations that counts is a delete, run here or not yet. */
bool lane_is_closed(struct replicant *r)
{
	if (lane_is_deleted(r) || lane_is_let_go(r))
		return true;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		if (r->ops[i]->member != r->self || r->ops[i]->effect != ORDER_DELETE)
			continue;
		lane_order(r);
		if (r->sequence.places[i].fate != ORDER_SUPERSEDED)
			return true;
	}
	return false;
}

bool lane_ends_deleted(struct replicant *r)
{
	lane_order(r);
	uint32_t count = r->sequence.ops_count;
	return count > 0 && r->ops[r->sequence.ops[count - 1]]->effect == ORDER_DELETE;
}

void lane_wait(struct replica *replica, struct replicant *r)
{
	uint64_t least = replica->options.retry_least_us, most = replica->options.retry_most_us;
	r->retry_us = r->retry_us == 0 ? least : r->retry_us > most / 2 ? most : r->retry_us * 2;
	uint64_t jitter = replica_draw(replica) % (r->retry_us / 4 + 1);
	r->not_before_us = replica->now.us + r->retry_us + jitter;
	replica_fire(replica, r, r->not_before_us);
}

void lane_execute(struct replica *replica, struct replicant *r, const struct op_row *row)
{
	const struct report *report = own_report(r);
	r->task.task = replica->task_next++;
	bool users = r->task.what == TASK_FIRST || (r->task.what == TASK_WEAK && r->task.ticket != 0);
	struct replica_task task = {.number = r->task.task,
	                            .kind = r->task.kind,
	                            .op = op_id(r, r->task.member, r->task.number),
	                            .class = &row->class,
	                            .request = &row->request,
	                            .service = r->service,
	                            .type = r->type,
	                            .collection = r->collection,
	                            .local_id = str_make(report->local_id, report->local_id_bytes),
	                            .local_id_quoted = report->local_id_quoted,
	                            .first = users,
	                            .ticket = users ? r->task.ticket : 0};
	replica->running = replica_grow(replica->running, &replica->running_capacity, replica->running_count + 1,
	                                sizeof(*replica->running));
	replica->running[replica->running_count++] = (struct running){r->task.task, r->id};
	replica->counters.running++;
	r->lane_dirty = true;
	replica->host.execute(replica->host.context, &task);
}

struct op *lane_number(struct replica *replica, struct replicant *r, struct str content)
{
	return lane_number_at(replica, r, content, hlc_tick(&replica->clock, replica->now.wall_ms));
}

struct op *lane_number_at(struct replica *replica, struct replicant *r, struct str content, uint64_t stamp)
{
	struct op_row row;
	uint32_t number = r->known[r->self] + 1;
	uint32_t own = r->handled[r->self];
	r->handled[r->self] = number - 1;
	buf_clear(&replica->row);
	op_row_put(&replica->row, stamp, r->handled, r->members_count, content);
	r->handled[r->self] = own;
	int code = op_row_parse(buf_str(&replica->row), &row, NULL);
	CHECK(code == 0); /* it was checked when it was submitted */
	struct op *op = op_new(&row, r->self, number, r->members_count, replica->row.length);
	op_store(replica, r, r->self, number, buf_str(&replica->row));
	if (row.flags & OP_BLOB)
		blob_need(replica, r, r->self, number, &row.request, true);
	return op;
}

void lane_issue(struct replica *replica, struct replicant *r, struct op *op)
{
	op_insert(r, op);
	replica->counters.issued++;
	r->fresh = true;
	r->lane_dirty = true;
}

static bool has_step(const struct replicant *r, uint8_t effect, enum order_done how)
{
	for (uint32_t i = 0; i < r->steps_count; i++)
		if (r->steps[i].how == how && op_find(r, r->steps[i].member, r->steps[i].number)->effect == effect)
			return true;
	return false;
}

bool lane_is_refused(const struct replicant *r)
{
	bool forgotten = !vector_is_zero(r->base, r->members_count); /* and a person let it be */
	return !r->members[r->self].report.created && !r->newcomer &&
	       (forgotten || has_step(r, ORDER_CREATE, ORDER_REJECTED));
}

/* Whether there is something here is not known: a person has to say. What is there could not be changed nor deleted. */
bool lane_is_made_in_doubt(const struct replicant *r)
{
	for (uint32_t i = 0; i < r->steps_count; i++)
		if (r->steps[i].how == ORDER_DOUBT && op_makes(r, op_find(r, r->steps[i].member, r->steps[i].number)))
			return true;
	return false;
}

static struct submission *queue_pop(struct replicant *r)
{
	struct submission *submission = r->queue;
	r->queue = submission->next;
	r->queue_end = r->queue ? r->queue_end : &r->queue;
	r->queue_count--;
	return submission;
}

/* While it waited, what it is about may have gone. */
static bool is_late(struct replica *replica, struct replicant *r, struct submission *submission)
{
	bool closed = lane_is_closed(r);
	if (!closed && (own_report(r)->created || submission->creates))
		return false;
	if (submission->withheld != 0 && closed)
		doubt_drop(replica, r, submission->withheld); /* nobody waits for an answer */
	else if (closed)
		submit_refuse(replica, submission->ticket, ERR_NOT_FOUND, "it was deleted meanwhile");
	else if (submission->withheld == 0)
		submit_refuse(replica, submission->ticket, ERR_UNAVAILABLE, "it is not at this site now");
	submission_free(submission);
	work_add(replica, r);
	return true;
}

static void give_up_create(struct replica *replica, struct replicant *r)
{
	queue_refuse(replica, r, ERR_NOT_FOUND, "it could not be created");
	r->kind = REPLICANT_NONE;
	r->head_dirty = r->lane_dirty = true;
}

/* Of two creates of one name at a time nobody could tell, after a crash, which one made what is there. */
static bool is_early(struct replica *replica, struct replicant *r, struct submission *submission)
{
	if (!submission->creates || submission->withheld != 0 || !name_is_in_the_making(replica, r))
		return false;
	submit_refuse(replica, submission->ticket, ERR_UNAVAILABLE,
	              "another one of its name is being made at this site: try again");
	submission_free(submission);
	give_up_create(replica, r);
	return true;
}

/* What it refers to may never come to be: the other members would wait for that for ever. */
static bool is_ahead(struct replica *replica, struct replicant *r, struct submission *submission,
                     const struct op_row *row)
{
	if (references_are_certain(replica, r, &row->request))
		return false;
	submit_refuse(replica, submission->ticket, ERR_UNAVAILABLE,
	              "something that it refers to is being made at this site, or whether it was is in doubt: try again");
	if (submission->creates && submission->withheld == 0)
		give_up_create(replica, r);
	submission_free(submission);
	work_add(replica, r);
	return true;
}

static void start_first(struct replica *replica, struct replicant *r)
{
	struct submission *submission = queue_pop(r);
	if (is_late(replica, r, submission) || is_early(replica, r, submission))
		return;
	if (submission->gives) {
		repair_give(replica, r, submission->ticket);
		submission_free(submission);
		return;
	}
	struct op_row row;
	int code = op_content_parse(buf_str(&submission->content), &row);
	CHECK(code == 0);
	if (is_ahead(replica, r, submission, &row))
		return;
	/* The creates of others under this name wait for it. Who has the name keeps it: this one will probably be refused, and leave nothing. */
	if (submission->creates && !name_holder(replica, r))
		name_set(replica, r);
	struct op *op = lane_number(replica, r, buf_str(&submission->content));
	r->task = (struct task){.what = TASK_FIRST,
	                        .kind = REPLICA_RUN,
	                        .member = r->self,
	                        .number = op->number,
	                        .ticket = submission->ticket,
	                        .answered = submission->ticket == 0,
	                        .intent = op,
	                        .key = submission->key};
	submission->key = (struct buf){0};
	if (r->task.key.length > 0)
		key_store(replica, buf_str(&r->task.key), op_id(r, r->self, op->number), NULL);
	lane_execute(replica, r, &row);
	if (submission->withheld != 0)
		doubt_drop(replica, r, submission->withheld);
	submission_free(submission);
}

/* A weak one has no number: it runs, and that is all. */
static void start_weak(struct replica *replica, struct replicant *r)
{
	struct submission *submission = queue_pop(r);
	struct op_row row;
	r->task = (struct task){.what = TASK_WEAK,
	                        .kind = REPLICA_RUN,
	                        .member = submission->relayed ? submission->member : r->self,
	                        .ticket = submission->ticket,
	                        .answered = submission->relayed,
	                        .content = submission->content,
	                        .loan = submission->loan};
	submission->content = (struct buf){0};
	int code = op_content_parse(buf_str(&r->task.content), &row);
	CHECK(code == 0);
	if (submission->has_blob)
		r->task.loan = weak_need(replica, r, row.request.blob);
	lane_execute(replica, r, &row);
	submission_free(submission);
}

static bool take_slot(struct replica *replica, struct replicant *r)
{
	if (replica->running_count < replica->options.running_most)
		return true;
	if (!r->waiting) {
		replica->slots =
			replica_grow(replica->slots, &replica->slots_capacity, replica->slots_count + 1, sizeof(*replica->slots));
		replica->slots[replica->slots_count++] = r->id;
		r->waiting = true;
	}
	return false;
}

void lane_wake_slots(struct replica *replica)
{
	uint32_t woken = 0;
	while (woken < replica->slots_count && replica->running_count + woken < replica->options.running_most) {
		struct replicant *r;
		if (replicant_load(replica, replica->slots[woken++], &r) == 0) {
			r->waiting = false;
			work_add(replica, r);
		}
	}
	if (woken == 0)
		return;
	memmove(replica->slots, replica->slots + woken, (replica->slots_count - woken) * sizeof(*replica->slots));
	replica->slots_count -= woken;
}

/* Without asking the service. */
static void reject(struct replica *replica, struct replicant *r, const struct task *task, int status, char *answer)
{
	lane_step(r, task, ORDER_REJECTED);
	report_except(own_report(r), &(struct exception){task->member, task->number, REPLICA_REJECTED, (uint16_t)status,
	                                                 (uint16_t)strlen(answer), answer});
	replica->counters.rejected++;
	r->report_dirty = true;
	replica_tell(replica, r, task->number, task->member, r->self, REPLICA_REJECTED);
}

/* True: it is done with. */
static bool skip_missing(struct replica *replica, struct replicant *r, const struct op *op, const struct task *task)
{
	static char answer[] = "it was not made here, or that is in doubt";
	if (own_report(r)->created || op->effect == ORDER_CREATE || op->effect == ORDER_REPLACE)
		return false;
	if (op->effect != ORDER_DELETE || lane_is_made_in_doubt(r)) {
		reject(replica, r, task, 404, answer);
	} else {
		lane_step(r, task, ORDER_DONE);
		replica_tell(replica, r, op->number, op->member, r->self, REPLICA_APPLIED);
	}
	return true;
}

static bool skip_lost(struct replica *replica, struct replicant *r, const struct op *op,
                      const struct replica_request *request, const struct task *task)
{
	static char answer[] = "its body went with the site that issued it, which was removed";
	if (!blob_is_lost(replica, r, op, request))
		return false;
	reject(replica, r, task, 410, answer);
	r->retry_us = 0; /* who has it run again looks for it anew */
	return true;
}

/* True: X has changed, look again. */
static bool run(struct replica *replica, struct replicant *r, const struct op *op, const struct order_next *next)
{
	struct task task = {.what = TASK_DELIVERED,
	                    .kind = next->as_replace ? REPLICA_RUN_CREATE_AS_REPLACE : REPLICA_RUN,
	                    .member = op->member,
	                    .number = op->number,
	                    .standing = next->standing};
	struct op_row row;
	if (op->flags & OP_MERGE || (op->effect == ORDER_ADOPT && !r->newcomer)) {
		/* It was carried out when it came; or it is another one's copy, or was made already. */
		lane_step(r, &task, ORDER_DONE);
		replica_tell(replica, r, op->number, op->member, r->self, REPLICA_APPLIED);
		return true;
	}
	if (op->effect != ORDER_ADOPT && skip_missing(replica, r, op, &task))
		return true;
	if (!take_slot(replica, r) || op_fetch(replica, r, op->member, op->number, &row) != 0)
		return false;
	if (skip_lost(replica, r, op, &row.request, &task))
		return true;
	/* Its name last: who is told that it is taken has to find this one in the making, or both would wake each other for ever. */
	if (!references_are_here(replica, r, op, &row.request) || !blob_is_here(replica, r, op, &row.request) ||
	    !name_is_free(replica, r, op))
		return false;
	r->task = task;
	replica->counters.rerun += next->action == ORDER_RERUN;
	lane_execute(replica, r, &row);
	return false;
}

bool lane_adopt(struct replica *replica, struct replicant *r, const struct op *copy)
{
	struct order_next next = {.action = ORDER_RUN};
	return run(replica, r, copy, &next);
}

/* The last state that somebody gave and that was not taken here yet. The order has no way to what a delete took that lost, when its
 * create is forgotten; a state makes it again. */
static const struct op *find_repair(const struct replicant *r)
{
	const struct op *last = NULL;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		if (op_is_state(op) && r->sequence.places[i].fate == ORDER_COUNTS && !lane_has_done(r, i) &&
		    (!last || op->stamp > last->stamp))
			last = op;
	}
	return last;
}

/* Nothing is left of what was before it, so nothing is missing. */
void lane_made_whole(struct replicant *r, const struct op *op)
{
	struct report *report = own_report(r);
	struct order_op whole = {.effect = op->effect, .class = op->class, .facet = op->facet};
	if (!report->lacking || op->facet != 0 || !order_resets(&r->rules, &whole))
		return;
	report->lacking = false;
	r->report_dirty = true;
}

static bool go_on(struct replica *replica, struct replicant *r)
{
	struct order_next next = {0};
	bool foreign = own_report(r)->foreign;
	struct op *simple = r->redo || own_report(r)->stuck || foreign ? NULL : find_simple(r);
	const struct step *done = simple ? lane_find(r, simple->member, simple->number) : NULL;
	if (simple && !done) {
		next.action = ORDER_RUN;
		return run(replica, r, simple, &next);
	}
	if (done && done == &r->steps[r->steps_count - 1]) {
		lane_settle(r);
		return false;
	}
	if (foreign && merge_replays(r, &next))
		return run(replica, r, r->ops[next.op], &next);
	lane_next(r, &next);
	if (next.action == ORDER_NOTHING && !own_report(r)->foreign) {
		lane_settle(r);
		return false;
	}
	lane_raise_handled(r);
	if (next.action == ORDER_RUN || next.action == ORDER_RERUN)
		return run(replica, r, r->ops[next.op], &next);
	if (next.action == ORDER_RESTORE) {
		if (take_slot(replica, r))
			checkpoint_restore(replica, r);
		return false;
	}
	const struct op *repair = find_repair(r);
	if (repair) {
		next = (struct order_next){.action = ORDER_RUN};
		return run(replica, r, repair, &next);
	}
	if (lane_is_let_go(r))
		lane_settle(r); /* whoever deleted it has no state to give, and nobody needs it */
	else
		get_stuck(replica, r, next.distance);
	return false;
}

static void make_sure(struct replica *replica, struct replicant *r)
{
	struct op_row row;
	if (r->task.what == TASK_RESTORE)
		checkpoint_execute(replica, r);
	else if (op_fetch(replica, r, r->task.member, r->task.number, &row) == 0)
		lane_execute(replica, r, &row);
}

void lane_pump(struct replica *replica, struct replicant *r)
{
	if (r->kind == REPLICANT_LEFT)
		members_pump_left(replica, r);
	if (r->kind != REPLICANT_LIVE || r->task.task != 0)
		return;
	if (members_is_leaving(r)) {
		queue_refuse_new(replica, r, ERR_CONFLICT, "this site is leaving: ask another member");
		members_extend_refuse(replica, r, ERR_CONFLICT, "this site is leaving: ask another member");
	}
	if (r->unsure && (r->queue || r->not_before_us <= replica->now.us)) {
		make_sure(replica, r);
		return;
	}
	if (r->unsure) {
		replica_fire(replica, r, r->not_before_us);
		return;
	}
	if (r->members[r->self].removed) {
		members_first(replica, r);
		return;
	}
	if (r->merges && !merge_take(replica, r))
		return;
	if (is_witness(r)) {
		queue_refuse(replica, r, ERR_UNAVAILABLE, "it lies at other sites: ask one of them");
		witness_follow(replica, r);
		members_first(replica, r);
		return;
	}
	if (r->queue && r->consistency == REPLICA_WEAK) {
		start_weak(replica, r);
		return;
	}
	if (checkpoint_start(replica, r))
		return;
	if (r->queue && !members_holds(replica, r)) {
		start_first(replica, r);
		return;
	}
	if (r->not_before_us > replica->now.us) {
		replica_fire(replica, r, r->not_before_us);
		return;
	}
	if (doubt_ask(replica, r) || repair_start(replica, r) || members_first(replica, r))
		return;
	/* Each turn takes one operation into X. */
	for (uint32_t turns = 0; turns <= r->ops_count; turns++) {
		bool settled = vector_equal(own_report(r)->settled, r->known, r->members_count);
		if ((settled && !r->redo) || !go_on(replica, r))
			break;
	}
	if (r->task.task == 0 && checkpoint_start(replica, r))
		return;
	members_extend(replica, r);
}

/* What came of an operation, for what this site has of the item. */
void lane_effect(struct replica *replica, struct replicant *r, uint8_t effect, const struct replica_outcome *outcome)
{
	struct report *report = own_report(r);
	if (effect == ORDER_DELETE) {
		local_clear(replica, r);
		r->gone = r->gone || report->created;
		if (report->created)
			r->report_dirty = true;
		report->created = false;
		references_wake(replica, r); /* its name is free */
		return;
	}
	if (effect == ORDER_ADOPT) /* it has its name, and is not made yet: see adopt.c */
		name_set(replica, r);
	if (effect == ORDER_CREATE || (effect == ORDER_REPLACE && !report->created)) {
		report->created = true;
		r->gone = false;
		r->report_dirty = true;
		name_set(replica, r);
	}
	if (outcome->local_id.length > 0 && outcome->local_id.length <= sizeof(report->local_id))
		local_set(replica, r, outcome->local_id, outcome->local_id_quoted);
	if (effect == ORDER_CREATE || effect == ORDER_REPLACE)
		references_wake(replica, r);
}
