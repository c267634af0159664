/* Inside the room: what its files share, and its unit tests look at. */
#ifndef REPLICA_REPLICA_INT_H
#define REPLICA_REPLICA_INT_H

#include "replica/members.h"
#include "replica/replicant.h"
#include "replica/rows.h"
#include "replica/wire.h"

#include "base/map.h"

enum {
	REPLICA_ROW_VERSION = 3,
	REPLICA_ROW_OLDEST =
		2, /* that is read: it had no members that come and go; 1 had local ids without their collection */
	REPLICA_WIRE_VERSION = 2, /* 1 knew nothing of members that come and go */

	REPLICA_LOADED = 512,           /* replicants in memory that nothing keeps there, if nothing else is said */
	REPLICA_EMIT_BYTES = 256 << 10, /* operations on one replicant in one message, and on the way without an answer */
	REPLICA_PASS = 512,             /* replicants in one message of a pass over the outbox */
	REPLICA_TOLD_ANSWERS_BYTES = 64 << 10, /* and of all in one: the others are told without */
	REPLICA_EXCEPTIONS = 4096,             /* in one report */
	REPLICA_KEPT = 64,                     /* operations kept for the sake of their order though everybody has them */
	REPLICA_EXPIRIES = 64,                 /* rows removed for their age in one tick */

	REPLICA_BLOB_BYTES = 32,
	REPLICA_WITHHELD = 1u << 31, /* in the number of an operation that was never issued: it is in doubt */
	REPLICA_LENT = 1u << 30,     /* in the number by which a row says that a blob is needed by what is `weak` */

	REPLICA_SOON_US = 20000,      /* reports and acknowledgements wait that long for company */
	REPLICA_EXTEND_US = 30000000, /* for so long a member waits until it can give a copy of its own; */
	REPLICA_HOLD_US =
		2000000, /* after so long it takes nothing new before that: who changes it again and again would never let it */
	REPLICA_BEHIND_US = 30000000,    /* for so long a delete waits for what it goes behind to be heard of */
	REPLICA_REPAIR_US = 500000,      /* the least time before a member repairs another */
	REPLICA_RESERVE_MS = 1000,       /* the clock on disk is that far ahead of the clock, */
	REPLICA_RESERVE_TASKS = 1024,    /* and so are the numbers of tasks: they are rarely written */
	REPLICA_CHECKPOINT_US = 1000000, /* from a checkpoint that could not be taken to the next attempt */
	REPLICA_EXPIRE_US = 10000000,    /* between looks at what is too old */
	REPLICA_KEY_MS = 24 * 3600000,   /* how long an Idempotency-Key is remembered */
};

/* ---- The room ----------------------------------------------------------------------------------------------------- */

struct peer {
	site_id site;
	uint64_t owed;     /* rows of the outbox */
	uint64_t ready_us; /* when those that are ready go; UINT64_MAX */
	struct replica_id *ready;
	uint32_t ready_count, ready_capacity;
	uint64_t try_us; /* when the outbox is gone through next; UINT64_MAX: it is empty */
	uint64_t retry_us;
	uint64_t tried_us, heard_us;
	struct replica_id cursor; /* of a pass that is not at its end */
	bool passing;
	struct buf out; /* the message that is being written */
};

struct timer {
	uint64_t us;
	struct replica_id id;
};

struct waiter {
	struct replica_id reference;
	struct replica_id id;
};

struct running {
	uint64_t task;
	struct replica_id id;
};

struct replica {
	struct replica_options options;
	struct replica_host host;
	struct replica_now now;
	bool broken; /* the store is: nothing is done any more */
	struct hlc clock;
	uint64_t clock_stored, task_next, task_stored;
	struct replica_counters counters;
	struct map replicants;
	struct replicant *newest, *oldest;
	struct replicant **work;
	uint32_t work_count, work_capacity;
	struct peer **peers; /* by site */
	uint32_t peers_count, peers_capacity;
	struct timer *timers; /* a heap */
	uint32_t timers_count, timers_capacity;
	struct waiter *waiters;
	uint32_t waiters_count, waiters_capacity;
	struct running *running;
	uint32_t running_count, running_capacity;
	struct replica_id *slots; /* replicants that wait for others to have run */
	uint32_t slots_count, slots_capacity;
	uint64_t expire_us;
	site_id *removed; /* from the mesh, since this process began: what is heard later may still speak of them */
	uint32_t removed_count, removed_capacity;
	struct loan *loans;
	uint32_t loans_made;
	struct buf key, row; /* of use within one function */
};

