/* Inside the proxy room: connections to clients and servers, and the exchange of one request and one response. */
#ifndef PROXY_PROXY_INT_H
#define PROXY_PROXY_INT_H

#include "proxy/health.h"
#include "proxy/proxy.h"

#include "cross/cross.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/percent.h"

enum {
	PROXY_HERE = 0, /* the place of this site in every snapshot */
	PROXY_LISTENERS_MOST = 2 + LIMIT_AGENT_SERVICES,
	PROXY_HOPS_MOST = 8,
	PROXY_IDLE_LINKS_MOST = 256, /* idle connections kept per server */
	PROXY_IDLE_LINK_MS = 30000,  /* for so long */
	PROXY_PROBE_MS = 500,        /* between attempts to reach an instance that failed */
	PROXY_LINGER_MS = 2000,      /* for a client to read an answer that came before its request was over */
	PROXY_PUMP_READS = 16,       /* of one connection, before others have their turn */
	PROXY_LINGER_READS = 16,     /* of what it still sends, per event */
	PROXY_KEPT_EXCHANGES = 64,
	PROXY_WHY_BYTES = 192,
};

/* ---- Servers ---------------------------------------------------------------------------------------------------- */

struct proxy_target;

/* A connection to a server: in use by an exchange, or idle in its target's list. */
struct proxy_link {
	struct http_conn conn; /* first */
	struct proxy_target *target;
	struct proxy_exchange *exchange; /* NULL: idle, a probe, or of an attempt */
	struct proxy_attempt *attempt;
	struct proxy_link *previous, *next;
	uint64_t begun_ms;
	struct http_kept kept;
	bool reused;
	bool probe;
	bool proven; /* it was made sure who is at the other end */
	bool told;   /* that its path is down */
};

/* One instance of a service, or the agent of another site. */
struct proxy_target {
	struct http_address address;
	struct proxy *proxy;
	site_id site;           /* whose agent it is, which its certificate has to prove; 0: an instance */
	struct http_tls *tls;   /* of an instance; NULL: in the clear */
	const char *tls_name;   /* that it has to prove */
	bool closed;            /* no longer in use: what comes back to it is not kept */
	struct proxy_link idle; /* head of a list, most recently used first */
	struct proxy_link used; /* head of a list: those of exchanges and attempts */
	uint32_t idle_count;
	struct http_habit habit;
	uint32_t active;
	bool down;                 /* it failed, and has not answered since */
	char why[PROXY_WHY_BYTES]; /* the last connection failed; "" */
	struct http_timer probe_timer;
	struct proxy_link *probing;
};

enum { PROXY_PROBES = 8 }; /* one, and those at its side where it is not heard of */

/* A connection for probes of a peer. */
struct proxy_probe {
	struct proxy_peer *peer;
	struct proxy_link *link; /* NULL: none */
	struct http_parser *parser;
	size_t sent;
	uint64_t begun_us; /* the connection or, on one that stands, the request */
	uint64_t asked_us; /* the request was sent */
	bool connects;     /* the connection is made for it: whatever is heard there is of this probe */
	bool busy;         /* an answer is waited for, */
	bool late;         /* and its time is over */
	bool heard;        /* the other machine answered, if not the agent */
	bool head;         /* of the answer: seen */
};

/* Another site as this loop sees it. It is made when it is first needed, and stays while it is in the snapshot with the same
 * address, or a request uses it. */
struct proxy_peer {
	struct proxy_target target; /* first */
	site_id id;
	struct str name;
	uint32_t uses; /* by requests */
	struct proxy_health health;
	uint64_t used_us; /* the last time */
	struct http_timer watch_timer;
	struct proxy_probe probes[PROXY_PROBES];
	struct buf probe_request;
	struct proxy_attempt *attempts; /* under way there, or held */
	struct http_task leave_task;
	bool leaving;  /* it is posted */
	bool shut_out; /* no answer of it is taken any more */
};

/* A service as this loop sees it. */
struct proxy_backend {
	const struct proxy_service *service;
	struct proxy_target *instances;
	uint32_t turn;
	uint64_t first_byte_us; /* smoothed, of requests that might have gone elsewhere; 0: not known */
};

/* ---- What belongs to one configuration -------------------------------------------------------------------------- */

struct proxy_state {
	struct proxy *proxy;
	struct proxy_config *config;
	struct proxy_backend *backends; /* by service */
	uint32_t exchanges;             /* that use it */
	bool current;
	struct buf via;              /* "Via: 1.1 Site1\r\n" */
	struct str via_name;         /* the part that names this agent */
	struct buf metric;           /* this site as a name in Server-Timing */
	struct proxy_quota **quotas; /* by rule of the policy */
	bool forwarding;             /* some service forwards an id, or a header with the scope in it */
};

