/* The order of operations on one replicant (docs/replication-order.md): what a site must have executed is a function of
 * the set of operations that it knows, and of nothing else.
 *
 * Given are the operations known, S, closed under what each had seen. order_build() makes of S the sequence E. order_next()
 * compares E with X, what this site executed so far and in which order, and says what to do next; order_step() enters into X
 * what was done. All are functions: no state, no clock.
 *
 *   order_build(S) ─▶ E        again only when S grows
 *   order_next(E, X) ─▶ RUN op     the service runs it     order_step(X, outcome)     and again, until NOTHING or STUCK
 *
 * X is such that the site's state is what X, run from the start in that order, would give. That is why what is run again
 * leaves its old place in X and goes to the end, and why nothing else ever leaves X: S may grow between any two steps.
 *
 * A facet is a part of the item that is set on its own (the file of an image): operations on different facets commute;
 * `create` and `delete` concern all facets. An operation on a facet is compared and re-run within that facet only.
 */
#ifndef REPLICA_ORDER_H
#define REPLICA_ORDER_H

#include "base/arena.h"
#include "base/limits.h"

#include <stdbool.h>
#include <stdint.h>

enum order_effect {
	ORDER_CREATE,
	ORDER_REPLACE,
	ORDER_ASSIGN,
	ORDER_RELATIVE,
	ORDER_DELETE,
	ORDER_EFFECTS,
	/* The copy that a new member begins with (members.c). To the order it is nothing: it commutes with everything, and a
	 * concurrent delete wins, whatever the rules say. No request has this effect. */
	ORDER_ADOPT = ORDER_EFFECTS,
};

/* For concurrent x before y in T. T, the order of all that is known, is by stamp, then by site. */
enum order_resolution {
	ORDER_TAKE_ONE,   /* only y counts */
	ORDER_ANY,        /* they commute */
	ORDER_KEEP,       /* x, y */
	ORDER_REVERSE,    /* y, x */
	ORDER_TAKE_FIRST, /* only x counts: a delete that wins, a change against a delete that loses, the first create */
	ORDER_RESOLUTIONS,
};

enum { ORDER_DEFAULT = 255 };

/* An operation as far as its place is concerned. Members are numbered 0 to members_count - 1, each site in its own way: the
 * order depends on their ids alone. */
struct order_op {
	uint32_t member; /* that issued it */
	uint32_t number; /* its first is 1 */
	uint64_t stamp;  /* hybrid logical clock: later than all that it had seen (who receives it checks that) */
	const uint32_t
		*seen; /* how many operations of each member it had seen; of its own: number - 1. At least what each of
	                       * those had seen */
	uint8_t effect;
	uint8_t class;  /* what the rules know it by: operations of one name have one class */
	uint16_t facet; /* 0: the item itself */
	uint64_t site;  /* id of the member: decides between equal stamps */
};

/* How concurrent operations are resolved: fixed when the replicant is made, and equal at all members. */
struct order_rules {
	uint8_t classes;            /* at most LIMIT_REPLICA_CLASSES */
	const uint8_t *resolutions; /* [x * classes + y], enum order_resolution; ORDER_DEFAULT: by the effects */
	bool delete_loses;          /* against whatever is concurrent; otherwise it wins */
	bool create_replays;        /* the create can be run again as a `replace` of facet 0 */
};

struct order_set {
	const struct order_op *ops; /* in any order */
	uint32_t ops_count;
	uint32_t members_count;
	struct order_rules rules;
	const uint32_t *base; /* operations of each member that are forgotten: everybody has executed them, and whatever
	                       * comes now had seen them. They are not among `ops`. NULL: none */
	bool restorable;      /* facet 0 can be set to what it was with all of these executed, and no others */
};

enum order_fate {
	ORDER_COUNTS,     /* it is in E */
	ORDER_SUPERSEDED, /* by a concurrent one, `by` */
	ORDER_OBSOLETE,   /* in E, but a later `replace` or `delete`, `by`, sets all that it had set */
};

struct order_place {
	enum order_fate fate;
	uint32_t by; /* index into ops; only if it does not count. It may itself have been superseded, by a third one */
};

struct order_sequence {
	const uint32_t *ops; /* E: indexes into set->ops. What is superseded is not in it; what is obsolete is */
	uint32_t ops_count;
	const uint32_t *all;              /* the same with what is superseded: a place for each of set->ops_count */
	const struct order_place *places; /* of each op of the set */
};

