/* Sites: how soon a death is known, and what it costs to watch each other, by number of sites; beside what was published
 * for SWIM (Das, Gupta, Motivala, 2002) and Lifeguard (Dadgar, Phillips, Currey, 2018).
 *
 * See print_method() for how it is measured. Usage: bench_sites [--quick | --full]
 */
#include "sim/swarm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { LIFEGUARD_SITES = 128, GOAL_SITES = 1000, GOAL_BYTES = 2000, GOAL_S = 10, SLOW_SITES = 128, SLOW_RUNS = 5 };

/* Lifeguard's evaluation: 128 members, a probe per second, alpha 5 and beta 6. Medians, rounded. */
static const double lifeguard_first_s = 12.5, lifeguard_all_s = 13.0;

static const struct setting {
	uint32_t sites;
	uint32_t runs;
	uint32_t crashes; /* in each */
	uint32_t calm_s;
	enum { QUICK, USUAL, FULL } effort;
} settings[] = {
	{10, 20, 2, 20, QUICK},  {30, 10, 4, 20, QUICK},   {100, 5, 8, 20, QUICK},  {128, 5, 8, 20, QUICK},
	{300, 3, 10, 20, USUAL}, {1000, 2, 10, 20, USUAL}, {3000, 1, 10, 10, FULL}, {10000, 1, 5, 5, FULL},
};

struct row {
	struct sim_samples suspected_s, first_s, all_s, spread_s;
	double datagrams, bytes, cpu_us, memory, boot_s, error;
	uint64_t false_lost;
	bool sound;
};

static void print_method(void)
{
	static const char *const lines[] = {
		"Method: whole worlds of sites in one process and virtual time (tests/sim), default timings (a probe per",
		"0.4 s), round trips up to 150 ms, 0.5 % of loss, 0.1 % of duplicates, jitter. The sites join (from 2000",
		"on they know each other from the start), are left alone (traffic), then some die, two seconds apart.",
		"Times are virtual seconds from the death: until one suspects it, until one calls it lost, until all do;",
		"median and p99 of all deaths of all runs. Bytes are per site and second, sealed, with UDP and IP. CPU is",
		"the processor's, per site and virtual second, with what the simulator itself takes. Published figures were",
		"measured by their authors on other machines and networks: what can be compared is the shape (constant,",
		"logarithmic), and the order of magnitude of times, which depend on the timings above all.",
		"",
	};
	for (size_t i = 0; i < COUNT(lines); i++)
		puts(lines[i]);
}

/* ---- By number of sites ------------------------------------------------------------------------------------------- */

static void add_all(struct sim_samples *to, const struct sim_samples *from)
{
	for (size_t i = 0; i < from->count; i++)
		sim_samples_add(to, from->at[i]);
}

static void add_run(struct row *row, const struct setting *setting, uint64_t seed)
{
	struct swarm swarm;
	struct swarm_options options = swarm_options_default(seed, setting->sites);
	options.steps = 0;
	options.calm_s = setting->calm_s;
	options.crashes = setting->crashes;
	options.warm = options.pooled = setting->sites >= 2000;
	swarm_init(&swarm, &options);
	if (!swarm_run(&swarm)) {
		printf("a check was violated, seed %" PRIu64 ":\n%s", seed, buf_c(&swarm.violations));
		row->sound = false;
	}
	const struct swarm_figures *figures = &swarm.figures;
	add_all(&row->suspected_s, &figures->suspected_s);
	add_all(&row->first_s, &figures->first_s);
	add_all(&row->all_s, &figures->all_s);
	add_all(&row->spread_s, &figures->spread_s);
	row->datagrams += figures->calm_datagrams / setting->runs;
	row->bytes += figures->calm_wire_bytes / setting->runs;
	row->cpu_us += figures->cpu_us / setting->runs;
	row->memory += figures->memory_mean / setting->runs;
	row->boot_s += figures->boot_s / setting->runs;
	row->error += figures->error_median / setting->runs;
	row->false_lost += figures->false_lost_calm;
	swarm_free(&swarm);
}

