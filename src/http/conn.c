/* Sockets: connections and listeners.
 *
 * Edge-triggered: an event says that something changed, and the flags `readable` and `writable` stay up until a call says
 * "would block". A read that fills less than it was offered has emptied the socket, so the flag is lowered without asking
 * again; the next byte, or the end, raises it. Where the end has been told already, it stays up.
 */
#include "http/http_int.h"

#include <errno.h>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

enum { BACKLOG = 4096, ACCEPTS_PER_ROUND = 64, ACCEPT_PAUSE_MS = 100 };

/* ---- Connections ------------------------------------------------------------------------------------------------ */

static void conn_ready(struct http_source *source, uint32_t events)
{
	struct http_conn *conn = (struct http_conn *)source;
	if (conn->tls) {
		if (http_secure_ready(conn, events) && conn->changed)
			conn->changed(conn);
		return;
	}
	if (conn->connecting && events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) {
		socklen_t length = sizeof(conn->error);
		getsockopt(source->fd, SOL_SOCKET, SO_ERROR, &conn->error, &length);
		conn->connecting = false;
		conn->failed = conn->error != 0;
		conn->writable = !conn->failed;
	} else if (events & (EPOLLERR | EPOLLHUP)) {
		/* What was received before may still be read: the read tells the error in its turn. */
		conn->readable = conn->writable = conn->hung = true;
	}
	if (events & (EPOLLRDHUP | EPOLLERR | EPOLLHUP))
		conn->ending = true;
	if (events & (EPOLLIN | EPOLLRDHUP))
		conn->readable = true;
	if (events & EPOLLOUT && !conn->connecting)
		conn->writable = true;
	if (conn->changed)
		conn->changed(conn);
}

static void conn_fire(struct http_timer *timer)
{
	struct http_conn *conn = (struct http_conn *)((char *)timer - offsetof(struct http_conn, timer));
	if (conn->expired)
		conn->expired(conn);
}

static int conn_register(struct http_conn *conn, struct http_loop *loop, int fd, struct err *err)
{
	int on = 1;
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	conn->loop = loop;
	conn->source.fd = fd;
	conn->source.ready = conn_ready;
	conn->timer.fire = conn_fire;
	return http_loop_add(loop, &conn->source, EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, err);
}

int http_conn_init(struct http_conn *conn, struct http_loop *loop, int fd, struct err *err)
{
	conn->writable = true;
	return conn_register(conn, loop, fd, err);
}

int http_conn_connect(struct http_conn *conn, struct http_loop *loop, const struct http_address *address,
                      struct err *err)
{
	int fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0) {
		conn->error = errno;
		return err_set(err, ERR_IO, "cannot open a socket: %s", strerror(errno));
	}
	int result = connect(fd, (const struct sockaddr *)&address->socket, address->length);
	if (result != 0 && errno != EINPROGRESS) {
		conn->error = errno;
		close(fd);
		return err_set(err, ERR_UNAVAILABLE, "cannot connect to %s: %s", address->text, strerror(conn->error));
	}
	conn->connecting = true;
	int code = conn_register(conn, loop, fd, err);
	if (code)
		close(fd);
	return code;
}

static bool tcp_info_of(const struct http_conn *conn, struct tcp_info *info)
{
	socklen_t length = sizeof(*info);
	*info = (struct tcp_info){0};
	return getsockopt(conn->source.fd, IPPROTO_TCP, TCP_INFO, info, &length) == 0 && info->tcpi_state != TCP_SYN_SENT &&
	       info->tcpi_state != TCP_CLOSE;
}

bool http_conn_is_taken(const struct http_conn *conn, uint64_t *rtt_us)
{
	struct tcp_info info;
	bool taken = tcp_info_of(conn, &info);
	*rtt_us = taken ? info.tcpi_rtt : 0;
	return taken;
}

bool http_conn_heard(const struct http_conn *conn, uint64_t *ago_us)
{
	struct tcp_info info;
	bool taken = tcp_info_of(conn, &info);
	*ago_us = taken ? (uint64_t)info.tcpi_last_ack_recv * 1000 : 0;
	return taken;
}

bool http_conn_is_delivered(const struct http_conn *conn)
{
	int waiting;
	return ioctl(conn->source.fd, SIOCOUTQ, &waiting) == 0 && waiting == 0;
}

void http_conn_close(struct http_conn *conn)
{
	http_timer_clear(conn->loop, &conn->timer);
	http_buffer_give(conn->loop, &conn->in);
	if (conn->tls)
		http_secure_free(conn);
	conn->readable = conn->writable = false;
	http_loop_close(conn->loop, &conn->source);
}

void http_conn_reset_on_close(struct http_conn *conn)
{
	struct linger hard = {.l_onoff = 1};
	if (conn->source.fd >= 0)
		setsockopt(conn->source.fd, SOL_SOCKET, SO_LINGER, &hard, sizeof(hard));
}

