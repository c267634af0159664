/* Requests for this site alone that refer to what is replicated: a server, made here and nowhere else, of a replicated flavor.
 *
 * Users know such a thing by its meta-id, and the service here by an id of its own. In a path or a query one is put in the place of the other
 * as the request passes; a body is read whole first (COLLECTING), since its length changes, and sent on with this site's ids. That is
 * done only where something is replicated here to which the operation may refer, by the description; and for JSON of a known length, up to
 * LIMIT_REPLICA_READ_BYTES. Everything else streams, as it is.
 */
#include "proxy/bring.h"
#include "proxy/proxy_int.h"

static bool may_refer(const struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_resource *resource = exchange->resource;
	const struct glue_operation *operation = resource->match.operation;
	struct engine *engine = exchange->proxy->shared->engine;
	struct str content = resource->asked.content_type;
	if (!operation || glue_operation_opaque(operation) || !glue_request_places(operation) || !engine_has_any(engine) ||
	    head->framing != HTTP_BODY_LENGTH || head->length == 0 || head->length > LIMIT_REPLICA_READ_BYTES ||
	    !memmem(content.at, content.length, "json", 4))
		return false;
	for (uint32_t i = 0; i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->where == GLUE_IN_BODY &&
		    (!relation->type ||
		     engine_has_type(engine, glue_type_service(relation->type), glue_type_name(relation->type))))
			return true;
	}
	return false;
}

static void collected(struct proxy_exchange *exchange)
{
	const struct scope_step here = {.op = SCOPE_ONE, .site = exchange->state->config->site, .site_index = PROXY_HERE};
	const struct scope_plan local = {.service = exchange->service->name, .at = here.site, .root = &here};
	struct proxy_resource *resource = exchange->resource;
	struct glue_replacer replacer = engine_to_local(exchange->proxy->shared->engine);
	struct glue_splicer *splicer = glue_splicer_new(glue_request_places(resource->match.operation), &replacer);
	struct buf body = {0};
	glue_splice(splicer, buf_str(&exchange->body), &body, NULL);
	glue_splice_end(splicer, &body, NULL);
	glue_splicer_free(splicer);
	buf_free(&exchange->body);
	exchange->body = body;
	proxy_set_length(exchange, resource->head, body.length);
	proxy_trial_new(exchange, &local);
	proxy_trial_go(exchange, resource->head, &exchange->body);
}

int proxy_refer(struct proxy_exchange *exchange, const struct http_head *head)
{
	if (!exchange->has_body || exchange->request.complete || exchange->wants_upgrade || !may_refer(exchange, head))
		return 0;
	proxy_decide_keep(exchange, head);
	proxy_collect_start(exchange, head, collected);
	return -1;
}
