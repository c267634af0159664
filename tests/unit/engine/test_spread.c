/* Which other sites have something of a type: counted rightly, whatever happens to replicants and to the agent. */
#include "life.h"

#include "replica/replica_int.h"

#include <pthread.h>
#include <stdatomic.h>

static const enum replica_table TABLE = (enum replica_table)ENGINE_SPREAD;

enum { IDS = 24, SITES = 5 };

/* What a replicant is, as a number that says all of it: 0 is nothing, 1 is gone. */
struct state {
	enum replica_span span;
	uint32_t holders; /* bits of the sites 8, 9...; PLACED: without this one it is a witness */
	bool here;        /* PLACED: this site holds it, too */
	bool gone;
	bool pools; /* of which type it is */
};

static void put_state(struct life *life, uint8_t number, const struct state *state)
{
	struct replicant r = {0};
	struct buf row = {0};
	site_id members[SITES + 1] = {LIFE_SELF}, holders[SITES + 1];
	uint32_t count = 1, holders_count = 0;
	struct replica_id id = {{number}};
	if (state->here)
		holders[holders_count++] = LIFE_SELF;
	for (uint32_t i = 0; i < SITES; i++) {
		if (!(state->holders >> i & 1))
			continue;
		members[count++] = 8 + i;
		holders[holders_count++] = 8 + i;
	}
	struct replica_create create = {.service = STR("image"),
	                                .type = state->pools ? STR("image.pool") : STR("image.image"),
	                                .span = state->span,
	                                .members = members,
	                                .members_count = count,
	                                .prime = holders_count > 0 ? holders[0] : LIFE_SELF,
	                                .holders = holders,
	                                .holders_count = holders_count};
	header_take(&r, &create);
	replicant_shape(&r, members, count, LIFE_SELF);
	witness_take(&r, &create);
	r.prime = create.prime;
	r.kind = state->gone ? REPLICANT_GONE : REPLICANT_LIVE;
	head_put(&row, &r);
	engine_row_put(&life->engine, REPLICA_REPLICANTS, str_make((const char *)id.bytes, sizeof(id.bytes)),
	               buf_str(&row));
	buf_free(&row);
	replicant_wipe(&r);
}

static void remove_state(struct life *life, uint8_t number)
{
	struct replica_id id = {{number}};
	engine_row_remove(&life->engine, REPLICA_REPLICANTS, str_make((const char *)id.bytes, sizeof(id.bytes)));
}

/* The sites of a type, as bits; `divided` as well. */
static uint32_t sites_of(struct life *life, const char *type, bool *divided)
{
	struct engine_spread spread;
	uint32_t bits = 0;
	bool any = engine_spread(&life->engine, STR("image"), str_of(type), &spread);
	assert_int_equal(any, spread.count > 0);
	for (uint32_t i = 0; i < spread.count; i++) {
		assert_false(bits >> (spread.sites[i] - 8) & 1); /* each once */
		bits |= UINT32_C(1) << (spread.sites[i] - 8);
	}
	*divided = spread.divided;
	return bits;
}

static void assert_sites(struct life *life, const char *type, uint32_t expected, bool is_divided)
{
	bool divided;
	assert_int_equal(sites_of(life, type, &divided), expected);
	assert_int_equal(divided, is_divided);
}

static void who_holds_what_is_witnessed(void **test)
{
	(void)test;
	struct life life;
	life_new(&life);
	life_begin(&life);
	assert_sites(&life, "image.image", 0, false);
	put_state(&life, 1, &(struct state){.span = REPLICA_PLACED, .holders = 1});
	put_state(&life, 2, &(struct state){.span = REPLICA_PLACED, .holders = 3});
	put_state(&life, 3, &(struct state){.span = REPLICA_ALIKE, .holders = 4});                /* all have it */
	put_state(&life, 4, &(struct state){.span = REPLICA_PLACED, .holders = 8, .here = true}); /* so has this site */
	put_state(&life, 5, &(struct state){.span = REPLICA_CONTAINER, .holders = 16});
	assert_sites(&life, "image.image", 3, false);
	assert_sites(&life, "image.pool", 0, false);
	assert_int_equal(engine_commit(&life.engine), 0);
	for (int i = 0; i < 2; i++) {
		life_crash(&life);
		life_begin(&life);
		assert_sites(&life, "image.image", 3, false);
	}
	put_state(&life, 2, &(struct state){.span = REPLICA_PLACED, .holders = 3, .gone = true});
	assert_sites(&life, "image.image", 1, false);
	life_crash(&life); /* before it was committed */
	life_begin(&life);
	assert_sites(&life, "image.image", 3, false);
	remove_state(&life, 2);
	remove_state(&life, 1);
	assert_sites(&life, "image.image", 0, false);
	assert_false(atomic_load(&life.engine.spread.any));
	assert_int_equal(engine_commit(&life.engine), 0);
	life_crash(&life);
	life_begin(&life);
	assert_sites(&life, "image.image", 0, false);
	life_crash(&life);
	life_remove(&life);
}

