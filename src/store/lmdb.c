/* The engine on LMDB: one tree in one file, mapped into memory.
 *
 * All goes well:
 *   1. the folder is taken (folder.c), the file looked at page by page (probe.c), then LMDB maps it
 *   2. reading transactions see the last commit, straight in the map; each slot keeps its LMDB transaction and its place in
 *      LMDB's table of readers, so beginning again takes no lock. MDB_NOTLS ties them to slots instead of threads: a thread
 *      may have several, and a session may go from thread to thread
 *   3. a commit writes changed pages elsewhere in the file, syncs, writes one of the two first pages, syncs; the file is made
 *      longer ahead of that, in steps, see prepare()
 *
 * What goes wrong:
 *   another store has the folder          ERR_UNAVAILABLE, and who it is
 *   the file is no store, cut, damaged    ERR_CORRUPT (probe.c), and it is left as it is
 *   the folder cannot be written          ERR_IO
 *   more is used than bytes_most          ERR_LIMIT for puts. The map is larger by an eighth, so that removing, which in
 *                                         LMDB takes pages before it gives some back, still works
 *   the map is full all the same          ERR_LIMIT; the transaction is lost
 *   the disk is full at a commit          ERR_LIMIT; what was written lies in pages that nobody refers to
 *   writing or syncing pages fails        ERR_IO; likewise, and the next commit may try again
 *   writing the first page fails          ERR_IO; LMDB then refuses everything until the file is opened anew
 *   killed, or the power goes             before the first page is written: as if the session had not been; after: all of it.
 *                                         There is nothing to repair, readers of the dead process are forgotten at the next
 *                                         opening, since whoever takes the folder resets LMDB's table of them
 *   the file changes under our feet       not handled: LMDB follows what it finds in the map */
#include "store/store_int.h"

#include "base/check.h"
#include "base/text.h"

#include <errno.h>
#include <inttypes.h>
#include <lmdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

struct lmdb;

struct lmdb_txn {
	struct lmdb *lmdb;
	MDB_txn *txn; /* of a reader: kept, and renewed */
	bool writes;
	bool full;
};

struct lmdb {
	struct folder folder;
	MDB_env *env;
	MDB_dbi tree;
	uint64_t bytes_most;
	uint32_t page_bytes;
	uint64_t map_bytes;
	bool unsynced;
	uint64_t prepared; /* up to there the file has been written, whatever is in it */
	struct lmdb_txn writer;
	struct lmdb_txn readers[LIMIT_STORE_READERS];
};

enum { FREE_TREE = 0 }; /* LMDB's own: which pages are free */

/* ---- Errors --------------------------------------------------------------------------------------------------------- */

/* LMDB says EIO when a write came out shorter than it should, which is how a disk that becomes full shows at first. */
static bool is_disk_full(const struct lmdb *lmdb)
{
	enum { NEXT_TO_NOTHING = 1 << 20 };
	struct statvfs disk;
	struct rlimit limit;
	struct stat file;
	struct buf path = {0};
	buf_printf(&path, "%s/data.mdb", lmdb->folder.path);
	bool known = stat(buf_c(&path), &file) == 0;
	buf_free(&path);
	if (known && getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
	    (uint64_t)file.st_size + NEXT_TO_NOTHING > limit.rlim_cur)
		return true;
	return statvfs(lmdb->folder.path, &disk) == 0 && disk.f_bavail * disk.f_frsize < NEXT_TO_NOTHING;
}

static int refuse_full(const struct lmdb *lmdb, struct err *err)
{
	return err_set(err, ERR_LIMIT, "the store is full: it may use %" PRIu64 " bytes, and does", lmdb->bytes_most);
}

