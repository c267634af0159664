/* cheops-sim: whole worlds of sites from one seed. docs/simulator.md says what it checks. */
#include "sim/runner.h"
#include "sim/swarm.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SITES = 30, STEPS = 600, STEPS_PER_FAULT = 20, FAULTS_MOST = 400, WARM_SITES = 2000, SITES_MOST = 20000 };

struct settings {
	struct swarm_options swarm;
	struct sim_runner runner;
	bool varies;
	const char *kinds;
};

static const char usage[] =
	"usage: cheops-sim [--seed N] [--sites N] [--steps N] [OPTION...]\n"
	"\n"
	"A run of --sites sites (30): they join, are watched in calm weather, some die; then faults for --steps steps "
	"(600)\n"
	"of 0.1 s; then all is mended, and they have to agree. Without --seed a new one is drawn, and told.\n"
	"\n"
	"  --runs N       so many runs, each with the next seed\n"
	"  --vary         sites (3 to 30), cards, deaths and the weather differ from seed to seed\n"
	"  --faults N     in one run (one for two seconds of --steps)\n"
	"  --kinds LIST   of these kinds only: crash,pause,partition... (--kinds help lists them)\n"
	"  --calm N       seconds of calm in which traffic is measured (20)\n"
	"  --crashes N    sites that die in calm weather, one after the other (5)\n"
	"  --mass SHARE   of the sites that dies at once, in calm weather (0)\n"
	"  --loss SHARE   of the datagrams in calm weather (0.005)\n"
	"  --card N       bytes of certificate in each card (64)\n"
	"  --warm         all know all from the start (default from 2000 sites on)\n"
	"  --trace        tell everything that happens\n"
	"  --shrink       after a failure: leave out faults as long as it still fails\n"
	"  --keep LIST    of the plan's faults only these numbers\n";

/* ---- One run ----------------------------------------------------------------------------------------------------- */

static void put_command(void *context, struct buf *out)
{
	const struct settings *settings = context;
	const struct swarm_options *swarm = &settings->swarm;
	buf_printf(out, "make sim SEED=%" PRIu64 " SITES=%" PRIu32 " STEPS=%" PRIu32 " OPTIONS='--faults %" PRIu32,
	           swarm->seed, swarm->sites, swarm->steps, swarm->faults);
	buf_printf(out, " --calm %" PRIu32 " --crashes %" PRIu32 " --mass %g --loss %g --card %" PRIu32 "%s", swarm->calm_s,
	           swarm->crashes, swarm->mass, swarm->weather.loss, swarm->card_bytes, swarm->warm ? " --warm" : "");
	if (settings->kinds)
		buf_printf(out, " --kinds %s", settings->kinds);
}

static void put_failure(const struct settings *settings, const struct swarm *swarm)
{
	struct buf command = {0};
	sim_runner_put_command(&settings->runner, &command);
	printf("FAILED: seed %" PRIu64 ", %" PRIu32 " sites, at step %" PRIu64 "\n%s", swarm->options.seed,
	       swarm->options.sites, swarm->violation_us / SWARM_STEP_US, buf_c(&swarm->violations));
	sim_plan_print(&swarm->plan);
	printf("  to see it again: %s\n", buf_c(&command));
	buf_free(&command);
}

static bool run(void *context, bool quiet)
{
	const struct settings *settings = context;
	struct swarm swarm;
	struct buf report = {0};
	swarm_init(&swarm, &settings->swarm);
	for (uint32_t i = 0; i < swarm.plan.count; i++)
		swarm.plan.faults[i].skipped = !sim_list_has(&settings->runner.lists[0], i);
	bool sound = swarm_run(&swarm);
	swarm_report(&swarm, &report);
	if (!quiet && settings->runner.runs == 1)
		printf("%s", buf_c(&report));
	if (!quiet && settings->runner.runs > 1 && sound)
		printf("seed %" PRIu64 ": %" PRIu32 " sites, %" PRIu32 " faults, digest %016" PRIx64 ", %.2f s of CPU\n",
		       settings->swarm.seed, settings->swarm.sites, swarm.figures.faults, swarm.sim.digest,
		       swarm.figures.cpu_s);
	if (!quiet && !sound)
		put_failure(settings, &swarm);
	fflush(stdout);
	buf_free(&report);
	swarm_free(&swarm);
	return sound;
}

static void prepare(void *context, uint32_t number)
{
	struct settings *settings = context;
	settings->swarm.seed += number > 0;
	if (settings->varies)
		swarm_options_vary(&settings->swarm);
	settings->runner.lists[0].count = settings->swarm.faults;
}

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

