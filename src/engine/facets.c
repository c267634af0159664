#include "engine/facets.h"

#include "base/check.h"

#include <openssl/evp.h>

enum { IDLE_MS = 20000 };

static void next(struct facets *facets);

static struct facet_part *current(struct facets *facets)
{
	return &facets->parts[facets->at];
}

/* ---- The end of one, and of all ------------------------------------------------------------------------------------- */

static void finish(struct facets *facets)
{
	if (facets->timed)
		http_timer_clear(facets->engine->loop, &facets->timer);
	facets->timed = false;
	facets->done(facets);
}

/* Of what is kept, one that is missing spoils all. */
static void go_on(struct facets *facets)
{
	if (facets->keep && current(facets)->kind == ENGINE_FACET_FAILED) {
		finish(facets);
		return;
	}
	facets->at++;
	next(facets);
}

static void drop_spool(struct facet_part *part)
{
	engine_spool_drop(part->spool);
	part->spool = NULL;
}

__attribute__((format(printf, 4, 5))) static void mark_failed(struct facet_part *part, bool refused, int code,
                                                              const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	drop_spool(part);
	part->kind = ENGINE_FACET_FAILED;
	part->refused = refused;
	err_set(&part->err, code, "%s", buf_c(&text));
	buf_free(&text);
}

static void over(struct http_timer *timer)
{
	struct facets *facets = (struct facets *)((char *)timer - offsetof(struct facets, timer));
	if (facets->call)
		http_call_cancel(facets->call);
	facets->call = NULL;
	facets->timed = false;
	for (; facets->at < facets->parts_count; facets->at++)
		mark_failed(current(facets), false, ERR_TIMEOUT, "it was not read within %llu s",
		            (unsigned long long)facets->limit_ms / 1000);
	finish(facets);
}

/* ---- Bytes ------------------------------------------------------------------------------------------------------------ */

/* The disk's thread has done something. */
static void moved(void *context)
{
	struct facets *facets = context;
	struct facet_part *part = current(facets);
	struct err err = {0};
	enum engine_spool_state state = engine_spool_state(part->spool, &err);
	if (state == ENGINE_SPOOL_FAILED) {
		if (facets->call)
			http_call_cancel(facets->call);
		facets->call = NULL;
		mark_failed(part, false, err.code, "%s", err.text);
		go_on(facets);
	} else if (state == ENGINE_SPOOL_DONE) {
		memcpy(part->hash, engine_spool_hash(part->spool).at, sizeof(part->hash));
		part->bytes = engine_spool_bytes(part->spool);
		part->kind = ENGINE_FACET_HERE;
		if (!facets->keep)
			drop_spool(part);
		go_on(facets);
	} else if (facets->call && state == ENGINE_SPOOL_OPEN) {
		http_call_go_on(facets->call);
	}
}

static void open_spool(struct facets *facets, struct facet_part *part)
{
	struct engine_spool_options options = {facets->engine->loop, moved, facets};
	part->spool =
		facets->keep ? engine_spool_new(facets->engine, &options) : engine_spool_hash_only(facets->engine, &options);
}

static enum http_piece take_piece(void *context, const struct http_head *head, struct str bytes)
{
	struct facets *facets = context;
	struct facet_part *part = current(facets);
	bool first = engine_spool_bytes(part->spool) == 0;
	if (head->status != 200)
		return HTTP_PIECE_TAKEN; /* came() has a word on it */
	if (first && facets->keep && head->framing == HTTP_BODY_LENGTH && !engine_has_room(facets->engine, head->length)) {
		err_set(&part->err, ERR_LIMIT, "there is no room for its %llu bytes on the disk of the agent there",
		        (unsigned long long)head->length);
		return HTTP_PIECE_REFUSED;
	}
	return engine_spool_put(part->spool, bytes) ? HTTP_PIECE_TAKEN : HTTP_PIECE_FULL;
}

/* ---- JSON ------------------------------------------------------------------------------------------------------------- */

