/* The lives of sites: start and stop, cards and other records, what their host does for them. */
#include "sim/swarm.h"

#include "sim/alloc.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum {
	INDEX_BITS = 20,      /* of an id: which site it is */
	SIGNATURE_BYTES = 64, /* as P-256 has */
	SYNC_US = 5 * SWARM_SECOND_US,
	PORT = 4000,
	NOISE = 50,
	CLEAR = 0xff,                          /* the first byte of a datagram with a record that is not sealed */
	CLEAR_EVERY_US = SWARM_SECOND_US / 10, /* by one site: as src/trust/seal.c has it */
	LEAK_BYTES = 16 << 10,
};

static const int64_t epoch_ms = INT64_C(1750000000000);

void swarm_trace(struct swarm *swarm, const char *format, ...)
{
	if (!swarm->options.trace)
		return;
	va_list arguments;
	va_start(arguments, format);
	printf("%12.6f ", (double)swarm->sim.now_us / SWARM_SECOND_US);
	vprintf(format, arguments);
	putchar('\n');
	va_end(arguments);
}

void swarm_at(struct swarm *swarm, uint64_t at_us, enum swarm_act act, uint32_t number)
{
	sim_at(&swarm->sim, at_us, (uint64_t)act << 32 | number);
}

struct site_now swarm_now(const struct swarm *swarm, const struct swarm_site *it)
{
	int64_t wall_ms = epoch_ms + (int64_t)(swarm->sim.now_us / 1000) + it->wall_offset_ms;
	return (struct site_now){.us = swarm->sim.now_us, .wall_ms = wall_ms};
}

static site_id id_of(const struct swarm *swarm, uint32_t number)
{
	return sim_mix(swarm->options.seed, number) << INDEX_BITS | (number + 1);
}

uint32_t swarm_index(const struct swarm *swarm, site_id id)
{
	uint32_t number = (uint32_t)(id & ((1u << INDEX_BITS) - 1)) - 1;
	return number < swarm->count && id_of(swarm, number) == id ? number : UINT32_MAX;
}

bool swarm_up(const struct swarm_site *it)
{
	return it->site != NULL && it->removal == 0 && !it->left;
}

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* A signature is a keyed hash here: nobody but the swarm has the keys, and sites only ever ask it. */
static void sign(const struct swarm *swarm, site_id signer, struct str bytes, char signature[SIGNATURE_BYTES])
{
	struct hash_key key = {sim_mix(swarm->options.seed, signer), signer};
	uint64_t hash = hash_bytes(&key, bytes);
	for (size_t i = 0; i < SIGNATURE_BYTES; i += sizeof(hash), hash = sim_mix(hash, i))
		memcpy(signature + i, &hash, sizeof(hash));
}

static void finish_record(const struct swarm *swarm, struct buf *record, site_id signer)
{
	char signature[SIGNATURE_BYTES];
	sign(swarm, signer, buf_str(record), signature);
	site_record_finish(record, str_make(signature, SIGNATURE_BYTES));
}

/* Cards are signed by their site, all else by the authority, which is nobody's site here. */
static site_id signer_of(const struct site_record *record)
{
	return record->kind == SITE_CARD ? record->subject : 1;
}

static bool host_verify(void *context, const struct site_record *record)
{
	struct swarm_site *it = context;
	const struct swarm *swarm = it->swarm;
	char signature[SIGNATURE_BYTES];
	it->verified++;
	if (it->role == SWARM_LIAR || swarm->options.mutation == SWARM_GULLIBLE)
		return true;
	sign(swarm, signer_of(record), record->signed_bytes, signature);
	return str_equal(record->signature, str_make(signature, SIGNATURE_BYTES));
}

/* The address says which site it is, and how often it moved. */
static struct site_address address_of(const struct swarm_site *it)
{
	struct site_address address = {.family = 4, .port = PORT};
	address.ip[0] = 10;
	address.ip[1] = it->moves;
	address.ip[2] = (uint8_t)(it->number >> 8);
	address.ip[3] = (uint8_t)it->number;
	return address;
}

