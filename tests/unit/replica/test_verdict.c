/* What a person says of an operation that is rejected or in doubt at one member, and what follows from it for all of them. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, SET = 1, ADD = 3, TIMES = 5, CLASSES = 6 };

static void judge(struct world *world, uint32_t site, uint64_t ticket, enum replica_verdict verdict)
{
	struct err err = {0};
	struct replica_op_id op = world->answers[ticket].answer.op;
	assert_int_equal(replica_judge(world->sites[site].replica, op, verdict, STR(""), world->now, &err), 0);
}

static void assert_rows(struct world *world, enum replica_table table, uint32_t count)
{
	for (uint32_t i = 0; i < world->sites_count; i++)
		assert_int_equal(world_rows(world, i, table), count);
}

static void assert_nothing_pending(struct world *world)
{
	assert_rows(world, REPLICA_OPERATIONS, 0);
	assert_rows(world, REPLICA_LANES, 0);
	assert_rows(world, REPLICA_OUTBOX, 0);
}

static enum replica_member_state state_of(struct world *world, uint32_t site, uint64_t ticket, uint32_t member)
{
	struct arena arena;
	arena_init(&arena, 0);
	enum replica_member_state state =
		world_look_op(world, site, world->answers[ticket].answer.op, &arena).members[member].state;
	arena_free(&arena);
	return state;
}

static struct replica_member_view look_at(struct world *world, uint32_t site, uint32_t member)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct replica_member_view view = world_look(world, site, 1, &arena).members[member];
	view.local_id = STR("");
	arena_free(&arena);
	return view;
}

static uint64_t count_repairs(const struct world *world)
{
	uint64_t repaired = 0;
	for (uint32_t i = 0; i < world->sites_count; i++)
		repaired += replica_counters(world->sites[i].replica).repaired;
	return repaired;
}

/* `add` and `times` keep their order, and nothing can be run again: who ran them in another one is stuck. */
static void mind_the_order(struct world *world, uint8_t resolutions[CLASSES * CLASSES])
{
	memset(resolutions, ORDER_DEFAULT, CLASSES * CLASSES);
	resolutions[ADD * CLASSES + TIMES] = resolutions[TIMES * CLASSES + ADD] = ORDER_KEEP;
	world->rules = (struct order_rules){.classes = CLASSES, .resolutions = resolutions};
}

/* A `set` would have set what the `add` before it did. But it has no effect here either, though a person let it be: the `add` is
 * still missing, is shown, and can be run. */
static void test_dismissed_covers_nothing(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t add = world_ask(world, 0, 1, "add 5");
	world_go(world, 10 * SECOND);
	uint64_t set = world_ask(world, 0, 1, "set 9");
	world_go(world, 10 * SECOND);
	judge(world, 1, set, REPLICA_DISMISS);
	world_go(world, 60 * SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(state_of(world, i, add, 1), REPLICA_REJECTED);
		assert_int_equal(look_at(world, i, 1).rejected, 1);
	}
	world->sites[1].mode = SERVICE_FINE;
	judge(world, 1, add, REPLICA_RETRY);
	world_go(world, 60 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 9);
	assert_int_equal(world_item(world, 1, 1)->value, 12);
	assert_nothing_pending(world);
	world_free(world);
}

/* A delete that one service refuses, and a person lets be: what is there is the service's own from then on. Nobody changes it through
 * us, since the others have forgotten it; and it is forgotten there too, also if their last word did not get through. */
static void test_dismissed_delete(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_create(world, 0, 1, 7, "create 7");
	world_go(world, 10 * SECOND);
	world->sites[1].hold_tasks = true;
	world->sites[2].mode = SERVICE_REFUSE;
	uint64_t delete = world_ask(world, 0, 1, "delete");
	world_go(world, SECOND);
	assert_int_equal(state_of(world, 0, delete, 2), REPLICA_REJECTED);
	world->sites[2].mode = SERVICE_FINE;
	world->cut[0][2] = world->cut[1][2] = true;
	world->sites[1].hold_tasks = false;
	judge(world, 2, delete, REPLICA_DISMISS);
	world_go(world, 60 * SECOND);
	assert_int_equal(world_rows(world, 0, REPLICA_OPERATIONS), 0);
	assert_int_equal(world->answers[world_ask(world, 2, 1, "add 1")].answer.code, ERR_NOT_FOUND);
	world_cut(world, 0);
	world_go(world, 200 * SECOND);
	assert_nothing_pending(world);
	assert_rows(world, REPLICA_REPLICANTS, 1); /* tombstones */
	assert_rows(world, REPLICA_LOCALS, 0);
	assert_true(world->sites[2].items[0].there);
	assert_int_equal(world->sites[2].items[0].value, 7);
	world_free(world);
}

