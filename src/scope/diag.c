/* How refusals are made and shown. */
#include "base/check.h"
#include "scope/scope_int.h"

#include <stdio.h>

static const struct {
	const char *name;
	int code;
} faults[SCOPE_FAULT_COUNT] = {
	[SCOPE_FAULT_NONE] = {"none", 0},
	[SCOPE_FAULT_EMPTY] = {"empty", ERR_INVALID},
	[SCOPE_FAULT_TOO_LONG] = {"too-long", ERR_LIMIT},
	[SCOPE_FAULT_INVALID_UTF8] = {"invalid-utf8", ERR_INVALID},
	[SCOPE_FAULT_CONTROL_CHARACTER] = {"control-character", ERR_INVALID},
	[SCOPE_FAULT_UNEXPECTED_CHARACTER] = {"unexpected-character", ERR_INVALID},
	[SCOPE_FAULT_UNTERMINATED_STRING] = {"unterminated-string", ERR_INVALID},
	[SCOPE_FAULT_BAD_ESCAPE] = {"bad-escape", ERR_INVALID},
	[SCOPE_FAULT_EMPTY_NAME] = {"empty-name", ERR_INVALID},
	[SCOPE_FAULT_SYNTAX] = {"syntax", ERR_INVALID},
	[SCOPE_FAULT_TOO_DEEP] = {"too-deep", ERR_LIMIT},
	[SCOPE_FAULT_TOO_MANY_SITES] = {"too-many-sites", ERR_LIMIT},
	[SCOPE_FAULT_TOO_MANY_CALLS] = {"too-many-calls", ERR_LIMIT},
	[SCOPE_FAULT_TOO_MANY_ENTRIES] = {"too-many-entries", ERR_LIMIT},
	[SCOPE_FAULT_DUPLICATE_SERVICE] = {"duplicate-service", ERR_INVALID},
	[SCOPE_FAULT_RESERVED_NAME] = {"reserved-name", ERR_INVALID},
	[SCOPE_FAULT_NOT_A_SITE] = {"not-a-site", ERR_INVALID},
	[SCOPE_FAULT_UNKNOWN_FUNCTION] = {"unknown-function", ERR_INVALID},
	[SCOPE_FAULT_ARGUMENT_COUNT] = {"argument-count", ERR_INVALID},
	[SCOPE_FAULT_ARGUMENT_KIND] = {"argument-kind", ERR_INVALID},
	[SCOPE_FAULT_NUMBER_RANGE] = {"number-range", ERR_LIMIT},
	[SCOPE_FAULT_UNKNOWN_UNIT] = {"unknown-unit", ERR_INVALID},
	[SCOPE_FAULT_NO_MEANING] = {"no-meaning", ERR_INVALID},
	[SCOPE_FAULT_SAME_SITE_TWICE] = {"same-site-twice", ERR_INVALID},
	[SCOPE_FAULT_MIXED_CONSISTENCY] = {"mixed-consistency", ERR_INVALID},
	[SCOPE_FAULT_AMBIGUOUS_SERVICE] = {"ambiguous-service", ERR_INVALID},
	[SCOPE_FAULT_UNKNOWN_SITE] = {"unknown-site", ERR_NOT_FOUND},
	[SCOPE_FAULT_UNKNOWN_SERVICE] = {"unknown-service", ERR_NOT_FOUND},
	[SCOPE_FAULT_NO_SITE_LEFT] = {"no-site-left", ERR_NOT_FOUND},
	[SCOPE_FAULT_VERSION_MISMATCH] = {"version-mismatch", ERR_CONFLICT},
};

const char *scope_fault_name(enum scope_fault fault)
{
	CHECK(fault < SCOPE_FAULT_COUNT);
	return faults[fault].name;
}

/* vsnprintf, but a text that does not fit ends in an ellipsis and never inside a UTF-8 sequence. */
__attribute__((format(printf, 2, 0))) static void format_text(char *out, const char *format, va_list arguments)
{
	int wanted = vsnprintf(out, LIMIT_ERROR_TEXT_BYTES, format, arguments);
	CHECK(wanted >= 0);
	if (wanted < LIMIT_ERROR_TEXT_BYTES)
		return;
	struct str kept = utf8_truncate(str_of(out), LIMIT_ERROR_TEXT_BYTES - sizeof("…"));
	memcpy(out + kept.length, "…", sizeof("…"));
}

int scope_refuse(struct scope_diag *diag, enum scope_fault fault, struct scope_place place, const char *format, ...)
{
	diag->fault = fault;
	diag->offset = place.offset;
	diag->length = place.length;
	diag->hint[0] = '\0';
	va_list arguments;
	va_start(arguments, format);
	format_text(diag->message, format, arguments);
	va_end(arguments);
	return faults[fault].code;
}

int scope_hint(struct scope_diag *diag, int code, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	format_text(diag->hint, format, arguments);
	va_end(arguments);
	return code;
}

int scope_refuse_length(struct scope_diag *diag, struct str text)
{
	struct scope_place place = {LIMIT_SCOPE_TEXT_BYTES, (uint32_t)(text.length - LIMIT_SCOPE_TEXT_BYTES)};
	int code = scope_refuse(diag, SCOPE_FAULT_TOO_LONG, place, "the scope is longer than the limit of %d bytes",
	                        LIMIT_SCOPE_TEXT_BYTES);
	return scope_hint(diag, code, "select the sites by a function instead: all(), nearest(3), tagged(region=west)");
}

