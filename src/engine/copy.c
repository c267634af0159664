/* The copy of this site, as its service has it now: read to be compared (verify.h).
 *
 * What it had seen is noted before and after. Where that is not the same, or something runs in between, what came may be neither
 * the one state nor the other.
 */
#include "engine/engine_int.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <stdlib.h>

enum { READ_MS = 8000 };

/* ---- What it says -------------------------------------------------------------------------------------------------- */

static void end(struct copying *copying)
{
	struct engine_reading *reading = &copying->reading;
	reading->session = buf_str(&copying->session);
	reading->text = buf_str(&copying->text);
	reading->parts = reading->kind == ENGINE_READ_HERE ? buf_str(&copying->parts) : STR("");
	reading->reason = str_of(copying->err.text);
	if (reading->kind == ENGINE_READ_HERE && !copying->wants_facets)
		reading->digest = str_make(copying->digest, sizeof(copying->digest));
	copying->done(copying);
}

__attribute__((format(printf, 3, 4))) static void end_as(struct copying *copying, enum engine_read kind,
                                                         const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	err_set(&copying->err, ERR_INVALID, "%s", buf_c(&text));
	buf_free(&text);
	buf_clear(&copying->text);
	copying->reading.kind = kind;
	if (kind != ENGINE_READ_MISSING)
		buf_clear(&copying->session);
	end(copying);
}

void engine_copy_digest(struct str text, char digest[2 * ENGINE_BLOB_BYTES])
{
	uint8_t hash[ENGINE_BLOB_BYTES];
	char name[ENGINE_BLOB_NAME_BYTES];
	CHECK(EVP_Digest(text.at, text.length, hash, NULL, EVP_sha256(), NULL) == 1);
	engine_blob_name(str_make((const char *)hash, sizeof(hash)), name);
	memcpy(digest, name, sizeof(name) - 1);
}

/* ---- Is it settled? ------------------------------------------------------------------------------------------------ */

static const struct replica_member_view *find_own(const struct engine *engine, const struct replica_view *view)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == engine->options.self)
			return &view->members[i];
	return NULL;
}

/* Looks it up. True: it is settled, and `view` and `session` say what it is. Otherwise it has ended. */
static bool look(struct copying *copying, struct replica_view *view, struct buf *session)
{
	struct engine *engine = copying->engine;
	bool known = engine->replica && replica_look(engine->replica, &copying->arena, copying->replicant, view) == 0;
	const struct replica_member_view *own = known ? find_own(engine, view) : NULL;
	if (!own) {
		end_as(copying, ENGINE_READ_FAILED, "this site knows no such replicated resource any more");
		return false;
	}
	engine_changed(engine); /* looking has begun a session of the store */
	if (view->deleted) {
		end_as(copying, ENGINE_READ_UNSETTLED, "it was deleted");
		return false;
	}
	if (own->pending > 0 || view->busy) {
		end_as(copying, ENGINE_READ_UNSETTLED, "operations on it are being carried out");
		return false;
	}
	replica_session_put(engine->replica, view->id, session);
	return true;
}

/* ---- Reading -------------------------------------------------------------------------------------------------------- */

static bool note_part(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct copying *copying = context;
	(void)value;
	(void)quoted;
	if (place->relation != GLUE_COMPOSITION || !place->type || place->value.length == 0 ||
	    copying->parts_count == LIMIT_ENGINE_PARTS)
		return false;
	buf_put(&copying->parts, copying->parts_count++ > 0 ? STR(",{\"service\":") : STR("{\"service\":"));
	buf_put_json(&copying->parts, glue_type_service(place->type));
	buf_put(&copying->parts, STR(",\"type\":"));
	buf_put_json(&copying->parts, glue_type_name(place->type));
	buf_put(&copying->parts, STR(",\"id\":"));
	buf_put_json(&copying->parts, place->value);
	buf_put_char(&copying->parts, '}');
	return false;
}

/* What the application has made for it, by the ids that these have here. */
static void find_parts(struct copying *copying, const struct glue_operation *read, struct str body)
{
	struct buf unused = {0};
	if (!read || !glue_type_has_parts(copying->match.type))
		return;
	buf_put_char(&copying->parts, '[');
	engine_splice(glue_answer_places(read), &(struct glue_replacer){copying, note_part}, body, &unused);
	buf_put_char(&copying->parts, ']');
	buf_free(&unused);
}

/* Ids as users see them, without what may differ. What is no JSON is compared byte by byte. */
static int make_comparable(struct copying *copying, struct str body, struct err *err)
{
	const struct glue_operation *read = engine_operation_of(copying->match.type, GLUE_READ);
	struct engine_to_meta to = {copying->engine, copying->own, copying->setup->about.glue};
	struct glue_replacer meta = engine_to_meta(&to);
	struct buf seen = {0};
	find_parts(copying, read, body);
	engine_splice(read ? glue_answer_places(read) : NULL, &meta, body, &seen);
	int code = glue_comparable(copying->match.type, buf_str(&seen), &copying->text, err);
	if (code == 0)
		engine_copy_digest(buf_str(&copying->text), copying->digest);
	else if (code == ERR_INVALID)
		engine_copy_digest(buf_str(&seen), copying->digest);
	if (copying->text.length > LIMIT_ENGINE_COMPARED_BYTES)
		buf_clear(&copying->text);
	buf_free(&seen);
	return code == ERR_INVALID ? 0 : code;
}

