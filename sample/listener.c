#include "listener.h"

#include <errno.h>
#include <netdb.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "limits.h"
#include "memory.h"

/* getaddrinfo() takes a number that is too large, and makes another of it. */
static bool is_port(const char *text)
{
	size_t length = strlen(text);
	return length > 0 && length <= 5 && strspn(text, "0123456789") == length && strtoul(text, NULL, 10) <= 65535;
}

/* "[::1]:80" is "::1" and "80". Changes the text. */
static bool split(char *address, char **host, char **port)
{
	char *colon = strrchr(address, ':');
	if (colon == NULL || colon == address || !is_port(colon + 1))
		return false;
	*colon = '\0';
	*host = address;
	*port = colon + 1;
	if (address[0] != '[')
		return strchr(address, ':') == NULL;
	char *bracket = strchr(address, ']');
	if (bracket == NULL || bracket[1] != '\0')
		return false;
	*bracket = '\0';
	*host = address + 1;
	return true;
}

static int listen_on(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, info->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, info->ai_protocol);
	if (fd < 0)
		return -1;
	int yes = 1;
	/* A restart need not wait for the old connections to be forgotten. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, LIMIT_CONNECTIONS) == 0)
		return fd;
	int saved = errno;
	close(fd);
	errno = saved;
	return -1;
}

static void name_of(int fd, char name[LISTENER_NAME_BYTES])
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof(address);
	char host[64] = "?";
	char port[16] = "?";
	if (getsockname(fd, (struct sockaddr *)&address, &length) == 0)
		getnameinfo((struct sockaddr *)&address, length, host, sizeof(host), port, sizeof(port),
		            NI_NUMERICHOST | NI_NUMERICSERV);
	bool colons = strchr(host, ':') != NULL;
	snprintf(name, LISTENER_NAME_BYTES, "%s%s%s:%s", colons ? "[" : "", host, colons ? "]" : "", port);
}

int listener_open(const char *address, char name[LISTENER_NAME_BYTES])
{
	char *text = text_of("%s", address);
	char *host, *port;
	int fd = -1;
	if (!split(text, &host, &port)) {
		fprintf(stderr, "cheops-sample: --listen %s: not HOST:PORT, such as 127.0.0.1:8774 or [::1]:8774\n", address);
		goto copied;
	}
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *found = NULL;
	int status = getaddrinfo(host, port, &hints, &found);
	if (status != 0) {
		fprintf(stderr, "cheops-sample: --listen %s: %s\n", address, gai_strerror(status));
		goto copied;
	}
	for (struct addrinfo *info = found; info != NULL && fd < 0; info = info->ai_next)
		fd = listen_on(info);
	if (fd < 0)
		fprintf(stderr, "cheops-sample: cannot listen on %s: %s\n", address, strerror(errno));
	else
		name_of(fd, name);
	freeaddrinfo(found);
copied:
	free(text);
	return fd;
}
