/* How sites bear what befalls them: the checks. docs/simulator.md lists them.
 *
 * After each event:   a site that is shut out is not alive; in calm weather no running site is lost; nobody sends more
 *                     than it may.
 * After each step:    tables make sense, names are unique, memory is bounded (of many sites, some in turn).
 * At a deadline:      a crash is known to all.
 * At the end:         all live sites see the same; who was shut out knows it.
 */
#include "sim/swarm.h"

#include "base/check.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum {
	VIOLATIONS_SHOWN = 8,
	/* Of the time in which a crash is known to all, in periods of probing: to be probed, to be suspected for a while,
	 * and for each doubling of the number of sites */
	DETECT_PERIODS = 15,
	DETECT_LUCK = 10, /* more, that nobody happens to probe it in: once in e^10 or more */
	LATE_SHARE = 100, /* one death in so many, and another one, may be later than the bound */
	/* One site in one second: what probing, news and the comparison of tables may take. A table is compared in pieces,
	 * so that part grows with the number of sites. Besides, who adds a record of the authority sends it to all live sites at
	 * once (site_add_record), one datagram each: a site that is revoked must not be believed for another second. That is
	 * what a command of the operator costs; a liar that believes in its own removals sends as many, which others refuse. */
	PEAK_DATAGRAMS = 200,
	PEAK_ANSWERS = 600,               /* to those who have just come or come back, and compare tables */
	ANSWERS_US = 5 * SWARM_SECOND_US, /* for so long */
	PEAK_SITES_PER_DATAGRAM = 4,
	/* Memory: of a site that knows nobody, and for each that it knows, with its card */
	MEMORY_BYTES = 256 << 10,
	MEMORY_ENTRY_BYTES = 1024,
	TABLE_ENTRIES = 2000, /* looked at after a step */
	DISTANCE_OBSERVERS = 10,
	DISTANCE_PAIRS = 2000,
};

void swarm_violation(struct swarm *swarm, const char *format, ...)
{
	if (swarm->violations_count++ == 0)
		swarm->violation_us = swarm->sim.now_us;
	if (swarm->violations_count > VIOLATIONS_SHOWN)
		return;
	va_list arguments;
	va_start(arguments, format);
	double at_s = (double)swarm->sim.now_us / SWARM_SECOND_US;
	buf_printf(&swarm->violations, "  step %" PRIu64 " (%.3f s): ", swarm->sim.now_us / SWARM_STEP_US, at_s);
	buf_vprintf(&swarm->violations, format, arguments);
	buf_put_char(&swarm->violations, '\n');
	va_end(arguments);
}

/* ---- Bounds ------------------------------------------------------------------------------------------------------ */

static uint64_t log2_up(uint64_t number)
{
	uint64_t bits = 0;
	while ((UINT64_C(1) << bits) < number)
		bits++;
	return bits;
}

/* P (15 + log2 n): with P = 0.4 s, 10 s for 1 000 sites. */
uint64_t swarm_detect_bound_us(const struct swarm *swarm)
{
	return swarm->options.timing.probe_us * (DETECT_PERIODS + log2_up(swarm->count));
}

uint64_t swarm_detect_limit_us(const struct swarm *swarm)
{
	return swarm_detect_bound_us(swarm) + DETECT_LUCK * swarm->options.timing.probe_us;
}

/* Sites that lost each other meet again when tables are compared, at the latest. */
uint64_t swarm_converge_bound_us(const struct swarm *swarm)
{
	return 4 * swarm->options.timing.exchange_us + 2 * swarm_detect_bound_us(swarm);
}

