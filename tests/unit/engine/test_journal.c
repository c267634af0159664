/* The journal: what was committed is there after a crash, whatever came between; nothing else is. */
#include "life.h"

#include "base/check.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { KEYS = 12, STEPS = 400, SEEDS = 25 };

static void put(struct life *life, enum replica_table table, const char *key, const char *row)
{
	engine_row_put(&life->engine, table, str_of(key), str_of(row));
}

static void assert_row(struct life *life, enum replica_table table, const char *key, const char *row)
{
	struct buf found = {0};
	int code = engine_row_get(&life->engine, table, str_of(key), &found);
	assert_int_equal(code, row ? 0 : ERR_NOT_FOUND);
	if (row)
		assert_true(str_equal(buf_str(&found), str_of(row)));
	buf_free(&found);
}

static bool others_see(struct life *life, enum replica_table table, const char *key)
{
	struct store_session *session;
	struct str row;
	assert_int_equal(store_begin_read(life->engine.store, &session, NULL), 0);
	bool found = store_get(session, table, str_of(key), &row, NULL) == 0;
	store_abort(session);
	return found;
}

static void what_was_committed_survives(void **state)
{
	(void)state;
	struct life life;
	life_new(&life);
	life_begin(&life);
	put(&life, REPLICA_OPERATIONS, "a", "one");
	assert_int_equal(engine_commit(&life.engine), 0);
	put(&life, REPLICA_OPERATIONS, "a", "two");
	put(&life, REPLICA_OUTBOX, "b", "");
	assert_int_equal(engine_commit(&life.engine), 0);
	put(&life, REPLICA_OPERATIONS, "a", "three");
	assert_false(others_see(&life, REPLICA_OPERATIONS, "a")); /* in the journal, and not in the store */
	assert_int_equal(life.engine.journal.commits, 2);
	life_crash(&life);
	life_begin(&life);
	assert_row(&life, REPLICA_OPERATIONS, "a", "two");
	assert_row(&life, REPLICA_OUTBOX, "b", "");
	assert_true(others_see(&life, REPLICA_OPERATIONS, "a"));
	life_crash(&life);
	life_remove(&life);
}

/* What the data plane finds. */
static bool is_found(struct life *life, enum replica_table table, const char *key, const char *row)
{
	struct look look;
	struct str found;
	assert_true(engine_look_begin(&life->engine, &look));
	bool there = engine_look_get(&look, table, str_of(key), &found);
	if (there)
		assert_true(str_equal(found, str_of(row)));
	engine_look_end(&look);
	return there;
}

static void what_others_read_in_the_store_is_there_at_once(void **state)
{
	(void)state;
	struct life life;
	life_new(&life);
	life_begin(&life);
	put(&life, REPLICA_OPERATIONS, "a", "one");
	assert_int_equal(engine_commit(&life.engine), 0);
	put(&life, REPLICA_BLOBS, "b", "here");
	assert_int_equal(engine_commit(&life.engine), 0);
	assert_true(others_see(&life, REPLICA_BLOBS, "b") && others_see(&life, REPLICA_OPERATIONS, "a"));
	assert_int_equal(life.engine.journal.at, 0); /* the next generation */
	life_crash(&life);
	life_remove(&life);
}

/* Ids are found as soon as they are committed, wherever they are by then; not before. */
static void what_is_looked_up_is_found_at_once(void **state)
{
	(void)state;
	struct life life;
	life_new(&life);
	life_begin(&life);
	put(&life, REPLICA_LOCALS, "l", "id");
	put(&life, REPLICA_REPLICANTS, "r", "a new one");
	assert_false(is_found(&life, REPLICA_LOCALS, "l", ""));
	assert_int_equal(engine_commit(&life.engine), 0);
	assert_false(others_see(&life, REPLICA_LOCALS, "l")); /* in the journal, and not in the store */
	assert_true(is_found(&life, REPLICA_LOCALS, "l", "id") && is_found(&life, REPLICA_REPLICANTS, "r", "a new one"));
	put(&life, REPLICA_LOCALS, "l", "another");
	assert_true(is_found(&life, REPLICA_LOCALS, "l", "id"));
	assert_int_equal(engine_commit(&life.engine), 0);
	assert_true(is_found(&life, REPLICA_LOCALS, "l", "another"));
	life.engine.journal.seen = true; /* it is time */
	assert_int_equal(engine_commit(&life.engine), 0);
	assert_true(others_see(&life, REPLICA_LOCALS, "l") && is_found(&life, REPLICA_LOCALS, "l", "another"));
	engine_row_remove(&life.engine, REPLICA_LOCALS, STR("l"));
	assert_int_equal(engine_commit(&life.engine), 0);
	assert_true(others_see(&life, REPLICA_LOCALS, "l"));
	assert_false(is_found(&life, REPLICA_LOCALS, "l", ""));
	life_crash(&life);
	life_begin(&life);
	assert_false(is_found(&life, REPLICA_LOCALS, "l", ""));
	assert_true(is_found(&life, REPLICA_REPLICANTS, "r", "a new one"));
	life_crash(&life);
	life_remove(&life);
}

