/* What the fuzz targets of sites share: a host that takes anything that is not signed "forged", and what has to hold. */
#ifndef FUZZ_SITE_FUZZ_H
#define FUZZ_SITE_FUZZ_H

#include "site/site_int.h"

#include "base/check.h"

enum { FUZZ_PEERS = 3 };

struct fuzz_host {
	uint64_t random;
	uint64_t sent;
};

static inline site_id fuzz_id(unsigned number)
{
	return UINT64_C(0x1111111100000001) + number;
}

static inline void fuzz_send(void *context, site_id to, const struct site_address *address, struct str bytes)
{
	struct fuzz_host *host = context;
	struct message message;
	CHECK(to != 0 && address != NULL && bytes.length <= LIMIT_SITE_MESSAGE_BYTES);
	CHECK(message_parse(bytes, &message) == 0); /* what we send makes sense to ourselves */
	host->sent++;
}

static inline bool fuzz_verify(void *context, const struct site_record *record)
{
	(void)context;
	return !str_equal(record->signature, STR("forged"));
}

static inline uint64_t fuzz_random(void *context)
{
	struct fuzz_host *host = context;
	return site_place(host->random++);
}

static inline void fuzz_event(void *context, const struct site_event *event)
{
	(void)context;
	CHECK(event->subject != 0 && event->name.at != NULL && event->text.at != NULL);
}

static inline void fuzz_card(struct buf *record, site_id id, const char *name, uint64_t version)
{
	struct site_card card = {.name = str_of(name),
	                         .address = {.family = 4, .ip = {10, 0, 0, 1}, .port = 7000},
	                         .version = STR("0.1"),
	                         .born_ms = 1000,
	                         .certificate = STR("certificate")};
	struct buf body = {0};
	CHECK(site_card_encode(&body, &card, NULL) == 0);
	site_record_begin(record, SITE_CARD, id, version, buf_str(&body));
	site_record_finish(record, STR("signed"));
	buf_free(&body);
}

static inline struct site *fuzz_site(struct fuzz_host *host, struct site_now now)
{
	static const char *const names[] = {"Site0", "Site1", "Site2", "Site3"};
	struct site_options options = {.self = fuzz_id(0), .timing = site_timing_default(), .hash_key = {1, 2}};
	struct site_host functions = {host, fuzz_send, fuzz_verify, fuzz_random, fuzz_event};
	struct site *site = site_new(&options, &functions);
	struct buf record = {0};
	fuzz_card(&record, fuzz_id(0), names[0], 1);
	CHECK(site_set_card(site, buf_str(&record), now, NULL) == 0);
	for (unsigned i = 1; i <= FUZZ_PEERS; i++) {
		buf_clear(&record);
		fuzz_card(&record, fuzz_id(i), names[i], 1);
		CHECK(site_add_record(site, buf_str(&record), now, NULL) == 0);
	}
	buf_free(&record);
	return site;
}

/* The table holds together. */
static inline void fuzz_check(const struct site *site)
{
	struct site_member member;
	uint32_t live = 0, lost = 0;
	for (uint32_t i = 0; i < site_count(site); i++) {
		site_member(site, i, &member);
		CHECK(site_find(site, member.id) == i);
		CHECK(site_find_name(site, member.name) != SCOPE_NO_INDEX);
		CHECK(i == 0 || (member.state == SITE_REVOKED) == site_is_removed(site, member.id));
		live += i > 0 && (member.state == SITE_ALIVE || member.state == SITE_SUSPECT);
		lost += member.state == SITE_LOST;
		CHECK(member.state != SITE_SUSPECT ||
		      (site->members[i].hot != SITE_NONE && site->hots[site->members[i].hot].suspicion));
	}
	CHECK(live == site->lists[LIST_LIVE].count && lost == site->lists[LIST_LOST].count);
	CHECK(site->wants_count <= SITE_WANTS && site->wants_asked <= site->wants_count);
	CHECK(site->probes_count <= SITE_PROBES && site->relays_count <= SITE_RELAYS);
	CHECK(site->roots_count <= LIMIT_SITE_ROOTS && site->pushed_count <= SITE_PUSHED);
}

#endif
