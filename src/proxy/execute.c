/* Sending a request to the one place where it is to run: an instance of the service here, or the agent of another site. Where
 * there are several places, see trial.c; a body that is too large to be kept comes back here. */
#include "proxy/gather.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ---- The head that is sent -------------------------------------------------------------------------------------- */

/* Is the name one of those that a Connection field lists? */
static void drop_nominated(struct http_head *head, struct str list)
{
	while (list.length > 0) {
		const char *comma = memchr(list.at, ',', list.length);
		size_t length = comma ? (size_t)(comma - list.at) : list.length;
		struct str name = str_make(list.at, length);
		list = comma ? str_make(comma + 1, list.length - length - 1) : STR("");
		while (name.length && (name.at[0] == ' ' || name.at[0] == '\t'))
			name = str_make(name.at + 1, name.length - 1);
		while (name.length && (name.at[name.length - 1] == ' ' || name.at[name.length - 1] == '\t'))
			name.length--;
		for (struct http_field *field; name.length && (field = http_find_named(head, name)) != NULL;) {
			/* What frames or routes the message is not a client's to take away. */
			if (field->id == HTTP_FIELD_HOST || field->id == HTTP_FIELD_CONTENT_LENGTH)
				break;
			field->dropped = true;
		}
	}
}

void proxy_drop_hop_by_hop(struct http_head *head)
{
	static const uint32_t hop_by_hop = 1u << HTTP_FIELD_CONNECTION | 1u << HTTP_FIELD_KEEP_ALIVE |
	                                   1u << HTTP_FIELD_PROXY_CONNECTION | 1u << HTTP_FIELD_TE |
	                                   1u << HTTP_FIELD_TRANSFER_ENCODING | 1u << HTTP_FIELD_UPGRADE;
	if (!(head->present & hop_by_hop))
		return;
	for (uint32_t i = 0; i < head->fields_count; i++) {
		struct http_field *field = &head->fields[i];
		if (field->id == HTTP_FIELD_CONNECTION)
			drop_nominated(head, http_field_value(head, field));
		if (hop_by_hop >> field->id & 1)
			field->dropped = true;
	}
}

/* Does the list have an element that begins so? */
static bool list_has(struct str list, struct str prefix)
{
	for (size_t i = 0, start = 0; i <= list.length; i++) {
		if (i < list.length && list.at[i] != ',' && list.at[i] != ' ' && list.at[i] != '\t')
			continue;
		if (i - start >= prefix.length && str_equal_nocase(str_make(list.at + start, prefix.length), prefix))
			return true;
		start = i + 1;
	}
	return false;
}

/* The protocol that the client wants to change to. Not HTTP/2: its frames would pass unseen. */
static struct str wanted_protocol(const struct http_head *head)
{
	struct str protocol = STR("");
	for (uint32_t i = 0; head->upgrade && head->minor == 1 && i < head->fields_count; i++) {
		if (head->fields[i].id != HTTP_FIELD_UPGRADE)
			continue;
		if (list_has(http_field_value(head, &head->fields[i]), STR("h2")))
			return STR("");
		if (protocol.length == 0)
			protocol = http_field_value(head, &head->fields[i]);
	}
	return protocol;
}

/* Begins a field with what all fields of that name say already: what is added then stands last, where it is looked for. */
static void continue_list(struct http_head *head, enum http_field_id id, struct str name, struct buf *out)
{
	buf_put(out, name);
	buf_put(out, STR(": "));
	for (struct http_field *before; (before = http_find(head, id)) != NULL;) {
		buf_put(out, http_field_value(head, before));
		if (before->value_length)
			buf_put(out, STR(", "));
		before->dropped = true;
	}
}

