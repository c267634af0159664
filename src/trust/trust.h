/* Trust: keys, certificates, the small authority that signs them, join tokens, and sealed datagrams.
 *
 * Each site has one key (P-256) and one certificate, whose subject alternative name is the URI
 * cheops://site/<percent-encoded name>. The certificate is signed by a root; which roots are trusted is a short list,
 * so that one can replace the other. A site is known by its key (site_id), not by its certificate: renewing keeps the
 * key.
 *
 * The room computes; it reads no file and no clock (time is an argument), and opens no socket. Random numbers come
 * from OpenSSL. All functions may be called by any thread, on different objects.
 */
#ifndef TRUST_TRUST_H
#define TRUST_TRUST_H

#include "site/site.h"

#include <openssl/types.h>

/* ---- Keys and certificates --------------------------------------------------------------------------------------- */

struct trust_key; /* a private key */

int trust_key_make(struct trust_key **key, struct err *err);
int trust_key_read(struct trust_key **key, struct str pem, struct err *err);
void trust_key_write(const struct trust_key *key, struct buf *pem); /* cleanse and free it */
void trust_key_free(struct trust_key *key);
site_id trust_key_id(const struct trust_key *key);
EVP_PKEY *trust_key_evp(const struct trust_key *key); /* not a new reference */

/* ECDSA with SHA-256, DER. */
void trust_sign(const struct trust_key *key, struct str bytes, struct buf *signature);

struct trust_certificate {
	site_id id;                            /* of its key */
	char name[LIMIT_AGENT_NAME_BYTES + 1]; /* of the site, or of the root */
	bool root;
	int64_t from_ms; /* valid from, to: ms since 1970 */
	int64_t to_ms;
	unsigned char fingerprint[32]; /* SHA-256 of the DER */
};

/* Takes a certificate apart: syntax only. */
int trust_certificate_read(struct str der, struct trust_certificate *certificate, struct err *err);
/* Is the signature that of the certificate's key? */
bool trust_verify(struct str certificate_der, struct str bytes, struct str signature);

/* DER of each certificate of a PEM text, handed to `each`. ERR_INVALID where there is none. */
int trust_pem_each(struct str pem, void (*each)(void *context, struct str der), void *context, struct err *err);
/* DER of the first one, appended; those behind it are a chain. */
int trust_pem_first(struct str pem, struct buf *der, struct err *err);
void trust_pem_write(struct buf *pem, struct str der);

/* ---- Roots ------------------------------------------------------------------------------------------------------- */

/* The roots that are trusted: usually one, two while one replaces the other. At most LIMIT_TRUST_ROOTS. */
struct trust_roots;

struct trust_roots *trust_roots_new(void);
void trust_roots_free(struct trust_roots *roots);
int trust_roots_add(struct trust_roots *roots, struct str der, struct err *err);
bool trust_roots_remove(struct trust_roots *roots, site_id id);
uint32_t trust_roots_count(const struct trust_roots *roots);
struct str trust_roots_at(const struct trust_roots *roots, uint32_t n); /* DER */
/* The root with that key; "" if it is not trusted. */
struct str trust_roots_find(const struct trust_roots *roots, site_id id);

/* Is this a site's certificate, signed by a trusted root, and valid now? The text says which of these fails, with both
 * times where it is expired or not yet valid. */
int trust_check(const struct trust_roots *roots, struct str der, int64_t now_ms, struct trust_certificate *certificate,
                struct err *err);

/* Verifies a record for struct site_host: a card by its own certificate (name and id have to agree), the others by
 * the root that they name. */
bool trust_check_record(const struct trust_roots *roots, const struct site_record *record, int64_t now_ms,
                        struct err *err);

/* ---- The authority ----------------------------------------------------------------------------------------------- */

/* Certificates begin a day before now, so that clocks may be apart. */
enum { TRUST_BACKDATE_S = 86400 };

/* A root for a new key, signed by itself. */
int trust_root_make(const struct trust_key *key, struct str name, int64_t now_ms, int64_t lifetime_ms, struct buf *der,
                    struct err *err);

/* What a site asks to be signed (PKCS #10). */
int trust_request_make(const struct trust_key *key, struct str name, struct buf *der, struct err *err);
int trust_request_read(struct str der, char name[LIMIT_AGENT_NAME_BYTES + 1], site_id *id, struct err *err);
/* The site's certificate; never valid for longer than the root itself. */
int trust_request_sign(struct str request_der, const struct trust_key *root_key, struct str root_der, int64_t now_ms,
                       int64_t lifetime_ms, struct buf *der, struct err *err);

/* ---- Join tokens ------------------------------------------------------------------------------------------------- */

/* "cheops1_" and base64url of: a secret, the fingerprint of the root, when it ends, where to join, and the name that
 * it is good for ("" any). It ends with a check sum, so that a token that was cut or mistyped is told as such. */
enum { TRUST_SECRET_BYTES = 16 };

struct trust_token {
	unsigned char secret[TRUST_SECRET_BYTES];
	unsigned char root[32]; /* fingerprint */
	int64_t ends_ms;
	struct site_address address;
	char name[LIMIT_AGENT_NAME_BYTES + 1];
};

void trust_token_make(struct trust_token *token); /* draws the secret */
void trust_token_write(const struct trust_token *token, struct buf *text);
int trust_token_read(struct str text, struct trust_token *token, struct err *err);
/* What the issuer keeps instead of the secret. */
void trust_token_digest(const struct trust_token *token, unsigned char digest[32]);

