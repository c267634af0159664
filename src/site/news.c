/* What is passed on: rumours on the states of members, records, and coordinates.
 *
 * A rumour is sent a number of times that grows with the logarithm of the number of sites, those sent least often first
 * (SWIM, 4.1). While there are more than fit into a datagram, hearing one from others counts as sending it: the
 * more know it already, the sooner it makes room for others. Members of whom there is news or a suspicion have an entry (struct hot); most have none.
 *
 *     rumours[sends] -> hot <-> hot <-> hot     one list for each number of sends
 *
 * Records of the authority are pushed the same way. Cards are not: a rumour tells the version of the card, and who lacks it
 * asks. Coordinates are passed on a few times, the freshest first: who misses one hears the next. */
#include "site/site_int.h"

#include "base/check.h"

#include <stdlib.h>

static uint32_t bits_of(uint32_t number)
{
	return number == 0 ? 0 : 32 - (uint32_t)__builtin_clz(number);
}

/* How often a rumour is sent: 6 times among two sites, 14 among a thousand, 18 among ten thousand. */
static uint32_t sends_limit(const struct site *site)
{
	uint32_t limit = bits_of(site_live_count(site)) + 4;
	return limit < SITE_SENDS_MAX ? limit : SITE_SENDS_MAX;
}

/* ---- Entries ------------------------------------------------------------------------------------------------------- */

static uint32_t take_entry(struct site *site)
{
	if (site->hots_free != SITE_NONE) {
		uint32_t entry = site->hots_free;
		site->hots_free = site->hots[entry].member;
		return entry;
	}
	site->hots = site_grow(site->hots, &site->hots_capacity, site->hots_count + 1, sizeof(struct hot));
	return site->hots_count++;
}

struct hot *news_hot(struct site *site, uint32_t number)
{
	struct member *member = &site->members[number];
	if (member->hot == SITE_NONE) {
		member->hot = take_entry(site);
		site->hots[member->hot] = (struct hot){.member = number};
	}
	return &site->hots[member->hot];
}

void news_release(struct site *site, uint32_t number)
{
	struct member *member = &site->members[number];
	if (member->hot == SITE_NONE || site->hots[member->hot].queued || site->hots[member->hot].suspicion)
		return;
	site->hots[member->hot].member = site->hots_free;
	site->hots_free = member->hot;
	member->hot = SITE_NONE;
}

/* ---- Rumours ------------------------------------------------------------------------------------------------------- */

static void enqueue(struct site *site, uint32_t entry, uint8_t sends)
{
	struct hot *hot = &site->hots[entry];
	uint32_t last = site->rumours_last[sends];
	hot->sends = sends;
	hot->queued = true;
	hot->previous = last;
	hot->next = SITE_NONE;
	if (last == SITE_NONE)
		site->rumours[sends] = entry;
	else
		site->hots[last].next = entry;
	site->rumours_last[sends] = entry;
	site->rumours_count++;
}

static void dequeue(struct site *site, uint32_t entry)
{
	struct hot *hot = &site->hots[entry];
	if (hot->previous == SITE_NONE)
		site->rumours[hot->sends] = hot->next;
	else
		site->hots[hot->previous].next = hot->next;
	if (hot->next == SITE_NONE)
		site->rumours_last[hot->sends] = hot->previous;
	else
		site->hots[hot->next].previous = hot->previous;
	hot->queued = false;
	site->rumours_count--;
}

void news_add(struct site *site, uint32_t number, site_id accuser)
{
	if (!site->started || site->loading)
		return; /* what it knew before, or was told when it joined: that is old */
	struct hot *hot = news_hot(site, number);
	uint32_t entry = site->members[number].hot;
	hot->accuser = accuser;
	if (hot->queued)
		dequeue(site, entry);
	enqueue(site, entry, 0);
}

void news_remove(struct site *site, uint32_t number)
{
	uint32_t entry = site->members[number].hot;
	if (entry != SITE_NONE && site->hots[entry].queued)
		dequeue(site, entry);
	news_release(site, number);
}

static void count_as_sent(struct site *site, uint32_t entry, uint32_t limit)
{
	uint32_t sends = site->hots[entry].sends + 1u;
	dequeue(site, entry);
	if (sends < limit)
		enqueue(site, entry, (uint8_t)sends);
	else
		news_release(site, site->hots[entry].member);
}