/* x happened before y: y had seen it. */
bool order_saw(const struct order_op *y, const struct order_op *x);
/* Of two in whatever relation: x is before y in T. */
bool order_before(const struct order_op *x, const struct order_op *y);
/* Of two concurrent ones, x before y in T. */
enum order_resolution order_resolve(const struct order_rules *rules, const struct order_op *x,
                                    const struct order_op *y);

/* In the arena. Time: linear in the operations, and in the pairs of concurrent ones of which the rules take one or reverse them. */
void order_build(struct arena *arena, const struct order_set *set, struct order_sequence *sequence);

/* What may be forgotten of the set, at a site where order_next() says NOTHING: that a site was settled once is not enough for
 * itself, since what was obsolete or lost then may be due now. `settled` says of each operation whether every member was
 * settled for a set with it, and it need not be shown. Fills base, members_count numbers, at least set->base.
 * E of what remains, and of all that may be added which had seen the base, is as it would be with the rest. That takes a
 * beginning of sequence->all, which parts none that is superseded from what it lost against, nor anything from a delete that
 * comes after it. What a site once reported as settled it counts as seen in all that it issues from then on, also where that
 * was undone since and is due again. */
void order_forget(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                  const bool *settled, uint32_t *base);

/* What a site did. */
enum order_done {
	ORDER_DONE,     /* the service accepted it */
	ORDER_REJECTED, /* the service refused it: no effect here */
	ORDER_DOUBT,    /* not known; a person has to say. For the order it counts as done */
	/* Only order_step() makes these. */
	ORDER_REPLAYED, /* a second entry of the create: it was run again as a replace of facet 0 */
	ORDER_KEPT,     /* done, and refused when it was to be done again: its effect stays, and it is not tried again */
};

struct order_step_done {
	uint32_t op; /* index into set->ops */
	enum order_done how;
};

enum order_action {
	ORDER_NOTHING, /* X has the effect of E: this site is settled for S */
	ORDER_RUN,     /* run `op` */
	ORDER_RERUN,   /* the same, and it ran here before */
	ORDER_RESTORE, /* set facet 0 to what it was at the base; then order_restore(): all behind it is due */
	ORDER_STUCK,   /* all has been run, and nothing that could be re-run resets what was done in another order: take the
	                * state of somebody */
};

struct order_next {
	enum order_action action;
	uint32_t op;
	bool as_replace;   /* `op` is the create, to be run as a replace of facet 0 */
	bool standing;     /* RERUN: the effect that it had is still there, and stays if it is refused now */
	uint16_t facet;    /* STUCK: the first that is */
	uint32_t distance; /* entries of X that are in line with E: the larger, the nearer (who is to give its state) */
};

/* `done` is X: each operation once, except for the create, which may be there a second time as REPLAYED. An operation that a
 * person wants to be tried again is taken out of it first. What is rejected here has no effect on what the others are to be
 * here, neither: it supersedes none, and makes none obsolete. It is tried again if the item has to be made again.
 * STUCK comes when all that is due was run (in whatever state), so that no effect is missing in what this site may be asked to
 * give; but for one case, where the item is gone by a delete that lost and its create is forgotten: then nothing can be run.
 * Time: linear in E and X where they agree up to what commutes, at most quadratic. */
void order_next(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                const struct order_step_done *done, uint32_t done_count, struct order_next *next);

/* Whether E, as it concerns this site, has a delete, so that what is not here is so rightly. `base`: one that is about to be forgotten;
 * NULL: any. */
bool order_deletes(struct arena *arena, const struct order_set *set, const struct order_sequence *sequence,
                   const struct order_step_done *done, uint32_t done_count, const uint32_t *base);

/* Enters into X that `next` was run with this outcome (DONE, REJECTED, DOUBT). There is room for one entry more. */
void order_step(struct order_step_done *done, uint32_t *done_count, const struct order_next *next, enum order_done how);

/* Enters into X that facet 0 is again as it was at the base. */
void order_restore(const struct order_set *set, struct order_step_done *done, uint32_t *done_count);

/* Before operations up to `base` are forgotten: takes them out of X, and with them what has no effect any more, which only they
 * may tell. `set` is as before; indexes stay. */
void order_trim(struct arena *arena, const struct order_set *set, const uint32_t *base, struct order_step_done *done,
                uint32_t *done_count);

#endif
