/* Inside the engine. All of it belongs to the engine's thread, except where said. */
#ifndef ENGINE_ENGINE_INT_H
#define ENGINE_ENGINE_INT_H

#include "engine/ask.h"
#include "engine/engine.h"
#include "engine/rows.h"
#include "engine/verify.h"

#include "cross/children.h"
#include "cross/cross.h"

#include "base/arena.h"
#include "base/map.h"
#include "store/store.h"
#include "trust/trust.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
	ENGINE_ANSWER_MS = 60000,      /* for a service to answer, if nothing else is configured */
	ENGINE_AGAIN_MS = 1000,        /* from a store that refused to the next attempt */
	ENGINE_SOON_MS = 5,            /* operations of others, committed with company, or by then */
	ENGINE_LATER_MS = 25,          /* what nobody waits for: acknowledgements, reports */
	ENGINE_PEER_MS = 20000,        /* for another agent to take a message */
	ENGINE_ANSWER_BYTES = 8 << 20, /* of a service's answer to an operation */
	ENGINE_BEHIND_ROWS = 8192,     /* that wait for the store: each may change a page or two of it */
	ENGINE_BEHIND_KEPT = 4096,     /* replicants whose rows stay in memory when the store has them */
	ENGINE_BEHIND_LEAST = 1 << 29, /* bytes that the store may use: an eighth more is there for these pages */
	ENGINE_LOADED = 4096,          /* replicants in memory, of about 1 kB, that nothing keeps there */
	ENGINE_FETCHES = 4,            /* blobs that come at a time */
	ENGINE_BLOB_BYTES = 32,        /* a SHA-256 */
	ENGINE_BLOB_NAME_BYTES = 2 * ENGINE_BLOB_BYTES + 1,
	ENGINE_UNSENT_BYTES =
		8 << 20, /* for one site, while another message to it is under way; more is dropped: it is told again */
};

#define ENGINE_UPLOAD_PREFIX "upload-"
#define ENGINE_PART_SUFFIX ".part"

/* ---- Requests as they travel ------------------------------------------------------------------------------------- */

/* "METHOD TARGET\nName: value\n...\n": ids in the target are meta-ids. */
struct engine_head {
	struct str method;
	struct str target;
	struct str fields; /* the lines, each ended by \r\n */
	struct str content_type;
};

/* The next field of that name, and what is behind it. */
bool engine_field_next(struct str *fields, struct str name, struct str *value);

void engine_head_put(const struct engine_head *head, struct buf *out);
/* As a field of an operation's head: the scope for what the service calls that runs it. */
void engine_scope_put(struct buf *fields, struct str scope);
struct str engine_scope_of(struct str fields);
/* Another one: how it is divided (division.c). */
extern const struct str engine_division_field;
/* ERR_CORRUPT. Slices of the text. */
int engine_head_parse(struct str text, struct engine_head *head, struct err *err);

/* The fields of a request whose answer is looked into: of what the user accepts, only what can be read. */
void engine_fields_readable(struct str fields, struct buf *out);

/* Those that may travel and that `wanted` wants. */
void engine_fields_put(struct buf *out, struct str fields, bool (*wanted)(void *context, struct str name),
                       void *context);

/* ---- The setup --------------------------------------------------------------------------------------------------- */

/* Whatever is under way keeps the one that it began with. */
struct setup {
	struct engine_setup about;
	uint32_t references;
};

struct setup *engine_setup_keep(struct setup *setup);
void engine_setup_drop(struct setup *setup);

/* ---- What is under way ------------------------------------------------------------------------------------------- */

/* For an operation to get somewhere, or for anything to change; until a time is over. */
struct wait {
	struct engine *engine;
	struct wait *previous, *next; /* while it waits */
	bool waiting;
	bool due;    /* to be looked at */
	bool any;    /* for any change */
	bool answer; /* for the time alone: whoever has what it waits for ends it */
	struct replica_op_id op;
	enum engine_until until;
	site_id site; /* ENGINE_SITE */
	struct http_timer timer;
	void (*over)(struct wait *wait); /* it is so, cannot be, or took too long; may free it */
};

