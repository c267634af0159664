/* Lists of the sites of a container, and how all of them move to a later one. */
#include "cross/names_int.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Lists ------------------------------------------------------------------------------------------------------------- */

void cross_container_make(struct cross_container *container, const site_id *sites, uint32_t count, bool optimistic)
{
	CHECK(count > 0 && count <= LIMIT_REPLICA_MEMBERS);
	*container = (struct cross_container){.term = 1, .since = 1, .optimistic = optimistic, .count = count};
	for (uint32_t i = 0; i < count; i++) {
		container->sites[i].site = sites[i];
		container->sites[i].joined = 1;
	}
}

static uint32_t index_in(const struct cross_container *list, site_id site)
{
	uint32_t i = 0;
	while (i < list->count && list->sites[i].site != site)
		i++;
	return i;
}

int cross_container_add(struct cross_container *container, site_id site, struct err *err)
{
	if (index_in(container, site) < container->count)
		return err_set(err, ERR_CONFLICT, "the container is at this site already");
	if (container->count == LIMIT_REPLICA_MEMBERS)
		return err_set(err, ERR_LIMIT, "a container is at no more than %d sites", LIMIT_REPLICA_MEMBERS);
	container->term++;
	container->sites[container->count].site = site;
	container->sites[container->count++].joined = container->term;
	return 0;
}

int cross_container_drop(struct cross_container *container, site_id site, struct err *err)
{
	uint32_t at = index_in(container, site);
	if (at == container->count)
		return err_set(err, ERR_NOT_FOUND, "the container is not at this site");
	if (container->count == 1)
		return err_set(err, ERR_INVALID, "this is the last site of the container: delete it instead");
	container->term++;
	if (at == 0)
		container->since = container->term;
	memmove(&container->sites[at], &container->sites[at + 1],
	        (container->count - at - 1) * sizeof(container->sites[0]));
	container->count--;
	return 0;
}

/* ---- In memory --------------------------------------------------------------------------------------------------------- */

struct container *container_of(const struct cross_names *names, struct replica_id id)
{
	return map_get(&names->containers, names_id_str(&id));
}

uint32_t container_index(const struct container *it, site_id site)
{
	return index_in(&it->list, site);
}

void container_save(struct cross_names *names, const struct container *it)
{
	struct buf row = {0};
	put_number(&row, NAMES_ROW_VERSION, 1);
	put_number(&row, it->known, 8);
	put_number(&row, it->list.term, 8);
	container_put(&it->list, &row);
	names->host.put(names->host.context, CROSS_CONTAINERS, names_id_str(&it->id), buf_str(&row));
	buf_free(&row);
}

static uint64_t all_of(const struct cross_container *list)
{
	return list->count < 64 ? ((uint64_t)1 << list->count) - 1 : UINT64_MAX;
}

/* Has the prime nothing to ask its sites? */
static bool is_settled(const struct container *it)
{
	uint64_t all = all_of(&it->list);
	return it->known == all && !it->orphans && (!it->leaving || it->ready == all);
}

static struct container *container_new(struct cross_names *names, struct replica_id id)
{
	struct container *it = calloc(1, sizeof(*it));
	CHECK(it != NULL);
	it->id = id;
	map_set(&names->containers, names_id_str(&it->id), it);
	return it;
}

bool container_load(struct cross_names *names, struct str key, struct str row)
{
	struct reader reader = reader_of(row);
	struct replica_id id;
	struct cross_container list = {0};
	uint8_t version = read_8(&reader);
	uint64_t known = read_64(&reader);
	list.term = read_64(&reader);
	if (version != NAMES_ROW_VERSION || key.length != sizeof(id.bytes) || !container_read(&reader, &list) ||
	    reader.left > 0)
		return false;
	memcpy(id.bytes, key.at, sizeof(id.bytes));
	struct container *it = container_new(names, id);
	it->list = list;
	it->known = known;
	if (container_is_prime(names, it) && !is_settled(it))
		active_make(names, CROSS_CONTAINERS, names_id_str(&it->id));
	return true;
}

