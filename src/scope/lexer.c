/* Text to tokens.
 *
 * Bare words are letters, digits, `_`, `-`, `.`; numbers and durations are words too, and the parser decides by place.
 * Anything else of UTF-8 goes in quotes, with JSON's escapes. White space separates; a `\` at the end of a line counts as
 * white space, so that commands can be pasted from shell scripts. Each refusal has its own fault, because "unexpected
 * character" helps nobody who has pasted a NUL or a curly quote.
 */
#include "base/check.h"
#include "scope/scope_int.h"

enum class {
	CLASS_OTHER, /* not allowed outside quotes */
	CLASS_SPACE,
	CLASS_WORD,
	CLASS_PUNCTUATION,
};

static const unsigned char classes[256] = {
	['\t'] = CLASS_SPACE,       ['\n'] = CLASS_SPACE,       ['\r'] = CLASS_SPACE,       [' '] = CLASS_SPACE,
	['0' ... '9'] = CLASS_WORD, ['A' ... 'Z'] = CLASS_WORD, ['a' ... 'z'] = CLASS_WORD, ['_'] = CLASS_WORD,
	['-'] = CLASS_WORD,         ['.'] = CLASS_WORD,         ['('] = CLASS_PUNCTUATION,  [')'] = CLASS_PUNCTUATION,
	['{'] = CLASS_PUNCTUATION,  ['}'] = CLASS_PUNCTUATION,  [':'] = CLASS_PUNCTUATION,  [','] = CLASS_PUNCTUATION,
	['/'] = CLASS_PUNCTUATION,  ['='] = CLASS_PUNCTUATION,  ['!'] = CLASS_PUNCTUATION,  ['%'] = CLASS_PUNCTUATION,
	['&'] = CLASS_PUNCTUATION,  ['|'] = CLASS_PUNCTUATION,  [';'] = CLASS_PUNCTUATION,
};

static const unsigned char punctuation[256] = {
	['('] = SCOPE_TOKEN_OPEN,      [')'] = SCOPE_TOKEN_CLOSE, ['{'] = SCOPE_TOKEN_LBRACE, ['}'] = SCOPE_TOKEN_RBRACE,
	[':'] = SCOPE_TOKEN_COLON,     [','] = SCOPE_TOKEN_COMMA, ['/'] = SCOPE_TOKEN_SLASH,  ['='] = SCOPE_TOKEN_EQUALS,
	['!'] = SCOPE_TOKEN_NOT,       ['%'] = SCOPE_TOKEN_SPAN,  ['&'] = SCOPE_TOKEN_ALL,    ['|'] = SCOPE_TOKEN_ANY,
	[';'] = SCOPE_TOKEN_OTHERWISE,
};

const char *scope_token_name(enum scope_token_kind kind)
{
	static const char *const names[] = {
		[SCOPE_TOKEN_END] = "end",     [SCOPE_TOKEN_WORD] = "word", [SCOPE_TOKEN_STRING] = "string",
		[SCOPE_TOKEN_OPEN] = "(",      [SCOPE_TOKEN_CLOSE] = ")",   [SCOPE_TOKEN_LBRACE] = "{",
		[SCOPE_TOKEN_RBRACE] = "}",    [SCOPE_TOKEN_COLON] = ":",   [SCOPE_TOKEN_COMMA] = ",",
		[SCOPE_TOKEN_SLASH] = "/",     [SCOPE_TOKEN_EQUALS] = "=",  [SCOPE_TOKEN_NOT] = "!",
		[SCOPE_TOKEN_SPAN] = "%",      [SCOPE_TOKEN_ALL] = "&",     [SCOPE_TOKEN_ANY] = "|",
		[SCOPE_TOKEN_OTHERWISE] = ";",
	};
	return names[kind];
}

bool scope_is_word(struct str name)
{
	for (size_t i = 0; i < name.length; i++)
		if (classes[(unsigned char)name.at[i]] != CLASS_WORD)
			return false;
	return name.length > 0;
}

