#include "glue/json.h"

#include "base/check.h"
#include "base/text.h"

/* Where the scanner is. Between tokens: what may come next. */
enum state {
	TEXT,          /* a value, or the end of all */
	GAP,           /* after a text that was no object or array: white space, then TEXT */
	DONE,          /* the one text has ended: white space */
	VALUE,         /* a value: after a colon, or after a comma in an array */
	FIRST_ELEMENT, /* a value or `]` */
	FIRST_KEY,     /* a key or `}` */
	KEY,           /* a key: after a comma */
	COLON,
	AFTER_ELEMENT, /* `,` or `]` */
	AFTER_MEMBER,  /* `,` or `}` */
	/* Inside tokens; json->sub says where. */
	STRING,
	NUMBER,
	LITERAL,
	/* Nothing comes any more. */
	ENDED,
	FAILED,
};

/* Inside a string. */
enum {
	PLAIN,
	ESCAPE, /* after a backslash */
	HEX_1,
	HEX_2,
	HEX_3,
	HEX_4, /* after \u: which digit comes */
	UTF8_1,
	UTF8_2,
	UTF8_3, /* so many bytes of the sequence are to come */
};

/* Inside a number. */
enum { SIGN, ZERO, WHOLE, DOT, FRACTION, E, E_SIGN, EXPONENT, NUMBER_STATES, STOP = NUMBER_STATES };

/* ---- Classes of bytes -------------------------------------------------------------------------------------------- */

static const bool is_space[256] = {[' '] = true, ['\t'] = true, ['\n'] = true, ['\r'] = true};

/* What ends a run of plain characters of a string. */
static const bool is_special[256] = {[0 ... 0x1f] = true, ['"'] = true, ['\\'] = true, [0x80 ... 0xff] = true};

static const char *skip_space(const char *at, const char *end)
{
	while (at < end && is_space[(unsigned char)*at])
		at++;
	return at;
}

/* The first special byte, or `end`. Eight bytes at a time: subtracting one from each byte of a word that has become 0
 * where it equals what is looked for borrows into its top bit. A borrow runs into the bytes above it, never below, so the
 * lowest one found is true. */
static inline const char *skip_plain(const char *at, const char *end)
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
	const uint64_t ones = UINT64_C(0x0101010101010101);
	while (end - at >= 8) {
		uint64_t word;
		memcpy(&word, at, sizeof(word));
		uint64_t found =
			(word | (word - ones * 0x20) | ((word ^ ones * '"') - ones) | ((word ^ ones * '\\') - ones)) & ones * 0x80;
		if (found)
			return at + __builtin_ctzll(found) / 8;
		at += 8;
	}
#endif
	while (at < end && !is_special[(unsigned char)*at])
		at++;
	return at;
}

/* ---- Ends and failures ------------------------------------------------------------------------------------------- */

static enum glue_json_event fail(struct glue_json *json, const char *at, const char *expected)
{
	json->at = at;
	json->expected = expected;
	json->state = FAILED;
	return GLUE_JSON_BAD;
}

static bool in_object(const struct glue_json *json)
{
	uint32_t level = json->depth - 1;
	return json->objects[level / 64] >> level % 64 & 1;
}

/* A value has ended; json->depth is its own. */
static void after_value(struct glue_json *json, bool scalar)
{
	if (json->depth > 0)
		json->state = in_object(json) ? AFTER_MEMBER : AFTER_ELEMENT;
	else if (!json->many)
		json->state = DONE;
	else
		json->state = scalar ? GAP : TEXT;
}

/* Says whether the end of a value is to be told. */
static bool loud(struct glue_json *json)
{
	if (!json->quiet)
		return true;
	json->quiet = json->depth != json->quiet_depth;
	return !json->quiet && json->tells_end;
}

/* ---- Tokens ------------------------------------------------------------------------------------------------------ */

static void token_begin(struct glue_json *json, const char *at)
{
	json->token_from = at;
	json->token_at = json->piece_at + (size_t)(at - json->piece);
	json->kept_length = 0;
	json->escaped = false;
	json->overlong = false;
}

/* Keeps what belongs to the token of this piece, up to `end`. */
static void token_keep(struct glue_json *json, const char *end)
{
	size_t length = (size_t)(end - json->token_from);
	json->overlong = json->overlong || length > sizeof(json->kept) - json->kept_length;
	if (!json->overlong && length > 0) {
		memcpy(json->kept + json->kept_length, json->token_from, length);
		json->kept_length += (uint32_t)length;
	}
	json->token_from = end;
}

