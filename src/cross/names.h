/* Names: a child's name is unique over all sites of its container, whoever makes children at the same moment, and whoever crashes.
 *
 * A struct cross_names is the part of one agent that has the containers of which its site is one. The first site of a container is its
 * prime, and has the table of names: (container, type, name) -> (child, site). It is fed what its host asks and what other sites say, and the
 * time. As in replica.h, a host performs nothing of what it is asked (send, answer, lost) before all rows put so far are durable; if a commit
 * fails it drops what was asked, and makes a new struct cross_names from what is on disk.
 *
 * One child, made at a site:
 *   cross_names_claim()    its intent is put; the prime is asked, which may be this site itself
 *   at the prime           the name is free: an entry is put, and it says `granted`. Taken: `refused`, with who has it
 *   answer()               granted: the host makes the child, and says what became of it:
 *   cross_names_kept()     it is there. The prime is told, until it has noted it. Then all is quiet
 *   cross_names_release()  it could not be made, or was deleted: the prime is told until it has freed the name
 *
 * What goes wrong:
 *   - messages are lost, doubled, late: each is about one state of one claim, and said again until it is answered. A claim is known by its
 *     stamp, an entry by a number drawn when it is made: what was said of an earlier one of the same name and child does no harm. Whoever is
 *     told of a claim that it does not have says that it is gone
 *   - the prime does not answer within wait_us. `strict`: unavailable, and the claim is gone. `optimistic`: granted, but unchecked; it is
 *     settled when the prime is there. A name that was checked is never taken away; of two unchecked ones the earlier keeps it, and of the
 *     later the host is told by lost(). Nothing is deleted here: the child stays, marked, until somebody renames or deletes it
 *   - the maker crashes. An intent that it finds when it starts is gone; of what was granted it asks its host (fate()). Of an entry that nobody has
 *     confirmed the prime asks its maker again and again, ever more rarely, and never guesses
 *   - the prime crashes: its entries are rows, durable before they were told
 *   - the prime leaves, or is removed: the next site is prime, in a later term. It grants nothing until every site of the container has
 *     moved to that term, which means that it takes no grant of an earlier one any more, and has told all that it holds. While one of them is
 *     away that takes until it is back, or removed. A site that is new is granted nothing until all others know of it
 *   - the prime is to leave while it is well: it goes on granting until all others have said that they have its list (cross_names_may_leave()), so that
 *     whoever is next begins where it ended; and that none of them is away then, so that names are granted again in a moment
 *
 * What the host has to see to: the lists of a container have one line of descent (cross_container_add() and _drop() make the next of the last),
 * so two lists of the same term are the same. Changes made by the prime, or the next one once the prime has left or is removed, are that, if a prime that
 * leaves does so only when cross_names_may_leave(). It is enough to tell one site: others learn of later terms by messages.
 *
 * docs/protocol/cross.md has it to the byte, docs/decisions/0018 why it is so.
 */
#ifndef CROSS_NAMES_H
#define CROSS_NAMES_H

#include "replica/replica.h"

enum cross_table {
	CROSS_CONTAINERS, /* container: its sites */
	CROSS_CLAIMS,     /* container, type, name, child: what this site has asked for, and has */
	CROSS_NAMES,      /* container, type, name: who has it; at the prime */
	CROSS_RIVALS, /* container, type, name, child: who wants it, or has to be told that it is another's; at the prime */
	CROSS_META,   /* the clock */
	CROSS_CHILDREN, /* child: its container and name; of children.h */
	CROSS_TABLES,
};

/* A name that a child has, or is to have. */
struct cross_claim {
	struct replica_id container;
	struct str type; /* at most LIMIT_REPLICA_NAME_BYTES, both */
	struct str name; /* not empty */
	struct replica_id child;
};

/* The sites of a container. The first one is its prime. */
struct cross_container {
	uint64_t term;  /* of this list: a later one has a higher term */
	uint64_t since; /* the term in which the prime became prime */
	bool optimistic;
	uint32_t count;
	struct {
		site_id site;
		uint64_t joined; /* the term in which it came */
	} sites[LIMIT_REPLICA_MEMBERS];
};

/* The list that a container begins with; and the next one of a list. ERR_CONFLICT: it is there; ERR_NOT_FOUND: it is not; ERR_LIMIT;
 * ERR_INVALID: it is the last one. */
void cross_container_make(struct cross_container *container, const site_id *sites, uint32_t count, bool optimistic);
int cross_container_add(struct cross_container *container, site_id site, struct err *err);
int cross_container_drop(struct cross_container *container, site_id site, struct err *err);

enum cross_fate {
	CROSS_EXISTS,  /* the child is there, and has this name */
	CROSS_ABSENT,  /* it does not, and nothing is under way that might change it */
	CROSS_UNKNOWN, /* nobody knows yet: ask later */
};

struct cross_answer {
	uint64_t ticket;
	int code;       /* 0: granted. ERR_CONFLICT: another child has it. ERR_UNAVAILABLE: the prime does not answer */
	bool unchecked; /* granted, but whether the name is free is to be seen */
	struct replica_id holder; /* ERR_CONFLICT: who has it */
	site_id holder_site;
};

/* A child whose name turned out to be another's. */
struct cross_lost {
	struct cross_claim claim;
	struct replica_id holder;
	site_id holder_site;
};