/* ---- A later list ------------------------------------------------------------------------------------------------------ */

/* Who may be granted names. All, of a list that a container is made with: whoever knows the container knows it. Of a later one, with the same
 * prime, those that were; the others once all have said that they are ready. With another prime, nobody until then. */
static uint64_t known_after(const struct container *it, const struct cross_container *list, bool same_reign)
{
	uint64_t known = 0;
	if (list->term == 1)
		return all_of(list);
	for (uint32_t i = 0; same_reign && i < list->count; i++) {
		uint32_t before = index_in(&it->list, list->sites[i].site);
		if (before < it->list.count && it->list.sites[before].joined == list->sites[i].joined &&
		    it->known >> before & 1)
			known |= (uint64_t)1 << i;
	}
	return known;
}

static void hurry(struct cross_names *names, const struct container *it)
{
	for (uint32_t i = 0; i < names->active_count; i++) {
		struct active *active = names->active[i];
		if (active->key.length > 16 && memcmp(active->key.bytes + 1, it->id.bytes, 16) == 0) {
			active->due_us = names->now.us;
			active->wait_us = 0;
		}
	}
}

/* Of a child that several sites claim the prime's entry may be that of one who is gone: whoever else does says so again. */
static bool is_without_some(const struct cross_container *before, const struct cross_container *list)
{
	bool without = false;
	for (uint32_t i = 0; i < before->count; i++)
		without |= index_in(list, before->sites[i].site) == list->count;
	return without;
}

void container_adopt(struct cross_names *names, struct container *it, const struct cross_container *list)
{
	site_id self = names->options.self;
	bool was_prime = container_is_prime(names, it);
	uint32_t before = index_in(&it->list, self), after = index_in(list, self);
	bool was_in = before < it->list.count, is_in = after < list->count;
	bool same_reign = was_in && it->list.since == list->since && it->list.sites[0].site == list->sites[0].site;
	bool came_again = was_in && is_in && it->list.sites[before].joined != list->sites[after].joined;
	it->known = known_after(it, list, same_reign && was_prime);
	struct cross_container last = it->list;
	it->ready = 0;
	it->list = *list;
	it->leaving &= container_is_prime(names, it);
	container_save(names, it);
	if (!is_in)
		claims_drop(names, it->id);
	else if (was_in && (!same_reign || came_again || is_without_some(&last, list)))
		claims_anew(names, it, came_again);
	if (was_prime && container_is_prime(names, it) && same_reign)
		prime_leave_behind(names, it, &last);
	else if (was_prime)
		prime_drop(names, it->id);
	if (container_is_prime(names, it) && !is_settled(it))
		active_make(names, CROSS_CONTAINERS, names_id_str(&it->id));
	hurry(names, it);
}

void container_set(struct cross_names *names, struct replica_id id, const struct cross_container *list)
{
	struct container *it = container_of(names, id);
	if (it && it->list.term >= list->term)
		return;
	if (!it)
		it = container_new(names, id);
	container_adopt(names, it, list);
}

bool cross_names_get(const struct cross_names *names, struct replica_id container, struct cross_container *list)
{
	const struct container *it = container_of(names, container);
	if (it)
		*list = it->list;
	return it != NULL;
}

void cross_names_containers(const struct cross_names *names,
                            bool (*each)(void *context, struct replica_id id, const struct cross_container *list),
                            void *context)
{
	struct str key;
	void *value;
	for (size_t cursor = 0; map_next(&names->containers, &cursor, &key, &value);) {
		const struct container *it = value;
		if (!each(context, it->id, &it->list))
			return;
	}
}

/* ---- All become ready --------------------------------------------------------------------------------------------------- */

