/* Children of a container: struct replica and struct cross_children together, at three sites in one process, with a small service each. First stories, then
 * chance: users make, rename and delete children of a few names at all sites; messages are lost and doubled, sites are cut off and crash at any moment, also between
 * what a service did and its answer.
 *
 * Always: no two items of one name at the services (under `strict`). At the end, when all is mended: each item has its name and no other has it, a name that no item has is free, nobody says
 * anything any more; and when all was deleted, no row is left of it. */
#include "children_world.h"

#include "cross/children_int.h"

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

/* Who did not make it is told whom to ask, and has claimed nothing. */
static void a_name_is_claimed_by_who_made_it(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red");
	settle(5);
	struct cross_wish wish = {.type = STR("sample.thing"), .child = users[a].child, .name = STR("blue")};
	for (uint32_t i = 0; i < SITES; i++) {
		site_id at = 0;
		int code = cross_children_claim(sites[i].children, &wish, USERS + i, now(), &at, NULL);
		assert_int_equal(code, i == 1 ? CROSS_ASKED_FOR : ERR_CONFLICT);
		assert_int_equal(at, i == 1 ? 0 : id_of(1));
		struct cross_claim_view view;
		assert_int_equal(cross_children_look(sites[i].children, users[a].child, &view) == 0, i == 1);
	}
	crash(1);
	settle(130);
	uint64_t free = make(2, "blue");
	settle(5);
	assert_true(users[free].accepted);
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

static void check_list(uint32_t at, uint32_t count, uint32_t prime)
{
	struct cross_container list;
	assert_true(cross_names_get(cross_children_names(sites[at].children), container, &list));
	assert_int_equal(list.count, count);
	assert_int_equal(list.sites[0].site, id_of(prime));
}

static void the_prime_hands_over_and_leaves(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red"), b = make(2, "blue");
	settle(5);
	assert_true(users[a].accepted && users[b].accepted);
	assert_int_equal(withdraw(2, 0), 0);
	settle(10);
	assert_true(has_left(0));
	for (uint32_t i = 1; i < SITES; i++)
		check_list(i, 2, 1);
	assert_false(item_of(0, container)->there);
	uint64_t taken = make(2, "red"), free = make(2, "green"), out = make(0, "white");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	assert_true(users[free].accepted);
	assert_int_equal(users[out].code, ERR_NOT_FOUND);
	/* And the next one. */
	change(1, users[a].child, NULL);
	settle(5);
	assert_int_equal(withdraw(1, 1), 0);
	settle(10);
	assert_true(has_left(1));
	check_list(2, 1, 2);
	assert_int_not_equal(withdraw(2, 2), 0);
	uint64_t last = make(2, "red");
	settle(5);
	assert_true(users[last].accepted);
}

/* It goes on as long as it is needed: one that nobody could follow does not leave. */
static void the_prime_waits_for_who_is_away(void **state)
{
	(void)state;
	make_container();
	for (uint32_t away = 1; away < SITES; away++) {
		cut[away] = true;
		if (away == 1)
			assert_int_equal(withdraw(0, 0), 0);
		settle(60);
		assert_false(has_left(0));
		uint32_t other = away == 1 ? 2 : 1;
		char name[8] = {(char)('a' + away), 0};
		uint64_t made = make(other, name), here = make(0, "here");
		settle(10);
		assert_true(users[made].accepted);
		assert_int_equal(users[here].code, ERR_CONFLICT); /* nothing new is made where it is to go from */
		crash(0);
		if (away == 1)
			cut[2] = true; /* before the other one is back */
		cut[away] = false;
		settle(1);
	}
	cut[2] = false;
	settle(130);
	assert_true(has_left(0));
	check_list(1, 2, 1);
	check_list(2, 2, 1);
	uint64_t taken = make(1, "c"), free = make(1, "d");
	settle(5);
	assert_int_equal(users[free].code, 0);
	assert_int_equal(users[taken].accepted, false);
}

/* What was made there before it heard of it stays, and so does the site. */
static void what_lies_there_keeps_its_site(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(0, "red");
	assert_int_equal(withdraw(1, 0), 0);
	settle(60);
	assert_true(users[a].accepted);
	assert_false(has_left(0));
	uint64_t taken = make(2, "red");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	change(0, users[a].child, NULL);
	settle(10);
	assert_true(has_left(0));
	uint64_t free = make(2, "red");
	settle(5);
	assert_true(users[free].accepted);
}

static void both_primes_are_to_leave(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(2, "red");
	settle(5);
	assert_true(users[a].accepted);
	assert_int_equal(withdraw(2, 0), 0);
	assert_int_equal(withdraw(2, 1), 0);
	settle(30);
	assert_true(has_left(0) && has_left(1));
	check_list(2, 1, 2);
	uint64_t taken = make(2, "red"), free = make(2, "blue");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	assert_int_equal(users[free].code, 0);
	assert_true(users[free].accepted);
}

/* A site that cannot be reached is forced out: the next one takes over, and what it had is not in the container any more. */
static void the_prime_is_forced_out(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make(1, "red"), gone = make(0, "blue");
	settle(5);
	assert_true(users[a].accepted && users[gone].accepted);
	cut[0] = true;
	struct replica_drop force = {.site = id_of(0), .force = true};
	assert_int_equal(replica_drop(sites[1].replica, container, &force, now(), NULL), 0);
	settle(20);
	for (uint32_t i = 1; i < SITES; i++)
		check_list(i, 2, 1);
	uint64_t taken = make(2, "red");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	cut[0] = false;
	settle(130);
	assert_true(has_left(0));
}

/* It had made another list, of which one site has heard, and the one that follows it has not. */
static void two_lists_of_one_term_become_one(void **state)
{
	(void)state;
	struct cross_container other;
	make_container();
	uint64_t a = make(2, "red");
	settle(5);
	assert_true(users[a].accepted);
	assert_true(cross_names_get(cross_children_names(sites[0].children), container, &other));
	other.term++;
	cross_names_set(cross_children_names(sites[0].children), container, &other, now());
	cross_names_set(cross_children_names(sites[2].children), container, &other, now());
	commit(0);
	commit(2);
	cut[0] = true;
	struct replica_drop force = {.site = id_of(0), .force = true};
	assert_int_equal(replica_drop(sites[1].replica, container, &force, now(), NULL), 0);
	settle(130);
	for (uint32_t i = 1; i < SITES; i++)
		check_list(i, 2, 1);
	uint64_t taken = make(1, "red"), free = make(1, "blue");
	settle(5);
	assert_int_equal(users[taken].code, ERR_CONFLICT);
	assert_true(users[free].accepted);
	cut[0] = false;
	settle(130);
	assert_true(has_left(0));
	for (uint32_t i = 1; i < SITES; i++)
		check_list(i, 2, 1);
}

/* The site that made it is gone; the others hold it, and its name. */
static void a_name_passes_to_who_holds_the_child(void **state)
{
	(void)state;
	for (uint32_t maker = 0; maker < SITES; maker++) {
		for (uint32_t crashes = 0; crashes < 3; crashes++) {
			void *unused = NULL;
			uint32_t heir = (maker + 1) % SITES, other = (maker + 2) % SITES;
			teardown(&unused);
			setup(&unused);
			make_container();
			uint64_t a = make_at(maker, "red", 1u << maker | 1u << heir), alone = make(maker, "blue");
			settle(5);
			assert_true(users[a].accepted && users[alone].accepted);
			assert_non_null(item_of(heir, users[a].child));
			remove_site(maker);
			for (uint32_t i = 0; i < 20; i++) {
				uint64_t taken = make(other, "red");
				settle(i == 0 ? 0 : 1);
				if (crashes == 1 && i < 3)
					crash(heir);
				if (crashes == 2 && i < 3)
					crash(other);
				settle(3);
				assert_false(users[taken].accepted);
			}
			uint64_t taken = make(other, "red"), free = make(other, "blue");
			settle(20);
			assert_int_equal(users[taken].code, ERR_CONFLICT);
			assert_true(users[free].accepted);
			change(heir, users[a].child, "green");
			settle(5);
			taken = make(other, "green"), free = make(other, "red");
			settle(5);
			assert_int_equal(users[taken].code, ERR_CONFLICT);
			assert_true(users[free].accepted);
			change(heir, users[a].child, NULL);
			settle(5);
			free = make(other, "green");
			settle(5);
			assert_true(users[free].accepted);
		}
	}
}

/* All three hold it: one after the other is removed. */
static void a_name_passes_on_and_on(void **state)
{
	(void)state;
	make_container();
	uint64_t a = make_at(1, "red", 7);
	settle(5);
	change(1, users[a].child, "blue");
	settle(5);
	for (uint32_t gone = 1; gone != 3; gone = gone == 1 ? 0 : 3) {
		remove_site(gone);
		settle(20);
		uint64_t taken = make(2, "blue"), free = make(2, "red");
		settle(5);
		assert_int_equal(users[taken].code, ERR_CONFLICT);
		assert_true(users[free].accepted);
		change(2, users[free].child, NULL);
		settle(5);
	}
	change(2, users[a].child, NULL);
	settle(5);
	uint64_t free = make(2, "blue");
	settle(5);
	assert_true(users[free].accepted);
}

/* Who holds it has not made it yet when the maker goes, and the prime is the same, or another. */
static void a_name_waits_for_who_is_to_hold_the_child(void **state)
{
	(void)state;
	for (uint32_t maker = 0; maker < 2; maker++) {
		void *unused = NULL;
		uint32_t heir = 1 - maker;
		teardown(&unused);
		setup(&unused);
		make_container();
		cut[heir] = maker == 0;
		uint64_t a = make_at(maker, "red", 3);
		settle(1);
		cut[heir] = true;
		settle(4);
		assert_true(users[a].accepted);
		remove_site(maker);
		settle(10);
		uint64_t early = make(2, "red");
		settle(10);
		assert_false(users[early].accepted);
		cut[heir] = false;
		settle(130);
		uint64_t taken = make(2, "red");
		settle(10);
		assert_non_null(item_of(heir, users[a].child));
		assert_int_equal(users[taken].code, ERR_CONFLICT);
	}
}

/* One that made a child is forced out of the container, and another one holds it too. */
static void a_name_stays_when_its_maker_is_forced_out(void **state)
{
	(void)state;
	for (uint32_t maker = 0; maker < 2; maker++) {
		void *unused = NULL;
		teardown(&unused);
		setup(&unused);
		make_container();
		uint64_t a = make_at(maker, "red", 3), alone = make(maker, "blue");
		settle(5);
		assert_true(users[a].accepted && users[alone].accepted);
		cut[maker] = true;
		assert_int_equal(force_out(2, maker), 0);
		uint64_t early = make(2, "red");
		settle(60);
		assert_false(users[early].accepted);
		uint64_t taken = make(2, "red");
		settle(5);
		assert_int_equal(users[taken].code, ERR_CONFLICT);
		change(1 - maker, users[a].child, NULL);
		settle(5);
		uint64_t free = make(2, "red");
		settle(5);
		assert_int_equal(users[free].code, 0);
	}
}

/* ---- Chance ----------------------------------------------------------------------------------------------------------------------------- */

static bool withdraws; /* sites are withdrawn from the container */
static bool removes;   /* one or two are removed from the mesh; children are held by several */

static uint32_t removed_count(void)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < SITES; i++)
		count += removed[i];
	return count;
}

