/* Versions: what is older is migrated, what is later refused, indexes come and go; on both engines. */
#include "store_test.h"

#include "base/bytes.h"

/* Version 1: "N"; version 2: "N;v2"; version 3: "v3/N;v2". */
static int migrate(uint32_t from, struct str key, struct str row, struct buf *out, struct err *err)
{
	(void)key;
	if (str_equal(row, STR("bad")))
		return err_set(err, ERR_CORRUPT, "a row that cannot be migrated");
	if (from == 1)
		buf_printf(out, "%.*s;v2", STR_FMT(row));
	else
		buf_printf(out, "v3/%.*s", STR_FMT(row));
	return 0;
}

static const struct store_index by_colour = {.name = "colour", .key_of = colour_of};
static const struct store_index by_all = {.name = "all", .key_of = whole_row};
static const struct store_index by_all_unique = {.name = "all", .unique = true, .key_of = whole_row};
static const struct store_index both[] = {{.name = "all", .key_of = whole_row},
                                          {.name = "colour", .key_of = colour_of}};

/* One table `t`, as most of these want it. */
#define SCHEMA(schema, ...)                                                                                            \
	static const struct store_table schema##_tables[] = {{.name = "t", __VA_ARGS__}};                                  \
	static const struct store_schema schema = {schema##_tables, 1}

SCHEMA(version_1, .version = 1);
SCHEMA(version_1_coloured, .version = 1, .indexes = &by_colour, .indexes_count = 1);
SCHEMA(version_1_all, .version = 1, .indexes = &by_all, .indexes_count = 1);
SCHEMA(version_1_unique, .version = 1, .indexes = &by_all_unique, .indexes_count = 1);
SCHEMA(version_1_both, .version = 1, .indexes = both, .indexes_count = 2);
SCHEMA(version_2, .version = 2, .migrate = migrate);
SCHEMA(version_3, .version = 3, .migrate = migrate, .indexes = &by_colour, .indexes_count = 1);
SCHEMA(version_3_deaf, .version = 3);

static void open_again(struct world *world, const struct store_schema *schema)
{
	struct err err = {0};
	if (world_reopen(world, schema, &err))
		fail_msg("%s", err.text);
}

/* A refused one is as it was. */
static void assert_open_refused(struct world *world, const struct store_schema *schema, int code, const char *part)
{
	struct err err = {0};
	assert_refused(world_reopen(world, schema, &err), err, code, part);
	if (world->kind == ON_LMDB)
		assert_null(world->store);
}

static void rows_are_migrated(void **state)
{
	struct world world = world_open(state, &version_1);
	enum { ROWS = 3000 };
	struct store_session *session = begin_write(world.store);
	for (int i = 0; i < ROWS; i++) {
		char text[16];
		snprintf(text, sizeof(text), "%05d", i);
		assert_int_equal(store_put(session, 0, str_of(text), str_of(text), NULL), 0);
	}
	commit(session);
	open_again(&world, &version_2);
	assert_row(world.store, 0, "00007", "00007;v2");
	put_one(world.store, 0, "new", "of version 2");
	open_again(&world, &version_3);
	assert_row(world.store, 0, "00007", "v3/00007;v2");
	assert_row(world.store, 0, "new", "v3/of version 2");
	struct store_usage usage;
	assert_int_equal(store_usage(world.store, &usage, NULL), 0);
	assert_int_equal(usage.rows, ROWS + 1);
	session = begin_read(world.store);
	assert_scan(session, "v3>02999=v3/02999;v2 v3>new=v3/of version 2", .table = 0, .index = 0, .from = STR("v3"),
	            .from_row = STR("02999"));
	store_abort(session);
	open_again(&world, &version_3); /* and once only */
	assert_row(world.store, 0, "00007", "v3/00007;v2");
	world_close(&world);
}

static void two_versions_at_once(void **state)
{
	struct world world = world_open(state, &version_1_coloured);
	put_one(world.store, 0, "k", "red/x");
	open_again(&world, &version_3);
	assert_row(world.store, 0, "k", "v3/red/x;v2");
	struct store_session *session = begin_read(world.store);
	assert_scan(session, "v3>k=v3/red/x;v2", .table = 0, .index = 0); /* the index went along */
	store_abort(session);
	world_close(&world);
}

static void a_migration_that_fails_changes_nothing(void **state)
{
	struct world world = world_open(state, &version_1);
	put_one(world.store, 0, "a", "1");
	put_one(world.store, 0, "b", "bad");
	assert_open_refused(&world, &version_3, ERR_CORRUPT,
	                    "migrating table `t` from version 1: key `b`: a row that cannot be migrated");
	if (world.kind == ON_LMDB)
		assert_int_equal(open_folder(&world.store, world.folder, &version_1, NULL), 0);
	assert_row(world.store, 0, "a", "1");
	assert_row(world.store, 0, "b", "bad");
	world_close(&world);
}

static void what_is_later_is_refused(void **state)
{
	struct world world = world_open(state, &version_3);
	put_one(world.store, 0, "k", "v");
	assert_open_refused(&world, &version_2, ERR_VERSION,
	                    "table `t` has rows of version 3, and this program knows up to 2: a later version of Cheops");
	if (world.kind == ON_LMDB)
		assert_int_equal(open_folder(&world.store, world.folder, &version_3, NULL), 0);
	assert_row(world.store, 0, "k", "v");
	world_close(&world);
}

static void what_is_too_old_is_refused(void **state)
{
	struct world world = world_open(state, &version_1);
	assert_open_refused(&world, &version_3_deaf, ERR_VERSION,
	                    "table `t` has rows of version 1, which this program no longer reads: it is at 3");
	world_close(&world);
}

static void an_unknown_table_is_refused(void **state)
{
	struct world world = world_open(state, &plain_schema);
	assert_open_refused(&world, &version_1, ERR_VERSION, "which this program does not know");
	world_close(&world);
}

/* The version of the format itself, written as a later program would. */
static void a_later_format_is_refused(void **state)
{
	struct world world = world_open(state, &version_1);
	struct store_session *session = begin_write(world.store);
	struct key key;
	struct buf row = {0};
	put_number(&row, STORE_FORMAT + 1, 4);
	key_of_row(&key, SPACE_CATALOGUE, STR("f"));
	assert_int_equal(session_put_entry(session, key_str(&key), 1, buf_str(&row), NULL), 0);
	/* What the later format has need not make sense to us. */
	key_of_row(&key, SPACE_CATALOGUE, STR("zzz"));
	assert_int_equal(session_put_entry(session, key_str(&key), 77, STR("?"), NULL), 0);
	commit(session);
	buf_free(&row);
	assert_open_refused(&world, &version_1, ERR_VERSION, "the file has format 2, and this program knows up to 1");
	world_close(&world);
}

static void tables_come_and_go(void **state)
{
	static const struct store_table before[] = {{.name = "stays", .version = 1}, {.name = "goes", .version = 1}};
	static const struct store_table after[] = {
		{.name = "comes", .version = 1}, {.name = "goes", .version = 0}, {.name = "stays", .version = 1}};
	static const struct store_schema old = {before, 2}, now = {after, 3};
	struct world world = world_open(state, &old);
	put_one(world.store, 0, "k", "stays");
	put_one(world.store, 1, "k", "goes");
	put_one(world.store, 1, "l", "goes");
	open_again(&world, &now);
	assert_row(world.store, 2, "k", "stays"); /* names count, not places */
	assert_row(world.store, 0, "k", NULL);
	put_one(world.store, 0, "k", "came");
	struct store_usage usage;
	assert_int_equal(store_usage(world.store, &usage, NULL), 0);
	assert_int_equal(usage.rows, 2);
	open_again(&world, &now);
	assert_row(world.store, 0, "k", "came");
	assert_row(world.store, 2, "k", "stays");
	world_close(&world);
}

static void indexes_come_and_go(void **state)
{
	struct world world = world_open(state, &version_1);
	put_one(world.store, 0, "1", "red/x");
	put_one(world.store, 0, "2", "blue/x");
	put_one(world.store, 0, "3", "none");
	open_again(&world, &version_1_coloured);
	struct store_session *session = begin_read(world.store);
	assert_scan(session, "blue>2=blue/x red>1=red/x", .table = 0, .index = 0);
	store_abort(session);
	open_again(&world, &version_1_both); /* in another place */
	put_one(world.store, 0, "4", "green/x");
	session = begin_read(world.store);
	assert_scan(session, "blue/x>2=blue/x green/x>4=green/x none>3=none red/x>1=red/x", .table = 0, .index = 0);
	assert_scan(session, "blue>2=blue/x green>4=green/x red>1=red/x", .table = 0, .index = 1);
	store_abort(session);
	struct store_usage with, without;
	assert_int_equal(store_usage(world.store, &with, NULL), 0);
	open_again(&world, &version_1);
	put_one(world.store, 0, "1", "changed/while no index was there");
	assert_int_equal(store_usage(world.store, &without, NULL), 0);
	assert_int_equal(without.rows, with.rows);
	open_again(&world, &version_1_coloured);
	session = begin_read(world.store);
	assert_scan(session, "blue>2=blue/x changed>1=changed/while no index was there green>4=green/x", .table = 0,
	            .index = 0);
	store_abort(session);
	world_close(&world);
}

static void an_index_becomes_unique_if_it_can(void **state)
{
	struct world world = world_open(state, &version_1_all);
	put_one(world.store, 0, "1", "a");
	put_one(world.store, 0, "2", "b");
	open_again(&world, &version_1_unique);
	struct store_session *session = begin_write(world.store);
	assert_int_equal(store_put(session, 0, STR("3"), STR("a"), NULL), ERR_CONFLICT);
	store_abort(session);
	open_again(&world, &version_1_all);
	put_one(world.store, 0, "3", "a");
	assert_open_refused(&world, &version_1_unique, ERR_CONFLICT,
	                    "building index `all` of table `t`: index `all` is unique, and row `1` has `a` already");
	world_close(&world);
}

static void the_most_that_can_be(void **state)
{
	static const struct store_index indexes[LIMIT_STORE_INDEXES] = {{.name = "a", .key_of = whole_row},
	                                                                {.name = "b", .key_of = whole_row},
	                                                                {.name = "c", .key_of = whole_row},
	                                                                {.name = "d", .key_of = whole_row}};
	static struct store_table tables[LIMIT_STORE_TABLES];
	static char names[LIMIT_STORE_TABLES][LIMIT_STORE_NAME_BYTES + 1];
	for (uint32_t i = 0; i < LIMIT_STORE_TABLES; i++) {
		snprintf(names[i], sizeof(names[i]), "a table with quite a long name%02u", i);
		tables[i] = (struct store_table){.name = names[i], .version = LIMIT_STORE_ROW_VERSION, .indexes = indexes};
		tables[i].indexes_count = LIMIT_STORE_INDEXES;
	}
	static const struct store_schema schema = {tables, LIMIT_STORE_TABLES};
	struct world world = world_open(state, &schema);
	for (uint32_t i = 0; i < LIMIT_STORE_TABLES; i++)
		put_one(world.store, i, "key", names[i]);
	open_again(&world, &schema);
	struct store_session *session = begin_read(world.store);
	for (uint32_t i = 0; i < LIMIT_STORE_TABLES; i++) {
		struct buf expected = {0};
		buf_printf(&expected, "%s>key=%s", names[i], names[i]);
		assert_scan(session, buf_c(&expected), .table = i, .index = 3);
		buf_free(&expected);
	}
	store_abort(session);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(rows_are_migrated),
		ON_BOTH(two_versions_at_once),
		ON_BOTH(a_migration_that_fails_changes_nothing),
		ON_BOTH(what_is_later_is_refused),
		ON_BOTH(what_is_too_old_is_refused),
		ON_BOTH(an_unknown_table_is_refused),
		ON_BOTH(a_later_format_is_refused),
		ON_BOTH(tables_come_and_go),
		ON_BOTH(indexes_come_and_go),
		ON_BOTH(an_index_becomes_unique_if_it_can),
		ON_BOTH(the_most_that_can_be),
	};
	return cmocka_run_group_tests_name("store schema", tests, NULL, NULL);
}
