/* Requests that concern replicated resources (DESIGN 5, 7).
 *
 * The description of the application says what a request is (glue). Then:
 *   it changes a replica, named by its meta-id or its local one    it becomes an operation, whatever the scope
 *   it creates, and the scope says `&` with this site among them   a replicant is made
 *   it reads or lists                                              it runs as always; a meta-id in it becomes the local one,
 *                                                                  local ids in the answer become meta-ids
 *   `&`, and this site is not among them                           one of them is asked to do it, as with `;`
 * Everything else passes as if this file were not there: where no replicant is known and no `&` is said, a request costs the
 * look at its path.
 *
 * What only the body can say is decided once that is read (decide.c). Operations go to the engine with their whole body: read into memory where ids may stand in it, else spooled (spool.c). The
 * exchange is PENDING until it answers.
 */
#include "proxy/gather.h"

#include "base/check.h"
#include "base/percent.h"
#include "base/text.h"

/* ---- What is it? --------------------------------------------------------------------------------------------------- */

static bool changes(const struct proxy_resource *resource)
{
	enum glue_effect effect = resource->effect;
	return effect != GLUE_READ && effect != GLUE_LIST && effect != GLUE_PASS;
}

/* Only its body may say. */
bool proxy_may_change(const struct proxy_resource *resource)
{
	return resource->match.needs_body || changes(resource);
}

static struct str copy(struct proxy_exchange *exchange, struct str text)
{
	return str_make(arena_copy(&exchange->arena, text.at, text.length), text.length);
}

/* Which ids are replicas' can only be told where the type is known; the operation may have to wait for the body. */
static void note_resource(struct proxy_exchange *exchange, const struct glue_match *match,
                          const struct glue_request *asked)
{
	struct proxy_resource *resource = arena_new(&exchange->arena, struct proxy_resource);
	struct buf type = {0}, collection = {0};
	struct engine *engine = exchange->proxy->shared->engine;
	resource->match = *match;
	resource->asked = *asked;
	resource->effect = match->operation ? glue_operation_effect(match->operation) : GLUE_RELATIVE;
	glue_type_put(match, &type);
	if (glue_type_ids_in_collection(match->type))
		engine_collection_put(engine, match, &collection);
	resource->name = (struct engine_name){exchange->service->name, copy(exchange, buf_str(&type)),
	                                      copy(exchange, buf_str(&collection)), STR("")};
	percent_decode(&exchange->arena, match->id, &resource->name.id); /* or "" */
	buf_free(&type);
	buf_free(&collection);
	resource->known = engine_find(engine, &resource->name, &resource->found);
	exchange->resource = resource;
	proxy_find_container(exchange);
}

void proxy_recognise(struct proxy_exchange *exchange, const struct http_head *head)
{
	struct proxy_shared *shared = exchange->proxy->shared;
	const struct glue *glue = exchange->state->config->glue;
	if (!shared->engine || !glue)
		return;
	/* Where there are no replicants, only what may make one is of interest. */
	if (!engine_has_any(shared->engine) && exchange->carrier == PROXY_CARRIER_NONE)
		return;
	/* The match points into it, and lives longer than the buffer keeps the head. */
	exchange->target = copy(exchange, exchange->target);
	const struct http_field *type = http_find_named(head, STR("content-type"));
	const char *query = memchr(exchange->target.at, '?', exchange->target.length);
	size_t path = query ? (size_t)(query - exchange->target.at) : exchange->target.length;
	struct glue_request asked = {.service = exchange->service->name,
	                             .method = http_method_name(exchange->method),
	                             .path = str_make(exchange->target.at, path),
	                             .query = query ? str_make(query + 1, exchange->target.length - path - 1) : STR(""),
	                             .content_type = type ? copy(exchange, http_field_value(head, type)) : STR("")};
	struct glue_match match;
	if (glue_match(glue, &asked, &match))
		note_resource(exchange, &match, &asked);
}

/* ---- Sessions ------------------------------------------------------------------------------------------------------ */

enum { SESSION_MS = 10000 };

static void go_on(struct proxy_exchange *exchange)
{
	struct http_head *head = http_parser_head(exchange->request_parser);
	proxy_recognise(exchange, head); /* not before: what it names may have come meanwhile */
	proxy_go_on(exchange, head);
}

