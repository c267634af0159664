/* Metrics in the text format of Prometheus: of the loops, of the gossip, of this site's certificate, of replicated resources. */
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

#define ENGINE_METRICS(X)                                                                                              \
	X(replica.submitted, "cheops_replica_submitted_total", "counter", "Operations that users asked for here")          \
	X(replica.issued, "cheops_replica_issued_total", "counter", "Of these, operations that go to the other members")   \
	X(replica.refused, "cheops_replica_refused_total", "counter",                                                      \
	  "Of these, operations that the service here refused")                                                            \
	X(replica.delivered, "cheops_replica_delivered_total", "counter", "Operations that came from other members")       \
	X(replica.executed, "cheops_replica_executed_total", "counter", "Operations carried out by a service here")        \
	X(replica.rerun, "cheops_replica_rerun_total", "counter", "Operations run again, to get the order right")          \
	X(replica.superseded, "cheops_replica_superseded_total", "counter", "Operations that lost against another one")    \
	X(replica.rejected, "cheops_replica_rejected_total", "counter",                                                    \
	  "Operations of others that a service here refused")                                                              \
	X(replica.in_doubt, "cheops_replica_in_doubt_total", "counter",                                                    \
	  "Operations of which nobody knew whether they happened")                                                         \
	X(replica.repaired, "cheops_replica_repaired_total", "counter", "Copies here that got the state of another one")   \
	X(replica.merged, "cheops_replica_merged_total", "counter",                                                        \
	  "Resources that became one with another of their name")                                                          \
	X(replica.diverged, "cheops_replica_diverged_total", "counter", "Copies here that could not get it")               \
	X(replica.messages_sent, "cheops_replica_sent_total", "counter", "Messages to other members")                      \
	X(replica.bytes_sent, "cheops_replica_sent_bytes_total", "counter", "Bytes of these messages")                     \
	X(replica.messages_received, "cheops_replica_received_total", "counter", "Messages of other members")              \
	X(replica.messages_dropped, "cheops_replica_dropped_total", "counter", "Of these, messages that made no sense")    \
	X(replica.pending_operations, "cheops_replica_pending_operations", "gauge", "Operations not settled everywhere")   \
	X(replica.pending_replicants, "cheops_replica_pending_replicants", "gauge", "Resources that have such")            \
	X(replica.running, "cheops_replica_running", "gauge", "Requests under way at services here, for operations")       \
	X(at_risk, "cheops_resources_at_risk", "gauge", "Resources here whose site cannot get at what they rely on")       \
	X(names.claimed, "cheops_names_claimed_total", "counter", "Names asked for here, of what is in containers")        \
	X(names.refused, "cheops_names_refused_total", "counter", "Of these, names that another one had")                  \
	X(names.unavailable, "cheops_names_unavailable_total", "counter",                                                  \
	  "Of these, names that the prime did not answer for")                                                             \
	X(names.unchecked, "cheops_names_unchecked_total", "counter", "Names accepted here without the prime")             \
	X(names.lost, "cheops_names_lost_total", "counter", "Names accepted here that turned out to be another's")         \
	X(names.active, "cheops_names_active", "gauge",                                                                    \
	  "Names and containers of which something is to be told to another site")                                         \
	X(changes, "cheops_changes_total", "counter", "Changes told of to those who follow them")                          \
	X(hooks, "cheops_webhooks", "gauge", "Webhooks that are configured")                                               \
	X(hooks_told, "cheops_webhook_events_total", "counter", "Events that webhooks have taken")                         \
	X(hooks_failed, "cheops_webhook_failures_total", "counter",                                                        \
	  "Requests to webhooks that were not answered with 2xx")                                                          \
	X(hooks_missed, "cheops_webhook_missed_total", "counter",                                                          \
	  "Changes that webhooks were not told of, since they were away for too long")                                     \
	X(hooks_behind, "cheops_webhook_behind", "gauge", "Changes that the slowest webhook was not told of yet")          \
	X(commits, "cheops_store_commits_total", "counter", "Commits, each of all that came meanwhile")                    \
	X(commit_failures, "cheops_store_commit_failures_total", "counter", "Commits that the store refused")              \
	X(store_rows, "cheops_store_rows", "gauge", "Rows in the store")                                                   \
	X(store_bytes_used, "cheops_store_used_bytes", "gauge", "Bytes that they take")                                    \
	X(store_bytes_file, "cheops_store_file_bytes", "gauge", "Size of the store's file")                                \
	X(store_bytes_most, "cheops_store_limit_bytes", "gauge", "How large it may get")

static void put_engine(struct buf *out, struct engine *engine)
{
	struct engine_figures figures;
	engine_figures(engine, &figures);
#define X(field, name, type, help) put_metric(out, name, help, type, figures.field);
	ENGINE_METRICS(X)
#undef X
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
	struct engine *engine = job->agent->engine(job->agent->context);
	if (engine)
		put_engine(out, engine);
	buf_printf(out,
	           "# HELP cheops_build_info The version that runs\n# TYPE cheops_build_info gauge\n"
	           "cheops_build_info{version=\"%s\"} 1\n",
	           CHEOPS_VERSION);
}
