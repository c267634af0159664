/* Replicated resources in one simulated world: struct replica at each of some sites, with a host whose disk, service and
 * network go wrong, users who change what they like where they like, and the checks that say whether it was borne.
 *
 * How a site works. What happens to struct replica (a message, an answer of the service, a user, the time) changes rows in
 * memory and leaves actions behind. A little later these rows become durable (a commit), and the actions are performed. A
 * crash loses what came after the last commit, the calls under way, and the rest of the actions.
 */
#ifndef SIM_CHOIR_H
#define SIM_CHOIR_H

#include "sim/choir_app.h"
#include "sim/choir_rows.h"
#include "sim/faults.h"
#include "sim/figures.h"
#include "sim/runner.h"
#include "sim/sim.h"

#include "replica/replica.h"

enum {
	CHOIR_SECOND_US = 1000000,
	CHOIR_STEP_US = 100000, /* one step of a run */
	CHOIR_NOBODY = UINT32_MAX,
	CHOIR_ID_BYTES = 40, /* of a local id */
	CHOIR_NEEDING = 32,  /* --needed: who may need something is one of the first */
};

/* Deliberate mistakes of hosts and services, by which the tests of the simulator see that its checks can fail. */
enum choir_mutation {
	CHOIR_SOUND,
	CHOIR_HASTY,     /* actions do not wait for the commit */
	CHOIR_AMNESIA,   /* what was committed last is gone after a crash */
	CHOIR_TWICE,     /* a service runs an increment or append twice, now and then */
	CHOIR_NEVER,     /* a service accepts, and does nothing, now and then */
	CHOIR_MUTE,      /* what site 0 sends gets lost */
	CHOIR_GOSSIP,    /* what is sent is sent to a stranger, too */
	CHOIR_NOISY,     /* everything is sent a hundred times */
	CHOIR_LEAKY,     /* memory is lost with each message */
	CHOIR_FICKLE,    /* random numbers come from memory addresses */
	CHOIR_HOARDER,   /* what is put into the outbox stays there */
	CHOIR_LIAR,      /* what a service refused is told as accepted */
	CHOIR_SWAPPED,   /* the ids of two sites are swapped in what the checks are told */
	CHOIR_CREDULOUS, /* every session is said to be met */
	CHOIR_ECHO,      /* each message is heard twice, and came once */
	CHOIR_OBLIVIOUS, /* a delete does not say who needs what it deletes */
	CHOIR_MUTATIONS,
};

struct choir_options {
	uint64_t seed;
	uint32_t sites;
	uint32_t steps; /* of the time in which users and faults do what they do */
	uint32_t faults;
	uint32_t kinds; /* of faults, as bits */
	uint32_t replicants;
	uint32_t actions;    /* of users, creates not counted */
	uint32_t types;      /* as bits of enum choir_kind */
	bool names;          /* two users may choose the same name while apart */
	bool rivals;         /* several do, for the same members (choir_names.c) */
	bool losing_deletes; /* some descriptions say so */
	bool wild;           /* random resolutions for all pairs of classes */
	bool weak;           /* some replicants are */
	bool members;        /* come and go */
	bool placed;         /* some lie at some of their members only */
	bool found;          /* some were there before, and are adopted (choir_found.c) */
	bool removal;        /* a site is removed from the mesh */
	bool needed;         /* what others need is deleted, too (choir_needed.c) */
	bool trace;
	uint32_t story; /* of this replicant everything is told; CHOIR_NOBODY: of none */
	enum choir_mutation mutation;
	struct sim_weather weather;
	struct sim_list keep_faults, keep_actions;
};

struct choir_options choir_options_default(uint64_t seed, uint32_t sites);
/* A world by its seed: all but seed and steps. */
void choir_options_vary(struct choir_options *options);

/* ---- What users want ---------------------------------------------------------------------------------------------- */

enum choir_wish { CHOIR_WISH_CREATE, CHOIR_WISH_CHANGE, CHOIR_WISH_REPEAT };

