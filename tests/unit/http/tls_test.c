#include "tls_test.h"

#include <netinet/in.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <sys/ioctl.h>

/* ---- Certificates ----------------------------------------------------------------------------------------------- */

static char *to_pem(BIO *bio)
{
	char *at;
	long length = BIO_get_mem_data(bio, &at);
	char *text = calloc(1, (size_t)length + 1);
	memcpy(text, at, (size_t)length);
	BIO_free(bio);
	return text;
}

static void add_extension(X509 *certificate, int nid, const char *value)
{
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, NULL, nid, value);
	assert_non_null(extension);
	X509_add_ext(certificate, extension, -1);
	X509_EXTENSION_free(extension);
}

/* Signed by `root`, or by itself. */
static void sign(struct pair *pair, const struct pair *root, const char *name, const struct issue *issue)
{
	pair->key = EVP_EC_gen("P-256");
	X509 *certificate = pair->certificate = X509_new();
	X509_set_version(certificate, 2);
	static long serial = 1;
	ASN1_INTEGER_set(X509_get_serialNumber(certificate), __atomic_fetch_add(&serial, 1, __ATOMIC_RELAXED));
	bool times = issue && (issue->from_s || issue->to_s);
	X509_gmtime_adj(X509_getm_notBefore(certificate), times ? issue->from_s : -86400);
	X509_gmtime_adj(X509_getm_notAfter(certificate), times ? issue->to_s : 86400);
	X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_UTF8, (const unsigned char *)name, -1,
	                           -1, 0);
	X509_set_issuer_name(certificate, X509_get_subject_name(root ? root->certificate : certificate));
	X509_set_pubkey(certificate, pair->key);
	add_extension(certificate, NID_basic_constraints, root ? "critical,CA:FALSE" : "critical,CA:TRUE");
	add_extension(certificate, NID_key_usage, root ? "critical,digitalSignature" : "critical,keyCertSign");
	if (root)
		add_extension(certificate, NID_ext_key_usage, "serverAuth,clientAuth");
	if (issue && issue->names)
		add_extension(certificate, NID_subject_alt_name, issue->names);
	assert_true(X509_sign(certificate, root ? root->key : pair->key, EVP_sha256()) > 0);
	BIO *bio = BIO_new(BIO_s_mem());
	PEM_write_bio_X509(bio, certificate);
	pair->certificate_pem = to_pem(bio);
	bio = BIO_new(BIO_s_mem());
	PEM_write_bio_PrivateKey(bio, pair->key, NULL, NULL, 0, NULL, NULL);
	pair->key_pem = to_pem(bio);
}

void pair_root(struct pair *root, const char *name)
{
	sign(root, NULL, name, NULL);
}

void pair_issue(struct pair *pair, const struct pair *root, const struct issue *issue)
{
	sign(pair, root, "leaf", issue);
}

void pair_free(struct pair *pair)
{
	EVP_PKEY_free(pair->key);
	X509_free(pair->certificate);
	free(pair->certificate_pem);
	free(pair->key_pem);
	*pair = (struct pair){0};
}

/* ---- Ends ------------------------------------------------------------------------------------------------------- */

struct http_loop *test_loop;

static char pattern(size_t at)
{
	return (char)((at * 2654435761u) >> 13);
}

/* One write: three pieces of changing sizes, as a head, a chunk's line and a body might be. */
static enum http_io send_some(struct end *end)
{
	static _Thread_local char bytes[3][40000];
	static const size_t sizes[] = {1, 300, 16384, 7, 39999, 2, 5000, 20000};
	struct iovec pieces[3];
	size_t at = end->sent;
	int count = 0;
	for (; count < 3 && at < end->to_send; count++) {
		size_t size = sizes[(end->sent / 1000 + (size_t)count) % COUNT(sizes)];
		if (size > end->to_send - at)
			size = end->to_send - at;
		for (size_t i = 0; i < size; i++)
			bytes[count][i] = pattern(at + i);
		pieces[count] = (struct iovec){bytes[count], size};
		at += size;
	}
	size_t written;
	enum http_io io = http_conn_write(&end->conn, pieces, count, &written);
	end->sent += written;
	return io;
}

static void receive_some(struct end *end)
{
	struct http_conn *conn = &end->conn;
	for (int reads = 0; reads < 64; reads++) {
		conn->in.start = conn->in.end = 0;
		end->last = http_conn_read(conn);
		for (uint32_t i = 0; i < conn->in.end; i++)
			end->wrong |= conn->in.at[i] != pattern(end->received + i);
		end->received += conn->in.end;
		if (end->last != HTTP_IO_SOME)
			return;
	}
	http_loop_again(conn->loop, &conn->source);
}

void end_changed(struct http_conn *conn)
{
	struct end *end = (struct end *)conn;
	end->told = true;
	if (conn->connecting || conn->source.fd < 0)
		return;
	if (end->last == HTTP_IO_FAILED) /* told once */
		return;
	while (!conn->failed && end->sent < end->to_send && send_some(end) == HTTP_IO_SOME)
		;
	if (!conn->failed && end->sent == end->to_send && end->end_after && !end->ended) {
		end->ended = true;
		http_conn_end(conn);
	}
	receive_some(end);
}

void tcp_pair(int ends[2])
{
	struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t length = sizeof(address);
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, length), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&address, &length), 0);
	ends[0] = socket(AF_INET, SOCK_STREAM, 0);
	assert_int_equal(connect(ends[0], (struct sockaddr *)&address, length), 0);
	ends[1] = accept(listener, NULL, NULL);
	assert_true(ends[1] >= 0);
	close(listener);
	for (int i = 0; i < 2; i++)
		assert_int_equal(ioctl(ends[i], FIONBIO, &(int){1}), 0);
}

void narrow_pair(int ends[2], int buffer_bytes)
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
	for (int i = 0; i < 2; i++)
		setsockopt(ends[i], SOL_SOCKET, SO_SNDBUF, &buffer_bytes, sizeof(buffer_bytes));
}

struct waiter {
	struct http_source source; /* first: runs after each round */
	bool (*condition)(void *context);
	void *context;
	bool held;
};

static void look(struct http_source *source, uint32_t events)
{
	(void)events;
	struct waiter *waiter = (struct waiter *)source;
	waiter->held = waiter->condition(waiter->context);
	if (waiter->held)
		http_loop_stop(test_loop);
	else
		http_loop_again(test_loop, source);
}

static void give_up(struct http_timer *timer)
{
	(void)timer;
	http_loop_stop(test_loop);
}

void run_until(bool (*condition)(void *context), void *context)
{
	struct waiter waiter = {.source = {.fd = 0, .ready = look}, .condition = condition, .context = context};
	struct http_timer bound = {.fire = give_up};
	http_timer_set(test_loop, &bound, 30000);
	http_loop_again(test_loop, &waiter.source);
	http_loop_run(test_loop);
	http_timer_clear(test_loop, &bound);
	assert_true(waiter.held);
}
