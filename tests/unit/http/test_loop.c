/* Loops: timers, tasks of other threads, and who stops with work left. The loop runs in this thread and ends itself. */
#include "http_test.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>

static struct http_loop *loop;

static int make_loop(void **state)
{
	(void)state;
	struct err err;
	return http_loop_new(&loop, &err);
}

static int drop_loop(void **state)
{
	(void)state;
	http_loop_free(loop);
	return 0;
}

static uint64_t now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

struct alarm {
	struct http_timer timer; /* first */
	int fired;
	uint64_t at_ms;
};

static void ring(struct http_timer *timer)
{
	struct alarm *alarm = (struct alarm *)timer;
	alarm->fired++;
	alarm->at_ms = now_ms();
}

static void ring_and_stop(struct http_timer *timer)
{
	ring(timer);
	http_loop_stop(loop);
}

static void timers_fire_once_and_not_early(void **state)
{
	(void)state;
	struct alarm alarms[40] = {0};
	struct alarm last = {.timer.fire = ring_and_stop};
	uint64_t began = now_ms();
	for (uint64_t i = 0; i < COUNT(alarms); i++) {
		alarms[i].timer.fire = ring;
		http_timer_set(loop, &alarms[i].timer, i * 7);
	}
	http_timer_set(loop, &last.timer, 400);
	http_loop_run(loop);
	for (uint64_t i = 0; i < COUNT(alarms); i++) {
		assert_int_equal(alarms[i].fired, 1);
		assert_true(alarms[i].at_ms + 1 >= began + i * 7);
	}
	assert_int_equal(last.fired, 1);
}

static void timers_can_be_moved_and_cleared(void **state)
{
	(void)state;
	struct alarm later = {.timer.fire = ring}, earlier = {.timer.fire = ring}, cleared = {.timer.fire = ring};
	struct alarm again = {.timer.fire = ring}, last = {.timer.fire = ring_and_stop};
	uint64_t began = now_ms();
	http_timer_set(loop, &later.timer, 10);
	http_timer_set(loop, &later.timer, 200);
	http_timer_set(loop, &earlier.timer, 100000);
	http_timer_set(loop, &earlier.timer, 10);
	http_timer_set(loop, &cleared.timer, 10);
	http_timer_clear(loop, &cleared.timer);
	http_timer_clear(loop, &cleared.timer);
	http_timer_set(loop, &again.timer, 10);
	http_timer_clear(loop, &again.timer);
	http_timer_set(loop, &again.timer, 20);
	http_timer_set(loop, &last.timer, 400);
	http_loop_run(loop);
	assert_int_equal(later.fired, 1);
	assert_true(later.at_ms + 1 >= began + 200);
	assert_int_equal(earlier.fired, 1);
	assert_int_equal(cleared.fired, 0);
	assert_int_equal(again.fired, 1);
}

/* One that sets itself again while it fires, into the same slot or another, and clears its neighbour. */
static struct alarm neighbour;

static void ring_again(struct http_timer *timer)
{
	struct alarm *alarm = (struct alarm *)timer;
	http_timer_clear(loop, &neighbour.timer);
	if (++alarm->fired < 5)
		http_timer_set(loop, timer, 0);
	else
		http_loop_stop(loop);
}

static void a_timer_may_set_itself_and_clear_others(void **state)
{
	(void)state;
	struct alarm alarm = {.timer.fire = ring_again};
	neighbour = (struct alarm){.timer.fire = ring};
	http_timer_set(loop, &alarm.timer, 5);
	http_timer_set(loop, &neighbour.timer, 5);
	http_loop_run(loop);
	assert_int_equal(alarm.fired, 5);
	assert_int_equal(neighbour.fired, 0);
}

