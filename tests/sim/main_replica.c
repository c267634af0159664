/* cheops-sim-replica: whole worlds of replicated resources from one seed. docs/simulator.md says what it checks. */
#include "sim/choir.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { SITES = 5, STEPS = 300, STEPS_MOST = 100000, RUN_MOST_S = 120 };

struct settings {
	struct choir_options choir;
	struct sim_runner runner;
	struct sim_common common;
	bool loses; /* in every world, deletes of some descriptions */
	const char *types;
};

static const char usage[] =
	"usage: cheops-sim-replica [--seed N] [--sites N] [--steps N] [OPTION...]\n"
	"\n"
	"A run of --sites sites (2 to 9; 5): for --steps steps (300) of 0.1 s users create, change and delete replicated\n"
	"resources, and faults happen; then all is mended, and all members have to be equal. Without --seed a new one is\n"
	"drawn, and told. After a failure the story of the resource concerned is told.\n"
	"\n"
	"  --runs N            so many runs, each with the next seed\n"
	"  --vary              all but the steps differs from seed to seed\n"
	"  --faults N          in one run (one for two seconds of --steps)\n"
	"  --kinds LIST        of these kinds only: crash,service-mute... (--kinds help lists them)\n"
	"  --replicants N      (5)\n"
	"  --actions N         of users (60)\n"
	"  --types LIST        of these types only: counter,log...\n"
	"  --loss SHARE        of the messages in good weather (0.005)\n"
	"  --names             users may choose the same name at once\n"
	"  --rivals            several users choose the same name, for the same sites, and all add to it\n"
	"  --losing-deletes    some descriptions say that a delete loses\n"
	"  --wild              descriptions with any resolution of concurrent operations\n"
	"  --weak              some resources are\n"
	"  --placed            some lie at some of their sites only\n"
	"  --removal           a site is removed from the mesh\n"
	"  --needed            what others refer to is deleted, too\n"
	"  --members           sites are added to resources, dropped, and moved\n"
	"  --found             some resources were there before, and are adopted (with --members)\n"
	"  --trace             tell everything that happens\n"
	"  --story N           tell everything that happens to replicant N\n"
	"  --shrink            after a failure: leave out faults, and users' actions, as long as it still fails\n"
	"  --keep LIST         of the plan's faults only these numbers\n"
	"  --keep-actions LIST of the users' actions only these\n";

/* ---- One run ------------------------------------------------------------------------------------------------------ */

static void put_command(void *context, struct buf *out)
{
	const struct settings *settings = context;
	const struct choir_options *choir = &settings->choir;
	buf_printf(out,
	           "make sim ROOM=replica SEED=%" PRIu64 " SITES=%" PRIu32 " STEPS=%" PRIu32 " OPTIONS='--faults %" PRIu32,
	           choir->seed, choir->sites, choir->steps, choir->faults);
	if (choir->members)
		buf_printf(out, " --members");
	if (choir->placed)
		buf_printf(out, " --placed");
	if (choir->found)
		buf_printf(out, " --found");
	if (choir->removal)
		buf_printf(out, " --removal");
	if (choir->needed)
		buf_printf(out, " --needed");
	if (settings->common.varies) {
		buf_printf(out, " --vary%s%s%s", choir->rivals ? " --rivals" : "", choir->names ? " --names" : "",
		           settings->loses ? " --losing-deletes" : "");
		return;
	}
	buf_printf(out, " --replicants %" PRIu32 " --actions %" PRIu32 " --loss %g%s%s%s%s", choir->replicants,
	           choir->actions, choir->weather.loss,
	           choir->names    ? " --names"
	           : choir->rivals ? " --rivals"
	                           : "",
	           choir->losing_deletes ? " --losing-deletes" : "", choir->wild ? " --wild" : "",
	           choir->weak ? " --weak" : "");
	if (settings->common.only)
		buf_printf(out, " --kinds %s", settings->common.only);
	if (settings->types)
		buf_printf(out, " --types %s", settings->types);
}

/* Those of wild descriptions. */
static void put_rules(const struct choir_replicant *it)
{
	static const char *const names[] = {"the later one counts", "any order", "as they are", "the other way round",
	                                    "the earlier one counts"};
	for (uint32_t x = CHOIR_PUT; x < CHOIR_DELETE; x++)
		for (uint32_t y = CHOIR_PUT; y < CHOIR_DELETE; y++) {
			uint8_t said = it->rules.resolutions[x * CHOIR_VERBS + y];
			if (said < ORDER_RESOLUTIONS && choir_types[it->kind].verbs >> x & choir_types[it->kind].verbs >> y & 1)
				printf("    %s, then %s: %s\n", choir_verb_name((enum choir_verb)x),
				       choir_verb_name((enum choir_verb)y), names[said]);
		}
}

