/* Members that come and go. Scenes; the simulator (--members) has histories by chance. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, MINUTE = 60 * SECOND };

/* That site has it, by that id, once. */
static void assert_value(struct world *world, uint32_t site, uint32_t number, int64_t value)
{
	const struct world_item *item = world_item_by(world, site, number);
	assert_non_null(item);
	assert_int_equal(item->value, value);
	assert_int_equal(world_items_at(world, site), 1);
}

static void assert_members(struct world *world, uint32_t site, uint32_t number, uint32_t count)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct replica_view view = world_look(world, site, number, &arena);
	assert_int_equal(view.members_count, count);
	for (uint32_t i = 0; i < count; i++) {
		assert_true(view.members[i].settled);
		assert_false(view.members[i].joining || view.members[i].leaving || view.members[i].stuck);
	}
	arena_free(&arena);
}

/* Of those sites, each as a bit. */
static void assert_quiet(struct world *world, uint32_t sites)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		if (!(sites >> i & 1))
			continue;
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_LANES), 0);
		assert_int_equal(world_rows(world, i, REPLICA_OUTBOX), 0);
	}
}

/* ---- Come, and go ------------------------------------------------------------------------------------------------------------- */

static void test_extend_and_drop(void **state)
{
	(void)state;
	struct world *world = world_new(4);
	world_create(world, 1, 1, 6, "create 100");
	world_ask(world, 1, 1, "add 1");
	world_go(world, 10 * SECOND);
	/* The first one by id comes last: it is numbered in another way than at the others. */
	uint64_t ticket = world_extend(world, 2, 1, 0);
	world_ask(world, 1, 1, "add 10");
	world_go(world, 10 * SECOND);
	assert_true(world->answers[ticket].there);
	assert_int_equal(world->answers[ticket].answer.code, 0);
	world_ask(world, 0, 1, "add 1000");
	world_go(world, 10 * SECOND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_value(world, i, 1, 1111);
		assert_members(world, i, 1, 3);
	}
	assert_quiet(world, 7);
	assert_int_equal(world_drop(world, 0, 1, 1, false), 0);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_items_at(world, 1), 0);
	world_ask(world, 0, 1, "add 20000");
	world_go(world, 10 * SECOND);
	assert_value(world, 0, 1, 21111);
	assert_value(world, 2, 1, 21111);
	assert_members(world, 0, 1, 2);
	assert_quiet(world, 7);
	assert_int_equal(world->answers[world_extend(world, 0, 1, 1)].answer.code,
	                 ERR_CONFLICT); /* it does not come back */
	world_free(world);
}

/* What agents of before have stored is read. */
static void test_rows_of_before(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_create(world, 0, 1, 3, "create 100");
	world_create(world, 0, 2, 3, "create 200");
	world_go(world, 10 * SECOND);
	world_ask(world, 0, 2, "delete");
	world_go(world, 10 * SECOND);
	world_crash(world, 1);
	world_ask(world, 0, 1, "add 1");
	world_go(world, SECOND);
	world_crash(world, 0);
	struct world_site *site = &world->sites[0];
	for (uint32_t t = 0; t < REPLICA_TABLES; t++)
		for (uint32_t i = 0; i < site->tables[t].count; i++) {
			struct buf *row = &site->tables[t].rows[i].row;
			assert_int_equal(row->at[0], REPLICA_ROW_VERSION);
			row->at[0] = 2;
			if (t == REPLICA_REPLICANTS && row->at[1] == REPLICANT_GONE)
				row->length -= 2; /* marks of its members */
		}
	world_start(world, 0);
	world_start(world, 1);
	assert_true(world_look(world, 0, 2, &arena).deleted);
	world_go(world, MINUTE);
	world_extend(world, 0, 1, 2);
	world_go(world, MINUTE);
	for (uint32_t i = 0; i < 3; i++) {
		assert_value(world, i, 1, 101);
		assert_members(world, i, 1, 3);
	}
	assert_quiet(world, 7);
	arena_free(&arena);
	world_free(world);
}

