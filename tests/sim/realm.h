/* A world of what spans sites, all of it at once: containers with children, and divided resources, as replicants (src/replica) whose
 * names (cross/children.h) and parts (cross/cross.h) are tied to them as in the agent.
 *
 * Each site has a struct replica and a struct cross_children over rows of one store, an agent around them, and a service. Users at all sites
 * make, rename and delete children of few names (at one site, or at several), delete containers with and without what is in them, list them, set,
 * change and read what is divided, extend all of it to further sites and withdraw it, while everything that can go wrong with messages, processes,
 * disks and services does. docs/simulator.md says what is checked.
 *
 * What src/engine does between the pure rooms is no pure room, so it is written down here once more (realm_agent.c, realm_pool.c): each function there names the one that
 * it follows. */
#ifndef SIM_REALM_H
#define SIM_REALM_H

#include "sim/choir_rows.h"
#include "sim/faults.h"
#include "sim/runner.h"
#include "sim/sim.h"

#include "cross/children.h"
#include "cross/cross.h"

#include "base/arena.h"

enum {
	REALM_SITES = 6,
	REALM_CONTAINERS = 2,
	REALM_POOLS = 2,
	REALM_SLOTS = REALM_CONTAINERS + REALM_POOLS,
	REALM_THINGS = 400,
	REALM_NAMES = 5,
	REALM_ID_BYTES = 24,
	REALM_SESSION_BYTES = 1024,
	REALM_STANDING_BYTES = 128,
	REALM_SECOND_US = 1000000,
	REALM_STEP_US = 100000,
	REALM_NOBODY = UINT32_MAX,
};

#define REALM_FAULTS                                                                                                   \
	(1u << SIM_CRASH | 1u << SIM_PAUSE | 1u << SIM_SLOW | 1u << SIM_PARTITION | 1u << SIM_ONE_WAY |                    \
	 1u << SIM_PARTIAL | 1u << SIM_FLAP | 1u << SIM_LOSS | 1u << SIM_DUPLICATE | 1u << SIM_REORDER |                   \
	 1u << SIM_SATELLITE | 1u << SIM_CLOCK | 1u << SIM_DISK_FULL | 1u << SIM_SERVICE_REFUSES | 1u << SIM_SERVICE_SLOW)

/* Ways to break the world, so that the checks can be seen to fail. */
enum realm_mutation {
	REALM_SOUND,
	REALM_GENEROUS,  /* a name that is refused is taken all the same */
	REALM_MUTE,      /* nobody hears that a name was lost */
	REALM_UNFAIR,    /* one site divides by other weights */
	REALM_CREDULOUS, /* a read takes any answers for parts of the same state */
	REALM_HIDING,    /* a list does not say which sites are missing */
	REALM_TWICE,     /* a list shows every copy */
	REALM_KEEPING,   /* who leaves keeps its part */
	REALM_ORPHANING, /* nobody looks after what is in a container that is gone */
	REALM_HOARDING,  /* nor after the division of what is not here any more */
	REALM_FORGETFUL, /* one commit in four is lost, though it is said to be durable */
	REALM_MUTATIONS,
};

struct realm_options {
	uint64_t seed;
	uint32_t sites;
	uint32_t steps;
	uint32_t actions;
	uint32_t faults;
	uint32_t kinds;
	bool optimistic; /* some containers are */
	struct sim_weather weather;
	bool trace;
	enum realm_mutation mutation;
	struct sim_list keep_faults;
	struct sim_list keep_actions;
};

/* ---- What there is ------------------------------------------------------------------------------------------------------- */

enum realm_kind { REALM_CONTAINER, REALM_CHILD, REALM_POOL };

/* One that was asked for, and what users know of it. */
struct realm_thing {
	enum realm_kind kind;
	struct replica_id id;
	uint32_t container; /* of a child */
	uint32_t maker;
	bool optimistic; /* of a container */
	bool cascades;   /* of a container: services delete what is in it with it; else they refuse */
	bool unset;      /* of a pool: it was never set, only changed */
	int64_t least;   /* of such: with all changes that were acknowledged; */
	int64_t open;    /* and how many others may have happened */
	bool handed;     /* its create was handed to struct replica */
	bool made;       /* acknowledged */
	bool doomed;     /* somebody has handed in its delete */
	bool deleted;    /* acknowledged */
	uint64_t made_us, doomed_us;
	uint32_t name;    /* acknowledged last */
	uint32_t holders; /* bits: where it was to be made */
	bool unchecked;   /* its name was */
	uint32_t lost;    /* bits: of these names its agent was told that they are others' */
};

