/* Random numbers of a simulated run: all come from its seed. xoshiro256** (Blackman and Vigna, 2018), set up by
 * splitmix64. Each purpose draws from a stream of its own, so that leaving out one fault does not change the luck of
 * everything else. Only integer arithmetic and exact floating-point operations: the same numbers on every machine. */
#ifndef SIM_RANDOM_H
#define SIM_RANDOM_H

#include <stdbool.h>
#include <stdint.h>

struct sim_random {
	uint64_t s[4];
};

void sim_random_seed(struct sim_random *random, uint64_t seed, uint64_t stream);
uint64_t sim_random_next(struct sim_random *random);

/* In [0, limit); limit is not 0. */
uint64_t sim_random_below(struct sim_random *random, uint64_t limit);
/* In [least, most]. */
uint64_t sim_random_range(struct sim_random *random, uint64_t least, uint64_t most);
/* In [0, 1). */
double sim_random_unit(struct sim_random *random);
bool sim_random_chance(struct sim_random *random, double probability);

/* One number out of two, well mixed. */
uint64_t sim_mix(uint64_t a, uint64_t b);

#endif
