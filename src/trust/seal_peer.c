/* What the seal keeps of each site: about 350 bytes, in a table that is bounded and gives up whom it had least to do
 * with.
 *
 * Numbers of sessions are drawn from the boot, which is random, and a count: so none comes twice, also not for a site
 * that was given up and came back. A number that was not used for a session yet is the offer.
 */
#include "trust/seal_int.h"

#include <openssl/crypto.h>
#include <openssl/sha.h>
#include <stdlib.h>

enum {
	QUEUED_MOST = 1024, /* datagrams, in all queues */
	PAUSE_FIRST_US = 250000,
	ASK_EVERY_US = 5000000, /* whether a site may still talk to us */
};

/* ---- Replays ----------------------------------------------------------------------------------------------------- */

static uint64_t *word_of(struct seal_window *window, uint64_t counter)
{
	return &window->bits[counter / 64 % (SEAL_WINDOW_BITS / 64)];
}

bool seal_window_fresh(const struct seal_window *window, uint64_t counter)
{
	if (counter > window->highest)
		return true;
	if (window->highest - counter >= SEAL_WINDOW_BITS)
		return false;
	return !(window->bits[counter / 64 % (SEAL_WINDOW_BITS / 64)] >> counter % 64 & 1);
}

void seal_window_mark(struct seal_window *window, uint64_t counter)
{
	if (counter > window->highest && counter - window->highest >= SEAL_WINDOW_BITS) {
		memset(window->bits, 0, sizeof(window->bits));
		window->highest = counter;
	}
	while (window->highest < counter) {
		window->highest++;
		*word_of(window, window->highest) &= ~(UINT64_C(1) << window->highest % 64);
	}
	*word_of(window, counter) |= UINT64_C(1) << counter % 64;
}

/* ---- Peers ------------------------------------------------------------------------------------------------------- */

static uint64_t draw_number(struct trust_seal *seal)
{
	static const char label[] = "cheops number 1";
	unsigned char text[sizeof(label) - 1 + 16], hash[SHA256_DIGEST_LENGTH];
	uint64_t number = 0;
	memcpy(text, label, sizeof(label) - 1);
	trust_put_u64(text + sizeof(label) - 1, seal->boot);
	while (number == 0) { /* which stands for none */
		trust_put_u64(text + sizeof(label) + 7, ++seal->drawn);
		CHECK(EVP_Digest(text, sizeof(text), hash, NULL, EVP_sha256(), NULL) == 1);
		number = trust_get_u64(hash);
	}
	return number;
}

static struct str key_of(const struct seal_peer *peer)
{
	return str_make((const char *)peer->key, sizeof(peer->key));
}

struct seal_peer *seal_peer_find(const struct trust_seal *seal, site_id id)
{
	unsigned char key[8];
	trust_put_u64(key, id);
	return map_get(&seal->peers, str_make((char *)key, sizeof(key)));
}

static void unlink_peer(struct trust_seal *seal, struct seal_peer *peer)
{
	*(peer->newer ? &peer->newer->older : &seal->newest) = peer->older;
	*(peer->older ? &peer->older->newer : &seal->oldest) = peer->newer;
}

static void link_newest(struct trust_seal *seal, struct seal_peer *peer)
{
	peer->newer = NULL;
	peer->older = seal->newest;
	*(seal->newest ? &seal->newest->newer : &seal->oldest) = peer;
	seal->newest = peer;
}

void seal_peer_touch(struct trust_seal *seal, struct seal_peer *peer)
{
	if (seal->newest == peer)
		return;
	unlink_peer(seal, peer);
	link_newest(seal, peer);
}

void seal_peer_drop(struct trust_seal *seal, struct seal_peer *peer)
{
	struct seal_waiting *waiting = seal_wait_take(seal, peer);
	if (waiting) {
		seal->counters.dropped += waiting->count;
		seal_waiting_free(waiting);
	}
	unlink_peer(seal, peer);
	map_remove(&seal->peers, key_of(peer));
	OPENSSL_cleanse(peer, sizeof(*peer));
	free(peer);
}

/* The secret with the site of that certificate; its key has to be the one that the id stands for. */
static bool share_with(const struct trust_seal *seal, struct str certificate, site_id id,
                       unsigned char secret[SEAL_KEY_BYTES])
{
	struct trust_certificate read;
	X509 *x509 = trust_x509_parse(certificate, NULL);
	bool good = x509 && trust_x509_read(x509, certificate, &read, NULL) == 0 && read.id == id && !read.root &&
	            seal_shared(seal->key, X509_get0_pubkey(x509), secret);
	X509_free(x509);
	return good;
}

static struct seal_peer *add_peer(struct trust_seal *seal, site_id id, const unsigned char secret[SEAL_KEY_BYTES])
{
	if (seal->peers.count >= seal->peers_most)
		seal_peer_drop(seal, seal->oldest);
	struct seal_peer *peer = calloc(1, sizeof(*peer));
	CHECK(peer);
	peer->id = id;
	peer->offer = draw_number(seal);
	trust_put_u64(peer->key, id);
	memcpy(peer->secret, secret, SEAL_KEY_BYTES);
	map_set(&seal->peers, key_of(peer), peer);
	link_newest(seal, peer);
	return peer;
}

