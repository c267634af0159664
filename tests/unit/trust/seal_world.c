#include "seal_world.h"

/* ---- The host of a seal ------------------------------------------------------------------------------------------ */

static struct str find_certificate(const struct node *node, site_id id)
{
	for (int i = 0; i < node->known_count; i++)
		if (node->known_ids[i] == id)
			return buf_str(&node->known[i]);
	return STR("");
}

static struct str host_certificate(void *context, site_id id)
{
	struct node *node = context;
	node->asked++;
	return find_certificate(node, id);
}

static void host_card(void *context, struct str bytes)
{
	struct node *node = context;
	struct site_record record;
	struct site_card card;
	struct arena arena;
	struct err err;
	node->cards++;
	arena_init(&arena, 0);
	assert_int_equal(site_record_parse(bytes, &record, &err), 0);
	if (trust_check_record(node->world->roots, &record, NOW_MS, &err) &&
	    site_card_parse(&arena, record.body, &card, &err) == 0 && find_certificate(node, record.subject).length == 0)
		know(node, record.subject, card.certificate);
	arena_free(&arena);
}

static void host_record(void *context, struct str bytes)
{
	struct node *node = context;
	struct site_record record;
	assert_int_equal(site_record_parse(bytes, &record, NULL), 0);
	if (record.kind == SITE_CARD)
		host_card(context, bytes);
	else
		node->outcast += trust_check_record(node->world->roots, &record, NOW_MS, NULL);
}

static struct str host_removal(void *context, site_id id)
{
	const struct node *node = context;
	return id == node->removed ? buf_str(&node->removal) : STR("");
}

static void push(struct world *world, int from, int to, struct str bytes)
{
	struct packet packet = {.from = from, .to = to};
	assert_true(bytes.length <= LIMIT_SITE_DATAGRAM_BYTES);
	assert_true(world->queue_end < PACKETS_MOST && world->tape_end < PACKETS_MOST);
	if (world->recording) {
		buf_put(&packet.bytes, bytes);
		world->tape[world->tape_end++] = packet;
	}
	packet.bytes = (struct buf){0};
	buf_put(&packet.bytes, bytes);
	world->queue[world->queue_end++] = packet;
}

static int index_of(const struct node *node)
{
	return (int)(node - node->world->nodes);
}

static void host_send(void *context, site_id to, struct str datagram)
{
	struct node *node = context;
	for (int i = 0; i < NODES; i++)
		if (id_at(node->world, i) == to)
			push(node->world, index_of(node), i, datagram);
}

static void host_reply(void *context, const struct site_address *to, struct str datagram)
{
	struct node *node = context;
	push(node->world, index_of(node), to->ip[3], datagram);
}

static void host_opened(void *context, site_id from, struct str bytes)
{
	struct node *node = context;
	struct world *world = node->world;
	uint32_t number;
	assert_true(bytes.length >= sizeof(number));
	memcpy(&number, bytes.at, sizeof(number));
	assert_true(number < world->messages);
	world->seen[number]++;
	assert_int_equal(world->seen[number], 1); /* never twice */
	node->opened++;
	node->last_from = from;
	buf_clear(&node->last);
	buf_put(&node->last, bytes);
}

static void start(struct node *node)
{
	struct trust_seal_host host = {.context = node,
	                               .certificate = host_certificate,
	                               .card = host_card,
	                               .record = host_record,
	                               .removal = host_removal,
	                               .send = host_send,
	                               .reply = host_reply,
	                               .opened = host_opened};
	node->seal = trust_seal_new(node->holder.key, 0x1234567812345678 + ++node->world->boots, &host);
	trust_seal_set_card(node->seal, buf_str(&node->card));
}

/* ---- The world --------------------------------------------------------------------------------------------------- */

static void write_card(struct node *node, const char *name, struct site_address address)
{
	struct buf body = {0}, signature = {0};
	struct err err;
	struct site_card card = {
		.name = str_of(name), .address = address, .version = STR("1"), .certificate = buf_str(&node->holder.der)};
	assert_int_equal(site_card_encode(&body, &card, &err), 0);
	site_record_begin(&node->card, SITE_CARD, id_of(&node->holder), 1, buf_str(&body));
	trust_sign(node->holder.key, buf_str(&node->card), &signature);
	site_record_finish(&node->card, buf_str(&signature));
	buf_free(&body);
	buf_free(&signature);
}

struct world *world_new(void)
{
	static const char *const names[NODES] = {"Alma", "Bern", "Cork", "Dole"};
	struct world *world = calloc(1, sizeof(*world));
	assert_non_null(world);
	world->root = make_root("root");
	world->roots = roots_of(&world->root, NULL);
	world->recording = true;
	world->now_us = 1000000;
	for (int i = 0; i < NODES; i++) {
		struct node *node = &world->nodes[i];
		node->world = world;
		node->holder = make_site(&world->root, names[i]);
		write_card(node, names[i], address_at(i));
		start(node);
	}
	return world;
}

