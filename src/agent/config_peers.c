/* peers and tags: the other sites, and the view that scopes are evaluated in. This site is its first. */
#include "agent/config_int.h"

_Static_assert(LIMIT_AGENT_PEERS + 1 == LIMIT_VIEW_SITES, "a view has room for this site and its peers");

enum { ADDRESS, RTT, TAGS, SERVICES, KEYS_COUNT };
static const char *const peer_keys[] = {
	[ADDRESS] = "address", [RTT] = "rtt", [TAGS] = "tags", [SERVICES] = "services", NULL};

static const char peer_example[] = "Site2: {address: 192.0.2.2:8070, rtt: 8ms}";

/* ---- Tags ------------------------------------------------------------------------------------------------------- */

static int read_tags(struct config_load *load, const struct yaml_entry *entry, uint32_t site)
{
	if (entry->value == NULL)
		return 0;
	int code = yaml_check_mapping(&load->yaml, entry->value, STR("tags"), "tags: {region: west}");
	size_t count = yaml_entries_count(entry->value);
	if (code == 0 && count > LIMIT_AGENT_TAGS)
		return yaml_fail(&load->yaml, ERR_LIMIT, entry->value->start_mark, "%zu tags; the limit of a site is %d", count,
		                 LIMIT_AGENT_TAGS);
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry tag = yaml_entry_at(&load->yaml, entry->value, i);
		struct config_value value;
		struct str text;
		code = config_check_key(load, &tag, "a tag");
		if (code == 0)
			code = config_value_of(load, &tag, "a single value, as in `region: west`", &value);
		if (code == 0)
			code = config_name(load, &value, &text);
		if (code == 0)
			scope_table_tag(load->table, site, tag.key, text);
	}
	return code;
}

/* ---- Services of a peer ----------------------------------------------------------------------------------------- */

static int read_offer(struct config_load *load, const struct yaml_entry *entry, uint32_t site)
{
	struct str version = STR("");
	int code = config_check_key(load, entry, "a service");
	if (code == 0 && !yaml_is_empty(entry->value)) {
		struct config_value value;
		code = config_value_of(load, entry, "a version, such as \"2.3\", or empty", &value);
		if (code == 0)
			code = config_name(load, &value, &version);
	}
	if (code != 0)
		return code;
	struct scope_view view = scope_table_view(load->table);
	uint32_t service = view.find_service(view.context, entry->key);
	if (service == SCOPE_NO_INDEX)
		service = scope_table_add_service(load->table, entry->key);
	if (service == SCOPE_NO_INDEX)
		return yaml_fail(&load->yaml, ERR_LIMIT, entry->key_node->start_mark,
		                 "all sites together have more than %d services, the limit", LIMIT_VIEW_SERVICES);
	scope_table_offer(load->table, service, site, version);
	return 0;
}

static int read_offers(struct config_load *load, const struct yaml_entry *entry, uint32_t site)
{
	if (entry->value == NULL) {
		for (uint32_t i = 0; i < load->config->services_count; i++)
			scope_table_offer(load->table, i, site, STR(""));
		return 0;
	}
	int code = yaml_check_mapping(&load->yaml, entry->value, STR("services"), "services: {compute: \"2.3\"}");
	for (size_t i = 0; code == 0 && i < yaml_entries_count(entry->value); i++) {
		struct yaml_entry offer = yaml_entry_at(&load->yaml, entry->value, i);
		code = read_offer(load, &offer, site);
	}
	return code;
}

/* ---- Peers ------------------------------------------------------------------------------------------------------ */

static int read_address(struct config_load *load, const struct yaml_entry *entry, struct proxy_peer *peer)
{
	struct config_value value;
	int code = config_value_of(load, entry, "an address, such as 192.0.2.2:8070", &value);
	if (code == 0)
		code = config_address(load, &value, &peer->address);
	if (code != 0)
		return code;
	const struct config_listener *listener = config_listener_find(load, &peer->address);
	if (listener != NULL)
		return config_value_fail(load, &value, ERR_CONFLICT,
		                         " is " TEXT_NAME_FMT ", where this agent itself listens, for " TEXT_NAME_FMT
		                         "; it has to be where the other agent is met",
		                         TEXT_NAME(value.text), TEXT_NAME(listener->name));
	for (const struct proxy_peer *other = load->config->peers; other < peer; other++) {
		if (config_same_address(&other->address, &peer->address))
			return config_value_fail(load, &value, ERR_CONFLICT,
			                         " is " TEXT_NAME_FMT ", which is already the address of " TEXT_NAME_FMT,
			                         TEXT_NAME(value.text), TEXT_NAME(other->name));
	}
	return 0;
}

