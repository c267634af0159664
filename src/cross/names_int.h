/* Of the files names*.c and their tests. */
#ifndef CROSS_NAMES_INT_H
#define CROSS_NAMES_INT_H

#include "cross/names.h"

#include "base/bytes.h"
#include "base/map.h"

enum {
	NAMES_ROW_VERSION = 1,
	NAMES_WIRE_VERSION = 1,
	NAMES_KEY_BYTES = 16 + 2 * (1 + LIMIT_REPLICA_NAME_BYTES) + 16 + 1
};

/* ---- Rows (names_row.c) ---------------------------------------------------------------------------------------------- */

struct key {
	size_t length;
	char bytes[NAMES_KEY_BYTES];
};

struct claim_row {
	uint8_t state; /* enum cross_claim_state */
	bool unchecked;
	bool noted;     /* the prime has noted that the child is there */
	uint64_t stamp; /* of this claim: a later one of the same name and child has a later one */
	uint64_t nonce; /* of the prime's entry; 0: the present prime has not answered for it */
	struct replica_id holder;
	site_id holder_site;
	uint8_t old_length; /* the name that it is to have no longer */
	char old[LIMIT_REPLICA_NAME_BYTES];
};

struct name_row {
	struct replica_id child;
	site_id site;
	uint64_t stamp;
	uint64_t nonce;
	bool kept;
	bool unchecked;
	bool
		orphan; /* its site is gone: it stays until whoever holds the child too has claimed it, or all have said that they do not */
};

struct rival_row {
	site_id site;
	uint64_t stamp;
	uint64_t nonce; /* asked with it whether it still wants the name; 0: it has lost it, and has to be told */
	uint64_t had;   /* of who has lost it: the number of the entry that it had */
	bool unchecked;
};

struct key key_of_claim(const struct cross_claim *claim);
struct key key_of_name(const struct cross_claim *claim);
/* Slices of the key. False: it makes no sense. That of a name has no child. */
bool key_parse(struct str key, bool with_child, struct cross_claim *claim);
static inline struct str key_str(const struct key *key)
{
	return str_make(key->bytes, key->length);
}

void claim_row_put(const struct claim_row *row, struct buf *out);
bool claim_row_parse(struct str bytes, struct claim_row *row);
void name_row_put(const struct name_row *row, struct buf *out);
bool name_row_parse(struct str bytes, struct name_row *row);
void rival_row_put(const struct rival_row *row, struct buf *out);
bool rival_row_parse(struct str bytes, struct rival_row *row);
void container_put(const struct cross_container *list, struct buf *out);
bool container_read(struct reader *reader, struct cross_container *list);

/* ---- Messages (names_wire.c) ------------------------------------------------------------------------------------------ */

enum message_kind {
	MESSAGE_CLAIMS = 1, /* to the prime: claims and their states */
	MESSAGE_VERDICTS,   /* from the prime */
	MESSAGE_LIST,       /* the sender's list. From the prime: say when you are ready */
	MESSAGE_READY,      /* to the prime: I am in this term, and you have all that I hold */
	MESSAGE_KINDS,
};

struct message {
	uint8_t kind;
	struct replica_id container;
	uint64_t term;
};

/* States of a claim as they are told: enum cross_claim_state. */
struct claim_item {
	struct cross_claim claim;
	uint8_t state;
	bool unchecked;
	uint64_t stamp;
	uint64_t nonce;
};

enum verdict_kind {
	VERDICT_GRANTED = 1, /* it is yours: what became of it? */
	VERDICT_NOTED,       /* that the child is there */
	VERDICT_REFUSED,
	VERDICT_FREED,
	VERDICT_ASKED, /* do you still claim it? */
	VERDICT_KINDS,
};

/* In VERDICT_REFUSED: it answers a claim that is asked for, and no other. Otherwise there is the number which the claim is
 * supposed to have: a refusal that is late may be about an entry before the present one. */
#define NONCE_OF_ASKED UINT64_MAX

struct verdict_item {
	struct cross_claim claim;
	uint8_t kind;
	bool unchecked;
	uint64_t stamp;
	uint64_t nonce;
	struct replica_id holder;
	site_id holder_site;
};

void names_message_begin(struct buf *out, const struct message *message);
int names_message_open(struct str bytes, struct message *message, struct reader *rest);
void claim_item_put(struct buf *out, const struct claim_item *item);
bool claim_item_read(struct reader *reader, const struct message *message, struct claim_item *item);
void verdict_item_put(struct buf *out, const struct verdict_item *item);
bool verdict_item_read(struct reader *reader, const struct message *message, struct verdict_item *item);

/* ---- The state machine (names.c, names_container.c) --------------------------------------------------------------------------------------- */

/* A container, in memory: there are few. */
struct container {
	struct replica_id id;
	struct cross_container list;
	uint64_t known; /* at the prime, a bit per site: it may be granted names */
	uint64_t ready; /* at the prime: it has said so in this term */
	bool leaving;   /* at the prime: it is to leave, and all have to say so, whether they may be granted names or not */
	bool orphans;   /* at the prime: entries of sites that are gone are left, until all have said so */
};

/* Something that is to be said, or asked, again. Its row says what. */
struct active {
	uint8_t table;
	struct key key; /* with the table in front: the key in the map */
	uint64_t due_us;
	uint64_t wait_us;
	bool doubt;      /* of a claim: the host did not know what became of it */
	uint64_t ticket; /* of a claim that somebody waits for */
	uint64_t deadline_us;
	uint32_t place; /* in the array */
};

