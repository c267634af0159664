/* Who is there: stories of a few sites. */
#include "site_test.h"

/* ---- Coming and going ----------------------------------------------------------------------------------------------- */

static void who_joins_one_is_known_to_all(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	for (uint32_t i = 0; i < 5; i++) {
		assert_int_equal(site_count(world->nodes[i].site), 5);
		assert_int_equal(world->nodes[i].events[SITE_EVENT_JOINED], 4);
		assert_int_equal(site_find_name(world->nodes[i].site, STR("Site0")),
		                 site_find(world->nodes[i].site, world_id(0)));
	}
	struct site_member self;
	site_member(world->nodes[3].site, 0, &self);
	assert_int_equal(self.id, world_id(3));
	assert_int_equal(self.rtt_us, 0);
	world_free(world);
}

static void one_site_alone_is_content(void **state)
{
	(void)state;
	struct world *world = world_new(1);
	world_start(world, 0);
	world_run(world, 60 * (uint64_t)SECOND_US);
	assert_int_equal(site_counters(world->nodes[0].site)->sent, 0);
	assert_int_equal(site_health(world->nodes[0].site), 0);
	world_free(world);
}

static bool site_3_is_lost(struct world *world)
{
	return world_all_see(world, 3, SITE_LOST);
}

static void who_crashes_is_suspected_then_lost_then_back(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	world_run(world, 20 * (uint64_t)SECOND_US);
	int64_t crashed_ms = world->now.wall_ms;
	world_crash(world, 3);
	assert_true(world_until(world, site_3_is_lost, 10));
	assert_int_equal(world->nodes[0].events[SITE_EVENT_SUSPECT], 1);
	assert_int_equal(world->nodes[0].events[SITE_EVENT_LOST], 1);
	struct site_member member;
	site_member(world->nodes[0].site, site_find(world->nodes[0].site, world_id(3)), &member);
	assert_in_range(member.since_ms, crashed_ms, crashed_ms + 6000); /* when it stopped to answer */
	/* It starts again with its key alone: one entry is enough. */
	world_start(world, 3);
	world_introduce(world, 3, 1);
	assert_true(world_until(world, world_agrees, 5));
	assert_int_equal(world->nodes[0].events[SITE_EVENT_ALIVE], 1);
	world_free(world);
}

static bool site_1_has_left(struct world *world)
{
	return world_all_see(world, 1, SITE_LEFT);
}

static void who_leaves_has_left_and_is_not_missed(void **state)
{
	(void)state;
	struct world *world = world_of(4);
	site_leave(world->nodes[1].site, world->now);
	assert_true(world_until(world, site_1_has_left, 3));
	uint64_t sent = site_counters(world->nodes[1].site)->sent;
	world_run(world, 30 * (uint64_t)SECOND_US);
	assert_true(site_1_has_left(world));
	assert_int_equal(world->nodes[0].events[SITE_EVENT_SUSPECT], 0);
	assert_int_equal(site_counters(world->nodes[1].site)->sent, sent); /* afterwards nothing more is sent */
	assert_true(site_due(world->nodes[1].site) == UINT64_MAX);
	/* It thinks better of it. */
	world_set_card(world, 1);
	assert_true(world_until(world, world_agrees, 5));
	world_free(world);
}

static void a_changed_card_is_known_to_all(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	world_set_card(world, 2);
	world_run(world, 2 * (uint64_t)SECOND_US);
	for (uint32_t i = 0; i < 5; i++) {
		struct site_member member;
		site_member(world->nodes[i].site, site_find(world->nodes[i].site, world_id(2)), &member);
		assert_int_equal(member.card.version, world->nodes[2].version);
		assert_int_equal(world->nodes[i].events[SITE_EVENT_CARD], i == 2 ? 0 : 1);
	}
	world_free(world);
}

/* ---- What does not happen ------------------------------------------------------------------------------------------- */

static void a_detour_saves_whom_one_does_not_reach(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	world_run(world, 20 * (uint64_t)SECOND_US);
	world_cut(world, 0, 4, true); /* these two alone */
	world_run(world, 120 * (uint64_t)SECOND_US);
	assert_true(world_agrees(world));
	for (uint32_t i = 0; i < 5; i++)
		assert_int_equal(world->nodes[i].events[SITE_EVENT_LOST], 0);
	world_free(world);
}

