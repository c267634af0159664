/*
 * Secrets: a name, and `data`, a text that servers read each time they start. They are kept beside the images, since it is
 * what a server fetches from elsewhere; but an image is needed only while a server is made, a secret for as long as it lives
 * (boot.c). Who lists them is not shown what they say.
 */
#include "secret.h"

#include <string.h>

#include "fields.h"
#include "identity.h"
#include "limits.h"
#include "login.h"
#include "memory.h"
#include "record.h"

static bool accepts(struct store *store, const json_t *record, struct reply *refusal)
{
	(void)store;
	return field_text(record, "name", LIMIT_NAME_BYTES, refusal) != NULL &&
	       field_text(record, "data", LIMIT_SECRET_BYTES, refusal) != NULL;
}

static const char *const own_members[] = {"id", "created", LOGIN_OWNER, NULL};

static const struct record_kind kind = {
	.thing = "secret", .collection = "secrets", .own_members = own_members, .accepts = accepts};

struct reply secret_list(struct request *request)
{
	json_t *secrets = record_select(secrets_of(request), request);
	size_t i;
	json_t *secret;
	json_array_foreach(secrets, i, secret)
	{
		json_object_del(secret, "data");
	}
	return reply_json(200, json_pack("{s:o}", kind.collection, secrets));
}

struct reply secret_create(struct request *request)
{
	char id[UUID_BYTES];
	char created[TIMESTAMP_BYTES];
	uuid_make(id);
	timestamp_make(created);
	return record_create(&kind, secrets_of(request), request,
	                     need(json_pack("{s:s, s:n, s:s}", "id", id, "name", "created", created)));
}

struct reply secret_get(struct request *request)
{
	return record_get(&kind, secrets_of(request), request);
}

struct reply secret_put(struct request *request)
{
	return record_change(&kind, secrets_of(request), request, record_replace);
}

struct reply secret_patch(struct request *request)
{
	return record_change(&kind, secrets_of(request), request, merge_patch);
}

struct reply secret_delete(struct request *request)
{
	return record_delete(&kind, secrets_of(request), request);
}
