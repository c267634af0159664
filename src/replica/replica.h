/* Replica: one resource at several sites, nothing lost (DESIGN 7, `eventual` and `weak`).
 *
 * A struct replica is the part of one agent that has the replicants of which its site is a member. It is fed what users ask,
 * what the local service answered, what other members say, and the time; and asks its host to keep rows, to run requests at
 * the local service, to send, and to answer.
 *
 * Held back. A host does nothing of what it is asked until all rows put so far are durable: it lets many events come, commits
 * once, and then performs what was asked meanwhile (group commit). So there is no "when it is durable" in this room: an
 * intent put and an execution asked for in one event mean that the intent is on disk before the service hears of it. If the
 * commit fails, the host drops what was asked, and makes a new struct replica from what is on disk.
 *
 * One write, at a member:
 *   replica_submit()     the operation gets its number, its stamp and what it had seen; put as an intent; execute()
 *   replica_executed()   2xx: it is issued, put, answered, and goes to the other members. 4xx: it never leaves, no trace stays
 *   at each other member: receive, put, acknowledge; when all that it had seen is there, order_next() says when it runs
 *   each member says up to where it is settled; what everybody has settled is forgotten (pruned)
 *
 * One message, SYNC, does all the talking between two members on one replicant: "this is what I have, this is up to where I am
 * settled, these are my local id and what was rejected here, and here are operations which you lack". It may be lost, doubled,
 * late: each is complete in itself and merges. It is repeated, with backoff, until the other one has said that it has as much.
 * The issuer of an operation sends it at once; another member that has it relays it after a while where it was not
 * acknowledged, so a member that only one other one can reach still gets it. docs/protocol/replica.md has it to the byte.
 *
 * Lanes. Operations on one replicant run one after another at a site, those of its own users first: they do not wait for what
 * comes from elsewhere, and are concurrent with it. Different replicants run in parallel, up to a limit.
 *
 * Stuck. Where order_next() finds no way back by re-running, a member that is settled for all it knows (or, if there is none,
 * the nearest one) reads its own copy through the API and issues that state as an operation, a `replace` that had seen
 * everything. It is ordered like any other; so nobody has to agree on who repairs. The operation is shown as `repaired`.
 *
 * Names. Two that were made apart under one natural name become one: the earlier create's. The other meta-id stays as an alias, and
 * what was done by it is done to that one (merge.c).
 *
 * In doubt. At a restart an execution that was asked for and has no outcome is found out: run again where that is safe
 * (repeatable), else asked of the service (inquire: by id or natural name), else marked for a person. It does not hold up others.
 * A user's operation in doubt is withheld: nobody else has heard of it. Its id has a number of 1 << 31 and more; if it turns out
 * that it happened, it is issued under a number of its own.
 *
 * Memory: replicants that have nothing pending are rows on disk, and nothing else.
 */
#ifndef REPLICA_REPLICA_H
#define REPLICA_REPLICA_H

#include "replica/order.h"

#include "site/site.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/hlc.h"
#include "base/limits.h"
#include "base/str.h"

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* The meta-id: a UUID of version 7 (RFC 9562), time-ordered; shown as such. */
struct replica_id {
	uint8_t bytes[16];
};

/* An operation: the how-manieth of which member on which replicant. Shown as `META-ID.SITE.NUMBER`. */
struct replica_op_id {
	struct replica_id replicant;
	site_id site;
	uint32_t number;
};

struct replica_now {
	uint64_t us;
	uint64_t wall_ms;
};

enum replica_consistency { REPLICA_EVENTUAL, REPLICA_WEAK };

/* How it lies over its members (DESIGN 8). */
enum replica_span {
	REPLICA_ALIKE,     /* each has a copy */
	REPLICA_CONTAINER, /* the same; and what is made in it is one set, wherever it is made */
	REPLICA_DIVIDED,   /* each has a part */
	REPLICA_PLACED, /* some hold it; the others are witnesses: they know of it, and send on what concerns it (witness.c) */
	REPLICA_SPANS,
};

