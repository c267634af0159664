/* The life of a request in an agent (DESIGN 5), one file per stage:
 *
 *     intercept.c  a connection is accepted, a head is read; which front did it come to?
 *     carrier.c    the scope is read from whatever carries it, and taken out of the request
 *     evaluate.c   scope and service give a plan
 *     execute.c    the plan is run: here, or at another site's agent
 *     answer.c     the response is passed on, or an answer of our own is made
 *
 * Each loop has its own proxy; they share the configuration, which never changes, and the counters. A new configuration is
 * a new struct proxy_config; requests under way keep the one that they started with.
 */
#ifndef PROXY_PROXY_H
#define PROXY_PROXY_H

#include "engine/engine.h"
#include "glue/glue.h"
#include "http/http.h"
#include "proxy/osprofiler.h"
#include "scope/scope.h"
#include "site/site.h"

#include "base/log.h"

#include <stdatomic.h>

/* ---- Configuration ---------------------------------------------------------------------------------------------- */

/* How the scope follows the calls that a service makes (DESIGN 6). */
enum proxy_carry_kind {
	PROXY_CARRY_HEADER,      /* it forwards unknown headers: Scope itself travels */
	PROXY_CARRY_BAGGAGE,     /* it forwards W3C baggage */
	PROXY_CARRY_TRACEPARENT, /* it forwards traceparent: the agent remembers the trace */
	PROXY_CARRY_REQUEST_ID,  /* it forwards a request id: the agent remembers it */
	PROXY_CARRY_APPEND,      /* it forwards one header verbatim: the scope is appended to it */
	PROXY_CARRY_OSPROFILER,  /* it forwards a trace of osprofiler: the agent remembers it */
};

struct proxy_carry {
	enum proxy_carry_kind kind;
	struct str header;      /* of a request id, or to append to */
	struct str prefix;      /* of a request id: "req-" gives req-<uuid>; may be "" */
	struct str service;     /* append only to what has a scope that names this one; "": to all */
	struct proxy_keys keys; /* of osprofiler */
};

enum { PROXY_CARRY_MOST = 4, PROXY_INSTANCES_MOST = 64 };

struct proxy_service {
	struct str name;
	uint32_t index; /* in proxy_config.services */
	struct http_address front;
	struct http_address *instances;
	uint32_t instances_count;
	struct proxy_carry carry[PROXY_CARRY_MOST];
	uint32_t carry_count;               /* 0: it forwards nothing */
	struct str version;                 /* "" if not said */
	struct http_tls *front_tls;         /* of the connections of clients; NULL: in the clear */
	struct http_tls *instances_tls;     /* of those to instances */
	const char *const *instances_names; /* that each instance has to prove; with instances_tls */
	struct str credential;              /* of this agent, as a line of a header; "": none */
};

/* What peers may ask of this site. The first rule that names a peer decides; peers that none names are all welcome, or all
 * refused. Rates and numbers count for all peers of a rule together, and all loops. */
struct proxy_rule {
	struct str name;
	const struct str *sites;
	uint32_t sites_count; /* 0: whatever it is called */
	const struct site_tag *tags;
	uint32_t tags_count; /* that a peer must have, all of them */
	uint64_t services;   /* that it may ask, a bit each */
	bool all_services;
	bool read, write;    /* safe methods, and the others */
	uint32_t rate;       /* requests per second; 0: no limit */
	uint32_t concurrent; /* requests at once; 0: no limit */
};

struct proxy_policy {
	bool refuse_others;
	struct proxy_rule *rules;
	uint32_t rules_count;
};

struct proxy_timeouts {
	uint64_t connect_ms; /* to reach an instance or a peer */
	uint64_t header_ms;  /* for a client to send a whole head */
	uint64_t answer_ms;  /* for a server to start its answer; 0: no limit */
	uint64_t idle_ms;    /* without a byte, on a body or between requests */
	uint64_t request_ms; /* for all of it; 0: no limit */
	uint64_t stop_ms;    /* for requests under way when the agent stops */
};

