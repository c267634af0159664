/*
 * Projects: a name that no other project here has, and what is in them: servers, volumes and stacks that were made by a path
 * below theirs. It has "project", the id, which is the service's own: nothing moves from one to another.
 *
 * A project that is not empty is deleted only with all that is in it (?cascade=true): stacks, servers, volumes, in this order.
 * It is done one by one, without keeping others from using the project; who puts something into it meanwhile may see it go
 * too, or keep it, and the project with it. What cannot be deleted (a network that does not take a port back) stops it there.
 */
#include "project.h"

#include <string.h>

#include "compute.h"
#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "record.h"
#include "stack.h"
#include "vm.h"
#include "volume.h"

static bool accepts(struct store *store, const json_t *record, struct reply *refusal)
{
	return field_text(record, "name", LIMIT_NAME_BYTES, refusal) != NULL &&
	       record_name_is_free("project", store, record, refusal);
}

/* "project" is among them, since a project is in none. */
static const char *const own_members[] = {"id", "created", "project", LOGIN_OWNER, NULL};

static const struct record_kind kind = {
	.thing = "project", .collection = "projects", .own_members = own_members, .accepts = accepts};

static struct store *projects_of(const struct request *request)
{
	const struct compute *compute = request->state;
	return compute->projects;
}

struct reply project_list(struct request *request)
{
	return record_list(&kind, projects_of(request), request);
}

struct reply project_create(struct request *request)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	return record_create(&kind, projects_of(request), request,
	                     need(json_pack("{s:s, s:n, s:s}", "id", id, "name", "created", created)));
}

struct reply project_get(struct request *request)
{
	return record_get(&kind, projects_of(request), request);
}

struct reply project_put(struct request *request)
{
	return record_change(&kind, projects_of(request), request, record_replace);
}

struct reply project_patch(struct request *request)
{
	return record_change(&kind, projects_of(request), request, merge_patch);
}

/* ---- being in one ------------------------------------------------------------------------------------------------- */

bool project_exists(struct compute *compute, const char *id, struct reply *refusal)
{
	if (id == NULL || store_has(compute->projects, id))
		return true;
	*refusal = reply_error(404, "no project %s", id);
	return false;
}

bool project_enter(struct compute *compute, const char *id, struct reply *refusal)
{
	if (id == NULL)
		return true;
	store_lock(compute->projects);
	if (project_exists(compute, id, refusal))
		return true;
	store_unlock(compute->projects);
	return false;
}

void project_leave(struct compute *compute, const char *id)
{
	if (id != NULL)
		store_unlock(compute->projects);
}

/* ---- deleting one ------------------------------------------------------------------------------------------------- */

/* What is in a project: an array each. */
struct contents {
	json_t *stacks, *servers, *volumes;
};

static json_t *members_of(struct store *store, const char *project)
{
	json_t *all = store_list(store);
	json_t *members = need(json_array());
	size_t i;
	json_t *record;
	json_array_foreach(all, i, record)
	{
		const char *of = json_string_value(json_object_get(record, "project"));
		if (of != NULL && strcmp(of, project) == 0)
			json_array_append(members, record);
	}
	json_decref(all);
	return members;
}

static struct contents contents_of(struct compute *compute, const char *project)
{
	return (struct contents){.stacks = members_of(compute->stacks, project),
	                         .servers = members_of(compute->servers, project),
	                         .volumes = members_of(compute->volumes, project)};
}

static size_t contents_count(const struct contents *contents)
{
	return json_array_size(contents->stacks) + json_array_size(contents->servers) + json_array_size(contents->volumes);
}

static void contents_drop(struct contents *contents)
{
	json_decref(contents->stacks);
	json_decref(contents->servers);
	json_decref(contents->volumes);
}

static json_t *ids_of(const json_t *records)
{
	json_t *ids = need(json_array());
	size_t i;
	json_t *record;
	json_array_foreach(records, i, record)
	{
		if (i < LIMIT_CONTENTS_SHOWN)
			json_array_append(ids, json_object_get(record, "id"));
	}
	return ids;
}

static struct reply not_empty(const char *project, const struct contents *contents)
{
	struct reply refusal = reply_error(409,
	                                   "project %s is not empty: stacks: %zu, servers: %zu, volumes: %zu; "
	                                   "with ?cascade=true they are deleted, too",
	                                   project, json_array_size(contents->stacks), json_array_size(contents->servers),
	                                   json_array_size(contents->volumes));
	json_object_set_new(json_object_get(refusal.json, "error"), "contents",
	                    need(json_pack("{s:o, s:o, s:o}", "stacks", ids_of(contents->stacks), "servers",
	                                   ids_of(contents->servers), "volumes", ids_of(contents->volumes))));
	return refusal;
}

/* Deletes all that was in it a moment ago. */
static bool empty(struct request *request, const struct contents *contents, struct reply *failure)
{
	struct compute *compute = request->state;
	size_t i;
	json_t *record;
	json_array_foreach(contents->stacks, i, record)
	{
		if (!stack_remove(request, json_string_value(json_object_get(record, "id")), failure))
			return false;
	}
	json_array_foreach(contents->servers, i, record)
	{
		/* The parts of stacks went with those. */
		if (json_object_get(record, "stack") == NULL && !vm_remove(request, record, failure))
			return false;
	}
	json_array_foreach(contents->volumes, i, record)
	{
		if (!volume_remove(compute->volumes, json_string_value(json_object_get(record, "id")), failure))
			return false;
	}
	return true;
}

/* False if it is not empty: then `*contents` says what is in it. Otherwise `*reply` is the answer. */
static bool delete_empty(struct request *request, struct contents *contents, struct reply *reply)
{
	struct compute *compute = request->state;
	if (!project_enter(compute, request->id, reply))
		return true;
	*contents = contents_of(compute, request->id);
	bool is_empty = contents_count(contents) == 0;
	if (is_empty) {
		int status = store_remove(compute->projects, request->id);
		*reply = status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the project");
		contents_drop(contents);
	}
	project_leave(compute, request->id);
	return is_empty;
}

struct reply project_delete(struct request *request)
{
	const char *cascade = request_query(request, "cascade");
	bool with_contents = cascade != NULL && strcmp(cascade, "true") == 0;
	if (cascade != NULL && !with_contents && strcmp(cascade, "false") != 0)
		return reply_error(400, "cascade must be true or false, not %.64s", cascade);
	for (unsigned tries = 0;; tries++) {
		struct contents contents;
		struct reply reply;
		if (delete_empty(request, &contents, &reply))
			return reply;
		bool goes_on = with_contents && tries < LIMIT_CASCADES;
		if (!goes_on)
			reply = not_empty(request->id, &contents);
		bool emptied = goes_on && empty(request, &contents, &reply);
		contents_drop(&contents);
		if (!emptied)
			return reply;
	}
}
