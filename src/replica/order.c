/* E, the sequence that all members agree on, from the set of operations.
 *
 * The operations are taken in the order T and each is appended, then moved forward to just before the first one that it must
 * precede, among those behind the last one that it had seen. What is superseded keeps a place in `all`, and only there, so
 * that places do not depend on who lost against whom. An operation is superseded when there is a concurrent one that wins;
 * that the winner may be superseded too does not bring it back: what once lost has lost, however the set grows.
 *
 * Operations of one member are found as a list, latest first: those which y had not seen are at its beginning. So only
 * concurrent pairs are looked at, and of these only where the rules have something to say on that kind of operation: a
 * thousand increments here and a thousand there cost no more than two thousand in a row.
 */
#include "replica/order_int.h"

#include <stdlib.h>
#include <string.h>

bool order_saw(const struct order_op *y, const struct order_op *x)
{
	return y->seen[x->member] >= x->number;
}

bool order_before(const struct order_op *x, const struct order_op *y)
{
	if (x->stamp != y->stamp)
		return x->stamp < y->stamp;
	if (x->site != y->site)
		return x->site < y->site;
	if (x->member != y->member)
		return x->member < y->member;
	return x->number < y->number;
}

/* By the effects alone, [x][y]. Delete against anything but delete is in resolve_delete(). */
static const uint8_t defaults[ORDER_EFFECTS][ORDER_EFFECTS] = {
	[ORDER_CREATE] = {[ORDER_CREATE] = ORDER_TAKE_FIRST,
                      [ORDER_REPLACE] = ORDER_KEEP,
                      [ORDER_ASSIGN] = ORDER_KEEP,
                      [ORDER_RELATIVE] = ORDER_KEEP},
	[ORDER_REPLACE] = {[ORDER_CREATE] = ORDER_REVERSE,
                       [ORDER_REPLACE] = ORDER_TAKE_ONE,
                       [ORDER_ASSIGN] = ORDER_KEEP,
                       [ORDER_RELATIVE] = ORDER_KEEP},
	[ORDER_ASSIGN] = {[ORDER_CREATE] = ORDER_REVERSE,
                      [ORDER_REPLACE] = ORDER_REVERSE,
                      [ORDER_ASSIGN] = ORDER_KEEP,
                      [ORDER_RELATIVE] = ORDER_ANY},
	[ORDER_RELATIVE] = {[ORDER_CREATE] = ORDER_REVERSE,
                        [ORDER_REPLACE] = ORDER_REVERSE,
                        [ORDER_ASSIGN] = ORDER_ANY,
                        [ORDER_RELATIVE] = ORDER_ANY},
};

/* Two that delete the same do not disturb each other. */
static enum order_resolution resolve_delete(const struct order_rules *rules, bool x_deletes, bool y_deletes)
{
	if (x_deletes && y_deletes)
		return ORDER_ANY;
	return x_deletes == rules->delete_loses ? ORDER_TAKE_ONE : ORDER_TAKE_FIRST;
}

enum order_resolution order_resolve(const struct order_rules *rules, const struct order_op *x, const struct order_op *y)
{
	if (order_is_copy(x) || order_is_copy(y))
		return x->effect == ORDER_DELETE ? ORDER_TAKE_FIRST : y->effect == ORDER_DELETE ? ORDER_TAKE_ONE : ORDER_ANY;
	if (x->facet != y->facet && !order_concerns_all(x) && !order_concerns_all(y))
		return ORDER_ANY;
	if (rules->resolutions && x->class < rules->classes && y->class < rules->classes) {
		uint8_t said = rules->resolutions[(size_t)x->class * rules->classes + y->class];
		if (said < ORDER_RESOLUTIONS)
			return (enum order_resolution)said;
	}
	if (x->effect == ORDER_DELETE || y->effect == ORDER_DELETE)
		return resolve_delete(rules, x->effect == ORDER_DELETE, y->effect == ORDER_DELETE);
	return (enum order_resolution)defaults[x->effect][y->effect];
}

/* A replace that by the rules commutes with some class leaves alone what that class does: it is no more than an assign. */
bool order_resets(const struct order_rules *rules, const struct order_op *op)
{
	if (op->effect != ORDER_REPLACE)
		return order_concerns_all(op);
	if (!rules->resolutions || op->class >= rules->classes)
		return true;
	for (size_t other = 0; other < rules->classes; other++)
		if (rules->resolutions[(size_t)op->class * rules->classes + other] == ORDER_ANY ||
		    rules->resolutions[other * rules->classes + op->class] == ORDER_ANY)
			return false;
	return true;
}

/* Where one had seen the other, they keep that order, whatever the rules say of concurrent ones. */
bool order_commute(const struct order_rules *rules, const struct order_op *x, const struct order_op *y)
{
	if (order_is_copy(x) || order_is_copy(y))
		return true;
	if (order_concerns_all(x) || order_concerns_all(y))
		return false;
	if (x->facet != y->facet)
		return true;
	if (!order_concurrent(x, y))
		return false;
	return (order_before(x, y) ? order_resolve(rules, x, y) : order_resolve(rules, y, x)) == ORDER_ANY;
}