/* What happened, last: the ring has those after `before`. */
struct changes {
	struct engine_change ring[LIMIT_ENGINE_CHANGES];
	uint64_t first, before, last;
	struct journal_row *rows; /* in the store, the oldest first: each has the changes of one commit */
	uint32_t rows_count, rows_capacity;
	uint64_t stored; /* changes in them */
};

struct preference {
	bool respond_async;
	bool contents; /* of a container that is deleted: what is in it, too */
	uint64_t wait_s;
};

/* An operation whose user was answered before the service here was. */
struct early {
	uint64_t ticket; /* 0: none */
	struct replica_op_id op;
	enum replica_member_state state;
	uint64_t wall_ms;
	uint8_t effect;
	char name[64];
	size_t name_bytes;
	int status;
	char text[512]; /* of what the service said */
	size_t bytes;
};

/* A request of a user: from engine_submit() to its answer. */
struct ticket {
	struct http_task task; /* to the engine, then back */
	struct engine *engine;
	struct ticket *previous, *next; /* of those that the engine has */
	uint64_t number;
	struct arena arena; /* of the request */
	struct engine_request request;
	struct replica_id replicant;
	struct setup *setup;
	struct glue_match match;
	struct glue_request asked;
	struct buf type; /* as glue_type_put() has it */
	struct preference preference;
	struct wait wait;
	struct replica_op_id op;
	uint8_t effect;
	bool started;  /* the service here was asked */
	bool answered; /* and was done with it */
	bool accepted; /* and did it */
	bool durable;  /* and that is on disk: it waits for others */
	bool whole;    /* its body has the whole of what is divided (division.c) */
	struct reading *reading;
	struct engine_spool *spool; /* the body becomes a blob; NULL: it does not, or is one already */
	uint8_t blob[ENGINE_BLOB_BYTES];
	uint64_t blob_bytes;
	bool has_blob;
	struct emptying *emptying; /* contents.c; NULL: nothing is */
	struct str wishes;         /* the name that it claims */
	struct cross_claim frees;  /* the name that a child has no longer once this was accepted; "": none */
	bool freeing;              /* that is waited for */
	bool claims;               /* a name was asked for, and src/replica does not have it yet (names.c) */
	/* what the service answered */
	unsigned status;
	struct buf fields;
	struct buf body;
	/* the answer */
	struct engine_answer answer;
	struct buf answer_fields;
	struct buf answer_body;
	struct err err;
};

/* One request to the service, with the credentials of the operation; `done` gets the run. */
struct run_question {
	const char *method;
	struct str target;
	struct str body;
	bool blob; /* it is in run->fd */
	bool repeatable;
	struct str conditions; /* headers that only this request has */
	void (*done)(void *context, const struct http_call_answer *answer);
};

/* A request at the local service. */
struct run {
	struct engine *engine;
	struct run *previous, *next;
	struct arena arena; /* of the task */
	struct replica_task task;
	struct replica_class class;
	struct replica_request request;
	struct setup *setup;
	struct glue_match match;
	struct glue_request asked; /* as the service here knows it */
	struct engine_name own;    /* of the item, but for its id */
	struct engine_head head;
	struct str whole;      /* of a user's own operation: the body with its preconditions; "": it has none */
	struct str conditions; /* and headers that are some */
	struct str host;       /* which its user asked: the links that he gets lead there; "": another's operation */
	const struct engine_service *service;
	void *place; /* that the policy gave it; NULL: it needed none */
	struct http_call *call;
	struct buf target;
	struct buf body;
	uint8_t blob[ENGINE_BLOB_BYTES];
	int fd;                /* of the blob, which is the body; -1: `body` is */
	struct facets *facets; /* being read (state.c); NULL: none are */
	struct str answer;     /* of the service, to what was done: until it is told */
	struct str mark;       /* by which the shell knows what the service asks of its judge; "": it does not */
	/* What the service said when it refused the credential, while its judge is asked; and what it was asked, to be asked once more. */
	int refused_status;
	struct str refused_answer;
	struct run_question question;
	bool judged; /* it was */
};

