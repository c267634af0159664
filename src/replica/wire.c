/* Messages between members, to the byte (docs/protocol/replica.md, "Messages").
 *
 * A message has a head and sections. Each section is on one replicant and complete in itself; one of a kind that is not known is
 * skipped. */
#include "replica/replica_int.h"

#include "base/check.h"

enum { MESSAGE_HEAD = 9, SECTION_HEAD = 5 };

void sync_message_begin(struct buf *out, uint64_t clock)
{
	put_number(out, REPLICA_WIRE_VERSION, 1);
	put_number(out, clock, 8);
}

int sync_message_open(struct str bytes, uint64_t *clock, struct reader *sections)
{
	struct reader reader = reader_of(bytes);
	if (bytes.length > LIMIT_REPLICA_MESSAGE_BYTES)
		return ERR_CORRUPT;
	uint8_t version = read_8(&reader);
	*clock = read_64(&reader);
	if (reader.failed)
		return ERR_CORRUPT;
	if (version != REPLICA_WIRE_VERSION)
		return ERR_VERSION;
	*sections = reader;
	return 0;
}

/* A section means by itself what it says; those of the later one come behind. The clock of a message is a time that its sender has
 * passed, so the later one holds for all of it. */
bool replica_join(struct buf *out, size_t at, struct str later)
{
	CHECK(out->length >= at + MESSAGE_HEAD && later.length >= MESSAGE_HEAD);
	if (out->at[at] != later.at[0] || out->length - at + later.length - MESSAGE_HEAD > LIMIT_REPLICA_MESSAGE_BYTES)
		return false;
	memcpy(out->at + at, later.at, MESSAGE_HEAD);
	buf_put(out, str_make(later.at + MESSAGE_HEAD, later.length - MESSAGE_HEAD));
	return true;
}

size_t sync_section_begin(struct buf *out, const struct section *section)
{
	size_t at = out->length;
	put_number(out, section->kind, 1);
	put_number(out, 0, 4);
	buf_put(out, id_str(&section->id));
	put_number(out, section->flags, 1);
	put_number(out, section->members_count, 1);
	put_number(out, section->digest, 4);
	return at;
}

/* Sets the flag in one that has begun. */
void sync_section_ask(struct buf *out, size_t at)
{
	out->at[at + SECTION_HEAD + sizeof(struct replica_id)] |= SYNC_ASK;
}

void sync_section_end(struct buf *out, size_t at)
{
	size_t length = out->length - at - SECTION_HEAD;
	CHECK(length <= UINT32_MAX);
	patch_16(out, at + 1, length >> 16);
	patch_16(out, at + 3, length & 0xffff);
}

int sync_section_read(struct reader *sections, struct section *section)
{
	if (sections->left == 0)
		return 0;
	*section = (struct section){.kind = read_8(sections)};
	struct str body = read_bytes(sections, read_32(sections));
	if (sections->failed)
		return ERR_CORRUPT;
	if (section->kind < SYNC_STATE || section->kind > SYNC_MEMBERS)
		return 1;
	struct reader reader = reader_of(body);
	struct str id = read_bytes(&reader, sizeof(section->id.bytes));
	section->flags = read_8(&reader);
	section->members_count = read_8(&reader);
	section->digest = read_32(&reader);
	if (reader.failed || section->members_count > LIMIT_REPLICA_MEMBERS || (section->flags & ~SYNC_FLAGS) != 0)
		return ERR_CORRUPT;
	memcpy(section->id.bytes, id.at, id.length);
	section->rest = reader;
	return 1;
}

void sync_op_put(struct buf *out, const struct sync_op *op)
{
	put_number(out, op->member, 1);
	put_number(out, op->number, 4);
	put_number(out, op->row.length, 4);
	buf_put(out, op->row);
}

bool sync_op_read(struct reader *reader, struct sync_op *op, uint32_t members_count)
{
	op->member = read_8(reader);
	op->number = read_32(reader);
	op->row = read_bytes(reader, read_32(reader));
	return !reader->failed && op->member < members_count && op->number > 0 && op->number < REPLICA_WITHHELD;
}
