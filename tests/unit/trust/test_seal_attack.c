/* What somebody on the network can do to sealed datagrams: repeat, change, make up, flood. */
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

static void talk(struct world *world, int one, int other)
{
	uint32_t there = say(world, one, other);
	carry_all(world);
	uint32_t back = say(world, other, one);
	carry_all(world);
	assert_true(arrived(world, there) && arrived(world, back));
}

static uint64_t opened_by_all(struct world *world)
{
	uint64_t sum = 0;
	for (int i = 0; i < NODES; i++)
		sum += world->nodes[i].opened;
	return sum;
}

static uint64_t noticed_by(struct world *world, int node)
{
	struct trust_seal_counters counters = counted(world, node);
	return counters.replayed + counters.stale + counters.greetings + counters.forged + counters.strangers +
	       counters.malformed + counters.limited;
}

static void empty(struct world *world)
{
	while (in_flight(world) > 0)
		lose_one(world);
}

/* ---- Repeating --------------------------------------------------------------------------------------------------- */

/* The number of the session that two sites have; 0: they do not agree on one. */
static uint64_t session_of(struct world *world, int one, int other)
{
	struct seal_peer *here = peer_at(world, one, other), *there = peer_at(world, other, one);
	bool agree = here && there && here->mine == there->theirs && here->theirs == there->mine;
	return agree ? here->mine : 0;
}

/* All that was ever sent, once more, to whom it was for. Each is counted, none opens, none causes a session. */
static void replay_all(struct world *world)
{
	uint64_t opened = opened_by_all(world);
	world->recording = false;
	for (size_t i = 0; i < world->tape_end; i++) {
		const struct packet *packet = &world->tape[i];
		uint64_t noticed = noticed_by(world, packet->to), drawn = world->nodes[packet->to].seal->drawn;
		uint64_t session = session_of(world, packet->to, packet->from);
		give(world, packet->to, packet->from, buf_str(&packet->bytes));
		assert_true(noticed_by(world, packet->to) > noticed);
		assert_true(world->nodes[packet->to].seal->drawn <=
		            drawn + 1);             /* a peer that was not known since the restart */
		assert_true(in_flight(world) <= 1); /* at most one answer, */
		if (in_flight(world) == 1)
			assert_true(world->queue[world->queue_start].bytes.length <= packet->bytes.length);
		carry_all(world); /* which leads to nothing more */
		assert_true(session == 0 || session_of(world, packet->to, packet->from) == session);
		world->now_us += 1000;
	}
	world->recording = true;
	assert_true(opened_by_all(world) == opened);
}

static void nothing_that_is_repeated_opens(void **state)
{
	struct world *world = *state;
	meet_all(world);
	for (int round = 0; round < 8; round++) {
		talk(world, A, B);
		replay_all(world);
		talk(world, B, A);
		talk(world, A, C);
		replay_all(world);
		restart(world, round % 2 ? A : B);
		replay_all(world);
		say(world, A, B); /* the session may be over: this one may get lost */
		carry_all(world);
		talk(world, A, B);
		if (round == 3)
			trust_seal_forget(world->nodes[A].seal, id_at(world, B));
	}
	for (int i = A; i <= C; i++)
		assert_int_equal(counted(world, i).forged, 0);
	assert_true(counted(world, A).replayed > 0 && counted(world, B).stale > 0);
}

static void what_was_given_up_does_not_open_again(void **state)
{
	struct world *world = *state;
	meet_all(world);
	world->nodes[A].seal->peers_most = 1;
	for (int round = 0; round < 5; round++) {
		for (int other = B; other <= D; other++) {
			say(world, other, A);
			carry_all(world);
			talk(world, A, other);
			world->now_us += 200000;
		}
		uint64_t opened = opened_by_all(world);
		world->recording = false;
		for (size_t i = 0; i < world->tape_end; i++) {
			give(world, world->tape[i].to, world->tape[i].from, buf_str(&world->tape[i].bytes));
			carry_all(world);
			world->now_us += 1000;
		}
		world->recording = true;
		assert_true(opened_by_all(world) == opened);
	}
}

