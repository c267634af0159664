/* The journal: commits that cost one small write, for what only this thread reads.
 *
 * A commit of the store (LMDB) writes each page that changed somewhere in the file, syncs, writes its first page, and syncs again.
 * Most of what an operation changes (its row, its lane, who was told) nobody reads but src/replica, in this thread. So:
 *   1. rows that change are kept in memory (behind.c), and are noted here before a commit, as they are stored: sealed where they are
 *   2. at a commit the notes are written behind those of the commit before, and synced: now they are durable. The session goes on
 *   3. after SETTLE_MS, when the file is full, or when something changed that others read in the store (blobs), all of them are put into the session, and it is committed. With it goes the number of the next generation:
 *      the file then begins anew, and what is in it from before is of the past
 *   4. whoever starts reads the generation from the store, and puts what the journal has of it into the session, before anything else
 * Nothing is ever read from the file but then. What the data plane looks up, and only the journal has, is in memory (overlay.c).
 *
 * What goes wrong:
 *   killed, or the power goes          while notes are written: they are not whole, and count as never written; nobody was answered.
 *                                      While the session is committed: it is, or it is not; then 4 does it
 *   the file cannot be made, written   the store is committed each time, as if there were no journal
 *   it is there and cannot be read     nothing is started: it may have what was acknowledged
 *   the store refuses its commit       the session is lost; src/replica starts anew, from the store and 4
 *
 * docs/protocol/journal.md has the bytes. */
#include "engine/engine_int.h"

#include "base/bytes.h"
#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

enum { CAPACITY = 4 << 20, SETTLE_MS = 500, HEAD_BYTES = 36, MAGIC = 0x63686a31, REMOVED = 1 };

#define GENERATION_KEY STR("journal")

static uint64_t checksum(uint64_t generation, uint64_t number, struct str notes)
{
	return hash_bytes(&(struct hash_key){generation ^ 0x6a6f75726e616c20, number ^ 0x6f66206368656f70}, notes);
}

/* ---- Notes ----------------------------------------------------------------------------------------------------------- */

bool engine_journal_takes(const struct engine *engine)
{
	return engine->journal.on && !engine->journal.broken;
}

static void note(struct engine *engine, enum replica_table table, struct str key, struct str row, uint8_t flags)
{
	struct buf *notes = &engine->journal.notes;
	if (!engine_journal_takes(engine))
		return;
	put_number(notes, (uint64_t)table, 1);
	put_number(notes, flags, 1);
	put_number(notes, key.length, 2);
	put_number(notes, row.length, 4);
	buf_put(notes, key);
	buf_put(notes, row);
}

void engine_journal_put(struct engine *engine, enum replica_table table, struct str key, struct str row)
{
	note(engine, table, key, row, 0);
}

void engine_journal_remove(struct engine *engine, enum replica_table table, struct str key)
{
	note(engine, table, key, STR(""), REMOVED);
}

/* Lists of what is in a container are put together from its sites. */
static bool has_other_members(struct engine *engine, struct str before, struct str row)
{
	site_id old[LIMIT_REPLICA_MEMBERS], new[LIMIT_REPLICA_MEMBERS];
	uint32_t count = replica_members_parse(before, engine->options.self, old);
	return count != replica_members_parse(row, engine->options.self, new) ||
	       memcmp(old, new, count * sizeof(old[0])) != 0;
}

/* Of a replicant: would those who read the store themselves see a difference? */
static bool is_seen(struct engine *engine, struct str key, struct str row)
{
	struct str before;
	struct replica_here old = {0}, new = {0};
	if (engine_row_before(engine, REPLICA_REPLICANTS, key, &before) != 0 ||
	    replica_here_parse(before, engine->options.self, &old, NULL) != 0 ||
	    replica_here_parse(row, engine->options.self, &new, NULL) != 0)
		return true;
	if (new.span != REPLICA_ALIKE && has_other_members(engine, before, row))
		return true;
	return old.alias != new.alias || memcmp(&old.other, &new.other, sizeof(old.other)) != 0 || old.gone != new.gone ||
	       old.members != new.members || old.witness != new.witness || old.holders_count != new.holders_count ||
	       memcmp(old.holders, new.holders, new.holders_count * sizeof(new.holders[0])) != 0 ||
	       old.local_id_quoted != new.local_id_quoted || old.local_id_bytes != new.local_id_bytes ||
	       memcmp(old.local_id, new.local_id, new.local_id_bytes) != 0;
}

