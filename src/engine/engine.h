/* Engine: replicated resources as they really run (DESIGN 7). It is the shell of src/replica: one thread with a loop that
 * keeps its rows (src/store), runs operations at the services of this site, and talks to the agents of other members.
 *
 * One write of a user, when all goes well:
 *   1. a loop of the data plane has read the request and hands it over: engine_submit()
 *   2. the engine reads it with the description, puts meta-ids where local ones stand, and gives it to src/replica
 *   3. what was put is committed, together with whatever else came meanwhile (group commit); then what was asked for is done
 *   4. the operation runs at the local service, with local ids; its outcome goes to src/replica, and is committed
 *   5. the service's answer, with meta-ids, goes back to the loop; the operation goes to the other members
 *
 * What goes wrong:
 *   the store refuses a commit (disk full, broken)   nothing that waited for it happens; users are told; src/replica starts anew
 *                                                    from what is on disk. Requests that touch no replica go on
 *   the service cannot be reached, or answers 4xx    its answer is the user's; nothing of the operation stays
 *   the agent is killed between 3 and 5              what had been sent is found out at the next start (in doubt)
 *
 * Data-plane loops read ids from the store themselves (engine_find()), and from memory what it does not have yet (overlay.c): they
 * never wait for this thread.
 */
#ifndef ENGINE_ENGINE_H
#define ENGINE_ENGINE_H

#include "cross/cross.h"
#include "engine/hooks.h"
#include "glue/glue.h"
#include "http/http.h"
#include "replica/replica.h"
#include "site/site.h"

#include "base/log.h"

struct engine;

struct engine_options {
	const char *folder; /* of the store */
	site_id self;
	const struct log *log;
	struct hash_key hash_key;
	struct str key;      /* for what is kept secret on disk: trust_box_key_make() */
	uint64_t bytes_most; /* of the store; 0: its default */
};

/* Opens the store and starts the thread. */
int engine_open(struct engine **out, const struct engine_options *options, struct err *err);
/* Ends the thread, once those loops do not run any more that it answers to. What is pending is on disk. Whoever waits is told, in
 * the thread of the caller. What was spooled can still be dropped, and nothing else be asked. */
void engine_stop(struct engine *engine);
/* The rest of it. */
void engine_close(struct engine *engine);

/* ---- What it works with. Any thread; takes effect soon, in the order of the calls. -------------------------------- */

struct engine_service {
	struct str name;
	const struct http_address *instances;
	uint32_t instances_count;
	struct http_tls *tls;     /* NULL: in the clear */
	const char *const *names; /* that each instance has to prove */
	struct str credential;    /* this agent's own: lines of headers; "": none */
};

/* What operations that other members deliver may do here: the shell's policy. */
struct engine_asker {
	struct str site; /* by name; "" if that is not known any more */
	const struct site_tag *tags;
	uint32_t tags_count;
	struct str service;
};

enum engine_admission {
	ENGINE_ADMITTED,
	ENGINE_LATER,   /* too much, too fast */
	ENGINE_REFUSED, /* not as long as the policy is what it is */
};

struct engine_entry {
	void *place;      /* ADMITTED: to be left */
	uint64_t wait_us; /* LATER: until then there is no point in asking again; 0: nobody knows */
	struct buf why;   /* otherwise: the rule, and what it allows. The caller frees it */
};

struct engine_gate {
	void *context;
	/* In the engine's thread. */
	enum engine_admission (*enter)(void *context, const struct engine_asker *asker, uint64_t now_us,
	                               struct engine_entry *entry);
	void (*leave)(void *context, void *place);
};

/* A request of an operation for a service here, with the scope for what that calls: the shell's business. */
struct engine_carried {
	struct str service;
	struct str scope;
	struct str fields; /* "Name: value\r\n" each */
	uint64_t now_ms;
};

struct engine_carrier {
	void *context;
	/* In the engine's thread: writes the fields with whatever makes the scope follow. By `mark` a call of the service for which alone it
	 * follows is known later; it may stay empty. */
	void (*carry)(void *context, const struct engine_carried *carried, struct buf *out, struct buf *mark);
	/* Was such a call, of that service, one that could not be carried out? Then why. */
	bool (*find_fault)(void *context, struct str mark, struct str service, struct buf *why);
};

