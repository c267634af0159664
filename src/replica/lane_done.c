/* Of a lane: X, what was done so far and in which order, as its site has it; and E, the order in which it ought to be, which order.c makes
 * of all that is known. order_next() compares the two. */
#include "replica/order_int.h"
#include "replica/replica_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- X --------------------------------------------------------------------------------------------------------------- */

/* X as the order knows it, with room for one more. */
static struct order_step_done *steps_out(const struct replicant *r, struct arena *arena)
{
	struct order_step_done *done = arena_array(arena, struct order_step_done, r->steps_count + 1);
	for (uint32_t i = 0; i < r->steps_count; i++)
		done[i] = (struct order_step_done){op_index(r, r->steps[i].member, r->steps[i].number), r->steps[i].how};
	return done;
}

static void steps_in(struct replicant *r, const struct order_step_done *done, uint32_t count)
{
	r->steps = replica_grow(r->steps, &r->steps_capacity, count, sizeof(*r->steps));
	for (uint32_t i = 0; i < count; i++) {
		const struct op *op = r->ops[done[i].op];
		r->steps[i] = (struct step){op->member, op->number, (uint8_t)done[i].how};
	}
	r->steps_count = count;
	r->lane_dirty = true;
}

void lane_step(struct replicant *r, const struct task *task, enum order_done how)
{
	struct arena arena;
	uint32_t count = r->steps_count;
	struct order_next next = {.action = ORDER_RUN,
	                          .op = op_index(r, task->member, task->number),
	                          .as_replace = task->kind == REPLICA_RUN_CREATE_AS_REPLACE,
	                          .standing = task->standing};
	arena_init(&arena, 0);
	struct order_step_done *done = steps_out(r, &arena);
	order_step(done, &count, &next, how);
	if (how == ORDER_DONE)
		merge_reset(r, r->ops[next.op], next.as_replace);
	/* What is run again leaves its place: those behind it move up. */
	uint32_t same = 0;
	while (same < count && same < r->steps_count &&
	       done[same].op == op_index(r, r->steps[same].member, r->steps[same].number))
		same++;
	for (uint32_t i = 0; i < r->withheld_count && count == r->steps_count; i++)
		if (r->withheld[i].place != UINT32_MAX && r->withheld[i].place > same)
			r->withheld[i].place--;
	steps_in(r, done, count);
	arena_free(&arena);
}

void lane_append(struct replicant *r, const struct op *op)
{
	r->steps = replica_grow(r->steps, &r->steps_capacity, r->steps_count + 1, sizeof(*r->steps));
	r->steps[r->steps_count++] = (struct step){op->member, op->number, ORDER_DONE};
	merge_reset(r, op, false);
	r->lane_dirty = true;
}

/* Where a place in X is once only `left` of it is there; UINT32_MAX: behind it, something that is left no more reset the item. */
static uint32_t trimmed_place(const struct replicant *r, uint32_t place, const struct order_step_done *left,
                              uint32_t left_count)
{
	uint32_t kept = 0, moved = place;
	for (uint32_t i = 0; i < r->steps_count && place != UINT32_MAX; i++) {
		uint32_t op = op_index(r, r->steps[i].member, r->steps[i].number);
		if (kept < left_count && left[kept].op == op && left[kept].how == r->steps[i].how) {
			kept++;
			continue;
		}
		uint8_t effect = r->ops[op]->effect;
		if (i < place)
			moved--;
		else if (effect != ORDER_ASSIGN && effect != ORDER_RELATIVE && effect != ORDER_ADOPT &&
		         r->steps[i].how != ORDER_REJECTED)
			return UINT32_MAX;
	}
	return moved;
}

struct step *lane_find(struct replicant *r, uint32_t member, uint32_t number)
{
	for (uint32_t i = 0; i < r->steps_count; i++)
		if (r->steps[i].member == member && r->steps[i].number == number)
			return &r->steps[i];
	return NULL;
}

/* It lost against what was done here, or that sets all that it would have set. */
static bool is_made_up_for(struct replicant *r, uint32_t index)
{
	for (uint32_t hops = 0; hops <= r->ops_count; hops++) {
		const struct order_place *place = &r->sequence.places[index];
		if (place->fate == ORDER_COUNTS)
			return false;
		index = place->by;
		const struct step *step = lane_find(r, r->ops[index]->member, r->ops[index]->number);
		if (step && step->how == ORDER_DONE)
			return true;
	}
	return false;
}

/* Pending: a person has had it run again, late; or a doubt was let be, which is told when all is settled without it (doubt.c). */
static bool is_decided(const struct exception *exception)
{
	return exception->state == REPLICA_PENDING || exception->state == EXCEPTION_DISMISSED;
}

bool lane_lacks(struct replicant *r, bool undecided)
{
	const struct report *report = own_report(r);
	if (report->exceptions_count > 0)
		lane_order(r);
	for (uint32_t i = 0; i < report->exceptions_count; i++) {
		const struct exception *exception = &report->exceptions[i];
		const struct step *step = lane_find(r, exception->member, exception->number);
		bool late = exception->state == REPLICA_PENDING && step && step->how == ORDER_DONE;
		bool known = op_find(r, exception->member, exception->number) != NULL;
		if (!known || late || (undecided && is_decided(exception)))
			continue;
		if (!is_made_up_for(r, op_index(r, exception->member, exception->number)))
			return true;
	}
	return false;
}

