/* A copy was changed or deleted behind the agents' backs, and a person says whose copy is to be that of all. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, ALL3 = 7 };

static struct world *three(const char *text)
{
	struct world *world = world_new(3);
	world_create(world, 0, 1, ALL3, text);
	world_go(world, 5 * SECOND);
	return world;
}

/* By a description that says that a delete loses. */
static struct world *three_losing(const char *text)
{
	struct world *world = world_new(3);
	world->rules.delete_loses = true;
	world_create(world, 0, 1, ALL3, text);
	world_go(world, 5 * SECOND);
	return world;
}

static void assert_value(struct world *world, int64_t value)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		assert_non_null(world_item(world, i, 1));
		assert_int_equal(world_item(world, i, 1)->value, value);
	}
}

static void assert_settled(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_LANES), 0);
		assert_int_equal(world_rows(world, i, REPLICA_LOCALS), 1);
	}
}

static const struct replica_answer *answer_to(const struct world *world, uint64_t ticket)
{
	assert_true(world->answers[ticket].there);
	return &world->answers[ticket].answer;
}

static void fetch(struct world *world, uint32_t site, char file)
{
	char sha[REPLICA_BLOB_BYTES];
	memset(sha, file, sizeof(sha));
	world->sites[site].has_blob = file;
	replica_fetched(world->sites[site].replica, str_make(sha, sizeof(sha)), world->now);
}

static void assert_file(struct world *world, char file)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		assert_int_equal(world_item(world, i, 1)->file, file);
		assert_int_equal(world_rows(world, i, REPLICA_BLOBS), 0);
	}
}

static void test_a_changed_copy(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	world_item(world, 1, 1)->value = 99;
	uint32_t events = world->sites[2].events;
	uint64_t ticket = world_give(world, 2, 1);
	world_go(world, 5 * SECOND);
	assert_int_equal(answer_to(world, ticket)->code, 0);
	assert_int_equal(answer_to(world, ticket)->outcome.kind, REPLICA_ACCEPTED);
	assert_int_equal(answer_to(world, ticket)->op.site, world->sites[2].id);
	assert_int_equal(answer_to(world, ticket)->op.number, 1);
	assert_int_equal(replica_counters(world->sites[2].replica).repaired, 1);
	assert_true(world->sites[2].events > events);
	assert_value(world, 23);
	assert_settled(world);
	/* The one that is odd, if somebody wants that. */
	world_item(world, 1, 1)->value = 7;
	ticket = world_give(world, 1, 1);
	world_go(world, 5 * SECOND);
	assert_int_equal(answer_to(world, ticket)->outcome.kind, REPLICA_ACCEPTED);
	assert_value(world, 7);
	assert_settled(world);
	world_free(world);
}

/* Concurrent with what a user asked elsewhere, it is ordered like any other replace. */
static void test_with_others_at_once(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	world_item(world, 1, 1)->value = 99;
	world_cut(world, 4);
	world_ask(world, 2, 1, "set 50");
	world_go(world, SECOND);
	world_give(world, 0, 1);
	world_go(world, 5 * SECOND);
	world_cut(world, 0);
	world_met(world);
	world_go(world, 120 * SECOND);
	assert_value(world, 23);
	assert_settled(world);
	world_free(world);
}

/* It is made anew where it was deleted, under another id; the next change finds it. */
static void test_a_deleted_copy(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	world_item(world, 1, 1)->there = false;
	uint64_t ticket = world_give(world, 0, 1);
	world_go(world, 5 * SECOND);
	assert_int_equal(answer_to(world, ticket)->outcome.kind, REPLICA_ACCEPTED);
	assert_int_equal(world->sites[1].items_count, 2);
	assert_value(world, 23);
	assert_settled(world);
	world_ask(world, 2, 1, "add 1");
	world_go(world, 5 * SECOND);
	assert_value(world, 24);
	assert_settled(world);
	world_free(world);
}