struct cross_names_host {
	void *context;
	/* Rows; as in struct replica_host. */
	int (*get)(void *context, enum cross_table table, struct str key, struct buf *row);
	void (*put)(void *context, enum cross_table table, struct str key, struct str row);
	void (*remove)(void *context, enum cross_table table, struct str key);
	int (*scan)(void *context, enum cross_table table, struct str prefix,
	            bool (*each)(void *each_context, struct str key, struct str row), void *each_context);
	/* Held back until what was put is durable. Slices live until the call returns. None of these may call back in. */
	void (*send)(void *context, site_id to, struct str message); /* at most LIMIT_CROSS_MESSAGE_BYTES */
	void (*answer)(void *context, const struct cross_answer *answer);
	void (*lost)(void *context, const struct cross_lost *lost); /* told again at each start, while it is so */
	/* At once. What became of a claim that was granted: asked when this site starts, of each, and of those unknown again. */
	enum cross_fate (*fate)(void *context, const struct cross_claim *claim);
	uint64_t (*draw)(void *context); /* a random number */
	/* NULL, or: does this site claim all names that it has to, with this list? Asked before it says that it is ready. */
	bool (*has_claimed)(void *context, struct replica_id container, const struct cross_container *list);
};

struct cross_names_options {
	site_id self;
	struct hash_key hash_key;
	uint64_t wait_us; /* for the prime's word */
	uint64_t retry_least_us;
	uint64_t retry_most_us;
};

struct cross_names_options cross_names_options_default(void);

struct cross_names;

/* Starts from the rows. */
int cross_names_new(struct cross_names **out, const struct cross_names_options *options,
                    const struct cross_names_host *host, struct replica_now now, struct err *err);
void cross_names_free(struct cross_names *names);

/* The sites of a container, or a later list of them. One that is not later is ignored. A list without this site: all that it had of
 * the container is dropped. */
void cross_names_set(struct cross_names *names, struct replica_id container, const struct cross_container *list,
                     struct replica_now now);
/* False: this site knows nothing of it. */
bool cross_names_get(const struct cross_names *names, struct replica_id container, struct cross_container *list);
/* Calls for each, until `each` returns false. None may change meanwhile. */
void cross_names_containers(const struct cross_names *names,
                            bool (*each)(void *context, struct replica_id id, const struct cross_container *list),
                            void *context);
/* This site is to leave the container. True: it may do so now, and is to be forgotten in the same commit: it claims nothing there, and if it is the prime all
 * others are known to have the very list that it has. Else they are asked, from now on: ask again later. Of a container that is not known here: true. */
bool cross_names_may_leave(struct cross_names *names, struct replica_id container, struct replica_now now);
/* The container is deleted, or this site has left it. */
void cross_names_forget(struct cross_names *names, struct replica_id container, struct replica_now now);

/* A child is to be made with this name, or (instead_of not "") to be renamed from that one, which is released once the new one
 * is kept. 0: it is answered, once, by host->answer(). Else not: ERR_NOT_FOUND: this site is not one of the container; ERR_CONFLICT: the same child has or asks for it
 * already; ERR_INVALID, ERR_LIMIT. */
int cross_names_claim(struct cross_names *names, const struct cross_claim *claim, struct str instead_of,
                      uint64_t ticket, struct replica_now now, struct err *err);

/* A child is there that was made before its container was one of several sites, or at another site, which is not in the list any more:
 * its name is claimed, unchecked. If another has it, lost() says so. Several sites may do so for one child. */
int cross_names_adopt(struct cross_names *names, const struct cross_claim *claim, struct replica_now now,
                      struct err *err);

/* What became of a claim that was granted. Saying it twice does no harm. */
void cross_names_kept(struct cross_names *names, const struct cross_claim *claim, struct replica_now now);
void cross_names_release(struct cross_names *names, const struct cross_claim *claim, struct replica_now now);

/* A site was removed from the mesh. Its names are free when the container's list is without it, and all others have said that they do not hold the child. */
void cross_names_site_removed(struct cross_names *names, site_id site, struct replica_now now);

void cross_names_receive(struct cross_names *names, site_id from, struct str message, struct replica_now now);
uint64_t cross_names_due(const struct cross_names *names);
void cross_names_tick(struct cross_names *names, struct replica_now now);

/* ---- To look at ----------------------------------------------------------------------------------------------------- */

enum cross_claim_state {
	CROSS_ASKED,   /* the prime has not said anything */
	CROSS_GRANTED, /* the host is making the child */
	CROSS_KEPT,    /* the child is there */
	CROSS_GONE,    /* the prime has to be told */
	CROSS_LOST,    /* the child is there, but the name is another's */
};

struct cross_claim_view {
	struct cross_claim claim;
	enum cross_claim_state state;
	bool unchecked; /* it was accepted without asking the prime */
	bool settled;   /* the present prime has it in its table */
	uint64_t stamp;
	struct replica_id holder; /* of CROSS_LOST */
	site_id holder_site;
};

/* Has this site such a claim, in any state? One that is gone is there until the prime has freed the name. */
bool cross_names_has(struct cross_names *names, const struct cross_claim *claim);

/* Calls for each claim of this site, of one container or (NULL) all, until `each` returns false. */
void cross_names_each(struct cross_names *names, const struct replica_id *container,
                      bool (*each)(void *context, const struct cross_claim_view *view), void *context);

struct cross_entry_view {
	struct replica_id child;
	site_id site;
	bool kept; /* its maker has said that it is there */
};

/* At the prime: who has a name. ERR_NOT_FOUND. */
int cross_names_entry(struct cross_names *names, struct replica_id container, struct str type, struct str name,
                      struct cross_entry_view *view);

struct cross_names_counters {
	uint64_t claimed, granted, refused, unavailable, unchecked, lost, freed;
	uint64_t messages_sent, messages_dropped;
	uint64_t damaged; /* rows met that make no sense */
	uint64_t active;  /* claims, entries and containers on which something is to be said */
};

struct cross_names_counters cross_names_counters(const struct cross_names *names);

#endif
