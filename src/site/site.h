/* Sites: who is there, how far away, and since when (DESIGN 11).
 *
 * One struct site is what one agent knows of all sites, and the protocol by which the agents keep it true: SWIM (Das,
 * Gupta, Motivala, 2002) with Lifeguard's refinements (Dadgar, Phillips, Currey, 2017), network coordinates (Vivaldi:
 * Dabek, Cox, Kaashoek, Morris, 2004), and a store of signed records that spread the same way. docs/protocol/gossip.md
 * has the messages to the byte.
 *
 * The room is pure: it is fed datagrams and the time, and asks its host to send, to check a signature, and for random
 * numbers. What reaches site_receive() was opened by the host already (src/trust/seal.c): it is known who sent it.
 */
#ifndef SITE_SITE_H
#define SITE_SITE_H

#include "scope/scope.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

/* ---- Words ------------------------------------------------------------------------------------------------------- */

/* A site is known by its key: the first eight bytes of the SHA-256 of its public key (DER), as a number. 0: nobody. */
typedef uint64_t site_id;

/* Where its agent is met: TCP and UDP. Network byte order in `ip`; IPv4 in the first four bytes. */
struct site_address {
	uint8_t family; /* 4 or 6; 0: none */
	uint8_t ip[16];
	uint16_t port;
};

/* Time is an argument: monotonic for the protocol, the wall clock (ms since 1970) for "since when". */
struct site_now {
	uint64_t us;
	int64_t wall_ms;
	uint64_t
		waited_us; /* site_receive(): so long before it the message came, and had to wait at this machine to be read */
};

enum site_state {
	SITE_ALIVE,   /* it answers */
	SITE_SUSPECT, /* it did not answer somebody; it may still say that it is alive */
	SITE_LOST,    /* nothing heard of it any more: dead or cut off, which cannot be told from here */
	SITE_LEFT,    /* it said that it stops */
	SITE_REVOKED, /* shut out by a record of the authority */
	SITE_STATES,
};

const char *site_state_name(enum site_state state); /* "alive", "suspect", "lost", "left", "revoked" */

/* How a state is shown to users of scopes: alive and suspect are present, lost is unknown (since), the rest absent. */
enum scope_state site_scope_state(enum site_state state);

/* ---- Records ----------------------------------------------------------------------------------------------------- */

/* What somebody said once and signed. It spreads unchanged; of several with one kind and subject the highest version
 * counts. The room keeps and passes on only what host->verify() accepts. */
enum site_record_kind {
	SITE_CARD = 1, /* a site of itself: name, address, services, tags, certificate. Signed with its own key */
	SITE_REMOVAL,  /* the authority of a site: it is shut out, or forgotten. Subject: the site */
	SITE_ROOT, /* the authority of itself: a root certificate that is to be trusted, or no longer. Subject: the root */
	SITE_RECORD_KINDS,
};

struct site_record {
	uint8_t kind;
	site_id subject;
	uint64_t version;
	struct str body;         /* encoded, see site_card_* and docs/protocol/gossip.md */
	struct str signature;    /* over everything before it */
	struct str bytes;        /* the whole, as it is sent and stored */
	struct str signed_bytes; /* what the signature is over */
};

/* Takes bytes apart; the slices point into them. */
int site_record_parse(struct str bytes, struct site_record *record, struct err *err);
/* Writes what has to be signed; then the signature is appended with site_record_finish(). */
void site_record_begin(struct buf *out, uint8_t kind, site_id subject, uint64_t version, struct str body);
void site_record_finish(struct buf *out, struct str signature);

struct site_offer {
	struct str service;
	struct str version; /* "" if not known */
};

struct site_tag {
	struct str key;
	struct str value;
};

struct site_card {
	struct str name;
	struct site_address address;
	struct str version;     /* of the agent */
	bool authority;         /* it holds the key of the authority: it signs for those who join */
	int64_t born_ms;        /* wall clock: when the site was made. Of two keys with one name the older one keeps it */
	struct str certificate; /* DER */
	const struct site_offer *services;
	uint32_t services_count;
	const struct site_tag *tags;
	uint32_t tags_count;
};

/* ERR_LIMIT where it does not fit into a datagram (LIMIT_SITE_CARD_BYTES); the text says what takes the room. */
int site_card_encode(struct buf *out, const struct site_card *card, struct err *err);
/* Slices point into the body, arrays come from the arena. Unknown fields of a later version are skipped. */
int site_card_parse(struct arena *arena, struct str body, struct site_card *card, struct err *err);

enum site_removal_kind {
	SITE_REVOKE = 1, /* shut out; shown as revoked; the name stays taken */
	SITE_FORGET,     /* shut out and no longer shown; the name is free for another key */
};

struct site_removal {
	enum site_removal_kind kind;
	struct str name;
	site_id signer; /* the root whose key signed it */
	int64_t wall_ms;
};

void site_removal_encode(struct buf *out, const struct site_removal *removal);
int site_removal_parse(struct str body, struct site_removal *removal, struct err *err);

struct site_root {
	bool trusted;           /* false: no longer */
	struct str certificate; /* DER */
	site_id signer;         /* the root whose key signed the record: one that is trusted already */
};

