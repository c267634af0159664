/* TLS on connections: who gets in, what is said when not, and that bytes and their end arrive as they were sent. */
#include "tls_test.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/err.h>
#include <sys/epoll.h>
#include <sys/socket.h>

static struct pair root, other_root, site_a, site_b, stranger, expired, early, web;

static int make_certificates(void **state)
{
	(void)state;
	pair_root(&root, "our root");
	pair_root(&other_root, "another root");
	pair_issue(&site_a, &root, &(struct issue){.names = "URI:cheops://site/A"});
	pair_issue(&site_b, &root, &(struct issue){.names = "URI:cheops://site/B"});
	pair_issue(&stranger, &other_root, &(struct issue){.names = "URI:cheops://site/A"});
	pair_issue(&expired, &root, &(struct issue){.names = "URI:cheops://site/old", .from_s = -7200, .to_s = -3600});
	pair_issue(&early, &root, &(struct issue){.names = "URI:cheops://site/new", .from_s = 3600, .to_s = 7200});
	pair_issue(&web, &root, &(struct issue){.names = "DNS:web.example,DNS:*.wild.example,IP:127.0.0.1,IP:::1"});
	return 0;
}

static int drop_certificates(void **state)
{
	(void)state;
	struct pair *all[] = {&root, &other_root, &site_a, &site_b, &stranger, &expired, &early, &web};
	for (size_t i = 0; i < COUNT(all); i++)
		pair_free(all[i]);
	return 0;
}

/* ---- One connection --------------------------------------------------------------------------------------------- */

/* All that a test says about its two ends. */
struct story {
	struct end client, server;
	const struct pair *client_shows, *server_shows, *client_trusts, *server_trusts; /* NULL: nothing, nobody */
	enum http_tls_verify verify;                                                    /* of the server */
	bool front;                                                                     /* not between agents */
	const char *name;                                                               /* that the client asks for */
	int buffer_bytes;
	int (*wire)(struct story *story, int ends[2]); /* puts something between them */
};

static struct http_tls *make_tls(const struct story *story, bool server)
{
	const struct pair *shows = server ? story->server_shows : story->client_shows;
	const struct pair *trusts = server ? story->server_trusts : story->client_trusts;
	struct http_tls_options options = {
		.server = server,
		.peers = !story->front,
		.certificate_pem = shows ? str_of(shows->certificate_pem) : STR(""),
		.key_pem = shows ? str_of(shows->key_pem) : STR(""),
		.roots_pem = trusts ? str_of(trusts->certificate_pem) : STR(""),
		.verify = server ? story->verify : HTTP_TLS_VERIFY_ALWAYS,
	};
	struct http_tls *tls;
	struct err err = {0};
	int code = http_tls_new(&tls, &options, &err);
	assert_string_equal(err.text, "");
	assert_int_equal(code, 0);
	return tls;
}

static void start(struct story *story)
{
	int ends[2];
	assert_int_equal(http_loop_new(&test_loop, NULL), 0);
	if (story->buffer_bytes)
		narrow_pair(ends, story->buffer_bytes);
	else
		tcp_pair(ends);
	if (story->wire)
		story->wire(story, ends);
	struct http_tls *client = make_tls(story, false), *server = make_tls(story, true);
	story->client.conn.changed = story->server.conn.changed = end_changed;
	assert_int_equal(http_conn_init(&story->client.conn, test_loop, ends[0], NULL), 0);
	assert_int_equal(http_conn_init(&story->server.conn, test_loop, ends[1], NULL), 0);
	http_conn_tls_connect(&story->client.conn, client, story->name);
	http_conn_tls_accept(&story->server.conn, server);
	http_tls_drop(client); /* connections keep what they need */
	http_tls_drop(server);
}

static void finish(struct story *story)
{
	http_conn_close(&story->client.conn);
	http_conn_close(&story->server.conn);
	http_loop_free(test_loop);
}

static bool is_settled(const struct end *end)
{
	return end->told && (end->last == HTTP_IO_END || end->last == HTTP_IO_FAILED);
}