enum action_kind {
	ACTION_SEND,
	ACTION_TELL_NAMES,
	ACTION_NAMED,
	ACTION_RUN,
	ACTION_ANSWER,
	ACTION_REPLY,
	ACTION_GIVEN,
	ACTION_BROUGHT,
	ACTION_EVENT,
	ACTION_FETCH,
	ACTION_DROP,
};

/* What the host was asked to do, until the commit. */
struct action {
	struct action *next;
	enum action_kind kind;
	site_id to;
	struct buf message; /* or the blob */
	uint64_t bytes;
	uint64_t wall_ms; /* of an event */
	struct run *run;
	struct ticket *ticket;
	struct ask *ask;
	struct giving *giving;
	struct bringing *bringing;
	struct replica_event event;
	struct cross_answer named;
};

/* The copy of this site, being read (copy.c). Whoever has it sets engine, replicant and done. */
struct copying {
	struct engine *engine;
	struct replica_id replicant;
	void (*done)(
		struct copying *copying); /* once, perhaps before engine_copy_start() returns: `reading` is what came */
	struct engine_reading reading;
	struct arena arena;
	struct engine_name own; /* but for its id */
	struct setup *setup;
	struct glue_match match;
	struct http_call *call;
	struct buf target;
	struct buf session;
	struct buf text;
	struct buf parts; /* see struct engine_reading */
	uint32_t parts_count;
	char digest[2 * ENGINE_BLOB_BYTES];
	bool wants_facets; /* not the item: its facets (verify_facets.c) */
	struct facets *facets;
	struct err err;
};

/* An item of which only the replicant tells where it is. */
struct engine_item {
	struct str service;
	struct str collection; /* in words that all members understand */
	struct str local_id;
	struct buf *target; /* gets the path of the item here; `asked` and `match` are of it */
	struct glue_request asked;
	struct glue_match match;
};

/* What this agent puts before a path of a service, in requests of its own: the description says so. */
void engine_base_put(const struct setup *setup, struct str service, struct buf *out);

/* False: the description has no such path. */
bool engine_item_find(struct engine *engine, const struct setup *setup, struct engine_item *item);

/* Messages to one site go one at a time, in order; what comes meanwhile waits. */
struct talk {
	struct engine *engine;
	struct talk *next;
	site_id site;
	bool names;         /* those of src/cross; else of src/replica */
	struct buf waiting; /* length (4 bytes) and bytes of each */
	size_t next_at;     /* where in it the next one begins, */
	size_t last_at;     /* and the last one */
	struct http_call *call;
};

/* See risks.c. */
struct risks {
	uint64_t count; /* replicants at risk */
	struct buf due; /* ids to be looked at before the next commit */
	struct map met; /* sites that were there in this life */
	bool settled;   /* long enough since the start: who was not heard of is lost */
	/* of all that rely on something, up to where they were looked at */
	bool begun, timed;
	struct replica_id after;
	struct http_timer timer;
	struct http_timer settling;
};

struct engine {
	struct engine_options options;
	struct store *store;
	struct trust_box *box; /* of rows with requests in them */
	struct buf place;      /* of a row that is being sealed or opened, */
	struct buf sealed;     /* and what it becomes */
	struct replica *replica;
	struct cross_children *children; /* with the replica, or NULL */
	bool names_starting;
	uint32_t freeing; /* tickets that wait for a name to be free */
	struct http_timer names_timer;
	struct http_timer follow_timer;
	struct buf follow_ids; /* replicants that are to be looked at, 16 bytes each */
	bool follow_all, follow_again, follow_timed;
	bool parts_dividing; /* for the sake of a site that came: one at a time */
	uint64_t parts_after_us;
	uint64_t orphans_after_us;
	struct withdrawal *withdrawals;
	uint64_t withdrawals_made;
	struct http_loop *loop;
	pthread_t thread;
	struct http_pool *pool;
	struct http_timer timer; /* of the replica */
	atomic_bool any;         /* replicants are here; any thread reads */