static int refuse(const struct lmdb *lmdb, int code, struct err *err)
{
	switch (code) {
	case MDB_MAP_FULL: return refuse_full(lmdb, err);
	case ENOSPC:
	case EDQUOT:
	case EFBIG: return err_set(err, ERR_LIMIT, "the disk is full: %s", strerror(code));
	case EIO:
		if (is_disk_full(lmdb))
			return err_set(err, ERR_LIMIT, "the disk is full");
		return err_set(err, ERR_IO, "the disk failed: %s", strerror(code));
	case MDB_TXN_FULL: return err_set(err, ERR_LIMIT, "too much for one session");
	case MDB_READERS_FULL: return err_set(err, ERR_LIMIT, "too many readers");
	case MDB_PANIC:
		return err_set(err, ERR_IO, "the disk failed at an earlier commit; the store has to be opened anew");
	case ENOMEM: return err_set(err, ERR_NO_MEMORY, "no memory, or no address space for a file of this size");
	case MDB_CORRUPTED:
	case MDB_PAGE_NOTFOUND:
	case MDB_INVALID: return err_set(err, ERR_CORRUPT, "the file is damaged: %s", mdb_strerror(code));
	case MDB_VERSION_MISMATCH: return err_set(err, ERR_VERSION, "another version of LMDB wrote the file");
	default: return err_set(err, ERR_IO, "%s", mdb_strerror(code));
	}
}

/* ---- How full it is ------------------------------------------------------------------------------------------------- */

static int count_free(MDB_txn *txn, uint64_t *pages)
{
	MDB_cursor *cursor;
	MDB_val key, value;
	*pages = 0;
	int code = mdb_cursor_open(txn, FREE_TREE, &cursor);
	if (code)
		return code;
	while ((code = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
		size_t count = 0;
		memcpy(&count, value.mv_data, value.mv_size < sizeof(count) ? value.mv_size : sizeof(count));
		*pages += count;
	}
	mdb_cursor_close(cursor);
	return code == MDB_NOTFOUND ? 0 : code;
}

/* Not in a writing transaction: LMDB does not let one look at its free pages. */
static int measure(struct lmdb *lmdb, uint64_t *used, uint64_t *file)
{
	MDB_txn *txn;
	MDB_envinfo info = {0};
	uint64_t free_pages = 0;
	int code = mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &txn);
	if (code)
		return code;
	code = mdb_env_info(lmdb->env, &info);
	code = code ? code : count_free(txn, &free_pages);
	mdb_txn_abort(txn);
	*file = ((uint64_t)info.me_last_pgno + 1) * lmdb->page_bytes;
	*used = *file - free_pages * lmdb->page_bytes;
	return code;
}

/* Free pages are counted only once the file is as long as it may be: until then it cannot be full. */
static int find_full(struct lmdb *lmdb, bool *full)
{
	MDB_envinfo info;
	uint64_t used, file;
	*full = false;
	int code = mdb_env_info(lmdb->env, &info);
	if (code || ((uint64_t)info.me_last_pgno + 1) * lmdb->page_bytes <= lmdb->bytes_most)
		return code;
	code = measure(lmdb, &used, &file);
	*full = code == 0 && used > lmdb->bytes_most;
	return code;
}

/* Writes zeros behind what is used, where that is running out. To sync what overwrites costs the disk one flush; what makes
 * a file longer costs the file system a commit of its own besides, at each of ours: two or three times as long. This is a
 * courtesy: where it fails, LMDB makes the file longer itself, or says why not. */
static void prepare(struct lmdb *lmdb)
{
	enum { STEP_LEAST = 2 << 20, STEP_MOST = 64 << 20, CHUNK = 1 << 20 };
	static const char zeros[CHUNK];
	MDB_envinfo info;
	int fd;
	if (lmdb->unsynced || mdb_env_info(lmdb->env, &info) || mdb_env_get_fd(lmdb->env, &fd))
		return;
	uint64_t end = ((uint64_t)info.me_last_pgno + 1) * lmdb->page_bytes;
	struct stat file;
	if (end + STEP_LEAST / 4 <= lmdb->prepared || fstat(fd, &file))
		return;
	uint64_t at = (uint64_t)file.st_size > end ? (uint64_t)file.st_size : end; /* never what is in use */
	uint64_t step = end / 8 < STEP_LEAST ? STEP_LEAST : end / 8 > STEP_MOST ? STEP_MOST : end / 8;
	uint64_t to = end + step < lmdb->map_bytes ? end + step : lmdb->map_bytes;
	struct statvfs disk;
	lmdb->prepared = to; /* not tried again at each session where it fails */
	if (fstatvfs(fd, &disk) || disk.f_bavail * disk.f_frsize < 8 * step)
		return; /* what little room there is, others may need more */
	while (at < to) {
		size_t bytes = to - at < CHUNK ? (size_t)(to - at) : CHUNK;
		ssize_t written = pwrite(fd, zeros, bytes, (off_t)at);
		if (written <= 0)
			return;
		at += (uint64_t)written;
	}
	(void)fdatasync(fd);
}

