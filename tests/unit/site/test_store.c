/* The table in a file, and back. */
#include "site_test.h"

#include "lib/golden.h"

#define GOLDEN "tests/unit/site/table.golden"

static struct world *stored_world(struct buf *stored)
{
	struct world *world = world_of(5);
	struct buf record = {0};
	world_run(world, 20 * (uint64_t)SECOND_US);
	world_removal(world, 4, SITE_REVOKE, 1, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	buf_clear(&record);
	world_root(0x5001, 1, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	site_leave(world->nodes[3].site, world->now);
	world_run(world, 5 * (uint64_t)SECOND_US);
	site_dump(world->nodes[0].site, stored);
	buf_free(&record);
	return world;
}

static int load(struct world *world, uint32_t number, struct str bytes, struct err *err)
{
	return site_load(world->nodes[number].site, bytes, world->now, err);
}

static void who_starts_again_knows_whom_it_knew(void **state)
{
	(void)state;
	struct buf stored = {0};
	struct world *world = stored_world(&stored);
	int64_t stored_ms = world->now.wall_ms;
	struct site_member before, member;
	site_member(world->nodes[0].site, site_find(world->nodes[0].site, world_id(1)), &before);
	world_crash(world, 0);
	world_start(world, 0);
	world->nodes[0].events[SITE_EVENT_JOINED] = 0;
	assert_ok(load(world, 0, buf_str(&stored), NULL));
	assert_int_equal(world->nodes[0].events[SITE_EVENT_JOINED], 0); /* that is no news */
	assert_int_equal(site_count(world->nodes[0].site), 5);
	assert_int_equal(world_state(world, 0, 1), SITE_LOST);
	assert_int_equal(world_state(world, 0, 3), SITE_LEFT);
	assert_int_equal(world_state(world, 0, 4), SITE_REVOKED);
	site_member(world->nodes[0].site, site_find(world->nodes[0].site, world_id(1)), &member);
	assert_in_range(member.since_ms, stored_ms - 1000, stored_ms);
	assert_int_equal(member.heard_ms, before.heard_ms);
	assert_int_equal(member.rtt_us, before.rtt_us);
	assert_true(site_estimate_us(world->nodes[0].site, 0, site_find(world->nodes[0].site, world_id(1))) > 0);
	struct site_record root;
	assert_true(site_record_at(world->nodes[0].site, SITE_ROOT, 0, &root));
	/* Any live entry is enough. */
	world_crash(world, 3);
	world_crash(world, 4);
	world_run(world, 3 * (uint64_t)SECOND_US);
	assert_true(world_agrees(world));
	for (uint32_t i = 1; i < 3; i++)
		assert_int_equal(world->nodes[i].events[SITE_EVENT_LOST], 0); /* old knowledge made nobody lost */
	world_free(world);
	buf_free(&stored);
}

static void every_damage_is_noticed(void **state)
{
	(void)state;
	struct buf stored = {0};
	struct world *world = stored_world(&stored);
	world_crash(world, 0);
	world_start(world, 0);
	for (size_t length = 0; length < stored.length; length++) {
		struct err err = {0};
		char *exact = malloc(length > 0 ? length : 1);
		memcpy(exact, stored.at, length);
		assert_true(load(world, 0, str_make(exact, length), &err) == ERR_CORRUPT && err.text[0] != '\0');
		free(exact);
	}
	for (size_t at = 0; at < stored.length; at++) {
		stored.at[at] = (char)(stored.at[at] ^ 0x20);
		int code = load(world, 0, buf_str(&stored), NULL);
		assert_true(code == ERR_CORRUPT || code == ERR_VERSION);
		stored.at[at] = (char)(stored.at[at] ^ 0x20);
	}
	assert_int_equal(site_count(world->nodes[0].site), 1); /* nothing was taken */
	assert_ok(load(world, 0, buf_str(&stored), NULL));
	assert_int_equal(site_count(world->nodes[0].site), 5);
	world_free(world);
	buf_free(&stored);
}

static void another_sites_table_is_refused(void **state)
{
	(void)state;
	struct buf stored = {0};
	struct err err = {0};
	struct world *world = stored_world(&stored);
	assert_int_equal(load(world, 1, buf_str(&stored), &err), ERR_CONFLICT);
	assert_true(err.text[0] != '\0');
	world_free(world);
	buf_free(&stored);
}

/* What the authority said since, or a signature that is no longer good: it does not come back from the file. */
static void records_are_verified_again(void **state)
{
	(void)state;
	struct buf stored = {0}, record = {0};
	struct world *world = stored_world(&stored);
	world_crash(world, 0);
	world_start(world, 0);
	world_removal(world, 1, SITE_FORGET, 1, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	uint64_t verified = world->verified;
	assert_ok(load(world, 0, buf_str(&stored), NULL));
	assert_int_equal(world->verified, verified + 4); /* a root, a removal, two cards */
	assert_int_equal(world_state(world, 0, 1), SITE_STATES);
	assert_int_equal(site_count(world->nodes[0].site), 4);
	world_free(world);
	buf_free(&stored);
	buf_free(&record);
}

/* A small one, to the byte. */
static void the_bytes_are_those_of_the_protocol(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct buf stored = {0}, made = {0}, record = {0};
	world_start(world, 0);
	world_introduce(world, 0, 1);
	world_root(0x5001, 1, SIGNED, &record);
	assert_ok(world_add(world, 0, &record));
	site_dump(world->nodes[0].site, &stored);
	for (size_t at = 0; at < stored.length; at++)
		buf_printf(&made, "%s%02x", at == 0 ? "" : at % 32 == 0 ? "\n" : " ", (unsigned char)stored.at[at]);
	buf_put(&made, STR("\n"));
	golden_check(GOLDEN, &made);
	world_free(world);
	buf_free(&stored);
	buf_free(&made);
	buf_free(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_starts_again_knows_whom_it_knew), cmocka_unit_test(every_damage_is_noticed),
		cmocka_unit_test(another_sites_table_is_refused),      cmocka_unit_test(records_are_verified_again),
		cmocka_unit_test(the_bytes_are_those_of_the_protocol),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