enum proxy_front_kind { PROXY_FRONT_API, PROXY_FRONT_PEER, PROXY_FRONT_SERVICE };

struct proxy_front {
	struct http_listener listener; /* first */
	struct proxy *proxy;
	enum proxy_front_kind kind;
	uint32_t service;
	struct http_tls *tls; /* NULL: in the clear */
	char address[64];
	bool wanted; /* by the configuration that is being applied */
};

struct proxy {
	struct http_loop *loop;
	struct proxy_shared *shared;
	struct proxy_state *state;
	struct proxy_front *fronts[PROXY_LISTENERS_MOST];
	uint32_t fronts_count;
	struct proxy_mesh *mesh;
	struct map peers;           /* by id */
	struct scope_cache *scopes; /* the epoch of a plan is the number of its snapshot */
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
	bool greeted;                    /* the handshake is done, or there is none */
	bool known;                      /* of another agent: its certificate was looked at */
	site_id peer;                    /* 0: it has none */
	char peer_name[LIMIT_AGENT_NAME_BYTES + 1];
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
	bool broken;      /* what was read is not to be sent */
	uint64_t sent_bytes;
	struct glue_splicer *splicer; /* ids in the body are replaced; NULL: it passes as it is */
	struct buf spliced;
};

enum proxy_pump {
	PROXY_PUMP_WAIT,        /* an event will tell */
	PROXY_PUMP_DONE,        /* read and sent to the end */
	PROXY_PUMP_FROM_FAILED, /* the source broke off, or sent something that is not HTTP */
	PROXY_PUMP_TO_FAILED,   /* the destination takes no more */
};

