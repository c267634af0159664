#include "order_test.h"

#include "base/arena.h"

#include <stdlib.h>

/* ---- E ---------------------------------------------------------------------------------------------------------------- */

struct sequence_case {
	const char *ops;
	const char *rules;
	const char *wanted; /* E */
	const char *fates;  /* `B1<A2`: B1 superseded by A2; `B1-A2`: obsolete. The others count */
	bool delete_loses;
};

static void check_fates(const struct test_set *test, const struct order_sequence *sequence, const char *wanted)
{
	char text[256] = "";
	size_t length = 0;
	for (uint32_t i = 0; i < test->set.ops_count; i++) {
		const struct order_place *place = &sequence->places[i];
		if (place->fate == ORDER_COUNTS)
			continue;
		char one[256], other[256];
		test_names(test, &i, 1, one);
		test_names(test, &place->by, 1, other);
		length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s%s%s", length > 0 ? " " : "", one,
		                           place->fate == ORDER_SUPERSEDED ? "<" : "-", other);
	}
	assert_string_equal(text, wanted);
}

static void check_sequence(const struct sequence_case *one)
{
	struct test_set test;
	struct arena arena;
	struct order_sequence sequence;
	char names[256];
	arena_init(&arena, 0);
	test_set_make(&test, one->ops);
	test_set_rules(&test, one->rules);
	test.set.rules.delete_loses = one->delete_loses;
	order_build(&arena, &test.set, &sequence);
	test_names(&test, sequence.ops, sequence.ops_count, names);
	if (strcmp(names, one->wanted) != 0)
		print_error("%s %s\n", one->ops, one->rules);
	assert_string_equal(names, one->wanted);
	check_fates(&test, &sequence, one->fates);
	arena_free(&arena);
}

static void check_sequences(const struct sequence_case *cases, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check_sequence(&cases[i]);
}

static void nothing_concurrent_keeps_its_order(void **state)
{
	(void)state;
	const struct sequence_case cases[] = {
		{"", "", "", "", false},
		{"Ac", "", "A1", "", false},
		{"Ac Ai Bi(A2) Ca(B1)", "", "A1 A2 B1 C1", "", false},
		{"Ac Ai Br(A2) Ci(B1)", "", "A1 A2 B1 C1", "A2-B1", false},
		{"Ac Ai Br(A2) Cr(B1) Aa(C1)", "", "A1 A2 B1 C1 A3", "A2-C1 B1-C1", false},
		{"Ac Ai Bd(A2)", "", "A1 A2 B1", "A1-B1 A2-B1", false},
		{"Ac Ai Bd(A2) Br", "", "A1 A2 B1 B2", "A1-B1 A2-B2", false}, /* a PUT that makes it again */
	};
	check_sequences(cases, COUNT(cases));
}

