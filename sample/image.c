/* The image service: records of images, as their owners describe them. */
#include "image.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "memory.h"

/* Members that the service sets; what a client says of them is ignored. */
static const char *const own_members[] = {"id", "status", "created", "size", "checksum"};

static struct reply no_image(const char *id)
{
	return reply_error(404, "no image %s", id);
}

/* Makes `own` the record's values of the service's own members. */
static void set_own_members(json_t *record, const json_t *own)
{
	for (size_t i = 0; i < sizeof(own_members) / sizeof(own_members[0]); i++)
		json_object_set(record, own_members[i], json_object_get(own, own_members[i]));
}

static struct reply create(struct request *request)
{
	struct image_state *state = request->state;
	struct reply refusal;
	const char *name = field_text(request->json, "name", LIMIT_NAME_BYTES, &refusal);
	if (name == NULL)
		return refusal;
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	json_t *own = need(json_pack("{s:s, s:s, s:s, s:s, s:n, s:n}", "id", id, "name", name, "status", "queued",
	                             "created", created, "size", "checksum"));
	/* In this order, so that an answer begins with what is most looked for. */
	json_t *record = need(json_copy(own));
	json_object_update(record, request->json);
	set_own_members(record, own);
	json_decref(own);
	int status = store_put(state->records, record);
	if (status == 0)
		return reply_created("images", record);
	json_decref(record);
	return reply_disk_error(status, "store the image");
}

static struct reply list(struct request *request)
{
	struct image_state *state = request->state;
	return reply_json(200, json_pack("{s:o}", "images", store_list(state->records)));
}

static struct reply get(struct request *request)
{
	struct image_state *state = request->state;
	json_t *record = store_get(state->records, request->id);
	return record == NULL ? no_image(request->id) : reply_json(200, record);
}

/* Stores what became of a record, unless it lost its name on the way. Consumes it. */
static struct reply store_changed(struct image_state *state, json_t *record)
{
	struct reply reply;
	if (field_text(record, "name", LIMIT_NAME_BYTES, &reply) == NULL) {
		json_decref(record);
		return reply;
	}
	int status = store_put(state->records, record);
	if (status == 0)
		return reply_json(200, record);
	json_decref(record);
	return reply_disk_error(status, "store the image");
}

/* PUT and PATCH differ in what they make of the old record and the body; `change` does that to a copy of the old. */
static struct reply update(struct request *request, void (*change)(json_t *record, json_t *body))
{
	struct image_state *state = request->state;
	store_lock(state->records);
	json_t *old = store_get(state->records, request->id);
	struct reply reply;
	if (old == NULL) {
		reply = no_image(request->id);
	} else {
		json_t *record = need(json_deep_copy(old));
		change(record, request->json);
		set_own_members(record, old);
		reply = store_changed(state, record);
	}
	store_unlock(state->records);
	json_decref(old);
	return reply;
}

static void replace_members(json_t *record, json_t *body)
{
	json_t *own = need(json_copy(record));
	json_object_clear(record);
	json_object_set(record, "id", json_object_get(own, "id"));
	json_object_update(record, body);
	json_decref(own);
}

static struct reply put(struct request *request)
{
	return update(request, replace_members);
}

static struct reply patch(struct request *request)
{
	return update(request, merge_patch);
}

static struct reply delete (struct request *request)
{
	struct image_state *state = request->state;
	store_lock(state->records);
	json_t *record = store_get(state->records, request->id);
	int status = store_remove(state->records, request->id);
	if (status == 0)
		image_file_remove(state, record);
	store_unlock(state->records);
	json_decref(record);
	if (status == -ENOENT)
		return no_image(request->id);
	return status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the image");
}

static void stop(void *context)
{
	struct image_state *state = context;
	if (state->files >= 0)
		close(state->files);
	store_close(state->records);
	free(state);
}

static void *start(const char *data, const char *site)
{
	(void)site;
	struct image_state *state = NEW(struct image_state);
	state->files = -1;
	state->records = store_open(data, "images");
	if (state->records != NULL && image_files_open(state, data))
		return state;
	stop(state);
	return NULL;
}

static const struct route routes[] = {
	{.method = "GET", .pattern = "/images", .handle = list},
	{.method = "POST", .pattern = "/images", .body = ROUTE_JSON, .handle = create},
	{.method = "GET", .pattern = "/images/{id}", .handle = get},
	{.method = "PUT", .pattern = "/images/{id}", .body = ROUTE_JSON, .handle = put},
	{.method = "PATCH", .pattern = "/images/{id}", .body = ROUTE_PATCH, .handle = patch},
	{.method = "DELETE", .pattern = "/images/{id}", .handle = delete},
	{.method = "GET", .pattern = "/images/{id}/file", .handle = image_file_get},
	{.method = "PUT",
     .pattern = "/images/{id}/file",
     .body = ROUTE_STREAM,
     .begin = image_file_begin,
     .piece = image_file_piece,
     .handle = image_file_put,
     .drop = image_file_drop},
	{.pattern = NULL},
};

const struct service image_service = {.name = "image", .routes = routes, .start = start, .stop = stop};
