/* Clients: connections that come in by a front, and the requests on them, one after the other. */
#include "proxy/proxy_int.h"

#include "base/check.h"
#include "trust/trust.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <unistd.h>

static void client_release(struct http_source *source)
{
	free(source);
}

void proxy_client_close(struct proxy_client *client)
{
	struct proxy *proxy = client->proxy;
	if (client->conn.source.fd < 0)
		return;
	*(client->previous ? &client->previous->next : &proxy->clients) = client->next;
	if (client->next)
		client->next->previous = client->previous;
	proxy->clients_count--;
	proxy_count(&proxy->counters.clients, -1);
	http_conn_close(&client->conn);
}

/* The answer is sent, but the client may still be sending: a close now would reset the connection, and could take the
 * answer along. So only our side is closed, and what comes is thrown away for a short while. */
static void linger(struct proxy_client *client)
{
	struct http_conn *conn = &client->conn;
	if (!client->shut) {
		client->shut = true;
		http_conn_end(conn);
		http_timer_clear(conn->loop, &conn->timer);
		http_timer_set(conn->loop, &conn->timer, PROXY_LINGER_MS);
	}
	/* A few reads at a time: one that never stops sending must not keep the loop. */
	for (int i = 0; i < PROXY_LINGER_READS; i++) {
		conn->in.start = conn->in.end = 0;
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED)
			return;
		if (io != HTTP_IO_SOME) {
			proxy_client_close(client);
			return;
		}
	}
}

/* For a handshake, and for the head of a request. Other agents get the longer time: over a satellite link that loses packets a
 * handshake takes ten seconds and more, and to be turned away looks to the other side like a site that fails. */
static uint64_t greeting_ms(const struct proxy_client *client)
{
	const struct proxy_timeouts *timeouts = &client->proxy->state->config->timeouts;
	bool patient = client->kind == PROXY_FRONT_PEER && timeouts->idle_ms > timeouts->header_ms;
	return patient ? timeouts->idle_ms : timeouts->header_ms;
}

/* Between requests: is there another one, or the end? */
static bool start_next(struct proxy_client *client)
{
	struct http_conn *conn = &client->conn;
	if (conn->in.start == conn->in.end && !conn->readable) {
		http_buffer_give(conn->loop, &conn->in);
		if (client->proxy->stopping || client->service == SCOPE_NO_INDEX) {
			proxy_client_close(client);
			return false;
		}
		http_timer_set(conn->loop, &conn->timer, client->proxy->state->config->timeouts.idle_ms);
		return false;
	}
	if (conn->in.start > 0) {
		memmove(conn->in.at, conn->in.at + conn->in.start, conn->in.end - conn->in.start);
		conn->in.end -= conn->in.start;
		conn->in.start = 0;
	}
	http_timer_clear(conn->loop, &conn->timer);
	http_timer_set(conn->loop, &conn->timer, greeting_ms(client));
	client->exchange = proxy_exchange_new(client);
	return true;
}

void proxy_client_run(struct proxy_client *client)
{
	while (client->conn.source.fd >= 0) {
		if (client->lingering) {
			linger(client);
			return;
		}
		if (!client->exchange && !start_next(client))
			return;
		if (!proxy_exchange_step(client->exchange))
			return;
	}
}

/* Nobody came in: a scanner, a client that does not trust us, or one that we do not. */
static void note_no_handshake(struct proxy_client *client, const char *why)
{
	proxy_count(&client->proxy->counters.tls_failures, 1);
	log_event(client->proxy->shared->log, LOG_DEBUG, "a TLS handshake failed", LOG_STR("from", str_of(client->address)),
	          LOG_STR("why", str_of(why)));
}

static void client_changed(struct http_conn *conn)
{
	struct proxy_client *client = (struct proxy_client *)conn;
	if (conn->connecting)
		return; /* the handshake goes on */
	if (!client->greeted && conn->failed)
		note_no_handshake(client, http_conn_error_text(conn));
	client->greeted = true;
	if (conn->failed && !client->exchange)
		proxy_client_close(client);
	else
		proxy_client_run(client);
}

static void client_expired(struct http_conn *conn)
{
	struct proxy_client *client = (struct proxy_client *)conn;
	if (!client->greeted)
		note_no_handshake(client, "it was not complete in time");
	if (client->exchange)
		proxy_exchange_client_late(client->exchange);
	else
		proxy_client_close(client);
}

