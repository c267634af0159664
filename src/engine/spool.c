/* Spools: bytes on their way to a file of the blobs' folder (blobs.c).
 *
 * Whoever has the bytes (a loop of the data plane, with the body of a user; the engine, with that of another member) must not
 * wait for the disk: a write stalls while the kernel has too much that is not written yet, and making a file durable takes
 * as long as it takes. So all of it, the SHA-256 as well, is done by one thread for all spools, the disk's: it has a loop of
 * which only the tasks are used.
 *   1. engine_spool_put() copies bytes into a buffer; as soon as the disk has no job of this spool, it gets the buffer, and
 *      the next bytes go into the other one. Is that full too, the owner is told to wait: this is the back-pressure, and it
 *      bounds the memory of a spool by two buffers
 *   2. after each job the owner hears of it, in its loop: moved()
 *   3. engine_spool_end(): the rest is written, and the file is durable once the state is DONE. It has a temporary name; the
 *      engine gives it the one of its content (engine_blob_keep())
 *
 * What goes wrong:
 *   the disk is full, or refuses     the state is FAILED, with why; the file is removed
 *   the owner gives up               engine_spool_drop(): the file is removed, unless it is one of a transfer, which goes on later with
 *                                    what has come
 *   the process dies                 at the next start the file is removed; that of a transfer that is still wanted, taken up
 *                                    again: its bytes are read once, for the hash
 *
 * An owner may go while the disk is busy with its spool, and its loop with it. So who has the spool is told under a lock: the
 * disk posts to a loop only while the owner has not given up.
 */
#include "engine/engine_int.h"

#include "base/check.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
	SPOOL_BYTES = 256 << 10,      /* of one buffer; a put may go over it once */
	SPOOL_START_BYTES = 64 << 10, /* from so many on it is worth a job */
	SPOOL_BEHIND_BYTES = 8 << 20, /* after so many the kernel is asked to begin writing: the end has less to wait for */
	SPOOL_READ_BYTES = 4 << 20,   /* of a file that is taken up again, before other spools have their turn */
};

struct engine_spool {
	struct http_task task; /* to the disk and back */
	struct engine *engine;
	struct http_loop *loop; /* of the owner */
	void (*moved)(void *context);
	void *context;
	/* under the lock */
	bool working;  /* the disk has it */
	bool reported; /* its report is on the way to the owner */
	bool dropped;  /* the owner has given up */
	/* the owner's */
	struct buf filling;
	uint64_t put_bytes; /* all that were put, with those that were there */
	bool ending;        /* no more will come */
	/* of whoever has it */
	enum engine_spool_state state;
	struct err err;
	struct buf writing;
	char *name;
	int fd;
	bool only_hash; /* there is no file */
	bool resumes;   /* the file may be there; it stays when the spool is dropped */
	bool last;      /* `writing` is the rest */
	bool opened;
	uint64_t bytes; /* in the file, and in the hash */
	uint64_t behind;
	EVP_MD_CTX *digest;
	uint8_t hash[ENGINE_BLOB_BYTES];
};

/* ---- The disk's side ---------------------------------------------------------------------------------------------- */

static void spool_free(struct engine_spool *spool)
{
	if (spool->fd >= 0)
		close(spool->fd);
	EVP_MD_CTX_free(spool->digest);
	buf_free(&spool->filling);
	buf_free(&spool->writing);
	free(spool->name);
	free(spool);
}

/* Nothing has come of a transfer. Its file may have been made after the engine removed what there was of it: nobody else would. */
static bool is_empty(const struct engine_spool *spool)
{
	struct stat about;
	return fstat(spool->fd, &about) == 0 && about.st_size == 0;
}

/* The owner wants nothing of it any more. */
static void dispose(struct engine_spool *spool)
{
	if (!spool->only_hash && spool->opened && (!spool->resumes || is_empty(spool)))
		unlinkat(spool->engine->blobs, spool->name, 0);
	spool_free(spool);
}

static void dispose_task(struct http_task *task)
{
	dispose((struct engine_spool *)task);
}

static void spool_fail(struct engine_spool *spool, const char *what)
{
	int number = errno;
	bool full = number == ENOSPC || number == EDQUOT || number == EFBIG;
	spool->state = ENGINE_SPOOL_FAILED;
	err_set(&spool->err, full ? ERR_LIMIT : ERR_IO, "cannot %s a file for the body: %s", what, strerror(number));
}

static void add_to_hash(struct engine_spool *spool, const void *at, size_t length)
{
	int fine = EVP_DigestUpdate(spool->digest, at, length);
	CHECK(fine == 1);
	spool->bytes += length;
}

