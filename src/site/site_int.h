/* Inside the room: what its files share, and its unit tests look at. */
#ifndef SITE_SITE_INT_H
#define SITE_SITE_INT_H

#include "site/site.h"

enum {
	SITE_WIRE_VERSION = 1,   /* of datagrams */
	SITE_RECORD_VERSION = 1, /* of records */
	SITE_STORE_VERSION = 1,  /* of what site_dump() writes */

	SITE_MESSAGE_BYTES = LIMIT_SITE_MESSAGE_BYTES,
	SITE_RECORD_HEAD_BYTES = 22, /* all of a record but body and signature */
	SITE_SIGNATURE_BYTES = 72,   /* ECDSA over P-256 in DER, at the most */
	SITE_BODY_BYTES = LIMIT_SITE_CARD_BYTES - SITE_RECORD_HEAD_BYTES - SITE_SIGNATURE_BYTES,

	SITE_BUCKETS = 256,         /* of a digest */
	SITE_BUCKET_BITS = 8,       /* which are the first bits of an id's place */
	SITE_CELL_BITS = 16,        /* the most that a cell is told by */
	SITE_CELL_ITEMS = 40,       /* in one cell */
	SITE_EXCHANGE_MESSAGES = 4, /* datagrams that answer one comparison */

	SITE_SECTIONS = 200, /* in one datagram: an empty cell takes six bytes */

	SITE_SENDS_MAX = 24,      /* of one rumour, at the most */
	SITE_RUMOURS_PINGED = 10, /* rumours in a ping or its answer */
	SITE_RUMOURS_SENT = 30,   /* rumours in a datagram of news */
	SITE_FANOUT = 3,          /* sites that news are sent to in one round */
	SITE_PUSHED = 64,         /* records that are being pushed */
	SITE_PUSHED_SENT = 4,     /* of them in one datagram */

	SITE_PLACED = 64,      /* coordinates that are being passed on */
	SITE_PLACED_SENT = 2,  /* of them in one datagram */
	SITE_PLACED_SENDS = 2, /* times that each is sent: who misses one, about one in fifteen, hears the next */

	SITE_PROBES = 64,  /* in flight, or waited for although they failed */
	SITE_HELPERS = 3,  /* sites asked to probe another */
	SITE_RELAYS = 64,  /* probes made for others */
	SITE_HASTENED = 8, /* suspects that are probed out of turn */
	SITE_LONELY = 3,   /* probes at once while nobody answers */
	SITE_HEALTH_MAX = 8,
	SITE_INTRODUCTIONS = 8, /* answers, until which pings carry our card */

	SITE_CONFIRMATIONS = 3, /* that make a suspicion as short as it gets */

	SITE_WANTS = 256,        /* records asked for, or to be asked for */
	SITE_WANTS_ASKED = 24,   /* of them under way */
	SITE_WANTS_SENT = 16,    /* in one datagram */
	SITE_ANSWERS_BURST = 64, /* datagrams of records and tables given on request at once, */
	SITE_ANSWERS_RATE = 100, /* and per second */

	SITE_CORRECTIONS = 16, /* old news in one datagram that its sender is told better of */

	SITE_CLAIMANTS = 16, /* sites refused for their name */

	SITE_FILTERS = 128, /* peers whose last round trips are remembered */
	SITE_SAMPLES = 5,   /* of each */
};

#define SITE_NONE UINT32_MAX

/* ---- Records that are kept (held.c) ------------------------------------------------------------------------------ */

/* What was accepted once. Shared and counted; never changed. */
struct held {
	struct site_pool *pool; /* NULL: not in one */
	struct held *next;      /* in the pool */
	uint64_t hash;          /* in the pool */
	uint32_t references;
	uint16_t length;
	uint16_t name_at;
	uint8_t name_length;
	uint8_t kind;
	uint8_t removal; /* enum site_removal_kind */
	struct site_address address;
	site_id subject;
	uint64_t version;
	int64_t when_ms; /* of a card: born; of a removal: made */
	char bytes[];
};

