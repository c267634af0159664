/* Commands with actions: which one is meant, and the help on all of them. */
#include "cli/cli.h"

/* "fmt, check, explain and tokens". */
static void put_names(struct buf *out, const struct cli_actions *actions)
{
	for (size_t i = 0; actions->at(i) != NULL; i++) {
		bool last = actions->at(i + 1) == NULL;
		buf_put(out, i == 0 ? STR("") : last ? STR(" and ") : STR(", "));
		buf_put(out, str_of(actions->at(i)->name));
	}
}

static int help(const struct cli_actions *actions)
{
	struct buf out = {0};
	buf_printf(&out, "%s\n\nusage: cheops %s %s\n\nActions:\n", actions->purpose, actions->command, actions->usage);
	for (size_t i = 0; actions->at(i) != NULL; i++)
		buf_printf(&out, "  %-10s%s\n", actions->at(i)->name, actions->at(i)->summary);
	actions->put_rest(&out);
	buf_put(&out, STR("\nExamples:\n"));
	for (size_t i = 0; actions->at(i) != NULL; i++)
		buf_put(&out, str_of(actions->at(i)->examples));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

static int missing(const struct cli_actions *actions)
{
	struct buf names = {0};
	put_names(&names, actions);
	int status = cli_usage(actions->command, "%s One of %s is missing", actions->question, buf_c(&names));
	buf_free(&names);
	return status;
}

static int unknown(const struct cli_actions *actions, struct str name)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, name);
	for (size_t i = 0; actions->at(i) != NULL; i++)
		suggest_offer(&suggest, str_of(actions->at(i)->name));
	if (suggest.best.length > 0)
		return cli_usage(actions->command, "no action " TEXT_NAME_FMT "%s", TEXT_NAME(name),
		                 text_did_you_mean(&suggest, meant));
	struct buf names = {0};
	put_names(&names, actions);
	int status = cli_usage(actions->command, "no action " TEXT_NAME_FMT "; first comes one of %s", TEXT_NAME(name),
	                       buf_c(&names));
	buf_free(&names);
	return status;
}

int cli_actions_run(const struct cli_actions *actions, int argc, char **argv)
{
	if (argc < 2)
		return missing(actions);
	if (strcmp(argv[1], "-h") == 0 || strcmp(argv[1], "--help") == 0)
		return help(actions);
	for (size_t i = 0; actions->at(i) != NULL; i++) {
		if (strcmp(argv[1], actions->at(i)->name) != 0)
			continue;
		struct buf command = {0};
		buf_printf(&command, "%s %s", actions->command, argv[1]);
		int status = actions->run(i, buf_c(&command), argc - 2, argv + 2);
		buf_free(&command);
		return status;
	}
	return unknown(actions, str_of(argv[1]));
}
