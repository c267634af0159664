/* Records of the authority, and names that two keys claim. */
#include "site_test.h"

static void add(struct world *world, uint32_t at, const struct buf *record)
{
	assert_ok(world_add(world, at, record));
}

/* ---- Removals ------------------------------------------------------------------------------------------------------- */

static void who_is_revoked_is_shut_out_everywhere_at_once(void **state)
{
	(void)state;
	struct world *world = world_of(6);
	struct buf record = {0};
	world_removal(world, 4, SITE_REVOKE, 1, SIGNED, &record);
	add(world, 0, &record);
	world_run(world, 15000); /* the way there: nobody had time to pass it on */
	for (uint32_t i = 0; i < 6; i++) {
		if (i == 4)
			continue;
		assert_int_equal(world_state(world, i, 4), SITE_REVOKED);
		assert_true(site_is_removed(world->nodes[i].site, world_id(4)));
		assert_int_equal(world->nodes[i].events[SITE_EVENT_REVOKED], 1);
	}
	/* It hears why, and falls silent. */
	assert_int_equal(world->nodes[4].events[SITE_EVENT_OUTCAST], 1);
	assert_non_null(strstr(world->nodes[4].outcast, "revoked"));
	assert_true(site_due(world->nodes[4].site) == UINT64_MAX);
	for (uint32_t i = 0; i < 6; i++)
		world->nodes[i].sent_to[4] = 0;
	world_run(world, 60 * (uint64_t)SECOND_US);
	for (uint32_t i = 0; i < 6; i++)
		assert_int_equal(world->nodes[i].sent_to[4], 0); /* it is never probed */
	struct site_member member;
	uint32_t number = site_find_name(world->nodes[0].site, STR("Site4"));
	site_member(world->nodes[0].site, number, &member);
	assert_int_equal(member.id, world_id(4)); /* it is still shown */
	world_free(world);
	buf_free(&record);
}

static void who_is_revoked_is_not_heard(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct buf record = {0};
	world_removal(world, 2, SITE_REVOKE, 1, SIGNED, &record);
	world_cut(world, 0, 2, true); /* so that it does not hear of it, */
	world_cut(world, 1, 2, true);
	add(world, 0, &record);
	world_run(world, SECOND_US);
	world_cut(world, 0, 2, false); /* and goes on talking */
	world_cut(world, 1, 2, false);
	uint32_t epoch = (uint32_t)site_epoch(world->nodes[0].site);
	world_run(world, 60 * (uint64_t)SECOND_US);
	assert_int_equal(world_state(world, 0, 2), SITE_REVOKED);
	assert_int_equal(site_epoch(world->nodes[0].site), epoch);
	assert_int_equal(world_state(world, 2, 0), SITE_LOST);
	assert_int_equal(world_state(world, 0, 1), SITE_ALIVE); /* nor is what it says of others */
	/* Its card does not bring it back. */
	struct buf card = {0};
	world->nodes[2].version++;
	world_card(world, 2, &card);
	assert_int_equal(world_add(world, 0, &card), ERR_CONFLICT);
	world_free(world);
	buf_free(&record);
	buf_free(&card);
}

static void a_forged_removal_removes_nobody(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct buf record = {0};
	world_removal(world, 2, SITE_REVOKE, 1, FORGED, &record);
	assert_int_equal(world_add(world, 0, &record), ERR_INVALID);
	assert_int_equal(site_counters(world->nodes[0].site)->refused_records, 1);
	assert_true(world_agrees(world));
	assert_false(site_is_removed(world->nodes[0].site, world_id(2)));
	world_free(world);
	buf_free(&record);
}

static bool site_2_is_forgotten(struct world *world)
{
	for (uint32_t i = 0; i < world->count; i++)
		if (world->nodes[i].site && (site_find(world->nodes[i].site, world_id(2)) != SCOPE_NO_INDEX ||
		                             !site_is_removed(world->nodes[i].site, world_id(2))))
			return false;
	return true;
}