static void token_end(struct glue_json *json, const char *end)
{
	if (__builtin_expect(json->kept_length == 0 && !json->overlong, 1)) {
		json->token = str_make(json->token_from, (size_t)(end - json->token_from));
		return;
	}
	token_keep(json, end);
	json->token = json->overlong ? STR("") : str_make(json->kept, json->kept_length);
}

/* ---- Strings ----------------------------------------------------------------------------------------------------- */

/* The Unicode Standard, table 3-7: after some lead bytes the second byte has a narrower range. */
static bool utf8_lead(struct glue_json *json, unsigned char c)
{
	json->low = c == 0xe0 ? 0xa0 : c == 0xf0 ? 0x90 : 0x80;
	json->high = c == 0xed ? 0x9f : c == 0xf4 ? 0x8f : 0xbf;
	json->sub = c < 0xe0 ? UTF8_1 : c < 0xf0 ? UTF8_2 : UTF8_3;
	return c >= 0xc2 && c <= 0xf4;
}

/* One byte inside an escape or a UTF-8 sequence. Returns what would have been right, or NULL. */
static const char *string_step(struct glue_json *json, unsigned char c)
{
	switch (json->sub) {
	case ESCAPE:
		json->sub = c == 'u' ? HEX_1 : PLAIN;
		return c != '\0' && strchr("\"\\/bfnrtu", c) ? NULL : "one of \" \\ / b f n r t u after a backslash";
	case HEX_1:
	case HEX_2:
	case HEX_3:
	case HEX_4:
		json->sub = json->sub == HEX_4 ? PLAIN : (uint8_t)(json->sub + 1);
		return str_hex_value((char)c) >= 0 ? NULL : "four hexadecimal digits after \\u";
	default:
		if (c < json->low || c > json->high)
			return "UTF-8";
		json->low = 0x80;
		json->high = 0xbf;
		json->sub = json->sub == UTF8_1 ? PLAIN : (uint8_t)(json->sub - 1);
		return NULL;
	}
}

/* Goes on inside a string. Returns the place behind its closing quote; NULL: the piece has ended, or it has failed. */
static const char *scan_string(struct glue_json *json, const char *at)
{
	const char *end = json->end;
	for (;;) {
		if (__builtin_expect(json->sub == PLAIN, 1)) {
			at = skip_plain(at, end);
			if (at == end)
				return NULL;
			unsigned char c = (unsigned char)*at;
			if (c == '"')
				return at + 1;
			uint32_t ignored;
			size_t sequence = c >= 0x80 && end - at >= 4 ? utf8_decode(str_make(at, 4), &ignored) : 0;
			if (sequence > 0) {
				at += sequence;
				continue;
			}
			if (c == '\\') {
				json->sub = ESCAPE;
				json->escaped = true;
			} else if (c < 0x20 || !utf8_lead(json, c)) {
				fail(json, at, c < 0x20 ? "an escape in place of a control character" : "UTF-8");
				return NULL;
			}
			at++;
		}
		while (json->sub != PLAIN) {
			if (at == end)
				return NULL;
			const char *expected = string_step(json, (unsigned char)*at);
			if (expected) {
				fail(json, at, expected);
				return NULL;
			}
			at++;
		}
	}
}

/* ---- Numbers, true, false, null ---------------------------------------------------------------------------------- */

enum { OTHER, NAUGHT, DIGIT, POINT, LETTER_E, PLUS, MINUS, CLASSES };

static const uint8_t number_class[256] = {['0'] = NAUGHT,   ['1' ... '9'] = DIGIT, ['.'] = POINT, ['e'] = LETTER_E,
                                          ['E'] = LETTER_E, ['+'] = PLUS,          ['-'] = MINUS};

static const uint8_t number_next[NUMBER_STATES][CLASSES] = {
	[SIGN] = {STOP, ZERO, WHOLE, STOP, STOP, STOP, STOP},
	[ZERO] = {STOP, STOP, STOP, DOT, E, STOP, STOP},
	[WHOLE] = {STOP, WHOLE, WHOLE, DOT, E, STOP, STOP},
	[DOT] = {STOP, FRACTION, FRACTION, STOP, STOP, STOP, STOP},
	[FRACTION] = {STOP, FRACTION, FRACTION, STOP, E, STOP, STOP},
	[E] = {STOP, EXPONENT, EXPONENT, STOP, STOP, E_SIGN, E_SIGN},
	[E_SIGN] = {STOP, EXPONENT, EXPONENT, STOP, STOP, STOP, STOP},
	[EXPONENT] = {STOP, EXPONENT, EXPONENT, STOP, STOP, STOP, STOP},
};

