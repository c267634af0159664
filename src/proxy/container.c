/* What is in a container that spans sites (DESIGN 8): a path below one, /projects/{project}/servers.
 *
 * The description says of which reference in a path that it is the container, and src/engine whether it is one of several sites. Then:
 *   a create         makes a child: one resource that all sites of the container know of, held where its own scope says, by default here. It is
 *                    an operation, also without any scope, and its name is claimed first (engine/names.c)
 *   a list           without a scope for this service is that of all of the container's sites, put together (gather.c)
 *   anything else    is for what was made, and found by its id (span.c)
 * Where a child is made, by its scope:
 *   nothing, a site                     there; the agent there is asked, and makes it a child
 *   `&`                                 at all of them. It is one child, with one name
 *   `%`, on what is indivisible         at the first
 *   `;`, `|`, and what functions choose the first that can be reached. Of those named before this one, each is tried; where it is this one's turn it is
 *                                       made here
 * A site that is none of the container's cannot have a child of it: that is refused before anything runs; of a choice it does not count.
 */
#include "proxy/gather.h"

/* ---- Which container? ------------------------------------------------------------------------------------------------------ */

static bool makes_item(const struct proxy_resource *resource)
{
	return resource->effect == GLUE_CREATE ||
	       (resource->match.operation && glue_operation_creates(resource->match.operation));
}

static void be_inside(struct proxy_exchange *exchange, const struct engine_found *found)
{
	struct proxy_resource *resource = exchange->resource;
	if (found->deleted || found->local_id_bytes == 0) /* it is gone, or not here yet: for the service it is not there */
		return;
	struct proxy_inside *inside = arena_new(&exchange->arena, struct proxy_inside);
	inside->id = found->id;
	inside->sites_count = engine_members(exchange->proxy->shared->engine, found->id, inside->sites);
	resource->inside = inside->sites_count > 0 ? inside : NULL;
	resource->child = resource->inside && !resource->known && !resource->match.needs_body && makes_item(resource);
}

void proxy_find_container(struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	struct engine *engine = exchange->proxy->shared->engine;
	struct engine_found found;
	if (engine_has_any(engine) && engine_container_find(engine, &resource->match, &resource->asked, &found))
		be_inside(exchange, &found);
}

bool proxy_may_name_container(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return resource && exchange->has_body && !resource->inside && !resource->known && !resource->match.needs_body &&
	       makes_item(resource) && engine_has_any(exchange->proxy->shared->engine) &&
	       engine_may_name_container(resource->match.operation);
}

static bool has_site(const struct proxy_inside *inside, site_id site)
{
	for (uint32_t i = 0; i < inside->sites_count; i++)
		if (inside->sites[i] == site)
			return true;
	return false;
}

/* ---- Where is it made? ------------------------------------------------------------------------------------------------------- */

static int refuse_site(struct proxy_exchange *exchange, struct str site)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	const struct proxy_inside *inside = exchange->resource->inside;
	struct proxy_problem problem = {.status = 409,
	                                .type = "not-in-container",
	                                .title = "The container is not at this site",
	                                .close = exchange->has_body};
	struct buf names = {0};
	for (uint32_t i = 0; i < inside->sites_count && names.length < LIMIT_ERROR_TEXT_BYTES / 2; i++) {
		uint32_t place = site_snapshot_find(sites, inside->sites[i]);
		if (place == SCOPE_NO_INDEX)
			continue;
		buf_put(&names, names.length > 0 ? STR(", ") : STR(""));
		buf_put(&names, sites->places[place].name);
	}
	if (site.length > 0)
		proxy_problem(exchange, &problem,
		              "what is made in a container lies at its sites, and %.*s is none of them; it has: %s",
		              STR_FMT(site), buf_c(&names));
	else
		proxy_problem(exchange, &problem,
		              "what is made in a container lies at its sites, and the scope chooses none of them; it has: %s",
		              buf_c(&names));
	buf_free(&names);
	return -1;
}

/* Of `&` and `%` each site counts. */
static int check_sites(struct proxy_exchange *exchange, const struct scope_step *step)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	if (step->op == SCOPE_ONE && !has_site(exchange->resource->inside, sites->places[step->site_index].id))
		return refuse_site(exchange, step->site);
	for (uint32_t i = 0; i < step->of_count; i++)
		if (check_sites(exchange, step->of[i]) != 0)
			return -1;
	return 0;
}