/* X-Forwarded-* for those who know only these, Forwarded (RFC 7239) for the others. */
static void put_forwarded(struct proxy_exchange *exchange, struct http_head *head, struct buf *out)
{
	struct str client = str_of(exchange->client->address);
	struct http_field *host = http_find(head, HTTP_FIELD_HOST);
	bool secure = http_conn_is_tls(&exchange->client->conn);
	continue_list(head, HTTP_FIELD_X_FORWARDED_FOR, STR("X-Forwarded-For"), out);
	buf_put(out, client);
	buf_put(out, STR("\r\n"));
	if (!http_find(head, HTTP_FIELD_X_FORWARDED_PROTO))
		buf_put(out, secure ? STR("X-Forwarded-Proto: https\r\n") : STR("X-Forwarded-Proto: http\r\n"));
	if (host && !http_find(head, HTTP_FIELD_X_FORWARDED_HOST)) {
		buf_put(out, STR("X-Forwarded-Host: "));
		buf_put(out, http_field_value(head, host));
		buf_put(out, STR("\r\n"));
	}
	continue_list(head, HTTP_FIELD_FORWARDED, STR("Forwarded"), out);
	bool six = memchr(client.at, ':', client.length) != NULL;
	buf_put(out, six ? STR("for=\"[") : STR("for="));
	buf_put(out, client);
	buf_put(out, six ? STR("]\";proto=http") : STR(";proto=http"));
	buf_put(out, secure ? STR("s\r\n") : STR("\r\n"));
}

static void put_framing(struct proxy_exchange *exchange, const struct http_head *head, struct buf *out)
{
	if (head->framing == HTTP_BODY_CHUNKED) {
		exchange->request.chunked = true;
		buf_put(out, STR("Transfer-Encoding: chunked\r\n"));
	}
}

/* What the other agent is to read: the user's scope; without one, that it runs there. */
static void put_scope(const struct proxy_exchange *exchange, struct buf *out)
{
	buf_put(out, STR("Scope: "));
	if (exchange->scope.length > 0) {
		buf_put(out, exchange->scope);
	} else {
		scope_put_service(out, exchange->service->name);
		buf_put(out, STR(": "));
		scope_put_site(out, exchange->peer->name);
	}
	buf_put(out, STR("\r\n"));
}

/* Of an answer that is looked into. */
static void refuse_coding(struct http_head *head, struct buf *out)
{
	for (struct http_field *field; (field = http_find_named(head, STR("accept-encoding"))) != NULL;)
		field->dropped = true;
	buf_put(out, STR("Accept-Encoding: identity\r\n"));
}

void proxy_build_request(struct proxy_exchange *exchange, struct http_head *head, struct buf *out)
{
	struct str protocol = wanted_protocol(head);
	exchange->wants_upgrade = protocol.length > 0;
	buf_put(out, http_method_name(exchange->method));
	buf_put_char(out, ' ');
	if (exchange->peer)
		proxy_put_peer_target(exchange, out);
	else
		proxy_put_local_target(exchange, out);
	if (exchange->trial && exchange->trial->gather)
		proxy_gather_put_most(exchange, out);
	buf_put(out, STR(" HTTP/1.1\r\n"));
	if (exchange->wants_upgrade) {
		buf_put(out, STR("Connection: Upgrade\r\nUpgrade: "));
		buf_put(out, protocol);
		buf_put(out, STR("\r\n"));
	}
	proxy_drop_hop_by_hop(head);
	put_forwarded(exchange, head, out);
	if (!http_has(head, HTTP_FIELD_HOST)) {
		buf_put(out, STR("Host: "));
		buf_put(out, str_of(exchange->target_server->address.text));
		buf_put(out, STR("\r\n"));
	}
	if (exchange->peer) {
		proxy_hop_put(exchange, out);
		put_scope(exchange, out);
	} else if (exchange->scope.length) {
		proxy_carry_scope(exchange, head, out);
	}
	if (exchange->baggage.length) {
		buf_put(out, STR("baggage: "));
		buf_put(out, exchange->baggage);
		buf_put(out, STR("\r\n"));
	}
	bool looked_into =
		(exchange->trial && exchange->trial->gather) || (exchange->peer && proxy_is_for_service(exchange));
	if (looked_into)
		refuse_coding(head, out);
	http_put_fields(out, head);
	put_framing(exchange, head, out);
	buf_put(out, buf_str(&exchange->state->via));
	buf_put(out, STR("\r\n"));
}

static const char no_instance_error[] = "destination_unavailable";

/* ---- Which server ----------------------------------------------------------------------------------------------- */

/* The instance with the fewest requests under way, of those that are not known to be down; they take turns. */
struct proxy_target *proxy_choose_instance(struct proxy_exchange *exchange)
{
	struct proxy_backend *backend = &exchange->state->backends[exchange->service->index];
	uint32_t count = exchange->service->instances_count;
	struct proxy_target *best = NULL;
	backend->turn++;
	for (uint32_t i = 0; i < count; i++) {
		struct proxy_target *instance = &backend->instances[(backend->turn + i) % count];
		if (!instance->down && (!best || instance->active < best->active))
			best = instance;
	}
	return best;
}

