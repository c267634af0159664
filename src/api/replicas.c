/* What the API says of replicated resources and operations on them, and a person's word on an operation. In the loop that was
 * asked; the engine has the answer (engine/ask.h). Changes are in changes.c. */
#include "api/api_int.h"

#include "base/check.h"
#include "base/percent.h"
#include "base/text.h"
#include "base/timestamp.h"

#include <stdlib.h>

enum { LIST_DEFAULT = 100, WAIT_DEFAULT_S = 30, WAIT_MOST_S = 600 };

static const struct api_refusal bad_request = {422, "bad-request", "The request cannot be followed"};
static const struct api_refusal no_replicant = {404, "no-such-replicant",
                                                "This site knows no such replicated resource"};
static const struct api_refusal no_operation = {404, "no-such-operation", "This site knows no such operation"};
static const struct api_refusal not_judged = {409, "nothing-to-judge", "There is nothing to decide on this operation"};
static const struct api_refusal members_stay = {409, "members-unchanged",
                                                "The members of this resource stay as they are"};
static const struct api_refusal too_many = {503, "too-many-waiting", "Too many requests wait for something to happen"};

/* ---- Words --------------------------------------------------------------------------------------------------------- */

/* A site is called what it is called here; one that is not known any more, by its number. */
void api_put_site_name(struct buf *out, const struct engine_reply *reply, site_id site)
{
	uint32_t at = reply->sites ? site_snapshot_find(reply->sites, site) : SCOPE_NO_INDEX;
	if (at == SCOPE_NO_INDEX)
		buf_printf(out, "\"%016llx\"", (unsigned long long)site);
	else
		buf_put_json(out, reply->sites->places[at].name);
}

/* Whether it can be asked at all: what is said of it is what it reported last. */
void api_put_site(struct buf *out, const struct engine_reply *reply, site_id site)
{
	uint32_t at = reply->sites ? site_snapshot_find(reply->sites, site) : SCOPE_NO_INDEX;
	buf_put(out, STR("{\"site\":"));
	api_put_site_name(out, reply, site);
	if (at == SCOPE_NO_INDEX) {
		buf_put(out, STR(",\"shown\":\"unknown\",\"since\":null"));
		return;
	}
	struct scope_site about = reply->sites->view.site(reply->sites->view.context, at);
	buf_printf(out, ",\"shown\":\"%s\",\"since\":", scope_state_name(about.state));
	api_put_time(out, about.since_ms);
}

static void put_id(struct buf *out, struct replica_id id)
{
	buf_put_char(out, '"');
	replica_id_put(id, out);
	buf_put_char(out, '"');
}

static void put_operation_id(struct buf *out, struct replica_op_id id)
{
	buf_put_char(out, '"');
	replica_op_id_put(id, out);
	buf_put_char(out, '"');
}

static void put_text(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, ",\"%s\":", name);
	if (text.length > 0)
		buf_put_json(out, text);
	else
		buf_put(out, STR("null"));
}

/* ---- Replicants ---------------------------------------------------------------------------------------------------- */

static void put_copy(struct buf *out, const struct engine_reply *reply, const struct replica_view *view,
                     const struct replica_member_view *member)
{
	api_put_site(out, reply, member->site);
	buf_printf(out, ",\"state\":\"%s\"", engine_copy_name(engine_copy_of(view, member)));
	put_text(out, "local_id", member->local_id);
	buf_printf(out, ",\"pending\":%u,\"rejected\":%u,\"in_doubt\":%u,\"joining\":%s,\"leaving\":%s}", member->pending,
	           member->rejected, member->in_doubt, member->joining ? "true" : "false",
	           member->leaving ? "true" : "false");
}

enum engine_copy api_worst_copy(const struct replica_view *view)
{
	enum engine_copy worst = ENGINE_COPY_WITNESS;
	for (uint32_t i = 0; i < view->members_count; i++) {
		enum engine_copy copy = engine_copy_of(view, &view->members[i]);
		worst = copy > worst ? copy : worst;
	}
	return view->left ? ENGINE_COPY_LEFT : view->deleted ? ENGINE_COPY_DELETED : worst;
}

