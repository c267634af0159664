/* One run: the sites find each other; calm; deaths in calm weather; faults by the plan; then all is mended, and the sites
 * have to agree. */
#include "sim/swarm.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	BOOT_APART_US = 20000,               /* sites start so far apart, on average, */
	BOOT_MOST_US = 10 * SWARM_SECOND_US, /* and all within that */
	TAIL_S = 5,                          /* that what was agreed on has to last */
	SMALL = 64, /* sites up to which it is looked every step whether all agree; else every second */
	PROGRESS_SITES = 300,
};

struct swarm_options swarm_options_default(uint64_t seed, uint32_t sites)
{
	struct swarm_options options = {.seed = seed, .sites = sites, .steps = 600, .kinds = SIM_SITE_FAULTS};
	options.card_bytes = 64;
	options.weather = (struct sim_weather){.loss = 0.005, .duplicate = 0.001, .reorder = 0.002, .jitter = 0.05};
	options.timing = site_timing_default();
	return options;
}

void swarm_options_vary(struct swarm_options *swarm)
{
	struct sim_random random;
	sim_random_seed(&random, swarm->seed, 7);
	swarm->sites = (uint32_t)sim_random_range(&random, 3, 30);
	swarm->card_bytes = (uint32_t)sim_random_range(&random, 0, 500);
	swarm->calm_s = (uint32_t)sim_random_below(&random, 3);
	swarm->crashes = (uint32_t)sim_random_below(&random, 1 + swarm->sites / 5);
	swarm->mass = sim_random_chance(&random, 0.2) ? 0.3 : 0;
	swarm->faults = (uint32_t)sim_random_range(&random, 0, 1 + swarm->steps / 10);
	swarm->weather.loss = sim_random_chance(&random, 0.5) ? 0 : 0.01 * sim_random_unit(&random);
	swarm->warm = sim_random_chance(&random, 0.2);
}

static void progress(const struct swarm *swarm, const char *phase)
{
	if (swarm->options.progress && swarm->options.sites >= PROGRESS_SITES)
		fprintf(stderr, "  %8.1f s  %-8s %" PRIu64 " datagrams\n", (double)swarm->sim.now_us / SWARM_SECOND_US, phase,
		        swarm->sim.datagrams);
}

/* Lets time pass, with what is looked at after each step. Stops at the first violation. */
static void pass(struct swarm *swarm, uint64_t us, const char *phase)
{
	uint64_t end_us = swarm->sim.now_us + us;
	while (swarm->sim.now_us < end_us && swarm->violations_count == 0) {
		uint64_t next_us = swarm->sim.now_us + SWARM_STEP_US;
		sim_run(&swarm->sim, next_us < end_us ? next_us : end_us);
		swarm_check_tables(swarm, false);
		if (swarm->sim.now_us / SWARM_STEP_US % 10 == 0)
			progress(swarm, phase);
	}
}

/* Until all views are the same. Returns after how many seconds; -1: they are not. */
static double pass_until_converged(struct swarm *swarm, const char *phase)
{
	struct buf why = {0};
	uint64_t start_us = swarm->sim.now_us, end_us = start_us + swarm_converge_bound_us(swarm);
	double took_s = -1;
	while (swarm->violations_count == 0) {
		if (swarm_converged(swarm, &why)) {
			took_s = (double)(swarm->sim.now_us - start_us) / SWARM_SECOND_US;
			break;
		}
		if (swarm->sim.now_us >= end_us) {
			swarm_violation(swarm, "no agreement %.0f s after %s: %s", (double)(end_us - start_us) / SWARM_SECOND_US,
			                phase, buf_c(&why));
			break;
		}
		pass(swarm, swarm->count <= SMALL ? SWARM_STEP_US : SWARM_SECOND_US, phase);
	}
	buf_free(&why);
	return took_s;
}

/* ---- Phases ------------------------------------------------------------------------------------------------------ */

