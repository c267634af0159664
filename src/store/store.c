/* Sessions, and rows with their entries in indexes, on any engine.
 *
 * A put, as it happens:
 *   1. the row's envelope and its keys in the indexes are written aside: key and row may be slices of this very session
 *   2. unique indexes are asked; up to here nothing has changed, and a refusal does no harm
 *   3. the row is put, entries that it no longer has in indexes are removed, new ones put
 * Where the engine fails in 3, the session is marked, and cannot be committed.
 *
 * A commit writes one row more, the state (schema.c): how many commits and rows there are, and which commit this one is. By that
 * a file is recognised whose first page was turned back to an older commit. */
#include "store/store_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Open and close ------------------------------------------------------------------------------------------------- */

static void session_init(struct store_session *session, struct store *store, uint32_t slot)
{
	session->store = store;
	session->slot = slot;
	atomic_init(&session->taken, false);
}

static void store_free(struct store *store)
{
	for (uint32_t i = 0; i < LIMIT_STORE_READERS; i++) {
		CHECK(!atomic_load(&store->readers[i].taken));
		buf_free(&store->readers[i].value);
		buf_free(&store->readers[i].scratch);
	}
	buf_free(&store->writer.value);
	buf_free(&store->writer.scratch);
	CHECK(pthread_mutex_destroy(&store->writing) == 0);
	free(store);
}

int store_open_on(struct store **out, const struct store_engine *engine, const struct store_schema *schema,
                  struct err *err)
{
	struct store *store = aligned_alloc(64, sizeof(*store));
	CHECK(store != NULL);
	memset(store, 0, sizeof(*store));
	store->engine = *engine;
	store->schema = schema;
	pthread_mutexattr_t attributes;
	CHECK(pthread_mutexattr_init(&attributes) == 0);
	CHECK(pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK) == 0);
	CHECK(pthread_mutex_init(&store->writing, &attributes) == 0);
	pthread_mutexattr_destroy(&attributes);
	session_init(&store->writer, store, 0);
	store->writer.writes = true;
	for (uint32_t i = 0; i < LIMIT_STORE_READERS; i++)
		session_init(&store->readers[i], store, i);
	int code = schema_settle(store, err);
	if (code) {
		store_free(store);
		return code;
	}
	*out = store;
	return 0;
}

int store_open(struct store **out, const struct store_options *options, struct err *err)
{
	struct store_engine engine;
	int code = engine_open_lmdb(&engine, options, err);
	if (code)
		return code;
	code = store_open_on(out, &engine, options->schema, err);
	if (code) {
		engine.close(engine.context);
		return err_context(err, code, "store in %s", options->folder);
	}
	return 0;
}

struct store *store_open_memory(const struct store_schema *schema)
{
	struct store_engine engine;
	struct store *store;
	engine_open_memory(&engine);
	CHECK(store_open_on(&store, &engine, schema, NULL) == 0);
	return store;
}

int store_memory_reopen(struct store **store, const struct store_schema *schema, struct err *err)
{
	struct store *old = *store;
	int code = store_open_on(store, &old->engine, schema, err);
	if (code == 0)
		store_free(old);
	return code;
}

void store_close(struct store *store)
{
	if (!store)
		return;
	struct store_engine engine = store->engine;
	store_free(store);
	engine.close(engine.context);
}

/* ---- Sessions ------------------------------------------------------------------------------------------------------- */

/* Threads begin their search at places of their own, so they do not meet. */
static struct store_session *take_reader(struct store *store)
{
	static atomic_uint threads;
	static _Thread_local uint32_t hint;
	if (hint == 0)
		hint = 1 + atomic_fetch_add(&threads, 1) * 8 % LIMIT_STORE_READERS;
	for (uint32_t i = 0; i < LIMIT_STORE_READERS; i++) {
		struct store_session *session = &store->readers[(hint - 1 + i) % LIMIT_STORE_READERS];
		bool expected = false;
		if (!atomic_load_explicit(&session->taken, memory_order_relaxed) &&
		    atomic_compare_exchange_strong(&session->taken, &expected, true))
			return session;
	}
	return NULL;
}

int store_begin_read(struct store *store, struct store_session **out, struct err *err)
{
	struct store_session *session = take_reader(store);
	if (!session)
		return err_set(err, ERR_LIMIT, "%d sessions read at this moment, which is the most there can be",
		               LIMIT_STORE_READERS);
	int code = store->engine.begin_read(store->engine.context, session->slot, &session->txn, err);
	if (code) {
		atomic_store(&session->taken, false);
		return err_context(err, code, "beginning to read");
	}
	*out = session;
	return 0;
}

