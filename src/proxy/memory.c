/* Which scope belongs to an id that an application forwards: a trace id, or a request id.
 *
 * 1. A scoped request goes to a service that forwards such an id. The agent makes sure that it has one and remembers
 *    (id, scope).
 * 2. The service calls another one, through the agent, with that id. The agent finds the scope.
 * 3. Calls may come late: after the answer, out of a queue. So entries live on for a while.
 *
 * What can go wrong: an id that two requests share while their scopes differ (a client that traces a whole session under one
 * id) tells nothing for certain any more. The entry is then marked, and calls that carry the id run locally and are counted.
 * A flood of ids pushes out the oldest; their calls run locally too.
 *
 * A request with a known id to the very service that the scoped request was sent to is not a call of that service: it is
 * another request of a client that keeps its id. It is left alone, and from then on the id tells nothing for certain.
 *
 * What goes wrong with a call, by our own account, is kept with the id as well: it tells why the service could not do what it was asked for
 * (shape.c). It is told once, and forgotten when a later call of the same service goes well, or the client asks for something else.
 *
 * Several loops use the table. It is split into stripes with a lock each, held for a look-up and a short copy; only requests
 * that carry such an id come here, and only where some service is configured to forward it.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"
#include "base/map.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

enum { STRIPES = 64, STRIPE_MOST = 1024, LIFE_MS = 10 * 60 * 1000 };

struct entry {
	struct str id;
	struct str service;
	struct str scope;
	bool ambiguous;
	bool travelled;      /* the workflow has reached further services, which may call the first one in turn */
	struct wrong *wrong; /* what became of a call; NULL: nothing bad */
	uint64_t until_ms;
	struct entry *older, *newer;
};

/* In one allocation with its texts. */
struct wrong {
	struct proxy_blame blame;
};

struct stripe {
	pthread_mutex_t lock;
	struct map map;
	struct entry *oldest, *newest;
};

struct proxy_memory {
	struct hash_key key;
	struct stripe stripes[STRIPES];
};

struct proxy_memory *proxy_memory_new(struct hash_key key)
{
	struct proxy_memory *memory = calloc(1, sizeof(*memory));
	CHECK(memory);
	memory->key = key;
	for (int i = 0; i < STRIPES; i++) {
		pthread_mutex_init(&memory->stripes[i].lock, NULL);
		map_init(&memory->stripes[i].map, key);
	}
	return memory;
}

static void unlink_entry(struct stripe *stripe, struct entry *entry)
{
	*(entry->older ? &entry->older->newer : &stripe->oldest) = entry->newer;
	*(entry->newer ? &entry->newer->older : &stripe->newest) = entry->older;
}

static void link_newest(struct stripe *stripe, struct entry *entry)
{
	entry->newer = NULL;
	entry->older = stripe->newest;
	*(stripe->newest ? &stripe->newest->newer : &stripe->oldest) = entry;
	stripe->newest = entry;
}

static void forget(struct stripe *stripe, struct entry *entry)
{
	map_remove(&stripe->map, entry->id);
	unlink_entry(stripe, entry);
	free(entry->wrong);
	free(entry);
}

void proxy_memory_free(struct proxy_memory *memory)
{
	for (int i = 0; i < STRIPES; i++) {
		struct stripe *stripe = &memory->stripes[i];
		while (stripe->oldest)
			forget(stripe, stripe->oldest);
		map_free(&stripe->map);
		pthread_mutex_destroy(&stripe->lock);
	}
	free(memory);
}

static struct stripe *stripe_of(struct proxy_memory *memory, struct str id)
{
	return &memory->stripes[hash_bytes(&memory->key, id) >> 58 & (STRIPES - 1)];
}

struct str proxy_memory_digest(const struct proxy_memory *memory, struct str secret, char id[PROXY_ID_MOST_BYTES])
{
	int length = snprintf(id, PROXY_ID_MOST_BYTES, "%016" PRIx64, hash_bytes(&memory->key, secret));
	return str_make(id, (size_t)length);
}

static struct str keep(char **at, struct str text)
{
	struct str kept = str_make(*at, text.length);
	if (text.length)
		memcpy(*at, text.at, text.length);
	*at += text.length;
	return kept;
}

/* One allocation holds the entry and its texts. */
static struct entry *entry_new(struct str id, struct str service, struct str scope)
{
	struct entry *entry = calloc(1, sizeof(*entry) + id.length + service.length + scope.length);
	CHECK(entry);
	char *at = (char *)(entry + 1);
	entry->id = keep(&at, id);
	entry->service = keep(&at, service);
	entry->scope = keep(&at, scope);
	return entry;
}