void site_root_encode(struct buf *out, const struct site_root *root);
int site_root_parse(struct str body, struct site_root *root, struct err *err);

/* ---- The host ---------------------------------------------------------------------------------------------------- */

enum site_event_kind {
	SITE_EVENT_JOINED, /* a site that was not known */
	SITE_EVENT_ALIVE,  /* it is back, or no longer suspect */
	SITE_EVENT_SUSPECT,
	SITE_EVENT_LOST,
	SITE_EVENT_LEFT,
	SITE_EVENT_REVOKED,
	SITE_EVENT_REMOVED, /* forgotten */
	SITE_EVENT_CARD,    /* its card changed: address, services, certificate... Of this site: others have a later card of
	                      * it than its own, whose version is in `text`; it has to sign one with a higher version */
	SITE_EVENT_ROOT,    /* a record on a root was accepted */
	SITE_EVENT_CONFLICT, /* another key claims a name that is taken: subject is the claimant */
	SITE_EVENT_OUTCAST,  /* others say that this site's name is taken, or that it is removed: see `text` */
};

struct site_event {
	enum site_event_kind kind;
	site_id subject;
	struct str name;
	struct str text;
};

struct site_host {
	void *context;
	/* At most LIMIT_SITE_MESSAGE_BYTES. It may be lost, come twice or late. None of the functions
	 * here may call back into the site. */
	void (*send)(void *context, site_id to, const struct site_address *address, struct str bytes);
	/* Is the record signed by who may say so? Called once per record, before it is kept. */
	bool (*verify)(void *context, const struct site_record *record);
	uint64_t (*random)(void *context);
	void (*event)(void *context, const struct site_event *event); /* may be NULL */
};

struct site_timing {
	uint64_t probe_us;         /* one probe per such a period */
	uint64_t gossip_us;        /* news are sent on this often while there are any */
	uint64_t exchange_us;      /* between comparisons of the whole table with a random site */
	uint64_t timeout_least_us; /* for an answer; grows with the distance */
	uint64_t timeout_most_us;
	uint32_t health_most; /* how far Lifeguard's local health may count against us; 0: not at all, for comparisons */
	bool plain; /* also without whatever else protects the healthy from the slow: SWIM of 2002, for comparisons */
	uint64_t forget_us; /* a site that left or is lost stays in the table: for ever if 0 */
};

struct site_timing site_timing_default(void);

/* Equal records kept once for several struct site of one process and thread: for simulators. Free it after them. */
struct site_pool;

struct site_pool *site_pool_new(struct hash_key hash_key);
void site_pool_free(struct site_pool *pool);

struct site_options {
	site_id self;
	struct site_timing timing;
	struct hash_key hash_key;
	struct site_pool *pool; /* NULL: this one keeps its records for itself */
};

/* ---- The table and the protocol ---------------------------------------------------------------------------------- */

struct site;

struct site *site_new(const struct site_options *options, const struct site_host *host);
void site_free(struct site *site);

/* Our own card, signed; again whenever something in it changes. The first one starts the protocol. */
int site_set_card(struct site *site, struct str record, struct site_now now, struct err *err);

/* A record from elsewhere than a datagram: a stored table, the answer to a join, this site's own authority. One of the
 * authority's is sent to all live sites at once, besides spreading as all news do. */
int site_add_record(struct site *site, struct str record, struct site_now now, struct err *err);

/* The card of a site that was shown outside of a session: it may be a repetition, but only its site can have signed it. It is
 * kept if it is good. A site that is not known to be there, or moved, is asked whether it is: then the two know each other
 * again. ERR_CONFLICT, ERR_INVALID...: it is not kept. */
int site_knock(struct site *site, struct str card, struct site_now now, struct err *err);

/* What a site says, opened by the host. Never fails: what makes no sense is counted. */
void site_receive(struct site *site, site_id from, struct str bytes, struct site_now now);

/* The last message to that site had to wait before it could be sent: how long its answer takes tells nothing of the distance.
 */
void site_delayed(struct site *site, site_id to);

/* When site_tick() wants to be called next, on the clock of now.us. */
uint64_t site_due(const struct site *site);
void site_tick(struct site *site, struct site_now now);

/* Tells others that this site stops (state LEFT). Afterwards nothing more is sent. */
void site_leave(struct site *site, struct site_now now);

/* The table for a file, and back. What is loaded is lost (unknown since it was last heard of) until heard of again.
 * Records are verified again. ERR_CORRUPT, ERR_VERSION: nothing was taken. */
void site_dump(const struct site *site, struct buf *out);
int site_load(struct site *site, struct str bytes, struct site_now now, struct err *err);

/* ---- What is known ----------------------------------------------------------------------------------------------- */

struct site_member {
	site_id id;
	struct str name; /* slices live until the next call that changes the table */
	enum site_state state;
	int64_t since_ms; /* wall clock: in this state since; 0: not known */
	int64_t heard_ms; /* wall clock: last heard from directly; 0: never */
	uint32_t incarnation;
	int64_t rtt_us; /* measured from here, smoothed; SCOPE_RTT_UNKNOWN: never */
	struct site_record card;
};