static int read_rtt(struct config_load *load, const struct yaml_entry *entry, struct proxy_peer *peer)
{
	struct config_value value;
	uint64_t rtt_us;
	peer->rtt_us = SCOPE_RTT_UNKNOWN;
	if (entry->value == NULL)
		return 0;
	int code = config_value_of(load, entry, "a duration, such as 8ms", &value);
	if (code == 0)
		code =
			config_duration(load, &value, (struct config_range){.most = LIMIT_VIEW_RTT_MS * UINT64_C(1000)}, &rtt_us);
	if (code == 0)
		peer->rtt_us = (int64_t)rtt_us;
	return code;
}

static int read_peer(struct config_load *load, const struct yaml_entry *entry, struct proxy_peer *peer)
{
	struct yaml_entry parts[KEYS_COUNT] = {0};
	int code = config_check_key(load, entry, "a site");
	if (code == 0)
		code = yaml_check_mapping(&load->yaml, entry->value, entry->key, peer_example);
	if (code == 0)
		code = config_keys(load, entry->value, peer_keys, parts);
	if (code == 0 && parts[ADDRESS].value == NULL)
		code = yaml_fail(&load->yaml, ERR_INVALID, entry->key_node->start_mark,
		                 TEXT_NAME_FMT " has no `address`, which every peer needs, such as `%s`", TEXT_NAME(entry->key),
		                 peer_example);
	if (code == 0)
		code = read_address(load, &parts[ADDRESS], peer);
	if (code == 0)
		code = read_rtt(load, &parts[RTT], peer);
	if (code != 0)
		return code;
	peer->name = config_copy(load, entry->key);
	peer->site = scope_table_add_site(load->table, (struct scope_site){.name = peer->name, .state = SCOPE_PRESENT});
	if (peer->site == SCOPE_NO_INDEX)
		return yaml_fail(&load->yaml, ERR_CONFLICT, entry->key_node->start_mark,
		                 TEXT_NAME_FMT " is the name of this site; a peer has another", TEXT_NAME(peer->name));
	if (peer->rtt_us != SCOPE_RTT_UNKNOWN)
		scope_table_set_rtt(load->table, load->config->site_index, peer->site, peer->rtt_us);
	code = read_tags(load, &parts[TAGS], peer->site);
	return code == 0 ? read_offers(load, &parts[SERVICES], peer->site) : code;
}

static int read_peers(struct config_load *load)
{
	const yaml_node_t *node = load->parts[PART_PEERS].value;
	if (node == NULL)
		return 0;
	struct proxy_config *config = load->config;
	int code =
		yaml_check_mapping(&load->yaml, node, STR("peers"), "peers: {Site2: {address: 192.0.2.2:8070, rtt: 8ms}}");
	size_t count = yaml_entries_count(node);
	if (code == 0 && count > LIMIT_AGENT_PEERS)
		return yaml_fail(&load->yaml, ERR_LIMIT, node->start_mark, "%zu peers; the limit of an agent is %d", count,
		                 LIMIT_AGENT_PEERS);
	if (code == 0 && count > 0 && config->peer.length == 0)
		return yaml_fail(&load->yaml, ERR_INVALID, load->parts[PART_PEERS].key_node->start_mark,
		                 "there are `peers`, but there is no `peer`: the address where their agents connect, such as "
		                 "`peer: 0.0.0.0:8070`");
	if (code != 0)
		return code;
	config->peers = arena_array(&config->arena, struct proxy_peer, count);
	for (size_t i = 0; code == 0 && i < count; i++, config->peers_count++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, node, i);
		code = read_peer(load, &entry, &config->peers[i]);
	}
	return code;
}

int config_peers(struct config_load *load)
{
	struct proxy_config *config = load->config;
	load->table = scope_table_new(&config->arena);
	config->site_index =
		scope_table_add_site(load->table, (struct scope_site){.name = config->site, .state = SCOPE_PRESENT});
	for (uint32_t i = 0; i < config->services_count; i++) {
		uint32_t service = scope_table_add_service(load->table, config->services[i].name);
		scope_table_offer(load->table, service, config->site_index, config->services[i].version);
	}
	int code = read_tags(load, &load->parts[PART_TAGS], config->site_index);
	if (code == 0)
		code = read_peers(load);
	config->view = scope_table_view(load->table);
	return code;
}
