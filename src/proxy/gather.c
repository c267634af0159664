/* Reads with `&` (DESIGN 8): the request runs at all of the sites, and their answers become one. docs/aggregation.md has the rules.
 *
 * The happy path, of a list:
 *   1. The plan gives the sites, the description where the list stands in an answer.
 *   2. TRYING: all sites are asked at once, each as an attempt (attempt.c): this one directly, others through their agents, who mark
 *      the replicas in it (`Cheops-Gather: marks`).
 *   3. All heads are there, and as much of each list as is needed to know that it is one (src/glue/gather.h). The answer begins: the
 *      head is that of the first site.
 *   4. MERGING: the sites are read one after the other, as fast as the client takes it. Those whose turn has not come wait: nothing
 *      is read from their connections.
 *
 * What is no list is collected, with a limit, and shown side by side, by site (207). A replica of one item needs only one answer: the
 * agent that has it says so (`Cheops-Gather: replica`), and its answer is the answer.
 *
 * What goes wrong, and what is done about it:
 *   a site cannot be reached, is late,      the answer is without it, and says so: `Cheops-Partial`
 *   answers 4xx or 5xx, or with no list
 *   one fails after the answer began        its whole elements are in; the trailer says so where the client takes one. Counted, logged
 *   all fail                                a problem names each
 *   all say the same 4xx                    that is the answer
 *   the client goes away                    all attempts are given up
 */
#include "proxy/gather.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Is it one? -------------------------------------------------------------------------------------------------- */

static bool asks_for(const struct http_head *head, struct str name, struct str word);

static bool is_read(const struct proxy_exchange *exchange)
{
	return http_method_is_safe(exchange->method) && !str_equal(http_method_name(exchange->method), STR("TRACE"));
}

bool proxy_is_gather(const struct proxy_exchange *exchange, const struct scope_step *root)
{
	const struct proxy_resource *resource = exchange->resource;
	if (!is_read(exchange) || root->consistency == SCOPE_STRONG || !exchange->proxy->shared->engine)
		return false;
	for (uint32_t i = 0; i < root->of_count; i++)
		if (root->of[i]->op != SCOPE_ONE)
			return false;
	if (!resource)
		return true;
	bool reads = resource->effect == GLUE_READ || resource->effect == GLUE_LIST || resource->effect == GLUE_PASS;
	bool one = resource->known && resource->effect == GLUE_READ && !exchange->apart;
	return reads && !resource->match.needs_body && !one;
}

/* A replicated item is one thing; unless somebody wants to see what each site has of it, such as its parts. */
void proxy_gather_prefers(struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_resource *resource = exchange->resource;
	exchange->apart = resource && resource->effect == GLUE_READ && asks_for(head, STR("prefer"), STR("cheops-sites"));
}

static int refuse(struct proxy_exchange *exchange, const char *why)
{
	struct proxy_problem problem = {.status = 400,
	                                .type = "not-aggregated",
	                                .title = "The answers of several sites cannot be put together",
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem, "%s", why);
	return -1;
}

/* What each site would do by itself does not add up. */
static int refuse_query(struct proxy_exchange *exchange, enum glue_list_query asks, struct str member)
{
	struct proxy_problem problem = {
		.status = 400, .type = "not-aggregated", .title = "The answers of several sites cannot be put together"};
	proxy_problem(
		exchange, &problem,
		"`%.*s` asks for %s of the list, and each site knows only its own: put together, that would not be %s of all; "
		"leave it out, or name one site",
		STR_FMT(member), asks == GLUE_QUERY_PAGES ? "a page" : "an order",
		asks == GLUE_QUERY_PAGES ? "a page" : "an order");
	return -1;
}

