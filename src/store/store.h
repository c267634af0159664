/* Store: tables on disk, with secondary indexes and sessions (DESIGN 12).
 *
 * A table has rows: bytes under a key of bytes, in the order of the keys. An index of a table finds rows by something that
 * is in them; it is kept by the store, from a function that says where in a row that is. A session is all or nothing:
 * what it changed is there after a crash or not, as a whole; what it reads is the state at its beginning and its own
 * changes.
 *
 * Two engines have this one interface and one suite of tests: LMDB, on disk; and memory, for the simulator, which can lose
 * what was not synced, fail a commit and damage a row.
 *
 * Who does what. There is one writing session at a time, of one thread (it begins and ends there; another thread that wants
 * to write waits); reading sessions are for any thread, as many as LIMIT_STORE_READERS, and see what was last committed;
 * they never wait, nor are waited for. One that stays open for long keeps the pages of its state from being used again, so
 * the file grows. Group commit: the writer lets changes of many requests come together in one session, commits it, and
 * only then does what waited for it (src/replica).
 *
 * Versions. The file has a version of the format and, for each table, one of its rows. An older one is migrated when it is
 * opened, or refused (ERR_VERSION); a later one is refused. What cannot be right is ERR_CORRUPT, and says where.
 * What a file is made of is in docs/protocol/store.md; which failures there are, and what is done, at the top of lmdb.c.
 */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

struct store;
struct store_session;
struct store_cursor;

/* Writes the key under which an index has this row; false: the index has it not. One row has one key in an index; several
 * rows may have the same one unless it is unique. */
typedef bool store_index_key(struct str key, struct str row, struct buf *out);

/* Key in the index and key of the row together: LIMIT_STORE_INDEX_BYTES (a zero byte in the former counts twice). */
struct store_index {
	const char *name; /* a new one when key_of changes its mind: then it is built anew */
	bool unique;      /* store_put() is refused (ERR_CONFLICT) where another row has the key */
	store_index_key *key_of;
};

/* Makes a row of version N + 1 from one of version N; ERR_CORRUPT where it makes no sense. */
typedef int store_migrate(uint32_t from, struct str key, struct str row, struct buf *out, struct err *err);

struct store_table {
	const char *name;
	uint32_t
		version; /* of its rows: 1, 2... LIMIT_STORE_ROW_VERSION; 0: the table is no more, what is there is dropped */
	const struct store_index *indexes;
	uint32_t indexes_count;
	store_migrate *migrate; /* NULL: there are no older versions */
};

struct store_schema {
	/* A table and an index are named by their place here in calls, and by their name in the file: places may change. */
	const struct store_table *tables;
	uint32_t tables_count;
};

struct store_options {
	const struct store_schema *schema; /* lives as long as the store */
	const char *folder;                /* made if it is not there, not the folders above it; one store at a time */
	/* What is used of the file: past it store_put() is refused with ERR_LIMIT; reading and deleting go on. 0: the default.
	 * Address space of this size, and an eighth more, is reserved; disk is taken as it is needed. */
	uint64_t bytes_most;
	bool unsynced; /* do not wait for the disk: for benchmarks that show what waiting costs */
};

/* Reads the whole file once and checks it, then migrates what is older. ERR_UNAVAILABLE: another process has it, which the
 * text names; ERR_VERSION; ERR_CORRUPT; ERR_IO; ERR_LIMIT: full. On an error the file is as it was. */
int store_open(struct store **out, const struct store_options *options, struct err *err);
/* In memory. Random numbers decide what a crash leaves: see store_memory_crash(). */
struct store *store_open_memory(const struct store_schema *schema);
/* All sessions have ended. */
void store_close(struct store *store);

/* ---- Sessions ---------------------------------------------------------------------------------------------------- */

