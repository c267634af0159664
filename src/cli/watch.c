#include "cli/watch.h"

#include <time.h>
#include <unistd.h>

enum { WATCH_S = 2 };

/* As CLI_WATCH_OPTIONS has them. */
enum { OPTION_WATCH, OPTION_OUTPUT, OPTION_API, OPTION_CONFIG, OPTION_COLOR };

struct run {
	const struct cli_watcher *watcher;
	struct cli_watch *watch;
};

int cli_format_take(const char *command, const char *value, enum cli_format *format)
{
	static const char *const words[] = {
		[CLI_FORMAT_TABLE] = "table", [CLI_FORMAT_JSON] = "json", [CLI_FORMAT_YAML] = "yaml", NULL};
	int chosen = CLI_FORMAT_TABLE;
	int status = cli_choose(&(struct cli_choice){command, "output", words}, value, &chosen);
	*format = (enum cli_format)chosen;
	return status;
}

static int take(void *context, int kind, const char *value)
{
	const struct run *run = context;
	const struct cli_watcher *watcher = run->watcher;
	struct cli_watch *watch = run->watch;
	if (kind == CLI_ARGUMENT || kind < watcher->options_own)
		return watcher->take(watch->call, kind, value);
	switch (kind - watcher->options_own) {
	case OPTION_WATCH: watch->again = true; return CLI_FINE;
	case OPTION_OUTPUT: return cli_format_take(watcher->command, value, &watch->format);
	case OPTION_API: watch->api = value; return CLI_FINE;
	case OPTION_CONFIG: watch->config = value; return CLI_FINE;
	case OPTION_COLOR: return cli_colour_take(watcher->command, value, &watch->colour);
	default: return CLI_HELP;
	}
}

static int help(const struct cli_watcher *watcher)
{
	struct buf out = {0};
	buf_printf(&out, "%s\nOptions:\n", watcher->about);
	cli_options_describe(&out, watcher->options);
	buf_printf(&out, "\n%s", watcher->more);
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* Each time in one piece, over what was there before. An agent that does not answer for a while is waited for. */
static int show(const struct run *run)
{
	const struct cli_watch *watch = run->watch;
	bool clear = watch->again && watch->format == CLI_FORMAT_TABLE && isatty(STDOUT_FILENO);
	for (bool first = true;; first = false) {
		struct buf out = {0};
		buf_put(&out, clear ? STR("\033[H\033[J") : STR(""));
		int status = run->watcher->show(run->watch->call, &out);
		if (status == CLI_FINE)
			status = cli_print(buf_str(&out));
		else if (watch->again && !first)
			status = CLI_FINE;
		buf_free(&out);
		if (status != CLI_FINE || !watch->again)
			return status;
		nanosleep(&(struct timespec){.tv_sec = WATCH_S}, NULL);
	}
}

int cli_watch_run(const struct cli_watcher *watcher, struct cli_watch *watch, int argc, char **argv)
{
	struct run run = {watcher, watch};
	struct cli_arguments arguments = {
		.command = watcher->command, .options = watcher->options, .argv = argv + 1, .argc = argc - 1};
	int status = cli_arguments_each(&arguments, take, &run);
	if (status == CLI_HELP)
		return help(watcher);
	if (status == CLI_FINE && watcher->check != NULL)
		status = watcher->check(watch->call);
	if (status == CLI_FINE)
		status = cli_api_find(watch->api, watch->config, &watch->address);
	return status == CLI_FINE ? show(&run) : status;
}

bool cli_watch_put_data(const struct cli_watch *watch, struct buf *out, json_t *answer)
{
	if (watch->format == CLI_FORMAT_JSON)
		cli_put_json(out, answer);
	else if (watch->format == CLI_FORMAT_YAML)
		cli_put_yaml(out, answer);
	return watch->format != CLI_FORMAT_TABLE;
}

bool cli_watch_colour(const struct cli_watch *watch)
{
	return cli_colour_on(watch->colour, STDOUT_FILENO);
}