static void refuse_session(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {.status = 503,
	                                .type = "not-seen-yet",
	                                .title = "This site has not seen what the session has",
	                                .retry_after_s = 5,
	                                .close = exchange->has_body};
	proxy_problem(
		exchange, &problem,
		"within %d s the operations that `Cheops-Session` speaks of have not arrived here; a member that has them "
		"can be asked with a scope",
		SESSION_MS / 1000);
}

static void awaited(void *context, bool met)
{
	proxy_resume(context, met ? go_on : refuse_session);
}

int proxy_await_session(struct proxy_exchange *exchange, const struct http_head *head)
{
	bool may_be = exchange->proxy->shared->engine && exchange->state->config->glue;
	const struct http_field *session = may_be ? http_find_named(head, STR("cheops-session")) : NULL;
	if (!session || exchange->client->kind == PROXY_FRONT_PEER)
		return 0;
	exchange->target = copy(exchange, exchange->target); /* it outlives the buffer */
	exchange->phase = PROXY_PENDING;
	exchange->deferred = true;
	engine_await(exchange->proxy->shared->engine, &(struct engine_await){.session = http_field_value(head, session),
	                                                                     .limit_ms = SESSION_MS,
	                                                                     .loop = exchange->proxy->loop,
	                                                                     .done = awaited,
	                                                                     .context = exchange});
	return -1;
}

/* Where the body has to say, it may be one until that is read: the scope is looked at then. */
bool proxy_is_operation(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return resource && resource->known && (changes(resource) || resource->match.needs_body);
}

/* ---- `&` ----------------------------------------------------------------------------------------------------------- */

int proxy_choose_copies(struct proxy_exchange *exchange, const struct scope_plan *plan)
{
	struct proxy_resource *resource = exchange->resource;
	const struct scope_step *root = plan->root;
	bool known = resource && !resource->match.needs_body;
	if (!resource || (known && (resource->effect == GLUE_LIST || resource->effect == GLUE_PASS)))
		return ERR_UNAVAILABLE; /* a read is put together (gather.c); anything else is no operation on one item */
	for (uint32_t i = 0; i < root->of_count; i++)
		if (root->of[i]->op != SCOPE_ONE)
			return ERR_UNAVAILABLE;
	if (root->consistency == SCOPE_STRONG)
		return ERR_UNAVAILABLE;
	for (uint32_t i = 0; i < root->of_count; i++)
		if (root->of[i]->site_index == PROXY_HERE)
			resource->copies = root;
	if (!resource->copies && exchange->carrier != PROXY_CARRIER_PEER)
		proxy_trial_new(exchange, plan);
	return 0;
}

/* ---- Operations ---------------------------------------------------------------------------------------------------- */

/* In the loop of the exchange. */
static void answered(void *context, const struct engine_answer *answer)
{
	struct proxy_exchange *exchange = context;
	if (answer->code == 0) {
		struct buf fields = {0};
		buf_put(&fields, answer->fields);
		proxy_put_relied(exchange, answer->status, NULL, &fields);
		proxy_answer_whole(exchange, answer->status, buf_str(&fields), answer->body);
		buf_free(&fields);
		return;
	}
	if (answer->elsewhere != 0 && proxy_send_to(exchange, answer->elsewhere))
		return;
	struct buf body = {0};
	buf_printf(&body,
	           "{\"type\":\"urn:cheops:problem:%s\",\"title\":\"The operation was not carried out\",\"status\":%u",
	           answer->problem, answer->status);
	buf_put(&body, STR(",\"detail\":"));
	buf_put_json(&body, answer->detail);
	buf_put(&body, answer->body);
	buf_put(&body, STR("}\n"));
	struct glue_failure failure = {.status = answer->status,
	                               .type = str_of(answer->problem),
	                               .title = STR("The operation was not carried out"),
	                               .detail = answer->detail};
	struct buf fields = {0}, shaped = {0}, type = {0};
	struct str content_type;
	buf_put(&fields, answer->fields);
	if (exchange->client && proxy_shape_put(exchange, &failure, &fields, &shaped, &content_type))
		buf_put(&type, content_type);
	bool is_shaped = type.length > 0;
	proxy_answer(exchange, answer->status, is_shaped ? buf_c(&type) : "application/problem+json", buf_str(&fields),
	             buf_str(is_shaped ? &shaped : &body));
	buf_free(&type);
	buf_free(&fields);
	buf_free(&shaped);
	buf_free(&body);
}

