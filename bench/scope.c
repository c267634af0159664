/* What a scope costs: text to plan, not seen before ("cold") and seen before ("cached").
 *
 * The goals of DESIGN 16 are under 1 µs and under 100 ns; the ratios are to these. See print_method() for how it is
 * measured. Usage: bench_scope [--quick], or for a profiler: bench_scope --case CASE --iterations N, where CASE is one of
 * the names in the ratio lines.
 */
#include "scope/scope.h"
#include "arguments.h"
#include "base/check.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- What is measured --------------------------------------------------------------------------------------------- */

/* The five scopes that DESIGN and the papers use most. */
static const struct {
	const char *name;
	const char *text;
	const char *service;
} scopes[] = {
	{"entries", "{compute: Site1, image: Site2}", "compute"},
	{"all", "Site1 & Site2", "compute"},
	{"span", "Site1 % Site2", "compute"},
	{"otherwise", "Site1; Site2", "compute"},
	{"around", "{compute: Site1, image: around(Site1, 10ms)}", "image"},
};

enum { SCOPES = COUNT(scopes), GOAL_COLD_NS = 1000, GOAL_CACHED_NS = 100 };

static const struct {
	const char *name;
	uint32_t sites;
	bool cached;
} settings[] = {{"cold-5", 5, false}, {"cold-100", 100, false}, {"cached-5", 5, true}};

enum { SETTINGS = COUNT(settings), CASES = SETTINGS * SCOPES };

struct bench_case {
	char name[48];
	struct str text;
	struct scope_request request;
	struct scope_view view;
	struct scope_cache *cache; /* NULL: cold */
	struct arena arena;        /* of the operation */
	double *samples_ns;        /* per operation, one a batch */
	uint64_t instructions;     /* per operation; 0: not known */
	size_t bytes;              /* of the arena, per operation */
};

/* Site1 has one neighbour in ten within 10 ms; every site has both services. */
static struct scope_view world_make(struct arena *arena, uint32_t sites)
{
	struct scope_table *table = scope_table_new(arena);
	for (uint32_t i = 0; i < sites; i++) {
		char name[16];
		int length = snprintf(name, sizeof(name), "Site%" PRIu32, i + 1);
		scope_table_add_site(table, (struct scope_site){.name = str_make(name, (size_t)length)});
	}
	for (uint32_t from = 0; from < sites; from++)
		for (uint32_t to = from + 1; to < sites; to++)
			scope_table_set_rtt(table, from, to, 1000 * (int64_t)(1 + (7 + from * 11 + (to - 1) * 23) % 100));
	static const char *const services[] = {"compute", "image"};
	for (uint32_t service = 0; service < COUNT(services); service++) {
		scope_table_add_service(table, str_of(services[service]));
		for (uint32_t site = 0; site < sites; site++)
			scope_table_offer(table, service, site, STR("2.1"));
	}
	return scope_table_view(table);
}

static void cases_make(struct bench_case cases[CASES], struct arena *arena, size_t batches)
{
	for (uint32_t i = 0; i < CASES; i++) {
		struct bench_case *c = &cases[i];
		uint32_t scope = i % SCOPES, setting = i / SCOPES;
		*c = (struct bench_case){
			.text = str_of(scopes[scope].text),
			.request = {.service = str_of(scopes[scope].service)},
			.view = world_make(arena, settings[setting].sites),
			.samples_ns = arena_array(arena, double, batches),
		};
		snprintf(c->name, sizeof(c->name), "scope-%s-%s", settings[setting].name, scopes[scope].name);
		arena_init(&c->arena, 16 << 10);
		if (settings[setting].cached)
			c->cache = scope_cache_new((struct hash_key){0x0706050403020100, 0x0f0e0d0c0b0a0908});
	}
}

static void cases_free(struct bench_case cases[CASES])
{
	for (uint32_t i = 0; i < CASES; i++) {
		arena_free(&cases[i].arena);
		if (cases[i].cache)
			scope_cache_free(cases[i].cache);
	}
}

/* ---- The operations ----------------------------------------------------------------------------------------------- */

static volatile uint32_t sink;

static void run_cold(struct bench_case *c, uint64_t iterations)
{
	struct scope_diag diag;
	for (uint64_t i = 0; i < iterations; i++) {
		struct scope *scope;
		const struct scope_plan *plan;
		arena_reset(&c->arena);
		int code = scope_parse(&c->arena, c->text, &scope, &diag);
		if (code == 0)
			code = scope_check(&c->arena, scope, &diag);
		if (code == 0)
			code = scope_evaluate(&c->arena, scope, &c->request, &c->view, &plan, &diag);
		CHECK(code == 0);
		sink = plan->root->of_count;
	}
	c->bytes = c->arena.used_bytes;
}

static void run_cached(struct bench_case *c, uint64_t iterations)
{
	struct scope_diag diag;
	for (uint64_t i = 0; i < iterations; i++) {
		struct scope_lease *lease;
		int code = scope_cache_get(c->cache, c->text, &c->request, &c->view, &lease, &diag);
		CHECK(code == 0);
		sink = scope_lease_plan(lease)->root->of_count;
		scope_lease_drop(lease);
	}
}

static void run(struct bench_case *c, uint64_t iterations)
{
	if (c->cache)
		run_cached(c, iterations);
	else
		run_cold(c, iterations);
}