static const char *const span_names[REPLICA_SPANS] = {
	[REPLICA_CONTAINER] = "container", [REPLICA_DIVIDED] = "divided", [REPLICA_PLACED] = "placed"};

/* Of a child that this site made in a container: whether the name is its own. */
static void put_child(struct buf *out, const struct engine_reply *reply, const struct engine_child *child)
{
	static const char *const names[] = {
		[ENGINE_NAME_FINE] = "own", [ENGINE_NAME_UNCHECKED] = "unchecked", [ENGINE_NAME_LOST] = "lost"};
	if (!child || child->state == ENGINE_NAME_NONE) {
		buf_put(out, STR(",\"name_state\":null"));
		return;
	}
	buf_printf(out, ",\"name_state\":\"%s\"", names[child->state]);
	if (child->state != ENGINE_NAME_LOST)
		return;
	buf_put(out, STR(",\"name_holder\":{\"id\":"));
	put_id(out, child->holder);
	buf_put(out, STR(",\"site\":"));
	api_put_site_name(out, reply, child->holder_site);
	buf_put_char(out, '}');
}

static void put_division(struct buf *out, const struct engine_reply *reply, const struct cross_division *division)
{
	buf_put(out, division ? STR(",\"division\":[") : STR(",\"division\":null"));
	for (uint32_t i = 0; division && i < division->count; i++) {
		buf_put(out, i > 0 ? STR(",{\"site\":") : STR("{\"site\":"));
		api_put_site_name(out, reply, division->shares[i].site);
		buf_printf(out, ",\"weight\":%llu}", (unsigned long long)division->shares[i].weight);
	}
	buf_put(out, division ? STR("]") : STR(""));
}

/* Sites that had a share when it was divided last, and went away with their parts. */
static void put_lost(struct buf *out, const struct engine_reply *reply, const struct replica_view *view,
                     const struct cross_division *division)
{
	bool any = false;
	buf_put(out, STR(",\"lost\":["));
	for (uint32_t i = 0; division && i < division->count; i++) {
		bool member = division->shares[i].weight == 0;
		for (uint32_t k = 0; k < view->members_count; k++)
			member |= view->members[k].site == division->shares[i].site;
		if (member)
			continue;
		buf_put(out, any ? STR(",") : STR(""));
		api_put_site_name(out, reply, division->shares[i].site);
		any = true;
	}
	buf_put_char(out, ']');
}

static void put_replicant(struct buf *out, const struct engine_reply *reply, uint32_t number)
{
	const struct replica_view *view = &reply->replicants[number];
	const struct engine_child *child = reply->children ? &reply->children[number] : NULL;
	buf_put(out, STR("{\"id\":"));
	put_id(out, view->id);
	put_text(out, "service", view->service);
	put_text(out, "type", view->type);
	put_text(out, "collection", view->collection);
	put_text(out, "name", child && child->state != ENGINE_NAME_NONE ? child->name : view->name);
	put_child(out, reply, child);
	put_text(out, "span", view->span == REPLICA_ALIKE ? STR("") : str_of(span_names[view->span]));
	buf_put(out, STR(",\"prime\":"));
	if (view->prime == 0)
		buf_put(out, STR("null"));
	else
		api_put_site_name(out, reply, view->prime);
	const struct cross_division *division = reply->divisions ? reply->divisions[number] : NULL;
	put_division(out, reply, division);
	put_lost(out, reply, view, division);
	buf_printf(out, ",\"consistency\":\"%s\",\"state\":\"%s\",\"operations\":%u,\"members\":[",
	           view->consistency == REPLICA_WEAK ? "weak" : "eventual", engine_copy_name(api_worst_copy(view)),
	           view->operations);
	for (uint32_t i = 0; i < view->members_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_copy(out, reply, view, &view->members[i]);
	}
	buf_put(out, STR("],\"at_risk\":"));
	api_put_risks(out, reply, view->id);
	buf_put_char(out, '}');
}

