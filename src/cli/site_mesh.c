/* What an agent is asked to do: cheops site token, remove, revoke and root. */
#include "cli/cmd_site.h"

#include "cli/table.h"

#include <unistd.h>

static const int64_t HOUR_MS = INT64_C(3600000);

/* Asks the agent of the call's options; the body is let go of. */
static int ask(const struct site_call *call, const char *method, const char *target, json_t *body, json_t **answer)
{
	struct http_address address;
	int status = cli_api_find(call->api, call->config, &address);
	if (status == CLI_FINE) {
		struct cli_question question = {.address = &address, .method = method, .target = str_of(target), .body = body};
		status = cli_ask_or_tell(&question, answer);
	}
	json_decref(body);
	return status;
}

/* ---- token ------------------------------------------------------------------------------------------------------ */

/* What the shell at the new site gets has to be a token and nothing else. */
static bool is_token(struct str text)
{
	for (size_t i = 0; i < text.length; i++) {
		char c = text.at[i];
		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return text.length > 0;
}

static void explain_token(const struct site_call *call, int64_t ttl_ms)
{
	struct buf text = {0};
	buf_put(&text, STR("Run this at the new site"));
	if (call->argument != NULL) {
		buf_put(&text, STR(", which has to be named "));
		site_put_name(&text, str_of(call->argument));
	}
	buf_put(&text, STR(", with the path of its configuration. It is good once, for "));
	cli_put_age(&text, ttl_ms);
	buf_put(&text, STR(". Keep it secret.\n"));
	cli_print_error(buf_str(&text));
	buf_free(&text);
}

int site_token(const struct site_call *call)
{
	int64_t ttl_ms;
	struct site_duration ttl = {.option = "ttl", .text = call->ttl, .default_ms = HOUR_MS, .most_ms = 168 * HOUR_MS};
	int status = site_duration_parse(call, &ttl, &ttl_ms);
	if (status != CLI_FINE)
		return status;
	json_t *answer, *body = json_pack("{s:s, s:I}", "name", call->argument != NULL ? call->argument : "", "ttl_s",
	                                  (json_int_t)(ttl_ms / 1000));
	status = ask(call, "POST", "/cheops/v1/sites/tokens", body, &answer);
	if (status != CLI_FINE)
		return status;
	struct str token = cli_json_text(answer, "token");
	if (is_token(token)) {
		struct buf out = {0};
		explain_token(call, ttl_ms);
		buf_printf(&out, "cheops site join %.*s -c %s\n", STR_FMT(token), CLI_CONFIG_DEFAULT);
		status = cli_print(buf_str(&out));
		buf_free(&out);
	} else {
		cli_say("what the agent answers has no token in it; is it an agent of this version?");
		status = CLI_REFUSED;
	}
	json_decref(answer);
	return status;
}

/* ---- Whether it is meant ---------------------------------------------------------------------------------------- */

/* CLI_FINE: it is. CLI_REFUSED: the user thought better of it. */
static int confirm(const struct site_call *call, struct str question)
{
	if (call->yes)
		return CLI_FINE;
	if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO))
		return cli_usage(call->command, "there is no terminal to ask at whether it is meant; --yes says so");
	struct buf text = {0};
	char answer[16];
	text_put_harmless(&text, question);
	buf_put(&text, STR(" [y/N] "));
	cli_print_error(buf_str(&text));
	buf_free(&text);
	ssize_t got = read(STDIN_FILENO, answer, sizeof(answer));
	if (got > 0 && (answer[0] == 'y' || answer[0] == 'Y'))
		return CLI_FINE;
	cli_say("nothing was done");
	return CLI_REFUSED;
}

/* ---- remove, revoke --------------------------------------------------------------------------------------------- */

struct removal {
	const char *target;
	const char *question; /* behind the name */
	const char *done;     /* behind the name */
};

