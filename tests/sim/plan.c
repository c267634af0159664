#include "sim/plan.h"

#include "sim/random.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SECOND_US = 1000000, LONGEST_US = 20 * SECOND_US, PERMANENT_SHARE = 3 };

static const struct {
	const char *name;
	uint32_t weight;
	const char *what;
} kinds[] = {
#define X(NAME, name, weight, what) {name, weight, what},
	SIM_FAULTS(X)
#undef X
};

const char *sim_fault_name(enum sim_fault_kind kind)
{
	return kinds[kind].name;
}

bool sim_fault_kinds(struct str list, uint32_t *bits, struct str *unknown)
{
	*bits = 0;
	while (list.length > 0) {
		const char *comma = memchr(list.at, ',', list.length);
		struct str word = str_make(list.at, comma ? (size_t)(comma - list.at) : list.length);
		uint32_t kind = 0;
		while (kind < SIM_FAULT_KINDS && !str_equal(word, str_of(kinds[kind].name)))
			kind++;
		if (kind == SIM_FAULT_KINDS) {
			*unknown = word;
			return false;
		}
		*bits |= 1u << kind;
		size_t taken = comma ? word.length + 1 : word.length;
		list = str_make(list.at + taken, list.length - taken);
	}
	return true;
}

static uint64_t weight_of(uint32_t kind, uint32_t allowed)
{
	if ((allowed >> kind & 1) == 0)
		return 0;
	return allowed == 1u << kind ? 1 : kinds[kind].weight;
}

static enum sim_fault_kind draw_kind(struct sim_random *random, uint32_t allowed)
{
	uint64_t sum = 0;
	for (uint32_t i = 0; i < SIM_FAULT_KINDS; i++)
		sum += weight_of(i, allowed);
	uint64_t at = sim_random_below(random, sum);
	for (uint32_t i = 0; i < SIM_FAULT_KINDS; i++) {
		uint64_t weight = weight_of(i, allowed);
		if (at < weight)
			return (enum sim_fault_kind)i;
		at -= weight;
	}
	UNREACHABLE("weights do not add up");
}

static bool is_new_site(enum sim_fault_kind kind)
{
	return kind == SIM_JOIN || kind == SIM_IMPOSTOR || kind == SIM_LIAR;
}

static bool is_permanent(enum sim_fault_kind kind)
{
	return kind == SIM_CRASH_FOR_GOOD || kind == SIM_LEAVE || kind == SIM_REVOKE || kind == SIM_FORGET;
}

/* Site 0 holds the authority, and whoever comes asks it first: it may crash and be cut off, but it stays, where it is
 * and with what it knows. */
static bool spares_first(enum sim_fault_kind kind)
{
	return is_permanent(kind) || kind == SIM_CRASH_EMPTY || kind == SIM_MOVE;
}

static void draw_fault(struct sim_plan *plan, struct sim_random *random, const struct sim_plan_options *options,
                       uint32_t *permanent)
{
	struct sim_fault fault = {.kind = draw_kind(random, options->kinds)};
	fault.at_us = sim_random_range(random, options->from_us, options->to_us);
	uint64_t longest_us = options->to_us - fault.at_us;
	fault.until_us = fault.at_us + sim_random_below(random, (longest_us < LONGEST_US ? longest_us : LONGEST_US) + 1);
	fault.node = (uint32_t)sim_random_below(random, options->sites);
	fault.other = (uint32_t)sim_random_below(random, options->sites);
	fault.dice = sim_random_next(random);
	if (spares_first(fault.kind) && fault.node == 0)
		fault.node = 1 + (uint32_t)(fault.dice % (options->sites - 1));
	if (is_permanent(fault.kind) && ++*permanent > options->sites / PERMANENT_SHARE)
		fault.kind = SIM_CARD;
	if (is_new_site(fault.kind))
		fault.node = options->sites + plan->joiners++;
	plan->faults[plan->count++] = fault;
}

static int by_time(const void *a, const void *b)
{
	const struct sim_fault *x = a, *y = b;
	if (x->at_us != y->at_us)
		return x->at_us < y->at_us ? -1 : 1;
	return x->dice < y->dice ? -1 : x->dice > y->dice;
}

void sim_plan_draw(struct sim_plan *plan, const struct sim_plan_options *options)
{
	*plan = (struct sim_plan){0};
	if (options->faults == 0 || options->kinds == 0)
		return;
	CHECK(options->sites > 1);
	plan->faults = calloc(options->faults, sizeof(*plan->faults));
	CHECK(plan->faults != NULL);
	struct sim_random random;
	sim_random_seed(&random, options->seed, 4);
	uint32_t permanent = 0;
	for (uint32_t i = 0; i < options->faults; i++)
		draw_fault(plan, &random, options, &permanent);
	qsort(plan->faults, plan->count, sizeof(*plan->faults), by_time);
}

void sim_plan_free(struct sim_plan *plan)
{
	free(plan->faults);
	*plan = (struct sim_plan){0};
}

void sim_plan_print(const struct sim_plan *plan)
{
	struct buf line = {0};
	for (uint32_t i = 0; i < plan->count; i++) {
		if (plan->faults[i].skipped)
			continue;
		buf_clear(&line);
		sim_fault_print(&line, &plan->faults[i]);
		printf("  fault %3" PRIu32 ": %s\n", i, buf_c(&line));
	}
	buf_free(&line);
}

void sim_fault_print(struct buf *out, const struct sim_fault *fault)
{
	double at = (double)fault->at_us / SECOND_US, until = (double)fault->until_us / SECOND_US;
	buf_printf(out, "%9.3f s to %9.3f s: %s, site %" PRIu32 " (%s)", at, until, kinds[fault->kind].name, fault->node,
	           kinds[fault->kind].what);
}
