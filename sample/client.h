/*
 * The HTTP client: libcurl. Handles, and with them their open connections, are kept for the next call, whichever thread
 * makes it. Any thread may call.
 */
#ifndef SAMPLE_CLIENT_H
#define SAMPLE_CLIENT_H

#include <curl/curl.h>
#include <stdbool.h>
#include <stddef.h>

struct client;

struct client *client_open(void);
void client_close(struct client *client);

struct client_call {
	const char *method;
	const char *url;
	const char *json;                 /* the body, or NULL */
	const struct curl_slist *headers; /* may be NULL */
	/* Gets the body of a successful (2xx) answer, as it comes; if NULL, the body is collected, as that of others always is. */
	void (*piece)(void *context, const char *bytes, size_t length);
	void *context;
};

struct client_answer {
	unsigned status; /* 0: there was no whole answer, and `problem` says why */
	char *body;      /* ends with a NUL; never NULL */
	size_t body_bytes;
	char problem[CURL_ERROR_SIZE];
};

/* Makes the call and waits for the end of its answer, which client_answer_free() frees. */
void client_make(struct client *client, const struct client_call *call, struct client_answer *answer);
void client_answer_free(struct client_answer *answer);

/* A string as a segment of a path. The caller frees. */
char *client_escape(const char *text);

#endif
