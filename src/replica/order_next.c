/* What to run next: E, which is to be, against X, which was done.
 *
 *   E is cut down to what is needed, N: in each facet, the last operation that resets it and what comes after it.
 *   X is cut down to what still stands: in each facet, the last reset that was run and what was run after it.
 *   Where the two begin with the same reset, the entries of X are looked at one by one. An entry is in line when all of N
 *   that must come before it is in line already, and, if it depends on what is there, nothing that is out of line was run
 *   before it. So X, without what is out of line, is a beginning of N up to commuting neighbours.
 *
 * Then the first of N that is not in line is what matters:
 *   nothing of its facet is out of line         run it
 *   what is out of line only sets values, is in N, and nothing due that depends on it comes before it
 *                                               run it (again): each value ends with its last writer in E
 *   otherwise                                   run the reset of that facet again: all after it is then due again. Facet 0 without one
 *                                               is set to what it was at the base, where that is kept
 *   there is none that can be run again         stuck. What was not run yet is run first, so that no effect is missing
 *
 * An operation that is run again goes to the end of X. For one that only sets values, this is true of the state as well
 * (A u B u = A B u) because nothing in B that depends on u is left there; for a reset it is true of its facet by definition.
 */
#include "replica/order_int.h"

#include "base/check.h"

#include <string.h>

/* An operation, as seen from here. */
struct spot {
	uint32_t place; /* in N, from 1; 0: not needed */
	uint32_t entry; /* in X, from 1, while it stands; 0: no longer, or not at all */
	uint32_t kind;
	bool ran;      /* is in X, standing or not */
	bool rejected; /* here */
	bool in_line;
};

/* Operations that are alike: with whom they commute, unless one had seen the other, is the same. */
struct kind {
	uint8_t class;
	uint8_t effect;
	uint16_t facet;
	uint32_t example; /* an op of it */
	uint32_t missing; /* before the furthest place reached in N, and not in line */
};

enum verdict { UNDECIDED, CLEAN, AGAIN, RESET, STUCK };

struct facet {
	uint32_t wanted;   /* the op that resets it last in E, or ORDER_NONE */
	uint32_t standing; /* and in X */
	uint32_t standing_entry;
	bool lost;        /* something is out of line that cannot be put right by running it again */
	uint32_t astray;  /* entries that are out of line */
	uint32_t *oldest; /* of each member, no number below is missing; allocated when needed */
	enum verdict verdict;
};

struct look {
	struct arena *arena;
	const struct order_set *set;
	const struct order_sequence *sequence;
	const struct order_step_done *done;
	uint32_t done_count;
	struct spot *spots;
	struct order_facets names;
	struct facet *facets;
	struct kind *kinds;
	uint32_t kinds_count;
	uint32_t *needed; /* N */
	uint32_t needed_count;
	uint32_t first; /* in N: all before it is in line */
	uint32_t reached;
	uint32_t *astray; /* ops out of line, as they were run */
	uint32_t astray_count;
	uint32_t in_line;
	uint32_t barrier;        /* the last create or delete in E, or ORDER_NONE */
	uint32_t standing_whole; /* and in X */
	bool others_stand;       /* some entry stands that is neither */
	bool some_rejected;
	bool created; /* there is a create in E that was not rejected, or it is forgotten */
};

static const struct order_op *op_at(const struct look *look, uint32_t op)
{
	return &look->set->ops[op];
}

static struct facet *facet_of(const struct look *look, uint32_t op)
{
	return &look->facets[look->names.of[op]];
}

static bool has_base(const struct order_set *set)
{
	for (uint32_t i = 0; set->base && i < set->members_count; i++)
		if (set->base[i] > 0)
			return true;
	return false;
}

/* ---- What is needed, what stands ---------------------------------------------------------------------------------- */

