/* Tables that are compared, and what a member that means ill can do with it. */
#include "site_test.h"

#include "base/bytes.h"

enum { MANY = 1500 };

/* A card of a site that is in no world. */
static void add_stranger(struct world *world, uint32_t at, uint32_t number)
{
	char name[32];
	snprintf(name, sizeof(name), "far%u", number);
	struct site_card card = {.name = str_of(name),
	                         .address = {.family = 4, .ip = {192, 0, 2, 1}, .port = 1},
	                         .version = STR("0.1"),
	                         .certificate = STR("")};
	struct buf body = {0}, record = {0};
	assert_ok(site_card_encode(&body, &card, NULL));
	site_record_begin(&record, SITE_CARD, 0x70000 + number, 1, buf_str(&body));
	site_record_finish(&record, SIGNED);
	assert_ok(world_add(world, at, &record));
	uint32_t found = site_find(world->nodes[at].site, 0x70000 + number);
	member_set_state(world->nodes[at].site, found, SITE_LOST, 1);
	news_remove(world->nodes[at].site, found); /* nobody hears of it by rumour */
	buf_free(&body);
	buf_free(&record);
}

static bool both_know_all(struct world *world)
{
	return site_count(world->nodes[0].site) == site_count(world->nodes[1].site);
}

/* From an empty table to a full one, at the speed of the path. */
static void a_new_site_gets_everything(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_start(world, 0);
	for (uint32_t i = 0; i < MANY; i++)
		add_stranger(world, 0, i);
	world_start(world, 1);
	world->nodes[1].site->host.event = NULL;
	world_introduce(world, 1, 0);
	assert_true(world_until(world, both_know_all, 30));
	assert_int_equal(site_count(world->nodes[1].site), MANY + 2);
	world_run(world, 10 * (uint64_t)SECOND_US);
	assert_memory_equal(world->nodes[0].site->digest, world->nodes[1].site->digest,
	                    sizeof(world->nodes[0].site->digest));
	world_free(world);
}

static void equal_tables_cost_one_datagram(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	world_run(world, 60 * (uint64_t)SECOND_US);
	struct site *site = world->nodes[0].site, *other = world->nodes[1].site;
	struct buf digest = {0};
	for (uint32_t i = 0; i < SITE_BUCKETS; i++)
		put_number(&digest, site->digest[i] & UINT32_MAX, 4);
	uint64_t sent = site_counters(other)->sent;
	exchange_answer(other, world_id(0), buf_str(&digest));
	assert_int_equal(site_counters(other)->sent, sent);
	digest.at[0] = (char)(digest.at[0] ^ 1); /* one bucket differs */
	exchange_answer(other, world_id(0), buf_str(&digest));
	assert_int_equal(site_counters(other)->sent, sent + 1);
	buf_free(&digest);
	world_free(world);
}