/* replica.c */
void *replica_grow(void *memory, uint32_t *capacity, uint32_t count, size_t bytes);
uint64_t replica_draw(struct replica *replica);
void replica_tell(struct replica *replica, const struct replicant *r, uint32_t number, uint32_t issuer, uint32_t member,
                  enum replica_member_state state);
void replica_tell_replicant(struct replica *replica, const struct replicant *r, enum replica_event_kind kind);
void replica_fire(struct replica *replica, struct replicant *r, uint64_t at_us); /* a timer */

/* table.c: replicants in memory, and as rows. */
struct replicant *replicant_new(struct replica *replica, struct replica_id id);
void replicant_shape(struct replicant *r, const site_id *members, uint32_t count, site_id self);
void replicant_wipe(struct replicant *r);
/* ERR_NOT_FOUND, ERR_CORRUPT. One that is gone, or an alias, is found too. */
int replicant_load(struct replica *replica, struct replica_id id, struct replicant **out);
void replicant_save(struct replica *replica, struct replicant *r);
void replicant_drop(struct replica *replica, struct replicant *r); /* out of memory */
void replicants_trim(struct replica *replica);
void work_add(struct replica *replica, struct replicant *r);
void work_remove(struct replica *replica, struct replicant *r);                 /* one of which nothing is to be kept */
uint32_t member_index(const struct replicant *r, site_id site);                 /* UINT32_MAX: none */
uint32_t op_index(const struct replicant *r, uint32_t member, uint32_t number); /* of one that is known */
struct op *op_find(const struct replicant *r, uint32_t member, uint32_t number);
void op_insert(struct replicant *r, struct op *op); /* the next of its member */
struct replica_op_id op_id(const struct replicant *r, uint32_t member, uint32_t number);
/* Another request for an operation that is stored already; what orders it stays. */
void op_store_again(struct replica *replica, struct replicant *r, uint32_t member, uint32_t number,
                    const struct replica_request *request);
void op_store(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number, struct str row);
void op_unstore(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number);
/* Reads and parses the row into replica->row: valid until that is used again. */
int op_fetch(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number, struct op_row *row);
int row_get(struct replica *replica, enum replica_table table, struct str key, struct buf *row);

/* lane.c, lane_done.c */
void lane_pump(struct replica *replica, struct replicant *r);
bool lane_has_done(const struct replicant *r, uint32_t index);                 /* of r->ops */
struct step *lane_find(struct replicant *r, uint32_t member, uint32_t number); /* in X; NULL */
void lane_order(struct replicant *r);
void lane_trim(struct replicant *r, const uint32_t *base);
void lane_restored(struct replicant *r); /* what was run on the item itself is undone, to the base */
void lane_raise_handled(struct replicant *r);
void lane_next(struct replicant *r, struct order_next *next);
bool lane_comes_back(struct replicant *r); /* it was here, and is to be made anew */
bool lane_deletes(struct replicant *r);    /* some delete counts here */
void lane_step(struct replicant *r, const struct task *task, enum order_done how);
void lane_append(struct replicant *r, const struct op *op); /* one of ours, done */
void lane_settle(struct replicant *r);
void lane_execute(struct replica *replica, struct replicant *r, const struct op_row *row);
void lane_wait(struct replica *replica, struct replicant *r); /* after a failure */
bool lane_is_deleted(struct replicant *r);
/* The effect of something that was to be done here, and not only later than others; `undecided`: a person has not let that be. */
bool lane_lacks(struct replicant *r, bool undecided);
bool lane_is_refused(const struct replicant *r);       /* its create was rejected here */
bool lane_is_made_in_doubt(const struct replicant *r); /* or was made anew so */
bool lane_is_redoing(struct replicant *r);             /* a person wants something run again, and that is still due */
bool lane_is_let_go(struct replicant *r);              /* it is deleted but for here, where a person let it be */
bool lane_is_closed(struct replicant *r);
bool lane_ends_deleted(struct replicant *r); /* as soon as all that is known has been run */
/* The intent, or another operation whose row is there, becomes an operation of this site that the others get. */
void lane_issue(struct replica *replica, struct replicant *r, struct op *op);
struct op *lane_number(struct replica *replica, struct replicant *r, struct str content);
struct op *lane_number_at(struct replica *replica, struct replicant *r, struct str content, uint64_t stamp);
void lane_effect(struct replica *replica, struct replicant *r, uint8_t effect, const struct replica_outcome *outcome);
void lane_undelete(struct replicant *r, const struct op *repair, bool anew);
void lane_made_whole(struct replicant *r, const struct op *op); /* it was done: does it leave anything missing? */
/* Runs the copy that this site, which is new, begins with, or a part of it. True: it was refused at once. */
bool lane_adopt(struct replica *replica, struct replicant *r, const struct op *copy);
void lane_wake_slots(struct replica *replica);

