/* A request at one of the sites where it may run.
 *
 * The happy path:
 *   1. a connection to the site's agent, or to an instance of the service here: idle or new
 *   2. the request is sent, head and kept body
 *   3. the head of the answer comes: it is the answer, and the trial ends with it (trial.c)
 *
 * It has failed, and the trial goes on where it may, when
 *   no connection comes about    another instance is tried here; at another site the path is noted as bad (health.c)
 *   nothing comes back in time   `timeouts: {answer: …}`, or earlier, when probes find that the path is down
 *   the connection ends          on one that had been idle the request is sent once more, as for a single place (execute.c)
 *   what comes back is not HTTP
 *   the answer is 502, 503, 504  unless the request must not run twice and may have run there: then it is the answer
 *   the other agent did not run it, whatever its status
 */
#include "proxy/gather.h"

#include <errno.h>

/* ---- The peer's list --------------------------------------------------------------------------------------------- */

void proxy_attempt_join(struct proxy_attempt *attempt, struct proxy_peer *peer)
{
	attempt->peer = peer;
	if (!peer)
		return;
	attempt->peer_next = peer->attempts;
	attempt->peer_previous = NULL;
	if (peer->attempts)
		peer->attempts->peer_previous = attempt;
	peer->attempts = attempt;
	proxy_peer_used(peer);
}

static void leave_list(struct proxy_attempt *attempt)
{
	if (!attempt->peer)
		return;
	*(attempt->peer_previous ? &attempt->peer_previous->peer_next : &attempt->peer->attempts) = attempt->peer_next;
	if (attempt->peer_next)
		attempt->peer_next->peer_previous = attempt->peer_previous;
	attempt->peer_next = attempt->peer_previous = NULL;
}

/* ---- The end of one ---------------------------------------------------------------------------------------------- */

static void drop_link(struct proxy_attempt *attempt)
{
	if (!attempt->link)
		return;
	/* An orderly end might only mean that we have nothing more to send: another agent would let the request go on. */
	if (attempt->peer)
		http_conn_reset_on_close(&attempt->link->conn);
	proxy_link_give(attempt->link, false);
	attempt->link = NULL;
}

void proxy_attempt_end(struct proxy_attempt *attempt, enum proxy_attempt_state state)
{
	struct proxy_exchange *exchange = attempt->exchange;
	bool live = attempt->state == PROXY_ATTEMPT_LIVE;
	attempt->state = state;
	if (live) {
		exchange->trial->live--;
		attempt->ended_us = http_loop_now_us(exchange->proxy->loop);
	}
	if (state == PROXY_ATTEMPT_HELD)
		return;
	drop_link(attempt);
	leave_list(attempt);
	if (attempt->peer && !exchange->trial->streams)
		proxy_peer_give(attempt->peer);
	attempt->peer = NULL;
	buf_free(&attempt->head);
	if (attempt->parser != exchange->response_parser)
		http_parser_free(attempt->parser);
	attempt->parser = NULL;
}

static int pieces_of(const struct proxy_attempt *attempt, struct iovec pieces[4]);

/* Where a part of the request was not sent, the connection is of no use any more. */
void proxy_attempt_done(struct proxy_attempt *attempt, bool reusable)
{
	struct iovec pieces[4];
	if (attempt->link && reusable && pieces_of(attempt, pieces) == 0) {
		proxy_link_give(attempt->link, true);
		attempt->link = NULL;
	}
	proxy_attempt_end(attempt, PROXY_ATTEMPT_DONE);
}

void proxy_attempt_fail(struct proxy_attempt *attempt, const char *error, const char *details)
{
	struct proxy_trial *trial = attempt->exchange->trial;
	attempt->error = error;
	attempt->details = details;
	attempt->not_run |= !attempt->reached;
	trial->hurry = true;
	if (!attempt->not_run && !trial->safe)
		trial->final = attempt;
	proxy_attempt_end(attempt, PROXY_ATTEMPT_FAILED);
	if (trial->gather)
		proxy_gather_failed(attempt);
}

/* ---- Connecting -------------------------------------------------------------------------------------------------- */

