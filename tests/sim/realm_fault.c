/* What befalls sites, their disks and what is between them. */
#include "sim/realm.h"

#include "base/check.h"

#include <inttypes.h>

enum {
	SATELLITE_US = 1000000,
	FLAP_LEAST_US = 200000,
	FLAP_MOST_US = 3000000,
	LAG_MOST_US = 1000000,
	CLOCK_MOST_MS = 20000,
	CRASH_WITHIN_US = 2000000
};

static void begin_rule(struct realm *realm, uint32_t number)
{
	const struct sim_fault *fault = &realm->plan.faults[number];
	struct sim_rule *rule = sim_network_rule(&realm->sim.network);
	bool alone = fault->kind == SIM_FLAP || fault->kind == SIM_SATELLITE;
	realm->rules[number] = rule;
	if (!rule)
		return;
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		uint64_t group = sim_mix(fault->dice, i) % (fault->kind == SIM_PARTIAL ? 3 : 2);
		rule->from[i] = alone ? i == fault->node : group == 0;
		rule->to[i] = alone ? 1 : group == 1;
	}
	rule->both_ways = fault->kind != SIM_ONE_WAY;
	rule->loss = fault->kind == SIM_SATELLITE ? 0.07 : 1;
	rule->delay_us = fault->kind == SIM_SATELLITE ? SATELLITE_US : 0;
	sim_network_switch(&realm->sim.network, rule, true);
	if (fault->kind == SIM_FLAP)
		realm_fault_flap(realm, number);
}

void realm_fault_flap(struct realm *realm, uint32_t number)
{
	struct sim_rule *rule = realm->rules[number];
	if (!rule)
		return;
	sim_network_switch(&realm->sim.network, rule, !rule->on);
	realm_at(realm, realm->sim.now_us + sim_random_range(&realm->random, FLAP_LEAST_US, FLAP_MOST_US), REALM_ACT_FLAP,
	         number);
}

static void set_weather(struct realm *realm, const struct sim_fault *fault, bool begins)
{
	struct sim_weather *now = &realm->sim.network.weather;
	const struct sim_weather *usual = &realm->options.weather;
	double strength = (double)(fault->dice >> 11) * 0x1p-53;
	if (fault->kind == SIM_LOSS)
		now->loss = begins ? 0.05 + 0.35 * strength : usual->loss;
	if (fault->kind == SIM_DUPLICATE)
		now->duplicate = begins ? 0.05 + 0.65 * strength : usual->duplicate;
	if (fault->kind == SIM_REORDER)
		now->reorder = begins ? 0.05 + 0.65 * strength : usual->reorder;
}

/* At once; when it is about to make something durable; or when it has, and did some of what waited for it. */
static void begin_crash(struct realm *realm, const struct sim_fault *fault, struct realm_site *it)
{
	if (fault->dice % 3 == 0) {
		realm_crash(realm, it);
		return;
	}
	uint64_t longest_us = fault->until_us - fault->at_us;
	it->crash_at_commit = fault->dice % 3 == 1 ? 1 : 2 + (uint32_t)(fault->dice / 3 % 4);
	realm_at(realm, realm->sim.now_us + (longest_us < CRASH_WITHIN_US ? longest_us : CRASH_WITHIN_US), REALM_ACT_CRASH,
	         it->number);
}

static bool is_rule(enum sim_fault_kind kind)
{
	return kind == SIM_PARTITION || kind == SIM_ONE_WAY || kind == SIM_PARTIAL || kind == SIM_FLAP ||
	       kind == SIM_SATELLITE;
}

void realm_fault_begin(struct realm *realm, uint32_t number)
{
	const struct sim_fault *fault = &realm->plan.faults[number];
	struct realm_site *it = &realm->sites[fault->node];
	realm_tell(realm, "fault %" PRIu32 ": %s, s%" PRIu32, number, sim_fault_name(fault->kind), fault->node);
	if (is_rule(fault->kind)) {
		begin_rule(realm, number);
		return;
	}
	set_weather(realm, fault, true);
	switch (fault->kind) {
	case SIM_CRASH: begin_crash(realm, fault, it); break;
	case SIM_PAUSE: sim_pause(&realm->sim, it->number, realm->sim.now_us + fault->until_us - fault->at_us); break;
	case SIM_SLOW: sim_lag(&realm->sim, it->number, fault->dice % LAG_MOST_US); break;
	case SIM_CLOCK: it->wall_offset_ms = (int64_t)(fault->dice % (2 * CLOCK_MOST_MS)) - CLOCK_MOST_MS; break;
	case SIM_DISK_FULL: it->disk_full = true; break;
	case SIM_SERVICE_REFUSES: it->refuses = true; break;
	case SIM_SERVICE_SLOW: it->slow = true; break;
	default: break;
	}
}

void realm_fault_end(struct realm *realm, uint32_t number)
{
	const struct sim_fault *fault = &realm->plan.faults[number];
	struct realm_site *it = &realm->sites[fault->node];
	if (realm->rules[number])
		sim_network_drop_rule(&realm->sim.network, realm->rules[number]);
	realm->rules[number] = NULL;
	set_weather(realm, fault, false);
	switch (fault->kind) {
	case SIM_CRASH:
		it->crash_at_commit = 0;
		if (!it->replica)
			realm_start(realm, it);
		break;
	case SIM_SLOW: sim_lag(&realm->sim, it->number, 0); break;
	case SIM_CLOCK: it->wall_offset_ms = fault->dice % 5 ? 0 : it->wall_offset_ms; break;
	case SIM_DISK_FULL: it->disk_full = false; break;
	case SIM_SERVICE_REFUSES: it->refuses = false; break;
	case SIM_SERVICE_SLOW: it->slow = false; break;
	default: break;
	}
}

void realm_heal(struct realm *realm)
{
	sim_network_heal(&realm->sim.network);
	for (uint32_t i = 0; i < realm->plan.count; i++)
		realm->rules[i] = NULL;
	realm->sim.network.weather = realm->options.weather;
	for (uint32_t i = 0; i < realm->options.sites; i++) {
		struct realm_site *it = &realm->sites[i];
		sim_pause(&realm->sim, i, 0);
		sim_lag(&realm->sim, i, 0);
		it->disk_full = it->refuses = it->slow = false;
		it->crash_at_commit = 0;
		if (!it->replica)
			realm_start(realm, it);
	}
}
