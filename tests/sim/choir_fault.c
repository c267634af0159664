/* What befalls sites, their disks, their services and what is between them. */
#include "sim/choir.h"

#include "base/check.h"

#include <inttypes.h>

enum {
	SATELLITE_US = 1000000,
	FLAP_LEAST_US = 200000,
	FLAP_MOST_US = 3000000,
	LAG_MOST_US = 1000000,
	CLOCK_MOST_MS = 20000,
	CRASH_WITHIN_US = 2000000,
	NOTICE_LEAST_US = 500000, /* until a site knows that another one can, or cannot, be reached */
	NOTICE_MOST_US = 4000000,
};

/* ---- The network -------------------------------------------------------------------------------------------------- */

static void cut_groups(struct choir *choir, struct sim_rule *rule, const struct sim_fault *fault, uint64_t groups)
{
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		uint64_t group = sim_mix(fault->dice, i) % groups;
		rule->from[i] = group == 0;
		rule->to[i] = group == 1;
	}
	rule->loss = 1;
	rule->both_ways = fault->kind != SIM_ONE_WAY;
}

static void isolate(struct choir *choir, struct sim_rule *rule, uint32_t node)
{
	memset(rule->to, 1, choir->options.sites);
	rule->from[node] = 1;
	rule->loss = 1;
	rule->both_ways = true;
}

static void begin_rule(struct choir *choir, uint32_t number)
{
	const struct sim_fault *fault = &choir->plan.faults[number];
	struct sim_rule *rule = sim_network_rule(&choir->sim.network);
	choir->rules[number] = rule;
	if (!rule)
		return;
	if (fault->kind == SIM_FLAP || fault->kind == SIM_SATELLITE)
		isolate(choir, rule, fault->node);
	else
		cut_groups(choir, rule, fault, fault->kind == SIM_PARTIAL ? 3 : 2);
	if (fault->kind == SIM_SATELLITE) {
		rule->loss = 0.07;
		rule->delay_us = SATELLITE_US;
	}
	sim_network_switch(&choir->sim.network, rule, true);
	if (fault->kind == SIM_FLAP)
		choir_fault_flap(choir, number);
}

static void end_rule(struct choir *choir, uint32_t number)
{
	if (choir->rules[number])
		sim_network_drop_rule(&choir->sim.network, choir->rules[number]);
	choir->rules[number] = NULL;
}

void choir_fault_flap(struct choir *choir, uint32_t number)
{
	struct sim_rule *rule = choir->rules[number];
	if (!rule)
		return;
	sim_network_switch(&choir->sim.network, rule, !rule->on);
	uint64_t next_us = choir->sim.now_us + sim_random_range(&choir->random, FLAP_LEAST_US, FLAP_MOST_US);
	choir_at(choir, next_us, CHOIR_ACT_FLAP, number);
}

static void set_weather(struct choir *choir, const struct sim_fault *fault, bool begins)
{
	struct sim_weather *now = &choir->sim.network.weather;
	const struct sim_weather *usual = &choir->options.weather;
	double strength = (double)(fault->dice >> 11) * 0x1p-53;
	if (fault->kind == SIM_LOSS)
		now->loss = begins ? 0.05 + 0.35 * strength : usual->loss;
	if (fault->kind == SIM_DUPLICATE)
		now->duplicate = begins ? 0.05 + 0.65 * strength : usual->duplicate;
	if (fault->kind == SIM_REORDER)
		now->reorder = begins ? 0.05 + 0.65 * strength : usual->reorder;
}

/* ---- One site ----------------------------------------------------------------------------------------------------- */

/* At once; when it is about to make something durable; or when it has, and did some of what waited for it. */
static void begin_crash(struct choir *choir, const struct sim_fault *fault, struct choir_site *it)
{
	it->crash_at_commit = fault->dice % 3 == 0 ? 0 : fault->dice % 3 == 1 ? 1 : 2 + (uint32_t)(fault->dice / 3 % 4);
	if (it->crash_at_commit == 0) {
		choir_crash(choir, it);
		return;
	}
	uint64_t longest_us = fault->until_us - fault->at_us;
	it->crash_by_us = choir->sim.now_us + (longest_us < CRASH_WITHIN_US ? longest_us : CRASH_WITHIN_US);
	choir_at(choir, it->crash_by_us, CHOIR_ACT_CRASH, it->number);
}

static void begin_at(struct choir *choir, const struct sim_fault *fault, struct choir_site *it)
{
	uint64_t until_us = choir->sim.now_us + fault->until_us - fault->at_us;
	switch (fault->kind) {
	case SIM_CRASH: begin_crash(choir, fault, it); break;
	case SIM_PAUSE: sim_pause(&choir->sim, it->number, until_us); break;
	case SIM_SLOW: sim_lag(&choir->sim, it->number, fault->dice % LAG_MOST_US); break;
	case SIM_CLOCK: it->wall_offset_ms = (int64_t)(fault->dice % (2 * CLOCK_MOST_MS)) - CLOCK_MOST_MS; break;
	case SIM_DISK_FULL: it->disk_full = true; break;
	case SIM_SERVICE_DOWN:
	case SIM_SERVICE_SLOW:
	case SIM_SERVICE_MUTE:
	case SIM_SERVICE_BUSY:
	case SIM_SERVICE_REFUSES:
	case SIM_SERVICE_LOGIN: it->service |= 1u << fault->kind; break;
	default: UNREACHABLE("not a fault of one site");
	}
}

