/* A hash map from byte strings to pointers: open addressing, keyed hash, grows by doubling.
 *
 * Keys are not copied: they must live as long as the map, or until they are removed. Values may not be NULL. Not safe for
 * concurrent change; concurrent look-ups of a map that nobody changes are fine.
 */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include "base/hash.h"

struct map_slot {
	struct str key;
	uint64_t hash;
	void *value; /* NULL: free */
};

struct map {
	struct hash_key key;
	struct map_slot *slots;
	size_t capacity; /* 0 or a power of two */
	size_t count;
};

void map_init(struct map *map, struct hash_key key);
void map_free(struct map *map);

/* The value, or NULL. */
void *map_get(const struct map *map, struct str key);

/* Sets a value. Returns the one it replaced (the old key slice stays in use), or NULL. */
void *map_set(struct map *map, struct str key, void *value);

/* Takes an entry out. Returns its value, or NULL if there was none. */
void *map_remove(struct map *map, struct str key);

/* Visits all, in no particular order: start with *cursor = 0; false at the end. The map may not change meanwhile. */
bool map_next(const struct map *map, size_t *cursor, struct str *key, void **value);

#endif