void world_free(struct world *world)
{
	for (int i = 0; i < NODES; i++) {
		struct node *node = &world->nodes[i];
		trust_seal_free(node->seal);
		free_holder(&node->holder);
		buf_free(&node->card);
		buf_free(&node->removal);
		buf_free(&node->last);
		for (int k = 0; k < node->known_count; k++)
			buf_free(&node->known[k]);
	}
	for (size_t i = world->queue_start; i < world->queue_end; i++)
		buf_free(&world->queue[i].bytes);
	for (size_t i = 0; i < world->tape_end; i++)
		buf_free(&world->tape[i].bytes);
	free_holder(&world->root);
	trust_roots_free(world->roots);
	free(world);
}

void know(struct node *node, site_id id, struct str certificate)
{
	assert_true(node->known_count < KNOWN_MOST);
	node->known_ids[node->known_count] = id;
	node->known[node->known_count] = (struct buf){0};
	buf_put(&node->known[node->known_count++], certificate);
}

void meet(struct world *world, int node, int other)
{
	know(&world->nodes[node], id_at(world, other), buf_str(&world->nodes[other].holder.der));
}

void unknow(struct world *world, int node, int other)
{
	struct node *at = &world->nodes[node];
	for (int i = 0; i < at->known_count; i++) {
		if (at->known_ids[i] == id_at(world, other)) {
			buf_free(&at->known[i]);
			at->known[i] = at->known[--at->known_count];
			at->known_ids[i] = at->known_ids[at->known_count];
		}
	}
}

void meet_all(struct world *world)
{
	for (int i = 0; i < NODES; i++)
		for (int j = 0; j < NODES; j++)
			if (i != j)
				meet(world, i, j);
}

void restart(struct world *world, int index)
{
	struct node *node = &world->nodes[index];
	node->before = counted(world, index);
	trust_seal_free(node->seal);
	start(node);
}

site_id id_at(struct world *world, int node)
{
	return id_of(&world->nodes[node].holder);
}

struct site_address address_at(int node)
{
	return (struct site_address){.family = 4, .ip = {10, 0, 0, (uint8_t)node}, .port = 7946};
}

struct seal_peer *peer_at(struct world *world, int node, int other)
{
	return seal_peer_find(world->nodes[node].seal, id_at(world, other));
}

struct trust_seal_counters counted(struct world *world, int node)
{
	struct trust_seal_counters sum = world->nodes[node].before;
	const struct trust_seal_counters *now = trust_seal_counters(world->nodes[node].seal);
#define X(field, name, help) sum.field += now->field;
	TRUST_SEAL_COUNTERS(X)
#undef X
	return sum;
}

uint32_t say(struct world *world, int from, int to)
{
	char bytes[40] = {0};
	uint32_t number = world->messages++;
	assert_true(number < MESSAGES_MOST);
	memcpy(bytes, &number, sizeof(number));
	trust_seal_send(world->nodes[from].seal, id_at(world, to), str_make(bytes, sizeof(bytes)), world->now_us);
	return number;
}

bool arrived(struct world *world, uint32_t message)
{
	return world->seen[message] == 1;
}

/* ---- The network ------------------------------------------------------------------------------------------------- */

size_t in_flight(const struct world *world)
{
	return world->queue_end - world->queue_start;
}

static bool take(struct world *world, struct packet *packet)
{
	if (in_flight(world) == 0)
		return false;
	*packet = world->queue[world->queue_start++];
	if (in_flight(world) == 0)
		world->queue_start = world->queue_end = 0;
	return true;
}

/* In memory of its own size, so that a read past its end is noticed. */
void give(struct world *world, int to, int from, struct str bytes)
{
	struct site_address address = address_at(from);
	char *exact = malloc(bytes.length ? bytes.length : 1);
	assert_non_null(exact);
	if (bytes.length)
		memcpy(exact, bytes.at, bytes.length);
	trust_seal_receive(world->nodes[to].seal, &address, str_make(exact, bytes.length), world->now_us);
	free(exact);
}

bool carry_one(struct world *world)
{
	struct packet packet;
	if (!take(world, &packet))
		return false;
	give(world, packet.to, packet.from, buf_str(&packet.bytes));
	buf_free(&packet.bytes);
	return true;
}

void lose_one(struct world *world)
{
	struct packet packet;
	assert_true(take(world, &packet));
	buf_free(&packet.bytes);
}

void carry_all(struct world *world)
{
	int steps = 0;
	while (carry_one(world))
		assert_true(++steps < 5000);
}

void pass(struct world *world, uint64_t us)
{
	uint64_t end_us = world->now_us + us;
	carry_all(world);
	while (world->now_us < end_us) {
		uint64_t next_us = end_us;
		for (int i = 0; i < NODES; i++)
			if (trust_seal_due(world->nodes[i].seal) < next_us)
				next_us = trust_seal_due(world->nodes[i].seal);
		world->now_us = next_us > world->now_us ? next_us : world->now_us + 1;
		for (int i = 0; i < NODES; i++)
			trust_seal_tick(world->nodes[i].seal, world->now_us);
		carry_all(world);
	}
}
