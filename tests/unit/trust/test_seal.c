/* Stories of sites that talk: greetings, losses, restarts. What somebody evil does is in test_seal_attack.c. */
#include "seal_world.h"

enum { A, B, C, D };

static int setup(void **state)
{
	*state = world_new();
	return 0;
}

static int teardown(void **state)
{
	world_free(*state);
	return 0;
}

static void assert_quiet(struct world *world)
{
	for (int i = 0; i < NODES; i++) {
		struct trust_seal_counters counters = counted(world, i);
		assert_int_equal(counters.forged, 0);
		assert_int_equal(counters.malformed, 0);
		assert_int_equal(counters.limited, 0);
	}
}

/* ---- Beginning --------------------------------------------------------------------------------------------------- */

static void the_first_datagram_arrives_after_greetings(void **state)
{
	struct world *world = *state;
	meet(world, A, B);
	meet(world, B, A);
	uint32_t first = say(world, A, B), second = say(world, A, B);
	assert_int_equal(in_flight(world), 1); /* the greeting */
	carry_all(world);
	assert_true(arrived(world, first) && arrived(world, second));
	assert_true(world->nodes[B].last_from == id_at(world, A));
	uint32_t back = say(world, B, A); /* no greeting any more, in either direction */
	assert_int_equal(in_flight(world), 1);
	carry_all(world);
	assert_true(arrived(world, back));
	assert_int_equal(counted(world, A).greetings + counted(world, B).greetings, 2);
	assert_true(trust_seal_due(world->nodes[A].seal) != 0);
	assert_quiet(world);
}

static void a_stranger_with_a_good_card_is_let_in(void **state)
{
	struct world *world = *state;
	meet(world, A, B);
	uint32_t message = say(world, A, B);
	carry_all(world);
	assert_true(arrived(world, message));
	assert_int_equal(world->nodes[B].cards, 1);
	assert_int_equal(counted(world, B).strangers, 0);
	message = say(world, B, A);
	carry_all(world);
	assert_true(arrived(world, message));
}

static void both_may_begin_at_once(void **state)
{
	struct world *world = *state;
	meet_all(world);
	uint32_t there = say(world, A, B), back = say(world, B, A);
	carry_all(world);
	assert_true(arrived(world, there) && arrived(world, back));
	struct seal_peer *at_a = peer_at(world, A, B), *at_b = peer_at(world, B, A);
	assert_true(at_a->mine == at_b->theirs && at_a->theirs == at_b->mine);
	assert_quiet(world);
}

static void the_longest_message_fits_into_a_datagram(void **state)
{
	struct world *world = *state;
	char bytes[LIMIT_SITE_MESSAGE_BYTES] = {0};
	meet_all(world);
	world->messages = 1;
	trust_seal_send(world->nodes[A].seal, id_at(world, B), str_make(bytes, sizeof(bytes)), world->now_us);
	carry_all(world);
	assert_int_equal(world->nodes[B].last.length, sizeof(bytes));
}

/* ---- Losses ------------------------------------------------------------------------------------------------------ */

/* Whichever of the first datagrams is lost, all messages arrive within seconds, except what was lost itself. */
static void any_loss_is_made_good(void **state)
{
	struct world *world = *state;
	meet_all(world);
	for (unsigned lost = 0; lost < 64; lost++) {
		restart(world, A);
		restart(world, B);
		uint32_t there = say(world, A, B), back = lost & 32 ? say(world, B, A) : there;
		for (unsigned i = 0; i < 5; i++) {
			if (lost >> i & 1 && in_flight(world) > 0)
				lose_one(world);
			else
				carry_one(world);
		}
		pass(world, 4900000);
		uint32_t again = say(world, A, B);
		uint32_t answer = say(world, B, A);
		pass(world, 4900000);
		assert_true(arrived(world, again) && arrived(world, answer));
		(void)back;
	}
	assert_quiet(world);
}