static uint32_t find_kind(struct look *look, uint32_t op)
{
	const struct order_op *is = op_at(look, op);
	for (uint32_t i = 0; i < look->kinds_count; i++)
		if (look->kinds[i].class == is->class && look->kinds[i].effect == is->effect &&
		    look->kinds[i].facet == is->facet)
			return i;
	look->kinds[look->kinds_count] =
		(struct kind){.class = is->class, .effect = is->effect, .facet = is->facet, .example = op};
	return look->kinds_count++;
}

/* Superseded by one that was not rejected here. */
static bool is_superseded_here(const struct look *look, uint32_t op)
{
	const struct order_place *place = &look->sequence->places[op];
	if (place->fate != ORDER_SUPERSEDED)
		return false;
	if (!look->spots[place->by].rejected)
		return true;
	for (uint32_t i = 0; i < look->set->ops_count; i++)
		if (!look->spots[i].rejected && order_supersedes(&look->set->rules, op_at(look, i), op_at(look, op)))
			return true;
	return false;
}

/* E as it concerns this site. */
static uint32_t take_sequence(struct look *look, uint32_t *ops)
{
	if (!look->some_rejected) {
		memcpy(ops, look->sequence->ops, look->sequence->ops_count * sizeof(*ops));
		return look->sequence->ops_count;
	}
	uint32_t count = 0;
	for (uint32_t i = 0; i < look->set->ops_count; i++) {
		uint32_t op = look->sequence->all[i];
		if (!look->spots[op].rejected && !is_superseded_here(look, op))
			ops[count++] = op;
	}
	return count;
}

/* A replace that was accepted has made it, if nothing else did. */
static bool is_here(const struct look *look)
{
	if (look->facets[0].standing == ORDER_NONE)
		return has_base(look->set);
	return op_at(look, look->facets[0].standing)->effect != ORDER_DELETE;
}

/* By a replace, where no create was accepted. So none is needed. */
static bool is_made_otherwise(const struct look *look)
{
	return look->standing_whole == ORDER_NONE && !has_base(look->set) && is_here(look);
}

static void find_needed(struct look *look, const uint32_t *ops, uint32_t ops_count)
{
	look->barrier = ORDER_NONE;
	look->created = has_base(look->set);
	for (uint32_t i = 0; i < look->names.count; i++)
		look->facets[i].wanted = ORDER_NONE;
	uint32_t from = ops_count;
	for (uint32_t i = ops_count; i-- > 0;) {
		uint32_t op = ops[i];
		const struct order_op *is = op_at(look, op);
		bool needed = look->barrier == ORDER_NONE;
		if (is->effect == ORDER_CREATE && is_made_otherwise(look))
			continue;
		if (order_concerns_all(is)) {
			look->created = look->created || is->effect == ORDER_CREATE;
			if (needed)
				look->barrier = op;
		} else {
			struct facet *facet = facet_of(look, op);
			needed = needed && facet->wanted == ORDER_NONE;
			if (needed && order_resets(&look->set->rules, is))
				facet->wanted = op;
		}
		if (needed)
			look->needed[--from] = op; /* from the end of the array */
	}
	for (uint32_t i = 0; i < look->names.count; i++)
		if (look->facets[i].wanted == ORDER_NONE)
			look->facets[i].wanted = look->barrier;
	look->needed += from;
	look->needed_count = ops_count - from;
	for (uint32_t i = 0; i < look->needed_count; i++) {
		look->spots[look->needed[i]].place = i + 1;
		look->spots[look->needed[i]].kind = find_kind(look, look->needed[i]);
	}
}

static void stand(struct facet *facet, uint32_t op, uint32_t entry)
{
	if (facet->standing == ORDER_NONE) {
		facet->standing = op;
		facet->standing_entry = entry;
	}
}

static bool is_plain_create(const struct order_set *set, const struct order_step_done *entry)
{
	return set->ops[entry->op].effect == ORDER_CREATE && entry->how != ORDER_REPLAYED && entry->how != ORDER_REJECTED;
}

/* What was rejected before the item was made (again) may have been so because it was gone: it is as if it had not been tried.
 * Not so before a delete: that the delete counts may be due to the rejection. */