int store_begin_write(struct store *store, struct store_session **out, struct err *err)
{
	struct store_session *session = &store->writer;
	CHECK(pthread_mutex_lock(&store->writing) == 0); /* a second one in this thread would wait for itself */
	session->changed = false;
	session->failed = 0;
	session->rows_more = 0;
	int code = store->engine.begin_write(store->engine.context, &session->txn, err);
	if (code) {
		CHECK(pthread_mutex_unlock(&store->writing) == 0);
		return err_context(err, code, "beginning to write");
	}
	*out = session;
	return 0;
}

static void session_end(struct store_session *session)
{
	session->txn = NULL;
	if (session->writes)
		CHECK(pthread_mutex_unlock(&session->store->writing) == 0);
	else
		atomic_store_explicit(&session->taken, false, memory_order_release);
}

void store_abort(struct store_session *session)
{
	if (!session)
		return;
	CHECK(session->txn != NULL && session->cursors == 0);
	session->store->engine.abort(session->txn);
	session_end(session);
}

static int get_state(struct store_session *session, struct catalogue_state *state, struct err *err)
{
	struct key key;
	struct str value = {0}, row = {0};
	uint32_t version;
	key_of_row(&key, SPACE_CATALOGUE, STR("s"));
	*state = (struct catalogue_state){0};
	int code = session->store->engine.get(session->txn, key_str(&key), &value, err);
	if (code == ERR_NOT_FOUND)
		return 0;
	code = code ? code : envelope_open(key_str(&key), value, &version, &row, err);
	return code ? code : catalogue_state_parse(row, state, err);
}

static int put_state(struct store_session *session, struct err *err)
{
	struct catalogue_state state;
	struct key key;
	int code = get_state(session, &state, err);
	if (code)
		return code;
	state.commits++;
	state.rows += (uint64_t)session->rows_more;
	state.number = session->store->engine.number(session->txn);
	buf_clear(&session->scratch);
	catalogue_state_put(&session->scratch, &state);
	key_of_row(&key, SPACE_CATALOGUE, STR("s"));
	return session_put_entry(session, key_str(&key), CATALOGUE_VERSION, buf_str(&session->scratch), err);
}

int store_commit(struct store_session *session, struct err *err)
{
	CHECK(session->writes && session->txn != NULL && session->cursors == 0);
	int code = session->failed;
	if (code)
		err_set(err, code, "something in this session failed before");
	else if (session->changed)
		code = put_state(session, err);
	if (code || !session->changed) {
		store_abort(session);
		return code ? err_context(err, code, "committing") : 0;
	}
	code = session->store->engine.commit(session->txn, err);
	session_end(session);
	return code ? err_context(err, code, "committing") : 0;
}

/* ---- Entries -------------------------------------------------------------------------------------------------------- */

/* What failed halfway must not be committed. */
static int mark_failed(struct store_session *session, int code)
{
	if (code && session->failed == 0)
		session->failed = code;
	return code;
}

int session_put_entry(struct store_session *session, struct str key, uint32_t version, struct str row, struct err *err)
{
	buf_clear(&session->value);
	envelope_put(&session->value, key, version, row);
	session->changed = true;
	return mark_failed(session, session->store->engine.put(session->txn, key, buf_str(&session->value), err));
}

int session_remove_entry(struct store_session *session, struct str key, struct err *err)
{
	session->changed = true;
	int code = session->store->engine.remove(session->txn, key, err);
	if (code == ERR_NOT_FOUND)
		code = err_set(err, ERR_CORRUPT, "an entry that has to be there is not");
	return mark_failed(session, code);
}

int session_seek(struct store_session *session, struct str at_least, bool after, struct engine_entry *entry,
                 struct err *err)
{
	const struct store_engine *engine = &session->store->engine;
	void *cursor;
	int code = engine->cursor_open(session->txn, &cursor, err);
	if (code)
		return code;
	code = engine->cursor_seek(cursor, at_least, entry, err);
	if (code == 1 && after && str_equal(entry->key, at_least))
		code = engine->cursor_next(cursor, entry, err);
	engine->cursor_close(cursor);
	return code;
}

/* ---- Rows ----------------------------------------------------------------------------------------------------------- */

static const struct store_table *table_of(const struct store_session *session, uint32_t table)
{
	CHECK(session->txn != NULL && table < session->store->schema->tables_count);
	CHECK(session->store->schema->tables[table].version > 0);
	return &session->store->schema->tables[table];
}

/* "table `replicants`, key `x`: " before what is wrong with it. */
static int row_context(struct err *err, int code, const struct store_table *table, struct str key)
{
	char shown[KEY_SHOWN_BYTES];
	if (!err)
		return code; /* most rows are looked for by who does not know whether there are any: no text is made for nobody */
	return err_context(err, code, "table `%s`, key %s", table->name, key_shown(key, shown));
}

