#include "api/api_int.h"

#include "base/check.h"

#include <stdlib.h>
#include <unistd.h>

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

const char api_json[] = "application/json";
const char api_problem_json[] = "application/problem+json";

static void answer(const struct proxy_call *call, unsigned status, const char *type, struct buf *body)
{
	proxy_answer(call->exchange, status, type, STR(""), buf_str(body));
	buf_free(body);
}

void api_put_problem(struct buf *body, unsigned status, const char *type, const char *title, const char *detail)
{
	buf_printf(body, "{\"type\":\"urn:cheops:problem:%s\",\"title\":\"%s\",\"status\":%u,\"detail\":", type, title,
	           status);
	buf_put_json(body, str_of(detail));
	buf_put(body, STR("}\n"));
}

void api_answer_problem(struct proxy_exchange *exchange, const struct api_refusal *refusal, const char *detail,
                        struct str fields)
{
	struct buf body = {0};
	api_put_problem(&body, refusal->status, refusal->type, refusal->title, detail);
	proxy_answer(exchange, refusal->status, api_problem_json, fields, buf_str(&body));
	buf_free(&body);
}

const struct api_refusal api_no_engine = {503, "store-failed", "Replicated resources are not available"};

struct engine *api_engine(const struct api_agent *agent, struct proxy_exchange *exchange)
{
	struct engine *engine = agent->engine(agent->context);
	if (!engine)
		api_answer_problem(
			exchange, &api_no_engine,
			"this agent has no store for replicated resources: its site is not part of a mesh, or the log says why",
			STR(""));
	return engine;
}

void api_refuse(struct api_job *job, const struct api_refusal *refusal, const char *detail)
{
	buf_clear(&job->answer.body);
	job->answer.status = refusal->status;
	job->answer.type = api_problem_json;
	api_put_problem(&job->answer.body, refusal->status, refusal->type, refusal->title, detail);
}

/* ---- What the loops know ---------------------------------------------------------------------------------------- */

static void get_health(const struct api_agent *agent, const struct proxy_call *call)
{
	struct proxy_config *config = agent->config(agent->context);
	struct buf body = {0};
	buf_put(&body, STR("{\"status\":\"ok\",\"site\":"));
	buf_put_json(&body, config->site);
	buf_put(&body, STR("}\n"));
	proxy_config_drop(config);
	answer(call, 200, api_json, &body);
}

static void get_version(const struct api_agent *agent, const struct proxy_call *call)
{
	(void)agent;
	struct buf body = {0};
	buf_printf(&body, "{\"version\":\"%s\"}\n", CHEOPS_VERSION);
	answer(call, 200, api_json, &body);
}

static void get_services(const struct api_agent *agent, const struct proxy_call *call)
{
	struct proxy_config *config = agent->config(agent->context);
	struct buf body = {0};
	buf_put(&body, STR("{\"services\":["));
	for (uint32_t i = 0; i < config->services_count; i++) {
		const struct proxy_service *service = &config->services[i];
		buf_put(&body, i ? STR(",{\"name\":") : STR("{\"name\":"));
		buf_put_json(&body, service->name);
		buf_put(&body, STR(",\"front\":"));
		buf_put_json(&body, str_of(service->front.text));
		buf_put(&body, STR(",\"instances\":["));
		for (uint32_t n = 0; n < service->instances_count; n++) {
			if (n > 0)
				buf_put_char(&body, ',');
			buf_put_json(&body, str_of(service->instances[n].text));
		}
		buf_put(&body, STR("]}"));
	}
	buf_put(&body, STR("]}\n"));
	proxy_config_drop(config);
	answer(call, 200, api_json, &body);
}

/* ---- Jobs ------------------------------------------------------------------------------------------------------- */

/* A reload is for the agent itself to do; the route stands for it. */
static void post_reload(struct api_job *job, const struct api_mesh *mesh)
{
	(void)job;
	(void)mesh;
	UNREACHABLE();
}

/* What another member says of replicated resources. */
static void post_replica(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine *engine = agent->engine(agent->context);
	if (!call->peer || !engine) {
		api_answer_problem(call->exchange,
		                   &(struct api_refusal){503, "store-failed", "Replicated resources are not available"},
		                   "this agent has no store for replicated resources", STR(""));
		return;
	}
	engine_receive(engine, call->from, call->body);
	proxy_answer(call->exchange, 202, api_json, STR(""), STR("{}\n"));
}

/* And of the names of what is in containers. */
static void post_names(const struct api_agent *agent, const struct proxy_call *call)
{
	struct engine *engine = agent->engine(agent->context);
	if (!call->peer || !engine) {
		api_answer_problem(call->exchange,
		                   &(struct api_refusal){503, "store-failed", "Replicated resources are not available"},
		                   "this agent has no store for replicated resources", STR(""));
		return;
	}
	engine_receive_names(engine, call->from, call->body);
	proxy_answer(call->exchange, 202, api_json, STR(""), STR("{}\n"));
}