/* The one is stuck, and its service refuses the delete; the other one has deleted it, and has no state to give. Nor does the first give its
 * own: that would make it again. */
static uint64_t delete_what_is_stuck(struct world *world, uint8_t resolutions[CLASSES * CLASSES])
{
	mind_the_order(world, resolutions);
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	world_ask(world, 0, 1, "add 1");
	world_go(world, SECOND);
	world_ask(world, 1, 1, "times 10");
	world_go(world, SECOND);
	world_cut(world, 0);
	for (uint32_t i = 0; i < 1000 && world_item(world, 1, 1)->value != 71; i++)
		world_go(world, 10000);
	assert_int_equal(world_item(world, 1, 1)->value, 71);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t delete = world_ask(world, 0, 1, "delete");
	world_go(world, 600ull * SECOND);
	assert_null(world_item(world, 0, 1));
	assert_int_equal(world_item(world, 1, 1)->value, 71);
	assert_int_equal(count_repairs(world), 0);
	for (uint32_t i = 0; i < 2; i++) {
		assert_false(look_at(world, i, 0).diverged);
		assert_true(look_at(world, i, 1).diverged);
		assert_int_equal(look_at(world, i, 1).rejected, 1);
	}
	return delete;
}

/* A person lets it be, at once or when it was refused once more. */
static void nobody_repairs_what_is_deleted(bool retried)
{
	uint8_t resolutions[CLASSES * CLASSES];
	struct world *world = world_new(2);
	uint64_t delete = delete_what_is_stuck(world, resolutions);
	if (retried)
		judge(world, 1, delete, REPLICA_RETRY);
	world_go(world, 60 * SECOND);
	judge(world, 1, delete, REPLICA_DISMISS);
	world_go(world, 60 * SECOND);
	assert_nothing_pending(world);
	world_free(world);
}

static void test_nobody_repairs_what_is_deleted(void **state)
{
	(void)state;
	nobody_repairs_what_is_deleted(false);
	nobody_repairs_what_is_deleted(true);
}

/* Its users go on with what its service has not deleted. It is there, and nobody else has a better one: it is as it ought to be once a person has let
 * the delete be, and who has deleted it can leave. */
static void test_changed_behind_a_delete(void **state)
{
	(void)state;
	uint8_t resolutions[CLASSES * CLASSES];
	struct world *world = world_new(2);
	uint64_t delete = delete_what_is_stuck(world, resolutions);
	world->sites[1].mode = SERVICE_FINE;
	world_ask(world, 1, 1, "add 5");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_drop(world, 1, 1, 0, false), 0);
	judge(world, 1, delete, REPLICA_DISMISS);
	world_go(world, 120 * SECOND);
	assert_int_equal(count_repairs(world), 1);
	assert_int_equal(world_items_at(world, 0), 0);
	assert_int_equal(world_item(world, 1, 1)->value, 76);
	assert_false(look_at(world, 1, 0).stuck || look_at(world, 1, 0).diverged);
	struct arena arena;
	arena_init(&arena, 0);
	assert_int_equal(world_look(world, 1, 1, &arena).members_count, 1);
	arena_free(&arena);
	assert_rows(world, REPLICA_OUTBOX, 0);
	world_free(world);
}

/* Two deletes, each of which loses against what the other site did: it ought to be there, and is nowhere. Nobody waits for the other to give
 * what it has not; both are shown as they are. */