enum proxy_phase {
	PROXY_READING,    /* the head of the request is not complete */
	PROXY_COLLECTING, /* its body is read whole, for the API */
	PROXY_SPOOLING,   /* its body goes to a file, for an operation */
	PROXY_GATHERING,  /* its body is read, to be kept until it is known where the request runs */
	PROXY_TRYING,     /* attempts are under way at one or more sites */
	PROXY_MERGING,    /* the lists of several sites go out as one */
	PROXY_CONNECTING, /* to where it is to run */
	PROXY_RUNNING,    /* the request goes there, the response comes back */
	PROXY_TUNNEL,     /* both ends speak another protocol */
	PROXY_PENDING,    /* the API will answer later */
	PROXY_ANSWERING,  /* an answer of our own is sent */
	PROXY_FEEDING,    /* one that the API gives bit by bit */
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

/* ---- Plans of several sites --------------------------------------------------------------------------------------- */

enum proxy_candidate_state { PROXY_CANDIDATE_WAITING, PROXY_CANDIDATE_SKIPPED, PROXY_CANDIDATE_STARTED };

struct proxy_candidate {
	uint32_t place; /* in the snapshot that the plan was made with */
	site_id id;
	struct str name;
	uint32_t wave; /* see schedule.c */
	enum proxy_candidate_state state;
};

struct proxy_schedule {
	struct proxy_candidate *candidates;
	uint32_t count;
	uint32_t passed; /* the first so many are started */
	uint32_t wave;   /* of the last that was started */
	bool races;      /* some wave has several */
};

enum proxy_attempt_state {
	PROXY_ATTEMPT_LIVE,
	PROXY_ATTEMPT_HELD,      /* its answer says that it cannot serve; passed on if nobody can */
	PROXY_ATTEMPT_FAILED,    /* see error */
	PROXY_ATTEMPT_CANCELLED, /* another one answered */
	PROXY_ATTEMPT_WON,
	PROXY_ATTEMPT_DONE, /* its answer is a part of the answer, and was read to its end, or as far as it was wanted */
};

struct proxy_gather;
struct proxy_part;

/* A request at one of its candidates. */
struct proxy_attempt {
	struct proxy_exchange *exchange;
	const struct proxy_candidate *candidate;
	enum proxy_attempt_state state;
	struct proxy_peer *peer; /* NULL: here */
	struct proxy_link *link;
	struct http_parser *parser;
	struct buf head; /* of the request, as it is sent there */
	size_t sent;     /* on this connection, */
	bool reached;    /* or on any: something of the request was sent */
	bool not_run;    /* it is certain that no service has seen it */
	bool told;       /* that the path is down */
	uint32_t connections;
	uint64_t started_us, ended_us;
	const char *error;                               /* of RFC 9209 */
	const char *details;                             /* for people; NULL: none */
	unsigned status;                                 /* received; 0: none */
	struct proxy_part *part;                         /* of a gather: the head is there; NULL: not yet */
	struct proxy_attempt *next;                      /* in the order in which they began */
	struct proxy_attempt *peer_next, *peer_previous; /* under way at the same peer */
};

/* A request with a plan of several sites: attempt.c. Lives in the exchange's arena. */
struct proxy_trial {
	struct proxy_schedule schedule;
	struct http_head head;     /* of the request: a copy, since the buffer goes on */
	struct http_field *fields; /* as they came: each attempt drops others */
	bool safe;                 /* may run at several sites, at once or one after the other */
	bool streams;              /* its body is not kept: it goes to one site */
	bool hurry;                /* one has failed: the next does not wait */
	uint32_t live;
	struct proxy_attempt *first, *last;
	struct proxy_attempt *held;
	struct proxy_attempt *final; /* it failed, and no other may be tried */
	struct buf body;
	char chunk_line[20];
	struct buf tail;         /* what ends a body in chunks */
	struct http_timer timer; /* for the next one of a race */
	struct proxy_exchange *exchange;
	struct proxy_gather *gather; /* it runs at all of the sites; NULL: at one of them */
};

/* ---- Replicated resources ----------------------------------------------------------------------------------------- */

/* A container of several sites, below which the path is. */
struct proxy_inside {
	struct replica_id id;
	site_id sites[LIMIT_REPLICA_MEMBERS];
	uint32_t sites_count;
};

/* What the description makes of a request. Lives in the exchange's arena. */
struct proxy_resource {
	struct glue_match match;
	struct glue_request asked;
	enum glue_effect effect;
	struct engine_name name;
	bool known; /* the id is a replica's: */
	struct engine_found found;
	const struct scope_step *copies;   /* the scope says `&` or `%`, with this site among them */
	const struct proxy_inside *inside; /* NULL: in none */
	bool child;                        /* it makes something in it */
	struct http_head *head;            /* kept until the body has said what it is */
	struct str fields;                 /* of an operation */
	struct str key;
	struct engine_to_meta to_meta; /* of the answer */
	site_id here;
	uint64_t since;    /* before the service was asked: engine_standing_now() */
	site_id elsewhere; /* 0; or the engine said that it is this site's to do */
};

/* What is left to send of a file. */
struct proxy_file {
	int fd; /* with `left`, and then only */
	uint64_t at;
	uint64_t left;
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
	bool response_head;     /* told to the client, at least in pieces */
	bool request_over;      /* sent to the end */
	bool close_client;      /* after the response */
	bool deferred;          /* the API was called and has returned without an answer */
	bool feed_asked;        /* the API is to give more */
	bool reached;           /* something of the request was sent to a service, on a connection that is gone */
	bool outdated;          /* its parsers were made under the limits of an earlier configuration */
	struct proxy_feed feed; /* PROXY_FEEDING */
	struct str api_fields;  /* of a request to the API */
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
	uint64_t asked_at;                /* engine_standing_now(), before any service is asked */
	bool gathered;                    /* another agent puts the answer together with those of other sites */
	bool marks;                       /* and replicas in it are marked */
	bool ambiguous;                   /* its id stands for several scopes */
	bool inner;                       /* a service here makes it, on behalf of another request: */
	struct str caller;                /* this one; "": not known */
	bool wants_problem;               /* its client knows problem documents (RFC 9457) */
	struct str called_by;             /* the id by which its scope was found; "": by none */
	struct str ids[PROXY_CARRY_MOST]; /* by which its calls are known, */
	uint32_t ids_count;
	struct proxy_asked *asked;              /* what may be used, while the body is read for it */
	const struct relation_refusal *refusal; /* what is told to who asks for the plan; NULL: nothing */
	const char *refused_as;                 /* its type */
	struct str relied;                      /* who relies on what is deleted, as text; "": nobody */
	bool apart;                             /* of one item, what each site has of it is wanted (gather.c) */
	struct proxy_needs *needs;              /* what it requires, and is brought along; NULL: nothing (bring.c) */
	struct str scope_text;                  /* as given */
	struct str scope;                       /* canonical, with a service for each entry; "" without a scope */
	struct str baggage;                     /* what is left of it */
	struct str partial;                     /* sites that were not asked, as Cheops-Partial has them; "": none */
	struct buf body;                        /* kept whole */
	size_t collect_most;                    /* how long it may be */
	void (*collected)(struct proxy_exchange *exchange);
	struct engine_spool *spool; /* of a body that is too long to be kept; NULL: it is not yet */
	struct proxy_file file;     /* that is the body of the answer */
	struct scope_lease *lease;
	struct proxy_quota *quota; /* of which it takes a place */
	uint64_t uncarried;        /* services whose calls we may fail to recognise while this runs, as bits */
	/* where it runs */
	struct proxy_peer *peer; /* NULL: here */
	struct proxy_target *target_server;
	struct proxy_trial *trial;       /* NULL: there is only one place */
	struct proxy_resource *resource; /* NULL: the description knows nothing of it, or nobody has to know */
	struct http_timer timer;         /* of the whole request */
	struct proxy_exchange *next_kept;
};

/* proxy.c */
void proxy_count(atomic_uint_least64_t *counter, int64_t change);

/* A site's name as that of a metric. */
void proxy_put_metric(struct buf *out, struct str site);

/* A number that nobody outside can foretell, for ids. */
uint64_t proxy_random(struct proxy *proxy);

/* intercept.c */
void proxy_client_accept(struct http_listener *listener, int fd, const struct sockaddr_storage *from);
void proxy_client_close(struct proxy_client *client);
/* Does all that can be done now: requests one after the other, or what is left of a connection. */
void proxy_client_run(struct proxy_client *client);
/* A head is complete: finds out what the request is for, and goes through the stages. */
void proxy_intercept(struct proxy_exchange *exchange, struct http_head *head);

/* Behind what may make it wait: where does it run? */
void proxy_go_on(struct proxy_exchange *exchange, struct http_head *head);

/* Goes on reading the body for the API. False: it broke off. */
bool proxy_collect(struct proxy_exchange *exchange);

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
/* A buffer for a whole head: larger, if it is full. False: it is as large as it may get. */
bool proxy_make_room(struct http_conn *conn);
/* The head of a response is there, on exchange->link. */
void proxy_exchange_respond(struct proxy_exchange *exchange);
/* What came on the link is no answer. */
void proxy_refuse_response(struct proxy_exchange *exchange, const char *reason);
/* The configuration that it was under may go, if it was the last. */
void proxy_state_release(struct proxy_state *state);

/* stream.c */
void proxy_stream_reset(struct proxy_stream *stream);
void proxy_stream_push(struct proxy_stream *stream, const char *at, size_t length);
/* Queues a piece of the body, framed as the stream is; and, once it is complete, what ends it. */
void proxy_stream_push_body(struct proxy_stream *stream, uint32_t body, uint32_t length);
void proxy_stream_finish(struct proxy_stream *stream);
/* The same for bytes that are not in a connection's buffer, and stay where they are until they are sent. */
void proxy_stream_push_bytes(struct proxy_stream *stream, struct str bytes);
enum proxy_pump proxy_stream_pump(struct proxy_stream *stream);
/* Queues what of the body is in the buffer already, so that it goes out together with the head. False: it is malformed. */
bool proxy_stream_prime(struct proxy_stream *stream);
/* Sends what can be sent, reads nothing. False: the destination takes no more. */
bool proxy_stream_flush(struct proxy_stream *stream);

/* carrier.c: the part of a traceparent that all calls of a workflow share; "" if it is malformed. */
struct str proxy_trace_id(struct str traceparent);
extern const struct str proxy_appended_mark; /* between the value of a header and the scope behind it */
/* Takes the scope out of the request. 0, or the request was answered. */
int proxy_read_scope(struct proxy_exchange *exchange, struct http_head *head);

/* evaluate.c: 0 with exchange->peer or exchange->trial set or not, or the request was answered. */
int proxy_evaluate(struct proxy_exchange *exchange, const struct http_head *head);
/* After some time has passed: the sites may be others. 0, or it was answered. */
int proxy_evaluate_again(struct proxy_exchange *exchange);
/* By the plan; 0, or it was answered. */
int proxy_choose_place(struct proxy_exchange *exchange);
/* owner.c: may the request use what its scope gives it? 0: it goes on; else it was answered, or goes on when its body is read. */
int proxy_check_owner(struct proxy_exchange *exchange, const struct http_head *head);

/* relied.c: may it be deleted, though others rely on it? 0: it goes on, and its answer warns of them; else it was answered. */
int proxy_check_relied(struct proxy_exchange *exchange);
/* The Warning, and whoever has to know hears of it: once, with the head of the answer. `head` is that of the service, or NULL. */
void proxy_put_relied(struct proxy_exchange *exchange, unsigned status, const struct http_head *head, struct buf *out);

/* Answers with the plan, as `cheops scope explain -o json` has it, where Cheops-Explain asks for it. 0: nobody asked. */
int proxy_explain(struct proxy_exchange *exchange, const struct http_head *head);

/* replicate.c */
void proxy_recognise(struct proxy_exchange *exchange, const struct http_head *head);
/* Not 0: the request waits until this site has seen what its user has, and goes on then. */
int proxy_await_session(struct proxy_exchange *exchange, const struct http_head *head);
bool proxy_may_change(const struct proxy_resource *resource);
bool proxy_is_for_service(const struct proxy_exchange *exchange); /* its answer is, by the description */
/* It changes a resource that is replicated here. */
bool proxy_is_operation(const struct proxy_exchange *exchange);
/* A plan with `&` at its root: it is to run here, or at one of the others. Not 0: it cannot be carried out. */
int proxy_choose_copies(struct proxy_exchange *exchange, const struct scope_plan *plan);
/* refer.c: ids of what is replicated in the body of a request for this site alone. Not 0: it is read, and runs then. */
int proxy_refer(struct proxy_exchange *exchange, const struct http_head *head);
/* Not 0: it became an operation, or was refused. */
int proxy_replicate(struct proxy_exchange *exchange, struct http_head *head);
/* Once the body is there: true if it was an operation, and is under way or refused. */
bool proxy_operate(struct proxy_exchange *exchange);

/* span.c */
/* It lies at other sites, and this one knows of it. */
bool proxy_is_elsewhere(const struct proxy_exchange *exchange);
/* A step of a plan that an evaluation did not make; it outlives what is known of the sites now, as the request may. */
const struct scope_step *proxy_step_at(struct proxy_exchange *exchange, uint32_t place);
/* To one that holds it. 0, or it was answered. */
int proxy_send_on(struct proxy_exchange *exchange);
/* Its body was read, and the engine said whose it is. False: there is no such site to ask. */
bool proxy_send_to(struct proxy_exchange *exchange, site_id site);
/* A plan with `%` at its root. 0; 1: it makes nothing, so the plan cannot be carried out; -1: it was answered. */
int proxy_choose_span(struct proxy_exchange *exchange, const struct scope_plan *plan);
/* How what is made lies over its members. */
enum replica_span proxy_span_of(const struct proxy_resource *resource);

/* divide.c: how the parts of a divisible type are put together, for cross_combine(): divided fields, and those that the description
 * combines. `object` is where the object is in each of the bodies; "": the body is it. They live as long as the type and the arena. */
uint32_t proxy_combine_rules(struct arena *arena, const struct glue_type *type, struct str object,
                             const struct cross_rule **rules);

/* `%` on a divisible type: it is made here, or at one of its sites. 0, or it was answered. */
int proxy_divide_choose(struct proxy_exchange *exchange, const struct scope_plan *plan);
/* Does it ask for the whole of what is divided? Then 0, or it was answered. */
bool proxy_is_divided_read(const struct proxy_exchange *exchange);
int proxy_divide_read(struct proxy_exchange *exchange);

/* gather_spread.c: a list for which no site was named, of a type that this site knows of at others as well: they are asked, too. */
void proxy_list_spread(struct proxy_exchange *exchange, const struct http_head *head);
/* container.c */
/* Sets `inside` and `child` of the resource. */
void proxy_find_container(struct proxy_exchange *exchange);
/* Only its body says whether it makes something in one; and what then becomes of it. */
bool proxy_may_name_container(const struct proxy_exchange *exchange);
void proxy_decide_container(struct proxy_exchange *exchange);
/* Where a child is made, by the scope. 0, or it was answered. */
int proxy_choose_child(struct proxy_exchange *exchange);
/* Who holds a child that is made here; returns how many, at most LIMIT_REPLICA_MEMBERS. */
uint32_t proxy_child_holders(const struct proxy_exchange *exchange, site_id *holders);
/* A list of what is in a container is that of all of its sites. */
bool proxy_lists_container(const struct proxy_exchange *exchange);
void proxy_list_container(struct proxy_exchange *exchange, const struct http_head *head);

/* decide.c: what only the body can say. */
void proxy_decide_keep(struct proxy_exchange *exchange, const struct http_head *head);
/* A copy that outlives the buffer. Its client was told to go on with the body. */
struct http_head *proxy_head_keep(struct proxy_exchange *exchange, const struct http_head *head);
/* Its body is read, as much as can be looked into, then `collected` is called. */
void proxy_collect_start(struct proxy_exchange *exchange, const struct http_head *head,
                         void (*collected)(struct proxy_exchange *exchange));
void proxy_decide(struct proxy_exchange *exchange);
void proxy_put_local_target(struct proxy_exchange *exchange, struct buf *out);
void proxy_put_peer_target(struct proxy_exchange *exchange, struct buf *out);
/* Before the head of the answer is written. True: ids in the body will be replaced, its length is not known. */
bool proxy_splice_answer(struct proxy_exchange *exchange, struct http_head *head);
/* For the answer of a service here; NULL: it passes as it is. *marks: replicas in the list are to be marked; and whether they are. */
struct glue_splicer *proxy_splicer_new(struct proxy_exchange *exchange, const struct http_head *head, bool *marks);

/* spool.c: reads the body of an operation, which nobody looks into; long ones go to a file. Then `spooled` is called. */
void proxy_spool_start(struct proxy_exchange *exchange, const struct http_head *head,
                       void (*spooled)(struct proxy_exchange *exchange));
/* Goes on. False: the client broke off. */
bool proxy_spool(struct proxy_exchange *exchange);

/* file.c: the next piece of the file goes into the response. False: it cannot be read. */
bool proxy_file_next(struct proxy_exchange *exchange);
void proxy_file_close(struct proxy_exchange *exchange);

/* hop.c */
struct proxy_hop {
	struct str service;
	uint32_t hops;
	bool gather;
};

/* Takes the header's value apart. False: it is malformed, or of another version. */
bool proxy_hop_read(struct arena *arena, struct str value, struct proxy_hop *hop);
void proxy_hop_put(struct proxy_exchange *exchange, struct buf *out);
/* 0 and the service that the request is for; else it was answered. */
int proxy_hop_check(struct proxy_exchange *exchange, struct http_head *head);

/* policy.c: may this peer ask for that? 0, or the request was answered. */
int proxy_policy_admit(struct proxy_exchange *exchange);
/* The request is over: its place is free. */
void proxy_policy_done(struct proxy_exchange *exchange);
/* Its number; SCOPE_NO_INDEX: none names the peer. */
uint32_t proxy_policy_find(const struct proxy_policy *policy, struct str name, const struct site_tag *tags,
                           uint32_t tags_count);
/* What it allows: "read compute, image". */
void proxy_rule_put(const struct proxy_rule *rule, const struct proxy_config *config, struct buf *out);
bool proxy_rule_allows(const struct proxy_rule *rule, uint32_t service, bool safe);
struct proxy_quota *proxy_quota_take(struct proxy_quotas *quotas, struct str rule);
void proxy_quota_give(struct proxy_quotas *quotas, struct proxy_quota *quota);
/* One request more. False: it is too much, and *wait_ns is how long it takes until there is room (0: nobody knows). */
bool proxy_quota_enter(struct proxy_quota *quota, const struct proxy_rule *rule, uint64_t now_ns, uint64_t *wait_ns);
void proxy_quota_leave(struct proxy_quota *quota);

/* execute.c: sends the request to where it is to run. */
void proxy_execute(struct proxy_exchange *exchange, struct http_head *head);
/* The link failed before an answer began: tries again where that is safe, else answers. */
void proxy_execute_failed(struct proxy_exchange *exchange, bool timeout);
/* Starts the request, whose head is written, on a connection to where it is to run. */
void proxy_execute_start(struct proxy_exchange *exchange, bool fresh);
/* Writes the head as it is sent to exchange->peer, or to a service here. Drops fields of `head`. */
void proxy_build_request(struct proxy_exchange *exchange, struct http_head *head, struct buf *out);
struct proxy_target *proxy_choose_instance(struct proxy_exchange *exchange);
const char *proxy_error_of(int error);
void proxy_drop_hop_by_hop(struct http_head *head);

/* schedule.c: the part of a plan that cannot be carried out; NULL: it can. */
const struct scope_step *proxy_schedule_unable(const struct scope_step *root);
void proxy_schedule_make(struct proxy_schedule *schedule, struct arena *arena, const struct scope_step *root,
                         uint32_t places_count);
/* The next one that may be started now; `under_way`: others are, so it has to be one that races with them. NULL: none. */
struct proxy_candidate *proxy_schedule_next(struct proxy_schedule *schedule, bool under_way,
                                            bool (*is_down)(void *context, const struct proxy_candidate *candidate),
                                            void *context);
void proxy_schedule_started(struct proxy_schedule *schedule, struct proxy_candidate *candidate);

/* trial.c: a request that may be tried at several sites. */
void proxy_trial_new(struct proxy_exchange *exchange, const struct scope_plan *plan);
void proxy_trial_begin(struct proxy_exchange *exchange, const struct http_head *head);
/* With a body that was read already, which it takes over. */
void proxy_trial_go(struct proxy_exchange *exchange, const struct http_head *head, struct buf *body);
/* Reads what there is of the body. False: the client broke off, or its time is over. */
bool proxy_trial_gather(struct proxy_exchange *exchange);
/* Closes what is under way; what was tried is still known. */
void proxy_trial_stop(struct proxy_exchange *exchange);
/* And gives back all that it held. */
void proxy_trial_free(struct proxy_exchange *exchange);
/* Goes on after something happened to one of the attempts: other sites are tried, or the exchange has its answer. */
void proxy_trial_advance(struct proxy_exchange *exchange);
/* A request whose body is streamed could not be sent to where it should have been. True: the next place is set, and the
 * head for it is written; false: there is none, and the request was answered. */
bool proxy_trial_move(struct proxy_exchange *exchange, const char *error);
/* Another agent did not run such a request, and its body is still there. True: it is on its way to the next place. */
bool proxy_trial_refused(struct proxy_exchange *exchange, const struct http_head *head);

/* Asks one of the candidates. */
void proxy_trial_launch(struct proxy_exchange *exchange, struct proxy_candidate *candidate);
/* Is the path to it known to be down? */
bool proxy_candidate_is_down(struct proxy_exchange *exchange, const struct proxy_candidate *candidate);

/* attempt.c: one candidate of a trial. */
/* It is over, and told of; its connection may serve again. */
void proxy_attempt_done(struct proxy_attempt *attempt, bool reusable);
void proxy_attempt_fail(struct proxy_attempt *attempt, const char *error, const char *details);
/* The time until something has to come from it; 0: none. */
void proxy_attempt_wait(struct proxy_attempt *attempt, uint64_t delay_ms);
void proxy_attempt_start(struct proxy_attempt *attempt);
void proxy_attempt_changed(struct proxy_attempt *attempt);
void proxy_attempt_expired(struct proxy_attempt *attempt);
/* Its answer is the answer: its connection goes over to the exchange. */
void proxy_attempt_win(struct proxy_attempt *attempt);
/* Its link is closed, so that the other side notices; its peer is given back. */
void proxy_attempt_end(struct proxy_attempt *attempt, enum proxy_attempt_state state);
void proxy_attempt_join(struct proxy_attempt *attempt, struct proxy_peer *peer);
/* The path to the peer is down: requests that wait there, and may be sent elsewhere, move on. */
void proxy_peer_leave(struct proxy_peer *peer);
/* Is it the answer of an agent that says that no service has seen the request? */
bool proxy_says_not_run(const struct http_head *head);

/* probe.c */
void proxy_peer_watch_init(struct proxy_peer *peer);
void proxy_peer_watch_end(struct proxy_peer *peer);
/* A request is sent to it, or would be if it were not down. */
void proxy_peer_used(struct proxy_peer *peer);
/* It answered a request, so many µs after it was sent (0: that says nothing). */
void proxy_peer_answered(struct proxy_peer *peer, uint64_t first_byte_us);
void proxy_peer_failed(struct proxy_peer *peer, bool refused);
int64_t proxy_peer_estimate_us(const struct proxy_peer *peer);

/* paths.c */
void proxy_paths_tell(struct proxy_paths *paths, site_id id, const struct proxy_health *health, uint64_t now_us);
void proxy_paths_forget(struct proxy_paths *paths, site_id id);

/* carrier.c */
/* The base_id of the request's trace of osprofiler, in the arena. False: it has none that its service would take. */
bool proxy_read_profile(const struct http_head *head, const struct proxy_keys *keys, struct arena *arena,
                        struct str *base_id);

/* carry.c: adds to the head what lets the scope follow the calls of the service. */
void proxy_carry_scope(struct proxy_exchange *exchange, struct http_head *head, struct buf *out);
/* Notes, or forgets, that calls to other services may come that nothing connects to this request. */
void proxy_uncarried_begin(struct proxy_exchange *exchange, const struct http_head *head);
void proxy_uncarried_end(struct proxy_exchange *exchange);
/* A request without a scope: could it be such a call? */
void proxy_uncarried_check(struct proxy_exchange *exchange);

/* exchange.c: an answer that was collected elsewhere, with all of its fields. */
void proxy_answer_whole(struct proxy_exchange *exchange, unsigned status, struct str fields, struct str body);
/* A request that waited does what follows. Its client may have gone: then it is over. */
void proxy_resume(struct proxy_exchange *exchange, void (*next)(struct proxy_exchange *exchange));

/* answer.c */
void proxy_build_feed(struct proxy_exchange *exchange, const char *content_type);
void proxy_build_whole(struct proxy_exchange *exchange, unsigned status, struct str fields, struct str body);
/* The fields say how long the body is, which follows. */
void proxy_build_file(struct proxy_exchange *exchange, unsigned status, struct str fields);
void proxy_build_response(struct proxy_exchange *exchange, struct http_head *head);
/* A head whose body, if any, comes in pieces; `fields` are complete lines. */
void proxy_build_merged(struct proxy_exchange *exchange, unsigned status, struct str reason, struct str fields);
/* What was done for a request, site by site: Proxy-Status and Server-Timing. */
void proxy_put_deeds(struct proxy_exchange *exchange, struct buf *out);
/* A string of RFC 8941. */
void proxy_put_quoted(struct buf *out, struct str text);
/* `fields` is "" or complete lines. */
void proxy_build_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                        struct str body);

