/*
 * The other services, as this one knows them: a base URL each, from the environment. A call is made on behalf of a request,
 * and takes along those of its headers that the forward mode says.
 */
#ifndef SAMPLE_PEERS_H
#define SAMPLE_PEERS_H

#include "client.h"
#include "forward.h"
#include "reply.h"

struct request;

enum peer { PEER_COMPUTE, PEER_IMAGE, PEER_NETWORK, PEERS_COUNT };

struct peers {
	const char *urls[PEERS_COUNT]; /* NULL: not known */
	struct forward forward;
	struct client *client;
};

const char *peer_name(enum peer peer);

/* The peer of this name, or PEERS_COUNT. */
enum peer peer_named(const char *name);

/* What is asked of a peer. `path` begins with a slash; `json`, if not NULL, is the body. */
struct peer_call {
	enum peer peer;
	const char *method;
	const char *path;
	json_t *json;
	void (*piece)(void *context, const char *bytes, size_t length); /* as in struct client_call */
	void *context;
};

/* Like client_make(); not knowing where the peer is counts as not reaching it. */
void peer_make(struct request *request, const struct peer_call *call, struct client_answer *answer);

/* 502, saying what was asked of whom and what came of it, with the peer's status ("upstream_status") if it had one. */
struct reply peer_failure(const struct peer_call *call, const struct client_answer *answer);

#endif
