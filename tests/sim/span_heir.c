/* Children that two sites hold: the one that made the child, which claims its name, and another one. When the first is none of the container any more, the other one has
 * to claim it, before it says that it is ready (src/cross/heirs.c). Here both always know of the child at the same moment: what comes of operations that are late is for
 * tests/unit/cross/test_children.c, with a real struct replica. */
#include "sim/span.h"

#include <inttypes.h>

uint32_t span_heir_draw(const struct span *span, uint32_t container, uint32_t site, uint64_t dice)
{
	const struct cross_container *list = &span->containers[container].list;
	uint32_t heir = span_site_of(span, list->sites[(dice >> 20) % list->count].site);
	return dice >> 18 & 1 && heir != site && !span->sites[heir].dead ? heir : SPAN_NOBODY;
}

void span_heirs_follow(struct span *span, uint32_t container, const struct cross_container *list)
{
	for (uint32_t i = 0; i < span->children_count; i++) {
		struct span_child *child = &span->children[i];
		if (child->container != container || child->heir == SPAN_NOBODY)
			continue;
		if (!span_is_member(list, span->sites[child->heir].id))
			child->heir = SPAN_NOBODY;
		else if (!span_is_member(list, span->sites[child->site].id) && child->gone_term == 0)
			child->gone_term = list->term;
	}
}

/* Is it this site's to claim, if it has this list? */
static bool is_due(const struct span_child *child, const struct span_site *it, uint64_t term)
{
	return child->alive && !child->out && child->heir == it->number && child->gone_term != 0 &&
	       term >= child->gone_term;
}

void span_heirs_claim(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < span->children_count && it->names && span->options.mutation != SPAN_CARELESS; i++) {
		struct span_child *child = &span->children[i];
		struct cross_container list;
		if ((child->heir != it->number && (child->site != it->number || !child->inherited)) || !child->alive ||
		    child->out || child->busy || !cross_names_get(it->names, span->containers[child->container].id, &list))
			continue;
		struct cross_claim claim = span_claim_of(span, child, child->name);
		bool due = is_due(child, it, list.term);
		if (!due && (child->heir == it->number || cross_names_has(it->names, &claim)))
			continue; /* else what it had claimed went with a crash */
		if (cross_names_adopt(it->names, &claim, span_now(span, it), NULL) != 0)
			continue;
		span_tell(span, "s%" PRIu32 " inherits %s", it->number, span_name(child->name).at);
		span->figures.inherited += due;
		child->site = it->number;
		child->heir = SPAN_NOBODY;
		child->inherited = true;
		child->unchecked |= list.optimistic;
	}
}

bool span_heirs_have_claimed(void *context, struct replica_id container, const struct cross_container *list)
{
	const struct span_site *it = context;
	const struct span *span = it->span;
	for (uint32_t i = 0; i < span->children_count && span->options.mutation != SPAN_CARELESS; i++) {
		const struct span_child *child = &span->children[i];
		if (memcmp(span->containers[child->container].id.bytes, container.bytes, sizeof(container.bytes)) == 0 &&
		    is_due(child, it, list->term))
			return false;
	}
	return true;
}
