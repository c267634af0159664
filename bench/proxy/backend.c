/* The service behind every proxy: an HTTP/1.1 server that costs as little as it can.
 *
 * usage: backend LISTEN        (127.0.0.1:PORT)
 *
 *   any request           200 and ANSWER_BYTES bytes, keep-alive; a body of Content-Length bytes is read first
 *   GET /bytes/N          200 and N bytes of the pattern (net.h)
 *   POST /bytes           the body has to be the pattern: 200, or 500 where it is not; X-Received says how long it was
 *
 * One thread, level-triggered epoll. Pipelined requests are answered together, with one write. A connection whose peer
 * does not read is not read from either. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_BYTES 8192
#define OUT_BYTES 8192
#define ANSWER_ROOM 256 /* the longest answer, without the bytes of /bytes/N */
#define BODY_BYTES ((size_t)256 << 10)
#define EVENTS_MAX 256

struct connection {
	int fd;
	size_t in_length, out_from, out_to;
	uint64_t body_length, body_left;   /* of the request that is being read */
	uint64_t bytes_offset, bytes_left; /* of the answer to GET /bytes/N */
	bool in_body, check_body, body_differs, closing, waits_to_write;
	char in[IN_BYTES];
	char out[OUT_BYTES];
};

static int poller;
static char answer[ANSWER_ROOM];
static size_t answer_length;
static char body[BODY_BYTES]; /* shared: what is read here is used at once */

static void connection_close(struct connection *c)
{
	close(c->fd);
	free(c);
}

static void connection_watch(struct connection *c, bool add, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};
	if (epoll_ctl(poller, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &event) != 0)
		die(errno, "epoll_ctl");
}

static void answer_make(void)
{
	int head = snprintf(answer, sizeof(answer),
	                    "HTTP/1.1 200 OK\r\nServer: bench\r\nContent-Type: text/plain\r\nContent-Length: %d\r\n\r\n",
	                    ANSWER_BYTES);
	memset(answer + head, 'x', ANSWER_BYTES);
	answer[head + ANSWER_BYTES - 1] = '\n';
	answer_length = (size_t)head + ANSWER_BYTES;
}

/* ---- answering ------------------------------------------------------------------------------------------------------- */

static void answer_small(struct connection *c)
{
	memcpy(c->out + c->out_to, answer, answer_length);
	c->out_to += answer_length;
}

static void answer_upload(struct connection *c)
{
	int length = snprintf(
		c->out + c->out_to, ANSWER_ROOM, "HTTP/1.1 %s\r\nX-Received: %llu\r\nContent-Length: %d\r\n\r\n%0*d",
		c->body_differs ? "500 Differs" : "200 OK", (unsigned long long)c->body_length, ANSWER_BYTES, ANSWER_BYTES, 0);
	c->out_to += (size_t)length;
}

static void answer_download(struct connection *c, uint64_t length)
{
	c->out_to += (size_t)snprintf(c->out + c->out_to, ANSWER_ROOM,
	                              "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %llu\r\n\r\n",
	                              (unsigned long long)length);
	c->bytes_offset = 0;
	c->bytes_left = length;
}

static void request_end(struct connection *c)
{
	c->in_body = false;
	if (c->check_body)
		answer_upload(c);
	else
		answer_small(c);
}

/* ---- reading --------------------------------------------------------------------------------------------------------- */

static void head_read(struct connection *c, const char *head, size_t length)
{
	static const char get[] = "GET /bytes/", post[] = "POST /bytes ", close_line[] = "\r\nConnection: close\r\n";
	if (memmem(head, length, close_line, strlen(close_line)) != NULL)
		c->closing = true;
	if (length > strlen(get) && memcmp(head, get, strlen(get)) == 0) {
		answer_download(c, strtoull(head + strlen(get), NULL, 10));
		return;
	}
	c->check_body = length > strlen(post) && memcmp(head, post, strlen(post)) == 0;
	c->body_differs = false;
	c->body_length = c->body_left = header_number(head, length, "content-length:", 0);
	c->in_body = c->body_left > 0;
	if (!c->in_body)
		request_end(c);
}

static void body_read(struct connection *c, const char *bytes, size_t length)
{
	if (c->check_body && !pattern_matches(c->body_length - c->body_left, bytes, length))
		c->body_differs = true;
	c->body_left -= length;
	if (c->body_left == 0)
		request_end(c);
}

