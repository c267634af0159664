/* Forgetting: what every member has settled is needed no more.
 *
 * An operation is forgotten when every member's report says that it is settled there, none has it as rejected or in doubt (unless a
 * later one sets all that it would have set, and nothing that it won against has its effect where it was rejected), all that those reports speak of is known here, and all before it in E is forgotten
 * as well: so every operation that comes from now on has seen it, and its place in E is fixed. `base` has what is forgotten.
 *
 * Where the order of relative operations matters, or the state of one member is of no use to another, the last one that can reset the item is kept with what follows it, so that
 * something can be re-run from there; up to a number of them. Not where one of them has a blob, which is to go as soon as all have it:
 * what cannot be re-run is repaired.
 *
 * Of what is divided nobody could be given the state: the last one that resets it is kept with all that follows, until this site has a checkpoint
 * behind it (checkpoint.c).
 *
 * Gone: the last that counts is a delete, and everybody has settled it. Its id stays for a while (a tombstone), so that a late
 * message does not bring it back. Who may not have heard that we settled it is told GONE until it answers; it can forget it too. */
#include "replica/checkpoint.h"
#include "replica/order_int.h"

#include <stdlib.h>

/* ---- What everybody has settled ---------------------------------------------------------------------------------------------- */

static bool settled_by_all(const struct replicant *r, uint32_t *all)
{
	if (!members_agree(r))
		return false;
	vector_copy(all, r->known, r->members_count);
	for (uint32_t i = 0; i < r->members_count; i++) {
		const uint32_t *settled = r->members[i].report.settled;
		if (r->members[i].removed)
			continue;
		/* What one has settled that was a witness it has only heard of. */
		bool heard_only = r->members[i].holds && i != r->self && !r->members[i].report.holding;
		if (heard_only || !vector_covers(r->known, settled, r->members_count))
			return false;
		for (uint32_t m = 0; m < r->members_count; m++)
			all[m] = settled[m] < all[m] ? settled[m] : all[m];
	}
	return true;
}

/* `dismissed`: those count as well of which a person said so. */
static bool is_excepted(const struct replicant *r, const struct op *op, bool dismissed)
{
	for (uint32_t i = 0; i < r->members_count; i++) {
		const struct exception *exception =
			r->members[i].removed ? NULL : report_exception(&r->members[i].report, op->member, op->number);
		if (exception && (dismissed || exception->state != EXCEPTION_DISMISSED))
			return true;
	}
	return false;
}

static bool covers(const uint32_t *all, const struct op *op)
{
	return op->number <= all[op->member];
}

/* What it won against is undone everywhere all the same: by another one, or by `by`, which came later. */
static bool is_undone_without(const struct replicant *r, uint32_t winner, uint32_t by, uint32_t loser)
{
	const struct order_op *ops = r->set.ops;
	bool whole = order_concerns_all(&ops[loser]);
	if (order_saw(&ops[by], &ops[loser]) &&
	    (whole ? order_concerns_all(&ops[by])
	           : order_resets(&r->rules, &ops[by]) &&
	                 (order_concerns_all(&ops[by]) || ops[by].facet == ops[loser].facet)))
		return true;
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (i != winner && order_supersedes(&r->rules, &ops[i], &ops[loser]) && !is_excepted(r, r->ops[i], true))
			return true;
	return false;
}

/* Where it was rejected, what it would have won against has its effect: a delete that loses. Only it can tell why. */
static bool is_needed_to_win(const struct replicant *r, uint32_t index, uint32_t by)
{
	const struct order_op *ops = r->set.ops;
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (r->sequence.places[i].fate == ORDER_SUPERSEDED && order_supersedes(&r->rules, &ops[index], &ops[i]) &&
		    !is_undone_without(r, index, by, i))
			return true;
	return false;
}

/* A later one, or one that won, sets all that it would have set; everywhere, if that one was not rejected itself, be it that a person
 * let that be. */
static bool is_covered(const struct replicant *r, const uint32_t *all, uint32_t index)
{
	const uint32_t excepted = index;
	for (uint32_t hops = 0; hops < r->ops_count; hops++) {
		const struct order_place *place = &r->sequence.places[index];
		if (place->fate == ORDER_COUNTS || !covers(all, r->ops[place->by]))
			return false;
		if (!is_excepted(r, r->ops[place->by], true))
			return !is_needed_to_win(r, excepted, place->by);
		index = place->by;
	}
	return false;
}