/* 0, or it was refused. */
static int look_at_list(struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	struct glue_list_about about;
	struct str member;
	if (!resource || !resource->match.operation)
		return 0;
	if (glue_operation_streams(resource->match.operation))
		return refuse(exchange, "the answer is a stream without an end; follow it at one site after the other");
	if (!glue_operation_list(resource->match.operation, &about))
		return 0;
	enum glue_list_query asks = glue_list_query(resource->match.operation, resource->asked.query, &member);
	if (asks != GLUE_QUERY_FREE)
		return refuse_query(exchange, asks, member);
	exchange->trial->gather->lists = true;
	exchange->trial->gather->most = about.most;
	return 0;
}

struct proxy_gather *proxy_gather_of_trial(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = arena_new(&exchange->arena, struct proxy_gather);
	struct proxy_schedule *schedule = &exchange->trial->schedule;
	exchange->trial->gather = gather;
	gather->count = schedule->count;
	gather->parts = arena_array(&exchange->arena, struct proxy_part, gather->count);
	gather->names = arena_array(&exchange->arena, struct str, gather->count);
	for (uint32_t i = 0; i < gather->count; i++) {
		gather->parts[i].candidate = &schedule->candidates[i];
		gather->names[i] = schedule->candidates[i].name;
	}
	return gather;
}

int proxy_gather_new(struct proxy_exchange *exchange, const struct scope_plan *plan)
{
	proxy_trial_new(exchange, plan);
	const struct proxy_gather *gather = proxy_gather_of_trial(exchange);
	if (gather->count > LIMIT_GATHER_SITES) {
		struct proxy_problem problem = {
			.status = 400, .type = "not-aggregated", .title = "The answers of several sites cannot be put together"};
		proxy_problem(exchange, &problem, "the scope has %u sites; the answers of at most %d are put together",
		              gather->count, LIMIT_GATHER_SITES);
		return -1;
	}
	return look_at_list(exchange);
}

/* ---- The request ------------------------------------------------------------------------------------------------- */

void proxy_gather_put_most(const struct proxy_exchange *exchange, struct buf *out)
{
	struct str most = exchange->trial->gather->most, target = exchange->target;
	if (most.length == 0)
		return;
	buf_put_char(out, target.length > 0 && memchr(target.at, '?', target.length) ? '&' : '?');
	buf_put(out, most);
}

/* Does a list of words have this one? */
static bool has_word(struct str list, struct str word)
{
	for (size_t i = 0, start = 0; i <= list.length; i++) {
		if (i < list.length && list.at[i] != ',' && list.at[i] != ';' && list.at[i] != ' ' && list.at[i] != '\t')
			continue;
		if (str_equal_nocase(str_make(list.at + start, i - start), word))
			return true;
		start = i + 1;
	}
	return false;
}

static bool asks_for(const struct http_head *head, struct str name, struct str word)
{
	bool found = false;
	for (uint32_t i = 0; i < head->fields_count; i++)
		if (str_equal_nocase(http_field_name(head, &head->fields[i]), name))
			found |= has_word(http_field_value(head, &head->fields[i]), word);
	return found;
}

int proxy_gather_read(struct proxy_exchange *exchange, struct http_head *head)
{
	/* Conditions are judged on one answer, ranges are parts of one; a coding could not be looked into. */
	static const struct str useless[] = {
		STR_INIT("accept-encoding"),     STR_INIT("range"),    STR_INIT("if-range"),
		STR_INIT("if-none-match"),       STR_INIT("if-match"), STR_INIT("if-modified-since"),
		STR_INIT("if-unmodified-since"),
	};
	struct proxy_gather *gather = exchange->trial->gather;
	if (head->upgrade)
		return refuse(exchange, "a change of the protocol is for one site");
	gather->trailers = exchange->minor == 1 && asks_for(head, STR("te"), STR("trailers"));
	gather->shows_sites = asks_for(head, STR("prefer"), STR("cheops-sites"));
	for (size_t i = 0; i < sizeof(useless) / sizeof(useless[0]); i++)
		for (struct http_field *field; (field = http_find_named(head, useless[i])) != NULL;)
			field->dropped = true;
	proxy_count(&exchange->proxy->counters.aggregates, 1);
	return 0;
}

/* ---- Heads ------------------------------------------------------------------------------------------------------- */

