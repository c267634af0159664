/* A prime is withdrawn from a container, as src/engine/follow.c does it with replicants:
 *   it takes no new children; when it has none and cross_names_may_leave(), it forgets the container, and is gone with the commit
 *   the others hear of that one by one, sooner or later; whoever then is the first of its own list makes the next one
 * Nobody tells that list to anybody but by messages on names. It has to go on from the last one that there was. */
#include "sim/span.h"

#include <inttypes.h>

enum { LOOK_US = 300000, HEAR_MOST_US = 4000000, AGAIN_US = 500000 };

bool span_is_withdrawn(const struct span_container *container, const struct span_site *it)
{
	return container->withdrawn.site == it->number;
}

void span_withdraw(struct span *span, uint32_t number)
{
	struct span_container *container = &span->containers[number];
	container->withdrawn.site = span_site_of(span, container->list.sites[0].site);
	container->withdrawn.going = container->withdrawn.gone = false;
	span_tell(span, "c%" PRIu32 ": s%" PRIu32 " is to leave, the prime", number, container->withdrawn.site);
	span_at(span, span->sim.now_us + sim_random_below(&span->random, LOOK_US), SPAN_ACT_WITHDRAW, number);
}

/* Somebody deletes them, one after the other: as long as there are some it does not go. */
static bool holds_any(struct span *span, uint32_t container, struct span_site *it)
{
	for (uint32_t i = 0; i < span->children_count; i++) {
		struct span_child *child = &span->children[i];
		if (child->container != container || child->site != it->number || child->out || (!child->alive && !child->busy))
			continue;
		if (!child->busy) {
			struct cross_claim claim = span_claim_of(span, child, child->name);
			child->alive = false;
			cross_names_release(it->names, &claim, span_now(span, it));
			span_leave(it);
		}
		return true;
	}
	return false;
}

void span_act_withdraw(struct span *span, uint32_t number)
{
	struct span_container *container = &span->containers[number];
	if (container->withdrawn.site == SPAN_NOBODY || container->withdrawn.gone)
		return;
	struct span_site *it = &span->sites[container->withdrawn.site];
	span_at(span, span->sim.now_us + LOOK_US, SPAN_ACT_WITHDRAW, number);
	if (!it->names || container->withdrawn.going || holds_any(span, number, it))
		return;
	if (span->options.mutation == SPAN_ABRUPT || cross_names_may_leave(it->names, container->id, span_now(span, it))) {
		container->withdrawn.going = true;
		cross_names_forget(it->names, container->id, span_now(span, it));
	}
	span_leave(it);
}

static void let_hear(struct span *span, uint32_t container, uint32_t site, uint64_t in_us)
{
	span_at(span, span->sim.now_us + in_us, SPAN_ACT_HEAR, container * SPAN_SITES + site);
}

void span_withdraw_committed(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < span->containers_count; i++) {
		struct span_container *container = &span->containers[i];
		if (!span_is_withdrawn(container, it) || !container->withdrawn.going || container->withdrawn.gone ||
		    it->rows.changes_count > 0)
			continue;
		container->withdrawn.gone = true;
		span->figures.withdrawals++;
		span_tell(span, "c%" PRIu32 ": s%" PRIu32 " has left, the prime", i, it->number);
		for (uint32_t k = 1; k < container->list.count; k++)
			let_hear(span, i, span_site_of(span, container->list.sites[k].site),
			         sim_random_below(&span->random, HEAR_MOST_US));
	}
}

void span_withdraw_crashed(struct span *span, const struct span_site *it)
{
	for (uint32_t i = 0; i < span->containers_count; i++) {
		struct span_container *container = &span->containers[i];
		if (span_is_withdrawn(container, it) && !container->withdrawn.gone)
			container->withdrawn.going = false;
	}
}

static bool is_same_list(const struct cross_container *a, const struct cross_container *b)
{
	bool same = a->term == b->term && a->since == b->since && a->count == b->count;
	for (uint32_t i = 0; same && i < a->count; i++)
		same = a->sites[i].site == b->sites[i].site && a->sites[i].joined == b->sites[i].joined;
	return same;
}

static void take_over(struct span *span, struct span_container *container, struct span_site *it)
{
	struct cross_container next;
	site_id gone = span->sites[container->withdrawn.site].id;
	if (!cross_names_get(it->names, container->id, &next) || next.count < 2 || next.sites[0].site != gone ||
	    next.sites[1].site != it->id)
		return;
	if (!is_same_list(&next, &container->list))
		span_violation(span, "s%" PRIu32 " follows the prime s%" PRIu32 ", and does not know its last list", it->number,
		               container->withdrawn.site);
	if (cross_container_drop(&next, gone, NULL) != 0)
		return;
	span_tell(span, "s%" PRIu32 " is the next prime after s%" PRIu32, it->number, container->withdrawn.site);
	container->list = next;
	container->withdrawn.site = SPAN_NOBODY;
	span->figures.terms++;
	cross_names_set(it->names, container->id, &next, span_now(span, it));
	span_leave(it);
}

void span_act_hear(struct span *span, uint32_t number)
{
	uint32_t which = number / SPAN_SITES, site = number % SPAN_SITES;
	struct span_container *container = &span->containers[which];
	struct span_site *it = &span->sites[site];
	if (container->withdrawn.site == SPAN_NOBODY || !container->withdrawn.gone || it->dead)
		return;
	if (it->names)
		take_over(span, container, it);
	if (container->withdrawn.site != SPAN_NOBODY) /* it is down, or not its turn, which may change */
		let_hear(span, which, site, AGAIN_US);
}
