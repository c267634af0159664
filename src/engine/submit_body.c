/* The body of a user's request: a short one travels with the operation; a long one is a blob.
 *
 * A body that nobody has to look into was spooled by the loop that read it. One with ids in it was read whole, and has meta-ids
 * in it now: if it is long, it is spooled here.
 */
#include "engine/engine_int.h"

struct str engine_body_blob(const struct ticket *ticket)
{
	return str_make((const char *)ticket->blob, ticket->has_blob ? sizeof(ticket->blob) : 0);
}

static void refuse(struct ticket *ticket, const struct err *err)
{
	bool full = err->code == ERR_LIMIT;
	engine_ticket_refuse(ticket, full ? 507 : 503, full ? "store-full" : "store-failed",
	                     "the body could not be kept, and nothing was done: %s", err->text);
}

/* It is on disk: from here on it has its name, and an operation that needs it. */
static bool keep(struct ticket *ticket)
{
	struct err err = {0};
	memcpy(ticket->blob, engine_spool_hash(ticket->spool).at, sizeof(ticket->blob));
	ticket->blob_bytes = engine_spool_bytes(ticket->spool);
	ticket->has_blob = engine_spool_keep(ticket->spool, &err) == 0;
	if (!ticket->has_blob)
		refuse(ticket, &err);
	engine_spool_drop(ticket->spool);
	ticket->spool = NULL;
	return ticket->has_blob;
}

static void moved(void *context)
{
	struct ticket *ticket = context;
	struct engine *engine = ticket->engine;
	struct err err = {0};
	switch (engine_spool_state(ticket->spool, &err)) {
	case ENGINE_SPOOL_DONE:
		if (!engine->replica)
			engine_ticket_refuse(ticket, 503, "store-failed", "the store of this agent cannot be used; see its log");
		else if (keep(ticket))
			engine_ticket_go(ticket);
		break;
	case ENGINE_SPOOL_FAILED: refuse(ticket, &err); break;
	default: return;
	}
	if (ticket->answer.code && !ticket->answered) /* as in take() */
		engine_ticket_finish(ticket);
}

bool engine_body_ready(struct ticket *ticket, struct str body)
{
	if (ticket->spool)
		return keep(ticket);
	if (body.length <= LIMIT_REPLICA_BODY_BYTES)
		return true;
	struct engine *engine = ticket->engine;
	ticket->spool = engine_spool_new(engine, &(struct engine_spool_options){engine->loop, moved, ticket});
	engine_spool_put(ticket->spool, body);
	engine_spool_end(ticket->spool);
	return false;
}

void engine_body_leave(struct ticket *ticket)
{
	engine_spool_drop(ticket->spool);
	ticket->spool = NULL;
	if (!ticket->has_blob)
		return;
	engine_blob_release(ticket->engine, engine_body_blob(ticket));
	engine_changed(ticket->engine);
}