void engine_journal_look(struct engine *engine, enum replica_table table, struct str key, const struct str *row)
{
	if (!engine_journal_takes(engine) || engine->journal.seen)
		return;
	if (table == REPLICA_BLOBS)
		engine->journal.seen = true;
	else if (table == REPLICA_LOCALS || table == (enum replica_table)ENGINE_RELATIONS ||
	         (table == REPLICA_REPLICANTS && (!row || is_seen(engine, key, *row))))
		engine_overlay_note(engine, table, key, row);
}

/* ---- Commits --------------------------------------------------------------------------------------------------------- */

static bool write_all(int fd, struct str bytes, uint64_t at)
{
	while (bytes.length > 0) {
		ssize_t written = pwrite(fd, bytes.at, bytes.length, (off_t)at);
		if (written < 0 && errno == EINTR)
			continue;
		if (written <= 0)
			return false;
		bytes = str_make(bytes.at + written, bytes.length - (size_t)written);
		at += (uint64_t)written;
	}
	return true;
}

static void give_up(struct engine *engine)
{
	struct journal *journal = &engine->journal;
	static const char nothing[HEAD_BYTES];
	log_event(engine->options.log, LOG_WARN, "the journal cannot be written; commits take longer from now on",
	          LOG_STR("error", str_of(strerror(errno))));
	(void)write_all(journal->fd, str_make(nothing, sizeof(nothing)), journal->at);
	journal->broken = true;
}

bool engine_journal_commit(struct engine *engine)
{
	struct journal *journal = &engine->journal;
	struct str notes = buf_str(&journal->notes);
	if (!journal->on || journal->broken || journal->seen || !engine->session || engine->failure.code)
		return false;
	if (notes.length == 0)
		return journal->at > 0; /* nothing new: the session goes on */
	if (journal->at + HEAD_BYTES + notes.length > CAPACITY)
		return false;
	struct buf *out = &journal->out;
	buf_clear(out);
	put_number(out, MAGIC, 4);
	put_number(out, notes.length, 8);
	put_number(out, journal->generation, 8);
	put_number(out, journal->number, 8);
	put_number(out, checksum(journal->generation, journal->number, notes), 8);
	buf_put(out, notes);
	if (!write_all(journal->fd, buf_str(out), journal->at) || fdatasync(journal->fd) != 0) {
		give_up(engine);
		return false;
	}
	if (journal->at == 0)
		http_timer_set(engine->loop, &journal->timer, SETTLE_MS);
	journal->at += out->length;
	journal->number++;
	journal->commits++;
	buf_clear(&journal->notes);
	return true;
}

void engine_journal_settle(struct engine *engine)
{
	struct journal *journal = &engine->journal;
	struct buf row = {0};
	if (!journal->on || !engine->session || (journal->at == 0 && journal->notes.length == 0))
		return;
	put_number(&row, journal->generation + 1, 8);
	store_put(engine->session, REPLICA_META, GENERATION_KEY, buf_str(&row), &engine->failure);
	buf_free(&row);
	journal->turning = true;
}

void engine_journal_settled(struct engine *engine, bool done)
{
	struct journal *journal = &engine->journal;
	if (done && journal->turning) {
		journal->generation++;
		journal->at = journal->number = 0;
		http_timer_clear(engine->loop, &journal->timer);
	}
	journal->turning = false;
	journal->seen = journal->seen && !done;
	buf_clear(&journal->notes);
}

static void is_time(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, journal.timer));
	engine->journal.seen = true;
	engine_changed(engine);
}

/* ---- Starting -------------------------------------------------------------------------------------------------------- */

static int apply(struct engine *engine, struct reader *notes, struct err *err)
{
	while (notes->left > 0) {
		uint8_t table = read_8(notes), flags = read_8(notes);
		uint16_t key_bytes = read_16(notes);
		uint32_t row_bytes = read_32(notes);
		struct str key = read_bytes(notes, key_bytes), row = read_bytes(notes, row_bytes);
		if (notes->failed || table >= ENGINE_TABLES)
			return err_set(err, ERR_CORRUPT, "the journal makes no sense, though its check sum is right");
		int code = flags & REMOVED ? store_delete(engine->session, table, key, err)
		                           : store_put(engine->session, table, key, row, err);
		if (code && code != ERR_NOT_FOUND)
			return code;
		*err = (struct err){0};
	}
	return 0;
}

