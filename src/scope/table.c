/* A view in memory: arrays of sites and services, one matrix of round trips, one of versions. */
#include "base/check.h"
#include "scope/scope_int.h"

struct table_tag {
	struct str key;
	struct str value;
	struct table_tag *next;
};

struct table_site {
	struct scope_site site;
	struct table_tag *tags;
	struct table_tag **tags_end;
	uint32_t index;
	int64_t *rtt_us; /* row by destination, made when first needed */
};

struct table_service {
	struct str name;
	uint32_t index;
	struct str *versions; /* by site; `at` NULL: not offered there */
};

struct scope_table {
	struct arena *arena;
	struct table_site *sites;
	struct table_service *services;
	uint32_t sites_count, sites_capacity;
	uint32_t services_count, services_capacity;
	uint32_t *site_slots; /* open addressing over names, by number + 1 */
	uint32_t slots_count; /* a power of two, at least twice the sites */
	uint64_t epoch;
};

static struct str copy(struct scope_table *table, struct str text)
{
	return str_make(arena_copy(table->arena, text.at, text.length), text.length);
}

struct scope_table *scope_table_new(struct arena *arena)
{
	struct scope_table *table = arena_new(arena, struct scope_table);
	table->arena = arena;
	return table;
}

/* ---- Names of sites --------------------------------------------------------------------------------------------- */

/* The table is filled by an operator's own file, and has at most LIMIT_VIEW_SITES names: no need for a secret key. */
static const struct hash_key name_key = {0x6368656f70730001, 0x6368656f70730002};

static uint32_t *slot_of(const struct scope_table *table, struct str name)
{
	uint32_t mask = table->slots_count - 1;
	for (uint32_t at = (uint32_t)hash_bytes(&name_key, name) & mask;; at = (at + 1) & mask) {
		uint32_t *slot = &table->site_slots[at];
		if (*slot == 0 || str_equal(table->sites[*slot - 1].site.name, name))
			return slot;
	}
}

static void grow_sites(struct scope_table *table)
{
	uint32_t capacity = table->sites_capacity ? 2 * table->sites_capacity : 8;
	struct table_site *sites = arena_array(table->arena, struct table_site, capacity);
	for (uint32_t i = 0; i < table->sites_count; i++) {
		sites[i] = table->sites[i];
		if (!sites[i].tags)
			sites[i].tags_end = &sites[i].tags;
	}
	table->sites = sites;
	table->sites_capacity = capacity;
	table->slots_count = 4 * capacity;
	table->site_slots = arena_array(table->arena, uint32_t, table->slots_count);
	for (uint32_t i = 0; i < table->sites_count; i++)
		*slot_of(table, sites[i].site.name) = i + 1;
}

uint32_t scope_table_add_site(struct scope_table *table, struct scope_site site)
{
	if (table->sites_count == LIMIT_VIEW_SITES)
		return SCOPE_NO_INDEX;
	if (table->sites_count == table->sites_capacity)
		grow_sites(table);
	uint32_t *slot = slot_of(table, site.name);
	if (*slot != 0)
		return SCOPE_NO_INDEX;
	uint32_t index = table->sites_count++;
	struct table_site *made = &table->sites[index];
	made->site = site;
	made->site.name = copy(table, site.name);
	made->index = index;
	made->tags_end = &made->tags;
	*slot = index + 1;
	table->epoch++;
	return index;
}

static uint32_t find_service(const void *context, struct str name)
{
	const struct scope_table *table = context;
	for (uint32_t i = 0; i < table->services_count; i++)
		if (str_equal(table->services[i].name, name))
			return i;
	return SCOPE_NO_INDEX;
}