/* What was in doubt, or could not be repeated, and of which nothing can be left: no person need look at it. */
static void drop_doubts(struct replicant *r)
{
	struct report *report = own_report(r);
	for (uint32_t i = report->exceptions_count; i-- > 0;) {
		const struct exception *exception = &report->exceptions[i];
		if (exception->state == REPLICA_PENDING || lane_find(r, exception->member, exception->number))
			continue;
		report_unexcept(report, exception->member, exception->number);
		r->report_dirty = true;
	}
}

/* A state was taken, and what was deleted before is there again: it was made by that. Of what was run up to the delete nothing is left, nor
 * of its files: what of that counts is due again. `anew`: whatever was before it is gone. */
void lane_undelete(struct replicant *r, const struct op *repair, bool anew)
{
	uint32_t gone = 0, kept = 0;
	for (uint32_t i = 0; i < r->steps_count; i++) {
		const struct op *op = op_find(r, r->steps[i].member, r->steps[i].number);
		bool itself = op == repair, deletes = op->effect == ORDER_DELETE && op->number <= repair->seen[op->member];
		if (r->steps[i].how != ORDER_REJECTED && (deletes || (anew && itself)))
			gone = i + 1;
	}
	for (uint32_t i = 0; i < r->steps_count; i++) {
		const struct op *op = op_find(r, r->steps[i].member, r->steps[i].number);
		bool refused = r->steps[i].how == ORDER_REJECTED; /* it took nothing, and is still shown */
		if (i >= gone || op == repair || refused)
			r->steps[kept++] = r->steps[i];
	}
	/* What is withheld, and was run before that, is not there any more. */
	for (uint32_t i = 0; i < r->withheld_count && gone > 0; i++) {
		uint32_t *place = &r->withheld[i].place;
		*place = *place == UINT32_MAX || *place < gone ? UINT32_MAX : *place - (r->steps_count - kept);
	}
	r->steps_count = kept;
	drop_doubts(r);
}

/* Some of the first are forgotten. */
void lane_trim(struct replicant *r, const uint32_t *base)
{
	struct arena arena;
	uint32_t count = r->steps_count;
	arena_init(&arena, 0);
	lane_order(r);
	struct order_step_done *done = steps_out(r, &arena);
	if (r->gone && order_deletes(&arena, &r->set, &r->sequence, done, count, base))
		r->gone = false; /* nothing can make it lose any more */
	order_trim(&arena, &r->set, base, done, &count);
	for (uint32_t i = 0; i < r->withheld_count; i++)
		r->withheld[i].place = trimmed_place(r, r->withheld[i].place, done, count);
	steps_in(r, done, count);
	arena_free(&arena);
	drop_doubts(r);
}

void lane_restored(struct replicant *r)
{
	struct arena arena;
	uint32_t count = r->steps_count;
	arena_init(&arena, 0);
	lane_order(r);
	struct order_step_done *done = steps_out(r, &arena);
	order_restore(&r->set, done, &count);
	for (uint32_t i = 0; i < r->withheld_count; i++)
		r->withheld[i].place = UINT32_MAX; /* if it had an effect, that is gone */
	steps_in(r, done, count);
	arena_free(&arena);
}

bool lane_has_done(const struct replicant *r, uint32_t index)
{
	const struct op *op = r->ops[index];
	for (uint32_t i = 0; i < r->steps_count; i++)
		if (r->steps[i].member == op->member && r->steps[i].number == op->number)
			return true;
	return false;
}

/* ---- E --------------------------------------------------------------------------------------------------------------- */

void lane_order(struct replicant *r)
{
	if (r->ordered)
		return;
	arena_reset(&r->order_arena);
	struct order_op *ops = arena_array(&r->order_arena, struct order_op, r->ops_count);
	for (uint32_t i = 0; i < r->ops_count; i++) {
		const struct op *op = r->ops[i];
		/* The parts of a copy concern nobody but the new member, and are no facets to the order. */
		uint16_t facet = op->effect == ORDER_ADOPT ? 0 : op->facet;
		ops[i] = (struct order_op){op->member, op->number, op->stamp, op->seen,
		                           op->effect, op->class,  facet,     r->members[op->member].site};
	}
	bool restorable = r->checkpointed && !r->checkpoint_refused;
	r->set = (struct order_set){ops, r->ops_count, r->members_count, r->rules, r->base, restorable};
	order_build(&r->order_arena, &r->set, &r->sequence);
	r->ordered = true;
}

bool lane_deletes(struct replicant *r)
{
	struct arena arena;
	lane_order(r);
	arena_init(&arena, 0);
	bool deletes = order_deletes(&arena, &r->set, &r->sequence, steps_out(r, &arena), r->steps_count, NULL);
	arena_free(&arena);
	return deletes;
}

bool lane_comes_back(struct replicant *r)
{
	return r->gone && !own_report(r)->created && !lane_deletes(r);
}

void lane_next(struct replicant *r, struct order_next *next)
{
	struct arena arena;
	lane_order(r);
	arena_init(&arena, 0);
	order_next(&arena, &r->set, &r->sequence, steps_out(r, &arena), r->steps_count, next);
	arena_free(&arena);
}
