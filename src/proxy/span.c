/* Resources that span sites (DESIGN 8): `%`, and what lies at another site than the one that is asked.
 *
 * A container is made at all of its sites, by the first of them; what is in it is another file's (container.c).
 * What its description calls indivisible is made at the first site of `%`, its prime, which is asked to do so; the others are told of it, as
 * witnesses. After that no scope is needed. A request for what this site is a witness of is sent on, reads and writes alike, to a site that
 * holds it, the prime first; it comes back as if it had been answered here. It goes on once only: who gets it from another agent, and does
 * not hold it either, says so.
 *
 * What is in a container and held by several sites can be changed at each of them, but for its name, which the site that made it has to claim: the engine says so
 * once it has read the body (engine_answer.elsewhere), and the request is sent on there in the same way.
 */
#include "proxy/proxy_int.h"

/* ---- What lies elsewhere ------------------------------------------------------------------------------------------- */

bool proxy_is_elsewhere(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return resource && resource->known && resource->found.witness && !resource->found.deleted;
}

static int refuse_lost(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {
		.status = 410, .type = "site-removed", .title = "The resource went with its site", .close = exchange->has_body};
	proxy_problem(exchange, &problem, "the sites that held this resource were removed from the mesh; it is gone");
	return -1;
}

static int refuse_moved(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {.status = 503,
	                                .type = "not-seen-yet",
	                                .title = "The resource is not at this site",
	                                .retry_after_s = 1,
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem,
	              "another agent took %.*s for a site that holds this resource, and it is not; try again",
	              STR_FMT(exchange->state->config->site));
	return -1;
}

/* What the other agent is to read as the scope: that it runs there. The user's own, if there is one, is for what comes behind. */
static void say_where(struct proxy_exchange *exchange, struct str site)
{
	struct buf text = {0};
	if (exchange->scope.length > 0)
		return;
	scope_put_service(&text, exchange->service->name);
	buf_put(&text, STR(": "));
	scope_put_site(&text, site);
	exchange->scope = str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
	buf_free(&text);
}

const struct scope_step *proxy_step_at(struct proxy_exchange *exchange, uint32_t place)
{
	struct scope_step *step = arena_new(&exchange->arena, struct scope_step);
	struct str name = exchange->proxy->mesh->sites->places[place].name;
	*step = (struct scope_step){.op = SCOPE_ONE, .site_index = place};
	step->site = str_make(arena_copy(&exchange->arena, name.at, name.length), name.length);
	return step;
}

int proxy_send_on(struct proxy_exchange *exchange)
{
	const struct engine_found *found = &exchange->resource->found;
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	const struct scope_step *of[LIMIT_REPLICA_HOLDERS];
	uint32_t count = 0;
	if (exchange->client->kind == PROXY_FRONT_PEER)
		return refuse_moved(exchange);
	for (uint32_t i = 0; i < found->holders_count; i++) {
		uint32_t place = site_snapshot_find(sites, found->holders[i]);
		if (place == SCOPE_NO_INDEX || site_snapshot_is_removed(sites, found->holders[i]))
			continue;
		of[count++] = proxy_step_at(exchange, place);
	}
	if (count == 0)
		return refuse_lost(exchange);
	say_where(exchange, of[0]->site);
	const struct scope_step root = {.op = SCOPE_OTHERWISE, .of = of, .of_count = count};
	proxy_trial_new(exchange, &(struct scope_plan){.service = exchange->service->name, .root = &root});
	return 0;
}

/* Who held it back with its body is not in the way any more. */
static void go_there(struct proxy_exchange *exchange)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	uint32_t place = site_snapshot_find(sites, exchange->resource->elsewhere);
	if (place == SCOPE_NO_INDEX) {
		refuse_lost(exchange);
		return;
	}
	const struct scope_step *there = proxy_step_at(exchange, place);
	say_where(exchange, there->site);
	proxy_trial_new(exchange, &(struct scope_plan){.service = exchange->service->name, .root = there});
	proxy_trial_go(exchange, exchange->resource->head, &exchange->body);
}

bool proxy_send_to(struct proxy_exchange *exchange, site_id site)
{
	struct proxy_resource *resource = exchange->resource;
	if (!exchange->client || exchange->client->kind == PROXY_FRONT_PEER || !resource->head)
		return false;
	resource->elsewhere = site;
	proxy_resume(exchange, go_there);
	return true;
}

/* ---- `%` ----------------------------------------------------------------------------------------------------------- */

static int refuse_type(struct proxy_exchange *exchange)
{
	struct buf type = {0};
	glue_type_put(&exchange->resource->match, &type);
	struct proxy_problem problem = {.status = 400,
	                                .type = "not-cross",
	                                .title = "Nothing of this type can span sites",
	                                .close = exchange->has_body};
	proxy_problem(
		exchange, &problem,
		"`%%` makes one resource over several sites, and the description does not say how for %s: it would have "
		"to say `cross` for that type (container, divisible or indivisible); `&` replicates it",
		buf_c(&type));
	buf_free(&type);
	return -1;
}

/* Where it is made is what the strategy says; 1: the plan is none that makes something. */
int proxy_choose_span(struct proxy_exchange *exchange, const struct scope_plan *plan)
{
	struct proxy_resource *resource = exchange->resource;
	const struct scope_step *root = plan->root;
	bool known = resource && !resource->match.needs_body;
	if (!resource || (known && resource->effect != GLUE_CREATE && !glue_operation_creates(resource->match.operation)))
		return 1;
	enum glue_strategy strategy = glue_type_cross(resource->match.type)->strategy;
	if (strategy == GLUE_NO_CROSS)
		return refuse_type(exchange);
	if (strategy == GLUE_DIVISIBLE)
		return proxy_divide_choose(exchange, plan);
	if (root->of[0]->site_index == PROXY_HERE)
		resource->copies = root;
	else if (exchange->carrier != PROXY_CARRIER_PEER)
		exchange->peer = proxy_peer_take(exchange->proxy, root->of[0]->site_index);
	return 0;
}

enum replica_span proxy_span_of(const struct proxy_resource *resource)
{
	if (!resource->copies || resource->copies->op != SCOPE_SPAN_OF)
		return REPLICA_ALIKE;
	switch (glue_type_cross(resource->match.type)->strategy) {
	case GLUE_CONTAINER: return REPLICA_CONTAINER;
	case GLUE_DIVISIBLE: return REPLICA_DIVIDED;
	default: return REPLICA_PLACED;
	}
}
