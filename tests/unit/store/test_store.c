/* Rows, indexes, scans and sessions: what holds on both engines. */
#include "store_test.h"

static void rows_come_and_go(void **state)
{
	struct world world = world_open(state, &plain_schema);
	put_one(world.store, PLAIN, "a", "1");
	put_one(world.store, PLAIN, "b", "");
	put_one(world.store, PLAIN, "", "the empty key");
	put_one(world.store, NAMES, "a", "another table");
	assert_row(world.store, PLAIN, "a", "1");
	assert_row(world.store, PLAIN, "b", "");
	assert_row(world.store, PLAIN, "", "the empty key");
	assert_row(world.store, PLAIN, "c", NULL);
	assert_row(world.store, THINGS, "a", NULL);
	put_one(world.store, PLAIN, "a", "2");
	assert_row(world.store, PLAIN, "a", "2");
	struct store_session *session = begin_write(world.store);
	struct err err = {0};
	assert_int_equal(store_delete(session, PLAIN, STR("a"), &err), 0);
	assert_refused(store_delete(session, PLAIN, STR("a"), &err), err, ERR_NOT_FOUND,
	               "table `plain`, key `a`: no such row");
	commit(session);
	assert_row(world.store, PLAIN, "a", NULL);
	assert_row(world.store, NAMES, "a", "another table");
	world_close(&world);
}

static void rows_are_still_there_when_opened_again(void **state)
{
	struct world world = world_open(state, &plain_schema);
	put_one(world.store, THINGS, "k", "red/x");
	assert_int_equal(world_reopen(&world, &plain_schema, NULL), 0);
	assert_row(world.store, THINGS, "k", "red/x");
	struct store_session *session = begin_read(world.store);
	assert_scan(session, "red>k=red/x", .table = THINGS, .index = 0);
	store_abort(session);
	world_close(&world);
}

static void a_session_is_all_or_nothing(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct err err = {0};
	put_one(world.store, THINGS, "old", "red/1");
	struct store_session *session = begin_write(world.store);
	assert_int_equal(store_put(session, THINGS, STR("new"), STR("blue/2"), &err), 0);
	assert_int_equal(store_delete(session, THINGS, STR("old"), &err), 0);
	assert_scan(session, "new=blue/2", .table = THINGS, .index = -1);
	assert_scan(session, "blue>new=blue/2", .table = THINGS, .index = 0);
	assert_row(world.store, THINGS, "old", "red/1"); /* others see nothing of it yet */
	assert_row(world.store, THINGS, "new", NULL);
	store_abort(session);
	assert_row(world.store, THINGS, "old", "red/1");
	assert_row(world.store, THINGS, "new", NULL);
	session = begin_read(world.store);
	assert_scan(session, "red>old=red/1", .table = THINGS, .index = 0);
	store_abort(session);
	world_close(&world);
}

static void a_reader_sees_what_was_when_it_began(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct str row;
	put_one(world.store, THINGS, "k", "red/1");
	struct store_session *before = begin_read(world.store);
	put_one(world.store, THINGS, "k", "blue/2");
	put_one(world.store, THINGS, "l", "red/3");
	struct store_session *after = begin_read(world.store);
	assert_int_equal(store_get(before, THINGS, STR("k"), &row, NULL), 0);
	assert_true(str_equal(row, STR("red/1")));
	assert_scan(before, "red>k=red/1", .table = THINGS, .index = 0);
	assert_scan(after, "blue>k=blue/2 red>l=red/3", .table = THINGS, .index = 0);
	store_abort(before);
	store_abort(after);
	world_close(&world);
}

static void readers_have_a_bound(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct store_session *sessions[LIMIT_STORE_READERS], *more;
	struct err err = {0};
	put_one(world.store, PLAIN, "k", "1");
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < LIMIT_STORE_READERS; i++)
			sessions[i] = begin_read(world.store);
		assert_refused(store_begin_read(world.store, &more, &err), err, ERR_LIMIT, "126 sessions read");
		put_one(world.store, PLAIN, "k", "2"); /* the writer does not mind */
		for (size_t i = 0; i < LIMIT_STORE_READERS; i++)
			store_abort(sessions[i]);
	}
	assert_row(world.store, PLAIN, "k", "2");
	world_close(&world);
}

