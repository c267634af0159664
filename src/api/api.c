#include "api/api.h"

#include <stdio.h>

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

static const char json[] = "application/json";
static const char problem_json[] = "application/problem+json";

static void answer(const struct proxy_call *call, unsigned status, const char *type, struct buf *body)
{
	proxy_answer(call->exchange, status, type, STR(""), buf_str(body));
	buf_free(body);
}

static void answer_problem(struct proxy_exchange *exchange, unsigned status, const char *type, const char *title,
                           const char *detail, struct str fields)
{
	struct buf body = {0};
	buf_printf(&body, "{\"type\":\"urn:cheops:problem:%s\",\"title\":\"%s\",\"status\":%u,\"detail\":", type, title,
	           status);
	buf_put_json(&body, str_of(detail));
	buf_put(&body, STR("}\n"));
	proxy_answer(exchange, status, problem_json, fields, buf_str(&body));
	buf_free(&body);
}

/* ---- What can be asked ------------------------------------------------------------------------------------------ */

static void get_health(const struct api_agent *agent, const struct proxy_call *call)
{
	struct proxy_config *config = agent->config(agent->context);
	struct buf body = {0};
	buf_put(&body, STR("{\"status\":\"ok\",\"site\":"));
	buf_put_json(&body, config->site);
	buf_put(&body, STR("}\n"));
	proxy_config_drop(config);
	answer(call, 200, json, &body);
}

static void get_version(const struct api_agent *agent, const struct proxy_call *call)
{
	(void)agent;
	struct buf body = {0};
	buf_printf(&body, "{\"version\":\"%s\"}\n", CHEOPS_VERSION);
	answer(call, 200, json, &body);
}

static void get_metrics(const struct api_agent *agent, const struct proxy_call *call)
{
	struct buf body = {0};
	uint64_t sum;
#define X(field, name, help)                                                                                           \
	sum = 0;                                                                                                           \
	for (uint32_t i = 0; i < agent->proxies_count; i++)                                                                \
		sum += atomic_load_explicit(&proxy_counters(agent->proxies[i])->field, memory_order_relaxed);                  \
	buf_printf(&body, "# HELP %s %s\n# TYPE %s counter\n%s %llu\n", name, help, name, name, (unsigned long long)sum);
	PROXY_COUNTERS(X)
#undef X
	sum = 0;
	for (uint32_t i = 0; i < agent->proxies_count; i++)
		sum += atomic_load_explicit(&proxy_counters(agent->proxies[i])->clients, memory_order_relaxed);
	buf_printf(&body,
	           "# HELP cheops_client_connections Connections of clients now\n"
	           "# TYPE cheops_client_connections gauge\ncheops_client_connections %llu\n",
	           (unsigned long long)sum);
	buf_printf(&body,
	           "# HELP cheops_build_info The version that runs\n# TYPE cheops_build_info gauge\n"
	           "cheops_build_info{version=\"%s\"} 1\n",
	           CHEOPS_VERSION);
	answer(call, 200, "text/plain; version=0.0.4", &body);
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
	answer(call, 200, json, &body);
}

static void get_sites(const struct api_agent *agent, const struct proxy_call *call)
{
	struct proxy_config *config = agent->config(agent->context);
	const struct scope_view *view = &config->view;
	struct buf body = {0};
	buf_put(&body, STR("{\"site\":"));
	buf_put_json(&body, config->site);
	buf_put(&body, STR(",\"sites\":["));
	for (uint32_t i = 0; i < view->sites_count; i++) {
		struct scope_site site = view->site(view->context, i);
		int64_t rtt_us = view->rtt_us(view->context, config->site_index, i);
		buf_put(&body, i ? STR(",{\"name\":") : STR("{\"name\":"));
		buf_put_json(&body, site.name);
		buf_printf(&body, ",\"state\":\"%s\"", scope_state_name(site.state));
		if (rtt_us != SCOPE_RTT_UNKNOWN)
			buf_printf(&body, ",\"rtt_ms\":%lld.%03lld", (long long)rtt_us / 1000, (long long)rtt_us % 1000);
		buf_put_char(&body, '}');
	}
	buf_put(&body, STR("]}\n"));
	proxy_config_drop(config);
	answer(call, 200, json, &body);
}

static void post_reload(const struct api_agent *agent, const struct proxy_call *call)
{
	agent->reload(agent->context, call);
}

void api_reload_done(struct proxy_exchange *exchange, const char *error)
{
	if (error[0])
		answer_problem(exchange, 422, "bad-configuration", "The new configuration was refused; the old one stays",
		               error, STR(""));
	else
		proxy_answer(exchange, 200, json, STR(""), STR("{\"reloaded\":true}\n"));
}

/* ---- Routes ----------------------------------------------------------------------------------------------------- */

static const struct {
	struct str path;
	struct str method;
	void (*handle)(const struct api_agent *agent, const struct proxy_call *call);
} routes[] = {
	{STR_INIT("/cheops/v1/health"), STR_INIT("GET"), get_health},
	{STR_INIT("/cheops/v1/version"), STR_INIT("GET"), get_version},
	{STR_INIT("/cheops/v1/metrics"), STR_INIT("GET"), get_metrics},
	{STR_INIT("/cheops/v1/services"), STR_INIT("GET"), get_services},
	{STR_INIT("/cheops/v1/sites"), STR_INIT("GET"), get_sites},
	{STR_INIT("/cheops/v1/reload"), STR_INIT("POST"), post_reload},
};

static void refuse_method(const struct proxy_call *call, struct str accepted)
{
	bool get = str_equal(accepted, STR("GET"));
	answer_problem(call->exchange, 405, "wrong-method", "This cannot be done with that method",
	               get ? "use GET" : "use POST", get ? STR("Allow: GET, HEAD\r\n") : STR("Allow: POST\r\n"));
}

void api_handle(void *context, const struct proxy_call *call)
{
	const struct api_agent *agent = context;
	struct str path = call->target;
	const char *query = memchr(path.at, '?', path.length);
	if (query)
		path.length = (size_t)(query - path.at);
	for (size_t i = 0; i < sizeof(routes) / sizeof(routes[0]); i++) {
		if (!str_equal(routes[i].path, path))
			continue;
		bool head = str_equal(call->method, STR("HEAD")) && str_equal(routes[i].method, STR("GET"));
		if (str_equal(routes[i].method, call->method) || head)
			routes[i].handle(agent, call);
		else
			refuse_method(call, routes[i].method);
		return;
	}
	answer_problem(call->exchange, 404, "no-such-path", "There is nothing at this path",
	               "the API has health, version, metrics, services, sites and reload below /cheops/v1", STR(""));
}
