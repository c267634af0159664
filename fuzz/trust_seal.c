/* Two sites and somebody on the network between them, who does what the input says: lets datagrams through, loses,
 * repeats, cuts and changes them, makes some up, also ones with a right code, as another site with a good certificate
 * would. What is opened was said, by whom it seems, and is opened once. Nothing that was made up moves more than it
 * may. */
#include "trust_fuzz.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { TAPE_MOST = 64, STEPS_MOST = 200, MESSAGES_MOST = 256 };

struct packet {
	int to;
	size_t length;
	unsigned char bytes[LIMIT_SITE_DATAGRAM_BYTES];
};

struct node {
	int index;
	struct trust_seal *seal;
};

static struct node nodes[2];
static struct packet tape[TAPE_MOST]; /* the last ones that were sent */
static uint32_t tape_end;
static uint32_t taken;              /* of the tape: what comes after it is in flight */
static uint8_t said[MESSAGES_MOST]; /* by whom: 1, 2 */
static bool seen[MESSAGES_MOST];
static uint32_t messages;
static uint64_t now_us;
static uint64_t boots;
static size_t answer_bytes; /* sent since the last datagram came in */
static bool waiting;        /* before it */

static const struct fuzz_holder *holder_of(int index)
{
	return &fuzz_holders()[index == 0 ? FUZZ_A : FUZZ_B];
}

static struct str host_certificate(void *context, site_id id)
{
	struct node *node = context;
	const struct fuzz_holder *other = holder_of(1 - node->index);
	return id == trust_key_id(other->key) ? buf_str(&other->der) : STR("");
}

static void host_card(void *context, struct str record)
{
	(void)context;
	CHECK(record.length <= LIMIT_SITE_CARD_BYTES);
}

static struct str host_removal(void *context, site_id id)
{
	(void)context, (void)id;
	return STR("");
}

static void keep(struct node *node, struct str datagram)
{
	struct packet *packet = &tape[tape_end++ % TAPE_MOST];
	CHECK(datagram.length <= LIMIT_SITE_DATAGRAM_BYTES);
	packet->to = 1 - node->index;
	packet->length = datagram.length;
	memcpy(packet->bytes, datagram.at, datagram.length);
	answer_bytes += datagram.length;
}

static void host_send(void *context, site_id to, struct str datagram)
{
	struct node *node = context;
	CHECK(to == trust_key_id(holder_of(1 - node->index)->key));
	keep(node, datagram);
}

static void host_reply(void *context, const struct site_address *to, struct str datagram)
{
	CHECK(to->family == 4);
	keep(context, datagram);
}

static void host_opened(void *context, site_id from, struct str bytes)
{
	struct node *node = context;
	CHECK(bytes.length == 1 && from == trust_key_id(holder_of(1 - node->index)->key));
	uint8_t number = (uint8_t)bytes.at[0];
	CHECK(number < messages && said[number] == 2 - node->index && !seen[number]);
	seen[number] = true;
}

static void start(int index)
{
	struct node *node = &nodes[index];
	struct trust_seal_host host = {.context = node,
	                               .certificate = host_certificate,
	                               .card = host_card,
	                               .record = host_card,
	                               .removal = host_removal,
	                               .send = host_send,
	                               .reply = host_reply,
	                               .opened = host_opened};
	trust_seal_free(node->seal);
	node->index = index;
	node->seal = trust_seal_new(holder_of(index)->key, ++boots, &host);
}

static void say(int from)
{
	if (messages == MESSAGES_MOST)
		return;
	char number = (char)messages;
	said[messages++] = (uint8_t)(from + 1);
	trust_seal_send(nodes[from].seal, trust_key_id(holder_of(1 - from)->key), str_make(&number, 1), now_us);
}

/* In memory of its own size. Nothing waits to be sent: then what comes back is no longer than what came. */
static void give(int to, const unsigned char *bytes, size_t length)
{
	struct site_address from = {.family = 4, .ip = {192, 0, 2, 1}, .port = 1};
	char *exact = malloc(length ? length : 1);
	CHECK(exact);
	if (length)
		memcpy(exact, bytes, length);
	trust_seal_tick(nodes[to].seal, now_us);
	waiting = nodes[to].seal->waiting != NULL;
	answer_bytes = 0;
	trust_seal_receive(nodes[to].seal, &from, str_make(exact, length), now_us);
	CHECK(waiting || answer_bytes <= length);
	free(exact);
}

