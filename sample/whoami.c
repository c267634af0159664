/* What every service answers: that it lives, who it is, and whom it reaches. */
#include "login.h"
#include "memory.h"
#include "peers.h"
#include "routing.h"

static struct reply healthz(struct request *request)
{
	(void)request;
	return reply_json(200, json_pack("{s:s}", "status", "ok"));
}

/* What the peer says of itself; NULL if it says nothing of use, and then `*failure` tells why. */
static json_t *ask_peer(struct request *request, enum peer peer, struct reply *failure)
{
	struct peer_call call = {.peer = peer, .method = "GET", .path = "/whoami"};
	struct client_answer answer;
	peer_make(request, &call, &answer);
	json_t *said = answer.status == 200 ? json_loadb(answer.body, answer.body_bytes, 0, NULL) : NULL;
	if (said == NULL)
		*failure = peer_failure(&call, &answer);
	client_answer_free(&answer);
	return said;
}

static struct reply whoami(struct request *request)
{
	const struct server_options *options = request->options;
	json_t *self = need(json_pack("{s:s, s:s}", "service", options->service->name, "site", options->site));
	const char *via = request_query(request, "via");
	if (via == NULL)
		return reply_json(200, self);
	enum peer peer = peer_named(via);
	struct reply failure = {0};
	json_t *said = NULL;
	if (peer == PEERS_COUNT)
		failure = reply_error(400, "via=%.64s: no such service; accepted: compute, image, network", via);
	else
		said = ask_peer(request, peer, &failure);
	if (said == NULL) {
		json_decref(self);
		return failure;
	}
	json_object_set_new(self, "via", said);
	return reply_json(200, self);
}

const struct route common_routes[] = {
	{.method = "GET", .pattern = "/whoami", .handle = whoami},
	{.method = "GET", .pattern = "/healthz", .open = true, .handle = healthz},
	{.method = "POST", .pattern = "/tokens", .body = ROUTE_JSON, .open = true, .handle = login_post},
	{.pattern = NULL},
};