/* Killed between asking and hearing: it may have been made, and is not made a second time. A person says. */
static void test_a_deleted_copy_and_a_crash(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	world_item(world, 1, 1)->there = false;
	world->sites[1].hold_tasks = true;
	world->sites[1].inquiry_blind = true;
	uint64_t ticket = world_give(world, 0, 1);
	world_go(world, 2 * SECOND);
	assert_int_equal(world->sites[1].tasks_count, 1);
	world_run_task(world, 1); /* 404 */
	assert_int_equal(world->sites[1].tasks_count, 1);
	assert_int_equal(world->sites[1].tasks[0].kind, REPLICA_RUN_ANEW);
	world->sites[1].hold_tasks = false;
	world_crash(world, 1);
	world_start(world, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].items_count, 1);
	assert_int_equal(replica_look(world->sites[1].replica, &arena, world_id(1), &view), 0);
	assert_int_equal(view.members[1].in_doubt, 1);
	struct replica_op_id op = answer_to(world, ticket)->op;
	/* Nobody could say by which id. */
	assert_int_equal(replica_judge(world->sites[1].replica, op, REPLICA_HAPPENED, STR(""), world->now, NULL),
	                 ERR_INVALID);
	/* What is given again finds nothing, too: it may be there by now, and would be so twice. */
	uint64_t again = world_give(world, 0, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].items_count, 1);
	struct replica_op_id second = answer_to(world, again)->op;
	assert_int_equal(replica_judge(world->sites[1].replica, op, REPLICA_RETRY, STR(""), world->now, NULL), 0);
	world_go(world, 10 * SECOND);
	replica_judge(world->sites[1].replica, second, REPLICA_RETRY, STR(""), world->now, NULL);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].items_count, 2);
	assert_value(world, 23);
	assert_settled(world);
	arena_free(&arena);
	world_free(world);
}

/* It was made, and the answer is lost: the service is asked, and says what it is called. */
static void test_a_deleted_copy_and_a_lost_answer(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	world_item(world, 1, 1)->there = false;
	world->sites[1].mode = SERVICE_LOSES_ANSWERS;
	world->sites[1].hold_tasks = true;
	world_give(world, 0, 1);
	world_go(world, 2 * SECOND);
	world->sites[1].mode = SERVICE_FINE;
	world_run_task(world, 1); /* 404 */
	assert_int_equal(world->sites[1].tasks[0].kind, REPLICA_RUN_ANEW);
	world->sites[1].mode = SERVICE_LOSES_ANSWERS;
	world_run_task(world, 1);
	assert_int_equal(world->sites[1].tasks[0].kind, REPLICA_INQUIRE_ANEW);
	world->sites[1].mode = SERVICE_FINE;
	world->sites[1].hold_tasks = false;
	world_crash(world, 1); /* and the question is asked once more */
	world_start(world, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].items_count, 2);
	assert_value(world, 23);
	world_ask(world, 2, 1, "add 1");
	world_go(world, 5 * SECOND);
	assert_value(world, 24);
	assert_settled(world);
	world_free(world);
}

/* A delete that was run, and has lost: it is undone, with the file. */
static void test_a_delete_that_lost(void **state)
{
	(void)state;
	struct world *world = three_losing("create 23");
	for (uint32_t i = 0; i < 3; i++)
		world_item(world, i, 1)->file = 'f';
	world_cut(world, 2);
	world_ask(world, 1, 1, "delete");
	world_ask(world, 0, 1, "add 1");
	world_go(world, 5 * SECOND);
	assert_false(world_item(world, 1, 1) && world_item(world, 1, 1)->there);
	world_cut(world, 0);
	world_met(world);
	for (int i = 0; i < 60 && world->sites[1].fetches == 0; i++)
		world_go(world, SECOND);
	fetch(world, 1, 'f');
	world_go(world, 60 * SECOND);
	assert_file(world, 'f');
	assert_value(world, 24);
	assert_settled(world);
	world_ask(world, 1, 1, "delete");
	world_go(world, 5 * SECOND);
	for (uint32_t i = 0; i < 3; i++)
		assert_false(world_item(world, i, 1) && world_item(world, i, 1)->there);
	world_free(world);
}

/* Its file comes with it; only who has another one fetches that. */
static void test_its_file(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	for (uint32_t i = 0; i < 3; i++)
		world_item(world, i, 1)->file = i == 1 ? 'g' : 'f';
	uint64_t ticket = world_give(world, 2, 1);
	world_go(world, 5 * SECOND);
	assert_int_equal(answer_to(world, ticket)->outcome.kind, REPLICA_ACCEPTED);
	assert_int_equal(answer_to(world, ticket)->op.number, 1);
	assert_int_equal(answer_to(world, ticket)->outcome.parts_count, 1);
	assert_int_equal(world->sites[0].fetches, 0);
	assert_true(world->sites[1].fetches > 0);
	assert_int_equal(world_item(world, 1, 1)->file, 'g');
	fetch(world, 1, 'f');
	world_go(world, 5 * SECOND);
	assert_file(world, 'f');
	assert_value(world, 23);
	assert_settled(world);
	world_free(world);
}

