/* Of children.c and heirs.c. */
#ifndef CROSS_CHILDREN_INT_H
#define CROSS_CHILDREN_INT_H

#include "cross/children.h"
#include "cross/names_int.h"

enum { CHILD_VERSION = 2, CHILD_CLAIMED = 1 };

struct child {
	struct replica_id container;
	site_id maker;
	bool claimed; /* its name, by this site. Else the row says what it is called here, in case that the maker goes */
	struct str type, name, next; /* slices of children->row */
};

/* A name that was asked for, until what it is for is in the hands of the struct replica. */
struct pending {
	struct pending *next;
	struct replica_id child;
	uint64_t ticket;
};

struct cross_children {
	struct cross_names *names;
	struct replica *replica;
	struct cross_children_host host;
	site_id self;
	struct pending *pending;
	struct buf row;   /* that was read last */
	struct buf noted; /* ids, to be looked at */
	bool containers;  /* there are some, or were */
	struct replica_now now;
};

bool child_parse(struct str row, struct child *child);
/* Slices live until the next call. */
bool child_get(struct cross_children *children, struct replica_id id, struct child *child);
/* The slices may be those of the row that was read. */
void child_put(struct cross_children *children, struct replica_id id, const struct child *child);
struct cross_claim child_claim(const struct child *child, struct replica_id id, struct str name);
bool list_has(const struct cross_container *list, site_id site);

/* ---- Children whose maker is gone (heirs.c) ---------------------------------------------------------------------------------- */

/* A child that another site made: from now on it has a row. */
void heirs_learn(struct cross_children *children, const struct replica_view *view);
/* This site's service calls it so now. */
void heirs_named(struct cross_children *children, struct replica_id id, struct str name);
/* Claims what has to be, if it can be: one, or all of a container. */
void heirs_claim_one(struct cross_children *children, struct replica_id id);
void heirs_claim(struct cross_children *children, struct replica_id container);
bool heirs_have_claimed(struct cross_children *children, struct replica_id container,
                        const struct cross_container *list);
/* The container is gone from here. */
void heirs_forget(struct cross_children *children, struct replica_id container);
/* Has it a name, or is about to, that is not claimed yet? Then it is not to be changed. */
bool heirs_wait(struct cross_children *children, struct replica_id id);
/* Of those that hold it this one renames it. */
bool heirs_is_prime(struct cross_children *children, struct replica_id id);

#endif