int session_open_row(struct store_session *session, uint32_t table, struct str engine_key, struct str value,
                     struct str *row, struct err *err)
{
	const struct store_table *of = table_of(session, table);
	uint32_t version;
	int code = envelope_open(engine_key, value, &version, row, err);
	if (code == 0 && version != of->version)
		code = err_set(err, ERR_CORRUPT, "a row of version %u in a table of version %u", version, of->version);
	return code ? row_context(err, code, of, str_make(engine_key.at + 1, engine_key.length - 1)) : 0;
}

/* A key that is too long is in no table. */
int store_get(struct store_session *session, uint32_t table, struct str key, struct str *row, struct err *err)
{
	const struct store_table *of = table_of(session, table);
	struct key full;
	struct str value;
	if (key.length > LIMIT_STORE_KEY_BYTES)
		return row_context(err, err_set(err, ERR_NOT_FOUND, "no such row"), of, key);
	key_of_row(&full, session->store->places[table].space, key);
	int code = session->store->engine.get(session->txn, key_str(&full), &value, err);
	if (code == ERR_NOT_FOUND)
		err_set(err, code, "no such row");
	return code ? row_context(err, code, of, key) : session_open_row(session, table, key_str(&full), value, row, err);
}

/* Entries of one row in one index, before and after a change. */
struct change {
	bool had;
	bool has;
	struct key old;
	struct key now;
};

static int entry_of(struct store_session *session, const struct store_index *index, uint32_t space, struct str key,
                    struct str row, struct key *entry, bool *has, struct err *err)
{
	buf_clear(&session->scratch);
	*has = index->key_of(key, row, &session->scratch);
	if (*has && key_of_entry(entry, space, buf_str(&session->scratch), &key, false))
		return err_set(err, ERR_LIMIT,
		               "its key in index `%s` has %zu bytes, and its own %zu; together up to %d are possible",
		               index->name, session->scratch.length, key.length, LIMIT_STORE_INDEX_BYTES);
	return 0;
}

int session_check_unique(struct store_session *session, const struct store_index *index, uint32_t space,
                         struct str index_key, struct str row_key, struct err *err)
{
	struct key begins;
	struct engine_entry entry = {.key = STR_INIT("")};
	if (!index->unique || key_of_entry(&begins, space, index_key, NULL, false))
		return 0;
	int code = session_seek(session, key_str(&begins), false, &entry, err);
	if (code <= 0)
		return code;
	if (entry.key.length < begins.length || memcmp(entry.key.at, begins.bytes, begins.length) != 0)
		return 0;
	struct str other = str_make(entry.key.at + begins.length, entry.key.length - begins.length);
	if (str_equal(other, row_key))
		return 0;
	char shown[KEY_SHOWN_BYTES], shown_other[KEY_SHOWN_BYTES];
	return err_set(err, ERR_CONFLICT, "index `%s` is unique, and row %s has %s already", index->name,
	               key_shown(other, shown_other), key_shown(index_key, shown));
}

static bool is_same(const struct change *change)
{
	return change->had && change->has && str_equal(key_str(&change->old), key_str(&change->now));
}

/* What a row that becomes `now` (or goes: NULL) changes in the indexes of its table. Changes nothing yet. */
static int find_changes(struct store_session *session, uint32_t table, struct str key, const struct str *old,
                        const struct str *now, struct change changes[LIMIT_STORE_INDEXES], struct err *err)
{
	const struct store_table *of = table_of(session, table);
	const struct table_place *place = &session->store->places[table];
	int code = 0;
	for (uint32_t i = 0; i < of->indexes_count && code == 0; i++) {
		const struct store_index *index = &of->indexes[i];
		struct change *change = &changes[i];
		change->had = change->has = false;
		if (old)
			code = entry_of(session, index, place->indexes[i], key, *old, &change->old, &change->had, err);
		if (code == 0 && now)
			code = entry_of(session, index, place->indexes[i], key, *now, &change->now, &change->has, err);
		if (code == 0 && change->has && !is_same(change))
			code = session_check_unique(session, index, place->indexes[i], buf_str(&session->scratch), key, err);
	}
	return code;
}

static int apply_changes(struct store_session *session, const struct change *changes, uint32_t count, struct err *err)
{
	int code = 0;
	for (uint32_t i = 0; i < count && code == 0; i++) {
		const struct change *change = &changes[i];
		if (is_same(change))
			continue;
		if (change->had)
			code = session_remove_entry(session, key_str(&change->old), err);
		if (code == 0 && change->has)
			code = session_put_entry(session, key_str(&change->now), 0, STR(""), err);
	}
	return code;
}

