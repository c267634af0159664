/* A writer is killed at random moments, again and again: all that it had reported is there, and each session is whole. */
#include "store_test.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROUNDS = 40, REPORTS_MOST = 30, ROWS = 5 };

/* Session N: rows "N.0" to "N.4" of colour N, the row "last", and one row of the session before is gone. */
static int write_session(struct store *store, uint32_t number, struct err *err)
{
	struct store_session *session;
	char key[32], row[600];
	int code = store_begin_write(store, &session, err);
	for (int i = 0; i < ROWS && code == 0; i++) {
		snprintf(key, sizeof(key), "%08u.%d", number, i);
		int length = snprintf(row, sizeof(row), "%08u/%d", number, i);
		memset(row + length, 'x', 500);
		code = store_put(session, THINGS, str_of(key), str_make(row, (size_t)length + 500), err);
	}
	snprintf(row, sizeof(row), "%u", number);
	code = code ? code : store_put(session, PLAIN, STR("last"), str_of(row), err);
	snprintf(key, sizeof(key), "%08u.0", number - 1);
	if (code == 0 && number > 1)
		code = store_delete(session, THINGS, str_of(key), err);
	return code ? code : store_commit(session, err);
}

static uint32_t last_of(struct store *store)
{
	struct store_session *session;
	struct str row;
	char text[16] = "0";
	if (store_begin_read(store, &session, NULL))
		abort();
	if (store_get(session, PLAIN, STR("last"), &row, NULL) == 0) {
		memcpy(text, row.at, row.length);
		text[row.length] = '\0';
	}
	store_abort(session);
	return (uint32_t)atoi(text);
}

static _Noreturn void run_writer(const char *folder, int report)
{
	struct store_options options = {.schema = &plain_schema, .folder = folder, .bytes_most = 256 << 20};
	struct store *store;
	struct err err = {0};
	if (store_open(&store, &options, &err))
		_exit(1);
	for (uint32_t number = last_of(store) + 1;; number++) {
		if (write_session(store, number, &err))
			_exit(2);
		if (write(report, &number, sizeof(number)) != sizeof(number))
			_exit(3);
	}
}

/* Returns the last number that was reported; all reports are read, also those that came before the end. */
static uint32_t run_and_kill(const char *folder, uint64_t *random, uint32_t reported)
{
	int pipes[2], status;
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		close(pipes[0]);
		run_writer(folder, pipes[1]);
	}
	close(pipes[1]);
	size_t reports = random_below(random, REPORTS_MOST);
	uint32_t number;
	for (size_t i = 0; i < reports; i++) {
		if (read(pipes[0], &number, sizeof(number)) != sizeof(number))
			break;
		reported = number;
	}
	usleep((useconds_t)random_below(random, 3000)); /* anywhere in what comes next: opening, writing, syncing */
	kill(child, SIGKILL);
	while (read(pipes[0], &number, sizeof(number)) == sizeof(number))
		reported = number;
	close(pipes[0]);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFSIGNALED(status)); /* it did not give up by itself */
	return reported;
}

static void check_whole(struct store *store, uint32_t last)
{
	struct store_session *session = begin_read(store);
	struct store_cursor *cursor;
	struct store_row row;
	struct err err = {0};
	uint32_t met = 0;
	for (int index = -1; index < 1; index++) {
		struct store_range range = {.table = THINGS, .index = index};
		met = 0;
		assert_int_equal(store_scan(session, &range, &cursor, &err), 0);
		while (store_next(cursor, &row, &err) == 1) {
			uint32_t number = met / (ROWS - 1) + 1, i = met % (ROWS - 1) + 1;
			if (number > last) /* the last session has its first row still */
				number = last, i = ROWS - 1;
			else if (number == last)
				i--;
			char key[32];
			snprintf(key, sizeof(key), "%08u.%u", number, i);
			if (!str_equal(row.key, str_of(key)))
				fail_msg("row %u is %.*s, and not %s; last %u", met, STR_FMT(row.key), key, last);
			met++;
		}
		assert_int_equal(err.code, 0);
		store_cursor_free(cursor);
		assert_int_equal(met, last > 0 ? last * (ROWS - 1) + 1 : 0);
	}
	store_abort(session);
	struct store_usage usage;
	assert_int_equal(store_usage(store, &usage, NULL), 0);
	assert_int_equal(usage.rows, met + (last > 0));
}

static void what_was_reported_is_there(void **state)
{
	(void)state;
	char folder[64];
	uint64_t random = (uint64_t)getpid() * 0x9e3779b97f4a7c15 + 1;
	uint32_t reported = 0;
	folder_make(folder);
	for (int round = 0; round < ROUNDS; round++) {
		struct store *store;
		struct err err = {0};
		reported = run_and_kill(folder, &random, reported);
		if (open_folder(&store, folder, &plain_schema, &err))
			fail_msg("round %d: %s", round, err.text);
		uint32_t last = last_of(store);
		if (last < reported || last > reported + 1)
			fail_msg("round %d: %u was reported, and %u is there", round, reported, last);
		check_whole(store, last);
		store_close(store);
		reported = last;
	}
	print_message("# %u sessions, %d kills\n", reported, ROUNDS);
	assert_true(reported > ROUNDS);
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(what_was_reported_is_there)};
	return cmocka_run_group_tests_name("store kill", tests, NULL, NULL);
}
