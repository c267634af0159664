/* cheops-sim-cross --realm: worlds of all that spans sites, from one seed. docs/simulator.md says what is checked. */
#include "sim/main_realm.h"

#include "sim/realm.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SITES = 4, STEPS = 300, STEPS_PER_FAULT = 20, FAULTS_MOST = 400, RUN_MOST_S = 120 };

struct settings {
	struct realm_options realm;
	struct sim_runner runner;
	bool varies;
	bool faults_given;
	const char *kinds;
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
	if (settings->varies)
		buf_printf(out, " --vary");
	else
		buf_printf(out, " --actions %" PRIu32 " --loss %g%s", realm->actions, realm->weather.loss,
		           realm->optimistic ? "" : " --strict");
	if (settings->kinds)
		buf_printf(out, " --kinds %s", settings->kinds);
}

static void put_failure(const struct settings *settings, const struct realm *realm)
{
	struct buf command = {0};
	sim_runner_put_command(&settings->runner, &command);
	printf("FAILED: seed %" PRIu64 ", %" PRIu32 " sites, at step %" PRIu64 "\n%s", realm->options.seed,
	       realm->options.sites, realm->violation_us / REALM_STEP_US, buf_c(&realm->violations));
	if (settings->runner.runs == 1)
		sim_plan_print(&realm->plan);
	printf("  to see it again: %s\n", buf_c(&command));
	buf_free(&command);
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
	if (settings->varies)
		realm_options_vary(&settings->realm);
	settings->runner.lists[0].count = settings->realm.faults;
	settings->runner.lists[1].count = settings->realm.actions;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

enum {
	OPTION_REALM = 1,
	OPTION_SEED,
	OPTION_SITES,
	OPTION_STEPS,
	OPTION_RUNS,
	OPTION_FAULTS,
	OPTION_KINDS,
	OPTION_ACTIONS,
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
	{"realm", no_argument, NULL, OPTION_REALM},
	{"seed", required_argument, NULL, OPTION_SEED},
	{"sites", required_argument, NULL, OPTION_SITES},
	{"steps", required_argument, NULL, OPTION_STEPS},
	{"runs", required_argument, NULL, OPTION_RUNS},
	{"faults", required_argument, NULL, OPTION_FAULTS},
	{"kinds", required_argument, NULL, OPTION_KINDS},
	{"actions", required_argument, NULL, OPTION_ACTIONS},
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
	struct realm_options *realm = &settings->realm;
	switch (option) {
	case OPTION_REALM: break;
	case OPTION_SEED: realm->seed = sim_option_number(value, 0, UINT64_MAX); break;
	case OPTION_SITES: realm->sites = (uint32_t)sim_option_number(value, 2, REALM_SITES); break;
	case OPTION_STEPS: realm->steps = (uint32_t)sim_option_number(value, 1, 100000); break;
	case OPTION_RUNS: settings->runner.runs = (uint32_t)sim_option_number(value, 1, UINT32_MAX); break;
	case OPTION_FAULTS:
		realm->faults = (uint32_t)sim_option_number(value, 0, FAULTS_MOST);
		settings->faults_given = true;
		break;
	case OPTION_KINDS:
		settings->kinds = value;
		realm->kinds = sim_option_kinds(value, REALM_FAULTS);
		break;
	case OPTION_ACTIONS: realm->actions = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_STRICT: realm->optimistic = false; break;
	case OPTION_LOSS: realm->weather.loss = sim_option_share(value); break;
	case OPTION_TRACE: realm->trace = true; break;
	case OPTION_SHRINK: settings->runner.shrinks = true; break;
	case OPTION_KEEP: settings->runner.lists[0].keep = str_of(value); break;
	case OPTION_KEEP_ACTIONS: settings->runner.lists[1].keep = str_of(value); break;
	case OPTION_VARY: settings->varies = true; break;
	case OPTION_HELP: printf("%s", usage); exit(0);
	default: fprintf(stderr, "%s", usage); exit(2);
	}
}

int main_realm(int argc, char **argv)
{
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	settings.runner.context = &settings;
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists[1] = (struct sim_list){.what = "actions"};
	settings.runner.lists_count = 2;
	settings.realm = realm_options_default(sim_new_seed(), SITES);
	settings.realm.steps = STEPS;
	for (int option; (option = getopt_long(argc, argv, "", options, NULL)) != -1;)
		set(&settings, option, optarg);
	if (optind < argc)
		set(&settings, '?', NULL);
	if (!settings.faults_given)
		settings.realm.faults = settings.realm.steps / STEPS_PER_FAULT;
	printf("seed %" PRIu64 ", %" PRIu32 " steps\n", settings.realm.seed, settings.realm.steps);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
