/* cheops site: arguments and help. What the actions do is in site_local.c, site_join.c and site_mesh.c. */
#include "cli/cmd_site.h"

#define OPTION_CONFIG                                                                                                  \
	{                                                                                                                  \
		"config", 'c', "FILE", "the agent's configuration (default: /etc/cheops/agent.yaml)"                           \
	}
#define OPTION_API                                                                                                     \
	{                                                                                                                  \
		"api", 0, "ADDRESS", "where the agent is asked, or set CHEOPS_API"                                             \
	}
#define OPTION_YES                                                                                                     \
	{                                                                                                                  \
		"yes", 'y', NULL, "do not ask whether it is meant; needed where there is no terminal"                          \
	}
#define OPTION_HELP                                                                                                    \
	{                                                                                                                  \
		"help", 'h', NULL, "this help"                                                                                 \
	}

static const struct cli_option init_options[] = {
	OPTION_CONFIG,
	{"root-cert", 0, "FILE", "your own root certificate (PEM), instead of a new one"},
	{"root-key", 0, "FILE", "its private key (PEM)"},
	{"lifetime", 0, "TIME", "of sites' certificates, which renew themselves (default: 90d)"},
	OPTION_HELP,
	{0},
};
static const struct cli_option token_options[] = {
	{"ttl", 0, "TIME", "how long it is good for (default: 1h)"}, OPTION_API, OPTION_CONFIG, OPTION_HELP, {0}};
static const struct cli_option join_options[] = {OPTION_CONFIG, OPTION_HELP, {0}};
static const struct cli_option removal_options[] = {OPTION_YES, OPTION_API, OPTION_CONFIG, OPTION_HELP, {0}};
static const struct cli_option root_options[] = {
	{"force", 0, NULL, "retire: even if a site still has a certificate of the old root"},
	OPTION_YES,
	OPTION_API,
	OPTION_CONFIG,
	OPTION_HELP,
	{0},
};

struct action {
	struct cli_action about;
	int (*run)(const struct site_call *call);
	const struct cli_option *options;
	const char *argument; /* what the help calls it; NULL: there is none */
	bool optional;
};

static const struct action actions[] = {
	{{"init", "make the first site of a mesh",
      "Makes this site the first one of a new mesh: a key and a certificate for the site, and the\n"
      "authority that signs those of all sites. They are written to the folder `state` of the agent's\n"
      "configuration, and never over an identity that is there already.\n"
      "The authority is made, too, unless --root-cert and --root-key give one of yours.\n",
      "  cheops site init\n"
      "  cheops site init -c agent.yaml --lifetime 30d\n"
      "  cheops site init --root-cert ca.pem --root-key ca.key\n"},
     site_init,
     init_options,
     NULL,
     false},
	{{"token", "let one more site in: print the command to run there",
      "Asks the agent for a token with which one more site may join, and prints the command to run\n"
      "there. A token is good once, for a short time, and with NAME only for a site of that name. It\n"
      "carries the fingerprint of the authority: the new site knows whom to trust. Keep it secret.\n",
      "  cheops site token\n"
      "  cheops site token Site2 --ttl 10m\n"
      "  ssh site2.example.org \"sudo $(cheops site token Site2)\"\n"},
     site_token,
     token_options,
     "NAME",
     true},
	{{"join", "join with a token from another site",
      "Joins the mesh that the token comes from: makes a key for this site, has it certified, and\n"
      "writes all to the folder `state` of the agent's configuration. A running agent is told.\n",
      "  cheops site join cheops1_AbCd... -c /etc/cheops/agent.yaml\n"},
     site_join,
     join_options,
     "TOKEN",
     false},
	{{"remove", "forget a site for good: its name is free again",
      "Removes a site: it is shut out everywhere, is no longer shown, and its name may be taken by\n"
      "another. For a site that is gone. Tokens make a new one of it, with a new key.\n",
      "  cheops site remove Site2\n"
      "  cheops site remove Site2 --yes --api 127.0.0.1:8100\n"},
     site_remove,
     removal_options,
     "NAME",
     false},
	{{"revoke", "shut a site out, and keep its name taken",
      "Revokes a site: it is shut out everywhere it is known, within one round of gossip, and stays in\n"
      "the table as `revoked`. For a site whose key may be in the wrong hands.\n",
      "  cheops site revoke Site2\n"
      "  cheops site revoke Site2 --yes\n"},
     site_revoke,
     removal_options,
     "NAME",
     false},
	{{"root", "replace the root that signs: list, rotate, retire",
      "The root is what all sites trust. `rotate` makes a new one: both are trusted, and sites get\n"
      "certificates of the new one as they renew theirs. `retire` ends the trust in the old one, when\n"
      "no site needs it any more. `list` shows them. At the site that has the authority.\n",
      "  cheops site root list\n"
      "  cheops site root rotate\n"
      "  cheops site root retire --yes\n"},
     site_root,
     root_options,
     "list|rotate|retire",
     false},
};
enum { ACTIONS_COUNT = sizeof(actions) / sizeof(actions[0]) };

/* ---- Help ------------------------------------------------------------------------------------------------------- */

