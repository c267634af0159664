/* What the site with the authority's key does for the others: lets them join, renews and takes away their certificates.
 *
 * Joining, at the authority's site:
 *   1. `cheops site token` draws a secret; its digest is kept with its end (STATE/tokens)
 *   2. the new site sends the token and a request for its name and key
 *   3. the token is struck off, and that is on the disk, before anything is signed: it serves once
 *   4. the name is noted with the key (STATE/issued); the certificate goes back, with the roots and what is known of others
 *
 * What goes wrong: a token that is unknown, used or expired, a name that is taken, or that the token is not for. The other
 * end is told which; this one logs it. A file that is damaged (tokens.h): nobody joins until it is mended, and the log says
 * so; sites renew and are removed all the same.
 */
#include "agent/agent_int.h"

#include "agent/tokens.h"
#include "base/base64.h"
#include "base/check.h"
#include "base/text.h"

#include <openssl/crypto.h>
#include <stdlib.h>

enum {
	RECORDS_TO_JOINER = 64, /* cards; the rest comes by gossip */
	LATE_SHOWN_BYTES = 160, /* of the names of sites that have not renewed */
};

struct agent_authority {
	struct agent_mesh *mesh;
	struct agent_tokens tokens;
	struct agent_issued issued;
};

static int refuse(struct api_refusal *refusal, unsigned status, const char *type, const char *title)
{
	*refusal = (struct api_refusal){status, type, title};
	return status >= 500 ? ERR_UNAVAILABLE : ERR_INVALID;
}

static const char *state_folder(const struct agent_authority *authority)
{
	return agent_mesh_config(authority->mesh)->state;
}

/* The names of the sites that have the authority's key. */
static void list_authorities(struct agent_authority *authority, struct buf *names)
{
	struct site *site = agent_mesh_site(authority->mesh);
	struct arena arena;
	arena_init(&arena, 0);
	for (uint32_t i = 0; i < site_count(site); i++) {
		struct site_member member;
		struct site_card card;
		site_member(site, i, &member);
		if (site_card_parse(&arena, member.card.body, &card, NULL) == 0 && card.authority)
			buf_printf(names, "%s%.*s", names->length ? ", " : "", STR_FMT(card.name));
	}
	arena_free(&arena);
}

/* 0 where this site signs. */
static int check_here(struct agent_authority *authority, struct api_refusal *refusal, struct err *err)
{
	struct agent_identity *identity = agent_mesh_identity(authority->mesh);
	if (!identity) {
		err_set(err, ERR_UNAVAILABLE, "this site is not part of a mesh: make one with `cheops site init`, or join one");
		return refuse(refusal, 409, "no-mesh", "This site is not part of a mesh");
	}
	if (identity->root_key)
		return 0;
	struct buf where = {0};
	list_authorities(authority, &where);
	err_set(err, ERR_UNAVAILABLE, "the authority's key is not at this site; ask at %s",
	        where.length ? buf_c(&where) : "the site that was made with `cheops site init`");
	buf_free(&where);
	return refuse(refusal, 409, "no-authority", "The authority is at another site");
}

static void tell_damage(struct agent_authority *authority, const struct err *err)
{
	log_event(agent_mesh_log(authority->mesh), LOG_ERROR, "a file of the authority cannot be used",
	          LOG_STR("error", str_of(err->text)));
}

/* The same, and the files are read when they are first needed. */
static int get_ready(struct agent_authority *authority, struct api_refusal *refusal, struct err *err)
{
	const char *folder = state_folder(authority);
	int code = check_here(authority, refusal, err);
	if (code)
		return code;
	if (agent_tokens_load(&authority->tokens, folder, err) == 0 &&
	    agent_issued_load(&authority->issued, folder, err) == 0)
		return 0;
	tell_damage(authority, err);
	return refuse(refusal, 500, "cannot-read", "What was given out before cannot be read");
}

/* ---- Tokens ------------------------------------------------------------------------------------------------------ */

