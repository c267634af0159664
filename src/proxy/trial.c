/* A request whose plan has several sites: `;`, `|`, and what functions make of them. docs/failover.md has the rules.
 *
 * The happy path:
 *   1. The plan gives a schedule of candidates (schedule.c).
 *   2. GATHERING: a small body is read and kept, so that it can be sent to more than one site.
 *   3. TRYING: the first candidate gets the request (attempt.c). In a race the next ones get it too, each a short delay
 *      after the one before.
 *   4. The first answer wins. Its connection goes over to the exchange, which streams the answer as always (RUNNING); the
 *      other attempts are given up, and their connections closed.
 *
 * What goes wrong, and what is done about it:
 *   a candidate fails                   the next one is started at once
 *   one fails that may have run it      and must not run twice: the client is told, and no other is tried
 *   all fail                            the answer of a service is passed on if there was one (502, 503, 504, of the most
 *                                       preferred); else a problem lists what became of each
 *   the body is too large to keep       it is streamed to one site (CONNECTING, RUNNING); the next one is tried only while
 *                                       no byte of the body was sent
 *   the client expects 100-continue     the same, since it is the service that says so
 *   the client goes away                all attempts are given up
 */
#include "proxy/gather.h"

#include <stdio.h>

/* ---- Making one -------------------------------------------------------------------------------------------------- */

static void race_on(struct http_timer *timer);

void proxy_trial_new(struct proxy_exchange *exchange, const struct scope_plan *plan)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	struct proxy_trial *trial = arena_new(&exchange->arena, struct proxy_trial);
	struct proxy_schedule *schedule = &trial->schedule;
	proxy_schedule_make(schedule, &exchange->arena, plan->root, sites->places_count);
	for (uint32_t i = 0; i < schedule->count; i++)
		schedule->candidates[i].id = sites->places[schedule->candidates[i].place].id;
	trial->exchange = exchange;
	trial->timer.fire = race_on;
	exchange->trial = trial;
}

/* The head of the request is needed for each candidate, while its buffer is read on. */
static void keep_head(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct proxy_trial *trial = exchange->trial;
	const char *target = exchange->target.at;
	size_t bytes = head->fields_count * sizeof(*head->fields);
	const char *base = arena_copy(&exchange->arena, head->base, head->bytes);
	trial->head = *head;
	trial->head.base = base;
	trial->fields = arena_array(&exchange->arena, struct http_field, head->fields_count);
	trial->head.fields = arena_array(&exchange->arena, struct http_field, head->fields_count);
	if (bytes)
		memcpy(trial->fields, head->fields, bytes);
	if (target >= head->base && target < head->base + head->bytes)
		exchange->target.at = base + (target - head->base);
}

/* ---- The next place ---------------------------------------------------------------------------------------------- */

bool proxy_candidate_is_down(struct proxy_exchange *exchange, const struct proxy_candidate *candidate)
{
	bool down = true;
	if (candidate->place == PROXY_HERE) {
		struct proxy_backend *backend = &exchange->state->backends[exchange->service->index];
		for (uint32_t i = 0; i < exchange->service->instances_count; i++)
			down &= backend->instances[i].down;
	} else {
		struct proxy_peer *peer = proxy_peer_find(exchange->proxy, candidate->id);
		down = peer && peer->health.state == PROXY_PATH_DOWN;
		if (down)
			proxy_peer_used(peer); /* it is wanted: its return is to be noticed */
	}
	proxy_count(&exchange->proxy->counters.skipped, down);
	return down;
}

static bool is_down(void *context, const struct proxy_candidate *candidate)
{
	return proxy_candidate_is_down(context, candidate);
}

static struct proxy_attempt *add_attempt(struct proxy_exchange *exchange, struct proxy_candidate *candidate)
{
	struct proxy_trial *trial = exchange->trial;
	struct proxy_attempt *attempt = arena_new(&exchange->arena, struct proxy_attempt);
	attempt->exchange = exchange;
	attempt->candidate = candidate;
	attempt->started_us = http_loop_now_us(exchange->proxy->loop);
	*(trial->last ? &trial->last->next : &trial->first) = attempt;
	trial->last = attempt;
	trial->live++;
	proxy_schedule_started(&trial->schedule, candidate);
	return attempt;
}

