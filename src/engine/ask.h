/* Questions to the engine about replicants and operations, and a person's word on them.
 *
 * A question is a job: it is posted to the engine's loop, looked up there, and its reply is posted to the loop of whoever asked.
 * Some wait: for an operation to be applied, for something to change. They are replied to when it is so, or their time is over.
 *
 * Changes. What src/replica tells of goes into the store with what it tells of, and then into a ring in memory, with numbers that
 * increase, also from one start of the agent to the next. A reader says which was the last that it has seen. If that is no longer
 * kept, it is told so (`reset`): it has missed some, and looks at everything anew.
 */
#ifndef ENGINE_ASK_H
#define ENGINE_ASK_H

#include "engine/deps.h"
#include "engine/engine.h"

#include "cross/cross.h"
#include "cross/names.h"

#include "base/arena.h"

enum engine_question_kind {
	ENGINE_ASK_REPLICANT,  /* one, by its id */
	ENGINE_ASK_REPLICANTS, /* a page of the list */
	ENGINE_ASK_OPERATION,  /* one, by its id; may wait */
	ENGINE_ASK_OPERATIONS, /* a page of those that are not forgotten */
	ENGINE_ASK_JUDGE,      /* an operation is run again, did happen, or is let be */
	ENGINE_ASK_HOOKS,      /* how they stand */
	ENGINE_ASK_CHANGES,    /* what happened after a change; waits if nothing did */
	ENGINE_ASK_EXTEND,     /* `site` becomes a member of a replicant; waits until the copy for it is on its way */
	ENGINE_ASK_DROP,       /* `site` is to be a member no longer */
	ENGINE_ASK_DEPS,       /* what depends on what, around one */
	ENGINE_ASK_SUFFERING,  /* a page of those that would suffer if `site` went away */
};

/* How far an operation is to be. What is superseded somewhere is settled there, and counts. */
enum engine_until {
	ENGINE_NOW,
	ENGINE_ALL,
	ENGINE_MAJORITY,
	ENGINE_SITE,
};

/* How one copy stands, in a word. */
enum engine_copy {
	ENGINE_COPY_WITNESS, /* none: it knows of those elsewhere */
	ENGINE_COPY_SETTLED,
	ENGINE_COPY_PENDING,
	ENGINE_COPY_STUCK, /* it waits for the state of another one */
	ENGINE_COPY_REJECTED,
	ENGINE_COPY_IN_DOUBT,
	ENGINE_COPY_DIVERGED, /* it waits for the state of another one, and none can give it */
	ENGINE_COPY_DELETED,
	ENGINE_COPY_LEFT, /* this site is no member any more: it is at the others, and nothing is known here of their copies */
	ENGINE_COPIES,
};

const char *engine_copy_name(enum engine_copy copy); /* "settled", "pending", "in-doubt"... */
/* With the worst that is the case. */
enum engine_copy engine_copy_of(const struct replica_view *view, const struct replica_member_view *member);

/* Is there nothing left to wait for? *reached: it is so; otherwise it will not be, unless a person does something. */
bool engine_is_over(const struct replica_op_view *view, enum engine_until until, site_id site, bool *reached);

struct engine_change {
	uint64_t number;
	uint64_t wall_ms;
	struct replica_event event;
};

/* "operation", "replicant"... */
const char *engine_change_name(enum replica_event_kind kind);
/* A JSON object: the resource, and where they make sense the operation, the site and its state; when. `sites` may be NULL. */
void engine_change_put(struct buf *out, const struct engine_change *change, const struct site_snapshot *sites);

/* How the name of a child stands that this site has made in a container. */
enum engine_name_state {
	ENGINE_NAME_NONE, /* it is no such child */
	ENGINE_NAME_FINE,
	ENGINE_NAME_UNCHECKED, /* it was accepted without the prime, which has not said anything yet */
	ENGINE_NAME_LOST,      /* it is another's: */
};

struct engine_child {
	enum engine_name_state state;
	struct str name; /* as it is now */
	struct replica_id holder;
	site_id holder_site;
};

struct engine_reply {
	int code; /* 0; or why there is none: ERR_NOT_FOUND, ERR_LIMIT, ERR_INVALID, ERR_CONFLICT, ERR_UNAVAILABLE */
	struct str text;
	const struct replica_view *replicants;
	const struct engine_child *children; /* the same ones; NULL: nothing is known of names */
	const struct cross_division *const
		*divisions; /* of each: how it is divided; NULL: it is not, or that is not known here */
	uint32_t replicants_count;
	const struct replica_op_view *operations;
	uint32_t operations_count;
	bool more; /* a list goes on, after: */
	struct replica_id next_replicant;
	struct replica_op_id next_operation;
	bool reached; /* of a wait */
	const struct engine_change *changes;
	uint32_t changes_count;
	const struct engine_hook_view *hooks;
	uint32_t hooks_count;
	struct engine_deps deps;
	const struct engine_suffering *suffering;
	uint32_t suffering_count;
	uint32_t copies;       /* of those that are on this page: how many would lose no more than one of their copies */
	bool reset;            /* some were missed: go on from `last` */
	uint64_t last;         /* number of the last change that there was */
	struct engine *engine; /* for what any thread may ask */
	site_id self;          /* who says so */
	const struct site_snapshot *sites; /* what sites are called; NULL: nobody knows yet */
};

struct engine_question {
	enum engine_question_kind kind;
	struct replica_id replicant; /* the one; of operations: theirs, with `of_replicant` */
	bool of_replicant;
	struct replica_op_id operation; /* the one */
	/* lists: after which one (NULL: from the first), how many at most, and which */
	const struct replica_id *after_replicant;
	const struct replica_op_id *after_operation;
	uint32_t most;
	struct str service; /* "": any */
	struct str type;    /* as a description has it, or what follows its last dot */
	/* dependencies: around `replicant`, or what is no replica, by its type as the description has it, or in short */
	enum engine_deps_view deps_view;
	struct str local_id; /* "": around `replicant` */
	struct str site;     /* by name: a member; of operations: whose state is meant. Waiting: whose state */
	int state;           /* enum engine_copy, or enum replica_member_state; -1: any */
	/* waiting */
	enum engine_until until;
	uint64_t timeout_ms;
	/* a person's word */
	enum replica_verdict verdict;
	struct str
		fields; /* of a retry, as in struct engine_request: credentials in them replace those that were refused */
	/* a member that goes */
	bool keep, force; /* see struct replica_drop */
	bool hold;        /* one that comes: see struct replica_extension */
	/* changes */
	bool from_now; /* `last` only */
	uint64_t after;
	/* In the loop of the question, once; slices live until it returns. Or, if the engine ends before, dropped(), in the thread
	 * that closes it. */
	struct http_loop *loop;
	void (*done)(void *context, const struct engine_reply *reply);
	void (*dropped)(void *context);
	void *context;
};

/* Everything is copied. Any thread. */
void engine_ask(struct engine *engine, const struct engine_question *question);

/* For metrics. Any thread. */
struct engine_figures {
	struct replica_counters replica;
	uint64_t commits; /* since the store was made */
	uint64_t commit_failures;
	uint64_t at_risk; /* replicants */
	uint64_t changes; /* told of */
	uint64_t hooks;   /* webhooks that are configured */
	uint64_t hooks_told, hooks_failed, hooks_missed;
	uint64_t hooks_behind; /* of the one that is furthest */
	struct cross_names_counters names;
	uint64_t store_rows, store_bytes_used, store_bytes_file, store_bytes_most;
};

void engine_figures(struct engine *engine, struct engine_figures *figures);

#endif