static bool name_is_taken(struct agent_authority *authority, struct str name)
{
	struct site *site = agent_mesh_site(authority->mesh);
	if (site_find_name(site, name) != SCOPE_NO_INDEX)
		return true;
	const struct agent_issued *issued = &authority->issued;
	for (uint32_t i = 0; i < issued->count; i++)
		if (str_equal(str_of(issued->at[i].name), name) && !site_is_removed(site, issued->at[i].id))
			return true;
	return false;
}

static int refuse_taken(struct str name, struct api_refusal *refusal, struct err *err)
{
	err_set(
		err, ERR_CONFLICT,
		"there is a site `%.*s` already, and names are unique; take another name, or `cheops site remove '%.*s'` first "
		"if that site is gone for good",
		STR_FMT(name), STR_FMT(name));
	return refuse(refusal, 409, "name-taken", "The name is taken");
}

static int check_token_request(struct agent_authority *authority, struct str name, int64_t ttl_ms,
                               struct api_refusal *refusal, struct err *err)
{
	if (ttl_ms < 1000 || ttl_ms > AGENT_TOKEN_TTL_MOST_MS) {
		err_set(err, ERR_INVALID, "a token is good for 1 second to 7 days (604800 s), not for %lld s",
		        (long long)(ttl_ms / 1000));
		return refuse(refusal, 422, "bad-request", "The request cannot be followed");
	}
	if (name.length > LIMIT_AGENT_NAME_BYTES || !text_is_printable(name)) {
		err_set(err, ERR_INVALID, "the name of a site is UTF-8 without control characters, of at most %d bytes",
		        LIMIT_AGENT_NAME_BYTES);
		return refuse(refusal, 422, "bad-request", "The request cannot be followed");
	}
	return name_is_taken(authority, name) ? refuse_taken(name, refusal, err) : 0;
}

/* The root that this site's own certificate comes from: who joins has to find it behind that. While one replaces another it
 * need not be the one that signs. */
static void put_own_root(const struct agent_identity *identity, unsigned char fingerprint[32])
{
	struct trust_certificate root, about;
	CHECK(trust_certificate_read(buf_str(&identity->root), &root, NULL) == 0);
	memcpy(fingerprint, root.fingerprint, sizeof(root.fingerprint));
	for (uint32_t i = 0; i < trust_roots_count(identity->roots); i++) {
		struct trust_roots *only = trust_roots_new();
		struct str der = trust_roots_at(identity->roots, i);
		if (trust_roots_add(only, der, NULL) == 0 && trust_certificate_read(der, &root, NULL) == 0 &&
		    trust_check(only, buf_str(&identity->certificate), identity->about.to_ms, &about, NULL) == 0)
			memcpy(fingerprint, root.fingerprint, sizeof(root.fingerprint));
		trust_roots_free(only);
	}
}

static void fill_token(struct agent_authority *authority, struct str name, struct trust_token *token)
{
	put_own_root(agent_mesh_identity(authority->mesh), token->root);
	memcpy(token->name, name.at, name.length);
	token->address = agent_mesh_config(authority->mesh)->advertise;
	trust_token_make(token);
}

static int make_token(void *context, struct str name, int64_t ttl_ms, struct api_token *out,
                      struct api_refusal *refusal, struct err *err)
{
	struct agent_authority *authority = context;
	int64_t now_ms = agent_now().wall_ms;
	struct trust_token token = {.ends_ms = now_ms + ttl_ms};
	int code = get_ready(authority, refusal, err);
	if (code == 0)
		code = check_token_request(authority, name, ttl_ms, refusal, err);
	if (code)
		return code;
	fill_token(authority, name, &token);
	code = agent_tokens_add(&authority->tokens, state_folder(authority), &token, now_ms, err);
	if (code == 0) {
		trust_token_write(&token, &out->text);
		out->ends_ms = token.ends_ms;
		log_event(agent_mesh_log(authority->mesh), LOG_INFO, "a join token was given out", LOG_STR("for", name));
	}
	OPENSSL_cleanse(&token, sizeof(token));
	if (code == ERR_LIMIT)
		return refuse(refusal, 429, "too-many-tokens", "Too many tokens are out");
	return code == 0 ? 0 : refuse(refusal, 500, "cannot-store", "The token cannot be kept");
}

