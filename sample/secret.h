/* Secrets of the image service: see secret.c. */
#ifndef SAMPLE_SECRET_H
#define SAMPLE_SECRET_H

#include "server.h"
#include "store.h"

/* In the order of struct route, for image.c. They expect the secrets' store in secrets_of(request). */
struct reply secret_list(struct request *request);
struct reply secret_create(struct request *request);
struct reply secret_get(struct request *request);
struct reply secret_put(struct request *request);
struct reply secret_patch(struct request *request);
struct reply secret_delete(struct request *request);

/* image.c has it. */
struct store *secrets_of(const struct request *request);

#endif
