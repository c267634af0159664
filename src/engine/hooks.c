/* Telling webhooks (hooks.h). All of it is in the engine's thread. */
#include "engine/engine_int.h"

#include "base/bytes.h"
#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <stdlib.h>
#include <sys/random.h>

#ifndef CHEOPS_VERSION
#define CHEOPS_VERSION "unknown"
#endif

enum {
	PAUSE_LEAST_MS = 1000,
	PAUSE_MOST_MS = 60000,
	STORE_MS = 500, /* from a delivery to its position on disk, at most; unless something else is committed before */
	ANSWER_BYTES = 256 << 10,
	POSITION_VERSION = 1,
};

struct hook {
	struct hook *next;
	struct engine *engine;
	struct setup *setup; /* that `about` is of */
	const struct engine_hook *about;
	struct buf name;
	bool known;        /* its position is */
	bool dirty;        /* and is not on disk */
	uint64_t position; /* all up to there was told */
	struct http_call *call;
	uint64_t telling; /* the position once this is told, */
	uint32_t count;   /* of so many events */
	uint64_t missing; /* and of so many changes that are not kept any more */
	struct http_timer timer;
	bool waiting;
	uint32_t failures; /* in a row */
	uint64_t told, failed, missed;
	uint64_t last_told_ms, last_failed_ms;
	struct err error;
};

static const enum replica_table TABLE = (enum replica_table)ENGINE_HOOKS;
static void pump(struct hook *hook);

const char *engine_hook_state_name(enum engine_hook_state state)
{
	static const char *const names[] = {
		[ENGINE_HOOK_IDLE] = "idle", [ENGINE_HOOK_TELLING] = "telling", [ENGINE_HOOK_WAITING] = "waiting"};
	return names[state];
}

/* ---- Where it is ------------------------------------------------------------------------------------------------------ */

/* One that was never there before begins with what happens from now on. */
static void find_position(struct hook *hook)
{
	struct engine *engine = hook->engine;
	struct buf row = {0};
	int code = engine_row_get(engine, TABLE, buf_str(&hook->name), &row);
	struct reader reader = reader_of(buf_str(&row));
	bool good = code == 0 && read_8(&reader) == POSITION_VERSION;
	uint64_t position = read_64(&reader);
	if (good && !reader.failed) {
		hook->position = position;
		hook->known = true;
	} else if (code == 0 || code == ERR_NOT_FOUND) {
		hook->position = engine->changes.last;
		hook->known = hook->dirty = true;
	}
	buf_free(&row);
	engine_changed(engine); /* looking has begun a session of the store */
}

void engine_hooks_store(struct engine *engine)
{
	struct buf row = {0};
	if (!engine->session && !engine->hooks_due)
		return;
	engine->hooks_due = false;
	for (struct hook *hook = engine->hooks; hook; hook = hook->next) {
		if (!hook->dirty || !hook->known)
			continue;
		buf_clear(&row);
		put_number(&row, POSITION_VERSION, 1);
		put_number(&row, hook->position, 8);
		engine_row_put(engine, TABLE, buf_str(&hook->name), buf_str(&row));
		hook->dirty = false;
	}
	buf_free(&row);
}

/* The store was given up: what was put may not be there. */
void engine_hooks_doubt(struct engine *engine)
{
	for (struct hook *hook = engine->hooks; hook; hook = hook->next)
		hook->dirty = true;
}

static void store_soon(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, hooks_timer));
	engine->hooks_timed = false;
	engine->hooks_due = true;
	engine_changed(engine);
}

static void moved(struct hook *hook, uint64_t position)
{
	struct engine *engine = hook->engine;
	if (hook->position == position)
		return;
	hook->position = position;
	hook->dirty = true;
	if (engine->hooks_timed)
		return;
	engine->hooks_timed = true;
	engine->hooks_timer.fire = store_soon;
	http_timer_set(engine->loop, &engine->hooks_timer, STORE_MS);
}

/* ---- What is told ----------------------------------------------------------------------------------------------------- */

static void put_name_of_site(const struct engine *engine, struct buf *out)
{
	const struct site_place *place = engine_find_place(engine, engine->options.self);
	if (place)
		buf_put_json(out, place->name);
	else
		buf_printf(out, "\"%016llx\"", (unsigned long long)engine->options.self);
}