/* Sets exchange->peer for the candidate and writes the head of the request for it. False: the site is gone. */
static bool write_head(struct proxy_exchange *exchange, struct proxy_attempt *attempt, struct buf *out)
{
	struct proxy_trial *trial = exchange->trial;
	memcpy(trial->head.fields, trial->fields, trial->head.fields_count * sizeof(*trial->fields));
	if (attempt->candidate->place == PROXY_HERE) {
		exchange->peer = NULL;
		if (exchange->lease)
			proxy_uncarried_begin(exchange, &trial->head);
		exchange->target_server = &exchange->state->backends[exchange->service->index].instances[0];
	} else {
		exchange->peer = proxy_peer_take_site(exchange->proxy, attempt->candidate->id);
		if (!exchange->peer)
			return false;
		proxy_count(&exchange->proxy->counters.forwarded, 1);
		exchange->target_server = &exchange->peer->target;
		proxy_attempt_join(attempt, exchange->peer);
	}
	struct str baggage = exchange->baggage;
	proxy_build_request(exchange, &trial->head, out);
	exchange->baggage = baggage;
	return true;
}

/* ---- Kept requests: attempts ------------------------------------------------------------------------------------- */

static void launch(struct proxy_exchange *exchange, struct proxy_candidate *candidate)
{
	struct proxy_trial *trial = exchange->trial;
	if (trial->first && trial->hurry)
		proxy_count(&exchange->proxy->counters.failovers, 1);
	else if (trial->live > 0)
		proxy_count(&exchange->proxy->counters.races, 1);
	trial->hurry = false;
	http_timer_clear(exchange->proxy->loop, &trial->timer);
	proxy_trial_launch(exchange, candidate);
}

void proxy_trial_launch(struct proxy_exchange *exchange, struct proxy_candidate *candidate)
{
	struct proxy_trial *trial = exchange->trial;
	struct proxy_attempt *attempt = add_attempt(exchange, candidate);
	bool there = write_head(exchange, attempt, &attempt->head);
	exchange->peer = NULL; /* the attempt has it */
	if (!there) {
		attempt->error = "destination_not_found";
		attempt->not_run = trial->hurry = true;
		proxy_attempt_end(attempt, PROXY_ATTEMPT_FAILED);
		if (trial->gather)
			proxy_gather_failed(attempt);
		return;
	}
	proxy_attempt_start(attempt);
}

/* How long the last one has to answer before the next one is asked too; 0: its time is over. */
static uint64_t time_left_ms(const struct proxy_exchange *exchange)
{
	const struct proxy_attempt *last = exchange->trial->last;
	const struct proxy_backend *backend = &exchange->state->backends[exchange->service->index];
	uint64_t delay_us = last->peer
	                        ? proxy_race_delay_us(last->peer->health.first_byte_us, proxy_peer_estimate_us(last->peer))
	                        : proxy_race_delay_us(backend->first_byte_us, 0);
	uint64_t since_us = http_loop_now_us(exchange->proxy->loop) - last->started_us;
	return since_us >= delay_us ? 0 : (delay_us - since_us + 999) / 1000;
}

static void race_on(struct http_timer *timer)
{
	struct proxy_trial *trial = (struct proxy_trial *)((char *)timer - offsetof(struct proxy_trial, timer));
	struct proxy_exchange *exchange = trial->exchange;
	proxy_trial_advance(exchange);
	if (exchange->phase != PROXY_TRYING)
		proxy_exchange_run(exchange);
}

/* ---- When it did not work ---------------------------------------------------------------------------------------- */

static bool timed_out(const struct proxy_attempt *attempt)
{
	return attempt->error && strstr(attempt->error, "timeout") != NULL;
}

/* All of them: a made-up answer. 503 if a site said that it cannot serve now, 504 if nothing came back in time. */
static void refuse_all(struct proxy_exchange *exchange)
{
	bool late = true, away = false;
	struct buf list = {0};
	for (const struct proxy_attempt *attempt = exchange->trial->first; attempt; attempt = attempt->next) {
		late &= timed_out(attempt);
		away |= attempt->status > 0 || attempt->candidate->place == PROXY_HERE;
		buf_put(&list, list.length ? STR("; ") : STR(""));
		buf_put(&list, attempt->candidate->name);
		if (attempt->error)
			buf_printf(&list, ": %s", attempt->error);
		else
			buf_printf(&list, " answered %u", attempt->status);
		if (list.length > LIMIT_ERROR_TEXT_BYTES)
			break;
	}
	struct proxy_problem problem = {.status = away   ? 503
	                                          : late ? 504
	                                                 : 502,
	                                .type = "all-sites-failed",
	                                .title = "None of the sites could serve the request",
	                                .error = late ? "http_response_timeout" : "destination_unavailable",
	                                .close = !exchange->request.complete && exchange->has_body};
	proxy_problem(exchange, &problem, "%.*s could not be served at any of its sites: %s",
	              STR_FMT(exchange->service->name), buf_c(&list));
	buf_free(&list);
}

