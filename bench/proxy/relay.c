/* The floor: what it costs to pass bytes between two sockets, with nothing known of them.
 *
 * usage: relay LISTEN BACKEND      (each 127.0.0.1:PORT)
 *
 * One thread, epoll edge-triggered, one upstream connection for each client connection. A side's bytes are read once and
 * written once to the other; a short read means that the socket is drained (epoll(7)), so that a request costs two reads
 * and two writes, and its share of an epoll_wait. What does not fit the other socket waits in the pair's buffer, and
 * nothing more is read meanwhile. */
#include "net.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define BUFFER_BYTES 16384
#define EVENTS_MAX 256

/* One direction's end: what was read from here and is not yet written to `other`. */
struct end {
	int fd;
	struct end *other;
	struct pair *pair;
	size_t from, to; /* of buffer */
	bool readable, finished;
	char buffer[BUFFER_BYTES];
};

struct pair {
	struct end ends[2];
	bool closed;
	struct pair *next_closed;
};

static int poller;
static struct pair *closed_pairs; /* freed after the round, since later events of it may name them */

static void watch(int fd, void *data, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.ptr = data};
	if (epoll_ctl(poller, EPOLL_CTL_ADD, fd, &event) != 0)
		die(errno, "epoll_ctl");
}

static void pair_open(int client, const struct sockaddr_in *backend)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	if (pair == NULL)
		die(0, "out of memory");
	pair->ends[0].fd = client;
	pair->ends[1].fd = connect_to(backend, false);
	for (int i = 0; i < 2; i++) {
		pair->ends[i].pair = pair;
		pair->ends[i].other = &pair->ends[1 - i];
		watch(pair->ends[i].fd, &pair->ends[i], EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET);
	}
}

static void pair_close(struct pair *pair)
{
	if (pair->closed)
		return;
	pair->closed = true;
	close(pair->ends[0].fd);
	close(pair->ends[1].fd);
	pair->next_closed = closed_pairs;
	closed_pairs = pair;
}

/* Writes what is held. False if some of it has to wait, or the pair is closed. */
static bool flush(struct end *end)
{
	while (end->from < end->to) {
		ssize_t sent = send(end->other->fd, end->buffer + end->from, end->to - end->from, MSG_NOSIGNAL);
		if (sent < 0) {
			if (errno != EAGAIN && errno != ENOTCONN)
				pair_close(end->pair);
			return false;
		}
		end->from += (size_t)sent;
	}
	end->from = end->to = 0;
	if (end->finished)
		shutdown(end->other->fd, SHUT_WR);
	return true;
}

/* Passes on what this end has, until it has no more or the other takes no more. */
static void pump(struct end *end)
{
	while (!end->pair->closed && flush(end) && end->readable && !end->finished) {
		ssize_t got = recv(end->fd, end->buffer, sizeof(end->buffer), 0);
		if (got < 0 && errno != EAGAIN) {
			pair_close(end->pair);
			return;
		}
		end->finished = got == 0;
		end->readable = got == (ssize_t)sizeof(end->buffer);
		end->to = got > 0 ? (size_t)got : 0;
	}
	if (!end->pair->closed && end->finished && end->other->finished && end->to == 0 && end->other->to == 0)
		pair_close(end->pair);
}

static void on_event(struct end *end, uint32_t events)
{
	if (end->pair->closed)
		return;
	if ((events & EPOLLERR) != 0) {
		pair_close(end->pair);
		return;
	}
	if ((events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP)) != 0) {
		/* With the end of the stream in sight, a short read is not enough: read on until it says so. */
		end->readable = true;
		pump(end);
		if ((events & (EPOLLRDHUP | EPOLLHUP)) != 0 && !end->pair->closed) {
			end->readable = true;
			pump(end);
		}
	}
	if ((events & EPOLLOUT) != 0 && !end->pair->closed && end->other->to > 0)
		pump(end->other);
}

static void free_closed(void)
{
	while (closed_pairs != NULL) {
		struct pair *pair = closed_pairs;
		closed_pairs = pair->next_closed;
		free(pair);
	}
}

int main(int argc, char **argv)
{
	if (argc != 3)
		die(0, "usage: relay LISTEN BACKEND      (each 127.0.0.1:PORT)");
	struct sockaddr_in front = address_of(argv[1]), backend = address_of(argv[2]);
	int listener = listen_on(&front);
	poller = epoll_create1(EPOLL_CLOEXEC);
	if (poller < 0)
		die(errno, "epoll_create1");
	watch(listener, NULL, EPOLLIN);

	for (;;) {
		struct epoll_event events[EVENTS_MAX];
		int count = epoll_wait(poller, events, EVENTS_MAX, -1);
		if (count < 0 && errno != EINTR)
			die(errno, "epoll_wait");
		for (int i = 0; i < count; i++) {
			if (events[i].data.ptr != NULL) {
				on_event(events[i].data.ptr, events[i].events);
				continue;
			}
			for (int fd = accept_from(listener); fd >= 0; fd = accept_from(listener))
				pair_open(fd, &backend);
		}
		free_closed();
	}
}
