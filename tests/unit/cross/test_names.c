/* Names of a container's children, as stories: three sites, of which the first is the prime. What random faults do to them is
 * the simulator's affair (tests/sim/span*.c). */
#include "cross_test.h"

#include "cross/names_int.h"

#include "sim/choir_rows.h"

#include <stdlib.h>

enum { SITES = 3, MESSAGES = 256, SECOND = 1000000 };

struct message_on_its_way {
	uint32_t from, to;
	struct buf bytes;
};

struct site {
	uint32_t number;
	struct cross_names *names;
	struct choir_rows rows;
	struct message_on_its_way sent[MESSAGES]; /* held back until a commit */
	uint32_t sent_count;
	struct cross_answer answers[16];
	uint32_t answers_count;
	struct replica_id lost[16], lost_to[16];
	uint32_t lost_count;
	enum cross_fate fate;
};

static struct site sites[SITES];
static struct message_on_its_way wire[MESSAGES];
static uint32_t wire_count;
static bool cut[SITES]; /* nothing reaches or leaves it */
static uint64_t now_us, luck;
static struct cross_container list;

static site_id id_of(uint32_t number)
{
	return 0x1101 + number;
}

static struct replica_id child(uint32_t number)
{
	return replica_id_make(1700000000000, 7, number);
}

static struct replica_now now(void)
{
	return (struct replica_now){now_us, 1700000000000 + now_us / 1000};
}

/* ---- The host --------------------------------------------------------------------------------------------------------------- */

static int host_get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	struct site *it = context;
	const struct choir_row *found = choir_rows_get(&it->rows, (enum replica_table)table, key);
	if (found)
		buf_put(row, choir_row_value(found));
	return found ? 0 : ERR_NOT_FOUND;
}

static void host_put(void *context, enum cross_table table, struct str key, struct str row)
{
	choir_rows_put(&((struct site *)context)->rows, (enum replica_table)table, key, row);
}

static void host_remove(void *context, enum cross_table table, struct str key)
{
	choir_rows_remove(&((struct site *)context)->rows, (enum replica_table)table, key);
}

static int host_scan(void *context, enum cross_table table, struct str prefix,
                     bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	struct site *it = context;
	const struct choir_table *rows = &it->rows.tables[table];
	for (uint32_t i = choir_rows_find(&it->rows, (enum replica_table)table, prefix); i < rows->count; i++) {
		struct str key = choir_row_key(rows->rows[i]);
		if (key.length < prefix.length || memcmp(key.at, prefix.at, prefix.length) != 0 ||
		    !each(each_context, key, choir_row_value(rows->rows[i])))
			break;
	}
	return 0;
}

static void host_send(void *context, site_id to, struct str message)
{
	struct site *it = context;
	assert_true(it->sent_count < MESSAGES);
	struct message_on_its_way *sent = &it->sent[it->sent_count++];
	*sent = (struct message_on_its_way){.from = it->number, .to = (uint32_t)(to - id_of(0))};
	buf_put(&sent->bytes, message);
}

static void host_answer(void *context, const struct cross_answer *answer)
{
	struct site *it = context;
	it->answers[it->answers_count++] = *answer;
}

static void host_lost(void *context, const struct cross_lost *lost)
{
	struct site *it = context;
	it->lost[it->lost_count] = lost->claim.child;
	it->lost_to[it->lost_count++] = lost->holder;
}

static enum cross_fate host_fate(void *context, const struct cross_claim *claim)
{
	(void)claim;
	return ((struct site *)context)->fate;
}

static uint64_t host_random(void *context)
{
	(void)context;
	return next_random(&luck);
}

static void start(uint32_t number)
{
	struct site *it = &sites[number];
	struct cross_names_options options = cross_names_options_default();
	struct cross_names_host host = {it,          host_get,  host_put,  host_remove, host_scan, host_send,
	                                host_answer, host_lost, host_fate, host_random, NULL};
	it->number = number;
	options.self = id_of(number);
	assert_int_equal(cross_names_new(&it->names, &options, &host, now(), NULL), 0);
}