static bool open_file(struct engine_spool *spool)
{
	int flags = spool->resumes ? O_RDWR | O_CREAT : O_RDWR | O_CREAT | O_EXCL;
	spool->digest = EVP_MD_CTX_new();
	CHECK(spool->digest && EVP_DigestInit_ex(spool->digest, EVP_sha256(), NULL) == 1);
	if (spool->only_hash)
		return spool->opened = true;
	spool->fd = openat(spool->engine->blobs, spool->name, flags | O_CLOEXEC | O_NOFOLLOW, 0600);
	spool->opened = spool->fd >= 0;
	if (!spool->opened)
		spool_fail(spool, "make");
	return spool->opened;
}

static bool write_all(struct engine_spool *spool)
{
	for (size_t done = 0; done < spool->writing.length && !spool->only_hash;) {
		ssize_t put =
			pwrite(spool->fd, spool->writing.at + done, spool->writing.length - done, (off_t)(spool->bytes + done));
		if (put < 0 && errno == EINTR)
			continue;
		if (put <= 0) {
			spool_fail(spool, "write");
			return false;
		}
		done += (size_t)put;
	}
	if (spool->writing.length > 0)
		add_to_hash(spool, spool->writing.at, spool->writing.length);
	buf_clear(&spool->writing);
	if (spool->bytes - spool->behind >= SPOOL_BEHIND_BYTES && !spool->only_hash) {
		sync_file_range(spool->fd, (off_t)spool->behind, (off_t)(spool->bytes - spool->behind), SYNC_FILE_RANGE_WRITE);
		spool->behind = spool->bytes;
	}
	return true;
}

static void finish_file(struct engine_spool *spool)
{
	unsigned length;
	if (!spool->only_hash && fsync(spool->fd) != 0) {
		spool_fail(spool, "sync");
		return;
	}
	int fine = EVP_DigestFinal_ex(spool->digest, spool->hash, &length);
	CHECK(fine == 1 && length == sizeof(spool->hash));
	spool->state = ENGINE_SPOOL_DONE;
}

static void came_back(struct http_task *task);

static void report(struct engine_spool *spool)
{
	struct engine *engine = spool->engine;
	pthread_mutex_lock(&engine->spools_lock);
	spool->working = false;
	bool dropped = spool->dropped;
	if (!dropped) {
		spool->reported = true;
		spool->task.run = came_back;
		http_loop_post(spool->loop, &spool->task);
	}
	pthread_mutex_unlock(&engine->spools_lock);
	if (dropped)
		dispose(spool);
}

static void write_job(struct http_task *task)
{
	struct engine_spool *spool = (struct engine_spool *)task;
	if ((spool->opened || open_file(spool)) && write_all(spool) && spool->last)
		finish_file(spool);
	if (spool->state == ENGINE_SPOOL_FAILED && spool->opened && !spool->resumes) {
		unlinkat(spool->engine->blobs, spool->name, 0); /* at once: there may be no room for anything else */
		spool->opened = false;
	}
	report(spool);
}

/* What is there of a file is read, a piece at a time. */
static void resume_job(struct http_task *task)
{
	struct engine_spool *spool = (struct engine_spool *)task;
	char piece[64 << 10];
	ssize_t got = 0;
	if (!spool->opened && !open_file(spool)) {
		report(spool);
		return;
	}
	uint64_t most = spool->bytes + SPOOL_READ_BYTES;
	while (spool->bytes < most && (got = pread(spool->fd, piece, sizeof(piece), (off_t)spool->bytes)) > 0)
		add_to_hash(spool, piece, (size_t)got);
	if (got < 0)
		spool_fail(spool, "read");
	if (got > 0 && !atomic_load(&spool->engine->disk_stopping))
		http_loop_post(spool->engine->disk, &spool->task);
	else
		report(spool);
}

/* ---- The owner's side ---------------------------------------------------------------------------------------------- */

static void give(struct engine_spool *spool, void (*job)(struct http_task *task))
{
	pthread_mutex_lock(&spool->engine->spools_lock);
	spool->working = true;
	pthread_mutex_unlock(&spool->engine->spools_lock);
	spool->task.run = job;
	http_loop_post(spool->engine->disk, &spool->task);
}

/* Neither the disk has it, nor is a report on its way. */
static bool is_idle(struct engine_spool *spool)
{
	pthread_mutex_lock(&spool->engine->spools_lock);
	bool idle = !spool->working && !spool->reported;
	pthread_mutex_unlock(&spool->engine->spools_lock);
	return idle;
}

