/* One event loop: epoll, a timer wheel, and tasks that other threads post.
 *
 * A round: wait, read the clock once, hand the events to their sources, go on with what the round before left, run what was
 * posted, fire timers, release what was closed. A source that is closed during a round stays allocated until its end, because an event for it may still lie
 * ahead in the same batch; it has fd -1 by then and is passed over.
 *
 * The wheel has one slot per tick. A timer sits in the slot of its deadline (modulo one turn); when its slot comes up and
 * the deadline has moved, it is put where it belongs now. So a connection that is busy moves its deadline by one store,
 * and the wheel touches it once per time-out, or turn, not once per request. Of each slot it is known whether a timer may sit in it,
 * so that a loop with nothing to do sleeps until the next one, and ticks can be short.
 */
#include "http/http_int.h"

#include "base/check.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

enum { SLOTS = 1024, TICK_MS = 10, EVENTS = 256, WORD_BITS = 64, WORDS = SLOTS / WORD_BITS };

/* Free buffers of one size. */
struct shelf {
	void *first; /* each begins with the pointer to the next */
	uint32_t count;
};

struct http_loop {
	int epoll;
	struct http_source wake;
	uint64_t now_us;
	atomic_bool stop;
	pthread_mutex_t lock; /* of posted */
	struct http_task *posted, **posted_end;
	atomic_bool pending; /* something is posted */
	atomic_bool asleep;  /* it waits, or is about to */
	struct http_source *dead;
	struct http_source *again; /* to be run in the next round */
	uint64_t tick;             /* the last one whose slot was looked at */
	struct http_timer slots[SLOTS];
	uint64_t taken[WORDS]; /* a bit for each slot: a timer was put there since it came up last */
	struct shelf shelves[HTTP_SHELVES];
};