static void find_rejected(struct look *look)
{
	for (uint32_t i = look->done_count; i-- > 0 && !is_plain_create(look->set, &look->done[i]);) {
		if (look->done[i].how != ORDER_REJECTED)
			continue;
		look->spots[look->done[i].op].rejected = true;
		look->some_rejected = true;
	}
}

/* From the end of X, up to the last create or delete. */
static void find_standing(struct look *look)
{
	look->standing_whole = ORDER_NONE;
	for (uint32_t i = 0; i < look->names.count; i++)
		look->facets[i].standing = ORDER_NONE;
	for (uint32_t i = look->done_count; i-- > 0 && look->standing_whole == ORDER_NONE;) {
		uint32_t op = look->done[i].op;
		const struct order_op *is = op_at(look, op);
		if (look->done[i].how == ORDER_REJECTED)
			continue;
		if (look->done[i].how == ORDER_REPLAYED) {
			stand(&look->facets[0], op, i);
			look->spots[op].entry = i + 1; /* as a second entry, it gives way to the first one */
			continue;
		}
		if (order_concerns_all(is)) {
			for (uint32_t facet = 0; facet < look->names.count; facet++)
				stand(&look->facets[facet], op, i);
			look->standing_whole = op;
			look->spots[op].entry = i + 1;
			continue;
		}
		struct facet *facet = facet_of(look, op);
		if (facet->standing != ORDER_NONE)
			continue;
		look->others_stand = true;
		look->spots[op].entry = i + 1;
		if (order_resets(&look->set->rules, is))
			stand(facet, op, i);
	}
}

/* ---- What is in line ----------------------------------------------------------------------------------------------- */

static void count_missing(struct look *look, uint32_t op)
{
	const struct order_op *is = op_at(look, op);
	struct facet *facet = facet_of(look, op);
	if (!facet->oldest) {
		facet->oldest = arena_array(look->arena, uint32_t, look->set->members_count);
		memset(facet->oldest, 0xff, look->set->members_count * sizeof(*facet->oldest));
	}
	if (facet->oldest[is->member] > is->number)
		facet->oldest[is->member] = is->number;
	look->kinds[look->spots[op].kind].missing++;
}

static void put_in_line(struct look *look, uint32_t op)
{
	struct spot *spot = &look->spots[op];
	const struct order_op *is = op_at(look, op);
	spot->in_line = true;
	look->in_line++;
	if (spot->place - 1 < look->reached) { /* it was counted as missing */
		struct facet *facet = facet_of(look, op);
		look->kinds[spot->kind].missing--;
		if (facet->oldest[is->member] == is->number)
			facet->oldest[is->member]++;
	} else {
		look->reached = spot->place;
	}
	while (look->first < look->needed_count && look->spots[look->needed[look->first]].in_line)
		look->first++;
}

/* Whether something missing may have to come before x: an answer that is sometimes too careful. */
static bool may_miss(const struct look *look, const struct order_op *x, const struct facet *facet)
{
	for (uint32_t i = 0; i < look->kinds_count; i++) {
		const struct kind *kind = &look->kinds[i];
		if (kind->missing == 0)
			continue;
		if (kind->effect == ORDER_CREATE || kind->effect == ORDER_DELETE)
			return true;
		const struct order_op *other = op_at(look, kind->example);
		if (kind->facet == x->facet && (order_resolve(&look->set->rules, x, other) != ORDER_ANY ||
		                                order_resolve(&look->set->rules, other, x) != ORDER_ANY))
			return true;
	}
	for (uint32_t i = 0; facet->oldest && i < look->set->members_count; i++)
		if (facet->oldest[i] <= x->seen[i])
			return true;
	return false;
}

static bool misses(struct look *look, uint32_t x)
{
	uint32_t place = look->spots[x].place - 1;
	if (place == look->first)
		return false;
	for (; look->reached < place; look->reached++)
		if (!look->spots[look->needed[look->reached]].in_line)
			count_missing(look, look->needed[look->reached]);
	if (!may_miss(look, op_at(look, x), facet_of(look, x)))
		return false;
	for (uint32_t i = look->first; i < place; i++)
		if (!look->spots[look->needed[i]].in_line &&
		    !order_commute(&look->set->rules, op_at(look, look->needed[i]), op_at(look, x)))
			return true;
	return false;
}

