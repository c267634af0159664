/* Asking an agent. Answers come from a program that may be another than ours, on a port that anybody may have taken: nothing
 * in them is believed before it was looked at, and no text of theirs reaches a terminal as it is. */
#include "cli/client.h"

#include <time.h>

enum { TIMEOUT_MS = 30000 };

/* ---- Questions -------------------------------------------------------------------------------------------------- */

static int read_json(const struct cli_question *question, struct str body, struct cli_reply *reply)
{
	json_error_t error;
	const char *from = question->address->text;
	reply->json = json_loadb(body.at, body.length, JSON_REJECT_DUPLICATES, &error);
	if (reply->json != NULL && json_is_object(reply->json))
		return 0;
	bool json = reply->json != NULL;
	json_decref(reply->json);
	reply->json = NULL;
	if (json)
		return err_set(&reply->err, ERR_CORRUPT, "what %s answers is no JSON object; is it an agent?", from);
	return err_set(&reply->err, ERR_CORRUPT, "what %s answers (status %u) is not JSON: %s; is it an agent?", from,
	               reply->status, error.text);
}

int cli_ask(const struct cli_question *question, struct cli_reply *reply)
{
	char *body = question->body != NULL ? json_dumps(question->body, JSON_COMPACT) : NULL;
	struct http_call_options call = {.address = *question->address,
	                                 .tls = question->tls,
	                                 .method = question->method,
	                                 .target = question->target,
	                                 .fields = question->fields,
	                                 .timeout_ms = TIMEOUT_MS + question->patience_ms,
	                                 .answer_bytes = LIMIT_CLI_ANSWER_BYTES,
	                                 .check = question->check,
	                                 .context = question->context};
	struct buf answer = {0};
	*reply = (struct cli_reply){0};
	if (body != NULL) {
		call.content_type = STR("application/json");
		call.body = str_of(body);
	}
	int code = http_call_wait(&call, &reply->status, &answer, &reply->err);
	if (code == 0)
		code = read_json(question, buf_str(&answer), reply);
	free(body);
	buf_free(&answer);
	return code;
}

void cli_reply_free(struct cli_reply *reply)
{
	json_decref(reply->json);
	reply->json = NULL;
}

bool cli_nobody_listens(const struct cli_reply *reply)
{
	return strstr(reply->err.text, ": Connection refused") != NULL;
}

static int tell_unanswered(const struct cli_question *question, const struct cli_reply *reply)
{
	if (cli_nobody_listens(reply))
		cli_say("nothing answers at %s: connection refused; is the agent of this site running? (systemctl status "
		        "cheops-agent)",
		        question->address->text);
	else
		cli_say("%s", reply->err.text);
	return CLI_REFUSED;
}

/* ---- Problems --------------------------------------------------------------------------------------------------- */

bool cli_reply_is_good(const struct cli_reply *reply)
{
	return reply->status >= 200 && reply->status < 300;
}

int cli_tell_problem(const struct cli_reply *reply, const char *advice)
{
	struct str title = cli_json_text(reply->json, "title"), detail = cli_json_text(reply->json, "detail");
	struct buf text = {0};
	buf_put(&text, utf8_truncate(title, LIMIT_ERROR_TEXT_BYTES));
	if (title.length > 0 && detail.length > 0)
		buf_put(&text, STR(": "));
	buf_put(&text, utf8_truncate(detail, LIMIT_ERROR_TEXT_BYTES));
	if (text.length == 0)
		buf_printf(&text, "it is answered with status %u, and not as agents do: is this the address of an agent's API?",
		           reply->status);
	if (*advice != '\0')
		buf_printf(&text, "; %s", advice);
	cli_say("%s", buf_c(&text));
	buf_free(&text);
	return CLI_REFUSED;
}

int cli_ask_or_tell(const struct cli_question *question, json_t **json)
{
	struct cli_reply reply;
	if (cli_ask(question, &reply) != 0)
		return tell_unanswered(question, &reply);
	if (cli_reply_is_good(&reply)) {
		*json = reply.json;
		return CLI_FINE;
	}
	int status = cli_tell_problem(&reply, "");
	cli_reply_free(&reply);
	return status;
}

/* ---- Times ------------------------------------------------------------------------------------------------------ */

int64_t cli_now_ms(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

void cli_put_age(struct buf *out, int64_t ms)
{
	long long s = ms < 0 ? 0 : ms / 1000;
	if (s < 60)
		buf_printf(out, "%llds", s);
	else if (s < 3600)
		buf_printf(out, "%lldm", s / 60);
	else if (s < 2LL * 86400)
		buf_printf(out, "%lldh", s / 3600);
	else
		buf_printf(out, "%lldd", s / 86400);
}

void cli_put_clock(struct buf *out, int64_t ms, int64_t now_ms)
{
	time_t then = (time_t)(ms / 1000), now = (time_t)(now_ms / 1000);
	struct tm at, today;
	char text[64];
	if (localtime_r(&then, &at) == NULL || localtime_r(&now, &today) == NULL)
		return;
	bool same = at.tm_year == today.tm_year && at.tm_yday == today.tm_yday;
	if (strftime(text, sizeof(text), same ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &at) > 0)
		buf_put(out, str_of(text));
}
