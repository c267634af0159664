/* The body of an operation that nobody looks into: a file, mostly. It may have any length.
 *
 * Its beginning is kept in memory. Is that all, it travels with the operation; otherwise the engine writes it to a file as it
 * comes (engine_spool_put()), and the client is read no faster than the disk takes it. Then the operation is submitted.
 *
 *   the client goes away in the middle    the file goes, and nobody has heard of it
 *   the disk is full                      507, at once where the length is known and there is no room for it
 *   it is longer than it may be           413
 */
#include "proxy/proxy_int.h"

static const uint64_t bytes_most = (uint64_t)LIMIT_REPLICA_BLOB_GB << 30;

/* ---- Refusals ------------------------------------------------------------------------------------------------------ */

static void refuse_length(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {
		.status = 413, .type = "body-too-long", .title = "The body is too long", .close = true};
	proxy_problem(exchange, &problem, "the body of an operation on a replicated resource may have %d GiB",
	              LIMIT_REPLICA_BLOB_GB);
}

static void refuse_full(struct proxy_exchange *exchange, const char *detail)
{
	struct proxy_problem problem = {
		.status = 507, .type = "store-full", .title = "There is no room for the body", .close = true};
	proxy_problem(exchange, &problem, "nothing was done: %s", detail);
}

static void refuse_disk(struct proxy_exchange *exchange, const struct err *err)
{
	struct proxy_problem problem = {
		.status = 503, .type = "store-failed", .title = "The body could not be kept", .close = true};
	if (err->code == ERR_LIMIT)
		refuse_full(exchange, err->text);
	else
		proxy_problem(exchange, &problem, "nothing was done: %s", err->text);
}

/* ---- Reading ------------------------------------------------------------------------------------------------------- */

static void moved(void *context)
{
	proxy_exchange_run(context);
}

/* False: the spool takes no more for now. */
static bool take(struct proxy_exchange *exchange, struct str bytes)
{
	if (!exchange->spool && exchange->body.length + bytes.length <= LIMIT_REPLICA_BODY_BYTES) {
		buf_put(&exchange->body, bytes);
		return true;
	}
	if (!exchange->spool) {
		struct engine_spool_options options = {exchange->proxy->loop, moved, exchange};
		exchange->spool = engine_spool_new(exchange->proxy->shared->engine, &options);
		engine_spool_put(exchange->spool, buf_str(&exchange->body));
		proxy_count(&exchange->proxy->counters.spooled, 1);
		buf_free(&exchange->body);
	}
	return engine_spool_put(exchange->spool, bytes);
}

static void finish(struct proxy_exchange *exchange)
{
	exchange->request.complete = true;
	if (exchange->spool)
		engine_spool_end(exchange->spool);
	else
		exchange->collected(exchange);
}

enum reading { READ_MORE, READ_WAIT, READ_BROKEN };

static enum reading read_some(struct proxy_exchange *exchange)
{
	struct http_conn *conn = &exchange->client->conn;
	uint32_t body = 0, length = 0;
	enum http_progress progress = http_parser_feed(exchange->request_parser, &conn->in, &body, &length);
	if (progress == HTTP_PROGRESS_BROKEN) {
		proxy_refuse_request(exchange);
		return READ_WAIT;
	}
	bool room = length == 0 || take(exchange, str_make(conn->in.at + body, length));
	if (exchange->spool && engine_spool_bytes(exchange->spool) > bytes_most) {
		refuse_length(exchange);
		return READ_WAIT;
	}
	if (progress == HTTP_PROGRESS_DONE) {
		finish(exchange);
		return READ_WAIT;
	}
	if (!room)
		return READ_WAIT;
	if (conn->in.start == conn->in.end)
		conn->in.start = conn->in.end = 0;
	if (exchange->spool && conn->in.end == 0 && conn->in.size < LIMIT_HTTP_BUFFER_BYTES) {
		http_buffer_give(conn->loop, &conn->in);
		http_buffer_take(conn->loop, &conn->in, LIMIT_HTTP_BUFFER_BYTES);
	}
	enum http_io io = http_conn_read(conn);
	if (io == HTTP_IO_SOME)
		http_timer_set(exchange->proxy->loop, &conn->timer, exchange->state->config->timeouts.idle_ms);
	return io == HTTP_IO_SOME ? READ_MORE : io == HTTP_IO_BLOCKED ? READ_WAIT : READ_BROKEN;
}

static enum engine_spool_state state_of(struct proxy_exchange *exchange, struct err *err)
{
	return exchange->spool ? engine_spool_state(exchange->spool, err) : ENGINE_SPOOL_OPEN;
}

bool proxy_spool(struct proxy_exchange *exchange)
{
	struct err err = {0};
	proxy_stream_flush(&exchange->response); /* 100 Continue */
	for (int reads = 0; exchange->phase == PROXY_SPOOLING; reads++) {
		enum engine_spool_state state = state_of(exchange, &err);
		if (state == ENGINE_SPOOL_FAILED) {
			refuse_disk(exchange, &err);
			return true;
		}
		if (state == ENGINE_SPOOL_DONE) {
			exchange->collected(exchange);
			return true;
		}
		if (state == ENGINE_SPOOL_FULL || exchange->request.complete)
			return true;
		if (reads == PROXY_PUMP_READS) {
			http_loop_again(exchange->proxy->loop, &exchange->client->conn.source);
			return true;
		}
		enum reading reading = read_some(exchange);
		if (reading != READ_MORE)
			return reading == READ_WAIT;
	}
	return true;
}

void proxy_spool_start(struct proxy_exchange *exchange, const struct http_head *head,
                       void (*spooled)(struct proxy_exchange *exchange))
{
	uint64_t bytes = head->framing == HTTP_BODY_LENGTH ? head->length : 0;
	if (bytes > bytes_most) {
		refuse_length(exchange);
	} else if (bytes > LIMIT_REPLICA_BODY_BYTES && !engine_has_room(exchange->proxy->shared->engine, bytes)) {
		refuse_full(exchange, "the disk of this agent has no room for the body");
	} else {
		proxy_collect_start(exchange, head, spooled);
		exchange->phase = PROXY_SPOOLING;
	}
}