/* Goes through what has been read, as far as there is room to answer. False if a head is too long. */
static bool requests_read(struct connection *c)
{
	size_t at = 0;
	while (at < c->in_length && c->bytes_left == 0 && !c->closing && OUT_BYTES - c->out_to >= ANSWER_ROOM) {
		size_t rest = c->in_length - at;
		if (c->in_body) {
			size_t part = rest < c->body_left ? rest : (size_t)c->body_left;
			at += part;
			body_read(c, c->in + at - part, part);
			continue;
		}
		const char *end = memmem(c->in + at, rest, "\r\n\r\n", 4);
		if (end == NULL)
			break;
		size_t length = (size_t)(end + 4 - (c->in + at));
		at += length;
		head_read(c, c->in + at - length, length);
	}
	c->in_length -= at;
	if (at > 0)
		memmove(c->in, c->in + at, c->in_length);
	return c->in_length < IN_BYTES;
}

/* ---- writing --------------------------------------------------------------------------------------------------------- */

/* Returns 1 if all is written, 0 if the rest has to wait, -1 if the peer has gone. */
static int output_write(struct connection *c)
{
	while (c->out_from < c->out_to || c->bytes_left > 0) {
		const char *from = c->out + c->out_from;
		size_t length = c->out_to - c->out_from;
		bool large = length == 0;
		if (large) {
			length = c->bytes_left < BODY_BYTES ? (size_t)c->bytes_left : BODY_BYTES;
			from = pattern_at(c->bytes_offset, &length);
		}
		ssize_t sent = send(c->fd, from, length, MSG_NOSIGNAL);
		if (sent < 0)
			return errno == EAGAIN ? 0 : -1;
		if (large) {
			c->bytes_offset += (size_t)sent;
			c->bytes_left -= (size_t)sent;
		} else {
			c->out_from += (size_t)sent;
		}
	}
	c->out_from = c->out_to = 0;
	return 1;
}

/* ---- one connection's event ------------------------------------------------------------------------------------------ */

/* Answers what has been read until there is nothing more to answer. False if the connection is to be closed. */
static bool connection_run(struct connection *c)
{
	size_t before;
	do {
		before = c->in_length;
		if (!requests_read(c))
			return false;
		int written = output_write(c);
		if (written < 0 || (written > 0 && c->closing))
			return false;
		if ((written == 0) != c->waits_to_write) {
			c->waits_to_write = written == 0;
			connection_watch(c, false, c->waits_to_write ? EPOLLOUT : EPOLLIN);
		}
	} while (!c->waits_to_write && c->in_length > 0 && c->in_length < before);
	return true;
}

/* A large body goes through the shared buffer; the rest of what is read, into the connection's own. */
static bool connection_read(struct connection *c)
{
	bool large = c->in_body && c->in_length == 0;
	size_t room = large ? (c->body_left < BODY_BYTES ? (size_t)c->body_left : BODY_BYTES) : IN_BYTES - c->in_length;
	ssize_t got = recv(c->fd, large ? body : c->in + c->in_length, room, 0);
	if (got < 0)
		return errno == EAGAIN;
	if (got == 0)
		return false;
	if (large)
		body_read(c, body, (size_t)got);
	else
		c->in_length += (size_t)got;
	return true;
}

static void on_event(struct connection *c)
{
	if ((!c->waits_to_write && !connection_read(c)) || !connection_run(c))
		connection_close(c);
}

static void accept_all(int listener)
{
	for (int fd = accept_from(listener); fd >= 0; fd = accept_from(listener)) {
		struct connection *c = calloc(1, sizeof(*c));
		if (c == NULL)
			die(0, "out of memory");
		c->fd = fd;
		connection_watch(c, true, EPOLLIN);
	}
}

int main(int argc, char **argv)
{
	if (argc != 2)
		die(0, "usage: backend LISTEN      (127.0.0.1:PORT)");
	struct sockaddr_in front = address_of(argv[1]);
	int listener = listen_on(&front);
	struct epoll_event event = {.events = EPOLLIN};
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) != 0)
		die(errno, "epoll");
	answer_make();

	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(poller, events, EVENTS_MAX, -1);
		if (count < 0 && errno != EINTR)
			die(errno, "epoll_wait");
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr != NULL)
				on_event(events[i].data.ptr);
			else
				accept_all(listener);
		}
	}
}
