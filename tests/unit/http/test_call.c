/* Calls, one at a time. */
#include "call_test.h"

#include <netinet/in.h>
#include <sys/socket.h>

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
		cmocka_unit_test_setup_teardown(a_call_by_tls_looks_before_it_asks, make_pairs, drop_pairs),
		cmocka_unit_test_setup_teardown(whoever_is_refused_never_sees_the_request, make_pairs, drop_pairs),
		cmocka_unit_test_setup_teardown(a_root_that_is_not_trusted_is_told, make_pairs, drop_pairs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
