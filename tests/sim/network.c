#include "sim/network.h"

#include "base/check.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
	NODES_PER_TOWN = 4,
	TOWN_US = 1500,        /* nodes of one town are within that of its centre */
	HEIGHT_LEAST_US = 100, /* one way */
	HEIGHT_MOST_US = 3000,
	LATE_TIMES = 8,  /* a reordered datagram takes up to so many times its delay, and */
	LATE_US = 20000, /* that much more */
};

static const double detour_most = 0.2;

static void place_nodes(struct sim_network *network, const struct sim_network_options *options)
{
	struct sim_random random;
	sim_random_seed(&random, options->seed, 1);
	uint32_t towns = options->towns ? options->towns : (network->nodes + NODES_PER_TOWN - 1) / NODES_PER_TOWN;
	for (uint32_t i = 0; i < network->nodes; i++) {
		struct sim_random town;
		sim_random_seed(&town, options->seed, 1000 + sim_random_below(&random, towns));
		struct sim_place *place = &network->places[i];
		place->x_us = sim_random_unit(&town) * options->span_us + (sim_random_unit(&random) - 0.5) * TOWN_US;
		place->y_us = sim_random_unit(&town) * options->span_us + (sim_random_unit(&random) - 0.5) * TOWN_US;
		double height = sim_random_unit(&random); /* most are near the low end */
		place->height_us = HEIGHT_LEAST_US + height * height * height * (HEIGHT_MOST_US - HEIGHT_LEAST_US);
	}
}

void sim_network_init(struct sim_network *network, const struct sim_network_options *options)
{
	CHECK(options->nodes > 0);
	*network = (struct sim_network){.nodes = options->nodes, .weather = options->weather};
	network->places = calloc(options->nodes, sizeof(*network->places));
	CHECK(network->places != NULL);
	network->detours = sim_mix(options->seed, 2);
	sim_random_seed(&network->random, options->seed, 3);
	place_nodes(network, options);
}

void sim_network_free(struct sim_network *network)
{
	sim_network_heal(network);
	free(network->places);
	*network = (struct sim_network){0};
}

/* One way, without jitter. The detour is the same in both directions. */
static double delay_us(const struct sim_network *network, uint32_t a, uint32_t b)
{
	const struct sim_place *from = &network->places[a], *to = &network->places[b];
	double x = from->x_us - to->x_us, y = from->y_us - to->y_us;
	uint64_t pair = a < b ? (uint64_t)a << 32 | b : (uint64_t)b << 32 | a;
	double detour = 1 + detour_most * ((double)(sim_mix(network->detours, pair) >> 11) * 0x1p-53);
	return sqrt(x * x + y * y) * detour + from->height_us + to->height_us;
}

double sim_network_round_trip_us(const struct sim_network *network, uint32_t a, uint32_t b)
{
	return 2 * delay_us(network, a, b);
}

static bool rule_applies(const struct sim_rule *rule, uint32_t from, uint32_t to)
{
	return (rule->from[from] && rule->to[to]) || (rule->both_ways && rule->from[to] && rule->to[from]);
}

/* False: lost. */
static bool obey_rules(struct sim_network *network, uint32_t from, uint32_t to, uint64_t *more_us)
{
	for (uint32_t i = 0; network->rules_on > 0 && i < SIM_RULES; i++) {
		const struct sim_rule *rule = &network->rules[i];
		if (!rule->on || !rule_applies(rule, from, to))
			continue;
		if (rule->loss >= 1 || sim_random_chance(&network->random, rule->loss))
			return false;
		*more_us += rule->delay_us;
	}
	return true;
}

static uint64_t one_delay_us(struct sim_network *network, double base_us)
{
	double luck = sim_random_unit(&network->random);
	double luck4 = luck * luck * luck * luck;
	double delay = base_us * (1 + network->weather.jitter * (luck + 8 * luck4 * luck4 * luck4 * luck4));
	if (sim_random_chance(&network->random, network->weather.reorder)) {
		network->reordered++;
		delay += sim_random_unit(&network->random) * (LATE_TIMES * base_us + LATE_US);
	}
	return (uint64_t)delay + 1;
}

uint32_t sim_network_route(struct sim_network *network, uint32_t from, uint32_t to, uint64_t delays_us[SIM_COPIES])
{
	CHECK(from < network->nodes && to < network->nodes);
	uint64_t more_us = 0;
	if (!obey_rules(network, from, to, &more_us) || sim_random_chance(&network->random, network->weather.loss)) {
		network->lost++;
		return 0;
	}
	double base_us = delay_us(network, from, to);
	delays_us[0] = one_delay_us(network, base_us) + more_us;
	if (!sim_random_chance(&network->random, network->weather.duplicate))
		return 1;
	network->duplicated++;
	delays_us[1] = one_delay_us(network, base_us) + more_us;
	return 2;
}

struct sim_rule *sim_network_rule(struct sim_network *network)
{
	for (uint32_t i = 0; i < SIM_RULES; i++) {
		struct sim_rule *rule = &network->rules[i];
		if (rule->from)
			continue;
		rule->from = calloc(2 * (size_t)network->nodes, 1);
		CHECK(rule->from != NULL);
		rule->to = rule->from + network->nodes;
		return rule;
	}
	return NULL;
}

void sim_network_switch(struct sim_network *network, struct sim_rule *rule, bool on)
{
	if (rule->on == on)
		return;
	rule->on = on;
	network->rules_on = on ? network->rules_on + 1 : network->rules_on - 1;
}

void sim_network_drop_rule(struct sim_network *network, struct sim_rule *rule)
{
	sim_network_switch(network, rule, false);
	free(rule->from);
	*rule = (struct sim_rule){0};
}

void sim_network_heal(struct sim_network *network)
{
	for (uint32_t i = 0; i < SIM_RULES; i++) {
		if (network->rules[i].from)
			sim_network_drop_rule(network, &network->rules[i]);
	}
}
