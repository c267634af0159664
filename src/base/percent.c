#include "base/percent.h"

bool percent_decode(struct arena *arena, struct str text, struct str *decoded)
{
	char *out = arena_alloc(arena, text.length + 1, 1);
	size_t length = 0;
	for (size_t i = 0; i < text.length; i++) {
		if (text.at[i] != '%') {
			out[length++] = text.at[i];
			continue;
		}
		if (text.length - i < 3 || str_hex_value(text.at[i + 1]) < 0 || str_hex_value(text.at[i + 2]) < 0)
			return false;
		out[length++] = (char)(str_hex_value(text.at[i + 1]) * 16 + str_hex_value(text.at[i + 2]));
		i += 2;
	}
	*decoded = str_make(out, length);
	return true;
}

static const bool unreserved[256] = {
	['0' ... '9'] = true, ['A' ... 'Z'] = true, ['a' ... 'z'] = true, ['-'] = true,
	['.'] = true,         ['_'] = true,         ['~'] = true,
};

void percent_encode(struct buf *out, struct str text)
{
	static const char digits[] = "0123456789ABCDEF";
	for (size_t i = 0, run = 0; i <= text.length; i++) {
		unsigned char c = i < text.length ? (unsigned char)text.at[i] : 0;
		if (unreserved[c])
			continue;
		buf_put(out, str_make(text.at + run, i - run));
		run = i + 1;
		if (i < text.length)
			buf_put(out, str_make((char[]){'%', digits[c >> 4], digits[c & 15]}, 3));
	}
}
