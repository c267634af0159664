/* Calls: one request of our own and its whole answer.
 *
 * The happy path: connect (and shake hands, where there is TLS), let `check` look at the other side's certificate, write the
 * request, read the answer up to its end, close or keep the connection, tell `done`.
 *
 *  - The address cannot be reached, or TLS does not come about: told as such, before anything was sent.
 *  - `check` refuses: nothing is sent.
 *  - A kept connection was closed meanwhile: the request goes out on a new one, if it may be repeated; else that is the outcome.
 *  - The other side answers before it has read everything, and closes: its answer counts.
 *  - The answer is no HTTP, contradicts itself, ends too early, is longer than asked for: refused as a whole.
 *  - The time is over, in whichever of these steps.
 *  - The file with the body ends before its time, or cannot be read: told; the other side sees a request that breaks off.
 *
 * A body in a file is read piece by piece as the socket takes it, and an answer can be taken piece by piece: then the memory of
 * a call does not depend on how long they are, and its time is counted from the last byte that moved.
 *
 * Interim answers (1xx) are skipped. The memory of a connection goes when the loop has finished the round in which it was
 * closed; that of the call once `done` has run.
 */
#include "http/http_int.h"

#include "base/check.h"

#include <errno.h>
#include <llhttp/llhttp.h>
#include <stdlib.h>
#include <unistd.h>

enum {
	HEAD_BYTES = 32 << 10,
	FIELDS = 128,
	READS_PER_ROUND = 16,
	POOL_MOST = 256,       /* idle connections of one pool */
	POOL_IDLE_MS = 10000,  /* for so long */
	SERVERS_MOST = 1024,   /* whose habits are remembered; of others each connection has to prove itself */
	FILE_BYTES = 64 << 10, /* read of a file at once */
	WRITES_PER_ROUND = 16,
};

/* A connection: of a call, or idle in a pool. */
struct link {
	struct http_conn conn;  /* first */
	struct http_call *call; /* NULL: idle, or closed */
	struct http_pool *pool; /* it is idle in this one */
	struct link *previous, *next;
	struct http_address address;
	struct http_tls *tls;
	struct http_kept kept;
	struct http_habit *habit; /* of its server; NULL: not remembered */
};

struct http_call {
	struct link *link;
	struct http_loop *loop;
	struct http_call_options options; /* what they point to is not kept, except for `tls` */
	struct http_parser *parser;
	uint8_t method;
	bool connected;
	bool reused;       /* the connection was used before */
	bool heard;        /* at least one byte came */
	bool may_have_run; /* it was sent before, on a connection that then broke */
	bool over;         /* `done` has run: its memory goes when whoever works on it returns */
	bool full;         /* whoever takes the answer wants no more for now */
	struct buf request;
	uint64_t sent; /* of the request, and of the file behind it */
	char *window;  /* on the file: FILE_BYTES of it; NULL: nothing was read yet */
	uint64_t window_at;
	size_t window_bytes;
	uint64_t taken;  /* of the answer, in pieces */
	struct buf head; /* of the answer */
	struct buf content_type;
	struct buf body;
};

struct server {
	struct server *next;
	struct http_habit habit;
	char address[];
};

struct http_pool {
	struct http_loop *loop;
	struct server *servers; /* those to which something was sent that must not be sent twice */
	struct link *idle;      /* the one last used first */
	uint32_t idle_count;
	uint32_t servers_count;
};

static void changed(struct http_conn *conn);
static void expired(struct http_conn *conn);
static int start(struct http_call *call, bool fresh, struct err *err);

/* ---- Connections ------------------------------------------------------------------------------------------------- */

static void release(struct http_source *source)
{
	struct link *link = (struct link *)source;
	if (link->tls)
		http_tls_drop(link->tls);
	free(link);
}

