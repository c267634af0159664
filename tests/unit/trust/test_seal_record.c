/* Records that are not sealed: a card for who cannot be greeted, and the word to a site that was shut out. */
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

static void knock(struct world *world, int from, int to)
{
	struct site_address address = address_at(to);
	trust_seal_knock(world->nodes[from].seal, &address, world->now_us);
}

/* `at` has shut `whom` out, by a record that `signer` signed. */
static void shut_out(struct world *world, int at, int whom, const struct holder *signer)
{
	struct node *node = &world->nodes[at];
	struct site_removal removal = {
		.kind = SITE_REVOKE, .name = STR("Alma"), .signer = id_of(&world->root), .wall_ms = NOW_MS};
	struct buf body = {0}, signature = {0};
	site_removal_encode(&body, &removal);
	buf_clear(&node->removal);
	site_record_begin(&node->removal, SITE_REMOVAL, id_at(world, whom), 1, buf_str(&body));
	trust_sign(signer->key, buf_str(&node->removal), &signature);
	site_record_finish(&node->removal, buf_str(&signature));
	node->removed = id_at(world, whom);
	unknow(world, at, whom);
	trust_seal_forget(node->seal, node->removed);
	buf_free(&body);
	buf_free(&signature);
}

/* A knows an address only, or a certificate that has ended: it gets to know B by what B does then. */
static void who_cannot_be_greeted_is_shown_our_card(void **state)
{
	struct world *world = *state;
	knock(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[B].cards, 1);
	assert_int_equal(counted(world, B).strangers, 0);
	assert_null(peer_at(world, A, B));
	uint32_t message = say(world, B, A); /* it greets, with its card */
	carry_all(world);
	assert_true(arrived(world, message));
	message = say(world, A, B);
	carry_all(world);
	assert_true(arrived(world, message));
}

static void a_card_that_is_not_taken_is_a_strangers(void **state)
{
	struct world *world = *state;
	struct node *a = &world->nodes[A];
	a->card.at[a->card.length - 1] ^= 1;
	trust_seal_set_card(a->seal, buf_str(&a->card));
	knock(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[B].cards, 1);
	assert_int_equal(counted(world, B).strangers, 1);
	assert_int_equal(in_flight(world), 0); /* nor is it answered */
	trust_seal_set_card(a->seal, STR(""));
	knock(world, A, B);
	assert_int_equal(in_flight(world), 0);
}

static void cards_for_all_to_read_are_limited_at_both_ends(void **state)
{
	struct world *world = *state;
	for (int i = 0; i < 1000; i++)
		knock(world, A, B);
	assert_in_range(in_flight(world), 10, 30);
	carry_all(world);
	for (int i = 0; i < 1000; i++) {
		unsigned char bytes[LIMIT_SITE_DATAGRAM_BYTES];
		size_t length = seal_record_write(buf_str(&world->nodes[A].card), bytes);
		give(world, B, A, str_make((char *)bytes, length));
	}
	assert_in_range(world->nodes[B].cards, 50, 150);
	assert_true(counted(world, B).limited > 800);
}

static void who_was_shut_out_is_told(void **state)
{
	struct world *world = *state;
	meet_all(world);
	say(world, A, B);
	carry_all(world);
	shut_out(world, B, A, &world->root);
	/* By what it sends in the session that it still has, if that is long enough, or by the greeting that comes after it. */
	uint64_t strangers = counted(world, B).strangers;
	for (int i = 0; i < 4; i++) {
		uint32_t message = say(world, A, B);
		pass(world, 2000000);
		assert_false(arrived(world, message));
	}
	assert_true(world->nodes[A].outcast >= 1);
	assert_true(counted(world, B).strangers > strangers);
	/* By a greeting, and by its card. */
	restart(world, A);
	world->nodes[A].outcast = 0;
	say(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[A].outcast, 1);
	knock(world, A, B);
	carry_all(world);
	assert_int_equal(world->nodes[A].outcast, 2);
	assert_int_equal(world->nodes[B].opened, 1);
}

