/* What befalls sites: one function per kind of fault that begins or ends. A fault that finds its site gone, or in
 * another fault's hands, does nothing. */
#include "sim/swarm.h"

#include "base/check.h"

#include <inttypes.h>

enum {
	FLAP_LEAST_US = 300000,
	FLAP_MOST_US = 3 * SWARM_SECOND_US,
	LAG_MOST_US = 3 * SWARM_SECOND_US,
	STILL_LEAST_US = 128000,
	STILL_MOST_US = 4 * SWARM_SECOND_US,
	FREE_MOST_US = 64000,
	SATELLITE_US = SWARM_SECOND_US, /* each way */
	HOUR_MS = 3600 * 1000,
};

/* ---- What the checks have to know -------------------------------------------------------------------------------- */

/* While the network or a process is not as it should be, sites may be wrong about each other, */
void swarm_disturb(struct swarm *swarm)
{
	swarm->disturbances++;
}

/* and a little longer. */
void swarm_settle(struct swarm *swarm)
{
	CHECK(swarm->disturbances > 0);
	swarm->disturbances--;
	swarm->disturbed_until_us = swarm->sim.now_us + swarm_detect_bound_us(swarm);
}

static void excuse(struct swarm *swarm, struct swarm_site *it)
{
	it->disturbed_until_us = swarm->sim.now_us + swarm_detect_bound_us(swarm);
}

/* Faults of the network and of processes that others may take for death. */
static bool disturbs(enum sim_fault_kind kind)
{
	switch (kind) {
	case SIM_PAUSE:
	case SIM_SLOW:
	case SIM_STUTTER:
	case SIM_PARTITION:
	case SIM_ONE_WAY:
	case SIM_PARTIAL:
	case SIM_FLAP:
	case SIM_LOSS:
	case SIM_REORDER:
	case SIM_SATELLITE: return true;
	default: return false;
	}
}

/* ---- Processes --------------------------------------------------------------------------------------------------- */

void swarm_crash(struct swarm *swarm, struct swarm_site *it)
{
	if (!it->site || swarm->options.mutation == SWARM_IMMORTAL) {
		it->crashed_us = swarm->sim.now_us;
		it->gone = true;
		return;
	}
	swarm_trace(swarm, "%s crashes", it->name);
	swarm_stop(swarm, it);
	it->crashed_us = swarm->sim.now_us;
	it->suspected_us = it->first_lost_us = it->last_lost_us = 0;
}

static void restart(struct swarm *swarm, struct swarm_site *it, bool from_synced)
{
	if (it->site || it->gone || it->left || it->removal)
		return;
	excuse(swarm, it);
	it->crashed_us = 0;
	swarm_start(swarm, it, from_synced);
}

static void change_card(struct swarm *swarm, struct swarm_site *it, bool moves)
{
	it->edits++;
	if (moves) {
		it->moves++;
		excuse(swarm, it);
	}
	swarm_new_card(swarm, it);
}

/* ---- The network ------------------------------------------------------------------------------------------------- */

/* Everybody is in one of `groups` by the dice; the first two are cut from each other. */
static void cut_groups(struct swarm *swarm, struct sim_rule *rule, const struct sim_fault *fault, uint64_t groups)
{
	for (uint32_t i = 0; i < swarm->count; i++) {
		uint64_t group = sim_mix(fault->dice, i) % groups;
		rule->from[i] = group == 0;
		rule->to[i] = group == 1;
	}
	rule->loss = 1;
	rule->both_ways = fault->kind != SIM_ONE_WAY;
}

static void isolate(struct swarm *swarm, struct sim_rule *rule, uint32_t node)
{
	memset(rule->to, 1, swarm->count);
	rule->from[node] = 1;
	rule->loss = 1;
	rule->both_ways = true;
}

static void begin_rule(struct swarm *swarm, uint32_t number)
{
	const struct sim_fault *fault = &swarm->plan.faults[number];
	struct sim_rule *rule = sim_network_rule(&swarm->sim.network);
	swarm->rules[number] = rule;
	if (!rule)
		return;
	if (fault->kind == SIM_FLAP || fault->kind == SIM_SATELLITE)
		isolate(swarm, rule, fault->node);
	else
		cut_groups(swarm, rule, fault, fault->kind == SIM_PARTIAL ? 3 : 2);
	if (fault->kind == SIM_SATELLITE) {
		rule->loss = 0.07;
		rule->delay_us = SATELLITE_US;
	}
	sim_network_switch(&swarm->sim.network, rule, true);
	if (fault->kind == SIM_FLAP)
		swarm_fault_flap(swarm, number);
}

static void end_rule(struct swarm *swarm, uint32_t number)
{
	if (swarm->rules[number])
		sim_network_drop_rule(&swarm->sim.network, swarm->rules[number]);
	swarm->rules[number] = NULL;
}

static void flap(struct swarm *swarm, uint32_t number, struct sim_rule *rule)
{
	sim_network_switch(&swarm->sim.network, rule, !rule->on);
	uint64_t next_us = swarm->sim.now_us + sim_random_range(&swarm->random, FLAP_LEAST_US, FLAP_MOST_US);
	swarm_at(swarm, next_us, SWARM_ACT_FLAP, number);
}

/* As in the evaluation of Lifeguard: blocked for some seconds, free for some milliseconds, and so on. */
static void stutter(struct swarm *swarm, uint32_t number, uint32_t node)
{
	uint64_t until_us = swarm->sim.now_us + sim_random_range(&swarm->random, STILL_LEAST_US, STILL_MOST_US);
	sim_pause(&swarm->sim, node, until_us);
	swarm_at(swarm, until_us + sim_random_range(&swarm->random, 1, FREE_MOST_US), SWARM_ACT_FLAP, number);
}

