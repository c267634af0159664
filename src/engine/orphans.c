/* What is in a container that is gone.
 *
 * Somebody deletes a container, and somebody else makes a child of it at a site of which the first one has not heard that (contents.c). Where the service of that site refuses to delete what
 * is not empty, that is shown, and a person decides. Where it does not, the child is without a container: its service has deleted it as well, or nobody finds it there any more. Its replicant would
 * be left at all sites. So its prime deletes it, as an operation like any other, once the container is deleted there:
 *   1. a container is gone: what is known to be in it is looked at (follow.c); at a start all children of this site are
 *   2. the prime of such a child sends the delete to its service. That there is nothing any more is as good (run.c), so that all others hear of it
 *
 * It is sent with the credential that the service's configuration has, there is no user. Where that is not enough it is tried again, rarely. */
#include "engine/engine_int.h"

#include "engine/relations.h"

enum { AGAIN_US = 60 * 1000 * 1000 };

static const enum replica_table TABLE = (enum replica_table)ENGINE_CROSS_CHILDREN;

/* ---- Which? ----------------------------------------------------------------------------------------------------------------- */

static bool note(void *context, const struct engine_referrer *referrer)
{
	engine_follow_note(context, referrer->from);
	return true;
}

void engine_orphans_note(struct engine *engine, struct replica_id container)
{
	struct relation_target target = {.managed = true, .id = container};
	engine_relations_to(engine, &target, engine->options.self, 1u << GLUE_CONTAINED, note, engine);
}

static bool note_row(void *context, struct str key, struct str row)
{
	(void)row;
	if (key.length == sizeof(struct replica_id))
		buf_put(context, key);
	return true;
}

void engine_orphans_note_all(struct engine *engine, struct buf *ids)
{
	engine_row_scan(engine, TABLE, STR(""), STR(""), note_row, ids);
}

/* A container that only has left this site is there at others: what is in it was seen to before. */
static bool is_orphan(struct engine *engine, struct arena *arena, struct replica_id child)
{
	struct relation_record record;
	struct replica_view view;
	if (!engine_relations_from(engine, child, arena, &record))
		return false;
	for (uint32_t i = 0; i < record.count; i++)
		if (record.facts[i].kind == GLUE_CONTAINED && record.facts[i].to.managed &&
		    replica_look(engine->replica, arena, record.facts[i].to.id, &view) == 0 && view.span == REPLICA_CONTAINER &&
		    view.deleted && !view.left)
			return true;
	return false;
}

/* ---- It goes ------------------------------------------------------------------------------------------------------------------ */

static void deleted(void *context, const struct engine_answer *answer)
{
	struct engine *engine = context;
	if (answer->code || answer->status >= 300)
		engine->orphans_after_us = engine_now().us + AGAIN_US;
}

static bool is_made(const struct engine *engine, const struct replica_view *child)
{
	for (uint32_t i = 0; i < child->members_count; i++)
		if (child->members[i].site == engine->options.self)
			return child->members[i].local_id.length > 0;
	return false;
}

bool engine_orphans_follow(struct engine *engine, struct arena *arena, const struct replica_view *child)
{
	struct buf target = {0};
	if (!is_orphan(engine, arena, child->id))
		return false;
	const struct engine_service *service = engine->setup ? engine_service_find(engine->setup, child->service) : NULL;
	if (!service || child->busy || !is_made(engine, child) || engine_now().us < engine->orphans_after_us)
		return true;
	buf_put(&target, child->collection);
	buf_put_char(&target, '/');
	replica_id_put(child->id, &target);
	engine_submit(engine, &(struct engine_request){.service = child->service,
	                                               .method = STR("DELETE"),
	                                               .target = buf_str(&target),
	                                               .fields = service->credential,
	                                               .replicant = child->id,
	                                               .settles = true,
	                                               .loop = engine->loop,
	                                               .done = deleted,
	                                               .context = engine});
	buf_free(&target);
	return true;
}
