/* Two and three members by hand: what becomes of operations when all goes well, and when members are cut off. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000, ALL3 = 7 };

static void assert_value(struct world *world, uint32_t number, int64_t value)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		struct world_item *item = world_item(world, i, number);
		assert_non_null(item);
		assert_int_equal(item->value, value);
	}
}

/* Nothing is left but the replicant itself. */
static void assert_quiet(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_LANES), 0);
		assert_int_equal(world_rows(world, i, REPLICA_OUTBOX), 0);
		assert_int_equal(world_rows(world, i, REPLICA_BLOBS), 0);
		struct replica_counters counters = replica_counters(world->sites[i].replica);
		assert_int_equal(counters.pending_operations, 0);
		assert_int_equal(counters.pending_replicants, 0);
		assert_int_equal(counters.running, 0);
		assert_int_equal(replica_due(world->sites[i].replica) > world->now.us + 3600ull * SECOND, 1);
	}
}

static void test_create_update_delete(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	uint64_t ticket = world_create(world, 0, 1, ALL3, "create 23");
	world_go(world, 5 * SECOND);
	assert_true(world->answers[ticket].there);
	assert_int_equal(world->answers[ticket].answer.code, 0);
	assert_int_equal(world->answers[ticket].answer.outcome.status, 201);
	assert_value(world, 1, 23);
	assert_quiet(world);
	world_ask(world, 1, 1, "add 4");
	world_go(world, 5 * SECOND);
	world_ask(world, 2, 1, "set 100");
	world_go(world, 5 * SECOND);
	assert_value(world, 1, 100);
	assert_quiet(world);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_item(world, i, 1)->changes, 3);
		assert_int_equal(world_rows(world, i, REPLICA_LOCALS), 1);
	}
	ticket = world_ask(world, 1, 1, "delete");
	world_go(world, 5 * SECOND);
	assert_int_equal(world->answers[ticket].answer.outcome.status, 204);
	for (uint32_t i = 0; i < 3; i++) {
		assert_false(world->sites[i].items[0].there);
		assert_int_equal(world_rows(world, i, REPLICA_LOCALS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_REPLICANTS), 1); /* its tombstone */
	}
	ticket = world_ask(world, 0, 1, "add 1");
	assert_int_equal(world->answers[ticket].answer.code, ERR_NOT_FOUND);
	assert_quiet(world);
	world_go(world, 25ull * 3600 * SECOND);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_rows(world, i, REPLICA_REPLICANTS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_META), 1);
		assert_int_equal(replica_due(world->sites[i].replica), UINT64_MAX);
	}
	world_free(world);
}

/* DESIGN 7's example. */
static void test_cut_and_heal(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_create(world, 0, 1, ALL3, "create 23");
	world_go(world, 5 * SECOND);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 3; k++)
			world->cut[i][k] = i != k;
	world_ask(world, 0, 1, "set 29");
	world_ask(world, 1, 1, "add 13");
	world_ask(world, 2, 1, "add -12");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 29);
	assert_int_equal(world_item(world, 1, 1)->value, 36);
	assert_int_equal(world_item(world, 2, 1)->value, 11);
	world_cut(world, 0);
	world_go(world, 120 * SECOND);
	assert_value(world, 1, 30);
	assert_quiet(world);
	world_free(world);
}

/* A 4xx: nobody else ever heard of it. */
static void test_refused_leaves_no_trace(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world->sites[0].mode = SERVICE_REFUSE;
	uint64_t ticket = world_create(world, 0, 1, ALL3, "create 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[ticket].answer.outcome.kind, REPLICA_REFUSED);
	assert_int_equal(world->answers[ticket].answer.outcome.status, 422);
	assert_int_equal(world->sent, 0);
	for (uint32_t t = 0; t < REPLICA_META; t++)
		assert_int_equal(world_rows(world, 0, t), 0);
	world->sites[0].mode = SERVICE_FINE;
	world_create(world, 0, 1, ALL3, "create 1");
	world_go(world, 10 * SECOND);
	world->sites[1].mode = SERVICE_REFUSE;
	uint64_t sent = world->sent;
	ticket = world_ask(world, 1, 1, "add 5");
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[ticket].answer.outcome.status, 422);
	assert_int_equal(world->sent, sent);
	assert_quiet(world);
	/* Its number is used again. */
	world->sites[1].mode = SERVICE_FINE;
	ticket = world_ask(world, 1, 1, "add 6");
	assert_int_equal(world->sites[1].tasks[0].op.number, 1);
	world_go(world, 10 * SECOND);
	assert_value(world, 1, 7);
	world_free(world);
}

