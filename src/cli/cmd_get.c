/* cheops get: replicated resources, and how their copies stand. */
#include "cli/listing.h"

#include "replica/replica.h"

#include <unistd.h>

enum {
	OPTION_SERVICE,
	OPTION_SITE,
	OPTION_STATE,
	OPTION_WATCH,
	OPTION_OUTPUT,
	OPTION_API,
	OPTION_CONFIG,
	OPTION_COLOR,
	OPTION_HELP
};

static const struct cli_option options[] = {
	[OPTION_SERVICE] = {"service", 0, "NAME", "of that service only"},
	[OPTION_SITE] = {"site", 0, "SITE", "those with a copy at that site; with --state, whose copy is meant"},
	[OPTION_STATE] = {"state", 0, "STATE", "those with a copy in that state; `deleted` shows what is gone"},
	[OPTION_WATCH] = {"watch", 'w', NULL, "show it again every two seconds, until Ctrl-C"},
	[OPTION_OUTPUT] = {"output", 'o', "FORMAT", "`table` (default), `json` or `yaml`"},
	[OPTION_API] = {"api", 0, "ADDRESS", "where the agent is asked, or set CHEOPS_API"},
	[OPTION_CONFIG] = {"config", 'c', "FILE", "the agent's configuration: its `api` is asked"},
	[OPTION_COLOR] = {"color", 0, "WHEN", "`auto` (default; see NO_COLOR), `always` or `never`"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

struct get_call {
	const char *type;
	const char *id;
	const char *service;
	const char *site;
	const char *state;
	const char *api;
	const char *config;
	enum cli_format format;
	enum cli_colour colour;
	bool watch;
	struct http_address address;
};

static int help(void)
{
	struct buf out = {0};
	buf_put(&out, STR("Shows replicated resources of which this site has a copy, and how all copies stand.\n"
	                  "\n"
	                  "usage: cheops get [TYPE] [ID] [OPTION]...\n"
	                  "\n"
	                  "Options:\n"));
	cli_options_describe(&out, options);
	buf_put(&out,
	        STR("\nTYPE      as the description of the application has it, `network.pool`, or in short, `pool`\n"
	            "ID        the meta-id: this one alone, a line for each site\n"
	            "\n"
	            "STATE     `settled` it has all that is known here; `pending` it lacks something, or has not said\n"
	            "          that it is done; `rejected` its service refused an operation; `in-doubt` nobody knows\n"
	            "          whether one was carried out (`cheops ops` shows which); `stuck` it waits for the state\n"
	            "          of another copy; `diverged` and none can give it; `deleted`\n"
	            "          `(unknown since ...)` the site is out of reach: this is what it reported last\n"
	            "\n"
	            "Without --api or CHEOPS_API the agent is asked where its configuration (-c, or\n"
	            "/etc/cheops/agent.yaml) says, else at 127.0.0.1:8079.\n"
	            "Exit status: 0 fine, 1 refused or no answer, 2 wrong usage.\n"
	            "\n"
	            "Examples:\n"
	            "  cheops get\n"
	            "  cheops get pool --state pending --watch\n"
	            "  cheops get 01890a5d-ac96-774b-bcce-b302099a8057\n"
	            "  cheops get image -o json | jq -r '.replicants[].id'\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

static int take_plain(struct get_call *call, const char *value)
{
	struct replica_id id;
	bool is_id = replica_id_parse(str_of(value), &id);
	if (*value == '\0' || !text_is_printable(str_of(value)))
		return cli_usage("get", "a type or an id is empty, or not printable UTF-8 text");
	if (call->id != NULL || (call->type != NULL && !is_id))
		return cli_usage("get", "what is " TEXT_NAME_FMT "? After a type comes a meta-id, and nothing after that",
		                 TEXT_NAME(str_of(value)));
	*(is_id ? &call->id : &call->type) = value;
	return CLI_FINE;
}

static int take(void *context, int kind, const char *value)
{
	struct get_call *call = context;
	switch (kind) {
	case OPTION_SERVICE: call->service = value; return CLI_FINE;
	case OPTION_SITE: call->site = value; return CLI_FINE;
	case OPTION_STATE: call->state = value; return CLI_FINE;
	case OPTION_WATCH: call->watch = true; return CLI_FINE;
	case OPTION_OUTPUT: return cli_format_take("get", value, &call->format);
	case OPTION_API: call->api = value; return CLI_FINE;
	case OPTION_CONFIG: call->config = value; return CLI_FINE;
	case OPTION_COLOR: return cli_colour_take("get", value, &call->colour);
	default: return take_plain(call, value);
	}
}

/* ---- Showing ----------------------------------------------------------------------------------------------------- */

static void put_list(struct buf *out, const json_t *answer, bool colour)
{
	static const char *const titles[] = {"ID", "TYPE", "NAME", "STATE", "SITES", NULL};
	struct cli_table table;
	size_t index;
	json_t *item;
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "replicants"), index, item)
	{
		struct buf members = {0};
		struct str state = cli_json_text(item, "state");
		cli_table_add(&table, "", cli_json_text(item, "id"));
		cli_table_add(&table, "", cli_json_text(item, "type"));
		cli_table_add(&table, "", cli_json_text(item, "name"));
		cli_table_add(&table, cli_state_colour(state), state);
		cli_put_members(&members, item);
		cli_table_add(&table, "", buf_str(&members));
		buf_free(&members);
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
}

static void add_number(struct cli_table *table, const json_t *item, const char *name)
{
	struct buf text = {0};
	double number;
	if (cli_json_number(item, name, &number) && number > 0)
		buf_printf(&text, "%.0f", number);
	cli_table_add(table, "", buf_str(&text));
	buf_free(&text);
}

static void put_one(struct buf *out, const json_t *item, bool colour)
{
	static const char *const titles[] = {"SITE",     "STATE",    "LOCAL ID", "PENDING",
	                                     "REJECTED", "IN DOUBT", "SITE IS",  NULL};
	struct cli_table table;
	size_t index;
	json_t *member;
	struct str name = cli_json_text(item, "name");
	text_put_harmless(out, cli_json_text(item, "type"));
	buf_put_char(out, ' ');
	text_put_harmless(out, cli_json_text(item, "id"));
	if (name.length > 0) {
		buf_put(out, STR(" ("));
		text_put_harmless(out, name);
		buf_put_char(out, ')');
	}
	buf_put(out, STR(", "));
	text_put_harmless(out, cli_json_text(item, "consistency"));
	buf_put_char(out, '\n');
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(item, "members"), index, member)
	{
		struct str state = cli_json_text(member, "state");
		cli_table_add(&table, "", cli_json_text(member, "site"));
		cli_table_add(&table, cli_state_colour(state), state);
		cli_table_add(&table, "", cli_json_text(member, "local_id"));
		add_number(&table, member, "pending");
		add_number(&table, member, "rejected");
		add_number(&table, member, "in_doubt");
		cli_table_add(&table, "", cli_json_text(member, "shown"));
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
}

static int ask(const struct get_call *call, json_t **answer)
{
	struct buf target = {0};
	buf_put(&target, STR("/cheops/v1/replicants"));
	if (call->id != NULL) {
		buf_printf(&target, "/%s", call->id);
	} else {
		cli_query_add(&target, "type", call->type);
		cli_query_add(&target, "service", call->service);
		cli_query_add(&target, "site", call->site);
		cli_query_add(&target, "state", call->state);
		cli_query_add(&target, "limit", "200");
	}
	struct cli_question one = {.address = &call->address, .method = "GET", .target = buf_str(&target)};
	struct cli_list list = {.address = &call->address, .target = buf_str(&target), .name = "replicants"};
	int status = call->id != NULL ? cli_ask_or_tell(&one, answer) : cli_list_ask(&list, answer);
	buf_free(&target);
	return status;
}

static int show(const void *context, struct buf *out)
{
	const struct get_call *call = context;
	bool colour = cli_colour_on(call->colour, STDOUT_FILENO);
	json_t *answer;
	int status = ask(call, &answer);
	if (status != CLI_FINE)
		return status;
	if (call->format == CLI_FORMAT_JSON)
		cli_put_json(out, answer);
	else if (call->format == CLI_FORMAT_YAML)
		cli_put_yaml(out, answer);
	else if (call->id != NULL)
		put_one(out, answer, colour);
	else
		put_list(out, answer, colour);
	json_decref(answer);
	return CLI_FINE;
}

static int run(int argc, char **argv)
{
	struct get_call call = {0};
	struct cli_arguments arguments = {.command = "get", .options = options, .argv = argv + 1, .argc = argc - 1};
	int status = cli_arguments_each(&arguments, take, &call);
	if (status != CLI_FINE)
		return status == CLI_HELP ? help() : status;
	if (call.id != NULL && (call.service != NULL || call.site != NULL || call.state != NULL))
		return cli_usage("get", "--service, --site and --state choose from the list; with an id there is one only");
	status = cli_api_find(call.api, call.config, &call.address);
	if (status != CLI_FINE)
		return status;
	return cli_show_run(&(struct cli_show){call.format, call.watch, show, &call});
}

const struct cli_command cli_command_get = {"get", "show replicated resources, and how their copies stand", run};
