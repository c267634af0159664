/* Configurations, and what is known of the other sites, are shared by the loops and by the requests that started under
 * them. */
#include "proxy/proxy.h"

#include "base/check.h"

#include <stdlib.h>

struct proxy_config *proxy_config_keep(struct proxy_config *config)
{
	atomic_fetch_add_explicit(&config->references, 1, memory_order_relaxed);
	return config;
}

static void forget_keys(struct proxy_service *service)
{
	for (uint32_t i = 0; i < service->carry_count; i++)
		for (uint32_t n = 0; n < service->carry[i].keys.count; n++)
			explicit_bzero((char *)service->carry[i].keys.at[n].at, service->carry[i].keys.at[n].length);
}

void proxy_config_drop(struct proxy_config *config)
{
	/* The last one has to see all that the others did before. */
	if (config == NULL || atomic_fetch_sub_explicit(&config->references, 1, memory_order_acq_rel) != 1)
		return;
	for (uint32_t i = 0; i < config->services_count; i++) {
		forget_keys(&config->services[i]);
		http_tls_drop(config->services[i].front_tls);
		http_tls_drop(config->services[i].instances_tls);
	}
	for (uint32_t i = 0; i < config->hooks_count; i++) {
		http_tls_drop(config->hooks[i].tls);
		explicit_bzero((char *)config->hooks[i].secret.at, config->hooks[i].secret.length);
	}
	glue_free((struct glue *)config->glue);
	/* The configuration itself lives in its arena. */
	struct arena arena = config->arena;
	arena_free(&arena);
}

struct proxy_mesh *proxy_mesh_new(struct site_snapshot *sites, struct http_tls *server, struct http_tls *client)
{
	struct proxy_mesh *mesh = calloc(1, sizeof(*mesh));
	CHECK(mesh && sites);
	atomic_init(&mesh->references, 1);
	mesh->sites = sites;
	mesh->server = server;
	mesh->client = client;
	return mesh;
}

struct proxy_mesh *proxy_mesh_keep(struct proxy_mesh *mesh)
{
	atomic_fetch_add_explicit(&mesh->references, 1, memory_order_relaxed);
	return mesh;
}

void proxy_mesh_drop(struct proxy_mesh *mesh)
{
	if (mesh == NULL || atomic_fetch_sub_explicit(&mesh->references, 1, memory_order_acq_rel) != 1)
		return;
	site_snapshot_drop(mesh->sites);
	http_tls_drop(mesh->server);
	http_tls_drop(mesh->client);
	free(mesh);
}
