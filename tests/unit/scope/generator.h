/* Scopes made at random from the grammar, for property tests. The same seed always gives the same scopes.
 *
 * A scope is made as a tree first, then written down in one of the many ways that mean this tree: with or without braces,
 * as JSON, with more parentheses, quotes, escapes and white space than are needed. So a test can hold the tree that the
 * parser finds against the one that was meant.
 */
#ifndef TESTS_UNIT_SCOPE_GENERATOR_H
#define TESTS_UNIT_SCOPE_GENERATOR_H

#include "scope/scope_int.h"

/* Splitmix64 (Steele, Lea and Flood, 2014): small, and good enough to play dice with. */
struct dice {
	uint64_t state;
};

uint64_t dice_roll(struct dice *dice);
uint32_t dice_below(struct dice *dice, uint32_t bound); /* 0 to bound - 1; bound > 0 */
bool dice_chance(struct dice *dice, uint32_t one_in);

struct generator {
	struct dice dice;
	struct arena *arena; /* trees live here */
	/* Names of sites to choose from. NULL: any, the odder the better. */
	const struct str *sites;
	uint32_t sites_count;
	/* Names of services, likewise. */
	const struct str *services;
	uint32_t services_count;
	bool meaningful; /* only what scope_check() accepts, as long as there are enough sites: none is used twice */
	bool functions;  /* also calls and `!` */
	/* The rest is the generator's own. */
	uint32_t calls_left;
	uint32_t sites_left;
	uint32_t deck[LIMIT_SCOPE_SITES];
	uint32_t deck_left;
};

/* A tree as the parser would make it, but for places and ordinals. */
struct scope *generator_scope(struct generator *generator);

/* One text of it. */
void generator_write(struct generator *generator, struct buf *out, const struct scope *scope);

/* Do two trees mean the same? Places, and what scope_check() adds, are not looked at. */
bool scope_same(const struct scope *a, const struct scope *b);

#endif