/* Loses what was not committed. */
static void crash(uint32_t number)
{
	struct site *it = &sites[number];
	cross_names_free(it->names);
	choir_rows_rollback(&it->rows);
	for (uint32_t i = 0; i < it->sent_count; i++)
		buf_free(&it->sent[i].bytes);
	it->sent_count = it->answers_count = it->lost_count = 0;
	start(number);
}

static struct replica_id container(void)
{
	return child(9999);
}

static int setup(void **state)
{
	(void)state;
	memset(sites, 0, sizeof(sites));
	memset(cut, 0, sizeof(cut));
	now_us = SECOND;
	luck = 1;
	cross_container_make(&list, (site_id[]){id_of(0), id_of(1), id_of(2)}, SITES, false);
	for (uint32_t i = 0; i < SITES; i++) {
		start(i);
		cross_names_set(sites[i].names, container(), &list, now());
		choir_rows_commit(&sites[i].rows);
	}
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < SITES; i++) {
		crash(i);
		cross_names_free(sites[i].names);
		choir_rows_free(&sites[i].rows);
	}
	for (uint32_t i = 0; i < wire_count; i++)
		buf_free(&wire[i].bytes);
	wire_count = 0;
	return 0;
}

/* ---- What happens ------------------------------------------------------------------------------------------------------------- */

static void commit(uint32_t number)
{
	struct site *it = &sites[number];
	choir_rows_commit(&it->rows);
	for (uint32_t i = 0; i < it->sent_count; i++) {
		assert_true(wire_count < MESSAGES);
		wire[wire_count++] = it->sent[i];
	}
	it->sent_count = 0;
}

static bool deliver_one(void)
{
	if (wire_count == 0)
		return false;
	struct message_on_its_way first = wire[0];
	memmove(&wire[0], &wire[1], --wire_count * sizeof(wire[0]));
	if (!cut[first.from] && !cut[first.to])
		cross_names_receive(sites[first.to].names, id_of(first.from), buf_str(&first.bytes), now());
	buf_free(&first.bytes);
	return true;
}

/* Everything that can be said is said. */
static void settle(void)
{
	do {
		for (uint32_t i = 0; i < SITES; i++)
			commit(i);
	} while (deliver_one());
}

static void pass(uint32_t seconds)
{
	for (uint32_t i = 0; i < 10 * seconds; i++) {
		now_us += SECOND / 10;
		for (uint32_t k = 0; k < SITES; k++) {
			if (cross_names_due(sites[k].names) <= now_us)
				cross_names_tick(sites[k].names, now());
		}
		settle();
	}
}

static struct cross_claim claim_of(uint32_t number, const char *name)
{
	return (struct cross_claim){container(), STR("sample.server"), str_of(name), child(number)};
}

static int claim(uint32_t site, uint32_t number, const char *name)
{
	struct cross_claim it = claim_of(number, name);
	return cross_names_claim(sites[site].names, &it, STR(""), number, now(), NULL);
}

static void kept(uint32_t site, uint32_t number, const char *name)
{
	struct cross_claim it = claim_of(number, name);
	cross_names_kept(sites[site].names, &it, now());
}

static void release(uint32_t site, uint32_t number, const char *name)
{
	struct cross_claim it = claim_of(number, name);
	cross_names_release(sites[site].names, &it, now());
}

static void make(uint32_t site, uint32_t number, const char *name)
{
	uint32_t before = sites[site].answers_count;
	assert_int_equal(claim(site, number, name), 0);
	settle();
	assert_int_equal(sites[site].answers_count, before + 1);
	assert_int_equal(sites[site].answers[before].code, 0);
	assert_int_equal(sites[site].answers[before].ticket, number);
	kept(site, number, name);
	settle();
}

