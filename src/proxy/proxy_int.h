/* Inside the proxy room: connections to clients and servers, and the exchange of one request and one response. */
#ifndef PROXY_PROXY_INT_H
#define PROXY_PROXY_INT_H

#include "proxy/proxy.h"

#include "base/arena.h"

enum {
	PROXY_LISTENERS_MOST = 2 + LIMIT_AGENT_SERVICES,
	PROXY_HOPS_MOST = 8,
	PROXY_IDLE_LINKS_MOST = 256, /* idle connections kept per server */
	PROXY_IDLE_LINK_MS = 30000,  /* for so long */
	PROXY_REUSE_UNSAFE_MS =
		1000,                /* a request that must not run twice gets a connection used this recently, or a new one */
	PROXY_PROBE_MS = 500,    /* between attempts to reach an instance that failed */
	PROXY_LINGER_MS = 2000,  /* for a client to read an answer that came before its request was over */
	PROXY_PUMP_READS = 16,   /* of one connection, before others have their turn */
	PROXY_LINGER_READS = 16, /* of what it still sends, per event */
	PROXY_KEPT_EXCHANGES = 64,
};

/* ---- Servers ---------------------------------------------------------------------------------------------------- */

struct proxy_target;

/* A connection to a server: in use by an exchange, or idle in its target's list. */
struct proxy_link {
	struct http_conn conn; /* first */
	struct proxy_target *target;
	struct proxy_exchange *exchange; /* NULL: idle, or a probe */
	struct proxy_link *previous, *next;
	uint64_t idle_since_ms;
	bool reused;
	bool probe;
};

/* One instance of a service, or one peer. */
struct proxy_target {
	const struct http_address *address;
	struct proxy_state *state;
	struct proxy_link idle; /* head of a list, most recently used first */
	uint32_t idle_count;
	uint32_t active;
	bool down; /* it failed, and has not answered since */
	struct http_timer probe_timer;
	struct proxy_link *probing;
};

/* A service as this loop sees it. */
struct proxy_backend {
	const struct proxy_service *service;
	struct proxy_target *instances;
	uint32_t turn;
};

/* ---- What belongs to one configuration -------------------------------------------------------------------------- */

struct proxy_state {
	struct proxy *proxy;
	struct proxy_config *config;
	struct proxy_backend *backends; /* by service */
	struct proxy_target *peers;     /* by peer */
	uint32_t exchanges;             /* that use it */
	bool current;
	struct buf via;              /* "Via: 1.1 Site1\r\n" */
	struct str via_name;         /* the part that names this agent */
	struct buf metric;           /* this site as a name in Server-Timing */
	struct proxy_signer *signer; /* of hop headers */
	struct scope_cache *scopes;  /* plans depend on the view, so each configuration has its own */
	bool forwarding;             /* some service forwards an id, or a header with the scope in it */
};

enum proxy_front_kind { PROXY_FRONT_API, PROXY_FRONT_PEER, PROXY_FRONT_SERVICE };

struct proxy_front {
	struct http_listener listener; /* first */
	struct proxy *proxy;
	enum proxy_front_kind kind;
	uint32_t service;
	char address[64];
	bool wanted; /* by the configuration that is being applied */
};

struct proxy {
	struct http_loop *loop;
	struct proxy_shared *shared;
	struct proxy_state *state;
	struct proxy_front *fronts[PROXY_LISTENERS_MOST];
	uint32_t fronts_count;
	struct proxy_counters counters;
	uint64_t random_state;
	struct proxy_client *clients; /* all connections */
	uint32_t clients_count;
	uint32_t exchanges_count;    /* under way */
	struct proxy_exchange *kept; /* for reuse */
	uint32_t kept_count;
	bool stopping;
	void (*drained)(void *context);
	void *drained_context;
};

/* ---- Clients ---------------------------------------------------------------------------------------------------- */

struct proxy_client {
	struct http_conn conn; /* first */
	struct proxy *proxy;
	enum proxy_front_kind kind;      /* which front it came in by */
	uint32_t service;                /* of a service's front; SCOPE_NO_INDEX once that is gone */
	struct proxy_exchange *exchange; /* NULL between requests */
	bool lingering;                  /* answered for the last time; what it still sends is thrown away */
	bool shut;                       /* our side is closed */
	char address[48];                /* of the other end, as text */
	struct proxy_client *previous, *next;
};

/* ---- Exchanges -------------------------------------------------------------------------------------------------- */

/* One direction of a message on its way from one connection to another. Nothing is read while something is unsent, so a
 * direction holds at most one buffer. */