/* One user's action, drawn before the run; and what came of it. Its number + 1 is the token of its request. */
struct choir_action {
	uint64_t at_us;
	enum choir_wish wish;
	uint32_t replicant;
	uint32_t site;
	uint32_t of; /* REPEAT: the action whose key is used again */
	bool keyed;  /* it has an Idempotency-Key */
	bool skipped;
	struct choir_request request;
	/* what came of it */
	uint32_t open;      /* submissions without an answer */
	bool maybe;         /* an answer may have got lost */
	bool acknowledged;  /* 2xx */
	bool refused;       /* 4xx, or it was not taken */
	bool undecided;     /* the service's answer was lost, and the user was told so */
	bool needed_asked;  /* of a delete: it was said */
	uint32_t needed_by; /* by whom it is needed; as bits */
	struct replica_op_id op;
};

/* ---- What there is ------------------------------------------------------------------------------------------------ */

struct choir_replicant {
	uint32_t number;
	struct replica_id id;
	enum choir_kind kind;
	bool weak;
	bool rarely_put;
	uint32_t members[CHOIR_SITES]; /* sites, in the order of their ids */
	uint32_t members_count;        /* with those that were added later, behind the others, and those that are gone */
	uint32_t founders;             /* so many of them were there from the start */
	bool placed;                   /* it lies at some of its members only */
	uint32_t witnesses;            /* sites that have none of it, and know of it, and were never to hold it; as bits */
	bool promoted;                 /* some witness was to */
	uint32_t dropped;              /* sites that were to leave, asked or not; as bits */
	uint32_t forced;               /* sites that were removed without being asked; as bits */
	uint32_t made_by[CHOIR_SITES]; /* weak: the life of the agent that made it last */
	uint32_t made_again;           /* sites where it was forgotten with that, and made by the next one; as bits */
	uint32_t kept;                 /* sites whose item is to stay, or could not be deleted, when they leave; as bits */
	uint32_t name;                 /* 0: none */
	uint32_t refers;               /* number of a replicant + 1 */
	uint32_t creator;              /* action */
	struct choir_rules rules;
	/* What was issued, by whomever: from the rows of those who issued it. */
	struct choir_op *ops;
	uint32_t ops_count, ops_capacity;
	bool repaired;
	bool conflict;                   /* of names: it may become one with another */
	uint32_t dismissed[CHOIR_SITES]; /* by a person: how many */
	bool found;                      /* its item was there before it: */
	char found_id[CHOIR_ID_BYTES];   /* "": not yet */
	bool adopted;                    /* and that is durable */
};

/* A change of the members, drawn before the run. */
struct choir_change_of {
	uint64_t at_us;
	uint32_t replicant;
	bool extends; /* else one is dropped */
	bool promotes;
	bool moves;
};

/* What a site did with a request. By token: indexes beyond the actions' are repairs. */
struct choir_token {
	uint32_t replicant;
	bool effect[CHOIR_SITES];    /* the last call had its effect there */
	bool ran[CHOIR_SITES];       /* some call had */
	uint32_t runs[CHOIR_SITES];  /* how many had */
	bool tried[CHOIR_SITES];     /* it was asked for; by its user: and nobody knows what became of it */
	bool dismissed[CHOIR_SITES]; /* a person said that it is not to be run there */
	bool doubted[CHOIR_SITES];
	bool unsure[CHOIR_SITES];   /* it is, or was, shown as in doubt there */
	bool refused[CHOIR_SITES];  /* some call was */
	bool rejected[CHOIR_SITES]; /* it is shown as such */
	bool moot[CHOIR_SITES];     /* and was so before the item was made there, so it is to be tried again */
	uint32_t op;                /* index of the operation + 1; 0: none */
	/* Of something weak (choir_weak.c): how often. */
	uint32_t asked;              /* by users */
	uint32_t heard[CHOIR_SITES]; /* messages with it came */
	uint32_t told[CHOIR_SITES];  /* and were sent */
	uint32_t tasks[CHOIR_SITES]; /* it was to be run */
};

