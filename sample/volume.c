/*
 * Volumes: a name, a size, and at most one server that they are attached to. What is in them is of no interest here.
 *
 * `attached` is the service's own: `attach` and `detach` change it. The name is one that no other volume of the project has,
 * or none of those that are in no project. One that is attached cannot be deleted; a server that goes leaves its volumes free.
 */
#include "volume.h"

#include <errno.h>
#include <string.h>

#include "compute.h"
#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "project.h"
#include "record.h"

static bool accepts(struct store *store, const json_t *record, struct reply *refusal)
{
	if (field_text(record, "name", LIMIT_NAME_BYTES, refusal) == NULL)
		return false;
	const json_t *size = json_object_get(record, "size");
	if (!json_is_integer(size) || json_integer_value(size) < 1 || json_integer_value(size) > LIMIT_VOLUME_SIZE) {
		*refusal = reply_error(400, "\"size\" must be a number from 1 to %d", LIMIT_VOLUME_SIZE);
		return false;
	}
	return record_name_is_free("volume", store, record, refusal);
}

static const char *const own_members[] = {"id", "created", "attached", "project", LOGIN_OWNER, NULL};

static const struct record_kind kind = {
	.thing = "volume", .collection = "volumes", .own_members = own_members, .accepts = accepts};

static struct store *volumes_of(const struct request *request)
{
	const struct compute *compute = request->state;
	return compute->volumes;
}

static const char *server_of(const json_t *volume)
{
	return json_string_value(json_object_get(volume, "attached"));
}

struct reply volume_list(struct request *request)
{
	struct reply reply;
	if (!project_exists(request->state, request->project, &reply))
		return reply;
	return record_list(&kind, volumes_of(request), request);
}

struct reply volume_create(struct request *request)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	struct reply reply;
	if (!project_enter(request->state, request->project, &reply))
		return reply;
	/* Name and size stand here for their place in the answer; record_create() takes them from the body. */
	json_t *own =
		need(json_pack("{s:s, s:n, s:n, s:n, s:s}", "id", id, "name", "size", "attached", "created", created));
	reply = record_create(&kind, volumes_of(request), request, own);
	project_leave(request->state, request->project);
	return reply;
}

struct reply volume_get(struct request *request)
{
	return record_get(&kind, volumes_of(request), request);
}

struct reply volume_put(struct request *request)
{
	return record_change(&kind, volumes_of(request), request, record_replace);
}

struct reply volume_patch(struct request *request)
{
	return record_change(&kind, volumes_of(request), request, merge_patch);
}

/* ---- attaching ---------------------------------------------------------------------------------------------------- */

static bool attach(json_t *volume, const struct request *request, struct reply *refusal)
{
	const struct compute *compute = request->state;
	const char *server = field_text(request->json, "server", LIMIT_ID_BYTES, refusal);
	if (server == NULL)
		return false;
	if (server_of(volume) != NULL)
		*refusal = reply_error(409, "volume %s is attached to server %s already", request->id, server_of(volume));
	else if (!store_has(compute->servers, server))
		*refusal = reply_error(400, "no server %s", server);
	else
		return json_object_set_new(volume, "attached", need(json_string(server))) == 0;
	return false;
}

struct reply volume_attach(struct request *request)
{
	return record_act(&kind, volumes_of(request), request, attach);
}

static bool detach(json_t *volume, const struct request *request, struct reply *refusal)
{
	if (server_of(volume) != NULL)
		return json_object_set_new(volume, "attached", json_null()) == 0;
	*refusal = reply_error(409, "volume %s is not attached to any server", request->id);
	return false;
}

struct reply volume_detach(struct request *request)
{
	return record_act(&kind, volumes_of(request), request, detach);
}

int volume_detach_all(struct store *volumes, const char *server)
{
	json_t *all = store_list(volumes);
	int status = 0;
	size_t i;
	json_t *volume;
	json_array_foreach(all, i, volume)
	{
		if (status != 0 || server_of(volume) == NULL || strcmp(server_of(volume), server) != 0)
			continue;
		json_object_set_new(volume, "attached", json_null());
		status = store_put(volumes, volume);
	}
	json_decref(all);
	return status;
}

/* ---- deleting ----------------------------------------------------------------------------------------------------- */

/* The volumes are locked. */
static struct reply remove_free(struct store *volumes, const json_t *volume)
{
	const char *id = json_string_value(json_object_get(volume, "id"));
	if (server_of(volume) != NULL)
		return reply_error(409, "volume %s is attached to server %s: detach it first", id, server_of(volume));
	int status = store_remove(volumes, id);
	return status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the volume");
}

struct reply volume_delete(struct request *request)
{
	store_lock(volumes_of(request));
	json_t *volume = record_find(volumes_of(request), request);
	struct reply reply = volume == NULL ? record_missing(&kind, request) : remove_free(volumes_of(request), volume);
	store_unlock(volumes_of(request));
	json_decref(volume);
	return reply;
}

bool volume_remove(struct store *volumes, const char *id, struct reply *failure)
{
	store_lock(volumes);
	int status = store_remove(volumes, id);
	store_unlock(volumes);
	if (status == 0 || status == -ENOENT)
		return true;
	*failure = reply_disk_error(status, "delete the volume");
	return false;
}
