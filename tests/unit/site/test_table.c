/* The table and what it is made of: indexes, lists, records that are shared. */
#include "site_test.h"

static uint64_t coarse_hash(const void *owner, uint32_t number)
{
	(void)owner;
	return number / 8; /* many collide */
}

static bool finds(const struct index *index, uint32_t number)
{
	uint32_t cursor = 0, found;
	while ((found = index_next(index, coarse_hash(NULL, number), &cursor)) != SITE_NONE)
		if (found == number)
			return true;
	return false;
}

static void an_index_finds_what_is_in_it(void **state)
{
	(void)state;
	enum { NUMBERS = 200 };
	struct index index = {.hash_of = coarse_hash};
	bool in[NUMBERS] = {false};
	uint64_t random = 7;
	assert_false(finds(&index, 1));
	for (int round = 0; round < 5000; round++) {
		random = random * 6364136223846793005 + 1442695040888963407;
		uint32_t number = (uint32_t)(random >> 33) % NUMBERS;
		if (in[number])
			index_remove(&index, number);
		else
			index_add(&index, number);
		in[number] = !in[number];
		if (round % 100 == 0)
			for (uint32_t i = 0; i < NUMBERS; i++)
				assert_int_equal(finds(&index, i), in[i]);
	}
	index_free(&index);
}

static void equal_records_are_kept_once_in_a_pool(void **state)
{
	(void)state;
	struct world *world = world_new(20);
	struct site_pool *pool = site_pool_new((struct hash_key){3, 4});
	struct held *held[2][20];
	for (uint32_t round = 0; round < 2; round++) {
		for (uint32_t i = 0; i < 20; i++) {
			struct buf bytes = {0};
			struct site_record record;
			world_card(world, i, &bytes);
			assert_ok(site_record_parse(buf_str(&bytes), &record, NULL));
			held[round][i] = held_new(pool, &record, NULL);
			assert_ptr_equal(held[round][i], held[0][i]);
			assert_true(str_equal(held_name(held[0][i]), str_of(world->nodes[i].name)));
			buf_free(&bytes);
		}
	}
	for (uint32_t i = 0; i < 40; i++)
		held_drop(held[i / 20][i % 20]);
	site_pool_free(pool);
	site_pool_free(NULL);
	world_free(world);
}

/* Each in turn, in an order of its own in each round. */
static void all_have_their_turn(void **state)
{
	(void)state;
	struct world *world = world_of(12);
	struct site *site = world->nodes[0].site;
	unsigned same = 0;
	uint32_t before[11] = {0};
	site->lists[LIST_LIVE].cursor = 0;
	for (int round = 0; round < 20; round++) {
		bool seen[12] = {false};
		for (uint32_t i = 0; i < 11; i++) {
			uint32_t number = table_next(site, LIST_LIVE);
			assert_false(seen[number]);
			seen[number] = true;
			same += before[i] == number;
			before[i] = number;
		}
	}
	assert_in_range(same, 1, 60); /* of 220; a fixed order would give 209 */
	world_free(world);
}

/* Numbers move when one goes: everything that points to them follows. */
static void numbers_stay_true_when_sites_go(void **state)
{
	(void)state;
	struct world *world = world_of(12);
	struct site *site = world->nodes[0].site;
	struct buf record = {0};
	for (uint32_t gone = 1; gone < 12; gone += 2) {
		buf_clear(&record);
		world_removal(world, gone, SITE_FORGET, 1, SIGNED, &record);
		assert_ok(world_add(world, 0, &record));
		for (uint32_t i = 0; i < site->members_count; i++) {
			struct site_member member;
			site_member(site, i, &member);
			assert_int_equal(site_find(site, member.id), i);
			assert_int_equal(site_find_name(site, member.name), i);
			const struct member *own = &site->members[i];
			if (own->list != LIST_NONE)
				assert_int_equal(site->lists[own->list].items[own->position], i);
			if (own->hot != SITE_NONE)
				assert_int_equal(site->hots[own->hot].member, i);
		}
	}
	assert_int_equal(site_count(site), 6);
	world_run(world, 5 * (uint64_t)SECOND_US);
	world_free(world);
	buf_free(&record);
}

static void states_have_names_and_a_meaning(void **state)
{
	(void)state;
	assert_string_equal(site_state_name(SITE_ALIVE), "alive");
	assert_string_equal(site_state_name(SITE_REVOKED), "revoked");
	assert_int_equal(site_scope_state(SITE_SUSPECT), SCOPE_PRESENT);
	assert_int_equal(site_scope_state(SITE_LOST), SCOPE_UNKNOWN);
	assert_int_equal(site_scope_state(SITE_LEFT), SCOPE_ABSENT);
	assert_true(sizeof(struct member) <= 80);
}

static void a_snapshot_shows_the_table(void **state)
{
	(void)state;
	struct world *world = world_of(4);
	struct buf record = {0};
	world_run(world, 20 * (uint64_t)SECOND_US);
	world_removal(world, 3, SITE_REVOKE, 1, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	struct site_snapshot *snapshot = site_snapshot_new(world->nodes[0].site, 1);
	assert_int_equal(snapshot->places_count, 3);
	assert_int_equal(snapshot->places[0].id, world_id(0));
	assert_true(site_snapshot_is_removed(snapshot, world_id(3)));
	uint32_t number = site_snapshot_find(snapshot, world_id(2));
	assert_true(str_equal(snapshot->places[number].name, STR("Site2")));
	assert_int_equal(snapshot->places[number].tags_count, 1);
	assert_in_range(snapshot->view.rtt_us(snapshot->view.context, 0, number), 19000, 21000);
	struct str version;
	uint32_t service = snapshot->view.find_service(snapshot->view.context, STR("image"));
	assert_true(snapshot->view.offers(snapshot->view.context, service, number, &version));
	assert_true(str_equal(version, STR("1")));
	site_snapshot_drop(snapshot);
	world_free(world);
	buf_free(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_index_finds_what_is_in_it),
		cmocka_unit_test(equal_records_are_kept_once_in_a_pool),
		cmocka_unit_test(all_have_their_turn),
		cmocka_unit_test(numbers_stay_true_when_sites_go),
		cmocka_unit_test(states_have_names_and_a_meaning),
		cmocka_unit_test(a_snapshot_shows_the_table),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