/* What an operation does, from the description; travels with the operation. */
struct replica_class {
	struct str name; /* of the operation: "replace", "reboot" */
	uint8_t effect;  /* enum order_effect */
	uint16_t facet;  /* number of the facet in the type: 0 the item */
	uint8_t class;   /* see order.h */
	bool repeatable; /* running it twice is running it once */
};

/* The request as it travels: ids in it are meta-ids. To this room it is bytes; the host writes and reads it. */
struct replica_request {
	struct str head; /* method, target, headers that count: the host's own encoding */
	struct str body; /* small ones; otherwise the blob has it */
	struct str blob; /* SHA-256 of a spooled body, 32 bytes; or "" */
	uint64_t blob_bytes;
	struct str secret; /* sealed credentials, or "": shown nowhere */
	/* Replicants that it refers to: it waits until they are here. */
	const struct replica_id *references;
	uint32_t references_count;
};

/* ---- What the host does ------------------------------------------------------------------------------------------ */

enum replica_table {
	REPLICA_REPLICANTS, /* meta-id: members, local ids, base, rules */
	REPLICA_OPERATIONS, /* meta-id, site, number */
	REPLICA_LANES,      /* meta-id: X, what is running */
	REPLICA_OUTBOX,     /* site, meta-id: there is something to tell it */
	REPLICA_LOCALS,     /* service, type, collection if it counts, local id: meta-id */
	REPLICA_NAMES,      /* service, type, collection, name: meta-id */
	REPLICA_KEYS,       /* Idempotency-Key: operation */
	REPLICA_BLOBS,      /* SHA-256: which operations need it */
	REPLICA_META,       /* the clock, the version of the rows */
	REPLICA_TABLES,
};

/* A request for the local service. Answered by replica_executed() with the same task number, once, at any time; numbers are
 * not used again, nor after a restart. */
enum replica_task_kind {
	REPLICA_RUN,                   /* run the operation */
	REPLICA_RUN_CREATE_AS_REPLACE, /* the create, as a PUT on what is there */
	REPLICA_INQUIRE,               /* did it happen? by local id or natural name */
	REPLICA_READ_STATE,            /* the item as it is, to be issued as a replace */
	REPLICA_RUN_ANEW,  /* the state of another member, as a create: the item is gone from the service here */
	REPLICA_READ_COPY, /* the item as it is, as a create that makes it at a new member */
	REPLICA_LEAVE,     /* delete the item: this site is no member any more */
	REPLICA_INQUIRE_ANEW, /* did RUN_ANEW make it? by natural name, or by the id if users choose it. Accepted: it is found, and its id */
};

struct replica_task {
	uint64_t number;
	enum replica_task_kind kind;
	struct replica_op_id op;
	const struct replica_class *class;
	const struct replica_request *request;
	struct str service;
	struct str type;
	struct str collection;
	struct str local_id;  /* "" while there is none here */
	bool local_id_quoted; /* as it stands in JSON: a string, or a number */
	bool first;           /* for the user who asked it here: his credentials, his answer */
	uint64_t ticket;      /* of that user's submission; 0: nobody waits */
};

enum replica_outcome_kind {
	REPLICA_ACCEPTED, /* 2xx; INQUIRE: it did happen; READ_STATE: here it is */
	REPLICA_REFUSED,  /* 4xx: it has no effect, and would have none again; INQUIRE: it did not happen. A delete that is
	                     * delivered and gets 404 or 410 is done: there is nothing any more */
	REPLICA_CREDENTIAL, /* refused for the credential alone */
	REPLICA_FAILED,     /* certainly without effect, and may work later: no connection, 503 before anything was sent */
	REPLICA_UNKNOWN,    /* sent, and no answer, or one that tells nothing: it may have had an effect */
};

/* A facet of the state of an item: a `replace` that sets it. */
struct replica_part {
	struct replica_request request;
	struct replica_class class;
};

