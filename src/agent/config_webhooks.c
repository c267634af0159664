/* webhooks: who is called when something happens to replicated resources. */
#include "agent/config_int.h"

enum { URL, EVENTS, SECRET, TIMEOUT, TLS, KEYS_COUNT };
static const char *const hook_keys[] = {
	[URL] = "url", [EVENTS] = "events", [SECRET] = "secret", [TIMEOUT] = "timeout", [TLS] = "tls", NULL};

static const char hook_example[] = "audit: {url: \"https://hooks.internal:8443/cheops\"}";
static const char hooks_example[] = "webhooks: {audit: {url: \"https://hooks.internal:8443/cheops\"}}";

enum { TIMEOUT_MS = 10000, TIMEOUT_MOST_S = 300 };

/* ---- The URL ------------------------------------------------------------------------------------------------------ */

static bool takes(struct str *rest, struct str word)
{
	if (rest->length < word.length || !str_equal_nocase(str_make(rest->at, word.length), word))
		return false;
	*rest = str_make(rest->at + word.length, rest->length - word.length);
	return true;
}

static int refuse_url(struct config_load *load, const struct config_value *value, const char *why)
{
	return config_value_fail(load, value, ERR_INVALID,
	                         " is " TEXT_NAME_FMT ", %s; such as http://127.0.0.1:9000/cheops or "
	                         "https://hooks.internal/cheops would be right",
	                         TEXT_NAME(value->text), why);
}

/* What a request line can have in it. */
static bool is_target(struct str text)
{
	for (size_t i = 0; i < text.length; i++)
		if (text.at[i] <= ' ' || text.at[i] >= 0x7f || text.at[i] == '#')
			return false;
	return true;
}

/* "host:port" of an authority; the port of the scheme where it has none. */
static struct str add_port(struct config_load *load, struct str host, bool secure)
{
	struct buf text = {0};
	const char *bracket = memchr(host.at, ']', host.length);
	size_t from = bracket ? (size_t)(bracket - host.at) : 0;
	buf_put(&text, host);
	if (!memchr(host.at + from, ':', host.length - from))
		buf_put(&text, secure ? STR(":443") : STR(":80"));
	struct str whole = config_copy(load, buf_str(&text));
	buf_free(&text);
	return whole;
}

static int read_url(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook, bool *secure)
{
	struct config_value value;
	int code = config_value_of(load, entry, "a URL, such as https://hooks.internal/cheops", &value);
	if (code != 0)
		return code;
	struct str rest = value.text;
	*secure = takes(&rest, STR("https://"));
	if (!*secure && !takes(&rest, STR("http://")))
		return refuse_url(load, &value, "which begins neither with http:// nor with https://");
	if (value.text.length > LIMIT_AGENT_URL_BYTES)
		return refuse_url(load, &value, "which is too long");
	size_t length = 0;
	while (length < rest.length && !strchr("/?#", rest.at[length]))
		length++;
	struct str host = str_make(rest.at, length), path = str_make(rest.at + length, rest.length - length);
	if (host.length == 0)
		return refuse_url(load, &value, "which names no host");
	if (memchr(host.at, '@', host.length))
		return config_value_fail(
			load, &value, ERR_INVALID,
			" has a user in it, and perhaps a password; leave that out: whom a request is from is what "
			"`secret` proves");
	if (!is_target(path) || (path.length > 0 && path.at[0] != '/'))
		return refuse_url(load, &value, "whose path cannot be asked for");
	struct config_value address = value;
	address.text = add_port(load, host, *secure);
	code = config_address(load, &address, &hook->address);
	if (code != 0)
		return code;
	const struct config_listener *listener = config_listener_find(load, &hook->address);
	if (listener)
		return config_value_fail(load, &value, ERR_CONFLICT,
		                         " is " TEXT_NAME_FMT ", where this agent itself listens, for " TEXT_NAME_FMT,
		                         TEXT_NAME(value.text), TEXT_NAME(listener->name));
	/* A query may have a token in it: it is not shown. */
	const char *query = memchr(value.text.at, '?', value.text.length);
	hook->url = config_copy(load, str_make(value.text.at, query ? (size_t)(query - value.text.at) : value.text.length));
	hook->target = path.length > 0 ? config_copy(load, path) : STR("/");
	return 0;
}

/* ---- The rest ------------------------------------------------------------------------------------------------------ */

static int read_events(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook)
{
	const char *words[REPLICA_EVENT_KINDS + 1] = {NULL};
	for (int i = 0; i < REPLICA_EVENT_KINDS; i++)
		words[i] = engine_change_name((enum replica_event_kind)i);
	size_t count = config_list_count(entry->value);
	if (count == 0)
		return yaml_fail(&load->yaml, ERR_INVALID, entry->value->start_mark,
		                 "`events` is empty; leave it out for all of them, or name some, such as [operation]");
	hook->events = 0;
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry item = config_list_item(load, entry, i);
		struct config_value value;
		int code = config_value_of(load, &item, "a list of events, such as [operation, conflict]", &value);
		int word = code == 0 ? config_word(load, &value, words) : code;
		if (word < 0)
			return word;
		hook->events |= 1u << word;
	}
	return 0;
}

