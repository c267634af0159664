/* TLS between threads: loops that share one side, and programs that use OpenSSL as it comes. */
#include "tls_test.h"

#include <openssl/err.h>
#include <pthread.h>
#include <sys/ioctl.h>

enum { THREADS = 4, CONNECTIONS = 12 };

static struct pair root, site, web;
static struct http_tls *server_tls, *client_tls, *front_tls;

static struct http_tls *make_tls(bool server, bool peers)
{
	const struct pair *shows = peers ? &site : &web;
	struct http_tls_options options = {.server = server,
	                                   .peers = peers,
	                                   .certificate_pem = str_of(shows->certificate_pem),
	                                   .key_pem = str_of(shows->key_pem),
	                                   .roots_pem = str_of(root.certificate_pem),
	                                   .verify = peers ? HTTP_TLS_VERIFY_ALWAYS : HTTP_TLS_VERIFY_NONE};
	struct http_tls *tls;
	assert_int_equal(http_tls_new(&tls, &options, NULL), 0);
	return tls;
}

static int set_up(void **state)
{
	(void)state;
	pair_root(&root, "root");
	pair_issue(&site, &root, &(struct issue){.names = "URI:cheops://site/A"});
	pair_issue(&web, &root, &(struct issue){.names = "DNS:web.example"});
	server_tls = make_tls(true, true);
	client_tls = make_tls(false, true);
	front_tls = make_tls(true, false);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	http_tls_drop(server_tls);
	http_tls_drop(client_tls);
	http_tls_drop(front_tls);
	pair_free(&root);
	pair_free(&site);
	pair_free(&web);
	return 0;
}

/* ---- Several loops ---------------------------------------------------------------------------------------------- */

struct worker {
	struct http_source watcher; /* first */
	struct http_loop *loop;
	struct http_timer bound;
	struct end ends[2 * CONNECTIONS];
	bool good;
};

static bool is_through(const struct end *end)
{
	return end->last == HTTP_IO_END && end->received == 1000 && !end->wrong;
}

static void look(struct http_source *source, uint32_t events)
{
	(void)events;
	struct worker *worker = (struct worker *)source;
	worker->good = true;
	for (size_t i = 0; i < COUNT(worker->ends); i++)
		worker->good &= is_through(&worker->ends[i]);
	if (worker->good)
		http_loop_stop(worker->loop);
	else
		http_loop_again(worker->loop, source);
}

static void give_up(struct http_timer *timer)
{
	http_loop_stop(((struct worker *)((char *)timer - offsetof(struct worker, bound)))->loop);
}

static void *work(void *context)
{
	struct worker *worker = context;
	for (size_t i = 0; i < CONNECTIONS; i++) {
		int fds[2];
		tcp_pair(fds);
		for (size_t n = 0; n < 2; n++) {
			struct end *end = &worker->ends[2 * i + n];
			*end = (struct end){.conn.changed = end_changed, .to_send = 1000, .end_after = true};
			http_conn_init(&end->conn, worker->loop, fds[n], NULL);
			if (n == 0)
				http_conn_tls_connect(&end->conn, client_tls, NULL);
			else
				http_conn_tls_accept(&end->conn, server_tls);
		}
	}
	worker->watcher = (struct http_source){.ready = look};
	worker->bound.fire = give_up;
	http_timer_set(worker->loop, &worker->bound, 60000);
	http_loop_again(worker->loop, &worker->watcher);
	http_loop_run(worker->loop);
	for (size_t i = 0; i < COUNT(worker->ends); i++)
		http_conn_close(&worker->ends[i].conn);
	http_timer_clear(worker->loop, &worker->bound);
	http_loop_free(worker->loop);
	return NULL;
}

static void loops_share_one_side(void **state)
{
	(void)state;
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	for (size_t i = 0; i < THREADS; i++) {
		assert_int_equal(http_loop_new(&workers[i].loop, NULL), 0);
		assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
	}
	for (size_t i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_true(workers[i].good);
	}
}

/* ---- OpenSSL as it comes ----------------------------------------------------------------------------------------- */

/* A client in another thread that reads and writes as other programs do. */
struct other {
	int fd;
	int version;          /* the highest that it speaks */
	const char *protocol; /* that it offers, as ALPN has it; NULL: none */
	bool new_keys;        /* asks for new keys in the middle */
	bool connected;
	size_t echoed;
};