/* Each member's service takes the others from where the scope says, as seen from there: {a: Site1 & Site2, b: Site1}. */
static struct str scope_for_others(const struct proxy_exchange *exchange)
{
	const struct scope *scope = exchange->lease ? scope_lease_scope(exchange->lease) : NULL;
	for (uint32_t i = 0; scope && i < scope_entries_count(scope); i++) {
		struct str service = scope_entry_service(scope, i);
		if (service.length > 0 && !str_equal(service, exchange->service->name))
			return exchange->scope;
	}
	return STR("");
}

static void refuse_many(struct proxy_exchange *exchange, uint32_t count)
{
	struct proxy_problem problem = {
		.status = 400, .type = "too-many-members", .title = "Too many sites are to have this resource"};
	proxy_problem(exchange, &problem, "the scope names %u sites; at most %d can share one resource", count,
	              LIMIT_REPLICA_MEMBERS);
}

static void submit(struct proxy_exchange *exchange)
{
	struct proxy_resource *resource = exchange->resource;
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	const struct proxy_inside *inside = resource->child ? resource->inside : NULL;
	site_id members[LIMIT_REPLICA_MEMBERS], holders[LIMIT_REPLICA_MEMBERS], prime = 0;
	uint32_t count = resource->copies && !resource->known ? resource->copies->of_count : 0, holders_count = 0;
	if (count > LIMIT_REPLICA_MEMBERS) {
		refuse_many(exchange, count);
		return;
	}
	for (uint32_t i = 0; i < count; i++)
		members[i] = sites->places[resource->copies->of[i]->site_index].id;
	enum replica_span span = count > 0 ? proxy_span_of(resource) : resource->found.span;
	if (count > 0 && span != REPLICA_ALIKE)
		prime = members[0];
	if (span == REPLICA_PLACED)
		holders[holders_count++] = prime;
	if (inside) {
		count = inside->sites_count;
		memcpy(members, inside->sites, count * sizeof(members[0]));
		span = REPLICA_PLACED;
		prime = sites->places[PROXY_HERE].id;
		holders_count = proxy_child_holders(exchange, holders);
	}
	exchange->phase = PROXY_PENDING;
	exchange->deferred = true;
	exchange->response.from = NULL;
	proxy_count(&exchange->proxy->counters.operations, 1);
	bool weak = resource->copies && resource->copies->consistency == SCOPE_WEAK;
	engine_submit(exchange->proxy->shared->engine,
	              &(struct engine_request){.service = exchange->service->name,
	                                       .method = http_method_name(exchange->method),
	                                       .target = exchange->target,
	                                       .fields = resource->fields,
	                                       .content_type = resource->asked.content_type,
	                                       .scope = scope_for_others(exchange),
	                                       .body = buf_str(&exchange->body),
	                                       .spool = exchange->spool,
	                                       .members = members,
	                                       .members_count = count,
	                                       .span = span,
	                                       .prime = prime,
	                                       .holders = holders,
	                                       .holders_count = holders_count,
	                                       .in_container = inside != NULL,
	                                       .container = inside ? inside->id : (struct replica_id){{0}},
	                                       .consistency = weak ? REPLICA_WEAK : REPLICA_EVENTUAL,
	                                       .replicant = resource->found.id,
	                                       .key = resource->key,
	                                       .loop = exchange->proxy->loop,
	                                       .done = answered,
	                                       .context = exchange});
	exchange->spool = NULL; /* the engine's now */
}

/* Without a type it is taken for JSON, as services do. */
static bool is_json(struct str content_type)
{
	return content_type.length == 0 || memmem(content_type.at, content_type.length, "json", 4);
}

/* Nobody has to look into its body: the description says so, or no ids could be found in it. */
static bool is_opaque(const struct proxy_resource *resource)
{
	if (!resource->match.operation || resource->match.needs_body)
		return false;
	return glue_operation_opaque(resource->match.operation) || !is_json(resource->asked.content_type);
}

