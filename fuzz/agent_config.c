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

static void check_service(const struct proxy_config *config, uint32_t index)
{
	const struct proxy_service *service = &config->services[index];
	const struct scope_view *view = &config->view;
	struct str version;
	CHECK(service->index == index && service->name.length > 0 && text_is_printable(service->name));
	CHECK(service->instances_count >= 1 && service->instances_count <= PROXY_INSTANCES_MOST);
	CHECK(service->carry_count <= PROXY_CARRY_MOST);
	for (uint32_t i = 0; i < service->carry_count; i++) {
		const struct proxy_carry *carry = &service->carry[i];
		bool named = carry->kind == PROXY_CARRY_REQUEST_ID || carry->kind == PROXY_CARRY_APPEND;
		CHECK(named == (carry->header.length > 0));
		CHECK(carry->prefix.length == 0 || carry->kind == PROXY_CARRY_REQUEST_ID);
	}
	CHECK(view->find_service(view->context, service->name) == index);
	CHECK(view->offers(view->context, index, config->site_index, &version) && str_equal(version, service->version));
}

static void check_config(const struct proxy_config *config)
{
	const struct scope_view *view = &config->view;
	CHECK(config->site.length > 0 && text_is_printable(config->site));
	CHECK(config->threads >= 1 && config->threads <= LIMIT_AGENT_THREADS);
	CHECK(config->limits.target_bytes <= config->limits.head_bytes && config->connections >= 1);
	CHECK(config->timeouts.connect_ms > 0 && config->timeouts.header_ms > 0 && config->timeouts.idle_ms > 0);
	CHECK(config->services_count >= 1);
	for (uint32_t i = 0; i < config->services_count; i++)
		check_service(config, i);
	CHECK(view->sites_count == config->peers_count + 1 && (config->peers_count == 0 || config->peer.length > 0));
	CHECK(view->find_site(view->context, config->site) == config->site_index);
	for (uint32_t i = 0; i < config->peers_count; i++) {
		const struct proxy_peer *peer = &config->peers[i];
		CHECK(view->find_site(view->context, peer->name) == peer->site && peer->site == i + 1);
		CHECK(view->rtt_us(view->context, config->site_index, peer->site) == peer->rtt_us);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = size ? str_make((const char *)data, size) : STR("");
	struct agent_options options = {.path = "/nowhere/agent.yaml"};
	struct agent_surroundings around = {.look_up = look_up, .cores = 2};
	struct proxy_config *config = NULL;
	struct err err = {0};
	int code = agent_config_parse(text, &options, &around, &config, &err);
	CHECK((code == 0) == (config != NULL) && err.code == code && (code == 0) == (err.text[0] == '\0'));
	if (config != NULL)
		check_config(config);
	proxy_config_drop(config);
	return 0;
}
