/* What the simulator does to the engine in memory. */
#include "store_test.h"

static void put_number_row(struct store *store, int number)
{
	char text[16];
	snprintf(text, sizeof(text), "%d", number);
	put_one(store, THINGS, "last", text);
	put_one(store, THINGS, text, "red/x");
}

static int last_of(struct store *store)
{
	struct store_session *session = begin_read(store);
	struct str row;
	char text[16] = "0";
	if (store_get(session, THINGS, STR("last"), &row, NULL) == 0) {
		memcpy(text, row.at, row.length);
		text[row.length] = '\0';
	}
	store_abort(session);
	return atoi(text);
}

static void a_commit_fails_as_a_whole(void **state)
{
	(void)state;
	struct store *store = store_open_memory(&plain_schema);
	struct err err = {0};
	put_one(store, THINGS, "k", "red/1");
	store_memory_fail_next(store, ERR_IO);
	struct store_session *session = begin_write(store);
	assert_int_equal(store_put(session, THINGS, STR("k"), STR("blue/2"), &err), 0);
	assert_int_equal(store_put(session, THINGS, STR("l"), STR("blue/3"), &err), 0);
	assert_refused(store_commit(session, &err), err, ERR_IO, "committing: the simulated disk failed");
	assert_row(store, THINGS, "k", "red/1");
	assert_row(store, THINGS, "l", NULL);
	put_one(store, THINGS, "k", "green/4"); /* the next one does not */
	assert_row(store, THINGS, "k", "green/4");
	struct store_usage usage;
	assert_int_equal(store_usage(store, &usage, NULL), 0);
	assert_int_equal(usage.rows, 1);
	store_close(store);
}

static void without_laziness_a_crash_loses_nothing(void **state)
{
	(void)state;
	struct store *store = store_open_memory(&plain_schema);
	for (int i = 1; i <= 10; i++) {
		put_number_row(store, i);
		store_memory_crash(store, (uint64_t)i * 7919);
		assert_int_equal(last_of(store), i);
	}
	store_close(store);
}

/* Each commit since the last sync is a possible end, and no other state is. */
static void a_crash_goes_back_to_some_commit(void **state)
{
	(void)state;
	enum { SYNCED = 5, LAST = 12 };
	bool met[LAST + 1] = {false};
	for (uint64_t random = 0; random < 200; random++) {
		struct store *store = store_open_memory(&plain_schema);
		store_memory_set_lazy(store, true);
		for (int i = 1; i <= LAST; i++) {
			struct store_session *session = begin_write(store);
			char text[16];
			snprintf(text, sizeof(text), "%d", i);
			assert_int_equal(store_put(session, THINGS, STR("last"), str_of(text), NULL), 0);
			assert_int_equal(store_put(session, THINGS, str_of(text), STR("red/x"), NULL), 0);
			commit(session);
			if (i == SYNCED)
				store_memory_sync(store);
		}
		assert_int_equal(last_of(store), LAST);
		store_memory_crash(store, random);
		int last = last_of(store);
		assert_in_range(last, SYNCED, LAST);
		met[last] = true;
		for (int i = 1; i <= LAST; i++) {
			char text[16];
			snprintf(text, sizeof(text), "%d", i);
			assert_row(store, THINGS, text, i <= last ? "red/x" : NULL);
		}
		struct store_usage usage;
		assert_int_equal(store_usage(store, &usage, NULL), 0);
		assert_int_equal(usage.rows, last + 1);
		store_memory_crash(store, random * 31); /* what a crash left is durable */
		assert_int_equal(last_of(store), last);
		put_number_row(store, 99);
		assert_int_equal(last_of(store), 99);
		store_close(store);
	}
	for (int i = SYNCED; i <= LAST; i++)
		assert_true(met[i]);
}

static void what_was_lazy_becomes_durable(void **state)
{
	(void)state;
	struct store *store = store_open_memory(&plain_schema);
	store_memory_set_lazy(store, true);
	put_number_row(store, 1);
	store_memory_set_lazy(store, false);
	store_memory_crash(store, 0);
	assert_int_equal(last_of(store), 1);
	/* And in time, anyway. */
	store_memory_set_lazy(store, true);
	for (int i = 0; i < LIMIT_STORE_UNSYNCED; i++)
		put_number_row(store, 2 + i); /* two commits each */
	store_memory_crash(store, 0);
	assert_in_range(last_of(store), LIMIT_STORE_UNSYNCED / 2, LIMIT_STORE_UNSYNCED);
	store_close(store);
}

static void every_bit_that_flips_is_noticed(void **state)
{
	(void)state;
	for (uint64_t random = 0; random < 600; random++) {
		struct store *store = store_open_memory(&plain_schema);
		assert_false(store_memory_damage(store, random));
		put_one(store, THINGS, "a", "red/1");
		put_one(store, THINGS, "b", "blue/2");
		assert_true(store_memory_damage(store, random));
		struct store_session *session = begin_read(store);
		struct err err = {0};
		int corrupt = 0;
		for (int index = -1; index < 1; index++) {
			struct store_cursor *cursor;
			struct store_row row;
			struct store_range range = {.table = THINGS, .index = index};
			assert_int_equal(store_scan(session, &range, &cursor, &err), 0);
			int code;
			while ((code = store_next(cursor, &row, &err)) == 1)
				;
			corrupt += code == ERR_CORRUPT;
			if (code)
				assert_non_null(strstr(err.text, "scanning table `things`: "));
			store_cursor_free(cursor);
		}
		assert_true(corrupt > 0);
		store_abort(session);
		store_close(store);
	}
}

/* A row that cannot be read cannot be changed either, where an index depends on what it was; the others can. */
static void a_damaged_row_stays_alone(void **state)
{
	(void)state;
	struct store *store = store_open_memory(&plain_schema);
	struct err err = {0};
	struct str row;
	put_one(store, PLAIN, "a", "1");
	assert_true(store_memory_damage(store, 12345));
	struct store_session *session = begin_write(store);
	assert_refused(store_get(session, PLAIN, STR("a"), &row, &err), err, ERR_CORRUPT,
	               "table `plain`, key `a`: its check sum does not match");
	assert_int_equal(store_put(session, PLAIN, STR("b"), STR("2"), &err), 0);
	assert_int_equal(store_put(session, PLAIN, STR("a"), STR("mended"), &err), 0);
	commit(session);
	assert_row(store, PLAIN, "a", "mended");
	store_close(store);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_commit_fails_as_a_whole),        cmocka_unit_test(without_laziness_a_crash_loses_nothing),
		cmocka_unit_test(a_crash_goes_back_to_some_commit), cmocka_unit_test(what_was_lazy_becomes_durable),
		cmocka_unit_test(every_bit_that_flips_is_noticed),  cmocka_unit_test(a_damaged_row_stays_alone),
	};
	return cmocka_run_group_tests_name("store memory", tests, NULL, NULL);
}
