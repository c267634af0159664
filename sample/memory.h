/* Allocation that does not fail: a small service without memory has nothing better to do than to stop. */
#ifndef SAMPLE_MEMORY_H
#define SAMPLE_MEMORY_H

#include <stdlib.h>

#define NEW(type) ((type *)need(calloc(1, sizeof(type))))

/* Returns its argument, and aborts if that is NULL. For whatever returns NULL only when memory is short. */
void *need(void *pointer);

/* Like asprintf(). The caller frees. */
char *text_of(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