struct cross_names {
	struct cross_names_options options;
	struct cross_names_host host;
	struct replica_now now; /* of this event */
	struct hlc clock;
	struct map containers;
	struct map actives;
	struct active **active;
	uint32_t active_count, active_capacity;
	uint32_t waiting;
	/* The message that is being put together, and those to this site itself. */
	site_id out_to;
	struct message out_message;
	struct buf out;
	struct buf self; /* length (4), message */
	struct cross_names_counters counters;
};

struct container *container_of(const struct cross_names *names, struct replica_id id);
void container_save(struct cross_names *names, const struct container *it);
/* The number of a site in the list; count: it is not in it. */
uint32_t container_index(const struct container *it, site_id site);
static inline bool container_is_prime(const struct cross_names *names, const struct container *it)
{
	return it->list.count > 0 && it->list.sites[0].site == names->options.self;
}

bool container_load(struct cross_names *names, struct str key, struct str row);
void container_set(struct cross_names *names, struct replica_id id, const struct cross_container *list);
void container_told(struct cross_names *names, struct container *it, site_id from, const struct cross_container *list);
void container_adopt(struct cross_names *names, struct container *it, const struct cross_container *list);
void container_ready(struct cross_names *names, struct container *it, site_id from);
void container_due(struct cross_names *names, struct active *active);
/* The prime is to leave: has everybody its list? */
bool container_hands_over(struct cross_names *names, struct container *it);

struct active *active_find(const struct cross_names *names, enum cross_table table, struct str key);
/* Makes it due now, or leaves it as it is if it is there. */
struct active *active_make(struct cross_names *names, enum cross_table table, struct str key);
void active_end(struct cross_names *names, enum cross_table table, struct str key);
/* It was said: once more, in a while, longer each time. */
void active_again(struct cross_names *names, struct active *it);

/* Answers who waits for a claim, if somebody does. */
void active_answer(struct cross_names *names, struct str key, const struct cross_answer *answer);

bool names_get_claim(struct cross_names *names, struct str key, struct claim_row *row);
void names_put_claim(struct cross_names *names, struct str key, const struct claim_row *row);
bool names_get_name(struct cross_names *names, struct str key, struct name_row *row);
void names_put_name(struct cross_names *names, struct str key, const struct name_row *row);
bool names_get_rival(struct cross_names *names, struct str key, struct rival_row *row);
void names_put_rival(struct cross_names *names, struct str key, const struct rival_row *row);
void names_remove(struct cross_names *names, enum cross_table table, struct str key);

/* The keys of all rows with a prefix: length (2), key. So rows may change while they are gone through. */
void names_keys(struct cross_names *names, enum cross_table table, struct str prefix, struct buf *keys);
bool names_keys_next(struct reader *reader, struct str *key);

uint64_t names_nonce(struct cross_names *names);
uint64_t names_stamp(struct cross_names *names);
static inline struct str names_id_str(const struct replica_id *id)
{
	return str_make((const char *)id->bytes, sizeof(id->bytes));
}
static inline bool names_same(struct replica_id a, struct replica_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

/* Messages: items to one site on one container go together. */
void names_tell_prime(struct cross_names *names, const struct container *it, const struct claim_item *item);
void names_tell_verdict(struct cross_names *names, const struct container *it, site_id to,
                        const struct verdict_item *item);
void names_tell(struct cross_names *names, const struct container *it, site_id to, enum message_kind kind);

/* ---- A claim, at its maker (names_claim.c) ------------------------------------------------------------------------------ */

int claim_begin(struct cross_names *names, const struct cross_claim *claim, struct str instead_of, uint64_t ticket,
                struct err *err);
void claim_adopt(struct cross_names *names, const struct cross_claim *claim);
void claim_kept(struct cross_names *names, const struct cross_claim *claim);
void claim_release(struct cross_names *names, const struct cross_claim *claim);
void claim_due(struct cross_names *names, struct active *active);
void claim_verdict(struct cross_names *names, const struct container *it, const struct verdict_item *verdict);
/* The prime is another one, or has forgotten: all is told anew. */
void claims_anew(struct cross_names *names, const struct container *it, bool unchecked);
/* Has the prime answered for all that this site holds? */
bool claims_told(struct cross_names *names, const struct container *it);
/* Does this site claim any name, or is about to? */
bool claims_any(struct cross_names *names, const struct container *it);
void claims_drop(struct cross_names *names, struct replica_id container);
void claims_start(struct cross_names *names);

/* ---- The table of names, at the prime (names_prime.c) ------------------------------------------------------------------- */

void prime_claim(struct cross_names *names, struct container *it, site_id from, const struct claim_item *item);
void prime_name_due(struct cross_names *names, struct active *active);
void prime_rival_due(struct cross_names *names, struct active *active);
/* Forgets all entries. */
void prime_drop(struct cross_names *names, struct replica_id container);
/* Those of sites that were in the list before and are not any more, or have come again since, are nobody's from now on. */
void prime_leave_behind(struct cross_names *names, struct container *it, const struct cross_container *before);
/* All have said what they hold: what nobody has claimed is free. */
void prime_drop_orphans(struct cross_names *names, struct container *it);
void prime_site_removed(struct cross_names *names, site_id site);
void prime_start(struct cross_names *names);

#endif
