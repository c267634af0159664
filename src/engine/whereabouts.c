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

/* ---- In which container? ------------------------------------------------------------------------------------------- */

struct looking {
	struct engine_to_meta to;
	struct engine_found *found;
	bool known;
};

static bool look_at_place(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct looking *looking = context;
	struct engine_found found;
	struct replica_id id;
	if (looking->known || place->kind != GLUE_PLACE_REFERENCE || place->relation != GLUE_CONTAINED)
		return false;
	bool known = replica_id_parse(place->value, &id) &&
	             engine_find(looking->to.engine, &(struct engine_name){.id = place->value}, &found);
	known = known || engine_place_find(&looking->to, place, &found);
	looking->known = known && found.span == REPLICA_CONTAINER;
	if (looking->known)
		*looking->found = found;
	return false;
}

/* Most types are in none. */
static bool may_be_contained(const struct glue_operation *operation)
{
	for (uint32_t i = 0; operation && i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->kind == GLUE_CONTAINED && (relation->where == GLUE_IN_PATH || relation->where == GLUE_IN_QUERY))
			return true;
	}
	return !operation; /* only its body says which it is */
}

bool engine_container_find(struct engine *engine, const struct glue_match *match, const struct glue_request *asked,
                           struct engine_found *found)
{
	struct looking looking = {.to = {.engine = engine, .own = {.service = match->service_name}}, .found = found};
	struct buf unused = {0};
	if (!may_be_contained(match->operation))
		return false;
	glue_splice_target(match, asked, &(struct glue_replacer){&looking, look_at_place}, &unused);
	buf_free(&unused);
	return looking.known;
}

bool engine_may_name_container(const struct glue_operation *operation)
{
	for (uint32_t i = 0; i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->kind == GLUE_CONTAINED && relation->where == GLUE_IN_BODY)
			return true;
	}
	return false;
}

bool engine_container_in_body(struct engine *engine, const struct glue_match *match, struct str body,
                              struct engine_found *found)
{
	struct looking looking = {.to = {.engine = engine, .own = {.service = match->service_name}}, .found = found};
	struct glue_replacer replacer = {&looking, look_at_place};
	const struct glue_places *places = glue_request_places(match->operation);
	struct buf unused = {0};
	if (places)
		engine_splice(places, &replacer, body, &unused);
	buf_free(&unused);
	return looking.known;
}
