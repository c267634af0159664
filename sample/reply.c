#include "reply.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "memory.h"

struct reply reply_json(unsigned status, json_t *json)
{
	return (struct reply){.status = status, .json = need(json)};
}

struct reply reply_created(const char *collection, json_t *record)
{
	struct reply reply = reply_json(201, record);
	reply.header_name = "Location";
	reply.header_value = text_of("/%s/%s", collection, json_string_value(json_object_get(record, "id")));
	return reply;
}

struct reply reply_empty(unsigned status)
{
	return (struct reply){.status = status};
}

struct reply reply_file(int fd, uint64_t bytes)
{
	return (struct reply){.status = 200, .fd = fd, .file_bytes = bytes, .has_file = true};
}

struct reply reply_error(unsigned status, const char *format, ...)
{
	char message[1024];
	va_list values;
	va_start(values, format);
	vsnprintf(message, sizeof(message), format, values);
	va_end(values);
	/* What is quoted may have been cut in the middle of a character; such a message is replaced by a poorer one. */
	json_t *text = json_string(message);
	if (text == NULL)
		text = json_string("refused; the reason cannot be shown, since it quotes what is not UTF-8");
	return reply_json(status, json_pack("{s:{s:i, s:o}}", "error", "code", (int)status, "message", need(text)));
}

struct reply reply_disk_error(int status, const char *what)
{
	bool full = status == -ENOSPC || status == -EDQUOT;
	return reply_error(full ? 507 : 500, "cannot %s: %s", what, strerror(-status));
}

void reply_drop(struct reply *reply)
{
	json_decref(reply->json);
	if (reply->has_file)
		close(reply->fd);
	free(reply->header_value);
	*reply = (struct reply){0};
}
