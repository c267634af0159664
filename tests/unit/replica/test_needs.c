/* What an operation needs, and what is kept of it: blobs, references, keys, sessions, weak ones, members that leave. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000 };

static const char sha[32] = "0123456789abcdef0123456789abcde";

static void assert_rows(struct world *world, enum replica_table table, uint32_t count)
{
	for (uint32_t i = 0; i < world->sites_count; i++)
		assert_int_equal(world_rows(world, i, table), count);
}

static uint64_t upload(struct world *world, uint32_t site, uint32_t number, const char *text)
{
	struct replica_submission submission = {
		.replicant = world_id(number),
		.class = world_class(text),
		.request = {.head = str_of(text), .blob = str_make(sha, sizeof(sha)), .blob_bytes = 1 << 20}};
	return world_submit(world, site, &submission);
}

/* ---- Blobs ------------------------------------------------------------------------------------------------------------- */

static void test_blob(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	upload(world, 0, 1, "set 10");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 10);
	assert_int_equal(world_item(world, 1, 1)->value, 1); /* it waits for its blob */
	assert_true(world->sites[1].fetches >= 2);           /* and asks again */
	assert_int_equal(world->sites[0].fetches, 0);
	assert_int_equal(world->sites[1].fetched.from, world->sites[0].id);
	assert_rows(world, REPLICA_BLOBS, 1);
	/* A second one needs the same: it is not fetched again. */
	upload(world, 0, 1, "set 20");
	world_go(world, SECOND);
	assert_rows(world, REPLICA_BLOBS, 2);
	replica_fetched(world->sites[1].replica, str_make(sha, sizeof(sha)), world->now);
	world_go(world, 20 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 20);
	assert_rows(world, REPLICA_BLOBS, 0);
	assert_int_equal(world->sites[0].drops, 1);
	assert_int_equal(world->sites[1].drops, 1);
	/* Refused by the first site: the blob goes too. */
	world->sites[0].mode = SERVICE_REFUSE;
	upload(world, 0, 1, "set 30");
	world_go(world, SECOND);
	assert_rows(world, REPLICA_BLOBS, 0);
	assert_int_equal(world->sites[0].drops, 2);
	/* One that comes when nobody needs it any more. */
	replica_fetched(world->sites[1].replica, str_make(sha, sizeof(sha)), world->now);
	assert_int_equal(world->sites[1].drops, 2);
	world_free(world);
}

static void test_blob_after_restart(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	upload(world, 0, 1, "set 10");
	world_go(world, SECOND / 2);
	world_crash(world, 1);
	world->sites[1].fetches = 0;
	world_start(world, 1);
	world_go(world, SECOND / 2);
	assert_true(world->sites[1].fetches >= 1);
	replica_fetched(world->sites[1].replica, str_make(sha, sizeof(sha)), world->now);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 10);
	assert_rows(world, REPLICA_BLOBS, 0);
	world_free(world);
}

/* ---- References --------------------------------------------------------------------------------------------------------- */

static uint64_t refer(struct world *world, uint32_t site, uint32_t number, struct replica_id *to)
{
	struct replica_submission submission = {
		.replicant = world_id(number),
		.class = world_class("set"),
		.request = {.head = STR_INIT("set 5"), .references = to, .references_count = 1}};
	return world_submit(world, site, &submission);
}

static void test_reference(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct replica_id image = world_id(2);
	/* Replicant 2 cannot be made at site 1 yet; 1 refers to it. */
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_MAKES_NOTHING;
	world_create(world, 0, 2, 3, "create 2");
	world_go(world, 10 * SECOND);
	refer(world, 0, 1, &image);
	world_go(world, 100 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 5);
	assert_int_equal(world_item(world, 1, 1)->value, 1);
	struct arena arena;
	struct replica_op_view view;
	struct replica_op_id op = {world_id(1), world->sites[0].id, 2};
	arena_init(&arena, 0);
	assert_int_equal(replica_look_op(world->sites[1].replica, &arena, op, &view), 0);
	assert_true(view.waits && !view.waits_unheard && memcmp(&view.waits_for, &image, sizeof(image)) == 0);
	assert_int_equal(replica_look_op(world->sites[0].replica, &arena, op, &view), 0);
	assert_false(view.waits);
	arena_free(&arena);
	/* Also over a restart. When it is there, the other one goes on at once. */
	world_crash(world, 1);
	world_start(world, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 1);
	uint32_t runs = world->sites[1].runs;
	world->sites[1].mode = SERVICE_FINE;
	world_go(world, 70 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 5);
	assert_int_equal(world->sites[1].runs, runs + 2);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	world_free(world);
}

