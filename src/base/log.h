/* Logging: one line per event, a message and key=value fields, filtered by level, handed to a sink.
 *
 *     log_event(log, LOG_WARN, "peer unreachable", LOG_STR("site", name), LOG_INT("attempts", 3));
 *     level=warn msg="peer unreachable" site=Site2 attempts=3
 *
 * Formatting is here and pure; where a line goes is the sink's affair: log_stderr.h for people and systemd's journal, a
 * buffer in tests. A value is quoted when it has to be, control characters never get through, and a line is cut at
 * LIMIT_LOG_LINE_BYTES.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/str.h"

enum log_level {
	LOG_ERROR, /* somebody has to do something */
	LOG_WARN,  /* it went wrong and was dealt with */
	LOG_INFO,  /* what an operator wants to see on a good day */
	LOG_DEBUG, /* for a developer */
};

struct log_sink {
	/* One line, without a newline at its end. */
	void (*write)(void *context, enum log_level level, struct str line);
	void *context;
};

struct log {
	_Atomic enum log_level level; /* what is less urgent than this is dropped; may be changed at any time */
	struct log_sink sink;
};

enum log_kind { LOG_KIND_END, LOG_KIND_STR, LOG_KIND_INT };

struct log_field {
	const char *key;
	enum log_kind kind;
	struct str text;
	int64_t number;
};

#define LOG_STR(k, v) ((struct log_field){.key = (k), .kind = LOG_KIND_STR, .text = (v)})
#define LOG_INT(k, v) ((struct log_field){.key = (k), .kind = LOG_KIND_INT, .number = (int64_t)(v)})

/* Writes one event. Use the macro. */
void log_write(const struct log *log, enum log_level level, const char *message, const struct log_field *fields);

#define log_event(log, level, ...) LOG_EVENT_((log), (level), __VA_ARGS__, (struct log_field){0})
#define LOG_EVENT_(log, level, message, ...)                                                                           \
	log_write((log), (level), (message), (const struct log_field[]){__VA_ARGS__})

/* "error", "warn", "info", "debug". */
const char *log_level_name(enum log_level level);

#endif