static bool is_whole_number(uint8_t sub)
{
	return sub == ZERO || sub == WHOLE || sub == FRACTION || sub == EXPONENT;
}

/* Goes on inside a number. Returns the place behind it; NULL: the piece has ended, or it has failed. */
static const char *scan_number(struct glue_json *json, const char *at)
{
	const char *end = json->end;
	uint8_t sub = json->sub;
	for (; at < end; at++) {
		uint8_t next = number_next[sub][number_class[(unsigned char)*at]];
		if (next == STOP) {
			if (is_whole_number(sub))
				return at;
			fail(json, at, "a digit");
			return NULL;
		}
		sub = next;
	}
	json->sub = sub;
	return NULL;
}

static const char *scan_literal(struct glue_json *json, const char *at)
{
	const char *end = json->end;
	for (; *json->literal != '\0'; at++, json->literal++) {
		if (at == end)
			return NULL;
		if (*at != *json->literal) {
			fail(json, at, "true, false or null");
			return NULL;
		}
	}
	return at;
}

/* ---- Between tokens ---------------------------------------------------------------------------------------------- */

static const char *expected_here(const struct glue_json *json)
{
	static const char *const texts[] = {
		[TEXT] = "a value",
		[GAP] = "white space before another text",
		[DONE] = "nothing more",
		[VALUE] = "a value",
		[FIRST_ELEMENT] = "a value or `]`",
		[FIRST_KEY] = "a key in quotes or `}`",
		[KEY] = "a key in quotes",
		[COLON] = "`:`",
		[AFTER_ELEMENT] = "`,` or `]`",
		[AFTER_MEMBER] = "`,` or `}`",
		[STRING] = "the rest of a string",
		[NUMBER] = "a digit",
		[LITERAL] = "true, false or null",
	};
	return texts[json->state];
}

/* The piece is used up, or the text has failed. */
static enum glue_json_event stop(struct glue_json *json)
{
	if (json->state == FAILED)
		return GLUE_JSON_BAD;
	json->at = json->end;
	if (!json->finished) {
		if (!json->quiet && (json->state == STRING || json->state == NUMBER || json->state == LITERAL))
			token_keep(json, json->end);
		return GLUE_JSON_MORE;
	}
	if (json->state == NUMBER && is_whole_number(json->sub)) { /* only the end says that it has no more digits */
		after_value(json, true);
		if (loud(json)) {
			token_end(json, json->end);
			return GLUE_JSON_SCALAR;
		}
	}
	if (json->state == GAP || json->state == DONE || (json->state == TEXT && json->many))
		json->state = ENDED;
	return json->state == ENDED ? GLUE_JSON_END : fail(json, json->end, expected_here(json));
}

/* Begins the value at `at`. Returns the place where to go on; NULL: it has failed. Sets json->kind. */
static const char *value_begin(struct glue_json *json, const char *at)
{
	static const struct {
		uint8_t kind, state, sub;
	} begins[256] = {
		['{'] = {GLUE_JSON_OBJECT, FIRST_KEY, 0},  ['['] = {GLUE_JSON_ARRAY, FIRST_ELEMENT, 0},
		['"'] = {GLUE_JSON_STRING, STRING, PLAIN}, ['-'] = {GLUE_JSON_NUMBER, NUMBER, SIGN},
		['0'] = {GLUE_JSON_NUMBER, NUMBER, ZERO},  ['1' ... '9'] = {GLUE_JSON_NUMBER, NUMBER, WHOLE},
		['t'] = {GLUE_JSON_LITERAL, LITERAL, 0},   ['f'] = {GLUE_JSON_LITERAL, LITERAL, 0},
		['n'] = {GLUE_JSON_LITERAL, LITERAL, 0},
	};
	unsigned char c = (unsigned char)*at;
	if (begins[c].state == TEXT) {
		fail(json, at, expected_here(json));
		return NULL;
	}
	json->kind = (enum glue_json_kind)begins[c].kind;
	json->value_depth = json->depth;
	if (!json->quiet) {
		token_begin(json, at);
		json->in_object = json->depth > 0 && in_object(json);
		json->in_array = json->depth > 0 && !json->in_object;
	}
	if (json->kind == GLUE_JSON_OBJECT || json->kind == GLUE_JSON_ARRAY) {
		uint64_t bit = UINT64_C(1) << json->depth % 64;
		if (json->depth == LIMIT_GLUE_NESTING) {
			fail(json, at, NULL);
			return NULL;
		}
		uint64_t *objects = &json->objects[json->depth++ / 64];
		*objects = json->kind == GLUE_JSON_OBJECT ? *objects | bit : *objects & ~bit;
	} else if (json->kind == GLUE_JSON_LITERAL) {
		json->literal = c == 't' ? "rue" : c == 'f' ? "alse" : "ull";
	} else {
		json->is_key = false;
	}
	json->sub = begins[c].sub;
	json->state = begins[c].state;
	return at + 1;
}

