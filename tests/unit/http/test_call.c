/* Calls, against a server in the same loop that says what a test wants it to say. */
#include "tls_test.h"

#include <netinet/in.h>
#include <sys/socket.h>

enum { BOUND_MS = 20000, SHORT_MS = 50 };

static struct http_loop *loop;

/* ---- A server ---------------------------------------------------------------------------------------------------- */

/* Takes one connection at a time, reads a request whole, answers, closes. One for all tests: the loop, which goes after a
 * test, looks at its listener once more. */
static struct server {
	struct http_listener listener; /* first */
	struct http_address address;
	struct str answer;    /* what is sent, as it is */
	size_t piece;         /* bytes sent at once; 0: all */
	bool mute;            /* neither answers nor closes */
	bool hasty;           /* answers without reading, and closes with a reset */
	bool keeps;           /* the connection stays open for another request */
	int accepted;         /* connections so far */
	struct http_tls *tls; /* NULL: plain */
	struct buf request;
	struct visit *visits; /* under way */
} server;

struct visit {
	struct http_conn conn; /* first */
	struct visit *next;
	size_t sent;
};

static void visit_free(struct http_source *source)
{
	free(source);
}

static void visit_close(struct visit *visit)
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

static void address_of(int fd, struct http_address *address)
{
	address->length = sizeof(address->socket);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address->socket, &address->length), 0);
	snprintf(address->text, sizeof(address->text), "127.0.0.1:%u",
	         ntohs(((struct sockaddr_in *)&address->socket)->sin_port));
}

static void server_start(void)
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

static void server_stop(void)
{
	http_listener_stop(&server.listener);
	while (server.visits)
		visit_close(server.visits);
	buf_free(&server.request);
}

/* ---- A client ---------------------------------------------------------------------------------------------------- */

struct outcome {
	int times;
	int code;
	char text[LIMIT_ERROR_TEXT_BYTES];
	unsigned status;
	struct buf type, body;
	bool sent;
	char location[32]; /* a field of the answer */
};

static void note(void *context, const struct http_call_answer *answer)
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

static void run_bounded(void)
{
	struct http_timer bound = {.fire = too_late};
	http_timer_set(loop, &bound, BOUND_MS);
	http_loop_run(loop);
	http_timer_clear(loop, &bound);
}

static struct http_call_options get(struct outcome *outcome)
{
	return (struct http_call_options){.address = server.address,
	                                  .method = "GET",
	                                  .target = STR("/x"),
	                                  .timeout_ms = BOUND_MS / 2,
	                                  .answer_bytes = 1000,
	                                  .done = note,
	                                  .context = outcome};
}

static void forget(struct outcome *outcome)
{
	buf_free(&outcome->type);
	buf_free(&outcome->body);
}

static int make_loop(void **state)
{
	(void)state;
	struct err err;
	return http_loop_new(&loop, &err);
}

static int drop_loop(void **state)
{
	(void)state;
	http_loop_free(loop);
	return 0;
}

/* Has the answer sent, all at once or in pieces, and tells what became of it. */
static struct outcome ask_server(void)
{
	struct outcome outcome = {0};
	struct http_call_options options = get(&outcome);
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	assert_int_equal(outcome.times, 0);
	run_bounded();
	assert_int_equal(outcome.times, 1);
	return outcome;
}

static struct outcome ask(struct str answer, size_t piece)
{
	server = (struct server){.answer = answer, .piece = piece};
	server_start();
	struct outcome outcome = ask_server();
	server_stop();
	return outcome;
}

/* ---- Tests ------------------------------------------------------------------------------------------------------- */

