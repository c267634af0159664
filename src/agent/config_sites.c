/* state, advertise, seeds and tags: what this site is to the others, and where it keeps what it knows of them. */
#include "agent/config_int.h"

#include <netinet/in.h>

/* ---- Tags ------------------------------------------------------------------------------------------------------- */

int config_tag_list(struct config_load *load, const yaml_node_t *node, struct site_tag **tags, uint32_t *tags_count)
{
	int code = yaml_check_mapping(&load->yaml, node, STR("tags"), "tags: {region: west}");
	size_t count = yaml_entries_count(node);
	if (code == 0 && count > LIMIT_AGENT_TAGS)
		return yaml_fail(&load->yaml, ERR_LIMIT, node->start_mark, "%zu tags; the limit of a site is %d", count,
		                 LIMIT_AGENT_TAGS);
	*tags = arena_array(&load->config->arena, struct site_tag, count);
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry tag = yaml_entry_at(&load->yaml, node, i);
		struct config_value value;
		struct str text;
		code = config_check_key(load, &tag, "a tag");
		if (code == 0)
			code = config_value_of(load, &tag, "a single value, as in `region: west`", &value);
		if (code == 0)
			code = config_name(load, &value, &text);
		if (code == 0)
			(*tags)[(*tags_count)++] = (struct site_tag){config_copy(load, tag.key), text};
	}
	return code;
}

int config_tags(struct config_load *load)
{
	const yaml_node_t *node = load->parts[PART_TAGS].value;
	struct site_tag *tags = NULL;
	int code = node == NULL ? 0 : config_tag_list(load, node, &tags, &load->config->tags_count);
	load->config->tags = tags;
	return code;
}

/* ---- Where this site is met -------------------------------------------------------------------------------------- */

static bool is_wildcard(const struct site_address *address)
{
	static const uint8_t none[16];
	return memcmp(address->ip, none, sizeof(none)) == 0;
}

int config_advertise(struct config_load *load)
{
	struct proxy_config *config = load->config;
	struct config_value value;
	struct http_address address;
	bool given;
	int code = config_option(load, AGENT_ADVERTISE, "an address, such as 192.0.2.1:8070", &value, &given);
	if (code != 0)
		return code;
	if (!given) {
		if (config->peer.length && http_address_to_site(&config->peer, &config->advertise) &&
		    is_wildcard(&config->advertise))
			config->advertise = (struct site_address){0};
		return 0;
	}
	if (config->peer.length == 0)
		return config_value_fail(load, &value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT ", but there is no `peer`: the address to listen on for other "
		                         "agents, such as `peer: 0.0.0.0:8070`",
		                         TEXT_NAME(value.text));
	code = config_address(load, &value, &address);
	if (code == 0 && (!http_address_to_site(&address, &config->advertise) || is_wildcard(&config->advertise)))
		code =
			config_value_fail(load, &value, ERR_INVALID,
		                      " is " TEXT_NAME_FMT "; it has to be where other agents reach this one, which cannot be "
		                      "every address at once",
		                      TEXT_NAME(value.text));
	return code;
}

/* ---- Where others may be met -------------------------------------------------------------------------------------- */

static int read_seed(struct config_load *load, const struct yaml_entry *entry, struct site_address *seed)
{
	struct config_value value;
	struct http_address address;
	int code = config_value_of(load, entry, "an address, such as 192.0.2.2:8070", &value);
	if (code == 0)
		code = config_address(load, &value, &address);
	if (code == 0 && (!http_address_to_site(&address, seed) || is_wildcard(seed)))
		code =
			config_value_fail(load, &value, ERR_INVALID,
		                      ": " TEXT_NAME_FMT " is every address; it has to be where the agent of another site is "
		                      "reached",
		                      TEXT_NAME(value.text));
	return code;
}

int config_seeds(struct config_load *load)
{
	const struct yaml_entry *part = &load->parts[PART_SEEDS];
	struct proxy_config *config = load->config;
	if (part->value == NULL)
		return 0;
	size_t count = config_list_count(part->value);
	if (config->peer.length == 0)
		return yaml_fail(
			&load->yaml, ERR_INVALID, part->value->start_mark,
			"there are `seeds`, but there is no `peer`: the address to listen on for other agents, such as "
			"`peer: 0.0.0.0:8070`");
	if (count > LIMIT_AGENT_SEEDS)
		return yaml_fail(&load->yaml, ERR_LIMIT, part->value->start_mark, "%zu seeds; the limit is %d", count,
		                 LIMIT_AGENT_SEEDS);
	struct site_address *seeds = arena_array(&config->arena, struct site_address, count);
	int code = 0;
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry item = config_list_item(load, part, i);
		code = read_seed(load, &item, &seeds[i]);
	}
	config->seeds = seeds;
	config->seeds_count = code == 0 ? (uint32_t)count : 0;
	return code;
}

/* ---- The folder -------------------------------------------------------------------------------------------------- */

/* Relative paths begin in the folder of the configuration. */
int config_state(struct config_load *load)
{
	struct config_value value = {.text = STR("/var/lib/cheops")};
	bool given;
	int code = config_option(load, AGENT_STATE, "the path of a folder, such as /var/lib/cheops", &value, &given);
	if (code != 0)
		return code;
	if (!given)
		value.text = STR("/var/lib/cheops");
	if (value.text.length == 0 || memchr(value.text.at, '\0', value.text.length))
		return config_value_fail(load, &value, ERR_INVALID, " is empty; it has to be the path of a folder");
	load->config->state = value.from ? config_copy(load, value.text).at : config_path(load, value.text);
	return 0;
}
