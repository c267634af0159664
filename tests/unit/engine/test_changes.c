/* What happened, for those who follow it: after a restart they go on where they were. */
#include "life.h"

#include "base/bytes.h"

static const enum replica_table TABLE = (enum replica_table)ENGINE_CHANGES;

static struct replica_event event_of(enum replica_event_kind kind, uint8_t about)
{
	struct replica_event event = {.kind = kind, .state = REPLICA_APPLIED, .member = LIFE_SELF};
	event.op.replicant.bytes[0] = about;
	event.op.site = LIFE_SELF;
	event.op.number = 1;
	if (kind == REPLICA_EVENT_MERGED || kind == REPLICA_EVENT_AT_RISK)
		event.into.bytes[15] = about;
	return event;
}

/* All of these happen in one commit. */
static void happen(struct life *life, const struct replica_event *events, uint32_t count)
{
	struct engine *engine = &life->engine;
	struct action actions[8] = {{0}};
	for (uint32_t i = 0; i < count; i++) {
		actions[i] = (struct action){.kind = ACTION_EVENT, .event = events[i]};
		engine_hold(engine, &actions[i]);
	}
	engine_changes_store(engine);
	assert_int_equal(engine_commit(engine), 0);
	for (uint32_t i = 0; i < count; i++)
		engine_changes_add(engine, &events[i], actions[i].wall_ms);
	engine->first = NULL;
	engine->last = &engine->first;
}

static const struct engine_change *change_at(const struct life *life, uint64_t number)
{
	const struct changes *changes = &life->engine.changes;
	assert_true(number > changes->before && number <= changes->last);
	return &changes->ring[number % LIMIT_ENGINE_CHANGES];
}

static void restart(struct life *life)
{
	life_crash(life);
	life_begin(life);
}

static bool count_row(void *context, struct str key, struct str row)
{
	(void)key;
	(void)row;
	++*(uint32_t *)context;
	return true;
}

static uint32_t rows(struct life *life)
{
	uint32_t count = 0;
	assert_int_equal(engine_row_scan(&life->engine, TABLE, STR(""), STR(""), count_row, &count), 0);
	return count;
}

/* Whatever kind they are of. */
static void all_are_there_again(void **state)
{
	(void)state;
	struct life life;
	struct replica_event events[REPLICA_EVENT_KINDS];
	life_new(&life);
	life_begin(&life);
	uint64_t before = life.engine.changes.last;
	for (uint8_t kind = 0; kind < REPLICA_EVENT_KINDS; kind++)
		events[kind] = event_of((enum replica_event_kind)kind, (uint8_t)(kind + 1));
	happen(&life, events, REPLICA_EVENT_KINDS);
	happen(&life, events, 1);
	uint64_t last = life.engine.changes.last;
	assert_int_equal(last, before + REPLICA_EVENT_KINDS + 1);
	restart(&life);
	assert_int_equal(life.engine.changes.last, last);
	assert_int_equal(life.engine.changes.before, before);
	for (uint32_t kind = 0; kind < REPLICA_EVENT_KINDS; kind++) {
		const struct engine_change *change = change_at(&life, before + 1 + kind);
		assert_int_equal(change->number, before + 1 + kind);
		assert_int_equal(change->event.kind, kind);
		assert_memory_equal(&change->event.op.replicant, &events[kind].op.replicant, 16);
		assert_memory_equal(&change->event.into, &events[kind].into, 16);
		assert_int_equal(change->event.state, REPLICA_APPLIED);
		assert_int_equal(change->event.member, LIFE_SELF);
	}
	life_crash(&life);
	life_remove(&life);
}

/* It begins anew, behind all that was: who followed is told that he missed some. The next start finds nothing of it any more. */
static void what_makes_no_sense_is_gone(void **state)
{
	(void)state;
	struct life life;
	struct replica_event event = event_of(REPLICA_EVENT_REPLICANT, 1);
	struct buf key = {0};
	life_new(&life);
	life_begin(&life);
	for (uint32_t i = 0; i < 3; i++)
		happen(&life, &event, 1);
	uint64_t last = life.engine.changes.last;
	put_number(&key, last - 1, 8);
	engine_row_put(&life.engine, TABLE, buf_str(&key), STR("\001and nothing that was ever written"));
	assert_int_equal(engine_commit(&life.engine), 0);
	restart(&life);
	assert_true(life.engine.changes.last > last && life.engine.changes.before == life.engine.changes.last);
	assert_int_equal(rows(&life), 0);
	uint64_t anew = life.engine.changes.last;
	happen(&life, &event, 1);
	restart(&life);
	assert_int_equal(life.engine.changes.before, anew);
	assert_int_equal(life.engine.changes.last, anew + 1);
	assert_int_equal(rows(&life), 1);
	buf_free(&key);
	life_crash(&life);
	life_remove(&life);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(all_are_there_again),
	                                   cmocka_unit_test(what_makes_no_sense_is_gone)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
