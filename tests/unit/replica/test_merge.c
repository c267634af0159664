/* One name, made apart: two replicants become one. Scenes; histories by chance are in test_merge_random.c. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, MINUTE = 60 * SECOND };

static void assert_rows(struct world *world, enum replica_table table, uint32_t count)
{
	for (uint32_t i = 0; i < world->sites_count; i++)
		assert_int_equal(world_rows(world, i, table), count);
}

static void assert_all(struct world *world, uint32_t number, int64_t value, char mark)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		struct world_item *item = world_item_by(world, i, number);
		assert_non_null(item);
		assert_int_equal(item->value, value);
		assert_int_equal(item->mark, mark);
		assert_int_equal(world_items_at(world, i), 1);
	}
}

static void assert_quiet(struct world *world)
{
	assert_rows(world, REPLICA_OPERATIONS, 0);
	assert_rows(world, REPLICA_LANES, 0);
	assert_rows(world, REPLICA_OUTBOX, 0);
	assert_rows(world, REPLICA_NAMES, 1);
	assert_rows(world, REPLICA_LOCALS, 1);
}

/* The first two sites are apart, and both make x, for all sites: replicant 1 at the first, then 2 at the second, of which the others
 * hear. */
static void make_apart(struct world *world)
{
	uint32_t all = (1u << world->sites_count) - 1;
	world_cut(world, 1);
	world_create(world, 0, 1, all, "create 100 @x/a");
	world_go(world, SECOND);
	world_create(world, 1, 2, all, "create 500 @x/b");
	world_go(world, 5 * SECOND);
}

static struct world *made_apart(uint32_t sites)
{
	struct world *world = world_new(sites);
	make_apart(world);
	return world;
}

/* ---- Scenes ------------------------------------------------------------------------------------------------------------------ */

/* Somebody tries to make x where x is, and is refused. It is not forgotten by that who has the name there. */
static void test_a_refused_create_takes_no_name(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_cut(world, 1);
	world_create(world, 0, 2, 3, "create 100 @x/a");
	world_go(world, SECOND);
	world_create(world, 1, 1, 3, "create 500 @x/b");
	world_go(world, SECOND);
	uint64_t refused = world_create(world, 1, 3, 3, "create 900 @x/c");
	world_go(world, SECOND);
	assert_int_equal(world->answers[refused].answer.outcome.kind, REPLICA_REFUSED);
	assert_rows(world, REPLICA_NAMES, 1);
	world_cut(world, 0);
	world_go(world, MINUTE);
	assert_all(world, 1, 100, 'a');
	assert_quiet(world);
	world_free(world);
}

/* Two sites, apart, make x, and both change it. */
static void test_two(void **state)
{
	(void)state;
	for (uint32_t replays = 0; replays < 2; replays++) {
		struct world *world = world_new(2);
		struct arena arena;
		arena_init(&arena, 0);
		world->rules.create_replays = replays;
		world_cut(world, 1);
		uint64_t first = world_create(world, 0, 2, 3, "create 100 @x/a");
		world_go(world, SECOND);
		uint64_t second = world_create(world, 1, 1, 3, "create 500 @x/b");
		world_go(world, SECOND);
		world_ask(world, 0, 2, "add 1");
		uint64_t added = world_ask(world, 1, 1, "add 20");
		world_go(world, SECOND);
		assert_int_equal(world_item_by(world, 1, 1)->value, 520);
		world_cut(world, 0);
		world_go(world, MINUTE);
		assert_all(world, 1, 121, 'a');
		for (uint32_t i = 0; i < 2; i++) {
			assert_int_equal(world_leads_to(world, i, 1), 2);
			assert_int_equal(world_leads_to(world, i, 2), 2);
			/* Both users are told: the one, that his create lost and against which, and what became of his change. */
			struct replica_op_view view = world_look_op(world, i, world->answers[second].answer.op, &arena);
			assert_int_equal(view.members[0].state, REPLICA_SUPERSEDED);
			assert_memory_equal(&view.superseded_by.replicant, &world->answers[first].answer.op.replicant, 16);
			assert_int_equal(view.superseded_by.site, world->answers[first].answer.op.site);
			assert_int_equal(view.superseded_by.number, 1);
			view = world_look_op(world, i, world->answers[added].answer.op, &arena);
			assert_int_equal(view.members[0].state, REPLICA_SUPERSEDED);
			assert_memory_equal(&view.superseded_by.replicant, &world->answers[first].answer.op.replicant, 16);
			assert_int_equal(replica_counters(world->sites[i].replica).merged, 1);
		}
		assert_quiet(world);
		/* By the old id it goes on. */
		world_ask(world, 0, 1, "add 300");
		world_ask(world, 1, 2, "mark z");
		world_go(world, MINUTE);
		assert_all(world, 2, 421, 'z');
		assert_quiet(world);
		world_ask(world, 0, 1, "delete");
		world_go(world, MINUTE);
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(world_items_at(world, i), 0);
		/* The alias ends with what it led to. */
		assert_rows(world, REPLICA_REPLICANTS, 2);
		world_go(world, 80ull * 3600 * SECOND);
		assert_rows(world, REPLICA_REPLICANTS, 0);
		arena_free(&arena);
		world_free(world);
	}
}