struct choir_item {
	uint32_t number;    /* of which the local id is made; 0: this place is free */
	uint32_t replicant; /* whose create made it: nobody but the checks knows */
	enum choir_kind kind;
	uint32_t name;
	uint64_t touched_us; /* volatile: differs from site to site */
	struct choir_state state;
};

/* A request on its way to the service and back. */
struct choir_call {
	bool used;
	uint32_t site;
	uint32_t generation; /* of the agent that made it */
	uint64_t task;
	enum replica_task_kind kind;
	struct replica_op_id op;
	struct choir_request request;
	char local_id[CHOIR_ID_BYTES];
	bool first;
	bool fresh; /* its credential is */
	bool executed;
	enum replica_outcome_kind outcome;
	int status;
	char made_id[CHOIR_ID_BYTES];
	struct buf state;    /* READ_STATE, READ_COPY: a body */
	struct buf file;     /* and that of the operation that gives its file, which is behind it; empty: it has none */
	uint32_t file_token; /* that file */
};

enum choir_deed_kind { CHOIR_SEND, CHOIR_EXECUTE, CHOIR_ANSWER, CHOIR_FETCH, CHOIR_DROP };

/* An action of struct replica that waits for the commit. */
struct choir_deed {
	enum choir_deed_kind kind;
	site_id to;
	struct buf bytes; /* message, body or blob */
	struct replica_task task;
	char local_id[CHOIR_ID_BYTES];
	bool fresh;
	uint64_t ticket;
	int code;
	struct replica_op_id op;
	enum replica_outcome_kind outcome;
	bool repeated;
	bool kept; /* an answer that need not wait for the commit */
};

struct choir_blob {
	uint32_t token;
	bool here;
	bool wanted;   /* somebody asked for it */
	uint32_t from; /* of whom */
	bool scheduled;
};

/* A message that comes once more, much later. */
struct choir_late {
	uint32_t from;
	uint32_t to;
	struct buf bytes;
};

struct choir;

struct choir_site {
	struct choir *choir;
	uint32_t number;
	site_id id;
	struct replica *replica; /* NULL: no process */
	struct choir_rows rows;
	struct choir_deed *deeds;
	uint32_t deeds_count, deeds_capacity;
	bool commit_asked;
	uint32_t generation;
	bool removed;             /* from the mesh: it does not come back */
	uint64_t hears_us;        /* when it hears that another one was; 0: never */
	uint32_t crash_at_commit; /* 0: no; 1: before it is durable; n: after n - 2 of the deeds */
	uint64_t crash_by_us;
	/* surroundings */
	struct sim_random random;
	struct sim_random luck; /* of its service and disk */
	int64_t wall_offset_ms;
	bool disk_full;
	struct replica_options limits; /* as its agent was started with */
	uint64_t heard_clock;          /* the latest that came in a message since it started */
	uint32_t service;              /* faults under way, as bits */
	bool reaches[CHOIR_SITES];
	uint64_t reach_change_us[CHOIR_SITES]; /* since when it is otherwise; 0: it is not */
	/* the service */
	struct choir_item *items;
	uint32_t items_count, items_capacity;
	uint32_t items_made;
	struct choir_blob *blobs;
	uint32_t blobs_count, blobs_capacity;
	/* figures */
	int64_t bytes;
	uint64_t second, second_messages;
	uint64_t messages, executions;
	uint32_t rows_most;
};

/* What a user was given whose change was acknowledged. */
struct choir_session {
	struct replica_op_id op;
	uint32_t text_length;
	char text[64 + CHOIR_SITES * 32];
};

struct choir_figures {
	uint64_t actions, acknowledged, refused, lost_answers, repairs, executions, crashes, failed_commits, commits,
		messages, kept;
	uint64_t extends, promotes, drops;
	uint64_t judged, events, conflicts, rerun, superseded, bytes;
	double heal_s, virtual_s, cpu_s;
	uint64_t peak_messages;
	int64_t memory_most;
	uint32_t faults;
};