static void put_replicants(struct buf *out, const struct engine_reply *reply)
{
	buf_put(out, STR("{\"site\":"));
	api_put_site_name(out, reply, reply->self);
	buf_put(out, STR(",\"replicants\":["));
	for (uint32_t i = 0; i < reply->replicants_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_replicant(out, reply, i);
	}
	buf_put(out, STR("],\"next\":"));
	if (reply->more)
		put_id(out, reply->next_replicant);
	else
		buf_put(out, STR("null"));
	buf_put(out, STR("}\n"));
}

/* ---- Operations ---------------------------------------------------------------------------------------------------- */

/* In the order in which a person wants to hear of them. */
static enum replica_member_state overall(const struct replica_op_view *view)
{
	static const uint8_t weight[REPLICA_MEMBER_STATES] = {[REPLICA_SUPERSEDED] = 1,
	                                                      [REPLICA_PENDING] = 2,
	                                                      [REPLICA_REJECTED] = 3,
	                                                      [REPLICA_REJECTED_CREDENTIAL] = 4,
	                                                      [REPLICA_IN_DOUBT] = 5};
	enum replica_member_state worst = REPLICA_APPLIED;
	for (uint32_t i = 0; i < view->members_count; i++)
		if (weight[view->members[i].state] > weight[worst])
			worst = view->members[i].state;
	return worst;
}

static const char *effect_name(uint8_t effect)
{
	static const char *const names[ORDER_EFFECTS + 1] = {
		[ORDER_CREATE] = "create",     [ORDER_REPLACE] = "replace", [ORDER_ASSIGN] = "assign",
		[ORDER_RELATIVE] = "relative", [ORDER_DELETE] = "delete",   [ORDER_ADOPT] = "copy"};
	CHECK(effect <= ORDER_EFFECTS);
	return names[effect];
}

/* Of one that every member has settled, and that is forgotten, nothing is known but that. */
static void put_what(struct buf *out, const struct replica_op_view *view)
{
	bool forgotten = view->class.name.length == 0;
	put_text(out, "operation", view->class.name);
	put_text(out, "effect", forgotten ? STR("") : str_of(effect_name(view->class.effect)));
	buf_put(out, STR(",\"issued\":"));
	api_put_time(out, forgotten ? 0 : (int64_t)hlc_ms(view->stamp));
	buf_printf(out, ",\"repair\":%s,\"superseded_by\":", view->repair ? "true" : "false");
	if (view->superseded_by.number > 0)
		put_operation_id(out, view->superseded_by);
	else
		buf_put(out, STR("null"));
	buf_put(out, STR(",\"merges\":"));
	if (view->merges)
		put_id(out, view->merged);
	else
		buf_put(out, STR("null"));
}

/* Of what is pending. Whether another site was told of it, only that one knows. */
static void put_reason(struct buf *out, struct replica_id missing, const char *why)
{
	struct buf text = {0};
	buf_put(out, STR(",\"waits_for\":"));
	put_id(out, missing);
	buf_put(&text, STR("waits for "));
	replica_id_put(missing, &text);
	buf_put(&text, str_of(why));
	put_text(out, "reason", buf_str(&text));
	buf_free(&text);
}

static void put_operation(struct buf *out, const struct engine_reply *reply, const struct replica_op_view *view)
{
	buf_put(out, STR("{\"id\":"));
	put_operation_id(out, view->id);
	buf_put(out, STR(",\"replicant\":"));
	put_id(out, view->id.replicant);
	buf_put(out, STR(",\"issuer\":"));
	api_put_site_name(out, reply, view->id.site);
	put_what(out, view);
	buf_printf(out, ",\"state\":\"%s\",\"members\":[", replica_member_state_name(overall(view)));
	for (uint32_t i = 0; i < view->members_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		api_put_site(out, reply, view->members[i].site);
		buf_printf(out, ",\"state\":\"%s\"", replica_member_state_name(view->members[i].state));
		if (view->members[i].status > 0)
			buf_printf(out, ",\"status\":%d", view->members[i].status);
		if (view->members[i].answer.length > 0)
			put_text(out, "answer", view->members[i].answer);
		if (view->waits && view->members[i].site == reply->self)
			put_reason(out, view->waits_for,
			           view->waits_unheard ? ", which is not at this site" : ", which is not made at this site yet");
		else if (view->members[i].waits)
			put_reason(out, view->members[i].waits_for, ", which is on its way there");
		buf_put_char(out, '}');
	}
	buf_put_char(out, ']');
}