static void hash(struct str text, struct facet_part *part)
{
	int fine = EVP_Digest(text.at, text.length, part->hash, NULL, EVP_sha256(), NULL);
	CHECK(fine == 1);
	part->bytes = text.length;
	part->kind = ENGINE_FACET_HERE;
}

/* In `body`: to a file, if it is long. False: it will be. */
static bool keep_body(struct facets *facets, struct facet_part *part)
{
	part->kind = ENGINE_FACET_HERE;
	part->bytes = part->body.length;
	if (part->body.length <= LIMIT_REPLICA_BODY_BYTES || part->copying)
		return true; /* a list is taken apart */
	if (part->body.length > LIMIT_REPLICA_READ_BYTES) {
		mark_failed(part, true, ERR_LIMIT, "it has %zu bytes; at most %d can be given to others", part->body.length,
		            LIMIT_REPLICA_READ_BYTES);
		return true;
	}
	open_spool(facets, part);
	engine_spool_put(part->spool, buf_str(&part->body));
	engine_spool_end(part->spool);
	buf_free(&part->body);
	part->body = (struct buf){0};
	return false;
}

/* True: it is done with. */
static bool take_json(struct facets *facets, struct facet_part *part, struct str body)
{
	struct engine_to_meta to = {facets->engine, facets->own, facets->setup->glue};
	struct glue_replacer meta = engine_to_meta(&to);
	engine_splice(glue_answer_places(part->facet.read), &meta, body, &part->body);
	if (facets->keep)
		return keep_body(facets, part);
	struct buf text = {0};
	int code = glue_comparable(facets->type, buf_str(&part->body), &text, NULL);
	hash(code == 0 ? buf_str(&text) : buf_str(&part->body), part);
	buf_free(&text);
	return true;
}

/* ---- Asking ----------------------------------------------------------------------------------------------------------- */

static void came(void *context, const struct http_call_answer *answer)
{
	struct facets *facets = context;
	struct facet_part *part = current(facets);
	facets->call = NULL;
	if (answer->code) {
		struct err own = part->err;
		mark_failed(part, false, answer->code, "%s", own.code ? own.text : answer->err.text);
	} else if (answer->status == 204 || answer->status == 404 || answer->status == 410) {
		drop_spool(part);
		part->kind = ENGINE_FACET_NONE;
	} else if (answer->status != 200) {
		mark_failed(part, answer->status < 500 && answer->status != 429 && answer->status != 408, ERR_INVALID,
		            "the service there answers with %u", answer->status);
	} else {
		buf_put(&part->content_type, answer->content_type);
		if (part->facet.opaque) {
			engine_spool_end(part->spool);
			return; /* moved() goes on */
		}
		if (!take_json(facets, part, answer->body))
			return;
	}
	go_on(facets);
}

/* The description has to read the path in the same way. */
static bool is_known(const struct facets *facets, const struct facet_part *part, struct str target)
{
	struct glue_match match;
	struct glue_request asked = engine_request_of(facets->own.service, STR("GET"), target, STR(""));
	return facets->setup->glue && glue_match(facets->setup->glue, &asked, &match) &&
	       match.operation == part->facet.read;
}

static int ask(struct facets *facets, struct facet_part *part, struct str target, struct err *err)
{
	struct engine *engine = facets->engine;
	const struct engine_service *service = facets->service;
	uint32_t instance = engine->turn++ % service->instances_count;
	struct buf fields = {0};
	buf_put(&fields, service->credential);
	buf_put(&fields, part->facet.opaque ? STR("Accept: */*\r\n") : STR("Accept: application/json, */*;q=0.1\r\n"));
	struct http_call_options options = {.address = service->instances[instance],
	                                    .tls = service->tls,
	                                    .tls_name = service->tls ? service->names[instance] : NULL,
	                                    .method = "GET",
	                                    .target = target,
	                                    .fields = buf_str(&fields),
	                                    .body_fd = -1,
	                                    .pool = engine->pool,
	                                    .repeatable = true,
	                                    .timeout_ms = IDLE_MS,
	                                    .answer_bytes = part->facet.opaque ? (size_t)LIMIT_REPLICA_BLOB_GB << 30
	                                                                       : LIMIT_REPLICA_READ_BYTES,
	                                    .piece = part->facet.opaque ? take_piece : NULL,
	                                    .done = came,
	                                    .context = facets};
	int code = http_call_start(&facets->call, engine->loop, &options, err);
	if (code)
		facets->call = NULL;
	if (fields.at)
		explicit_bzero(fields.at, fields.length);
	buf_free(&fields);
	return code;
}

