/* cheops scope: arguments, help, and the text to work on. What the actions do is in scope_actions.c. */
#include "cli/cmd_scope.h"

#include "agent/file.h"
#include "cli/view_file.h"

#include <unistd.h>

enum { OPTION_SERVICE, OPTION_AT, OPTION_VIEW, OPTION_APP, OPTION_OUTPUT, OPTION_COLOR, OPTION_HELP };

static const struct cli_option options[] = {
	[OPTION_SERVICE] = {"service", 0, "NAME", "the service that the request is sent to"},
	[OPTION_AT] = {"at", 0, "SITE", "the site where the request is (default: the first there is)"},
	[OPTION_VIEW] = {"view", 0, "FILE", "YAML: the sites, their states, round trips and services"},
	[OPTION_APP] = {"app", 0, "NAME", "of check: a description, shipped or a file, to check a request by"},
	[OPTION_OUTPUT] = {"output", 'o', "FORMAT", "`text` (default) or `json`"},
	[OPTION_COLOR] = {"color", 0, "WHEN", "`auto` (default; see NO_COLOR), `always` or `never`"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

struct action {
	struct cli_action about;
	int (*run)(struct scope_call *call);
};

static const struct action actions[] = {
	{{"fmt", "print the canonical form",
      "Prints the scope in its one canonical form. With --service, the entry that names no\n"
      "service gets that one: this is the form that travels on with a workflow.\n"
      "JSON: {\"scope\": ...}\n",
      "  cheops scope fmt '{Site1&Site2;Site3}'\n"
      "  cheops scope fmt '{\"compute\": \"Site1\", \"image\": \"Site2 & Site3\"}'\n"},
     scope_fmt},
	{{"check", "say whether it has a meaning, and what is doubtful about it",
      "Prints `ok`, then warnings, if the scope has a meaning. With --view, also if it can be\n"
      "carried out there: sites and services exist, versions go together. With --app, also if\n"
      "the request METHOD PATH [BODY] may use what the scope gives it: what belongs to a site is\n"
      "not used from another one. BODY is a text, @FILE, or - for the standard input.\n"
      "JSON: {\"ok\": true, \"scope\": ..., \"warnings\": [...]}\n",
      "  cheops scope check 'strong(Site1 & Site2)'\n"
      "  cheops scope check --view view.yaml 'compute: Site1, image: Site2'\n"
      "  cheops scope check --app sample 'compute: Site1, image: Site2' POST /servers '{\"network\": true}'\n"},
     scope_check_text},
	{{"explain", "show the plan: which sites, in which order, how far",
      "Draws the plan that the scope gives for a service, asked at a site. Without --service, the\n"
      "plan of each entry of the scope (as JSON: of the first). Without --view, the sites that the\n"
      "scope names are all there is.\n"
      "JSON: {\"service\": ..., \"at\": ..., \"scope\": ..., \"plan\": ..., \"latency_ms\": ..., \"warnings\": "
      "[...]}\n",
      "  cheops scope explain --view view.yaml --at Site1 'around(Site1, 10ms)'\n"
      "  cheops scope explain --service image 'compute: Site1, image: Site2; Site3'\n"
      "  cheops scope explain -o json 'Site1 & Site2'\n"},
     scope_explain},
	{{"tokens", "list the pieces of the text",
      "Prints one token per line: offset and length in bytes, kind, and what it stands for.\n"
      "JSON: {\"tokens\": [{\"kind\": ..., \"text\": ..., \"offset\": ..., \"length\": ...}]}\n",
      "  cheops scope tokens 'Site1 & \"DC 2\"'\n"},
     scope_tokens_list},
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

static int help_action(const struct action *action)
{
	struct buf out = {0};
	buf_printf(&out, "%s\nusage: cheops scope %s [OPTION]... [TEXT | -]\n", action->about.details, action->about.name);
	if (action->run == scope_check_text)
		buf_put(&out, STR("       cheops scope check --app NAME [OPTION]... TEXT METHOD PATH [BODY]\n"));
	put_options(&out);
	buf_printf(&out, "\nExamples:\n%s", action->about.examples);
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

/* What the arguments say, before any of it is looked at. */
struct request {
	struct scope_call *call;
	const char *arguments[4]; /* TEXT, and with --app METHOD PATH [BODY] */
	uint32_t arguments_count; /* also of those that are too many */
};

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
	static const char *const words[] = {"text", "json", NULL};
	int chosen = 0;
	int status = cli_choose(&(struct cli_choice){call->command, "output", words}, value, &chosen);
	call->json = chosen == 1;
	return status;
}

static int take_argument(struct request *request, const char *value)
{
	if (request->arguments_count < sizeof(request->arguments) / sizeof(request->arguments[0]))
		request->arguments[request->arguments_count] = value;
	request->arguments_count++;
	return CLI_FINE;
}

/* One TEXT; with --app a request behind it. */
static int check_arguments(const struct request *request, bool is_check)
{
	struct scope_call *call = request->call;
	uint32_t count = request->arguments_count;
	if (call->app != NULL && !is_check)
		return cli_usage(call->command, "--app is of `cheops scope check`");
	if (call->app == NULL && count > 1)
		return cli_usage(call->command,
		                 "more than one TEXT: " TEXT_NAME_FMT " and " TEXT_NAME_FMT
		                 "; put quotes around the whole scope, as in 'Site1 & Site2'",
		                 TEXT_NAME(str_of(request->arguments[0])), TEXT_NAME(str_of(request->arguments[1])));
	if (call->app != NULL && (count < 3 || count > 4))
		return cli_usage(call->command, "%s",
		                 count < 3 ? "with --app a request is needed behind the scope: TEXT METHOD PATH [BODY]"
		                           : "more than TEXT, METHOD, PATH and BODY; put quotes around scope and body");
	call->method = request->arguments[1];
	call->path = request->arguments[2];
	call->body = request->arguments[3];
	return CLI_FINE;
}

static int take(void *context, int kind, const char *value)
{
	struct request *request = context;
	struct scope_call *call = request->call;
	switch (kind) {
	case OPTION_SERVICE: return take_name(call, "service", value, &call->service);
	case OPTION_AT: return take_name(call, "at", value, &call->at);
	case OPTION_VIEW: call->view_path = value; return CLI_FINE;
	case OPTION_APP: call->app = value; return CLI_FINE;
	case OPTION_OUTPUT: return take_output(call, value);
	case OPTION_COLOR: return cli_colour_take(call->command, value, &call->colour);
	default: return take_argument(request, value);
	}
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

static const struct cli_action *action_at(size_t number)
{
	return number < ACTIONS_COUNT ? &actions[number].about : NULL;
}

static int run_action(size_t number, const char *command, int argc, char **argv)
{
	const struct action *action = &actions[number];
	struct cli_arguments arguments = {.command = command, .options = options, .argv = argv, .argc = argc};
	struct scope_call call = {.command = command};
	struct request request = {.call = &call};
	arena_init(&call.arena, 0);
	int status = cli_arguments_each(&arguments, take, &request);
	if (status == CLI_HELP) {
		status = help_action(action);
	} else if (status == CLI_FINE) {
		/* The view first: nobody wants to type a scope and then hear of a missing file. */
		status = check_arguments(&request, action->run == scope_check_text);
		if (status == CLI_FINE)
			status = read_view(&call);
		if (status == CLI_FINE)
			status = read_text(&call, request.arguments[0]);
		if (status == CLI_FINE)
			status = action->run(&call);
	}
	arena_free(&call.arena);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct cli_actions all = {
		.command = "scope",
		.purpose = "Works on scopes: expressions that say where a request is to run.",
		.usage = "ACTION [OPTION]... [TEXT | -]",
		.question = "what to do with the scope?",
		.at = action_at,
		.put_rest = put_options,
		.run = run_action,
	};
	return cli_actions_run(&all, argc, argv);
}

const struct cli_command cli_command_scope = {"scope", "check, explain and format scope expressions", run};
