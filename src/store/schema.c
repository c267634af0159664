/* What tables and indexes there are, and of which version: the catalogue, and what is done when a store is opened.
 *
 * The catalogue is in the store itself (docs/protocol/store.md). Each table and index has a number there, its space, by which
 * all its keys begin; names are what counts, so the order in the program's schema may change.
 *
 * Opening, in one session, so that a crash or an error in the middle leaves everything as it was:
 *   nothing there           the version of the format is written
 *   a table is not there    it gets a space
 *   its rows are older      they are migrated, version by version; its indexes are built anew
 *   its rows are later      ERR_VERSION
 *   the schema lacks it     ERR_VERSION: a later program made it. One that is to go stays in the schema with version 0
 *   an index is not there, or became unique or not: it is built
 *   the schema lacks it     it is dropped */
#include "store/store_int.h"

#include "base/bytes.h"

#include "base/check.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

struct known {
	bool used;
	bool is_index;
	bool unique;
	bool claimed; /* the schema has it */
	uint32_t version;
	char table[LIMIT_STORE_NAME_BYTES + 1];
	char index[LIMIT_STORE_NAME_BYTES + 1];
};

struct catalogue {
	bool formed;
	struct known spaces[SPACES];
};

/* ---- Rows of the catalogue ------------------------------------------------------------------------------------------ */

void catalogue_state_put(struct buf *row, const struct catalogue_state *state)
{
	put_number(row, state->commits, 8);
	put_number(row, state->rows, 8);
	put_number(row, state->number, 8);
}

int catalogue_state_parse(struct str row, struct catalogue_state *state, struct err *err)
{
	struct reader reader = reader_of(row);
	state->commits = read_64(&reader);
	state->rows = read_64(&reader);
	state->number = read_64(&reader);
	if (reader.failed || reader.left > 0)
		return err_set(err, ERR_CORRUPT, "the state has %zu bytes, not 24", row.length);
	return 0;
}

static int parse_format(struct str row, struct err *err)
{
	struct reader reader = reader_of(row);
	uint32_t format = read_32(&reader);
	if (reader.failed || reader.left > 0 || format == 0)
		return err_set(err, ERR_CORRUPT, "the version of the format makes no sense");
	if (format > STORE_FORMAT)
		return err_set(err, ERR_VERSION,
		               "the file has format %u, and this program knows up to %d: a later version of Cheops wrote it",
		               format, STORE_FORMAT);
	return 0;
}

static bool take_name(char out[LIMIT_STORE_NAME_BYTES + 1], struct str name)
{
	if (name.length == 0 || name.length > LIMIT_STORE_NAME_BYTES || !text_is_printable(name))
		return false;
	memcpy(out, name.at, name.length);
	out[name.length] = '\0';
	return true;
}

/* "t" NAME: space, version. "i" TABLE 0 NAME: space, flags. The key is without its space. */
static int parse_known(struct str key, struct str row, uint32_t *space, struct known *known, struct err *err)
{
	struct reader reader = reader_of(row);
	*known = (struct known){.used = true, .is_index = key.at[0] == 'i'};
	struct str name = str_make(key.at + 1, key.length - 1), index = STR("");
	const char *zero = known->is_index ? memchr(name.at, 0, name.length) : NULL;
	if (zero) {
		index = str_make(zero + 1, name.length - (size_t)(zero + 1 - name.at));
		name.length = (size_t)(zero - name.at);
	}
	*space = read_8(&reader);
	if (known->is_index)
		known->unique = read_8(&reader) == 1;
	else
		known->version = read_16(&reader);
	bool good = !reader.failed && reader.left == 0 && *space != SPACE_CATALOGUE && take_name(known->table, name);
	good = good && (known->is_index ? take_name(known->index, index) : known->version > 0);
	return good ? 0 : err_set(err, ERR_CORRUPT, "an entry of the catalogue makes no sense");
}

