/* HTTP/1.1 over TCP: event loops, messages, connections, and the pools of connections to servers.
 *
 * One loop per thread; everything of a loop is touched by its thread only, except http_loop_post(). Sockets are
 * registered once, edge-triggered, for both directions: what can be read or written is remembered in flags, and each
 * event runs whoever owns the connection until nothing more can be done. Time is read once per round of the loop.
 */
#ifndef HTTP_HTTP_H
#define HTTP_HTTP_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"
#include "site/site.h"

#include <sys/socket.h>
#include <sys/uio.h>

/* ---- Loops and timers ------------------------------------------------------------------------------------------- */

struct http_loop;

/* Something with a descriptor in a loop. `ready` gets epoll's event bits. */
struct http_source {
	int fd; /* -1 once closed */
	void (*ready)(struct http_source *source, uint32_t events);
	struct http_source *next_dead, *next_again;
	bool again;                                  /* to be run in the next round */
	void (*release)(struct http_source *source); /* frees it, after the round in which it was closed */
};

/* Fires once, at or soon after its deadline (a tick is 10 ms). Moving a deadline later costs one store. */
struct http_timer {
	uint64_t deadline_ms; /* 0: not set */
	void (*fire)(struct http_timer *timer);
	struct http_timer *previous, *next; /* in a slot of the wheel */
};

struct http_task {
	void (*run)(struct http_task *task);
	struct http_task *next;
};

int http_loop_new(struct http_loop **loop, struct err *err);
void http_loop_free(struct http_loop *loop);

/* After the last round, by whoever owned it: runs the tasks that were posted and not run. */
void http_loop_finish(struct http_loop *loop);

/* Runs until http_loop_stop(), which any thread may call; it may run again. */
void http_loop_run(struct http_loop *loop);
void http_loop_stop(struct http_loop *loop);

/* The one call for other threads: the task runs in the loop's thread. Tasks run in the order in which they were posted. */
void http_loop_post(struct http_loop *loop, struct http_task *task);

/* Monotonic time of this round. */
uint64_t http_loop_now_us(const struct http_loop *loop);
uint64_t http_loop_now_ms(const struct http_loop *loop);

int http_loop_add(struct http_loop *loop, struct http_source *source, uint32_t events, struct err *err);
/* Other events than it was added with; 0: none for now. */
void http_loop_watch(struct http_loop *loop, struct http_source *source, uint32_t events);
/* Its `ready` runs once more in the next round, without an event: for who stops with work left, so that others get on. */
void http_loop_again(struct http_loop *loop, struct http_source *source);
/* Closes the descriptor now, and releases the source at the end of the round. */
void http_loop_close(struct http_loop *loop, struct http_source *source);

void http_timer_set(struct http_loop *loop, struct http_timer *timer, uint64_t delay_ms);
void http_timer_clear(struct http_loop *loop, struct http_timer *timer);

/* ---- Buffers ---------------------------------------------------------------------------------------------------- */

/* A piece of memory that bytes are read into. It belongs to a loop's free lists; a connection has one only while it has
 * something in it. Places in it are kept as offsets, because it moves when it grows. */
struct http_buffer {
	char *at;
	uint32_t size;
	uint32_t start; /* first byte not yet consumed */
	uint32_t end;   /* behind the last byte read */
};

void http_buffer_take(struct http_loop *loop, struct http_buffer *buffer, uint32_t size);
void http_buffer_give(struct http_loop *loop, struct http_buffer *buffer);
/* Twice the size, same content. */
void http_buffer_grow(struct http_loop *loop, struct http_buffer *buffer);

/* ---- Messages --------------------------------------------------------------------------------------------------- */

