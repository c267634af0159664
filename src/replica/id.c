/* Meta-ids: UUIDs of version 7 (RFC 9562), 48 bits of milliseconds first, so that they sort by the time they were made. */
#include "replica/replica.h"

#include "base/check.h"

static const uint8_t dashes_before[] = {4, 6, 8, 10}; /* bytes */

static bool is_dash_before(size_t byte)
{
	for (size_t i = 0; i < sizeof(dashes_before); i++)
		if (dashes_before[i] == byte)
			return true;
	return false;
}

void replica_id_put(struct replica_id id, struct buf *out)
{
	static const char digits[] = "0123456789abcdef";
	char text[36];
	size_t at = 0;
	for (size_t i = 0; i < sizeof(id.bytes); i++) {
		if (is_dash_before(i))
			text[at++] = '-';
		text[at++] = digits[id.bytes[i] >> 4];
		text[at++] = digits[id.bytes[i] & 15];
	}
	buf_put(out, str_make(text, at));
}

bool replica_id_parse(struct str text, struct replica_id *id)
{
	if (text.length != 36)
		return false;
	const char *at = text.at;
	for (size_t i = 0; i < sizeof(id->bytes); i++) {
		if (is_dash_before(i) && *at++ != '-')
			return false;
		int high = str_hex_value(at[0]), low = str_hex_value(at[1]);
		if (high < 0 || low < 0)
			return false;
		id->bytes[i] = (uint8_t)(high << 4 | low);
		at += 2;
	}
	return true;
}

bool replica_id_is(struct str text, struct replica_id *id)
{
	return replica_id_parse(text, id) && id->bytes[6] >> 4 == 7;
}

struct replica_id replica_id_make(uint64_t wall_ms, uint64_t random_high, uint64_t random_low)
{
	struct replica_id id;
	for (size_t i = 0; i < 6; i++)
		id.bytes[i] = (uint8_t)(wall_ms >> (40 - 8 * i));
	id.bytes[6] = (uint8_t)(0x70 | (random_high >> 8 & 0x0f));
	id.bytes[7] = (uint8_t)random_high;
	for (size_t i = 0; i < 8; i++)
		id.bytes[8 + i] = (uint8_t)(random_low >> (56 - 8 * i));
	id.bytes[8] = (uint8_t)(0x80 | (id.bytes[8] & 0x3f));
	return id;
}

void replica_op_id_put(struct replica_op_id id, struct buf *out)
{
	replica_id_put(id.replicant, out);
	buf_printf(out, ".%016llx.%u", (unsigned long long)id.site, id.number);
}

bool replica_op_id_parse(struct str text, struct replica_op_id *id)
{
	enum { ID = 36, SITE = 16, NUMBER_MOST = 10 };
	if (text.length < ID + SITE + 3 || text.length > ID + SITE + 2 + NUMBER_MOST || text.at[ID] != '.' ||
	    text.at[ID + 1 + SITE] != '.' || !replica_id_parse(str_make(text.at, ID), &id->replicant))
		return false;
	uint64_t number = 0;
	id->site = 0;
	for (size_t i = ID + 1; i < ID + 1 + SITE; i++) {
		int digit = str_hex_value(text.at[i]);
		if (digit < 0)
			return false;
		id->site = id->site << 4 | (uint64_t)digit;
	}
	for (size_t i = ID + SITE + 2; i < text.length; i++) {
		if (text.at[i] < '0' || text.at[i] > '9')
			return false;
		number = number * 10 + (uint64_t)(text.at[i] - '0');
	}
	id->number = (uint32_t)number;
	return number > 0 && number <= UINT32_MAX && id->site != 0;
}

const char *replica_member_state_name(enum replica_member_state state)
{
	static const char *const names[REPLICA_MEMBER_STATES] = {
		[REPLICA_PENDING] = "pending",
		[REPLICA_APPLIED] = "applied",
		[REPLICA_SUPERSEDED] = "superseded",
		[REPLICA_REJECTED] = "rejected",
		[REPLICA_REJECTED_CREDENTIAL] = "rejected-credential",
		[REPLICA_IN_DOUBT] = "in-doubt",
	};
	CHECK(state < REPLICA_MEMBER_STATES);
	return names[state];
}