static bool is_free(uint32_t prime, const char *name)
{
	struct cross_entry_view entry;
	return cross_names_entry(sites[prime].names, container(), STR("sample.server"), str_of(name), &entry) != 0;
}

static bool is_quiet(void)
{
	for (uint32_t i = 0; i < SITES; i++) {
		if (cross_names_counters(sites[i].names).active > 0)
			return false;
	}
	return true;
}

static const struct cross_answer *last_answer(uint32_t site)
{
	assert_true(sites[site].answers_count > 0);
	return &sites[site].answers[sites[site].answers_count - 1];
}

/* ---- Stories ------------------------------------------------------------------------------------------------------------------- */

static void of_two_at_the_same_moment_one_gets_it(void **state)
{
	(void)state;
	assert_int_equal(claim(1, 1, "yellow"), 0);
	assert_int_equal(claim(2, 2, "yellow"), 0);
	settle();
	assert_int_equal(last_answer(1)->code, 0);
	assert_int_equal(last_answer(2)->code, ERR_CONFLICT);
	assert_int_equal(last_answer(2)->holder_site, id_of(1));
	assert_true(names_same(last_answer(2)->holder, child(1)));
	kept(1, 1, "yellow");
	settle();
	assert_true(is_quiet());
	make(0, 3, "blue"); /* the prime itself */
	assert_int_equal(claim(0, 4, "yellow"), 0);
	settle();
	assert_int_equal(last_answer(0)->code, ERR_CONFLICT);
	release(1, 1, "yellow");
	settle();
	make(2, 5, "yellow");
	assert_true(is_quiet());
}

static void nothing_is_said_before_it_is_durable(void **state)
{
	(void)state;
	assert_int_equal(claim(1, 1, "yellow"), 0);
	commit(1);
	assert_true(deliver_one()); /* the prime has it, and crashes before its commit */
	crash(0);
	assert_true(is_free(0, "yellow"));
	make(2, 2, "yellow");
	pass(5); /* the first one asks again */
	assert_int_equal(last_answer(1)->code, ERR_CONFLICT);
}

static void a_maker_that_crashes_leaves_nothing_behind(void **state)
{
	(void)state;
	assert_int_equal(claim(1, 1, "yellow"), 0);
	commit(1);
	crash(1); /* with the intent alone */
	sites[1].fate = CROSS_ABSENT;
	pass(5);
	assert_true(is_free(0, "yellow"));
	assert_int_equal(claim(1, 2, "red"), 0);
	settle();
	crash(1); /* granted, and not made */
	pass(5);
	assert_true(is_free(0, "red"));
	assert_true(is_quiet());
	assert_int_equal(claim(1, 3, "blue"), 0);
	settle();
	sites[1].fate = CROSS_UNKNOWN;
	crash(1); /* granted, and nobody knows */
	pass(60);
	assert_false(is_free(0, "blue"));
	sites[1].fate = CROSS_EXISTS;
	pass(120);
	struct cross_entry_view entry;
	assert_int_equal(cross_names_entry(sites[0].names, container(), STR("sample.server"), STR("blue"), &entry), 0);
	assert_true(entry.kept);
	assert_true(is_quiet());
}

static void a_maker_that_is_away_keeps_what_it_asked_for(void **state)
{
	(void)state;
	assert_int_equal(claim(1, 1, "yellow"), 0);
	settle();
	cut[1] = true;
	pass(3600);
	assert_false(is_free(0, "yellow"));
	cross_names_site_removed(sites[0].names, id_of(1), now());
	assert_false(is_free(0, "yellow")); /* it may have made it, and others may hold it too: they are asked */
	assert_int_equal(cross_container_drop(&list, id_of(1), NULL), 0);
	cross_names_set(sites[0].names, container(), &list, now());
	assert_false(is_free(0, "yellow"));
	pass(5);
	assert_true(is_free(0, "yellow"));
	assert_true(is_quiet());
}