bool order_supersedes(const struct order_rules *rules, const struct order_op *winner, const struct order_op *loser)
{
	if (!order_concurrent(winner, loser))
		return false;
	if (order_before(winner, loser))
		return order_resolve(rules, winner, loser) == ORDER_TAKE_FIRST;
	return order_resolve(rules, loser, winner) == ORDER_TAKE_ONE;
}

void order_facets_find(struct arena *arena, const struct order_set *set, struct order_facets *facets)
{
	facets->names = arena_array(arena, uint16_t, (size_t)set->ops_count + 1);
	facets->of = arena_array(arena, uint32_t, set->ops_count);
	facets->count = 1;
	for (uint32_t i = 0; i < set->ops_count; i++) {
		uint32_t at = 0;
		while (at < facets->count && facets->names[at] != set->ops[i].facet)
			at++;
		if (at == facets->count)
			facets->names[facets->count++] = set->ops[i].facet;
		facets->of[i] = at;
	}
}

/* Operations that resolve alike. */
struct kind {
	const struct order_op *example;
	bool takes;    /* some kind before it in T resolves to one of the two */
	bool reverses; /* some kind before it in T has to come after it */
};

struct build {
	const struct order_set *set;
	uint32_t *all;
	uint32_t all_count;
	uint32_t *latest; /* of each member, the last inserted */
	uint32_t *before; /* of each op, the one of its member that was inserted before it */
	struct order_place *places;
	struct kind *kinds;
	uint32_t kinds_count;
};

enum { KINDS = 32 }; /* told apart; with more, all concurrent pairs are looked at */

static struct kind *find_kind(struct build *build, const struct order_op *op)
{
	for (uint32_t i = 0; i < build->kinds_count; i++) {
		const struct order_op *example = build->kinds[i].example;
		if (example->class == op->class && example->effect == op->effect && example->facet == op->facet)
			return &build->kinds[i];
	}
	return NULL;
}

/* Mostly there are few kinds, and of most of them it is known at once that no pair needs to be looked at. */
static void find_kinds(struct build *build)
{
	const struct order_set *set = build->set;
	for (uint32_t i = 0; i < set->ops_count && build->kinds_count <= KINDS; i++)
		if (!find_kind(build, &set->ops[i]))
			build->kinds[build->kinds_count++].example = &set->ops[i];
	for (uint32_t x = 0; build->kinds_count <= KINDS && x < build->kinds_count; x++)
		for (uint32_t y = 0; y < build->kinds_count; y++) {
			enum order_resolution resolution =
				order_resolve(&set->rules, build->kinds[x].example, build->kinds[y].example);
			if (resolution == ORDER_TAKE_ONE || resolution == ORDER_TAKE_FIRST)
				build->kinds[y].takes = true;
			if (resolution == ORDER_REVERSE)
				build->kinds[y].reverses = true;
		}
}

static int compare_indexes(const void *left, const void *right, void *context)
{
	const struct build *build = context;
	const struct order_op *ops = build->set->ops;
	const struct order_op *x = &ops[*(const uint32_t *)left], *y = &ops[*(const uint32_t *)right];
	return order_before(x, y) ? -1 : order_before(y, x) ? 1 : 0;
}

/* Indexes in the order T. Mostly they are in it already. */
static uint32_t *sort_by_stamp(struct arena *arena, struct build *build)
{
	const struct order_set *set = build->set;
	uint32_t *sorted = arena_array(arena, uint32_t, set->ops_count);
	bool in_order = true;
	for (uint32_t i = 0; i < set->ops_count; i++) {
		sorted[i] = i;
		in_order = in_order && (i == 0 || order_before(&set->ops[i - 1], &set->ops[i]));
	}
	if (!in_order)
		qsort_r(sorted, set->ops_count, sizeof(*sorted), compare_indexes, build);
	return sorted;
}

static void supersede(struct build *build, uint32_t loser, uint32_t winner)
{
	build->places[loser] = (struct order_place){.fate = ORDER_SUPERSEDED, .by = winner};
}

/* Who loses against whom, among y and what was inserted before it. */
static void settle_pairs(struct build *build, uint32_t y)
{
	const struct order_op *ops = build->set->ops;
	for (uint32_t member = 0; member < build->set->members_count; member++) {
		for (uint32_t x = build->latest[member]; x != ORDER_NONE && !order_saw(&ops[y], &ops[x]);
		     x = build->before[x]) {
			if (order_saw(&ops[x], &ops[y]))
				continue; /* with a stamp that nobody should have let in */
			enum order_resolution resolution = order_resolve(&build->set->rules, &ops[x], &ops[y]);
			if (resolution == ORDER_TAKE_ONE)
				supersede(build, x, y);
			else if (resolution == ORDER_TAKE_FIRST)
				supersede(build, y, x);
		}
	}
}

