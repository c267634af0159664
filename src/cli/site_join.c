/* cheops site join.
 *
 *  1. The token is read: it says where to join, the fingerprint of the root, when it ends, perhaps for which name.
 *  2. The folder is tried: a token is good once, and is not to be used up in vain.
 *  3. A key is made. A connection goes to the token's address; the other side is believed only if its certificate leads to
 *     the root with that fingerprint, which it sends along.
 *  4. Token, name and request go there; the certificate, the roots and what is known of the sites come back.
 *  5. All of it is checked against what was asked for, and only then written, the certificate last.
 *
 * The token is mistyped, ended, or for another name: told before anything is done. The other side is somebody else: it never
 * sees the token. It refuses: its reason is told, and nothing is left behind. What comes back is not ours: nothing is kept.
 */
#include "cli/cmd_site.h"

#include "agent/identity.h"
#include "base/base64.h"

#include <unistd.h>

struct join {
	const char *config;
	struct cli_settings settings;
	struct trust_token token;
	struct trust_key *key;
	struct buf request;     /* DER */
	struct buf certificate; /* DER */
	struct buf roots;       /* PEM */
	struct buf records;     /* as they are stored: two bytes of length, and the record */
	bool tried;             /* records.join was written, to see whether it can be */
	long long sites;        /* that are known, with this one; 0: not told */
};

static int refuse(const struct err *err)
{
	cli_say("%s", err->text);
	return CLI_REFUSED;
}

/* ---- Before ----------------------------------------------------------------------------------------------------- */

static int check_token(const struct join *join)
{
	struct str site = str_of(join->settings.site), name = str_of(join->token.name);
	int64_t now_ms = cli_now_ms();
	if (join->token.ends_ms <= now_ms) {
		struct buf age = {0};
		cli_put_age(&age, now_ms - join->token.ends_ms);
		cli_say(
			"the token ended %s ago, by the clock of this machine; `cheops site token` at another site makes a new one",
			buf_c(&age));
		buf_free(&age);
		return CLI_REFUSED;
	}
	if (name.length == 0 || str_equal(name, site))
		return CLI_FINE;
	cli_say("the token is for a site named " TEXT_NAME_FMT ", and this one is " TEXT_NAME_FMT
	        " (`site` in %s); change the name, or ask for a token for it: cheops site token",
	        TEXT_NAME(name), TEXT_NAME(site), text_path_shown(join->config));
	return CLI_REFUSED;
}

static int check_folder(struct join *join)
{
	const char *state = buf_c(&join->settings.state);
	struct err err = {0};
	if (agent_identity_exists(state)) {
		cli_say("`" TEXT_PATH_FMT
		        "` has the identity of a site already, and a site joins once. If that one is given up for "
		        "good, have it removed (cheops site remove) and move the folder away",
		        TEXT_PATH(state));
		return CLI_REFUSED;
	}
	join->tried = agent_file_write(state, "records.join", STR(""), false, &err) == 0;
	return join->tried ? CLI_FINE : refuse(&err);
}

static void forget_trial(const struct join *join)
{
	struct buf path = {0};
	buf_printf(&path, "%s/records.join", buf_c(&join->settings.state));
	unlink(buf_c(&path));
	buf_free(&path);
}

static int prepare(struct join *join, const char *token)
{
	struct err err = {0};
	if (trust_token_read(str_of(token), &join->token, &err) != 0)
		return refuse(&err);
	int status = cli_settings_read(join->config, &join->settings);
	if (status == CLI_FINE)
		status = check_token(join);
	if (status == CLI_FINE)
		status = check_folder(join);
	if (status != CLI_FINE)
		return status;
	if (trust_key_make(&join->key, &err) != 0 ||
	    trust_request_make(join->key, str_of(join->settings.site), &join->request, &err) != 0)
		return refuse(&err);
	return CLI_FINE;
}

/* ---- Asking ----------------------------------------------------------------------------------------------------- */

/* TLS has seen to it that the certificate leads to the root. It also has to be that of a site. */
static int check_server(void *context, struct str certificate_der, struct err *err)
{
	(void)context;
	struct trust_certificate about;
	int code = trust_certificate_read(certificate_der, &about, err);
	if (code == 0 && about.root)
		code = err_set(err, ERR_INVALID, "it is that of an authority, not of a site");
	return code == 0 ? 0 : err_context(err, code, "the certificate of the other side");
}

static int ask(struct join *join, const char *token, struct cli_reply *reply)
{
	struct http_tls_options tls = {.peers = true, .root_sha256 = join->token.root, .verify = HTTP_TLS_VERIFY_ALWAYS};
	struct http_address address;
	struct cli_question question = {
		.address = &address, .method = "POST", .target = STR("/cheops/v1/join"), .check = check_server};
	struct err err = {0};
	if (http_tls_new(&question.tls, &tls, &err) != 0)
		return refuse(&err);
	http_address_of_site(&address, &join->token.address);
	struct buf request = {0};
	base64_encode(&request, BASE64_STANDARD, buf_str(&join->request));
	question.body =
		json_pack("{s:s, s:s, s:s}", "token", token, "name", join->settings.site, "request", buf_c(&request));
	buf_free(&request);
	int status = CLI_FINE;
	if (cli_ask(&question, reply) != 0) {
		cli_say("%s; that is where the token says to join", reply->err.text);
		status = CLI_REFUSED;
	} else if (!cli_reply_is_good(reply)) {
		status = cli_tell_problem(reply, "");
	}
	json_decref(question.body);
	http_tls_drop(question.tls);
	return status;
}