static void strict_refuses_while_the_prime_is_away(void **state)
{
	(void)state;
	cut[0] = true;
	assert_int_equal(claim(1, 1, "yellow"), 0);
	pass(2);
	assert_int_equal(sites[1].answers_count, 0);
	pass(3);
	assert_int_equal(last_answer(1)->code, ERR_UNAVAILABLE);
	cut[0] = false;
	pass(120);
	assert_true(is_quiet());
	make(2, 2, "yellow");
}

static void make_optimistic(void)
{
	list.optimistic = true;
	list.term++;
	for (uint32_t i = 0; i < SITES; i++)
		cross_names_set(sites[i].names, container(), &list, now());
	settle();
	pass(3);
}

static void optimistic_accepts_and_settles_later(void **state)
{
	(void)state;
	make_optimistic();
	cut[0] = true;
	assert_int_equal(claim(1, 1, "yellow"), 0);
	pass(1);
	assert_int_equal(claim(2, 2, "yellow"), 0);
	assert_int_equal(claim(2, 3, "yellow"), 0); /* at the same site it is known to be taken */
	pass(5);
	assert_int_equal(last_answer(1)->code, 0);
	assert_true(last_answer(1)->unchecked);
	assert_int_equal(sites[2].answers[0].code, 0);
	assert_int_equal(sites[2].answers[1].code, ERR_CONFLICT);
	kept(1, 1, "yellow");
	kept(2, 2, "yellow");
	cut[0] = false;
	pass(200);
	assert_int_equal(sites[1].lost_count, 0);
	assert_int_equal(sites[2].lost_count, 1);
	assert_true(names_same(sites[2].lost[0], child(2)) && names_same(sites[2].lost_to[0], child(1)));
	assert_true(is_quiet());
	crash(2); /* it is told again */
	sites[2].fate = CROSS_EXISTS;
	crash(2);
	assert_int_equal(sites[2].lost_count, 1);
	struct cross_claim loser = claim_of(2, "green");
	assert_int_equal(cross_names_claim(sites[2].names, &loser, STR("yellow"), 7, now(), NULL), 0);
	settle();
	assert_int_equal(last_answer(2)->code, 0);
	kept(2, 2, "green");
	settle();
	crash(2);
	assert_int_equal(sites[2].lost_count, 0);
}

static void a_name_that_was_checked_is_not_taken_away(void **state)
{
	(void)state;
	make_optimistic();
	cut[1] = true;
	assert_int_equal(claim(1, 1, "yellow"), 0); /* the earlier one, unchecked */
	pass(5);
	assert_true(last_answer(1)->unchecked);
	kept(1, 1, "yellow");
	make(2, 2, "yellow");
	cut[1] = false;
	pass(200);
	assert_int_equal(sites[1].lost_count, 1);
	assert_int_equal(sites[2].lost_count, 0);
}

static void a_rename_moves_the_name_in_one_step(void **state)
{
	(void)state;
	make(1, 1, "yellow");
	struct cross_claim renamed = claim_of(1, "red");
	assert_int_equal(cross_names_claim(sites[1].names, &renamed, STR("yellow"), 7, now(), NULL), 0);
	settle();
	assert_false(is_free(0, "yellow"));
	sites[1].fate = CROSS_EXISTS; /* it crashes, and has the new name */
	crash(1);
	pass(5);
	assert_false(is_free(0, "red"));
	assert_true(is_free(0, "yellow"));
	assert_true(is_quiet());
}

static void the_next_site_becomes_prime_and_knows_all(void **state)
{
	(void)state;
	make(1, 1, "yellow");
	make(2, 2, "red");
	cut[0] = true; /* gone for good */
	assert_int_equal(cross_container_drop(&list, id_of(0), NULL), 0);
	cross_names_set(sites[1].names, container(), &list, now()); /* the other one hears of it from this one */
	pass(5);
	assert_false(is_free(1, "yellow"));
	assert_false(is_free(1, "red"));
	assert_int_equal(claim(2, 3, "yellow"), 0);
	settle();
	assert_int_equal(last_answer(2)->code, ERR_CONFLICT);
	make(2, 4, "blue");
}

