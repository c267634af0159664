#include "base/text.h"

#include <stdio.h>

struct str text_shown(struct str name)
{
	return utf8_truncate(name, LIMIT_NAME_SHOWN_BYTES);
}

const char *text_ellipsis(struct str name)
{
	return text_shown(name).length < name.length ? "…" : "";
}

const char *text_path_shown(const char *path)
{
	size_t length = strlen(path);
	const char *shown = length > LIMIT_PATH_SHOWN_BYTES ? path + length - LIMIT_PATH_SHOWN_BYTES : path;
	while (((unsigned char)*shown & 0xc0) == 0x80)
		shown++;
	return shown;
}

const char *text_path_cut(const char *path)
{
	return text_path_shown(path) == path ? "" : "…";
}

bool text_is_control(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* The length of the character that the text begins with, 0 if it is not printable UTF-8. */
static size_t printable_length(struct str text)
{
	uint32_t code_point;
	size_t bytes = utf8_decode(text, &code_point);
	return bytes == 0 || text_is_control(code_point) ? 0 : bytes;
}

bool text_is_printable(struct str text)
{
	for (size_t i = 0; i < text.length;) {
		size_t bytes = printable_length(str_make(text.at + i, text.length - i));
		if (bytes == 0)
			return false;
		i += bytes;
	}
	return true;
}

void text_put_harmless(struct buf *out, struct str text)
{
	for (size_t i = 0; i < text.length;) {
		size_t bytes = printable_length(str_make(text.at + i, text.length - i));
		buf_put(out, bytes > 0 ? str_make(text.at + i, bytes) : STR("\xef\xbf\xbd"));
		i += bytes > 0 ? bytes : 1;
	}
}

const char *text_did_you_mean(const struct suggest *suggest, char out[TEXT_SUGGESTION_BYTES])
{
	out[0] = '\0';
	if (suggest->best.length > 0)
		snprintf(out, TEXT_SUGGESTION_BYTES, "; did you mean `%.*s`?", STR_FMT(suggest->best));
	return out;
}
