/* Connections: what is read, and that the end of the other side is always noticed. */
#include "http_test.h"

#include <netinet/in.h>
#include <sys/socket.h>

static struct http_loop *loop;

struct reader {
	struct http_conn conn; /* first */
	size_t bytes;
	enum http_io last;
};

static void read_all(struct http_conn *conn)
{
	struct reader *reader = (struct reader *)conn;
	do {
		conn->in.start = conn->in.end = 0;
		reader->last = http_conn_read(conn);
		reader->bytes += conn->in.end;
	} while (reader->last == HTTP_IO_SOME);
	if (reader->last != HTTP_IO_BLOCKED)
		http_loop_stop(loop);
}

static void give_up(struct http_timer *timer)
{
	(void)timer;
	http_loop_stop(loop);
}

/* Two ends of a TCP connection. */
static void make_pair(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&address, length), 0);
	ends[1] = accept4(listener, NULL, NULL, SOCK_NONBLOCK);
	assert_true(ends[1] >= 0);
	close(listener);
}

/* Data and the end are there before the first event: one event tells of both. */
static void bytes_and_the_end_in_one_event(void **state)
{
	(void)state;
	static const size_t sizes[] = {
		0, 1, HTTP_BUFFER_LEAST - 1, HTTP_BUFFER_LEAST, HTTP_BUFFER_LEAST + 1, 3 * HTTP_BUFFER_LEAST};
	static char bytes[3 * HTTP_BUFFER_LEAST];
	for (size_t i = 0; i < COUNT(sizes); i++) {
		struct err err;
		int ends[2];
		struct reader reader = {.conn.changed = read_all};
		struct http_timer bound = {.fire = give_up};
		assert_int_equal(http_loop_new(&loop, &err), 0);
		make_pair(ends);
		assert_int_equal(send(ends[0], bytes, sizes[i], 0), sizes[i]);
		close(ends[0]);
		assert_int_equal(http_conn_init(&reader.conn, loop, ends[1], &err), 0);
		http_timer_set(loop, &bound, 10000);
		http_loop_run(loop);
		http_timer_clear(loop, &bound);
		assert_int_equal(reader.bytes, sizes[i]);
		assert_int_equal(reader.last, HTTP_IO_END);
		http_conn_close(&reader.conn);
		http_loop_free(loop);
	}
}

/* A write that fails does not hide what the peer said before it closed. */
static void what_was_said_before_a_failed_write_can_be_read(void **state)
{
	(void)state;
	struct err err;
	int ends[2];
	struct http_conn conn = {0};
	assert_int_equal(http_loop_new(&loop, &err), 0);
	make_pair(ends);
	assert_int_equal(http_conn_init(&conn, loop, ends[1], &err), 0);
	assert_int_equal(send(ends[0], "bye", 3, 0), 3);
	shutdown(ends[0], SHUT_RDWR);
	close(ends[0]);
	struct iovec piece = {.iov_base = (char[]){'x'}, .iov_len = 1};
	size_t written;
	enum http_io io = HTTP_IO_SOME;
	for (int i = 0; i < 1000 && io != HTTP_IO_FAILED; i++) { /* the reset comes after the first */
		conn.writable = true;
		io = http_conn_write(&conn, &piece, 1, &written);
	}
	assert_int_equal(io, HTTP_IO_FAILED);
	assert_true(conn.failed && !conn.writable);
	io = http_conn_read(&conn);
	assert_true((io == HTTP_IO_SOME && conn.in.end == 3) || io == HTTP_IO_FAILED || io == HTTP_IO_END);
	assert_int_not_equal(io, HTTP_IO_BLOCKED);
	http_conn_close(&conn);
	http_loop_free(loop);
}

/* A listener that has no room for more takes nothing, and says nothing, as if it were dead. */
static void a_connection_is_taken_or_not(void **state)
{
	(void)state;
	struct err err;
	struct http_address address = {.length = sizeof(struct sockaddr_in), .text = "full"};
	struct sockaddr_in *at = (struct sockaddr_in *)&address.socket;
	struct http_conn conns[4] = {0};
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	*at = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	assert_int_equal(bind(listener, (struct sockaddr *)at, address.length), 0);
	assert_int_equal(listen(listener, 0), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)at, &address.length), 0);
	assert_int_equal(http_loop_new(&loop, &err), 0);
	for (size_t i = 0; i < COUNT(conns); i++)
		assert_int_equal(http_conn_connect(&conns[i], loop, &address, &err), 0);
	uint64_t rtt_us;
	assert_true(http_conn_is_taken(&conns[0], &rtt_us)); /* known before any event was looked at */
	assert_true(rtt_us > 0);
	assert_false(http_conn_is_taken(&conns[3], &rtt_us));
	assert_int_equal(rtt_us, 0);
	for (size_t i = 0; i < COUNT(conns); i++)
		http_conn_close(&conns[i]);
	close(listener);
	http_loop_free(loop);
}

static void addresses_are_read(void **state)
{
	(void)state;
	struct http_address address;
	struct err err;
	static const struct str good[] = {STR_INIT("127.0.0.1:1"), STR_INIT("[::1]:65535"), STR_INIT("localhost:80")};
	static const struct str bad[] = {STR_INIT(""),
	                                 STR_INIT(":80"),
	                                 STR_INIT("127.0.0.1"),
	                                 STR_INIT("127.0.0.1:"),
	                                 STR_INIT("127.0.0.1:0"),
	                                 STR_INIT("127.0.0.1:65536"),
	                                 STR_INIT("127.0.0.1:80x"),
	                                 STR_INIT("::1:80"),
	                                 STR_INIT("[]:80"),
	                                 STR_INIT("[::1:80"),
	                                 STR_INIT("127.0.0.1:-1")};
	for (size_t i = 0; i < COUNT(good); i++) {
		assert_int_equal(http_address_parse(&address, good[i], &err), 0);
		assert_true(address.length > 0 && str_equal(str_of(address.text), good[i]));
	}
	for (size_t i = 0; i < COUNT(bad); i++)
		assert_true(http_address_parse(&address, bad[i], &err) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_and_the_end_in_one_event),
		cmocka_unit_test(what_was_said_before_a_failed_write_can_be_read),
		cmocka_unit_test(a_connection_is_taken_or_not),
		cmocka_unit_test(addresses_are_read),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
