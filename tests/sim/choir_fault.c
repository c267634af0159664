/* What befalls sites, their disks and their services; of the network, faults.c. And who notices it. */
#include "sim/choir.h"

#include <inttypes.h>

enum {
	NOTICE_LEAST_US = 500000, /* until a site knows that another one can, or cannot, be reached */
	NOTICE_MOST_US = 4000000,
};

/* ---- One site ----------------------------------------------------------------------------------------------------- */

void choir_fault_flap(struct choir *choir, uint32_t number)
{
	uint64_t next_us = sim_faults_flap(&choir->faults, number, &choir->random);
	if (next_us != 0)
		choir_at(choir, next_us, CHOIR_ACT_FLAP, number);
}

static void begin_crash(struct choir *choir, const struct sim_fault *fault, struct choir_site *it)
{
	it->crash_at_commit = sim_fault_crash_at(fault);
	if (it->crash_at_commit == 0) {
		choir_crash(choir, it);
		return;
	}
	it->crash_by_us = sim_fault_crash_by_us(fault, choir->sim.now_us);
	choir_at(choir, it->crash_by_us, CHOIR_ACT_CRASH, it->number);
}

static bool is_of_service(enum sim_fault_kind kind)
{
	return kind == SIM_SERVICE_DOWN || kind == SIM_SERVICE_SLOW || kind == SIM_SERVICE_MUTE ||
	       kind == SIM_SERVICE_BUSY || kind == SIM_SERVICE_REFUSES || kind == SIM_SERVICE_LOGIN;
}

void choir_fault_begin(struct choir *choir, uint32_t number)
{
	const struct sim_fault *fault = &choir->faults.plan.faults[number];
	struct choir_site *it = &choir->sites[fault->node];
	choir_tell(choir, CHOIR_NOBODY, "fault %" PRIu32 ": %s, s%" PRIu32, number, sim_fault_name(fault->kind),
	           fault->node);
	sim_faults_begin(&choir->faults, number);
	if (fault->kind == SIM_FLAP)
		choir_fault_flap(choir, number);
	if (fault->kind == SIM_CRASH)
		begin_crash(choir, fault, it);
	if (fault->kind == SIM_CLOCK)
		it->wall_offset_ms = sim_fault_clock_ms(fault);
	if (fault->kind == SIM_DISK_FULL)
		it->disk_full = true;
	if (is_of_service(fault->kind))
		it->service |= 1u << fault->kind;
}

void choir_fault_end(struct choir *choir, uint32_t number)
{
	const struct sim_fault *fault = &choir->faults.plan.faults[number];
	struct choir_site *it = &choir->sites[fault->node];
	choir_tell(choir, CHOIR_NOBODY, "fault %" PRIu32 " ends: %s, s%" PRIu32, number, sim_fault_name(fault->kind),
	           fault->node);
	sim_faults_end(&choir->faults, number);
	if (fault->kind == SIM_CRASH) {
		it->crash_at_commit = 0;
		if (!it->replica)
			choir_start(choir, it);
	}
	if (fault->kind == SIM_CLOCK && !sim_fault_clock_stays(fault))
		it->wall_offset_ms = 0;
	if (fault->kind == SIM_DISK_FULL)
		it->disk_full = false;
	if (is_of_service(fault->kind))
		it->service &= ~(1u << fault->kind);
}

void choir_heal(struct choir *choir)
{
	sim_faults_heal(&choir->faults);
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