void news_known(struct site *site, uint32_t number)
{
	uint32_t entry = site->members[number].hot;
	if (site->rumours_count > SITE_RUMOURS_SENT && entry != SITE_NONE && site->hots[entry].queued)
		count_as_sent(site, entry, sends_limit(site));
}

uint32_t news_take(struct site *site, struct status *statuses, uint32_t most)
{
	uint32_t entries[SITE_RUMOURS_SENT];
	uint32_t count = 0, limit = sends_limit(site);
	CHECK(most <= SITE_RUMOURS_SENT);
	/* First all that go, then they are counted: else the second list would give those of the first again. */
	for (uint32_t sends = 0; sends < SITE_SENDS_MAX && count < most; sends++)
		for (uint32_t at = site->rumours[sends]; at != SITE_NONE && count < most; at = site->hots[at].next)
			entries[count++] = at;
	for (uint32_t i = 0; i < count; i++) {
		statuses[i] = member_status(site, site->hots[entries[i]].member);
		count_as_sent(site, entries[i], limit);
	}
	return count;
}

/* ---- Records ------------------------------------------------------------------------------------------------------- */

static void drop_pushed(struct site *site, uint32_t at)
{
	held_drop(site->pushed[at].held);
	site->pushed_count--;
	memmove(&site->pushed[at], &site->pushed[at + 1], (site->pushed_count - at) * sizeof(site->pushed[0]));
}

void news_push_record(struct site *site, struct held *held)
{
	if (!site->started || site->loading)
		return;
	for (uint32_t i = 0; i < site->pushed_count; i++)
		if (site->pushed[i].held->kind == held->kind && site->pushed[i].held->subject == held->subject)
			drop_pushed(site, i--);
	if (site->pushed_count == SITE_PUSHED)
		drop_pushed(site, 0); /* who has not heard of it yet will, when tables are compared */
	site->pushed[site->pushed_count].held = held_keep(held);
	site->pushed[site->pushed_count++].sends = 0;
}

/* The next one that fits, from *cursor on. It is counted as sent, and stays valid until the next call. */
struct held *news_take_record(struct site *site, size_t room, uint32_t *cursor)
{
	uint32_t limit = sends_limit(site);
	while (*cursor < site->pushed_count) {
		if (site->pushed[*cursor].sends >= limit) {
			drop_pushed(site, *cursor);
			continue;
		}
		uint32_t at = (*cursor)++;
		if (site->pushed[at].held->length + (size_t)SECTION_HEAD_BYTES > room)
			continue;
		site->pushed[at].sends++;
		return site->pushed[at].held;
	}
	return NULL;
}

/* ---- Coordinates --------------------------------------------------------------------------------------------------- */

static void drop_placed(struct site *site, uint32_t at)
{
	site->placed_count--;
	memmove(&site->placed[at], &site->placed[at + 1], (site->placed_count - at) * sizeof(site->placed[0]));
}

void news_add_place(struct site *site, site_id id)
{
	for (uint32_t i = 0; i < site->placed_count; i++)
		if (site->placed[i].id == id)
			drop_placed(site, i--);
	if (site->placed_count == SITE_PLACED)
		drop_placed(site, 0);
	site->placed[site->placed_count].id = id;
	site->placed[site->placed_count++].sends = 0;
}

uint32_t news_take_places(struct site *site, uint32_t *numbers, uint32_t most)
{
	uint32_t count = 0;
	for (uint32_t i = site->placed_count; i-- > 0 && count < most;) {
		uint32_t number = table_find(site, site->placed[i].id);
		if (number != SITE_NONE)
			numbers[count++] = number;
		if (number == SITE_NONE || ++site->placed[i].sends >= SITE_PLACED_SENDS)
			drop_placed(site, i);
	}
	return count;
}

/* Coordinates can wait for the next ping. */
bool news_any(const struct site *site)
{
	return site->rumours_count > 0 || site->pushed_count > 0;
}

void news_free(struct site *site)
{
	while (site->pushed_count > 0)
		drop_pushed(site, site->pushed_count - 1);
	free(site->hots);
}