static void read_one(struct facets *facets, struct facet_part *part)
{
	struct buf target = {0};
	struct err err = {0};
	glue_facet_put(&part->facet, buf_str(&facets->item), &target);
	if (part->facet.opaque)
		open_spool(facets, part);
	if (!is_known(facets, part, buf_str(&target)))
		mark_failed(part, true, ERR_INVALID, "the description of the application there reads its path in another way");
	else if (ask(facets, part, buf_str(&target), &err) != 0)
		mark_failed(part, false, err.code, "%s", err.text);
	buf_free(&target);
	if (!facets->call)
		go_on(facets);
}

static void next(struct facets *facets)
{
	if (facets->at == facets->parts_count) {
		finish(facets);
		return;
	}
	struct facet_part *part = current(facets);
	if (part->facet.read)
		read_one(facets, part);
	else if (keep_body(facets, part))
		go_on(facets);
}

/* ---- For its owner ------------------------------------------------------------------------------------------------------ */

void engine_facets_add(struct facets *facets)
{
	for (uint32_t i = 1; i < glue_facets_count(facets->type); i++)
		if (glue_facet_find(facets->type, i, &facets->parts[facets->parts_count].facet))
			facets->parts_count++;
}

/* What is asked for if the item shows it last: it may be about all the others. */
void engine_facets_add_copied(struct facets *facets, struct str item)
{
	static const enum glue_copy order[] = {GLUE_COPY_EACH, GLUE_COPY_WHEN};
	for (uint32_t k = 0; k < 2; k++) {
		for (uint32_t i = 1; i < glue_facets_count(facets->type); i++) {
			const struct glue_copying *copying = glue_facet_copying(facets->type, i);
			bool shows = copying->place.length == 0 || engine_item_shows(facets->type, copying, item);
			if (copying->how != order[k] || !shows)
				continue;
			facets->parts[facets->parts_count++] =
				(struct facet_part){.facet = {.name = glue_facet_name(facets->type, i),
			                                  .number = i,
			                                  .read = copying->read,
			                                  .replace = copying->by},
			                        .copying = copying};
		}
	}
}

void engine_facets_start(struct facets *facets)
{
	facets->timer.fire = over;
	facets->timed = true;
	http_timer_set(facets->engine->loop, &facets->timer, facets->limit_ms);
	next(facets);
}

int engine_facets_keep(struct facets *facets, struct err *err)
{
	for (uint32_t i = 0; i < facets->parts_count; i++)
		if (facets->parts[i].spool && engine_spool_keep(facets->parts[i].spool, err) != 0)
			return ERR_IO;
	return 0;
}

void engine_facets_release(struct facets *facets)
{
	for (uint32_t i = 0; i < facets->parts_count; i++)
		if (facets->parts[i].spool)
			engine_blob_release(facets->engine,
			                    str_make((const char *)facets->parts[i].hash, sizeof(facets->parts[i].hash)));
}

void engine_facets_end(struct facets *facets)
{
	if (facets->call)
		http_call_cancel(facets->call);
	facets->call = NULL;
	if (facets->timed)
		http_timer_clear(facets->engine->loop, &facets->timer);
	facets->timed = false;
	for (uint32_t i = 0; i < facets->parts_count; i++) {
		drop_spool(&facets->parts[i]);
		buf_free(&facets->parts[i].head);
		buf_free(&facets->parts[i].body);
		buf_free(&facets->parts[i].content_type);
	}
	buf_free(&facets->item);
}
