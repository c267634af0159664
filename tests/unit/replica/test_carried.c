/* Operations that are not the same at the site of their user as elsewhere: with preconditions there, or with a name that only the
 * service there knew. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000 };

static uint64_t ask_with_preconditions(struct world *world, const char *text)
{
	struct replica_submission submission = {
		.replicant = world_id(1), .class = world_class(text), .request = {.head = str_of(text)}, .conditional = true};
	return world_submit(world, 0, &submission);
}

/* It was accepted: from then on it is an operation like any other. */
static void what_was_accepted_goes_on(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_LOSES_ANSWERS; /* there it may be run again: it has no preconditions */
	uint64_t ticket = ask_with_preconditions(world, "set 50");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_FINE;
	world_go(world, 60 * SECOND);
	assert_int_equal(world->answers[ticket].answer.outcome.kind, REPLICA_ACCEPTED);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_item(world, i, 1)->value, 50);
	world_free(world);
}

/* What became of it is not known: it may have been refused, so it is not run without them, however repeatable it is. */
static void what_is_not_known_waits_for_a_person(void **state)
{
	(void)state;
	for (int crashes = 0; crashes < 2; crashes++) {
		struct world *world = world_new(2);
		world_create(world, 0, 1, 3, "create 7");
		world_go(world, 10 * SECOND);
		world->sites[0].inquiry_blind = true;
		world->sites[0].mode = SERVICE_LOSES_REQUESTS;
		world->sites[0].hold_tasks = crashes == 1;
		uint64_t ticket = ask_with_preconditions(world, "set 50");
		if (crashes == 1) {
			world_crash(world, 0);
			world->sites[0].hold_tasks = false;
			world_start(world, 0);
		}
		world_go(world, 10 * SECOND);
		world->sites[0].mode = SERVICE_FINE;
		world_go(world, 60 * SECOND);
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(world_item(world, i, 1)->value, 7);
		assert_int_equal(replica_counters(world->sites[0].replica).in_doubt, 1);
		if (crashes == 0)
			assert_true(world->answers[ticket].answer.op.number & REPLICA_WITHHELD);
		world_free(world);
	}
}

/* The others run what the outcome says, also after a restart. */
static void what_is_carried_is_what_the_service_said(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->sites[0].hold_tasks = true;
	world_cut(world, 1);
	world_create(world, 0, 1, 3, "create 7");
	assert_int_equal(world->sites[0].tasks_count, 1);
	struct replica_request carried = {.head = STR("create 9 #carried")};
	struct replica_outcome outcome = {
		.kind = REPLICA_ACCEPTED, .status = 201, .local_id = STR("1"), .carried = &carried};
	replica_executed(world->sites[0].replica, world->sites[0].tasks[0].number, &outcome, world->now);
	world->sites[0].tasks_count = 0;
	world->sites[0].hold_tasks = false;
	world_crash(world, 0);
	world_start(world, 0);
	world_cut(world, 0);
	world_met(world);
	world_go(world, 60 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 9);
	assert_int_equal(replica_counters(world->sites[0].replica).pending_operations, 0);
	world_free(world);
}

/* The host says when: not before, and no longer after it than that. */
static void what_is_put_off_is_tried_when_the_host_says(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->sites[1].hold_tasks = true;
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, SECOND);
	for (int i = 0; i < 5; i++) {
		assert_int_equal(world->sites[1].tasks_count, 1);
		struct replica_outcome outcome = {.kind = REPLICA_FAILED, .status = 429, .again_us = 3 * SECOND};
		uint64_t task = world->sites[1].tasks[0].number;
		world->sites[1].tasks_count = 0;
		replica_executed(world->sites[1].replica, task, &outcome, world->now);
		world_go(world, 2 * SECOND);
		assert_int_equal(world->sites[1].tasks_count, 0);
		world_go(world, 2 * SECOND);
	}
	world->sites[1].hold_tasks = false;
	world_run_task(world, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 7);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_accepted_goes_on),
		cmocka_unit_test(what_is_not_known_waits_for_a_person),
		cmocka_unit_test(what_is_carried_is_what_the_service_said),
		cmocka_unit_test(what_is_put_off_is_tried_when_the_host_says),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
