/* Inside the proxy room: reads with `&`, whose answers become one. */
#ifndef PROXY_GATHER_H
#define PROXY_GATHER_H

#include "proxy/proxy_int.h"

#include "glue/gather.h"

/* What one site has to say. */
struct proxy_part {
	struct proxy_candidate *candidate;
	struct proxy_attempt *attempt; /* NULL: it was not asked */
	bool headed;
	bool over;          /* read to its end, or as far as it will be */
	bool told;          /* that it is missing */
	const char *reason; /* why it is; NULL: see the attempt, and the merger */
	bool more;          /* a link to another page */
	bool own;           /* of the agent there, not of its service */
	unsigned status;    /* of its answer, */
	struct str why;     /* its reason phrase, */
	struct str fields;  /* and what of its fields may be passed on */
	struct str content_type;
	struct str coding;
	struct buf body;              /* of what is no list */
	struct glue_splicer *splicer; /* of the local one */
	struct buf spliced;
};

struct proxy_gather {
	struct proxy_part *parts; /* in the order of the scope */
	uint32_t count;
	bool lists;    /* they are put together; otherwise they are shown side by side */
	bool given;    /* the sites are not the user's choice: see gather_sites.c */
	bool launched; /* all were asked */
	bool decided;  /* all heads were there */
	bool shows_sites;
	bool trailers; /* the client takes them */
	size_t body_bytes;
	struct str *names;
	struct glue_gather *merger;
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
/* The head of an attempt's answer, what follows it, or its failure. */
void proxy_gather_head(struct proxy_attempt *attempt, struct http_head *head);
void proxy_gather_changed(struct proxy_attempt *attempt);
void proxy_gather_failed(struct proxy_attempt *attempt);
/* The next bytes for the client are on their way. False: there are none now. */
bool proxy_gather_next(struct proxy_exchange *exchange);
void proxy_gather_free(struct proxy_exchange *exchange);
/* Why a part is missing, or not whole; NULL: it is not. */
const char *proxy_part_missing(const struct proxy_exchange *exchange, uint32_t number, struct str *details);

/* gather_answer.c: what is told of it. */
void proxy_gather_respond(struct proxy_exchange *exchange, const struct proxy_part *shape);
void proxy_gather_respond_keyed(struct proxy_exchange *exchange);
void proxy_gather_refuse(struct proxy_exchange *exchange);
/* `Cheops-Partial: …`, where a part is missing of which that was not told yet. */
bool proxy_put_partial(struct proxy_exchange *exchange, struct buf *out);

#endif
