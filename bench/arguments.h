/* The arguments of benchmarks that have cases: all of them, quickly or not; or one, so many times, for a profiler. */
#ifndef BENCH_ARGUMENTS_H
#define BENCH_ARGUMENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bench_arguments {
	const char *program; /* set by the caller */
	bool quick;
	const char *only; /* NULL: all */
	uint64_t iterations;
};

/* False: they make no sense, and the usage has been told. */
static inline bool bench_arguments_read(struct bench_arguments *arguments, int argc, char **argv)
{
	arguments->iterations = 1;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--quick") == 0) {
			arguments->quick = true;
		} else if (strcmp(argv[i], "--case") == 0 && i + 1 < argc) {
			arguments->only = argv[++i];
		} else if (strcmp(argv[i], "--iterations") == 0 && i + 1 < argc) {
			arguments->iterations = strtoull(argv[++i], NULL, 10);
		} else {
			fprintf(stderr, "usage: %s [--quick | --case CASE --iterations N]\n", arguments->program);
			return false;
		}
	}
	return true;
}

/* Returns the exit status. */
static inline int bench_no_case(const struct bench_arguments *arguments)
{
	fprintf(stderr, "%s: no case '%s'; run without arguments to see them\n", arguments->program, arguments->only);
	return 2;
}

#endif
