/*
 * The bytes of images, which are never held in memory.
 *
 * An upload, when all goes well:
 *   1. the bytes go into ".UUID.tmp", and through SHA-256;
 *   2. at their end the file is made durable and named ID-CHECKSUM;
 *   3. the record gets its checksum, size and status "active": only now the new bytes are the image's;
 *   4. the bytes that the image had before are removed.
 * The process dies before 3: at the next start no record speaks of the file, and it is removed. After 3: the same for the
 * bytes of before. The client leaves before the end: the temporary file is removed. Two uploads to one image at the same
 * time: the one that ends last wins. The image is deleted meanwhile: 404. Who reads the old bytes goes on reading them:
 * a file that is open outlives its name.
 */
#include "image.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "disk.h"
#include "identity.h"
#include "memory.h"
#include "sha256.h"

struct upload {
	int fd;
	char *temporary; /* NULL once it has its real name */
	struct sha256 hash;
	uint64_t bytes;
	int status; /* 0, or -errno of the first write that failed */
};

/* The name of the file with an image's bytes; NULL if the image has none. The caller frees. */
static char *file_name(const json_t *record)
{
	const char *id = json_string_value(json_object_get(record, "id"));
	const char *checksum = json_string_value(json_object_get(record, "checksum"));
	return id == NULL || checksum == NULL ? NULL : text_of("%s-%s", id, checksum);
}

static int remove_unless_wanted(void *context, const char *name)
{
	struct image_state *state = context;
	char id[UUID_BYTES];
	snprintf(id, sizeof(id), "%s", name); /* an id is as long as they all are, and comes first */
	json_t *record = store_get(state->records, id);
	char *wanted = file_name(record);
	if (wanted == NULL || strcmp(wanted, name) != 0)
		unlinkat(state->files, name, 0);
	free(wanted);
	json_decref(record);
	return 0;
}

bool image_files_open(struct image_state *state, const char *data)
{
	char *path = text_of("%s/image-files", data);
	state->files = disk_open_dir(path);
	int status = state->files < 0 ? state->files : disk_each(state->files, remove_unless_wanted, state);
	if (status != 0)
		fprintf(stderr, "cheops-sample: cannot read %s: %s\n", path, strerror(-status));
	free(path);
	return status == 0;
}

void image_file_remove(struct image_state *state, const json_t *record)
{
	char *name = file_name(record);
	if (name != NULL)
		unlinkat(state->files, name, 0); /* if that fails, the next start does it */
	free(name);
}

/* ---- download ----------------------------------------------------------------------------------------------------- */

/* The record and its file belong together only while the store is locked. */
static int open_file(struct image_state *state, const char *id)
{
	store_lock(state->records);
	json_t *record = store_get(state->records, id);
	char *name = file_name(record);
	int fd = -ENODATA;
	if (record == NULL)
		fd = -ENOENT;
	else if (name != NULL && (fd = openat(state->files, name, O_RDONLY | O_CLOEXEC)) < 0)
		fd = errno == ENOENT ? -EIO : -errno;
	free(name);
	json_decref(record);
	store_unlock(state->records);
	return fd;
}

struct reply image_file_get(struct request *request)
{
	int fd = open_file(request->state, request->id);
	if (fd == -ENOENT)
		return reply_error(404, "no image %s", request->id);
	if (fd == -ENODATA)
		return reply_empty(204);
	struct stat about;
	if (fd < 0 || fstat(fd, &about) != 0)
		return reply_disk_error(fd < 0 ? fd : -errno, "open the image's file");
	return reply_file(fd, (uint64_t)about.st_size);
}

/* ---- upload ------------------------------------------------------------------------------------------------------- */

void image_file_begin(struct request *request)
{
	struct image_state *state = request->state;
	if (!store_has(state->records, request->id)) {
		request_refuse(request, reply_error(404, "no image %s", request->id));
		return;
	}
	struct upload *upload = NEW(struct upload);
	char unique[UUID_BYTES];
	uuid_make(unique);
	upload->temporary = text_of(".%s.tmp", unique);
	sha256_start(&upload->hash);
	upload->fd = openat(state->files, upload->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	upload->status = upload->fd < 0 ? -errno : 0;
	request->stream = upload;
}

void image_file_piece(struct request *request, const char *bytes, size_t length)
{
	struct upload *upload = request->stream;
	sha256_add(&upload->hash, bytes, length);
	upload->bytes += length;
	if (upload->status == 0)
		upload->status = disk_write(upload->fd, bytes, length);
}

/* Steps 3 and 4; the store is locked. The record as it is now, or NULL with `*status` -ENOENT or another -errno. */
static json_t *adopt(struct image_state *state, const char *id, const char *checksum, uint64_t bytes, int *status)
{
	json_t *old = store_get(state->records, id);
	*status = old == NULL ? -ENOENT : 0;
	if (old == NULL)
		return NULL;
	json_t *record = need(json_deep_copy(old));
	json_object_set_new(record, "status", json_string("active"));
	json_object_set_new(record, "size", json_integer((json_int_t)bytes));
	json_object_set_new(record, "checksum", json_string(checksum));
	*status = store_put(state->records, record);
	json_t *obsolete = *status == 0 ? old : record;
	if (!json_equal(json_object_get(old, "checksum"), json_object_get(record, "checksum")))
		image_file_remove(state, obsolete);
	json_decref(old);
	if (*status == 0)
		return record;
	json_decref(record);
	return NULL;
}

/* Step 2. The name is free to take while the store is locked: it is the same bytes, or nobody's. */
static int name_upload(struct image_state *state, struct upload *upload, const char *id, const char *checksum)
{
	char *name = text_of("%s-%s", id, checksum);
	int status = disk_commit(state->files, upload->fd, upload->temporary, name);
	free(name);
	if (status == 0) {
		free(upload->temporary);
		upload->temporary = NULL;
	}
	return status;
}

struct reply image_file_put(struct request *request)
{
	struct image_state *state = request->state;
	struct upload *upload = request->stream;
	char checksum[SHA256_TEXT_BYTES];
	sha256_finish(&upload->hash, checksum);
	int status = upload->status;
	/* Here, since under the lock of the store it would keep others waiting while a large file goes to the disk. */
	if (status == 0 && fsync(upload->fd) != 0)
		status = -errno;
	if (status != 0)
		return reply_disk_error(status, "store the image's file");
	store_lock(state->records);
	status = store_has(state->records, request->id) ? name_upload(state, upload, request->id, checksum) : -ENOENT;
	json_t *record = status == 0 ? adopt(state, request->id, checksum, upload->bytes, &status) : NULL;
	store_unlock(state->records);
	if (status == -ENOENT)
		return reply_error(404, "image %s was deleted during the upload", request->id);
	return record != NULL ? reply_json(200, record) : reply_disk_error(status, "store the image's file");
}

void image_file_drop(struct request *request)
{
	struct image_state *state = request->state;
	struct upload *upload = request->stream;
	if (upload == NULL)
		return;
	if (upload->temporary != NULL)
		unlinkat(state->files, upload->temporary, 0);
	if (upload->fd >= 0)
		close(upload->fd);
	sha256_drop(&upload->hash);
	free(upload->temporary);
	free(upload);
	request->stream = NULL;
}