/* NULL: its facets were read. */
static void take_body(struct copying *copying, const struct str *body)
{
	struct buf session = {0};
	struct replica_view view;
	struct err err = {0};
	if (!look(copying, &view, &session)) {
		buf_free(&session);
		return;
	}
	bool same = str_equal(buf_str(&session), buf_str(&copying->session));
	buf_free(&session);
	if (!same) {
		end_as(copying, ENGINE_READ_UNSETTLED, "it changed while it was read");
	} else if (body && make_comparable(copying, *body, &err) != 0) {
		end_as(copying, ENGINE_READ_FAILED, "it cannot be compared: %s", err.text);
	} else {
		copying->reading.kind = ENGINE_READ_HERE;
		end(copying);
	}
}

void engine_copy_take_facets(struct copying *copying)
{
	take_body(copying, NULL);
}

static void came(void *context, const struct http_call_answer *answer)
{
	struct copying *copying = context;
	const struct glue_service *service = copying->match.service;
	copying->call = NULL;
	if (answer->code)
		end_as(copying, ENGINE_READ_FAILED, "the service there does not answer: %s", answer->err.text);
	else if (answer->status == 200)
		take_body(copying, &answer->body);
	else if (answer->status == 404 || answer->status == 410)
		end_as(copying, ENGINE_READ_MISSING, "the service there has nothing of its id (%u)", answer->status);
	else if (service && glue_is_credential_fault(service, (int)answer->status))
		end_as(copying, ENGINE_READ_FAILED,
		       "the service there answers with %u: see `credential` of the service in the configuration of the agent "
		       "there",
		       answer->status);
	else
		end_as(copying, ENGINE_READ_FAILED, "the service there answers with %u", answer->status);
}

int engine_service_read(struct engine *engine, const struct engine_service_reading *reading, struct http_call **call,
                        struct err *err)
{
	const struct engine_service *service = reading->service;
	uint64_t answer_ms = reading->setup->about.answer_ms;
	uint32_t instance = engine->turn++ % service->instances_count;
	struct buf fields = {0};
	buf_put(&fields, reading->credentials);
	buf_put(&fields, STR("Accept: application/json, */*;q=0.1\r\n"));
	struct http_call_options options = {.address = service->instances[instance],
	                                    .tls = service->tls,
	                                    .tls_name = service->tls ? service->names[instance] : NULL,
	                                    .method = "GET",
	                                    .target = reading->target,
	                                    .fields = buf_str(&fields),
	                                    .body_fd = -1,
	                                    .pool = engine->pool,
	                                    .repeatable = true,
	                                    .timeout_ms = answer_ms && answer_ms < READ_MS ? answer_ms : READ_MS,
	                                    .answer_bytes = ENGINE_ANSWER_BYTES,
	                                    .done = reading->done,
	                                    .context = reading->context};
	int code = http_call_start(call, engine->loop, &options, err);
	if (fields.at)
		explicit_bzero(fields.at, fields.length);
	buf_free(&fields);
	return code;
}

static void ask(struct copying *copying, const struct engine_service *service)
{
	struct err err = {0};
	int code = engine_service_read(copying->engine,
	                               &(struct engine_service_reading){.setup = copying->setup,
	                                                                .service = service,
	                                                                .target = buf_str(&copying->target),
	                                                                .credentials = service->credential,
	                                                                .done = came,
	                                                                .context = copying},
	                               &copying->call, &err);
	if (code) {
		copying->call = NULL;
		end_as(copying, ENGINE_READ_FAILED, "the service there cannot be asked: %s", err.text);
	}
}

void engine_copy_start(struct copying *copying)
{
	struct engine *engine = copying->engine;
	struct replica_view view;
	arena_init(&copying->arena, 0);
	if (!look(copying, &view, &copying->session))
		return;
	const struct replica_member_view *own = find_own(engine, &view);
	CHECK(own); /* look() has found it */
	copying->own = (struct engine_name){.service = view.service, .type = view.type};
	if (own->witness) {
		end_as(copying, ENGINE_READ_UNSETTLED, "it lies at other sites: there is nothing to compare here");
		return;
	}
	if (own->local_id.length == 0) {
		end_as(copying, ENGINE_READ_MISSING, "it was not made there");
		return;
	}
	if (!engine->setup || !engine->setup->about.glue) {
		end_as(copying, ENGINE_READ_FAILED, "the agent there is not configured yet");
		return;
	}
	copying->setup = engine_setup_keep(engine->setup);
	const struct engine_service *service = engine_service_find(copying->setup, view.service);
	struct engine_item item = {
		.service = view.service, .collection = view.collection, .local_id = own->local_id, .target = &copying->target};
	bool known = engine_item_find(engine, copying->setup, &item);
	copying->match = item.match;
	if (known && glue_type_ids_in_collection(copying->match.type))
		copying->own.collection = view.collection;
	if (!service)
		end_as(copying, ENGINE_READ_FAILED, "that site has no service %.*s", STR_FMT(view.service));
	else if (!known)
		end_as(copying, ENGINE_READ_FAILED, "the description of the application there has no such path");
	else if (copying->wants_facets)
		engine_copy_facets_start(copying, service);
	else
		ask(copying, service);
}

void engine_copy_end(struct copying *copying)
{
	if (copying->call)
		http_call_cancel(copying->call);
	copying->call = NULL;
	engine_copy_facets_end(copying);
	engine_setup_drop(copying->setup);
	copying->setup = NULL;
	arena_free(&copying->arena);
	buf_free(&copying->target);
	buf_free(&copying->session);
	buf_free(&copying->text);
	buf_free(&copying->parts);
}