static int refuse_token(enum agent_token_state state, const struct agent_token *token, struct str name,
                        struct api_refusal *refusal, struct err *err)
{
	static const char title[] = "The token is not good";
	switch (state) {
	case AGENT_TOKEN_USED:
		err_set(err, ERR_INVALID, "the token was used already, and serves once; `cheops site token` makes another");
		return refuse(refusal, 403, "token-used", title);
	case AGENT_TOKEN_EXPIRED:
		err_set(err, ERR_INVALID, "the token has expired; `cheops site token` makes another");
		return refuse(refusal, 403, "token-expired", title);
	case AGENT_TOKEN_FOR_ANOTHER:
		err_set(err, ERR_INVALID, "the token is for the site `%s`, not for `%.*s`", token->name, STR_FMT(name));
		return refuse(refusal, 403, "token-for-another", title);
	default:
		err_set(err, ERR_INVALID,
		        "this site did not give out that token, or it ended long ago; `cheops site token` makes another");
		return refuse(refusal, 403, "token-unknown", title);
	}
}

/* The token, if it is good for the name. */
static int find_token(struct agent_authority *authority, struct str text, struct str name, struct agent_token **found,
                      struct api_refusal *refusal, struct err *err)
{
	struct trust_token token;
	if (trust_token_read(text, &token, err) != 0)
		return refuse(refusal, 403, "token-unknown", "The token is not good");
	enum agent_token_state state = agent_tokens_find(&authority->tokens, &token, name, agent_now().wall_ms, found);
	OPENSSL_cleanse(&token, sizeof(token));
	if (state != AGENT_TOKEN_GOOD)
		return refuse_token(state, *found, name, refusal, err);
	return name_is_taken(authority, name) ? refuse_taken(name, refusal, err) : 0;
}

/* ---- Signing ----------------------------------------------------------------------------------------------------- */

int agent_authority_sign(struct agent_mesh *mesh, struct str request_der, struct buf *certificate_der, struct err *err)
{
	struct agent_identity *identity = agent_mesh_identity(mesh);
	return trust_request_sign(request_der, identity->root_key, buf_str(&identity->root), agent_now().wall_ms,
	                          identity->lifetime_ms, certificate_der, err);
}

static void put_record(struct buf *out, struct str bytes)
{
	buf_put(out, out->length ? STR(",\"") : STR("\""));
	base64_encode(out, BASE64_STANDARD, bytes);
	buf_put_char(out, '"');
}

/* What the new site starts with: some of the others, and all that the authority has said. */
static void put_records(struct agent_authority *authority, struct buf *out)
{
	struct site *site = agent_mesh_site(authority->mesh);
	struct site_record record;
	struct site_member member;
	for (uint32_t i = 0, put = 0; i < site_count(site) && put < RECORDS_TO_JOINER; i++) {
		site_member(site, i, &member);
		if (i > 0 && member.state != SITE_ALIVE)
			continue;
		put_record(out, member.card.bytes);
		put++;
	}
	for (unsigned kind = SITE_REMOVAL; kind <= SITE_ROOT; kind++)
		for (uint32_t n = 0; site_record_at(site, (uint8_t)kind, n, &record); n++)
			put_record(out, record.bytes);
}

/* The token first: whoever has none does not get us to check signatures. It is struck off once all else is fine. */
static int admit(struct agent_authority *authority, struct str token_text, struct str name, struct str request_der,
                 site_id *id, struct api_refusal *refusal, struct err *err)
{
	char asked[LIMIT_AGENT_NAME_BYTES + 1];
	struct agent_token *token;
	int code = find_token(authority, token_text, name, &token, refusal, err);
	if (code)
		return code;
	if (trust_request_read(request_der, asked, id, err) != 0)
		return refuse(refusal, 422, "bad-request", "The request cannot be followed");
	if (!str_equal(str_of(asked), name)) {
		err_set(err, ERR_INVALID, "the certificate request is for `%s`, not for `%.*s`", asked, STR_FMT(name));
		return refuse(refusal, 422, "bad-request", "The request cannot be followed");
	}
	if (authority->issued.count >= LIMIT_SITES) {
		err_set(err, ERR_LIMIT, "certificates were signed for %d sites, which is the limit of a mesh", LIMIT_SITES);
		return refuse(refusal, 409, "mesh-full", "There are too many sites");
	}
	if (agent_tokens_strike(&authority->tokens, state_folder(authority), token, err) == 0)
		return 0;
	return refuse(refusal, 500, "cannot-store", "The token cannot be struck off");
}

