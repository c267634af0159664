/* Children: what is in the containers of this site, between names (names.h) and replicants (src/replica).
 *
 * A container is a replicant with the span CONTAINER; a child is one that is PLACED over its sites. This file has the only rules that tie
 * the two rooms together, as a state machine: it is fed what its host tells, looks at the replicants by itself, and tells the names.
 * Both rooms keep their rows in the same commits, so whatever one of them has done the other one knows of after a crash.
 *
 * The life of a child at the site that makes it:
 *   cross_children_claim()   its row is put (name "", next the wanted one), and the name is claimed
 *   answer()                 granted: the host hands the create to struct replica, and says cross_children_over(). Refused: the row is gone
 *   cross_children_named()   the service has accepted a request that gives it this name: the name is kept
 *   a review                 the replicant is gone (never made, or deleted): the name is released, the row removed
 * A rename is the same with a name that it has meanwhile: next is claimed instead of it, and becomes it, or is released.
 *
 * What goes wrong:
 *   - the maker crashes. What names asks then (fate()) is answered from the row and the replicant: a create or a rename of which struct replica
 *     still has to find out what became of it is unknown; without any trace, nothing is under way that might change it
 *   - a request is never handed on (refused, no room, the engine stops): cross_children_over() is said all the same, and the next review finds no trace
 *   - a container comes to its sites one after the other: each makes the same first list of it, from what it was made with. Until a site knows the container
 *     nothing is claimed there
 *   - a container is deleted: where that was carried out its names are forgotten. A child that is made meanwhile at a site which has not heard of that
 *     cannot be granted a name by a prime that has
 *   - the prime is removed from the mesh, or has left the container: the first site of the list that is left makes the next one
 *   - a site, the prime among them, is to leave the container: no child is made there any more, and it goes when it has none, and cross_names_may_leave(). Until
 *     then it is in the list, and a prime goes on granting names to others
 *
 * One site only has the name of a child: the one that made it, which is its prime. Whoever holds a copy of it too has its host ask there for another name. When the
 * maker is gone those that are left have it (heirs.c).
 */
#ifndef CROSS_CHILDREN_H
#define CROSS_CHILDREN_H

#include "cross/names.h"

struct cross_children_host {
	struct cross_names_host names; /* but for fate() and has_claimed(), which are answered here */
	/* At once, with the context of names: */
	bool (*optimistic)(void *context, const struct replica_view *container); /* what the description says of its type */
	bool (*is_removed)(void *context, site_id site);                         /* from the mesh */
};

struct cross_children;

int cross_children_new(struct cross_children **out, const struct cross_names_options *options, struct replica *replica,
                       const struct cross_children_host *host, struct replica_now now, struct err *err);
void cross_children_free(struct cross_children *children); /* before the struct replica */

/* To look at, to tick and to count. What concerns single names is asked of the functions here. */
struct cross_names *cross_children_names(struct cross_children *children);

/* Something of this replicant may have changed. May be called out of a struct replica, for each of its events at least. */
void cross_children_event(struct cross_children *children, const struct replica_event *event);
void cross_children_note(struct cross_children *children, struct replica_id id);
/* Looks at those, after each event: before what was put is made durable. */
void cross_children_review(struct cross_children *children, struct replica_now now);

struct cross_wish {
	bool creates;                /* the child is made, in: */
	struct replica_id container; /* else it is there, and its container is known */
	struct str type;
	struct replica_id child;
	struct str name;
};

enum { CROSS_ASKED_FOR = 0, CROSS_NOTHING_TO_ASK = 1 };

/* A child is to have this name. CROSS_ASKED_FOR: answer() says whether it may, then cross_children_over() is to be said;
 * CROSS_NOTHING_TO_ASK: it is none of a container, or has the name. ERR_CONFLICT: another site has its name, `at`, and has to be asked, or (0) this site is being
 * withdrawn from the container; ERR_UNAVAILABLE: it is being renamed; ERR_NOT_FOUND: this site does not know the container; ERR_INVALID, ERR_LIMIT. */
int cross_children_claim(struct cross_children *children, const struct cross_wish *wish, uint64_t ticket,
                         struct replica_now now, site_id *at, struct err *err);
/* What was granted is in the hands of the struct replica, or will never be. */
void cross_children_over(struct cross_children *children, struct replica_id child);
/* The service of this site has accepted a request that gives the child this name. */
void cross_children_named(struct cross_children *children, struct replica_id child, struct str name,
                          struct replica_now now);
/* Is there a row of it, as of each child of a container that is known here? Only then its name need be looked for. */
bool cross_children_has(struct cross_children *children, struct replica_id child);

/* The container of which a replicant is a child, as far as this site knows. */
bool cross_children_container(struct cross_children *children, struct replica_id child, struct replica_id *container);

void cross_children_receive(struct cross_children *children, site_id from, struct str message, struct replica_now now);
/* Sites were removed from the mesh. */
void cross_children_site_removed(struct cross_children *children, site_id site, struct replica_now now);

/* The next list of a container, if it is this site's to make: with members that have their copy of it, without those that have left it, or the mesh. To be called
 * when something of its members has changed, and at a start. */
void cross_children_follow(struct cross_children *children, const struct replica_view *container,
                           struct replica_now now);
/* This site is to leave the container. True: as far as names are concerned it may, now (replica_let_go()). Else to be asked again. */
bool cross_children_may_leave(struct cross_children *children, const struct replica_view *container,
                              struct replica_now now);

/* A child whose name this site has. ERR_NOT_FOUND. Slices live until the next call. */
int cross_children_look(struct cross_children *children, struct replica_id child, struct cross_claim_view *view);

#endif