static void test_two_deletes_that_lose(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->rules = (struct order_rules){.delete_loses = true};
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	for (uint32_t i = 0; i < 2; i++) {
		world_ask(world, i, 1, "add 1");
		world_go(world, SECOND);
		world_ask(world, i, 1, "delete");
		world_go(world, SECOND);
	}
	world_cut(world, 0);
	world_go(world, 600ull * SECOND);
	assert_int_equal(count_repairs(world), 0);
	for (uint32_t i = 0; i < 2; i++)
		for (uint32_t k = 0; k < 2; k++)
			assert_true(look_at(world, i, k).diverged);
	world_free(world);
}

/* It is deleted at two sites, which loses, and its create is forgotten. The third has it, but for what a person let be there: it lacks less
 * than who has nothing, and gives it to the others. */
static void test_who_has_nothing_is_not_waited_for(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world->rules = (struct order_rules){.delete_loses = true};
	world_create(world, 0, 1, 7, "create 23");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t ticket = world_ask(world, 0, 1, "add 5");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_FINE;
	judge(world, 1, ticket, REPLICA_DISMISS);
	world_go(world, 10 * SECOND);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	world_cut(world, 2);
	world_ask(world, 1, 1, "add 100");
	world_ask(world, 2, 1, "delete");
	world_go(world, 10 * SECOND);
	assert_null(world_item(world, 0, 1));
	world_cut(world, 0);
	world_met(world);
	world_go(world, 120 * SECOND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_non_null(world_item(world, i, 1));
		assert_int_equal(world_item(world, i, 1)->value, 123);
	}
	assert_nothing_pending(world);
	world_free(world);
}

/* A create that is run again makes due again what a person had let be: nobody forgets that before it was run. */
static void test_run_again_is_not_settled(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t create = world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	uint64_t add = world_ask(world, 0, 1, "add 5");
	world_go(world, 10 * SECOND);
	judge(world, 1, add, REPLICA_DISMISS);
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_FINE;
	world->sites[1].hold_tasks = true;
	judge(world, 1, create, REPLICA_RETRY);
	world_run_task(world, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 7);
	assert_rows(world, REPLICA_OPERATIONS, 2);
	world->sites[1].hold_tasks = false;
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 12);
	assert_nothing_pending(world);
	world_free(world);
}

/* It did happen, says a person, when a user has deleted the item: nothing of it is left. Nothing is issued behind the delete, which
 * the other one may have run and forgotten meanwhile. */
static void test_happened_before_a_delete(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_LOSES_ANSWERS;
	world->sites[0].inquiry_blind = true;
	uint64_t add = world_ask(world, 0, 1, "add 5");
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[add].answer.outcome.kind, REPLICA_UNKNOWN);
	world->sites[0].mode = SERVICE_FINE;
	world_cut(world, 1);
	world_ask(world, 0, 1, "delete");
	world_go(world, SECOND);
	uint64_t issued = replica_counters(world->sites[0].replica).issued;
	judge(world, 0, add, REPLICA_HAPPENED);
	world_go(world, SECOND);
	assert_int_equal(replica_counters(world->sites[0].replica).issued, issued);
	world_cut(world, 0);
	world_go(world, 200 * SECOND);
	assert_nothing_pending(world);
	for (uint32_t i = 0; i < 2; i++)
		assert_false(world->sites[i].items[0].there);
	world_free(world);
}

/* By the rules an `add` wins over an earlier `set`. Where it did not happen, it wins over nothing. */
static void test_what_lost_against_a_doubt(void **state)
{
	(void)state;
	uint8_t resolutions[CLASSES * CLASSES];
	struct world *world = world_new(3);
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[SET * CLASSES + ADD] = ORDER_TAKE_ONE;
	resolutions[TIMES * CLASSES + TIMES] =
		ORDER_KEEP; /* so the create is kept, and who has run the `set` begins with that */
	world->rules = (struct order_rules){.classes = CLASSES, .resolutions = resolutions, .create_replays = true};
	world_create(world, 0, 1, 7, "create 7");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	world_ask(world, 0, 1, "set 50");
	world_go(world, SECOND);
	world->sites[1].mode = SERVICE_LOSES_REQUESTS;
	world->sites[1].inquiry_blind = true;
	uint64_t add = world_ask(world, 2, 1, "add 1");
	world_go(world, SECOND);
	assert_int_equal(state_of(world, 1, add, 1), REPLICA_IN_DOUBT);
	world->sites[1].mode = SERVICE_FINE;
	world_cut(world, 0);
	world_go(world, 120 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 7);
	judge(world, 1, add, REPLICA_DISMISS);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 50);
	assert_int_equal(look_at(world, 0, 1).pending, 0);
	world_free(world);
}

