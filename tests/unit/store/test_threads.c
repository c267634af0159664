/* Readers in threads while the writer commits: each sees one commit, whole, and never an older one than before. */
#include "store_test.h"

#include <pthread.h>

enum { READERS = 4, ROWS = 32, COMMITS = 400, WRITERS = 3 };

struct shared {
	struct store *store;
	atomic_bool done;
	atomic_uint reads;
	atomic_uint wrong;
};

/* Commit N puts N into every row; rows of one state are all alike, and the index has them all under one key. */
static void write_all(struct store *store, int number)
{
	struct store_session *session = begin_write(store);
	for (int i = 0; i < ROWS; i++) {
		char key[16], row[32];
		snprintf(key, sizeof(key), "%02d", i);
		snprintf(row, sizeof(row), "%08d/%d", number, i);
		if (store_put(session, THINGS, str_of(key), str_of(row), NULL))
			abort();
	}
	commit(session);
}

static bool read_all(struct store *store, char last[9])
{
	struct store_session *session;
	struct store_cursor *cursor;
	struct store_row row;
	struct str one;
	char first[9] = "";
	if (store_begin_read(store, &session, NULL))
		return false;
	bool good = true;
	int met = 0;
	if (store_scan(session, &(struct store_range){.table = THINGS, .index = 0}, &cursor, NULL))
		abort();
	int code;
	while ((code = store_next(cursor, &row, NULL)) == 1) {
		if (met++ == 0)
			memcpy(first, row.row.at, 8);
		good = good && memcmp(first, row.row.at, 8) == 0 && memcmp(first, row.index.at, 8) == 0;
	}
	good = good && code == 0 && (met == ROWS || met == 0);
	store_cursor_free(cursor);
	if (met > 0)
		good = good && store_get(session, THINGS, STR("07"), &one, NULL) == 0 && memcmp(first, one.at, 8) == 0;
	store_abort(session);
	good = good && memcmp(first, last, 8) >= 0;
	memcpy(last, first, 9);
	return good;
}

static void *reader(void *context)
{
	struct shared *shared = context;
	char last[9] = "";
	while (!atomic_load(&shared->done) || atomic_load(&shared->reads) < READERS) {
		if (!read_all(shared->store, last))
			atomic_fetch_add(&shared->wrong, 1);
		atomic_fetch_add(&shared->reads, 1);
	}
	return NULL;
}

static void readers_see_whole_commits(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct shared shared = {.store = world.store};
	pthread_t threads[READERS];
	write_all(world.store, 0);
	for (int i = 0; i < READERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, reader, &shared), 0);
	for (int i = 1; i <= COMMITS; i++)
		write_all(world.store, i);
	atomic_store(&shared.done, true);
	for (int i = 0; i < READERS; i++)
		pthread_join(threads[i], NULL);
	assert_int_equal(shared.wrong, 0);
	assert_true(shared.reads >= READERS);
	char last[9] = "";
	assert_true(read_all(world.store, last));
	assert_string_equal(last, "00000400");
	world_close(&world);
}

static void *counter(void *context)
{
	struct shared *shared = context;
	for (int i = 0; i < 100; i++) {
		struct store_session *session = begin_write(shared->store);
		struct str row;
		char text[16] = "0";
		if (store_get(session, PLAIN, STR("count"), &row, NULL) == 0) {
			memcpy(text, row.at, row.length);
			text[row.length] = '\0';
		}
		snprintf(text, sizeof(text), "%d", atoi(text) + 1);
		if (store_put(session, PLAIN, STR("count"), str_of(text), NULL))
			abort();
		commit(session);
	}
	return NULL;
}

/* There is one writer at a time; the others wait. */
static void writers_take_turns(void **state)
{
	struct world world = world_open(state, &plain_schema);
	struct shared shared = {.store = world.store};
	pthread_t threads[WRITERS];
	for (int i = 0; i < WRITERS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, counter, &shared), 0);
	for (int i = 0; i < WRITERS; i++)
		pthread_join(threads[i], NULL);
	assert_row(world.store, PLAIN, "count", "300");
	world_close(&world);
}

static void *end_session(void *context)
{
	store_abort(context);
	return NULL;
}

/* A reading session may go from one thread to another. */
static void a_session_may_end_elsewhere(void **state)
{
	struct world world = world_open(state, &plain_schema);
	for (int i = 0; i < 2 * LIMIT_STORE_READERS; i++) {
		pthread_t thread;
		assert_int_equal(pthread_create(&thread, NULL, end_session, begin_read(world.store)), 0);
		pthread_join(thread, NULL);
	}
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		ON_BOTH(readers_see_whole_commits),
		ON_BOTH(writers_take_turns),
		ON_BOTH(a_session_may_end_elsewhere),
	};
	return cmocka_run_group_tests_name("store threads", tests, NULL, NULL);
}