static void loss_alone_makes_nobody_lost(void **state)
{
	(void)state;
	struct world *world = world_of(8);
	world->loss = 0.05;
	world_run(world, 600 * (uint64_t)SECOND_US);
	for (uint32_t i = 0; i < 8; i++)
		assert_int_equal(world->nodes[i].events[SITE_EVENT_LOST], 0);
	world_free(world);
}

/* A round trip of two seconds and seven of a hundred datagrams lost. */
static void a_satellite_link_does_not_flap(void **state)
{
	(void)state;
	struct world *world = world_of(6);
	for (uint32_t i = 0; i < 5; i++)
		world->one_way_us[i][5] = world->one_way_us[5][i] = SECOND_US;
	world_run(world, 60 * (uint64_t)SECOND_US);
	for (uint32_t i = 0; i < 6; i++)
		world->nodes[i].events[SITE_EVENT_LOST] = 0;
	world->loss = 0.07;
	world_run(world, 900 * (uint64_t)SECOND_US);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(world->nodes[i].events[SITE_EVENT_LOST], 0);
	struct site_member member;
	site_member(world->nodes[0].site, site_find(world->nodes[0].site, world_id(5)), &member);
	assert_in_range(member.rtt_us, 1900000, 2100000);
	world_free(world);
}

/* What had to wait for keys says nothing of the way: a message to a site is timed only if it left at once. */
static void a_message_that_waited_measures_nothing(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_start(world, 0);
	world_start(world, 1);
	world_introduce(world, 0, 1);
	struct site *site = world->nodes[0].site;
	struct site_member member;
	for (int i = 0; i < 100; i++) {
		world_run(world, 20000);
		site_delayed(site, world_id(1));
	}
	assert_true(site_counters(site)->probes > 2);
	site_member(site, site_find(site, world_id(1)), &member);
	assert_int_equal(member.state, SITE_ALIVE);
	assert_true(member.rtt_us == SCOPE_RTT_UNKNOWN);
	world_run(world, 2 * (uint64_t)SECOND_US);
	site_member(site, site_find(site, world_id(1)), &member);
	assert_true(member.rtt_us > 0);
	world_free(world);
}

static void who_slept_blames_nobody(void **state)
{
	(void)state;
	struct world *world = world_of(4);
	world_run(world, 10 * (uint64_t)SECOND_US);
	struct site *sleeper = world->nodes[2].site;
	world->nodes[2].site = NULL;
	world_run(world, 3 * (uint64_t)SECOND_US);
	world->nodes[2].site = sleeper;
	world_run(world, 20 * (uint64_t)SECOND_US);
	assert_true(world_agrees(world));
	assert_int_equal(world->nodes[2].events[SITE_EVENT_LOST], 0);
	world_free(world);
}

static void a_denial_is_in_time(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	world_run(world, 10 * (uint64_t)SECOND_US);
	/* Site0 says ill of Site3, which is well. */
	struct site *liar = world->nodes[0].site;
	struct status status = member_status(liar, site_find(liar, world_id(3)));
	liar->now = world->now;
	status.state = SITE_LOST;
	member_hear(liar, &status, world_id(0));
	world_run(world, 2 * (uint64_t)SECOND_US);
	assert_true(world_agrees(world));
	assert_in_range(site_counters(world->nodes[3].site)->refutations, 1, 3);
	world_free(world);
}

/* ---- Partitions ------------------------------------------------------------------------------------------------------ */

static void split(struct world *world, uint32_t at, bool cut)
{
	for (uint32_t i = 0; i < at; i++)
		for (uint32_t j = at; j < world->count; j++)
			world_cut(world, i, j, cut);
}

static bool halves_are_lost(struct world *world)
{
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t j = 3; j < 6; j++)
			if (world_state(world, i, j) != SITE_LOST || world_state(world, j, i) != SITE_LOST)
				return false;
	return true;
}

static void a_partition_heals_by_itself(void **state)
{
	(void)state;
	struct world *world = world_of(6);
	world_run(world, 10 * (uint64_t)SECOND_US);
	split(world, 3, true);
	assert_true(world_until(world, halves_are_lost, 30));
	world_run(world, 60 * (uint64_t)SECOND_US);
	assert_int_equal(world_state(world, 0, 1), SITE_ALIVE); /* each half is fine */
	assert_int_equal(world_state(world, 3, 5), SITE_ALIVE);
	split(world, 3, false);
	assert_true(world_until(world, world_agrees, 10));
	world_free(world);
}

static bool site_0_is_alone(struct world *world)
{
	for (uint32_t i = 1; i < world->count; i++)
		if (world_state(world, 0, i) != SITE_LOST)
			return false;
	return true;
}