static void scans_go_in_the_order_of_keys(void **state)
{
	struct world world = world_open(state, &plain_schema);
	static const char *const keys[] = {"b", "a", "ab", "abc", "ac", "b\xff", "c", ""};
	for (size_t i = 0; i < COUNT(keys); i++)
		put_one(world.store, PLAIN, keys[i], "");
	put_one(world.store, NAMES, "zz", "x"); /* neighbours of the table */
	put_one(world.store, THINGS, "zz", "x/y");
	for (int writes = 0; writes < 2; writes++) {
		struct store_session *session = writes ? begin_write(world.store) : begin_read(world.store);
		assert_scan(session, "= a= ab= abc= ac= b= b\xff= c=", .table = PLAIN, .index = -1);
		assert_scan(session, "a= ab= abc= ac=", .table = PLAIN, .index = -1, .prefix = STR("a"));
		assert_scan(session, "abc= ac=", .table = PLAIN, .index = -1, .prefix = STR("a"), .from = STR("abb"));
		assert_scan(session, "abc= ac=", .table = PLAIN, .index = -1, .prefix = STR("a"), .from = STR("abc"));
		assert_scan(session, "a= ab= abc= ac=", .table = PLAIN, .index = -1, .prefix = STR("a"), .from = STR("A"));
		assert_scan(session, "", .table = PLAIN, .index = -1, .prefix = STR("a"), .from = STR("b"));
		assert_scan(session, "", .table = PLAIN, .index = -1, .prefix = STR("x"));
		assert_scan(session, "b\xff= c=", .table = PLAIN, .index = -1, .from = STR("b\x01"));
		store_abort(session);
	}
	world_close(&world);
}

static void an_index_is_kept(void **state)
{
	struct world world = world_open(state, &plain_schema);
	put_one(world.store, THINGS, "1", "red/a");
	put_one(world.store, THINGS, "2", "blue/b");
	put_one(world.store, THINGS, "3", "red/c");
	put_one(world.store, THINGS, "4", "no colour");
	put_one(world.store, THINGS, "5", "reddish/d");
	put_one(world.store, THINGS, "6", "/empty");
	for (int writes = 0; writes < 2; writes++) {
		struct store_session *session = writes ? begin_write(world.store) : begin_read(world.store);
		assert_scan(session, ">6=/empty blue>2=blue/b red>1=red/a red>3=red/c reddish>5=reddish/d", .table = THINGS,
		            .index = 0);
		assert_scan(session, "red>1=red/a red>3=red/c reddish>5=reddish/d", .table = THINGS, .index = 0,
		            .prefix = STR("red"));
		assert_scan(session, "red>3=red/c reddish>5=reddish/d", .table = THINGS, .index = 0, .from = STR("red"),
		            .from_row = STR("2"));
		assert_scan(session, "reddish>5=reddish/d", .table = THINGS, .index = 0, .from = STR("redd"));
		store_abort(session);
	}
	put_one(world.store, THINGS, "1", "blue/a");  /* moves */
	put_one(world.store, THINGS, "3", "none");    /* leaves */
	put_one(world.store, THINGS, "4", "red/now"); /* comes */
	struct store_session *session = begin_write(world.store);
	assert_int_equal(store_delete(session, THINGS, STR("2"), NULL), 0);
	assert_int_equal(store_delete(session, THINGS, STR("3"), NULL), 0);
	commit(session);
	session = begin_read(world.store);
	assert_scan(session, ">6=/empty blue>1=blue/a red>4=red/now reddish>5=reddish/d", .table = THINGS, .index = 0);
	store_abort(session);
	world_close(&world);
}

/* "a" and "a\0" are different, and so are the two ways to divide the same bytes between index and row. */
static void an_index_takes_any_bytes(void **state)
{
	struct world world = world_open(state, &plain_schema);
	static const struct {
		struct str key, row;
	} rows[] = {
		{STR_INIT("b"), STR_INIT("a/")},       {STR_INIT("\0b"), STR_INIT("a/")},
		{STR_INIT("b"), STR_INIT("a\0/")},     {STR_INIT("\xff"), STR_INIT("a\0\0/")},
		{STR_INIT("c"), STR_INIT("a\0\xff/")}, {STR_INIT("d"), STR_INIT("a\1/")},
		{STR_INIT("e"), STR_INIT("\0/")},
	};
	struct store_session *session = begin_write(world.store);
	struct buf key = {0};
	for (size_t i = 0; i < COUNT(rows); i++) {
		buf_clear(&key);
		buf_put_char(&key, (char)('0' + i)); /* keys of their own */
		buf_put(&key, rows[i].key);
		assert_int_equal(store_put(session, THINGS, buf_str(&key), rows[i].row, NULL), 0);
	}
	commit(session);
	session = begin_read(world.store);
	/* e; a: 0, 1; a\0: 2; a\0\0: 3; a\0\xff: 4; a\1: 5 */
	static const char order[] = "6012345";
	struct store_cursor *cursor;
	struct store_row row;
	struct err err = {0};
	assert_int_equal(store_scan(session, &(struct store_range){.table = THINGS, .index = 0}, &cursor, &err), 0);
	for (size_t i = 0; i < COUNT(rows); i++) {
		if (store_next(cursor, &row, &err) != 1)
			fail_msg("%s", err.text);
		assert_int_equal(row.key.at[0], order[i]);
		size_t number = (size_t)(order[i] - '0');
		assert_true(str_equal(row.index, str_make(rows[number].row.at, rows[number].row.length - 1)));
		assert_true(str_equal(str_make(row.key.at + 1, row.key.length - 1), rows[number].key));
	}
	assert_int_equal(store_next(cursor, &row, &err), 0);
	store_cursor_free(cursor);
	struct store_range range = {.table = THINGS, .index = 0, .prefix = STR("a\0")};
	size_t met = 0;
	assert_int_equal(store_scan(session, &range, &cursor, &err), 0);
	while (store_next(cursor, &row, &err) == 1)
		met++;
	assert_int_equal(met, 3);
	store_cursor_free(cursor);
	store_abort(session);
	buf_free(&key);
	world_close(&world);
}