/* Digests are kept up as things change; they are what the table gives. */
static void digests_are_true(void **state)
{
	(void)state;
	struct world *world = world_of(6);
	struct buf record = {0};
	world_removal(world, 5, SITE_REVOKE, 3, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	buf_clear(&record);
	world_root(0x77, 1, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	world_crash(world, 4);
	world_run(world, 20 * (uint64_t)SECOND_US);
	world_set_card(world, 2);
	world_run(world, 5 * (uint64_t)SECOND_US);
	struct site *site = world->nodes[0].site;
	uint64_t kept[SITE_BUCKETS];
	memcpy(kept, site->digest, sizeof(kept));
	memset(site->digest, 0, sizeof(kept));
	for (uint32_t i = 0; i < site_count(site); i++)
		digest_toggle_member(site, i);
	for (uint32_t i = 0; i < site->removals_count; i++)
		digest_toggle(site, &(struct item){SITE_REMOVAL, site->removals[i]->subject, site->removals[i]->version, 0, 0});
	for (uint32_t i = 0; i < site->roots_count; i++)
		digest_toggle(site, &(struct item){SITE_ROOT, site->roots[i]->subject, site->roots[i]->version, 0, 0});
	assert_memory_equal(kept, site->digest, sizeof(kept));
	assert_memory_equal(kept, world->nodes[1].site->digest, sizeof(kept));
	buf_free(&record);
	world_free(world);
}

/* ---- Ill will -------------------------------------------------------------------------------------------------------- */

static void head(struct buf *out, uint8_t type)
{
	buf_clear(out);
	message_begin(out,
	              &(struct message){.type = type, .incarnation = 1, .card_version = 1, .sequence = 1, .target = 5});
}

/* Rumours of sites that do not exist: a bounded number of questions, and no memory. */
static void rumours_of_nobody_are_bounded(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct site *site = world->nodes[0].site;
	struct buf bytes = {0};
	uint64_t sent = site_counters(site)->sent;
	for (uint64_t i = 0; i < 10000; i++) {
		head(&bytes, TYPE_NEWS);
		size_t at = section_begin(&bytes, SECTION_RUMOURS);
		for (uint64_t j = 0; j < 30; j++)
			put_status(&bytes, &(struct status){0x90000 + 30 * i + j, 1, SITE_ALIVE, 1, 0});
		section_end(&bytes, at);
		site_receive(site, world_id(1), buf_str(&bytes), world->now);
	}
	assert_int_equal(site_count(site), 3);
	assert_true(site->wants_count <= SITE_WANTS);
	assert_in_range(site_counters(site)->sent - sent, 1, 10);
	buf_free(&bytes);
	world_free(world);
}

/* Questions without end: few are answered. */
static void questions_are_answered_at_a_bounded_rate(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct site *site = world->nodes[0].site;
	struct buf bytes = {0};
	head(&bytes, TYPE_NEWS);
	size_t at = section_begin(&bytes, SECTION_WANT);
	for (uint32_t i = 0; i < SITE_WANTS_SENT; i++) {
		put_number(&bytes, SITE_CARD, 1);
		put_number(&bytes, world_id(i % 3), 8);
	}
	section_end(&bytes, at);
	uint64_t sent = site_counters(site)->sent;
	for (int i = 0; i < 10000; i++)
		site_receive(site, world_id(1), buf_str(&bytes), world->now);
	assert_in_range(site_counters(site)->sent - sent, 1, SITE_ANSWERS_BURST + 10);
	buf_free(&bytes);
	world_free(world);
}

static void probes_for_others_are_bounded(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct site *site = world->nodes[0].site;
	struct buf bytes = {0};
	uint64_t sent = site_counters(site)->sent;
	for (uint32_t i = 0; i < 10000; i++) {
		buf_clear(&bytes);
		message_begin(&bytes,
		              &(struct message){
						  .type = TYPE_ASK, .incarnation = 1, .card_version = 1, .sequence = i, .target = world_id(2)});
		site_receive(site, world_id(1), buf_str(&bytes), world->now);
	}
	assert_in_range(site_counters(site)->sent - sent, 1, SITE_RELAYS + 10);
	buf_free(&bytes);
	world_free(world);
}

static void who_is_not_known_is_not_answered(void **state)
{
	(void)state;
	struct world *world = world_of(2);
	struct site *site = world->nodes[0].site;
	struct buf bytes = {0};
	head(&bytes, TYPE_PING);
	uint64_t sent = site_counters(site)->sent;
	site_receive(site, 0x123456, buf_str(&bytes), world->now);
	site_receive(site, 0, buf_str(&bytes), world->now);
	site_receive(site, world_id(0), buf_str(&bytes), world->now);
	site_receive(site, world_id(1), STR("nonsense"), world->now);
	assert_int_equal(site_counters(site)->sent, sent);
	assert_int_equal(site_counters(site)->malformed, 1);
	buf_free(&bytes);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_site_gets_everything),
		cmocka_unit_test(equal_tables_cost_one_datagram),
		cmocka_unit_test(digests_are_true),
		cmocka_unit_test(rumours_of_nobody_are_bounded),
		cmocka_unit_test(questions_are_answered_at_a_bounded_rate),
		cmocka_unit_test(probes_for_others_are_bounded),
		cmocka_unit_test(who_is_not_known_is_not_answered),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