static void who_is_cut_off_finds_back_alone(void **state)
{
	(void)state;
	struct world *world = world_of(4);
	split(world, 1, true);
	assert_true(world_until(world, site_0_is_alone, 30));
	split(world, 1, false);
	assert_true(world_until(world, world_agrees, 5));
	world_free(world);
}

/* ---- Incarnations ---------------------------------------------------------------------------------------------------- */

static uint32_t incarnation(struct world *world, uint32_t at, uint32_t of)
{
	struct site_member member;
	site_member(world->nodes[at].site, site_find(world->nodes[at].site, world_id(of)), &member);
	return member.incarnation;
}

static void hear(struct world *world, uint32_t at, uint32_t of, uint32_t number, enum site_state state)
{
	struct status status = {.id = world_id(of), .incarnation = number, .state = (uint8_t)state, .card_version = 1};
	world->nodes[at].site->now = world->now;
	member_hear(world->nodes[at].site, &status, world_id(at));
}

/* Whoever says what in whichever order: one end. */
static void of_two_sayings_the_later_or_worse_counts(void **state)
{
	(void)state;
	static const struct {
		uint32_t incarnation;
		enum site_state state;
		enum site_state then; /* what is believed of it */
	} sayings[] = {
		{5, SITE_ALIVE, SITE_ALIVE},  {5, SITE_SUSPECT, SITE_SUSPECT}, {5, SITE_ALIVE, SITE_SUSPECT},
		{6, SITE_ALIVE, SITE_ALIVE},  {5, SITE_LEFT, SITE_ALIVE},      {6, SITE_LOST, SITE_LOST},
		{6, SITE_SUSPECT, SITE_LOST}, {6, SITE_LEFT, SITE_LEFT},       {6, SITE_LOST, SITE_LEFT},
		{7, SITE_ALIVE, SITE_ALIVE},  {8, SITE_SUSPECT, SITE_SUSPECT}, {9, SITE_LOST, SITE_LOST},
		{9, SITE_ALIVE, SITE_LOST},   {10, SITE_ALIVE, SITE_ALIVE},    {UINT32_MAX, SITE_LOST, SITE_ALIVE},
		{11, SITE_LEFT, SITE_LEFT},   {12, SITE_ALIVE, SITE_ALIVE},
	};
	struct world *world = world_new(2);
	world_start(world, 0);
	world_introduce(world, 0, 1);
	for (size_t i = 0; i < COUNT(sayings); i++) {
		hear(world, 0, 1, sayings[i].incarnation, sayings[i].state);
		assert_int_equal(world_state(world, 0, 1), sayings[i].then);
	}
	world_free(world);
}

/* Half a network says so after a partition, of one that we hear all the time: it denies before anybody takes it for lost. */
static void who_was_heard_since_it_was_suspected_is_not_lost(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct site *at = world->nodes[0].site;
	struct member *member = &at->members[table_find(at, world_id(2))];
	struct {
		int64_t ago_ms;
		bool since_start;
		enum site_state state;
	} cases[] = {
		{0, true, SITE_SUSPECT}, {1999, true, SITE_SUSPECT},
		{2000, true, SITE_LOST}, {-1, true, SITE_LOST}, /* the clock went back */
		{0, false, SITE_LOST},                          /* it says so in the file */
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		world_run(world, 10 * (uint64_t)SECOND_US);
		assert_true(world_until(world, world_agrees, 10));
		uint32_t lost = world->nodes[0].lost_of[2];
		member->heard_ms = world->now.wall_ms - cases[i].ago_ms;
		member->flags = cases[i].since_start ? member->flags | MEMBER_HEARD : member->flags & (uint8_t)~MEMBER_HEARD;
		at->now = world->now;
		hear(world, 0, 2, member->incarnation, SITE_LOST);
		assert_int_equal(member->state, cases[i].state);
		assert_true(world_until(world, world_agrees, 10));
		assert_int_equal(world->nodes[0].lost_of[2] - lost, cases[i].state == SITE_LOST);
	}
	world_free(world);
}

static void incarnations_wrap_around(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	uint32_t first = incarnation(world, 0, 0);
	for (uint32_t round = 1; round < 40; round++) {
		uint32_t far = incarnation(world, 0, 0) + (1 << 27);
		hear(world, 1, 0, far, SITE_LOST);
		world_run(world, 3 * (uint64_t)SECOND_US);
		assert_true(world_agrees(world));
		assert_int_equal(incarnation(world, 0, 0), (uint32_t)(first + round * ((1 << 27) + 1)));
		assert_int_equal(incarnation(world, 1, 0), incarnation(world, 0, 0));
	}
	world_free(world);
}

