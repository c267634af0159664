/* TLS on a connection.
 *
 * The happy path:
 *   1. the TCP connection is there; the handshake goes to and fro, driven by events, while `connecting` stays up
 *   2. the owner is told, reads and writes
 *   3. http_conn_end() sends close_notify and closes our direction; the peer's close_notify is the end that is read
 *
 * Between OpenSSL and the socket stands a BIO of our own. It knows what epoll told, so that an empty socket is not asked; and
 * it takes a whole record at once, keeping what the socket does not take (`out`). So OpenSSL never stops in the middle of a
 * record, and a write means the same as without TLS: bytes count as written once the system has all of their record.
 *
 * `readable` means that there are bytes for the owner, or the end. What else may come in (tickets, new keys) is taken care of
 * when it comes: an idle connection does not look as if it had something to say. OpenSSL may hold bytes that no event tells
 * of: the flag stays up until it says that it wants more.
 *
 * What goes wrong, and what is done about it:
 *   no handshake in time        the owner's timer
 *   a handshake that fails      `failed`, and a text that says which side disliked what
 *   a certificate that is bad   noted when OpenSSL finds it, with the name and the dates
 *   an end without close_notify HTTP_IO_FAILED: what came may have been cut off by anybody
 *   the socket takes no more    noted, but what the peer has said can still be read: it may be why
 */
#include "http/http_int.h"

#include "base/check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

enum { RECORD_BYTES = 16384, NAMES_SHOWN = 4 };

enum reading {
	READING_OPEN,
	READING_ENDED,  /* the peer said that this is the end */
	READING_FAILED, /* no byte can be trusted any more */
};

struct http_secure {
	SSL *ssl;
	struct http_tls *tls;
	bool connected;       /* TCP */
	bool socket_readable; /* as far as events and reads told */
	bool socket_ended;    /* it gave its last byte */
	bool end_wanted;      /* our direction is to be closed once `out` is empty */
	enum reading reading;
	int write_error; /* errno of the socket; nothing is sent any more */
	int read_error;
	struct http_buffer out;            /* of records, what the socket has not taken */
	size_t owed;                       /* bytes of the owner in `out`, not yet told as written */
	char text[LIMIT_ERROR_TEXT_BYTES]; /* what failed; "" */
};

/* ---- The socket, as OpenSSL sees it ----------------------------------------------------------------------------- */

/* Sends; keeps nothing. Returns what was taken, or -1 when the socket is broken. */
static ssize_t send_some(struct http_conn *conn, const char *bytes, size_t length)
{
	for (;;) {
		ssize_t put = send(conn->source.fd, bytes, length, MSG_NOSIGNAL);
		if (put >= 0)
			return put;
		if (errno == EAGAIN)
			return 0;
		if (errno != EINTR) {
			conn->tls->write_error = errno;
			return -1;
		}
	}
}

/* Never fails: where the socket is broken, the bytes are thrown away and the error is told by http_secure_write(). */
static int bio_write(BIO *bio, const char *bytes, int length)
{
	struct http_conn *conn = BIO_get_data(bio);
	struct http_secure *secure = conn->tls;
	BIO_clear_retry_flags(bio);
	size_t put = 0;
	if (!secure->out.at && !secure->write_error) {
		ssize_t sent = send_some(conn, bytes, (size_t)length);
		put = sent > 0 ? (size_t)sent : 0;
	}
	size_t left = (size_t)length - put;
	if (secure->write_error || left == 0)
		return length;
	if (secure->out.end + left > LIMIT_HTTP_BUFFER_BYTES) { /* a handshake with long chains */
		BIO_set_retry_write(bio);
		return -1;
	}
	if (!secure->out.at)
		http_buffer_take(conn->loop, &secure->out, RECORD_BYTES);
	while (secure->out.size < secure->out.end + left)
		http_buffer_grow(conn->loop, &secure->out);
	memcpy(secure->out.at + secure->out.end, bytes + put, left);
	secure->out.end += (uint32_t)left;
	conn->writable = false;
	return length;
}

