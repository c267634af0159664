/* cheops app lint: all findings of each file, on standard output, as compilers write them. */
#include "cli/cmd_app.h"

struct linting {
	const char *path;
	struct buf *out;
	bool json;
	unsigned errors;
	unsigned warnings;
};

static void put_finding(struct linting *linting, const struct glue_finding *finding)
{
	bool error = finding->severity == GLUE_ERROR;
	struct buf line = {0};
	buf_printf(&line, "%s:%u:%u: %s: %.*s", linting->path, finding->line, finding->column, error ? "error" : "warning",
	           STR_FMT(finding->message));
	if (finding->where.length > 0)
		buf_printf(&line, " [%.*s]", STR_FMT(finding->where));
	text_put_harmless(linting->out, buf_str(&line));
	buf_put_char(linting->out, '\n');
	buf_free(&line);
}

static void put_finding_json(struct linting *linting, const struct glue_finding *finding)
{
	bool error = finding->severity == GLUE_ERROR;
	buf_printf(linting->out, "%s{\"severity\":\"%s\",\"line\":%u,\"column\":%u,\"where\":",
	           linting->errors + linting->warnings > 0 ? "," : "", error ? "error" : "warning", finding->line,
	           finding->column);
	buf_put_json(linting->out, finding->where);
	buf_put(linting->out, STR(",\"message\":"));
	buf_put_json(linting->out, finding->message);
	buf_put_char(linting->out, '}');
}

static void found(void *context, const struct glue_finding *finding)
{
	struct linting *linting = context;
	if (linting->json)
		put_finding_json(linting, finding);
	else
		put_finding(linting, finding);
	linting->errors += finding->severity == GLUE_ERROR;
	linting->warnings += finding->severity == GLUE_WARNING;
}

/* What there is, of a file that is right. */
static void put_fine(struct linting *linting, const struct glue *glue)
{
	uint32_t operations = 0, types = glue_types_count(glue);
	for (uint32_t i = 0; i < types; i++)
		operations += glue_operations_count(glue_type_at(glue, i));
	buf_printf(linting->out, "%s: ok: application ", linting->path);
	text_put_harmless(linting->out, glue_application(glue));
	buf_printf(linting->out, ", %u type%s, %u operations", types, types == 1 ? "" : "s", operations);
	if (linting->warnings > 0)
		buf_printf(linting->out, ", %u warning%s", linting->warnings, linting->warnings == 1 ? "" : "s");
	buf_put_char(linting->out, '\n');
}

static int lint_file(struct linting *linting, struct str text)
{
	struct glue *glue = NULL;
	struct err err = {0};
	struct glue_options options = {
		.path = linting->path, .hash_key = app_hash_key(), .finding = found, .context = linting};
	if (linting->json) {
		buf_put(linting->out, STR("{\"file\":"));
		buf_put_json(linting->out, str_of(linting->path));
		buf_put(linting->out, STR(",\"findings\":["));
	}
	int code = glue_read(&glue, text, &options, &err);
	if (linting->json) {
		buf_printf(linting->out, "],\"ok\":%s,\"application\":", code == 0 ? "true" : "false");
		if (code == 0)
			buf_put_json(linting->out, glue_application(glue));
		else
			buf_put(linting->out, STR("null"));
		buf_put_char(linting->out, '}');
	} else if (code == 0) {
		put_fine(linting, glue);
	}
	glue_free(glue);
	return code == 0 ? CLI_FINE : CLI_REFUSED;
}

int app_lint(struct app_call *call)
{
	struct buf out = {0};
	int status = CLI_FINE;
	if (call->arguments_count == 0)
		return cli_usage(call->command, "which FILE is to be checked?");
	if (call->json)
		buf_put(&out, STR("{\"files\":["));
	for (uint32_t i = 0; status != CLI_USAGE && i < call->arguments_count; i++) {
		struct buf text = {0};
		struct linting linting = {.path = call->arguments[i], .out = &out, .json = call->json};
		int one = app_read(call->arguments[i], LIMIT_GLUE_FILE_BYTES, &text);
		if (i > 0 && call->json)
			buf_put_char(&out, ',');
		if (one == CLI_FINE)
			one = lint_file(&linting, buf_str(&text));
		status = one != CLI_FINE ? one : status;
		buf_free(&text);
	}
	if (call->json)
		buf_put(&out, STR("]}\n"));
	/* Of what was found before a file that cannot be read, a person wants to hear; a program wants the whole. */
	if (status != CLI_USAGE || !call->json) {
		int printed = cli_print(buf_str(&out));
		status = status == CLI_FINE ? printed : status;
	}
	buf_free(&out);
	return status;
}
