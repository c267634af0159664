#include "sim/runner.h"

#include "sim/plan.h"

#include "base/check.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

bool sim_list_has(const struct sim_list *list, uint32_t number)
{
	struct str rest = list->keep;
	if (rest.length == 0)
		return true;
	while (rest.length > 0) {
		const char *comma = memchr(rest.at, ',', rest.length);
		size_t length = comma ? (size_t)(comma - rest.at) : rest.length;
		char word[16], wanted[16];
		snprintf(word, sizeof(word), "%.*s", (int)length, rest.at);
		snprintf(wanted, sizeof(wanted), "%" PRIu32, number);
		if (strcmp(word, wanted) == 0)
			return true;
		size_t taken = comma ? length + 1 : length;
		rest = str_make(rest.at + taken, rest.length - taken);
	}
	return false;
}

void sim_runner_put_command(const struct sim_runner *runner, struct buf *out)
{
	runner->put_command(runner->context, out);
	for (uint32_t i = 0; i < runner->lists_count; i++) {
		const struct sim_list *list = &runner->lists[i];
		if (list->keep.length > 0)
			buf_printf(out, " --keep%s%s %.*s", i ? "-" : "", i ? list->what : "", STR_FMT(list->keep));
	}
	buf_put_char(out, '\'');
}

void sim_put_failure(const struct sim_failure *failure)
{
	printf("FAILED: seed %" PRIu64 ", %" PRIu32 " sites, at step %" PRIu64 "\n%s", failure->seed, failure->sites,
	       failure->step, failure->violations);
	if (failure->plan)
		sim_plan_print(failure->plan);
}

void sim_runner_put_again(const struct sim_runner *runner)
{
	struct buf command = {0};
	sim_runner_put_command(runner, &command);
	printf("  to see it again: %s\n", buf_c(&command));
	buf_free(&command);
}

static bool run_apart(struct sim_runner *runner, bool quiet)
{
	fflush(stdout);
	pid_t child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		if (quiet && (!freopen("/dev/null", "w", stderr) || !freopen("/dev/null", "w", stdout)))
			exit(3);
		exit(runner->run(runner->context, quiet) ? 0 : 1);
	}
	int status = 0;
	CHECK(waitpid(child, &status, 0) == child);
	if (!quiet && !(WIFEXITED(status) && WEXITSTATUS(status) <= 1)) {
		printf("FAILED: the process died (status %d)\n", status);
		sim_runner_put_again(runner);
	}
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- Shrinking --------------------------------------------------------------------------------------------------- */

struct shrinking {
	struct sim_runner *runner;
	struct sim_list *list;
	uint32_t *numbers; /* that are left */
	uint32_t *rest;
	uint32_t count;
};

static void put_list(struct buf *out, const uint32_t *numbers, uint32_t count)
{
	buf_clear(out);
	for (uint32_t i = 0; i < count; i++)
		buf_printf(out, "%s%" PRIu32, i ? "," : "", numbers[i]);
	if (count == 0)
		buf_printf(out, "none");
}

static bool fails_with(struct shrinking *shrinking, const uint32_t *numbers, uint32_t count)
{
	struct buf list = {0};
	put_list(&list, numbers, count);
	struct str before = shrinking->list->keep;
	shrinking->list->keep = buf_str(&list);
	bool sound = run_apart(shrinking->runner, true);
	shrinking->list->keep = before;
	buf_free(&list);
	return !sound;
}

/* Tries without `size` of them at a time: half of them first, one by one at last. */
static void shrink_by(struct shrinking *shrinking, uint32_t size)
{
	for (uint32_t at = 0; at < shrinking->count;) {
		uint32_t cut = at + size < shrinking->count ? size : shrinking->count - at, kept = 0;
		for (uint32_t i = 0; i < shrinking->count; i++) {
			if (i < at || i >= at + cut)
				shrinking->rest[kept++] = shrinking->numbers[i];
		}
		if (fails_with(shrinking, shrinking->rest, kept)) {
			memcpy(shrinking->numbers, shrinking->rest, kept * sizeof(shrinking->rest[0]));
			shrinking->count = kept;
		} else {
			at += cut;
		}
	}
}

