/* The folder of blobs: bodies that are too long to travel with their operations, each a file named by the SHA-256 of its
 * content, in hexadecimal. Beside the rows of the store, in STATE/store/blobs:
 *
 *     3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b         a blob
 *     3a7bd3e2360a3d29eea436fcfb7e44c735d117c42d1c1835420b6b9942dd4f1b.part    what has come of one, from another member
 *     upload-17                                                                what has come of one, from a user
 *
 * The rows say which operations need a blob (REPLICA_BLOBS); a file that none needs is removed. Names are given and taken by
 * the engine's thread alone, so what was asked to be dropped and is submitted again meanwhile is not lost. A name is durable
 * before the rows that count on it are: see commit() in engine.c.
 */
#include "engine/engine_int.h"

#include "base/check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

/* ---- Names --------------------------------------------------------------------------------------------------------- */

void engine_blob_name(struct str blob, char name[ENGINE_BLOB_NAME_BYTES])
{
	CHECK(blob.length == ENGINE_BLOB_BYTES);
	for (size_t i = 0; i < blob.length; i++)
		snprintf(name + 2 * i, 3, "%02x", (unsigned char)blob.at[i]);
}

bool engine_blob_parse(struct str text, uint8_t blob[ENGINE_BLOB_BYTES])
{
	if (text.length != ENGINE_BLOB_NAME_BYTES - 1)
		return false;
	for (size_t i = 0; i < ENGINE_BLOB_BYTES; i++) {
		char high = text.at[2 * i], low = text.at[2 * i + 1];
		bool capital = (high >= 'A' && high <= 'F') || (low >= 'A' && low <= 'F');
		if (capital || str_hex_value(high) < 0 || str_hex_value(low) < 0)
			return false;
		blob[i] = (uint8_t)(str_hex_value(high) << 4 | str_hex_value(low));
	}
	return true;
}

/* ---- Files --------------------------------------------------------------------------------------------------------- */

int engine_blob_open(const struct engine *engine, struct str blob, uint64_t *bytes)
{
	char name[ENGINE_BLOB_NAME_BYTES];
	struct stat about;
	engine_blob_name(blob, name);
	int fd = openat(engine->blobs, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd >= 0 && fstat(fd, &about) == 0) {
		*bytes = (uint64_t)about.st_size;
		return fd;
	}
	if (fd >= 0)
		close(fd);
	return -1;
}

static void remove_file(struct engine *engine, struct str blob, const char *suffix)
{
	char name[ENGINE_BLOB_NAME_BYTES + sizeof(ENGINE_PART_SUFFIX)];
	engine_blob_name(blob, name);
	snprintf(name + strlen(name), sizeof(ENGINE_PART_SUFFIX), "%s", suffix);
	if (unlinkat(engine->blobs, name, 0) != 0 && errno != ENOENT)
		log_event(engine->options.log, LOG_WARN, "the file of a body that nobody needs cannot be removed",
		          LOG_STR("file", str_of(name)), LOG_STR("error", str_of(strerror(errno))));
}

void engine_blob_release(struct engine *engine, struct str blob)
{
	if (!engine->replica || replica_needs_blob(engine->replica, blob))
		return;
	engine_fetch_end(engine, blob);
	remove_file(engine, blob, "");
	remove_file(engine, blob, ENGINE_PART_SUFFIX);
}

int engine_blobs_sync(struct engine *engine, struct err *err)
{
	if (!engine->blobs_changed)
		return 0;
	if (fsync(engine->blobs) != 0)
		return err_set(err, ERR_IO, "cannot sync the folder of bodies: %s", strerror(errno));
	engine->blobs_changed = false;
	return 0;
}

int engine_blobs_read(const struct engine *engine, struct str blob, struct buf *out, struct err *err)
{
	uint64_t bytes = 0;
	int fd = engine_blob_open(engine, blob, &bytes);
	if (fd < 0)
		return err_set(err, ERR_NOT_FOUND, "its body is not here");
	int code = bytes > LIMIT_REPLICA_READ_BYTES
	               ? err_set(err, ERR_LIMIT, "its body has more than %d bytes", LIMIT_REPLICA_READ_BYTES)
	               : 0;
	char *memory = code == 0 ? malloc(bytes + 1) : NULL;
	CHECK(memory || code);
	if (code == 0 && pread(fd, memory, bytes, 0) != (ssize_t)bytes)
		code = err_set(err, ERR_IO, "its body cannot be read");
	if (code == 0)
		buf_put(out, str_make(memory, bytes));
	free(memory);
	close(fd);
	return code;
}

