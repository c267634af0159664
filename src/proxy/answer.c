/* Answers: responses that are passed on, and those of our own, which are problem documents (RFC 9457).
 *
 * A response that came by a scope says what was done for it: Proxy-Status (RFC 9209) names each agent and where it turned
 * to, Server-Timing how long each took.
 */
#include "proxy/proxy_int.h"

#include <stdio.h>
#include <time.h>

/* A string of RFC 8941: quotes and backslashes are escaped, what is not ASCII becomes `?`. */
static void put_quoted(struct buf *out, struct str text)
{
	buf_put_char(out, '"');
	for (size_t i = 0, run = 0; i <= text.length; i++) {
		unsigned char c = i < text.length ? (unsigned char)text.at[i] : '"';
		if (c >= 0x20 && c < 0x7f && c != '"' && c != '\\')
			continue;
		buf_put(out, str_make(text.at + run, i - run));
		run = i + 1;
		if (i == text.length)
			break;
		if (c == '"' || c == '\\')
			buf_put_char(out, '\\');
		buf_put_char(out, (char)(c >= 0x20 && c < 0x7f ? c : '?'));
	}
	buf_put_char(out, '"');
}

static void put_proxy_status(struct proxy_exchange *exchange, struct buf *out, unsigned received, const char *error,
                             struct str site)
{
	const struct proxy_config *config = exchange->state->config;
	buf_put(out, STR("Proxy-Status: "));
	put_quoted(out, config->site);
	if (site.length) {
		buf_put(out, STR("; next-hop="));
		put_quoted(out, site);
	}
	if (received) {
		buf_put(out, STR("; received-status="));
		buf_put_number(out, received, 3);
	}
	if (error) {
		buf_put(out, STR("; error="));
		buf_put(out, str_of(error));
	}
	buf_put(out, STR("\r\n"));
}

static void put_server_timing(struct proxy_exchange *exchange, struct buf *out)
{
	uint64_t us = http_loop_now_us(exchange->proxy->loop) - exchange->started_us;
	buf_put(out, STR("Server-Timing: "));
	buf_put(out, buf_str(&exchange->state->metric));
	buf_put(out, STR(";dur="));
	buf_put_number(out, us / 1000, 1);
	buf_put_char(out, '.');
	buf_put_number(out, us % 1000, 3);
	buf_put(out, STR("\r\n"));
}

/* ---- Passed on -------------------------------------------------------------------------------------------------- */

static void put_status_line(struct buf *out, const struct http_head *head)
{
	buf_put(out, STR("HTTP/1.1 "));
	buf_put_number(out, head->status, 3);
	buf_put_char(out, ' ');
	buf_put(out, str_make(head->base + head->reason, head->reason_length));
	buf_put(out, STR("\r\n"));
}

/* How the body is framed towards the client; a length that is known stands in the fields already. */
static void put_framing(struct proxy_exchange *exchange, const struct http_head *head, struct buf *out)
{
	bool unknown = head->framing == HTTP_BODY_CHUNKED || head->framing == HTTP_BODY_UNTIL_CLOSE;
	if (unknown && exchange->minor == 1) {
		exchange->response.chunked = true;
		buf_put(out, STR("Transfer-Encoding: chunked\r\n"));
	} else if (unknown) {
		exchange->close_client = true;
	}
	/* The rest of the request will not be read: the connection cannot go on. */
	if (!exchange->request.complete)
		exchange->close_client = true;
	if (exchange->close_client)
		buf_put(out, STR("Connection: close\r\n"));
	else if (exchange->minor == 0)
		buf_put(out, STR("Connection: keep-alive\r\n"));
}