static void who_has_the_other_parts(void **test)
{
	(void)test;
	struct life life;
	life_new(&life);
	life_begin(&life);
	put_state(&life, 1, &(struct state){.span = REPLICA_DIVIDED, .holders = 6, .pools = true});
	put_state(&life, 2, &(struct state){.span = REPLICA_PLACED, .holders = 1, .pools = true});
	assert_sites(&life, "image.pool", 7, true);
	put_state(&life, 1, &(struct state){.span = REPLICA_DIVIDED, .holders = 4, .pools = true}); /* one is withdrawn */
	assert_sites(&life, "image.pool", 5, true);
	put_state(&life, 1, &(struct state){.span = REPLICA_DIVIDED, .holders = 4, .pools = true, .gone = true});
	assert_sites(&life, "image.pool", 1, false);
	life_crash(&life);
	life_remove(&life);
}

/* A store of a version that did not count. */
static void what_was_not_counted_is(void **test)
{
	(void)test;
	struct life life;
	life_new(&life);
	life_begin(&life);
	put_state(&life, 1, &(struct state){.span = REPLICA_PLACED, .holders = 1});
	put_state(&life, 2, &(struct state){.span = REPLICA_DIVIDED, .holders = 2, .pools = true});
	struct buf prefix = {0};
	for (int i = 0; i < 2; i++) {
		buf_clear(&prefix);
		replica_local_prefix(STR("image"), i ? STR("image.pool") : STR("image.image"), &prefix);
		engine_row_remove(&life.engine, TABLE, buf_str(&prefix));
	}
	buf_free(&prefix);
	engine_row_remove(&life.engine, TABLE, str_make("\0", 1));
	assert_int_equal(engine_commit(&life.engine), 0);
	for (int i = 0; i < 2; i++) {
		life_crash(&life);
		life_begin(&life);
		assert_sites(&life, "image.image", 1, false);
		assert_sites(&life, "image.pool", 2, true);
	}
	life_crash(&life);
	life_remove(&life);
}

static uint64_t draw(uint64_t *random)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return *random >> 33;
}

struct model {
	struct state states[IDS];
	bool there[IDS];
};

static void check(struct life *life, const struct model *model)
{
	uint32_t sites[2] = {0};
	bool divided[2] = {false};
	for (uint32_t i = 0; i < IDS; i++) {
		const struct state *state = &model->states[i];
		bool counts = state->span == REPLICA_DIVIDED || (state->span == REPLICA_PLACED && !state->here);
		if (!model->there[i] || state->gone || !counts)
			continue;
		sites[state->pools] |= state->holders;
		divided[state->pools] |= state->span == REPLICA_DIVIDED;
	}
	assert_sites(life, "image.image", sites[0], divided[0]);
	assert_sites(life, "image.pool", sites[1], divided[1]);
}

/* Whatever comes and goes, is committed or lost. */
static void it_is_as_if_counted_anew(void **test)
{
	(void)test;
	for (uint64_t seed = 1; seed <= 20; seed++) {
		struct life life;
		struct model committed = {0}, now = {0};
		uint64_t random = seed;
		life_new(&life);
		life_begin(&life);
		for (int step = 0; step < 200; step++) {
			uint8_t id = (uint8_t)(draw(&random) % IDS);
			uint64_t what = draw(&random) % 16;
			if (what == 0) {
				assert_int_equal(engine_commit(&life.engine), 0);
				committed = now;
			} else if (what == 1) {
				life_crash(&life);
				life_begin(&life);
				now = committed;
			} else if (what < 5) {
				remove_state(&life, id);
				now.there[id] = false;
			} else {
				struct state state = {.span = id / 2 % REPLICA_SPANS, /* which never changes */
				                      .holders = 1 + (uint32_t)(draw(&random) % ((1 << SITES) - 1)),
				                      .here = draw(&random) % 3 == 0,
				                      .gone = draw(&random) % 4 == 0,
				                      .pools = id % 2};
				put_state(&life, id, &state);
				now.states[id] = state;
				now.there[id] = true;
			}
			check(&life, &now);
		}
		life_crash(&life);
		life_remove(&life);
	}
}

/* Loops of the data plane ask while the engine's thread counts. */
struct asker {
	struct life *life;
	atomic_bool stop;
	bool wrong;
};

static void *ask_on(void *context)
{
	struct asker *asker = context;
	while (!atomic_load(&asker->stop)) {
		struct engine_spread spread;
		if (!engine_spread(&asker->life->engine, STR("image"), STR("image.image"), &spread))
			continue;
		for (uint32_t i = 0; i < spread.count; i++)
			asker->wrong |= spread.sites[i] < 8 || spread.sites[i] >= 8 + SITES;
	}
	return NULL;
}

static void who_asks_meanwhile(void **test)
{
	(void)test;
	struct life life;
	pthread_t thread;
	life_new(&life);
	life_begin(&life);
	struct asker asker = {.life = &life};
	assert_int_equal(pthread_create(&thread, NULL, ask_on, &asker), 0);
	for (uint32_t i = 0; i < 2000; i++) {
		struct state state = {.span = REPLICA_PLACED, .holders = 1 + i % ((1 << SITES) - 1), .gone = i % 3 == 0};
		put_state(&life, (uint8_t)(i % IDS), &state);
		if (i % 100 == 0)
			assert_int_equal(engine_commit(&life.engine), 0);
	}
	atomic_store(&asker.stop, true);
	pthread_join(thread, NULL);
	assert_false(asker.wrong);
	life_crash(&life);
	life_remove(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_holds_what_is_witnessed), cmocka_unit_test(who_has_the_other_parts),
		cmocka_unit_test(what_was_not_counted_is),     cmocka_unit_test(it_is_as_if_counted_anew),
		cmocka_unit_test(who_asks_meanwhile),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
