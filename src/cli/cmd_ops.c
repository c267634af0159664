/* cheops ops: operations on replicated resources, and a person's word on those that are rejected or in doubt. */
#include "cli/listing.h"
#include "cli/waiting.h"

#include "agent/file.h"

#include "replica/replica.h"

enum { OPTION_WAIT, OPTION_TIMEOUT, OPTION_CREDENTIAL, OPTION_OF, OPTION_SITE, OPTION_STATE, OPTIONS_OWN };

static const struct cli_option options[] = {
	[OPTION_WAIT] = {"wait", 0, "WHO", "get: wait until it is applied at `all`, at a `majority`, or at that site"},
	[OPTION_TIMEOUT] = {"timeout", 0, "SECONDS", "get: but no longer than that (default: 30, at most 600)"},
	[OPTION_CREDENTIAL] = {"credential", 0, "FILE",
                           "retry: with what is in there, such as `Authorization: Bearer ...`"},
	[OPTION_OF] = {"of", 0, "ID", "operations on that resource only"},
	[OPTION_SITE] = {"site", 0, "SITE", "of which that site is a member; with --state, whose state is meant"},
	[OPTION_STATE] = {"state", 0, "STATE", "those in that state at some site"},
	[OPTIONS_OWN] = CLI_WATCH_OPTIONS,
	{0},
};

enum action { ACTION_LIST, ACTION_GET, ACTION_RETRY, ACTION_HAPPENED, ACTION_DISMISS, ACTIONS };

static const char *const names[ACTIONS] = {
	[ACTION_GET] = "get", [ACTION_RETRY] = "retry", [ACTION_HAPPENED] = "happened", [ACTION_DISMISS] = "dismiss"};

static const char about[] =
	"Shows operations on replicated resources, and decides on those that are rejected or in doubt.\n"
	"\n"
	"usage: cheops ops [OPTION]...\n"
	"       cheops ops get|retry|happened|dismiss ID [OPTION]...\n"
	"\n"
	"Actions:\n"
	"  (none)    list those that are not settled at every site\n"
	"  get       one, with what services answered\n"
	"  retry     run it again at this site, where it was rejected or is in doubt\n"
	"  happened  it is in doubt, and did have its effect at this site\n"
	"  dismiss   in doubt: it did not, and is not to be run; rejected: stop showing it\n";

static const char more[] =
	"ID        as `Cheops-Operation` in the answer to a write has it: the resource, who issued it, number\n"
	"STATE     `applied`; `pending` not yet heard that it is done; `superseded` it lost against another\n"
	"          one; `rejected` the service there refused it; `rejected-credential` for its credential\n"
	"          alone; `in-doubt` it was sent to the service, and nobody knows what became of it\n"
	"\n"
	"What was rejected for its credential is run again with another one: FILE has it, a header in each\n"
	"line, and only its owner and group may read it.\n"
	"retry, happened and dismiss are for the agent of the site where it is rejected or in doubt.\n"
	"Exit status: 0 fine, 1 refused, no answer, or waited for in vain, 2 wrong usage.\n"
	"\n"
	"Examples:\n"
	"  cheops ops --state rejected\n"
	"  cheops ops get 01890a5d-ac96-774b-bcce-b302099a8057.235a35194ec61b56.1 --wait all\n"
	"  cheops ops retry 01890a5d-ac96-774b-bcce-b302099a8057.235a35194ec61b56.1 --api 127.0.0.1:8100\n";

struct ops_call {
	enum action action;
	const char *id;
	struct cli_waiting waiting;
	const char *credential;
	const char *of;
	const char *site;
	const char *state;
	struct cli_watch watch;
};

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

static int take_action(struct ops_call *call, const char *value)
{
	int action = 0;
	int status =
		cli_choose_action("ops", names, ACTIONS, "one of get, retry, happened and dismiss, or nothing", value, &action);
	call->action = (enum action)action;
	return status;
}

static int take_plain(struct ops_call *call, const char *value)
{
	struct replica_op_id id;
	if (call->action == ACTION_LIST)
		return take_action(call, value);
	if (call->id != NULL)
		return cli_usage("ops", "more than one ID: " TEXT_NAME_FMT " and " TEXT_NAME_FMT, TEXT_NAME(str_of(call->id)),
		                 TEXT_NAME(str_of(value)));
	if (!replica_op_id_parse(str_of(value), &id))
		return cli_usage("ops",
		                 TEXT_NAME_FMT " is no id of an operation; `Cheops-Operation` in the answer to a write has it",
		                 TEXT_NAME(str_of(value)));
	call->id = value;
	return CLI_FINE;
}

