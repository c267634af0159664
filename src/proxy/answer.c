/* Answers: responses that are passed on, and those of our own, which are problem documents (RFC 9457).
 *
 * A response that came by a scope says what was done for it: Proxy-Status (RFC 9209) names each agent and where it turned
 * to, site by site, Server-Timing how long each took. Cheops-Outcome tells another agent, and nobody else, whether a service
 * may have seen the request: it decides whether the request may run elsewhere.
 */
#include "proxy/proxy_int.h"

#include <stdio.h>
#include <time.h>

/* A string of RFC 8941: quotes and backslashes are escaped, what is not ASCII becomes `?`. */
void proxy_put_quoted(struct buf *out, struct str text)
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

/* One thing that this agent did for the request. */
struct deed {
	struct str site; /* that it turned to; "": none */
	unsigned status; /* received; 0: none */
	const char *error;
	const char *details;
};

static void put_deed(struct proxy_exchange *exchange, struct buf *out, const struct deed *deed)
{
	proxy_put_quoted(out, exchange->state->config->site);
	if (deed->site.length) {
		buf_put(out, STR("; next-hop="));
		proxy_put_quoted(out, deed->site);
	}
	if (deed->status) {
		buf_put(out, STR("; received-status="));
		buf_put_number(out, deed->status, 3);
	}
	if (deed->error) {
		buf_put(out, STR("; error="));
		buf_put(out, str_of(deed->error));
	}
	if (deed->details) {
		buf_put(out, STR("; details="));
		proxy_put_quoted(out, str_of(deed->details));
	}
}

/* Is it the attempt whose answer is passed on, or who failed last where nothing is kept? */
static bool is_answer(const struct proxy_attempt *attempt)
{
	bool settled = attempt->exchange->trial->streams && attempt->state == PROXY_ATTEMPT_LIVE;
	return attempt->state == PROXY_ATTEMPT_WON || settled;
}

/* What was tried for a request that may run at several sites, without what gave the answer; at most so many. */
static uint32_t list_deeds(const struct proxy_trial *trial, struct deed deeds[LIMIT_PROXY_TOLD_ATTEMPTS])
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < trial->schedule.count && count < LIMIT_PROXY_TOLD_ATTEMPTS / 2; i++) {
		const struct proxy_candidate *candidate = &trial->schedule.candidates[i];
		if (candidate->state == PROXY_CANDIDATE_SKIPPED)
			deeds[count++] = (struct deed){
				.site = candidate->name, .error = "destination_unavailable", .details = "known to be down; not tried"};
	}
	for (const struct proxy_attempt *attempt = trial->first; attempt && count < LIMIT_PROXY_TOLD_ATTEMPTS;
	     attempt = attempt->next) {
		bool given_up = attempt->state == PROXY_ATTEMPT_CANCELLED;
		if (!is_answer(attempt))
			deeds[count++] = (struct deed){.site = attempt->candidate->name,
			                               .status = attempt->status,
			                               .error = attempt->error,
			                               .details = given_up ? "given up" : attempt->details};
	}
	return count;
}

/* Each attempt is a member of the list; what the answer came from, or the failure itself, is the last. */
static void put_proxy_status(struct proxy_exchange *exchange, struct buf *out, const struct deed *last)
{
	buf_put(out, STR("Proxy-Status: "));
	if (exchange->trial) {
		struct deed deeds[LIMIT_PROXY_TOLD_ATTEMPTS];
		uint32_t count = list_deeds(exchange->trial, deeds);
		for (uint32_t i = 0; i < count; i++) {
			put_deed(exchange, out, &deeds[i]);
			if (i + 1 < count || last)
				buf_put(out, STR(", "));
		}
	}
	if (last)
		put_deed(exchange, out, last);
	buf_put(out, STR("\r\n"));
}

/* A choice that was to be a race, and was none. */
static void put_warning(const struct proxy_exchange *exchange, struct buf *out)
{
	const struct proxy_trial *trial = exchange->trial;
	if (!trial || trial->safe || !trial->schedule.races)
		return;
	buf_put(out, STR("Warning: 299 - \"the sites of `|` were tried one after the other: "));
	if (http_method_is_safe(exchange->method))
		buf_put(out, STR("the request is too large to be kept, or changes the protocol"));
	else
		buf_put(out, http_method_name(exchange->method));
	buf_put(out, http_method_is_safe(exchange->method) ? STR("\"\r\n") : STR(" is not safe to run twice\"\r\n"));
}

static void put_duration(struct buf *out, uint64_t us)
{
	buf_put(out, STR(";dur="));
	buf_put_number(out, us / 1000, 1);
	buf_put_char(out, '.');
	buf_put_number(out, us % 1000, 3);
}

