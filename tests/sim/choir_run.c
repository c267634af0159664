/* One run: sites start; users and faults, by their plans; then all is mended, people look after what went wrong, and
 * everything has to become quiet, and right, and stay so. */
#include "sim/choir.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

enum {
	CONVERGE_S = 180, /* after the faults */
	JUDGE_S = 60,     /* for so long people look after everything */
	IDLE_S = 60,
	TOMBSTONES_S = 700,
};

struct choir_options choir_options_default(uint64_t seed, uint32_t sites)
{
	struct choir_options options = {.seed = seed, .sites = sites, .steps = 300, .kinds = SIM_REPLICA_FAULTS};
	options.faults = 15;
	options.replicants = 5;
	options.actions = 60;
	options.types = (1u << CHOIR_KINDS) - 1;
	options.story = CHOIR_NOBODY;
	options.weather = (struct sim_weather){.loss = 0.005, .duplicate = 0.005, .reorder = 0.01, .jitter = 0.05};
	return options;
}

void choir_options_vary(struct choir_options *options)
{
	struct sim_random random;
	sim_random_seed(&random, options->seed, 7);
	options->sites = (uint32_t)sim_random_range(&random, 2, sim_random_chance(&random, 0.3) ? CHOIR_SITES : 4);
	options->replicants = (uint32_t)sim_random_range(&random, 1, 8);
	options->actions = (uint32_t)sim_random_range(&random, 5, 20 + options->steps / 3);
	options->faults =
		sim_random_chance(&random, 0.1) ? 0 : (uint32_t)sim_random_range(&random, 1, 1 + options->steps / 10);
	/* Some worlds know one kind of fault or of resource alone, and go deeper into it. */
	options->kinds = SIM_REPLICA_FAULTS;
	uint32_t one = (uint32_t)sim_random_below(&random, SIM_FAULT_KINDS);
	if (sim_random_chance(&random, 0.3) && SIM_REPLICA_FAULTS >> one & 1)
		options->kinds = 1u << one;
	options->types = (1u << CHOIR_KINDS) - 1;
	if (sim_random_chance(&random, 0.5))
		options->types = 1u << sim_random_below(&random, CHOIR_KINDS);
	options->wild = sim_random_chance(&random, 0.15);
	options->weak = sim_random_chance(&random, 0.2);
	options->weather.loss = sim_random_chance(&random, 0.5) ? 0 : 0.02 * sim_random_unit(&random);
	options->losing_deletes |= sim_random_chance(&random, 0.3);
}

/* Lets time pass, with what is looked at after each step. Stops at the first violation. */
static void pass(struct choir *choir, uint64_t us)
{
	uint64_t end_us = choir->sim.now_us + us;
	while (choir->sim.now_us < end_us && choir->violations_count == 0) {
		uint64_t next_us = choir->sim.now_us + CHOIR_STEP_US;
		sim_run(&choir->sim, next_us < end_us ? next_us : end_us);
		choir_watch(choir);
		choir_check_step(choir);
		if (!choir->healed)
			choir_judge(choir, false);
	}
}

static void act(struct choir *choir)
{
	for (uint32_t i = 0; i < choir->options.sites; i++)
		choir_start(choir, &choir->sites[i]);
	for (uint32_t i = 0; i < choir->actions_count; i++) {
		if (!choir->actions[i].skipped)
			choir_at(choir, choir->actions[i].at_us, CHOIR_ACT_USER, i);
	}
	for (uint32_t i = 0; i < choir->changes_count; i++)
		choir_at(choir, choir->changes[i].at_us, CHOIR_ACT_MEMBERS, i);
	choir->figures.faults =
		sim_faults_plan(&choir->faults, (uint64_t)CHOIR_ACT_BEGIN << 32, (uint64_t)CHOIR_ACT_END << 32);
	pass(choir, (uint64_t)choir->options.steps * CHOIR_STEP_US + CHOIR_SECOND_US);
}

static void converge(struct choir *choir)
{
	struct buf why = {0};
	uint32_t of = CHOIR_NOBODY;
	uint64_t start_us = choir->sim.now_us;
	choir_tell(choir, CHOIR_NOBODY, "all is mended");
	choir_heal(choir);
	choir->healed = true;
	for (uint64_t second = 0; choir->violations_count == 0; second++) {
		if (second < JUDGE_S && second % 3 == 0)
			choir_judge(choir, true);
		pass(choir, CHOIR_SECOND_US);
		if (choir->violations_count == 0 && choir_converged(choir, &why, &of))
			break;
		if (second >= CONVERGE_S) {
			choir_violation(choir, of, "not so %" PRIu64 " s after the last fault: %s", second,
			                why.length > 0 ? buf_c(&why) : "?");
			break;
		}
	}
	choir->figures.heal_s = (double)(choir->sim.now_us - start_us) / CHOIR_SECOND_US;
	buf_free(&why);
}

