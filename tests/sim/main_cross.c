/* cheops-sim-cross: whole worlds of cross resources from one seed. docs/simulator.md says what it checks. */
#include "sim/span.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SITES = 5, STEPS = 300, STEPS_PER_FAULT = 20, FAULTS_MOST = 400, RUN_MOST_S = 120 };

struct settings {
	struct span_options span;
	struct sim_runner runner;
	bool varies;
	bool faults_given;
	const char *kinds;
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
	"  --keep-actions LIST of the users' actions only these\n";

static void put_command(void *context, struct buf *out)
{
	const struct settings *settings = context;
	const struct span_options *span = &settings->span;
	buf_printf(out,
	           "make sim ROOM=cross SEED=%" PRIu64 " SITES=%" PRIu32 " STEPS=%" PRIu32 " OPTIONS='--faults %" PRIu32,
	           span->seed, span->sites, span->steps, span->faults);
	if (settings->varies)
		buf_printf(out, " --vary");
	else
		buf_printf(out, " --actions %" PRIu32 " --changes %" PRIu32 " --loss %g%s", span->actions, span->changes,
		           span->weather.loss, span->optimistic ? "" : " --strict");
	if (settings->kinds)
		buf_printf(out, " --kinds %s", settings->kinds);
}

static void put_failure(const struct settings *settings, const struct span *span)
{
	struct buf command = {0};
	sim_runner_put_command(&settings->runner, &command);
	printf("FAILED: seed %" PRIu64 ", %" PRIu32 " sites, at step %" PRIu64 "\n%s", span->options.seed,
	       span->options.sites, span->violation_us / SPAN_STEP_US, buf_c(&span->violations));
	if (settings->runner.runs == 1)
		sim_plan_print(&span->plan);
	printf("  to see it again: %s\n", buf_c(&command));
	buf_free(&command);
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
	if (settings->varies)
		span_options_vary(&settings->span);
	settings->runner.lists[0].count = settings->span.faults;
	settings->runner.lists[1].count = settings->span.actions;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

enum {
	OPTION_SEED = 1,
	OPTION_SITES,
	OPTION_STEPS,
	OPTION_RUNS,
	OPTION_FAULTS,
	OPTION_KINDS,
	OPTION_ACTIONS,
	OPTION_CHANGES,
	OPTION_STRICT,
	OPTION_LOSS,
	OPTION_TRACE,
	OPTION_SHRINK,
	OPTION_KEEP,
	OPTION_KEEP_ACTIONS,
	OPTION_VARY,
	OPTION_HELP
};

static const struct option options[] = {
	{"seed", required_argument, NULL, OPTION_SEED},
	{"sites", required_argument, NULL, OPTION_SITES},
	{"steps", required_argument, NULL, OPTION_STEPS},
	{"runs", required_argument, NULL, OPTION_RUNS},
	{"faults", required_argument, NULL, OPTION_FAULTS},
	{"kinds", required_argument, NULL, OPTION_KINDS},
	{"actions", required_argument, NULL, OPTION_ACTIONS},
	{"changes", required_argument, NULL, OPTION_CHANGES},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{"loss", required_argument, NULL, OPTION_LOSS},
	{"trace", no_argument, NULL, OPTION_TRACE},
	{"shrink", no_argument, NULL, OPTION_SHRINK},
	{"keep", required_argument, NULL, OPTION_KEEP},
	{"keep-actions", required_argument, NULL, OPTION_KEEP_ACTIONS},
	{"vary", no_argument, NULL, OPTION_VARY},
	{"help", no_argument, NULL, OPTION_HELP},
	{0},
};

static void set(struct settings *settings, int option, const char *value)
{
	struct span_options *span = &settings->span;
	switch (option) {
	case OPTION_SEED: span->seed = sim_option_number(value, 0, UINT64_MAX); break;
	case OPTION_SITES: span->sites = (uint32_t)sim_option_number(value, 2, SPAN_SITES); break;
	case OPTION_STEPS: span->steps = (uint32_t)sim_option_number(value, 1, 100000); break;
	case OPTION_RUNS: settings->runner.runs = (uint32_t)sim_option_number(value, 1, UINT32_MAX); break;
	case OPTION_FAULTS:
		span->faults = (uint32_t)sim_option_number(value, 0, FAULTS_MOST);
		settings->faults_given = true;
		break;
	case OPTION_KINDS:
		settings->kinds = value;
		span->kinds = sim_option_kinds(value, SPAN_FAULTS);
		break;
	case OPTION_ACTIONS: span->actions = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_CHANGES: span->changes = (uint32_t)sim_option_number(value, 0, 1000); break;
	case OPTION_STRICT: span->optimistic = false; break;
	case OPTION_LOSS: span->weather.loss = sim_option_share(value); break;
	case OPTION_TRACE: span->trace = true; break;
	case OPTION_SHRINK: settings->runner.shrinks = true; break;
	case OPTION_KEEP: settings->runner.lists[0].keep = str_of(value); break;
	case OPTION_KEEP_ACTIONS: settings->runner.lists[1].keep = str_of(value); break;
	case OPTION_VARY: settings->varies = true; break;
	case OPTION_HELP: printf("%s", usage); exit(0);
	default: fprintf(stderr, "%s", usage); exit(2);
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	settings.runner.context = &settings;
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists[1] = (struct sim_list){.what = "actions"};
	settings.runner.lists_count = 2;
	settings.span = span_options_default(sim_new_seed(), SITES);
	settings.span.steps = STEPS;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
		set(&settings, option, optarg);
	if (optind < argc)
		set(&settings, '?', NULL);
	if (!settings.faults_given)
		settings.span.faults = settings.span.steps / STEPS_PER_FAULT;
	printf("seed %" PRIu64 ", %" PRIu32 " steps\n", settings.span.seed, settings.span.steps);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
