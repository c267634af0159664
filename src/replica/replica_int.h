/* Inside the room: what its files share, and its unit tests look at. */
#ifndef REPLICA_REPLICA_INT_H
#define REPLICA_REPLICA_INT_H

#include "replica/replica.h"

#include "base/bytes.h"

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
	REPLICA_REPAIR_US = 500000,    /* the least time before a member repairs another */
	REPLICA_RESERVE_MS = 1000,     /* the clock on disk is that far ahead of the clock, */
	REPLICA_RESERVE_TASKS = 1024,  /* and so are the numbers of tasks: they are rarely written */
	REPLICA_EXPIRE_US = 10000000,  /* between looks at what is too old */
	REPLICA_KEY_MS = 24 * 3600000, /* how long an Idempotency-Key is remembered */
};

/* ---- Operations --------------------------------------------------------------------------------------------------- */

enum op_flag {
	OP_REPEATABLE = 1,
	OP_REPAIR = 2,
	OP_BLOB = 4,
	OP_CONDITIONAL = 8, /* its first run had preconditions: it must not be run again for that run */
	OP_MERGE = 16,      /* see merge.c */
	OP_ADOPT = 32,      /* see members.c */
	OP_WITNESS = 64,    /* with OP_ADOPT: the new member is to be a witness, and nothing is copied */
	OP_FLAGS = 127
};

/* What is in memory of an operation; the request is in its row. */
struct op {
	uint32_t member;
	uint32_t number;
	uint64_t stamp;
	site_id adopts; /* the new member that it is the copy for; 0: none */
	uint32_t row_bytes;
	uint16_t facet;
	uint8_t effect;
	uint8_t class;
	uint8_t flags;
	uint32_t seen[];
};

/* A row of an operation, taken apart. The same bytes travel. */
struct op_row {
	uint64_t stamp;
	const unsigned char *seen; /* four bytes each */
	uint32_t members_count;    /* when it was written: there may be more now, of which it had seen nothing */
	uint8_t flags;
	site_id adopts;
	struct replica_class class;
	struct replica_request request;
};

/* What an operation is and asks for: all of its row but stamp and `seen`. */
void op_content_put(struct buf *out, const struct replica_class *class, const struct replica_request *request,
                    uint8_t flags);
void op_row_put(struct buf *out, uint64_t stamp, const uint32_t *seen, uint32_t members_count, struct str content);
int op_content_parse(struct str content, struct op_row *row);
struct str op_content_of(const struct op_row *row, struct str bytes); /* a slice of the row */
int op_row_parse(struct str bytes, struct op_row *row, struct err *err);
/* NULL if it is made for more members. */
struct op *op_new(const struct op_row *row, uint32_t member, uint32_t number, uint32_t members_count, size_t bytes);
/* What is too long for a row; the reason is told. */
int op_check(const struct replica_class *class, const struct replica_request *request, struct err *err);

/* ---- Reports ------------------------------------------------------------------------------------------------------ */

/* Rejected or in doubt at the member that reports; or pending: it was, and is being run again; or dismissed: it has no effect there,
 * and a person let it be. */
enum { EXCEPTION_DISMISSED = REPLICA_SUPERSEDED };

struct exception {
	uint32_t member;
	uint32_t number;
	uint8_t state; /* enum replica_member_state, or EXCEPTION_DISMISSED */
	uint16_t status;
	uint16_t answer_bytes;
	char *answer;
};

struct report {
	uint32_t number; /* 0: none came yet */
	bool stuck;
	bool diverged; /* stuck, and nobody can help */
	bool created;  /* it is there */
	bool
		excepted; /* there were exceptions when it was told: those here are dropped when their operation is forgotten */
	bool lacking; /* something that was dismissed there, and forgotten, is missing from its state */
	bool foreign; /* it was made as another replicant: its state is not to be given to anybody (merge.c) */
	bool
		holding; /* it was a witness, and knows that it holds it: this is of what it has run, not of what it has heard */
	bool local_id_quoted;
	uint8_t local_id_bytes;
	char local_id[LIMIT_REPLICA_NAME_BYTES];
	uint32_t distance; /* see struct order_next */
	uint32_t *settled; /* a vector, of the member's */
	struct exception *exceptions;
	uint32_t exceptions_count;
};

