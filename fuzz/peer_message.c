/* What other agents and new sites send on the port for peers, as any bytes: the hop header, and the bodies of requests to
 * join and to renew; and, on the local API, of those to the authority. The first byte says which. Each is taken apart or
 * refused with a problem document that is valid JSON; nothing else happens. */
#include "api/api_int.h"
#include "base/check.h"
#include "base/text.h"
#include "proxy/proxy_int.h"

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int token(void *context, struct str name, int64_t ttl_ms, struct api_token *made, struct api_refusal *refusal,
                 struct err *err)
{
	(void)context;
	CHECK(name.at != NULL);
	if (ttl_ms < 1000) {
		*refusal = (struct api_refusal){422, "bad-request", "no"};
		return err_set(err, ERR_INVALID, "a token for %lld ms", (long long)ttl_ms);
	}
	buf_put(&made->text, STR("cheops1_x"));
	made->ends_ms = 1;
	return 0;
}

/* Takes what is there apart as the authority does, and refuses it. */
static int join(void *context, struct str text, struct str name, struct str request_der, struct api_joined *joined,
                struct api_refusal *refusal, struct err *err)
{
	(void)context;
	(void)joined;
	struct trust_token read;
	char asked[LIMIT_AGENT_NAME_BYTES + 1];
	site_id id;
	CHECK(name.at != NULL && request_der.length > 0);
	*refusal = (struct api_refusal){403, "token-unknown", "no"};
	trust_token_read(text, &read, NULL);
	trust_request_read(request_der, asked, &id, NULL);
	return err_set(err, ERR_INVALID, "`%.*s` is refused", STR_FMT(name));
}

static int renew(void *context, site_id from, struct str request_der, struct api_joined *joined,
                 struct api_refusal *refusal, struct err *err)
{
	CHECK(from == 7);
	return join(context, STR(""), STR(""), request_der, joined, refusal, err);
}

static int removed(void *context, struct str name, enum site_removal_kind kind, struct api_refusal *refusal,
                   struct err *err)
{
	(void)context;
	(void)refusal;
	(void)err;
	CHECK(name.at != NULL && (kind == SITE_REVOKE || kind == SITE_FORGET));
	return 0;
}

static int retire(void *context, bool force, struct api_refusal *refusal, struct err *err)
{
	(void)context;
	*refusal = (struct api_refusal){409, "no-rotation", "no"};
	return force ? 0 : err_set(err, ERR_CONFLICT, "no rotation");
}

static void check_answer(const struct api_job *job)
{
	json_error_t error;
	CHECK(job->answer.status >= 200 && job->answer.status < 600 && job->answer.body.length > 0);
	json_t *json = json_loadb(job->answer.body.at, job->answer.body.length, 0, &error);
	CHECK(json_is_object(json));
	CHECK(job->answer.status < 400 || json_string_value(json_object_get(json, "type")) != NULL);
	json_decref(json);
}

static void run_job(void (*handle)(struct api_job *job, const struct api_mesh *mesh), struct str body)
{
	static const struct api_mesh_functions functions = {
		.token = token, .join = join, .renew = renew, .remove = removed, .retire = retire};
	const struct api_mesh mesh = {.functions = &functions};
	struct api_job job = {.peer = true, .from = 7};
	buf_put(&job.body, body);
	handle(&job, &mesh);
	check_answer(&job);
	buf_free(&job.body);
	buf_free(&job.answer.body);
}

static void read_hop(struct str value)
{
	struct arena arena;
	struct proxy_hop hop;
	arena_init(&arena, 0);
	if (proxy_hop_read(&arena, value, &hop))
		CHECK(hop.service.length > 0 && hop.service.length <= value.length && hop.hops <= 999);
	struct str query = api_query(&arena, value, "from");
	CHECK(query.length <= value.length);
	arena_free(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const handlers[])(struct api_job *, const struct api_mesh *) = {
		api_post_join, api_post_renew, api_post_token, api_post_remove, api_post_revoke, api_post_retire};
	enum { HANDLERS = sizeof(handlers) / sizeof(handlers[0]) };
	if (size == 0 || size > LIMIT_API_BODY_BYTES)
		return 0;
	struct str rest = str_make((const char *)data + 1, size - 1);
	unsigned which = data[0] % (HANDLERS + 1);
	if (which == HANDLERS)
		read_hop(rest);
	else
		run_job(handlers[which], rest);
	return 0;
}