static void print_row(const struct setting *setting, struct row *row)
{
	printf("%6" PRIu32 " %6zu %9.2f %9.2f %9.2f %9.2f %9.2f %9.2f %7.1f %7.0f %7.1f %7.1f %7.1f %6" PRIu64 "\n",
	       setting->sites, row->first_s.count, sim_samples_mean(&row->suspected_s),
	       sim_samples_quantile(&row->first_s, 0.5), sim_samples_quantile(&row->first_s, 0.99),
	       sim_samples_quantile(&row->all_s, 0.5), sim_samples_quantile(&row->all_s, 0.99),
	       sim_samples_quantile(&row->spread_s, 0.5), row->datagrams, row->bytes, row->cpu_us, row->memory / 1000,
	       row->error * 100, row->false_lost);
	fflush(stdout);
}

static void print_heading(void)
{
	printf("%6s %6s %9s %9s %9s %9s %9s %9s %7s %7s %7s %7s %7s %6s\n", "", "", "suspected", "lost at", "one",
	       "lost at", "all", "spread", "dgrams", "bytes", "CPU", "memory", "error", "false");
	printf("%6s %6s %9s %9s %9s %9s %9s %9s %7s %7s %7s %7s %7s %6s\n", "sites", "deaths", "mean, s", "median", "p99",
	       "median", "p99", "median", "/s", "/s", "us/s", "kB", "%", "lost");
}

static bool measure(struct row *rows, int effort)
{
	bool sound = true;
	print_heading();
	for (size_t i = 0; i < COUNT(settings); i++) {
		rows[i] = (struct row){.sound = true};
		if ((int)settings[i].effort > effort)
			continue;
		for (uint32_t run = 0; run < settings[i].runs; run++)
			add_run(&rows[i], &settings[i], 1000 * settings[i].sites + run);
		print_row(&settings[i], &rows[i]);
		sound = sound && rows[i].sound;
	}
	return sound;
}

/* ---- Slow members -------------------------------------------------------------------------------------------------- */

struct slow {
	uint64_t by_any;
	uint64_t by_healthy;
};

/* Lifeguard's case: some members stand still again and again, the others are healthy. How often is a healthy one called
 * lost, by anybody, and by another healthy one? */
static struct slow measure_slow(uint32_t anomalies, bool guarded)
{
	struct slow sum = {0};
	for (uint64_t run = 0; run < SLOW_RUNS; run++) {
		struct swarm swarm;
		struct swarm_options options = swarm_options_default(500 + run, SLOW_SITES);
		options.steps = 1200;
		options.faults = anomalies;
		options.kinds = 1u << SIM_STUTTER;
		options.timing.health_most = guarded ? options.timing.health_most : 0;
		options.timing.plain = !guarded;
		swarm_init(&swarm, &options);
		swarm_run(&swarm);
		sum.by_any += swarm.figures.false_lost_healthy;
		sum.by_healthy += swarm.figures.false_lost_by_healthy;
		swarm_free(&swarm);
	}
	return sum;
}

/* Both sums have one more, so that there is a ratio where nobody was called lost. */
static void print_slow_ratios(const struct slow *with, const struct slow *without)
{
	printf("\nLifeguard: more than fifty times fewer than SWIM, a hundred times where only healthy ones are asked.\n");
	printf("ratio sites-false-alarms-to-swim %.4f\n", ((double)with->by_any + 1) / ((double)without->by_any + 1));
	printf("ratio sites-false-alarms-of-healthy-to-swim %.4f\n",
	       ((double)with->by_healthy + 1) / ((double)without->by_healthy + 1));
}

static void add_slow(struct slow *sum, const struct slow *more)
{
	sum->by_any += more->by_any;
	sum->by_healthy += more->by_healthy;
}

