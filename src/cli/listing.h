/* What `cheops get`, `cheops ops` and `cheops sites` share: how lists are asked for, and how members are shown. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli/table.h"
#include "cli/watch.h"

/* Adds `&NAME=VALUE`, or `?NAME=VALUE` as the first; nothing where the value is NULL. */
void cli_query_add(struct buf *target, const char *name, const char *value);

/* Asks for all pages of a list, and puts them into one. CLI_FINE: *json is the caller's. */
struct cli_list {
	const struct http_address *address;
	struct str target;
	const char *name; /* of the array in the answer */
};
int cli_list_ask(const struct cli_list *list, json_t **json);

/* Its members by the names of their sites: at most LIMIT_REPLICA_MEMBERS. */
size_t cli_members(const json_t *item, json_t **sorted);
/* "Site1 applied, Site2 pending (unknown since 12:03:14)". */
void cli_put_members(struct buf *out, const json_t *item);
/* Of a state of a copy or an operation. */
const char *cli_state_colour(struct str state);

#endif
