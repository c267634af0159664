/* Text that somebody else chose, inside messages for people: cut where it is long, harmless to a terminal. */
#ifndef BASE_TEXT_H
#define BASE_TEXT_H

#include "base/buf.h"
#include "base/limits.h"
#include "base/str.h"

/* A name in quotes: TEXT_NAME_FMT with TEXT_NAME(name). Cut where it is longer than LIMIT_NAME_SHOWN_BYTES. */
#define TEXT_NAME_FMT "`%.*s%s`"
#define TEXT_NAME(name) STR_FMT(text_shown(name)), text_ellipsis(name)
struct str text_shown(struct str name);
const char *text_ellipsis(struct str name); /* "…" if text_shown() is not all of it */

/* The path of a file: TEXT_PATH_FMT with TEXT_PATH(path). The end of a long one says more than its beginning. */
#define TEXT_PATH_FMT "%s%s"
#define TEXT_PATH(path) text_path_cut(path), text_path_shown(path)
const char *text_path_shown(const char *path);
const char *text_path_cut(const char *path);

/* What must not reach a terminal or a log: C0 and C1 controls, and the characters that reorder or break lines. */
bool text_is_control(uint32_t code_point);

/* Is it UTF-8 without control characters, so that it can be shown, and named in a scope? */
bool text_is_printable(struct str text);

/* Appends the text with U+FFFD for whatever is not printable. */
void text_put_harmless(struct buf *out, struct str text);

/* "; did you mean `x`?" with the best of the candidates, or "" when none is close. Fills and returns out. */
enum { TEXT_SUGGESTION_BYTES = LIMIT_SUGGEST_NAME_BYTES + 32 };
const char *text_did_you_mean(const struct suggest *suggest, char out[TEXT_SUGGESTION_BYTES]);

#endif