/* Those up to `before` are not kept any more. Behind the last: the journal began anew, and nobody knows how many there were. */
static void put_missed(struct hook *hook, struct buf *body, uint64_t before)
{
	hook->missing = hook->position < before ? before - hook->position : 0;
	buf_printf(body, "{\"id\":%llu,\"event\":\"missed\",\"data\":{\"changes\":", (unsigned long long)before);
	if (hook->missing > 0)
		buf_printf(body, "%llu}}", (unsigned long long)hook->missing);
	else
		buf_put(body, STR("null}}"));
	hook->count++;
}

/* False: there is nothing that it wants to hear of; its position is behind all that there is. */
static bool gather(struct hook *hook, struct buf *body)
{
	const struct engine *engine = hook->engine;
	const struct changes *changes = &engine->changes;
	hook->count = 0;
	hook->missing = 0;
	buf_put(body, STR("{\"site\":"));
	put_name_of_site(engine, body);
	buf_put(body, STR(",\"hook\":"));
	buf_put_json(body, buf_str(&hook->name));
	buf_put(body, STR(",\"events\":["));
	uint64_t at = hook->position;
	if (at < changes->before || at > changes->last)
		put_missed(hook, body, at = changes->before);
	while (at < changes->last && hook->count < LIMIT_ENGINE_HOOK_EVENTS) {
		const struct engine_change *change = &changes->ring[++at % LIMIT_ENGINE_CHANGES];
		if (!(hook->about->events >> change->event.kind & 1))
			continue;
		buf_put(body, hook->count++ > 0 ? STR(",") : STR(""));
		buf_printf(body, "{\"id\":%llu,\"event\":\"%s\",\"data\":", (unsigned long long)change->number,
		           engine_change_name(change->event.kind));
		engine_change_put(body, change, engine->sites);
		buf_put_char(body, '}');
	}
	hook->telling = at;
	buf_put(body, STR("]}\n"));
	return hook->count > 0;
}

static void put_signature(const struct hook *hook, struct str body, struct buf *fields)
{
	unsigned char mac[EVP_MAX_MD_SIZE];
	unsigned length = 0;
	struct buf text = {0};
	unsigned long long seconds = engine_now().wall_ms / 1000;
	struct str secret = hook->about->secret;
	if (secret.length == 0)
		return;
	buf_printf(&text, "%llu.", seconds);
	buf_put(&text, body);
	CHECK(HMAC(EVP_sha256(), secret.at, (int)secret.length, (const unsigned char *)text.at, text.length, mac, &length));
	buf_printf(fields, "Cheops-Signature: t=%llu,sha256=", seconds);
	for (unsigned i = 0; i < length; i++)
		buf_printf(fields, "%02x", mac[i]);
	buf_put(fields, STR("\r\n"));
	buf_free(&text);
}

/* ---- Telling ---------------------------------------------------------------------------------------------------------- */

static void again(struct http_timer *timer)
{
	struct hook *hook = (struct hook *)((char *)timer - offsetof(struct hook, timer));
	hook->waiting = false;
	pump(hook);
}

/* Between three quarters of the pause and all of it: those that failed together do not come back together. */
static uint64_t pause_ms(const struct hook *hook)
{
	uint64_t pause = (uint64_t)PAUSE_LEAST_MS << (hook->failures < 7 ? hook->failures - 1 : 6), random;
	pause = pause < PAUSE_MOST_MS ? pause : PAUSE_MOST_MS;
	ssize_t got = getrandom(&random, sizeof(random), 0);
	CHECK(got == sizeof(random));
	return pause - random % (pause / 4);
}

static void fail(struct hook *hook)
{
	struct engine *engine = hook->engine;
	hook->failed++;
	hook->last_failed_ms = engine_now().wall_ms;
	if (hook->failures++ == 0)
		log_event(engine->options.log, LOG_WARN, "a webhook does not answer; it is tried again",
		          LOG_STR("hook", buf_str(&hook->name)), LOG_STR("reason", str_of(hook->error.text)));
	hook->waiting = true;
	hook->timer = (struct http_timer){.fire = again};
	http_timer_set(engine->loop, &hook->timer, pause_ms(hook));
	engine_figures_note(engine);
}