static void put_operations(struct buf *out, const struct engine_reply *reply)
{
	buf_put(out, STR("{\"site\":"));
	api_put_site_name(out, reply, reply->self);
	buf_put(out, STR(",\"operations\":["));
	for (uint32_t i = 0; i < reply->operations_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_operation(out, reply, &reply->operations[i]);
		buf_put_char(out, '}');
	}
	buf_put(out, STR("],\"next\":"));
	if (reply->more)
		put_operation_id(out, reply->next_operation);
	else
		buf_put(out, STR("null"));
	buf_put(out, STR("}\n"));
}

/* ---- Asking -------------------------------------------------------------------------------------------------------- */

struct query {
	struct proxy_exchange *exchange;
	enum engine_question_kind kind;
	bool waited;
};

static const struct api_refusal *why(const struct query *query, int code)
{
	bool members = query->kind == ENGINE_ASK_EXTEND || query->kind == ENGINE_ASK_DROP;
	bool replicant = query->kind == ENGINE_ASK_REPLICANT || members;
	if (members && (code == ERR_CONFLICT || code == ERR_LIMIT || code == ERR_UNAVAILABLE))
		return &members_stay;
	switch (code) {
	case ERR_NOT_FOUND: return replicant ? &no_replicant : &no_operation;
	case ERR_CONFLICT: return &not_judged;
	case ERR_LIMIT: return &too_many;
	case ERR_UNAVAILABLE: return &api_no_engine;
	default: return &bad_request;
	}
}

static void put_reply(struct buf *out, const struct query *query, const struct engine_reply *reply)
{
	switch (query->kind) {
	case ENGINE_ASK_REPLICANTS: put_replicants(out, reply); break;
	case ENGINE_ASK_OPERATIONS: put_operations(out, reply); break;
	case ENGINE_ASK_EXTEND:
	case ENGINE_ASK_DROP:
	case ENGINE_ASK_REPLICANT:
		put_replicant(out, reply, 0);
		buf_put_char(out, '\n');
		break;
	default:
		if (reply->operations_count == 0) { /* it was withheld, and nothing is left of it under this id */
			buf_put(out, STR("{}\n"));
			break;
		}
		put_operation(out, reply, &reply->operations[0]);
		if (query->waited)
			buf_printf(out, ",\"reached\":%s", reply->reached ? "true" : "false");
		buf_put(out, STR("}\n"));
	}
}

static void done(void *context, const struct engine_reply *reply)
{
	struct query *query = context;
	struct buf body = {0};
	if (reply->code) {
		api_answer_problem(query->exchange, why(query, reply->code), reply->text.at, STR(""));
	} else {
		put_reply(&body, query, reply);
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
	*query = (struct query){call->exchange, question->kind, question->until != ENGINE_NOW};
	question->loop = call->loop;
	question->done = done;
	question->dropped = dropped;
	question->context = query;
	engine_ask(engine, question);
}

void api_show_replicant(const struct api_agent *agent, struct proxy_exchange *exchange, struct http_loop *loop,
                        struct replica_id id)
{
	const struct proxy_call call = {.exchange = exchange, .loop = loop};
	struct engine_question question = {.kind = ENGINE_ASK_REPLICANT, .replicant = id};
	ask(agent, &call, &question);
}

/* ---- What was asked ------------------------------------------------------------------------------------------------ */

__attribute__((format(printf, 2, 3))) static bool refuse(const struct proxy_call *call, const char *format, ...)
{
	struct buf detail = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&detail, format, arguments);
	va_end(arguments);
	api_answer_problem(call->exchange, &bad_request, buf_c(&detail), STR(""));
	buf_free(&detail);
	return false;
}