	struct setup *setup; /* NULL: none yet */
	uint32_t turn;       /* of the instances */
	struct site_snapshot *sites;
	struct http_tls *client;

	/* the batch */
	struct store_session *session; /* what was put since the last commit */
	struct err failure;            /* of the session: it cannot be committed */
	struct action *first, **last;
	struct http_task flush;
	bool flushing;           /* it is posted */
	struct http_source soon; /* a timer of the kernel, since those of the loop are coarse */
	bool soon_set, later_set;
	uint32_t runs_held; /* actions that run something */
	bool users_wait;    /* for the commit: to be answered, or for their operation to run */
	bool news_held;     /* operations whose users are answered already, and of which others are to hear */

	struct behind behind;
	struct journal journal;
	struct overlay overlay;
	struct sieve sieve;
	struct spread spread;
	struct standings standings;

	struct ticket *tickets;
	uint64_t tickets_made;
	struct run *runs;
	struct talk *talks;
	struct waiter *waiters;
	struct verify *verifies;
	struct serve *serves;
	uint32_t verifies_count; /* of both */
	struct giving *givings;
	uint32_t givings_count;
	struct bringing *bringings;
	uint32_t bringings_count;
	struct hook *hooks;
	struct http_timer hooks_timer;
	bool hooks_timed;
	bool hooks_due; /* where they are is to be stored, even if nothing else is */
	bool ending;    /* its loop has run for the last time */
	bool stopped;   /* of the thread that stopped it */

	struct risks risks;
	struct wait *waits;
	uint32_t waits_count;
	struct changes changes;
	struct early early[LIMIT_ENGINE_EARLY];
	uint64_t early_next;
	uint64_t commit_failures;
	pthread_mutex_t figures_lock;
	struct engine_figures figures; /* as of the last commit; any thread reads */

	/* blobs */
	int blobs;          /* the folder */
	bool blobs_changed; /* names in it are not durable yet */
	struct fetch *fetches;
	struct http_loop *disk; /* of the spools: its tasks are their jobs */
	pthread_t disk_thread;
	bool disk_started;
	atomic_bool disk_stopping;
	atomic_uint_least64_t spools_made;
	pthread_mutex_t spools_lock; /* who has a spool */
};

/* engine.c */
struct replica_now engine_now(void);
/* After anything was told to the replica: what it asked for is done once it is durable. */
void engine_changed(struct engine *engine);
/* The same, where users may not wait for it: then within ENGINE_SOON_MS if something is to run, or others are to hear of an operation,
 * else ENGINE_LATER_MS. A commit costs the disk as much for one operation as for a hundred, and those of users have to wait for it. */
void engine_changed_soon(struct engine *engine);
void engine_hold(struct engine *engine, struct action *action);
uint64_t engine_draw(struct engine *engine); /* a random number */
/* What was put is durable, or `failure` says why not; then the session is gone. */
int engine_commit(struct engine *engine);

/* Takes a target apart. */
struct glue_request engine_request_of(struct str service, struct str method, struct str target,
                                      struct str content_type);

/* ids.c: what stands for what at this site. */
/* What a place names, by its local id. */
bool engine_place_find(const struct engine_to_meta *to, const struct glue_place *place, struct engine_found *found);
/* A link with its ids replaced; false: there was none to replace. */
bool engine_link_put(const struct engine_to_meta *to, struct str link, const struct glue_replacer *replacer,
                     struct buf *value);
/* Rewrites a JSON body; what is no JSON stays as it is. */
void engine_splice(const struct glue_places *places, const struct glue_replacer *replacer, struct str body,
                   struct buf *out);

/* session.c */
void engine_sessions_review(struct engine *engine);
void engine_sessions_free(struct engine *engine);

/* credential.c */
void engine_credentials_put(const struct glue_service *service, struct str fields, struct buf *out);
/* What is to travel with an operation. */
int engine_secret_make(const struct glue_service *service, struct str fields, struct buf *secret, struct err *err);
/* The headers by which a service is shown who asks. */
int engine_secret_show(const struct run *run, struct buf *fields, struct err *err);