static uint32_t some_holders(void)
{
	return removes ? (uint32_t)(next_random(&luck) % (1u << SITES)) : 0;
}

static struct item *some_item(void)
{
	for (int tries = 0; tries < 8 && items_count > 0; tries++) {
		struct item *item = &items[next_random(&luck) % items_count];
		if (item->there && !same(item->id, container) && !removed[item->site])
			return item;
	}
	return NULL;
}

/* Changes at the same moment at two sites are for the tests of src/replica; the services here know no repairs. */
static bool may_change(const struct item *item)
{
	return !is_shared(item->id) || !was_asked_for(item->id);
}

static void one_event(void)
{
	static const char *const names[NAMES] = {"red", "blue", "green", "white", "black"};
	uint32_t at = (uint32_t)(next_random(&luck) % SITES);
	const char *name = names[next_random(&luck) % NAMES];
	struct site *it = &sites[at];
	struct item *item;
	if (removed[at])
		return;
	switch (next_random(&luck) % 32) {
	case 0:
	case 1: make_at(at, name, some_holders()); break;
	case 2:
		if ((item = some_item()) != NULL && may_change(item))
			change(item->site, item->id, name);
		break;
	case 3:
		if ((item = some_item()) != NULL && may_change(item))
			change(item->site, item->id, NULL);
		break;
	case 4:
		if (next_random(&luck) % 6 == 0)
			crash(at);
		break;
	case 5: cut[at] = next_random(&luck) % 4 == 0; break;
	case 21:
		if (removes && next_random(&luck) % 100 == 0 && removed_count() < SITES - 1)
			remove_site(at);
		break;
	case 19: follow(at); break;
	case 20:
		if (withdraws && next_random(&luck) % 60 == 0)
			withdraw(at, (uint32_t)(next_random(&luck) % SITES));
		break;
	case 6: cut[at] = removed[at]; break;
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
		if (items[i].there && !same(items[i].id, container) && !removed[items[i].site] &&
		    strcmp(items[i].name, name) == 0)
			return true;
	return false;
}

/* Whoever is in the list of all that are. */
static uint32_t prime(void)
{
	struct cross_container list;
	site_id found = 0;
	for (uint32_t i = 0; i < SITES; i++) {
		if (removed[i] || !cross_names_get(cross_children_names(sites[i].children), container, &list))
			continue;
		assert_true(found == 0 || found == list.sites[0].site);
		found = list.sites[0].site;
	}
	assert_int_not_equal(found, 0);
	return (uint32_t)(found - id_of(0));
}

/* Who is to leave has, unless something lies there. */
static void check_withdrawn(void)
{
	struct cross_container list;
	uint32_t in = 0;
	for (uint32_t i = 0; i < SITES; i++) {
		bool holds = false;
		if (removed[i])
			continue;
		for (uint32_t k = 0; k < items_count; k++)
			holds |= items[k].there && items[k].site == i && !same(items[k].id, container);
		if (!holds && replica_is_leaving(sites[i].replica, container))
			fail_msg("site %u is to leave, holds nothing, and is still there", i);
		in += !has_left(i);
	}
	assert_true(cross_names_get(cross_children_names(sites[prime()].children), container, &list));
	assert_int_equal(list.count, in);
}

/* The site that made the child is there, and has its name: others that hold it do not. */
static bool is_anothers(const struct item *item)
{
	for (uint64_t i = 1; i <= users_count; i++)
		if (users[i].wants == MAKES && same(users[i].child, item->id))
			return users[i].site != item->site && !removed[users[i].site];
	return false;
}

/* A site that was removed had been asked to rename it, or delete it, and may have told nobody. */
static bool is_torn(struct replica_id id)
{
	for (uint64_t i = 1; i <= users_count; i++)
		if (users[i].wants != MAKES && same(users[i].child, id) && removed[users[i].site])
			return true;
	return false;
}

static void check_end(void)
{
	static const char *const names[NAMES] = {"red", "blue", "green", "white", "black"};
	uint32_t kept[NAMES] = {0};
	struct replica_id whose[NAMES] = {0};
	bool torn = false;
	for (uint32_t i = 0; i < items_count; i++) {
		struct cross_claim_view view;
		if (!items[i].there || same(items[i].id, container) || removed[items[i].site] || is_anothers(&items[i]))
			continue;
		assert_int_equal(cross_children_look(sites[items[i].site].children, items[i].id, &view), 0);
		assert_true(str_equal(view.claim.name, str_of(items[i].name)));
		bool may_lose = optimistic || is_torn(items[i].id);
		torn |= may_lose;
		assert_true(view.state == CROSS_KEPT || (may_lose && view.state == CROSS_LOST));
		for (uint32_t k = 0; k < NAMES; k++) {
			if (view.state != CROSS_KEPT || strcmp(items[i].name, names[k]) != 0)
				continue;
			kept[k] += kept[k] == 0 || !same(whose[k], items[i].id);
			whose[k] = items[i].id;
		}
	}
	for (uint32_t k = 0; k < NAMES; k++) {
		struct cross_entry_view entry;
		int code = cross_names_entry(cross_children_names(sites[prime()].children), container, STR("sample.thing"),
		                             str_of(names[k]), &entry);
		if (torn) /* one that lost its name stays so, also when who had it is gone */
			assert_true(kept[k] <= (uint32_t)any_there(names[k]));
		else
			assert_int_equal(kept[k], any_there(names[k]));
		assert_int_equal(code, kept[k] ? 0 : ERR_NOT_FOUND);
	}
	for (uint32_t i = 0; i < SITES; i++)
		if (!removed[i])
			assert_int_equal(cross_names_counters(cross_children_names(sites[i].children)).active, 0);
	/* Who was told that it was made, and never asked to delete it, has it. */
	for (uint64_t ticket = 1; ticket <= users_count; ticket++) {
		bool deleted = false;
		if (users[ticket].wants != MAKES || !users[ticket].accepted || same(users[ticket].child, container) ||
		    removed[users[ticket].site])
			continue;
		for (uint64_t other = 1; other <= users_count; other++)
			deleted |= users[other].wants == DELETES && same(users[other].child, users[ticket].child);
		const struct item *item = item_of(users[ticket].site, users[ticket].child);
		assert_true(deleted || (item && item->there));
	}
}

/* What a service refused to make is known all the same, and has to be deleted as well. */
static void delete_known(uint32_t site)
{
	const struct choir_table *rows = &sites[site].name_rows.tables[CROSS_CHILDREN];
	for (uint32_t i = 0; i < rows->count && users_count + 2 < USERS; i++) {
		struct replica_id id;
		memcpy(id.bytes, choir_row_key(rows->rows[i]).at, sizeof(id.bytes));
		change(site, id, NULL);
	}
}

/* But for what was never made at the one site that is left of those that were to hold it: its service refused that, which is for a person to decide. */
static uint32_t rows_of(uint32_t site, int table)
{
	const struct choir_table *rows = &sites[site].name_rows.tables[table];
	uint32_t count = rows->count;
	for (uint32_t i = 0; i < rows->count && table == CROSS_CHILDREN; i++) {
		struct child child;
		assert_true(child_parse(choir_row_value(rows->rows[i]), &child));
		count -= !child.claimed && child.name.length == 0 && removed[child.maker - id_of(0)];
	}
	return count;
}

static void delete_all(void)
{
	for (uint32_t i = 0; i < items_count; i++)
		if (items[i].there && !same(items[i].id, container) && !removed[items[i].site])
			change(items[i].site, items[i].id, NULL);
	settle(130);
	for (uint32_t i = 0; i < SITES && removes; i++)
		if (!removed[i])
			delete_known(i);
	settle(130);
	check_withdrawn();
	change(prime(), container, NULL);
	settle(130);
	for (uint32_t i = 0; i < SITES; i++) {
		struct cross_container list;
		if (removed[i])
			continue;
		assert_false(cross_names_get(cross_children_names(sites[i].children), container, &list));
		for (int table = 0; table < CROSS_TABLES; table++)
			if (table != CROSS_META && rows_of(i, table) > 0)
				fail_msg("site %u has rows of table %d", i, table);
		for (uint32_t k = 0; k < items_count; k++)
			assert_false(items[k].there && !removed[items[k].site]);
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
		memcpy(cut, removed, sizeof(cut));
		settle(400);
		check_end();
		check_withdrawn();
		delete_all();
	}
}

static void strict_by_chance(void **state)
{
	(void)state;
	by_chance(false, 30, 6000);
}

static void sites_are_removed_by_chance(void **state)
{
	(void)state;
	removes = true;
	by_chance(false, 100, 6000);
	removes = false;
}

static void optimistic_by_chance(void **state)
{
	(void)state;
	by_chance(true, 30, 6000);
}

static void sites_leave_by_chance(void **state)
{
	(void)state;
	withdraws = true;
	by_chance(false, 60, 6000);
	by_chance(true, 20, 6000);
	withdraws = false;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_site_makes_the_same_first_list, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_is_one_childs, setup, teardown),
		cmocka_unit_test_setup_teardown(a_rename_takes_one_name_and_leaves_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_is_claimed_by_who_made_it, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_of_nobody_is_free_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(what_was_made_keeps_its_name_after_a_crash, setup, teardown),
		cmocka_unit_test_setup_teardown(the_next_site_is_prime, setup, teardown),
		cmocka_unit_test_setup_teardown(the_prime_hands_over_and_leaves, setup, teardown),
		cmocka_unit_test_setup_teardown(the_prime_waits_for_who_is_away, setup, teardown),
		cmocka_unit_test_setup_teardown(what_lies_there_keeps_its_site, setup, teardown),
		cmocka_unit_test_setup_teardown(both_primes_are_to_leave, setup, teardown),
		cmocka_unit_test_setup_teardown(the_prime_is_forced_out, setup, teardown),
		cmocka_unit_test_setup_teardown(two_lists_of_one_term_become_one, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_passes_to_who_holds_the_child, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_passes_on_and_on, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_waits_for_who_is_to_hold_the_child, setup, teardown),
		cmocka_unit_test_setup_teardown(a_name_stays_when_its_maker_is_forced_out, setup, teardown),
		cmocka_unit_test_setup_teardown(strict_by_chance, setup, teardown),
		cmocka_unit_test_setup_teardown(optimistic_by_chance, setup, teardown),
		cmocka_unit_test_setup_teardown(sites_leave_by_chance, setup, teardown),
		cmocka_unit_test_setup_teardown(sites_are_removed_by_chance, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
