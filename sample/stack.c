/*
 * Stacks: so many servers that are alike, which are made and deleted with the stack and cannot be deleted alone.
 *
 * What is kept of a stack is how many servers it is to have (`count`), and what each of them takes: image, network, secret.
 * Which ones it has is known by the servers: each says of which stack it is a part. What is shown has both.
 *
 * Making one, when all goes well:
 *   1. the image and the secret are fetched, once (boot.c);
 *   2. the stack is stored;
 *   3. its servers are made, one by one, each with a port of its own if there is to be a network;
 *   4. it is answered with.
 * Fails at 3: what was made is deleted, and the stack, too. Growing is the same, and what fails leaves the stack as it was;
 * shrinking deletes the youngest. Killed at 3, or a network that takes no port back: the stack has another number of servers
 * than it should, and says so (`status`: INCOMPLETE). Setting `servers` again completes it, and it can be deleted.
 */
#include "stack.h"

#include <errno.h>
#include <string.h>

#include "boot.h"
#include "compute.h"
#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "project.h"
#include "record.h"
#include "vm.h"

enum { PART_SUFFIX_BYTES = 4 }; /* "-100" */

static const struct record_kind kind = {.thing = "stack", .collection = "stacks"};

static const char *text_member(const json_t *record, const char *name)
{
	return json_string_value(json_object_get(record, name));
}

static size_t count_of(const json_t *stack)
{
	return (size_t)json_integer_value(json_object_get(stack, "count"));
}

/* ---- showing ------------------------------------------------------------------------------------------------------ */

/* The servers that are parts of a stack, oldest first. */
static json_t *parts_among(const json_t *servers, const json_t *stack)
{
	json_t *parts = need(json_array());
	size_t i;
	json_t *server;
	json_array_foreach(servers, i, server)
	{
		const char *of = text_member(server, "stack");
		if (of != NULL && strcmp(of, text_member(stack, "id")) == 0)
			json_array_append(parts, server);
	}
	return parts;
}

static json_t *parts_of(struct compute *compute, const json_t *stack)
{
	json_t *servers = store_list(compute->servers);
	json_t *parts = parts_among(servers, stack);
	json_decref(servers);
	return parts;
}

/* Adds what is not stored. */
static void show(json_t *stack, const json_t *servers)
{
	json_t *parts = parts_among(servers, stack);
	json_t *ids = need(json_array());
	size_t i;
	json_t *part;
	json_array_foreach(parts, i, part)
	{
		json_array_append(ids, json_object_get(part, "id"));
	}
	bool complete = json_array_size(parts) == count_of(stack);
	json_object_set_new(stack, "servers", ids);
	json_object_set_new(stack, "status", need(json_string(complete ? "ACTIVE" : "INCOMPLETE")));
	json_decref(parts);
}

/* Consumes the record, and returns it with what is not stored. */
static json_t *shown(struct compute *compute, json_t *stack)
{
	json_t *servers = store_list(compute->servers);
	show(stack, servers);
	json_decref(servers);
	return stack;
}

struct reply stack_list(struct request *request)
{
	struct compute *compute = request->state;
	struct reply reply;
	if (!project_exists(compute, request->project, &reply))
		return reply;
	json_t *stacks = record_select(compute->stacks, request);
	json_t *servers = store_list(compute->servers);
	size_t i;
	json_t *stack;
	json_array_foreach(stacks, i, stack)
	{
		show(stack, servers);
	}
	json_decref(servers);
	return reply_json(200, json_pack("{s:o}", kind.collection, stacks));
}

struct reply stack_get(struct request *request)
{
	struct compute *compute = request->state;
	json_t *stack = record_find(compute->stacks, request);
	return stack == NULL ? record_missing(&kind, request) : reply_json(200, shown(compute, stack));
}

/* ---- what the client asks for ------------------------------------------------------------------------------------- */

/* `servers`, a number. What was read can be sent back, too, in which it is a list; without that, its `count` says it. */
static const json_t *count_in(const json_t *body)
{
	const json_t *servers = json_object_get(body, "servers");
	return servers == NULL ? json_object_get(body, "count") : servers;
}

static bool read_count(const json_t *body, size_t *count, struct reply *refusal)
{
	const json_t *servers = count_in(body);
	json_int_t wanted = json_is_array(servers) ? (json_int_t)json_array_size(servers) : json_integer_value(servers);
	*count = (size_t)wanted;
	if ((json_is_integer(servers) || json_is_array(servers)) && wanted >= 0 && wanted <= LIMIT_STACK_SERVERS)
		return true;
	*refusal = reply_error(400, "\"servers\" must be a number from 0 to %d", LIMIT_STACK_SERVERS);
	return false;
}

