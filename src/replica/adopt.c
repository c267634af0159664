/* A new member, at itself: it makes what it has of the copy of another (members.c).
 *
 * The copy is an operation that makes the item, C, and one for each file or other facet of it, its parts. They are issued together, C
 * last: it had seen the parts, so whoever has C has all of them. They say for whom they are (`adopts`), and what is one's copy is
 * nothing to anybody else.
 *   1. C is run. The item is there, and has its local id; for users it is not made yet, since nothing may come between.
 *   2. The parts are run, each when its blob is here; only their issuer has it. Each is in X when it was.
 *   3. All are in X: the item is what its issuer's was. X becomes what C had seen, in order, and this site is a member (adopted()).
 *
 * It dies meanwhile: X says how far it was; what was running is found out as with any operation (doubt.c).
 * C is refused or in doubt, or a part is: see members.c. To let a part be would be to begin with less than the others have: a person
 * has it run again, or drops this site, which deletes the item.
 * It is deleted meanwhile. Nothing is there yet: nothing is made. C has been run: the parts are, too, as the delete may yet lose; one
 * that was refused does not hold up the delete any more, and is said to be lacking. */
#include "replica/replica_int.h"

/* The one that was tried, or the first that came. */
static struct op *find_copy(struct replicant *r, struct step **step)
{
	struct op *first = NULL;
	*step = NULL;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		struct op *op = r->ops[i];
		if (op->effect != ORDER_ADOPT || op->facet != 0 || op->adopts != r->members[r->self].site ||
		    (op->flags & OP_WITNESS))
			continue;
		struct step *tried = lane_find(r, op->member, op->number);
		if (tried) {
			*step = tried;
			return op;
		}
		if (!first || op->stamp < first->stamp)
			first = op;
	}
	return first;
}

/* X becomes what that set of operations is in order: those that the copy had seen; or, without one, all up to the delete. */
static void take_over(struct replicant *r, const struct op *copy)
{
	struct arena arena;
	struct order_sequence sequence;
	arena_init(&arena, 0);
	struct order_op *ops = arena_array(&arena, struct order_op, r->ops_count + 1);
	uint32_t *indexes = arena_array(&arena, uint32_t, r->ops_count + 1);
	uint32_t count = 0;
	lane_order(r);
	for (uint32_t i = 0; i < r->ops_count; i++) {
		if (copy && r->ops[i]->number > copy->seen[r->ops[i]->member])
			continue;
		indexes[count] = i;
		ops[count++] = r->set.ops[i];
	}
	struct order_set set = {ops, count, r->members_count, r->rules, r->base, false};
	order_build(&arena, &set, &sequence);
	r->steps = replica_grow(r->steps, &r->steps_capacity, sequence.ops_count + 1, sizeof(*r->steps));
	uint32_t upto = sequence.ops_count;
	while (!copy && upto > 0 && ops[sequence.ops[upto - 1]].effect != ORDER_DELETE)
		upto--;
	r->steps_count = upto;
	for (uint32_t i = 0; i < upto; i++) {
		const struct op *op = r->ops[indexes[sequence.ops[i]]];
		r->steps[i] = (struct step){op->member, op->number, ORDER_DONE};
	}
	arena_free(&arena);
	/* It may have said that it is settled for a delete that lost since. */
	r->redo |= !vector_is_zero(own_report(r)->settled, r->members_count);
	r->newcomer = false;
	r->head_dirty = r->lane_dirty = r->report_dirty = true;
}

static void adopted(struct replica *replica, struct replicant *r, const struct op *copy)
{
	take_over(r, copy);
	lane_append(r, copy);
	vector_raise(r->handled, copy->seen, r->members_count);
	if (r->handled[copy->member] < copy->number)
		r->handled[copy->member] = copy->number;
	lane_effect(replica, r, ORDER_CREATE, &(struct replica_outcome){.kind = REPLICA_ACCEPTED});
}

static bool has_delete(struct replicant *r)
{
	lane_order(r);
	for (uint32_t i = 0; i < r->sequence.ops_count; i++)
		if (r->ops[r->sequence.ops[i]]->effect == ORDER_DELETE)
			return true;
	return false;
}

static bool is_part(const struct op *op, const struct op *copy)
{
	return op->effect == ORDER_ADOPT && op->facet != 0 && op->adopts == copy->adopts && op->member == copy->member &&
	       op->number < copy->number;
}

/* The first that was not tried, or NULL; `open`: one was, and to no effect that is known. */
static const struct op *find_part(struct replicant *r, const struct op *copy, bool *open)
{
	*open = false;
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		const struct step *step = is_part(op, copy) ? lane_find(r, op->member, op->number) : NULL;
		if (is_part(op, copy) && !step)
			return op;
		*open |= step && step->how != ORDER_DONE;
	}
	return NULL;
}

/* It is deleted: what could not be set does not matter any more; unless the delete loses, and then all are to know. */
static void let_be(struct replicant *r, const struct op *copy)
{
	for (uint32_t i = 0; i < r->ops_count; i++)
		if (is_part(r->ops[i], copy))
			report_unexcept(own_report(r), r->ops[i]->member, r->ops[i]->number);
	own_report(r)->lacking = true;
}

/* The item is there. False: something of it is not yet. */
static bool complete(struct replica *replica, struct replicant *r, const struct op *copy)
{
	bool open;
	const struct op *part;
	while ((part = find_part(r, copy, &open)) != NULL)
		if (!lane_adopt(replica, r, part))
			return false;
	if (open && !has_delete(r))
		return false;
	if (open)
		let_be(r, copy);
	adopted(replica, r, copy);
	return true;
}

/* True: nothing else is to be done here. */
bool members_join(struct replica *replica, struct replicant *r)
{
	struct step *step;
	const struct op *copy = find_copy(r, &step);
	if (copy == NULL)
		return true;
	if (step && (step->how == ORDER_DONE || step->how == ORDER_KEPT))
		return !complete(replica, r, copy);
	if (step && step->how == ORDER_DOUBT)
		return true;
	if (lane_ends_deleted(r)) {
		/* A person may have wanted the copy to be run again, which is over as well. */
		if (!vector_equal(own_report(r)->settled, r->known, r->members_count) || own_report(r)->exceptions_count > 0)
			lane_settle(r);
		return true;
	}
	if (has_delete(r)) { /* and something after it, which finds nothing: here as everywhere */
		report_unexcept(own_report(r), copy->member, copy->number);
		take_over(r, NULL);
		return false;
	}
	if (!step)
		lane_adopt(replica, r, copy);
	return true;
}
