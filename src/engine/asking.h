/* Asking the agent of another member what its site has of a copy: the item (verify.c), or its facets (verify_facets.c). In the engine's
 * thread. */
#ifndef ENGINE_ASKING_H
#define ENGINE_ASKING_H

#include "engine/engine_int.h"

struct asking {
	site_id site;
	struct http_call *call; /* NULL: none is under way */
	const char *unknown;    /* what it means that the agent there knows no such thing (404) */
	/* Once, perhaps before engine_asking_start() returns. `failure` "": `body` is what it answered. */
	void (*done)(struct asking *asking, struct str body, struct str failure);
};

struct asking_about {
	struct replica_id replicant;
	struct str part; /* behind the path of the copy */
	uint64_t timeout_ms;
	size_t answer_bytes;
};

void engine_asking_start(struct engine *engine, struct asking *asking, const struct asking_about *about);
/* It is not done any more. */
void engine_asking_end(struct asking *asking);

#endif