/* Those that come before this site are asked; if none of them is worth it, it is made here. */
static int choose_one(struct proxy_exchange *exchange, const struct scope_plan *plan)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	struct proxy_schedule schedule;
	proxy_schedule_make(&schedule, &exchange->arena, plan->root, sites->places_count);
	const struct scope_step **of = arena_array(&exchange->arena, const struct scope_step *, schedule.count);
	uint32_t count = 0;
	bool here = false, up = false;
	for (uint32_t i = 0; i < schedule.count && !here; i++) {
		struct proxy_candidate *candidate = &schedule.candidates[i];
		candidate->id = sites->places[candidate->place].id;
		here = candidate->place == PROXY_HERE && has_site(exchange->resource->inside, candidate->id);
		if (candidate->place == PROXY_HERE || !has_site(exchange->resource->inside, candidate->id))
			continue;
		up |= !proxy_candidate_is_down(exchange, candidate);
		of[count++] = proxy_step_at(exchange, candidate->place);
	}
	if (here && !up)
		return 0;
	if (count == 0)
		return refuse_site(exchange, STR(""));
	const struct scope_step root = {.op = SCOPE_OTHERWISE, .of = of, .of_count = count};
	proxy_trial_new(exchange, &(struct scope_plan){.service = exchange->service->name, .root = &root});
	return 0;
}

int proxy_choose_child(struct proxy_exchange *exchange)
{
	const struct scope_plan *plan = scope_lease_plan(exchange->lease);
	const struct scope_step *root = plan->root;
	struct proxy_resource *resource = exchange->resource;
	if (root->op == SCOPE_OTHERWISE || root->op == SCOPE_ANY_OF)
		return proxy_schedule_unable(root) ? proxy_choose_place(exchange) : choose_one(exchange, plan);
	if (check_sites(exchange, root) != 0)
		return -1;
	/* What is divided, or a container itself, lies over the sites that it is made with, and is no child. */
	bool spans = root->op == SCOPE_SPAN_OF;
	resource->child = !spans || glue_type_cross(resource->match.type)->strategy == GLUE_INDIVISIBLE;
	return proxy_choose_place(exchange);
}

uint32_t proxy_child_holders(const struct proxy_exchange *exchange, site_id *holders)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	const struct scope_step *copies = exchange->resource->copies;
	uint32_t count = copies && copies->op == SCOPE_ALL_OF ? copies->of_count : 0;
	count = count < LIMIT_REPLICA_MEMBERS ? count : LIMIT_REPLICA_MEMBERS;
	for (uint32_t i = 0; i < count; i++)
		holders[i] = sites->places[copies->of[i]->site_index].id;
	if (count == 0)
		holders[count++] = sites->places[PROXY_HERE].id;
	return count;
}

/* ---- By the body ------------------------------------------------------------------------------------------------- */

/* It is to run here, and its body is read. What is in no container runs as it would have. */
void proxy_decide_container(struct proxy_exchange *exchange)
{
	const struct scope_step here = {.op = SCOPE_ONE, .site = exchange->state->config->site, .site_index = PROXY_HERE};
	const struct scope_plan local = {.service = exchange->service->name, .at = here.site, .root = &here};
	struct proxy_resource *resource = exchange->resource;
	struct engine_found found;
	if (engine_container_in_body(exchange->proxy->shared->engine, &resource->match, buf_str(&exchange->body), &found))
		be_inside(exchange, &found);
	bool spans = resource->copies && resource->copies->op == SCOPE_SPAN_OF;
	if (spans && glue_type_cross(resource->match.type)->strategy != GLUE_INDIVISIBLE)
		resource->child = false;
	if (resource->child && check_sites(exchange, resource->copies ? resource->copies : &here) != 0)
		return;
	if (proxy_operate(exchange))
		return;
	proxy_trial_new(exchange, &local);
	proxy_trial_go(exchange, resource->head, &exchange->body);
}

/* ---- Lists --------------------------------------------------------------------------------------------------------------------- */

/* Does the scope say where this service is? */
static bool is_scoped(const struct proxy_exchange *exchange)
{
	const struct scope *scope = exchange->lease ? scope_lease_scope(exchange->lease) : NULL;
	for (uint32_t i = 0; scope && i < scope_entries_count(scope); i++) {
		struct str service = scope_entry_service(scope, i);
		if (service.length == 0 || str_equal(service, exchange->service->name))
			return true;
	}
	return false;
}

bool proxy_lists_container(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	/* One that never ends is followed at the site that was asked. */
	return resource && resource->inside && resource->effect == GLUE_LIST && !resource->match.needs_body &&
	       !glue_operation_streams(resource->match.operation) && exchange->carrier != PROXY_CARRIER_PEER &&
	       !exchange->gathered && !is_scoped(exchange);
}

void proxy_list_container(struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_inside *inside = exchange->resource->inside;
	site_id *sites = arena_array(&exchange->arena, site_id, inside->sites_count + 1);
	sites[0] =
		exchange->proxy->mesh->sites->places[PROXY_HERE].id; /* it has the first word: what it says is here already */
	memcpy(sites + 1, inside->sites, inside->sites_count * sizeof(sites[0]));
	proxy_gather_sites(exchange, head, sites, inside->sites_count + 1);
}
