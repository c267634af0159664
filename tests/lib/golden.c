#include "lib/golden.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

static FILE *open_file(const char *path, const char *mode)
{
	struct buf whole = {0};
	const char *root = getenv("CHEOPS_SOURCE_ROOT");
	buf_printf(&whole, "%s/%s", root ? root : ".", path);
	FILE *file = fopen(buf_c(&whole), mode);
	if (!file)
		fail_msg("cannot open %s", buf_c(&whole));
	buf_free(&whole);
	return file;
}

void golden_read(const char *path, struct buf *out)
{
	FILE *file = open_file(path, "r");
	char chunk[4096];
	for (size_t got; (got = fread(chunk, 1, sizeof(chunk), file)) > 0;)
		buf_put(out, str_make(chunk, got));
	fclose(file);
}

void golden_check(const char *path, const struct buf *made)
{
	struct buf text = {0};
	if (getenv("CHEOPS_UPDATE_GOLDEN")) {
		FILE *file = open_file(path, "w");
		fwrite(made->at, 1, made->length, file);
		fclose(file);
		return;
	}
	golden_read(path, &text);
	assert_string_equal(buf_c(made), buf_c(&text));
	buf_free(&text);
}

struct str golden_line(struct str *rest)
{
	const char *end = memchr(rest->at, '\n', rest->length);
	size_t length = end ? (size_t)(end - rest->at) : rest->length;
	struct str line = str_make(rest->at, length);
	size_t taken = end ? length + 1 : length;
	*rest = str_make(rest->at + taken, rest->length - taken);
	return line;
}