/* The last one that has it is not forced out. */
static void test_force(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->sites[1].mode = SERVICE_REFUSE;
	world_create(world, 0, 1, 3, "create 100");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_drop(world, 1, 1, 0, true), ERR_CONFLICT);
	assert_int_equal(world_drop(world, 0, 1, 1, true), 0);
	world_go(world, 10 * SECOND);
	assert_value(world, 0, 1, 100);
	assert_members(world, 0, 1, 1);
	assert_quiet(world, 3);
	world_free(world);
}

/* Forced out while it cannot be reached, and all others have deleted it: it is told, and does not keep it. */
static void test_forced_and_deleted(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_create(world, 0, 1, 7, "create 100");
	world_go(world, 10 * SECOND);
	world_cut(world, 4);
	assert_int_equal(world_drop(world, 0, 1, 2, true), 0);
	world_go(world, 10 * SECOND);
	world_ask(world, 1, 1, "delete");
	world_go(world, MINUTE);
	world_cut(world, 0);
	world_met(world);
	world_go(world, 10 * MINUTE);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_items_at(world, i), 0);
	assert_quiet(world, 7);
	world_free(world);
}

/* A site that is removed from the mesh is waited for by nobody: neither who is to leave, nor who forgets, nor a session. */
static void test_removed_from_the_mesh(void **state)
{
	(void)state;
	struct world *world = world_new(4);
	world_create(world, 0, 1, 15, "create 100");
	world_go(world, 10 * SECOND);
	world_crash(world, 3);
	world_ask(world, 0, 1, "add 1");
	world_extend(world, 0, 1, 3); /* it is one */
	assert_int_equal(world_drop(world, 1, 1, 2, false), 0);
	world_go(world, MINUTE);
	assert_int_equal(world_items_at(world, 2), 0);
	assert_true(world_rows(world, 0, REPLICA_OPERATIONS) > 0);
	for (uint32_t i = 0; i < 3; i++)
		replica_site_removed(world->sites[i].replica, world->sites[3].id, world->now);
	world_go(world, MINUTE);
	assert_members(world, 0, 1, 2);
	assert_members(world, 1, 1, 2);
	assert_quiet(world, 7);
	world_free(world);
}

/* What the data plane of a site is told. */
static struct replica_here here_at(struct world *world, uint32_t site)
{
	struct replica_here here;
	struct replica_id id = world_id(1);
	struct buf row = {0};
	assert_int_equal(world_get(&world->sites[site], REPLICA_REPLICANTS, id_str(&id), &row), 0);
	assert_int_equal(replica_here_parse(buf_str(&row), world->sites[site].id, &here, NULL), 0);
	buf_free(&row);
	return here;
}

/* It lies at two sites, the service of one of them has refused it, and the other one is removed from the mesh. As long as a person may have it
 * made at the first, that is its prime; once that is let be, nobody holds it, and nobody is sent there. */
static void nobody_holds(bool let_be_before)
{
	struct world *world = world_new(3);
	world->holders = 3;
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t create = world_create(world, 0, 1, 7, "create 100");
	world_go(world, 10 * SECOND);
	struct replica_op_id op = world->answers[create].answer.op;
	if (let_be_before)
		assert_int_equal(replica_judge(world->sites[1].replica, op, REPLICA_DISMISS, STR(""), world->now, NULL), 0);
	world_go(world, 10 * SECOND);
	assert_int_equal(here_at(world, 2).prime, world->sites[0].id);
	world_crash(world, 0);
	for (uint32_t i = 1; i < 3; i++)
		replica_site_removed(world->sites[i].replica, world->sites[0].id, world->now);
	world_go(world, 10 * SECOND);
	if (!let_be_before) {
		assert_int_equal(here_at(world, 2).prime, world->sites[1].id);
		assert_int_equal(replica_judge(world->sites[1].replica, op, REPLICA_DISMISS, STR(""), world->now, NULL), 0);
		world_go(world, 10 * SECOND);
	}
	for (uint32_t i = 1; i < 3; i++) {
		struct replica_here here = here_at(world, i);
		assert_true(here.witness);
		assert_int_equal(here.prime, 0);
		assert_int_equal(here.holders_count, 0);
	}
	assert_quiet(world, 6);
	world_free(world);
}