/* NULL where the body makes no sense. */
struct held *held_new(struct site_pool *pool, const struct site_record *record, struct err *err);
struct held *held_keep(struct held *held);
void held_drop(struct held *held); /* NULL is fine */
struct str held_bytes(const struct held *held);
struct str held_name(const struct held *held);
/* The record again. */
void held_record(const struct held *held, struct site_record *record);

/* Names and addresses only. */
int site_card_glance(struct str body, struct site_card *card, struct err *err);

/* ---- Hash tables of numbers (index.c) ---------------------------------------------------------------------------- */

/* From a hash to the numbers of things in an array; the owner compares. */
struct index {
	uint32_t *slots; /* number + 1; 0: free */
	uint32_t capacity;
	uint32_t count;
	uint64_t (*hash_of)(const void *owner, uint32_t number);
	const void *owner;
};

void index_free(struct index *index);
void index_add(struct index *index, uint32_t number);
/* While the thing still hashes as it did when it was added. */
void index_remove(struct index *index, uint32_t number);
/* The thing has another number now. */
void index_rename(struct index *index, uint32_t from, uint32_t to);
/* Start with *cursor = 0; SITE_NONE past the last candidate. */
uint32_t index_next(const struct index *index, uint64_t hash, uint32_t *cursor);

/* ---- The table (table.c, member.c) -------------------------------------------------------------------------------- */

enum member_list {
	LIST_NONE, /* this site, those that left or are revoked */
	LIST_LIVE, /* alive or suspect: probed in turn */
	LIST_LOST, /* probed now and then */
	LISTS,
};

enum member_flag {
	MEMBER_TELL = 1,    /* it does not know what is said of it: tell it with the next message */
	MEMBER_HEARD = 2,   /* it has answered us since we started */
	MEMBER_KNOCKED = 4, /* it showed its card: it is probed out of turn, whatever its state */
};

/* Ten thousand sites in one process have a hundred million of these: it is kept small. */
struct member {
	site_id id;
	struct held *card; /* of a revoked one: its removal */
	int64_t since_ms;
	int64_t heard_ms;
	struct site_coordinate coordinate;
	uint32_t incarnation;
	uint32_t stamp;    /* of the coordinate: a later one counts */
	uint32_t rtt_us;   /* 0: never measured */
	uint32_t hot;      /* its rumour and suspicion: SITE_NONE if there is neither */
	uint32_t position; /* in its list */
	uint8_t state;
	uint8_t list;
	uint8_t flags;
};

struct list {
	uint32_t *items; /* members; those before `cursor` had their turn */
	uint32_t count;
	uint32_t capacity;
	uint32_t cursor;
};

/* What is said of a site: the part of a record that changes without a signature. */
struct status {
	site_id id;
	uint32_t incarnation;
	uint8_t state;
	uint64_t card_version;
	site_id accuser; /* of a suspect or lost one; 0: not told */
};

/* Incarnations and stamps wrap around (as RFC 1982 has it), so that nobody can use up the last one. A number that is far
 * ahead of the one that is known is believed of the site itself only: else a liar could lift it so far that the next one,
 * the site's own, counts as an earlier one. -1: earlier, or not believed; 0: the same; 1: later. */
static inline int compare_numbers(uint32_t said, uint32_t known, bool by_itself)
{
	const int32_t far = 1 << 28;
	int32_t ahead = (int32_t)(said - known);
	if (by_itself && ahead < -far / 2)
		return 1; /* this is not just an old datagram */
	if (!by_itself && ahead > far)
		return -1;
	return ahead < 0 ? -1 : ahead > 0;
}

uint32_t table_find(const struct site *site, site_id id);
/* The one that has the name; a revoked one only if nobody else has. */
uint32_t table_find_name(const struct site *site, struct str name);
uint32_t table_add(struct site *site, site_id id, struct held *card); /* takes the reference; SITE_NONE: full */
void table_remove(struct site *site, uint32_t number);
void table_set_card(struct site *site, uint32_t number, struct held *card); /* takes the reference */
void table_set_list(struct site *site, uint32_t number, enum member_list list);
/* A random one of a list, or SITE_NONE. */
uint32_t table_draw(struct site *site, enum member_list list);
/* The next of a list whose turn it is; shuffled anew for each round. SITE_NONE: the list is empty. */
uint32_t table_next(struct site *site, enum member_list list);
void table_free(struct site *site);