static void what_waits_too_long_is_dropped(void **state)
{
	struct world *world = *state;
	static const uint64_t greeted_ms[] = {0, 250, 750, 1750, 3750};
	meet_all(world);
	uint64_t began = world->now_us;
	size_t greetings = 0;
	uint32_t messages[5];
	for (int i = 0; i < 5; i++)
		messages[i] = say(world, A, B);
	assert_int_equal(counted(world, A).dropped, 1); /* four wait, the oldest went */
	while (trust_seal_due(world->nodes[A].seal) != UINT64_MAX) {
		while (in_flight(world) > 0) {
			assert_true(greetings < COUNT(greeted_ms) && world->now_us == began + greeted_ms[greetings] * 1000);
			greetings++;
			lose_one(world);
		}
		world->now_us = trust_seal_due(world->nodes[A].seal);
		trust_seal_tick(world->nodes[A].seal, world->now_us);
	}
	assert_int_equal(greetings, COUNT(greeted_ms));
	assert_true(world->now_us == began + 5000000);
	assert_int_equal(counted(world, A).dropped, 5);
	pass(world, 1000000);
	for (int i = 0; i < 5; i++)
		assert_false(arrived(world, messages[i]));
}

static void four_of_many_wait(void **state)
{
	struct world *world = *state;
	uint32_t messages[9];
	meet_all(world);
	for (size_t i = 0; i < COUNT(messages); i++)
		messages[i] = say(world, A, B);
	carry_all(world);
	for (size_t i = 0; i < COUNT(messages); i++)
		assert_int_equal(arrived(world, messages[i]), i >= 5);
	assert_int_equal(counted(world, A).dropped, 5);
}

/* ---- Restarts ---------------------------------------------------------------------------------------------------- */

static void talk(struct world *world, int one, int other)
{
	uint32_t there = say(world, one, other);
	carry_all(world);
	uint32_t back = say(world, other, one);
	carry_all(world);
	assert_true(arrived(world, there) && arrived(world, back));
}

/* The receiver starts again: one datagram is lost, and tells it; after one round trip the next ones arrive. */
static void a_restart_is_noticed_within_a_round_trip(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	restart(world, B);
	uint32_t lost = say(world, A, B);
	assert_true(carry_one(world)); /* it does not open */
	assert_int_equal(in_flight(world), 1);
	assert_true(carry_one(world)); /* the greeting that it caused */
	uint32_t next = say(world, A, B);
	carry_all(world);
	assert_false(arrived(world, lost));
	assert_true(arrived(world, next));
	assert_int_equal(counted(world, B).stale, 1);
	talk(world, B, A);
	assert_quiet(world);
}

static void who_starts_again_may_speak_first(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	restart(world, B);
	uint32_t message = say(world, B, A);
	carry_all(world);
	assert_true(arrived(world, message));
	talk(world, A, B);
	restart(world, A);
	restart(world, B);
	talk(world, A, B);
	assert_quiet(world);
}

/* One that starts again without its table knows nobody; who greets it is let in by his card. */
static void a_table_may_be_lost_as_well(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	restart(world, B);
	unknow(world, B, A);
	int cards = world->nodes[B].cards;
	uint32_t lost = say(world, A, B);
	carry_all(world);
	assert_false(arrived(world, lost));
	assert_int_equal(counted(world, B).strangers, 1);
	say(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[B].cards, cards); /* that may be a lost datagram, or two */
	world->now_us += 5000000;
	say(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[B].cards, cards + 1);
	talk(world, A, B);
}

/* Who never answers is not greeted with every datagram. */
static void greetings_in_vain_are_few(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	size_t sent = 0;
	for (int i = 0; i < 60; i++) {
		say(world, A, B);
		sent += in_flight(world);
		while (in_flight(world) > 0)
			lose_one(world);
		world->now_us += 1000000;
	}
	assert_in_range(sent - 60, 5, 12);
}

