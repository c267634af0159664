/* Blobs from other members.
 *
 * src/replica asks for a blob that an operation needs and that is not here, naming a member that should have it; while the
 * operation waits it asks again, naming others. One transfer:
 *   1. what there is of it (HASH.part) is read, for its hash: a transfer that broke off goes on where it stopped, after a
 *      restart as well
 *   2. GET /cheops/v1/blobs/HASH on the other agent's port, mutual TLS, `Range: bytes=N-`; the bytes go to a spool as they
 *      come, no faster than the disk takes them
 *   3. the spool's hash is the blob's: the file gets its name, and src/replica is told
 *
 * What goes wrong:
 *   no connection, it breaks off, nothing moves    again after a pause, which doubles while nothing comes; from whoever was
 *                                                  named last
 *   the member has none, or says that it may not   the same; src/replica will name another
 *   the hash is another                            what came is thrown away; the same
 *   the disk is full                               the same; what came stays
 *   nobody needs it any more                       engine_fetch_end()
 * There are at most ENGINE_FETCHES transfers at a time; others wait for their turn, in the order in which they were asked for.
 */
#include "engine/engine_int.h"

#include "base/check.h"
#include "trust/trust.h"

#include <stdio.h>
#include <stdlib.h>

enum { PAUSE_LEAST_MS = 200, PAUSE_MOST_MS = 30000 };

enum fetch_state {
	FETCH_WAITING,   /* for its turn, or for the end of a pause */
	FETCH_RESUMING,  /* what is there is read */
	FETCH_COMING,    /* from another member */
	FETCH_FINISHING, /* all came, and is made durable */
};

struct fetch {
	struct fetch *next;
	struct engine *engine;
	enum fetch_state state;
	uint8_t blob[ENGINE_BLOB_BYTES];
	uint64_t bytes;
	site_id from;
	struct engine_spool *spool;
	struct http_call *call;
	struct http_timer timer;
	uint64_t pause_ms; /* it pauses for so long; 0: it does not */
	uint32_t failures; /* in a row, without a byte */
	uint64_t before;   /* bytes that were there when this try began */
};

static void start_some(struct engine *engine);

static struct str blob_of(const struct fetch *fetch)
{
	return str_make((const char *)fetch->blob, sizeof(fetch->blob));
}

static struct fetch *find(struct engine *engine, struct str blob)
{
	for (struct fetch *fetch = engine->fetches; fetch; fetch = fetch->next)
		if (str_equal(blob_of(fetch), blob))
			return fetch;
	return NULL;
}

static void stop(struct fetch *fetch)
{
	if (fetch->call)
		http_call_cancel(fetch->call);
	fetch->call = NULL;
	engine_spool_drop(fetch->spool);
	fetch->spool = NULL;
	http_timer_clear(fetch->engine->loop, &fetch->timer);
	fetch->state = FETCH_WAITING;
}

static void fetch_free(struct fetch *fetch)
{
	struct fetch **at = &fetch->engine->fetches;
	while (*at != fetch)
		at = &(*at)->next;
	*at = fetch->next;
	stop(fetch);
	free(fetch);
}

/* ---- Trying again -------------------------------------------------------------------------------------------------- */

static void pause_over(struct http_timer *timer)
{
	struct fetch *fetch = (struct fetch *)((char *)timer - offsetof(struct fetch, timer));
	fetch->pause_ms = 0;
	start_some(fetch->engine);
}

static void try_later(struct fetch *fetch, const char *why)
{
	struct engine *engine = fetch->engine;
	char name[ENGINE_BLOB_NAME_BYTES];
	bool progress = fetch->spool && engine_spool_bytes(fetch->spool) > fetch->before;
	engine_blob_name(blob_of(fetch), name);
	log_event(engine->options.log, LOG_INFO, "the body of an operation could not be fetched; it is tried again",
	          LOG_STR("blob", str_of(name)), LOG_STR("reason", str_of(why)));
	stop(fetch);
	fetch->failures = progress ? 0 : fetch->failures + 1;
	uint64_t pause_ms = (uint64_t)PAUSE_LEAST_MS << (fetch->failures < 8 ? fetch->failures : 8);
	fetch->pause_ms = pause_ms < PAUSE_MOST_MS ? pause_ms : PAUSE_MOST_MS;
	http_timer_set(engine->loop, &fetch->timer, fetch->pause_ms);
	start_some(engine);
}