struct proxy_config {
	atomic_uint references;
	struct arena arena; /* of everything here */
	struct str site;
	struct http_address api;
	struct http_address peer;         /* where other agents connect; length 0: nowhere */
	struct site_address advertise;    /* where they meet this one; family 0: not known */
	const char *state;                /* the folder of what the agent keeps */
	bool meshed;                      /* this site has an identity there: it listens for other agents */
	const struct site_address *seeds; /* where other sites may be found that are not known to be anywhere */
	uint32_t seeds_count;
	const struct site_tag *tags;
	uint32_t tags_count;
	uint32_t threads;
	enum log_level log_level;
	struct proxy_service *services;
	uint32_t services_count;
	struct engine_hook *hooks; /* webhooks */
	uint32_t hooks_count;
	struct proxy_timeouts timeouts;
	struct http_limits limits;
	uint32_t connections; /* per loop, of clients */
	struct proxy_policy policy;
	const struct glue *glue; /* the description of the application; NULL: none */
};

struct proxy_config *proxy_config_keep(struct proxy_config *config);
void proxy_config_drop(struct proxy_config *config);

/* ---- The other sites -------------------------------------------------------------------------------------------- */

/* What the loops know of the other sites, and how they talk to them. It never changes; a new one takes its place whenever a
 * site comes, goes or changes, or a certificate does. */
struct proxy_mesh {
	atomic_uint references;
	struct site_snapshot *sites;
	struct http_tls *server; /* for connections of other agents; NULL: in the clear */
	struct http_tls *client; /* for connections to them */
};

/* Takes over the references that it is given. */
struct proxy_mesh *proxy_mesh_new(struct site_snapshot *sites, struct http_tls *server, struct http_tls *client);
struct proxy_mesh *proxy_mesh_keep(struct proxy_mesh *mesh);
void proxy_mesh_drop(struct proxy_mesh *mesh);

/* ---- Paths to other sites ---------------------------------------------------------------------------------------- */

/* What the data path itself says of another site, by requests and probes; gossip has no say in it. */
enum proxy_path_state {
	PROXY_PATH_UNKNOWN, /* nobody works with it */
	PROXY_PATH_UP,
	PROXY_PATH_DOWN,
};

const char *proxy_path_state_name(enum proxy_path_state state); /* "unknown", "up", "down" */

struct proxy_path {
	enum proxy_path_state state;
	bool answered; /* at some time, */
	uint64_t answer_age_ms;
	uint64_t rtt_us; /* smoothed; 0: not measured */
	uint64_t variation_us;
};

/* Shared by the loops, which tell, and anybody, who may read. */
struct proxy_paths;
struct proxy_paths *proxy_paths_new(struct hash_key key);
void proxy_paths_free(struct proxy_paths *paths);
/* Any thread. False: no loop has worked with that site. */
bool proxy_paths_read(struct proxy_paths *paths, site_id id, struct proxy_path *path);

/* ---- What all loops share --------------------------------------------------------------------------------------- */