void report_put(struct buf *out, const struct report *report, uint32_t members_count);
/* Reads one; `report` gets what is its own: report_clear() before it is read again. False: it makes no sense. */
bool report_read(struct reader *reader, struct report *report, uint32_t members_count);
struct lens;
/* From the sender's numbers of members to ours; `settled` has room for all. */
void report_map(struct report *report, const struct lens *lens);
void report_clear(struct report *report); /* exceptions */
const struct exception *report_exception(const struct report *report, uint32_t member, uint32_t number);
void report_except(struct report *report, const struct exception *exception); /* copies; replaces one of that number */
enum replica_member_state exception_shown(const struct exception *exception);
bool report_unexcept(struct report *report, uint32_t member, uint32_t number);

/* ---- Replicants --------------------------------------------------------------------------------------------------- */

struct member {
	site_id site;
	bool removed;  /* asked, told and waited for no more */
	bool added;    /* it came later, and began with a copy */
	bool leaving;  /* it is to be removed once another one has all that it has */
	bool keeps;    /* and its item stays */
	bool witness;  /* it began as one that knows of it, and has none of it; */
	bool holds;    /* and it was given a copy later: it is none any more (witness.c) */
	bool behind;   /* it has not shown yet that it knows of all members, and who leaves, what we know */
	uint32_t told; /* our report that it has confirmed */
	uint32_t *has; /* operations that it said it has */
	struct report report;
	/* In memory only. */
	bool in_outbox;
	uint32_t digest;   /* of the members as it has them; 0: not heard */
	bool ready;        /* in the list of its peer */
	bool ack;          /* it asked for an answer */
	uint64_t relay_us; /* when it gets what others issued; 0: not thought of yet */
	uint64_t sent_us;  /* the first of what is on the way */
	uint32_t *sent;    /* operations that are on the way */
	size_t sent_bytes;
};

enum replicant_kind {
	REPLICANT_LIVE,
	REPLICANT_GONE,  /* deleted everywhere: a tombstone */
	REPLICANT_ALIAS, /* of another one */
	REPLICANT_LEFT,  /* this site is no member any more: a tombstone */
	REPLICANT_NONE,  /* its rows are to be removed: it was never created */
};

/* An entry of X. */
struct step {
	uint32_t member;
	uint32_t number;
	uint8_t how; /* enum order_done */
};

/* A user's operation in doubt at its own site: nobody else has heard of it. */
struct withheld {
	uint32_t number; /* with REPLICA_WITHHELD */
	uint32_t place;  /* in X, where its effect would be; UINT32_MAX: what was forgotten since has undone it */
	bool asking;     /* the service can still be asked; else a person */
};

struct submission {
	struct submission *next;
	uint64_t ticket;
	uint32_t withheld; /* one that a person wants to be run again; 0: a new one */
	bool creates;
	bool relayed; /* `weak`, and of another member: */
	uint32_t member;
	bool gives; /* no operation: the state of this member is to become one */
	struct buf key;
	struct buf content; /* op_content_put() */
	uint8_t blob[32];   /* of its body, */
	bool has_blob;      /* where there is one */
	uint32_t loan;      /* `weak`: what its blob is needed by; 0: nothing yet */
};

/* What runs, or ran when the process ended. */
enum task_what {
	TASK_NONE,
	TASK_FIRST, /* for a user: the operation is an intent */
	TASK_DELIVERED,
	TASK_WITHHELD, /* inquired */
	TASK_STATE,    /* read, for a repair */
	TASK_WEAK,
	TASK_COPY,  /* read, for a new member */
	TASK_LEAVE, /* delete what is here */
};

struct task {
	enum task_what what;
	enum replica_task_kind kind;
	uint32_t member;
	uint32_t number;
	bool standing; /* see struct order_next */
	bool answered; /* the user knows already */
	/* In memory only. */
	uint64_t task;
	uint64_t ticket;
	struct op *intent;
	struct buf key;
	struct buf content; /* weak */
	uint32_t loan;      /* see struct submission */
};

/* Running it twice is running it once. What is made anew would be made twice. */
static inline bool task_is_repeatable(const struct task *task, const struct op *op)
{
	if (task->kind == REPLICA_RUN_CREATE_AS_REPLACE)
		return true;
	return (op->flags & OP_REPEATABLE) && task->kind != REPLICA_RUN_ANEW && task->kind != REPLICA_INQUIRE_ANEW;
}

/* How to find out what became of it, where it cannot be repeated. */
static inline enum replica_task_kind task_inquiry(const struct task *task)
{
	bool anew = task->kind == REPLICA_RUN_ANEW || task->kind == REPLICA_INQUIRE_ANEW;
	return anew ? REPLICA_INQUIRE_ANEW : REPLICA_INQUIRE;
}

