#include "base_test.h"

#include "base/arena.h"

#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif

#ifdef UNDER_ASAN
#include <sanitizer/asan_interface.h>

/* Sizes that cannot be had are part of these tests; by default the sanitizer ends the program at one. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
	return "allocator_may_return_null=1";
}
#endif

/* Larger than any address space, yet not than PTRDIFF_MAX: it is malloc that refuses. Not constant to the compiler. */
static volatile size_t too_much = PTRDIFF_MAX / 2;

static void pieces_are_aligned_and_do_not_overlap(void **state)
{
	(void)state;
	enum { PIECES = 2000 };
	static struct {
		unsigned char *at;
		size_t bytes;
	} pieces[PIECES];
	struct arena arena;
	arena_init(&arena, 1024);
	uint64_t seed = 1;
	for (size_t i = 0; i < PIECES; i++) {
		size_t align = (size_t)1 << random_below(&seed, 9);
		size_t bytes = random_below(&seed, i % 10 == 0 ? 3000 : 60);
		pieces[i].at = arena_alloc(&arena, bytes, align);
		pieces[i].bytes = bytes;
		assert_non_null(pieces[i].at);
		assert_int_equal((uintptr_t)pieces[i].at % align, 0);
		memset(pieces[i].at, (int)(i % 251), bytes);
	}
	for (size_t i = 0; i < PIECES; i++)
		for (size_t j = 0; j < pieces[i].bytes; j++)
			assert_int_equal(pieces[i].at[j], i % 251);
	arena_free(&arena);
}

static void nothing_is_allocated_before_it_is_asked_for(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	assert_null(arena.chunks);
	assert_int_equal(arena.used_bytes, 0);
	assert_true(arena.chunk_bytes > 0);
	arena_free(&arena);
}

static void zero_bytes_are_a_place_too(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 64);
	assert_non_null(arena_alloc(&arena, 0, 1));
	for (int i = 0; i < 100; i++) {
		assert_non_null(arena_alloc(&arena, 0, 16));
		assert_non_null(arena_try_alloc(&arena, 0, 1));
		assert_non_null(arena_alloc(&arena, 1, 1));
	}
	arena_free(&arena);
}

static void a_large_piece_leaves_the_current_chunk_alone(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 256);
	char *small = arena_alloc(&arena, 8, 8);
	const char *free_before = arena.at;
	char *large = arena_alloc(&arena, 10000, 8);
	memset(large, 'x', 10000);
	assert_ptr_equal(arena.at, free_before);
	char *next = arena_alloc(&arena, 8, 8);
	assert_true(next > small && next - small < 256);
	arena_free(&arena);
}

static void reset_keeps_one_ordinary_chunk(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 256);
	for (int i = 0; i < 100; i++)
		arena_alloc(&arena, 40, 8);
	arena_alloc(&arena, 5000, 8);
	struct arena_chunk *kept = arena.chunks;
	arena_reset(&arena);
	assert_int_equal(arena.used_bytes, 0);
	assert_ptr_equal(arena.chunks, kept);
	char *first = arena_alloc(&arena, 40, 8);
	for (int round = 0; round < 3; round++) {
		arena_reset(&arena);
		assert_ptr_equal(arena_alloc(&arena, 40, 8), first);
		assert_ptr_equal(arena.chunks, kept);
	}
	arena_free(&arena);
}

static void reset_keeps_no_large_chunk(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 256);
	arena_reset(&arena);
	assert_null(arena.chunks);
	arena_alloc(&arena, 5000, 8);
	assert_non_null(arena.chunks);
	arena_reset(&arena);
	assert_null(arena.chunks);
	assert_int_equal(arena.used_bytes, 0);
	assert_non_null(arena_alloc(&arena, 5, 1));
	arena_free(&arena);
}

static void a_freed_arena_can_be_used_again(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 300);
	arena_alloc(&arena, 20, 4);
	arena_free(&arena);
	assert_null(arena.chunks);
	assert_int_equal(arena.used_bytes, 0);
	assert_int_equal(arena.chunk_bytes, 300);
	memset(arena_alloc(&arena, 20, 4), 1, 20);
	arena_free(&arena);
}

static void what_was_handed_out_is_counted(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 256);
	size_t asked = 0;
	for (size_t bytes = 8; bytes < 2000; bytes += 8) {
		size_t before = arena.used_bytes;
		arena_alloc(&arena, bytes, 8);
		asked += bytes;
		assert_in_range(arena.used_bytes - before, bytes, bytes + 7);
	}
	assert_in_range(arena.used_bytes, asked, asked + asked / 8);
	arena_free(&arena);
}

static void zeroed_memory_is_zero_when_used_before(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 1024);
	memset(arena_alloc(&arena, 200, 8), 0xff, 200);
	arena_reset(&arena);
	uint64_t *numbers = arena_array(&arena, uint64_t, 25);
	for (int i = 0; i < 25; i++)
		assert_int_equal(numbers[i], 0);
	struct two {
		void *pointer;
		int number;
	} *two = arena_new(&arena, struct two);
	assert_null(two->pointer);
	assert_int_equal(two->number, 0);
	assert_non_null(arena_array(&arena, uint64_t, 0));
	arena_free(&arena);
}

