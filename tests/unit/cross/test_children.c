/* Children of a container: struct replica and struct cross_children together, at three sites in one process, with a small service each. First stories, then
 * chance: users make, rename and delete children of a few names at all sites; messages are lost and doubled, sites are cut off and crash at any moment, also between
 * what a service did and its answer.
 *
 * Always: no two items of one name at the services (under `strict`). At the end, when all is mended: each item has its name and no other has it, a name that no item has is free, nobody says
 * anything any more; and when all was deleted, no row is left of it. */
#include "children_world.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Stories -------------------------------------------------------------------------------------------------------------------------- */

static void each_site_makes_the_same_first_list(void **state)
{
	(void)state;
	struct cross_container first, other;
	make_container();
	assert_true(cross_names_get(cross_children_names(sites[0].children), container, &first));
	assert_int_equal(first.sites[0].site, id_of(0));
	for (uint32_t i = 1; i < SITES; i++) {
		assert_true(cross_names_get(cross_children_names(sites[i].children), container, &other));
		assert_memory_equal(&first, &other, sizeof(first));
	}
}

static void a_name_is_one_childs(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red"), b = make(2, "red");
	settle(5);
	assert_true(users[a].answered && users[b].answered);
	assert_int_equal(users[a].accepted + users[b].accepted, 1);
	struct user *kept = &users[users[a].accepted ? a : b], *refused = &users[users[a].accepted ? b : a];
	assert_int_equal(refused->code, ERR_CONFLICT);
	uint64_t gone = change(kept->site, kept->child, NULL);
	settle(5);
	assert_true(users[gone].accepted);
	uint64_t again = make(refused->site, "red");
	settle(5);
	assert_true(users[again].accepted);
}

static void a_rename_takes_one_name_and_leaves_one(void **state)
{
	(void)state;
	struct cross_claim_view view;
	make_container();
	uint64_t a = make(1, "red"), b = make(2, "blue");
	settle(5);
	uint64_t taken = change(1, users[a].child, "blue"), free = change(2, users[b].child, "green");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	assert_true(users[free].accepted);
	assert_int_equal(cross_children_look(sites[2].children, users[b].child, &view), 0);
	assert_true(str_equal(view.claim.name, STR("green")));
	uint64_t now_free = change(1, users[a].child, "blue");
	settle(5);
	assert_true(users[now_free].accepted);
	uint64_t left = make(0, "red");
	settle(5);
	assert_true(users[left].accepted);
}

/* The maker crashes when its name is granted, before anything was made. */
static void a_name_of_nobody_is_free_after_a_crash(void **state)
{
	(void)state;
	make_container();
	make(1, "red");
	cross_children_review(sites[1].children, now());
	commit(1); /* it is asked for */
	while (wire_count > 0) {
		deliver(0, false);
		commit(0);
		if (sites[1].held_count > 0)
			break;
	}
	crash(1);
	settle(130);
	uint64_t other = make(2, "red");
	settle(5);
	assert_true(users[other].accepted);
}

/* It crashes when the service has made it, and nobody has heard of that. */
static void what_was_made_keeps_its_name_after_a_crash(void **state)
{
	(void)state;
	make_container();
	make(0, "red");
	for (int i = 0; i < 8 && sites[0].runs_count == 0; i++)
		commit(0);
	assert_int_equal(sites[0].runs_count, 1);
	serve_one(&sites[0], 0);
	crash(0);
	settle(130);
	uint64_t other = make(2, "red");
	settle(5);
	assert_int_equal(users[other].code, ERR_CONFLICT);
}

