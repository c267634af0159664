#include "wan_test.h"

static void frames_leave_when_they_are_due_and_not_before(void **state)
{
	(void)state;
	struct wan_queue *queue = wan_queue_new(4);
	assert_true(wan_queue_next_ns(queue) == WAN_NEVER);
	assert_null(wan_queue_take(queue, WAN_NEVER));
	wan_queue_put(queue, 30)->length = 3;
	wan_queue_put(queue, 10)->length = 1;
	wan_queue_put(queue, 20)->length = 2;
	assert_int_equal(wan_queue_next_ns(queue), 10);
	assert_null(wan_queue_take(queue, 9));
	assert_int_equal(wan_queue_take(queue, 10)->length, 1);
	assert_null(wan_queue_take(queue, 19));
	assert_int_equal(wan_queue_take(queue, 100)->length, 2);
	assert_int_equal(wan_queue_take(queue, 100)->length, 3);
	assert_int_equal(wan_queue_count(queue), 0);
	wan_queue_free(queue);
}

static void frames_due_at_one_time_leave_as_they_came(void **state)
{
	(void)state;
	enum { COUNT = 1000 };
	struct wan_queue *queue = wan_queue_new(COUNT);
	for (uint32_t i = 0; i < COUNT; i++)
		wan_queue_put(queue, 5)->length = i;
	for (uint32_t i = 0; i < COUNT; i++)
		assert_int_equal(wan_queue_take(queue, 5)->length, i);
	wan_queue_free(queue);
}

static void a_full_queue_takes_no_more_and_gives_back_what_it_had(void **state)
{
	(void)state;
	struct wan_queue *queue = wan_queue_new(2);
	for (int round = 0; round < 10; round++) {
		assert_non_null(wan_queue_put(queue, 1));
		assert_non_null(wan_queue_put(queue, 2));
		assert_null(wan_queue_put(queue, 3));
		assert_non_null(wan_queue_take(queue, 2));
		assert_non_null(wan_queue_take(queue, 2));
		assert_null(wan_queue_take(queue, 2));
	}
	wan_queue_free(queue);
}

/* Puts and takes in an order that a simple generator chooses; what leaves is never before what left earlier, given that
 * nothing is put into the past. */
static void order_holds_under_any_mixture(void **state)
{
	(void)state;
	struct wan_queue *queue = wan_queue_new(64);
	int64_t now = 0, last = 0;
	uint32_t random = 12345, inside = 0;
	for (int i = 0; i < 100000; i++) {
		random = random * 1664525 + 1013904223;
		if (random >> 31 && inside < 64) {
			int64_t due = now + (int64_t)(random >> 8) % 50;
			wan_queue_put(queue, due)->cuts = (uint32_t)due;
			inside++;
			continue;
		}
		now += (int64_t)(random >> 8) % 3;
		const struct wan_frame *frame = wan_queue_take(queue, now);
		if (frame == NULL)
			continue;
		assert_true((int64_t)frame->cuts >= last && (int64_t)frame->cuts <= now);
		last = (int64_t)frame->cuts;
		inside--;
	}
	assert_int_equal(wan_queue_count(queue), inside);
	wan_queue_free(queue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_leave_when_they_are_due_and_not_before),
		cmocka_unit_test(frames_due_at_one_time_leave_as_they_came),
		cmocka_unit_test(a_full_queue_takes_no_more_and_gives_back_what_it_had),
		cmocka_unit_test(order_holds_under_any_mixture),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
