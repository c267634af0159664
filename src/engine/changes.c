/* What happened to replicated resources, for those who follow it: a journal of the last changes.
 *
 * What src/replica tells of in one batch is put into the store in the same commit as what it tells of, as one row: so nothing is told of
 * that did not happen, and nothing is forgotten by a crash. After the commit it goes into a ring in memory, which is what readers
 * are given; a start fills the ring from the store. As many are kept as the ring holds; older rows are removed.
 *
 *     key   number of the first, 8 bytes
 *     row   version (1), then for each change 46 bytes: when (8, ms since 1970), kind (1), the resource (16), the operation's site
 *           (8) and number (4), the member (8), its state (1); and of a merge 16 more: what it has become; of one at risk: what it
 *           relies on, or zeros
 *
 * Numbers go on where they stopped. A store that has none begins with the clock's, so that those of an earlier store are behind.
 */
#include "engine/engine_int.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/timestamp.h"

#include <stdlib.h>

enum { JOURNAL_VERSION = 1 };

struct journal_row {
	uint64_t first;
	uint32_t count;
};

static const enum replica_table TABLE = (enum replica_table)ENGINE_CHANGES;

/* ---- Rows ------------------------------------------------------------------------------------------------------------ */

static void put_id(struct buf *out, struct replica_id id)
{
	buf_put(out, str_make((const char *)id.bytes, sizeof(id.bytes)));
}

static void read_id(struct reader *reader, struct replica_id *id)
{
	struct str bytes = read_bytes(reader, sizeof(id->bytes));
	if (bytes.length == sizeof(id->bytes))
		memcpy(id->bytes, bytes.at, bytes.length);
}

static void change_put(struct buf *out, const struct replica_event *event, uint64_t wall_ms)
{
	put_number(out, wall_ms, 8);
	put_number(out, event->kind, 1);
	put_id(out, event->op.replicant);
	put_number(out, event->op.site, 8);
	put_number(out, event->op.number, 4);
	put_number(out, event->member, 8);
	put_number(out, event->state, 1);
	if (event->kind == REPLICA_EVENT_MERGED || event->kind == REPLICA_EVENT_AT_RISK ||
	    event->kind == REPLICA_EVENT_NAME_LOST)
		put_id(out, event->into);
}

static bool change_read(struct reader *reader, struct engine_change *change)
{
	struct replica_event *event = &change->event;
	change->wall_ms = read_64(reader);
	uint8_t kind = read_8(reader);
	read_id(reader, &event->op.replicant);
	event->op.site = read_64(reader);
	event->op.number = read_32(reader);
	event->member = read_64(reader);
	uint8_t state = read_8(reader);
	if (kind == REPLICA_EVENT_MERGED || kind == REPLICA_EVENT_AT_RISK || kind == REPLICA_EVENT_NAME_LOST)
		read_id(reader, &event->into);
	event->kind = (enum replica_event_kind)kind;
	event->state = (enum replica_member_state)state;
	return !reader->failed && kind < REPLICA_EVENT_KINDS && state < REPLICA_MEMBER_STATES;
}

static void row_note(struct changes *changes, uint64_t first, uint32_t count)
{
	if (changes->rows_count == changes->rows_capacity) {
		changes->rows_capacity = changes->rows_capacity ? 2 * changes->rows_capacity : 64;
		changes->rows = realloc(changes->rows, changes->rows_capacity * sizeof(*changes->rows));
		CHECK(changes->rows);
	}
	changes->rows[changes->rows_count++] = (struct journal_row){first, count};
	changes->stored += count;
}

static void ring_put(struct changes *changes, const struct engine_change *change)
{
	changes->ring[change->number % LIMIT_ENGINE_CHANGES] = *change;
	changes->last = change->number;
	if (changes->last - changes->before > LIMIT_ENGINE_CHANGES)
		changes->before = changes->last - LIMIT_ENGINE_CHANGES;
}

/* ---- At a start ------------------------------------------------------------------------------------------------------- */