struct proxy_stream {
	struct http_conn *from;
	struct http_conn *to;
	struct http_parser *parser; /* NULL: bytes pass as they are */
	struct buf head;            /* goes out first; may grow until the body begins */
	size_t head_sent;
	char chunk_line[20];
	struct buf tail; /* goes out last */
	struct iovec pieces[8];
	int first, count; /* of pieces still to send */
	bool chunked;     /* on the way out */
	bool complete;    /* all of it was read, and is sent or in pieces */
	bool over;        /* in a tunnel: its end was passed on */
	bool large;       /* the last read filled the buffer */
	uint64_t sent_bytes;
};

enum proxy_pump {
	PROXY_PUMP_WAIT,        /* an event will tell */
	PROXY_PUMP_DONE,        /* read and sent to the end */
	PROXY_PUMP_FROM_FAILED, /* the source broke off, or sent something that is not HTTP */
	PROXY_PUMP_TO_FAILED,   /* the destination takes no more */
};

enum proxy_phase {
	PROXY_READING,    /* the head of the request is not complete */
	PROXY_CONNECTING, /* to where it is to run */
	PROXY_RUNNING,    /* the request goes there, the response comes back */
	PROXY_TUNNEL,     /* both ends speak another protocol */
	PROXY_PENDING,    /* the API will answer later */
	PROXY_ANSWERING,  /* an answer of our own is sent */
};

enum proxy_carrier {
	PROXY_CARRIER_NONE,
	PROXY_CARRIER_SCOPE,
	PROXY_CARRIER_X_SCOPE,
	PROXY_CARRIER_PATH,
	PROXY_CARRIER_BAGGAGE,
	PROXY_CARRIER_REMEMBERED, /* found by trace or request id */
	PROXY_CARRIER_APPENDED,
	PROXY_CARRIER_PEER, /* the agent that sent the request has evaluated it */
};

struct proxy_exchange {
	struct proxy *proxy;
	struct proxy_state *state;
	struct proxy_client *client; /* NULL: gone, while the API still has to answer */
	struct proxy_link *link;
	enum proxy_phase phase;
	struct http_parser *request_parser;
	struct http_parser *response_parser;
	struct proxy_stream request;
	struct proxy_stream response;
	bool response_head; /* told to the client, at least in pieces */
	bool request_over;  /* sent to the end */
	bool close_client;  /* after the response */
	bool deferred;      /* the API was called and has returned without an answer */
	bool outdated;      /* its parsers were made under the limits of an earlier configuration */
	uint32_t attempts;
	uint32_t hops;
	uint64_t started_us;
	/* the request */
	uint8_t method;
	uint8_t minor;
	bool wants_upgrade;
	bool has_body;
	struct str target; /* as it is sent on */
	const struct proxy_service *service;
	/* its scope */
	struct arena arena; /* of what follows, and of texts made for this request */
	enum proxy_carrier carrier;
	bool ambiguous;        /* its id stands for several scopes */
	struct str scope_text; /* as given */
	struct str scope;      /* canonical, with a service for each entry; "" without a scope */
	struct str baggage;    /* what is left of it */
	struct scope_lease *lease;
	uint64_t uncarried; /* services whose calls we may fail to recognise while this runs, as bits */
	/* where it runs */
	const struct proxy_peer *peer; /* NULL: here */
	struct proxy_target *target_server;
	struct http_timer timer; /* of the whole request */
	struct proxy_exchange *next_kept;
};

/* proxy.c */
void proxy_count(atomic_uint_least64_t *counter, int64_t change);

/* A number that nobody outside can foretell, for ids. */
uint64_t proxy_random(struct proxy *proxy);

/* intercept.c */
void proxy_client_accept(struct http_listener *listener, int fd, const struct sockaddr_storage *from);
void proxy_client_close(struct proxy_client *client);
/* Does all that can be done now: requests one after the other, or what is left of a connection. */
void proxy_client_run(struct proxy_client *client);
/* A head is complete: finds out what the request is for, and goes through the stages. */
void proxy_intercept(struct proxy_exchange *exchange, struct http_head *head);

/* exchange.c */
struct proxy_exchange *proxy_exchange_new(struct proxy_client *client);
void proxy_exchange_destroy(struct proxy_exchange *exchange); /* one that is not in use */
/* Does all that can be done now. True: it is over, and gone; the client can go on. */
bool proxy_exchange_step(struct proxy_exchange *exchange);
/* The same, and what follows for the client. */
void proxy_exchange_run(struct proxy_exchange *exchange);
/* The connection to the server failed, or the time for it is over. */
void proxy_exchange_link_failed(struct proxy_exchange *exchange, bool timeout);
/* The client did not do its part in time. */
void proxy_exchange_client_late(struct proxy_exchange *exchange);
/* Ends it and its client's connection, such that nobody takes what was sent for the whole. */
void proxy_exchange_break(struct proxy_exchange *exchange);
/* Answers with what is wrong with the request as HTTP. */
void proxy_refuse_request(struct proxy_exchange *exchange);
/* The configuration that it was under may go, if it was the last. */
void proxy_state_release(struct proxy_state *state);

