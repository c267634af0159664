/* What is in doubt, rejected, or needs a person: crashes between intent and outcome, answers that are lost, members that refuse. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000 };

static void assert_all(struct world *world, uint32_t number, int64_t value)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		struct world_item *item = world_item(world, i, number);
		assert_non_null(item);
		assert_int_equal(item->value, value);
	}
}

static void assert_nothing_pending(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		assert_int_equal(world_rows(world, i, REPLICA_OPERATIONS), 0);
		assert_int_equal(world_rows(world, i, REPLICA_LANES), 0);
		assert_int_equal(world_rows(world, i, REPLICA_OUTBOX), 0);
	}
}

/* Sites with a resource of the first ones (as bits), which has 7, and is settled. */
static struct world *world_with_one(uint32_t sites, uint32_t members)
{
	struct world *world = world_new(sites);
	world_create(world, 0, 1, members, "create 7");
	world_go(world, 10 * SECOND);
	return world;
}

static int judge(struct world *world, uint32_t site, struct replica_op_id op, enum replica_verdict verdict)
{
	struct err err = {0};
	return replica_judge(world->sites[site].replica, op, verdict, STR(""), world->now, &err);
}

/* The agent dies while the service has a request of it, which hears it or not, and starts again. */
static void crash_while_asking(struct world *world, uint32_t site, bool happened)
{
	struct replica *dying = world->sites[site].replica;
	world->sites[site].replica = NULL; /* nobody is there to be told */
	if (happened)
		world_run_task(world, site);
	world->sites[site].replica = dying;
	world_crash(world, site);
	world->sites[site].hold_tasks = false;
	world_start(world, site);
	world_go(world, 60 * SECOND);
}

static uint64_t count_repairs(const struct world *world)
{
	uint64_t repaired = 0;
	for (uint32_t i = 0; i < world->sites_count; i++)
		if (world->sites[i].replica)
			repaired += replica_counters(world->sites[i].replica).repaired;
	return repaired;
}

/* ---- A crash between intent and outcome --------------------------------------------------------------------------------- */

struct crash_case {
	const char *text;
	bool happened; /* the service did it, and the agent died before it heard */
	bool there;
	int64_t value; /* that all have in the end */
};

/* The user was not answered. What happened reaches everybody; what did not leaves no trace, or happens now if that is safe. */
static void test_crash_of_first(void **state)
{
	static const struct crash_case cases[] = {
		{"set 50", true, true, 50}, {"set 50", false, true, 50}, {"mark z", true, true, 7},
		{"mark z", false, true, 7}, {"add 10", true, true, 17},  {"add 10", false, true, 7},
		{"delete", true, false, 0}, {"delete", false, false, 0},
	};
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct world *world = world_with_one(3, 7);
		world->sites[0].hold_tasks = true;
		uint64_t ticket = world_ask(world, 0, 1, cases[i].text);
		assert_int_equal(world->sites[0].tasks_count, 1);
		crash_while_asking(world, 0, cases[i].happened);
		assert_false(world->answers[ticket].there);
		if (cases[i].there)
			assert_all(world, 1, cases[i].value);
		for (uint32_t k = 0; k < 3 && !cases[i].there; k++)
			assert_false(world->sites[k].items[0].there);
		assert_nothing_pending(world);
		world_free(world);
	}
}

/* While it was executed, a later one came, and this site has said so: a state, for instance, covers nothing that its giver cannot have
 * known (repair.c). So it is issued as later than that, with a restart or without. */
static void test_crash_of_first_with_later_ones(void **state)
{
	(void)state;
	for (int way = 0; way < 6; way++) {
		struct world *world = world_with_one(3, 7);
		bool crashes = way % 3 > 0, given = way / 3;
		world->sites[0].hold_tasks = true;
		world_ask(world, 0, 1, "set 50");
		assert_int_equal(world->sites[0].tasks_count, 1);
		world_go(world, SECOND);
		if (given)
			world_give(world, 1, 1);
		else
			world_ask(world, 1, 1, "set 60");
		world_go(world, SECOND);
		assert_int_equal(world_item(world, 2, 1)->value, given ? 7 : 60);
		if (crashes)
			crash_while_asking(world, 0, way % 3 == 1);
		else
			world->sites[0].hold_tasks = false;
		world_go(world, 60 * SECOND);
		assert_all(world, 1, 50);
		assert_nothing_pending(world);
		world_free(world);
	}
}