uint32_t scope_lex_offset(const struct scope_lexer *lexer, uint32_t at)
{
	return lexer->origin ? lexer->origin[at] : at + lexer->shift;
}

static struct scope_place place_of(const struct scope_lexer *lexer, size_t from, size_t to)
{
	uint32_t offset = scope_lex_offset(lexer, (uint32_t)from);
	return (struct scope_place){offset, scope_lex_offset(lexer, (uint32_t)to) - offset};
}

/* ---- What does not belong there --------------------------------------------------------------------------------- */

static int refuse_control(struct scope_lexer *lexer, size_t at, size_t length, uint32_t c)
{
	struct scope_place place = place_of(lexer, at, at + length);
	int code = c == 0 ? scope_refuse(lexer->diag, SCOPE_FAULT_CONTROL_CHARACTER, place, "the text contains a NUL byte")
	                  : scope_refuse(lexer->diag, SCOPE_FAULT_CONTROL_CHARACTER, place,
	                                 "the text contains the control character U+%04X", c);
	return scope_hint(lexer->diag, code, "remove it; names and scopes are printable text");
}

static int refuse_utf8(struct scope_lexer *lexer, size_t at)
{
	int code = scope_refuse(lexer->diag, SCOPE_FAULT_INVALID_UTF8, place_of(lexer, at, at + 1),
	                        "byte 0x%02x is not valid UTF-8 here", (unsigned char)lexer->text.at[at]);
	return scope_hint(lexer->diag, code, "scopes are UTF-8 text; was this one saved in another encoding?");
}

/* The stretch of non-space, non-punctuation bytes around a stray character: what the user took for a name. */
static struct str run_around(struct str text, size_t at)
{
	size_t from = at, to = at;
	while (from > 0 && classes[(unsigned char)text.at[from - 1]] == CLASS_WORD)
		from--;
	while (to < text.length) {
		uint32_t c;
		size_t length = utf8_decode(str_make(text.at + to, text.length - to), &c);
		if (length == 0 || text_is_control(c) || (c < 0x80 && c != '@' && classes[c] != CLASS_WORD))
			break;
		to += length;
	}
	return str_make(text.at + from, to - from);
}

static int refuse_character(struct scope_lexer *lexer, size_t at)
{
	struct str text = lexer->text;
	unsigned char c = (unsigned char)text.at[at];
	uint32_t code_point;
	size_t length = utf8_decode(str_make(text.at + at, text.length - at), &code_point);
	if (length == 0)
		return refuse_utf8(lexer, at);
	if (text_is_control(code_point))
		return refuse_control(lexer, at, length, code_point);
	struct scope_place place = place_of(lexer, at, at + length);
	int code = scope_refuse(lexer->diag, SCOPE_FAULT_UNEXPECTED_CHARACTER, place, "unexpected character `%.*s`",
	                        (int)length, text.at + at);
	if (c == '\'' || code_point == 0x2018 || code_point == 0x2019 || code_point == 0x201c || code_point == 0x201d)
		return scope_hint(lexer->diag, code, "names are quoted with plain double quotes: \"DC 1\"");
	if (c == '[' || c == ']')
		return scope_hint(lexer->diag, code, "a list of sites is joined by an operator: \"Site1 & Site2\"");
	if (c == '+')
		return scope_hint(lexer->diag, code, "to replicate over two sites write `Site1 & Site2`");
	if (code_point >= 0x80 || c == '@') {
		struct str run = run_around(text, at);
		return scope_hint(lexer->diag, code, "quote names with such characters: \"%.*s%s\"", STR_FMT(text_shown(run)),
		                  text_ellipsis(run));
	}
	return scope_hint(lexer->diag, code, "bare names are made of letters, digits, `_`, `-` and `.`");
}

/* ---- Strings ---------------------------------------------------------------------------------------------------- */