void swarm_fault_flap(struct swarm *swarm, uint32_t number)
{
	const struct sim_fault *fault = &swarm->plan.faults[number];
	if (swarm->rules[number])
		flap(swarm, number, swarm->rules[number]);
	else if (fault->kind == SIM_STUTTER && swarm->sim.now_us < swarm->faults_us + fault->until_us)
		stutter(swarm, number, fault->node);
}

/* The strongest of the kinds under way would be right; the last one is good enough. */
static void set_weather(struct swarm *swarm, const struct sim_fault *fault, bool begins)
{
	struct sim_weather *now = &swarm->sim.network.weather;
	const struct sim_weather *usual = &swarm->options.weather;
	double strength = (double)(fault->dice >> 11) * 0x1p-53;
	if (fault->kind == SIM_LOSS)
		now->loss = begins ? 0.05 + 0.25 * strength : usual->loss;
	if (fault->kind == SIM_DUPLICATE)
		now->duplicate = begins ? 0.05 + 0.45 * strength : usual->duplicate;
	if (fault->kind == SIM_REORDER)
		now->reorder = begins ? 0.05 + 0.45 * strength : usual->reorder;
}

/* ---- Any ---------------------------------------------------------------------------------------------------------- */

static void begin_new_site(struct swarm *swarm, struct swarm_site *it)
{
	if (it->site || it->known)
		return;
	swarm_start(swarm, it, false);
}

/* Faults of a site that is not running have to wait for a better day. */
static void begin_at(struct swarm *swarm, const struct sim_fault *fault, struct swarm_site *it)
{
	uint64_t lag_us = fault->dice % LAG_MOST_US;
	switch (fault->kind) {
	case SIM_CRASH: swarm_crash(swarm, it); break;
	case SIM_CRASH_EMPTY:
		swarm_crash(swarm, it);
		it->card_version = 0;
		buf_clear(&it->synced);
		break;
	case SIM_CRASH_FOR_GOOD:
		swarm_crash(swarm, it);
		it->gone = true;
		break;
	case SIM_PAUSE: sim_pause(&swarm->sim, it->number, swarm->sim.now_us + fault->until_us - fault->at_us); break;
	case SIM_SLOW: sim_lag(&swarm->sim, it->number, lag_us); break;
	case SIM_CLOCK: it->wall_offset_ms = fault->dice & 1 ? HOUR_MS : -HOUR_MS; break;
	case SIM_CARD: change_card(swarm, it, false); break;
	case SIM_MOVE: change_card(swarm, it, true); break;
	case SIM_LEAVE: swarm_leave(swarm, it); break;
	case SIM_STUTTER: swarm_fault_flap(swarm, (uint32_t)(fault - swarm->plan.faults)); break;
	case SIM_REVOKE:
	case SIM_FORGET:
		if (swarm->sites[0].site)
			swarm_remove(swarm, it, fault->kind == SIM_REVOKE ? SITE_REVOKE : SITE_FORGET);
		break;
	default: UNREACHABLE("not a fault of one site");
	}
}

void swarm_fault_begin(struct swarm *swarm, uint32_t number)
{
	struct sim_fault *fault = &swarm->plan.faults[number];
	struct swarm_site *it = &swarm->sites[fault->node];
	swarm_trace(swarm, "fault %" PRIu32 ": %s, %s", number, sim_fault_name(fault->kind), it->name);
	if (disturbs(fault->kind))
		swarm_disturb(swarm);
	switch (fault->kind) {
	case SIM_PARTITION:
	case SIM_ONE_WAY:
	case SIM_PARTIAL:
	case SIM_FLAP:
	case SIM_SATELLITE: begin_rule(swarm, number); break;
	case SIM_LOSS:
	case SIM_DUPLICATE:
	case SIM_REORDER: set_weather(swarm, fault, true); break;
	case SIM_JOIN:
	case SIM_IMPOSTOR:
	case SIM_LIAR: begin_new_site(swarm, it); break;
	default:
		if (swarm_up(it))
			begin_at(swarm, fault, it);
	}
}

void swarm_fault_end(struct swarm *swarm, uint32_t number)
{
	struct sim_fault *fault = &swarm->plan.faults[number];
	struct swarm_site *it = &swarm->sites[fault->node];
	swarm_trace(swarm, "fault %" PRIu32 " ends: %s, %s", number, sim_fault_name(fault->kind), it->name);
	if (disturbs(fault->kind))
		swarm_settle(swarm);
	end_rule(swarm, number);
	set_weather(swarm, fault, false);
	if (fault->kind == SIM_CRASH || fault->kind == SIM_CRASH_EMPTY)
		restart(swarm, it, fault->kind == SIM_CRASH);
	if (fault->kind == SIM_LIAR && it->site)
		swarm_lie(swarm, it);
	if (fault->kind == SIM_SLOW) {
		sim_lag(&swarm->sim, it->number, 0);
		excuse(swarm, it);
	}
}

/* All faults end by the end of the plan. What is left is a restart that another fault was in the way of. */
void swarm_heal(struct swarm *swarm)
{
	sim_network_heal(&swarm->sim.network);
	swarm->sim.network.weather = swarm->options.weather;
	for (uint32_t i = 0; i < swarm->count; i++) {
		struct swarm_site *it = &swarm->sites[i];
		sim_pause(&swarm->sim, i, 0);
		sim_lag(&swarm->sim, i, 0);
		if (it->known)
			restart(swarm, it, it->syncs);
	}
}
