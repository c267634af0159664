/* Clients: connections that come in by a front, and the requests on them, one after the other. */
#include "proxy/proxy_int.h"

#include "base/check.h"

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
		shutdown(conn->source.fd, SHUT_WR);
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
	http_timer_set(conn->loop, &conn->timer, client->proxy->state->config->timeouts.header_ms);
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

static void client_changed(struct http_conn *conn)
{
	proxy_client_run((struct proxy_client *)conn);
}

static void client_expired(struct http_conn *conn)
{
	struct proxy_client *client = (struct proxy_client *)conn;
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
	client->next = proxy->clients;
	if (proxy->clients)
		proxy->clients->previous = client;
	proxy->clients = client;
	proxy->clients_count++;
	proxy_count(&proxy->counters.clients, 1);
	proxy_count(&proxy->counters.client_connections, 1);
	http_timer_set(proxy->loop, &client->conn.timer, proxy->state->config->timeouts.idle_ms);
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

static void call_api(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct proxy_shared *shared = exchange->proxy->shared;
	exchange->phase = PROXY_PENDING;
	exchange->response.from = NULL;
	exchange->close_client |= exchange->has_body;
	if (!exchange->has_body)
		exchange->request.complete = true;
	struct proxy_call call = {.exchange = exchange,
	                          .loop = exchange->proxy->loop,
	                          .method = http_method_name(head->method),
	                          .target = http_target(head)};
	shared->api(shared->api_context, &call);
	exchange->deferred = exchange->phase == PROXY_PENDING;
}

/* The service that the request is addressed to: by the front that it came in by, or by what the other agent says. */
static int find_service(struct proxy_exchange *exchange, struct http_head *head)
{
	struct proxy_client *client = exchange->client;
	if (client->kind == PROXY_FRONT_PEER)
		return proxy_hop_check(exchange, head);
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
	if (exchange->client->kind == PROXY_FRONT_API) {
		call_api(exchange, head);
		return;
	}
	if (find_service(exchange, head) != 0)
		return;
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
	if (exchange->carrier == PROXY_CARRIER_NONE) {
		if (proxy_explain(exchange, head) != 0)
			return;
		proxy_uncarried_check(exchange);
	} else if (proxy_evaluate(exchange, head) != 0)
		return;
	proxy_execute(exchange, head);
}