static void test_crash_of_create(void **state)
{
	(void)state;
	for (int happened = 0; happened < 2; happened++) {
		struct world *world = world_new(2);
		world->sites[0].hold_tasks = true;
		world_create(world, 0, 1, 3, "create 7");
		crash_while_asking(world, 0, happened);
		for (uint32_t i = 0; i < 2; i++)
			assert_int_equal(world_rows(world, i, REPLICA_REPLICANTS), happened);
		if (happened)
			assert_all(world, 1, 7);
		assert_nothing_pending(world);
		world_free(world);
	}
}

/* The same where it was delivered: each is done there exactly once, or as good as that. */
static void test_crash_of_delivered(void **state)
{
	static const char *const texts[] = {"set 50", "mark z", "add 10", "delete"};
	(void)state;
	for (size_t i = 0; i < 8; i++) {
		struct world *world = world_with_one(2, 3);
		bool happened = i % 2;
		world->sites[1].hold_tasks = true;
		world_ask(world, 0, 1, texts[i / 2]);
		world_go(world, SECOND / 2);
		assert_int_equal(world->sites[1].tasks_count, 1);
		crash_while_asking(world, 1, happened);
		if (i / 2 < 3)
			assert_all(world, 1, i / 2 == 0 ? 50 : i / 2 == 2 ? 17 : 7);
		else
			assert_false(world->sites[1].items[0].there);
		assert_nothing_pending(world);
		world_free(world);
	}
}

/* ---- Answers that need not wait for what was put -------------------------------------------------------------------------- */

static bool is_kept(const struct world *world, uint64_t ticket)
{
	assert_true(world->answers[ticket].there);
	return world->answers[ticket].answer.kept;
}

/* Only of what a restart would issue and run again, whoever is asked. */
static void test_answers_that_need_not_wait(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	uint64_t created = world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	uint64_t set = world_ask(world, 0, 1, "set 50");
	world_go(world, 10 * SECOND);
	uint64_t mark = world_ask(world, 1, 1, "mark z");
	world_go(world, 10 * SECOND);
	uint64_t add = world_ask(world, 0, 1, "add 1");
	world_go(world, 10 * SECOND);
	struct replica_submission submission = {
		.replicant = world_id(1), .class = world_class("set"), .request = {.head = STR("set 60")}, .conditional = true};
	uint64_t conditional = world_submit(world, 0, &submission);
	world_go(world, 10 * SECOND);
	submission.conditional = false;
	submission.key = STR("key");
	uint64_t keyed = world_submit(world, 0, &submission);
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_REFUSE;
	uint64_t refused = world_ask(world, 0, 1, "set 70");
	world_go(world, 10 * SECOND);
	world->sites[0].mode = SERVICE_FINE;
	uint64_t deleted = world_ask(world, 0, 1, "delete");
	world_go(world, 10 * SECOND);
	assert_true(is_kept(world, set) && is_kept(world, mark));
	assert_false(is_kept(world, created) || is_kept(world, add) || is_kept(world, conditional) ||
	             is_kept(world, keyed));
	assert_false(is_kept(world, refused) || is_kept(world, deleted));
	world_free(world);
}

/* It gets a later stamp, which only what was put since has: a restart would issue another operation than the one that was answered. */
static void test_answer_that_waits_for_its_stamp(void **state)
{
	(void)state;
	struct world *world = world_with_one(2, 3);
	world->sites[0].hold_tasks = true;
	uint64_t first = world_ask(world, 0, 1, "set 50");
	world_go(world, SECOND / 10);
	world_ask(world, 1, 1, "mark z");
	world_go(world, SECOND);
	world->sites[0].hold_tasks = false;
	world_go(world, 10 * SECOND);
	assert_int_equal(world->answers[first].answer.outcome.kind, REPLICA_ACCEPTED);
	assert_false(is_kept(world, first));
	assert_nothing_pending(world);
	world_free(world);
}

/* ---- Answers that are lost -------------------------------------------------------------------------------------------------- */

