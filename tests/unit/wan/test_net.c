#include "wan_test.h"

static void send_mark(struct wan_net *net, int64_t now, unsigned from, unsigned to, unsigned char mark)
{
	unsigned char frame[TEST_FRAME_BYTES];
	test_frame(frame, from, to, mark);
	wan_net_send(net, now, from, frame, sizeof(frame));
}

/* The mark of the next frame, which has to arrive there; -1: none is due. */
static int receive_mark(struct wan_net *net, int64_t now, unsigned to)
{
	const struct wan_frame *frame = wan_net_receive(net, now);
	if (frame == NULL)
		return -1;
	assert_int_equal(frame->to, to);
	assert_int_equal(frame->length, TEST_FRAME_BYTES);
	wan_net_delivered(net, frame, true);
	return frame->bytes[TEST_FRAME_BYTES - 1];
}

static void frames_go_where_their_address_says_each_in_its_time(void **state)
{
	(void)state;
	struct wan_net *net = test_net(3);
	wan_net_link(net, 0, 1)->rules.delay_ns = 20 * MS;
	wan_net_link(net, 0, 2)->rules.delay_ns = 10 * MS;
	wan_net_link(net, 1, 0)->rules.delay_ns = 30 * MS;
	send_mark(net, 0, 0, 1, 'a');
	send_mark(net, 0, 0, 2, 'b');
	send_mark(net, 0, 1, 0, 'c');
	assert_int_equal(wan_net_next_ns(net), 10 * MS);
	assert_int_equal(receive_mark(net, 10 * MS - 1, 2), -1);
	assert_int_equal(receive_mark(net, 10 * MS, 2), 'b');
	assert_int_equal(receive_mark(net, 20 * MS, 1), 'a');
	assert_int_equal(wan_net_link(net, 1, 0)->counts.queued, 1);
	assert_int_equal(receive_mark(net, 30 * MS, 0), 'c');
	assert_int_equal(wan_net_link(net, 1, 0)->counts.queued, 0);
	assert_int_equal(wan_net_link(net, 1, 0)->counts.delivered, 1);
	assert_true(wan_net_next_ns(net) == WAN_NEVER);
	wan_net_free(net);
}

static void frames_for_nobody_are_counted_and_dropped(void **state)
{
	(void)state;
	struct wan_net *net = test_net(2);
	unsigned char frame[WAN_FRAME_BYTES + 1] = {0};
	memset(frame, 0xff, WAN_MAC_BYTES);
	wan_net_send(net, 0, 0, frame, 60);                  /* broadcast */
	send_mark(net, 0, 0, 2, 'a');                        /* no third site */
	send_mark(net, 0, 0, 0, 'a');                        /* to itself */
	wan_net_send(net, 0, 0, frame, 3);                   /* not even a header */
	wan_net_send(net, 0, 0, frame, WAN_FRAME_BYTES + 1); /* too long, and for nobody */
	test_frame(frame, 0, 1, 0);
	wan_net_send(net, 0, 0, frame, WAN_FRAME_BYTES + 1);
	wan_net_send(net, 0, 0, frame, WAN_FRAME_BYTES);
	assert_int_equal(net->strangers, 5);
	assert_int_equal(net->too_long, 2);
	assert_int_equal(wan_queue_count(net->queue), 1);
	wan_net_free(net);
}

static void a_cut_loses_what_is_under_way_even_if_it_is_healed_at_once(void **state)
{
	(void)state;
	struct wan_net *net = test_net(2);
	struct wan_link *link = wan_net_link(net, 0, 1);
	link->rules.delay_ns = 10 * MS;
	send_mark(net, 0, 0, 1, 'a');
	wan_link_cut(link);
	send_mark(net, 1, 0, 1, 'b');
	wan_link_heal(link);
	send_mark(net, 2, 0, 1, 'c');
	assert_int_equal(receive_mark(net, 20 * MS, 1), 'c');
	assert_int_equal(receive_mark(net, 20 * MS, 1), -1);
	assert_int_equal(link->counts.cut, 2);
	assert_int_equal(link->counts.frames, 3);
	wan_net_free(net);
}

static void frames_under_way_are_bounded(void **state)
{
	(void)state;
	struct wan_net *net = test_net(2);
	wan_net_link(net, 0, 1)->rules.delay_ns = 10 * MS;
	for (int i = 0; i < WAN_FRAMES_MAX + 5; i++)
		send_mark(net, 0, 0, 1, 'a');
	assert_int_equal(wan_net_link(net, 0, 1)->counts.overflow, 5);
	assert_int_equal(wan_net_link(net, 0, 1)->counts.queued, WAN_FRAMES_MAX);
	wan_net_free(net);
}

static void what_the_device_does_not_take_is_counted(void **state)
{
	(void)state;
	struct wan_net *net = test_net(2);
	send_mark(net, 0, 0, 1, 'a');
	wan_net_delivered(net, wan_net_receive(net, 0), false);
	assert_int_equal(wan_net_link(net, 0, 1)->counts.refused, 1);
	assert_int_equal(wan_net_link(net, 0, 1)->counts.delivered, 0);
	wan_net_free(net);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_go_where_their_address_says_each_in_its_time),
		cmocka_unit_test(frames_for_nobody_are_counted_and_dropped),
		cmocka_unit_test(a_cut_loses_what_is_under_way_even_if_it_is_healed_at_once),
		cmocka_unit_test(frames_under_way_are_bounded),
		cmocka_unit_test(what_the_device_does_not_take_is_counted),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