/* Wherever a liar puts its number, a site is heard again. */
static void nobody_is_silenced_by_a_number(void **state)
{
	(void)state;
	struct world *world = world_of(4);
	for (uint32_t bit = 0; bit < 32; bit++) {
		for (uint32_t minus = 0; minus < 2; minus++) {
			uint32_t number = incarnation(world, 0, 0) + (UINT32_C(1) << bit) - minus;
			hear(world, 0, 0, number, SITE_LOST);
			hear(world, 1, 0, number, SITE_ALIVE);
			hear(world, 2, 0, number, SITE_SUSPECT);
			hear(world, 3, 0, number, SITE_LEFT);
			world_run(world, 4 * (uint64_t)SECOND_US);
			assert_true(world_agrees(world));
			for (uint32_t i = 1; i < 4; i++)
				assert_int_equal(incarnation(world, i, 0), incarnation(world, 0, 0));
		}
	}
	world_free(world);
}

static void who_starts_with_an_old_number_takes_a_new_one(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	hear(world, 1, 1, 1000, SITE_SUSPECT);
	world_run(world, 3 * (uint64_t)SECOND_US);
	assert_int_equal(incarnation(world, 0, 1), 1001);
	world_crash(world, 1);
	world_start(world, 1);
	world_introduce(world, 1, 2);
	world_run(world, 5 * (uint64_t)SECOND_US);
	assert_true(world_agrees(world));
	assert_in_range(incarnation(world, 0, 1), 1002, 1010);
	assert_int_equal(world->nodes[0].events[SITE_EVENT_LOST], 0);
	world_free(world);
}

/* ---- Old entries ------------------------------------------------------------------------------------------------------ */

static bool site_1_is_forgotten(struct world *world)
{
	return world_all_see(world, 1, SITE_STATES);
}

/* ---- Knocking ------------------------------------------------------------------------------------------------------- */

static int knock(struct world *world, uint32_t at, uint32_t whom)
{
	struct buf card = {0};
	world_card(world, whom, &card);
	int code = site_knock(world->nodes[at].site, buf_str(&card), world->now, NULL);
	buf_free(&card);
	return code;
}

/* It stopped, and what it knew is gone or of no use: nobody probes it, and it knows nobody. Its card alone brings it back. */
static void who_left_and_knows_nobody_is_asked_back_in(void **state)
{
	(void)state;
	struct world *world = world_of(4);
	site_leave(world->nodes[3].site, world->now);
	world_run(world, SECOND_US);
	assert_true(world_all_see(world, 3, SITE_LEFT));
	world_crash(world, 3);
	world_start(world, 3);
	world_run(world, 30 * (uint64_t)SECOND_US);
	assert_true(world_all_see(world, 3, SITE_LEFT));
	assert_ok(knock(world, 1, 3));
	assert_true(world_until(world, world_agrees, 5));
	world_free(world);
}

/* All have another address, and none has heard of another's. */
static void all_have_moved(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 3; k++)
			world_cut(world, i, k, true);
	for (uint32_t i = 0; i < 3; i++) {
		world->nodes[i].moves++;
		world_set_card(world, i);
	}
	world_run(world, 60 * (uint64_t)SECOND_US);
	for (uint32_t i = 0; i < 3; i++)
		for (uint32_t k = 0; k < 3; k++)
			world_cut(world, i, k, false);
	world_run(world, 60 * (uint64_t)SECOND_US);
	assert_true(world_all_see(world, 0, SITE_LOST));
	assert_true(site_is_alone(world->nodes[0].site));
	struct site_address there = {.family = 4, .ip = {10, 1, 0, 1}, .port = 7000};
	assert_false(site_is_met_at(world->nodes[0].site, &there));
	assert_ok(knock(world, 1, 0)); /* site 0 was told where the two others are */
	assert_ok(knock(world, 2, 0));
	assert_true(world_until(world, world_agrees, 5));
	assert_true(site_is_met_at(world->nodes[0].site, &there));
	assert_false(site_is_alone(world->nodes[0].site));
	world_free(world);
}

