/* The policy for peers: which services and which kinds of operation another site may ask of this one, and how much.
 *
 * The happy path:
 *   1. the first rule that names the peer is found, by its name or its tags
 *   2. the rule has the service, and reading or writing
 *   3. the request takes a place among those that run at once, and one from the bucket of this second
 *   4. when it is over, its place is free again
 *
 * What goes wrong, and what is done about it:
 *   no rule names the peer      as `others` says: let in, or refused with 403
 *   the rule does not allow it  refused with 403, which says what the rule does allow
 *   too many, too fast          refused with 429, which says the limit and when to come back
 *
 * What is used up is counted by name of the rule, for all loops together. A new configuration goes on counting where the old
 * one was: requests that it let in are still running.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <pthread.h>
#include <stdlib.h>

/* ---- What is used up -------------------------------------------------------------------------------------------- */

struct proxy_quota {
	struct proxy_quota *next;
	unsigned references; /* by configurations of loops; under the lock */
	atomic_uint running;
	atomic_uint_least64_t full_ns; /* when the bucket will be full again, if nobody comes */
	size_t name_length;
	char name[];
};

struct proxy_quotas {
	pthread_mutex_t lock; /* of the list */
	struct proxy_quota *first;
};

struct proxy_quotas *proxy_quotas_new(void)
{
	struct proxy_quotas *quotas = calloc(1, sizeof(*quotas));
	CHECK(quotas);
	pthread_mutex_init(&quotas->lock, NULL);
	return quotas;
}

void proxy_quotas_free(struct proxy_quotas *quotas)
{
	if (!quotas)
		return;
	CHECK(!quotas->first);
	pthread_mutex_destroy(&quotas->lock);
	free(quotas);
}

static struct proxy_quota *quota_new(struct str rule)
{
	struct proxy_quota *quota = calloc(1, sizeof(*quota) + rule.length);
	CHECK(quota);
	quota->name_length = rule.length;
	memcpy(quota->name, rule.at, rule.length);
	return quota;
}

struct proxy_quota *proxy_quota_take(struct proxy_quotas *quotas, struct str rule)
{
	pthread_mutex_lock(&quotas->lock);
	struct proxy_quota *quota = quotas->first;
	while (quota && !str_equal(str_make(quota->name, quota->name_length), rule))
		quota = quota->next;
	if (!quota) {
		quota = quota_new(rule);
		quota->next = quotas->first;
		quotas->first = quota;
	}
	quota->references++;
	pthread_mutex_unlock(&quotas->lock);
	return quota;
}

void proxy_quota_give(struct proxy_quotas *quotas, struct proxy_quota *quota)
{
	pthread_mutex_lock(&quotas->lock);
	if (--quota->references == 0) {
		struct proxy_quota **at = &quotas->first;
		while (*at != quota)
			at = &(*at)->next;
		*at = quota->next;
		free(quota);
	}
	pthread_mutex_unlock(&quotas->lock);
}

/* A bucket that holds as many requests as it gets in a second. It is one number: the time at which it will be full again. Each
 * request moves that on by its share of a second; where it would lie more than a second ahead, the bucket is empty. */
