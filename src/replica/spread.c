/* Which other sites have to be asked for what this site knows as one thing: from the row of a replicant. */
#include "replica/replica_int.h"

/* Nearly all are: they need not be taken apart. */
static bool is_alike(struct str bytes)
{
	enum { SPAN = 0xf0 };
	struct reader row = reader_of(bytes);
	uint8_t version = read_8(&row), kind = read_8(&row);
	read_64(&row);
	uint8_t span = read_8(&row) & SPAN;
	return !row.failed && version == REPLICA_ROW_VERSION && kind == REPLICANT_LIVE && span == 0;
}

static void take_parts(const struct replicant *r, struct replica_spread *spread)
{
	for (uint32_t i = 0; i < r->members_count; i++)
		if (i != r->self && !r->members[i].removed)
			spread->others[spread->others_count++] = r->members[i].site;
}

bool replica_spread_parse(struct str row, site_id self, struct replica_spread *spread, struct buf *prefix)
{
	struct replicant r = {0};
	*spread = (struct replica_spread){.span = REPLICA_ALIKE};
	if (is_alike(row))
		return false;
	if (head_parse(row, &r, self, NULL) == 0 && r.kind == REPLICANT_LIVE) {
		spread->span = r.span;
		spread->witness = witness_sends_on(&r);
		if (spread->witness)
			spread->others_count = witness_holders(&r, spread->others, LIMIT_REPLICA_MEMBERS);
		else if (r.span == REPLICA_DIVIDED)
			take_parts(&r, spread);
		if (spread->others_count > 0)
			replica_local_prefix(r.service, r.type, prefix);
	}
	replicant_wipe(&r);
	return true;
}