/* What would have to be looked into, and cannot be. */
static bool is_unreadable(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return exchange->has_body && resource->match.operation && glue_operation_needs_json(resource->match.operation) &&
	       !is_json(resource->asked.content_type);
}

static void refuse_unreadable(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {
		.status = 415, .type = "body-not-read", .title = "The body is in a format that is not read", .close = true};
	proxy_problem(
		exchange, &problem,
		"the name of what is made, or what has to be so for a change, stands in the body, and has to be known to "
		"replicate it; `%.*s` is not read: send the same as JSON",
		STR_FMT(text_shown(exchange->resource->asked.content_type)));
}

/* The head lies in the buffer that the body is read into next. */
static void keep_head(struct proxy_exchange *exchange, struct http_head *head)
{
	struct proxy_resource *resource = exchange->resource;
	struct buf fields = {0};
	const struct http_field *key = http_find_named(head, STR("idempotency-key"));
	resource->key = key ? copy(exchange, http_field_value(head, key)) : STR("");
	proxy_drop_hop_by_hop(head);
	http_put_fields(&fields, head);
	resource->fields = copy(exchange, buf_str(&fields));
	buf_free(&fields);
}

/* It may be renamed, which is another site's to do: only its body says so (proxy_send_to()). */
static bool may_be_sent_to(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return resource->known && resource->found.span == REPLICA_PLACED && exchange->has_body && !is_opaque(resource) &&
	       exchange->client->kind != PROXY_FRONT_PEER;
}

static void start_operation(struct proxy_exchange *exchange, struct http_head *head)
{
	bool by_body = exchange->resource->match.needs_body;
	bool may_be_child =
		!by_body && proxy_may_name_container(exchange) && is_json(exchange->resource->asked.content_type);
	void (*go)(struct proxy_exchange *) = by_body ? proxy_decide : may_be_child ? proxy_decide_container : submit;
	if (is_unreadable(exchange)) {
		refuse_unreadable(exchange);
		return;
	}
	if (by_body || may_be_child || may_be_sent_to(exchange))
		proxy_decide_keep(exchange, head);
	keep_head(exchange, head);
	if (!exchange->has_body || exchange->request.complete) {
		exchange->request.complete = true;
		go(exchange);
		return;
	}
	if (is_opaque(exchange->resource))
		proxy_spool_start(exchange, head, go);
	else
		proxy_collect_start(exchange, head, go);
}

static int refuse_unknown(struct proxy_exchange *exchange)
{
	struct proxy_problem problem = {.status = 404,
	                                .type = "not-replicated",
	                                .title = "This resource is not replicated",
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem,
	              "`&` on what exists changes a replicated resource, and this site knows none by that id; "
	              "it is made by creating it with `&`");
	return -1;
}

/* It is an operation, or would be if there were something to change. */
static bool is_for_copies(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return proxy_is_operation(exchange) || (resource->copies && changes(resource)) || resource->child;
}

static bool makes_one(const struct proxy_resource *resource)
{
	if (resource->child)
		return true;
	return resource->copies && (resource->effect == GLUE_CREATE ||
	                            (resource->match.operation && glue_operation_creates(resource->match.operation)));
}

bool proxy_operate(struct proxy_exchange *exchange)
{
	if (!is_for_copies(exchange))
		return false;
	if (proxy_is_operation(exchange) || makes_one(exchange->resource))
		submit(exchange);
	else
		refuse_unknown(exchange);
	return true;
}

int proxy_replicate(struct proxy_exchange *exchange, struct http_head *head)
{
	struct proxy_resource *resource = exchange->resource;
	if (!resource || exchange->peer || exchange->trial)
		return 0;
	bool by_body = resource->match.needs_body && (resource->known || resource->copies);
	by_body = by_body || (proxy_may_name_container(exchange) && is_json(resource->asked.content_type));
	if (!by_body && !is_for_copies(exchange))
		return proxy_refer(exchange, head);
	if (!by_body && !proxy_is_operation(exchange) && !makes_one(resource))
		return refuse_unknown(exchange);
	start_operation(exchange, head);
	return -1;
}

/* ---- Reads --------------------------------------------------------------------------------------------------------- */