/* Late datagrams of the session before neither open nor begin a new one. */
static void late_datagrams_do_not_disturb_a_new_session(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	struct packet late[3];
	for (size_t i = 0; i < COUNT(late); i++) {
		say(world, A, B);
		late[i] = world->queue[world->queue_end - 1];
		world->queue_start = world->queue_end = 0;
	}
	restart(world, B);
	say(world, A, B);
	carry_all(world);
	talk(world, A, B);
	uint64_t session = peer_at(world, B, A)->mine, drawn = world->nodes[A].seal->drawn;
	for (size_t i = 0; i < COUNT(late); i++) {
		world->now_us += 200000;
		give(world, B, A, buf_str(&late[i].bytes));
		carry_all(world);
		buf_free(&late[i].bytes);
	}
	assert_true(peer_at(world, B, A)->mine == session && world->nodes[A].seal->drawn == drawn);
	assert_int_equal(counted(world, B).stale, 4);
	assert_quiet(world);
}

/* ---- Bounds ------------------------------------------------------------------------------------------------------ */

static void the_table_gives_up_whom_it_had_least_to_do_with(void **state)
{
	struct world *world = *state;
	meet_all(world);
	world->nodes[A].seal->peers_most = 2;
	talk(world, A, B);
	talk(world, A, C);
	talk(world, B, A);
	talk(world, A, D);
	assert_null(peer_at(world, A, C));
	assert_non_null(peer_at(world, A, B));
	say(world, C, A); /* it does not know that it was given up: this one is lost, */
	carry_all(world);
	uint32_t next = say(world, C, A); /* but not this one */
	carry_all(world);
	assert_true(arrived(world, next));
	for (int i = 0; i < 20; i++) {
		int other = B + i % 3;
		say(world, other, A);
		carry_all(world);
		talk(world, A, other);
	}
	assert_quiet(world);
}

static void a_counter_that_ends_makes_a_new_session(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	uint64_t session = peer_at(world, A, B)->mine;
	peer_at(world, A, B)->sent = UINT64_MAX - 2;
	peer_at(world, B, A)->window.highest = UINT64_MAX - 2;
	for (int i = 0; i < 5; i++)
		talk(world, A, B);
	assert_true(peer_at(world, A, B)->mine != session);
	assert_int_equal(counted(world, A).dropped, 0);
	assert_quiet(world);
}

static void a_peer_takes_little_memory(void **state)
{
	(void)state;
	assert_true(sizeof(struct seal_peer) <= 352);
}

static void who_is_removed_is_forgotten(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	unknow(world, A, B);
	trust_seal_forget(world->nodes[A].seal, id_at(world, B));
	assert_null(peer_at(world, A, B));
	uint32_t message = say(world, B, A);
	carry_all(world);
	assert_false(arrived(world, message));
	assert_int_equal(counted(world, A).strangers, 1);
	say(world, A, B);
	assert_int_equal(in_flight(world), 0);
	assert_int_equal(counted(world, A).dropped, 1);
	trust_seal_forget(world->nodes[A].seal, id_at(world, B)); /* twice is no harm */

	/* With something waiting. */
	say(world, A, C);
	trust_seal_forget(world->nodes[A].seal, id_at(world, C));
	assert_int_equal(counted(world, A).dropped, 2);
	assert_int_equal(world->nodes[A].seal->queued, 0);
}

/* A certificate ends while there is a session: nobody says so, but it is looked at again soon. */
static void who_expires_is_shut_out(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	unknow(world, A, B);
	talk(world, A, B);
	world->now_us += 5000000;
	uint32_t message = say(world, B, A);
	carry_all(world);
	assert_false(arrived(world, message));
	assert_null(peer_at(world, A, B));
	say(world, A, B);
	assert_int_equal(in_flight(world), 0);
	meet(world, A, B); /* it has a new one */
	world->now_us += 500000;
	say(world, B, A);
	carry_all(world);
	talk(world, A, B);
}

