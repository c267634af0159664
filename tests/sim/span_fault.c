/* What befalls sites and their disks; of the network, faults.c. */
#include "sim/span.h"

#include <inttypes.h>

void span_fault_flap(struct span *span, uint32_t number)
{
	uint64_t next_us = sim_faults_flap(&span->faults, number, &span->random);
	if (next_us != 0)
		span_at(span, next_us, SPAN_ACT_FLAP, number);
}

static void begin_crash(struct span *span, const struct sim_fault *fault, struct span_site *it)
{
	it->crash_at_commit = sim_fault_crash_at(fault);
	if (it->crash_at_commit == 0)
		span_crash(span, it);
	else
		span_at(span, sim_fault_crash_by_us(fault, span->sim.now_us), SPAN_ACT_CRASH, it->number);
}

void span_fault_begin(struct span *span, uint32_t number)
{
	const struct sim_fault *fault = &span->faults.plan.faults[number];
	struct span_site *it = &span->sites[fault->node];
	span_tell(span, "fault %" PRIu32 ": %s, s%" PRIu32, number, sim_fault_name(fault->kind), fault->node);
	sim_faults_begin(&span->faults, number);
	switch (fault->kind) {
	case SIM_FLAP: span_fault_flap(span, number); break;
	case SIM_CRASH: begin_crash(span, fault, it); break;
	case SIM_CLOCK: it->wall_offset_ms = sim_fault_clock_ms(fault); break;
	case SIM_DISK_FULL: it->disk_full = true; break;
	case SIM_SERVICE_REFUSES: it->refuses = true; break;
	case SIM_SERVICE_SLOW: it->slow = true; break;
	default: break;
	}
}

void span_fault_end(struct span *span, uint32_t number)
{
	const struct sim_fault *fault = &span->faults.plan.faults[number];
	struct span_site *it = &span->sites[fault->node];
	sim_faults_end(&span->faults, number);
	switch (fault->kind) {
	case SIM_CRASH:
		it->crash_at_commit = 0;
		if (!it->names && !it->dead)
			span_start(span, it);
		break;
	case SIM_CLOCK: it->wall_offset_ms = sim_fault_clock_stays(fault) ? it->wall_offset_ms : 0; break;
	case SIM_DISK_FULL: it->disk_full = false; break;
	case SIM_SERVICE_REFUSES: it->refuses = false; break;
	case SIM_SERVICE_SLOW: it->slow = false; break;
	default: break;
	}
}

void span_heal(struct span *span)
{
	sim_faults_heal(&span->faults);
	for (uint32_t i = 0; i < span->options.sites; i++) {
		struct span_site *it = &span->sites[i];
		sim_pause(&span->sim, i, 0);
		sim_lag(&span->sim, i, 0);
		it->disk_full = it->refuses = it->slow = false;
		it->crash_at_commit = 0;
		if (!it->names && !it->dead)
			span_start(span, it);
	}
}
