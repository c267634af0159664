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