/* ---- Boxes ------------------------------------------------------------------------------------------------------- */

/* Bytes that only this site can read again. One box is for one thread at a time. */
struct trust_box;

enum { TRUST_BOX_KEY_BYTES = 32, TRUST_BOX_EXTRA_BYTES = 28 };

/* A key, appended; cleanse and free it. */
int trust_box_key_make(struct buf *key, struct err *err);
int trust_box_new(struct trust_box **box, struct str key, struct err *err);
void trust_box_free(struct trust_box *box);
/* `about` says where it is kept, and has to be the same when it is opened. Both append. */
void trust_box_seal(struct trust_box *box, struct str about, struct str bytes, struct buf *out);
int trust_box_open(struct trust_box *box, struct str about, struct str sealed, struct buf *out, struct err *err);

/* ---- Sealed datagrams -------------------------------------------------------------------------------------------- */

/* Each pair of sites has keys of its own, from a Diffie-Hellman exchange of their certified keys and two random
 * numbers, one of each side, that are drawn anew whenever one of them started again. A datagram opens only for the
 * pair and the two numbers that it was made for, and only once. Two that do not know each other's number yet exchange
 * greetings first, which carry the card of who begins; docs/protocol/seal.md has the details. No clock is involved. */
enum { TRUST_SEAL_OVERHEAD = 58 }; /* bytes that sealing adds */

struct trust_seal;

struct trust_seal_host {
	void *context;
	/* The certificate (DER) of a site that may talk to us; "" for one that is unknown, removed or expired. It is
	 * asked for when there are no keys shared with the site yet, and every five seconds as long as it is heard from. */
	struct str (*certificate)(void *context, site_id id);
	/* A greeting brought this card, which is signed by its site but otherwise unchecked: keep it if it is good. */
	void (*card)(void *context, struct str record);
	/* A record came that was not sealed, nor checked: the card of a site that cannot greet us, or wants to be known again; or
	 * the one by which this site was shut out. */
	void (*record)(void *context, struct str record);
	/* The record by which a site was shut out; "": it was not. It is told to who does not seem to know. */
	struct str (*removal)(void *context, site_id id);
	void (*send)(void *context, site_id to, struct str datagram);
	/* Greetings go back to where they came from: that site's card may not be known yet. */
	void (*reply)(void *context, const struct site_address *to, struct str datagram);
	/* card(), record() and opened() may call the seal again, but not trust_seal_receive() or trust_seal_free(); the others may
	 * not. Of what they are handed nothing lives longer than the call. */
	void (*opened)(void *context, site_id from, struct str bytes);
};

#define TRUST_SEAL_COUNTERS(X)                                                                                         \
	X(opened, "cheops_gossip_opened_total", "Datagrams opened")                                                        \
	X(malformed, "cheops_gossip_not_ours_total", "Datagrams that are not of this protocol")                            \
	X(strangers, "cheops_gossip_strangers_total", "Datagrams of sites that are unknown, removed or expired")           \
	X(forged, "cheops_gossip_forged_total", "Datagrams that do not open with the keys of their sender")                \
	X(replayed, "cheops_gossip_replayed_total", "Datagrams that came before")                                          \
	X(stale, "cheops_gossip_stale_total", "Datagrams of a session that is over: one of the two started again")         \
	X(greetings, "cheops_gossip_greetings_total", "Greetings received")                                                \
	X(limited, "cheops_gossip_limited_total", "Greetings dropped because there were too many")                         \
	X(dropped, "cheops_gossip_unsealed_total", "Datagrams to sites that did not greet back")

struct trust_seal_counters {
#define X(field, name, help) uint64_t field;
	TRUST_SEAL_COUNTERS(X)
#undef X
};

/* The boot is a random number that this start of the agent drew, from a good source: never the same one again. The
 * key is that of a certificate that trust_check() accepted: P-256. */
struct trust_seal *trust_seal_new(const struct trust_key *key, uint64_t boot, const struct trust_seal_host *host);
void trust_seal_free(struct trust_seal *seal);
/* Our card (a whole record), for greetings. */
void trust_seal_set_card(struct trust_seal *seal, struct str record);
/* Seals and sends at most LIMIT_SITE_MESSAGE_BYTES; waits (a few datagrams, a few seconds) where a greeting has to come
 * first: then false. */
bool trust_seal_send(struct trust_seal *seal, site_id to, struct str bytes, uint64_t now_us);
/* Shows our card to whoever is at that address: to a site whose key is not known, or whose certificate has ended as far as is known
 * here. If it takes the card it will greet us. At most ten a second, and a few more at once. */
void trust_seal_knock(struct trust_seal *seal, const struct site_address *to, uint64_t now_us);
/* The last word to a site that was shut out: sent if a session with it is open, whatever the host would say of it. */
void trust_seal_send_last(struct trust_seal *seal, site_id to, struct str bytes);
/* A datagram came in: opens it, answers a greeting, or counts why not. */
void trust_seal_receive(struct trust_seal *seal, const struct site_address *from, struct str datagram, uint64_t now_us);
/* When trust_seal_tick() wants to be called next (UINT64_MAX: not at all): greetings are repeated while datagrams
 * wait. */
uint64_t trust_seal_due(const struct trust_seal *seal);
void trust_seal_tick(struct trust_seal *seal, uint64_t now_us);
/* Forgets the keys shared with a site: it was removed. The host is asked again before anything of it is opened. */
void trust_seal_forget(struct trust_seal *seal, site_id id);
const struct trust_seal_counters *trust_seal_counters(const struct trust_seal *seal);

#endif