/* Everything here lives until release(owner), which runs in the engine's thread, or in the caller's of engine_close(). */
struct engine_setup {
	const struct glue *glue;
	const struct engine_service *services;
	uint32_t services_count;
	const struct engine_hook *hooks; /* their names differ */
	uint32_t hooks_count;
	uint64_t answer_ms;            /* for a service to answer; 0: the default */
	struct str api;                /* HOST:PORT where operations can be followed; "": not known */
	struct engine_gate gate;       /* enter NULL: everything is allowed */
	struct engine_carrier carrier; /* carry NULL: no scope follows */
	void *owner;
	void (*release)(void *owner);
};

void engine_configure(struct engine *engine, const struct engine_setup *setup);

/* Who is there, and how to talk to them. Takes over both references; `client` may be NULL. */
void engine_set_sites(struct engine *engine, struct site_snapshot *sites, struct http_tls *client);

/* What another agent sent; it is known who it is. */
void engine_receive(struct engine *engine, site_id from, struct str message);
void engine_receive_names(struct engine *engine, site_id from, struct str message); /* of what is in containers */

/* ---- Ids, for the data plane --------------------------------------------------------------------------------------- */

struct engine_found {
	struct replica_id id;
	bool by_meta_id; /* it was named by its meta-id; otherwise by its local one */
	bool deleted;    /* it is gone, */
	bool left;       /* from this site at least: who is no member knows nothing of the others */
	char local_id[LIMIT_REPLICA_NAME_BYTES];
	size_t local_id_bytes; /* 0: it is not here yet */
	bool local_id_quoted;
	enum replica_span span;
	site_id prime;                          /* of what is not ALIKE */
	bool witness;                           /* it lies elsewhere: */
	site_id holders[LIMIT_REPLICA_HOLDERS]; /* at these, the prime first */
	uint32_t holders_count;
};

/* How an item is called here. */
struct engine_name {
	struct str service;
	struct str type;       /* as glue_type_put() has it */
	struct str collection; /* as engine_collection_put() has it where ids are unique only there; otherwise "" */
	struct str id;         /* a local one, or a meta-id */
};

/* Any thread, at once. False: this id is no replica's, or the store cannot be read. */
bool engine_find(struct engine *engine, const struct engine_name *name, struct engine_found *found);

/* At which sites a replicant is or will be; returns how many, 0: it is not known. Any thread, at once. */
uint32_t engine_members(struct engine *engine, struct replica_id id, site_id members[LIMIT_REPLICA_MEMBERS]);

/* The container that a request names in its path or query, by the kind of the reference, if it is one of several sites. Any thread, at once. */
bool engine_container_find(struct engine *engine, const struct glue_match *match, const struct glue_request *asked,
                           struct engine_found *found);

/* The same in its body, where the description has such a reference: may it have one, and does it? */
bool engine_may_name_container(const struct glue_operation *operation);
bool engine_container_in_body(struct engine *engine, const struct glue_match *match, struct str body,
                              struct engine_found *found);

/* The collection of a match in a form that is the same at all sites: with meta-ids for the replicas it is in. Any thread. */
void engine_collection_put(struct engine *engine, const struct glue_match *match, struct buf *out);

/* Are there any replicants here? Where there are none, nothing needs to be looked at. */
bool engine_has_any(const struct engine *engine);

/* Has any resource of this type a replica here? Otherwise answers need not be looked through. Any thread, at once. */
bool engine_has_type(struct engine *engine, struct str service, struct str type);

/* Of a type, the other sites that have something of what this one knows as its own: they hold what it is a witness of, or have other parts of
 * what is divided. Any thread, at once; where there is nothing of the kind it costs next to nothing. */
struct engine_spread {
	site_id sites[LIMIT_ENGINE_SPREAD]; /* more are not told */
	uint32_t count;
	bool divided; /* something of the type is */
};
bool engine_spread(struct engine *engine, struct str service, struct str type, struct engine_spread *spread);

/* Of which operations is the part of this site that is read here? `since`: engine_standing_now() of before the service was asked. Any thread, at
 * once. */
uint64_t engine_standing_now(struct engine *engine);
struct cross_standing engine_standing(struct engine *engine, struct replica_id id, uint64_t since);

/* Meta-ids in a text become the local ids of this site. */
struct glue_replacer engine_to_local(struct engine *engine);

/* Local ids become meta-ids, but for those that their users chose. Of the item itself `own` has all but the id. `glue` says what links
 * lead to; without it only the item's own id is found in them. */
struct engine_to_meta {
	struct engine *engine;
	struct engine_name own;
	const struct glue *glue;
};
struct glue_replacer engine_to_meta(struct engine_to_meta *context);