/* outcome.c */
void outcome_end(struct replicant *r);                                                /* of its task */
void outcome_stamp_anew(struct replica *replica, struct replicant *r, struct op *op); /* if later ones came */
void outcome_take(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);
void outcome_answer(struct replica *replica, const struct replicant *r, const struct replica_outcome *outcome);

/* submit.c */
void submit_take(struct replica *replica, const struct replica_submission *submission);
void submission_free(struct submission *submission);
void submit_refuse(struct replica *replica, uint64_t ticket, int code, const char *text);
void key_forget(struct replica *replica, struct str key);
void key_store(struct replica *replica, struct str key, struct replica_op_id op, const struct replica_outcome *outcome);
void queue_push(struct replicant *r, struct submission *submission);
void queue_refuse_new(struct replica *replica, struct replicant *r, int code, const char *text);
void queue_refuse(struct replica *replica, struct replicant *r, int code, const char *text);

/* doubt.c */
void doubt_recover(struct replica *replica, struct replicant *r);
void doubt_withhold(struct replica *replica, struct replicant *r, bool asking);
void doubt_retry_create(struct replica *replica, struct replicant *r);          /* if it is rejected here */
void doubt_drop(struct replica *replica, struct replicant *r, uint32_t number); /* one that is withheld */
int doubt_judge(struct replica *replica, struct replica_op_id op, enum replica_verdict verdict, struct str secret,
                struct err *err);
bool doubt_ask(struct replica *replica, struct replicant *r); /* about one that is withheld */
void doubt_answered(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);

uint32_t doubt_take(struct replica *replica, struct replicant *to, struct replicant *from,
                    const struct withheld *withheld); /* as one that is withheld of `to`; its number there */

/* merge.c */
int replicant_resolve(struct replica *replica, struct replica_id id, struct replicant **r); /* past aliases */
bool merge_is_due(struct replicant *a, struct replicant *b);                                /* they will become one */
bool merge_may_come(const struct replicant *r);                      /* which makes it an alias, decided elsewhere */
bool merge_is_awaited(struct replica *replica, struct replicant *r); /* r is told when it need not wait any more */
void merge_consider(struct replica *replica, struct replicant *r);
bool merge_take(struct replica *replica, struct replicant *r);    /* false: it has to wait */
bool merge_replays(struct replicant *r, struct order_next *next); /* what is foreign is to be set by the create */
void merge_reset(struct replicant *r, const struct op *op, bool as_replace); /* it was run here */
/* Its replicant became an alias: true if it is known as what it goes on. */
bool merge_moved(struct replica *replica, struct replica_op_id *op);
struct replica_op_id merge_successor(struct replica *replica, const struct replicant *alias, struct replica_op_id op);

/* existing.c */
int existing_take(struct replica *replica, const struct replica_adoption *adoption, struct replica_id *id,
                  struct err *err);

/* sync.c */
bool sync_owes(const struct replicant *r, uint32_t member);
void sync_check(struct replica *replica, struct replicant *r);
/* `again`: also what has been on the way for long. */
void sync_emit(struct replica *replica, struct peer *peer, struct replicant *r, uint32_t member, bool again);
void sync_emit_gone(struct replica *replica, struct peer *peer, struct replica_id id, bool ask);
void sync_emit_nothing(struct replica *replica, struct peer *peer, struct replica_id id);
void sync_emit_weak(struct replica *replica, const struct replicant *r, struct str content, bool creates);

/* weak.c: long bodies of what is `weak`, by the number of a loan */
uint32_t weak_need(struct replica *replica, const struct replicant *r, struct str blob); /* a user's, before it runs */
void weak_ran(struct replica *replica, uint32_t number, bool lends);                     /* 0: it has none */
/* A message whose body is not here yet. True: it is; else the message is taken when it is, or dropped. */
bool weak_await(struct replica *replica, site_id from, const struct section *section, struct str rest,
                const struct replica_request *request, uint32_t *number);