/* The four digits of \uXXXX, or -1. */
static int32_t read_hex4(struct str text, size_t at)
{
	if (text.length - at < 4)
		return -1;
	int32_t value = 0;
	for (size_t i = 0; i < 4; i++) {
		int digit = str_hex_value(text.at[at + i]);
		if (digit < 0)
			return -1;
		value = value * 16 + digit;
	}
	return value;
}

/* Reads the escape at text[at] (a backslash), returns its length and what it stands for, or 0. */
static size_t read_escape(struct str text, size_t at, uint32_t *code_point)
{
	static const char simple[256] = {
		['"'] = '"', ['\\'] = '\\', ['/'] = '/', ['b'] = '\b', ['f'] = '\f', ['n'] = '\n', ['r'] = '\r', ['t'] = '\t'};
	if (at + 1 >= text.length)
		return 0;
	unsigned char c = (unsigned char)text.at[at + 1];
	if (simple[c]) {
		*code_point = (unsigned char)simple[c];
		return 2;
	}
	if (c != 'u')
		return 0;
	int32_t high = read_hex4(text, at + 2);
	if (high < 0 || (high >= 0xdc00 && high < 0xe000))
		return 0;
	if (high < 0xd800 || high >= 0xe000) {
		*code_point = (uint32_t)high;
		return 6;
	}
	if (text.length - at < 12 || text.at[at + 6] != '\\' || text.at[at + 7] != 'u')
		return 0;
	int32_t low = read_hex4(text, at + 8);
	if (low < 0xdc00 || low >= 0xe000)
		return 0;
	*code_point = 0x10000 + (((uint32_t)high - 0xd800) << 10) + ((uint32_t)low - 0xdc00);
	return 12;
}

static int refuse_escape(struct scope_lexer *lexer, size_t at)
{
	size_t end = at + 2 < lexer->text.length ? at + 2 : lexer->text.length;
	int code = scope_refuse(lexer->diag, SCOPE_FAULT_BAD_ESCAPE, place_of(lexer, at, end),
	                        "this is not an escape that a quoted name knows");
	return scope_hint(lexer->diag, code,
	                  "write \\\" for a quote, \\\\ for a backslash, \\u00e9 for a character by number");
}

/* From the byte after the opening quote to the closing one: checks all, and finds out whether there are escapes. */
static int scan_string(struct scope_lexer *lexer, size_t from, size_t *end, bool *escaped)
{
	struct str text = lexer->text;
	*escaped = false;
	for (size_t at = from; at < text.length;) {
		unsigned char c = (unsigned char)text.at[at];
		if (c == '"') {
			*end = at;
			return 0;
		}
		uint32_t code_point = c;
		size_t length = 1;
		if (c == '\\') {
			*escaped = true;
			length = read_escape(text, at, &code_point);
			if (length == 0)
				return refuse_escape(lexer, at);
		} else if (c >= 0x80) {
			length = utf8_decode(str_make(text.at + at, text.length - at), &code_point);
			if (length == 0)
				return refuse_utf8(lexer, at);
		}
		if (text_is_control(code_point))
			return refuse_control(lexer, at, length, code_point);
		at += length;
	}
	int code = scope_refuse(lexer->diag, SCOPE_FAULT_UNTERMINATED_STRING, place_of(lexer, from - 1, text.length),
	                        "this quoted name does not end");
	return scope_hint(lexer->diag, code, "close it with `\"`");
}

/* Resolves the escapes of a string that scan_string() accepted. */
static struct str unescape(struct arena *arena, struct str raw)
{
	char *out = arena_alloc(arena, raw.length, 1);
	size_t length = 0;
	for (size_t at = 0; at < raw.length;) {
		if (raw.at[at] != '\\') {
			out[length++] = raw.at[at++];
			continue;
		}
		uint32_t code_point;
		size_t escape = read_escape(raw, at, &code_point);
		CHECK(escape > 0);
		length += utf8_encode(code_point, out + length);
		at += escape;
	}
	return str_make(out, length);
}