static bool bucket_take(struct proxy_quota *quota, uint32_t rate, uint64_t now_ns, uint64_t *wait_ns)
{
	static const uint64_t second_ns = UINT64_C(1000000000);
	uint64_t before = atomic_load_explicit(&quota->full_ns, memory_order_relaxed), after;
	do {
		after = (before > now_ns ? before : now_ns) + second_ns / rate;
		if (after > now_ns + second_ns) {
			*wait_ns = after - now_ns - second_ns;
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(&quota->full_ns, &before, after, memory_order_relaxed,
	                                                memory_order_relaxed));
	return true;
}

bool proxy_quota_enter(struct proxy_quota *quota, const struct proxy_rule *rule, uint64_t now_ns, uint64_t *wait_ns)
{
	*wait_ns = 0;
	unsigned before = atomic_load_explicit(&quota->running, memory_order_relaxed);
	do {
		if (rule->concurrent > 0 && before >= rule->concurrent)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(&quota->running, &before, before + 1, memory_order_relaxed,
	                                                memory_order_relaxed));
	if (rule->rate == 0 || bucket_take(quota, rule->rate, now_ns, wait_ns))
		return true;
	proxy_quota_leave(quota);
	return false;
}

void proxy_quota_leave(struct proxy_quota *quota)
{
	atomic_fetch_sub_explicit(&quota->running, 1, memory_order_relaxed);
}

/* ---- What is allowed -------------------------------------------------------------------------------------------- */

static bool has_tag(const struct site_tag *tags, uint32_t count, const struct site_tag *wanted)
{
	for (uint32_t i = 0; i < count; i++)
		if (str_equal(tags[i].key, wanted->key) && str_equal(tags[i].value, wanted->value))
			return true;
	return false;
}

static bool names(const struct proxy_rule *rule, struct str name, const struct site_tag *tags, uint32_t tags_count)
{
	bool named = rule->sites_count == 0;
	for (uint32_t i = 0; i < rule->sites_count && !named; i++)
		named = str_equal(rule->sites[i], name);
	for (uint32_t i = 0; i < rule->tags_count && named; i++)
		named = has_tag(tags, tags_count, &rule->tags[i]);
	return named;
}

uint32_t proxy_policy_find(const struct proxy_policy *policy, struct str name, const struct site_tag *tags,
                           uint32_t tags_count)
{
	for (uint32_t i = 0; i < policy->rules_count; i++)
		if (names(&policy->rules[i], name, tags, tags_count))
			return i;
	return SCOPE_NO_INDEX;
}

bool proxy_rule_allows(const struct proxy_rule *rule, uint32_t service, bool safe)
{
	return (safe ? rule->read : rule->write) && (rule->all_services || rule->services >> service & 1);
}

/* ---- Refusals --------------------------------------------------------------------------------------------------- */

/* `detail` is freed. */
static int refuse(struct proxy_exchange *exchange, struct buf *detail)
{
	proxy_count(&exchange->proxy->counters.policy_refused, 1);
	struct proxy_problem problem = {.status = 403,
	                                .type = "policy-refused",
	                                .title = "The policy of the site does not allow this",
	                                .error = "http_request_denied",
	                                .site = exchange->state->config->site,
	                                .close = exchange->has_body};
	proxy_problem(exchange, &problem, "%s", buf_c(detail));
	buf_free(detail);
	return -1;
}

static int refuse_other(struct proxy_exchange *exchange)
{
	struct buf detail = {0};
	buf_printf(&detail, "no rule of %.*s names %s, and its policy refuses all others",
	           STR_FMT(exchange->state->config->site), exchange->client->peer_name);
	return refuse(exchange, &detail);
}

/* "read compute, image". */
void proxy_rule_put(const struct proxy_rule *rule, const struct proxy_config *config, struct buf *out)
{
	if ((!rule->read && !rule->write) || (!rule->all_services && rule->services == 0)) {
		buf_put(out, STR("do nothing"));
		return;
	}
	buf_put(out, rule->read && rule->write ? STR("read and write") : rule->read ? STR("read") : STR("write"));
	if (rule->all_services)
		buf_put(out, STR(" every service"));
	for (uint32_t i = 0, shown = 0; !rule->all_services && i < config->services_count; i++) {
		if (rule->services >> i & 1)
			buf_printf(out, "%s%.*s", shown++ ? ", " : " ", STR_FMT(config->services[i].name));
	}
}

static int refuse_request(struct proxy_exchange *exchange, const struct proxy_rule *rule)
{
	const struct proxy_config *config = exchange->state->config;
	struct str method = http_method_name(exchange->method);
	struct buf detail = {0};
	buf_printf(&detail, "the rule `%.*s` of %.*s lets %s ", STR_FMT(rule->name), STR_FMT(config->site),
	           exchange->client->peer_name);
	proxy_rule_put(rule, config, &detail);
	buf_printf(&detail, "; this request would %s %.*s (%.*s)", http_method_is_safe(exchange->method) ? "read" : "write",
	           STR_FMT(exchange->service->name), STR_FMT(method));
	return refuse(exchange, &detail);
}

static int refuse_much(struct proxy_exchange *exchange, const struct proxy_rule *rule, uint64_t wait_ns)
{
	uint32_t most = wait_ns > 0 ? rule->rate : rule->concurrent;
	struct str site = exchange->state->config->site;
	proxy_count(&exchange->proxy->counters.policy_limited, 1);
	struct proxy_problem problem = {.status = 429,
	                                .type = "policy-quota",
	                                .title = "The policy of the site does not allow so much",
	                                .error = "http_request_denied",
	                                .site = site,
	                                .close = exchange->has_body,
	                                .retry_after_s = 1 + (unsigned)(wait_ns / UINT64_C(1000000000))};
	proxy_problem(exchange, &problem, "the rule `%.*s` of %.*s allows %u request%s %s", STR_FMT(rule->name),
	              STR_FMT(site), most, most == 1 ? "" : "s", wait_ns > 0 ? "per second" : "at once");
	return -1;
}

int proxy_policy_admit(struct proxy_exchange *exchange)
{
	const struct proxy_policy *policy = &exchange->state->config->policy;
	const struct proxy_client *client = exchange->client;
	if (policy->rules_count == 0 && !policy->refuse_others)
		return 0;
	/* A site that was not heard of yet has no tags. */
	const struct site_snapshot *sites = exchange->proxy->mesh->sites;
	uint32_t number = site_snapshot_find(sites, client->peer);
	const struct site_place *place = number == SCOPE_NO_INDEX ? NULL : &sites->places[number];
	uint32_t found =
		proxy_policy_find(policy, str_of(client->peer_name), place ? place->tags : NULL, place ? place->tags_count : 0);
	if (found == SCOPE_NO_INDEX)
		return policy->refuse_others ? refuse_other(exchange) : 0;
	const struct proxy_rule *rule = &policy->rules[found];
	uint64_t wait_ns;
	if (!proxy_rule_allows(rule, exchange->service->index, http_method_is_safe(exchange->method)))
		return refuse_request(exchange, rule);
	if (!proxy_quota_enter(exchange->state->quotas[found], rule, http_loop_now_us(exchange->proxy->loop) * 1000,
	                       &wait_ns))
		return refuse_much(exchange, rule, wait_ns);
	exchange->quota = exchange->state->quotas[found];
	return 0;
}

void proxy_policy_done(struct proxy_exchange *exchange)
{
	if (exchange->quota)
		proxy_quota_leave(exchange->quota);
	exchange->quota = NULL;
}
