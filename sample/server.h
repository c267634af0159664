/*
 * The HTTP server: libmicrohttpd with one thread per connection, so that a handler is plain code that may block, on a disk
 * or on another service, and holds up nobody else.
 *
 * A request, when all goes well:
 *   1. its headers are there: a route is found by path and method;
 *   2. its body comes: a JSON body is collected, a streamed one is handed to the route piece by piece;
 *   3. the route's handler runs and returns a reply, which is logged and sent.
 * No such path, a wrong method, a body too large or of the wrong type: known at 1, said at 3, after the body was read and
 * thrown away, since a client that is still sending does not listen; but at once if it asked first (Expect: 100-continue).
 * A client that goes away in the middle: the route's `drop` is called, and nothing else.
 */
#ifndef SAMPLE_SERVER_H
#define SAMPLE_SERVER_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "reply.h"

struct MHD_Connection;
struct access_log;
struct login;
struct peers;
struct request;

enum route_body {
	ROUTE_NO_BODY, /* if there is one, it is ignored */
	ROUTE_JSON,    /* application/json: an object */
	ROUTE_PATCH,   /* the same, or application/merge-patch+json (RFC 7396) */
	ROUTE_STREAM,  /* any bytes, any length: `begin`, `piece`... */
};

struct route {
	const char *method;  /* GET also answers HEAD */
	const char *pattern; /* may have one {id} */
	bool in_project;     /* also below /projects/PROJECT, for what is in that project only */
	enum route_body body;
	bool open; /* needs no token (login.h) */
	struct reply (*handle)(struct request *request);
	/* Of a ROUTE_STREAM. `begin` may set request->refused. After it, `drop` is called exactly once, whatever happened. */
	void (*begin)(struct request *request);
	void (*piece)(struct request *request, const char *bytes, size_t length);
	void (*drop)(struct request *request);
};

struct service {
	const char *name;
	const struct route *routes;                         /* the last one has no pattern */
	void *(*start)(const char *data, const char *site); /* on failure says why on the standard error and returns NULL */
	void (*stop)(void *state);
};

extern const struct service compute_service, image_service, network_service;

/* What the routes of a service see of a request. */
struct request {
	const struct server_options *options;
	void *state;   /* what the service's `start` returned */
	char *id;      /* what stands for {id} in the path; NULL if the route has none */
	char *project; /* the path is below that one; NULL if it is below none */
	json_t *json;  /* the body of a ROUTE_JSON or ROUTE_PATCH, an object */
	char *user;    /* who asks; NULL if nobody has to say */
	void *stream;  /* the route's own, between `begin` and `drop` */
	bool refused;  /* `refusal` is the answer; the handler is not called */
	struct reply refusal;

	/* The server's own. */
	struct MHD_Connection *connection;
	const struct route *route;
	char *target; /* as it came: path and query, nothing decoded */
	const char *method;
	char *body;
	size_t body_bytes, body_room;
	size_t discarded_bytes;
	bool begun, counted, logged;
};

/* Refuses the request, unless it was already. Takes over the reply. */
void request_refuse(struct request *request, struct reply refusal);

/* A member of the query, decoded; NULL if it is not there. */
const char *request_query(const struct request *request, const char *name);

/* A header of the request; NULL if it is not there. */
const char *request_header(const struct request *request, const char *name);

/* Calls back with each header of the request, in their order. */
void request_headers(const struct request *request, void (*visit)(void *context, const char *name, const char *value),
                     void *context);

struct server_options {
	const struct service *service;
	const char *site;
	const char *data;
	struct peers *peers;
	struct access_log *log; /* or NULL */
	struct login *login;    /* or NULL: anybody may ask */
	unsigned quota;         /* records of one collection; 0: as many as there is room for */
};

struct server;

/* Serves on a listening socket, which it takes over. On failure says why on the standard error and returns NULL. */
struct server *server_start(int listener, const struct server_options *options);

/* Accepts no more, lets the requests that are being answered finish (for LIMIT_STOP_S at most), and frees all. */
void server_stop(struct server *server);

#endif
