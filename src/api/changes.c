/* What happens to replicated resources, as it happens: server-sent events (https://html.spec.whatwg.org, section 9.2).
 *
 * Each change is one event with its number as `id`. Whoever lost the connection says in `Last-Event-ID` which one was the last
 * that it got, and misses none; if they are forgotten by now, a `reset` says so: look at everything anew, and go on from there.
 * While nothing happens a comment goes out now and then, so that both ends notice when the other one is gone.
 *
 * A listener is asked for more only when it has taken all: one that does not read costs one batch, and gets a `reset` later on. */
#include "api/api_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { HEARTBEAT_MS = 10000, RETRY_MS = 2000 };

static atomic_uint listeners;

struct listener {
	struct proxy_exchange *exchange; /* NULL: gone */
	struct engine *engine;
	struct http_loop *loop;
	bool asking;
	bool begun; /* `last` counts */
	uint64_t last;
};

static void release(struct listener *listener)
{
	if (listener->exchange || listener->asking)
		return;
	atomic_fetch_sub_explicit(&listeners, 1, memory_order_relaxed);
	free(listener);
}

static void put_change(struct buf *out, const struct engine_reply *reply, const struct engine_change *change)
{
	buf_printf(out, "id: %llu\nevent: %s\ndata: ", (unsigned long long)change->number,
	           engine_change_name(change->event.kind));
	engine_change_put(out, change, reply->sites);
	buf_put(out, STR("\n\n"));
}

static void put_changes(struct buf *out, struct listener *listener, const struct engine_reply *reply)
{
	if (reply->code) {
		buf_put(out, STR(": the store of this agent cannot be used\n\n"));
		return;
	}
	if (!listener->begun)
		buf_printf(out, "retry: %d\nid: %llu\n\n", RETRY_MS, (unsigned long long)reply->last);
	else if (reply->reset)
		buf_printf(out, "id: %llu\nevent: reset\ndata: {}\n\n", (unsigned long long)reply->last);
	else if (reply->changes_count == 0)
		buf_put(out, STR(": nothing new\n\n"));
	for (uint32_t i = 0; i < reply->changes_count; i++)
		put_change(out, reply, &reply->changes[i]);
	listener->begun = true;
	listener->last = reply->last;
}

static void replied(void *context, const struct engine_reply *reply)
{
	struct listener *listener = context;
	struct buf out = {0};
	listener->asking = false;
	if (listener->exchange) {
		put_changes(&out, listener, reply);
		proxy_feed_give(listener->exchange, buf_str(&out));
		buf_free(&out);
	} else {
		release(listener);
	}
}

static void dropped(void *context)
{
	struct listener *listener = context;
	listener->asking = false;
	release(listener);
}

static void more(void *context)
{
	struct listener *listener = context;
	listener->asking = true;
	engine_ask(listener->engine, &(struct engine_question){.kind = ENGINE_ASK_CHANGES,
	                                                       .from_now = !listener->begun,
	                                                       .after = listener->last,
	                                                       .timeout_ms = HEARTBEAT_MS,
	                                                       .loop = listener->loop,
	                                                       .done = replied,
	                                                       .dropped = dropped,
	                                                       .context = listener});
}

static void gone(void *context)
{
	struct listener *listener = context;
	listener->exchange = NULL;
	release(listener);
}

void api_get_changes(const struct api_agent *agent, const struct proxy_call *call)
{
	static const struct api_refusal too_many = {503, "too-many-waiting",
	                                            "Too many requests wait for something to happen"};
	static const struct api_refusal bad_request = {422, "bad-request", "The request cannot be followed"};
	struct engine *engine = api_engine(agent, call->exchange);
	struct str last = engine_field(call->fields, STR("last-event-id"));
	uint64_t number = 0;
	if (!engine)
		return;
	if (last.length > 0 && !api_number(last, UINT64_MAX / 10 - 1, &number)) {
		api_answer_problem(call->exchange, &bad_request,
		                   "`Last-Event-ID` is no number; the last `id` that came would be right", STR(""));
		return;
	}
	if (str_equal(call->method, STR("HEAD"))) {
		proxy_answer(call->exchange, 200, "text/event-stream", STR(""), STR(""));
		return;
	}
	if (atomic_fetch_add_explicit(&listeners, 1, memory_order_relaxed) >= LIMIT_API_LISTENERS) {
		atomic_fetch_sub_explicit(&listeners, 1, memory_order_relaxed);
		api_answer_problem(call->exchange, &too_many, "too many follow the changes of this agent already",
		                   STR("Retry-After: 30\r\n"));
		return;
	}
	struct listener *listener = calloc(1, sizeof(*listener));
	CHECK(listener);
	*listener = (struct listener){
		.exchange = call->exchange, .engine = engine, .loop = call->loop, .begun = last.length > 0, .last = number};
	proxy_answer_feed(call->exchange, "text/event-stream",
	                  &(struct proxy_feed){.more = more, .gone = gone, .context = listener});
}
