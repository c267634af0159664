/* What the tests of this room share: an authority with sites, and certificates that no authority of ours would sign. */
#ifndef TRUST_TEST_H
#define TRUST_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trust/trust_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { DAY_S = 86400 };
#define DAY_MS (INT64_C(1000) * DAY_S)
#define NOW_MS INT64_C(1794733200000) /* 2026-11-15 */

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

/* A key with its certificate: of a root, or of a site. */
struct holder {
	struct trust_key *key;
	struct buf der;
};

struct holder make_root(const char *name);
struct holder make_site(const struct holder *root, const char *name);
void free_holder(struct holder *holder);
struct trust_roots *roots_of(const struct holder *a, const struct holder *b);
site_id id_of(const struct holder *holder);

/* A certificate as somebody else would make one. What is 0 is what ours have. */
struct forge {
	struct str uris[3]; /* alternative names */
	struct str dns;
	int version;          /* of X.509: 1; 0 is 3 */
	const char *basic;    /* "" to leave an extension out */
	const char *use;      /* keyUsage */
	const char *extended; /* extendedKeyUsage */
	struct str critical;  /* an unknown critical extension with this content */
	EVP_PKEY *key;        /* whose it is: P-256, made here */
	const char *digest;   /* of the signature */
	const char *issuer;   /* common name: that of the root */
	struct str subject;   /* common name */
	int64_t from_ms, to_ms;
};

void forge_certificate(const struct forge *forge, const struct holder *root, struct buf *der);

/* The call refused, and its text has this in it. */
#define assert_refused(code, err, part) assert_refused_at((code), &(err), (part), __FILE__, __LINE__)
void assert_refused_at(int code, const struct err *err, const char *part, const char *file, int line);

#endif
