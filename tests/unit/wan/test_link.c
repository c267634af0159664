#include "wan_test.h"

static struct wan_link make_link(struct wan_rules rules)
{
	struct wan_link link;
	wan_link_init(&link, 7, 0, 1);
	link.rules = rules;
	return link;
}

static void a_perfect_link_passes_at_once(void **state)
{
	(void)state;
	struct wan_link link = make_link(wan_rules_default());
	int64_t due[2];
	assert_int_equal(wan_link_pass(&link, 5, 100, due), 1);
	assert_int_equal(due[0], 5);
	assert_int_equal(link.counts.frames, 1);
	assert_int_equal(link.counts.bytes, 100);
}

static void delay_is_added_to_each_frame(void **state)
{
	(void)state;
	struct wan_link link = make_link((struct wan_rules){.delay_ns = 50 * MS});
	int64_t due[2];
	for (int64_t now = 0; now < 10 * MS; now += MS) {
		assert_int_equal(wan_link_pass(&link, now, 100, due), 1);
		assert_int_equal(due[0], now + 50 * MS);
	}
}

/* Far apart, so that no frame waits for the one before it. */
static void jitter_is_bounded_symmetric_and_bell_shaped(void **state)
{
	(void)state;
	enum { COUNT = 20000 };
	struct wan_link link = make_link((struct wan_rules){.delay_ns = 50 * MS, .jitter_ns = 10 * MS});
	int64_t due[2];
	double sum = 0;
	int inner = 0;
	for (int64_t i = 0; i < COUNT; i++) {
		int64_t now = i * 1000 * MS;
		assert_int_equal(wan_link_pass(&link, now, 100, due), 1);
		int64_t error = due[0] - now - 50 * MS;
		assert_true(error >= -10 * MS && error <= 10 * MS);
		sum += (double)error / (double)MS;
		inner += error > -3 * MS && error < 3 * MS;
	}
	assert_true(sum / COUNT > -0.1 && sum / COUNT < 0.1);
	assert_true(inner > COUNT * 6 / 10 && inner < COUNT * 8 / 10); /* one deviation is 2.9 ms: 68 % */
}

static void jitter_alone_does_not_reorder(void **state)
{
	(void)state;
	struct wan_link link = make_link((struct wan_rules){.delay_ns = 5 * MS, .jitter_ns = 20 * MS});
	int64_t due[2], last = 0;
	for (int64_t now = 0; now < 1000 * MS; now += MS / 10) {
		assert_int_equal(wan_link_pass(&link, now, 100, due), 1);
		assert_true(due[0] >= last && due[0] >= now);
		last = due[0];
	}
}

static void a_share_is_lost_and_the_same_ones_for_the_same_seed(void **state)
{
	(void)state;
	enum { COUNT = 10000 };
	struct wan_link link = make_link((struct wan_rules){.loss = 0.07});
	struct wan_link same = make_link((struct wan_rules){.loss = 0.07, .delay_ns = MS, .jitter_ns = MS, .reorder = 0.5});
	struct wan_link other = make_link((struct wan_rules){.loss = 0.07});
	wan_link_init(&other, 7, 1, 0);
	other.rules.loss = 0.07;
	int64_t due[2];
	bool differs = false;
	for (int i = 0; i < COUNT; i++) {
		unsigned copies = wan_link_pass(&link, i, 100, due);
		assert_int_equal(copies, wan_link_pass(&same, i, 100, due));
		differs = wan_link_pass(&other, i, 100, due) != copies || differs;
	}
	assert_true(differs);
	assert_in_range(link.counts.lost, 600, 800); /* five deviations are 128 */
	assert_int_equal(link.counts.frames, COUNT);
}

static void all_or_nothing_is_lost(void **state)
{
	(void)state;
	struct wan_link never = make_link((struct wan_rules){0}), always = make_link((struct wan_rules){.loss = 1});
	int64_t due[2];
	for (int i = 0; i < 1000; i++) {
		assert_int_equal(wan_link_pass(&never, i, 100, due), 1);
		assert_int_equal(wan_link_pass(&always, i, 100, due), 0);
	}
}