/* No connection to the service: the user is told, nothing stays. */
static void test_failed_is_told(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->sites[0].mode = SERVICE_DOWN;
	uint64_t ticket = world_create(world, 0, 1, 3, "create 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[ticket].answer.outcome.kind, REPLICA_FAILED);
	assert_int_equal(world_rows(world, 0, REPLICA_REPLICANTS), 0);
	assert_int_equal(world->sent, 0);
	world_free(world);
}

/* The service of a member is down for long: it is tried again until it is there. */
static void test_delivered_is_retried(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world->sites[1].mode = SERVICE_DOWN;
	world_create(world, 0, 1, 3, "create 1");
	world_go(world, 1000ull * SECOND);
	assert_true(world->sites[1].runs > 5);
	assert_true(world->sites[1].runs < 60);
	struct arena arena;
	arena_init(&arena, 0);
	struct replica_view view = world_look(world, 0, 1, &arena);
	assert_false(view.members[1].settled);
	assert_int_equal(view.members[1].pending, 1);
	assert_true(view.members[0].settled);
	arena_free(&arena);
	world->sites[1].mode = SERVICE_FINE;
	world_go(world, 100ull * SECOND);
	assert_value(world, 1, 1);
	assert_quiet(world);
	world_free(world);
}

static void test_lost_doubled_and_turned_round(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct world *world = world_new(3);
		world->random = seed;
		world->lose_percent = 30;
		world->double_percent = 30;
		world->shuffle = true;
		world->latency_us = 50000;
		world_create(world, 0, 1, ALL3, "create 0");
		world_go(world, 60 * SECOND);
		for (uint32_t i = 0; i < 30; i++) {
			world_ask(world, i % 3, 1, "add 1");
			world_go(world, i % 5 * 100000);
		}
		world_go(world, 600ull * SECOND);
		assert_value(world, 1, 30);
		assert_quiet(world);
		for (uint32_t i = 0; i < 3; i++)
			assert_int_equal(world_item(world, i, 1)->changes, 31); /* each once */
		world_free(world);
	}
}

/* A site that is away for the whole life of a resource. */
static void test_away_for_its_whole_life(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_cut(world, 4);
	world_create(world, 0, 1, ALL3, "create 1");
	world_go(world, 10 * SECOND);
	world_ask(world, 1, 1, "add 1");
	world_go(world, 10 * SECOND);
	world_ask(world, 0, 1, "delete");
	world_go(world, 3600ull * SECOND);
	assert_int_equal(world_rows(world, 0, REPLICA_OPERATIONS), 3);
	world_cut(world, 0);
	world_go(world, 200ull * SECOND);
	assert_int_equal(world->sites[2].items_count, 0); /* it was never made there */
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(world_rows(world, i, REPLICA_REPLICANTS), 1);
	assert_quiet(world);
	world_free(world);
}

/* A message of long ago does not bring back what is gone. */
static void test_late_duplicate(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct buf old = {0};
	world_create(world, 0, 1, 3, "create 1");
	world_run_task(world, 0);
	assert_int_equal(world->messages_count, 1);
	buf_put(&old, buf_str(&world->messages[0].bytes));
	world_go(world, 10 * SECOND);
	world_ask(world, 0, 1, "delete");
	world_go(world, 10 * SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		replica_receive(world->sites[1].replica, world->sites[0].id, buf_str(&old), world->now);
		world_go(world, 60 * SECOND);
		assert_int_equal(world->sites[1].items_count, 1);
		assert_quiet(world);
		/* Nor after the tombstone is gone. */
		world_go(world, 25ull * 3600 * SECOND);
		assert_int_equal(world_rows(world, 1, REPLICA_REPLICANTS), 0);
	}
	uint64_t dropped = replica_counters(world->sites[1].replica).messages_dropped;
	replica_receive(world->sites[1].replica, world->sites[0].id, buf_str(&old), world->now);
	assert_int_equal(replica_counters(world->sites[1].replica).messages_dropped, dropped + 1);
	assert_int_equal(world_rows(world, 1, REPLICA_REPLICANTS), 0);
	buf_free(&old);
	world_free(world);
}

