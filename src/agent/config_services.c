/* services: where each service is met, where it really is, and how a scope follows its calls. */
#include "agent/config_int.h"

_Static_assert((int)LIMIT_AGENT_INSTANCES <= (int)PROXY_INSTANCES_MOST, "instances");

enum { FRONT, INSTANCES, VERSION, CARRY, FRONT_TLS, INSTANCES_TLS, CREDENTIAL, KEYS_COUNT };
static const char *const service_keys[] = {
	[FRONT] = "front",         [INSTANCES] = "instances",         [VERSION] = "version",       [CARRY] = "carry",
	[FRONT_TLS] = "front_tls", [INSTANCES_TLS] = "instances_tls", [CREDENTIAL] = "credential", NULL};

static const char service_example[] = "compute: {front: 127.0.0.1:8081, instances: 127.0.0.1:9081}";
static const char services_example[] = "services: {compute: {front: 127.0.0.1:8081, instances: 127.0.0.1:9081}}";

/* ---- Instances -------------------------------------------------------------------------------------------------- */

static int read_instance(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service)
{
	struct config_value value;
	struct http_address *address = &service->instances[service->instances_count];
	int code = config_value_of(load, entry, "a list of addresses, such as [127.0.0.1:9081]", &value);
	if (code == 0)
		code = config_address(load, &value, address);
	if (code != 0)
		return code;
	const struct config_listener *listener = config_listener_find(load, address);
	if (listener != NULL)
		return config_value_fail(load, &value, ERR_CONFLICT,
		                         " has " TEXT_NAME_FMT ", where this agent itself listens, for " TEXT_NAME_FMT
		                         ": requests would go round in circles",
		                         TEXT_NAME(value.text), TEXT_NAME(listener->name));
	for (uint32_t i = 0; i < service->instances_count; i++) {
		if (config_same_address(&service->instances[i], address))
			return config_value_fail(load, &value, ERR_CONFLICT, " has " TEXT_NAME_FMT " twice; once is enough",
			                         TEXT_NAME(value.text));
	}
	service->instances_count++;
	return 0;
}

static int read_instances(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service)
{
	size_t count = config_list_count(entry->value);
	if (count == 0 || count > LIMIT_AGENT_INSTANCES)
		return yaml_fail(&load->yaml, count == 0 ? ERR_INVALID : ERR_LIMIT, entry->value->start_mark,
		                 "`instances` has %zu addresses; a service has 1 to %d instances", count,
		                 LIMIT_AGENT_INSTANCES);
	service->instances = arena_array(&load->config->arena, struct http_address, count);
	int code = 0;
	for (size_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry item = config_list_item(load, entry, i);
		code = read_instance(load, &item, service);
	}
	return code;
}

/* ---- How the scope follows -------------------------------------------------------------------------------------- */

#define CARRY_ACCEPTED                                                                                                 \
	"accepted are `header`, `baggage`, `traceparent`, `request-id:HEADER`, `request-id:HEADER:PREFIX`, "               \
	"`append:HEADER`, `append:HEADER:SERVICE` and `osprofiler:FILE`"

static const char *const carry_words[] = {
	[PROXY_CARRY_HEADER] = "header",           [PROXY_CARRY_BAGGAGE] = "baggage",
	[PROXY_CARRY_TRACEPARENT] = "traceparent", [PROXY_CARRY_REQUEST_ID] = "request-id",
	[PROXY_CARRY_APPEND] = "append",           [PROXY_CARRY_OSPROFILER] = "osprofiler"};
enum { CARRY_WORDS = sizeof(carry_words) / sizeof(carry_words[0]) };

/* Takes what stands before the next colon, and that colon. */
static struct str next_part(struct str *rest)
{
	const char *colon = rest->length > 0 ? memchr(rest->at, ':', rest->length) : NULL;
	struct str part = str_make(rest->at, colon != NULL ? (size_t)(colon - rest->at) : rest->length);
	size_t taken = part.length + (colon != NULL);
	*rest = str_make(rest->at + taken, rest->length - taken);
	return part;
}