static void put_card(struct swarm *swarm, const struct swarm_site *it, struct buf *record, uint64_t version)
{
	static char certificate[LIMIT_SITE_CARD_BYTES];
	struct site_offer services[2] = {{STR("image"), STR("1")}, {STR("compute"), STR("2")}};
	struct site_tag tag = {STR("region"), STR("eu")};
	struct site_card card = {.name = str_of(it->name), .address = address_of(it), .version = STR("0.1.0")};
	card.authority = it->number == 0;
	card.born_ms = it->born_ms;
	card.certificate = str_make(certificate, swarm->options.card_bytes);
	card.services = services;
	card.services_count = 1 + it->edits % 2;
	card.tags = &tag;
	card.tags_count = 1;
	struct buf body = {0};
	struct err err = {0};
	int status = site_card_encode(&body, &card, &err);
	if (status != 0)
		swarm_violation(swarm, "site_card_encode: %s", err.text);
	site_record_begin(record, SITE_CARD, it->id, version, buf_str(&body));
	buf_free(&body);
}

static void set_card(struct swarm *swarm, struct swarm_site *it)
{
	struct err err = {0};
	int64_t *before = sim_alloc_account(&it->bytes);
	int status = site_set_card(it->site, buf_str(&it->card), swarm_now(swarm, it), &err);
	sim_alloc_account(before);
	swarm_check_told(swarm, it);
	if (status != 0 && it->role != SWARM_IMPOSTOR)
		swarm_violation(swarm, "%s: its own card was refused: %s", it->name, err.text);
	sim_poke(&swarm->sim, it->number);
}

/* A new card of its own. Its version is the wall clock's, or one more than the last. */
void swarm_new_card(struct swarm *swarm, struct swarm_site *it)
{
	int64_t wall_ms = swarm_now(swarm, it).wall_ms;
	it->born_ms = it->born_ms ? it->born_ms : wall_ms;
	it->card_version = (uint64_t)wall_ms > it->card_version ? (uint64_t)wall_ms : it->card_version + 1;
	buf_clear(&it->card);
	put_card(swarm, it, &it->card, it->card_version);
	finish_record(swarm, &it->card, it->id);
	if (it->site)
		set_card(swarm, it);
}

/* Returns what site_add_record() said. */
static int add_record(struct swarm *swarm, struct swarm_site *it, struct str record)
{
	int64_t *before = sim_alloc_account(&it->bytes);
	int status = site_add_record(it->site, record, swarm_now(swarm, it), NULL);
	sim_alloc_account(before);
	swarm_check_told(swarm, it);
	if (swarm->sim.nodes[it->number].up)
		sim_poke(&swarm->sim, it->number);
	return status;
}

static void put_removal(const struct swarm_site *it, enum site_removal_kind kind, struct buf *record)
{
	struct site_removal removal = {.kind = kind, .name = str_of(it->name), .signer = 1, .wall_ms = epoch_ms};
	struct buf body = {0};
	site_removal_encode(&body, &removal);
	site_record_begin(record, SITE_REMOVAL, it->id, 1, buf_str(&body));
	buf_free(&body);
}

/* A record of the authority is about to go to all sites at once. */
static void expect_broadcast(struct swarm *swarm, struct swarm_site *it)
{
	uint64_t second = swarm->sim.now_us / SWARM_SECOND_US;
	it->told_all = it->told_second == second ? it->told_all + 1 : 1;
	it->told_second = second;
}

/* At the first site, which has it on disk before it says so to anybody. */
void swarm_remove(struct swarm *swarm, struct swarm_site *it, enum site_removal_kind kind)
{
	struct buf record = {0};
	struct swarm_site *authority = &swarm->sites[0];
	put_removal(it, kind, &record);
	finish_record(swarm, &record, 1);
	expect_broadcast(swarm, authority);
	if (add_record(swarm, authority, buf_str(&record)) != 0)
		swarm_violation(swarm, "the removal of %s was refused", it->name);
	it->removal = kind;
	swarm_sync(swarm, authority);
	buf_free(&record);
}

/* A liar's own host takes everything for signed; those of others have to see through it. */
void swarm_lie(struct swarm *swarm, struct swarm_site *liar)
{
	struct swarm_site *victim = &swarm->sites[liar->of];
	struct buf record = {0};
	char name[sizeof(victim->name)];
	memcpy(name, victim->name, sizeof(name));
	memcpy(victim->name, "forged", sizeof("forged"));
	put_card(swarm, victim, &record, victim->card_version + 1000);
	memcpy(victim->name, name, sizeof(name));
	finish_record(swarm, &record, liar->id);
	add_record(swarm, liar, buf_str(&record));
	buf_clear(&record);
	put_removal(victim, SITE_REVOKE, &record);
	finish_record(swarm, &record, liar->id);
	expect_broadcast(swarm, liar);
	add_record(swarm, liar, buf_str(&record));
	buf_free(&record);
}

