/*
 * The network service: one flat network, and ports on it. Its pools are in pool.c.
 *
 * The network, 10.X.0.0/16, is made at the first start, X from the name of the site so that sites differ, and kept. Which
 * addresses are taken is known from the ports that are stored. An address is given again only after its port was deleted,
 * and as late as possible, since somebody may remember whose it was.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "memory.h"
#include "pool.h"
#include "server.h"
#include "store.h"

enum {
	HOSTS_COUNT = 65536, /* of a /16 */
	HOST_GATEWAY = 1,
	HOST_FIRST = 2,
	HOST_LAST = HOSTS_COUNT - 2, /* the last one is for broadcasts */
};

struct network {
	struct store *networks, *ports, *pools;
	char id[UUID_BYTES];
	unsigned second_byte; /* the X of 10.X.0.0 */
	pthread_mutex_t lock; /* of the two below */
	uint8_t taken[HOSTS_COUNT];
	unsigned next; /* where the search for an address begins */
};

/* ---- addresses ---------------------------------------------------------------------------------------------------- */

/* The host number of 0 to 65535, or -1 if there is none free. */
static int take_host(struct network *network)
{
	int host = -1;
	pthread_mutex_lock(&network->lock);
	for (unsigned tries = 0; tries < HOSTS_COUNT && host < 0; tries++) {
		unsigned candidate = network->next;
		network->next = candidate >= HOST_LAST ? HOST_FIRST : candidate + 1;
		if (!network->taken[candidate])
			host = (int)candidate;
	}
	if (host >= 0)
		network->taken[host] = 1;
	pthread_mutex_unlock(&network->lock);
	return host;
}

static void give_host_back(struct network *network, int host)
{
	pthread_mutex_lock(&network->lock);
	network->taken[host] = 0;
	pthread_mutex_unlock(&network->lock);
}

/* The host number of a port, or -1 if its address is not of this network. */
static int host_of(const struct network *network, const json_t *port)
{
	const char *text = json_string_value(json_object_get(port, "address"));
	uint8_t bytes[4];
	if (text == NULL || inet_pton(AF_INET, text, bytes) != 1)
		return -1;
	return bytes[0] == 10 && bytes[1] == network->second_byte ? bytes[2] * 256 + bytes[3] : -1;
}

/* ---- ports -------------------------------------------------------------------------------------------------------- */

static struct reply no_port(const char *id)
{
	return reply_error(404, "no port %s", id);
}

static json_t *port_of(const struct network *network, unsigned host)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	char address[32];
	char mac[32];
	uuid_make(id);
	timestamp_make(created);
	snprintf(address, sizeof(address), "10.%u.%u.%u", network->second_byte, host / 256, host % 256);
	/* Locally administered, and as unique as the address is. */
	snprintf(mac, sizeof(mac), "02:00:0a:%02x:%02x:%02x", network->second_byte, host / 256, host % 256);
	return need(json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", id, "address", address, "mac", mac, "network", network->id,
	                      "created", created));
}

static struct reply create(struct request *request)
{
	struct network *network = request->state;
	struct reply refusal;
	const char *wanted = network->id;
	if (json_object_get(request->json, "network") != NULL)
		wanted = field_text(request->json, "network", LIMIT_ID_BYTES, &refusal);
	if (wanted == NULL)
		return refusal;
	if (strcmp(wanted, network->id) != 0)
		return reply_error(400, "no network %s; the one here is %s", wanted, network->id);
	int host = take_host(network);
	if (host < 0)
		return reply_error(409, "every address of network %s is taken", network->id);
	json_t *port = port_of(network, (unsigned)host);
	int status = store_put(network->ports, port);
	if (status == 0)
		return reply_created("ports", port);
	give_host_back(network, host);
	json_decref(port);
	return reply_disk_error(status, "store the port");
}

static struct reply delete (struct request *request)
{
	struct network *network = request->state;
	store_lock(network->ports);
	json_t *port = store_get(network->ports, request->id);
	int status = store_remove(network->ports, request->id);
	store_unlock(network->ports);
	int host = host_of(network, port);
	if (status == 0 && host >= 0)
		give_host_back(network, host);
	json_decref(port);
	if (status == -ENOENT)
		return no_port(request->id);
	return status == 0 ? reply_empty(204) : reply_disk_error(status, "delete the port");
}

static struct reply list(struct request *request)
{
	struct network *network = request->state;
	return reply_json(200, json_pack("{s:o}", "ports", store_list(network->ports)));
}

static struct reply get(struct request *request)
{
	struct network *network = request->state;
	json_t *port = store_get(network->ports, request->id);
	return port == NULL ? no_port(request->id) : reply_json(200, port);
}

/* ---- networks ----------------------------------------------------------------------------------------------------- */

static struct reply list_networks(struct request *request)
{
	struct network *network = request->state;
	return reply_json(200, json_pack("{s:o}", "networks", store_list(network->networks)));
}

static struct reply get_network(struct request *request)
{
	struct network *network = request->state;
	json_t *record = store_get(network->networks, request->id);
	return record == NULL ? reply_error(404, "no network %s", request->id) : reply_json(200, record);
}