/* ---- All at once ------------------------------------------------------------------------------------------------- */

static void disturb(struct world *world, uint64_t *random)
{
	size_t count = in_flight(world);
	if (count > 1) { /* overtaking */
		struct packet *one = &world->queue[world->queue_start + random_below(random, count)];
		struct packet *other = &world->queue[world->queue_start + random_below(random, count)];
		struct packet swap = *one;
		*one = *other;
		*other = swap;
	}
	if (count > 0 && random_below(random, 5) == 0) { /* one more of the same */
		struct packet *one = &world->queue[world->queue_start + random_below(random, count)];
		struct packet twin = {.from = one->from, .to = one->to};
		buf_put(&twin.bytes, buf_str(&one->bytes));
		assert_true(world->queue_end < PACKETS_MOST);
		world->queue[world->queue_end++] = twin;
	}
	if (in_flight(world) > 0 && random_below(random, 5) == 0)
		lose_one(world);
}

/* Two messages may be lost because an old session ends; the third is heard, though nothing comes back but greetings. */
static void assert_heard(struct world *world, int from, int to)
{
	for (int i = 0; i < 2; i++) {
		say(world, from, to);
		pass(world, 110000);
	}
	uint32_t message = say(world, from, to);
	pass(world, 110000);
	assert_true(arrived(world, message));
}

static void a_bad_network_makes_nothing_come_twice(void **state)
{
	struct world *world = *state;
	world->recording = false;
	meet_all(world);
	for (uint64_t seed = 1; seed <= 60; seed++) {
		uint64_t random = seed * 0x9e3779b97f4a7c15;
		for (int step = 0; step < 300; step++) {
			int from = (int)random_below(&random, NODES), to = (int)random_below(&random, NODES);
			if (from != to && world->messages + 100 < MESSAGES_MOST)
				say(world, from, to); /* host_opened() sees that none is opened twice */
			disturb(world, &random);
			while (random_below(&random, 3) != 0 && carry_one(world))
				;
			if (random_below(&random, 60) == 0)
				restart(world, (int)random_below(&random, NODES));
			world->now_us += random_below(&random, 40000);
		}
		pass(world, 6000000); /* the faults stop */
		for (int i = 0; i < NODES; i++)
			for (int j = 0; j < NODES; j++)
				if (i != j)
					assert_heard(world, i, j);
		uint64_t drawn = 0;
		for (int i = 0; i < NODES; i++)
			drawn += world->nodes[i].seal->drawn;
		assert_true(drawn < 300); /* sessions do not chase each other */
	}
	for (int i = 0; i < NODES; i++) {
		struct trust_seal_counters counters = counted(world, i);
		assert_int_equal(counters.forged, 0);
		assert_true(counters.replayed > 0 && counters.stale > 0 && counters.opened > 1000);
	}
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_first_datagram_arrives_after_greetings),
		TEST(a_stranger_with_a_good_card_is_let_in),
		TEST(both_may_begin_at_once),
		TEST(the_longest_message_fits_into_a_datagram),
		TEST(any_loss_is_made_good),
		TEST(what_waits_too_long_is_dropped),
		TEST(four_of_many_wait),
		TEST(a_restart_is_noticed_within_a_round_trip),
		TEST(who_starts_again_may_speak_first),
		TEST(a_table_may_be_lost_as_well),
		TEST(late_datagrams_do_not_disturb_a_new_session),
		TEST(the_table_gives_up_whom_it_had_least_to_do_with),
		TEST(a_counter_that_ends_makes_a_new_session),
		TEST(greetings_in_vain_are_few),
		TEST(a_peer_takes_little_memory),
		TEST(who_is_removed_is_forgotten),
		TEST(who_expires_is_shut_out),
		TEST(a_bad_network_makes_nothing_come_twice),
	};
	return cmocka_run_group_tests_name("trust seal", tests, NULL, NULL);
}
