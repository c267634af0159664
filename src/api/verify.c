/* Are the copies of a replicant the same, and whose is to be that of all (engine/verify.h): for users, and for the agents of other
 * members. */
#include "api/api_int.h"

#include "engine/verify.h"

#include "base/check.h"
#include "base/text.h"

#include <jansson.h>
#include <stdlib.h>

static const struct api_refusal bad_request = {422, "bad-request", "The request cannot be followed"};
static const struct api_refusal no_replicant = {404, "no-such-replicant",
                                                "This site knows no such replicated resource"};
static const struct api_refusal too_many = {503, "too-many-waiting", "Too many requests wait for something to happen"};

/* The engine, and the id in the path; NULL, and the call is answered. */
static struct engine *begin(const struct api_agent *agent, const struct proxy_call *call, struct replica_id *id)
{
	struct engine *engine = api_engine(agent, call->exchange);
	struct str text = api_segment(call->target, API_ID_SEGMENT);
	struct buf detail = {0};
	if (!engine)
		return NULL;
	if (replica_id_parse(text, id))
		return engine;
	buf_printf(&detail, TEXT_NAME_FMT " is no meta-id; they look like 01890a5d-ac96-774b-bcce-b302099a8057",
	           TEXT_NAME(text));
	api_answer_problem(call->exchange, &bad_request, buf_c(&detail), STR(""));
	buf_free(&detail);
	return NULL;
}

static void dropped(void *context)
{
	api_answer_problem(context, &api_no_engine, "the agent stops", STR(""));
}

static void put_text(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, ",\"%s\":", name);
	if (text.length > 0)
		buf_put_json(out, text);
	else
		buf_put(out, STR("null"));
}

static void put_id(struct buf *out, struct replica_id id)
{
	buf_put(out, STR("{\"id\":\""));
	replica_id_put(id, out);
	buf_put_char(out, '"');
}

/* ---- Comparing ------------------------------------------------------------------------------------------------------ */

/* The worst, in a word: what differs before what could not be compared. */
static enum engine_verdict overall(const struct engine_verified *verified)
{
	static const uint8_t weight[ENGINE_VERDICTS] = {
		[ENGINE_NOT_SETTLED] = 1, [ENGINE_UNKNOWN] = 2, [ENGINE_MISSING] = 3, [ENGINE_DIFFERS] = 4};
	enum engine_verdict worst = ENGINE_SAME;
	for (uint32_t i = 0; i < verified->members_count; i++)
		if (weight[verified->members[i].verdict] > weight[worst])
			worst = verified->members[i].verdict;
	return worst;
}

/* What was read of it; open, for more. */
static void put_facet(struct buf *out, const struct engine_facet_reading *facet)
{
	buf_put(out, STR("{\"facet\":"));
	buf_put_json(out, facet->name);
	buf_printf(out, ",\"state\":\"%s\"", engine_facet_kind_name(facet->kind));
	put_text(out, "digest", facet->digest);
	if (facet->kind == ENGINE_FACET_HERE)
		buf_printf(out, ",\"bytes\":%llu", (unsigned long long)facet->bytes);
	else
		buf_put(out, STR(",\"bytes\":null"));
	put_text(out, "reason", facet->reason);
}

static void put_site(struct buf *out, const struct engine_reply *names, site_id site)
{
	if (site)
		api_put_site_name(out, names, site);
	else
		buf_put(out, STR("null"));
}

static void put_member(struct buf *out, const struct engine_reply *reply, const struct engine_member_verdict *member)
{
	api_put_site(out, reply, member->site);
	buf_printf(out, ",\"verify\":\"%s\"", engine_verdict_name(member->verdict));
	put_text(out, "reason", member->reason);
	if (member->parts.length > 0) {
		buf_put(out, STR(",\"parts\":"));
		buf_put(out, member->parts);
	}
	buf_put(out, STR(",\"differences\":["));
	for (uint32_t i = 0; i < member->differences_count; i++) {
		const struct engine_difference *difference = &member->differences[i];
		buf_put(out, i > 0 ? STR(",{\"pointer\":") : STR("{\"pointer\":"));
		buf_put_json(out, difference->pointer);
		put_text(out, "here", difference->here);
		put_text(out, "elsewhere", difference->elsewhere);
		buf_put_char(out, '}');
	}
	buf_printf(out, "],\"more\":%s,\"facets\":[", member->more ? "true" : "false");
	for (uint32_t i = 0; i < member->facets_count; i++) {
		const struct engine_facet_verdict *facet = &member->facets[i];
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_facet(out, facet->reading);
		buf_printf(out, ",\"verify\":\"%s\",\"compared_with\":", engine_verdict_name(facet->verdict));
		put_site(out, reply, facet->reference);
		buf_put_char(out, '}');
	}
	buf_put(out, STR("]}"));
}