struct proxy_problem;

/* shape.c */
/* Does the client know problem documents, or only the errors of the service? */
void proxy_shape_note(struct proxy_exchange *exchange, const struct http_head *head);
/* A problem in the form that the client knows. False: it is to be a problem document. With what is told in a header. */
bool proxy_shape_put(struct proxy_exchange *exchange, const struct glue_failure *failure, struct buf *fields,
                     struct buf *body, struct str *content_type);
/* A call of a service ended with a problem of ours: it may be why what it was made for fails. */
void proxy_shape_blame(struct proxy_exchange *exchange, unsigned status, struct str site, struct str detail);
/* The service here answered, perhaps with an error because of such a call: then that is told. True: it was answered. */
bool proxy_shape_explain(struct proxy_exchange *exchange, const struct http_head *head);

struct proxy_problem {
	unsigned status;
	const char *type; /* the stable part of the URN */
	const char *title;
	const char *error;             /* of RFC 9209; NULL: none */
	struct str site;               /* that the problem is at; "" if at none */
	bool close;                    /* the connection cannot go on */
	unsigned retry_after_s;        /* 0: not told */
	const struct scope_diag *diag; /* what is wrong with the scope */
	struct str members;            /* more of its JSON, each behind a comma */
};

__attribute__((format(printf, 3, 4))) void proxy_problem(struct proxy_exchange *exchange,
                                                         const struct proxy_problem *problem, const char *format, ...);