static int take_link(struct proxy_attempt *attempt, struct proxy_target *target, bool fresh)
{
	struct proxy_exchange *exchange = attempt->exchange;
	if (proxy_target_take(target, exchange, fresh, NULL) != 0)
		return -1;
	attempt->link = exchange->link;
	exchange->link = NULL;
	attempt->link->exchange = NULL;
	attempt->link->attempt = attempt;
	attempt->sent = 0;
	attempt->connections++;
	http_parser_start(attempt->parser, exchange->method);
	return 0;
}

/* Finds a connection; false: there is none, and the attempt has failed. */
static bool connect_link(struct proxy_attempt *attempt, bool fresh)
{
	struct proxy_exchange *exchange = attempt->exchange;
	if (attempt->peer) {
		if (take_link(attempt, &attempt->peer->target, fresh) == 0)
			return true;
		proxy_count(&exchange->proxy->counters.upstream_failures, 1);
		proxy_peer_failed(attempt->peer, false);
		proxy_attempt_fail(attempt, "destination_unavailable", NULL);
		return false;
	}
	while (attempt->connections <= exchange->service->instances_count) {
		struct proxy_target *instance = proxy_choose_instance(exchange);
		if (!instance)
			break;
		if (take_link(attempt, instance, fresh) == 0)
			return true;
		proxy_target_failed(instance);
		attempt->connections++;
	}
	proxy_attempt_fail(attempt, "destination_unavailable", "no instance of the service can be reached");
	return false;
}

/* The connection did not come about: here there may be other instances. */
static bool connect_failed(struct proxy_attempt *attempt, bool timeout)
{
	struct proxy_link *link = attempt->link;
	int error = link->conn.error;
	struct proxy_target *target = link->target;
	attempt->link = NULL;
	proxy_link_give(link, false);
	if (!attempt->peer) {
		proxy_target_failed(target);
		return connect_link(attempt, false);
	}
	proxy_count(&attempt->exchange->proxy->counters.upstream_failures, 1);
	proxy_peer_failed(attempt->peer, !timeout && error == ECONNREFUSED);
	proxy_attempt_fail(attempt, timeout ? "connection_timeout" : proxy_error_of(error), NULL);
	return false;
}

/* ---- Sending ----------------------------------------------------------------------------------------------------- */

/* What is still to be sent, from the place that was reached on. */
static int pieces_of(const struct proxy_attempt *attempt, struct iovec pieces[4])
{
	const struct proxy_trial *trial = attempt->exchange->trial;
	const struct iovec all[4] = {{attempt->head.at, attempt->head.length},
	                             {(void *)trial->chunk_line, strlen(trial->chunk_line)},
	                             {trial->body.at, trial->body.length},
	                             {trial->tail.at, trial->tail.length}};
	size_t skip = attempt->sent;
	int count = 0;
	for (int i = 0; i < 4; i++) {
		size_t passed = skip < all[i].iov_len ? skip : all[i].iov_len;
		skip -= passed;
		if (all[i].iov_len > passed)
			pieces[count++] = (struct iovec){(char *)all[i].iov_base + passed, all[i].iov_len - passed};
	}
	return count;
}

void proxy_attempt_wait(struct proxy_attempt *attempt, uint64_t delay_ms)
{
	struct http_conn *conn = &attempt->link->conn;
	http_timer_clear(conn->loop, &conn->timer);
	if (delay_ms)
		http_timer_set(conn->loop, &conn->timer, delay_ms);
}

/* Sends what can be sent. If the other side takes no more it may have said why: that shows when it is read. */
static void send_request(struct proxy_attempt *attempt)
{
	const struct proxy_timeouts *timeouts = &attempt->exchange->state->config->timeouts;
	struct iovec pieces[4];
	size_t before = attempt->sent;
	int count = pieces_of(attempt, pieces);
	if (count == 0)
		return;
	enum http_io io = HTTP_IO_SOME;
	while (count > 0 && io == HTTP_IO_SOME) {
		size_t sent;
		io = http_conn_write(&attempt->link->conn, pieces, count, &sent);
		attempt->sent += sent;
		count = pieces_of(attempt, pieces);
	}
	attempt->reached |= attempt->sent > 0;
	if (count == 0)
		proxy_attempt_wait(attempt, timeouts->answer_ms);
	else if (attempt->sent != before)
		proxy_attempt_wait(attempt, timeouts->idle_ms);
}

/* ---- The answer -------------------------------------------------------------------------------------------------- */

bool proxy_says_not_run(const struct http_head *head)
{
	const struct http_field *field = http_find(head, HTTP_FIELD_CHEOPS_OUTCOME);
	return field && str_equal(http_field_value(head, field), STR("not-run"));
}

