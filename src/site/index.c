/* Linear probing over numbers alone. Removing moves later ones of the run back over the hole: there are no tombstones. */
#include "site/site_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { FIRST_SLOTS = 8 };

void index_free(struct index *index)
{
	free(index->slots);
	index->slots = NULL;
	index->capacity = index->count = 0;
}

static uint32_t home(const struct index *index, uint64_t hash)
{
	return (uint32_t)hash & (index->capacity - 1);
}

static void place(struct index *index, uint32_t number)
{
	uint32_t at = home(index, index->hash_of(index->owner, number));
	while (index->slots[at] != 0)
		at = (at + 1) & (index->capacity - 1);
	index->slots[at] = number + 1;
}

static void grow(struct index *index)
{
	uint32_t *old = index->slots, old_capacity = index->capacity;
	index->capacity = old_capacity ? old_capacity * 2 : FIRST_SLOTS;
	index->slots = calloc(index->capacity, sizeof(uint32_t));
	CHECK(index->slots != NULL);
	for (uint32_t i = 0; i < old_capacity; i++)
		if (old[i] != 0)
			place(index, old[i] - 1);
	free(old);
}

void index_add(struct index *index, uint32_t number)
{
	if (index->count >= index->capacity - index->capacity / 4)
		grow(index);
	place(index, number);
	index->count++;
}

static uint32_t slot_of(const struct index *index, uint32_t number)
{
	CHECK(index->count > 0);
	uint32_t at = home(index, index->hash_of(index->owner, number));
	while (index->slots[at] != number + 1) {
		CHECK(index->slots[at] != 0);
		at = (at + 1) & (index->capacity - 1);
	}
	return at;
}

void index_remove(struct index *index, uint32_t number)
{
	uint32_t mask = index->capacity - 1;
	uint32_t hole = slot_of(index, number);
	index->slots[hole] = 0;
	index->count--;
	for (uint32_t at = (hole + 1) & mask; index->slots[at] != 0; at = (at + 1) & mask) {
		uint32_t wanted = home(index, index->hash_of(index->owner, index->slots[at] - 1));
		if (((at - wanted) & mask) >= ((at - hole) & mask)) {
			index->slots[hole] = index->slots[at];
			index->slots[at] = 0;
			hole = at;
		}
	}
}

void index_rename(struct index *index, uint32_t from, uint32_t to)
{
	index->slots[slot_of(index, from)] = to + 1;
}

uint32_t index_next(const struct index *index, uint64_t hash, uint32_t *cursor)
{
	if (index->count == 0)
		return SITE_NONE;
	uint32_t at = (home(index, hash) + *cursor) & (index->capacity - 1);
	(*cursor)++;
	return index->slots[at] == 0 ? SITE_NONE : index->slots[at] - 1;
}