bool swarm_calm(const struct swarm *swarm)
{
	return swarm->disturbances == 0 && swarm->sim.now_us >= swarm->disturbed_until_us;
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

static void saw_crash(struct swarm *swarm, struct swarm_site *subject)
{
	uint64_t now_us = swarm->sim.now_us;
	if (subject->first_lost_us == 0)
		subject->first_lost_us = now_us;
	subject->last_lost_us = now_us;
	if (swarm->measuring)
		sim_samples_add(&swarm->figures.each_s, (double)(now_us - subject->crashed_us) / SWARM_SECOND_US);
}

/* Its process is neither paused nor slow, nor was it until just now. */
static bool is_healthy(const struct swarm *swarm, const struct swarm_site *it)
{
	const struct sim_node *node = &swarm->sim.nodes[it->number];
	uint64_t now_us = swarm->sim.now_us, settled_us = node->paused_until_us + swarm_detect_bound_us(swarm);
	return node->lag_us == 0 && (node->paused_until_us == 0 || now_us > settled_us) && now_us >= it->disturbed_until_us;
}

static void saw_lost(struct swarm *swarm, const struct swarm_site *at, struct swarm_site *subject)
{
	if (!swarm_up(subject)) {
		if (subject->crashed_us != 0)
			saw_crash(swarm, subject);
		return;
	}
	if (!swarm_up(at) || at->role != SWARM_HONEST || subject->role != SWARM_HONEST)
		return;
	bool calm = swarm_calm(swarm) && swarm->sim.now_us >= subject->disturbed_until_us &&
	            swarm->sim.now_us >= at->disturbed_until_us &&
	            swarm->sim.now_us >= at->started_us + swarm_detect_bound_us(swarm);
	if (!calm) {
		swarm->figures.false_lost++;
		swarm->figures.false_lost_healthy += is_healthy(swarm, subject);
		swarm->figures.false_lost_by_healthy += is_healthy(swarm, subject) && is_healthy(swarm, at);
		return;
	}
	swarm->figures.false_lost_calm++;
	swarm_violation(swarm, "%s calls %s lost, which runs and can be reached", at->name, subject->name);
}

static void saw_suspect(struct swarm *swarm, struct swarm_site *subject)
{
	if (swarm_up(subject))
		swarm->figures.false_suspect++;
	else if (subject->crashed_us != 0 && subject->suspected_us == 0)
		subject->suspected_us = swarm->sim.now_us;
}

static void saw_alive(struct swarm *swarm, const struct swarm_site *subject)
{
	if (swarm->told_count < SWARM_TOLD)
		swarm->told[swarm->told_count++] = subject->number;
}

/* A site that lost what it had, and has a slow clock, may have signed cards of a higher version before. */
static void saw_card(struct swarm *swarm, const struct swarm_site *at, struct str version)
{
	uint64_t number = 0;
	for (size_t i = 0; i < version.length && version.at[i] >= '0' && version.at[i] <= '9'; i++)
		number = number * 10 + (uint64_t)(version.at[i] - '0');
	if (number > at->card_version)
		swarm->told_version = number;
}

void swarm_check_told(struct swarm *swarm, struct swarm_site *at)
{
	uint64_t version = swarm->told_version;
	for (uint32_t i = 0; i < swarm->told_count && at->site && at->role == SWARM_HONEST; i++) {
		const struct swarm_site *subject = &swarm->sites[swarm->told[i]];
		uint32_t number = site_find(at->site, subject->id);
		struct site_member member = {.state = SITE_LEFT};
		if (number != SCOPE_NO_INDEX)
			site_member(at->site, number, &member);
		bool alive = member.state == SITE_ALIVE || member.state == SITE_SUSPECT;
		if (alive && site_is_removed(at->site, subject->id))
			swarm_violation(swarm, "%s shows %s, which is shut out, as alive", at->name, subject->name);
	}
	swarm->told_count = 0;
	swarm->told_version = 0;
	if (version == 0 || !at->site)
		return;
	at->card_version = version;
	swarm_new_card(swarm, at);
}

static const char *event_name(enum site_event_kind kind)
{
	static const char *const names[] = {
		[SITE_EVENT_JOINED] = "joined",     [SITE_EVENT_ALIVE] = "alive",        [SITE_EVENT_SUSPECT] = "suspect",
		[SITE_EVENT_LOST] = "lost",         [SITE_EVENT_LEFT] = "left",          [SITE_EVENT_REVOKED] = "revoked",
		[SITE_EVENT_REMOVED] = "forgotten", [SITE_EVENT_CARD] = "card",          [SITE_EVENT_ROOT] = "root",
		[SITE_EVENT_CONFLICT] = "conflict", [SITE_EVENT_OUTCAST] = "an outcast",
	};
	return names[kind];
}

void swarm_check_event(struct swarm *swarm, struct swarm_site *at, const struct site_event *event)
{
	uint32_t number = swarm_index(swarm, event->subject);
	sim_note(&swarm->sim, sim_mix(at->id ^ (uint64_t)event->kind, event->subject));
	if (number == UINT32_MAX) {
		swarm_violation(swarm, "%s tells of a site that does not exist", at->name);
		return;
	}
	struct swarm_site *subject = &swarm->sites[number];
	swarm_trace(swarm, "%s says: %s (number %" PRIu32 ") is %s %.*s", at->name, subject->name, number,
	            event_name(event->kind), STR_FMT(event->text));
	if (event->kind == SITE_EVENT_LOST)
		saw_lost(swarm, at, subject);
	else if (event->kind == SITE_EVENT_SUSPECT)
		saw_suspect(swarm, subject);
	else if (event->kind == SITE_EVENT_ALIVE || event->kind == SITE_EVENT_JOINED)
		saw_alive(swarm, subject);
	else if (event->kind == SITE_EVENT_CARD && subject == at)
		saw_card(swarm, at, event->text);
}

/* One second of one site is over. */
void swarm_check_traffic(struct swarm *swarm, const struct swarm_site *it)
{
	uint64_t most = PEAK_DATAGRAMS + swarm->count / PEAK_SITES_PER_DATAGRAM;
	if (it->told_second == it->second)
		most += it->told_all * swarm->count;
	if (swarm->sim.now_us < swarm->started_us + ANSWERS_US || !swarm_calm(swarm))
		most += PEAK_ANSWERS;
	if (it->second_datagrams > swarm->window_peak_datagrams)
		swarm->window_peak_datagrams = it->second_datagrams;
	if (it->second_bytes > swarm->window_peak_bytes)
		swarm->window_peak_bytes = it->second_bytes;
	if (it->second_datagrams > most)
		swarm_violation(swarm, "%s sent %" PRIu64 " datagrams in one second, more than %" PRIu64, it->name,
		                it->second_datagrams, most);
}

/* ---- Tables ------------------------------------------------------------------------------------------------------ */

static enum site_state state_at(const struct swarm *swarm, const struct site_member *member)
{
	if (swarm->options.mutation == SWARM_GHOST && member->state == SITE_REVOKED)
		return SITE_ALIVE;
	return member->state;
}

static struct str name_at(const struct swarm *swarm, const struct site_member *member)
{
	if (swarm->options.mutation == SWARM_TWINS && member->id == swarm->sites[2].id)
		return str_of(swarm->sites[1].name);
	return member->name;
}

static void check_member(struct swarm *swarm, const struct swarm_site *at, uint32_t number)
{
	struct site_member member;
	site_member(at->site, number, &member);
	struct str name = name_at(swarm, &member);
	enum site_state state = state_at(swarm, &member);
	if (site_find(at->site, member.id) != number)
		swarm_violation(swarm, "%s: site_find() does not find number %" PRIu32, at->name, number);
	if (name.length > 0 && state != SITE_REVOKED && site_find_name(at->site, name) != number)
		swarm_violation(swarm, "%s: the name %.*s is there twice", at->name, STR_FMT(name));
	bool alive = state == SITE_ALIVE || state == SITE_SUSPECT;
	if (alive && number != 0 && site_is_removed(at->site, member.id))
		swarm_violation(swarm, "%s: %.*s is shut out, and shown as alive", at->name, STR_FMT(name));
}

static void check_table(struct swarm *swarm, const struct swarm_site *at)
{
	uint32_t count = site_count(at->site);
	struct site_member self;
	if (count == 0 || count > swarm->count) {
		swarm_violation(swarm, "%s: a table of %" PRIu32 " sites", at->name, count);
		return;
	}
	site_member(at->site, 0, &self);
	if (self.id != at->id || (self.state != SITE_ALIVE && swarm_up(at)))
		swarm_violation(swarm, "%s: it does not find itself alive at number 0", at->name);
	for (uint32_t i = 0; i < count; i++)
		check_member(swarm, at, i);
	uint64_t entry_bytes = MEMORY_ENTRY_BYTES + swarm->options.card_bytes;
	int64_t most = (int64_t)(MEMORY_BYTES + swarm->count * entry_bytes);
	if (at->bytes > most)
		swarm_violation(swarm, "%s: %" PRId64 " bytes of memory, more than %" PRId64, at->name, at->bytes, most);
}

static void check_spins(struct swarm *swarm)
{
	if (swarm->sim.spins > 0)
		swarm_violation(swarm, "site_due() is not after the time that site_tick() was called at, %" PRIu64 " times",
		                swarm->sim.spins);
	swarm->sim.spins = 0;
}

/* Where there are many, a few tables at a time: each has its turn. */
void swarm_check_tables(struct swarm *swarm, bool all)
{
	check_spins(swarm);
	uint64_t looked_at = 0;
	for (uint32_t i = 0; i < swarm->count && (all || looked_at < TABLE_ENTRIES); i++) {
		const struct swarm_site *at = &swarm->sites[swarm->table_turn++ % swarm->count];
		if (at->site && at->role == SWARM_HONEST) {
			check_table(swarm, at);
			looked_at += site_count(at->site);
		}
	}
}

/* ---- Crashes ----------------------------------------------------------------------------------------------------- */

static bool knows_gone(const struct swarm_site *at, const struct swarm_site *subject)
{
	uint32_t number = site_find(at->site, subject->id);
	struct site_member member;
	if (number == SCOPE_NO_INDEX)
		return true;
	site_member(at->site, number, &member);
	return member.state != SITE_ALIVE && member.state != SITE_SUSPECT;
}

static void measure_crash(struct swarm_figures *figures, const struct swarm_site *crashed)
{
	double first_s = (double)(crashed->first_lost_us - crashed->crashed_us) / SWARM_SECOND_US;
	double last_s = (double)(crashed->last_lost_us - crashed->crashed_us) / SWARM_SECOND_US;
	double suspected_s = (double)(crashed->suspected_us - crashed->crashed_us) / SWARM_SECOND_US;
	if (crashed->suspected_us != 0)
		sim_samples_add(&figures->suspected_s, suspected_s);
	sim_samples_add(&figures->first_s, first_s);
	sim_samples_add(&figures->all_s, last_s);
	sim_samples_add(&figures->spread_s, last_s - first_s);
}

static uint32_t count_ignorant(const struct swarm *swarm, const struct swarm_site *crashed, uint32_t *example)
{
	uint32_t ignorant = 0;
	for (uint32_t i = 0; i < swarm->count; i++) {
		const struct swarm_site *at = &swarm->sites[i];
		if (swarm_up(at) && at != crashed && !knows_gone(at, crashed)) {
			*example = i;
			ignorant++;
		}
	}
	return ignorant;
}

/* Within the bound, all but a few; within the limit, all. Whom nobody probes by chance is nobody's fault. */
void swarm_check_deadline(struct swarm *swarm, struct swarm_site *crashed)
{
	struct swarm_figures *figures = &swarm->figures;
	uint32_t example = 0, ignorant = count_ignorant(swarm, crashed, &example);
	bool last = swarm->sim.now_us - crashed->crashed_us >= swarm_detect_limit_us(swarm);
	figures->deaths += !last;
	figures->late += !last && ignorant > 0;
	uint32_t most = 1 + swarm->options.crashes / LATE_SHARE;
	if (ignorant > 0 && (last || figures->late > most))
		swarm_violation(swarm, "%s crashed %.1f s ago; %" PRIu32 " sites do not know, such as %s", crashed->name,
		                (double)(swarm->sim.now_us - crashed->crashed_us) / SWARM_SECOND_US, ignorant,
		                swarm->sites[example].name);
	if (last && crashed->first_lost_us != 0)
		measure_crash(figures, crashed);
}

/* ---- The end: all see the same ----------------------------------------------------------------------------------- */

static uint32_t find_at(const struct swarm_site *at, const struct swarm_site *subject)
{
	bool blank = at->swarm->options.mutation == SWARM_BLANK && at->number == 1;
	return blank ? SCOPE_NO_INDEX : site_find(at->site, subject->id);
}

/* What a live site knows of itself: all others have to know the same of it. */
static bool same_as_own(const struct swarm_site *at, const struct swarm_site *subject, struct buf *why)
{
	struct site_member own, seen;
	uint32_t number = find_at(at, subject);
	if (number == SCOPE_NO_INDEX) {
		buf_printf(why, "%s does not know %s", at->name, subject->name);
		return false;
	}
	site_member(subject->site, 0, &own);
	site_member(at->site, number, &seen);
	if (seen.state == SITE_ALIVE && seen.incarnation == own.incarnation && seen.card.version == subject->card_version)
		return true;
	buf_printf(why,
	           "at %s: %s is %s, incarnation %" PRIu32 ", card %" PRIu64 "; itself: incarnation %" PRIu32
	           ", card %" PRIu64,
	           at->name, subject->name, site_state_name(seen.state), seen.incarnation, seen.card.version,
	           own.incarnation, subject->card_version);
	return false;
}

static bool sees_absent(const struct swarm *swarm, const struct swarm_site *at, const struct swarm_site *subject,
                        struct buf *why)
{
	uint32_t number = site_find(at->site, subject->id);
	if (site_is_removed(at->site, subject->id) != (subject->removal != 0)) {
		buf_printf(why, "at %s: %s is %sshut out", at->name, subject->name, subject->removal ? "not " : "");
		return false;
	}
	if (number == SCOPE_NO_INDEX)
		return true;
	struct site_member seen;
	site_member(at->site, number, &seen);
	enum site_state state = state_at(swarm, &seen);
	bool right = state == SITE_LOST || state == SITE_LEFT;
	if (subject->removal == SITE_REVOKE)
		right = state == SITE_REVOKED;
	if (subject->removal == SITE_FORGET)
		right = false;
	if (!right)
		buf_printf(why, "at %s: %s is %s", at->name, subject->name, site_state_name(state));
	return right;
}

/* What becomes of impostors and liars is their own affair: a liar believes its lies, and ignores whom it calls shut out. */
static bool sees_right(const struct swarm *swarm, const struct swarm_site *at, const struct swarm_site *subject,
                       struct buf *why)
{
	if (at == subject || !subject->known || subject->role != SWARM_HONEST)
		return true;
	if (!swarm_up(subject))
		return sees_absent(swarm, at, subject, why);
	if (site_is_removed(at->site, subject->id)) {
		buf_printf(why, "at %s: %s is shut out, by nobody who may", at->name, subject->name);
		return false;
	}
	return same_as_own(at, subject, why);
}

/* Who was shut out and runs has heard of it, and is silent: also if it was cut off at that time. */
static bool knows_own_removal(const struct swarm_site *it, struct buf *why)
{
	if (!it->site || it->removal == 0 || it->left || it->role != SWARM_HONEST || site_due(it->site) == UINT64_MAX)
		return true;
	buf_printf(why, "%s is shut out, and does not know", it->name);
	return false;
}

bool swarm_converged(struct swarm *swarm, struct buf *why)
{
	buf_clear(why);
	for (uint32_t i = 0; i < swarm->count; i++)
		if (!knows_own_removal(&swarm->sites[i], why))
			return false;
	for (uint32_t i = 0; i < swarm->count; i++) {
		const struct swarm_site *at = &swarm->sites[i];
		if (!swarm_up(at) || at->role != SWARM_HONEST)
			continue;
		for (uint32_t k = 0; k < swarm->count; k++) {
			if (!sees_right(swarm, at, &swarm->sites[k], why))
				return false;
		}
	}
	return true;
}

/* ---- Figures ----------------------------------------------------------------------------------------------------- */

void swarm_measure_memory(struct swarm *swarm)
{
	struct swarm_figures *figures = &swarm->figures;
	double sum = 0, most = 0;
	uint32_t count = 0;
	for (uint32_t i = 0; i < swarm->count; i++) {
		if (!swarm->sites[i].site)
			continue;
		double bytes = (double)swarm->sites[i].bytes;
		sum += bytes;
		most = bytes > most ? bytes : most;
		count++;
	}
	figures->memory_mean = count ? sum / count : 0;
	figures->memory_most = most;
}

/* What one site makes of the distance between two others. */
static void measure_at(struct swarm *swarm, const struct swarm_site *at, struct sim_samples *errors)
{
	for (uint32_t i = 0; i < DISTANCE_PAIRS; i++) {
		uint32_t a = (uint32_t)sim_random_below(&swarm->random, swarm->count);
		uint32_t b = (uint32_t)sim_random_below(&swarm->random, swarm->count);
		if (a == b || !swarm_up(&swarm->sites[a]) || !swarm_up(&swarm->sites[b]))
			continue;
		uint32_t from = site_find(at->site, swarm->sites[a].id), to = site_find(at->site, swarm->sites[b].id);
		if (from == SCOPE_NO_INDEX || to == SCOPE_NO_INDEX)
			continue;
		int64_t estimate_us = site_estimate_us(at->site, from, to);
		double true_us = sim_network_round_trip_us(&swarm->sim.network, a, b);
		if (estimate_us != SCOPE_RTT_UNKNOWN)
			sim_samples_add(errors, fabs((double)estimate_us - true_us) / true_us);
	}
}

void swarm_measure_distances(struct swarm *swarm)
{
	struct sim_samples errors = {0};
	for (uint32_t i = 0; i < DISTANCE_OBSERVERS; i++) {
		const struct swarm_site *at = &swarm->sites[sim_random_below(&swarm->random, swarm->count)];
		if (swarm_up(at) && at->role == SWARM_HONEST)
			measure_at(swarm, at, &errors);
	}
	swarm->figures.error_median = sim_samples_quantile(&errors, 0.5);
	swarm->figures.error_p90 = sim_samples_quantile(&errors, 0.9);
	sim_samples_free(&errors);
}