static void a_unique_index_refuses_the_second(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct err err = {0};
	put_one(world.store, NAMES, "first", "id-1");
	struct store_session *session = begin_write(world.store);
	assert_refused(store_put(session, NAMES, STR("second"), STR("id-1"), &err), err, ERR_CONFLICT,
	               "table `names`, key `second`: index `id` is unique, and row `first` has `id-1` already");
	/* The session goes on. */
	assert_int_equal(store_put(session, NAMES, STR("first"), STR("id-1"), &err), 0);
	assert_int_equal(store_put(session, NAMES, STR("second"), STR("id-2"), &err), 0);
	assert_int_equal(store_put(session, NAMES, STR("third"), STR("id-"), &err), 0);
	assert_int_equal(store_put(session, NAMES, STR("third"), STR("id-2"), &err), ERR_CONFLICT);
	assert_int_equal(store_delete(session, NAMES, STR("first"), &err), 0);
	assert_int_equal(store_put(session, NAMES, STR("third"), STR("id-1"), &err), 0);
	commit(session);
	session = begin_read(world.store);
	assert_scan(session, "id-1>third=id-1 id-2>second=id-2", .table = NAMES, .index = 0);
	store_abort(session);
	world_close(&world);
}

static void what_is_too_long_is_told(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct err err = {0};
	struct str row;
	struct buf bytes = {0};
	buf_put_repeat(&bytes, 'k', LIMIT_STORE_ROW_BYTES + 1);
	struct str longest = str_make(bytes.at, LIMIT_STORE_KEY_BYTES),
			   longer = str_make(bytes.at, LIMIT_STORE_KEY_BYTES + 1);
	struct store_session *session = begin_write(world.store);
	assert_int_equal(store_put(session, PLAIN, longest, str_make(bytes.at, LIMIT_STORE_ROW_BYTES), &err), 0);
	assert_refused(store_put(session, PLAIN, longer, STR(""), &err), err, ERR_LIMIT,
	               "the key has 481 bytes; up to 480");
	assert_refused(store_put(session, PLAIN, STR("k"), buf_str(&bytes), &err), err, ERR_LIMIT, "up to 16777216");
	assert_refused(store_get(session, PLAIN, longer, &row, &err), err, ERR_NOT_FOUND, "no such row");
	assert_refused(store_delete(session, PLAIN, longer, &err), err, ERR_NOT_FOUND, "no such row");
	/* Key and index together. */
	assert_int_equal(store_put(session, NAMES, longest, str_make(bytes.at, LIMIT_STORE_INDEX_BYTES - 480), &err), 0);
	assert_refused(store_put(session, NAMES, longest, str_make(bytes.at, LIMIT_STORE_INDEX_BYTES - 479), &err), err,
	               ERR_LIMIT, "its key in index `id` has 29 bytes, and its own 480; together up to 508");
	assert_int_equal(store_put(session, NAMES, STR("k"), str_make(bytes.at, LIMIT_STORE_INDEX_BYTES - 1), &err), 0);
	struct store_cursor *cursor;
	struct store_range range = {.table = PLAIN, .index = -1, .prefix = longer};
	assert_refused(store_scan(session, &range, &cursor, &err), err, ERR_LIMIT, "up to 480 bytes");
	commit(session);
	session = begin_read(world.store);
	assert_int_equal(store_get(session, PLAIN, longest, &row, &err), 0);
	assert_true(str_equal(row, str_make(bytes.at, LIMIT_STORE_ROW_BYTES)));
	store_abort(session);
	assert_int_equal(world_reopen(&world, &plain_schema, &err), 0);
	buf_free(&bytes);
	world_close(&world);
}