/* submit.c */
/* `resolutions`: LIMIT_REPLICA_CLASSES squared. */
void engine_rules(const struct glue_type *type, uint8_t *resolutions, struct order_rules *rules);
struct replica_class engine_class(const struct glue_operation *operation);
struct replica_id engine_id_make(void); /* a new meta-id */
void engine_answer_ticket(struct engine *engine, const struct replica_answer *answer);
struct ticket *engine_ticket(struct engine *engine, uint64_t number);
void engine_put_replicas(struct ticket *ticket);
/* What only the first run has. */
void engine_ticket_first(const struct ticket *ticket, struct run *run);
/* To be told instead of an answer; it is still to be finished. */
__attribute__((format(printf, 4, 5))) void engine_ticket_refuse(struct ticket *ticket, unsigned status,
                                                                const char *problem, const char *format, ...);
/* From its request on, once more. */
void engine_ticket_begin(struct ticket *ticket);
/* Its name is its own: goes on to the body, and then */
void engine_ticket_continue(struct ticket *ticket);
/* hands it to src/replica. */
void engine_ticket_go(struct ticket *ticket);
/* Sends it back to its loop; it is gone. */
void engine_ticket_finish(struct ticket *ticket);
void engine_ticket_drop(struct ticket *ticket);
/* The store failed: what users wait for is not going to come. */
void engine_tickets_fail(struct engine *engine, const struct err *err);

/* contents.c: is the container that it deletes empty? False: it will be, and the ticket goes on then; or it was refused. */
bool engine_contents_ready(struct ticket *ticket);
void engine_contents_end(struct ticket *ticket); /* the ticket is at its end */

/* names.c: what is in containers. With the replica: */
int engine_names_start(struct engine *engine, struct err *err);
void engine_names_stop(struct engine *engine);
void engine_names_tick(struct http_timer *timer);
void engine_names_event(struct engine *engine, const struct replica_event *event);
void engine_names_review(struct engine *engine); /* before a commit */
void engine_names_timer(struct engine *engine);  /* after it */
/* May it have this name ("": it has none)? False: that is asked, and the ticket goes on, or it was refused. */
bool engine_names_ready(struct ticket *ticket, struct str name);
void engine_names_answered(struct engine *engine, const struct cross_answer *answer);
void engine_names_over(struct ticket *ticket);
/* It was accepted: is its answer to wait until the name is free that it leaves? */
bool engine_names_frees(struct ticket *ticket);
void engine_names_freed(struct engine *engine); /* after a commit: those that are */
void engine_names_ran(struct run *run);         /* it was accepted, */
void engine_names_ended(struct run *run);       /* or not */
void engine_names_removed(struct engine *engine, site_id site);

/* follow.c */
struct engine_membership {
	struct replica_id replicant;
	site_id site;
	bool adds, hold;
};
void engine_follow_note(struct engine *engine, struct replica_id id); /* something of it has changed */
void engine_follow_tick(struct http_timer *timer);
void engine_follow_timer(struct engine *engine); /* after a commit */
/* 0; or why a person may not ask for that: of a container, or of what is in one. */
int engine_follow_refuses(struct engine *engine, const struct engine_membership *change, struct err *err);
/* The prime of a container is who keeps the names of what is in it. */
void engine_names_show(struct engine *engine, struct replica_view *view);
struct engine_child engine_child_look(struct engine *engine, struct arena *arena, struct replica_id child);
void engine_names_count(const struct engine *engine, struct engine_figures *figures);

/* ask.c */
/* Was it asked for by a question? Then that is replied to. */
bool engine_ask_answered(struct engine *engine, const struct replica_answer *answer);
void engine_ask_reply(struct ask *ask, const struct err *failure);
void engine_ask_drop(struct ask *ask);
void engine_asks_drop(struct engine *engine); /* those that wait */
void engine_figures_note(struct engine *engine);

/* copy.c */
/* Reads an item through its service. */
struct engine_service_reading {
	const struct setup *setup;
	const struct engine_service *service;
	struct str target;
	struct str credentials; /* lines of headers */
	void (*done)(void *context, const struct http_call_answer *answer);
	void *context;
};
int engine_service_read(struct engine *engine, const struct engine_service_reading *reading, struct http_call **call,
                        struct err *err);