static void a_new_prime_grants_nothing_until_all_are_there(void **state)
{
	(void)state;
	make(2, 2, "red");
	cut[0] = cut[2] = true;
	assert_int_equal(cross_container_drop(&list, id_of(0), NULL), 0);
	cross_names_set(sites[1].names, container(), &list, now());
	assert_int_equal(claim(1, 1, "red"), 0);
	pass(5);
	assert_int_equal(last_answer(1)->code, ERR_UNAVAILABLE);
	cut[2] = false;
	pass(120);
	assert_int_equal(claim(1, 3, "red"), 0);
	settle();
	assert_int_equal(last_answer(1)->code, ERR_CONFLICT);
}

/* It may hear that a site is in its term before it hears what that one has. */
static void a_site_is_ready_when_all_is_told(void **state)
{
	(void)state;
	make(2, 2, "red");
	cut[0] = true;
	assert_int_equal(cross_container_drop(&list, id_of(0), NULL), 0);
	cross_names_set(sites[1].names, container(), &list, now());
	cross_names_tick(sites[1].names, now());
	settle(); /* the other one knows the list, and has had no time to say anything by itself */
	assert_int_equal(claim(1, 3, "red"), 0);
	settle();
	assert_int_equal(sites[1].answers_count, 0);
	pass(2);
	assert_int_equal(last_answer(1)->code, ERR_CONFLICT);
}

static void an_old_prime_is_not_believed(void **state)
{
	(void)state;
	assert_int_equal(claim(2, 2, "red"), 0);
	commit(2);
	deliver_one();
	assert_int_equal(cross_container_drop(&list, id_of(0), NULL), 0);
	cross_names_set(sites[2].names, container(), &list, now()); /* before the grant comes */
	commit(0);
	while (deliver_one())
		;
	assert_int_equal(sites[2].answers_count, 0);
	cross_names_set(sites[1].names, container(), &list, now());
	cut[0] = true;
	pass(2);
	assert_int_equal(last_answer(2)->code, 0); /* of the new one */
	assert_false(is_free(1, "red"));
}

static void who_leaves_forgets(void **state)
{
	(void)state;
	make(2, 2, "red");
	assert_int_equal(claim(2, 3, "blue"), 0);
	assert_int_equal(cross_container_drop(&list, id_of(2), NULL), 0);
	cross_names_set(sites[2].names, container(), &list, now());
	assert_int_equal(last_answer(2)->code, ERR_UNAVAILABLE);
	assert_int_equal(claim(2, 4, "green"), ERR_NOT_FOUND);
	cross_names_set(sites[0].names, container(), &list, now());
	assert_false(is_free(0, "red"));
	pass(60);
	assert_true(is_free(0, "red"));
	assert_true(is_quiet());
}

static bool may_leave(uint32_t site)
{
	return cross_names_may_leave(sites[site].names, container(), now());
}

