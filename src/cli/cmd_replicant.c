/* cheops replicant: the sites that a replicated resource is at: one more, one less, another one; and the first, for what exists.
 *
 * extend and drop ask the agent and, with --wait, look again until it is so. A move is both: the site that goes is dropped only once
 * the new one has the resource and all that was known of it. */
#include "cli/listing.h"

#include "base/percent.h"
#include "replica/replica.h"

#include <stdlib.h>
#include <unistd.h>

enum {
	OPTION_KEEP,
	OPTION_FORCE,
	OPTION_WAIT,
	OPTION_TIMEOUT,
	OPTION_OUTPUT,
	OPTION_API,
	OPTION_CONFIG,
	OPTION_COLOR,
	OPTION_HELP
};
enum { TIMEOUT_S = 60, TIMEOUT_MOST_S = 86400, LOOK_MS = 250, EXTEND_MS = 3800 * 1000 };

static const struct cli_option options[] = {
	[OPTION_KEEP] = {"keep", 0, NULL,
                     "drop, move: the resource stays at the site that goes, and is no replica any more"},
	[OPTION_FORCE] = {"force", 0, NULL, "drop: do not wait for the site; what it alone has is lost"},
	[OPTION_WAIT] = {"wait", 0, NULL, "extend, drop: until it is done; a move always waits"},
	[OPTION_TIMEOUT] = {"timeout", 0, "SECONDS", "but no longer than that (default: 60)"},
	[OPTION_OUTPUT] = {"output", 'o', "FORMAT", "`table` (default), `json` or `yaml`"},
	[OPTION_API] = {"api", 0, "ADDRESS", "where the agent is asked, or set CHEOPS_API"},
	[OPTION_CONFIG] = {"config", 'c', "FILE", "the agent's configuration: its `api` is asked"},
	[OPTION_COLOR] = {"color", 0, "WHEN", "`auto` (default; see NO_COLOR), `always` or `never`"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

enum action { ACTION_NONE, ACTION_EXTEND, ACTION_DROP, ACTION_MOVE, ACTION_ADOPT, ACTIONS };

static const char *const names[ACTIONS] = {
	[ACTION_EXTEND] = "extend", [ACTION_DROP] = "drop", [ACTION_MOVE] = "move", [ACTION_ADOPT] = "adopt"};

struct call {
	enum action action;
	const char *id;       /* adopt: SERVICE/PATH */
	const char *sites[2]; /* move: from, to */
	int sites_count;
	bool keep, force, wait;
	const char *timeout;
	unsigned long timeout_s;
	const char *api;
	const char *config;
	enum cli_format format;
	enum cli_colour colour;
	struct http_address address;
	uint64_t until_ms;
};

static int help(void)
{
	struct buf out = {0};
	buf_put(
		&out,
		STR("Changes at which sites a replicated resource is.\n"
	        "\n"
	        "usage: cheops replicant extend ID SITE [OPTION]...\n"
	        "       cheops replicant drop ID SITE [OPTION]...\n"
	        "       cheops replicant move ID FROM TO [OPTION]...\n"
	        "       cheops replicant adopt SERVICE/PATH [OPTION]...\n"
	        "\n"
	        "Actions:\n"
	        "  extend  it is made at one more site, from the copy of the site that is asked; what lies at one site "
	        "only\n"
	        "          (an indivisible resource made with `%`) becomes known there, and stays where it is\n"
	        "          What is divided is divided anew: the site gets its share, and all have to answer\n"
	        "  drop    a site is a member no longer: once another one has all that it has, its copy is deleted;\n"
	        "          of what is divided its part is given to the others first\n"
	        "  move    extend, wait until the new site has it, and drop; of an indivisible resource TO may be a site "
	        "that\n"
	        "          knows of it already\n"
	        "  adopt   what exists at a service of the site that is asked becomes a replicated resource, which can be "
	        "extended\n"
	        "\n"
	        "Options:\n"));
	cli_options_describe(&out, options);
	buf_put(&out, STR("\nID            of the resource, as `cheops get` shows it\n"
	                  "SERVICE/PATH  of an item, as in image/images/42\n"
	                  "\n"
	                  "Ask the agent of a member. Where the site that is to go cannot be reached, a drop is pending "
	                  "until it can, or\n"
	                  "is forced. A site that was dropped does not come back to the same resource.\n"
	                  "Exit status: 0 fine, 1 refused, no answer, or waited for in vain, 2 wrong usage.\n"
	                  "\n"
	                  "Examples:\n"
	                  "  cheops replicant extend 01890a5d-ac96-774b-bcce-b302099a8057 Site4 --wait\n"
	                  "  cheops replicant move 01890a5d-ac96-774b-bcce-b302099a8057 Site2 Site5\n"
	                  "  cheops replicant adopt image/images/42\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments ----------------------------------------------------------------------------------------------------- */

static int take_action(struct call *call, const char *value)
{
	int action = 0;
	int status = cli_choose_action("replicant", names, ACTIONS, "one of extend, drop, move and adopt", value, &action);
	call->action = (enum action)action;
	return status;
}

static int sites_of(enum action action)
{
	return action == ACTION_MOVE ? 2 : action == ACTION_ADOPT ? 0 : 1;
}

static int take_plain(struct call *call, const char *value)
{
	struct replica_id id;
	if (call->action == ACTION_NONE)
		return take_action(call, value);
	if (call->id == NULL && call->action == ACTION_ADOPT) {
		const char *slash = strchr(value, '/');
		if (!slash || slash == value || slash[1] == '\0')
			return cli_usage("replicant",
			                 TEXT_NAME_FMT " is no item of a service; one is SERVICE/PATH: image/images/42",
			                 TEXT_NAME(str_of(value)));
		call->id = value;
		return CLI_FINE;
	}
	if (call->id == NULL) {
		if (!replica_id_parse(str_of(value), &id))
			return cli_usage("replicant", TEXT_NAME_FMT " is no id of a replicated resource; `cheops get` shows them",
			                 TEXT_NAME(str_of(value)));
		call->id = value;
		return CLI_FINE;
	}
	if (call->sites_count == sites_of(call->action))
		return cli_usage("replicant", "one argument too many: " TEXT_NAME_FMT, TEXT_NAME(str_of(value)));
	call->sites[call->sites_count++] = value;
	return CLI_FINE;
}

static int take(void *context, int kind, const char *value)
{
	struct call *call = context;
	switch (kind) {
	case OPTION_KEEP: call->keep = true; return CLI_FINE;
	case OPTION_FORCE: call->force = true; return CLI_FINE;
	case OPTION_WAIT: call->wait = true; return CLI_FINE;
	case OPTION_TIMEOUT: call->timeout = value; return CLI_FINE;
	case OPTION_OUTPUT: return cli_format_take("replicant", value, &call->format);
	case OPTION_API: call->api = value; return CLI_FINE;
	case OPTION_CONFIG: call->config = value; return CLI_FINE;
	case OPTION_COLOR: return cli_colour_take("replicant", value, &call->colour);
	default: return take_plain(call, value);
	}
}

static int check(struct call *call)
{
	char *end;
	if (call->action == ACTION_NONE)
		return cli_usage("replicant", "what is to be done? First comes one of extend, drop, move and adopt");
	if (call->id == NULL)
		return cli_usage("replicant", call->action == ACTION_ADOPT ? "SERVICE/PATH is missing: which item?"
		                                                           : "ID is missing: which resource?");
	if (call->sites_count < sites_of(call->action))
		return cli_usage("replicant",
		                 call->action == ACTION_MOVE ? "two sites are needed: FROM and TO" : "SITE is missing");
	if (call->force && call->action != ACTION_DROP)
		return cli_usage("replicant", "--force is for drop");
	if (call->keep && (call->action == ACTION_EXTEND || call->action == ACTION_ADOPT))
		return cli_usage("replicant", "--keep is for drop and move: where a site is added, nothing goes");
	if (call->wait && call->action == ACTION_ADOPT)
		return cli_usage("replicant", "--wait is for extend and drop: what is adopted is there already");
	call->timeout_s = TIMEOUT_S;
	call->wait |= call->action == ACTION_MOVE;
	if (call->timeout == NULL)
		return CLI_FINE;
	if (!call->wait)
		return cli_usage("replicant", "--timeout without --wait: for what?");
	call->timeout_s = strtoul(call->timeout, &end, 10);
	if (call->timeout[0] >= '0' && call->timeout[0] <= '9' && *end == '\0' && call->timeout_s > 0 &&
	    call->timeout_s <= TIMEOUT_MOST_S)
		return CLI_FINE;
	return cli_usage("replicant", "--timeout " TEXT_NAME_FMT " is no number of seconds from 1 to %d",
	                 TEXT_NAME(str_of(call->timeout)), TIMEOUT_MOST_S);
}

/* ---- Asking -------------------------------------------------------------------------------------------------------- */

static int change(const struct call *call, const char *method, const char *site, json_t **answer)
{
	struct buf target = {0};
	bool drop = strcmp(method, "DELETE") == 0;
	buf_printf(&target, "/cheops/v1/replicants/%s/members/", call->id);
	percent_encode(&target, str_of(site));
	if (call->action == ACTION_MOVE && !drop)
		buf_put(&target, STR("?hold=true")); /* what lies at one site only lies at this one then */
	if (drop)
		buf_printf(&target, "?keep=%s&force=%s", call->keep ? "true" : "false", call->force ? "true" : "false");
	struct cli_question question = {
		.address = &call->address, .method = method, .target = buf_str(&target), .patience_ms = EXTEND_MS};
	int status = cli_ask_or_tell(&question, answer);
	buf_free(&target);
	return status;
}

static const json_t *find_member(const json_t *answer, const char *site)
{
	size_t index;
	json_t *member;
	json_array_foreach(json_object_get(answer, "members"), index, member)
	{
		if (str_equal(cli_json_text(member, "site"), str_of(site)))
			return member;
	}
	return NULL;
}

/* Of what is divided: it has a share, and all have their parts. */
static bool is_divided_anew(const json_t *answer, const char *site)
{
	const json_t *division = json_object_get(answer, "division");
	bool has = false;
	size_t index;
	json_t *each;
	if (!json_is_array(division))
		return true;
	json_array_foreach(division, index, each) has |= str_equal(cli_json_text(each, "site"), str_of(site));
	return has && str_equal(cli_json_text(answer, "state"), STR("settled"));
}

static bool is_there(const json_t *answer, const char *site)
{
	const json_t *member = find_member(answer, site);
	struct str state = member ? cli_json_text(member, "state") : STR("");
	return is_divided_anew(answer, site) && (str_equal(state, STR("settled")) || str_equal(state, STR("witness"))) &&
	       !json_is_true(json_object_get(member, "joining"));
}

static bool is_in_state(const json_t *answer, struct str state)
{
	return str_equal(cli_json_text(answer, "state"), state);
}

/* Where the site that is asked is the one that goes, it knows nothing of the resource in the end. */
static bool is_gone(const struct cli_reply *reply, const char *site)
{
	return reply->status == 404 || (cli_reply_is_good(reply) &&
	                                (find_member(reply->json, site) == NULL || is_in_state(reply->json, STR("left")) ||
	                                 is_in_state(reply->json, STR("deleted"))));
}

static void tell_state(const json_t *answer, const char *site)
{
	const json_t *member = find_member(answer, site);
	if (member && str_equal(cli_json_text(member, "state"), STR("rejected")))
		cli_say("the service at %s does not take the copy: `cheops ops --state rejected` says why", site);
	else
		cli_say("the time is over, and it goes on: `cheops get` shows how far it is");
}

/* Until the site is there, or is gone. *answer is replaced by what is so then. */
static int wait_for(const struct call *call, const char *site, bool there, json_t **answer)
{
	struct buf target = {0};
	int status = CLI_FINE;
	buf_printf(&target, "/cheops/v1/replicants/%s", call->id);
	for (;;) {
		struct cli_reply reply;
		struct cli_question question = {.address = &call->address, .method = "GET", .target = buf_str(&target)};
		cli_ask(&question, &reply);
		bool done = there ? cli_reply_is_good(&reply) && is_there(reply.json, site) : is_gone(&reply, site);
		if (cli_reply_is_good(&reply)) {
			json_decref(*answer);
			*answer = json_incref(reply.json);
		}
		cli_reply_free(&reply);
		if (done)
			break;
		if ((uint64_t)cli_now_ms() >= call->until_ms) {
			tell_state(*answer, site);
			status = CLI_REFUSED;
			break;
		}
		usleep(LOOK_MS * 1000);
	}
	buf_free(&target);
	return status;
}

static int adopt(const struct call *call, json_t **answer)
{
	const char *path = strchr(call->id, '/');
	json_t *body = json_pack("{s:s%, s:s}", "service", call->id, (size_t)(path - call->id), "path", path);
	if (!body)
		return cli_usage("replicant", "SERVICE/PATH is no UTF-8");
	struct cli_question question = {
		.address = &call->address, .method = "POST", .target = STR("/cheops/v1/replicants"), .body = body};
	int status = cli_ask_or_tell(&question, answer);
	json_decref(body);
	return status;
}

static int act(const struct call *call, json_t **answer)
{
	if (call->action == ACTION_ADOPT)
		return adopt(call, answer);
	const char *adds = call->action == ACTION_EXTEND ? call->sites[0] : call->sites[1];
	int status = CLI_FINE;
	if (call->action != ACTION_DROP)
		status = change(call, "PUT", adds, answer);
	if (status == CLI_FINE && call->action != ACTION_DROP && call->wait)
		status = wait_for(call, adds, true, answer);
	if (status != CLI_FINE || call->action == ACTION_EXTEND)
		return status;
	json_decref(*answer);
	*answer = NULL;
	status = change(call, "DELETE", call->sites[0], answer);
	if (status == CLI_FINE && call->wait)
		status = wait_for(call, call->sites[0], false, answer);
	return status;
}

/* ---- Showing ------------------------------------------------------------------------------------------------------- */

static void put_table(struct buf *out, const struct call *call, const json_t *answer)
{
	static const char *const titles[] = {"SITE", "STATE", "LOCAL ID", "MEMBER", NULL};
	struct cli_table table;
	json_t *sorted[LIMIT_REPLICA_MEMBERS];
	size_t count = cli_members(answer, sorted);
	if (is_in_state(answer, STR("left"))) { /* of the others it knows no more than who they are */
		buf_put(out, STR("the site that was asked is no member any more; it is at"));
		for (size_t i = 0; i < count; i++)
			buf_printf(out, "%s %.*s", i > 0 ? "," : "", STR_FMT(cli_json_text(sorted[i], "site")));
		buf_put(out, STR("\n"));
		return;
	}
	if (call->action == ACTION_ADOPT)
		buf_printf(out, "%.*s\n\n", STR_FMT(cli_json_text(answer, "id")));
	cli_table_begin(&table, titles);
	for (size_t i = 0; i < count; i++) {
		const json_t *member = sorted[i];
		struct str state = cli_json_text(member, "state");
		cli_table_add(&table, "", cli_json_text(member, "site"));
		cli_table_add(&table, cli_state_colour(state), state);
		cli_table_add(&table, "", cli_json_text(member, "local_id"));
		cli_table_add(&table, "",
		              json_is_true(json_object_get(member, "leaving"))   ? STR("leaving")
		              : json_is_true(json_object_get(member, "joining")) ? STR("joining")
		                                                                 : STR("yes"));
	}
	cli_table_put(out, &table, cli_colour_on(call->colour, STDOUT_FILENO));
	cli_table_free(&table);
}

static int run(int argc, char **argv)
{
	struct call call = {0};
	struct cli_arguments arguments = {.command = "replicant", .options = options, .argv = argv + 1, .argc = argc - 1};
	int status = cli_arguments_each(&arguments, take, &call);
	if (status != CLI_FINE)
		return status == CLI_HELP ? help() : status;
	status = check(&call);
	if (status == CLI_FINE)
		status = cli_api_find(call.api, call.config, &call.address);
	if (status != CLI_FINE)
		return status;
	json_t *answer = NULL;
	struct buf out = {0};
	call.until_ms = (uint64_t)cli_now_ms() + call.timeout_s * 1000;
	status = act(&call, &answer);
	if (answer && call.format == CLI_FORMAT_JSON)
		cli_put_json(&out, answer);
	else if (answer && call.format == CLI_FORMAT_YAML)
		cli_put_yaml(&out, answer);
	else if (answer)
		put_table(&out, &call, answer);
	if (out.length > 0 && cli_print(buf_str(&out)) != CLI_FINE)
		status = CLI_REFUSED;
	buf_free(&out);
	json_decref(answer);
	return status;
}

const struct cli_command cli_command_replicant = {"replicant", "change at which sites a replicated resource is", run};
