/*
 * Servers. What it takes to make one is in boot.c.
 *
 * One that is in a project has a name that no other server there has. One that is a part of a stack comes and goes with that,
 * and cannot be deleted alone.
 *
 * A server that was given a secret reads it each time it starts, which `start` and `reboot` do: where it is gone they are
 * refused, and the server stays as it is; so they are, with 502, where it cannot be said whether it is gone.
 */
#include "vm.h"

#include <errno.h>
#include <string.h>

#include "compute.h"
#include "identity.h"
#include "login.h"
#include "memory.h"
#include "project.h"
#include "record.h"
#include "volume.h"

static const struct record_kind kind = {.thing = "server", .collection = "servers"};

static const char *text_member(const json_t *record, const char *name)
{
	return json_string_value(json_object_get(record, name));
}

/* ---- making one --------------------------------------------------------------------------------------------------- */

static json_t *record_of(const struct request *request, const struct boot *boot, const json_t *stack)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	json_t *record =
		need(json_pack("{s:s, s:s, s:s, s:O?, s:s, s:I, s:s, s:s}", "id", id, "name", boot->name, "image", boot->image,
	                   "image_name", json_object_get(boot->image_record, "name"), "image_checksum", boot->checksum,
	                   "image_size", boot->bytes, "status", "ACTIVE", "created", created));
	if (boot->secret != NULL) {
		json_object_set_new(record, "secret", need(json_string(boot->secret)));
		json_object_set_new(record, "secret_checksum", need(json_string(boot->secret_checksum)));
	}
	if (boot->port != NULL)
		json_object_set(record, "port", boot->port);
	const char *project = stack == NULL ? request->project : text_member(stack, "project");
	if (project != NULL)
		json_object_set_new(record, "project", need(json_string(project)));
	if (stack != NULL)
		json_object_set(record, "stack", json_object_get(stack, "id"));
	if (request->user != NULL)
		json_object_set_new(record, LOGIN_OWNER, need(json_string(request->user)));
	return record;
}

static bool store_new(struct request *request, json_t *record, struct reply *failure)
{
	struct compute *compute = request->state;
	int status = store_put(compute->servers, record);
	if (status != 0)
		*failure = reply_disk_error(status, "store the server");
	return status == 0;
}

/* In a project it has to have a name of its own there. */
static bool store_in_place(struct request *request, json_t *record, struct reply *failure)
{
	struct compute *compute = request->state;
	const char *project = text_member(record, "project");
	if (project == NULL)
		return store_new(request, record, failure);
	if (!project_enter(compute, project, failure))
		return false;
	store_lock(compute->servers);
	bool stored =
		record_name_is_free("server", compute->servers, record, failure) && store_new(request, record, failure);
	store_unlock(compute->servers);
	project_leave(compute, project);
	return stored;
}

json_t *vm_make(struct request *request, const struct boot *boot, const json_t *stack, struct reply *failure)
{
	json_t *record = record_of(request, boot, stack);
	if (store_in_place(request, record, failure))
		return record;
	json_decref(record);
	struct reply ignored;
	if (boot->port != NULL && !boot_give_port_back(request, boot->port, &ignored))
		reply_drop(&ignored);
	return NULL;
}

/* What can be known before anything is asked of others; all of it is looked at again when the server is stored. */
static bool may_be_made(struct request *request, const struct boot *boot, struct reply *refusal)
{
	struct compute *compute = request->state;
	if (!record_quota_left(compute->servers, request, "servers", 1, refusal))
		return false;
	if (request->project == NULL)
		return true;
	if (!project_exists(compute, request->project, refusal))
		return false;
	json_t *like = need(json_pack("{s:s, s:s}", "name", boot->name, "project", request->project));
	bool free_name = record_name_is_free("server", compute->servers, like, refusal);
	json_decref(like);
	return free_name;
}

struct reply vm_create(struct request *request)
{
	struct boot boot = {0};
	struct reply reply;
	json_t *record = NULL;
	if (boot_read(request->json, &boot, &reply) && may_be_made(request, &boot, &reply) &&
	    boot_fetch(request, &boot, &reply) && boot_take_port(request, &boot, &reply))
		record = vm_make(request, &boot, NULL, &reply);
	if (record != NULL)
		reply = record_created(request, "servers", record);
	boot_drop(&boot);
	return reply;
}

/* ---- looking, and deleting ---------------------------------------------------------------------------------------- */

struct reply vm_list(struct request *request)
{
	struct compute *compute = request->state;
	struct reply reply;
	if (!project_exists(compute, request->project, &reply))
		return reply;
	return record_list(&kind, compute->servers, request);
}

