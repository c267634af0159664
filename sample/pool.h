/* Pools of the network service: see pool.c. */
#ifndef SAMPLE_POOL_H
#define SAMPLE_POOL_H

#include "server.h"

/* In the order of struct route, for network.c. They expect the pools' store in pools_of(request). */
struct reply pool_list(struct request *request);
struct reply pool_create(struct request *request);
struct reply pool_get(struct request *request);
struct reply pool_put(struct request *request);
struct reply pool_patch(struct request *request);
struct reply pool_delete(struct request *request);
struct reply pool_grow(struct request *request);
struct reply pool_note(struct request *request);
struct reply pool_allocate(struct request *request);
struct reply pool_release(struct request *request);

/* network.c has it. */
struct store *pools_of(const struct request *request);

#endif