/* Who is no member gets nothing, and is not listened to. */
static void test_strangers(void **state)
{
	(void)state;
	struct world *world = world_new(4);
	struct buf copied = {0};
	world_create(world, 0, 1, 3, "create 1");
	world_create(world, 2, 2, 12, "create 2");
	world_run_task(world, 0);
	buf_put(&copied, buf_str(&world->messages[0].bytes));
	world_go(world, 20 * SECOND);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(world_rows(world, i, REPLICA_REPLICANTS), 1);
	uint64_t sent = world->sent;
	/* Site 3 says what site 0 said: to a member, and to one that is none. */
	replica_receive(world->sites[1].replica, world->sites[3].id, buf_str(&copied), world->now);
	replica_receive(world->sites[2].replica, world->sites[3].id, buf_str(&copied), world->now);
	world_go(world, 20 * SECOND);
	assert_int_equal(world->sent, sent);
	assert_int_equal(world_rows(world, 2, REPLICA_REPLICANTS), 1);
	assert_int_equal(replica_counters(world->sites[1].replica).messages_dropped, 1);
	assert_int_equal(replica_counters(world->sites[2].replica).messages_dropped, 1);
	buf_free(&copied);
	world_free(world);
}

/* A thousand operations that a dead site has not got: rows, and no time. */
static void test_dead_site(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_create(world, 0, 1, ALL3, "create 0");
	for (uint32_t i = 2; i < 52; i++)
		world_create(world, 0, i, ALL3, "create 0");
	world_go(world, 10 * SECOND);
	world_crash(world, 2);
	world->sites[2].unreachable = true;
	for (uint32_t i = 0; i < 1000; i++) {
		world_ask(world, i % 2, 1 + i % 51, "add 1");
		world_go(world, 10000);
	}
	world_go(world, 120 * SECOND);
	assert_int_equal(world_rows(world, 0, REPLICA_OPERATIONS), 1000);
	assert_int_equal(world_rows(world, 0, REPLICA_OUTBOX), 51);
	uint64_t sent = world->sent;
	uint32_t puts = world->sites[0].puts, ticks = 0;
	uint64_t end = world->now.us + 600ull * SECOND;
	while (replica_due(world->sites[0].replica) < end) {
		world->now.us = replica_due(world->sites[0].replica);
		replica_tick(world->sites[0].replica, world->now);
		ticks++;
	}
	assert_true(ticks <= 12);
	assert_true(world->sent - sent <= 12);
	assert_true(world->sites[0].puts - puts <= 15); /* the clock */
	world_start(world, 2);
	world->sites[2].unreachable = false;
	world_met(world);
	world_go(world, 60 * SECOND);
	int64_t sum = 0;
	for (uint32_t i = 1; i < 52; i++)
		sum += world_item(world, 2, i)->value;
	assert_int_equal(sum, 1000);
	assert_quiet(world);
	world_free(world);
}

/* Two that take each other for unreachable, and hear each other, every message twice. Each owes the other one something that is not
 * confirmed, as answers to who cannot be reached are not sent. */