static void no_answer_is_longer_than_what_caused_it(void **state)
{
	struct world *world = *state;
	meet_all(world);
	shut_out(world, B, A, &world->root);
	trust_seal_set_card(world->nodes[A].seal, STR(""));
	say(world, A, B); /* a greeting without a card has 50 bytes */
	carry_all(world);
	assert_int_equal(world->nodes[A].outcast, 0);
	assert_int_equal(counted(world, B).strangers, 1);
	for (size_t i = 0; i < world->tape_end; i++)
		assert_int_equal(world->tape[i].from, A);
}

static void words_to_those_who_were_shut_out_are_limited(void **state)
{
	struct world *world = *state;
	shut_out(world, B, A, &world->root);
	unsigned char bytes[LIMIT_SITE_DATAGRAM_BYTES];
	size_t length = seal_record_write(buf_str(&world->nodes[A].card), bytes);
	for (int i = 0; i < 1000; i++)
		give(world, B, A, str_make((char *)bytes, length));
	assert_in_range(in_flight(world), 10, 30);
	assert_int_equal(world->nodes[B].cards, 0); /* nor is the card looked at */
}

/* Who was away while one root replaced another is told of the new one: by its record, which the old one signed. */
static void a_root_is_handed_on_to_be_checked(void **state)
{
	struct world *world = *state;
	struct buf body = {0}, record = {0}, signature = {0};
	unsigned char bytes[LIMIT_SITE_DATAGRAM_BYTES];
	struct site_root root = {.trusted = true, .certificate = buf_str(&world->root.der), .signer = id_of(&world->root)};
	site_root_encode(&body, &root);
	site_record_begin(&record, SITE_ROOT, id_of(&world->root), 1, buf_str(&body));
	trust_sign(world->root.key, buf_str(&record), &signature);
	site_record_finish(&record, buf_str(&signature));
	size_t length = seal_record_write(buf_str(&record), bytes);
	give(world, A, B, str_make((char *)bytes, length));
	assert_int_equal(world->nodes[A].outcast, 1); /* a good record that is no card */
	bytes[length - 1] ^= 1;
	give(world, A, B, str_make((char *)bytes, length));
	assert_int_equal(world->nodes[A].outcast, 1);
	assert_int_equal(counted(world, A).malformed, 0);
	buf_free(&body);
	buf_free(&record);
	buf_free(&signature);
}

/* Only the authority can say so, and only of who gets it. */
static void nobody_else_can_shut_a_site_out(void **state)
{
	struct world *world = *state;
	unsigned char bytes[LIMIT_SITE_DATAGRAM_BYTES];
	struct buf *removal = &world->nodes[B].removal;
	shut_out(world, B, A, &world->nodes[B].holder);
	size_t length = seal_record_write(buf_str(removal), bytes);
	give(world, A, B, str_make((char *)bytes, length));
	assert_int_equal(world->nodes[A].outcast, 0);
	shut_out(world, B, A, &world->root);
	length = seal_record_write(buf_str(removal), bytes);
	give(world, C, B, str_make((char *)bytes, length));
	assert_int_equal(world->nodes[C].outcast, 0);
	assert_int_equal(counted(world, C).malformed, 1);
	for (size_t cut = 0; cut < length; cut++)
		give(world, A, B, str_make((char *)bytes, cut));
	assert_int_equal(world->nodes[A].outcast, 0);
	assert_int_equal(counted(world, A).malformed, length);
	give(world, A, B, str_make((char *)bytes, length));
	assert_int_equal(world->nodes[A].outcast, 1);
	/* Its own card, sent back to it. */
	length = seal_record_write(buf_str(&world->nodes[A].card), bytes);
	give(world, A, B, str_make((char *)bytes, length));
	assert_int_equal(world->nodes[A].cards, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(who_cannot_be_greeted_is_shown_our_card),
		TEST(a_card_that_is_not_taken_is_a_strangers),
		TEST(cards_for_all_to_read_are_limited_at_both_ends),
		TEST(who_was_shut_out_is_told),
		TEST(no_answer_is_longer_than_what_caused_it),
		TEST(words_to_those_who_were_shut_out_are_limited),
		TEST(a_root_is_handed_on_to_be_checked),
		TEST(nobody_else_can_shut_a_site_out),
	};
	return cmocka_run_group_tests_name("trust seal record", tests, NULL, NULL);
}
