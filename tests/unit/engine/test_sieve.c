/* The sieve: what was put is never denied, and what was not nearly always is. */
#include "life.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { KEYS = 20000 };

static struct str id_of(unsigned number, char id[16])
{
	snprintf(id, 16, "%015u", number);
	return str_make(id, 16);
}

static struct str local_of(unsigned number, struct buf *key)
{
	char id[16];
	snprintf(id, sizeof(id), "%u", number);
	buf_clear(key);
	replica_local_key(&(struct replica_local){STR("image"), STR("image.image"), STR(""), str_of(id)}, key);
	return buf_str(key);
}

/* How many of these may be there, of each table. */
static unsigned may_be(const struct life *life, unsigned from, unsigned to)
{
	struct buf key = {0};
	char id[16];
	unsigned count = 0;
	for (unsigned i = from; i < to; i++) {
		count += engine_sieve_may_have(&life->engine, REPLICA_REPLICANTS, id_of(i, id));
		count += engine_sieve_may_have(&life->engine, REPLICA_LOCALS, local_of(i, &key));
	}
	buf_free(&key);
	return count;
}

static void put_all(struct life *life, unsigned from, unsigned to)
{
	struct buf key = {0};
	char id[16];
	for (unsigned i = from; i < to; i++) {
		engine_row_put(&life->engine, REPLICA_REPLICANTS, id_of(i, id), STR("x"));
		engine_row_put(&life->engine, REPLICA_LOCALS, local_of(i, &key), STR("x"));
		if (i % 1000 == 0)
			assert_int_equal(engine_commit(&life->engine), 0);
	}
	assert_int_equal(engine_commit(&life->engine), 0);
	buf_free(&key);
}

static void what_was_put_may_be_there(void **state)
{
	(void)state;
	struct life life;
	life_new(&life);
	life_begin(&life);
	assert_int_equal(may_be(&life, 0, KEYS), 0);
	put_all(&life, 0, KEYS); /* several layers: it was made for few */
	for (int again = 0; again < 2; again++) {
		assert_int_equal(may_be(&life, 0, KEYS), 2 * KEYS);
		assert_true(may_be(&life, KEYS, 2 * KEYS) < 2 * KEYS / 20);
		life_crash(&life);
		life_begin(&life);
	}
	life_crash(&life);
	life_remove(&life);
}

/* Others ask while it is filled, and while more is put. */
struct asker {
	struct life *life;
	atomic_uint put;
	atomic_bool stop;
	unsigned denied;
};

static void *ask_on(void *context)
{
	struct asker *asker = context;
	while (!atomic_load(&asker->stop)) {
		unsigned put = atomic_load(&asker->put), from = put > 50 ? put - 50 : 0;
		asker->denied += may_be(asker->life, from, put) != 2 * (put - from);
	}
	return NULL;
}

static void who_asks_meanwhile(void **state)
{
	(void)state;
	struct life life;
	pthread_t thread;
	life_new(&life);
	life_begin(&life);
	put_all(&life, 0, KEYS / 4);
	life_crash(&life);
	life_begin(&life);
	atomic_store(&life.engine.sieve.ready, false);
	struct asker asker = {.life = &life, .put = KEYS / 4};
	assert_int_equal(pthread_create(&thread, NULL, ask_on, &asker), 0);
	engine_sieve_start(&life.engine);
	for (unsigned i = KEYS / 4; i < KEYS / 2; i += 100) {
		put_all(&life, i, i + 100);
		atomic_store(&asker.put, i + 100);
	}
	atomic_store(&asker.stop, true);
	pthread_join(thread, NULL);
	assert_int_equal(asker.denied, 0);
	life_crash(&life);
	life_remove(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_may_be_there),
		cmocka_unit_test(who_asks_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
