#include "memory.h"

#include <stdarg.h>
#include <stdio.h>

void *need(void *pointer)
{
	if (pointer == NULL) {
		fputs("cheops-sample: out of memory\n", stderr);
		abort();
	}
	return pointer;
}

char *text_of(const char *format, ...)
{
	char *text = NULL;
	va_list values;
	va_start(values, format);
	int length = vasprintf(&text, format, values);
	va_end(values);
	return need(length < 0 ? NULL : text);
}
