/* What it costs to look for ids in a body: bytes of JSON per second, through the splicer.
 *
 * The goal is 500 MB/s where nothing is found; the ratios are of the goal's time per byte, so below 1 is good. See
 * print_method() for how it is measured. Usage: bench_glue_splice [--quick], or for a profiler: bench_glue_splice --case CASE
 * --iterations N, where CASE is one of the names in the ratio lines.
 */
#include "arguments.h"

#include "base/check.h"
#include "glue/places.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum { GOAL_MB_S = 500, PIECE_BYTES = 16 << 10, BATCHES = 201, BATCHES_QUICK = 21, BATCH_BYTES = 4 << 20 };

/* ---- Bodies ------------------------------------------------------------------------------------------------------- */

/* As compute's list of servers: nested, ids and links all over. */
static void servers_make(struct buf *out, bool indented)
{
	const char *in = indented ? "\n            " : "", *colon = indented ? ": " : ":";
	buf_put(out, STR("{\"servers\":["));
	for (unsigned i = 0; i < 200; i++) {
		buf_printf(out, "%s{\"id\"%s\"5b2f6c1e-0a4d-4a7e-9f00-%012x\",", i ? "," : "", colon, i);
		buf_printf(out, "%s\"name\"%s\"web-%u\",%s\"status\"%s\"ACTIVE\",%s\"tenant_id\"%s\"%032x\",", in, colon, i, in,
		           colon, in, colon, i * 7);
		buf_printf(out, "%s\"addresses\"%s{\"private\":[{\"version\":4,\"addr\":\"10.0.%u.%u\",", in, colon, i / 256,
		           i % 256);
		buf_printf(out, "\"OS-EXT-IPS:type\":\"fixed\",\"OS-EXT-IPS-MAC:mac_addr\":\"fa:16:3e:00:00:%02x\"}]},", i);
		buf_printf(out, "%s\"links\"%s[{\"rel\":\"self\",\"href\":\"http://10.1.1.1:8774/v2.1/servers/%u\"},", in,
		           colon, i);
		buf_printf(out, "{\"rel\":\"bookmark\",\"href\":\"http://10.1.1.1:8774/servers/%u\"}],", i);
		buf_printf(out, "%s\"progress\"%s0,%s\"created\"%s\"2026-01-01T00:00:%02uZ\",%s\"locked\"%sfalse,", in, colon,
		           in, colon, i % 60, in, colon);
		buf_printf(out, "%s\"OS-EXT-STS:task_state\"%snull,%s\"metadata\"%s{\"key\":\"value %u\"}}", in, colon, in,
		           colon, i);
	}
	buf_put(out, STR("]}"));
}

static void servers_compact(struct buf *out)
{
	servers_make(out, false);
}

static void servers_indented(struct buf *out)
{
	servers_make(out, true);
}

/* Measurements: hardly anything but numbers. */
static void numbers_make(struct buf *out)
{
	buf_put(out, STR("{\"points\":["));
	for (unsigned i = 0; i < 10000; i++)
		buf_printf(out, "%s[%u,%u.%03u,-%ue-3]", i ? "," : "", i * 17, i, i % 1000, i * 3);
	buf_put(out, STR("]}"));
}

/* Documents: long strings, some escapes, some that is not ASCII. */
static void texts_make(struct buf *out)
{
	buf_put(out, STR("{\"documents\":["));
	for (unsigned i = 0; i < 200; i++)
		buf_printf(
			out,
			"%s{\"title\":\"Report %u\",\"text\":\"All was quiet at the site during the night.\\nThe link to the "
			"next one was lost twice, for less than a minute, and came back by itself. La m\xc3\xa9t\xc3\xa9o reste "
			"calme. \\\"Nothing to report\\\", says the watch, and goes on with the round as every night.\"}",
			i ? "," : "", i);
	buf_put(out, STR("]}"));
}

/* ---- Cases -------------------------------------------------------------------------------------------------------- */

static const struct {
	const char *name;
	void (*make)(struct buf *out);
	const char *pointers[4];
	bool replace;
} settings[] = {
	{"copy-nothing-read", servers_compact, {NULL}, false},
	{"servers-nothing-there", servers_compact, {"/server/id", "/flavorRef", "/networks/*/uuid"}, false},
	{"servers-indented-nothing-there", servers_indented, {"/server/id", "/flavorRef", "/networks/*/uuid"}, false},
	{"servers-no-such-member", servers_compact, {"/servers/*/image/id", "/servers/*/flavor/id"}, false},
	{"servers-ids-left", servers_compact, {"/servers/*/id", "/servers/*/links/*/href"}, false},
	{"servers-ids-replaced", servers_compact, {"/servers/*/id", "/servers/*/links/*/href"}, true},
	{"numbers-nothing-there", numbers_make, {"/id"}, false},
	{"texts-nothing-there", texts_make, {"/id"}, false},
};

enum { CASES = COUNT(settings) };

