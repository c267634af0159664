/* The folder and the disk: two processes, no right to write, no room, files that are something else. LMDB only. */
#include "store_test.h"

#include <fcntl.h>
#include <lmdb.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void data_file(char out[96], const char *folder)
{
	snprintf(out, 96, "%s/data.mdb", folder);
}

static void write_file(const char *folder, const char *bytes, size_t length)
{
	char path[96];
	data_file(path, folder);
	mkdir(folder, 0700);
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, length), length);
	close(fd);
}

/* ---- Who has it ----------------------------------------------------------------------------------------------------- */

static void one_store_at_a_time(void **state)
{
	(void)state;
	char folder[64], who[64];
	struct store *first, *second;
	struct err err = {0};
	folder_make(folder);
	assert_int_equal(open_folder(&first, folder, &plain_schema, &err), 0);
	snprintf(who, sizeof(who), "is in use by process %ld (", (long)getpid());
	assert_refused(open_folder(&second, folder, &plain_schema, &err), err, ERR_UNAVAILABLE, who);
	assert_non_null(strstr(err.text, "stop that one"));
	put_one(first, PLAIN, "k", "the first one does not mind");
	store_close(first);
	assert_int_equal(open_folder(&second, folder, &plain_schema, &err), 0);
	assert_row(second, PLAIN, "k", "the first one does not mind");
	store_close(second);
	folder_remove(folder);
}

/* Another process has it, until it is killed; then there is nothing to clean up. */
static void a_killed_holder_lets_go(void **state)
{
	(void)state;
	char folder[64], who[64], ready;
	struct store *store;
	struct err err = {0};
	int pipes[2];
	folder_make(folder);
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork();
	if (child == 0) {
		struct store_session *reader, *writer;
		if (open_folder(&store, folder, &plain_schema, NULL) || store_begin_read(store, &reader, NULL) ||
		    store_begin_write(store, &writer, NULL) || write(pipes[1], "r", 1) != 1)
			_exit(1);
		pause();
		_exit(0);
	}
	assert_int_equal(read(pipes[0], &ready, 1), 1);
	snprintf(who, sizeof(who), "is in use by process %ld (", (long)child);
	assert_refused(open_folder(&store, folder, &plain_schema, &err), err, ERR_UNAVAILABLE, who);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	close(pipes[0]);
	close(pipes[1]);
	assert_int_equal(open_folder(&store, folder, &plain_schema, &err), 0);
	/* It left a reader and a writer behind: neither is in the way, and pages are used again. */
	struct store_usage before, after;
	for (int i = 0; i < 20; i++)
		put_one(store, PLAIN, "k", i % 2 ? "odd" : "even");
	assert_int_equal(store_usage(store, &before, NULL), 0);
	for (int i = 0; i < 200; i++)
		put_one(store, PLAIN, "k", i % 2 ? "odd" : "even");
	assert_int_equal(store_usage(store, &after, NULL), 0);
	assert_int_equal(before.bytes_file, after.bytes_file);
	store_close(store);
	folder_remove(folder);
}

/* ---- What is there is something else -------------------------------------------------------------------------------- */

static void what_is_no_store_is_told(void **state)
{
	(void)state;
	static char zeros[3 * 4096];
	static const struct {
		const char *bytes;
		size_t length;
		const char *part;
	} files[] = {
		{"hello", 5, "it has 5 bytes, which is not even its first pages"},
		{zeros, 100, "not even its first pages"},
		{zeros, sizeof(zeros), "it is not a file of LMDB"},
	};
	for (size_t i = 0; i < COUNT(files); i++) {
		char folder[64], path[96];
		struct store *store;
		struct err err = {0};
		struct stat status;
		folder_make(folder);
		data_file(path, folder);
		write_file(folder, files[i].bytes, files[i].length);
		assert_refused(open_folder(&store, folder, &plain_schema, &err), err, ERR_CORRUPT, files[i].part);
		assert_non_null(strstr(err.text, path));
		assert_int_equal(stat(path, &status), 0); /* untouched */
		assert_int_equal(status.st_size, files[i].length);
		folder_remove(folder);
	}
}