static bool follows_astray(const struct look *look, uint32_t x)
{
	for (uint32_t i = 0; i < look->astray_count; i++)
		if (!order_commute(&look->set->rules, op_at(look, look->astray[i]), op_at(look, x)))
			return true;
	return false;
}

static bool only_sets(const struct order_op *op)
{
	return op->effect == ORDER_ASSIGN || op->effect == ORDER_REPLACE;
}

static void find_in_line(struct look *look)
{
	if (look->barrier != ORDER_NONE && look->spots[look->barrier].entry != 0)
		put_in_line(look, look->barrier);
	for (uint32_t i = 0; i < look->done_count; i++) {
		uint32_t op = look->done[i].op;
		struct spot *spot = &look->spots[op];
		if (spot->entry != i + 1 || order_concerns_all(op_at(look, op)))
			continue;
		struct facet *facet = facet_of(look, op);
		if (facet->standing != facet->wanted)
			continue;
		if (spot->place != 0 && !misses(look, op) && (only_sets(op_at(look, op)) || !follows_astray(look, op))) {
			put_in_line(look, op);
			continue;
		}
		look->astray[look->astray_count++] = op;
		facet->astray++;
		if (spot->place == 0 || !only_sets(op_at(look, op)) || look->done[i].how == ORDER_KEPT)
			facet->lost = true;
	}
}

/* ---- What to do ----------------------------------------------------------------------------------------------------- */

/* Something is due, and depends on what is there while what comes only after it in N is there already. */
static bool comes_too_late(const struct look *look, uint32_t op)
{
	for (uint32_t i = 0; i < look->astray_count; i++)
		if (look->spots[look->astray[i]].place > look->spots[op].place &&
		    !order_commute(&look->set->rules, op_at(look, look->astray[i]), op_at(look, op)))
			return true;
	return false;
}

static bool some_come_too_late(const struct look *look, uint32_t facet)
{
	for (uint32_t i = look->first; i < look->needed_count; i++) {
		uint32_t op = look->needed[i];
		if (look->names.of[op] == facet && !look->spots[op].in_line && !only_sets(op_at(look, op)) &&
		    comes_too_late(look, op))
			return true;
	}
	return false;
}

/* The create is run as a replace only if it was not refused as such before. */
static bool can_replay(const struct look *look, uint32_t create)
{
	uint32_t entry = look->spots[create].entry;
	return look->set->rules.create_replays && (entry == 0 || look->done[entry - 1].how != ORDER_KEPT);
}

static bool can_reset(const struct look *look, uint32_t number)
{
	const struct facet *facet = &look->facets[number];
	if (facet->wanted == ORDER_NONE)
		return number == 0 && look->set->restorable && is_here(look);
	if (facet->standing == facet->wanted && look->done[facet->standing_entry].how == ORDER_KEPT)
		return false;
	if (op_at(look, facet->wanted)->effect != ORDER_CREATE || !is_here(look))
		return true;
	return number == 0 && can_replay(look, facet->wanted);
}

static enum verdict decide(struct look *look, uint32_t number)
{
	struct facet *facet = &look->facets[number];
	if (facet->verdict != UNDECIDED)
		return facet->verdict;
	if (facet->standing == facet->wanted && facet->astray == 0)
		facet->verdict = CLEAN;
	else if (facet->standing == facet->wanted && !facet->lost && !some_come_too_late(look, number))
		facet->verdict = AGAIN;
	else
		facet->verdict = can_reset(look, number) ? RESET : STUCK;
	return facet->verdict;
}

/* A create where something is already: it was created here, or another create was run which lost. */
static bool is_replay_due(const struct look *look, uint32_t op)
{
	return op_at(look, op)->effect == ORDER_CREATE && is_here(look);
}

