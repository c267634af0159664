/* Scans: the rows of a table in order, or those of an index, each fetched by its key.
 *
 * In a reading session nothing moves, and an engine's cursor goes from entry to entry. In a writing one the session may
 * put and delete between two steps: each step looks for the first entry after the last one anew, and what it gives is copied. */
#include "store/store_int.h"

#include "base/check.h"

#include <stdlib.h>

struct store_cursor {
	struct store_session *session;
	uint32_t table;
	int32_t index;
	void *engine_cursor; /* of a reading session */
	bool started;
	struct key begins; /* what the engine's keys have to begin with */
	struct key at;     /* from where; then the last one */
	struct buf index_key;
	struct buf copy; /* writing session: key and row */
};

static int set_bounds(struct store_cursor *cursor, const struct store_range *range, struct err *err)
{
	const struct table_place *place = &cursor->session->store->places[range->table];
	if (range->prefix.length > LIMIT_STORE_KEY_BYTES || range->from.length > LIMIT_STORE_KEY_BYTES)
		return err_set(err, ERR_LIMIT, "a scan's prefix and start have up to %d bytes", LIMIT_STORE_KEY_BYTES);
	int code = 0;
	if (range->index < 0) {
		key_of_row(&cursor->begins, place->space, range->prefix);
		key_of_row(&cursor->at, place->space, range->from);
	} else {
		uint32_t space = place->indexes[range->index];
		bool from_row = range->from_row.length > 0;
		code = key_of_entry(&cursor->begins, space, range->prefix, NULL, true);
		if (code == 0)
			code = key_of_entry(&cursor->at, space, range->from, from_row ? &range->from_row : NULL, !from_row);
	}
	if (code)
		return err_set(err, code, "a scan's start in an index has up to %d bytes, with the key of the row",
		               LIMIT_STORE_INDEX_BYTES);
	if (str_compare(key_str(&cursor->at), key_str(&cursor->begins)) < 0)
		cursor->at = cursor->begins;
	return 0;
}

int store_scan(struct store_session *session, const struct store_range *range, struct store_cursor **out,
               struct err *err)
{
	const struct store_schema *schema = session->store->schema;
	CHECK(session->txn != NULL && range->table < schema->tables_count && schema->tables[range->table].version > 0);
	CHECK(range->index < (int32_t)schema->tables[range->table].indexes_count);
	struct store_cursor *cursor = calloc(1, sizeof(*cursor));
	CHECK(cursor != NULL);
	cursor->session = session;
	cursor->table = range->table;
	cursor->index = range->index;
	int code = set_bounds(cursor, range, err);
	if (code == 0 && !session->writes)
		code = session->store->engine.cursor_open(session->txn, &cursor->engine_cursor, err);
	if (code) {
		free(cursor);
		return err_context(err, code, "scanning table `%s`", schema->tables[range->table].name);
	}
	session->cursors++;
	*out = cursor;
	return 0;
}

static int step(struct store_cursor *cursor, struct engine_entry *entry, struct err *err)
{
	struct store_session *session = cursor->session;
	const struct store_engine *engine = &session->store->engine;
	int code;
	if (session->writes)
		code = session_seek(session, key_str(&cursor->at), cursor->started, entry, err);
	else if (!cursor->started)
		code = engine->cursor_seek(cursor->engine_cursor, key_str(&cursor->at), entry, err);
	else
		code = engine->cursor_next(cursor->engine_cursor, entry, err);
	cursor->started = true;
	if (code == 1 && (entry->key.length < cursor->begins.length ||
	                  memcmp(entry->key.at, cursor->begins.bytes, cursor->begins.length) != 0))
		return 0;
	if (code == 1 && session->writes) {
		if (entry->key.length > sizeof(cursor->at.bytes))
			return err_set(err, ERR_CORRUPT, "a key of %zu bytes", entry->key.length);
		memcpy(cursor->at.bytes, entry->key.at, entry->key.length);
		cursor->at.length = entry->key.length;
	}
	return code;
}

/* An entry of an index: the row that it is for is there, and has this key. */
static int follow(struct store_cursor *cursor, const struct engine_entry *entry, struct store_row *row, struct err *err)
{
	struct store_session *session = cursor->session;
	const struct store_index *index = &session->store->schema->tables[cursor->table].indexes[cursor->index];
	uint32_t version;
	struct str nothing;
	int code = envelope_open(entry->key, entry->value, &version, &nothing, err);
	if (code == 0 && key_split(entry->key, &cursor->index_key, &row->key))
		code = err_set(err, ERR_CORRUPT, "a key that makes no sense");
	if (code == 0 && row->key.length > LIMIT_STORE_KEY_BYTES)
		code = err_set(err, ERR_CORRUPT, "a key that is too long");
	if (code)
		return err_context(err, code, "index `%s`", index->name);
	row->index = buf_str(&cursor->index_key);
	code = store_get(session, cursor->table, row->key, &row->row, err);
	if (code == ERR_NOT_FOUND) {
		char shown[KEY_SHOWN_BYTES];
		code = err_set(err, ERR_CORRUPT, "there is no row %s", key_shown(row->key, shown));
	}
	if (code)
		return err_context(err, code, "following index `%s`", index->name);
	buf_clear(&session->scratch);
	if (!index->key_of(row->key, row->row, &session->scratch) || !str_equal(buf_str(&session->scratch), row->index)) {
		char shown[KEY_SHOWN_BYTES];
		return err_set(err, ERR_CORRUPT, "index `%s` has row %s under a key that is not that of the row", index->name,
		               key_shown(row->key, shown));
	}
	return 0;
}

static int read_entry(struct store_cursor *cursor, const struct engine_entry *entry, struct store_row *row,
                      struct err *err)
{
	if (cursor->index >= 0)
		return follow(cursor, entry, row, err);
	row->key = str_make(entry->key.at + 1, entry->key.length - 1);
	row->index = STR("");
	return session_open_row(cursor->session, cursor->table, entry->key, entry->value, &row->row, err);
}

/* Into the cursor: what the session changes next may move the originals. */
static void keep(struct store_cursor *cursor, struct store_row *row)
{
	buf_clear(&cursor->copy);
	buf_put(&cursor->copy, row->key);
	buf_put(&cursor->copy, row->row);
	struct str copy = buf_str(&cursor->copy);
	row->key = str_make(copy.at, row->key.length);
	row->row = str_make(copy.at + row->key.length, row->row.length);
}

int store_next(struct store_cursor *cursor, struct store_row *row, struct err *err)
{
	struct engine_entry entry;
	int code = step(cursor, &entry, err);
	if (code == 1) {
		code = read_entry(cursor, &entry, row, err);
		if (code == 0 && cursor->session->writes)
			keep(cursor, row);
		code = code ? code : 1;
	}
	if (code < 0)
		return err_context(err, code, "scanning table `%s`",
		                   cursor->session->store->schema->tables[cursor->table].name);
	return code;
}

void store_cursor_free(struct store_cursor *cursor)
{
	if (!cursor)
		return;
	if (cursor->engine_cursor)
		cursor->session->store->engine.cursor_close(cursor->engine_cursor);
	cursor->session->cursors--;
	buf_free(&cursor->index_key);
	buf_free(&cursor->copy);
	free(cursor);
}