static void test_service_that_cannot_tell(void **state)
{
	(void)state;
	struct world *world = world_with_one(2, 3);
	struct arena arena;
	arena_init(&arena, 0);
	world->sites[0].inquiry_blind = true;
	world->sites[0].mode = SERVICE_LOSES_ANSWERS;
	uint64_t ticket = world_ask(world, 0, 1, "add 10");
	world_go(world, 10 * SECOND);
	struct replica_answer *answer = &world->answers[ticket].answer;
	assert_int_equal(answer->code, 0);
	assert_int_equal(answer->outcome.kind, REPLICA_UNKNOWN);
	assert_true(answer->op.number & REPLICA_WITHHELD);
	struct replica_op_view view = world_look_op(world, 0, answer->op, &arena);
	assert_int_equal(view.members[0].state, REPLICA_IN_DOUBT);
	assert_int_equal(view.members_count, 1);
	assert_int_equal(world_item(world, 1, 1)->value, 7); /* nobody else has heard of it */
	/* Others go on meanwhile. */
	world->sites[0].mode = SERVICE_FINE;
	world_ask(world, 0, 1, "add 100");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_item(world, 0, 1)->value, 117);
	assert_int_equal(world_item(world, 1, 1)->value, 107);
	/* Also over a restart. */
	world_crash(world, 0);
	world_start(world, 0);
	world_go(world, 10 * SECOND);
	assert_int_equal(judge(world, 0, answer->op, REPLICA_HAPPENED), 0);
	world_go(world, 10 * SECOND);
	assert_all(world, 1, 117);
	assert_nothing_pending(world);
	assert_int_equal(judge(world, 0, answer->op, REPLICA_HAPPENED), ERR_NOT_FOUND);
	arena_free(&arena);
	world_free(world);
}

static void test_withheld_dismissed_or_run_again(void **state)
{
	(void)state;
	for (int again = 0; again < 2; again++) {
		struct world *world = world_with_one(2, 3);
		world->sites[0].inquiry_blind = true;
		world->sites[0].mode = SERVICE_LOSES_REQUESTS;
		uint64_t ticket = world_ask(world, 0, 1, "add 10");
		world_go(world, 10 * SECOND);
		world->sites[0].mode = SERVICE_FINE;
		uint32_t events = world->sites[0].events;
		assert_int_equal(judge(world, 0, world->answers[ticket].answer.op, again ? REPLICA_RETRY : REPLICA_DISMISS), 0);
		assert_true(again || world->sites[0].events == events + 1);
		world_go(world, 10 * SECOND);
		assert_all(world, 1, again ? 17 : 7);
		assert_nothing_pending(world);
		world_free(world);
	}
}

/* Its user's site deletes it, which is refused there, and loses against what another one did. Whether what was in doubt is still in what is
 * there is not known before: nobody's word on it is taken until then, and it is in no copy alone. */
static void test_withheld_and_deleted(void **state)
{
	(void)state;
	for (int deleted = 0; deleted < 2; deleted++) {
		struct world *world = world_new(2);
		world->rules.delete_loses = true;
		world_create(world, 0, 1, 3, "create 7");
		world_go(world, 10 * SECOND);
		world->sites[0].inquiry_blind = true;
		world->sites[0].mode = SERVICE_LOSES_ANSWERS;
		uint64_t ticket = world_ask(world, 0, 1, "add 10");
		world_go(world, 10 * SECOND);
		world_cut(world, 1);
		if (!deleted)
			world_ask(world, 1, 1, "add 100");
		world->sites[0].mode = SERVICE_LOSES_REQUESTS;
		world_ask(world, 0, 1, "delete");
		world_go(world, SECOND / 2);
		world->sites[0].mode = SERVICE_REFUSE;
		world_go(world, 10 * SECOND);
		struct replica_op_id op = world->answers[ticket].answer.op;
		assert_int_equal(judge(world, 0, op, REPLICA_HAPPENED), ERR_CONFLICT);
		world->sites[0].mode = SERVICE_FINE;
		if (deleted) { /* the delete is run again, and done: nothing is left to decide on */
			struct replica_op_id first = {world_id(1), world->sites[0].id, 2};
			assert_int_equal(judge(world, 0, first, REPLICA_RETRY), 0);
			world_go(world, 10 * SECOND);
			assert_int_equal(judge(world, 0, op, REPLICA_HAPPENED), 0);
		}
		world_cut(world, 0);
		world_met(world);
		world_go(world, 60 * SECOND);
		if (!deleted) {
			assert_int_equal(judge(world, 0, op, REPLICA_HAPPENED), 0);
			world_go(world, 60 * SECOND);
			assert_all(world, 1, 117);
		}
		for (uint32_t i = 0; i < 2 && deleted; i++)
			assert_null(world_item(world, i, 1));
		assert_nothing_pending(world);
		world_free(world);
	}
}

