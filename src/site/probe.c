/* Who answers (SWIM, 3 and 4.3; Lifeguard, IV.A).
 *
 * The happy path: each period one live site, in turn, gets a PING; its ACK comes within the time that its distance allows.
 * - No answer in time: three others are asked to try (ASK), and it is pinged once more, since datagrams get lost. Each of
 *   the three tells that it had an answer (PASSED), or after a while that it had none (NACK).
 * - Nobody had one: it is suspected (suspicion.c). A NACK tells at least that the other one heard us; not a single
 *   NACK counts against our own health, and so does hearing that we are suspected. The worse our health, the more time we
 *   give others, and the more rarely we probe.
 * - The answer comes when all was over: it still tells the distance, so that the next probe waits long enough. Several
 *   probes are in flight where a round trip takes longer than a period.
 * - Where a machine is busy a message waits there until it is read. That is no distance: it is taken off, as the kernel's time
 *   stamps tell it, at both ends; the other one says it in its ACK.
 * - A lost site is probed now and then: by all sites together about once a second. So a partition heals by itself, and any
 *   live entry of an old table is enough to come back. While nobody at all answers, all probes go to lost ones.
 * - A site that shows its card without being greeted first (site_knock) wants to be known again: it is probed out of turn.
 * - A suspect that we just heard of is probed out of turn by a few sites: it is confirmed soon, or hears of it. */
#include "base/bytes.h"
#include "site/site_int.h"

enum {
	STRANGER_DETOUR_US = 1200000, /* the same, by a detour */
	STRANGER_US = 800000,         /* for an answer of a site whose distance is not known */
	SLACK_US = 150000,            /* for what happens at the other end */
	LOST_SHARE = 4,               /* at most one period in so many is for a lost site */
	LOST_RATE = 2,                /* probes of each lost site per period, by all sites together */
	LATE_ANSWERS_US = 10000000,   /* waited for, for the distance's sake */
	WAITED_LEAST_US = 100,        /* less is not worth its bytes */
};

/* ---- Times --------------------------------------------------------------------------------------------------------- */

int64_t probe_rtt_us(const struct site *site, uint32_t number)
{
	uint32_t measured = site->members[number].rtt_us;
	return measured > 0 ? (int64_t)measured : site_estimate_us(site, 0, number);
}

static uint64_t timeout_of(const struct site *site, int64_t rtt_us)
{
	const struct site_timing *timing = &site->options.timing;
	uint64_t us = rtt_us < 0 ? STRANGER_US : 2 * (uint64_t)rtt_us + SLACK_US;
	us = us < timing->timeout_least_us ? timing->timeout_least_us : us;
	return us > timing->timeout_most_us ? timing->timeout_most_us : us;
}

/* The worse our own health, the longer. */
static uint64_t patient(const struct site *site, uint64_t us)
{
	return us + us * site->health / 4;
}

uint64_t probe_timeout_us(const struct site *site, uint32_t number)
{
	return patient(site, timeout_of(site, probe_rtt_us(site, number)));
}

/* There; as long as the helper waits for its answer; and back. */
static uint64_t detour_timeout_us(const struct site *site, uint32_t helper, uint32_t target)
{
	int64_t there_us = probe_rtt_us(site, helper), on_us = site_estimate_us(site, helper, target);
	if (there_us < 0 || on_us < 0)
		return patient(site, STRANGER_DETOUR_US);
	return patient(site, timeout_of(site, on_us) + 2 * (uint64_t)there_us + SLACK_US / 2);
}

static uint64_t period_us(const struct site *site)
{
	return site->options.timing.probe_us * (2 + site->health) / 2;
}

void probe_health(struct site *site, int change)
{
	int health = (int)site->health + change;
	uint32_t most = site->options.timing.health_most;
	site->health = health < 0 ? 0 : (uint32_t)health > most ? most : (uint32_t)health;
}

/* ---- Pings --------------------------------------------------------------------------------------------------------- */

/* A site answers only whom it knows: one that is new carries its card along, and so does who had no answer. */
static bool is_unknown_to(const struct site *site, uint32_t to)
{
	bool young =
		site->introductions < SITE_INTRODUCTIONS || site->now.us < site->started_us + site->options.timing.exchange_us;
	return (young && !(site->members[to].flags & MEMBER_HEARD)) || site->members[to].state != SITE_ALIVE;
}