/* As a service here knows it. */
void proxy_put_local_target(struct proxy_exchange *exchange, struct buf *out)
{
	struct proxy_resource *resource = exchange->resource;
	if (!resource || !engine_has_any(exchange->proxy->shared->engine)) {
		buf_put(out, exchange->target);
		return;
	}
	struct glue_replacer local = engine_to_local(exchange->proxy->shared->engine);
	glue_splice_target(&resource->match, &resource->asked, &local, out);
}

/* A service here names what is replicated by its id here, and another site is to be asked. What a user says is left as it is: he may mean
 * the id there; unless he has named no other site. */
void proxy_put_peer_target(struct proxy_exchange *exchange, struct buf *out)
{
	struct proxy_resource *resource = exchange->resource;
	bool item = resource && resource->known && !resource->found.by_meta_id;
	bool ours = exchange->inner || (resource && resource->elsewhere != 0) ||
	            (resource && resource->inside && exchange->carrier == PROXY_CARRIER_NONE);
	bool given = resource && exchange->trial && exchange->trial->gather && exchange->trial->gather->given;
	if (!given && (!ours || !resource || (!item && !resource->inside))) {
		buf_put(out, exchange->target);
		return;
	}
	struct engine_to_meta to = {.engine = exchange->proxy->shared->engine, .own = resource->name};
	struct glue_replacer meta = engine_to_meta(&to);
	glue_splice_target(&resource->match, &resource->asked, &meta, out);
}

bool proxy_is_for_service(const struct proxy_exchange *exchange)
{
	const struct proxy_resource *resource = exchange->resource;
	return resource && resource->match.operation && glue_operation_for_service(resource->match.operation);
}

/* Does the answer have ids in it that are others for who reads it? Those of a service here are for users, whom it concerns where something of
 * its type is replicated. What is for a service has the ids of its site: it changes between two sites alone. */
static bool is_translated(const struct proxy_exchange *exchange)
{
	struct engine *engine = exchange->proxy->shared->engine;
	if (proxy_is_for_service(exchange))
		return engine_has_any(engine) && (exchange->client->kind == PROXY_FRONT_PEER) != (exchange->peer != NULL);
	return !exchange->peer && engine_has_type(engine, exchange->service->name, exchange->resource->name.type);
}

static const struct glue_places *places_of(const struct proxy_exchange *exchange, const struct http_head *head)
{
	const struct proxy_resource *resource = exchange->resource;
	if (!resource || !resource->match.operation || head->status < 200 || head->status > 299 ||
	    http_method_is_head(exchange->method) || http_find_named(head, STR("content-encoding")))
		return NULL;
	return is_translated(exchange) ? glue_answer_places(resource->match.operation) : NULL;
}

/* Ids that users chose stay. */
static bool leave_id(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)context, (void)place, (void)value, (void)quoted;
	return false;
}

/* ---- Answers for services ---- */

/* Between agents: a meta-id, and nothing that a service could have said. */
static const struct str told_mark = STR_INIT("cheops:");

static bool put_told(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct glue_replacer meta = engine_to_meta(context);
	if (place->kind != GLUE_PLACE_LINK)
		buf_put(value, told_mark);
	bool known = meta.replace(meta.context, place, value, quoted);
	if (!known)
		buf_clear(value);
	return known;
}

/* The answer says nothing to a service here: whoever it is about would be somebody else once he is known. So it breaks off. */
static void break_off(struct proxy_exchange *exchange, struct str id)
{
	struct buf detail = {0};
	buf_printf(&detail, "%.*s of %.*s names %.*s, which %.*s has not got yet", STR_FMT(exchange->service->name),
	           STR_FMT(exchange->peer->name), STR_FMT(id), STR_FMT(exchange->state->config->site));
	log_event(exchange->proxy->shared->log, LOG_INFO, "an answer for a service was broken off",
	          LOG_STR("why", buf_str(&detail)));
	proxy_shape_blame(exchange, 503, exchange->peer->name, buf_str(&detail));
	exchange->response.broken = true;
	buf_free(&detail);
}

static bool put_heard(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct proxy_exchange *exchange = context;
	struct glue_replacer local = engine_to_local(exchange->proxy->shared->engine);
	struct glue_place told = *place;
	if (place->value.length < told_mark.length || memcmp(place->value.at, told_mark.at, told_mark.length) != 0)
		return false;
	told.value = str_make(place->value.at + told_mark.length, place->value.length - told_mark.length);
	if (!local.replace(local.context, &told, value, quoted))
		break_off(exchange, told.value);
	return !exchange->response.broken;
}

