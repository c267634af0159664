/* What commands need to know of the agent's configuration, and where the agent is asked. */
#include "cli/client.h"

#include "agent/config.h"

#include <stdlib.h>
#include <unistd.h>

int cli_settings_read(const char *path, struct cli_settings *settings)
{
	struct agent_options options = {.path = path};
	struct proxy_config *config;
	struct err err = {0};
	*settings = (struct cli_settings){0};
	agent_overrides_add_environment(&options.overrides);
	if (agent_config_load(&options, &config, &err) != 0) {
		cli_say("%s", err.text);
		return CLI_USAGE;
	}
	struct str site = utf8_truncate(config->site, LIMIT_AGENT_NAME_BYTES);
	memcpy(settings->site, site.at, site.length);
	buf_put(&settings->state, str_of(config->state));
	settings->api = config->api;
	proxy_config_drop(config);
	return CLI_FINE;
}

void cli_settings_free(struct cli_settings *settings)
{
	buf_free(&settings->state);
}

static int parse_address(const char *from, const char *text, struct http_address *address)
{
	struct err err = {0};
	if (http_address_parse(address, str_of(text), &err) == 0)
		return CLI_FINE;
	cli_say("%s: %s", from, err.text);
	return CLI_USAGE;
}

int cli_api_find(const char *api, const char *config, struct http_address *address)
{
	const char *variable = getenv("CHEOPS_API");
	if (api != NULL)
		return parse_address("--api", api, address);
	if (variable != NULL && *variable != '\0')
		return parse_address("CHEOPS_API", variable, address);
	/* Not everybody who may ask the agent may read its file. */
	if (config == NULL && access(CLI_CONFIG_DEFAULT, R_OK) != 0)
		return parse_address("the default", CLI_API_DEFAULT, address);
	struct cli_settings settings;
	int status = cli_settings_read(config != NULL ? config : CLI_CONFIG_DEFAULT, &settings);
	if (status == CLI_FINE) {
		*address = settings.api;
		cli_settings_free(&settings);
	} else if (config == NULL) {
		cli_say("so it is not known where the agent is asked; say it with --api ADDRESS");
	}
	return status;
}
