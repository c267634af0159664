/* cheops-sim-cross: whole worlds of cross resources from one seed. docs/simulator.md says what it checks. */
#include "sim/main_realm.h"
#include "sim/span.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SITES = 5, STEPS = 300, STEPS_MOST = 100000, RUN_MOST_S = 120 };

struct settings {
	struct span_options span;
	struct sim_runner runner;
	struct sim_common common;
};

static const char usage[] =
	"usage: cheops-sim-cross [--seed N] [--sites N] [--steps N] [OPTION...]\n"
	"\n"
	"A run of --sites sites (2 to 9; 5): for --steps steps (300) of 0.1 s users make, rename and delete children of\n"
	"containers under few names, and change divided totals, and faults happen; then all is mended, and every name has "
	"to\n"
	"be one child's, and all parts have to add up. Without --seed a new one is drawn, and told.\n"
	"\n"
	"  --runs N            so many runs, each with the next seed\n"
	"  --vary              all but the steps differs from seed to seed\n"
	"  --faults N          in one run (one for two seconds of --steps)\n"
	"  --kinds LIST        of these kinds only: crash,partition... (--kinds help lists them)\n"
	"  --actions N         of users (80)\n"
	"  --changes N         of the sites of containers (3)\n"
	"  --strict            all containers are\n"
	"  --loss SHARE        of the messages in good weather (0.005)\n"
	"  --trace             tell everything that happens\n"
	"  --shrink            after a failure: leave out faults, and users' actions, as long as it still fails\n"
	"  --keep LIST         of the plan's faults only these numbers\n"
	"  --keep-actions LIST of the users' actions only these\n"
	"\n"
	"  --realm             another world: all that spans sites at once (cheops-sim-cross --realm --help)\n";

static void put_command(void *context, struct buf *out)
{
	const struct settings *settings = context;
	const struct span_options *span = &settings->span;
	buf_printf(out,
	           "make sim ROOM=cross SEED=%" PRIu64 " SITES=%" PRIu32 " STEPS=%" PRIu32 " OPTIONS='--faults %" PRIu32,
	           span->seed, span->sites, span->steps, span->faults);
	if (settings->common.varies)
		buf_printf(out, " --vary");
	else
		buf_printf(out, " --actions %" PRIu32 " --changes %" PRIu32 " --loss %g%s", span->actions, span->changes,
		           span->weather.loss, span->optimistic ? "" : " --strict");
	if (settings->common.only)
		buf_printf(out, " --kinds %s", settings->common.only);
}

static void put_failure(const struct settings *settings, const struct span *span)
{
	sim_put_failure(&(struct sim_failure){.seed = span->options.seed,
	                                      .sites = span->options.sites,
	                                      .step = span->violation_us / SPAN_STEP_US,
	                                      .violations = buf_c(&span->violations),
	                                      .plan = settings->runner.runs == 1 ? &span->faults.plan : NULL});
	sim_runner_put_again(&settings->runner);
}

static bool run(void *context, bool quiet)
{
	struct settings *settings = context;
	struct span span;
	struct buf report = {0};
	alarm(RUN_MOST_S); /* a loop without end is a failure like any other */
	settings->span.keep_faults = settings->runner.lists[0];
	settings->span.keep_actions = settings->runner.lists[1];
	span_init(&span, &settings->span);
	bool sound = span_run(&span);
	span_report(&span, &report);
	if (!quiet && settings->runner.runs == 1)
		printf("%s", buf_c(&report));
	if (!quiet && settings->runner.runs > 1 && sound)
		printf("seed %" PRIu64 ": %" PRIu32 " sites, %" PRIu32 " faults, %" PRIu64 " requests, %" PRIu64
		       " acknowledged, %" PRIu64 " taken, %" PRIu64 " unavailable, %" PRIu64 " lost, digest %016" PRIx64
		       ", %.2f s of CPU\n",
		       settings->span.seed, settings->span.sites, span.figures.faults, span.figures.actions,
		       span.figures.acknowledged, span.figures.taken, span.figures.unavailable, span.figures.lost,
		       span.sim.digest, span.figures.cpu_s);
	if (!quiet && !sound)
		put_failure(settings, &span);
	fflush(stdout);
	buf_free(&report);
	span_free(&span);
	return sound;
}

static void prepare(void *context, uint32_t number)
{
	struct settings *settings = context;
	settings->span.seed += number > 0;
	if (settings->common.varies)
		span_options_vary(&settings->span);
	settings->runner.lists[0].count = settings->span.faults;
	settings->runner.lists[1].count = settings->span.actions;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

enum { OPTION_ACTIONS = 1, OPTION_CHANGES, OPTION_STRICT };

static const struct option options[] = {
	{"actions", required_argument, NULL, OPTION_ACTIONS},
	{"changes", required_argument, NULL, OPTION_CHANGES},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{0},
};

static void set(void *context, int option, const char *value)
{
	struct settings *settings = context;
	struct span_options *span = &settings->span;
	switch (option) {
	case OPTION_ACTIONS: span->actions = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_CHANGES: span->changes = (uint32_t)sim_option_number(value, 0, 1000); break;
	case OPTION_STRICT: span->optimistic = false; break;
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++)
		if (strcmp(argv[i], "--realm") == 0)
			return main_realm(argc, argv);
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	settings.runner.context = &settings;
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists[1] = (struct sim_list){.what = "actions"};
	settings.runner.lists_count = 2;
	struct span_options *span = &settings.span;
	*span = span_options_default(sim_new_seed(), SITES);
	span->steps = STEPS;
	settings.common = (struct sim_common){.usage = usage,
	                                      .seed = &span->seed,
	                                      .sites = &span->sites,
	                                      .steps = &span->steps,
	                                      .faults = &span->faults,
	                                      .kinds = &span->kinds,
	                                      .loss = &span->weather.loss,
	                                      .trace = &span->trace,
	                                      .sites_most = SPAN_SITES,
	                                      .steps_least = 1,
	                                      .steps_most = STEPS_MOST,
	                                      .kinds_allowed = SPAN_FAULTS};
	sim_read_options(&settings.runner, &settings.common, argc, argv, options, set);
	printf("seed %" PRIu64 ", %" PRIu32 " steps\n", span->seed, span->steps);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
