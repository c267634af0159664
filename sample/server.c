#include "server.h"

#include <errno.h>
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "access_log.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "routing.h"

struct server {
	struct server_options options;
	struct MHD_Daemon *daemon;
	void *state;
	atomic_bool stopping;
	pthread_mutex_t lock;
	pthread_cond_t quiet; /* nothing is being answered */
	unsigned active_count;
};

/* ---- what routes may ask of a request ----------------------------------------------------------------------------- */

void request_refuse(struct request *request, struct reply refusal)
{
	if (request->refused) {
		reply_drop(&refusal);
		return;
	}
	request->refused = true;
	request->refusal = refusal;
}

const char *request_query(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_GET_ARGUMENT_KIND, name);
}

const char *request_header(const struct request *request, const char *name)
{
	return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

struct visitor {
	void (*visit)(void *context, const char *name, const char *value);
	void *context;
};

static enum MHD_Result visit_header(void *context, enum MHD_ValueKind kind, const char *name, const char *value)
{
	(void)kind;
	const struct visitor *visitor = context;
	visitor->visit(visitor->context, name, value == NULL ? "" : value);
	return MHD_YES;
}

void request_headers(const struct request *request, void (*visit)(void *context, const char *name, const char *value),
                     void *context)
{
	struct visitor visitor = {.visit = visit, .context = context};
	MHD_get_connection_values(request->connection, MHD_HEADER_KIND, visit_header, &visitor);
}

/* ---- answering ---------------------------------------------------------------------------------------------------- */

static void log_once(struct request *request, unsigned status)
{
	if (!request->logged && request->method != NULL)
		access_log_request(request->options->log, request, status);
	request->logged = true;
}

/* Consumes the reply. */
static struct MHD_Response *response_of(struct reply *reply)
{
	struct MHD_Response *response;
	if (reply->has_file) {
		response = need(MHD_create_response_from_fd64(reply->file_bytes, reply->fd));
		reply->has_file = false; /* libmicrohttpd closes it */
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/octet-stream");
	} else if (reply->json != NULL) {
		char *text = need(json_dumps(reply->json, JSON_COMPACT));
		response = need(MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE));
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
	} else {
		response = need(MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT));
	}
	if (reply->header_name != NULL)
		MHD_add_response_header(response, reply->header_name, reply->header_value);
	reply_drop(reply);
	return response;
}

static enum MHD_Result send_reply(struct server *server, struct request *request, struct reply reply)
{
	unsigned status = reply.status;
	/* Before the client can see the answer, so that who has the answer finds the line in the log. */
	log_once(request, status);
	struct MHD_Response *response = response_of(&reply);
	if (atomic_load(&server->stopping))
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	enum MHD_Result result = MHD_queue_response(request->connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static struct reply refusal_of(struct request *request)
{
	struct reply refusal = request->refusal;
	request->refusal = (struct reply){0};
	return refusal;
}

static void parse_json(struct request *request)
{
	json_error_t why;
	request->json =
		json_loadb(request->body == NULL ? "" : request->body, request->body_bytes, JSON_REJECT_DUPLICATES, &why);
	if (request->json == NULL)
		request_refuse(
			request, reply_error(400, "the body is not JSON: line %d, column %d: %s", why.line, why.column, why.text));
	else if (!json_is_object(request->json))
		request_refuse(request, reply_error(400, "the body must be a JSON object"));
}

static bool takes_json(const struct request *request)
{
	return request->route != NULL && (request->route->body == ROUTE_JSON || request->route->body == ROUTE_PATCH);
}

static enum MHD_Result answer(struct server *server, struct request *request)
{
	if (!request->refused && takes_json(request))
		parse_json(request);
	if (request->refused)
		return send_reply(server, request, refusal_of(request));
	/* A handler may take its time, with another service or a disk: the client is not idle meanwhile. */
	MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, 0U);
	struct reply reply = request->route->handle(request);
	MHD_set_connection_option(request->connection, MHD_CONNECTION_OPTION_TIMEOUT, (unsigned)LIMIT_IDLE_S);
	return send_reply(server, request, reply);
}

/* ---- receiving ---------------------------------------------------------------------------------------------------- */

static void count(struct server *server, int change)
{
	pthread_mutex_lock(&server->lock);
	server->active_count += (unsigned)change;
	if (server->active_count == 0)
		pthread_cond_signal(&server->quiet);
	pthread_mutex_unlock(&server->lock);
}

static void check_body_headers(struct request *request)
{
	const char *length = request_header(request, MHD_HTTP_HEADER_CONTENT_LENGTH);
	if (length != NULL && strtoull(length, NULL, 10) > LIMIT_JSON_BYTES)
		request_refuse(request, reply_error(413, "a JSON body may have %d bytes", LIMIT_JSON_BYTES));
	struct reply refusal;
	if (!routing_accepts(request->route, request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE), &refusal))
		request_refuse(request, refusal);
}

static void begin_route(struct request *request)
{
	login_check(request);
	if (request->refused)
		return;
	if (takes_json(request))
		check_body_headers(request);
	else if (request->route->body == ROUTE_STREAM)
		request->route->begin(request);
}

static void begin(struct server *server, struct request *request, const char *path)
{
	request->begun = true;
	request->counted = true;
	count(server, +1);
	struct reply refusal;
	struct routing_found found = {0};
	request->route = routing_find(server->options.service->routes, request->method, path, &found, &refusal);
	request->id = found.id;
	request->project = found.project;
	if (request->route == NULL)
		request_refuse(request, refusal);
	else
		begin_route(request);
}