/* All had seen the create A1; B1 is before C1 in T. */
static void concurrent_pairs_by_default(void **state)
{
	(void)state;
	const struct sequence_case cases[] = {
		{"Ac Br(A1) Cr(A1)", "", "A1 C1", "B1<C1", false},
		{"Ac Br(A1) Ca(A1)", "", "A1 B1 C1", "", false},
		{"Ac Br(A1) Ci(A1)", "", "A1 B1 C1", "", false},
		{"Ac Ba(A1) Cr(A1)", "", "A1 C1 B1", "", false},
		{"Ac Ba(A1) Ca(A1)", "", "A1 B1 C1", "", false},
		{"Ac Ba(A1) Ci(A1)", "", "A1 B1 C1", "", false},
		{"Ac Bi(A1) Cr(A1)", "", "A1 C1 B1", "", false},
		{"Ac Bi(A1) Ca(A1)", "", "A1 B1 C1", "", false},
		{"Ac Bi(A1) Ci(A1)", "", "A1 B1 C1", "", false},
		{"Ac Bd(A1) Cd(A1)", "", "A1 B1 C1", "A1-C1 B1-C1", false},
		{"Ac Bd(A1) Cr(A1)", "", "A1 B1", "A1-B1 C1<B1", false},
		{"Ac Bd(A1) Ca(A1)", "", "A1 B1", "A1-B1 C1<B1", false},
		{"Ac Bd(A1) Ci(A1)", "", "A1 B1", "A1-B1 C1<B1", false},
		{"Ac Br(A1) Cd(A1)", "", "A1 C1", "A1-C1 B1<C1", false},
		{"Ac Ba(A1) Cd(A1)", "", "A1 C1", "A1-C1 B1<C1", false},
		{"Ac Bi(A1) Cd(A1)", "", "A1 C1", "A1-C1 B1<C1", false},
		{"Ac Bd(A1) Cd(A1)", "", "A1 B1 C1", "A1-C1 B1-C1", true},
		{"Ac Bd(A1) Cr(A1)", "", "A1 C1", "B1<C1", true},
		{"Ac Bd(A1) Ca(A1)", "", "A1 C1", "B1<C1", true},
		{"Ac Bd(A1) Ci(A1)", "", "A1 C1", "B1<C1", true},
		{"Ac Br(A1) Cd(A1)", "", "A1 B1", "C1<B1", true},
		{"Ac Ba(A1) Cd(A1)", "", "A1 B1", "C1<B1", true},
		{"Ac Bi(A1) Cd(A1)", "", "A1 B1", "C1<B1", true},
		{"Ac Bc", "", "A1", "B1<A1", false}, /* the same name, made at two places */
		{"Aa Bc", "", "B1 A1", "", false},
		{"Ac Bi", "", "A1 B1", "", false},
		/* A delete that had seen a change is not concurrent with it. */
		{"Ac Ba(A1) Cd(B1)", "", "A1 B1 C1", "A1-C1 B1-C1", true},
		{"Ac Ba(A1) Cd(A1) Dd(B1)", "", "A1 B1 D1", "A1-D1 B1-D1 C1<B1", true},
	};
	check_sequences(cases, COUNT(cases));
}

static void the_description_may_override_any_pair(void **state)
{
	(void)state;
	const struct sequence_case cases[] = {
		{"Ac Br(A1) Cr(A1)", "rKr", "A1 B1 C1", "B1-C1", false},
		{"Ac Br(A1) Cr(A1)", "rRr", "A1 C1 B1", "C1-B1", false},
		{"Ac Br(A1) Cr(A1)", "rFr", "A1 B1", "C1<B1", false},
		{"Ac Br(A1) Cr(A1)", "rAr", "A1 B1 C1", "", false}, /* such a replace leaves something alone */
		{"Ac Bi(A1) Ci(A1)", "iRi", "A1 C1 B1", "", false},
		{"Ac Bi(A1) Ci(A1)", "iOi", "A1 C1", "B1<C1", false},
		{"Ac Ba(A1) Ca(A1)", "aOa", "A1 C1", "B1<C1", false},
		{"Ac Ba(A1) Cr(A1)", "aKr", "A1 B1 C1", "B1-C1", false},
		{"Ac Ba(A1) Cr(A1)", "rKa", "A1 C1 B1", "", false}, /* of the pair the other way round */
		{"Ac Bd(A1) Ci(A1)", "dKi", "A1 B1 C1", "A1-B1", false},
		/* Classes of one effect are told apart. */
		{"Ac Bi:1(A1) Ci:2(A1) Di:1(A1)", "1R2", "A1 C1 B1 D1", "", false},
		{"Ac Bi:1(A1) Ci:2(A1) Di:1(A1)", "1O2", "A1 C1 D1", "B1<C1", false},
		{"Ac Bi:1(A1) Ci:2(A1) Di:1(A1)", "2R1", "A1 B1 D1 C1", "", false},
	};
	check_sequences(cases, COUNT(cases));
}