/* ---- What the input may do --------------------------------------------------------------------------------------- */

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct input *input)
{
	if (input->left == 0)
		return 0;
	input->left--;
	return *input->at++;
}

static struct packet *choose(struct input *input)
{
	uint32_t kept = tape_end < TAPE_MOST ? tape_end : TAPE_MOST;
	return kept == 0 ? NULL : &tape[(tape_end - 1 - next(input) % kept) % TAPE_MOST];
}

static void change(struct input *input)
{
	struct packet *packet = choose(input), copy;
	if (!packet)
		return;
	copy = *packet;
	size_t at = (size_t)(next(input) << 8 | next(input)) % copy.length;
	copy.bytes[at] ^= next(input);
	give(copy.to, copy.bytes, copy.length);
	give(copy.to, copy.bytes, at);
}

/* Bytes of the input's, behind the beginning of a header. */
static void make_up(struct input *input, int to, bool coded)
{
	unsigned char bytes[LIMIT_SITE_DATAGRAM_BYTES + 8] = {SEAL_MARK, next(input)};
	size_t length = (size_t)(next(input) << 8 | next(input)) % sizeof(bytes);
	for (size_t i = 2; i < length && input->left > 0; i++)
		bytes[i] = next(input);
	struct seal_peer *peer = seal_peer_find(nodes[to].seal, trust_key_id(holder_of(1 - to)->key));
	trust_put_u64(bytes + 2, trust_key_id(holder_of(1 - to)->key));
	if (!coded || !peer || length < SEAL_GREETING_LEAST || length - SEAL_GREETING_LEAST > LIMIT_SITE_CARD_BYTES) {
		give(to, bytes, length);
		return;
	}
	/* What the other site itself could say, if it were out of its mind. */
	struct seal_greeting greeting = {.kind = bytes[1] % 2 ? SEAL_LOST : SEAL_GREETING,
	                                 .from = peer->id,
	                                 .to = trust_key_id(holder_of(to)->key),
	                                 .number = trust_get_u64(bytes + 18) | 1,
	                                 .echo = bytes[26] % 3 == 0   ? 0
	                                         : bytes[26] % 3 == 1 ? peer->offer
	                                                              : trust_get_u64(bytes + 26)};
	unsigned char out[LIMIT_SITE_DATAGRAM_BYTES];
	struct str card = str_make((char *)bytes + SEAL_GREETING_BYTES, length - SEAL_GREETING_LEAST);
	give(to, out, seal_greeting_write(&nodes[to].seal->crypto, peer->secret, &greeting, card, out));
}

static void step(struct input *input)
{
	uint8_t what = next(input);
	struct packet *packet;
	int who = what >> 7;
	switch (what & 15) {
	case 0: say(0); break;
	case 1: say(1); break;
	case 2: start(who); break;
	case 3: now_us += UINT64_C(1000) << (next(input) % 14); break;
	case 4: change(input); break;
	case 5: make_up(input, who, false); break;
	case 6: make_up(input, who, true); break;
	case 7: trust_seal_forget(nodes[who].seal, trust_key_id(holder_of(1 - who)->key)); break;
	case 8: taken += taken < tape_end; break; /* lost */
	case 9:                                   /* once more */
		packet = choose(input);
		if (packet)
			give(packet->to, packet->bytes, packet->length);
		break;
	default: /* the network does its work */
		taken = tape_end - taken > TAPE_MOST ? tape_end - TAPE_MOST : taken;
		if (taken < tape_end) {
			struct packet copy = tape[taken++ % TAPE_MOST];
			give(copy.to, copy.bytes, copy.length);
		}
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct input input = {data, size};
	tape_end = taken = messages = 0;
	now_us = boots = 1;
	memset(seen, 0, sizeof(seen));
	start(0);
	start(1);
	for (int steps = 0; steps < STEPS_MOST && input.left > 0; steps++)
		step(&input);
	for (int i = 0; i < 2; i++) {
		CHECK(nodes[i].seal->peers.count <= 1 && nodes[i].seal->queued <= SEAL_QUEUE_LENGTH);
		trust_seal_free(nodes[i].seal);
		nodes[i].seal = NULL;
	}
	return 0;
}