void weak_came(struct replica *replica, struct str blob);
uint64_t weak_due(const struct replica *replica);
void weak_tick(struct replica *replica);
int weak_start(struct replica *replica);
void weak_free(struct replica *replica);

/* receive.c */
void receive_weak(struct replica *replica, site_id from, struct section *section, uint32_t loan);
void receive_message(struct replica *replica, site_id from, struct str message);

/* outbox.c */
struct peer *peer_get(struct replica *replica, site_id site); /* made if need be */
void peer_ready(struct replica *replica, struct replicant *r, uint32_t member, uint64_t at_us);
void peer_owe(struct replica *replica, struct replicant *r, uint32_t member, bool owed);
void peer_heard(struct replica *replica, struct peer *peer);
struct buf *peer_out(struct replica *replica, struct peer *peer); /* to write a section into */
void peers_flush(struct replica *replica);
int peers_start(struct replica *replica);
uint64_t peers_due(const struct replica *replica);
void peers_free(struct replica *replica);

/* forget.c */
void forget_settled(struct replica *replica, struct replicant *r);
void forget_gone(struct replica *replica, struct replicant *r);

/* expire.c */
void expire_add(struct replica *replica, uint64_t at_ms, enum replica_table table, struct str key);
void expire_tick(struct replica *replica);

/* repair.c */
bool repair_was_in_vain(const struct replicant *r);
bool repair_was_refused(const struct replicant *r, const struct report *report); /* by that member's service */
void repair_consider(struct replica *replica, struct replicant *r);
bool repair_start(struct replica *replica, struct replicant *r); /* a task was started */
void repair_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);
void repair_ask(struct replica *replica, struct replica_id id, uint64_t ticket); /* a person does */
void repair_give(struct replica *replica, struct replicant *r, uint64_t ticket); /* its turn has come */

/* blob.c */
void blob_need(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number,
               const struct replica_request *request, bool here);
void blob_done(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number);
/* False: it was asked for; the lane goes on when it came. */
bool blob_is_here(struct replica *replica, struct replicant *r, const struct op *op,
                  const struct replica_request *request);
/* It needs one that is not here: so it cannot have been sent to the service. */
bool blob_is_lost(struct replica *replica, const struct replicant *r, const struct op *op,
                  const struct replica_request *request);
bool blob_is_awaited(struct replica *replica, const struct replicant *r, uint32_t member, uint32_t number);
void blob_came(struct replica *replica, struct str blob);
/* Rows that say what needs it. Set: true if it is here. */
bool blob_row_set(struct replica *replica, struct str blob, const struct replica_op_id *op, bool here);
void blob_row_clear(struct replica *replica, struct str blob, const struct replica_op_id *op);
/* A create waits for what has its name here, if that is to be deleted. */
bool name_is_free(struct replica *replica, struct replicant *r, const struct op *op);
bool name_is_in_the_making(struct replica *replica, const struct replicant *r); /* by another one, at this site */
void name_wait(struct replica *replica, const struct replicant *other, const struct replicant *r);
/* The service has refused a create: for its name? */
void name_refused(struct replica *replica, struct replicant *r);
enum reference { REFERENCE_HERE, REFERENCE_AWAITED, REFERENCE_UNKNOWN };
/* Whether all of them are here; else of the first that is not: it is to be made here, or nobody has told this site of it. */
enum reference references_look(struct replica *replica, const struct replicant *r, const struct replica_id *references,
                               uint32_t count, struct replica_id *missing);
bool references_are_here(struct replica *replica, struct replicant *r, const struct op *op,
                         const struct replica_request *request);
bool references_are_certain(struct replica *replica, const struct replicant *r, const struct replica_request *request);
void references_wake(struct replica *replica, const struct replicant *r);

/* local.c: local ids and natural names */
void local_set(struct replica *replica, struct replicant *r, struct str local_id, bool quoted);
void local_clear(struct replica *replica, struct replicant *r);
void name_set(struct replica *replica, const struct replicant *r);
struct replicant *name_holder(struct replica *replica, const struct replicant *r);
struct replicant *name_other(struct replica *replica, const struct replicant *r); /* there or not, in whatever state */
void name_note(struct replica *replica, const struct replicant *r);               /* it is known, and not there yet */
void name_clear(struct replica *replica, const struct replicant *r);

#endif
