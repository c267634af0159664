/* Cheops' own HTTP API, below /cheops/v1: health, version, metrics, reload, what this agent knows. */
#ifndef API_API_H
#define API_API_H

#include "proxy/proxy.h"

/* What the API asks of the agent. */
struct api_agent {
	void *context;
	/* The configuration in force: the caller drops it. Any thread. */
	struct proxy_config *(*config)(void *context);
	uint32_t proxies_count;
	struct proxy *const *proxies;
	/* Reads the file again. `done` runs in the call's loop, with "" or with what is wrong. */
	void (*reload)(void *context, const struct proxy_call *call);
};

/* The handler for struct proxy_shared; its context is the struct api_agent. */
void api_handle(void *context, const struct proxy_call *call);

/* The end of a reload: answers the call. In its loop's thread. */
void api_reload_done(struct proxy_exchange *exchange, const char *error);

#endif