/* stream.c */
void proxy_stream_reset(struct proxy_stream *stream);
void proxy_stream_push(struct proxy_stream *stream, const char *at, size_t length);
/* Queues a piece of the body, framed as the stream is; and, once it is complete, what ends it. */
void proxy_stream_push_body(struct proxy_stream *stream, uint32_t body, uint32_t length);
void proxy_stream_finish(struct proxy_stream *stream);
enum proxy_pump proxy_stream_pump(struct proxy_stream *stream);
/* Queues what of the body is in the buffer already, so that it goes out together with the head. False: it is malformed. */
bool proxy_stream_prime(struct proxy_stream *stream);
/* Sends what can be sent, reads nothing. False: the destination takes no more. */
bool proxy_stream_flush(struct proxy_stream *stream);

/* carrier.c: the part of a traceparent that all calls of a workflow share; "" if it is malformed. */
struct str proxy_trace_id(struct str traceparent);
/* Takes the scope out of the request. 0, or the request was answered. */
int proxy_read_scope(struct proxy_exchange *exchange, struct http_head *head);

/* evaluate.c: 0 with exchange->peer set or not, or the request was answered. */
int proxy_evaluate(struct proxy_exchange *exchange, const struct http_head *head);
/* Answers with the plan, as `cheops scope explain -o json` has it, where Cheops-Explain asks for it. 0: nobody asked. */
int proxy_explain(struct proxy_exchange *exchange, const struct http_head *head);

/* hop.c */
struct proxy_signer *proxy_signer_new(const struct proxy_config *config);
void proxy_signer_free(struct proxy_signer *signer);
void proxy_hop_sign(struct proxy_exchange *exchange, struct buf *out);
/* 0 and the service that the request is for; else it was answered. */
int proxy_hop_check(struct proxy_exchange *exchange, struct http_head *head);

/* execute.c: sends the request to where it is to run. */
void proxy_execute(struct proxy_exchange *exchange, struct http_head *head);
/* The link failed before an answer began: tries again where that is safe, else answers. */
void proxy_execute_failed(struct proxy_exchange *exchange, bool timeout);
void proxy_drop_hop_by_hop(struct http_head *head);

/* carry.c: adds to the head what lets the scope follow the calls of the service. */
void proxy_carry_scope(struct proxy_exchange *exchange, struct http_head *head, struct buf *out);
/* Notes, or forgets, that calls to other services may come that nothing connects to this request. */
void proxy_uncarried_begin(struct proxy_exchange *exchange, const struct http_head *head);
void proxy_uncarried_end(struct proxy_exchange *exchange);
/* A request without a scope: could it be such a call? */
void proxy_uncarried_check(struct proxy_exchange *exchange);

/* answer.c */
void proxy_build_response(struct proxy_exchange *exchange, struct http_head *head);
/* `fields` is "" or complete lines. */
void proxy_build_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                        struct str body);

struct proxy_problem {
	unsigned status;
	const char *type; /* the stable part of the URN */
	const char *title;
	const char *error;             /* of RFC 9209; NULL: none */
	struct str site;               /* that the problem is at; "" if at none */
	bool close;                    /* the connection cannot go on */
	const struct scope_diag *diag; /* what is wrong with the scope */
};

__attribute__((format(printf, 3, 4))) void proxy_problem(struct proxy_exchange *exchange,
                                                         const struct proxy_problem *problem, const char *format, ...);

/* target.c */
void proxy_target_init(struct proxy_target *target, struct proxy_state *state, const struct http_address *address);
void proxy_target_close(struct proxy_target *target);
/* Gives the exchange a link to the target, idle or new. 0, or negative if no connection can even be started. */
int proxy_target_take(struct proxy_target *target, struct proxy_exchange *exchange, bool fresh, struct err *err);
/* The exchange is through with its link, which can serve again or not. */
void proxy_link_give(struct proxy_link *link, bool reusable);
void proxy_target_failed(struct proxy_target *target);

/* memory.c */
enum { PROXY_ID_MOST_BYTES = 128 }; /* longer ids are not remembered */
/* Ids and scopes; `service` is the one that the scoped request was sent to: a request to it with the same id is not a call
 * that it made, but another request of the same client. */
enum proxy_memory_found { PROXY_MEMORY_NONE, PROXY_MEMORY_FOUND, PROXY_MEMORY_AMBIGUOUS };
void proxy_memory_put(struct proxy_memory *memory, struct str id, struct str service, struct str scope,
                      uint64_t now_ms);
enum proxy_memory_found proxy_memory_get(struct proxy_memory *memory, struct str id, struct str service,
                                         struct arena *arena, struct str *scope, uint64_t now_ms);

/* percent.c */
bool proxy_percent_decode(struct arena *arena, struct str text, struct str *decoded);
void proxy_percent_encode(struct buf *out, struct str text);

#endif
