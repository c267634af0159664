/* A world of cross resources: containers over sites whose children's names are to be unique (cross/names.h), and divisible
 * resources whose parts have to add up (cross/cross.h).
 *
 * Each site has a struct cross_names, rows that become durable with commits, and a service with the children that were made. Users make,
 * rename and delete children under few names, at the same time, at any site; sites join containers, leave them, and die; and everything
 * that can go wrong with messages, processes and disks does. docs/simulator.md says what is checked. */
#ifndef SIM_SPAN_H
#define SIM_SPAN_H

#include "sim/choir_rows.h"
#include "sim/faults.h"
#include "sim/runner.h"
#include "sim/sim.h"

#include "cross/cross.h"
#include "cross/names.h"

enum {
	SPAN_SITES = 9,
	SPAN_CONTAINERS = 3,
	SPAN_NAMES = 6,
	SPAN_POOLS = 3,
	SPAN_SECOND_US = 1000000,
	SPAN_STEP_US = 100000,
	SPAN_NOBODY = UINT32_MAX,
};

#define SPAN_FAULTS                                                                                                    \
	(1u << SIM_CRASH | 1u << SIM_PAUSE | 1u << SIM_SLOW | 1u << SIM_PARTITION | 1u << SIM_ONE_WAY |                    \
	 1u << SIM_PARTIAL | 1u << SIM_FLAP | 1u << SIM_LOSS | 1u << SIM_DUPLICATE | 1u << SIM_REORDER |                   \
	 1u << SIM_SATELLITE | 1u << SIM_CLOCK | 1u << SIM_DISK_FULL | 1u << SIM_SERVICE_REFUSES | 1u << SIM_SERVICE_SLOW)

/* Ways to break the world, so that the checks can be seen to fail. */
enum span_mutation {
	SPAN_SOUND,
	SPAN_HASTY,     /* what is to wait for the commit does not */
	SPAN_FORGETFUL, /* one commit in four is lost, though it is said to be durable */
	SPAN_DEAF,      /* the host does not say that a child is gone */
	SPAN_EAGER,     /* users are not told that a name is taken: the child is made all the same */
	SPAN_SILENT,    /* the host is not told what was lost */
	SPAN_UNFAIR,    /* one site divides by other weights */
	SPAN_ABRUPT,    /* a prime that is withdrawn does not wait for the others */
	SPAN_CARELESS,  /* who is left with a child does not claim its name before it is ready */
	SPAN_MUTATIONS,
};

struct span_options {
	uint64_t seed;
	uint32_t sites;
	uint32_t steps;
	uint32_t actions;
	uint32_t faults;
	uint32_t kinds;
	uint32_t changes; /* of containers' sites */
	bool optimistic;  /* some containers are */
	bool adopts;      /* some children are there before */
	bool withdraws;   /* primes are withdrawn */
	struct sim_weather weather;
	bool trace;
	enum span_mutation mutation;
	struct sim_list keep_faults;
	struct sim_list keep_actions;
};

enum span_deed_kind { SPAN_SEND, SPAN_ANSWER, SPAN_LOST };

struct span_deed {
	enum span_deed_kind kind;
	site_id to;
	struct buf bytes;
	struct cross_answer answer;
	struct replica_id child;
	uint32_t name;
};

struct span_site {
	struct span *span;
	uint32_t number;
	site_id id;
	struct cross_names *names; /* NULL: it is down */
	struct choir_rows rows;
	struct span_deed *deeds;
	uint32_t deeds_count, deeds_capacity;
	bool commit_asked;
	bool dead; /* for good */
	bool disk_full, refuses, slow;
	uint32_t crash_at_commit; /* 1: before it; 2 and more: after it, with so many deeds less 2 */
	uint32_t generation;
	int64_t wall_offset_ms;
	uint64_t unknown_until_us; /* until then the host does not know what became of anything */
	struct sim_random luck, random;
};

/* What a user asks for. */
enum span_verb { SPAN_CREATE, SPAN_RENAME, SPAN_DELETE, SPAN_ADOPT, SPAN_POOL };
enum span_phase { SPAN_WAITS, SPAN_CALLS, SPAN_DONE };

struct span_action {
	enum span_verb verb;
	uint64_t at_us;
	uint32_t site, container, name;
	uint64_t dice;
	bool skipped;
	enum span_phase phase;
	uint32_t child;
	uint32_t generation; /* of the agent that it was given to */
	bool unchecked;
	bool trial; /* nothing is made: it is only looked what is answered */
};

struct span_child {
	struct replica_id id;
	uint32_t container, site, name;
	uint32_t heir;      /* another site that holds it; SPAN_NOBODY: none */
	uint64_t gone_term; /* of the first list without the site that made it; 0: that is there */
	bool inherited;     /* `site` is the one that was the heir */
	bool alive, acknowledged;
	bool out; /* its site is no site of the container any more */
	bool adopted, unchecked;
	bool busy; /* something is done to it */
	bool lost; /* its host was told so */
};

struct span_container {
	struct replica_id id;
	struct cross_container list; /* the latest */
	struct cross_container next; /* that the one who leaves knows already, and others not yet */
	uint32_t leaving;            /* who */
	struct {
		uint32_t site; /* that is to leave, when it may; SPAN_NOBODY: none */
		bool going;    /* it has, with the next commit */
		bool gone;     /* and that is durable */
	} withdrawn;
};

struct span_change {
	uint64_t at_us;
	uint32_t container;
	uint64_t dice;
};

