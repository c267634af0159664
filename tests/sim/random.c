#include "sim/random.h"

#include "base/check.h"

static uint64_t splitmix(uint64_t *state)
{
	uint64_t z = (*state += UINT64_C(0x9E3779B97F4A7C15));
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

uint64_t sim_mix(uint64_t a, uint64_t b)
{
	uint64_t state = a;
	uint64_t first = splitmix(&state);
	state = first ^ b;
	return splitmix(&state);
}

void sim_random_seed(struct sim_random *random, uint64_t seed, uint64_t stream)
{
	uint64_t state = sim_mix(seed, stream);
	for (int i = 0; i < 4; i++)
		random->s[i] = splitmix(&state);
}

static uint64_t rotate(uint64_t x, int by)
{
	return (x << by) | (x >> (64 - by));
}

uint64_t sim_random_next(struct sim_random *random)
{
	uint64_t *s = random->s;
	uint64_t result = rotate(s[1] * 5, 7) * 9;
	uint64_t t = s[1] << 17;
	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotate(s[3], 45);
	return result;
}

/* By multiplication (Lemire, 2019), without the last bit of fairness: nobody counts 2^-40 here. */
uint64_t sim_random_below(struct sim_random *random, uint64_t limit)
{
	CHECK(limit > 0);
	return (uint64_t)(((unsigned __int128)sim_random_next(random) * limit) >> 64);
}

uint64_t sim_random_range(struct sim_random *random, uint64_t least, uint64_t most)
{
	CHECK(least <= most);
	return least + sim_random_below(random, most - least + 1);
}

double sim_random_unit(struct sim_random *random)
{
	return (double)(sim_random_next(random) >> 11) * 0x1p-53;
}

bool sim_random_chance(struct sim_random *random, double probability)
{
	return probability > 0 && sim_random_unit(random) < probability;
}