static void never_past_one_that_it_had_seen(void **state)
{
	(void)state;
	const struct sequence_case cases[] = {
		{"Ac Bi(A1) Ci(A1) Dr(A1)", "", "A1 D1 B1 C1", "", false},
		{"Ac Bi(A1) Ci(A1) Dr(B1)", "", "A1 B1 D1 C1", "B1-D1", false},
		{"Ac Bi(A1) Ci(A1) Dr(C1)", "", "A1 B1 C1 D1", "B1-D1 C1-D1", false},
		{"Ac Bi(A1) Bi Ci(A1) Dr(B1)", "", "A1 B1 D1 B2 C1", "B1-D1", false},
		/* The older of two replaces lost, what was done on top of it did not. */
		{"Ac Br(A1) Bi Cr(A1)", "", "A1 C1 B2", "B1<C1", false},
		{"Ac Br(A1) Cr(A1) Bi", "", "A1 C1 B2", "B1<C1", false},
		/* One that lost makes others lose, as in whatever order they come. */
		{"Ac Br(A1) Cr(A1) Dr(B1)", "", "A1 D1", "B1<C1 C1<D1", false},
		{"Ac Br(A1) Cr(A1) Dr(A1)", "", "A1 D1", "B1<D1 C1<D1", false},
		/* Past those that commute, to before the first one that it must precede. */
		{"Ac Bi(A1) Ci/1(A1) Dr(A1)", "", "A1 D1 B1 C1", "", false},
		{"Ac Bi/1(A1) Ci(A1) Dr(A1)", "", "A1 B1 D1 C1", "", false},
	};
	check_sequences(cases, COUNT(cases));
}

static void facets_do_not_disturb_each_other(void **state)
{
	(void)state;
	const struct sequence_case cases[] = {
		{"Ac Br(A1) Cr/1(A1)", "", "A1 B1 C1", "", false},
		{"Ac Br/1(A1) Cr/1(A1) Dr(A1)", "", "A1 C1 D1", "B1<C1", false},
		{"Ac Bi/1(A1) Cr/2(A1)", "", "A1 B1 C1", "", false},
		{"Ac Bi(A1) Br/1 Br", "", "A1 B1 B2 B3", "B1-B3", false},
		{"Ac Br/1(A1) Cd(A1)", "", "A1 C1", "A1-C1 B1<C1", false},
		{"Ac Br/1(A1) Cd(A1)", "", "A1 B1", "C1<B1", true},
		{"Ac Br/1(A1) Bd", "", "A1 B1 B2", "A1-B2 B1-B2", false},
	};
	check_sequences(cases, COUNT(cases));
}

/* ---- What to do ------------------------------------------------------------------------------------------------------- */

struct run_case {
	const char *ops;
	const char *rules;
	const char *done; /* X: `B1!` rejected, `B1?` in doubt */
	const char
		*wanted; /* what is run: `B1+` again, `A1^` as a replace; then `stuck 3/1` with distance and facet, or nothing.
	                     * `B1=` stands still: its effect is there while it is run again */
	bool create_replays;
	bool delete_loses;
	uint32_t base; /* of A */
};

static uint32_t parse_done(const struct test_set *test, const char *text, struct order_step_done *done)
{
	uint32_t count = 0;
	while (*text) {
		done[count] = (struct order_step_done){.op = test_op(test, text)};
		text += strspn(text, "ABCD0123456789");
		if (*text == '!')
			done[count].how = ORDER_REJECTED;
		if (*text == '?')
			done[count].how = ORDER_DOUBT;
		text += strspn(text, "!? ");
		count++;
	}
	return count;
}

static size_t put_step(const struct test_set *test, const struct order_next *next, char *text, size_t room)
{
	char name[256];
	test_names(test, &next->op, 1, name);
	const char *mark = next->action == ORDER_RERUN ? "+" : "";
	if (next->standing)
		mark = "=";
	if (next->as_replace)
		mark = "^";
	return (size_t)snprintf(text, room, "%s%s ", name, mark);
}

static size_t put_stuck(const struct order_next *next, char *text, size_t room)
{
	if (next->facet != 0)
		return (size_t)snprintf(text, room, "stuck %u/%u ", next->distance, next->facet);
	return (size_t)snprintf(text, room, "stuck %u ", next->distance);
}

/* Runs what order_next() says until there is nothing more to do. `refused` is the operation that the service refuses. */
static void run_all(struct test_set *test, struct order_step_done *done, uint32_t *count, const char *refused,
                    char text[512])
{
	struct arena arena;
	struct order_sequence sequence;
	size_t length = 0;
	arena_init(&arena, 0);
	order_build(&arena, &test->set, &sequence);
	for (int steps = 0;; steps++) {
		struct order_next next;
		assert_true(steps < 100);
		order_next(&arena, &test->set, &sequence, done, *count, &next);
		if (next.action == ORDER_STUCK)
			length += put_stuck(&next, text + length, 512 - length);
		if (next.action == ORDER_STUCK || next.action == ORDER_NOTHING)
			break;
		length += put_step(test, &next, text + length, 512 - length);
		order_step(done, count, &next, refused && next.op == test_op(test, refused) ? ORDER_REJECTED : ORDER_DONE);
		assert_true(*count <= test->set.ops_count + 1);
	}
	text[length > 0 ? length - 1 : 0] = '\0';
	arena_free(&arena);
}

