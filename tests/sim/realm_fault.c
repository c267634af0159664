/* What befalls sites and their disks; of the network, faults.c. */
#include "sim/realm.h"

#include <inttypes.h>

void realm_fault_flap(struct realm *realm, uint32_t number)
{
	uint64_t next_us = sim_faults_flap(&realm->faults, number, &realm->random);
	if (next_us != 0)
		realm_at(realm, next_us, REALM_ACT_FLAP, number);
}

static void begin_crash(struct realm *realm, const struct sim_fault *fault, struct realm_site *it)
{
	it->crash_at_commit = sim_fault_crash_at(fault);
	if (it->crash_at_commit == 0)
		realm_crash(realm, it);
	else
		realm_at(realm, sim_fault_crash_by_us(fault, realm->sim.now_us), REALM_ACT_CRASH, it->number);
}

void realm_fault_begin(struct realm *realm, uint32_t number)
{
	const struct sim_fault *fault = &realm->faults.plan.faults[number];
	struct realm_site *it = &realm->sites[fault->node];
	realm_tell(realm, "fault %" PRIu32 ": %s, s%" PRIu32, number, sim_fault_name(fault->kind), fault->node);
	sim_faults_begin(&realm->faults, number);
	switch (fault->kind) {
	case SIM_FLAP: realm_fault_flap(realm, number); break;
	case SIM_CRASH: begin_crash(realm, fault, it); break;
	case SIM_CLOCK: it->wall_offset_ms = sim_fault_clock_ms(fault); break;
	case SIM_DISK_FULL: it->disk_full = true; break;
	case SIM_SERVICE_REFUSES: it->refuses = true; break;
	case SIM_SERVICE_SLOW: it->slow = true; break;
	default: break;
	}
}

void realm_fault_end(struct realm *realm, uint32_t number)
{
	const struct sim_fault *fault = &realm->faults.plan.faults[number];
	struct realm_site *it = &realm->sites[fault->node];
	sim_faults_end(&realm->faults, number);
	switch (fault->kind) {
	case SIM_CRASH:
		it->crash_at_commit = 0;
		if (!it->replica)
			realm_start(realm, it);
		break;
	case SIM_CLOCK: it->wall_offset_ms = sim_fault_clock_stays(fault) ? it->wall_offset_ms : 0; break;
	case SIM_DISK_FULL: it->disk_full = false; break;
	case SIM_SERVICE_REFUSES: it->refuses = false; break;
	case SIM_SERVICE_SLOW: it->slow = false; break;
	default: break;
	}
}

void realm_heal(struct realm *realm)
{
	sim_faults_heal(&realm->faults);
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
