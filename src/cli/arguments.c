/* Options, GNU fashion: --name value, --name=value, -n value, -nvalue; `--` ends them; `-` alone is no option. */
#include "cli/cli.h"

enum { HELP_COLUMN = 24 };
enum { ARGUMENTS_END = -2, ARGUMENTS_WRONG = -3 /* the user has been told */ };

static int wrong(const struct cli_arguments *arguments, struct str name)
{
	struct suggest suggest;
	suggest_start(&suggest, name);
	for (const struct cli_option *option = arguments->options; option->name != NULL; option++)
		suggest_offer(&suggest, str_of(option->name));
	if (suggest.best.length > 0)
		cli_usage(arguments->command, "no option `--%.*s%s`; did you mean `--%.*s`?", STR_FMT(text_shown(name)),
		          text_ellipsis(name), STR_FMT(suggest.best));
	else
		cli_usage(arguments->command, "no option `--%.*s%s`; an argument that begins with a dash goes after `--`",
		          STR_FMT(text_shown(name)), text_ellipsis(name));
	return ARGUMENTS_WRONG;
}

/* Takes the value of an option from behind its name (`inside`, NULL if there is none) or from the next argument. */
static int take_value(struct cli_arguments *arguments, int index, const char *inside, const char **value)
{
	const struct cli_option *option = &arguments->options[index];
	*value = inside;
	if (option->value == NULL && inside != NULL) {
		cli_usage(arguments->command, "`--%s` takes no value", option->name);
		return ARGUMENTS_WRONG;
	}
	if (option->value == NULL || inside != NULL)
		return index;
	if (arguments->next >= arguments->argc) {
		cli_usage(arguments->command, "`--%s` needs a value: --%s %s", option->name, option->name, option->value);
		return ARGUMENTS_WRONG;
	}
	*value = arguments->argv[arguments->next++];
	return index;
}

static int take_long(struct cli_arguments *arguments, const char *text, const char **value)
{
	const char *equals = strchr(text, '=');
	struct str name = str_make(text, equals != NULL ? (size_t)(equals - text) : strlen(text));
	for (int i = 0; arguments->options[i].name != NULL; i++) {
		if (str_equal(name, str_of(arguments->options[i].name)))
			return take_value(arguments, i, equals != NULL ? equals + 1 : NULL, value);
	}
	return wrong(arguments, name);
}

static int take_short(struct cli_arguments *arguments, const char *text, const char **value)
{
	for (int i = 0; arguments->options[i].name != NULL; i++) {
		if (arguments->options[i].letter != text[0])
			continue;
		const char *inside = text[1] == '\0' ? NULL : text + 1;
		/* kubectl has taught people to write -o=json */
		if (inside != NULL && *inside == '=')
			inside++;
		return take_value(arguments, i, inside, value);
	}
	struct str name = str_of(text);
	cli_usage(arguments->command, "no option `-%.*s%s`; an argument that begins with a dash goes after `--`",
	          STR_FMT(text_shown(name)), text_ellipsis(name));
	return ARGUMENTS_WRONG;
}

/* The index of an option, CLI_ARGUMENT, or one of the ends. */
static int next(struct cli_arguments *arguments, const char **value)
{
	if (arguments->next >= arguments->argc)
		return ARGUMENTS_END;
	const char *text = arguments->argv[arguments->next++];
	if (!arguments->only_plain && strcmp(text, "--") == 0) {
		arguments->only_plain = true;
		return next(arguments, value);
	}
	if (!arguments->only_plain && text[0] == '-' && text[1] == '-')
		return take_long(arguments, text + 2, value);
	if (!arguments->only_plain && text[0] == '-' && text[1] != '\0')
		return take_short(arguments, text + 1, value);
	*value = text;
	return CLI_ARGUMENT;
}

int cli_arguments_each(struct cli_arguments *arguments, int (*take)(void *context, int kind, const char *value),
                       void *context)
{
	int status = CLI_FINE;
	while (status == CLI_FINE) {
		const char *value = NULL;
		int kind = next(arguments, &value);
		if (kind == ARGUMENTS_END)
			break;
		if (kind == ARGUMENTS_WRONG)
			return CLI_USAGE;
		if (kind != CLI_ARGUMENT && strcmp(arguments->options[kind].name, "help") == 0)
			return CLI_HELP;
		status = take(context, kind, value);
	}
	return status;
}

static void put_option(struct buf *out, const struct cli_option *option)
{
	if (option->letter != '\0')
		buf_printf(out, "  -%c, ", option->letter);
	else
		buf_put(out, STR("      "));
	buf_printf(out, "--%s%s%s", option->name, option->value != NULL ? " " : "",
	           option->value != NULL ? option->value : "");
}

/* What they are for stands in one column, behind the longest. */
void cli_options_describe(struct buf *out, const struct cli_option *options)
{
	size_t column = HELP_COLUMN;
	for (const struct cli_option *option = options; option->name != NULL; option++) {
		struct buf text = {0};
		put_option(&text, option);
		column = text.length + 2 > column ? text.length + 2 : column;
		buf_free(&text);
	}
	for (const struct cli_option *option = options; option->name != NULL; option++) {
		size_t from = out->length;
		put_option(out, option);
		buf_put_repeat(out, ' ', column - (out->length - from));
		buf_printf(out, "%s\n", option->help);
	}
}
