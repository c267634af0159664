/* What it costs to say what is to be run next, with 1 to 1000 operations pending at a site.
 *
 * Three situations: `next`, where nothing is concurrent and none of the pending ones was run; `apart`, where this site has run as
 * many of its own meanwhile, and all are increments; `replace`, the same, and the last one that came is a replace that was
 * concurrent with all, so that all has to be run again. `build` makes the sequence, which is done once for each that comes.
 * Each line is the best of 15 rounds, in nanoseconds for one call. The ratios are of the cost per operation with 1000 pending
 * to that with 10: about 1 is linear. */
#include "replica/order.h"

#include "base/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { MEMBERS = 3, MOST = 2001, ROUNDS = 15 };

enum situation { NEXT, APART, REPLACE, SITUATIONS };
static const char *const names[SITUATIONS] = {"next", "apart", "replace"};

struct bench {
	struct order_op ops[MOST + 1];
	uint32_t seen[MOST + 1][MEMBERS];
	struct order_step_done done[MOST + 1];
	uint32_t done_count;
	struct order_set set;
	struct order_sequence sequence;
	struct arena arena;
};

static double now_ns(void)
{
	struct timespec time;
	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * 1e9 + (double)time.tv_nsec;
}

static void add(struct bench *bench, uint32_t member, enum order_effect effect, uint64_t stamp, const uint32_t *seen)
{
	uint32_t index = bench->set.ops_count++;
	for (uint32_t i = 0; i < MEMBERS; i++)
		bench->seen[index][i] = seen[i];
	bench->ops[index] = (struct order_op){.member = member,
	                                      .number = seen[member] + 1,
	                                      .stamp = stamp,
	                                      .seen = bench->seen[index],
	                                      .effect = (uint8_t)effect,
	                                      .class = (uint8_t)effect};
}

/* A create by A, run here, at A. Then `pending` of B, with as many of A in between if they are apart. */
static void make(struct bench *bench, enum situation situation, uint32_t pending)
{
	uint32_t of_a[MEMBERS] = {0}, of_b[MEMBERS] = {1, 0, 0};
	bench->set = (struct order_set){.ops = bench->ops, .members_count = MEMBERS};
	bench->done_count = 0;
	add(bench, 0, ORDER_CREATE, 1, of_a);
	bench->done[bench->done_count++] = (struct order_step_done){.op = 0};
	of_a[0]++;
	for (uint32_t i = 0; i < pending; i++) {
		bool last = i + 1 == pending;
		add(bench, 1, situation == REPLACE && last ? ORDER_REPLACE : ORDER_RELATIVE, 10 * (uint64_t)i + 12, of_b);
		of_b[1]++;
		if (situation == NEXT)
			continue;
		bench->done[bench->done_count++] = (struct order_step_done){.op = bench->set.ops_count};
		add(bench, 0, ORDER_RELATIVE, 10 * (uint64_t)i + 15, of_a);
		of_a[0]++;
	}
}

static double measure(struct bench *bench, bool build, uint32_t calls)
{
	double best = 0;
	for (int round = 0; round < ROUNDS; round++) {
		double from = now_ns();
		for (uint32_t i = 0; i < calls; i++) {
			struct order_next next;
			arena_reset(&bench->arena);
			if (build) {
				order_build(&bench->arena, &bench->set, &bench->sequence);
				continue;
			}
			order_next(&bench->arena, &bench->set, &bench->sequence, bench->done, bench->done_count, &next);
			CHECK(next.action == ORDER_RUN);
		}
		double each = (now_ns() - from) / calls;
		best = round == 0 || each < best ? each : best;
	}
	return best;
}

int main(void)
{
	static struct bench bench;
	static const uint32_t pendings[] = {1, 10, 100, 1000};
	struct arena kept;
	double at_ten[SITUATIONS][2] = {{0}};
	arena_init(&bench.arena, 1 << 20);
	arena_init(&kept, 1 << 20);
	printf("%-8s %8s %12s %12s\n", "", "pending", "build ns", "next ns");
	for (int situation = 0; situation < SITUATIONS; situation++) {
		for (size_t i = 0; i < sizeof(pendings) / sizeof(pendings[0]); i++) {
			make(&bench, (enum situation)situation, pendings[i]);
			double build = measure(&bench, true, 20000 / pendings[i]);
			arena_reset(&kept);
			order_build(&kept, &bench.set, &bench.sequence);
			double next = measure(&bench, false, 20000 / pendings[i]);
			printf("%-8s %8u %12.0f %12.0f\n", names[situation], pendings[i], build, next);
			if (pendings[i] == 10) {
				at_ten[situation][0] = build / 10;
				at_ten[situation][1] = next / 10;
			}
			if (pendings[i] == 1000) {
				printf("ratio order-build-%s %.2f\n", names[situation], build / 1000 / at_ten[situation][0]);
				printf("ratio order-next-%s %.2f\n", names[situation], next / 1000 / at_ten[situation][1]);
			}
		}
	}
	arena_free(&bench.arena);
	arena_free(&kept);
	return 0;
}
