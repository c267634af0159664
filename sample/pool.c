/*
 * Pools of addresses: a name that nobody else has, a size, notes. What can be done to one is of each kind that there is:
 * PUT sets all of it, PATCH what it names, `grow` changes the size by so much, `notes` appends. So who puts sites together
 * can try on them what becomes of changes that were made apart.
 */
#include "pool.h"

#include <errno.h>
#include <string.h>

#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "record.h"

static bool is_size(const json_t *value)
{
	return json_is_integer(value) && json_integer_value(value) >= -LIMIT_POOL_SIZE &&
	       json_integer_value(value) <= LIMIT_POOL_SIZE;
}

/* The other pool of this name; NULL if there is none. */
static char *same_name(struct store *store, const json_t *record)
{
	json_t *pools = store_list(store);
	size_t i;
	json_t *pool;
	char *other = NULL;
	json_array_foreach(pools, i, pool)
	{
		if (other == NULL && json_equal(json_object_get(pool, "name"), json_object_get(record, "name")) &&
		    !json_equal(json_object_get(pool, "id"), json_object_get(record, "id")))
			other = text_of("%s", json_string_value(json_object_get(pool, "id")));
	}
	json_decref(pools);
	return other;
}

static bool accepts(struct store *store, const json_t *record, struct reply *refusal)
{
	const char *name = field_text(record, "name", LIMIT_NAME_BYTES, refusal);
	if (name == NULL)
		return false;
	const json_t *notes = json_object_get(record, "notes");
	if (!is_size(json_object_get(record, "size")))
		*refusal = reply_error(400, "\"size\" must be a number of at most %d", LIMIT_POOL_SIZE);
	else if (!json_is_array(notes) || json_array_size(notes) > LIMIT_POOL_NOTES)
		*refusal = reply_error(400, "\"notes\" must be a list of at most %d", LIMIT_POOL_NOTES);
	else {
		char *other = same_name(store, record);
		if (other == NULL)
			return true;
		*refusal = reply_error(409, "pool %s has the name %s", other, name);
		free(other);
	}
	return false;
}

static const char *const own_members[] = {"id", "created", LOGIN_OWNER, NULL};

static const struct record_kind kind = {
	.thing = "pool", .collection = "pools", .own_members = own_members, .accepts = accepts};

struct reply pool_list(struct request *request)
{
	const char *name = request_query(request, "name");
	if (name == NULL)
		return record_list(&kind, pools_of(request));
	json_t *pools = store_list(pools_of(request));
	json_t *named = need(json_array());
	size_t i;
	json_t *pool;
	json_array_foreach(pools, i, pool)
	{
		if (strcmp(json_string_value(json_object_get(pool, "name")), name) == 0)
			json_array_append(named, pool);
	}
	json_decref(pools);
	return reply_json(200, json_pack("{s:o}", "pools", named));
}

/* What is not said of a pool, or not any more. */
static void add_defaults(json_t *body)
{
	if (json_object_get(body, "size") == NULL)
		json_object_set_new(body, "size", need(json_integer(0)));
	if (json_object_get(body, "notes") == NULL)
		json_object_set_new(body, "notes", need(json_array()));
}

struct reply pool_create(struct request *request)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	add_defaults(request->json);
	return record_create(&kind, pools_of(request), request, json_pack("{s:s, s:s}", "id", id, "created", created));
}

struct reply pool_get(struct request *request)
{
	return record_get(&kind, pools_of(request), request->id);
}

struct reply pool_put(struct request *request)
{
	add_defaults(request->json);
	return record_change(&kind, pools_of(request), request, record_replace);
}

struct reply pool_patch(struct request *request)
{
	return record_change(&kind, pools_of(request), request, merge_patch);
}

struct reply pool_delete(struct request *request)
{
	store_lock(pools_of(request));
	int status = store_remove(pools_of(request), request->id);
	store_unlock(pools_of(request));
	if (status == -ENOENT)
		return record_missing(&kind, request->id);
	return status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the pool");
}

static void grow(json_t *record, json_t *body)
{
	json_int_t size = json_integer_value(json_object_get(record, "size"));
	json_object_set_new(record, "size", need(json_integer(size + json_integer_value(json_object_get(body, "by")))));
}

struct reply pool_grow(struct request *request)
{
	if (!is_size(json_object_get(request->json, "by")))
		return reply_error(400, "\"by\" must be a number of at most %d", LIMIT_POOL_SIZE);
	return record_change(&kind, pools_of(request), request, grow);
}

static void append_note(json_t *record, json_t *body)
{
	json_array_append(json_object_get(record, "notes"), json_object_get(body, "text"));
}

struct reply pool_note(struct request *request)
{
	struct reply refusal;
	if (field_text(request->json, "text", LIMIT_NAME_BYTES, &refusal) == NULL)
		return refusal;
	return record_change(&kind, pools_of(request), request, append_note);
}
