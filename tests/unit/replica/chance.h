/* What histories by chance have in common: luck that a seed decides, what goes wrong, and how all is well again. */
#ifndef TESTS_REPLICA_CHANCE_H
#define TESTS_REPLICA_CHANCE_H

#include "world.h"

struct chance {
	uint64_t state;
};

struct chance chance_of(uint64_t seed);
uint32_t chance_draw(struct chance *chance, uint32_t below);

/* A new world with two sites and up to `more`, whose network is as it happens to be. */
struct world *chance_world(struct chance *chance, uint64_t seed, uint32_t more);

/* Of one site: its agent crashes, or is started again; its service takes the next of four moods. */
void chance_crash(struct world *world, uint32_t site);
void chance_mood(struct world *world, uint32_t site, uint32_t mood);

/* Nothing is wrong any more. */
void chance_heal(struct world *world);

/* What is left of the replicants 1 to `count`, for who looks for the reason. */
void chance_show(struct world *world, uint32_t count);

/* Seeds 1 to `count`; CHEOPS_SEED=N runs one, CHEOPS_SEEDS=N that many. */
void chance_seeds(uint64_t count, void (*run)(uint64_t seed, const void *how), const void *how);

#endif