struct realm_item {
	bool there;
	uint32_t name;
	int64_t part, total; /* `size` is divided, `total` is not: each member is to have the same */
	char local_id[REALM_ID_BYTES];
};

/* A request, as it travels. */
enum realm_verb { REALM_MAKE, REALM_RENAME, REALM_SET, REALM_ADD, REALM_DELETE, REALM_STATE };

struct realm_request {
	enum realm_verb verb;
	uint32_t thing, name;
	int64_t size, total;            /* ADD: by how much */
	bool settles;                   /* a delete of which nobody cares whether there was anything */
	uint64_t chance;                /* no two requests have the same */
	struct cross_division division; /* of a pool */
};

/* ---- A site -------------------------------------------------------------------------------------------------------------- */

enum realm_deed_kind { REALM_TALK, REALM_TALK_NAMES, REALM_EXECUTE, REALM_ANSWER, REALM_GRANT, REALM_LOST };

struct realm_deed {
	enum realm_deed_kind kind;
	site_id to;
	struct buf bytes;
	struct realm_call *call;
	uint64_t ticket;
	int code;
	bool accepted;
	struct cross_answer answer;
	struct cross_lost lost;
	uint32_t name;
};

/* A request at the service. */
struct realm_call {
	uint32_t site, generation, thing;
	uint64_t task;
	enum replica_task_kind kind;
	struct replica_op_id op;
	uint8_t effect;
	bool first, has_request, happened, over;
	struct realm_request request;
	enum replica_outcome_kind outcome;
	int status;
	char local_id[REALM_ID_BYTES];
	struct realm_request state; /* that was read */
};

/* What became of a call that was under way when its agent died. */
struct realm_doubt {
	uint64_t chance;         /* of the request: no two have the same */
	struct replica_op_id op; /* number 0: nobody has asked since */
	bool happened;
};

struct realm_site {
	struct realm *realm;
	uint32_t number;
	site_id id;
	struct replica *replica; /* NULL: it is down */
	struct cross_children *children;
	struct choir_rows rows, name_rows, divisions; /* divisions: in one table */
	struct realm_deed *deeds;
	uint32_t deeds_count, deeds_capacity;
	struct realm_doubt *doubts;
	uint32_t doubts_count;
	bool commit_asked, disk_full, refuses, slow;
	bool stale;               /* something has changed since it was looked at what follows from it */
	uint32_t crash_at_commit; /* 1: before it; 2 and more: after it, with so many deeds less 2 */
	uint32_t generation;
	int64_t wall_offset_ms;
	uint32_t redividing; /* the job of this site, as prime, that gives shares to who came; NOBODY: none */
	struct sim_random luck, random;
};

/* ---- Jobs: what an agent does for a user ----------------------------------------------------------------------------------- */

enum realm_job_kind {
	REALM_DO,       /* one request, here or at another site */
	REALM_EMPTY,    /* what is in a container is deleted, then it itself */
	REALM_LIST,     /* what is in a container */
	REALM_READ,     /* what is divided, as one */
	REALM_REDIVIDE, /* the whole that there is */
	REALM_EXTEND,
	REALM_WITHDRAW,
	REALM_JOB_KINDS,
};

/* What a site says of what it has. */
struct realm_reply {
	bool came, here, settled; /* here: it has a copy; of a list: of the container */
	bool trouble;             /* something is rejected or in doubt */
	struct realm_item item;
	char session[REALM_SESSION_BYTES];
	size_t session_bytes;
	char standing[REALM_STANDING_BYTES]; /* of its part, as it travels */
	uint32_t count;                      /* children */
	struct {
		uint16_t thing;
		bool known;  /* its agent knows which replicant it is; */
		bool moving; /* or that it is being made or deleted at this moment */
	} children[REALM_THINGS];
};

struct realm_job {
	enum realm_job_kind kind;
	uint32_t number, site, generation, thing;
	uint64_t began_us, until_us, wake_us;
	bool over, accepted, final; /* final: all is healed and quiet, so it has to succeed */
	uint32_t round;             /* of questions to others: answers to earlier ones do not count */
	bool waits;
	struct realm_request request;
	uint32_t holders; /* of a child that is made */
	/* Sites that are asked, and what they say. */
	uint32_t asked[REALM_SITES], asked_count;
	struct realm_reply *replies; /* [REALM_SITES] */
	bool asking;
	struct cross_division division; /* REDIVIDE */
	uint32_t other;                 /* EXTEND, WITHDRAW: which site; EMPTY: the child whose turn it is */
	uint32_t tries, stage;
	uint32_t arrived; /* the round of the request that came to another site */
	uint32_t parent;  /* a job that waits for it */
};

