/* The functions that choose sites from the view, and `!`.
 *
 *     around(site, radius)  that site, then those within the radius of it, nearest to it first; a choice
 *     !x                    every known site that is not in x, nearest first; a choice
 *     all()                 every live site, nearest first; copies
 *     nearest(n)            the n nearest live ones, this one included; copies
 *     tagged(k=v, …)        every known site with these tags, live or not, since a tag names it; copies
 *
 * "Nearest" is by round trip, unknown distances last, then by name, so that the same view always gives the same order. Sites
 * that are away come behind all others: nobody named them, so the order is ours.
 * Sites that do not have the service, or have it in another major version, are not chosen.
 */
#include "scope/evaluator.h"

#include "base/check.h"

struct candidate {
	struct str name;
	int64_t rtt_us;
	uint32_t site;
	enum scope_state state;
};

struct candidates {
	struct candidate *list;
	uint32_t count;
};

/* What a function asks of a site. */
struct wish {
	uint32_t from;                  /* distances are from here */
	int64_t radius_us;              /* or SCOPE_RTT_UNKNOWN: any */
	bool live;                      /* only present ones */
	uint32_t without;               /* a site that is not wanted, or SCOPE_NO_INDEX */
	const struct scope_set *not_in; /* sites that are not wanted, or NULL */
	const struct scope_node *tags;  /* first of the tags that are wanted, or NULL */
};

/* ---- Order ------------------------------------------------------------------------------------------------------ */

static bool is_before(const struct candidate *a, const struct candidate *b)
{
	if (a->state != b->state)
		return a->state < b->state;
	if (a->rtt_us != b->rtt_us)
		return (uint64_t)a->rtt_us < (uint64_t)b->rtt_us;
	return str_compare(a->name, b->name) < 0;
}

static void insertion_sort(struct candidate *list, uint32_t count)
{
	for (uint32_t i = 1; i < count; i++) {
		struct candidate moved = list[i];
		uint32_t at = i;
		for (; at > 0 && is_before(&moved, &list[at - 1]); at--)
			list[at] = list[at - 1];
		list[at] = moved;
	}
}

/* Merge sort with scratch memory of the same size; the libc's may allocate, which this room does not do. */
static void sort_candidates(struct candidate *list, struct candidate *scratch, uint32_t count)
{
	if (count <= 12) {
		insertion_sort(list, count);
		return;
	}
	uint32_t half = count / 2;
	sort_candidates(list, scratch, half);
	sort_candidates(list + half, scratch, count - half);
	memcpy(scratch, list, half * sizeof(*list));
	uint32_t left = 0, right = half;
	for (uint32_t out = 0; left < half; out++) {
		if (right == count || !is_before(&list[right], &scratch[left]))
			list[out] = scratch[left++];
		else
			list[out] = list[right++];
	}
}

/* ---- Selection -------------------------------------------------------------------------------------------------- */

static bool has_tag(const struct scope_view *view, uint32_t site, const struct scope_node *tag)
{
	struct str key, value;
	for (uint32_t n = 0; view->tag(view->context, site, n, &key, &value); n++)
		if (str_equal(key, tag->name) && str_equal(value, tag->value))
			return true;
	return false;
}

static bool fits(struct scope_eval *eval, const struct wish *wish, uint32_t site, enum scope_state state)
{
	if (site == wish->without || (wish->not_in && scope_set_has(wish->not_in, site)))
		return false;
	if (wish->live && state != SCOPE_PRESENT)
		return false;
	for (const struct scope_node *tag = wish->tags; tag; tag = tag->next)
		if (!has_tag(eval->view, site, tag))
			return false;
	return eval->excluding || scope_eval_usable(eval, site);
}

/* Where no version is given by this site or by a name, the nearest chosen one gives it to the others. */
static void keep_one_version(struct scope_eval *eval, struct candidates *chosen)
{
	if (eval->service == SCOPE_NO_INDEX || eval->excluding || eval->version.length)
		return;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < chosen->count; i++) {
		struct str version;
		eval->view->offers(eval->view->context, eval->service, chosen->list[i].site, &version);
		if (eval->version.length == 0)
			eval->version = version;
		if (scope_eval_usable(eval, chosen->list[i].site))
			chosen->list[kept++] = chosen->list[i];
	}
	chosen->count = kept;
}

