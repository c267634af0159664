#include "base/buf.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>

enum { FIRST_BYTES = 64 };

static __attribute__((noinline)) void grow(struct buf *buf, size_t more)
{
	CHECK(more < PTRDIFF_MAX - buf->length);
	size_t needed = buf->length + more + 1;
	size_t capacity = buf->capacity > 0 ? buf->capacity : FIRST_BYTES;
	while (capacity < needed)
		capacity *= 2;
	char *at = realloc(buf->at, capacity);
	CHECK(at != NULL);
	buf->at = at;
	buf->capacity = capacity;
}

/* Makes room for `more` bytes and the NUL behind them. */
static inline void reserve(struct buf *buf, size_t more)
{
	if (buf->capacity - buf->length <= more)
		grow(buf, more);
}

static void advance(struct buf *buf, size_t bytes)
{
	buf->length += bytes;
	buf->at[buf->length] = '\0';
}

void buf_free(struct buf *buf)
{
	free(buf->at);
	*buf = (struct buf){0};
}

void buf_clear(struct buf *buf)
{
	buf->length = 0;
	if (buf->at != NULL)
		buf->at[0] = '\0';
}

void buf_put(struct buf *buf, struct str bytes)
{
	if (bytes.length == 0)
		return;
	reserve(buf, bytes.length);
	memcpy(buf->at + buf->length, bytes.at, bytes.length);
	advance(buf, bytes.length);
}

char *buf_extend_slowly(struct buf *buf, size_t bytes)
{
	size_t at = buf->length;
	reserve(buf, bytes);
	advance(buf, bytes);
	return buf->at + at;
}

void buf_put_char(struct buf *buf, char c)
{
	reserve(buf, 1);
	buf->at[buf->length] = c;
	advance(buf, 1);
}

void buf_put_number(struct buf *buf, uint64_t number, unsigned digits)
{
	char text[20];
	size_t at = sizeof(text);
	CHECK(digits <= sizeof(text));
	do {
		text[--at] = (char)('0' + number % 10);
		number /= 10;
	} while (number > 0 || sizeof(text) - at < digits);
	buf_put(buf, str_make(text + at, sizeof(text) - at));
}

void buf_put_repeat(struct buf *buf, char c, size_t count)
{
	if (count == 0)
		return;
	reserve(buf, count);
	memset(buf->at + buf->length, c, count);
	advance(buf, count);
}

void buf_printf(struct buf *buf, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(buf, format, arguments);
	va_end(arguments);
}

void buf_vprintf(struct buf *buf, const char *format, va_list arguments)
{
	va_list again;
	va_copy(again, arguments);
	reserve(buf, 0);
	size_t room = buf->capacity - buf->length;
	int length = vsnprintf(buf->at + buf->length, room, format, arguments);
	CHECK(length >= 0);
	if ((size_t)length >= room) {
		reserve(buf, (size_t)length);
		vsnprintf(buf->at + buf->length, (size_t)length + 1, format, again);
	}
	va_end(again);
	advance(buf, (size_t)length);
}

static void put_json_ascii(struct buf *buf, char c)
{
	static const char short_forms[][2] = {{'"', '"'},  {'\\', '\\'}, {'\b', 'b'}, {'\f', 'f'},
	                                      {'\n', 'n'}, {'\r', 'r'},  {'\t', 't'}};
	for (size_t i = 0; i < sizeof(short_forms) / sizeof(short_forms[0]); i++) {
		if (short_forms[i][0] == c) {
			buf_put(buf, str_make((const char[]){'\\', short_forms[i][1]}, 2));
			return;
		}
	}
	if ((unsigned char)c < 0x20)
		buf_printf(buf, "\\u%04x", (unsigned)c);
	else
		buf_put_char(buf, c);
}

void buf_put_json(struct buf *buf, struct str text)
{
	buf_put_char(buf, '"');
	for (size_t i = 0; i < text.length;) {
		uint32_t code_point;
		size_t bytes = utf8_decode(str_make(text.at + i, text.length - i), &code_point);
		if (bytes == 1)
			put_json_ascii(buf, text.at[i]);
		else if (bytes == 0)
			buf_put(buf, STR("\xef\xbf\xbd"));
		else
			buf_put(buf, str_make(text.at + i, bytes));
		i += bytes > 0 ? bytes : 1;
	}
	buf_put_char(buf, '"');
}