static bool both_settled(void *context)
{
	const struct story *story = context;
	return is_settled(&story->client) && is_settled(&story->server);
}

/* Both send, both end, both have read what the other sent. */
static void expect_exchange(struct story *story)
{
	story->client.end_after = story->server.end_after = true;
	start(story);
	run_until(both_settled, story);
	assert_string_equal(story->client.conn.tls ? http_conn_error_text(&story->client.conn) : "", strerror(0));
	assert_string_equal(http_conn_error_text(&story->server.conn), strerror(0));
	assert_int_equal(story->client.last, HTTP_IO_END);
	assert_int_equal(story->server.last, HTTP_IO_END);
	assert_int_equal(story->client.received, story->server.to_send);
	assert_int_equal(story->server.received, story->client.to_send);
	assert_false(story->client.wrong || story->server.wrong);
}

static void expect_certificate(const struct http_conn *conn, const struct pair *pair)
{
	struct buf der = {0};
	unsigned char *wanted = NULL;
	assert_int_equal(http_conn_certificate(conn, &der), pair != NULL);
	if (pair) {
		int length = i2d_X509(pair->certificate, &wanted);
		assert_int_equal(der.length, length);
		assert_memory_equal(der.at, wanted, der.length);
		OPENSSL_free(wanted);
	}
	buf_free(&der);
}

static const struct story peers = {.client_shows = &site_a,
                                   .client_trusts = &root,
                                   .server_shows = &site_b,
                                   .server_trusts = &root,
                                   .verify = HTTP_TLS_VERIFY_ALWAYS};

/* ---- Bytes ------------------------------------------------------------------------------------------------------ */

static void agents_know_each_other(void **state)
{
	(void)state;
	struct story story = peers;
	story.client.to_send = 100;
	story.server.to_send = 200;
	expect_exchange(&story);
	assert_true(http_conn_is_tls(&story.client.conn) && http_conn_is_tls(&story.server.conn));
	expect_certificate(&story.client.conn, &site_b);
	expect_certificate(&story.server.conn, &site_a);
	finish(&story);
	assert_false(http_conn_is_tls(&story.client.conn));
}

static void a_front_serves_clients_without_a_certificate(void **state)
{
	(void)state;
	struct story story = {.front = true, .client_trusts = &root, .server_shows = &web, .name = "web.example"};
	story.client.to_send = 1000;
	story.server.to_send = 100000;
	expect_exchange(&story);
	expect_certificate(&story.server.conn, NULL);
	finish(&story);
}

/* Moves one byte at a time, one per round of the loop. */
struct relay {
	struct http_source source; /* first */
	int to;
};

static struct relay relays[2];

static void relay_ready(struct http_source *source, uint32_t events)
{
	(void)events;
	struct relay *relay = (struct relay *)source;
	char byte;
	ssize_t got = recv(source->fd, &byte, 1, 0);
	if (got == 1)
		assert_int_equal(send(relay->to, &byte, 1, MSG_NOSIGNAL), 1);
	if (got == 0) {
		shutdown(relay->to, SHUT_WR);
		http_loop_watch(test_loop, source, 0);
	}
}

static int put_relays(struct story *story, int ends[2])
{
	(void)story;
	int far[2];
	tcp_pair(far);
	relays[0] = (struct relay){.source = {.fd = ends[1], .ready = relay_ready}, .to = far[0]};
	relays[1] = (struct relay){.source = {.fd = far[0], .ready = relay_ready}, .to = ends[1]};
	for (int i = 0; i < 2; i++) {
		setsockopt(relays[i].source.fd, IPPROTO_TCP, 1 /* TCP_NODELAY */, &(int){1}, sizeof(int));
		assert_int_equal(http_loop_add(test_loop, &relays[i].source, EPOLLIN, NULL), 0);
	}
	ends[1] = far[1];
	return 0;
}

