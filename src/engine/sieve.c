/* What is surely no replica's id: answered from memory.
 *
 * Each request that names an item is asked about: is that id a replica's? It mostly is not, and to be told so by the store takes a session of
 * it and a way down its tree. Here are, for all replicants that are or were known since the start, their meta-ids and their keys of
 * locals, as bits: a key that lacks one of its bits was never put. One that has them all may have been, and the store is asked. And the types
 * that have replicas here, as they are, which is asked for each answer.
 *
 *   1. engine_open() starts a thread that goes through what is stored, with a session of its own. Until it is done, all may be
 *   2. whatever the engine puts meanwhile and later is added when it is put, before anybody can know of it
 *   3. nothing is taken out: what is deleted is asked for in vain, until the next start
 *
 * The bits (a Bloom filter; Bloom 1970) of one key are all in one line of the cache (blocked: Putze, Sanders, Singler 2007): to ask costs
 * one miss at most. When as many keys were put as a layer is made for, one twice as large is put on top, and both are asked. Bits are only
 * ever set, a layer and a type stay where they are once they are published: any thread asks without a lock. Past a bound nothing is
 * added, and all may be. */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

enum {
	BLOCK_WORDS = 8, /* of 64 bits: 64 bytes */
	KEY_BITS = 7,    /* of 512, nine bits of the hash each */
	BLOCK_KEYS = 42, /* twelve bits for a key: one of 200 that were never put is asked for in vain */
	FIRST_KEYS = 4096,
	MOST_BLOCKS = 1 << 20, /* of a layer: 64 MiB, 44 million keys */
};

struct sieve_layer {
	uint64_t blocks;
	uint64_t keys, keys_most; /* of those that add */
	_Alignas(64) atomic_uint_least64_t words[];
};

struct sieve_type {
	struct sieve_type *next;
	struct str prefix; /* of its keys of locals */
	char bytes[];
};

/* ---- Keys ------------------------------------------------------------------------------------------------------------ */

static uint64_t hash_of(const struct engine *engine, enum replica_table table, struct str key)
{
	struct hash_key its = engine->options.hash_key;
	its.k0 ^= (uint64_t)table;
	return hash_bytes(&its, key);
}

static atomic_uint_least64_t *block_of(struct sieve_layer *layer, uint64_t hash)
{
	return &layer->words[(hash >> 32) * layer->blocks / (UINT64_C(1) << 32) * BLOCK_WORDS];
}

static uint64_t bits_of(uint64_t hash)
{
	return hash * UINT64_C(0x9e3779b97f4a7c15); /* others than those that chose the block */
}

static bool layer_has(struct sieve_layer *layer, uint64_t hash)
{
	const atomic_uint_least64_t *block = block_of(layer, hash);
	uint64_t bits = bits_of(hash);
	for (int i = 0; i < KEY_BITS; i++, bits >>= 9)
		if (!(atomic_load_explicit(&block[bits >> 6 & 7], memory_order_relaxed) >> (bits & 63) & 1))
			return false;
	return true;
}

static bool may_have(const struct sieve *sieve, uint64_t hash)
{
	for (int i = 0; i < ENGINE_SIEVE_LAYERS; i++) {
		struct sieve_layer *layer = atomic_load_explicit(&sieve->layers[i], memory_order_acquire);
		if (!layer)
			return false;
		if (layer_has(layer, hash))
			return true;
	}
	return true; /* all are in use, and perhaps full */
}

static struct sieve_layer *layer_new(uint64_t keys)
{
	uint64_t blocks = keys / BLOCK_KEYS + 1;
	blocks = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
	size_t bytes = sizeof(struct sieve_layer) + blocks * BLOCK_WORDS * sizeof(uint64_t);
	struct sieve_layer *layer = aligned_alloc(64, (bytes + 63) & ~(size_t)63);
	CHECK(layer);
	memset((void *)layer, 0, bytes);
	layer->blocks = blocks;
	layer->keys_most = blocks * BLOCK_KEYS;
	return layer;
}

/* The last one, if it has room, or a new one on top. NULL: there are as many as may be. */
static struct sieve_layer *top_layer(struct sieve *sieve)
{
	uint64_t keys = sieve->keys_expected;
	for (int i = 0; i < ENGINE_SIEVE_LAYERS; i++) {
		struct sieve_layer *layer = atomic_load_explicit(&sieve->layers[i], memory_order_relaxed);
		if (layer && layer->keys < layer->keys_most) {
			return layer;
		} else if (layer) {
			keys = 2 * layer->keys_most;
			continue;
		}
		layer = layer_new(keys);
		atomic_store_explicit(&sieve->layers[i], layer, memory_order_release);
		return layer;
	}
	return NULL;
}

static void add_key(struct engine *engine, enum replica_table table, struct str key)
{
	struct sieve *sieve = &engine->sieve;
	uint64_t hash = hash_of(engine, table, key), bits = bits_of(hash);
	if (may_have(sieve, hash))
		return;
	pthread_mutex_lock(&sieve->lock);
	struct sieve_layer *layer = top_layer(sieve);
	if (layer) {
		atomic_uint_least64_t *block = block_of(layer, hash);
		for (int i = 0; i < KEY_BITS; i++, bits >>= 9)
			atomic_fetch_or_explicit(&block[bits >> 6 & 7], UINT64_C(1) << (bits & 63), memory_order_relaxed);
		layer->keys++;
	} else {
		atomic_store_explicit(&sieve->full, true, memory_order_relaxed);
	}
	pthread_mutex_unlock(&sieve->lock);
}