/* A number of the query, from 1 on; false, and the call is answered. */
static bool read_count(const struct proxy_call *call, struct arena *arena, const char *name, uint64_t most,
                       uint64_t *value)
{
	struct str text = api_query(arena, call->target, name);
	if (text.length == 0)
		return true;
	if (api_number(text, most, value) && *value > 0)
		return true;
	return refuse(call, "`%s` is " TEXT_NAME_FMT "; a number from 1 to %llu would be right", name, TEXT_NAME(text),
	              (unsigned long long)most);
}

struct words {
	const char *(*name)(int word);
	int count;
};

static const char *copy_word(int word)
{
	return engine_copy_name((enum engine_copy)word);
}

static const char *state_word(int word)
{
	return replica_member_state_name((enum replica_member_state)word);
}

static bool read_state(const struct proxy_call *call, struct arena *arena, const struct words *words, int *state)
{
	struct str text = api_query(arena, call->target, "state");
	struct buf accepted = {0};
	*state = -1;
	if (text.length == 0)
		return true;
	for (int i = 0; i < words->count; i++) {
		if (str_equal(text, str_of(words->name(i))))
			*state = i;
		buf_printf(&accepted, "%s`%s`", i > 0 ? ", " : "", words->name(i));
	}
	if (*state < 0)
		refuse(call, "`state` is " TEXT_NAME_FMT "; it is one of %s", TEXT_NAME(text), buf_c(&accepted));
	buf_free(&accepted);
	return *state >= 0;
}

static bool read_replicant_id(const struct proxy_call *call, struct str text, struct replica_id *id)
{
	if (replica_id_parse(text, id))
		return true;
	return refuse(call, TEXT_NAME_FMT " is no meta-id; they look like 01890a5d-ac96-774b-bcce-b302099a8057",
	              TEXT_NAME(text));
}

static bool read_operation_id(const struct proxy_call *call, struct str text, struct replica_op_id *id)
{
	if (replica_op_id_parse(text, id))
		return true;
	return refuse(
		call,
		TEXT_NAME_FMT
		" is no id of an operation; `Cheops-Operation` in the answer to a write has it, as META-ID.SITE.NUMBER",
		TEXT_NAME(text));
}

void api_get_replicants(const struct api_agent *agent, const struct proxy_call *call)
{
	static const struct words words = {copy_word, ENGINE_COPIES};
	struct engine_question question = {.kind = ENGINE_ASK_REPLICANTS};
	struct replica_id after;
	uint64_t most = LIST_DEFAULT;
	struct arena arena;
	arena_init(&arena, 0);
	struct str text = api_query(&arena, call->target, "after");
	if (read_count(call, &arena, "limit", LIMIT_API_LIST, &most) && read_state(call, &arena, &words, &question.state) &&
	    (text.length == 0 || read_replicant_id(call, text, &after))) {
		question.after_replicant = text.length > 0 ? &after : NULL;
		question.most = (uint32_t)most;
		question.service = api_query(&arena, call->target, "service");
		question.type = api_query(&arena, call->target, "type");
		question.site = api_query(&arena, call->target, "site");
		ask(agent, call, &question);
	}
	arena_free(&arena);
}

void api_get_replicant(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_question question = {.kind = ENGINE_ASK_REPLICANT};
	if (read_replicant_id(call, api_segment(call->target, API_ID_SEGMENT), &question.replicant))
		ask(agent, call, &question);
}

void api_get_operations(const struct api_agent *agent, const struct proxy_call *call)
{
	static const struct words words = {state_word, REPLICA_MEMBER_STATES};
	struct engine_question question = {.kind = ENGINE_ASK_OPERATIONS};
	struct replica_op_id after;
	uint64_t most = LIST_DEFAULT;
	struct arena arena;
	arena_init(&arena, 0);
	struct str text = api_query(&arena, call->target, "after"), of = api_query(&arena, call->target, "replicant");
	question.of_replicant = of.length > 0;
	if (read_count(call, &arena, "limit", LIMIT_API_LIST, &most) && read_state(call, &arena, &words, &question.state) &&
	    (text.length == 0 || read_operation_id(call, text, &after)) &&
	    (of.length == 0 || read_replicant_id(call, of, &question.replicant))) {
		question.after_operation = text.length > 0 ? &after : NULL;
		question.most = (uint32_t)most;
		question.site = api_query(&arena, call->target, "site");
		ask(agent, call, &question);
	}
	arena_free(&arena);
}

