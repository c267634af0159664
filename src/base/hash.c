#include "base/hash.h"

struct sip {
	uint64_t v0, v1, v2, v3;
};

/* Inlined by force: a call per round, with the state in memory, takes twice as long. */
#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t rotate_left(uint64_t value, unsigned bits)
{
	return value << bits | value >> (64 - bits);
}

INLINE void sip_round(struct sip *s)
{
	s->v0 += s->v1;
	s->v2 += s->v3;
	s->v1 = rotate_left(s->v1, 13) ^ s->v0;
	s->v3 = rotate_left(s->v3, 16) ^ s->v2;
	s->v0 = rotate_left(s->v0, 32);
	s->v2 += s->v1;
	s->v0 += s->v3;
	s->v1 = rotate_left(s->v1, 17) ^ s->v2;
	s->v3 = rotate_left(s->v3, 21) ^ s->v0;
	s->v2 = rotate_left(s->v2, 32);
}

INLINE void sip_word(struct sip *s, uint64_t word)
{
	s->v3 ^= word;
	sip_round(s);
	s->v0 ^= word;
}

/* Little-endian, whatever the machine: compilers make one load of it where they can. */
INLINE uint64_t load(const char *at, size_t bytes)
{
	uint64_t word = 0;
	for (size_t i = 0; i < bytes; i++)
		word |= (uint64_t)(unsigned char)at[i] << (8 * i);
	return word;
}

uint64_t hash_bytes(const struct hash_key *key, struct str bytes)
{
	/* The constants spell "somepseudorandomlygeneratedbytes" (section 2.1 of the paper). */
	struct sip s = {key->k0 ^ 0x736f6d6570736575, key->k1 ^ 0x646f72616e646f6d, key->k0 ^ 0x6c7967656e657261,
	                key->k1 ^ 0x7465646279746573};
	size_t whole = bytes.length & ~(size_t)7;
	for (size_t i = 0; i < whole; i += 8)
		sip_word(&s, load(bytes.at + i, 8));
	uint64_t last = (uint64_t)bytes.length << 56;
	if (bytes.length > whole)
		last |= load(bytes.at + whole, bytes.length - whole);
	sip_word(&s, last);
	s.v2 ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(&s);
	return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}
