/* Worlds of cross resources: that runs repeat, that the checks can fail, and that runs which failed once do not any more. The many
 * seeds are run by cheops-sim-cross (meson.build). */
#include "sim/span.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Primes are withdrawn in those from before as they were then: at once. */
static bool run(uint64_t seed, enum span_mutation mutation, bool before, uint64_t *digest, struct buf *violations)
{
	struct span span;
	struct span_options options = span_options_default(seed, 5);
	options.steps = 200;
	span_options_vary(&options);
	options.mutation = mutation;
	options.withdraws &= !before;
	span_init(&span, &options);
	bool sound = span_run(&span);
	*digest = span.sim.digest;
	buf_put(violations, buf_str(&span.violations));
	span_free(&span);
	return sound;
}

static void the_same_seed_gives_the_same_run(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 10; seed++) {
		uint64_t first, again;
		struct buf violations = {0};
		assert_true(run(seed, SPAN_SOUND, false, &first, &violations));
		assert_true(run(seed, SPAN_SOUND, false, &again, &violations));
		assert_int_equal(first, again);
		buf_free(&violations);
	}
}

/* Each way to break the world is noticed, within some seeds. */
static void what_is_broken_is_noticed(void **state)
{
	(void)state;
	static const char *const names[] = {"sound",  "hasty",  "forgetful", "deaf",    "eager",
	                                    "silent", "unfair", "abrupt",    "careless"};
	for (enum span_mutation mutation = SPAN_HASTY; mutation < SPAN_MUTATIONS; mutation++) {
		bool noticed = false;
		for (uint64_t seed = 1; seed <= 400 && !noticed; seed++) {
			uint64_t digest;
			struct buf violations = {0};
			noticed = !run(seed, mutation, false, &digest, &violations);
			if (noticed)
				print_message("# %s: seed %lu:%s", names[mutation], (unsigned long)seed, buf_c(&violations));
			buf_free(&violations);
		}
		if (!noticed)
			print_message("# nobody notices: %s\n", names[mutation]);
		assert_true(noticed);
	}
}

/* Seeds that failed, and why. */
static void what_failed_once_does_not_again(void **state)
{
	(void)state;
	static const uint64_t seeds[] = {
		70,                        /* a refusal of an earlier moment, late, took away what had been granted since */
		332,    500,    815, 1673, /* of the world: who had left, and crashed then, never said so */
		2142,           /* a name claimed anew before its end was told: the end of the first claim was told to nobody */
		3905,   116671, /* the prime was down while a site left and came again, and held its names for ever */
		117033,
	};
	for (size_t i = 0; i < sizeof(seeds) / sizeof(seeds[0]); i++) {
		uint64_t digest;
		struct buf violations = {0};
		bool sound = run(seeds[i], SPAN_SOUND, true, &digest, &violations);
		if (!sound)
			print_message("# seed %lu:\n%s", (unsigned long)seeds[i], buf_c(&violations));
		buf_free(&violations);
		assert_true(sound);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_same_seed_gives_the_same_run),
		cmocka_unit_test(what_is_broken_is_noticed),
		cmocka_unit_test(what_failed_once_does_not_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
