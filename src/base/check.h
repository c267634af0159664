/* Assertions that stay on in release builds.
 *
 * CHECK() is for what a programmer may get wrong: a broken invariant, a call out of order. It is never used on what a
 * peer, a file or a user sent: that is refused, counted and explained.
 */
#ifndef BASE_CHECK_H
#define BASE_CHECK_H

/* Prints the place and the condition, then aborts. */
_Noreturn void check_failed(const char *condition, const char *file, int line);

#define CHECK(condition)                                                                                               \
	do {                                                                                                               \
		if (__builtin_expect(!(condition), 0))                                                                         \
			check_failed(#condition, __FILE__, __LINE__);                                                              \
	} while (0)

/* For the branch that no input can reach. */
#define UNREACHABLE(why) check_failed("unreachable: " why, __FILE__, __LINE__)

#endif