/* Fields that the proxy looks at. All others are HTTP_FIELD_OTHER. */
enum http_field_id {
	HTTP_FIELD_OTHER,
	HTTP_FIELD_CONNECTION,
	HTTP_FIELD_KEEP_ALIVE,
	HTTP_FIELD_PROXY_CONNECTION,
	HTTP_FIELD_TE,
	HTTP_FIELD_TRANSFER_ENCODING,
	HTTP_FIELD_UPGRADE,
	HTTP_FIELD_CONTENT_LENGTH,
	HTTP_FIELD_HOST,
	HTTP_FIELD_EXPECT,
	HTTP_FIELD_VIA,
	HTTP_FIELD_MAX_FORWARDS,
	HTTP_FIELD_FORWARDED,
	HTTP_FIELD_X_FORWARDED_FOR,
	HTTP_FIELD_X_FORWARDED_HOST,
	HTTP_FIELD_X_FORWARDED_PROTO,
	HTTP_FIELD_SCOPE,
	HTTP_FIELD_X_SCOPE,
	HTTP_FIELD_BAGGAGE,
	HTTP_FIELD_TRACEPARENT,
	HTTP_FIELD_CHEOPS_HOP,
	HTTP_FIELD_CHEOPS_EXPLAIN,
	HTTP_FIELD_CHEOPS_OUTCOME,
	HTTP_FIELD_COUNT,
};

/* Offsets into the buffer that holds the head. */
struct http_field {
	uint32_t name;
	uint32_t value;
	uint32_t value_length;
	uint16_t name_length;
	uint8_t id;
	bool dropped; /* not to be passed on */
};

enum http_framing {
	HTTP_BODY_NONE,
	HTTP_BODY_LENGTH,
	HTTP_BODY_CHUNKED,
	HTTP_BODY_UNTIL_CLOSE, /* responses only */
};

/* What can be wrong with a message, for counters and for the answer. */
enum http_bad {
	HTTP_OK,
	HTTP_BAD_SYNTAX,        /* 400 */
	HTTP_BAD_FRAMING,       /* 400: lengths that contradict each other */
	HTTP_BAD_HOST,          /* 400 */
	HTTP_BAD_TARGET,        /* 400 */
	HTTP_BAD_TARGET_LENGTH, /* 414 */
	HTTP_BAD_FIELDS_SIZE,   /* 431 */
	HTTP_BAD_VERSION,       /* 505 */
	HTTP_BAD_METHOD,        /* 501 */
	HTTP_BAD_CODING,        /* 501: a transfer coding other than chunked */
	HTTP_BAD_EXPECTATION,   /* 417 */
};

struct http_head {
	const char *base; /* of the buffer; set by http_parser_feed() */
	uint8_t method;   /* llhttp's number */
	uint8_t minor;    /* HTTP/1.minor */
	uint16_t status;
	enum http_framing framing;
	uint64_t length; /* HTTP_BODY_LENGTH */
	bool keep_alive; /* the sender lets the connection live on */
	bool upgrade;    /* it asks for, or (101) agrees to, another protocol */
	bool expects_continue;
	uint32_t present; /* bit (1 << id) of each known field */
	uint32_t target, target_length;
	uint32_t reason, reason_length;
	uint32_t bytes; /* of the whole head, with the empty line */
	struct http_field *fields;
	uint32_t fields_count;
};

struct http_limits {
	uint32_t head_bytes;
	uint32_t fields;
	uint32_t target_bytes;
};

struct http_parser;

/* Events of http_parser_feed(), in the order in which they come. */
enum http_progress {
	HTTP_PROGRESS_MORE,   /* all bytes taken, the message is not complete */
	HTTP_PROGRESS_HEAD,   /* the head is complete; told once. Feed again to go on with the body */
	HTTP_PROGRESS_DONE,   /* the message is complete; what is left in the buffer belongs to the next one */
	HTTP_PROGRESS_BROKEN, /* see http_parser_bad() */
};

struct http_parser *http_parser_new(bool request, const struct http_limits *limits);
void http_parser_free(struct http_parser *parser);
/* For the next message. A parser of responses has to know the method that they answer (for HEAD and CONNECT). */
void http_parser_start(struct http_parser *parser, uint8_t request_method);

/* Parses what is in the buffer beyond what it has seen. While the head is incomplete the buffer must keep it whole.
 * Afterwards body bytes are compacted: they stand at [*body, *body + *body_length) in the buffer, without chunk framing,
 * and the buffer can be cleared once they were consumed. */
enum http_progress http_parser_feed(struct http_parser *parser, struct http_buffer *buffer, uint32_t *body,
                                    uint32_t *body_length);

