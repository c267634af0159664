#include "base/err.h"

#include "base/check.h"
#include "base/str.h"

#include <stdio.h>

const char *err_phrase(int code)
{
	switch (code) {
	case 0: return "no error";
	case ERR_INVALID: return "invalid";
	case ERR_LIMIT: return "past a limit";
	case ERR_NOT_FOUND: return "not found";
	case ERR_CONFLICT: return "in conflict";
	case ERR_UNAVAILABLE: return "unavailable";
	case ERR_TIMEOUT: return "no answer in time";
	case ERR_IO: return "input or output failed";
	case ERR_NO_MEMORY: return "out of memory";
	case ERR_CORRUPT: return "corrupt";
	case ERR_VERSION: return "unknown version";
	default: return "unknown error";
	}
}

/* Appends to a text that is cut, between UTF-8 sequences, at the end of its array. Returns the new length. */
static size_t append(char text[LIMIT_ERROR_TEXT_BYTES], size_t length, struct str more)
{
	struct str fits = utf8_truncate(more, LIMIT_ERROR_TEXT_BYTES - 1 - length);
	memcpy(text + length, fits.at, fits.length);
	text[length + fits.length] = '\0';
	return length + fits.length;
}

/* Formats into a text that is cut in the same way. Returns its length. */
__attribute__((format(printf, 2, 0))) static size_t format_text(char text[LIMIT_ERROR_TEXT_BYTES], const char *format,
                                                                va_list arguments)
{
	/* Longer than what is kept, so that a sequence at the cut is seen whole. */
	char whole[LIMIT_ERROR_TEXT_BYTES + 4];
	/* What cannot be formatted (a wide character, 2 GiB of text) still tells the place when it is shown raw. */
	int length = vsnprintf(whole, sizeof(whole), format, arguments);
	return append(text, 0, str_of(length >= 0 ? whole : format));
}

int err_set(struct err *err, int code, const char *format, ...)
{
	CHECK(code < 0);
	if (err == NULL)
		return code;
	/* Aside first: the old text may be among the arguments. */
	char text[LIMIT_ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	size_t length = format_text(text, format, arguments);
	va_end(arguments);
	err->code = code;
	memcpy(err->text, text, length + 1);
	return code;
}

int err_context(struct err *err, int code, const char *format, ...)
{
	CHECK(code < 0);
	if (err == NULL)
		return code;
	char text[LIMIT_ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	size_t length = format_text(text, format, arguments);
	va_end(arguments);
	/* A level below that failed without a word must not turn into a success. */
	if (err->code == 0) {
		err->code = code;
		append(err->text, 0, str_of(err_phrase(code)));
	}
	length = append(text, length, STR(": "));
	length = append(text, length, str_of(err->text));
	memcpy(err->text, text, length + 1);
	return err->code;
}
