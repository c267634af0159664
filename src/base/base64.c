#include "base/base64.h"

#include "base/check.h"

#include <stdlib.h>

static const char digits[][65] = {
	[BASE64_STANDARD] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/",
	[BASE64_URL] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
	[BASE64_URL_PADDED] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_",
};

void base64_encode(struct buf *out, enum base64_alphabet alphabet, struct str bytes)
{
	const unsigned char *at = (const unsigned char *)bytes.at;
	for (size_t left = bytes.length; left > 0;) {
		size_t take = left < 3 ? left : 3;
		uint32_t group = (uint32_t)at[0] << 16 | (take > 1 ? (uint32_t)at[1] << 8 : 0) | (take > 2 ? at[2] : 0u);
		for (unsigned digit = 0; digit <= take; digit++)
			buf_put_char(out, digits[alphabet][group >> (18 - 6 * digit) & 63]);
		if (alphabet != BASE64_URL)
			buf_put_repeat(out, '=', 3 - take);
		at += take;
		left -= take;
	}
}

/* Takes the padding off. False: it is not as it has to be. */
static bool strip_padding(struct str *text)
{
	if (text->length % 4 != 0)
		return false;
	for (int i = 0; i < 2 && text->length > 0 && text->at[text->length - 1] == '='; i++)
		text->length--;
	return true;
}

static int value_of(enum base64_alphabet alphabet, char c)
{
	const char *digit = c ? strchr(digits[alphabet], c) : NULL;
	return digit ? (int)(digit - digits[alphabet]) : -1;
}

bool base64_decode(enum base64_alphabet alphabet, struct str text, unsigned char *bytes, size_t *length)
{
	uint32_t group = 0, bits = 0;
	*length = 0;
	if (alphabet != BASE64_URL && !strip_padding(&text))
		return false;
	for (size_t i = 0; i < text.length; i++) {
		int value = value_of(alphabet, text.at[i]);
		if (value < 0)
			return false;
		group = group << 6 | (uint32_t)value;
		bits += 6;
		if (bits >= 8) {
			bits -= 8;
			bytes[(*length)++] = (unsigned char)(group >> bits);
			group &= (1u << bits) - 1;
		}
	}
	return group == 0 && bits < 6;
}

bool base64_decode_to(struct buf *out, enum base64_alphabet alphabet, struct str text)
{
	size_t length;
	unsigned char *bytes = malloc(BASE64_BYTES(text.length));
	CHECK(bytes);
	bool good = base64_decode(alphabet, text, bytes, &length);
	if (good)
		buf_put(out, str_make((const char *)bytes, length));
	free(bytes);
	return good;
}