static struct link *link_new(const struct http_call_options *options)
{
	struct link *link = calloc(1, sizeof(*link));
	CHECK(link);
	link->address = options->address;
	link->tls = options->tls ? http_tls_keep(options->tls) : NULL;
	link->conn.source.fd = -1;
	link->conn.source.release = release;
	link->conn.changed = changed;
	link->conn.expired = expired;
	return link;
}

static void link_close(struct link *link)
{
	link->call = NULL;
	http_conn_close(&link->conn);
}

static void pool_remove(struct link *link)
{
	struct http_pool *pool = link->pool;
	*(link->previous ? &link->previous->next : &pool->idle) = link->next;
	if (link->next)
		link->next->previous = link->previous;
	pool->idle_count--;
	link->pool = NULL;
	link->previous = link->next = NULL;
	http_timer_clear(pool->loop, &link->conn.timer);
}

/* Whatever happens to an idle one is its end: nobody asked for anything. */
static void pool_lose(struct link *link)
{
	pool_remove(link);
	link_close(link);
}

/* NULL: it is not remembered. */
static struct http_habit *habit_of(struct http_pool *pool, const char *address)
{
	for (struct server *server = pool->servers; server; server = server->next)
		if (strcmp(server->address, address) == 0)
			return &server->habit;
	if (pool->servers_count == SERVERS_MOST)
		return NULL;
	struct server *server = calloc(1, sizeof(*server) + strlen(address) + 1);
	CHECK(server);
	memcpy(server->address, address, strlen(address) + 1);
	server->next = pool->servers;
	pool->servers = server;
	pool->servers_count++;
	return &server->habit;
}

/* The one last used that leads to the same place, and is good enough for the request (kept.c). */
static struct link *pool_take(struct http_pool *pool, const struct http_call_options *options,
                              const struct http_habit *habit)
{
	static const struct http_habit unknown = {0};
	uint64_t now_ms = http_loop_now_ms(pool->loop);
	struct link *newest = NULL;
	uint32_t unsure = 0;
	for (struct link *link = pool->idle; link; link = link->next) {
		if (link->tls != options->tls || strcmp(link->address.text, options->address.text) != 0)
			continue;
		if (options->repeatable || http_kept_is_sure(&link->kept, habit ? habit : &unknown, now_ms)) {
			pool_remove(link);
			return link;
		}
		newest = newest ? newest : link;
		unsure++;
	}
	if (http_kept_are_enough(unsure))
		pool_lose(newest);
	return NULL;
}

static void pool_give(struct http_pool *pool, struct link *link)
{
	struct http_conn *conn = &link->conn;
	bool clean = conn->in.start == conn->in.end && !conn->failed && !conn->ended && !conn->ending;
	if (pool->idle_count == POOL_MOST || !clean) {
		link_close(link);
		return;
	}
	http_buffer_give(conn->loop, &conn->in);
	link->call = NULL;
	link->pool = pool;
	http_kept_idle(&link->kept, link->habit, true, http_loop_now_ms(pool->loop));
	link->next = pool->idle;
	if (pool->idle)
		pool->idle->previous = link;
	pool->idle = link;
	pool->idle_count++;
	http_timer_clear(pool->loop, &conn->timer);
	http_timer_set(pool->loop, &conn->timer, POOL_IDLE_MS);
}

struct http_pool *http_pool_new(struct http_loop *loop)
{
	struct http_pool *pool = calloc(1, sizeof(*pool));
	CHECK(pool);
	pool->loop = loop;
	return pool;
}

void http_pool_free(struct http_pool *pool)
{
	if (!pool)
		return;
	while (pool->idle)
		pool_lose(pool->idle);
	for (struct server *next, *server = pool->servers; server; server = next) {
		next = server->next;
		free(server);
	}
	free(pool);
}

/* ---- The end ----------------------------------------------------------------------------------------------------- */

