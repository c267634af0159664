/*
 * A collection of records that survives restarts: one JSON file per record below DATA/NAME/, all of them in memory too.
 *
 * A record is a JSON object with an "id" that is a good file name (they are all UUIDs of our own making). What comes out of
 * the store is a copy, the caller's own to change and to free, so that no two threads ever hold the same JSON value.
 * Changes of what is there already go between store_lock() and store_unlock(); reading, and a new record, need no lock.
 * What can fail returns 0 or -errno. Any thread may call.
 */
#ifndef SAMPLE_STORE_H
#define SAMPLE_STORE_H

#include <jansson.h>
#include <stdbool.h>

struct store;

/* Reads the collection; on failure says why on the standard error and returns NULL. */
struct store *store_open(const char *data, const char *name);
void store_close(struct store *store);

/* NULL if there is none. */
json_t *store_get(struct store *store, const char *id);

bool store_has(struct store *store, const char *id);

size_t store_count(struct store *store);

/* All records in an array, oldest first. */
json_t *store_list(struct store *store);

/* Adds or replaces a record: durable when this returns 0. -ENOSPC when the collection is full. The caller keeps `record`. */
int store_put(struct store *store, json_t *record);

/* -ENOENT if there is none. */
int store_remove(struct store *store, const char *id);

void store_lock(struct store *store);
void store_unlock(struct store *store);

#endif
