/* cheops-sim-cross --realm: worlds of all that spans sites, from one seed. docs/simulator.md says what is checked. */
#include "sim/main_realm.h"

#include "sim/realm.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SITES = 4, STEPS = 300, STEPS_MOST = 100000, RUN_MOST_S = 120 };

struct settings {
	struct realm_options realm;
	struct sim_runner runner;
	struct sim_common common;
};

static const char usage[] =
	"usage: cheops-sim-cross --realm [--seed N] [--sites N] [--steps N] [OPTION...]\n"
	"\n"
	"A run of --sites sites (2 to 6; 4): for --steps steps (300) of 0.1 s users make, rename, delete and list children "
	"of\n"
	"containers, change and read what is divided, and add and withdraw sites, and faults happen; then all is mended, "
	"and\n"
	"has to be right; then all is deleted, and nothing may be left. Without --seed a new one is drawn, and told.\n"
	"\n"
	"  --runs N            so many runs, each with the next seed\n"
	"  --vary              all but the steps differs from seed to seed\n"
	"  --faults N          in one run (one for two seconds of --steps)\n"
	"  --kinds LIST        of these kinds only: crash,partition... (--kinds help lists them)\n"
	"  --actions N         of users (100)\n"
	"  --strict            all containers are\n"
	"  --loss SHARE        of the messages in good weather (0.005)\n"
	"  --trace             tell everything that happens\n"
	"  --shrink            after a failure: leave out faults, and users' actions, as long as it still fails\n"
	"  --keep LIST         of the plan's faults only these numbers\n"
	"  --keep-actions LIST of the users' actions only these\n";

static void put_command(void *context, struct buf *out)
{
	const struct settings *settings = context;
	const struct realm_options *realm = &settings->realm;
	buf_printf(out,
	           "make sim ROOM=cross SEED=%" PRIu64 " SITES=%" PRIu32 " STEPS=%" PRIu32
	           " OPTIONS='--realm --faults %" PRIu32,
	           realm->seed, realm->sites, realm->steps, realm->faults);
	if (settings->common.varies)
		buf_printf(out, " --vary");
	else
		buf_printf(out, " --actions %" PRIu32 " --loss %g%s", realm->actions, realm->weather.loss,
		           realm->optimistic ? "" : " --strict");
	if (settings->common.only)
		buf_printf(out, " --kinds %s", settings->common.only);
}

static void put_failure(const struct settings *settings, const struct realm *realm)
{
	sim_put_failure(&(struct sim_failure){.seed = realm->options.seed,
	                                      .sites = realm->options.sites,
	                                      .step = realm->violation_us / REALM_STEP_US,
	                                      .violations = buf_c(&realm->violations),
	                                      .plan = settings->runner.runs == 1 ? &realm->faults.plan : NULL});
	sim_runner_put_again(&settings->runner);
}

static bool run(void *context, bool quiet)
{
	struct settings *settings = context;
	struct realm *realm = malloc(sizeof(*realm));
	struct buf report = {0};
	if (!realm)
		abort();
	alarm(RUN_MOST_S); /* a loop without end is a failure like any other */
	settings->realm.keep_faults = settings->runner.lists[0];
	settings->realm.keep_actions = settings->runner.lists[1];
	realm_init(realm, &settings->realm);
	bool sound = realm_run(realm);
	const struct realm_figures *figures = &realm->figures;
	realm_report(realm, &report);
	if (!quiet && settings->runner.runs == 1)
		printf("%s", buf_c(&report));
	if (!quiet && settings->runner.runs > 1 && sound)
		printf("seed %" PRIu64 ": %" PRIu32 " sites, %" PRIu32 " faults, %" PRIu64 " requests, %" PRIu64
		       " accepted, %" PRIu64 " taken, %" PRIu64 " lists, %" PRIu64 " partial, %" PRIu64 " reads, %" PRIu64
		       " marked, digest %016" PRIx64 ", %.2f s of CPU\n",
		       settings->realm.seed, settings->realm.sites, figures->faults, figures->actions, figures->accepted,
		       figures->taken, figures->lists, figures->partial, figures->reads, figures->marked, realm->sim.digest,
		       figures->cpu_s);
	if (!quiet && !sound)
		put_failure(settings, realm);
	fflush(stdout);
	buf_free(&report);
	realm_free(realm);
	free(realm);
	return sound;
}

static void prepare(void *context, uint32_t number)
{
	struct settings *settings = context;
	settings->realm.seed += number > 0;
	if (settings->common.varies)
		realm_options_vary(&settings->realm);
	settings->runner.lists[0].count = settings->realm.faults;
	settings->runner.lists[1].count = settings->realm.actions;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

enum { OPTION_REALM = 1, OPTION_ACTIONS, OPTION_STRICT };

static const struct option options[] = {
	{"realm", no_argument, NULL, OPTION_REALM},
	{"actions", required_argument, NULL, OPTION_ACTIONS},
	{"strict", no_argument, NULL, OPTION_STRICT},
	{0},
};

static void set(void *context, int option, const char *value)
{
	struct settings *settings = context;
	switch (option) {
	case OPTION_ACTIONS: settings->realm.actions = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_STRICT: settings->realm.optimistic = false; break;
	}
}

int main_realm(int argc, char **argv)
{
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	settings.runner.context = &settings;
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists[1] = (struct sim_list){.what = "actions"};
	settings.runner.lists_count = 2;
	struct realm_options *realm = &settings.realm;
	*realm = realm_options_default(sim_new_seed(), SITES);
	realm->steps = STEPS;
	settings.common = (struct sim_common){.usage = usage,
	                                      .seed = &realm->seed,
	                                      .sites = &realm->sites,
	                                      .steps = &realm->steps,
	                                      .faults = &realm->faults,
	                                      .kinds = &realm->kinds,
	                                      .loss = &realm->weather.loss,
	                                      .trace = &realm->trace,
	                                      .sites_most = REALM_SITES,
	                                      .steps_least = 1,
	                                      .steps_most = STEPS_MOST,
	                                      .kinds_allowed = REALM_FAULTS};
	sim_read_options(&settings.runner, &settings.common, argc, argv, options, set);
	printf("seed %" PRIu64 ", %" PRIu32 " steps\n", realm->seed, realm->steps);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
