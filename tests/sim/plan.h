/* The plan of a run: which faults happen when. Drawn from the seed before anything runs, so that a failing run can be
 * made smaller by leaving faults out. */
#ifndef SIM_PLAN_H
#define SIM_PLAN_H

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

/* X(NAME, name, weight, what it does). Of weight 0: happens only where it is asked for, and nothing else is. */
#define SIM_FAULTS(X)                                                                                                  \
	X(CRASH, "crash", 8, "dies, and starts again from what it had synced")                                             \
	X(CRASH_EMPTY, "crash-empty", 4, "dies, and starts again with its key alone")                                      \
	X(CRASH_FOR_GOOD, "crash-for-good", 3, "dies, and stays so")                                                       \
	X(PAUSE, "pause", 6, "the process stands still; what comes waits")                                                 \
	X(SLOW, "slow", 6, "the process handles everything late")                                                          \
	X(PARTITION, "partition", 6, "two groups do not reach each other")                                                 \
	X(ONE_WAY, "one-way", 4, "one group does not reach the other, which reaches it")                                   \
	X(PARTIAL, "partial", 4, "two groups are cut, a third reaches both")                                               \
	X(FLAP, "flap", 4, "one site's line comes and goes")                                                               \
	X(LOSS, "loss", 4, "many datagrams are lost, between everybody")                                                   \
	X(DUPLICATE, "duplicate", 3, "many datagrams come twice")                                                          \
	X(REORDER, "reorder", 3, "many datagrams come late, after others")                                                 \
	X(SATELLITE, "satellite", 3, "one site's line has a second more each way, and 7 % of loss")                        \
	X(CLOCK, "clock", 3, "the wall clock is an hour off")                                                              \
	X(CARD, "card", 6, "its services change: a new card")                                                              \
	X(MOVE, "move", 4, "its address changes: a new card")                                                              \
	X(LEAVE, "leave", 3, "says that it stops, and stops")                                                              \
	X(REVOKE, "revoke", 3, "is shut out, and goes on talking")                                                         \
	X(FORGET, "forget", 2, "is shut out and forgotten, and goes on talking")                                           \
	X(JOIN, "join", 4, "a new site joins")                                                                             \
	X(IMPOSTOR, "impostor", 2, "a new site joins, under a name that is taken")                                         \
	X(LIAR, "liar", 2, "a new site joins, and spreads forged records of another")                                      \
	X(STUTTER, "stutter", 0, "the process stands still again and again, and runs for an instant in between")           \
	X(DISK_FULL, "disk-full", 4, "nothing that is to be kept can be kept")                                             \
	X(SERVICE_DOWN, "service-down", 6, "the service cannot be reached")                                                \
	X(SERVICE_SLOW, "service-slow", 4, "the service takes its time")                                                   \
	X(SERVICE_MUTE, "service-mute", 8, "the service does what it is asked, or not, and nobody hears of it")            \
	X(SERVICE_BUSY, "service-busy", 4, "the service answers 503, before it has done anything")                         \
	X(SERVICE_REFUSES, "service-refuses", 5, "the service answers 4xx to most: its quota is used up")                  \
	X(SERVICE_LOGIN, "service-login", 4, "the service takes nobody's credential")

enum sim_fault_kind {
#define X(NAME, name, weight, what) SIM_##NAME,
	SIM_FAULTS(X)
#undef X
		SIM_FAULT_KINDS,
};

struct sim_fault {
	enum sim_fault_kind kind;
	uint64_t at_us;
	uint64_t until_us;
	uint32_t node;  /* who; for new sites: their number */
	uint32_t other; /* of whom, for impostors and liars */
	uint64_t dice;  /* for the rest: who is in which group, how strong */
	bool skipped;   /* left out of this run */
};

struct sim_plan {
	struct sim_fault *faults;
	uint32_t count;
	uint32_t joiners; /* new sites come on top of those that are there from the start */
};

struct sim_plan_options {
	uint64_t seed;
	uint32_t sites;
	uint64_t from_us;
	uint64_t to_us;
	uint32_t faults;
	uint32_t kinds; /* which may happen, as bits */
};

/* Those of the world of sites, and those of the world of replicated resources. */
#define SIM_SITE_FAULTS ((1u << SIM_DISK_FULL) - 1)
#define SIM_REPLICA_FAULTS                                                                                             \
	(1u << SIM_CRASH | 1u << SIM_PAUSE | 1u << SIM_SLOW | 1u << SIM_PARTITION | 1u << SIM_ONE_WAY |                    \
	 1u << SIM_PARTIAL | 1u << SIM_FLAP | 1u << SIM_LOSS | 1u << SIM_DUPLICATE | 1u << SIM_REORDER |                   \
	 1u << SIM_SATELLITE | 1u << SIM_CLOCK | 1u << SIM_DISK_FULL | 1u << SIM_SERVICE_DOWN | 1u << SIM_SERVICE_SLOW |   \
	 1u << SIM_SERVICE_MUTE | 1u << SIM_SERVICE_BUSY | 1u << SIM_SERVICE_REFUSES | 1u << SIM_SERVICE_LOGIN)

void sim_plan_draw(struct sim_plan *plan, const struct sim_plan_options *options);
void sim_plan_free(struct sim_plan *plan);
/* Those faults that are not skipped, with their numbers, on the standard output. */
void sim_plan_print(const struct sim_plan *plan);

const char *sim_fault_name(enum sim_fault_kind kind);
/* Bits of the kinds in a list "crash,pause"; false: *unknown is not a kind. */
bool sim_fault_kinds(struct str list, uint32_t *kinds, struct str *unknown);
/* "12.300 s to 15.000 s: crash of site 3 (dies, ...)" */
void sim_fault_print(struct buf *out, const struct sim_fault *fault);

#endif