struct held *removal_find(const struct site *site, site_id id);

/* Takes what somebody said of a site into account. `via` told us, and can be asked for the card. */
void member_hear(struct site *site, const struct status *status, site_id via);
/* The one function that changes a state. */
void member_set_state(struct site *site, uint32_t number, enum site_state state, uint32_t incarnation);
struct status member_status(const struct site *site, uint32_t number);
/* Keeps a record if it is new, and right. `initial` is what is said of a site that was not known; may be NULL. */
int member_accept(struct site *site, struct str bytes, const struct status *initial, struct err *err);
/* This site's own card. */
int member_set_own(struct site *site, const struct site_record *record, struct err *err);
/* A message came from it. */
void member_heard(struct site *site, uint32_t number);
/* This site was shut out: it falls silent, and says why. */
void member_shut_self_out(struct site *site, const struct held *removal);
/* A site that is not in the table spoke: if its name was refused it is told, now and then. */
void member_tell_claimant(struct site *site, site_id id);
void member_forget_old(struct site *site);

/* ---- Digests (exchange.c) ----------------------------------------------------------------------------------------- */

/* What two sites compare: one of everything that they should agree on. */
struct item {
	uint8_t kind;
	site_id subject;
	uint64_t version;
	uint32_t incarnation;
	uint8_t state; /* a suspect counts as alive: that passes */
};

/* Where an id lies among 2^64 places, the same at all sites. */
uint64_t site_place(site_id id);
/* Put in before, taken out after each change of it: the same both times. */
void digest_toggle(struct site *site, const struct item *item);
void digest_toggle_member(struct site *site, uint32_t number);

struct message;
void exchange_tick(struct site *site);
void exchange_continue(struct site *site);
/* It came back: it may know what we do not, and the other way round. */
void exchange_soon(struct site *site, site_id with);
/* It knows of other removals or roots than we do. */
void exchange_law(struct site *site, site_id with);
void exchange_answer(struct site *site, site_id from, struct str digest);
void exchange_cells(struct site *site, site_id from, const struct message *message);
/* One thing that the other has. */
void exchange_item(struct site *site, site_id from, const struct item *item);

/* ---- Rumours (news.c) --------------------------------------------------------------------------------------------- */

struct suspicion;

/* A member of whom there is news, or who is suspected. */
struct hot {
	uint32_t member; /* free: the next free one */
	uint32_t next;   /* in the list of rumours sent as often as this one */
	uint32_t previous;
	uint8_t sends;
	bool queued;
	site_id accuser;
	struct suspicion *suspicion;
};

/* Of this member there is news. */
void news_add(struct site *site, uint32_t number, site_id accuser);
/* Somebody else tells the same. */
void news_known(struct site *site, uint32_t number);
/* The entry of a member, made where there is none. */
struct hot *news_hot(struct site *site, uint32_t number);
void news_release(struct site *site, uint32_t number); /* if there is neither rumour nor suspicion */
void news_remove(struct site *site, uint32_t number);  /* rumour and entry */
/* Writes up to `most` rumours and counts them as sent. */
uint32_t news_take(struct site *site, struct status *statuses, uint32_t most);
void news_push_record(struct site *site, struct held *held);
struct held *news_take_record(struct site *site, size_t room, uint32_t *cursor);
void news_add_place(struct site *site, site_id id);
uint32_t news_take_places(struct site *site, uint32_t *numbers, uint32_t most);
bool news_any(const struct site *site);
void news_free(struct site *site);

/* ---- Suspicion (suspicion.c) --------------------------------------------------------------------------------------- */

