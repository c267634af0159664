/* What waits for an operation to be applied, or for any change at all. */
#include "engine/engine_int.h"

#include "base/check.h"

/* ---- How far is it? ------------------------------------------------------------------------------------------------ */

bool engine_is_over(const struct replica_op_view *view, enum engine_until until, site_id site, bool *reached)
{
	uint32_t counted = 0, done = 0, pending = 0;
	for (uint32_t i = 0; i < view->members_count; i++) {
		enum replica_member_state state = view->members[i].state;
		if (until == ENGINE_SITE && view->members[i].site != site)
			continue;
		counted++;
		done += state == REPLICA_APPLIED || state == REPLICA_SUPERSEDED;
		pending += state == REPLICA_PENDING;
	}
	*reached =
		until == ENGINE_NOW || (counted > 0 && (until == ENGINE_MAJORITY ? done * 2 > counted : done == counted));
	return *reached || pending == 0;
}

/* ---- Waiting ------------------------------------------------------------------------------------------------------- */

static bool is_over(struct wait *wait)
{
	struct engine *engine = wait->engine;
	struct replica_op_view view;
	struct arena arena;
	bool reached, over = true;
	if (wait->any)
		return true;
	if (!engine->replica || wait->answer)
		return false;
	arena_init(&arena, 0);
	if (engine_look_op(engine, &arena, wait->op, &view) == 0)
		over = engine_is_over(&view, wait->until, wait->site, &reached);
	arena_free(&arena);
	engine_changed(engine);
	return over;
}

void engine_wait_end(struct wait *wait)
{
	if (!wait->waiting)
		return;
	wait->waiting = false;
	http_timer_clear(wait->engine->loop, &wait->timer);
	*(wait->previous ? &wait->previous->next : &wait->engine->waits) = wait->next;
	if (wait->next)
		wait->next->previous = wait->previous;
	wait->previous = wait->next = NULL;
	wait->engine->waits_count--;
}

static void expire(struct http_timer *timer)
{
	struct wait *wait = (struct wait *)((char *)timer - offsetof(struct wait, timer));
	engine_wait_end(wait);
	wait->over(wait);
}

bool engine_wait_start(struct engine *engine, struct wait *wait, uint64_t timeout_ms)
{
	if (engine->waits_count >= LIMIT_ENGINE_WAITS)
		return false;
	wait->engine = engine;
	wait->waiting = true;
	wait->due = !wait->any; /* it may be so already */
	wait->timer = (struct http_timer){.fire = expire};
	wait->previous = NULL;
	wait->next = engine->waits;
	if (engine->waits)
		engine->waits->previous = wait;
	engine->waits = wait;
	engine->waits_count++;
	http_timer_set(engine->loop, &wait->timer, timeout_ms);
	return true;
}

void engine_waits_mark(struct engine *engine, const struct replica_id *id)
{
	for (struct wait *wait = engine->waits; wait; wait = wait->next)
		wait->due |= wait->any || memcmp(wait->op.replicant.bytes, id->bytes, sizeof(id->bytes)) == 0;
}

void engine_waits_review(struct engine *engine)
{
	for (struct wait *wait = engine->waits, *next; wait; wait = next) {
		next = wait->next; /* over() ends no other one */
		if (!wait->due)
			continue;
		wait->due = false;
		if (!is_over(wait))
			continue;
		engine_wait_end(wait);
		wait->over(wait);
	}
}