static void a_timer_beyond_one_turn_of_the_wheel_waits(void **state)
{
	(void)state;
	struct alarm far = {.timer.fire = ring}, last = {.timer.fire = ring_and_stop};
	http_timer_set(loop, &far.timer, 24 * 3600 * 1000);
	http_timer_set(loop, &last.timer, 200);
	http_loop_run(loop);
	assert_int_equal(far.fired, 0);
	http_timer_clear(loop, &far.timer);
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------ */

enum { TASKS = 1000, POSTERS = 4 };

struct note {
	struct http_task task; /* first */
	int poster, number;
};

static struct note notes[POSTERS][TASKS];
static int seen[POSTERS], seen_count;

static void take_note(struct http_task *task)
{
	struct note *note = (struct note *)task;
	assert_int_equal(note->number, seen[note->poster]); /* in the order in which they were posted */
	seen[note->poster]++;
	if (++seen_count == POSTERS * TASKS)
		http_loop_stop(loop);
}

static void *post_notes(void *context)
{
	struct note *own = context;
	for (int i = 0; i < TASKS; i++)
		http_loop_post(loop, &own[i].task);
	return NULL;
}

static void tasks_of_other_threads_run_in_order(void **state)
{
	(void)state;
	pthread_t threads[POSTERS];
	memset(seen, 0, sizeof(seen));
	seen_count = 0;
	for (int t = 0; t < POSTERS; t++) {
		for (int i = 0; i < TASKS; i++)
			notes[t][i] = (struct note){.task.run = take_note, .poster = t, .number = i};
		assert_int_equal(pthread_create(&threads[t], NULL, post_notes, notes[t]), 0);
	}
	http_loop_run(loop);
	for (int t = 0; t < POSTERS; t++)
		pthread_join(threads[t], NULL);
	assert_int_equal(seen_count, POSTERS * TASKS);
}

/* ---- Sources ---------------------------------------------------------------------------------------------------- */

struct worker {
	struct http_source source; /* first */
	int runs, released;
	struct worker *closes; /* when it runs */
};

static void work(struct http_source *source, uint32_t events)
{
	struct worker *worker = (struct worker *)source;
	worker->runs++;
	if (events == 0 && worker->runs >= 100) {
		http_loop_stop(loop);
		return;
	}
	if (worker->closes)
		http_loop_close(loop, &worker->closes->source);
	http_loop_again(loop, source);
	http_loop_again(loop, source); /* twice is once */
}

static void released(struct http_source *source)
{
	((struct worker *)source)->released++;
}

static void add_worker(struct worker *worker)
{
	struct err err;
	worker->source = (struct http_source){.fd = eventfd(1, EFD_NONBLOCK), .ready = work, .release = released};
	assert_int_equal(http_loop_add(loop, &worker->source, EPOLLIN | EPOLLET, &err), 0);
}

static void who_stops_with_work_left_runs_again_beside_the_others(void **state)
{
	(void)state;
	static struct worker workers[2]; /* released with the loop */
	struct alarm alarm = {.timer.fire = ring};
	for (size_t i = 0; i < COUNT(workers); i++)
		add_worker(&workers[i]);
	http_timer_set(loop, &alarm.timer, 0);
	http_loop_run(loop);
	assert_true(workers[0].runs >= 99 && workers[1].runs >= 99 && workers[0].runs + workers[1].runs <= 202);
	http_timer_clear(loop, &alarm.timer);
	for (size_t i = 0; i < COUNT(workers); i++)
		http_loop_close(loop, &workers[i].source);
}

static void what_is_closed_does_not_run_again(void **state)
{
	(void)state;
	static struct worker closed, closer;
	closer.closes = &closed;
	add_worker(&closed);
	add_worker(&closer);
	http_loop_run(loop);
	assert_true(closed.runs <= 1);
	assert_int_equal(closed.released, 1);
	assert_int_equal(closed.source.fd, -1);
	http_loop_close(loop, &closer.source);
}

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

static void buffers_grow_and_are_used_again(void **state)
{
	(void)state;
	struct http_buffer buffer = {0};
	http_buffer_give(loop, &buffer); /* none: nothing */
	http_buffer_take(loop, &buffer, HTTP_BUFFER_LEAST);
	memset(buffer.at, 'x', buffer.size);
	buffer.end = buffer.size;
	buffer.start = 10;
	while (buffer.size < LIMIT_HTTP_BUFFER_BYTES)
		http_buffer_grow(loop, &buffer);
	assert_int_equal(buffer.start, 10);
	assert_int_equal(buffer.end, HTTP_BUFFER_LEAST);
	for (uint32_t i = 0; i < buffer.end; i++)
		assert_int_equal(buffer.at[i], 'x');
	char *before = buffer.at;
	http_buffer_give(loop, &buffer);
	assert_null(buffer.at);
	http_buffer_take(loop, &buffer, LIMIT_HTTP_BUFFER_BYTES);
	assert_ptr_equal(buffer.at, before);
	http_buffer_give(loop, &buffer);
	struct http_buffer many[HTTP_SHELF_MOST + 10];
	for (size_t i = 0; i < COUNT(many); i++)
		http_buffer_take(loop, &many[i], HTTP_BUFFER_LEAST);
	for (size_t i = 0; i < COUNT(many); i++)
		http_buffer_give(loop, &many[i]);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, make_loop, drop_loop)
	const struct CMUnitTest tests[] = {
		TEST(timers_fire_once_and_not_early),          TEST(timers_can_be_moved_and_cleared),
		TEST(a_timer_may_set_itself_and_clear_others), TEST(a_timer_beyond_one_turn_of_the_wheel_waits),
		TEST(tasks_of_other_threads_run_in_order),     TEST(who_stops_with_work_left_runs_again_beside_the_others),
		TEST(what_is_closed_does_not_run_again),       TEST(buffers_grow_and_are_used_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
