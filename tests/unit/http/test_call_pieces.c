/* Calls whose body is a file, and calls whose answer is taken piece by piece, in the clear and by TLS. */
#include "tls_test.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { LONG_BYTES = 3 << 20, BOUND_MS = 20000 };

static struct http_loop *loop;
static struct pair root, site;

/* ---- A server ----------------------------------------------------------------------------------------------------- */

/* Takes one connection, reads the request whole, answers, closes. */
static struct server {
	struct http_listener listener; /* first */
	struct http_conn *conn;
	struct http_address address;
	struct http_tls *tls;
	struct buf request;
	struct buf answer;
	size_t sent;
} server;

static void conn_free(struct http_source *source)
{
	free(source);
}

static bool request_is_whole(struct str request)
{
	const char *end = memmem(request.at, request.length, "\r\n\r\n", 4);
	const char *length = memmem(request.at, request.length, "Content-Length: ", 16);
	size_t body = end && length ? strtoul(length + 16, NULL, 10) : 0;
	return end && request.length >= (size_t)(end - request.at) + 4 + body;
}

static void server_changed(struct http_conn *conn)
{
	enum http_io io;
	while ((io = http_conn_read(conn)) == HTTP_IO_SOME) {
		buf_put(&server.request, str_make(conn->in.at, conn->in.end));
		conn->in.end = 0;
	}
	if (io != HTTP_IO_BLOCKED) {
		http_conn_close(conn);
		server.conn = NULL;
		return;
	}
	if (conn->connecting || !request_is_whole(buf_str(&server.request)))
		return;
	while (server.sent < server.answer.length) {
		struct iovec piece = {server.answer.at + server.sent, server.answer.length - server.sent};
		size_t written;
		io = http_conn_write(conn, &piece, 1, &written);
		server.sent += written;
		if (io != HTTP_IO_SOME)
			return;
	}
	http_conn_end(conn);
}

static void server_accept(struct http_listener *listener, int fd, const struct sockaddr_storage *from)
{
	(void)listener;
	(void)from;
	struct err err;
	server.conn = calloc(1, sizeof(*server.conn));
	server.conn->changed = server_changed;
	server.conn->source.release = conn_free;
	assert_int_equal(http_conn_init(server.conn, loop, fd, &err), 0);
	if (server.tls)
		http_conn_tls_accept(server.conn, server.tls);
}

static void server_start(const char *head, size_t body_bytes)
{
	struct err err;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 8), 0);
	server.address.length = sizeof(server.address.socket);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&server.address.socket, &server.address.length), 0);
	snprintf(server.address.text, sizeof(server.address.text), "127.0.0.1:%u",
	         ntohs(((struct sockaddr_in *)&server.address.socket)->sin_port));
	server.listener.accepted = server_accept;
	assert_int_equal(http_listener_start(&server.listener, loop, fd, &err), 0);
	buf_put(&server.answer, str_of(head));
	for (size_t i = 0; i < body_bytes; i++)
		buf_put_char(&server.answer, (char)(i * 7 + i / 251));
}

static void server_stop(void)
{
	http_listener_stop(&server.listener);
	if (server.conn)
		http_conn_close(server.conn);
	buf_free(&server.request);
	buf_free(&server.answer);
}

static struct http_tls *tls_of(bool as_server)
{
	struct http_tls *tls;
	struct err err = {0};
	struct http_tls_options options = {.server = as_server,
	                                   .peers = true,
	                                   .certificate_pem = str_of(as_server ? site.certificate_pem : ""),
	                                   .key_pem = str_of(as_server ? site.key_pem : ""),
	                                   .roots_pem = str_of(root.certificate_pem),
	                                   .verify = as_server ? HTTP_TLS_VERIFY_IF_GIVEN : HTTP_TLS_VERIFY_ALWAYS};
	if (http_tls_new(&tls, &options, &err) != 0)
		fail_msg("%s", err.text);
	return tls;
}

/* ---- A client ----------------------------------------------------------------------------------------------------- */

