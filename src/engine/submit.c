/* A user's request: from the loop that read it to src/replica, and its answer back. */
#include "engine/engine_int.h"

#include "base/check.h"
#include "base/percent.h"

#include <stdlib.h>
#include <sys/random.h>

/* ---- Tickets ------------------------------------------------------------------------------------------------------ */

struct ticket *engine_ticket(struct engine *engine, uint64_t number)
{
	for (struct ticket *ticket = engine->tickets; ticket; ticket = ticket->next)
		if (ticket->number == number)
			return ticket;
	return NULL;
}

static void reading_free(struct reading *reading);

static void ticket_free(struct ticket *ticket)
{
	explicit_bzero((void *)ticket->request.fields.at, ticket->request.fields.length);
	engine_contents_end(ticket);
	arena_free(&ticket->arena);
	engine_setup_drop(ticket->setup);
	buf_free(&ticket->type);
	buf_free(&ticket->fields);
	buf_free(&ticket->body);
	buf_free(&ticket->answer_fields);
	buf_free(&ticket->answer_body);
	reading_free(ticket->reading);
	free(ticket);
}

static void unlink_ticket(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	*(ticket->previous ? &ticket->previous->next : &engine->tickets) = ticket->next;
	if (ticket->next)
		ticket->next->previous = ticket->previous;
	ticket->previous = ticket->next = NULL;
}

/* In the loop of the request. */
static void tell(struct http_task *task)
{
	struct ticket *ticket = (struct ticket *)task;
	ticket->answer.fields = buf_str(&ticket->answer_fields);
	ticket->answer.body = buf_str(&ticket->answer_body);
	ticket->answer.detail = str_of(ticket->err.text);
	ticket->request.done(ticket->request.context, &ticket->answer);
	ticket_free(ticket);
}

void engine_ticket_finish(struct ticket *ticket)
{
	engine_names_over(ticket);
	engine_contents_end(ticket);
	unlink_ticket(ticket);
	engine_setup_drop(ticket->setup); /* which is for this thread to do */
	ticket->setup = NULL;
	engine_body_leave(ticket);
	ticket->task = (struct http_task){.run = tell};
	http_loop_post(ticket->request.loop, &ticket->task);
}

void engine_ticket_refuse(struct ticket *ticket, unsigned status, const char *problem, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	struct buf text = {0};
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	err_set(&ticket->err, ERR_INVALID, "%s", buf_c(&text));
	buf_free(&text);
	ticket->answer.code = ERR_INVALID;
	ticket->answer.status = status;
	ticket->answer.problem = problem;
}

/* The engine ends, and the loops do not run any more: whoever waits is told here and now. */
void engine_ticket_drop(struct ticket *ticket)
{
	engine_wait_end(&ticket->wait);
	if (!ticket->durable)
		engine_ticket_refuse(ticket, 503, "store-failed",
		                     ticket->started ? "the agent stops; what is asked may have had an effect at this site"
		                                     : "the agent stops; nothing was done");
	unlink_ticket(ticket);
	engine_spool_drop(ticket->spool);
	ticket->spool = NULL;
	tell(&ticket->task);
}

void engine_tickets_fail(struct engine *engine, const struct err *err)
{
	while (engine->tickets) {
		struct ticket *ticket = engine->tickets;
		bool full = err->code == ERR_LIMIT;
		engine_wait_end(&ticket->wait);
		if (ticket->durable) {
			engine_ticket_finish(ticket);
			continue;
		}
		engine_ticket_refuse(ticket, full ? 507 : 503, full ? "store-full" : "store-failed",
		                     ticket->started
		                         ? "what is asked was begun at this site, and how it ended could not be kept; that "
		                           "is found out when the store works again (`cheops ops`): %s"
		                         : "what is asked could not be kept, and nothing was done: %s",
		                     err->text);
		engine_ticket_finish(ticket);
	}
}

/* ---- In ------------------------------------------------------------------------------------------------------------ */

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

static bool is_one_of(struct str name, const char *const *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (str_equal_nocase(name, str_of(names[i])))
			return true;
	return false;
}