static void test_nobody_holds_it_any_more(void **state)
{
	(void)state;
	nobody_holds(true);
	nobody_holds(false);
}

/* The same, and somebody had it made after all. */
static void test_who_refused_it_holds_it(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world->holders = 3;
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t create = world_create(world, 0, 1, 7, "create 100");
	world_go(world, 10 * SECOND);
	world_crash(world, 0);
	for (uint32_t i = 1; i < 3; i++)
		replica_site_removed(world->sites[i].replica, world->sites[0].id, world->now);
	world->sites[1].mode = SERVICE_FINE;
	assert_int_equal(replica_judge(world->sites[1].replica, world->answers[create].answer.op, REPLICA_RETRY, STR(""),
	                               world->now, NULL),
	                 0);
	world_go(world, 10 * SECOND);
	assert_value(world, 1, 1, 100);
	assert_false(here_at(world, 1).witness);
	assert_int_equal(here_at(world, 2).prime, world->sites[1].id);
	assert_quiet(world, 6);
	world_free(world);
}

/* ---- And names ---------------------------------------------------------------------------------------------------------------- */

/* Two made x apart, and a site was added to the earlier one before they met: one is left, there as well. */
static void test_extended_winner(void **state)
{
	(void)state;
	for (uint32_t replays = 0; replays < 2; replays++) {
		struct world *world = world_new(4);
		world->rules.create_replays = replays;
		world_cut(world, 2);
		world_create(world, 0, 1, 7, "create 100 @x/a");
		world_go(world, SECOND);
		world_create(world, 1, 2, 7, "create 500 @x/b");
		world_go(world, SECOND);
		world_ask(world, 0, 1, "add 1");
		world_ask(world, 1, 2, "add 20");
		world_go(world, SECOND);
		uint64_t ticket = world_extend(world, 0, 1, 3);
		world_go(world, MINUTE);
		assert_int_equal(world->answers[ticket].answer.code, 0);
		world_ask(world, 3, 1, "add 3000");
		world_go(world, SECOND);
		assert_value(world, 3, 1, 3101);
		world_cut(world, 0);
		world_met(world);
		world_go(world, 10 * MINUTE);
		for (uint32_t i = 0; i < 4; i++) {
			assert_value(world, i, 2, 3121);
			assert_int_equal(world_leads_to(world, i, 2), 1);
			assert_members(world, i, 1, 4);
		}
		assert_quiet(world, 15);
		/* By the id that lost, too, sites come and go. */
		assert_int_equal(world_drop(world, 0, 2, 1, false), 0);
		world_go(world, MINUTE);
		assert_int_equal(world_items_at(world, 1), 0);
		assert_members(world, 3, 2, 3);
		world_free(world);
	}
}

/* The later one was extended: they stay two, people are told, and nothing waits for ever. */
static void test_extended_loser(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_cut(world, 1);
	world_create(world, 0, 1, 3, "create 100 @x/a");
	world_go(world, SECOND);
	uint64_t second = world_create(world, 1, 2, 3, "create 500 @x/b");
	world_go(world, SECOND);
	uint64_t ticket = world_extend(world, 1, 2, 2);
	world_go(world, MINUTE);
	assert_int_equal(world->answers[ticket].answer.code, 0);
	world_cut(world, 0);
	world_met(world);
	world_go(world, 10 * MINUTE);
	assert_value(world, 0, 1, 100);
	assert_value(world, 1, 2, 500);
	assert_value(world, 2, 2, 500);
	struct replica_op_view view = world_look_op(world, 1, world->answers[second].answer.op, &arena);
	for (uint32_t i = 0; i < view.members_count; i++)
		assert_int_equal(view.members[i].state,
		                 view.members[i].site == world->sites[0].id ? REPLICA_REJECTED : REPLICA_APPLIED);
	/* The other one is deleted: there is room for it. */
	world_ask(world, 0, 1, "delete");
	world_go(world, 10 * MINUTE);
	for (uint32_t i = 0; i < 3; i++)
		assert_value(world, i, 2, 500);
	assert_quiet(world, 7);
	arena_free(&arena);
	world_free(world);
}

