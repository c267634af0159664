/* Errors: one table of codes, and a text that each level adds to.
 *
 * What can fail returns 0 or one of the negative codes. The text goes into a struct err of the caller's; a caller that
 * needs none passes NULL. The innermost level says what was wrong (err_set), each level above says where it was
 * (err_context puts "reading views.yaml: " in front). There is no global or thread-local last error.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/limits.h"

#include <stdarg.h>

enum err_code {
	ERR_INVALID = -1,     /* the input is wrong, and would be wrong at any time */
	ERR_LIMIT = -2,       /* the input is past a limit of limits.h */
	ERR_NOT_FOUND = -3,   /* what was named does not exist */
	ERR_CONFLICT = -4,    /* it contradicts something that exists */
	ERR_UNAVAILABLE = -5, /* it may work later, or elsewhere */
	ERR_TIMEOUT = -6,     /* no answer in time */
	ERR_IO = -7,          /* the operating system refused */
	ERR_NO_MEMORY = -8,   /* a size that a peer chose could not be had */
	ERR_CORRUPT = -9,     /* stored or received bytes do not make sense */
	ERR_VERSION = -10,    /* made by a version that this one does not understand */
};

struct err {
	int code; /* 0: nothing set */
	char text[LIMIT_ERROR_TEXT_BYTES];
};

/* A short phrase for a code: "invalid", "past a limit"... Never NULL. */
const char *err_phrase(int code);

/* Sets code and text (cut at the end if too long) and returns the code. err may be NULL. */
__attribute__((format(printf, 3, 4))) int err_set(struct err *err, int code, const char *format, ...);

/* Puts a formatted prefix and ": " before the text, and returns err's code. err may be NULL: then returns `code`. */
__attribute__((format(printf, 3, 4))) int err_context(struct err *err, int code, const char *format, ...);

#endif
