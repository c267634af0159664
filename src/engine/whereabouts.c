/* Where a replicated resource is, for the data plane. */
#include "engine/engine_int.h"

uint32_t engine_members(struct engine *engine, struct replica_id id, site_id members[LIMIT_REPLICA_MEMBERS])
{
	struct look look;
	struct str row;
	uint32_t count = 0;
	if (!engine_look_begin(engine, &look))
		return 0;
	if (engine_look_get(&look, REPLICA_REPLICANTS, str_make((const char *)id.bytes, sizeof(id.bytes)), &row))
		count = replica_members_parse(row, engine->options.self, members);
	engine_look_end(&look);
	return count;
}
