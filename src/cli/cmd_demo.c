/* cheops demo: arguments and help. */
#include "cli/demo.h"

#include <errno.h>
#include <stdlib.h>

enum {
	OPTION_SITES,
	OPTION_BASE_PORT,
	OPTION_DIR,
	OPTION_KEEP,
	OPTION_FORWARD,
	OPTION_SAMPLE,
	OPTION_JSON,
	OPTION_NO_UI,
	OPTION_HELP
};

enum { DEFAULT_SITES = 3, DEFAULT_BASE_PORT = 8100, LEAST_PORT = 1024, MOST_PORT = 65535 };

static const struct cli_option options[] = {
	[OPTION_SITES] = {"sites", 0, "N", "how many sites, 1 to 20 (default: 3)"},
	[OPTION_BASE_PORT] = {"base-port", 0, "P", "the first port (default: 8100); each site takes 14 of a hundred"},
	[OPTION_DIR] = {"dir", 0, "DIR", "keep state and logs there (default: a temporary folder)"},
	[OPTION_KEEP] = {"keep", 0, NULL, "do not remove the temporary folder"},
	[OPTION_FORWARD] = {"forward", 0, "MODE", "what services pass on to the calls that they make"},
	[OPTION_SAMPLE] = {"sample", 0, "PATH", "the sample application (default: beside cheops, or in PATH)"},
	[OPTION_JSON] = {"json", 0, NULL, "print one line of JSON once all is ready, and nothing else"},
	[OPTION_NO_UI] = {"no-ui", 0, NULL, "without a dashboard"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

static int help(void)
{
	struct buf out = {0};
	buf_put(&out, STR("Starts sites on this machine: each has an agent, and a copy of a sample application with the\n"
	                  "services compute, image and network. Says what to try, and runs until Ctrl-C.\n"
	                  "\n"
	                  "usage: cheops demo [OPTION]...\n"
	                  "\n"
	                  "Options:\n"));
	cli_options_describe(&out, options);
	buf_put(&out, STR("\nMODE is one of headers, baggage, trace, request-id, header=X-Auth-Token and none; the agents\n"
	                  "are configured to fit. Without it services pass headers on.\n"
	                  "Ports of Site1, from P: P API, P+1 compute, P+2 image, P+3 network, P+4 for other agents,\n"
	                  "P+11 to P+13 the services themselves; Site2 has the same from P+100, and so on.\n"
	                  "Exit status: 0 stopped, 1 it could not start or a process ended by itself, 2 wrong usage.\n"
	                  "\n"
	                  "Examples:\n"
	                  "  cheops demo\n"
	                  "  cheops demo --sites 5 --base-port 20000 --dir ~/demo\n"
	                  "  cheops demo --json\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

static int take_number(const char *name, const char *value, unsigned most, unsigned *number)
{
	char *end;
	errno = 0;
	long given = value[0] >= '0' && value[0] <= '9' ? strtol(value, &end, 10) : -1;
	if (given < 0 || *end != '\0' || errno != 0 || given > (long)most)
		return cli_usage("demo", "--%s is " TEXT_NAME_FMT "; it has to be a whole number of at most %u", name,
		                 TEXT_NAME(str_of(value)), most);
	*number = (unsigned)given;
	return CLI_FINE;
}

static int take_forward(struct demo_options *demo, const char *value)
{
	if (demo_carry_of(value) == NULL)
		return cli_usage("demo",
		                 "--forward is " TEXT_NAME_FMT "; accepted are headers, baggage, trace, request-id, "
		                 "header=X-Auth-Token and none",
		                 TEXT_NAME(str_of(value)));
	demo->forward = value;
	return CLI_FINE;
}

static int take_path(const char *name, const char *value, const char **path)
{
	if (value[0] == '\0')
		return cli_usage("demo", "--%s is empty; it has to be a path", name);
	*path = value;
	return CLI_FINE;
}

static int take(void *context, int kind, const char *value)
{
	struct demo_options *demo = context;
	switch (kind) {
	case CLI_ARGUMENT:
		return cli_usage("demo", "what is " TEXT_NAME_FMT "? The demo takes options only", TEXT_NAME(str_of(value)));
	case OPTION_SITES: return take_number("sites", value, LIMIT_DEMO_SITES, &demo->sites_count);
	case OPTION_BASE_PORT: return take_number("base-port", value, MOST_PORT, &demo->base_port);
	case OPTION_DIR: return take_path("dir", value, &demo->dir);
	case OPTION_SAMPLE: return take_path("sample", value, &demo->sample);
	case OPTION_FORWARD: return take_forward(demo, value);
	case OPTION_KEEP: demo->keep = true; break;
	case OPTION_JSON: demo->json = true; break;
	default: break; /* --no-ui: there is no dashboard to leave out yet */
	}
	return CLI_FINE;
}

static int check_options(const struct demo_options *demo)
{
	if (demo->sites_count == 0)
		return cli_usage("demo", "--sites is `0`; there has to be at least one");
	unsigned most = MOST_PORT - DEMO_SITE_PORTS * (demo->sites_count - 1) - DEMO_PORT_LAST;
	if (demo->base_port < LEAST_PORT || demo->base_port > most)
		return cli_usage("demo", "--base-port is `%u`; with %u site%s it has to be from %d to %u", demo->base_port,
		                 demo->sites_count, demo->sites_count == 1 ? "" : "s", LEAST_PORT, most);
	return CLI_FINE;
}

static int run(int argc, char **argv)
{
	struct demo_options demo = {.sites_count = DEFAULT_SITES, .base_port = DEFAULT_BASE_PORT};
	struct cli_arguments arguments = {.command = "demo", .options = options, .argv = argv + 1, .argc = argc - 1};
	int status = cli_arguments_each(&arguments, take, &demo);
	if (status != CLI_FINE)
		return status == CLI_HELP ? help() : status;
	status = check_options(&demo);
	return status == CLI_FINE ? demo_run(&demo) : status;
}

const struct cli_command cli_command_demo = {"demo", "run sites on this machine, to try things with", run};
