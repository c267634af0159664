/* The network between simulated nodes: how long a datagram takes from one to another, and whether it gets there.
 *
 * Nodes have a place in a plane, in which distance is time, and a height: what the access line adds to every path. Real
 * routes are no straight lines: each pair has a fixed detour. On top comes jitter, mostly small, rarely long.
 * Rules change what happens between two sets of nodes, in one direction or in both: cuts, loss, delay.
 */
#ifndef SIM_NETWORK_H
#define SIM_NETWORK_H

#include "sim/random.h"

#include <stddef.h>

enum { SIM_RULES = 64, SIM_COPIES = 2 };

/* Probabilities per datagram. */
struct sim_weather {
	double loss;
	double duplicate;
	double reorder; /* it takes much longer than its fellows */
	double jitter;  /* of the delay: what a typical datagram may be late by */
};

struct sim_place {
	double x_us;
	double y_us;
	double height_us;
};

struct sim_rule {
	bool on;
	bool both_ways;
	uint8_t *from; /* one byte per node: is it in the set? */
	uint8_t *to;
	double loss; /* 1: a cut */
	uint64_t delay_us;
};

struct sim_network {
	uint32_t nodes;
	struct sim_place *places;
	struct sim_weather weather;
	struct sim_rule rules[SIM_RULES];
	uint32_t rules_on;
	uint64_t detours; /* seed of the pairs' detours */
	struct sim_random random;
	uint64_t lost, duplicated, reordered;
};

struct sim_network_options {
	uint64_t seed;
	uint32_t nodes;
	uint32_t towns;   /* nodes lie around so many places; 0: one per four nodes */
	uint32_t span_us; /* width of the plane, as one-way time */
	struct sim_weather weather;
};

void sim_network_init(struct sim_network *network, const struct sim_network_options *options);
void sim_network_free(struct sim_network *network);

/* Decides on one datagram. Returns how many copies arrive (0 to SIM_COPIES), and after how long each. */
uint32_t sim_network_route(struct sim_network *network, uint32_t from, uint32_t to, uint64_t delays_us[SIM_COPIES]);

/* The undisturbed round trip: what estimates are measured against. */
double sim_network_round_trip_us(const struct sim_network *network, uint32_t a, uint32_t b);

/* A rule that is off, its sets empty; NULL: all are taken. Set from[] and to[], then switch it on and off at will. */
struct sim_rule *sim_network_rule(struct sim_network *network);
void sim_network_switch(struct sim_network *network, struct sim_rule *rule, bool on);
void sim_network_drop_rule(struct sim_network *network, struct sim_rule *rule);
/* No rule any more. */
void sim_network_heal(struct sim_network *network);

#endif
