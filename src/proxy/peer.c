/* Other sites, as one loop sees them: a server each, found by the id of the site.
 *
 * A peer outlives the snapshots that it is in, so that its connections do. It goes when the site has, when it is met at
 * another address, or when it was shut out; a request that still uses it ends first.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <stdlib.h>

static struct str key_of(const struct proxy_peer *peer)
{
	return str_make((const char *)&peer->id, sizeof(peer->id));
}

static void peer_free(struct proxy_peer *peer)
{
	free((void *)peer->name.at);
	free(peer);
}

static struct proxy_peer *peer_new(struct proxy *proxy, const struct site_place *place)
{
	struct proxy_peer *peer = calloc(1, sizeof(*peer));
	char *name = strndup(place->name.at, place->name.length);
	CHECK(peer && name);
	struct http_address address;
	http_address_of_site(&address, &place->address);
	proxy_target_init(&peer->target, proxy, &address);
	peer->id = peer->target.site = place->id;
	peer->name = str_make(name, place->name.length);
	proxy_peer_watch_init(peer);
	map_set(&proxy->peers, key_of(peer), peer);
	return peer;
}

struct proxy_peer *proxy_peer_find(struct proxy *proxy, site_id id)
{
	return map_get(&proxy->peers, str_make((const char *)&id, sizeof(id)));
}

struct proxy_peer *proxy_peer_take(struct proxy *proxy, uint32_t number)
{
	const struct site_place *place = &proxy->mesh->sites->places[number];
	struct proxy_peer *peer = proxy_peer_find(proxy, place->id);
	if (!peer)
		peer = peer_new(proxy, place);
	peer->uses++;
	return peer;
}

struct proxy_peer *proxy_peer_take_site(struct proxy *proxy, site_id id)
{
	uint32_t number = proxy->mesh ? site_snapshot_find(proxy->mesh->sites, id) : SCOPE_NO_INDEX;
	return number == SCOPE_NO_INDEX ? NULL : proxy_peer_take(proxy, number);
}

void proxy_peer_give(struct proxy_peer *peer)
{
	if (--peer->uses == 0 && peer->target.closed)
		peer_free(peer);
}

/* Is the site still where the peer was made for? */
static bool is_there(const struct proxy *proxy, const struct proxy_peer *peer)
{
	if (!proxy->mesh || site_snapshot_is_removed(proxy->mesh->sites, peer->id))
		return false;
	uint32_t number = site_snapshot_find(proxy->mesh->sites, peer->id);
	if (number == SCOPE_NO_INDEX)
		return false;
	struct http_address address;
	http_address_of_site(&address, &proxy->mesh->sites->places[number].address);
	return strcmp(address.text, peer->target.address.text) == 0;
}

void proxy_peers_review(struct proxy *proxy)
{
	for (bool again = true; again;) {
		struct str key;
		void *value;
		again = false;
		for (size_t cursor = 0; !again && map_next(&proxy->peers, &cursor, &key, &value);) {
			struct proxy_peer *peer = value;
			if (is_there(proxy, peer))
				continue;
			map_remove(&proxy->peers, key);
			proxy_target_close(&peer->target);
			proxy_peer_watch_end(peer);
			proxy_paths_forget(proxy->shared->paths, peer->id);
			peer->shut_out = proxy->mesh && site_snapshot_is_removed(proxy->mesh->sites, peer->id);
			if (peer->shut_out && peer->attempts)
				proxy_peer_leave(peer);
			if (peer->uses == 0)
				peer_free(peer);
			again = true; /* the map has changed: from the start */
		}
	}
}
