/* What the tests of this room share. */
#ifndef TEST_CROSS_TEST_H
#define TEST_CROSS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cross/cross_int.h"

/* The same numbers in each run: splitmix64. */
static inline uint64_t next_random(uint64_t *state)
{
	uint64_t z = (*state += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return z ^ (z >> 31);
}

static inline struct cross_division division_of(const uint64_t *weights, uint32_t count)
{
	struct cross_division division = {.count = count};
	for (uint32_t i = 0; i < count; i++) {
		division.shares[i].site = 101 + i;
		division.shares[i].weight = weights[i];
	}
	return division;
}

#endif