/* The peer closed the connection: is the message complete now? */
enum http_progress http_parser_finish(struct http_parser *parser);

struct http_head *http_parser_head(struct http_parser *parser);
enum http_bad http_parser_bad(const struct http_parser *parser, const char **reason);

/* Trailer fields of a chunked body, as they are sent on: "name: value\r\n" each. */
struct str http_parser_trailers(const struct http_parser *parser);

static inline struct str http_field_name(const struct http_head *head, const struct http_field *field)
{
	return (struct str){head->base + field->name, field->name_length};
}

static inline struct str http_field_value(const struct http_head *head, const struct http_field *field)
{
	return (struct str){head->base + field->value, field->value_length};
}

static inline struct str http_target(const struct http_head *head)
{
	return (struct str){head->base + head->target, head->target_length};
}

static inline bool http_has(const struct http_head *head, enum http_field_id id)
{
	return head->present >> id & 1;
}

/* The first field of that id or name that is not dropped; NULL if there is none. */
struct http_field *http_find(const struct http_head *head, enum http_field_id id);
/* "Name: value\r\n" lines, which outlive it, as a head that has nothing else. Ends where a line is none. */
void http_read_fields(struct arena *arena, struct str lines, struct http_head *head);
struct http_field *http_find_named(const struct http_head *head, struct str name);

/* Writes all fields that are not dropped, a line each. */
void http_put_fields(struct buf *out, const struct http_head *head);

struct str http_method_name(uint8_t method);
bool http_method_is_safe(uint8_t method); /* GET, HEAD, OPTIONS, TRACE */
bool http_method_is_head(uint8_t method);
const char *http_reason(unsigned status);
unsigned http_bad_status(enum http_bad bad);

/* ---- Connections ------------------------------------------------------------------------------------------------ */

struct http_address {
	struct sockaddr_storage socket;
	socklen_t length;
	char text[64]; /* as configured: "127.0.0.1:80", "[::1]:80" */
};

/* Where a site's agent is met, as an address to connect to. */
void http_address_of_site(struct http_address *address, const struct site_address *site);
/* And back: false where it is neither IPv4 nor IPv6. */
bool http_address_to_site(const struct http_address *address, struct site_address *site);

/* "host:port"; names are looked up now. */
int http_address_parse(struct http_address *address, struct str text, struct err *err);

enum http_io {
	HTTP_IO_SOME,    /* something was moved */
	HTTP_IO_BLOCKED, /* nothing can be moved now; an event will come */
	HTTP_IO_END,     /* the peer sent its last byte; with TLS it said so, else it is HTTP_IO_FAILED */
	HTTP_IO_FAILED,  /* see conn->error */
};

/* A TCP connection. `changed` runs after `readable`, `writable` or `failed` were set by an event. */
struct http_conn {
	struct http_source source; /* first */
	struct http_loop *loop;
	bool connecting;
	bool readable;
	bool writable;
	bool ending;             /* an event told of the peer's end: there is no other, so it is read up to that end */
	bool ended;              /* the peer will send no more */
	bool hung;               /* an event told of a reset or of both directions being closed */
	bool failed;             /* reset, or cannot be reached: error says why */
	int error;               /* errno */
	struct http_secure *tls; /* NULL: plain */
	struct http_timer timer;
	struct http_buffer in;
	void (*changed)(struct http_conn *conn);
	void (*expired)(struct http_conn *conn);
	void *owner;
};

/* Takes over an accepted descriptor. */
int http_conn_init(struct http_conn *conn, struct http_loop *loop, int fd, struct err *err);
/* Starts to connect; `changed` runs once it is `writable` or `failed`. */
int http_conn_connect(struct http_conn *conn, struct http_loop *loop, const struct http_address *address,
                      struct err *err);
/* Closes it, gives its buffer back. The memory is the caller's, who may free it in source.release. */
void http_conn_close(struct http_conn *conn);
/* When it is closed the peer gets a reset instead of an orderly end: what it was sent is not complete. */
void http_conn_reset_on_close(struct http_conn *conn);
/* Sends the end, behind all that was written; what the peer sends can still be read. Where there is TLS this is what
 * proves to the peer that nothing was cut off: a mere close does not. */
