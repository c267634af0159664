/* One request and its response.
 *
 * The happy path:
 *   1. READING     the head is read, the scope taken out and evaluated (intercept, carrier, evaluate)
 *   2. CONNECTING  a connection to the server is made; passed over where an idle one is at hand
 *   3. RUNNING     the request goes out while the response may already come in; interim responses (1xx) are passed on
 *   4. OVER        the link goes back to its pool, the client may send its next request
 * A request that may run at several sites goes through GATHERING and TRYING instead of 2 (trial.c).
 *
 * What goes wrong, and what is done about it:
 *   a malformed request            answered with 4xx or 505, and the connection is closed
 *   the client goes away           the link is closed, so that the service notices
 *   no connection to the server    another instance is tried; if there is none, an answer says so (execute.c)
 *   an idle connection was stale   tried once more on a new one, if the request cannot have been acted on
 *   the server stops in the middle the client's connection is broken off too: it must not take a part for the whole
 *   the server answers early       the answer is passed on, the client's connection ends after it
 */
#include "proxy/gather.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Life ------------------------------------------------------------------------------------------------------- */

static void exchange_expired(struct http_timer *timer);

struct proxy_exchange *proxy_exchange_new(struct proxy_client *client)
{
	struct proxy *proxy = client->proxy;
	struct proxy_exchange *exchange = proxy->kept;
	if (exchange) {
		proxy->kept = exchange->next_kept;
		proxy->kept_count--;
	} else {
		exchange = calloc(1, sizeof(*exchange));
		CHECK(exchange);
		exchange->proxy = proxy;
		exchange->request_parser = http_parser_new(true, &proxy->state->config->limits);
		exchange->response_parser = http_parser_new(false, &proxy->state->config->limits);
		exchange->timer.fire = exchange_expired;
		arena_init(&exchange->arena, 0);
	}
	exchange->client = client;
	exchange->state = proxy->state;
	exchange->state->exchanges++;
	proxy->exchanges_count++;
	exchange->phase = PROXY_READING;
	exchange->request.from = &client->conn;
	exchange->request.parser = exchange->request_parser;
	exchange->response.to = &client->conn;
	exchange->response.parser = exchange->response_parser;
	http_parser_start(exchange->request_parser, 0);
	return exchange;
}

void proxy_exchange_destroy(struct proxy_exchange *exchange)
{
	http_parser_free(exchange->request_parser);
	http_parser_free(exchange->response_parser);
	proxy_stream_reset(&exchange->request);
	proxy_stream_reset(&exchange->response);
	buf_free(&exchange->request.head);
	buf_free(&exchange->request.tail);
	buf_free(&exchange->response.head);
	buf_free(&exchange->response.tail);
	buf_free(&exchange->body);
	buf_free(&exchange->request.spliced);
	buf_free(&exchange->response.spliced);
	arena_free(&exchange->arena);
	free(exchange);
}

/* For the next request: its memory stays. */
static void exchange_keep(struct proxy_exchange *exchange)
{
	struct proxy *proxy = exchange->proxy;
	proxy_stream_reset(&exchange->request);
	proxy_stream_reset(&exchange->response);
	arena_reset(&exchange->arena);
	buf_free(&exchange->body);
	struct proxy_exchange blank = {
		.proxy = proxy,
		.next_kept = proxy->kept,
		.request_parser = exchange->request_parser,
		.response_parser = exchange->response_parser,
		.request = exchange->request,
		.response = exchange->response,
		.arena = exchange->arena,
		.timer = {.fire = exchange_expired},
	};
	*exchange = blank;
	proxy->kept = exchange;
	proxy->kept_count++;
}

/* It has not been used to its end. Another agent must not take an orderly end for that of what we have to say: it would let
 * the request go on, though nobody waits for it. */
static void drop_link(struct proxy_exchange *exchange)
{
	if (exchange->peer)
		http_conn_reset_on_close(&exchange->link->conn);
	proxy_link_give(exchange->link, false);
	exchange->link = NULL;
}