struct choir {
	struct choir_options options;
	struct sim sim;
	struct sim_faults faults;
	struct choir_site *sites;
	struct choir_action *actions;
	uint32_t actions_count;
	struct choir_replicant *replicants;
	uint32_t replicants_count;
	uint32_t victim; /* the site that will be removed; CHOIR_NOBODY */
	struct choir_change_of *changes;
	uint32_t changes_count, changes_planned;
	struct choir_token *tokens;
	uint32_t tokens_count, tokens_capacity;
	uint64_t tickets;
	uint32_t *ticket_actions; /* the action of each ticket */
	uint64_t tickets_capacity;
	struct choir_call *calls;
	uint32_t calls_count, calls_capacity;
	struct choir_late *late;
	uint32_t late_count, late_capacity;
	struct choir_session *sessions;
	uint32_t sessions_count, sessions_capacity;
	struct sim_random session_luck;
	struct sim_random random;
	bool healed; /* faults and users are over */
	uint64_t quiet_since_us;
	struct buf violations;
	uint32_t violations_count;
	uint64_t violation_us;
	uint32_t violation_of; /* a replicant; CHOIR_NOBODY */
	struct choir_figures figures;
};

void choir_init(struct choir *choir, const struct choir_options *options);
void choir_free(struct choir *choir);
/* The whole run. True: no check was violated. */
bool choir_run(struct choir *choir);
void choir_report(const struct choir *choir, struct buf *out);

/* ---- Between its files -------------------------------------------------------------------------------------------- */

/* What sim_at() is told: one of these, and a number. */
enum choir_act {
	CHOIR_ACT_BEGIN,
	CHOIR_ACT_END,
	CHOIR_ACT_FLAP,
	CHOIR_ACT_COMMIT,
	CHOIR_ACT_CRASH,
	CHOIR_ACT_RESTART,
	CHOIR_ACT_EXECUTE, /* the service does it */
	CHOIR_ACT_ANSWER,  /* and says so */
	CHOIR_ACT_USER,
	CHOIR_ACT_FETCH,
	CHOIR_ACT_LATE,
	CHOIR_ACT_MEMBERS,
	CHOIR_ACT_REMOVE,
	CHOIR_ACT_HEAR, /* of that */
};

void choir_at(struct choir *choir, uint64_t at_us, enum choir_act act, uint32_t number);
/* Of a replicant, or of CHOIR_NOBODY. */
__attribute__((format(printf, 3, 4))) void choir_tell(struct choir *choir, uint32_t replicant, const char *format, ...);
bool choir_tells(const struct choir *choir, uint32_t replicant);

/* choir.c */
struct replica_now choir_now(const struct choir *choir, const struct choir_site *it);
uint32_t choir_site_of(const struct choir *choir, site_id id); /* CHOIR_NOBODY: none of ours */
uint32_t choir_replicant_of(const struct choir *choir, struct replica_id id);
uint32_t choir_member_of(const struct choir_replicant *replicant, uint32_t site); /* index; CHOIR_NOBODY: it is none */
struct choir_token *choir_token(struct choir *choir, uint32_t token);
void choir_label(const struct choir *choir, struct replica_op_id op, char label[32]); /* "r3.s1.7" */

/* choir_host.c: the agent of a site */
void choir_start(struct choir *choir, struct choir_site *it);
void choir_crash(struct choir *choir, struct choir_site *it);
void choir_enter(struct choir_site *it); /* around each call into struct replica */
void choir_leave(struct choir_site *it);
void choir_commit(struct choir *choir, struct choir_site *it);
void choir_fetch(struct choir *choir, struct choir_site *it, uint32_t blob);
void choir_late(struct choir *choir, uint32_t number); /* it arrives */
void choir_blob_spool(struct choir_site *it, uint32_t token);
void choir_blob_unspool(struct choir_site *it, uint32_t token);
bool choir_blob_here(struct choir_site *it, uint32_t token);
void choir_blob_drop(struct choir_site *it, uint32_t token);

/* choir_service.c: the application at a site */
bool choir_is_dangling(const struct choir_site *it,
                       const struct choir_request *request); /* what it needs is not there */
