/* Scope and service give a plan, and the plan a place, or several to try. */
#include "proxy/bring.h"
#include "proxy/gather.h"

#include "relation/relation.h"

static int refuse_scope(struct proxy_exchange *exchange, const struct scope_diag *diag)
{
	proxy_count(&exchange->proxy->counters.refused_scopes, 1);
	struct proxy_problem problem = {
		.status = 400, .type = scope_fault_name(diag->fault), .title = "The scope cannot be followed", .diag = diag};
	proxy_problem(exchange, &problem, "%s%s%s", diag->message, diag->hint[0] ? "; " : "", diag->hint);
	return -1;
}

/* The plan is right, but would not be carried out. */
static void put_refusal(struct buf *out, const struct relation_refusal *refusal, const char *type)
{
	buf_printf(out, ",\"refused\":{\"type\":\"%s\",\"message\":", type);
	buf_put_json(out, str_of(refusal->message));
	buf_put(out, STR(",\"hint\":"));
	buf_put_json(out, str_of(refusal->hint));
	buf_put_char(out, '}');
}

int proxy_explain(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct http_field *field = http_find(head, HTTP_FIELD_CHEOPS_EXPLAIN);
	if (!field)
		return 0;
	if (!str_equal_nocase(http_field_value(head, field), STR("plan"))) {
		struct proxy_problem problem = {
			.status = 400, .type = "bad-explain", .title = "Cheops-Explain cannot be followed"};
		proxy_problem(exchange, &problem, "the header Cheops-Explain has one value: plan");
		return -1;
	}
	const struct scope_step here = {.op = SCOPE_ONE, .site = exchange->state->config->site};
	const struct scope_plan local = {.service = exchange->service->name, .at = here.site, .root = &here};
	const struct scope_plan *plan = exchange->lease ? scope_lease_plan(exchange->lease) : &local;
	int64_t latency_us = plan->root->latency_us;
	struct buf text = {0};
	buf_put(&text, STR("{\"service\":"));
	buf_put_json(&text, plan->service);
	buf_put(&text, STR(",\"at\":"));
	buf_put_json(&text, plan->at);
	buf_put(&text, STR(",\"scope\":"));
	if (exchange->lease)
		buf_put_json(&text, exchange->scope);
	else
		buf_put(&text, STR("null"));
	buf_put(&text, STR(",\"plan\":"));
	scope_plan_json(&text, plan);
	buf_put(&text, STR(",\"latency_ms\":"));
	if (latency_us == SCOPE_RTT_UNKNOWN)
		buf_put(&text, STR("null"));
	else
		buf_printf(&text, "%.6g", (double)latency_us / 1000);
	buf_put(&text, STR(",\"warnings\":["));
	for (uint32_t i = 0; i < plan->warnings_count; i++) {
		if (i > 0)
			buf_put_char(&text, ',');
		buf_put_json(&text, plan->warnings[i]);
	}
	buf_put_char(&text, ']');
	if (exchange->needs)
		proxy_put_needs(exchange, &text);
	if (exchange->refusal)
		put_refusal(&text, exchange->refusal, exchange->refused_as);
	buf_put(&text, STR("}\n"));
	proxy_build_answer(exchange, 200, "application/json", STR(""), buf_str(&text));
	buf_free(&text);
	return -1;
}

/* What of it is missing, and what there is. */
static const char *why_not(const struct proxy_exchange *exchange, const struct scope_step *step, bool root)
{
	if (step->op == SCOPE_SPAN_OF && !root)
		return "`%` cannot stand inside of another operator; alone it makes one resource over several sites";
	if (step->op == SCOPE_SPAN_OF && exchange->resource)
		return "`%` makes one resource over several sites; what was made is found by its id, with no scope at all";
	if (step->op == SCOPE_SPAN_OF)
		return "the description of the application does not know this path, so nothing can be made over several sites; "
			   "see `cheops app explain`";
	if (step->consistency == SCOPE_STRONG)
		return "`strong` is for a later version; there are `eventual`, which a bare `&` means, and `weak`";
	if (!root)
		return "`&` cannot stand inside of `;` or `|` yet; `&` alone replicates";
	if (!exchange->resource)
		return "the description of the application does not know this path, so only reads (GET, HEAD, OPTIONS) can run "
			   "at several sites; see `cheops app explain`";
	for (uint32_t i = 0; i < step->of_count; i++)
		if (step->of[i]->op != SCOPE_ONE)
			return "inside of `&` there can only be sites yet, not a choice of them (`;`, `|`)";
	return "by the description of the application it is no operation on one item, so it cannot be replicated; name one "
		   "site, or several to choose from (`;`, `|`)";
}

