/* Checkpoints: long histories of what is divided.
 *
 * What a site has run in another order than E is undone by running the last create or replace again, and all that follows. Of what is
 * divided no other site could give its state instead: each has its own part. So these operations would have to be kept for ever. A checkpoint is the part
 * of this site itself, as its service has it, with all operations up to a base carried out, from where the rest can be run again.
 *
 * The happy path:
 *   1. Behind the last reset, or checkpoint, there are more than `kept_most` operations. As soon as this site has settled all that it knows, it reads its own part;
 *      nothing else runs meanwhile. It has a candidate, in memory: what it read, and what it had settled
 *   2. Every member reports that it has settled that much: no operation will come that has not seen it. If these are a beginning of E, the candidate becomes
 *      the checkpoint, a row, and they are forgotten (forget.c), in one commit. The base is the place of the checkpoint, always
 *   3. Something comes that belongs before what was run, and there is no reset to begin with: order_next() says ORDER_RESTORE. The part is set again, by a replace at
 *      the service here, and X is empty: what follows is due
 *
 * What goes wrong:
 *   others have issued something meanwhile that belongs before the end of the candidate    it is dropped, and another one read. Where changes follow each other
 *                                                                                          at all sites without a pause this may go on, and more is kept
 *   a member is away                                                                       what it may come with is not known: more is kept
 *   more than LIMIT_REPLICA_REPLAYED are kept                                              no more changes are taken (submit.c) until there is a checkpoint, or a
 *                                                                                          replace. With nothing new at any site 2. comes true
 *   the part cannot be read                                                                it is tried again, later
 *   the agent ends while the part is set again                                             it is set again: that is right twice
 *   the service refuses to take the part back                                              this site is stuck, until the next replace; as it is where none can be run
 *   a replace is settled by all                                                            it is what one begins with: a checkpoint before it goes */
#include "replica/checkpoint.h"

#include "base/check.h"

#include <stdlib.h>

/* Read, and not the base of all yet. */
struct candidate {
	uint32_t members_count;
	uint32_t at[LIMIT_REPLICA_MEMBERS];
	struct buf content; /* op_content_put(); empty: it is being read */
};

bool checkpoint_applies(const struct replicant *r)
{
	return r->span == REPLICA_DIVIDED && r->rules.create_replays;
}

/* ---- The row: that of an operation of this site without a number, which has seen the base ---------------------------------------- */

static void store(struct replica *replica, struct replicant *r, const struct candidate *candidate)
{
	struct buf row = {0};
	op_row_put(&row, 0, candidate->at, candidate->members_count, buf_str(&candidate->content));
	op_store(replica, r, r->self, 0, buf_str(&row));
	replica->counters.pending_operations--; /* it is none */
	buf_free(&row);
}

/* With `seen` as it is in the row. */
bool checkpoint_load(struct replicant *r, const struct op_row *row)
{
	uint32_t at[LIMIT_REPLICA_MEMBERS] = {0};
	if (row->members_count > r->members_count || row->class.effect != ORDER_REPLACE)
		return false;
	struct reader seen = reader_of(str_make((const char *)row->seen, (size_t)row->members_count * 4));
	read_vector(&seen, at, row->members_count);
	r->checkpointed = vector_equal(at, r->base, r->members_count);
	return true;
}

void candidate_drop(struct replicant *r)
{
	if (!r->candidate)
		return;
	buf_free(&r->candidate->content);
	free(r->candidate);
	r->candidate = NULL;
}

void checkpoint_later(struct replica *replica, struct replicant *r)
{
	candidate_drop(r);
	r->checkpoint_us = replica->now.us + REPLICA_CHECKPOINT_US;
	replica_fire(replica, r, r->checkpoint_us);
}

void checkpoint_drop(struct replica *replica, struct replicant *r)
{
	candidate_drop(r);
	if (!r->checkpointed)
		return;
	op_unstore(replica, r, r->self, 0);
	replica->counters.pending_operations++;
	r->checkpointed = r->checkpoint_refused = false;
	r->ordered = false;
}

