/* cheops app: arguments and help. What the actions do is in app_*.c. */
#include "cli/cmd_app.h"

enum {
	OPTION_APP,
	OPTION_SERVICE,
	OPTION_HEADER,
	OPTION_CONTENT_TYPE,
	OPTION_NAME,
	OPTION_OUTPUT,
	OPTION_HELP,
};

static const struct cli_option options[] = {
	[OPTION_APP] = {"app", 0, "FILE", "the description, or the name of a shipped one (default: rest)"},
	[OPTION_SERVICE] = {"service", 0, "NAME", "the service that the request is sent to"},
	[OPTION_HEADER] = {"header", 'H', "HEADER", "a header of the request; `Content-Type: …` is what matters"},
	[OPTION_CONTENT_TYPE] = {"content-type", 0, "TYPE", "the same as -H 'Content-Type: TYPE'"},
	[OPTION_NAME] = {"name", 0, "NAME", "import: of the application and of its service"},
	[OPTION_OUTPUT] = {"output", 'o', "FORMAT", "`text` (default) or `json`"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

struct action {
	struct cli_action about;
	const char *usage;
	int (*run)(struct app_call *call);
};

static const struct action actions[] = {
	{{"lint", "check descriptions of applications",
      "Reads descriptions, and tells all that is wrong or doubtful, as FILE:LINE:COLUMN.\n"
      "JSON: {\"files\": [{\"file\", \"ok\", \"application\", \"findings\": [{\"severity\", \"line\", \"column\",\n"
      "      \"where\", \"message\"}, ...]}, ...]}\n",
      "  cheops app lint apps/sample.yaml\n"},
     "FILE...",
     app_lint},
	{{"explain", "show what Cheops makes of a request",
      "Says which type and operation a request is, where ids and references stand in it, and what\n"
      "becomes of it if it is replicated. Nothing is sent. BODY is text, @FILE, or - for the standard\n"
      "input. Without --service, the one service for which the path is known.\n"
      "JSON: {\"known\": true, \"service\", \"type\", \"operation\", \"effect\", ...}\n",
      "  cheops app explain --app sample --service image PUT /images/42/file\n"
      "  cheops app explain --app sample POST /servers '{\"name\": \"vm\", \"image\": \"42\"}'\n"
      "  cheops app explain GET /things/7\n"},
     "METHOD PATH [BODY | @FILE | -]",
     app_explain},
	{{"import", "write a first draft of a description from an OpenAPI file",
      "Reads OpenAPI 3 or Swagger 2, as JSON, and prints a description to start from: collections and\n"
      "items by their paths, ids by the names of parameters, lists by the schemas of answers. Read it\n"
      "before you use it: what it cannot know is marked.\n",
      "  cheops app import openapi.json > app.yaml\n"},
     "FILE",
     app_import},
};
enum { ACTIONS_COUNT = sizeof(actions) / sizeof(actions[0]) };

/* ---- Help ------------------------------------------------------------------------------------------------------- */

static void put_options(struct buf *out)
{
	buf_put(out, STR("\nOptions:\n"));
	cli_options_describe(out, options);
	buf_put(out, STR("\nExit status: 0 fine, 1 refused (lint: an error was found; explain: the path is unknown),\n"
	                 "2 wrong usage or a file that cannot be read.\n"));
}

static int help_action(const struct action *action)
{
	struct buf out = {0};
	buf_printf(&out, "%s\nusage: cheops app %s [OPTION]... %s\n", action->about.details, action->about.name,
	           action->usage);
	put_options(&out);
	buf_printf(&out, "\nExamples:\n%s", action->about.examples);
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments -------------------------------------------------------------------------------------------------- */

/* Of all headers only the content type says what a request is. */
static int take_header(struct app_call *call, const char *value)
{
	static const struct str name = STR_INIT("Content-Type");
	struct str text = str_of(value);
	const char *colon = strchr(value, ':');
	if (colon == NULL)
		return cli_usage(call->command, "--header " TEXT_NAME_FMT " has no colon; a header is `Name: value`",
		                 TEXT_NAME(text));
	if (!str_equal_nocase(str_make(value, (size_t)(colon - value)), name))
		return CLI_FINE;
	call->content_type = str_of(colon + 1 + strspn(colon + 1, " \t"));
	return CLI_FINE;
}

static int take_output(struct app_call *call, const char *value)
{
	static const char *const words[] = {"text", "json", NULL};
	int chosen = 0;
	int status = cli_choose(&(struct cli_choice){call->command, "output", words}, value, &chosen);
	call->json = chosen == 1;
	return status;
}

static int take(void *context, int kind, const char *value)
{
	struct app_call *call = context;
	switch (kind) {
	case OPTION_APP: call->app = value; return CLI_FINE;
	case OPTION_SERVICE: call->service = str_of(value); return CLI_FINE;
	case OPTION_HEADER: return take_header(call, value);
	case OPTION_CONTENT_TYPE: call->content_type = str_of(value); return CLI_FINE;
	case OPTION_NAME: call->name = value; return CLI_FINE;
	case OPTION_OUTPUT: return take_output(call, value);
	default: break;
	}
	if (call->arguments_count == APP_ARGUMENTS)
		return cli_usage(call->command, "more than %d arguments", APP_ARGUMENTS);
	call->arguments[call->arguments_count++] = value;
	return CLI_FINE;
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
	struct app_call call = {.command = command};
	arena_init(&call.arena, 0);
	int status = cli_arguments_each(&arguments, take, &call);
	if (status == CLI_HELP)
		status = help_action(action);
	else if (status == CLI_FINE)
		status = action->run(&call);
	arena_free(&call.arena);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct cli_actions all = {
		.command = "app",
		.purpose = "Works on descriptions of applications: what Cheops knows of an API.",
		.usage = "ACTION [OPTION]... ARGUMENT...",
		.question = "what to do with the description?",
		.at = action_at,
		.put_rest = put_options,
		.run = run_action,
	};
	return cli_actions_run(&all, argc, argv);
}

const struct cli_command cli_command_app = {"app", "check descriptions of applications, explain requests", run};