static void collect(struct request *request, const char *bytes, size_t length)
{
	if (length > LIMIT_JSON_BYTES - request->body_bytes) {
		request_refuse(request, reply_error(413, "a JSON body may have %d bytes", LIMIT_JSON_BYTES));
		return;
	}
	if (request->body_bytes + length > request->body_room) {
		request->body_room = 2 * (request->body_bytes + length);
		request->body = need(realloc(request->body, request->body_room));
	}
	memcpy(request->body + request->body_bytes, bytes, length);
	request->body_bytes += length;
}

static enum MHD_Result take_piece(struct request *request, const char *bytes, size_t length)
{
	if (!request->refused && takes_json(request)) {
		collect(request, bytes, length);
	} else if (!request->refused && request->route->body == ROUTE_STREAM) {
		request->route->piece(request, bytes, length);
	} else {
		request->discarded_bytes += length;
		if (request->discarded_bytes > LIMIT_DISCARD_BYTES)
			return MHD_NO; /* closes the connection */
	}
	return MHD_YES;
}

static bool asked_first(const struct request *request)
{
	const char *expect = request_header(request, MHD_HTTP_HEADER_EXPECT);
	return expect != NULL && strcasecmp(expect, "100-continue") == 0;
}

/* ---- libmicrohttpd's callbacks ------------------------------------------------------------------------------------ */

/* The request line is there. What this returns is the request's context in the other two. */
static void *on_request_line(void *context, const char *target, struct MHD_Connection *connection)
{
	struct server *server = context;
	struct request *request = NEW(struct request);
	request->options = &server->options;
	request->state = server->state;
	request->connection = connection;
	request->target = text_of("%s", target);
	return request;
}

/* Called once the headers are there, then for each piece of the body, then once more. */
static enum MHD_Result on_request(void *context, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *bytes, size_t *length,
                                  void **request_context)
{
	(void)connection;
	(void)version;
	struct server *server = context;
	struct request *request = *request_context;
	if (!request->begun) {
		request->method = method;
		begin(server, request, path);
		return request->refused && asked_first(request) ? send_reply(server, request, refusal_of(request)) : MHD_YES;
	}
	if (*length > 0) {
		enum MHD_Result result = take_piece(request, bytes, *length);
		*length = 0;
		return result;
	}
	return answer(server, request);
}

static void on_end(void *context, struct MHD_Connection *connection, void **request_context,
                   enum MHD_RequestTerminationCode code)
{
	(void)connection;
	(void)code;
	struct server *server = context;
	struct request *request = *request_context;
	if (request == NULL)
		return;
	log_once(request, 0); /* a request that was never answered */
	if (request->route != NULL && request->route->drop != NULL)
		request->route->drop(request);
	if (request->refused)
		reply_drop(&request->refusal);
	if (request->counted)
		count(server, -1);
	json_decref(request->json);
	free(request->body);
	free(request->target);
	free(request->user);
	free(request->id);
	free(request->project);
	free(request);
	*request_context = NULL;
}

/* ---- start and stop ----------------------------------------------------------------------------------------------- */

static struct MHD_Daemon *start_daemon(struct server *server, int listener)
{
	unsigned flags = MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION | MHD_USE_POLL | MHD_USE_ITC;
	/* clang-format off */
	return MHD_start_daemon(flags, 0, NULL, NULL, on_request, server,
		MHD_OPTION_LISTEN_SOCKET, listener,
		MHD_OPTION_URI_LOG_CALLBACK, on_request_line, server,
		MHD_OPTION_NOTIFY_COMPLETED, on_end, server,
		MHD_OPTION_CONNECTION_LIMIT, (unsigned)LIMIT_CONNECTIONS,
		MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)LIMIT_IDLE_S,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)LIMIT_CONNECTION_BYTES,
		MHD_OPTION_THREAD_STACK_SIZE, (size_t)LIMIT_THREAD_STACK_BYTES,
		MHD_OPTION_STRICT_FOR_CLIENT, 1,
		MHD_OPTION_END);
	/* clang-format on */
}

struct server *server_start(int listener, const struct server_options *options)
{
	struct server *server = NEW(struct server);
	server->options = *options;
	pthread_mutex_init(&server->lock, NULL);
	pthread_cond_init(&server->quiet, NULL);
	server->state = options->service->start(options->data, options->site);
	if (server->state == NULL)
		goto made;
	server->daemon = start_daemon(server, listener);
	if (server->daemon != NULL)
		return server;
	fprintf(stderr, "cheops-sample: cannot start the HTTP server: %s\n", strerror(errno));
	options->service->stop(server->state);
made:
	pthread_cond_destroy(&server->quiet);
	pthread_mutex_destroy(&server->lock);
	free(server);
	close(listener);
	return NULL;
}

static void wait_until_quiet(struct server *server)
{
	struct timespec until;
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += LIMIT_STOP_S;
	pthread_mutex_lock(&server->lock);
	int status = 0;
	while (server->active_count > 0 && status == 0)
		status = pthread_cond_timedwait(&server->quiet, &server->lock, &until);
	if (server->active_count > 0)
		fprintf(stderr, "cheops-sample: stops although %u requests are not finished\n", server->active_count);
	pthread_mutex_unlock(&server->lock);
}

void server_stop(struct server *server)
{
	atomic_store(&server->stopping, true);
	int listener = MHD_quiesce_daemon(server->daemon);
	if (listener >= 0)
		close(listener);
	wait_until_quiet(server);
	MHD_stop_daemon(server->daemon);
	server->options.service->stop(server->state);
	pthread_cond_destroy(&server->quiet);
	pthread_mutex_destroy(&server->lock);
	free(server);
}