void http_conn_end(struct http_conn *conn);

/* Reads once, behind what is in the buffer, which is taken where there is none. HTTP_IO_BLOCKED also when it is full. */
enum http_io http_conn_read(struct http_conn *conn);
/* What could not be written has to be offered again, more of it behind perhaps: with TLS a part may be under way already. */
enum http_io http_conn_write(struct http_conn *conn, struct iovec *pieces, int count, size_t *written);

/* ---- TLS -------------------------------------------------------------------------------------------------------- */

/* One side of TLS connections: certificate and key, whom it trusts. Made once, then shared by threads and counted. */
struct http_tls;

enum http_tls_verify {
	HTTP_TLS_VERIFY_NONE,     /* a server that asks for no certificate; a client may not do so */
	HTTP_TLS_VERIFY_IF_GIVEN, /* a server: a client without a certificate gets in, one with a bad certificate does not */
	HTTP_TLS_VERIFY_ALWAYS,
};

struct http_tls_options {
	bool server;
	bool peers;                 /* between agents: TLS 1.3 only, no resumption; certificates name sites, not hosts */
	struct str certificate_pem; /* with its chain behind it; "" for a client that shows none */
	struct str key_pem;
	struct str roots_pem; /* who is trusted; "" for a client: the roots of the system */
	/* A client between agents that knows its root by fingerprint only (SHA-256 of the DER), and so has no roots_pem: the
	 * server has to send that root along. NULL otherwise. */
	const unsigned char *root_sha256;
	enum http_tls_verify verify;
	/* What they are called in messages, a file's name perhaps; NULL: "the certificate", "the key", "the roots". */
	const char *certificate_name, *key_name, *roots_name;
};

int http_tls_new(struct http_tls **tls, const struct http_tls_options *options, struct err *err);
struct http_tls *http_tls_keep(struct http_tls *tls);
void http_tls_drop(struct http_tls *tls);

/* Right after http_conn_init() or http_conn_connect(). The connection counts as `connecting` until the handshake is done;
 * then `changed` runs as for a plain one. `name` is what a server is asked for (SNI) and has to prove; NULL between agents,
 * where the certificate is looked at afterwards.
 * A client is done before the server has looked at its certificate: a refusal is told by the first read. */
void http_conn_tls_accept(struct http_conn *conn, struct http_tls *tls);
void http_conn_tls_connect(struct http_conn *conn, struct http_tls *tls, const char *name);
bool http_conn_is_tls(const struct http_conn *conn);
/* Has the other machine taken the connection, though a handshake may still go on? Then *rtt_us is the round trip as the kernel
 * has measured it; 0: it has not. */
bool http_conn_is_taken(const struct http_conn *conn, uint64_t *rtt_us);
/* How long ago did the other machine acknowledge anything on it, the connection itself or what was sent? False: never. */
bool http_conn_heard(const struct http_conn *conn, uint64_t *ago_us);
/* Has the other machine acknowledged all that was sent? */
bool http_conn_is_delivered(const struct http_conn *conn);
/* The certificate that the other side proved to have (DER), once it is no longer connecting. False: none. */
bool http_conn_certificate(const struct http_conn *conn, struct buf *der);
/* What went wrong, for people: "the certificate of ... has expired", "the peer refused our certificate: unknown CA";
 * strerror() without TLS, and once it is closed. */
const char *http_conn_error_text(const struct http_conn *conn);

/* ---- Kept connections -------------------------------------------------------------------------------------------- */

/* What is known of a connection that serves again; zeroed while it is new. */
struct http_kept {
	uint64_t since_ms; /* idle since then */
	bool answered;     /* once at least */
	bool proven;       /* the server keeps it, or will say that it does not */
};

/* What is known of a server. */
struct http_habit {
	bool keeps; /* some connection served twice, and none was closed right after its first answer since */
};

