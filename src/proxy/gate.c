/* The policy for peers, asked by the engine: operations that other members of a replicated resource deliver count like requests
 * that write, and use up the same quota (policy.c).
 *
 * Where a rule is used up, each operation is told a time of its own to come back, one share of a second after the other: a thousand
 * that wait do not all ask again at once.
 */
#include "proxy/proxy_int.h"

#include "base/check.h"

#include <stdlib.h>

struct proxy_gate {
	struct proxy_quotas *quotas;
	const struct proxy_config *config;
	struct proxy_quota **of_rules;
	uint64_t *next_ns; /* by rule: the next time that nobody was told yet */
};

struct proxy_gate *proxy_gate_new(struct proxy_quotas *quotas, const struct proxy_config *config)
{
	uint32_t count = config->policy.rules_count;
	struct proxy_gate *gate = calloc(1, sizeof(*gate));
	CHECK(gate);
	gate->quotas = quotas;
	gate->config = config;
	gate->of_rules = calloc(count + 1, sizeof(*gate->of_rules));
	gate->next_ns = calloc(count + 1, sizeof(*gate->next_ns));
	CHECK(gate->of_rules && gate->next_ns);
	for (uint32_t i = 0; i < count; i++)
		gate->of_rules[i] = proxy_quota_take(quotas, config->policy.rules[i].name);
	return gate;
}

void proxy_gate_free(struct proxy_gate *gate)
{
	for (uint32_t i = 0; i < gate->config->policy.rules_count; i++)
		proxy_quota_give(gate->quotas, gate->of_rules[i]);
	free(gate->of_rules);
	free(gate->next_ns);
	free(gate);
}

static uint32_t find_service(const struct proxy_config *config, struct str name)
{
	for (uint32_t i = 0; i < config->services_count; i++)
		if (str_equal(config->services[i].name, name))
			return config->services[i].index;
	return SCOPE_NO_INDEX;
}

static enum engine_admission refuse_other(const struct proxy_gate *gate, const struct engine_asker *asker,
                                          struct engine_entry *entry)
{
	buf_printf(&entry->why, "no rule of %.*s names %.*s, and its policy refuses all others",
	           STR_FMT(gate->config->site), STR_FMT(asker->site));
	return ENGINE_REFUSED;
}

static enum engine_admission refuse(const struct proxy_gate *gate, const struct proxy_rule *rule,
                                    const struct engine_asker *asker, struct engine_entry *entry)
{
	buf_printf(&entry->why, "the rule `%.*s` of %.*s lets %.*s ", STR_FMT(rule->name), STR_FMT(gate->config->site),
	           STR_FMT(asker->site));
	proxy_rule_put(rule, gate->config, &entry->why);
	buf_printf(&entry->why, "; this operation would write %.*s", STR_FMT(asker->service));
	return ENGINE_REFUSED;
}

static enum engine_admission put_off(struct proxy_gate *gate, uint32_t number, uint64_t now_ns, uint64_t wait_ns,
                                     struct engine_entry *entry)
{
	const struct proxy_rule *rule = &gate->config->policy.rules[number];
	uint64_t *next_ns = &gate->next_ns[number];
	uint32_t most = wait_ns > 0 ? rule->rate : rule->concurrent;
	if (wait_ns > 0) {
		*next_ns = *next_ns > now_ns + wait_ns ? *next_ns : now_ns + wait_ns;
		entry->wait_us = (*next_ns - now_ns) / 1000 + 1;
		*next_ns += UINT64_C(1000000000) / rule->rate;
	}
	buf_printf(&entry->why, "the rule `%.*s` of %.*s allows %u request%s %s", STR_FMT(rule->name),
	           STR_FMT(gate->config->site), most, most == 1 ? "" : "s", wait_ns > 0 ? "per second" : "at once");
	return ENGINE_LATER;
}

static enum engine_admission enter(void *context, const struct engine_asker *asker, uint64_t now_us,
                                   struct engine_entry *entry)
{
	struct proxy_gate *gate = context;
	const struct proxy_policy *policy = &gate->config->policy;
	uint32_t service = find_service(gate->config, asker->service);
	uint32_t found = proxy_policy_find(policy, asker->site, asker->tags, asker->tags_count);
	uint64_t wait_ns = 0;
	if (found == SCOPE_NO_INDEX)
		return policy->refuse_others ? refuse_other(gate, asker, entry) : ENGINE_ADMITTED;
	const struct proxy_rule *rule = &policy->rules[found];
	if (service == SCOPE_NO_INDEX || !proxy_rule_allows(rule, service, false))
		return refuse(gate, rule, asker, entry);
	if (!proxy_quota_enter(gate->of_rules[found], rule, now_us * 1000, &wait_ns))
		return put_off(gate, found, now_us * 1000, wait_ns, entry);
	entry->place = gate->of_rules[found];
	return ENGINE_ADMITTED;
}

static void leave(void *context, void *place)
{
	(void)context;
	proxy_quota_leave(place);
}

struct engine_gate proxy_gate_engine(struct proxy_gate *gate)
{
	return (struct engine_gate){gate, enter, leave};
}