static int put_known(struct store_session *session, uint32_t space, const struct known *known, struct err *err)
{
	struct buf name = {0}, row = {0};
	struct key key;
	buf_printf(&name, "%c%s", known->is_index ? 'i' : 't', known->table);
	put_number(&row, space, 1);
	if (known->is_index) {
		buf_put_char(&name, '\0');
		buf_put(&name, str_of(known->index));
		put_number(&row, known->unique, 1);
	} else {
		put_number(&row, known->version, 2);
	}
	key_of_row(&key, SPACE_CATALOGUE, buf_str(&name));
	int code = session_put_entry(session, key_str(&key), CATALOGUE_VERSION, buf_str(&row), err);
	buf_free(&name);
	buf_free(&row);
	return code;
}

static int remove_known(struct store_session *session, const struct known *known, struct err *err)
{
	struct buf name = {0};
	struct key key;
	buf_printf(&name, "%c%s", known->is_index ? 'i' : 't', known->table);
	if (known->is_index) {
		buf_put_char(&name, '\0');
		buf_put(&name, str_of(known->index));
	}
	key_of_row(&key, SPACE_CATALOGUE, buf_str(&name));
	buf_free(&name);
	return session_remove_entry(session, key_str(&key), err);
}

static int add_entry(struct catalogue *catalogue, struct str key, struct str value, struct err *err)
{
	struct known known;
	struct str row;
	uint32_t version, space;
	int code = envelope_open(key, value, &version, &row, err);
	if (code)
		return code;
	struct str rest = str_make(key.at + 1, key.length - 1);
	if (str_equal(rest, STR("f"))) {
		catalogue->formed = true;
		return parse_format(row, err);
	}
	if (str_equal(rest, STR("s")))
		return 0;
	if (rest.length < 2 || (rest.at[0] != 't' && rest.at[0] != 'i'))
		return err_set(err, ERR_CORRUPT, "an unknown entry");
	code = parse_known(rest, row, &space, &known, err);
	if (code == 0 && catalogue->spaces[space].used)
		code = err_set(err, ERR_CORRUPT, "two entries for space %u", space);
	if (code == 0)
		catalogue->spaces[space] = known;
	return code;
}

static int load(struct store_session *session, struct catalogue *catalogue, struct err *err)
{
	static const char zero[] = {SPACE_CATALOGUE};
	struct engine_entry entry;
	struct key at = {.length = 1};
	at.bytes[0] = zero[0];
	int code;
	while ((code = session_seek(session, key_str(&at), true, &entry, err)) == 1 && entry.key.at[0] == SPACE_CATALOGUE) {
		code = add_entry(catalogue, entry.key, entry.value, err);
		if (code)
			break;
		CHECK(entry.key.length <= sizeof(at.bytes));
		memcpy(at.bytes, entry.key.at, entry.key.length);
		at.length = entry.key.length;
	}
	if (code == 1 && !catalogue->formed)
		code = err_set(err, ERR_CORRUPT, "there is no version of the format: this is no store of Cheops");
	return code < 0 ? err_context(err, code, "catalogue") : 0;
}

/* ---- A look at all entries, before anything is used ------------------------------------------------------------------ */

static int check_catalogue(struct catalogue_check *check, struct str rest, struct str row, struct err *err)
{
	if (str_equal(rest, STR("f"))) {
		check->formed = true;
		return parse_format(row, err);
	}
	if (str_equal(rest, STR("s")))
		return catalogue_state_parse(row, &check->state, err);
	struct known known;
	uint32_t space;
	if (rest.length < 2 || (rest.at[0] != 't' && rest.at[0] != 'i'))
		return err_set(err, ERR_CORRUPT, "an unknown entry");
	int code = parse_known(rest, row, &space, &known, err);
	if (code == 0 && known.is_index)
		snprintf(check->names[space], sizeof(check->names[space]), "index `%s` of table `%s`", known.index,
		         known.table);
	else if (code == 0)
		snprintf(check->names[space], sizeof(check->names[space]), "table `%s`", known.table);
	check->is_table[space] |= code == 0 && !known.is_index;
	return code;
}