/* One that may have run the request, which must not run twice. */
static void refuse_doubtful(struct proxy_exchange *exchange)
{
	const struct proxy_attempt *attempt = exchange->trial->final;
	bool late = timed_out(attempt);
	struct proxy_problem problem = {.status = late ? 504 : 502,
	                                .type = late ? "no-answer" : "broken-answer",
	                                .title = late ? "No answer in time" : "The connection ended before an answer came",
	                                .error = attempt->error,
	                                .site = attempt->candidate->name};
	proxy_problem(exchange, &problem,
	              "%.*s at %.*s %s; the request may have run there, and must not run twice, so no other site was asked",
	              STR_FMT(exchange->service->name), STR_FMT(attempt->candidate->name),
	              late ? "did not answer in time" : "gave no valid answer before the connection ended");
}

static void finish(struct proxy_exchange *exchange)
{
	if (exchange->trial->final)
		refuse_doubtful(exchange);
	else if (exchange->trial->held)
		proxy_attempt_win(exchange->trial->held);
	else
		refuse_all(exchange);
}

void proxy_trial_advance(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	if (trial->gather) {
		proxy_gather_advance(exchange);
		return;
	}
	while (exchange->phase == PROXY_TRYING) {
		bool alone = trial->live == 0;
		if (!alone && (!trial->safe || trial->live >= LIMIT_PROXY_RACERS))
			return;
		struct proxy_candidate *candidate =
			trial->final ? NULL : proxy_schedule_next(&trial->schedule, !alone, is_down, exchange);
		if (!candidate) {
			if (alone)
				finish(exchange);
			return;
		}
		uint64_t left_ms = alone || trial->hurry ? 0 : time_left_ms(exchange);
		if (left_ms > 0) {
			http_timer_set(exchange->proxy->loop, &trial->timer, left_ms);
			return;
		}
		launch(exchange, candidate);
	}
}

/* ---- Streamed requests: one place after the other ----------------------------------------------------------------- */

static struct proxy_candidate *next_place(struct proxy_exchange *exchange)
{
	return proxy_schedule_next(&exchange->trial->schedule, false, is_down, exchange);
}

/* Makes a candidate the place of the exchange. False: its site is gone. */
static bool settle(struct proxy_exchange *exchange, struct proxy_candidate *candidate)
{
	struct proxy_attempt *attempt = add_attempt(exchange, candidate);
	struct proxy_stream *request = &exchange->request;
	buf_clear(&request->head);
	request->head_sent = 0;
	request->sent_bytes = 0;
	exchange->request_over = false;
	exchange->attempts = 0;
	if (write_head(exchange, attempt, &request->head))
		return true;
	attempt->error = "destination_not_found";
	proxy_attempt_end(attempt, PROXY_ATTEMPT_FAILED);
	return false;
}

static void unsettle(struct proxy_exchange *exchange, const char *error, unsigned status)
{
	struct proxy_attempt *attempt = exchange->trial->last;
	attempt->error = error;
	attempt->status = status;
	proxy_attempt_end(attempt, PROXY_ATTEMPT_FAILED);
	if (exchange->peer)
		proxy_peer_give(exchange->peer);
	exchange->peer = NULL;
}

/* To the next place that is there. False: none is, and the request was answered. */
static bool settle_next(struct proxy_exchange *exchange)
{
	for (struct proxy_candidate *candidate; (candidate = next_place(exchange)) != NULL;) {
		proxy_count(&exchange->proxy->counters.failovers, exchange->trial->first != NULL);
		if (settle(exchange, candidate))
			return true;
	}
	refuse_all(exchange);
	return false;
}

bool proxy_trial_move(struct proxy_exchange *exchange, const char *error)
{
	unsettle(exchange, error, 0);
	return settle_next(exchange);
}

bool proxy_trial_refused(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct proxy_stream *request = &exchange->request;
	if (!exchange->peer || !proxy_says_not_run(head) || request->sent_bytes > request->head.length ||
	    !next_place(exchange))
		return false;
	proxy_link_give(exchange->link, false);
	exchange->link = NULL;
	unsettle(exchange, NULL, head->status);
	/* On a new connection: its event goes on with the request, while we are in the middle of reading an answer. */
	if (settle_next(exchange))
		proxy_execute_start(exchange, true);
	return true;
}