static void who_is_forgotten_frees_its_name(void **state)
{
	(void)state;
	struct world *world = world_new(5);
	world_start_some(world, 4);
	assert_true(world_until(world, world_agrees, 10));
	world_crash(world, 2);
	struct buf record = {0};
	world_removal(world, 2, SITE_FORGET, 1, SIGNED, &record);
	add(world, 3, &record);
	world_run(world, SECOND_US);
	assert_true(site_2_is_forgotten(world));
	assert_int_equal(site_find_name(world->nodes[0].site, STR("Site2")), SCOPE_NO_INDEX);
	assert_int_equal(world->nodes[0].events[SITE_EVENT_REMOVED], 1);
	/* A younger site with another key takes it. */
	snprintf(world->nodes[4].name, sizeof(world->nodes[4].name), "Site2");
	world_start(world, 4);
	world_introduce(world, 4, 1);
	assert_true(world_until(world, world_agrees, 10));
	assert_int_equal(site_find_name(world->nodes[0].site, STR("Site2")), site_find(world->nodes[0].site, world_id(4)));
	assert_int_equal(site_counters(world->nodes[0].site)->conflicts, 0);
	world_free(world);
	buf_free(&record);
}

static void a_removal_signed_anew_is_no_news_to_people(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct buf record = {0};
	for (uint64_t version = 1; version < 4; version++) {
		buf_clear(&record);
		world_removal(world, 2, SITE_REVOKE, version, SIGNED, &record);
		add(world, 0, &record);
		world_run(world, SECOND_US);
	}
	assert_int_equal(world->nodes[1].events[SITE_EVENT_REVOKED], 1);
	assert_int_equal(world->nodes[2].events[SITE_EVENT_OUTCAST], 1);
	struct site_record kept;
	assert_true(site_record_at(world->nodes[1].site, SITE_REMOVAL, 0, &kept));
	assert_int_equal(kept.version, 3);
	assert_false(site_record_at(world->nodes[1].site, SITE_REMOVAL, 1, &kept));
	/* From revoked to forgotten: that is. */
	buf_clear(&record);
	world_removal(world, 2, SITE_FORGET, 4, SIGNED, &record);
	add(world, 0, &record);
	world_run(world, SECOND_US);
	assert_int_equal(world->nodes[1].events[SITE_EVENT_REMOVED], 1);
	world_free(world);
	buf_free(&record);
}

/* One that is new goes to all at once; one that says the same again takes its turn, or a new root would flood a large mesh. */
static void only_what_changes_something_goes_to_all_at_once(void **state)
{
	(void)state;
	struct world *world = world_of(8);
	struct node *authority = &world->nodes[0];
	struct buf record = {0};
	for (uint64_t version = 1; version < 4; version++) {
		uint64_t before = site_counters(authority->site)->sent;
		buf_clear(&record);
		world_removal(world, 2, version < 3 ? SITE_REVOKE : SITE_FORGET, version, SIGNED, &record);
		add(world, 0, &record);
		uint64_t sent = site_counters(authority->site)->sent - before;
		assert_int_equal(sent, version == 1 ? 7 : version == 2 ? 0 : 6);
		world_run(world, 3 * (uint64_t)SECOND_US);
		struct site_record kept;
		for (uint32_t i = 0; i < 8; i++)
			assert_true(i == 2 ||
			            (site_removal_of(world->nodes[i].site, world_id(2), &kept) && kept.version == version));
	}
	world_free(world);
	buf_free(&record);
}

/* It knows from its table: it does not begin again, and says why. */
static void who_was_removed_stays_silent_after_a_restart(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct node *out = &world->nodes[2];
	struct buf record = {0}, stored = {0};
	world_removal(world, 2, SITE_FORGET, 1, SIGNED, &record);
	add(world, 0, &record);
	world_run(world, SECOND_US);
	assert_int_equal(out->events[SITE_EVENT_OUTCAST], 1);
	site_dump(out->site, &stored);
	world_crash(world, 2);
	world_make(world, 2);
	assert_ok(site_load(out->site, buf_str(&stored), world->now, NULL));
	uint32_t sent = out->sent_to[0] + out->sent_to[1];
	world_set_card(world, 2);
	assert_int_equal(out->events[SITE_EVENT_OUTCAST], 2);
	assert_non_null(strstr(out->outcast, "removed"));
	world_run(world, 60 * (uint64_t)SECOND_US);
	assert_int_equal(out->sent_to[0] + out->sent_to[1], sent);
	assert_true(site_due(out->site) == UINT64_MAX);
	world_free(world);
	buf_free(&record);
	buf_free(&stored);
}

static bool site_1_is_revoked_everywhere(struct world *world)
{
	return world_all_see(world, 1, SITE_REVOKED);
}