static void it_works_byte_by_byte(void **state)
{
	(void)state;
	struct story story = peers;
	story.client.to_send = 700;
	story.server.to_send = 900;
	story.wire = put_relays;
	expect_exchange(&story);
	finish(&story);
	close(relays[0].source.fd);
	close(relays[1].source.fd);
}

static void large_transfers_both_ways(void **state)
{
	(void)state;
	static const int buffers[] = {0, 4096, 32768};
	for (size_t i = 0; i < COUNT(buffers); i++) {
		struct story story = peers;
		story.client.to_send = story.server.to_send = 10 << 20;
		story.buffer_bytes = buffers[i];
		expect_exchange(&story);
		finish(&story);
	}
}

/* http_conn_end() while the socket is full: the end comes behind everything. */
static void the_end_waits_for_what_was_written(void **state)
{
	(void)state;
	for (size_t size = 1; size < 200000; size += 9973) {
		struct story story = peers;
		story.client.to_send = size;
		story.buffer_bytes = 2048;
		expect_exchange(&story);
		finish(&story);
	}
}

/* ---- The end ---------------------------------------------------------------------------------------------------- */

struct cut {
	struct story story;
	bool closed;
};

static bool server_closes_when_all_came(void *context)
{
	struct cut *cut = context;
	if (!cut->closed && cut->story.server.told && cut->story.server.sent == cut->story.server.to_send &&
	    cut->story.client.received == cut->story.server.to_send) {
		cut->closed = true;
		http_conn_close(&cut->story.server.conn);
	}
	return cut->closed && is_settled(&cut->story.client);
}

static void an_end_without_close_notify_is_a_failure(void **state)
{
	(void)state;
	struct cut cut = {.story = peers};
	cut.story.server.to_send = 5000;
	start(&cut.story);
	run_until(server_closes_when_all_came, &cut);
	assert_int_equal(cut.story.client.received, 5000);
	assert_int_equal(cut.story.client.last, HTTP_IO_FAILED);
	assert_non_null(strstr(http_conn_error_text(&cut.story.client.conn), "without close_notify"));
	/* Who has something to send must not wait for better times. */
	struct iovec piece = {(char[]){"x"}, 1};
	size_t written;
	assert_int_equal(http_conn_write(&cut.story.client.conn, &piece, 1, &written), HTTP_IO_FAILED);
	finish(&cut.story);
}

static bool client_read_the_end(void *context)
{
	return is_settled(&((struct story *)context)->client);
}

/* Each direction ends by itself: the client reads the end, and the server still gets what the client sends then. */
static bool half_closed(void *context)
{
	struct story *story = context;
	if (is_settled(&story->client) && story->client.to_send == 0) {
		story->client.to_send = 3000;
		story->client.end_after = true;
		http_loop_again(test_loop, &story->client.conn.source);
	}
	return is_settled(&story->server) && client_read_the_end(story);
}

static void one_direction_ends_before_the_other(void **state)
{
	(void)state;
	struct story story = peers;
	story.server.to_send = 3000;
	story.server.end_after = true;
	start(&story);
	run_until(half_closed, &story);
	assert_int_equal(story.client.last, HTTP_IO_END);
	assert_int_equal(story.server.last, HTTP_IO_END);
	assert_int_equal(story.server.received, 3000);
	finish(&story);
}

struct idle {
	struct story story;
	int rounds;
};

/* Some rounds after the handshake all that the server had to say of itself has come. */
static bool idle_for_a_while(void *context)
{
	struct idle *idle = context;
	bool done = idle->story.client.told && idle->story.server.told;
	assert_false(idle->story.client.conn.readable && done);
	idle->rounds += done;
	return idle->rounds > 1000;
}

/* The pool closes idle links that have something to read: session tickets must not look like that. */
static void tickets_do_not_make_a_connection_readable(void **state)
{
	(void)state;
	struct idle idle = {.story = {.front = true, .client_trusts = &root, .server_shows = &web, .name = "web.example"}};
	start(&idle.story);
	run_until(idle_for_a_while, &idle);
	assert_false(idle.story.client.conn.failed);
	finish(&idle.story);
}