bool engine_has_room(const struct engine *engine, uint64_t bytes)
{
	struct statvfs about;
	return fstatvfs(engine->blobs, &about) != 0 || (uint64_t)about.f_bavail * about.f_frsize >= bytes;
}

/* ---- The folder ------------------------------------------------------------------------------------------------------ */

/* What of it is needed? Rows of before a crash, and files, are made to agree. */
static void sweep_file(struct engine *engine, const char *name)
{
	uint8_t blob[ENGINE_BLOB_BYTES];
	struct str text = str_of(name), part = STR(ENGINE_PART_SUFFIX);
	if (text.length > part.length && str_equal(str_make(text.at + text.length - part.length, part.length), part))
		text.length -= part.length;
	bool upload = strncmp(name, ENGINE_UPLOAD_PREFIX, strlen(ENGINE_UPLOAD_PREFIX)) == 0;
	bool ours = upload || engine_blob_parse(text, blob);
	if (!ours || (!upload && replica_needs_blob(engine->replica, str_make((const char *)blob, sizeof(blob)))))
		return;
	unlinkat(engine->blobs, name, 0);
}

void engine_blobs_sweep(struct engine *engine)
{
	int fd = openat(engine->blobs, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd >= 0 ? fdopendir(fd) : NULL;
	if (!folder) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
		if (entry->d_name[0] != '.')
			sweep_file(engine, entry->d_name);
	closedir(folder);
}

int engine_blobs_open(struct engine *engine, struct err *err)
{
	struct buf path = {0};
	buf_printf(&path, "%s/blobs", engine->options.folder);
	bool there = mkdir(buf_c(&path), 0700) == 0 || errno == EEXIST;
	engine->blobs = there ? open(buf_c(&path), O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	int code = engine->blobs < 0 ? err_set(err, errno == ENOSPC ? ERR_LIMIT : ERR_IO, "cannot open the folder %s: %s",
	                                       buf_c(&path), strerror(errno))
	                             : 0;
	buf_free(&path);
	return code;
}

/* ---- For other members ------------------------------------------------------------------------------------------------ */

/* Keys of the table are the blob and the operation, which begins with the replicant; one that became another leads there. */
static bool is_member(struct store_session *session, struct str key, site_id site)
{
	struct replica_here here = {.alias = true};
	if (key.length < ENGINE_BLOB_BYTES + sizeof(here.other.bytes))
		return false;
	memcpy(here.other.bytes, key.at + ENGINE_BLOB_BYTES, sizeof(here.other.bytes));
	for (int i = 0; i <= LIMIT_REPLICA_ALIASES && here.alias; i++) {
		struct str row, id = str_make((const char *)here.other.bytes, sizeof(here.other.bytes));
		if (store_get(session, REPLICA_REPLICANTS, id, &row, NULL) != 0 ||
		    replica_here_parse(row, site, &here, NULL) != 0)
			return false;
	}
	return !here.alias;
}

static bool may_have(struct engine *engine, struct str blob, site_id site)
{
	struct store_session *session;
	struct store_cursor *cursor;
	struct store_row row;
	bool found = false;
	if (store_begin_read(engine->store, &session, NULL) != 0)
		return false;
	struct store_range range = {.table = REPLICA_BLOBS, .index = -1, .prefix = blob};
	if (store_scan(session, &range, &cursor, NULL) == 0) {
		while (!found && store_next(cursor, &row, NULL) > 0)
			found = is_member(session, row.key, site);
		store_cursor_free(cursor);
	}
	store_abort(session);
	return found;
}

int engine_blob_serve(struct engine *engine, struct str name, site_id to, uint64_t *bytes)
{
	uint8_t blob[ENGINE_BLOB_BYTES];
	struct str hash = str_make((const char *)blob, sizeof(blob));
	return engine_blob_parse(name, blob) && may_have(engine, hash, to) ? engine_blob_open(engine, hash, bytes) : -1;
}
