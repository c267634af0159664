/* Lists that show cross resources as if they were local (DESIGN 8).
 *
 * A list for which the user has named no site is that of this one. Where this site is a witness of resources of the type, or has parts of divided
 * ones, it is not all that there is here: others hold the rest. The happy path:
 *
 *   1. engine_spread() says which sites; mostly none, and the request passes as if this file were not there
 *   2. they are asked as for `&` (gather.c), and mark what is a replica
 *   3. this site's own list comes first, whole, and gives the shape
 *   4. of each other list, what this site knows as a witness follows; what it does not know is that site's own business, and is left out
 *   5. parts of what is divided become one element (cross_combine()), at the end
 *
 * What goes wrong:
 *   another site fails                      the list is without it, and says so: `Cheops-Partial`
 *   this site's own service fails,          its answer is the answer, as it would have been alone
 *   says 4xx, or something else than a list
 *   the query asks for a page or an order   this site answers alone, and says so (gather_sites.c)
 */
#include "proxy/gather.h"

#include "cross/cross.h"

#include "base/check.h"

/* ---- Is it one? -------------------------------------------------------------------------------------------------- */

static bool is_list(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	struct glue_list_about about;
	if (!resource || resource->effect != GLUE_LIST || resource->match.needs_body)
		return false;
	if (exchange->client->kind == PROXY_FRONT_PEER || !http_method_is_safe(exchange->method))
		return false;
	return glue_operation_list(resource->match.operation, &about) || glue_operation_streams(resource->match.operation);
}

void proxy_list_spread(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct engine_spread spread;
	site_id sites[LIMIT_ENGINE_SPREAD + 1];
	if (exchange->trial || exchange->peer) /* somebody knew better where it runs */
		return;
	if (!is_list(exchange) || !engine_spread(exchange->proxy->shared->engine, exchange->service->name,
	                                         exchange->resource->name.type, &spread))
		return;
	sites[0] = exchange->proxy->mesh->sites->places[PROXY_HERE].id;
	memcpy(sites + 1, spread.sites, spread.count * sizeof(sites[0]));
	proxy_gather_sites(exchange, head, sites, spread.count + 1);
	if (exchange->trial)
		exchange->trial->gather->ours = true;
}

/* ---- What is known ----------------------------------------------------------------------------------------------- */

static struct replica_id id_of(const unsigned char bytes[GLUE_GATHER_ID_BYTES])
{
	struct replica_id id;
	memcpy(id.bytes, bytes, sizeof(id.bytes));
	return id;
}

/* What is here as well is in this site's own list. */
static bool knows(void *context, const unsigned char bytes[GLUE_GATHER_ID_BYTES])
{
	const struct proxy_exchange *exchange = context;
	struct engine_found found;
	struct buf id = {0};
	replica_id_put(id_of(bytes), &id);
	bool known = engine_find(exchange->proxy->shared->engine, &(struct engine_name){.id = buf_str(&id)}, &found);
	buf_free(&id);
	return known && !found.deleted && (found.witness || found.span == REPLICA_DIVIDED);
}

/* ---- What is divided --------------------------------------------------------------------------------------------- */

static void expects(void *context, const unsigned char bytes[GLUE_GATHER_ID_BYTES], bool expected[LIMIT_GATHER_SITES])
{
	const struct proxy_exchange *exchange = context;
	struct proxy_gather *gather = exchange->trial->gather;
	site_id members[LIMIT_REPLICA_MEMBERS], asked[LIMIT_REPLICA_MEMBERS];
	uint32_t count = engine_members(exchange->proxy->shared->engine, id_of(bytes), members), asked_count = 0;
	for (uint32_t i = 0; i < count; i++) {
		bool known = false;
		for (uint32_t k = 0; k < gather->count && k < LIMIT_GATHER_SITES; k++) {
			bool is = gather->parts[k].candidate->id == members[i];
			expected[k] |= is;
			known |= is;
		}
		if (known)
			asked[asked_count++] = members[i];
	}
	gather->sites = cross_sites_digest(asked, asked_count); /* for combine(), which is next */
}

static const char *say_lost(struct proxy_exchange *exchange, site_id lost, struct err *why)
{
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	uint32_t place = site_snapshot_find(sites, lost);
	if (place == SCOPE_NO_INDEX)
		err_set(why, ERR_NOT_FOUND, "a site that was removed took its part along");
	else
		err_set(why, ERR_NOT_FOUND, "%.*s was forced out, and took its part along", STR_FMT(sites->places[place].name));
	return "lost";
}

/* A list of this site is to have all parts; with `&` users say whose they want. */
static void judge_parts(struct proxy_exchange *exchange, struct glue_gather_part *parts, uint32_t count)
{
	const struct proxy_gather *gather = exchange->trial->gather;
	struct cross_standing standings[LIMIT_GATHER_SITES];
	enum cross_verdict verdicts[LIMIT_GATHER_SITES];
	for (uint32_t i = 0; i < count; i++)
		standings[i] = cross_standing_parse(parts[i].says);
	cross_standings_compare(standings, count, gather->ours ? &gather->sites : NULL, verdicts);
	for (uint32_t i = 0; i < count; i++) {
		if (parts[i].left_out)
			continue;
		parts[i].unfit = cross_verdict_reason(verdicts[i]);
		if (parts[i].unfit)
			err_set(&parts[i].why, ERR_UNAVAILABLE, "%s", cross_verdict_phrase(verdicts[i]));
		else if (standings[i].lost)
			parts[i].unfit = say_lost(exchange, standings[i].lost, &parts[i].why);
	}
}