/* What has to be so is judged here, against the copy of this site, and nowhere else. */
static bool is_precondition(void *context, struct str name)
{
	static const char *const names[] = {"if-match", "if-none-match", "if-unmodified-since", "if-modified-since"};
	(void)context;
	return is_one_of(name, names, sizeof(names) / sizeof(names[0]));
}

static bool is_no_credential(void *context, struct str name)
{
	static const char *const not_travelling[] = {"prefer", "idempotency-key", "range", "user-agent"};
	const struct glue_service *service = context;
	return !is_precondition(NULL, name) &&
	       !is_one_of(name, not_travelling, sizeof(not_travelling) / sizeof(not_travelling[0])) &&
	       (!service || !glue_is_credential(service, name));
}

struct reading {
	struct buf collection;
	struct buf target; /* with meta-ids */
	struct buf head;
	struct buf body;
	/* For the run here alone: the body with its preconditions ("": it has none), and headers that are some. */
	struct buf whole;
	struct buf conditions;
	struct buf secret;
	struct buf name;
	struct buf id; /* in the body, */
	bool has_id;   /* if there is one */
	struct replica_id references[LIMIT_REPLICA_REFERENCES];
	uint32_t references_count;
};

static void reading_free(struct reading *reading)
{
	if (!reading)
		return;
	buf_free(&reading->collection);
	buf_free(&reading->target);
	buf_free(&reading->head);
	buf_free(&reading->body);
	buf_free(&reading->whole);
	buf_free(&reading->conditions);
	if (reading->secret.at)
		explicit_bzero(reading->secret.at, reading->secret.length);
	buf_free(&reading->secret);
	buf_free(&reading->name);
	buf_free(&reading->id);
	free(reading);
}

/* How the item of a request is called here, but for its id. */
static struct engine_name own_name(const struct ticket *ticket)
{
	bool within = glue_type_ids_in_collection(ticket->match.type);
	return (struct engine_name){.service = ticket->request.service,
	                            .type = buf_str(&ticket->type),
	                            .collection = within ? buf_str(&ticket->reading->collection) : STR("")};
}

static void note_reference(struct reading *reading, struct replica_id id)
{
	for (uint32_t i = 0; i < reading->references_count; i++)
		if (memcmp(&reading->references[i], &id, sizeof(id)) == 0)
			return;
	if (reading->references_count < LIMIT_REPLICA_REFERENCES)
		reading->references[reading->references_count++] = id;
}

/* What is made in a namespace has to wait for it wherever it is to be made as well. Where that is not replicated to, a namespace of
 * that name may be there all the same. */
static bool is_wherever(struct ticket *ticket, struct replica_id id)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool all = ticket->request.members_count > 0 && replica_look(ticket->engine->replica, &arena, id, &view) == 0;
	for (uint32_t i = 0; all && i < ticket->request.members_count; i++) {
		bool there = false;
		for (uint32_t k = 0; k < view.members_count; k++)
			there |= view.members[k].site == ticket->request.members[i];
		all = there;
	}
	arena_free(&arena);
	return all;
}

/* It is taken from where the scope says, by the service here as anywhere: it need not be at each member. */
static bool is_shared(const struct ticket *ticket, const struct glue_place *place)
{
	return ticket->request.scope.length > 0 && place->type &&
	       scope_text_names(ticket->request.scope, glue_type_service(place->type));
}

struct noting {
	struct ticket *ticket;
	struct reading *reading;
	struct engine_to_meta to;
};

/* The replicants that a request refers to, and its natural name. In the path there are local ids still. */
static bool note_place(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct noting *noting = context;
	struct reading *reading = noting->reading;
	struct replica_id id;
	struct engine_found found;
	if (place->kind == GLUE_PLACE_NAME && reading->name.length == 0)
		buf_put(&reading->name, place->value);
	if (place->kind == GLUE_PLACE_ID && !reading->has_id && place->value.length > 0) {
		buf_put(&reading->id, place->value);
		reading->has_id = true;
	}
	if (place->kind != GLUE_PLACE_REFERENCE || place->relation == GLUE_COMPOSITION || is_shared(noting->ticket, place))
		return false;
	bool chosen = place->type && glue_type_identity(place->type) == GLUE_CHOSEN;
	if (replica_id_is(place->value, &id))
		note_reference(reading, id);
	else if (engine_place_find(&noting->to, place, &found) && (!chosen || is_wherever(noting->ticket, found.id)))
		note_reference(reading, found.id);
	return false;
}