static int join(void *context, struct str token, struct str name, struct str request_der, struct api_joined *joined,
                struct api_refusal *refusal, struct err *err)
{
	struct agent_authority *authority = context;
	const struct log *log = agent_mesh_log(authority->mesh);
	site_id id;
	int code = get_ready(authority, refusal, err);
	if (code)
		return code;
	code = admit(authority, token, name, request_der, &id, refusal, err);
	if (code) {
		log_event(log, LOG_WARN, "a site was refused that wanted to join", LOG_STR("site", name),
		          LOG_STR("why", str_of(refusal->type)));
		return code;
	}
	code = agent_issued_add(&authority->issued, state_folder(authority), id, name, err);
	if (code == 0)
		code = agent_authority_sign(authority->mesh, request_der, &joined->certificate, err);
	if (code)
		return refuse(refusal, 500, "cannot-sign", "The certificate cannot be signed");
	agent_roots_write(agent_mesh_identity(authority->mesh), &joined->roots);
	put_records(authority, &joined->records);
	joined->sites = site_count(agent_mesh_site(authority->mesh)) + 1;
	log_event(log, LOG_INFO, "a certificate was signed for a new site", LOG_STR("site", name));
	return 0;
}

/* For a site that proved its key in the handshake: the new certificate has the same key and the same name. */
static int renew(void *context, site_id from, struct str request_der, struct api_joined *joined,
                 struct api_refusal *refusal, struct err *err)
{
	struct agent_authority *authority = context;
	char asked[LIMIT_AGENT_NAME_BYTES + 1];
	struct site_member member;
	site_id id;
	int code = check_here(authority, refusal, err);
	if (code)
		return code;
	struct site *site = agent_mesh_site(authority->mesh);
	uint32_t number = site_find(site, from);
	if (trust_request_read(request_der, asked, &id, err) != 0)
		return refuse(refusal, 422, "bad-request", "The request cannot be followed");
	if (number != SCOPE_NO_INDEX)
		site_member(site, number, &member);
	if (id != from || site_is_removed(site, from) || number == SCOPE_NO_INDEX ||
	    !str_equal(member.name, str_of(asked))) {
		err_set(err, ERR_INVALID, "a site may renew its own certificate only, for the key and name that it has");
		return refuse(refusal, 403, "not-yours", "The certificate is not yours to renew");
	}
	code = agent_authority_sign(authority->mesh, request_der, &joined->certificate, err);
	if (code)
		return refuse(refusal, 500, "cannot-sign", "The certificate cannot be signed");
	agent_roots_write(agent_mesh_identity(authority->mesh), &joined->roots);
	joined->sites = site_count(site);
	return 0;
}

/* ---- Removing ---------------------------------------------------------------------------------------------------- */

/* The key behind a name: in the table, or signed for and never heard of. */
static site_id find_id(struct agent_authority *authority, struct str name)
{
	struct site *site = agent_mesh_site(authority->mesh);
	uint32_t number = site_find_name(site, name);
	if (number != SCOPE_NO_INDEX) {
		struct site_member member;
		site_member(site, number, &member);
		return member.id;
	}
	const struct agent_issued *issued = &authority->issued;
	for (uint32_t i = issued->count; i > 0; i--)
		if (str_equal(str_of(issued->at[i - 1].name), name))
			return issued->at[i - 1].id;
	return 0;
}

/* A damaged file is no reason to let a site in that is to be kept out. */
static void forget_issued(struct agent_authority *authority, site_id id)
{
	struct err err = {0};
	if (authority->issued.loaded && agent_issued_forget(&authority->issued, state_folder(authority), id, &err) != 0)
		tell_damage(authority, &err);
}