static bool combine(void *context, struct glue_gather_part *parts, uint32_t count, struct buf *out, struct err *err)
{
	struct proxy_exchange *exchange = context;
	const struct proxy_gather *gather = exchange->trial->gather;
	struct cross_part sides[LIMIT_GATHER_SITES];
	struct cross_combined combined;
	CHECK(count <= LIMIT_GATHER_SITES);
	for (uint32_t i = 0; i < count; i++)
		sides[i] = (struct cross_part){.site = gather->names[parts[i].site], .body = parts[i].text};
	if (cross_combine(gather->rules, gather->rules_count, sides, count, out, &combined, err) != 0)
		return false;
	for (uint32_t i = 0; i < count; i++) {
		parts[i].left_out = sides[i].left_out;
		parts[i].why = sides[i].why;
	}
	judge_parts(exchange, parts, count);
	return true;
}

void proxy_gather_policy(struct proxy_exchange *exchange, struct glue_gather_policy *policy)
{
	struct proxy_gather *gather = exchange->trial->gather;
	const struct glue_type *type = exchange->resource->match.type;
	*policy = (struct glue_gather_policy){.context = exchange, .knows = knows};
	if (glue_type_cross(type)->strategy != GLUE_DIVISIBLE)
		return;
	gather->rules_count = proxy_combine_rules(&exchange->arena, type, STR(""), &gather->rules);
	policy->combine = combine;
	policy->expects = expects;
}

/* ---- This site fails --------------------------------------------------------------------------------------------- */

/* As it would have been told without the others. */
static void refuse(struct proxy_exchange *exchange)
{
	const struct proxy_attempt *attempt = exchange->trial->gather->parts[0].attempt;
	const char *error = attempt ? attempt->error : "destination_unavailable";
	bool late = strstr(error, "timeout") != NULL, away = strcmp(error, "destination_unavailable") == 0;
	struct str site = exchange->state->config->site;
	struct proxy_problem problem = {.status = late   ? 504
	                                          : away ? 503
	                                                 : 502,
	                                .type = late   ? "no-answer"
	                                        : away ? "no-instance"
	                                               : "broken-answer",
	                                .title = late   ? "No answer in time"
	                                         : away ? "No instance of the service can be reached"
	                                                : "The connection ended before an answer came",
	                                .error = error,
	                                .site = site};
	proxy_trial_stop(exchange);
	proxy_problem(exchange, &problem, "%.*s at %.*s %s", STR_FMT(exchange->service->name), STR_FMT(site),
	              late   ? "did not answer in time"
	              : away ? "cannot be reached: none of its instances takes a connection"
	                     : "gave no valid answer before the connection ended");
}

/* Something else than JSON, or compressed though asked not to be: a user may have asked for that. */
static const char *why_no_list(const struct proxy_part *own)
{
	bool coded = own->coding.length > 0 && !str_equal_nocase(own->coding, STR("identity"));
	bool json = own->content_type.length == 0 || memmem(own->content_type.at, own->content_type.length, "json", 4);
	return own->status > 299 ? "status" : coded ? "coding" : json ? NULL : "no-json";
}

bool proxy_gather_own_failed(struct proxy_exchange *exchange)
{
	struct proxy_gather *gather = exchange->trial->gather;
	struct proxy_part *own = &gather->parts[0];
	if (!own->headed && !own->over)
		return false;
	if (!own->headed || own->attempt->error) {
		refuse(exchange);
		return true;
	}
	const char *reason = own->over ? NULL : why_no_list(own);
	if (!reason)
		return false;
	proxy_gather_leave_out(exchange, exchange->trial->schedule.candidates, gather->count, reason,
	                       STR("what this site answered cannot be put together with others"));
	own->attempt->part = NULL;
	proxy_attempt_win(own->attempt);
	return true;
}

/* It is not there any more in the bytes that were read: the service is asked once more, and its answer passes as if nobody had looked at it. */
static void ask_alone(struct proxy_exchange *exchange)
{
	struct proxy_trial *trial = exchange->trial;
	struct http_head head = trial->head;
	memcpy(head.fields, trial->fields, head.fields_count * sizeof(*head.fields));
	proxy_trial_free(exchange);
	exchange->target_server = &exchange->state->backends[exchange->service->index].instances[0];
	proxy_build_request(exchange, &head, &exchange->request.head);
	proxy_execute_start(exchange, false);
}

bool proxy_gather_own_odd(struct proxy_exchange *exchange)
{
	const struct proxy_gather *gather = exchange->trial->gather;
	struct str details;
	enum glue_gather_fault fault = glue_gather_fault(gather->merger, 0, &details);
	if (fault == GLUE_GATHER_OK)
		return false;
	proxy_gather_leave_out(exchange, exchange->trial->schedule.candidates, gather->count, glue_gather_fault_name(fault),
	                       STR("what this site answered cannot be put together with others"));
	ask_alone(exchange);
	return true;
}
