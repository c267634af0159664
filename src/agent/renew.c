/* This site's certificate is renewed well before it ends, and when another root signs than the one that signed it.
 *
 *   1. a third of its life is left, or the newest root is not the one that it comes from
 *   2. here is the authority: signed on the spot. Otherwise a request goes to a site that has it, which knows us by the
 *      certificate that we still have
 *   3. the new certificate is stored, TLS and the card are made anew; connections that are open stay
 *
 * When no authority can be reached it is tried again and again; the metric and `cheops sites` show when it ends. An expired
 * site still serves what concerns it alone, and has to join again with a token.
 */
#include "agent/agent_int.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/timestamp.h"

#include <jansson.h>
#include <stdlib.h>

enum {
	CHECK_MOST_MS = 5000, /* so that a new root is taken up soon */
	CHECK_LEAST_MS = 500,
	SETTLE_MS = 3000, /* for news of a root to be everywhere */
	CALL_TIMEOUT_MS = 15000,
	ANSWER_BYTES = 1 << 20,
};

struct agent_renewal {
	struct agent_mesh *mesh;
	struct http_timer timer;
	struct http_call *call;
	site_id asked; /* whom */
	uint32_t turn; /* the next authority to ask, where there are several */
	bool complained;
	bool ended; /* and that was told */
};

static int64_t life_ms(const struct trust_certificate *about)
{
	return about->to_ms - about->from_ms - TRUST_BACKDATE_S * INT64_C(1000);
}

static void check_later(struct agent_renewal *renewal)
{
	struct agent_identity *identity = agent_mesh_identity(renewal->mesh);
	int64_t wait_ms = identity ? life_ms(&identity->about) / 30 : CHECK_LEAST_MS;
	wait_ms = wait_ms < CHECK_LEAST_MS ? CHECK_LEAST_MS : wait_ms > CHECK_MOST_MS ? CHECK_MOST_MS : wait_ms;
	http_timer_set(agent_mesh_loop(renewal->mesh), &renewal->timer, (uint64_t)wait_ms);
}

/* The root that was announced last signs; without any announcement there is one only. */
static bool is_of_newest_root(const struct agent_renewal *renewal)
{
	struct agent_identity *identity = agent_mesh_identity(renewal->mesh);
	struct site *site = agent_mesh_site(renewal->mesh);
	struct site_record record;
	struct site_root root = {0}, newest = {0};
	uint64_t version = 0;
	for (uint32_t n = 0; site_record_at(site, SITE_ROOT, n, &record); n++) {
		if (site_root_parse(record.body, &root, NULL) != 0 || !root.trusted || record.version < version)
			continue;
		version = record.version;
		newest = root;
	}
	if (version == 0)
		return true;
	struct trust_roots *only = trust_roots_new();
	struct trust_certificate about;
	bool fine = trust_roots_add(only, newest.certificate, NULL) == 0 &&
	            trust_check(only, buf_str(&identity->certificate), agent_now().wall_ms, &about, NULL) == 0;
	trust_roots_free(only);
	return fine;
}

static int store(struct agent_mesh *mesh, struct str der, struct str roots_pem, struct err *err)
{
	const char *folder = agent_mesh_config(mesh)->state;
	struct buf pem = {0};
	trust_pem_write(&pem, der);
	int code = agent_file_write(folder, "roots.pem", roots_pem, false, err);
	if (code == 0)
		code = agent_file_write(folder, "site.crt", buf_str(&pem), false, err);
	buf_free(&pem);
	return code;
}

static int take_certificate(struct agent_mesh *mesh, struct str der, struct str roots_pem, struct err *err)
{
	struct agent_identity *identity = agent_mesh_identity(mesh);
	struct trust_certificate about;
	int code = trust_check(identity->roots, der, agent_now().wall_ms, &about, err);
	if (code)
		return code;
	if (about.id != trust_key_id(identity->key) || strcmp(about.name, identity->about.name) != 0)
		return err_set(err, ERR_INVALID,
		               "the new certificate is that of `%s`, with another key or name than this site has", about.name);
	code = store(mesh, der, roots_pem, err);
	if (code)
		return code;
	buf_clear(&identity->certificate);
	buf_put(&identity->certificate, der);
	identity->about = about;
	return agent_mesh_renewed(mesh, err);
}