/* Not every member is known to have made it: another one of its name may turn up, so who has not made it itself gives no copy. */
static void test_name_not_certain(void **state)
{
	(void)state;
	struct world *world = world_new(4);
	world_crash(world, 2);
	world_create(world, 0, 1, 7, "create 100 @x/a");
	world_go(world, SECOND);
	uint64_t at_other = world_extend(world, 1, 1, 3);
	world_go(world, MINUTE);
	assert_int_equal(world->answers[at_other].answer.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(world->answers[at_other].text, "name"));
	uint64_t at_creator = world_extend(world, 0, 1, 3);
	world_go(world, MINUTE);
	assert_int_equal(world->answers[at_creator].answer.code, 0);
	assert_value(world, 3, 1, 100);
	world_start(world, 2);
	world_go(world, 10 * MINUTE);
	for (uint32_t i = 0; i < 4; i++)
		assert_value(world, i, 1, 100);
	assert_quiet(world, 15);
	world_free(world);
}

/* Three sites, of which the first was cut off: a name was taken there, and by the second one for the same sites. */
static struct world *two_of_one_name(void)
{
	struct world *world = world_new(3);
	world_cut(world, 1);
	world_create(world, 0, 1, 7, "create 100 @x/a");
	world_go(world, SECOND);
	world_create(world, 1, 2, 7, "create 500 @x/b");
	world_go(world, 5 * SECOND);
	return world;
}

/* A member is to leave the one, and has changes of the other: it goes when they have become one. */
static void test_leaves_after_the_merge(void **state)
{
	(void)state;
	struct world *world = two_of_one_name();
	world_ask(world, 2, 2, "add 20");
	world_go(world, SECOND);
	/* The first and the third meet, without who decides. */
	world_cut(world, 2);
	assert_int_equal(world_drop(world, 0, 1, 2, false), 0);
	world_met(world);
	world_go(world, 2 * MINUTE);
	assert_int_equal(world_items_at(world, 2), 1);
	world_cut(world, 0);
	world_met(world);
	world_go(world, 10 * MINUTE);
	assert_int_equal(world_items_at(world, 2), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_value(world, i, 2, 120);
		assert_members(world, i, 1, 2);
	}
	assert_quiet(world, 7);
	world_free(world);
}

/* A member was forced out of the earlier one, and does not hear of the merge: it does not keep the later one for ever. */
static void test_forced_out_of_the_winner(void **state)
{
	(void)state;
	struct world *world = two_of_one_name();
	/* The first and the second meet, and become one; the third one has something that it has not told. */
	world_cut(world, 4);
	world_ask(world, 2, 2, "add 20");
	world_met(world);
	world_go(world, 2 * MINUTE);
	assert_int_equal(world_leads_to(world, 1, 2), 1);
	assert_int_equal(world_drop(world, 0, 1, 2, true), 0);
	world_go(world, MINUTE);
	world_cut(world, 0);
	world_met(world);
	world_go(world, 10 * MINUTE);
	assert_int_equal(world_items_at(world, 2), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_value(world, i, 2, 100);
		assert_members(world, i, 1, 2);
	}
	assert_quiet(world, 7);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_extend_and_drop),
		cmocka_unit_test(test_rows_of_before),
		cmocka_unit_test(test_force),
		cmocka_unit_test(test_forced_and_deleted),
		cmocka_unit_test(test_removed_from_the_mesh),
		cmocka_unit_test(test_nobody_holds_it_any_more),
		cmocka_unit_test(test_who_refused_it_holds_it),
		cmocka_unit_test(test_extended_winner),
		cmocka_unit_test(test_extended_loser),
		cmocka_unit_test(test_name_not_certain),
		cmocka_unit_test(test_leaves_after_the_merge),
		cmocka_unit_test(test_forced_out_of_the_winner),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