static int take(void *context, int kind, const char *value)
{
	struct ops_call *call = context;
	switch (kind) {
	case OPTION_WAIT: call->waiting.who = value; return CLI_FINE;
	case OPTION_TIMEOUT: return cli_timeout_take("ops", value, &call->waiting);
	case OPTION_CREDENTIAL: call->credential = value; return CLI_FINE;
	case OPTION_OF: call->of = value; return CLI_FINE;
	case OPTION_SITE: call->site = value; return CLI_FINE;
	case OPTION_STATE: call->state = value; return CLI_FINE;
	default: return take_plain(call, value);
	}
}

/* Which options go with which action. */
static int check(const void *context)
{
	const struct ops_call *call = context;
	bool list = call->action == ACTION_LIST, get = call->action == ACTION_GET;
	if (!list && call->id == NULL)
		return cli_usage("ops", "ID is missing: which operation?");
	if (!list && (call->of != NULL || call->site != NULL || call->state != NULL))
		return cli_usage("ops", "--of, --site and --state choose from the list; with an id there is one only");
	if (!get && (call->waiting.who != NULL || call->waiting.timeout_given))
		return cli_usage("ops", "--wait and --timeout are for `cheops ops get ID`");
	if (call->credential != NULL && call->action != ACTION_RETRY)
		return cli_usage("ops", "--credential is for `cheops ops retry ID`");
	if (call->watch.again && (call->waiting.who != NULL || !(list || get)))
		return cli_usage("ops", "--watch is for lists and `cheops ops get ID` without --wait");
	return cli_waiting_check("ops", &call->waiting);
}

/* ---- Showing ----------------------------------------------------------------------------------------------------- */

static void add_row(struct cli_table *table, const json_t *item)
{
	struct buf text = {0};
	struct str state = cli_json_text(item, "state");
	int64_t issued_ms;
	cli_table_add(table, "", cli_json_text(item, "id"));
	cli_table_add(table, "", cli_json_text(item, "operation"));
	cli_table_add(table, "", cli_json_text(item, "issuer"));
	if (cli_json_time(item, "issued", &issued_ms))
		cli_put_clock(&text, issued_ms, cli_now_ms());
	cli_table_add(table, "", buf_str(&text));
	cli_table_add(table, cli_state_colour(state), state);
	buf_clear(&text);
	cli_put_members(&text, item);
	cli_table_add(table, "", buf_str(&text));
	buf_free(&text);
}

static void put_answers(struct buf *out, const json_t *item)
{
	size_t index;
	json_t *member;
	json_array_foreach(json_object_get(item, "members"), index, member)
	{
		struct str answer = cli_json_text(member, "answer"), reason = cli_json_text(member, "reason");
		if (reason.length > 0) {
			text_put_harmless(out, cli_json_text(member, "site"));
			buf_put_char(out, ' ');
			text_put_harmless(out, reason);
			buf_put_char(out, '\n');
		}
		if (answer.length == 0)
			continue;
		buf_put(out, STR("The service at "));
		text_put_harmless(out, cli_json_text(member, "site"));
		buf_put(out, STR(" answered: "));
		text_put_harmless(out, answer);
		buf_put_char(out, '\n');
	}
	struct str by = cli_json_text(item, "superseded_by");
	struct str merged = cli_json_text(item, "merges");
	if (merged.length > 0) {
		buf_put(out, STR("It was made apart under the same name, and is part of this one since: "));
		text_put_harmless(out, merged);
		buf_put_char(out, '\n');
	}
	if (by.length > 0) {
		buf_put(out, STR("It was superseded by "));
		text_put_harmless(out, by);
		buf_put_char(out, '\n');
	}
}

static void put_table(struct buf *out, const struct ops_call *call, const json_t *answer)
{
	static const char *const titles[] = {"ID", "OPERATION", "BY", "ISSUED", "STATE", "SITES", NULL};
	struct cli_table table;
	size_t index;
	json_t *item;
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "operations"), index, item)
	{
		add_row(&table, item);
	}
	if (call->action != ACTION_LIST)
		add_row(&table, answer);
	cli_table_put(out, &table, cli_watch_colour(&call->watch));
	cli_table_free(&table);
	if (call->action != ACTION_LIST)
		put_answers(out, answer);
}