/* ---- Coming -------------------------------------------------------------------------------------------------------- */

static void is_here(struct fetch *fetch)
{
	struct engine *engine = fetch->engine;
	struct err err = {0};
	if (!str_equal(engine_spool_hash(fetch->spool), blob_of(fetch))) {
		engine_spool_discard(fetch->spool);
		fetch->spool = NULL;
		try_later(fetch, "what came has another hash");
		return;
	}
	if (engine_spool_keep(fetch->spool, &err) != 0) {
		try_later(fetch, err.text);
		return;
	}
	struct buf blob = {0};
	buf_put(&blob, blob_of(fetch));
	fetch_free(fetch);
	if (engine->replica)
		replica_fetched(engine->replica, buf_str(&blob), engine_now());
	engine_changed(engine);
	buf_free(&blob);
	start_some(engine);
}

static void finish(struct fetch *fetch)
{
	fetch->state = FETCH_FINISHING;
	engine_spool_end(fetch->spool);
}

static int check_site(void *context, struct str certificate_der, struct err *err)
{
	const struct fetch *fetch = context;
	return engine_check_site(fetch->from, certificate_der, err);
}

/* "bytes 100-199/200": it goes on where we are. */
static bool goes_on(const struct fetch *fetch, const struct http_head *head)
{
	const struct http_field *range = http_find_named(head, STR("content-range"));
	char text[64], *end;
	if (head->status == 200)
		return fetch->before == 0;
	if (head->status != 206 || !range)
		return false;
	snprintf(text, sizeof(text), "%.*s", STR_FMT(http_field_value(head, range)));
	const char *number = text + STR("bytes ").length;
	if (strncmp(text, "bytes ", STR("bytes ").length) != 0 || *number < '0' || *number > '9')
		return false;
	return strtoull(number, &end, 10) == fetch->before && *end == '-';
}

static enum http_piece take_piece(void *context, const struct http_head *head, struct str bytes)
{
	struct fetch *fetch = context;
	bool first = engine_spool_bytes(fetch->spool) == fetch->before;
	if (first && !goes_on(fetch, head))
		return HTTP_PIECE_REFUSED;
	return engine_spool_put(fetch->spool, bytes) ? HTTP_PIECE_TAKEN : HTTP_PIECE_FULL;
}

static void came(void *context, const struct http_call_answer *answer)
{
	struct fetch *fetch = context;
	fetch->call = NULL;
	if (answer->code == 0 && engine_spool_bytes(fetch->spool) == fetch->bytes) {
		finish(fetch);
		return;
	}
	char why[128];
	snprintf(why, sizeof(why), "the other agent answered with %u", answer->status);
	try_later(fetch, answer->code ? answer->err.text : why);
}

static void ask(struct fetch *fetch)
{
	struct engine *engine = fetch->engine;
	const struct site_place *place = engine_find_place(engine, fetch->from);
	char name[ENGINE_BLOB_NAME_BYTES];
	struct buf target = {0}, fields = {0};
	struct err err = {0};
	fetch->before = engine_spool_bytes(fetch->spool);
	if (!place || !engine->client) {
		try_later(fetch, "the site that has it is not known, or cannot be reached");
		return;
	}
	engine_blob_name(blob_of(fetch), name);
	buf_printf(&target, "/cheops/v1/blobs/%s", name);
	buf_printf(&fields, "Range: bytes=%llu-\r\n", (unsigned long long)fetch->before);
	struct http_call_options options = {.tls = engine->client,
	                                    .method = "GET",
	                                    .target = buf_str(&target),
	                                    .fields = buf_str(&fields),
	                                    .pool = engine->pool,
	                                    .repeatable = true,
	                                    .timeout_ms = ENGINE_PEER_MS,
	                                    .answer_bytes = fetch->bytes - fetch->before + 4096,
	                                    .piece = take_piece,
	                                    .done = came,
	                                    .check = check_site,
	                                    .context = fetch};
	http_address_of_site(&options.address, &place->address);
	fetch->state = FETCH_COMING;
	if (http_call_start(&fetch->call, engine->loop, &options, &err) != 0) {
		fetch->call = NULL;
		try_later(fetch, err.text);
	}
	buf_free(&target);
	buf_free(&fields);
}