void proxy_client_accept(struct http_listener *listener, int fd, const struct sockaddr_storage *from)
{
	struct proxy_front *front = (struct proxy_front *)listener;
	struct proxy *proxy = front->proxy;
	/* Whoever wants to know why no more are taken gets through. */
	if (proxy->clients_count >= proxy->state->config->connections && front->kind != PROXY_FRONT_API) {
		proxy_count(&proxy->counters.refused_connections, 1);
		close(fd);
		return;
	}
	struct proxy_client *client = calloc(1, sizeof(*client));
	CHECK(client);
	client->proxy = proxy;
	client->kind = front->kind;
	client->service = front->service;
	client->conn.changed = client_changed;
	client->conn.expired = client_expired;
	client->conn.source.release = client_release;
	const void *address = from->ss_family == AF_INET6 ? (const void *)&((const struct sockaddr_in6 *)from)->sin6_addr
	                                                  : (const void *)&((const struct sockaddr_in *)from)->sin_addr;
	inet_ntop(from->ss_family, address, client->address, sizeof(client->address));
	if (http_conn_init(&client->conn, proxy->loop, fd, NULL) != 0) {
		close(fd);
		free(client);
		return;
	}
	if (front->kind == PROXY_FRONT_PEER)
		http_conn_tls_accept(&client->conn, proxy->mesh->server);
	else if (front->tls)
		http_conn_tls_accept(&client->conn, front->tls);
	client->greeted = !client->conn.connecting;
	client->next = proxy->clients;
	if (proxy->clients)
		proxy->clients->previous = client;
	proxy->clients = client;
	proxy->clients_count++;
	proxy_count(&proxy->counters.clients, 1);
	proxy_count(&proxy->counters.client_connections, 1);
	http_timer_set(proxy->loop, &client->conn.timer,
	               client->greeted ? proxy->state->config->timeouts.idle_ms : greeting_ms(client));
}

/* ---- The stages of a request ------------------------------------------------------------------------------------- */

/* How often this agent stands in the Via fields: a request that comes back again and again is in a loop. */
static unsigned count_own_via(const struct proxy_exchange *exchange, const struct http_head *head)
{
	struct str own = exchange->state->via_name;
	unsigned count = 0;
	for (uint32_t i = 0; i < head->fields_count; i++) {
		if (head->fields[i].id != HTTP_FIELD_VIA)
			continue;
		struct str value = http_field_value(head, &head->fields[i]);
		for (size_t at = 0; at + own.length <= value.length; at++) {
			bool starts = at > 0 && value.at[at - 1] == ' ';
			bool ends =
				at + own.length == value.length || value.at[at + own.length] == ',' || value.at[at + own.length] == ' ';
			count += starts && ends && memcmp(value.at + at, own.at, own.length) == 0;
		}
	}
	return count;
}

static void call_api(struct proxy_exchange *exchange)
{
	struct proxy_shared *shared = exchange->proxy->shared;
	struct proxy_client *client = exchange->client;
	exchange->phase = PROXY_PENDING;
	exchange->response.from = NULL;
	struct proxy_call call = {.exchange = exchange,
	                          .loop = exchange->proxy->loop,
	                          .method = http_method_name(exchange->method),
	                          .target = exchange->target,
	                          .fields = exchange->api_fields,
	                          .body = buf_str(&exchange->body),
	                          .peer = client->kind == PROXY_FRONT_PEER,
	                          .from = client->peer,
	                          .from_name = str_of(client->peer_name),
	                          .address = client->address};
	shared->api(shared->api_context, &call);
	exchange->deferred = exchange->phase == PROXY_PENDING;
}

