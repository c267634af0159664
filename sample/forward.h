/*
 * Which headers of a request go along with the calls that a service makes on its behalf. Services in the wild differ in
 * this, and this one can play each of them:
 *   headers      all, except those that belong to one connection or to one body
 *   baggage      the W3C baggage header
 *   trace        the W3C trace context: traceparent, tracestate
 *   request-id   X-Request-Id
 *   header=NAME  that one
 *   none         nothing
 */
#ifndef SAMPLE_FORWARD_H
#define SAMPLE_FORWARD_H

#include <curl/curl.h>
#include <stdbool.h>

struct request;

enum forward_mode { FORWARD_HEADERS, FORWARD_BAGGAGE, FORWARD_TRACE, FORWARD_REQUEST_ID, FORWARD_HEADER, FORWARD_NONE };

struct forward {
	enum forward_mode mode;
	const char *name; /* of FORWARD_HEADER; points into what was parsed */
};

/* False when there is no such mode. */
bool forward_parse(struct forward *forward, const char *text);

/* Appends what is to be forwarded of the request to a list, and returns that. */
struct curl_slist *forward_append(const struct forward *forward, const struct request *request,
                                  struct curl_slist *list);

#endif