/* "bytes=100-", which is all that members ask; anything else is as if there were none (RFC 9110, 14.2). */
static uint64_t range_start(struct str range)
{
	static const struct str unit = STR_INIT("bytes=");
	uint64_t start = 0;
	if (range.length < unit.length + 2 || range.length > 24 || memcmp(range.at, unit.at, unit.length) != 0 ||
	    range.at[range.length - 1] != '-')
		return 0;
	for (size_t i = unit.length; i + 1 < range.length; i++) {
		if (range.at[i] < '0' || range.at[i] > '9')
			return 0;
		start = start * 10 + (uint64_t)(range.at[i] - '0');
	}
	return start;
}

/* The body of an operation, for a member of its replicant. */
static void get_blob(const struct api_agent *agent, const struct proxy_call *call)
{
	static const struct api_refusal none = {404, "no-such-blob", "There is no such body here"};
	static const struct api_refusal beyond = {416, "no-such-range", "The body ends before that"};
	struct engine *engine = agent->engine(agent->context);
	struct str range = engine_field(call->fields, STR("range"));
	uint64_t bytes = 0, start = range_start(range);
	struct str name = api_segment(call->target, API_ID_SEGMENT);
	int fd = call->peer && engine ? engine_blob_serve(engine, name, call->from, &bytes) : -1;
	if (fd < 0) {
		api_answer_problem(call->exchange, &none, "no operation of a replicant that you are a member of needs it",
		                   STR(""));
		return;
	}
	if (start > 0 && start >= bytes) {
		close(fd);
		api_answer_problem(call->exchange, &beyond, "the range begins behind the end", STR(""));
		return;
	}
	struct buf fields = {0};
	if (range.length > 0)
		buf_printf(&fields, "Content-Range: bytes %llu-%llu/%llu\r\n", (unsigned long long)start,
		           (unsigned long long)bytes - 1, (unsigned long long)bytes);
	proxy_answer_file(call->exchange, range.length > 0 ? 206 : 200, buf_str(&fields), fd, start, bytes - start);
	buf_free(&fields);
}

static const struct api_route routes[] = {
	{STR_INIT("/cheops/v1/health"), STR_INIT("GET"), get_health, NULL, true},
	{STR_INIT("/cheops/v1/version"), STR_INIT("GET"), get_version, NULL, true},
	{STR_INIT("/cheops/v1/metrics"), STR_INIT("GET"), NULL, api_get_metrics, false},
	{STR_INIT("/cheops/v1/services"), STR_INIT("GET"), get_services, NULL, false},
	{STR_INIT("/cheops/v1/sites"), STR_INIT("GET"), NULL, api_get_sites, false},
	{STR_INIT("/cheops/v1/sites/tokens"), STR_INIT("POST"), NULL, api_post_token, false},
	{STR_INIT("/cheops/v1/sites/remove"), STR_INIT("POST"), NULL, api_post_remove, false},
	{STR_INIT("/cheops/v1/sites/revoke"), STR_INIT("POST"), NULL, api_post_revoke, false},
	{STR_INIT("/cheops/v1/authority"), STR_INIT("GET"), NULL, api_get_authority, false},
	{STR_INIT("/cheops/v1/authority/rotate"), STR_INIT("POST"), NULL, api_post_rotate, false},
	{STR_INIT("/cheops/v1/authority/retire"), STR_INIT("POST"), NULL, api_post_retire, false},
	{STR_INIT("/cheops/v1/reload"), STR_INIT("POST"), NULL, post_reload, false},
	{STR_INIT("/cheops/v1/join"), STR_INIT("POST"), NULL, api_post_join, true},
	{STR_INIT("/cheops/v1/renew"), STR_INIT("POST"), NULL, api_post_renew, true},
	{STR_INIT("/cheops/v1/replicants"), STR_INIT("GET"), api_get_replicants, NULL, false},
	{STR_INIT("/cheops/v1/replicants"), STR_INIT("POST"), api_post_replicant, NULL, false},
	{STR_INIT("/cheops/v1/replicants/{id}"), STR_INIT("GET"), api_get_replicant, NULL, false},
	{STR_INIT("/cheops/v1/replicants/{id}/parts"), STR_INIT("GET"), api_get_parts, NULL, false},
	{STR_INIT("/cheops/v1/replicants/{id}/verify"), STR_INIT("GET"), api_get_verify, NULL, false},
	{STR_INIT("/cheops/v1/replicants/{id}/repair"), STR_INIT("POST"), api_post_repair, NULL, false},
	{STR_INIT("/cheops/v1/replicants/{id}/members/{site}"), STR_INIT("PUT"), api_put_member, NULL, false},
	{STR_INIT("/cheops/v1/replicants/{id}/members/{site}"), STR_INIT("DELETE"), api_delete_member, NULL, false},
	{STR_INIT("/cheops/v1/operations"), STR_INIT("GET"), api_get_operations, NULL, false},
	{STR_INIT("/cheops/v1/operations/{id}"), STR_INIT("GET"), api_get_operation, NULL, false},
	{STR_INIT("/cheops/v1/operations/{id}/retry"), STR_INIT("POST"), api_post_retry, NULL, false},
	{STR_INIT("/cheops/v1/operations/{id}/happened"), STR_INIT("POST"), api_post_happened, NULL, false},
	{STR_INIT("/cheops/v1/operations/{id}/dismiss"), STR_INIT("POST"), api_post_dismiss, NULL, false},
	{STR_INIT("/cheops/v1/deps"), STR_INIT("GET"), api_get_deps, NULL, false},
	{STR_INIT("/cheops/v1/deps/sites/{site}"), STR_INIT("GET"), api_get_suffering, NULL, false},
	{STR_INIT("/cheops/v1/webhooks"), STR_INIT("GET"), api_get_webhooks, NULL, false},
	{STR_INIT("/cheops/v1/changes"), STR_INIT("GET"), api_get_changes, NULL, false},
	{STR_INIT("/cheops/v1/copies/{id}"), STR_INIT("GET"), api_get_copy, NULL, true},
	{STR_INIT("/cheops/v1/copies/{id}/facets"), STR_INIT("GET"), api_get_copy_facets, NULL, true},
	{STR_INIT("/cheops/v1/copies/{id}/give"), STR_INIT("POST"), api_post_give, NULL, true},
	{STR_INIT("/cheops/v1/replica"), STR_INIT("POST"), post_replica, NULL, true},
	{STR_INIT("/cheops/v1/names"), STR_INIT("POST"), post_names, NULL, true},
	{STR_INIT("/cheops/v1/blobs/{id}"), STR_INIT("GET"), get_blob, NULL, true},
};

