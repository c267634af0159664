/* How the sites of a demo become one mesh: as an operator would do it.
 *
 *   Site1     cheops site init
 *   the rest  cheops site token, at Site1; cheops site join, there
 *
 * A folder that was used before has the identities already.
 */
#include "cli/demo.h"

#include "agent/identity.h"
#include "http/http.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { CALL_MS = 10000, ANSWER_BYTES = 1 << 20 };

/* ---- Commands ---------------------------------------------------------------------------------------------------- */

static _Noreturn void become(const struct demo *demo, char *const *arguments, int log)
{
	dup2(log, STDOUT_FILENO);
	dup2(log, STDERR_FILENO);
	demo_clean_environment();
	execv(buf_c(&demo->program), arguments);
	_exit(CLI_REFUSED);
}

/* Runs `cheops site ...` for one of the sites; what it says goes to the site's join.log. */
static int run_site(const struct demo *demo, unsigned site, const char *action, const char *token)
{
	struct buf config = demo_path(demo, site, "agent", ".yaml"), path = demo_path(demo, site, "join", ".log");
	const char *init[] = {"cheops", "site", action, "-c", buf_c(&config), NULL};
	const char *join[] = {"cheops", "site", action, token, "-c", buf_c(&config), NULL};
	int status = CLI_REFUSED, log = open(buf_c(&path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	pid_t pid = log >= 0 ? fork() : -1;
	if (pid == 0)
		become(demo, (char *const *)(token ? join : init), log);
	if (pid < 0 || waitpid(pid, &status, 0) != pid)
		cli_say("cannot run `cheops site %s` for Site%u: %s", action, site + 1, strerror(errno));
	else if (status != 0)
		cli_say("`cheops site %s` was refused at Site%u; what it said is in " TEXT_PATH_FMT, action, site + 1,
		        TEXT_PATH(buf_c(&path)));
	if (log >= 0)
		close(log);
	buf_free(&config);
	buf_free(&path);
	return status == 0 ? CLI_FINE : CLI_REFUSED;
}

/* ---- The API ----------------------------------------------------------------------------------------------------- */

static int call(const struct demo *demo, unsigned site, const char *method, const char *target, struct str body,
                struct buf *answer)
{
	struct http_call_options options = {.method = method,
	                                    .target = str_of(target),
	                                    .content_type = body.length ? STR("application/json") : STR(""),
	                                    .body = body,
	                                    .timeout_ms = CALL_MS,
	                                    .answer_bytes = ANSWER_BYTES};
	char address[64];
	unsigned status;
	snprintf(address, sizeof(address), "127.0.0.1:%u", demo_port(demo, site, DEMO_PORT_API));
	if (http_address_parse(&options.address, str_of(address), NULL) != 0 ||
	    http_call_wait(&options, &status, answer, NULL) != 0)
		return -1;
	return status < 300 ? 0 : -1;
}

static bool has_identity(const struct demo *demo, unsigned site)
{
	struct buf folder = demo_path(demo, site, "state", "");
	bool has = agent_identity_exists(buf_c(&folder));
	buf_free(&folder);
	return has;
}

int demo_init(const struct demo *demo)
{
	return has_identity(demo, 0) ? CLI_FINE : run_site(demo, 0, "init", NULL);
}

int demo_join(const struct demo *demo, unsigned site)
{
	struct buf body = {0}, answer = {0};
	if (has_identity(demo, site))
		return CLI_FINE;
	buf_printf(&body, "{\"name\":\"Site%u\"}", site + 1);
	json_t *json = NULL;
	if (call(demo, 0, "POST", "/cheops/v1/sites/tokens", buf_str(&body), &answer) == 0)
		json = json_loadb(buf_c(&answer), answer.length, 0, NULL);
	const char *token = json_string_value(json_object_get(json, "token"));
	int status = CLI_REFUSED;
	if (token)
		status = run_site(demo, site, "join", token);
	else
		cli_say("Site1 gives no token for Site%u: %.200s", site + 1, buf_c(&answer));
	json_decref(json);
	buf_free(&body);
	buf_free(&answer);
	return status;
}

bool demo_sees_all(const struct demo *demo, unsigned site)
{
	struct buf answer = {0};
	unsigned present = 0;
	if (call(demo, site, "GET", "/cheops/v1/sites", STR(""), &answer) == 0)
		for (const char *at = buf_c(&answer); (at = strstr(at, "\"shown\":\"present\"")) != NULL; at++)
			present++;
	buf_free(&answer);
	return present == demo->options.sites_count;
}