static void print_slow(void)
{
	static const uint32_t anomalies[] = {16, 64, 256};
	struct slow all_with = {0}, all_without = {0};
	printf(
		"\nSlow members: %d sites, 120 s, %d runs each. So many times one of them stands still again and again (for\n",
		SLOW_SITES, SLOW_RUNS);
	printf("0.1 to 4 s, with up to 64 ms in between), for up to 20 s. Healthy sites called lost:\n");
	printf("%10s %20s %20s %20s %20s\n", "", "ours", "ours", "plain SWIM", "plain SWIM");
	printf("%10s %20s %20s %20s %20s\n", "anomalies", "by anybody", "by healthy ones", "by anybody", "by healthy ones");
	for (size_t i = 0; i < COUNT(anomalies); i++) {
		struct slow with = measure_slow(anomalies[i], true), without = measure_slow(anomalies[i], false);
		printf("%10" PRIu32 " %20" PRIu64 " %20" PRIu64 " %20" PRIu64 " %20" PRIu64 "\n", anomalies[i], with.by_any,
		       with.by_healthy, without.by_any, without.by_healthy);
		fflush(stdout);
		add_slow(&all_with, &with);
		add_slow(&all_without, &without);
	}
	print_slow_ratios(&all_with, &all_without);
}

/* ---- Ratios -------------------------------------------------------------------------------------------------------- */

static struct row *row_of(struct row *rows, uint32_t sites)
{
	for (size_t i = 0; i < COUNT(settings); i++) {
		if (settings[i].sites == sites && rows[i].first_s.count > 0)
			return &rows[i];
	}
	return NULL;
}

static void print_ratios(struct row *rows)
{
	double period_s = (double)site_timing_default().probe_us / SWARM_SECOND_US;
	double swim_s = period_s * M_E / (M_E - 1);
	struct row *ten = row_of(rows, 10), *hundred = row_of(rows, 100), *guard = row_of(rows, LIFEGUARD_SITES);
	struct row *goal = row_of(rows, GOAL_SITES);
	printf(
		"\nSWIM: a dead member is first probed after e/(e-1) periods on average, whatever the number of members; the\n"
		"load per member is constant; news reach all in a time that grows as log n.\n"
		"Lifeguard: at 128 members about %.1f s until the first and %.1f s until all know (medians).\n\n",
		lifeguard_first_s, lifeguard_all_s);
	printf("ratio sites-first-suspicion-100-to-swim %.3f\n", sim_samples_mean(&hundred->suspected_s) / swim_s);
	printf("ratio sites-load-100-to-10 %.3f\n", hundred->datagrams / ten->datagrams);
	printf("ratio sites-lost-at-one-128-to-lifeguard %.3f\n",
	       sim_samples_quantile(&guard->first_s, 0.5) / lifeguard_first_s);
	printf("ratio sites-lost-at-all-128-to-lifeguard %.3f\n",
	       sim_samples_quantile(&guard->all_s, 0.5) / lifeguard_all_s);
	if (!goal)
		return;
	printf("ratio sites-first-suspicion-1000-to-swim %.3f\n", sim_samples_mean(&goal->suspected_s) / swim_s);
	printf("ratio sites-load-1000-to-10 %.3f\n", goal->datagrams / ten->datagrams);
	printf("ratio sites-lost-at-all-1000-to-goal %.3f\n", sim_samples_quantile(&goal->all_s, 1) / GOAL_S);
	printf("ratio sites-bytes-1000-to-goal %.3f\n", goal->bytes / GOAL_BYTES);
	double spread = sim_samples_quantile(&goal->spread_s, 0.5) / sim_samples_quantile(&hundred->spread_s, 0.5);
	printf("ratio sites-spread-growth-to-log %.3f\n", spread / (log(GOAL_SITES) / log(100)));
}

int main(int argc, char **argv)
{
	struct row rows[COUNT(settings)];
	int effort = USUAL;
	if (argc > 1 && str_equal(str_of(argv[1]), STR("--quick")))
		effort = QUICK;
	else if (argc > 1 && str_equal(str_of(argv[1]), STR("--full")))
		effort = FULL;
	else if (argc > 1) {
		fprintf(stderr, "usage: bench_sites [--quick | --full]\n");
		return 2;
	}
	print_method();
	bool sound = measure(rows, effort);
	print_slow();
	print_ratios(rows);
	for (size_t i = 0; i < COUNT(settings); i++) {
		sim_samples_free(&rows[i].suspected_s);
		sim_samples_free(&rows[i].first_s);
		sim_samples_free(&rows[i].all_s);
		sim_samples_free(&rows[i].spread_s);
	}
	return sound ? 0 : 1;
}