/* By its effect, a replace loses against another one, which sets the same, or against a delete. The rules may say more. */
static bool may_lose(const struct order_rules *rules, const struct op *op)
{
	size_t classes = rules->resolutions && op->class < rules->classes ? rules->classes : 0;
	for (size_t other = 0; other < classes; other++)
		if (other != op->class && (rules->resolutions[op->class * classes + other] == ORDER_TAKE_ONE ||
		                           rules->resolutions[other * classes + op->class] == ORDER_TAKE_FIRST))
			return true;
	return false;
}

/* Nobody who knew a later one that resets it has run it. Somebody may still issue what wins against that later one: then it is due. */
static bool is_in_suspense(const struct replicant *r, const uint32_t *all, uint32_t index)
{
	const struct order_place *place = &r->sequence.places[index];
	return place->fate == ORDER_OBSOLETE && !covers(all, r->ops[place->by]) && may_lose(&r->rules, r->ops[place->by]);
}

/* Which operations every member has settled, and need not be shown as rejected or in doubt. */
static void find_settled(const struct replicant *r, const uint32_t *all, bool *settled)
{
	for (uint32_t i = 0; i < r->ops_count; i++) {
		settled[i] = covers(all, r->ops[i]) && !is_in_suspense(r, all, i) &&
		             (!is_excepted(r, r->ops[i], false) || is_covered(r, all, i));
	}
}

/* ---- What is kept for the sake of its order ------------------------------------------------------------------------------------- */

static bool is_sensitive(const struct order_rules *rules)
{
	size_t table = rules->resolutions ? (size_t)rules->classes * rules->classes : 0;
	for (size_t i = 0; i < table; i++)
		if (rules->resolutions[i] == ORDER_KEEP || rules->resolutions[i] == ORDER_REVERSE)
			return true;
	return false;
}

/* Forgetting ends before what is not settled. */
static void keep_reset(const struct replicant *r, bool *settled)
{
	bool checkpoints = checkpoint_applies(r);
	if (!is_sensitive(&r->rules) && r->span != REPLICA_DIVIDED) /* of which nobody could be given the state */
		return;
	for (uint32_t i = r->sequence.ops_count; i-- > 0;) {
		uint32_t index = r->sequence.ops[i];
		const struct op *op = r->ops[index];
		if (op->effect == ORDER_ADOPT)
			continue;
		if ((op->flags & OP_BLOB) && !checkpoints)
			return;
		bool resets =
			op->facet == 0 && (op->effect == ORDER_REPLACE || (op->effect == ORDER_CREATE && r->rules.create_replays));
		if (resets && settled[index]) {
			settled[index] = !checkpoints && r->sequence.ops_count - i > REPLICA_KEPT;
			return;
		}
	}
	for (uint32_t i = 0; i < r->ops_count && checkpoints; i++)
		settled[i] = false;
}

/* Is what the candidate has carried out a beginning of E, and settled by all? */
static bool can_be_base(struct arena *arena, const struct replicant *r, const uint32_t *at, const bool *settled)
{
	uint32_t base[LIMIT_REPLICA_MEMBERS] = {0};
	bool *those = arena_array(arena, bool, r->ops_count);
	for (uint32_t i = 0; i < r->ops_count; i++)
		those[i] = settled[i] && covers(at, r->ops[i]);
	order_forget(arena, &r->set, &r->sequence, those, base);
	return vector_equal(base, at, r->members_count);
}

/* ---- Forgetting ------------------------------------------------------------------------------------------------------------------- */

/* What a person let be, and what counts, is missing here from now on, and nothing else will tell. */
static void note_missing(struct replicant *r, uint32_t index)
{
	struct report *own = own_report(r);
	const struct exception *exception = report_exception(own, r->ops[index]->member, r->ops[index]->number);
	if (!exception)
		return;
	r->report_dirty = true;
	if (exception->state == EXCEPTION_DISMISSED && r->sequence.places[index].fate == ORDER_COUNTS)
		own->lacking = true;
}

static void drop_op(struct replica *replica, struct replicant *r, struct op *op)
{
	if (op->flags & OP_BLOB)
		blob_done(replica, r, op->member, op->number);
	op_unstore(replica, r, op->member, op->number);
	for (uint32_t i = 0; i < r->members_count; i++)
		report_unexcept(&r->members[i].report, op->member, op->number);
	free(op);
}

