/* Sessions: reading one's own writes at another site (DESIGN 7).
 *
 * An answer to a write has `Cheops-Session`: what its site had seen then. Given back on a later request at another member, that
 * one waits until it has seen as much. A session that is no such text says nothing, and nobody waits for it; one of a resource that is not
 * known at this site is waited for, since its create may be on its way. The time is over: the request is refused, rather than answered
 * with something older.
 */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

struct waiter {
	struct http_task task; /* to the engine, then back */
	struct engine *engine;
	struct waiter *next;
	struct buf session;
	struct http_timer timer;
	uint64_t limit_ms;
	bool met;
	struct http_loop *loop;
	void (*done)(void *context, bool met);
	void *context;
};

static void waiter_free(struct waiter *waiter)
{
	buf_free(&waiter->session);
	free(waiter);
}

/* In the loop that waits. */
static void tell(struct http_task *task)
{
	struct waiter *waiter = (struct waiter *)task;
	waiter->done(waiter->context, waiter->met);
	waiter_free(waiter);
}

static void finish(struct waiter *waiter, bool met)
{
	http_timer_clear(waiter->engine->loop, &waiter->timer);
	waiter->met = met;
	waiter->task = (struct http_task){.run = tell};
	http_loop_post(waiter->loop, &waiter->task);
}

static bool is_met(struct waiter *waiter)
{
	struct replica *replica = waiter->engine->replica;
	return !replica || replica_session_met(replica, buf_str(&waiter->session));
}

void engine_sessions_review(struct engine *engine)
{
	for (struct waiter **at = &engine->waiters; *at;) {
		struct waiter *waiter = *at;
		if (!is_met(waiter)) {
			at = &waiter->next;
			continue;
		}
		*at = waiter->next;
		finish(waiter, true);
	}
}

static void expired(struct http_timer *timer)
{
	struct waiter *waiter = (struct waiter *)((char *)timer - offsetof(struct waiter, timer));
	struct waiter **at = &waiter->engine->waiters;
	while (*at != waiter)
		at = &(*at)->next;
	*at = waiter->next;
	finish(waiter, is_met(waiter));
}

/* Looked at after the next commit, even if it is met: whoever waits reads what was committed last, and what it has seen may not be yet. */
static void take(struct http_task *task)
{
	struct waiter *waiter = (struct waiter *)task;
	struct engine *engine = waiter->engine;
	waiter->next = engine->waiters;
	engine->waiters = waiter;
	http_timer_set(engine->loop, &waiter->timer, waiter->limit_ms);
	engine_changed(engine);
}

void engine_await(struct engine *engine, const struct engine_await *await)
{
	struct waiter *waiter = calloc(1, sizeof(*waiter));
	CHECK(waiter);
	waiter->engine = engine;
	waiter->limit_ms = await->limit_ms;
	waiter->timer.fire = expired;
	waiter->loop = await->loop;
	waiter->done = await->done;
	waiter->context = await->context;
	buf_put(&waiter->session, await->session);
	waiter->task = (struct http_task){.run = take};
	http_loop_post(engine->loop, &waiter->task);
}

void engine_sessions_free(struct engine *engine)
{
	while (engine->waiters) {
		struct waiter *waiter = engine->waiters;
		engine->waiters = waiter->next;
		waiter_free(waiter);
	}
}