static bool read_request(struct ticket *ticket, struct reading *reading)
{
	const struct engine_request *request = &ticket->request;
	struct setup *setup = ticket->engine->setup;
	struct err err = {0};
	ticket->asked = engine_request_of(request->service, request->method, request->target, request->content_type);
	if (!setup || !setup->about.glue || !glue_match(setup->about.glue, &ticket->asked, &ticket->match)) {
		engine_ticket_refuse(ticket, 400, "not-described", "the description of the application has no such path");
		return false;
	}
	ticket->setup = engine_setup_keep(setup);
	if (ticket->match.needs_body && !glue_match_body(setup->about.glue, request->body, &ticket->match, &err)) {
		engine_ticket_refuse(ticket, 400, "not-described", "%s", err.text);
		return false;
	}
	enum glue_effect effect = glue_operation_effect(ticket->match.operation);
	if (effect == GLUE_READ || effect == GLUE_LIST || effect == GLUE_PASS) { /* the description was changed meanwhile */
		engine_ticket_refuse(ticket, 409, "not-replicated", "it changes nothing, and is no operation on a replica");
		return false;
	}
	glue_type_put(&ticket->match, &ticket->type);
	engine_collection_put(ticket->engine, &ticket->match, &reading->collection);
	return true;
}

static void split_preconditions(struct ticket *ticket, struct reading *reading)
{
	struct buf stripped = {0};
	engine_fields_put(&reading->conditions, ticket->request.fields, is_precondition, NULL);
	if (!glue_strip_preconditions(ticket->match.operation, ticket->asked.content_type, buf_str(&reading->body),
	                              &stripped))
		return;
	reading->whole = reading->body;
	reading->body = stripped;
}

/* A name that the service makes goes into the body that the others get: it has to be one that can be read, and not too long. */
static bool check_name(struct ticket *ticket, const struct reading *reading)
{
	const struct glue_operation *operation = ticket->match.operation;
	bool named = ticket->match.id.length > 0 || reading->has_id;
	if (glue_operation_effect(operation) != GLUE_CREATE || named ||
	    glue_type_identity(ticket->match.type) != GLUE_CHOSEN ||
	    reading->body.length + (size_t)LIMIT_REPLICA_NAME_BYTES * 6 <= LIMIT_REPLICA_BODY_BYTES)
		return true;
	engine_ticket_refuse(ticket, 413, "body-too-long",
	                     "what is made has no name, and one that the service makes could not be put into a body of %zu "
	                     "bytes for the other sites; with a name it may have any length",
	                     reading->body.length);
	return false;
}

/* Where a create may say the id, it says the meta-id: the same everywhere. What the user has said stays. */
static void suggest_id(struct ticket *ticket, struct reading *reading)
{
	struct buf id = {0}, body = {0};
	if (ticket->request.members_count == 0 || reading->has_id ||
	    glue_type_identity(ticket->match.type) != GLUE_SUGGESTED ||
	    glue_operation_effect(ticket->match.operation) != GLUE_CREATE)
		return;
	replica_id_put(ticket->replicant, &id);
	if (glue_insert_id(ticket->match.operation, buf_str(&reading->body), buf_str(&id), &body)) {
		buf_free(&reading->body);
		reading->body = body;
		body = (struct buf){0};
	}
	buf_free(&body);
	buf_free(&id);
}

static bool note_referrer(void *context, const struct engine_referrer *referrer)
{
	buf_put(context, str_make((const char *)&referrer->from, sizeof(referrer->from)));
	return true;
}