static int bio_read(BIO *bio, char *bytes, int size)
{
	struct http_conn *conn = BIO_get_data(bio);
	struct http_secure *secure = conn->tls;
	BIO_clear_retry_flags(bio);
	ssize_t got;
	do
		got = secure->socket_readable ? recv(conn->source.fd, bytes, (size_t)size, 0) : -1;
	while (secure->socket_readable && got < 0 && errno == EINTR);
	if (got > 0) {
		if (got < size && !conn->ending)
			secure->socket_readable = false;
		return (int)got;
	}
	if (got == 0) {
		secure->socket_ended = true;
		return 0;
	}
	if (secure->socket_readable && errno != EAGAIN) {
		secure->read_error = errno;
		return -1;
	}
	secure->socket_readable = false;
	BIO_set_retry_read(bio);
	return -1;
}

static long bio_control(BIO *bio, int command, long number, void *pointer)
{
	(void)number;
	(void)pointer;
	const struct http_conn *conn = BIO_get_data(bio);
	if (command == BIO_CTRL_EOF)
		return conn->tls->socket_ended;
	return command == BIO_CTRL_FLUSH;
}

static BIO_METHOD *bio_method;

static void make_bio_method(void)
{
	bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "connection of a loop");
	CHECK(bio_method);
	BIO_meth_set_write(bio_method, bio_write);
	BIO_meth_set_read(bio_method, bio_read);
	BIO_meth_set_ctrl(bio_method, bio_control);
}

/* ---- What went wrong -------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 3))) static void say(struct http_secure *secure, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(secure->text, sizeof(secure->text), format, arguments);
	va_end(arguments);
}

const char *http_conn_error_text(const struct http_conn *conn)
{
	return conn->tls && conn->tls->text[0] ? conn->tls->text : strerror(conn->error);
}

/* Alerts of RFC 8446, 6.2 that are about the certificate that we showed. */
static const char *certificate_alert(int alert)
{
	switch (alert) {
	case SSL_AD_BAD_CERTIFICATE: return "bad certificate";
	case SSL_AD_UNSUPPORTED_CERTIFICATE: return "unsupported certificate";
	case SSL_AD_CERTIFICATE_REVOKED: return "certificate revoked";
	case SSL_AD_CERTIFICATE_EXPIRED: return "certificate expired";
	case SSL_AD_CERTIFICATE_UNKNOWN: return "certificate unknown";
	case SSL_AD_UNKNOWN_CA: return "unknown CA";
	case SSL_AD_ACCESS_DENIED: return "access denied";
	default: return NULL;
	}
}

static void say_alert(struct http_secure *secure, int alert)
{
	const char *refused = certificate_alert(alert);
	if (refused)
		say(secure, "the peer refused our certificate: %s", refused);
	else if (alert == SSL_AD_CERTIFICATE_REQUIRED)
		say(secure, "the peer requires a certificate, and we showed none");
	else if (alert == SSL_AD_NO_APPLICATION_PROTOCOL)
		say(secure, "the peer does not speak HTTP/1.1 here");
	else
		say(secure, "the peer ended the TLS connection: %s", SSL_alert_desc_string_long(alert));
}

static void say_reason(struct http_conn *conn, unsigned long error)
{
	struct http_secure *secure = conn->tls;
	int reason = ERR_GET_REASON(error);
	const char *text = ERR_reason_error_string(error);
	bool server = SSL_is_server(secure->ssl);
	if (reason >= SSL_AD_REASON_OFFSET && reason < SSL_AD_REASON_OFFSET + 256)
		say_alert(secure, reason - SSL_AD_REASON_OFFSET);
	else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING && conn->connecting)
		say(secure, "the peer closed the connection during the TLS handshake");
	else if (reason == SSL_R_UNEXPECTED_EOF_WHILE_READING)
		say(secure, "the peer closed the connection without close_notify: what it sent may be cut short");
	else if (reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST)
		say(secure, "the peer speaks plain HTTP, but this is for TLS");
	else if (reason == SSL_R_WRONG_VERSION_NUMBER || (server && reason == SSL_R_UNKNOWN_PROTOCOL))
		say(secure, "the peer does not speak TLS%s", server ? "" : " there; is the port one for plain HTTP?");
	else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
		say(secure, "the peer showed no certificate, and one is required");
	else if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
		say(secure, "the peer speaks no version of TLS that is accepted here");
	else
		say(secure, "TLS: %s", text ? text : "unknown reason");
}