/* ---- Transactions --------------------------------------------------------------------------------------------------- */

static int lmdb_begin_read(void *context, uint32_t slot, void **out, struct err *err)
{
	struct lmdb *lmdb = context;
	struct lmdb_txn *txn = &lmdb->readers[slot];
	txn->lmdb = lmdb;
	int code = txn->txn ? mdb_txn_renew(txn->txn) : mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &txn->txn);
	if (code)
		return refuse(lmdb, code, err);
	*out = txn;
	return 0;
}

static int lmdb_begin_write(void *context, void **out, struct err *err)
{
	struct lmdb *lmdb = context;
	struct lmdb_txn *txn = &lmdb->writer;
	txn->lmdb = lmdb;
	txn->writes = true;
	prepare(lmdb);
	int code = find_full(lmdb, &txn->full);
	code = code ? code : mdb_txn_begin(lmdb->env, NULL, 0, &txn->txn);
	if (code)
		return refuse(lmdb, code, err);
	*out = txn;
	return 0;
}

static int lmdb_commit(void *context, struct err *err)
{
	struct lmdb_txn *txn = context;
	int code = mdb_txn_commit(txn->txn);
	txn->txn = NULL;
	return code ? refuse(txn->lmdb, code, err) : 0;
}

static void lmdb_abort(void *context)
{
	struct lmdb_txn *txn = context;
	if (txn->writes) {
		mdb_txn_abort(txn->txn);
		txn->txn = NULL;
	} else {
		mdb_txn_reset(txn->txn);
	}
}

static uint64_t lmdb_number(void *context)
{
	const struct lmdb_txn *txn = context;
	return mdb_txn_id(txn->txn);
}

static int lmdb_room(void *context, struct err *err)
{
	const struct lmdb_txn *txn = context;
	return txn->full ? refuse_full(txn->lmdb, err) : 0;
}

/* ---- Entries -------------------------------------------------------------------------------------------------------- */

static MDB_val val_of(struct str bytes)
{
	return (MDB_val){.mv_size = bytes.length, .mv_data = (void *)bytes.at};
}

static struct str str_of_val(MDB_val val)
{
	return str_make(val.mv_data, val.mv_size);
}

static int lmdb_get(void *context, struct str key, struct str *value, struct err *err)
{
	const struct lmdb_txn *txn = context;
	MDB_val at = val_of(key), found;
	int code = mdb_get(txn->txn, txn->lmdb->tree, &at, &found);
	if (code == MDB_NOTFOUND)
		return ERR_NOT_FOUND;
	if (code)
		return refuse(txn->lmdb, code, err);
	*value = str_of_val(found);
	return 0;
}

static int lmdb_put(void *context, struct str key, struct str value, struct err *err)
{
	const struct lmdb_txn *txn = context;
	MDB_val at = val_of(key), put = val_of(value);
	int code = mdb_put(txn->txn, txn->lmdb->tree, &at, &put, 0);
	return code ? refuse(txn->lmdb, code, err) : 0;
}

static int lmdb_remove(void *context, struct str key, struct err *err)
{
	const struct lmdb_txn *txn = context;
	MDB_val at = val_of(key);
	int code = mdb_del(txn->txn, txn->lmdb->tree, &at, NULL);
	if (code == MDB_NOTFOUND)
		return ERR_NOT_FOUND;
	return code ? refuse(txn->lmdb, code, err) : 0;
}

