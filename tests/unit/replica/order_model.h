/* A model application with everything that the order has to do with, and random histories of it.
 *
 * An item has two facets. Each has a value (set, increment), a map (merge patches), and a log (append; note, which appends the value as it is); PUT sets all three. An
 * operation on an item that is not there is refused, as a service would, but for a create, and a delete of what is gone. */
#ifndef ORDER_MODEL_H
#define ORDER_MODEL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/order.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MODEL_SITES = 4, MODEL_OPS = 40, MODEL_KEYS = 3 };

enum model_class {
	MODEL_CREATE,
	MODEL_PUT,
	MODEL_PATCH,
	MODEL_SET,
	MODEL_INCREMENT,
	MODEL_APPEND,
	MODEL_NOTE,
	MODEL_DELETE,
	MODEL_CLASSES
};

struct model_facet {
	int64_t value;
	int map[MODEL_KEYS];
	uint64_t log[2 * MODEL_OPS]; /* the operation, and what it noted in the upper half */
	uint32_t log_count;
};

struct model_item {
	bool here;
	struct model_facet facets[2];
};

/* All operations of a history, as nobody at a site knows them: by index, in the order in which they were issued. */
struct model_world {
	struct order_op ops[MODEL_OPS];
	uint32_t seen[MODEL_OPS][MODEL_SITES];
	int arguments[MODEL_OPS]; /* value, or key and value */
	uint32_t ops_count;
	uint32_t sites_count;
	uint8_t resolutions[MODEL_CLASSES * MODEL_CLASSES];
	struct order_rules rules;
	bool default_rules; /* and no class for which they are wrong */
	bool log_is_bag;    /* appends commute: their order does not matter */
	uint64_t random;
};

uint32_t model_random(struct model_world *world, uint32_t below);

/* Rules are the defaults, with overrides in `wild` of a hundred pairs. What the rules say commutes does so. */
void model_world_make(struct model_world *world, uint64_t seed, uint32_t wild);

/* A new operation, that had seen this (and is not among what is known to anybody yet). */
uint32_t model_issue(struct model_world *world, uint32_t site, enum model_class class, const uint32_t *seen);
/* Anything but a create. */
enum model_class model_random_class(struct model_world *world);

/* Runs an operation. Returns false if it is refused. */
bool model_run(const struct model_world *world, struct model_item *item, uint32_t op, bool as_replace);

bool model_equal(const struct model_world *world, const struct model_item *left, const struct model_item *right);

/* E, by the letter of the design and in the most simple way, of some operations, which `known` says. `all` is with what is
 * superseded. */
uint32_t model_sequence(const struct model_world *world, const bool *known, uint32_t *all);
/* Loses against one that counts. */
bool model_superseded(const struct model_world *world, const bool *known, uint32_t op);

#endif