struct loading {
	struct changes *changes;
	bool damaged;
};

static bool load_row(void *context, struct str key, struct str row)
{
	struct loading *loading = context;
	struct changes *changes = loading->changes;
	struct reader keys = reader_of(key), reader = reader_of(row);
	uint64_t first = read_64(&keys);
	bool good = !keys.failed && keys.left == 0 && first > 0 && read_8(&reader) == JOURNAL_VERSION && reader.left > 0 &&
	            (changes->rows_count == 0 || first == changes->last + 1);
	if (good && changes->rows_count == 0)
		changes->before = changes->last = first - 1;
	uint32_t count = 0;
	for (; good && reader.left > 0; count++) {
		struct engine_change change = {.number = first + count};
		good = change_read(&reader, &change);
		if (good)
			ring_put(changes, &change);
	}
	if (good)
		row_note(changes, first, count);
	loading->damaged = !good;
	return good;
}

static void key_put(struct buf *key, uint64_t first)
{
	buf_clear(key);
	put_number(key, first, 8);
}

static bool note_key(void *context, struct str key, struct str row)
{
	struct buf *keys = context;
	(void)row;
	put_number(keys, key.length, 2);
	buf_put(keys, key);
	return true;
}

/* Whatever cannot be read is as if it were too old: readers are told that they have missed some. All rows go, not only those that were
 * read: what stays would be met again at each start. */
static int forget_all(struct engine *engine)
{
	struct buf keys = {0};
	int code = engine_row_scan(engine, TABLE, STR(""), STR(""), note_key, &keys);
	struct reader reader = reader_of(buf_str(&keys));
	while (code == 0 && reader.left > 0) {
		uint16_t length = read_16(&reader);
		engine_row_remove(engine, TABLE, read_bytes(&reader, length));
	}
	buf_free(&keys);
	engine->changes.rows_count = 0;
	engine->changes.stored = 0;
	return code;
}

int engine_changes_load(struct engine *engine, struct err *err)
{
	struct changes *changes = &engine->changes;
	struct loading loading = {.changes = changes};
	uint64_t now = engine_now().wall_ms * 1000, told = changes->last - changes->first;
	changes->rows_count = 0;
	changes->stored = 0;
	int code = engine_row_scan(engine, TABLE, STR(""), STR(""), load_row, &loading);
	if (code == 0 && loading.damaged) {
		log_event(engine->options.log, LOG_WARN, "the journal of changes cannot be read; it begins anew");
		code = forget_all(engine);
	}
	if (code != 0)
		return err_set(err, code, "the store cannot be read: %s", engine->failure.text);
	if (changes->rows_count == 0) {
		uint64_t last = changes->last + 1 > now ? changes->last + 1 : now;
		changes->last = changes->before = last;
	}
	changes->first = changes->last - told;
	return 0;
}

void engine_changes_free(struct engine *engine)
{
	free(engine->changes.rows);
}

/* ---- As they come ----------------------------------------------------------------------------------------------------- */

static void remove_old(struct engine *engine)
{
	struct changes *changes = &engine->changes;
	struct buf key = {0};
	uint32_t old = 0;
	while (old + 1 < changes->rows_count && changes->stored - changes->rows[old].count >= LIMIT_ENGINE_CHANGES) {
		key_put(&key, changes->rows[old].first);
		engine_row_remove(engine, TABLE, buf_str(&key));
		changes->stored -= changes->rows[old++].count;
	}
	buf_free(&key);
	if (old == 0)
		return;
	memmove(changes->rows, changes->rows + old, (changes->rows_count - old) * sizeof(*changes->rows));
	changes->rows_count -= old;
}