static void forgive(struct entry *entry)
{
	free(entry->wrong);
	entry->wrong = NULL;
}

void proxy_memory_put(struct proxy_memory *memory, struct str id, struct str service, struct str scope, uint64_t now_ms)
{
	if (id.length == 0 || id.length > PROXY_ID_MOST_BYTES)
		return;
	struct stripe *stripe = stripe_of(memory, id);
	pthread_mutex_lock(&stripe->lock);
	while (stripe->oldest && (stripe->oldest->until_ms <= now_ms || stripe->map.count >= STRIPE_MOST))
		forget(stripe, stripe->oldest);
	struct entry *entry = map_get(&stripe->map, id);
	if (entry) {
		entry->ambiguous |= !str_equal(entry->scope, scope);
		entry->travelled |= !str_equal(entry->service, service);
		if (str_equal(entry->service, service))
			forgive(entry); /* another request of the same client */
		unlink_entry(stripe, entry);
	} else {
		entry = entry_new(id, service, scope);
		map_set(&stripe->map, entry->id, entry);
	}
	entry->until_ms = now_ms + LIFE_MS;
	link_newest(stripe, entry);
	pthread_mutex_unlock(&stripe->lock);
}

enum proxy_memory_found proxy_memory_get(struct proxy_memory *memory, struct str id, struct str service,
                                         struct arena *arena, struct str *scope, uint64_t now_ms)
{
	if (id.length == 0 || id.length > PROXY_ID_MOST_BYTES)
		return PROXY_MEMORY_NONE;
	enum proxy_memory_found found = PROXY_MEMORY_NONE;
	struct stripe *stripe = stripe_of(memory, id);
	pthread_mutex_lock(&stripe->lock);
	struct entry *entry = map_get(&stripe->map, id);
	bool known = entry && entry->until_ms > now_ms;
	if (known && !entry->travelled && str_equal(entry->service, service)) {
		entry->ambiguous = true;
	} else if (known) {
		found = entry->ambiguous ? PROXY_MEMORY_AMBIGUOUS : PROXY_MEMORY_FOUND;
		if (found == PROXY_MEMORY_FOUND)
			*scope = str_make(arena_copy(arena, entry->scope.at, entry->scope.length), entry->scope.length);
	}
	pthread_mutex_unlock(&stripe->lock);
	return found;
}

/* ---- What went wrong --------------------------------------------------------------------------------------------- */

static struct wrong *wrong_new(const struct proxy_blame *blame)
{
	struct str detail = blame->detail;
	if (detail.length > PROXY_BLAME_MOST_BYTES)
		detail.length = PROXY_BLAME_MOST_BYTES;
	struct wrong *wrong = calloc(1, sizeof(*wrong) + blame->service.length + blame->site.length + detail.length);
	CHECK(wrong);
	char *at = (char *)(wrong + 1);
	wrong->blame.status = blame->status;
	wrong->blame.service = keep(&at, blame->service);
	wrong->blame.site = keep(&at, blame->site);
	wrong->blame.detail = keep(&at, detail);
	return wrong;
}

void proxy_memory_blame(struct proxy_memory *memory, struct str id, const struct proxy_blame *blame)
{
	struct stripe *stripe = stripe_of(memory, id);
	pthread_mutex_lock(&stripe->lock);
	struct entry *entry = map_get(&stripe->map, id);
	if (entry) {
		forgive(entry);
		entry->wrong = wrong_new(blame);
	}
	pthread_mutex_unlock(&stripe->lock);
}

void proxy_memory_absolve(struct proxy_memory *memory, struct str id, struct str service)
{
	struct stripe *stripe = stripe_of(memory, id);
	pthread_mutex_lock(&stripe->lock);
	struct entry *entry = map_get(&stripe->map, id);
	if (entry && entry->wrong && str_equal(entry->wrong->blame.service, service))
		forgive(entry);
	pthread_mutex_unlock(&stripe->lock);
}

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

bool proxy_memory_blamed(struct proxy_memory *memory, struct str id, struct arena *arena, struct proxy_blame *blame)
{
	struct stripe *stripe = stripe_of(memory, id);
	pthread_mutex_lock(&stripe->lock);
	struct entry *entry = map_get(&stripe->map, id);
	bool known = entry && entry->wrong;
	if (known) {
		const struct proxy_blame *kept = &entry->wrong->blame;
		*blame = (struct proxy_blame){.status = kept->status,
		                              .service = copy(arena, kept->service),
		                              .site = copy(arena, kept->site),
		                              .detail = copy(arena, kept->detail)};
		forgive(entry);
	}
	pthread_mutex_unlock(&stripe->lock);
	return known;
}
