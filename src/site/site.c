/* One site's knowledge of all: making it, its clock, and what others may ask of it. */
#include "site/site_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Helpers -------------------------------------------------------------------------------------------------------- */

uint64_t site_draw(struct site *site)
{
	uint64_t (*draw)(void *context) = site->host.random;
	return draw(site->host.context);
}

uint32_t site_draw_below(struct site *site, uint32_t bound)
{
	return bound < 2 ? 0 : (uint32_t)((site_draw(site) >> 32) * bound >> 32);
}

uint64_t site_jitter(struct site *site, uint64_t us)
{
	return us / 2 + site_draw(site) % (us + 1);
}

void site_tell(struct site *site, enum site_event_kind kind, site_id subject, struct str name, struct str text)
{
	if (site->host.event && !site->loading)
		site->host.event(site->host.context, &(struct site_event){kind, subject, name, text});
}

/* By a quarter, not to twice the size: most of the memory of a simulation is these arrays. */
void *site_grow(void *memory, uint32_t *capacity, uint32_t count, size_t bytes)
{
	if (count <= *capacity)
		return memory;
	*capacity = count + count / 4 + 4;
	memory = realloc(memory, *capacity * bytes);
	CHECK(memory != NULL);
	return memory;
}

uint32_t site_live_count(const struct site *site)
{
	return site->lists[LIST_LIVE].count + 1;
}

bool site_address_equal(const struct site_address *a, const struct site_address *b)
{
	return a->family == b->family && a->port == b->port && memcmp(a->ip, b->ip, sizeof(a->ip)) == 0;
}

/* ---- Life ----------------------------------------------------------------------------------------------------------- */

struct site_timing site_timing_default(void)
{
	return (struct site_timing){.probe_us = 400000,
	                            .gossip_us = 200000,
	                            .exchange_us = 30000000,
	                            .timeout_least_us = 400000,
	                            .timeout_most_us = 5000000,
	                            .health_most = SITE_HEALTH_MAX,
	                            .forget_us = 0};
}

struct site *site_new(const struct site_options *options, const struct site_host *host)
{
	struct site *site = calloc(1, sizeof(*site));
	CHECK(site != NULL && options->self != 0);
	CHECK(host->send && host->verify && host->random);
	CHECK(options->timing.probe_us > 0 && options->timing.probe_us < UINT32_MAX);
	site->options = *options;
	site->host = *host;
	site->hots_free = SITE_NONE;
	for (int i = 0; i < SITE_SENDS_MAX; i++)
		site->rumours[i] = site->rumours_last[i] = SITE_NONE;
	table_add(site, options->self, NULL);
	site->members[0].state = SITE_ALIVE;
	return site;
}

void site_free(struct site *site)
{
	if (!site)
		return;
	suspicion_free(site);
	news_free(site);
	table_free(site);
	buf_free(&site->out);
	free(site);
}

static void start(struct site *site)
{
	uint64_t now_us = site->now.us;
	const struct site_timing *timing = &site->options.timing;
	site->started = true;
	site->started_us = now_us;
	site->members[0].since_ms = site->now.wall_ms;
	site->silent = false;
	site->sequence = (uint32_t)site_draw(site);
	site->probe_us = now_us + site_draw_below(site, (uint32_t)timing->probe_us);
	site->exchange_us = now_us + site_jitter(site, timing->exchange_us / 8);
	site->introductions = 0;
	site->place_us = now_us + site_jitter(site, 10000000);
	site->forget_us = timing->forget_us ? now_us + timing->forget_us / 8 : UINT64_MAX;
	/* A new one begins with the incarnation that others take from its card alone: that needs no rumour. */
	member_set_state(site, 0, SITE_ALIVE, site->members[0].incarnation);
	const struct held *removal = removal_find(site, site->options.self);
	if (removal)
		member_shut_self_out(site, removal);
}

int site_set_card(struct site *site, struct str bytes, struct site_now now, struct err *err)
{
	struct site_record record;
	site->now = now;
	int code = site_record_parse(bytes, &record, err);
	if (code)
		return err_context(err, code, "the card of this site");
	if (record.kind != SITE_CARD || record.subject != site->options.self)
		return err_set(err, ERR_INVALID, "the card of this site is a record of kind %u on site %016llx", record.kind,
		               (unsigned long long)record.subject);
	code = member_set_own(site, &record, err);
	if (code)
		return code;
	if (!site->started || site->members[0].state == SITE_LEFT)
		start(site);
	news_add(site, 0, 0);
	return 0;
}

int site_add_record(struct site *site, struct str record, struct site_now now, struct err *err)
{
	site->now = now;
	site->announcing = true;
	site->urgent = false;
	int code = member_accept(site, record, NULL, err);
	site->announcing = false;
	if (code == 0 && site->urgent && site->started && site->pushed_count > 0) {
		const struct held *held = site->pushed[site->pushed_count - 1].held;
		if (str_equal(held_bytes(held), record))
			gossip_broadcast(site, held);
	}
	return code;
}