/* Slices of a session may be given back to it. */
static void what_was_read_can_be_written(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct str row;
	struct buf wide = {0};
	buf_put_repeat(&wide, 'w', 1500);
	struct store_session *session = begin_write(world.store);
	for (int i = 0; i < 40; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%02d", i);
		wide.at[0] = (char)('A' + i % 26);
		assert_int_equal(store_put(session, PLAIN, str_of(key), buf_str(&wide), NULL), 0);
	}
	for (int i = 0; i < 40; i++) {
		char key[16], to[16];
		snprintf(key, sizeof(key), "%02d", i);
		snprintf(to, sizeof(to), "%02dx", i);
		assert_int_equal(store_get(session, PLAIN, str_of(key), &row, NULL), 0);
		assert_int_equal(store_put(session, PLAIN, str_of(to), row, NULL), 0);
		assert_int_equal(store_get(session, PLAIN, str_of(to), &row, NULL), 0);
		assert_int_equal(row.length, 1500);
		assert_int_equal(row.at[0], 'A' + i % 26);
		assert_int_equal(row.at[1499], 'w');
	}
	commit(session);
	buf_free(&wide);
	world_close(&world);
}

static void a_scan_may_delete_what_it_meets(void **state)
{
	struct world world = world_open(state, &plain_schema);
	enum { ROWS = 500 };
	for (int by_index = 0; by_index < 2; by_index++) {
		struct store_session *session = begin_write(world.store);
		for (int i = 0; i < ROWS; i++) {
			char key[32], row[32];
			snprintf(key, sizeof(key), "%03d", i);
			snprintf(row, sizeof(row), "c%d/%d", i % 7, i);
			assert_int_equal(store_put(session, THINGS, str_of(key), str_of(row), NULL), 0);
		}
		commit(session);
		session = begin_write(world.store);
		struct store_cursor *cursor;
		struct store_row row;
		struct err err = {0};
		struct store_range range = {.table = THINGS, .index = by_index ? 0 : -1};
		int met = 0;
		assert_int_equal(store_scan(session, &range, &cursor, &err), 0);
		while (store_next(cursor, &row, &err) == 1) {
			assert_int_equal(store_delete(session, THINGS, row.key, &err), 0);
			struct buf kept = {0}; /* the slices are still good */
			buf_put(&kept, row.row);
			assert_true(row.key.length == 3 && row.row.at[0] == 'c');
			buf_free(&kept);
			met++;
		}
		assert_int_equal(met, ROWS);
		store_cursor_free(cursor);
		assert_scan(session, "", .table = THINGS, .index = -1);
		assert_scan(session, "", .table = THINGS, .index = 0);
		commit(session);
	}
	world_close(&world);
}

static void figures_are_those_of_what_is_there(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct store_usage usage;
	assert_int_equal(store_usage(world.store, &usage, NULL), 0);
	uint64_t commits = usage.commits, empty = usage.bytes_used;
	assert_int_equal(usage.rows, 0);
	for (int i = 0; i < 100; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%d", i);
		put_one(world.store, THINGS, key, "red/a row that takes some bytes in the store and in its index");
	}
	put_one(world.store, THINGS, "7", "red/again");
	struct store_session *session = begin_write(world.store);
	assert_int_equal(store_delete(session, THINGS, STR("8"), NULL), 0);
	commit(session);
	session = begin_write(world.store);
	assert_int_equal(store_delete(session, THINGS, STR("9"), NULL), 0);
	store_abort(session);
	session = begin_write(world.store);
	assert_int_equal(store_put(session, THINGS, STR("7"), STR("red/again"), NULL), 0);
	commit(session); /* nothing changed: no commit */
	assert_int_equal(world_reopen(&world, &plain_schema, NULL), 0);
	assert_int_equal(store_usage(world.store, &usage, NULL), 0);
	assert_int_equal(usage.rows, 99);
	assert_int_equal(usage.commits, commits + 102);
	assert_true(usage.bytes_used > empty && usage.bytes_file >= usage.bytes_used);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(rows_come_and_go),
		ON_BOTH(rows_are_still_there_when_opened_again),
		ON_BOTH(a_session_is_all_or_nothing),
		ON_BOTH(a_reader_sees_what_was_when_it_began),
		ON_BOTH(readers_have_a_bound),
		ON_BOTH(scans_go_in_the_order_of_keys),
		ON_BOTH(an_index_is_kept),
		ON_BOTH(an_index_takes_any_bytes),
		ON_BOTH(a_unique_index_refuses_the_second),
		ON_BOTH(what_is_too_long_is_told),
		ON_BOTH(what_was_read_can_be_written),
		ON_BOTH(a_scan_may_delete_what_it_meets),
		ON_BOTH(figures_are_those_of_what_is_there),
	};
	return cmocka_run_group_tests_name("store", tests, NULL, NULL);
}