/* target.c */
void proxy_target_init(struct proxy_target *target, struct proxy *proxy, const struct http_address *address);
void proxy_target_close(struct proxy_target *target);
/* Gives the exchange a link to the target, idle or new. 0, or negative if no connection can even be started. */
int proxy_target_take(struct proxy_target *target, struct proxy_exchange *exchange, bool fresh, struct err *err);
/* A new connection to it, of which nobody has heard yet. */
int proxy_link_connect(struct proxy_target *target, struct proxy_link **link, struct err *err);
/* It is no longer connecting: may it be used? */
bool proxy_link_stands(struct proxy_link *link);
/* An exchange that has waited in vain for so long for an answer of a target whose path is down; each once. NULL: none does. */
struct proxy_exchange *proxy_target_stranded(struct proxy_target *target, uint64_t least_us);
/* The exchange is through with its link, which can serve again or not. */
void proxy_link_give(struct proxy_link *link, bool reusable);
void proxy_target_failed(struct proxy_target *target);

/* peer.c */
/* The peer at a place of the current snapshot, for one use. */
struct proxy_peer *proxy_peer_take(struct proxy *proxy, uint32_t place);
/* The same by id; NULL: it is no longer there. */
struct proxy_peer *proxy_peer_take_site(struct proxy *proxy, site_id id);
/* Only if it is in use already. */
struct proxy_peer *proxy_peer_find(struct proxy *proxy, site_id id);
void proxy_peer_give(struct proxy_peer *peer);
/* Those that are no longer at their place are closed; all of them where there is no mesh any more. */
void proxy_peers_review(struct proxy *proxy);