/* A database of LMDB that somebody else made. */
static void a_strangers_database_is_told(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	struct err err = {0};
	MDB_env *env;
	MDB_txn *txn;
	MDB_dbi tree;
	folder_make(folder);
	assert_int_equal(mkdir(folder, 0700), 0);
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_open(env, folder, 0, 0600), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &txn), 0);
	assert_int_equal(mdb_dbi_open(txn, NULL, 0, &tree), 0);
	char hello[] = "hello", world[] = "world";
	MDB_val key = {5, hello}, value = {5, world};
	assert_int_equal(mdb_put(txn, tree, &key, &value, 0), 0);
	assert_int_equal(mdb_txn_commit(txn), 0);
	mdb_env_close(env);
	assert_refused(open_folder(&store, folder, &plain_schema, &err), err, ERR_CORRUPT, "no store of Cheops");
	folder_remove(folder);
}

/* An empty file is what a crash in the very first moment leaves. */
static void an_empty_file_is_a_new_store(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	folder_make(folder);
	write_file(folder, "", 0);
	assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
	put_one(store, PLAIN, "k", "v");
	store_close(store);
	folder_remove(folder);
}

static void the_folder_above_has_to_be_there(void **state)
{
	(void)state;
	struct store *store;
	struct err err = {0};
	assert_refused(open_folder(&store, "/nonexistent/cheops/store", &plain_schema, &err), err, ERR_IO,
	               "cannot make the folder /nonexistent/cheops/store: No such file or directory; the folder above it");
	assert_refused(open_folder(&store, "/dev/null", &plain_schema, &err), err, ERR_IO, "Not a directory");
}

/* ---- No right to write ---------------------------------------------------------------------------------------------- */