void http_conn_end(struct http_conn *conn)
{
	if (conn->source.fd < 0)
		return;
	if (conn->tls)
		http_secure_end(conn);
	else
		shutdown(conn->source.fd, SHUT_WR);
}

static enum http_io conn_error(struct http_conn *conn)
{
	conn->error = errno;
	conn->failed = true;
	conn->readable = conn->writable = false;
	return HTTP_IO_FAILED;
}

enum http_io http_conn_read(struct http_conn *conn)
{
	if (!conn->readable || conn->ended)
		return conn->ended ? HTTP_IO_END : HTTP_IO_BLOCKED;
	if (!conn->in.at)
		http_buffer_take(conn->loop, &conn->in, HTTP_BUFFER_LEAST);
	size_t space = conn->in.size - conn->in.end;
	if (space == 0)
		return HTTP_IO_BLOCKED;
	if (conn->tls)
		return http_secure_read(conn);
	ssize_t got = recv(conn->source.fd, conn->in.at + conn->in.end, space, 0);
	if (got > 0) {
		conn->in.end += (uint32_t)got;
		if ((size_t)got < space && !conn->ending)
			conn->readable = false;
		return HTTP_IO_SOME;
	}
	if (got == 0) {
		conn->ended = true;
		return HTTP_IO_END;
	}
	if (errno == EINTR)
		return HTTP_IO_SOME;
	if (errno != EAGAIN)
		return conn_error(conn);
	conn->readable = false;
	return HTTP_IO_BLOCKED;
}

enum http_io http_conn_write(struct http_conn *conn, struct iovec *pieces, int count, size_t *written)
{
	*written = 0;
	if (!conn->writable)
		return conn->failed ? HTTP_IO_FAILED : HTTP_IO_BLOCKED;
	if (conn->tls)
		return http_secure_write(conn, pieces, count, written);
	struct msghdr message = {.msg_iov = pieces, .msg_iovlen = (size_t)count};
	ssize_t put = count == 1 ? send(conn->source.fd, pieces[0].iov_base, pieces[0].iov_len, MSG_NOSIGNAL)
	                         : sendmsg(conn->source.fd, &message, MSG_NOSIGNAL);
	if (put >= 0) {
		*written = (size_t)put;
		return HTTP_IO_SOME;
	}
	if (errno == EINTR)
		return HTTP_IO_SOME;
	if (errno != EAGAIN) {
		conn_error(conn);
		conn->readable = conn->ending = true; /* the peer may have said why before it closed */
		return HTTP_IO_FAILED;
	}
	conn->writable = false;
	return HTTP_IO_BLOCKED;
}

/* ---- Listeners -------------------------------------------------------------------------------------------------- */

int http_listen(const struct http_address *address, int *out, struct err *err)
{
	int on = 1, fd = socket(address->socket.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, ERR_IO, "cannot open a socket: %s", strerror(errno));
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on));
	if (bind(fd, (const struct sockaddr *)&address->socket, address->length) != 0 || listen(fd, BACKLOG) != 0) {
		int code = err_set(err, ERR_IO, "cannot listen on %s: %s", address->text, strerror(errno));
		close(fd);
		return code;
	}
	*out = fd;
	return 0;
}

/* Out of descriptors: waiting connections stay in the queue until some are closed. */
static void pause_over(struct http_timer *timer)
{
	struct http_listener *listener = (struct http_listener *)((char *)timer - offsetof(struct http_listener, pause));
	http_loop_watch(listener->loop, &listener->source, EPOLLIN);
}

static void listener_ready(struct http_source *source, uint32_t events)
{
	(void)events;
	struct http_listener *listener = (struct http_listener *)source;
	for (int i = 0; i < ACCEPTS_PER_ROUND && source->fd >= 0; i++) {
		struct sockaddr_storage from;
		socklen_t length = sizeof(from);
		int fd = accept4(source->fd, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			listener->accepted(listener, fd, &from);
			continue;
		}
		if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
			http_loop_watch(listener->loop, source, 0);
			http_timer_set(listener->loop, &listener->pause, ACCEPT_PAUSE_MS);
			return;
		}
		if (errno != EINTR && errno != ECONNABORTED)
			return;
	}
}

int http_listener_start(struct http_listener *listener, struct http_loop *loop, int fd, struct err *err)
{
	listener->loop = loop;
	listener->source.fd = fd;
	listener->source.ready = listener_ready;
	listener->pause.fire = pause_over;
	return http_loop_add(loop, &listener->source, EPOLLIN, err);
}

void http_listener_stop(struct http_listener *listener)
{
	http_timer_clear(listener->loop, &listener->pause);
	http_loop_close(listener->loop, &listener->source);
}
