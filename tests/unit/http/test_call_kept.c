/* Calls on connections that are kept for the next one. */
#include "call_test.h"

static struct outcome ask_with(struct http_pool *pool, bool repeatable)
{
	struct outcome outcome = {0};
	struct http_call_options options = get(&outcome);
	options.pool = pool;
	options.repeatable = repeatable;
	options.method = "POST";
	options.fields = STR("X-Kept: yes\r\n");
	ask_by(&options);
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
		test(a_connection_serves_again),
		test(a_server_that_wants_no_more_gets_a_new_connection),
		test(what_was_closed_meanwhile_is_repeated_or_told),
		test(what_must_not_be_sent_twice_is_not_sent_where_it_may_be_lost),
		test(connections_that_may_be_closed_do_not_pile_up),
		test(what_was_sent_before_may_have_run),
		test(what_never_left_is_told),
		test(a_kept_connection_can_be_called_off),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
