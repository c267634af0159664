/* The tables of src/replica in the store.
 *
 * All of a batch happens in one writing session, which begins with the first row that is asked for and ends with a commit of the store;
 * most batches end before, with one of the journal (journal.c). What is put gets there when the session ends (behind.c).
 * Rows that have requests in them, and so perhaps credentials, are sealed with the key of this site.
 *
 * A store that fails is noted; from then on rows are not found and nothing is put, and the batch as a whole is given up.
 */
#include "engine/engine_int.h"
#include "engine/relations.h"

static const struct store_table tables[ENGINE_TABLES] = {
	[REPLICA_REPLICANTS] = {.name = "replicants", .version = 1},
	[REPLICA_OPERATIONS] = {.name = "operations", .version = 1},
	[REPLICA_LANES] = {.name = "lanes", .version = 1},
	[REPLICA_OUTBOX] = {.name = "outbox", .version = 1},
	[REPLICA_LOCALS] = {.name = "locals", .version = 1},
	[REPLICA_NAMES] = {.name = "names", .version = 1},
	[REPLICA_KEYS] = {.name = "keys", .version = 1},
	[REPLICA_BLOBS] = {.name = "blobs", .version = 1},
	[REPLICA_META] = {.name = "meta", .version = 1},
	[ENGINE_CHANGES] = {.name = "changes", .version = 1},
	[ENGINE_HOOKS] = {.name = "hooks", .version = 1},
	[ENGINE_CROSS_CONTAINERS] = {.name = "cross-containers", .version = 1},
	[ENGINE_CROSS_CLAIMS] = {.name = "cross-claims", .version = 1},
	[ENGINE_CROSS_NAMES] = {.name = "cross-names", .version = 1},
	[ENGINE_CROSS_RIVALS] = {.name = "cross-rivals", .version = 1},
	[ENGINE_CROSS_META] = {.name = "cross-meta", .version = 1},
	[ENGINE_CROSS_CHILDREN] = {.name = "cross-children", .version = 1},
	[ENGINE_RELATIONS] = {.name = "relations", .version = 1},
	[ENGINE_SPREAD] = {.name = "spread", .version = 1},
	[ENGINE_DIVISIONS] = {.name = "divisions", .version = 1},
};

const struct store_schema engine_schema = {.tables = tables, .tables_count = ENGINE_TABLES};

static struct store_session *session_of(struct engine *engine)
{
	if (!engine->session && engine->failure.code == 0)
		store_begin_write(engine->store, &engine->session, &engine->failure);
	return engine->failure.code == 0 ? engine->session : NULL;
}

bool engine_row_is_sealed(uint32_t table)
{
	return table == REPLICA_OPERATIONS || table == REPLICA_LANES;
}

/* A row is bound to its place: the table and the key. */
static void put_place(struct buf *out, uint32_t table, struct str key)
{
	buf_clear(out);
	buf_put_char(out, (char)table);
	buf_put(out, key);
}

void engine_row_seal(struct engine *engine, uint32_t table, struct str key, struct str row, struct buf *out)
{
	put_place(&engine->place, table, key);
	trust_box_seal(engine->box, buf_str(&engine->place), row, out);
}

static int open_row(struct engine *engine, enum replica_table table, struct str key, struct str sealed, struct buf *row)
{
	if (!engine_row_is_sealed(table)) {
		buf_put(row, sealed);
		return 0;
	}
	put_place(&engine->place, table, key);
	return trust_box_open(engine->box, buf_str(&engine->place), sealed, row, &engine->failure);
}

int engine_row_get(void *context, enum replica_table table, struct str key, struct buf *row)
{
	struct engine *engine = context;
	struct store_session *session = session_of(engine);
	if (!session)
		return engine->failure.code;
	struct str found;
	switch (engine_behind_get(engine, table, key, &found)) {
	case BEHIND_HERE: buf_put(row, found); return 0;
	case BEHIND_REMOVED: return ERR_NOT_FOUND;
	case BEHIND_UNKNOWN: break;
	}
	int code = store_get(session, table, key, &found, NULL);
	if (code == 0)
		return open_row(engine, table, key, found, row);
	if (code != ERR_NOT_FOUND &&
	    store_get(session, table, key, &found, &engine->failure) == 0) /* what is wrong with it */
		err_set(&engine->failure, code, "a row of table `%s` cannot be read: %s", tables[table].name, err_phrase(code));
	return code;
}