static void put_exit_status(struct buf *out)
{
	buf_put(out, STR("\nExit status: 0 fine, 1 refused or no answer, 2 wrong usage.\n"));
}

static void put_rest(struct buf *out)
{
	buf_put(out, STR("\n`cheops site ACTION --help` has the options. `cheops sites` shows all sites.\n"));
	put_exit_status(out);
}

static int help_action(const struct action *action)
{
	struct buf out = {0};
	buf_printf(&out, "%s\nusage: cheops site %s ", action->about.details, action->about.name);
	if (action->argument != NULL)
		buf_printf(&out, action->optional ? "[%s] " : "%s ", action->argument);
	buf_put(&out, STR("[OPTION]...\n\nOptions:\n"));
	cli_options_describe(&out, action->options);
	put_exit_status(&out);
	buf_printf(&out, "\nExamples:\n%s", action->about.examples);
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

static void take_option(struct site_call *call, const char *name, const char *value)
{
	const struct {
		const char *name;
		const char **value;
		bool *flag;
	} places[] = {
		{"config", &call->config, NULL},     {"api", &call->api, NULL},           {"root-cert", &call->root_cert, NULL},
		{"root-key", &call->root_key, NULL}, {"lifetime", &call->lifetime, NULL}, {"ttl", &call->ttl, NULL},
		{"yes", NULL, &call->yes},           {"force", NULL, &call->force},
	};
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (strcmp(name, places[i].name) != 0)
			continue;
		if (places[i].flag != NULL)
			*places[i].flag = true;
		else
			*places[i].value = value;
	}
}

static int take_plain(struct site_call *call, const struct action *action, const char *value)
{
	if (action->argument == NULL)
		return cli_usage(call->command,
		                 "what is " TEXT_NAME_FMT "? The site's name comes from the configuration, -c FILE",
		                 TEXT_NAME(str_of(value)));
	if (call->argument != NULL)
		return cli_usage(call->command, "more than one %s: " TEXT_NAME_FMT " and " TEXT_NAME_FMT, action->argument,
		                 TEXT_NAME(str_of(call->argument)), TEXT_NAME(str_of(value)));
	call->argument = value;
	if (*value == '\0' || !text_is_printable(str_of(value)))
		return cli_usage(call->command, "%s " TEXT_NAME_FMT " is empty, or not printable UTF-8 text", action->argument,
		                 TEXT_NAME(str_of(value)));
	return CLI_FINE;
}

/* What the arguments are taken for. */
struct request {
	struct site_call *call;
	const struct action *action;
};

static int take(void *context, int kind, const char *value)
{
	const struct request *request = context;
	if (kind == CLI_ARGUMENT)
		return take_plain(request->call, request->action, value);
	take_option(request->call, request->action->options[kind].name, value);
	return CLI_FINE;
}

int site_duration_parse(const struct site_call *call, const struct site_duration *duration, int64_t *ms)
{
	static const struct {
		char unit;
		int64_t ms;
	} units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
	*ms = duration->default_ms;
	if (duration->text == NULL)
		return CLI_FINE;
	int64_t number = 0;
	const char *at = duration->text;
	for (; *at >= '0' && *at <= '9' && number <= duration->most_ms; at++)
		number = 10 * number + (*at - '0');
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
		if (at == duration->text || *at != units[i].unit || at[1] != '\0')
			continue;
		*ms = number * units[i].ms;
		if (number >= 1 && number <= duration->most_ms / units[i].ms)
			return CLI_FINE;
		return cli_usage(call->command, "--%s " TEXT_NAME_FMT " is not between 1s and %lldd", duration->option,
		                 TEXT_NAME(str_of(duration->text)), (long long)(duration->most_ms / 86400000));
	}
	return cli_usage(call->command, "--%s " TEXT_NAME_FMT " is no duration; write 45s, 30m, 12h or 90d",
	                 duration->option, TEXT_NAME(str_of(duration->text)));
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static const struct cli_action *action_at(size_t number)
{
	return number < ACTIONS_COUNT ? &actions[number].about : NULL;
}

static int run_action(size_t number, const char *command, int argc, char **argv)
{
	const struct action *action = &actions[number];
	struct cli_arguments arguments = {.command = command, .options = action->options, .argv = argv, .argc = argc};
	struct site_call call = {.command = command};
	struct request request = {&call, action};
	int status = cli_arguments_each(&arguments, take, &request);
	if (status == CLI_HELP)
		return help_action(action);
	if (status == CLI_FINE && action->argument != NULL && !action->optional && call.argument == NULL)
		return cli_usage(command, "%s is missing", action->argument);
	return status == CLI_FINE ? action->run(&call) : status;
}

static int run(int argc, char **argv)
{
	static const struct cli_actions all = {
		.command = "site",
		.purpose = "Makes sites part of a mesh, and ends that.",
		.usage = "ACTION [OPTION]...",
		.question = "what to do?",
		.at = action_at,
		.put_rest = put_rest,
		.run = run_action,
	};
	return cli_actions_run(&all, argc, argv);
}

const struct cli_command cli_command_site = {"site", "make a mesh, let sites in, shut them out", run};