/* Kept back, then let through when its session is over. */
static void what_was_kept_back_does_not_open_after_a_restart(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	uint32_t kept = say(world, A, B);
	struct packet packet = world->queue[--world->queue_end];
	restart(world, B);
	give(world, B, A, buf_str(&packet.bytes));
	carry_all(world);
	talk(world, A, B);
	give(world, B, A, buf_str(&packet.bytes));
	carry_all(world);
	assert_false(arrived(world, kept));
	buf_free(&packet.bytes);
}

/* ---- Changing ---------------------------------------------------------------------------------------------------- */

/* Each bit of a datagram that waits to be delivered at `to`: changed, it must not work; unchanged it still does. */
static void change_each_bit(struct world *world, int from, int to, struct packet *packet)
{
	uint64_t opened = opened_by_all(world);
	world->recording = false;
	for (size_t at = 0; at < packet->bytes.length; at++) {
		for (int bit = 0; bit < 8; bit++) {
			struct seal_peer *peer = peer_at(world, to, from);
			uint64_t session = peer ? peer->mine : 0, noticed = noticed_by(world, to);
			packet->bytes.at[at] = (char)(packet->bytes.at[at] ^ 1 << bit);
			give(world, to, from, buf_str(&packet->bytes));
			packet->bytes.at[at] = (char)(packet->bytes.at[at] ^ 1 << bit);
			peer = peer_at(world, to, from);
			assert_true((peer ? peer->mine : 0) == session);
			assert_true(noticed_by(world, to) > noticed);
			empty(world);
		}
	}
	for (size_t cut = 0; cut < packet->bytes.length; cut++) {
		give(world, to, from, str_make(packet->bytes.at, cut));
		empty(world);
	}
	world->recording = true;
	assert_true(opened_by_all(world) == opened);
}

static void no_bit_can_be_changed(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	uint32_t message = say(world, A, B);
	struct packet packet = world->queue[--world->queue_end];
	change_each_bit(world, A, B, &packet);
	give(world, B, A, buf_str(&packet.bytes));
	assert_true(arrived(world, message));
	buf_free(&packet.bytes);

	/* The first one of a session, whose keys are derived on arrival. */
	restart(world, B);
	restart(world, A);
	message = say(world, A, B);
	carry_one(world);
	carry_one(world);
	packet = world->queue[--world->queue_end];
	change_each_bit(world, A, B, &packet);
	give(world, B, A, buf_str(&packet.bytes));
	assert_true(arrived(world, message));
	buf_free(&packet.bytes);
}

static void no_bit_of_a_greeting_can_be_changed(void **state)
{
	struct world *world = *state;
	meet_all(world);
	uint32_t message = say(world, A, B);
	struct packet greeting = world->queue[--world->queue_end];
	change_each_bit(world, A, B, &greeting);
	assert_int_equal(counted(world, B).opened, 0);
	give(world, B, A, buf_str(&greeting.bytes));
	struct packet answer = world->queue[--world->queue_end];
	change_each_bit(world, B, A, &answer);
	assert_int_equal(peer_at(world, A, B)->mine, 0);
	give(world, A, B, buf_str(&answer.bytes));
	carry_all(world);
	assert_true(arrived(world, message));
	buf_free(&greeting.bytes);
	buf_free(&answer.bytes);
}

/* ---- Making up --------------------------------------------------------------------------------------------------- */

