/* Many sites in one simulated world: struct site with a host that is made of the engine, the faults that befall them,
 * and the checks that say whether they bore them. This is the membership's part of the simulator; engine, network and
 * plan know nothing of it.
 */
#ifndef SIM_SWARM_H
#define SIM_SWARM_H

#include "sim/figures.h"
#include "sim/plan.h"
#include "sim/sim.h"

#include "site/site.h"

enum {
	SWARM_SECOND_US = 1000000,
	SWARM_STEP_US = 100000, /* one step of a run */
	/* that UDP, IP and sealing add to each datagram */
	SWARM_WIRE_BYTES = 28 + LIMIT_SITE_DATAGRAM_BYTES - LIMIT_SITE_MESSAGE_BYTES,
};

/* Deliberate mistakes, by which the tests of the simulator see that its checks can fail. */
enum swarm_mutation {
	SWARM_SOUND,
	SWARM_MUTE,     /* what site 1 sends gets lost in its host, once all know it */
	SWARM_IMMORTAL, /* crashed sites go on */
	SWARM_GULLIBLE, /* signatures are not looked at */
	SWARM_NOISY,    /* the hosts send everything fifty times */
	SWARM_LEAKY,    /* memory is lost with each datagram */
	SWARM_BLANK,    /* the checks are told that site 1 knows nobody */
	SWARM_TWINS,    /* the checks are told that site 2 has the name of site 1 */
	SWARM_GHOST,    /* the checks are told that those who are shut out are alive */
	SWARM_DISCREET, /* nobody tells those who are shut out, but the authority itself, once */
	SWARM_FICKLE,   /* random numbers come from memory addresses */
};

struct swarm_options {
	uint64_t seed;
	uint32_t sites;
	uint32_t steps;      /* of the time in which faults happen */
	uint32_t faults;     /* 0: none */
	uint32_t kinds;      /* of faults */
	uint32_t crashes;    /* in calm weather, one after the other */
	double mass;         /* share of the sites that dies at once, in calm weather */
	uint32_t calm_s;     /* nothing happens: traffic is measured */
	uint32_t card_bytes; /* of a certificate, in each card */
	bool pooled;         /* sites share equal records, so that 10 000 of them fit into memory */
	bool warm;           /* all know all from the start; otherwise each knows the first one, and joins */
	bool trace;
	bool progress;
	enum swarm_mutation mutation;
	struct sim_weather weather;
	struct site_timing timing;
};

struct swarm_options swarm_options_default(uint64_t seed, uint32_t sites);

/* A small world, by its seed: sites, cards, deaths and the weather. Seed and steps stay. */
void swarm_options_vary(struct swarm_options *options);

enum swarm_role { SWARM_HONEST, SWARM_IMPOSTOR, SWARM_LIAR };

struct swarm;

struct swarm_site {
	struct swarm *swarm;
	uint32_t number;
	site_id id;
	char name[24];
	enum swarm_role role;
	struct site *site; /* NULL: no process */
	bool known;        /* it ran at some time */
	bool gone;         /* it will not come back */
	bool left;
	enum site_removal_kind removal; /* 0: none */
	uint32_t of;                    /* whose name an impostor takes, of whom a liar lies */
	/* durable */
	int64_t born_ms;
	struct buf card;
	uint64_t card_version;
	uint32_t edits;
	uint8_t moves;
	bool syncs;
	bool sync_asked; /* of the engine, once and for all */
	struct buf synced;
	/* surroundings */
	struct sim_random random;
	int64_t wall_offset_ms;
	uint64_t disturbed_until_us; /* it may be taken for lost until then */
	uint64_t started_us;         /* what it was told of others may be old at first */
	/* its last crash */
	uint64_t crashed_us; /* 0: none that is measured */
	uint64_t suspected_us, first_lost_us, last_lost_us;
	/* figures */
	int64_t bytes;
	uint64_t second, second_datagrams, second_bytes;
	uint64_t told_second, told_all; /* in that second it told all sites of so many records, one datagram each */
	uint64_t verified;
	uint64_t clear_us; /* not before this does it tell another one that it is removed */
};

enum { SWARM_TOLD = 64 };

struct swarm_figures {
	struct sim_samples suspected_s; /* from a crash until somebody suspects it */
	struct sim_samples first_s;     /* until somebody knows it */
	struct sim_samples each_s;      /* until one knows it: a sample of each observer */
	struct sim_samples all_s;       /* until all know it */
	struct sim_samples spread_s;    /* from the first to the last */
	uint32_t deaths, late;          /* how many, and how many of them not known to all within the bound */
	uint64_t false_lost;            /* a running site called lost while something was the matter */
	uint64_t false_lost_calm;       /* the same in calm weather: a violation */
	uint64_t false_lost_healthy;    /* the same, of sites whose process is neither paused nor slow, */
	uint64_t false_lost_by_healthy; /* and by such */
	uint64_t false_suspect;
	double boot_s, heal_s;                              /* until all views were the same; negative: not measured */
	double calm_datagrams, calm_bytes, calm_wire_bytes; /* per site and second */
	uint64_t peak_datagrams, peak_bytes;                /* of one site in one second, while nothing happened, */
	uint64_t rush_datagrams, rush_bytes; /* and in the seconds after a mass failure; mean of all sites: */
	double rush_mean_datagrams;
	double memory_mean, memory_most; /* bytes per site */
	double error_median, error_p90;  /* of estimated round trips, relative */
	double cpu_us;                   /* per site and virtual second, with the simulator's own */
	double verified;                 /* signatures checked, per site */
	uint64_t events, datagrams;
	double virtual_s, cpu_s;
	uint32_t faults;
};