/* A site of a mesh has a store, or had. */
static bool lacks_store(const struct proxy_exchange *exchange, const struct scope_step *step, bool root)
{
	bool keeps = step->op == SCOPE_SPAN_OF || (step->op == SCOPE_ALL_OF && step->consistency != SCOPE_STRONG);
	return keeps && root && exchange->state->config->meshed && !exchange->proxy->shared->engine;
}

static int refuse_without_store(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {.status = 503,
	                                .type = "store-failed",
	                                .title = "The store of this agent cannot be used",
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem,
	              "replicated resources are not available at this site until its store is mended; the agent's log says "
	              "what is wrong with it");
	return -1;
}

static int refuse_plan(struct proxy_exchange *exchange, const struct scope_step *step, bool root)
{
	if (lacks_store(exchange, step, root))
		return refuse_without_store(exchange);
	struct proxy_problem problem = {
		.status = 501, .type = "not-yet", .title = "This collaboration is not carried out yet"};
	bool all = step->op == SCOPE_ALL_OF;
	proxy_problem(exchange, &problem, "the scope gives a plan with a step of the kind `%s` (`%s`: %s): %s",
	              scope_step_name(step->op), all ? "&" : "%", all ? "at all of them" : "one resource over them",
	              why_not(exchange, step, root));
	return -1;
}

/* A service that calls another one cannot read answers side by side: it gets one, of its own site if that is among them. */
static bool is_read_for_a_service(const struct proxy_exchange *exchange, const struct scope_step *root)
{
	const struct proxy_resource *resource = exchange->resource;
	return exchange->inner && root->op == SCOPE_ALL_OF && proxy_is_gather(exchange, root) &&
	       !(resource && resource->effect == GLUE_LIST);
}

static bool has_here(const struct scope_step *root)
{
	for (uint32_t i = 0; i < root->of_count; i++)
		if (root->of[i]->site_index == PROXY_HERE)
			return true;
	return false;
}

/* What the plan asks for: one place, or several that may be tried. */
int proxy_choose_place(struct proxy_exchange *exchange)
{
	const struct scope_plan *plan = scope_lease_plan(exchange->lease);
	const struct scope_step *root = plan->root;
	if (root->op == SCOPE_ONE) {
		if (root->site_index != PROXY_HERE)
			exchange->peer = proxy_peer_take(exchange->proxy, root->site_index);
		return 0;
	}
	if (is_read_for_a_service(exchange, root)) {
		if (!has_here(root))
			proxy_trial_new(exchange, plan);
		return 0;
	}
	if (root->op == SCOPE_ALL_OF && proxy_is_gather(exchange, root))
		return proxy_gather_new(exchange, plan);
	if (root->op == SCOPE_ALL_OF && proxy_choose_copies(exchange, plan) == 0)
		return 0;
	int spans = root->op == SCOPE_SPAN_OF ? proxy_choose_span(exchange, plan) : 1;
	if (spans <= 0)
		return spans;
	const struct scope_step *unable = proxy_schedule_unable(root);
	if (unable)
		return refuse_plan(exchange, unable, unable == root);
	proxy_trial_new(exchange, plan);
	return 0;
}

/* Another agent has evaluated it by what it knew, and chosen this site. What differs here, such as a site that was removed
 * meanwhile, is no reason to refuse: it matters to calls that the service makes, if at all, and they are evaluated then. */
static bool is_settled(const struct proxy_exchange *exchange, enum scope_fault fault)
{
	return exchange->carrier == PROXY_CARRIER_PEER && fault >= SCOPE_FAULT_UNKNOWN_SITE;
}