struct span_figures {
	uint64_t actions, acknowledged, taken, unavailable, unchecked, refused, lost, crashes, commits, messages, terms,
		deaths, withdrawals, inherited;
	uint32_t faults;
	double heal_s, cpu_s;
};

/* A divisible resource: the latest operation at each site, and its part in the service there. */
struct span_pool_op {
	uint64_t stamp; /* with the site: the latest counts. 0: none */
	uint32_t site;
	bool deleted;
	char body[64];
	struct cross_division division;
};

struct span_pool {
	struct span_pool_op durable[SPAN_SITES], at[SPAN_SITES];
	char parts[SPAN_SITES][64]; /* bodies in the services; "": none */
};

struct span {
	struct span_options options;
	struct sim sim;
	struct sim_faults faults;
	struct span_site sites[SPAN_SITES];
	struct span_container containers[SPAN_CONTAINERS];
	uint32_t containers_count;
	struct span_action *actions;
	uint32_t actions_count;
	struct span_change *changes;
	uint32_t changes_count;
	struct span_child *children;
	uint32_t children_count;
	struct span_pool pools[SPAN_POOLS];
	struct sim_random random;
	struct span_figures figures;
	uint64_t quiet_since_us;
	bool healed;
	struct buf violations;
	uint32_t violations_count;
	uint64_t violation_us;
};

enum span_act {
	SPAN_ACT_BEGIN,
	SPAN_ACT_END,
	SPAN_ACT_FLAP,
	SPAN_ACT_COMMIT,
	SPAN_ACT_CRASH,
	SPAN_ACT_RESTART,
	SPAN_ACT_USER,
	SPAN_ACT_SERVICE,
	SPAN_ACT_CHANGE,
	SPAN_ACT_GOSSIP,
	SPAN_ACT_WITHDRAW, /* of a container */
	SPAN_ACT_HEAR,     /* container and site */
};

struct span_options span_options_default(uint64_t seed, uint32_t sites);
void span_options_vary(struct span_options *options);
void span_init(struct span *span, const struct span_options *options);
void span_free(struct span *span);
/* False: a check was violated. */
bool span_run(struct span *span);
void span_report(const struct span *span, struct buf *out);

void span_at(struct span *span, uint64_t at_us, enum span_act act, uint32_t number);
__attribute__((format(printf, 2, 3))) void span_tell(struct span *span, const char *format, ...);
__attribute__((format(printf, 2, 3))) void span_violation(struct span *span, const char *format, ...);
uint32_t span_site_of(const struct span *span, site_id id);
struct replica_now span_now(const struct span *span, const struct span_site *it);
struct span_child *span_child_of(struct span *span, struct replica_id id);
struct str span_name(uint32_t number);
uint32_t span_name_number(struct str name);
bool span_is_member(const struct cross_container *list, site_id site);

/* span_host.c: the agent. */
void span_start(struct span *span, struct span_site *it);
void span_crash(struct span *span, struct span_site *it);
void span_commit(struct span *span, struct span_site *it);
/* After each call into the room. */
void span_leave(struct span_site *it);

/* span_user.c: users, the service, and who is a site of what. */
void span_draw(struct span *span);
void span_act_user(struct span *span, uint32_t number);
void span_act_service(struct span *span, uint32_t number);
void span_act_change(struct span *span, uint32_t number);
void span_answered(struct span *span, struct span_site *it, const struct cross_answer *answer);
void span_calls_end(struct span *span, struct span_site *it);
void span_adopt_all(struct span *span, struct span_site *it);
void span_published(struct span *span, struct span_site *it);
void span_tell_lists(struct span *span, struct span_site *it);
struct cross_claim span_claim_of(const struct span *span, const struct span_child *child, uint32_t name);

/* span_leave.c: a prime is withdrawn from a container. */
void span_withdraw(struct span *span, uint32_t container);
void span_act_withdraw(struct span *span, uint32_t container);
void span_act_hear(struct span *span, uint32_t number);
void span_withdraw_committed(struct span *span, struct span_site *it);
void span_withdraw_crashed(struct span *span, const struct span_site *it);
/* Takes it no new children any more? */
bool span_is_withdrawn(const struct span_container *container, const struct span_site *it);

/* span_heir.c: children that two sites hold. */
uint32_t span_heir_draw(const struct span *span, uint32_t container, uint32_t site, uint64_t dice);
/* The container is without some site. */
void span_heirs_follow(struct span *span, uint32_t container, const struct cross_container *list);
void span_heirs_claim(struct span *span, struct span_site *it);
bool span_heirs_have_claimed(void *context, struct replica_id container, const struct cross_container *list);

/* span_fault.c */
void span_fault_begin(struct span *span, uint32_t number);
void span_fault_end(struct span *span, uint32_t number);
void span_fault_flap(struct span *span, uint32_t number);
void span_heal(struct span *span);

/* span_check.c */
void span_check_made(struct span *span, const struct span_child *child);
bool span_converged(struct span *span, struct buf *why);
/* All is quiet: names that are free can be had, others not. */
void span_check_names(struct span *span);

/* span_pool.c */
void span_pool_user(struct span *span, const struct span_action *action);
void span_pool_gossip(struct span *span, struct span_site *it);
bool span_pool_receive(struct span *span, struct span_site *it, struct str bytes);
void span_pool_commit(struct span *span, struct span_site *it);
void span_pool_crash(struct span *span, struct span_site *it);
bool span_pools_right(struct span *span, struct buf *why);

#endif