struct swarm {
	struct swarm_options options;
	struct sim sim;
	struct sim_plan plan;
	struct swarm_site *sites;
	uint32_t count;          /* with those that may join */
	struct sim_rule **rules; /* per fault */
	struct site_pool *pool;
	struct sim_random random;
	/* What a site told in the course of one call, to be looked at after it: */
	uint32_t told[SWARM_TOLD]; /* these are alive */
	uint32_t told_count;
	uint64_t told_version; /* others have this card of it, which it does not know; 0: none */
	uint32_t disturbances;
	uint64_t disturbed_until_us;
	uint64_t started_us; /* when a site started last */
	uint64_t faults_us;  /* when the plan began */
	bool measuring;      /* crashes are */
	uint64_t window_datagrams, window_bytes, window_peak_datagrams, window_peak_bytes;
	struct buf violations;
	uint32_t table_turn;
	uint32_t violations_count;
	uint64_t violation_us;
	struct swarm_figures figures;
};

void swarm_init(struct swarm *swarm, const struct swarm_options *options);
void swarm_free(struct swarm *swarm);

/* The whole run. True: no check was violated. */
bool swarm_run(struct swarm *swarm);
void swarm_report(struct swarm *swarm, struct buf *out);

/* ---- Between its files ------------------------------------------------------------------------------------------- */

/* swarm.c: the lives of sites */
struct site_now swarm_now(const struct swarm *swarm, const struct swarm_site *it);
uint32_t swarm_index(const struct swarm *swarm, site_id id); /* UINT32_MAX: none of ours */
void swarm_start(struct swarm *swarm, struct swarm_site *it, bool from_synced);
void swarm_stop(struct swarm *swarm, struct swarm_site *it);
void swarm_new_card(struct swarm *swarm, struct swarm_site *it);
void swarm_sync(struct swarm *swarm, struct swarm_site *it);
void swarm_leave(struct swarm *swarm, struct swarm_site *it);
void swarm_remove(struct swarm *swarm, struct swarm_site *it, enum site_removal_kind kind);
void swarm_lie(struct swarm *swarm, struct swarm_site *liar);
bool swarm_up(const struct swarm_site *it); /* running and not shut out */
__attribute__((format(printf, 2, 3))) void swarm_trace(struct swarm *swarm, const char *format, ...);

/* swarm_fault.c: what befalls them */
void swarm_fault_begin(struct swarm *swarm, uint32_t number);
void swarm_fault_end(struct swarm *swarm, uint32_t number);
void swarm_fault_flap(struct swarm *swarm, uint32_t number);
void swarm_crash(struct swarm *swarm, struct swarm_site *it);
void swarm_disturb(struct swarm *swarm);
void swarm_settle(struct swarm *swarm);
/* Everything that was out of order is put in order. */
void swarm_heal(struct swarm *swarm);

/* swarm_check.c: how they bear it */
__attribute__((format(printf, 2, 3))) void swarm_violation(struct swarm *swarm, const char *format, ...);
uint64_t swarm_detect_bound_us(const struct swarm *swarm);
uint64_t swarm_detect_limit_us(const struct swarm *swarm);
uint64_t swarm_converge_bound_us(const struct swarm *swarm);
bool swarm_calm(const struct swarm *swarm);
void swarm_check_event(struct swarm *swarm, struct swarm_site *at, const struct site_event *event);
/* The call is over that told of something. */
void swarm_check_told(struct swarm *swarm, struct swarm_site *at);
void swarm_check_deadline(struct swarm *swarm, struct swarm_site *crashed);
void swarm_check_traffic(struct swarm *swarm, const struct swarm_site *it);
void swarm_check_tables(struct swarm *swarm, bool all);
/* False: not yet; `why` says whose view of whom. */
bool swarm_converged(struct swarm *swarm, struct buf *why);
void swarm_measure_memory(struct swarm *swarm);
void swarm_measure_distances(struct swarm *swarm);

/* What sim_at() is told: one of these, and a number. */
enum swarm_act {
	SWARM_ACT_BEGIN,
	SWARM_ACT_END,
	SWARM_ACT_FLAP,
	SWARM_ACT_START,
	SWARM_ACT_STOP,
	SWARM_ACT_SYNC,
	SWARM_ACT_CRASH,
	SWARM_ACT_DEADLINE,
};

void swarm_at(struct swarm *swarm, uint64_t at_us, enum swarm_act act, uint32_t number);

#endif