static void tell(struct agent_renewal *renewal, int code, const struct err *err)
{
	const struct log *log = agent_mesh_log(renewal->mesh);
	if (code == 0) {
		renewal->complained = renewal->ended = false;
		log_event(log, LOG_INFO, "the certificate was renewed");
	} else if (!renewal->complained) {
		renewal->complained = true; /* once; it is tried again quietly */
		log_event(log, LOG_WARN, "the certificate cannot be renewed yet", LOG_STR("error", str_of(err->text)));
	}
}

static int make_request(struct agent_mesh *mesh, struct buf *request, struct err *err)
{
	struct agent_identity *identity = agent_mesh_identity(mesh);
	return trust_request_make(identity->key, str_of(identity->about.name), request, err);
}

/* ---- By the authority at this site ------------------------------------------------------------------------------ */

static int sign_here(struct agent_mesh *mesh, struct err *err)
{
	struct buf request = {0}, der = {0}, roots = {0};
	int code = make_request(mesh, &request, err);
	if (code == 0)
		code = agent_authority_sign(mesh, buf_str(&request), &der, err);
	agent_roots_write(agent_mesh_identity(mesh), &roots);
	if (code == 0)
		code = take_certificate(mesh, buf_str(&der), buf_str(&roots), err);
	buf_free(&request);
	buf_free(&der);
	buf_free(&roots);
	return code;
}

static void renew_here(struct agent_renewal *renewal)
{
	struct err err = {0};
	tell(renewal, sign_here(renewal->mesh, &err), &err);
}

/* ---- By that of another site ------------------------------------------------------------------------------------- */

/* Only the site that we meant may answer. */
static int check_server(void *context, struct str certificate_der, struct err *err)
{
	struct agent_renewal *renewal = context;
	struct trust_certificate about;
	int code =
		trust_check(agent_mesh_identity(renewal->mesh)->roots, certificate_der, agent_now().wall_ms, &about, err);
	if (code == 0 && about.id != renewal->asked)
		code = err_set(err, ERR_INVALID, "another site answers there: `%s`", about.name);
	return code;
}

static int read_certificate(struct agent_renewal *renewal, struct str pem, struct str roots_pem, struct err *err)
{
	struct buf der = {0};
	int code = trust_pem_first(pem, &der, err);
	if (code == 0)
		code = take_certificate(renewal->mesh, buf_str(&der), roots_pem, err);
	buf_free(&der);
	return code;
}

static int read_answer(struct agent_renewal *renewal, const struct http_call_answer *answer, struct err *err)
{
	json_error_t error;
	if (answer->code)
		return err_set(err, answer->code, "%s", answer->err.text);
	json_t *json = json_loadb(answer->body.at, answer->body.length, 0, &error);
	const char *certificate = json_string_value(json_object_get(json, "certificate"));
	const char *roots = json_string_value(json_object_get(json, "roots"));
	const char *detail = json_string_value(json_object_get(json, "detail"));
	int code;
	if (answer->status == 200 && certificate && roots)
		code = read_certificate(renewal, str_of(certificate), str_of(roots), err);
	else
		code = err_set(err, ERR_UNAVAILABLE, "the authority answered %u%s%s", answer->status, detail ? ": " : "",
		               detail ? detail : ", without a certificate");
	json_decref(json);
	return code;
}

static void answered(void *context, const struct http_call_answer *answer)
{
	struct agent_renewal *renewal = context;
	struct err err = {0};
	renewal->call = NULL;
	tell(renewal, read_answer(renewal, answer, &err), &err);
	check_later(renewal);
}

/* The next site that has the authority's key; false: none is known. */
static bool find_authority(struct agent_renewal *renewal, struct http_address *address)
{
	struct site *site = agent_mesh_site(renewal->mesh);
	uint32_t count = site_count(site);
	struct arena arena;
	arena_init(&arena, 0);
	bool found = false;
	for (uint32_t i = 0; i < count && !found; i++) {
		struct site_member member;
		struct site_card card;
		uint32_t number = (renewal->turn + i) % count;
		site_member(site, number, &member);
		if (number == 0 || member.state == SITE_REVOKED ||
		    site_card_parse(&arena, member.card.body, &card, NULL) != 0 || !card.authority)
			continue;
		http_address_of_site(address, &card.address);
		renewal->asked = member.id;
		renewal->turn = number + 1;
		found = true;
	}
	arena_free(&arena);
	return found;
}

