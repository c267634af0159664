/* cheops repair: the copy of one site becomes that of all. */
#include "cli/listing.h"
#include "cli/waiting.h"
#include "cli/watch.h"

#include "replica/replica.h"

#include <time.h>

enum { OPTION_FROM, OPTION_WAIT, OPTION_TIMEOUT, OPTION_OUTPUT, OPTION_API, OPTION_CONFIG, OPTION_HELP };
enum { REPAIR_MS = 3800 * 1000 /* reading files takes time */, AGAIN_MS = 200 };

static const struct cli_option options[] = {
	[OPTION_FROM] = {"from", 0, "SITE", "whose copy is right; needed"},
	[OPTION_WAIT] = {"wait", 0, "WHO", "wait until it is applied at `all`, at a `majority`, or at that site"},
	[OPTION_TIMEOUT] = {"timeout", 0, "SECONDS", "with --wait: no longer than that (default: 30, at most 600)"},
	[OPTION_OUTPUT] = {"output", 'o', "FORMAT", "`table` (default), `json` or `yaml`"},
	[OPTION_API] = {"api", 0, "ADDRESS", "where the agent is asked, or set CHEOPS_API"},
	[OPTION_CONFIG] = {"config", 'c', "FILE", "the agent's configuration: its `api` is asked"},
	[OPTION_HELP] = {"help", 'h', NULL, "this help"},
	{0},
};

struct repair_call {
	const char *type;
	const char *id;
	const char *from;
	struct cli_waiting waiting;
	const char *api;
	const char *config;
	enum cli_format format;
	struct http_address address;
};