void engine_copy_start(struct copying *copying);
void engine_copy_end(struct copying *copying);         /* frees what it has */
void engine_copy_take_facets(struct copying *copying); /* they were read */
void engine_copy_digest(struct str text, char digest[2 * ENGINE_BLOB_BYTES]);

/* verify_facets.c */
void engine_copy_facets_start(struct copying *copying, const struct engine_service *service);
void engine_copy_facets_end(struct copying *copying);

/* verify.c */
void engine_verifies_review(struct engine *engine); /* sites have come, or gone */
void engine_verifies_drop(struct engine *engine);

/* give.c */
/* False: the ticket is none of a gift. */
bool engine_giving_answered(struct engine *engine, const struct replica_answer *answer);
void engine_giving_reply(struct giving *giving);
void engine_giving_fail(struct giving *giving, const struct err *err);
void engine_givings_fail(struct engine *engine, const struct err *err); /* those that src/replica has not answered */
void engine_givings_review(struct engine *engine);                      /* sites have come, or gone */
void engine_givings_drop(struct engine *engine);

/* bring.c */
/* False: the ticket is none of these. */
bool engine_bringing_answered(struct engine *engine, const struct replica_answer *answer);
void engine_bringing_reply(struct bringing *bringing,
                           const struct err *failure);                    /* NULL: all that was put is durable */
void engine_bringings_fail(struct engine *engine, const struct err *err); /* the store has failed */
void engine_bringings_drop(struct engine *engine);

/* hooks.c */
void engine_hooks_configure(struct engine *engine); /* as engine->setup has them */
void engine_hooks_pump(struct engine *engine);
void engine_hooks_store(struct engine *engine); /* before a commit */
void engine_hooks_doubt(struct engine *engine); /* a commit has failed */
void engine_hooks_free(struct engine *engine);
void engine_hooks_count(const struct engine *engine, struct engine_figures *figures);
const struct engine_hook_view *engine_hooks_look(const struct engine *engine, struct arena *arena, uint32_t *count);

/* prefer.c */
void engine_prefer_read(struct str value, struct preference *preference);
void engine_ticket_started(struct engine *engine, const struct run *run);
/* Its answer is durable: goes out now, or when all have it. */
void engine_ticket_answered(struct ticket *ticket);
bool engine_ticket_waits(const struct ticket *ticket);
void engine_early_answered(struct engine *engine, const struct replica_answer *answer);
/* As replica_look_op(), and of those that were answered early. */
int engine_look_op(struct engine *engine, struct arena *arena, struct replica_op_id op, struct replica_op_view *view);

/* wait.c */
/* False: too many wait already. */
bool engine_wait_start(struct engine *engine, struct wait *wait, uint64_t timeout_ms);
void engine_wait_end(struct wait *wait);
void engine_waits_mark(struct engine *engine, const struct replica_id *id); /* something of it has changed */
void engine_waits_review(struct engine *engine);

/* changes.c */
/* What is in the store of them. Before the first, and after the store was given up. */
int engine_changes_load(struct engine *engine, struct err *err);
void engine_changes_free(struct engine *engine);
/* Before a commit: those that are told of after it. */
void engine_changes_store(struct engine *engine);
void engine_changes_add(struct engine *engine, const struct replica_event *event, uint64_t wall_ms);

/* run.c */
const struct engine_service *engine_service_find(const struct setup *setup, struct str name);
struct run *engine_run_copy(struct engine *engine, const struct replica_task *task);
void engine_run_start(struct run *run);
void engine_run_go(struct run *run); /* it may run, and there is something to do */
void engine_run_name(struct run *run);
void engine_run_free(struct run *run);
/* What became of it; the run is gone. */
void engine_run_tell(struct run *run, const struct replica_outcome *outcome);
__attribute__((format(printf, 3, 4))) void engine_run_fail(struct run *run, enum replica_outcome_kind kind,
                                                           const char *format, ...);