static bool read_name(const json_t *body, struct reply *refusal)
{
	return field_text(body, "name", LIMIT_NAME_BYTES - PART_SUFFIX_BYTES, refusal) != NULL;
}

/* ---- parts -------------------------------------------------------------------------------------------------------- */

/* Deletes the youngest until so many are left. */
static bool shrink(struct request *request, const json_t *stack, size_t count, struct reply *failure)
{
	json_t *parts = parts_of(request->state, stack);
	bool fine = true;
	for (size_t left = json_array_size(parts); left > count && fine; left--)
		fine = vm_remove(request, json_array_get(parts, left - 1), failure);
	json_decref(parts);
	return fine;
}

static bool add_part(struct request *request, struct boot *boot, const json_t *stack, size_t number,
                     struct reply *failure)
{
	char *name = text_of("%s-%zu", text_member(stack, "name"), number);
	boot->name = name;
	json_t *record = boot_take_port(request, boot, failure) ? vm_make(request, boot, stack, failure) : NULL;
	json_decref(boot->port);
	boot->port = NULL;
	boot->name = NULL;
	free(name);
	json_decref(record);
	return record != NULL;
}

/* Makes servers until there are so many. What fails leaves as many as there were. */
static bool grow(struct request *request, struct boot *boot, const json_t *stack, struct reply *failure)
{
	struct compute *compute = request->state;
	json_t *parts = parts_of(compute, stack);
	size_t before = json_array_size(parts);
	json_decref(parts);
	size_t count = count_of(stack);
	bool fine = before >= count || record_quota_left(compute->servers, request, "servers", count - before, failure);
	for (size_t number = before + 1; number <= count && fine; number++)
		fine = add_part(request, boot, stack, number, failure);
	struct reply ignored;
	if (!fine && !shrink(request, stack, before, &ignored))
		reply_drop(&ignored);
	return fine;
}

/* ---- making one --------------------------------------------------------------------------------------------------- */

static json_t *record_of(const struct request *request, size_t count)
{
	static const char *const taken[] = {"network", "secret"};
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	json_t *record =
		need(json_pack("{s:s, s:O, s:O, s:I, s:s}", "id", id, "name", json_object_get(request->json, "name"), "image",
	                   json_object_get(request->json, "image"), "count", (json_int_t)count, "created", created));
	for (size_t i = 0; i < sizeof(taken) / sizeof(taken[0]); i++) {
		json_t *value = json_object_get(request->json, taken[i]);
		if (value != NULL && !json_is_null(value))
			json_object_set(record, taken[i], value);
	}
	if (request->project != NULL)
		json_object_set_new(record, "project", need(json_string(request->project)));
	if (request->user != NULL)
		json_object_set_new(record, LOGIN_OWNER, need(json_string(request->user)));
	return record;
}

/* Stores a new record, or another state of one. */
static bool store_stack(struct request *request, json_t *stack, bool is_new, struct reply *failure)
{
	struct compute *compute = request->state;
	const char *project = text_member(stack, "project");
	if (!project_enter(compute, project, failure))
		return false;
	store_lock(compute->stacks);
	bool fine = record_name_is_free("stack", compute->stacks, stack, failure) &&
	            (!is_new || record_quota_left(compute->stacks, request, "stacks", 1, failure));
	int status = fine ? store_put(compute->stacks, stack) : 0;
	if (status != 0)
		*failure = reply_disk_error(status, "store the stack");
	store_unlock(compute->stacks);
	project_leave(compute, project);
	return fine && status == 0;
}

static int forget(struct compute *compute, const char *id)
{
	store_lock(compute->stacks);
	int status = store_remove(compute->stacks, id);
	store_unlock(compute->stacks);
	return status == -ENOENT ? 0 : status;
}

/* Consumes the record. */
static struct reply build(struct request *request, struct boot *boot, json_t *stack)
{
	struct compute *compute = request->state;
	struct reply reply;
	pthread_mutex_lock(&compute->building);
	bool stored = store_stack(request, stack, true, &reply);
	bool built = stored && grow(request, boot, stack, &reply);
	if (stored && !built) {
		json_t *parts = parts_of(compute, stack);
		/* One that has parts that could not be deleted stays, and says so. */
		if (json_array_size(parts) == 0)
			forget(compute, text_member(stack, "id"));
		json_decref(parts);
	}
	pthread_mutex_unlock(&compute->building);
	if (built)
		return record_created(request, kind.collection, shown(compute, stack));
	json_decref(stack);
	return reply;
}

