/* See bring.h. */
#include "engine/bring.h"

#include "engine/engine_int.h"

#include "base/check.h"
#include "base/percent.h"
#include "base/text.h"

#include <stdlib.h>

enum {
	AGAIN_MS = 100,          /* between looks at whether somebody else has added the site, or it has its copy */
	OTHERS_MS = 60 * 1000,   /* for what others add to the same thing */
	EXTEND_MS = 3700 * 1000, /* more than its files may take to be read (state.c) */
};

struct thing {
	struct str service;
	struct str path;
	uint32_t depth; /* 0: wanted; else by what is one less deep */
	bool known;     /* it is a replicant: */
	struct replica_id id;
	site_id sites[LIMIT_REPLICA_MEMBERS];
	uint32_t sites_count;
	uint32_t same_as; /* it was wanted twice: the other one; itself */
	uint32_t needs;   /* what it requires, among the things: as bits */
};

_Static_assert(LIMIT_ENGINE_BROUGHT <= 32, "things are bits of a number");

struct bringing {
	struct bringing *previous, *next;
	struct http_task task; /* to the engine, then back */
	struct engine *engine;
	struct engine_bring about;
	char *fields; /* of the request: there may be a credential in them */
	struct arena arena;
	struct setup *setup;
	struct thing things[LIMIT_ENGINE_BROUGHT];
	uint32_t count;
	uint32_t at; /* the one that is looked at */
	struct glue_match match;
	struct buf target;
	struct http_call *call;
	struct http_timer timer;
	bool timed;
	uint64_t ticket;   /* of a site that is being added; 0: none */
	uint64_t since_us; /* since when it waits */
	bool replying;
	struct engine_brought brought;
	struct err err;
};

static void extend_next(struct bringing *bringing);
static void read_next(struct bringing *bringing);

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

static void unlink_it(struct bringing *bringing)
{
	struct engine *engine = bringing->engine;
	*(bringing->previous ? &bringing->previous->next : &engine->bringings) = bringing->next;
	if (bringing->next)
		bringing->next->previous = bringing->previous;
	engine->bringings_count--;
}

/* What is for the engine's thread to do. */
static void end(struct bringing *bringing)
{
	if (bringing->call)
		http_call_cancel(bringing->call);
	bringing->call = NULL;
	if (bringing->timed)
		http_timer_clear(bringing->engine->loop, &bringing->timer);
	bringing->timed = false;
	engine_setup_drop(bringing->setup);
	bringing->setup = NULL;
}

static void bringing_free(struct bringing *bringing)
{
	explicit_bzero(bringing->fields, bringing->about.fields.length);
	buf_free(&bringing->target);
	arena_free(&bringing->arena);
	free(bringing);
}

/* In the loop of the question. */
static void tell(struct http_task *task)
{
	struct bringing *bringing = (struct bringing *)((char *)task - offsetof(struct bringing, task));
	bringing->about.done(bringing->about.context, &bringing->brought);
	bringing_free(bringing);
}

static const struct replica_member_view *member_of(const struct replica_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return &view->members[i];
	return NULL;
}

static void say_ones(struct bringing *bringing)
{
	struct engine_brought_one *ones =
		arena_array(&bringing->arena, struct engine_brought_one, bringing->about.wanted_count + 1);
	for (uint32_t i = 0; i < bringing->about.wanted_count; i++) {
		const struct thing *thing = &bringing->things[bringing->things[i].same_as];
		struct replica_view view;
		ones[i].id = thing->id;
		if (thing->sites_count == 0 || replica_look(bringing->engine->replica, &bringing->arena, thing->id, &view) != 0)
			continue;
		const struct replica_member_view *member = member_of(&view, thing->sites[0]);
		ones[i].local_id = member ? member->local_id : STR("");
		ones[i].local_id_quoted = member && member->local_id_quoted;
	}
	bringing->brought.ones = ones;
}

void engine_bringing_reply(struct bringing *bringing, const struct err *failure)
{
	if (failure && bringing->err.code == 0)
		err_set(&bringing->err, ERR_UNAVAILABLE, "the store of this agent cannot be used: %s", failure->text);
	bringing->brought.code = bringing->err.code;
	bringing->brought.text = str_of(bringing->err.text);
	if (bringing->err.code == 0 && bringing->engine->replica)
		say_ones(bringing);
	unlink_it(bringing);
	end(bringing);
	engine_changed(bringing->engine); /* looking has begun a session of the store */
	bringing->task.run = tell;
	http_loop_post(bringing->about.loop, &bringing->task); /* from here on it is that loop's */
}