/* A message of known length was read as a whole: nothing more is there, and the flag says so without another read. */
static bool short_read_empties(void *context)
{
	struct story *story = context;
	if (story->client.received < 500)
		return false;
	assert_int_equal(story->client.last, HTTP_IO_BLOCKED);
	assert_false(story->client.conn.readable);
	return true;
}

static void a_read_that_took_all_lowers_the_flag(void **state)
{
	(void)state;
	struct story story = {.front = true, .client_trusts = &root, .server_shows = &web, .name = "web.example"};
	story.server.to_send = 500;
	start(&story);
	run_until(short_read_empties, &story);
	finish(&story);
}

/* ---- Who gets in ------------------------------------------------------------------------------------------------ */

struct refusal {
	const struct pair *client_shows, *server_shows;
	enum http_tls_verify verify;
	const char *client_says, *server_says; /* NULL: all is well */
};

static void expect_text(const struct end *end, const char *wanted)
{
	const char *text = http_conn_error_text(&end->conn);
	if (!strstr(text, wanted))
		print_error("\"%s\" has no \"%s\"\n", text, wanted);
	assert_non_null(strstr(text, wanted));
	assert_int_equal(end->last, HTTP_IO_FAILED);
	assert_true(end->conn.failed && !end->conn.connecting);
}

static void expect_story(struct story *story, const char *client_says, const char *server_says)
{
	if (!client_says && !server_says) {
		expect_exchange(story);
		finish(story);
		return;
	}
	start(story);
	run_until(both_settled, story);
	expect_text(&story->client, client_says);
	expect_text(&story->server, server_says);
	finish(story);
}

static void only_good_certificates_get_in(void **state)
{
	(void)state;
	static const struct refusal refusals[] = {
		{&site_a, &site_b, HTTP_TLS_VERIFY_ALWAYS, NULL, NULL},
		{&site_a, &site_b, HTTP_TLS_VERIFY_IF_GIVEN, NULL, NULL},
		{NULL, &site_b, HTTP_TLS_VERIFY_IF_GIVEN, NULL, NULL},
		{NULL, &site_b, HTTP_TLS_VERIFY_NONE, NULL, NULL},
		{NULL, &site_b, HTTP_TLS_VERIFY_ALWAYS, "requires a certificate", "showed no certificate"},
		{&stranger, &site_b, HTTP_TLS_VERIFY_ALWAYS, "refused our certificate: unknown CA",
	     "certificate of cheops://site/A is not trusted: unable to get local issuer"},
		{&stranger, &site_b, HTTP_TLS_VERIFY_IF_GIVEN, "refused our certificate: unknown CA", "is not trusted"},
		{&expired, &site_b, HTTP_TLS_VERIFY_ALWAYS, "refused our certificate: certificate expired",
	     "certificate of cheops://site/old has expired: it was valid until 20"},
		{&early, &site_b, HTTP_TLS_VERIFY_ALWAYS, "refused our certificate: bad certificate", "is not yet valid"},
		{&site_a, &stranger, HTTP_TLS_VERIFY_ALWAYS, "is not trusted", "refused our certificate: unknown CA"},
		{&site_a, &expired, HTTP_TLS_VERIFY_ALWAYS, "site/old has expired", "our certificate: certificate expired"},
	};
	for (size_t i = 0; i < COUNT(refusals); i++) {
		struct story story = peers;
		story.client_shows = refusals[i].client_shows;
		story.server_shows = refusals[i].server_shows;
		story.verify = refusals[i].verify;
		story.client.to_send = 100; /* it does not know yet that it is refused */
		expect_story(&story, refusals[i].client_says, refusals[i].server_says);
	}
}