static void call_free(struct http_call *call)
{
	http_parser_free(call->parser);
	if (call->options.tls)
		http_tls_drop(call->options.tls);
	buf_free(&call->request);
	free(call->window);
	buf_free(&call->head);
	buf_free(&call->content_type);
	buf_free(&call->body);
	free(call);
}

static void finish(struct http_call *call, struct http_call_answer *answer, bool keep)
{
	struct link *link = call->link;
	call->over = true;
	call->link = NULL;
	answer->sent = call->sent > 0 || call->may_have_run;
	if (link && keep && call->options.pool)
		pool_give(call->options.pool, link);
	else if (link)
		link_close(link);
	call->options.done(call->options.context, answer);
}

static bool is_sent(const struct http_call *call)
{
	return call->sent == call->request.length + call->options.body_bytes;
}

static void succeed(struct http_call *call)
{
	struct http_head head = *http_parser_head(call->parser);
	head.base = call->head.at;
	bool keep = head.keep_alive && head.framing != HTTP_BODY_UNTIL_CLOSE && is_sent(call);
	finish(call,
	       &(struct http_call_answer){.status = head.status,
	                                  .head = &head,
	                                  .content_type = buf_str(&call->content_type),
	                                  .body = buf_str(&call->body)},
	       keep);
}

/* It was closed while it was idle, and the request can go out once more. */
static bool try_again(struct http_call *call)
{
	if (!call->reused || call->heard || (call->sent > 0 && !call->options.repeatable))
		return false;
	link_close(call->link);
	call->link = NULL;
	call->may_have_run |= call->sent > 0;
	call->sent = 0;
	return start(call, true, NULL) == 0;
}

__attribute__((format(printf, 3, 4))) static void fail(struct http_call *call, int code, const char *format, ...)
{
	struct http_call_answer answer = {.code = code};
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	err_set(&answer.err, code, "%s", buf_c(&text));
	buf_free(&text);
	finish(call, &answer, false);
}

static void expired(struct http_conn *conn)
{
	struct link *link = (struct link *)conn;
	struct http_call *call = link->call;
	if (!call) {
		pool_lose(link);
		return;
	}
	unsigned long long ms = call->options.timeout_ms;
	if (conn->connecting)
		fail(call, ERR_TIMEOUT, "cannot connect to %s: no answer within %llu ms", call->options.address.text, ms);
	else
		fail(call, ERR_TIMEOUT, "%s did not answer within %llu ms", call->options.address.text, ms);
	call_free(call);
}

/* ---- The answer -------------------------------------------------------------------------------------------------- */

static void too_long(struct http_call *call)
{
	fail(call, ERR_LIMIT, "the answer of %s is longer than %zu bytes", call->options.address.text,
	     call->options.answer_bytes);
}

static void broken(struct http_call *call)
{
	const char *reason;
	http_parser_bad(call->parser, &reason);
	fail(call, ERR_CORRUPT, "what %s answers is not HTTP as it should be: %s", call->options.address.text, reason);
}

static void take_head(struct http_call *call)
{
	const struct http_head *head = http_parser_head(call->parser);
	if (head->status == 101) {
		fail(call, ERR_CORRUPT, "%s wants to switch to another protocol, which was not asked for",
		     call->options.address.text);
		return;
	}
	if (head->status < 200) {
		http_parser_start(call->parser, call->method);
		return;
	}
	buf_put(&call->head, str_make(head->base, call->link->conn.in.start));
	const struct http_field *type = http_find_named(head, STR("content-type"));
	if (type)
		buf_put(&call->content_type, http_field_value(head, type));
	if (head->framing == HTTP_BODY_LENGTH && head->length > call->options.answer_bytes)
		too_long(call);
}

static void moved(struct http_call *call)
{
	if (call->options.piece || call->options.body_bytes > 0)
		http_timer_set(call->loop, &call->link->conn.timer, call->options.timeout_ms);
}

