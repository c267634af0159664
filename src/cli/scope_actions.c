/* What cheops scope does with a text. Results are made in whole, then printed. */
#include "cli/cmd_scope.h"

#include <unistd.h>

/* ---- Shared ----------------------------------------------------------------------------------------------------- */

int scope_refused(const struct scope_call *call, const struct scope_diag *diag)
{
	struct buf out = {0};
	if (call->json) {
		buf_put(&out, STR("{\"error\":"));
		scope_diag_json(&out, diag);
		buf_put(&out, STR("}\n"));
		cli_print(buf_str(&out));
	} else {
		buf_put(&out, STR("cheops: "));
		scope_diag_render(&out, call->text, diag, cli_colour_on(call->colour, STDERR_FILENO));
		cli_print_error(buf_str(&out));
	}
	buf_free(&out);
	return CLI_REFUSED;
}

/* Prints a result and lets go of it. */
static int finish(struct buf *out)
{
	int status = cli_print(buf_str(out));
	buf_free(out);
	return status;
}

/* Reads the text, and checks that it has a meaning. */
static int parse_and_check(struct scope_call *call, struct scope **scope)
{
	struct scope_diag diag;
	if (scope_parse(&call->arena, call->text, scope, &diag) != 0 || scope_check(&call->arena, *scope, &diag) != 0)
		return scope_refused(call, &diag);
	return CLI_FINE;
}

/* The canonical text, as a JSON string. */
static void put_scope_json(struct buf *out, const struct scope *scope, struct str service)
{
	struct buf canonical = {0};
	scope_print(&canonical, scope, service);
	buf_put_json(out, buf_str(&canonical));
	buf_free(&canonical);
}

/* Warnings from several places, each of them once. */
struct warnings {
	struct str *list;
	uint32_t count;
};

static void warn(struct scope_call *call, struct warnings *warnings, struct str warning)
{
	for (uint32_t i = 0; i < warnings->count; i++) {
		if (str_equal(warnings->list[i], warning))
			return;
	}
	struct str *list = arena_array(&call->arena, struct str, warnings->count + 1);
	for (uint32_t i = 0; i < warnings->count; i++)
		list[i] = warnings->list[i];
	list[warnings->count++] = warning;
	warnings->list = list;
}

static void put_warnings(const struct scope_call *call, struct buf *out, const struct warnings *warnings)
{
	bool colour = cli_colour_on(call->colour, STDOUT_FILENO);
	for (uint32_t i = 0; i < warnings->count; i++)
		buf_printf(out, "%swarning:%s %.*s\n", colour ? "\033[33m" : "", colour ? "\033[0m" : "",
		           STR_FMT(warnings->list[i]));
}

static void put_warnings_json(struct buf *out, const struct warnings *warnings)
{
	buf_put(out, STR(",\"warnings\":["));
	for (uint32_t i = 0; i < warnings->count; i++) {
		buf_put(out, i == 0 ? STR("") : STR(","));
		buf_put_json(out, warnings->list[i]);
	}
	buf_put(out, STR("]"));
}

/* ---- fmt -------------------------------------------------------------------------------------------------------- */

int scope_fmt(struct scope_call *call)
{
	struct scope *scope;
	struct scope_diag diag;
	if (scope_parse(&call->arena, call->text, &scope, &diag) != 0)
		return scope_refused(call, &diag);
	struct buf out = {0};
	if (call->json) {
		buf_put(&out, STR("{\"scope\":"));
		put_scope_json(&out, scope, call->service);
		buf_put_char(&out, '}');
	} else {
		scope_print(&out, scope, call->service);
	}
	buf_put_char(&out, '\n');
	return finish(&out);
}

/* ---- tokens ----------------------------------------------------------------------------------------------------- */

static void put_token_json(struct buf *out, const struct scope_token *token)
{
	buf_put(out, STR("{\"kind\":"));
	buf_put_json(out, str_of(scope_token_name(token->kind)));
	buf_put(out, STR(",\"text\":"));
	buf_put_json(out, token->text);
	buf_printf(out, ",\"offset\":%u,\"length\":%u}", token->offset, token->length);
}

static void put_token(struct buf *out, const struct scope_token *token)
{
	buf_printf(out, "%4u %4u  %-6s  ", token->offset, token->length, scope_token_name(token->kind));
	if (token->kind == SCOPE_TOKEN_STRING)
		buf_put_json(out, token->text);
	else
		buf_put(out, token->text);
	buf_put_char(out, '\n');
}

int scope_tokens_list(struct scope_call *call)
{
	struct scope_token *tokens;
	uint32_t count;
	struct scope_diag diag;
	if (scope_tokens(&call->arena, call->text, &tokens, &count, &diag) != 0)
		return scope_refused(call, &diag);
	struct buf out = {0};
	if (call->json)
		buf_put(&out, STR("{\"tokens\":["));
	for (uint32_t i = 0; i < count; i++) {
		if (call->json && i > 0)
			buf_put_char(&out, ',');
		if (call->json)
			put_token_json(&out, &tokens[i]);
		else
			put_token(&out, &tokens[i]);
	}
	if (call->json)
		buf_put(&out, STR("]}\n"));
	return finish(&out);
}

/* ---- Plans ------------------------------------------------------------------------------------------------------ */

/* The service of an entry; of the one that names none, what --service says, or "". */
static struct str service_of(const struct scope_call *call, const struct scope *scope, uint32_t entry)
{
	struct str service = scope_entry_service(scope, entry);
	return service.length > 0 ? service : call->service;
}