static void boot(struct swarm *swarm)
{
	uint64_t span_us = (uint64_t)swarm->options.sites * BOOT_APART_US;
	span_us = span_us < BOOT_MOST_US ? span_us : BOOT_MOST_US;
	if (swarm->options.warm)
		span_us = swarm->options.timing.probe_us;
	for (uint32_t i = 0; i < swarm->options.sites; i++)
		swarm_new_card(swarm, &swarm->sites[i]);
	for (uint32_t i = 0; i < swarm->options.sites; i++)
		swarm_at(swarm, i == 0 ? 0 : sim_random_below(&swarm->random, span_us), SWARM_ACT_START, i);
	swarm_disturb(swarm);
	pass(swarm, span_us, "boot");
	swarm_settle(swarm);
	swarm->figures.boot_s = pass_until_converged(swarm, "the start");
}

static void window_start(struct swarm *swarm)
{
	swarm->window_datagrams = swarm->window_bytes = 0;
	swarm->window_peak_datagrams = swarm->window_peak_bytes = 0;
}

static void calm(struct swarm *swarm)
{
	struct swarm_figures *figures = &swarm->figures;
	if (swarm->options.calm_s == 0 || swarm->violations_count > 0)
		return;
	uint64_t half_us = (uint64_t)swarm->options.calm_s * SWARM_SECOND_US / 2;
	pass(swarm, half_us, "calm"); /* what came with the start dies down */
	window_start(swarm);
	pass(swarm, half_us, "calm");
	double site_seconds = swarm->options.sites * ((double)half_us / SWARM_SECOND_US);
	figures->calm_datagrams = (double)swarm->window_datagrams / site_seconds;
	figures->calm_bytes = (double)swarm->window_bytes / site_seconds;
	figures->calm_wire_bytes = figures->calm_bytes + SWARM_WIRE_BYTES * figures->calm_datagrams;
	figures->peak_datagrams = swarm->window_peak_datagrams;
	figures->peak_bytes = swarm->window_peak_bytes;
}

static struct swarm_site *draw_running(struct swarm *swarm)
{
	for (;;) {
		struct swarm_site *it = &swarm->sites[sim_random_range(&swarm->random, 1, swarm->options.sites - 1)];
		if (swarm_up(it) && !it->gone)
			return it;
	}
}

static void kill_at(struct swarm *swarm, uint64_t at_us)
{
	struct swarm_site *it = draw_running(swarm);
	it->gone = true;
	swarm_at(swarm, at_us, SWARM_ACT_CRASH, it->number);
	swarm_at(swarm, at_us + swarm_detect_bound_us(swarm), SWARM_ACT_DEADLINE, it->number);
	swarm_at(swarm, at_us + swarm_detect_limit_us(swarm), SWARM_ACT_DEADLINE, it->number);
}

/* One after the other, two periods apart: the deaths overlap, as they would. */
static void crashes(struct swarm *swarm)
{
	if (swarm->options.crashes == 0 || swarm->violations_count > 0)
		return;
	uint64_t apart_us = 2 * swarm->options.timing.probe_us;
	if (!swarm_calm(swarm))
		pass(swarm, swarm->disturbed_until_us - swarm->sim.now_us, "calm");
	swarm->measuring = true;
	for (uint32_t i = 0; i < swarm->options.crashes; i++) {
		uint64_t luck_us = sim_random_below(&swarm->random, apart_us);
		kill_at(swarm, swarm->sim.now_us + i * apart_us + luck_us);
	}
	pass(swarm, swarm->options.crashes * apart_us + swarm_detect_limit_us(swarm), "crashes");
	swarm->measuring = false;
}

static void mass(struct swarm *swarm)
{
	struct swarm_figures *figures = &swarm->figures;
	uint32_t victims = (uint32_t)(swarm->options.mass * swarm->options.sites);
	if (victims == 0 || swarm->violations_count > 0)
		return;
	for (uint32_t i = 0; i < victims; i++) {
		struct swarm_site *it = draw_running(swarm);
		it->gone = true;
		swarm_at(swarm, swarm->sim.now_us, SWARM_ACT_CRASH, it->number);
	}
	swarm_disturb(swarm);
	window_start(swarm);
	pass(swarm, 2 * SWARM_SECOND_US, "rush");
	uint64_t seconds = 2;
	for (; seconds * SWARM_SECOND_US < swarm_detect_bound_us(swarm); seconds++)
		pass(swarm, SWARM_SECOND_US, "rush");
	figures->rush_datagrams = swarm->window_peak_datagrams;
	figures->rush_bytes = swarm->window_peak_bytes;
	figures->rush_mean_datagrams =
		(double)swarm->window_datagrams / (double)(seconds * (swarm->options.sites - victims));
	swarm_settle(swarm);
}