/* ---- The host ---------------------------------------------------------------------------------------------------- */

static void count_traffic(struct swarm *swarm, struct swarm_site *it, size_t length)
{
	uint64_t second = swarm->sim.now_us / SWARM_SECOND_US;
	if (it->second != second) {
		swarm_check_traffic(swarm, it);
		it->second = second;
		it->second_datagrams = 0;
		it->second_bytes = 0;
	}
	it->second_datagrams++;
	it->second_bytes += length;
	swarm->window_datagrams++;
	swarm->window_bytes += length;
}

static void host_send(void *context, site_id to, const struct site_address *address, struct str bytes)
{
	struct swarm_site *it = context;
	struct swarm *swarm = it->swarm;
	int64_t *before = sim_alloc_account(NULL);
	uint32_t number = (uint32_t)address->ip[2] << 8 | address->ip[3];
	if (bytes.length > LIMIT_SITE_MESSAGE_BYTES)
		swarm_violation(swarm, "%s sends a datagram of %zu bytes", it->name, bytes.length);
	if (number >= swarm->count || address->port != PORT || (to != 0 && swarm_index(swarm, to) != number))
		swarm_violation(swarm, "%s sends to an address that is not the site's", it->name);
	else if (address->ip[1] == swarm->sites[number].moves &&
	         !(swarm->options.mutation == SWARM_MUTE && it->number == 1 && swarm->figures.boot_s >= 0))
		sim_send(&swarm->sim, it->number, number, bytes);
	for (int i = swarm->options.mutation == SWARM_NOISY ? NOISE : 1; i > 0; i--)
		count_traffic(swarm, it, bytes.length);
	if (swarm->options.mutation == SWARM_LEAKY)
		it->bytes += LEAK_BYTES;
	sim_alloc_account(before);
}

static uint64_t host_random(void *context)
{
	struct swarm_site *it = context;
	if (it->swarm->options.mutation == SWARM_FICKLE)
		return sim_mix((uint64_t)(uintptr_t)it, sim_random_next(&it->random));
	return sim_random_next(&it->random);
}

