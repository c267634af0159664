/* Bringing things to where they are required (docs/requirements.md).
 *
 * What is wanted are items of services of this site, and sites at which each is to be. One that is no replicant yet becomes one, with this site as its
 * only member (src/replica/existing.c); then it is extended to each site that has it not (members.c), as `cheops replicant extend` does.
 * What it requires itself, by its description, comes along.
 *
 *   1. each thing is found, or read through its service, and adopted; what it requires joins the things: so each is a replicant, and has
 *      a meta-id, before any copy is made that refers to it
 *   2. they are extended one after the other, the last found first
 *   3. if that is wished: until all are at their sites
 *
 * Told of when all of it is durable. It fails in the middle: what was adopted and extended so far stays so, and harms nobody; who asks again
 * goes on from there.
 */
#ifndef ENGINE_BRING_H
#define ENGINE_BRING_H

#include "engine/engine.h"

struct engine_wanted {
	struct str service;
	struct str path; /* of the item, as a user would ask for it: with its local id, or its meta-id */
	const site_id *sites;
	uint32_t sites_count; /* 0: it is to be a replicant, and that is all */
};

/* What became of one. */
struct engine_brought_one {
	struct replica_id id;
	struct str local_id; /* at its first site; "": not known (yet), or there is none */
	bool local_id_quoted;
};

struct engine_brought {
	/* 0; ERR_NOT_FOUND: it is not at this site; ERR_INVALID: the description has no such item; ERR_CONFLICT, ERR_LIMIT: it cannot be
	 * brought; ERR_UNAVAILABLE: not now; ERR_TIMEOUT: it is on its way */
	int code;
	struct str text;
	const struct engine_brought_one *ones; /* as many as were wanted, in that order */
};

struct engine_bring {
	const struct engine_wanted *wanted;
	uint32_t wanted_count; /* at most LIMIT_ENGINE_BROUGHT */
	struct str fields; /* of the request that requires it: who asks has to be able to read it. "": this agent asks */
	uint64_t wait_ms;  /* until all are at their sites; 0: it is enough that they are on their way */
	/* In the loop of the question, once; slices live until it returns. Or, if the engine ends before, dropped(), in the thread that closes
	 * it. */
	struct http_loop *loop;
	void (*done)(void *context, const struct engine_brought *brought);
	void (*dropped)(void *context);
	void *context;
};

/* Everything is copied. Any thread. */
void engine_bring(struct engine *engine, const struct engine_bring *bring);

#endif