static int shut_out(const struct site_call *call, const struct removal *removal)
{
	struct str name = str_of(call->argument);
	struct buf text = {0};
	json_t *answer;
	site_put_name(&text, name);
	buf_put(&text, str_of(removal->question));
	int status = confirm(call, buf_str(&text));
	buf_clear(&text);
	if (status == CLI_FINE)
		status = ask(call, "POST", removal->target, json_pack("{s:s}", "name", call->argument), &answer);
	if (status == CLI_FINE) {
		site_put_name(&text, name);
		buf_printf(&text, "%s\n", removal->done);
		status = cli_print(buf_str(&text));
		json_decref(answer);
	}
	buf_free(&text);
	return status;
}

int site_remove(const struct site_call *call)
{
	return shut_out(call, &(struct removal){"/cheops/v1/sites/remove",
	                                        " will be shut out of the mesh and forgotten. Is that meant?",
	                                        " is removed; its name is free again"});
}

int site_revoke(const struct site_call *call)
{
	return shut_out(
		call, &(struct removal){"/cheops/v1/sites/revoke",
	                            " will be shut out of the mesh, for good, with the key that it has. Is that meant?",
	                            " is revoked: no site that hears of it lets it in any more"});
}

/* ---- root ------------------------------------------------------------------------------------------------------- */

/* {"here": bool, "roots": [{"name", "id", "signs": bool or null where the authority is elsewhere, "expires"}]} */
static int root_list(const struct site_call *call)
{
	static const char *const titles[] = {"ROOT", "ID", "SIGNS", "EXPIRES", NULL};
	json_t *answer, *root;
	int status = ask(call, "GET", "/cheops/v1/authority", NULL, &answer);
	if (status != CLI_FINE)
		return status;
	struct cli_table table;
	struct buf out = {0}, text = {0};
	int64_t now_ms = cli_now_ms(), ends_ms;
	size_t index;
	cli_table_begin(&table, titles);
	json_array_foreach(json_object_get(answer, "roots"), index, root)
	{
		buf_clear(&text);
		if (cli_json_time(root, "expires", &ends_ms))
			cli_put_age(&text, ends_ms - now_ms);
		cli_table_add(&table, "", cli_json_text(root, "name"));
		cli_table_add(&table, "", cli_json_text(root, "id"));
		const json_t *signs = json_object_get(root, "signs");
		cli_table_add(&table, "", json_is_true(signs) ? STR("yes") : json_is_false(signs) ? STR("no") : STR(""));
		cli_table_add(&table, "", buf_str(&text));
	}
	cli_table_put(&out, &table, cli_colour_on(CLI_COLOUR_AUTO, STDOUT_FILENO));
	status = cli_print(buf_str(&out));
	cli_table_free(&table);
	buf_free(&out);
	buf_free(&text);
	json_decref(answer);
	return status;
}

static int root_rotate(const struct site_call *call)
{
	json_t *answer;
	int status = ask(call, "POST", "/cheops/v1/authority/rotate", json_object(), &answer);
	if (status != CLI_FINE)
		return status;
	json_decref(answer);
	return cli_print(
		STR("There is a new root. Both are trusted, and sites get certificates of the new one as they renew\n"
	        "theirs. Then `cheops site root retire` ends the trust in the old one; it refuses while a site\n"
	        "still needs that.\n"));
}

static int root_retire(const struct site_call *call)
{
	json_t *answer;
	int status =
		confirm(call, STR("The old root will no longer be trusted: a site that still has a certificate of it is "
	                      "shut out. Is that meant?"));
	if (status == CLI_FINE)
		status = ask(call, "POST", "/cheops/v1/authority/retire", json_pack("{s:b}", "force", call->force), &answer);
	if (status != CLI_FINE)
		return status;
	json_decref(answer);
	return cli_print(STR("The old root is no longer trusted.\n"));
}

int site_root(const struct site_call *call)
{
	if (strcmp(call->argument, "list") == 0)
		return root_list(call);
	if (strcmp(call->argument, "rotate") == 0)
		return root_rotate(call);
	if (strcmp(call->argument, "retire") == 0)
		return root_retire(call);
	return cli_usage(call->command, TEXT_NAME_FMT " is none of `list`, `rotate` and `retire`",
	                 TEXT_NAME(str_of(call->argument)));
}