struct reply vm_get(struct request *request)
{
	struct compute *compute = request->state;
	return record_get(&kind, compute->servers, request);
}

bool vm_remove(struct request *request, const json_t *record, struct reply *failure)
{
	struct compute *compute = request->state;
	const char *id = text_member(record, "id");
	/* First the port: a server that stays can be deleted again, but a port whose server is gone is lost. */
	if (!boot_give_port_back(request, json_object_get(record, "port"), failure))
		return false;
	/* Nobody attaches a volume to what is about to go. */
	store_lock(compute->volumes);
	int status = volume_detach_all(compute->volumes, id);
	if (status == 0) {
		store_lock(compute->servers);
		status = store_remove(compute->servers, id);
		store_unlock(compute->servers);
	}
	store_unlock(compute->volumes);
	if (status != 0 && status != -ENOENT)
		*failure = reply_disk_error(status, "delete the server");
	return status == 0 || status == -ENOENT;
}

struct reply vm_delete(struct request *request)
{
	struct compute *compute = request->state;
	json_t *record = record_find(compute->servers, request);
	if (record == NULL)
		return record_missing(&kind, request);
	struct reply reply;
	const char *stack = text_member(record, "stack");
	if (stack != NULL)
		reply = reply_error(409, "server %s is a part of stack %s, and goes with it", request->id, stack);
	else if (vm_remove(request, record, &reply))
		reply = reply_empty(204);
	json_decref(record);
	return reply;
}

/* ---- actions ------------------------------------------------------------------------------------------------------ */

static const struct action {
	const char *name, *from, *to;
	bool starts; /* and so reads the secret */
} actions[] = {
	{"start", "SHUTOFF", "ACTIVE", true},
	{"stop", "ACTIVE", "SHUTOFF", false},
	{"reboot", "ACTIVE", "ACTIVE", true},
};

/* The body has one member, whose name is the action; what its value says is of no interest here. */
static const struct action *action_of(json_t *body)
{
	if (json_object_size(body) != 1)
		return NULL;
	for (size_t i = 0; i < sizeof(actions) / sizeof(actions[0]); i++) {
		if (json_object_get(body, actions[i].name) != NULL)
			return &actions[i];
	}
	return NULL;
}

static bool is_in_state_for(const json_t *record, const struct action *action, struct reply *refusal)
{
	const char *status = text_member(record, "status");
	if (status != NULL && strcmp(status, action->from) == 0)
		return true;
	*refusal = reply_error(409, "cannot %s a server that is %s; it must be %s", action->name,
	                       status == NULL ? "in no known state" : status, action->from);
	return false;
}

static bool act(struct request *request, const struct action *action, const char *secret_checksum, json_t *record,
                struct reply *refusal)
{
	struct compute *compute = request->state;
	if (!is_in_state_for(record, action, refusal))
		return false;
	json_object_set_new(record, "status", need(json_string(action->to)));
	if (secret_checksum[0] != '\0')
		json_object_set_new(record, "secret_checksum", need(json_string(secret_checksum)));
	int status = store_put(compute->servers, record);
	if (status != 0)
		*refusal = reply_disk_error(status, "store the server");
	return status == 0;
}

/* Before the servers are locked, since another service is asked. `checksum` is left empty where there is no secret to read. */
static bool may_act(struct request *request, const struct action *action, char *checksum, struct reply *refusal)
{
	struct compute *compute = request->state;
	json_t *record = record_find(compute->servers, request);
	const char *secret = text_member(record, "secret");
	bool may = false;
	if (record == NULL)
		*refusal = record_missing(&kind, request);
	else if (action == NULL)
		*refusal = reply_error(400, "the body must have one member, the action: start, stop or reboot");
	else if (is_in_state_for(record, action, refusal))
		may = secret == NULL || !action->starts || boot_read_secret(request, secret, 409, checksum, refusal);
	json_decref(record);
	return may;
}

struct reply vm_action(struct request *request)
{
	struct compute *compute = request->state;
	char checksum[SHA256_TEXT_BYTES] = "";
	struct reply reply;
	const struct action *action = action_of(request->json);
	if (!may_act(request, action, checksum, &reply))
		return reply;
	store_lock(compute->servers);
	json_t *record = record_find(compute->servers, request);
	if (record == NULL)
		reply = record_missing(&kind, request);
	else if (act(request, action, checksum, record, &reply))
		reply = reply_json(202, json_incref(record));
	store_unlock(compute->servers);
	json_decref(record);
	return reply;
}
