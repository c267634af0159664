/* The command line: one file per subcommand, and what they share. Messages for people go to standard error and begin
 * with "cheops: "; results go to standard output in one piece, so that a program never reads half of one. */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"
#include "base/text.h"

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

/* How the program ends. Scripts rely on these. */
enum cli_exit {
	CLI_FINE = 0,
	CLI_REFUSED = 1, /* the input was understood as such, and refused; or the result could not be written */
	CLI_USAGE = 2,   /* the command is wrong, or a file that it names */
};

/* ---- Subcommands ------------------------------------------------------------------------------------------------ */

struct cli_command {
	const char *name;
	const char *summary;
	/* argv[0] is the name of the subcommand. Returns the exit status. Knows -h and --help. */
	int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_command_agent;
extern const struct cli_command cli_command_demo;
extern const struct cli_command cli_command_scope;

/* ---- Arguments (arguments.c) ------------------------------------------------------------------------------------ */

struct cli_option {
	const char *name;  /* "output", for --output */
	char letter;       /* 'o', for -o; '\0': none */
	const char *value; /* what the help calls its value; NULL: it takes none */
	const char *help;
};

/* A walk over the arguments of a command. Options may come before and after what they apply to; `--` ends them. */
struct cli_arguments {
	const char *command;              /* as the user has to write it: "scope explain" */
	const struct cli_option *options; /* ends with a NULL name */
	char **argv;
	int argc;
	int next;
	bool only_plain; /* `--` was seen */
};

enum {
	CLI_ARGUMENT = -1,        /* *value is a plain argument */
	CLI_ARGUMENTS_END = -2,   /* no more */
	CLI_ARGUMENTS_WRONG = -3, /* the user has been told */
};

/* The next argument: the index of an option and its value (NULL where it takes none), or one of the above. */
int cli_arguments_next(struct cli_arguments *arguments, const char **value);

/* The lines of a help text that describe the options. */
void cli_options_describe(struct buf *out, const struct cli_option *options);

/* ---- Messages (output.c) ---------------------------------------------------------------------------------------- */

/* One message on standard error. Control characters in it are made harmless. */
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);

/* As cli_say(), followed by where help is to be found. Returns CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int cli_usage(const char *command, const char *format, ...);

/* ---- Output (output.c) ------------------------------------------------------------------------------------------ */

/* Writes to standard output. Returns CLI_FINE, or CLI_REFUSED after having told why it could not. */
int cli_print(struct str text);

/* Writes to standard error, as it is. Nobody can be told if that fails. */
void cli_print_error(struct str text);

enum cli_colour {
	CLI_COLOUR_AUTO, /* on a terminal, unless NO_COLOR is set */
	CLI_COLOUR_ALWAYS,
	CLI_COLOUR_NEVER,
};

bool cli_colour_parse(struct str word, enum cli_colour *colour);

/* Is what goes to the file descriptor to be coloured? */
bool cli_colour_on(enum cli_colour colour, int fd);

#endif