static void kick(struct engine_spool *spool)
{
	bool worth = spool->ending || spool->filling.length >= SPOOL_START_BYTES;
	if (!worth || spool->last || !is_idle(spool) || spool->state != ENGINE_SPOOL_OPEN)
		return;
	struct buf empty = spool->writing;
	spool->writing = spool->filling;
	spool->filling = empty;
	spool->last = spool->ending;
	give(spool, write_job);
}

static void came_back(struct http_task *task)
{
	struct engine_spool *spool = (struct engine_spool *)task;
	pthread_mutex_lock(&spool->engine->spools_lock);
	spool->reported = false;
	bool dropped = spool->dropped;
	pthread_mutex_unlock(&spool->engine->spools_lock);
	if (dropped) {
		spool->task.run = dispose_task;
		http_loop_post(spool->engine->disk, &spool->task);
		return;
	}
	if (spool->state == ENGINE_SPOOL_RESUMING) {
		spool->state = spool->err.code ? ENGINE_SPOOL_FAILED : ENGINE_SPOOL_OPEN;
		spool->put_bytes = spool->bytes;
	}
	kick(spool);
	spool->moved(spool->context);
}

static struct engine_spool *spool_new(struct engine *engine, const struct engine_spool_options *options)
{
	struct engine_spool *spool = calloc(1, sizeof(*spool));
	CHECK(spool);
	spool->engine = engine;
	spool->loop = options->loop;
	spool->moved = options->moved;
	spool->context = options->context;
	spool->fd = -1;
	return spool;
}

struct engine_spool *engine_spool_new(struct engine *engine, const struct engine_spool_options *options)
{
	struct engine_spool *spool = spool_new(engine, options);
	struct buf name = {0};
	buf_printf(&name, ENGINE_UPLOAD_PREFIX "%llu", (unsigned long long)atomic_fetch_add(&engine->spools_made, 1));
	spool->name = strdup(buf_c(&name));
	buf_free(&name);
	CHECK(spool->name);
	return spool;
}

struct engine_spool *engine_spool_hash_only(struct engine *engine, const struct engine_spool_options *options)
{
	struct engine_spool *spool = spool_new(engine, options);
	spool->only_hash = true;
	return spool;
}

struct engine_spool *engine_spool_resume(struct engine *engine, const char *name,
                                         const struct engine_spool_options *options)
{
	struct engine_spool *spool = spool_new(engine, options);
	spool->name = strdup(name);
	CHECK(spool->name);
	spool->resumes = true;
	spool->state = ENGINE_SPOOL_RESUMING;
	give(spool, resume_job);
	return spool;
}

bool engine_spool_put(struct engine_spool *spool, struct str bytes)
{
	CHECK(!spool->ending);
	buf_put(&spool->filling, bytes);
	spool->put_bytes += bytes.length;
	kick(spool);
	return spool->filling.length < SPOOL_BYTES;
}

void engine_spool_end(struct engine_spool *spool)
{
	spool->ending = true;
	kick(spool);
}

enum engine_spool_state engine_spool_state(struct engine_spool *spool, struct err *err)
{
	if (!is_idle(spool))
		return spool->filling.length < SPOOL_BYTES ? ENGINE_SPOOL_OPEN : ENGINE_SPOOL_FULL;
	if (spool->state == ENGINE_SPOOL_FAILED && err)
		*err = spool->err;
	return spool->state;
}

uint64_t engine_spool_bytes(const struct engine_spool *spool)
{
	return spool->put_bytes;
}

void engine_spool_drop(struct engine_spool *spool)
{
	if (!spool)
		return;
	pthread_mutex_lock(&spool->engine->spools_lock);
	spool->dropped = true;
	bool idle = !spool->working && !spool->reported;
	pthread_mutex_unlock(&spool->engine->spools_lock);
	if (!idle)
		return; /* whoever has it sees to it */
	spool->task.run = dispose_task;
	http_loop_post(spool->engine->disk, &spool->task);
}

/* ---- What became of it ---------------------------------------------------------------------------------------------- */

struct str engine_spool_hash(const struct engine_spool *spool)
{
	CHECK(spool->state == ENGINE_SPOOL_DONE);
	return str_make((const char *)spool->hash, sizeof(spool->hash));
}

int engine_spool_keep(struct engine_spool *spool, struct err *err)
{
	struct engine *engine = spool->engine;
	char name[ENGINE_BLOB_NAME_BYTES];
	engine_blob_name(engine_spool_hash(spool), name);
	if (renameat(engine->blobs, spool->name, engine->blobs, name) != 0)
		return err_set(err, ERR_IO, "cannot name the file of a body: %s", strerror(errno));
	spool->opened = false;
	engine->blobs_changed = true;
	return 0;
}

void engine_spool_discard(struct engine_spool *spool)
{
	spool->resumes = false;
	engine_spool_drop(spool);
}
