/* Sets of operations from short texts, for the tests of the order, and sequences as texts.
 *
 * A text has one word per operation, in the order T: the member (A, B...), the effect (c reate, r eplace, a ssign, i ncrement
 * or whatever is relative, d elete), then `:N` for its class, `/N` for its facet, and what it had seen: `(A2B1)` means the
 * first two of A and the first of B, and all that these had seen. Its own earlier ones go without saying. A class is as the
 * effect if it is not given. Operations are called A1, A2, B1... */
#ifndef ORDER_TEST_H
#define ORDER_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/order.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { TEST_MEMBERS = 4, TEST_OPS = 64, TEST_CLASSES = 16 };

struct test_set {
	struct order_op ops[TEST_OPS];
	uint32_t seen[TEST_OPS][TEST_MEMBERS];
	uint32_t base[TEST_MEMBERS];
	uint8_t resolutions[TEST_CLASSES * TEST_CLASSES];
	struct order_set set;
};

void test_set_make(struct test_set *test, const char *text);

/* `iKi` says: relative, keep-order, relative. K eep, R everse, A ny, O ne, F irst. Classes by letter or digit. Several words. */
void test_set_rules(struct test_set *test, const char *text);

/* Index of `A2`; fails if there is none. */
uint32_t test_op(const struct test_set *test, const char *name);

/* Sequences as texts: `A1 B1 A2`. */
void test_names(const struct test_set *test, const uint32_t *ops, uint32_t count, char text[256]);

#endif