void api_get_operation(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine_question question = {.kind = ENGINE_ASK_OPERATION};
	uint64_t timeout_s = WAIT_DEFAULT_S;
	struct arena arena;
	arena_init(&arena, 0);
	struct str wait = api_query(&arena, call->target, "wait");
	if (read_operation_id(call, api_segment(call->target, API_ID_SEGMENT), &question.operation) &&
	    read_count(call, &arena, "timeout", WAIT_MOST_S, &timeout_s)) {
		if (str_equal(wait, STR("all"))) {
			question.until = ENGINE_ALL;
		} else if (str_equal(wait, STR("majority"))) {
			question.until = ENGINE_MAJORITY;
		} else if (wait.length > 0) {
			question.until = ENGINE_SITE;
			question.site = wait;
		}
		question.timeout_ms = timeout_s * 1000;
		ask(agent, call, &question);
	}
	arena_free(&arena);
}

/* ---- A person's word ----------------------------------------------------------------------------------------------- */

static void judge(const struct api_agent *agent, const struct proxy_call *call, enum replica_verdict verdict)
{
	struct engine_question question = {.kind = ENGINE_ASK_JUDGE, .verdict = verdict};
	/* Credentials that come with a retry take the place of those that were refused. */
	if (verdict == REPLICA_RETRY)
		question.fields = call->fields;
	if (read_operation_id(call, api_segment(call->target, API_ID_SEGMENT), &question.operation))
		ask(agent, call, &question);
}

void api_post_retry(const struct api_agent *agent, const struct proxy_call *call)
{
	judge(agent, call, REPLICA_RETRY);
}

void api_post_happened(const struct api_agent *agent, const struct proxy_call *call)
{
	judge(agent, call, REPLICA_HAPPENED);
}

void api_post_dismiss(const struct api_agent *agent, const struct proxy_call *call)
{
	judge(agent, call, REPLICA_DISMISS);
}

/* ---- Members ------------------------------------------------------------------------------------------------------- */

enum { SITE_SEGMENT = 5 }; /* /cheops/v1/replicants/{id}/members/{site} */

/* `true` or nothing; false, and the call is answered. */
static bool read_wish(const struct proxy_call *call, struct arena *arena, const char *name, bool *value)
{
	struct str text = api_query(arena, call->target, name);
	*value = str_equal(text, STR("true"));
	if (*value || text.length == 0 || str_equal(text, STR("false")))
		return true;
	return refuse(call, "`%s` is " TEXT_NAME_FMT "; `true` or `false` would be right", name, TEXT_NAME(text));
}

static void change_members(const struct api_agent *agent, const struct proxy_call *call, enum engine_question_kind kind)
{
	struct arena arena;
	struct str id = api_segment(call->target, API_ID_SEGMENT), site = api_segment(call->target, SITE_SEGMENT);
	struct engine_question question = {.kind = kind, .state = -1};
	arena_init(&arena, 0);
	if (!replica_id_parse(id, &question.replicant))
		refuse(call, TEXT_NAME_FMT " is no id of a replicated resource; `cheops get` shows them", TEXT_NAME(id));
	else if (!percent_decode(&arena, site, &question.site))
		refuse(call, TEXT_NAME_FMT " is no name of a site: what follows a `%%` is no two hexadecimal digits",
		       TEXT_NAME(site));
	else if (kind == ENGINE_ASK_EXTEND
	             ? read_wish(call, &arena, "hold", &question.hold)
	             : read_wish(call, &arena, "keep", &question.keep) && read_wish(call, &arena, "force", &question.force))
		ask(agent, call, &question);
	arena_free(&arena);
}

void api_put_member(const struct api_agent *agent, const struct proxy_call *call)
{
	change_members(agent, call, ENGINE_ASK_EXTEND);
}

void api_delete_member(const struct api_agent *agent, const struct proxy_call *call)
{
	change_members(agent, call, ENGINE_ASK_DROP);
}