/* Both lack something that they refused. One of them is stuck, and cannot forget what the other one has forgotten: they have to agree on
 * who lacks something all the same, or each waits for the state of the other. */
static void test_two_agree_on_who_lacks_something(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 1, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_REFUSE;
	uint64_t first = world_ask(world, 1, 1, "add 100");
	world_go(world, 10 * SECOND);
	uint64_t second = world_ask(world, 1, 1, "add 10");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_FINE;
	world_ask(world, 1, 1, "add 1"); /* it had seen the second one, which is to be run behind it */
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t other = world_ask(world, 0, 1, "add 1000");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_FINE;
	judge(world, 1, other, REPLICA_DISMISS);
	judge(world, 0, second, REPLICA_RETRY);
	world_go(world, 100000);
	assert_true(look_at(world, 1, 0).stuck);
	judge(world, 0, first, REPLICA_DISMISS);
	world_go(world, 60 * SECOND);
	assert_int_equal(count_repairs(world), 1);
	assert_int_equal(world_item(world, 0, 1)->value, world_item(world, 1, 1)->value);
	assert_false(look_at(world, 1, 0).stuck);
	assert_nothing_pending(world);
	world_free(world);
}

/* What a person let be at one member is missing from its state, also when it is forgotten everywhere. So it is never that one which
 * gives its state to who is stuck. */
static void test_who_lacks_something_does_not_repair(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		uint8_t resolutions[CLASSES * CLASSES];
		struct world *world = world_new(3);
		world->random = seed * 7919;
		mind_the_order(world, resolutions);
		world_create(world, 1, 1, 7, "create 7");
		world_go(world, 10 * SECOND);
		world->sites[0].mode = SERVICE_REFUSE;
		uint64_t add = world_ask(world, 1, 1, "add 100");
		world_go(world, 10 * SECOND);
		world->sites[0].mode = SERVICE_FINE;
		judge(world, 0, add, REPLICA_DISMISS);
		world_go(world, 10 * SECOND);
		assert_int_equal(world_rows(world, 0, REPLICA_OUTBOX), 0);
		if (seed % 2)
			world_crash(world, 0); /* it knows this from its row */
		if (seed % 2)
			world_start(world, 0);
		world_cut(world, 4);
		world_ask(world, 1, 1, "add 1");
		world_go(world, SECOND);
		world_ask(world, 2, 1, "times 10");
		world_go(world, SECOND);
		assert_int_equal(world_item(world, 0, 1)->value, 8);
		world_cut(world, 0);
		world_go(world, 120 * SECOND);
		assert_true(count_repairs(world) >= 1);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(world_item(world, i, 1)->value, 1080);
		world_free(world);
	}
}

/* At site 0, `add 10` is run behind `add 100`, which had seen it: that one is stuck, since nothing can be run again. */
static struct world *world_with_late_one(void)
{
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_REFUSE;
	uint64_t late = world_ask(world, 1, 1, "add 10");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_FINE;
	world_ask(world, 0, 1, "add 100");
	world_go(world, 10 * SECOND);
	judge(world, 0, late, REPLICA_RETRY);
	return world;
}

/* What was run late is there. Who lacks something that others have accepted does not give its state. */
static void test_what_was_done_late_is_not_missing(void **state)
{
	(void)state;
	struct world *world = world_with_late_one();
	world_go(world, 100000);
	assert_true(look_at(world, 1, 0).stuck);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t other = world_ask(world, 0, 1, "add 1000");
	world_go(world, SECOND / 10);
	assert_int_equal(state_of(world, 1, other, 1), REPLICA_REJECTED);
	assert_int_equal(count_repairs(world), 0);
	world->sites[1].mode = SERVICE_FINE;
	world_go(world, 60 * SECOND);
	assert_int_equal(count_repairs(world), 1);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_item(world, i, 1)->value, 1111);
	assert_nothing_pending(world);
	world_free(world);
}