/* ---- Deletes go behind what needed what they delete ---- */

static uint64_t delete_behind(struct world *world, uint32_t site, uint32_t number, struct replica_id *needed_by)
{
	struct replica_submission submission = {
		.replicant = world_id(number),
		.class = world_class("delete"),
		.request = {.head = STR_INIT("delete"), .references = needed_by, .references_count = 1}};
	return world_submit(world, site, &submission);
}

/* What needs replicant 1, 2, cannot be made at the other site for a while: 1 stays there as long, over a restart as well. */
static void test_delete_behind_a_create(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct replica_id server = world_id(2);
	struct arena arena;
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_MAKES_NOTHING;
	world_create(world, 0, 2, 3, "create 2");
	world_go(world, SECOND);
	delete_behind(world, 0, 1, &server);
	world_go(world, 100 * SECOND);
	assert_null(world_item(world, 0, 1));
	assert_non_null(world_item(world, 1, 1));
	arena_init(&arena, 0);
	struct replica_op_id op = {world_id(1), world->sites[0].id, 2};
	struct replica_op_view view = world_look_op(world, 1, op, &arena);
	assert_true(view.waits && !view.waits_unheard && memcmp(&view.waits_for, &server, sizeof(server)) == 0);
	arena_free(&arena);
	world_crash(world, 1);
	world_start(world, 1);
	world_go(world, 100 * SECOND);
	assert_non_null(world_item(world, 1, 1));
	world->sites[1].mode = SERVICE_FINE;
	world_go(world, 100 * SECOND);
	assert_null(world_item(world, 1, 1));
	assert_int_equal(world_item(world, 1, 2)->value, 2);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	world_free(world);
}

/* Its create is refused there, or it is deleted before it came: nothing is left that would need the other one. */
static void test_delete_behind_what_does_not_come(void **state)
{
	(void)state;
	for (int refused = 0; refused < 2; refused++) {
		struct world *world = world_new(2);
		struct replica_id server = world_id(2);
		world_create(world, 0, 1, 3, "create 1");
		world_go(world, 10 * SECOND);
		if (refused)
			world->sites[1].mode = SERVICE_FULL;
		else
			world_cut(world, 1);
		world_create(world, 0, 2, 3, "create 2");
		world_go(world, SECOND);
		delete_behind(world, 0, 1, &server);
		if (!refused)
			world_ask(world, 0, 2, "delete");
		world_go(world, SECOND);
		world_cut(world, 0);
		world_met(world);
		world_go(world, 60 * SECOND);
		assert_null(world_item(world, 1, 1));
		assert_null(world_item(world, 1, 2));
		world_free(world);
	}
}

/* What needs it is at two of its three sites. The third one hears of it as little as of one that is still on its way: it waits, and not for
 * ever. */