/* Those of which the store has none yet. */
static void types_are_known_at_once(void **state)
{
	(void)state;
	struct life life;
	struct buf key = {0};
	life_new(&life);
	life_begin(&life);
	replica_local_key(&(struct replica_local){STR("image"), STR("image.image"), STR(""), STR("17")}, &key);
	engine_row_put(&life.engine, REPLICA_REPLICANTS, STR("r"), STR("x")); /* there is one */
	engine_row_put(&life.engine, REPLICA_LOCALS, buf_str(&key), STR("id"));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(engine_commit(&life.engine), 0);
		assert_true(engine_has_type(&life.engine, STR("image"), STR("image.image")));
		assert_false(engine_has_type(&life.engine, STR("image"), STR("image.images")));
		engine_row_put(&life.engine, REPLICA_META, STR("any"), STR("x"));
		life.engine.journal.seen = true;
	}
	buf_free(&key);
	life_crash(&life);
	life_begin(&life);
	atomic_store(&life.engine.any, true);
	for (int known = 1; known >= 0; known--) { /* from memory, and from the store while that is being made */
		atomic_store(&life.engine.sieve.ready, known == 1);
		assert_true(engine_has_type(&life.engine, STR("image"), STR("image.image")));
		assert_false(engine_has_type(&life.engine, STR("image"), STR("image.images")));
	}
	life_crash(&life);
	life_remove(&life);
}

/* Whoever looks while it is committed, to the journal or to the store, finds what was committed before, always. */
struct looker {
	struct life *life;
	atomic_uint committed;
	atomic_bool stop;
	unsigned looked, missed;
};

static void *look_on(void *context)
{
	struct looker *looker = context;
	while (!atomic_load(&looker->stop)) {
		unsigned last = atomic_load(&looker->committed);
		struct look look;
		struct str row;
		char text[16] = "";
		if (!engine_look_begin(&looker->life->engine, &look))
			continue;
		bool there = engine_look_get(&look, REPLICA_LOCALS, STR("l"), &row) && row.length < sizeof(text);
		if (there)
			memcpy(text, row.at, row.length);
		engine_look_end(&look);
		looker->missed += last > 0 && (!there || (unsigned)atoi(text) < last);
		looker->looked++;
	}
	return NULL;
}

static void who_looks_meanwhile(void **state)
{
	(void)state;
	struct life life;
	life_new(&life);
	life_begin(&life);
	struct looker looker = {.life = &life};
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, look_on, &looker), 0);
	for (unsigned i = 1; i <= 3000; i++) {
		char row[16];
		snprintf(row, sizeof(row), "%u", i);
		put(&life, REPLICA_LOCALS, "l", row);
		life.engine.journal.seen |= i % 3 == 0;
		assert_int_equal(engine_commit(&life.engine), 0);
		atomic_store(&looker.committed, i);
	}
	atomic_store(&looker.stop, true);
	pthread_join(thread, NULL);
	assert_true(looker.looked > 0);
	assert_int_equal(looker.missed, 0);
	life_crash(&life);
	life_remove(&life);
}

/* Cut anywhere within the last commit, or one byte of it changed: the one before counts. */
static void half_a_commit_is_none(void **state)
{
	(void)state;
	struct life life;
	char path[128];
	life_new(&life);
	snprintf(path, sizeof(path), "%s/journal", life.folder);
	for (int damaged = 0; damaged < 60; damaged += 7) {
		life_begin(&life);
		engine_row_remove(&life.engine, REPLICA_OUTBOX, STR("second"));
		put(&life, REPLICA_BLOBS, "b", "settled"); /* the next generation */
		assert_int_equal(engine_commit(&life.engine), 0);
		put(&life, REPLICA_OUTBOX, "first", "1");
		assert_int_equal(engine_commit(&life.engine), 0);
		off_t at = (off_t)life.engine.journal.at + damaged;
		put(&life, REPLICA_OUTBOX, "second", "0123456789012345678901234567890123456789");
		assert_int_equal(engine_commit(&life.engine), 0);
		assert_true(at < (off_t)life.engine.journal.at);
		life_crash(&life);
		int fd = open(path, O_RDWR);
		char byte;
		assert_int_equal(pread(fd, &byte, 1, at), 1);
		byte = (char)~byte;
		assert_int_equal(pwrite(fd, &byte, 1, at), 1);
		close(fd);
		life_begin(&life);
		assert_row(&life, REPLICA_OUTBOX, "first", "1");
		assert_row(&life, REPLICA_OUTBOX, "second", NULL);
		life_crash(&life);
	}
	life_remove(&life);
}