/* It is idle from now on, after an answer or without having been used. `habit` NULL: it is not looked at. */
void http_kept_idle(struct http_kept *kept, struct http_habit *habit, bool answered, uint64_t now_ms);
/* The server closed it while it was idle. */
void http_kept_closed(const struct http_kept *kept, struct http_habit *habit, uint64_t now_ms);
/* May it be used for what must not be sent twice? */
bool http_kept_is_sure(const struct http_kept *kept, const struct http_habit *habit, uint64_t now_ms);
/* With so many idle ones to a server, none of them sure: is that enough to wait for proof? */
bool http_kept_are_enough(uint32_t idle);

/* ---- Calls ------------------------------------------------------------------------------------------------------- */

/* One request of our own and its whole answer: for commands, for the agent's control, and for what runs later than its user
 * waits; not for the data plane. */
struct http_call;
struct http_call_answer;

/* Connections that are kept for the next call to the same address with the same TLS, in one loop. */
struct http_pool;

struct http_pool *http_pool_new(struct http_loop *loop);
/* Closes those that are idle. No call with it is under way. */
void http_pool_free(struct http_pool *pool);

enum http_piece {
	HTTP_PIECE_TAKEN,
	HTTP_PIECE_FULL,    /* taken, and no more until http_call_go_on() */
	HTTP_PIECE_REFUSED, /* it is not what was asked for: the call has failed */
};

struct http_call_options {
	struct http_address address;
	struct http_tls *tls; /* NULL: in the clear */
	const char *tls_name; /* as in http_conn_tls_connect() */
	struct str host;      /* "": the address */
	const char *method;
	struct str target;
	struct str content_type; /* "" without a body */
	struct str fields;       /* complete lines, "Accept: text/plain\r\n", or "" */
	struct str body;
	int body_fd; /* with body_bytes: behind `body`, so many bytes of a file. It stays the caller's, open until the end */
	uint64_t body_bytes;    /* 0: no file */
	struct http_pool *pool; /* NULL: on a connection of its own */
	bool repeatable;        /* may be sent again where a kept connection turned out to be closed */
	uint64_t timeout_ms;    /* for all of it; where a file is sent, or the answer comes in pieces: without a byte */
	size_t answer_bytes;    /* the longest answer that is taken */
	/* Gets the body of a 2xx answer as it comes, instead of `done`; NULL: it is collected. */
	enum http_piece (*piece)(void *context, const struct http_head *head, struct str bytes);
	void (*done)(void *context, const struct http_call_answer *answer);
	/* After the handshake, before anything is sent: may the request go there? Returns 0, or the text is the error. */
	int (*check)(void *context, struct str certificate_der, struct err *err);
	void *context;
};

/* code 0 and what came; or a negative code and why. Valid during `done` only. */
struct http_call_answer {
	int code;
	struct err err;
	bool sent;                    /* something of the request may have reached the other side */
	const struct http_head *head; /* with code 0 */
	unsigned status;
	struct str content_type;
	struct str body;
};

/* Everything is copied. 0, and `done` runs exactly once, later; or a negative code, and it does not. */
int http_call_start(struct http_call **call, struct http_loop *loop, const struct http_call_options *options,
                    struct err *err);
/* There is room for more pieces. */
void http_call_go_on(struct http_call *call);
/* Ends one that is under way, without `done`. */
void http_call_cancel(struct http_call *call);
/* The same, waiting: runs a loop of its own until the answer is there, which the caller frees with buf_free(). */
int http_call_wait(const struct http_call_options *options, unsigned *status, struct buf *body, struct err *err);

/* ---- Listeners -------------------------------------------------------------------------------------------------- */

/* Accepts for one loop. Several listeners of several loops may share an address. */
struct http_listener {
	struct http_source source; /* first */
	struct http_loop *loop;
	void (*accepted)(struct http_listener *listener, int fd, const struct sockaddr_storage *from);
	void *owner;
	struct http_timer pause; /* after running out of descriptors */
};

/* A bound and listening descriptor; several may be opened for one address. */
int http_listen(const struct http_address *address, int *fd, struct err *err);
int http_listener_start(struct http_listener *listener, struct http_loop *loop, int fd, struct err *err);
void http_listener_stop(struct http_listener *listener);

#endif
