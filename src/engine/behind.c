/* Rows on their way to the store.
 *
 * An operation changes the same few rows again and again: its replicant's with each report that comes, its lane with each step, its own row
 * and those of the outbox are there for a tenth of a second. To put each of these into the store's tree, and to look up there what was put
 * a moment ago, is most of what the store costs. So rows are kept here, as src/replica has them, until the store is committed:
 *   1. a row that is put or removed is kept, under its table and key; only the last state of it counts. It is looked for here first
 *   2. at a commit those that changed since the last one are noted in the journal (journal.c), sealed where they are. So a row that
 *      changed ten times in a batch is sealed and noted once
 *   3. when the store itself is committed, all go into its session, and are not kept any longer, but for some of the replicants
 *   4. who goes through a table (engine_row_scan()) has its rows put into the session first: what was put there is in order
 * What is here and in the journal is durable; what is here alone is lost with the batch, as a session is that is given up.
 *
 * What the store would refuse (too long, full) is refused when it is put, before anybody was told anything: store_put_check(). How
 * much is here is bounded, by the journal's length and by ENGINE_BEHIND_ROWS: past that the store is committed. Each row may change a page, and
 * for so many the store has room past its bound; where that is set so low that it has not (ENGINE_BEHIND_LEAST), rows go into the session
 * at once, as they do where this was not opened. */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

struct behind_row {
	struct behind_row *next_new;   /* of those that the journal has not */
	struct behind_row *next_dirty; /* of its table: those that the store's session has not */
	uint8_t table;
	bool new, dirty;
	bool removed;
	struct buf row;    /* as src/replica has it */
	struct buf sealed; /* as it is stored, where that is something else; empty: not made yet */
	struct str key;
	char bytes[];
};

void engine_behind_open(struct engine *engine)
{
	struct behind *behind = &engine->behind;
	struct store_usage usage;
	behind->last_new = &behind->new;
	for (int i = 0; i < ENGINE_TABLES; i++)
		map_init(&behind->rows[i], engine->options.hash_key);
	behind->on = store_usage(engine->store, &usage, NULL) == 0 &&
	             (usage.bytes_most == 0 || usage.bytes_most >= ENGINE_BEHIND_LEAST);
}

/* What is sealed on disk is not left lying about. */
static void wipe(struct behind_row *row)
{
	if (row->row.length > 0 && engine_row_is_sealed(row->table))
		explicit_bzero(row->row.at, row->row.length);
	buf_clear(&row->row);
}

static void row_free(struct behind_row *row)
{
	wipe(row);
	buf_free(&row->row);
	buf_free(&row->sealed);
	free(row);
}

static void drop_table(struct behind *behind, int table)
{
	struct map *rows = &behind->rows[table];
	size_t cursor = 0;
	struct str key;
	void *row;
	while (map_next(rows, &cursor, &key, &row))
		row_free(row);
	behind->count -= (uint32_t)rows->count;
	struct hash_key hash_key = rows->key;
	map_free(rows);
	map_init(rows, hash_key);
	behind->dirty[table] = NULL;
}

static void forget_new(struct behind *behind)
{
	behind->new = NULL;
	behind->last_new = &behind->new;
}

void engine_behind_drop(struct engine *engine)
{
	for (int i = 0; i < ENGINE_TABLES; i++)
		drop_table(&engine->behind, i);
	forget_new(&engine->behind);
}

/* A replicant that changed will change again, and what it was is looked at then (engine_journal_look()): it stays, as long as they
 * are few. */
void engine_behind_settled(struct engine *engine)
{
	struct behind *behind = &engine->behind;
	for (int i = 0; i < ENGINE_TABLES; i++)
		if (i != REPLICA_REPLICANTS || behind->rows[i].count > ENGINE_BEHIND_KEPT)
			drop_table(behind, i);
	forget_new(behind);
}

/* ---- Rows ------------------------------------------------------------------------------------------------------------ */

static struct behind_row *row_of(struct behind *behind, uint32_t table, struct str key)
{
	struct behind_row *row = map_get(&behind->rows[table], key);
	if (row)
		return row;
	row = malloc(sizeof(*row) + key.length);
	CHECK(row);
	*row = (struct behind_row){.table = (uint8_t)table, .key = str_make(row->bytes, key.length)};
	if (key.length > 0)
		memcpy(row->bytes, key.at, key.length);
	map_set(&behind->rows[table], row->key, row);
	behind->count++;
	return row;
}

static void change(struct behind *behind, struct behind_row *row, bool removed)
{
	row->removed = removed;
	wipe(row);
	buf_clear(&row->sealed);
	if (!row->new) {
		row->next_new = NULL;
		*behind->last_new = row;
		behind->last_new = &row->next_new;
	}
	if (!row->dirty) {
		row->next_dirty = behind->dirty[row->table];
		behind->dirty[row->table] = row;
	}
	row->new = row->dirty = true;
}

void engine_behind_put(struct engine *engine, uint32_t table, struct str key, struct str row)
{
	struct behind_row *kept = row_of(&engine->behind, table, key);
	change(&engine->behind, kept, false);
	buf_put(&kept->row, row);
}

void engine_behind_remove(struct engine *engine, uint32_t table, struct str key)
{
	change(&engine->behind, row_of(&engine->behind, table, key), true);
}

enum behind_found engine_behind_get(const struct engine *engine, uint32_t table, struct str key, struct str *row)
{
	const struct behind_row *kept = map_get(&engine->behind.rows[table], key);
	if (!kept)
		return BEHIND_UNKNOWN;
	*row = buf_str(&kept->row);
	return kept->removed ? BEHIND_REMOVED : BEHIND_HERE;
}

/* ---- On their way ---------------------------------------------------------------------------------------------------- */

static struct str stored_form(struct engine *engine, struct behind_row *row)
{
	if (!engine_row_is_sealed(row->table))
		return buf_str(&row->row);
	if (row->sealed.length == 0)
		engine_row_seal(engine, row->table, row->key, buf_str(&row->row), &row->sealed);
	return buf_str(&row->sealed);
}

void engine_behind_note(struct engine *engine)
{
	struct behind *behind = &engine->behind;
	for (struct behind_row *row = behind->new; row; row = row->next_new) {
		row->new = false;
		if (row->removed)
			engine_journal_remove(engine, row->table, row->key);
		else if (engine_journal_takes(engine))
			engine_journal_put(engine, row->table, row->key, stored_form(engine, row));
	}
	forget_new(behind);
	if (behind->count > ENGINE_BEHIND_ROWS)
		engine->journal.seen = true;
}

void engine_behind_spill(struct engine *engine, uint32_t table)
{
	struct behind *behind = &engine->behind;
	for (struct behind_row *row = behind->dirty[table]; row && engine->failure.code == 0; row = row->next_dirty) {
		row->dirty = false;
		behind->dirty[table] = row->next_dirty;
		if (!row->removed) {
			store_put(engine->session, table, row->key, stored_form(engine, row), &engine->failure);
			continue;
		}
		int code = store_delete(engine->session, table, row->key, NULL);
		if (code && code != ERR_NOT_FOUND)
			err_set(&engine->failure, code, "a row cannot be removed: %s", err_phrase(code));
	}
}

void engine_behind_settle(struct engine *engine)
{
	for (uint32_t table = 0; table < ENGINE_TABLES && engine->session; table++)
		engine_behind_spill(engine, table);
}
