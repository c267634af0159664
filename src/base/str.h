/* String slices: a pointer and a length, not owned, not terminated. Helpers for ASCII, UTF-8 and likeness. */
#ifndef BASE_STR_H
#define BASE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
	const char *at;
	size_t length;
};

/* A slice of a literal; of a C string; and how to print one with "%.*s". */
#define STR(literal) ((struct str){"" literal, sizeof(literal) - 1})
#define STR_INIT(literal)                                                                                              \
	{                                                                                                                  \
		"" literal, sizeof(literal) - 1                                                                                \
	} /* in initialisers of static objects */
#define STR_FMT(s) (int)(s).length, (s).at

static inline struct str str_of(const char *c_string)
{
	return (struct str){c_string, strlen(c_string)};
}

static inline struct str str_make(const char *at, size_t length)
{
	return (struct str){at, length};
}

static inline bool str_equal(struct str a, struct str b)
{
	return a.length == b.length && (a.length == 0 || memcmp(a.at, b.at, a.length) == 0);
}

/* Same, without regard to ASCII case. */
bool str_equal_nocase(struct str a, struct str b);

/* Of a hexadecimal digit of either case; -1: it is none. */
int str_hex_value(char c);

/* Byte order; a prefix comes first. <0, 0, >0. */
int str_compare(struct str a, struct str b);

/* Decodes the UTF-8 sequence at the start of text. Returns its length in bytes (1 to 4) and the code point, or 0 when it
 * is not valid UTF-8 (overlong, surrogate, beyond U+10FFFF, cut short, empty). */
size_t utf8_decode(struct str text, uint32_t *code_point);

/* Encodes a code point into out[4], returns the length; 0 if it is not a Unicode scalar value. */
size_t utf8_encode(uint32_t code_point, char out[4]);

/* The longest prefix of text of at most max_bytes that does not cut a UTF-8 sequence. */
struct str utf8_truncate(struct str text, size_t max_bytes);

/* Number of code points; a byte that is not part of valid UTF-8 counts as one. */
size_t utf8_length(struct str text);

/* How unlike two names are: insertions, deletions, replacements and swaps of neighbours (in bytes; a difference in ASCII
 * case alone costs nothing). Gives up and returns `at_most + 1` where it would be more than at_most, or where a name
 * is longer than LIMIT_SUGGEST_NAME_BYTES. */
unsigned str_distance(struct str a, struct str b, unsigned at_most);

/* Remembers the best of the candidates offered so far: start with suggest_start(), offer each, read `best`
 * (length 0: none is close enough). */
struct suggest {
	struct str wanted;
	struct str best;
	unsigned distance; /* of best; one more than what is still close enough while there is none */
};

void suggest_start(struct suggest *suggest, struct str wanted);
void suggest_offer(struct suggest *suggest, struct str candidate);

#endif