/* Counters. Each loop counts for itself; a reader adds them up. */
#define PROXY_COUNTERS(X)                                                                                              \
	X(requests, "cheops_requests_total", "Requests received")                                                          \
	X(scoped, "cheops_scoped_requests_total", "Requests that carried a scope")                                         \
	X(operations, "cheops_operations_total", "Requests that became operations on replicated resources")                \
	X(spooled, "cheops_spooled_bodies_total", "Bodies of operations that were written to a file")                      \
	X(blob_bytes, "cheops_blob_bytes_sent_total", "Bytes of such files sent to other members")                         \
	X(forwarded, "cheops_forwarded_requests_total", "Requests sent on to another site")                                \
	X(from_peers, "cheops_peer_requests_total", "Requests received from other agents")                                 \
	X(unattributed, "cheops_scope_unattributed_total",                                                                 \
	  "Calls that may belong to a scoped request, but came without anything that says so; they ran locally")           \
	X(ambiguous, "cheops_scope_ambiguous_total",                                                                       \
	  "Calls whose trace or request id stands for several scopes; they ran locally")                                   \
	X(refused_scopes, "cheops_refused_scopes_total", "Scopes refused with 400")                                        \
	X(not_owned, "cheops_not_owned_total", "Requests refused because they would use what belongs to another site")     \
	X(not_there, "cheops_requirement_absent_total",                                                                    \
	  "Creates refused because what they require is not at all their sites")                                           \
	X(bad_requests, "cheops_bad_requests_total", "Requests refused as malformed")                                      \
	X(bad_responses, "cheops_bad_responses_total", "Responses of a service or peer that were malformed or cut short")  \
	X(upstream_failures, "cheops_upstream_failures_total", "Connections to services or peers that failed")             \
	X(retries, "cheops_retries_total", "Requests sent again because the first attempt cannot have been acted on")      \
	X(failovers, "cheops_failovers_total", "Requests that went on to another site because one had failed")             \
	X(races, "cheops_races_total", "Further sites asked while the answer of one was still awaited")                    \
	X(cancelled, "cheops_cancelled_attempts_total", "Attempts given up: another site answered, or the client left")    \
	X(skipped, "cheops_skipped_sites_total", "Sites passed over because the data path to them was down")               \
	X(aggregates, "cheops_aggregated_requests_total", "Reads at several sites whose answers were put together")        \
	X(partial, "cheops_partial_answers_total", "Of these: answers from which a site is missing")                       \
	X(partial_late, "cheops_partial_late_total", "Of these: answers that had begun when a site failed")                \
	X(probes, "cheops_path_probes_total", "Probes sent to other sites on the data path")                               \
	X(probe_failures, "cheops_path_probe_failures_total", "Probes that were not answered in time")                     \
	X(lost_paths, "cheops_paths_lost_total", "Times that the data path to a site went down")                           \
	X(forged_hops, "cheops_forged_hops_total", "Hop headers that did not come from a peer")                            \
	X(policy_refused, "cheops_policy_refused_total", "Requests of peers that the policy does not allow")               \
	X(policy_limited, "cheops_policy_limited_total", "Requests of peers beyond a rate or number of the policy")        \
	X(tls_failures, "cheops_tls_failures_total", "Connections of clients and peers whose TLS handshake failed")        \
	X(refused_peers, "cheops_refused_peers_total", "Requests on the port for peers from those who are none")           \
	X(loops, "cheops_loops_total", "Requests refused because they went round in a loop")                               \
	X(client_connections, "cheops_client_connections_total", "Connections accepted")                                   \
	X(refused_connections, "cheops_refused_connections_total",                                                         \
	  "Connections closed at once, because there were too many")                                                       \
	X(client_timeouts, "cheops_client_timeouts_total", "Clients that were too slow")

struct proxy_counters {
#define X(field, name, help) atomic_uint_least64_t field;
	PROXY_COUNTERS(X)
#undef X
	atomic_uint_least64_t clients; /* connections now: a gauge */
};

/* Requests under way, by service that their scope names, whose service forwards nothing (all loops together). */
struct proxy_uncarried {
	atomic_uint services[LIMIT_AGENT_SERVICES];
};

/* Which scope belongs to a trace or request id that an application forwards. Shared by the loops of an agent. */
struct proxy_memory;
struct proxy_memory *proxy_memory_new(struct hash_key key);
void proxy_memory_free(struct proxy_memory *memory);

/* How much of what the policy allows is used up, by name of the rule: a new configuration goes on with it. */
struct proxy_quotas;
struct proxy_quotas *proxy_quotas_new(void);
void proxy_quotas_free(struct proxy_quotas *quotas);

