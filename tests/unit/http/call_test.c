#include "call_test.h"

#include <netinet/in.h>
#include <sys/socket.h>

struct http_loop *loop;

/* ---- A server ---------------------------------------------------------------------------------------------------- */

struct server server;

static void visit_free(struct http_source *source)
{
	free(source);
}

void visit_close(struct visit *visit)
{
	struct visit **at = &server.visits;
	while (*at != visit)
		at = &(*at)->next;
	*at = visit->next;
	http_conn_close(&visit->conn);
}

static bool request_is_whole(struct str request)
{
	const char *end = memmem(request.at, request.length, "\r\n\r\n", 4);
	const char *length = memmem(request.at, request.length, "Content-Length: ", 16);
	if (!end)
		return false;
	size_t body = length && length < end ? strtoul(length + 16, NULL, 10) : 0;
	return request.length >= (size_t)(end - request.at) + 4 + body;
}

static void visit_answer(struct visit *visit)
{
	size_t left = server.answer.length - visit->sent;
	size_t now = server.piece > 0 && server.piece < left ? server.piece : left;
	struct iovec piece = {.iov_base = (char *)server.answer.at + visit->sent, .iov_len = now};
	size_t written = 0;
	if (now > 0 && http_conn_write(&visit->conn, &piece, 1, &written) == HTTP_IO_FAILED)
		visit->sent = server.answer.length;
	visit->sent += written;
	if (visit->sent < server.answer.length) {
		http_loop_again(loop, &visit->conn.source);
		return;
	}
	if (server.keeps) {
		visit->sent = 0;
		buf_clear(&server.request);
		return;
	}
	if (server.hasty)
		http_conn_reset_on_close(&visit->conn);
	visit_close(visit);
}

static void visit_changed(struct http_conn *conn)
{
	struct visit *visit = (struct visit *)conn;
	enum http_io io;
	while (!server.hasty && (io = http_conn_read(conn)) != HTTP_IO_BLOCKED) {
		buf_put(&server.request, str_make(conn->in.at, conn->in.end));
		conn->in.end = 0;
		if (io != HTTP_IO_SOME) {
			visit_close(visit);
			return;
		}
	}
	if (!server.mute && (server.hasty || request_is_whole(buf_str(&server.request))))
		visit_answer(visit);
}

static void server_accept(struct http_listener *listener, int fd, const struct sockaddr_storage *from)
{
	(void)listener;
	(void)from;
	struct err err;
	struct visit *visit = calloc(1, sizeof(*visit));
	visit->next = server.visits;
	server.visits = visit;
	visit->conn.changed = visit_changed;
	visit->conn.source.release = visit_free;
	server.accepted++;
	buf_clear(&server.request);
	assert_int_equal(http_conn_init(&visit->conn, loop, fd, &err), 0);
	if (server.tls)
		http_conn_tls_accept(&visit->conn, server.tls);
}

void address_of(int fd, struct http_address *address)
{
	address->length = sizeof(address->socket);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address->socket, &address->length), 0);
	snprintf(address->text, sizeof(address->text), "127.0.0.1:%u",
	         ntohs(((struct sockaddr_in *)&address->socket)->sin_port));
}

void server_start(void)
{
	struct err err;
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(fd, 8), 0);
	address_of(fd, &server.address);
	server.listener.accepted = server_accept;
	assert_int_equal(http_listener_start(&server.listener, loop, fd, &err), 0);
}

void server_stop(void)
{
	http_listener_stop(&server.listener);
	while (server.visits)
		visit_close(server.visits);
	buf_free(&server.request);
}

/* ---- A client ---------------------------------------------------------------------------------------------------- */

void note(void *context, const struct http_call_answer *answer)
{
	struct outcome *outcome = context;
	outcome->times++;
	outcome->code = answer->code;
	outcome->status = answer->status;
	outcome->sent = answer->sent;
	const struct http_field *location = answer->head ? http_find_named(answer->head, STR("location")) : NULL;
	struct str where = location ? http_field_value(answer->head, location) : STR("");
	snprintf(outcome->location, sizeof(outcome->location), "%.*s", STR_FMT(where));
	snprintf(outcome->text, sizeof(outcome->text), "%s", answer->err.text);
	buf_put(&outcome->type, answer->content_type);
	buf_put(&outcome->body, answer->body);
	http_loop_stop(loop);
}

static void too_late(struct http_timer *timer)
{
	(void)timer;
	fail_msg("no outcome in time");
}

void run_bounded(void)
{
	struct http_timer bound = {.fire = too_late};
	http_timer_set(loop, &bound, BOUND_MS);
	http_loop_run(loop);
	http_timer_clear(loop, &bound);
}

struct http_call_options get(struct outcome *outcome)
{
	return (struct http_call_options){.address = server.address,
	                                  .method = "GET",
	                                  .target = STR("/x"),
	                                  .timeout_ms = BOUND_MS / 2,
	                                  .answer_bytes = 1000,
	                                  .done = note,
	                                  .context = outcome};
}

void forget(struct outcome *outcome)
{
	buf_free(&outcome->type);
	buf_free(&outcome->body);
}

int make_loop(void **state)
{
	(void)state;
	struct err err;
	return http_loop_new(&loop, &err);
}

int drop_loop(void **state)
{
	(void)state;
	http_loop_free(loop);
	return 0;
}

void ask_by(const struct http_call_options *options)
{
	const struct outcome *outcome = options->context;
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, options, &err), 0);
	assert_int_equal(outcome->times, 0);
	run_bounded();
	assert_int_equal(outcome->times, 1);
}

struct outcome ask_server(void)
{
	struct outcome outcome = {0};
	struct http_call_options options = get(&outcome);
	ask_by(&options);
	return outcome;
}