/* What is left is to be kept in `left`. */
static void shrink_list(struct sim_runner *runner, struct sim_list *list, struct buf *left)
{
	struct shrinking shrinking = {.runner = runner, .list = list};
	shrinking.numbers = calloc((size_t)list->count + 1, sizeof(uint32_t));
	shrinking.rest = calloc((size_t)list->count + 1, sizeof(uint32_t));
	CHECK(shrinking.numbers != NULL && shrinking.rest != NULL);
	for (uint32_t i = 0; i < list->count; i++) {
		if (sim_list_has(list, i))
			shrinking.numbers[shrinking.count++] = i;
	}
	printf("shrinking: %" PRIu32 " %s\n", shrinking.count, list->what);
	for (uint32_t size = (shrinking.count + 1) / 2; shrinking.count > 0 && size > 0; size /= 2) {
		shrink_by(&shrinking, size);
		printf("  %" PRIu32 " left\n", shrinking.count);
		fflush(stdout);
	}
	put_list(left, shrinking.numbers, shrinking.count);
	list->keep = buf_str(left);
	free(shrinking.numbers);
	free(shrinking.rest);
}

static void shrink(struct sim_runner *runner)
{
	struct buf left[SIM_LISTS] = {{0}};
	struct str before[SIM_LISTS];
	for (uint32_t i = 0; i < runner->lists_count; i++) {
		before[i] = runner->lists[i].keep;
		shrink_list(runner, &runner->lists[i], &left[i]);
	}
	run_apart(runner, false);
	for (uint32_t i = 0; i < runner->lists_count; i++) {
		runner->lists[i].keep = before[i];
		buf_free(&left[i]);
	}
}

uint32_t sim_runner_go(struct sim_runner *runner)
{
	uint32_t failed = 0;
	for (uint32_t i = 0; i < runner->runs; i++) {
		runner->prepare(runner->context, i);
		if (run_apart(runner, false))
			continue;
		failed++;
		if (runner->shrinks)
			shrink(runner);
	}
	if (runner->runs > 1)
		printf("%" PRIu32 " of %" PRIu32 " runs failed\n", failed, runner->runs);
	return failed;
}

/* ---- Options ----------------------------------------------------------------------------------------------------- */

uint64_t sim_option_number(const char *text, uint64_t least, uint64_t most)
{
	char *end;
	uint64_t number = strtoull(text, &end, 10);
	if (*text != '\0' && *end == '\0' && number >= least && number <= most)
		return number;
	fprintf(stderr, "cheops-sim: '%s' is not a number from %" PRIu64 " to %" PRIu64 "\n", text, least, most);
	exit(2);
}

double sim_option_share(const char *text)
{
	char *end;
	double share = strtod(text, &end);
	if (*text != '\0' && *end == '\0' && share >= 0 && share < 1)
		return share;
	fprintf(stderr, "cheops-sim: '%s' is not a share: 0.05 is 5 %%\n", text);
	exit(2);
}

uint32_t sim_option_kinds(const char *text, uint32_t allowed)
{
	uint32_t kinds;
	struct str unknown = str_of(text);
	if (sim_fault_kinds(str_of(text), &kinds, &unknown) && kinds != 0 && (kinds & ~allowed) == 0)
		return kinds;
	fprintf(stderr, "cheops-sim: no kind of fault '%.*s'; there are:\n", STR_FMT(unknown));
	for (uint32_t i = 0; i < SIM_FAULT_KINDS; i++) {
		if (allowed >> i & 1)
			fprintf(stderr, "  %s\n", sim_fault_name((enum sim_fault_kind)i));
	}
	exit(2);
}