uint32_t site_count(const struct site *site); /* with this one, which is number 0 */
void site_member(const struct site *site, uint32_t number, struct site_member *member);
/* Its number; SCOPE_NO_INDEX: not known. */
uint32_t site_find(const struct site *site, site_id id);
uint32_t site_find_name(const struct site *site, struct str name);
/* The card of a site that is not in the table, because another one has its name. The last few are kept: they are told. */
bool site_claimant(const struct site *site, site_id id, struct site_record *card);
/* Shut out by a removal, whether it is in the table or not. */
bool site_is_removed(const struct site *site, site_id id);

/* The record by which a site was shut out; false: none. */
bool site_removal_of(const struct site *site, site_id id, struct site_record *record);
/* Is there a live site, by its card, at this address? */
bool site_is_met_at(const struct site *site, const struct site_address *address);
/* Does any other site answer, as far as is known? */
bool site_is_alone(const struct site *site);

/* Records of other kinds, one after the other; false past the last. */
bool site_record_at(const struct site *site, enum site_record_kind kind, uint32_t n, struct site_record *record);

/* From coordinates alone; SCOPE_RTT_UNKNOWN where one of the two has none yet. */
int64_t site_estimate_us(const struct site *site, uint32_t from, uint32_t to);

/* Rises with every change of the table that a snapshot would show (states, cards, removals, roots). Distances change all the
 * time: site_drift() tells by how much (largest relative change since the last call of site_drift_reset()). */
uint64_t site_epoch(const struct site *site);
double site_drift(const struct site *site);
void site_drift_reset(struct site *site);

#define SITE_COUNTERS(X)                                                                                               \
	X(sent, "cheops_gossip_sent_total", "Gossip datagrams sent")                                                       \
	X(sent_bytes, "cheops_gossip_sent_bytes_total", "Bytes of gossip sent, without what sealing adds")                 \
	X(received, "cheops_gossip_received_total", "Gossip datagrams received that were opened")                          \
	X(malformed, "cheops_gossip_malformed_total", "Gossip datagrams that made no sense")                               \
	X(refused_records, "cheops_gossip_refused_records_total", "Records whose signature or claim was refused")          \
	X(probes, "cheops_gossip_probes_total", "Sites probed")                                                            \
	X(probe_failures, "cheops_gossip_probe_failures_total", "Probes that nobody answered, also not by a detour")       \
	X(refutations, "cheops_gossip_refutations_total", "Times that this site had to say that it is alive")              \
	X(exchanges, "cheops_gossip_exchanges_total", "Tables compared with another site")                                 \
	X(conflicts, "cheops_gossip_name_conflicts_total", "Claims of a name that another key has")

struct site_counters {
#define X(field, name, help) uint64_t field;
	SITE_COUNTERS(X)
#undef X
};

const struct site_counters *site_counters(const struct site *site);
uint32_t site_health(const struct site *site); /* Lifeguard's local health: 0 is good */

/* ---- Coordinates ------------------------------------------------------------------------------------------------- */

/* A place in a space in which distances are round trips: in µs, with a height for what every path to the site has in
 * common. The error is relative, 1 at the start. */
enum { SITE_DIMENSIONS = 4 };

struct site_coordinate {
	float at[SITE_DIMENSIONS];
	float height;
	float error; /* 0: there is no coordinate yet */
};

int64_t site_coordinate_us(const struct site_coordinate *from, const struct site_coordinate *to);

/* ---- Snapshots --------------------------------------------------------------------------------------------------- */

/* What the data plane sees: it never changes, and is shared by threads. This site is number 0; sites that are removed are
 * not in it, except revoked ones in `removed`. Numbers are those of the view. */
struct site_place {
	site_id id;
	struct str name;
	struct site_address address;
	enum site_state state;
	const struct site_tag *tags;
	uint32_t tags_count;
};

struct site_snapshot {
	struct scope_view view;
	const struct site_place *places;
	uint32_t places_count;
	const site_id *removed; /* sorted */
	uint32_t removed_count;
	uint64_t number; /* 1, 2, 3... in the order in which they were made */
};

/* What one is made of: this site first. Everything is copied. */
struct site_snapshot_entry {
	struct site_place place;
	int64_t since_ms;
	int64_t rtt_us; /* from here, as measured; SCOPE_RTT_UNKNOWN: the estimate counts */
	struct site_coordinate coordinate;
	const struct site_offer *services;
	uint32_t services_count;
};

struct site_snapshot *site_snapshot_make(const struct site_snapshot_entry *entries, uint32_t count,
                                         const site_id *removed, uint32_t removed_count, uint64_t number);
/* The same from a table. */
struct site_snapshot *site_snapshot_new(const struct site *site, uint64_t number);
struct site_snapshot *site_snapshot_keep(struct site_snapshot *snapshot);
void site_snapshot_drop(struct site_snapshot *snapshot);
bool site_snapshot_is_removed(const struct site_snapshot *snapshot, site_id id);
/* SCOPE_NO_INDEX: not in it. */
uint32_t site_snapshot_find(const struct site_snapshot *snapshot, site_id id);

#endif