struct suspicion {
	uint64_t started_us;
	uint64_t deadline_us;
	uint32_t hot;
	uint32_t heap_at;
	uint8_t confirmations;
	uint8_t needed;
	bool checked; /* we have probed it ourselves, or are about to */
	site_id accusers[SITE_CONFIRMATIONS + 1];
};

void suspicion_start(struct site *site, uint32_t number, site_id accuser);
/* Another one accuses it, too. True if that was new, and counts. */
bool suspicion_confirm(struct site *site, uint32_t number, site_id accuser);
void suspicion_end(struct site *site, uint32_t number);
/* Nobody calls a site lost that it has suspected for less than this, whatever it knows of distances and of others. */
uint64_t suspicion_least_us(const struct site *site);
uint64_t suspicion_due(const struct site *site);
void suspicion_tick(struct site *site);
/* This site slept: that is nobody's fault. */
void suspicion_delay(struct site *site, uint64_t us);
void suspicion_free(struct site *site);

/* ---- Messages (wire.c) --------------------------------------------------------------------------------------------- */

enum message_type {
	TYPE_PING = 1, /* are you there? */
	TYPE_ACK,      /* yes */
	TYPE_ASK,      /* is `target` there? It does not answer me */
	TYPE_PASSED,   /* `target` answered me */
	TYPE_NACK,     /* it did not answer me either; but I am there */
	TYPE_NEWS,     /* nothing but sections */
	TYPES,
};

enum section_tag {
	SECTION_COORDINATE = 1, /* of the sender */
	SECTION_COORDINATES,    /* of others */
	SECTION_RUMOURS,
	SECTION_RECORD,
	SECTION_WANT,
	SECTION_DIGEST,
	SECTION_CELL,
	SECTION_OFFER,
	SECTION_OUTCAST,
	SECTION_WAITED, /* of an ACK: so many µs the ping had to wait to be read */
	SECTION_TAGS,
};

enum {
	COORDINATE_BYTES = 17,
	PLACED_BYTES = 8 + 4 + COORDINATE_BYTES,
	STATUS_BYTES = 8 + 4 + 1 + 8 + 8,
	WANT_BYTES = 1 + 8,
	ITEM_BYTES = 1 + 8 + 8 + 4 + 1,
	CELL_HEAD_BYTES = 3,
	SECTION_HEAD_BYTES = 3,
	OUTCAST_BYTES = 240,
	WAITED_BYTES = 4,
};

struct section {
	uint8_t tag;
	struct str bytes;
};

struct message {
	uint8_t type;
	uint32_t incarnation;
	uint64_t card_version;
	uint32_t law; /* digest of all removals and roots that the sender knows */
	uint32_t sequence;
	site_id target;
	uint32_t sections_count;
	struct section sections[SITE_SECTIONS];
};

struct reader;
struct place {
	site_id id;
	uint32_t stamp;
	struct site_coordinate coordinate;
};

/* ERR_CORRUPT, ERR_VERSION. Sections are checked: reading them cannot fail afterwards. */
int message_parse(struct str bytes, struct message *message);
void message_begin(struct buf *out, const struct message *message);
size_t section_begin(struct buf *out, enum section_tag tag);
void section_end(struct buf *out, size_t at); /* takes an empty one back */

void put_coordinate(struct buf *out, const struct site_coordinate *coordinate);
void put_place(struct buf *out, const struct place *place);
void put_status(struct buf *out, const struct status *status);
void put_item(struct buf *out, const struct item *item);
struct site_coordinate read_coordinate(struct reader *reader);
struct place read_place(struct reader *reader);
struct status read_status(struct reader *reader);
struct item read_item(struct reader *reader);

/* ---- Sending (gossip.c) --------------------------------------------------------------------------------------------- */