/* The prime has answered for all that this site holds; and the host knows of nothing that it still has to claim. */
static bool is_ready(struct cross_names *names, const struct container *it)
{
	return claims_told(names, it) &&
	       (!names->host.has_claimed || names->host.has_claimed(names->host.context, it->id, &it->list));
}

static void look_whether_all_are_ready(struct cross_names *names, struct container *it)
{
	it->ready = (it->ready & ~(uint64_t)1) | is_ready(names, it);
	if (it->ready != all_of(&it->list))
		return;
	if (it->known != it->ready) {
		it->known = it->ready;
		container_save(names, it);
	}
	prime_drop_orphans(names, it);
	active_end(names, CROSS_CONTAINERS, names_id_str(&it->id));
}

void container_due(struct cross_names *names, struct active *active)
{
	struct replica_id id;
	CHECK(active->key.length == 1 + sizeof(id.bytes));
	memcpy(id.bytes, active->key.bytes + 1, sizeof(id.bytes));
	struct container *it = container_of(names, id);
	if (!it || !container_is_prime(names, it) || is_settled(it)) {
		active_end(names, CROSS_CONTAINERS, names_id_str(&id));
		return;
	}
	for (uint32_t i = 1; i < it->list.count; i++) {
		if ((it->ready >> i & 1) == 0)
			names_tell(names, it, it->list.sites[i].site, MESSAGE_LIST);
	}
	active_again(names, active);
	look_whether_all_are_ready(names, it);
}

void container_ready(struct cross_names *names, struct container *it, site_id from)
{
	uint32_t index = container_index(it, from);
	if (!container_is_prime(names, it) || index == it->list.count || is_settled(it))
		return;
	it->ready |= (uint64_t)1 << index;
	look_whether_all_are_ready(names, it);
}

/* In memory only: after a crash they are asked once more. Alone it could not be followed by anybody. */
bool container_hands_over(struct cross_names *names, struct container *it)
{
	if (!it->leaving) {
		it->leaving = true;
		it->ready = 0;
		struct active *active = active_make(names, CROSS_CONTAINERS, names_id_str(&it->id));
		active->wait_us = 0;
		container_due(names, active);
	}
	return it->list.count > 1 && it->ready == all_of(&it->list);
}

static bool is_same(const struct cross_container *a, const struct cross_container *b)
{
	bool same = a->since == b->since && a->count == b->count;
	for (uint32_t i = 0; i < a->count && same; i++)
		same = a->sites[i].site == b->sites[i].site && a->sites[i].joined == b->sites[i].joined;
	return same;
}

/* Two lists of one term: a prime was forced out, or removed, that had told its last one to some only. Who follows it goes one term further; it hears
 * of the other list from whoever has that. Nobody but a prime is answered, so that this ends. */
static void untangle(struct cross_names *names, struct container *it, site_id from, const struct cross_container *list)
{
	bool theirs = list->sites[0].site == from, ours = container_is_prime(names, it);
	if (ours && container_index(it, from) < it->list.count && (!theirs || names->options.self < from)) {
		struct cross_container next = it->list;
		next.term++;
		container_adopt(names, it, &next);
	} else if (theirs) {
		names_tell(names, it, from, MESSAGE_LIST);
	}
}

/* A list that somebody sent. */
void container_told(struct cross_names *names, struct container *it, site_id from, const struct cross_container *list)
{
	if (list->term > it->list.term &&
	    (index_in(list, from) < list->count || container_index(it, from) < it->list.count))
		container_adopt(names, it, list);
	else if (list->term < it->list.term)
		names_tell(names, it, from, MESSAGE_LIST);
	else if (list->term == it->list.term && !is_same(list, &it->list))
		untangle(names, it, from, list);
	if (it->list.term == list->term && it->list.sites[0].site == from &&
	    container_index(it, names->options.self) < it->list.count && is_ready(names, it))
		names_tell(names, it, from, MESSAGE_READY);
}