static void a_duplicate_arrives_with_the_first(void **state)
{
	(void)state;
	struct wan_link link = make_link((struct wan_rules){.duplicate = 1, .delay_ns = MS});
	int64_t due[2];
	assert_int_equal(wan_link_pass(&link, 0, 100, due), 2);
	assert_int_equal(due[0], MS);
	assert_int_equal(due[1], MS);
	assert_int_equal(link.counts.duplicated, 1);
}

static void a_frame_that_is_held_back_is_overtaken(void **state)
{
	(void)state;
	struct wan_link link = make_link((struct wan_rules){.delay_ns = 10 * MS, .reorder = 1, .reorder_by_ns = 3 * MS});
	int64_t due[2];
	assert_int_equal(wan_link_pass(&link, 0, 100, due), 1);
	assert_int_equal(due[0], 13 * MS);
	link.rules.reorder = 0;
	assert_int_equal(wan_link_pass(&link, 1, 100, due), 1);
	assert_int_equal(due[0], 10 * MS + 1);
	assert_int_equal(link.counts.reordered, 1);
}

static void a_line_sends_one_frame_after_the_other(void **state)
{
	(void)state;
	/* 1 000 bytes at 8 Mbit/s take 1 ms */
	struct wan_link link = make_link((struct wan_rules){.rate_bps = 8000000, .queue_ns = 100 * MS, .delay_ns = 5 * MS});
	int64_t due[2];
	for (int64_t i = 1; i <= 10; i++) {
		assert_int_equal(wan_link_pass(&link, 0, 1000, due), 1);
		assert_int_equal(due[0], i * MS + 5 * MS);
	}
	assert_int_equal(wan_link_pass(&link, 500 * MS, 1000, due), 1); /* the line has been free for long */
	assert_int_equal(due[0], 506 * MS);
}

static void a_line_that_is_too_busy_drops_the_last(void **state)
{
	(void)state;
	struct wan_rules by_time = {.rate_bps = 8000000, .queue_ns = 3 * MS};
	struct wan_rules by_bytes = {.rate_bps = 8000000, .queue_bytes = 3000};
	struct wan_link links[] = {make_link(by_time), make_link(by_bytes)};
	int64_t due[2];
	for (size_t i = 0; i < 2; i++) {
		for (int frame = 0; frame < 10; frame++) /* one on the line, three that wait */
			assert_int_equal(wan_link_pass(&links[i], 0, 1000, due), frame < 4);
		assert_int_equal(links[i].counts.full, 6);
		assert_int_equal(wan_link_pass(&links[i], 2 * MS, 1000, due), 1); /* and there is room again */
	}
}

static void a_line_without_a_queue_takes_what_finds_it_free(void **state)
{
	(void)state;
	struct wan_link link = make_link((struct wan_rules){.rate_bps = 8000000});
	int64_t due[2];
	assert_int_equal(wan_link_pass(&link, 0, 1000, due), 1);
	assert_int_equal(wan_link_pass(&link, MS / 2, 1000, due), 0);
	assert_int_equal(wan_link_pass(&link, MS, 1000, due), 1);
}

static void a_cut_link_passes_nothing_until_it_is_healed(void **state)
{
	(void)state;
	struct wan_link link = make_link((struct wan_rules){0});
	int64_t due[2];
	wan_link_cut(&link);
	wan_link_cut(&link);
	assert_int_equal(wan_link_pass(&link, 0, 100, due), 0);
	assert_int_equal(link.counts.cut, 1);
	wan_link_heal(&link);
	assert_int_equal(wan_link_pass(&link, 0, 100, due), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_perfect_link_passes_at_once),
		cmocka_unit_test(delay_is_added_to_each_frame),
		cmocka_unit_test(jitter_is_bounded_symmetric_and_bell_shaped),
		cmocka_unit_test(jitter_alone_does_not_reorder),
		cmocka_unit_test(a_share_is_lost_and_the_same_ones_for_the_same_seed),
		cmocka_unit_test(all_or_nothing_is_lost),
		cmocka_unit_test(a_duplicate_arrives_with_the_first),
		cmocka_unit_test(a_frame_that_is_held_back_is_overtaken),
		cmocka_unit_test(a_line_sends_one_frame_after_the_other),
		cmocka_unit_test(a_line_that_is_too_busy_drops_the_last),
		cmocka_unit_test(a_line_without_a_queue_takes_what_finds_it_free),
		cmocka_unit_test(a_cut_link_passes_nothing_until_it_is_healed),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
