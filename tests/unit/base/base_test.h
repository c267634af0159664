/* What the tests of this room share: cmocka in its order of inclusion, calls that must abort, random numbers that are
 * the same in each run. */
#ifndef BASE_TEST_H
#define BASE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/str.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define assert_str_equal(got, wanted) assert_str_equal_at((got), (wanted), __FILE__, __LINE__)

static inline void assert_str_equal_at(struct str got, struct str wanted, const char *file, int line)
{
	if (str_equal(got, wanted))
		return;
	print_error("got    [%.*s]\nwanted [%.*s]\n", STR_FMT(got), STR_FMT(wanted));
	_fail(file, line);
}

/* xorshift64* (Vigna, 2016). */
static inline uint64_t random_next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d;
}

static inline size_t random_below(uint64_t *state, size_t bound)
{
	return (size_t)(random_next(state) >> 33) % bound;
}

/* What an aborting call leaves behind; one test at a time. */
static sigjmp_buf abort_return;
static char abort_said[512];

static void abort_caught(int signal_number)
{
	(void)signal_number;
	siglongjmp(abort_return, 1);
}

/* Whether a call ends in abort(). What it wrote to standard error is then in abort_said. The call runs in this process,
 * so that sanitizers and coverage see it. */
static inline bool aborts(void (*call)(void *context), void *context)
{
	FILE *volatile said = tmpfile();
	assert_non_null(said);
	volatile int own_stderr = dup(STDERR_FILENO);
	struct sigaction catching = {.sa_handler = abort_caught};
	struct sigaction before;
	assert_int_equal(sigaction(SIGABRT, &catching, &before), 0);
	assert_int_equal(dup2(fileno(said), STDERR_FILENO), STDERR_FILENO);
	volatile bool aborted = true;
	if (sigsetjmp(abort_return, 1) == 0) {
		call(context);
		aborted = false;
	}
	fflush(stderr);
	dup2(own_stderr, STDERR_FILENO);
	close(own_stderr);
	sigaction(SIGABRT, &before, NULL);
	rewind(said);
	abort_said[fread(abort_said, 1, sizeof(abort_said) - 1, said)] = '\0';
	fclose(said);
	return aborted;
}

#define assert_aborts(call, context, condition)                                                                        \
	do {                                                                                                               \
		assert_true(aborts((call), (context)));                                                                        \
		assert_non_null(strstr(abort_said, "check failed: " condition));                                               \
	} while (0)

#endif