static void make_case(struct test_set *test, const struct run_case *one)
{
	test_set_make(test, one->ops);
	test_set_rules(test, one->rules);
	test->set.rules.create_replays = one->create_replays;
	test->set.rules.delete_loses = one->delete_loses;
	test->base[0] = one->base;
	test->set.ops += one->base;
	test->set.ops_count -= one->base;
}

static void check_runs(const struct run_case *cases, size_t cases_count, const char *refused)
{
	for (size_t i = 0; i < cases_count; i++) {
		struct test_set test;
		struct order_step_done done[TEST_OPS + 1];
		char text[512];
		make_case(&test, &cases[i]);
		/* Names are looked up among all; what is forgotten is not among them. */
		memmove(test.ops, test.ops + cases[i].base, test.set.ops_count * sizeof(test.ops[0]));
		test.set.ops = test.ops;
		uint32_t count = parse_done(&test, cases[i].done, done);
		run_all(&test, done, &count, refused, text);
		if (strcmp(text, cases[i].wanted) != 0)
			print_error("%s | %s | %s\n", cases[i].ops, cases[i].rules, cases[i].done);
		assert_string_equal(text, cases[i].wanted);
	}
}

static void what_is_a_beginning_goes_on(void **state)
{
	(void)state;
	const struct run_case cases[] = {
		{.ops = "", .rules = "", .done = "", .wanted = ""},
		{.ops = "Ac", .rules = "", .done = "", .wanted = "A1"},
		{.ops = "Ac Ai Bi(A2)", .rules = "", .done = "", .wanted = "A1 A2 B1"},
		{.ops = "Ac Ai Bi(A2)", .rules = "", .done = "A1 A2", .wanted = "B1"},
		{.ops = "Ac Ai Bi(A2)", .rules = "", .done = "A1 A2 B1", .wanted = ""},
		/* Neighbours that commute. */
		{.ops = "Ac Bi(A1) Ci(A1)", .rules = "", .done = "A1 C1", .wanted = "B1"},
		{.ops = "Ac Bi(A1) Ci(A1)", .rules = "", .done = "A1 C1 B1", .wanted = ""},
		{.ops = "Ac Bi(A1) Bi Ci(A1) Ci", .rules = "", .done = "A1 C1 C2 B1", .wanted = "B2"},
		{.ops = "Ac Ba(A1) Ci(A1)", .rules = "", .done = "A1 C1", .wanted = "B1"},
		/* What is obsolete need not be run. */
		{.ops = "Ac Ai Br(A2) Ci(B1)", .rules = "", .done = "", .wanted = "A1 B1 C1"},
		{.ops = "Ac Ai Br(A2) Ci(B1)", .rules = "", .done = "A1", .wanted = "B1 C1"},
		{.ops = "Ac Ai Br(A2) Ci(B1)", .rules = "", .done = "A1 A2", .wanted = "B1 C1"},
		{.ops = "Ac Ai/1 Ai Br/1(A3)", .rules = "", .done = "", .wanted = "A1 A3 B1"},
		/* What lost is not run either. */
		{.ops = "Ac Br(A1) Cr(A1)", .rules = "", .done = "A1", .wanted = "C1"},
		{.ops = "Ac Br(A1) Cr(A1)", .rules = "", .done = "A1 B1", .wanted = "C1"},
		{.ops = "Ac Br(A1) Cr(A1)", .rules = "", .done = "A1 C1", .wanted = ""},
		/* The create is forgotten. */
		{.ops = "Ac Bi(A1) Ci(A1)", .rules = "", .done = "C1", .wanted = "B1", .base = 1},
		{.ops = "Ac Br(A1) Ci(A1)", .rules = "", .done = "C1", .wanted = "B1 C1+", .base = 1},
	};
	check_runs(cases, COUNT(cases), NULL);
}