static bool is_on_its_way(struct engine *engine, struct replica_id id)
{
	struct arena arena;
	struct replica_view view;
	bool is = false;
	arena_init(&arena, 0);
	if (replica_look(engine->replica, &arena, id, &view) == 0 && !view.deleted)
		for (uint32_t i = 0; i < view.members_count; i++)
			is |= view.members[i].pending > 0;
	arena_free(&arena);
	return is;
}

/* What needs it while it is made may still have to be made at other sites: there the delete goes behind that (references_are_here() of
 * src/replica). */
static void note_needed_by(struct ticket *ticket, struct reading *reading)
{
	static const uint32_t kinds = 1U << GLUE_REQUIREMENT | 1U << GLUE_RELIANCE;
	struct relation_target target = {.managed = true, .id = ticket->request.replicant};
	struct replica_id from;
	struct buf referrers = {0};
	if (glue_operation_effect(ticket->match.operation) != GLUE_DELETE || ticket->request.members_count > 0)
		return;
	engine_relations_to(ticket->engine, &target, 0, kinds, note_referrer, &referrers);
	for (size_t at = 0; at < referrers.length; at += sizeof(from)) {
		memcpy(&from, referrers.at + at, sizeof(from));
		if (is_on_its_way(ticket->engine, from))
			note_reference(reading, from);
	}
	buf_free(&referrers);
}

/* Ids of this site become meta-ids, credentials go where they are kept secret. */
static bool translate(struct ticket *ticket, struct reading *reading)
{
	const struct engine_request *request = &ticket->request;
	const struct glue_match *match = &ticket->match;
	struct engine_to_meta to = {ticket->engine, own_name(ticket), ticket->setup->about.glue};
	struct noting noting = {ticket, reading, to};
	struct glue_replacer meta = engine_to_meta(&to), note = {&noting, note_place};
	glue_splice_target(match, &ticket->asked, &meta, &reading->target);
	bool opaque = glue_operation_opaque(match->operation);
	const struct glue_places *places = opaque ? NULL : glue_request_places(match->operation);
	engine_splice(places, &meta, request->body, &reading->body);
	struct buf unused = {0};
	engine_splice(places, &note, buf_str(&reading->body), &unused);
	glue_splice_target(match, &ticket->asked, &note, &unused);
	buf_free(&unused);
	note_needed_by(ticket, reading);
	suggest_id(ticket, reading);
	split_preconditions(ticket, reading);
	struct buf fields = {0};
	engine_fields_put(&fields, request->fields, is_no_credential, (void *)match->service);
	engine_scope_put(&fields, request->scope);
	bool conditional = reading->whole.length > 0 || reading->conditions.length > 0;
	if (!engine_division_choose(ticket, buf_str(&reading->body), conditional, &fields)) {
		buf_free(&fields);
		return false;
	}
	engine_head_put(&(struct engine_head){request->method, buf_str(&reading->target), buf_str(&fields), STR("")},
	                &reading->head);
	buf_free(&fields);
	struct err err = {0};
	if (engine_secret_make(match->service, request->fields, &reading->secret, &err) == 0)
		return check_name(ticket, reading);
	engine_ticket_refuse(ticket, 400, "no-user", "%s", err.text);
	return false;
}

static uint8_t order_effect(enum glue_effect effect)
{
	switch (effect) {
	case GLUE_CREATE: return ORDER_CREATE;
	case GLUE_REPLACE: return ORDER_REPLACE;
	case GLUE_ASSIGN: return ORDER_ASSIGN;
	case GLUE_DELETE: return ORDER_DELETE;
	default: return ORDER_RELATIVE;
	}
}

struct replica_class engine_class(const struct glue_operation *operation)
{
	return (struct replica_class){.name = glue_operation_name(operation),
	                              .effect = order_effect(glue_operation_effect(operation)),
	                              .facet = (uint16_t)glue_facet_number(operation),
	                              .class = (uint8_t)glue_operation_number(operation),
	                              .repeatable = glue_operation_repeatable(operation)};
}

static bool deletes(const struct glue_operation *operation)
{
	return glue_operation_effect(operation) == GLUE_DELETE;
}

static bool concerns_all(const struct glue_operation *operation)
{
	return glue_operation_effect(operation) == GLUE_CREATE || deletes(operation);
}

