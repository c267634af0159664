/* The order in which the sites of a plan are tried: waves of a plan, and what is next when some are under way or down. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

#include <stdio.h>
#include <stdlib.h>

enum { PLACES = 300 };

static struct arena arena;

static int open_arena(void **state)
{
	(void)state;
	arena_init(&arena, 0);
	return 0;
}

static int close_arena(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

/* A plan in brackets: `;(1 2 |(3 4))`, `|(...)`, `&(...)`, `%(...)`, or a number. */
static const struct scope_step *read_step(const char **text)
{
	struct scope_step *step = arena_new(&arena, struct scope_step);
	while (**text == ' ')
		(*text)++;
	if (**text >= '0' && **text <= '9') {
		char *end;
		*step =
			(struct scope_step){.op = SCOPE_ONE, .site = STR("x"), .site_index = (uint32_t)strtoul(*text, &end, 10)};
		*text = end;
		return step;
	}
	static const char ops[] = {
		[SCOPE_ALL_OF] = '&', [SCOPE_SPAN_OF] = '%', [SCOPE_OTHERWISE] = ';', [SCOPE_ANY_OF] = '|'};
	const struct scope_step **of = arena_array(&arena, const struct scope_step *, LIMIT_SCOPE_SITES);
	for (step->op = SCOPE_ALL_OF; ops[step->op] != **text; step->op++)
		;
	step->of = of;
	for (*text += 2; **text != ')'; *text += **text == ' ')
		of[step->of_count++] = read_step(text);
	(*text)++;
	return step;
}

static const struct scope_step *plan(const char *text)
{
	return read_step(&text);
}

static void show(const struct proxy_schedule *schedule, char *out, size_t size)
{
	size_t length = 0;
	for (uint32_t i = 0; i < schedule->count; i++) {
		bool first = i == 0 || schedule->candidates[i].wave != schedule->candidates[i - 1].wave;
		length += (size_t)snprintf(out + length, size - length, "%s%u",
		                           i == 0  ? ""
		                           : first ? "; "
		                                   : "|",
		                           schedule->candidates[i].place);
	}
}

static void assert_waves(const char *text, const char *expected)
{
	struct proxy_schedule schedule;
	char shown[256] = "";
	proxy_schedule_make(&schedule, &arena, plan(text), PLACES);
	show(&schedule, shown, sizeof(shown));
	assert_string_equal(shown, expected);
}

static void plans_become_waves(void **state)
{
	(void)state;
	assert_waves("7", "7");
	assert_waves(";(1 2 3)", "1; 2; 3");
	assert_waves("|(1 2 3)", "1|2|3");
	assert_waves(";(|(1 2) 3)", "1|2; 3");
	assert_waves("|(;(1 2) 3)", "1|3; 2");
	assert_waves("|(;(1 2) ;(3 4))", "1|3; 2|4");
	assert_waves(";(1 |(2 3) 4)", "1; 2|3; 4");
	assert_waves("|(;(1 |(2 3)) ;(4 5 6))", "1|4; 2|3|5; 6");
	assert_waves(";(|(1 ;(2 3)) ;(4 |(5 6)))", "1|2; 3; 4; 5|6");
}

static void a_site_counts_where_it_comes_first(void **state)
{
	(void)state;
	assert_waves(";(1 |(2 1) 2)", "1; 2");
	assert_waves("|(;(1 2) ;(2 1))", "1|2");
	assert_waves(";(|(1 2) |(2 3))", "1|2; 3");
}

static void races_are_known(void **state)
{
	(void)state;
	struct proxy_schedule schedule;
	proxy_schedule_make(&schedule, &arena, plan(";(1 2 3)"), PLACES);
	assert_false(schedule.races);
	proxy_schedule_make(&schedule, &arena, plan(";(1 |(2 3))"), PLACES);
	assert_true(schedule.races);
	proxy_schedule_make(&schedule, &arena, plan(";(1 |(2 1))"), PLACES);
	assert_false(schedule.races);
}

static void the_largest_plan_fits(void **state)
{
	(void)state;
	struct buf text = {0};
	struct proxy_schedule schedule;
	buf_put(&text, STR("|("));
	for (int i = 0; i < LIMIT_SCOPE_SITES; i++)
		buf_printf(&text, "%d ", i);
	buf_put_char(&text, ')');
	proxy_schedule_make(&schedule, &arena, plan(buf_c(&text)), PLACES);
	assert_int_equal(schedule.count, LIMIT_SCOPE_SITES);
	assert_int_equal(schedule.candidates[LIMIT_SCOPE_SITES - 1].place, LIMIT_SCOPE_SITES - 1);
	buf_free(&text);
}