static void values_are_set_again_in_the_right_order(void **state)
{
	(void)state;
	const struct run_case cases[] = {
		{.ops = "Ac Ba(A1) Ca(A1)", .rules = "", .done = "A1 C1", .wanted = "B1 C1="},
		{.ops = "Ac Ba(A1) Ca(A1)", .rules = "", .done = "A1 C1 B1", .wanted = "C1="},
		{.ops = "Ac Ba(A1) Ca(A1) Da(A1)", .rules = "", .done = "A1 D1 B1", .wanted = "C1 D1="},
		{.ops = "Ac Ba(A1) Ca(A1) Ca", .rules = "", .done = "A1 C1 C2", .wanted = "B1 C1= C2="},
		/* What commutes with them stays. */
		{.ops = "Ac Ba(A1) Ca(A1) Di(A1)", .rules = "", .done = "A1 C1 D1", .wanted = "B1 C1="},
		{.ops = "Ac Ba(A1) Di(A1) Ca(A1)", .rules = "", .done = "A1 C1", .wanted = "B1 D1 C1="},
		/* What had been done on top of one does not: it would be done on another value. */
		{.ops = "Ac Ba(A1) Ca(A1) Ci", .rules = "", .done = "A1 C1 C2", .wanted = "B1 stuck 2"},
		{.ops = "Ac Ba(A1) Ca(A1) Ci",
	     .rules = "",
	     .done = "A1 C1 C2",
	     .wanted = "A1^ B1 C1+ C2+",
	     .create_replays = true},
		{.ops = "Ac Ar Ba(A2) Ca(A2) Ci", .rules = "", .done = "A1 A2 C1 C2", .wanted = "A2= B1 C1+ C2+"},
		{.ops = "Ac Ba(A1) Ca(A1) Ci", .rules = "", .done = "A1 C1", .wanted = "B1 C1= C2"},
		{.ops = "Ac Bi(A1) Ca(A1)", .rules = "iKa", .done = "A1 C1", .wanted = "A1^ B1 C1+", .create_replays = true},
		{.ops = "Ac Bi(A1) Ca(A1)", .rules = "iKa", .done = "A1 C1", .wanted = "B1 stuck 1"},
		/* One that lost, and nothing covers it. */
		{.ops = "Ac Ba(A1) Ca(A1)", .rules = "aOa", .done = "A1 B1", .wanted = "C1 stuck 2"},
		{.ops = "Ac Ba(A1) Ca(A1) Dr(B1)", .rules = "aOa", .done = "A1 B1", .wanted = "D1 C1"},
		/* In another facet there is nothing to do. */
		{.ops = "Ac Di/1(A1) Ba(A1) Ca(A1)", .rules = "", .done = "A1 C1 D1", .wanted = "B1 C1="},
		{.ops = "Ac Ba(A1) Ca/1(A1)", .rules = "", .done = "A1 C1", .wanted = "B1"},
	};
	check_runs(cases, COUNT(cases), NULL);
}