/* This agent; and before it the sites that it tried in vain. */
static void put_server_timing(struct proxy_exchange *exchange, struct buf *out)
{
	buf_put(out, STR("Server-Timing: "));
	uint32_t told = 0;
	for (const struct proxy_attempt *attempt = exchange->trial ? exchange->trial->first : NULL;
	     attempt && told < LIMIT_PROXY_TOLD_ATTEMPTS; attempt = attempt->next) {
		if (is_answer(attempt) || attempt->ended_us < attempt->started_us)
			continue;
		proxy_put_metric(out, attempt->candidate->name);
		put_duration(out, attempt->ended_us - attempt->started_us);
		bool part = exchange->trial->gather && attempt->state != PROXY_ATTEMPT_FAILED;
		buf_put(out, attempt->state == PROXY_ATTEMPT_CANCELLED ? STR(";desc=\"given up\", ")
		             : part                                    ? STR(", ")
		                                                       : STR(";desc=failed, "));
		told++;
	}
	buf_put(out, buf_str(&exchange->state->metric));
	put_duration(out, http_loop_now_us(exchange->proxy->loop) - exchange->started_us);
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
static void put_framing(struct proxy_exchange *exchange, const struct http_head *head, bool spliced, struct buf *out)
{
	bool unknown = spliced || head->framing == HTTP_BODY_CHUNKED || head->framing == HTTP_BODY_UNTIL_CLOSE;
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

/* Between agents only, and never a service's to say. */
static void drop_outcome(struct http_head *head)
{
	for (struct http_field *said; (said = http_find(head, HTTP_FIELD_CHEOPS_OUTCOME)) != NULL;)
		said->dropped = true;
}

/* Of which operations the part is that is read. */
static void put_standing(struct proxy_exchange *exchange, struct buf *out)
{
	struct cross_standing standing =
		engine_standing(exchange->proxy->shared->engine, exchange->resource->found.id, exchange->asked_at);
	buf_put(out, STR("Cheops-Gather: part;"));
	cross_standing_put(&standing, out);
	buf_put(out, STR("\r\n"));
}

/* What another agent, that puts the answer together with others, has to know of it; and nobody else. */
static void put_gathered(struct proxy_exchange *exchange, struct http_head *head, struct buf *out)
{
	const struct proxy_resource *resource = exchange->resource;
	bool chosen = resource && glue_type_identity(resource->match.type) == GLUE_CHOSEN;
	bool replica = resource && resource->known && (resource->found.by_meta_id || chosen) && head->status <= 299;
	for (struct http_field *said; (said = http_find_named(head, STR("cheops-gather"))) != NULL;)
		said->dropped = true;
	if (!exchange->gathered)
		return; /* it was told to us */
	if (exchange->marks)
		buf_put(out, STR("Cheops-Gather: marks\r\n"));
	else if (replica && resource->effect == GLUE_READ && resource->found.span != REPLICA_DIVIDED)
		buf_put(out, STR("Cheops-Gather: replica\r\n"));
	else if (replica && resource->effect == GLUE_READ)
		put_standing(exchange, out);
}

/* The answer of this site alone, where others have something to say as well. */
static void put_partial(struct proxy_exchange *exchange, unsigned status, struct buf *out)
{
	if (exchange->partial.length == 0 || status >= 400)
		return;
	buf_put(out, STR("Cheops-Partial: "));
	buf_put(out, exchange->partial);
	buf_put(out, STR("\r\n"));
	proxy_count(&exchange->proxy->counters.partial, 1);
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
	bool spliced = final && exchange->resource && proxy_splice_answer(exchange, head);
	put_status_line(out, head);
	proxy_drop_hop_by_hop(head);
	if (length && (head->status < 200 || head->status == 204)) /* RFC 9110, 8.6 */
		length->dropped = true;
	if (http_has(head, HTTP_FIELD_CHEOPS_OUTCOME))
		drop_outcome(head);
	if (final && (exchange->gathered || (exchange->trial && exchange->trial->gather)))
		put_gathered(exchange, head, out);
	http_put_fields(out, head);
	if (protocol.length) {
		buf_put(out, STR("Connection: Upgrade\r\nUpgrade: "));
		buf_put(out, protocol);
		buf_put(out, STR("\r\n"));
	}
	if (final) {
		put_framing(exchange, head, spliced, out);
		proxy_put_relied(exchange, head->status, head, out);
		if (exchange->lease || exchange->client->kind == PROXY_FRONT_PEER) {
			struct str site = exchange->peer ? exchange->peer->name : exchange->state->config->site;
			put_proxy_status(exchange, out, &(struct deed){.site = site, .status = head->status});
			put_server_timing(exchange, out);
			put_warning(exchange, out);
		}
		put_partial(exchange, head->status, out);
		buf_put(out, buf_str(&exchange->state->via));
	}
	buf_put(out, STR("\r\n"));
}

void proxy_put_deeds(struct proxy_exchange *exchange, struct buf *out)
{
	put_proxy_status(exchange, out, NULL);
	put_server_timing(exchange, out);
}

void proxy_build_merged(struct proxy_exchange *exchange, unsigned status, struct str reason, struct str fields)
{
	struct proxy_stream *stream = &exchange->response;
	struct buf *out = &stream->head;
	bool head_only = http_method_is_head(exchange->method);
	exchange->response_head = true;
	stream->first = stream->count = 0;
	buf_printf(out, "HTTP/1.1 %u %.*s\r\n", status, STR_FMT(reason));
	buf_put(out, fields);
	put_framing(exchange, &(struct http_head){.framing = HTTP_BODY_NONE}, !head_only, out);
	buf_put(out, buf_str(&exchange->state->via));
	buf_put(out, STR("\r\n"));
	stream->complete = head_only;
	exchange->phase = head_only ? PROXY_ANSWERING : PROXY_MERGING;
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

static void build_answer(struct proxy_exchange *exchange, unsigned status, struct str content_type, struct str fields,
                         struct str body)
{
	struct proxy_stream *stream = &exchange->response;
	struct buf *out = &stream->head;
	exchange->phase = PROXY_ANSWERING;
	exchange->response_head = true;
	stream->complete = true;
	stream->chunked = false;
	stream->first = stream->count = 0;
	buf_printf(out, "HTTP/1.1 %u %s\r\nContent-Type: %.*s\r\nContent-Length: %zu\r\n", status, http_reason(status),
	           STR_FMT(content_type), body.length);
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

/* HTTP/1.0 knows no chunks: its end is that of the connection. */
void proxy_build_feed(struct proxy_exchange *exchange, const char *content_type)
{
	struct proxy_stream *stream = &exchange->response;
	struct buf *out = &stream->head;
	exchange->phase = PROXY_FEEDING;
	exchange->response_head = true;
	stream->complete = false;
	stream->chunked = exchange->minor > 0;
	stream->first = stream->count = 0;
	exchange->close_client |= !stream->chunked;
	buf_printf(out, "HTTP/1.1 200 %s\r\nContent-Type: %s\r\nCache-Control: no-store\r\n", http_reason(200),
	           content_type);
	put_date(out);
	if (stream->chunked)
		buf_put(out, STR("Transfer-Encoding: chunked\r\n"));
	if (exchange->close_client)
		buf_put(out, STR("Connection: close\r\n"));
	buf_put(out, STR("\r\n"));
}

/* The head, up to what frames the body. */
static void begin_whole(struct proxy_exchange *exchange, unsigned status)
{
	struct proxy_stream *stream = &exchange->response;
	exchange->phase = PROXY_ANSWERING;
	exchange->response_head = true;
	stream->complete = true;
	stream->chunked = false;
	stream->first = stream->count = 0;
	buf_printf(&stream->head, "HTTP/1.1 %u %s\r\n", status, http_reason(status));
}

static void end_whole(struct proxy_exchange *exchange, struct str fields)
{
	struct buf *out = &exchange->response.head;
	buf_put(out, fields);
	if (exchange->close_client)
		buf_put(out, STR("Connection: close\r\n"));
	else if (exchange->minor == 0)
		buf_put(out, STR("Connection: keep-alive\r\n"));
	buf_put(out, buf_str(&exchange->state->via));
	buf_put(out, STR("\r\n"));
}

void proxy_build_whole(struct proxy_exchange *exchange, unsigned status, struct str fields, struct str body)
{
	begin_whole(exchange, status);
	if (status != 204 && status != 304)
		buf_printf(&exchange->response.head, "Content-Length: %zu\r\n", body.length);
	end_whole(exchange, fields);
	buf_put(&exchange->response.head, body);
}

void proxy_build_file(struct proxy_exchange *exchange, unsigned status, struct str fields)
{
	begin_whole(exchange, status);
	end_whole(exchange, fields);
}

void proxy_build_answer(struct proxy_exchange *exchange, unsigned status, const char *content_type, struct str fields,
                        struct str body)
{
	if (!exchange->request.complete && !exchange->has_body && exchange->phase != PROXY_READING)
		exchange->request.complete = true;
	exchange->close_client |= exchange->has_body && !exchange->request.complete;
	build_answer(exchange, status, str_of(content_type), fields, body);
}

static void put_member(struct buf *out, const char *name, struct str value)
{
	buf_printf(out, ",\"%s\":", name);
	buf_put_json(out, value);
}

static void put_deed_json(struct buf *out, const struct deed *deed)
{
	buf_put(out, STR("{\"site\":"));
	buf_put_json(out, deed->site);
	if (deed->error)
		buf_printf(out, ",\"error\":\"%s\"", deed->error);
	if (deed->status)
		buf_printf(out, ",\"status\":%u", deed->status);
	if (deed->details)
		put_member(out, "details", str_of(deed->details));
	buf_put_char(out, '}');
}

/* The sites that were tried. The one that the problem is at is the last, unless it is an attempt that was listed. */
static bool is_listed(const struct proxy_exchange *exchange, const struct proxy_problem *problem)
{
	return problem->site.length == 0 || (exchange->trial && !exchange->trial->streams);
}

static void put_tried(struct proxy_exchange *exchange, struct buf *out, const struct proxy_problem *problem)
{
	struct deed deeds[LIMIT_PROXY_TOLD_ATTEMPTS + 1];
	uint32_t count = exchange->trial ? list_deeds(exchange->trial, deeds) : 0;
	if (!is_listed(exchange, problem))
		deeds[count++] = (struct deed){.site = problem->site, .error = problem->error ? problem->error : ""};
	for (uint32_t i = 0; i < count; i++) {
		buf_put(out, i == 0 ? STR(",\"tried\":[") : STR(","));
		put_deed_json(out, &deeds[i]);
	}
	if (count > 0)
		buf_put_char(out, ']');
}

static void put_fields(struct proxy_exchange *exchange, struct buf *out, const struct proxy_problem *problem)
{
	struct deed failure = {.site = problem->site, .error = problem->error};
	bool tried = exchange->trial && exchange->trial->first;
	if (tried || problem->error)
		put_proxy_status(exchange, out, tried && is_listed(exchange, problem) ? NULL : &failure);
	put_warning(exchange, out);
	if (exchange->client->kind != PROXY_FRONT_PEER)
		return;
	bool reached = exchange->reached || exchange->request.sent_bytes > 0;
	buf_put(out, reached ? STR("Cheops-Outcome: unknown\r\n") : STR("Cheops-Outcome: not-run\r\n"));
}

void proxy_problem(struct proxy_exchange *exchange, const struct proxy_problem *problem, const char *format, ...)
{
	struct buf detail = {0}, body = {0}, fields = {0};
	if (exchange->trial)
		proxy_trial_stop(exchange);
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&detail, format, arguments);
	va_end(arguments);
	buf_printf(&body, "{\"type\":\"urn:cheops:problem:%s\",\"title\":\"%s\",\"status\":%u", problem->type,
	           problem->title, problem->status);
	put_member(&body, "detail", buf_str(&detail));
	if (exchange->service)
		put_member(&body, "service", exchange->service->name);
	if (problem->site.length)
		put_member(&body, "site", problem->site);
	put_tried(exchange, &body, problem);
	if (problem->diag) {
		put_member(&body, "scope", exchange->scope_text);
		buf_put(&body, STR(",\"scope_error\":"));
		scope_diag_json(&body, problem->diag);
	}
	buf_put(&body, problem->members);
	buf_put(&body, STR("}\n"));
	put_fields(exchange, &fields, problem);
	if (problem->retry_after_s)
		buf_printf(&fields, "Retry-After: %u\r\n", problem->retry_after_s);
	/* A request without a body is over, whatever became of it. */
	bool parsed = !problem->close && !exchange->has_body;
	exchange->request.complete |= parsed;
	exchange->close_client |= problem->close || (exchange->has_body && !exchange->request.complete);
	if (exchange->link) {
		proxy_link_give(exchange->link, false);
		exchange->link = NULL;
	}
	proxy_shape_blame(exchange, problem->status, problem->site, buf_str(&detail));
	struct glue_failure failure = {.status = problem->status,
	                               .type = str_of(problem->type),
	                               .title = str_of(problem->title),
	                               .detail = buf_str(&detail)};
	struct buf shaped = {0};
	struct str content_type;
	if (proxy_shape_put(exchange, &failure, &fields, &shaped, &content_type))
		build_answer(exchange, problem->status, content_type, buf_str(&fields), buf_str(&shaped));
	else
		build_answer(exchange, problem->status, STR("application/problem+json"), buf_str(&fields), buf_str(&body));
	buf_free(&shaped);
	buf_free(&detail);
	buf_free(&body);
	buf_free(&fields);
}
