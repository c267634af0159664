/* cheops get: replicated resources, and how their copies stand. */
#include "cli/verify.h"

#include "replica/replica.h"

enum { OPTION_SERVICE, OPTION_SITE, OPTION_STATE, OPTION_VERIFY, OPTION_PARTS, OPTIONS_OWN };

static const struct cli_option options[] = {
	[OPTION_SERVICE] = {"service", 0, "NAME", "of that service only"},
	[OPTION_SITE] = {"site", 0, "SITE", "those with a copy at that site; with --state, whose copy is meant"},
	[OPTION_STATE] = {"state", 0, "STATE", "those with a copy in that state; `deleted` shows what is gone"},
	[OPTION_VERIFY] = {"verify", 0, NULL, "compare the copies, as the services of the sites have them now"},
	[OPTION_PARTS] = {"parts", 0, NULL, "of one: what it is made of at each site, as the services have it now"},
	[OPTIONS_OWN] = CLI_WATCH_OPTIONS,
	{0},
};

static const char about[] = "Shows replicated resources of which this site has a copy, and how all copies stand.\n"
							"\n"
							"usage: cheops get [TYPE] [ID] [OPTION]...\n";

static const char more[] =
	"TYPE      as the description of the application has it, `network.pool`, or in short, `pool`\n"
	"ID        the meta-id: this one alone, a line for each site\n"
	"\n"
	"STATE     `settled` it has all that is known here; `pending` it lacks something, or has not said\n"
	"          that it is done; `rejected` its service refused an operation; `in-doubt` nobody knows\n"
	"          whether one was carried out (`cheops ops` shows which); `stuck` it waits for the state\n"
	"          of another copy; `diverged` and none can give it; `deleted`; `left`\n"
	"          the site that is asked was dropped: ask one that has it\n"
	"          `(unknown since ...)` the site is out of reach: this is what it reported last\n"
	"          `at risk` this site cannot get at something that it relies on\n"
	"\n"
	"VERIFY    `same` as the others, or as most of them; `differs`, `missing` somebody changed or deleted it\n"
	"          behind Cheops' back (`cheops repair` makes one copy that of all); `not-settled` operations\n"
	"          are on their way; `unknown` the site, or its service, cannot be asked. Files are compared as well\n"
	"\n"
	"Without --api or CHEOPS_API the agent is asked where its configuration (-c, or\n"
	"/etc/cheops/agent.yaml) says, else at 127.0.0.1:8079.\n"
	"Exit status: 0 fine, 1 refused or no answer, 2 wrong usage; with --verify 3 if a copy differs or is\n"
	"missing, 1 if none does but not all of them could be compared.\n"
	"\n"
	"Examples:\n"
	"  cheops get\n"
	"  cheops get pool --state pending --watch\n"
	"  cheops get 01890a5d-ac96-774b-bcce-b302099a8057\n"
	"  cheops get pool --verify\n"
	"  cheops get stack 01890a5d-ac96-774b-bcce-b302099a8057 --parts\n"
	"  cheops get image -o json | jq -r '.replicants[].id'\n";

struct get_call {
	const char *type;
	const char *id;
	const char *service;
	const char *site;
	const char *state;
	bool verify;
	bool parts;
	struct cli_watch watch;
};

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
	case OPTION_VERIFY: call->verify = true; return CLI_FINE;
	case OPTION_PARTS: call->parts = true; return CLI_FINE;
	default: return take_plain(call, value);
	}
}

static int check(const void *context)
{
	const struct get_call *call = context;
	if (call->id != NULL && (call->service != NULL || call->site != NULL || call->state != NULL))
		return cli_usage("get", "--service, --site and --state choose from the list; with an id there is one only");
	if (call->parts && (call->id == NULL || call->verify))
		return cli_usage("get", "--parts is for one resource: give its id, and not --verify");
	if (call->verify && call->watch.again)
		return cli_usage("get", "--verify asks the services of all sites: not again and again, so not with --watch");
	return CLI_FINE;
}

/* ---- Showing ----------------------------------------------------------------------------------------------------- */

static bool is_at_risk(const json_t *item)
{
	return json_array_size(json_object_get(item, "at_risk")) > 0;
}

static void add_state(struct cli_table *table, const json_t *item)
{
	struct str state = cli_json_text(item, "state");
	struct buf text = {0};
	buf_put(&text, state);
	if (is_at_risk(item))
		buf_put(&text, STR(", at risk"));
	cli_table_add(table, is_at_risk(item) ? CLI_RED : cli_state_colour(state), buf_str(&text));
	buf_free(&text);
}

/* Of what is in a container: a name that is not known to be its own. */
static struct str name_doubt(const json_t *item)
{
	struct str state = cli_json_text(item, "name_state");
	bool doubtful = str_equal(state, STR("lost")) || str_equal(state, STR("unchecked"));
	return doubtful ? state : STR("");
}