/* RFC 9110, 5.6.2. */
static bool is_token(struct str text)
{
	for (size_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
		if (!plain && (c == '\0' || strchr("!#$%&'*+-.^_`|~", c) == NULL))
			return false;
	}
	return text.length > 0;
}

/* Fields that HTTP or Cheops itself gives a meaning to. */
static bool is_taken(struct str name)
{
	static const char *const names[] = {"Host",
	                                    "Connection",
	                                    "Keep-Alive",
	                                    "Proxy-Connection",
	                                    "TE",
	                                    "Trailer",
	                                    "Transfer-Encoding",
	                                    "Upgrade",
	                                    "Expect",
	                                    "Content-Length",
	                                    "Content-Type",
	                                    "Via",
	                                    "Date",
	                                    "Max-Forwards",
	                                    "Forwarded",
	                                    "X-Forwarded-For",
	                                    "X-Forwarded-Host",
	                                    "X-Forwarded-Proto",
	                                    "Scope",
	                                    "X-Scope",
	                                    "Baggage",
	                                    "Traceparent",
	                                    "Cheops-Hop",
	                                    "Cheops-Explain"};
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (str_equal_nocase(name, str_of(names[i])))
			return true;
	}
	return false;
}

static int check_header(struct config_load *load, const struct config_value *value, const struct proxy_carry *carry)
{
	if (!is_token(carry->header) || carry->header.length > LIMIT_AGENT_HEADER_BYTES)
		return config_value_fail(load, value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT
		                         "; after `%s:` comes the name of a header, of at most %d bytes, as in `%s`",
		                         TEXT_NAME(value->text), carry_words[carry->kind], LIMIT_AGENT_HEADER_BYTES,
		                         carry->kind == PROXY_CARRY_APPEND ? "append:X-Auth-Token" : "request-id:X-Request-Id");
	if (is_taken(carry->header))
		return config_value_fail(load, value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT ", but the header " TEXT_NAME_FMT
		                         " has a meaning of its own; accepted is one that the service only passes on",
		                         TEXT_NAME(value->text), TEXT_NAME(carry->header));
	if (carry->prefix.length > LIMIT_AGENT_PREFIX_BYTES || (carry->prefix.length > 0 && !is_token(carry->prefix)))
		return config_value_fail(load, value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT
		                         "; the prefix of a request id has at most %d letters, digits and marks such as `-`, "
		                         "as in `request-id:X-OpenStack-Request-ID:req-`",
		                         TEXT_NAME(value->text), LIMIT_AGENT_PREFIX_BYTES);
	return 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* As OpenStack's services have them: separated by commas, with white space that does not count. False: there are too many. */
static bool split_keys(struct config_load *load, struct str text, struct str keys[LIMIT_AGENT_KEYS], uint32_t *count)
{
	*count = 0;
	while (text.length > 0) {
		const char *comma = memchr(text.at, ',', text.length);
		struct str key = str_make(text.at, comma != NULL ? (size_t)(comma - text.at) : text.length);
		size_t taken = key.length + (comma != NULL);
		text = str_make(text.at + taken, text.length - taken);
		while (key.length > 0 && is_blank(key.at[0]))
			key = str_make(key.at + 1, key.length - 1);
		while (key.length > 0 && is_blank(key.at[key.length - 1]))
			key.length--;
		if (key.length == 0)
			continue;
		if (*count == LIMIT_AGENT_KEYS)
			return false;
		keys[(*count)++] = config_copy(load, key);
	}
	return true;
}

static int read_keys(struct config_load *load, const struct config_value *value, struct str path,
                     struct proxy_keys *keys)
{
	struct buf text = {0};
	struct err err = {0};
	if (path.length == 0)
		return config_value_fail(load, value, ERR_INVALID,
		                         " is " TEXT_NAME_FMT
		                         "; after `osprofiler:` comes the path of a file with the keys of the "
		                         "service (`hmac_keys`), as in `osprofiler:osprofiler.keys`",
		                         TEXT_NAME(value->text));
	int code = load->around->read(config_path(load, path), true, LIMIT_AGENT_SECRET_BYTES + 1, &text, &err);
	if (code != 0)
		code = config_value_fail(load, value, code, ": %s", err.text);
	struct str *found = arena_array(&load->config->arena, struct str, LIMIT_AGENT_KEYS);
	bool fits =
		code == 0 && text.length <= LIMIT_AGENT_SECRET_BYTES && split_keys(load, buf_str(&text), found, &keys->count);
	if (code == 0 && (!fits || keys->count == 0))
		code = config_value_fail(
			load, value, ERR_INVALID,
			" names a file that has to have 1 to %d keys, separated by commas, of %d bytes together: those "
			"of the service, as `hmac_keys` in its configuration",
			LIMIT_AGENT_KEYS, LIMIT_AGENT_SECRET_BYTES);
	keys->at = found;
	if (text.at)
		explicit_bzero(text.at, text.capacity);
	buf_free(&text);
	return code;
}

/* The calls have to come to a front of this agent. */
static int check_called(struct config_load *load, const struct config_value *value, struct str service)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, service);
	for (uint32_t i = 0; i < load->config->services_count; i++) {
		if (str_equal(load->config->services[i].name, service))
			return 0;
		suggest_offer(&suggest, load->config->services[i].name);
	}
	return config_value_fail(load, value, ERR_NOT_FOUND,
	                         " is " TEXT_NAME_FMT "; behind the header comes the service that it is forwarded to, and "
	                         "this agent has no service " TEXT_NAME_FMT "%s",
	                         TEXT_NAME(value->text), TEXT_NAME(service), text_did_you_mean(&suggest, meant));
}