struct replica_outcome {
	enum replica_outcome_kind kind;
	int status;          /* of the service; 0: none */
	struct str local_id; /* of what was made or found; "" if nothing was */
	bool local_id_quoted;
	struct str answer; /* what is kept of it, for people: bounded by LIMIT_REPLICA_ANSWER_BYTES */
	uint64_t again_us; /* FAILED: when to try again; 0: in a while, longer each time */
	/* Of a user's operation that was accepted: what other members are to run, since only the service here knew all of it (the
	 * name of what was made). NULL: the same. */
	const struct replica_request *carried;
	struct replica_request state; /* READ_STATE: a `replace` that sets it; READ_COPY: a `create` that makes it */
	struct replica_class state_class;
	const struct replica_part
		*parts; /* and its files and other facets: they are issued right behind it, in this order */
	uint32_t parts_count;
};

/* How one member stands with an operation. */
enum replica_member_state {
	REPLICA_PENDING, /* not yet heard that it is done there */
	REPLICA_APPLIED,
	REPLICA_SUPERSEDED, /* it lost against a concurrent one, or a later one made it obsolete */
	REPLICA_REJECTED,
	REPLICA_REJECTED_CREDENTIAL,
	REPLICA_IN_DOUBT,
	REPLICA_MEMBER_STATES,
};

/* The answer to a user's request. */
struct replica_answer {
	uint64_t ticket;
	int code; /* 0; or why it could not be taken: ERR_NOT_FOUND, ERR_CONFLICT, ERR_LIMIT... with `text` */
	struct str text;
	struct replica_op_id op;
	struct replica_outcome outcome; /* of the execution here */
	bool repeated;                  /* an Idempotency-Key that was met before: `op` is that one */
	/* Its intent, which is durable, is enough: if all that was put since is lost, it is issued at the next start, under the same
	 * number, and run again. So this answer need not wait (docs/decisions/0016). */
	bool kept;
};

enum replica_event_kind {
	REPLICA_EVENT_OPERATION, /* an operation changed its state, here or at a member */
	REPLICA_EVENT_REPLICANT, /* a replicant came, changed its members or local ids, or is gone */
	REPLICA_EVENT_REPAIRED,
	REPLICA_EVENT_CONFLICT, /* its create was rejected here: another replicant has its natural name */
	REPLICA_EVENT_MERGED,   /* two were made apart under one natural name: it became an alias of `into` */
	/* Of the host alone: */
	REPLICA_EVENT_AT_RISK, /* what it relies on (`into`, if that is a replicant) is out of reach at `member`, or (0) gone */
	REPLICA_EVENT_SAFE,      /* no more */
	REPLICA_EVENT_NAME_LOST, /* a child's name is another's, `into`, at `member` (cross/names.h) */
	REPLICA_EVENT_KINDS,
};

struct replica_event {
	enum replica_event_kind kind;
	struct replica_op_id op; /* number 0: of the replicant */
	site_id member;          /* whose state it is; 0: all */
	enum replica_member_state state;
	struct replica_id into; /* MERGED, AT_RISK, NAME_LOST */
};

struct replica_host {
	void *context;
	/* Rows. get: 0 and the row appended, or ERR_NOT_FOUND; any other code is a broken store, upon which the room does nothing
	 * more. What was put is seen by get and scan at once. scan calls back in the order of the keys until `each` returns false; no row changes meanwhile. */
	int (*get)(void *context, enum replica_table table, struct str key, struct buf *row);
	void (*put)(void *context, enum replica_table table, struct str key, struct str row);
	void (*remove)(void *context, enum replica_table table, struct str key);
	int (*scan)(void *context, enum replica_table table, struct str prefix, struct str from,
	            bool (*each)(void *each_context, struct str key, struct str row), void *each_context);
	/* Held back until what was put is durable (but for answers that are `kept`). Slices live until the call returns. None of these may call back in. */
	void (*send)(void *context, site_id to, struct str message); /* at most LIMIT_REPLICA_MESSAGE_BYTES */
	void (*execute)(void *context, const struct replica_task *task);
	void (*answer)(void *context, const struct replica_answer *answer);
	void (*fetch)(void *context, struct str blob, uint64_t bytes, site_id from); /* see replica_fetched() */
	void (*drop)(void *context, struct str blob);                                /* nobody needs it any more */
	void (*event)(void *context, const struct replica_event *event);             /* may be NULL */
	/* At once. */
	bool (*reachable)(void *context, site_id site); /* is it worth to try now? A guess; never a condition */
	uint64_t (*random)(void *context);
};