/* A letter is written into site->out: begin, add, send. */
void letter_begin(struct site *site, uint8_t type, uint32_t sequence, site_id target);
size_t letter_room(const struct site *site);
void letter_coordinate(struct site *site);
/* Rumours, those on the addressee first. */
void letter_rumours(struct site *site, uint32_t to, uint32_t most);
void letter_places(struct site *site, uint32_t most);
bool letter_record(struct site *site, const struct held *held);
void letter_status(struct site *site, uint32_t number);
void letter_send(struct site *site, uint32_t to);
void letter_send_to(struct site *site, site_id id, const struct site_address *address);
/* What the sender of a datagram has old news of. */
void gossip_correct(struct site *site, uint32_t to);
/* To all live ones at once. */
void gossip_broadcast(struct site *site, const struct held *held);
void gossip_tick(struct site *site);
uint64_t gossip_due(const struct site *site);
void gossip_leave(struct site *site);

/* ---- Records asked for (want.c) --------------------------------------------------------------------------------------- */

struct want {
	uint8_t kind;
	uint8_t tries;
	bool asked;
	site_id subject;
	uint64_t version;
	site_id from;
	uint64_t until_us;
};

void want_add(struct site *site, const struct want *want);
void want_came(struct site *site, uint8_t kind, site_id subject, uint64_t version);
/* Asks for what is queued, as far as there may be more under way. */
void want_flush(struct site *site);
void want_tick(struct site *site);
uint64_t want_due(const struct site *site);
/* How many datagrams somebody who asks may get now, at most so many. They are counted. */
uint32_t want_may_answer(struct site *site, uint32_t most);
void want_answer(struct site *site, uint32_t to, struct str wants);

/* ---- Probes (probe.c) ------------------------------------------------------------------------------------------------- */

enum probe_stage {
	PROBE_DIRECT,   /* waits for the answer */
	PROBE_INDIRECT, /* others try, too */
	PROBE_OVER,     /* failed; a late answer still tells the distance */
};

struct probe {
	site_id target;
	uint32_t sequence[2]; /* the second try's is 0 until it is made */
	uint64_t sent_us[2];
	uint64_t deadline_us;
	uint8_t stage;
	uint8_t asked;
	uint8_t nacks;
	bool delayed; /* before it was sent */
};

struct relay {
	site_id requester;
	site_id target;
	uint32_t their_sequence;
	uint32_t sequence;
	uint64_t sent_us;
	uint64_t deadline_us;
	bool delayed;
};

int64_t probe_rtt_us(const struct site *site, uint32_t number); /* measured, or else estimated; <0: not known */
/* How long an answer may take. */
uint64_t probe_timeout_us(const struct site *site, uint32_t number);
void probe_tick(struct site *site);
uint64_t probe_due(const struct site *site);
void probe_ping(struct site *site, uint32_t from, const struct message *message);
void probe_ack(struct site *site, uint32_t from, const struct message *message);
void probe_ask(struct site *site, uint32_t from, const struct message *message);
void probe_passed(struct site *site, const struct message *message);
void probe_nack(struct site *site, const struct message *message);
/* Out of turn: it is suspected, and we may be one of those who confirm it; or it knocked. */
void probe_hasten(struct site *site, site_id id);
void probe_health(struct site *site, int change);
/* This site slept: that is nobody's fault. */
void probe_forget_all(struct site *site);

/* ---- Coordinates (coordinate.c) ---------------------------------------------------------------------------------------- */

struct filter {
	site_id id;
	uint32_t samples_us[SITE_SAMPLES];
	uint8_t count;
	uint8_t next;
};

/* One step of Vivaldi: `at` moves, since it was measured to be rtt_us away from `other`. The random number is used where the
 * two are at one place. False where the sample is absurd. */
bool coordinate_move(struct site_coordinate *at, const struct site_coordinate *other, uint32_t rtt_us, uint64_t random);
bool coordinate_is_sound(const struct site_coordinate *coordinate);
/* A round trip to a member was measured. */
void coordinate_sample(struct site *site, uint32_t number, uint64_t rtt_us);
/* Somebody told where a site is. */
void coordinate_hear(struct site *site, const struct place *place, bool direct);
/* From now on others hear of where we are now. */
void coordinate_tick(struct site *site);

/* ---- All of it --------------------------------------------------------------------------------------------------------- */

