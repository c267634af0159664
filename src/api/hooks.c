/* How the webhooks of this agent stand (engine/hooks.h). */
#include "api/api_int.h"

static void put_hook(struct buf *out, const struct engine_hook_view *hook)
{
	buf_put(out, STR("{\"name\":"));
	buf_put_json(out, hook->name);
	buf_put(out, STR(",\"url\":"));
	buf_put_json(out, hook->url);
	buf_printf(out, ",\"state\":\"%s\",\"behind\":%llu,\"told\":%llu,\"failed\":%llu,\"missed\":%llu,\"last_told\":",
	           engine_hook_state_name(hook->state), (unsigned long long)hook->behind, (unsigned long long)hook->told,
	           (unsigned long long)hook->failed, (unsigned long long)hook->missed);
	api_put_time(out, (int64_t)hook->last_told_ms);
	buf_put(out, STR(",\"last_failed\":"));
	api_put_time(out, (int64_t)hook->last_failed_ms);
	buf_put(out, STR(",\"last_error\":"));
	if (hook->last_error.length > 0)
		buf_put_json(out, hook->last_error);
	else
		buf_put(out, STR("null"));
	buf_put_char(out, '}');
}

static void done(void *context, const struct engine_reply *reply)
{
	struct buf body = {0};
	if (reply->code) {
		api_answer_problem(context, &api_no_engine, reply->text.at, STR(""));
		return;
	}
	buf_put(&body, STR("{\"site\":"));
	api_put_site_name(&body, reply, reply->self);
	buf_put(&body, STR(",\"webhooks\":["));
	for (uint32_t i = 0; i < reply->hooks_count; i++) {
		buf_put(&body, i > 0 ? STR(",") : STR(""));
		put_hook(&body, &reply->hooks[i]);
	}
	buf_put(&body, STR("]}\n"));
	proxy_answer(context, 200, api_json, STR(""), buf_str(&body));
	buf_free(&body);
}

static void dropped(void *context)
{
	api_answer_problem(context, &api_no_engine, "the agent stops", STR(""));
}

void api_get_webhooks(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine *engine = api_engine(agent, call->exchange);
	if (!engine)
		return;
	engine_ask(
		engine,
		&(struct engine_question){
			.kind = ENGINE_ASK_HOOKS, .loop = call->loop, .done = done, .dropped = dropped, .context = call->exchange});
}
