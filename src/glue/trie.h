/* The trie of a service's paths: one level per segment, from which the operations hang. Only for this room. */
#ifndef GLUE_TRIE_H
#define GLUE_TRIE_H

#include "glue/template.h"

/* What a path may mean: at most 64 operations, those that ask for more first. */
struct glue_endpoint {
	struct glue_candidate *candidates;
	uint32_t count;
	uint32_t capacity;
	uint32_t methods; /* of all of them */
};

struct glue_node *glue_trie_new(struct arena *arena);

/* Hangs an operation at a template's end. Returns the candidate that could not be told apart from it, in *clash; ERR_LIMIT: there are
 * 64 already. */
int glue_trie_add(struct arena *arena, struct glue_node *root, const struct glue_operation *operation,
                  const struct glue_template *template, const struct glue_candidate **clash);

/* Visits the endpoints that fit the segments, the most literal one first, until accept() returns true. */
const struct glue_endpoint *glue_trie_find(const struct glue_node *root, const struct glue_segments *segments,
                                           bool (*accept)(void *context, const struct glue_endpoint *endpoint),
                                           void *context);

#endif
