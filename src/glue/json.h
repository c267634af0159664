/* A scanner for JSON (RFC 8259) that is fed pieces of any size and tells what it comes across, in bounded memory.
 *
 *   glue_json_init()
 *   for each piece: glue_json_feed(), then glue_json_next() until it says GLUE_JSON_MORE
 *   glue_json_finish(), then glue_json_next() until it says GLUE_JSON_END
 *   GLUE_JSON_BAD can come at any time, is the last thing told, and glue_json_complain() says why
 *
 * What is told of {"a": [1, {}]}: VALUE (object), KEY "a", VALUE (array), VALUE (number), SCALAR 1, VALUE (object), CLOSE,
 * CLOSE, CLOSE. After a KEY or VALUE, glue_json_skip() makes it say nothing of the whole value: it is still checked, at
 * several times the speed.
 *
 * It is strict: nothing but what the RFC's grammar allows, in UTF-8. Half of a surrogate pair as an escape (\ud800) is within
 * the grammar, and passes; only who wants such a string decoded is told that it cannot be.
 */
#ifndef GLUE_JSON_H
#define GLUE_JSON_H

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/str.h"

enum glue_json_event {
	GLUE_JSON_MORE,   /* the piece is used up */
	GLUE_JSON_KEY,    /* of a member: `token` */
	GLUE_JSON_VALUE,  /* one begins, of `kind`, at `token_at` */
	GLUE_JSON_SCALAR, /* the string, number, true, false or null that began has ended: `token` */
	GLUE_JSON_CLOSE,  /* the object or array ended that was opened last */
	GLUE_JSON_END,    /* after glue_json_finish(): all was well */
	GLUE_JSON_BAD,    /* it is no JSON, or nested too deep */
};

enum glue_json_kind { GLUE_JSON_OBJECT, GLUE_JSON_ARRAY, GLUE_JSON_STRING, GLUE_JSON_NUMBER, GLUE_JSON_LITERAL };

struct glue_json {
	/* What was told last. */
	enum glue_json_kind kind;
	struct str token; /* as written, with its quotes: a slice of the piece or, if it came in several, of `kept` */
	size_t token_at;  /* where it begins, counted from the first byte ever fed */
	bool escaped;     /* it has a backslash */
	bool overlong;    /* it came in several pieces and is longer than `kept`: `token` is empty */
	bool in_array;    /* VALUE: it is an element of an array */
	bool in_object;   /* VALUE: it is the value of the member whose KEY was told. Neither: it is a text of its own */

	/* The piece: what is left of it, and where it began. */
	const char *at;
	const char *end;
	const char *piece;
	size_t piece_at; /* counted from the first byte ever fed */

	/* Inside. */
	uint8_t state;
	uint8_t sub;            /* of a string, number or literal: where in it we are */
	uint8_t low, high;      /* what the next byte of a UTF-8 sequence may be */
	bool is_key;            /* of a string */
	bool many;              /* several texts may follow each other */
	bool finished;          /* no more pieces */
	bool quiet;             /* nothing is told until the value at quiet_depth ends */
	bool tells_end;         /* but that end is */
	uint32_t quiet_depth;   /* how many arrays and objects are around the skipped value, */
	uint32_t value_depth;   /* around the one told last, */
	uint32_t depth;         /* and around here */
	const char *literal;    /* what is left of it */
	const char *token_from; /* in the piece */
	const char *expected;   /* GLUE_JSON_BAD: what would have been right; NULL: it is nested too deep */
	uint32_t kept_length;
	uint64_t objects[LIMIT_GLUE_NESTING / 64]; /* a bit per level: it is an object */
	char kept[LIMIT_GLUE_VALUE_BYTES];         /* the beginning of a token that began in an earlier piece */
};

/* many: any number of texts (none, too) with white space between them; objects and arrays need none. Else one text. */
void glue_json_init(struct glue_json *json, bool many);

/* The next piece, which stays the caller's, and has to stay until GLUE_JSON_MORE. Only at the beginning or after that. */
void glue_json_feed(struct glue_json *json, struct str piece);
/* There are no more pieces. At the beginning or after GLUE_JSON_MORE. */
void glue_json_finish(struct glue_json *json);

enum glue_json_event glue_json_next(struct glue_json *json);

/* Right after KEY: nothing is told of its value. Right after VALUE (of a scalar: until its SCALAR): nothing more is told of it,
 * not even its end. */
void glue_json_skip(struct glue_json *json);

/* Inside an object or array, which was that deep right after its VALUE (json->depth): nothing more is told of it but its CLOSE. */
void glue_json_leave(struct glue_json *json, uint32_t depth);

/* The piece ends here as far as the scanner is concerned. Returns what is left of it. Not inside a token. */
struct str glue_json_cut(struct glue_json *json);

/* After GLUE_JSON_BAD: ERR_INVALID or ERR_LIMIT with a text such as "no JSON at byte 17: ...". */
int glue_json_complain(const struct glue_json *json, struct err *err);

/* What a string token means, without quotes and escapes: a slice of the token, or of `scratch` (which is overwritten).
 * False: it has half a surrogate pair, and means no text. */
bool glue_json_string(struct str token, bool escaped, struct buf *scratch, struct str *value);

/* The escape at text[*at], a backslash, of a string that was scanned: the code point it means, or half a surrogate pair. Moves *at
 * behind it. */
uint32_t glue_json_unescape(struct str text, size_t *at);

/* As buf_put_json(), at the speed of a copy where there is nothing to escape. */
void glue_json_put_string(struct buf *out, struct str text);

/* Is it one number as JSON writes them, and nothing else? */
bool glue_json_is_number(struct str text);

#endif