/* Gives back all that it held. A link that is still there has not been used to its end, and is closed. */
static void exchange_free(struct proxy_exchange *exchange)
{
	struct proxy *proxy = exchange->proxy;
	struct proxy_state *state = exchange->state;
	if (exchange->phase == PROXY_FEEDING)
		exchange->feed.gone(exchange->feed.context);
	proxy_uncarried_end(exchange);
	proxy_policy_done(exchange);
	http_timer_clear(proxy->loop, &exchange->timer);
	if (exchange->trial)
		proxy_trial_free(exchange);
	if (exchange->link)
		drop_link(exchange);
	if (exchange->peer)
		proxy_peer_give(exchange->peer);
	engine_spool_drop(exchange->spool);
	proxy_file_close(exchange);
	if (exchange->lease)
		scope_lease_drop(exchange->lease);
	if (exchange->client)
		exchange->client->exchange = NULL;
	bool keep = proxy->kept_count < PROXY_KEPT_EXCHANGES && state->current && !exchange->outdated;
	state->exchanges--;
	proxy->exchanges_count--;
	proxy_state_release(state);
	if (keep)
		exchange_keep(exchange);
	else
		proxy_exchange_destroy(exchange);
	if (proxy->stopping && proxy->exchanges_count == 0 && proxy->drained) {
		void (*drained)(void *) = proxy->drained;
		proxy->drained = NULL;
		drained(proxy->drained_context);
	}
}

/* The response is sent to its end. */
static void exchange_done(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	bool close = exchange->close_client || !exchange->request.complete;
	exchange_free(exchange);
	http_timer_clear(client->conn.loop, &client->conn.timer);
	client->lingering = close;
}

void proxy_exchange_break(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	bool until_close = exchange->response_head && !exchange->response.chunked;
	exchange_free(exchange);
	if (until_close)
		http_conn_reset_on_close(&client->conn);
	proxy_client_close(client);
}

/* ---- The request's head ----------------------------------------------------------------------------------------- */

void proxy_refuse_request(struct proxy_exchange *exchange)
{
	const char *reason;
	enum http_bad bad = http_parser_bad(exchange->request_parser, &reason);
	proxy_count(&exchange->proxy->counters.bad_requests, 1);
	struct proxy_problem problem = {.status = http_bad_status(bad),
	                                .type = "malformed-request",
	                                .title = "The request is not valid HTTP",
	                                .error = "http_request_error",
	                                .close = true};
	proxy_problem(exchange, &problem, "%s", reason);
}

/* A request starts when its head is complete: the configuration may have changed since its first byte, and with it the
 * numbers of the services. */
static void take_current_state(struct proxy_exchange *exchange)
{
	struct proxy_state *before = exchange->state;
	if (before == exchange->proxy->state)
		return;
	exchange->state = exchange->proxy->state;
	exchange->state->exchanges++;
	exchange->outdated = true;
	before->exchanges--;
	proxy_state_release(before);
}

/* Which service, which scope, which place: then off it goes. Each stage may answer instead. */
static void handle_head(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	struct http_head *head = http_parser_head(exchange->request_parser);
	take_current_state(exchange);
	exchange->method = head->method;
	exchange->minor = head->minor;
	exchange->close_client = !head->keep_alive || client->proxy->stopping;
	exchange->has_body = head->framing != HTTP_BODY_NONE;
	exchange->started_us = http_loop_now_us(client->conn.loop);
	exchange->target = http_target(head);
	proxy_count(&exchange->proxy->counters.requests, 1);
	http_timer_set(client->conn.loop, &client->conn.timer, exchange->state->config->timeouts.idle_ms);
	if (exchange->state->config->timeouts.request_ms)
		http_timer_set(client->conn.loop, &exchange->timer, exchange->state->config->timeouts.request_ms);
	proxy_intercept(exchange, head);
}

/* The whole head has to fit into a buffer; it is made larger as needed. */
bool proxy_make_room(struct http_conn *conn)
{
	if (conn->in.end < conn->in.size)
		return true;
	if (conn->in.size >= LIMIT_HTTP_BUFFER_BYTES)
		return false;
	http_buffer_grow(conn->loop, &conn->in);
	return true;
}

enum verdict {
	GO_ON,
	DONE,    /* the response is sent to its end */
	BREAK,   /* it cannot go on, and neither can its client */
	NOTHING, /* there was no request after all */
};