/* How concurrent operations of this type are resolved: it stays so for the life of the replicant. */
void engine_rules(const struct glue_type *type, uint8_t *resolutions, struct order_rules *rules)
{
	uint32_t count = glue_operations_count(type);
	for (uint32_t x = 0; x < count; x++) {
		for (uint32_t y = 0; y < count; y++) {
			static const uint8_t names[GLUE_RESOLUTIONS] = {[GLUE_TAKE_ONE] = ORDER_TAKE_ONE,
			                                                [GLUE_ANY_ORDER] = ORDER_ANY,
			                                                [GLUE_KEEP_ORDER] = ORDER_KEEP,
			                                                [GLUE_REVERSE_ORDER] = ORDER_REVERSE};
			const struct glue_operation *a = glue_operation_at(type, x), *b = glue_operation_at(type, y);
			resolutions[x * count + y] = names[glue_resolve(type, a, b)];
			/* That they are of different facets says it all. As a word on the two it would say that a replace of the item
			 * leaves something of it as it was (order_resets()). And whether a delete wins is more than an order of two. */
			bool apart = glue_facet_number(a) != glue_facet_number(b) && !concerns_all(a) && !concerns_all(b);
			if (apart || ((deletes(a) || deletes(b)) && !glue_resolution_is_said(type, a, b)))
				resolutions[x * count + y] = ORDER_DEFAULT;
		}
	}
	*rules = (struct order_rules){
		.classes = (uint8_t)count, .resolutions = resolutions, .delete_loses = !glue_delete_wins(type)};
}

void engine_ticket_first(const struct ticket *ticket, struct run *run)
{
	run->whole = copy(&run->arena, buf_str(&ticket->reading->whole));
	run->conditions = copy(&run->arena, buf_str(&ticket->reading->conditions));
	run->host = copy(&run->arena, engine_field(ticket->request.fields, STR("host")));
}

struct replica_id engine_id_make(void)
{
	uint64_t random[2];
	ssize_t got = getrandom(random, sizeof(random), 0);
	CHECK(got == sizeof(random));
	return replica_id_make(engine_now().wall_ms, random[0], random[1]);
}

/* What makes a replicant is its create, however it was asked for: a PUT by name is one where nothing is there yet. It is ordered as
 * the type's own create is. */
static struct replica_class class_of(const struct ticket *ticket)
{
	const struct glue_type *type = ticket->match.type;
	struct replica_class class = engine_class(ticket->match.operation);
	if (ticket->request.members_count == 0 || class.effect == ORDER_CREATE ||
	    !glue_operation_creates(ticket->match.operation))
		return class;
	class.effect = ORDER_CREATE;
	class.facet = 0;
	for (uint32_t i = 0; i < glue_operations_count(type); i++)
		if (glue_operation_effect(glue_operation_at(type, i)) == GLUE_CREATE)
			class.class = (uint8_t)i;
	return class;
}