static void test_delete_behind_what_is_elsewhere(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct replica_id server = world_id(2);
	world_create(world, 0, 1, 7, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_MAKES_NOTHING;
	world_create(world, 0, 2, 3, "create 2");
	world_go(world, SECOND);
	delete_behind(world, 0, 1, &server);
	world_go(world, 10 * SECOND);
	assert_non_null(world_item(world, 2, 1));
	world_go(world, 60 * SECOND);
	assert_null(world_item(world, 2, 1));
	assert_non_null(world_item(world, 1, 1));
	world->sites[1].mode = SERVICE_FINE;
	world_go(world, 100 * SECOND);
	assert_null(world_item(world, 1, 1));
	assert_int_equal(world_item(world, 1, 2)->value, 2);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	world_free(world);
}

/* It has no copy at the third site, which says so. When it gets one, the other goes on. */
static void test_reference_to_what_is_elsewhere(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	struct replica_op_view view;
	struct replica_id image = world_id(2);
	world_create(world, 0, 1, 7, "create 1");
	world_create(world, 0, 2, 3, "create 2");
	world_go(world, 10 * SECOND);
	refer(world, 0, 1, &image);
	world_go(world, 100 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 5);
	assert_int_equal(world_item(world, 2, 1)->value, 1);
	struct replica_op_id op = {world_id(1), world->sites[0].id, 2};
	arena_init(&arena, 0);
	assert_int_equal(replica_look_op(world->sites[2].replica, &arena, op, &view), 0);
	assert_true(view.waits && view.waits_unheard && memcmp(&view.waits_for, &image, sizeof(image)) == 0);
	world_crash(world, 2);
	world_start(world, 2);
	world_go(world, 10 * SECOND);
	world_extend(world, 0, 2, 2);
	world_go(world, 100 * SECOND);
	assert_int_equal(world_item(world, 2, 1)->value, 5);
	assert_int_equal(replica_look_op(world->sites[2].replica, &arena, op, &view), 0);
	assert_false(view.waits);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	arena_free(&arena);
	world_free(world);
}

/* It is rejected here, and will not come: who refers to it does not wait for ever. */
static void test_reference_to_rejected(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct replica_id image = world_id(2);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_FULL;
	world_create(world, 0, 2, 3, "create 2");
	world_go(world, SECOND);
	refer(world, 0, 1, &image);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 5);
	world_free(world);
}

/* It is being made, or whether it was is in doubt: it may never come to be, and the others would wait for it for ever. Who refers to it
 * has to try again. */
static void test_reference_in_doubt(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct replica_id image = world_id(2);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[0].inquiry_blind = true;
	world->sites[0].mode = SERVICE_LOSES_ANSWERS;
	uint64_t create = world_create(world, 0, 2, 3, "create 2");
	uint64_t during = refer(world, 0, 1, &image);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[during].answer.code, ERR_UNAVAILABLE);
	assert_int_equal(world->answers[create].answer.outcome.kind, REPLICA_UNKNOWN);
	world->sites[0].mode = SERVICE_FINE;
	uint64_t after = refer(world, 0, 1, &image);
	struct replica_submission submission = {.replicant = world_id(3), .class = world_class("create 3")};
	submission.request =
		(struct replica_request){.head = STR_INIT("create 3"), .references = &image, .references_count = 1};
	site_id members[] = {world->sites[0].id, world->sites[1].id};
	submission.create = &(struct replica_create){
		.service = STR_INIT("s"), .type = STR_INIT("t"), .members = members, .members_count = 2};
	uint64_t other = world_submit(world, 0, &submission);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[after].answer.code, ERR_UNAVAILABLE);
	assert_int_equal(world->answers[other].answer.code, ERR_UNAVAILABLE);
	assert_int_equal(world_item(world, 0, 1)->value, 1);
	/* Somebody looks, takes away what was made, and it is made again. */
	assert_int_equal(replica_judge(world->sites[0].replica, world->answers[create].answer.op, REPLICA_RETRY, STR(""),
	                               world->now, NULL),
	                 0);
	world_go(world, 10 * SECOND);
	uint64_t again = refer(world, 0, 1, &image);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[again].answer.code, 0);
	assert_int_equal(world_item(world, 1, 1)->value, 5);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	assert_rows(world, REPLICA_REPLICANTS, 2);
	world_free(world);
}

/* ---- Names ------------------------------------------------------------------------------------------------------------------ */