static enum verdict read_head(struct proxy_exchange *exchange)
{
	struct http_conn *conn = &exchange->client->conn;
	uint32_t body, length;
	for (;;) {
		enum http_progress progress = http_parser_feed(exchange->request_parser, &conn->in, &body, &length);
		if (progress == HTTP_PROGRESS_HEAD) {
			handle_head(exchange);
			return GO_ON;
		}
		if (progress == HTTP_PROGRESS_BROKEN || (conn->in.at && !proxy_make_room(conn))) {
			proxy_refuse_request(exchange);
			return GO_ON;
		}
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return conn->in.end > 0 ? GO_ON : NOTHING;
		if (io != HTTP_IO_SOME)
			return BREAK;
	}
}

/* ---- The response's head ---------------------------------------------------------------------------------------- */

static void start_tunnel(struct proxy_exchange *exchange)
{
	exchange->phase = PROXY_TUNNEL;
	exchange->request.parser = exchange->response.parser = NULL;
	exchange->request.complete = exchange->response.complete = false;
	exchange->request.from = exchange->response.to = &exchange->client->conn;
	exchange->request.to = exchange->response.from = &exchange->link->conn;
	exchange->close_client = true;
}

void proxy_refuse_response(struct proxy_exchange *exchange, const char *reason)
{
	proxy_count(&exchange->proxy->counters.bad_responses, 1);
	struct str site = exchange->peer ? exchange->peer->name : exchange->state->config->site;
	proxy_link_give(exchange->link, false);
	exchange->link = NULL;
	struct proxy_problem problem = {.status = 502,
	                                .type = "malformed-response",
	                                .title = "The answer is not valid HTTP",
	                                .error = "http_protocol_error",
	                                .site = site,
	                                .close = !exchange->request.complete};
	proxy_problem(exchange, &problem, "the answer of %.*s at %.*s is not valid HTTP: %s",
	              STR_FMT(exchange->service->name), STR_FMT(site), reason);
}

static uint64_t time_since_start_us(const struct proxy_exchange *exchange)
{
	return http_loop_now_us(exchange->proxy->loop) - exchange->started_us;
}

/* Final, interim, or the start of another protocol. */
void proxy_exchange_respond(struct proxy_exchange *exchange)
{
	struct http_head *head = http_parser_head(exchange->response_parser);
	bool interim = head->status < 200 && head->status != 101;
	if (head->status == 101 && (!exchange->wants_upgrade || !head->upgrade || !exchange->request.complete)) {
		proxy_refuse_response(exchange, !exchange->wants_upgrade ? "it switches protocols without being asked"
		                                : !head->upgrade         ? "it switches protocols without saying to which"
		                                                 : "it switches protocols in the middle of the request");
		return;
	}
	if (interim && exchange->minor == 0) { /* HTTP/1.0 knows none */
		http_parser_start(exchange->response_parser, exchange->method);
		return;
	}
	bool streams = exchange->trial && exchange->trial->streams;
	if (exchange->peer && (!exchange->trial || streams))
		proxy_peer_answered(exchange->peer, exchange->has_body ? 0 : time_since_start_us(exchange));
	if (streams && !interim && proxy_trial_refused(exchange, head))
		return;
	if (!interim && proxy_shape_explain(exchange, head))
		return;
	proxy_build_response(exchange, head);
	if (interim) {
		http_parser_start(exchange->response_parser, exchange->method);
		return;
	}
	exchange->response_head = true;
	if (head->status == 101) {
		start_tunnel(exchange);
		return;
	}
	/* What came along with the head goes out along with it. */
	if (!proxy_stream_prime(&exchange->response))
		exchange->close_client = true; /* what is malformed shows when it is passed on */
}

static void read_response_head(struct proxy_exchange *exchange)
{
	struct http_conn *conn = &exchange->link->conn;
	while (!exchange->response_head && exchange->phase == PROXY_RUNNING) {
		uint32_t body, length;
		enum http_progress progress = http_parser_feed(exchange->response_parser, &conn->in, &body, &length);
		if (progress == HTTP_PROGRESS_HEAD) {
			proxy_exchange_respond(exchange);
			continue;
		}
		if (progress == HTTP_PROGRESS_BROKEN || (conn->in.at && !proxy_make_room(conn))) {
			/* Interim responses stay in the buffer with the head that they come before: this bounds them, too. */
			const char *reason;
			bool full = http_parser_bad(exchange->response_parser, &reason) == HTTP_OK;
			proxy_refuse_response(exchange, full ? "its head, with what was sent ahead of it, is too large" : reason);
			return;
		}
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return;
		if (io != HTTP_IO_SOME) {
			proxy_execute_failed(exchange, false);
			return;
		}
	}
}