static void a_replace_resets_what_came_before(void **state)
{
	(void)state;
	const struct run_case cases[] = {
		{.ops = "Ac Ar(A1) Bi(A1) Ci(A1)", .rules = "", .done = "A1 B1", .wanted = "A2 B1+ C1"},
		{.ops = "Ac Ar(A1) Bi(A1) Ci(A1)", .rules = "", .done = "A1 B1 C1", .wanted = "A2 B1+ C1+"},
		{.ops = "Ac Bi(A1) Ci(A1) Ar", .rules = "", .done = "A1 B1 C1", .wanted = "A2 B1+ C1+"},
		{.ops = "Ac Bi(A1) Ci(A1) Ar(B1)", .rules = "", .done = "A1 B1 C1", .wanted = "A2 C1+"},
		/* Order-sensitive changes: from the last replace, or a create that replays. */
		{.ops = "Ac Bi(A1) Ci(A1)", .rules = "iKi", .done = "A1 C1", .wanted = "B1 stuck 1"},
		{.ops = "Ac Bi(A1) Ci(A1)", .rules = "iKi", .done = "A1 C1", .wanted = "A1^ B1 C1+", .create_replays = true},
		{.ops = "Ac Ar Bi(A2) Ci(A2)", .rules = "iKi", .done = "A1 A2 C1", .wanted = "A2= B1 C1+"},
		{.ops = "Ac Ar Bi(A2) Ci(A2) Di(A2)", .rules = "iKi", .done = "A1 A2 B1 D1", .wanted = "A2= B1+ C1 D1+"},
		{.ops = "Ac Ar Bi(A2) Ci(A2)", .rules = "iKi", .done = "C1", .wanted = "B1 stuck 0", .base = 2},
		/* Another facet keeps what it has: it is not run twice. */
		{.ops = "Ac Ai/1 Ar Bi(A3) Ci(A3)", .rules = "iKi", .done = "A1 A2 A3 C1", .wanted = "A3= B1 C1+"},
		{.ops = "Ac Ai/1 Bi(A2) Ci(A2)",
	     .rules = "iKi",
	     .done = "A1 A2 C1",
	     .wanted = "A1^ B1 C1+",
	     .create_replays = true},
		{.ops = "Ac Bi/1(A1) Ci/1(A1)",
	     .rules = "iKi",
	     .done = "A1 C1",
	     .wanted = "B1 stuck 1/1",
	     .create_replays = true},
		/* A replace that was run in the wrong place is no reset of what E has after the right one. */
		{.ops = "Ac Br(A1) Cr(A1)", .rules = "rRr", .done = "A1 B1 C1", .wanted = "B1+"},
		{.ops = "Ac Br(A1) Cr(A1) Ci", .rules = "rRr", .done = "A1 C1 C2", .wanted = "B1 C2+"},
		{.ops = "Ac Br(A1) Ci(A1)", .rules = "rFi", .done = "A1 C1", .wanted = "B1"},
	};
	check_runs(cases, COUNT(cases), NULL);
}

static void deletes(void **state)
{
	(void)state;
	const struct run_case cases[] = {
		{.ops = "Ac Bd(A1) Ci(A1)", .rules = "", .done = "A1", .wanted = "B1"},
		{.ops = "Ac Bd(A1) Ci(A1)", .rules = "", .done = "A1 C1", .wanted = "B1"},
		{.ops = "Ac Bd(A1) Ci(A1)", .rules = "", .done = "A1 B1", .wanted = ""},
		/* Where it never was, there is nothing to do. */
		{.ops = "Ac Ai Ad", .rules = "", .done = "", .wanted = ""},
		/* Twice is not better. */
		{.ops = "Ac Bd(A1) Cd(A1)", .rules = "", .done = "A1 B1", .wanted = ""},
		{.ops = "Ac Bd(A1) Cd(A1)", .rules = "", .done = "A1 C1", .wanted = ""},
		{.ops = "Ac Bd(A1) Cd(A1)", .rules = "", .done = "A1", .wanted = "C1"},
		/* A delete that lost: the item is made again, and all that belongs to it. */
		{.ops = "Ac Ai Bd(A2) Ci(A2)", .rules = "", .done = "A1 A2 B1", .wanted = "A1+ A2+ C1", .delete_loses = true},
		{.ops = "Ac Ai Bd(A2) Ci(A2)", .rules = "", .done = "A1 A2", .wanted = "C1", .delete_loses = true},
		{.ops = "Ac Ai/1 Bd(A2) Cr(A2)", .rules = "", .done = "A1 A2 B1", .wanted = "A1+ A2+ C1", .delete_loses = true},
		{.ops = "Ac Bd(A1) Ci(A1)", .rules = "", .done = "B1", .wanted = "stuck 0", .delete_loses = true, .base = 1},
		{.ops = "Ac Ad Ar", .rules = "", .done = "A1", .wanted = "A2 A3"},
		{.ops = "Ac Bd(A1)", .rules = "", .done = "", .wanted = "B1", .base = 1},
	};
	check_runs(cases, COUNT(cases), NULL);
}