/* Of three, the one in the middle has the loser first. What its users did to it is theirs still. */
static void test_third(void **state)
{
	(void)state;
	struct world *world = made_apart(3);
	assert_int_equal(world_item_by(world, 2, 2)->value, 500);
	world_ask(world, 0, 1, "add 1");
	world_ask(world, 1, 2, "add 20");
	world_ask(world, 2, 2, "add 3000");
	world_ask(world, 2, 2, "mark c");
	world_go(world, 5 * SECOND);
	world_cut(world, 0);
	world_go(world, 2 * MINUTE);
	assert_all(world, 2, 3121, 'c');
	assert_quiet(world);
	world_free(world);
}

/* What users of the loser did in an order stays in it; what a later one covered does not come back. */
static void test_order_of_the_loser(void **state)
{
	(void)state;
	struct world *world = made_apart(3);
	world_ask(world, 2, 2, "add 9");
	world_go(world, 5 * SECOND);
	world_ask(world, 1, 2, "set 700");
	world_go(world, 5 * SECOND);
	world_ask(world, 1, 2, "mark f");
	world_go(world, 5 * SECOND);
	world_ask(world, 2, 2, "mark g");
	world_ask(world, 2, 2, "add 30");
	world_go(world, 5 * SECOND);
	world_ask(world, 0, 1, "add 4000");
	world_go(world, 5 * SECOND);
	world_cut(world, 0);
	world_go(world, 2 * MINUTE);
	assert_all(world, 2, 4730, 'g');
	assert_quiet(world);
	world_free(world);
}

/* Who decides is away: the others wait, and go on with what they have. */
static void test_decider_away(void **state)
{
	(void)state;
	struct world *world = made_apart(3);
	world_crash(world, 1);
	world_cut(world, 0);
	world_ask(world, 0, 1, "add 1");
	world_ask(world, 2, 2, "add 20");
	world_go(world, 2 * MINUTE);
	assert_int_equal(world_item_by(world, 0, 1)->value, 101);
	assert_int_equal(world_item_by(world, 2, 2)->value, 520);
	world_start(world, 1);
	world_go(world, 3 * MINUTE);
	assert_all(world, 2, 121, 'a');
	assert_quiet(world);
	world_free(world);
}

/* Removed from the mesh: nobody decides. As with different members, it is shown as rejected until one is deleted. */
static void test_decider_removed(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_cut(world, 1);
	uint64_t first = world_create(world, 0, 1, 7, "create 100 @x/a");
	world_go(world, SECOND);
	world_create(world, 1, 2, 7, "create 500 @x/b");
	world_go(world, 5 * SECOND);
	world_crash(world, 1);
	for (uint32_t i = 0; i < 3; i += 2)
		replica_site_removed(world->sites[i].replica, world->sites[1].id, world->now);
	world_cut(world, 0);
	world_go(world, 2 * MINUTE);
	struct replica_op_view view = world_look_op(world, 0, world->answers[first].answer.op, &arena);
	assert_int_equal(view.members[1].state, REPLICA_REJECTED);
	assert_int_equal(view.members[1].status, 409);
	world_ask(world, 2, 2, "delete");
	world_go(world, 2 * MINUTE);
	assert_int_equal(world_item(world, 2, 1)->value, 100);
	world_start(world, 1); /* so that it is freed like the others */
	arena_free(&arena);
	world_free(world);
}

/* Different members: two they stay. */
static void test_different_members(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_cut(world, 1);
	world_create(world, 0, 1, 7, "create 100 @x/a");
	uint64_t second = world_create(world, 1, 2, 3, "create 500 @x/b");
	world_go(world, SECOND);
	world_cut(world, 0);
	world_go(world, MINUTE);
	struct replica_op_view view = world_look_op(world, 1, world->answers[second].answer.op, &arena);
	assert_int_equal(view.members[0].state, REPLICA_REJECTED);
	assert_int_equal(world_leads_to(world, 1, 1), 1);
	assert_int_equal(world_leads_to(world, 1, 2), 2);
	arena_free(&arena);
	world_free(world);
}