static struct str copy(struct proxy_exchange *exchange, struct str text)
{
	return str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
}

static struct str value_of(struct proxy_exchange *exchange, const struct http_head *head, struct str name)
{
	const struct http_field *field = http_find_named(head, name);
	return field ? copy(exchange, http_field_value(head, field)) : STR("");
}

/* RFC 8288: a link to the next page. */
static bool is_link_on(const struct http_head *head, const struct http_field *field)
{
	struct str value = http_field_value(head, field);
	return str_equal_nocase(http_field_name(head, field), STR("link")) && value.length > 0 &&
	       (memmem(value.at, value.length, "rel=\"next\"", 10) || memmem(value.at, value.length, "rel=next", 8));
}

static bool links_on(const struct http_head *head)
{
	bool found = false;
	for (uint32_t i = 0; i < head->fields_count; i++)
		found |= is_link_on(head, &head->fields[i]);
	return found;
}

/* Of the first site's fields, those that are true of the whole as well. Its next page is none of the whole, unless it is this site that is read. */
static struct str keep_fields(struct proxy_exchange *exchange, struct http_head *head)
{
	static const struct str untrue[] = {
		STR_INIT("content-length"), STR_INIT("etag"),
		STR_INIT("last-modified"),  STR_INIT("content-range"),
		STR_INIT("accept-ranges"),  STR_INIT("content-md5"),
		STR_INIT("digest"),         STR_INIT("content-digest"),
		STR_INIT("repr-digest"),    STR_INIT("cheops-gather"),
		STR_INIT("cheops-outcome"), STR_INIT("cheops-partial"),
		STR_INIT("trailer"),        STR_INIT("content-location"),
	};
	struct buf fields = {0};
	proxy_drop_hop_by_hop(head);
	for (size_t i = 0; i < sizeof(untrue) / sizeof(untrue[0]); i++)
		for (struct http_field *field; (field = http_find_named(head, untrue[i])) != NULL;)
			field->dropped = true;
	for (uint32_t i = 0; i < head->fields_count; i++)
		head->fields[i].dropped |= !exchange->trial->gather->ours && is_link_on(head, &head->fields[i]);
	http_put_fields(&fields, head);
	struct str kept = copy(exchange, buf_str(&fields));
	buf_free(&fields);
	/* It may still become the answer by itself. */
	for (uint32_t i = 0; i < head->fields_count; i++)
		head->fields[i].dropped = false;
	return kept;
}

static uint32_t number_of(const struct proxy_gather *gather, const struct proxy_candidate *candidate)
{
	uint32_t number = 0;
	while (gather->parts[number].candidate != candidate)
		number++;
	return number;
}

static bool is_ok(unsigned status)
{
	return status >= 200 && status <= 299;
}

void proxy_gather_head(struct proxy_attempt *attempt, struct http_head *head)
{
	struct proxy_exchange *exchange = attempt->exchange;
	struct proxy_gather *gather = exchange->trial->gather;
	uint32_t number = number_of(gather, attempt->candidate);
	struct proxy_part *part = &gather->parts[number];
	const struct http_field *gathered = attempt->peer ? http_find_named(head, STR("cheops-gather")) : NULL;
	struct str says = gathered ? http_field_value(head, gathered) : STR("");
	bool marks = gather->lists && str_equal(says, STR("marks"));
	if (!gather->lists && !gather->divided && !exchange->apart && str_equal(says, STR("replica"))) {
		proxy_attempt_win(attempt);
		return;
	}
	attempt->ended_us = http_loop_now_us(exchange->proxy->loop);
	attempt->part = part;
	part->attempt = attempt;
	part->headed = true;
	part->status = head->status;
	part->own = attempt->peer && http_has(head, HTTP_FIELD_CHEOPS_OUTCOME);
	part->why = copy(exchange, str_make(head->base + head->reason, head->reason_length));
	part->content_type = value_of(exchange, head, STR("content-type"));
	part->coding = value_of(exchange, head, STR("content-encoding"));
	part->more = links_on(head);
	if (gather->divided)
		part->standing = proxy_divide_standing(attempt, says);
	bool local_marks = gather->lists;
	if (!attempt->peer && exchange->resource)
		part->splicer = proxy_splicer_new(exchange, head, &local_marks);
	if (gather->merger && (marks || (part->splicer && local_marks)))
		glue_gather_marked(gather->merger, number);
	/* Of a fault nothing is kept: if all agree on it, one is passed on as it is. */
	if ((gather->lists || gather->divided) && is_ok(head->status))
		part->fields = keep_fields(exchange, head);
}

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool is_wanted(const struct proxy_gather *gather, const struct proxy_part *part)
{
	if (!part->headed || part->over || !part->attempt || part->attempt->state != PROXY_ATTEMPT_LIVE)
		return false;
	return !gather->lists || glue_gather_wants(gather->merger, (uint32_t)(part - gather->parts));
}