/* memory.c */
enum { PROXY_ID_MOST_BYTES = 128, PROXY_BLAME_MOST_BYTES = 1024 }; /* longer ids are not remembered, longer texts cut */
/* Ids and scopes; `service` is the one that the scoped request was sent to: a request to it with the same id is not a call
 * that it made, but another request of the same client. */
enum proxy_memory_found { PROXY_MEMORY_NONE, PROXY_MEMORY_FOUND, PROXY_MEMORY_AMBIGUOUS };
void proxy_memory_put(struct proxy_memory *memory, struct str id, struct str service, struct str scope,
                      uint64_t now_ms);
/* An id in the place of what is a secret; nobody outside can foretell it. */
struct str proxy_memory_digest(const struct proxy_memory *memory, struct str secret, char id[PROXY_ID_MOST_BYTES]);
/* What went wrong with a call that was known by an id. */
struct proxy_blame {
	unsigned status;
	struct str service; /* that was called, */
	struct str site;    /* there; "": at none */
	struct str detail;
};
void proxy_memory_blame(struct proxy_memory *memory, struct str id, const struct proxy_blame *blame);
/* A later call of the same service went well. */
void proxy_memory_absolve(struct proxy_memory *memory, struct str id, struct str service);
/* Once, in the arena. False: nothing is known to have gone wrong. */
bool proxy_memory_blamed(struct proxy_memory *memory, struct str id, struct arena *arena, struct proxy_blame *blame);
enum proxy_memory_found proxy_memory_get(struct proxy_memory *memory, struct str id, struct str service,
                                         struct arena *arena, struct str *scope, uint64_t now_ms);

#endif
