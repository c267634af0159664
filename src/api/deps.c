/* What refers to what, as the API says it (docs/relations.md). */
#include "api/api_int.h"

#include "engine/relations.h"

#include "base/check.h"
#include "base/percent.h"
#include "base/text.h"

#include <stdlib.h>

/* ---- Words --------------------------------------------------------------------------------------------------------- */

/* What is managed by its id; else what its service calls it. */
static void put_target(struct buf *out, const struct relation_target *to)
{
	if (to->managed) {
		buf_put(out, STR("\"id\":\""));
		replica_id_put(to->id, out);
		buf_put(out, STR("\",\"local_id\":null"));
		return;
	}
	buf_put(out, STR("\"id\":null,\"type\":"));
	buf_put_json(out, to->type);
	buf_put(out, STR(",\"local_id\":"));
	buf_put_json(out, to->name);
}

static void put_sites(struct buf *out, const struct engine_reply *reply, const site_id *sites, uint32_t count)
{
	buf_put_char(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		api_put_site_name(out, reply, sites[i]);
	}
	buf_put_char(out, ']');
}

/* ---- At risk ------------------------------------------------------------------------------------------------------- */

static void put_risk(struct buf *out, const struct engine_reply *reply, const struct relation_fact *fact,
                     enum relation_risk why)
{
	struct engine_about about;
	buf_put_char(out, '{');
	put_target(out, &fact->to);
	if (fact->to.managed) {
		buf_put(out, STR(",\"type\":"));
		if (engine_about(reply->engine, fact->to.id, &about))
			buf_put_json(out, about.type);
		else
			buf_put(out, STR("null"));
	}
	buf_put(out, STR(",\"place\":"));
	buf_put_json(out, fact->place);
	buf_printf(out, ",\"why\":\"%s\",\"sites\":", relation_risk_name(why));
	put_sites(out, reply, fact->sites, fact->sites_count);
	buf_put_char(out, '}');
}

void api_put_risks(struct buf *out, const struct engine_reply *reply, struct replica_id id)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct relation_risks *risks = arena_new(&arena, struct relation_risks);
	if (!engine_risk_of(reply->engine, id, &arena, risks)) {
		buf_put(out, STR("null"));
		arena_free(&arena);
		return;
	}
	buf_put_char(out, '[');
	for (uint32_t i = 0; i < risks->record.count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_risk(out, reply, &risks->record.facts[i], risks->why[i]);
	}
	buf_put_char(out, ']');
	arena_free(&arena);
}

/* ---- Trees --------------------------------------------------------------------------------------------------------- */

enum { LIST_DEFAULT = 100, SITE_SEGMENT = 4 }; /* /cheops/v1/deps/sites/{site} */

static const char *const view_names[ENGINE_DEPS_VIEWS] = {
	[ENGINE_DEPS_TREE] = "tree", [ENGINE_DEPS_WHY] = "why", [ENGINE_DEPS_IMPACT] = "impact"};

static void put_text(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, ",\"%s\":", name);
	if (text.length > 0)
		buf_put_json(out, text);
	else
		buf_put(out, STR("null"));
}

/* Those that have it, not those that only know of it. */
static void put_holders(struct buf *out, const struct engine_reply *reply, const struct replica_view *view)
{
	site_id sites[LIMIT_REPLICA_MEMBERS];
	uint32_t count = 0;
	for (uint32_t i = 0; i < view->members_count; i++)
		if (!view->members[i].witness)
			sites[count++] = view->members[i].site;
	put_sites(out, reply, sites, count);
}

static void put_where(struct buf *out, const struct engine_reply *reply, const struct engine_dep *dep)
{
	buf_put(out, STR(",\"sites\":"));
	if (dep->view)
		put_holders(out, reply, dep->view);
	else if (dep->target.managed || dep->sites_count > 0)
		put_sites(out, reply, dep->sites, dep->sites_count);
	else
		put_sites(out, reply, &reply->self, 1);
	buf_put(out, STR(",\"from\":"));
	put_sites(out, reply, dep->sites, dep->sites_count);
}

static const char *state_of(const struct engine_dep *dep)
{
	if (dep->gone)
		return "gone";
	if (dep->view)
		return engine_copy_name(api_worst_copy(dep->view));
	return dep->target.managed ? "unknown" : "not-replicated";
}

