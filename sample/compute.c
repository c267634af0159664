/*
 * The compute service: servers that boot from an image.
 *
 * Creating a server, when all goes well:
 *   1. GET /images/ID: does the image exist, what is it called;
 *   2. GET /images/ID/file: its bytes, of which only number and checksum are kept (nothing really boots here);
 *   3. POST /ports, if a network is wanted;
 *   4. the server is stored, and then answered with.
 * No such image or network: 400, since it is the client who named it. Another service cannot be reached, or fails: 502,
 * which says which and how. The bytes are not those that the record speaks of: 502. Fails after 3: the port is given back.
 * An image without bytes is an empty one.
 */
#include <errno.h>
#include <string.h>

#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "peers.h"
#include "record.h"
#include "server.h"
#include "sha256.h"
#include "store.h"

struct compute {
	struct store *servers;
};

/* A server in the making. */
struct plan {
	const char *name;
	const char *image;
	json_t *network; /* borrowed from the body: a network's id, true for any, NULL for none */
	json_t *image_record;
	char checksum[SHA256_TEXT_BYTES];
	json_int_t bytes;
	json_t *port;
};

static struct reply no_server(const char *id)
{
	return reply_error(404, "no server %s", id);
}

/* ---- what the client asks for ------------------------------------------------------------------------------------- */

static bool read_plan(const json_t *body, struct plan *plan, struct reply *refusal)
{
	plan->name = field_text(body, "name", LIMIT_NAME_BYTES, refusal);
	if (plan->name == NULL)
		return false;
	plan->image = field_text(body, "image", LIMIT_ID_BYTES, refusal);
	if (plan->image == NULL)
		return false;
	json_t *network = json_object_get(body, "network");
	if (network == NULL || json_is_null(network) || json_is_false(network))
		return true;
	plan->network = network;
	if (json_is_true(network) || field_text(body, "network", LIMIT_ID_BYTES, refusal) != NULL)
		return true;
	if (!json_is_string(network)) {
		reply_drop(refusal);
		*refusal = reply_error(400, "\"network\" must be the id of a network, or true for any");
	}
	return false;
}

/* ---- the image ---------------------------------------------------------------------------------------------------- */

/* Makes a call that gets a JSON object with status `wanted`. `not_found` is the answer to the client if there is none such. */
static json_t *ask(struct request *request, const struct peer_call *call, unsigned wanted, struct reply not_found,
                   struct reply *failure)
{
	struct client_answer answer;
	peer_make(request, call, &answer);
	json_t *said = answer.status == wanted ? json_loadb(answer.body, answer.body_bytes, 0, NULL) : NULL;
	bool refused_by_peer = answer.status == 404 || (wanted == 201 && answer.status == 400);
	if (!json_is_object(said)) {
		json_decref(said);
		said = NULL;
		*failure = refused_by_peer ? not_found : peer_failure(call, &answer);
	}
	if (said != NULL || !refused_by_peer)
		reply_drop(&not_found);
	client_answer_free(&answer);
	return said;
}

struct digest {
	struct sha256 hash;
	json_int_t bytes;
};

static void add_to_digest(void *context, const char *bytes, size_t length)
{
	struct digest *digest = context;
	sha256_add(&digest->hash, bytes, length);
	digest->bytes += (json_int_t)length;
}

static bool fetch_bytes(struct request *request, const char *path, struct plan *plan, struct reply *failure)
{
	struct digest digest = {.bytes = 0};
	sha256_start(&digest.hash);
	struct peer_call call = {
		.peer = PEER_IMAGE, .method = "GET", .path = path, .piece = add_to_digest, .context = &digest};
	struct client_answer answer;
	peer_make(request, &call, &answer);
	sha256_finish(&digest.hash, plan->checksum);
	plan->bytes = digest.bytes;
	bool fetched = answer.status == 200 || answer.status == 204;
	if (!fetched && answer.status == 404)
		*failure = reply_error(400, "no image %s (it is gone)", plan->image);
	else if (!fetched)
		*failure = peer_failure(&call, &answer);
	client_answer_free(&answer);
	return fetched;
}

