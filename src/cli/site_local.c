/* cheops site init, and what it has in common with join. */
#include "cli/cmd_site.h"

#include "agent/file.h"
#include "agent/identity.h"

#include <openssl/crypto.h>

static const int64_t DAY_MS = INT64_C(86400000);

void site_put_name(struct buf *out, struct str name)
{
	buf_printf(out, TEXT_NAME_FMT, TEXT_NAME(name));
}

void site_put_reload(struct buf *out, const struct cli_settings *settings)
{
	struct cli_question question = {.address = &settings->api, .method = "POST", .target = STR("/cheops/v1/reload")};
	struct cli_reply reply;
	int code = cli_ask(&question, &reply);
	if (code != 0 && cli_nobody_listens(&reply)) {
		buf_printf(out, "No agent runs at %s yet. Start it: systemctl start cheops-agent\n", settings->api.text);
	} else if (code != 0) {
		buf_printf(out, "The agent could not be told, restart it: ");
		text_put_harmless(out, str_of(reply.err.text));
		buf_put_char(out, '\n');
	} else if (cli_reply_is_good(&reply)) {
		buf_printf(out, "The agent at %s has been told.\n", settings->api.text);
	} else {
		struct str detail = cli_json_text(reply.json, "detail");
		buf_printf(out, "The agent at %s could not take it up, restart it: ", settings->api.text);
		text_put_harmless(out, utf8_truncate(detail, LIMIT_ERROR_TEXT_BYTES));
		buf_put_char(out, '\n');
	}
	cli_reply_free(&reply);
}

/* ---- The operator's own root ------------------------------------------------------------------------------------ */

static int read_pem(const char *path, bool secret, struct buf *pem)
{
	struct err err = {0};
	int code = secret ? agent_secret_read(path, LIMIT_TRUST_FILE_BYTES + 1, pem, &err)
	                  : agent_file_read(path, LIMIT_TRUST_FILE_BYTES + 1, pem, &err);
	if (code == 0 && pem->length > LIMIT_TRUST_FILE_BYTES)
		code = err_set(&err, ERR_LIMIT, "`" TEXT_PATH_FMT "` is longer than %d bytes", TEXT_PATH(path),
		               LIMIT_TRUST_FILE_BYTES);
	if (code == 0)
		return CLI_FINE;
	cli_say("%s", err.text);
	return CLI_USAGE;
}

static int read_own_root(const struct site_call *call, struct buf *root, struct buf *key)
{
	if ((call->root_cert == NULL) != (call->root_key == NULL))
		return cli_usage(call->command, "--root-cert and --root-key go together: `--root-%s` is missing",
		                 call->root_cert == NULL ? "cert" : "key");
	if (call->root_cert == NULL)
		return CLI_FINE;
	int status = read_pem(call->root_cert, false, root);
	return status == CLI_FINE ? read_pem(call->root_key, true, key) : status;
}

/* ---- init ------------------------------------------------------------------------------------------------------- */

static int tell(const struct cli_settings *settings, int64_t lifetime_ms, bool own)
{
	struct buf out = {0};
	const char *state = buf_c(&settings->state);
	site_put_name(&out, str_of(settings->site));
	buf_put(&out, STR(" is the first site of a new mesh.\n"));
	buf_printf(&out, "  identity   %s/site.key, site.crt; certificates last ", state);
	cli_put_age(&out, lifetime_ms);
	buf_put(&out, STR(" and renew themselves\n"));
	buf_printf(&out,
	           "  authority  %s/root.key, root.crt%s; who has the key can let sites in: keep a copy in a safe place\n",
	           state, own ? " (yours)" : "");
	site_put_reload(&out, settings);
	buf_put(&out, STR("Then let others in: `cheops site token` prints the command to run there.\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

static int init_with(const struct site_call *call, const struct cli_settings *settings, struct agent_init *init)
{
	struct err err = {0};
	init->folder = buf_c(&settings->state);
	init->site = str_of(settings->site);
	init->now_ms = cli_now_ms();
	if (agent_identity_init(init, &err) == 0)
		return tell(settings, init->lifetime_ms, call->root_cert != NULL);
	cli_say("%s", err.text);
	return CLI_REFUSED;
}

int site_init(const struct site_call *call)
{
	struct site_duration lifetime = {.option = "lifetime",
	                                 .text = call->lifetime,
	                                 .default_ms = AGENT_LIFETIME_DAYS * DAY_MS,
	                                 .most_ms = AGENT_ROOT_LIFETIME_DAYS * DAY_MS};
	struct agent_init init = {0};
	struct cli_settings settings = {0};
	struct buf root = {0}, key = {0};
	int status = site_duration_parse(call, &lifetime, &init.lifetime_ms);
	if (status == CLI_FINE)
		status = read_own_root(call, &root, &key);
	if (status == CLI_FINE)
		status = cli_settings_read(call->config != NULL ? call->config : CLI_CONFIG_DEFAULT, &settings);
	if (status == CLI_FINE) {
		init.root_pem = buf_str(&root);
		init.root_key_pem = buf_str(&key);
		status = init_with(call, &settings, &init);
	}
	if (key.at)
		OPENSSL_cleanse(key.at, key.capacity);
	buf_free(&root);
	buf_free(&key);
	cli_settings_free(&settings);
	return status;
}
