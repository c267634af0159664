/* One proxy per loop: its fronts, and the servers of its configuration. */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <stdlib.h>

/* Each loop is the only writer of its counters, so this needs no locked instruction. */
void proxy_count(atomic_uint_least64_t *counter, int64_t change)
{
	uint64_t value = atomic_load_explicit(counter, memory_order_relaxed);
	atomic_store_explicit(counter, value + (uint64_t)change, memory_order_relaxed);
}

const struct proxy_counters *proxy_counters(const struct proxy *proxy)
{
	return &proxy->counters;
}

uint64_t proxy_random(struct proxy *proxy)
{
	uint64_t input[2] = {++proxy->random_state, (uint64_t)(uintptr_t)proxy};
	return hash_bytes(&proxy->shared->hash_key, str_make((const char *)input, sizeof(input)));
}

struct proxy *proxy_new(struct http_loop *loop, struct proxy_shared *shared)
{
	struct proxy *proxy = calloc(1, sizeof(*proxy));
	CHECK(proxy);
	proxy->loop = loop;
	proxy->shared = shared;
	proxy->scopes = scope_cache_new(shared->hash_key);
	map_init(&proxy->peers, shared->hash_key);
	return proxy;
}

/* ---- Configurations --------------------------------------------------------------------------------------------- */

/* A pseudonym has to be a token: what a site's name has of other characters is percent-encoded. */
static void make_via(struct proxy_state *state)
{
	buf_put(&state->via, STR("Via: 1.1 "));
	size_t start = state->via.length;
	percent_encode(&state->via, state->config->site);
	size_t length = state->via.length - start;
	buf_put(&state->via, STR("\r\n"));
	state->via_name = str_make(state->via.at + start, length);
}

/* The name of a metric is a token as well; there, other characters become `_`. */
void proxy_put_metric(struct buf *out, struct str site)
{
	for (size_t i = 0; i < site.length; i++) {
		unsigned char c = (unsigned char)site.at[i];
		bool letter = (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
		bool token = letter || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
		buf_put_char(out, (char)(token ? c : '_'));
	}
}

static struct proxy_state *state_new(struct proxy *proxy, struct proxy_config *config)
{
	struct proxy_state *state = calloc(1, sizeof(*state));
	CHECK(state);
	state->proxy = proxy;
	state->config = proxy_config_keep(config);
	state->current = true;
	make_via(state);
	proxy_put_metric(&state->metric, config->site);
	state->backends = calloc(config->services_count, sizeof(*state->backends));
	CHECK(state->backends);
	for (uint32_t i = 0; i < config->services_count; i++) {
		const struct proxy_service *service = &config->services[i];
		struct proxy_backend *backend = &state->backends[i];
		backend->service = service;
		backend->instances = calloc(service->instances_count, sizeof(*backend->instances));
		CHECK(backend->instances);
		for (uint32_t n = 0; n < service->instances_count; n++) {
			proxy_target_init(&backend->instances[n], proxy, &service->instances[n]);
			backend->instances[n].tls = service->instances_tls;
			backend->instances[n].tls_name = service->instances_tls ? service->instances_names[n] : NULL;
		}
		for (uint32_t n = 0; n < service->carry_count; n++)
			state->forwarding |= service->carry[n].kind >= PROXY_CARRY_TRACEPARENT;
	}
	state->quotas = calloc(config->policy.rules_count + 1, sizeof(struct proxy_quota *));
	CHECK(state->quotas);
	for (uint32_t i = 0; i < config->policy.rules_count; i++)
		state->quotas[i] = proxy_quota_take(proxy->shared->quotas, config->policy.rules[i].name);
	return state;
}

static void state_free(struct proxy_state *state)
{
	for (uint32_t i = 0; i < state->config->services_count; i++)
		free(state->backends[i].instances);
	free(state->backends);
	for (uint32_t i = 0; i < state->config->policy.rules_count; i++)
		proxy_quota_give(state->proxy->shared->quotas, state->quotas[i]);
	free(state->quotas);
	buf_free(&state->via);
	buf_free(&state->metric);
	proxy_config_drop(state->config);
	free(state);
}

void proxy_state_release(struct proxy_state *state)
{
	if (!state->current && state->exchanges == 0)
		state_free(state);
}

/* No new request comes to it; idle connections are closed. */
static void state_retire(struct proxy_state *state)
{
	state->current = false;
	for (uint32_t i = 0; i < state->config->services_count; i++)
		for (uint32_t n = 0; n < state->config->services[i].instances_count; n++)
			proxy_target_close(&state->backends[i].instances[n]);
	proxy_state_release(state);
}

/* ---- Fronts ----------------------------------------------------------------------------------------------------- */

static void front_release(struct http_source *source)
{
	free(source);
}

static struct proxy_front *find_front(struct proxy *proxy, const char *address)
{
	for (uint32_t i = 0; i < proxy->fronts_count; i++)
		if (strcmp(proxy->fronts[i]->address, address) == 0)
			return proxy->fronts[i];
	return NULL;
}

/* Opens a front, or gives one that is open its new meaning. */
static void set_front(struct proxy *proxy, enum proxy_front_kind kind, uint32_t service, const char *address, int fd)
{
	const struct proxy_config *config = proxy->state->config;
	struct proxy_front *front = fd < 0 ? find_front(proxy, address) : calloc(1, sizeof(*front));
	CHECK(front);
	front->proxy = proxy;
	front->kind = kind;
	front->service = service;
	front->tls = kind == PROXY_FRONT_SERVICE ? config->services[service].front_tls : NULL;
	front->wanted = true;
	if (fd < 0)
		return;
	CHECK(strlen(address) < sizeof(front->address) && proxy->fronts_count < PROXY_LISTENERS_MOST);
	memcpy(front->address, address, strlen(address) + 1);
	front->listener.accepted = proxy_client_accept;
	front->listener.source.release = front_release;
	int code = http_listener_start(&front->listener, proxy->loop, fd, NULL);
	CHECK(code == 0); /* the descriptor is good, and epoll has room for one per address */
	proxy->fronts[proxy->fronts_count++] = front;
}

/* Closes the fronts that are not wanted. Connections that wait there are taken first: they were accepted by the kernel. */
static void close_fronts(struct proxy *proxy)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < proxy->fronts_count; i++) {
		struct proxy_front *front = proxy->fronts[i];
		if (front->wanted) {
			front->wanted = false;
			proxy->fronts[kept++] = front;
			continue;
		}
		for (uint32_t before = UINT32_MAX; before != proxy->clients_count;) {
			before = proxy->clients_count;
			front->listener.source.ready(&front->listener.source, 0);
		}
		http_listener_stop(&front->listener);
	}
	proxy->fronts_count = kept;
}

