/* Which route answers, and what it takes. */
#ifndef SAMPLE_ROUTING_H
#define SAMPLE_ROUTING_H

#include "server.h"

/* What a path says besides which route it is. For the caller to free; NULL: it does not say. */
struct routing_found {
	char *id;      /* what stands for {id} */
	char *project; /* below which one the path is */
};

/*
 * The route of a service, or of those that every service has, for a method and a path. NULL when there is none:
 * `*refusal` is 404, or 405 with Allow.
 */
const struct route *routing_find(const struct route *routes, const char *method, const char *path,
                                 struct routing_found *found, struct reply *refusal);

/* Whether the route takes a JSON body of this content type (NULL: not said). If not, `*refusal` is 415. */
bool routing_accepts(const struct route *route, const char *content_type, struct reply *refusal);

/* What every service answers (whoami.c). */
extern const struct route common_routes[];

#endif
