/* The evaluator's state, shared by its two files: evaluator.c (nodes to steps) and choice.c (sites chosen by functions). */
#ifndef SCOPE_EVALUATOR_H
#define SCOPE_EVALUATOR_H

#include "scope/scope_int.h"

struct scope_eval {
	struct arena *arena;
	const struct scope *scope;
	const struct scope_request *request;
	const struct scope_view *view;
	struct scope_diag *diag;
	struct scope_warnings warnings;
	uint32_t *resolved; /* by ordinal of a named site: its number in the view */
	uint32_t service;   /* in the view, or SCOPE_NO_INDEX: then services and versions are not looked at */
	uint32_t excluding; /* how many `!` are around: sites that are to be avoided need not have the service */
	struct str version; /* of the service, that all others have to match; "": none known yet */
};

/* A growing list of steps. */
struct scope_steps {
	struct scope_step **list;
	uint32_t count;
	uint32_t capacity;
};

void scope_steps_push(struct arena *arena, struct scope_steps *steps, struct scope_step *step);

int scope_eval_node(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out);

/* The step of a named site. */
int scope_eval_named(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out);

/* A step at one site; a group, whose parts it brings into order where the order is not the user's (`|`). */
struct scope_step *scope_eval_one(struct scope_eval *eval, uint32_t site);
struct scope_step *scope_eval_group(struct scope_eval *eval, enum scope_step_op op, enum scope_consistency consistency,
                                    struct scope_steps *steps);

/* May a function choose this site: does it have the service, in a version that goes with the others? */
bool scope_eval_usable(struct scope_eval *eval, uint32_t site);

/* around, all, nearest, tagged and `!`. */
int scope_eval_choice(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out);

/* A set of sites of the view, as bits. */
struct scope_set {
	uint64_t *words;
};

static inline struct scope_set scope_set_new(struct scope_eval *eval)
{
	return (struct scope_set){arena_array(eval->arena, uint64_t, (eval->view->sites_count + 63) / 64)};
}

static inline bool scope_set_has(const struct scope_set *set, uint32_t site)
{
	return set->words[site / 64] >> (site % 64) & 1;
}

/* False if it was there already. */
static inline bool scope_set_add(struct scope_set *set, uint32_t site)
{
	if (scope_set_has(set, site))
		return false;
	set->words[site / 64] |= UINT64_C(1) << (site % 64);
	return true;
}

#endif
