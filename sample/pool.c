/*
 * Pools of addresses: a name that nobody else has, a size, hosts, notes. What can be done to one is of each kind that there
 * is: PUT sets all of it, PATCH what it names, `grow` changes the size by so much, `notes` appends. So who puts sites together
 * can try on them what becomes of changes that were made apart.
 *
 * Addresses are taken from it with `allocate`, and given back with `release`; how many are taken is `used`, which is the
 * service's own, and is never more than the size: neither is more given out, nor can the pool be made smaller than that.
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

static json_int_t number_of(const json_t *record, const char *name)
{
	return json_integer_value(json_object_get(record, name));
}

static bool are_hosts(const json_t *hosts)
{
	if (!json_is_array(hosts) || json_array_size(hosts) > LIMIT_POOL_HOSTS)
		return false;
	size_t i;
	json_t *host;
	json_array_foreach(hosts, i, host)
	{
		size_t length = json_string_length(host);
		if (!json_is_string(host) || length == 0 || length > LIMIT_NAME_BYTES)
			return false;
	}
	return true;
}

static bool is_described_well(const json_t *record, struct reply *refusal)
{
	const json_t *notes = json_object_get(record, "notes");
	if (!is_size(json_object_get(record, "size")))
		*refusal = reply_error(400, "\"size\" must be a number of at most %d", LIMIT_POOL_SIZE);
	else if (!json_is_array(notes) || json_array_size(notes) > LIMIT_POOL_NOTES)
		*refusal = reply_error(400, "\"notes\" must be a list of at most %d", LIMIT_POOL_NOTES);
	else if (!are_hosts(json_object_get(record, "hosts")))
		*refusal = reply_error(400, "\"hosts\" must be a list of at most %d strings of 1 to %d bytes", LIMIT_POOL_HOSTS,
		                       LIMIT_NAME_BYTES);
	else
		return true;
	return false;
}

static bool accepts(struct store *store, const json_t *record, struct reply *refusal)
{
	if (field_text(record, "name", LIMIT_NAME_BYTES, refusal) == NULL || !is_described_well(record, refusal))
		return false;
	long long size = number_of(record, "size");
	long long used = number_of(record, "used");
	if (used > 0 && used > size) {
		*refusal = reply_error(409, "%lld of the pool would be used, but its size is %lld", used, size);
		return false;
	}
	return record_name_is_free("pool", store, record, refusal);
}

/* What is not said of a pool, or not any more; and what follows. */
static void complete(json_t *record)
{
	if (json_object_get(record, "size") == NULL)
		json_object_set_new(record, "size", need(json_integer(0)));
	if (json_object_get(record, "notes") == NULL)
		json_object_set_new(record, "notes", need(json_array()));
	if (json_object_get(record, "hosts") == NULL)
		json_object_set_new(record, "hosts", need(json_array()));
	if (json_object_get(record, "used") == NULL)
		json_object_set_new(record, "used", need(json_integer(0)));
	bool full = number_of(record, "used") >= number_of(record, "size");
	json_object_set_new(record, "status", need(json_string(full ? "full" : "available")));
}

static const char *const own_members[] = {"id", "created", "used", "status", LOGIN_OWNER, NULL};

static const struct record_kind kind = {
	.thing = "pool", .collection = "pools", .own_members = own_members, .complete = complete, .accepts = accepts};

struct reply pool_list(struct request *request)
{
	return record_list(&kind, pools_of(request), request);
}

struct reply pool_create(struct request *request)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	return record_create(&kind, pools_of(request), request,
	                     need(json_pack("{s:s, s:s}", "id", id, "created", created)));
}

struct reply pool_get(struct request *request)
{
	return record_get(&kind, pools_of(request), request);
}

struct reply pool_put(struct request *request)
{
	return record_change(&kind, pools_of(request), request, record_replace);
}

struct reply pool_patch(struct request *request)
{
	return record_change(&kind, pools_of(request), request, merge_patch);
}

struct reply pool_delete(struct request *request)
{
	return record_delete(&kind, pools_of(request), request);
}

static void grow(json_t *record, json_t *body)
{
	json_object_set_new(record, "size", need(json_integer(number_of(record, "size") + number_of(body, "by"))));
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

/* ---- taking from it ----------------------------------------------------------------------------------------------- */

static bool read_count(const struct request *request, json_int_t *count, struct reply *refusal)
{
	const json_t *value = json_object_get(request->json, "count");
	*count = json_integer_value(value);
	if (json_is_integer(value) && *count >= 0 && *count <= LIMIT_POOL_SIZE)
		return true;
	*refusal = reply_error(400, "\"count\" must be a number from 0 to %d", LIMIT_POOL_SIZE);
	return false;
}

static bool allocate(json_t *record, const struct request *request, struct reply *refusal)
{
	json_int_t count;
	if (!read_count(request, &count, refusal))
		return false;
	long long left = number_of(record, "size") - number_of(record, "used");
	if (count > left) {
		*refusal = reply_error(409, "%lld cannot be allocated: %lld of %lld are left", (long long)count,
		                       left > 0 ? left : 0, (long long)number_of(record, "size"));
		return false;
	}
	json_object_set_new(record, "used", need(json_integer(number_of(record, "used") + count)));
	return true;
}

struct reply pool_allocate(struct request *request)
{
	return record_act(&kind, pools_of(request), request, allocate);
}

static bool release(json_t *record, const struct request *request, struct reply *refusal)
{
	json_int_t count;
	if (!read_count(request, &count, refusal))
		return false;
	long long used = number_of(record, "used");
	if (count > used) {
		*refusal = reply_error(409, "%lld cannot be released: %lld are used", (long long)count, used);
		return false;
	}
	json_object_set_new(record, "used", need(json_integer(used - count)));
	return true;
}

struct reply pool_release(struct request *request)
{
	return record_act(&kind, pools_of(request), request, release);
}