bool proxy_collect(struct proxy_exchange *exchange)
{
	struct http_conn *conn = &exchange->client->conn;
	for (;;) {
		uint32_t body = 0, length = 0;
		enum http_progress progress = http_parser_feed(exchange->request_parser, &conn->in, &body, &length);
		if (progress == HTTP_PROGRESS_BROKEN) {
			proxy_refuse_request(exchange);
			return true;
		}
		if (length > 0)
			buf_put(&exchange->body, str_make(conn->in.at + body, length));
		if (exchange->body.length > exchange->collect_most) {
			struct proxy_problem problem = {
				.status = 413, .type = "body-too-long", .title = "The body is too long", .close = true};
			proxy_problem(exchange, &problem, "the body of such a request may have %zu bytes", exchange->collect_most);
			return true;
		}
		if (progress == HTTP_PROGRESS_DONE) {
			exchange->request.complete = true;
			exchange->collected(exchange);
			return true;
		}
		if (conn->in.start == conn->in.end)
			conn->in.start = conn->in.end = 0;
		enum http_io io = http_conn_read(conn);
		if (io != HTTP_IO_SOME)
			return io == HTTP_IO_BLOCKED;
	}
}

/* The head lies in the buffer that the body is read into next. */
static void start_api(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct str target = http_target(head);
	struct buf fields = {0};
	exchange->target = str_make(arena_copy(&exchange->arena, target.at, target.length), target.length);
	http_put_fields(&fields, head);
	exchange->api_fields = str_make(arena_copy(&exchange->arena, fields.at, fields.length), fields.length);
	buf_free(&fields);
	if (exchange->has_body) {
		exchange->phase = PROXY_COLLECTING;
		exchange->collected = call_api;
		bool message = str_equal(exchange->target, STR("/cheops/v1/replica"));
		exchange->collect_most = message ? LIMIT_REPLICA_MESSAGE_BYTES : LIMIT_API_BODY_BYTES;
		return;
	}
	exchange->request.complete = true;
	call_api(exchange);
}

/* ---- Other agents ------------------------------------------------------------------------------------------------ */

static int refuse_peer(struct proxy_exchange *exchange, const struct proxy_problem *problem, const char *detail)
{
	proxy_count(&exchange->proxy->counters.refused_peers, 1);
	proxy_problem(exchange, problem, "%s", detail);
	return -1;
}

/* Who is at the other end, by the certificate that it proved to have. The chain was checked in the handshake. */
static void meet_peer(struct proxy_client *client)
{
	struct buf der = {0};
	struct trust_certificate about;
	client->known = true;
	if (http_conn_certificate(&client->conn, &der) && trust_certificate_read(buf_str(&der), &about, NULL) == 0) {
		client->peer = about.id;
		memcpy(client->peer_name, about.name, sizeof(client->peer_name));
	}
	buf_free(&der);
}

/* Only sites that are not shut out; one that was not heard of yet has a certificate of our authority all the same. */
static int check_peer(struct proxy_exchange *exchange)
{
	struct proxy_client *client = exchange->client;
	if (!client->known)
		meet_peer(client);
	static const struct proxy_problem stranger = {.status = 403,
	                                              .type = "not-a-peer",
	                                              .title = "Only agents may connect here",
	                                              .error = "http_request_denied",
	                                              .close = true};
	static const struct proxy_problem revoked = {.status = 403,
	                                             .type = "revoked",
	                                             .title = "This site was shut out",
	                                             .error = "http_request_denied",
	                                             .close = true};
	if (client->peer == 0)
		return refuse_peer(exchange, &stranger,
		                   "this port is for other agents, who show a certificate of this mesh; a new site joins with "
		                   "`cheops site join`");
	if (site_snapshot_is_removed(exchange->proxy->mesh->sites, client->peer))
		return refuse_peer(exchange, &revoked,
		                   "the certificate of this site was revoked, or the site was removed from the mesh");
	return 0;
}

/* Is it for Cheops itself? Requests of users say with a hop header which service they are for. */
static bool is_for_api(const struct proxy_client *client, const struct http_head *head)
{
	static const struct str prefix = STR_INIT("/cheops/v1/");
	struct str target = http_target(head);
	if (client->kind == PROXY_FRONT_API)
		return true;
	return client->kind == PROXY_FRONT_PEER && !http_has(head, HTTP_FIELD_CHEOPS_HOP) &&
	       target.length >= prefix.length && memcmp(target.at, prefix.at, prefix.length) == 0;
}

static bool asks_to_join(const struct http_head *head)
{
	return str_equal(http_target(head), STR("/cheops/v1/join"));
}