/* Up to what is below it. */
static void put_dep(struct buf *out, const struct engine_reply *reply, const struct engine_dep *dep)
{
	buf_put_char(out, '{');
	put_target(out, &dep->target);
	if (dep->target.managed)
		put_text(out, "type", dep->view ? dep->view->type : STR(""));
	put_text(out, "name", dep->view ? dep->view->name : STR(""));
	put_text(out, "relation", str_of(engine_dep_word_name(dep->word)));
	put_text(out, "place", dep->place);
	buf_printf(out, ",\"state\":\"%s\"", state_of(dep));
	put_where(out, reply, dep);
	buf_put(out, STR(",\"at_risk\":"));
	if (dep->target.managed)
		api_put_risks(out, reply, dep->target.id);
	else
		buf_put(out, STR("null"));
	bool lost = dep->risk == RELATION_UNREACHABLE || dep->risk == RELATION_GONE;
	put_text(out, "lost", lost ? str_of(relation_risk_name(dep->risk)) : STR(""));
	buf_printf(out, ",\"again\":%s,\"cut\":%s,\"below\":[", dep->again ? "true" : "false", dep->cut ? "true" : "false");
}

/* They come in the order of a drawing: what is not deeper than the one before ends that. */
static void put_deps(struct buf *out, const struct engine_reply *reply)
{
	const struct engine_dep *deps = reply->deps.deps;
	buf_put(out, STR("{\"site\":"));
	api_put_site_name(out, reply, reply->self);
	buf_put(out, STR(",\"root\":"));
	for (uint32_t i = 0; i < reply->deps.count; i++) {
		for (uint32_t depth = i > 0 ? deps[i - 1].depth + 1 : 0; depth > deps[i].depth; depth--)
			buf_put(out, STR("]}"));
		if (i > 0 && deps[i].depth <= deps[i - 1].depth)
			buf_put_char(out, ',');
		put_dep(out, reply, &deps[i]);
	}
	for (uint32_t depth = deps[reply->deps.count - 1].depth + 1; depth > 0; depth--)
		buf_put(out, STR("]}"));
	buf_put(out, STR("}\n"));
}

/* ---- A site that goes ---------------------------------------------------------------------------------------------- */

static void put_suffering(struct buf *out, const struct engine_reply *reply, const struct engine_suffering *suffering)
{
	const struct replica_view *view = suffering->view;
	const struct relation_risks *risks = suffering->risks;
	buf_put(out, STR("{\"id\":\""));
	replica_id_put(view->id, out);
	buf_put_char(out, '"');
	put_text(out, "type", view->type);
	put_text(out, "name", view->name);
	buf_printf(out, ",\"why\":\"%s\",\"sites\":", suffering->loss == ENGINE_LOSS_ALL ? "only-copy" : "relies-on");
	put_holders(out, reply, view);
	buf_put(out, STR(",\"relies_on\":["));
	for (uint32_t i = 0; risks && i < risks->record.count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_risk(out, reply, &risks->record.facts[i], risks->why[i]);
	}
	buf_put(out, STR("]}"));
}

static void put_page(struct buf *out, const struct engine_reply *reply)
{
	buf_put(out, STR("{\"site\":"));
	api_put_site_name(out, reply, reply->self);
	buf_put(out, STR(",\"suffering\":["));
	for (uint32_t i = 0; i < reply->suffering_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_suffering(out, reply, &reply->suffering[i]);
	}
	buf_printf(out, "],\"copies\":%u,\"next\":", reply->copies);
	if (reply->more) {
		buf_put_char(out, '"');
		replica_id_put(reply->next_replicant, out);
		buf_put_char(out, '"');
	} else {
		buf_put(out, STR("null"));
	}
	buf_put(out, STR("}\n"));
}

/* ---- Asking -------------------------------------------------------------------------------------------------------- */

static const struct api_refusal bad_request = {422, "bad-request", "The request cannot be followed"};
static const struct api_refusal unknown = {404, "no-such-replicant", "This site knows no such resource"};

struct query {
	struct proxy_exchange *exchange;
	enum engine_question_kind kind;
};