static void told(void *context, const struct http_call_answer *answer)
{
	struct hook *hook = context;
	struct engine *engine = hook->engine;
	hook->call = NULL;
	if (answer->code || answer->status < 200 || answer->status > 299) {
		if (answer->code)
			err_set(&hook->error, ERR_IO, "%s", answer->err.text);
		else
			err_set(&hook->error, ERR_IO, "it answers with %u; 2xx would mean that it was heard", answer->status);
		fail(hook);
		return;
	}
	if (hook->failures > 0)
		log_event(engine->options.log, LOG_INFO, "a webhook answers again", LOG_STR("hook", buf_str(&hook->name)));
	hook->failures = 0;
	hook->told += hook->count;
	hook->missed += hook->missing;
	hook->last_told_ms = engine_now().wall_ms;
	moved(hook, hook->telling);
	engine_figures_note(engine);
	pump(hook);
}

static void tell(struct hook *hook, struct str body)
{
	struct engine *engine = hook->engine;
	struct buf fields = {0};
	struct err err = {0};
	buf_put(&fields, STR("User-Agent: cheops/" CHEOPS_VERSION "\r\nCheops-Hook: "));
	buf_put(&fields, buf_str(&hook->name));
	buf_put(&fields, STR("\r\n"));
	put_signature(hook, body, &fields);
	struct http_call_options options = {.address = hook->about->address,
	                                    .tls = hook->about->tls,
	                                    .tls_name = hook->about->tls ? hook->about->tls_name : NULL,
	                                    .method = "POST",
	                                    .target = hook->about->target,
	                                    .content_type = STR("application/json"),
	                                    .fields = buf_str(&fields),
	                                    .body = body,
	                                    .body_fd = -1,
	                                    .pool = engine->pool,
	                                    .repeatable = true,
	                                    .timeout_ms = hook->about->timeout_ms,
	                                    .answer_bytes = ANSWER_BYTES,
	                                    .done = told,
	                                    .context = hook};
	if (http_call_start(&hook->call, engine->loop, &options, &err) != 0) {
		hook->call = NULL;
		err_set(&hook->error, ERR_IO, "%s", err.text);
		fail(hook);
	}
	buf_free(&fields);
}

static void pump(struct hook *hook)
{
	struct buf body = {0};
	if (hook->call || hook->waiting || !hook->engine->replica)
		return;
	if (!hook->known)
		find_position(hook);
	if (!hook->known || hook->position == hook->engine->changes.last)
		return;
	if (gather(hook, &body))
		tell(hook, buf_str(&body));
	else
		moved(hook, hook->telling);
	buf_free(&body);
}

void engine_hooks_pump(struct engine *engine)
{
	for (struct hook *hook = engine->hooks; hook; hook = hook->next)
		pump(hook);
}

/* ---- Which there are --------------------------------------------------------------------------------------------------- */

static void hook_free(struct hook *hook)
{
	if (hook->call)
		http_call_cancel(hook->call);
	if (hook->waiting)
		http_timer_clear(hook->engine->loop, &hook->timer);
	engine_setup_drop(hook->setup);
	buf_free(&hook->name);
	free(hook);
}

static const struct engine_hook *find_about(const struct setup *setup, struct str name)
{
	for (uint32_t i = 0; i < setup->about.hooks_count; i++)
		if (str_equal(setup->about.hooks[i].name, name))
			return &setup->about.hooks[i];
	return NULL;
}

static struct hook *find_hook(struct engine *engine, struct str name)
{
	for (struct hook *hook = engine->hooks; hook; hook = hook->next)
		if (str_equal(buf_str(&hook->name), name))
			return hook;
	return NULL;
}

/* What is being told goes on to where it went; the next one goes where it goes now, without a pause. */
static void refresh(struct hook *hook, struct setup *setup, const struct engine_hook *about)
{
	struct setup *before = hook->setup;
	hook->setup = engine_setup_keep(setup);
	hook->about = about;
	engine_setup_drop(before);
	if (hook->waiting)
		http_timer_clear(hook->engine->loop, &hook->timer);
	hook->waiting = false;
	hook->failures = 0;
}