/* No byte can be read any more. What the peer is still sending is thrown away, so that closing does not take along the alert
 * that tells it why. */
static void fail(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	unsigned long error = ERR_peek_error();
	if (!secure->text[0] && error)
		say_reason(conn, error);
	else if (!secure->text[0])
		say(secure, "%s", secure->read_error ? strerror(secure->read_error) : "the connection was closed");
	ERR_clear_error();
	conn->error = secure->read_error ? secure->read_error : EPROTO;
	secure->reading = READING_FAILED;
	conn->failed = true;
	conn->connecting = conn->writable = false;
	conn->readable = conn->ending = true;
	recv(conn->source.fd, NULL, LIMIT_HTTP_BUFFER_BYTES, MSG_TRUNC | MSG_DONTWAIT);
	shutdown(conn->source.fd, SHUT_WR);
}

/* ---- Certificates that are not good ------------------------------------------------------------------------------ */

/* Names come from the peer: nothing in them may reach a terminal as it is. */
static void put_clean(struct buf *out, const char *text, size_t length)
{
	for (size_t i = 0; i < length && i < LIMIT_NAME_SHOWN_BYTES; i++)
		buf_put(out, text[i] >= 0x20 && text[i] < 0x7f ? str_make(&text[i], 1) : STR("?"));
	if (length > LIMIT_NAME_SHOWN_BYTES)
		buf_put(out, STR("..."));
}

static void put_name(struct buf *out, const GENERAL_NAME *name)
{
	int kind;
	const void *value = GENERAL_NAME_get0_value(name, &kind);
	char text[INET6_ADDRSTRLEN];
	int length = kind == GEN_IPADD ? ASN1_STRING_length(value) : 0;
	if (kind == GEN_DNS || kind == GEN_URI) {
		put_clean(out, (const char *)ASN1_STRING_get0_data(value), (size_t)ASN1_STRING_length(value));
	} else if (length == 4 || length == 16) {
		inet_ntop(length == 4 ? AF_INET : AF_INET6, ASN1_STRING_get0_data(value), text, sizeof(text));
		buf_put(out, str_of(text));
	} else {
		buf_put_char(out, '?'); /* of another kind */
	}
}

/* Whom it is for: its alternative names, or its subject. */
static void put_names(struct buf *out, const X509 *certificate)
{
	GENERAL_NAMES *names = X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
	for (int i = 0; i < sk_GENERAL_NAME_num(names) && i < NAMES_SHOWN; i++) {
		if (i > 0)
			buf_put(out, STR(", "));
		put_name(out, sk_GENERAL_NAME_value(names, i));
	}
	if (sk_GENERAL_NAME_num(names) > NAMES_SHOWN)
		buf_put(out, STR(", ..."));
	bool found = sk_GENERAL_NAME_num(names) > 0;
	GENERAL_NAMES_free(names);
	if (found)
		return;
	char subject[256];
	X509_NAME_oneline(X509_get_subject_name(certificate), subject, sizeof(subject));
	put_clean(out, subject, strlen(subject));
}

static void put_time(struct buf *out, const ASN1_TIME *time)
{
	struct tm parts;
	char text[32] = "?";
	if (ASN1_TIME_to_tm(time, &parts) == 1)
		strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
	buf_put(out, str_of(text));
}