int proxy_evaluate_again(struct proxy_exchange *exchange)
{
	const struct scope_view *view = &exchange->proxy->mesh->sites->view;
	struct scope_request request = {.service = exchange->service->name, .at = PROXY_HERE};
	struct scope_lease *lease;
	struct scope_diag diag;
	if (scope_cache_get(exchange->proxy->scopes, exchange->scope_text, &request, view, &lease, &diag) != 0)
		return refuse_scope(exchange, &diag);
	scope_lease_drop(exchange->lease);
	exchange->lease = lease;
	exchange->scope = scope_lease_bound(lease);
	return 0;
}

/* This site was chosen to carry it out for several: then it has to know all of them. Run here alone it would be acknowledged, and never
 * come to the others. */
static bool is_for_several(const struct proxy_exchange *exchange)
{
	static const char marks[] = "&%("; /* operators; a function may choose several */
	if (!exchange->resource || !proxy_may_change(exchange->resource))
		return false;
	for (size_t i = 0; i < sizeof(marks) - 1; i++)
		if (memchr(exchange->scope_text.at, marks[i], exchange->scope_text.length))
			return true;
	return false;
}

static int refuse_strangers(struct proxy_exchange *exchange, const struct scope_diag *diag)
{
	struct proxy_problem problem = {.status = 503,
	                                .type = "not-seen-yet",
	                                .title = "This site has not heard of all sites of the scope",
	                                .retry_after_s = 1,
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem,
	              "%.*s was to carry it out for several sites, and does not know all of them yet: %s",
	              STR_FMT(exchange->state->config->site), diag->message);
	return -1;
}

/* Does the scope say anything of the service that is asked? It may be for those alone that this one calls. */
static bool names_site(const struct proxy_exchange *exchange)
{
	const struct scope *scope = scope_lease_scope(exchange->lease);
	for (uint32_t i = 0; i < scope_entries_count(scope); i++) {
		struct str service = scope_entry_service(scope, i);
		if (service.length == 0 || str_equal(service, exchange->service->name))
			return true;
	}
	return false;
}

int proxy_evaluate(struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct scope_view *view = &exchange->proxy->mesh->sites->view;
	struct scope_request request = {.service = exchange->service->name, .at = PROXY_HERE};
	struct scope_diag diag;
	if (scope_cache_get(exchange->proxy->scopes, exchange->scope_text, &request, view, &exchange->lease, &diag) != 0) {
		if (!is_settled(exchange, diag.fault))
			return refuse_scope(exchange, &diag);
		if (is_for_several(exchange))
			return refuse_strangers(exchange, &diag);
		exchange->scope = exchange->scope_text; /* canonical, as agents send it */
		return 0;
	}
	/* From here on the scope travels in its canonical form, in which each location has its service. */
	exchange->scope = scope_lease_bound(exchange->lease);
	const struct scope_plan *plan = scope_lease_plan(exchange->lease);
	if (proxy_is_elsewhere(exchange))
		return proxy_explain(exchange, head) != 0 ? -1 : proxy_send_on(exchange);
	if (exchange->carrier == PROXY_CARRIER_PEER) { /* evaluated where it came from: it runs here */
		if (plan->root->op == SCOPE_ALL_OF)
			proxy_choose_copies(exchange, plan);
		if (plan->root->op == SCOPE_SPAN_OF)
			return proxy_choose_span(exchange, plan) < 0 ? -1 : 0;
		return 0;
	}
	proxy_gather_prefers(exchange, head);
	/* What is replicated runs at its members, whatever the scope, and uses what they have. */
	bool operation = proxy_is_operation(exchange);
	if (!operation && proxy_check_owner(exchange, head) != 0)
		return -1;
	if (proxy_explain(exchange, head) != 0)
		return -1;
	if (proxy_is_divided_read(exchange))
		return proxy_divide_read(exchange);
	if (operation)
		return 0;
	if (proxy_lists_container(exchange))
		proxy_list_container(exchange, head);
	else if (!names_site(exchange))
		proxy_list_spread(exchange, head);
	if (exchange->trial)
		return 0;
	return exchange->resource && exchange->resource->child ? proxy_choose_child(exchange)
	                                                       : proxy_choose_place(exchange);
}