static void run(const struct look *look, uint32_t op, struct order_next *next)
{
	next->action = look->spots[op].ran ? ORDER_RERUN : ORDER_RUN;
	next->op = op;
	next->as_replace = is_replay_due(look, op);
	next->standing = look->spots[op].entry != 0;
}

static void reset(const struct look *look, uint32_t facet, struct order_next *next)
{
	if (look->facets[facet].wanted != ORDER_NONE)
		run(look, look->facets[facet].wanted, next);
	else
		next->action = ORDER_RESTORE;
}

/* The first of N that is not in line, and what to do about it. */
static bool choose(struct look *look, struct order_next *next)
{
	for (uint32_t i = look->first; i < look->needed_count; i++) {
		uint32_t op = look->needed[i];
		if (look->spots[op].in_line)
			continue;
		bool whole = order_concerns_all(op_at(look, op));
		if (whole && is_replay_due(look, op) && !can_replay(look, op))
			continue; /* its facets are stuck */
		enum verdict verdict = whole ? CLEAN : decide(look, look->names.of[op]);
		if (verdict == RESET) {
			reset(look, look->names.of[op], next);
			return true;
		}
		if (verdict != STUCK || look->spots[op].entry == 0) {
			run(look, op, next);
			return true;
		}
	}
	for (uint32_t i = 0; i < look->names.count; i++) {
		if (decide(look, i) == RESET) {
			reset(look, i, next);
			return true;
		}
	}
	return false;
}

static void look_if_stuck(const struct look *look, struct order_next *next)
{
	for (uint32_t i = 0; i < look->names.count && next->action == ORDER_NOTHING; i++) {
		if (look->facets[i].verdict != STUCK)
			continue;
		next->action = ORDER_STUCK;
		next->facet = look->names.names[i];
	}
}

/* The create was rejected here: there is nothing that could be in line. All else is tried, and will be refused. */
static void choose_without_item(const struct look *look, const uint32_t *ops, uint32_t ops_count,
                                struct order_next *next)
{
	for (uint32_t i = 0; i < ops_count && next->action == ORDER_NOTHING; i++)
		if (!look->spots[ops[i]].ran)
			run(look, ops[i], next);
}

/* Who deleted it, and how often, makes no difference. */
static bool is_gone_as_wanted(const struct look *look)
{
	return look->needed_count == 1 && look->barrier != ORDER_NONE &&
	       op_at(look, look->barrier)->effect == ORDER_DELETE && !is_here(look) && !look->others_stand;
}

/* A delete was run here that lost, and the create is forgotten. */
static bool is_gone_for_good(const struct look *look)
{
	return look->barrier == ORDER_NONE && !is_here(look);
}

bool order_deletes(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                   const struct order_step_done *done, uint32_t done_count, const uint32_t *base)
{
	struct look look = {.set = set, .sequence = sequence, .done = done, .done_count = done_count};
	look.spots = arena_array(arena, struct spot, set->ops_count);
	uint32_t *ops = arena_array(arena, uint32_t, set->ops_count);
	bool deletes = false;
	find_rejected(&look);
	uint32_t count = take_sequence(&look, ops);
	for (uint32_t i = 0; i < count; i++) {
		const struct order_op *op = &set->ops[ops[i]];
		deletes |= op->effect == ORDER_DELETE && (!base || op->number <= base[op->member]);
	}
	return deletes;
}