/* ---- Types ----------------------------------------------------------------------------------------------------------- */

static bool has_type(const struct sieve *sieve, struct str prefix)
{
	unsigned bucket =
		(unsigned char)(prefix.length + (unsigned char)prefix.at[prefix.length - 1]) % ENGINE_SIEVE_BUCKETS;
	struct sieve_type *type = atomic_load_explicit(&sieve->types[bucket], memory_order_acquire);
	while (type && !str_equal(type->prefix, prefix))
		type = type->next;
	return type != NULL;
}

static void add_type(struct sieve *sieve, struct str prefix)
{
	unsigned bucket =
		(unsigned char)(prefix.length + (unsigned char)prefix.at[prefix.length - 1]) % ENGINE_SIEVE_BUCKETS;
	if (has_type(sieve, prefix))
		return;
	struct sieve_type *type = malloc(sizeof(*type) + prefix.length);
	CHECK(type);
	memcpy(type->bytes, prefix.at, prefix.length);
	type->prefix = str_make(type->bytes, prefix.length);
	pthread_mutex_lock(&sieve->lock);
	type->next = atomic_load_explicit(&sieve->types[bucket], memory_order_relaxed);
	atomic_store_explicit(&sieve->types[bucket], type, memory_order_release); /* twice in it does no harm */
	pthread_mutex_unlock(&sieve->lock);
}

/* ---- Adding ---------------------------------------------------------------------------------------------------------- */

void engine_sieve_add(struct engine *engine, uint32_t table, struct str key)
{
	struct str prefix;
	if (table != REPLICA_REPLICANTS && table != REPLICA_LOCALS)
		return;
	add_key(engine, table, key);
	if (table == REPLICA_LOCALS && engine_local_type(key, &prefix))
		add_type(&engine->sieve, prefix);
}

static int add_stored(struct engine *engine, struct store_session *session, uint32_t table)
{
	enum { COOL_ROWS = 1 << 16 };
	struct store_cursor *cursor;
	struct store_row row;
	uint32_t rows = 0;
	int code = store_scan(session, &(struct store_range){.table = table, .index = -1}, &cursor, NULL);
	if (code)
		return code;
	do {
		code = atomic_load_explicit(&engine->sieve.stop, memory_order_relaxed) ? ERR_UNAVAILABLE
		                                                                       : store_next(cursor, &row, NULL);
		if (code > 0)
			engine_sieve_add(engine, table, row.key);
		if (code > 0 && ++rows % COOL_ROWS == 0)
			store_cool(engine->store); /* all of the file is read, once: it is not to stay */
	} while (code > 0);
	store_cool(engine->store);
	store_cursor_free(cursor);
	return code;
}

void engine_sieve_fill(struct engine *engine)
{
	struct store_session *session;
	if (store_begin_read(engine->store, &session, NULL) != 0)
		return;
	int code = add_stored(engine, session, REPLICA_LOCALS);
	if (code == 0)
		code = add_stored(engine, session, REPLICA_REPLICANTS);
	store_abort(session);
	/* A row that cannot be read: what is behind it is not known, and all may be. */
	atomic_store_explicit(&engine->sieve.ready, code == 0, memory_order_release);
}

static void *fill(void *context)
{
	engine_sieve_fill(context);
	return NULL;
}

/* ---- Life ------------------------------------------------------------------------------------------------------------ */

void engine_sieve_open(struct engine *engine)
{
	struct store_usage usage = {0};
	pthread_mutex_init(&engine->sieve.lock, NULL);
	store_usage(engine->store, &usage, NULL);
	engine->sieve.keys_expected = FIRST_KEYS + usage.rows + usage.rows / 4;
}

void engine_sieve_start(struct engine *engine)
{
	/* Where there is no thread to be had, the store is asked each time. */
	engine->sieve.started = pthread_create(&engine->sieve.thread, NULL, fill, engine) == 0;
}

void engine_sieve_close(struct engine *engine)
{
	struct sieve *sieve = &engine->sieve;
	atomic_store(&sieve->stop, true);
	if (sieve->started)
		pthread_join(sieve->thread, NULL);
	for (int i = 0; i < ENGINE_SIEVE_LAYERS; i++)
		free(atomic_load(&sieve->layers[i]));
	for (int i = 0; i < ENGINE_SIEVE_BUCKETS; i++) {
		for (struct sieve_type *type = atomic_load(&sieve->types[i]), *next; type; type = next) {
			next = type->next;
			free(type);
		}
	}
	if (sieve->keys_expected > 0)
		pthread_mutex_destroy(&sieve->lock);
}

/* ---- In any thread ---------------------------------------------------------------------------------------------------- */

bool engine_sieve_knows(const struct engine *engine)
{
	return atomic_load_explicit(&engine->sieve.ready, memory_order_acquire);
}

bool engine_sieve_may_have(const struct engine *engine, enum replica_table table, struct str key)
{
	const struct sieve *sieve = &engine->sieve;
	return !engine_sieve_knows(engine) || atomic_load_explicit(&sieve->full, memory_order_relaxed) ||
	       may_have(sieve, hash_of(engine, table, key));
}

bool engine_sieve_has_type(const struct engine *engine, struct str prefix)
{
	return has_type(&engine->sieve, prefix);
}
