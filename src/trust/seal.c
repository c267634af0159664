/* Sealed datagrams: who greets whom, when keys begin and end, and what is refused.
 *
 * Each site has, for each other one, a number for the session that they have and another, drawn but not used yet, for
 * the one to come: its offer. A session is a pair of numbers, one of each side; its keys depend on both. A number is
 * used for one session only.
 *
 * A wants to send to B, for the first time:
 * 1. A queues the datagram and greets: its offer a, no echo, its card.
 * 2. B learns A's key from the card, if it did not know it. It answers: its offer b, echo a. It keeps nothing of
 *    this.
 * 3. A sees its offer echoed: B said b after A drew a. The session (a, b) begins for A, which sends what was queued.
 * 4. B sees a datagram for its offer b that opens with the keys of (a, b): A said so after B drew b. It begins for B
 *    too. If both begin at once, each gets the other's echo, and both end up with (a, b).
 *
 * What goes wrong:
 * - A greeting or its answer is lost: A greets again after 250 ms, 500 ms, 1 s... as long as something is queued;
 *   after 5 s   in the queue a datagram is dropped.
 * - B starts again, and A does not know: what A sends is for a number that B does not have. B says that it is lost,
 *   with its   offer and an echo of A's, which each datagram shows. One round trip, and there is a new session.
 * - B starts again, and has lost its table: it cannot even say that it is lost, since it does not know A's key. Who has
 *   sent a few datagrams, for some seconds, and heard nothing greets again, with its card.
 * - What A sends is late, of a session before the one that B has: B repeats the numbers of that one. If A has it too,
 *   that   is the end of it, so that two sites never chase each other from session to session. If not, A takes it up.
 * - A starts again twice in a row, and a late datagram of the first time gets B into a session with nobody: what A
 *   then   sends is for B's number, but not from the number that B expects. B says that it is lost.
 * - Nothing was queued when a session began: a greeting tells the other one, which may still be in the old session.
 * - Somebody repeats an old greeting: what it echoes is no offer any more. If it asked, it costs one short answer, to
 *   which   the site that gets it pays no attention.
 * - Somebody repeats an old datagram: its counter was seen, or its session is over.
 * - Somebody makes up a greeting or a datagram: the code does not fit. It is counted.
 * - Somebody claims to be a site that we know, to have us answer to an address of his choice: an answer is never
 *   longer than   what caused it, and answers to each site are limited. What was not proven is answered to the site's
 *   own address only.
 * - Somebody sends many cards: each costs two signatures to check, so strangers get 50 a second between them.
 * - A's card of B has ended, or it knows no more than an address: it cannot greet, and shows its own card to whoever is there, for
 *   all to read. B, if it is B, greets A then, with a card that is good.
 * - A was shut out, and does not know: it gets the record that says so, which is signed, instead of an answer. It is never longer
 *   than what A sent, and there are ten a second in all.
 * - A counter comes to its end: the session ends, and greetings make a new one.
 */
#include "trust/seal_int.h"

#include <openssl/crypto.h>
#include <stdlib.h>

enum {
	ANSWER_EVERY_US = 20000,    /* to the greetings of one site, in the long run, */
	ANSWER_BURST_US = 400000,   /* and this much ahead: 20 at once */
	STALE_EVERY_US = 100000,    /* to datagrams of one site that we have no keys for */
	INTRODUCE_EVERY_US = 20000, /* for the cards of strangers, all together */
	INTRODUCE_BURST_US = 2000000,
	RECORD_EVERY_US = 100000, /* of each kind that is sent in the clear, */
	RECORD_BURST_US = 2000000,
	PAUSE_MOST_US = 4000000,
	UNHEARD_MOST = 3,     /* datagrams sent in vain, */
	UNHEARD_US = 5000000, /* for so long: then it is greeted, and as often again */
	REFUSED_US = 500000,  /* a site that the host refused is not asked about again for this long */
};

struct trust_seal *trust_seal_new(const struct trust_key *key, uint64_t boot, const struct trust_seal_host *host)
{
	CHECK(trust_key_is_of_site(key));
	struct trust_seal *seal = calloc(1, sizeof(*seal));
	CHECK(seal);
	seal->host = *host;
	seal->key = trust_key_evp(key);
	CHECK(EVP_PKEY_up_ref(seal->key) == 1);
	seal->self = trust_key_id(key);
	seal->boot = boot;
	seal->peers_most = LIMIT_SITES;
	seal->due_us = UINT64_MAX;
	map_init(&seal->peers, (struct hash_key){boot, ~boot});
	seal_crypto_init(&seal->crypto);
	return seal;
}