static void take_bytes(struct proxy_gather *gather, struct proxy_part *part, struct str bytes)
{
	size_t room = LIMIT_GATHER_BODIES_BYTES - gather->body_bytes;
	room = room < LIMIT_GATHER_BODY_BYTES - part->body.length ? room : LIMIT_GATHER_BODY_BYTES - part->body.length;
	if (gather->lists) {
		glue_gather_feed(gather->merger, (uint32_t)(part - gather->parts), bytes, &gather->out);
	} else if (bytes.length > room) {
		part->reason = "too-long";
		gather->body_bytes -= part->body.length;
		buf_free(&part->body);
	} else {
		buf_put(&part->body, bytes);
		gather->body_bytes += bytes.length;
	}
}

static void take(struct proxy_gather *gather, struct proxy_part *part, struct str bytes, bool last)
{
	if (part->splicer) {
		buf_clear(&part->spliced);
		if (bytes.length > 0)
			glue_splice(part->splicer, bytes, &part->spliced, NULL);
		if (last)
			glue_splice_end(part->splicer, &part->spliced, NULL);
		bytes = buf_str(&part->spliced);
	}
	if (bytes.length > 0)
		take_bytes(gather, part, bytes);
}

static void close_part(struct proxy_gather *gather, struct proxy_part *part, bool whole)
{
	bool reusable = whole && http_parser_head(part->attempt->parser)->keep_alive;
	part->over = true;
	proxy_attempt_done(part->attempt, reusable);
	if (gather->lists && whole)
		glue_gather_end(gather->merger, (uint32_t)(part - gather->parts), &gather->out);
}

/* A site whose list turned out to be none need not be read on. */
static bool is_given_up(const struct proxy_gather *gather, const struct proxy_part *part)
{
	struct str text;
	if (!gather->lists)
		return part->reason != NULL;
	return glue_gather_fault(gather->merger, (uint32_t)(part - gather->parts), &text) != GLUE_GATHER_OK;
}

enum reading { READ_SOME, READ_NOTHING };

/* All that was taken is used: the buffer starts afresh, larger if the last read filled it. */
static void recycle(struct http_conn *conn)
{
	bool large = conn->in.end == conn->in.size;
	if (!conn->in.at || conn->in.start < conn->in.end)
		return;
	conn->in.start = conn->in.end = 0;
	if (large && conn->in.size < LIMIT_HTTP_BUFFER_BYTES) {
		http_buffer_give(conn->loop, &conn->in);
		http_buffer_take(conn->loop, &conn->in, LIMIT_HTTP_BUFFER_BYTES);
	}
}