/* ---- Steps ------------------------------------------------------------------------------------------------------ */

/* The client's body is not what it should be, or ends too early. */
static enum verdict request_broke(struct proxy_exchange *exchange)
{
	const char *reason;
	bool malformed = http_parser_bad(exchange->request_parser, &reason) != HTTP_OK && !exchange->client->conn.ended &&
	                 !exchange->client->conn.failed;
	if (!malformed || exchange->response_head)
		return BREAK;
	proxy_link_give(exchange->link, false);
	exchange->link = NULL;
	proxy_refuse_request(exchange);
	return GO_ON;
}

static enum verdict send_request(struct proxy_exchange *exchange)
{
	if (exchange->request_over)
		return GO_ON;
	uint64_t before = exchange->request.sent_bytes;
	enum proxy_pump pump = proxy_stream_pump(&exchange->request);
	const struct proxy_timeouts *timeouts = &exchange->state->config->timeouts;
	if (pump == PROXY_PUMP_FROM_FAILED)
		return request_broke(exchange);
	if (exchange->request.sent_bytes != before)
		http_timer_set(exchange->proxy->loop, &exchange->client->conn.timer, timeouts->idle_ms);
	if (pump == PROXY_PUMP_WAIT)
		return GO_ON;
	/* Sent; or the server takes no more, and may have said why. */
	exchange->request_over = true;
	http_timer_clear(exchange->proxy->loop, &exchange->link->conn.timer);
	if (timeouts->answer_ms)
		http_timer_set(exchange->proxy->loop, &exchange->link->conn.timer, timeouts->answer_ms);
	return GO_ON;
}

static enum verdict pass_response(struct proxy_exchange *exchange)
{
	if (!exchange->response_head)
		return GO_ON;
	uint64_t before = exchange->response.sent_bytes;
	enum proxy_pump pump = proxy_stream_pump(&exchange->response);
	if (exchange->response.sent_bytes != before) {
		http_timer_set(exchange->proxy->loop, &exchange->client->conn.timer, exchange->state->config->timeouts.idle_ms);
		http_timer_set(exchange->proxy->loop, &exchange->link->conn.timer, exchange->state->config->timeouts.idle_ms);
	}
	if (pump == PROXY_PUMP_WAIT)
		return GO_ON;
	if (pump == PROXY_PUMP_FROM_FAILED)
		proxy_count(&exchange->proxy->counters.bad_responses, 1);
	if (pump != PROXY_PUMP_DONE)
		return BREAK;
	bool reusable =
		exchange->request_over && exchange->request.complete && http_parser_head(exchange->response_parser)->keep_alive;
	proxy_link_give(exchange->link, reusable);
	exchange->link = NULL;
	return DONE;
}

static enum verdict step_running(struct proxy_exchange *exchange)
{
	if (exchange->client->conn.hung)
		return BREAK;
	enum verdict verdict = send_request(exchange);
	if (verdict == GO_ON && exchange->phase == PROXY_RUNNING && !exchange->response_head)
		read_response_head(exchange);
	/* An interim response may be waiting, too. */
	if (verdict == GO_ON && exchange->phase == PROXY_RUNNING && !exchange->response_head &&
	    exchange->response.head_sent < exchange->response.head.length)
		verdict = proxy_stream_flush(&exchange->response) ? GO_ON : BREAK;
	if (verdict == GO_ON && exchange->phase == PROXY_RUNNING)
		verdict = pass_response(exchange);
	return verdict;
}

static enum verdict step_gathering(struct proxy_exchange *exchange)
{
	return !exchange->client->conn.hung && proxy_trial_gather(exchange) ? GO_ON : BREAK;
}

/* The attempts are driven by their own connections. */
static enum verdict step_trying(struct proxy_exchange *exchange)
{
	return exchange->client->conn.hung ? BREAK : GO_ON;
}