/* Nobody hears of it before it is durable. */
static void reply(struct bringing *bringing)
{
	struct action *action = calloc(1, sizeof(*action));
	CHECK(action);
	bringing->replying = true;
	action->kind = ACTION_BROUGHT;
	action->bringing = bringing;
	engine_hold(bringing->engine, action);
	engine_changed(bringing->engine);
}

/* "image/images/42: ", and why. */
__attribute__((format(printf, 4, 5))) static void fail(struct bringing *bringing, const struct thing *thing, int code,
                                                       const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_printf(&text, "%.*s%.*s: ", STR_FMT(thing->service),
	           STR_FMT(utf8_truncate(thing->path, LIMIT_NAME_SHOWN_BYTES)));
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	err_set(&bringing->err, code, "%s", buf_c(&text));
	buf_free(&text);
	reply(bringing);
}

static void wait_a_little(struct bringing *bringing, uint64_t ms, void (*fire)(struct http_timer *timer))
{
	bringing->timer = (struct http_timer){.fire = fire};
	bringing->timed = true;
	http_timer_set(bringing->engine->loop, &bringing->timer, ms);
}

static struct bringing *of_timer(struct http_timer *timer)
{
	struct bringing *bringing = (struct bringing *)((char *)timer - offsetof(struct bringing, timer));
	bringing->timed = false;
	return bringing;
}

/* ---- Until they are there ---------------------------------------------------------------------------------------------- */

static bool is_there(struct engine *engine, const struct thing *thing, site_id site)
{
	struct arena arena;
	struct replica_view view;
	arena_init(&arena, 0);
	bool known = replica_look(engine->replica, &arena, thing->id, &view) == 0;
	const struct replica_member_view *member = known ? member_of(&view, site) : NULL;
	bool there = member && !member->joining && member->local_id.length > 0;
	arena_free(&arena);
	return there;
}

static void look_again(struct http_timer *timer);

static void wait_until_there(struct bringing *bringing)
{
	struct engine *engine = bringing->engine;
	uint64_t now_us = engine_now().us;
	for (uint32_t i = 0; i < bringing->count; i++)
		for (uint32_t k = 0; k < bringing->things[i].sites_count; k++) {
			const struct thing *thing = &bringing->things[i];
			if (is_there(engine, thing, thing->sites[k]))
				continue;
			const struct site_place *place = engine_find_place(engine, thing->sites[k]);
			if (now_us - bringing->since_us >= bringing->about.wait_ms * 1000)
				fail(bringing, thing, ERR_TIMEOUT, "it is on its way to %.*s, and not there yet",
				     place ? (int)place->name.length : 1, place ? place->name.at : "?");
			else
				wait_a_little(bringing, AGAIN_MS, look_again);
			engine_changed(engine); /* looking has begun a session of the store */
			return;
		}
	reply(bringing);
}

static void look_again(struct http_timer *timer)
{
	wait_until_there(of_timer(timer));
}

/* ---- To further sites --------------------------------------------------------------------------------------------------- */

/* The first that is no member, of the things from the last to the first; NULL: all are. */
static struct thing *find_missing(struct bringing *bringing, site_id *site)
{
	site_id members[LIMIT_REPLICA_MEMBERS];
	struct engine *engine = bringing->engine;
	for (uint32_t i = bringing->count; i-- > 0;) {
		struct thing *thing = &bringing->things[i];
		struct arena arena;
		struct replica_view view = {0};
		uint32_t count = 0;
		arena_init(&arena, 0);
		bool known = thing->same_as == i && replica_look(engine->replica, &arena, thing->id, &view) == 0;
		for (uint32_t m = 0; known && m < view.members_count; m++)
			members[count++] = view.members[m].site;
		arena_free(&arena);
		for (uint32_t k = 0; known && k < thing->sites_count; k++) {
			bool there = false;
			for (uint32_t m = 0; m < count; m++)
				there |= members[m] == thing->sites[k];
			*site = thing->sites[k];
			if (!there)
				return thing;
		}
	}
	return NULL;
}

static void try_again(struct http_timer *timer)
{
	extend_next(of_timer(timer));
}

/* src/replica has not answered: it cannot have been. */
static void too_late(struct http_timer *timer)
{
	struct bringing *bringing = of_timer(timer);
	bringing->ticket = 0;
	fail(bringing, &bringing->things[bringing->at], ERR_UNAVAILABLE, "nothing was heard of it for %d s",
	     EXTEND_MS / 1000);
}

