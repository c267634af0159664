/* The listening socket. */
#ifndef SAMPLE_LISTENER_H
#define SAMPLE_LISTENER_H

enum { LISTENER_NAME_BYTES = 128 };

/*
 * Listens on HOST:PORT, where a host with colons is in brackets and port 0 means any. `name` becomes what it really listens
 * on, as the beginning of a URL has it. A file descriptor; or -1, having said why on the standard error.
 */
int listener_open(const char *address, char name[LISTENER_NAME_BYTES]);

#endif