static bool bytes_fit_record(const struct plan *plan, struct reply *failure)
{
	const char *promised = json_string_value(json_object_get(plan->image_record, "checksum"));
	if (promised == NULL || strcmp(promised, plan->checksum) == 0)
		return true;
	*failure = reply_error(502, "the bytes of image %s have checksum %s, but its record says %s", plan->image,
	                       plan->checksum, promised);
	return false;
}

static bool fetch_image(struct request *request, struct plan *plan, struct reply *failure)
{
	char *id = client_escape(plan->image);
	char *path = text_of("/images/%s", id);
	char *file_path = text_of("/images/%s/file", id);
	struct peer_call call = {.peer = PEER_IMAGE, .method = "GET", .path = path};
	plan->image_record = ask(request, &call, 200, reply_error(400, "no image %s", plan->image), failure);
	bool fetched =
		plan->image_record != NULL && fetch_bytes(request, file_path, plan, failure) && bytes_fit_record(plan, failure);
	free(file_path);
	free(path);
	free(id);
	return fetched;
}

/* ---- the port ----------------------------------------------------------------------------------------------------- */

static bool take_port(struct request *request, struct plan *plan, struct reply *failure)
{
	if (plan->network == NULL)
		return true;
	json_t *order = need(json_object());
	if (json_is_string(plan->network))
		json_object_set(order, "network", plan->network);
	struct peer_call call = {.peer = PEER_NETWORK, .method = "POST", .path = "/ports", .json = order};
	const char *network = json_string_value(plan->network);
	plan->port = ask(request, &call, 201, reply_error(400, "no network %s", network == NULL ? "" : network), failure);
	json_decref(order);
	return plan->port != NULL;
}

/* That the port is not there any more is as good as giving it back. */
static bool give_port_back(struct request *request, const json_t *port, struct reply *failure)
{
	const char *port_id = json_string_value(json_object_get(port, "id"));
	if (port_id == NULL)
		return true;
	char *id = client_escape(port_id);
	char *path = text_of("/ports/%s", id);
	struct peer_call call = {.peer = PEER_NETWORK, .method = "DELETE", .path = path};
	struct client_answer answer;
	peer_make(request, &call, &answer);
	bool given = answer.status == 204 || answer.status == 404;
	if (!given)
		*failure = peer_failure(&call, &answer);
	client_answer_free(&answer);
	free(path);
	free(id);
	return given;
}

/* ---- the server --------------------------------------------------------------------------------------------------- */

static json_t *record_of(const struct plan *plan)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	json_t *record =
		need(json_pack("{s:s, s:s, s:s, s:O?, s:s, s:I, s:s, s:s}", "id", id, "name", plan->name, "image", plan->image,
	                   "image_name", json_object_get(plan->image_record, "name"), "image_checksum", plan->checksum,
	                   "image_size", plan->bytes, "status", "ACTIVE", "created", created));
	if (plan->port != NULL)
		json_object_set(record, "port", plan->port);
	return record;
}

static struct reply store_server(struct request *request, const struct plan *plan)
{
	struct compute *compute = request->state;
	json_t *record = record_of(plan);
	if (request->user != NULL)
		json_object_set_new(record, LOGIN_OWNER, need(json_string(request->user)));
	int status = store_put(compute->servers, record);
	if (status == 0)
		return reply_created("servers", record);
	json_decref(record);
	struct reply ignored;
	if (plan->port != NULL && !give_port_back(request, plan->port, &ignored))
		reply_drop(&ignored);
	return reply_disk_error(status, "store the server");
}