static void refuse_no_instance(struct proxy_exchange *exchange)
{
	struct str site = exchange->state->config->site;
	struct proxy_problem problem = {.status = 503,
	                                .type = "no-instance",
	                                .title = "No instance of the service can be reached",
	                                .error = no_instance_error,
	                                .site = site,
	                                .close = !exchange->request.complete && exchange->has_body};
	/* One reason is enough; often it is the same for all. */
	const struct proxy_backend *backend = &exchange->state->backends[exchange->service->index];
	uint32_t count = exchange->service->instances_count, last = 0;
	while (last + 1 < count && backend->instances[last].why[0] == '\0')
		last++;
	const char *why = backend->instances[last].why;
	proxy_problem(exchange, &problem, "none of the %u instance%s of %.*s at %.*s can be reached%s%s%s%s", count,
	              count == 1 ? "" : "s", STR_FMT(exchange->service->name), STR_FMT(site), *why ? "; " : "",
	              *why ? backend->instances[last].address.text : "", *why ? ": " : "", why);
}

static void refuse_unreachable(struct proxy_exchange *exchange, const char *why, bool timeout, const char *error)
{
	struct str site = exchange->peer->name;
	struct proxy_problem problem = {.status = timeout ? 504 : 502,
	                                .type = "site-unreachable",
	                                .title = "A site cannot be reached",
	                                .error = error,
	                                .site = site,
	                                .close = !exchange->request.complete && exchange->has_body};
	proxy_problem(exchange, &problem, "the agent of %.*s (%s) cannot be reached: %s", STR_FMT(site),
	              exchange->peer->target.address.text, why);
}

const char *proxy_error_of(int error)
{
	return error == ECONNREFUSED ? "connection_refused"
	       : error == ETIMEDOUT  ? "connection_timeout"
	                             : "destination_unavailable";
}

/* No connection to the place comes about, and nothing of the request was sent. True: there is another place to try. */
static bool site_failed(struct proxy_exchange *exchange, const char *why, bool timeout, const char *error)
{
	if (exchange->trial)
		return proxy_trial_move(exchange, error);
	if (exchange->peer)
		refuse_unreachable(exchange, why, timeout, error);
	else
		refuse_no_instance(exchange);
	return false;
}

/* What the failure says of the server. A peer is judged by its path (health.c), not left out like an instance. */
static void note_failure(struct proxy_exchange *exchange, struct proxy_target *target, bool connecting, bool refused)
{
	if (!exchange->peer) {
		if (connecting)
			proxy_target_failed(target);
		return;
	}
	if (connecting)
		proxy_count(&exchange->proxy->counters.upstream_failures, 1);
	proxy_peer_failed(exchange->peer, refused);
}

/* Goes on to other instances while one cannot be connected, and to other places where there are any. */
void proxy_execute_start(struct proxy_exchange *exchange, bool fresh)
{
	struct err err;
	for (;;) {
		struct proxy_target *target = exchange->peer ? &exchange->peer->target : proxy_choose_instance(exchange);
		bool left = target != NULL;
		if (left) {
			exchange->target_server = target;
			exchange->attempts++;
			if (proxy_target_take(target, exchange, fresh, &err) == 0)
				break;
			note_failure(exchange, target, true, false);
			left = !exchange->peer && exchange->attempts <= exchange->service->instances_count;
		}
		if (!left && !site_failed(exchange, err.text, false, exchange->peer ? "connection_refused" : no_instance_error))
			return;
	}
	struct proxy_link *link = exchange->link;
	exchange->request.to = &link->conn;
	exchange->response.from = &link->conn;
	http_parser_start(exchange->response_parser, exchange->method);
	exchange->phase = link->conn.connecting ? PROXY_CONNECTING : PROXY_RUNNING;
	if (!link->conn.connecting)
		http_timer_clear(exchange->proxy->loop, &link->conn.timer); /* while the request is sent, its client's counts */
}