int catalogue_check_entry(void *context, struct str key, struct str value, struct err *err)
{
	struct catalogue_check *check = context;
	struct str row, rest = str_make(key.at + 1, key.length - 1);
	uint32_t version, space = (unsigned char)key.at[0];
	char shown[KEY_SHOWN_BYTES];
	int code = envelope_open(key, value, &version, &row, err);
	if (!check->formed && (code || space != SPACE_CATALOGUE || !str_equal(rest, STR("f"))))
		return err_set(err, ERR_CORRUPT,
		               "its first entry is not a version of the format: damaged, or no store of Cheops");
	if (code == 0 && space == SPACE_CATALOGUE)
		code = check_catalogue(check, rest, row, err);
	else if (code == 0 && check->names[space][0] == '\0')
		code = err_set(err, ERR_CORRUPT, "it belongs to no table");
	check->rows += check->is_table[space];
	if (code == ERR_VERSION || code == 0)
		return code;
	return err_context(err, code, "%s, key %s", space == SPACE_CATALOGUE ? "catalogue" : check->names[space],
	                   key_shown(rest, shown));
}

int catalogue_check_end(struct catalogue_check *check, struct err *err)
{
	if (check->rows != check->state.rows)
		return err_set(err, ERR_CORRUPT, "%" PRIu64 " rows are there, and there should be %" PRIu64, check->rows,
		               check->state.rows);
	return 0;
}

uint64_t catalogue_number_of(struct str key, struct str value)
{
	struct catalogue_state state;
	struct str row;
	uint32_t version;
	if (envelope_open(key, value, &version, &row, NULL) || catalogue_state_parse(row, &state, NULL))
		return 0;
	return state.number;
}

/* ---- Rows of a table, in a session that changes them ------------------------------------------------------------------ */

typedef int each_row(void *context, struct store_session *session, struct str engine_key, struct str value,
                     struct err *err);

/* `each` may change the row that it is called with, and other spaces. */
static int for_each_row(struct store_session *session, uint32_t space, each_row *each, void *context, struct err *err)
{
	struct engine_entry entry;
	struct key at;
	key_of_row(&at, space, STR(""));
	bool after = false;
	int code;
	while ((code = session_seek(session, key_str(&at), after, &entry, err)) == 1 &&
	       (unsigned char)entry.key.at[0] == space) {
		CHECK(entry.key.length <= sizeof(at.bytes));
		memcpy(at.bytes, entry.key.at, entry.key.length);
		at.length = entry.key.length;
		after = true;
		code = each(context, session, key_str(&at), entry.value, err);
		if (code)
			return code;
	}
	return code < 0 ? code : 0;
}

static int drop_row(void *context, struct store_session *session, struct str engine_key, struct str value,
                    struct err *err)
{
	const bool *counts = context;
	(void)value;
	session->rows_more -= *counts;
	return session_remove_entry(session, engine_key, err);
}

static int drop_space(struct store_session *session, struct catalogue *catalogue, uint32_t space, struct err *err)
{
	struct known *known = &catalogue->spaces[space];
	bool counts = !known->is_index;
	int code = for_each_row(session, space, drop_row, &counts, err);
	code = code ? code : remove_known(session, known, err);
	*known = (struct known){0};
	return code;
}

/* ---- Migration ------------------------------------------------------------------------------------------------------ */

struct migration {
	const struct store_table *table;
	uint32_t from;
	struct buf rows[2];
};

static int migrate_row(void *context, struct store_session *session, struct str engine_key, struct str value,
                       struct err *err)
{
	struct migration *migration = context;
	struct str row, key = str_make(engine_key.at + 1, engine_key.length - 1);
	uint32_t version;
	char shown[KEY_SHOWN_BYTES];
	int code = envelope_open(engine_key, value, &version, &row, err);
	if (code == 0 && version != migration->from)
		code = err_set(err, ERR_CORRUPT, "a row of version %u in a table of version %u", version, migration->from);
	for (; code == 0 && version < migration->table->version; version++) {
		struct buf *out = &migration->rows[version % 2];
		buf_clear(out);
		code = migration->table->migrate(version, key, row, out, err);
		row = buf_str(out);
	}
	if (code == 0 && row.length > LIMIT_STORE_ROW_BYTES)
		code = err_set(err, ERR_LIMIT, "the row becomes %zu bytes long; up to %d are possible", row.length,
		               LIMIT_STORE_ROW_BYTES);
	code = code ? code : session_put_entry(session, engine_key, version, row, err);
	return code ? err_context(err, code, "key %s", key_shown(key, shown)) : 0;
}

