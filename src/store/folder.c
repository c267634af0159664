/* The folder of a store: made, and taken by one store at a time.
 *
 * The file `holder` is locked by whoever has the store open, and says who that is. The lock is the kernel's: it ends with
 * the process, however that ends, so there is nothing to clean up after a crash. What the file says is for people. */
#include "store/store_int.h"

#include "base/check.h"
#include "base/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static int refuse(struct err *err, const char *what, const char *path)
{
	int number = errno;
	const char *hint = number == EACCES || number == EROFS || number == EPERM
	                       ? "; the folder has to be writable for the user that the agent runs as"
	                   : number == ENOENT ? "; the folder above it has to be there"
	                                      : "";
	return err_set(err, number == ENOSPC || number == EDQUOT ? ERR_LIMIT : ERR_IO, "cannot %s " TEXT_PATH_FMT ": %s%s",
	               what, TEXT_PATH(path), strerror(number), hint);
}

static void say_who(int fd)
{
	char name[64] = "", line[128];
	int comm = open("/proc/self/comm", O_RDONLY | O_CLOEXEC);
	ssize_t length = comm >= 0 ? read(comm, name, sizeof(name) - 1) : -1;
	if (comm >= 0)
		close(comm);
	name[length > 0 ? length - 1 : 0] = '\0'; /* its line end */
	int size = snprintf(line, sizeof(line), "process %ld (%s)\n", (long)getpid(), name);
	/* On a full disk the file stays empty, and somebody else will not be told whom to look for. */
	if (ftruncate(fd, 0) == 0)
		(void)!pwrite(fd, line, (size_t)size, 0);
}

static int refuse_taken(int fd, const char *path, struct err *err)
{
	char line[128];
	ssize_t length = pread(fd, line, sizeof(line), 0);
	struct str who = str_make(line, length > 0 ? (size_t)length : 0);
	while (who.length > 0 && who.at[who.length - 1] == '\n')
		who.length--;
	if (who.length == 0 || !text_is_printable(who))
		who = STR("another process");
	return err_set(err, ERR_UNAVAILABLE,
	               "the store in " TEXT_PATH_FMT
	               " is in use by %.*s; one agent at a time can have it: stop that one, or "
	               "give this one a folder of its own",
	               TEXT_PATH(path), STR_FMT(who));
}

int folder_open(struct folder *folder, const char *path, struct err *err)
{
	struct buf file = {0};
	int code = 0;
	*folder = (struct folder){.lock = -1};
	bool made = mkdir(path, 0700) == 0;
	if (!made && errno != EEXIST)
		return refuse(err, "make the folder", path);
	buf_printf(&file, "%s/holder", path);
	int fd = open(buf_c(&file), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		code = refuse(err, "open", buf_c(&file));
	} else if (flock(fd, LOCK_EX | LOCK_NB)) {
		code = errno == EWOULDBLOCK ? refuse_taken(fd, path, err) : refuse(err, "lock", buf_c(&file));
		close(fd);
	}
	buf_free(&file);
	if (code)
		return code;
	say_who(fd);
	folder->path = strdup(path);
	CHECK(folder->path != NULL);
	folder->lock = fd;
	return 0;
}

void folder_close(struct folder *folder)
{
	if (folder->lock >= 0) {
		(void)!ftruncate(folder->lock, 0);
		close(folder->lock);
	}
	free(folder->path);
	*folder = (struct folder){.lock = -1};
}

static int sync_folder(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int failed = fd < 0 || fsync(fd);
	int code = failed ? refuse(err, "sync", path) : 0;
	if (fd >= 0)
		close(fd);
	return code;
}

int folder_sync(const struct folder *folder, struct err *err)
{
	struct buf above = {0};
	buf_printf(&above, "%s/..", folder->path);
	int code = sync_folder(folder->path, err);
	/* The one above need not be ours to read; whoever made the folder before us had it synced long ago. */
	if (code == 0 && access(buf_c(&above), R_OK) == 0)
		code = sync_folder(buf_c(&above), err);
	buf_free(&above);
	return code;
}
