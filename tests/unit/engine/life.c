#include "life.h"

#include "engine/relations.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void life_new(struct life *life)
{
	snprintf(life->folder, sizeof(life->folder), "/tmp/cheops-journal-XXXXXX");
	assert_non_null(mkdtemp(life->folder));
}

void life_remove(const struct life *life)
{
	static const char *const names[] = {"journal", "data.mdb", "lock.mdb", "holder"};
	char path[128];
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(path, sizeof(path), "%s/%s", life->folder, names[i]);
		unlink(path);
	}
	assert_int_equal(rmdir(life->folder), 0);
}

static void say_nothing(void *context, enum log_level level, struct str line)
{
	(void)context;
	(void)level;
	(void)line;
}

void life_begin(struct life *life)
{
	static const struct log log = {.sink = {.write = say_nothing}};
	struct err err = {0};
	struct engine *engine = &life->engine;
	*engine = (struct engine){.options = {.folder = life->folder, .self = LIFE_SELF, .log = &log}, .blobs = -1};
	engine->last = &engine->first;
	struct store_options options = {.schema = &engine_schema, .folder = life->folder, .unsynced = true};
	assert_int_equal(store_open(&engine->store, &options, &err), 0);
	assert_int_equal(trust_box_new(&engine->box, STR("0123456789abcdef0123456789abcdef"), &err), 0);
	assert_int_equal(http_loop_new(&engine->loop, &err), 0);
	engine_overlay_open(engine);
	engine_spread_open(engine);
	engine_sieve_open(engine);
	engine_behind_open(engine);
	assert_true(engine->behind.on);
	engine_journal_open(engine);
	assert_true(engine->journal.on && !engine->journal.broken);
	assert_int_equal(engine_journal_replay(engine, &err), 0);
	assert_int_equal(engine_changes_load(engine, &err), 0);
	assert_int_equal(engine_spread_load(engine, &err), 0);
	assert_int_equal(engine_commit(engine), 0);
	engine_sieve_fill(engine);
	assert_true(engine_sieve_knows(engine));
}

void life_crash(struct life *life)
{
	struct engine *engine = &life->engine;
	if (engine->session)
		store_abort(engine->session);
	http_timer_clear(engine->loop, &engine->journal.timer);
	engine_journal_close(engine);
	engine_overlay_close(engine);
	engine_behind_drop(engine);
	engine_sieve_close(engine);
	engine_spread_close(engine);
	engine_changes_free(engine);
	engine_risks_free(engine);
	http_loop_free(engine->loop);
	store_close(engine->store);
	trust_box_free(engine->box);
	buf_free(&engine->place);
	buf_free(&engine->sealed);
}