static void put_mismatch(struct buf *out, const SSL *ssl)
{
	X509_VERIFY_PARAM *wanted = SSL_get0_param((SSL *)ssl);
	const char *host = X509_VERIFY_PARAM_get0_host(wanted, 0);
	char *ip = host ? NULL : X509_VERIFY_PARAM_get1_ip_asc(wanted);
	buf_printf(out, " is not for `%s`", host ? host : ip ? ip : "?");
	OPENSSL_free(ip);
}

static void put_reason(struct buf *out, int reason, const X509 *certificate, const SSL *ssl)
{
	switch (reason) {
	case X509_V_ERR_CERT_HAS_EXPIRED:
		buf_put(out, STR(" has expired: it was valid until "));
		put_time(out, X509_get0_notAfter(certificate));
		break;
	case X509_V_ERR_CERT_NOT_YET_VALID:
		buf_put(out, STR(" is not yet valid: it will be from "));
		put_time(out, X509_get0_notBefore(certificate));
		break;
	case X509_V_ERR_HOSTNAME_MISMATCH:
	case X509_V_ERR_IP_ADDRESS_MISMATCH: put_mismatch(out, ssl); break;
	default: buf_printf(out, " is not trusted: %s", X509_verify_cert_error_string(reason)); break;
	}
}

int http_secure_verified(int good, X509_STORE_CTX *store)
{
	SSL *ssl = X509_STORE_CTX_get_ex_data(store, SSL_get_ex_data_X509_STORE_CTX_idx());
	struct http_conn *conn = SSL_get_app_data(ssl);
	if (good || conn->tls->text[0])
		return good;
	struct buf text = {0};
	const X509 *certificate = X509_STORE_CTX_get_current_cert(store);
	buf_put(&text, STR("the certificate of "));
	if (certificate)
		put_names(&text, certificate);
	else
		buf_put(&text, STR("the peer"));
	put_reason(&text, X509_STORE_CTX_get_error(store), certificate, ssl);
	say(conn->tls, "%s", buf_c(&text));
	buf_free(&text);
	return 0;
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

/* Sends what waits. */
static void flush_out(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	while (secure->out.start < secure->out.end && !secure->write_error) {
		ssize_t put = send_some(conn, secure->out.at + secure->out.start, secure->out.end - secure->out.start);
		if (put == 0) {
			conn->writable = false;
			return;
		}
		secure->out.start += put > 0 ? (uint32_t)put : 0;
	}
	http_buffer_give(conn->loop, &secure->out);
	if (secure->end_wanted)
		shutdown(conn->source.fd, SHUT_WR);
}

/* Are there bytes for the owner, or the end? Takes care of all else that came. */
static void look_for_bytes(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	char byte;
	ERR_clear_error();
	int got = SSL_peek(secure->ssl, &byte, 1);
	int kind = got > 0 ? SSL_ERROR_NONE : SSL_get_error(secure->ssl, got);
	if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
		return;
	conn->readable = true;
	if (kind == SSL_ERROR_ZERO_RETURN) {
		secure->reading = READING_ENDED;
		conn->ending = true;
	} else if (kind != SSL_ERROR_NONE) {
		fail(conn);
	}
}

/* True: it is over, one way or the other. */
static bool shake_hands(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	ERR_clear_error();
	int result = SSL_do_handshake(secure->ssl);
	if (result != 1) {
		int kind = SSL_get_error(secure->ssl, result);
		if (kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE)
			return false;
		fail(conn);
		return true;
	}
	conn->connecting = false;
	conn->writable = !secure->out.at;
	look_for_bytes(conn);
	return true;
}

/* True: there is a TCP connection. */
static bool check_connected(struct http_conn *conn, uint32_t events)
{
	struct http_secure *secure = conn->tls;
	if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP)))
		return false;
	socklen_t length = sizeof(conn->error);
	getsockopt(conn->source.fd, SOL_SOCKET, SO_ERROR, &conn->error, &length);
	secure->connected = conn->error == 0;
	conn->failed = !secure->connected;
	conn->connecting = secure->connected;
	return secure->connected;
}