/* Its body is where it has to be. */
void engine_ticket_go(struct ticket *ticket)
{
	struct reading *reading = ticket->reading;
	struct engine *engine = ticket->engine;
	const struct engine_request *request = &ticket->request;
	uint8_t *resolutions = arena_array(&ticket->arena, uint8_t, (size_t)LIMIT_REPLICA_CLASSES * LIMIT_REPLICA_CLASSES);
	struct replica_create create = {.service = request->service,
	                                .type = buf_str(&ticket->type),
	                                .collection = buf_str(&reading->collection),
	                                .members = request->members,
	                                .members_count = request->members_count,
	                                .consistency = request->consistency,
	                                .span = request->span,
	                                .prime = request->prime,
	                                .holders = request->holders,
	                                .holders_count = request->holders_count};
	if (request->members_count > 0) {
		engine_rules(ticket->match.type, resolutions, &create.rules);
		create.ids_in_collection = glue_type_ids_in_collection(ticket->match.type);
		create.ids_chosen = glue_type_identity(ticket->match.type) == GLUE_CHOSEN;
		create.rules.create_replays = glue_operation_replays(ticket->match.operation) ||
		                              glue_operation_effect(ticket->match.operation) == GLUE_REPLACE ||
		                              engine_division_replays(ticket);
		if (glue_type_names_unique(ticket->match.type) || request->in_container)
			create.name = buf_str(&reading->name);
	}
	struct replica_submission submission = {.ticket = ticket->number,
	                                        .create = request->members_count > 0 ? &create : NULL,
	                                        .replicant = ticket->replicant,
	                                        .class = class_of(ticket),
	                                        .request = {.head = buf_str(&reading->head),
	                                                    .body = ticket->has_blob ? STR("") : buf_str(&reading->body),
	                                                    .blob = engine_body_blob(ticket),
	                                                    .blob_bytes = ticket->blob_bytes,
	                                                    .secret = buf_str(&reading->secret),
	                                                    .references = reading->references,
	                                                    .references_count = reading->references_count},
	                                        .conditional = reading->whole.length > 0 || reading->conditions.length > 0,
	                                        .key = request->key};
	replica_submit(engine->replica, &submission, engine_now());
	engine_names_over(ticket);
	engine_changed(engine);
}

/* What src/replica has answered is on its way already, after the commit. */
static void finish_refused(struct ticket *ticket)
{
	if (ticket->answer.code && !ticket->answered)
		engine_ticket_finish(ticket);
}

void engine_ticket_continue(struct ticket *ticket)
{
	if (engine_body_ready(ticket, buf_str(&ticket->reading->body)))
		engine_ticket_go(ticket);
	finish_refused(ticket);
}

/* By which it is known among the children of a container: a natural name, or the id that its user chose. */
static struct str name_within(const struct ticket *ticket, const struct reading *reading)
{
	if (reading->name.length > 0)
		return buf_str(&reading->name);
	struct str id = STR("");
	if (ticket->request.members_count == 0 || glue_type_identity(ticket->match.type) != GLUE_CHOSEN)
		return id;
	if (ticket->match.id.length > 0)
		percent_decode(&((struct ticket *)ticket)->arena, ticket->match.id, &id);
	return id.length > 0 ? id : buf_str(&reading->id);
}

void engine_ticket_begin(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	reading_free(ticket->reading);
	buf_clear(&ticket->type);
	engine_setup_drop(ticket->setup);
	ticket->setup = NULL;
	struct reading *reading = ticket->reading = calloc(1, sizeof(*reading));
	CHECK(reading);
	if (!engine->replica)
		engine_ticket_refuse(ticket, 503, "store-failed", "the store of this agent cannot be used; see its log");
	else if (read_request(ticket, reading) && translate(ticket, reading) && engine_contents_ready(ticket) &&
	         engine_names_ready(ticket, name_within(ticket, reading)) &&
	         engine_body_ready(ticket, buf_str(&reading->body)))
		engine_ticket_go(ticket);
	finish_refused(ticket);
}

/* In the engine's thread. */
static void take(struct http_task *task)
{
	struct ticket *ticket = (struct ticket *)task;
	struct engine *engine = ticket->engine;
	ticket->number = ++engine->tickets_made;
	ticket->next = engine->tickets;
	if (engine->tickets)
		engine->tickets->previous = ticket;
	engine->tickets = ticket;
	struct str fields = ticket->request.fields, prefer;
	while (engine_field_next(&fields, STR("prefer"), &prefer)) /* a list may be said in several lines */
		engine_prefer_read(prefer, &ticket->preference);
	ticket->spool = ticket->request.spool;
	ticket->replicant = ticket->request.members_count > 0 ? engine_id_make() : ticket->request.replicant;
	engine_ticket_begin(ticket);
}

static const site_id *copy_sites(struct arena *arena, const site_id *sites, uint32_t count)
{
	site_id *copied = arena_array(arena, site_id, count);
	if (count > 0)
		memcpy(copied, sites, count * sizeof(*sites));
	return copied;
}