/* The service that the request is addressed to: by the front that it came in by, or by what the other agent says. */
static int find_service(struct proxy_exchange *exchange, struct http_head *head)
{
	struct proxy_client *client = exchange->client;
	if (client->kind == PROXY_FRONT_PEER)
		return check_peer(exchange) != 0 || proxy_hop_check(exchange, head) != 0 ? -1 : proxy_policy_admit(exchange);
	struct http_field *hop;
	while ((hop = http_find(head, HTTP_FIELD_CHEOPS_HOP)) != NULL) {
		hop->dropped = true;
		proxy_count(&exchange->proxy->counters.forged_hops, 1);
	}
	if (client->service == SCOPE_NO_INDEX) {
		struct proxy_problem problem = {
			.status = 503, .type = "no-service", .title = "The service is no longer offered here", .close = true};
		proxy_problem(exchange, &problem, "the configuration was changed, and no service has this address any more");
		return -1;
	}
	exchange->service = &exchange->state->config->services[client->service];
	return 0;
}

/* OPTIONS and TRACE may say how far they are to go (RFC 9110, 7.6.2). The number is counted down where it stands. */
static int check_max_forwards(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct str method = http_method_name(head->method);
	struct http_field *field = http_find(head, HTTP_FIELD_MAX_FORWARDS);
	if (!field || !(str_equal(method, STR("OPTIONS")) || str_equal(method, STR("TRACE"))))
		return 0;
	char *digits = exchange->client->conn.in.at + field->value;
	bool zero = field->value_length > 0;
	for (uint32_t i = 0; i < field->value_length; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return 0; /* it says nothing */
		zero &= digits[i] == '0';
	}
	if (!zero) {
		for (uint32_t i = field->value_length; i > 0 && digits[i - 1]-- == '0'; i--)
			digits[i - 1] = '9';
		return 0;
	}
	if (str_equal(method, STR("OPTIONS"))) {
		proxy_build_answer(exchange, 200, "text/plain", STR(""), STR(""));
		return -1;
	}
	struct proxy_problem problem = {.status = 405, .type = "wrong-method", .title = "The agent does not answer TRACE"};
	proxy_problem(exchange, &problem, "the request may go no further than this agent, which shows requests to nobody");
	return -1;
}

void proxy_intercept(struct proxy_exchange *exchange, struct http_head *head)
{
	if (is_for_api(exchange->client, head)) {
		bool open = exchange->client->kind == PROXY_FRONT_API || asks_to_join(head);
		if (open || check_peer(exchange) == 0)
			start_api(exchange, head);
		return;
	}
	if (find_service(exchange, head) != 0)
		return;
	proxy_shape_note(exchange, head);
	if (http_has(head, HTTP_FIELD_MAX_FORWARDS) && check_max_forwards(exchange, head) != 0)
		return;
	if (http_has(head, HTTP_FIELD_VIA) && count_own_via(exchange, head) >= PROXY_HOPS_MOST) {
		proxy_count(&exchange->proxy->counters.loops, 1);
		struct proxy_problem problem = {.status = 508,
		                                .type = "loop",
		                                .title = "The request goes round in a loop",
		                                .error = "proxy_loop_detected",
		                                .site = exchange->state->config->site};
		proxy_problem(exchange, &problem,
		              "the request has passed this agent %d times; is an instance of %.*s configured with "
		              "the address of a front?",
		              PROXY_HOPS_MOST, STR_FMT(exchange->service->name));
		return;
	}
	if (proxy_read_scope(exchange, head) != 0)
		return;
	if (proxy_await_session(exchange, head) != 0)
		return;
	proxy_recognise(exchange, head);
	proxy_go_on(exchange, head);
}

void proxy_go_on(struct proxy_exchange *exchange, struct http_head *head)
{
	if (exchange->carrier == PROXY_CARRIER_NONE) {
		if (proxy_explain(exchange, head) != 0)
			return;
		proxy_uncarried_check(exchange);
		if (proxy_is_elsewhere(exchange) && proxy_send_on(exchange) != 0)
			return;
		if (proxy_is_divided_read(exchange)) {
			if (proxy_divide_read(exchange) != 0)
				return;
		} else if (proxy_lists_container(exchange)) {
			proxy_list_container(exchange, head);
		} else {
			proxy_list_spread(exchange, head);
		}
	} else if (proxy_evaluate(exchange, head) != 0)
		return;
	if (proxy_check_relied(exchange) == 0 && proxy_replicate(exchange, head) == 0)
		proxy_execute(exchange, head);
}