static void forget_up_to(struct replica *replica, struct replicant *r, const uint32_t *base)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (covers(base, r->ops[i]))
			note_missing(r, i);
	lane_trim(r, base);
	for (uint32_t i = 0; i < r->ops_count; i++) {
		struct op *op = r->ops[i];
		if (op->number > base[op->member]) {
			r->ops[kept++] = op;
			continue;
		}
		replica->counters.superseded += r->sequence.places[i].fate == ORDER_SUPERSEDED;
		drop_op(replica, r, op);
	}
	r->ops_count = kept;
	if (r->checkpointed) { /* it was at the base that was */
		op_unstore(replica, r, r->self, 0);
		replica->counters.pending_operations++;
		r->checkpointed = false;
	}
	vector_copy(r->base, base, r->members_count);
	vector_raise(r->handled, base, r->members_count);
	for (uint32_t i = 0; i < r->members_count; i++)
		vector_raise(r->members[i].has, base, r->members_count);
	r->ordered = false;
	arena_reset(&r->order_arena);
	r->head_dirty = r->lane_dirty = true;
}

static bool is_settled(const struct replicant *r)
{
	return !r->redo && vector_equal(r->members[r->self].report.settled, r->known, r->members_count);
}

void forget_settled(struct replica *replica, struct replicant *r)
{
	uint32_t all[LIMIT_REPLICA_MEMBERS] = {0}, base[LIMIT_REPLICA_MEMBERS] = {0};
	if (r->kind != REPLICANT_LIVE || r->ops_count == 0 || !is_settled(r) || !settled_by_all(r, all) ||
	    vector_covers(r->base, all, r->members_count))
		return;
	struct arena arena;
	arena_init(&arena, 0);
	bool *settled = arena_array(&arena, bool, r->ops_count);
	lane_order(r);
	find_settled(r, all, settled);
	order_forget(&arena, &r->set, &r->sequence, settled, base);
	if (vector_equal(base, r->known, r->members_count) && lane_ends_deleted(r)) {
		if (!r->queue && r->task.what == TASK_NONE)
			forget_gone(replica, r);
	} else if (r->withheld_count == 0) { /* what is withheld has its place among these */
		const uint32_t *at = candidate_at(r);
		bool takes = at && can_be_base(&arena, r, at, settled);
		if (takes)
			vector_copy(base, at, r->members_count);
		else
			keep_reset(r, settled);
		if (!takes)
			order_forget(&arena, &r->set, &r->sequence, settled, base);
		if (at && !takes && vector_covers(all, at, r->members_count))
			checkpoint_later(replica, r);
		if (!vector_equal(base, r->base, r->members_count))
			forget_up_to(replica, r, base);
		if (takes) {
			checkpoint_take(replica, r);
			work_add(replica, r); /* there may be need of the next one already */
		}
	}
	arena_free(&arena);
}

void forget_gone(struct replica *replica, struct replicant *r)
{
	bool owed[LIMIT_REPLICA_MEMBERS] = {false};
	for (uint32_t i = 0; i < r->members_count; i++)
		owed[i] = i != r->self && !r->members[i].removed && (sync_owes(r, i) || r->report_dirty);
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed) /* one that was forced out may still have to be told */
			peer_owe(replica, r, i, owed[i]);
	for (uint32_t i = 0; i < r->ops_count; i++)
		drop_op(replica, r, r->ops[i]);
	while (r->withheld_count > 0)
		doubt_drop(replica, r, r->withheld[0].number);
	checkpoint_drop(replica, r);
	r->ops_count = r->steps_count = 0;
	vector_copy(r->base, r->known, r->members_count);
	queue_refuse(replica, r, ERR_NOT_FOUND, "it was deleted");
	local_clear(replica, r);
	name_clear(replica, r);
	r->ordered = false;
	r->kind = REPLICANT_GONE;
	r->gone_ms = replica->now.wall_ms;
	r->head_dirty = r->lane_dirty = true;
	expire_add(replica, replica->now.wall_ms + replica->options.tombstone_ms, REPLICA_REPLICANTS, id_str(&r->id));
	references_wake(replica, r);
	replica_tell_replicant(replica, r, REPLICA_EVENT_REPLICANT);
}
