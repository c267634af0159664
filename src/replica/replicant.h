/* What is known of a replicant at one of its sites: operations, what each member reports, and all of it together; in memory. */
#ifndef REPLICA_REPLICANT_H
#define REPLICA_REPLICANT_H

#include "replica/replica.h"

#include "base/bytes.h"

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
	TASK_COPY,       /* read, for a new member */
	TASK_LEAVE,      /* delete what is here */
	TASK_CHECKPOINT, /* read, for this site itself */
	TASK_RESTORE,    /* set again as it was read */
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
	uint32_t self;               /* among the members */
	bool newcomer;               /* this site was added, and has not made its copy yet */
	bool deletes;                /* LEFT: its item is still to be deleted */
	bool let_go;                 /* while replica_let_go() is under way */
	uint32_t *base;              /* forgotten */
	bool checkpointed;           /* the part of this site with all of these carried out is kept (checkpoint.c), */
	bool checkpoint_refused;     /* and the service here has refused to take it back; in memory only, as are */
	uint64_t checkpoint_us;      /* when it is tried to read one again, */
	struct candidate *candidate; /* and what may become one */
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
	uint64_t behind_by_us; /* a delete does not wait any longer for what is not heard of; 0: there is none such */
	uint64_t timer_us;     /* the earliest in the heap; 0: none */
	uint64_t repair_us;    /* when to repair; 0: not */
	uint64_t alone_us;     /* since when it is stuck, and who could help cannot be reached; 0: it is not so */
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

#endif
