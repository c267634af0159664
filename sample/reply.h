/* What a handler answers with. A plain value; the server consumes it, and with it what it points to. */
#ifndef SAMPLE_REPLY_H
#define SAMPLE_REPLY_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct reply {
	unsigned status;
	json_t *json; /* the body, if not NULL */
	int fd;       /* the body is this file, if has_file */
	uint64_t file_bytes;
	bool has_file;
	const char *header_name; /* one more header, if not NULL */
	char *header_value;
};

/* Takes over the reference to `json`. */
struct reply reply_json(unsigned status, json_t *json);

/* 201, with where the new resource is: /COLLECTION/ID, the id being the record's. Takes over the reference. */
struct reply reply_created(const char *collection, json_t *record);

struct reply reply_empty(unsigned status);

/* Takes over the file descriptor. */
struct reply reply_file(int fd, uint64_t bytes);

/* {"error": {"code": STATUS, "message": "..."}} */
struct reply reply_error(unsigned status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* For what the disk refused: `status` is -errno, `what` completes "cannot ...". */
struct reply reply_disk_error(int status, const char *what);

/* For a reply that is not sent after all. */
void reply_drop(struct reply *reply);

#endif