/* C has a good certificate and shares a secret with B. It cannot speak for A. */
static void nobody_greets_for_another(void **state)
{
	struct world *world = *state;
	unsigned char out[LIMIT_SITE_DATAGRAM_BYTES];
	meet_all(world);
	talk(world, A, B);
	talk(world, C, B);
	uint64_t session = peer_at(world, B, A)->mine;
	struct seal_peer *secret = peer_at(world, C, B);
	const uint64_t echoes[] = {0, peer_at(world, B, A)->offer, peer_at(world, B, A)->mine};
	for (size_t i = 0; i < COUNT(echoes) * 2; i++) {
		struct seal_greeting forged = {.kind = i % 2 ? SEAL_LOST : SEAL_GREETING,
		                               .from = id_at(world, A),
		                               .to = id_at(world, B),
		                               .number = 666,
		                               .echo = echoes[i / 2]};
		size_t length = seal_greeting_write(&world->nodes[C].seal->crypto, secret->secret, &forged, STR(""), out);
		give(world, B, C, str_make((char *)out, length));
		assert_int_equal(in_flight(world), 0);
	}
	assert_int_equal(counted(world, B).forged, 6);

	/* And no datagram: with its own keys, or with the numbers of the others' session. */
	struct seal_data data = {.from = id_at(world, A),
	                         .to_number = peer_at(world, B, A)->mine,
	                         .from_number = peer_at(world, B, A)->theirs,
	                         .next_number = 1,
	                         .counter = 1000};
	unsigned char key[SEAL_KEY_BYTES];
	seal_data_key(&world->nodes[C].seal->crypto, secret->secret, id_at(world, B), &data, key);
	size_t length = seal_data_write(&world->nodes[C].seal->crypto, key, &data, STR("evil"), out);
	give(world, B, C, str_make((char *)out, length));
	data.to_number = peer_at(world, B, A)->offer;
	seal_data_key(&world->nodes[C].seal->crypto, secret->secret, id_at(world, B), &data, key);
	length = seal_data_write(&world->nodes[C].seal->crypto, key, &data, STR("evil"), out);
	give(world, B, C, str_make((char *)out, length));
	assert_int_equal(counted(world, B).forged, 8);
	assert_true(peer_at(world, B, A)->mine == session);
	talk(world, A, B);
}

/* Its own datagrams and those for others come back to it: not ours. */
static void what_is_for_others_is_not_taken(void **state)
{
	struct world *world = *state;
	meet_all(world);
	talk(world, A, B);
	talk(world, A, C);
	say(world, A, B);
	struct packet packet = world->queue[--world->queue_end];
	give(world, A, B, buf_str(&packet.bytes));
	assert_int_equal(counted(world, A).malformed, 1);
	give(world, C, A, buf_str(&packet.bytes)); /* no such session there */
	assert_int_equal(counted(world, C).stale, 1);
	carry_all(world);
	buf_free(&packet.bytes);
	trust_seal_forget(world->nodes[A].seal, id_at(world, B));
	say(world, A, B);
	packet = world->queue[--world->queue_end];
	give(world, C, A, buf_str(&packet.bytes));
	assert_int_equal(counted(world, C).malformed, 1);
	buf_free(&packet.bytes);
	talk(world, A, C);
}

/* A host that is wrong about a key is not believed: the id has to be that of the certificate's key. */
static void an_id_with_another_key_is_a_stranger(void **state)
{
	struct world *world = *state;
	know(&world->nodes[A], id_at(world, B), buf_str(&world->nodes[C].holder.der));
	say(world, A, B);
	assert_int_equal(in_flight(world), 0);
	assert_int_equal(counted(world, A).dropped, 1);
	meet(world, B, A);
	say(world, B, A);
	carry_all(world);
	assert_int_equal(counted(world, A).strangers, 1);
	know(&world->nodes[A], id_at(world, D), buf_str(&world->root.der)); /* nor is a root a site */
	say(world, A, D);
	assert_int_equal(in_flight(world), 0);
	know(&world->nodes[C], id_at(world, D), STR("nonsense"));
	say(world, C, D);
	assert_int_equal(in_flight(world), 0);
}