uint64_t sim_new_seed(void)
{
	struct timespec now;
	clock_gettime(CLOCK_REALTIME, &now);
	return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

enum { STEPS_PER_FAULT = 20, FAULTS_MOST = 400, OPTIONS_MOST = 64 };

enum {
	OPTION_SEED = 1000, /* behind those of a world */
	OPTION_SITES,
	OPTION_STEPS,
	OPTION_RUNS,
	OPTION_FAULTS,
	OPTION_KINDS,
	OPTION_LOSS,
	OPTION_TRACE,
	OPTION_SHRINK,
	OPTION_VARY,
	OPTION_HELP,
	OPTION_KEEP, /* the first list; of others, more */
};

static const struct option common_options[] = {
	{"seed", required_argument, NULL, OPTION_SEED},     {"sites", required_argument, NULL, OPTION_SITES},
	{"steps", required_argument, NULL, OPTION_STEPS},   {"runs", required_argument, NULL, OPTION_RUNS},
	{"faults", required_argument, NULL, OPTION_FAULTS}, {"kinds", required_argument, NULL, OPTION_KINDS},
	{"loss", required_argument, NULL, OPTION_LOSS},     {"trace", no_argument, NULL, OPTION_TRACE},
	{"shrink", no_argument, NULL, OPTION_SHRINK},       {"vary", no_argument, NULL, OPTION_VARY},
	{"help", no_argument, NULL, OPTION_HELP},           {"keep", required_argument, NULL, OPTION_KEEP},
};

/* False: it is none of these. */
static bool set_common(struct sim_runner *runner, struct sim_common *common, int option, const char *value)
{
	if (option >= OPTION_KEEP && option < OPTION_KEEP + (int)runner->lists_count) {
		runner->lists[option - OPTION_KEEP].keep = str_of(value);
		return true;
	}
	switch (option) {
	case OPTION_SEED: *common->seed = sim_option_number(value, 0, UINT64_MAX); break;
	case OPTION_SITES: *common->sites = (uint32_t)sim_option_number(value, 2, common->sites_most); break;
	case OPTION_STEPS:
		*common->steps = (uint32_t)sim_option_number(value, common->steps_least, common->steps_most);
		break;
	case OPTION_RUNS: runner->runs = (uint32_t)sim_option_number(value, 1, UINT32_MAX); break;
	case OPTION_FAULTS: *common->faults = (uint32_t)sim_option_number(value, 0, FAULTS_MOST); break;
	case OPTION_KINDS:
		common->only = value;
		*common->kinds = sim_option_kinds(value, common->kinds_allowed);
		break;
	case OPTION_LOSS: *common->loss = sim_option_share(value); break;
	case OPTION_TRACE: *common->trace = true; break;
	case OPTION_SHRINK: runner->shrinks = true; break;
	case OPTION_VARY: common->varies = true; break;
	case OPTION_HELP: printf("%s", common->usage); exit(0);
	default: return false;
	}
	return true;
}

void sim_read_options(struct sim_runner *runner, struct sim_common *common, int argc, char **argv,
                      const struct option *own, void (*set)(void *context, int option, const char *value))
{
	struct option all[OPTIONS_MOST] = {{0}};
	struct buf keeps[SIM_LISTS] = {{0}};
	uint32_t count = sizeof(common_options) / sizeof(common_options[0]);
	memcpy(all, common_options, sizeof(common_options));
	for (uint32_t i = 1; i < runner->lists_count; i++) {
		buf_printf(&keeps[i], "keep-%s", runner->lists[i].what);
		all[count++] = (struct option){buf_c(&keeps[i]), required_argument, NULL, OPTION_KEEP + (int)i};
	}
	for (; own->name; own++) {
		CHECK(count + 1 < OPTIONS_MOST && own->val < OPTION_SEED);
		all[count++] = *own;
	}
	*common->faults = UINT32_MAX;
	for (int option; (option = getopt_long(argc, argv, "", all, NULL)) != -1;) {
		if (option == '?') {
			fprintf(stderr, "%s", common->usage);
			exit(2);
		}
		if (!set_common(runner, common, option, optarg))
			set(runner->context, option, optarg);
	}
	if (optind < argc) {
		fprintf(stderr, "%s", common->usage);
		exit(2);
	}
	uint32_t faults = *common->steps / STEPS_PER_FAULT;
	if (*common->faults == UINT32_MAX)
		*common->faults = faults < FAULTS_MOST ? faults : FAULTS_MOST;
	for (uint32_t i = 0; i < SIM_LISTS; i++)
		buf_free(&keeps[i]);
}
