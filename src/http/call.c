/* Calls: one request of our own and its whole answer, on a connection of its own.
 *
 * The happy path: connect (and shake hands, where there is TLS), let `check` look at the other side's certificate, write the
 * request, read the answer up to its end, close, tell `done`.
 *
 *  - The address cannot be reached, or TLS does not come about: told as such, before anything was sent.
 *  - `check` refuses: nothing is sent.
 *  - The other side answers before it has read everything, and closes: its answer counts.
 *  - The answer is no HTTP, contradicts itself, ends too early, is longer than asked for: refused as a whole.
 *  - The time is over, in whichever of these steps.
 *
 * Interim answers (1xx) are skipped. The memory goes when the loop has finished the round in which the connection was closed.
 */
#include "http/http_int.h"

#include "base/check.h"

#include <llhttp/llhttp.h>
#include <stdlib.h>

enum { HEAD_BYTES = 32 << 10, FIELDS = 128, READS_PER_ROUND = 16 };

struct http_call {
	struct http_conn conn;            /* first */
	struct http_call_options options; /* what they point to is not kept */
	struct http_parser *parser;
	uint8_t method;
	bool connected;
	bool heard; /* at least one byte came */
	bool over;
	struct buf request;
	size_t sent;
	struct buf content_type;
	struct buf body;
};

/* ---- The end ----------------------------------------------------------------------------------------------------- */

static void release(struct http_source *source)
{
	struct http_call *call = (struct http_call *)source;
	http_parser_free(call->parser);
	buf_free(&call->request);
	buf_free(&call->content_type);
	buf_free(&call->body);
	free(call);
}

static void finish(struct http_call *call, const struct http_call_answer *answer)
{
	call->over = true;
	http_conn_close(&call->conn);
	call->options.done(call->options.context, answer);
}

static void succeed(struct http_call *call)
{
	finish(call, &(struct http_call_answer){.status = http_parser_head(call->parser)->status,
	                                        .content_type = buf_str(&call->content_type),
	                                        .body = buf_str(&call->body)});
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
	finish(call, &answer);
}

static void expired(struct http_conn *conn)
{
	struct http_call *call = (struct http_call *)conn;
	unsigned long long ms = call->options.timeout_ms;
	if (conn->connecting)
		fail(call, ERR_TIMEOUT, "cannot connect to %s: no answer within %llu ms", call->options.address.text, ms);
	else
		fail(call, ERR_TIMEOUT, "%s did not answer within %llu ms", call->options.address.text, ms);
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
	const struct http_field *type = http_find_named(head, STR("content-type"));
	if (type)
		buf_put(&call->content_type, http_field_value(head, type));
	if (head->framing == HTTP_BODY_LENGTH && head->length > call->options.answer_bytes)
		too_long(call);
}

static void take_body(struct http_call *call, uint32_t body, uint32_t length)
{
	if (length > call->options.answer_bytes - call->body.length)
		too_long(call);
	else
		buf_put(&call->body, str_make(call->conn.in.at + body, length));
}