/* FNV-1a, of which the lowest byte: names that differ in their last letter only (Site1, Site2) never share a network. */
static unsigned second_byte_of(const char *site)
{
	uint32_t hash = 2166136261U;
	for (const char *at = site; *at != '\0'; at++)
		hash = (hash ^ (uint8_t)*at) * 16777619U;
	return hash & 0xff;
}

static int make_network(struct network *network, const char *site)
{
	unsigned x = second_byte_of(site);
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	char *cidr = text_of("10.%u.0.0/16", x);
	char *gateway = text_of("10.%u.0.%d", x, HOST_GATEWAY);
	uuid_make(id);
	timestamp_make(created);
	json_t *record = need(json_pack("{s:s, s:s, s:s, s:s, s:s}", "id", id, "name", "flat", "cidr", cidr, "gateway",
	                                gateway, "created", created));
	int status = store_put(network->networks, record);
	json_decref(record);
	free(gateway);
	free(cidr);
	return status;
}

/* ---- the service -------------------------------------------------------------------------------------------------- */

static void stop(void *context)
{
	struct network *network = context;
	store_close(network->pools);
	store_close(network->ports);
	store_close(network->networks);
	pthread_mutex_destroy(&network->lock);
	free(network);
}

/* False if what is stored is not a network that this service made. */
static bool adopt_network(struct network *network)
{
	json_t *networks = store_list(network->networks);
	json_t *record = json_array_get(networks, 0);
	const char *id = json_string_value(json_object_get(record, "id"));
	const char *gateway = json_string_value(json_object_get(record, "gateway"));
	uint8_t bytes[4];
	bool good = id != NULL && gateway != NULL && inet_pton(AF_INET, gateway, bytes) == 1 && bytes[0] == 10;
	if (good) {
		network->second_byte = bytes[1];
		snprintf(network->id, sizeof(network->id), "%s", id);
	}
	json_decref(networks);
	return good;
}

static void adopt_ports(struct network *network)
{
	json_t *ports = store_list(network->ports);
	size_t i;
	json_t *port;
	network->next = HOST_FIRST;
	json_array_foreach(ports, i, port)
	{
		int host = host_of(network, port);
		if (host >= 0)
			network->taken[host] = 1;
		if (host >= (int)network->next && host < HOST_LAST)
			network->next = (unsigned)host + 1;
	}
	json_decref(ports);
}

static bool is_first_start(struct network *network)
{
	json_t *networks = store_list(network->networks);
	bool first = json_array_size(networks) == 0;
	json_decref(networks);
	return first;
}

static void *start(const char *data, const char *site)
{
	struct network *network = NEW(struct network);
	pthread_mutex_init(&network->lock, NULL);
	network->networks = store_open(data, "networks");
	network->ports = store_open(data, "ports");
	network->pools = store_open(data, "pools");
	if (network->networks == NULL || network->ports == NULL || network->pools == NULL)
		goto failed;
	if (is_first_start(network)) {
		int status = make_network(network, site);
		if (status != 0)
			fprintf(stderr, "cheops-sample: cannot store the network: %s\n", strerror(-status));
	}
	if (!adopt_network(network)) {
		fprintf(stderr, "cheops-sample: %s/networks has no network of the form 10.X.0.0/16\n", data);
		goto failed;
	}
	adopt_ports(network);
	return network;
failed:
	stop(network);
	return NULL;
}

struct store *pools_of(const struct request *request)
{
	const struct network *network = request->state;
	return network->pools;
}

static const struct route routes[] = {
	{.method = "GET", .pattern = "/networks", .handle = list_networks},
	{.method = "GET", .pattern = "/networks/{id}", .handle = get_network},
	{.method = "GET", .pattern = "/ports", .handle = list},
	{.method = "POST", .pattern = "/ports", .body = ROUTE_JSON, .handle = create},
	{.method = "GET", .pattern = "/ports/{id}", .handle = get},
	{.method = "DELETE", .pattern = "/ports/{id}", .handle = delete},
	{.method = "GET", .pattern = "/pools", .handle = pool_list},
	{.method = "POST", .pattern = "/pools", .body = ROUTE_JSON, .handle = pool_create},
	{.method = "GET", .pattern = "/pools/{id}", .handle = pool_get},
	{.method = "PUT", .pattern = "/pools/{id}", .body = ROUTE_JSON, .handle = pool_put},
	{.method = "PATCH", .pattern = "/pools/{id}", .body = ROUTE_PATCH, .handle = pool_patch},
	{.method = "DELETE", .pattern = "/pools/{id}", .handle = pool_delete},
	{.method = "POST", .pattern = "/pools/{id}/grow", .body = ROUTE_JSON, .handle = pool_grow},
	{.method = "POST", .pattern = "/pools/{id}/notes", .body = ROUTE_JSON, .handle = pool_note},
	{.method = "POST", .pattern = "/pools/{id}/allocate", .body = ROUTE_JSON, .handle = pool_allocate},
	{.method = "POST", .pattern = "/pools/{id}/release", .body = ROUTE_JSON, .handle = pool_release},
	{.pattern = NULL},
};

const struct service network_service = {.name = "network", .routes = routes, .start = start, .stop = stop};