static void the_name_has_to_be_proved(void **state)
{
	(void)state;
	static const struct {
		const char *name, *client_says;
	} names[] = {
		{"web.example", NULL},
		{"WEB.example", NULL},
		{"a.wild.example", NULL},
		{"127.0.0.1", NULL},
		{"::1", NULL},
		{"web.example.org", "web.example, *.wild.example, 127.0.0.1, ::1 is not for `web.example.org`"},
		{"a.b.wild.example", "is not for `a.b.wild.example`"},
		{"127.0.0.2", "is not for `127.0.0.2`"},
		{"our root", "is not for"},
	};
	for (size_t i = 0; i < COUNT(names); i++) {
		struct story story = {.front = true, .client_trusts = &root, .server_shows = &web, .name = names[i].name};
		expect_story(&story, names[i].client_says, names[i].client_says ? "refused our certificate" : NULL);
	}
}

/* A joining site knows its root by fingerprint only. */
static void a_root_can_be_known_by_its_fingerprint(void **state)
{
	(void)state;
	for (int good = 0; good < 2; good++) {
		int ends[2];
		unsigned char digest[32];
		struct buf chain = {0};
		struct story story = peers;
		struct http_tls *client, *server;
		buf_printf(&chain, "%s%s", site_b.certificate_pem, root.certificate_pem);
		X509_digest(good ? root.certificate : other_root.certificate, EVP_sha256(), digest, NULL);
		struct http_tls_options trusting = {.peers = true, .root_sha256 = digest, .verify = HTTP_TLS_VERIFY_ALWAYS};
		struct http_tls_options showing = {.server = true,
		                                   .peers = true,
		                                   .certificate_pem = buf_str(&chain),
		                                   .key_pem = str_of(site_b.key_pem),
		                                   .roots_pem = str_of(root.certificate_pem),
		                                   .verify = HTTP_TLS_VERIFY_IF_GIVEN};
		assert_int_equal(http_tls_new(&client, &trusting, NULL), 0);
		assert_int_equal(http_tls_new(&server, &showing, NULL), 0);
		assert_int_equal(http_loop_new(&test_loop, NULL), 0);
		tcp_pair(ends);
		story.client.conn.changed = story.server.conn.changed = end_changed;
		story.client.end_after = story.server.end_after = true;
		http_conn_init(&story.client.conn, test_loop, ends[0], NULL);
		http_conn_init(&story.server.conn, test_loop, ends[1], NULL);
		http_conn_tls_connect(&story.client.conn, client, NULL);
		http_conn_tls_accept(&story.server.conn, server);
		run_until(both_settled, &story);
		assert_int_equal(story.client.last, good ? HTTP_IO_END : HTTP_IO_FAILED);
		http_tls_drop(client);
		http_tls_drop(server);
		buf_free(&chain);
		finish(&story);
	}
}

/* ---- What is not TLS -------------------------------------------------------------------------------------------- */

/* One end with TLS, and a socket that says something else. */
static void expect_from_raw(bool server, struct str says, bool closes, const char *text)
{
	struct story story = peers;
	struct http_tls *tls = make_tls(&story, server);
	struct end *end = &story.client;
	int ends[2];
	assert_int_equal(http_loop_new(&test_loop, NULL), 0);
	tcp_pair(ends);
	end->conn.changed = end_changed;
	assert_int_equal(http_conn_init(&end->conn, test_loop, ends[0], NULL), 0);
	if (server)
		http_conn_tls_accept(&end->conn, tls);
	else
		http_conn_tls_connect(&end->conn, tls, NULL);
	http_tls_drop(tls);
	assert_int_equal(send(ends[1], says.at, says.length, 0), says.length);
	if (closes)
		shutdown(ends[1], SHUT_WR);
	run_until(client_read_the_end, &story);
	expect_text(end, text);
	http_conn_close(&end->conn);
	http_loop_free(test_loop);
	close(ends[1]);
}