static int parse_carry(struct config_load *load, const struct config_value *value, struct proxy_carry *carry)
{
	struct str rest = value->text, word = next_part(&rest);
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	uint32_t kind = 0;
	while (kind < CARRY_WORDS && !str_equal(word, str_of(carry_words[kind])))
		kind++;
	bool named = kind == PROXY_CARRY_REQUEST_ID || kind == PROXY_CARRY_APPEND || kind == PROXY_CARRY_OSPROFILER;
	if (kind == CARRY_WORDS || (!named && word.length < value->text.length)) {
		suggest_start(&suggest, word);
		for (uint32_t i = 0; i < CARRY_WORDS; i++)
			suggest_offer(&suggest, str_of(carry_words[i]));
		return config_value_fail(load, value, ERR_INVALID, " is " TEXT_NAME_FMT "; " CARRY_ACCEPTED "%s",
		                         TEXT_NAME(value->text), text_did_you_mean(&suggest, meant));
	}
	*carry = (struct proxy_carry){.kind = kind, .header = STR(""), .prefix = STR(""), .service = STR("")};
	if (!named)
		return 0;
	if (kind == PROXY_CARRY_OSPROFILER)
		return read_keys(load, value, rest, &carry->keys);
	carry->header = next_part(&rest);
	bool further = word.length + 1 + carry->header.length < value->text.length;
	*(kind == PROXY_CARRY_APPEND ? &carry->service : &carry->prefix) = rest;
	int code = check_header(load, value, carry);
	if (code == 0 && kind == PROXY_CARRY_APPEND && further)
		code = check_called(load, value, carry->service);
	carry->header = config_copy(load, carry->header);
	carry->prefix = config_copy(load, carry->prefix);
	carry->service = config_copy(load, carry->service);
	return code;
}

static int read_carry(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service)
{
	service->carry_count = 0;
	size_t count = config_list_count(entry->value);
	if (count > PROXY_CARRY_MOST)
		return yaml_fail(&load->yaml, ERR_LIMIT, entry->value->start_mark, "`carry` has %zu ways; the limit is %d",
		                 count, PROXY_CARRY_MOST);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry item = config_list_item(load, entry, i);
		struct proxy_carry *carry = &service->carry[service->carry_count];
		struct config_value value;
		int code = config_value_of(
			load, &item, "a list of single values, such as [header, baggage], or [] if nothing is forwarded", &value);
		if (code == 0)
			code = parse_carry(load, &value, carry);
		if (code != 0)
			return code;
		for (uint32_t j = 0; j < service->carry_count; j++) {
			if (service->carry[j].kind == carry->kind && str_equal_nocase(service->carry[j].header, carry->header))
				return config_value_fail(load, &value, ERR_CONFLICT, " has " TEXT_NAME_FMT " twice; once is enough",
				                         TEXT_NAME(value.text));
		}
		service->carry_count++;
	}
	return 0;
}

