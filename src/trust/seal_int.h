/* Shared by the files of the seal and its tests: seal.c (who says what when), seal_peer.c (what is kept of each
 * site), and seal_wire.c (bytes and keys). docs/protocol/seal.md has the formats. */
#ifndef TRUST_SEAL_INT_H
#define TRUST_SEAL_INT_H

#include "trust/trust_int.h"

#include "base/map.h"

/* ---- Bytes and keys ---------------------------------------------------------------------------------------------- */

enum {
	SEAL_MARK = 0xc1, /* of this protocol, and its version */
	SEAL_KEY_BYTES = 32,
	SEAL_TAG_BYTES = 16,
	SEAL_DATA_BYTES = 42,     /* the header of a sealed datagram; the tag is behind what it covers */
	SEAL_GREETING_BYTES = 34, /* that of a greeting, likewise */
	SEAL_RECORD_BYTES = 2,    /* that of a record */
	SEAL_GREETING_LEAST = SEAL_GREETING_BYTES + SEAL_TAG_BYTES, /* one without a card: every answer is one */
	SEAL_WINDOW_BITS = 1024,
	SEAL_QUEUE_LENGTH = 4,
	SEAL_REFUSALS = 256,
	SEAL_WAIT_MOST_US = 5000000, /* in a queue */
};
_Static_assert((int)SEAL_DATA_BYTES + (int)SEAL_TAG_BYTES == (int)TRUST_SEAL_OVERHEAD, "what trust.h says");
_Static_assert((int)LIMIT_SITE_MESSAGE_BYTES + (int)TRUST_SEAL_OVERHEAD <= (int)LIMIT_SITE_DATAGRAM_BYTES,
               "a message fits");
_Static_assert((int)LIMIT_SITE_CARD_BYTES + (int)SEAL_GREETING_LEAST <= (int)LIMIT_SITE_DATAGRAM_BYTES, "a card fits");
/* Who sends little gets back no more. */
_Static_assert((int)SEAL_GREETING_LEAST <= (int)TRUST_SEAL_OVERHEAD, "an answer is no longer than what caused it");

enum seal_kind {
	SEAL_DATA = 1,
	SEAL_GREETING = 2, /* with an echo it is an answer, and is not answered */
	SEAL_LOST = 3,   /* a greeting that says: I have no keys for what you sent. It wants an answer, if it is old news */
	SEAL_RECORD = 4, /* a record for all to read: the sender's card, or that the receiver was shut out */
};

struct seal_data {
	site_id from;
	uint64_t to_number;   /* the receiver's number of the session */
	uint64_t from_number; /* the sender's */
	uint64_t next_number; /* what the sender would call the next session */
	uint64_t counter;     /* 1, 2, 3... */
};

struct seal_greeting {
	enum seal_kind kind;
	site_id from;
	site_id to;
	uint64_t number; /* the sender's, of the session that it offers */
	uint64_t echo;   /* the receiver's, as far as the sender knows; 0: it does not */
};

struct seal_crypto {
	EVP_CIPHER *cipher;
	EVP_CIPHER_CTX *sealing;
	EVP_CIPHER_CTX *opening;
	EVP_KDF_CTX *kdf;
	EVP_MAC_CTX *mac;
};

void seal_crypto_init(struct seal_crypto *crypto);
void seal_crypto_free(struct seal_crypto *crypto);

/* The secret that two sites share by their keys: the same on both sides. False: `other` is no key for it. */
bool seal_shared(EVP_PKEY *own, EVP_PKEY *other, unsigned char secret[SEAL_KEY_BYTES]);
/* The key of one direction of one session. */
void seal_data_key(struct seal_crypto *crypto, const unsigned char secret[SEAL_KEY_BYTES], site_id to,
                   const struct seal_data *data, unsigned char key[SEAL_KEY_BYTES]);

/* Whole datagrams; return their length. `out` has LIMIT_SITE_DATAGRAM_BYTES. */
size_t seal_data_write(struct seal_crypto *crypto, const unsigned char key[SEAL_KEY_BYTES],
                       const struct seal_data *data, struct str bytes, unsigned char *out);
size_t seal_greeting_write(struct seal_crypto *crypto, const unsigned char secret[SEAL_KEY_BYTES],
                           const struct seal_greeting *greeting, struct str card, unsigned char *out);

/* Takes the header apart. False: it is not one. */
bool seal_data_read(struct str datagram, struct seal_data *data);
size_t seal_record_write(struct str record, unsigned char *out);
bool seal_greeting_read(struct str datagram, struct seal_greeting *greeting, struct str *card);
/* Does it open? `plain` has room for all of the datagram. */
bool seal_data_open(struct seal_crypto *crypto, const unsigned char key[SEAL_KEY_BYTES], const struct seal_data *data,
                    struct str datagram, unsigned char *plain);