static int check_put(struct store_session *session, struct str key, size_t row_bytes, struct err *err)
{
	CHECK(session->writes);
	if (session->failed)
		return err_set(err, session->failed, "something in this session failed before");
	if (key.length > LIMIT_STORE_KEY_BYTES)
		return err_set(err, ERR_LIMIT, "the key has %zu bytes; up to %d are possible", key.length,
		               LIMIT_STORE_KEY_BYTES);
	if (row_bytes > LIMIT_STORE_ROW_BYTES)
		return err_set(err, ERR_LIMIT, "the row has %zu bytes; up to %d are possible", row_bytes,
		               LIMIT_STORE_ROW_BYTES);
	return session->store->engine.room(session->txn, err);
}

/* The copy of a row's key: what the caller gave may be a slice of what is going to change. */
static struct str row_key(const struct key *full)
{
	return str_make(full->bytes + 1, full->length - 1);
}

static int put_row(struct store_session *session, uint32_t table, struct str key, struct str row, struct err *err)
{
	const struct store_table *of = table_of(session, table);
	const struct store_engine *engine = &session->store->engine;
	struct change changes[LIMIT_STORE_INDEXES];
	struct key full;
	struct str value, old;
	int code = check_put(session, key, row.length, err);
	if (code)
		return code;
	key_of_row(&full, session->store->places[table].space, key);
	key = row_key(&full);
	code = engine->get(session->txn, key_str(&full), &value, err);
	if (code && code != ERR_NOT_FOUND)
		return mark_failed(session, code);
	bool replaces = code == 0;
	if (of->indexes_count > 0) { /* without one, what is there is of no interest, and may be damaged */
		code = replaces ? session_open_row(session, table, key_str(&full), value, &old, err) : 0;
		if (code == 0)
			code = find_changes(session, table, key, replaces ? &old : NULL, &row, changes, err);
		if (code)
			return code;
	}
	buf_clear(&session->value);
	envelope_put(&session->value, key_str(&full), of->version, row);
	if (replaces && str_equal(value, buf_str(&session->value)))
		return 0;
	session->changed = true;
	session->rows_more += replaces ? 0 : 1;
	code = engine->put(session->txn, key_str(&full), buf_str(&session->value), err);
	return mark_failed(session, code ? code : apply_changes(session, changes, of->indexes_count, err));
}

int store_put(struct store_session *session, uint32_t table, struct str key, struct str row, struct err *err)
{
	char before[KEY_SHOWN_BYTES]; /* see row_key(). What is longer is not shown as a whole */
	size_t length = key.length < sizeof(before) ? key.length : sizeof(before);
	if (length > 0)
		memcpy(before, key.at, length);
	int code = put_row(session, table, key, row, err);
	return code ? row_context(err, code, table_of(session, table), str_make(before, length)) : 0;
}

int store_put_check(struct store_session *session, uint32_t table, struct str key, size_t row_bytes, struct err *err)
{
	int code = check_put(session, key, row_bytes, err);
	return code ? row_context(err, code, table_of(session, table), key) : 0;
}

static int delete_row(struct store_session *session, uint32_t table, struct str key, struct err *err)
{
	const struct store_table *of = table_of(session, table);
	struct change changes[LIMIT_STORE_INDEXES];
	struct key full;
	struct str value, old;
	CHECK(session->writes);
	if (session->failed)
		return err_set(err, session->failed, "something in this session failed before");
	if (key.length > LIMIT_STORE_KEY_BYTES)
		return err_set(err, ERR_NOT_FOUND, "no such row");
	key_of_row(&full, session->store->places[table].space, key);
	key = row_key(&full);
	int code = session->store->engine.get(session->txn, key_str(&full), &value, err);
	if (code)
		return code == ERR_NOT_FOUND ? err_set(err, code, "no such row") : mark_failed(session, code);
	if (of->indexes_count > 0) {
		code = session_open_row(session, table, key_str(&full), value, &old, err);
		code = code ? code : find_changes(session, table, key, &old, NULL, changes, err);
		if (code)
			return code;
	}
	session->rows_more -= 1;
	code = session_remove_entry(session, key_str(&full), err);
	return mark_failed(session, code ? code : apply_changes(session, changes, of->indexes_count, err));
}

int store_delete(struct store_session *session, uint32_t table, struct str key, struct err *err)
{
	int code = delete_row(session, table, key, err);
	return code ? row_context(err, code, table_of(session, table), key) : 0;
}

/* ---- Figures -------------------------------------------------------------------------------------------------------- */

int store_usage(struct store *store, struct store_usage *usage, struct err *err)
{
	struct store_session *session = NULL;
	struct catalogue_state state = {0};
	*usage = (struct store_usage){0};
	int code = store_begin_read(store, &session, err);
	if (code || !session)
		return code;
	code = get_state(session, &state, err);
	store_abort(session);
	usage->rows = state.rows;
	usage->commits = state.commits;
	return code ? code : store->engine.usage(store->engine.context, usage, err);
}

void store_cool(struct store *store)
{
	if (store->engine.cool)
		store->engine.cool(store->engine.context);
}