static void who_comes_later_learns_of_removals(void **state)
{
	(void)state;
	struct world *world = world_new(4);
	world_start_some(world, 3);
	assert_true(world_until(world, world_agrees, 10));
	struct buf record = {0};
	world_removal(world, 1, SITE_REVOKE, 1, SIGNED, &record);
	add(world, 0, &record);
	world_run(world, SECOND_US);
	world_crash(world, 1);
	world_start(world, 3);
	world_introduce(world, 3, 2);
	assert_true(world_until(world, site_1_is_revoked_everywhere, 10));
	struct site_member member;
	site_member(world->nodes[3].site, site_find(world->nodes[3].site, world_id(1)), &member);
	assert_true(str_equal(member.name, STR("Site1"))); /* it never had its card */
	assert_int_equal(member.card.bytes.length, 0);
	world_free(world);
	buf_free(&record);
}

static void roots_spread(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	struct buf record = {0};
	world_root(0x5001, 1, SIGNED, &record);
	add(world, 2, &record);
	world_run(world, SECOND_US);
	for (uint32_t i = 0; i < 5; i++) {
		struct site_record kept;
		assert_int_equal(world->nodes[i].events[SITE_EVENT_ROOT], 1);
		assert_true(site_record_at(world->nodes[i].site, SITE_ROOT, 0, &kept));
		assert_int_equal(kept.subject, 0x5001);
	}
	for (uint32_t i = 1; i <= LIMIT_SITE_ROOTS; i++) {
		buf_clear(&record);
		world_root(0x5001 + i, 1, SIGNED, &record);
		assert_int_equal(world_add(world, 2, &record), i < LIMIT_SITE_ROOTS ? 0 : ERR_LIMIT);
	}
	world_free(world);
	buf_free(&record);
}

/* ---- Names ---------------------------------------------------------------------------------------------------------- */

/* Sites 0 to 2, then one that claims the name of Site1 and was made at another time. */
static struct world *claim(int64_t born_ms)
{
	struct world *world = world_new(4);
	world_start_some(world, 3);
	assert_true(world_until(world, world_agrees, 10));
	snprintf(world->nodes[3].name, sizeof(world->nodes[3].name), "Site1");
	world->nodes[3].born_ms = born_ms;
	world_start(world, 3);
	world_introduce(world, 3, 0);
	world_run(world, 10 * (uint64_t)SECOND_US);
	return world;
}

static void a_younger_claimant_is_refused_at_both_ends(void **state)
{
	(void)state;
	struct world *world = claim(999999);
	for (uint32_t i = 0; i < 3; i++) {
		assert_int_equal(world_state(world, i, 3), SITE_STATES);
		assert_true(i == 1 || world_state(world, i, 1) == SITE_ALIVE);
		assert_int_equal(site_find_name(world->nodes[i].site, STR("Site1")),
		                 site_find(world->nodes[i].site, world_id(1)));
	}
	assert_int_equal(world->nodes[0].events[SITE_EVENT_CONFLICT], 1); /* once, however often it asks */
	assert_int_equal(site_counters(world->nodes[0].site)->conflicts, 1);
	assert_true(world->nodes[3].events[SITE_EVENT_OUTCAST] >= 1);
	assert_non_null(strstr(world->nodes[3].outcast, "Site1"));
	struct site_record card;
	assert_true(site_claimant(world->nodes[0].site, world_id(3), &card));
	assert_int_equal(card.subject, world_id(3));
	assert_false(site_claimant(world->nodes[0].site, world_id(1), &card));
	/* The name becomes free: it is let in. */
	struct buf record = {0};
	world_removal(world, 1, SITE_FORGET, 1, SIGNED, &record);
	add(world, 0, &record);
	world_crash(world, 1);
	assert_true(world_until(world, world_agrees, 30));
	world_free(world);
	buf_free(&record);
}

static void an_elder_claimant_takes_its_name(void **state)
{
	(void)state;
	struct world *world = claim(1);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(i == 1 ? SITE_ALIVE : world_state(world, i, 3), SITE_ALIVE);
	assert_int_equal(world_state(world, 0, 1), SITE_STATES);
	assert_int_equal(world_state(world, 2, 1), SITE_STATES);
	assert_true(world->nodes[1].events[SITE_EVENT_OUTCAST] >= 1);
	world_free(world);
}

