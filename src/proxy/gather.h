/* Inside the proxy room: reads with `&`, whose answers become one. */
#ifndef PROXY_GATHER_H
#define PROXY_GATHER_H

#include "proxy/proxy_int.h"

#include "cross/cross.h"
#include "glue/gather.h"

/* What one site has to say. */
struct proxy_part {
	struct proxy_candidate *candidate;
	struct proxy_attempt *attempt; /* NULL: it was not asked */
	bool headed;
	bool over;          /* read to its end, or as far as it will be */
	bool told;          /* that it is missing */
	const char *reason; /* why it is; NULL: see the attempt, and the merger */
	struct str details; /* the same, for people; "": nothing more is known */
	bool more;          /* a link to another page */
	bool own;           /* of the agent there, not of its service */
	unsigned status;    /* of its answer, */
	struct str why;     /* its reason phrase, */
	struct str fields;  /* and what of its fields may be passed on */
	struct str content_type;
	struct str coding;
	struct cross_standing standing; /* of an item that is divided */
	struct buf body;                /* of what is no list */
	struct glue_splicer *splicer;   /* of the local one */
	struct buf spliced;
};

struct proxy_gather {
	struct proxy_part *parts; /* in the order of the scope */
	uint32_t count;
	bool lists;    /* they are put together; otherwise they are shown side by side, */
	bool divided;  /* or are parts of one item (divide.c) */
	bool given;    /* the sites are not the user's choice: see gather_sites.c */
	bool ours;     /* it is the list of this site, the first; of others, what is known here (gather_spread.c) */
	bool launched; /* all were asked */
	bool decided;  /* all heads were there */
	bool shows_sites;
	bool trailers; /* the client takes them */
	size_t body_bytes;
	uint32_t unknown; /* sites of what is divided that nobody knows here */
	uint64_t sites;   /* a digest of all that have parts of it: cross_sites_digest() */
	struct str *names;
	struct str most; /* asks each site for as much of its list as it gives at once; "" */
	struct glue_gather *merger;
	const struct cross_rule *rules; /* for what is divided */
	uint32_t rules_count;
	struct buf out; /* merged, not on its way yet */
};

/* gather.c: a read with `&`. Is it one? Then 0, or it was answered. */
bool proxy_is_gather(const struct proxy_exchange *exchange, const struct scope_step *root);
int proxy_gather_new(struct proxy_exchange *exchange, const struct scope_plan *plan);
/* Of the candidates of the trial; nothing is known of lists yet. */
struct proxy_gather *proxy_gather_of_trial(struct proxy_exchange *exchange);
/* What the request says of the answer; drops what would make parts of it useless. 0, or it was answered. */
int proxy_gather_read(struct proxy_exchange *exchange, struct http_head *head);
void proxy_gather_advance(struct proxy_exchange *exchange);
/* Behind the target of the request to one of them. */
void proxy_gather_put_most(const struct proxy_exchange *exchange, struct buf *out);
/* The head of an attempt's answer, what follows it, or its failure. */
void proxy_gather_head(struct proxy_attempt *attempt, struct http_head *head);
void proxy_gather_changed(struct proxy_attempt *attempt);
void proxy_gather_failed(struct proxy_attempt *attempt);
/* The next bytes for the client are on their way. False: there are none now. */
bool proxy_gather_next(struct proxy_exchange *exchange);
void proxy_gather_free(struct proxy_exchange *exchange);
/* Why a part is missing, or not whole; NULL: it is not. */
const char *proxy_part_missing(const struct proxy_exchange *exchange, uint32_t number, struct str *details);

/* gather_sites.c: starts a read at these sites, as if the scope had said `&` of them, where the scope says nothing of it: for whoever knows
 * that what is asked for is one thing over these sites (a list in a container, a resource that lies elsewhere). This site is one of them
 * only if it is named, and should then be the first: of a list, the shape and the fields are those of the first that answers.
 *   - ids in the path and the query are sent to the others as meta-ids, whatever the user said
 *   - sites that were removed from the mesh are not asked; one that is not known yet, or fails, is told in `Cheops-Partial`
 *   - where the answers cannot be put together (the query asks for a page or an order, an answer without an end, a request with a body) it runs
 *     here alone, as it would have without this call, and `Cheops-Partial` names the others with the reason
 * It refuses nothing: after it, proxy_execute() does the rest. */
void proxy_gather_sites(struct proxy_exchange *exchange, const struct http_head *head, const site_id *sites,
                        uint32_t count);

/* They are not asked, for that reason; it is told with the answer. This site is passed over. */
void proxy_gather_leave_out(struct proxy_exchange *exchange, const struct proxy_candidate *candidates, uint32_t count,
                            const char *reason, struct str details);

/* gather_spread.c: what the merger is to know of cross resources. */
void proxy_gather_policy(struct proxy_exchange *exchange, struct glue_gather_policy *policy);
/* Of a list of this site: its own service failed, or gave something else. Then that is the answer, and it was given. */
bool proxy_gather_own_failed(struct proxy_exchange *exchange);
/* The same, where only its body shows that it is no list. True: it is asked again, alone. */
bool proxy_gather_own_odd(struct proxy_exchange *exchange);

/* divide.c: what one says of its part, an item. */
struct cross_standing proxy_divide_standing(const struct proxy_attempt *attempt, struct str says);
/* All that will come of the parts is there. */
void proxy_divide_respond(struct proxy_exchange *exchange);

/* gather_answer.c: what is told of it. */
void proxy_gather_respond(struct proxy_exchange *exchange, const struct proxy_part *shape);
void proxy_gather_respond_keyed(struct proxy_exchange *exchange);
void proxy_gather_refuse(struct proxy_exchange *exchange);
/* `Cheops-Partial: …`, where a part is missing of which that was not told yet. */
bool proxy_put_partial(struct proxy_exchange *exchange, struct buf *out);

void proxy_gather_prefers(struct proxy_exchange *exchange, const struct http_head *head);

#endif