int engine_row_before(struct engine *engine, uint32_t table, struct str key, struct str *row)
{
	enum behind_found found = engine_behind_get(engine, table, key, row);
	if (found == BEHIND_UNKNOWN)
		return store_get(engine->session, table, key, row, NULL);
	return found == BEHIND_HERE ? 0 : ERR_NOT_FOUND;
}

/* Into the session at once. */
static void put_through(struct engine *engine, enum replica_table table, struct str key, struct str row)
{
	if (engine_row_is_sealed(table)) {
		buf_clear(&engine->sealed);
		engine_row_seal(engine, table, key, row, &engine->sealed);
		row = buf_str(&engine->sealed);
	}
	if (store_put(engine->session, table, key, row, &engine->failure) == 0)
		engine_journal_put(engine, table, key, row);
}

void engine_row_put(void *context, enum replica_table table, struct str key, struct str row)
{
	struct engine *engine = context;
	struct store_session *session = session_of(engine);
	size_t more = engine_row_is_sealed(table) ? TRUST_BOX_EXTRA_BYTES : 0;
	if (!session || store_put_check(session, table, key, row.length + more, &engine->failure) != 0)
		return;
	if (table == REPLICA_REPLICANTS)
		engine_relations_row(engine, key, &row);
	struct spread_change change;
	bool spreads = table == REPLICA_REPLICANTS && engine_spread_look(engine, key, &row, &change);
	engine_journal_look(engine, table, key, &row);
	engine_sieve_add(engine, table, key);
	if (engine->behind.on)
		engine_behind_put(engine, table, key, row);
	else
		put_through(engine, table, key, row);
	if (table == REPLICA_REPLICANTS)
		atomic_store_explicit(&engine->any, true, memory_order_relaxed);
	if (spreads)
		engine_spread_apply(engine, &change);
	engine_standing_row(engine, table, key);
}

static int remove_through(struct engine *engine, enum replica_table table, struct str key)
{
	int code = store_delete(engine->session, table, key, NULL);
	if (code == 0) {
		engine_journal_look(engine, table, key, NULL);
		engine_journal_remove(engine, table, key);
	}
	return code;
}

static int remove_behind(struct engine *engine, enum replica_table table, struct str key)
{
	struct str row;
	int code = engine_row_before(engine, table, key, &row);
	if (code == 0) {
		engine_journal_look(engine, table, key, NULL);
		engine_behind_remove(engine, table, key);
	}
	return code;
}

void engine_row_remove(void *context, enum replica_table table, struct str key)
{
	struct engine *engine = context;
	if (!session_of(engine))
		return;
	if (table == REPLICA_REPLICANTS)
		engine_relations_row(engine, key, NULL);
	struct spread_change change;
	bool spreads = table == REPLICA_REPLICANTS && engine_spread_look(engine, key, NULL, &change);
	int code = engine->behind.on ? remove_behind(engine, table, key) : remove_through(engine, table, key);
	if (spreads)
		engine_spread_apply(engine, &change);
	engine_standing_row(engine, table, key);
	if (code && code != ERR_NOT_FOUND)
		err_set(&engine->failure, code, "a row of table `%s` cannot be removed: %s", tables[table].name,
		        err_phrase(code));
}

int engine_row_scan(void *context, enum replica_table table, struct str prefix, struct str from,
                    bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct engine *engine = context;
	struct store_session *session = session_of(engine);
	struct store_cursor *cursor;
	if (session)
		engine_behind_spill(engine, table);
	if (!session || engine->failure.code)
		return engine->failure.code;
	int code = store_scan(session, &(struct store_range){.table = table, .index = -1, .prefix = prefix, .from = from},
	                      &cursor, &engine->failure);
	if (code)
		return code;
	struct store_row row;
	struct buf opened = {0};
	bool more = true;
	while (more && (code = store_next(cursor, &row, &engine->failure)) > 0) {
		buf_clear(&opened);
		code = open_row(engine, table, row.key, row.row, &opened);
		more = code == 0 && each(each_context, row.key, buf_str(&opened));
	}
	if (opened.at)
		explicit_bzero(opened.at, opened.length);
	buf_free(&opened);
	store_cursor_free(cursor);
	return code < 0 ? code : 0;
}