/* Made anew first, then its file. An agent that dies while the blob is on its way asks whoever has it. */
static void test_its_file_where_it_was_deleted(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	for (uint32_t i = 0; i < 3; i++)
		world_item(world, i, 1)->file = 'f';
	world_item(world, 1, 1)->there = false;
	world_give(world, 0, 1);
	world_go(world, 2 * SECOND);
	assert_int_equal(world->sites[1].items_count, 2);
	assert_int_equal(world_item(world, 1, 1)->file, 0);
	world_crash(world, 1);
	world->sites[0].unreachable = true;
	world->sites[1].fetched.from = 0;
	world_start(world, 1);
	for (int i = 0; i < 100 && world->sites[1].fetched.from != world->sites[2].id; i++)
		world_go(world, SECOND);
	assert_int_equal(world->sites[1].fetched.from, world->sites[2].id);
	world->sites[0].unreachable = false;
	fetch(world, 1, 'f');
	world_go(world, 60 * SECOND);
	assert_file(world, 'f');
	assert_value(world, 23);
	assert_settled(world);
	world_free(world);
}

static void test_what_is_refused(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	uint64_t ticket = world_give(world, 0, 2);
	assert_int_equal(answer_to(world, ticket)->code, ERR_NOT_FOUND);
	/* The service there cannot say what it has: nothing is issued, nobody is called diverged. */
	world->sites[0].no_state = true;
	ticket = world_give(world, 0, 1);
	world_go(world, 5 * SECOND);
	assert_int_equal(answer_to(world, ticket)->outcome.kind, REPLICA_REFUSED);
	world->sites[0].no_state = false;
	world->sites[0].mode = SERVICE_DOWN;
	ticket = world_give(world, 0, 1);
	world_go(world, 5 * SECOND);
	assert_int_equal(answer_to(world, ticket)->outcome.kind, REPLICA_FAILED);
	world->sites[0].mode = SERVICE_FINE;
	assert_int_equal(replica_counters(world->sites[0].replica).diverged, 0);
	assert_settled(world);
	/* Not all that is known was carried out there. */
	world->sites[0].mode = SERVICE_DOWN;
	world_ask(world, 1, 1, "add 1");
	world_go(world, SECOND);
	ticket = world_give(world, 0, 1);
	assert_int_equal(answer_to(world, ticket)->code, ERR_UNAVAILABLE);
	world->sites[0].mode = SERVICE_FINE;
	world_go(world, 120 * SECOND);
	assert_value(world, 24);
	world_ask(world, 2, 1, "delete");
	world_go(world, 5 * SECOND);
	ticket = world_give(world, 0, 1);
	assert_int_equal(answer_to(world, ticket)->code, ERR_NOT_FOUND);
	world_free(world);
}

/* While a user's operation runs it waits for its turn; an agent that dies meanwhile has promised nothing. */
static void test_its_turn(void **state)
{
	(void)state;
	struct world *world = three("create 23");
	world->sites[0].hold_tasks = true;
	world_ask(world, 0, 1, "add 1");
	uint64_t ticket = world_give(world, 0, 1);
	assert_int_equal(world->sites[0].tasks_count, 1);
	world_run_task(world, 0);
	assert_int_equal(world->sites[0].tasks[0].kind, REPLICA_READ_STATE);
	world_crash(world, 0);
	world->sites[0].hold_tasks = false;
	world_start(world, 0);
	world_go(world, 60 * SECOND);
	assert_false(world->answers[ticket].there);
	assert_value(world, 24);
	assert_settled(world);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_changed_copy),
		cmocka_unit_test(test_with_others_at_once),
		cmocka_unit_test(test_a_deleted_copy),
		cmocka_unit_test(test_a_deleted_copy_and_a_crash),
		cmocka_unit_test(test_a_deleted_copy_and_a_lost_answer),
		cmocka_unit_test(test_a_delete_that_lost),
		cmocka_unit_test(test_what_is_refused),
		cmocka_unit_test(test_its_turn),
		cmocka_unit_test(test_its_file),
		cmocka_unit_test(test_its_file_where_it_was_deleted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
