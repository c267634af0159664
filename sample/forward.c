#include "forward.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "memory.h"
#include "server.h"

static const struct {
	const char *text;
	enum forward_mode mode;
} modes[] = {
	{"headers", FORWARD_HEADERS},       {"baggage", FORWARD_BAGGAGE}, {"trace", FORWARD_TRACE},
	{"request-id", FORWARD_REQUEST_ID}, {"none", FORWARD_NONE},
};

/* Hop-by-hop (RFC 9110, 7.6.1), or about the body or the target of this request and no other. */
static const char *const not_forwarded[] = {
	"Connection",
	"Keep-Alive",
	"Proxy-Connection",
	"TE",
	"Trailer",
	"Transfer-Encoding",
	"Upgrade",
	"Proxy-Authorization",
	"Proxy-Authenticate",
	"Host",
	"Content-Length",
	"Content-Type",
	"Content-Encoding",
	"Accept-Encoding",
	"Expect",
};

static bool is_header_name(const char *name)
{
	static const char token[] = "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
	return name[0] != '\0' && name[strspn(name, token)] == '\0';
}

bool forward_parse(struct forward *forward, const char *text)
{
	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (strcmp(text, modes[i].text) == 0) {
			*forward = (struct forward){.mode = modes[i].mode};
			return true;
		}
	}
	if (strncmp(text, "header=", strlen("header=")) != 0)
		return false;
	*forward = (struct forward){.mode = FORWARD_HEADER, .name = text + strlen("header=")};
	return is_header_name(forward->name);
}

/* Whether a list such as that of a Connection header has this name. */
static bool lists(const char *list, const char *name)
{
	for (const char *at = list; *at != '\0'; at += strcspn(at, ","), at += *at == ',') {
		const char *start = at + strspn(at, " \t");
		size_t length = strcspn(start, ", \t");
		if (length == strlen(name) && strncasecmp(start, name, length) == 0)
			return true;
	}
	return false;
}

static bool is_end_to_end(const struct request *request, const char *name)
{
	for (size_t i = 0; i < sizeof(not_forwarded) / sizeof(not_forwarded[0]); i++) {
		if (strcasecmp(name, not_forwarded[i]) == 0)
			return false;
	}
	const char *connection = request_header(request, "Connection");
	return connection == NULL || !lists(connection, name);
}

static bool is_forwarded(const struct forward *forward, const struct request *request, const char *name)
{
	switch (forward->mode) {
	case FORWARD_HEADERS: return is_end_to_end(request, name);
	case FORWARD_BAGGAGE: return strcasecmp(name, "baggage") == 0;
	case FORWARD_TRACE: return strcasecmp(name, "traceparent") == 0 || strcasecmp(name, "tracestate") == 0;
	case FORWARD_REQUEST_ID: return strcasecmp(name, "X-Request-Id") == 0;
	case FORWARD_HEADER: return strcasecmp(name, forward->name) == 0;
	case FORWARD_NONE: return false;
	}
	return false;
}

struct selection {
	const struct forward *forward;
	const struct request *request;
	struct curl_slist *list;
};

static void select_header(void *context, const char *name, const char *value)
{
	struct selection *selection = context;
	if (!is_forwarded(selection->forward, selection->request, name))
		return;
	/* libcurl takes "Name:" for a header to leave out, and "Name;" for one without a value. */
	char *line = value[0] == '\0' ? text_of("%s;", name) : text_of("%s: %s", name, value);
	selection->list = need(curl_slist_append(selection->list, line));
	free(line);
}

struct curl_slist *forward_append(const struct forward *forward, const struct request *request, struct curl_slist *list)
{
	struct selection selection = {.forward = forward, .request = request, .list = list};
	request_headers(request, select_header, &selection);
	return selection.list;
}