/* Goes over what was read. */
static void parse(struct http_call *call)
{
	enum http_progress progress = HTTP_PROGRESS_HEAD;
	while (!call->over && progress == HTTP_PROGRESS_HEAD) {
		uint32_t body, length;
		progress = http_parser_feed(call->parser, &call->conn.in, &body, &length);
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
	struct http_buffer *in = &call->conn.in;
	if (in->at && in->start == in->end && http_parser_head(call->parser)->status >= 200)
		in->start = in->end = 0;
	if (!in->at || in->end < in->size)
		return true;
	if (in->size >= LIMIT_HTTP_BUFFER_BYTES)
		return false;
	http_buffer_grow(call->conn.loop, in);
	return true;
}

static void ended(struct http_call *call)
{
	if (!call->heard)
		fail(call, ERR_UNAVAILABLE, "%s closed the connection without an answer", call->options.address.text);
	else if (http_parser_finish(call->parser) == HTTP_PROGRESS_DONE)
		succeed(call);
	else
		fail(call, ERR_UNAVAILABLE, "%s closed the connection in the middle of its answer", call->options.address.text);
}

static void read_answer(struct http_call *call)
{
	for (int reads = 0; !call->over; reads++) {
		if (reads == READS_PER_ROUND) {
			http_loop_again(call->conn.loop, &call->conn.source);
			return;
		}
		if (!make_room(call)) {
			fail(call, ERR_LIMIT, "the head of the answer of %s is too large", call->options.address.text);
			return;
		}
		enum http_io io = http_conn_read(&call->conn);
		if (io == HTTP_IO_BLOCKED)
			return;
		if (io == HTTP_IO_FAILED) {
			fail(call, ERR_UNAVAILABLE, "the connection to %s broke: %s", call->options.address.text,
			     http_conn_error_text(&call->conn));
		} else if (io == HTTP_IO_END) {
			ended(call);
		} else {
			call->heard = true;
			parse(call);
		}
	}
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

static void write_request(struct http_call *call)
{
	while (call->sent < call->request.length) {
		struct iovec piece = {.iov_base = call->request.at + call->sent, .iov_len = call->request.length - call->sent};
		size_t written;
		enum http_io io = http_conn_write(&call->conn, &piece, 1, &written);
		call->sent += written;
		if (io == HTTP_IO_BLOCKED)
			return;
		/* The other side wants no more of it, but may have said why: reading tells. */
		if (io == HTTP_IO_FAILED)
			call->sent = call->request.length;
	}
}

/* May the request go there? If not, that is the outcome. */
static bool is_welcome(struct http_call *call)
{
	struct buf certificate = {0};
	struct err err = {0};
	if (!call->options.check)
		return true;
	http_conn_certificate(&call->conn, &certificate);
	int code = call->options.check(call->options.context, buf_str(&certificate), &err);
	buf_free(&certificate);
	if (code)
		fail(call, code, "%s", err.text);
	return code == 0;
}

static void changed(struct http_conn *conn)
{
	struct http_call *call = (struct http_call *)conn;
	if (call->over || conn->connecting)
		return;
	if (!call->connected && conn->failed) {
		fail(call, ERR_UNAVAILABLE, "cannot connect to %s: %s", call->options.address.text, http_conn_error_text(conn));
		return;
	}
	if (!call->connected && !is_welcome(call))
		return;
	call->connected = true;
	write_request(call);
	read_answer(call);
}

static void put_request(struct buf *out, const struct http_call_options *options)
{
	bool body =
		options->body.length > 0 || (strcmp(options->method, "GET") != 0 && strcmp(options->method, "HEAD") != 0);
	buf_printf(out, "%s %.*s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", options->method, STR_FMT(options->target),
	           options->address.text);
	if (options->content_type.length > 0)
		buf_printf(out, "Content-Type: %.*s\r\n", STR_FMT(options->content_type));
	if (body)
		buf_printf(out, "Content-Length: %zu\r\n", options->body.length);
	buf_put(out, STR("\r\n"));
	buf_put(out, options->body);
}

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

static struct http_call *call_new(const struct http_call_options *options)
{
	struct http_call *call = calloc(1, sizeof(*call));
	CHECK(call);
	call->options = *options;
	call->conn.source.fd = -1;
	call->conn.source.release = release;
	call->conn.changed = changed;
	call->conn.expired = expired;
	call->method = strcmp(options->method, "HEAD") == 0 ? HTTP_HEAD : HTTP_GET;
	call->parser = http_parser_new(false, &(struct http_limits){.head_bytes = HEAD_BYTES, .fields = FIELDS});
	http_parser_start(call->parser, call->method);
	put_request(&call->request, options);
	return call;
}

int http_call_start(struct http_call **out, struct http_loop *loop, const struct http_call_options *options,
                    struct err *err)
{
	CHECK(options->done && options->timeout_ms > 0);
	struct http_call *call = call_new(options);
	int code = http_conn_connect(&call->conn, loop, &options->address, err);
	if (code) {
		release(&call->conn.source);
		return code;
	}
	if (options->tls)
		http_conn_tls_connect(&call->conn, options->tls, options->tls_name);
	http_timer_set(loop, &call->conn.timer, options->timeout_ms);
	*out = call;
	return 0;
}

void http_call_cancel(struct http_call *call)
{
	call->over = true;
	http_conn_close(&call->conn);
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
