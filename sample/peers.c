#include "peers.h"

#include <stdio.h>
#include <string.h>

#include "memory.h"
#include "server.h"

static const char *const names[PEERS_COUNT] = {
	[PEER_COMPUTE] = "compute",
	[PEER_IMAGE] = "image",
	[PEER_NETWORK] = "network",
};

const char *peer_name(enum peer peer)
{
	return names[peer];
}

enum peer peer_named(const char *name)
{
	enum peer peer = PEER_COMPUTE;
	while (peer < PEERS_COUNT && strcmp(names[peer], name) != 0)
		peer++;
	return peer;
}

void peer_make(struct request *request, const struct peer_call *call, struct client_answer *answer)
{
	const struct peers *peers = request->options->peers;
	if (peers->urls[call->peer] == NULL) {
		*answer = (struct client_answer){.body = need(calloc(1, 1))};
		snprintf(answer->problem, sizeof(answer->problem), "its URL is not in the environment of this service");
		return;
	}
	struct curl_slist *headers = forward_append(&peers->forward, request, NULL);
	if (call->json != NULL)
		headers = need(curl_slist_append(headers, "Content-Type: application/json"));
	char *url = text_of("%s%s", peers->urls[call->peer], call->path);
	char *json = call->json == NULL ? NULL : need(json_dumps(call->json, JSON_COMPACT));
	client_make(peers->client,
	            &(struct client_call){.method = call->method,
	                                  .url = url,
	                                  .json = json,
	                                  .headers = headers,
	                                  .piece = call->piece,
	                                  .context = call->context},
	            answer);
	free(json);
	free(url);
	curl_slist_free_all(headers);
}

struct reply peer_failure(const struct peer_call *call, const struct client_answer *answer)
{
	const char *name = peer_name(call->peer);
	if (answer->status == 0)
		return reply_error(502, "the %s service cannot be reached for %s %s: %s", name, call->method, call->path,
		                   answer->problem);
	struct reply reply = reply_error(502, "the %s service answered %u to %s %s: %.300s", name, answer->status,
	                                 call->method, call->path, answer->body_bytes > 0 ? answer->body : "(nothing)");
	json_object_set_new(json_object_get(reply.json, "error"), "upstream_status", json_integer(answer->status));
	return reply;
}