/* Deleted, and made again under the same name, while a member was away: it does both in that order. */
static void test_name_again(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 9, 3, "create 1 @x");
	world_go(world, 10 * SECOND);
	assert_rows(world, REPLICA_NAMES, 1);
	world_cut(world, 1);
	world_ask(world, 0, 9, "delete");
	world_go(world, SECOND);
	/* Its id is before the other one's, so it comes first. */
	world_create(world, 0, 1, 3, "create 2 @x");
	world_go(world, SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 2);
	world->sites[1].hold_tasks = true;
	world_cut(world, 0);
	world_met(world);
	world_go(world, SECOND);
	assert_int_equal(world->sites[1].tasks_count,
	                 0); /* whoever made it has deleted the other one: that is waited for */
	world->sites[1].hold_tasks = false;
	world_go(world, 60 * SECOND);
	assert_int_equal(world->sites[1].runs, 3);
	assert_int_equal(world_item(world, 1, 1)->value, 2);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	assert_rows(world, REPLICA_NAMES, 1);
	world_free(world);
}

/* Two are made apart under one name, at different members, so that they do not become one (test_merge.c). Each is shown as rejected where
 * the other one is, until one of them is deleted. */
static void test_name_conflict(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_cut(world, 1);
	uint64_t here = world_create(world, 0, 1, 3, "create 1 @x"), there = world_create(world, 1, 2, 7, "create 2 @x");
	world_go(world, SECOND);
	world_cut(world, 0);
	world_go(world, 10 * SECOND);
	struct replica_op_view view = world_look_op(world, 0, world->answers[here].answer.op, &arena);
	assert_int_equal(view.members[1].state, REPLICA_REJECTED);
	assert_int_equal(view.members[1].status, 409);
	view = world_look_op(world, 0, world->answers[there].answer.op, &arena);
	assert_int_equal(view.members[0].state, REPLICA_REJECTED);
	world_ask(world, 1, 2, "delete");
	world_go(world, 10 * SECOND);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_item(world, i, 1)->value, 1);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_rows(world, i, REPLICA_NAMES), i < 2);
	arena_free(&arena);
	world_free(world);
}

/* ---- Idempotency-Key ----------------------------------------------------------------------------------------------------- */

static uint64_t ask_with_key(struct world *world, uint32_t site, const char *text, const char *key)
{
	struct replica_submission submission = {
		.replicant = world_id(1), .class = world_class(text), .request = {.head = str_of(text)}, .key = str_of(key)};
	return world_submit(world, site, &submission);
}

static void test_key(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	uint64_t first = ask_with_key(world, 0, "add 1", "alice k1");
	world_go(world, 10 * SECOND);
	uint64_t second = ask_with_key(world, 0, "add 1", "alice k1");
	assert_true(world->answers[second].there);
	assert_true(world->answers[second].answer.repeated);
	assert_int_equal(world->answers[second].answer.outcome.status, 200);
	assert_int_equal(world->answers[second].answer.op.number, world->answers[first].answer.op.number);
	assert_int_equal(world->answers[second].answer.op.site, world->answers[first].answer.op.site);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 2);
	/* Another key is another request; one that was refused can be tried again. */
	ask_with_key(world, 0, "add 1", "bob k1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 3);
	world->sites[0].mode = SERVICE_REFUSE;
	ask_with_key(world, 0, "add 1", "alice k2");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_FINE;
	uint64_t third = ask_with_key(world, 0, "add 1", "alice k2");
	world_go(world, 10 * SECOND);
	assert_false(world->answers[third].answer.repeated);
	assert_int_equal(world_item(world, 1, 1)->value, 4);
	/* While one waits its turn. */
	world->sites[0].hold_tasks = true;
	world_ask(world, 0, 1, "add 0");
	ask_with_key(world, 0, "add 1", "alice k3");
	uint64_t twin = ask_with_key(world, 0, "add 1", "alice k3");
	assert_int_equal(world->answers[twin].answer.code, ERR_CONFLICT);
	world->sites[0].hold_tasks = false;
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 5);
	/* A day later they are forgotten. */
	assert_int_equal(world_rows(world, 0, REPLICA_KEYS), 4);
	world_go(world, 25ull * 3600 * SECOND);
	assert_int_equal(world_rows(world, 0, REPLICA_KEYS), 0);
	assert_int_equal(world_rows(world, 0, REPLICA_META), 1);
	world_free(world);
}