/* Everything that comes very late comes again: nobody answers, and nothing rises from the dead. */
static void haunt(struct choir *choir)
{
	uint64_t messages = choir->figures.messages;
	struct buf why = {0};
	uint32_t of = CHOIR_NOBODY;
	for (uint32_t i = 0; i < choir->late_count; i++)
		choir_late(choir, i);
	pass(choir, 10 * CHOIR_SECOND_US);
	if (choir->violations_count == 0 && choir->figures.messages != messages)
		choir_violation(choir, CHOIR_NOBODY, "a message that is very old is answered");
	if (choir->violations_count == 0 && !choir_converged(choir, &why, &of))
		choir_violation(choir, of, "very old messages did harm: %s", buf_c(&why));
	if (choir->violations_count == 0)
		choir_check_end(choir);
	buf_free(&why);
}

static void stay(struct choir *choir)
{
	struct buf why = {0};
	uint32_t of = CHOIR_NOBODY;
	if (choir->violations_count > 0)
		return;
	choir_tell(choir, CHOIR_NOBODY, "all is quiet");
	pass(choir, 30 * CHOIR_SECOND_US); /* what is still on its way, by satellite, and is answered */
	uint64_t quiet_us = choir->sim.now_us;
	pass(choir, (uint64_t)IDLE_S * CHOIR_SECOND_US);
	if (choir->violations_count == 0 && choir->quiet_since_us > quiet_us)
		choir_violation(choir, CHOIR_NOBODY, "messages or executions, though nothing is to be done");
	sim_run(&choir->sim, choir->sim.now_us + (uint64_t)TOMBSTONES_S * CHOIR_SECOND_US);
	if (choir->violations_count == 0 && !choir_converged(choir, &why, &of))
		choir_violation(choir, of, "it was right, and is not any more: %s", buf_c(&why));
	if (choir->violations_count == 0)
		choir_check_end(choir);
	haunt(choir);
	buf_free(&why);
}

static double cpu_s(void)
{
	struct timespec now;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

bool choir_run(struct choir *choir)
{
	double started_s = cpu_s();
	act(choir);
	converge(choir);
	stay(choir);
	for (uint32_t i = 0; i < choir->options.sites; i++) {
		if (!choir->sites[i].replica)
			continue;
		struct replica_counters counters = replica_counters(choir->sites[i].replica);
		choir->figures.rerun += counters.rerun;
		choir->figures.superseded += counters.superseded;
		choir_crash(choir, &choir->sites[i]);
	}
	choir->figures.cpu_s = cpu_s() - started_s;
	choir->figures.virtual_s = (double)choir->sim.now_us / CHOIR_SECOND_US;
	return choir->violations_count == 0;
}

static void put(struct buf *out, const char *what, uint64_t number)
{
	buf_printf(out, "  %-44s %8" PRIu64 "\n", what, number);
}

void choir_report(const struct choir *choir, struct buf *out)
{
	const struct choir_figures *figures = &choir->figures;
	put(out, "users' requests", figures->actions);
	put(out, "  acknowledged", figures->acknowledged);
	put(out, "  before the commit", figures->kept);
	put(out, "  refused", figures->refused);
	put(out, "  told that nothing is known", figures->lost_answers);
	put(out, "executions at services", figures->executions);
	put(out, "replicants repaired", figures->repairs);
	put(out, "operations run again", figures->rerun);
	put(out, "operations superseded", figures->superseded);
	put(out, "members added", figures->extends);
	put(out, "  witnesses that were to hold it", figures->promotes);
	put(out, "members dropped", figures->drops);
	put(out, "verdicts of people", figures->judged);
	put(out, "faults", figures->faults);
	put(out, "crashes", figures->crashes);
	put(out, "commits", figures->commits);
	put(out, "commits that failed", figures->failed_commits);
	put(out, "messages", figures->messages);
	put(out, "bytes in messages", figures->bytes);
	put(out, "messages, worst site and second", figures->peak_messages);
	put(out, "memory, worst site, bytes", (uint64_t)figures->memory_most);
	buf_printf(out, "  %-44s %8.2f\n", "all right after the last fault, s", figures->heal_s);
	buf_printf(out, "  %-44s %8.1f\n", "virtual time, s", figures->virtual_s);
	buf_printf(out, "  %-44s %8.3f\n", "CPU, s", figures->cpu_s);
	put(out, "events", choir->sim.events);
	buf_printf(out, "  %-44s %016" PRIx64 "\n", "digest", choir->sim.digest);
}
