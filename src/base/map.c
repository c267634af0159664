/* Linear probing. Removing an entry moves later ones of its run back over the hole, so there are no tombstones and a
 * look-up always ends at the first free slot. */
#include "base/map.h"

#include "base/check.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 8 };

/* The slot that holds the key, or the free one where it would go. The map must have slots. */
static struct map_slot *find(const struct map *map, struct str key, uint64_t hash)
{
	size_t mask = map->capacity - 1;
	size_t i = (size_t)hash & mask;
	while (map->slots[i].value != NULL && !(map->slots[i].hash == hash && str_equal(map->slots[i].key, key)))
		i = (i + 1) & mask;
	return &map->slots[i];
}

static void grow(struct map *map)
{
	CHECK(map->capacity <= SIZE_MAX / 2);
	struct map bigger = {.key = map->key, .capacity = map->capacity > 0 ? map->capacity * 2 : FIRST_SLOTS};
	bigger.count = map->count;
	bigger.slots = calloc(bigger.capacity, sizeof(*bigger.slots));
	CHECK(bigger.slots != NULL);
	for (size_t i = 0; i < map->capacity; i++)
		if (map->slots[i].value != NULL)
			*find(&bigger, map->slots[i].key, map->slots[i].hash) = map->slots[i];
	free(map->slots);
	*map = bigger;
}

void map_init(struct map *map, struct hash_key key)
{
	*map = (struct map){.key = key};
}

void map_free(struct map *map)
{
	free(map->slots);
	map_init(map, map->key);
}

void *map_get(const struct map *map, struct str key)
{
	if (map->count == 0)
		return NULL;
	return find(map, key, hash_bytes(&map->key, key))->value;
}

void *map_set(struct map *map, struct str key, void *value)
{
	CHECK(value != NULL);
	uint64_t hash = hash_bytes(&map->key, key);
	if (map->count > 0) {
		struct map_slot *slot = find(map, key, hash);
		void *old = slot->value;
		if (old != NULL) {
			slot->value = value;
			return old;
		}
	}
	/* At most 3/4 full: probes stay short, and find() always meets a free slot. */
	if (map->count >= map->capacity / 4 * 3)
		grow(map);
	*find(map, key, hash) = (struct map_slot){.key = key, .hash = hash, .value = value};
	map->count++;
	return NULL;
}

void *map_remove(struct map *map, struct str key)
{
	if (map->count == 0)
		return NULL;
	struct map_slot *slot = find(map, key, hash_bytes(&map->key, key));
	void *old = slot->value;
	if (old == NULL)
		return NULL;
	size_t mask = map->capacity - 1;
	size_t hole = (size_t)(slot - map->slots);
	for (size_t i = (hole + 1) & mask; map->slots[i].value != NULL; i = (i + 1) & mask) {
		/* It may move if the hole lies between where it wants to be and where it is. */
		size_t from_home = (i - (size_t)map->slots[i].hash) & mask;
		size_t from_hole = (i - hole) & mask;
		if (from_home >= from_hole) {
			map->slots[hole] = map->slots[i];
			hole = i;
		}
	}
	map->slots[hole] = (struct map_slot){0};
	map->count--;
	return old;
}

bool map_next(const struct map *map, size_t *cursor, struct str *key, void **value)
{
	while (*cursor < map->capacity) {
		const struct map_slot *slot = &map->slots[(*cursor)++];
		if (slot->value != NULL) {
			*key = slot->key;
			*value = slot->value;
			return true;
		}
	}
	return false;
}
