/* Volumes of the compute service: see volume.c. */
#ifndef SAMPLE_VOLUME_H
#define SAMPLE_VOLUME_H

#include "server.h"
#include "store.h"

struct reply volume_list(struct request *request);
struct reply volume_create(struct request *request);
struct reply volume_get(struct request *request);
struct reply volume_put(struct request *request);
struct reply volume_patch(struct request *request);
struct reply volume_delete(struct request *request);
struct reply volume_attach(struct request *request);
struct reply volume_detach(struct request *request);

/* Takes all volumes off a server: 0 or -errno. The volumes are locked. */
int volume_detach_all(struct store *volumes, const char *server);

/* Deletes one, attached or not. That it is gone already is as good. */
bool volume_remove(struct store *volumes, const char *id, struct reply *failure);

#endif
