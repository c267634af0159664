/* Does the scope give the request what it can use, and what it requires? (DESIGN 9, docs/ownership.md)
 *
 * Asked of every scoped request that the description knows, before anything runs; of one that comes from another agent it was asked
 * there. Most have nothing to ask for: no type that belongs to its site is in reach, or the scope does not name its service.
 *
 * Where the body has to say what is used, it is read whole first (COLLECTING), with the head kept aside, and the request goes on with
 * the body that was read, as one for several sites does (trial.c). Only a scope that would be refused with all that the body may have
 * leads there; and `with_requirements(…)` around something that requires anything: what that is is brought along (bring.c) before it goes on.
 */
#include "proxy/proxy_int.h"

#include "proxy/bring.h"
#include "relation/relation.h"

/* What is asked, while the body is read. */
struct proxy_asked {
	struct glue_match match;
	struct glue_request request;
	struct http_head *head;
	struct relation_refusal refusal;
	bool absent;  /* what is required; otherwise it is about what belongs to another site */
	bool brought; /* what is required was brought along */
};

/* The match points into the target, and lives longer than the buffer keeps the head. */
static bool recognise(struct proxy_exchange *exchange, const struct http_head *head, struct proxy_asked *asked)
{
	const struct proxy_resource *resource = exchange->resource;
	const struct glue *glue = exchange->state->config->glue;
	if (resource) {
		asked->match = resource->match;
		asked->request = resource->asked;
		return true;
	}
	struct str target = exchange->target;
	exchange->target = target = str_make(arena_copy(&exchange->arena, target.at, target.length), target.length);
	const struct http_field *type = http_find_named(head, STR("content-type"));
	struct str content = type ? http_field_value(head, type) : STR("");
	const char *query = memchr(target.at, '?', target.length);
	size_t path = query ? (size_t)(query - target.at) : target.length;
	asked->request = (struct glue_request){
		.service = exchange->service->name,
		.method = http_method_name(exchange->method),
		.path = str_make(target.at, path),
		.query = query ? str_make(query + 1, target.length - path - 1) : STR(""),
		.content_type = str_make(arena_copy(&exchange->arena, content.at, content.length), content.length),
	};
	return glue_match(glue, &asked->request, &asked->match);
}

/* By what this site knows of replicated resources. */
static enum relation_presence find(void *context, const struct glue_type *type, struct str id, uint32_t site)
{
	struct proxy_exchange *exchange = context;
	struct engine *engine = exchange->proxy->shared->engine;
	struct str name = glue_type_name(type);
	struct engine_found found;
	site_id members[LIMIT_REPLICA_MEMBERS];
	if (!engine || glue_type_identity(type) == GLUE_CHOSEN || glue_type_ids_in_collection(type) ||
	    memchr(name.at, '{', name.length))
		return RELATION_UNKNOWN;
	if (!engine_find(engine, &(struct engine_name){glue_type_service(type), name, STR(""), id}, &found)) {
		/* Or is it the meta-id (a UUID of version 7) of something that is at other sites only? */
		struct replica_id meta;
		bool may_be_meta = replica_id_parse(id, &meta) && meta.bytes[6] >> 4 == 7;
		return may_be_meta ? RELATION_UNKNOWN : RELATION_SINGLE;
	}
	if (found.deleted)
		return found.left ? RELATION_UNKNOWN : RELATION_GONE;
	uint32_t count = engine_members(engine, found.id, members);
	for (uint32_t i = 0; i < count; i++)
		if (members[i] == exchange->proxy->mesh->sites->places[site].id)
			return RELATION_THERE;
	return count > 0 ? RELATION_ABSENT : RELATION_UNKNOWN;
}

/* What is to be brought along; once. */
static enum relation_verdict find_needs(struct proxy_exchange *exchange, struct proxy_asked *asked,
                                        const struct relation_question *question)
{
	if (!question->plan->with_requirements || !exchange->proxy->shared->engine || asked->brought)
		return RELATION_FINE;
	exchange->needs = arena_new(&exchange->arena, struct proxy_needs);
	enum relation_verdict verdict = relation_find_needs(question, &(struct relation_needs){exchange, proxy_need_note});
	exchange->needs->operation = asked->match.operation;
	exchange->needs->head = asked->head;
	if (exchange->needs->count == 0)
		exchange->needs = NULL;
	return verdict;
}