/* ---- Is there need of one? ----------------------------------------------------------------------------------------------------- */

/* What would be run again, at the most; with a file among them, that is to go as soon as all have it. */
static bool is_long(struct replica *replica, struct replicant *r)
{
	uint32_t behind = 0;
	lane_order(r);
	for (uint32_t i = r->sequence.ops_count; i-- > 0; behind++) {
		const struct op *op = r->ops[r->sequence.ops[i]];
		if (op->flags & OP_BLOB)
			return true;
		if (op->facet == 0 && (op->effect == ORDER_REPLACE || op->effect == ORDER_CREATE))
			return behind > replica->options.kept_most;
	}
	return behind > replica->options.kept_most || !r->checkpointed;
}

static bool is_settled(const struct replicant *r)
{
	return !r->redo && vector_equal(r->members[r->self].report.settled, r->known, r->members_count);
}

bool checkpoint_start(struct replica *replica, struct replicant *r)
{
	const struct report *own = own_report(r);
	if (!checkpoint_applies(r) || r->candidate || r->ops_count == 0 || r->unsure || !own->created ||
	    own->exceptions_count > 0 || own->lacking || r->withheld_count > 0 || r->newcomer || !is_settled(r) ||
	    lane_is_closed(r) || !is_long(replica, r))
		return false;
	if (r->checkpoint_us > replica->now.us) {
		replica_fire(replica, r, r->checkpoint_us);
		return false;
	}
	r->candidate = calloc(1, sizeof(*r->candidate));
	CHECK(r->candidate);
	r->candidate->members_count = r->members_count;
	vector_copy(r->candidate->at, own->settled, r->members_count);
	r->task = (struct task){.what = TASK_CHECKPOINT, .kind = REPLICA_READ_STATE, .member = r->self};
	struct op_row row = {0};
	lane_execute(replica, r, &row);
	return true;
}

void checkpoint_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome)
{
	struct candidate *candidate = r->candidate;
	bool fits = candidate && outcome->kind == REPLICA_ACCEPTED && outcome->state_class.effect == ORDER_REPLACE &&
	            outcome->state.blob.length == 0 && op_check(&outcome->state_class, &outcome->state, NULL) == 0 &&
	            candidate->members_count == r->members_count &&
	            vector_equal(candidate->at, own_report(r)->settled, r->members_count);
	if (fits) {
		op_content_put(&candidate->content, &outcome->state_class, &outcome->state, OP_REPAIR);
		return;
	}
	checkpoint_later(replica, r);
}

/* ---- Forgetting up to it -------------------------------------------------------------------------------------------------------- */

const uint32_t *candidate_at(const struct replicant *r)
{
	bool ready = r->candidate && r->candidate->content.length > 0 && r->candidate->members_count == r->members_count;
	return ready ? r->candidate->at : NULL;
}

void checkpoint_take(struct replica *replica, struct replicant *r)
{
	CHECK(vector_equal(r->candidate->at, r->base, r->members_count));
	store(replica, r, r->candidate);
	candidate_drop(r);
	r->checkpointed = true;
	r->checkpoint_refused = r->ordered = false;
}

/* ---- Going back to it ----------------------------------------------------------------------------------------------------------- */

bool checkpoint_execute(struct replica *replica, struct replicant *r)
{
	struct op_row row;
	int code = op_fetch(replica, r, r->self, 0, &row);
	if (code != 0)
		return false;
	lane_execute(replica, r, &row);
	return true;
}

void checkpoint_restore(struct replica *replica, struct replicant *r)
{
	r->task = (struct task){.what = TASK_RESTORE, .kind = REPLICA_RUN, .member = r->self};
	replica->counters.rerun++;
	if (!checkpoint_execute(replica, r))
		r->task = (struct task){0};
}

void checkpoint_restored(struct replicant *r)
{
	lane_restored(r);
	r->retry_us = 0;
}

void checkpoint_was_refused(struct replicant *r)
{
	r->checkpoint_refused = true;
	r->ordered = false;
}