static inline bool task_asks(const struct task *task)
{
	return task->kind == REPLICA_INQUIRE || task->kind == REPLICA_INQUIRE_ANEW;
}

/* The item as a member has given it to all; its files are others, behind it. */
static inline bool op_is_state(const struct op *op)
{
	return (op->flags & OP_REPAIR) && op->facet == 0;
}

/* Of a user's own: if nobody knows what became of its first run, it is issued, and run again. */
static inline bool task_runs_again(const struct op *op)
{
	return (op->flags & (OP_REPEATABLE | OP_CONDITIONAL)) == OP_REPEATABLE;
}

struct replicant {
	struct replica_id id;
	enum replicant_kind kind;
	struct replicant *newer, *older; /* by use */
	/* The row REPLICANTS. */
	struct replica_id alias;
	struct replica_op_id merge; /* by which it became an alias, */
	site_id winner;             /* and who issued the create that it lost against */
	uint64_t gone_ms;
	enum replica_consistency consistency;
	enum replica_span span;
	site_id prime;   /* of what is not ALIKE, as it was made: witness_prime() */
	struct buf text; /* of the four names, and the resolutions */
	struct str service, type, collection, name;
	bool ids_in_collection;
	bool ids_chosen;
	struct order_rules rules;
	struct member *members;
	uint32_t members_count;
	uint32_t self;  /* among the members */
	bool newcomer;  /* this site was added, and has not made its copy yet */
	bool deletes;   /* LEFT: its item is still to be deleted */
	uint32_t *base; /* forgotten */
	/* The row LANES; the report of this site is members[self].report. */
	uint32_t *handled;
	struct step *steps; /* X */
	uint32_t steps_count, steps_capacity;
	struct task task;
	bool unsure; /* what became of the task is not known: it is to be run or inquired again, before anything else */
	bool gone;   /* the item was here, and a delete that was run has taken it; that may have lost */
	bool unable; /* it is stuck, and its state cannot be given to others */
	bool redo;   /* X is not what it was when the report said "settled": a person wants something run again */
	struct withheld *withheld;
	uint32_t withheld_count;
	/* The rows OPERATIONS. */
	uint32_t *known;
	struct op **ops; /* by member and number */
	uint32_t ops_count, ops_capacity;
	/* In memory only. */
	uint32_t pins;
	bool in_work, lane_stored, head_dirty, lane_dirty, report_dirty, waiting;
	bool merges;       /* among its operations may be merges that were not carried out here yet */
	bool listed;       /* the members have changed: others are to be told */
	site_id extend;    /* to be added, as soon as all is settled here; 0: none */
	bool extend_holds; /* of what is PLACED: it is to hold it; else to be a witness */
	uint64_t extend_ticket;
	uint64_t extend_by_us; /* else it is given up */
	bool fresh;            /* there is something new to tell: an operation of ours, or a member said what it has */
	struct submission *queue, **queue_end;
	uint32_t queue_count;
	uint64_t retry_us; /* the last wait after a failure */
	uint64_t not_before_us;
	uint64_t timer_us;  /* the earliest in the heap; 0: none */
	uint64_t repair_us; /* when to repair; 0: not */
	uint64_t alone_us;  /* since when it is stuck, and who could help cannot be reached; 0: it is not so */
	struct arena order_arena;
	struct order_set set;
	struct order_sequence sequence;
	bool ordered; /* set and sequence are of these operations */
};

static inline bool vector_covers(const uint32_t *a, const uint32_t *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (a[i] < b[i])
			return false;
	return true;
}

static inline void vector_raise(uint32_t *a, const uint32_t *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (a[i] < b[i])
			a[i] = b[i];
}

static inline bool vector_is_zero(const uint32_t *a, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		if (a[i] != 0)
			return false;
	return true;
}

static inline bool vector_equal(const uint32_t *a, const uint32_t *b, uint32_t count)
{
	return memcmp(a, b, count * sizeof(*a)) == 0;
}

static inline void vector_copy(uint32_t *a, const uint32_t *b, uint32_t count)
{
	memcpy(a, b, count * sizeof(*a));
}