/* An object or array ends at json->at. */
static enum glue_json_event close_here(struct glue_json *json, bool *told)
{
	json->at++;
	json->depth--;
	after_value(json, false);
	*told = loud(json);
	return GLUE_JSON_CLOSE;
}

/* One step between tokens, at a byte that is no white space: told says whether its event is to be told. */
static inline enum glue_json_event step(struct glue_json *json, bool *told)
{
	const char *at = json->at;
	char c = *at;
	*told = false;
	switch (json->state) {
	case COLON:
		if (c != ':')
			break;
		json->state = VALUE;
		json->at++;
		return GLUE_JSON_MORE;
	case AFTER_MEMBER:
		if (c == '}')
			return close_here(json, told);
		if (c != ',')
			break;
		json->state = KEY;
		json->at++;
		return GLUE_JSON_MORE;
	case AFTER_ELEMENT:
		if (c == ']')
			return close_here(json, told);
		if (c != ',')
			break;
		json->state = VALUE;
		json->at++;
		return GLUE_JSON_MORE;
	case FIRST_KEY:
	case KEY:
		if (c == '}' && json->state == FIRST_KEY)
			return close_here(json, told);
		if (c != '"')
			break;
		if (!json->quiet)
			token_begin(json, at);
		json->is_key = true;
		json->sub = PLAIN;
		json->state = STRING;
		json->at++;
		return GLUE_JSON_MORE;
	case FIRST_ELEMENT:
		if (c == ']')
			return close_here(json, told);
		__attribute__((fallthrough));
	case VALUE:
	case TEXT:
		at = value_begin(json, at);
		if (!at)
			break;
		json->at = at;
		*told = !json->quiet;
		return GLUE_JSON_VALUE;
	default: /* GAP, DONE */ break;
	}
	*told = true;
	return json->state == FAILED ? GLUE_JSON_BAD : fail(json, at, expected_here(json));
}

/* The token that we are in ends, at json->at. */
static inline bool end_token(struct glue_json *json, enum glue_json_event *event)
{
	if (json->state == STRING && json->is_key) {
		json->state = COLON;
		json->value_depth = json->depth;
		*event = GLUE_JSON_KEY;
		if (json->quiet)
			return false;
	} else {
		after_value(json, true);
		*event = GLUE_JSON_SCALAR;
		if (!loud(json))
			return false;
	}
	token_end(json, json->at);
	return true;
}

enum glue_json_event glue_json_next(struct glue_json *json)
{
	for (;;) {
		const char *at = json->at;
		enum glue_json_event event;
		bool told;
		switch (json->state) {
		case STRING: at = scan_string(json, at); break;
		case NUMBER: at = scan_number(json, at); break;
		case LITERAL: at = scan_literal(json, at); break;
		case ENDED: return GLUE_JSON_END;
		case FAILED: return GLUE_JSON_BAD;
		default:
			json->at = skip_space(at, json->end);
			if (json->state == GAP && json->at > at)
				json->state = TEXT;
			if (json->at == json->end)
				return stop(json);
			event = step(json, &told);
			if (told)
				return event;
			continue;
		}
		if (!at)
			return stop(json);
		json->at = at;
		if (end_token(json, &event))
			return event;
	}
}

/* ---- The rest ---------------------------------------------------------------------------------------------------- */

void glue_json_init(struct glue_json *json, bool many)
{
	memset(json, 0, offsetof(struct glue_json, kept));
	json->many = many;
	glue_json_feed(json, STR(""));
}