static int start_call(struct agent_renewal *renewal, struct err *err)
{
	struct http_call_options options = {.tls = agent_mesh_client(renewal->mesh),
	                                    .method = "POST",
	                                    .target = STR("/cheops/v1/renew"),
	                                    .content_type = STR("application/json"),
	                                    .timeout_ms = CALL_TIMEOUT_MS,
	                                    .answer_bytes = ANSWER_BYTES,
	                                    .done = answered,
	                                    .check = check_server,
	                                    .context = renewal};
	struct buf request = {0}, body = {0};
	if (!find_authority(renewal, &options.address))
		return err_set(err, ERR_UNAVAILABLE, "no site that has the authority's key is known");
	int code = make_request(renewal->mesh, &request, err);
	if (code == 0) {
		buf_put(&body, STR("{\"request\":\""));
		base64_encode(&body, BASE64_STANDARD, buf_str(&request));
		buf_put(&body, STR("\"}"));
		options.body = buf_str(&body);
		code = http_call_start(&renewal->call, agent_mesh_loop(renewal->mesh), &options, err);
	}
	buf_free(&request);
	buf_free(&body);
	return code;
}

static void ask_authority(struct agent_renewal *renewal)
{
	struct err err = {0};
	int code = start_call(renewal, &err);
	if (code)
		tell(renewal, code, &err);
}

/* ---- When -------------------------------------------------------------------------------------------------------- */

static void tell_end(struct agent_renewal *renewal, int64_t to_ms)
{
	char text[TIMESTAMP_BYTES];
	if (renewal->ended)
		return;
	renewal->ended = true;
	timestamp_format(to_ms, text);
	/* One that holds the authority's key signs a new one on the spot. */
	bool signs = agent_mesh_identity(renewal->mesh)->root_key != NULL;
	log_event(agent_mesh_log(renewal->mesh), LOG_ERROR,
	          "the certificate of this site has expired: other sites refuse it until it is renewed, or has joined anew",
	          LOG_STR("expired", str_of(text)),
	          LOG_STR("remedy", signs
	                                ? STR("none is needed: the authority is here, and signs another")
	                                : STR("at the site with the authority `cheops site remove` this one, then `cheops "
	                                      "site token`; here stop the agent, move its state away, and `cheops site "
	                                      "join`")));
}

static void check_due(struct http_timer *timer)
{
	struct agent_renewal *renewal = (struct agent_renewal *)((char *)timer - offsetof(struct agent_renewal, timer));
	struct agent_identity *identity = agent_mesh_identity(renewal->mesh);
	check_later(renewal);
	if (!identity || renewal->call)
		return;
	int64_t left_ms = identity->about.to_ms - agent_now().wall_ms;
	if (left_ms < 0)
		tell_end(renewal, identity->about.to_ms);
	/* A certificate of a new root is of no use among sites that have not heard of that one yet. */
	bool settled = agent_mesh_roots_age_ms(renewal->mesh) >= SETTLE_MS;
	if (left_ms > life_ms(&identity->about) / 3 && (!settled || is_of_newest_root(renewal)))
		return;
	if (identity->root_key)
		renew_here(renewal);
	else
		ask_authority(renewal);
}

struct agent_renewal *agent_renewal_new(struct agent_mesh *mesh)
{
	struct agent_renewal *renewal = calloc(1, sizeof(*renewal));
	CHECK(renewal);
	renewal->mesh = mesh;
	renewal->timer.fire = check_due;
	check_later(renewal);
	return renewal;
}

void agent_renewal_free(struct agent_renewal *renewal)
{
	if (!renewal)
		return;
	if (renewal->call)
		http_call_cancel(renewal->call);
	http_timer_clear(agent_mesh_loop(renewal->mesh), &renewal->timer);
	free(renewal);
}