/* Delivered, and nobody can say whether it happened there. */
static void test_delivered_in_doubt(void **state)
{
	static const struct {
		enum replica_verdict verdict;
		bool happened;
		int64_t value;
	} cases[] = {{REPLICA_HAPPENED, true, 17}, {REPLICA_RETRY, false, 17}, {REPLICA_DISMISS, false, 7}};
	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct world *world = world_with_one(2, 3);
		struct arena arena;
		arena_init(&arena, 0);
		world->sites[1].inquiry_blind = true;
		world->sites[1].mode = cases[i].happened ? SERVICE_LOSES_ANSWERS : SERVICE_LOSES_REQUESTS;
		uint64_t ticket = world_ask(world, 0, 1, "add 10");
		world_go(world, 10 * SECOND);
		struct replica_op_id op = world->answers[ticket].answer.op;
		for (uint32_t k = 0; k < 2; k++) {
			struct replica_op_view view = world_look_op(world, k, op, &arena);
			assert_int_equal(view.members[0].state, REPLICA_APPLIED);
			assert_int_equal(view.members[1].state, REPLICA_IN_DOUBT);
			assert_int_equal(world_rows(world, k, REPLICA_OPERATIONS), 1);
		}
		world->sites[1].mode = SERVICE_FINE;
		uint32_t events = world->sites[1].events;
		assert_int_equal(judge(world, 1, op, cases[i].verdict), 0);
		assert_true(world->sites[1].events > events); /* who follows hears that somebody decided */
		world_go(world, 10 * SECOND);
		assert_int_equal(world_item(world, 1, 1)->value, cases[i].value);
		assert_nothing_pending(world);
		arena_free(&arena);
		world_free(world);
	}
}

/* ---- Rejected ------------------------------------------------------------------------------------------------------------------ */

static void test_rejected_and_retried(void **state)
{
	(void)state;
	struct world *world = world_with_one(3, 7);
	struct arena arena;
	arena_init(&arena, 0);
	world->sites[2].mode = SERVICE_REFUSE;
	uint64_t ticket = world_ask(world, 0, 1, "add 10");
	world_go(world, 10 * SECOND);
	struct replica_op_id op = world->answers[ticket].answer.op;
	for (uint32_t i = 0; i < 3; i++) {
		struct replica_op_view view = world_look_op(world, i, op, &arena);
		assert_int_equal(view.members[1].state, REPLICA_APPLIED);
		assert_int_equal(view.members[2].state, REPLICA_REJECTED);
		assert_int_equal(view.members[2].status, 422);
		assert_true(str_equal(view.members[2].answer, STR("no")));
	}
	assert_int_equal(world_item(world, 1, 1)->value, 17);
	assert_int_equal(judge(world, 2, op, REPLICA_HAPPENED), ERR_INVALID);
	assert_int_equal(judge(world, 1, op, REPLICA_RETRY), ERR_NOT_FOUND);
	/* Still refused; then not any more. */
	assert_int_equal(judge(world, 2, op, REPLICA_RETRY), 0);
	world_go(world, 10 * SECOND);
	assert_int_equal(world_look_op(world, 0, op, &arena).members[2].state, REPLICA_REJECTED);
	world->sites[2].mode = SERVICE_FINE;
	assert_int_equal(judge(world, 2, op, REPLICA_RETRY), 0);
	world_go(world, 10 * SECOND);
	assert_all(world, 1, 17);
	assert_nothing_pending(world);
	assert_int_equal(world_look_op(world, 0, op, &arena).members[2].state, REPLICA_APPLIED);
	arena_free(&arena);
	world_free(world);
}

/* A later `set` says all that the rejected one would have said. */
static void test_rejected_then_covered(void **state)
{
	(void)state;
	struct world *world = world_with_one(2, 3);
	world->sites[1].mode = SERVICE_REFUSE;
	world_ask(world, 0, 1, "set 10");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_rows(world, 0, REPLICA_OPERATIONS), 1);
	world->sites[1].mode = SERVICE_FINE;
	world_ask(world, 0, 1, "set 20");
	world_go(world, 10 * SECOND);
	assert_all(world, 1, 20);
	assert_nothing_pending(world);
	world_free(world);
}