void engine_run_ask(struct run *run, const struct run_question *question);

/* division.c: what is divisible. */
/* How a user's operation is divided: a field for its head, where it is. `body` is as it travels. False: it was refused; or the whole
 * is read first, and the ticket begins again when that is known. */
bool engine_division_choose(struct ticket *ticket, struct str body, bool conditional, struct buf *fields);
/* Where in its body what is divided would be, if it sets something: at most LIMIT_CROSS_FIELDS. */
uint32_t engine_division_pointers(struct arena *arena, const struct glue_match *match, struct str *pointers);
/* redivide.c: the whole of what is divided is read, and put into the body; then it begins again, or is refused. */
void engine_division_read(struct ticket *ticket);
/* The body becomes the part of this site, where the operation is divided. */
int engine_division_part(struct run *run, struct str *body, struct err *err);
/* It ran here, or not: what it says of later divisions. */
void engine_division_ran(const struct run *run, const struct replica_outcome *outcome);
/* The answer to a user gets what is known of the whole, and says of which site the rest is. */
void engine_division_restore(struct ticket *ticket, struct str whole);
/* Is its create run again, as a PUT, where what was run in another order has to be undone? No member has a state to give to others. */
bool engine_division_replays(const struct ticket *ticket);
/* Of what is divided, what each site has its own of is made that of the first that could be read: all else is compared. Returns how many
 * fields that are, and where. */
uint32_t engine_division_level(struct arena *arena, const struct glue_match *match, struct engine_reading *readings,
                               uint32_t count, const struct str **pointers);
/* How it is divided now, as far as this site has come. False: it is not known here. */
bool engine_division_get(struct engine *engine, struct replica_id id, struct cross_division *division);
/* It is not here any more. */
void engine_division_forget(struct engine *engine, struct replica_id id);

/* Of the part of this site, as it is read to be set again (src/replica/checkpoint.c): how it is divided now. */
void engine_division_put_own(struct engine *engine, struct replica_id id, struct buf *fields);
/* A field of the head of an operation. */
void engine_division_put_field(struct buf *fields, const struct cross_division *division);
/* The same, of those that are members of it and stay. */
bool engine_division_now(struct engine *engine, const struct replica_view *view, struct cross_division *division);

/* redivide.c: is there a request that sets the parts of it? */
bool engine_redivide_can(struct engine *engine, const struct replica_view *view);
/* Is the copy here as it was read? */
bool engine_is_as_read(struct engine *engine, struct arena *arena, const struct engine_verified *verified);

/* parts.c: sites of what is divided come and go. */
/* Of a copy for a new member: nothing of what is divided or summed, if it is a part; and, among the fields of its head, the division. */
int engine_parts_none(struct run *run, struct buf *fields, struct buf *body, struct err *err);
/* Has a site come that has no share yet? Then it is divided anew, by its prime. True: look again. */
bool engine_parts_follow(struct engine *engine, const struct replica_view *view);
void engine_parts_note_all(struct engine *engine, struct buf *ids);

/* orphans.c */
/* Something is gone here: if it was a container, what is in it is to be followed. */
void engine_orphans_note(struct engine *engine, struct replica_id container);
void engine_orphans_note_all(struct engine *engine, struct buf *ids);
/* Of what is in no container that is here, at its prime. True: something is under way, or has to be tried again. */
bool engine_orphans_follow(struct engine *engine, struct arena *arena, const struct replica_view *child);
/* May a site come to it, or go? Told in the engine's thread, once; NULL: it may, now. Or dropped(), if the engine ends. */
struct engine_parting {
	struct replica_id replicant;
	site_id site; /* who goes: by then it has nothing of it; 0: somebody comes */
	void (*done)(void *context, const struct err *refusal);
	void (*dropped)(void *context);
	void *context;
};
void engine_parts_ask(struct engine *engine, const struct engine_parting *parting);
void engine_parts_drop(struct engine *engine);