/* More than the file holds goes to the store, and is not lost either. */
static void more_than_it_holds(void **state)
{
	(void)state;
	struct life life;
	char *row = malloc((1 << 20) + 1);
	CHECK(row);
	memset(row, 'x', 1 << 20);
	row[1 << 20] = '\0';
	life_new(&life);
	life_begin(&life);
	for (int i = 0; i < 10; i++) {
		char key[16];
		snprintf(key, sizeof(key), "k%d", i);
		put(&life, REPLICA_OUTBOX, key, row);
		assert_int_equal(engine_commit(&life.engine), 0);
	}
	life_crash(&life);
	life_begin(&life);
	assert_row(&life, REPLICA_OUTBOX, "k0", row);
	assert_row(&life, REPLICA_OUTBOX, "k9", row);
	life_crash(&life);
	life_remove(&life);
	free(row);
}

/* It may have what was acknowledged: whoever cannot read it does not go on without. */
static void what_cannot_be_read_is_no_end(void **state)
{
	(void)state;
	struct life life;
	struct err err = {0};
	life_new(&life);
	life_begin(&life);
	int fd = life.engine.journal.fd, folder = open(life.folder, O_RDONLY | O_DIRECTORY);
	assert_true(folder >= 0);
	life.engine.journal.fd = folder; /* no bytes can be read from it */
	assert_int_equal(engine_journal_replay(&life.engine, &err), ERR_IO);
	assert_non_null(strstr(err.text, "journal"));
	life.engine.journal.fd = fd;
	close(folder);
	life_crash(&life);
	life_remove(&life);
}

/* ---- Any order of puts, removals, commits of both kinds and crashes ---------------------------------------------------- */

static uint64_t draw(uint64_t *luck)
{
	*luck ^= *luck << 13;
	*luck ^= *luck >> 7;
	*luck ^= *luck << 17;
	return *luck;
}

static enum replica_table table_of(unsigned key)
{
	return key % 4 == 0 ? REPLICA_LANES : key % 4 == 1 ? REPLICA_META : REPLICA_OUTBOX;
}

struct met {
	const unsigned *now;
	unsigned count, wrong;
	char last[16];
};

static bool meet(void *context, struct str key, struct str row)
{
	struct met *met = context;
	char name[16] = "", text[16] = "";
	assert_true(key.length < sizeof(name) && row.length < sizeof(text));
	memcpy(name, key.at, key.length);
	memcpy(text, row.at, row.length);
	met->wrong += strcmp(met->last, name) >= 0 || met->now[atoi(name + 3)] != (unsigned)atoi(text);
	memcpy(met->last, name, sizeof(name));
	met->count++;
	return true;
}

/* Who goes through the tables meets what is there now, in order, and nothing else. */
static void assert_all_are_met(struct life *life, const unsigned *now)
{
	static const enum replica_table tables[] = {REPLICA_LANES, REPLICA_META, REPLICA_OUTBOX};
	unsigned expected = 0, met_count = 0;
	for (unsigned key = 0; key < KEYS; key++)
		expected += now[key] != 0;
	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		struct met met = {.now = now};
		assert_int_equal(engine_row_scan(&life->engine, tables[i], STR("key"), STR(""), meet, &met), 0);
		assert_int_equal(met.wrong, 0);
		met_count += met.count;
	}
	assert_int_equal(met_count, expected);
}

/* `through`: rows go into the session at once, as they do where the store may use little. */
static void like_a_model(uint64_t luck, bool through)
{
	struct life life;
	unsigned now[KEYS] = {0}, durable[KEYS] = {0}; /* 0: no row */
	life_new(&life);
	life_begin(&life);
	life.engine.behind.on = !through;
	for (unsigned step = 1; step <= STEPS; step++) {
		unsigned key = (unsigned)(draw(&luck) % KEYS), what = (unsigned)(draw(&luck) % 100);
		enum replica_table table = table_of(key);
		char name[16], row[16];
		snprintf(name, sizeof(name), "key%u", key);
		snprintf(row, sizeof(row), "%u", step);
		if (what < 50) {
			put(&life, table, name, row);
			now[key] = step;
		} else if (what < 65) {
			engine_row_remove(&life.engine, table, str_of(name));
			now[key] = 0;
		} else if (what < 70) {
			assert_all_are_met(&life, now);
		} else if (what < 94) {
			life.engine.journal.seen |= what < 75;
			assert_int_equal(engine_commit(&life.engine), 0);
			memcpy(durable, now, sizeof(now));
		} else {
			life_crash(&life);
			life_begin(&life);
			life.engine.behind.on = !through;
			memcpy(now, durable, sizeof(now));
		}
		snprintf(row, sizeof(row), "%u", now[key]);
		assert_row(&life, table, name, now[key] ? row : NULL);
	}
	life_crash(&life);
	life_remove(&life);
}

static void any_order(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++)
		like_a_model(seed * 0x9e3779b97f4a7c15U, seed % 3 == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_committed_survives),
		cmocka_unit_test(what_others_read_in_the_store_is_there_at_once),
		cmocka_unit_test(what_is_looked_up_is_found_at_once),
		cmocka_unit_test(types_are_known_at_once),
		cmocka_unit_test(who_looks_meanwhile),
		cmocka_unit_test(half_a_commit_is_none),
		cmocka_unit_test(more_than_it_holds),
		cmocka_unit_test(what_cannot_be_read_is_no_end),
		cmocka_unit_test(any_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