static void a_bad_card_lets_nobody_in(void **state)
{
	struct world *world = *state;
	meet_all(world);
	unknow(world, B, A);
	struct node *a = &world->nodes[A];

	/* Somebody else's card. */
	trust_seal_set_card(a->seal, buf_str(&world->nodes[C].card));
	say(world, A, B);
	carry_all(world);
	assert_int_equal(counted(world, B).malformed, 1);

	/* One that was changed. */
	a->card.at[a->card.length - 1] ^= 1;
	trust_seal_forget(a->seal, id_at(world, B));
	trust_seal_set_card(a->seal, buf_str(&a->card));
	say(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[B].cards, 1);
	assert_int_equal(counted(world, B).strangers, 1);

	/* None. */
	trust_seal_set_card(a->seal, STR(""));
	trust_seal_forget(a->seal, id_at(world, B));
	say(world, A, B);
	carry_all(world);
	assert_int_equal(counted(world, B).strangers, 2);
	assert_int_equal(counted(world, B).opened, 0);
}

static void noise_is_counted(void **state)
{
	struct world *world = *state;
	uint64_t random = 1;
	meet_all(world);
	for (int i = 0; i < 2000; i++) {
		char bytes[LIMIT_SITE_DATAGRAM_BYTES + 100];
		size_t length = random_below(&random, sizeof(bytes));
		for (size_t at = 0; at < length; at++)
			bytes[at] = (char)random_next(&random);
		if (i % 2 && length > 10) { /* as far as it can be guessed */
			bytes[0] = (char)SEAL_MARK;
			bytes[1] = (char)(1 + i % 3);
			trust_put_u64((unsigned char *)bytes + 2, id_at(world, B));
		}
		uint64_t noticed = noticed_by(world, A);
		give(world, A, B, str_make(bytes, length));
		assert_true(noticed_by(world, A) > noticed);
	}
	empty(world);
	assert_int_equal(counted(world, A).opened, 0);
}

/* ---- Flooding ---------------------------------------------------------------------------------------------------- */

static void answers_to_greetings_are_limited(void **state)
{
	struct world *world = *state;
	meet_all(world);
	say(world, A, B);
	struct packet greeting = world->queue[--world->queue_end];
	for (int i = 0; i < 1000; i++)
		give(world, B, C, buf_str(&greeting.bytes)); /* from an address of his choice */
	assert_true(in_flight(world) >= 1 && in_flight(world) <= 21);
	for (size_t i = 0; i < in_flight(world); i++)
		assert_true(world->queue[world->queue_start + i].bytes.length <= greeting.bytes.length);
	assert_int_equal(counted(world, B).limited + in_flight(world), 1000);
	empty(world);
	world->now_us += 1000000;
	give(world, B, A, buf_str(&greeting.bytes)); /* later it is answered again */
	carry_all(world);
	assert_int_equal(counted(world, B).opened, 1);
	buf_free(&greeting.bytes);
}

static void cards_of_strangers_are_limited(void **state)
{
	struct world *world = *state;
	meet(world, A, B);
	world->nodes[A].card.at[world->nodes[A].card.length - 1] ^= 1;
	trust_seal_set_card(world->nodes[A].seal, buf_str(&world->nodes[A].card));
	say(world, A, B);
	struct packet greeting = world->queue[--world->queue_end];
	for (int i = 0; i < 1000; i++)
		give(world, B, A, buf_str(&greeting.bytes));
	assert_true(world->nodes[B].cards <= 101);
	assert_int_equal(counted(world, B).limited + (uint64_t)world->nodes[B].cards, 1000);
	assert_int_equal(in_flight(world), 0);
	meet(world, C, B); /* a good one gets through when that is over */
	world->now_us += 100000;
	uint32_t message = say(world, C, B);
	carry_all(world);
	assert_true(arrived(world, message));
	buf_free(&greeting.bytes);
}

