/* The table as a file (docs/protocol/gossip.md, "The stored table"). It is checked as a whole before any of it is taken.
 *
 * What is loaded was true once. A site that was alive is lost now, of the incarnation before the one that was known, so that
 * our old knowledge never outweighs what others say. */
#include "base/bytes.h"
#include "site/site_int.h"

static const struct str MAGIC = STR_INIT("cheops\0s");                                /* then the version */
static const struct hash_key CHECKSUM_KEY = {0x6368656f70732073, 0x6974652074616265}; /* against accidents only */

enum { CHECKSUM_BYTES = 8 };

uint64_t store_checksum(struct str bytes)
{
	return hash_bytes(&CHECKSUM_KEY, bytes);
}

/* ---- Writing -------------------------------------------------------------------------------------------------------- */

static void put_held(struct buf *out, const struct held *held)
{
	put_number(out, held->length, 2);
	buf_put(out, held_bytes(held));
}

static void put_member(struct buf *out, const struct member *member)
{
	put_held(out, member->card);
	put_number(out, member->state, 1);
	put_number(out, member->incarnation, 4);
	put_number(out, (uint64_t)member->since_ms, 8);
	put_number(out, (uint64_t)member->heard_ms, 8);
	put_number(out, member->rtt_us, 4);
	put_number(out, member->stamp, 4);
	put_coordinate(out, &member->coordinate);
}

static bool is_stored(const struct member *member)
{
	return member->card && member->card->kind == SITE_CARD;
}

void site_dump(const struct site *site, struct buf *out)
{
	const struct member *self = &site->members[0];
	size_t start = out->length;
	buf_put(out, MAGIC);
	put_number(out, SITE_STORE_VERSION, 1);
	put_number(out, site->options.self, 8);
	put_number(out, (uint64_t)site->now.wall_ms, 8);
	put_number(out, self->incarnation, 4);
	put_number(out, self->stamp, 4);
	put_coordinate(out, &self->coordinate);
	put_number(out, site->roots_count + site->removals_count, 4);
	for (uint32_t i = 0; i < site->roots_count; i++)
		put_held(out, site->roots[i]);
	for (uint32_t i = 0; i < site->removals_count; i++)
		put_held(out, site->removals[i]);
	uint32_t count = 0;
	for (uint32_t i = 1; i < site->members_count; i++)
		count += is_stored(&site->members[i]);
	put_number(out, count, 4);
	for (uint32_t i = 1; i < site->members_count; i++)
		if (is_stored(&site->members[i]))
			put_member(out, &site->members[i]);
	put_number(out, store_checksum(str_make(out->at + start, out->length - start)), CHECKSUM_BYTES);
}

/* ---- Reading -------------------------------------------------------------------------------------------------------- */

struct head {
	site_id self;
	int64_t saved_ms;
	uint32_t incarnation;
	uint32_t stamp;
	struct site_coordinate coordinate;
};

struct entry {
	struct str record;
	struct member member;
};

static struct head read_head(struct reader *reader)
{
	struct head head = {.self = read_64(reader)};
	head.saved_ms = (int64_t)read_64(reader);
	head.incarnation = read_32(reader);
	head.stamp = read_32(reader);
	head.coordinate = read_coordinate(reader);
	return head;
}

static struct str read_record(struct reader *reader)
{
	return read_bytes(reader, read_16(reader));
}

static struct entry read_entry(struct reader *reader)
{
	struct entry entry = {.record = read_record(reader)};
	entry.member.state = read_8(reader);
	entry.member.incarnation = read_32(reader);
	entry.member.since_ms = (int64_t)read_64(reader);
	entry.member.heard_ms = (int64_t)read_64(reader);
	entry.member.rtt_us = read_32(reader);
	entry.member.stamp = read_32(reader);
	entry.member.coordinate = read_coordinate(reader);
	return entry;
}

static bool coordinate_is_fine(const struct site_coordinate *coordinate)
{
	return coordinate->error <= 0.0f || coordinate_is_sound(coordinate);
}

