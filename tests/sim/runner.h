/* What every simulator's main() does: one run after the other, each in a process of its own, since an assertion or a
 * sanitizer may end it; and after a failure, runs with less and less in them as long as they still fail. */
#ifndef SIM_RUNNER_H
#define SIM_RUNNER_H

#include "base/buf.h"

struct option; /* getopt.h */
struct sim_plan;

enum { SIM_LISTS = 2 };

/* Something of which a run has many, numbered from 0, and which may be left out one by one: faults, for example. */
struct sim_list {
	const char *what; /* "faults" */
	uint32_t count;
	struct str keep; /* "1,4": only these; length 0: all */
};

struct sim_runner {
	void *context;
	uint32_t runs; /* with this seed and those after it */
	bool shrinks;
	struct sim_list lists[SIM_LISTS];
	uint32_t lists_count;
	/* Sets the world up for the next run, and the counts of the lists. `number` is how many runs there were. */
	void (*prepare)(void *context, uint32_t number);
	/* One run; prints what it gave unless `quiet`. False: a check was violated. */
	bool (*run)(void *context, bool quiet);
	/* What repeats this run: "make sim SEED=1 ...", without what the lists keep. Ends in an open OPTIONS='... */
	void (*put_command)(void *context, struct buf *out);
};

/* Does all runs. Returns how many failed. */
uint32_t sim_runner_go(struct sim_runner *runner);
/* The command, with what is kept. */
void sim_runner_put_command(const struct sim_runner *runner, struct buf *out);

bool sim_list_has(const struct sim_list *list, uint32_t number);

/* What a run that failed says of itself; then, behind what its world adds, how to see it again. */
struct sim_failure {
	uint64_t seed;
	uint32_t sites;
	uint64_t step;
	const char *violations;      /* lines */
	const struct sim_plan *plan; /* NULL: it is not told */
};

void sim_put_failure(const struct sim_failure *failure);
void sim_runner_put_again(const struct sim_runner *runner);

/* What all worlds have, and which options that all simulators have set: --seed, --sites, --steps, --faults, --kinds, --loss, --trace, --vary; and of the
 * runner, --runs, --shrink, --keep and --keep-... . */
struct sim_common {
	const char *usage;
	uint64_t *seed;
	uint32_t *sites, *steps, *faults, *kinds;
	double *loss;
	bool *trace;
	uint32_t sites_most;
	uint32_t steps_least, steps_most;
	uint32_t kinds_allowed;
	bool varies;
	const char *only; /* the kinds, as they were given; NULL: they were not */
};

/* Reads all options. `own` are those that this world alone has, with numbers from 1 on: `set` gets them, with the runner's context. Complains and ends the
 * process where something makes no sense. Without --faults there is one for two seconds. */
void sim_read_options(struct sim_runner *runner, struct sim_common *common, int argc, char **argv,
                      const struct option *own, void (*set)(void *context, int option, const char *value));

/* Values of options. Complain and exit(2) where they make no sense. */
uint64_t sim_option_number(const char *text, uint64_t least, uint64_t most);
double sim_option_share(const char *text);
uint32_t sim_option_kinds(const char *text, uint32_t allowed);
/* A seed that nobody used before. */
uint64_t sim_new_seed(void);

#endif