/* The lists of several sites: what is merged goes out, then more is read of the one whose turn it is. */
static enum verdict step_merging(struct proxy_exchange *exchange)
{
	struct proxy_stream *stream = &exchange->response;
	uint64_t before = stream->sent_bytes;
	for (int reads = 0; !exchange->client->conn.hung; reads++) {
		if (!proxy_stream_flush(stream))
			return BREAK;
		bool sent = stream->head_sent == stream->head.length && stream->first == stream->count;
		if (stream->sent_bytes != before)
			http_timer_set(exchange->proxy->loop, &exchange->client->conn.timer,
			               exchange->state->config->timeouts.idle_ms);
		if (sent && stream->complete)
			return DONE;
		if (sent && reads == PROXY_PUMP_READS)
			http_loop_again(exchange->proxy->loop, &exchange->client->conn.source);
		if (!sent || reads == PROXY_PUMP_READS || !proxy_gather_next(exchange))
			return GO_ON;
	}
	return BREAK;
}

static enum verdict step_connecting(struct proxy_exchange *exchange)
{
	struct http_conn *conn = &exchange->link->conn;
	if (exchange->client->conn.hung)
		return BREAK;
	if (conn->connecting)
		return GO_ON;
	if (!proxy_link_stands(exchange->link)) {
		proxy_execute_failed(exchange, false);
		return GO_ON;
	}
	http_timer_clear(conn->loop, &conn->timer);
	exchange->phase = PROXY_RUNNING;
	return GO_ON;
}

/* Each direction ends by itself; when both have, it is over. */
static enum verdict step_tunnel(struct proxy_exchange *exchange)
{
	struct proxy_stream *streams[] = {&exchange->request, &exchange->response};
	uint64_t before = exchange->request.sent_bytes + exchange->response.sent_bytes;
	for (int i = 0; i < 2; i++) {
		struct proxy_stream *stream = streams[i];
		if (stream->over)
			continue;
		enum proxy_pump pump = proxy_stream_pump(stream);
		if (pump == PROXY_PUMP_FROM_FAILED || pump == PROXY_PUMP_TO_FAILED)
			return BREAK;
		if (pump == PROXY_PUMP_DONE) {
			stream->over = true;
			http_conn_end(stream->to);
		}
	}
	if (exchange->request.over && exchange->response.over)
		return DONE;
	if (exchange->request.sent_bytes + exchange->response.sent_bytes != before) {
		http_timer_set(exchange->proxy->loop, &exchange->client->conn.timer, exchange->state->config->timeouts.idle_ms);
		http_timer_set(exchange->proxy->loop, &exchange->link->conn.timer, exchange->state->config->timeouts.idle_ms);
	}
	return GO_ON;
}

static enum verdict step_answering(struct proxy_exchange *exchange)
{
	uint64_t before = exchange->response.sent_bytes;
	enum proxy_pump pump = proxy_stream_pump(&exchange->response);
	for (int reads = 0; pump == PROXY_PUMP_DONE && exchange->file.left > 0; reads++) {
		if (reads == PROXY_PUMP_READS) {
			http_loop_again(exchange->proxy->loop, &exchange->client->conn.source);
			pump = PROXY_PUMP_WAIT;
			break;
		}
		if (!proxy_file_next(exchange))
			return BREAK;
		pump = proxy_stream_pump(&exchange->response);
	}
	if (exchange->response.sent_bytes != before)
		http_timer_set(exchange->proxy->loop, &exchange->client->conn.timer, exchange->state->config->timeouts.idle_ms);
	return pump == PROXY_PUMP_WAIT ? GO_ON : pump == PROXY_PUMP_DONE ? DONE : BREAK;
}

static bool is_fed(const struct proxy_exchange *exchange)
{
	return exchange->phase == PROXY_FEEDING && exchange->response.head_sent == exchange->response.head.length;
}

/* What was given is sent; then more is asked for. What nobody reads is not asked for. */
static enum verdict step_feeding(struct proxy_exchange *exchange)
{
	struct proxy_stream *stream = &exchange->response;
	if (exchange->client->conn.hung || !proxy_stream_flush(stream))
		return BREAK;
	if (!is_fed(exchange) || exchange->feed_asked)
		return GO_ON;
	buf_clear(&stream->head);
	stream->head_sent = 0;
	exchange->feed_asked = true;
	exchange->feed.more(exchange->feed.context);
	return GO_ON;
}