static void put_replicant(const struct choir *choir, uint32_t number)
{
	const struct choir_replicant *it = &choir->replicants[number];
	printf("  r%" PRIu32 " is a %s at", number, choir_types[it->kind].name);
	for (uint32_t i = 0; i < it->members_count; i++)
		printf(" s%" PRIu32 "%s", it->members[i], it->witnesses >> it->members[i] & 1 ? " (witness)" : "");
	if (it->refers)
		printf(", refers to r%" PRIu32, it->refers - 1);
	printf("%s%s%s\n", it->rules.create_replays ? ", its create can be replayed" : "",
	       it->rules.delete_loses ? ", a delete loses" : "", it->weak ? ", weak" : "");
	put_rules(it);
	for (uint32_t i = 0; i < it->ops_count; i++) {
		const struct choir_op *op = &it->ops[i];
		printf("    s%" PRIu32 ".%" PRIu32 ": %s #%" PRIu32 "%s at %" PRIu64 ", saw", it->members[op->member],
		       op->number, choir_verb_name((enum choir_verb)op->request.verb), op->request.token,
		       op->repair ? " (repair)" : "", op->stamp >> 16);
		for (uint32_t k = 0; k < it->members_count; k++)
			printf(" s%" PRIu32 ":%" PRIu32, it->members[k], op->seen[k]);
		printf("%s\n", op->issued ? "" : " (not issued)");
	}
}

/* The same run once more, told. */
static void put_story(const struct settings *settings, uint32_t replicant)
{
	struct choir choir;
	struct choir_options options = settings->choir;
	options.story = replicant;
	printf("  the story of r%" PRIu32 ":\n", replicant);
	choir_init(&choir, &options);
	choir_run(&choir);
	choir_free(&choir);
}

static void put_failure(const struct settings *settings, const struct choir *choir)
{
	if (choir->violation_of != CHOIR_NOBODY && choir->options.story == CHOIR_NOBODY && !choir->options.trace &&
	    settings->runner.runs == 1)
		put_story(settings, choir->violation_of);
	sim_put_failure(&(struct sim_failure){.seed = choir->options.seed,
	                                      .sites = choir->options.sites,
	                                      .step = choir->violation_us / CHOIR_STEP_US,
	                                      .violations = buf_c(&choir->violations),
	                                      .plan = settings->runner.runs == 1 ? &choir->faults.plan : NULL});
	if (choir->violation_of != CHOIR_NOBODY)
		put_replicant(choir, choir->violation_of);
	sim_runner_put_again(&settings->runner);
}

static bool run(void *context, bool quiet)
{
	struct settings *settings = context;
	struct choir choir;
	struct buf report = {0};
	alarm(RUN_MOST_S); /* a loop without end is a failure like any other */
	settings->choir.keep_faults = settings->runner.lists[0];
	settings->choir.keep_actions = settings->runner.lists[1];
	choir_init(&choir, &settings->choir);
	bool sound = choir_run(&choir);
	choir_report(&choir, &report);
	if (!quiet && settings->runner.runs == 1)
		printf("%s", buf_c(&report));
	if (!quiet && settings->runner.runs > 1 && sound)
		printf("seed %" PRIu64 ": %" PRIu32 " sites, %" PRIu32 " faults, %" PRIu64 " requests, digest %016" PRIx64
		       ", %.2f s of CPU\n",
		       settings->choir.seed, settings->choir.sites, choir.figures.faults, choir.figures.actions,
		       choir.sim.digest, choir.figures.cpu_s);
	if (!quiet && !sound)
		put_failure(settings, &choir);
	fflush(stdout);
	buf_free(&report);
	choir_free(&choir);
	return sound;
}

static void prepare(void *context, uint32_t number)
{
	struct settings *settings = context;
	settings->choir.seed += number > 0;
	settings->choir.losing_deletes = settings->loses;
	if (settings->common.varies)
		choir_options_vary(&settings->choir);
	settings->runner.lists[0].count = settings->choir.faults;
	settings->runner.lists[1].count = settings->choir.replicants + settings->choir.actions;
}

/* ---- Settings ----------------------------------------------------------------------------------------------------- */

enum {
	OPTION_REPLICANTS = 1,
	OPTION_ACTIONS,
	OPTION_TYPES,
	OPTION_NAMES,
	OPTION_RIVALS,
	OPTION_LOSING,
	OPTION_WILD,
	OPTION_WEAK,
	OPTION_MEMBERS,
	OPTION_FOUND,
	OPTION_REMOVAL,
	OPTION_PLACED,
	OPTION_STORY,
	OPTION_NEEDED,
};

