/* What a create requires, on its way to where it is required (bring.c). */
#ifndef PROXY_BRING_H
#define PROXY_BRING_H

#include "engine/bring.h"
#include "relation/relation.h"

struct proxy_exchange;

struct proxy_need {
	const struct glue_type *type;
	struct str id;
	site_id sites[LIMIT_REPLICA_MEMBERS];
	uint32_t sites_count;
};

struct proxy_needs {
	struct proxy_need list[LIMIT_ENGINE_BROUGHT];
	uint32_t count;
	bool more; /* than there can be */
	const struct glue_operation *operation;
	struct http_head *head;                        /* of the request, kept */
	void (*then)(struct proxy_exchange *exchange); /* all are on their way, or there */
	bool elsewhere;                                /* it does not run at this site */
	int code;
	char text[LIMIT_ERROR_TEXT_BYTES];
};

/* For relation_find_needs(): the context is the exchange. */
void proxy_need_note(void *context, const struct relation_need *need);
/* What would be brought, for who asks for the plan. */
void proxy_put_needs(const struct proxy_exchange *exchange, struct buf *out);
/* The head of a request says that its body is so long. */
void proxy_set_length(struct proxy_exchange *exchange, struct http_head *head, size_t length);
/* -1: the exchange is pending, or answered. */
int proxy_bring(struct proxy_exchange *exchange);

#endif
