/* cheops-sim: whole worlds of sites from one seed. docs/simulator.md says what it checks. */
#include "sim/runner.h"
#include "sim/swarm.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { SITES = 30, STEPS = 600, STEPS_MOST = 10000000, WARM_SITES = 2000, SITES_MOST = 20000 };

struct settings {
	struct swarm_options swarm;
	struct sim_runner runner;
	struct sim_common common;
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
	if (settings->common.only)
		buf_printf(out, " --kinds %s", settings->common.only);
}

static void put_failure(const struct settings *settings, const struct swarm *swarm)
{
	sim_put_failure(&(struct sim_failure){.seed = swarm->options.seed,
	                                      .sites = swarm->options.sites,
	                                      .step = swarm->violation_us / SWARM_STEP_US,
	                                      .violations = buf_c(&swarm->violations),
	                                      .plan = &swarm->plan});
	sim_runner_put_again(&settings->runner);
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
	if (settings->common.varies)
		swarm_options_vary(&settings->swarm);
	settings->runner.lists[0].count = settings->swarm.faults;
}

/* ---- Settings ---------------------------------------------------------------------------------------------------- */

enum { OPTION_CALM = 1, OPTION_CRASHES, OPTION_MASS, OPTION_CARD, OPTION_WARM };

static const struct option options[] = {
	{"calm", required_argument, NULL, OPTION_CALM}, {"crashes", required_argument, NULL, OPTION_CRASHES},
	{"mass", required_argument, NULL, OPTION_MASS}, {"card", required_argument, NULL, OPTION_CARD},
	{"warm", no_argument, NULL, OPTION_WARM},       {0},
};

static void set(void *context, int option, const char *value)
{
	struct settings *settings = context;
	struct swarm_options *swarm = &settings->swarm;
	switch (option) {
	case OPTION_CALM: swarm->calm_s = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_CRASHES: swarm->crashes = (uint32_t)sim_option_number(value, 0, 1000); break;
	case OPTION_MASS: swarm->mass = sim_option_share(value); break;
	case OPTION_CARD: swarm->card_bytes = (uint32_t)sim_option_number(value, 0, 600); break;
	case OPTION_WARM: swarm->warm = true; break;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	struct swarm_options *swarm = &settings.swarm;
	settings.runner.context = &settings;
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists_count = 1;
	*swarm = swarm_options_default(sim_new_seed(), SITES);
	swarm->steps = STEPS;
	swarm->calm_s = 20;
	swarm->crashes = 5;
	swarm->progress = true;
	settings.common = (struct sim_common){.usage = usage,
	                                      .seed = &swarm->seed,
	                                      .sites = &swarm->sites,
	                                      .steps = &swarm->steps,
	                                      .faults = &swarm->faults,
	                                      .kinds = &swarm->kinds,
	                                      .loss = &swarm->weather.loss,
	                                      .trace = &swarm->trace,
	                                      .sites_most = SITES_MOST,
	                                      .steps_most = STEPS_MOST,
	                                      .kinds_allowed = SIM_SITE_FAULTS};
	sim_read_options(&settings.runner, &settings.common, argc, argv, options, set);
	if (swarm->crashes > swarm->sites / 3)
		swarm->crashes = swarm->sites / 3;
	if (swarm->sites >= WARM_SITES)
		swarm->warm = true;
	swarm->pooled = swarm->sites >= WARM_SITES;
	printf("seed %" PRIu64 ", %" PRIu32 " sites, %" PRIu32 " steps, %" PRIu32 " faults\n", swarm->seed, swarm->sites,
	       swarm->steps, swarm->faults);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