/* What most services of today do: their HTTP libraries and middleware forward baggage, or the operator's list of headers. */
static void default_carry(struct proxy_service *service)
{
	static const enum proxy_carry_kind kinds[] = {PROXY_CARRY_HEADER, PROXY_CARRY_BAGGAGE};
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		service->carry[service->carry_count++] =
			(struct proxy_carry){.kind = kinds[i], .header = STR(""), .prefix = STR(""), .service = STR("")};
}

/* ---- Services --------------------------------------------------------------------------------------------------- */

/* ---- Credentials ------------------------------------------------------------------------------------------------ */

/* The value of a header, as a file has it; a newline at its end does not count. */
static int read_secret(struct config_load *load, const struct config_value *header, const struct config_value *file,
                       struct proxy_service *service)
{
	struct buf value = {0}, line = {0};
	struct err err = {0};
	int code = load->around->read(config_path(load, file->text), true, LIMIT_AGENT_CREDENTIAL_BYTES + 1, &value, &err);
	if (code != 0)
		code = config_value_fail(load, file, code, ": %s", err.text);
	while (value.length > 0 && strchr("\r\n", value.at[value.length - 1]))
		value.length--;
	bool plain = value.length > 0 && value.length <= LIMIT_AGENT_CREDENTIAL_BYTES;
	for (size_t i = 0; plain && i < value.length; i++)
		plain = (unsigned char)value.at[i] >= ' ' && value.at[i] != 0x7f;
	if (code == 0 && !plain)
		code = config_value_fail(load, file, ERR_INVALID,
		                         " names a file that has to have one line of 1 to %d bytes: the value of the header",
		                         LIMIT_AGENT_CREDENTIAL_BYTES);
	if (code == 0) {
		buf_printf(&line, "%.*s: %.*s\r\n", STR_FMT(header->text), (int)value.length, value.at);
		service->credential = config_copy(load, buf_str(&line));
		explicit_bzero(line.at, line.length);
	}
	if (value.at)
		explicit_bzero(value.at, value.length);
	buf_free(&value);
	buf_free(&line);
	return code;
}

static int read_credential(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service)
{
	enum { HEADER, FILE_NAME, COUNT };
	static const char *const keys[] = {[HEADER] = "header", [FILE_NAME] = "file", NULL};
	static const char example[] = "credential: {header: Authorization, file: agent.token}";
	struct yaml_entry found[COUNT] = {0};
	struct config_value header, file;
	int code = yaml_check_mapping(&load->yaml, entry->value, STR("credential"), example);
	if (code == 0)
		code = config_keys(load, entry->value, keys, found);
	if (code == 0 && (found[HEADER].value == NULL || found[FILE_NAME].value == NULL))
		return yaml_fail(&load->yaml, ERR_INVALID, entry->key_node->start_mark,
		                 "`credential` has a `header` and a `file`, such as `%s`", example);
	if (code == 0)
		code = config_value_of(load, &found[HEADER], "the name of a header, such as Authorization", &header);
	if (code == 0)
		code = config_value_of(load, &found[FILE_NAME], "the path of a file, such as agent.token", &file);
	if (code == 0 && (!is_token(header.text) || header.text.length > LIMIT_AGENT_HEADER_BYTES || is_taken(header.text)))
		return config_value_fail(load, &header, ERR_INVALID,
		                         " is " TEXT_NAME_FMT "; it has to be the name of a header that the service reads "
		                         "credentials from, such as Authorization",
		                         TEXT_NAME(header.text));
	return code == 0 ? read_secret(load, &header, &file, service) : code;
}