/* ---- Sessions -------------------------------------------------------------------------------------------------------------- */

static void test_session(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct buf session = {0};
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	world_ask(world, 0, 1, "add 1");
	world_run_task(world, 0);
	replica_session_put(world->sites[0].replica, world_id(1), &session);
	assert_true(replica_session_met(world->sites[0].replica, buf_str(&session)));
	assert_false(replica_session_met(world->sites[1].replica, buf_str(&session)));
	world_go(world, 10 * SECOND);
	assert_true(replica_session_met(world->sites[1].replica, buf_str(&session)));
	/* What is no session of ours is not waited for; one of something that is not here yet is. */
	assert_true(replica_session_met(world->sites[1].replica, STR("nonsense")));
	assert_true(replica_session_met(world->sites[1].replica, STR("")));
	buf_clear(&session);
	replica_id_put(world_id(9), &session);
	assert_false(replica_session_met(world->sites[1].replica, buf_str(&session)));
	buf_free(&session);
	world_free(world);
}

/* What a user was told to be accepted is in his session, also while what came before it is still being settled. */
static void test_session_of_own_write(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct buf session = {0};
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	world->sites[0].mode = SERVICE_LOSES_ANSWERS;
	world_ask(world, 0, 1, "set 20");
	world_go(world, 100000);
	world->sites[0].mode = SERVICE_FINE;
	world->sites[0].hold_tasks = true;
	uint64_t ticket = world_ask(world, 0, 1, "add 1");
	world_ask(world, 0, 1, "add 2");
	world_run_task(world, 0); /* it is made sure of */
	world_run_task(world, 0);
	assert_int_equal(world->answers[ticket].answer.outcome.kind, REPLICA_ACCEPTED);
	replica_session_put(world->sites[0].replica, world_id(1), &session);
	assert_true(replica_session_met(world->sites[0].replica, buf_str(&session)));
	assert_false(replica_session_met(world->sites[1].replica, buf_str(&session)));
	world->sites[0].hold_tasks = false;
	world_cut(world, 0);
	world_go(world, 120 * SECOND);
	assert_true(replica_session_met(world->sites[1].replica, buf_str(&session)));
	buf_free(&session);
	world_free(world);
}

/* ---- Weak ------------------------------------------------------------------------------------------------------------------ */

static uint64_t create_weak(struct world *world, uint32_t site, uint32_t number)
{
	site_id members[2] = {world->sites[0].id, world->sites[1].id};
	struct replica_create create = {.service = STR_INIT("sample"),
	                                .type = STR_INIT("sample.counter"),
	                                .members = members,
	                                .members_count = 2,
	                                .consistency = REPLICA_WEAK};
	struct replica_submission submission = {.create = &create,
	                                        .replicant = world_id(number),
	                                        .class = world_class("create"),
	                                        .request = {.head = STR_INIT("create 7")}};
	return world_submit(world, site, &submission);
}

static void test_weak(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	uint64_t ticket = create_weak(world, 0, 1);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[ticket].answer.outcome.status, 201);
	assert_int_equal(world_item(world, 1, 1)->value, 7);
	world_ask(world, 1, 1, "add 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 8);
	/* Sent once: who did not get it does not get it. */
	world_cut(world, 1);
	world_ask(world, 1, 1, "add 1");
	world_go(world, 10 * SECOND);
	world_cut(world, 0);
	world_go(world, 100 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, 9);
	assert_int_equal(world_item(world, 0, 1)->value, 8);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	assert_rows(world, REPLICA_LANES, 0);
	assert_rows(world, REPLICA_OUTBOX, 0);
	/* Also after a restart. */
	world_crash(world, 0);
	world_start(world, 0);
	world_ask(world, 0, 1, "delete");
	world_go(world, 10 * SECOND);
	assert_rows(world, REPLICA_REPLICANTS, 0);
	assert_rows(world, REPLICA_LOCALS, 0);
	/* Refused here: nobody hears of it. */
	world->sites[0].mode = SERVICE_REFUSE;
	create_weak(world, 0, 2);
	world_go(world, 10 * SECOND);
	assert_rows(world, REPLICA_REPLICANTS, 0);
	world_free(world);
}