/* The policy for what other members of replicated resources deliver. Both live as long. */
struct proxy_gate;
struct proxy_gate *proxy_gate_new(struct proxy_quotas *quotas, const struct proxy_config *config);
void proxy_gate_free(struct proxy_gate *gate);
struct engine_gate proxy_gate_engine(struct proxy_gate *gate);

/* How a scope follows what the services of this site call for an operation. Outlives what it makes. */
struct proxy_carriage {
	struct proxy_memory *memory;
	const struct proxy_config *config;
};
struct engine_carrier proxy_carriage_engine(struct proxy_carriage *carriage);

/* A request to the agent's own API, which lives in a room above. It answers with proxy_answer(), now or later, in the
 * loop's thread; until then the request is kept, whatever its client does. */
struct proxy_exchange;
struct proxy_call {
	struct proxy_exchange *exchange;
	struct http_loop *loop;
	struct str method;
	struct str target;
	struct str fields; /* of its head, "Name: value\r\n" each */
	struct str body;   /* at most LIMIT_API_BODY_BYTES: whoever sends more is refused */
	bool peer;         /* it came in by the port for other agents */
	site_id from;      /* which one; 0: it showed no certificate, and may only ask to join */
	struct str from_name;
	const char *address; /* of the other end */
};

typedef void proxy_api(void *context, const struct proxy_call *call);

/* `fields` is "" or complete lines, "Allow: GET\r\n". */
void proxy_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                  struct str body);

/* An answer whose body comes bit by bit, for as long as its client wants it. */
struct proxy_feed {
	void (*more)(void *context); /* all is sent: give more, later, once */
	void (*gone)(void *context); /* the client has left, or the agent stops: there is nobody to give it to */
	void *context;
};

/* In place of proxy_answer(): 200. */
void proxy_answer_feed(struct proxy_exchange *exchange, const char *content_type, const struct proxy_feed *feed);
/* Once after each more(), from elsewhere; what is given is copied. */
void proxy_feed_give(struct proxy_exchange *exchange, struct str bytes);

/* So many bytes of a file, from there on, are the body: they are read as they are sent. The descriptor is closed at the end. */
void proxy_answer_file(struct proxy_exchange *exchange, unsigned status, struct str fields, int fd, uint64_t at,
                       uint64_t bytes);

struct proxy_shared {
	struct proxy_memory *memory;
	struct proxy_paths *paths; /* may be NULL */
	struct proxy_quotas *quotas;
	struct proxy_uncarried uncarried;
	_Atomic(struct engine *) engine; /* of replicated resources; NULL: this site has none */
	const struct log *log;
	struct hash_key hash_key; /* a secret of the process */
	proxy_api *api;
	void *api_context;
};

/* ---- One proxy per loop ----------------------------------------------------------------------------------------- */

struct proxy;

struct proxy *proxy_new(struct http_loop *loop, struct proxy_shared *shared);
/* In the loop's thread. There is one descriptor per address, in the order api, peer, fronts; -1 where the address is
 * that of a front which is open already (it stays open), and for a peer's address that is not configured. The proxy takes
 * the descriptors over. Fronts that are not in the new configuration are closed; requests under way go on as they began. */
void proxy_configure(struct proxy *proxy, struct proxy_config *config, const int *descriptors);
/* In the loop's thread, before the first configuration and whenever there is a new one. Connections to sites that are still
 * there, at the same address, stay. */
void proxy_set_mesh(struct proxy *proxy, struct proxy_mesh *mesh);
/* Takes no new connections and ends idle ones; `drained` runs once no request is under way. */
void proxy_stop(struct proxy *proxy, void (*drained)(void *context), void *context);
/* Once the loop has ended, or in its thread: ends everything. */
void proxy_free(struct proxy *proxy);

const struct proxy_counters *proxy_counters(const struct proxy *proxy);

#endif