void trust_seal_free(struct trust_seal *seal)
{
	if (!seal)
		return;
	while (seal->newest)
		seal_peer_drop(seal, seal->newest);
	map_free(&seal->peers);
	seal_crypto_free(&seal->crypto);
	EVP_PKEY_free(seal->key);
	buf_free(&seal->card);
	OPENSSL_cleanse(seal, sizeof(*seal));
	free(seal);
}

void trust_seal_set_card(struct trust_seal *seal, struct str record)
{
	CHECK(record.length <= LIMIT_SITE_CARD_BYTES);
	buf_clear(&seal->card);
	buf_put(&seal->card, record);
}

void trust_seal_forget(struct trust_seal *seal, site_id id)
{
	struct seal_peer *peer = seal_peer_find(seal, id);
	if (peer)
		seal_peer_drop(seal, peer);
}

const struct trust_seal_counters *trust_seal_counters(const struct trust_seal *seal)
{
	return &seal->counters;
}

/* One every so often, and some at once (the generic cell rate algorithm): *at_us is when the next one would be on
 * time. */
static bool within_rate(uint64_t *at_us, uint64_t every_us, uint64_t burst_us, uint64_t now_us)
{
	uint64_t at = *at_us > now_us ? *at_us : now_us;
	if (at - now_us > burst_us)
		return false;
	*at_us = at + every_us;
	return true;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

static struct str write_greeting(struct trust_seal *seal, const struct seal_peer *peer, struct seal_greeting greeting,
                                 struct str card)
{
	greeting.from = seal->self;
	greeting.to = peer->id;
	size_t length = seal_greeting_write(&seal->crypto, peer->secret, &greeting, card, seal->out);
	return str_make((const char *)seal->out, length);
}

/* Of our own accord: with our card, since we cannot know whether we are known there. */
static void greet(struct trust_seal *seal, const struct seal_peer *peer)
{
	struct seal_greeting greeting = {.kind = SEAL_GREETING, .number = peer->offer};
	seal->host.send(seal->host.context, peer->id, write_greeting(seal, peer, greeting, buf_str(&seal->card)));
}

static void send_sealed(struct trust_seal *seal, struct seal_peer *peer, struct str bytes)
{
	struct seal_data data = {.from = seal->self,
	                         .to_number = peer->theirs,
	                         .from_number = peer->mine,
	                         .next_number = peer->offer,
	                         .counter = ++peer->sent};
	size_t length = seal_data_write(&seal->crypto, peer->send_key, &data, bytes, seal->out);
	seal->host.send(seal->host.context, peer->id, str_make((const char *)seal->out, length));
}

/* A session began: what waited goes out. False: nothing did. */
static bool send_waiting(struct trust_seal *seal, struct seal_peer *peer)
{
	struct seal_waiting *waiting = seal_wait_take(seal, peer);
	if (!waiting)
		return false;
	for (uint32_t i = 0; i < waiting->count; i++)
		send_sealed(seal, peer, buf_str(&waiting->queue[i]));
	bool any = waiting->count > 0;
	seal_waiting_free(waiting);
	return any;
}

/* Perhaps the other one knows neither the session nor us: it cannot say so. */
static void send_in_session(struct trust_seal *seal, struct seal_peer *peer, struct str bytes, uint64_t now_us)
{
	send_sealed(seal, peer, bytes);
	if (peer->unheard++ == 0) {
		peer->greet_us = now_us + UNHEARD_US;
	} else if (peer->unheard >= UNHEARD_MOST && now_us >= peer->greet_us) {
		peer->greet_us = now_us + UNHEARD_US;
		greet(seal, peer);
	}
}

bool trust_seal_send(struct trust_seal *seal, site_id to, struct str bytes, uint64_t now_us)
{
	CHECK(bytes.length <= LIMIT_SITE_MESSAGE_BYTES);
	trust_seal_tick(seal, now_us);
	struct seal_peer *peer = seal_peer_get(seal, to, now_us);
	if (!peer) {
		seal->counters.dropped++;
		return false;
	}
	seal_peer_touch(seal, peer);
	if (peer->sent == UINT64_MAX)
		seal_session_end(peer);
	if (peer->mine != 0) {
		send_in_session(seal, peer, bytes, now_us);
		return true;
	}
	if (seal_wait(seal, peer, bytes, now_us))
		greet(seal, peer);
	return false;
}

void trust_seal_send_last(struct trust_seal *seal, site_id to, struct str bytes)
{
	CHECK(bytes.length <= LIMIT_SITE_MESSAGE_BYTES);
	struct seal_peer *peer = seal_peer_find(seal, to);
	if (peer && peer->mine != 0 && peer->sent != UINT64_MAX)
		send_sealed(seal, peer, bytes);
	else
		seal->counters.dropped++;
}

void trust_seal_knock(struct trust_seal *seal, const struct site_address *to, uint64_t now_us)
{
	if (seal->card.length == 0 || !within_rate(&seal->knock_us, RECORD_EVERY_US, RECORD_BURST_US, now_us))
		return;
	size_t length = seal_record_write(buf_str(&seal->card), seal->out);
	seal->host.reply(seal->host.context, to, str_make((const char *)seal->out, length));
}

/* True: the site was shut out, and is told. Whether it is the site is not proven; what it is told is no secret. */
static bool tell_removed(struct trust_seal *seal, site_id id, const struct site_address *to, size_t caused_by,
                         uint64_t now_us)
{
	struct str removal = seal->host.removal(seal->host.context, id);
	if (removal.length == 0)
		return false;
	seal->counters.strangers++;
	if (SEAL_RECORD_BYTES + removal.length > caused_by)
		return true; /* it will send something longer */
	if (!within_rate(&seal->outcast_us, RECORD_EVERY_US, RECORD_BURST_US, now_us)) {
		seal->counters.limited++;
		return true;
	}
	size_t length = seal_record_write(removal, seal->out);
	seal->host.reply(seal->host.context, to, str_make((const char *)seal->out, length));
	return true;
}

uint64_t trust_seal_due(const struct trust_seal *seal)
{
	return seal->due_us;
}

void trust_seal_tick(struct trust_seal *seal, uint64_t now_us)
{
	if (now_us < seal->due_us)
		return;
	uint64_t due_us = UINT64_MAX;
	for (struct seal_waiting *waiting = seal->waiting, *next; waiting; waiting = next) {
		next = waiting->next;
		if (!seal_wait_expire(seal, waiting, now_us))
			continue;
		if (now_us >= waiting->greet_us) {
			waiting->pause_us = waiting->pause_us >= PAUSE_MOST_US ? PAUSE_MOST_US : waiting->pause_us * 2;
			waiting->greet_us = now_us + waiting->pause_us;
			greet(seal, waiting->peer);
		}
		uint64_t end_us = waiting->since_us[0] + SEAL_WAIT_MOST_US;
		uint64_t next_us = end_us < waiting->greet_us ? end_us : waiting->greet_us;
		due_us = next_us < due_us ? next_us : due_us;
	}
	seal->due_us = due_us;
}

/* Of whom a datagram claims to be: that costs him nothing, so it must not cost us much. */
static struct seal_peer *known_peer(struct trust_seal *seal, site_id id, uint64_t now_us)
{
	struct seal_refusal *refusal = &seal->refusals[id % SEAL_REFUSALS];
	if (refusal->id == id && now_us < refusal->until_us)
		return NULL;
	struct seal_peer *peer = seal_peer_get(seal, id, now_us);
	if (!peer)
		*refusal = (struct seal_refusal){.id = id, .until_us = now_us + REFUSED_US};
	return peer;
}

/* ---- Receiving greetings ----------------------------------------------------------------------------------------- */

/* Is it the card of who sends it? What is in it is for the host to judge. */
static bool is_card_of(struct str bytes, site_id id)
{
	struct site_record record;
	return site_record_parse(bytes, &record, NULL) == 0 && record.kind == SITE_CARD && record.subject == id;
}

/* Somebody whom we do not know shows a card. */
static struct seal_peer *introduce(struct trust_seal *seal, site_id id, struct str card, uint64_t now_us)
{
	struct seal_peer *peer = NULL;
	if (card.length == 0) {
		seal->counters.strangers++;
	} else if (!within_rate(&seal->introduce_us, INTRODUCE_EVERY_US, INTRODUCE_BURST_US, now_us)) {
		seal->counters.limited++;
	} else if (!is_card_of(card, id)) {
		seal->counters.malformed++;
	} else {
		seal->host.card(seal->host.context, card);
		peer = seal_peer_get(seal, id, now_us);
		if (peer)
			seal->refusals[id % SEAL_REFUSALS].until_us = 0;
		else
			seal->counters.strangers++;
	}
	return peer;
}

static void answer(struct trust_seal *seal, struct seal_peer *peer, uint64_t number, uint64_t echo,
                   const struct site_address *to, uint64_t now_us)
{
	if (!within_rate(&peer->answer_us, ANSWER_EVERY_US, ANSWER_BURST_US, now_us)) {
		seal->counters.limited++;
		return;
	}
	struct seal_greeting greeting = {.kind = SEAL_GREETING, .number = number, .echo = echo};
	seal->host.reply(seal->host.context, to, write_greeting(seal, peer, greeting, STR("")));
}

/* It is from `peer`, but perhaps old: only what echoes our offer is new for certain. Answers are not answered, so that
 * an old one that somebody repeats moves nothing. */
static void consider(struct trust_seal *seal, struct seal_peer *peer, const struct seal_greeting *greeting,
                     const struct site_address *from, uint64_t now_us)
{
	bool asks = greeting->echo == 0 || greeting->kind == SEAL_LOST;
	if (peer->mine != 0 && greeting->number == peer->theirs) {
		if (asks && greeting->echo != peer->mine) /* it has not noticed yet that our session began */
			answer(seal, peer, peer->mine, peer->theirs, from, now_us);
	} else if (greeting->echo == peer->offer) {
		seal_session_start(seal, peer, greeting->number);
		if (!send_waiting(seal, peer))
			answer(seal, peer, peer->mine, peer->theirs, from, now_us);
	} else if (asks) {
		answer(seal, peer, peer->offer, greeting->number, from, now_us);
	}
}

static void receive_greeting(struct trust_seal *seal, const struct site_address *from, struct str datagram,
                             uint64_t now_us)
{
	struct seal_greeting greeting;
	struct str card;
	if (!seal_greeting_read(datagram, &greeting, &card) || greeting.to != seal->self || greeting.from == seal->self) {
		seal->counters.malformed++;
		return;
	}
	seal->counters.greetings++;
	struct seal_peer *peer = known_peer(seal, greeting.from, now_us);
	bool known = peer != NULL;
	if (!peer && tell_removed(seal, greeting.from, from, datagram.length, now_us))
		return;
	if (!peer)
		peer = introduce(seal, greeting.from, card, now_us);
	if (!peer)
		return;
	if (!seal_greeting_check(&seal->crypto, peer->secret, &greeting, datagram)) {
		seal->counters.forged++;
		return;
	}
	if (known && card.length > 0 && is_card_of(card, greeting.from)) {
		seal->host.card(seal->host.context, card);
		peer = seal_peer_get(seal, greeting.from, now_us); /* the host may have had us forget it */
		if (!peer)
			return;
	}
	seal_peer_touch(seal, peer);
	consider(seal, peer, &greeting, from, now_us);
}

/* ---- Receiving data ---------------------------------------------------------------------------------------------- */

/* There is no such session here (any more). That is not proven: whatever is sent goes to the site itself. */
static void answer_stale(struct trust_seal *seal, struct seal_peer *peer, const struct seal_data *data, uint64_t now_us)
{
	seal->counters.stale++;
	if (now_us < peer->stale_us)
		return;
	peer->stale_us = now_us + STALE_EVERY_US;
	/* Late, or lost its way: then it will say so. With our number but another of its own it has surely lost its way. */
	bool perhaps_late = peer->mine != 0 && data->to_number != peer->mine;
	struct seal_greeting late = {.kind = SEAL_GREETING, .number = peer->mine, .echo = peer->theirs};
	struct seal_greeting lost = {.kind = SEAL_LOST, .number = peer->offer, .echo = data->next_number};
	seal->host.send(seal->host.context, peer->id, write_greeting(seal, peer, perhaps_late ? late : lost, STR("")));
}

static void deliver(struct trust_seal *seal, struct seal_peer *peer, const struct seal_data *data, struct str datagram)
{
	seal_window_mark(&peer->window, data->counter);
	peer->unheard = 0;
	seal_peer_touch(seal, peer);
	seal->counters.opened++;
	seal->host.opened(seal->host.context, data->from,
	                  str_make((const char *)seal->plain, datagram.length - TRUST_SEAL_OVERHEAD));
}

/* The first datagram of the session that we offered. */
static void receive_first(struct trust_seal *seal, struct seal_peer *peer, const struct seal_data *data,
                          struct str datagram)
{
	unsigned char key[SEAL_KEY_BYTES];
	seal_data_key(&seal->crypto, peer->secret, seal->self, data, key);
	bool good = seal_data_open(&seal->crypto, key, data, datagram, seal->plain);
	OPENSSL_cleanse(key, sizeof(key));
	if (!good) {
		seal->counters.forged++;
		return;
	}
	seal_session_start(seal, peer, data->from_number);
	send_waiting(seal, peer);
	deliver(seal, peer, data, datagram);
}

static void receive_data(struct trust_seal *seal, const struct site_address *from, struct str datagram, uint64_t now_us)
{
	struct seal_data data;
	if (!seal_data_read(datagram, &data) || data.from == seal->self) {
		seal->counters.malformed++;
		return;
	}
	struct seal_peer *peer = known_peer(seal, data.from, now_us);
	if (!peer && tell_removed(seal, data.from, from, datagram.length, now_us))
		return;
	if (!peer)
		seal->counters.strangers++;
	else if (data.to_number == peer->offer)
		receive_first(seal, peer, &data, datagram);
	else if (data.to_number != peer->mine || data.from_number != peer->theirs)
		answer_stale(seal, peer, &data, now_us);
	else if (!seal_window_fresh(&peer->window, data.counter))
		seal->counters.replayed++;
	else if (!seal_data_open(&seal->crypto, peer->receive_key, &data, datagram, seal->plain))
		seal->counters.forged++;
	else
		deliver(seal, peer, &data, datagram);
}

/* ---- Receiving records ------------------------------------------------------------------------------------------- */

static void receive_record(struct trust_seal *seal, const struct site_address *from, struct str datagram,
                           uint64_t now_us)
{
	struct str bytes = str_make(datagram.at + SEAL_RECORD_BYTES, datagram.length - SEAL_RECORD_BYTES);
	struct site_record record;
	bool readable = bytes.length <= LIMIT_SITE_CARD_BYTES && site_record_parse(bytes, &record, NULL) == 0;
	bool card = readable && record.kind == SITE_CARD && record.subject != seal->self;
	bool removal = readable && record.kind == SITE_REMOVAL && record.subject == seal->self;
	bool root = readable && record.kind == SITE_ROOT; /* the one that signed a removal, and was not known here yet */
	if (!card && !removal && !root) {
		seal->counters.malformed++;
		return;
	}
	if (card && tell_removed(seal, record.subject, from, datagram.length, now_us))
		return;
	if (!within_rate(&seal->introduce_us, INTRODUCE_EVERY_US, INTRODUCE_BURST_US, now_us)) {
		seal->counters.limited++;
		return;
	}
	seal->host.record(seal->host.context, bytes);
	if (!card)
		return;
	if (seal_peer_get(seal, record.subject, now_us))
		seal->refusals[record.subject % SEAL_REFUSALS].until_us = 0;
	else
		seal->counters.strangers++;
}

void trust_seal_receive(struct trust_seal *seal, const struct site_address *from, struct str datagram, uint64_t now_us)
{
	trust_seal_tick(seal, now_us);
	if (datagram.length < 2 || datagram.length > LIMIT_SITE_DATAGRAM_BYTES ||
	    (unsigned char)datagram.at[0] != SEAL_MARK)
		seal->counters.malformed++;
	else if (datagram.at[1] == SEAL_DATA)
		receive_data(seal, from, datagram, now_us);
	else if (datagram.at[1] == SEAL_RECORD)
		receive_record(seal, from, datagram, now_us);
	else /* which refuses other kinds */
		receive_greeting(seal, from, datagram, now_us);
}