static void test_unreachable_and_heard(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	for (uint32_t i = 1; i <= 4; i++)
		world_create(world, 0, i, 3, "create 0");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	for (uint32_t i = 1; i <= 4; i++)
		world_ask(world, i % 2, i, "add 1");
	world_go(world, SECOND);
	for (uint32_t i = 0; i < 2; i++)
		world->sites[i].unreachable = world->sites[i].hold_tasks = true;
	world_go(world, 10 * SECOND);
	world->double_percent = 100;
	world_cut(world, 0);
	for (uint32_t i = 0; i < 120; i++) {
		uint64_t before = world->sent;
		world_go(world, SECOND);
		assert_true(world->sent - before <= 40);
	}
	world->double_percent = 0;
	for (uint32_t i = 0; i < 2; i++)
		world->sites[i].unreachable = world->sites[i].hold_tasks = false;
	world_met(world);
	world_go(world, 200 * SECOND);
	for (uint32_t i = 1; i <= 4; i++)
		assert_value(world, i, 1);
	assert_quiet(world);
	world_free(world);
}

/* A line that was slow, and is not any more: what is gone is asked for many times at once, and answered once. */
static void test_gone_is_answered_once(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct buf old = {0};
	world_create(world, 0, 1, 3, "create 1");
	world_run_task(world, 0);
	buf_put(&old, buf_str(&world->messages[0].bytes));
	world_go(world, 10 * SECOND);
	world_ask(world, 0, 1, "delete");
	world_go(world, 10 * SECOND);
	uint64_t sent = world->sent;
	for (uint32_t i = 0; i < 50; i++)
		replica_receive(world->sites[1].replica, world->sites[0].id, buf_str(&old), world->now);
	world_go(world, 10 * SECOND);
	assert_int_equal(world->sent - sent, 1);
	assert_quiet(world);
	buf_free(&old);
	world_free(world);
}

/* Only one member can reach the third: it gets what the other one issued all the same. */
static void test_relay(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world_create(world, 0, 1, ALL3, "create 0");
	world_go(world, 10 * SECOND);
	world->cut[0][2] = world->cut[2][0] = true;
	world_ask(world, 0, 1, "add 5");
	world_go(world, 1 * SECOND);
	assert_int_equal(world_item(world, 2, 1)->value, 0);
	world_go(world, 20 * SECOND);
	assert_value(world, 1, 5);
	world->cut[0][2] = world->cut[2][0] = false;
	world_go(world, 200 * SECOND);
	assert_quiet(world);
	world_free(world);
}

/* A restart at any time: nothing that is pending is forgotten. */
static void test_restart_with_pending(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_create(world, 0, 1, 3, "create 0");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	world_ask(world, 0, 1, "add 5");
	world_ask(world, 1, 1, "set 70");
	world_go(world, 10 * SECOND);
	for (uint32_t i = 0; i < 2; i++) {
		world_crash(world, i);
		world_start(world, i);
	}
	world_cut(world, 0);
	world_go(world, 60 * SECOND);
	assert_value(world, 1, 75);
	assert_quiet(world);
	world_free(world);
}

static void test_many_in_flight(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	char big[2000];
	memset(big, 'x', sizeof(big));
	memcpy(big, "add 1 ", 6);
	world_create(world, 0, 1, 3, "create 0");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	/* More than goes into one message. */
	for (uint32_t i = 0; i < 400; i++) {
		struct replica_submission submission = {
			.replicant = world_id(1), .class = world_class("add"), .request = {.head = str_make(big, sizeof(big))}};
		world_submit(world, 0, &submission);
		world_go(world, 1000);
	}
	world_cut(world, 0);
	world_met(world);
	world_go(world, 5 * SECOND);
	assert_value(world, 1, 400);
	assert_quiet(world);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_create_update_delete),
		cmocka_unit_test(test_cut_and_heal),
		cmocka_unit_test(test_refused_leaves_no_trace),
		cmocka_unit_test(test_failed_is_told),
		cmocka_unit_test(test_delivered_is_retried),
		cmocka_unit_test(test_lost_doubled_and_turned_round),
		cmocka_unit_test(test_away_for_its_whole_life),
		cmocka_unit_test(test_late_duplicate),
		cmocka_unit_test(test_strangers),
		cmocka_unit_test(test_dead_site),
		cmocka_unit_test(test_unreachable_and_heard),
		cmocka_unit_test(test_gone_is_answered_once),
		cmocka_unit_test(test_relay),
		cmocka_unit_test(test_restart_with_pending),
		cmocka_unit_test(test_many_in_flight),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