static int lex_string(struct scope_lexer *lexer, size_t open, struct scope_token *token)
{
	size_t end = 0;
	bool escaped;
	int code = scan_string(lexer, open + 1, &end, &escaped);
	if (code)
		return code;
	struct str raw = str_make(lexer->text.at + open + 1, end - open - 1);
	struct scope_place place = place_of(lexer, open, end + 1);
	*token = (struct scope_token){SCOPE_TOKEN_STRING, place.offset, place.length,
	                              escaped ? unescape(lexer->arena, raw) : raw};
	lexer->at = (uint32_t)end + 1;
	if (token->text.length > 0)
		return 0;
	code = scope_refuse(lexer->diag, SCOPE_FAULT_EMPTY_NAME, place, "a name cannot be empty");
	return scope_hint(lexer->diag, code, "put the name of a site or service between the quotes");
}

const uint16_t *scope_lex_origins(const struct scope_lexer *lexer, const struct scope_token *token)
{
	CHECK(!lexer->origin && lexer->shift == 0);
	uint16_t *origin = arena_array(lexer->arena, uint16_t, token->text.length + 1);
	struct str raw = str_make(lexer->text.at + token->offset + 1, token->length - 2);
	size_t made = 0;
	for (size_t at = 0; at < raw.length;) {
		uint32_t code_point = 0;
		char bytes[4];
		size_t taken = raw.at[at] == '\\' ? read_escape(raw, at, &code_point) : 1;
		size_t length = raw.at[at] == '\\' ? utf8_encode(code_point, bytes) : 1;
		for (size_t i = 0; i < length; i++)
			origin[made++] = (uint16_t)(token->offset + 1 + at);
		at += taken;
	}
	CHECK(made == token->text.length);
	origin[made] = (uint16_t)(token->offset + token->length - 1);
	return origin;
}

/* ---- Tokens ----------------------------------------------------------------------------------------------------- */

/* Past white space and line continuations. */
static size_t skip_space(struct str text, size_t at)
{
	while (at < text.length) {
		if (classes[(unsigned char)text.at[at]] == CLASS_SPACE) {
			at++;
		} else if (text.at[at] == '\\' && at + 1 < text.length &&
		           (text.at[at + 1] == '\n' || text.at[at + 1] == '\r')) {
			at += 2;
		} else {
			break;
		}
	}
	return at;
}

int scope_lex(struct scope_lexer *lexer, struct scope_token *token)
{
	struct str text = lexer->text;
	size_t from = skip_space(text, lexer->at);
	if (from == text.length) {
		*token = (struct scope_token){SCOPE_TOKEN_END, scope_lex_offset(lexer, (uint32_t)from), 0, STR("")};
		lexer->at = (uint32_t)from;
		return 0;
	}
	unsigned char c = (unsigned char)text.at[from];
	if (c == '"')
		return lex_string(lexer, from, token);
	size_t to = from + 1;
	enum scope_token_kind kind = punctuation[c];
	if (classes[c] == CLASS_WORD) {
		kind = SCOPE_TOKEN_WORD;
		while (to < text.length && classes[(unsigned char)text.at[to]] == CLASS_WORD)
			to++;
	} else if (classes[c] != CLASS_PUNCTUATION) {
		return refuse_character(lexer, from);
	}
	struct scope_place place = place_of(lexer, from, to);
	*token = (struct scope_token){kind, place.offset, place.length, str_make(text.at + from, to - from)};
	lexer->at = (uint32_t)to;
	return 0;
}

int scope_tokens(struct arena *arena, struct str text, struct scope_token **tokens, uint32_t *count,
                 struct scope_diag *diag)
{
	if (text.length > LIMIT_SCOPE_TEXT_BYTES)
		return scope_refuse_length(diag, text);
	struct scope_token *list = arena_array(arena, struct scope_token, text.length + 1);
	struct scope_lexer lexer = {.arena = arena, .text = text, .diag = diag};
	for (*count = 0;; ++*count) {
		int code = scope_lex(&lexer, &list[*count]);
		if (code)
			return code;
		if (list[*count].kind == SCOPE_TOKEN_END)
			break;
	}
	*tokens = list;
	return 0;
}