static void send_ping(struct site *site, uint32_t to, uint32_t sequence, bool introduce)
{
	letter_begin(site, TYPE_PING, sequence, 0);
	letter_coordinate(site);
	if (introduce || is_unknown_to(site, to))
		letter_record(site, site->members[0].card);
	letter_rumours(site, to, SITE_RUMOURS_PINGED);
	letter_places(site, SITE_PLACED_SENT);
	letter_send(site, to);
}

static uint32_t next_sequence(struct site *site)
{
	if (++site->sequence == 0)
		site->sequence = 1;
	return site->sequence;
}

static struct probe *find_probe(struct site *site, site_id target)
{
	for (uint32_t i = 0; i < site->probes_count; i++)
		if (site->probes[i].target == target && site->probes[i].stage != PROBE_OVER)
			return &site->probes[i];
	return NULL;
}

static void drop_probe(struct site *site, uint32_t at)
{
	site->probes[at] = site->probes[--site->probes_count];
}

/* The one that is waited for least. */
static void make_room(struct site *site)
{
	uint32_t oldest = 0;
	for (uint32_t i = 1; i < site->probes_count; i++)
		if (site->probes[i].sent_us[0] < site->probes[oldest].sent_us[0])
			oldest = i;
	drop_probe(site, oldest);
}

static void start_probe(struct site *site, uint32_t number)
{
	struct member *member = &site->members[number];
	if (find_probe(site, member->id))
		return;
	if (site->probes_count == SITE_PROBES)
		make_room(site);
	struct probe *probe = &site->probes[site->probes_count++];
	*probe = (struct probe){.target = member->id, .stage = PROBE_DIRECT};
	probe->sequence[0] = next_sequence(site);
	probe->sent_us[0] = site->now.us;
	probe->deadline_us = site->now.us + probe_timeout_us(site, number);
	site->counters.probes++;
	send_ping(site, number, probe->sequence[0], false);
}

/* ---- Whose turn it is ---------------------------------------------------------------------------------------------- */

void probe_hasten(struct site *site, site_id id)
{
	for (uint32_t i = 0; i < site->hastened_count; i++)
		if (site->hastened[i] == id)
			return;
	if (site->hastened_count < SITE_HASTENED)
		site->hastened[site->hastened_count++] = id;
}

static uint32_t next_hastened(struct site *site)
{
	while (site->hastened_count > 0) {
		uint32_t number = table_find(site, site->hastened[--site->hastened_count]);
		if (number == SITE_NONE || site->members[number].state == SITE_REVOKED)
			continue;
		bool knocked = site->members[number].flags & MEMBER_KNOCKED;
		site->members[number].flags &= (uint8_t)~MEMBER_KNOCKED;
		if (knocked || site->members[number].state == SITE_SUSPECT)
			return number;
	}
	return SITE_NONE;
}

/* Often enough that each lost one is probed by somebody every period or so; but most periods are for the living. */
static bool is_turn_of_lost(struct site *site)
{
	uint64_t lost = site->lists[LIST_LOST].count, live = site_live_count(site);
	if (lost == 0)
		return false;
	uint64_t draw = site_draw_below(site, UINT32_MAX);
	return draw < UINT32_MAX / LOST_SHARE && draw * live < LOST_RATE * lost * (uint64_t)UINT32_MAX;
}

static void probe_lonely(struct site *site)
{
	uint32_t lost = site->lists[LIST_LOST].count;
	for (uint32_t i = 0; i < SITE_LONELY && i < lost; i++)
		start_probe(site, table_next(site, LIST_LOST));
}

/* A suspect is probed besides the one whose turn it is: many deaths must not keep us from finding more. */
static void start_period(struct site *site)
{
	site->probe_us = site->now.us + period_us(site);
	uint32_t number = next_hastened(site);
	if (number != SITE_NONE)
		start_probe(site, number);
	if (site->lists[LIST_LIVE].count == 0) {
		probe_lonely(site);
		return;
	}
	number = is_turn_of_lost(site) ? table_next(site, LIST_LOST) : table_next(site, LIST_LIVE);
	start_probe(site, number);
}

/* ---- What becomes of a probe ---------------------------------------------------------------------------------------- */

static void give_up(struct probe *probe, uint64_t now_us)
{
	probe->stage = PROBE_OVER;
	probe->deadline_us = now_us + LATE_ANSWERS_US;
}