static void the_next_site_is_prime(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red");
	settle(5);
	assert_true(users[a].accepted);
	removed[0] = cut[0] = true;
	for (uint32_t i = 1; i < SITES; i++) {
		replica_site_removed(sites[i].replica, id_of(0), now());
		cross_children_site_removed(sites[i].children, id_of(0), now());
	}
	settle(20);
	struct cross_container list;
	for (uint32_t i = 1; i < SITES; i++) {
		assert_true(cross_names_get(cross_children_names(sites[i].children), container, &list));
		assert_int_equal(list.count, 2);
		assert_int_equal(list.sites[0].site, id_of(1));
	}
	uint64_t b = make(2, "red"), c = make(2, "blue");
	settle(20);
	assert_int_equal(users[b].code, ERR_CONFLICT);
	assert_true(users[c].accepted);
}

static void sites_are_changed_at_the_prime(void **state)
{
	(void)state;
	site_id prime = 0;
	make_container();
	struct cross_change out = {container, id_of(2), false}, in = {container, id_of(2), true};
	assert_int_equal(cross_children_change(sites[1].children, &out, now(), &prime, NULL), ERR_UNAVAILABLE);
	assert_int_equal(prime, id_of(0));
	assert_int_equal(cross_children_change(sites[0].children, &out, now(), &prime, NULL), 0);
	assert_int_equal(cross_children_change(sites[0].children, &out, now(), &prime, NULL), ERR_NOT_FOUND);
	settle(10);
	assert_int_equal(cross_children_change(sites[0].children, &in, now(), &prime, NULL), 0);
	settle(10);
	uint64_t a = make(2, "red");
	settle(10);
	assert_true(users[a].accepted);
}

/* ---- Chance ----------------------------------------------------------------------------------------------------------------------------- */

static struct item *some_item(void)
{
	for (int tries = 0; tries < 8 && items_count > 0; tries++) {
		struct item *item = &items[next_random(&luck) % items_count];
		if (item->there && !same(item->id, container))
			return item;
	}
	return NULL;
}

static void one_event(void)
{
	static const char *const names[NAMES] = {"red", "blue", "green", "white", "black"};
	uint32_t at = (uint32_t)(next_random(&luck) % SITES);
	const char *name = names[next_random(&luck) % NAMES];
	struct site *it = &sites[at];
	struct item *item;
	switch (next_random(&luck) % 32) {
	case 0:
	case 1: make(at, name); break;
	case 2:
		if ((item = some_item()) != NULL)
			change(item->site, item->id, name);
		break;
	case 3:
		if ((item = some_item()) != NULL)
			change(item->site, item->id, NULL);
		break;
	case 4:
		if (next_random(&luck) % 6 == 0)
			crash(at);
		break;
	case 5: cut[at] = next_random(&luck) % 4 == 0; break;
	case 6: cut[at] = false; break;
	case 7: now_us += next_random(&luck) % (2 * SECOND); break;
	case 8:
	case 9:
	case 10:
	case 11:
	case 12: commit(at); break;
	case 13:
	case 14:
	case 15:
	case 16:
		if (it->runs_count > 0)
			serve_one(it, (uint32_t)(next_random(&luck) % it->runs_count));
		break;
	case 17:
	case 18:
		replica_tick(it->replica, now());
		cross_names_tick(cross_children_names(it->children), now());
		break;
	default:
		if (wire_count > 0)
			deliver((uint32_t)(next_random(&luck) % wire_count), next_random(&luck) % 16 == 0);
		break;
	}
	now_us += next_random(&luck) % 20000;
}

static bool any_there(const char *name)
{
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].there && !same(items[i].id, container) && strcmp(items[i].name, name) == 0)
			return true;
	return false;
}

