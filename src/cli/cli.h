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
	CLI_DIFFERS = 3, /* get --verify: copies are not the same */
	CLI_HELP = -1,   /* no end: help was asked for */
};

/* ---- Subcommands ------------------------------------------------------------------------------------------------ */

struct cli_command {
	const char *name;
	const char *summary;
	/* argv[0] is the name of the subcommand. Returns the exit status. Knows -h and --help. */
	int (*run)(int argc, char **argv);
};

extern const struct cli_command cli_command_agent;
extern const struct cli_command cli_command_app;
extern const struct cli_command cli_command_demo;
extern const struct cli_command cli_command_deps;
extern const struct cli_command cli_command_get;
extern const struct cli_command cli_command_openstack;
extern const struct cli_command cli_command_ops;
extern const struct cli_command cli_command_repair;
extern const struct cli_command cli_command_replicant;
extern const struct cli_command cli_command_scope;
extern const struct cli_command cli_command_site;
extern const struct cli_command cli_command_sites;
extern const struct cli_command cli_command_webhooks;

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

enum { CLI_ARGUMENT = -1 }; /* a plain argument, instead of the index of an option */

/* Hands each argument to take(): the index of an option and its value (NULL where it takes none), or CLI_ARGUMENT. Returns
 * the first status that is not CLI_FINE; CLI_USAGE where an argument is none, and the user has been told; and CLI_HELP as
 * soon as --help is met. */
int cli_arguments_each(struct cli_arguments *arguments, int (*take)(void *context, int kind, const char *value),
                       void *context);

/* The lines of a help text that describe the options. */
void cli_options_describe(struct buf *out, const struct cli_option *options);

/* ---- Actions (actions.c) ---------------------------------------------------------------------------------------- */

/* What all actions of a command have, such as `fmt` of `cheops scope`. */
struct cli_action {
	const char *name;
	const char *summary;
	const char *details;  /* whole lines */
	const char *examples; /* whole lines */
};

struct cli_actions {
	const char *command;
	const char *purpose;                           /* the first line of the help */
	const char *usage;                             /* what follows the command there */
	const char *question;                          /* to somebody who names no action */
	const struct cli_action *(*at)(size_t number); /* NULL: there are no more */
	void (*put_rest)(struct buf *out);             /* of the help, between actions and examples */
	/* Runs one; `command` is as the user has to write it. */
	int (*run)(size_t number, const char *command, int argc, char **argv);
};

/* argv[1] says which one. */
int cli_actions_run(const struct cli_actions *actions, int argc, char **argv);

/* ---- Messages (output.c) ---------------------------------------------------------------------------------------- */

/* One message on standard error. Control characters in it are made harmless. */
__attribute__((format(printf, 1, 2))) void cli_say(const char *format, ...);

/* As cli_say(), followed by where help is to be found. Returns CLI_USAGE. */
__attribute__((format(printf, 2, 3))) int cli_usage(const char *command, const char *format, ...);

/* Which of the words, which end with NULL, the value of an option is. CLI_USAGE: none, and the user has been told. */
struct cli_choice {
	const char *command;
	const char *option;
	const char *const *words;
};
int cli_choose(const struct cli_choice *choice, const char *value, int *chosen);
/* As that, of the first argument of a command. Words from 1 on, up to `end`; `expected` says in prose which there are. */
int cli_choose_action(const char *command, const char *const *words, int end, const char *expected, const char *value,
                      int *chosen);

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

/* The value of --color. CLI_USAGE: it is none, and the user has been told. */
int cli_colour_take(const char *command, const char *value, enum cli_colour *colour);

/* Is what goes to the file descriptor to be coloured? */
bool cli_colour_on(enum cli_colour colour, int fd);

#endif
