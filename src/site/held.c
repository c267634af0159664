/* Records that were accepted: counted references to unchanging bytes, with what is looked at often taken out of them.
 *
 * A pool makes equal records one. An agent needs none; a simulator of ten thousand sites would otherwise hold each card
 * ten thousand times. */
#include "site/site_int.h"

#include "base/check.h"

#include <stdlib.h>

enum { POOL_FIRST = 64 };

struct site_pool {
	struct hash_key hash_key;
	struct held **chains;
	uint32_t capacity; /* a power of two */
	uint32_t count;
};

struct site_pool *site_pool_new(struct hash_key hash_key)
{
	struct site_pool *pool = calloc(1, sizeof(*pool));
	CHECK(pool != NULL);
	pool->hash_key = hash_key;
	pool->capacity = POOL_FIRST;
	pool->chains = calloc(pool->capacity, sizeof(struct held *));
	CHECK(pool->chains != NULL);
	return pool;
}

void site_pool_free(struct site_pool *pool)
{
	if (!pool)
		return;
	CHECK(pool->count == 0);
	free(pool->chains);
	free(pool);
}

static struct held **pool_chain(const struct site_pool *pool, uint64_t hash)
{
	return &pool->chains[hash & (pool->capacity - 1)];
}

static void pool_grow(struct site_pool *pool)
{
	struct held **old = pool->chains;
	uint32_t old_capacity = pool->capacity;
	pool->capacity *= 2;
	pool->chains = calloc(pool->capacity, sizeof(struct held *));
	CHECK(pool->chains != NULL);
	for (uint32_t i = 0; i < old_capacity; i++) {
		for (struct held *held = old[i], *next; held; held = next) {
			next = held->next;
			held->next = *pool_chain(pool, held->hash);
			*pool_chain(pool, held->hash) = held;
		}
	}
	free(old);
}

static struct held *pool_find(const struct site_pool *pool, uint64_t hash, struct str bytes)
{
	struct held *held = *pool_chain(pool, hash);
	while (held && !(held->hash == hash && str_equal(held_bytes(held), bytes)))
		held = held->next;
	return held;
}

static void pool_add(struct site_pool *pool, struct held *held, uint64_t hash)
{
	if (pool->count >= pool->capacity)
		pool_grow(pool);
	held->pool = pool;
	held->hash = hash;
	held->next = *pool_chain(pool, hash);
	*pool_chain(pool, hash) = held;
	pool->count++;
}

static void pool_remove(struct site_pool *pool, struct held *held)
{
	struct held **at = pool_chain(pool, held->hash);
	while (*at != held)
		at = &(*at)->next;
	*at = held->next;
	pool->count--;
}

/* Takes out of the body what the room looks at. */
static int glance(const struct site_record *record, struct held *held, struct err *err)
{
	struct str name = STR("");
	int code = 0;
	if (record->kind == SITE_CARD) {
		struct site_card card;
		code = site_card_glance(record->body, &card, err);
		name = card.name;
		held->address = card.address;
		held->when_ms = card.born_ms;
	} else if (record->kind == SITE_REMOVAL) {
		struct site_removal removal;
		code = site_removal_parse(record->body, &removal, err);
		name = removal.name;
		held->removal = (uint8_t)removal.kind;
		held->when_ms = removal.wall_ms;
	} else {
		struct site_root root;
		code = site_root_parse(record->body, &root, err);
	}
	if (code == 0 && name.length > 0) {
		held->name_at = (uint16_t)(name.at - record->bytes.at);
		held->name_length = (uint8_t)name.length;
	}
	return code;
}

struct held *held_new(struct site_pool *pool, const struct site_record *record, struct err *err)
{
	uint64_t hash = pool ? hash_bytes(&pool->hash_key, record->bytes) : 0;
	struct held *known = pool ? pool_find(pool, hash, record->bytes) : NULL;
	if (known)
		return held_keep(known);
	struct held head = {.references = 1,
	                    .length = (uint16_t)record->bytes.length,
	                    .kind = record->kind,
	                    .subject = record->subject,
	                    .version = record->version};
	if (glance(record, &head, err))
		return NULL;
	struct held *held = malloc(sizeof(*held) + record->bytes.length);
	CHECK(held != NULL);
	*held = head;
	memcpy(held->bytes, record->bytes.at, record->bytes.length);
	if (pool)
		pool_add(pool, held, hash);
	return held;
}

struct held *held_keep(struct held *held)
{
	held->references++;
	return held;
}

void held_drop(struct held *held)
{
	if (!held || --held->references > 0)
		return;
	if (held->pool)
		pool_remove(held->pool, held);
	free(held);
}

struct str held_bytes(const struct held *held)
{
	return str_make(held->bytes, held->length);
}

struct str held_name(const struct held *held)
{
	return str_make(held->bytes + held->name_at, held->name_length);
}

void held_record(const struct held *held, struct site_record *record)
{
	CHECK(site_record_parse(held_bytes(held), record, NULL) == 0);
}