static void host_event(void *context, const struct site_event *event)
{
	struct swarm_site *it = context;
	int64_t *before = sim_alloc_account(NULL);
	swarm_check_event(it->swarm, it, event);
	sim_alloc_account(before);
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

/* An impostor cannot ask whose name it takes. */
static uint32_t contact_of(const struct swarm *swarm, const struct swarm_site *it)
{
	uint32_t contact = 0;
	while (it->role == SWARM_IMPOSTOR && (contact == it->of || !swarm_up(&swarm->sites[contact])) &&
	       contact + 1 < swarm->options.sites)
		contact++;
	return contact;
}

/* What it knows when it has just been born: the first site, or everybody. */
static void introduce(struct swarm *swarm, struct swarm_site *it)
{
	bool all = swarm->options.warm && it->number < swarm->options.sites;
	uint32_t first = all ? 0 : contact_of(swarm, it), last = all ? swarm->options.sites - 1 : first;
	for (uint32_t i = first; i <= last; i++) {
		struct str card = buf_str(&swarm->sites[i].card);
		if (i != it->number && add_record(swarm, it, card) != 0 && it->role != SWARM_IMPOSTOR)
			swarm_violation(swarm, "%s: the card of %s was refused", it->name, swarm->sites[i].name);
	}
}

static void load(struct swarm *swarm, struct swarm_site *it)
{
	struct err err = {0};
	int64_t *before = sim_alloc_account(&it->bytes);
	int status = site_load(it->site, buf_str(&it->synced), swarm_now(swarm, it), &err);
	sim_alloc_account(before);
	swarm_check_told(swarm, it);
	if (status != 0)
		swarm_violation(swarm, "%s: what it dumped itself was refused: %s", it->name, err.text);
}

void swarm_start(struct swarm *swarm, struct swarm_site *it, bool from_synced)
{
	CHECK(it->site == NULL);
	bool fresh = !it->known && it->card.length > 0;
	struct site_options options = {.self = it->id, .timing = swarm->options.timing};
	options.hash_key = (struct hash_key){swarm->options.seed, it->number};
	options.pool = swarm->pool;
	struct site_host host = {it, host_send, host_verify, host_random, host_event};
	int64_t *before = sim_alloc_account(&it->bytes);
	it->bytes = 0;
	it->site = site_new(&options, &host);
	sim_alloc_account(before);
	it->known = true;
	swarm->started_us = it->started_us = swarm->sim.now_us;
	swarm_trace(swarm, "%s starts %s", it->name, from_synced && it->synced.length > 0 ? "again" : "with nothing");
	if (from_synced && it->synced.length > 0)
		load(swarm, it);
	else
		introduce(swarm, it);
	if (fresh)
		set_card(swarm, it);
	else
		swarm_new_card(swarm, it);
	sim_start(&swarm->sim, it->number);
	if (it->syncs && !it->sync_asked)
		swarm_at(swarm, swarm->sim.now_us + sim_random_range(&it->random, 1, SYNC_US), SWARM_ACT_SYNC, it->number);
	it->sync_asked = it->syncs;
}

void swarm_stop(struct swarm *swarm, struct swarm_site *it)
{
	if (!it->site)
		return;
	sim_stop(&swarm->sim, it->number);
	int64_t *before = sim_alloc_account(&it->bytes);
	site_free(it->site);
	sim_alloc_account(before);
	it->site = NULL;
	if (it->bytes != 0 && !swarm->pool)
		swarm_violation(swarm, "%s: %" PRId64 " bytes are left after site_free()", it->name, it->bytes);
}

/* What it would find on its disk after a crash. */
void swarm_sync(struct swarm *swarm, struct swarm_site *it)
{
	if (!it->site)
		return;
	buf_clear(&it->synced);
	site_dump(it->site, &it->synced);
	swarm_trace(swarm, "%s syncs %zu bytes", it->name, it->synced.length);
}

void swarm_leave(struct swarm *swarm, struct swarm_site *it)
{
	int64_t *before = sim_alloc_account(&it->bytes);
	site_leave(it->site, swarm_now(swarm, it));
	sim_alloc_account(before);
	it->left = true;
	sim_poke(&swarm->sim, it->number);
	swarm_at(swarm, swarm->sim.now_us + 2 * SWARM_SECOND_US, SWARM_ACT_STOP, it->number);
}

/* ---- What the engine calls --------------------------------------------------------------------------------------- */

/* What the seal does for a site: who was removed gets the record that says so. It may be a forged one, of a liar. */
static void tell_removed(struct swarm *swarm, struct swarm_site *it, const struct swarm_site *removed)
{
	struct site_record record;
	struct buf bytes = {0};
	if (swarm->options.mutation == SWARM_DISCREET || swarm->sim.now_us < it->clear_us ||
	    !site_removal_of(it->site, removed->id, &record))
		return;
	it->clear_us = swarm->sim.now_us + CLEAR_EVERY_US;
	buf_put_char(&bytes, (char)CLEAR);
	buf_put(&bytes, record.bytes);
	sim_send(&swarm->sim, it->number, removed->number, buf_str(&bytes));
	count_traffic(swarm, it, bytes.length);
	buf_free(&bytes);
}

static void on_receive(void *context, uint32_t node, uint32_t from, struct str bytes)
{
	struct swarm *swarm = context;
	struct swarm_site *it = &swarm->sites[node];
	if ((unsigned char)bytes.at[0] == CLEAR) {
		add_record(swarm, it, str_make(bytes.at + 1, bytes.length - 1));
		return;
	}
	tell_removed(swarm, it, &swarm->sites[from]);
	int64_t *before = sim_alloc_account(&it->bytes);
	site_receive(it->site, swarm->sites[from].id, bytes, swarm_now(swarm, it));
	sim_alloc_account(before);
	swarm_check_told(swarm, it);
}

static void on_tick(void *context, uint32_t node)
{
	struct swarm *swarm = context;
	struct swarm_site *it = &swarm->sites[node];
	int64_t *before = sim_alloc_account(&it->bytes);
	site_tick(it->site, swarm_now(swarm, it));
	sim_alloc_account(before);
	swarm_check_told(swarm, it);
}

static uint64_t on_due(void *context, uint32_t node)
{
	const struct swarm *swarm = context;
	return site_due(swarm->sites[node].site);
}

static void sync_again(struct swarm *swarm, struct swarm_site *it)
{
	swarm_sync(swarm, it);
	swarm_at(swarm, swarm->sim.now_us + SYNC_US, SWARM_ACT_SYNC, it->number);
}

static void on_act(void *context, uint64_t what)
{
	struct swarm *swarm = context;
	uint32_t number = (uint32_t)what;
	struct swarm_site *it = number < swarm->count ? &swarm->sites[number] : NULL;
	sim_note(&swarm->sim, what);
	switch ((enum swarm_act)(what >> 32)) {
	case SWARM_ACT_BEGIN: swarm_fault_begin(swarm, number); break;
	case SWARM_ACT_END: swarm_fault_end(swarm, number); break;
	case SWARM_ACT_FLAP: swarm_fault_flap(swarm, number); break;
	case SWARM_ACT_START: swarm_start(swarm, it, false); break;
	case SWARM_ACT_STOP: swarm_stop(swarm, it); break;
	case SWARM_ACT_SYNC: sync_again(swarm, it); break;
	case SWARM_ACT_CRASH: swarm_crash(swarm, it); break;
	case SWARM_ACT_DEADLINE: swarm_check_deadline(swarm, it); break;
	}
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static void init_site(struct swarm *swarm, uint32_t number)
{
	struct swarm_site *it = &swarm->sites[number];
	*it = (struct swarm_site){.swarm = swarm, .number = number, .id = id_of(swarm, number)};
	snprintf(it->name, sizeof(it->name), "site-%" PRIu32, number);
	sim_random_seed(&it->random, swarm->options.seed, UINT64_C(1) << 32 | number);
	it->syncs = number == 0;
}

static void init_roles(struct swarm *swarm)
{
	for (uint32_t i = 0; i < swarm->plan.count; i++) {
		const struct sim_fault *fault = &swarm->plan.faults[i];
		struct swarm_site *it = &swarm->sites[fault->node];
		if (fault->kind == SIM_CRASH)
			it->syncs = true;
		if (fault->kind != SIM_IMPOSTOR && fault->kind != SIM_LIAR)
			continue;
		it->role = fault->kind == SIM_LIAR ? SWARM_LIAR : SWARM_IMPOSTOR;
		it->of = fault->other;
		if (it->role == SWARM_LIAR && it->of == 0)
			it->of = 1; /* with the first site shut out it would know nobody to lie to */
		if (it->role == SWARM_IMPOSTOR)
			memcpy(it->name, swarm->sites[it->of].name, sizeof(it->name));
	}
}

void swarm_init(struct swarm *swarm, const struct swarm_options *options)
{
	*swarm = (struct swarm){.options = *options};
	struct sim_plan_options plan = {.seed = options->seed, .sites = options->sites, .faults = options->faults};
	plan.kinds = options->kinds;
	plan.to_us = (uint64_t)options->steps * SWARM_STEP_US;
	sim_plan_draw(&swarm->plan, &plan);
	if (options->pooled)
		swarm->pool = site_pool_new((struct hash_key){options->seed, 6});
	swarm->count = options->sites + swarm->plan.joiners;
	CHECK(swarm->count <= UINT16_MAX);
	swarm->sites = calloc(swarm->count, sizeof(*swarm->sites));
	swarm->rules = calloc(swarm->plan.count + 1, sizeof(struct sim_rule *));
	CHECK(swarm->sites != NULL && swarm->rules != NULL);
	for (uint32_t i = 0; i < swarm->count; i++)
		init_site(swarm, i);
	init_roles(swarm);
	sim_random_seed(&swarm->random, options->seed, 5);
	struct sim_network_options network = {.seed = options->seed, .nodes = swarm->count, .span_us = 40000};
	network.weather = options->weather;
	struct sim_client client = {swarm, on_receive, on_tick, on_due, on_act};
	sim_init(&swarm->sim, &network, client);
}

void swarm_free(struct swarm *swarm)
{
	struct swarm_figures *figures = &swarm->figures;
	struct sim_samples *samples[] = {&figures->suspected_s, &figures->first_s, &figures->each_s, &figures->all_s,
	                                 &figures->spread_s};
	for (size_t i = 0; i < sizeof(samples) / sizeof(samples[0]); i++)
		sim_samples_free(samples[i]);
	for (uint32_t i = 0; i < swarm->count; i++) {
		swarm_stop(swarm, &swarm->sites[i]);
		buf_free(&swarm->sites[i].card);
		buf_free(&swarm->sites[i].synced);
	}
	sim_free(&swarm->sim);
	sim_plan_free(&swarm->plan);
	if (swarm->pool)
		site_pool_free(swarm->pool);
	free(swarm->rules);
	free(swarm->sites);
	buf_free(&swarm->violations);
}