static void a_prime_leaves_when_all_have_its_list(void **state)
{
	(void)state;
	cut[2] = true;
	assert_false(may_leave(0));
	pass(10);
	assert_false(may_leave(0));
	/* Meanwhile it is the prime as before. */
	assert_int_equal(claim(1, 1, "blue"), 0);
	settle();
	assert_int_equal(sites[1].answers_count, 1);
	assert_int_equal(sites[1].answers[0].code, 0);
	kept(1, 1, "blue");
	settle();
	/* It has forgotten whom it asked, and asks again. */
	crash(0);
	cut[2] = false;
	assert_false(may_leave(0));
	settle();
	assert_true(may_leave(0));
	assert_int_equal(cross_names_counters(sites[0].names).active, 0);
	/* Another list is another question. */
	assert_int_equal(cross_container_drop(&list, id_of(2), NULL), 0);
	cross_names_set(sites[0].names, container(), &list, now());
	assert_false(may_leave(0));
	pass(1);
	assert_true(may_leave(0));
	cross_names_forget(sites[0].names, container(), now());
	settle();
	/* Who follows has the last one, and goes on from there. */
	struct cross_container last;
	assert_true(cross_names_get(sites[1].names, container(), &last));
	assert_int_equal(last.term, list.term);
	assert_int_equal(cross_container_drop(&last, id_of(0), NULL), 0);
	cross_names_set(sites[1].names, container(), &last, now());
	pass(1);
	assert_int_equal(claim(1, 2, "blue"), 0);
	assert_int_equal(claim(1, 3, "red"), 0);
	settle();
	assert_int_equal(sites[1].answers[1].code, ERR_CONFLICT);
	assert_int_equal(sites[1].answers[2].code, 0);
	assert_true(may_leave(0)); /* of what it does not know */
	kept(1, 3, "red");
	assert_false(may_leave(1)); /* nobody could follow */
}

static void who_claims_something_does_not_leave(void **state)
{
	(void)state;
	for (uint32_t site = 0; site < 2; site++) {
		uint32_t number = 10 + site;
		const char *name = site ? "one" : "two";
		struct cross_claim it = claim_of(number, name);
		assert_int_equal(claim(site, number, name), 0);
		assert_false(may_leave(site)); /* asked for, or granted */
		settle();
		assert_false(may_leave(site));
		kept(site, number, name);
		settle();
		assert_false(may_leave(site));
		cross_names_release(sites[site].names, &it, now());
		settle();
		assert_true(may_leave(site));
	}
	assert_true(may_leave(2)); /* who is not the prime need not ask anybody */
}

static void a_new_site_waits_until_all_know_it(void **state)
{
	(void)state;
	assert_int_equal(cross_container_drop(&list, id_of(2), NULL), 0);
	for (uint32_t i = 0; i < SITES; i++)
		cross_names_set(sites[i].names, container(), &list, now());
	settle();
	cut[1] = true;
	assert_int_equal(cross_container_add(&list, id_of(2), NULL), 0);
	cross_names_set(sites[2].names, container(), &list, now());
	cross_names_set(sites[0].names, container(), &list, now());
	assert_int_equal(claim(2, 2, "red"), 0);
	make(0, 1, "blue"); /* others go on */
	pass(5);
	assert_int_equal(last_answer(2)->code, ERR_UNAVAILABLE);
	cut[1] = false;
	pass(120);
	make(2, 3, "red");
}

static void what_was_there_before_is_adopted_or_reported(void **state)
{
	(void)state;
	struct cross_claim first = claim_of(1, "yellow"), second = claim_of(2, "yellow");
	assert_int_equal(cross_names_adopt(sites[1].names, &first, now(), NULL), 0);
	settle();
	assert_int_equal(cross_names_adopt(sites[2].names, &second, now(), NULL), 0);
	assert_int_equal(cross_names_adopt(sites[2].names, &second, now(), NULL), 0);
	pass(20);
	assert_int_equal(sites[1].lost_count, 0);
	assert_int_equal(sites[2].lost_count, 1);
	assert_true(is_quiet());
}

static void what_cannot_be_asked_is_refused(void **state)
{
	(void)state;
	char longest[LIMIT_REPLICA_NAME_BYTES + 2];
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	struct err err = {0};
	struct cross_claim it = claim_of(1, longest);
	assert_int_equal(cross_names_claim(sites[1].names, &it, STR(""), 1, now(), &err), ERR_LIMIT);
	assert_int_equal(claim(1, 1, ""), ERR_INVALID);
	longest[LIMIT_REPLICA_NAME_BYTES] = '\0';
	make(1, 2, longest);
	assert_int_equal(claim(1, 2, longest), ERR_CONFLICT);
	it = claim_of(3, "red");
	it.container = child(1234);
	assert_int_equal(cross_names_claim(sites[1].names, &it, STR(""), 1, now(), &err), ERR_NOT_FOUND);
	assert_string_equal(err.text, "the container is not at this site");
	cross_names_forget(sites[1].names, container(), now());
	assert_int_equal(claim(1, 4, "red"), ERR_NOT_FOUND);
}