struct replica_options {
	site_id self;
	struct hash_key hash_key;
	uint64_t retry_least_us; /* between tries to tell a member */
	uint64_t retry_most_us;
	uint64_t relay_us;        /* after which what others issued is relayed */
	uint64_t repair_alone_us; /* how long who is stuck waits for a better copy at a member that cannot be reached */
	uint64_t weak_lend_us;    /* how long a long body of what is `weak` is kept for others to fetch */
	uint64_t tombstone_ms;    /* how long the id of what is gone everywhere is remembered */
	uint64_t message_age_ms;  /* an older message is dropped: it may speak of what is gone */
	uint64_t clock_ahead_ms;  /* a stamp further ahead is refused */
	uint32_t running_most;    /* executions at a time */
	uint32_t
		kept_most; /* operations on what is divided that are run again, where that has to be; more are behind a checkpoint */
	uint32_t loaded_most;  /* replicants in memory that nothing keeps there */
	bool holds_containers; /* what is CONTAINER leaves this site only when replica_let_go() says so */
};

struct replica_options replica_options_default(void);

/* ---- The state machine ------------------------------------------------------------------------------------------- */

struct replica;

/* Starts from the rows: what was pending goes on, what was running is in doubt and is found out. */
int replica_new(struct replica **out, const struct replica_options *options, const struct replica_host *host,
                struct replica_now now, struct err *err);
void replica_free(struct replica *replica);

struct replica_create {
	struct str service;
	struct str type;
	struct str collection;  /* a name is unique within it; ids in it are meta-ids */
	struct str name;        /* natural name; "": none */
	const site_id *members; /* this site among them; 2 to LIMIT_REPLICA_MEMBERS */
	uint32_t members_count;
	enum replica_consistency consistency;
	struct order_rules rules;
	bool ids_in_collection; /* so are local ids; otherwise they are unique among all of the type */
	bool ids_chosen;        /* by users: the same everywhere */
	enum replica_span span;
	site_id prime;          /* of what is not ALIKE: one of the members, and of the holders */
	const site_id *holders; /* of what is PLACED: members, this site among them */
	uint32_t holders_count;
};

struct replica_submission {
	uint64_t ticket;                     /* the host's, not 0; comes back with the answer */
	const struct replica_create *create; /* NULL: an operation on `replicant` */
	struct replica_id replicant;         /* create: chosen by the host (it may stand in the body already) */
	struct replica_class class;
	struct replica_request request;
	/* The host runs it here with preconditions that are not in the request. So it is not run again to find out what became of
	 * it: it may have been refused for them. */
	bool conditional;
	struct str key; /* Idempotency-Key with whom it is from; "" without one */
};

/* What a user asks. Is answered once, by host->answer(). */
void replica_submit(struct replica *replica, const struct replica_submission *submission, struct replica_now now);

/* An item that is at the service of this site, and that nobody made through Cheops, becomes a replicant with this site as its only member
 * (existing.c). */
struct replica_adoption {
	const struct replica_create *create; /* its members are not looked at */
	struct replica_id replicant;         /* chosen by the host */
	struct str local_id;
	bool local_id_quoted;
};

/* 0: `id` is its replicant, the one that there was if it is one already; the host says so once that is durable. ERR_CONFLICT, ERR_LIMIT,
 * ERR_INVALID, ERR_NOT_FOUND (it was deleted). */
int replica_adopt(struct replica *replica, const struct replica_adoption *adoption, struct replica_now now,
                  struct replica_id *id, struct err *err);