static void put_names(struct buf *out, const char *key, const struct str *names, uint32_t count)
{
	buf_printf(out, ",\"%s\":[", key);
	for (uint32_t i = 0; i < count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		buf_put_json(out, names[i]);
	}
	buf_put_char(out, ']');
}

static void put_verified(struct buf *out, const struct engine_verified *verified)
{
	struct engine_reply names = {.self = verified->self, .sites = verified->sites};
	put_id(out, verified->view->id);
	put_text(out, "type", verified->view->type);
	put_text(out, "name", verified->view->name);
	buf_printf(out, ",\"verify\":\"%s\",\"tie\":%s,\"compared_with\":", engine_verdict_name(overall(verified)),
	           verified->tie ? "true" : "false");
	put_site(out, &names, verified->reference);
	put_names(out, "not_compared", verified->not_compared, verified->not_compared_count);
	put_names(out, "not_removable", verified->not_removable, verified->not_removable_count);
	buf_put(out, STR(",\"members\":["));
	for (uint32_t i = 0; i < verified->members_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_member(out, &names, &verified->members[i]);
	}
	buf_put(out, STR("]}\n"));
}

static void put_parts(struct buf *out, const struct engine_verified *verified)
{
	struct engine_reply names = {.self = verified->self, .sites = verified->sites};
	put_id(out, verified->view->id);
	put_text(out, "type", verified->view->type);
	put_text(out, "name", verified->view->name);
	buf_put(out, STR(",\"members\":["));
	for (uint32_t i = 0; i < verified->members_count; i++) {
		const struct engine_member_verdict *member = &verified->members[i];
		bool unread = member->verdict == ENGINE_UNKNOWN || member->verdict == ENGINE_MISSING ||
		              (member->verdict == ENGINE_NOT_SETTLED && member->parts.length == 0);
		buf_put(out, i > 0 ? STR(",") : STR(""));
		api_put_site(out, &names, member->site);
		put_text(out, "reason", unread ? member->reason : STR(""));
		buf_put(out, STR(",\"parts\":"));
		buf_put(out, unread ? STR("null") : member->parts.length > 0 ? member->parts : STR("[]"));
		buf_put_char(out, '}');
	}
	buf_put(out, STR("]}\n"));
}

static void answer(struct proxy_exchange *exchange, const struct engine_verified *verified,
                   void (*put)(struct buf *out, const struct engine_verified *verified))
{
	struct buf body = {0};
	if (verified->code) {
		const struct api_refusal *why = verified->code == ERR_NOT_FOUND ? &no_replicant
		                                : verified->code == ERR_LIMIT   ? &too_many
		                                                                : &api_no_engine;
		api_answer_problem(exchange, why, verified->text.at, STR(""));
	} else {
		put(&body, verified);
		proxy_answer(exchange, 200, api_json, STR(""), buf_str(&body));
	}
	buf_free(&body);
}

static void verified(void *context, const struct engine_verified *verified)
{
	answer(context, verified, put_verified);
}

static void parted(void *context, const struct engine_verified *verified)
{
	answer(context, verified, put_parts);
}

void api_get_parts(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_verification about = {
		.parts = true, .loop = call->loop, .done = parted, .dropped = dropped, .context = call->exchange};
	struct engine *engine = begin(agent, call, &about.replicant);
	if (engine)
		engine_verify(engine, &about);
}

void api_get_verify(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_verification about = {
		.loop = call->loop, .done = verified, .dropped = dropped, .context = call->exchange};
	struct engine *engine = begin(agent, call, &about.replicant);
	if (engine)
		engine_verify(engine, &about);
}

/* ---- For another member ---------------------------------------------------------------------------------------------- */

static void copied(void *context, int code, const struct engine_reading *reading)
{
	struct buf body = {0};
	if (code) {
		api_answer_problem(context, code == ERR_LIMIT ? &too_many : &no_replicant,
		                   code == ERR_LIMIT ? "too many copies are read already"
		                                     : "there is no such replicated resource here that you are a member of",
		                   STR(""));
		return;
	}
	buf_printf(&body, "{\"copy\":\"%s\"", engine_read_name(reading->kind));
	put_text(&body, "session", reading->session);
	put_text(&body, "digest", reading->digest);
	put_text(&body, "reason", reading->reason);
	put_text(&body, "text", reading->text);
	if (reading->parts.length > 0) {
		buf_put(&body, STR(",\"parts\":"));
		buf_put(&body, reading->parts);
	}
	buf_put(&body, STR(",\"facets\":["));
	for (uint32_t i = 0; i < reading->facets_count; i++) {
		buf_put(&body, i > 0 ? STR(",") : STR(""));
		put_facet(&body, &reading->facets[i]);
		buf_put_char(&body, '}');
	}
	buf_put(&body, STR("]}\n"));
	proxy_answer(context, 200, api_json, STR(""), buf_str(&body));
	buf_free(&body);
}