/* The create itself is rejected at one member: what follows is too; a delete ends it all. */
static void test_create_rejected(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	struct arena arena;
	arena_init(&arena, 0);
	world->sites[1].mode = SERVICE_FULL;
	uint64_t create = world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	uint64_t add = world_ask(world, 0, 1, "add 1");
	world_go(world, 10 * SECOND);
	assert_int_equal(world_look_op(world, 0, world->answers[create].answer.op, &arena).members[1].state,
	                 REPLICA_REJECTED);
	assert_int_equal(world_look_op(world, 0, world->answers[add].answer.op, &arena).members[1].state, REPLICA_REJECTED);
	uint64_t there = world_ask(world, 1, 1, "add 1");
	assert_int_equal(world->answers[there].answer.code, ERR_UNAVAILABLE);
	world_ask(world, 0, 1, "delete");
	world_go(world, 10 * SECOND);
	assert_nothing_pending(world);
	assert_int_equal(world->sites[1].items_count, 0);
	arena_free(&arena);
	world_free(world);
}

static void test_credential(void **state)
{
	(void)state;
	struct world *world = world_with_one(2, 3);
	struct arena arena;
	arena_init(&arena, 0);
	world->sites[1].mode = SERVICE_CREDENTIAL;
	struct replica_submission submission = {.replicant = world_id(1),
	                                        .class = world_class("add"),
	                                        .request = {.head = STR_INIT("add 1"), .secret = STR_INIT("old")}};
	uint64_t ticket = world_submit(world, 0, &submission);
	world_go(world, 10 * SECOND);
	struct replica_op_id op = world->answers[ticket].answer.op;
	assert_string_equal(world->sites[1].secret, "old");
	assert_int_equal(world_look_op(world, 0, op, &arena).members[1].state, REPLICA_REJECTED_CREDENTIAL);
	world->sites[1].mode = SERVICE_FINE;
	assert_int_equal(replica_judge(world->sites[1].replica, op, REPLICA_RETRY, STR("fresh"), world->now, NULL), 0);
	world_go(world, 10 * SECOND);
	assert_string_equal(world->sites[1].secret, "fresh");
	assert_all(world, 1, 8);
	assert_nothing_pending(world);
	arena_free(&arena);
	world_free(world);
}

/* ---- Stuck ---------------------------------------------------------------------------------------------------------------------- */

/* `times` and `add`, each first at one site: nothing to start from but the state of another one. */
static void test_repair(void **state)
{
	uint8_t resolutions[36];
	(void)state;
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[3 * 6 + 5] = resolutions[5 * 6 + 3] = ORDER_KEEP;
	for (int can = 0; can < 2; can++) {
		struct world *world = world_new(2);
		world->rules = (struct order_rules){.classes = 6, .resolutions = resolutions};
		world_create(world, 0, 1, 3, "create 7");
		world_go(world, 10 * SECOND);
		world->sites[0].no_state = world->sites[1].no_state = !can;
		world_cut(world, 1);
		world_ask(world, 0, 1, "add 1");
		world_go(world, SECOND);
		world_ask(world, 1, 1, "times 10");
		world_go(world, SECOND);
		world_cut(world, 0);
		world_go(world, 100 * SECOND);
		uint64_t repaired = 0, diverged = 0;
		for (uint32_t i = 0; i < 2; i++) {
			repaired += replica_counters(world->sites[i].replica).repaired;
			diverged += replica_counters(world->sites[i].replica).diverged;
		}
		if (can) {
			assert_all(world, 1, 80); /* (7 + 1) * 10: what the first one had, which is settled */
			assert_int_equal(repaired, 1);
			assert_int_equal(diverged, 0);
		} else {
			struct arena arena;
			arena_init(&arena, 0);
			struct replica_view view = world_look(world, 0, 1, &arena);
			assert_int_equal(repaired, 0);
			assert_true(diverged >= 1);
			assert_true(view.members[0].diverged || view.members[1].diverged);
			assert_true(view.members[1].stuck);
			arena_free(&arena);
		}
		world_free(world);
	}
}

/* Both are stuck: what each did is between what the other one did. The one that is nearer gives its state, which has everything in it: of
 * that nothing is run once more on top of it. */
