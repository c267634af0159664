/* How far this site has come with its part of what is divided, for whoever reads parts and puts them together (src/cross/standing.c).
 *
 * A read of a part, in any thread:
 *   1. before the service is asked, the number of the last change is noted: engine_standing_now()
 *   2. the answer is there: engine_standing_put() says of which operations it is, if none was at the service since 1., nor is now
 *
 * In the engine's thread:
 *   1. an operation is about to be run: its resource is being changed, from now on
 *   2. a row of the resource was put: it is looked at again before the next commit. If all that is known here is carried out, and nothing
 *      is at the service, it is settled, and known by a digest of these operations. One that is known and was not begun yet changes nothing: the
 *      part is what it was
 *   3. each of both has a number, greater than those before
 *
 * After a start nothing is known, until what is divided was gone through (follow.c), or somebody has asked for it; until then `?` is said. What is here
 * is in memory only: an entry for each divided resource. */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

struct standing_part {
	uint64_t changed;
	struct cross_standing now;
	bool due;
	struct replica_id id; /* its key */
};

void engine_standings_open(struct engine *engine)
{
	pthread_rwlock_init(&engine->standings.lock, NULL);
	map_init(&engine->standings.parts, engine->options.hash_key);
}

/* In the engine's thread, or when there is none. */
void engine_standings_drop(struct engine *engine)
{
	struct standings *standings = &engine->standings;
	size_t cursor = 0;
	struct str key;
	void *part;
	pthread_rwlock_wrlock(&standings->lock);
	while (map_next(&standings->parts, &cursor, &key, &part))
		free(part);
	map_free(&standings->parts);
	map_init(&standings->parts, engine->options.hash_key);
	buf_clear(&standings->due);
	pthread_rwlock_unlock(&standings->lock);
}

void engine_standings_close(struct engine *engine)
{
	engine_standings_drop(engine);
	map_free(&engine->standings.parts);
	buf_free(&engine->standings.due);
	pthread_rwlock_destroy(&engine->standings.lock);
}

/* ---- In the engine's thread ------------------------------------------------------------------------------------------ */

static struct str key_of(const struct replica_id *id)
{
	return str_make((const char *)id->bytes, sizeof(id->bytes));
}

static uint64_t next_number(struct standings *standings)
{
	return atomic_fetch_add(&standings->changes, 1) + 1;
}

static void note(struct standings *standings, struct standing_part *part)
{
	if (!part->due)
		buf_put(&standings->due, key_of(&part->id));
	part->due = true;
}

static struct standing_part *add(struct engine *engine, struct replica_id id)
{
	struct standings *standings = &engine->standings;
	struct standing_part *part = map_get(&standings->parts, key_of(&id));
	if (part)
		return part;
	part = calloc(1, sizeof(*part));
	CHECK(part);
	part->id = id;
	part->changed = next_number(standings);
	pthread_rwlock_wrlock(&standings->lock);
	map_set(&standings->parts, key_of(&part->id), part);
	pthread_rwlock_unlock(&standings->lock);
	return part;
}

static void set(struct standings *standings, struct standing_part *part, const struct cross_standing *now)
{
	pthread_rwlock_wrlock(&standings->lock);
	part->changed = next_number(standings);
	part->now = *now;
	pthread_rwlock_unlock(&standings->lock);
}

void engine_standing_learn(struct engine *engine, struct replica_id id)
{
	struct standing_part *part = map_get(&engine->standings.parts, key_of(&id));
	if (!part)
		note(&engine->standings, add(engine, id));
}

void engine_standing_changes(struct engine *engine, struct replica_id id)
{
	struct standing_part *part = map_get(&engine->standings.parts, key_of(&id));
	if (part)
		set(&engine->standings, part, &(struct cross_standing){0});
}

