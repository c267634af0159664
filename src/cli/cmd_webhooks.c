/* cheops webhooks: who is told of changes, and how that goes. */
#include "cli/listing.h"
#include "cli/watch.h"

static const struct cli_option options[] = {CLI_WATCH_OPTIONS, {0}};

static const char about[] =
	"Shows the webhooks of an agent: who is told what happens to replicated resources, and how that goes.\n"
	"\n"
	"usage: cheops webhooks [OPTION]...\n";

static const char more[] =
	"STATE     `idle` it was told all; `telling`; `waiting` it does not answer, and is tried again\n"
	"BEHIND    changes that it was not told of yet\n"
	"FAILED    requests that it did not answer with 2xx, since the agent started\n"
	"\n"
	"They are set by `webhooks` in the agent's configuration.\n"
	"Exit status: 0 fine, 1 refused or no answer, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  cheops webhooks\n"
	"  cheops webhooks -o json | jq '.webhooks[] | select(.state == \"waiting\")'\n";

static int take(void *context, int kind, const char *value)
{
	(void)context;
	(void)kind;
	return cli_usage("webhooks", "what is " TEXT_NAME_FMT "? Only options are expected", TEXT_NAME(str_of(value)));
}

static void add_number(struct cli_table *table, const json_t *item, const char *name)
{
	struct buf text = {0};
	double number = 0;
	cli_json_number(item, name, &number);
	buf_printf(&text, "%.0f", number);
	cli_table_add(table, "", buf_str(&text));
	buf_free(&text);
}

static void put_table(struct buf *out, const json_t *answer, bool colour)
{
	static const char *const titles[] = {"NAME", "URL", "STATE", "BEHIND", "TOLD", "FAILED", "LAST ERROR", NULL};
	struct cli_table table;
	size_t index;
	json_t *item;
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "webhooks"), index, item)
	{
		struct buf error = {0};
		struct str state = cli_json_text(item, "state");
		int64_t failed_ms;
		cli_table_add(&table, "", cli_json_text(item, "name"));
		cli_table_add(&table, "", cli_json_text(item, "url"));
		cli_table_add(&table, str_equal(state, STR("waiting")) ? CLI_RED : CLI_GREEN, state);
		add_number(&table, item, "behind");
		add_number(&table, item, "told");
		add_number(&table, item, "failed");
		if (cli_json_time(item, "last_failed", &failed_ms)) {
			cli_put_clock(&error, failed_ms, cli_now_ms());
			buf_put(&error, STR(" "));
			buf_put(&error, cli_json_text(item, "last_error"));
		}
		cli_table_add(&table, "", buf_str(&error));
		buf_free(&error);
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
}

static int show(const void *context, struct buf *out)
{
	const struct cli_watch *watch = context;
	json_t *answer;
	struct cli_question question = {.address = &watch->address, .method = "GET", .target = STR("/cheops/v1/webhooks")};
	int status = cli_ask_or_tell(&question, &answer);
	if (status != CLI_FINE)
		return status;
	if (!cli_watch_put_data(watch, out, answer))
		put_table(out, answer, cli_watch_colour(watch));
	json_decref(answer);
	return CLI_FINE;
}

static int run(int argc, char **argv)
{
	static const struct cli_watcher watcher = {
		.command = "webhooks", .about = about, .more = more, .options = options, .take = take, .show = show};
	struct cli_watch watch = {.call = &watch};
	return cli_watch_run(&watcher, &watch, argc, argv);
}

const struct cli_command cli_command_webhooks = {"webhooks", "show who is told of changes, and how that goes", run};