/* Errors are collected: they are for whoever looks at the answer. */
static void hand_on(struct http_call *call, const struct http_head *head, struct str bytes)
{
	moved(call);
	call->taken += bytes.length;
	switch (call->options.piece(call->options.context, head, bytes)) {
	case HTTP_PIECE_TAKEN: break;
	case HTTP_PIECE_FULL: call->full = true; break;
	case HTTP_PIECE_REFUSED:
		fail(call, ERR_CORRUPT, "what %s answers is not what it was asked for", call->options.address.text);
		break;
	}
}

static void take_body(struct http_call *call, uint32_t body, uint32_t length)
{
	struct str bytes = str_make(call->link->conn.in.at + body, length);
	struct http_head head = *http_parser_head(call->parser);
	head.base = call->head.at;
	if (length > call->options.answer_bytes - call->body.length - call->taken)
		too_long(call);
	else if (call->options.piece && head.status < 300)
		hand_on(call, &head, bytes);
	else
		buf_put(&call->body, bytes);
}

/* Goes over what was read. */
static void parse(struct http_call *call)
{
	enum http_progress progress = HTTP_PROGRESS_HEAD;
	while (!call->over && progress == HTTP_PROGRESS_HEAD) {
		uint32_t body, length;
		progress = http_parser_feed(call->parser, &call->link->conn.in, &body, &length);
		if (length > 0)
			take_body(call, body, length);
		if (call->over)
			return;
		if (progress == HTTP_PROGRESS_HEAD)
			take_head(call);
		else if (progress == HTTP_PROGRESS_DONE)
			succeed(call);
		else if (progress == HTTP_PROGRESS_BROKEN)
			broken(call);
	}
}

/* A head stays whole until it is complete; of a body nothing is left in the buffer. False: there is no room. */
static bool make_room(struct http_call *call)
{
	struct http_buffer *in = &call->link->conn.in;
	if (in->at && in->start == in->end && http_parser_head(call->parser)->status >= 200) {
		in->start = in->end = 0;
		if (call->options.piece && in->size < LIMIT_HTTP_BUFFER_BYTES) { /* it may be long */
			http_buffer_give(call->loop, in);
			http_buffer_take(call->loop, in, LIMIT_HTTP_BUFFER_BYTES);
		}
	}
	if (!in->at || in->end < in->size)
		return true;
	if (in->size >= LIMIT_HTTP_BUFFER_BYTES)
		return false;
	http_buffer_grow(call->loop, in);
	return true;
}

static void ended(struct http_call *call)
{
	if (!call->heard && try_again(call))
		return;
	if (!call->heard)
		fail(call, ERR_UNAVAILABLE, "%s closed the connection without an answer", call->options.address.text);
	else if (http_parser_finish(call->parser) == HTTP_PROGRESS_DONE)
		succeed(call);
	else
		fail(call, ERR_UNAVAILABLE, "%s closed the connection in the middle of its answer", call->options.address.text);
}

static void broke(struct http_call *call)
{
	if (try_again(call))
		return;
	const char *why = call->link ? http_conn_error_text(&call->link->conn) : "it was closed, and there is no other";
	fail(call, ERR_UNAVAILABLE, "the connection to %s broke: %s", call->options.address.text, why);
}