void engine_submit(struct engine *engine, const struct engine_request *request)
{
	struct ticket *ticket = calloc(1, sizeof(*ticket));
	CHECK(ticket);
	arena_init(&ticket->arena, 0);
	ticket->engine = engine;
	ticket->request = *request;
	ticket->request.service = copy(&ticket->arena, request->service);
	ticket->request.method = copy(&ticket->arena, request->method);
	ticket->request.target = copy(&ticket->arena, request->target);
	ticket->request.fields = copy(&ticket->arena, request->fields);
	ticket->request.content_type = copy(&ticket->arena, request->content_type);
	ticket->request.body = copy(&ticket->arena, request->body);
	ticket->request.scope = copy(&ticket->arena, request->scope);
	ticket->request.key = copy(&ticket->arena, request->key);
	if (request->division) {
		struct cross_division *division = arena_new(&ticket->arena, struct cross_division);
		*division = *request->division;
		ticket->request.division = division;
	}
	ticket->request.members = copy_sites(&ticket->arena, request->members, request->members_count);
	ticket->request.holders = copy_sites(&ticket->arena, request->holders, request->holders_count);
	ticket->task = (struct http_task){.run = take};
	http_loop_post(engine->loop, &ticket->task);
}

/* ---- And back ------------------------------------------------------------------------------------------------------ */

/* The id of what was just made is not committed yet; all others are looked up. */
struct own_id {
	struct engine_to_meta to;
	struct str local_id;
	struct replica_id id;
};

/* In a link, the id of something else may be the same. */
static bool is_of_own_type(const struct own_id *own, const struct glue_match *item)
{
	struct buf type = {0};
	glue_type_put(item, &type);
	bool is = str_equal(item->service_name, own->to.own.service) && str_equal(buf_str(&type), own->to.own.type);
	buf_free(&type);
	return is;
}

static bool put_own_id(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct own_id *own = context;
	const struct glue_type *type = place->item ? place->item->type : place->type;
	bool chosen = type && glue_type_identity(type) == GLUE_CHOSEN;
	*quoted = true;
	if (place->kind == GLUE_PLACE_ID && !chosen && own->local_id.length > 0 && str_equal(place->value, own->local_id) &&
	    (!place->item || is_of_own_type(own, place->item))) {
		replica_id_put(own->id, value);
		return true;
	}
	if (place->kind == GLUE_PLACE_LINK)
		return engine_link_put(&own->to, place->value, &(struct glue_replacer){own, put_own_id}, value);
	struct glue_replacer meta = engine_to_meta(&own->to);
	return meta.replace(meta.context, place, value, quoted);
}

/* A link to what was made: its last segment is the id. */
static void put_location(struct buf *out, struct str link, const struct own_id *own)
{
	if (link.length > own->local_id.length && own->local_id.length > 0 &&
	    link.at[link.length - own->local_id.length - 1] == '/' &&
	    str_equal(str_make(link.at + link.length - own->local_id.length, own->local_id.length), own->local_id)) {
		buf_put(out, str_make(link.at, link.length - own->local_id.length));
		replica_id_put(own->id, out);
	} else {
		buf_put(out, link);
	}
}

/* A link is translated; what is said of one part is not true of the whole. */
static bool may_be_told(void *context, struct str name)
{
	static const char *const of_one[] = {"etag", "last-modified"};
	const struct ticket *ticket = context;
	bool divided = ticket->request.span == REPLICA_DIVIDED;
	return !str_equal_nocase(name, STR("location")) &&
	       !(divided && is_one_of(name, of_one, sizeof(of_one) / sizeof(of_one[0])));
}

