/*
 * What a server needs of the other services.
 *
 * Making a server, when all goes well:
 *   1. GET /images/ID: does the image exist, what is it called;
 *   2. GET /images/ID/file: its bytes, of which only number and checksum are kept (nothing really boots here);
 *   3. GET /secrets/ID, if one is wanted, of which the checksum is kept;
 *   4. POST /ports, if a network is wanted;
 *   5. the server is stored (vm.c), and then answered with.
 * No such image, secret or network: 400, since it is the client who named it. Another service cannot be reached, or fails:
 * 502, which says which and how. The bytes are not those that the record speaks of: 502. Fails after 4: the port is given
 * back. An image without bytes is an empty one.
 *
 * The image has done its duty then, and may go. The secret is read again each time that the server starts.
 */
#include "boot.h"

#include <string.h>

#include "fields.h"
#include "limits.h"
#include "memory.h"
#include "peers.h"

/* ---- what the client asks for ------------------------------------------------------------------------------------- */

bool boot_read(const json_t *body, struct boot *boot, struct reply *refusal)
{
	boot->name = field_text(body, "name", LIMIT_NAME_BYTES, refusal);
	if (boot->name == NULL)
		return false;
	boot->image = field_text(body, "image", LIMIT_ID_BYTES, refusal);
	if (boot->image == NULL)
		return false;
	const json_t *secret = json_object_get(body, "secret");
	if (secret != NULL && !json_is_null(secret)) {
		boot->secret = field_text(body, "secret", LIMIT_ID_BYTES, refusal);
		if (boot->secret == NULL)
			return false;
	}
	json_t *network = json_object_get(body, "network");
	if (network == NULL || json_is_null(network) || json_is_false(network))
		return true;
	boot->network = network;
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

static bool fetch_bytes(struct request *request, const char *path, struct boot *boot, struct reply *failure)
{
	struct digest digest = {.bytes = 0};
	sha256_start(&digest.hash);
	struct peer_call call = {
		.peer = PEER_IMAGE, .method = "GET", .path = path, .piece = add_to_digest, .context = &digest};
	struct client_answer answer;
	peer_make(request, &call, &answer);
	sha256_finish(&digest.hash, boot->checksum);
	boot->bytes = digest.bytes;
	bool fetched = answer.status == 200 || answer.status == 204;
	if (!fetched && answer.status == 404)
		*failure = reply_error(400, "no image %s (it is gone)", boot->image);
	else if (!fetched)
		*failure = peer_failure(&call, &answer);
	client_answer_free(&answer);
	return fetched;
}

static bool bytes_fit_record(const struct boot *boot, struct reply *failure)
{
	const char *promised = json_string_value(json_object_get(boot->image_record, "checksum"));
	if (promised == NULL || strcmp(promised, boot->checksum) == 0)
		return true;
	*failure = reply_error(502, "the bytes of image %s have checksum %s, but its record says %s", boot->image,
	                       boot->checksum, promised);
	return false;
}

static bool fetch_image(struct request *request, struct boot *boot, struct reply *failure)
{
	char *id = client_escape(boot->image);
	char *path = text_of("/images/%s", id);
	char *file_path = text_of("/images/%s/file", id);
	struct peer_call call = {.peer = PEER_IMAGE, .method = "GET", .path = path};
	boot->image_record = ask(request, &call, 200, reply_error(400, "no image %s", boot->image), failure);
	bool fetched =
		boot->image_record != NULL && fetch_bytes(request, file_path, boot, failure) && bytes_fit_record(boot, failure);
	free(file_path);
	free(path);
	free(id);
	return fetched;
}

/* ---- the secret --------------------------------------------------------------------------------------------------- */

bool boot_read_secret(struct request *request, const char *secret, unsigned gone, char *checksum, struct reply *failure)
{
	char *id = client_escape(secret);
	char *path = text_of("/secrets/%s", id);
	struct peer_call call = {.peer = PEER_IMAGE, .method = "GET", .path = path};
	json_t *record = ask(request, &call, 200, reply_error(gone, "no secret %s", secret), failure);
	if (record != NULL) {
		const char *data = json_string_value(json_object_get(record, "data"));
		struct sha256 hash;
		sha256_start(&hash);
		if (data != NULL)
			sha256_add(&hash, data, strlen(data));
		sha256_finish(&hash, checksum);
	}
	bool read = record != NULL;
	json_decref(record);
	free(path);
	free(id);
	return read;
}

bool boot_fetch(struct request *request, struct boot *boot, struct reply *failure)
{
	return fetch_image(request, boot, failure) &&
	       (boot->secret == NULL || boot_read_secret(request, boot->secret, 400, boot->secret_checksum, failure));
}

/* ---- the port ----------------------------------------------------------------------------------------------------- */

bool boot_take_port(struct request *request, struct boot *boot, struct reply *failure)
{
	if (boot->network == NULL)
		return true;
	json_t *order = need(json_object());
	if (json_is_string(boot->network))
		json_object_set(order, "network", boot->network);
	struct peer_call call = {.peer = PEER_NETWORK, .method = "POST", .path = "/ports", .json = order};
	const char *network = json_string_value(boot->network);
	boot->port = ask(request, &call, 201, reply_error(400, "no network %s", network == NULL ? "" : network), failure);
	json_decref(order);
	return boot->port != NULL;
}

/* That the port is not there any more is as good as giving it back. */
bool boot_give_port_back(struct request *request, const json_t *port, struct reply *failure)
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

void boot_drop(struct boot *boot)
{
	json_decref(boot->port);
	json_decref(boot->image_record);
}
