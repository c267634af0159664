/* What refers to what, as the API says it (docs/relations.md). */
#include "api/api_int.h"

#include "engine/relations.h"

#include "base/check.h"

#include <stdlib.h>

/* ---- Words --------------------------------------------------------------------------------------------------------- */

/* What is managed by its id; else what its service calls it. */
static void put_target(struct buf *out, const struct relation_target *to)
{
	if (to->managed) {
		buf_put(out, STR("\"id\":\""));
		replica_id_put(to->id, out);
		buf_put(out, STR("\",\"local_id\":null"));
		return;
	}
	buf_put(out, STR("\"id\":null,\"type\":"));
	buf_put_json(out, to->type);
	buf_put(out, STR(",\"local_id\":"));
	buf_put_json(out, to->name);
}

static void put_sites(struct buf *out, const struct engine_reply *reply, const site_id *sites, uint32_t count)
{
	buf_put_char(out, '[');
	for (uint32_t i = 0; i < count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		api_put_site_name(out, reply, sites[i]);
	}
	buf_put_char(out, ']');
}

/* ---- At risk ------------------------------------------------------------------------------------------------------- */

static void put_risk(struct buf *out, const struct engine_reply *reply, const struct relation_fact *fact,
                     enum relation_risk why)
{
	struct engine_about about;
	buf_put_char(out, '{');
	put_target(out, &fact->to);
	if (fact->to.managed) {
		buf_put(out, STR(",\"type\":"));
		if (engine_about(reply->engine, fact->to.id, &about))
			buf_put_json(out, about.type);
		else
			buf_put(out, STR("null"));
	}
	buf_put(out, STR(",\"place\":"));
	buf_put_json(out, fact->place);
	buf_printf(out, ",\"why\":\"%s\",\"sites\":", relation_risk_name(why));
	put_sites(out, reply, fact->sites, fact->sites_count);
	buf_put_char(out, '}');
}

void api_put_risks(struct buf *out, const struct engine_reply *reply, struct replica_id id)
{
	struct arena arena;
	arena_init(&arena, 0);
	struct relation_risks *risks = arena_new(&arena, struct relation_risks);
	if (!engine_risk_of(reply->engine, id, &arena, risks)) {
		buf_put(out, STR("null"));
		arena_free(&arena);
		return;
	}
	buf_put_char(out, '[');
	for (uint32_t i = 0; i < risks->record.count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_risk(out, reply, &risks->record.facts[i], risks->why[i]);
	}
	buf_put_char(out, ']');
	arena_free(&arena);
}