int site_knock(struct site *site, struct str card, struct site_now now, struct err *err)
{
	struct site_record record;
	site->now = now;
	int code = site_record_parse(card, &record, err);
	if (code == 0 && record.kind != SITE_CARD)
		code = err_set(err, ERR_INVALID, "a record of kind %u is no card", record.kind);
	if (code)
		return code;
	uint32_t number = table_find(site, record.subject);
	uint64_t known = number == SITE_NONE || number == 0 ? 0 : site->members[number].card->version;
	bool there = number != SITE_NONE && site->members[number].list == LIST_LIVE;
	code = member_accept(site, card, NULL, err);
	number = table_find(site, record.subject);
	if (code || number == SITE_NONE || number == 0 || site->silent || (there && record.version <= known))
		return code;
	site->members[number].flags |= MEMBER_KNOCKED;
	probe_hasten(site, record.subject);
	return 0;
}

void site_leave(struct site *site, struct site_now now)
{
	site->now = now;
	if (!site->started || site->silent)
		return;
	member_set_state(site, 0, SITE_LEFT, site->members[0].incarnation);
	gossip_leave(site);
	site->silent = true;
}

/* ---- Time ----------------------------------------------------------------------------------------------------------- */

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t site_due(const struct site *site)
{
	if (!site->started || site->silent)
		return UINT64_MAX;
	uint64_t due = earlier(probe_due(site), gossip_due(site));
	due = earlier(due, earlier(suspicion_due(site), want_due(site)));
	return earlier(due, earlier(site->exchange_us, earlier(site->place_us, site->forget_us)));
}

/* This process slept, or the whole machine: what did not come meanwhile tells nothing of others. */
static void mind_sleep(struct site *site)
{
	uint64_t late_us = site->now.us > site->probe_us ? site->now.us - site->probe_us : 0;
	if (late_us <= 2 * site->options.timing.probe_us || site->options.timing.plain)
		return;
	probe_forget_all(site);
	suspicion_delay(site, late_us);
}

void site_tick(struct site *site, struct site_now now)
{
	site->now = now;
	if (!site->started || site->silent)
		return;
	mind_sleep(site);
	probe_tick(site);
	suspicion_tick(site);
	want_tick(site);
	exchange_tick(site);
	coordinate_tick(site);
	gossip_tick(site);
	if (site->forget_us <= now.us) {
		site->forget_us = now.us + site->options.timing.forget_us / 8 + 1;
		member_forget_old(site);
	}
}

/* ---- What is known --------------------------------------------------------------------------------------------------- */

uint32_t site_count(const struct site *site)
{
	return site->members_count;
}

void site_member(const struct site *site, uint32_t number, struct site_member *out)
{
	CHECK(number < site->members_count);
	const struct member *member = &site->members[number];
	*out = (struct site_member){.id = member->id,
	                            .name = member->card ? held_name(member->card) : STR(""),
	                            .state = (enum site_state)member->state,
	                            .since_ms = member->since_ms,
	                            .heard_ms = member->heard_ms,
	                            .incarnation = member->incarnation,
	                            .rtt_us = number == 0 ? 0 : SCOPE_RTT_UNKNOWN};
	if (member->rtt_us > 0)
		out->rtt_us = member->rtt_us;
	if (member->card && member->card->kind == SITE_CARD)
		held_record(member->card, &out->card);
}

uint32_t site_find(const struct site *site, site_id id)
{
	return table_find(site, id);
}

uint32_t site_find_name(const struct site *site, struct str name)
{
	return table_find_name(site, name);
}

bool site_claimant(const struct site *site, site_id id, struct site_record *card)
{
	for (uint32_t i = 0; id != 0 && i < SITE_CLAIMANTS; i++) {
		if (site->claimants[i].id != id)
			continue;
		held_record(site->claimants[i].card, card);
		return true;
	}
	return false;
}

bool site_is_removed(const struct site *site, site_id id)
{
	return removal_find(site, id) != NULL;
}

bool site_removal_of(const struct site *site, site_id id, struct site_record *record)
{
	const struct held *held = removal_find(site, id);
	if (held)
		held_record(held, record);
	return held != NULL;
}

bool site_is_met_at(const struct site *site, const struct site_address *address)
{
	const struct list *live = &site->lists[LIST_LIVE];
	for (uint32_t i = 0; i < live->count; i++)
		if (site_address_equal(&site->members[live->items[i]].card->address, address))
			return true;
	return false;
}

bool site_is_alone(const struct site *site)
{
	return site->lists[LIST_LIVE].count == 0;
}

bool site_record_at(const struct site *site, enum site_record_kind kind, uint32_t n, struct site_record *record)
{
	const struct held *held = NULL;
	if (kind == SITE_CARD && n < site->members_count)
		held = site->members[n].card;
	else if (kind == SITE_REMOVAL && n < site->removals_count)
		held = site->removals[n];
	else if (kind == SITE_ROOT && n < site->roots_count)
		held = site->roots[n];
	if (!held)
		return false;
	held_record(held, record);
	return true;
}

uint64_t site_epoch(const struct site *site)
{
	return site->epoch;
}

const struct site_counters *site_counters(const struct site *site)
{
	return &site->counters;
}

uint32_t site_health(const struct site *site)
{
	return site->health;
}