/* The next commit, if it is whole and of this generation. */
static bool read_commit(const struct journal *journal, struct reader *file, uint64_t number, struct reader *notes)
{
	uint32_t magic = read_32(file);
	uint64_t length = read_64(file), generation = read_64(file), its_number = read_64(file), sum = read_64(file);
	if (file->failed || magic != MAGIC || generation != journal->generation || its_number != number ||
	    length > file->left)
		return false;
	struct str bytes = read_bytes(file, (size_t)length);
	*notes = reader_of(bytes);
	return !file->failed && sum == checksum(generation, number, bytes);
}

static int read_generation(struct engine *engine, struct err *err)
{
	struct str row;
	int code = store_get(engine->session, REPLICA_META, GENERATION_KEY, &row, err);
	engine->journal.generation = 0;
	if (code == ERR_NOT_FOUND) {
		*err = (struct err){0};
		return 0;
	}
	struct reader reader = reader_of(row);
	if (code == 0)
		engine->journal.generation = read_64(&reader);
	return code == 0 && reader.failed ? err_set(err, ERR_CORRUPT, "the journal's generation makes no sense") : code;
}

static int replay(struct engine *engine, struct str bytes, struct err *err)
{
	struct journal *journal = &engine->journal;
	struct reader file = reader_of(bytes), notes;
	uint64_t count = 0, at = 0;
	int code = read_generation(engine, err);
	while (code == 0 && read_commit(journal, &file, count, &notes)) {
		code = apply(engine, &notes, err);
		count++;
		at = bytes.length - file.left;
	}
	journal->at = at;
	journal->number = count;
	journal->seen = true; /* nothing is written over it before the store has it */
	return code;
}

/* What cannot be read may have been acknowledged: it is not taken for the end. */
static int read_all(int fd, char *bytes, size_t *length, struct err *err)
{
	for (*length = 0; *length < CAPACITY;) {
		ssize_t got = pread(fd, bytes + *length, CAPACITY - *length, (off_t)*length);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_set(err, ERR_IO, "the journal cannot be read: %s", strerror(errno));
		if (got == 0)
			break;
		*length += (size_t)got;
	}
	return 0;
}

int engine_journal_replay(struct engine *engine, struct err *err)
{
	struct journal *journal = &engine->journal;
	buf_clear(&journal->notes);
	engine_behind_drop(engine);
	if (!journal->on)
		return 0;
	if (!engine->session && store_begin_write(engine->store, &engine->session, err) != 0)
		return err->code;
	char *bytes = malloc(CAPACITY);
	CHECK(bytes);
	size_t length;
	int code = read_all(journal->fd, bytes, &length, err);
	if (code == 0)
		code = replay(engine, str_make(bytes, length), err);
	free(bytes);
	return code;
}

/* Written once, so that what is put there later only overwrites: that costs the disk one flush, and the file system nothing. */
static bool make_room(int fd)
{
	static const char zeros[1 << 16];
	off_t end = lseek(fd, 0, SEEK_END);
	if (end == CAPACITY)
		return true;
	for (uint64_t at = end > 0 ? (uint64_t)end : 0; at < CAPACITY;) {
		size_t bytes = CAPACITY - at < sizeof(zeros) ? (size_t)(CAPACITY - at) : sizeof(zeros);
		if (!write_all(fd, str_make(zeros, bytes), at))
			return false;
		at += bytes;
	}
	return fsync(fd) == 0;
}

void engine_journal_open(struct engine *engine)
{
	struct journal *journal = &engine->journal;
	struct buf path = {0};
	journal->timer.fire = is_time;
	journal->seen = true;
	buf_printf(&path, "%s/journal", engine->options.folder);
	journal->fd = open(buf_c(&path), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	journal->on = journal->fd >= 0;
	int folder = open(engine->options.folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	/* What an earlier life has left in it is read, even where nothing more can be written. */
	if (journal->on && (!make_room(journal->fd) || folder < 0 || fsync(folder) != 0))
		journal->broken = true;
	if (folder >= 0)
		close(folder);
	buf_free(&path);
}

void engine_journal_close(struct engine *engine)
{
	if (engine->journal.on)
		close(engine->journal.fd);
	buf_free(&engine->journal.notes);
	buf_free(&engine->journal.out);
}
