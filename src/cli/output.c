#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Messages --------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 2, 0))) static void put_message(struct buf *out, const char *format, va_list arguments)
{
	struct buf text = {0};
	buf_vprintf(&text, format, arguments);
	buf_put(out, STR("cheops: "));
	/* Arguments and files may hold sequences that make a terminal do things. */
	text_put_harmless(out, buf_str(&text));
	buf_put_char(out, '\n');
	buf_free(&text);
}

void cli_say(const char *format, ...)
{
	struct buf out = {0};
	va_list arguments;
	va_start(arguments, format);
	put_message(&out, format, arguments);
	va_end(arguments);
	cli_print_error(buf_str(&out));
	buf_free(&out);
}

int cli_usage(const char *command, const char *format, ...)
{
	struct buf out = {0};
	va_list arguments;
	va_start(arguments, format);
	put_message(&out, format, arguments);
	va_end(arguments);
	buf_printf(&out, "Try `cheops %s%s--help`.\n", command, *command ? " " : "");
	cli_print_error(buf_str(&out));
	buf_free(&out);
	return CLI_USAGE;
}

static int wrong_word(const char *command, const char *option, const char *value, const char *const *words)
{
	struct suggest suggest;
	struct buf accepted = {0};
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, str_of(value));
	for (size_t i = 0; words[i] != NULL; i++) {
		suggest_offer(&suggest, str_of(words[i]));
		buf_printf(&accepted, "%s`%s`", i == 0 ? "" : ", ", words[i]);
	}
	int status = cli_usage(command, "--%s " TEXT_NAME_FMT " is none of %s%s", option, TEXT_NAME(str_of(value)),
	                       buf_c(&accepted), text_did_you_mean(&suggest, meant));
	buf_free(&accepted);
	return status;
}

int cli_choose(const struct cli_choice *choice, const char *value, int *chosen)
{
	for (int i = 0; choice->words[i] != NULL; i++) {
		if (strcmp(value, choice->words[i]) == 0) {
			*chosen = i;
			return CLI_FINE;
		}
	}
	return wrong_word(choice->command, choice->option, value, choice->words);
}

int cli_choose_action(const char *command, const char *const *words, int end, const char *expected, const char *value,
                      int *chosen)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, str_of(value));
	for (int i = 1; i < end; i++) {
		if (strcmp(value, words[i]) == 0) {
			*chosen = i;
			return CLI_FINE;
		}
		suggest_offer(&suggest, str_of(words[i]));
	}
	return cli_usage(command, "no action " TEXT_NAME_FMT "%s; first comes %s", TEXT_NAME(str_of(value)),
	                 text_did_you_mean(&suggest, meant), expected);
}

/* ---- Output ----------------------------------------------------------------------------------------------------- */

/* Returns 0, or errno. */
static int write_all(int fd, struct str text)
{
	while (text.length > 0) {
		ssize_t written = write(fd, text.at, text.length);
		if (written < 0 && errno == EINTR)
			continue;
		if (written < 0)
			return errno;
		text = str_make(text.at + written, text.length - (size_t)written);
	}
	return 0;
}

int cli_print(struct str text)
{
	int failure = write_all(STDOUT_FILENO, text);
	if (failure == 0)
		return CLI_FINE;
	cli_say("cannot write to the standard output: %s", strerror(failure));
	return CLI_REFUSED;
}

void cli_print_error(struct str text)
{
	(void)write_all(STDERR_FILENO, text);
}

int cli_colour_take(const char *command, const char *value, enum cli_colour *colour)
{
	static const char *const words[] = {
		[CLI_COLOUR_AUTO] = "auto", [CLI_COLOUR_ALWAYS] = "always", [CLI_COLOUR_NEVER] = "never", NULL};
	int chosen = CLI_COLOUR_AUTO;
	int status = cli_choose(&(struct cli_choice){command, "color", words}, value, &chosen);
	*colour = (enum cli_colour)chosen;
	return status;
}

bool cli_colour_on(enum cli_colour colour, int fd)
{
	if (colour != CLI_COLOUR_AUTO)
		return colour == CLI_COLOUR_ALWAYS;
	const char *refused = getenv("NO_COLOR"); /* https://no-color.org: set, and not empty */
	if (refused != NULL && *refused != '\0')
		return false;
	const char *terminal = getenv("TERM");
	return isatty(fd) && terminal != NULL && strcmp(terminal, "dumb") != 0;
}
