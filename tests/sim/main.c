/* cheops-sim: whole worlds of sites from one seed. docs/simulator.md says what it checks. */
#include "sim/swarm.h"

#include "base/check.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SITES = 30, STEPS = 600, STEPS_PER_FAULT = 20, FAULTS_MOST = 400, WARM_SITES = 2000, SITES_MOST = 20000 };

struct settings {
	struct swarm_options swarm;
	uint32_t runs; /* with this seed and those after it */
	bool varies;
	bool shrinks;
	struct str keep; /* "1,4": only these faults of the plan; length 0: all */
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

static void put_command(const struct settings *settings, struct buf *out)
{
	const struct swarm_options *swarm = &settings->swarm;
	buf_printf(out, "make sim SEED=%" PRIu64 " SITES=%" PRIu32 " STEPS=%" PRIu32 " OPTIONS='--faults %" PRIu32,
	           swarm->seed, swarm->sites, swarm->steps, swarm->faults);
	buf_printf(out, " --calm %" PRIu32 " --crashes %" PRIu32 " --mass %g --loss %g --card %" PRIu32 "%s", swarm->calm_s,
	           swarm->crashes, swarm->mass, swarm->weather.loss, swarm->card_bytes, swarm->warm ? " --warm" : "");
	if (settings->kinds)
		buf_printf(out, " --kinds %s", settings->kinds);
	if (settings->keep.length > 0)
		buf_printf(out, " --keep %.*s", STR_FMT(settings->keep));
	buf_printf(out, "'");
}

static bool is_kept(struct str keep, uint32_t number)
{
	char list[4096], wanted[16];
	if (keep.length == 0)
		return true;
	snprintf(list, sizeof(list), ",%.*s,", STR_FMT(keep));
	snprintf(wanted, sizeof(wanted), ",%" PRIu32 ",", number);
	return strstr(list, wanted) != NULL;
}

static void put_plan(const struct swarm *swarm)
{
	struct buf line = {0};
	for (uint32_t i = 0; i < swarm->plan.count; i++) {
		if (swarm->plan.faults[i].skipped)
			continue;
		buf_clear(&line);
		sim_fault_print(&line, &swarm->plan.faults[i]);
		printf("  fault %3" PRIu32 ": %s\n", i, buf_c(&line));
	}
	buf_free(&line);
}

static void put_failure(const struct settings *settings, const struct swarm *swarm)
{
	struct buf command = {0};
	put_command(settings, &command);
	printf("FAILED: seed %" PRIu64 ", %" PRIu32 " sites, at step %" PRIu64 "\n%s", swarm->options.seed,
	       swarm->options.sites, swarm->violation_us / SWARM_STEP_US, buf_c(&swarm->violations));
	put_plan(swarm);
	printf("  to see it again: %s\n", buf_c(&command));
	buf_free(&command);
}

static bool run(const struct settings *settings, bool quiet)
{
	struct swarm swarm;
	struct buf report = {0};
	swarm_init(&swarm, &settings->swarm);
	for (uint32_t i = 0; i < swarm.plan.count; i++)
		swarm.plan.faults[i].skipped = !is_kept(settings->keep, i);
	bool sound = swarm_run(&swarm);
	swarm_report(&swarm, &report);
	if (!quiet && settings->runs == 1)
		printf("%s", buf_c(&report));
	if (!quiet && settings->runs > 1 && sound)
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

/* In a process of its own: an assertion or a sanitizer may end it. */
static bool run_apart(const struct settings *settings, bool quiet)
{
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (quiet && !freopen("/dev/null", "w", stderr))
			exit(3);
		exit(run(settings, quiet) ? 0 : 1);
	}
	int status = 0;
	CHECK(waitpid(child, &status, 0) == child);
	if (!quiet && !(WIFEXITED(status) && WEXITSTATUS(status) <= 1)) {
		struct buf command = {0};
		put_command(settings, &command);
		printf("FAILED: seed %" PRIu64 ": the process died (status %d)\n  to see it again: %s\n", settings->swarm.seed,
		       status, buf_c(&command));
		buf_free(&command);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Shrinking --------------------------------------------------------------------------------------------------- */

static void put_list(struct buf *out, const uint32_t *numbers, uint32_t count)
{
	buf_clear(out);
	for (uint32_t i = 0; i < count; i++)
		buf_printf(out, "%s%" PRIu32, i ? "," : "", numbers[i]);
	if (count == 0)
		buf_printf(out, "none");
}

static bool fails_with(struct settings *settings, const uint32_t *numbers, uint32_t count)
{
	struct buf list = {0};
	put_list(&list, numbers, count);
	settings->keep = buf_str(&list);
	bool sound = run_apart(settings, true);
	settings->keep = (struct str){0};
	buf_free(&list);
	return !sound;
}

/* Tries without `size` faults at a time: half of them first, one by one at last. */
static uint32_t shrink_by(struct settings *settings, uint32_t *numbers, uint32_t count, uint32_t size)
{
	uint32_t rest[FAULTS_MOST];
	for (uint32_t at = 0; at < count;) {
		uint32_t cut = at + size < count ? size : count - at, kept = 0;
		for (uint32_t i = 0; i < count; i++) {
			if (i < at || i >= at + cut)
				rest[kept++] = numbers[i];
		}
		if (fails_with(settings, rest, kept)) {
			memcpy(numbers, rest, kept * sizeof(rest[0]));
			count = kept;
		} else {
			at += cut;
		}
	}
	return count;
}

static void shrink(struct settings *settings)
{
	uint32_t numbers[FAULTS_MOST], count = 0;
	for (; count < settings->swarm.faults; count++)
		numbers[count] = count;
	printf("shrinking a plan of %" PRIu32 " faults\n", count);
	for (uint32_t size = (count + 1) / 2; count > 0 && size > 0; size /= 2) {
		count = shrink_by(settings, numbers, count, size);
		printf("  %" PRIu32 " left\n", count);
		fflush(stdout);
	}
	struct buf list = {0};
	put_list(&list, numbers, count);
	settings->keep = buf_str(&list);
	run_apart(settings, false);
	buf_free(&list);
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

static uint64_t number_of(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);
	if (*text != '\0' && *end == '\0' && number >= least && number <= most)
		return number;
	fprintf(stderr, "cheops-sim: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n", text, least, most);
	exit(2);
}

static double share_of(const char *text)
{
	char *end;
	double share = strtod(text, &end);
	if (*text != '\0' && *end == '\0' && share >= 0 && share < 1)
		return share;
	fprintf(stderr, "cheops-sim: '%s' is not a share: 0.05 is 5 %%\n", text);
	exit(2);
}

static uint32_t kinds_of(const char *text)
{
	uint32_t kinds;
	struct str unknown;
	if (sim_fault_kinds(str_of(text), &kinds, &unknown))
		return kinds;
	fprintf(stderr, "cheops-sim: no kind of fault '%.*s'; there are:\n", STR_FMT(unknown));
	for (int i = 0; i < SIM_FAULT_KINDS; i++)
		fprintf(stderr, "  %s\n", sim_fault_name((enum sim_fault_kind)i));
	exit(2);
}

static void set(struct settings *settings, int option, const char *value)
{
	struct swarm_options *swarm = &settings->swarm;
	switch (option) {
	case OPTION_SEED: swarm->seed = number_of(value, 0, UINT64_MAX); break;
	case OPTION_SITES: swarm->sites = (uint32_t)number_of(value, 2, SITES_MOST); break;
	case OPTION_STEPS: swarm->steps = (uint32_t)number_of(value, 0, 10000000); break;
	case OPTION_RUNS: settings->runs = (uint32_t)number_of(value, 1, UINT32_MAX); break;
	case OPTION_FAULTS: swarm->faults = (uint32_t)number_of(value, 0, FAULTS_MOST); break;
	case OPTION_KINDS:
		settings->kinds = value;
		swarm->kinds = kinds_of(value);
		break;
	case OPTION_CALM: swarm->calm_s = (uint32_t)number_of(value, 0, 100000); break;
	case OPTION_CRASHES: swarm->crashes = (uint32_t)number_of(value, 0, 1000); break;
	case OPTION_MASS: swarm->mass = share_of(value); break;
	case OPTION_LOSS: swarm->weather.loss = share_of(value); break;
	case OPTION_CARD: swarm->card_bytes = (uint32_t)number_of(value, 0, 600); break;
	case OPTION_WARM: swarm->warm = true; break;
	case OPTION_TRACE: swarm->trace = true; break;
	case OPTION_SHRINK: settings->shrinks = true; break;
	case OPTION_KEEP: settings->keep = str_of(value); break;
	case OPTION_VARY: settings->varies = true; break;
	case OPTION_HELP: printf("%s", usage); exit(0);
	default: fprintf(stderr, "%s", usage); exit(2);
	}
}

static struct settings settings_of(int argc, char **argv)
{
	struct settings settings = {.runs = 1};
	struct swarm_options *swarm = &settings.swarm;
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	*swarm = swarm_options_default((uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000, SITES);
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
	uint32_t failed = 0;
	printf("seed %" PRIu64 ", %" PRIu32 " sites, %" PRIu32 " steps, %" PRIu32 " faults\n", settings.swarm.seed,
	       settings.swarm.sites, settings.swarm.steps, settings.swarm.faults);
	for (uint32_t i = 0; i < settings.runs; i++, settings.swarm.seed++) {
		if (settings.varies)
			swarm_options_vary(&settings.swarm);
		if (run_apart(&settings, false))
			continue;
		failed++;
		if (settings.shrinks)
			shrink(&settings);
	}
	if (settings.runs > 1)
		printf("%" PRIu32 " of %" PRIu32 " runs failed\n", failed, settings.runs);
	return failed ? 1 : 0;
}
