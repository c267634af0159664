/* Tables for people: columns as wide as they have to be, two spaces between them, colours where they are wanted. */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

#include "base/arena.h"
#include "cli/cli.h"

struct cli_cell {
	struct str text;
	const char *colour; /* an escape sequence; "": none */
	size_t width;
};

struct cli_table {
	struct arena arena;
	struct cli_cell *cells; /* row after row, the titles first */
	size_t count, capacity;
	size_t columns;
};

/* The titles end with NULL. */
void cli_table_begin(struct cli_table *table, const char *const *titles);
/* The next cell. What is not printable in it is made harmless, and "" becomes "-". */
void cli_table_add(struct cli_table *table, const char *colour, struct str text);
void cli_table_put(struct buf *out, const struct cli_table *table, bool colour);
void cli_table_free(struct cli_table *table);

#define CLI_BOLD "\033[1m"
#define CLI_DIM "\033[2m"
#define CLI_RED "\033[31m"
#define CLI_GREEN "\033[32m"
#define CLI_YELLOW "\033[33m"
#define CLI_PLAIN "\033[0m"

#endif
