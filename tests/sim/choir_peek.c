/* The one place of the simulator that knows how the room writes its rows. */
#include "sim/choir.h"

#include "replica/replica_int.h"

static uint64_t digest_of(const struct choir_op *op, const struct op_row *row)
{
	static const struct hash_key key = {3, 4};
	uint64_t digest = hash_bytes(&key, row->request.body);
	digest = sim_mix(digest, hash_bytes(&key, row->class.name));
	digest = sim_mix(digest, op->stamp);
	digest = sim_mix(digest, (uint64_t)op->effect << 32 | (uint64_t)op->class << 16 | op->facet);
	for (uint32_t i = 0; i < CHOIR_SITES; i++)
		digest = sim_mix(digest, op->seen[i]);
	return digest;
}

/* The members as that site numbers them, by their index in the world. */
static bool find_members(const struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                         uint32_t *members, uint32_t *count)
{
	struct replicant r = {0};
	const struct choir_row *row =
		choir_rows_get(&it->rows, REPLICA_REPLICANTS, str_make((const char *)of->id.bytes, sizeof(of->id.bytes)));
	bool sound = row && head_parse(choir_row_value(row), &r, it->id, NULL) == 0 && r.members_count <= CHOIR_SITES;
	*count = sound ? r.members_count : 0;
	for (uint32_t i = 0; i < *count; i++) {
		members[i] = choir_member_of(of, choir_site_of(choir, r.members[i].site));
		sound = sound && members[i] != CHOIR_NOBODY;
	}
	replicant_wipe(&r);
	return sound;
}

bool choir_peek(const struct choir *choir, const struct choir_site *it, const struct choir_row *at, struct choir_op *op,
                uint32_t *replicant)
{
	struct str key = choir_row_key(at), row = choir_row_value(at);
	uint32_t members[CHOIR_SITES], members_count;
	struct replica_op_id id;
	struct op_row parsed;
	*op = (struct choir_op){0};
	*replicant = CHOIR_NOBODY;
	if (!op_key_parse(key, &id) || op_row_parse(row, &parsed, NULL) != 0)
		return false;
	*replicant = choir_replicant_of(choir, id.replicant);
	if (*replicant == CHOIR_NOBODY ||
	    !find_members(choir, it, &choir->replicants[*replicant], members, &members_count) ||
	    parsed.members_count > members_count)
		return false;
	op->member = choir_member_of(&choir->replicants[*replicant], choir_site_of(choir, id.site));
	op->number = id.number;
	op->site = id.site;
	op->stamp = parsed.stamp;
	for (uint32_t i = 0; i < parsed.members_count; i++)
		for (uint32_t k = 0; k < 4; k++)
			op->seen[members[i]] = op->seen[members[i]] << 8 | parsed.seen[4 * i + k];
	op->effect = parsed.class.effect;
	op->class = parsed.class.class;
	op->facet = parsed.class.facet;
	op->repair = parsed.flags & OP_REPAIR;
	op->digest = digest_of(op, &parsed);
	bool asks_nothing = parsed.flags & OP_WITNESS; /* its token is 0 */
	return op->member != CHOIR_NOBODY && (asks_nothing || choir_request_parse(parsed.request.body, &op->request));
}

bool choir_peek_withheld(uint32_t number)
{
	return number & REPLICA_WITHHELD;
}

bool choir_peek_has(const struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                    const struct choir_op *op)
{
	struct buf key = {0};
	struct replica_op_id id = {of->id, choir->sites[of->members[op->member]].id, op->number};
	op_key_put(&key, &id);
	bool has = choir_rows_get(&it->rows, REPLICA_OPERATIONS, buf_str(&key)) != NULL;
	buf_free(&key);
	return has;
}

bool choir_peek_forgotten(const struct choir *choir, const struct choir_site *it, const struct choir_replicant *of,
                          const struct choir_op *op)
{
	struct replicant r = {0};
	const struct choir_row *row =
		choir_rows_get(&it->rows, REPLICA_REPLICANTS, str_make((const char *)of->id.bytes, sizeof(of->id.bytes)));
	bool sound = row && head_parse(choir_row_value(row), &r, it->id, NULL) == 0 && r.kind != REPLICANT_ALIAS;
	uint32_t member = sound ? member_index(&r, choir->sites[of->members[op->member]].id) : UINT32_MAX;
	bool forgotten = member != UINT32_MAX && r.base[member] >= op->number;
	replicant_wipe(&r);
	return forgotten;
}

bool choir_peek_issued(const struct choir_site *it, const struct choir_replicant *of, const struct choir_op *op)
{
	struct replicant r = {0};
	struct buf key = {0};
	struct replica_op_id id = {of->id, it->id, op->number};
	struct str name = str_make((const char *)of->id.bytes, sizeof(of->id.bytes));
	const struct choir_row *row = choir_rows_get(&it->rows, REPLICA_REPLICANTS, name);
	const struct choir_row *lane = choir_rows_get(&it->rows, REPLICA_LANES, name);
	bool issued = row && head_parse(choir_row_value(row), &r, it->id, NULL) == 0 && r.kind <= REPLICANT_GONE;
	if (issued && r.base[r.self] < op->number) {
		op_key_put(&key, &id);
		bool here = choir_rows_get(&it->rows, REPLICA_OPERATIONS, buf_str(&key)) != NULL;
		issued = here && lane && lane_parse(choir_row_value(lane), &r, NULL) == 0 &&
		         !(r.task.what == TASK_FIRST && r.task.number == op->number);
	}
	buf_free(&key);
	replicant_wipe(&r);
	return issued;
}