static struct client {
	struct http_call *call;
	enum http_piece says; /* to each piece */
	struct http_task rest;
	bool resting; /* it has said FULL, and has not gone on yet */
	bool hurried; /* a piece came all the same */
	uint32_t pieces;
	struct buf taken;
	int times;
	int code;
	unsigned status;
	char text[LIMIT_ERROR_TEXT_BYTES];
	struct buf body;
} client;

static void go_on(struct http_task *task)
{
	(void)task;
	client.resting = false;
	if (client.call) /* the last piece is the end of the call */
		http_call_go_on(client.call);
}

static enum http_piece take(void *context, const struct http_head *head, struct str bytes)
{
	(void)context;
	assert_int_equal(head->status, 200);
	assert_non_null(http_find_named(head, STR("x-said")));
	client.pieces++;
	client.hurried |= client.resting;
	buf_put(&client.taken, bytes);
	if (client.says == HTTP_PIECE_FULL) {
		client.resting = true;
		client.rest.run = go_on;
		http_loop_post(loop, &client.rest);
	}
	return client.says;
}

static void done(void *context, const struct http_call_answer *answer)
{
	(void)context;
	client.times++;
	client.call = NULL;
	client.code = answer->code;
	client.status = answer->status;
	snprintf(client.text, sizeof(client.text), "%s", answer->err.text);
	buf_put(&client.body, answer->body);
	http_loop_stop(loop);
}

static void too_late(struct http_timer *timer)
{
	(void)timer;
	fail_msg("no outcome in time");
}

static void call(struct http_call_options *options)
{
	struct err err = {0};
	struct http_timer bound = {.fire = too_late};
	options->address = server.address;
	options->target = STR("/x");
	options->timeout_ms = BOUND_MS / 2;
	options->answer_bytes = LONG_BYTES;
	options->done = done;
	assert_int_equal(http_call_start(&client.call, loop, options, &err), 0);
	http_timer_set(loop, &bound, BOUND_MS);
	http_loop_run(loop);
	http_timer_clear(loop, &bound);
	assert_int_equal(client.times, 1);
}

static int make(void **state)
{
	(void)state;
	struct err err;
	pair_root(&root, "root");
	pair_issue(&site, &root, &(struct issue){.names = "URI:cheops://site/Site1"});
	client = (struct client){0};
	server = (struct server){0};
	return http_loop_new(&loop, &err);
}

static int drop(void **state)
{
	(void)state;
	server_stop();
	buf_free(&client.taken);
	buf_free(&client.body);
	http_loop_free(loop);
	pair_free(&root);
	pair_free(&site);
	return 0;
}

/* ---- Bodies from files ---------------------------------------------------------------------------------------------- */

static int make_file(size_t bytes, struct buf *content)
{
	char name[] = "/tmp/test_call_pieces.XXXXXX";
	int fd = mkstemp(name);
	assert_true(fd >= 0);
	unlink(name);
	for (size_t i = 0; i < bytes; i++)
		buf_put_char(content, (char)(i * 13 + i / 253));
	assert_int_equal(write(fd, content->at, content->length), (ssize_t)content->length);
	return fd;
}