struct lmdb_cursor {
	struct lmdb *lmdb;
	MDB_cursor *cursor;
};

static int lmdb_cursor_open(void *context, void **out, struct err *err)
{
	const struct lmdb_txn *txn = context;
	struct lmdb_cursor *cursor = malloc(sizeof(*cursor));
	CHECK(cursor != NULL);
	cursor->lmdb = txn->lmdb;
	int code = mdb_cursor_open(txn->txn, txn->lmdb->tree, &cursor->cursor);
	if (code) {
		free(cursor);
		return refuse(txn->lmdb, code, err);
	}
	*out = cursor;
	return 0;
}

static int move(struct lmdb_cursor *cursor, MDB_cursor_op how, MDB_val *key, struct engine_entry *entry,
                struct err *err)
{
	MDB_val value;
	int code = mdb_cursor_get(cursor->cursor, key, &value, how);
	if (code == MDB_NOTFOUND)
		return 0;
	if (code)
		return refuse(cursor->lmdb, code, err);
	*entry = (struct engine_entry){str_of_val(*key), str_of_val(value)};
	return 1;
}

static int lmdb_cursor_seek(void *context, struct str at_least, struct engine_entry *entry, struct err *err)
{
	MDB_val key = val_of(at_least);
	return move(context, MDB_SET_RANGE, &key, entry, err);
}

static int lmdb_cursor_next(void *context, struct engine_entry *entry, struct err *err)
{
	MDB_val key = {0};
	return move(context, MDB_NEXT, &key, entry, err);
}

static void lmdb_cursor_close(void *context)
{
	struct lmdb_cursor *cursor = context;
	mdb_cursor_close(cursor->cursor);
	free(cursor);
}

/* ---- The engine ----------------------------------------------------------------------------------------------------- */

static int lmdb_usage(void *context, struct store_usage *usage, struct err *err)
{
	struct lmdb *lmdb = context;
	int code = measure(lmdb, &usage->bytes_used, &usage->bytes_file);
	usage->bytes_most = lmdb->bytes_most;
	return code ? refuse(lmdb, code, err) : 0;
}

/* The map is the file, shared and read-only: pages that are let go are read again from the kernel's cache when they are wanted. LMDB does
 * not say where its map is; the kernel does. */
static void lmdb_cool(void *context)
{
	struct lmdb *lmdb = context;
	struct stat file;
	int fd;
	FILE *maps = fopen("/proc/self/maps", "re");
	if (!maps)
		return;
	char line[512];
	bool known = mdb_env_get_fd(lmdb->env, &fd) == 0 && fstat(fd, &file) == 0;
	while (known && fgets(line, sizeof(line), maps)) {
		uintptr_t start, end;
		unsigned major_number, minor_number;
		uint64_t inode;
		char may[5];
		if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s %*s %x:%x %" SCNu64, &start, &end, may, &major_number,
		           &minor_number, &inode) != 6)
			continue;
		bool same = inode == file.st_ino && makedev(major_number, minor_number) == file.st_dev;
		if (same && may[1] == '-' && may[3] == 's')
			(void)madvise((void *)start, end - start, MADV_DONTNEED);
	}
	fclose(maps);
}

static void lmdb_close(void *context)
{
	struct lmdb *lmdb = context;
	for (uint32_t i = 0; i < LIMIT_STORE_READERS; i++)
		if (lmdb->readers[i].txn)
			mdb_txn_abort(lmdb->readers[i].txn);
	if (lmdb->env)
		mdb_env_close(lmdb->env);
	folder_close(&lmdb->folder);
	free(lmdb);
}

