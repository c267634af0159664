#include "sim/alloc.h"

#include <malloc.h>
#include <stddef.h>

void *__real_malloc(size_t bytes);
void *__real_calloc(size_t count, size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void __real_free(void *memory);
void *__wrap_malloc(size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);
void __wrap_free(void *memory);

static int64_t *current;

int64_t *sim_alloc_account(int64_t *account)
{
	int64_t *before = current;
	current = account;
	return before;
}

static void *count(void *memory)
{
	if (current)
		*current += (int64_t)malloc_usable_size(memory);
	return memory;
}

static void discount(void *memory)
{
	if (current)
		*current -= (int64_t)malloc_usable_size(memory);
}

void *__wrap_malloc(size_t bytes)
{
	return count(__real_malloc(bytes));
}

void *__wrap_calloc(size_t number, size_t bytes)
{
	return count(__real_calloc(number, bytes));
}

void *__wrap_realloc(void *memory, size_t bytes)
{
	discount(memory);
	return count(__real_realloc(memory, bytes));
}

void __wrap_free(void *memory)
{
	discount(memory);
	__real_free(memory);
}