void choir_call(struct choir *choir, struct choir_site *it, const struct choir_deed *deed);
void choir_execute(struct choir *choir, uint32_t call);
void choir_answer(struct choir *choir, uint32_t call);
void choir_call_lost(struct choir *choir, struct choir_site *it, const struct choir_deed *deed);
void choir_calls_end(struct choir *choir, struct choir_site *it); /* the agent is gone */
/* Behind the agent's back. */
void choir_item_make(struct choir *choir, struct choir_site *it, const struct choir_request *request,
                     char local_id[CHOIR_ID_BYTES]);
struct choir_item *choir_item_of(struct choir_site *it, const char *local_id);
void choir_item_id(const struct choir_site *it, const struct choir_item *item, char local_id[CHOIR_ID_BYTES]);

/* choir_user.c */
void choir_plan_users(struct choir *choir);
void choir_submit(struct choir *choir, uint32_t action);
void choir_answered(struct choir *choir, struct choir_site *it, const struct choir_deed *deed);
/* The agent is gone: nobody is answered any more. */
void choir_users_lose(struct choir *choir, struct choir_site *it);
/* People look at what is rejected or in doubt; `all`: at everything. */
void choir_judge(struct choir *choir, bool all);

/* choir_found.c */
void choir_found_draw(const struct choir *choir, struct choir_replicant *it);
void choir_found_ask(struct choir *choir, uint32_t action);
bool choir_found_waits(const struct choir *choir,
                       const struct choir_replicant *of); /* its user does, for it to be adopted */
void choir_found_commit(struct choir *choir, struct choir_site *it, struct str key); /* a row of a replicant */

/* choir_names.c */
void choir_names_draw(const struct choir *choir, struct choir_replicant *it);
void choir_names_action(const struct choir *choir, struct sim_random *random, struct choir_action *action);
bool choir_names_converged(struct choir *choir, struct buf *why, uint32_t *of);

/* choir_needed.c */
void choir_needed_action(const struct choir *choir, struct sim_random *random, struct choir_action *action);
/* Who needs what is deleted, and is on its way as far as that site knows. How many. */
uint32_t choir_needed_by(struct choir *choir, struct choir_site *it, struct choir_action *action,
                         struct replica_id ids[CHOIR_NEEDING]);
/* Its id may have come with a delete of what it needs, where nothing else is known of it. */
bool choir_needed_names(const struct choir *choir, const struct choir_replicant *of, const struct choir_site *it);
void choir_check_needed(struct choir *choir, struct choir_site *it, const struct choir_request *request);

/* choir_members.c */
void choir_plan_members(struct choir *choir);
void choir_change(struct choir *choir, uint32_t number);
bool choir_change_answered(struct choir *choir, struct choir_site *it, const struct choir_deed *deed); /* it was one */
/* Its service does not take the copy: the site is dropped again, perhaps. */
bool choir_give_up(struct choir *choir, struct choir_site *it, const struct choir_op *copy);
void choir_go_elsewhere(struct choir *choir, struct choir_action *action);
/* A commit with a row of this replicant: the last member tells nobody of what it issues. */
void choir_check_alone(struct choir *choir, struct choir_site *it, struct str key);
void choir_adopted(struct choir *choir, struct choir_site *it, const struct choir_call *call);
/* Who the members are as that site sees it; `leaving`: one of them has still to go. False: it has no such thing. */
bool choir_look(struct choir_site *it, const struct choir_replicant *of, uint32_t *members, bool *leaving);
uint32_t choir_members_now(struct choir *choir, const struct choir_replicant *of, bool *leaving);
uint32_t choir_witnesses_at(struct choir_site *it, const struct choir_replicant *of); /* as that site sees it */
/* As whoever has it sees it. */
uint32_t choir_witnesses_now(struct choir *choir, const struct choir_replicant *of);

/* choir_removal.c */
void choir_plan_removal(struct choir *choir);
void choir_remove_site(struct choir *choir, uint32_t number);
bool choir_has_heard(const struct choir *choir, const struct choir_site *it); /* of it */
void choir_hear_of_removal(struct choir *choir, struct choir_site *it);
/* It is to be created at a site of which that one has heard that it was removed: the data plane knows no such site. */
bool choir_knows_better(const struct choir *choir, const struct choir_site *it, const struct choir_action *action);
bool choir_holds_nothing(struct choir *choir, const struct choir_replicant *of, uint32_t site);
bool choir_is_lost_with_its_site(struct choir *choir, const struct choir_replicant *of);