/* Waits until this site has seen what a session had (`Cheops-Session`), or the time is over. Any thread. */
struct engine_await {
	struct str session;
	uint64_t limit_ms;
	struct http_loop *loop;
	void (*done)(void *context, bool met); /* in that loop, once */
	void *context;
};

void engine_await(struct engine *engine, const struct engine_await *await);
/* The value of a field in "Name: value\r\n" lines; "" if it is not there. */
struct str engine_field(struct str fields, struct str name);

/* ---- Bodies that are too long to be held --------------------------------------------------------------------------- */

/* Bytes on their way to a file, which another thread writes (spool.c). All calls are for the owner's thread. */
struct engine_spool;

struct engine_spool_options {
	struct http_loop *loop;       /* of the owner */
	void (*moved)(void *context); /* in that loop: the disk has done something, look at the state */
	void *context;
};

enum engine_spool_state {
	ENGINE_SPOOL_OPEN,     /* it takes more; or it was ended, and is not done yet */
	ENGINE_SPOOL_FULL,     /* not now */
	ENGINE_SPOOL_RESUMING, /* what was there is read */
	ENGINE_SPOOL_DONE,     /* durable: it goes with engine_submit() */
	ENGINE_SPOOL_FAILED,   /* ERR_LIMIT: the disk is full */
};

struct engine_spool *engine_spool_new(struct engine *engine, const struct engine_spool_options *options);
/* Copies. False: it is full now; moved() will tell. */
bool engine_spool_put(struct engine_spool *spool, struct str bytes);
void engine_spool_end(struct engine_spool *spool);
enum engine_spool_state engine_spool_state(struct engine_spool *spool, struct err *err);
uint64_t engine_spool_bytes(const struct engine_spool *spool);
/* Whatever its state; no moved() after it, and no file. NULL is fine. */
void engine_spool_drop(struct engine_spool *spool);

/* Any thread: may there be room for so many bytes? */
bool engine_has_room(const struct engine *engine, uint64_t bytes);

/* Any thread: the file of a blob, named in hexadecimal, for another site; the caller closes it. -1: there is none, or that
 * site is no member of a replicant that needs it. */
int engine_blob_serve(struct engine *engine, struct str name, site_id to, uint64_t *bytes);

/* ---- Requests that change replicas ---------------------------------------------------------------------------------- */

struct engine_answer {
	int code;        /* 0; or why there is none: then `problem` and `detail` say what the user is told */
	unsigned status; /* to the user */
	const char *problem;
	struct str detail;
	struct str fields; /* complete lines */
	struct str body;   /* where there is none: further members of the problem, `,"name":value` */
	site_id elsewhere; /* not 0: nothing was done, since this is that site's to do; it can be sent on as it is */
};

struct engine_request {
	struct str service;
	struct str method;
	struct str target;
	struct str fields; /* "Name: value\r\n" each: what is to travel, and what says who asks */
	struct str content_type;
	struct str scope; /* where the services that it calls are, at each member; "": at that member */
	struct str body;
	struct engine_spool *spool; /* DONE: the body is there; the engine takes it over. NULL: `body` is all of it */
	const site_id *members;     /* of a replicant that is to be made; none: an operation on `replicant` */
	uint32_t members_count;
	enum replica_consistency consistency;
	enum replica_span span; /* of this one, too; and, if one is to be made that is not ALIKE, */
	site_id prime;          /* one of the members, */
	const site_id *holders; /* and, if it is PLACED, those of them that hold it */
	uint32_t holders_count;
	struct replica_id replicant;
	bool in_container; /* what is made is a child of: */
	struct replica_id container;
	const struct cross_division
		*division;  /* of what is divided: instead of what the request says; NULL: as that does */
	bool settles;   /* of a delete: that there is nothing any more is as good */
	struct str key; /* Idempotency-Key; "" without one */
	/* In the loop of the request, once; slices live until it returns. */
	struct http_loop *loop;
	void (*done)(void *context, const struct engine_answer *answer);
	void *context;
};

/* Everything is copied, except for the spool. Any thread; the owner's of the spool. */
void engine_submit(struct engine *engine, const struct engine_request *request);

/* What is divided is divided anew: an operation sets the whole that its members have now, with this division. All of them are read
 * first: if one is away, or has not settled what the others have, nothing is done (503). Any thread; the answer is as that to a PATCH. */
struct engine_redivision {
	struct replica_id replicant;
	const struct cross_division *division;
	struct http_loop *loop;
	void (*done)(void *context, const struct engine_answer *answer);
	void *context;
};

void engine_redivide(struct engine *engine, const struct engine_redivision *redivision);

#endif
