/* Memory arenas: many small allocations, freed in one place.
 *
 * One arena per request or operation. Memory comes in chunks; nothing is freed alone. Out of memory aborts, except in
 * arena_try_alloc(), which is for sizes that a peer chooses. An arena belongs to one thread at a time.
 */
#ifndef BASE_ARENA_H
#define BASE_ARENA_H

#include <stdalign.h>
#include <stddef.h>

struct arena_chunk;

struct arena {
	char *at;                   /* next free byte of the current chunk */
	char *end;                  /* end of the current chunk */
	struct arena_chunk *chunks; /* the current one first, if `at` is set */
	size_t chunk_bytes;         /* size of an ordinary chunk */
	size_t used_bytes;          /* handed out since init or reset, for accounting */
};

/* An arena that takes memory in chunks of at least chunk_bytes (0: a default). Allocates nothing yet. */
void arena_init(struct arena *arena, size_t chunk_bytes);

/* Frees all. The arena can be used again. */
void arena_free(struct arena *arena);

/* Forgets all that was handed out but keeps one ordinary chunk, so that a reused arena does not touch malloc. */
void arena_reset(struct arena *arena);

/* Slow path of arena_alloc(): takes a new chunk. */
void *arena_alloc_slow(struct arena *arena, size_t bytes, size_t align);

/* As arena_alloc(), but NULL where memory cannot be had. */
void *arena_try_alloc(struct arena *arena, size_t bytes, size_t align);

/* Memory that is not initialised, aligned to `align` (a power of two). Never NULL, also for 0 bytes. */
static inline void *arena_alloc(struct arena *arena, size_t bytes, size_t align)
{
	size_t pad = (size_t)(-(size_t)arena->at) & (align - 1);
	size_t room = (size_t)(arena->end - arena->at);
	if (__builtin_expect(arena->at == NULL || room < pad || room - pad < bytes, 0))
		return arena_alloc_slow(arena, bytes, align);
	char *memory = arena->at + pad;
	arena->at = memory + bytes;
	arena->used_bytes += bytes + pad;
	return memory;
}

/* The zeroed forms that most code wants. */
void *arena_zalloc(struct arena *arena, size_t count, size_t bytes, size_t align);

#define arena_new(arena, type) ((type *)arena_zalloc((arena), 1, sizeof(type), alignof(type)))
#define arena_array(arena, type, count) ((type *)arena_zalloc((arena), (count), sizeof(type), alignof(type)))

/* A copy of `length` bytes with a NUL behind it. */
char *arena_copy(struct arena *arena, const char *bytes, size_t length);

#endif
