#include "agent/notify.h"

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

/* A reload carries the time at which it began, so that systemd can tell an old message from a new one. */
static void write_message(char *out, size_t size, enum agent_notify what)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	unsigned long long us = (unsigned long long)now.tv_sec * 1000000 + (unsigned long long)now.tv_nsec / 1000;
	if (what == AGENT_NOTIFY_READY)
		snprintf(out, size, "READY=1");
	else if (what == AGENT_NOTIFY_STOPPING)
		snprintf(out, size, "STOPPING=1");
	else
		snprintf(out, size, "RELOADING=1\nMONOTONIC_USEC=%llu", us);
}

void agent_notify(enum agent_notify what)
{
	const char *path = getenv("NOTIFY_SOCKET");
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!path || (path[0] != '/' && path[0] != '@') || strlen(path) >= sizeof(address.sun_path))
		return;
	memcpy(address.sun_path, path, strlen(path));
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	char message[80];
	write_message(message, sizeof(message), what);
	socklen_t length = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(path));
	sendto(fd, message, strlen(message), MSG_NOSIGNAL | MSG_DONTWAIT, (const struct sockaddr *)&address, length);
	close(fd);
}
