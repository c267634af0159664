/* POST /cheops/v1/replicants {"service": "image", "path": "/images/42"}: an item of this site becomes a replicated resource, with this site as
 * its only member. The engine does it (engine/bring.h); then it is shown as GET would show it. */
#include "api/api_int.h"

#include "base/check.h"
#include "base/text.h"
#include "engine/bring.h"

#include <jansson.h>
#include <stdlib.h>

static const struct api_refusal bad_request = {422, "bad-request", "The request cannot be followed"};
static const struct api_refusal no_item = {404, "no-such-item", "This site has no such item"};
static const struct api_refusal not_adopted = {409, "not-adopted", "The item cannot become a replicated resource"};
static const struct api_refusal not_now = {503, "not-adopted-now", "The item cannot be looked at at present"};

struct adopting {
	const struct api_agent *agent;
	struct proxy_exchange *exchange;
	struct http_loop *loop;
};

static const struct api_refusal *why(int code)
{
	switch (code) {
	case ERR_NOT_FOUND: return &no_item;
	case ERR_INVALID: return &bad_request;
	case ERR_UNAVAILABLE:
	case ERR_TIMEOUT: return &not_now;
	default: return &not_adopted;
	}
}

static void done(void *context, const struct engine_brought *brought)
{
	struct adopting *adopting = context;
	if (brought->code)
		api_answer_problem(adopting->exchange, why(brought->code), brought->text.at, STR(""));
	else
		api_show_replicant(adopting->agent, adopting->exchange, adopting->loop, brought->ones[0].id);
	free(adopting);
}

static void dropped(void *context)
{
	struct adopting *adopting = context;
	api_answer_problem(adopting->exchange, &api_no_engine, "the agent stops", STR(""));
	free(adopting);
}

static void adopt(const struct api_agent *agent, const struct proxy_call *call, const char *service, const char *path)
{
	struct engine *engine = api_engine(agent, call->exchange);
	if (!engine)
		return;
	struct adopting *adopting = calloc(1, sizeof(*adopting));
	CHECK(adopting);
	*adopting = (struct adopting){agent, call->exchange, call->loop};
	engine_bring(engine, &(struct engine_bring){
							 .wanted = &(struct engine_wanted){.service = str_of(service), .path = str_of(path)},
							 .wanted_count = 1,
							 .loop = call->loop,
							 .done = done,
							 .dropped = dropped,
							 .context = adopting});
}

void api_post_replicant(const struct api_agent *agent, const struct proxy_call *call)
{
	json_t *json = json_loadb(call->body.at, call->body.length, JSON_REJECT_DUPLICATES, NULL);
	const char *service = json_string_value(json_object_get(json, "service"));
	const char *path = json_string_value(json_object_get(json, "path"));
	if (!service || !path || json_object_size(json) != 2)
		api_answer_problem(
			call->exchange, &bad_request,
			"the body is an object with `service` and `path`, both texts, as in {\"service\": \"image\", "
			"\"path\": \"/images/42\"}",
			STR(""));
	else if (path[0] != '/')
		api_answer_problem(call->exchange, &bad_request,
		                   "`path` is the path of the item at its service; it begins with a `/`, as in /images/42",
		                   STR(""));
	else
		adopt(agent, call, service, path);
	json_decref(json);
}
