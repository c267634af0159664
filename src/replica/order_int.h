/* What order.c and order_next.c share. */
#ifndef REPLICA_ORDER_INT_H
#define REPLICA_ORDER_INT_H

#include "replica/order.h"

enum { ORDER_NONE = UINT32_MAX }; /* no index */

/* Concerns all facets. */
static inline bool order_concerns_all(const struct order_op *op)
{
	return op->effect == ORDER_CREATE || op->effect == ORDER_DELETE;
}

/* It changes nothing where the item is already. */
static inline bool order_is_copy(const struct order_op *op)
{
	return op->effect == ORDER_ADOPT;
}

static inline bool order_concurrent(const struct order_op *x, const struct order_op *y)
{
	return x->member != y->member && !order_saw(x, y) && !order_saw(y, x);
}

/* After it nothing is left of what was before in its facet, or in all of them. */
bool order_resets(const struct order_rules *rules, const struct order_op *op);

/* Whether it makes no difference which of the two is run first. */
bool order_commute(const struct order_rules *rules, const struct order_op *x, const struct order_op *y);

/* `loser` does not count if both are known. */
bool order_supersedes(const struct order_rules *rules, const struct order_op *winner, const struct order_op *loser);

/* The facets that occur, numbered as they are met. Facet 0 is the first. Usually there is one, or two. */
struct order_facets {
	uint16_t *names;
	uint32_t count;
	uint32_t *of; /* of each op */
};

void order_facets_find(struct arena *arena, const struct order_set *set, struct order_facets *facets);

#endif
