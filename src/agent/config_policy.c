/* policy: what other sites may ask of this one. */
#include "agent/config_int.h"

enum { RULE_NAME, RULE_SITES, RULE_TAGS, RULE_SERVICES, RULE_OPERATIONS, RULE_RATE, RULE_CONCURRENT, RULE_KEYS };

static const char *const rule_keys[] = {[RULE_NAME] = "name",
                                        [RULE_SITES] = "sites",
                                        [RULE_TAGS] = "tags",
                                        [RULE_SERVICES] = "services",
                                        [RULE_OPERATIONS] = "operations",
                                        [RULE_RATE] = "rate",
                                        [RULE_CONCURRENT] = "concurrent",
                                        NULL};

static const char rule_example[] = "{name: partners, sites: [Site2], operations: [read]}";

/* ---- Whom a rule names ------------------------------------------------------------------------------------------ */

static int read_sites(struct config_load *load, const struct yaml_entry *entry, struct proxy_rule *rule)
{
	size_t count = config_list_count(entry->value);
	if (count == 0 || count > LIMIT_POLICY_SITES)
		return yaml_fail(&load->yaml, count == 0 ? ERR_INVALID : ERR_LIMIT, entry->value->start_mark,
		                 "`sites` has %zu names; a rule names 1 to %d sites, or every peer where it has no `sites`",
		                 count, LIMIT_POLICY_SITES);
	struct str *sites = arena_array(&load->config->arena, struct str, count);
	rule->sites = sites;
	int code = 0;
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry item = config_list_item(load, entry, i);
		struct config_value value;
		code = config_value_of(load, &item, "a list of sites, such as [Site2, Site3]", &value);
		if (code == 0)
			code = config_name(load, &value, &sites[rule->sites_count++]);
	}
	return code;
}

static int read_tags(struct config_load *load, const struct yaml_entry *entry, struct proxy_rule *rule)
{
	struct site_tag *tags = NULL;
	int code = config_tag_list(load, entry->value, &tags, &rule->tags_count);
	rule->tags = tags;
	if (code == 0 && rule->tags_count == 0)
		return yaml_fail(
			&load->yaml, ERR_INVALID, entry->value->start_mark,
			"`tags` is empty; a rule names the peers with these tags, such as {tier: partner}, or every peer "
			"where it has no `tags`");
	return code;
}

/* ---- What it allows --------------------------------------------------------------------------------------------- */

static int read_service(struct config_load *load, const struct config_value *value, struct proxy_rule *rule)
{
	const struct proxy_config *config = load->config;
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, value->text);
	for (uint32_t i = 0; i < config->services_count; i++) {
		suggest_offer(&suggest, config->services[i].name);
		if (!str_equal(config->services[i].name, value->text))
			continue;
		rule->services |= UINT64_C(1) << i;
		return 0;
	}
	return config_value_fail(load, value, ERR_NOT_FOUND, " has " TEXT_NAME_FMT ", which is no service of this site%s",
	                         TEXT_NAME(value->text), text_did_you_mean(&suggest, meant));
}

/* None is a list, too: the rule then allows nothing. */
static int read_services(struct config_load *load, const struct yaml_entry *entry, struct proxy_rule *rule)
{
	int code = 0;
	rule->all_services = entry->value == NULL;
	size_t count = entry->value == NULL ? 0 : config_list_count(entry->value);
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry item = config_list_item(load, entry, i);
		struct config_value value;
		code = config_value_of(load, &item, "a list of services, such as [image]", &value);
		if (code == 0)
			code = read_service(load, &value, rule);
	}
	return code;
}

static int read_operations(struct config_load *load, const struct yaml_entry *entry, struct proxy_rule *rule)
{
	static const char *const words[] = {"read", "write", NULL};
	rule->read = rule->write = entry->value == NULL;
	size_t count = entry->value == NULL ? 0 : config_list_count(entry->value);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry item = config_list_item(load, entry, i);
		struct config_value value;
		int code = config_value_of(load, &item, "a list of `read` and `write`", &value);
		int word = code == 0 ? config_word(load, &value, words) : code;
		if (word < 0)
			return word;
		rule->read |= word == 0;
		rule->write |= word == 1;
	}
	return 0;
}

static int read_number(struct config_load *load, const struct yaml_entry *entry, uint32_t *number)
{
	struct config_value value;
	if (entry->value == NULL)
		return 0;
	int code = config_value_of(load, entry, "a number of requests, such as 100", &value);
	return code == 0 ? config_count(load, &value, (struct config_range){1, LIMIT_POLICY_RATE, false}, number) : code;
}