static void what_is_not_tls_is_told_as_such(void **state)
{
	(void)state;
	expect_from_raw(true, STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), false, "speaks plain HTTP");
	expect_from_raw(true, STR("PUT /x HTTP/1.1\r\n"), true, "plain HTTP");
	expect_from_raw(true, STR("SSH-2.0-OpenSSH_9.2\r\n"), false, "does not speak TLS");
	expect_from_raw(true, STR(""), true, "closed the connection during the TLS handshake");
	expect_from_raw(true, STR("\x16\x03\x01\x02\x00\x01"), true, "closed the connection during the TLS handshake");
	expect_from_raw(false, STR("HTTP/1.1 400 Bad Request\r\n\r\n"), false, "is the port one for plain HTTP?");
	expect_from_raw(false, STR("SSH-2.0-OpenSSH_9.2\r\n"), true, "does not speak TLS");
	expect_from_raw(false, STR(""), true, "closed the connection during the TLS handshake");
}

static uint64_t random_state;

static unsigned next_random(void)
{
	random_state = random_state * UINT64_C(6364136223846793005) + 1442695040888963407;
	return (unsigned)(random_state >> 33);
}

/* Records that look like a handshake, filled with anything: refused, whatever they are. */
static void garbage_is_refused(void **state)
{
	(void)state;
	for (unsigned seed = 0; seed < 300; seed++) {
		char bytes[600];
		random_state = seed;
		size_t length = 6 + next_random() % (sizeof(bytes) - 6);
		for (size_t i = 0; i < length; i++)
			bytes[i] = (char)next_random();
		if (seed % 3) { /* a record header, and a ClientHello's or ServerHello's */
			memcpy(bytes, "\x16\x03\x03", 3);
			bytes[3] = (char)((length - 5) >> 8);
			bytes[4] = (char)(length - 5);
			bytes[5] = seed % 3 == 1 ? 1 : 2;
		}
		expect_from_raw(seed % 2, str_make(bytes, length), true, "");
	}
}

/* A good conversation of which one byte on the wire is another. */
struct flip {
	struct relay relay; /* first */
	size_t passed, at;
};

static struct flip flips[2];

static void flip_ready(struct http_source *source, uint32_t events)
{
	(void)events;
	struct flip *flip = (struct flip *)source;
	char bytes[4096];
	ssize_t got = recv(source->fd, bytes, sizeof(bytes), 0);
	if (got > 0) {
		if (flip->at >= flip->passed && flip->at < flip->passed + (size_t)got)
			bytes[flip->at - flip->passed] ^= 0x20;
		flip->passed += (size_t)got;
		send(flip->relay.to, bytes, (size_t)got, MSG_NOSIGNAL);
	} else {
		shutdown(flip->relay.to, SHUT_WR);
		http_loop_watch(test_loop, source, 0);
	}
}

static size_t flip_at;

static int put_flips(struct story *story, int ends[2])
{
	(void)story;
	int far[2];
	tcp_pair(far);
	flips[0] = (struct flip){{.source = {.fd = ends[1], .ready = flip_ready}, .to = far[0]}, 0, flip_at};
	flips[1] = (struct flip){{.source = {.fd = far[0], .ready = flip_ready}, .to = ends[1]}, 0, SIZE_MAX};
	for (int i = 0; i < 2; i++)
		assert_int_equal(http_loop_add(test_loop, &flips[i].relay.source, EPOLLIN, NULL), 0);
	ends[1] = far[1];
	return 0;
}

static void a_byte_changed_on_the_way_is_noticed(void **state)
{
	(void)state;
	for (flip_at = 0; flip_at < 3000; flip_at += 61) {
		struct story story = peers;
		story.client.to_send = 4000;
		story.wire = put_flips;
		start(&story);
		run_until(both_settled, &story);
		assert_true(story.server.last == HTTP_IO_FAILED && !story.server.wrong);
		finish(&story);
		close(flips[0].relay.source.fd);
		close(flips[1].relay.source.fd);
	}
}

/* ---- Sides that cannot be made ---------------------------------------------------------------------------------- */

static void expect_no_tls(const struct http_tls_options *options, const char *wanted)
{
	struct http_tls *tls = NULL;
	struct err err = {0};
	assert_int_equal(http_tls_new(&tls, options, &err), ERR_INVALID);
	if (!strstr(err.text, wanted))
		print_error("\"%s\" has no \"%s\"\n", err.text, wanted);
	assert_non_null(strstr(err.text, wanted));
	assert_null(tls);
	assert_int_equal(ERR_peek_error(), 0);
}