static void faults(struct swarm *swarm)
{
	uint64_t start_us = swarm->faults_us = swarm->sim.now_us;
	if (swarm->plan.count == 0 || swarm->violations_count > 0)
		return;
	for (uint32_t i = 0; i < swarm->plan.count; i++) {
		const struct sim_fault *fault = &swarm->plan.faults[i];
		if (fault->skipped)
			continue;
		swarm_at(swarm, start_us + fault->at_us, SWARM_ACT_BEGIN, i);
		swarm_at(swarm, start_us + fault->until_us, SWARM_ACT_END, i);
		swarm->figures.faults++;
	}
	pass(swarm, (uint64_t)swarm->options.steps * SWARM_STEP_US, "faults");
}

/* When were those who are shut out heard last, by everybody together? An impostor is shut out itself: nobody tells it of others. */
static int64_t last_heard(const struct swarm *swarm)
{
	int64_t sum = 0;
	for (uint32_t i = 0; i < swarm->count; i++) {
		const struct swarm_site *at = &swarm->sites[i];
		for (uint32_t k = 0; swarm_up(at) && at->role == SWARM_HONEST && k < swarm->count; k++) {
			uint32_t number = swarm->sites[k].removal ? site_find(at->site, swarm->sites[k].id) : SCOPE_NO_INDEX;
			struct site_member member = {0};
			if (number != SCOPE_NO_INDEX)
				site_member(at->site, number, &member);
			sum += member.heard_ms;
		}
	}
	return sum;
}

static void heal(struct swarm *swarm)
{
	if (swarm->violations_count > 0)
		return;
	swarm_disturb(swarm);
	swarm_heal(swarm);
	swarm_settle(swarm);
	swarm->figures.heal_s = pass_until_converged(swarm, "the end of the faults");
	int64_t heard = last_heard(swarm);
	pass(swarm, TAIL_S * SWARM_SECOND_US, "tail");
	if (swarm->violations_count == 0 && last_heard(swarm) != heard)
		swarm_violation(swarm, "a site that is shut out was heard");
	pass_until_converged(swarm, "all agreed"); /* datagrams are still lost: somebody may be suspected just now */
}

/* ---- The run ----------------------------------------------------------------------------------------------------- */

static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void sum_up(struct swarm *swarm, double started_s)
{
	struct swarm_figures *figures = &swarm->figures;
	swarm_check_tables(swarm, true);
	swarm_measure_memory(swarm);
	swarm_measure_distances(swarm);
	figures->cpu_s = cpu_s() - started_s;
	figures->virtual_s = (double)swarm->sim.now_us / SWARM_SECOND_US;
	figures->cpu_us = figures->cpu_s * 1e6 / (figures->virtual_s * swarm->options.sites);
	figures->events = swarm->sim.events;
	figures->datagrams = swarm->sim.datagrams;
	for (uint32_t i = 0; i < swarm->count; i++)
		figures->verified += (double)swarm->sites[i].verified / swarm->count;
	for (uint32_t i = 0; i < swarm->count; i++)
		swarm_stop(swarm, &swarm->sites[i]);
}

bool swarm_run(struct swarm *swarm)
{
	double started_s = cpu_s();
	swarm->figures.boot_s = swarm->figures.heal_s = -1;
	boot(swarm);
	calm(swarm);
	crashes(swarm);
	mass(swarm);
	faults(swarm);
	heal(swarm);
	sum_up(swarm, started_s);
	return swarm->violations_count == 0;
}

/* ---- The table at the end ---------------------------------------------------------------------------------------- */

static void put_quantiles(struct buf *out, const char *what, struct sim_samples *samples)
{
	if (samples->count == 0)
		return;
	buf_printf(out, "  %-44s %8.2f %8.2f %8.2f %8.2f\n", what, sim_samples_quantile(samples, 0),
	           sim_samples_quantile(samples, 0.5), sim_samples_quantile(samples, 0.99),
	           sim_samples_quantile(samples, 1));
}

