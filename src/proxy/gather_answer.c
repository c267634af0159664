/* What is told of answers that were put together: heads, answers side by side, and what is missing.
 *
 *     Cheops-Partial: "Site2";reason=connection_refused, "Site3";reason=status;status=500
 *
 * is a list of RFC 8941: a string for each site that is missing, or of which something is.
 */
#include "proxy/gather.h"

#include "base/base64.h"
#include "glue/json.h"

#include <stdio.h>
#include <stdlib.h>

bool proxy_put_partial(struct proxy_exchange *exchange, struct buf *out)
{
	struct proxy_gather *gather = exchange->trial->gather;
	bool any = exchange->partial.length > 0;
	if (any)
		buf_put(out, STR("Cheops-Partial: "));
	buf_put(out, exchange->partial);
	exchange->partial = STR("");
	for (uint32_t i = 0; i < gather->count; i++) {
		struct proxy_part *part = &gather->parts[i];
		struct str details;
		const char *reason = part->told ? NULL : proxy_part_missing(exchange, i, &details);
		if (!reason)
			continue;
		buf_put(out, any ? STR(", ") : STR("Cheops-Partial: "));
		proxy_put_quoted(out, gather->names[i]);
		buf_printf(out, ";reason=%s", reason);
		if (part->status && strcmp(reason, "status") == 0)
			buf_printf(out, ";status=%u", part->status);
		if (details.length) {
			buf_put(out, STR(";details="));
			proxy_put_quoted(out, details);
		}
		any = part->told = true;
	}
	if (any)
		buf_put(out, STR("\r\n"));
	return any;
}

/* ---- Lists ------------------------------------------------------------------------------------------------------- */

void proxy_gather_respond(struct proxy_exchange *exchange, const struct proxy_part *shape)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct buf fields = {0};
	buf_put(&fields, shape->fields);
	if (proxy_put_partial(exchange, &fields))
		proxy_count(&exchange->proxy->counters.partial, 1);
	if (gather->shows_sites)
		buf_put(&fields, STR("Preference-Applied: cheops-sites\r\n"));
	if (gather->trailers && !http_method_is_head(exchange->method))
		buf_put(&fields, STR("Trailer: Cheops-Partial\r\n"));
	proxy_put_deeds(exchange, &fields);
	proxy_build_merged(exchange, shape->status, shape->why, buf_str(&fields));
	buf_free(&fields);
}

/* ---- Side by side ------------------------------------------------------------------------------------------------ */

static bool is_json(struct str text)
{
	struct glue_json *json = malloc(sizeof(*json));
	enum glue_json_event event;
	if (!json)
		return false;
	glue_json_init(json, false);
	glue_json_feed(json, text);
	while ((event = glue_json_next(json)) != GLUE_JSON_MORE && event != GLUE_JSON_BAD)
		if (event == GLUE_JSON_VALUE)
			glue_json_skip(json);
	if (event == GLUE_JSON_MORE) {
		glue_json_finish(json);
		while ((event = glue_json_next(json)) != GLUE_JSON_END && event != GLUE_JSON_BAD)
			;
	}
	free(json);
	return event == GLUE_JSON_END;
}

static bool is_text(struct str bytes)
{
	for (size_t i = 0; i < bytes.length;) {
		uint32_t code_point;
		size_t length = utf8_decode(str_make(bytes.at + i, bytes.length - i), &code_point);
		if (length == 0 || code_point == 0)
			return false;
		i += length;
	}
	return true;
}

/* JSON as it is, text as a string, anything else in base64. */
static void put_body(struct buf *out, const struct proxy_part *part)
{
	struct str body = buf_str(&part->body);
	struct str type = part->content_type;
	bool maybe_json = type.length == 0 || memmem(type.at, type.length, "json", 4);
	bool coded = part->coding.length > 0 && !str_equal_nocase(part->coding, STR("identity"));
	if (body.length == 0)
		return;
	if (!coded && maybe_json && is_json(body)) {
		while (body.length > 0 && memchr(" \t\r\n", body.at[body.length - 1], 4))
			body.length--;
		buf_put(out, STR(",\"body\":"));
		buf_put(out, body);
	} else if (!coded && is_text(body)) {
		buf_put(out, STR(",\"body\":"));
		buf_put_json(out, body);
	} else {
		if (coded) {
			buf_put(out, STR(",\"content_encoding\":"));
			buf_put_json(out, part->coding);
		}
		buf_put(out, STR(",\"body_base64\":\""));
		base64_encode(out, BASE64_STANDARD, body);
		buf_put_char(out, '"');
	}
}