struct claimant {
	site_id id; /* 0: free */
	struct held *card;
	uint64_t told_us;
};

struct site {
	struct site_options options;
	struct site_host host;
	struct site_now now; /* of the call that is being handled */
	bool started;
	bool silent;       /* it left, or is shut out: nothing is sent */
	bool loading;      /* from a file: nobody is told */
	bool announcing;   /* a record of this site's own authority: its subject is told, too, */
	bool urgent;       /* and it changes something: all others are told at once */
	uint64_t accepted; /* records kept so far */
	uint64_t epoch;
	struct site_counters counters;
	uint32_t health;

	struct member *members; /* number 0 is this site */
	uint32_t members_count;
	uint32_t members_capacity;
	struct index by_id;
	struct index by_name;
	struct list lists[LISTS];

	struct held **removals;
	uint32_t removals_count;
	uint32_t removals_capacity;
	struct index removals_by_id;
	struct held *roots[LIMIT_SITE_ROOTS];
	uint32_t roots_count;
	struct claimant claimants[SITE_CLAIMANTS];
	uint32_t claimants_next;
	uint64_t outcast_us; /* when that was told last; 0: never */

	struct hot *hots;
	uint32_t hots_count;
	uint32_t hots_capacity;
	uint32_t hots_free;                    /* list */
	uint32_t rumours[SITE_SENDS_MAX];      /* lists by number of sends, */
	uint32_t rumours_last[SITE_SENDS_MAX]; /* and their ends */
	uint32_t rumours_count;
	struct {
		struct held *held;
		uint32_t sends;
	} pushed[SITE_PUSHED];
	uint32_t pushed_count;
	struct {
		site_id id;
		uint32_t sends;
	} placed[SITE_PLACED]; /* the freshest last */
	uint32_t placed_count;
	site_id corrections[SITE_CORRECTIONS]; /* members on whom the sender of this datagram has old news */
	uint32_t corrections_count;

	struct suspicion **suspicions; /* a heap: the first is due first */
	uint32_t suspicions_count;
	uint32_t suspicions_capacity;

	struct probe probes[SITE_PROBES];
	uint32_t probes_count;
	struct relay relays[SITE_RELAYS];
	uint32_t relays_count;
	site_id hastened[SITE_HASTENED];
	uint32_t hastened_count;
	uint32_t sequence;
	uint32_t introductions;
	uint64_t probe_us; /* when the next is due */

	uint64_t gossip_us; /* when news were last sent */
	uint64_t place_us;  /* when our coordinate is announced again */

	uint64_t digest[SITE_BUCKETS];
	uint64_t law;          /* the same of removals and roots alone: each message has it */
	uint64_t exchange_us;  /* when the next is due */
	uint64_t exchanged_us; /* when the last one began */
	site_id exchange_peer; /* goes on with it once what is wanted came; 0: no */
	bool learnt;           /* something, since the last one began */
	uint64_t started_us;
	uint64_t forget_us; /* when old entries are looked for next */

	struct want wants[SITE_WANTS];
	uint32_t wants_count;
	uint32_t wants_asked;
	uint64_t answers_us; /* when as many answers as there may be are allowed again: a bucket that leaks */

	struct filter filters[SITE_FILTERS];
	struct site_coordinate anchor; /* our own when the drift was last reset */
	double drift_most;
	double drift_sum;

	struct buf out;
};

/* Of all that stands before it in a stored table (store.c). */
uint64_t store_checksum(struct str bytes);

uint64_t site_draw(struct site *site);
uint32_t site_draw_below(struct site *site, uint32_t bound);
/* Anything between half and one and a half of it. */
uint64_t site_jitter(struct site *site, uint64_t us);
void site_tell(struct site *site, enum site_event_kind kind, site_id subject, struct str name, struct str text);
/* Memory for `count` things and a bit more. */
void *site_grow(void *memory, uint32_t *capacity, uint32_t count, size_t bytes);
uint32_t site_live_count(const struct site *site); /* with this one */
bool site_address_equal(const struct site_address *a, const struct site_address *b);

#endif