bool seal_greeting_check(struct seal_crypto *crypto, const unsigned char secret[SEAL_KEY_BYTES],
                         const struct seal_greeting *greeting, struct str datagram);

/* ---- What is kept of a site -------------------------------------------------------------------------------------- */

/* What came already: the highest counter, and a bit for each of the last ones, at counter modulo their number. */
struct seal_window {
	uint64_t highest;
	uint64_t bits[SEAL_WINDOW_BITS / 64];
};

bool seal_window_fresh(const struct seal_window *window, uint64_t counter);
void seal_window_mark(struct seal_window *window, uint64_t counter);

struct seal_waiting;

struct seal_peer {
	unsigned char key[8]; /* the id, as the map wants it */
	site_id id;
	struct seal_peer *newer; /* by last use */
	struct seal_peer *older;
	struct seal_waiting *waiting; /* NULL: nothing waits for a greeting */
	uint64_t offer;               /* our number of the session to come; never used before */
	uint64_t mine;                /* the session: both numbers; 0: there is none */
	uint64_t theirs;
	uint64_t sent;      /* the last counter */
	uint64_t answer_us; /* limits answers to greetings (GCRA: when the next one would be on time) */
	uint64_t stale_us;  /* no answer to what does not open before this */
	uint64_t ask_us;    /* when the host is asked again whether it may still talk to us */
	uint64_t greet_us;  /* not before this is it greeted although there is a session */
	uint64_t unheard;   /* datagrams sent since one of it opened */
	unsigned char secret[SEAL_KEY_BYTES];
	unsigned char send_key[SEAL_KEY_BYTES];
	unsigned char receive_key[SEAL_KEY_BYTES];
	struct seal_window window;
};

/* Datagrams to a site that has to greet first. */
struct seal_waiting {
	struct seal_peer *peer;
	struct seal_waiting *next;
	struct seal_waiting *previous;
	uint64_t greet_us; /* when it is greeted again */
	uint64_t pause_us; /* and how long after that once more */
	uint32_t count;
	uint64_t since_us[SEAL_QUEUE_LENGTH]; /* the oldest first */
	struct buf queue[SEAL_QUEUE_LENGTH];
};

/* An id that the host refused, for a moment: to look at an expired certificate once more takes it long. */
struct seal_refusal {
	site_id id;
	uint64_t until_us;
};

struct trust_seal {
	struct trust_seal_host host;
	EVP_PKEY *key;
	site_id self;
	uint64_t boot;
	uint64_t drawn; /* how many numbers were drawn */
	struct seal_crypto crypto;
	struct map peers;
	size_t peers_most;
	struct seal_peer *newest;
	struct seal_peer *oldest;
	struct seal_waiting *waiting;
	size_t queued;                               /* datagrams, in all queues */
	uint64_t due_us;                             /* not after the next thing that has to happen */
	uint64_t introduce_us;                       /* limits cards of strangers, as answer_us, */
	uint64_t knock_us;                           /* our own card to who cannot be greeted, */
	uint64_t outcast_us;                         /* and words to those who were shut out */
	struct seal_refusal refusals[SEAL_REFUSALS]; /* at id modulo their number */
	struct buf card;
	struct trust_seal_counters counters;
	unsigned char out[LIMIT_SITE_DATAGRAM_BYTES];
	unsigned char plain[LIMIT_SITE_DATAGRAM_BYTES];
};

struct seal_peer *seal_peer_find(const struct trust_seal *seal, site_id id);
/* The same, or a new one from its certificate. NULL: it has none (any more), or not for that id. */
struct seal_peer *seal_peer_get(struct trust_seal *seal, site_id id, uint64_t now_us);
/* It was heard of, or written to: others go first when the table is full. */
void seal_peer_touch(struct trust_seal *seal, struct seal_peer *peer);
void seal_peer_drop(struct trust_seal *seal, struct seal_peer *peer);

/* The session that we offered begins, with this number of the other's. The next offer is drawn. */
void seal_session_start(struct trust_seal *seal, struct seal_peer *peer, uint64_t theirs);
void seal_session_end(struct seal_peer *peer);

/* Puts a copy into the queue; the oldest one gives way. True: nothing waited before. */
bool seal_wait(struct trust_seal *seal, struct seal_peer *peer, struct str bytes, uint64_t now_us);
/* Takes out what waited too long. False: nothing waits any more, and the queue is gone. */
bool seal_wait_expire(struct trust_seal *seal, struct seal_waiting *waiting, uint64_t now_us);
/* Takes the queue off its peer; to be freed with seal_waiting_free(). NULL: there is none. */
struct seal_waiting *seal_wait_take(struct trust_seal *seal, struct seal_peer *peer);
void seal_waiting_free(struct seal_waiting *waiting);

#endif