/* Each lacks something that the other one has: whoever gave its state would take that from all. People decide first. */
static void test_nobody_gives_while_all_lack_something(void **state)
{
	(void)state;
	struct world *world = world_with_late_one();
	world->sites[0].mode = world->sites[1].mode = SERVICE_FINE;
	world_go(world, 100000);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t here = world_ask(world, 0, 1, "add 1000");
	world_go(world, SECOND / 10);
	world->sites[0].mode = SERVICE_REFUSE;
	world->sites[1].mode = SERVICE_FINE;
	uint64_t there = world_ask(world, 1, 1, "add 10000");
	world_go(world, SECOND / 10);
	world->sites[0].mode = SERVICE_FINE;
	world_go(world, 600 * SECOND);
	assert_int_equal(state_of(world, 1, here, 1), REPLICA_REJECTED);
	assert_int_equal(state_of(world, 0, there, 0), REPLICA_REJECTED);
	assert_int_equal(count_repairs(world), 0);
	assert_int_equal(world_item(world, 0, 1)->value, 1111);
	assert_int_equal(world_item(world, 1, 1)->value, 10111);
	judge(world, 1, here, REPLICA_RETRY);
	judge(world, 0, there, REPLICA_RETRY);
	world_go(world, 60 * SECOND);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_item(world, i, 1)->value, 11111);
	assert_nothing_pending(world);
	world_free(world);
}

/* A member that is away may have changes of its own users: a state that is given meanwhile would come after them. */
static void test_who_has_not_met_is_waited_for(void **state)
{
	(void)state;
	struct world *world = world_with_late_one();
	world_cut(world, 1);
	world->sites[1].unreachable = true;
	world_ask(world, 1, 1, "add 10000");
	world_go(world, SECOND);
	world_ask(world, 0, 1, "add 1000");
	world_go(world, 3600u * (uint64_t)SECOND);
	assert_int_equal(count_repairs(world), 0);
	world->sites[1].unreachable = false;
	world_cut(world, 0);
	world_met(world);
	world_go(world, 120 * SECOND);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_item(world, i, 1)->value, 11111);
	assert_nothing_pending(world);
	world_free(world);
}

/* A delete loses against a `set` that one service refuses: there the item is gone. That the `set` is rejected there is shown for as long as
 * this is why, though a later one has set all that it would have set. */
static void test_why_it_is_gone_is_not_forgotten(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->rules.delete_loses = true;
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[1].hold_tasks = true;
	uint64_t set = world_ask(world, 0, 1, "set 50");
	world_go(world, SECOND);
	world_ask(world, 1, 1, "set 60");
	world_ask(world, 1, 1, "delete");
	world->sites[1].mode = SERVICE_REFUSE;
	world_run_task(world, 1);
	world->sites[1].mode = SERVICE_FINE;
	world->sites[1].hold_tasks = false;
	world_go(world, 120 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 60);
	assert_false(world->sites[1].items[0].there);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(state_of(world, i, set, 1), REPLICA_REJECTED);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_dismissed_covers_nothing),
		cmocka_unit_test(test_dismissed_delete),
		cmocka_unit_test(test_nobody_repairs_what_is_deleted),
		cmocka_unit_test(test_changed_behind_a_delete),
		cmocka_unit_test(test_two_deletes_that_lose),
		cmocka_unit_test(test_who_has_nothing_is_not_waited_for),
		cmocka_unit_test(test_run_again_is_not_settled),
		cmocka_unit_test(test_happened_before_a_delete),
		cmocka_unit_test(test_what_lost_against_a_doubt),
		cmocka_unit_test(test_two_agree_on_who_lacks_something),
		cmocka_unit_test(test_what_was_done_late_is_not_missing),
		cmocka_unit_test(test_nobody_gives_while_all_lack_something),
		cmocka_unit_test(test_who_has_not_met_is_waited_for),
		cmocka_unit_test(test_why_it_is_gone_is_not_forgotten),
		cmocka_unit_test(test_who_lacks_something_does_not_repair),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
