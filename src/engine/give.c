/* The copy of one member for all: asked by a person (verify.h). At that member src/replica does it; any other agent asks that one's.
 *
 *   POST /cheops/v1/copies/ID/give, mutual TLS, no body; answered with the operations once they are durable there, or with a problem
 *
 * The copy has files: reading them takes as long as it takes (state.c), and so does the answer.
 */
#include "engine/engine_int.h"

#include "base/check.h"

#include <jansson.h>
#include <stdlib.h>

/* More than its files may take there (state.c). If the site goes away meanwhile, that ends it. */
enum { GIFT_MS = 3700 * 1000, GIFT_ANSWER_BYTES = 64 << 10 };

struct giving {
	struct giving *previous, *next;
	struct http_task task; /* to the engine, then back */
	struct engine *engine;
	struct engine_gift about;
	struct arena arena;
	uint64_t ticket; /* at this site; 0: another agent is asked */
	site_id site;    /* that one */
	struct http_call *call;
	struct engine_given given;
};

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

static void giving_unlink(struct giving *giving)
{
	struct engine *engine = giving->engine;
	*(giving->previous ? &giving->previous->next : &engine->givings) = giving->next;
	if (giving->next)
		giving->next->previous = giving->previous;
	engine->givings_count--;
}

static void giving_free(struct giving *giving)
{
	if (giving->call)
		http_call_cancel(giving->call);
	arena_free(&giving->arena);
	free(giving);
}

/* In the loop of the question. */
static void giving_tell(struct http_task *task)
{
	struct giving *giving = (struct giving *)((char *)task - offsetof(struct giving, task));
	giving->about.done(giving->about.context, &giving->given);
	giving_free(giving);
}

void engine_giving_reply(struct giving *giving)
{
	giving_unlink(giving);
	giving->task.run = giving_tell;
	http_loop_post(giving->about.loop, &giving->task);
}

__attribute__((format(printf, 4, 5))) static void refuse(struct giving *giving, unsigned status, const char *problem,
                                                         const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	giving->given.status = status;
	giving->given.problem = copy(&giving->arena, str_of(problem));
	giving->given.text = copy(&giving->arena, buf_str(&text));
	buf_free(&text);
}

/* ---- Here ----------------------------------------------------------------------------------------------------------- */

static void take_refusal(struct giving *giving, int code, struct str text)
{
	switch (code) {
	case ERR_NOT_FOUND: refuse(giving, 404, "no-such-replicant", "%.*s", STR_FMT(text)); break;
	case ERR_UNAVAILABLE: refuse(giving, 503, "earlier-first", "%.*s", STR_FMT(text)); break;
	case ERR_LIMIT: refuse(giving, 429, "not-replicated", "%.*s", STR_FMT(text)); break;
	default: refuse(giving, 409, "cannot-repair", "%.*s", STR_FMT(text)); break;
	}
}

static void take_outcome(struct giving *giving, const struct replica_answer *answer)
{
	struct str said = answer->outcome.answer;
	switch (answer->outcome.kind) {
	case REPLICA_ACCEPTED:
		giving->given.status = 200;
		giving->given.op = answer->op;
		giving->given.parts = answer->outcome.parts_count;
		giving->given.left = copy(&giving->arena, said);
		break;
	case REPLICA_REFUSED:
	case REPLICA_CREDENTIAL:
		refuse(giving, 409, "cannot-repair", "this copy cannot be given to the others: %.*s", STR_FMT(said));
		break;
	default: refuse(giving, 502, "no-answer", "the service there did not answer: %.*s", STR_FMT(said)); break;
	}
}

bool engine_giving_answered(struct engine *engine, const struct replica_answer *answer)
{
	for (struct giving *giving = engine->givings; giving; giving = giving->next) {
		if (giving->ticket == 0 || giving->ticket != answer->ticket)
			continue;
		if (answer->code)
			take_refusal(giving, answer->code, answer->text);
		else
			take_outcome(giving, answer);
		giving->ticket = 0;
		struct action *action = calloc(1, sizeof(*action));
		CHECK(action);
		action->kind = ACTION_GIVEN;
		action->giving = giving;
		engine_hold(engine, action); /* until it is durable */
		return true;
	}
	return false;
}

/* The store failed: what was to be answered after a commit was refused with it, and the others here. */
void engine_givings_fail(struct engine *engine, const struct err *err)
{
	for (struct giving *giving = engine->givings, *next; giving; giving = next) {
		next = giving->next;
		if (giving->ticket == 0)
			continue;
		refuse(giving, 503, "store-failed", "the store of this agent cannot be used: %s", err->text);
		engine_giving_reply(giving);
	}
}