/* ---- Members that leave -------------------------------------------------------------------------------------------------------- */

static void test_site_removed(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_create(world, 0, 1, 7, "create 1");
	world_go(world, 10 * SECOND);
	world_crash(world, 2);
	world_ask(world, 0, 1, "add 1");
	world_go(world, 100 * SECOND);
	assert_int_equal(world_rows(world, 0, REPLICA_OPERATIONS), 1);
	for (uint32_t i = 0; i < 2; i++)
		replica_site_removed(world->sites[i].replica, world->sites[2].id, world->now);
	world_go(world, 10 * SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_OUTBOX), 0);
		assert_int_equal(world_look(world, i, 1, &arena).members_count, 2);
		assert_int_equal(replica_due(world->sites[i].replica), UINT64_MAX);
	}
	world_ask(world, 1, 1, "add 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 3);
	assert_int_equal(world_rows(world, 1, REPLICA_OPERATIONS), 0);
	arena_free(&arena);
	world_free(world);
}

static bool is_rejected(struct world *world, uint32_t site, struct replica_op_id op, struct arena *arena)
{
	struct replica_op_view view = world_look_op(world, site, op, arena);
	for (uint32_t i = 0; i < view.members_count; i++)
		if (view.members[i].site == world->sites[site].id)
			return view.members[i].state == REPLICA_REJECTED && view.members[i].status == 410;
	return false;
}

/* It issued something whose body nobody else has got: people decide, and nothing else waits for it. */
static void test_site_removed_with_a_body(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	struct arena arena;
	arena_init(&arena, 0);
	world_create(world, 0, 1, 7, "create 1");
	world_go(world, 10 * SECOND);
	upload(world, 2, 1, "mark x");
	world_go(world, 10 * SECOND);
	world_crash(world, 2);
	world_ask(world, 0, 1, "add 1");
	world_go(world, 3600 * (uint64_t)SECOND);
	struct replica_op_id op = {world_id(1), world->sites[2].id, 1};
	for (uint32_t i = 0; i < 2; i++) { /* it may come back */
		assert_false(is_rejected(world, i, op, &arena));
		replica_site_removed(world->sites[i].replica, world->sites[2].id, world->now);
	}
	world->sites[1].unreachable = true; /* for the first one: it may have the body */
	world_go(world, 3600 * (uint64_t)SECOND);
	assert_false(is_rejected(world, 0, op, &arena));
	world->sites[1].unreachable = false;
	world_go(world, 600 * (uint64_t)SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		assert_true(is_rejected(world, i, op, &arena));
		assert_int_equal(world_item(world, i, 1)->value, 2);
	}
	/* Somebody finds it after all. */
	for (uint32_t i = 0; i < 2; i++) {
		struct err err = {0};
		assert_int_equal(replica_judge(world->sites[i].replica, op, REPLICA_RETRY, STR(""), world->now, &err), 0);
		replica_fetched(world->sites[i].replica, str_make(sha, sizeof(sha)), world->now);
	}
	world_go(world, 600 * (uint64_t)SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		assert_int_equal(world_item(world, i, 1)->mark, 'x');
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
	}
	arena_free(&arena);
	world_free(world);
}

/* ---- Bounds ---------------------------------------------------------------------------------------------------------------------- */