static void test_repair_by_the_nearest(void **state)
{
	uint8_t resolutions[36];
	(void)state;
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[3 * 6 + 5] = resolutions[5 * 6 + 3] = ORDER_KEEP;
	struct world *world = world_new(2);
	world->rules = (struct order_rules){.classes = 6, .resolutions = resolutions};
	world_create(world, 0, 1, 3, "create 7");
	world_go(world, 10 * SECOND);
	world_cut(world, 1);
	for (uint32_t i = 0; i < 4; i++) {
		world_ask(world, i % 2, 1, i % 2 ? "times 10" : "add 1");
		world_go(world, SECOND);
	}
	assert_int_equal(world_item(world, 0, 1)->value, 9);
	assert_int_equal(world_item(world, 1, 1)->value, 700);
	world_cut(world, 0);
	world_go(world, 100 * SECOND);
	assert_int_equal(count_repairs(world), 1);
	assert_all(world, 1, 900);
	for (uint32_t i = 0; i < 2; i++)
		assert_int_equal(world_rows(world, i, REPLICA_OUTBOX), 0);
	world_free(world);
}

/* The first site is right, the second one stuck, the third lacks what its service refused. The first is away for a while, or for ever:
 * that is no reason for the second one to give its own state at once. */
static void test_repair_waits_for_who_is_better(void **state)
{
	uint8_t resolutions[36];
	(void)state;
	memset(resolutions, ORDER_DEFAULT, sizeof(resolutions));
	resolutions[3 * 6 + 5] = resolutions[5 * 6 + 3] = ORDER_KEEP;
	for (int back = 0; back < 2; back++) {
		struct world *world = world_new(3);
		world->rules = (struct order_rules){.classes = 6, .resolutions = resolutions};
		world_create(world, 0, 1, 7, "create 7");
		world_go(world, 10 * SECOND);
		for (uint32_t i = 0; i < 3; i++)
			for (uint32_t k = 0; k < 3; k++)
				world->cut[i][k] = i != k;
		world_ask(world, 0, 1, "add 1");
		world_go(world, SECOND);
		world_ask(world, 1, 1, "times 10");
		world_go(world, SECOND);
		world->sites[2].mode = SERVICE_REFUSE;
		world->sites[0].unreachable = true;
		world_cut(world, 0);
		for (uint32_t i = 0; i < 2000 && world_item(world, 1, 1)->value != 71; i++)
			world_go(world, 10000); /* less than a repair waits */
		assert_int_equal(world_item(world, 0, 1)->value, 80);
		assert_int_equal(world_item(world, 1, 1)->value, 71);
		if (back)
			world->sites[0].mode = SERVICE_DOWN;
		else
			world_crash(world, 0);
		world_go(world, 120 * SECOND);
		assert_int_equal(world_item(world, 1, 1)->value, 71);
		assert_int_equal(count_repairs(world), 0);
		if (back) {
			world->sites[0].unreachable = false;
			world->sites[0].mode = SERVICE_FINE;
			world_go(world, 120 * SECOND);
			assert_int_equal(world_item(world, 0, 1)->value, 80);
			assert_int_equal(world_item(world, 1, 1)->value, 80);
		} else {
			world_go(world, 300ull * SECOND);
			assert_int_equal(world_item(world, 1, 1)->value, 71); /* all changes are in it */
		}
		assert_int_equal(count_repairs(world), 1);
		world_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_crash_of_first),
		cmocka_unit_test(test_crash_of_first_with_later_ones),
		cmocka_unit_test(test_crash_of_create),
		cmocka_unit_test(test_crash_of_delivered),
		cmocka_unit_test(test_answers_that_need_not_wait),
		cmocka_unit_test(test_answer_that_waits_for_its_stamp),
		cmocka_unit_test(test_service_that_cannot_tell),
		cmocka_unit_test(test_withheld_dismissed_or_run_again),
		cmocka_unit_test(test_withheld_and_deleted),
		cmocka_unit_test(test_delivered_in_doubt),
		cmocka_unit_test(test_rejected_and_retried),
		cmocka_unit_test(test_rejected_then_covered),
		cmocka_unit_test(test_create_rejected),
		cmocka_unit_test(test_credential),
		cmocka_unit_test(test_repair),
		cmocka_unit_test(test_repair_by_the_nearest),
		cmocka_unit_test(test_repair_waits_for_who_is_better),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