void order_next(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                const struct order_step_done *done, uint32_t done_count, struct order_next *next)
{
	struct look look = {
		.arena = arena,
		.set = set,
		.sequence = sequence,
		.done = done,
		.done_count = done_count,
		.spots = arena_array(arena, struct spot, set->ops_count),
		.kinds = arena_array(arena, struct kind, set->ops_count),
		.needed = arena_array(arena, uint32_t, set->ops_count),
		.astray = arena_array(arena, uint32_t, done_count),
	};
	*next = (struct order_next){.action = ORDER_NOTHING, .op = ORDER_NONE};
	order_facets_find(arena, set, &look.names);
	look.facets = arena_array(arena, struct facet, look.names.count);
	for (uint32_t i = 0; i < done_count; i++) {
		CHECK(done[i].op < set->ops_count);
		look.spots[done[i].op].ran = true;
	}
	find_rejected(&look);
	find_standing(&look);
	uint32_t *ops = arena_array(arena, uint32_t, set->ops_count);
	uint32_t ops_count = take_sequence(&look, ops);
	find_needed(&look, ops, ops_count);
	if (!look.created && !is_here(&look)) {
		choose_without_item(&look, ops, ops_count, next);
		return;
	}
	if (is_gone_as_wanted(&look))
		return;
	if (is_gone_for_good(&look)) {
		next->action = ORDER_STUCK;
		return;
	}
	find_in_line(&look);
	next->distance = look.in_line;
	if (!choose(&look, next))
		look_if_stuck(&look, next);
}

/* ---- X --------------------------------------------------------------------------------------------------------------- */

static bool is_replay(const struct order_step_done *entry, const struct order_next *next)
{
	return entry->op == next->op && entry->how == ORDER_REPLAYED;
}

/* Refused, but what it did before is still there. */
static void keep(struct order_step_done *done, uint32_t done_count, const struct order_next *next)
{
	for (uint32_t i = 0; i < done_count; i++)
		if (done[i].op == next->op && done[i].how != ORDER_REPLAYED)
			done[i].how = ORDER_KEPT;
}

void order_step(struct order_step_done *done, uint32_t *done_count, const struct order_next *next, enum order_done how)
{
	CHECK(next->action == ORDER_RUN || next->action == ORDER_RERUN);
	CHECK(how <= ORDER_DOUBT);
	if (next->standing && how == ORDER_REJECTED) {
		keep(done, *done_count, next);
		return;
	}
	uint32_t kept = 0;
	for (uint32_t i = 0; i < *done_count; i++)
		if (next->as_replace ? !is_replay(&done[i], next) : done[i].op != next->op)
			done[kept++] = done[i];
	done[kept++] = (struct order_step_done){.op = next->op, .how = next->as_replace ? ORDER_REPLAYED : how};
	*done_count = kept;
}

/* What was rejected has had no effect, and is not tried again. */
void order_restore(const struct order_set *set, struct order_step_done *done, uint32_t *done_count)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < *done_count; i++) {
		const struct order_op *op = &set->ops[done[i].op];
		bool undone = op->facet == 0 && !order_is_copy(op) &&
		              (!order_concerns_all(op) || done[i].how == ORDER_REPLAYED) && done[i].how != ORDER_REJECTED;
		if (!undone)
			done[kept++] = done[i];
	}
	*done_count = kept;
}

/* From the end on, as in find_standing() and find_rejected(). */
void order_trim(struct arena *arena, const struct order_set *set, const uint32_t *base, struct order_step_done *done,
                uint32_t *done_count)
{
	struct order_facets facets;
	order_facets_find(arena, set, &facets);
	bool *reset = arena_array(arena, bool, facets.count);
	bool reset_all = false, made = false;
	uint32_t from = *done_count;
	for (uint32_t i = *done_count; i-- > 0;) {
		struct order_step_done entry = done[i];
		const struct order_op *op = &set->ops[entry.op];
		bool replay = entry.how == ORDER_REPLAYED, whole = order_concerns_all(op) && !replay;
		bool *its = replay ? &reset[0] : whole ? &reset_all : &reset[facets.of[entry.op]];
		bool stands = entry.how == ORDER_REJECTED ? !made : !reset_all && !*its;
		made = made || is_plain_create(set, &entry);
		if (entry.how != ORDER_REJECTED && order_resets(&set->rules, op))
			*its = true;
		if (stands && op->number > base[op->member])
			done[--from] = entry;
	}
	*done_count -= from;
	memmove(done, done + from, *done_count * sizeof(*done));
}
