/* Metrics in the text format of Prometheus: of the loops, of the gossip, and of this site's certificate. */
#include "api/api_int.h"

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

static void put_metric(struct buf *out, const char *name, const char *help, const char *type, uint64_t value)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n%s %llu\n", name, help, name, type, name, (unsigned long long)value);
}

static void put_loops(struct buf *out, const struct api_agent *agent)
{
	uint64_t sum;
#define X(field, name, help)                                                                                           \
	sum = 0;                                                                                                           \
	for (uint32_t i = 0; i < agent->proxies_count; i++)                                                                \
		sum += atomic_load_explicit(&proxy_counters(agent->proxies[i])->field, memory_order_relaxed);                  \
	put_metric(out, name, help, "counter", sum);
	PROXY_COUNTERS(X)
#undef X
	sum = 0;
	for (uint32_t i = 0; i < agent->proxies_count; i++)
		sum += atomic_load_explicit(&proxy_counters(agent->proxies[i])->clients, memory_order_relaxed);
	put_metric(out, "cheops_client_connections", "Connections of clients now", "gauge", sum);
}

static void put_gossip(struct buf *out, const struct site *site, const struct trust_seal_counters *seal)
{
#define X(field, name, help) put_metric(out, name, help, "counter", site_counters(site)->field);
	SITE_COUNTERS(X)
#undef X
#define X(field, name, help) put_metric(out, name, help, "counter", seal->field);
	TRUST_SEAL_COUNTERS(X)
#undef X
	put_metric(out, "cheops_gossip_local_health", "How much slower than usual this site thinks it is itself; 0 is well",
	           "gauge", site_health(site));
}

static void put_states(struct buf *out, const struct site *site)
{
	uint64_t counts[SITE_STATES] = {0};
	struct site_member member;
	for (uint32_t i = 0; i < site_count(site); i++) {
		site_member(site, i, &member);
		counts[member.state]++;
	}
	buf_put(out, STR("# HELP cheops_sites Sites that are known, by state\n# TYPE cheops_sites gauge\n"));
	for (enum site_state state = SITE_ALIVE; state < SITE_STATES; state++)
		buf_printf(out, "cheops_sites{state=\"%s\"} %llu\n", site_state_name(state), (unsigned long long)counts[state]);
}

static void put_expiry(struct buf *out, const struct site *site)
{
	struct site_member member;
	struct site_card card;
	struct trust_certificate about;
	struct arena arena;
	arena_init(&arena, 0);
	site_member(site, 0, &member);
	if (site_card_parse(&arena, member.card.body, &card, NULL) == 0 &&
	    trust_certificate_read(card.certificate, &about, NULL) == 0)
		put_metric(out, "cheops_certificate_expiry_timestamp_seconds", "When the certificate of this site ends",
		           "gauge", (uint64_t)(about.to_ms / 1000));
	arena_free(&arena);
}

void api_get_metrics(struct api_job *job, const struct api_mesh *mesh)
{
	struct buf *out = &job->answer.body;
	job->answer.status = 200;
	job->answer.type = "text/plain; version=0.0.4";
	put_loops(out, job->agent);
	if (mesh->site) {
		put_gossip(out, mesh->site, mesh->seal);
		put_states(out, mesh->site);
		put_expiry(out, mesh->site);
	}
	buf_printf(out,
	           "# HELP cheops_build_info The version that runs\n# TYPE cheops_build_info gauge\n"
	           "cheops_build_info{version=\"%s\"} 1\n",
	           CHEOPS_VERSION);
}
