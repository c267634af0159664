/* What the API says of the sites, and what it has the authority do. In the thread of control. */
#include "api/api_int.h"

#include "base/base64.h"
#include "base/check.h"
#include "base/text.h"
#include "base/timestamp.h"

#include <jansson.h>
#include <stdlib.h>

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

enum { TOKEN_TTL_S = 3600 };

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static const struct api_refusal bad_request = {422, "bad-request", "The request cannot be followed"};
static const struct api_refusal no_mesh = {409, "no-mesh", "This site is not part of a mesh"};

/* The body as a JSON object; NULL, and the job is answered. An empty body counts as an empty object. */
static json_t *read_body(struct api_job *job)
{
	json_error_t error = {0};
	json_t *json = job->body.length > 0 ? json_loadb(job->body.at, job->body.length, JSON_REJECT_DUPLICATES, &error)
	                                    : json_object();
	if (json_is_object(json))
		return json;
	struct buf detail = {0};
	if (json)
		buf_put(&detail, STR("the body is JSON, but not an object"));
	else
		buf_printf(&detail, "the body is not valid JSON: line %d, column %d: %s", error.line, error.column, error.text);
	api_refuse(job, &bad_request, buf_c(&detail));
	buf_free(&detail);
	json_decref(json);
	return NULL;
}

/* A member that has to be a string; NULL, and the job is answered. */
static const char *read_text(struct api_job *job, const json_t *json, const char *name)
{
	const char *text = json_string_value(json_object_get(json, name));
	struct buf detail = {0};
	if (text)
		return text;
	buf_printf(&detail, "the body needs a member `%s`, which is a string", name);
	api_refuse(job, &bad_request, buf_c(&detail));
	buf_free(&detail);
	return NULL;
}

/* Sets the answer to what went wrong; true where nothing did. */
static bool finish(struct api_job *job, int code, const struct api_refusal *refusal, const struct err *err)
{
	job->answer.status = 200;
	if (code)
		api_refuse(job, refusal, err->text);
	return code == 0;
}

void api_put_time(struct buf *out, int64_t ms)
{
	if (ms <= 0) {
		buf_put(out, STR("null"));
		return;
	}
	char text[TIMESTAMP_BYTES];
	timestamp_format(ms, text);
	buf_put_json(out, str_of(text));
}

static void put_ms(struct buf *out, int64_t us)
{
	if (us == SCOPE_RTT_UNKNOWN)
		buf_put(out, STR("null"));
	else
		buf_printf(out, "%lld.%03lld", (long long)us / 1000, (long long)us % 1000);
}

/* ---- The list of sites ------------------------------------------------------------------------------------------- */

static void put_pairs(struct buf *out, const char *name, const struct site_card *card, bool tags)
{
	uint32_t count = tags ? card->tags_count : card->services_count;
	buf_printf(out, ",\"%s\":{", name);
	for (uint32_t i = 0; i < count; i++) {
		if (i > 0)
			buf_put_char(out, ',');
		buf_put_json(out, tags ? card->tags[i].key : card->services[i].service);
		buf_put_char(out, ':');
		buf_put_json(out, tags ? card->tags[i].value : card->services[i].version);
	}
	buf_put_char(out, '}');
}

static void put_address(struct buf *out, const struct site_address *site)
{
	struct http_address address;
	http_address_of_site(&address, site);
	buf_put(out, STR(",\"address\":"));
	buf_put_json(out, str_of(address.text));
}

static void put_card(struct buf *out, struct arena *arena, const struct site_member *member)
{
	struct site_card card;
	struct trust_certificate about;
	if (site_card_parse(arena, member->card.body, &card, NULL) != 0)
		return;
	buf_put(out, STR(",\"version\":"));
	buf_put_json(out, card.version);
	put_address(out, &card.address);
	buf_printf(out, ",\"authority\":%s", card.authority ? "true" : "false");
	put_pairs(out, "tags", &card, true);
	put_pairs(out, "services", &card, false);
	buf_put(out, STR(",\"certificate\":"));
	if (trust_certificate_read(card.certificate, &about, NULL) != 0) {
		buf_put(out, STR("null"));
		return;
	}
	buf_put(out, STR("{\"expires\":"));
	api_put_time(out, about.to_ms);
	buf_put_char(out, '}');
}

