/* A request that is given as METHOD PATH [BODY]. */
#include "cli/cmd_app.h"

int app_service_choose(struct app_call *call, const struct glue *glue, struct glue_request *request,
                       struct glue_match *match, bool *known)
{
	struct str found[2];
	uint32_t count = 0;
	if (call->service.length > 0) {
		request->service = call->service;
		*known = glue_match(glue, request, match);
		return CLI_FINE;
	}
	for (uint32_t i = 0; i < glue_services_count(glue) && count < 2; i++) {
		request->service = glue_service_about(glue_service_at(glue, i))->name;
		if (glue_match(glue, request, match))
			found[count++] = request->service;
	}
	if (count == 2)
		return cli_usage(call->command, "several services know this path, such as %.*s and %.*s; choose with --service",
		                 STR_FMT(found[0]), STR_FMT(found[1]));
	*known = count == 1;
	if (*known) {
		request->service = found[0];
		glue_match(glue, request, match);
	}
	return CLI_FINE;
}

int app_body_read(const char *argument, struct buf *kept, struct str *body)
{
	bool file = argument[0] == '@', input = strcmp(argument, "-") == 0;
	*body = str_of(argument);
	if (!file && !input)
		return CLI_FINE;
	int status = app_read(file ? argument + 1 : argument, LIMIT_GLUE_EXPLAINED_BYTES, kept);
	*body = buf_str(kept);
	return status;
}

/* Cuts the target into path and query; what comes before the path of a whole URL is dropped, and a fragment is. */
static void take_target(struct glue_request *request, struct str target)
{
	const char *scheme = memmem(target.at, target.length, "://", 3);
	if (scheme != NULL && target.at[0] != '/') {
		const char *end = target.at + target.length;
		const char *slash = memchr(scheme + 3, '/', (size_t)(end - scheme - 3));
		target = slash != NULL ? str_make(slash, (size_t)(end - slash)) : STR("/");
	}
	const char *hash = target.length > 0 ? memchr(target.at, '#', target.length) : NULL;
	if (hash != NULL)
		target.length = (size_t)(hash - target.at);
	const char *mark = target.length > 0 ? memchr(target.at, '?', target.length) : NULL;
	size_t length = mark != NULL ? (size_t)(mark - target.at) : target.length;
	request->path = str_make(target.at, length);
	request->query = mark != NULL ? str_make(mark + 1, target.length - length - 1) : STR("");
}

int app_request_take(const struct app_call *call, const char *method, const char *target, struct glue_request *request)
{
	if (target[0] != '/' && strstr(target, "://") == NULL)
		return cli_usage(call->command, "the PATH " TEXT_NAME_FMT " does not begin with a slash, as in GET /images/42",
		                 TEXT_NAME(str_of(target)));
	request->method = str_of(method);
	take_target(request, str_of(target));
	return CLI_FINE;
}