static uint64_t clock_us(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

uint64_t http_loop_now_us(const struct http_loop *loop)
{
	return loop->now_us;
}

uint64_t http_loop_now_ms(const struct http_loop *loop)
{
	return loop->now_us / 1000;
}

/* ---- Tasks ------------------------------------------------------------------------------------------------------ */

static void woken(struct http_source *source, uint32_t events)
{
	(void)events;
	uint64_t count;
	ssize_t got = read(source->fd, &count, sizeof(count));
	(void)got; /* the counter only wakes; what there is to do is in the list */
}

static void wake(struct http_loop *loop)
{
	uint64_t one = 1;
	ssize_t put = write(loop->wake.fd, &one, sizeof(one));
	(void)put; /* a full counter wakes as well */
}

/* A loop that is at work looks at the list before it sleeps, and need not be woken. It says that it is going to sleep and then
 * looks; here something is put and then looked whether it sleeps: so one of the two sees the other. */
void http_loop_post(struct http_loop *loop, struct http_task *task)
{
	task->next = NULL;
	pthread_mutex_lock(&loop->lock);
	*loop->posted_end = task;
	loop->posted_end = &task->next;
	atomic_store(&loop->pending, true);
	pthread_mutex_unlock(&loop->lock);
	if (atomic_load(&loop->asleep) && atomic_exchange(&loop->asleep, false))
		wake(loop);
}

static void run_posted(struct http_loop *loop)
{
	pthread_mutex_lock(&loop->lock);
	struct http_task *task = loop->posted;
	loop->posted = NULL;
	loop->posted_end = &loop->posted;
	atomic_store_explicit(&loop->pending, false, memory_order_relaxed);
	pthread_mutex_unlock(&loop->lock);
	for (struct http_task *next; task; task = next) {
		next = task->next;
		task->run(task);
	}
}

void http_loop_stop(struct http_loop *loop)
{
	atomic_store_explicit(&loop->stop, true, memory_order_release);
	wake(loop);
}

/* ---- Timers ----------------------------------------------------------------------------------------------------- */

static void unlink_timer(struct http_timer *timer)
{
	timer->previous->next = timer->next;
	timer->next->previous = timer->previous;
	timer->previous = timer->next = NULL;
}

static void link_timer(struct http_loop *loop, struct http_timer *timer)
{
	uint64_t tick = timer->deadline_ms / TICK_MS + 1;
	if (tick <= loop->tick)
		tick = loop->tick + 1;
	if (tick > loop->tick + SLOTS - 1)
		tick = loop->tick + SLOTS - 1;
	struct http_timer *slot = &loop->slots[tick % SLOTS];
	loop->taken[tick % SLOTS / WORD_BITS] |= UINT64_C(1) << tick % WORD_BITS;
	timer->next = slot;
	timer->previous = slot->previous;
	slot->previous->next = timer;
	slot->previous = timer;
}

void http_timer_set(struct http_loop *loop, struct http_timer *timer, uint64_t delay_ms)
{
	uint64_t deadline_ms = http_loop_now_ms(loop) + delay_ms;
	bool later = timer->next && deadline_ms >= timer->deadline_ms;
	timer->deadline_ms = deadline_ms;
	if (later)
		return;
	if (timer->next)
		unlink_timer(timer);
	link_timer(loop, timer);
}

void http_timer_clear(struct http_loop *loop, struct http_timer *timer)
{
	(void)loop;
	if (timer->next)
		unlink_timer(timer);
	timer->deadline_ms = 0;
}

static void run_slot(struct http_loop *loop, struct http_timer *slot, uint64_t now_ms)
{
	/* Taken off first: what fires may set timers, also into this slot. */
	if (slot->next == slot)
		return;
	struct http_timer due = {.next = slot->next, .previous = slot->previous};
	due.next->previous = due.previous->next = &due;
	slot->next = slot->previous = slot;
	while (due.next != &due) {
		struct http_timer *timer = due.next;
		unlink_timer(timer);
		if (timer->deadline_ms > now_ms) {
			link_timer(loop, timer);
			continue;
		}
		timer->deadline_ms = 0;
		timer->fire(timer);
	}
}

static void run_timers(struct http_loop *loop)
{
	uint64_t now_ms = http_loop_now_ms(loop), now_tick = now_ms / TICK_MS;
	if (now_tick > loop->tick + SLOTS)
		loop->tick = now_tick - SLOTS;
	while (loop->tick < now_tick) {
		loop->tick++;
		loop->taken[loop->tick % SLOTS / WORD_BITS] &= ~(UINT64_C(1) << loop->tick % WORD_BITS);
		run_slot(loop, &loop->slots[loop->tick % SLOTS], now_ms);
	}
}

/* The next one in whose slot a timer may sit: a turn away at most. */
static uint64_t next_tick(const struct http_loop *loop)
{
	uint64_t tick = loop->tick + 1, last = loop->tick + SLOTS - 1;
	while (tick < last) {
		uint64_t ahead = loop->taken[tick % SLOTS / WORD_BITS] >> tick % WORD_BITS;
		if (ahead != 0)
			return tick + (uint64_t)__builtin_ctzll(ahead);
		tick += WORD_BITS - tick % WORD_BITS;
	}
	return last;
}

/* ---- Sources ---------------------------------------------------------------------------------------------------- */

int http_loop_add(struct http_loop *loop, struct http_source *source, uint32_t events, struct err *err)
{
	struct epoll_event event = {.events = events, .data.ptr = source};
	if (epoll_ctl(loop->epoll, EPOLL_CTL_ADD, source->fd, &event) != 0)
		return err_set(err, ERR_IO, "cannot watch a descriptor: %s", strerror(errno));
	return 0;
}

void http_loop_watch(struct http_loop *loop, struct http_source *source, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = source};
	epoll_ctl(loop->epoll, EPOLL_CTL_MOD, source->fd, &event);
}

void http_loop_again(struct http_loop *loop, struct http_source *source)
{
	if (source->again || source->fd < 0)
		return;
	source->again = true;
	source->next_again = loop->again;
	loop->again = source;
}

static void forget_again(struct http_loop *loop, const struct http_source *source)
{
	for (struct http_source **at = &loop->again; *at; at = &(*at)->next_again) {
		if (*at == source) {
			*at = source->next_again;
			return;
		}
	}
}

static void run_again(struct http_source *source)
{
	for (struct http_source *next; source; source = next) {
		next = source->next_again;
		source->again = false;
		if (source->fd >= 0)
			source->ready(source, 0);
	}
}

void http_loop_close(struct http_loop *loop, struct http_source *source)
{
	if (source->fd < 0)
		return;
	if (source->again)
		forget_again(loop, source);
	close(source->fd);
	source->fd = -1;
	source->next_dead = loop->dead;
	loop->dead = source;
}

static void release_dead(struct http_loop *loop)
{
	while (loop->dead) {
		struct http_source *source = loop->dead;
		loop->dead = source->next_dead;
		if (source->release)
			source->release(source);
	}
}

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

static uint32_t shelf_of(uint32_t size)
{
	uint32_t shelf = 0;
	while (((uint32_t)HTTP_BUFFER_LEAST << shelf) < size)
		shelf++;
	CHECK(shelf < HTTP_SHELVES);
	return shelf;
}