/* ---- Time --------------------------------------------------------------------------------------------------------- */

static double now_ns(void)
{
	struct timespec t;
	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void measure_time(struct bench_case cases[CASES], size_t batches, uint64_t iterations)
{
	for (uint32_t i = 0; i < CASES; i++)
		run(&cases[i], iterations);
	/* All cases in turn, so that what disturbs the machine disturbs all of them alike. */
	for (size_t batch = 0; batch < batches; batch++) {
		for (uint32_t i = 0; i < CASES; i++) {
			double start = now_ns();
			run(&cases[i], iterations);
			cases[i].samples_ns[batch] = (now_ns() - start) / (double)iterations;
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* ---- Instructions ------------------------------------------------------------------------------------------------- */

/* What callgrind counts for this many operations, start-up included; 0 where it cannot be had. */
static uint64_t callgrind_count(const char *self, const char *name, uint64_t iterations)
{
	char command[1024], line[256];
	snprintf(command, sizeof(command),
	         "valgrind --tool=callgrind --callgrind-out-file=/dev/null '%s' --case %s --iterations %" PRIu64 " 2>&1",
	         self, name, iterations);
	FILE *output = popen(command, "r");
	if (!output)
		return 0;
	uint64_t count = 0;
	while (fgets(line, sizeof(line), output)) {
		const char *collected = strstr(line, "Collected :");
		if (collected)
			count = strtoull(collected + strlen("Collected :"), NULL, 10);
	}
	return pclose(output) == 0 ? count : 0;
}

static bool measure_instructions(struct bench_case cases[CASES])
{
	char self[512];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
	if (length < 0 || system("command -v valgrind >/dev/null 2>&1") != 0)
		return false;
	self[length] = '\0';
	for (uint32_t i = 0; i < CASES; i++) {
		enum { FEW = 1000, MANY = 5000 };
		uint64_t few = callgrind_count(self, cases[i].name, FEW), many = callgrind_count(self, cases[i].name, MANY);
		if (few == 0 || many <= few)
			return false;
		cases[i].instructions = (many - few) / (MANY - FEW);
	}
	return true;
}

/* ---- Report ------------------------------------------------------------------------------------------------------- */

static void print_method(size_t batches, uint64_t iterations, bool instructions)
{
	printf(
		"Text to plan. cold: arena_reset, parse, check, evaluate, in worlds of 5 and of 100 sites (in which around()\n"
		"finds 1 and 10). cached: scope_cache_get of a scope that is there, and scope_lease_drop.\n"
		"CPU time of the thread, %zu batches of %" PRIu64
		" operations a case, the cases taking turns: median, and from\n"
		"the 10th to the 90th of a hundred. ",
		batches, iterations);
	printf("%s\n", instructions ? "Instructions by callgrind, the difference of two counts."
	                            : "Instructions: not counted (--quick, or no valgrind).");
}

static void print_table(struct bench_case cases[CASES], size_t batches)
{
	printf("\n%-26s %9s %19s %13s %9s   %s\n", "case", "median ns", "p10 - p90 ns", "instructions", "arena B", "scope");
	for (uint32_t i = 0; i < CASES; i++) {
		struct bench_case *c = &cases[i];
		qsort(c->samples_ns, batches, sizeof(double), compare);
		char counted[24] = "-", bytes[24] = "-";
		if (c->instructions)
			snprintf(counted, sizeof(counted), "%" PRIu64, c->instructions);
		if (!c->cache)
			snprintf(bytes, sizeof(bytes), "%zu", c->bytes);
		printf("%-26s %9.1f %9.1f -%8.1f %13s %9s   %.*s\n", c->name, c->samples_ns[batches / 2],
		       c->samples_ns[batches / 10], c->samples_ns[batches * 9 / 10], counted, bytes, STR_FMT(c->text));
	}
	printf("\n");
	for (uint32_t i = 0; i < CASES; i++)
		printf("ratio %s %.3f\n", cases[i].name,
		       cases[i].samples_ns[batches / 2] / (cases[i].cache ? GOAL_CACHED_NS : GOAL_COLD_NS));
}

static int run_one(struct bench_case cases[CASES], const struct bench_arguments *arguments)
{
	for (uint32_t i = 0; i < CASES; i++) {
		if (strcmp(cases[i].name, arguments->only) == 0) {
			run(&cases[i], arguments->iterations);
			return 0;
		}
	}
	return bench_no_case(arguments);
}

int main(int argc, char **argv)
{
	struct bench_arguments arguments = {.program = "bench_scope"};
	if (!bench_arguments_read(&arguments, argc, argv))
		return 2;
	size_t batches = arguments.quick ? 21 : 201;
	struct arena arena;
	struct bench_case cases[CASES];
	arena_init(&arena, 0);
	cases_make(cases, &arena, batches);
	int status = 0;
	if (arguments.only) {
		status = run_one(cases, &arguments);
	} else {
		uint64_t iterations = arguments.quick ? 500 : 2000;
		measure_time(cases, batches, iterations);
		bool counted = !arguments.quick && measure_instructions(cases);
		print_method(batches, iterations, counted);
		print_table(cases, batches);
	}
	cases_free(cases);
	arena_free(&arena);
	return status;
}
