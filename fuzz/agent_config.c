/* Any bytes as an agent's configuration: they are refused, with a reason that can be shown, or make a configuration that
 * keeps all promises of proxy.h. Names are not looked up. */
#include "agent/config.h"
#include "base/check.h"
#include "base/text.h"

#include <netinet/in.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every text is an address, and equal texts are equal addresses. */
static int look_up(struct http_address *address, struct str text, struct err *err)
{
	if (text.length >= sizeof(address->text))
		return err_set(err, ERR_INVALID, "too long");
	struct sockaddr_in6 *in = (struct sockaddr_in6 *)&address->socket;
	*address = (struct http_address){.length = sizeof(*in)};
	in->sin6_family = AF_INET6;
	memcpy(&in->sin6_addr, text.at, text.length < 16 ? text.length : 16);
	memcpy(address->text, text.at, text.length);
	return 0;
}

/* There are no files. */
static int read_none(const char *path, bool secret, size_t at_most, struct buf *out, struct err *err)
{
	(void)secret;
	(void)at_most;
	(void)out;
	return err_set(err, ERR_NOT_FOUND, "there is no %.64s", path);
}

static void check_policy(const struct proxy_config *config)
{
	const struct proxy_policy *policy = &config->policy;
	CHECK(policy->rules_count <= LIMIT_POLICY_RULES);
	for (uint32_t i = 0; i < policy->rules_count; i++) {
		const struct proxy_rule *rule = &policy->rules[i];
		CHECK(rule->name.length > 0 && text_is_printable(rule->name));
		CHECK(rule->sites_count <= LIMIT_POLICY_SITES && rule->tags_count <= LIMIT_AGENT_TAGS);
		CHECK(rule->rate <= LIMIT_POLICY_RATE && rule->concurrent <= LIMIT_POLICY_RATE);
		CHECK(config->services_count == 64 || rule->services >> config->services_count == 0);
	}
}

static void check_service(const struct proxy_config *config, uint32_t index)
{
	const struct proxy_service *service = &config->services[index];
	CHECK(service->index == index && service->name.length > 0 && text_is_printable(service->name));
	CHECK(service->instances_count >= 1 && service->instances_count <= PROXY_INSTANCES_MOST);
	CHECK(service->carry_count <= PROXY_CARRY_MOST);
	CHECK(service->front_tls == NULL); /* it needs files */
	for (uint32_t i = 0; service->instances_tls != NULL && i < service->instances_count; i++)
		CHECK(service->instances_names[i] != NULL);
	for (uint32_t i = 0; i < service->carry_count; i++) {
		const struct proxy_carry *carry = &service->carry[i];
		bool named = carry->kind == PROXY_CARRY_REQUEST_ID || carry->kind == PROXY_CARRY_APPEND;
		CHECK(named == (carry->header.length > 0));
		CHECK(carry->prefix.length == 0 || carry->kind == PROXY_CARRY_REQUEST_ID);
	}
}

/* What they are asked for can be put into a request line, and what is shown of them has no query, which may be a secret. */
static void check_hook(const struct engine_hook *hook)
{
	CHECK(hook->name.length > 0 && text_is_printable(hook->name));
	CHECK(hook->address.length > 0 && hook->events != 0 && hook->timeout_ms >= 100);
	CHECK(hook->target.length > 0 && hook->target.at[0] == '/');
	for (size_t i = 0; i < hook->target.length; i++)
		CHECK(hook->target.at[i] > ' ' && hook->target.at[i] < 0x7f);
	CHECK(hook->url.length > 0 && hook->url.length <= LIMIT_AGENT_URL_BYTES && text_is_printable(hook->url));
	CHECK(memchr(hook->url.at, '?', hook->url.length) == NULL);
	CHECK(hook->secret.length == 0); /* it needs a file */
	CHECK((hook->tls != NULL) == (hook->tls_name != NULL));
}

static void check_config(const struct proxy_config *config)
{
	CHECK(config->site.length > 0 && text_is_printable(config->site));
	CHECK(config->threads >= 1 && config->threads <= LIMIT_AGENT_THREADS);
	CHECK(config->limits.target_bytes <= config->limits.head_bytes && config->connections >= 1);
	CHECK(config->timeouts.connect_ms > 0 && config->timeouts.header_ms > 0 && config->timeouts.idle_ms > 0);
	CHECK(config->services_count >= 1);
	for (uint32_t i = 0; i < config->services_count; i++)
		check_service(config, i);
	check_policy(config);
	CHECK(config->state && config->state[0] != '\0');
	CHECK(config->advertise.family == 0 || config->peer.length > 0);
	CHECK(config->tags_count <= LIMIT_AGENT_TAGS);
	for (uint32_t i = 0; i < config->tags_count; i++)
		CHECK(text_is_printable(config->tags[i].key) && text_is_printable(config->tags[i].value));
	CHECK(config->hooks_count <= LIMIT_AGENT_WEBHOOKS);
	for (uint32_t i = 0; i < config->hooks_count; i++)
		check_hook(&config->hooks[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = size ? str_make((const char *)data, size) : STR("");
	struct agent_options options = {.path = "/nowhere/agent.yaml"};
	struct agent_surroundings around = {.look_up = look_up, .read = read_none, .cores = 2};
	struct proxy_config *config = NULL;
	struct err err = {0};
	int code = agent_config_parse(text, &options, &around, &config, &err);
	CHECK((code == 0) == (config != NULL) && err.code == code && (code == 0) == (err.text[0] == '\0'));
	if (config != NULL)
		check_config(config);
	proxy_config_drop(config);
	return 0;
}
