/* What `cheops get` and `cheops ops` share: how lists are asked for, and how things are shown. */
#ifndef CLI_LISTING_H
#define CLI_LISTING_H

#include "cli/client.h"
#include "cli/table.h"

enum cli_format { CLI_FORMAT_TABLE, CLI_FORMAT_JSON, CLI_FORMAT_YAML };

/* The value of --output. CLI_USAGE: it is none, and the user has been told. */
int cli_format_take(const char *command, const char *value, enum cli_format *format);

/* Adds `&NAME=VALUE`, or `?NAME=VALUE` as the first; nothing where the value is NULL. */
void cli_query_add(struct buf *target, const char *name, const char *value);

/* Asks for all pages of a list, and puts them into one. CLI_FINE: *json is the caller's. */
struct cli_list {
	const struct http_address *address;
	struct str target;
	const char *name; /* of the array in the answer */
};
int cli_list_ask(const struct cli_list *list, json_t **json);

/* "Site1 applied, Site2 pending (unknown since 12:03:14)". */
void cli_put_members(struct buf *out, const json_t *item);
/* Of a state of a copy or an operation. */
const char *cli_state_colour(struct str state);

/* Shows something, once or again and again. */
struct cli_show {
	enum cli_format format;
	bool watch;
	int (*show)(const void *context, struct buf *out); /* returns the exit status, and has told what is wrong */
	const void *context;
};
int cli_show_run(const struct cli_show *show);

#endif