struct seal_peer *seal_peer_get(struct trust_seal *seal, site_id id, uint64_t now_us)
{
	unsigned char secret[SEAL_KEY_BYTES];
	struct seal_peer *peer = seal_peer_find(seal, id);
	if ((peer && now_us < peer->ask_us) || id == seal->self)
		return peer;
	struct str certificate = seal->host.certificate(seal->host.context, id);
	if (certificate.length == 0 && peer)
		seal_peer_drop(seal, peer);
	if (certificate.length == 0 || (!peer && !share_with(seal, certificate, id, secret)))
		return NULL;
	if (!peer)
		peer = add_peer(seal, id, secret);
	OPENSSL_cleanse(secret, sizeof(secret));
	peer->ask_us = now_us + ASK_EVERY_US;
	return peer;
}

/* ---- Sessions ---------------------------------------------------------------------------------------------------- */

void seal_session_start(struct trust_seal *seal, struct seal_peer *peer, uint64_t theirs)
{
	peer->mine = peer->offer;
	peer->theirs = theirs;
	peer->offer = draw_number(seal);
	peer->sent = 0;
	peer->window = (struct seal_window){0};
	seal_data_key(&seal->crypto, peer->secret, peer->id,
	              &(struct seal_data){.from = seal->self, .from_number = peer->mine, .to_number = theirs},
	              peer->send_key);
	seal_data_key(&seal->crypto, peer->secret, seal->self,
	              &(struct seal_data){.from = peer->id, .from_number = theirs, .to_number = peer->mine},
	              peer->receive_key);
}

void seal_session_end(struct seal_peer *peer)
{
	peer->mine = peer->theirs = 0;
	OPENSSL_cleanse(peer->send_key, sizeof(peer->send_key));
	OPENSSL_cleanse(peer->receive_key, sizeof(peer->receive_key));
}

/* ---- Queues ------------------------------------------------------------------------------------------------------ */

static struct seal_waiting *start_waiting(struct trust_seal *seal, struct seal_peer *peer, uint64_t now_us)
{
	struct seal_waiting *waiting = calloc(1, sizeof(*waiting));
	CHECK(waiting);
	waiting->peer = peer;
	waiting->pause_us = PAUSE_FIRST_US;
	waiting->greet_us = now_us + PAUSE_FIRST_US;
	waiting->next = seal->waiting;
	if (seal->waiting)
		seal->waiting->previous = waiting;
	seal->waiting = peer->waiting = waiting;
	if (waiting->greet_us < seal->due_us)
		seal->due_us = waiting->greet_us;
	return waiting;
}

static void drop_oldest(struct trust_seal *seal, struct seal_waiting *waiting)
{
	struct buf oldest = waiting->queue[0];
	waiting->count--;
	seal->queued--;
	seal->counters.dropped++;
	memmove(waiting->queue, waiting->queue + 1, waiting->count * sizeof(waiting->queue[0]));
	memmove(waiting->since_us, waiting->since_us + 1, waiting->count * sizeof(waiting->since_us[0]));
	waiting->queue[waiting->count] = (struct buf){0};
	buf_free(&oldest);
}

bool seal_wait(struct trust_seal *seal, struct seal_peer *peer, struct str bytes, uint64_t now_us)
{
	struct seal_waiting *waiting = peer->waiting;
	bool first = waiting == NULL;
	if (!waiting)
		waiting = start_waiting(seal, peer, now_us);
	if (waiting->count == SEAL_QUEUE_LENGTH)
		drop_oldest(seal, waiting);
	if (seal->queued >= QUEUED_MOST) {
		seal->counters.dropped++;
		return first;
	}
	waiting->since_us[waiting->count] = now_us;
	buf_put(&waiting->queue[waiting->count++], bytes);
	seal->queued++;
	return first;
}

struct seal_waiting *seal_wait_take(struct trust_seal *seal, struct seal_peer *peer)
{
	struct seal_waiting *waiting = peer->waiting;
	if (!waiting)
		return NULL;
	*(waiting->previous ? &waiting->previous->next : &seal->waiting) = waiting->next;
	if (waiting->next)
		waiting->next->previous = waiting->previous;
	peer->waiting = NULL;
	seal->queued -= waiting->count;
	return waiting;
}

void seal_waiting_free(struct seal_waiting *waiting)
{
	for (uint32_t i = 0; i < SEAL_QUEUE_LENGTH; i++)
		buf_free(&waiting->queue[i]);
	free(waiting);
}

bool seal_wait_expire(struct trust_seal *seal, struct seal_waiting *waiting, uint64_t now_us)
{
	while (waiting->count > 0 && now_us - waiting->since_us[0] >= SEAL_WAIT_MOST_US)
		drop_oldest(seal, waiting);
	if (waiting->count > 0)
		return true;
	seal_waiting_free(seal_wait_take(seal, waiting->peer));
	return false;
}
