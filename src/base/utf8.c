/* UTF-8 as The Unicode Standard defines it (table 3-7, well-formed byte sequences). */
#include "base/str.h"

static bool is_continuation(unsigned char byte)
{
	return (byte & 0xc0) == 0x80;
}

size_t utf8_decode(struct str text, uint32_t *code_point)
{
	if (text.length == 0)
		return 0;
	unsigned char lead = (unsigned char)text.at[0];
	if (lead < 0x80) {
		*code_point = lead;
		return 1;
	}
	/* 0xc0, 0xc1 (always overlong) and 0xf5 up (always beyond U+10FFFF) never lead. */
	if (lead < 0xc2 || lead > 0xf4)
		return 0;
	size_t length = lead < 0xe0 ? 2 : lead < 0xf0 ? 3 : 4;
	if (text.length < length)
		return 0;
	uint32_t value = lead & (0x7fu >> length);
	for (size_t i = 1; i < length; i++) {
		unsigned char byte = (unsigned char)text.at[i];
		if (!is_continuation(byte))
			return 0;
		value = value << 6 | (byte & 0x3fu);
	}
	static const uint32_t least[5] = {[2] = 0x80, [3] = 0x800, [4] = 0x10000};
	if (value < least[length] || value > 0x10ffff || (value >= 0xd800 && value <= 0xdfff))
		return 0;
	*code_point = value;
	return length;
}

size_t utf8_encode(uint32_t code_point, char out[4])
{
	if (code_point < 0x80) {
		out[0] = (char)code_point;
		return 1;
	}
	if (code_point > 0x10ffff || (code_point >= 0xd800 && code_point <= 0xdfff))
		return 0;
	size_t length = code_point < 0x800 ? 2 : code_point < 0x10000 ? 3 : 4;
	for (size_t i = length - 1; i > 0; i--) {
		out[i] = (char)(0x80 | (code_point & 0x3f));
		code_point >>= 6;
	}
	out[0] = (char)((0xf00u >> length & 0xff) | code_point);
	return length;
}

struct str utf8_truncate(struct str text, size_t max_bytes)
{
	if (text.length <= max_bytes)
		return text;
	/* Only a sequence that is valid as a whole counts as cut: stray bytes may go anywhere. */
	for (size_t back = 1; back <= 3 && back <= max_bytes; back++) {
		size_t start = max_bytes - back;
		uint32_t code_point;
		if (utf8_decode(str_make(text.at + start, text.length - start), &code_point) > back)
			return str_make(text.at, start);
	}
	return str_make(text.at, max_bytes);
}

size_t utf8_length(struct str text)
{
	size_t count = 0;
	for (size_t i = 0; i < text.length; count++) {
		uint32_t code_point;
		size_t bytes = utf8_decode(str_make(text.at + i, text.length - i), &code_point);
		i += bytes > 0 ? bytes : 1;
	}
	return count;
}
