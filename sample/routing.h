/* Which route answers, and what it takes. */
#ifndef SAMPLE_ROUTING_H
#define SAMPLE_ROUTING_H

#include "server.h"

/*
 * The route of a service, or of those that every service has, for a method and a path. `*id` becomes what stands for {id},
 * for the caller to free. NULL when there is none: `*refusal` is 404, or 405 with Allow.
 */
const struct route *routing_find(const struct route *routes, const char *method, const char *path, char **id,
                                 struct reply *refusal);

/* Whether the route takes a JSON body of this content type (NULL: not said). If not, `*refusal` is 415. */
bool routing_accepts(const struct route *route, const char *content_type, struct reply *refusal);

/* What every service answers (whoami.c). */
extern const struct route common_routes[];

#endif