static void ask_copy(const struct api_agent *agent, const struct proxy_call *call, bool facets)
{
	struct engine_copy_question about = {.facets = facets,
	                                     .from = call->from,
	                                     .loop = call->loop,
	                                     .done = copied,
	                                     .dropped = dropped,
	                                     .context = call->exchange};
	struct engine *engine = begin(agent, call, &about.replicant);
	if (engine && call->peer && call->from != 0)
		engine_copy_ask(engine, &about);
	else if (engine)
		copied(call->exchange, ERR_NOT_FOUND, NULL);
}

void api_get_copy(const struct api_agent *agent, const struct proxy_call *call)
{
	ask_copy(agent, call, false);
}

void api_get_copy_facets(const struct api_agent *agent, const struct proxy_call *call)
{
	ask_copy(agent, call, true);
}

/* ---- Giving ----------------------------------------------------------------------------------------------------------- */

static const char *title_of(struct str problem)
{
	if (str_equal(problem, STR("cannot-repair")))
		return "This copy cannot be given to the others";
	if (str_equal(problem, STR("no-such-replicant")))
		return no_replicant.title;
	if (str_equal(problem, STR("earlier-first")))
		return "An earlier operation comes first";
	if (str_equal(problem, STR("site-unreachable")))
		return "A site cannot be reached";
	if (str_equal(problem, STR("no-answer")))
		return "The service did not answer";
	if (str_equal(problem, STR("bad-request")))
		return bad_request.title;
	return "The copies cannot be repaired now";
}

static void put_words(struct buf *out, struct str words)
{
	while (words.length > 0) {
		const char *space = memchr(words.at, ' ', words.length);
		size_t length = space ? (size_t)(space - words.at) : words.length;
		buf_put_json(out, str_make(words.at, length));
		words = str_make(words.at + length + (space ? 1 : 0), words.length - length - (space ? 1 : 0));
		buf_put(out, words.length > 0 ? STR(",") : STR(""));
	}
}

static void given(void *context, const struct engine_given *given)
{
	struct buf body = {0}, problem = {0}, detail = {0};
	if (given->status == 200) {
		struct replica_op_id op = given->op;
		buf_put(&body, STR("{\"operation\":\""));
		replica_op_id_put(op, &body);
		buf_put(&body, STR("\",\"operations\":["));
		for (uint32_t i = 0; i <= given->parts; i++, op.number++) {
			buf_put(&body, i > 0 ? STR(",\"") : STR("\""));
			replica_op_id_put(op, &body);
			buf_put_char(&body, '"');
		}
		buf_put(&body, STR("],\"left\":["));
		put_words(&body, given->left);
		buf_put(&body, STR("]}\n"));
		proxy_answer(context, 200, api_json, STR(""), buf_str(&body));
	} else {
		buf_put(&problem, given->problem);
		buf_put(&detail, given->text);
		struct api_refusal refusal = {given->status, buf_c(&problem), title_of(given->problem)};
		api_answer_problem(context, &refusal, buf_c(&detail), STR(""));
	}
	buf_free(&body);
	buf_free(&problem);
	buf_free(&detail);
}

void api_post_give(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_gift about = {.from = STR(""),
	                            .asker = call->from,
	                            .loop = call->loop,
	                            .done = given,
	                            .dropped = dropped,
	                            .context = call->exchange};
	struct engine *engine = begin(agent, call, &about.replicant);
	if (engine && call->peer && call->from != 0)
		engine_give(engine, &about);
	else if (engine)
		copied(call->exchange, ERR_NOT_FOUND, NULL);
}

void api_post_repair(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_gift about = {.loop = call->loop, .done = given, .dropped = dropped, .context = call->exchange};
	struct engine *engine = begin(agent, call, &about.replicant);
	if (!engine)
		return;
	json_t *json = json_loadb(call->body.at, call->body.length, JSON_REJECT_DUPLICATES, NULL);
	const char *from = json_string_value(json_object_get(json, "from"));
	if (from && *from) {
		about.from = str_of(from);
		engine_give(engine, &about);
	} else {
		api_answer_problem(call->exchange, &bad_request,
		                   "the body needs a member `from`, the name of the site whose copy is right: "
		                   "{\"from\": \"Site2\"}",
		                   STR(""));
	}
	json_decref(json);
}