void proxy_build_response(struct proxy_exchange *exchange, struct http_head *head)
{
	struct buf *out = &exchange->response.head;
	bool final = head->status >= 200;
	/* 426 names the protocol that the client has to change to. */
	bool switches = head->status == 101 || head->status == 426;
	struct http_field *upgrade = switches ? http_find(head, HTTP_FIELD_UPGRADE) : NULL;
	struct http_field *length = http_find(head, HTTP_FIELD_CONTENT_LENGTH);
	struct str protocol = upgrade ? http_field_value(head, upgrade) : STR("");
	put_status_line(out, head);
	proxy_drop_hop_by_hop(head);
	if (length && (head->status < 200 || head->status == 204)) /* RFC 9110, 8.6 */
		length->dropped = true;
	http_put_fields(out, head);
	if (protocol.length) {
		buf_put(out, STR("Connection: Upgrade\r\nUpgrade: "));
		buf_put(out, protocol);
		buf_put(out, STR("\r\n"));
	}
	if (final) {
		put_framing(exchange, head, out);
		if (exchange->lease || exchange->client->kind == PROXY_FRONT_PEER) {
			struct str site = exchange->peer ? exchange->peer->name : exchange->state->config->site;
			put_proxy_status(exchange, out, head->status, NULL, site);
			put_server_timing(exchange, out);
		}
		buf_put(out, buf_str(&exchange->state->via));
	}
	buf_put(out, STR("\r\n"));
}

/* ---- Our own ---------------------------------------------------------------------------------------------------- */

static void put_date(struct buf *out)
{
	char date[64];
	time_t now = time(NULL);
	struct tm parts;
	gmtime_r(&now, &parts);
	size_t length = strftime(date, sizeof(date), "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
	buf_put(out, str_make(date, length));
}

static void build_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                         struct str body)
{
	struct proxy_stream *stream = &exchange->response;
	struct buf *out = &stream->head;
	exchange->phase = PROXY_ANSWERING;
	exchange->response_head = true;
	stream->complete = true;
	stream->chunked = false;
	stream->first = stream->count = 0;
	buf_printf(out, "HTTP/1.1 %u %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\n", status, http_reason(status),
	           content_type, body.length);
	put_date(out);
	buf_put(out, fields);
	if (exchange->close_client)
		buf_put(out, STR("Connection: close\r\n"));
	else if (exchange->minor == 0)
		buf_put(out, STR("Connection: keep-alive\r\n"));
	buf_put(out, STR("\r\n"));
	if (!http_method_is_head(exchange->method))
		buf_put(out, body);
}

void proxy_build_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                        struct str body)
{
	if (!exchange->request.complete && !exchange->has_body && exchange->phase != PROXY_READING)
		exchange->request.complete = true;
	exchange->close_client |= exchange->has_body && !exchange->request.complete;
	build_answer(exchange, status, content_type, fields, body);
}

static void put_member(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, ",\"%s\":", name);
	buf_put_json(out, value);
}

void proxy_problem(struct proxy_exchange *exchange, const struct proxy_problem *problem, const char *format, ...)
{
	struct buf detail = {0}, body = {0}, fields = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&detail, format, arguments);
	va_end(arguments);
	buf_printf(&body, "{\"type\":\"urn:cheops:problem:%s\",\"title\":\"%s\",\"status\":%u", problem->type,
	           problem->title, problem->status);
	put_member(&body, "detail", buf_str(&detail));
	if (exchange->service)
		put_member(&body, "service", exchange->service->name);
	if (problem->site.length) {
		put_member(&body, "site", problem->site);
		buf_put(&body, STR(",\"tried\":[{\"site\":"));
		buf_put_json(&body, problem->site);
		buf_printf(&body, ",\"error\":\"%s\"}]", problem->error ? problem->error : "");
	}
	if (problem->diag) {
		put_member(&body, "scope", exchange->scope_text);
		buf_put(&body, STR(",\"scope_error\":"));
		scope_diag_json(&body, problem->diag);
	}
	buf_put(&body, STR("}\n"));
	if (problem->error)
		put_proxy_status(exchange, &fields, 0, problem->error, problem->site);
	/* A request without a body is over, whatever became of it. */
	bool parsed = !problem->close && !exchange->has_body;
	exchange->request.complete |= parsed;
	exchange->close_client |= problem->close || (exchange->has_body && !exchange->request.complete);
	if (exchange->link) {
		proxy_link_give(exchange->link, false);
		exchange->link = NULL;
	}
	build_answer(exchange, problem->status, "application/problem+json", buf_str(&fields), buf_str(&body));
	buf_free(&detail);
	buf_free(&body);
	buf_free(&fields);
}
