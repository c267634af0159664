/* Base64 (RFC 4648): records and requests in JSON, the text of join tokens.
 *
 * Reading is strict: each text has one meaning, and each meaning one text. What is refused: a length that no bytes give,
 * a character of another alphabet (line ends and spaces among them), padding that is missing or too much, and bits
 * behind the last byte that are not 0.
 */
#ifndef BASE_BASE64_H
#define BASE_BASE64_H

#include "base/buf.h"

enum base64_alphabet {
	BASE64_STANDARD, /* section 4: + and /, padded with = */
	BASE64_URL,      /* section 5: - and _, not padded */
	BASE64_URL_PADDED,
};

/* Room enough for what so many characters stand for. */
#define BASE64_BYTES(characters) ((characters) / 4 * 3 + 2)

void base64_encode(struct buf *out, enum base64_alphabet alphabet, struct str bytes);

/* Writes *length bytes, at most BASE64_BYTES(text.length). False: refused, and what was written means nothing. */
bool base64_decode(enum base64_alphabet alphabet, struct str text, unsigned char *bytes, size_t *length);

/* The same, appended to a buffer, to which nothing is added where it is false. */
bool base64_decode_to(struct buf *out, enum base64_alphabet alphabet, struct str text);

#endif