/* Three made it, and the word on the second comes before the third knows the first. */
static void test_chain(void **state)
{
	(void)state;
	struct world *world = world_new(4);
	world_cut(world, 1);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 4; k++)
			if (i != k)
				world->cut[i][k] = world->cut[k][i] = true;
	world_create(world, 0, 1, 15, "create 100 @x/a");
	world_go(world, SECOND);
	world_create(world, 1, 2, 15, "create 500 @x/b");
	world_go(world, SECOND);
	world_create(world, 2, 3, 15, "create 900 @x/c");
	world_go(world, SECOND);
	world_ask(world, 0, 1, "add 1");
	world_ask(world, 1, 2, "add 10");
	world_ask(world, 2, 3, "add 2000");
	world_go(world, SECOND);
	/* The second and the third meet, */
	world->cut[1][2] = world->cut[2][1] = false;
	world_go(world, 30 * SECOND);
	assert_int_equal(world_leads_to(world, 2, 3), 2);
	assert_int_equal(world_item_by(world, 2, 3)->value,
	                 2910); /* its own, with all changes: the state comes when all have met */
	world_ask(world, 2, 3, "add 40000");
	/* then the second is cut off from the third and meets the first. */
	world->cut[1][2] = world->cut[2][1] = true;
	world_go(world, SECOND);
	world->cut[0][1] = world->cut[1][0] = false;
	world_go(world, 30 * SECOND);
	assert_int_equal(world_leads_to(world, 1, 2), 1);
	world_cut(world, 0);
	world_go(world, 3 * MINUTE);
	for (uint32_t i = 0; i < 4; i++)
		for (uint32_t n = 1; n <= 3; n++)
			assert_int_equal(world_leads_to(world, i, n), 1);
	assert_all(world, 3, 42111, 'a');
	assert_quiet(world);
	world_free(world);
}

/* The loser was deleted by whom its create came to: create and delete cancel each other. */
static void test_loser_deleted(void **state)
{
	(void)state;
	for (uint32_t by = 1; by < 3; by++) {
		struct world *world = made_apart(3);
		world_cut(world, 1u << by); /* nobody hears of the delete before the others have met */
		world_ask(world, by, 2, "add 7");
		world_ask(world, by, 2, "delete");
		world_go(world, SECOND);
		assert_int_equal(world_items_at(world, by), 0);
		world_go(world, MINUTE);
		assert_int_equal(world_leads_to(world, 0, 2), by == 2 ? 1 : 2);
		world_cut(world, 0);
		world_go(world, 3 * MINUTE);
		assert_all(world, 1, 100, 'a');
		assert_rows(world, REPLICA_OPERATIONS, 0);
		assert_rows(world, REPLICA_OUTBOX, 0);
		world_free(world);
	}
}

/* The winner was deleted, and who decides has heard of it: the other one stays, everywhere. */
static void test_winner_deleted(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_cut(world, 1);
	world_create(world, 0, 1, 7, "create 100 @x/a");
	world_go(world, SECOND);
	world_ask(world, 0, 1, "delete");
	world_create(world, 1, 2, 7, "create 500 @x/b");
	world_go(world, 5 * SECOND);
	world_cut(world, 0);
	world_go(world, 3 * MINUTE);
	assert_all(world, 2, 500, 'b');
	assert_quiet(world);
	world_free(world);
}

/* Deleted while the merge is under way: as concurrent as with any other change. The delete wins. */
static void test_winner_deleted_meanwhile(void **state)
{
	(void)state;
	struct world *world = made_apart(3);
	/* The first tells the second, and hears nothing. */
	world->cut[0][1] = false;
	world_met(world);
	world_go(world, 5 * SECOND);
	assert_int_equal(world_leads_to(world, 1, 2), 1);
	world->cut[0][1] = true;
	world_ask(world, 0, 1, "delete");
	world_go(world, 5 * SECOND);
	world_cut(world, 0);
	world_go(world, 3 * MINUTE);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_items_at(world, i), 0);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	assert_rows(world, REPLICA_OUTBOX, 0);
	world_free(world);
}

/* In doubt when they become one: it is asked of the service, or of a person, under its old id too. */
static void test_in_doubt(void **state)
{
	(void)state;
	struct world *world = made_apart(2);
	struct err err = {0};
	world->sites[1].inquiry_blind = true;
	world->sites[1].mode = SERVICE_LOSES_ANSWERS;
	uint64_t doubtful = world_ask(world, 1, 2, "add 20");
	world_go(world, SECOND);
	world->sites[1].mode = SERVICE_FINE;
	assert_int_equal(world->answers[doubtful].answer.outcome.kind, REPLICA_UNKNOWN);
	world_cut(world, 0);
	world_go(world, MINUTE);
	assert_int_equal(world_leads_to(world, 1, 2), 1);
	struct replica_op_id op = world->answers[doubtful].answer.op;
	assert_int_equal(replica_judge(world->sites[1].replica, op, REPLICA_HAPPENED, STR(""), world->now, &err), 0);
	world_go(world, MINUTE);
	assert_all(world, 1, 120, 'a');
	assert_quiet(world);
	world_free(world);
}