/* A person wants all members to have what this one has: its copy is read, and issued as a `replace` that had seen everything.
 * Is answered as a submission is. */
void replica_give_state(struct replica *replica, struct replica_id id, uint64_t ticket, struct replica_now now);

void replica_executed(struct replica *replica, uint64_t task, const struct replica_outcome *outcome,
                      struct replica_now now);

/* What another member says. What makes no sense is counted and dropped; a sender that is no member of a replicant is not
 * listened to on it, and learns nothing of it. */
void replica_receive(struct replica *replica, site_id from, struct str message, struct replica_now now);

/* Messages to one site, put together on the way: the one that `out` has from `at` on gets the sections of a later one, and its clock. Whoever
 * gets it hears what it would have heard of both, at once. False: together they are too long, or of two versions, and nothing was done. */
bool replica_join(struct buf *out, size_t at, struct str later);

/* Was an operation with this Idempotency-Key carried out? Then it is answered, and not run again. */
bool replica_knows_key(struct replica *replica, struct str key);

/* A blob is here as a whole, checked. */
void replica_fetched(struct replica *replica, struct str blob, struct replica_now now);

/* Does any operation need it, one that was submitted and still waits for its turn among them? What a host was asked to drop
 * may have been submitted again meanwhile. A store that cannot be read needs everything. */
bool replica_needs_blob(struct replica *replica, struct str blob);

/* The site can be reached again: what waits for it is told at once. */
void replica_met(struct replica *replica, site_id site, struct replica_now now);

/* A person's word on an operation that is rejected or in doubt at this site. */
enum replica_verdict {
	REPLICA_RETRY,    /* run it (again); `secret` replaces its credentials if not "" */
	REPLICA_HAPPENED, /* in doubt: it did have its effect here */
	REPLICA_DISMISS,  /* in doubt: it did not, and is not to be run; rejected: stop showing it */
};

int replica_judge(struct replica *replica, struct replica_op_id op, enum replica_verdict verdict, struct str secret,
                  struct replica_now now, struct err *err);

/* ---- Members that come and go (members.c) ------------------------------------------------------------------------- */

/* Adds a site. 0: it is answered later, by host->answer(): with the operation that carries the copy, once it is issued; or why
 * not. That the new member has made it is seen like the state of any operation. ERR_NOT_FOUND, ERR_CONFLICT, ERR_LIMIT,
 * ERR_INVALID: not answered. */
struct replica_extension {
	site_id site;
	bool
		hold; /* of what is PLACED: the site is to hold it; it may be a witness. Else a site that is new becomes a witness */
	uint64_t ticket;
};

int replica_extend(struct replica *replica, struct replica_id id, const struct replica_extension *extension,
                   struct replica_now now, struct err *err);

/* Is a site being added to it at this moment? One at a time can be. */
bool replica_is_extending(struct replica *replica, struct replica_id id);

struct replica_drop {
	site_id site;
	bool keep;  /* the item stays there, as nobody's but its service's */
	bool force; /* do not wait for the site: what it alone has is lost */
};

/* A site is to be a member no longer. It goes once another one has all that it has; replica_look() shows it as leaving until
 * then. */
int replica_drop(struct replica *replica, struct replica_id id, const struct replica_drop *drop, struct replica_now now,
                 struct err *err);

/* Is this site to be a member no longer, and waits until it may go? Nothing new may begin here. */
bool replica_is_leaving(struct replica *replica, struct replica_id id);
/* Of what is CONTAINER, with `holds_containers`: as far as the host is concerned this site may go now, if it is to. Where it cannot go at this very
 * moment, the host has to say so again. */
void replica_let_go(struct replica *replica, struct replica_id id, struct replica_now now);
/* Was the site a member once, and is not any more? As far as is known here: false of who is unknown. */
bool replica_has_left(struct replica *replica, struct replica_id id, site_id site);

/* A site was removed from the mesh: it leaves all mappings. */
void replica_site_removed(struct replica *replica, site_id site, struct replica_now now);

