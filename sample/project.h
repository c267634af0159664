/* Projects of the compute service: see project.c. */
#ifndef SAMPLE_PROJECT_H
#define SAMPLE_PROJECT_H

#include "server.h"

struct compute;

struct reply project_list(struct request *request);
struct reply project_create(struct request *request);
struct reply project_get(struct request *request);
struct reply project_put(struct request *request);
struct reply project_patch(struct request *request);
struct reply project_delete(struct request *request);

/* Whether there is one of this id; if not, `*refusal` is 404. No project (NULL) is always there. */
bool project_exists(struct compute *compute, const char *id, struct reply *refusal);

/* The same; and from here to project_leave() it stays, so that something can be put into it. */
bool project_enter(struct compute *compute, const char *id, struct reply *refusal);
void project_leave(struct compute *compute, const char *id);

#endif
