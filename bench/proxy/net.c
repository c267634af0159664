#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

void die(int code, const char *format, ...)
{
	va_list arguments;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fprintf(stderr, code != 0 ? ": %s\n" : "\n", strerror(code));
	exit(1);
}

uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/* ---- sockets --------------------------------------------------------------------------------------------------------- */

struct sockaddr_in address_of(const char *text)
{
	char host[INET_ADDRSTRLEN] = "";
	unsigned port = 0;
	char more = 0;
	struct sockaddr_in address = {.sin_family = AF_INET};
	if (sscanf(text, "%15[0-9.]:%u%c", host, &port, &more) != 2 || port == 0 || port > 65535 ||
	    inet_pton(AF_INET, host, &address.sin_addr) != 1)
		die(0, "'%s' is no address; one looks like 127.0.0.1:8080", text);
	if (ntohl(address.sin_addr.s_addr) >> 24 != 127)
		die(0, "'%s' is not on loopback (127.0.0.0/8)", text);
	address.sin_port = htons((uint16_t)port);
	return address;
}

void set_non_blocking(int fd)
{
	if (fcntl(fd, F_SETFL, O_NONBLOCK) != 0)
		die(errno, "O_NONBLOCK");
}

static void set_no_delay(int fd)
{
	int one = 1;
	if (setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)) != 0)
		die(errno, "TCP_NODELAY");
}

int listen_on(const struct sockaddr_in *address)
{
	int one = 1;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) != 0 ||
	    bind(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 || listen(fd, 4096) != 0)
		die(errno, "listening on port %d", ntohs(address->sin_port));
	return fd;
}

int connect_to(const struct sockaddr_in *address, bool blocking)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | (blocking ? 0 : SOCK_NONBLOCK), 0);
	if (fd < 0)
		die(errno, "socket");
	set_no_delay(fd);
	if (connect(fd, (const struct sockaddr *)address, sizeof(*address)) != 0 && errno != EINPROGRESS)
		die(errno, "connecting to port %d", ntohs(address->sin_port));
	return fd;
}

/* Returns -1 when nobody is waiting. */
int accept_from(int listener)
{
	int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd >= 0)
		set_no_delay(fd);
	else if (errno != EAGAIN && errno != ECONNABORTED && errno != EINTR)
		die(errno, "accept");
	return fd;
}

/* ---- large bodies ---------------------------------------------------------------------------------------------------- */

/* Filled at first use. */
static char pattern[PATTERN_BYTES];

static void pattern_fill(void)
{
	uint64_t state = 0x9e3779b97f4a7c15U; /* xorshift64 */
	for (size_t i = 0; i < PATTERN_BYTES; i++) {
		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		pattern[i] = (char)('!' + state % 94); /* never 0, so that filled and unfilled differ */
	}
}

const char *pattern_at(uint64_t offset, size_t *length)
{
	if (pattern[0] == 0)
		pattern_fill();
	size_t within = (size_t)(offset % PATTERN_BYTES);
	if (*length > PATTERN_BYTES - within)
		*length = PATTERN_BYTES - within;
	return pattern + within;
}

bool pattern_matches(uint64_t offset, const char *bytes, size_t length)
{
	while (length > 0) {
		size_t part = length;
		const char *expected = pattern_at(offset, &part);
		if (memcmp(bytes, expected, part) != 0)
			return false;
		bytes += part;
		offset += part;
		length -= part;
	}
	return true;
}

/* ---- heads ----------------------------------------------------------------------------------------------------------- */

uint64_t header_number(const char *head, size_t length, const char *name, uint64_t absent)
{
	size_t name_length = strlen(name);
	const char *end = head + length;
	for (const char *line = head; line != NULL && line < end; line = memchr(line, '\n', (size_t)(end - line))) {
		if (*line == '\n')
			line++;
		if ((size_t)(end - line) > name_length && (line[0] | 0x20) == name[0] &&
		    strncasecmp(line, name, name_length) == 0)
			return strtoull(line + name_length, NULL, 10); /* stops at the CR */
	}
	return absent;
}