/* Runs in a process of its own, without root's rights. Its status is 0 if `check` says so. */
static void as_nobody(bool (*check)(const char *folder), const char *folder)
{
	pid_t child = fork();
	if (child == 0) {
		if (geteuid() == 0 && setresuid(65534, 65534, 65534))
			_exit(2);
		_exit(check(folder) ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool is_told_to_be_unwritable(const char *folder)
{
	struct store *store;
	struct err err = {0};
	int code = open_folder(&store, folder, &plain_schema, &err);
	bool good = code == ERR_IO && strstr(err.text, "Permission denied; the folder has to be writable for the user");
	if (!good)
		print_error("code %d: %s\n", code, err.text);
	return good;
}

static void a_folder_without_rights_is_told(void **state)
{
	(void)state;
	char folder[64], above[64], path[96];
	struct store *store;
	folder_make(folder);
	snprintf(above, sizeof(above), "%s", folder);
	*strrchr(above, '/') = '\0';
	assert_int_equal(chmod(above, 0555), 0);
	as_nobody(is_told_to_be_unwritable, folder); /* it cannot be made */
	assert_int_equal(chmod(above, 0755), 0);
	assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
	put_one(store, PLAIN, "k", "v");
	store_close(store);
	assert_int_equal(chmod(folder, 0555), 0);
	snprintf(path, sizeof(path), "%s/holder", folder);
	assert_int_equal(chmod(path, 0444), 0);
	as_nobody(is_told_to_be_unwritable, folder); /* nor written, where it is there */
	assert_int_equal(chmod(folder, 0755), 0);
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
	assert_row(store, PLAIN, "k", "v");
	store_close(store);
	folder_remove(folder);
}

/* ---- No room -------------------------------------------------------------------------------------------------------- */

static const struct store_options *small_options(const char *folder)
{
	static struct store_options options;
	options =
		(struct store_options){.schema = &plain_schema, .folder = folder, .bytes_most = 1 << 20, .unsynced = true};
	return &options;
}

/* Rows "N" of a kilobyte, in sessions of 16, until one is refused. Returns how many are there. */
static int fill(struct store *store, struct err *err, int *code)
{
	struct buf row = {0};
	buf_put(&row, STR("red/"));
	buf_put_repeat(&row, 'x', 1000);
	int committed = 0;
	for (*code = 0; *code == 0 && committed < 100000;) {
		struct store_session *session = begin_write(store);
		for (int i = 0; i < 16 && *code == 0; i++) {
			char key[16];
			snprintf(key, sizeof(key), "%06d", committed + i);
			*code = store_put(session, THINGS, str_of(key), buf_str(&row), err);
		}
		if (*code)
			store_abort(session);
		else if ((*code = store_commit(session, err)) == 0)
			committed += 16;
	}
	buf_free(&row);
	return committed;
}

static void check_filled(struct store *store, int committed)
{
	struct store_session *session = begin_read(store);
	struct store_cursor *cursor;
	struct store_row row;
	int met = 0;
	assert_int_equal(store_scan(session, &(struct store_range){.table = THINGS, .index = 0}, &cursor, NULL), 0);
	while (store_next(cursor, &row, NULL) == 1)
		met++;
	assert_int_equal(met, committed);
	store_cursor_free(cursor);
	store_abort(session);
}

static void a_full_store_reads_and_deletes(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	struct err err = {0};
	struct store_usage usage;
	int code;
	folder_make(folder);
	assert_int_equal(store_open(&store, small_options(folder), &err), 0);
	for (int round = 0; round < 3; round++) {
		int committed = fill(store, &err, &code);
		assert_refused(code, err, ERR_LIMIT, "the store is full: it may use 1048576 bytes");
		assert_true(committed > 300);
		check_filled(store, committed);
		assert_int_equal(store_usage(store, &usage, &err), 0);
		assert_in_range(usage.bytes_used, 1 << 20, (1 << 20) + (256 << 10));
		if (round == 1) { /* also after a restart */
			store_close(store);
			assert_int_equal(store_open(&store, small_options(folder), &err), 0);
		}
		for (int i = 0; i < committed; i++) {
			struct store_session *session = begin_write(store);
			char key[16];
			snprintf(key, sizeof(key), "%06d", i);
			if (store_delete(session, THINGS, str_of(key), &err))
				fail_msg("%s", err.text);
			commit(session);
		}
		check_filled(store, 0);
		put_one(store, THINGS, "there is room again", "red/x");
		struct store_session *session = begin_write(store);
		assert_int_equal(store_delete(session, THINGS, STR("there is room again"), &err), 0);
		commit(session);
	}
	store_close(store);
	folder_remove(folder);
}

/* More than the map can hold, in one session. */
static void a_session_that_is_too_large_leaves_nothing(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	struct err err = {0};
	int code = 0, i;
	struct buf row = {0};
	buf_put_repeat(&row, 'x', 3000);
	folder_make(folder);
	assert_int_equal(store_open(&store, small_options(folder), &err), 0);
	put_one(store, PLAIN, "before", "1");
	struct store_session *session = begin_write(store);
	for (i = 0; i < 10000 && code == 0; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%06d", i);
		code = store_put(session, PLAIN, str_of(key), buf_str(&row), &err);
	}
	assert_refused(code, err, ERR_LIMIT, "the store is full");
	assert_true(i > 100);
	/* Halfway is not an option. */
	assert_refused(store_put(session, PLAIN, STR("x"), STR("y"), &err), err, ERR_LIMIT, "failed before");
	assert_refused(store_delete(session, PLAIN, STR("before"), &err), err, ERR_LIMIT, "failed before");
	assert_refused(store_commit(session, &err), err, ERR_LIMIT, "failed before");
	assert_row(store, PLAIN, "before", "1");
	assert_row(store, PLAIN, "000000", NULL);
	put_one(store, PLAIN, "after", "2");
	store_close(store);
	assert_int_equal(store_open(&store, small_options(folder), &err), 0);
	assert_row(store, PLAIN, "after", "2");
	store_close(store);
	buf_free(&row);
	folder_remove(folder);
}

static bool fills_a_full_disk(const char *folder)
{
	struct store_options options = {.schema = &plain_schema, .folder = folder, .bytes_most = 64 << 20};
	struct store *store;
	struct err err = {0};
	struct str row;
	struct store_session *session;
	int code;
	signal(SIGXFSZ, SIG_IGN);
	if (setrlimit(RLIMIT_FSIZE, &(struct rlimit){300 * 1000, RLIM_INFINITY}) || store_open(&store, &options, &err))
		return false;
	int committed = fill(store, &err, &code);
	bool good = code == ERR_LIMIT && strstr(err.text, "the disk is full") && committed > 100;
	if (!good)
		print_error("code %d after %d: %s\n", code, committed, err.text);
	/* Reading goes on, and so does writing once there is room. */
	good = good && store_begin_read(store, &session, NULL) == 0 &&
	       store_get(session, THINGS, STR("000000"), &row, NULL) == 0;
	if (good)
		store_abort(session);
	setrlimit(RLIMIT_FSIZE, &(struct rlimit){RLIM_INFINITY, RLIM_INFINITY});
	good =
		good && store_begin_write(store, &session, &err) == 0 &&
		store_put(session, PLAIN, STR("committed"), str_make((const char *)&committed, sizeof(committed)), &err) == 0 &&
		store_commit(session, &err) == 0;
	store_close(store);
	return good;
}

/* A limit on the size of files fails writes as a full disk does, in the middle of a commit, and needs no rights. */
static void a_full_disk_is_told(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	struct str row;
	int committed;
	folder_make(folder);
	char above[64];
	snprintf(above, sizeof(above), "%s", folder);
	*strrchr(above, '/') = '\0';
	assert_int_equal(chmod(above, 0777), 0);
	as_nobody(fills_a_full_disk, folder);
	assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
	struct store_session *session = begin_read(store);
	assert_int_equal(store_get(session, PLAIN, STR("committed"), &row, NULL), 0);
	memcpy(&committed, row.at, sizeof(committed));
	store_abort(session);
	check_filled(store, committed);
	store_close(store);
	folder_remove(folder);
}

/* A bound that was lowered below what is there: it opens, reads, deletes, and refuses more. */
static void a_lowered_bound_is_honoured(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	struct err err = {0};
	struct buf row = {0};
	buf_put_repeat(&row, 'x', 2 << 20);
	folder_make(folder);
	assert_int_equal(open_folder(&store, folder, &plain_schema, &err), 0);
	put_one(store, PLAIN, "large", buf_c(&row));
	store_close(store);
	assert_int_equal(store_open(&store, small_options(folder), &err), 0);
	assert_row(store, PLAIN, "large", buf_c(&row));
	struct store_session *session = begin_write(store);
	assert_refused(store_put(session, PLAIN, STR("k"), STR("v"), &err), err, ERR_LIMIT, "the store is full");
	assert_int_equal(store_delete(session, PLAIN, STR("large"), &err), 0);
	commit(session);
	put_one(store, PLAIN, "k", "v");
	store_close(store);
	buf_free(&row);
	folder_remove(folder);
}

static void too_large_a_bound_is_told(void **state)
{
	(void)state;
	char folder[64];
	struct store *store;
	struct err err = {0};
	folder_make(folder);
	struct store_options options = {.schema = &plain_schema, .folder = folder, .bytes_most = UINT64_C(1) << 60};
	assert_refused(store_open(&store, &options, &err), err, ERR_NO_MEMORY, "no address space for a file of this size");
	folder_remove(folder);
}

/* ---- Copies --------------------------------------------------------------------------------------------------------- */

static bool copy_folder(const char *folder, const char *copy, unsigned flags)
{
	MDB_env *env;
	if (mdb_env_create(&env) || mdb_env_open(env, folder, MDB_RDONLY, 0600))
		return false;
	bool good = mdb_env_copy2(env, copy, flags) == 0;
	mdb_env_close(env);
	return good;
}

static void check_copy(const char *copy)
{
	struct err err = {0};
	struct store *store;
	for (int round = 0; round < 3; round++) {
		if (open_folder(&store, copy, &plain_schema, &err))
			fail_msg("round %d: %s", round, err.text);
		assert_row(store, THINGS, "7", "red/x");
		put_one(store, PLAIN, "round", round % 2 ? "odd" : "even");
		store_close(store);
	}
}

static void write_some(struct store *store)
{
	for (int i = 0; i < 50; i++) {
		char key[16];
		snprintf(key, sizeof(key), "%d", i % 20);
		put_one(store, THINGS, key, i % 2 ? "red/x" : "blue/x");
	}
}

/* What mdb_copy makes of a store at rest, compacted or not, is a store. */
static void a_copy_is_a_store(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags <= MDB_CP_COMPACT; flags++) {
		char folder[64], copy[64];
		struct store *store;
		folder_make(folder);
		folder_make(copy);
		assert_int_equal(mkdir(copy, 0700), 0);
		assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
		write_some(store);
		store_close(store);
		assert_true(copy_folder(folder, copy, flags));
		check_copy(copy);
		folder_remove(folder);
		folder_remove(copy);
	}
}

/* And compacted also of one that is being written, from another process. */
static void a_copy_can_be_made_while_it_is_written(void **state)
{
	(void)state;
	char folder[64], copy[64], go = 0;
	struct store *store;
	int pipes[2], status;
	folder_make(folder);
	folder_make(copy);
	assert_int_equal(mkdir(copy, 0700), 0);
	assert_int_equal(pipe(pipes), 0);
	pid_t child = fork(); /* before the store is open: LMDB wants none in a child */
	if (child == 0)
		_exit(read(pipes[0], &go, 1) == 1 && copy_folder(folder, copy, MDB_CP_COMPACT) ? 0 : 1);
	assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
	write_some(store);
	assert_int_equal(write(pipes[1], &go, 1), 1);
	for (int i = 0; waitpid(child, &status, WNOHANG) == 0; i++)
		put_one(store, THINGS, "count", i % 2 ? "odd/" : "even/");
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	store_close(store);
	check_copy(copy);
	close(pipes[0]);
	close(pipes[1]);
	folder_remove(folder);
	folder_remove(copy);
}

/* ---- What of it is in memory ----------------------------------------------------------------------------------------- */

/* Of files, in this process; in KiB. */
static long mapped_kb(void)
{
	char line[128];
	long found = -1;
	FILE *status = fopen("/proc/self/status", "r");
	assert_non_null(status);
	while (fgets(line, sizeof(line), status))
		sscanf(line, "RssFile: %ld kB", &found);
	fclose(status);
	assert_true(found >= 0);
	return found;
}

static void what_was_read_need_not_stay_in_memory(void **state)
{
	enum { ROWS = 256, ROW_BYTES = 32 << 10 };
	(void)state;
	static char text[ROW_BYTES];
	char folder[64], key[16];
	struct store *store;
	folder_make(folder);
	assert_int_equal(open_folder(&store, folder, &plain_schema, NULL), 0);
	memset(text, 'x', sizeof(text));
	struct store_session *session = begin_write(store);
	for (int i = 0; i < ROWS; i++) {
		snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(store_put(session, PLAIN, str_of(key), str_make(text, sizeof(text)), NULL), 0);
	}
	commit(session);
	session = begin_read(store);
	struct str first, row;
	assert_int_equal(store_get(session, PLAIN, STR("0"), &first, NULL), 0);
	for (int i = 0; i < ROWS; i++) {
		snprintf(key, sizeof(key), "%d", i);
		assert_int_equal(store_get(session, PLAIN, str_of(key), &row, NULL), 0);
	}
	long before = mapped_kb();
	store_cool(store);
	assert_true(mapped_kb() <= before - ROWS * ROW_BYTES / 1024 / 2);
	assert_true(str_equal(first, str_make(text, sizeof(text)))); /* who has a row still has it */
	store_abort(session);
	store_close(store);
	folder_remove(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_store_at_a_time),
		cmocka_unit_test(a_killed_holder_lets_go),
		cmocka_unit_test(what_is_no_store_is_told),
		cmocka_unit_test(a_strangers_database_is_told),
		cmocka_unit_test(an_empty_file_is_a_new_store),
		cmocka_unit_test(the_folder_above_has_to_be_there),
		cmocka_unit_test(a_folder_without_rights_is_told),
		cmocka_unit_test(a_full_store_reads_and_deletes),
		cmocka_unit_test(a_session_that_is_too_large_leaves_nothing),
		cmocka_unit_test(a_full_disk_is_told),
		cmocka_unit_test(a_lowered_bound_is_honoured),
		cmocka_unit_test(too_large_a_bound_is_told),
		cmocka_unit_test(a_copy_is_a_store),
		cmocka_unit_test(a_copy_can_be_made_while_it_is_written),
		cmocka_unit_test(what_was_read_need_not_stay_in_memory),
	};
	return cmocka_run_group_tests_name("store disk", tests, NULL, NULL);
}
