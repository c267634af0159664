/* An item that exists at a service becomes a replicant, and is then like any other. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, MINUTE = 60 * SECOND };

/* Somebody makes it at the service of that site; returns its local id. */
static const char *make_item(struct world *world, uint32_t site, int64_t value, char name)
{
	static char id[16];
	struct world_site *it = &world->sites[site];
	it->items[it->items_count++] = (struct world_item){.there = true, .value = value, .mark = '-', .name = name};
	snprintf(id, sizeof(id), "%u", it->items_count);
	return id;
}

static int adopt(struct world *world, uint32_t site, uint32_t number, const char *local_id, char name,
                 struct replica_id *id, struct err *err)
{
	struct replica_create create = {.service = STR_INIT("sample"),
	                                .type = STR_INIT("sample.counter"),
	                                .collection = STR_INIT("/counters"),
	                                .rules = world->rules,
	                                .name = str_make(&name, name ? 1 : 0)};
	struct replica_adoption adoption = {
		.create = &create, .replicant = world_id(number), .local_id = str_of(local_id), .local_id_quoted = true};
	return replica_adopt(world->sites[site].replica, &adoption, world->now, id, err);
}

static uint32_t adopted(struct world *world, uint32_t site, uint32_t number, const char *local_id, char name)
{
	struct replica_id id;
	struct err err = {0};
	assert_int_equal(adopt(world, site, number, local_id, name, &id, &err), 0);
	return id.bytes[15];
}

static void assert_everywhere(struct world *world, uint32_t sites, uint32_t number, int64_t value)
{
	struct arena arena;
	arena_init(&arena, 0);
	for (uint32_t i = 0; i < world->sites_count; i++) {
		if (!(sites >> i & 1))
			continue;
		const struct world_item *item = world_item(world, i, number);
		assert_non_null(item);
		assert_int_equal(item->value, value);
		assert_int_equal(world_items_at(world, i), 1);
		struct replica_view view = world_look(world, i, number, &arena);
		assert_int_equal(view.members_count, __builtin_popcount(sites));
		for (uint32_t m = 0; m < view.members_count; m++)
			assert_true(view.members[m].settled && !view.members[m].joining);
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_OUTBOX), 0);
	}
	arena_free(&arena);
}

static void restart(struct world *world, uint32_t site)
{
	world_crash(world, site);
	world_start(world, site);
}

/* Nothing runs for it; it is changed, extended and deleted like any other, whatever restarts in between. */
static void test_life(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	assert_int_equal(adopted(world, 1, 1, make_item(world, 1, 40, 0), 0), 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].runs, 0);
	assert_everywhere(world, 2, 1, 40);
	restart(world, 1);
	assert_everywhere(world, 2, 1, 40);
	world_ask(world, 1, 1, "add 2");
	world_go(world, SECOND);
	assert_everywhere(world, 2, 1, 42);
	restart(world, 1);
	uint64_t ticket = world_extend(world, 1, 1, 0);
	world_go(world, 10 * SECOND);
	assert_true(world->answers[ticket].there);
	assert_int_equal(world->answers[ticket].answer.code, 0);
	restart(world, 0);
	world_extend(world, 0, 1, 2);
	world_go(world, MINUTE);
	world_ask(world, 2, 1, "add 100");
	world_go(world, 10 * SECOND);
	assert_everywhere(world, 7, 1, 142);
	world_ask(world, 0, 1, "delete");
	world_go(world, MINUTE);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_items_at(world, i), 0);
		assert_int_equal(world_rows(world, i, REPLICA_LOCALS), 0);
	}
	world_free(world);
}

/* Apart, both change it; it is one again. */
static void test_concurrent_changes(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	adopted(world, 0, 1, make_item(world, 0, 10, 0), 0);
	world_extend(world, 0, 1, 1);
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	world_ask(world, 0, 1, "set 29");
	world_ask(world, 1, 1, "add 13");
	world_go(world, 10 * SECOND);
	world_cut(world, 0);
	world_met(world);
	world_go(world, MINUTE);
	assert_everywhere(world, 3, 1, 42);
	world_free(world);
}

static void test_twice(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	const char *id = make_item(world, 0, 7, 'x');
	struct replica_id found;
	struct err err = {0};
	assert_int_equal(adopted(world, 0, 1, id, 'x'), 1);
	assert_int_equal(adopted(world, 0, 2, id, 'x'), 1); /* who came second is given what there is */
	restart(world, 0);
	assert_int_equal(adopted(world, 0, 3, id, 'x'), 1);
	assert_int_equal(world_rows(world, 0, REPLICA_REPLICANTS), 1);
	assert_int_equal(world_rows(world, 0, REPLICA_NAMES), 1);
	world_ask(world, 0, 1, "delete");
	world_go(world, MINUTE);
	assert_int_equal(adopt(world, 0, 1, make_item(world, 0, 8, 'x'), 'x', &found, &err),
	                 ERR_CONFLICT);                                              /* that id was another's */
	assert_int_equal(adopted(world, 0, 4, make_item(world, 0, 9, 'x'), 'x'), 4); /* the name is free again */
	world_free(world);
}

/* What was made with `&` is a replicant already. */
static void test_of_a_replica(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 5");
	world_go(world, 10 * SECOND);
	assert_int_equal(adopted(world, 1, 2, "1", 0), 1);
	world_go(world, SECOND);
	assert_everywhere(world, 3, 1, 5);
	world_free(world);
}

/* An item was in the way of a replicant of its name: nobody but a person can say which of the two it is to be. */
static void test_name_is_waited_for(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	const char *id = make_item(world, 0, 7, 'x');
	struct replica_id found;
	struct err err = {0};
	world_create(world, 1, 1, 3, "create 5 @x");
	world_go(world, 10 * SECOND);
	assert_int_equal(adopt(world, 0, 2, id, 'x', &found, &err), ERR_CONFLICT);
	assert_non_null(strstr(err.text, "another replicated resource has that name"));
	assert_int_equal(world_rows(world, 0, REPLICA_LOCALS), 0);
	world_free(world);
}

static void test_limits(void **state)
{
	(void)state;
	struct world *world = world_new(1);
	char long_id[LIMIT_REPLICA_NAME_BYTES + 2];
	struct replica_id id;
	struct err err = {0};
	memset(long_id, 'a', sizeof(long_id) - 1);
	long_id[sizeof(long_id) - 1] = '\0';
	assert_int_equal(adopt(world, 0, 1, "", 0, &id, &err), ERR_INVALID);
	assert_int_equal(adopt(world, 0, 1, long_id, 0, &id, &err), ERR_LIMIT);
	assert_int_equal(world_rows(world, 0, REPLICA_REPLICANTS), 0);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_life),         cmocka_unit_test(test_concurrent_changes), cmocka_unit_test(test_twice),
		cmocka_unit_test(test_of_a_replica), cmocka_unit_test(test_name_is_waited_for), cmocka_unit_test(test_limits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