struct realm_ticket {
	uint32_t site, generation, job, round;
	bool answered, claims;
	bool forwarded; /* the job is at another site */
	struct realm_request request;
	uint32_t holders;
};

enum realm_wish {
	REALM_WANTS_CHILD,
	REALM_WANTS_NAME,
	REALM_WANTS_CHILD_GONE,
	REALM_WANTS_CONTAINER_GONE,
	REALM_WANTS_ALL_GONE,
	REALM_WANTS_LIST,
	REALM_WANTS_SIZE,
	REALM_WANTS_MORE,
	REALM_WANTS_POOL_GONE,
	REALM_WANTS_WHOLE,
	REALM_WANTS_SITE,
	REALM_WANTS_NO_SITE,
	REALM_WISHES,
};

struct realm_action {
	enum realm_wish wish;
	uint64_t at_us, dice;
	uint32_t site, slot, name;
	bool skipped;
};

struct realm_figures {
	uint64_t actions, accepted, refused, taken, unavailable, lost, lists, partial, reads, marked, redivided, extended,
		withdrawn, orphans, doubled, crashes, commits, messages, judged;
	uint32_t faults;
	double heal_s, cpu_s;
};

struct realm {
	struct realm_options options;
	struct sim sim;
	struct sim_faults faults;
	struct realm_site sites[REALM_SITES];
	struct realm_thing things[REALM_THINGS];
	uint32_t things_count;
	uint32_t slots[REALM_SLOTS]; /* things that users know: containers first, then pools; NOBODY: none */
	struct realm_item items[REALM_SITES][REALM_THINGS];
	struct realm_action *actions;
	uint32_t actions_count;
	struct realm_job **jobs;
	uint32_t jobs_count, jobs_capacity;
	struct realm_ticket *tickets; /* their numbers begin with 1 */
	uint32_t tickets_count, tickets_capacity;
	struct realm_call **calls;
	uint32_t calls_count, calls_capacity;
	struct sim_random random;
	struct realm_figures figures;
	uint64_t quiet_since_us;
	uint32_t ids_made;
	bool healed;
	struct buf violations;
	uint32_t violations_count;
	uint64_t violation_us;
};

enum realm_act {
	REALM_ACT_BEGIN,
	REALM_ACT_END,
	REALM_ACT_FLAP,
	REALM_ACT_COMMIT,
	REALM_ACT_CRASH,
	REALM_ACT_RESTART,
	REALM_ACT_USER,
	REALM_ACT_SERVICE,
	REALM_ACT_FOLLOW,
	REALM_ACT_JOB,
};

struct realm_options realm_options_default(uint64_t seed, uint32_t sites);
void realm_options_vary(struct realm_options *options);
void realm_init(struct realm *realm, const struct realm_options *options);
void realm_free(struct realm *realm);
/* False: a check was violated. */
bool realm_run(struct realm *realm);
void realm_report(const struct realm *realm, struct buf *out);

/* realm.c */
void realm_at(struct realm *realm, uint64_t at_us, enum realm_act act, uint32_t number);
__attribute__((format(printf, 2, 3))) void realm_tell(struct realm *realm, const char *format, ...);
__attribute__((format(printf, 2, 3))) void realm_violation(struct realm *realm, const char *format, ...);
uint32_t realm_site_of(const struct realm *realm, site_id id);
struct replica_now realm_now(const struct realm *realm, const struct realm_site *it);
uint32_t realm_thing_of(const struct realm *realm, struct replica_id id);
struct str realm_name(uint32_t number);
uint32_t realm_name_number(struct str name);
const char *realm_kind_name(enum realm_kind kind);
/* What a site knows of a thing. False: nothing, or it is gone. Slices are of the arena. */
bool realm_look(struct realm_site *it, struct arena *arena, uint32_t thing, struct replica_view *view);
const struct replica_member_view *realm_member(const struct replica_view *view, site_id site);