bool http_secure_ready(struct http_conn *conn, uint32_t events)
{
	struct http_secure *secure = conn->tls;
	if (conn->connecting && !secure->connected && !check_connected(conn, events))
		return conn->failed;
	if (events & (EPOLLERR | EPOLLHUP))
		conn->hung = true;
	if (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP))
		conn->ending = true;
	if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
		secure->socket_readable = true;
	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP) && secure->out.at)
		flush_out(conn);
	if (secure->reading == READING_FAILED)
		return true;
	if (conn->connecting)
		return shake_hands(conn);
	if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP) && !secure->out.at)
		conn->writable = true;
	if (!conn->readable && secure->reading == READING_OPEN)
		look_for_bytes(conn);
	return true;
}

/* ---- Reading and writing ---------------------------------------------------------------------------------------- */

/* Is anything left to look at, in OpenSSL or in the socket? */
static bool may_have_more(const struct http_secure *secure)
{
	return secure->socket_readable || SSL_has_pending(secure->ssl);
}

static enum http_io tell_end(struct http_conn *conn)
{
	if (conn->tls->reading == READING_ENDED) {
		conn->ended = true;
		return HTTP_IO_END;
	}
	conn->readable = false;
	return HTTP_IO_FAILED;
}

/* Fills the buffer, as far as there is something: a record holds 16 KiB at the most. */
static void fill_buffer(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	int got, kind;
	do {
		ERR_clear_error();
		got = SSL_read(secure->ssl, conn->in.at + conn->in.end, (int)(conn->in.size - conn->in.end));
		conn->in.end += got > 0 ? (uint32_t)got : 0;
		conn->readable = may_have_more(secure);
	} while (got > 0 && conn->in.end < conn->in.size && conn->readable);
	if (got > 0)
		return;
	kind = SSL_get_error(secure->ssl, got);
	conn->readable = kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE;
	if (kind == SSL_ERROR_ZERO_RETURN)
		secure->reading = READING_ENDED;
	else if (conn->readable)
		fail(conn);
}

enum http_io http_secure_read(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	if (secure->reading != READING_OPEN)
		return tell_end(conn);
	if (conn->connecting) {
		conn->readable = false;
		return HTTP_IO_BLOCKED;
	}
	if (!may_have_more(secure)) /* the owner raised `readable`: what has come since the last event is wanted, too */
		secure->socket_readable = true;
	uint32_t before = conn->in.end;
	fill_buffer(conn);
	if (conn->in.end > before)
		return HTTP_IO_SOME;
	return secure->reading == READING_OPEN ? HTTP_IO_BLOCKED : tell_end(conn);
}

/* Encrypts the next record's worth of the pieces, from the byte `from` on. Small pieces share a record, so that a head and
 * its body cost one; a large one is taken where it lies. Returns how many bytes. */
static size_t write_record(struct http_conn *conn, const struct iovec *pieces, int count, size_t from)
{
	while (from >= pieces->iov_len) {
		from -= pieces->iov_len;
		pieces++;
		count--;
	}
	const char *bytes = (const char *)pieces->iov_base + from;
	size_t length = pieces->iov_len - from;
	struct http_buffer scratch = {0};
	if (length >= RECORD_BYTES || count == 1) {
		length = length < RECORD_BYTES ? length : RECORD_BYTES;
	} else {
		http_buffer_take(conn->loop, &scratch, RECORD_BYTES);
		length = 0;
		for (int i = 0; i < count && length < RECORD_BYTES; i++, from = 0) {
			size_t part = pieces[i].iov_len - from;
			part = part < RECORD_BYTES - length ? part : RECORD_BYTES - length;
			memcpy(scratch.at + length, (const char *)pieces[i].iov_base + from, part);
			length += part;
		}
		bytes = scratch.at;
	}
	ERR_clear_error();
	int put = SSL_write(conn->tls->ssl, bytes, (int)length);
	http_buffer_give(conn->loop, &scratch);
	return put > 0 ? length : 0;
}

static enum http_io write_failed(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	conn->error = secure->write_error ? secure->write_error : EPROTO;
	conn->failed = true;
	conn->writable = false;
	conn->readable = conn->ending = secure->socket_readable = true; /* the peer may have said why before it closed */
	return HTTP_IO_FAILED;
}

