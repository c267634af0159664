/* cheops: finds the subcommand and hands over. */
#include "cli/cli.h"

#include <signal.h>

static const struct cli_command *const commands[] = {
	&cli_command_agent,     &cli_command_app,   &cli_command_demo,    &cli_command_deps,      &cli_command_get,
	&cli_command_openstack, &cli_command_ops,   &cli_command_repair,  &cli_command_replicant, &cli_command_scope,
	&cli_command_site,      &cli_command_sites, &cli_command_webhooks};
enum { COMMANDS_COUNT = sizeof(commands) / sizeof(commands[0]) };

static void put_help(struct buf *out)
{
	buf_put(out, STR("Cheops makes the sites of a geo-distributed application work together.\n"
	                 "\n"
	                 "usage: cheops COMMAND ...\n"
	                 "\n"
	                 "Commands:\n"));
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		buf_printf(out, "  %-10s%s\n", commands[i]->name, commands[i]->summary);
	buf_put(out, STR("  help      help on a command: cheops help COMMAND\n"
	                 "\n"
	                 "Options:\n"
	                 "  -h, --help      this help; after a command, help on the command\n"
	                 "  -V, --version   the version of this program\n"
	                 "\n"
	                 "Exit status: 0 fine, 1 refused, 2 wrong usage.\n"));
}

/* Help on standard output when it was asked for, on standard error when it stands for a complaint. */
static int help(bool asked)
{
	struct buf out = {0};
	put_help(&out);
	int status = CLI_USAGE;
	if (asked)
		status = cli_print(buf_str(&out));
	else
		cli_print_error(buf_str(&out));
	buf_free(&out);
	return status;
}

static int unknown(struct str name)
{
	struct suggest suggest;
	suggest_start(&suggest, name);
	for (size_t i = 0; i < COMMANDS_COUNT; i++)
		suggest_offer(&suggest, str_of(commands[i]->name));
	suggest_offer(&suggest, STR("help"));
	char meant[TEXT_SUGGESTION_BYTES];
	bool option = name.length > 0 && name.at[0] == '-';
	return cli_usage("", "no %s " TEXT_NAME_FMT "%s", option ? "option" : "command", TEXT_NAME(name),
	                 text_did_you_mean(&suggest, meant));
}

static int run_command(int argc, char **argv)
{
	for (size_t i = 0; i < COMMANDS_COUNT; i++) {
		if (strcmp(argv[0], commands[i]->name) == 0)
			return commands[i]->run(argc, argv);
	}
	return unknown(str_of(argv[0]));
}

/* `cheops help scope explain` is `cheops scope explain --help`. argv[0] is "help"; argv ends with a NULL. */
static int run_help(int argc, char **argv)
{
	static char option[] = "--help";
	if (argc == 1 || argv[1][0] == '-')
		return help(true);
	for (int i = 1; i < argc; i++)
		argv[i - 1] = argv[i];
	argv[argc - 1] = option;
	return run_command(argc, argv);
}

static bool is_one_of(const char *text, const char *letter, const char *word)
{
	return strcmp(text, letter) == 0 || strcmp(text, word) == 0;
}

int main(int argc, char **argv)
{
	/* A reader that went away is a write error like any other. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2)
		return help(false);
	if (is_one_of(argv[1], "-h", "--help"))
		return help(true);
	if (is_one_of(argv[1], "-V", "--version"))
		return cli_print(STR("cheops " CHEOPS_VERSION "\n"));
	if (strcmp(argv[1], "help") == 0)
		return run_help(argc - 1, argv + 1);
	return run_command(argc - 1, argv + 1);
}