static void extend_next(struct bringing *bringing)
{
	struct engine *engine = bringing->engine;
	struct err err = {0};
	site_id site;
	if (!engine->replica) {
		fail(bringing, &bringing->things[0], ERR_UNAVAILABLE, "the store of this agent cannot be used; see its log");
		return;
	}
	struct thing *thing = find_missing(bringing, &site);
	engine_changed(engine);
	if (!thing) {
		bringing->since_us = engine_now().us;
		if (bringing->about.wait_ms > 0)
			wait_until_there(bringing);
		else
			reply(bringing);
		return;
	}
	bringing->at = (uint32_t)(thing - bringing->things);
	bringing->ticket = ++engine->tickets_made;
	wait_a_little(bringing, EXTEND_MS, too_late);
	const struct replica_extension extension = {.site = site, .ticket = bringing->ticket};
	int code = replica_extend(engine->replica, thing->id, &extension, engine_now(), &err);
	if (code == 0) {
		bringing->since_us = 0;
		return;
	}
	http_timer_clear(engine->loop, &bringing->timer);
	bringing->timed = false;
	bringing->ticket = 0;
	/* Somebody else may be adding a site at this moment: the same one, or another. */
	uint64_t now_us = engine_now().us;
	bringing->since_us = bringing->since_us ? bringing->since_us : now_us;
	if (code == ERR_CONFLICT && replica_is_extending(engine->replica, thing->id) &&
	    now_us - bringing->since_us < OTHERS_MS * UINT64_C(1000))
		wait_a_little(bringing, AGAIN_MS, try_again);
	else
		fail(bringing, thing, code, "%s", err.text);
}

/* In the middle of a call into src/replica, which is not to be called from here. */
bool engine_bringing_answered(struct engine *engine, const struct replica_answer *answer)
{
	struct bringing *bringing = engine->bringings;
	while (bringing && (bringing->ticket == 0 || bringing->ticket != answer->ticket))
		bringing = bringing->next;
	if (!bringing)
		return false;
	bringing->ticket = 0;
	http_timer_clear(engine->loop, &bringing->timer);
	bringing->timed = false;
	if (answer->code)
		fail(bringing, &bringing->things[bringing->at], answer->code, "%.*s", STR_FMT(answer->text));
	else
		wait_a_little(bringing, 0, try_again);
	return true;
}

/* ---- What it requires itself -------------------------------------------------------------------------------------------- */

static void add_sites(struct thing *thing, const site_id *sites, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool there = false;
		for (uint32_t k = 0; k < thing->sites_count; k++)
			there |= thing->sites[k] == sites[i];
		if (!there && thing->sites_count < LIMIT_REPLICA_MEMBERS)
			thing->sites[thing->sites_count++] = sites[i];
	}
}

static struct thing *find_thing(struct bringing *bringing, struct str service, struct str path)
{
	for (uint32_t i = 0; i < bringing->count; i++)
		if (str_equal(bringing->things[i].service, service) && str_equal(bringing->things[i].path, path))
			return &bringing->things[i];
	return NULL;
}

struct mentioning {
	struct bringing *bringing;
	const struct thing *by;
	int code; /* it is too much, or not known where it is */
};

static void take_mention(void *context, const struct glue_mention *mention)
{
	struct mentioning *mentioning = context;
	struct bringing *bringing = mentioning->bringing;
	if (mention->relation != GLUE_REQUIREMENT || !mention->type || mention->value.length == 0 || mentioning->code)
		return;
	struct str service = glue_type_service(mention->type), collection = glue_type_only_collection(mention->type);
	if (collection.length == 0 || str_equal(service, STR("*")))
		return; /* nobody knows where to ask for it: as with a request that requires it */
	struct buf path = {0};
	buf_put(&path, collection);
	buf_put_char(&path, '/');
	percent_encode(&path, mention->value);
	struct thing *thing = find_thing(bringing, service, buf_str(&path));
	if (thing) { /* two may require one, or each other */
		thing = &bringing->things[thing->same_as];
		add_sites(thing, mentioning->by->sites, mentioning->by->sites_count);
	} else if (bringing->count == LIMIT_ENGINE_BROUGHT || mentioning->by->depth == LIMIT_ENGINE_BROUGHT_DEEP) {
		mentioning->code = ERR_LIMIT;
	} else {
		thing = &bringing->things[bringing->count];
		*thing = (struct thing){.service = copy(&bringing->arena, service),
		                        .path = copy(&bringing->arena, buf_str(&path)),
		                        .depth = mentioning->by->depth + 1,
		                        .same_as = bringing->count};
		add_sites(thing, mentioning->by->sites, mentioning->by->sites_count);
		bringing->count++;
	}
	if (thing)
		bringing->things[bringing->at].needs |= 1u << (thing - bringing->things);
	buf_free(&path);
}

