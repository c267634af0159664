#include "store_test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

enum engine_kind kind_lmdb = ON_LMDB, kind_memory = ON_MEMORY;

/* ---- The schema ----------------------------------------------------------------------------------------------------- */

bool colour_of(struct str key, struct str row, struct buf *out)
{
	(void)key;
	const char *slash = row.length > 0 ? memchr(row.at, '/', row.length) : NULL;
	if (!slash)
		return false;
	buf_put(out, str_make(row.at, (size_t)(slash - row.at)));
	return true;
}

bool whole_row(struct str key, struct str row, struct buf *out)
{
	(void)key;
	buf_put(out, row);
	return true;
}

static const struct store_index things_indexes[] = {{.name = "colour", .key_of = colour_of}};
static const struct store_index names_indexes[] = {{.name = "id", .unique = true, .key_of = whole_row}};
static const struct store_table tables[] = {
	{.name = "things", .version = 1, .indexes = things_indexes, .indexes_count = 1},
	{.name = "names", .version = 1, .indexes = names_indexes, .indexes_count = 1},
	{.name = "plain", .version = 1},
};
const struct store_schema plain_schema = {tables, COUNT(tables)};

/* ---- Worlds --------------------------------------------------------------------------------------------------------- */

void folder_make(char folder[64])
{
	snprintf(folder, 64, "/tmp/cheops-store-XXXXXX");
	assert_non_null(mkdtemp(folder));
	strcat(folder, "/store");
}

void folder_remove(const char *folder)
{
	DIR *entries = opendir(folder);
	struct dirent *entry;
	char path[512];
	while (entries && (entry = readdir(entries))) {
		snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] != '.')
			unlink(path);
	}
	if (entries)
		closedir(entries);
	rmdir(folder);
	snprintf(path, sizeof(path), "%s", folder);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

int open_folder(struct store **store, const char *folder, const struct store_schema *schema, struct err *err)
{
	struct store_options options = {.schema = schema, .folder = folder, .bytes_most = 64 << 20, .unsynced = true};
	return store_open(store, &options, err);
}

struct world world_open(void **state, const struct store_schema *schema)
{
	struct world world = {.kind = *(enum engine_kind *)*state};
	struct err err = {0};
	if (world.kind == ON_MEMORY) {
		world.store = store_open_memory(schema);
		return world;
	}
	folder_make(world.folder);
	if (open_folder(&world.store, world.folder, schema, &err))
		fail_msg("%s", err.text);
	return world;
}

int world_reopen(struct world *world, const struct store_schema *schema, struct err *err)
{
	if (world->kind == ON_MEMORY)
		return store_memory_reopen(&world->store, schema, err);
	store_close(world->store);
	world->store = NULL;
	return open_folder(&world->store, world->folder, schema, err);
}

void world_close(struct world *world)
{
	store_close(world->store);
	if (world->kind == ON_LMDB)
		folder_remove(world->folder);
}

/* ---- Rows ----------------------------------------------------------------------------------------------------------- */

struct store_session *begin_write(struct store *store)
{
	struct store_session *session = NULL;
	struct err err = {0};
	if (store_begin_write(store, &session, &err))
		fail_msg("%s", err.text);
	return session;
}

struct store_session *begin_read(struct store *store)
{
	struct store_session *session = NULL;
	struct err err = {0};
	if (store_begin_read(store, &session, &err))
		fail_msg("%s", err.text);
	return session;
}

void commit(struct store_session *session)
{
	struct err err = {0};
	if (store_commit(session, &err))
		fail_msg("%s", err.text);
}

void put_one(struct store *store, uint32_t table, const char *key, const char *row)
{
	struct store_session *session = begin_write(store);
	struct err err = {0};
	if (store_put(session, table, str_of(key), str_of(row), &err))
		fail_msg("%s", err.text);
	commit(session);
}

void assert_row(struct store *store, uint32_t table, const char *key, const char *row)
{
	struct store_session *session = begin_read(store);
	struct str found;
	struct err err = {0};
	int code = store_get(session, table, str_of(key), &found, &err);
	if (code != (row ? 0 : ERR_NOT_FOUND))
		fail_msg("key %s: code %d: %s", key, code, err.text);
	if (row && !str_equal(found, str_of(row)))
		fail_msg("key %s: %.*s, and not %s", key, STR_FMT(found), row);
	store_abort(session);
}

void scan_text(struct store_session *session, const struct store_range *range, struct buf *out)
{
	struct store_cursor *cursor;
	struct store_row row;
	struct err err = {0};
	assert_int_equal(store_scan(session, range, &cursor, &err), 0);
	int code;
	while ((code = store_next(cursor, &row, &err)) == 1) {
		if (out->length > 0)
			buf_put_char(out, ' ');
		if (range->index >= 0)
			buf_printf(out, "%.*s>", STR_FMT(row.index));
		buf_printf(out, "%.*s=%.*s", STR_FMT(row.key), STR_FMT(row.row));
	}
	if (code)
		fail_msg("%s", err.text);
	store_cursor_free(cursor);
}

void assert_scan_at(struct store_session *session, const struct store_range *range, const char *expected)
{
	struct buf text = {0};
	scan_text(session, range, &text);
	assert_string_equal(buf_c(&text), expected);
	buf_free(&text);
}

void assert_refused_at(int result, const struct err *err, int wanted, const char *part, const char *file, int line)
{
	if (result == wanted && err->code == wanted && strstr(err->text, part))
		return;
	print_error("%s:%d: code %d, text: %s\n  wanted: code %d with `%s`\n", file, line, result, err->text, wanted, part);
	fail();
}
