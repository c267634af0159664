/* Golden files: inputs and what they give, word for word. A test reads the file, makes it anew from its inputs, and compares;
 * with CHEOPS_UPDATE_GOLDEN=1 it writes what it made instead, for a person to read the difference. */
#ifndef TESTS_LIB_GOLDEN_H
#define TESTS_LIB_GOLDEN_H

#include "base/buf.h"

/* `path` is below the root of the sources. */
void golden_read(const char *path, struct buf *out);

/* Fails the test where `made` is not what the file has; or writes it. */
void golden_check(const char *path, const struct buf *made);

/* Takes the next line, without its end, off a text. */
struct str golden_line(struct str *rest);

#endif