static struct candidates choose(struct scope_eval *eval, const struct wish *wish)
{
	const struct scope_view *view = eval->view;
	struct candidates chosen = {
		.list = arena_alloc(eval->arena, view->sites_count * sizeof(struct candidate), _Alignof(struct candidate))};
	for (uint32_t site = 0; site < view->sites_count; site++) {
		/* The distance first: most sites of a large view are out of a small radius. */
		int64_t rtt_us = site == wish->from ? 0 : view->rtt_us(view->context, wish->from, site);
		if (wish->radius_us != SCOPE_RTT_UNKNOWN && (uint64_t)rtt_us > (uint64_t)wish->radius_us)
			continue;
		struct scope_site known = view->site(view->context, site);
		enum scope_state state = site == eval->request->at ? SCOPE_PRESENT : known.state;
		if (fits(eval, wish, site, state))
			chosen.list[chosen.count++] = (struct candidate){known.name, rtt_us, site, state};
	}
	struct candidate *scratch = chosen.list;
	if (chosen.count > 12)
		scratch = arena_alloc(eval->arena, chosen.count * sizeof(*scratch), _Alignof(struct candidate));
	sort_candidates(chosen.list, scratch, chosen.count);
	keep_one_version(eval, &chosen);
	return chosen;
}

/* ---- From candidates to a step ---------------------------------------------------------------------------------- */

/* Alternatives beyond the limit would never be reached: the nearest are kept. What `!` avoids is not a plan, and has no
 * limit. */
static struct scope_step *as_choice(struct scope_eval *eval, const struct candidates *chosen, struct scope_steps *steps)
{
	for (uint32_t i = 0; i < chosen->count; i++) {
		if (steps->count == LIMIT_SCOPE_SITES && !eval->excluding) {
			scope_warn(&eval->warnings, "only the nearest %d of %u sites are alternatives", LIMIT_SCOPE_SITES,
			           chosen->count);
			break;
		}
		scope_steps_push(eval->arena, steps, scope_eval_one(eval, chosen->list[i].site));
	}
	return steps->count == 1 ? steps->list[0] : scope_eval_group(eval, SCOPE_OTHERWISE, SCOPE_EVENTUAL, steps);
}

/* Copies are not cut down silently: too many is an error. */
static int as_copies(struct scope_eval *eval, const struct scope_node *node, const struct candidates *chosen,
                     struct scope_step **out)
{
	if (chosen->count > LIMIT_SCOPE_SITES && !eval->excluding) {
		int code = scope_refuse(eval->diag, SCOPE_FAULT_TOO_MANY_SITES, scope_node_place(node),
		                        "this stands for %u sites; the limit is %d", chosen->count, LIMIT_SCOPE_SITES);
		return scope_hint(eval->diag, code, "choose fewer, as with nearest(3) or a narrower tag");
	}
	struct scope_steps steps = {0};
	for (uint32_t i = 0; i < chosen->count; i++)
		scope_steps_push(eval->arena, &steps, scope_eval_one(eval, chosen->list[i].site));
	*out = steps.count == 1 ? steps.list[0] : scope_eval_group(eval, SCOPE_ALL_OF, SCOPE_EVENTUAL, &steps);
	return 0;
}

/* Nothing fits. The service may be part of the reason. */
static int refuse_nothing_left(struct scope_eval *eval, const struct scope_node *node, const char *message,
                               const char *hint)
{
	int code = scope_refuse(eval->diag, SCOPE_FAULT_NO_SITE_LEFT, scope_node_place(node), "%s", message);
	if (eval->service != SCOPE_NO_INDEX)
		return scope_hint(eval->diag, code, "%s; only sites that have the service " TEXT_NAME_FMT " count", hint,
		                  TEXT_NAME(eval->request->service));
	return scope_hint(eval->diag, code, "%s", hint);
}

/* ---- The functions ---------------------------------------------------------------------------------------------- */

static struct wish any_site(struct scope_eval *eval)
{
	return (struct wish){.from = eval->request->at, .radius_us = SCOPE_RTT_UNKNOWN, .without = SCOPE_NO_INDEX};
}

static int eval_around(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	const struct scope_node *centre = call->first;
	struct scope_step *named;
	int code = scope_eval_named(eval, centre, &named);
	if (code)
		return code;
	struct wish wish = any_site(eval);
	wish.from = wish.without = named->site_index;
	wish.radius_us = centre->next->number;
	struct candidates chosen = choose(eval, &wish);
	struct scope_steps steps = {0};
	scope_steps_push(eval->arena, &steps, named);
	*out = as_choice(eval, &chosen, &steps);
	return 0;
}