void proxy_execute(struct proxy_exchange *exchange, struct http_head *head)
{
	if (exchange->trial) {
		if (exchange->trial->gather && proxy_gather_read(exchange, head) != 0)
			return;
		proxy_trial_begin(exchange, head);
		return;
	}
	if (exchange->peer) {
		proxy_peer_used(exchange->peer);
		proxy_count(&exchange->proxy->counters.forwarded, 1);
		exchange->target_server = &exchange->peer->target;
	} else {
		if (exchange->lease)
			proxy_uncarried_begin(exchange, head);
		exchange->target_server = &exchange->state->backends[exchange->service->index].instances[0];
	}
	proxy_build_request(exchange, head, &exchange->request.head);
	if (!proxy_stream_prime(&exchange->request)) {
		proxy_refuse_request(exchange);
		return;
	}
	proxy_execute_start(exchange, false);
}

/* ---- What failed ------------------------------------------------------------------------------------------------ */

/* Can the request be sent once more, because nothing of it can have been acted on? Either nothing was sent, or it was sent
 * on a connection that the server had been closing, and asks for nothing that would matter if done twice. */
static bool may_repeat(const struct proxy_exchange *exchange, bool timeout)
{
	const struct proxy_link *link = exchange->link;
	if (exchange->peer && exchange->peer->shut_out)
		return false;
	if (exchange->request.sent_bytes == 0)
		return true;
	return link->reused && !timeout && link->conn.in.end == 0 && http_method_is_safe(exchange->method) &&
	       !exchange->has_body;
}

static void answer_failed(struct proxy_exchange *exchange, bool timeout, const char *reason)
{
	struct str site = exchange->peer ? exchange->peer->name : exchange->state->config->site;
	const char *why = timeout ? "did not answer in time" : "closed the connection before it answered";
	struct proxy_problem problem = {.status = timeout ? 504 : 502,
	                                .type = timeout ? "no-answer" : "broken-answer",
	                                .title =
	                                    timeout ? "No answer in time" : "The connection ended before an answer came",
	                                .error = timeout ? "http_response_timeout" : "connection_terminated",
	                                .site = site,
	                                .close = !exchange->request.complete && exchange->has_body};
	proxy_problem(exchange, &problem, "%.*s at %.*s %s%s%s%s", STR_FMT(exchange->service->name), STR_FMT(site), why,
	              *reason ? " (" : "", reason, *reason ? ")" : "");
}

void proxy_execute_failed(struct proxy_exchange *exchange, bool timeout)
{
	struct proxy_link *link = exchange->link;
	bool connecting = exchange->phase == PROXY_CONNECTING;
	bool repeat = may_repeat(exchange, timeout);
	int error = link->conn.error;
	char reason[PROXY_WHY_BYTES] = "";
	if (exchange->peer && exchange->peer->shut_out)
		snprintf(reason, sizeof(reason), "the site was shut out meanwhile");
	else if (timeout && !connecting && link->told)
		snprintf(reason, sizeof(reason), "the path to the site went down meanwhile");
	else if (error)
		snprintf(reason, sizeof(reason), "%s", http_conn_error_text(&link->conn));
	struct proxy_target *target = link->target;
	if (connecting || (!timeout && !link->reused))
		note_failure(exchange, target, connecting, connecting && !timeout && error == ECONNREFUSED);
	proxy_link_give(link, false);
	exchange->link = NULL;
	exchange->reached |= exchange->request.sent_bytes > 0;
	if (!connecting)
		proxy_count(&exchange->proxy->counters.bad_responses, !repeat);
	uint32_t most = exchange->peer ? 2 : exchange->service->instances_count + 1;
	if (connecting && exchange->peer) {
		if (site_failed(exchange, timeout ? "no connection in time" : reason, timeout,
		                timeout ? "connection_timeout" : proxy_error_of(error)))
			proxy_execute_start(exchange, false);
	} else if (repeat && exchange->attempts <= most) {
		proxy_count(&exchange->proxy->counters.retries, 1);
		exchange->request.head_sent = 0;
		exchange->request_over = false;
		exchange->request.sent_bytes = 0;
		proxy_execute_start(exchange, true);
	} else if (connecting) {
		if (site_failed(exchange, "", timeout, no_instance_error))
			proxy_execute_start(exchange, false);
	} else {
		answer_failed(exchange, timeout, reason);
	}
}