static void put(struct buf *out, const struct ops_call *call, json_t *answer)
{
	if (cli_watch_put_data(&call->watch, out, answer))
		return;
	if (call->action != ACTION_LIST && json_object_get(answer, "id") == NULL)
		buf_put(out, STR("Done; nothing is left of it.\n"));
	else
		put_table(out, call, answer);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

static int ask_list(const struct ops_call *call, json_t **answer)
{
	struct buf target = {0};
	buf_put(&target, STR("/cheops/v1/operations?limit=200"));
	cli_query_add(&target, "replicant", call->of);
	cli_query_add(&target, "site", call->site);
	cli_query_add(&target, "state", call->state);
	struct cli_list list = {.address = &call->watch.address, .target = buf_str(&target), .name = "operations"};
	int status = cli_list_ask(&list, answer);
	buf_free(&target);
	return status;
}

/* "Name: value" in each line, as headers are: they go to the agent, and nowhere else. */
static int read_credential(const char *path, struct buf *fields)
{
	struct buf text = {0};
	struct err err = {0};
	int status = CLI_FINE;
	if (agent_secret_read(path, LIMIT_AGENT_CREDENTIAL_BYTES + 1, &text, &err) != 0) {
		cli_say("%s", err.text);
		status = CLI_USAGE;
	}
	for (size_t at = 0; status == CLI_FINE && at < text.length;) {
		const char *end = memchr(text.at + at, '\n', text.length - at);
		struct str line = str_make(text.at + at, end ? (size_t)(end - text.at) - at : text.length - at);
		at += line.length + (end != NULL);
		if (line.length > 0 && line.at[line.length - 1] == '\r')
			line.length--;
		const char *colon = line.length > 0 ? memchr(line.at, ':', line.length) : NULL;
		bool good = colon && colon > line.at;
		for (size_t i = 0; good && i < line.length; i++)
			good = (unsigned char)line.at[i] >= ' ' && line.at[i] != 0x7f && (line.at[i] != ' ' || line.at + i > colon);
		if (good)
			buf_printf(fields, "%.*s\r\n", STR_FMT(line));
		else if (line.length > 0)
			status = cli_usage("ops",
			                   "--credential: `" TEXT_PATH_FMT "` has a line that is no header; each has to be as "
			                   "`Authorization: Bearer ...`",
			                   TEXT_PATH(path));
	}
	if (status == CLI_FINE && (fields->length == 0 || text.length > LIMIT_AGENT_CREDENTIAL_BYTES))
		status = cli_usage("ops", "--credential: `" TEXT_PATH_FMT "` has to have headers in it, of 1 to %d bytes",
		                   TEXT_PATH(path), LIMIT_AGENT_CREDENTIAL_BYTES);
	if (text.at)
		explicit_bzero(text.at, text.capacity);
	buf_free(&text);
	return status;
}

static int ask_one(const struct ops_call *call, json_t **answer)
{
	struct buf target = {0}, fields = {0};
	int status = call->credential != NULL ? read_credential(call->credential, &fields) : CLI_FINE;
	if (status != CLI_FINE) {
		buf_free(&fields);
		return status;
	}
	buf_printf(&target, "/cheops/v1/operations/%s", call->id);
	bool post = call->action != ACTION_GET;
	if (post)
		buf_printf(&target, "/%s", names[call->action]);
	cli_waiting_add(&target, &call->waiting);
	struct cli_question question = {.address = &call->watch.address,
	                                .method = post ? "POST" : "GET",
	                                .target = buf_str(&target),
	                                .fields = buf_str(&fields),
	                                .patience_ms = call->waiting.who != NULL ? call->waiting.timeout_s * 1000 : 0};
	status = cli_ask_or_tell(&question, answer);
	if (fields.at)
		explicit_bzero(fields.at, fields.capacity);
	buf_free(&fields);
	buf_free(&target);
	return status;
}

static int show(const void *context, struct buf *out)
{
	const struct ops_call *call = context;
	json_t *answer;
	int status = call->action == ACTION_LIST ? ask_list(call, &answer) : ask_one(call, &answer);
	if (status != CLI_FINE)
		return status;
	put(out, call, answer);
	if (call->waiting.who != NULL) {
		status = cli_print(buf_str(out));
		buf_clear(out);
		if (status == CLI_FINE)
			status = cli_waiting_status(&call->waiting, answer);
	}
	json_decref(answer);
	return status;
}

static int run(int argc, char **argv)
{
	static const struct cli_watcher watcher = {
		.command = "ops",
		.about = about,
		.more = more,
		.options = options,
		.options_own = OPTIONS_OWN,
		.take = take,
		.check = check,
		.show = show,
	};
	struct ops_call call = {.waiting = {.timeout_s = CLI_TIMEOUT_S}, .watch.call = &call};
	return cli_watch_run(&watcher, &call.watch, argc, argv);
}

const struct cli_command cli_command_ops = {"ops", "show operations on replicated resources, decide on those in doubt",
                                            run};