static void test_refusals(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	static char big[LIMIT_REPLICA_BODY_BYTES + 1];
	site_id stranger[2] = {world->sites[1].id, 77}, twice[2] = {world->sites[0].id, world->sites[0].id};
	struct replica_create create = {.service = STR_INIT("s"), .type = STR_INIT("t"), .members_count = 2};
	struct replica_submission submission = {.replicant = world_id(1), .class = world_class("create")};
	assert_int_equal(world->answers[world_ask(world, 0, 1, "add 1")].answer.code, ERR_NOT_FOUND);
	submission.create = &create;
	create.members = stranger;
	assert_int_equal(world->answers[world_submit(world, 0, &submission)].answer.code, ERR_INVALID);
	create.members = twice;
	assert_int_equal(world->answers[world_submit(world, 0, &submission)].answer.code, ERR_INVALID);
	create.members_count = 1;
	assert_int_equal(world->answers[world_submit(world, 0, &submission)].answer.code, ERR_LIMIT);
	submission.create = NULL;
	submission.request.body = str_make(big, sizeof(big));
	assert_int_equal(world->answers[world_submit(world, 0, &submission)].answer.code, ERR_LIMIT);
	assert_true(strstr(world->answers[world->ticket].text, "65536") != NULL);
	for (uint32_t t = 0; t < REPLICA_META; t++)
		assert_int_equal(world_rows(world, 0, t), 0);
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[world_create(world, 0, 1, 3, "create 1")].answer.code, ERR_CONFLICT);
	/* A queue that is full. */
	world->sites[0].hold_tasks = true;
	for (uint32_t i = 0; i <= LIMIT_REPLICA_QUEUE; i++)
		world_ask(world, 0, 1, "add 1");
	assert_int_equal(world->answers[world_ask(world, 0, 1, "add 1")].answer.code, ERR_LIMIT);
	world->sites[0].hold_tasks = false;
	world_go(world, 60 * SECOND);
	assert_int_equal(world_item(world, 1, 1)->value, LIMIT_REPLICA_QUEUE + 2);
	world_free(world);
}

/* Of many that are to be run at once, only some are. */
static void test_running_most(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_crash(world, 1);
	world->options.running_most = 3;
	world_start(world, 1);
	world->sites[1].hold_tasks = true;
	for (uint32_t i = 1; i <= 10; i++)
		world_create(world, 0, i, 3, "create 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].tasks_count, 3);
	assert_int_equal(replica_counters(world->sites[1].replica).running, 3);
	world_run_task(world, 1);
	assert_int_equal(world->sites[1].tasks_count, 3);
	world->sites[1].hold_tasks = false;
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sites[1].items_count, 10);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	world_free(world);
}

/* More replicants than are held in memory: they come and go. */
static void test_more_than_memory(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	enum { COUNT = REPLICA_LOADED + 200 };
	for (uint32_t i = 1; i <= COUNT; i++)
		world_create(world, i % 2, i, 3, "create 1");
	world_go(world, 10 * SECOND);
	for (uint32_t i = 1; i <= COUNT; i++)
		world_ask(world, 0, i, "add 1");
	world_go(world, 30 * SECOND);
	for (uint32_t i = 1; i <= COUNT; i++)
		assert_int_equal(world_item(world, 1, i)->value, 2);
	assert_rows(world, REPLICA_OPERATIONS, 0);
	replica_tick(world->sites[1].replica, world->now);
	assert_int_equal(world->sites[1].replica->replicants.count, REPLICA_LOADED);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_blob),
		cmocka_unit_test(test_blob_after_restart),
		cmocka_unit_test(test_site_removed_with_a_body),
		cmocka_unit_test(test_reference),
		cmocka_unit_test(test_delete_behind_a_create),
		cmocka_unit_test(test_delete_behind_what_does_not_come),
		cmocka_unit_test(test_delete_behind_what_is_elsewhere),
		cmocka_unit_test(test_reference_to_what_is_elsewhere),
		cmocka_unit_test(test_reference_to_rejected),
		cmocka_unit_test(test_reference_in_doubt),
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_name_again),
		cmocka_unit_test(test_name_conflict),
		cmocka_unit_test(test_session),
		cmocka_unit_test(test_session_of_own_write),
		cmocka_unit_test(test_weak),
		cmocka_unit_test(test_site_removed),
		cmocka_unit_test(test_refusals),
		cmocka_unit_test(test_running_most),
		cmocka_unit_test(test_more_than_memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