static void a_call_sends_its_request_and_brings_the_answer(void **state)
{
	(void)state;
	server = (struct server){.answer = STR("HTTP/1.1 201 Created\r\nContent-Type: application/json\r\n"
	                                       "Content-Length: 7\r\n\r\n{\"a\":1}")};
	struct outcome outcome = {0};
	server_start();
	struct http_call_options options = get(&outcome);
	options.method = "POST";
	options.target = STR("/cheops/v1/x?y=z");
	options.content_type = STR("application/json");
	options.body = STR("{\"b\":2}");
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	run_bounded();
	assert_int_equal(outcome.times, 1);
	assert_int_equal(outcome.code, 0);
	assert_int_equal(outcome.status, 201);
	assert_string_equal(buf_c(&outcome.type), "application/json");
	assert_string_equal(buf_c(&outcome.body), "{\"a\":1}");
	char expected[300];
	snprintf(expected, sizeof(expected),
	         "POST /cheops/v1/x?y=z HTTP/1.1\r\nHost: %s\r\nConnection: close\r\nContent-Type: application/json\r\n"
	         "Content-Length: 7\r\n\r\n{\"b\":2}",
	         server.address.text);
	assert_string_equal(buf_c(&server.request), expected);
	forget(&outcome);
	server_stop();
}