static void rejected_here_has_no_effect_here(void **state)
{
	(void)state;
	const struct run_case cases[] = {
		{.ops = "Ac Ai Bi(A2)", .rules = "", .done = "A1 A2!", .wanted = "B1"},
		{.ops = "Ac Ba(A1) Ca(A1)", .rules = "", .done = "A1 C1! B1", .wanted = ""},
		/* What a rejected replace made obsolete, or superseded, is needed here. */
		{.ops = "Ac Bi(A1) Cr(B1)", .rules = "", .done = "A1 C1!", .wanted = "B1"},
		{.ops = "Ac Br(A1) Cr(A1)", .rules = "", .done = "A1 C1!", .wanted = "B1"},
		{.ops = "Ac Br(A1) Cr(A1)", .rules = "", .done = "A1 B1 C1!", .wanted = ""},
		{.ops = "Ac Br(A1) Cr(A1) Dr(A1)", .rules = "", .done = "A1 D1!", .wanted = "C1"},
		{.ops = "Ac Br(A1) Cd(A1)", .rules = "", .done = "A1 B1 C1!", .wanted = ""},
		/* Without the create nothing is in line; each is tried once. */
		{.ops = "Ac Bi(A1) Cr(A1)", .rules = "", .done = "A1!", .wanted = "C1 B1"},
		/* It is tried again if the item is made again: it may have been refused because there was none. */
		{.ops = "Ac Br(A1) Cd(A1) Cr", .rules = "", .done = "A1 C1 C2!", .wanted = "A1+ C2+", .delete_loses = true},
		{.ops = "Ac Bi(A1) Cr(A1)", .rules = "", .done = "A1 B1!", .wanted = "C1"},
		/* In doubt counts as done. */
		{.ops = "Ac Ai Bi(A2)", .rules = "", .done = "A1 A2?", .wanted = "B1"},
		{.ops = "Ac Bi(A1) Ci(A1)", .rules = "iKi", .done = "A1 C1?", .wanted = "B1 stuck 1"},
	};
	check_runs(cases, COUNT(cases), NULL);
}

/* The second time, the service refuses C1 (or what the case is about): the effect of the first time stays. */
static void refused_when_run_again(void **state)
{
	(void)state;
	const struct run_case c1[] = {
		{.ops = "Ac Ba(A1) Ca(A1)", .rules = "", .done = "A1 C1", .wanted = "B1 C1= stuck 2"},
		{.ops = "Ac Ar Ba(A2) Ca(A2)", .rules = "", .done = "A1 A2 C1", .wanted = "B1 C1= A2= B1+ C1+"},
		{.ops = "Ac Ar(A1) Bi(A1) Ci(A1)", .rules = "", .done = "A1 B1 C1", .wanted = "A2 B1+ C1+"},
	};
	check_runs(c1, COUNT(c1), "C1");
	const struct run_case a2[] = {
		{.ops = "Ac Ar Bi(A2) Ci(A2)", .rules = "iKi", .done = "A1 A2 C1", .wanted = "A2= B1 stuck 2"},
	};
	check_runs(a2, COUNT(a2), "A2");
	const struct run_case a1[] = {
		{.ops = "Ac Bi(A1) Ci(A1)",
	     .rules = "iKi",
	     .done = "A1 C1",
	     .wanted = "A1^ B1 stuck 1",
	     .create_replays = true},
	};
	check_runs(a1, COUNT(a1), "A1");
}

/* ---- The example: create 23; cut; set 29, increment 13, increment -12; heal ------------------------------------------- */

static int value_after(const struct test_set *test, const struct order_step_done *done, uint32_t count,
                       const int *values)
{
	int value = 0;
	for (uint32_t i = 0; i < count; i++)
		value = test->ops[done[i].op].effect == ORDER_RELATIVE ? value + values[done[i].op] : values[done[i].op];
	return value;
}

/* A member with operation `own` gets `second`, then `third`, and runs what there is to run in between or only at the end. */
static void check_arrival(const char *text, const int *values, const uint32_t arrival[3], bool between)
{
	struct test_set test;
	struct order_step_done done[TEST_OPS];
	char ran[512];
	test_set_make(&test, text);
	uint32_t count = 2;
	done[0] = (struct order_step_done){.op = 0};
	done[1] = (struct order_step_done){.op = 1};
	struct order_op ops[4] = {test.ops[0]};
	int known_values[4] = {values[0]};
	for (uint32_t known = 1; known <= 3; known++) {
		ops[known] = test.ops[arrival[known - 1]];
		known_values[known] = values[arrival[known - 1]];
		if (known < 3 && !between)
			continue;
		struct test_set site = test;
		memcpy(site.ops, ops, sizeof(ops));
		site.set.ops = site.ops;
		site.set.ops_count = known + 1;
		run_all(&site, done, &count, NULL, ran);
		if (known == 3)
			assert_int_equal(value_after(&site, done, count, known_values), 30);
	}
}

