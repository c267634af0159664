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

bool choir_peek(const struct choir *choir, struct str key, struct str row, struct choir_op *op, uint32_t *replicant)
{
	struct replica_op_id id;
	struct op_row parsed;
	*op = (struct choir_op){0};
	*replicant = CHOIR_NOBODY;
	if (!op_key_parse(key, &id) || op_row_parse(row, &parsed, NULL) != 0)
		return false;
	*replicant = choir_replicant_of(choir, id.replicant);
	if (*replicant == CHOIR_NOBODY || parsed.members_count > CHOIR_SITES)
		return false;
	op->member = choir_member_of(&choir->replicants[*replicant], choir_site_of(choir, id.site));
	op->number = id.number;
	op->stamp = parsed.stamp;
	for (uint32_t i = 0; i < parsed.members_count; i++)
		for (uint32_t k = 0; k < 4; k++)
			op->seen[i] = op->seen[i] << 8 | parsed.seen[4 * i + k];
	op->effect = parsed.class.effect;
	op->class = parsed.class.class;
	op->facet = parsed.class.facet;
	op->repair = parsed.flags & OP_REPAIR;
	op->digest = digest_of(op, &parsed);
	return op->member != CHOIR_NOBODY && choir_request_parse(parsed.request.body, &op->request);
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
