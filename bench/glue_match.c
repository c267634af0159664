/* What it costs to know what a request is: glue_match() with a description of a hundred templates, and with the shipped
 * ones' shapes. The goal is well under 1 µs; the ratios are to that. Usage: bench_glue_match [--quick], or for a profiler: bench_glue_match
 * --case CASE --iterations N.
 */
#include "arguments.h"

#include "base/check.h"
#include "glue/glue.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { GOAL_NS = 1000, TYPES = 25, TEMPLATES = 4 * TYPES };

/* ---- What is measured --------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	const char *method;
	const char *path;
	const char *query;
	const char *content_type;
	bool known;
} requests[] = {
	{"collection", "GET", "/v2/kind12s", "", "", true},
	{"item", "GET", "/v2/kind12s/4f0c2f3e-9d2b-4f57-9d5c-0a3f9e6b1c2d", "", "", true},
	{"patch", "PATCH", "/v2/kind12s/4f0c2f3e-9d2b-4f57-9d5c-0a3f9e6b1c2d", "", "application/json-patch+json", true},
	{"file", "PUT", "/v2/kind12s/4f0c2f3e-9d2b-4f57-9d5c-0a3f9e6b1c2d/file", "", "application/octet-stream", true},
	{"action", "POST", "/v2/kind24s/4f0c2f3e-9d2b-4f57-9d5c-0a3f9e6b1c2d/action", "", "application/json", true},
	{"watch", "GET", "/v2/kind12s", "limit=500&resourceVersion=1234567&watch=true", "", true},
	{"namespaced", "GET", "/apis/apps/v1/namespaces/default/deployments/web", "", "", true},
	{"back", "GET", "/apis/apps/v1/namespaces/default/deployments/web/nothing", "", "", false},
	{"unknown", "GET", "/static/js/app.4f0c2f3e.js", "", "", false},
};
enum { CASES = COUNT(requests) };

/* Twenty-five types with four templates each, and one of the shape that Kubernetes has. */
static struct glue *glue_make(void)
{
	struct buf text = {0};
	struct glue *glue;
	struct err err = {0};
	struct glue_options options = {.path = "bench", .hash_key = {1, 2}};
	buf_put(&text, STR("format: 1\napplication: bench\nservices: {s: {address: http://127.0.0.1:1}}\ntypes:\n"));
	for (int i = 0; i < TYPES; i++)
		buf_printf(&text,
		           "  s.kind%d:\n"
		           "    collection: /v2/kind%ds\n"
		           "    item: /v2/kind%ds/{id}\n"
		           "    operations:\n"
		           "      upload: {method: PUT, path: '{item}/file', facet: file, body: opaque}\n"
		           "      stop: {method: POST, path: '{item}/action', key: stop}\n"
		           "      start: {method: POST, path: '{item}/action', key: start}\n"
		           "      watch: {method: GET, path: '{collection}', query: {watch: 'true'}, effect: read}\n",
		           i, i, i);
	buf_put(&text, STR("  's.{plural}.{group}':\n"
	                   "    collection: ['/apis/{group}/{version}/{plural}',\n"
	                   "      '/apis/{group}/{version}/namespaces/{namespace}/{plural}']\n"
	                   "    item: ['/apis/{group}/{version}/{plural}/{name}',\n"
	                   "      '/apis/{group}/{version}/namespaces/{namespace}/{plural}/{name}']\n"
	                   "    identity: chosen\n"
	                   "    ignore: version\n"));
	if (glue_read(&glue, buf_str(&text), &options, &err) != 0) {
		fprintf(stderr, "bench_glue_match: %s\n", err.text);
		exit(1);
	}
	buf_free(&text);
	return glue;
}

struct bench_case {
	struct glue_request request;
	bool known;
	double samples_ns[201];
};

static volatile uint32_t sink;

static void run(const struct glue *glue, const struct bench_case *c, uint64_t iterations)
{
	struct glue_match match;
	for (uint64_t i = 0; i < iterations; i++) {
		CHECK(glue_match(glue, &c->request, &match) == c->known);
		sink = c->known ? match.values_count : 0;
	}
}

/* ---- Time --------------------------------------------------------------------------------------------------------- */

static double now_ns(void)
{
	struct timespec t;
	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void report(struct bench_case cases[CASES], size_t batches, uint64_t iterations)
{
	printf("What a request is, with %d templates. CPU time of the thread, %zu batches of %" PRIu64
	       " look-ups a case, the cases\ntaking turns: median, and from the 10th to the 90th of a hundred.\n\n",
	       TEMPLATES, batches, iterations);
	printf("%-12s %9s %19s   %s\n", "case", "median ns", "p10 - p90 ns", "request");
	for (size_t i = 0; i < CASES; i++) {
		double *samples = cases[i].samples_ns;
		qsort(samples, batches, sizeof(double), compare);
		printf("%-12s %9.1f %9.1f -%8.1f   %s %s\n", requests[i].name, samples[batches / 2], samples[batches / 10],
		       samples[batches * 9 / 10], requests[i].method, requests[i].path);
	}
	printf("\n");
	for (size_t i = 0; i < CASES; i++)
		printf("ratio glue-match-%s %.3f\n", requests[i].name, cases[i].samples_ns[batches / 2] / GOAL_NS);
}

static void measure(const struct glue *glue, struct bench_case cases[CASES], bool quick)
{
	size_t batches = quick ? 21 : 201;
	uint64_t iterations = quick ? 1000 : 5000;
	for (size_t i = 0; i < CASES; i++)
		run(glue, &cases[i], iterations);
	/* All cases in turn, so that what disturbs the machine disturbs all of them alike. */
	for (size_t batch = 0; batch < batches; batch++) {
		for (size_t i = 0; i < CASES; i++) {
			double start = now_ns();
			run(glue, &cases[i], iterations);
			cases[i].samples_ns[batch] = (now_ns() - start) / (double)iterations;
		}
	}
	report(cases, batches, iterations);
}

int main(int argc, char **argv)
{
	static struct bench_case cases[CASES];
	struct bench_arguments arguments = {.program = "bench_glue_match"};
	if (!bench_arguments_read(&arguments, argc, argv))
		return 2;
	bool found = false;
	struct glue *glue = glue_make();
	for (size_t i = 0; i < CASES; i++) {
		cases[i].known = requests[i].known;
		cases[i].request = (struct glue_request){.service = STR("s"),
		                                         .method = str_of(requests[i].method),
		                                         .path = str_of(requests[i].path),
		                                         .query = str_of(requests[i].query),
		                                         .content_type = str_of(requests[i].content_type)};
		if (!arguments.only || strcmp(arguments.only, requests[i].name) != 0)
			continue;
		run(glue, &cases[i], arguments.iterations);
		found = true;
	}
	if (!arguments.only)
		measure(glue, cases, arguments.quick);
	glue_free(glue);
	return arguments.only && !found ? bench_no_case(&arguments) : 0;
}
