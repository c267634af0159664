/* What images and pools have in common: records that clients describe, replace and patch, and of which some members are the
 * service's own. */
#ifndef SAMPLE_RECORD_H
#define SAMPLE_RECORD_H

#include "server.h"
#include "store.h"

struct record_kind {
	const char *thing;              /* "image" */
	const char *collection;         /* "images", as in the path */
	const char *const *own_members; /* what a client says of them is ignored; the last one is NULL */
	/* Whether what became of a record may be kept; if not, `*refusal` is 400 or 409. The store is locked. */
	bool (*accepts)(struct store *store, const json_t *record, struct reply *refusal);
};

struct reply record_missing(const struct record_kind *kind, const char *id);

struct reply record_list(const struct record_kind *kind, struct store *store);
struct reply record_get(const struct record_kind *kind, struct store *store, const char *id);

/* 201: the body with the members of `own` in front, which this takes over. 403 where the quota is used up. */
struct reply record_create(const struct record_kind *kind, struct store *store, const struct request *request,
                           json_t *own);

/* `change` makes of a copy of the record what it is to become. */
struct reply record_change(const struct record_kind *kind, struct store *store, const struct request *request,
                           void (*change)(json_t *record, json_t *body));
/* For PUT; for PATCH it is merge_patch(). */
void record_replace(json_t *record, json_t *body);

/* 403 in `*refusal` once there are as many as --quota says. */
bool record_quota_left(struct store *store, const struct request *request, const char *collection,
                       struct reply *refusal);

#endif