static int remove_site(void *context, struct str name, enum site_removal_kind kind, struct api_refusal *refusal,
                       struct err *err)
{
	struct agent_authority *authority = context;
	int code = check_here(authority, refusal, err);
	if (code)
		return code;
	struct agent_identity *identity = agent_mesh_identity(authority->mesh);
	struct err damage = {0};
	if (agent_issued_load(&authority->issued, state_folder(authority), &damage) != 0)
		tell_damage(authority, &damage);
	site_id id = find_id(authority, name);
	if (id == trust_key_id(identity->key)) {
		err_set(err, ERR_CONFLICT, "`%.*s` is this site, which has the authority's key; stop its agent instead",
		        STR_FMT(name));
		return refuse(refusal, 409, "own-site", "A site cannot remove itself");
	}
	if (id == 0) {
		err_set(err, ERR_NOT_FOUND, "no site `%.*s` is known; `cheops sites` lists those that are", STR_FMT(name));
		return refuse(refusal, 404, "unknown-site", "No such site");
	}
	struct buf body = {0};
	struct site_removal removal = {
		.kind = kind, .name = name, .signer = trust_key_id(identity->root_key), .wall_ms = agent_now().wall_ms};
	site_removal_encode(&body, &removal);
	code = agent_mesh_announce(authority->mesh, SITE_REMOVAL, id, buf_str(&body), err);
	buf_free(&body);
	if (code)
		return refuse(refusal, 500, "cannot-announce", "The removal cannot be announced");
	if (kind == SITE_FORGET)
		forget_issued(authority, id);
	return 0;
}

/* ---- Roots ------------------------------------------------------------------------------------------------------- */

static int announce_root(struct agent_authority *authority, struct str der, bool trusted, struct err *err)
{
	struct trust_certificate about;
	struct buf body = {0};
	struct site_root root = {
		.trusted = trusted, .certificate = der, .signer = trust_key_id(agent_mesh_identity(authority->mesh)->root_key)};
	int code = trust_certificate_read(der, &about, err);
	if (code)
		return code;
	site_root_encode(&body, &root);
	code = agent_mesh_announce(authority->mesh, SITE_ROOT, about.id, buf_str(&body), err);
	buf_free(&body);
	return code;
}

static int store_root(struct agent_authority *authority, const struct trust_key *key, struct str der, struct err *err)
{
	struct buf pem = {0}, key_pem = {0};
	trust_pem_write(&pem, der);
	trust_key_write(key, &key_pem);
	int code = agent_file_write(state_folder(authority), "root.key", buf_str(&key_pem), true, err);
	if (code == 0)
		code = agent_file_write(state_folder(authority), "root.crt", buf_str(&pem), false, err);
	explicit_bzero(key_pem.at, key_pem.length);
	buf_free(&key_pem);
	buf_free(&pem);
	return code;
}

/* What the old root signed has to outlive it. */
static void sign_removals_again(struct agent_authority *authority)
{
	struct site *site = agent_mesh_site(authority->mesh);
	struct site_record record;
	struct err err = {0};
	for (uint32_t n = 0; site_record_at(site, SITE_REMOVAL, n, &record); n++) {
		struct site_removal removal;
		struct buf body = {0};
		if (site_removal_parse(record.body, &removal, NULL) != 0)
			continue;
		removal.signer = trust_key_id(agent_mesh_identity(authority->mesh)->root_key);
		site_removal_encode(&body, &removal);
		if (agent_mesh_announce(authority->mesh, SITE_REMOVAL, record.subject, buf_str(&body), &err) != 0)
			log_event(agent_mesh_log(authority->mesh), LOG_ERROR, "a removal cannot be signed anew",
			          LOG_STR("error", str_of(err.text)));
		buf_free(&body);
	}
}

/* A new root, which the one before vouches for. From now on it signs; both are trusted until the old one is retired. Every
 * site renews as soon as it has heard of it (renew.c). */