/* The connection and the parser go over to the exchange, with what of the request is still to be sent. */
void proxy_attempt_win(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	struct proxy_link *link = attempt->link;
	struct iovec pieces[4];
	int count = pieces_of(attempt, pieces);
	if (attempt->state == PROXY_ATTEMPT_LIVE)
		exchange->trial->live--;
	attempt->state = PROXY_ATTEMPT_WON;
	proxy_trial_stop(exchange);
	leave_list(attempt);
	exchange->peer = attempt->peer;
	attempt->peer = NULL;
	exchange->link = link;
	attempt->link = NULL;
	link->attempt = NULL;
	link->exchange = exchange;
	if (attempt->parser != exchange->response_parser)
		http_parser_free(exchange->response_parser);
	exchange->response_parser = exchange->response.parser = attempt->parser;
	attempt->parser = NULL;
	exchange->target_server = link->target;
	exchange->response.from = exchange->request.to = &link->conn;
	exchange->request.sent_bytes = attempt->sent;
	exchange->request_over = count == 0;
	for (int i = 0; i < count; i++)
		proxy_stream_push(&exchange->request, pieces[i].iov_base, pieces[i].iov_len);
	exchange->phase = PROXY_RUNNING;
	proxy_exchange_respond(exchange);
}

static void note_answered(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	uint64_t us = http_loop_now_us(exchange->proxy->loop) - attempt->started_us;
	struct proxy_backend *backend = &exchange->state->backends[exchange->service->index];
	if (attempt->peer)
		proxy_peer_answered(attempt->peer, us);
	else
		backend->first_byte_us = proxy_smooth_us(backend->first_byte_us, us);
}

/* The head of an answer that is not an interim one. */
static void judge(struct proxy_attempt *attempt, const struct http_head *head)
{
	struct proxy_trial *trial = attempt->exchange->trial;
	bool away = head->status == 502 || head->status == 503 || head->status == 504;
	attempt->status = head->status;
	attempt->not_run = attempt->peer && proxy_says_not_run(head);
	note_answered(attempt);
	if (trial->gather) {
		proxy_attempt_wait(attempt, 0);
		proxy_gather_head(attempt, http_parser_head(attempt->parser));
		return;
	}
	if (!attempt->not_run && !(away && trial->safe)) {
		proxy_attempt_win(attempt);
		return;
	}
	trial->hurry = true;
	attempt->error = NULL;
	/* The answer of a service is worth more than one that we make up; that of another agent is not. */
	bool own = attempt->peer && http_has(head, HTTP_FIELD_CHEOPS_OUTCOME);
	if (!own && !trial->held) {
		trial->held = attempt;
		proxy_attempt_wait(attempt, 0);
		proxy_attempt_end(attempt, PROXY_ATTEMPT_HELD);
		return;
	}
	proxy_attempt_end(attempt, PROXY_ATTEMPT_FAILED);
}

/* An idle connection may have been closed by the other side just when the request was sent. */
static bool repeat(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	const struct proxy_link *link = attempt->link;
	bool stale = link->reused && link->conn.in.end == 0 && exchange->trial->safe;
	if (attempt->connections > 2 || (attempt->sent > 0 && !stale))
		return false;
	proxy_link_give(attempt->link, false);
	attempt->link = NULL;
	proxy_count(&exchange->proxy->counters.retries, 1);
	return connect_link(attempt, true);
}

/* The connection ended before an answer. True: there is a new one. */
static bool broke(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	bool reused = attempt->link->reused;
	if (repeat(attempt))
		return true;
	if (attempt->state != PROXY_ATTEMPT_LIVE)
		return false;
	proxy_count(&exchange->proxy->counters.bad_responses, 1);
	if (attempt->peer && !reused)
		proxy_peer_failed(attempt->peer, false);
	proxy_attempt_fail(attempt, "connection_terminated", NULL);
	return false;
}

enum reading { WAITS, ENDED, BROKEN, HEAD };

