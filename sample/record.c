#include "record.h"

#include <errno.h>
#include <string.h>

#include "fields.h"
#include "limits.h"
#include "login.h"
#include "memory.h"

/* ---- looking ------------------------------------------------------------------------------------------------------ */

struct reply record_missing(const struct record_kind *kind, const struct request *request)
{
	if (request->project != NULL)
		return reply_error(404, "no %s %s in project %s", kind->thing, request->id, request->project);
	return reply_error(404, "no %s %s", kind->thing, request->id);
}

static bool is_member(const json_t *record, const char *name, const char *value)
{
	const char *text = json_string_value(json_object_get(record, name));
	return strcmp(text == NULL ? "" : text, value) == 0;
}

json_t *record_find(struct store *store, const struct request *request)
{
	json_t *record = store_get(store, request->id);
	if (record == NULL || request->project == NULL || is_member(record, "project", request->project))
		return record;
	json_decref(record);
	return NULL;
}

json_t *record_select(struct store *store, const struct request *request)
{
	const char *name = request_query(request, "name");
	const char *project = request->project != NULL ? request->project : request_query(request, "project");
	json_t *all = store_list(store);
	if (name == NULL && project == NULL)
		return all;
	json_t *selected = need(json_array());
	size_t i;
	json_t *record;
	json_array_foreach(all, i, record)
	{
		if ((name == NULL || is_member(record, "name", name)) &&
		    (project == NULL || is_member(record, "project", project)))
			json_array_append(selected, record);
	}
	json_decref(all);
	return selected;
}

struct reply record_list(const struct record_kind *kind, struct store *store, const struct request *request)
{
	return reply_json(200, json_pack("{s:o}", kind->collection, record_select(store, request)));
}

struct reply record_get(const struct record_kind *kind, struct store *store, const struct request *request)
{
	json_t *record = record_find(store, request);
	return record == NULL ? record_missing(kind, request) : reply_json(200, record);
}

bool record_quota_left(struct store *store, const struct request *request, const char *collection, size_t more,
                       struct reply *refusal)
{
	unsigned quota = request->options->quota;
	if (quota == 0 || store_count(store) + more <= quota)
		return true;
	*refusal = reply_error(403, "the quota of %u %s is used up", quota, collection);
	return false;
}

bool record_same_member(const json_t *left, const json_t *right, const char *name)
{
	const json_t *a = json_object_get(left, name);
	const json_t *b = json_object_get(right, name);
	return a == NULL || b == NULL ? a == b : json_equal(a, b) != 0;
}

bool record_name_is_free(const char *thing, struct store *store, const json_t *record, struct reply *refusal)
{
	json_t *all = store_list(store);
	bool free_so_far = true;
	size_t i;
	json_t *other;
	json_array_foreach(all, i, other)
	{
		if (!free_so_far || !record_same_member(other, record, "name") ||
		    !record_same_member(other, record, "project") || record_same_member(other, record, "id"))
			continue;
		free_so_far = false;
		*refusal = reply_error(409, "%s %s has the name %s", thing, json_string_value(json_object_get(other, "id")),
		                       json_string_value(json_object_get(record, "name")));
	}
	json_decref(all);
	return free_so_far;
}

/* ---- changing ----------------------------------------------------------------------------------------------------- */

/* Makes `own` the record's values of the service's own members. */
static void set_own_members(const struct record_kind *kind, json_t *record, const json_t *own)
{
	for (const char *const *name = kind->own_members; *name != NULL; name++) {
		json_t *value = json_object_get(own, *name);
		if (value != NULL)
			json_object_set(record, *name, value);
		else
			json_object_del(record, *name);
	}
}

static struct reply disk_error(const struct record_kind *kind, const char *verb, int status)
{
	char *what = text_of("%s the %s", verb, kind->thing);
	struct reply refusal = reply_disk_error(status, what);
	free(what);
	return refusal;
}

struct reply record_created(const struct request *request, const char *collection, json_t *record)
{
	if (request->project == NULL)
		return reply_created(collection, record);
	char *below = text_of("projects/%s/%s", request->project, collection);
	struct reply reply = reply_created(below, record);
	free(below);
	return reply;
}

/* Stores what became of a record, if it may be so. If not, `*refusal` is the answer. The store is locked. */
static bool keep(const struct record_kind *kind, struct store *store, json_t *record, struct reply *refusal)
{
	if (kind->complete != NULL)
		kind->complete(record);
	if (!kind->accepts(store, record, refusal))
		return false;
	int status = store_put(store, record);
	if (status != 0)
		*refusal = disk_error(kind, "store", status);
	return status == 0;
}

struct reply record_create(const struct record_kind *kind, struct store *store, const struct request *request,
                           json_t *own)
{
	if (request->user != NULL)
		json_object_set_new(own, LOGIN_OWNER, need(json_string(request->user)));
	if (request->project != NULL)
		json_object_set_new(own, "project", need(json_string(request->project)));
	/* In this order, so that an answer begins with what is most looked for. */
	json_t *record = need(json_copy(own));
	json_object_update(record, request->json);
	set_own_members(kind, record, own);
	json_decref(own);
	struct reply reply;
	store_lock(store);
	bool kept = record_quota_left(store, request, kind->collection, 1, &reply) && keep(kind, store, record, &reply);
	store_unlock(store);
	if (kept)
		return record_created(request, kind->collection, record);
	json_decref(record);
	return reply;
}

struct reply record_change(const struct record_kind *kind, struct store *store, const struct request *request,
                           void (*change)(json_t *record, json_t *body))
{
	store_lock(store);
	json_t *old = record_find(store, request);
	struct reply reply;
	if (old == NULL) {
		reply = record_missing(kind, request);
	} else {
		json_t *record = need(json_deep_copy(old));
		change(record, request->json);
		set_own_members(kind, record, old);
		if (keep(kind, store, record, &reply))
			reply = reply_json(200, record);
		else
			json_decref(record);
	}
	store_unlock(store);
	json_decref(old);
	return reply;
}

void record_replace(json_t *record, json_t *body)
{
	json_t *id = json_incref(json_object_get(record, "id"));
	json_object_clear(record);
	json_object_set_new(record, "id", id);
	json_object_update(record, body);
}

struct reply record_act(const struct record_kind *kind, struct store *store, const struct request *request,
                        bool (*act)(json_t *record, const struct request *request, struct reply *refusal))
{
	store_lock(store);
	json_t *record = record_find(store, request);
	struct reply reply;
	if (record == NULL)
		reply = record_missing(kind, request);
	else if (act(record, request, &reply) && keep(kind, store, record, &reply))
		reply = reply_json(200, record);
	else
		json_decref(record);
	store_unlock(store);
	return reply;
}

struct reply record_delete(const struct record_kind *kind, struct store *store, const struct request *request)
{
	store_lock(store);
	json_t *record = record_find(store, request);
	int status = record == NULL ? -ENOENT : store_remove(store, request->id);
	store_unlock(store);
	json_decref(record);
	if (status == -ENOENT)
		return record_missing(kind, request);
	return status == 0 ? reply_empty(204) : disk_error(kind, "delete", status);
}
