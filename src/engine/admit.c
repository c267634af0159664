/* The policy, for operations that other members deliver: who made it may be allowed less than it wants.
 *
 *   not allowed             it is rejected here, and says by which rule; a person runs it again when the policy is another
 *   too much, too fast      it waits, however long that takes: it was acknowledged, and is not lost
 * What users ask at this site is not concerned, nor is what they asked and is run once more.
 */
#include "engine/engine_int.h"

static void refuse(struct run *run, const struct buf *why)
{
	engine_run_tell(run, &(struct replica_outcome){.kind = REPLICA_REFUSED, .status = 403, .answer = buf_str(why)});
}

static void delay(struct run *run, uint64_t wait_us, const struct buf *why)
{
	engine_run_tell(run, &(struct replica_outcome){
							 .kind = REPLICA_FAILED, .status = 429, .answer = buf_str(why), .again_us = wait_us});
}

bool engine_admit(struct run *run)
{
	struct engine *engine = run->engine;
	const struct engine_gate *gate = &run->setup->about.gate;
	if (!gate->enter || run->task.first || run->task.op.site == engine->options.self)
		return true;
	const struct site_place *place = engine_find_place(engine, run->task.op.site);
	struct engine_asker asker = {.site = place ? place->name : STR(""),
	                             .tags = place ? place->tags : NULL,
	                             .tags_count = place ? place->tags_count : 0,
	                             .service = run->task.service};
	struct engine_entry entry = {0};
	enum engine_admission admission = gate->enter(gate->context, &asker, engine_now().us, &entry);
	if (admission == ENGINE_ADMITTED)
		run->place = entry.place;
	else if (admission == ENGINE_LATER)
		delay(run, entry.wait_us, &entry.why);
	else
		refuse(run, &entry.why);
	buf_free(&entry.why);
	return admission == ENGINE_ADMITTED;
}

void engine_admit_leave(struct run *run)
{
	if (run->place)
		run->setup->about.gate.leave(run->setup->about.gate.context, run->place);
	run->place = NULL;
}