int store_begin_read(struct store *store, struct store_session **out, struct err *err);
int store_begin_write(struct store *store, struct store_session **out, struct err *err);
/* Commits what a writing session changed; durable when it returns 0. On an error (ERR_IO, ERR_LIMIT: disk full) nothing of
 * it is there; except that where the disk failed while the very last page was written (ERR_IO; every later session is
 * refused, too), only the next store_open() tells. Either way the session is over. */
int store_commit(struct store_session *session, struct err *err);
/* Ends a session without a change; ends a reading one. Its cursors have been freed, here and at a commit. */
void store_abort(struct store_session *session);

/* ERR_NOT_FOUND. The row is a slice that is valid until the session ends or writes. */
int store_get(struct store_session *session, uint32_t table, struct str key, struct str *row, struct err *err);
/* key and row may be slices of this session. Refused without harm: ERR_LIMIT (too long, or the store was full when the session
 * began), ERR_CONFLICT (unique), ERR_CORRUPT (what is there, and an index depends on). Where it fails halfway (no room any
 * more, the disk), the session can only be aborted: whatever else it is asked is refused with the same code. */
int store_put(struct store_session *session, uint32_t table, struct str key, struct str row, struct err *err);
/* Would a row of that length be refused, for being too long, or since the store is full? For who puts it later in this session. */
int store_put_check(struct store_session *session, uint32_t table, struct str key, size_t row_bytes, struct err *err);
/* ERR_NOT_FOUND if there was none. */
int store_delete(struct store_session *session, uint32_t table, struct str key, struct err *err);

/* Rows whose key (index: whose key in that index) begins with `prefix`, from `from` on ("": from the first), in order. */
struct store_range {
	uint32_t table;
	int32_t index; /* -1: the table's own keys */
	struct str prefix;
	struct str from;
	struct str from_row; /* index: of the rows with just the key `from`, those from this key of the table on */
};

struct store_row {
	struct str key;   /* of the row in its table */
	struct str index; /* of the row in the index; "" without one */
	struct str row;
};

int store_scan(struct store_session *session, const struct store_range *range, struct store_cursor **out,
               struct err *err);
/* 1: here is one; 0: no more; negative: an error. Slices are valid until the next call, also while the session writes. A row
 * that this session put or deleted since the scan began is met as it is now, if its place is still ahead. */
int store_next(struct store_cursor *cursor, struct store_row *row, struct err *err);
void store_cursor_free(struct store_cursor *cursor);

/* ---- Figures, and what the simulator does to it -------------------------------------------------------------------- */

struct store_usage {
	uint64_t rows;       /* of all tables */
	uint64_t commits;    /* since the store was made */
	uint64_t bytes_used; /* by rows, indexes and what holds them together */
	uint64_t bytes_file; /* with what is free in it for later */
	uint64_t bytes_most; /* 0: no bound */
};

int store_usage(struct store *store, struct store_usage *usage, struct err *err);

/* Who has read much of it says so: what is in memory of the file need not stay there for this process. Any thread, also while others
 * read; what they have of rows stays good. */
void store_cool(struct store *store);

/* Memory only. The next commit fails with that code, and nothing of it is there. */
void store_memory_fail_next(struct store *store, int code);
/* Memory only. Commits are not durable until store_memory_sync(); a crash goes back to some commit since then, which
 * `random` chooses (as a kernel writes back in time, only the last LIMIT_STORE_UNSYNCED are at risk). Whoever was in the
 * middle of a session has aborted it. */
void store_memory_set_lazy(struct store *store, bool lazy);
void store_memory_sync(struct store *store);
void store_memory_crash(struct store *store, uint64_t random);
/* Memory only. Flips one bit of one row, or of an entry of an index, chosen by `random`; false if there is none. Reading it
 * gives ERR_CORRUPT. */
bool store_memory_damage(struct store *store, uint64_t random);
/* Memory only. What a restart with another version of the program does. On an error *store is as it was. */
int store_memory_reopen(struct store **store, const struct store_schema *schema, struct err *err);

#endif
