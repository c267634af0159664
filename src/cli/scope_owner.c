/* cheops scope check --app: the check of ownership that agents make of each request (docs/ownership.md), without an agent. */
#include "cli/cmd_app.h"
#include "cli/cmd_scope.h"

#include "relation/relation.h"

/* On standard error, or as JSON on standard output. */
static int refused(const struct scope_call *call, const struct relation_refusal *refusal)
{
	struct buf out = {0};
	if (!call->json) {
		buf_printf(&out, "cheops: %s\n  hint: %s\n", refusal->message, refusal->hint);
		cli_print_error(buf_str(&out));
		buf_free(&out);
		return CLI_REFUSED;
	}
	buf_put(&out, STR("{\"error\":{\"type\":\"not-owned-here\",\"message\":"));
	buf_put_json(&out, str_of(refusal->message));
	buf_put(&out, STR(",\"hint\":"));
	buf_put_json(&out, str_of(refusal->hint));
	buf_put(&out, STR(",\"site\":"));
	buf_put_json(&out, refusal->site);
	buf_put(&out, STR(",\"service\":"));
	buf_put_json(&out, refusal->service);
	buf_put(&out, STR(",\"resource\":"));
	buf_put_json(&out, refusal->type);
	buf_put(&out, STR("}}\n"));
	cli_print(buf_str(&out));
	buf_free(&out);
	return CLI_REFUSED;
}

/* The question needs a plan; without a body it is asked as if there were one, to know whether it could matter. */
static int ask(struct scope_call *call, struct relation_question *question, struct str *warning)
{
	struct scope_world world;
	struct scope_diag diag;
	struct relation_refusal refusal;
	int status = scope_world_make(call, question->scope, &world);
	if (status != CLI_FINE)
		return status;
	struct scope_request request = {.service = question->request->service, .at = world.at};
	if (scope_evaluate(&call->arena, question->scope, &request, &world.view, &question->plan, &diag) != 0)
		return scope_refused(call, &diag);
	question->view = &world.view;
	question->at = world.at;
	question->has_body = true;
	switch (relation_check_owner(&call->arena, question, &refusal)) {
	case RELATION_FINE: break;
	case RELATION_REFUSED: return refused(call, &refusal);
	case RELATION_ASK_BODY:
		*warning = STR("no BODY was given; with a reference in it to what belongs to another site it would be refused");
		break;
	}
	return CLI_FINE;
}

int scope_check_request(struct scope_call *call, const struct scope *scope, struct str *warning)
{
	struct app_call *app = arena_new(&call->arena, struct app_call);
	struct glue *glue = NULL;
	struct glue_match match;
	struct glue_request request = {.content_type = STR("application/json")};
	struct buf kept = {0};
	struct str body = STR("");
	bool known = false;
	app->command = call->command;
	app->service = call->service;
	arena_init(&app->arena, 0);
	int status = app_request_take(app, call->method, call->path, &request);
	if (status == CLI_FINE)
		status = app_open(app, call->app, &glue);
	if (status == CLI_FINE && call->body != NULL)
		status = app_body_read(call->body, &kept, &body);
	if (status == CLI_FINE)
		status = app_service_choose(app, glue, &request, &match, &known);
	struct relation_question question = {
		.glue = glue, .match = &match, .request = &request, .scope = scope, .body = call->body != NULL ? &body : NULL};
	if (status == CLI_FINE && known)
		status = ask(call, &question, warning);
	else if (status == CLI_FINE)
		*warning = STR("the description does not know this request: it is passed on, and nothing is checked");
	glue_free(glue);
	buf_free(&kept);
	arena_free(&app->arena);
	return status;
}