static int migrate(struct store_session *session, uint32_t space, struct known *known, const struct store_table *table,
                   struct err *err)
{
	if (known->version > table->version)
		return err_set(
			err, ERR_VERSION,
			"table `%s` has rows of version %u, and this program knows up to %u: a later version of Cheops wrote it",
			table->name, known->version, table->version);
	if (!table->migrate)
		return err_set(err, ERR_VERSION,
		               "table `%s` has rows of version %u, which this program no longer reads: it is at %u",
		               table->name, known->version, table->version);
	struct migration migration = {.table = table, .from = known->version};
	int code = for_each_row(session, space, migrate_row, &migration, err);
	buf_free(&migration.rows[0]);
	buf_free(&migration.rows[1]);
	known->version = table->version;
	code = code ? code : put_known(session, space, known, err);
	return code ? err_context(err, code, "migrating table `%s` from version %u", table->name, migration.from) : 0;
}

/* ---- Indexes -------------------------------------------------------------------------------------------------------- */

struct building {
	const struct store_index *index;
	uint32_t space;
};

static int build_row(void *context, struct store_session *session, struct str engine_key, struct str value,
                     struct err *err)
{
	const struct building *building = context;
	struct str row, key = str_make(engine_key.at + 1, engine_key.length - 1);
	struct key entry;
	uint32_t version;
	int code = envelope_open(engine_key, value, &version, &row, err);
	if (code)
		return code;
	buf_clear(&session->scratch);
	if (!building->index->key_of(key, row, &session->scratch))
		return 0;
	struct str index_key = buf_str(&session->scratch);
	code = session_check_unique(session, building->index, building->space, index_key, key, err);
	if (code == 0 && key_of_entry(&entry, building->space, index_key, &key, false))
		code = err_set(err, ERR_LIMIT, "a key of %zu bytes, with that of the row %zu: together up to %d are possible",
		               index_key.length, key.length, LIMIT_STORE_INDEX_BYTES);
	return code ? code : session_put_entry(session, key_str(&entry), 0, STR(""), err);
}

static int find_space(const struct catalogue *catalogue, const char *table, const char *index)
{
	for (int i = 1; i < SPACES; i++) {
		const struct known *known = &catalogue->spaces[i];
		if (known->used && known->is_index == (index != NULL) && strcmp(known->table, table) == 0 &&
		    (!index || strcmp(known->index, index) == 0))
			return i;
	}
	return -1;
}

static uint32_t free_space(const struct catalogue *catalogue)
{
	for (uint32_t i = 1; i < SPACES; i++)
		if (!catalogue->spaces[i].used)
			return i;
	UNREACHABLE("tables and indexes are fewer than spaces, and what the schema lacks was dropped");
}

static int settle_index(struct store_session *session, struct catalogue *catalogue, uint32_t table, uint32_t number,
                        struct err *err)
{
	struct store *store = session->store;
	const struct store_table *of = &store->schema->tables[table];
	const struct store_index *index = &of->indexes[number];
	int found = find_space(catalogue, of->name, index->name);
	if (found > 0) {
		catalogue->spaces[found].claimed = true;
		store->places[table].indexes[number] = (uint32_t)found;
		return 0;
	}
	struct building building = {index, free_space(catalogue)};
	struct known known = {.used = true, .is_index = true, .unique = index->unique, .claimed = true};
	CHECK(take_name(known.table, str_of(of->name)) && take_name(known.index, str_of(index->name)));
	catalogue->spaces[building.space] = known;
	store->places[table].indexes[number] = building.space;
	int code = put_known(session, building.space, &known, err);
	code = code ? code : for_each_row(session, store->places[table].space, build_row, &building, err);
	return code ? err_context(err, code, "building index `%s` of table `%s`", index->name, of->name) : 0;
}

/* ---- Opening -------------------------------------------------------------------------------------------------------- */