/* Each framing, whole and byte by byte. */
static void every_framing_is_understood(void **state)
{
	(void)state;
	static const struct {
		struct str answer;
		unsigned status;
		const char *body;
	} cases[] = {
		{STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"), 200, "hello"},
		{STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nhe\r\n3\r\nllo\r\n0\r\nA: b\r\n\r\n"),
	     200, "hello"},
		{STR_INIT("HTTP/1.0 200 OK\r\n\r\nuntil it ends"), 200, "until it ends"},
		{STR_INIT("HTTP/1.1 204 No Content\r\n\r\n"), 204, ""},
		{STR_INIT("HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n"), 404, ""},
		{STR_INIT("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
	              "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"),
	     200, "ok"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t piece = 0; piece < 4; piece++) {
			struct outcome outcome = ask(cases[i].answer, piece);
			assert_int_equal(outcome.code, 0);
			assert_int_equal(outcome.status, cases[i].status);
			assert_string_equal(buf_c(&outcome.body), cases[i].body);
			forget(&outcome);
			drop_loop(NULL);
			make_loop(NULL);
		}
	}
}

static void an_answer_that_is_wrong_is_refused_as_a_whole(void **state)
{
	(void)state;
	static const struct {
		struct str answer;
		int code;
		const char *said;
	} cases[] = {
		{STR_INIT(""), ERR_UNAVAILABLE, "closed the connection without an answer"},
		{STR_INIT("HTTP/1.1 200 OK\r\nConte"), ERR_UNAVAILABLE, "closed the connection in the middle of its answer"},
		{STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell"), ERR_UNAVAILABLE, "in the middle"},
		{STR_INIT("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n"), ERR_UNAVAILABLE,
	     "in the middle"},
		{STR_INIT("SSH-2.0-OpenSSH_9.2\r\n"), ERR_CORRUPT, "is not HTTP as it should be"},
		{STR_INIT("\x15\x03\x01\x00\x02\x02\x32"), ERR_CORRUPT, "is not HTTP"},
		{STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"), ERR_CORRUPT,
	     "is not HTTP"},
		{STR_INIT("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"), ERR_CORRUPT,
	     "switch to another protocol"},
		{STR_INIT("HTTP/1.1 200 OK\r\nContent-Length: 1001\r\n\r\n"), ERR_LIMIT, "longer than 1000 bytes"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		for (size_t piece = 0; piece < 2; piece++) {
			struct outcome outcome = ask(cases[i].answer, piece);
			assert_int_equal(outcome.code, cases[i].code);
			assert_non_null(strstr(outcome.text, cases[i].said));
			assert_int_equal(outcome.body.length, 0);
			forget(&outcome);
			drop_loop(NULL);
			make_loop(NULL);
		}
	}
}

static void answers_have_a_longest(void **state)
{
	(void)state;
	static const char *const heads[] = {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
	                                    "HTTP/1.0 200 OK\r\n\r\n"};
	for (size_t i = 0; i < COUNT(heads); i++) {
		for (size_t chunks = 10; chunks <= 11; chunks++) {
			struct buf answer = {0};
			buf_put(&answer, str_of(heads[i]));
			for (size_t n = 0; n < chunks; n++) {
				buf_put(&answer, i == 0 ? STR("64\r\n") : STR(""));
				buf_put_repeat(&answer, 'x', 100);
				buf_put(&answer, i == 0 ? STR("\r\n") : STR(""));
			}
			buf_put(&answer, i == 0 ? STR("0\r\n\r\n") : STR(""));
			struct outcome outcome = ask(buf_str(&answer), 0);
			assert_int_equal(outcome.code, chunks == 10 ? 0 : ERR_LIMIT);
			assert_int_equal(outcome.body.length, chunks == 10 ? 1000 : 0);
			forget(&outcome);
			buf_free(&answer);
			drop_loop(NULL);
			make_loop(NULL);
		}
	}
}

static void a_head_without_an_end_is_refused(void **state)
{
	(void)state;
	struct buf answer = {0};
	buf_put(&answer, STR("HTTP/1.1 200 OK\r\n"));
	for (int i = 0; i < 100; i++) {
		buf_printf(&answer, "X-%d: ", i);
		buf_put_repeat(&answer, 'x', 1000);
		buf_put(&answer, STR("\r\n"));
	}
	struct outcome outcome = ask(buf_str(&answer), 0);
	assert_int_equal(outcome.code, ERR_CORRUPT);
	assert_non_null(strstr(outcome.text, "the head is larger than the limit"));
	forget(&outcome);
	buf_free(&answer);
}

static void interim_answers_have_a_bound(void **state)
{
	(void)state;
	struct buf answer = {0};
	for (int i = 0; i < 5000; i++)
		buf_put(&answer, STR("HTTP/1.1 100 Continue\r\n\r\n"));
	struct outcome outcome = ask(buf_str(&answer), 0);
	assert_true(outcome.code == ERR_LIMIT || outcome.code == ERR_CORRUPT);
	forget(&outcome);
	buf_free(&answer);
}

static void nothing_listens(void **state)
{
	(void)state;
	server = (struct server){.answer = STR("")};
	server_start();
	struct outcome outcome = {0};
	struct http_call_options options = get(&outcome);
	server_stop();
	struct http_call *call;
	struct err err = {0};
	int code = http_call_start(&call, loop, &options, &err);
	if (code == 0) { /* the kernel may tell at once, or later */
		run_bounded();
		assert_int_equal(outcome.times, 1);
		code = outcome.code;
		snprintf(err.text, sizeof(err.text), "%s", outcome.text);
	}
	char expected[200];
	snprintf(expected, sizeof(expected), "cannot connect to %s: Connection refused", options.address.text);
	assert_int_equal(code, ERR_UNAVAILABLE);
	assert_string_equal(err.text, expected);
	forget(&outcome);
}

static void time_is_bounded(void **state)
{
	(void)state;
	server = (struct server){.mute = true};
	struct outcome outcome = {0};
	server_start();
	struct http_call_options options = get(&outcome);
	options.timeout_ms = SHORT_MS;
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	run_bounded();
	assert_int_equal(outcome.times, 1);
	assert_int_equal(outcome.code, ERR_TIMEOUT);
	assert_non_null(strstr(outcome.text, "did not answer within 50 ms"));
	forget(&outcome);
	server_stop();
}

/* The one that is called off never tells; the other one, of the same server, ends later. */
static void a_call_can_be_called_off(void **state)
{
	(void)state;
	server = (struct server){.mute = true};
	struct outcome silent = {0}, other = {0};
	server_start();
	struct http_call_options options = get(&silent);
	options.timeout_ms = 1;
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	http_call_cancel(call);
	options = get(&other);
	options.timeout_ms = SHORT_MS;
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	run_bounded();
	assert_int_equal(silent.times, 0);
	assert_int_equal(other.times, 1);
	server_stop();
}

/* A server that has no use for the rest of a long request may say so and go. */
static void an_answer_before_the_request_was_read_counts(void **state)
{
	(void)state;
	server = (struct server){.answer = STR("HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n"), .hasty = true};
	struct outcome outcome = {0};
	struct buf body = {0};
	server_start();
	buf_put_repeat(&body, 'x', 4 << 20);
	struct http_call_options options = get(&outcome);
	options.method = "PUT";
	options.body = buf_str(&body);
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	run_bounded();
	assert_int_equal(outcome.times, 1);
	/* Its reset may overtake the answer: then the connection broke, which is told as well. */
	assert_true((outcome.code == 0 && outcome.status == 413) || outcome.code == ERR_UNAVAILABLE);
	forget(&outcome);
	buf_free(&body);
	server_stop();
}

static void an_answer_to_head_has_no_body(void **state)
{
	(void)state;
	server = (struct server){.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n")};
	struct outcome outcome = {0};
	server_start();
	struct http_call_options options = get(&outcome);
	options.method = "HEAD";
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	run_bounded();
	assert_int_equal(outcome.code, 0);
	assert_int_equal(outcome.status, 200);
	forget(&outcome);
	server_stop();
}

/* Waiting has a loop of its own; there is nobody to answer in this thread, so that it is the refusal that is waited for. */
static void waiting_brings_the_error(void **state)
{
	(void)state;
	server = (struct server){.answer = STR("")};
	server_start();
	struct http_call_options options = get(NULL);
	options.timeout_ms = SHORT_MS;
	unsigned status;
	struct buf body = {0};
	struct err err = {0};
	assert_int_equal(http_call_wait(&options, &status, &body, &err), ERR_TIMEOUT);
	assert_non_null(strstr(err.text, "did not answer within 50 ms"));
	server_stop();
	assert_int_equal(http_call_wait(&options, &status, &body, &err), ERR_UNAVAILABLE);
	assert_non_null(strstr(err.text, "Connection refused"));
	assert_int_equal(body.length, 0);
}

/* ---- TLS --------------------------------------------------------------------------------------------------------- */

/* Whether the other side is the one that is meant: what `check` of a call is asked. */
struct doorman {
	struct outcome outcome; /* first: the call's context */
	int asked;
	bool refuses;
	size_t certificate_bytes;
};

static int look(void *context, struct str certificate_der, struct err *err)
{
	struct doorman *doorman = context;
	doorman->asked++;
	doorman->certificate_bytes = certificate_der.length;
	return doorman->refuses ? err_set(err, ERR_CONFLICT, "not the one that is meant") : 0;
}

static struct pair root, site, stranger;

static struct http_tls *tls_of(bool as_server, const struct pair *shown, const struct pair *trusted)
{
	struct http_tls *tls;
	struct err err = {0};
	struct http_tls_options options = {.server = as_server,
	                                   .peers = true,
	                                   .certificate_pem = str_of(shown ? shown->certificate_pem : ""),
	                                   .key_pem = str_of(shown ? shown->key_pem : ""),
	                                   .roots_pem = str_of(trusted->certificate_pem),
	                                   .verify = as_server ? HTTP_TLS_VERIFY_IF_GIVEN : HTTP_TLS_VERIFY_ALWAYS};
	if (http_tls_new(&tls, &options, &err) != 0)
		fail_msg("%s", err.text);
	return tls;
}

static int make_pairs(void **state)
{
	pair_root(&root, "root");
	pair_root(&stranger, "another root");
	pair_issue(&site, &root, &(struct issue){.names = "URI:cheops://site/Site1"});
	return make_loop(state);
}

static int drop_pairs(void **state)
{
	pair_free(&root);
	pair_free(&stranger);
	pair_free(&site);
	return drop_loop(state);
}

/* A call by TLS to a server that shows the site's certificate. */
static void call_by_tls(struct doorman *doorman, const struct pair *trusted)
{
	server = (struct server){.answer = STR("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")};
	server.tls = tls_of(true, &site, &root);
	server_start();
	struct http_call_options options = get(&doorman->outcome);
	options.tls = tls_of(false, NULL, trusted);
	options.check = look;
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	run_bounded();
	assert_int_equal(doorman->outcome.times, 1);
	http_tls_drop(options.tls);
	http_tls_drop(server.tls);
}

static void a_call_by_tls_looks_before_it_asks(void **state)
{
	(void)state;
	struct doorman doorman = {0};
	call_by_tls(&doorman, &root);
	assert_int_equal(doorman.asked, 1);
	assert_true(doorman.certificate_bytes > 0);
	assert_int_equal(doorman.outcome.code, 0);
	assert_string_equal(buf_c(&doorman.outcome.body), "ok");
	assert_true(server.request.length > 0);
	forget(&doorman.outcome);
	server_stop();
}

static void whoever_is_refused_never_sees_the_request(void **state)
{
	(void)state;
	struct doorman doorman = {.refuses = true};
	call_by_tls(&doorman, &root);
	assert_int_equal(doorman.asked, 1);
	assert_int_equal(doorman.outcome.code, ERR_CONFLICT);
	assert_string_equal(doorman.outcome.text, "not the one that is meant");
	assert_int_equal(server.request.length, 0);
	server_stop();
}

static void a_root_that_is_not_trusted_is_told(void **state)
{
	(void)state;
	struct doorman doorman = {0};
	call_by_tls(&doorman, &stranger);
	assert_int_equal(doorman.asked, 0);
	assert_int_equal(doorman.outcome.code, ERR_UNAVAILABLE);
	assert_non_null(strstr(doorman.outcome.text, "cannot connect to 127.0.0.1:"));
	assert_int_equal(server.request.length, 0);
	server_stop();
}

/* ---- Kept connections -------------------------------------------------------------------------------------------- */

static struct outcome ask_with(struct http_pool *pool, bool repeatable)
{
	struct outcome outcome = {0};
	struct http_call_options options = get(&outcome);
	options.pool = pool;
	options.repeatable = repeatable;
	options.method = "POST";
	options.fields = STR("X-Kept: yes\r\n");
	struct http_call *call;
	struct err err = {0};
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	assert_int_equal(outcome.times, 0);
	run_bounded();
	assert_int_equal(outcome.times, 1);
	return outcome;
}

/* Sets out, and no more. */
static struct http_call *start_with(struct http_pool *pool, bool repeatable, struct outcome *outcome)
{
	struct http_call_options options = get(outcome);
	struct http_call *call;
	struct err err = {0};
	options.pool = pool;
	options.repeatable = repeatable;
	assert_int_equal(http_call_start(&call, loop, &options, &err), 0);
	return call;
}

static void serve_kept(struct str answer)
{
	server = (struct server){.answer = answer, .keeps = true};
	server_start();
}

static const struct str kept_answer = STR_INIT("HTTP/1.1 201 Created\r\nLocation: /x/1\r\nContent-Length: 2\r\n\r\nok");

static void a_connection_serves_again(void **state)
{
	(void)state;
	serve_kept(kept_answer);
	struct http_pool *pool = http_pool_new(loop);
	for (int i = 0; i < 5; i++) {
		struct outcome outcome = ask_with(pool, i != 2);
		assert_int_equal(outcome.status, 201);
		assert_string_equal(buf_c(&outcome.body), "ok");
		assert_string_equal(outcome.location, "/x/1");
		forget(&outcome);
	}
	assert_int_equal(server.accepted, 1);
	http_pool_free(pool);
	server_stop();
}

static void a_server_that_wants_no_more_gets_a_new_connection(void **state)
{
	(void)state;
	serve_kept(STR("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"));
	struct http_pool *pool = http_pool_new(loop);
	for (int i = 0; i < 2; i++) {
		struct outcome outcome = ask_with(pool, true);
		assert_int_equal(outcome.code, 0);
		forget(&outcome);
	}
	assert_int_equal(server.accepted, 2);
	http_pool_free(pool);
	server_stop();
}

/* The server closes what is idle, at the very moment at which the next request sets out. */
static void what_was_closed_meanwhile_is_repeated_or_told(void **state)
{
	(void)state;
	for (int repeatable = 0; repeatable < 2; repeatable++) {
		serve_kept(kept_answer);
		struct http_pool *pool = http_pool_new(loop);
		for (int i = 0; i < 2; i++) { /* it is a server that keeps connections */
			struct outcome first = ask_with(pool, true);
			assert_int_equal(first.code, 0);
			forget(&first);
		}
		struct outcome outcome = {0};
		start_with(pool, repeatable, &outcome);
		http_conn_reset_on_close(&server.visits->conn);
		visit_close(server.visits);
		run_bounded();
		assert_int_equal(outcome.times, 1);
		assert_int_equal(outcome.code, repeatable ? 0 : ERR_UNAVAILABLE);
		assert_true(outcome.sent); /* where it failed, nobody can tell */
		assert_int_equal(server.accepted, repeatable ? 2 : 1);
		forget(&outcome);
		http_pool_free(pool);
		server_stop();
	}
}

/* The server closes after each answer, without having said so, and later than the next request can be sent. */
static void what_must_not_be_sent_twice_is_not_sent_where_it_may_be_lost(void **state)
{
	(void)state;
	serve_kept(kept_answer);
	struct http_pool *pool = http_pool_new(loop);
	for (int i = 0; i < 5; i++) {
		struct outcome outcome = {0};
		struct visit *last = server.visits;
		start_with(pool, false, &outcome);
		if (last) {
			http_conn_reset_on_close(&last->conn);
			visit_close(last);
		}
		run_bounded();
		assert_int_equal(outcome.code, 0);
		assert_int_equal(outcome.status, 201);
		assert_int_equal(server.accepted, i + 1);
		forget(&outcome);
	}
	http_pool_free(pool);
	server_stop();
}

static void connections_that_may_be_closed_do_not_pile_up(void **state)
{
	(void)state;
	serve_kept(kept_answer);
	struct http_pool *pool = http_pool_new(loop);
	for (int i = 0; i < 50; i++) {
		struct outcome outcome = ask_with(pool, false);
		assert_int_equal(outcome.code, 0);
		forget(&outcome);
	}
	int open = 0;
	for (struct visit *visit = server.visits; visit; visit = visit->next)
		open++;
	assert_in_range(open, 1, 12);
	http_pool_free(pool);
	server_stop();
}

/* The server dies with the request: that the second try could not leave says nothing of the first. */
static void what_was_sent_before_may_have_run(void **state)
{
	(void)state;
	serve_kept(kept_answer);
	struct http_pool *pool = http_pool_new(loop);
	struct outcome first = ask_with(pool, true);
	forget(&first);
	struct outcome outcome = {0};
	start_with(pool, true, &outcome);
	http_conn_reset_on_close(&server.visits->conn);
	visit_close(server.visits);
	server_stop();
	run_bounded();
	assert_int_equal(outcome.times, 1);
	assert_int_equal(outcome.code, ERR_UNAVAILABLE);
	assert_true(outcome.sent);
	forget(&outcome);
	http_pool_free(pool);
}

static void what_never_left_is_told(void **state)
{
	(void)state;
	serve_kept(kept_answer);
	server_stop();
	struct outcome outcome = ask_server();
	assert_int_equal(outcome.code, ERR_UNAVAILABLE);
	assert_false(outcome.sent);
	forget(&outcome);
}

static void a_kept_connection_can_be_called_off(void **state)
{
	(void)state;
	serve_kept(kept_answer);
	struct http_pool *pool = http_pool_new(loop);
	struct outcome first = ask_with(pool, true);
	forget(&first);
	struct outcome outcome = {0};
	struct http_call *call = start_with(pool, false, &outcome);
	http_call_cancel(call);
	http_pool_free(pool);
	assert_int_equal(outcome.times, 0);
	server_stop();
}

#define test(name) cmocka_unit_test_setup_teardown(name, make_loop, drop_loop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		test(a_call_sends_its_request_and_brings_the_answer),
		test(every_framing_is_understood),
		test(an_answer_that_is_wrong_is_refused_as_a_whole),
		test(answers_have_a_longest),
		test(a_head_without_an_end_is_refused),
		test(interim_answers_have_a_bound),
		test(nothing_listens),
		test(time_is_bounded),
		test(a_call_can_be_called_off),
		test(an_answer_before_the_request_was_read_counts),
		test(an_answer_to_head_has_no_body),
		test(waiting_brings_the_error),
		test(a_connection_serves_again),
		test(a_server_that_wants_no_more_gets_a_new_connection),
		test(what_was_closed_meanwhile_is_repeated_or_told),
		test(what_must_not_be_sent_twice_is_not_sent_where_it_may_be_lost),
		test(connections_that_may_be_closed_do_not_pile_up),
		test(what_was_sent_before_may_have_run),
		test(what_never_left_is_told),
		test(a_kept_connection_can_be_called_off),
		cmocka_unit_test_setup_teardown(a_call_by_tls_looks_before_it_asks, make_pairs, drop_pairs),
		cmocka_unit_test_setup_teardown(whoever_is_refused_never_sees_the_request, make_pairs, drop_pairs),
		cmocka_unit_test_setup_teardown(a_root_that_is_not_trusted_is_told, make_pairs, drop_pairs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