static enum relation_verdict ask(struct proxy_exchange *exchange, struct proxy_asked *asked, const struct str *body)
{
	struct relation_whereabouts whereabouts = {exchange, find};
	struct relation_question question = {
		.glue = exchange->state->config->glue,
		.match = &asked->match,
		.request = &asked->request,
		.scope = scope_lease_scope(exchange->lease),
		.plan = scope_lease_plan(exchange->lease),
		.view = &exchange->proxy->mesh->sites->view,
		.at = PROXY_HERE,
		.inner = exchange->inner,
		.caller = exchange->caller,
		.has_body = exchange->has_body,
		.body = body,
	};
	enum relation_verdict verdict = relation_check_owner(&exchange->arena, &question, &asked->refusal);
	if (verdict != RELATION_FINE)
		return verdict;
	verdict = find_needs(exchange, asked, &question);
	if (verdict != RELATION_FINE || (exchange->needs && !asked->brought))
		return verdict;
	asked->absent = true;
	return relation_check_required(&exchange->arena, &question, &whereabouts, &asked->refusal);
}

/* Answers, unless somebody asked what would become of it. */
static int refuse(struct proxy_exchange *exchange, const struct http_head *head, struct proxy_asked *asked)
{
	exchange->refusal = &asked->refusal;
	exchange->refused_as = asked->absent ? "requirement-absent" : "not-owned-here";
	if (http_has(head, HTTP_FIELD_CHEOPS_EXPLAIN))
		return 0;
	bool absent = asked->absent;
	proxy_count(absent ? &exchange->proxy->counters.not_there : &exchange->proxy->counters.not_owned, 1);
	struct proxy_problem problem = {.status = absent ? 409 : 403,
	                                .type = absent ? "requirement-absent" : "not-owned-here",
	                                .title = absent ? "What is required is not there"
	                                                : "What belongs to one site is not used from another",
	                                .error = "http_request_denied",
	                                .site = asked->refusal.site,
	                                .close = exchange->has_body && !exchange->request.complete};
	proxy_problem(exchange, &problem, "%s; %s", asked->refusal.message, asked->refusal.hint);
	return -1;
}

/* Where it runs, with the body that was read. */
static void go_on(struct proxy_exchange *exchange, struct http_head *head)
{
	const struct scope_step here = {.op = SCOPE_ONE, .site = exchange->state->config->site, .site_index = PROXY_HERE};
	const struct scope_plan local = {.service = exchange->service->name, .at = here.site, .root = &here};
	const struct scope_plan *plan = scope_lease_plan(exchange->lease);
	if (plan->root->op == SCOPE_ONE) {
		proxy_trial_new(exchange, plan);
	} else if (proxy_choose_place(exchange) != 0 || proxy_replicate(exchange, head) != 0) {
		return;
	} else if (!exchange->trial) {
		proxy_trial_new(exchange, &local); /* `&`, with this site among them */
	}
	proxy_trial_go(exchange, head, &exchange->body);
}

static void brought(struct proxy_exchange *exchange);

static void collected(struct proxy_exchange *exchange)
{
	struct proxy_asked *asked = exchange->asked;
	struct str body = buf_str(&exchange->body);
	if (proxy_evaluate_again(exchange) != 0)
		return;
	if (ask(exchange, asked, &body) == RELATION_REFUSED && refuse(exchange, asked->head, asked) != 0)
		return;
	if (proxy_explain(exchange, asked->head) != 0)
		return;
	if (exchange->needs && !asked->brought) {
		exchange->needs->then = brought;
		proxy_bring(exchange);
	} else {
		go_on(exchange, asked->head);
	}
}

/* Sites may have come and gone meanwhile; and whatever cannot be brought is refused after all. */
static void brought(struct proxy_exchange *exchange)
{
	exchange->asked->brought = true;
	collected(exchange);
}

static void collect(struct proxy_exchange *exchange, const struct http_head *head, struct proxy_asked *asked)
{
	asked->head = proxy_head_keep(exchange, head);
	exchange->asked = asked;
	proxy_collect_start(exchange, head, collected);
}

/* Most scopes say where one service runs, and nothing of others. */
static bool may_matter(const struct proxy_exchange *exchange)
{
	const struct scope *scope = scope_lease_scope(exchange->lease);
	enum scope_step_op op = scope_lease_plan(exchange->lease)->root->op;
	bool others = false;
	for (uint32_t i = 0; i < scope_entries_count(scope); i++) {
		struct str service = scope_entry_service(scope, i);
		others |= service.length > 0 && !str_equal(service, exchange->service->name);
	}
	return others || exchange->inner || scope_lease_plan(exchange->lease)->with_requirements || op == SCOPE_ALL_OF ||
	       op == SCOPE_SPAN_OF;
}

int proxy_check_owner(struct proxy_exchange *exchange, const struct http_head *head)
{
	if (!exchange->state->config->glue || !may_matter(exchange))
		return 0;
	struct proxy_asked *asked = arena_new(&exchange->arena, struct proxy_asked);
	if (!recognise(exchange, head, asked))
		return 0;
	switch (ask(exchange, asked, NULL)) {
	case RELATION_FINE: break;
	case RELATION_REFUSED: return refuse(exchange, head, asked);
	case RELATION_ASK_BODY: collect(exchange, head, asked); return -1;
	}
	return 0;
}