static void put_detection(struct swarm *swarm, struct buf *out)
{
	struct swarm_figures *figures = &swarm->figures;
	if (figures->first_s.count == 0)
		return;
	buf_printf(out, "  %-44s %8s %8s %8s %8s\n", "a crash in calm weather, s", "least", "median", "p99", "most");
	put_quantiles(out, "  suspected by one", &figures->suspected_s);
	put_quantiles(out, "  known to one", &figures->first_s);
	put_quantiles(out, "  known to each", &figures->each_s);
	put_quantiles(out, "  known to all", &figures->all_s);
	put_quantiles(out, "  from the first to the last", &figures->spread_s);
	buf_printf(out, "  %-44s %8.2f\n", "  bound", (double)swarm_detect_bound_us(swarm) / SWARM_SECOND_US);
	buf_printf(out, "  %-44s %8" PRIu32 " of %" PRIu32 "\n", "  known to all later than that", figures->late,
	           figures->deaths);
}

static void put_traffic(const struct swarm_figures *figures, struct buf *out)
{
	buf_printf(out, "  %-44s %8.2f\n", "calm: datagrams per site and second", figures->calm_datagrams);
	buf_printf(out, "  %-44s %8.0f\n", "calm: bytes per site and second", figures->calm_bytes);
	buf_printf(out, "  %-44s %8.0f\n", "calm: the same, sealed, with UDP and IP", figures->calm_wire_bytes);
	buf_printf(out, "  %-44s %8" PRIu64 "\n", "calm: datagrams, worst site and second", figures->peak_datagrams);
	if (figures->rush_mean_datagrams <= 0)
		return;
	buf_printf(out, "  %-44s %8.2f\n", "mass failure: datagrams per site and second", figures->rush_mean_datagrams);
	buf_printf(out, "  %-44s %8" PRIu64 "\n", "mass failure: datagrams, worst site and second",
	           figures->rush_datagrams);
}

void swarm_report(struct swarm *swarm, struct buf *out)
{
	const struct swarm_figures *figures = &swarm->figures;
	put_detection(swarm, out);
	if (swarm->options.calm_s > 0)
		put_traffic(figures, out);
	buf_printf(out, "  %-44s %8.2f\n", "all agree: after the start, s", figures->boot_s);
	buf_printf(out, "  %-44s %8.2f\n", "all agree: after the last fault, s", figures->heal_s);
	buf_printf(out, "  %-44s %8" PRIu32 "\n", "faults", figures->faults);
	buf_printf(out, "  %-44s %8" PRIu64 "\n", "running sites called lost: in calm weather", figures->false_lost_calm);
	buf_printf(out, "  %-44s %8" PRIu64 "\n", "running sites called lost: under faults", figures->false_lost);
	buf_printf(out, "  %-44s %8" PRIu64 "\n", "running sites suspected", figures->false_suspect);
	buf_printf(out, "  %-44s %8.1f\n", "error of estimated round trips, median, %", figures->error_median * 100);
	buf_printf(out, "  %-44s %8.1f\n", "error of estimated round trips, p90, %", figures->error_p90 * 100);
	buf_printf(out, "  %-44s %8.1f\n", "memory per site, kB", figures->memory_mean / 1000);
	buf_printf(out, "  %-44s %8.1f\n", "memory, worst site, kB", figures->memory_most / 1000);
	buf_printf(out, "  %-44s %8.1f\n", "signatures checked per site", figures->verified);
	buf_printf(out, "  %-44s %8.1f\n", "CPU per site and virtual second, us", figures->cpu_us);
	buf_printf(out, "  %-44s %8.1f\n", "virtual time, s", figures->virtual_s);
	buf_printf(out, "  %-44s %8.1f\n", "CPU, s", figures->cpu_s);
	buf_printf(out, "  %-44s %8" PRIu64 "\n", "events", figures->events);
	buf_printf(out, "  %-44s %016" PRIx64 "\n", "digest", swarm->sim.digest);
}
