/* The image service: records of images, as their owners describe them. Its secrets are in secret.c. */
#include "image.h"

#include <errno.h>
#include <unistd.h>

#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "record.h"
#include "secret.h"

static bool accepts(struct store *store, const json_t *record, struct reply *refusal)
{
	(void)store;
	return field_text(record, "name", LIMIT_NAME_BYTES, refusal) != NULL;
}

static const char *const own_members[] = {"id", "status", "created", "size", "checksum", LOGIN_OWNER, NULL};

static const struct record_kind kind = {
	.thing = "image", .collection = "images", .own_members = own_members, .accepts = accepts};

static struct reply create(struct request *request)
{
	struct image_state *state = request->state;
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	/* The name stands here for its place in the answer; record_create() takes it from the body. */
	json_t *own = json_pack("{s:s, s:n, s:s, s:s, s:n, s:n}", "id", id, "name", "status", "queued", "created", created,
	                        "size", "checksum");
	return record_create(&kind, state->records, request, need(own));
}

static struct reply list(struct request *request)
{
	struct image_state *state = request->state;
	return record_list(&kind, state->records, request);
}

static struct reply get(struct request *request)
{
	struct image_state *state = request->state;
	return record_get(&kind, state->records, request);
}

static struct reply put(struct request *request)
{
	struct image_state *state = request->state;
	return record_change(&kind, state->records, request, record_replace);
}

static struct reply patch(struct request *request)
{
	struct image_state *state = request->state;
	return record_change(&kind, state->records, request, merge_patch);
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
		return record_missing(&kind, request);
	return status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the image");
}

static void stop(void *context)
{
	struct image_state *state = context;
	if (state->files >= 0)
		close(state->files);
	store_close(state->secrets);
	store_close(state->records);
	free(state);
}

static void *start(const char *data, const char *site)
{
	(void)site;
	struct image_state *state = NEW(struct image_state);
	state->files = -1;
	state->records = store_open(data, "images");
	state->secrets = store_open(data, "secrets");
	if (state->records != NULL && state->secrets != NULL && image_files_open(state, data))
		return state;
	stop(state);
	return NULL;
}

struct store *secrets_of(const struct request *request)
{
	const struct image_state *state = request->state;
	return state->secrets;
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
	{.method = "GET", .pattern = "/secrets", .handle = secret_list},
	{.method = "POST", .pattern = "/secrets", .body = ROUTE_JSON, .handle = secret_create},
	{.method = "GET", .pattern = "/secrets/{id}", .handle = secret_get},
	{.method = "PUT", .pattern = "/secrets/{id}", .body = ROUTE_JSON, .handle = secret_put},
	{.method = "PATCH", .pattern = "/secrets/{id}", .body = ROUTE_PATCH, .handle = secret_patch},
	{.method = "DELETE", .pattern = "/secrets/{id}", .handle = secret_delete},
	{.pattern = NULL},
};

const struct service image_service = {.name = "image", .routes = routes, .start = start, .stop = stop};
