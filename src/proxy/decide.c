/* Requests of which only the body says what they do: POST /servers/7/action {"reboot": {}}, or {"console": {}}.
 *
 * Where a replica is named, or the scope says `&`, the body is read whole first (COLLECTING), with the head kept aside. Then the
 * description says what it is:
 *   it changes a replica, or makes one with `&`    an operation, like any other (replicate.c)
 *   it reads, or is the site's own business        it runs once: at the local replica, or where the scope says, with the body that
 *                                                  was read, as a request for one of several sites does (trial.c)
 *   `&`, and it is the site's own business         refused: at all sites it would not be one thing. One that makes several items at
 *                                                  once is such a request
 *   the description has no word for it             refused
 */
#include "proxy/proxy_int.h"

/* The head lies in the buffer that the body is read into. */
struct http_head *proxy_head_keep(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct http_head *kept = arena_new(&exchange->arena, struct http_head);
	*kept = *head;
	kept->base = arena_copy(&exchange->arena, head->base, head->bytes);
	kept->fields = arena_array(&exchange->arena, struct http_field, head->fields_count);
	if (head->fields_count > 0)
		memcpy(kept->fields, head->fields, head->fields_count * sizeof(*head->fields));
	/* It was told to go on. */
	struct http_field *expect = http_find(kept, HTTP_FIELD_EXPECT);
	if (expect)
		expect->dropped = true;
	kept->expects_continue = false;
	return kept;
}

void proxy_decide_keep(struct proxy_exchange *exchange, const struct http_head *head)
{
	exchange->resource->head = proxy_head_keep(exchange, head);
}

void proxy_collect_start(struct proxy_exchange *exchange, const struct http_head *head,
                         void (*collected)(struct proxy_exchange *exchange))
{
	exchange->collected = collected;
	exchange->collect_most = LIMIT_REPLICA_READ_BYTES;
	exchange->phase = PROXY_COLLECTING;
	if (head->expects_continue) {
		buf_put(&exchange->response.head, STR("HTTP/1.1 100 Continue\r\n\r\n"));
		proxy_stream_flush(&exchange->response);
	}
}

static void refuse_undescribed(struct proxy_exchange *exchange, const struct err *err)
{
	struct proxy_problem problem = {.status = 400, .type = "not-described", .title = "The operation is not described"};
	proxy_problem(exchange, &problem, "the body says what is asked, and the description does not know it: %s",
	              err->text);
}

static void refuse_several(struct proxy_exchange *exchange)
{
	struct str name = glue_operation_name(exchange->resource->match.operation);
	struct proxy_problem problem = {
		.status = 501, .type = "not-yet", .title = "This collaboration is not carried out yet"};
	proxy_problem(
		exchange, &problem,
		"`&` replicates one item per request; by its body this is `%.*s`, which is no operation on one: send a "
		"request for each item, or name one site",
		STR_FMT(name));
}

/* Where it runs, since it changes nothing. False: it was answered. */
static bool choose(struct proxy_exchange *exchange)
{
	const struct scope_step here = {.op = SCOPE_ONE, .site = exchange->state->config->site, .site_index = PROXY_HERE};
	const struct scope_plan local = {.service = exchange->service->name, .at = here.site, .root = &here};
	bool ours = exchange->lease && exchange->carrier != PROXY_CARRIER_PEER;
	const struct scope_plan *plan = ours ? scope_lease_plan(exchange->lease) : &local;
	if (plan->root->op != SCOPE_ONE && proxy_choose_place(exchange) != 0)
		return false;
	if (plan->root->op == SCOPE_ONE)
		proxy_trial_new(exchange, plan);
	else if (!exchange->trial)
		proxy_trial_new(exchange, &local); /* `&`, with this site among them: the local replica */
	return true;
}

void proxy_decide(struct proxy_exchange *exchange)
{
	struct proxy_resource *resource = exchange->resource;
	struct err err = {0};
	if (!glue_match_body(exchange->state->config->glue, buf_str(&exchange->body), &resource->match, &err)) {
		refuse_undescribed(exchange, &err);
		return;
	}
	resource->effect = glue_operation_effect(resource->match.operation);
	if (proxy_operate(exchange))
		return;
	bool several = resource->effect == GLUE_PASS || resource->effect == GLUE_LIST;
	if (resource->copies && several && !resource->known)
		refuse_several(exchange);
	else if (choose(exchange))
		proxy_trial_go(exchange, resource->head, &exchange->body);
}