static void put_part(struct proxy_exchange *exchange, uint32_t number, struct buf *out)
{
	const struct proxy_part *part = &exchange->trial->gather->parts[number];
	struct str details;
	const char *reason = proxy_part_missing(exchange, number, &details);
	buf_put_json(out, exchange->trial->gather->names[number]);
	buf_put(out, STR(":{"));
	if (part->headed)
		buf_printf(out, "\"status\":%u", part->status);
	if (part->headed && part->content_type.length) {
		buf_put(out, STR(",\"content_type\":"));
		buf_put_json(out, part->content_type);
	}
	if (reason && !part->own) {
		buf_printf(out, "%s\"error\":\"%s\"", part->headed ? "," : "", reason);
		if (details.length) {
			buf_put(out, STR(",\"details\":"));
			buf_put_json(out, details);
		}
		if (part->reason && strcmp(part->reason, "too-long") == 0)
			buf_printf(out,
			           ",\"details\":\"of a body that is no list, %d bytes are shown at most, and %d of all sites\"",
			           LIMIT_GATHER_BODY_BYTES, LIMIT_GATHER_BODIES_BYTES);
	} else {
		put_body(out, part);
	}
	buf_put_char(out, '}');
}

/* All sites say the same of an item that was set up alike at each: that is the answer. */
static bool respond_alike(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	const struct proxy_part *first = &gather->parts[0];
	struct buf fields = {0};
	struct str details;
	if (!exchange->resource || !exchange->resource->match.type || gather->shows_sites || gather->count < 2 ||
	    !glue_type_alike(exchange->resource->match.type) || exchange->resource->match.id.length == 0)
		return false;
	for (uint32_t i = 0; i < gather->count; i++) {
		const struct proxy_part *part = &gather->parts[i];
		if (!part->headed || part->status != 200 || proxy_part_missing(exchange, i, &details) ||
		    !str_equal(part->content_type, first->content_type) || !str_equal(part->coding, first->coding) ||
		    !str_equal(buf_str(&part->body), buf_str(&first->body)) || part->coding.length > 0)
			return false;
	}
	char type[128];
	snprintf(type, sizeof(type), "%.*s", STR_FMT(first->content_type));
	proxy_put_deeds(exchange, &fields);
	buf_put(&fields, buf_str(&exchange->state->via));
	proxy_build_answer(exchange, 200, type, buf_str(&fields), buf_str(&first->body));
	buf_free(&fields);
	return true;
}

void proxy_gather_respond_keyed(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct buf fields = {0}, body = {0};
	if (respond_alike(exchange))
		return;
	for (uint32_t i = 0; i < gather->count; i++) {
		buf_put_char(&body, i ? ',' : '{');
		put_part(exchange, i, &body);
	}
	buf_put(&body, STR("}\n"));
	if (proxy_put_partial(exchange, &fields))
		proxy_count(&exchange->proxy->counters.partial, 1);
	proxy_put_deeds(exchange, &fields);
	buf_put(&fields, buf_str(&exchange->state->via));
	proxy_build_answer(exchange, 207, "application/json", buf_str(&fields), buf_str(&body));
	buf_free(&fields);
	buf_free(&body);
}

/* ---- Nothing at all ---------------------------------------------------------------------------------------------- */

void proxy_gather_refuse(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct buf list = {0};
	bool late = true;
	for (uint32_t i = 0; i < gather->count && list.length <= 4 * LIMIT_ERROR_TEXT_BYTES; i++) {
		const struct proxy_part *part = &gather->parts[i];
		struct str details;
		const char *reason = proxy_part_missing(exchange, i, &details);
		late &= reason && strstr(reason, "timeout") != NULL;
		buf_put(&list, i ? STR("; ") : STR(""));
		buf_put(&list, gather->names[i]);
		if (part->status && (!reason || strcmp(reason, "status") == 0))
			buf_printf(&list, " answered %u", part->status);
		else
			buf_printf(&list, ": %s", reason ? reason : "no answer");
		if (details.length)
			buf_printf(&list, " (%.*s)", STR_FMT(details));
	}
	struct proxy_problem problem = {.status = late ? 504 : 502,
	                                .type = "all-sites-failed",
	                                .title = "None of the sites could serve the request",
	                                .error = late ? "http_response_timeout" : "destination_unavailable"};
	proxy_problem(exchange, &problem, "%.*s could not be read at any of its sites: %s",
	              STR_FMT(exchange->service->name), buf_c(&list));
	buf_free(&list);
}
