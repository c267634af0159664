/* A growable byte buffer, for text that is built piece by piece. Out of memory aborts. */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include "base/str.h"

#include <stdarg.h>

struct buf {
	char *at; /* NUL-terminated once anything was written; NULL before */
	size_t length;
	size_t capacity;
};

/* A zeroed struct buf is an empty buffer. */
void buf_free(struct buf *buf);

/* Empties it, keeps the memory. */
void buf_clear(struct buf *buf);

void buf_put(struct buf *buf, struct str bytes);
/* For so many bytes, which the caller writes: they count already. */
char *buf_extend_slowly(struct buf *buf, size_t bytes);
static inline char *buf_extend(struct buf *buf, size_t bytes)
{
	if (buf->capacity - buf->length <= bytes) /* with the NUL behind them */
		return buf_extend_slowly(buf, bytes);
	char *at = buf->at + buf->length;
	buf->length += bytes;
	at[bytes] = '\0';
	return at;
}
void buf_put_char(struct buf *buf, char c);
/* In decimal, with leading zeros up to `digits`. */
void buf_put_number(struct buf *buf, uint64_t number, unsigned digits);
void buf_put_repeat(struct buf *buf, char c, size_t count);
__attribute__((format(printf, 2, 3))) void buf_printf(struct buf *buf, const char *format, ...);
__attribute__((format(printf, 2, 0))) void buf_vprintf(struct buf *buf, const char *format, va_list arguments);

/* A JSON string with its quotes. Bytes that are not valid UTF-8 become U+FFFD. */
void buf_put_json(struct buf *buf, struct str text);

static inline struct str buf_str(const struct buf *buf)
{
	return (struct str){buf->at ? buf->at : "", buf->length};
}

/* The text as a C string; "" when empty. */
static inline const char *buf_c(const struct buf *buf)
{
	return buf->at ? buf->at : "";
}

#endif
