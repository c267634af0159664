/* The table: members in one array, found by id and by name, and in the list of those who are probed in turn.
 *
 * The last member takes the number of one that is removed. Each member is in one list at the most, and knows its place. */
#include "site/site_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Look-ups ----------------------------------------------------------------------------------------------------- */

static uint64_t id_hash(const struct site *site, site_id id)
{
	return site_place(id ^ site->options.hash_key.k0);
}

static uint64_t member_id_hash(const void *owner, uint32_t number)
{
	const struct site *site = owner;
	return id_hash(site, site->members[number].id);
}

static uint64_t member_name_hash(const void *owner, uint32_t number)
{
	const struct site *site = owner;
	return hash_bytes(&site->options.hash_key, held_name(site->members[number].card));
}

static uint64_t removal_hash(const void *owner, uint32_t number)
{
	const struct site *site = owner;
	return id_hash(site, site->removals[number]->subject);
}

/* Before the first member is added: structs may have moved since they were made. */
static void set_up(struct site *site)
{
	site->by_id.owner = site->by_name.owner = site->removals_by_id.owner = site;
	site->by_id.hash_of = member_id_hash;
	site->by_name.hash_of = member_name_hash;
	site->removals_by_id.hash_of = removal_hash;
}

uint32_t table_find(const struct site *site, site_id id)
{
	uint32_t cursor = 0, number;
	uint64_t hash = id_hash(site, id);
	while ((number = index_next(&site->by_id, hash, &cursor)) != SITE_NONE)
		if (site->members[number].id == id)
			return number;
	return SITE_NONE;
}

uint32_t table_find_name(const struct site *site, struct str name)
{
	uint32_t cursor = 0, number, revoked = SITE_NONE;
	uint64_t hash = hash_bytes(&site->options.hash_key, name);
	while ((number = index_next(&site->by_name, hash, &cursor)) != SITE_NONE) {
		const struct member *member = &site->members[number];
		if (!str_equal(held_name(member->card), name))
			continue;
		if (member->state != SITE_REVOKED)
			return number;
		revoked = number;
	}
	return revoked;
}

struct held *removal_find(const struct site *site, site_id id)
{
	uint32_t cursor = 0, number;
	uint64_t hash = id_hash(site, id);
	while ((number = index_next(&site->removals_by_id, hash, &cursor)) != SITE_NONE)
		if (site->removals[number]->subject == id)
			return site->removals[number];
	return NULL;
}

/* ---- Lists -------------------------------------------------------------------------------------------------------- */

static void list_put(struct site *site, struct list *list, uint32_t at, uint32_t number)
{
	list->items[at] = number;
	site->members[number].position = at;
}

static void list_swap(struct site *site, struct list *list, uint32_t a, uint32_t b)
{
	uint32_t number = list->items[a];
	list_put(site, list, a, list->items[b]);
	list_put(site, list, b, number);
}

/* To a random place among those whose turn is still to come. */
static void list_add(struct site *site, struct list *list, uint32_t number)
{
	list->items = site_grow(list->items, &list->capacity, list->count + 1, sizeof(uint32_t));
	list_put(site, list, list->count, number);
	list->count++;
	list_swap(site, list, list->count - 1, list->cursor + site_draw_below(site, list->count - list->cursor));
}

/* One that had its turn fills a hole among those that had theirs, so that nobody is passed over. */
static void list_remove(struct site *site, struct list *list, uint32_t at)
{
	if (at < list->cursor) {
		list->cursor--;
		list_swap(site, list, at, list->cursor);
		at = list->cursor;
	}
	list->count--;
	list_swap(site, list, at, list->count);
}

void table_set_list(struct site *site, uint32_t number, enum member_list list)
{
	struct member *member = &site->members[number];
	if (member->list == list)
		return;
	if (member->list != LIST_NONE)
		list_remove(site, &site->lists[member->list], member->position);
	member->list = (uint8_t)list;
	if (list != LIST_NONE)
		list_add(site, &site->lists[list], number);
}

uint32_t table_draw(struct site *site, enum member_list list)
{
	const struct list *from = &site->lists[list];
	return from->count == 0 ? SITE_NONE : from->items[site_draw_below(site, from->count)];
}

uint32_t table_next(struct site *site, enum member_list which)
{
	struct list *list = &site->lists[which];
	if (list->count == 0)
		return SITE_NONE;
	if (list->cursor >= list->count)
		list->cursor = 0;
	/* Shuffled as it goes (Fisher and Yates): the next is drawn from all that had no turn yet. */
	list_swap(site, list, list->cursor, list->cursor + site_draw_below(site, list->count - list->cursor));
	return list->items[list->cursor++];
}

/* ---- Members ------------------------------------------------------------------------------------------------------ */

uint32_t table_add(struct site *site, site_id id, struct held *card)
{
	if (site->members_count >= LIMIT_SITES)
		return SITE_NONE;
	if (site->members_count == 0)
		set_up(site);
	uint32_t number = site->members_count;
	site->members = site_grow(site->members, &site->members_capacity, number + 1, sizeof(struct member));
	site->members[number] = (struct member){.id = id, .card = card, .hot = SITE_NONE, .state = SITE_LOST};
	site->members_count++;
	index_add(&site->by_id, number);
	if (card)
		index_add(&site->by_name, number);
	return number;
}

void table_set_card(struct site *site, uint32_t number, struct held *card)
{
	struct member *member = &site->members[number];
	if (member->card)
		index_remove(&site->by_name, number);
	held_drop(member->card);
	member->card = card;
	index_add(&site->by_name, number);
}

/* The last one takes its number. */
static void fill_hole(struct site *site, uint32_t hole)
{
	uint32_t last = site->members_count - 1;
	if (hole == last)
		return;
	index_rename(&site->by_id, last, hole);
	index_rename(&site->by_name, last, hole);
	struct member *member = &site->members[hole];
	*member = site->members[last];
	if (member->list != LIST_NONE)
		site->lists[member->list].items[member->position] = hole;
	if (member->hot != SITE_NONE)
		site->hots[member->hot].member = hole;
}

void table_remove(struct site *site, uint32_t number)
{
	CHECK(number > 0 && number < site->members_count);
	suspicion_end(site, number);
	news_remove(site, number);
	table_set_list(site, number, LIST_NONE);
	index_remove(&site->by_id, number);
	index_remove(&site->by_name, number);
	held_drop(site->members[number].card);
	fill_hole(site, number);
	site->members_count--;
}

void table_free(struct site *site)
{
	for (uint32_t i = 0; i < site->members_count; i++)
		held_drop(site->members[i].card);
	for (uint32_t i = 0; i < site->removals_count; i++)
		held_drop(site->removals[i]);
	for (uint32_t i = 0; i < site->roots_count; i++)
		held_drop(site->roots[i]);
	for (uint32_t i = 0; i < SITE_CLAIMANTS; i++)
		held_drop(site->claimants[i].card);
	for (int i = 0; i < LISTS; i++)
		free(site->lists[i].items);
	index_free(&site->by_id);
	index_free(&site->by_name);
	index_free(&site->removals_by_id);
	free(site->members);
	free(site->removals);
}