static enum reading read_head(struct proxy_attempt *attempt)
{
	struct http_conn *conn = &attempt->link->conn;
	uint32_t body, length;
	for (;;) {
		enum http_progress progress = http_parser_feed(attempt->parser, &conn->in, &body, &length);
		if (progress == HTTP_PROGRESS_HEAD) {
			unsigned status = http_parser_head(attempt->parser)->status;
			if (status >= 200 || status == 101)
				return HEAD;
			/* Interim answers are not passed on: another site may give the answer. */
			http_parser_start(attempt->parser, attempt->exchange->method);
			continue;
		}
		if (progress == HTTP_PROGRESS_BROKEN || (conn->in.at && !proxy_make_room(conn)))
			return BROKEN;
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return WAITS;
		if (io != HTTP_IO_SOME)
			return ENDED;
	}
}

/* Does all that can be done now. */
static void pump(struct proxy_attempt *attempt)
{
	while (attempt->state == PROXY_ATTEMPT_LIVE) {
		if (attempt->link->conn.connecting)
			return;
		if (!proxy_link_stands(attempt->link) && attempt->sent == 0) {
			if (!connect_failed(attempt, false))
				return;
			continue;
		}
		send_request(attempt);
		switch (read_head(attempt)) {
		case WAITS: return;
		case HEAD: judge(attempt, http_parser_head(attempt->parser)); return;
		case BROKEN:
			proxy_count(&attempt->exchange->proxy->counters.bad_responses, 1);
			proxy_attempt_fail(attempt, "http_protocol_error", NULL);
			return;
		case ENDED:
			if (!broke(attempt))
				return;
		}
	}
}

/* ---- Events ------------------------------------------------------------------------------------------------------ */

void proxy_attempt_start(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	attempt->started_us = http_loop_now_us(exchange->proxy->loop);
	attempt->parser = exchange->trial->first == attempt ? exchange->response_parser
	                                                    : http_parser_new(false, &exchange->state->config->limits);
	if (connect_link(attempt, false))
		pump(attempt);
}

static void go_on(struct proxy_exchange *exchange)
{
	proxy_trial_advance(exchange);
	if (exchange->phase != PROXY_TRYING)
		proxy_exchange_run(exchange);
}

void proxy_attempt_changed(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	if (attempt->state == PROXY_ATTEMPT_HELD)
		return; /* what it has to say is read if it is wanted */
	if (attempt->part) {
		proxy_gather_changed(attempt);
		return;
	}
	pump(attempt);
	go_on(exchange);
}

void proxy_attempt_expired(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	bool connecting = attempt->link->conn.connecting;
	if (connecting && connect_failed(attempt, true))
		pump(attempt);
	else if (!connecting)
		proxy_attempt_fail(attempt, "http_response_timeout", NULL);
	go_on(exchange);
}

/* It may be sent elsewhere: nothing of it was sent yet, or that does no harm. From a site that was shut out it has to be
 * taken away in any case. */
static void leave(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	struct proxy_trial *trial = exchange->trial;
	if (trial->streams) {
		if (exchange->phase == PROXY_CONNECTING)
			proxy_exchange_link_failed(exchange, true);
		return;
	}
	bool shut_out = attempt->peer->shut_out;
	if (attempt->state != PROXY_ATTEMPT_LIVE || (attempt->reached && !trial->safe && !shut_out))
		return;
	proxy_attempt_fail(attempt,
	                   shut_out           ? "destination_unavailable"
	                   : attempt->reached ? "http_response_timeout"
	                                      : "connection_timeout",
	                   shut_out ? "the site was shut out meanwhile" : "the path to the site went down meanwhile");
	go_on(exchange);
}

static void leave_all(struct http_task *task)
{
	struct proxy_peer *peer = (struct proxy_peer *)((char *)task - offsetof(struct proxy_peer, leave_task));
	peer->leaving = false;
	/* Each that leaves may take others with it: from the start again, until all were told. */
	for (bool again = true; again && (peer->shut_out || peer->health.state == PROXY_PATH_DOWN);) {
		again = false;
		for (struct proxy_attempt *attempt = peer->attempts; attempt && !again; attempt = attempt->peer_next) {
			if (attempt->told)
				continue;
			attempt->told = again = true;
			leave(attempt);
		}
	}
	proxy_peer_give(peer);
}

/* Not now: whoever noticed is in the middle of something, perhaps of one of these requests. */
void proxy_peer_leave(struct proxy_peer *peer)
{
	if (peer->leaving)
		return;
	peer->leaving = true;
	peer->uses++;
	peer->leave_task.run = leave_all;
	http_loop_post(peer->target.proxy->loop, &peer->leave_task);
}