/* Once. The part may be over then, whole or not. */
static enum reading read_part(struct proxy_exchange *exchange, struct proxy_part *part)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct proxy_attempt *attempt = part->attempt;
	struct http_conn *conn = &attempt->link->conn;
	uint32_t body = 0, length = 0;
	enum http_progress progress = http_parser_feed(attempt->parser, &conn->in, &body, &length);
	if (progress == HTTP_PROGRESS_MORE && length == 0) {
		recycle(conn);
		enum http_io io = http_conn_read(conn);
		if (io == HTTP_IO_BLOCKED) {
			proxy_attempt_wait(attempt, exchange->state->config->timeouts.idle_ms);
			return READ_NOTHING;
		}
		progress = io == HTTP_IO_SOME  ? http_parser_feed(attempt->parser, &conn->in, &body, &length)
		           : io == HTTP_IO_END ? http_parser_finish(attempt->parser)
		                               : HTTP_PROGRESS_BROKEN;
	}
	proxy_attempt_wait(attempt, 0);
	struct str bytes = length > 0 ? str_make(conn->in.at + body, length) : STR("");
	if (progress != HTTP_PROGRESS_BROKEN)
		take(gather, part, bytes, progress == HTTP_PROGRESS_DONE);
	if (progress == HTTP_PROGRESS_BROKEN) {
		proxy_count(&exchange->proxy->counters.bad_responses, 1);
		bool ended = conn->ended || conn->failed;
		proxy_attempt_fail(attempt, ended ? "http_response_incomplete" : "http_protocol_error", NULL);
	} else if (progress == HTTP_PROGRESS_DONE) {
		close_part(gather, part, true);
	} else if (is_given_up(gather, part)) {
		close_part(gather, part, false);
	}
	return READ_SOME;
}

static void read_wanted(struct proxy_exchange *exchange, struct proxy_part *part)
{
	struct proxy_gather *gather = exchange->trial->gather;
	for (int reads = 0; is_wanted(gather, part); reads++) {
		if (reads == PROXY_PUMP_READS) {
			http_loop_again(exchange->proxy->loop, &part->attempt->link->conn.source);
			return;
		}
		if (read_part(exchange, part) == READ_NOTHING)
			return;
	}
}

/* ---- Failures ---------------------------------------------------------------------------------------------------- */

static void log_late(struct proxy_exchange *exchange, uint32_t number)
{
	struct str details;
	const char *reason = proxy_part_missing(exchange, number, &details);
	log_event(exchange->proxy->shared->log, LOG_WARN, "a site failed in the middle of a list of several",
	          LOG_STR("site", exchange->trial->gather->names[number]), LOG_STR("service", exchange->service->name),
	          LOG_STR("reason", str_of(reason ? reason : "")), LOG_STR("details", details));
}

void proxy_gather_failed(struct proxy_attempt *attempt)
{
	struct proxy_gather *gather = attempt->exchange->trial->gather;
	uint32_t number = number_of(gather, attempt->candidate);
	struct proxy_part *part = &gather->parts[number];
	part->attempt = attempt;
	part->over = true;
	if (gather->lists)
		glue_gather_fail(gather->merger, number, &gather->out);
}

const char *proxy_part_missing(const struct proxy_exchange *exchange, uint32_t number, struct str *details)
{
	const struct proxy_gather *gather = exchange->trial->gather;
	const struct proxy_part *part = &gather->parts[number];
	const struct proxy_attempt *attempt = part->attempt;
	*details = STR("");
	if (!attempt) {
		*details = STR("known to be down; not tried");
		return "destination_unavailable";
	}
	if (attempt->error) {
		*details = attempt->details ? str_of(attempt->details) : STR("");
		return attempt->error;
	}
	if (part->reason) {
		*details = part->details;
		return part->reason;
	}
	if (!gather->lists)
		return part->own ? "status" : NULL;
	enum glue_gather_fault fault = glue_gather_fault(gather->merger, number, details);
	if (fault != GLUE_GATHER_OK)
		return glue_gather_fault_name(fault);
	/* Whoever reads this site's own list has its pages as ever. */
	bool own = gather->ours && part->candidate->place == PROXY_HERE;
	if (!own && (part->more || glue_gather_has_more(gather->merger, number)))
		return "more-pages";
	const char *unfit;
	int lacks = glue_gather_lacks(gather->merger, number, details, &unfit);
	return unfit ? unfit : lacks == ERR_NOT_FOUND ? "part" : lacks ? "not-combined" : NULL;
}