static void copies_and_spans_are_found_wherever_they_are(void **state)
{
	(void)state;
	assert_null(proxy_schedule_unable(plan(";(1 |(2 ;(3 4)))")));
	assert_int_equal(proxy_schedule_unable(plan("&(1 2)"))->op, SCOPE_ALL_OF);
	assert_int_equal(proxy_schedule_unable(plan(";(1 |(2 &(3 4)))"))->op, SCOPE_ALL_OF);
	assert_int_equal(proxy_schedule_unable(plan("|(1 ;(2 %(3 4)))"))->op, SCOPE_SPAN_OF);
}

/* ---- What is next ------------------------------------------------------------------------------------------------- */

static bool is_down(void *context, const struct proxy_candidate *candidate)
{
	const char *down = context;
	return strchr(down, (int)('0' + candidate->place)) != NULL;
}

/* The place that is next, which is then started; 0: none. */
static uint32_t next(struct proxy_schedule *schedule, bool under_way, const char *down)
{
	struct proxy_candidate *candidate = proxy_schedule_next(schedule, under_way, is_down, (void *)down);
	if (!candidate)
		return 0;
	proxy_schedule_started(schedule, candidate);
	return candidate->place;
}

static void a_wave_waits_for_the_one_before(void **state)
{
	(void)state;
	struct proxy_schedule schedule;
	proxy_schedule_make(&schedule, &arena, plan(";(|(1 2) 3)"), PLACES);
	assert_int_equal(next(&schedule, false, ""), 1);
	assert_int_equal(next(&schedule, true, ""), 2);
	assert_int_equal(next(&schedule, true, ""), 0);
	assert_int_equal(next(&schedule, false, ""), 3);
	assert_int_equal(next(&schedule, false, ""), 0);
}

static void sites_that_are_down_come_last(void **state)
{
	(void)state;
	struct proxy_schedule schedule;
	proxy_schedule_make(&schedule, &arena, plan(";(1 2 3)"), PLACES);
	assert_int_equal(next(&schedule, false, "1"), 2);
	assert_int_equal(next(&schedule, false, "1"), 3);
	assert_int_equal(next(&schedule, false, "1"), 1);
	assert_int_equal(next(&schedule, false, "1"), 0);
}

static void all_down_they_are_tried_in_order(void **state)
{
	(void)state;
	struct proxy_schedule schedule;
	proxy_schedule_make(&schedule, &arena, plan("|(1 2 3)"), PLACES);
	assert_int_equal(next(&schedule, false, "123"), 1);
	assert_int_equal(next(&schedule, true, "123"), 0); /* a last resort is not raced with another */
	assert_int_equal(next(&schedule, false, "123"), 2);
	assert_int_equal(next(&schedule, false, "123"), 3);
	assert_int_equal(next(&schedule, false, "123"), 0);
}

static void a_wave_whose_first_is_down_still_races(void **state)
{
	(void)state;
	struct proxy_schedule schedule;
	proxy_schedule_make(&schedule, &arena, plan(";(1 |(2 3 4) 5)"), PLACES);
	assert_int_equal(next(&schedule, false, "12"), 3);
	assert_int_equal(next(&schedule, true, "12"), 4);
	assert_int_equal(next(&schedule, true, "12"), 0);
	assert_int_equal(next(&schedule, false, "12"), 5);
	assert_int_equal(next(&schedule, false, "12"), 1);
	assert_int_equal(next(&schedule, false, "12"), 2);
}

int main(void)
{
#define WITH_ARENA(test) cmocka_unit_test_setup_teardown(test, open_arena, close_arena)
	const struct CMUnitTest tests[] = {
		WITH_ARENA(plans_become_waves),
		WITH_ARENA(a_site_counts_where_it_comes_first),
		WITH_ARENA(races_are_known),
		WITH_ARENA(the_largest_plan_fits),
		WITH_ARENA(copies_and_spans_are_found_wherever_they_are),
		WITH_ARENA(a_wave_waits_for_the_one_before),
		WITH_ARENA(sites_that_are_down_come_last),
		WITH_ARENA(all_down_they_are_tried_in_order),
		WITH_ARENA(a_wave_whose_first_is_down_still_races),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