static const char sha[32] = "0123456789abcdef0123456789abcde";

/* A body that was spooled for the loser is kept for what its operation became, and fetched by who lacks it. */
static void test_blob(void **state)
{
	(void)state;
	struct world *world = made_apart(2);
	struct replica_submission upload = {
		.replicant = world_id(2),
		.class = world_class("set"),
		.request = {.head = STR("set 700"), .blob = str_make(sha, sizeof(sha)), .blob_bytes = 1 << 20}};
	world_submit(world, 1, &upload);
	world_go(world, SECOND);
	world_cut(world, 0);
	world_go(world, MINUTE);
	assert_int_equal(world_leads_to(world, 0, 2), 1);
	assert_int_equal(world->sites[1].drops, 0);
	assert_int_equal(world->sites[0].fetched.from, world->sites[1].id);
	replica_fetched(world->sites[0].replica, str_make(sha, sizeof(sha)), world->now);
	world_go(world, MINUTE);
	assert_all(world, 1, 700, '-');
	assert_quiet(world);
	assert_rows(world, REPLICA_BLOBS, 0);
	assert_int_equal(world->sites[1].drops, 1);
	world_free(world);
}

/* What refers to the id that lost waits until it is known what became of it. */
static void test_reference(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct replica_id loser = world_id(2);
	world_create(world, 1, 9, 7, "create 1");
	world_go(world, 5 * SECOND);
	make_apart(world);
	struct replica_submission refers = {.replicant = world_id(9),
	                                    .class = world_class("set"),
	                                    .request = {.head = STR("set 5"), .references = &loser, .references_count = 1}};
	world_submit(world, 1, &refers);
	world_go(world, 5 * SECOND);
	assert_int_equal(world_item(world, 2, 9)->value, 5);
	world_cut(world, 0);
	world_go(world, 2 * MINUTE);
	assert_int_equal(world_item(world, 0, 9)->value, 5);
	assert_int_equal(world_leads_to(world, 0, 2), 1);
	world_free(world);
}

/* A session that had seen the loser is met at once; the same Idempotency-Key gets the same answer, by its old id. */
static void test_session_and_key(void **state)
{
	(void)state;
	struct world *world = made_apart(2);
	struct buf session = {0};
	struct arena arena;
	arena_init(&arena, 0);
	struct replica_submission add = {.replicant = world_id(2),
	                                 .class = world_class("add"),
	                                 .request = {.head = STR("add 20")},
	                                 .key = STR("user key")};
	uint64_t first = world_submit(world, 1, &add);
	world_go(world, SECOND);
	replica_session_put(world->sites[1].replica, world_id(2), &session);
	assert_false(replica_session_met(world->sites[0].replica, buf_str(&session)));
	world_cut(world, 0);
	world_go(world, MINUTE);
	assert_true(replica_session_met(world->sites[0].replica, buf_str(&session)));
	uint64_t again = world_submit(world, 1, &add);
	world_go(world, SECOND);
	assert_true(world->answers[again].answer.repeated);
	assert_int_equal(world->answers[again].answer.op.number, world->answers[first].answer.op.number);
	assert_memory_equal(&world->answers[again].answer.op.replicant, (struct replica_id[]){world_id(2)}, 16);
	struct replica_op_view view = world_look_op(world, 1, world->answers[again].answer.op, &arena);
	assert_memory_equal(&view.superseded_by.replicant, (struct replica_id[]){world_id(1)}, 16);
	assert_all(world, 1, 120, 'a');
	buf_free(&session);
	arena_free(&arena);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_refused_create_takes_no_name),
		cmocka_unit_test(test_two),
		cmocka_unit_test(test_third),
		cmocka_unit_test(test_order_of_the_loser),
		cmocka_unit_test(test_decider_away),
		cmocka_unit_test(test_decider_removed),
		cmocka_unit_test(test_different_members),
		cmocka_unit_test(test_chain),
		cmocka_unit_test(test_loser_deleted),
		cmocka_unit_test(test_winner_deleted),
		cmocka_unit_test(test_winner_deleted_meanwhile),
		cmocka_unit_test(test_in_doubt),
		cmocka_unit_test(test_blob),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_session_and_key),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