static int help(void)
{
	struct buf out = {0};
	buf_put(&out, STR("Gives the copy that one site has of a replicated resource to all its sites.\n"
	                  "\n"
	                  "usage: cheops repair [TYPE] ID --from SITE [OPTION]...\n"
	                  "       cheops repair TYPE/ID --from SITE [OPTION]...\n"
	                  "\n"
	                  "Options:\n"));
	cli_options_describe(&out, options);
	buf_put(
		&out,
		STR("\nFor when copies were changed behind Cheops' back, as `cheops get --verify` shows. SITE reads what its\n"
	        "service has now, and that replaces what the others have: it is an operation like any other, shown as\n"
	        "a repair by `cheops ops`. Where a service has lost the resource, it is made there anew. Files, and other\n"
	        "parts that can be read and set as a whole, come with it, each as an operation of its own; --wait waits\n"
	        "for all of them. A file that SITE has not is taken away at the others where the application\n"
	        "has a way to do so; where it has none it stays, and the answer says so.\n"
	        "\n"
	        "Exit status: 0 fine, 1 refused, no answer, or waited for in vain, 2 wrong usage.\n"
	        "\n"
	        "Examples:\n"
	        "  cheops get pool --verify\n"
	        "  cheops repair pool 01890a5d-ac96-774b-bcce-b302099a8057 --from Site2 --wait all\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

/* ---- Arguments --------------------------------------------------------------------------------------------------- */

/* "ID", "TYPE", "TYPE/ID". The type is there for those who are used to say it: the id is enough. */
static int take_plain(struct repair_call *call, const char *value)
{
	struct replica_id id;
	const char *slash = strchr(value, '/');
	const char *last = slash ? slash + 1 : value;
	if (call->id == NULL && replica_id_parse(str_of(last), &id) && (!slash || (slash != value && !call->type))) {
		call->id = last;
		return CLI_FINE;
	}
	if (call->type == NULL && call->id == NULL && !slash && *value) {
		call->type = value;
		return CLI_FINE;
	}
	return cli_usage("repair",
	                 "what is " TEXT_NAME_FMT
	                 "? A type may come first, then the meta-id of one resource, as `cheops get` "
	                 "shows it",
	                 TEXT_NAME(str_of(value)));
}

static int take(void *context, int kind, const char *value)
{
	struct repair_call *call = context;
	switch (kind) {
	case OPTION_FROM: call->from = value; return CLI_FINE;
	case OPTION_WAIT: call->waiting.who = value; return CLI_FINE;
	case OPTION_TIMEOUT: return cli_timeout_take("repair", value, &call->waiting);
	case OPTION_OUTPUT: return cli_format_take("repair", value, &call->format);
	case OPTION_API: call->api = value; return CLI_FINE;
	case OPTION_CONFIG: call->config = value; return CLI_FINE;
	default: return take_plain(call, value);
	}
}

static int check(const struct repair_call *call)
{
	if (call->id == NULL)
		return cli_usage("repair", "the ID is missing: which resource is to be repaired?");
	if (call->from == NULL || *call->from == '\0')
		return cli_usage("repair",
		                 "--from is missing: which site has the right copy? `cheops get %s --verify` shows them",
		                 call->id);
	return cli_waiting_check("repair", &call->waiting);
}

/* ---- Doing ------------------------------------------------------------------------------------------------------- */

static int issue(const struct repair_call *call, json_t **answer)
{
	struct buf target = {0};
	json_t *body = json_pack("{s:s}", "from", call->from);
	if (body == NULL)
		return cli_usage("repair", "--from is not UTF-8 text");
	buf_printf(&target, "/cheops/v1/replicants/%s/repair", call->id);
	struct cli_question question = {.address = &call->address,
	                                .method = "POST",
	                                .target = buf_str(&target),
	                                .body = body,
	                                .patience_ms = REPAIR_MS};
	int status = cli_ask_or_tell(&question, answer);
	json_decref(body);
	buf_free(&target);
	return status;
}

/* It was issued elsewhere, and may not be known here yet. */
static bool is_not_here_yet(const struct cli_reply *reply)
{
	return reply->json && str_equal(cli_json_text(reply->json, "type"), STR("urn:cheops:problem:no-such-operation"));
}

static int wait_for(const struct repair_call *call, struct str operation, int64_t until_ms, json_t **answer)
{
	for (;;) {
		struct buf target = {0};
		struct cli_reply reply;
		int64_t left_s = (until_ms - cli_now_ms() + 999) / 1000;
		struct cli_waiting left = {.who = call->waiting.who, .timeout_s = left_s > 0 ? (unsigned long)left_s : 1};
		buf_put(&target, STR("/cheops/v1/operations/"));
		buf_put(&target, operation);
		cli_waiting_add(&target, &left);
		struct cli_question question = {.address = &call->address,
		                                .method = "GET",
		                                .target = buf_str(&target),
		                                .patience_ms = left.timeout_s * 1000};
		int code = cli_ask(&question, &reply);
		buf_free(&target);
		bool again = is_not_here_yet(&reply) && left_s > 0;
		int status = again ? CLI_FINE : CLI_REFUSED;
		if (!again && cli_reply_is_good(&reply)) {
			*answer = json_incref(reply.json);
			status = CLI_FINE;
		} else if (code != 0) {
			cli_say("%s", reply.err.text);
		} else if (!again) {
			cli_tell_problem(&reply, "");
		}
		cli_reply_free(&reply);
		if (!again)
			return status;
		nanosleep(&(struct timespec){.tv_nsec = AGAIN_MS * 1000000L}, NULL);
	}
}

/* Each is a line: the item, then its files. */
static void put_lines(struct buf *out, const struct repair_call *call, const json_t *issued, const json_t *waited)
{
	size_t index;
	json_t *operation;
	json_array_foreach(json_object_get(issued, "operations"), index, operation)
	{
		const json_t *answer = json_array_get(waited, index);
		buf_put(out, STR("operation "));
		text_put_harmless(out, str_of(json_string_value(operation) ? json_string_value(operation) : ""));
		if (call->waiting.who != NULL) {
			buf_put(out, STR(": "));
			cli_put_members(out, answer);
		}
		buf_put_char(out, '\n');
	}
	json_array_foreach(json_object_get(issued, "left"), index, operation)
	{
		buf_put(out, STR("the copy there has no "));
		text_put_harmless(out, str_of(json_string_value(operation) ? json_string_value(operation) : ""));
		buf_put(out, STR(", and no request of the description takes it away: where others have one, it stays\n"));
	}
}

/* As JSON: what was waited for has the first operation, and in `operations` all of them, if there are several. */
static int print(const struct repair_call *call, json_t *issued, json_t *waited)
{
	struct buf out = {0};
	json_t *answer = waited ? json_copy(json_array_get(waited, 0)) : json_incref(issued);
	if (waited && json_array_size(waited) > 1)
		json_object_set(answer, "operations", waited);
	if (call->format == CLI_FORMAT_JSON)
		cli_put_json(&out, answer);
	else if (call->format == CLI_FORMAT_YAML)
		cli_put_yaml(&out, answer);
	else
		put_lines(&out, call, issued, waited);
	int status = cli_print(buf_str(&out));
	json_decref(answer);
	buf_free(&out);
	return status;
}

/* Until all are where they are to be, or the time is over. */
static int wait_for_all(const struct repair_call *call, const json_t *issued, json_t *waited)
{
	int64_t until_ms = cli_now_ms() + (int64_t)call->waiting.timeout_s * 1000;
	int status = CLI_FINE;
	size_t index;
	json_t *operation;
	json_array_foreach(json_object_get(issued, "operations"), index, operation)
	{
		json_t *answer = NULL;
		if (status == CLI_FINE)
			status = wait_for(call, str_of(json_string_value(operation) ? json_string_value(operation) : ""), until_ms,
			                  &answer);
		if (answer)
			json_array_append_new(waited, json_copy(answer));
		json_decref(answer);
	}
	return status;
}

static int check_reached(const struct repair_call *call, const json_t *waited)
{
	size_t index;
	json_t *answer;
	int status = CLI_FINE;
	json_array_foreach(waited, index, answer)
	{
		if (status == CLI_FINE)
			status = cli_waiting_status(&call->waiting, answer);
	}
	return status;
}

static int repair(const struct repair_call *call)
{
	json_t *issued = NULL, *waited = call->waiting.who != NULL ? json_array() : NULL;
	int status = issue(call, &issued);
	if (status == CLI_FINE && json_array_size(json_object_get(issued, "operations")) == 0) /* of an earlier agent */
		json_object_set_new(issued, "operations", json_pack("[O]", json_object_get(issued, "operation")));
	if (status == CLI_FINE && waited)
		status = wait_for_all(call, issued, waited);
	if (status == CLI_FINE)
		status = print(call, issued, waited);
	if (status == CLI_FINE && waited)
		status = check_reached(call, waited);
	json_decref(waited);
	json_decref(issued);
	return status;
}

static int run(int argc, char **argv)
{
	struct repair_call call = {.waiting = {.timeout_s = CLI_TIMEOUT_S}};
	struct cli_arguments arguments = {.command = "repair", .options = options, .argv = argv + 1, .argc = argc - 1};
	int status = cli_arguments_each(&arguments, take, &call);
	if (status != CLI_FINE)
		return status == CLI_HELP ? help() : status;
	status = check(&call);
	if (status == CLI_FINE)
		status = cli_api_find(call.api, call.config, &call.address);
	return status == CLI_FINE ? repair(&call) : status;
}

const struct cli_command cli_command_repair = {"repair", "make the copy of one site that of all", run};
