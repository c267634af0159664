/*
 * Files that are whole or not there. A new content is written beside the old one, made durable, and put in its place by
 * one rename; a process killed at any moment leaves the old or the new, and perhaps a ".NAME.tmp", which is removed at the
 * next start. What can fail returns 0 or -errno.
 */
#ifndef SAMPLE_DISK_H
#define SAMPLE_DISK_H

#include <stdbool.h>
#include <stddef.h>

/* Makes a directory and those above it, and opens it: a file descriptor, or -errno. */
int disk_open_dir(const char *path);

/* Takes `name` in the directory for this process; -EWOULDBLOCK if another one has it. Held until the process ends. */
int disk_lock(int dir, const char *name);

/* Writes all of it, whatever the system takes at a time. */
int disk_write(int fd, const char *bytes, size_t length);

/* Makes an open file durable and gives it its name, in place of one that had it. Does not close. */
int disk_commit(int dir, int fd, const char *temporary, const char *name);

/* The whole of a small file: written beside, then committed. */
int disk_replace(int dir, const char *name, const char *bytes, size_t length);

int disk_remove(int dir, const char *name);

/* Calls `visit` with the name of each file; what was left half written is removed instead. Stops at what is not 0. */
int disk_each(int dir, int (*visit)(void *context, const char *name), void *context);

#endif
