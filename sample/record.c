#include "record.h"

#include "fields.h"
#include "limits.h"
#include "login.h"
#include "memory.h"

struct reply record_missing(const struct record_kind *kind, const char *id)
{
	return reply_error(404, "no %s %s", kind->thing, id);
}

struct reply record_list(const struct record_kind *kind, struct store *store)
{
	return reply_json(200, json_pack("{s:o}", kind->collection, store_list(store)));
}

struct reply record_get(const struct record_kind *kind, struct store *store, const char *id)
{
	json_t *record = store_get(store, id);
	return record == NULL ? record_missing(kind, id) : reply_json(200, record);
}

bool record_quota_left(struct store *store, const struct request *request, const char *collection,
                       struct reply *refusal)
{
	unsigned quota = request->options->quota;
	if (quota == 0 || store_count(store) < quota)
		return true;
	*refusal = reply_error(403, "the quota of %u %s is used up", quota, collection);
	return false;
}

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

/* Stores what became of a record, if it may be so, and answers with it. Consumes it. The store is locked. */
static struct reply keep(const struct record_kind *kind, struct store *store, json_t *record, bool is_new)
{
	struct reply refusal;
	if (!kind->accepts(store, record, &refusal)) {
		json_decref(record);
		return refusal;
	}
	int status = store_put(store, record);
	if (status == 0)
		return is_new ? reply_created(kind->collection, record) : reply_json(200, record);
	json_decref(record);
	char *what = text_of("store the %s", kind->thing);
	refusal = reply_disk_error(status, what);
	free(what);
	return refusal;
}

struct reply record_create(const struct record_kind *kind, struct store *store, const struct request *request,
                           json_t *own)
{
	if (request->user != NULL)
		json_object_set_new(own, LOGIN_OWNER, need(json_string(request->user)));
	/* In this order, so that an answer begins with what is most looked for. */
	json_t *record = need(json_copy(own));
	json_object_update(record, request->json);
	set_own_members(kind, record, own);
	json_decref(own);
	struct reply reply;
	store_lock(store);
	if (record_quota_left(store, request, kind->collection, &reply))
		reply = keep(kind, store, record, true);
	else
		json_decref(record);
	store_unlock(store);
	return reply;
}

struct reply record_change(const struct record_kind *kind, struct store *store, const struct request *request,
                           void (*change)(json_t *record, json_t *body))
{
	store_lock(store);
	json_t *old = store_get(store, request->id);
	struct reply reply;
	if (old == NULL) {
		reply = record_missing(kind, request->id);
	} else {
		json_t *record = need(json_deep_copy(old));
		change(record, request->json);
		set_own_members(kind, record, old);
		reply = keep(kind, store, record, false);
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
