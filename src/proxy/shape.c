/* Problems in a form that the one who asks can read, and why a service could not do what it was asked for.
 *
 * Clients of an application know the errors of its services, each in another form, and some fail on any other: a service that gets
 * a problem document for its call to another one tells its user of a fault of its own. So a problem is told as the description says
 * that errors of the service look (`errors`), unless the client accepts problem documents. Then a header says what it is:
 *
 *     Cheops-Problem: site-unreachable; title="A site cannot be reached"; detail="the agent of Site2 cannot be reached: ..."
 *
 * Agents tell each other so as well, whatever the body is.
 *
 * And most services do not tell their users why a call failed that they made on the way, or tell it as an error of their own:
 *
 *   1. a request with a scope goes to a service here; ids are remembered by which its calls are known (carry.c)
 *   2. such a call cannot be carried out: we say so, or another agent does. What it was is noted with the id (memory.c)
 *   3. the service answers the request with an error: it is replaced by a problem that says what was noted
 *
 * A call of the same service that goes well later on takes the note away. An error of the service that has other reasons, 4xx, is
 * only replaced where the call was refused; or where the service refuses the credential, and could not ask the one who judges it.
 */
#include "proxy/proxy_int.h"

#include "base/text.h"

#include <stdio.h>

static const struct str problem_json = STR_INIT("application/problem+json");
static const struct str problem_header = STR_INIT("Cheops-Problem");

static bool accepts(struct str accept)
{
	for (size_t i = 0; i + problem_json.length <= accept.length; i++)
		if (str_equal_nocase(str_make(accept.at + i, problem_json.length), problem_json))
			return true;
	return false;
}

void proxy_shape_note(struct proxy_exchange *exchange, const struct http_head *head)
{
	if (!glue_failure_is_shaped(exchange->state->config->glue, exchange->service->name))
		return;
	const struct http_field *accept = http_find_named(head, STR("accept"));
	exchange->wants_problem = accept && accepts(http_field_value(head, accept));
}

bool proxy_shape_put(struct proxy_exchange *exchange, const struct glue_failure *failure, struct buf *fields,
                     struct buf *body, struct str *content_type)
{
	if (!exchange->service)
		return false;
	struct glue_failure told = *failure;
	told.reason = str_of(http_reason(failure->status));
	bool shaped = !exchange->wants_problem &&
	              glue_failure_put(exchange->state->config->glue, exchange->service->name, &told, body, content_type);
	if (shaped || exchange->client->kind == PROXY_FRONT_PEER) {
		buf_put(fields, problem_header);
		buf_printf(fields, ": %.*s; title=", STR_FMT(failure->type));
		proxy_put_quoted(fields, failure->title);
		buf_put(fields, STR("; detail="));
		proxy_put_quoted(fields, failure->detail);
		buf_put(fields, STR("\r\n"));
	}
	return shaped;
}

/* ---- Why a service failed ---------------------------------------------------------------------------------------- */

static struct proxy_memory *memory_of(const struct proxy_exchange *exchange)
{
	return exchange->proxy->shared->memory;
}

/* Would a service fail because of it? What is not there, or is there already, is something that services ask for. */
static bool is_blamed(unsigned status)
{
	return status >= 500 || status == 403 || status == 429;
}

void proxy_shape_blame(struct proxy_exchange *exchange, unsigned status, struct str site, struct str detail)
{
	if (exchange->called_by.length == 0 || !is_blamed(status))
		return;
	proxy_memory_blame(
		memory_of(exchange), exchange->called_by,
		&(struct proxy_blame){.status = status, .service = exchange->service->name, .site = site, .detail = detail});
}

/* What stands in quotes behind `detail=`; "": nothing does. */
static struct str detail_of(struct arena *arena, struct str value)
{
	static const struct str mark = STR_INIT("; detail=\"");
	size_t at = 0, length = 0;
	while (at + mark.length <= value.length && memcmp(value.at + at, mark.at, mark.length) != 0)
		at++;
	if (at + mark.length > value.length)
		return STR("");
	char *text = arena_alloc(arena, value.length + 1, 1);
	for (at += mark.length; at < value.length && value.at[at] != '"'; at++) {
		at += value.at[at] == '\\' && at + 1 < value.length;
		text[length++] = value.at[at];
	}
	return str_make(text, length);
}

/* The answer to a call of a service here: of another agent, which says that it cannot be carried out, or of a service. What that cannot say of
 * what only services ask is as good as no answer. */
static void note_call(struct proxy_exchange *exchange, const struct http_head *head)
{
	bool of_agent = exchange->peer && http_has(head, HTTP_FIELD_CHEOPS_OUTCOME);
	if (!of_agent && !(head->status >= 500 && proxy_is_for_service(exchange))) {
		proxy_memory_absolve(memory_of(exchange), exchange->called_by, exchange->service->name);
		return;
	}
	const struct http_field *field = of_agent ? http_find_named(head, problem_header) : NULL;
	struct str detail = field ? detail_of(&exchange->arena, http_field_value(head, field)) : STR("");
	struct str site = exchange->peer ? exchange->peer->name : exchange->state->config->site;
	char plain[64 + LIMIT_NAME_SHOWN_BYTES];
	if (detail.length == 0)
		detail = str_make(plain, (size_t)snprintf(plain, sizeof(plain), "%s %.*s answered %u",
		                                          of_agent ? "the agent of" : "that of",
		                                          STR_FMT(utf8_truncate(site, LIMIT_NAME_SHOWN_BYTES)), head->status));
	proxy_shape_blame(exchange, head->status, site, detail);
}

/* Does the service refuse the credential because it could not ask about it? */
static bool is_unjudged(const struct proxy_exchange *exchange, unsigned status, const struct proxy_blame *why)
{
	const struct glue_service *service = glue_service_find(exchange->state->config->glue, exchange->service->name);
	return service && why->status >= 500 && glue_is_credential_fault(service, (int)status) &&
	       str_equal(glue_service_about(service)->judge_service, why->service);
}

bool proxy_shape_explain(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct proxy_blame why;
	if (exchange->called_by.length > 0)
		note_call(exchange, head);
	if (head->status < 400 || exchange->peer)
		return false;
	bool known = false;
	for (uint32_t i = 0; i < exchange->ids_count && !known; i++)
		known = proxy_memory_blamed(memory_of(exchange), exchange->ids[i], &exchange->arena, &why);
	bool failed = known && (head->status >= 500 || is_unjudged(exchange, head->status, &why));
	if (!known || (!failed && why.status >= 500))
		return false;
	struct proxy_problem problem = {.status = failed && why.status >= 500 ? why.status : head->status,
	                                .type = "call-failed",
	                                .title = "A call that the service made could not be carried out",
	                                .error = "destination_unavailable",
	                                .site = why.site,
	                                .close = !exchange->request.complete && exchange->has_body};
	proxy_problem(exchange, &problem, "%.*s called %.*s: %.*s", STR_FMT(exchange->service->name), STR_FMT(why.service),
	              STR_FMT(why.detail));
	return true;
}