uint32_t scope_table_add_service(struct scope_table *table, struct str name)
{
	if (table->services_count == LIMIT_VIEW_SERVICES || find_service(table, name) != SCOPE_NO_INDEX)
		return SCOPE_NO_INDEX;
	if (table->services_count == table->services_capacity) {
		uint32_t capacity = table->services_capacity ? 2 * table->services_capacity : 8;
		struct table_service *services = arena_array(table->arena, struct table_service, capacity);
		if (table->services_count)
			memcpy(services, table->services, table->services_count * sizeof(*services));
		table->services = services;
		table->services_capacity = capacity;
	}
	struct table_service *made = &table->services[table->services_count];
	made->name = copy(table, name);
	made->index = table->services_count;
	made->versions = arena_array(table->arena, struct str, LIMIT_VIEW_SITES);
	table->epoch++;
	return table->services_count++;
}

void scope_table_tag(struct scope_table *table, uint32_t site, struct str key, struct str value)
{
	CHECK(site < table->sites_count);
	struct table_tag *tag = arena_new(table->arena, struct table_tag);
	tag->key = copy(table, key);
	tag->value = copy(table, value);
	*table->sites[site].tags_end = tag;
	table->sites[site].tags_end = &tag->next;
	table->epoch++;
}

void scope_table_set_rtt(struct scope_table *table, uint32_t from, uint32_t to, int64_t rtt_us)
{
	CHECK(from < table->sites_count && to < table->sites_count);
	struct table_site *site = &table->sites[from];
	if (!site->rtt_us) {
		site->rtt_us = arena_alloc(table->arena, LIMIT_VIEW_SITES * sizeof(int64_t), _Alignof(int64_t));
		for (uint32_t i = 0; i < LIMIT_VIEW_SITES; i++)
			site->rtt_us[i] = SCOPE_RTT_UNKNOWN;
	}
	site->rtt_us[to] = rtt_us;
	table->epoch++;
}

void scope_table_offer(struct scope_table *table, uint32_t service, uint32_t site, struct str version)
{
	CHECK(service < table->services_count && site < table->sites_count);
	table->services[service].versions[site] = copy(table, version);
	table->epoch++;
}

/* ---- As a view -------------------------------------------------------------------------------------------------- */

static struct scope_site table_site(const void *context, uint32_t site)
{
	const struct scope_table *table = context;
	CHECK(site < table->sites_count);
	return table->sites[site].site;
}

static uint32_t table_find_site(const void *context, struct str name)
{
	const struct scope_table *table = context;
	return table->slots_count == 0 ? SCOPE_NO_INDEX : *slot_of(table, name) - 1;
}

static int64_t table_rtt(const void *context, uint32_t from, uint32_t to)
{
	const struct scope_table *table = context;
	if (from == to)
		return 0;
	const struct table_site *a = &table->sites[from], *b = &table->sites[to];
	if (a->rtt_us && a->rtt_us[to] != SCOPE_RTT_UNKNOWN)
		return a->rtt_us[to];
	return b->rtt_us ? b->rtt_us[from] : SCOPE_RTT_UNKNOWN;
}

static bool table_tag(const void *context, uint32_t site, uint32_t n, struct str *key, struct str *value)
{
	const struct scope_table *table = context;
	const struct table_tag *tag = table->sites[site].tags;
	while (tag && n-- > 0)
		tag = tag->next;
	if (!tag)
		return false;
	*key = tag->key;
	*value = tag->value;
	return true;
}

static struct str table_service(const void *context, uint32_t service)
{
	const struct scope_table *table = context;
	CHECK(service < table->services_count);
	return table->services[service].name;
}

static bool table_offers(const void *context, uint32_t service, uint32_t site, struct str *version)
{
	const struct scope_table *table = context;
	*version = table->services[service].versions[site];
	return version->at != NULL;
}

struct scope_view scope_table_view(const struct scope_table *table)
{
	return (struct scope_view){
		.context = table,
		.epoch = table->epoch,
		.sites_count = table->sites_count,
		.services_count = table->services_count,
		.site = table_site,
		.find_site = table_find_site,
		.rtt_us = table_rtt,
		.tag = table_tag,
		.service = table_service,
		.find_service = find_service,
		.offers = table_offers,
	};
}