static void insert(struct build *build, uint32_t y, bool reverses)
{
	const struct order_op *ops = build->set->ops;
	uint32_t at = build->all_count;
	for (uint32_t i = build->all_count; reverses && i > 0; i--) {
		const struct order_op *x = &ops[build->all[i - 1]];
		if (order_is_copy(x))
			continue; /* that it was seen says nothing on the order of others */
		if (order_saw(&ops[y], x))
			break;
		if (order_resolve(&build->set->rules, x, &ops[y]) == ORDER_REVERSE)
			at = i - 1;
	}
	memmove(&build->all[at + 1], &build->all[at], (build->all_count - at) * sizeof(*build->all));
	build->all[at] = y;
	build->all_count++;
	build->before[y] = build->latest[ops[y].member];
	build->latest[ops[y].member] = y;
}

/* From the end: what a later one resets is obsolete. The create is not: a replace sets what is in the item, not that it
 * is there. */
static void mark_obsolete(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                          struct order_place *places)
{
	struct order_facets facets;
	order_facets_find(arena, set, &facets);
	uint32_t *reset = arena_array(arena, uint32_t, facets.count);
	uint32_t barrier = ORDER_NONE;
	for (uint32_t i = 0; i < facets.count; i++)
		reset[i] = ORDER_NONE;
	for (uint32_t i = sequence->ops_count; i-- > 0;) {
		uint32_t op = sequence->ops[i];
		bool all = order_concerns_all(&set->ops[op]);
		uint32_t by = all || reset[facets.of[op]] == ORDER_NONE ? barrier : reset[facets.of[op]];
		if (by != ORDER_NONE)
			places[op] = (struct order_place){.fate = ORDER_OBSOLETE, .by = by};
		else if (all)
			barrier = op;
		else if (order_resets(&set->rules, &set->ops[op]))
			reset[facets.of[op]] = op;
	}
}

void order_build(struct arena *arena, const struct order_set *set, struct order_sequence *sequence)
{
	struct build build = {
		.set = set,
		.all = arena_array(arena, uint32_t, set->ops_count),
		.latest = arena_array(arena, uint32_t, set->members_count),
		.before = arena_array(arena, uint32_t, set->ops_count),
		.places = arena_array(arena, struct order_place, set->ops_count),
	};
	for (uint32_t i = 0; i < set->members_count; i++)
		build.latest[i] = ORDER_NONE;
	build.kinds = arena_array(arena, struct kind, KINDS + 1);
	find_kinds(&build);
	const uint32_t *sorted = sort_by_stamp(arena, &build);
	for (uint32_t i = 0; i < set->ops_count; i++) {
		const struct kind *kind = build.kinds_count > KINDS ? NULL : find_kind(&build, &set->ops[sorted[i]]);
		if (!kind || kind->takes)
			settle_pairs(&build, sorted[i]);
		insert(&build, sorted[i], !kind || kind->reverses);
	}
	uint32_t *kept = arena_array(arena, uint32_t, set->ops_count);
	uint32_t kept_count = 0;
	for (uint32_t i = 0; i < build.all_count; i++)
		if (build.places[build.all[i]].fate != ORDER_SUPERSEDED)
			kept[kept_count++] = build.all[i];
	*sequence = (struct order_sequence){.ops = kept, .ops_count = kept_count, .all = build.all, .places = build.places};
	mark_obsolete(arena, set, sequence, build.places);
}

/* To forget the first `k` of all is not possible for k in (after, upto]. */
static void forbid(int32_t *cuts, uint32_t after, uint32_t upto)
{
	if (after < upto) {
		cuts[after + 1]++;
		cuts[upto + 1]--;
	}
}

/* What was superseded and what it lost against: with the one forgotten and not the other, who still has the effect of the
 * first would no longer know it, or who has not would bring it back. The first of those that it lost against decides: the
 * others may be rejected somewhere, and do not count there. */
static void forbid_between(const struct order_set *set, const struct order_sequence *sequence, uint32_t at,
                           int32_t *cuts)
{
	uint32_t first = 0;
	while (first < set->ops_count &&
	       !order_supersedes(&set->rules, &set->ops[sequence->all[first]], &set->ops[sequence->all[at]]))
		first++;
	forbid(cuts, at, first);
	forbid(cuts, first, at);
}

void order_forget(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                  const bool *settled, uint32_t *base)
{
	int32_t *cuts = arena_array(arena, int32_t, (size_t)set->ops_count + 2);
	for (uint32_t i = 0; i < set->ops_count; i++) {
		uint32_t op = sequence->all[i];
		if (sequence->places[op].fate == ORDER_SUPERSEDED)
			forbid_between(set, sequence, i, cuts);
		else if (set->ops[op].effect == ORDER_DELETE)
			forbid(cuts, 0, i); /* who has nothing of it any more would have to believe that it is there */
	}
	uint32_t count = 0;
	int32_t forbidden = 0;
	for (uint32_t i = 0; i < set->ops_count && settled[sequence->all[i]]; i++) {
		forbidden += cuts[i + 1];
		if (forbidden == 0)
			count = i + 1;
	}
	for (uint32_t i = 0; i < set->members_count; i++)
		base[i] = set->base ? set->base[i] : 0;
	for (uint32_t i = 0; i < count; i++) {
		const struct order_op *op = &set->ops[sequence->all[i]];
		if (base[op->member] < op->number)
			base[op->member] = op->number;
	}
}
