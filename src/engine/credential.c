/* Credentials: on whose authority an operation runs (DESIGN 7).
 *
 * At the site where it was asked, at first, with what its user showed. What travels with the operation, and is used wherever and
 * whenever else it runs, the description decides:
 *
 *     'F' and lines of headers    forward: what the user showed; beside it, in a header of its own, the credential of the agent that
 *                                 runs it, where the description says so (`accompany`) and it has one
 *     'I' and the user's name     impersonate: this agent's own credential, and the headers that say on whose behalf
 *     'A'                         agent: this agent's own credential
 *     'S'                         the state of a member, or a copy for a new one, which is no request of a user: this agent's
 *                                 own credential where it has one, else none
 *
 * It lies in sealed rows (rows.c) and goes to members only, by TLS. Nothing of it is logged, shown or told.
 */
#include "engine/engine_int.h"

#include "base/base64.h"

#include <jansson.h>

static bool is_credential(void *context, struct str name)
{
	return context && glue_is_credential(context, name);
}

void engine_credentials_put(const struct glue_service *service, struct str fields, struct buf *out)
{
	engine_fields_put(out, fields, is_credential, (void *)service);
}

/* ---- Who is it? ---------------------------------------------------------------------------------------------------- */

/* A claim of a JWT (RFC 7519). Whether the token is good is the service's to say: it has answered the first request. */
static bool put_claim(struct str token, struct str claim, struct buf *out)
{
	const char *dot = memchr(token.at, '.', token.length);
	size_t left = dot ? token.length - (size_t)(dot + 1 - token.at) : 0;
	const char *end = dot ? memchr(dot + 1, '.', left) : NULL;
	struct buf text = {0}, name = {0};
	json_t *claims = NULL;
	if (end && base64_decode_to(&text, BASE64_URL, str_make(dot + 1, (size_t)(end - dot - 1))))
		claims = json_loadb(buf_c(&text), text.length, 0, NULL);
	buf_put(&name, claim);
	const char *value = json_string_value(json_object_get(claims, buf_c(&name)));
	if (value)
		buf_put(out, str_of(value));
	json_decref(claims);
	if (text.at)
		explicit_bzero(text.at, text.length);
	buf_free(&text);
	buf_free(&name);
	return out->length > 0;
}

static bool put_user(const struct glue_service_about *about, struct str fields, struct buf *out)
{
	static const struct str bearer = STR_INIT("bearer ");
	if (about->user_header.length > 0)
		buf_put(out, engine_field(fields, about->user_header));
	struct str header = engine_field(fields, STR("authorization"));
	bool shown = header.length > bearer.length && str_equal_nocase(str_make(header.at, bearer.length), bearer);
	if (out->length == 0 && about->user_claim.length > 0 && shown)
		put_claim(str_make(header.at + bearer.length, header.length - bearer.length), about->user_claim, out);
	return out->length > 0;
}

/* ---- What travels -------------------------------------------------------------------------------------------------- */

int engine_secret_make(const struct glue_service *service, struct str fields, struct buf *secret, struct err *err)
{
	if (!service)
		return 0;
	switch (glue_credential_use(service)) {
	case GLUE_FORWARD: {
		buf_put_char(secret, 'F');
		engine_credentials_put(service, fields, secret);
		if (secret->length == 1)
			buf_clear(secret); /* nobody asks who it is */
		return 0;
	}
	case GLUE_IMPERSONATE: {
		struct buf user = {0};
		bool known = put_user(glue_service_about(service), fields, &user);
		buf_put_char(secret, 'I');
		buf_put(secret, buf_str(&user));
		buf_free(&user);
		return known ? 0
		             : err_set(err, ERR_INVALID,
		                       "the request does not say who asks, and operations run at other sites on behalf of "
		                       "their users");
	}
	case GLUE_AGENT: buf_put_char(secret, 'A'); return 0;
	}
	return 0;
}

/* ---- What is shown ------------------------------------------------------------------------------------------------- */

/* "X-On-Behalf-Of: {user}". A name with what could end the line is not put. */
static bool put_impersonation(const struct glue_service_about *about, struct str user, struct buf *out)
{
	static const struct str mark = STR_INIT("{user}");
	for (size_t i = 0; i < user.length; i++)
		if ((unsigned char)user.at[i] < ' ' || user.at[i] == 0x7f)
			return false;
	for (uint32_t i = 0; i < about->impersonate_count; i++) {
		const struct glue_header *header = &about->impersonate[i];
		const char *at = memmem(header->value.at, header->value.length, mark.at, mark.length);
		size_t before = at ? (size_t)(at - header->value.at) : header->value.length;
		buf_put(out, header->name);
		buf_put(out, STR(": "));
		buf_put(out, str_make(header->value.at, before));
		if (at) {
			buf_put(out, user);
			buf_put(out, str_make(at + mark.length, header->value.length - before - mark.length));
		}
		buf_put(out, STR("\r\n"));
	}
	return true;
}

static bool is_credential_of_user(void *context, struct str name)
{
	const struct glue_service *service = context;
	return glue_is_credential(service, name) && !str_equal_nocase(name, glue_service_about(service)->accompany);
}

/* The agent's credential in another header: "X-Auth-Token: secret" as "X-Service-Token: secret". In its place the user's request may
 * have had one of somebody who asked on his behalf, of another site and as old as the user's. */
static void put_accompanied(const struct glue_service *service, struct str users, struct str own, struct buf *out)
{
	const char *colon = memchr(own.at, ':', own.length);
	engine_fields_put(out, users, is_credential_of_user, (void *)service);
	buf_put(out, glue_service_about(service)->accompany);
	buf_put(out, str_make(colon, own.length - (size_t)(colon - own.at)));
}

int engine_secret_show(const struct run *run, struct buf *fields, struct err *err)
{
	struct str secret = run->request.secret;
	const struct ticket *ticket = run->task.first ? engine_ticket(run->engine, run->task.ticket) : NULL;
	const struct glue_service *service = run->match.service;
	if (ticket) {
		engine_credentials_put(service, ticket->request.fields, fields);
		return 0;
	}
	bool asked_by_nobody =
		run->task.kind == REPLICA_READ_STATE || run->task.kind == REPLICA_READ_COPY || run->task.kind == REPLICA_LEAVE;
	if (asked_by_nobody || (secret.length > 0 && secret.at[0] == 'S')) {
		buf_put(fields, run->service->credential);
		return 0;
	}
	if (secret.length == 0)
		return 0;
	struct str rest = str_make(secret.at + 1, secret.length - 1);
	if (secret.at[0] == 'F') {
		bool along = service && glue_service_about(service)->accompany.length > 0;
		if (along && memchr(run->service->credential.at, ':', run->service->credential.length))
			put_accompanied(service, rest, run->service->credential, fields);
		else
			engine_credentials_put(service, rest, fields);
		return 0;
	}
	if (run->service->credential.length == 0)
		return err_set(err, ERR_NOT_FOUND,
		               "this agent has no credential of its own for %.*s: see `credential` of the service in its "
		               "configuration",
		               STR_FMT(run->task.service));
	buf_put(fields, run->service->credential);
	if (secret.at[0] == 'I' && (!service || !put_impersonation(glue_service_about(service), rest, fields)))
		return err_set(err, ERR_INVALID, "the description does not say how to ask on behalf of a user");
	return 0;
}
