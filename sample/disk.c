#include "disk.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "memory.h"

int disk_open_dir(const char *path)
{
	char *part = text_of("%s", path);
	int status = 0;
	for (char *slash = strchr(part + 1, '/'); slash != NULL && status == 0; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) != 0 && errno != EEXIST)
			status = -errno;
		*slash = '/';
	}
	free(part);
	if (status == 0 && mkdir(path, 0755) != 0 && errno != EEXIST)
		status = -errno;
	if (status != 0)
		return status;
	int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return dir < 0 ? -errno : dir;
}

int disk_lock(int dir, const char *name)
{
	int fd = openat(dir, name, O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	if (fd < 0)
		return -errno;
	if (flock(fd, LOCK_EX | LOCK_NB) == 0)
		return 0; /* stays open on purpose: the lock goes with it */
	int status = -errno;
	close(fd);
	return status;
}

int disk_write(int fd, const char *bytes, size_t length)
{
	while (length > 0) {
		ssize_t written = write(fd, bytes, length);
		if (written < 0 && errno != EINTR)
			return -errno;
		if (written > 0) {
			bytes += written;
			length -= (size_t)written;
		}
	}
	return 0;
}

int disk_commit(int dir, int fd, const char *temporary, const char *name)
{
	if (fsync(fd) != 0 || renameat(dir, temporary, dir, name) != 0 || fsync(dir) != 0)
		return -errno;
	return 0;
}

int disk_replace(int dir, const char *name, const char *bytes, size_t length)
{
	char *temporary = text_of(".%s.tmp", name);
	int status = 0;
	int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0) {
		status = -errno;
		goto named;
	}
	status = disk_write(fd, bytes, length);
	if (status == 0)
		status = disk_commit(dir, fd, temporary, name);
	if (status != 0)
		unlinkat(dir, temporary, 0);
	close(fd);
named:
	free(temporary);
	return status;
}

int disk_remove(int dir, const char *name)
{
	return unlinkat(dir, name, 0) != 0 || fsync(dir) != 0 ? -errno : 0;
}

static bool is_left_over(const char *name)
{
	size_t length = strlen(name);
	return name[0] == '.' && length > 5 && strcmp(name + length - 4, ".tmp") == 0;
}

int disk_each(int dir, int (*visit)(void *context, const char *name), void *context)
{
	/* Opened anew, because closedir() closes, and a position is shared between duplicates. */
	int own = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *entries = own < 0 ? NULL : fdopendir(own);
	if (entries == NULL) {
		int status = -errno;
		if (own >= 0)
			close(own);
		return status;
	}
	int status = 0;
	for (struct dirent *entry = readdir(entries); entry != NULL && status == 0; entry = readdir(entries)) {
		if (is_left_over(entry->d_name))
			unlinkat(dir, entry->d_name, 0);
		else if (entry->d_name[0] != '.')
			status = visit(context, entry->d_name);
	}
	closedir(entries);
	return status;
}