static void a_card_with_a_name_that_is_taken_cannot_be_set(void **state)
{
	(void)state;
	struct world *world = world_of(2);
	struct buf record = {0};
	struct err err = {0};
	snprintf(world->nodes[1].name, sizeof(world->nodes[1].name), "Site0");
	world->nodes[1].version++;
	world_card(world, 1, &record);
	assert_int_equal(site_set_card(world->nodes[1].site, buf_str(&record), world->now, &err), ERR_CONFLICT);
	assert_non_null(strstr(err.text, "Site0"));
	world_free(world);
	buf_free(&record);
}

/* The first card of a site that knows the elder one already, by its table or from the join: it runs all the same. */
static void who_knows_an_elder_one_of_its_name_starts_and_says_so(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct node *late = &world->nodes[2];
	world_crash(world, 2);
	snprintf(late->name, sizeof(late->name), "Site1");
	world_make(world, 2);
	world_introduce(world, 2, 0);
	world_introduce(world, 2, 1);
	world_set_card(world, 2);
	assert_int_equal(late->events[SITE_EVENT_OUTCAST], 1);
	assert_non_null(strstr(late->outcast, "Site1"));
	assert_int_equal(site_find_name(late->site, STR("Site1")), 0);
	assert_int_equal(world_state(world, 2, 1), SITE_STATES);
	world_run(world, 30 * (uint64_t)SECOND_US);
	assert_int_equal(world_state(world, 0, 1), SITE_ALIVE);
	assert_int_equal(site_find_name(world->nodes[0].site, STR("Site1")), site_find(world->nodes[0].site, world_id(1)));
	world_free(world);
}

/* ---- Names of those who were revoked ------------------------------------------------------------------------------- */

/* Site2 is revoked, or was by then; site 3 has its name, and was made some time before or after that. Whichever is heard of first,
 * all come to the same end. */
static void the_name_of_a_revoked_site_is_taken_until_it_is_removed(void **state)
{
	(void)state;
	struct {
		bool claimed_first;
		int64_t made_after_ms;
		bool let_in;
	} cases[] = {{false, 1000, false}, {true, 1000, false}, {false, -1000, true}, {true, -1000, true}};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct world *world = world_new(4);
		struct buf record = {0};
		for (uint32_t n = 0; n < 2; n++)
			world_start(world, n);
		world_introduce(world, 1, 0);
		assert_true(world_until(world, world_agrees, 10));
		world_removal(world, 2, SITE_REVOKE, 1, SIGNED, &record);
		snprintf(world->nodes[3].name, sizeof(world->nodes[3].name), "Site2");
		world->nodes[3].born_ms = world->now.wall_ms + cases[i].made_after_ms;
		if (!cases[i].claimed_first)
			add(world, 0, &record);
		world_start(world, 3);
		world_introduce(world, 3, 0);
		world_run(world, 3 * (uint64_t)SECOND_US);
		if (cases[i].claimed_first)
			assert_int_equal(world_state(world, 1, 3), SITE_ALIVE);
		if (cases[i].claimed_first)
			add(world, 0, &record);
		world_run(world, 20 * (uint64_t)SECOND_US);
		for (uint32_t n = 0; n < 2; n++) {
			assert_int_equal(world_state(world, n, 2), SITE_REVOKED);
			assert_int_equal(world_state(world, n, 3), cases[i].let_in ? SITE_ALIVE : SITE_STATES);
		}
		assert_int_equal(world->nodes[3].events[SITE_EVENT_OUTCAST] > 0, !cases[i].let_in);
		assert_true(cases[i].let_in ||
		            strstr(world->nodes[3].outcast, "was revoked, and keeps it until it is removed"));
		/* Then the name is free. */
		buf_clear(&record);
		world_removal(world, 2, SITE_FORGET, 2, SIGNED, &record);
		add(world, 0, &record);
		assert_true(world_until(world, world_agrees, 60));
		world_free(world);
		buf_free(&record);
	}
}

/* ---- Cards ---------------------------------------------------------------------------------------------------------- */