/* A site whose certificate has ended takes the host long to refuse: who claims to be it does not make it do so often. */
static void who_was_refused_is_not_looked_at_again(void **state)
{
	struct world *world = *state;
	unsigned char out[LIMIT_SITE_DATAGRAM_BYTES], key[SEAL_KEY_BYTES] = {1};
	struct seal_data data = {.from = id_at(world, A), .to_number = 1, .from_number = 2, .next_number = 3, .counter = 4};
	size_t length = seal_data_write(&world->nodes[C].seal->crypto, key, &data, STR("evil"), out);
	for (int i = 0; i < 1000; i++)
		give(world, B, C, str_make((char *)out, length));
	assert_int_equal(counted(world, B).strangers, 1000);
	assert_int_equal(world->nodes[B].asked, 1);
	meet(world, A, B); /* but its card lets it in at once */
	uint32_t message = say(world, A, B);
	carry_all(world);
	assert_true(arrived(world, message));
}

/* Somebody who knows only the ids sends datagrams in the name of A, before and after B starts again: A's own ones get
 * through nevertheless, because what B says goes to A. */
static void made_up_datagrams_do_not_keep_others_out(void **state)
{
	struct world *world = *state;
	unsigned char out[LIMIT_SITE_DATAGRAM_BYTES], key[SEAL_KEY_BYTES] = {1};
	struct seal_data data = {.from = id_at(world, A), .to_number = 1, .from_number = 2, .next_number = 3, .counter = 4};
	size_t length = seal_data_write(&world->nodes[C].seal->crypto, key, &data, STR("evil"), out);
	meet_all(world);
	talk(world, A, B);
	restart(world, B);
	for (int i = 0; i < 1000; i++) {
		give(world, B, C, str_make((char *)out, length));
		if (i % 100 == 50)
			say(world, A, B);
		for (size_t k = 0; k < in_flight(world); k++)
			assert_true(world->queue[world->queue_start + k].to != C);
		carry_all(world);
		world->now_us += 1000;
	}
	assert_true(counted(world, B).opened >= 9);
	assert_true(counted(world, A).greetings <= 20);
}

static void the_window_agrees_with_a_simple_one(void **state)
{
	(void)state;
	static bool seen[40000];
	struct seal_window window = {0};
	uint64_t random = 7, highest = 0;
	memset(seen, 0, sizeof(seen));
	for (int i = 0; i < 200000; i++) {
		uint64_t at = highest, counter;
		switch (random_below(&random, 8)) {
		case 0: counter = 1 + random_below(&random, 39000); break;
		case 1: counter = at + random_below(&random, 2100); break;
		default: counter = at + 3 - random_below(&random, at > 1300 ? 1300 : at + 3); break;
		}
		if (counter == 0 || counter >= COUNT(seen) || (counter > at + 5 && random_below(&random, 200) != 0))
			continue;
		bool fresh = counter > at || (at - counter < SEAL_WINDOW_BITS && !seen[counter]);
		assert_int_equal(seal_window_fresh(&window, counter), fresh);
		if (!fresh)
			continue;
		seal_window_mark(&window, counter);
		seen[counter] = true;
		highest = counter > highest ? counter : highest;
	}
	assert_true(highest > 30000);
	window = (struct seal_window){.highest = UINT64_MAX - 1};
	assert_true(seal_window_fresh(&window, UINT64_MAX));
	seal_window_mark(&window, UINT64_MAX);
	assert_false(seal_window_fresh(&window, UINT64_MAX));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(nothing_that_is_repeated_opens),
		TEST(what_was_given_up_does_not_open_again),
		TEST(what_was_kept_back_does_not_open_after_a_restart),
		TEST(no_bit_can_be_changed),
		TEST(no_bit_of_a_greeting_can_be_changed),
		TEST(nobody_greets_for_another),
		TEST(what_is_for_others_is_not_taken),
		TEST(an_id_with_another_key_is_a_stranger),
		TEST(a_bad_card_lets_nobody_in),
		TEST(noise_is_counted),
		TEST(answers_to_greetings_are_limited),
		TEST(cards_of_strangers_are_limited),
		TEST(who_was_refused_is_not_looked_at_again),
		TEST(made_up_datagrams_do_not_keep_others_out),
		cmocka_unit_test(the_window_agrees_with_a_simple_one),
	};
	return cmocka_run_group_tests_name("trust seal attack", tests, NULL, NULL);
}
