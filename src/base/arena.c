/* The chunk at the head of the list is the current one whenever `at` is set. A request that is large beside a chunk gets
 * a chunk of its own, linked behind the head: the room left in the current chunk is not lost, and arena_reset() finds an
 * ordinary chunk to keep.
 *
 * Under AddressSanitizer all that is not handed out is poisoned, and a guard follows each piece. The inline path of
 * arena.h knows nothing of that, so `end` is then kept equal to `at`, which sends every request here.
 */
#include "base/arena.h"

#include "base/check.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_ASAN 1
#endif
#endif

#ifdef ARENA_ASAN
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#define ASAN_UNPOISON_MEMORY_REGION(at, bytes) ((void)(at), (void)(bytes))
#endif

enum {
	CHUNK_BYTES = 4096, /* the default */
	LARGE_SHARE = 4,    /* past 1/4 of a chunk a request gets its own: what a chunk may waste at its end is bounded */
#ifdef ARENA_ASAN
	ALIGN_LEAST = 8, /* shadow memory describes granules of 8 bytes, and only their first bytes can be the good ones */
	GUARD_BYTES = 16,
#else
	ALIGN_LEAST = 1,
	GUARD_BYTES = 0,
#endif
};

struct arena_chunk {
	struct arena_chunk *next;
	char *end;
	alignas(max_align_t) char bytes[];
};

static struct arena_chunk *chunk_new(size_t bytes)
{
	size_t total;
	if (__builtin_add_overflow(sizeof(struct arena_chunk), bytes, &total))
		return NULL;
	struct arena_chunk *chunk = malloc(total);
	if (chunk == NULL)
		return NULL;
	chunk->end = chunk->bytes + bytes;
	ASAN_POISON_MEMORY_REGION(chunk->bytes, bytes);
	return chunk;
}

static void chunks_free(struct arena_chunk *chunk)
{
	while (chunk != NULL) {
		struct arena_chunk *next = chunk->next;
		free(chunk);
		chunk = next;
	}
}

static void set_free(struct arena *arena, char *at, char *end)
{
	arena->at = at;
#ifdef ARENA_ASAN
	(void)end;
	arena->end = at;
#else
	arena->end = end;
#endif
}

/* Cuts an aligned piece from between *at and end and moves *at behind it; NULL if it does not fit. */
static void *cut(struct arena *arena, char **at, char *end, size_t bytes, size_t align)
{
	size_t pad = (size_t)(-(size_t)*at) & (align - 1);
	size_t room = (size_t)(end - *at);
	if (room < pad || room - pad < bytes)
		return NULL;
	char *memory = *at + pad;
	size_t rest = room - pad - bytes;
	ASAN_UNPOISON_MEMORY_REGION(memory, bytes);
	*at = memory + bytes + (rest > GUARD_BYTES ? GUARD_BYTES : rest);
	arena->used_bytes += bytes + pad;
	return memory;
}

static void *alloc_alone(struct arena *arena, size_t bytes, size_t align, size_t worst)
{
	struct arena_chunk *chunk = chunk_new(worst);
	if (chunk == NULL)
		return NULL;
	if (arena->at != NULL) {
		chunk->next = arena->chunks->next;
		arena->chunks->next = chunk;
	} else {
		chunk->next = arena->chunks;
		arena->chunks = chunk;
	}
	char *at = chunk->bytes;
	return cut(arena, &at, chunk->end, bytes, align);
}

static void *alloc_current(struct arena *arena, size_t bytes, size_t align)
{
	char *at = arena->at;
	void *memory = cut(arena, &at, arena->chunks->end, bytes, align);
	if (memory != NULL)
		set_free(arena, at, arena->chunks->end);
	return memory;
}

void arena_init(struct arena *arena, size_t chunk_bytes)
{
	*arena = (struct arena){.chunk_bytes = chunk_bytes != 0 ? chunk_bytes : CHUNK_BYTES};
}

void arena_free(struct arena *arena)
{
	chunks_free(arena->chunks);
	arena_init(arena, arena->chunk_bytes);
}

void arena_reset(struct arena *arena)
{
	if (arena->at == NULL) {
		arena_free(arena);
		return;
	}
	struct arena_chunk *kept = arena->chunks;
	chunks_free(kept->next);
	kept->next = NULL;
	ASAN_POISON_MEMORY_REGION(kept->bytes, (size_t)(kept->end - kept->bytes));
	set_free(arena, kept->bytes, kept->end);
	arena->used_bytes = 0;
}

void *arena_try_alloc(struct arena *arena, size_t bytes, size_t align)
{
	CHECK(align != 0 && (align & (align - 1)) == 0);
	align = align > ALIGN_LEAST ? align : ALIGN_LEAST;
	if (arena->at != NULL) {
		void *memory = alloc_current(arena, bytes, align);
		if (memory != NULL)
			return memory;
	}
	size_t worst;
	if (__builtin_add_overflow(bytes, align - 1, &worst))
		return NULL;
	if (worst > arena->chunk_bytes / LARGE_SHARE)
		return alloc_alone(arena, bytes, align, worst);
	struct arena_chunk *chunk = chunk_new(arena->chunk_bytes);
	if (chunk == NULL)
		return NULL;
	chunk->next = arena->chunks;
	arena->chunks = chunk;
	set_free(arena, chunk->bytes, chunk->end);
	return alloc_current(arena, bytes, align);
}

void *arena_alloc_slow(struct arena *arena, size_t bytes, size_t align)
{
	void *memory = arena_try_alloc(arena, bytes, align);
	CHECK(memory != NULL);
	return memory;
}

void *arena_zalloc(struct arena *arena, size_t count, size_t bytes, size_t align)
{
	size_t total;
	bool overflows = __builtin_mul_overflow(count, bytes, &total);
	CHECK(!overflows);
	return memset(arena_alloc(arena, total, align), 0, total);
}

char *arena_copy(struct arena *arena, const char *bytes, size_t length)
{
	CHECK(length < SIZE_MAX);
	char *copy = arena_alloc(arena, length + 1, 1);
	if (length > 0)
		memcpy(copy, bytes, length);
	copy[length] = '\0';
	return copy;
}