static void done(void *context, const struct engine_reply *reply)
{
	struct query *query = context;
	struct buf body = {0};
	if (reply->code) {
		const struct api_refusal *why = reply->code == ERR_NOT_FOUND     ? &unknown
		                                : reply->code == ERR_UNAVAILABLE ? &api_no_engine
		                                                                 : &bad_request;
		api_answer_problem(query->exchange, why, reply->text.at, STR(""));
	} else {
		(query->kind == ENGINE_ASK_DEPS ? put_deps : put_page)(&body, reply);
		proxy_answer(query->exchange, 200, api_json, STR(""), buf_str(&body));
	}
	buf_free(&body);
	free(query);
}

static void dropped(void *context)
{
	struct query *query = context;
	api_answer_problem(query->exchange, &api_no_engine, "the agent stops", STR(""));
	free(query);
}

static void ask(const struct api_agent *agent, const struct proxy_call *call, struct engine_question *question)
{
	struct engine *engine = api_engine(agent, call->exchange);
	if (!engine)
		return;
	struct query *query = calloc(1, sizeof(*query));
	CHECK(query);
	*query = (struct query){call->exchange, question->kind};
	question->state = -1;
	question->loop = call->loop;
	question->done = done;
	question->dropped = dropped;
	question->context = query;
	engine_ask(engine, question);
}

static bool read_view(const struct proxy_call *call, struct str text, enum engine_deps_view *view)
{
	struct buf detail = {0};
	for (int i = 0; i < ENGINE_DEPS_VIEWS; i++) {
		if (str_equal(text, str_of(view_names[i])) || (text.length == 0 && i == ENGINE_DEPS_TREE)) {
			*view = (enum engine_deps_view)i;
			return true;
		}
	}
	buf_printf(&detail, "`view` is " TEXT_NAME_FMT "; it is one of `tree`, `why` and `impact`", TEXT_NAME(text));
	api_answer_problem(call->exchange, &bad_request, buf_c(&detail), STR(""));
	buf_free(&detail);
	return false;
}

static bool read_id(const struct proxy_call *call, const char *name, struct str text, struct replica_id *id)
{
	struct buf detail = {0};
	if (replica_id_parse(text, id))
		return true;
	buf_printf(&detail,
	           "`%s` is " TEXT_NAME_FMT ", which is no meta-id; they look like 01890a5d-ac96-774b-bcce-b302099a8057",
	           name, TEXT_NAME(text));
	api_answer_problem(call->exchange, &bad_request, buf_c(&detail), STR(""));
	buf_free(&detail);
	return false;
}

void api_get_deps(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_question question = {.kind = ENGINE_ASK_DEPS};
	struct arena arena;
	arena_init(&arena, 0);
	struct str of = api_query(&arena, call->target, "of");
	question.type = api_query(&arena, call->target, "type");
	question.local_id = api_query(&arena, call->target, "local_id");
	bool local = of.length == 0 && question.type.length > 0 && question.local_id.length > 0;
	if (!local && (of.length == 0 || question.local_id.length > 0))
		api_answer_problem(
			call->exchange, &bad_request,
			"what is meant? Either `of` has the meta-id of a replicated resource, or `type` and `local_id` say "
			"which one of this site that is not replicated",
			STR(""));
	else if ((local || read_id(call, "of", of, &question.replicant)) &&
	         read_view(call, api_query(&arena, call->target, "view"), &question.deps_view))
		ask(agent, call, &question);
	arena_free(&arena);
}

void api_get_suffering(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_question question = {.kind = ENGINE_ASK_SUFFERING, .most = LIST_DEFAULT};
	struct replica_id after;
	uint64_t most = LIST_DEFAULT;
	struct arena arena;
	arena_init(&arena, 0);
	struct str limit = api_query(&arena, call->target, "limit"), text = api_query(&arena, call->target, "after");
	if (limit.length > 0 && (!api_number(limit, LIMIT_API_LIST, &most) || most == 0))
		api_answer_problem(call->exchange, &bad_request, "`limit` is no number from 1 to 200", STR(""));
	else if (!percent_decode(&arena, api_segment(call->target, SITE_SEGMENT), &question.site))
		api_answer_problem(call->exchange, &bad_request,
		                   "the site's name is none: what follows a `%` is no two hexadecimal digits", STR(""));
	else if (text.length == 0 || read_id(call, "after", text, &after)) {
		question.after_replicant = text.length > 0 ? &after : NULL;
		question.most = (uint32_t)most;
		ask(agent, call, &question);
	}
	arena_free(&arena);
}
