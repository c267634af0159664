/* Scopes seen before.
 *
 * A table of sets: the hash of (text, service) chooses a set, and a scope sits in any of the set's ways. A new scope takes
 * an empty way, or that of the one unused for the longest time. So a look-up costs one hash and a few comparisons, an
 * insertion never moves anything else, and nothing a client sends makes either slower; the hash is keyed, so nobody
 * outside can aim at one set. Besides the number of entries their memory is bounded: where it runs over, a hand goes
 * round the table and clears what it meets.
 *
 * An entry holds the plan for one epoch of the view. When the view has changed, the entry is made anew.
 *
 * A lease owns the arena in which its scope and plan live. The cache holds one reference, each caller another; the last
 * one to drop it frees the arena. So a plan stays valid while a request runs by it, even if its entry is long replaced.
 */
#include "base/check.h"
#include "scope/scope_int.h"

#include <stdatomic.h>

enum { WAYS = 8, SETS = LIMIT_SCOPE_CACHE_ENTRIES / WAYS };

struct scope_lease {
	atomic_uint references;
	struct arena arena; /* in which this lease itself lives too */
	struct scope *scope;
	const struct scope_plan *plan;
	struct str bound;
	uint64_t epoch;
	uint32_t at;
	bool inner;
};

struct way {
	uint64_t hash;
	uint64_t used; /* tick of the last use */
	struct scope_lease *lease;
};

struct scope_cache {
	struct arena arena;
	struct hash_key key;
	uint64_t tick;
	uint32_t hand;
	struct scope_cache_stats stats;
	struct way ways[SETS * WAYS];
};

/* ---- Leases ----------------------------------------------------------------------------------------------------- */

static struct scope_lease *lease_new(void)
{
	struct arena arena;
	arena_init(&arena, 2048);
	struct scope_lease *lease = arena_new(&arena, struct scope_lease);
	atomic_init(&lease->references, 1);
	lease->arena = arena;
	return lease;
}

const struct scope *scope_lease_scope(const struct scope_lease *lease)
{
	return lease->scope;
}

const struct scope_plan *scope_lease_plan(const struct scope_lease *lease)
{
	return lease->plan;
}

struct str scope_lease_bound(const struct scope_lease *lease)
{
	return lease->bound;
}

struct scope_lease *scope_lease_keep(struct scope_lease *lease)
{
	atomic_fetch_add_explicit(&lease->references, 1, memory_order_relaxed);
	return lease;
}

void scope_lease_drop(struct scope_lease *lease)
{
	unsigned before = atomic_fetch_sub_explicit(&lease->references, 1, memory_order_acq_rel);
	CHECK(before > 0);
	if (before > 1)
		return;
	struct arena arena = lease->arena;
	arena_free(&arena);
}

/* ---- The table -------------------------------------------------------------------------------------------------- */

struct scope_cache *scope_cache_new(struct hash_key key)
{
	struct arena arena;
	arena_init(&arena, sizeof(struct scope_cache) + 64);
	struct scope_cache *cache = arena_new(&arena, struct scope_cache);
	cache->arena = arena;
	cache->key = key;
	return cache;
}

static void clear_way(struct scope_cache *cache, struct way *way)
{
	if (!way->lease)
		return;
	cache->stats.bytes -= way->lease->arena.used_bytes;
	cache->stats.entries--;
	scope_lease_drop(way->lease);
	way->lease = NULL;
}

void scope_cache_free(struct scope_cache *cache)
{
	for (uint32_t i = 0; i < SETS * WAYS; i++)
		clear_way(cache, &cache->ways[i]);
	struct arena arena = cache->arena;
	arena_free(&arena);
}

struct scope_cache_stats scope_cache_stats(const struct scope_cache *cache)
{
	return cache->stats;
}

static uint64_t hash_request(const struct scope_cache *cache, struct str text, const struct scope_request *request)
{
	uint64_t service = hash_bytes(&cache->key, request->service) + request->inner;
	return hash_bytes(&cache->key, text) + UINT64_C(0x9e3779b97f4a7c15) * service;
}

static bool is_for(const struct way *way, uint64_t hash, struct str text, const struct scope_request *request)
{
	return way->lease && way->hash == hash && way->lease->inner == request->inner &&
	       str_equal(way->lease->scope->text, text) && str_equal(way->lease->plan->service, request->service);
}

/* The way that holds the scope, else the one to put it into. */
static struct way *find_way(struct scope_cache *cache, uint64_t hash, struct str text,
                            const struct scope_request *request)
{
	struct way *set = &cache->ways[(hash >> 32) % SETS * WAYS], *oldest = set;
	for (struct way *way = set; way < set + WAYS; way++) {
		if (is_for(way, hash, text, request))
			return way;
		if (!way->lease || (oldest->lease && way->used < oldest->used))
			oldest = way;
	}
	return oldest;
}

static void put_way(struct scope_cache *cache, struct way *way, uint64_t hash, struct scope_lease *lease)
{
	if (way->lease)
		cache->stats.replaced++;
	clear_way(cache, way);
	*way = (struct way){.hash = hash, .used = ++cache->tick, .lease = scope_lease_keep(lease)};
	cache->stats.entries++;
	cache->stats.bytes += lease->arena.used_bytes;
	while (cache->stats.bytes > LIMIT_SCOPE_CACHE_BYTES) {
		struct way *victim = &cache->ways[cache->hand++ % (SETS * WAYS)];
		if (victim == way || !victim->lease)
			continue;
		cache->stats.replaced++;
		clear_way(cache, victim);
	}
}

/* ---- Text to plan ----------------------------------------------------------------------------------------------- */

static int lease_make(struct str text, const struct scope_request *request, const struct scope_view *view,
                      struct scope_lease **out, struct scope_diag *diag)
{
	struct scope_lease *lease = lease_new();
	int code = scope_parse(&lease->arena, text, &lease->scope, diag);
	if (code == 0)
		code = scope_check(&lease->arena, lease->scope, diag);
	if (code == 0)
		code = scope_evaluate(&lease->arena, lease->scope, request, view, &lease->plan, diag);
	if (code) {
		scope_lease_drop(lease);
		return code;
	}
	struct buf bound = {0};
	scope_print(&bound, lease->scope, request->inner ? STR("") : request->service);
	lease->bound = str_make(arena_copy(&lease->arena, bound.at, bound.length), bound.length);
	buf_free(&bound);
	lease->epoch = view->epoch;
	lease->at = request->at;
	lease->inner = request->inner;
	*out = lease;
	return 0;
}

int scope_cache_get(struct scope_cache *cache, struct str text, const struct scope_request *request,
                    const struct scope_view *view, struct scope_lease **lease, struct scope_diag *diag)
{
	uint64_t hash = 0;
	struct way *way = NULL;
	if (text.length <= LIMIT_SCOPE_CACHED_BYTES) {
		hash = hash_request(cache, text, request);
		way = find_way(cache, hash, text, request);
		if (is_for(way, hash, text, request) && way->lease->epoch == view->epoch && way->lease->at == request->at) {
			cache->stats.hits++;
			way->used = ++cache->tick;
			*lease = scope_lease_keep(way->lease);
			return 0;
		}
	}
	cache->stats.misses++;
	int code = lease_make(text, request, view, lease, diag);
	if (code == 0 && way && (*lease)->arena.used_bytes <= LIMIT_SCOPE_CACHED_PLAN_BYTES)
		put_way(cache, way, hash, *lease);
	return code;
}
