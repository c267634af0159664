/* The service of one site: a REST application that costs as little as it can.
 *
 * usage: service LISTEN        (127.0.0.1:PORT)
 *
 *   POST   /things        201, the item with its id; `Location`
 *   PUT    /things/ID     200, the item; PATCH likewise (what is sent becomes the value: nobody here has to merge)
 *   GET    /things/ID     200, the item; 404
 *   DELETE /things/ID     204; 404
 *   GET    /count         200, {"items":N,"writes":N}: what there is, and how many requests have changed something
 *
 * An item is {"id":"ID","value":...}: what was sent, as it came, up to VALUE_BYTES. All is in memory, in one thread. A
 * request whose body is longer, or that is no request, ends its connection: this is an instrument, not a server. */
#include "net.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define IN_BYTES 16384
#define OUT_BYTES 16384
#define VALUE_BYTES 1024
#define ANSWER_ROOM (VALUE_BYTES + 512)
#define ITEMS_MAX 4000000
#define EVENTS_MAX 256

struct connection {
	int fd;
	size_t in_length, out_from, out_to;
	bool closing, waits_to_write;
	char in[IN_BYTES];
	char out[OUT_BYTES];
};

struct item {
	char *value; /* NULL: there is none, or no more */
	size_t bytes;
};

static int poller;
static struct item *items;
static unsigned long long items_made, items_count, writes_count;

static void connection_watch(struct connection *c, bool add, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = c};
	if (epoll_ctl(poller, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, c->fd, &event) != 0)
		die(errno, "epoll_ctl");
}

/* ---- Items ----------------------------------------------------------------------------------------------------------- */

static void item_set(struct item *item, const char *value, size_t bytes)
{
	if (item->value == NULL || item->bytes != bytes) {
		items_count += item->value == NULL;
		item->value = realloc(item->value, bytes > 0 ? bytes : 1);
		if (item->value == NULL)
			die(0, "out of memory");
	}
	memcpy(item->value, value, bytes);
	item->bytes = bytes;
	writes_count++;
}

static void item_drop(struct item *item)
{
	free(item->value);
	*item = (struct item){0};
	items_count--;
	writes_count++;
}

/* ---- Answering ------------------------------------------------------------------------------------------------------- */

static void answer(struct connection *c, const char *status, const char *fields, const char *body, size_t length)
{
	c->out_to += (size_t)snprintf(c->out + c->out_to, ANSWER_ROOM,
	                              "HTTP/1.1 %s\r\nContent-Type: application/json\r\n%sContent-Length: %zu\r\n\r\n%.*s",
	                              status, fields, length, (int)length, body);
}

static void answer_item(struct connection *c, const char *status, unsigned long long id)
{
	char fields[64] = "", body[VALUE_BYTES + 64];
	if (status[2] == '1')
		snprintf(fields, sizeof(fields), "Location: /things/%llu\r\n", id);
	int length =
		snprintf(body, sizeof(body), "{\"id\":\"%llu\",\"value\":%.*s}", id, (int)items[id].bytes, items[id].value);
	answer(c, status, fields, body, (size_t)length);
}

static void answer_count(struct connection *c)
{
	char body[128];
	int length = snprintf(body, sizeof(body), "{\"items\":%llu,\"writes\":%llu}", items_count, writes_count);
	answer(c, "200 OK", "", body, (size_t)length);
}

static bool starts(const char *head, const char *with)
{
	return strncmp(head, with, strlen(with)) == 0;
}

static void answer_request(struct connection *c, const char *head, const char *body, size_t length)
{
	static const char none[] = "{\"error\":\"there is no such thing\"}";
	if (starts(head, "GET /count ")) {
		answer_count(c);
		return;
	}
	if (starts(head, "POST /things ")) {
		if (items_made + 1 >= ITEMS_MAX)
			die(0, "more than %d items", ITEMS_MAX);
		item_set(&items[++items_made], body, length);
		answer_item(c, "201 Created", items_made);
		return;
	}
	const char *path = strchr(head, ' ');
	unsigned long long id =
		path != NULL && starts(path, " /things/") ? strtoull(path + strlen(" /things/"), NULL, 10) : 0;
	if (id == 0 || id > items_made || items[id].value == NULL) {
		answer(c, "404 Not Found", "", none, strlen(none));
	} else if (starts(head, "DELETE ")) {
		item_drop(&items[id]);
		answer(c, "204 No Content", "", "", 0);
	} else {
		if (!starts(head, "GET "))
			item_set(&items[id], body, length);
		answer_item(c, "200 OK", id);
	}
}

/* ---- Connections ----------------------------------------------------------------------------------------------------- */

/* Goes through what has been read, as far as there is room to answer. False if it makes no sense. */
static bool requests_read(struct connection *c)
{
	size_t at = 0;
	while (at < c->in_length && !c->closing && OUT_BYTES - c->out_to >= ANSWER_ROOM) {
		const char *head = c->in + at, *end = memmem(head, c->in_length - at, "\r\n\r\n", 4);
		if (end == NULL)
			break;
		size_t head_length = (size_t)(end + 4 - head);
		uint64_t length = header_number(head, head_length, "content-length:", 0);
		if (length > VALUE_BYTES)
			return false;
		if (c->in_length - at < head_length + length)
			break;
		answer_request(c, head, end + 4, (size_t)length);
		at += head_length + (size_t)length;
	}
	c->in_length -= at;
	if (at > 0)
		memmove(c->in, c->in + at, c->in_length);
	return c->in_length < IN_BYTES - 1;
}

/* Returns 1 if all is written, 0 if the rest has to wait, -1 if the peer has gone. */
static int output_write(struct connection *c)
{
	while (c->out_from < c->out_to) {
		ssize_t sent = send(c->fd, c->out + c->out_from, c->out_to - c->out_from, MSG_NOSIGNAL);
		if (sent < 0)
			return errno == EAGAIN ? 0 : -1;
		c->out_from += (size_t)sent;
	}
	c->out_from = c->out_to = 0;
	return 1;
}

static bool connection_run(struct connection *c)
{
	size_t before;
	do {
		before = c->in_length;
		if (!requests_read(c))
			return false;
		int written = output_write(c);
		if (written < 0)
			return false;
		if ((written == 0) != c->waits_to_write) {
			c->waits_to_write = written == 0;
			connection_watch(c, false, c->waits_to_write ? EPOLLOUT : EPOLLIN);
		}
	} while (!c->waits_to_write && c->in_length > 0 && c->in_length < before);
	return true;
}

static bool connection_read(struct connection *c)
{
	ssize_t got = recv(c->fd, c->in + c->in_length, IN_BYTES - 1 - c->in_length, 0);
	if (got < 0)
		return errno == EAGAIN;
	if (got == 0)
		return false;
	c->in_length += (size_t)got;
	c->in[c->in_length] = '\0'; /* so that a head can be read as a string */
	return true;
}

static void on_event(struct connection *c)
{
	if ((!c->waits_to_write && !connection_read(c)) || !connection_run(c)) {
		close(c->fd);
		free(c);
	}
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
		die(0, "usage: service LISTEN      (127.0.0.1:PORT)");
	struct sockaddr_in front = address_of(argv[1]);
	int listener = listen_on(&front);
	struct epoll_event event = {.events = EPOLLIN};
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, listener, &event) != 0)
		die(errno, "epoll");
	items = calloc(ITEMS_MAX, sizeof(*items));
	if (items == NULL)
		die(0, "out of memory");

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