/* realm_host.c: rows, commits, and the deeds that wait for them; starts and crashes. */
void realm_start(struct realm *realm, struct realm_site *it);
void realm_crash(struct realm *realm, struct realm_site *it);
void realm_commit(struct realm *realm, struct realm_site *it);
/* After each call into the rooms. */
void realm_leave(struct realm_site *it);
void realm_send(struct realm *realm, uint32_t from, uint32_t to, char kind, const void *bytes, size_t length);
bool realm_receive(struct realm *realm, struct realm_site *it, uint32_t from, struct str bytes);

/* realm_service.c */
void realm_execute(struct realm *realm, struct realm_call *call);
void realm_act_service(struct realm *realm, uint32_t number);
void realm_calls_end(struct realm *realm, struct realm_site *it);
/* As it travels; the bytes are what is to be freed. */
void realm_put_request(const struct realm_request *request, struct buf *bytes, struct replica_request *out);
bool realm_parse_request(struct str bytes, struct realm_request *request);

/* realm_agent.c: a request from its user to struct replica, and what follows from what has changed. */
uint32_t realm_thing_new(struct realm *realm, enum realm_kind kind);
/* Hands a request in at a site; the job hears of it by realm_job_told(). */
void realm_submit(struct realm *realm, struct realm_site *it, const struct realm_ticket *ticket);
uint32_t realm_ticket_add(struct realm *realm, struct realm_site *it, const struct realm_ticket *ticket);
void realm_granted(struct realm *realm, struct realm_site *it, const struct cross_answer *answer);
void realm_answered(struct realm *realm, struct realm_site *it, const struct realm_deed *deed);
uint32_t realm_children_of(struct realm_site *it, uint32_t container, uint32_t *children);
void realm_act_follow(struct realm *realm, struct realm_site *it);
bool realm_holds(struct realm_site *it, uint32_t container, uint32_t site);
void realm_people(struct realm *realm);

/* realm_pool.c: what is divided. */
bool realm_division_get(struct realm_site *it, uint32_t thing, struct cross_division *division);
bool realm_division_now(struct realm_site *it, const struct replica_view *view, struct cross_division *division);
void realm_division_ran(struct realm_site *it, const struct realm_call *call);
int realm_part(const struct realm_site *it, const struct realm_request *request, int64_t *part);
void realm_put_body(int64_t size, struct buf *out);
/* The whole of parts. False: they cannot be put together. */
bool realm_combine(const struct realm_job *job, int64_t *whole);
void realm_forget_division(struct realm_site *it, uint32_t thing);
bool realm_follow_pool(struct realm *realm, struct realm_site *it, const struct replica_view *view, uint32_t thing);
/* All have seen the same, as engine_verify() takes it: so it can be divided anew. */
bool realm_parts_agree(const struct realm_job *job, uint32_t *who);
/* A read may say that it is whole. */
bool realm_is_whole(const struct realm *realm, const struct realm_job *job);
void realm_put_standing(struct realm_site *it, uint32_t thing, struct buf *out);

/* realm_job.c */
struct realm_job *realm_job_new(struct realm *realm, enum realm_job_kind kind, uint32_t site, uint32_t thing);
void realm_job_begin(struct realm *realm, struct realm_job *job);
void realm_act_job(struct realm *realm, uint32_t number);
void realm_job_told(struct realm *realm, uint32_t number, uint32_t round, bool accepted, int code);
void realm_job_message(struct realm *realm, struct realm_site *it, uint32_t from, char kind, struct str bytes);
void realm_jobs_free(struct realm *realm);
bool realm_jobs_idle(const struct realm *realm);

/* realm_user.c */
void realm_draw(struct realm *realm);
void realm_act_user(struct realm *realm, uint32_t number);
/* All is deleted, by whoever can. */
void realm_delete_all(struct realm *realm);
/* Reads and lists at every site that should be able to; they have to be whole. */
void realm_read_all(struct realm *realm);

/* realm_fault.c */
void realm_fault_begin(struct realm *realm, uint32_t number);
void realm_fault_end(struct realm *realm, uint32_t number);
void realm_fault_flap(struct realm *realm, uint32_t number);
void realm_heal(struct realm *realm);

/* realm_check.c */
void realm_check_name(struct realm *realm, uint32_t thing);
void realm_check_list(struct realm *realm, const struct realm_job *job);
void realm_check_read(struct realm *realm, const struct realm_job *job);
bool realm_converged(struct realm *realm, struct buf *why);
/* All is deleted: nothing of it is left. `rows`: nor what is remembered of it. */
bool realm_is_empty(struct realm *realm, bool rows, struct buf *why);

#endif
