/* Faults as a plan has them, in the worlds whose sites have a disk: what befalls the network, processes and clocks. What a world has to do itself, such as
 * to let a process die, it is left. */
#ifndef SIM_FAULTS_H
#define SIM_FAULTS_H

#include "sim/plan.h"
#include "sim/runner.h"
#include "sim/sim.h"

struct sim_faults {
	struct sim *sim;
	struct sim_plan plan;
	struct sim_rule **rules;         /* per fault */
	const struct sim_weather *usual; /* between them */
};

/* `usual` has to stay. Of the plan only those in `keep` happen. */
void sim_faults_init(struct sim_faults *faults, struct sim *sim, const struct sim_plan_options *options,
                     const struct sim_list *keep, const struct sim_weather *usual);
void sim_faults_free(struct sim_faults *faults);
/* Plans them: `begins` and `ends` are what sim_at() is told, with the number of the fault below. Returns how many. */
uint32_t sim_faults_plan(struct sim_faults *faults, uint64_t begins, uint64_t ends);

/* Does what is of the network, pauses and slowness. What is left: a fault of SIM_FLAP flaps first now, those of disks, clocks, services, crashes. */
void sim_faults_begin(struct sim_faults *faults, uint32_t number);
void sim_faults_end(struct sim_faults *faults, uint32_t number);
/* The line comes, or goes. When it is to do so again; 0: never, the fault is over. */
uint64_t sim_faults_flap(struct sim_faults *faults, uint32_t number, struct sim_random *random);
/* The network is as it usually is. */
void sim_faults_heal(struct sim_faults *faults);

/* Of a crash: at which of the site's commits; 0: at once. */
uint32_t sim_fault_crash_at(const struct sim_fault *fault);
/* If there is no such commit by then, it dies. */
uint64_t sim_fault_crash_by_us(const struct sim_fault *fault, uint64_t now_us);
/* Of a clock: how far it is off; and when the fault is over, some stay as they are. */
int64_t sim_fault_clock_ms(const struct sim_fault *fault);
bool sim_fault_clock_stays(const struct sim_fault *fault);

#endif