static inline bool id_equal(struct replica_id a, struct replica_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

static inline struct str id_str(const struct replica_id *id)
{
	return str_make((const char *)id->bytes, sizeof(id->bytes));
}

static inline bool member_witnesses(const struct member *member)
{
	return member->witness && !member->holds;
}

static inline bool is_witness(const struct replicant *r)
{
	return member_witnesses(&r->members[r->self]);
}

/* Running it here makes the item: a create, or a replace where there is none. Nobody could say by which id if its outcome is lost. */
static inline bool op_makes(const struct replicant *r, const struct op *op)
{
	bool sets = op->effect == ORDER_REPLACE && op->facet == 0;
	return op->effect == ORDER_CREATE || (sets && !r->members[r->self].report.created);
}

static inline struct report *own_report(struct replicant *r)
{
	return &r->members[r->self].report;
}

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

/* row.c: rows, taken apart and put together. Parsers say ERR_CORRUPT, or ERR_VERSION, and why. */
void head_put(struct buf *out, const struct replicant *r);
int head_parse(struct str row, struct replicant *r, site_id self, struct err *err);
void lane_put(struct buf *out, const struct replicant *r);
int lane_parse(struct str row, struct replicant *r, struct err *err);
void put_vector(struct buf *out, const uint32_t *vector, uint32_t count);
void read_vector(struct reader *reader, uint32_t *vector, uint32_t count);
void put_text(struct buf *out, struct str text); /* with one byte of length */
struct str read_text(struct reader *reader);
void put_header(struct buf *out, const struct replicant *r); /* what all members know of it from the start */
bool read_header(struct reader *reader, struct replicant *r, site_id self);
void header_take(struct replicant *r, const struct replica_create *create);
uint32_t members_digest(const struct replicant *r);

/* here.c: what a row that is live says of this site. False: head_parse() has to look at it. */
bool here_skim(struct str bytes, site_id self, struct replica_here *here);
uint64_t here_members(const struct replicant *r); /* the digest of who they are */

/* row_small.c */
int row_version_check(uint8_t version, const char *what, struct err *err); /* ERR_VERSION: it is not read */

struct key_row {
	struct replica_op_id op;
	uint8_t kind; /* enum replica_outcome_kind */
	uint16_t status;
};

struct meta_row {
	uint64_t clock;
	uint64_t tasks;
};

void key_row_put(struct buf *out, const struct key_row *row);
int key_row_parse(struct str bytes, struct key_row *row, struct err *err);
void local_row_put(struct buf *out, struct replica_id id);
void moved_row_put(struct buf *out, const struct replica_op_id *op);
int moved_row_parse(struct str bytes, struct replica_op_id *op, struct err *err);
void meta_row_put(struct buf *out, const struct meta_row *row);
int meta_row_parse(struct str bytes, struct meta_row *row, struct err *err);
void blob_row_put(struct buf *out, bool here);
int blob_row_parse(struct str bytes, bool *here, struct err *err);
int blank_row_parse(struct str bytes, struct err *err); /* OUTBOX, and what expires */
void blank_row_put(struct buf *out);
void op_key_put(struct buf *out, const struct replica_op_id *op);
bool op_key_parse(struct str key, struct replica_op_id *op);
void outbox_key_put(struct buf *out, site_id site, struct replica_id id);
void blob_key_put(struct buf *out, struct str blob, const struct replica_op_id *op);
void name_key_put(struct buf *out, const struct replicant *r);

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

/* wire.c */
enum sync_kind { SYNC_STATE = 1, SYNC_GONE = 2, SYNC_WEAK = 3, SYNC_MEMBERS = 4 };
enum sync_flag { SYNC_ASK = 1, SYNC_HEADER = 2, SYNC_REPORT = 4, SYNC_NOTHING = 8, SYNC_LIST = 16, SYNC_FLAGS = 31 };

struct sync_op {
	uint8_t member;
	uint32_t number;
	struct str row;
};

struct section {
	uint8_t kind;
	uint8_t flags;
	struct replica_id id;
	uint8_t members_count; /* 0 in GONE, and where nothing is known */
	uint32_t digest;       /* of the members */
	struct reader rest;    /* what depends on the kind */
};

void sync_message_begin(struct buf *out, uint64_t clock);
int sync_message_open(struct str bytes, uint64_t *clock, struct reader *sections);
/* 1: a section, of any kind; 0: no more; negative: makes no sense. */
int sync_section_read(struct reader *sections, struct section *section);
size_t sync_section_begin(struct buf *out, const struct section *section);
void sync_section_ask(struct buf *out, size_t at);
void sync_section_end(struct buf *out, size_t at);
void sync_op_put(struct buf *out, const struct sync_op *op);
bool sync_op_read(struct reader *reader, struct sync_op *op, uint32_t members_count);

/* existing.c */
int existing_take(struct replica *replica, const struct replica_adoption *adoption, struct replica_id *id,
                  struct err *err);

/* members.c */
enum {
	MEMBER_REMOVED = 1,
	MEMBER_ADDED = 2,
	MEMBER_LEAVING = 4,
	MEMBER_KEEPS = 8,
	MEMBER_BEHIND = 16,
	MEMBER_NEWCOMER = 32,
	MEMBER_WITNESS = 64,
	MEMBER_HOLDS = 128,
	MEMBER_LISTED = MEMBER_REMOVED | MEMBER_ADDED | MEMBER_LEAVING | MEMBER_KEEPS | MEMBER_WITNESS | MEMBER_HOLDS,
	MEMBER_FLAGS = 255
};

/* From the numbers of the members at who sent something to those at this site. */
struct lens {
	uint32_t count;
	uint8_t to[LIMIT_REPLICA_MEMBERS];
	bool same;
};

uint8_t member_flags(const struct replicant *r, uint32_t member); /* as in the row */
void member_take_flags(struct replicant *r, uint32_t member, uint8_t flags);
int members_ask_drop(struct replica *replica, struct replica_id id, const struct replica_drop *drop, struct err *err);
bool members_mark(struct replica *replica, struct replicant *r, uint32_t member,
                  uint8_t flags); /* false: nothing is new */
/* What this site knows of the members has grown: all others are to show that they know it too. */
void members_changed(struct replica *replica, struct replicant *r);
/* The one whose members are to change; or why they cannot. */
int members_find(struct replica *replica, struct replica_id id, struct replicant **r, struct err *err);
bool members_is_removed(const struct replica *replica, site_id site); /* from the mesh */
void members_put(struct buf *out, const struct replicant *r);
uint32_t members_add(struct replicant *r, site_id site);
void members_remove(struct replica *replica, struct replicant *r, uint32_t member);
/* Reads a list of `count` members that `from` sent, and takes over what is new. False: it makes no sense. */
bool members_take(struct replica *replica, struct replicant *r, uint32_t from, struct reader *reader, uint32_t count,
                  struct lens *lens);
void members_same(struct replicant *r, uint32_t from, struct lens *lens); /* its list is ours */
void members_message(struct replica *replica, struct replicant *r, site_id from, struct section *section);
void members_emit(struct replica *replica, struct peer *peer, const struct replicant *r, bool ask);
void members_answer(struct replica *replica, struct replicant *r, uint32_t member, bool ask);
void members_answer_of_alias(struct replica *replica, const struct replicant *alias, site_id to);
bool members_agree(const struct replicant *r); /* as far as is known here */
void lens_vector(const struct lens *lens, struct reader *reader, uint32_t *vector, uint32_t count);
/* Before anything that was delivered is run. True: that has to wait. */
bool members_first(struct replica *replica, struct replicant *r);
bool members_is_leaving(const struct replicant *r); /* this site, and nothing new may begin here */
void members_pump_left(struct replica *replica, struct replicant *r);
void members_deleted(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);
bool members_left_for_good(const struct replicant *r); /* everybody knows: it need not be remembered */

/* extend.c */
int members_ask_extend(struct replica *replica, struct replica_id id, const struct replica_extension *extension,
                       struct err *err);
void members_extend(struct replica *replica, struct replicant *r); /* if one is asked for and all is settled */
bool members_holds(const struct replica *replica, const struct replicant *r); /* what is new waits for the copy */
void members_extend_refuse(struct replica *replica, struct replicant *r, int code, const char *text);
void members_read(struct replica *replica, struct replicant *r, const struct replica_outcome *outcome);

/* witness.c */
void witness_follow(struct replica *replica, struct replicant *r); /* all that is known counts as done */
void witness_ends(struct replica *replica, struct replicant *r);   /* it is to hold it, and begins with a copy */
bool witness_sends_on(const struct replicant *r);                  /* who asks for it here is sent to one that has it */
bool witness_holds_nothing(const struct replicant *r, uint32_t member); /* it was to hold it, and will not */
site_id witness_prime(const struct replicant *r);                       /* 0: nobody holds it any more */
uint32_t witness_holders(const struct replicant *r, site_id *holders, uint32_t most); /* the prime first */
void witness_put(struct buf *out, const struct replicant *r); /* of what is not ALIKE, in its header */
bool witness_read(struct reader *reader, struct replicant *r);
int witness_check(const struct replica *replica, const struct replica_create *create, struct err *err);
void witness_take(struct replicant *r, const struct replica_create *create);

/* adopt.c: of who is new. True: nothing else is to be done here. */
bool members_join(struct replica *replica, struct replicant *r);

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
bool references_are_here(struct replica *replica, struct replicant *r, const struct replica_request *request);
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