static struct glue_replacer for_service(struct proxy_exchange *exchange)
{
	struct proxy_resource *resource = exchange->resource;
	resource->to_meta = (struct engine_to_meta){.engine = exchange->proxy->shared->engine, .own = resource->name};
	return exchange->peer ? (struct glue_replacer){exchange, put_heard}
	                      : (struct glue_replacer){&resource->to_meta, put_told};
}

/* ---- Answers for users ---- */

static bool is_suggested(const struct proxy_resource *resource)
{
	return glue_type_identity(resource->match.type) == GLUE_SUGGESTED;
}

/* Of what is divided, the element is this site's part. An id that was suggested is the meta-id, and what this site lists by it is its copy. */
static void put_mark(void *context, const struct glue_place *place, struct str within, struct buf *mark)
{
	const struct proxy_resource *resource = context;
	struct engine_name name = resource->to_meta.own;
	struct engine_found found;
	struct buf collection = {0};
	name.id = place->value;
	if (within.length > 0) {
		glue_list_collection_put(&resource->match, within, &collection);
		name.collection = buf_str(&collection);
	}
	bool known = engine_find(resource->to_meta.engine, &name, &found) && (!found.by_meta_id || is_suggested(resource));
	buf_free(&collection);
	if (!known)
		return;
	replica_id_put(found.id, mark);
	if (found.span != REPLICA_DIVIDED)
		return;
	struct cross_standing standing = engine_standing(resource->to_meta.engine, found.id, resource->since);
	buf_put(mark, str_of(found.prime == resource->here ? GLUE_GATHER_MARK_PRIME : GLUE_GATHER_MARK_PART));
	buf_put_char(mark, ';');
	cross_standing_put(&standing, mark);
}

struct glue_splicer *proxy_splicer_new(struct proxy_exchange *exchange, const struct http_head *head, bool *marks)
{
	struct proxy_resource *resource = exchange->resource;
	const struct glue_places *places = places_of(exchange, head);
	bool wanted = *marks;
	*marks = false;
	if (!places || head->framing == HTTP_BODY_NONE)
		return NULL;
	if (proxy_is_for_service(exchange)) {
		struct glue_replacer replacer = for_service(exchange);
		return glue_splicer_new(places, &replacer);
	}
	bool chosen = glue_type_identity(resource->match.type) == GLUE_CHOSEN;
	struct glue_list_about about;
	wanted = wanted && glue_operation_list(resource->match.operation, &about);
	if (chosen && !wanted)
		return NULL;
	struct engine *engine = exchange->proxy->shared->engine;
	struct engine_spread spread;
	bool divided =
		wanted && engine_spread(engine, exchange->service->name, resource->name.type, &spread) && spread.divided;
	resource->to_meta = (struct engine_to_meta){engine, resource->name, exchange->state->config->glue};
	resource->here = exchange->proxy->mesh->sites->places[PROXY_HERE].id;
	resource->since = exchange->asked_at;
	struct glue_replacer meta = chosen ? (struct glue_replacer){NULL, leave_id} : engine_to_meta(&resource->to_meta);
	struct glue_splicer *splicer = glue_splicer_new(places, &meta);
	/* Where ids are replaced by others, the meta-ids, and nothing is divided, these are the marks. */
	bool looks = chosen || divided || is_suggested(resource);
	struct glue_marker marker = {.context = resource, .mark = looks ? put_mark : NULL};
	if (!glue_list_within(&resource->match, &marker.within))
		marker.within = NULL;
	*marks = wanted && glue_splicer_mark(splicer, about.list, &marker);
	return splicer;
}

bool proxy_splice_answer(struct proxy_exchange *exchange, struct http_head *head)
{
	bool marks = exchange->gathered;
	exchange->response.splicer = proxy_splicer_new(exchange, head, &marks);
	exchange->marks = marks;
	if (!exchange->response.splicer)
		return false;
	struct http_field *length = http_find(head, HTTP_FIELD_CONTENT_LENGTH);
	if (length)
		length->dropped = true;
	return true;
}