/* ---- Bytes ----------------------------------------------------------------------------------------------------------------------- */

static void messages_are_as_they_are_written_down(void **state)
{
	(void)state;
	static const char expected[] = "\x01\x01"                         /* version, CLAIMS */
								   "CONTAINER-OF-16."                 /* container */
								   "\x00\x00\x00\x00\x00\x00\x00\x05" /* term */
								   "\x03\x61.b"                       /* type */
								   "\x03red"                          /* name */
								   "CHILD-OF-16-BYTE"                 /* child */
								   "\x00\x00\x00\x00\x00\x00\x00\x07" /* stamp */
								   "\x02\x01"                         /* kept, unchecked */
								   "\x00\x00\x00\x00\x00\x00\x00\x09" /* number */;
	struct replica_id of, who;
	memcpy(of.bytes, "CONTAINER-OF-16.", 16);
	memcpy(who.bytes, "CHILD-OF-16-BYTE", 16);
	struct message message = {MESSAGE_CLAIMS, of, 5}, back;
	struct claim_item item = {{of, STR("a.b"), STR("red"), who}, CROSS_KEPT, true, 7, 9}, read;
	struct buf out = {0};
	struct reader reader;
	names_message_begin(&out, &message);
	claim_item_put(&out, &item);
	assert_int_equal(out.length, sizeof(expected) - 1);
	assert_memory_equal(out.at, expected, out.length);
	assert_int_equal(names_message_open(buf_str(&out), &back, &reader), 0);
	assert_true(claim_item_read(&reader, &back, &read));
	assert_int_equal(read.state, CROSS_KEPT);
	assert_true(read.unchecked && read.stamp == 7 && read.nonce == 9 && str_equal(read.claim.name, STR("red")));
	for (size_t i = 0; i < out.length; i++) {
		char *exact = malloc(i + 1);
		assert_non_null(exact);
		memcpy(exact, out.at, i);
		if (names_message_open(str_make(exact, i), &back, &reader) == 0)
			assert_false(claim_item_read(&reader, &back, &read));
		cross_names_receive(sites[0].names, id_of(1), str_make(exact, i), now());
		free(exact);
	}
	out.at[0] = 2;
	assert_int_equal(names_message_open(buf_str(&out), &back, &reader), ERR_VERSION);
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(of_two_at_the_same_moment_one_gets_it, setup, teardown),
		cmocka_unit_test_setup_teardown(nothing_is_said_before_it_is_durable, setup, teardown),
		cmocka_unit_test_setup_teardown(a_maker_that_crashes_leaves_nothing_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(a_maker_that_is_away_keeps_what_it_asked_for, setup, teardown),
		cmocka_unit_test_setup_teardown(strict_refuses_while_the_prime_is_away, setup, teardown),
		cmocka_unit_test_setup_teardown(optimistic_accepts_and_settles_later, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_that_was_checked_is_not_taken_away, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rename_moves_the_name_in_one_step, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_site_becomes_prime_and_knows_all, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_prime_grants_nothing_until_all_are_there, setup, teardown),
		cmocka_unit_test_setup_teardown(a_site_is_ready_when_all_is_told, setup, teardown),
		cmocka_unit_test_setup_teardown(an_old_prime_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(who_leaves_forgets, setup, teardown),
		cmocka_unit_test_setup_teardown(a_prime_leaves_when_all_have_its_list, setup, teardown),
		cmocka_unit_test_setup_teardown(who_claims_something_does_not_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(a_new_site_waits_until_all_know_it, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_there_before_is_adopted_or_reported, setup, teardown),
		cmocka_unit_test_setup_teardown(what_cannot_be_asked_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(messages_are_as_they_are_written_down, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