static void talk(struct other *other, SSL *ssl)
{
	char bytes[1000], back[1000];
	for (size_t round = 0; round < 200; round++) {
		memset(bytes, (int)('a' + round % 26), sizeof(bytes));
		if (other->new_keys && round % 10 == 5)
			SSL_key_update(ssl, SSL_KEY_UPDATE_REQUESTED);
		if (SSL_write(ssl, bytes, sizeof(bytes)) != sizeof(bytes))
			return;
		for (int got = 0, part; got < (int)sizeof(back); got += part)
			if ((part = SSL_read(ssl, back + got, (int)sizeof(back) - got)) <= 0)
				return;
		if (memcmp(bytes, back, sizeof(bytes)) == 0)
			other->echoed += sizeof(bytes);
	}
	SSL_shutdown(ssl);
}

static void *run_other(void *context)
{
	struct other *other = context;
	SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_max_proto_version(ctx, other->version);
	SSL_CTX_set_security_level(ctx, 0); /* so that old versions are tried at all */
	if (other->protocol)
		SSL_CTX_set_alpn_protos(ctx, (const unsigned char *)other->protocol, (unsigned)strlen(other->protocol));
	SSL *ssl = SSL_new(ctx);
	SSL_set_fd(ssl, other->fd);
	other->connected = SSL_connect(ssl) == 1;
	if (other->connected)
		talk(other, ssl);
	SSL_free(ssl);
	SSL_CTX_free(ctx);
	ERR_clear_error();
	return NULL;
}

static bool echo_over;

/* Sends back what comes, through its own buffer. */
static void echo(struct http_conn *conn)
{
	for (;;) {
		while (conn->in.start < conn->in.end) {
			struct iovec piece = {conn->in.at + conn->in.start, conn->in.end - conn->in.start};
			size_t written;
			enum http_io io = http_conn_write(conn, &piece, 1, &written);
			conn->in.start += (uint32_t)written;
			if (io != HTTP_IO_SOME) {
				echo_over |= io == HTTP_IO_FAILED;
				return;
			}
		}
		conn->in.start = conn->in.end = 0;
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return;
		if (io != HTTP_IO_SOME) {
			echo_over = true;
			return;
		}
	}
}

static bool is_over(void *context)
{
	(void)context;
	return echo_over;
}

/* Returns what the server has to say of it. */
static char *serve(struct other *other, struct http_tls *tls)
{
	int fds[2];
	pthread_t thread;
	struct http_conn conn = {.changed = echo};
	tcp_pair(fds);
	ioctl(fds[0], FIONBIO, &(int){0});
	other->fd = fds[0];
	echo_over = false;
	assert_int_equal(http_loop_new(&test_loop, NULL), 0);
	assert_int_equal(http_conn_init(&conn, test_loop, fds[1], NULL), 0);
	http_conn_tls_accept(&conn, tls);
	assert_int_equal(pthread_create(&thread, NULL, run_other, other), 0);
	run_until(is_over, NULL);
	pthread_join(thread, NULL);
	char *text = strdup(http_conn_error_text(&conn));
	http_conn_close(&conn);
	http_loop_free(test_loop);
	close(fds[0]);
	return text;
}

static void others_are_understood(void **state)
{
	(void)state;
	static const struct other others[] = {
		{.version = TLS1_3_VERSION},
		{.version = TLS1_2_VERSION},
		{.version = TLS1_3_VERSION, .protocol = "\x02h2\x08http/1.1"},
		{.version = TLS1_2_VERSION, .protocol = "\x08http/1.1"},
		{.version = TLS1_3_VERSION, .new_keys = true},
	};
	for (size_t i = 0; i < COUNT(others); i++) {
		struct other other = others[i];
		free(serve(&other, front_tls));
		assert_true(other.connected);
		assert_int_equal(other.echoed, 200000);
	}
}

static void others_are_refused(void **state)
{
	(void)state;
	static const struct {
		struct other other;
		bool peers;
		const char *text;
	} others[] = {
		{{.version = TLS1_1_VERSION}, false, "no version of TLS that is accepted"},
		{{.version = TLS1_2_VERSION}, true, "no version of TLS that is accepted"},
		{{.version = TLS1_3_VERSION}, true, "showed no certificate"},
		{{.version = TLS1_3_VERSION, .protocol = "\x02h2"}, false, "no application protocol"},
	};
	for (size_t i = 0; i < COUNT(others); i++) {
		struct other other = others[i].other;
		char *text = serve(&other, others[i].peers ? server_tls : front_tls);
		if (!strstr(text, others[i].text))
			print_error("\"%s\" has no \"%s\"\n", text, others[i].text);
		assert_non_null(strstr(text, others[i].text));
		assert_int_equal(other.echoed, 0);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_share_one_side),
		cmocka_unit_test(others_are_understood),
		cmocka_unit_test(others_are_refused),
	};
	return cmocka_run_group_tests(tests, set_up, tear_down);
}