/* ---- Rules ------------------------------------------------------------------------------------------------------ */

static int read_rule_name(struct config_load *load, const yaml_node_t *node, const struct yaml_entry *entry,
                          struct proxy_rule *rule)
{
	const struct proxy_policy *policy = &load->config->policy;
	struct config_value value;
	if (entry->value == NULL)
		return yaml_fail(&load->yaml, ERR_INVALID, node->start_mark,
		                 "the rule has no `name`, which refusals show, such as `name: partners`");
	int code = config_value_of(load, entry, "the name of the rule, such as partners", &value);
	if (code == 0)
		code = config_name(load, &value, &rule->name);
	for (uint32_t i = 0; code == 0 && i < policy->rules_count; i++) {
		if (str_equal(policy->rules[i].name, rule->name))
			return config_value_fail(load, &value, ERR_CONFLICT,
			                         " is " TEXT_NAME_FMT ", as that of a rule before; each needs a name of its own",
			                         TEXT_NAME(value.text));
	}
	return code;
}

static int read_rule(struct config_load *load, const yaml_node_t *node, struct proxy_rule *rule)
{
	struct yaml_entry found[RULE_KEYS] = {0};
	if (node->type != YAML_MAPPING_NODE)
		return yaml_fail(&load->yaml, ERR_INVALID, node->start_mark, "a rule is %s; it has to be a mapping, such as %s",
		                 yaml_kind(node), rule_example);
	int code = yaml_check_mapping(&load->yaml, node, STR("a rule"), rule_example);
	if (code == 0)
		code = config_keys(load, node, rule_keys, found);
	if (code == 0)
		code = read_rule_name(load, node, &found[RULE_NAME], rule);
	if (code == 0 && found[RULE_SITES].value != NULL)
		code = read_sites(load, &found[RULE_SITES], rule);
	if (code == 0 && found[RULE_TAGS].value != NULL)
		code = read_tags(load, &found[RULE_TAGS], rule);
	if (code == 0)
		code = read_services(load, &found[RULE_SERVICES], rule);
	if (code == 0)
		code = read_operations(load, &found[RULE_OPERATIONS], rule);
	if (code == 0)
		code = read_number(load, &found[RULE_RATE], &rule->rate);
	return code == 0 ? read_number(load, &found[RULE_CONCURRENT], &rule->concurrent) : code;
}

static int read_rules(struct config_load *load, const struct yaml_entry *entry)
{
	struct proxy_policy *policy = &load->config->policy;
	if (entry->value->type != YAML_SEQUENCE_NODE)
		return yaml_fail(&load->yaml, ERR_INVALID, entry->value->start_mark,
		                 "`rules` is %s; it has to be a list of rules, such as [%s]", yaml_kind(entry->value),
		                 rule_example);
	size_t count = yaml_items_count(entry->value);
	if (count > LIMIT_POLICY_RULES)
		return yaml_fail(&load->yaml, ERR_LIMIT, entry->value->start_mark, "%zu rules; the limit of a policy is %d",
		                 count, LIMIT_POLICY_RULES);
	policy->rules = arena_array(&load->config->arena, struct proxy_rule, count);
	int code = 0;
	for (size_t i = 0; code == 0 && i < count; i++) {
		code = read_rule(load, yaml_item_at(&load->yaml, entry->value, i), &policy->rules[i]);
		policy->rules_count++;
	}
	return code;
}

int config_policy(struct config_load *load)
{
	enum { OTHERS, RULES, COUNT };
	static const char *const keys[] = {[OTHERS] = "others", [RULES] = "rules", NULL};
	static const char *const words[] = {"allow", "refuse", NULL};
	const yaml_node_t *node = load->parts[PART_POLICY].value;
	struct yaml_entry found[COUNT] = {0};
	struct config_value value;
	if (node == NULL)
		return 0;
	int code = yaml_check_mapping(&load->yaml, node, STR("policy"), "policy: {others: refuse}");
	if (code == 0)
		code = config_keys(load, node, keys, found);
	if (code == 0 && found[OTHERS].value != NULL) {
		code = config_value_of(load, &found[OTHERS], "`allow` or `refuse`", &value);
		int word = code == 0 ? config_word(load, &value, words) : code;
		code = word < 0 ? word : 0;
		load->config->policy.refuse_others = word == 1;
	}
	return code == 0 && found[RULES].value != NULL ? read_rules(load, &found[RULES]) : code;
}