void engine_changes_store(struct engine *engine)
{
	struct changes *changes = &engine->changes;
	struct buf row = {0}, key = {0};
	uint32_t count = 0;
	uint64_t wall_ms = engine_now().wall_ms;
	for (struct action *action = engine->first; action; action = action->next) {
		if (action->kind != ACTION_EVENT)
			continue;
		if (count++ == 0)
			put_number(&row, JOURNAL_VERSION, 1);
		action->wall_ms = wall_ms;
		change_put(&row, &action->event, wall_ms);
	}
	if (count > 0) {
		key_put(&key, changes->last + 1);
		engine_row_put(engine, TABLE, buf_str(&key), buf_str(&row));
		row_note(changes, changes->last + 1, count);
		remove_old(engine);
	}
	buf_free(&row);
	buf_free(&key);
}

void engine_changes_add(struct engine *engine, const struct replica_event *event, uint64_t wall_ms)
{
	ring_put(&engine->changes, &(struct engine_change){engine->changes.last + 1, wall_ms, *event});
	engine_waits_mark(engine, &event->op.replicant);
}

/* ---- As they are told -------------------------------------------------------------------------------------------------- */

const char *engine_change_name(enum replica_event_kind kind)
{
	switch (kind) {
	case REPLICA_EVENT_OPERATION: return "operation";
	case REPLICA_EVENT_REPLICANT: return "replicant";
	case REPLICA_EVENT_REPAIRED: return "repaired";
	case REPLICA_EVENT_CONFLICT: return "conflict";
	case REPLICA_EVENT_MERGED: return "merged";
	case REPLICA_EVENT_AT_RISK: return "at-risk";
	case REPLICA_EVENT_SAFE: return "safe";
	case REPLICA_EVENT_NAME_LOST: return "name-lost";
	case REPLICA_EVENT_KINDS: break;
	}
	UNREACHABLE();
}

static void put_site(struct buf *out, site_id site, const struct site_snapshot *sites)
{
	uint32_t place = sites ? site_snapshot_find(sites, site) : SCOPE_NO_INDEX;
	buf_put(out, STR(",\"site\":"));
	if (place == SCOPE_NO_INDEX)
		buf_printf(out, "\"%016llx\"", (unsigned long long)site);
	else
		buf_put_json(out, sites->places[place].name);
}

/* The first of what it relies on; all of it is shown with the resource. */
static void put_risk(struct buf *out, const struct replica_event *event, const struct site_snapshot *sites)
{
	static const struct replica_id none;
	if (memcmp(&event->into, &none, sizeof(none)) != 0) {
		buf_put(out, STR(",\"relies_on\":\""));
		replica_id_put(event->into, out);
		buf_put_char(out, '"');
	}
	if (event->member != 0)
		put_site(out, event->member, sites);
	buf_printf(out, ",\"why\":\"%s\"", event->member != 0 ? "unreachable" : "gone");
}

void engine_change_put(struct buf *out, const struct engine_change *change, const struct site_snapshot *sites)
{
	const struct replica_event *event = &change->event;
	char at[TIMESTAMP_BYTES];
	buf_put(out, STR("{\"replicant\":\""));
	replica_id_put(event->op.replicant, out);
	buf_put_char(out, '"');
	if (event->op.number > 0) {
		buf_put(out, STR(",\"operation\":\""));
		replica_op_id_put(event->op, out);
		buf_put_char(out, '"');
	}
	if (event->kind == REPLICA_EVENT_MERGED) {
		buf_put(out, STR(",\"into\":\""));
		replica_id_put(event->into, out);
		buf_put_char(out, '"');
	}
	if (event->kind == REPLICA_EVENT_NAME_LOST) {
		buf_put(out, STR(",\"holder\":\""));
		replica_id_put(event->into, out);
		buf_put_char(out, '"');
	}
	if (event->kind == REPLICA_EVENT_OPERATION || event->kind == REPLICA_EVENT_NAME_LOST)
		put_site(out, event->member, sites);
	if (event->kind == REPLICA_EVENT_OPERATION)
		buf_printf(out, ",\"state\":\"%s\"", replica_member_state_name(event->state));
	if (event->kind == REPLICA_EVENT_AT_RISK)
		put_risk(out, event, sites);
	timestamp_format((int64_t)change->wall_ms, at);
	buf_printf(out, ",\"at\":\"%s\"}", at);
}