/* A copy waits where it is made until what it requires is there: two that require each other would wait for ever. NULL: there are none. */
static const struct thing *find_ring(struct bringing *bringing)
{
	uint32_t reaches[LIMIT_ENGINE_BROUGHT] = {0};
	for (uint32_t i = 0; i < bringing->count; i++)
		for (uint32_t k = 0; k < bringing->count; k++)
			if (bringing->things[i].needs >> k & 1)
				reaches[bringing->things[i].same_as] |= 1u << bringing->things[k].same_as;
	for (uint32_t by = 0; by < bringing->count; by++)
		for (uint32_t i = 0; i < bringing->count; i++)
			if (reaches[i] >> by & 1)
				reaches[i] |= reaches[by];
	for (uint32_t i = 0; i < bringing->count; i++)
		if (reaches[i] >> i & 1)
			return &bringing->things[i];
	return NULL;
}

/* A copy of it is made by a create with this body. */
static bool take_mentions(struct bringing *bringing, struct thing *thing, struct str body)
{
	struct mentioning mentioning = {bringing, thing, 0};
	const struct glue_operation *create = engine_operation_of(bringing->match.type, GLUE_CREATE);
	if (!create || thing->sites_count == 0)
		return true;
	glue_mentions(create, body, take_mention, &mentioning, NULL);
	if (mentioning.code)
		fail(bringing, thing, ERR_LIMIT,
		     "what it requires, with what that requires, is more than %d things, or %d deep", LIMIT_ENGINE_BROUGHT,
		     LIMIT_ENGINE_BROUGHT_DEEP);
	return mentioning.code == 0;
}

/* ---- Found, or adopted --------------------------------------------------------------------------------------------------- */

/* As a create of it would have made it. */
static int adopt(struct bringing *bringing, struct thing *thing, struct str body, struct err *err)
{
	struct engine *engine = bringing->engine;
	const struct glue_type *type = bringing->match.type;
	const struct glue_operation *create = engine_operation_of(type, GLUE_CREATE);
	uint8_t *resolutions =
		arena_array(&bringing->arena, uint8_t, (size_t)LIMIT_REPLICA_CLASSES * LIMIT_REPLICA_CLASSES);
	struct engine_seen seen = {0};
	struct buf name = {0}, collection = {0};
	struct str id;
	percent_decode(&bringing->arena, bringing->match.id, &id);
	engine_seen_take(glue_answer_places(bringing->match.operation), body, &seen);
	glue_type_put(&bringing->match, &name);
	engine_collection_put(engine, &bringing->match, &collection);
	struct replica_create about = {.service = thing->service,
	                               .type = buf_str(&name),
	                               .collection = buf_str(&collection),
	                               .name = glue_type_names_unique(type) ? buf_str(&seen.name) : STR(""),
	                               .ids_in_collection = glue_type_ids_in_collection(type),
	                               .ids_chosen = glue_type_identity(type) == GLUE_CHOSEN};
	engine_rules(type, resolutions, &about.rules);
	about.rules.create_replays = create && glue_operation_replays(create);
	bool shown = str_equal(buf_str(&seen.id), id);
	struct replica_adoption adoption = {
		.create = &about, .replicant = engine_id_make(), .local_id = id, .local_id_quoted = !shown || seen.id_quoted};
	int code = replica_adopt(engine->replica, &adoption, engine_now(), &thing->id, err);
	thing->known = code == 0;
	engine_changed(engine);
	engine_seen_free(&seen);
	buf_free(&name);
	buf_free(&collection);
	return code;
}

static void came(void *context, const struct http_call_answer *answer)
{
	struct bringing *bringing = context;
	struct thing *thing = &bringing->things[bringing->at];
	struct err err = {0};
	bringing->call = NULL;
	if (answer->code)
		fail(bringing, thing, ERR_UNAVAILABLE, "its service does not answer: %s", answer->err.text);
	else if (answer->status == 404 || answer->status == 410)
		fail(bringing, thing, ERR_NOT_FOUND, "the service of this site has no such thing (%u)", answer->status);
	else if (answer->status != 200)
		fail(bringing, thing, answer->status >= 500 ? ERR_UNAVAILABLE : ERR_CONFLICT,
		     "it cannot be read: its service answers with %u %s", answer->status, http_reason(answer->status));
	else if (!bringing->engine->replica)
		fail(bringing, thing, ERR_UNAVAILABLE, "the store of this agent cannot be used; see its log");
	else if (!thing->known && adopt(bringing, thing, answer->body, &err) != 0)
		fail(bringing, thing, err.code, "%s", err.text);
	else if (take_mentions(bringing, thing, answer->body)) {
		bringing->at++;
		read_next(bringing);
	}
}