static void a_forged_card_changes_nothing(void **state)
{
	(void)state;
	struct world *world = world_of(3);
	struct buf record = {0};
	world->nodes[2].version += 5;
	world_card(world, 2, &record);
	memcpy(record.at + record.length - FORGED.length, FORGED.at, FORGED.length);
	assert_int_equal(world_add(world, 0, &record), ERR_INVALID);
	struct site_member member;
	site_member(world->nodes[0].site, site_find(world->nodes[0].site, world_id(2)), &member);
	assert_int_equal(member.card.version, 1);
	world_free(world);
	buf_free(&record);
}

static void each_record_is_verified_once(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	world_run(world, 120 * (uint64_t)SECOND_US);
	assert_int_equal(world->verified, 5 * 5);
	world_free(world);
}

/* Of three, the second had its 50th card when it died; now its clock went back, and it has a card that is older than the one
 * others have. It has to hear of that. */
static struct world *world_of_one_with_an_old_card(bool moved)
{
	struct world *world = world_of(3);
	world->nodes[1].version = 50;
	world_set_card(world, 1);
	world_run(world, 2 * (uint64_t)SECOND_US);
	world_crash(world, 1);
	world->nodes[1].version = 10;
	world->nodes[1].moves += moved;
	world_start(world, 1);
	world_introduce(world, 1, 0);
	world_run(world, 5 * (uint64_t)SECOND_US);
	assert_true(world->nodes[1].events[SITE_EVENT_CARD] >= 1);
	world->nodes[1].version = 51;
	world_set_card(world, 1);
	return world;
}

static void who_has_an_old_card_hears_of_the_later_one(void **state)
{
	(void)state;
	struct world *world = world_of_one_with_an_old_card(false);
	world_run(world, 2 * (uint64_t)SECOND_US);
	struct site_member member;
	site_member(world->nodes[2].site, site_find(world->nodes[2].site, world_id(1)), &member);
	assert_int_equal(member.card.version, 52);
	world_free(world);
}

/* As before; and it has another address: answers go to where it was. */
static void who_has_an_old_card_and_moved_hears_of_it_too(void **state)
{
	(void)state;
	struct world *world = world_of_one_with_an_old_card(true);
	assert_true(world_until(world, world_agrees, 10));
	world_free(world);
}

static void cards_that_are_not_ours_cannot_be_set(void **state)
{
	(void)state;
	struct world *world = world_of(2);
	struct buf record = {0};
	world_card(world, 1, &record);
	assert_int_equal(site_set_card(world->nodes[0].site, buf_str(&record), world->now, NULL), ERR_INVALID);
	assert_int_equal(site_set_card(world->nodes[0].site, STR("x"), world->now, NULL), ERR_VERSION);
	buf_clear(&record);
	world_card(world, 0, &record);
	assert_ok(site_set_card(world->nodes[0].site, buf_str(&record), world->now, NULL)); /* the same again */
	world->nodes[0].version = 0;
	buf_clear(&record);
	world_card(world, 0, &record);
	assert_int_equal(site_set_card(world->nodes[0].site, buf_str(&record), world->now, NULL), ERR_CONFLICT);
	world_free(world);
	buf_free(&record);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_is_revoked_is_shut_out_everywhere_at_once),
		cmocka_unit_test(who_is_revoked_is_not_heard),
		cmocka_unit_test(a_forged_removal_removes_nobody),
		cmocka_unit_test(who_is_forgotten_frees_its_name),
		cmocka_unit_test(a_removal_signed_anew_is_no_news_to_people),
		cmocka_unit_test(only_what_changes_something_goes_to_all_at_once),
		cmocka_unit_test(who_was_removed_stays_silent_after_a_restart),
		cmocka_unit_test(the_name_of_a_revoked_site_is_taken_until_it_is_removed),
		cmocka_unit_test(who_comes_later_learns_of_removals),
		cmocka_unit_test(roots_spread),
		cmocka_unit_test(a_younger_claimant_is_refused_at_both_ends),
		cmocka_unit_test(an_elder_claimant_takes_its_name),
		cmocka_unit_test(a_card_with_a_name_that_is_taken_cannot_be_set),
		cmocka_unit_test(who_knows_an_elder_one_of_its_name_starts_and_says_so),
		cmocka_unit_test(a_forged_card_changes_nothing),
		cmocka_unit_test(each_record_is_verified_once),
		cmocka_unit_test(who_has_an_old_card_hears_of_the_later_one),
		cmocka_unit_test(who_has_an_old_card_and_moved_hears_of_it_too),
		cmocka_unit_test(cards_that_are_not_ours_cannot_be_set),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
