/* Connections to the control socket. A client writes lines and reads answers, in order; it may write many lines before it
 * reads. One that never reads is cut off once its answers pass a bound; a line that is too long ends the connection. */
#include "wan.h"

#include "base/check.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

struct client {
	int fd; /* -1: no client */
	size_t length;
	char line[WAN_LINE_BYTES];
	struct buf out;
	size_t sent;
	bool waits; /* for the client to read */
	bool ended; /* the client writes no more */
};

struct wan_clients {
	struct wan_net *net;
	int epoll, listener;
	uint32_t first_event;
	struct client all[WAN_CLIENTS_MAX];
};

static void watch(struct wan_clients *clients, int operation, int fd, uint32_t number, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.u32 = clients->first_event + number};
	CHECK(epoll_ctl(clients->epoll, operation, fd, &event) == 0);
}

struct wan_clients *wan_clients_new(struct wan_net *net, int epoll, int listener, uint32_t first_event)
{
	struct wan_clients *clients = calloc(1, sizeof(*clients));
	CHECK(clients != NULL);
	clients->net = net;
	clients->epoll = epoll;
	clients->listener = listener;
	clients->first_event = first_event;
	for (unsigned i = 0; i < WAN_CLIENTS_MAX; i++)
		clients->all[i].fd = -1;
	watch(clients, EPOLL_CTL_ADD, listener, 0, EPOLLIN);
	return clients;
}

static void close_client(struct client *client)
{
	if (client->fd >= 0)
		close(client->fd);
	buf_free(&client->out);
	client->fd = -1;
}

void wan_clients_free(struct wan_clients *clients)
{
	for (unsigned i = 0; clients != NULL && i < WAN_CLIENTS_MAX; i++)
		close_client(&clients->all[i]);
	free(clients);
}

static void refuse_client(int fd)
{
	static const char text[] = "error: too many connections to the control socket; close some\n";
	(void)!send(fd, text, sizeof(text) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
	close(fd);
}

static void accept_client(struct wan_clients *clients)
{
	int fd = accept4(clients->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd < 0)
		return;
	for (uint32_t i = 0; i < WAN_CLIENTS_MAX; i++) {
		if (clients->all[i].fd >= 0)
			continue;
		clients->all[i] = (struct client){.fd = fd};
		watch(clients, EPOLL_CTL_ADD, fd, i + 1, EPOLLIN);
		return;
	}
	refuse_client(fd);
}

/* Runs the lines that are complete, and keeps the rest. */
static void run_lines(struct wan_net *net, struct client *client)
{
	char *start = client->line, *end, *stop = client->line + client->length;
	while ((end = memchr(start, '\n', (size_t)(stop - start))) != NULL) {
		wan_control_run(net, str_make(start, (size_t)(end - start)), &client->out);
		start = end + 1;
	}
	client->length = (size_t)(stop - start);
	memmove(client->line, start, client->length);
	if (client->length == sizeof(client->line)) {
		buf_printf(&client->out, "error: a line of more than %d bytes\n", WAN_LINE_BYTES);
		client->ended = true;
	}
}

/* False: the connection is over. */
static bool read_client(struct wan_net *net, struct client *client)
{
	ssize_t got = recv(client->fd, client->line + client->length, sizeof(client->line) - client->length, 0);
	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	client->ended = got == 0;
	client->length += (size_t)got;
	run_lines(net, client);
	return client->out.length - client->sent <= WAN_REPLY_BYTES;
}

static bool write_client(struct client *client)
{
	while (client->sent < client->out.length) {
		ssize_t put = send(client->fd, client->out.at + client->sent, client->out.length - client->sent, MSG_NOSIGNAL);
		if (put < 0)
			return errno == EAGAIN || errno == EINTR;
		client->sent += (size_t)put;
	}
	buf_clear(&client->out);
	client->sent = 0;
	return !client->ended;
}

void wan_clients_ready(struct wan_clients *clients, uint32_t event)
{
	uint32_t number = event - clients->first_event;
	if (number == 0) {
		accept_client(clients);
		return;
	}
	CHECK(number <= WAN_CLIENTS_MAX);
	struct client *client = &clients->all[number - 1];
	if (client->fd < 0)
		return;
	/* A client that does not read is not read from either. */
	if ((!client->waits && !client->ended && !read_client(clients->net, client)) || !write_client(client)) {
		close_client(client);
		return;
	}
	client->waits = client->out.length > client->sent;
	watch(clients, EPOLL_CTL_MOD, client->fd, number, client->waits ? EPOLLOUT : EPOLLIN);
}