/* ---- Going on ---------------------------------------------------------------------------------------------------- */

static void make_merger(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct glue_list_about about;
	struct err err = {0};
	if (!gather->lists || gather->merger)
		return;
	glue_operation_list(exchange->resource->match.operation, &about);
	struct glue_gather_options options = {.sites_count = gather->count,
	                                      .list = about.list,
	                                      .next = about.next,
	                                      .one_page = !gather->ours,
	                                      .names = gather->shows_sites ? gather->names : NULL,
	                                      .alike = glue_type_alike(exchange->resource->match.type),
	                                      .hash_key = exchange->proxy->shared->hash_key};
	proxy_gather_policy(exchange, &options.policy);
	gather->merger = glue_gather_new(&options, &err);
	gather->lists = gather->merger != NULL; /* a pointer with `*`: they are shown side by side */
	for (uint32_t i = 0; i < gather->count && gather->merger && gather->ours; i++)
		if (gather->parts[i].candidate->place != PROXY_HERE)
			glue_gather_only(gather->merger, i);
}

/* All at once; those that are known to be down are left out, unless all are. */
static void launch_all(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	uint32_t down = 0;
	gather->launched = true;
	exchange->asked_at = engine_standing_now(exchange->proxy->shared->engine);
	make_merger(exchange);
	for (uint32_t i = 0; i < gather->count; i++) {
		struct proxy_candidate *candidate = gather->parts[i].candidate;
		bool skips = proxy_candidate_is_down(exchange, candidate);
		candidate->state = skips ? PROXY_CANDIDATE_SKIPPED : PROXY_CANDIDATE_WAITING;
		down += skips;
	}
	for (uint32_t i = 0; i < gather->count && exchange->phase == PROXY_TRYING; i++) {
		struct proxy_part *part = &gather->parts[i];
		if (part->candidate->state == PROXY_CANDIDATE_SKIPPED && down < gather->count) {
			part->over = true;
			if (gather->lists)
				glue_gather_fail(gather->merger, i, &gather->out);
			continue;
		}
		proxy_trial_launch(exchange, part->candidate);
	}
}

/* All of them say the same, and that it is the request's fault. */
static bool agree_on_fault(const struct proxy_gather *gather)
{
	for (uint32_t i = 0; i < gather->count; i++) {
		const struct proxy_part *part = &gather->parts[i];
		if (!part->headed || part->own || part->over || part->status < 400 || part->status > 499 ||
		    part->status != gather->parts[0].status)
			return false;
	}
	return true;
}

static void answer_fault(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	for (uint32_t i = 1; i < gather->count; i++)
		close_part(gather, &gather->parts[i], false);
	gather->parts[0].attempt->part = NULL;
	proxy_attempt_win(gather->parts[0].attempt);
}

/* Of a list: is there any use in reading it? */
static void judge(struct proxy_gather *gather, uint32_t number)
{
	struct proxy_part *part = &gather->parts[number];
	bool coded = part->coding.length > 0 && !str_equal_nocase(part->coding, STR("identity"));
	if (!part->headed || part->over || (is_ok(part->status) && !coded))
		return;
	part->reason = coded && is_ok(part->status) ? "coding" : "status";
	glue_gather_fail(gather->merger, number, &gather->out);
	close_part(gather, part, false);
}

/* All heads are there. */
static void decide(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	gather->decided = true;
	if (agree_on_fault(gather)) {
		answer_fault(exchange);
		return;
	}
	for (uint32_t i = 0; i < gather->count && gather->lists; i++)
		judge(gather, i);
}

static const struct proxy_part *first_whole(const struct proxy_gather *gather)
{
	for (uint32_t i = 0; i < gather->count; i++)
		if (gather->parts[i].headed && is_ok(gather->parts[i].status) && !gather->parts[i].reason)
			return &gather->parts[i];
	return NULL;
}

