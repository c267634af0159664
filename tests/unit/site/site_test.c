#include "site_test.h"

#include "base/check.h"

static uint64_t next_random(struct world *world)
{
	world->random ^= world->random >> 12;
	world->random ^= world->random << 25;
	world->random ^= world->random >> 27;
	return world->random * 0x2545f4914f6cdd1d;
}

/* ---- The host ------------------------------------------------------------------------------------------------------ */

site_id world_id(uint32_t number)
{
	return UINT64_C(0x1111111100000001) + number;
}

static void fly(struct world *world, uint32_t from, uint32_t to, struct str bytes)
{
	if (world->flying_count == world->flying_capacity) {
		world->flying_capacity = world->flying_capacity * 2 + 16;
		world->flying = realloc(world->flying, world->flying_capacity * sizeof(*world->flying));
		CHECK(world->flying != NULL);
	}
	struct datagram *datagram = &world->flying[world->flying_count++];
	*datagram = (struct datagram){.at_us = world->now.us + world->one_way_us[from][to] + world->waits_us[to],
	                              .order = world->order++,
	                              .from = from,
	                              .to = to};
	buf_put(&datagram->bytes, bytes);
}

static void host_send(void *context, site_id to, const struct site_address *address, struct str bytes)
{
	struct node *node = context;
	struct world *world = node->world;
	assert_in_range(bytes.length, 1, LIMIT_SITE_MESSAGE_BYTES);
	assert_int_equal(address->family, 4);
	if (address->ip[0] != 10)
		return; /* nobody lives there */
	uint32_t number = address->ip[3];
	assert_true(number < world->count && world_id(number) == to);
	node->sent_to[number]++;
	if (world->tapped) {
		buf_put_char(&world->tap, (char)(unsigned char)(bytes.length >> 8));
		buf_put_char(&world->tap, (char)(unsigned char)bytes.length);
		buf_put(&world->tap, bytes);
	}
	double luck = (double)(next_random(world) >> 11) * 0x1p-53;
	bool moved = address->ip[1] != world->nodes[number].moves;
	if (!world->cut[node->number][number] && !moved && luck >= world->loss)
		fly(world, node->number, number, bytes);
}

static bool host_verify(void *context, const struct site_record *record)
{
	struct node *node = context;
	node->world->verified++;
	return str_equal(record->signature, SIGNED);
}

static uint64_t host_random(void *context)
{
	return next_random(((struct node *)context)->world);
}

static void host_event(void *context, const struct site_event *event)
{
	struct node *node = context;
	node->events[event->kind]++;
	if (event->kind == SITE_EVENT_OUTCAST)
		snprintf(node->outcast, sizeof(node->outcast), "%.*s", STR_FMT(event->text));
	uint64_t number = event->subject - world_id(0);
	if (event->kind == SITE_EVENT_LOST && number < WORLD_SITES)
		node->lost_of[number]++;
}

/* ---- Records ------------------------------------------------------------------------------------------------------- */

void world_card(struct world *world, uint32_t number, struct buf *record)
{
	struct node *node = &world->nodes[number];
	struct site_offer offer = {STR("image"), STR("1")};
	struct site_tag tag = {STR("region"), STR("north")};
	struct site_card card = {.name = str_of(node->name),
	                         .address = {.family = 4, .ip = {10, node->moves, 0, (uint8_t)number}, .port = 7000},
	                         .version = STR("0.1"),
	                         .born_ms = node->born_ms,
	                         .certificate = STR("certificate"),
	                         .services = &offer,
	                         .services_count = 1,
	                         .tags = &tag,
	                         .tags_count = 1};
	struct buf body = {0};
	assert_ok(site_card_encode(&body, &card, NULL));
	site_record_begin(record, SITE_CARD, node->id, node->version, buf_str(&body));
	site_record_finish(record, SIGNED);
	buf_free(&body);
}

void world_set_card(struct world *world, uint32_t number)
{
	struct buf record = {0};
	struct err err = {0};
	world->nodes[number].version++;
	world_card(world, number, &record);
	int code = site_set_card(world->nodes[number].site, buf_str(&record), world->now, &err);
	if (code)
		print_error("%s\n", err.text);
	assert_ok(code);
	buf_free(&record);
}

void world_removal(struct world *world, uint32_t number, enum site_removal_kind kind, uint64_t version,
                   struct str signature, struct buf *record)
{
	struct site_removal removal = {
		.kind = kind, .name = str_of(world->nodes[number].name), .signer = 99, .wall_ms = world->now.wall_ms};
	struct buf body = {0};
	site_removal_encode(&body, &removal);
	site_record_begin(record, SITE_REMOVAL, world_id(number), version, buf_str(&body));
	site_record_finish(record, signature);
	buf_free(&body);
}

void world_root(site_id subject, uint64_t version, struct str signature, struct buf *record)
{
	struct site_root root = {.trusted = true, .certificate = STR("root certificate"), .signer = 99};
	struct buf body = {0};
	site_root_encode(&body, &root);
	site_record_begin(record, SITE_ROOT, subject, version, buf_str(&body));
	site_record_finish(record, signature);
	buf_free(&body);
}

int world_add(struct world *world, uint32_t at, const struct buf *record)
{
	return site_add_record(world->nodes[at].site, buf_str(record), world->now, NULL);
}

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

struct world *world_new(uint32_t sites)
{
	struct world *world = calloc(1, sizeof(*world));
	CHECK(world != NULL && sites <= WORLD_SITES);
	world->count = sites;
	world->random = 42;
	world->timing = site_timing_default();
	world->now = (struct site_now){.us = SECOND_US, .wall_ms = INT64_C(1700000000000)};
	for (uint32_t i = 0; i < sites; i++) {
		struct node *node = &world->nodes[i];
		*node = (struct node){.world = world, .number = i, .id = world_id(i), .born_ms = 1000 + i};
		snprintf(node->name, sizeof(node->name), "Site%u", i);
		for (uint32_t j = 0; j < sites; j++)
			world->one_way_us[i][j] = 10000;
	}
	return world;
}