void http_buffer_take(struct http_loop *loop, struct http_buffer *buffer, uint32_t size)
{
	uint32_t index = shelf_of(size);
	struct shelf *shelf = &loop->shelves[index];
	char *memory = shelf->first;
	if (memory) {
		memcpy(&shelf->first, memory, sizeof(shelf->first));
		shelf->count--;
	} else {
		memory = malloc((size_t)HTTP_BUFFER_LEAST << index);
		CHECK(memory);
	}
	*buffer = (struct http_buffer){.at = memory, .size = (uint32_t)HTTP_BUFFER_LEAST << index};
}

void http_buffer_give(struct http_loop *loop, struct http_buffer *buffer)
{
	if (!buffer->at)
		return;
	struct shelf *shelf = &loop->shelves[shelf_of(buffer->size)];
	if (shelf->count < HTTP_SHELF_MOST) {
		memcpy(buffer->at, &shelf->first, sizeof(shelf->first));
		shelf->first = buffer->at;
		shelf->count++;
	} else {
		free(buffer->at);
	}
	*buffer = (struct http_buffer){0};
}

void http_buffer_grow(struct http_loop *loop, struct http_buffer *buffer)
{
	struct http_buffer larger;
	http_buffer_take(loop, &larger, buffer->size * 2);
	memcpy(larger.at, buffer->at, buffer->end);
	larger.start = buffer->start;
	larger.end = buffer->end;
	http_buffer_give(loop, buffer);
	*buffer = larger;
}

/* ---- The loop --------------------------------------------------------------------------------------------------- */

int http_loop_new(struct http_loop **out, struct err *err)
{
	struct http_loop *loop = calloc(1, sizeof(*loop));
	CHECK(loop);
	loop->now_us = clock_us();
	loop->tick = loop->now_us / 1000 / TICK_MS;
	loop->posted_end = &loop->posted;
	for (uint32_t i = 0; i < SLOTS; i++)
		loop->slots[i].next = loop->slots[i].previous = &loop->slots[i];
	pthread_mutex_init(&loop->lock, NULL);
	loop->wake.ready = woken;
	loop->wake.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	loop->epoll = epoll_create1(EPOLL_CLOEXEC);
	int code = 0;
	if (loop->epoll < 0 || loop->wake.fd < 0)
		code = err_set(err, ERR_IO, "cannot make an event loop: %s", strerror(errno));
	if (code == 0)
		code = http_loop_add(loop, &loop->wake, EPOLLIN, err);
	if (code) {
		http_loop_free(loop);
		return code;
	}
	*out = loop;
	return 0;
}

void http_loop_finish(struct http_loop *loop)
{
	run_posted(loop);
}

void http_loop_free(struct http_loop *loop)
{
	run_posted(loop);
	release_dead(loop);
	for (uint32_t i = 0; i < HTTP_SHELVES; i++) {
		for (void *memory = loop->shelves[i].first, *next; memory; memory = next) {
			memcpy(&next, memory, sizeof(next));
			free(memory);
		}
	}
	if (loop->wake.fd >= 0)
		close(loop->wake.fd);
	if (loop->epoll >= 0)
		close(loop->epoll);
	pthread_mutex_destroy(&loop->lock);
	free(loop);
}

static int pause_ms(const struct http_loop *loop)
{
	uint64_t now_ms = http_loop_now_ms(loop), next_ms = next_tick(loop) * TICK_MS;
	return next_ms > now_ms ? (int)(next_ms - now_ms) : 0;
}

/* Until something happens, or it is time. */
static int wait_for_events(struct http_loop *loop, struct epoll_event *events, bool at_once)
{
	int pause = at_once ? 0 : pause_ms(loop);
	if (pause > 0)
		atomic_store(&loop->asleep, true);
	if (pause > 0 && atomic_load(&loop->pending))
		pause = 0;
	int count = epoll_wait(loop->epoll, events, EVENTS, pause);
	atomic_store_explicit(&loop->asleep, false, memory_order_relaxed);
	CHECK(count >= 0 || errno == EINTR);
	return count;
}

void http_loop_run(struct http_loop *loop)
{
	struct epoll_event events[EVENTS];
	loop->now_us = clock_us(); /* how long to sleep is reckoned from it */
	while (!atomic_load_explicit(&loop->stop, memory_order_acquire)) {
		struct http_source *again = loop->again;
		loop->again = NULL;
		int count = wait_for_events(loop, events, again != NULL);
		loop->now_us = clock_us();
		for (int i = 0; i < count; i++) {
			struct http_source *source = events[i].data.ptr;
			if (source->fd >= 0)
				source->ready(source, events[i].events);
		}
		run_again(again);
		if (atomic_load_explicit(&loop->pending, memory_order_acquire))
			run_posted(loop);
		run_timers(loop);
		release_dead(loop);
	}
	atomic_store_explicit(&loop->stop, false, memory_order_relaxed); /* it may run again */
}