/* The data path, where a request has gone there lately. */
static void put_path(struct buf *out, struct proxy_paths *paths, site_id id)
{
	struct proxy_path path;
	buf_put(out, STR(",\"path\":"));
	if (!proxy_paths_read(paths, id, &path)) {
		buf_put(out, STR("null"));
		return;
	}
	buf_printf(out, "{\"state\":\"%s\",\"age_ms\":", proxy_path_state_name(path.state));
	if (path.answered)
		buf_put_number(out, path.answer_age_ms, 1);
	else
		buf_put(out, STR("null"));
	buf_put(out, STR(",\"rtt_ms\":"));
	put_ms(out, path.rtt_us ? (int64_t)path.rtt_us : SCOPE_RTT_UNKNOWN);
	buf_put_char(out, '}');
}

/* What was measured is from here, or to here. */
static int64_t measured_us(const struct site *site, uint32_t from, uint32_t to, const struct site_member *member)
{
	struct site_member other;
	if ((from == 0) == (to == 0))
		return SCOPE_RTT_UNKNOWN;
	if (from == 0)
		return member->rtt_us;
	site_member(site, from, &other);
	return other.rtt_us;
}

static void put_site(struct buf *out, struct arena *arena, const struct api_mesh *mesh, uint32_t number, uint32_t from)
{
	struct site_member member;
	site_member(mesh->site, number, &member);
	buf_put(out, STR("{\"name\":"));
	buf_put_json(out, member.name);
	buf_printf(out, ",\"id\":\"%016llx\",\"state\":\"%s\",\"shown\":\"%s\",\"since\":", (unsigned long long)member.id,
	           site_state_name(member.state), scope_state_name(site_scope_state(member.state)));
	api_put_time(out, member.since_ms);
	buf_put(out, STR(",\"heard\":"));
	api_put_time(out, member.heard_ms);
	buf_put(out, STR(",\"rtt_ms\":"));
	put_ms(out, measured_us(mesh->site, from, number, &member));
	buf_put(out, STR(",\"estimate_ms\":"));
	put_ms(out, number == from ? 0 : site_estimate_us(mesh->site, from, number));
	put_card(out, arena, &member);
	put_path(out, mesh->paths, member.id);
	buf_put_char(out, '}');
}

/* A site that is not part of a mesh knows itself. */
static void put_alone(struct buf *out, const struct proxy_config *config)
{
	struct site_card card = {.tags = config->tags, .tags_count = config->tags_count};
	struct site_offer *services = calloc(config->services_count, sizeof(*services));
	CHECK(services);
	for (uint32_t i = 0; i < config->services_count; i++)
		services[i] = (struct site_offer){config->services[i].name, config->services[i].version};
	card.services = services;
	card.services_count = config->services_count;
	buf_put(out, STR("{\"name\":"));
	buf_put_json(out, config->site);
	buf_put(out,
	        STR(",\"id\":null,\"state\":\"alive\",\"shown\":\"present\",\"since\":null,\"heard\":null,\"rtt_ms\":null,"
	            "\"estimate_ms\":0.000,\"version\":"));
	buf_put_json(out, STR(CHEOPS_VERSION));
	buf_put(out, STR(",\"address\":null,\"authority\":false"));
	put_pairs(out, "tags", &card, true);
	put_pairs(out, "services", &card, false);
	buf_put(out, STR(",\"certificate\":null,\"path\":null}"));
	free(services);
}