static void ask_others(struct site *site, struct probe *probe, uint32_t target)
{
	uint32_t asked[SITE_HELPERS] = {0};
	uint64_t longest_us = probe_timeout_us(site, target);
	for (int tries = 0; tries < 4 * SITE_HELPERS && probe->asked < SITE_HELPERS; tries++) {
		uint32_t helper = table_draw(site, LIST_LIVE);
		bool again = helper == SITE_NONE || helper == target;
		for (uint32_t i = 0; i < probe->asked; i++)
			again = again || asked[i] == helper;
		if (again)
			continue;
		asked[probe->asked++] = helper;
		uint64_t detour_us = detour_timeout_us(site, helper, target);
		longest_us = detour_us > longest_us ? detour_us : longest_us;
		letter_begin(site, TYPE_ASK, probe->sequence[0], probe->target);
		letter_rumours(site, helper, SITE_RUMOURS_PINGED);
		letter_send(site, helper);
	}
	probe->stage = PROBE_INDIRECT;
	probe->deadline_us = site->now.us + longest_us;
	probe->sequence[1] = next_sequence(site);
	probe->sent_us[1] = site->now.us;
	send_ping(site, target, probe->sequence[1], true);
}

static void fail(struct site *site, struct probe *probe, uint32_t target)
{
	site->counters.probe_failures++;
	/* Nobody of those who were asked said a word: perhaps it is us. One of them alone may be gone as well. */
	if (probe->asked > 0 && probe->nacks == 0)
		probe_health(site, 1);
	give_up(probe, site->now.us);
	/* Again soon: if it denies, and we miss that, it says so once more; and it hears who accuses it. */
	probe_hasten(site, probe->target);
	struct status status = member_status(site, target);
	status.state = SITE_SUSPECT;
	status.accuser = site->options.self;
	member_hear(site, &status, site->options.self);
}

/* True: it stays. */
static bool advance(struct site *site, struct probe *probe)
{
	uint32_t target = table_find(site, probe->target);
	if (target == SITE_NONE || probe->stage == PROBE_OVER || site->members[target].list == LIST_NONE)
		return false;
	if (site->members[target].state == SITE_LOST) {
		site->counters.probe_failures++;
		give_up(probe, site->now.us);
	} else if (probe->stage == PROBE_DIRECT) {
		ask_others(site, probe, target);
	} else {
		fail(site, probe, target);
	}
	return true;
}

static void advance_all(struct site *site)
{
	for (uint32_t i = 0; i < site->probes_count;) {
		if (site->probes[i].deadline_us > site->now.us || advance(site, &site->probes[i]))
			i++;
		else
			drop_probe(site, i);
	}
}

/* ---- For others ----------------------------------------------------------------------------------------------------- */

void probe_ask(struct site *site, uint32_t from, const struct message *message)
{
	uint32_t target = table_find(site, message->target);
	if (target == SITE_NONE || target == 0 || site->members[target].state == SITE_REVOKED)
		return;
	if (site->relays_count == SITE_RELAYS)
		return; /* it will take our silence for ill health: that is what it is */
	struct relay *relay = &site->relays[site->relays_count++];
	*relay = (struct relay){.requester = site->members[from].id,
	                        .target = message->target,
	                        .their_sequence = message->sequence,
	                        .sequence = next_sequence(site),
	                        .sent_us = site->now.us,
	                        .deadline_us = site->now.us + probe_timeout_us(site, target)};
	send_ping(site, target, relay->sequence, !(site->members[target].flags & MEMBER_HEARD));
}

static void finish_relay(struct site *site, uint32_t at, uint8_t type)
{
	struct relay relay = site->relays[at];
	site->relays[at] = site->relays[--site->relays_count];
	uint32_t to = table_find(site, relay.requester);
	if (to == SITE_NONE || site->members[to].state == SITE_REVOKED)
		return;
	letter_begin(site, type, relay.their_sequence, relay.target);
	letter_rumours(site, to, SITE_RUMOURS_PINGED);
	letter_send(site, to);
}

static void expire_relays(struct site *site)
{
	for (uint32_t i = 0; i < site->relays_count;) {
		if (site->relays[i].deadline_us <= site->now.us)
			finish_relay(site, i, TYPE_NACK);
		else
			i++;
	}
}

/* ---- Answers -------------------------------------------------------------------------------------------------------- */

static void letter_waited(struct site *site)
{
	uint64_t waited_us = site->now.waited_us;
	if (waited_us < WAITED_LEAST_US)
		return;
	size_t at = section_begin(&site->out, SECTION_WAITED);
	put_number(&site->out, waited_us < UINT32_MAX ? waited_us : UINT32_MAX, WAITED_BYTES);
	section_end(&site->out, at);
}