static void read_answer(struct http_call *call)
{
	for (int reads = 0; !call->over && call->connected && !call->full; reads++) {
		if (reads == READS_PER_ROUND) {
			http_loop_again(call->loop, &call->link->conn.source);
			return;
		}
		if (!make_room(call)) {
			fail(call, ERR_LIMIT, "the head of the answer of %s is too large", call->options.address.text);
			return;
		}
		enum http_io io = http_conn_read(&call->link->conn);
		if (io == HTTP_IO_BLOCKED)
			return;
		if (io == HTTP_IO_FAILED) {
			broke(call);
		} else if (io == HTTP_IO_END) {
			ended(call);
		} else {
			call->heard = true;
			parse(call);
		}
	}
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

/* What is to be sent next. NULL: nothing; or the file could not be read, and the call is over. */
static const char *next_piece(struct http_call *call, size_t *length)
{
	if (call->sent < call->request.length) {
		*length = call->request.length - call->sent;
		return call->request.at + call->sent;
	}
	uint64_t at = call->sent - call->request.length, left = call->options.body_bytes - at;
	if (left == 0)
		return NULL;
	bool inside = call->window && at >= call->window_at && at < call->window_at + call->window_bytes;
	if (!inside) {
		call->window = call->window ? call->window : malloc(FILE_BYTES);
		CHECK(call->window);
		ssize_t got = pread(call->options.body_fd, call->window, left < FILE_BYTES ? left : FILE_BYTES, (off_t)at);
		if (got <= 0) {
			fail(call, ERR_IO, "the file with the body of the request cannot be read: %s",
			     got < 0 ? strerror(errno) : "it is too short");
			return NULL;
		}
		call->window_at = at;
		call->window_bytes = (size_t)got;
	}
	*length = call->window_bytes - (at - call->window_at);
	return call->window + (at - call->window_at);
}

static void write_request(struct http_call *call)
{
	size_t length;
	const char *at;
	for (int writes = 0; !call->over && (at = next_piece(call, &length)) != NULL; writes++) {
		if (writes == WRITES_PER_ROUND) {
			http_loop_again(call->loop, &call->link->conn.source);
			return;
		}
		struct iovec piece = {.iov_base = (char *)at, .iov_len = length};
		size_t written;
		enum http_io io = http_conn_write(&call->link->conn, &piece, 1, &written);
		call->sent += written;
		if (written > 0)
			moved(call);
		if (io == HTTP_IO_BLOCKED)
			return;
		/* The other side wants no more of it, but may have said why: reading tells. */
		if (io == HTTP_IO_FAILED)
			call->sent = call->request.length + call->options.body_bytes;
	}
}

/* May the request go there? If not, that is the outcome. */
static bool is_welcome(struct http_call *call)
{
	struct buf certificate = {0};
	struct err err = {0};
	if (!call->options.check)
		return true;
	http_conn_certificate(&call->link->conn, &certificate);
	int code = call->options.check(call->options.context, buf_str(&certificate), &err);
	buf_free(&certificate);
	if (code)
		fail(call, code, "%s", err.text);
	return code == 0;
}

static void proceed(struct http_call *call, struct http_conn *conn)
{
	if (!call->connected && conn->failed) {
		fail(call, ERR_UNAVAILABLE, "cannot connect to %s: %s", call->options.address.text, http_conn_error_text(conn));
		return;
	}
	if (!call->connected && !is_welcome(call))
		return;
	call->connected = true;
	write_request(call);
	if (!call->over)
		read_answer(call);
}

static void changed(struct http_conn *conn)
{
	struct link *link = (struct link *)conn;
	if (link->pool) {
		http_kept_closed(&link->kept, link->habit, http_loop_now_ms(conn->loop));
		pool_lose(link);
	}
	if (!link->call || conn->connecting)
		return;
	struct http_call *call = link->call;
	proceed(call, conn);
	if (call->over)
		call_free(call);
}

static void put_request(struct buf *out, const struct http_call_options *options)
{
	uint64_t bytes = options->body.length + options->body_bytes;
	bool body = bytes > 0 || (strcmp(options->method, "GET") != 0 && strcmp(options->method, "HEAD") != 0);
	struct str host = options->host.length > 0 ? options->host : str_of(options->address.text);
	buf_printf(out, "%s %.*s HTTP/1.1\r\nHost: %.*s\r\n%s", options->method, STR_FMT(options->target), STR_FMT(host),
	           options->pool ? "" : "Connection: close\r\n");
	buf_put(out, options->fields);
	if (options->content_type.length > 0)
		buf_printf(out, "Content-Type: %.*s\r\n", STR_FMT(options->content_type));
	if (body)
		buf_printf(out, "Content-Length: %llu\r\n", (unsigned long long)bytes);
	buf_put(out, STR("\r\n"));
	buf_put(out, options->body);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static struct http_call *call_new(struct http_loop *loop, const struct http_call_options *options)
{
	struct http_call *call = calloc(1, sizeof(*call));
	CHECK(call);
	call->loop = loop;
	call->options = *options;
	if (options->tls)
		http_tls_keep(options->tls);
	call->method = strcmp(options->method, "HEAD") == 0 ? HTTP_HEAD : HTTP_GET;
	call->parser = http_parser_new(false, &(struct http_limits){.head_bytes = HEAD_BYTES, .fields = FIELDS});
	http_parser_start(call->parser, call->method);
	put_request(&call->request, options);
	return call;
}

/* On a connection that is at hand, or a new one. */
static int start(struct http_call *call, bool fresh, struct err *err)
{
	const struct http_call_options *options = &call->options;
	bool once = options->pool && !options->repeatable;
	struct http_habit *habit = once ? habit_of(options->pool, options->address.text) : NULL;
	struct link *link = options->pool && !fresh ? pool_take(options->pool, options, habit) : NULL;
	call->reused = call->connected = link != NULL;
	if (link) {
		http_loop_again(call->loop, &link->conn.source);
	} else {
		link = link_new(options);
		int code = http_conn_connect(&link->conn, call->loop, &options->address, err);
		if (code) {
			release(&link->conn.source);
			return code;
		}
		if (options->tls)
			http_conn_tls_connect(&link->conn, options->tls, options->tls_name);
	}
	call->link = link;
	link->call = call;
	link->habit = habit ? habit : link->habit;
	http_timer_set(call->loop, &link->conn.timer, options->timeout_ms);
	return 0;
}

int http_call_start(struct http_call **out, struct http_loop *loop, const struct http_call_options *options,
                    struct err *err)
{
	CHECK(options->done && options->timeout_ms > 0);
	struct http_call *call = call_new(loop, options);
	int code = start(call, false, err);
	if (code) {
		call_free(call);
		return code;
	}
	*out = call;
	return 0;
}

void http_call_go_on(struct http_call *call)
{
	if (!call->full)
		return;
	call->full = false;
	moved(call);
	http_loop_again(call->loop, &call->link->conn.source);
}

void http_call_cancel(struct http_call *call)
{
	link_close(call->link);
	call_free(call);
}

/* ---- Waiting ----------------------------------------------------------------------------------------------------- */

struct wait {
	const struct http_call_options *options;
	struct http_loop *loop;
	int code;
	struct err *err;
	unsigned *status;
	struct buf *body;
};

static void wait_over(void *context, const struct http_call_answer *answer)
{
	struct wait *wait = context;
	wait->code = answer->code;
	if (answer->code)
		err_set(wait->err, answer->code, "%s", answer->err.text);
	*wait->status = answer->status;
	buf_put(wait->body, answer->body);
	http_loop_stop(wait->loop);
}

static int wait_check(void *context, struct str certificate_der, struct err *err)
{
	const struct wait *wait = context;
	return wait->options->check(wait->options->context, certificate_der, err);
}

int http_call_wait(const struct http_call_options *options, unsigned *status, struct buf *body, struct err *err)
{
	struct wait wait = {.options = options, .err = err, .status = status, .body = body};
	struct http_call_options ours = *options;
	struct http_call *call;
	ours.done = wait_over;
	ours.check = options->check ? wait_check : NULL;
	ours.context = &wait;
	*status = 0;
	int code = http_loop_new(&wait.loop, err);
	if (code)
		return code;
	code = http_call_start(&call, wait.loop, &ours, err);
	if (code == 0) {
		http_loop_run(wait.loop);
		code = wait.code;
	}
	http_loop_free(wait.loop);
	return code;
}