/* The whole once, to see that it makes sense. */
static bool is_readable(struct reader reader)
{
	struct head head = read_head(&reader);
	if (!coordinate_is_fine(&head.coordinate))
		return false;
	for (uint32_t i = 0, count = read_32(&reader); i < count && !reader.failed; i++)
		read_record(&reader);
	for (uint32_t i = 0, count = read_32(&reader); i < count && !reader.failed; i++) {
		struct entry entry = read_entry(&reader);
		if (entry.member.state > SITE_LEFT || !coordinate_is_fine(&entry.member.coordinate))
			return false;
	}
	return !reader.failed && reader.left == 0;
}

static void load_member(struct site *site, const struct entry *entry, int64_t saved_ms)
{
	struct site_record record;
	const struct member *old = &entry->member;
	bool was_live = old->state == SITE_ALIVE || old->state == SITE_SUSPECT;
	struct status status = {.state = was_live ? SITE_LOST : old->state,
	                        .incarnation = was_live ? old->incarnation - 1 : old->incarnation};
	if (site_record_parse(entry->record, &record, NULL) || record.kind != SITE_CARD)
		return;
	bool known = table_find(site, record.subject) != SITE_NONE;
	member_accept(site, entry->record, &status, NULL);
	uint32_t number = table_find(site, record.subject);
	if (known || number == SITE_NONE || number == 0)
		return; /* refused; or somebody was quicker, and knows better */
	struct member *member = &site->members[number];
	member->since_ms = was_live ? saved_ms : old->since_ms;
	member->heard_ms = old->heard_ms;
	member->rtt_us = old->rtt_us;
	member->stamp = old->stamp;
	member->coordinate = old->coordinate;
}

static void load_self(struct site *site, const struct head *head)
{
	struct member *self = &site->members[0];
	if (compare_numbers(head->incarnation, self->incarnation, false) >= 0)
		member_set_state(site, 0, SITE_ALIVE, head->incarnation + 1);
	self->stamp = head->stamp + 1;
	self->coordinate = head->coordinate;
}

static void load_all(struct site *site, struct reader reader)
{
	struct head head = read_head(&reader);
	load_self(site, &head);
	for (uint32_t i = 0, count = read_32(&reader); i < count; i++)
		member_accept(site, read_record(&reader), NULL, NULL);
	for (uint32_t i = 0, count = read_32(&reader); i < count; i++) {
		struct entry entry = read_entry(&reader);
		load_member(site, &entry, head.saved_ms);
	}
}

int site_load(struct site *site, struct str bytes, struct site_now now, struct err *err)
{
	site->now = now;
	if (bytes.length < MAGIC.length + 1 + CHECKSUM_BYTES || !str_equal(str_make(bytes.at, MAGIC.length), MAGIC))
		return err_set(err, ERR_CORRUPT, "this is not a stored table of sites");
	struct reader reader = reader_of(str_make(bytes.at + MAGIC.length, bytes.length - MAGIC.length - CHECKSUM_BYTES));
	struct reader sum = reader_of(str_make(bytes.at + bytes.length - CHECKSUM_BYTES, CHECKSUM_BYTES));
	uint8_t version = read_8(&reader);
	if (version != SITE_STORE_VERSION)
		return err_set(err, ERR_VERSION, "a stored table of sites in format %u; this agent reads %d", version,
		               SITE_STORE_VERSION);
	if (read_64(&sum) != store_checksum(str_make(bytes.at, bytes.length - CHECKSUM_BYTES)) || !is_readable(reader))
		return err_set(err, ERR_CORRUPT, "the stored table of sites is damaged: %zu bytes whose check sum is wrong",
		               bytes.length);
	struct reader head = reader;
	site_id self = read_64(&head);
	if (self != site->options.self)
		return err_set(err, ERR_CONFLICT, "the stored table is that of site %016llx; this is site %016llx",
		               (unsigned long long)self, (unsigned long long)site->options.self);
	site->loading = true;
	load_all(site, reader);
	site->loading = false;
	site->epoch++;
	return 0;
}