/* Who has it, and who not yet: "Site1=201 Site2=pending". */
void engine_put_replicas(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	struct arena arena;
	struct replica_op_view view;
	arena_init(&arena, 0);
	if (engine->replica && replica_look_op(engine->replica, &arena, ticket->op, &view) == 0) {
		buf_put(&ticket->answer_fields, STR("Cheops-Replicas:"));
		for (uint32_t i = 0; i < view.members_count; i++) {
			uint32_t place = engine->sites ? site_snapshot_find(engine->sites, view.members[i].site) : SCOPE_NO_INDEX;
			buf_put_char(&ticket->answer_fields, ' ');
			if (place == SCOPE_NO_INDEX)
				buf_printf(&ticket->answer_fields, "%016llx", (unsigned long long)view.members[i].site);
			else
				buf_put(&ticket->answer_fields, engine->sites->places[place].name);
			if (view.members[i].state == REPLICA_APPLIED && view.members[i].site == engine->options.self)
				buf_printf(&ticket->answer_fields, "=%u", ticket->status);
			else
				buf_printf(&ticket->answer_fields, "=%s", replica_member_state_name(view.members[i].state));
		}
		buf_put(&ticket->answer_fields, STR("\r\n"));
	}
	arena_free(&arena);
}

/* Why src/replica did not take it. */
static void refuse_operation(struct ticket *ticket, const struct replica_answer *answer)
{
	switch (answer->code) {
	case ERR_NOT_FOUND: engine_ticket_refuse(ticket, 404, "not-replicated", "%.*s", STR_FMT(answer->text)); break;
	case ERR_LIMIT: engine_ticket_refuse(ticket, 429, "not-replicated", "%.*s", STR_FMT(answer->text)); break;
	case ERR_UNAVAILABLE: engine_ticket_refuse(ticket, 503, "earlier-first", "%.*s", STR_FMT(answer->text)); break;
	default: engine_ticket_refuse(ticket, 409, "not-replicated", "%.*s", STR_FMT(answer->text)); break;
	}
}

void engine_answer_ticket(struct engine *engine, const struct replica_answer *answer)
{
	struct ticket *ticket = engine_ticket(engine, answer->ticket);
	if (!ticket && engine_giving_answered(engine, answer))
		return;
	if (!ticket) {
		engine_early_answered(engine, answer);
		return;
	}
	ticket->answered = true;
	if (answer->code) {
		refuse_operation(ticket, answer);
		return;
	}
	if (answer->repeated && ticket->status == 0) /* what became of it the first time; the body was not kept */
		ticket->status = answer->outcome.status > 0 ? (unsigned)answer->outcome.status : 200;
	if (ticket->status == 0) {
		engine_ticket_refuse(ticket, 502, "no-answer", "the service did not answer: %.*s",
		                     STR_FMT(answer->outcome.answer));
		return;
	}
	struct own_id own = {.to = {engine, own_name(ticket), ticket->setup ? ticket->setup->about.glue : NULL},
	                     .local_id = answer->outcome.local_id,
	                     .id = ticket->replicant};
	struct glue_replacer replacer = {&own, put_own_id};
	ticket->answer.status = ticket->status;
	engine_splice(ticket->status < 300 ? glue_answer_places(ticket->match.operation) : NULL, &replacer,
	              buf_str(&ticket->body), &ticket->answer_body);
	engine_fields_put(&ticket->answer_fields, buf_str(&ticket->fields), may_be_told, ticket);
	engine_division_restore(ticket, ticket->reading ? buf_str(&ticket->reading->body) : STR(""));
	struct str location = engine_field(buf_str(&ticket->fields), STR("location"));
	if (glue_type_identity(ticket->match.type) == GLUE_CHOSEN)
		own.local_id = STR("");
	if (location.length > 0) {
		buf_put(&ticket->answer_fields, STR("Location: "));
		put_location(&ticket->answer_fields, location, &own);
		buf_put(&ticket->answer_fields, STR("\r\n"));
	}
	if (answer->op.number > 0 && answer->outcome.kind == REPLICA_ACCEPTED) {
		buf_put(&ticket->answer_fields, STR("Cheops-Operation: "));
		replica_op_id_put(answer->op, &ticket->answer_fields);
		buf_put(&ticket->answer_fields, STR("\r\n"));
		buf_put(&ticket->answer_fields, STR("Cheops-Session: "));
		replica_session_put(engine->replica, answer->op.replicant, &ticket->answer_fields);
		buf_put(&ticket->answer_fields, STR("\r\n"));
		ticket->op = answer->op;
		ticket->accepted = true;
		if (!engine_ticket_waits(ticket))
			engine_put_replicas(ticket);
	}
}