/* Whatever the offset of the descriptor is; what is said before it comes before it. */
static void send_file(struct http_tls *tls)
{
	struct buf content = {0};
	server_start("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0);
	struct http_call_options options = {.tls = tls,
	                                    .method = "PUT",
	                                    .body = STR("first "),
	                                    .body_fd = make_file(LONG_BYTES, &content),
	                                    .body_bytes = LONG_BYTES};
	call(&options);
	close(options.body_fd);
	assert_int_equal(client.code, 0);
	assert_int_equal(client.status, 201);
	const char *body = memmem(server.request.at, server.request.length, "\r\n\r\n", 4);
	assert_non_null(
		memmem(server.request.at, (size_t)(body + 4 - server.request.at), "Content-Length: 3145734\r\n", 25));
	size_t length = server.request.length - (size_t)(body + 4 - server.request.at);
	assert_int_equal(length, LONG_BYTES + 6);
	assert_memory_equal(body + 4, "first ", 6);
	assert_memory_equal(body + 10, content.at, content.length);
	buf_free(&content);
}

static void a_file_is_sent_as_the_body(void **state)
{
	(void)state;
	send_file(NULL);
}

static void a_file_is_sent_by_tls(void **state)
{
	(void)state;
	struct http_tls *tls = tls_of(false);
	server.tls = tls_of(true);
	send_file(tls);
	http_tls_drop(tls);
	http_tls_drop(server.tls);
}

static void a_file_that_is_too_short_is_told(void **state)
{
	(void)state;
	struct buf content = {0};
	server_start("HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n", 0);
	struct http_call_options options = {.method = "PUT", .body_fd = make_file(100000, &content), .body_bytes = 100001};
	call(&options);
	close(options.body_fd);
	buf_free(&content);
	assert_int_equal(client.code, ERR_IO);
	assert_non_null(strstr(client.text, "it is too short"));
}

/* ---- Answers in pieces ---------------------------------------------------------------------------------------------- */

static void assert_all_was_taken(void)
{
	size_t head = server.answer.length - LONG_BYTES;
	assert_int_equal(client.code, 0);
	assert_int_equal(client.taken.length, LONG_BYTES);
	assert_memory_equal(client.taken.at, server.answer.at + head, LONG_BYTES);
	assert_int_equal(client.body.length, 0);
	assert_true(client.pieces > 10);
}

static void an_answer_is_taken_piece_by_piece(void **state)
{
	(void)state;
	server_start("HTTP/1.1 200 OK\r\nX-Said: 1\r\nContent-Length: 3145728\r\n\r\n", LONG_BYTES);
	call(&(struct http_call_options){.method = "GET", .piece = take});
	assert_all_was_taken();
}

static void whoever_is_full_gets_no_more(void **state)
{
	(void)state;
	client.says = HTTP_PIECE_FULL;
	server_start("HTTP/1.1 200 OK\r\nX-Said: 1\r\nContent-Length: 3145728\r\n\r\n", LONG_BYTES);
	call(&(struct http_call_options){.method = "GET", .piece = take});
	assert_all_was_taken();
	assert_false(client.hurried);
}

static void what_is_not_wanted_is_refused(void **state)
{
	(void)state;
	client.says = HTTP_PIECE_REFUSED;
	server_start("HTTP/1.1 200 OK\r\nX-Said: 1\r\nContent-Length: 3145728\r\n\r\n", LONG_BYTES);
	call(&(struct http_call_options){.method = "GET", .piece = take});
	assert_int_equal(client.code, ERR_CORRUPT);
	assert_int_equal(client.pieces, 1);
}

static void an_error_is_collected(void **state)
{
	(void)state;
	server_start("HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\nnone", 0);
	call(&(struct http_call_options){.method = "GET", .piece = take});
	assert_int_equal(client.code, 0);
	assert_int_equal(client.status, 404);
	assert_int_equal(client.pieces, 0);
	assert_string_equal(buf_c(&client.body), "none");
}

/* In chunks nobody says ahead how long it is. */
static void pieces_have_a_longest_too(void **state)
{
	(void)state;
	server_start("HTTP/1.0 200 OK\r\nX-Said: 1\r\n\r\n", LONG_BYTES + 1);
	call(&(struct http_call_options){.method = "GET", .piece = take});
	assert_int_equal(client.code, ERR_LIMIT);
}

#define test(name) cmocka_unit_test_setup_teardown(name, make, drop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_file_is_sent_as_the_body),
		test(a_file_is_sent_by_tls),
		test(a_file_that_is_too_short_is_told),
		test(an_answer_is_taken_piece_by_piece),
		test(whoever_is_full_gets_no_more),
		test(what_is_not_wanted_is_refused),
		test(an_error_is_collected),
		test(pieces_have_a_longest_too),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