struct bench_case {
	const char *name;
	struct buf body;
	struct buf out;
	struct glue_places *places;
	bool replace;
	double samples[BATCHES]; /* ns per byte, one a batch */
};

static bool replace(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	const struct bench_case *c = context;
	(void)quoted;
	if (!c->replace)
		return false;
	buf_put(value, STR("0198a5c0-7b1d-7c3a-8000-"));
	buf_put(value, place->value.length > 12 ? str_make(place->value.at + place->value.length - 12, 12) : place->value);
	return true;
}

static void case_make(struct bench_case *c, size_t i)
{
	*c = (struct bench_case){.name = settings[i].name, .replace = settings[i].replace};
	settings[i].make(&c->body);
	if (settings[i].pointers[0])
		c->places = glue_places_new();
	for (size_t p = 0; p < COUNT(settings[i].pointers) && settings[i].pointers[p]; p++)
		CHECK(glue_places_add(c->places, str_of(settings[i].pointers[p]), GLUE_PLACE_ID, NULL, NULL) == 0);
}

static void case_free(struct bench_case *c)
{
	buf_free(&c->body);
	buf_free(&c->out);
	glue_places_free(c->places);
}

static void run(struct bench_case *c, uint64_t iterations)
{
	struct glue_replacer replacer = {c, replace};
	for (uint64_t i = 0; i < iterations; i++) {
		struct glue_splicer *splicer = glue_splicer_new(c->places, &replacer);
		for (size_t at = 0; at < c->body.length; at += PIECE_BYTES) {
			size_t left = c->body.length - at;
			buf_clear(&c->out);
			CHECK(glue_splice(splicer, str_make(c->body.at + at, left < PIECE_BYTES ? left : PIECE_BYTES), &c->out,
			                  NULL) == 0);
		}
		CHECK(glue_splice_end(splicer, &c->out, NULL) == 0);
		glue_splicer_free(splicer);
	}
}

/* ---- Measuring ---------------------------------------------------------------------------------------------------- */

static double now_ns(void)
{
	struct timespec t;
	CHECK(clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t) == 0);
	return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static void measure(struct bench_case cases[CASES], size_t batches)
{
	/* All cases in turn, so that what disturbs the machine disturbs all of them alike. The first batch warms up. */
	for (size_t batch = 0; batch <= batches; batch++) {
		for (size_t i = 0; i < CASES; i++) {
			uint64_t iterations = BATCH_BYTES / cases[i].body.length + 1;
			double start = now_ns();
			run(&cases[i], iterations);
			double ns = (now_ns() - start) / (double)(iterations * cases[i].body.length);
			if (batch > 0)
				cases[i].samples[batch - 1] = ns;
		}
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print_method(size_t batches)
{
	printf("JSON through glue_splice() in pieces of %d bytes. CPU time of the thread, %zu batches of %d MB a case, the "
	       "cases\n"
	       "taking turns: median, and from the 10th to the 90th of a hundred. The goal is %d MB/s.\n",
	       PIECE_BYTES, batches, BATCH_BYTES >> 20, GOAL_MB_S);
}

static void print_table(struct bench_case cases[CASES], size_t batches)
{
	printf("\n%-32s %9s %9s %19s\n", "case", "body B", "MB/s", "p10 - p90 MB/s");
	for (size_t i = 0; i < CASES; i++) {
		double *samples = cases[i].samples;
		qsort(samples, batches, sizeof(double), compare);
		printf("%-32s %9zu %9.0f %9.0f -%8.0f\n", cases[i].name, cases[i].body.length, 1e3 / samples[batches / 2],
		       1e3 / samples[batches * 9 / 10], 1e3 / samples[batches / 10]);
	}
	printf("\n");
	for (size_t i = 0; i < CASES; i++)
		printf("ratio glue-splice-%s %.3f\n", cases[i].name, cases[i].samples[batches / 2] * GOAL_MB_S / 1e3);
}

static int run_one(struct bench_case cases[CASES], const struct bench_arguments *arguments)
{
	for (size_t i = 0; i < CASES; i++) {
		if (strcmp(cases[i].name, arguments->only) == 0) {
			run(&cases[i], arguments->iterations);
			return 0;
		}
	}
	return bench_no_case(arguments);
}

int main(int argc, char **argv)
{
	struct bench_arguments arguments = {.program = "bench_glue_splice"};
	if (!bench_arguments_read(&arguments, argc, argv))
		return 2;
	static struct bench_case cases[CASES];
	for (size_t i = 0; i < CASES; i++)
		case_make(&cases[i], i);
	int status = 0;
	if (arguments.only) {
		status = run_one(cases, &arguments);
	} else {
		size_t batches = arguments.quick ? BATCHES_QUICK : BATCHES;
		measure(cases, batches);
		print_method(batches);
		print_table(cases, batches);
	}
	for (size_t i = 0; i < CASES; i++)
		case_free(&cases[i]);
	return status;
}
