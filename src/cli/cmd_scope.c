/* cheops scope: arguments, help, and the text to work on. What the actions do is in scope_actions.c. */
#include "cli/cmd_scope.h"

#include "agent/file.h"
#include "cli/view_file.h"

#include <unistd.h>

enum { OPTION_SERVICE, OPTION_AT, OPTION_VIEW, OPTION_OUTPUT, OPTION_COLOR, OPTION_HELP };

static const struct cli_option options[] = {
	[OPTION_SERVICE] = {"service", 0, "NAME", "the service that the request is sent to"},
	[OPTION_AT] = {"at", 0, "SITE", "the site where the request is (default: the first there is)"},
	[OPTION_VIEW] = {"view", 0, "FILE", "YAML: the sites, their states, round trips and services"},
	[OPTION_OUTPUT] = {"output", 'o', "FORMAT", "`text` (default) or `json`"},
	[OPTION_COLOR] = {"color", 0, "WHEN", "`auto` (default; see NO_COLOR), `always` or `never`"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

struct action {
	const char *name;
	const char *summary;
	int (*run)(struct scope_call *call);
	const char *details;
	const char *examples;
};

static const struct action actions[] = {
	{"fmt", "print the canonical form", scope_fmt,
     "Prints the scope in its one canonical form. With --service, the entry that names no\n"
     "service gets that one: this is the form that travels on with a workflow.\n"
     "JSON: {\"scope\": ...}\n",
     "  cheops scope fmt '{Site1&Site2;Site3}'\n"
     "  cheops scope fmt '{\"compute\": \"Site1\", \"image\": \"Site2 & Site3\"}'\n"},
	{"check", "say whether it has a meaning, and what is doubtful about it", scope_check_text,
     "Prints `ok`, then warnings, if the scope has a meaning. With --view, also if it can be\n"
     "carried out there: sites and services exist, versions go together.\n"
     "JSON: {\"ok\": true, \"scope\": ..., \"warnings\": [...]}\n",
     "  cheops scope check 'strong(Site1 & Site2)'\n"
     "  cheops scope check --view view.yaml 'compute: Site1, image: Site2'\n"},
	{"explain", "show the plan: which sites, in which order, how far", scope_explain,
     "Draws the plan that the scope gives for a service, asked at a site. Without --service, the\n"
     "plan of each entry of the scope (as JSON: of the first). Without --view, the sites that the\n"
     "scope names are all there is.\n"
     "JSON: {\"service\": ..., \"at\": ..., \"scope\": ..., \"plan\": ..., \"latency_ms\": ..., \"warnings\": [...]}\n",
     "  cheops scope explain --view view.yaml --at Site1 'around(Site1, 10ms)'\n"
     "  cheops scope explain --service image 'compute: Site1, image: Site2; Site3'\n"
     "  cheops scope explain -o json 'Site1 & Site2'\n"},
	{"tokens", "list the pieces of the text", scope_tokens_list,
     "Prints one token per line: offset and length in bytes, kind, and what it stands for.\n"
     "JSON: {\"tokens\": [{\"kind\": ..., \"text\": ..., \"offset\": ..., \"length\": ...}]}\n",
     "  cheops scope tokens 'Site1 & \"DC 2\"'\n"},
};
enum { ACTIONS_COUNT = sizeof(actions) / sizeof(actions[0]) };

/* ---- Help ------------------------------------------------------------------------------------------------------- */

static void put_options(struct buf *out)
{
	buf_put(out, STR("\nOptions:\n"));
	cli_options_describe(out, options);
	buf_put(out,
	        STR("\nWithout TEXT, or with -, the scope is read from the standard input.\n"
	            "Exit status: 0 fine, 1 refused, 2 wrong usage. A refusal as JSON:\n"
	            "{\"error\": {\"type\": ..., \"message\": ..., \"offset\": ..., \"length\": ..., \"hint\": ...}}\n"));
}

static int help_all(void)
{
	struct buf out = {0};
	buf_put(&out, STR("Works on scopes: expressions that say where a request is to run.\n"
	                  "\n"
	                  "usage: cheops scope ACTION [OPTION]... [TEXT | -]\n"
	                  "\n"
	                  "Actions:\n"));
	for (size_t i = 0; i < ACTIONS_COUNT; i++)
		buf_printf(&out, "  %-10s%s\n", actions[i].name, actions[i].summary);
	put_options(&out);
	buf_put(&out, STR("\nExamples:\n"));
	for (size_t i = 0; i < ACTIONS_COUNT; i++)
		buf_put(&out, str_of(actions[i].examples));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

static int help_action(const struct action *action)
{
	struct buf out = {0};
	buf_printf(&out, "%s\nusage: cheops scope %s [OPTION]... [TEXT | -]\n", action->details, action->name);
	put_options(&out);
	buf_printf(&out, "\nExamples:\n%s", action->examples);
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

/* What the arguments say, before any of it is looked at. */
struct request {
	bool help;
	const char *text; /* NULL: not given */
};

static int wrong_word(const struct scope_call *call, const char *option, const char *value, const char *const *words)
{
	struct suggest suggest;
	struct buf accepted = {0};
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, str_of(value));
	for (size_t i = 0; words[i] != NULL; i++) {
		suggest_offer(&suggest, str_of(words[i]));
		buf_printf(&accepted, "%s`%s`", i == 0 ? "" : ", ", words[i]);
	}
	int status = cli_usage(call->command, "--%s " TEXT_NAME_FMT " is none of %s%s", option, TEXT_NAME(str_of(value)),
	                       buf_c(&accepted), text_did_you_mean(&suggest, meant));
	buf_free(&accepted);
	return status;
}

static int take_name(const struct scope_call *call, const char *option, const char *value, struct str *name)
{
	*name = str_of(value);
	if (name->length == 0)
		return cli_usage(call->command, "--%s is empty; it has to be a name", option);
	if (!text_is_printable(*name))
		return cli_usage(call->command, "--%s " TEXT_NAME_FMT " is not printable UTF-8 text", option, TEXT_NAME(*name));
	return CLI_FINE;
}

static int take_output(struct scope_call *call, const char *value)
{
	call->json = strcmp(value, "json") == 0;
	if (call->json || strcmp(value, "text") == 0)
		return CLI_FINE;
	return wrong_word(call, "output", value, (const char *const[]){"text", "json", NULL});
}

static int take_color(struct scope_call *call, const char *value)
{
	if (cli_colour_parse(str_of(value), &call->colour))
		return CLI_FINE;
	return wrong_word(call, "color", value, (const char *const[]){"auto", "always", "never", NULL});
}

static int take_option(struct scope_call *call, struct request *request, int option, const char *value)
{
	switch (option) {
	case OPTION_SERVICE: return take_name(call, "service", value, &call->service);
	case OPTION_AT: return take_name(call, "at", value, &call->at);
	case OPTION_VIEW: call->view_path = value; return CLI_FINE;
	case OPTION_OUTPUT: return take_output(call, value);
	case OPTION_COLOR: return take_color(call, value);
	default: request->help = true; return CLI_FINE;
	}
}

static int take_arguments(struct scope_call *call, struct request *request, int argc, char **argv)
{
	struct cli_arguments arguments = {.command = call->command, .options = options, .argv = argv, .argc = argc};
	const char *value;
	int status = CLI_FINE;
	while (status == CLI_FINE && !request->help) {
		int kind = cli_arguments_next(&arguments, &value);
		if (kind == CLI_ARGUMENTS_END)
			break;
		if (kind == CLI_ARGUMENTS_WRONG)
			return CLI_USAGE;
		if (kind != CLI_ARGUMENT)
			status = take_option(call, request, kind, value);
		else if (request->text == NULL)
			request->text = value;
		else
			return cli_usage(call->command,
			                 "more than one TEXT: " TEXT_NAME_FMT " and " TEXT_NAME_FMT
			                 "; put quotes around the whole scope, as in 'Site1 & Site2'",
			                 TEXT_NAME(str_of(request->text)), TEXT_NAME(str_of(value)));
	}
	return status;
}

/* ---- The text --------------------------------------------------------------------------------------------------- */

/* One newline at the end belongs to the file or to echo, not to the scope. */
static struct str without_newline(struct str text)
{
	if (text.length > 0 && text.at[text.length - 1] == '\n')
		text.length--;
	else
		return text;
	if (text.length > 0 && text.at[text.length - 1] == '\r')
		text.length--;
	return text;
}

static int read_text(struct scope_call *call, const char *argument)
{
	if (argument != NULL && strcmp(argument, "-") != 0) {
		call->text = str_of(argument);
		return CLI_FINE;
	}
	if (isatty(STDIN_FILENO))
		cli_say("reading the scope from the terminal; end it with Enter and Ctrl-D");
	/* One byte past the limit is enough to be refused; two more for the newline. */
	struct buf read = {0};
	int failure = agent_descriptor_read(STDIN_FILENO, LIMIT_SCOPE_TEXT_BYTES + 3, &read);
	call->text = str_make(arena_copy(&call->arena, buf_c(&read), read.length), read.length);
	buf_free(&read);
	call->text = without_newline(call->text);
	if (failure == 0)
		return CLI_FINE;
	cli_say("cannot read the standard input: %s", strerror(failure));
	return CLI_USAGE;
}

static int read_view(struct scope_call *call)
{
	struct err err = {0};
	if (call->view_path == NULL || view_file_read(&call->arena, call->view_path, &call->table, &err) == 0)
		return CLI_FINE;
	cli_say("%s", err.text);
	return CLI_USAGE;
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static int run_action(const struct action *action, int argc, char **argv)
{
	struct buf command = {0};
	buf_printf(&command, "scope %s", action->name);
	struct scope_call call = {.command = buf_c(&command)};
	arena_init(&call.arena, 0);
	struct request request = {0};
	int status = take_arguments(&call, &request, argc, argv);
	if (status == CLI_FINE && request.help) {
		status = help_action(action);
	} else if (status == CLI_FINE) {
		/* The view first: nobody wants to type a scope and then hear of a missing file. */
		status = read_view(&call);
		if (status == CLI_FINE)
			status = read_text(&call, request.text);
		if (status == CLI_FINE)
			status = action->run(&call);
	}
	arena_free(&call.arena);
	buf_free(&command);
	return status;
}

static int unknown_action(struct str name)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, name);
	for (size_t i = 0; i < ACTIONS_COUNT; i++)
		suggest_offer(&suggest, str_of(actions[i].name));
	if (suggest.best.length > 0)
		return cli_usage("scope", "no action " TEXT_NAME_FMT "%s", TEXT_NAME(name), text_did_you_mean(&suggest, meant));
	return cli_usage("scope", "no action " TEXT_NAME_FMT "; first comes one of fmt, check, explain and tokens",
	                 TEXT_NAME(name));
}

static int run(int argc, char **argv)
{
	if (argc < 2)
		return cli_usage("scope", "what to do with the scope? One of fmt, check, explain and tokens is missing");
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
		return help_all();
	for (size_t i = 0; i < ACTIONS_COUNT; i++) {
		if (strcmp(argv[1], actions[i].name) == 0)
			return run_action(&actions[i], argc - 2, argv + 2);
	}
	return unknown_action(str_of(argv[1]));
}

const struct cli_command cli_command_scope = {"scope", "check, explain and format scope expressions", run};