static int read_secret(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook)
{
	struct config_value value;
	struct buf secret = {0};
	struct err err = {0};
	int code = config_value_of(load, entry, "the path of a file with the secret, such as hook.secret", &value);
	if (code != 0)
		return code;
	code = load->around->read(config_path(load, value.text), true, LIMIT_AGENT_SECRET_BYTES + 2, &secret, &err);
	if (code != 0)
		code = config_value_fail(load, &value, code, ": %s", err.text);
	while (code == 0 && secret.length > 0 && strchr("\r\n", secret.at[secret.length - 1]))
		secret.length--;
	if (code == 0 && (secret.length < 16 || secret.length > LIMIT_AGENT_SECRET_BYTES))
		code = config_value_fail(load, &value, ERR_INVALID,
		                         " names a file that has to have 16 to %d bytes, such as `openssl rand -hex 32` makes",
		                         LIMIT_AGENT_SECRET_BYTES);
	if (code == 0)
		hook->secret = config_copy(load, str_make(secret.at, secret.length));
	if (secret.at)
		explicit_bzero(secret.at, secret.capacity);
	buf_free(&secret);
	return code;
}

static int read_timeout(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook)
{
	struct config_value value;
	struct config_range range = {.least = 100000, .most = TIMEOUT_MOST_S * UINT64_C(1000000)};
	uint64_t us;
	int code = config_value_of(load, entry, "a duration, such as 10s", &value);
	if (code == 0)
		code = config_duration(load, &value, range, &us);
	if (code == 0)
		hook->timeout_ms = us / 1000;
	return code;
}

/* As instances of a service are met: the same keys. Without `tls` the roots of the system are trusted. */
static int read_tls(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook)
{
	struct proxy_service as = {.instances = &hook->address, .instances_count = 1};
	int code = entry->value ? config_instances_tls(load, entry, &as) : 0;
	if (code == 0 && entry->value) {
		hook->tls = as.instances_tls;
		hook->tls_name = as.instances_names[0];
	}
	return code;
}

static int make_tls(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook)
{
	struct err err = {0};
	struct http_tls_options options = {.verify = HTTP_TLS_VERIFY_ALWAYS};
	struct str host = str_of(hook->address.text);
	const char *colon = strrchr(hook->address.text, ':');
	if (colon)
		host.length = (size_t)(colon - host.at);
	if (host.length > 2 && host.at[0] == '[')
		host = str_make(host.at + 1, host.length - 2);
	hook->tls_name = config_copy(load, host).at;
	if (http_tls_new(&hook->tls, &options, &err) != 0)
		return yaml_fail(&load->yaml, err.code, entry->key_node->start_mark, TEXT_NAME_FMT ": %s",
		                 TEXT_NAME(entry->key), err.text);
	return 0;
}

static int read_hook(struct config_load *load, const struct yaml_entry *entry, struct engine_hook *hook)
{
	struct yaml_entry parts[KEYS_COUNT] = {0};
	bool secure = false;
	*hook = (struct engine_hook){.secret = STR(""), .events = UINT32_MAX, .timeout_ms = TIMEOUT_MS};
	int code = yaml_check_mapping(&load->yaml, entry->value, entry->key, hook_example);
	if (code == 0)
		code = config_check_key(load, entry, "a webhook");
	if (code == 0)
		code = config_keys(load, entry->value, hook_keys, parts);
	if (code != 0)
		return code;
	hook->name = config_copy(load, entry->key);
	if (parts[URL].value == NULL)
		return yaml_fail(&load->yaml, ERR_INVALID, entry->key_node->start_mark,
		                 TEXT_NAME_FMT " has no `url`, which every webhook needs, such as `%s`", TEXT_NAME(entry->key),
		                 hook_example);
	code = read_url(load, &parts[URL], hook, &secure);
	if (code == 0 && parts[EVENTS].value)
		code = read_events(load, &parts[EVENTS], hook);
	if (code == 0 && parts[SECRET].value)
		code = read_secret(load, &parts[SECRET], hook);
	if (code == 0 && parts[TIMEOUT].value)
		code = read_timeout(load, &parts[TIMEOUT], hook);
	if (code == 0 && parts[TLS].value && !secure)
		code = yaml_fail(&load->yaml, ERR_INVALID, parts[TLS].key_node->start_mark,
		                 "`tls` is for a `url` that begins with https://, and this one does not");
	if (code == 0)
		code = read_tls(load, &parts[TLS], hook);
	if (code == 0 && secure && !hook->tls)
		code = make_tls(load, entry, hook);
	return code;
}

int config_webhooks(struct config_load *load)
{
	const yaml_node_t *node = load->parts[PART_WEBHOOKS].value;
	struct proxy_config *config = load->config;
	if (node == NULL)
		return 0;
	int code = yaml_check_mapping(&load->yaml, node, STR("webhooks"), hooks_example);
	if (code != 0)
		return code;
	size_t count = yaml_entries_count(node);
	if (count > LIMIT_AGENT_WEBHOOKS)
		return yaml_fail(&load->yaml, ERR_LIMIT, node->start_mark, "%zu webhooks; the limit of an agent is %d", count,
		                 LIMIT_AGENT_WEBHOOKS);
	config->hooks = arena_array(&config->arena, struct engine_hook, count);
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, node, (uint32_t)i);
		code = read_hook(load, &entry, &config->hooks[i]);
		config->hooks_count++;
	}
	return code;
}