static void collect_sites(struct scope_set *set, const struct scope_step *step)
{
	if (step->op == SCOPE_ONE)
		scope_set_add(set, step->site_index);
	for (uint32_t i = 0; i < step->of_count; i++)
		collect_sites(set, step->of[i]);
}

static int eval_not(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out)
{
	struct scope_step *avoided;
	eval->excluding++;
	int code = scope_eval_node(eval, node->first, &avoided);
	eval->excluding--;
	if (code)
		return code;
	struct scope_set set = scope_set_new(eval);
	collect_sites(&set, avoided);
	struct wish wish = any_site(eval);
	wish.not_in = &set;
	struct candidates chosen = choose(eval, &wish);
	if (chosen.count == 0)
		return refuse_nothing_left(eval, node, "`!` leaves no site", "every known site is in what it excludes");
	struct scope_steps steps = {0};
	*out = as_choice(eval, &chosen, &steps);
	return 0;
}

static int eval_all(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	struct wish wish = any_site(eval);
	wish.live = true;
	struct candidates chosen = choose(eval, &wish);
	if (chosen.count == 0)
		return refuse_nothing_left(eval, call, "no site is live", "all() stands for every live site");
	return as_copies(eval, call, &chosen, out);
}

static int eval_nearest(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	uint32_t wanted = (uint32_t)call->first->number;
	struct wish wish = any_site(eval);
	wish.live = true;
	struct candidates chosen = choose(eval, &wish);
	if (chosen.count == 0)
		return refuse_nothing_left(eval, call, "no site is live", "nearest() chooses among the live sites");
	if (chosen.count < wanted)
		scope_warn(&eval->warnings, "nearest(%u) gives only %u: no more sites are live%s", wanted, chosen.count,
		           eval->service == SCOPE_NO_INDEX ? "" : " and have the service");
	else
		chosen.count = wanted;
	return as_copies(eval, call, &chosen, out);
}

/* No site has the tags: says which values the key does have, if any. */
static int refuse_tag(struct scope_eval *eval, const struct scope_node *call)
{
	const struct scope_view *view = eval->view;
	const struct scope_node *tag = call->first;
	struct suggest keys, values;
	suggest_start(&keys, tag->name);
	suggest_start(&values, tag->value);
	for (uint32_t site = 0; site < view->sites_count; site++) {
		struct str key, value;
		for (uint32_t n = 0; view->tag(view->context, site, n, &key, &value); n++) {
			suggest_offer(&keys, key);
			if (str_equal(key, tag->name))
				suggest_offer(&values, value);
		}
	}
	if (call->children == 1 && values.best.length && !str_equal(values.best, tag->value)) {
		int code =
			scope_refuse(eval->diag, SCOPE_FAULT_NO_SITE_LEFT, scope_node_place(tag), "no known site has this tag");
		return scope_hint(eval->diag, code, "did you mean %.*s=%.*s?", STR_FMT(text_shown(tag->name)),
		                  STR_FMT(text_shown(values.best)));
	}
	if (keys.best.length && !str_equal(keys.best, tag->name)) {
		int code =
			scope_refuse(eval->diag, SCOPE_FAULT_NO_SITE_LEFT, scope_node_place(tag), "no known site has this tag");
		return scope_hint(eval->diag, code, "did you mean the key " TEXT_NAME_FMT "?", TEXT_NAME(keys.best));
	}
	return refuse_nothing_left(eval, call,
	                           call->children == 1 ? "no known site has this tag" : "no known site has all these tags",
	                           "tags are set at the sites themselves");
}

static int eval_tagged(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	struct wish wish = any_site(eval);
	wish.tags = call->first;
	struct candidates chosen = choose(eval, &wish);
	if (chosen.count == 0)
		return refuse_tag(eval, call);
	return as_copies(eval, call, &chosen, out);
}

int scope_eval_choice(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out)
{
	if (node->kind == SCOPE_NODE_NOT)
		return eval_not(eval, node, out);
	switch (node->function) {
	case SCOPE_FN_AROUND: return eval_around(eval, node, out);
	case SCOPE_FN_ALL: return eval_all(eval, node, out);
	case SCOPE_FN_NEAREST: return eval_nearest(eval, node, out);
	case SCOPE_FN_TAGGED: return eval_tagged(eval, node, out);
	default: UNREACHABLE("a function that chooses no sites");
	}
}