/* submit_body.c: is the body where it has to be? False: it will be, and the ticket goes on then; or it was refused. */
bool engine_body_ready(struct ticket *ticket, struct str body);
struct str engine_body_blob(const struct ticket *ticket);
/* The ticket is at its end. */
void engine_body_leave(struct ticket *ticket);

/* spool.c */
/* Without a file: only the hash is wanted. */
struct engine_spool *engine_spool_hash_only(struct engine *engine, const struct engine_spool_options *options);
/* A file that may be there already: its bytes count, and it stays when the spool is dropped. */
struct engine_spool *engine_spool_resume(struct engine *engine, const char *name,
                                         const struct engine_spool_options *options);
/* Once it is DONE: */
struct str engine_spool_hash(const struct engine_spool *spool);
/* the file gets the name of its content. The spool is still to be dropped. */
int engine_spool_keep(struct engine_spool *spool, struct err *err);
/* Drops it, and its file in any case. It is not being written. */
void engine_spool_discard(struct engine_spool *spool);

/* blobs.c */
int engine_blobs_open(struct engine *engine, struct err *err);
/* Removes what no operation needs. Nothing comes or goes meanwhile. */
void engine_blobs_sweep(struct engine *engine);
int engine_blobs_sync(struct engine *engine, struct err *err);
void engine_blob_name(struct str blob, char name[ENGINE_BLOB_NAME_BYTES]);
bool engine_blob_parse(struct str text, uint8_t blob[ENGINE_BLOB_BYTES]);
/* -1: it is not here. */
int engine_blob_open(const struct engine *engine, struct str blob, uint64_t *bytes);
int engine_blobs_read(const struct engine *engine, struct str blob, struct buf *out, struct err *err);
/* Whoever needed it has done with it: it goes, unless somebody else needs it. */
void engine_blob_release(struct engine *engine, struct str blob);

/* fetch.c */
void engine_fetch(struct engine *engine, struct str blob, uint64_t bytes, site_id from);
void engine_fetch_end(struct engine *engine, struct str blob);
/* Sites have come within reach. */
void engine_fetches_hurry(struct engine *engine);
void engine_fetches_free(struct engine *engine);

/* admit.c: may it run here? False: it was told why not, and is gone. */
bool engine_admit(struct run *run);
void engine_admit_leave(struct run *run);

/* find.c: what is there, rather than what is to be done. */
/* The first id and natural name that a body has. */
struct engine_seen {
	struct buf id;
	bool id_quoted;
	struct buf name;
};
void engine_seen_take(const struct glue_places *places, struct str body, struct engine_seen *seen);
void engine_seen_free(struct engine_seen *seen);
void engine_inquire(struct run *run);
void engine_read_state(struct run *run);
/* The first that does that to an item, not to a part of it; NULL. */
const struct glue_operation *engine_operation_of(const struct glue_type *type, enum glue_effect effect);
void engine_read_copy(struct run *run); /* newcomer.c */
void engine_leave(struct run *run);
/* The path of the item of that id. */
void engine_item_put(const struct run *run, struct str id, struct buf *out);

/* state.c: the item was read, its files follow; then it is told of. The body is taken over. */
void engine_state_give(struct run *run, const struct glue_operation *replace, struct buf *body);
/* The same as a copy, which is made by a request with this head, and the references of the run's. Both are taken over. */
void engine_state_copy(struct run *run, struct str item, struct buf *head, struct buf *body);
/* True: it may be that nothing is to be set; when that is known it is told of, or engine_run_go(). */
bool engine_state_look(struct run *run);
void engine_run_facets_end(struct run *run);

/* talk.c */
/* It goes with the next engine_say_all(). */
void engine_say(struct engine *engine, site_id to, struct str message);
void engine_say_names(struct engine *engine, site_id to, struct str message);
void engine_say_all(struct engine *engine);
void engine_talks_free(struct engine *engine);
bool engine_reachable(const struct engine *engine, site_id site);
/* NULL: it is not known. */
const struct site_place *engine_find_place(const struct engine *engine, site_id site);
/* Is it the site that is meant? Any site of the mesh would pass the handshake. */
int engine_check_site(site_id site, struct str certificate_der, struct err *err);

#endif
