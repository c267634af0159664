/* Configurations are shared by the loops and by the requests that started under them. */
#include "proxy/proxy.h"

struct proxy_config *proxy_config_keep(struct proxy_config *config)
{
	atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
	return config;
}

void proxy_config_drop(struct proxy_config *config)
{
	/* The last one has to see all that the others did before. */
	if (config == NULL || atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
		return;
	/* The configuration itself lives in its arena. */
	struct arena arena = config->arena;
	explicit_bzero(config->hop_key, sizeof(config->hop_key));
	arena_free(&arena);
}
