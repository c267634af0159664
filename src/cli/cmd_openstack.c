/* cheops openstack: the user's own OpenStackClient, with a scope, where the plugin of it (clients/openstack) is not installed.
 *
 *   1. the plugin's folder, which is installed beside this program, is put before PYTHONPATH
 *   2. this process becomes the client: arguments, standard streams, signals and exit status are the client's own
 *
 * The scope is handed over as an option, not in the environment: a client that has not found the plugin, because it is no program of
 * Python, or one that ignores PYTHONPATH, refuses that. Otherwise it would ask the wrong sites, and nobody would notice.
 */
#include "cli/cli.h"
#include "scope/scope.h"

#include "base/check.h"

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

/* As env(1) and shells have it: any other status is the client's. */
enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127 };

enum { SCOPE, CLIENT };
static const struct cli_option options[] = {
	[SCOPE] = {"scope", '\0', "SCOPE", "where each service is used, such as '{compute: Site1, image: Site2}'"},
	[CLIENT] = {"client", '\0', "PROGRAM", "the client; default: openstack"},
	{0},
};

static const char about[] = "Runs OpenStackClient with a scope, without its plugin having to be installed.\n"
							"\n"
							"usage: cheops openstack [OPTION]... [--] ARGUMENT...\n";

static const char more[] =
	"What follows the options is handed to the client as it is; `--` before it if it begins with one of these.\n"
	"`--scope` among them works as well, and so does OS_SCOPE in the environment.\n"
	"Exit status: that of the client; 1 the scope is refused, 2 wrong usage, 126 the client cannot be run, 127 there "
	"is none.\n"
	"\n"
	"Examples:\n"
	"  cheops openstack --scope '{compute: Site1, image: Site2}' server create --image debian --flavor m1.tiny vm\n"
	"  cheops openstack --scope '{compute: Site1 & Site2}' server list\n";

static int help(void)
{
	struct buf out = {0};
	buf_put(&out, str_of(about));
	buf_put(&out, STR("\nOptions:\n"));
	cli_options_describe(&out, options);
	buf_put(&out, STR("\n"));
	buf_put(&out, str_of(more));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

struct call {
	const char *scope;
	const char *client;
	char **rest; /* of the client */
};

/* `--name VALUE` or `--name=VALUE`. Returns how many arguments that are, 0: it is another one; negative: it has no value. */
static int take_option(const char *name, char **argv, const char **value)
{
	size_t length = strlen(name);
	if (strncmp(argv[0], "--", 2) != 0 || strncmp(argv[0] + 2, name, length) != 0)
		return 0;
	const char *end = argv[0] + 2 + length;
	if (*end == '=') {
		*value = end + 1;
		return 1;
	}
	if (*end != '\0')
		return 0;
	*value = argv[1];
	return argv[1] ? 2 : -1;
}

/* Up to what is not ours: all that follows is the client's, whatever it is called. */
static int read_arguments(char **argv, struct call *call)
{
	while (*argv) {
		int taken;
		if (strcmp(*argv, "-h") == 0 || strcmp(*argv, "--help") == 0)
			return CLI_HELP;
		if (strcmp(*argv, "--") == 0) {
			argv++;
			break;
		}
		if ((taken = take_option("scope", argv, &call->scope)) == 0)
			taken = take_option("client", argv, &call->client);
		if (taken < 0)
			return cli_usage("openstack", "%s needs a value", *argv);
		if (taken == 0)
			break;
		argv += taken;
	}
	call->rest = argv;
	return CLI_FINE;
}

/* Before anything is started: which sites and services there are is known to the agents only. */
static int check_scope(struct str text)
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct buf out = {0};
	int status = CLI_FINE;
	arena_init(&arena, 0);
	if (scope_parse(&arena, text, &scope, &diag) != 0 || scope_check(&arena, scope, &diag) != 0) {
		buf_put(&out, STR("cheops: "));
		scope_diag_render(&out, text, &diag, cli_colour_on(CLI_COLOUR_AUTO, STDERR_FILENO));
		cli_print_error(buf_str(&out));
		status = CLI_REFUSED;
	}
	buf_free(&out);
	arena_free(&arena);
	return status;
}

/* ---- The client -------------------------------------------------------------------------------------------------- */

/* Where it is installed, or in the tree that this program was built in. */
static bool find_plugin(struct buf *folder)
{
	static const char *const places[] = {"../share/cheops/clients/openstack", "../clients/openstack"};
	char exe[PATH_MAX];
	ssize_t length = readlink("/proc/self/exe", exe, sizeof(exe));
	while (length > 0 && exe[length - 1] != '/')
		length--;
	for (size_t i = 0; length > 0 && i < sizeof(places) / sizeof(places[0]); i++) {
		struct buf file = {0};
		buf_clear(folder);
		buf_printf(folder, "%.*s%s", (int)length, exe, places[i]);
		buf_printf(&file, "%s/cheops_osc.py", buf_c(folder));
		bool there = access(buf_c(&file), R_OK) == 0;
		buf_free(&file);
		if (there)
			return true;
	}
	return false;
}

static void lengthen_path(const struct buf *folder)
{
	const char *before = getenv("PYTHONPATH");
	struct buf path = {0};
	buf_put(&path, buf_str(folder));
	if (before && *before)
		buf_printf(&path, ":%s", before);
	setenv("PYTHONPATH", buf_c(&path), 1);
	buf_free(&path);
}

static int become_client(const struct call *call)
{
	static char option[] = "--os-scope";
	size_t count = 0, next = 0;
	while (call->rest[count])
		count++;
	char **argv = calloc(count + 4, sizeof(*argv));
	CHECK(argv);
	argv[next++] = (char *)call->client;
	if (call->scope) {
		argv[next++] = option;
		argv[next++] = (char *)call->scope;
	}
	for (size_t i = 0; i < count; i++)
		argv[next++] = call->rest[i];
	signal(SIGPIPE, SIG_DFL); /* which main() has changed for us alone */
	execvp(argv[0], argv);
	int error = errno;
	free(argv);
	cli_say("cannot run " TEXT_NAME_FMT ": %s%s", TEXT_NAME(str_of(call->client)), strerror(error),
	        error == ENOENT ? "; OpenStackClient is in Debian's package python3-openstackclient, or named by --client"
	                        : "");
	return error == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN;
}

static int run(int argc, char **argv)
{
	struct call call = {.client = "openstack"};
	struct buf folder = {0};
	(void)argc;
	int status = read_arguments(argv + 1, &call);
	if (status == CLI_HELP)
		return help();
	if (status == CLI_FINE && call.scope)
		status = check_scope(str_of(call.scope));
	if (status != CLI_FINE)
		return status;
	if (!find_plugin(&folder)) {
		cli_say("the plugin of OpenStackClient, cheops_osc.py, is not where it is installed with this program: %s",
		        buf_c(&folder));
		buf_free(&folder);
		return STATUS_CANNOT_RUN;
	}
	lengthen_path(&folder);
	buf_free(&folder);
	return become_client(&call);
}

const struct cli_command cli_command_openstack = {"openstack", "run OpenStackClient with a scope, without its plugin",
                                                  run};
