/* Files that the agent reads. */
#ifndef AGENT_FILE_H
#define AGENT_FILE_H

#include "base/buf.h"
#include "base/err.h"

/* Appends what an open descriptor gives, at most at_most bytes. Returns 0, or errno. */
int agent_descriptor_read(int fd, size_t at_most, struct buf *out);

/* Appends at most at_most bytes of a file to out: ask for one more than is accepted. */
int agent_file_read(const char *path, size_t at_most, struct buf *out, struct err *err);

/* The same for a secret: a regular file, which nobody but its owner and group may read or write. */
int agent_secret_read(const char *path, size_t at_most, struct buf *out, struct err *err);

#endif