void engine_giving_fail(struct giving *giving, const struct err *err)
{
	refuse(giving, 503, "store-failed", "the store of this agent cannot be used: %s", err->text);
	engine_giving_reply(giving);
}

/* ---- Elsewhere ------------------------------------------------------------------------------------------------------ */

/* A problem of the other agent, as it is. */
static void pass_on(struct giving *giving, unsigned status, const json_t *json)
{
	static const struct str urn = STR_INIT("urn:cheops:problem:");
	const char *type = json_string_value(json_object_get(json, "type"));
	const char *detail = json_string_value(json_object_get(json, "detail"));
	struct str problem = type ? str_of(type) : STR("");
	if (status < 400 || status > 599 || problem.length <= urn.length || memcmp(type, urn.at, urn.length) != 0 ||
	    problem.length > 64) {
		refuse(giving, 502, "no-answer", "the agent there answers with %u, and not with an operation", status);
		return;
	}
	refuse(giving, status, type + urn.length, "%s", detail ? detail : "");
}

static void refuse_silence(struct giving *giving, const char *why)
{
	refuse(giving, 504, "site-unreachable",
	       "the agent there has not answered (%s): its copy may have been given all the same; `cheops ops --of` "
	       "shows it",
	       why);
}

/* How many operations there are behind the first; an agent of an earlier version says nothing of any. */
static uint32_t count_parts(const json_t *json)
{
	size_t count = json_array_size(json_object_get(json, "operations"));
	return count > 0 && count <= LIMIT_GLUE_FACETS ? (uint32_t)count - 1 : 0;
}

/* An agent of an earlier version says nothing of it. */
static void take_left(struct giving *giving, const json_t *names)
{
	struct buf text = {0};
	size_t index;
	json_t *name;
	json_array_foreach(names, index, name)
	{
		const char *word = json_string_value(name);
		if (!word || index >= LIMIT_GLUE_FACETS)
			break;
		buf_put(&text, text.length > 0 ? STR(" ") : STR(""));
		buf_put(&text, utf8_truncate(str_of(word), LIMIT_NAME_SHOWN_BYTES));
	}
	giving->given.left = copy(&giving->arena, buf_str(&text));
	buf_free(&text);
}

static void answered(void *context, const struct http_call_answer *answer)
{
	struct giving *giving = context;
	giving->call = NULL;
	json_t *json = answer->code == 0 ? json_loadb(answer->body.at, answer->body.length, 0, NULL) : NULL;
	const char *operation = json_string_value(json_object_get(json, "operation"));
	if (answer->code && !answer->sent)
		refuse(giving, 503, "site-unreachable", "the agent there cannot be reached: %s", answer->err.text);
	else if (answer->code)
		refuse_silence(giving, answer->err.text);
	else if (answer->status == 200 && operation && replica_op_id_parse(str_of(operation), &giving->given.op)) {
		giving->given.status = 200;
		giving->given.parts = count_parts(json);
		take_left(giving, json_object_get(json, "left"));
	} else
		pass_on(giving, answer->status, json);
	json_decref(json);
	engine_giving_reply(giving);
}

static int check_site(void *context, struct str certificate_der, struct err *err)
{
	const struct giving *giving = context;
	return engine_check_site(giving->site, certificate_der, err);
}

static void ask_agent(struct giving *giving)
{
	struct engine *engine = giving->engine;
	const struct site_place *place = engine_find_place(engine, giving->site);
	struct buf target = {0};
	struct err err = {0};
	buf_put(&target, STR("/cheops/v1/copies/"));
	replica_id_put(giving->about.replicant, &target);
	buf_put(&target, STR("/give"));
	struct http_call_options options = {.tls = engine->client,
	                                    .method = "POST",
	                                    .target = buf_str(&target),
	                                    .content_type = STR("application/json"),
	                                    .body = STR("{}"),
	                                    .body_fd = -1,
	                                    .pool = engine->pool,
	                                    .timeout_ms = GIFT_MS,
	                                    .answer_bytes = GIFT_ANSWER_BYTES,
	                                    .done = answered,
	                                    .check = check_site,
	                                    .context = giving};
	http_address_of_site(&options.address, &place->address);
	if (http_call_start(&giving->call, engine->loop, &options, &err) != 0) {
		giving->call = NULL;
		refuse(giving, 503, "site-unreachable", "the agent there cannot be reached: %s", err.text);
		engine_giving_reply(giving);
	}
	buf_free(&target);
}