bool api_job_is_reload(const struct api_job *job)
{
	return job->route->control == post_reload;
}

void api_job_free(struct api_job *job)
{
	buf_free(&job->target);
	if (job->body.at)
		explicit_bzero(job->body.at, job->body.length); /* it may hold a token */
	buf_free(&job->body);
	buf_free(&job->answer.body);
	free(job);
}

/* Back in the loop of the request. */
static void answer_job(struct http_task *task)
{
	struct api_job *job = (struct api_job *)task;
	proxy_answer(job->exchange, job->answer.status, job->answer.type, STR(""), buf_str(&job->answer.body));
	api_job_free(job);
}

void api_job_run(struct api_job *job, const struct api_mesh *mesh)
{
	job->answer.type = api_json;
	job->route->control(job, mesh);
	job->task.run = answer_job;
	http_loop_post(job->loop, &job->task);
}

void api_job_reloaded(struct api_job *job, const char *error)
{
	static const struct api_refusal refused = {422, "bad-configuration",
	                                           "The new configuration was refused; the old one stays"};
	job->answer.status = 200;
	job->answer.type = api_json;
	if (error[0])
		api_refuse(job, &refused, error);
	else
		buf_put(&job->answer.body, STR("{\"reloaded\":true}\n"));
	job->task.run = answer_job;
	http_loop_post(job->loop, &job->task);
}

static void hand_over(struct api_agent *agent, const struct api_route *route, const struct proxy_call *call)
{
	struct api_job *job = calloc(1, sizeof(*job));
	CHECK(job);
	job->exchange = call->exchange;
	job->loop = call->loop;
	job->route = route;
	job->agent = agent;
	job->peer = call->peer;
	job->from = call->from;
	buf_put(&job->target, call->target);
	buf_put(&job->body, call->body);
	agent->ask(agent->context, job);
}

/* ---- Routes ----------------------------------------------------------------------------------------------------- */

static void refuse_method(const struct proxy_call *call, struct str accepted)
{
	static const struct api_refusal refusal = {405, "wrong-method", "This cannot be done with that method"};
	bool get = str_equal(accepted, STR("GET"));
	if (str_equal(accepted, STR("PUT"))) {
		api_answer_problem(call->exchange, &refusal, "use PUT or DELETE", STR("Allow: PUT, DELETE\r\n"));
		return;
	}
	api_answer_problem(call->exchange, &refusal, get ? "use GET" : "use POST",
	                   get ? STR("Allow: GET, HEAD\r\n") : STR("Allow: POST\r\n"));
}

static void run_route(struct api_agent *agent, const struct api_route *route, const struct proxy_call *call)
{
	bool head = str_equal(call->method, STR("HEAD")) && str_equal(route->method, STR("GET"));
	if (!str_equal(route->method, call->method) && !head)
		refuse_method(call, route->method);
	else if (route->handle)
		route->handle(agent, call);
	else
		hand_over(agent, route, call);
}

void api_handle(void *context, const struct proxy_call *call)
{
	static const struct api_refusal nothing = {404, "no-such-path", "There is nothing at this path"};
	struct api_agent *agent = context;
	const struct api_route *found = NULL;
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!api_path_matches(routes[i].path, call->target) || (!routes[i].peers && call->peer))
			continue;
		if (!found || str_equal(routes[i].method, call->method))
			found = &routes[i];
	}
	if (found) {
		run_route(agent, found, call);
		return;
	}
	api_answer_problem(call->exchange, &nothing,
	                   call->peer ? "other agents may ask for health, version, join and renew below /cheops/v1"
	                              : "the API has health, version, metrics, services, sites, replicants, operations, "
	                                "deps, changes, webhooks, authority and reload below /cheops/v1",
	                   STR(""));
}