static int make_plan(struct scope_call *call, const struct scope *scope, const struct scope_world *world,
                     struct str service, const struct scope_plan **plan)
{
	/* The request is sent to the service that --service names; other services are called on its behalf. */
	bool inner = service.length > 0 && !str_equal(service, call->service);
	struct scope_request request = {.service = service, .at = world->at, .inner = inner};
	struct scope_diag diag;
	if (scope_evaluate(&call->arena, scope, &request, &world->view, plan, &diag) != 0)
		return scope_refused(call, &diag);
	return CLI_FINE;
}

static void warn_of_plan(struct scope_call *call, struct warnings *warnings, const struct scope_plan *plan)
{
	for (uint32_t i = 0; i < plan->warnings_count; i++)
		warn(call, warnings, plan->warnings[i]);
}

/* ---- check ------------------------------------------------------------------------------------------------------ */

/* Makes the plan of each entry, to see whether there is one. */
static int check_plans(struct scope_call *call, const struct scope *scope, struct warnings *warnings)
{
	struct scope_world world;
	int status = scope_world_make(call, scope, &world);
	for (uint32_t i = 0; status == CLI_FINE && i < scope_entries_count(scope); i++) {
		const struct scope_plan *plan;
		status = make_plan(call, scope, &world, service_of(call, scope, i), &plan);
		if (status == CLI_FINE)
			warn_of_plan(call, warnings, plan);
	}
	return status;
}

int scope_check_text(struct scope_call *call)
{
	struct scope *scope;
	struct warnings warnings = {0};
	int status = parse_and_check(call, &scope);
	if (status != CLI_FINE)
		return status;
	for (uint32_t i = 0; i < scope_warnings_count(scope); i++)
		warn(call, &warnings, scope_warning(scope, i));
	if (call->table != NULL)
		status = check_plans(call, scope, &warnings);
	struct str doubt = STR("");
	if (status == CLI_FINE && call->app != NULL)
		status = scope_check_request(call, scope, &doubt);
	if (status != CLI_FINE)
		return status;
	if (doubt.length > 0)
		warn(call, &warnings, doubt);
	struct buf out = {0};
	if (call->json) {
		buf_put(&out, STR("{\"ok\":true,\"scope\":"));
		put_scope_json(&out, scope, STR(""));
		put_warnings_json(&out, &warnings);
		buf_put(&out, STR("}\n"));
	} else {
		buf_put(&out, STR("ok\n"));
		put_warnings(call, &out, &warnings);
	}
	return finish(&out);
}

/* ---- explain ---------------------------------------------------------------------------------------------------- */

/* In ms, without zeros at the end. */
static void put_latency_json(struct buf *out, int64_t latency_us)
{
	if (latency_us == SCOPE_RTT_UNKNOWN) {
		buf_put(out, STR("null"));
		return;
	}
	int digits = 3;
	int64_t fraction = latency_us % 1000;
	for (; digits > 0 && fraction % 10 == 0; digits--)
		fraction /= 10;
	buf_printf(out, "%lld", (long long)(latency_us / 1000));
	if (digits > 0)
		buf_printf(out, ".%0*lld", digits, (long long)fraction);
}

static void put_plan_json(struct buf *out, const struct scope *scope, const struct scope_plan *plan)
{
	buf_put(out, STR("{\"service\":"));
	if (plan->service.length > 0)
		buf_put_json(out, plan->service);
	else
		buf_put(out, STR("null"));
	buf_put(out, STR(",\"at\":"));
	buf_put_json(out, plan->at);
	buf_put(out, STR(",\"scope\":"));
	put_scope_json(out, scope, STR(""));
	buf_put(out, STR(",\"plan\":"));
	scope_plan_json(out, plan);
	buf_put(out, STR(",\"latency_ms\":"));
	put_latency_json(out, plan->root->latency_us);
}

/* Draws a plan without its warnings: those of all plans come at the end, once each. */
static void put_plan(const struct scope_call *call, struct buf *out, const struct scope_plan *plan)
{
	struct scope_plan bare = *plan;
	bare.warnings_count = 0;
	if (out->length > 0)
		buf_put_char(out, '\n');
	scope_plan_draw(out, &bare, cli_colour_on(call->colour, STDOUT_FILENO));
}

/* The plans that were asked for: one where a service was named or a program reads, else one per entry. */
static int put_plans(struct scope_call *call, const struct scope *scope, const struct scope_world *world,
                     struct buf *out, struct warnings *warnings)
{
	uint32_t count = call->json || call->service.length > 0 ? 1 : scope_entries_count(scope);
	for (uint32_t i = 0; i < count; i++) {
		const struct scope_plan *plan;
		struct str service = call->service.length > 0 ? call->service : service_of(call, scope, i);
		int status = make_plan(call, scope, world, service, &plan);
		if (status != CLI_FINE)
			return status;
		warn_of_plan(call, warnings, plan);
		if (call->json)
			put_plan_json(out, scope, plan);
		else
			put_plan(call, out, plan);
	}
	return CLI_FINE;
}

int scope_explain(struct scope_call *call)
{
	struct scope *scope;
	struct scope_world world;
	struct warnings warnings = {0};
	struct buf out = {0};
	int status = parse_and_check(call, &scope);
	if (status == CLI_FINE)
		status = scope_world_make(call, scope, &world);
	if (status == CLI_FINE)
		status = put_plans(call, scope, &world, &out, &warnings);
	if (status != CLI_FINE) {
		buf_free(&out);
		return status;
	}
	if (world.warning.length > 0)
		warn(call, &warnings, world.warning);
	if (call->json) {
		put_warnings_json(&out, &warnings);
		buf_put(&out, STR("}\n"));
	} else {
		put_warnings(call, &out, &warnings);
	}
	return finish(&out);
}