static void put_name(struct buf *out, const json_t *item)
{
	struct str doubt = name_doubt(item);
	buf_put(out, cli_json_text(item, "name"));
	if (doubt.length > 0)
		buf_printf(out, " (%.*s)", STR_FMT(doubt));
}

static void put_list(struct buf *out, const json_t *answer, bool colour)
{
	static const char *const titles[] = {"ID", "TYPE", "NAME", "STATE", "SITES", NULL};
	struct cli_table table;
	size_t index;
	json_t *item;
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "replicants"), index, item)
	{
		struct buf members = {0}, name = {0};
		cli_table_add(&table, "", cli_json_text(item, "id"));
		cli_table_add(&table, "", cli_json_text(item, "type"));
		put_name(&name, item);
		cli_table_add(&table, "", buf_str(&name));
		buf_free(&name);
		add_state(&table, item);
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

/* "at risk: relies on image.secret 42 at /secret, taken from Site2, which cannot be reached" */
static void put_risks(struct buf *out, const json_t *item)
{
	size_t index, at;
	json_t *risk, *site;
	json_array_foreach(json_object_get(item, "at_risk"), index, risk)
	{
		const json_t *sites = json_object_get(risk, "sites");
		bool gone = str_equal(cli_json_text(risk, "why"), STR("gone"));
		struct str id = cli_json_text(risk, "id"), type = cli_json_text(risk, "type");
		buf_put(out, STR("at risk: relies on "));
		text_put_harmless(out, type);
		buf_put(out, type.length > 0 ? STR(" ") : STR(""));
		text_put_harmless(out, id.length > 0 ? id : cli_json_text(risk, "local_id"));
		buf_put(out, STR(" at "));
		text_put_harmless(out, cli_json_text(risk, "place"));
		json_array_foreach(sites, at, site)
		{
			buf_put(out, at == 0 ? STR(", taken from ") : STR(" or "));
			text_put_harmless(out, str_make(json_string_value(site), json_string_length(site)));
		}
		buf_put(out, gone ? STR(", which is gone\n") : STR(", which cannot be reached\n"));
	}
}

static void put_name_doubt(struct buf *out, const json_t *item)
{
	const json_t *holder = json_object_get(item, "name_holder");
	struct str doubt = name_doubt(item);
	if (str_equal(doubt, STR("unchecked")))
		buf_put(out, STR("its name was not checked: the prime of its container has not answered yet\n"));
	if (holder == NULL)
		return;
	buf_put(out, STR("its name is another's: "));
	text_put_harmless(out, cli_json_text(holder, "id"));
	buf_put(out, STR(" at "));
	text_put_harmless(out, cli_json_text(holder, "site"));
	buf_put(out, STR(" has it; rename or delete one of them\n"));
}

/* ", divided Site1=2 Site2=1". */
static void put_division(struct buf *out, const json_t *item)
{
	size_t index;
	json_t *share;
	json_array_foreach(json_object_get(item, "division"), index, share)
	{
		buf_put(out, index == 0 ? STR(", divided ") : STR(" "));
		text_put_harmless(out, cli_json_text(share, "site"));
		buf_printf(out, "=%lld", (long long)json_integer_value(json_object_get(share, "weight")));
	}
}

static void put_lost(struct buf *out, const json_t *item)
{
	size_t index;
	json_t *site;
	json_array_foreach(json_object_get(item, "lost"), index, site)
	{
		buf_put(out, STR("the part of "));
		text_put_harmless(out, str_of(json_string_value(site)));
		buf_put(out, STR(" is lost: it went away with it. An update of all that is divided (PUT, or PATCH) divides it "
		                 "anew among "
		                 "those that are left\n"));
	}
}

static void put_one(struct buf *out, const json_t *item, bool colour)
{
	static const char *const titles[] = {"SITE",     "STATE",    "LOCAL ID", "PENDING",
	                                     "REJECTED", "IN DOUBT", "SITE IS",  NULL};
	struct cli_table table;
	json_t *sorted[LIMIT_REPLICA_MEMBERS];
	size_t count = cli_members(item, sorted);
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
	put_division(out, item);
	buf_put_char(out, '\n');
	put_risks(out, item);
	put_name_doubt(out, item);
	put_lost(out, item);
	cli_table_begin(&table, titles);
	for (size_t i = 0; i < count; i++) {
		const json_t *member = sorted[i];
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

static void put_parts(struct buf *out, const json_t *item, bool colour)
{
	static const char *const titles[] = {"SITE", "SERVICE", "TYPE", "LOCAL ID", NULL};
	struct cli_table table;
	json_t *sorted[LIMIT_REPLICA_MEMBERS], *part;
	size_t count = cli_members(item, sorted), index;
	cli_table_begin(&table, titles);
	for (size_t i = 0; i < count; i++) {
		const json_t *parts = json_object_get(sorted[i], "parts");
		struct str reason = cli_json_text(sorted[i], "reason");
		if (json_array_size(parts) == 0) {
			cli_table_add(&table, "", cli_json_text(sorted[i], "site"));
			cli_table_add(&table, "", reason.length > 0 ? reason : STR("(none)"));
			cli_table_add(&table, "", STR(""));
			cli_table_add(&table, "", STR(""));
		}
		json_array_foreach(parts, index, part)
		{
			cli_table_add(&table, "", cli_json_text(sorted[i], "site"));
			cli_table_add(&table, "", cli_json_text(part, "service"));
			cli_table_add(&table, "", cli_json_text(part, "type"));
			cli_table_add(&table, "", cli_json_text(part, "id"));
		}
	}
	cli_table_put(out, &table, colour);
	cli_table_free(&table);
}

/* A word that nobody here knows looks like one of which there is nothing. */
static void tell_nothing(const struct get_call *call, const json_t *answer)
{
	bool any = call->id != NULL || json_array_size(json_object_get(answer, "replicants")) > 0;
	if (any || call->watch.again || call->watch.format != CLI_FORMAT_TABLE)
		return;
	if (call->type != NULL)
		cli_say("nothing here is replicated of the type " TEXT_NAME_FMT "%s; `cheops get` shows what is",
		        TEXT_NAME(str_of(call->type)),
		        call->service || call->site || call->state ? ", as it was asked for" : "");
	else if (call->service != NULL)
		cli_say("nothing here is replicated of the service " TEXT_NAME_FMT "%s; `cheops get` shows what is",
		        TEXT_NAME(str_of(call->service)), call->site || call->state ? ", as it was asked for" : "");
}

static int ask(const struct get_call *call, json_t **answer)
{
	struct buf target = {0};
	buf_put(&target, STR("/cheops/v1/replicants"));
	if (call->id != NULL) {
		buf_printf(&target, "/%s%s", call->id, call->parts ? "/parts" : "");
	} else {
		cli_query_add(&target, "type", call->type);
		cli_query_add(&target, "service", call->service);
		cli_query_add(&target, "site", call->site);
		cli_query_add(&target, "state", call->state);
		cli_query_add(&target, "limit", "200");
	}
	struct cli_question one = {.address = &call->watch.address, .method = "GET", .target = buf_str(&target)};
	struct cli_list list = {.address = &call->watch.address, .target = buf_str(&target), .name = "replicants"};
	int status = call->id != NULL ? cli_ask_or_tell(&one, answer) : cli_list_ask(&list, answer);
	buf_free(&target);
	return status;
}

/* The status says what was found: it is printed here. */
static int show_verified(const struct get_call *call, json_t *answer, struct buf *out)
{
	bool colour = cli_watch_colour(&call->watch);
	json_t *items = call->id != NULL ? json_pack("[O]", answer) : json_incref(json_object_get(answer, "replicants"));
	int status = cli_verify_ask(&call->watch.address, items);
	if (status == CLI_FINE && call->id != NULL && json_array_size(items) == 0) {
		cli_say("%s was deleted", call->id);
		status = CLI_REFUSED;
	} else if (status == CLI_FINE) {
		bool done = cli_watch_put_data(&call->watch, out, answer);
		if (!done && call->id != NULL)
			cli_verify_put_one(out, answer, colour);
		else if (!done)
			cli_verify_put_list(out, items, colour);
		status = cli_print(buf_str(out));
		buf_clear(out);
		if (status == CLI_FINE)
			status = cli_verify_status(items);
	}
	json_decref(items);
	return status;
}

static int show(const void *context, struct buf *out)
{
	const struct get_call *call = context;
	bool colour = cli_watch_colour(&call->watch);
	json_t *answer;
	int status = ask(call, &answer);
	if (status != CLI_FINE)
		return status;
	tell_nothing(call, answer);
	if (call->verify) {
		status = show_verified(call, answer, out);
		json_decref(answer);
		return status;
	}
	if (!cli_watch_put_data(&call->watch, out, answer))
		(call->parts ? put_parts : call->id != NULL ? put_one : put_list)(out, answer, colour);
	json_decref(answer);
	return CLI_FINE;
}

static int run(int argc, char **argv)
{
	static const struct cli_watcher watcher = {
		.command = "get",
		.about = about,
		.more = more,
		.options = options,
		.options_own = OPTIONS_OWN,
		.take = take,
		.check = check,
		.show = show,
	};
	struct get_call call = {.watch.call = &call};
	return cli_watch_run(&watcher, &call.watch, argc, argv);
}

const struct cli_command cli_command_get = {"get", "show replicated resources, and how their copies stand", run};
