/* What the fuzz targets of scope-lang hold every answer against: places inside the text, output that a terminal can be
 * shown, JSON that a parser can read. A broken promise aborts, in every build. */
#ifndef FUZZ_SCOPE_FUZZ_H
#define FUZZ_SCOPE_FUZZ_H

#include "base/check.h"
#include "scope/scope_int.h"

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* Each reads one thing at *at, moves *at behind it, and says whether it was well-formed. No white space: ours has none. */
static bool json_value(struct str text, size_t *at, unsigned depth);

static bool json_is(struct str text, size_t *at, char wanted)
{
	if (*at >= text.length || text.at[*at] != wanted)
		return false;
	++*at;
	return true;
}

static bool json_escape(struct str text, size_t *at)
{
	if (*at >= text.length)
		return false;
	char c = text.at[(*at)++];
	if (c != 'u')
		return strchr("\"\\/bfnrt", c) != NULL && c != '\0';
	for (int i = 0; i < 4; i++) {
		if (*at >= text.length || text.at[*at] == '\0' || !strchr("0123456789abcdefABCDEF", text.at[*at]))
			return false;
		++*at;
	}
	return true;
}

static bool json_string(struct str text, size_t *at)
{
	if (!json_is(text, at, '"'))
		return false;
	while (!json_is(text, at, '"')) {
		uint32_t code_point;
		size_t length = utf8_decode(str_make(text.at + *at, text.length - *at), &code_point);
		if (length == 0 || code_point < 0x20)
			return false;
		*at += length;
		if (code_point == '\\' && !json_escape(text, at))
			return false;
	}
	return true;
}

static bool json_number(struct str text, size_t *at)
{
	size_t from = *at;
	while (*at < text.length && text.at[*at] >= '0' && text.at[*at] <= '9')
		++*at;
	return *at > from && (*at == from + 1 || text.at[from] != '0');
}

static bool json_list(struct str text, size_t *at, unsigned depth, char end, bool keys)
{
	++*at;
	if (json_is(text, at, end))
		return true;
	do {
		if (keys && (!json_string(text, at) || !json_is(text, at, ':')))
			return false;
		if (!json_value(text, at, depth + 1))
			return false;
	} while (json_is(text, at, ','));
	return json_is(text, at, end);
}

static bool json_true(struct str text, size_t *at)
{
	return json_is(text, at, 't') && json_is(text, at, 'r') && json_is(text, at, 'u') && json_is(text, at, 'e');
}

static bool json_value(struct str text, size_t *at, unsigned depth)
{
	if (*at >= text.length || depth > 4 * LIMIT_SCOPE_NESTING)
		return false;
	switch (text.at[*at]) {
	case '{': return json_list(text, at, depth, '}', true);
	case '[': return json_list(text, at, depth, ']', false);
	case '"': return json_string(text, at);
	case 't': return json_true(text, at);
	default: return json_number(text, at);
	}
}

static inline bool json_is_well_formed(struct str text)
{
	size_t at = 0;
	return json_value(text, &at, 0) && at == text.length;
}

/* ---- Diagnostics ------------------------------------------------------------------------------------------------ */

/* Nothing that moves the cursor, reorders or breaks a line, but for the line feeds and colours that we put there. */
static inline bool is_printable(struct str text, bool colour)
{
	while (text.length > 0) {
		uint32_t c;
		size_t length = utf8_decode(text, &c);
		if (length == 0)
			return false;
		bool control = (c < 0x20 && c != '\n' && !(c == 0x1b && colour)) || (c >= 0x7f && c < 0xa0);
		if (control || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069))
			return false;
		text = str_make(text.at + length, text.length - length);
	}
	return true;
}

/* A refusal has its own code, fault, message, and a place inside the text; and it can be shown. */
static inline void check_diag(struct str text, int code, const struct scope_diag *diag)
{
	unsigned line, column;
	CHECK(code < 0);
	CHECK(diag->fault > SCOPE_FAULT_NONE && diag->fault < SCOPE_FAULT_COUNT);
	CHECK(diag->offset <= text.length && diag->length <= text.length - diag->offset);
	CHECK(diag->message[0] != '\0' && is_printable(str_of(diag->message), false));
	CHECK(is_printable(str_of(diag->hint), false));
	scope_diag_position(text, diag, &line, &column);
	CHECK(line >= 1 && column >= 1);
	struct buf out = {0};
	for (int colour = 0; colour <= 1; colour++) {
		scope_diag_render(&out, text, diag, colour);
		CHECK(is_printable(buf_str(&out), colour));
		buf_clear(&out);
	}
	scope_diag_json(&out, diag);
	CHECK(json_is_well_formed(buf_str(&out)));
	buf_free(&out);
}

#endif
