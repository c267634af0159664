#include "wan_test.h"

static const char *run(struct wan_net *net, struct buf *out, const char *line)
{
	buf_clear(out);
	wan_control_run(net, str_of(line), out);
	return buf_c(out);
}

static void set_changes_what_it_names_and_nothing_else(void **state)
{
	(void)state;
	struct wan_net *net = test_net(3);
	struct buf out = {0};
	assert_string_equal(run(net, &out, "set Site1>Site2 delay=10ms loss=7%"), "ok\n");
	assert_string_equal(run(net, &out, "set Site1<>Site2 jitter=1ms"), "ok\n");
	assert_string_equal(run(net, &out, "show Site1<>Site2"),
	                    "Site1>Site2 delay=10ms jitter=1ms loss=7% duplicate=0% reorder=0% reorder_by=10ms "
	                    "rate=unlimited queue=100ms cut=no\n"
	                    "Site2>Site1 delay=0ms jitter=1ms loss=0% duplicate=0% reorder=0% reorder_by=10ms "
	                    "rate=unlimited queue=100ms cut=no\n"
	                    "ok\n");
	assert_int_equal(wan_net_link(net, 0, 2)->rules.jitter_ns, 0);
	buf_free(&out);
	wan_net_free(net);
}

static void a_star_is_every_site(void **state)
{
	(void)state;
	struct wan_net *net = test_net(3);
	struct buf out = {0};
	assert_string_equal(run(net, &out, "cut *>Site2"), "ok\n");
	assert_true(wan_net_link(net, 0, 1)->cut && wan_net_link(net, 2, 1)->cut);
	assert_false(wan_net_link(net, 1, 0)->cut || wan_net_link(net, 0, 2)->cut);
	assert_string_equal(run(net, &out, "cut Site2<>*"), "ok\n");
	assert_true(wan_net_link(net, 1, 0)->cut && wan_net_link(net, 1, 2)->cut);
	assert_false(wan_net_link(net, 0, 2)->cut);
	assert_string_equal(run(net, &out, "heal *<>*"), "ok\n");
	for (unsigned i = 0; i < 9; i++)
		assert_false(net->links[i].cut);
	buf_free(&out);
	wan_net_free(net);
}

static void stats_and_sites(void **state)
{
	(void)state;
	struct wan_net *net = test_net(2);
	struct buf out = {0};
	unsigned char frame[TEST_FRAME_BYTES];
	test_frame(frame, 0, 1, 0);
	wan_net_send(net, 0, 0, frame, sizeof(frame));
	assert_string_equal(
		run(net, &out, "stats Site1>Site2"),
		"Site1>Site2 frames=1 bytes=15 delivered=0 lost=0 full=0 cut=0 duplicated=0 reordered=0 overflow=0 "
		"refused=0 queued=1\nok\n");
	assert_non_null(strstr(run(net, &out, "stats"), "switch queued=1 strangers=0 too_long=0\nok\n"));
	assert_string_equal(run(net, &out, "sites"), "Site1\nSite2\nok\n");
	buf_free(&out);
	wan_net_free(net);
}

static void what_is_wrong_is_told_with_what_would_be_right(void **state)
{
	(void)state;
	static const struct {
		const char *line, *part;
	} cases[] = {
		{"", "write a command"},
		{"   ", "write a command"},
		{"shwo", "did you mean `show`?"},
		{"set", "Site1<>Site2 for both"},
		{"set Site1<>Site2", "delay=10ms"},
		{"set Site1 delay=1ms", "`Site1` is no pair"},
		{"set Site1<>Site2 delay", "`delay` has no value"},
		{"set Site1<>Site2 dealy=1ms", "did you mean `delay`?"},
		{"set Site1<>Site2 delay=10", "delay: `10` is not a duration"},
		{"set Site1<>Site2 loss=7", "loss: `7` is not a share"},
		{"set Site1<>Site2 rate=", "rate: `` is not a rate"},
		{"set Site1<>Site22 delay=1ms", "did you mean `Site2`?"},
		{"set <>Site2 delay=1ms", "no site ``"},
		{"set > delay=1ms", "no site ``"},
		{"cut Site1>Site1", "there is no network between it and itself"},
		{"cut", "cut needs a pair"},
		{"cut Site1>Site2 now", "`now` is too much"},
		{"sites all", "sites takes nothing"},
		{"set Site1<>Site2 a b c d e f g h i j k l m n o", "more than 16 words"},
		{"sh\x1bow", "control characters"},
	};
	struct wan_net *net = test_net(2);
	struct buf out = {0};
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *answer = run(net, &out, cases[i].line);
		assert_int_equal(strncmp(answer, "error: ", 7), 0);
		assert_true(strchr(answer, '\n') == answer + out.length - 1);
		if (strstr(answer, cases[i].part) == NULL)
			fail_msg("'%s' gave %s", cases[i].line, answer);
	}
	buf_free(&out);
	wan_net_free(net);
}

static void what_is_refused_changes_nothing(void **state)
{
	(void)state;
	struct wan_net *net = test_net(2);
	struct buf out = {0};
	run(net, &out, "set Site1<>Site2 delay=10ms loss=nonsense");
	assert_int_equal(wan_net_link(net, 0, 1)->rules.delay_ns, 0);
	buf_free(&out);
	wan_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_changes_what_it_names_and_nothing_else),
		cmocka_unit_test(a_star_is_every_site),
		cmocka_unit_test(stats_and_sites),
		cmocka_unit_test(what_is_wrong_is_told_with_what_would_be_right),
		cmocka_unit_test(what_is_refused_changes_nothing),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