uint64_t replica_due(const struct replica *replica); /* when replica_tick() wants to be called next */
void replica_tick(struct replica *replica, struct replica_now now);

/* ---- To look at --------------------------------------------------------------------------------------------------- */

struct replica_member_view {
	site_id site;
	struct str local_id; /* "" if not known */
	bool local_id_quoted;
	bool settled;     /* as far as is known here, it has executed all that is known here */
	bool stuck;       /* it waits for the state of another one */
	bool diverged;    /* and nobody can give it */
	bool joining;     /* it is new, and has no copy yet */
	bool leaving;     /* it goes as soon as another one has all that it has */
	bool witness;     /* it knows of it, and has none of it */
	uint32_t pending; /* operations that it has not settled */
	uint32_t rejected;
	uint32_t in_doubt;
};

struct replica_view {
	struct replica_id id;
	struct str service;
	struct str type;
	struct str collection;
	struct str name;
	enum replica_consistency consistency;
	enum replica_span span;
	site_id prime; /* of what is not ALIKE; 0: it was removed, and nobody took its place */
	bool deleted;  /* a tombstone */
	bool busy;     /* something runs here at this moment, or waits for its turn */
	bool left;     /* this site is no member any more */
	const struct replica_member_view *members;
	uint32_t members_count;
	uint32_t operations; /* not yet forgotten */
};

struct replica_op_view {
	struct replica_op_id id;
	struct replica_class class;
	uint64_t stamp;
	bool repair;                        /* it is the state of a member, for another that was stuck */
	struct replica_op_id superseded_by; /* number 0: by none. Of what became an alias: what it became, or the merge */
	bool merges;                        /* two replicants of one natural name became one: */
	struct replica_id merged;           /* this one is an alias since */
	/* Pending at this site, and it refers to what is not here: */
	bool waits;
	bool waits_unheard; /* nobody has told this site of it: perhaps it has no copy here */
	struct replica_id waits_for;
	struct {
		site_id site;
		enum replica_member_state state;
		int status;
		struct str answer;
		/* Another one's, pending: it refers to what that site is not known to have made yet. */
		bool waits;
		struct replica_id waits_for;
	} members[LIMIT_REPLICA_MEMBERS];
	uint32_t members_count;
};

/* ERR_NOT_FOUND. Slices are of the arena. An alias gives the replicant that it became. */
int replica_look(struct replica *replica, struct arena *arena, struct replica_id id, struct replica_view *view);
int replica_look_op(struct replica *replica, struct arena *arena, struct replica_op_id id,
                    struct replica_op_view *view);

/* What it was made with, whoever has come or gone since: the prime first (of what has one), the others by their ids. */
struct replica_origin {
	bool here; /* this site was one of them */
	site_id members[LIMIT_REPLICA_MEMBERS];
	uint32_t members_count;
};

int replica_origin(struct replica *replica, struct replica_id id, struct replica_origin *origin);

/* The ids that follow `after` (NULL: from the first), in the order of their rows; returns how many. Among replicants are
 * aliases, and what is gone. Operations that are forgotten are not listed; `of` NULL: those of all replicants. */
uint32_t replica_list(struct replica *replica, const struct replica_id *after, struct replica_id *ids, uint32_t most);
uint32_t replica_list_ops(struct replica *replica, const struct replica_id *of, const struct replica_op_id *after,
                          struct replica_op_id *ops, uint32_t most);

/* From rows, for those who read the store themselves (the data plane): no struct replica is needed. */
struct replica_local {
	struct str service;
	struct str type;
	struct str collection; /* "" where local ids are unique among all of the type */
	struct str id;
};

void replica_local_key(const struct replica_local *local, struct buf *key);
/* What the keys of all of a type begin with. */
void replica_local_prefix(struct str service, struct str type, struct buf *prefix);
int replica_local_parse(struct str row, struct replica_id *id);