static int rotate(void *context, struct api_refusal *refusal, struct err *err)
{
	struct agent_authority *authority = context;
	struct trust_key *key = NULL;
	struct buf der = {0};
	int code = check_here(authority, refusal, err);
	if (code)
		return code;
	struct agent_identity *identity = agent_mesh_identity(authority->mesh);
	if (trust_roots_count(identity->roots) > 1) {
		err_set(err, ERR_CONFLICT, "one root is replacing another already; finish that with `cheops site root retire`");
		return refuse(refusal, 409, "rotation-under-way", "A rotation is under way");
	}
	code = agent_root_make(agent_mesh_config(authority->mesh)->site, agent_now().wall_ms, &key, &der, err);
	if (code == 0)
		code = announce_root(authority, buf_str(&der), true, err);
	if (code == 0)
		code = store_root(authority, key, buf_str(&der), err);
	if (code) {
		trust_key_free(key);
		buf_free(&der);
		return refuse(refusal, 500, "cannot-rotate", "The new root cannot be made");
	}
	trust_key_free(identity->root_key);
	buf_free(&identity->root);
	identity->root_key = key;
	identity->root = der;
	sign_removals_again(authority);
	log_event(agent_mesh_log(authority->mesh), LOG_INFO,
	          "a new root signs; the old one is trusted until it is retired");
	return 0;
}

/* The sites whose certificate is not from the root that signs now. */
static void list_late(struct agent_authority *authority, struct buf *names)
{
	struct site *site = agent_mesh_site(authority->mesh);
	struct trust_roots *only = trust_roots_new();
	struct arena arena;
	arena_init(&arena, 0);
	CHECK(trust_roots_add(only, buf_str(&agent_mesh_identity(authority->mesh)->root), NULL) == 0);
	for (uint32_t i = 0; i < site_count(site); i++) {
		struct site_member member;
		struct site_card card;
		struct trust_certificate about;
		site_member(site, i, &member);
		if (member.state != SITE_REVOKED && site_card_parse(&arena, member.card.body, &card, NULL) == 0 &&
		    trust_check(only, card.certificate, agent_now().wall_ms, &about, NULL) != 0)
			buf_printf(names, "%s%.*s", names->length ? ", " : "", STR_FMT(card.name));
	}
	arena_free(&arena);
	trust_roots_free(only);
}

static int retire(void *context, bool force, struct api_refusal *refusal, struct err *err)
{
	struct agent_authority *authority = context;
	struct buf late = {0};
	int code = check_here(authority, refusal, err);
	if (code)
		return code;
	struct agent_identity *identity = agent_mesh_identity(authority->mesh);
	site_id signs = trust_key_id(identity->root_key);
	if (trust_roots_count(identity->roots) < 2) {
		err_set(err, ERR_CONFLICT, "there is one root only; `cheops site root rotate` makes another first");
		return refuse(refusal, 409, "no-rotation", "No rotation is under way");
	}
	list_late(authority, &late);
	if (late.length > 0 && !force) {
		struct str shown = utf8_truncate(buf_str(&late), LATE_SHOWN_BYTES);
		err_set(err, ERR_CONFLICT,
		        "these sites still have a certificate of the old root, and would be shut out: %.*s%s; wait until they "
		        "have renewed, or use --force if they are gone",
		        STR_FMT(shown), shown.length < late.length ? "…" : "");
		buf_free(&late);
		return refuse(refusal, 409, "not-renewed", "Some sites have not renewed yet");
	}
	buf_free(&late);
	for (uint32_t i = trust_roots_count(identity->roots); code == 0 && i > 0; i--) {
		struct trust_certificate about;
		struct buf der = {0};
		buf_put(&der, trust_roots_at(identity->roots, i - 1));
		if (trust_certificate_read(buf_str(&der), &about, NULL) == 0 && about.id != signs)
			code = announce_root(authority, buf_str(&der), false, err);
		buf_free(&der);
	}
	return code ? refuse(refusal, 500, "cannot-announce", "The root cannot be retired") : 0;
}

/* ---- Life -------------------------------------------------------------------------------------------------------- */

const struct api_mesh_functions agent_authority_functions = {
	.token = make_token, .join = join, .renew = renew, .remove = remove_site, .rotate = rotate, .retire = retire};

struct agent_authority *agent_authority_new(struct agent_mesh *mesh)
{
	struct agent_authority *authority = calloc(1, sizeof(*authority));
	CHECK(authority);
	authority->mesh = mesh;
	return authority;
}

void agent_authority_free(struct agent_authority *authority)
{
	if (!authority)
		return;
	agent_tokens_free(&authority->tokens);
	agent_issued_free(&authority->issued);
	free(authority);
}