void scope_warn(struct scope_warnings *warnings, const char *format, ...)
{
	if (warnings->count >= LIMIT_SCOPE_WARNINGS)
		return;
	if (!warnings->list)
		warnings->list = arena_array(warnings->arena, struct str, LIMIT_SCOPE_WARNINGS);
	char text[LIMIT_ERROR_TEXT_BYTES];
	va_list arguments;
	va_start(arguments, format);
	format_text(text, format, arguments);
	va_end(arguments);
	struct str made = str_of(text);
	for (uint32_t i = 0; i < warnings->count; i++)
		if (str_equal(warnings->list[i], made))
			return;
	made.at = arena_copy(warnings->arena, made.at, made.length);
	warnings->list[warnings->count++] = made;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------- */

/* The line of the text that a diagnostic points into. */
static struct str line_around(struct str text, uint32_t offset, unsigned *number)
{
	size_t start = 0;
	*number = 1;
	for (size_t i = 0; i < offset && i < text.length; i++) {
		if (text.at[i] == '\n') {
			start = i + 1;
			++*number;
		}
	}
	size_t end = start;
	while (end < text.length && text.at[end] != '\n')
		end++;
	return str_make(text.at + start, end - start);
}

void scope_diag_position(struct str text, const struct scope_diag *diag, unsigned *line, unsigned *column)
{
	struct str shown = line_around(text, diag->offset, line);
	size_t start = (size_t)(shown.at - text.at);
	*column = 1 + (unsigned)utf8_length(str_make(shown.at, diag->offset - start));
}

/* Copies a piece of the user's text such that it cannot disturb a terminal: one column per character. */
static void put_visible(struct buf *out, struct str text)
{
	while (text.length > 0) {
		uint32_t code_point;
		size_t length = utf8_decode(text, &code_point);
		if (length > 0 && code_point == '\t')
			buf_put_char(out, ' ');
		else if (length == 0 || text_is_control(code_point))
			buf_put(out, STR("\xef\xbf\xbd"));
		else
			buf_put(out, str_make(text.at, length));
		length = length ? length : 1;
		text = str_make(text.at + length, text.length - length);
	}
}

/* A long line is shown as a window around the place. */
struct window {
	struct str before; /* the place */
	struct str place;
	struct str after;
	bool cut_left;
	bool cut_right;
};

enum { WINDOW_BEFORE = 60, WINDOW_PLACE = 60, WINDOW_AFTER = 40 };

static bool utf8_continues(char c)
{
	return ((unsigned char)c & 0xc0) == 0x80;
}

static struct window window_make(struct str line, size_t from, size_t length)
{
	struct window w = {0};
	size_t to = from + length < line.length ? from + length : line.length;
	size_t start = from > WINDOW_BEFORE ? from - WINDOW_BEFORE : 0;
	while (start > 0 && start < from && utf8_continues(line.at[start]))
		start++;
	w.cut_left = start > 0;
	w.before = str_make(line.at + start, from - start);
	w.place = utf8_truncate(str_make(line.at + from, to - from), WINDOW_PLACE);
	bool whole = w.place.length == to - from;
	struct str rest = str_make(line.at + to, whole ? line.length - to : 0);
	w.after = utf8_truncate(rest, WINDOW_AFTER);
	w.cut_right = !whole || w.after.length < rest.length;
	return w;
}

void scope_diag_render(struct buf *out, struct str text, const struct scope_diag *diag, bool colour)
{
	const char *red = colour ? "\033[1;31m" : "", *cyan = colour ? "\033[36m" : "", *plain = colour ? "\033[0m" : "";
	unsigned line_number, column;
	scope_diag_position(text, diag, &line_number, &column);
	struct str line = line_around(text, diag->offset, &line_number);
	struct window w = window_make(line, diag->offset - (size_t)(line.at - text.at), diag->length);

	buf_printf(out, "%s%s%s (line %u, column %u)\n", red, diag->message, plain, line_number, column);
	buf_printf(out, "  %s%s%s", cyan, "|", plain);
	buf_put(out, w.cut_left ? STR(" …") : STR(" "));
	put_visible(out, w.before);
	put_visible(out, w.place);
	put_visible(out, w.after);
	buf_printf(out, "%s\n  %s|%s ", w.cut_right ? "…" : "", cyan, plain);
	size_t carets = utf8_length(w.place);
	buf_put_repeat(out, ' ', utf8_length(w.before) + (w.cut_left ? 1 : 0));
	buf_put(out, str_of(red));
	buf_put_repeat(out, '^', carets ? carets : 1);
	buf_printf(out, "%s\n", plain);
	if (diag->hint[0])
		buf_printf(out, "  %shint:%s %s\n", cyan, plain, diag->hint);
}

void scope_diag_json(struct buf *out, const struct scope_diag *diag)
{
	buf_put(out, STR("{\"type\":"));
	buf_put_json(out, str_of(scope_fault_name(diag->fault)));
	buf_put(out, STR(",\"message\":"));
	buf_put_json(out, str_of(diag->message));
	buf_printf(out, ",\"offset\":%u,\"length\":%u,\"hint\":", diag->offset, diag->length);
	buf_put_json(out, str_of(diag->hint));
	buf_put_char(out, '}');
}