static struct reply create(struct request *request)
{
	struct plan plan = {0};
	struct reply reply;
	struct compute *compute = request->state;
	if (read_plan(request->json, &plan, &reply) && record_quota_left(compute->servers, request, "servers", &reply) &&
	    fetch_image(request, &plan, &reply) && take_port(request, &plan, &reply))
		reply = store_server(request, &plan);
	json_decref(plan.port);
	json_decref(plan.image_record);
	return reply;
}

static struct reply list(struct request *request)
{
	struct compute *compute = request->state;
	return reply_json(200, json_pack("{s:o}", "servers", store_list(compute->servers)));
}

static struct reply get(struct request *request)
{
	struct compute *compute = request->state;
	json_t *record = store_get(compute->servers, request->id);
	return record == NULL ? no_server(request->id) : reply_json(200, record);
}

static struct reply delete (struct request *request)
{
	struct compute *compute = request->state;
	json_t *record = store_get(compute->servers, request->id);
	if (record == NULL)
		return no_server(request->id);
	struct reply failure;
	/* First the port: a server that stays can be deleted again, but a port whose server is gone is lost. */
	bool given_back = give_port_back(request, json_object_get(record, "port"), &failure);
	json_decref(record);
	if (!given_back)
		return failure;
	store_lock(compute->servers);
	int status = store_remove(compute->servers, request->id);
	store_unlock(compute->servers);
	if (status == -ENOENT)
		return no_server(request->id);
	return status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the server");
}

/* ---- actions ------------------------------------------------------------------------------------------------------ */

static const struct action {
	const char *name, *from, *to;
} actions[] = {
	{"start", "SHUTOFF", "ACTIVE"},
	{"stop", "ACTIVE", "SHUTOFF"},
	{"reboot", "ACTIVE", "ACTIVE"},
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

/* Consumes the record. The store is locked. */
static struct reply act(struct compute *compute, json_t *record, const struct action *action)
{
	const char *status = json_string_value(json_object_get(record, "status"));
	struct reply reply;
	if (status == NULL || strcmp(status, action->from) != 0) {
		reply = reply_error(409, "cannot %s a server that is %s; it must be %s", action->name, status, action->from);
		json_decref(record);
		return reply;
	}
	json_object_set_new(record, "status", json_string(action->to));
	int stored = store_put(compute->servers, record);
	if (stored == 0)
		return reply_json(202, record);
	json_decref(record);
	return reply_disk_error(stored, "store the server");
}

static struct reply post_action(struct request *request)
{
	struct compute *compute = request->state;
	const struct action *action = action_of(request->json);
	store_lock(compute->servers);
	json_t *record = store_get(compute->servers, request->id);
	struct reply reply;
	if (record == NULL) {
		reply = no_server(request->id);
	} else if (action == NULL) {
		reply = reply_error(400, "the body must have one member, the action: start, stop or reboot");
		json_decref(record);
	} else {
		reply = act(compute, record, action);
	}
	store_unlock(compute->servers);
	return reply;
}

/* ---- the service -------------------------------------------------------------------------------------------------- */

static void *start(const char *data, const char *site)
{
	(void)site;
	struct store *servers = store_open(data, "servers");
	if (servers == NULL)
		return NULL;
	struct compute *compute = NEW(struct compute);
	compute->servers = servers;
	return compute;
}

static void stop(void *context)
{
	struct compute *compute = context;
	store_close(compute->servers);
	free(compute);
}

static const struct route routes[] = {
	{.method = "GET", .pattern = "/servers", .handle = list},
	{.method = "POST", .pattern = "/servers", .body = ROUTE_JSON, .handle = create},
	{.method = "GET", .pattern = "/servers/{id}", .handle = get},
	{.method = "DELETE", .pattern = "/servers/{id}", .handle = delete},
	{.method = "POST", .pattern = "/servers/{id}/action", .body = ROUTE_JSON, .handle = post_action},
	{.pattern = NULL},
};

const struct service compute_service = {.name = "compute", .routes = routes, .start = start, .stop = stop};
