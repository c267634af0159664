/* Stacks of the compute service: see stack.c. */
#ifndef SAMPLE_STACK_H
#define SAMPLE_STACK_H

#include "server.h"

struct reply stack_list(struct request *request);
struct reply stack_create(struct request *request);
struct reply stack_get(struct request *request);
struct reply stack_patch(struct request *request);
struct reply stack_delete(struct request *request);

/* Deletes one with its parts. That it is gone already is as good. */
bool stack_remove(struct request *request, const char *id, struct reply *failure);

#endif
