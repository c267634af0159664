/* The format is logfmt, with the escapes of JSON inside quotes: that is what readers of logfmt understand. */
#include "base/log.h"

#include "base/check.h"
#include "base/limits.h"

#include <inttypes.h>
#include <stdio.h>

enum {
	/* What a sink may add. The whole stays within PIPE_BUF, so that lines written to a pipe do not mix. */
	SINK_BYTES = 32,
	LINE_BYTES = LIMIT_LOG_LINE_BYTES - SINK_BYTES,
};

struct line {
	size_t length;
	bool full; /* something did not fit: nothing follows it, or the line would mislead */
	char text[LINE_BYTES];
};

static bool has_room(struct line *line, size_t bytes)
{
	if (bytes > LINE_BYTES - line->length)
		line->full = true;
	return !line->full;
}

/* Appends a piece whole, if `spare` bytes stay free behind it, or not at all. */
static void put(struct line *line, struct str piece, size_t spare)
{
	if (!has_room(line, piece.length + spare))
		return;
	memcpy(line->text + line->length, piece.at, piece.length);
	line->length += piece.length;
}

/* Controls, and what moves or reorders text on a reader's screen: separators of lines, marks of direction. */
static bool is_unprintable(uint32_t code_point)
{
	return code_point < 0x20 || (code_point >= 0x7f && code_point <= 0x9f) || code_point == 0x200e ||
	       code_point == 0x200f || (code_point >= 0x2028 && code_point <= 0x202e) ||
	       (code_point >= 0x2066 && code_point <= 0x2069);
}

static bool needs_quotes(struct str value)
{
	for (size_t i = 0; i < value.length;) {
		uint32_t code_point;
		size_t bytes = utf8_decode(str_make(value.at + i, value.length - i), &code_point);
		if (bytes == 0 || is_unprintable(code_point) || code_point == ' ' || code_point == '"' || code_point == '=')
			return true;
		i += bytes;
	}
	return value.length == 0;
}

/* One valid character as it stands between quotes, the closing one of which has its place kept. */
static void put_character(struct line *line, struct str character, uint32_t code_point)
{
	char escape[16];
	switch (code_point) {
	case '"': put(line, STR("\\\""), 1); break;
	case '\\': put(line, STR("\\\\"), 1); break;
	case '\n': put(line, STR("\\n"), 1); break;
	case '\r': put(line, STR("\\r"), 1); break;
	case '\t': put(line, STR("\\t"), 1); break;
	default:
		if (is_unprintable(code_point)) {
			snprintf(escape, sizeof(escape), "\\u%04x", (unsigned)code_point);
			character = str_of(escape);
		}
		put(line, character, 1);
	}
}

static void put_quoted(struct line *line, struct str value)
{
	put(line, STR("\""), 1);
	for (size_t i = 0; i < value.length && !line->full;) {
		uint32_t code_point;
		size_t bytes = utf8_decode(str_make(value.at + i, value.length - i), &code_point);
		if (bytes == 0)
			put(line, STR("\\ufffd"), 1);
		else
			put_character(line, str_make(value.at + i, bytes), code_point);
		i += bytes > 0 ? bytes : 1;
	}
	line->text[line->length++] = '"';
}

/* False, and the line is full, if " key=" and `value_bytes` more do not fit. */
static bool put_key(struct line *line, const char *key, size_t value_bytes)
{
	struct str name = str_of(key);
	if (!has_room(line, 1 + name.length + 1 + value_bytes))
		return false;
	put(line, STR(" "), 0);
	put(line, name, 0);
	put(line, STR("="), 0);
	return true;
}

static void put_text(struct line *line, const char *key, struct str value)
{
	/* No more can fit, so no more is looked at. What remains still fills the line, as the key takes more than a cut
	 * sequence gives back. */
	value = utf8_truncate(value, LINE_BYTES);
	bool quoted = needs_quotes(value);
	if (!put_key(line, key, quoted ? 2 : 1))
		return;
	if (quoted) {
		put_quoted(line, value);
		return;
	}
	struct str fits = utf8_truncate(value, LINE_BYTES - line->length);
	put(line, fits, 0);
	line->full = fits.length < value.length;
}

/* A number is never cut: it would be another number. */
static void put_number(struct line *line, const char *key, int64_t number)
{
	char digits[24];
	snprintf(digits, sizeof(digits), "%" PRId64, number);
	if (put_key(line, key, strlen(digits)))
		put(line, str_of(digits), 0);
}

void log_write(const struct log *log, enum log_level level, const char *message, const struct log_field *fields)
{
	if (level > log->level)
		return;
	struct line line;
	line.length = 0;
	line.full = false;
	put(&line, STR("level="), 0);
	put(&line, str_of(log_level_name(level)), 0);
	put_text(&line, "msg", str_of(message));
	for (const struct log_field *field = fields; field->kind != LOG_KIND_END; field++) {
		if (field->kind == LOG_KIND_INT)
			put_number(&line, field->key, field->number);
		else
			put_text(&line, field->key, field->text);
	}
	log->sink.write(log->sink.context, level, str_make(line.text, line.length));
}

static const char *const level_names[] = {"error", "warn", "info", "debug"};
enum { LEVELS_COUNT = sizeof(level_names) / sizeof(level_names[0]) };

const char *log_level_name(enum log_level level)
{
	CHECK((unsigned)level < LEVELS_COUNT);
	return level_names[level];
}