void api_get_sites(struct api_job *job, const struct api_mesh *mesh)
{
	static const struct api_refusal unknown = {404, "unknown-site", "No such site"};
	struct buf *out = &job->answer.body;
	struct arena arena;
	arena_init(&arena, 0);
	struct str name = api_query(&arena, buf_str(&job->target), "from");
	uint32_t from = name.length == 0 || !mesh->site ? 0 : site_find_name(mesh->site, name);
	job->answer.status = 200;
	buf_put(out, STR("{\"site\":"));
	buf_put_json(out, mesh->config->site);
	buf_put(out, STR(",\"from\":"));
	buf_put_json(out, name.length ? name : mesh->config->site);
	buf_put(out, STR(",\"sites\":["));
	for (uint32_t i = 0; mesh->site && from != SCOPE_NO_INDEX && i < site_count(mesh->site); i++) {
		if (i > 0)
			buf_put_char(out, ',');
		put_site(out, &arena, mesh, i, from);
	}
	if (!mesh->site)
		put_alone(out, mesh->config);
	buf_put(out, STR("]}\n"));
	if (from == SCOPE_NO_INDEX) {
		struct err err;
		err_set(&err, ERR_NOT_FOUND,
		        "no site " TEXT_NAME_FMT " is known, which `from` names; `cheops sites` lists those that are",
		        TEXT_NAME(name));
		api_refuse(job, &unknown, err.text);
	}
	arena_free(&arena);
}

/* ---- What the authority does -------------------------------------------------------------------------------------- */

/* A token for one name is not to become one for any, nor one for a day one for an hour. */
static bool check_token_request(struct api_job *job, const json_t *json)
{
	const json_t *name = json_object_get(json, "name"), *ttl = json_object_get(json, "ttl_s");
	bool good_name = !name || json_is_string(name), good_ttl = !ttl || json_is_integer(ttl);
	if (!good_name)
		api_refuse(job, &bad_request, "`name` has to be a string: the name of the site that may join");
	else if (!good_ttl)
		api_refuse(job, &bad_request, "`ttl_s` has to be a whole number of seconds, from 1 to 604800");
	return good_name && good_ttl;
}

void api_post_token(struct api_job *job, const struct api_mesh *mesh)
{
	struct api_token token = {0};
	struct api_refusal refusal;
	struct err err = {0};
	json_t *json = read_body(job);
	if (!json || !check_token_request(job, json)) {
		json_decref(json);
		return;
	}
	const char *name = json_string_value(json_object_get(json, "name"));
	json_t *ttl = json_object_get(json, "ttl_s");
	int64_t ttl_s = ttl ? json_integer_value(ttl) : TOKEN_TTL_S;
	ttl_s = ttl_s > INT32_MAX ? INT32_MAX : ttl_s < 0 ? 0 : ttl_s;
	int code = mesh->functions->token(mesh->context, str_of(name ? name : ""), ttl_s * 1000, &token, &refusal, &err);
	json_decref(json);
	if (finish(job, code, &refusal, &err)) {
		job->answer.status = 201;
		buf_printf(&job->answer.body,
		           "{\"token\":\"%s\",\"command\":\"cheops site join %s\",\"expires\":", buf_c(&token.text),
		           buf_c(&token.text));
		api_put_time(&job->answer.body, token.ends_ms);
		buf_put(&job->answer.body, STR("}\n"));
	}
	if (token.text.at)
		explicit_bzero(token.text.at, token.text.length);
	buf_free(&token.text);
}

static void post_removal(struct api_job *job, const struct api_mesh *mesh, enum site_removal_kind kind)
{
	struct api_refusal refusal;
	struct err err = {0};
	json_t *json = read_body(job);
	const char *name = json ? read_text(job, json, "name") : NULL;
	if (name &&
	    finish(job, mesh->functions->remove(mesh->context, str_of(name), kind, &refusal, &err), &refusal, &err)) {
		buf_put(&job->answer.body, kind == SITE_REVOKE ? STR("{\"revoked\":") : STR("{\"removed\":"));
		buf_put_json(&job->answer.body, str_of(name));
		buf_put(&job->answer.body, STR("}\n"));
	}
	json_decref(json);
}

void api_post_remove(struct api_job *job, const struct api_mesh *mesh)
{
	post_removal(job, mesh, SITE_FORGET);
}

void api_post_revoke(struct api_job *job, const struct api_mesh *mesh)
{
	post_removal(job, mesh, SITE_REVOKE);
}