enum http_io http_secure_write(struct http_conn *conn, const struct iovec *pieces, int count, size_t *written)
{
	struct http_secure *secure = conn->tls;
	size_t total = 0;
	for (int i = 0; i < count; i++)
		total += pieces[i].iov_len;
	if (secure->write_error)
		return write_failed(conn);
	CHECK(!secure->out.at && secure->owed <= total);
	*written = secure->owed;
	secure->owed = 0;
	while (*written < total) {
		size_t put = write_record(conn, pieces, count, *written);
		if (put == 0 || secure->write_error)
			return write_failed(conn);
		if (secure->out.at) {
			secure->owed = put;
			return *written ? HTTP_IO_SOME : HTTP_IO_BLOCKED;
		}
		*written += put;
	}
	return HTTP_IO_SOME;
}

/* ---- Life ------------------------------------------------------------------------------------------------------- */

static struct http_secure *secure_new(struct http_conn *conn, struct http_tls *tls)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_bio_method);
	CHECK(!conn->tls && conn->source.fd >= 0);
	struct http_secure *secure = calloc(1, sizeof(*secure));
	BIO *bio = BIO_new(bio_method);
	CHECK(secure && bio);
	BIO_set_data(bio, conn);
	BIO_set_init(bio, 1);
	secure->tls = http_tls_keep(tls);
	secure->ssl = http_tls_session(tls);
	SSL_set_bio(secure->ssl, bio, bio);
	SSL_set_app_data(secure->ssl, conn);
	conn->tls = secure;
	conn->connecting = true;
	conn->readable = conn->writable = false;
	return secure;
}

void http_conn_tls_accept(struct http_conn *conn, struct http_tls *tls)
{
	struct http_secure *secure = secure_new(conn, tls);
	secure->connected = true;
	SSL_set_accept_state(secure->ssl);
}

/* An address is proved by itself, and is not asked for: SNI is for names (RFC 6066, 3). */
static bool set_name(SSL *ssl, const char *name)
{
	unsigned char address[16];
	if (inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1)
		return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), name) == 1;
	SSL_set_hostflags(ssl, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
	return SSL_set1_host(ssl, name) == 1 && SSL_set_tlsext_host_name(ssl, name) == 1;
}

void http_conn_tls_connect(struct http_conn *conn, struct http_tls *tls, const char *name)
{
	CHECK(name || http_tls_is_peers(tls));
	struct http_secure *secure = secure_new(conn, tls);
	SSL_set_connect_state(secure->ssl);
	bool named = !name || set_name(secure->ssl, name);
	CHECK(named); /* the configuration has checked it */
}

bool http_conn_is_tls(const struct http_conn *conn)
{
	return conn->tls != NULL;
}

bool http_conn_certificate(const struct http_conn *conn, struct buf *der)
{
	X509 *certificate = conn->tls && !conn->connecting ? SSL_get0_peer_certificate(conn->tls->ssl) : NULL;
	unsigned char *bytes = NULL;
	int length = certificate ? i2d_X509(certificate, &bytes) : 0;
	if (length <= 0)
		return false;
	buf_put(der, str_make((const char *)bytes, (size_t)length));
	OPENSSL_free(bytes);
	return true;
}

void http_secure_end(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	if (!conn->connecting && secure->reading != READING_FAILED) {
		ERR_clear_error();
		SSL_shutdown(secure->ssl);
		ERR_clear_error();
	}
	conn->writable = false;
	if (secure->out.at)
		secure->end_wanted = true;
	else
		shutdown(conn->source.fd, SHUT_WR);
}

void http_secure_free(struct http_conn *conn)
{
	struct http_secure *secure = conn->tls;
	SSL_free(secure->ssl);
	http_tls_drop(secure->tls);
	http_buffer_give(conn->loop, &secure->out);
	free(secure);
	conn->tls = NULL;
	ERR_clear_error();
}
