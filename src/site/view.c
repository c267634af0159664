/* A snapshot of the table, for the data plane. */
#include "site/site_int.h"

#include "base/arena.h"
#include "base/check.h"

static void fill_entry(struct arena *arena, const struct member *member, struct site_snapshot_entry *entry)
{
	struct site_record record;
	struct site_card card;
	held_record(member->card, &record);
	CHECK(site_card_parse(arena, record.body, &card, NULL) == 0); /* it was when it was accepted */
	*entry = (struct site_snapshot_entry){.place = {.id = member->id,
	                                                .name = card.name,
	                                                .address = card.address,
	                                                .state = (enum site_state)member->state,
	                                                .tags = card.tags,
	                                                .tags_count = card.tags_count},
	                                      .since_ms = member->since_ms,
	                                      .rtt_us = member->rtt_us > 0 ? (int64_t)member->rtt_us : SCOPE_RTT_UNKNOWN,
	                                      .coordinate = member->coordinate,
	                                      .services = card.services,
	                                      .services_count = card.services_count};
}

struct site_snapshot *site_snapshot_new(const struct site *site, uint64_t number)
{
	struct arena arena;
	arena_init(&arena, 0);
	CHECK(site->members[0].card != NULL);
	struct site_snapshot_entry *entries = arena_array(&arena, struct site_snapshot_entry, site->members_count);
	site_id *removed = arena_array(&arena, site_id, site->removals_count);
	uint32_t count = 0;
	for (uint32_t i = 0; i < site->members_count; i++)
		if (site->members[i].state != SITE_REVOKED)
			fill_entry(&arena, &site->members[i], &entries[count++]);
	for (uint32_t i = 0; i < site->removals_count; i++)
		removed[i] = site->removals[i]->subject;
	entries[0].rtt_us = 0;
	struct site_snapshot *snapshot = site_snapshot_make(entries, count, removed, site->removals_count, number);
	arena_free(&arena);
	return snapshot;
}