void probe_ping(struct site *site, uint32_t from, const struct message *message)
{
	letter_begin(site, TYPE_ACK, message->sequence, 0);
	letter_coordinate(site);
	letter_waited(site);
	letter_rumours(site, from, SITE_RUMOURS_PINGED);
	letter_places(site, SITE_PLACED_SENT);
	letter_send(site, from);
}

static void finish_probe(struct site *site, uint32_t at)
{
	if (site->probes[at].stage != PROBE_OVER)
		probe_health(site, -1);
	drop_probe(site, at);
}

/* What was on the way, of the time since then: not what it waited, there or here. */
static uint64_t on_the_way_us(const struct site *site, const struct message *message, uint64_t sent_us)
{
	uint64_t all_us = site->now.us - sent_us, waited_us = site->now.waited_us;
	for (uint32_t i = 0; i < message->sections_count; i++) {
		if (message->sections[i].tag != SECTION_WAITED)
			continue;
		struct reader reader = reader_of(message->sections[i].bytes);
		waited_us += read_32(&reader);
		break;
	}
	return waited_us < all_us ? all_us - waited_us : 0;
}

void probe_ack(struct site *site, uint32_t from, const struct message *message)
{
	site_id id = site->members[from].id;
	uint32_t sequence = message->sequence;
	if (sequence == 0)
		return;
	for (uint32_t i = 0; i < site->probes_count; i++) {
		struct probe *probe = &site->probes[i];
		if (probe->target != id || (probe->sequence[0] != sequence && probe->sequence[1] != sequence))
			continue;
		uint64_t sent_us = probe->sent_us[probe->sequence[0] == sequence ? 0 : 1];
		bool delayed = probe->delayed;
		finish_probe(site, i);
		if (site->introductions++ == 0)
			site->exchange_us = site->now.us; /* the first one that knows us: it knows the others, too */
		if (!delayed)
			coordinate_sample(site, from, on_the_way_us(site, message, sent_us));
		return;
	}
	for (uint32_t i = 0; i < site->relays_count; i++) {
		if (site->relays[i].target != id || site->relays[i].sequence != sequence)
			continue;
		if (!site->relays[i].delayed)
			coordinate_sample(site, from, on_the_way_us(site, message, site->relays[i].sent_us));
		finish_relay(site, i, TYPE_PASSED);
		return;
	}
}

void site_delayed(struct site *site, site_id to)
{
	for (uint32_t i = 0; i < site->probes_count; i++)
		site->probes[i].delayed |= site->probes[i].target == to;
	for (uint32_t i = 0; i < site->relays_count; i++)
		site->relays[i].delayed |= site->relays[i].target == to;
}

static uint32_t find_asked(const struct site *site, const struct message *message)
{
	for (uint32_t i = 0; i < site->probes_count; i++) {
		const struct probe *probe = &site->probes[i];
		if (probe->target == message->target && probe->sequence[0] == message->sequence && probe->asked > 0)
			return i;
	}
	return SITE_NONE;
}

/* It is there, but how far is not known: the direct answer may still come. */
void probe_passed(struct site *site, const struct message *message)
{
	uint32_t at = find_asked(site, message);
	if (at == SITE_NONE || site->probes[at].stage != PROBE_INDIRECT)
		return;
	probe_health(site, -1);
	give_up(&site->probes[at], site->now.us);
}

void probe_nack(struct site *site, const struct message *message)
{
	uint32_t at = find_asked(site, message);
	if (at != SITE_NONE && site->probes[at].nacks < site->probes[at].asked)
		site->probes[at].nacks++;
}

/* ---- Time ----------------------------------------------------------------------------------------------------------- */

void probe_tick(struct site *site)
{
	advance_all(site);
	expire_relays(site);
	if (site->probe_us <= site->now.us)
		start_period(site);
}

uint64_t probe_due(const struct site *site)
{
	uint64_t due = site->probe_us;
	for (uint32_t i = 0; i < site->probes_count; i++)
		due = site->probes[i].deadline_us < due ? site->probes[i].deadline_us : due;
	for (uint32_t i = 0; i < site->relays_count; i++)
		due = site->relays[i].deadline_us < due ? site->relays[i].deadline_us : due;
	return due;
}

void probe_forget_all(struct site *site)
{
	site->probes_count = site->relays_count = 0;
	site->probe_us = site->now.us + site_draw_below(site, (uint32_t)site->options.timing.probe_us);
}