/* ---- The answer ------------------------------------------------------------------------------------------------- */

static int take_records(struct join *join, const json_t *json)
{
	size_t index;
	json_t *text;
	json_array_foreach(json_object_get(json, "records"), index, text)
	{
		struct buf record = {0};
		struct str digits = json_is_string(text) ? str_of(json_string_value(text)) : STR("");
		bool good =
			base64_decode_to(&record, BASE64_STANDARD, digits) && record.length > 0 && record.length <= UINT16_MAX;
		if (good) {
			buf_put_char(&join->records, (char)(record.length >> 8));
			buf_put_char(&join->records, (char)record.length);
			buf_put(&join->records, buf_str(&record));
		}
		buf_free(&record);
		if (!good)
			return ERR_CORRUPT;
	}
	return 0;
}

struct root_reader {
	struct trust_roots *roots;
	const unsigned char *wanted; /* a fingerprint */
	bool found;
	int code;
	struct err *err;
};

static void take_root(void *context, struct str der)
{
	struct root_reader *reader = context;
	struct trust_certificate about;
	if (reader->code == 0)
		reader->code = trust_roots_add(reader->roots, der, reader->err);
	if (reader->code == 0 && trust_certificate_read(der, &about, NULL) == 0)
		reader->found |= memcmp(about.fingerprint, reader->wanted, sizeof(about.fingerprint)) == 0;
}

static int check_roots(struct join *join, struct trust_roots *roots, struct err *err)
{
	struct root_reader reader = {.roots = roots, .wanted = join->token.root, .err = err};
	int code = trust_pem_each(buf_str(&join->roots), take_root, &reader, err);
	if (code == 0)
		code = reader.code;
	if (code == 0 && !reader.found)
		code = err_set(err, ERR_CORRUPT, "the root that the token names is not among them");
	return code == 0 ? 0 : err_context(err, code, "the roots in the answer");
}

static int check_certificate(struct join *join, struct str pem, const struct trust_roots *roots, struct err *err)
{
	struct trust_certificate about;
	int code = trust_pem_first(pem, &join->certificate, err);
	if (code == 0)
		code = trust_check(roots, buf_str(&join->certificate), cli_now_ms(), &about, err);
	if (code == 0 && about.id != trust_key_id(join->key))
		code = err_set(err, ERR_CORRUPT, "it is for another key");
	if (code == 0 && strcmp(about.name, join->settings.site) != 0)
		code = err_set(err, ERR_CORRUPT, "it is for the name " TEXT_NAME_FMT, TEXT_NAME(str_of(about.name)));
	return code == 0 ? 0 : err_context(err, code, "the certificate in the answer");
}

static int take_answer(struct join *join, const json_t *json)
{
	struct trust_roots *roots = trust_roots_new();
	struct err err = {0};
	double sites;
	buf_put(&join->roots, cli_json_text(json, "roots"));
	int code = check_roots(join, roots, &err);
	if (code == 0)
		code = check_certificate(join, cli_json_text(json, "certificate"), roots, &err);
	if (code == 0 && take_records(join, json) != 0)
		code = err_set(&err, ERR_CORRUPT, "a record in the answer is not base64, empty, or longer than 65535 bytes");
	trust_roots_free(roots);
	if (cli_json_number(json, "sites", &sites) && sites >= 1 && sites <= LIMIT_SITES)
		join->sites = (long long)sites;
	if (code == 0)
		return CLI_FINE;
	cli_say("%s; nothing was kept, and the token is used up", err.text);
	return CLI_REFUSED;
}

static int store(const struct join *join)
{
	const char *state = buf_c(&join->settings.state);
	struct err err = {0};
	if (agent_file_write(state, "records.join", buf_str(&join->records), false, &err) != 0 ||
	    agent_identity_store(state, join->key, buf_str(&join->certificate), buf_str(&join->roots), cli_now_ms(),
	                         &err) != 0)
		return refuse(&err);
	struct buf out = {0};
	site_put_name(&out, str_of(join->settings.site));
	buf_put(&out, STR(" has joined"));
	if (join->sites > 0)
		buf_printf(&out, "; it is one of %lld sites", join->sites);
	buf_put(&out, STR(".\n"));
	site_put_reload(&out, &join->settings);
	buf_put(&out, STR("Then `cheops sites` shows them all.\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

int site_join(const struct site_call *call)
{
	struct join join = {.config = call->config != NULL ? call->config : CLI_CONFIG_DEFAULT};
	struct cli_reply reply = {0};
	int status = prepare(&join, call->argument);
	if (status == CLI_FINE)
		status = ask(&join, call->argument, &reply);
	if (status == CLI_FINE)
		status = take_answer(&join, reply.json);
	if (status == CLI_FINE)
		status = store(&join);
	if (join.tried && status != CLI_FINE)
		forget_trial(&join);
	cli_reply_free(&reply);
	trust_key_free(join.key);
	buf_free(&join.request);
	buf_free(&join.certificate);
	buf_free(&join.roots);
	buf_free(&join.records);
	cli_settings_free(&join.settings);
	return status;
}
