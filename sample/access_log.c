#include "access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "disk.h"
#include "memory.h"
#include "server.h"

struct access_log {
	int fd;
};

struct access_log *access_log_open(const char *path)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	if (fd < 0) {
		fprintf(stderr, "cheops-sample: cannot write the access log %s: %s\n", path, strerror(errno));
		return NULL;
	}
	struct access_log *log = NEW(struct access_log);
	log->fd = fd;
	return log;
}

void access_log_close(struct access_log *log)
{
	if (log == NULL)
		return;
	close(log->fd);
	free(log);
}

/* Headers are bytes; what is not UTF-8 is shown as if it were Latin-1, so that no line is lost. */
static json_t *string_of(const char *bytes)
{
	json_t *text = json_string(bytes);
	if (text != NULL)
		return text;
	char *utf8 = need(malloc(2 * strlen(bytes) + 1));
	char *end = utf8;
	for (const char *at = bytes; *at != '\0'; at++) {
		unsigned char byte = (unsigned char)*at;
		if (byte >= 0x80)
			*end++ = (char)(0xc0 | byte >> 6);
		*end++ = (char)(byte < 0x80 ? byte : 0x80 | (byte & 0x3f));
	}
	*end = '\0';
	text = need(json_string(utf8));
	free(utf8);
	return text;
}

/* The member that has this name in whatever case, as header names go. */
static const char *same_name(json_t *headers, const char *name)
{
	const char *known;
	json_t *value;
	json_object_foreach(headers, known, value)
	{
		if (strcasecmp(known, name) == 0)
			return known;
	}
	return NULL;
}

static void add_header(void *context, const char *name, const char *value)
{
	json_t *headers = context;
	json_t *text = string_of(value);
	const char *known = same_name(headers, name);
	if (known == NULL) {
		json_object_set_new(headers, name, text);
		return;
	}
	json_t *before = json_object_get(headers, known);
	json_object_set_new(headers, known, json_sprintf("%s, %s", json_string_value(before), json_string_value(text)));
	json_decref(text);
}

void access_log_request(struct access_log *log, const struct request *request, unsigned status)
{
	if (log == NULL)
		return;
	json_t *headers = need(json_object());
	request_headers(request, add_header, headers);
	json_t *entry = need(json_pack("{s:o, s:o, s:i, s:o}", "method", string_of(request->method), "path",
	                               string_of(request->target), "status", (int)status, "headers", headers));
	char *text = need(json_dumps(entry, JSON_COMPACT));
	char *line = text_of("%s\n", text);
	/* One write to a file opened for appending: lines of different threads do not mix. */
	disk_write(log->fd, line, strlen(line));
	free(line);
	free(text);
	json_decref(entry);
}