/* choir_given.c */
void choir_check_given(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                       const struct choir_op *given);

/* choir_weak.c */
void choir_weak_asks(struct choir *choir, const struct choir_action *action);
void choir_weak_sends(struct choir *choir, uint32_t to, struct str message);
void choir_weak_hears(struct choir *choir, const struct choir_site *it, struct str message);
void choir_weak_runs(struct choir *choir, const struct choir_site *it, const struct replica_task *task);
void choir_weak_acknowledged(struct choir *choir, const struct choir_site *it, const struct choir_action *action);
void choir_weak_keeps(struct choir *choir, const struct choir_site *it, enum replica_table table, uint32_t replicant);
bool choir_weak_converged(struct choir *choir, struct buf *why, uint32_t *of);

/* choir_fault.c */
void choir_fault_begin(struct choir *choir, uint32_t number);
void choir_fault_end(struct choir *choir, uint32_t number);
void choir_fault_flap(struct choir *choir, uint32_t number);
void choir_heal(struct choir *choir);
/* Who takes whom for reachable. */
void choir_watch(struct choir *choir);

/* choir_check.c */
__attribute__((format(printf, 3, 4))) void choir_violation(struct choir *choir, uint32_t replicant, const char *format,
                                                           ...);
bool choir_is_asked(const struct choir *choir, const struct choir_action *action); /* a user waits for it */
void choir_check_message(struct choir *choir, struct choir_site *it, uint32_t to, struct str message);
void choir_note_clock(struct choir *choir, struct choir_site *it, struct str message); /* it is about to hear it */
void choir_check_clock(struct choir *choir, const struct choir_site *it, struct str message); /* it says it */
void choir_check_commit(struct choir *choir, struct choir_site *it); /* of the changes since the last one */
/* The room asks for it, the service does it, and has done it. */
void choir_check_task(struct choir *choir, struct choir_site *it, struct replica_op_id op, struct str body);
void choir_check_lost(struct choir *choir, struct choir_site *it); /* it has stopped */
void choir_check_execution(struct choir *choir, struct choir_site *it, const struct choir_call *call);
void choir_check_created(struct choir *choir, struct choir_site *it, const struct choir_call *call);
void choir_note_made(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of);
void choir_check_blob(struct choir *choir, struct choir_site *it, struct choir_site *from, uint32_t token);
void choir_check_step(struct choir *choir);
/* False: not yet; `why` says what is missing, `of` where. */
bool choir_converged(struct choir *choir, struct buf *why, uint32_t *of);
void choir_check_end(struct choir *choir);

/* By what that site knows, it need not run there. */
bool choir_is_needless(struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                       const struct choir_op *op);

/* choir_session.c */
void choir_session_note(struct choir *choir, struct choir_site *it, struct replica_op_id op); /* it was acknowledged */
void choir_check_sessions(struct choir *choir);
void choir_check_sessions_end(struct choir *choir);

struct choir_op *choir_op_add(struct choir_replicant *it);
/* NULL: nobody has it on disk. */
struct choir_op *choir_op_of(struct choir_replicant *it, uint32_t member, uint32_t number);

/* choir_peek.c: the one place that knows how the room writes a row */
bool choir_peek(const struct choir *choir, const struct choir_site *it, const struct choir_row *row,
                struct choir_op *op, uint32_t *replicant);
bool choir_peek_has(const struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                    const struct choir_op *op); /* a row of it, durable or not */
bool choir_peek_forgotten(const struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                          const struct choir_op *op); /* who was added later begins with what others have forgotten */
bool choir_peek_issued(const struct choir_site *it, const struct choir_replicant *of,
                       const struct choir_op *op); /* one of its own: it is more than an intent */
bool choir_peek_withheld(
	uint32_t number); /* of an operation that is in doubt where it was asked for, and went nowhere */

#endif