/* The API is still busy with the request of a client that has gone: the exchange waits for it alone. */
static void leave_pending(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	exchange->client = NULL;
	client->exchange = NULL;
	proxy_client_close(client);
}

static enum verdict step(struct proxy_exchange *exchange)
{
	switch (exchange->phase) {
	case PROXY_READING: return read_head(exchange);
	case PROXY_GATHERING: return step_gathering(exchange);
	case PROXY_TRYING: return step_trying(exchange);
	case PROXY_MERGING: return step_merging(exchange);
	case PROXY_CONNECTING: return step_connecting(exchange);
	case PROXY_RUNNING: return step_running(exchange);
	case PROXY_TUNNEL: return step_tunnel(exchange);
	case PROXY_ANSWERING: return step_answering(exchange);
	case PROXY_FEEDING: return step_feeding(exchange);
	case PROXY_COLLECTING: return proxy_collect(exchange) ? GO_ON : BREAK;
	case PROXY_SPOOLING: return !exchange->client->conn.hung && proxy_spool(exchange) ? GO_ON : BREAK;
	case PROXY_PENDING: break;
	}
	return GO_ON;
}

bool proxy_exchange_step(struct proxy_exchange *exchange)
{
	for (;;) {
		if (exchange->phase == PROXY_PENDING) {
			if (exchange->client && exchange->client->conn.hung)
				leave_pending(exchange);
			return false;
		}
		enum proxy_phase phase = exchange->phase;
		enum verdict verdict = step(exchange);
		if (verdict == DONE) {
			exchange_done(exchange);
			return true;
		}
		if (verdict == BREAK) {
			proxy_exchange_break(exchange);
			return true;
		}
		if (verdict == NOTHING) {
			exchange_free(exchange);
			return true;
		}
		if (exchange->phase == phase)
			return false;
	}
}

void proxy_exchange_run(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	if (proxy_exchange_step(exchange))
		proxy_client_run(client);
}

/* ---- Time-outs -------------------------------------------------------------------------------------------------- */

void proxy_exchange_link_failed(struct proxy_exchange *exchange, bool timeout)
{
	struct proxy_client *client = exchange->client;
	if (exchange->phase == PROXY_TUNNEL || exchange->response_head) {
		proxy_exchange_break(exchange);
		return;
	}
	proxy_execute_failed(exchange, timeout);
	if (proxy_exchange_step(exchange))
		proxy_client_run(client);
}

void proxy_exchange_client_late(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	struct proxy *proxy = exchange->proxy;
	bool reading = exchange->phase == PROXY_READING;
	bool sending_body = exchange->phase == PROXY_GATHERING || exchange->phase == PROXY_COLLECTING ||
	                    (exchange->phase == PROXY_SPOOLING && !exchange->request.complete) ||
	                    (exchange->phase == PROXY_RUNNING && !exchange->request.complete && !exchange->response_head);
	bool server_takes_none = exchange->phase == PROXY_RUNNING && !exchange->request_over && !exchange->response_head &&
	                         (exchange->request.first < exchange->request.count ||
	                          exchange->request.head_sent < exchange->request.head.length);
	bool merging = exchange->phase == PROXY_MERGING && exchange->response.first == exchange->response.count &&
	               exchange->response.head_sent == exchange->response.head.length;
	bool waiting_for_us = exchange->phase == PROXY_TRYING || merging || exchange->phase == PROXY_CONNECTING ||
	                      exchange->phase == PROXY_PENDING || is_fed(exchange) ||
	                      (exchange->phase == PROXY_SPOOLING && exchange->request.complete) ||
	                      (exchange->phase == PROXY_RUNNING && exchange->request.complete &&
	                       exchange->response.first == exchange->response.count &&
	                       exchange->response.head_sent == exchange->response.head.length);
	if (waiting_for_us) {
		http_timer_set(proxy->loop, &client->conn.timer, exchange->state->config->timeouts.idle_ms);
		return;
	}
	if (server_takes_none) {
		proxy_exchange_link_failed(exchange, true);
		return;
	}
	proxy_count(&proxy->counters.client_timeouts, 1);
	if ((!reading || client->conn.in.end == 0) && !sending_body) {
		proxy_exchange_break(exchange);
		return;
	}
	if (exchange->link)
		proxy_link_give(exchange->link, false);
	exchange->link = NULL;
	struct proxy_problem problem = {.status = 408,
	                                .type = "request-too-slow",
	                                .title = "The request did not come in time",
	                                .error = "http_request_error",
	                                .close = true};
	proxy_problem(exchange, &problem, "the %s was not complete in time", reading ? "head of the request" : "request");
	if (proxy_exchange_step(exchange))
		proxy_client_run(client);
}

