/* A store's file with some bytes changed: opening it is refused with a reason, or it can be read and written to the end. LMDB
 * believes what it maps, so a crash here is a hole in probe.c.
 *
 * The input is a list of changes to a file that is made at the start, 4 bytes each: where (3 bytes, the highest first; the
 * highest bit set: what follows is a page and a place on it, such that small changes of the input stay on the page), and what
 * to exclusive-or with. */
#include "store/store_int.h"

#include "base/check.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { PAGE = 4096, ROWS = 60, CHANGES = 64 };

static bool first_byte(struct str key, struct str row, struct buf *out)
{
	(void)key;
	buf_put(out, str_make(row.at, row.length > 0 ? 1 : 0));
	return true;
}

static const struct store_index indexes[] = {{.name = "i", .key_of = first_byte}};
static const struct store_table tables[] = {{.name = "t", .version = 1, .indexes = indexes, .indexes_count = 1},
                                            {.name = "u", .version = 1}};
static const struct store_schema schema = {tables, 2};

static char folder[64], path[96];
static struct buf original;

static int open_it(struct store **store, struct err *err)
{
	struct store_options options = {.schema = &schema, .folder = folder, .bytes_most = 8 << 20, .unsynced = true};
	return store_open(store, &options, err);
}

/* Rows of several lengths, some deleted again: branches, free pages, a long value. */
static void change_rows(struct store *store, unsigned round)
{
	struct store_session *session;
	char row[12000];
	CHECK(store_begin_write(store, &session, NULL) == 0);
	for (unsigned i = 0; i < ROWS; i++) {
		char key[16];
		snprintf(key, sizeof(key), "row %03u", i);
		memset(row, 'a' + (int)((i + round) % 26), sizeof(row));
		size_t length = i == 7 ? sizeof(row) : 50 + 7 * (size_t)i;
		int code = store_put(session, i % 4 == 0, str_of(key), str_make(row, length), NULL);
		CHECK(code == 0 || code == ERR_LIMIT);
		if (i % 5 == round % 5)
			store_delete(session, i % 4 == 0, str_of(key), NULL);
	}
	store_commit(session, NULL);
}

static void scan_all(struct store *store)
{
	struct store_session *session;
	CHECK(store_begin_read(store, &session, NULL) == 0);
	for (int which = 0; which < 3; which++) {
		struct store_cursor *cursor;
		struct store_row row;
		struct store_range range = {.table = which == 2, .index = which == 1 ? 0 : -1};
		CHECK(store_scan(session, &range, &cursor, NULL) == 0);
		while (store_next(cursor, &row, NULL) == 1)
			;
		store_cursor_free(cursor);
	}
	store_abort(session);
}

static void remove_folder(void)
{
	static const char *const names[] = {"data.mdb", "lock.mdb", "holder"};
	char name[128];
	for (size_t i = 0; i < 3; i++) {
		snprintf(name, sizeof(name), "%s/%s", folder, names[i]);
		unlink(name);
	}
	rmdir(folder);
}

static void prepare(void)
{
	struct store *store;
	struct stat status;
	const char *shared = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	snprintf(folder, sizeof(folder), "%s/cheops-fuzz-store-XXXXXX", shared);
	CHECK(mkdtemp(folder) != NULL);
	atexit(remove_folder);
	snprintf(path, sizeof(path), "%s/data.mdb", folder);
	CHECK(open_it(&store, NULL) == 0);
	for (unsigned round = 0; round < 4; round++)
		change_rows(store, round);
	store_close(store);
	int fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && fstat(fd, &status) == 0);
	buf_put_repeat(&original, 0, (size_t)status.st_size);
	CHECK(read(fd, original.at, original.length) == status.st_size);
	close(fd);
}

static void write_changed(const uint8_t *data, size_t size)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(fd >= 0 && write(fd, original.at, original.length) == (ssize_t)original.length);
	for (size_t i = 0; i + 4 <= size && i < 4 * CHANGES; i += 4) {
		size_t at = (size_t)(data[i] & 0x7f) << 16 | (size_t)data[i + 1] << 8 | data[i + 2];
		if (data[i] & 0x80)
			at = (size_t)(data[i] & 0x7f) * PAGE + ((size_t)data[i + 1] << 8 | data[i + 2]) % PAGE;
		at %= original.length;
		char changed = (char)((unsigned char)original.at[at] ^ data[i + 3]);
		CHECK(pwrite(fd, &changed, 1, (off_t)at) == 1);
	}
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct store *store;
	struct err err = {0};
	if (original.length == 0)
		prepare();
	write_changed(data, size);
	int code = open_it(&store, &err);
	CHECK(code == 0 || (err.code == code && err.text[0] != '\0'));
	CHECK(size >= 4 || code == 0);
	if (code)
		return 0;
	scan_all(store);
	for (unsigned round = 4; round < 6; round++)
		change_rows(store, round);
	scan_all(store);
	store_close(store);
	return 0;
}