static void check_end(void)
{
	static const char *const names[NAMES] = {"red", "blue", "green", "white", "black"};
	uint32_t kept[NAMES] = {0};
	for (uint32_t i = 0; i < items_count; i++) {
		struct cross_claim_view view;
		if (!items[i].there || same(items[i].id, container))
			continue;
		assert_int_equal(cross_children_look(sites[items[i].site].children, items[i].id, &view), 0);
		assert_true(str_equal(view.claim.name, str_of(items[i].name)));
		assert_true(view.state == CROSS_KEPT || (optimistic && view.state == CROSS_LOST));
		for (uint32_t k = 0; k < NAMES; k++)
			kept[k] += view.state == CROSS_KEPT && strcmp(items[i].name, names[k]) == 0;
	}
	for (uint32_t k = 0; k < NAMES; k++) {
		struct cross_entry_view entry;
		int code = cross_names_entry(cross_children_names(sites[0].children), container, STR("sample.thing"),
		                             str_of(names[k]), &entry);
		if (optimistic) /* one that lost its name stays so, also when who had it is gone */
			assert_true(kept[k] <= (uint32_t)any_there(names[k]));
		else
			assert_int_equal(kept[k], any_there(names[k]));
		assert_int_equal(code, kept[k] ? 0 : ERR_NOT_FOUND);
	}
	for (uint32_t i = 0; i < SITES; i++)
		assert_int_equal(cross_names_counters(cross_children_names(sites[i].children)).active, 0);
	/* Who was told that it was made, and never asked to delete it, has it. */
	for (uint64_t ticket = 1; ticket <= users_count; ticket++) {
		bool deleted = false;
		if (users[ticket].wants != MAKES || !users[ticket].accepted)
			continue;
		for (uint64_t other = 1; other <= users_count; other++)
			deleted |= users[other].wants == DELETES && same(users[other].child, users[ticket].child);
		const struct item *item = item_of(users[ticket].site, users[ticket].child);
		assert_true(deleted || (item && item->there));
	}
}

static void delete_all(void)
{
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].there && !same(items[i].id, container))
			change(items[i].site, items[i].id, NULL);
	settle(130);
	change(1, container, NULL);
	settle(130);
	for (uint32_t i = 0; i < SITES; i++) {
		struct cross_container list;
		assert_false(cross_names_get(cross_children_names(sites[i].children), container, &list));
		for (int table = 0; table < CROSS_TABLES; table++)
			if (table != CROSS_META)
				assert_int_equal(sites[i].name_rows.tables[table].count, 0);
		for (uint32_t k = 0; k < items_count; k++)
			assert_false(items[k].there);
	}
}

/* CHEOPS_SEED is where to begin, CHEOPS_SEEDS how many. */
static void by_chance(bool hopeful, uint64_t seeds, uint32_t events)
{
	const char *from = getenv("CHEOPS_SEED"), *many = getenv("CHEOPS_SEEDS");
	uint64_t first = from ? strtoull(from, NULL, 10) : 1;
	seeds = many ? strtoull(many, NULL, 10) : from ? 1 : seeds;
	for (uint64_t seed = first; seed < first + seeds; seed++) {
		void *state = NULL;
		teardown(&state);
		setup(&state);
		print_message("# seed %llu\n", (unsigned long long)seed); /* the last one is to be looked at */
		luck = seed + (hopeful ? 1000000 : 0);
		optimistic = hopeful;
		make_container();
		refusing = true;
		for (uint32_t i = 0; i < events && users_count + 200 < USERS; i++)
			one_event();
		refusing = false;
		memset(cut, 0, sizeof(cut));
		settle(400);
		check_end();
		delete_all();
	}
}

static void strict_by_chance(void **state)
{
	(void)state;
	by_chance(false, 30, 6000);
}

static void optimistic_by_chance(void **state)
{
	(void)state;
	by_chance(true, 30, 6000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_site_makes_the_same_first_list, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_is_one_childs, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rename_takes_one_name_and_leaves_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_of_nobody_is_free_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_made_keeps_its_name_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_site_is_prime, setup, teardown),
		cmocka_unit_test_setup_teardown(sites_are_changed_at_the_prime, setup, teardown),
		cmocka_unit_test_setup_teardown(strict_by_chance, setup, teardown),
		cmocka_unit_test_setup_teardown(optimistic_by_chance, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