/* The time for the whole request is over. */
static void exchange_expired(struct http_timer *timer)
{
	struct proxy_exchange *exchange = (struct proxy_exchange *)((char *)timer - offsetof(struct proxy_exchange, timer));
	struct proxy_client *client = exchange->client;
	if (!client)
		return;
	if (exchange->phase == PROXY_PENDING) {
		leave_pending(exchange);
		return;
	}
	if (exchange->response_head || exchange->phase == PROXY_TUNNEL || exchange->phase == PROXY_ANSWERING) {
		proxy_exchange_break(exchange);
		return;
	}
	if (exchange->link)
		proxy_link_give(exchange->link, false);
	exchange->link = NULL;
	bool several = exchange->phase == PROXY_TRYING || exchange->phase == PROXY_GATHERING;
	struct str here = exchange->state->config->site;
	struct str site = several ? STR("") : exchange->peer ? exchange->peer->name : here;
	struct proxy_problem problem = {.status = 504,
	                                .type = "request-timeout",
	                                .title = "The request took too long",
	                                .error = "http_response_timeout",
	                                .site = site,
	                                .close = !exchange->request.complete};
	proxy_problem(exchange, &problem, "%.*s did not answer within the time that a request may take",
	              STR_FMT(several ? STR("its sites") : site));
	if (proxy_exchange_step(exchange))
		proxy_client_run(client);
}

/* ---- Answers of our own ----------------------------------------------------------------------------------------- */

void proxy_resume(struct proxy_exchange *exchange, void (*next)(struct proxy_exchange *exchange))
{
	if (!exchange->client) {
		exchange_free(exchange);
		return;
	}
	exchange->phase = PROXY_READING;
	exchange->deferred = false;
	next(exchange);
	proxy_exchange_run(exchange);
}

void proxy_answer_whole(struct proxy_exchange *exchange, unsigned status, struct str fields, struct str body)
{
	if (!exchange->client) {
		exchange_free(exchange);
		return;
	}
	proxy_build_whole(exchange, status, fields, body);
	proxy_exchange_run(exchange);
}

void proxy_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                  struct str body)
{
	struct proxy_client *client = exchange->client;
	bool later = exchange->phase == PROXY_PENDING && exchange->deferred;
	if (!client) {
		exchange_free(exchange);
		return;
	}
	proxy_build_answer(exchange, status, content_type, fields, body);
	if (later)
		proxy_exchange_run(exchange);
}

void proxy_answer_feed(struct proxy_exchange *exchange, const char *content_type, const struct proxy_feed *feed)
{
	bool later = exchange->deferred;
	if (!exchange->client) {
		feed->gone(feed->context);
		exchange_free(exchange);
		return;
	}
	http_timer_clear(exchange->proxy->loop, &exchange->timer); /* it has no end */
	exchange->feed = *feed;
	proxy_build_feed(exchange, content_type);
	if (later)
		proxy_exchange_run(exchange);
}

void proxy_feed_give(struct proxy_exchange *exchange, struct str bytes)
{
	struct buf *out = &exchange->response.head;
	CHECK(exchange->phase == PROXY_FEEDING && exchange->feed_asked);
	exchange->feed_asked = false;
	if (exchange->response.chunked)
		buf_printf(out, "%zx\r\n", bytes.length);
	buf_put(out, bytes);
	if (exchange->response.chunked)
		buf_put(out, STR("\r\n"));
	http_timer_set(exchange->proxy->loop, &exchange->client->conn.timer, exchange->state->config->timeouts.idle_ms);
	proxy_exchange_run(exchange);
}
