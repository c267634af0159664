/* What the data plane sees of the sites: one allocation that never changes, and a view of it for scopes.
 *
 * Names are found in a hash table whose key is fixed: names come from certificates that our own authority signed. Services
 * are numbered in the order in which sites name them, ours first. Distances from this site are those that were measured;
 * all others come from coordinates.
 */
#include "site/site.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/map.h"

#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>

struct place_more {
	int64_t since_ms;
	int64_t rtt_us;
	struct site_coordinate coordinate;
	const struct str *versions; /* by service; `at` NULL: not offered */
};

struct snapshot {
	struct site_snapshot public; /* first */
	atomic_uint references;
	struct arena arena;
	struct place_more *more;
	struct str *services;
	uint32_t services_count;
	struct map names;         /* to the place */
	struct map service_names; /* to the name in `services` */
	const uint32_t *by_id;    /* numbers of places, sorted by id */
};

static const struct hash_key name_key = {0x6368656f70730003, 0x6368656f70730004};

int64_t site_coordinate_us(const struct site_coordinate *from, const struct site_coordinate *to)
{
	double sum = 0;
	if (from->error <= 0 || to->error <= 0)
		return SCOPE_RTT_UNKNOWN;
	for (int i = 0; i < SITE_DIMENSIONS; i++) {
		double apart = (double)from->at[i] - (double)to->at[i];
		sum += apart * apart;
	}
	return (int64_t)(sqrt(sum) + (double)from->height + (double)to->height);
}

/* ---- The view ---------------------------------------------------------------------------------------------------- */

static struct scope_site view_site(const void *context, uint32_t site)
{
	const struct snapshot *snapshot = context;
	CHECK(site < snapshot->public.places_count);
	const struct site_place *place = &snapshot->public.places[site];
	return (struct scope_site){
		.name = place->name, .state = site_scope_state(place->state), .since_ms = snapshot->more[site].since_ms};
}

static uint32_t view_find_site(const void *context, struct str name)
{
	const struct snapshot *snapshot = context;
	const struct site_place *found = map_get(&snapshot->names, name);
	return found ? (uint32_t)(found - snapshot->public.places) : SCOPE_NO_INDEX;
}

static int64_t view_rtt_us(const void *context, uint32_t from, uint32_t to)
{
	const struct snapshot *snapshot = context;
	CHECK(from < snapshot->public.places_count && to < snapshot->public.places_count);
	if (from == to)
		return 0;
	uint32_t other = from == 0 ? to : from;
	if ((from == 0 || to == 0) && snapshot->more[other].rtt_us != SCOPE_RTT_UNKNOWN)
		return snapshot->more[other].rtt_us;
	return site_coordinate_us(&snapshot->more[from].coordinate, &snapshot->more[to].coordinate);
}

static bool view_tag(const void *context, uint32_t site, uint32_t n, struct str *key, struct str *value)
{
	const struct snapshot *snapshot = context;
	CHECK(site < snapshot->public.places_count);
	const struct site_place *place = &snapshot->public.places[site];
	if (n >= place->tags_count)
		return false;
	*key = place->tags[n].key;
	*value = place->tags[n].value;
	return true;
}

static struct str view_service(const void *context, uint32_t service)
{
	const struct snapshot *snapshot = context;
	CHECK(service < snapshot->services_count);
	return snapshot->services[service];
}

static uint32_t view_find_service(const void *context, struct str name)
{
	const struct snapshot *snapshot = context;
	const struct str *found = map_get(&snapshot->service_names, name);
	return found ? (uint32_t)(found - snapshot->services) : SCOPE_NO_INDEX;
}

static bool view_offers(const void *context, uint32_t service, uint32_t site, struct str *version)
{
	const struct snapshot *snapshot = context;
	CHECK(service < snapshot->services_count && site < snapshot->public.places_count);
	*version = snapshot->more[site].versions[service];
	return version->at != NULL;
}

/* ---- Making one -------------------------------------------------------------------------------------------------- */

static struct str copy(struct snapshot *snapshot, struct str text)
{
	return str_make(arena_copy(&snapshot->arena, text.at, text.length), text.length);
}

static void add_services(struct snapshot *snapshot, const struct site_snapshot_entry *entry)
{
	for (uint32_t i = 0; i < entry->services_count; i++) {
		struct str name = entry->services[i].service;
		if (map_get(&snapshot->service_names, name) || snapshot->services_count == LIMIT_VIEW_SERVICES)
			continue;
		struct str *service = &snapshot->services[snapshot->services_count++];
		*service = copy(snapshot, name);
		map_set(&snapshot->service_names, *service, service);
	}
}

static const struct site_tag *copy_tags(struct snapshot *snapshot, const struct site_place *from)
{
	struct site_tag *tags = arena_array(&snapshot->arena, struct site_tag, from->tags_count);
	for (uint32_t i = 0; i < from->tags_count; i++)
		tags[i] = (struct site_tag){copy(snapshot, from->tags[i].key), copy(snapshot, from->tags[i].value)};
	return tags;
}

