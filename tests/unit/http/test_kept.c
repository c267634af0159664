/* When a kept connection may be used for what must not be sent twice. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "http/http.h"

enum { BEGIN_MS = 5000, PROOF_MS = 500, RECENT_MS = 1000 };

static void after_one_answer_it_may_be_about_to_close(void **state)
{
	(void)state;
	struct http_kept kept = {0};
	struct http_habit habit = {0};
	http_kept_idle(&kept, &habit, true, BEGIN_MS);
	assert_false(http_kept_is_sure(&kept, &habit, BEGIN_MS));
	assert_false(http_kept_is_sure(&kept, &habit, BEGIN_MS + PROOF_MS - 1));
	assert_true(http_kept_is_sure(&kept, &habit, BEGIN_MS + PROOF_MS));
	assert_true(http_kept_is_sure(&kept, &habit, BEGIN_MS + RECENT_MS));
	assert_false(http_kept_is_sure(&kept, &habit, BEGIN_MS + RECENT_MS + 1));
}

static void a_second_answer_is_the_proof(void **state)
{
	(void)state;
	struct http_kept kept = {0};
	struct http_habit habit = {0};
	http_kept_idle(&kept, &habit, true, BEGIN_MS);
	http_kept_idle(&kept, &habit, true, BEGIN_MS + 1);
	assert_true(http_kept_is_sure(&kept, &habit, BEGIN_MS + 1));
	assert_true(http_kept_is_sure(&kept, &habit, BEGIN_MS + 1 + RECENT_MS));
	assert_false(http_kept_is_sure(&kept, &habit, BEGIN_MS + 2 + RECENT_MS));
}

static void that_it_came_about_is_none(void **state)
{
	(void)state;
	struct http_kept kept = {0};
	struct http_habit habit = {0};
	http_kept_idle(&kept, &habit, false, BEGIN_MS);
	http_kept_idle(&kept, &habit, true, BEGIN_MS + 1);
	assert_false(http_kept_is_sure(&kept, &habit, BEGIN_MS + 1));
}

static void who_says_when_it_closes_needs_none(void **state)
{
	(void)state;
	struct http_kept kept = {.proven = true};
	struct http_habit habit = {0};
	http_kept_idle(&kept, &habit, true, BEGIN_MS);
	assert_true(http_kept_is_sure(&kept, &habit, BEGIN_MS));
	assert_false(http_kept_is_sure(&kept, &habit, BEGIN_MS + RECENT_MS + 1));
}

static void others_of_the_server_are_proof_until_one_is_closed(void **state)
{
	(void)state;
	struct http_habit habit = {0};
	struct http_kept kept = {0}, other = {0};
	http_kept_idle(&kept, &habit, true, BEGIN_MS);
	assert_false(habit.keeps);
	http_kept_idle(&kept, &habit, true, BEGIN_MS + 1);
	http_kept_idle(&other, &habit, true, BEGIN_MS + 2);
	assert_true(http_kept_is_sure(&other, &habit, BEGIN_MS + 2));
	assert_false(http_kept_is_sure(&other, &habit, BEGIN_MS + 3 + RECENT_MS));

	/* Idle ones may be closed, by a server that keeps them for some time. */
	http_kept_closed(&kept, &habit, BEGIN_MS + 3);
	http_kept_closed(&other, &habit, BEGIN_MS + 3 + RECENT_MS);
	assert_true(habit.keeps);

	http_kept_closed(&other, &habit, BEGIN_MS + 3);
	assert_false(http_kept_is_sure(&other, &habit, BEGIN_MS + 3));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(after_one_answer_it_may_be_about_to_close),
		cmocka_unit_test(a_second_answer_is_the_proof),
		cmocka_unit_test(that_it_came_about_is_none),
		cmocka_unit_test(others_of_the_server_are_proof_until_one_is_closed),
		cmocka_unit_test(who_says_when_it_closes_needs_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
