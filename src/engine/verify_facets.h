/* Inside the engine: the second question of a comparison, on the facets of all copies. See verify_facets.c. */
#ifndef ENGINE_VERIFY_FACETS_H
#define ENGINE_VERIFY_FACETS_H

#include "engine/asking.h"

struct facet_asked {
	struct facet_round *round;
	struct asking asking;
	bool wanted;                   /* it has the item: it is asked */
	struct engine_reading reading; /* of the arena */
};

struct facet_round {
	/* of whoever starts it: with site and `wanted` of each member */
	struct engine *engine;
	struct replica_id replicant;
	struct arena *arena;
	void (*done)(struct facet_round *round); /* once, perhaps before engine_round_start() returns; may end it */
	void *context;
	struct facet_asked asked[LIMIT_REPLICA_MEMBERS];
	uint32_t asked_count;
	/* */
	uint32_t pending;
	uint32_t own;
	struct copying copying;
	bool copying_begun;
};

void engine_round_start(struct facet_round *round);
/* Sites have gone: who is one of them is not waited for. May end it, by done(). */
void engine_round_review(struct facet_round *round);
/* What was found goes to what was found of the items. */
void engine_round_judge(struct facet_round *round, const struct glue_type *type, const struct engine_reading *items,
                        struct engine_member_verdict *members, bool *tie);
/* In the engine's thread; frees what it has, and not itself. */
void engine_round_end(struct facet_round *round);

#endif