/* As its user, if the request says who that is; else as the agent. */
static int ask(struct bringing *bringing, const struct engine_service *service, struct err *err)
{
	struct buf credentials = {0};
	engine_credentials_put(bringing->match.service, bringing->about.fields, &credentials);
	if (credentials.length == 0)
		buf_put(&credentials, service->credential);
	int code = engine_service_read(bringing->engine,
	                               &(struct engine_service_reading){.setup = bringing->setup,
	                                                                .service = service,
	                                                                .target = buf_str(&bringing->target),
	                                                                .credentials = buf_str(&credentials),
	                                                                .done = came,
	                                                                .context = bringing},
	                               &bringing->call, err);
	if (credentials.at)
		explicit_bzero(credentials.at, credentials.length);
	buf_free(&credentials);
	if (code)
		bringing->call = NULL;
	return code;
}

static bool is_at_all(struct engine *engine, const struct thing *thing)
{
	for (uint32_t i = 0; i < thing->sites_count; i++)
		if (!is_there(engine, thing, thing->sites[i]))
			return false;
	return true;
}

/* It has its name by which engine_find() knows it. */
static bool find(struct bringing *bringing, struct engine_found *found)
{
	struct engine *engine = bringing->engine;
	const struct glue_match *match = &bringing->match;
	struct buf type = {0}, collection = {0};
	struct str id;
	glue_type_put(match, &type);
	if (glue_type_ids_in_collection(match->type))
		engine_collection_put(engine, match, &collection);
	bool known =
		percent_decode(&bringing->arena, match->id, &id) &&
		engine_find(engine, &(struct engine_name){match->service_name, buf_str(&type), buf_str(&collection), id},
	                found);
	buf_free(&type);
	buf_free(&collection);
	return known;
}

/* Twice the same, once by its local id and once by its meta-id. */
static bool is_twin(struct bringing *bringing, struct thing *thing)
{
	for (uint32_t i = 0; i < bringing->at; i++) {
		struct thing *other = &bringing->things[i];
		if (!other->known || other->same_as != i || memcmp(&other->id, &thing->id, sizeof(thing->id)) != 0)
			continue;
		thing->same_as = i;
		add_sites(other, thing->sites, thing->sites_count);
		return true;
	}
	return false;
}

/* As it is asked for here: behind what agents put before a path, unless something stands there already. */
static struct glue_request request_of(struct bringing *bringing, const struct thing *thing)
{
	struct buf path = {0};
	struct glue_match match;
	struct glue_request asked = engine_request_of(thing->service, STR("GET"), thing->path, STR(""));
	engine_base_put(bringing->setup, thing->service, &path);
	buf_put(&path, thing->path);
	struct glue_request based = engine_request_of(
		thing->service, STR("GET"), str_make(arena_copy(&bringing->arena, path.at, path.length), path.length), STR(""));
	buf_free(&path);
	return glue_match(bringing->setup->about.glue, &based, &match) ? based : asked;
}

