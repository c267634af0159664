/* cheops agent: runs a site, or only checks its configuration. */
#include "agent/agent.h"

#include "agent/config.h"
#include "cli/cli.h"

enum {
	OPTION_CONFIG,
	OPTION_CHECK,
	OPTION_SITE,
	OPTION_API,
	OPTION_PEER,
	OPTION_ADVERTISE,
	OPTION_STATE,
	OPTION_APPLICATION,
	OPTION_THREADS,
	OPTION_LOG,
	OPTION_ALLOW_CORE,
	OPTION_HELP
};

static const struct cli_option options[] = {
	[OPTION_CONFIG] = {"config", 'c', "FILE", "the configuration (default: /etc/cheops/agent.yaml)"},
	[OPTION_CHECK] = {"check", 0, NULL, "only check the configuration"},
	[OPTION_SITE] = {"site", 0, "NAME", "instead of `site` in the file, or set CHEOPS_SITE"},
	[OPTION_API] = {"api", 0, "ADDRESS", "instead of `api`, or set CHEOPS_API"},
	[OPTION_PEER] = {"peer", 0, "ADDRESS", "instead of `peer`, or set CHEOPS_PEER"},
	[OPTION_ADVERTISE] = {"advertise", 0, "ADDRESS", "instead of `advertise`, or set CHEOPS_ADVERTISE"},
	[OPTION_STATE] = {"state", 0, "FOLDER", "instead of `state`, or set CHEOPS_STATE"},
	[OPTION_APPLICATION] = {"application", 0, "NAME", "instead of `application`, or set CHEOPS_APPLICATION"},
	[OPTION_THREADS] = {"threads", 0, "N", "instead of `threads`, or set CHEOPS_THREADS"},
	[OPTION_LOG] = {"log", 0, "LEVEL", "instead of `log`, or set CHEOPS_LOG"},
	[OPTION_ALLOW_CORE] = {"allow-core", 0, NULL, "leave a core when it crashes; there are secrets in it"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

struct agent_call {
	struct agent_options options;
	bool check;
};

static int help(void)
{
	struct buf out = {0};
	buf_put(&out,
	        STR("Runs the agent of a site: it takes the requests to the site's services, reads their scopes, and\n"
	            "has them run where they say.\n"
	            "\n"
	            "usage: cheops agent [OPTION]...\n"
	            "\n"
	            "Options:\n"));
	cli_options_describe(&out, options);
	buf_put(&out,
	        STR("\nA flag counts more than the environment, which counts more than the file.\n"
	            "SIGHUP makes the agent read its file again: without dropping a request, or it is refused whole.\n"
	            "SIGTERM and SIGINT stop it, once the requests under way have ended or their time is over.\n"
	            "Exit status: 0 stopped, or the file is fine; 1 refused, or it could not run; 2 wrong usage.\n"
	            "\n"
	            "Examples:\n"
	            "  cheops agent -c agent.yaml\n"
	            "  cheops agent -c agent.yaml --check\n"
	            "  CHEOPS_LOG=debug cheops agent -c agent.yaml --threads 1\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

static void override(struct agent_call *call, enum agent_option option, const char *from, const char *value)
{
	call->options.overrides.of[option] = (struct agent_override){.value = value, .from = from};
}

static int take(void *context, int kind, const char *value)
{
	struct agent_call *call = context;
	switch (kind) {
	case OPTION_CONFIG: call->options.path = value; break;
	case OPTION_CHECK: call->check = true; break;
	case OPTION_SITE: override(call, AGENT_SITE, "--site", value); break;
	case OPTION_API: override(call, AGENT_API, "--api", value); break;
	case OPTION_PEER: override(call, AGENT_PEER, "--peer", value); break;
	case OPTION_ADVERTISE: override(call, AGENT_ADVERTISE, "--advertise", value); break;
	case OPTION_STATE: override(call, AGENT_STATE, "--state", value); break;
	case OPTION_APPLICATION: override(call, AGENT_APPLICATION, "--application", value); break;
	case OPTION_THREADS: override(call, AGENT_THREADS, "--threads", value); break;
	case OPTION_LOG: override(call, AGENT_LOG, "--log", value); break;
	case OPTION_ALLOW_CORE: call->options.allow_core = true; break;
	default:
		return cli_usage("agent", "what is " TEXT_NAME_FMT "? The configuration is given as -c FILE",
		                 TEXT_NAME(str_of(value)));
	}
	return CLI_FINE;
}

/* ---- Checking --------------------------------------------------------------------------------------------------- */

static void put_count(struct buf *out, uint32_t count, const char *noun)
{
	buf_printf(out, ", %u %s%s", count, noun, count == 1 ? "" : "s");
}

static int check(const struct agent_options *agent)
{
	struct err err = {0};
	struct proxy_config *config;
	if (agent_config_load(agent, &config, &err) != 0) {
		cli_say("%s", err.text);
		return CLI_REFUSED;
	}
	if (agent_mesh_check(config, &err) != 0) {
		cli_say("%s", err.text);
		proxy_config_drop(config);
		return CLI_REFUSED;
	}
	struct buf out = {0};
	text_put_harmless(&out, str_of(agent->path));
	buf_printf(&out, ": ok: site %.*s", STR_FMT(config->site));
	put_count(&out, config->services_count, "service");
	buf_put_char(&out, '\n');
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	proxy_config_drop(config);
	return status;
}

static int run(int argc, char **argv)
{
	struct agent_call call = {.options.path = "/etc/cheops/agent.yaml"};
	struct cli_arguments arguments = {.command = "agent", .options = options, .argv = argv + 1, .argc = argc - 1};
	int status = cli_arguments_each(&arguments, take, &call);
	if (status != CLI_FINE)
		return status == CLI_HELP ? help() : status;
	agent_overrides_add_environment(&call.options.overrides);
	return call.check ? check(&call.options) : agent_run(&call.options);
}

const struct cli_command cli_command_agent = {"agent", "run the agent of a site", run};