void engine_standing_row(struct engine *engine, uint32_t table, struct str key)
{
	struct replica_id id;
	bool divides = table == ENGINE_DIVISIONS;
	if (key.length != sizeof(id.bytes) || (!divides && table != REPLICA_LANES && table != REPLICA_REPLICANTS) ||
	    (!divides && engine->standings.parts.count == 0))
		return;
	memcpy(id.bytes, key.at, sizeof(id.bytes));
	struct standing_part *part = divides ? add(engine, id) : map_get(&engine->standings.parts, key);
	if (part)
		note(&engine->standings, part);
}

static site_id find_lost(struct engine *engine, struct replica_id id, const struct replica_standing *standing)
{
	struct cross_division division;
	return engine_division_get(engine, id, &division)
	           ? cross_division_lost(&division, standing->members, standing->members_count)
	           : 0;
}

static void forget(struct engine *engine, struct standing_part *part)
{
	struct standings *standings = &engine->standings;
	pthread_rwlock_wrlock(&standings->lock);
	map_remove(&standings->parts, key_of(&part->id));
	pthread_rwlock_unlock(&standings->lock);
	free(part);
}

static bool is_same(const struct cross_standing *a, const struct cross_standing *b)
{
	return a->settled == b->settled && a->operations == b->operations && a->digest == b->digest &&
	       a->sites == b->sites && a->lacks == b->lacks && a->lost == b->lost;
}

static void review(struct engine *engine, struct standing_part *part)
{
	struct replica_standing standing;
	part->due = false;
	if (replica_standing(engine->replica, part->id, &standing) != 0) {
		forget(engine, part);
		return;
	}
	struct cross_standing now = part->now;
	if (!standing.quiet) {
		now.settled = false;
	} else if (standing.settled) {
		now.settled = true;
		now.operations = standing.operations;
		now.digest = standing.digest;
	}
	/* Else some are known and not carried out: if none was begun, the part is as it was. */
	now.lacks = standing.lacks;
	now.sites = cross_sites_digest(standing.members, standing.members_count);
	now.lost = find_lost(engine, part->id, &standing);
	if (!is_same(&now, &part->now))
		set(&engine->standings, part, &now);
}

void engine_standings_review(struct engine *engine)
{
	struct buf due = engine->standings.due;
	engine->standings.due = (struct buf){0};
	for (size_t at = 0; at < due.length && engine->replica; at += sizeof(struct replica_id)) {
		struct standing_part *part =
			map_get(&engine->standings.parts, str_make(due.at + at, sizeof(struct replica_id)));
		if (part)
			review(engine, part);
	}
	buf_free(&due);
}

/* ---- In any thread ------------------------------------------------------------------------------------------------------ */

struct question {
	struct http_task task;
	struct engine *engine;
	struct replica_id id;
};

static void take(struct http_task *task)
{
	struct question *question = (struct question *)task;
	struct cross_division division;
	/* What is not divided has no standing. */
	if (question->engine->replica && engine_division_get(question->engine, question->id, &division)) {
		engine_standing_learn(question->engine, question->id);
		engine_changed(question->engine);
	}
	free(question);
}

static void ask(struct engine *engine, struct replica_id id)
{
	struct question *question = calloc(1, sizeof(*question));
	CHECK(question);
	*question = (struct question){.task = {.run = take}, .engine = engine, .id = id};
	http_loop_post(engine->loop, &question->task);
}

uint64_t engine_standing_now(struct engine *engine)
{
	return atomic_load(&engine->standings.changes);
}

struct cross_standing engine_standing(struct engine *engine, struct replica_id id, uint64_t since)
{
	struct standings *standings = &engine->standings;
	struct cross_standing now = {0};
	pthread_rwlock_rdlock(&standings->lock);
	const struct standing_part *part = map_get(&standings->parts, key_of(&id));
	bool known = part != NULL;
	if (known && part->changed <= since)
		now = part->now;
	pthread_rwlock_unlock(&standings->lock);
	if (!known)
		ask(engine, id);
	return now;
}