/* It is read; or there is no need to (true). */
static bool begin(struct bringing *bringing, struct thing *thing)
{
	struct engine *engine = bringing->engine;
	struct glue_request asked = request_of(bringing, thing);
	const struct engine_service *service = engine_service_find(bringing->setup, thing->service);
	struct engine_found found = {0};
	struct replica_id meta;
	struct err err = {0};
	if (!service)
		return fail(bringing, thing, ERR_NOT_FOUND, "this site has no such service"), false;
	if (!glue_match(bringing->setup->about.glue, &asked, &bringing->match) || bringing->match.id.length == 0 ||
	    bringing->match.needs_body || !bringing->match.operation ||
	    glue_operation_effect(bringing->match.operation) != GLUE_READ ||
	    glue_facet_number(bringing->match.operation) != 0)
		return fail(bringing, thing, ERR_INVALID,
		            "the description of the application knows no item of that path; one looks like /images/42"),
		       false;
	thing->known = find(bringing, &found);
	thing->id = found.id;
	if (!thing->known && replica_id_is(bringing->match.id, &meta))
		return fail(bringing, thing, ERR_NOT_FOUND,
		            "no replicated resource of that id is known at this site: ask one of those that have it"),
		       false;
	if (thing->known && found.deleted)
		return fail(bringing, thing, ERR_NOT_FOUND, "it was deleted"), false;
	if (thing->known && (is_twin(bringing, thing) || is_at_all(engine, thing)))
		return true;
	if (thing->known && found.local_id_bytes == 0)
		return fail(bringing, thing, ERR_UNAVAILABLE,
		            "it has not been made at this site yet: try again, or ask a member "
		            "that has it"),
		       false;
	struct glue_replacer local = engine_to_local(engine);
	buf_clear(&bringing->target);
	glue_splice_target(&bringing->match, &asked, &local, &bringing->target);
	if (ask(bringing, service, &err) != 0)
		fail(bringing, thing, ERR_UNAVAILABLE, "its service cannot be asked: %s", err.text);
	return false;
}

static void read_next(struct bringing *bringing)
{
	if (!bringing->engine->replica) {
		fail(bringing, &bringing->things[0], ERR_UNAVAILABLE, "the store of this agent cannot be used; see its log");
		return;
	}
	for (; bringing->at < bringing->count; bringing->at++)
		if (!begin(bringing, &bringing->things[bringing->at]))
			return;
	engine_changed(bringing->engine);
	const struct thing *ring = find_ring(bringing);
	if (ring) {
		fail(bringing, ring, ERR_CONFLICT,
		     "it requires itself, or something that requires it: no copy of it could be made before the other");
		return;
	}
	/* What was adopted is committed before a copy is read, so that it is referred to by its meta-id. */
	extend_next(bringing);
}

/* ---- In --------------------------------------------------------------------------------------------------------------------- */

/* In the engine's thread. */
static void take(struct http_task *task)
{
	struct bringing *bringing = (struct bringing *)((char *)task - offsetof(struct bringing, task));
	struct engine *engine = bringing->engine;
	bringing->next = engine->bringings;
	if (engine->bringings)
		engine->bringings->previous = bringing;
	engine->bringings = bringing;
	engine->bringings_count++;
	if (engine->bringings_count > LIMIT_ENGINE_BRINGS) {
		fail(bringing, &bringing->things[0], ERR_UNAVAILABLE, "too many requests bring something along at this moment");
	} else if (!engine->setup || !engine->setup->about.glue) {
		fail(bringing, &bringing->things[0], ERR_UNAVAILABLE, "this agent has no description of an application");
	} else {
		bringing->setup = engine_setup_keep(engine->setup);
		read_next(bringing);
	}
}

void engine_bring(struct engine *engine, const struct engine_bring *bring)
{
	struct bringing *bringing = calloc(1, sizeof(*bringing));
	CHECK(bringing && bring->wanted_count > 0 && bring->wanted_count <= LIMIT_ENGINE_BROUGHT);
	arena_init(&bringing->arena, 0);
	bringing->engine = engine;
	bringing->about = *bring;
	bringing->about.wanted = NULL;
	bringing->fields = arena_copy(&bringing->arena, bring->fields.at, bring->fields.length);
	bringing->about.fields.at = bringing->fields;
	for (uint32_t i = 0; i < bring->wanted_count; i++) {
		struct thing *thing = &bringing->things[i];
		*thing = (struct thing){.service = copy(&bringing->arena, bring->wanted[i].service),
		                        .path = copy(&bringing->arena, bring->wanted[i].path),
		                        .same_as = i};
		add_sites(thing, bring->wanted[i].sites, bring->wanted[i].sites_count);
	}
	bringing->count = bring->wanted_count;
	bringing->task.run = take;
	http_loop_post(engine->loop, &bringing->task);
}

void engine_bringings_fail(struct engine *engine, const struct err *err)
{
	for (struct bringing *bringing = engine->bringings, *next; bringing; bringing = next) {
		next = bringing->next;
		if (!bringing->replying)
			engine_bringing_reply(bringing, err);
	}
}

void engine_bringings_drop(struct engine *engine)
{
	struct bringing *bringing = engine->bringings;
	engine->bringings = NULL;
	engine->bringings_count = 0;
	for (struct bringing *next; bringing; bringing = next) {
		next = bringing->next;
		end(bringing);
		if (bringing->about.dropped)
			bringing->about.dropped(bringing->about.context);
		bringing_free(bringing);
	}
}