/* Whoever has seen a card can repeat it. */
static void a_card_that_is_repeated_moves_little(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	world_run(world, 10 * (uint64_t)SECOND_US);
	struct site *at = world->nodes[0].site;
	uint64_t epoch = site_epoch(at);
	for (int i = 0; i < 100; i++)
		assert_ok(knock(world, 0, 1));
	assert_int_equal(at->hastened_count, 0); /* it is there */
	assert_int_equal(site_epoch(at), epoch);
	world_crash(world, 1);
	world_run(world, 20 * (uint64_t)SECOND_US);
	assert_int_equal(world_state(world, 0, 1), SITE_LOST);
	uint64_t probes = site_counters(at)->probes;
	for (int i = 0; i < 1000; i++) {
		assert_ok(knock(world, 0, 1));
		world_run(world, SECOND_US / 100);
	}
	assert_int_equal(world_state(world, 0, 1), SITE_LOST);
	assert_in_range(site_counters(at)->probes - probes, 25, 75); /* two in a period, at the most */
	world_free(world);
}

static void what_knocks_has_to_be_a_good_card(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct buf record = {0};
	world_removal(world, 2, SITE_REVOKE, 1, SIGNED, &record);
	assert_int_equal(site_knock(world->nodes[0].site, buf_str(&record), world->now, NULL), ERR_INVALID);
	assert_int_equal(site_knock(world->nodes[0].site, STR("x"), world->now, NULL), ERR_VERSION);
	assert_ok(world_add(world, 0, &record));
	world->nodes[2].version++;
	assert_int_equal(knock(world, 0, 2), ERR_CONFLICT);
	assert_ok(knock(world, 0, 0)); /* its own: that is nobody else */
	world_crash(world, 1);
	world_make(world, 1);
	assert_ok(knock(world, 1, 1)); /* also before it has said anything */
	assert_int_equal(world->nodes[0].site->hastened_count, 0);
	world->nodes[1].version++;
	buf_clear(&record);
	world_card(world, 1, &record);
	memcpy(record.at + record.length - FORGED.length, FORGED.at, FORGED.length);
	assert_int_equal(site_knock(world->nodes[0].site, buf_str(&record), world->now, NULL), ERR_INVALID);
	assert_int_equal(world->nodes[0].site->hastened_count, 0);
	world_free(world);
	buf_free(&record);
}

static void who_is_lost_for_long_is_dropped_where_that_is_set(void **state)
{
	(void)state;
	struct world *world = world_new(3);
	world->timing.forget_us = 60 * (uint64_t)SECOND_US;
	world_start_some(world, 3);
	assert_true(world_until(world, world_agrees, 10));
	world_crash(world, 1);
	world_run(world, 40 * (uint64_t)SECOND_US);
	assert_true(world_all_see(world, 1, SITE_LOST));
	assert_true(world_until(world, site_1_is_forgotten, 60));
	world_run(world, 120 * (uint64_t)SECOND_US); /* nor do the others bring it back */
	assert_true(site_1_is_forgotten(world));
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_joins_one_is_known_to_all),
		cmocka_unit_test(one_site_alone_is_content),
		cmocka_unit_test(who_crashes_is_suspected_then_lost_then_back),
		cmocka_unit_test(who_leaves_has_left_and_is_not_missed),
		cmocka_unit_test(a_changed_card_is_known_to_all),
		cmocka_unit_test(a_detour_saves_whom_one_does_not_reach),
		cmocka_unit_test(loss_alone_makes_nobody_lost),
		cmocka_unit_test(a_satellite_link_does_not_flap),
		cmocka_unit_test(a_message_that_waited_measures_nothing),
		cmocka_unit_test(who_slept_blames_nobody),
		cmocka_unit_test(a_denial_is_in_time),
		cmocka_unit_test(a_partition_heals_by_itself),
		cmocka_unit_test(who_is_cut_off_finds_back_alone),
		cmocka_unit_test(of_two_sayings_the_later_or_worse_counts),
		cmocka_unit_test(who_was_heard_since_it_was_suspected_is_not_lost),
		cmocka_unit_test(incarnations_wrap_around),
		cmocka_unit_test(who_left_and_knows_nobody_is_asked_back_in),
		cmocka_unit_test(all_have_moved),
		cmocka_unit_test(a_card_that_is_repeated_moves_little),
		cmocka_unit_test(what_knocks_has_to_be_a_good_card),
		cmocka_unit_test(nobody_is_silenced_by_a_number),
		cmocka_unit_test(who_starts_with_an_old_number_takes_a_new_one),
		cmocka_unit_test(who_is_lost_for_long_is_dropped_where_that_is_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
