#include "sim/faults.h"

#include "base/check.h"

#include <stdlib.h>
#include <string.h>

enum {
	SATELLITE_US = 1000000,
	FLAP_LEAST_US = 200000,
	FLAP_MOST_US = 3000000,
	LAG_MOST_US = 1000000,
	CLOCK_MOST_MS = 20000,
	CRASH_WITHIN_US = 2000000,
};

void sim_faults_init(struct sim_faults *faults, struct sim *sim, const struct sim_plan_options *options,
                     const struct sim_list *keep, const struct sim_weather *usual)
{
	*faults = (struct sim_faults){.sim = sim, .usual = usual};
	sim_plan_draw(&faults->plan, options);
	faults->rules = calloc((size_t)faults->plan.count + 1, sizeof(*faults->rules));
	CHECK(faults->rules != NULL);
	for (uint32_t i = 0; i < faults->plan.count; i++)
		faults->plan.faults[i].skipped = !sim_list_has(keep, i);
}

void sim_faults_free(struct sim_faults *faults)
{
	sim_plan_free(&faults->plan);
	free(faults->rules);
}

uint32_t sim_faults_plan(struct sim_faults *faults, uint64_t begins, uint64_t ends)
{
	uint32_t planned = 0;
	for (uint32_t i = 0; i < faults->plan.count; i++) {
		const struct sim_fault *fault = &faults->plan.faults[i];
		if (fault->skipped)
			continue;
		sim_at(faults->sim, fault->at_us, begins | i);
		sim_at(faults->sim, fault->until_us, ends | i);
		planned++;
	}
	return planned;
}

/* ---- The network -------------------------------------------------------------------------------------------------- */

static bool is_rule(enum sim_fault_kind kind)
{
	return kind == SIM_PARTITION || kind == SIM_ONE_WAY || kind == SIM_PARTIAL || kind == SIM_FLAP ||
	       kind == SIM_SATELLITE;
}

static void begin_rule(struct sim_faults *faults, uint32_t number)
{
	const struct sim_fault *fault = &faults->plan.faults[number];
	struct sim_network *network = &faults->sim->network;
	struct sim_rule *rule = sim_network_rule(network);
	bool alone = fault->kind == SIM_FLAP || fault->kind == SIM_SATELLITE;
	faults->rules[number] = rule;
	if (!rule)
		return;
	for (uint32_t i = 0; i < network->nodes; i++) {
		uint64_t group = sim_mix(fault->dice, i) % (fault->kind == SIM_PARTIAL ? 3 : 2);
		rule->from[i] = alone ? i == fault->node : group == 0;
		rule->to[i] = alone ? 1 : group == 1;
	}
	rule->both_ways = fault->kind != SIM_ONE_WAY;
	rule->loss = fault->kind == SIM_SATELLITE ? 0.07 : 1;
	rule->delay_us = fault->kind == SIM_SATELLITE ? SATELLITE_US : 0;
	sim_network_switch(network, rule, true);
}

uint64_t sim_faults_flap(struct sim_faults *faults, uint32_t number, struct sim_random *random)
{
	struct sim_rule *rule = faults->rules[number];
	if (!rule)
		return 0;
	sim_network_switch(&faults->sim->network, rule, !rule->on);
	return faults->sim->now_us + sim_random_range(random, FLAP_LEAST_US, FLAP_MOST_US);
}

static void set_weather(struct sim_faults *faults, const struct sim_fault *fault, bool begins)
{
	struct sim_weather *now = &faults->sim->network.weather;
	const struct sim_weather *usual = faults->usual;
	double strength = (double)(fault->dice >> 11) * 0x1p-53;
	if (fault->kind == SIM_LOSS)
		now->loss = begins ? 0.05 + 0.35 * strength : usual->loss;
	if (fault->kind == SIM_DUPLICATE)
		now->duplicate = begins ? 0.05 + 0.65 * strength : usual->duplicate;
	if (fault->kind == SIM_REORDER)
		now->reorder = begins ? 0.05 + 0.65 * strength : usual->reorder;
}

/* ---- All of them -------------------------------------------------------------------------------------------------- */

void sim_faults_begin(struct sim_faults *faults, uint32_t number)
{
	const struct sim_fault *fault = &faults->plan.faults[number];
	if (is_rule(fault->kind))
		begin_rule(faults, number);
	set_weather(faults, fault, true);
	if (fault->kind == SIM_PAUSE)
		sim_pause(faults->sim, fault->node, faults->sim->now_us + fault->until_us - fault->at_us);
	if (fault->kind == SIM_SLOW)
		sim_lag(faults->sim, fault->node, fault->dice % LAG_MOST_US);
}

void sim_faults_end(struct sim_faults *faults, uint32_t number)
{
	const struct sim_fault *fault = &faults->plan.faults[number];
	if (faults->rules[number])
		sim_network_drop_rule(&faults->sim->network, faults->rules[number]);
	faults->rules[number] = NULL;
	set_weather(faults, fault, false);
	if (fault->kind == SIM_SLOW)
		sim_lag(faults->sim, fault->node, 0);
}

void sim_faults_heal(struct sim_faults *faults)
{
	struct sim_network *network = &faults->sim->network;
	sim_network_heal(network);
	memset(faults->rules, 0, faults->plan.count * sizeof(*faults->rules));
	network->weather = *faults->usual;
}

/* At once; when it is about to make something durable; or when it has, and did some of what waited for it. */
uint32_t sim_fault_crash_at(const struct sim_fault *fault)
{
	return fault->dice % 3 == 0 ? 0 : fault->dice % 3 == 1 ? 1 : 2 + (uint32_t)(fault->dice / 3 % 4);
}

uint64_t sim_fault_crash_by_us(const struct sim_fault *fault, uint64_t now_us)
{
	uint64_t longest_us = fault->until_us - fault->at_us;
	return now_us + (longest_us < CRASH_WITHIN_US ? longest_us : CRASH_WITHIN_US);
}

int64_t sim_fault_clock_ms(const struct sim_fault *fault)
{
	return (int64_t)(fault->dice % (2 * CLOCK_MOST_MS)) - CLOCK_MOST_MS;
}

bool sim_fault_clock_stays(const struct sim_fault *fault)
{
	return fault->dice % 5 == 0;
}