/* The answer can begin, or be given. */
static void answer(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	bool any = false;
	if (gather->lists && http_method_is_head(exchange->method)) {
		const struct proxy_part *shape = first_whole(gather);
		if (shape)
			proxy_gather_respond(exchange, shape);
		else
			proxy_gather_refuse(exchange);
		return;
	}
	if (gather->lists) {
		bool begun = glue_gather_begin(gather->merger, &gather->out);
		if (gather->ours && proxy_gather_own_odd(exchange))
			return;
		if (begun)
			proxy_gather_respond(exchange, &gather->parts[glue_gather_shape(gather->merger)]);
		else
			proxy_gather_refuse(exchange);
		return;
	}
	if (gather->divided) {
		proxy_divide_respond(exchange);
		return;
	}
	for (uint32_t i = 0; i < gather->count; i++)
		any |= gather->parts[i].headed && !gather->parts[i].own;
	if (any)
		proxy_gather_respond_keyed(exchange);
	else
		proxy_gather_refuse(exchange);
}

void proxy_gather_advance(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	if (exchange->phase == PROXY_TRYING && !gather->launched)
		launch_all(exchange);
	if (exchange->phase != PROXY_TRYING || (gather->ours && proxy_gather_own_failed(exchange)))
		return;
	for (uint32_t i = 0; i < gather->count; i++)
		if (!gather->parts[i].headed && !gather->parts[i].over)
			return;
	if (!gather->decided)
		decide(exchange);
	bool ready = true, head_only = gather->lists && http_method_is_head(exchange->method);
	for (uint32_t i = 0; i < gather->count && exchange->phase == PROXY_TRYING && !head_only; i++) {
		read_wanted(exchange, &gather->parts[i]);
		ready &= !is_wanted(gather, &gather->parts[i]);
	}
	if (ready && exchange->phase == PROXY_TRYING)
		answer(exchange);
}

void proxy_gather_changed(struct proxy_attempt *attempt)
{
	struct proxy_exchange *exchange = attempt->exchange;
	proxy_gather_advance(exchange);
	if (exchange->phase != PROXY_TRYING)
		proxy_exchange_run(exchange);
}

/* ---- Passing on -------------------------------------------------------------------------------------------------- */

/* All lists are through. */
static void finish(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct proxy_stream *stream = &exchange->response;
	struct buf partial = {0};
	for (uint32_t i = 0; i < gather->count; i++) {
		struct str details;
		if (!gather->parts[i].told && proxy_part_missing(exchange, i, &details))
			log_late(exchange, i);
	}
	if (proxy_put_partial(exchange, &partial))
		proxy_count(&exchange->proxy->counters.partial_late, 1);
	stream->complete = true;
	if (stream->chunked) {
		buf_put(&stream->tail, STR("0\r\n"));
		if (gather->trailers)
			buf_put(&stream->tail, buf_str(&partial));
		buf_put(&stream->tail, STR("\r\n"));
		proxy_stream_push(stream, stream->tail.at, stream->tail.length);
	}
	buf_free(&partial);
}

bool proxy_gather_next(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct proxy_stream *stream = &exchange->response;
	uint32_t turn;
	while ((turn = glue_gather_turn(gather->merger)) < gather->count && gather->out.length == 0)
		if (!is_wanted(gather, &gather->parts[turn]) || read_part(exchange, &gather->parts[turn]) == READ_NOTHING)
			return false;
	/* What was sent makes room for what is next. */
	struct buf sent = stream->spliced;
	stream->spliced = gather->out;
	buf_clear(&sent);
	gather->out = sent;
	buf_clear(&stream->head);
	stream->head_sent = 0;
	proxy_stream_push_bytes(stream, buf_str(&stream->spliced));
	if (turn == gather->count)
		finish(exchange);
	return true;
}

void proxy_gather_free(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	for (uint32_t i = 0; gather->parts && i < gather->count; i++) {
		buf_free(&gather->parts[i].body);
		buf_free(&gather->parts[i].spliced);
		glue_splicer_free(gather->parts[i].splicer);
	}
	glue_gather_free(gather->merger);
	buf_free(&gather->out);
}