static void add_place(struct snapshot *snapshot, struct site_place *place, struct place_more *more,
                      const struct site_snapshot_entry *entry)
{
	*place = entry->place;
	place->name = copy(snapshot, entry->place.name);
	place->tags = copy_tags(snapshot, &entry->place);
	*more = (struct place_more){entry->since_ms, entry->rtt_us, entry->coordinate, NULL};
	struct str *versions = arena_array(&snapshot->arena, struct str, snapshot->services_count);
	for (uint32_t i = 0; i < entry->services_count; i++) {
		uint32_t service = view_find_service(snapshot, entry->services[i].service);
		if (service != SCOPE_NO_INDEX)
			versions[service] = copy(snapshot, entry->services[i].version);
	}
	more->versions = versions;
}

static int compare_ids(const void *a, const void *b, void *context)
{
	const struct site_place *places = context;
	site_id x = places[*(const uint32_t *)a].id, y = places[*(const uint32_t *)b].id;
	return x < y ? -1 : x > y;
}

static int compare_removed(const void *a, const void *b)
{
	site_id x = *(const site_id *)a, y = *(const site_id *)b;
	return x < y ? -1 : x > y;
}

static struct snapshot *snapshot_new(void)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct snapshot *snapshot = arena_new(&arena, struct snapshot);
	snapshot->arena = arena;
	atomic_init(&snapshot->references, 1);
	map_init(&snapshot->names, name_key);
	map_init(&snapshot->service_names, name_key);
	return snapshot;
}

static void add_places(struct snapshot *snapshot, const struct site_snapshot_entry *entries, uint32_t count)
{
	struct site_place *places = arena_array(&snapshot->arena, struct site_place, count);
	uint32_t *by_id = arena_array(&snapshot->arena, uint32_t, count);
	snapshot->more = arena_array(&snapshot->arena, struct place_more, count);
	snapshot->services = arena_array(&snapshot->arena, struct str, LIMIT_VIEW_SERVICES);
	for (uint32_t i = 0; i < count; i++)
		add_services(snapshot, &entries[i]);
	for (uint32_t i = 0; i < count; i++) {
		add_place(snapshot, &places[i], &snapshot->more[i], &entries[i]);
		map_set(&snapshot->names, places[i].name, &places[i]);
		by_id[i] = i;
	}
	qsort_r(by_id, count, sizeof(*by_id), compare_ids, places);
	snapshot->by_id = by_id;
	snapshot->public.places = places;
	snapshot->public.places_count = count;
}

struct site_snapshot *site_snapshot_make(const struct site_snapshot_entry *entries, uint32_t count,
                                         const site_id *removed, uint32_t removed_count, uint64_t number)
{
	struct snapshot *snapshot = snapshot_new();
	CHECK(count > 0 && number > 0);
	add_places(snapshot, entries, count);
	site_id *kept = arena_array(&snapshot->arena, site_id, removed_count);
	if (removed_count > 0)
		memcpy(kept, removed, removed_count * sizeof(*kept));
	qsort(kept, removed_count, sizeof(*kept), compare_removed);
	snapshot->public.removed = kept;
	snapshot->public.removed_count = removed_count;
	snapshot->public.number = number;
	snapshot->public.view = (struct scope_view){.context = snapshot,
	                                            .epoch = number,
	                                            .sites_count = count,
	                                            .services_count = snapshot->services_count,
	                                            .site = view_site,
	                                            .find_site = view_find_site,
	                                            .rtt_us = view_rtt_us,
	                                            .tag = view_tag,
	                                            .service = view_service,
	                                            .find_service = view_find_service,
	                                            .offers = view_offers};
	return &snapshot->public;
}

struct site_snapshot *site_snapshot_keep(struct site_snapshot *snapshot)
{
	atomic_fetch_add_explicit(&((struct snapshot *)snapshot)->references, 1, memory_order_relaxed);
	return snapshot;
}

void site_snapshot_drop(struct site_snapshot *public)
{
	struct snapshot *snapshot = (struct snapshot *)public;
	/* The last one has to see all that the others did before. */
	if (!snapshot || atomic_fetch_sub_explicit(&snapshot->references, 1, memory_order_acq_rel) != 1)
		return;
	map_free(&snapshot->names);
	map_free(&snapshot->service_names);
	/* The snapshot itself lives in its arena. */
	struct arena arena = snapshot->arena;
	arena_free(&arena);
}

/* ---- Looking things up ------------------------------------------------------------------------------------------- */

bool site_snapshot_is_removed(const struct site_snapshot *snapshot, site_id id)
{
	return snapshot->removed_count > 0 && bsearch(&id, snapshot->removed, snapshot->removed_count,
	                                              sizeof(*snapshot->removed), compare_removed) != NULL;
}

uint32_t site_snapshot_find(const struct site_snapshot *public, site_id id)
{
	const struct snapshot *snapshot = (const struct snapshot *)public;
	uint32_t low = 0, high = public->places_count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (public->places[snapshot->by_id[middle]].id < id)
			low = middle + 1;
		else
			high = middle;
	}
	bool found = low < public->places_count && public->places[snapshot->by_id[low]].id == id;
	return found ? snapshot->by_id[low] : SCOPE_NO_INDEX;
}
