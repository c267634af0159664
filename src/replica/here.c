/* What the row of a replicant says of this site, without taking it apart.
 *
 * Whoever looks up an id wants a few bytes of the row, and asks for each request. Of one that is live they are found by going over it,
 * past what has a length; all else (an alias, what is gone, a cross resource, another format, a row that makes no sense) is taken apart by head_parse(), which
 * also says what is wrong. docs/protocol/replica.md has the bytes. */
#include "replica/replica_int.h"

/* False: it is not one of which all members have a copy. */
static bool skip_header(struct reader *row)
{
	enum { TABLE = 4, SPAN = 0xf0 };
	uint8_t kind = read_8(row);
	for (int i = 0; i < 4; i++)
		read_text(row);
	uint8_t flags = read_8(row), classes = read_8(row);
	if (flags & TABLE)
		read_bytes(row, (size_t)classes * classes);
	return (kind & SPAN) == 0;
}

static uint64_t mix(uint64_t digest, uint64_t value)
{
	return (digest ^ value) * UINT64_C(0x9e3779b97f4a7c15) + (digest >> 29);
}

uint64_t here_members(const struct replicant *r)
{
	uint64_t digest = 0;
	for (uint32_t i = 0; i < r->members_count; i++)
		digest = mix(digest, r->members[i].site);
	for (uint32_t i = 0; i < r->members_count; i++)
		digest = mix(digest, r->members[i].removed);
	return digest;
}

/* Its place among the members; UINT32_MAX: it is none of them. */
static uint32_t find_self(struct reader *row, uint32_t count, site_id self, uint64_t *digest)
{
	uint32_t at = UINT32_MAX;
	for (uint32_t i = 0; i < count; i++) {
		site_id site = read_64(row);
		*digest = mix(*digest, site);
		if (site == self)
			at = i;
	}
	return at;
}

static void skip_exceptions(struct reader *row)
{
	uint32_t count = read_16(row);
	for (uint32_t i = 0; i < count && !row->failed; i++) {
		read_bytes(row, 1 + 4 + 1 + 2);
		read_bytes(row, read_16(row));
	}
}

/* What is kept of a member, and its report. */
static struct str skip_member(struct reader *row, uint32_t count, bool *quoted, uint64_t *digest)
{
	enum { QUOTED = 2 };
	*digest = mix(*digest, (read_8(row) & MEMBER_REMOVED) != 0);
	read_bytes(row, 4);
	if (read_8(row) != 0)
		read_bytes(row, 4 * (size_t)count);
	read_32(row);
	*quoted = read_8(row) & QUOTED;
	read_bytes(row, 4 + 4 * (size_t)count);
	struct str local_id = read_text(row);
	skip_exceptions(row);
	return local_id;
}

bool here_skim(struct str bytes, site_id self, struct replica_here *here)
{
	struct reader row = reader_of(bytes);
	uint8_t version = read_8(&row), kind = read_8(&row);
	if (row.failed || version != REPLICA_ROW_VERSION || kind != REPLICANT_LIVE)
		return false;
	read_64(&row);
	if (!skip_header(&row))
		return false;
	uint64_t digest = 0;
	uint32_t count = read_8(&row), at = find_self(&row, count, self, &digest);
	if (row.failed || count > LIMIT_REPLICA_MEMBERS || at == UINT32_MAX)
		return false;
	read_bytes(&row, 4 * (size_t)count);
	*here = (struct replica_here){0};
	for (uint32_t i = 0; i < count; i++) {
		bool quoted;
		struct str local_id = skip_member(&row, count, &quoted, &digest);
		if (i != at || row.failed || local_id.length > sizeof(here->local_id))
			continue;
		memcpy(here->local_id, local_id.at, local_id.length);
		here->local_id_bytes = local_id.length;
		here->local_id_quoted = quoted;
	}
	here->members = digest;
	return !row.failed && row.left == 0;
}

bool replica_about_parse(struct str bytes, struct replica_about *about)
{
	struct reader row = reader_of(bytes);
	uint8_t version = read_8(&row), kind = read_8(&row);
	read_64(&row);
	read_8(&row);
	struct str *const texts[] = {&about->service, &about->type, &about->collection, &about->name};
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		*texts[i] = read_text(&row);
	return !row.failed && version == REPLICA_ROW_VERSION && kind == REPLICANT_LIVE;
}