static int missing(struct config_load *load, const struct yaml_entry *entry, const char *key, const char *example)
{
	return yaml_fail(&load->yaml, ERR_INVALID, entry->key_node->start_mark,
	                 TEXT_NAME_FMT " has no `%s`, which every service needs, such as `%s`", TEXT_NAME(entry->key), key,
	                 example);
}

/* All fronts first, so that an instance which is one of them is seen. */
static int read_front(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service,
                      struct yaml_entry parts[KEYS_COUNT])
{
	struct config_value value;
	int code = yaml_check_mapping(&load->yaml, entry->value, entry->key, service_example);
	if (code == 0)
		code = config_check_key(load, entry, "a service");
	if (code == 0)
		code = config_keys(load, entry->value, service_keys, parts);
	if (code == 0 && parts[FRONT].value == NULL)
		return missing(load, entry, "front", "front: 127.0.0.1:8081");
	if (code == 0)
		code = config_value_of(load, &parts[FRONT], "an address, such as 127.0.0.1:8081", &value);
	if (code != 0)
		return code;
	service->name = config_copy(load, entry->key);
	return config_listen(load, &value, service->name, &service->front);
}

static int read_rest(struct config_load *load, const struct yaml_entry *entry, struct proxy_service *service,
                     const struct yaml_entry parts[KEYS_COUNT])
{
	if (parts[INSTANCES].value == NULL)
		return missing(load, entry, "instances", "instances: [127.0.0.1:9081]");
	int code = read_instances(load, &parts[INSTANCES], service);
	service->version = STR("");
	if (code == 0 && parts[VERSION].value != NULL) {
		struct config_value value;
		code = config_value_of(load, &parts[VERSION], "a version, such as \"2.1\"", &value);
		if (code == 0)
			code = config_name(load, &value, &service->version);
	}
	if (parts[CARRY].value == NULL)
		default_carry(service);
	else if (code == 0)
		code = read_carry(load, &parts[CARRY], service);
	if (code == 0 && parts[FRONT_TLS].value != NULL)
		code = config_front_tls(load, &parts[FRONT_TLS], service);
	if (code == 0 && parts[INSTANCES_TLS].value != NULL)
		code = config_instances_tls(load, &parts[INSTANCES_TLS], service);
	service->credential = STR("");
	if (code == 0 && parts[CREDENTIAL].value != NULL)
		code = read_credential(load, &parts[CREDENTIAL], service);
	return code;
}

int config_services(struct config_load *load)
{
	const yaml_node_t *node = load->parts[PART_SERVICES].value;
	if (node == NULL)
		return yaml_fail(&load->yaml, ERR_INVALID, load->root->start_mark,
		                 "there is no `services`; an agent has at least one, such as `%s`", services_example);
	int code = yaml_check_mapping(&load->yaml, node, STR("services"), services_example);
	if (code != 0)
		return code;
	size_t count = yaml_entries_count(node);
	if (count == 0)
		return yaml_fail(&load->yaml, ERR_INVALID, node->start_mark,
		                 "`services` is empty; an agent has at least one, such as `%s`", services_example);
	if (count > LIMIT_AGENT_SERVICES)
		return yaml_fail(&load->yaml, ERR_LIMIT, node->start_mark, "%zu services; the limit of an agent is %d", count,
		                 LIMIT_AGENT_SERVICES);
	struct proxy_config *config = load->config;
	struct yaml_entry(*parts)[KEYS_COUNT] = (void *)arena_array(&config->arena, struct yaml_entry, count * KEYS_COUNT);
	config->services = arena_array(&config->arena, struct proxy_service, count);
	config->services_count = (uint32_t)count;
	for (uint32_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, node, i);
		config->services[i].index = i;
		code = read_front(load, &entry, &config->services[i], parts[i]);
	}
	for (uint32_t i = 0; code == 0 && i < count; i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, node, i);
		code = read_rest(load, &entry, &config->services[i], parts[i]);
	}
	return code;
}