static const struct option options[] = {
	{"replicants", required_argument, NULL, OPTION_REPLICANTS},
	{"actions", required_argument, NULL, OPTION_ACTIONS},
	{"types", required_argument, NULL, OPTION_TYPES},
	{"names", no_argument, NULL, OPTION_NAMES},
	{"rivals", no_argument, NULL, OPTION_RIVALS},
	{"losing-deletes", no_argument, NULL, OPTION_LOSING},
	{"wild", no_argument, NULL, OPTION_WILD},
	{"weak", no_argument, NULL, OPTION_WEAK},
	{"members", no_argument, NULL, OPTION_MEMBERS},
	{"found", no_argument, NULL, OPTION_FOUND},
	{"removal", no_argument, NULL, OPTION_REMOVAL},
	{"placed", no_argument, NULL, OPTION_PLACED},
	{"needed", no_argument, NULL, OPTION_NEEDED},
	{"story", required_argument, NULL, OPTION_STORY},
	{0},
};

static uint32_t types_of(const char *text)
{
	struct sim_list list = {.keep = str_of(text)};
	uint32_t types = 0;
	for (struct str rest = list.keep; rest.length > 0;) {
		const char *comma = memchr(rest.at, ',', rest.length);
		struct str word = str_make(rest.at, comma ? (size_t)(comma - rest.at) : rest.length);
		uint32_t kind = 0;
		while (kind < CHOIR_KINDS && !str_equal(word, str_of(choir_types[kind].name)))
			kind++;
		if (kind == CHOIR_KINDS) {
			fprintf(stderr, "cheops-sim-replica: no type '%.*s'; there are:\n", STR_FMT(word));
			for (kind = 0; kind < CHOIR_KINDS; kind++)
				fprintf(stderr, "  %s\n", choir_types[kind].name);
			exit(2);
		}
		types |= 1u << kind;
		size_t taken = comma ? word.length + 1 : word.length;
		rest = str_make(rest.at + taken, rest.length - taken);
	}
	return types;
}

static void set(void *context, int option, const char *value)
{
	struct settings *settings = context;
	struct choir_options *choir = &settings->choir;
	switch (option) {
	case OPTION_REPLICANTS: choir->replicants = (uint32_t)sim_option_number(value, 1, 1000); break;
	case OPTION_ACTIONS: choir->actions = (uint32_t)sim_option_number(value, 0, 100000); break;
	case OPTION_TYPES:
		settings->types = value;
		choir->types = types_of(value);
		break;
	case OPTION_NAMES: choir->names = true; break;
	case OPTION_RIVALS: choir->rivals = true; break;
	case OPTION_LOSING: settings->loses = true; break;
	case OPTION_WILD: choir->wild = true; break;
	case OPTION_WEAK: choir->weak = true; break;
	case OPTION_MEMBERS: choir->members = true; break;
	case OPTION_FOUND: choir->found = choir->members = true; break;
	case OPTION_REMOVAL: choir->removal = true; break;
	case OPTION_PLACED: choir->placed = true; break;
	case OPTION_NEEDED: choir->needed = true; break;
	case OPTION_STORY: choir->story = (uint32_t)sim_option_number(value, 0, 1000); break;
	}
}

int main(int argc, char **argv)
{
	struct settings settings = {.runner = {.runs = 1, .prepare = prepare, .run = run, .put_command = put_command}};
	struct choir_options *choir = &settings.choir;
	settings.runner.context = &settings;
	settings.runner.lists[0] = (struct sim_list){.what = "faults"};
	settings.runner.lists[1] = (struct sim_list){.what = "actions"};
	settings.runner.lists_count = 2;
	*choir = choir_options_default(sim_new_seed(), SITES);
	choir->steps = STEPS;
	settings.common = (struct sim_common){.usage = usage,
	                                      .seed = &choir->seed,
	                                      .sites = &choir->sites,
	                                      .steps = &choir->steps,
	                                      .faults = &choir->faults,
	                                      .kinds = &choir->kinds,
	                                      .loss = &choir->weather.loss,
	                                      .trace = &choir->trace,
	                                      .sites_most = CHOIR_SITES,
	                                      .steps_least = 1,
	                                      .steps_most = STEPS_MOST,
	                                      .kinds_allowed = SIM_REPLICA_FAULTS};
	sim_read_options(&settings.runner, &settings.common, argc, argv, options, set);
	printf("seed %" PRIu64 ", %" PRIu32 " steps\n", choir->seed, choir->steps);
	return sim_runner_go(&settings.runner) ? 1 : 0;
}
