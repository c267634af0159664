#include "sim/choir_rows.h"

#include "base/check.h"

#include <stdlib.h>

struct str choir_row_key(const struct choir_row *row)
{
	return str_make(row->bytes, row->key_length);
}

struct str choir_row_value(const struct choir_row *row)
{
	return str_make(row->bytes + row->key_length, row->length);
}

static void forget_changes(struct choir_rows *rows, bool free_before)
{
	for (uint32_t i = 0; i < rows->changes_count; i++) {
		if (free_before)
			free(rows->changes[i].before);
		free(rows->changes[i].key);
	}
	rows->changes_count = 0;
}

void choir_rows_free(struct choir_rows *rows)
{
	forget_changes(rows, true);
	free(rows->changes);
	for (uint32_t i = 0; i < REPLICA_TABLES; i++) {
		for (uint32_t k = 0; k < rows->tables[i].count; k++)
			free(rows->tables[i].rows[k]);
		free(rows->tables[i].rows);
	}
	*rows = (struct choir_rows){0};
}

uint32_t choir_rows_find(const struct choir_rows *rows, enum replica_table table, struct str from)
{
	const struct choir_table *it = &rows->tables[table];
	uint32_t low = 0, high = it->count;
	while (low < high) {
		uint32_t middle = low + (high - low) / 2;
		if (str_compare(choir_row_key(it->rows[middle]), from) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static bool is_at(const struct choir_table *table, uint32_t at, struct str key)
{
	return at < table->count && str_equal(choir_row_key(table->rows[at]), key);
}

const struct choir_row *choir_rows_get(const struct choir_rows *rows, enum replica_table table, struct str key)
{
	uint32_t at = choir_rows_find(rows, table, key);
	return is_at(&rows->tables[table], at, key) ? rows->tables[table].rows[at] : NULL;
}

static struct choir_row *row_new(struct str key, struct str row)
{
	struct choir_row *it = malloc(sizeof(*it) + key.length + row.length);
	CHECK(it != NULL);
	it->key_length = (uint32_t)key.length;
	it->length = (uint32_t)row.length;
	memcpy(it->bytes, key.at, key.length);
	if (row.length > 0)
		memcpy(it->bytes + key.length, row.at, row.length);
	return it;
}

/* Sets what stands under a key (NULL: nothing) and returns what stood there. */
static struct choir_row *set(struct choir_table *table, uint32_t at, struct str key, struct choir_row *row)
{
	bool there = is_at(table, at, key);
	struct choir_row *before = there ? table->rows[at] : NULL;
	if (there && row) {
		table->rows[at] = row;
	} else if (there) {
		memmove(&table->rows[at], &table->rows[at + 1], (table->count - at - 1) * sizeof(struct choir_row *));
		table->count--;
	} else if (row) {
		if (table->count == table->capacity) {
			table->capacity = table->capacity ? 2 * table->capacity : 16;
			table->rows = realloc(table->rows, table->capacity * sizeof(struct choir_row *));
			CHECK(table->rows != NULL);
		}
		memmove(&table->rows[at + 1], &table->rows[at], (table->count - at) * sizeof(struct choir_row *));
		table->rows[at] = row;
		table->count++;
	}
	return before;
}

static void change(struct choir_rows *rows, enum replica_table table, struct str key, struct choir_row *row)
{
	if (rows->changes_count == rows->changes_capacity) {
		rows->changes_capacity = rows->changes_capacity ? 2 * rows->changes_capacity : 16;
		rows->changes = realloc(rows->changes, rows->changes_capacity * sizeof(*rows->changes));
		CHECK(rows->changes != NULL);
	}
	struct choir_change *it = &rows->changes[rows->changes_count++];
	*it = (struct choir_change){.table = (uint8_t)table, .after = row, .key_length = (uint32_t)key.length};
	it->key = malloc(key.length + 1);
	CHECK(it->key != NULL);
	memcpy(it->key, key.at, key.length);
	struct str own = str_make(it->key, key.length);
	it->before = set(&rows->tables[table], choir_rows_find(rows, table, own), own, row);
}

void choir_rows_put(struct choir_rows *rows, enum replica_table table, struct str key, struct str row)
{
	change(rows, table, key, row_new(key, row));
}

void choir_rows_remove(struct choir_rows *rows, enum replica_table table, struct str key)
{
	if (choir_rows_get(rows, table, key))
		change(rows, table, key, NULL);
}

void choir_rows_commit(struct choir_rows *rows)
{
	forget_changes(rows, true);
}

void choir_rows_rollback(struct choir_rows *rows)
{
	for (uint32_t i = rows->changes_count; i-- > 0;) {
		const struct choir_change *it = &rows->changes[i];
		struct str key = str_make(it->key, it->key_length);
		uint32_t at = choir_rows_find(rows, (enum replica_table)it->table, key);
		free(set(&rows->tables[it->table], at, key, it->before));
	}
	forget_changes(rows, false);
}