static int check_file(struct lmdb *lmdb, struct probe *probe, struct err *err)
{
	struct catalogue_check *check = calloc(1, sizeof(*check));
	struct buf path = {0};
	CHECK(check != NULL);
	buf_printf(&path, "%s/data.mdb", lmdb->folder.path);
	struct probe_view view = {
		.context = check, .each = catalogue_check_entry, .number_key = STR("\0s"), .number_of = catalogue_number_of};
	int code = probe_file(buf_c(&path), &view, probe, err);
	if (code == 0 && !probe->empty) {
		code = catalogue_check_end(check, err);
		if (code)
			err_context(err, code, TEXT_PATH_FMT, TEXT_PATH(buf_c(&path)));
	}
	free(check);
	buf_free(&path);
	return code;
}

static uint64_t map_size(const struct lmdb *lmdb, const struct probe *probe)
{
	enum { LEAST = 1 << 20 };
	uint64_t bytes = probe->bytes > lmdb->bytes_most ? probe->bytes : lmdb->bytes_most;
	uint64_t spare = bytes / 8 > LEAST ? bytes / 8 : LEAST;
	return (bytes + spare + 0xffff) & ~UINT64_C(0xffff); /* whole pages, of any size that a machine may have */
}

static int open_env(struct lmdb *lmdb, const struct store_options *options, const struct probe *probe)
{
	/* No read-ahead: rows are fetched here and there, and what is read ahead would only push others out. */
	lmdb->map_bytes = map_size(lmdb, probe);
	lmdb->unsynced = options->unsynced;
	unsigned flags = MDB_NOTLS | MDB_NORDAHEAD | (options->unsynced ? MDB_NOSYNC : 0);
	MDB_txn *txn;
	MDB_stat stat = {0};
	int dead, code = mdb_env_create(&lmdb->env);
	if (code)
		return code;
	if ((code = mdb_env_set_mapsize(lmdb->env, lmdb->map_bytes)) ||
	    (code = mdb_env_set_maxreaders(lmdb->env, LIMIT_STORE_READERS + 8)) || /* some for tools that make a backup */
	    (code = mdb_env_open(lmdb->env, lmdb->folder.path, flags, 0600)) ||
	    (code = mdb_reader_check(lmdb->env, &dead)) || (code = mdb_txn_begin(lmdb->env, NULL, MDB_RDONLY, &txn)))
		return code;
	code = mdb_dbi_open(txn, NULL, 0, &lmdb->tree);
	code = code ? code : mdb_stat(txn, lmdb->tree, &stat);
	lmdb->page_bytes = stat.ms_psize;
	mdb_txn_abort(txn);
	return code;
}

int engine_open_lmdb(struct store_engine *engine, const struct store_options *options, struct err *err)
{
	struct lmdb *lmdb = calloc(1, sizeof(*lmdb));
	struct probe probe = {0};
	CHECK(lmdb != NULL);
	lmdb->bytes_most = options->bytes_most > 0 ? options->bytes_most : (uint64_t)LIMIT_STORE_DEFAULT_GB << 30;
	int code = folder_open(&lmdb->folder, options->folder, err);
	if (code == 0)
		code = check_file(lmdb, &probe, err);
	if (code == 0) {
		int failed = open_env(lmdb, options, &probe);
		if (failed) {
			refuse(lmdb, failed, err);
			code = err_context(err, ERR_IO, "opening the store in " TEXT_PATH_FMT, TEXT_PATH(options->folder));
		}
	}
	if (code == 0 && probe.empty)
		code = folder_sync(&lmdb->folder, err);
	if (code) {
		lmdb_close(lmdb);
		return code;
	}
	*engine = (struct store_engine){
		.context = lmdb,
		.close = lmdb_close,
		.begin_read = lmdb_begin_read,
		.begin_write = lmdb_begin_write,
		.commit = lmdb_commit,
		.abort = lmdb_abort,
		.number = lmdb_number,
		.room = lmdb_room,
		.get = lmdb_get,
		.put = lmdb_put,
		.remove = lmdb_remove,
		.cursor_open = lmdb_cursor_open,
		.cursor_seek = lmdb_cursor_seek,
		.cursor_next = lmdb_cursor_next,
		.cursor_close = lmdb_cursor_close,
		.usage = lmdb_usage,
		.cool = lmdb_cool,
	};
	return 0;
}