/* What the row of a replicant says of this site. */
struct replica_here {
	bool alias; /* it became another one: look that up */
	struct replica_id other;
	bool gone; /* deleted, and remembered for a while; */
	bool left; /* or this site is no member any more */
	char local_id[LIMIT_REPLICA_NAME_BYTES];
	size_t local_id_bytes; /* 0: it is not here yet, or no longer */
	bool local_id_quoted;
	uint64_t members; /* a digest of who they are: it is another one if that changes */
	enum replica_span span;
	site_id prime;                          /* of what is not ALIKE */
	bool witness;                           /* this site has none of it: */
	site_id holders[LIMIT_REPLICA_HOLDERS]; /* some of those that have; the prime first */
	uint32_t holders_count;
};

int replica_here_parse(struct str row, site_id self, struct replica_here *here, struct err *err);
/* What it is, if the row is of one that this site is a member of, and that is not gone everywhere. Slices of the row. */
struct replica_about {
	struct str service;
	struct str type;
	struct str collection;
	struct str name;
};

bool replica_about_parse(struct str row, struct replica_about *about);
/* The members that the row has; returns how many, 0 where it is gone, has left, or became another one. */
uint32_t replica_members_parse(struct str row, site_id self, site_id members[LIMIT_REPLICA_MEMBERS]);

/* What a row says of other sites, where what this one has is not all of it: for those who keep count of them. */
struct replica_spread {
	enum replica_span span; /* ALIKE: it is; or it is gone, and nothing else counts */
	bool witness;           /* PLACED: it lies at the others, and not here */
	site_id others
		[LIMIT_REPLICA_MEMBERS]; /* who holds it, if this site is a witness; who has another part, if it is DIVIDED */
	uint32_t others_count;
};

/* Appends what keys of locals of its type begin with, where there are others. False: all members have it alike, and always had; to know that
 * costs a look at a few bytes. */
bool replica_spread_parse(struct str row, site_id self, struct replica_spread *spread, struct buf *prefix);

/* What this site has carried out of it, and whether it has what that gives. */
struct replica_standing {
	bool settled;        /* all that is known here is carried out, in its order, */
	bool quiet;          /* and nothing that changes it is at the service */
	bool lacks;          /* one of these, that counts, was refused here or is in doubt */
	uint64_t operations; /* settled: how many, */
	uint64_t digest;     /* and which; the same at two sites that have settled the same */
	site_id members[LIMIT_REPLICA_MEMBERS];
	uint32_t members_count;
};

/* ERR_NOT_FOUND: it is not known here, or was deleted. */
int replica_standing(struct replica *replica, struct replica_id id, struct replica_standing *standing);

/* Has this site settled what a session had seen? (`Cheops-Session`) */
void replica_session_put(struct replica *replica, struct replica_id id, struct buf *out);
bool replica_session_met(struct replica *replica, struct str session);

/* "META-ID.SITE.NUMBER". */
void replica_op_id_put(struct replica_op_id id, struct buf *out);
bool replica_op_id_parse(struct str text, struct replica_op_id *id);

/* "pending", "applied", "superseded", "rejected"... */
const char *replica_member_state_name(enum replica_member_state state);

/* Canonical text of a meta-id (36 bytes), and back; a time-ordered one from a stamp and randomness. */
void replica_id_put(struct replica_id id, struct buf *out);
bool replica_id_parse(struct str text, struct replica_id *id);
bool replica_id_is(struct str text, struct replica_id *id); /* and it may be a meta-id: other UUIDs are not */
struct replica_id replica_id_make(uint64_t wall_ms, uint64_t random_high, uint64_t random_low);

struct replica_counters {
	uint64_t submitted, issued, refused, delivered, executed, rerun, superseded, rejected, in_doubt, repaired, merged;
	uint64_t diverged; /* could not be repaired */
	uint64_t damaged;  /* rows met that make no sense: those replicants are not touched */
	uint64_t messages_sent, messages_received, messages_dropped, bytes_sent;
	uint64_t pending_operations, pending_replicants, running;
};

struct replica_counters replica_counters(const struct replica *replica);

#endif
