/* Waiting for an operation: what `cheops ops get` and `cheops repair` share. */
#ifndef CLI_WAITING_H
#define CLI_WAITING_H

#include "cli/client.h"

enum { CLI_TIMEOUT_S = 30, CLI_TIMEOUT_MOST_S = 600 };

struct cli_waiting {
	const char *who; /* `--wait`: `all`, `majority` or a site; NULL: nobody waits */
	bool timeout_given;
	unsigned long timeout_s; /* CLI_TIMEOUT_S at first */
};

/* The value of `--timeout`. CLI_USAGE: it is none, and the user has been told. */
int cli_timeout_take(const char *command, const char *value, struct cli_waiting *waiting);
/* Do the two options go together? */
int cli_waiting_check(const char *command, const struct cli_waiting *waiting);

/* Adds it to the question about an operation. */
void cli_waiting_add(struct buf *target, const struct cli_waiting *waiting);
/* Is it where it was waited for? CLI_REFUSED: it is not, and the user has been told why. */
int cli_waiting_status(const struct cli_waiting *waiting, const json_t *answer);

#endif