void world_free(struct world *world)
{
	for (uint32_t i = 0; i < world->count; i++)
		site_free(world->nodes[i].site);
	for (size_t i = 0; i < world->flying_count; i++)
		buf_free(&world->flying[i].bytes);
	free(world->flying);
	buf_free(&world->tap);
	free(world);
}

void world_make(struct world *world, uint32_t number)
{
	struct node *node = &world->nodes[number];
	struct site_options options = {.self = node->id, .timing = world->timing, .hash_key = {1, 2}};
	struct site_host host = {node, host_send, host_verify, host_random, host_event};
	assert_null(node->site);
	node->site = site_new(&options, &host);
}

void world_start(struct world *world, uint32_t number)
{
	world_make(world, number);
	world_set_card(world, number);
}

void world_crash(struct world *world, uint32_t number)
{
	site_free(world->nodes[number].site);
	world->nodes[number].site = NULL;
}

void world_introduce(struct world *world, uint32_t to, uint32_t whom)
{
	struct buf record = {0};
	world_card(world, whom, &record);
	assert_ok(world_add(world, to, &record));
	buf_free(&record);
}

void world_start_some(struct world *world, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		world_start(world, i);
		if (i > 0)
			world_introduce(world, i, 0);
	}
}

void world_cut(struct world *world, uint32_t a, uint32_t b, bool cut)
{
	world->cut[a][b] = world->cut[b][a] = cut;
}

/* ---- Time ---------------------------------------------------------------------------------------------------------- */

static size_t first_to_arrive(const struct world *world)
{
	size_t first = 0;
	for (size_t i = 1; i < world->flying_count; i++) {
		const struct datagram *a = &world->flying[i], *b = &world->flying[first];
		if (a->at_us < b->at_us || (a->at_us == b->at_us && a->order < b->order))
			first = i;
	}
	return first;
}

static uint32_t first_due(const struct world *world, uint64_t *due_us)
{
	uint32_t first = SITE_NONE;
	*due_us = UINT64_MAX;
	for (uint32_t i = 0; i < world->count; i++) {
		uint64_t due = world->nodes[i].site ? site_due(world->nodes[i].site) : UINT64_MAX;
		if (due < *due_us) {
			*due_us = due;
			first = i;
		}
	}
	return first;
}

static void set_time(struct world *world, uint64_t us)
{
	if (us <= world->now.us)
		return;
	world->now.wall_ms += (int64_t)(us / 1000 - world->now.us / 1000);
	world->now.us = us;
}

static void arrive(struct world *world, size_t at)
{
	struct datagram datagram = world->flying[at];
	world->flying[at] = world->flying[--world->flying_count];
	set_time(world, datagram.at_us);
	struct site_now now = world->now;
	now.waited_us = world->waits_us[datagram.to];
	if (world->nodes[datagram.to].site)
		site_receive(world->nodes[datagram.to].site, world_id(datagram.from), buf_str(&datagram.bytes), now);
	buf_free(&datagram.bytes);
}

/* The next thing that happens; false if nothing does before `until_us`. */
static bool step(struct world *world, uint64_t until_us)
{
	uint64_t due_us;
	uint32_t number = first_due(world, &due_us);
	size_t at = first_to_arrive(world);
	uint64_t arrival_us = world->flying_count > 0 ? world->flying[at].at_us : UINT64_MAX;
	if (due_us >= until_us && arrival_us >= until_us)
		return false;
	if (arrival_us <= due_us) {
		arrive(world, at);
	} else {
		set_time(world, due_us);
		site_tick(world->nodes[number].site, world->now);
		assert_true(site_due(world->nodes[number].site) > world->now.us);
	}
	return true;
}

void world_run(struct world *world, uint64_t us)
{
	uint64_t until_us = world->now.us + us;
	while (step(world, until_us))
		;
	set_time(world, until_us);
}

bool world_until(struct world *world, bool (*condition)(struct world *world), unsigned seconds)
{
	for (unsigned i = 0; i < 10 * seconds && !condition(world); i++)
		world_run(world, SECOND_US / 10);
	return condition(world);
}

struct world *world_of(uint32_t sites)
{
	struct world *world = world_new(sites);
	for (uint32_t i = 0; i < sites; i++) {
		world_start(world, i);
		if (i > 0)
			world_introduce(world, i, 0);
		world_run(world, SECOND_US / 50);
	}
	assert_true(world_until(world, world_agrees, 30));
	return world;
}

/* ---- What they see -------------------------------------------------------------------------------------------------- */

enum site_state world_state(const struct world *world, uint32_t at, uint32_t of)
{
	uint32_t number = site_find(world->nodes[at].site, world_id(of));
	if (number == SCOPE_NO_INDEX)
		return SITE_STATES;
	struct site_member member;
	site_member(world->nodes[at].site, number, &member);
	assert_int_equal(member.id, world_id(of));
	return member.state;
}

bool world_all_see(const struct world *world, uint32_t of, enum site_state state)
{
	for (uint32_t i = 0; i < world->count; i++)
		if (i != of && world->nodes[i].site && world_state(world, i, of) != state)
			return false;
	return true;
}

bool world_agrees(struct world *world)
{
	for (uint32_t i = 0; i < world->count; i++)
		if (world->nodes[i].site && !world_all_see(world, i, SITE_ALIVE))
			return false;
	return true;
}
