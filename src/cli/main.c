/* cheops: has no subcommand yet. */
#include "cli/cli.h"

#include <signal.h>

#define HELP                                                                                                           \
	"Cheops makes the sites of a geo-distributed application work together.\n"                                         \
	"\n"                                                                                                               \
	"usage: cheops OPTION\n"                                                                                           \
	"\n"                                                                                                               \
	"Options:\n"                                                                                                       \
	"  -h, --help      this help\n"                                                                                    \
	"  -V, --version   the version of this program\n"                                                                  \
	"\n"                                                                                                               \
	"Exit status: 0 fine, 1 refused, 2 wrong usage.\n"

static bool is_one_of(const char *text, const char *letter, const char *word)
{
	return strcmp(text, letter) == 0 || strcmp(text, word) == 0;
}

int main(int argc, char **argv)
{
	/* A reader that went away is a write error like any other. */
	signal(SIGPIPE, SIG_IGN);
	if (argc < 2) {
		cli_print_error(STR(HELP));
		return CLI_USAGE;
	}
	if (is_one_of(argv[1], "-h", "--help"))
		return cli_print(STR(HELP));
	if (is_one_of(argv[1], "-V", "--version"))
		return cli_print(STR("cheops " CHEOPS_VERSION "\n"));
	struct str name = str_of(argv[1]);
	return cli_usage("", "no %s " TEXT_NAME_FMT, argv[1][0] == '-' ? "option" : "command", TEXT_NAME(name));
}