struct left_over {
	struct engine *engine;
	struct buf names; /* one after the other, each ended by a NUL */
};

/* Those of which nothing is configured any more, perhaps since before the last start. */
static bool note_left_over(void *context, struct str key, struct str row)
{
	struct left_over *left = context;
	(void)row;
	if (!find_about(left->engine->setup, key)) {
		buf_put(&left->names, key);
		buf_put_char(&left->names, '\0');
	}
	return true;
}

static void forget_left_over(struct engine *engine)
{
	struct left_over left = {.engine = engine};
	if (!engine->replica || engine_row_scan(engine, TABLE, STR(""), STR(""), note_left_over, &left) != 0)
		return;
	for (size_t at = 0; at < left.names.length; at += strlen(left.names.at + at) + 1)
		engine_row_remove(engine, TABLE, str_of(left.names.at + at));
	buf_free(&left.names);
	engine_changed(engine);
}

void engine_hooks_configure(struct engine *engine)
{
	struct setup *setup = engine->setup;
	for (struct hook **at = &engine->hooks, *hook; (hook = *at) != NULL;) {
		if (find_about(setup, buf_str(&hook->name))) {
			at = &hook->next;
			continue;
		}
		*at = hook->next;
		hook_free(hook);
	}
	for (uint32_t i = 0; i < setup->about.hooks_count; i++) {
		const struct engine_hook *about = &setup->about.hooks[i];
		struct hook *hook = find_hook(engine, about->name);
		if (!hook) {
			hook = calloc(1, sizeof(*hook));
			CHECK(hook);
			hook->engine = engine;
			hook->next = engine->hooks;
			buf_put(&hook->name, about->name);
			engine->hooks = hook;
		}
		refresh(hook, setup, about);
	}
	forget_left_over(engine);
	engine_hooks_pump(engine);
	engine_figures_note(engine);
}

void engine_hooks_free(struct engine *engine)
{
	while (engine->hooks) {
		struct hook *hook = engine->hooks;
		engine->hooks = hook->next;
		hook_free(hook);
	}
	if (engine->hooks_timed)
		http_timer_clear(engine->loop, &engine->hooks_timer);
}

/* ---- How they stand ----------------------------------------------------------------------------------------------------- */

static uint64_t behind(const struct hook *hook)
{
	const struct changes *changes = &hook->engine->changes;
	return hook->known && hook->position < changes->last ? changes->last - hook->position : 0;
}

void engine_hooks_count(const struct engine *engine, struct engine_figures *figures)
{
	for (const struct hook *hook = engine->hooks; hook; hook = hook->next) {
		uint64_t left = behind(hook);
		figures->hooks++;
		figures->hooks_told += hook->told;
		figures->hooks_failed += hook->failed;
		figures->hooks_missed += hook->missed;
		figures->hooks_behind = left > figures->hooks_behind ? left : figures->hooks_behind;
	}
}

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

const struct engine_hook_view *engine_hooks_look(const struct engine *engine, struct arena *arena, uint32_t *count)
{
	uint32_t total = 0;
	for (const struct hook *hook = engine->hooks; hook; hook = hook->next)
		total++;
	struct engine_hook_view *views = arena_array(arena, struct engine_hook_view, total);
	*count = total;
	/* The list has the last one first. */
	for (const struct hook *hook = engine->hooks; hook; hook = hook->next)
		views[--total] = (struct engine_hook_view){.name = copy(arena, buf_str(&hook->name)),
		                                           .url = copy(arena, hook->about->url),
		                                           .state = hook->call      ? ENGINE_HOOK_TELLING
		                                                    : hook->waiting ? ENGINE_HOOK_WAITING
		                                                                    : ENGINE_HOOK_IDLE,
		                                           .behind = behind(hook),
		                                           .told = hook->told,
		                                           .failed = hook->failed,
		                                           .missed = hook->missed,
		                                           .last_told_ms = hook->last_told_ms,
		                                           .last_failed_ms = hook->last_failed_ms,
		                                           .last_error = copy(arena, str_of(hook->error.text))};
	return views;
}