static void stream(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	if (trial->gather) {
		struct proxy_problem problem = {
			.status = 413, .type = "body-too-long", .title = "The body is too long", .close = true};
		proxy_problem(exchange, &problem,
		              "a body that is read at all sites of `&` has to be kept, and may have %d bytes, without `Expect`",
		              LIMIT_PROXY_KEPT_BODY_BYTES);
		return;
	}
	trial->streams = true;
	trial->safe = false;
	if (!settle_next(exchange))
		return;
	if (trial->body.length == 0) {
		if (!proxy_stream_prime(&exchange->request)) {
			proxy_refuse_request(exchange);
			return;
		}
	} else { /* more was read than is kept: it goes out first */
		snprintf(trial->chunk_line, sizeof(trial->chunk_line), "%zx\r\n", trial->body.length);
		proxy_stream_push(&exchange->request, trial->chunk_line, strlen(trial->chunk_line));
		proxy_stream_push(&exchange->request, trial->body.at, trial->body.length);
		proxy_stream_push(&exchange->request, "\r\n", 2);
	}
	proxy_execute_start(exchange, false);
}

/* ---- The body ---------------------------------------------------------------------------------------------------- */

static void try(struct proxy_exchange *exchange)
{
	exchange->request.complete = true;
	exchange->phase = PROXY_TRYING;
	proxy_trial_advance(exchange);
}

/* All of it is there. In chunks it is sent as one, with its trailer. */
static void gathered(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	if (trial->head.framing == HTTP_BODY_CHUNKED) {
		if (trial->body.length > 0) {
			snprintf(trial->chunk_line, sizeof(trial->chunk_line), "%zx\r\n", trial->body.length);
			buf_put(&trial->tail, STR("\r\n"));
		}
		buf_put(&trial->tail, STR("0\r\n"));
		buf_put(&trial->tail, http_parser_trailers(exchange->request_parser));
		buf_put(&trial->tail, STR("\r\n"));
	}
	try(exchange);
}

bool proxy_trial_gather(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	struct http_conn *conn = &exchange->client->conn;
	for (;;) {
		uint32_t body, length;
		enum http_progress progress = http_parser_feed(exchange->request_parser, &conn->in, &body, &length);
		buf_put(&trial->body, str_make(conn->in.at + body, length));
		if (progress == HTTP_PROGRESS_BROKEN) {
			proxy_refuse_request(exchange);
			return true;
		}
		if (progress == HTTP_PROGRESS_DONE) {
			gathered(exchange);
			return true;
		}
		if (trial->body.length > LIMIT_PROXY_KEPT_BODY_BYTES) {
			stream(exchange);
			return true;
		}
		if (conn->in.start == conn->in.end)
			conn->in.start = conn->in.end = 0;
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return true;
		if (io != HTTP_IO_SOME)
			return false;
		http_timer_set(conn->loop, &conn->timer, exchange->state->config->timeouts.idle_ms);
	}
}

void proxy_trial_begin(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct proxy_trial *trial = exchange->trial;
	keep_head(exchange, head);
	trial->safe = http_method_is_safe(exchange->method) && !head->upgrade;
	if (head->framing == HTTP_BODY_NONE) {
		if (proxy_stream_prime(&exchange->request))
			try(exchange);
		else
			proxy_refuse_request(exchange);
	} else if (head->expects_continue || head->length > LIMIT_PROXY_KEPT_BODY_BYTES) {
		stream(exchange);
	} else {
		exchange->phase = PROXY_GATHERING;
	}
}

void proxy_trial_go(struct proxy_exchange *exchange, const struct http_head *head, struct buf *body)
{
	struct proxy_trial *trial = exchange->trial;
	keep_head(exchange, head);
	trial->safe = http_method_is_safe(exchange->method);
	trial->body = *body;
	*body = (struct buf){0};
	gathered(exchange);
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

void proxy_trial_stop(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	http_timer_clear(exchange->proxy->loop, &trial->timer);
	for (struct proxy_attempt *attempt = trial->first; attempt && !trial->streams; attempt = attempt->next) {
		bool live = attempt->state == PROXY_ATTEMPT_LIVE;
		if (!live && attempt->state != PROXY_ATTEMPT_HELD)
			continue;
		proxy_count(&exchange->proxy->counters.cancelled, live);
		proxy_attempt_end(attempt, live ? PROXY_ATTEMPT_CANCELLED : PROXY_ATTEMPT_FAILED);
	}
}

void proxy_trial_free(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	proxy_trial_stop(exchange);
	if (trial->streams && trial->last && trial->last->state == PROXY_ATTEMPT_LIVE)
		proxy_attempt_end(trial->last, PROXY_ATTEMPT_CANCELLED);
	for (struct proxy_attempt *attempt = trial->first; attempt; attempt = attempt->next)
		buf_free(&attempt->head);
	if (trial->gather)
		proxy_gather_free(exchange);
	buf_free(&trial->body);
	buf_free(&trial->tail);
	exchange->trial = NULL;
}