/* ---- In ------------------------------------------------------------------------------------------------------------- */

static bool is_member(const struct replica_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return true;
	return false;
}

static void put_members(const struct engine *engine, const struct replica_view *view, struct buf *out)
{
	for (uint32_t i = 0; i < view->members_count; i++) {
		const struct site_place *place = engine_find_place(engine, view->members[i].site);
		buf_put(out, i > 0 ? STR(", ") : STR(""));
		if (place)
			buf_put(out, place->name);
		else
			buf_printf(out, "%016llx", (unsigned long long)view->members[i].site);
	}
}

/* Whose copy; false: it was refused. */
static bool find_site(struct giving *giving, const struct replica_view *view)
{
	struct engine *engine = giving->engine;
	struct str name = giving->about.from;
	giving->site = name.length == 0 ? engine->options.self : 0;
	for (uint32_t i = 0; engine->sites && giving->site == 0 && i < engine->sites->places_count; i++)
		if (str_equal(engine->sites->places[i].name, name))
			giving->site = engine->sites->places[i].id;
	name = utf8_truncate(name, LIMIT_NAME_SHOWN_BYTES);
	if (giving->site == 0) {
		refuse(giving, 422, "bad-request", "no site `%.*s` is known; `cheops sites` lists those that are",
		       STR_FMT(name));
	} else if (!is_member(view, giving->site)) {
		struct buf members = {0};
		put_members(engine, view, &members);
		refuse(giving, 409, "cannot-repair", "`%.*s` has no copy of it; these have: %s", STR_FMT(name),
		       buf_c(&members));
		buf_free(&members);
	} else if (giving->site != engine->options.self && !engine_reachable(engine, giving->site)) {
		refuse(giving, 503, "site-unreachable", "`%.*s` cannot be reached now", STR_FMT(name));
	}
	return giving->given.status == 0;
}

/* In the engine's thread. */
static void giving_take(struct http_task *task)
{
	struct giving *giving = (struct giving *)((char *)task - offsetof(struct giving, task));
	struct engine *engine = giving->engine;
	struct replica_view view;
	giving->next = engine->givings;
	if (engine->givings)
		engine->givings->previous = giving;
	engine->givings = giving;
	engine->givings_count++;
	engine_changed(engine); /* looking begins a session of the store */
	bool known = engine->replica &&
	             replica_look(engine->replica, &giving->arena, giving->about.replicant, &view) == 0 &&
	             (giving->about.asker == 0 || is_member(&view, giving->about.asker));
	if (!engine->replica) {
		refuse(giving, 503, "store-failed", "the store of this agent cannot be used; see its log");
	} else if (!known) {
		refuse(giving, 404, "no-such-replicant",
		       "no replicated resource of that id is known at this site; it may be known at others");
	} else if (engine->givings_count > LIMIT_ENGINE_GIFTS) {
		refuse(giving, 503, "too-many-waiting", "%d copies are being given already", LIMIT_ENGINE_GIFTS);
	} else if (find_site(giving, &view)) {
		if (giving->site != engine->options.self) {
			ask_agent(giving);
			return;
		}
		giving->ticket = ++engine->tickets_made;
		replica_give_state(engine->replica, view.id, giving->ticket, engine_now());
		return;
	}
	engine_giving_reply(giving);
}

void engine_give(struct engine *engine, const struct engine_gift *gift)
{
	struct giving *giving = calloc(1, sizeof(*giving));
	CHECK(giving);
	arena_init(&giving->arena, 0);
	giving->engine = engine;
	giving->about = *gift;
	giving->about.from = copy(&giving->arena, gift->from);
	giving->task.run = giving_take;
	http_loop_post(engine->loop, &giving->task);
}

/* Who is asked may be gone. */
void engine_givings_review(struct engine *engine)
{
	for (struct giving *giving = engine->givings, *next; giving; giving = next) {
		next = giving->next;
		if (!giving->call || engine_reachable(engine, giving->site))
			continue;
		http_call_cancel(giving->call);
		giving->call = NULL;
		refuse_silence(giving, "it cannot be reached any more");
		engine_giving_reply(giving);
	}
}

void engine_givings_drop(struct engine *engine)
{
	struct giving *giving = engine->givings;
	engine->givings = NULL;
	engine->givings_count = 0;
	for (struct giving *next; giving; giving = next) {
		next = giving->next;
		if (giving->about.dropped)
			giving->about.dropped(giving->about.context);
		giving_free(giving);
	}
}