/* Connections stay with their service, which may have another number now, or be gone. */
static void move_clients(struct proxy *proxy, const struct proxy_config *before, const struct proxy_config *after)
{
	for (struct proxy_client *client = proxy->clients; client; client = client->next) {
		if (client->kind != PROXY_FRONT_SERVICE || client->service == SCOPE_NO_INDEX)
			continue;
		struct str name = before->services[client->service].name;
		client->service = SCOPE_NO_INDEX;
		for (uint32_t i = 0; i < after->services_count; i++)
			if (str_equal(after->services[i].name, name))
				client->service = i;
	}
}

static void drop_kept(struct proxy *proxy)
{
	while (proxy->kept) {
		struct proxy_exchange *exchange = proxy->kept;
		proxy->kept = exchange->next_kept;
		proxy_exchange_destroy(exchange);
	}
	proxy->kept_count = 0;
}

void proxy_configure(struct proxy *proxy, struct proxy_config *config, const int *descriptors)
{
	struct proxy_state *before = proxy->state;
	proxy->state = state_new(proxy, config);
	set_front(proxy, PROXY_FRONT_API, 0, config->api.text, descriptors[0]);
	if (config->meshed)
		set_front(proxy, PROXY_FRONT_PEER, 0, config->peer.text, descriptors[1]);
	for (uint32_t i = 0; i < config->services_count; i++)
		set_front(proxy, PROXY_FRONT_SERVICE, i, config->services[i].front.text, descriptors[2 + i]);
	close_fronts(proxy);
	if (!before)
		return;
	drop_kept(proxy); /* made under other limits */
	move_clients(proxy, before->config, config);
	state_retire(before);
}

/* Connections of sites that were shut out end now, whatever they are at; so do requests that run there. */
static void shut_out(struct proxy *proxy, const struct site_snapshot *sites)
{
	for (struct proxy_client *client = proxy->clients, *next; client; client = next) {
		next = client->next;
		struct proxy_exchange *exchange = client->exchange;
		if (client->peer && site_snapshot_is_removed(sites, client->peer)) {
			if (exchange)
				proxy_exchange_break(exchange);
			else
				proxy_client_close(client);
		} else if (exchange && exchange->peer && exchange->link &&
		           site_snapshot_is_removed(sites, exchange->peer->id)) {
			proxy_exchange_link_failed(exchange, false);
		}
	}
}

void proxy_set_mesh(struct proxy *proxy, struct proxy_mesh *mesh)
{
	proxy_mesh_drop(proxy->mesh);
	proxy->mesh = mesh ? proxy_mesh_keep(mesh) : NULL;
	proxy_peers_review(proxy);
	if (mesh && mesh->sites->removed_count > 0)
		shut_out(proxy, mesh->sites);
}

/* ---- The end ---------------------------------------------------------------------------------------------------- */

/* A request that has arrived is served, also on a connection that was idle until now; without one it is closed. */
static void stop_client(struct proxy_client *client)
{
	if (!client->exchange && !client->lingering) {
		client->conn.readable = true;
		proxy_client_run(client);
	}
	if (client->conn.source.fd < 0 || client->lingering)
		return;
	struct proxy_exchange *exchange = client->exchange;
	bool idle = exchange && exchange->phase == PROXY_READING && client->conn.in.end == 0;
	if (idle || (exchange && exchange->phase == PROXY_FEEDING))
		proxy_exchange_break(exchange);
	else if (exchange)
		exchange->close_client = true;
}

void proxy_stop(struct proxy *proxy, void (*drained)(void *context), void *context)
{
	proxy->stopping = true;
	close_fronts(proxy);
	for (struct proxy_client *client = proxy->clients, *next; client; client = next) {
		next = client->next;
		stop_client(client);
	}
	if (proxy->exchanges_count == 0) {
		drained(context);
		return;
	}
	proxy->drained = drained;
	proxy->drained_context = context;
}

void proxy_free(struct proxy *proxy)
{
	proxy->drained = NULL;
	close_fronts(proxy);
	while (proxy->clients) {
		struct proxy_client *client = proxy->clients;
		if (client->exchange)
			proxy_exchange_break(client->exchange);
		else
			proxy_client_close(client);
	}
	drop_kept(proxy);
	proxy_set_mesh(proxy, NULL);
	map_free(&proxy->peers);
	if (proxy->state)
		state_retire(proxy->state);
	scope_cache_free(proxy->scopes);
	free(proxy);
}
