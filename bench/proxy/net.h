/* What the programs of this benchmark share: sockets on loopback, a clock, and the bytes of a large body.
 *
 * They are test instruments, started and stopped by `run`: whatever goes wrong ends them with a sentence. */
#ifndef BENCH_PROXY_NET_H
#define BENCH_PROXY_NET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Length of the body of every small answer. */
#define ANSWER_BYTES 100

/* Prints one line to the standard error and ends with status 1. With errno's text if `code` is not 0. */
_Noreturn void die(int code, const char *format, ...) __attribute__((format(printf, 2, 3)));

uint64_t now_ns(void);

/* Parses "127.0.0.1:PORT". Anything that is not loopback is refused: this is no tool to load other machines with. */
struct sockaddr_in address_of(const char *text);

/* Without delay, and non-blocking if asked. */
int listen_on(const struct sockaddr_in *address);
int connect_to(const struct sockaddr_in *address, bool blocking);
int accept_from(int listener);
void set_non_blocking(int fd);

/* A large body repeats PATTERN_BYTES random bytes. The period is odd, so that a lost, repeated or swapped buffer shows. */
#define PATTERN_BYTES ((size_t)(1 << 20) - 3)

/* What stands at `offset` of a body; up to *length bytes, which is lowered where the period ends sooner. */
const char *pattern_at(uint64_t offset, size_t *length);
bool pattern_matches(uint64_t offset, const char *bytes, size_t length);

/* The value of a header field of a message head (which ends with an empty line), as a number; `absent` if there is none.
 * `name` is in lower case, with its colon. */
uint64_t header_number(const char *head, size_t length, const char *name, uint64_t absent);

#endif