static void the_example_ends_with_30(void **state)
{
	(void)state;
	/* The three are at A, B and C, and issued in any order of time. */
	const struct {
		const char *text;
		int values[4];
	} cases[] = {
		{"Ac Ar Bi(A1) Ci(A1)", {23, 29, 13, -12}}, {"Ac Bi(A1) Ar Ci(A1)", {23, 13, 29, -12}},
		{"Ac Bi(A1) Ci(A1) Ar", {23, 13, -12, 29}}, {"Ac Ar Ci(A1) Bi(A1)", {23, 29, -12, 13}},
		{"Ac Ci(A1) Ar Bi(A1)", {23, -12, 29, 13}}, {"Ac Ci(A1) Bi(A1) Ar", {23, -12, 13, 29}},
	};
	static const uint32_t arrivals[6][3] = {{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}};
	for (size_t i = 0; i < COUNT(cases); i++)
		for (size_t j = 0; j < COUNT(arrivals); j++) {
			check_arrival(cases[i].text, cases[i].values, arrivals[j], true);
			check_arrival(cases[i].text, cases[i].values, arrivals[j], false);
		}
}

/* ---- Forgetting ----------------------------------------------------------------------------------------------------- */

static void what_may_be_forgotten(void **state)
{
	(void)state;
	const struct {
		const char *ops, *settled;
		uint32_t base[TEST_MEMBERS];
	} cases[] = {
		{"Ac Ai Bi(A2)", "", {0}},
		{"Ac Ai Bi(A2)", "A1 A2", {2}},
		{"Ac Ai Bi(A2)", "A1 B1", {1}}, /* only a beginning */
		{"Ac Ai Bi(A2)", "A1 A2 B1", {2, 1}},
		/* Who has the effect of B1 would not know it any more. */
		{"Ac Br(A1) Cr(A1)", "A1 B1", {1}},
		{"Ac Br(A1) Cr(A1)", "A1 B1 C1", {1, 1, 1}},
		/* C1 lost against B1: without B1 it would come back. */
		{"Ac Bi(A1) Ci(A1) Di(A1) Ai", "A1 B1 C1 D1 A2", {2, 1, 1, 1}},
		{"Ac Br(A1) Ci(A1) Dr(A1) Ai(B1)", "A1 B1 C1 D1", {1, 1, 1, 1}},
		/* Who never made it would believe that it is there. */
		{"Ac Bd(A1) Ci(A1)", "A1 B1", {0}},
		{"Ac Bd(A1) Ci(A1)", "A1 B1 C1", {1, 1, 1}},
		{"Ac Bd(A1) Cd(A1) Di(B1)", "A1 B1", {0}},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct test_set test;
		struct arena arena;
		struct order_sequence sequence;
		struct order_step_done settled_ops[TEST_OPS];
		bool settled[TEST_OPS] = {0};
		uint32_t base[TEST_MEMBERS];
		arena_init(&arena, 0);
		test_set_make(&test, cases[i].ops);
		order_build(&arena, &test.set, &sequence);
		uint32_t count = parse_done(&test, cases[i].settled, settled_ops);
		for (uint32_t j = 0; j < count; j++)
			settled[settled_ops[j].op] = true;
		order_forget(&arena, &test.set, &sequence, settled, base);
		assert_memory_equal(base, cases[i].base, sizeof(base));
		arena_free(&arena);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_concurrent_keeps_its_order),
		cmocka_unit_test(concurrent_pairs_by_default),
		cmocka_unit_test(the_description_may_override_any_pair),
		cmocka_unit_test(never_past_one_that_it_had_seen),
		cmocka_unit_test(facets_do_not_disturb_each_other),
		cmocka_unit_test(what_is_a_beginning_goes_on),
		cmocka_unit_test(values_are_set_again_in_the_right_order),
		cmocka_unit_test(a_replace_resets_what_came_before),
		cmocka_unit_test(deletes),
		cmocka_unit_test(rejected_here_has_no_effect_here),
		cmocka_unit_test(refused_when_run_again),
		cmocka_unit_test(the_example_ends_with_30),
		cmocka_unit_test(what_may_be_forgotten),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