static void end_at(struct choir *choir, const struct sim_fault *fault, struct choir_site *it)
{
	if (fault->kind == SIM_CRASH) {
		it->crash_at_commit = 0;
		if (!it->replica)
			choir_start(choir, it);
	}
	if (fault->kind == SIM_SLOW)
		sim_lag(&choir->sim, it->number, 0);
	if (fault->kind == SIM_DISK_FULL)
		it->disk_full = false;
	if (fault->kind == SIM_CLOCK && fault->dice % 5) /* some clocks stay as they are */
		it->wall_offset_ms = 0;
	it->service &= ~(1u << fault->kind);
}

static bool is_of_all(enum sim_fault_kind kind)
{
	return kind == SIM_LOSS || kind == SIM_DUPLICATE || kind == SIM_REORDER;
}

static bool is_rule(enum sim_fault_kind kind)
{
	return kind == SIM_PARTITION || kind == SIM_ONE_WAY || kind == SIM_PARTIAL || kind == SIM_FLAP ||
	       kind == SIM_SATELLITE;
}

void choir_fault_begin(struct choir *choir, uint32_t number)
{
	const struct sim_fault *fault = &choir->plan.faults[number];
	choir_tell(choir, CHOIR_NOBODY, "fault %" PRIu32 ": %s, s%" PRIu32, number, sim_fault_name(fault->kind),
	           fault->node);
	if (is_rule(fault->kind))
		begin_rule(choir, number);
	else if (is_of_all(fault->kind))
		set_weather(choir, fault, true);
	else
		begin_at(choir, fault, &choir->sites[fault->node]);
}

void choir_fault_end(struct choir *choir, uint32_t number)
{
	const struct sim_fault *fault = &choir->plan.faults[number];
	choir_tell(choir, CHOIR_NOBODY, "fault %" PRIu32 " ends: %s, s%" PRIu32, number, sim_fault_name(fault->kind),
	           fault->node);
	end_rule(choir, number);
	set_weather(choir, fault, false);
	if (!is_rule(fault->kind) && !is_of_all(fault->kind))
		end_at(choir, fault, &choir->sites[fault->node]);
}

void choir_heal(struct choir *choir)
{
	sim_network_heal(&choir->sim.network);
	for (uint32_t i = 0; i < choir->plan.count; i++)
		choir->rules[i] = NULL;
	choir->sim.network.weather = choir->options.weather;
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		struct choir_site *it = &choir->sites[i];
		sim_pause(&choir->sim, i, 0);
		sim_lag(&choir->sim, i, 0);
		it->disk_full = false;
		it->service = 0;
		it->crash_at_commit = 0;
		if (!it->replica)
			choir_start(choir, it);
	}
}

/* ---- Who reaches whom --------------------------------------------------------------------------------------------- */

static bool is_cut(const struct choir *choir, uint32_t from, uint32_t to)
{
	for (uint32_t i = 0; i < SIM_RULES; i++) {
		const struct sim_rule *rule = &choir->sim.network.rules[i];
		if (rule->on && rule->loss >= 1 &&
		    ((rule->from[from] && rule->to[to]) || (rule->both_ways && rule->from[to] && rule->to[from])))
			return true;
	}
	return false;
}

/* As the table of sites would say it: a while after it is so. */
static void watch(struct choir *choir, struct choir_site *it, const struct choir_site *other)
{
	bool reaches =
		other->replica && !is_cut(choir, it->number, other->number) && !is_cut(choir, other->number, it->number);
	uint64_t *since_us = &it->reach_change_us[other->number];
	if (reaches == it->reaches[other->number]) {
		*since_us = 0;
	} else if (*since_us == 0) {
		*since_us = choir->sim.now_us + sim_random_range(&it->luck, NOTICE_LEAST_US, NOTICE_MOST_US);
	} else if (choir->sim.now_us >= *since_us) {
		*since_us = 0;
		it->reaches[other->number] = reaches;
		if (!reaches)
			return;
		choir_tell(choir, CHOIR_NOBODY, "s%" PRIu32 " meets s%" PRIu32, it->number, other->number);
		choir_enter(it);
		replica_met(it->replica, other->id, choir_now(choir, it));
		choir_leave(it);
	}
}

void choir_watch(struct choir *choir)
{
	for (uint32_t i = 0; i < choir->options.sites; i++)
		for (uint32_t k = 0; k < choir->options.sites; k++)
			if (i != k && choir->sites[i].replica)
				watch(choir, &choir->sites[i], &choir->sites[k]);
}