void glue_json_feed(struct glue_json *json, struct str piece)
{
	CHECK(json->at == json->end && !json->finished);
	json->piece_at += (size_t)(json->end - json->piece);
	json->piece = piece.length > 0 ? piece.at : "";
	json->at = json->piece;
	json->end = json->piece + piece.length;
	json->token_from = json->piece;
}

void glue_json_finish(struct glue_json *json)
{
	glue_json_feed(json, STR(""));
	json->finished = true;
}

void glue_json_skip(struct glue_json *json)
{
	json->quiet = true;
	json->tells_end = false;
	json->quiet_depth = json->value_depth;
}

void glue_json_leave(struct glue_json *json, uint32_t depth)
{
	CHECK(depth > 0 && depth <= json->depth);
	json->quiet = json->tells_end = true;
	json->quiet_depth = depth - 1;
}

struct str glue_json_cut(struct glue_json *json)
{
	struct str rest = str_make(json->at, (size_t)(json->end - json->at));
	json->end = json->at;
	return rest;
}

int glue_json_complain(const struct glue_json *json, struct err *err)
{
	CHECK(json->state == FAILED);
	unsigned long long place = json->piece_at + (size_t)(json->at - json->piece);
	if (!json->expected)
		return err_set(err, ERR_LIMIT, "JSON at byte %llu is nested deeper than %d", place, LIMIT_GLUE_NESTING);
	if (json->at == json->end)
		return err_set(err, ERR_INVALID, "no JSON: it ends at byte %llu, where there should be %s", place,
		               json->expected);
	unsigned char c = (unsigned char)*json->at;
	if (c > 0x20 && c < 0x7f)
		return err_set(err, ERR_INVALID, "no JSON at byte %llu: there is `%c`, and should be %s", place, c,
		               json->expected);
	return err_set(err, ERR_INVALID, "no JSON at byte %llu: there is 0x%02x, and should be %s", place, c,
	               json->expected);
}

bool glue_json_is_number(struct str text)
{
	uint8_t sub = SIGN;
	size_t i = text.length > 0 && text.at[0] == '-' ? 1 : 0;
	for (; i < text.length && sub != STOP; i++)
		sub = number_next[sub][number_class[(unsigned char)text.at[i]]];
	return sub != STOP && is_whole_number(sub);
}

void glue_json_put_string(struct buf *out, struct str text)
{
	const char *end = text.at + text.length;
	if (skip_plain(text.at, end) != end) {
		buf_put_json(out, text);
		return;
	}
	buf_put_char(out, '"');
	buf_put(out, text);
	buf_put_char(out, '"');
}

/* The four digits at `at`. */
static uint32_t hex4(const char *at)
{
	uint32_t value = 0;
	for (int i = 0; i < 4; i++)
		value = value << 4 | (uint32_t)str_hex_value(at[i]);
	return value;
}

uint32_t glue_json_unescape(struct str text, size_t *at)
{
	static const char letters[] = "\"\\/bfnrt", meanings[] = "\"\\/\b\f\n\r\t";
	char letter = text.at[*at + 1];
	*at += 2;
	if (letter != 'u')
		return (unsigned char)meanings[strchr(letters, letter) - letters];
	uint32_t unit = hex4(text.at + *at);
	*at += 4;
	if (unit >= 0xd800 && unit <= 0xdbff && text.length - *at >= 6 && text.at[*at] == '\\' && text.at[*at + 1] == 'u') {
		uint32_t low = hex4(text.at + *at + 2);
		if (low >= 0xdc00 && low <= 0xdfff) {
			*at += 6;
			return 0x10000 + ((unit - 0xd800) << 10 | (low - 0xdc00));
		}
	}
	return unit;
}

bool glue_json_string(struct str token, bool escaped, struct buf *scratch, struct str *value)
{
	CHECK(token.length >= 2);
	struct str text = str_make(token.at + 1, token.length - 2);
	*value = text;
	if (!escaped)
		return true;
	buf_clear(scratch);
	for (size_t at = 0; at < text.length;) {
		const char *backslash = memchr(text.at + at, '\\', text.length - at);
		size_t run = (backslash ? (size_t)(backslash - text.at) : text.length) - at;
		buf_put(scratch, str_make(text.at + at, run));
		at += run;
		if (backslash) {
			char bytes[4];
			size_t length = utf8_encode(glue_json_unescape(text, &at), bytes);
			if (length == 0)
				return false;
			buf_put(scratch, str_make(bytes, length));
		}
	}
	*value = buf_str(scratch);
	return true;
}
