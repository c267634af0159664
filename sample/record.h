/* What images, pools, volumes... have in common: records that clients describe, replace and patch, and of which some members
 * are the service's own. Some are in a project: then "project" is its id, and the paths below that project show no others. */
#ifndef SAMPLE_RECORD_H
#define SAMPLE_RECORD_H

#include "server.h"
#include "store.h"

struct record_kind {
	const char *thing;              /* "image" */
	const char *collection;         /* "images", as in the path */
	const char *const *own_members; /* what a client says of them is ignored; the last one is NULL */
	/* Makes of what is given what is kept: what was not said, what follows from the rest. NULL: nothing to do. */
	void (*complete)(json_t *record);
	/* Whether what became of a record may be kept; if not, `*refusal` is 400 or 409. The store is locked. */
	bool (*accepts)(struct store *store, const json_t *record, struct reply *refusal);
};

struct reply record_missing(const struct record_kind *kind, const struct request *request);

/* The record that the request is about; NULL if there is none in the request's project. The caller's own. */
json_t *record_find(struct store *store, const struct request *request);

/* Those of a collection that the request is about, in an array: of its project, of those that the query names. */
json_t *record_select(struct store *store, const struct request *request);

struct reply record_list(const struct record_kind *kind, struct store *store, const struct request *request);
struct reply record_get(const struct record_kind *kind, struct store *store, const struct request *request);

/* 201: the body with the members of `own` in front, which this takes over. 403 where the quota is used up. */
struct reply record_create(const struct record_kind *kind, struct store *store, const struct request *request,
                           json_t *own);

/* 201, with where it is: /COLLECTION/ID, below the project that the request is below. Takes over the reference. */
struct reply record_created(const struct request *request, const char *collection, json_t *record);

/* `change` makes of a copy of the record what it is to become. */
struct reply record_change(const struct record_kind *kind, struct store *store, const struct request *request,
                           void (*change)(json_t *record, json_t *body));
/* For PUT; for PATCH it is merge_patch(). */
void record_replace(json_t *record, json_t *body);

/* The same, where the service itself changes it: it may change its own members. False: `*refusal` says why not. */
struct reply record_act(const struct record_kind *kind, struct store *store, const struct request *request,
                        bool (*act)(json_t *record, const struct request *request, struct reply *refusal));

/* 204, or why not. */
struct reply record_delete(const struct record_kind *kind, struct store *store, const struct request *request);

/* That no other of the collection and of the same project, or of none, has its name. If not, `*refusal` is 409. */
bool record_name_is_free(const char *thing, struct store *store, const json_t *record, struct reply *refusal);

/* 403 in `*refusal` if there would be more than --quota says with so many more. */
bool record_quota_left(struct store *store, const struct request *request, const char *collection, size_t more,
                       struct reply *refusal);

/* Whether two members, which may not be there, are the same. */
bool record_same_member(const json_t *left, const json_t *right, const char *name);

#endif