static void bad_pem_is_refused_and_named(void **state)
{
	(void)state;
	const struct http_tls_options good = {.server = true,
	                                      .certificate_pem = str_of(web.certificate_pem),
	                                      .key_pem = str_of(web.key_pem),
	                                      .roots_pem = str_of(root.certificate_pem),
	                                      .verify = HTTP_TLS_VERIFY_ALWAYS};
	struct http_tls_options bad = good;
	bad.certificate_pem = STR("");
	expect_no_tls(&bad, "the certificate: there is no certificate in it");
	bad.certificate_pem = STR("nonsense\n");
	bad.certificate_name = "front.pem";
	expect_no_tls(&bad, "front.pem: there is no certificate in it");
	bad.certificate_pem = STR("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
	expect_no_tls(&bad, "front.pem: certificate 1 is not well-formed");
	bad.certificate_pem = STR("-----BEGIN CERTIFICATE-----\nAAAA\n");
	expect_no_tls(&bad, "front.pem: certificate 1 is not well-formed");
	bad = good;
	bad.key_pem = str_of(site_a.key_pem);
	expect_no_tls(&bad, "the key: the key does not belong to the certificate");
	bad.key_pem = str_of(web.certificate_pem);
	bad.key_name = "front.key";
	expect_no_tls(&bad, "front.key: there is no private key in it");
	bad.key_pem =
		STR("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMIHsMFcGCSqGSIb3DQEFDTBK\n-----END ENCRYPTED PRIVATE KEY-----\n");
	expect_no_tls(&bad, "front.key: ");
	bad = good;
	bad.roots_pem = str_of(root.key_pem);
	expect_no_tls(&bad, "the roots: there is no certificate in it");
	bad.roots_pem = STR("");
	expect_no_tls(&bad, "the roots: there is no certificate in it");
}

/* Each prefix of a good file is refused or accepted, and never more than that. */
static void cut_pem_is_refused(void **state)
{
	(void)state;
	size_t length = strlen(web.certificate_pem), key_length = strlen(web.key_pem);
	struct http_tls_options options = {
		.server = true, .certificate_pem = str_of(web.certificate_pem), .key_pem = str_of(web.key_pem)};
	struct http_tls *tls;
	for (size_t i = 0; i < length - 1; i++) {
		options.certificate_pem = str_make(web.certificate_pem, i);
		assert_int_equal(http_tls_new(&tls, &options, NULL), ERR_INVALID);
	}
	options.certificate_pem = str_of(web.certificate_pem);
	for (size_t i = 0; i < key_length - 1; i++) {
		options.key_pem = str_make(web.key_pem, i);
		assert_int_equal(http_tls_new(&tls, &options, NULL), ERR_INVALID);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agents_know_each_other),
		cmocka_unit_test(a_front_serves_clients_without_a_certificate),
		cmocka_unit_test(it_works_byte_by_byte),
		cmocka_unit_test(large_transfers_both_ways),
		cmocka_unit_test(the_end_waits_for_what_was_written),
		cmocka_unit_test(an_end_without_close_notify_is_a_failure),
		cmocka_unit_test(one_direction_ends_before_the_other),
		cmocka_unit_test(tickets_do_not_make_a_connection_readable),
		cmocka_unit_test(a_read_that_took_all_lowers_the_flag),
		cmocka_unit_test(only_good_certificates_get_in),
		cmocka_unit_test(the_name_has_to_be_proved),
		cmocka_unit_test(a_root_can_be_known_by_its_fingerprint),
		cmocka_unit_test(what_is_not_tls_is_told_as_such),
		cmocka_unit_test(garbage_is_refused),
		cmocka_unit_test(a_byte_changed_on_the_way_is_noticed),
		cmocka_unit_test(bad_pem_is_refused_and_named),
		cmocka_unit_test(cut_pem_is_refused),
	};
	return cmocka_run_group_tests(tests, make_certificates, drop_certificates);
}