/* The disk has done something. */
static void moved(void *context)
{
	struct fetch *fetch = context;
	struct err err = {0};
	enum engine_spool_state state = engine_spool_state(fetch->spool, &err);
	if (state == ENGINE_SPOOL_FAILED) {
		try_later(fetch, err.text);
	} else if (fetch->state == FETCH_RESUMING) {
		uint64_t there = engine_spool_bytes(fetch->spool);
		if (there > fetch->bytes) {
			engine_spool_discard(fetch->spool);
			fetch->spool = NULL;
			try_later(fetch, "what was there of it is longer than it is");
		} else if (there == fetch->bytes) {
			finish(fetch);
		} else {
			ask(fetch);
		}
	} else if (state == ENGINE_SPOOL_DONE) {
		is_here(fetch);
	} else if (fetch->call && state == ENGINE_SPOOL_OPEN) {
		http_call_go_on(fetch->call);
	}
}

/* ---- Asked for ------------------------------------------------------------------------------------------------------ */

static void begin(struct fetch *fetch)
{
	char name[ENGINE_BLOB_NAME_BYTES + sizeof(ENGINE_PART_SUFFIX)];
	engine_blob_name(blob_of(fetch), name);
	memcpy(name + strlen(name), ENGINE_PART_SUFFIX, sizeof(ENGINE_PART_SUFFIX));
	fetch->state = FETCH_RESUMING;
	fetch->spool =
		engine_spool_resume(fetch->engine, name, &(struct engine_spool_options){fetch->engine->loop, moved, fetch});
}

/* The list has the newest first. */
static struct fetch *next_in_turn(struct engine *engine)
{
	struct fetch *oldest = NULL;
	for (struct fetch *fetch = engine->fetches; fetch; fetch = fetch->next)
		if (fetch->state == FETCH_WAITING && fetch->pause_ms == 0)
			oldest = fetch;
	return oldest;
}

static void start_some(struct engine *engine)
{
	uint32_t busy = 0;
	for (struct fetch *fetch = engine->fetches; fetch; fetch = fetch->next)
		busy += fetch->state != FETCH_WAITING;
	for (struct fetch *fetch; busy < ENGINE_FETCHES && (fetch = next_in_turn(engine)) != NULL; busy++)
		begin(fetch);
}

void engine_fetch(struct engine *engine, struct str blob, uint64_t bytes, site_id from)
{
	struct fetch *fetch = find(engine, blob);
	if (!fetch) {
		fetch = calloc(1, sizeof(*fetch));
		CHECK(fetch);
		fetch->engine = engine;
		fetch->next = engine->fetches;
		fetch->timer.fire = pause_over;
		memcpy(fetch->blob, blob.at, sizeof(fetch->blob));
		engine->fetches = fetch;
	}
	if (fetch->state == FETCH_WAITING) {
		fetch->bytes = bytes;
		fetch->from = from;
	}
	start_some(engine);
}

void engine_fetch_end(struct engine *engine, struct str blob)
{
	struct fetch *fetch = find(engine, blob);
	if (fetch)
		fetch_free(fetch);
}

void engine_fetches_hurry(struct engine *engine)
{
	for (struct fetch *fetch = engine->fetches; fetch; fetch = fetch->next) {
		if (fetch->state == FETCH_WAITING && engine_reachable(engine, fetch->from)) {
			http_timer_clear(engine->loop, &fetch->timer);
			fetch->pause_ms = 0;
		}
	}
	start_some(engine);
}

void engine_fetches_free(struct engine *engine)
{
	for (struct fetch *fetch = engine->fetches, *next; fetch; fetch = next) {
		next = fetch->next;
		fetch_free(fetch);
	}
}
