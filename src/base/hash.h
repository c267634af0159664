/* SipHash-1-3 (Aumasson and Bernstein, 2012): a keyed hash for tables whose keys strangers choose. */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include "base/str.h"

/* A secret of the process. Where it comes from (the operating system, a simulator's seed) is the caller's affair. */
struct hash_key {
	uint64_t k0;
	uint64_t k1;
};

uint64_t hash_bytes(const struct hash_key *key, struct str bytes);

#endif
