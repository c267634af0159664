/* Rows in memory, as a store would keep them: tables in the order of their keys, changes that become durable together or
 * not at all. */
#ifndef SIM_CHOIR_ROWS_H
#define SIM_CHOIR_ROWS_H

#include "replica/replica.h"

struct choir_row {
	uint32_t key_length;
	uint32_t length;
	char bytes[]; /* key, row */
};

struct choir_table {
	struct choir_row **rows;
	uint32_t count;
	uint32_t capacity;
};

/* What a change replaced. */
struct choir_change {
	uint8_t table;
	struct choir_row *before; /* NULL: there was none */
	struct choir_row *after;  /* NULL: there is none; owned by the table */
	char *key;
	uint32_t key_length;
};

struct choir_rows {
	struct choir_table tables[REPLICA_TABLES];
	struct choir_change *changes; /* since the last commit */
	uint32_t changes_count;
	uint32_t changes_capacity;
};

/* A zeroed struct has no rows. */
void choir_rows_free(struct choir_rows *rows);
struct str choir_row_key(const struct choir_row *row);
struct str choir_row_value(const struct choir_row *row);

/* NULL: there is none. */
const struct choir_row *choir_rows_get(const struct choir_rows *rows, enum replica_table table, struct str key);
void choir_rows_put(struct choir_rows *rows, enum replica_table table, struct str key, struct str row);
void choir_rows_remove(struct choir_rows *rows, enum replica_table table, struct str key);
/* The first row whose key is `from` or later. */
uint32_t choir_rows_find(const struct choir_rows *rows, enum replica_table table, struct str from);

void choir_rows_commit(struct choir_rows *rows);
void choir_rows_rollback(struct choir_rows *rows);

#endif