enum {
	OPTION_SEED = 1,
	OPTION_SITES,
	OPTION_STEPS,
	OPTION_RUNS,
	OPTION_FAULTS,
	OPTION_KINDS,
	OPTION_CALM,
	OPTION_CRASHES,
	OPTION_MASS,
	OPTION_LOSS,
	OPTION_CARD,
	OPTION_WARM,
	OPTION_TRACE,
	OPTION_SHRINK,
	OPTION_KEEP,
	OPTION_VARY,
	OPTION_HELP
};

static const struct option options[] = {
	{"seed", required_argument, NULL, OPTION_SEED},     {"sites", required_argument, NULL, OPTION_SITES},
	{"steps", required_argument, NULL, OPTION_STEPS},   {"runs", required_argument, NULL, OPTION_RUNS},
	{"faults", required_argument, NULL, OPTION_FAULTS}, {"kinds", required_argument, NULL, OPTION_KINDS},
	{"calm", required_argument, NULL, OPTION_CALM},     {"crashes", required_argument, NULL, OPTION_CRASHES},
	{"mass", required_argument, NULL, OPTION_MASS},     {"loss", required_argument, NULL, OPTION_LOSS},
	{"card", required_argument, NULL, OPTION_CARD},     {"warm", no_argument, NULL, OPTION_WARM},
	{"trace", no_argument, NULL, OPTION_TRACE},         {"shrink", no_argument, NULL, OPTION_SHRINK},
	{"keep", required_argument, NULL, OPTION_KEEP},     {"vary", no_argument, NULL, OPTION_VARY},
	{"help", no_argument, NULL, OPTION_HELP},           {0},
};

static void set(struct settings *settings, int option, const char *value)
{
	struct swarm_options *swarm = &settings->swarm;
	switch (option) {
	case OPTION_SEED: swarm->seed = sim_option_number(value, 0, UINT64_MAX); break;
	case OPTION_SITES: swarm->sites = (uint32_t)sim_option_number(value, 2, SITES_MOST); break;
	case OPTION_STEPS: swarm->steps = (uint32_t)sim_option_number(value, 0, 10000000); break;
	case OPTION_RUNS: settings->runner.runs = (uint32_t)sim_option_number(value, 1, UINT32_MAX); break;
	case OPTION_FAULTS: swarm->faults = (uint32_t)sim_option_number(value, 0, FAULTS_MOST); break;
	case OPTION_KINDS:
		settings->kinds = value;
		swarm->kinds = sim_option_kinds(value, SIM_SITE_FAULTS);
		break;
	case OPTION_CALM: swarm->calm_s = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_CRASHES: swarm->crashes = (uint32_t)sim_option_number(value, 0, 1000); break;
	case OPTION_MASS: swarm->mass = sim_option_share(value); break;
	case OPTION_LOSS: swarm->weather.loss = sim_option_share(value); break;
	case OPTION_CARD: swarm->card_bytes = (uint32_t)sim_option_number(value, 0, 600); break;
	case OPTION_WARM: swarm->warm = true; break;
	case OPTION_TRACE: swarm->trace = true; break;
	case OPTION_SHRINK: settings->runner.shrinks = true; break;
	case OPTION_KEEP: settings->runner.lists[0].keep = str_of(value); break;
	case OPTION_VARY: settings->varies = true; break;
	case OPTION_HELP: printf("%s", usage); exit(0);
	default: fprintf(stderr, "%s", usage); exit(2);
	}
}

static struct settings settings_of(int argc, char **argv)
{
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists_count = 1;
	struct swarm_options *swarm = &settings.swarm;
	*swarm = swarm_options_default(sim_new_seed(), SITES);
	swarm->steps = STEPS;
	swarm->calm_s = 20;
	swarm->crashes = 5;
	swarm->progress = true;
	swarm->faults = UINT32_MAX;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
		set(&settings, option, optarg);
	if (optind < argc)
		set(&settings, '?', NULL);
	if (swarm->faults == UINT32_MAX)
		swarm->faults = swarm->steps / STEPS_PER_FAULT < FAULTS_MOST ? swarm->steps / STEPS_PER_FAULT : FAULTS_MOST;
	if (swarm->crashes > swarm->sites / 3)
		swarm->crashes = swarm->sites / 3;
	if (swarm->sites >= WARM_SITES)
		swarm->warm = true;
	swarm->pooled = swarm->sites >= WARM_SITES;
	return settings;
}

int main(int argc, char **argv)
{
	struct settings settings = settings_of(argc, argv);
	settings.runner.context = &settings;
	printf("seed %" PRIu64 ", %" PRIu32 " sites, %" PRIu32 " steps, %" PRIu32 " faults\n", settings.swarm.seed,
	       settings.swarm.sites, settings.swarm.steps, settings.swarm.faults);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