/* Which index of the schema this is; NULL: none, or it has become another one. */
static const struct store_index *index_of(const struct store_table *table, const struct known *known)
{
	for (uint32_t i = 0; i < table->indexes_count; i++)
		if (strcmp(table->indexes[i].name, known->index) == 0 && table->indexes[i].unique == known->unique)
			return &table->indexes[i];
	return NULL;
}

static const struct store_table *table_named(const struct store_schema *schema, const char *name)
{
	for (uint32_t i = 0; i < schema->tables_count; i++)
		if (strcmp(schema->tables[i].name, name) == 0)
			return &schema->tables[i];
	return NULL;
}

/* What is of no more use goes first: its spaces can be used again. */
static int drop_gone(struct store_session *session, struct catalogue *catalogue, struct err *err)
{
	for (uint32_t i = 1; i < SPACES; i++) {
		const struct known *known = &catalogue->spaces[i];
		if (!known->used)
			continue;
		const struct store_table *table = table_named(session->store->schema, known->table);
		if (!table)
			return err_set(
				err, ERR_VERSION,
				"the file has a table `%s`, which this program does not know: a later version of Cheops wrote it",
				known->table);
		int table_space = find_space(catalogue, known->table, NULL);
		if (known->is_index && table_space < 0 && table->version > 0)
			return err_set(err, ERR_CORRUPT, "index `%s` of table `%s`, which is not there", known->index,
			               known->table);
		bool migrates = table_space > 0 && catalogue->spaces[table_space].version < table->version;
		if (table->version == 0 || (known->is_index && (migrates || !index_of(table, known)))) {
			int code = drop_space(session, catalogue, i, err);
			if (code)
				return err_context(err, code, "dropping what is no longer used of table `%s`", table->name);
		}
	}
	return 0;
}

static int settle_table(struct store_session *session, struct catalogue *catalogue, uint32_t table, struct err *err)
{
	struct store *store = session->store;
	const struct store_table *of = &store->schema->tables[table];
	if (of->version == 0)
		return 0;
	int code = 0, found = find_space(catalogue, of->name, NULL);
	if (found < 0) {
		uint32_t space = free_space(catalogue);
		struct known known = {.used = true, .version = of->version};
		CHECK(take_name(known.table, str_of(of->name)));
		catalogue->spaces[space] = known;
		store->places[table].space = space;
		code = put_known(session, space, &known, err);
	} else {
		store->places[table].space = (uint32_t)found;
		if (catalogue->spaces[found].version != of->version)
			code = migrate(session, (uint32_t)found, &catalogue->spaces[found], of, err);
	}
	for (uint32_t i = 0; i < of->indexes_count && code == 0; i++)
		code = settle_index(session, catalogue, table, i, err);
	return code;
}

static int settle(struct store_session *session, struct catalogue *catalogue, struct err *err)
{
	int code = load(session, catalogue, err);
	if (code == 0 && !catalogue->formed) {
		struct key key;
		struct buf row = {0};
		put_number(&row, STORE_FORMAT, 4);
		key_of_row(&key, SPACE_CATALOGUE, STR("f"));
		code = session_put_entry(session, key_str(&key), CATALOGUE_VERSION, buf_str(&row), err);
		buf_free(&row);
	}
	code = code ? code : drop_gone(session, catalogue, err);
	for (uint32_t i = 0; i < session->store->schema->tables_count && code == 0; i++)
		code = settle_table(session, catalogue, i, err);
	return code;
}

static void check_schema(const struct store_schema *schema)
{
	CHECK(schema->tables_count <= LIMIT_STORE_TABLES);
	for (uint32_t i = 0; i < schema->tables_count; i++) {
		CHECK(schema->tables[i].indexes_count <= LIMIT_STORE_INDEXES);
		CHECK(schema->tables[i].version <= LIMIT_STORE_ROW_VERSION);
		CHECK(table_named(schema, schema->tables[i].name) == &schema->tables[i]);
	}
}

int schema_settle(struct store *store, struct err *err)
{
	struct store_session *session;
	struct catalogue catalogue = {0};
	check_schema(store->schema);
	int code = store_begin_write(store, &session, err);
	if (code)
		return code;
	code = settle(session, &catalogue, err);
	if (code) {
		store_abort(session);
		return code;
	}
	return store_commit(session, err);
}