void api_get_authority(struct api_job *job, const struct api_mesh *mesh)
{
	struct buf *out = &job->answer.body;
	if (!mesh->roots) {
		api_refuse(job, &no_mesh, "this site is not part of a mesh: make one with `cheops site init`, or join one");
		return;
	}
	job->answer.status = 200;
	buf_printf(out, "{\"here\":%s,\"roots\":[", mesh->signs ? "true" : "false");
	for (uint32_t i = 0; i < trust_roots_count(mesh->roots); i++) {
		struct trust_certificate about;
		CHECK(trust_certificate_read(trust_roots_at(mesh->roots, i), &about, NULL) == 0);
		buf_put(out, i ? STR(",{\"name\":") : STR("{\"name\":"));
		buf_put_json(out, str_of(about.name));
		buf_printf(out, ",\"id\":\"%016llx\",\"signs\":%s,\"expires\":", (unsigned long long)about.id,
		           mesh->signs ? about.id == mesh->signs ? "true" : "false" : "null");
		api_put_time(out, about.to_ms);
		buf_put_char(out, '}');
	}
	buf_put(out, STR("]}\n"));
}

void api_post_rotate(struct api_job *job, const struct api_mesh *mesh)
{
	struct api_refusal refusal;
	struct err err = {0};
	if (finish(job, mesh->functions->rotate(mesh->context, &refusal, &err), &refusal, &err))
		buf_put(&job->answer.body, STR("{\"rotated\":true}\n"));
}

void api_post_retire(struct api_job *job, const struct api_mesh *mesh)
{
	struct api_refusal refusal;
	struct err err = {0};
	json_t *json = read_body(job);
	if (!json)
		return;
	bool force = json_is_true(json_object_get(json, "force"));
	json_decref(json);
	if (finish(job, mesh->functions->retire(mesh->context, force, &refusal, &err), &refusal, &err))
		buf_put(&job->answer.body, STR("{\"retired\":true}\n"));
}

/* ---- What other agents ask for ------------------------------------------------------------------------------------ */

static void put_joined(struct api_job *job, struct api_joined *joined)
{
	struct buf *out = &job->answer.body, pem = {0};
	trust_pem_write(&pem, buf_str(&joined->certificate));
	buf_put(out, STR("{\"certificate\":"));
	buf_put_json(out, buf_str(&pem));
	buf_put(out, STR(",\"roots\":"));
	buf_put_json(out, buf_str(&joined->roots));
	buf_printf(out, ",\"records\":[%s],\"sites\":%u}\n", buf_c(&joined->records), joined->sites);
	buf_free(&pem);
}

static void free_joined(struct api_joined *joined)
{
	buf_free(&joined->certificate);
	buf_free(&joined->roots);
	buf_free(&joined->records);
}

/* The request to be signed; false, and the job is answered. */
static bool read_request(struct api_job *job, const json_t *json, struct buf *request)
{
	const char *text = read_text(job, json, "request");
	if (!text)
		return false;
	if (text[0] && base64_decode_to(request, BASE64_STANDARD, str_of(text)))
		return true;
	api_refuse(job, &bad_request, "`request` has to be a certificate request (PKCS #10, DER) in base64");
	return false;
}

void api_post_join(struct api_job *job, const struct api_mesh *mesh)
{
	struct api_joined joined = {0};
	struct api_refusal refusal;
	struct err err = {0};
	struct buf request = {0};
	json_t *json = read_body(job);
	const char *token = json ? read_text(job, json, "token") : NULL;
	const char *name = token ? read_text(job, json, "name") : NULL;
	if (name && read_request(job, json, &request) &&
	    finish(job,
	           mesh->functions->join(mesh->context, str_of(token), str_of(name), buf_str(&request), &joined, &refusal,
	                                 &err),
	           &refusal, &err))
		put_joined(job, &joined);
	free_joined(&joined);
	buf_free(&request);
	json_decref(json);
}

void api_post_renew(struct api_job *job, const struct api_mesh *mesh)
{
	struct api_joined joined = {0};
	struct api_refusal refusal;
	struct err err = {0};
	struct buf request = {0};
	json_t *json = read_body(job);
	if (json && read_request(job, json, &request) &&
	    finish(job, mesh->functions->renew(mesh->context, job->from, buf_str(&request), &joined, &refusal, &err),
	           &refusal, &err))
		put_joined(job, &joined);
	free_joined(&joined);
	buf_free(&request);
	json_decref(json);
}
