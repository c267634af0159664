/* The access log, for debugging: one JSON line per request, with its headers as they came. */
#ifndef SAMPLE_ACCESS_LOG_H
#define SAMPLE_ACCESS_LOG_H

struct access_log;
struct request;

/* Appends to a file. On failure says why on the standard error and returns NULL. */
struct access_log *access_log_open(const char *path);
void access_log_close(struct access_log *log);

/*
 * {"method": "GET", "path": "/images?x=1", "status": 200, "headers": {"Host": "..."}}
 * A header that came twice has its values joined by ", ". Status 0: the client left before there was an answer.
 * Nothing is done if `log` is NULL. Any thread may call.
 */
void access_log_request(struct access_log *log, const struct request *request, unsigned status);

#endif