static void a_copy_ends_in_nul(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 1024);
	memset(arena_alloc(&arena, 200, 1), 'x', 200);
	arena_reset(&arena);
	char *copy = arena_copy(&arena, "abc\0defgh", 7);
	assert_memory_equal(copy, "abc\0def", 8);
	char *empty = arena_copy(&arena, NULL, 0);
	assert_string_equal(empty, "");
	assert_memory_equal(copy, "abc\0def", 8);
	arena_free(&arena);
}

static void try_refuses_what_cannot_be_had(void **state)
{
	(void)state;
	static const size_t sizes[] = {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 15, SIZE_MAX - 64, PTRDIFF_MAX, PTRDIFF_MAX / 2};
	struct arena arena;
	arena_init(&arena, 64);
	for (int fresh = 1; fresh >= 0; fresh--) {
		for (size_t i = 0; i < COUNT(sizes); i++)
			for (size_t align = 1; align <= 64; align *= 2)
				assert_null(arena_try_alloc(&arena, sizes[i], align));
		assert_int_equal(arena.chunks == NULL, fresh);
		/* Nothing was broken by that, and an odd place makes padding part of the sums. */
		memset(arena_try_alloc(&arena, 3, 1), 'x', 3);
		assert_in_range(arena.used_bytes, 3, 32);
	}
	arena_free(&arena);

	arena_init(&arena, too_much);
	assert_null(arena_try_alloc(&arena, 1, 1));
	arena_init(&arena, SIZE_MAX);
	assert_null(arena_try_alloc(&arena, 1, 1));
	arena_free(&arena);
}

static void call_alloc(void *arena)
{
	arena_alloc(arena, too_much, 8);
}

static void call_alloc_wrapping(void *arena)
{
	arena_alloc(arena, SIZE_MAX - 3, 16);
}

static void call_zalloc_wrapping(void *arena)
{
	arena_array((struct arena *)arena, uint64_t, SIZE_MAX / 4);
}

static void call_copy_wrapping(void *arena)
{
	arena_copy(arena, "x", too_much * 2 + SIZE_MAX / 2 + 2);
}

static void call_align_0(void *arena)
{
	arena_try_alloc(arena, 8, 0);
}

static void call_align_12(void *arena)
{
	arena_try_alloc(arena, 8, 12);
}

static void sizes_of_ours_abort(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 64);
	for (int i = 0; i < 2; i++) {
		assert_aborts(call_alloc, &arena, "memory != NULL");
		assert_aborts(call_alloc_wrapping, &arena, "memory != NULL");
		assert_aborts(call_zalloc_wrapping, &arena, "!overflows");
		assert_aborts(call_copy_wrapping, &arena, "length < SIZE_MAX");
		assert_aborts(call_align_0, &arena, "align");
		assert_aborts(call_align_12, &arena, "align");
		arena_alloc(&arena, 1, 1);
	}
	arena_free(&arena);
}

#ifdef UNDER_ASAN
static void overruns_are_found(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 512);
	for (size_t bytes = 1; bytes < 700; bytes += bytes < 40 ? 1 : 37) {
		char *piece = arena_alloc(&arena, bytes, 1);
		assert_null(__asan_region_is_poisoned(piece, bytes));
		assert_true(__asan_address_is_poisoned(piece + bytes));
	}
	arena_free(&arena);
}

static void use_after_reset_is_found(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 512);
	char *small = arena_alloc(&arena, 16, 8);
	char *large = arena_alloc(&arena, 5000, 8);
	arena_reset(&arena);
	assert_true(__asan_address_is_poisoned(small));
	assert_true(__asan_address_is_poisoned(large));
	arena_free(&arena);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pieces_are_aligned_and_do_not_overlap),
		cmocka_unit_test(nothing_is_allocated_before_it_is_asked_for),
		cmocka_unit_test(zero_bytes_are_a_place_too),
		cmocka_unit_test(a_large_piece_leaves_the_current_chunk_alone),
		cmocka_unit_test(reset_keeps_one_ordinary_chunk),
		cmocka_unit_test(reset_keeps_no_large_chunk),
		cmocka_unit_test(a_freed_arena_can_be_used_again),
		cmocka_unit_test(what_was_handed_out_is_counted),
		cmocka_unit_test(zeroed_memory_is_zero_when_used_before),
		cmocka_unit_test(a_copy_ends_in_nul),
		cmocka_unit_test(try_refuses_what_cannot_be_had),
		cmocka_unit_test(sizes_of_ours_abort),
#ifdef UNDER_ASAN
		cmocka_unit_test(overruns_are_found),
		cmocka_unit_test(use_after_reset_is_found),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