struct reply stack_create(struct request *request)
{
	struct compute *compute = request->state;
	struct boot boot = {0};
	size_t count;
	struct reply reply;
	if (boot_read(request->json, &boot, &reply) && read_name(request->json, &reply) &&
	    read_count(request->json, &count, &reply) && project_exists(compute, request->project, &reply) &&
	    boot_fetch(request, &boot, &reply))
		reply = build(request, &boot, record_of(request, count));
	boot_drop(&boot);
	return reply;
}

/* ---- changing one ------------------------------------------------------------------------------------------------- */

static bool stays(const json_t *stack, const json_t *body, const char *name, struct reply *refusal)
{
	const json_t *said = json_object_get(body, name);
	if (said == NULL || record_same_member(stack, body, name) ||
	    (json_is_null(said) && json_object_get(stack, name) == NULL))
		return true;
	*refusal = reply_error(400, "\"%s\" of a stack cannot be changed; \"name\" and \"servers\" can", name);
	return false;
}

/* Makes of the record what the body says. */
static bool apply(json_t *stack, const json_t *body, struct reply *refusal)
{
	size_t count = count_of(stack);
	if (!stays(stack, body, "image", refusal) || !stays(stack, body, "network", refusal) ||
	    !stays(stack, body, "secret", refusal))
		return false;
	if (json_object_get(body, "name") != NULL && !read_name(body, refusal))
		return false;
	if (count_in(body) != NULL && !read_count(body, &count, refusal))
		return false;
	if (json_object_get(body, "name") != NULL)
		json_object_set(stack, "name", json_object_get(body, "name"));
	json_object_set_new(stack, "count", need(json_integer((json_int_t)count)));
	return true;
}

/* Gives a stack as many servers as it is to have. `old` is what it was before. */
static bool fit(struct request *request, const json_t *stack, json_t *old, struct reply *failure)
{
	struct compute *compute = request->state;
	json_t *parts = parts_of(compute, stack);
	size_t before = json_array_size(parts);
	json_decref(parts);
	if (before >= count_of(stack))
		return shrink(request, stack, count_of(stack), failure);
	struct boot boot = {0};
	bool fine =
		boot_read(stack, &boot, failure) && boot_fetch(request, &boot, failure) && grow(request, &boot, stack, failure);
	boot_drop(&boot);
	struct reply ignored;
	if (!fine && !store_stack(request, old, false, &ignored))
		reply_drop(&ignored);
	return fine;
}

struct reply stack_patch(struct request *request)
{
	struct compute *compute = request->state;
	struct reply reply;
	pthread_mutex_lock(&compute->building);
	json_t *stack = record_find(compute->stacks, request);
	json_t *old = stack == NULL ? NULL : need(json_deep_copy(stack));
	if (stack == NULL)
		reply = record_missing(&kind, request);
	else if (apply(stack, request->json, &reply) && store_stack(request, stack, false, &reply) &&
	         fit(request, stack, old, &reply))
		reply = reply_json(200, shown(compute, json_incref(stack)));
	pthread_mutex_unlock(&compute->building);
	json_decref(old);
	json_decref(stack);
	return reply;
}

/* ---- deleting one ------------------------------------------------------------------------------------------------- */

bool stack_remove(struct request *request, const char *id, struct reply *failure)
{
	struct compute *compute = request->state;
	pthread_mutex_lock(&compute->building);
	json_t *stack = store_get(compute->stacks, id);
	bool fine = stack == NULL || shrink(request, stack, 0, failure);
	int status = stack != NULL && fine ? forget(compute, id) : 0;
	if (status != 0)
		*failure = reply_disk_error(status, "delete the stack");
	pthread_mutex_unlock(&compute->building);
	json_decref(stack);
	return fine && status == 0;
}

struct reply stack_delete(struct request *request)
{
	struct compute *compute = request->state;
	json_t *stack = record_find(compute->stacks, request);
	if (stack == NULL)
		return record_missing(&kind, request);
	json_decref(stack);
	struct reply failure;
	return stack_remove(request, request->id, &failure) ? reply_empty(204) : failure;
}
