/* cheops get --verify: whether the copies of replicated resources are the same. */
#ifndef CLI_VERIFY_H
#define CLI_VERIFY_H

#include "cli/listing.h"

/* Asks the agent of each of the items (objects with an `id`), one after the other, and adds what it says as `verify`; progress goes
 * to standard error. What was deleted meanwhile is left out. CLI_FINE, or the user has been told. */
int cli_verify_ask(const struct http_address *address, json_t *items);

/* CLI_FINE: all copies are the same. CLI_DIFFERS: some differ, or are missing. CLI_REFUSED: none of these, but not all of them could
 * be compared. */
int cli_verify_status(const json_t *items);

void cli_verify_put_list(struct buf *out, const json_t *items, bool colour);
void cli_verify_put_one(struct buf *out, const json_t *item, bool colour);

#endif
