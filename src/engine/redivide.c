/* What is divided is divided anew, though nothing of it is said: the whole is what its members have.
 *
 *   1. All copies are read, as for a comparison (verify.c): each has to be there, and to have seen the same operations.
 *   2. Their parts are put together, and put into the body of the operation. It goes on as if its user had sent that.
 *
 * Between the two nothing may have been run here: the operation would count as having seen it, and its whole would be without it. What
 * others have done meanwhile is concurrent with it, and resolved like anything that is.
 *
 * A member that cannot be read, or has not done yet what others have: the operation is refused, and nothing was done.
 */
#include "engine/engine_int.h"

#include "base/check.h"

#include <stdlib.h>

struct redividing {
	struct engine *engine;
	uint64_t ticket; /* it may be gone when the answer comes */
};

static void dropped(void *context)
{
	free(context);
}

static void refuse(struct ticket *ticket, struct str site, struct str why)
{
	engine_ticket_refuse(ticket, 503, "parts-not-combined",
	                     "to divide it anew all of its parts are needed, and nothing was done: %.*s%s%.*s",
	                     STR_FMT(site), site.length > 0 ? ": " : "", STR_FMT(why));
}

static struct str name_of(const struct engine *engine, site_id site)
{
	const struct site_place *place = engine_find_place(engine, site);
	return place ? place->name : STR("a site that is not known here");
}

/* Their parts, the prime first. False: one is missing, and that was told. */
static uint32_t take_parts(struct ticket *ticket, const struct engine_verified *verified, struct cross_part *parts)
{
	uint32_t count = 0;
	for (int prime = 1; prime >= 0; prime--) {
		for (uint32_t i = 0; i < verified->members_count; i++) {
			const struct engine_member_verdict *member = &verified->members[i];
			const struct engine_reading *reading = &verified->readings[i];
			if ((member->site == verified->view->prime) != prime)
				continue;
			struct str name = name_of(ticket->engine, member->site);
			/* Who is being added may have its share already, for all that is known here. */
			if (verified->view->members[i].joining) {
				refuse(ticket, name, STR("it is being added, and has not been heard to have its part"));
				return 0;
			}
			if (reading->kind != ENGINE_READ_HERE || reading->text.length == 0 ||
			    member->verdict == ENGINE_NOT_SETTLED || member->verdict == ENGINE_UNKNOWN) {
				refuse(ticket, name, member->reason.length > 0 ? member->reason : STR("it cannot be read"));
				return 0;
			}
			parts[count++] = (struct cross_part){.site = name, .body = reading->text};
		}
	}
	return count;
}

bool engine_is_as_read(struct engine *engine, struct arena *arena, const struct engine_verified *verified)
{
	struct replica_view view;
	struct buf session = {0};
	bool same = false;
	if (replica_look(engine->replica, arena, verified->view->id, &view) != 0 || view.busy)
		return false;
	replica_session_put(engine->replica, verified->view->id, &session);
	for (uint32_t i = 0; i < verified->members_count; i++)
		same |= verified->members[i].site == engine->options.self &&
		        str_equal(verified->readings[i].session, buf_str(&session));
	for (uint32_t i = 0; i < view.members_count; i++)
		same &= view.members[i].site != engine->options.self || view.members[i].settled;
	buf_free(&session);
	return same;
}

static int fill(struct ticket *ticket, struct cross_part *parts, uint32_t count, struct err *err)
{
	struct cross_rule rules[LIMIT_CROSS_FIELDS];
	struct str pointers[LIMIT_CROSS_FIELDS];
	struct cross_fields fields = {pointers, engine_division_pointers(&ticket->arena, &ticket->match, pointers)};
	struct cross_combined combined;
	struct buf whole = {0}, body = {0};
	for (uint32_t i = 0; i < fields.count; i++)
		rules[i] = (struct cross_rule){pointers[i], CROSS_TOGETHER};
	int code = cross_combine(rules, fields.count, parts, count, &whole, &combined, err);
	if (code == 0 && combined.whole < count)
		code = err_set(err, ERR_UNAVAILABLE, "something cannot be put together with the parts of others");
	if (code == 0)
		code = cross_fill_body(ticket->request.body, buf_str(&whole), &fields, &body, err);
	if (code == 0)
		ticket->request.body = str_make(arena_copy(&ticket->arena, body.at, body.length), body.length);
	buf_free(&whole);
	buf_free(&body);
	return code;
}

/* In the engine's thread. */
static void read(void *context, const struct engine_verified *verified)
{
	struct redividing redividing = *(struct redividing *)context;
	struct ticket *ticket = engine_ticket(redividing.engine, redividing.ticket);
	struct err err = {0};
	free(context);
	if (!ticket)
		return;
	struct cross_part *parts = arena_array(&ticket->arena, struct cross_part, LIMIT_REPLICA_MEMBERS);
	uint32_t count = verified->code == 0 ? take_parts(ticket, verified, parts) : 0;
	if (verified->code)
		refuse(ticket, STR(""), verified->text);
	else if (count > 0 && !engine_is_as_read(ticket->engine, &ticket->arena, verified))
		refuse(ticket, STR(""), STR("it is being changed at this moment; try again"));
	else if (count > 0 && fill(ticket, parts, count, &err) != 0)
		refuse(ticket, STR(""), str_of(err.text));
	ticket->whole = true;
	if (ticket->answer.code)
		engine_ticket_finish(ticket);
	else
		engine_ticket_begin(ticket);
}

void engine_division_read(struct ticket *ticket)
{
	struct redividing *redividing = calloc(1, sizeof(*redividing));
	CHECK(redividing);
	*redividing = (struct redividing){ticket->engine, ticket->number};
	engine_verify(ticket->engine, &(struct engine_verification){.replicant = ticket->request.replicant,
	                                                            .loop = ticket->engine->loop,
	                                                            .done = read,
	                                                            .dropped = dropped,
	                                                            .context = redividing});
}

/* ---- Without a user ---------------------------------------------------------------------------------------------------- */

struct asked {
	struct http_task task;
	struct engine *engine;
	struct engine_redivision about;
	struct cross_division division;
	struct engine_answer answer;
};

/* In the loop of who asks. */
static void tell(struct http_task *task)
{
	struct asked *asked = (struct asked *)task;
	asked->about.done(asked->about.context, &asked->answer);
	free(asked);
}

/* Where it is here, and whether that can be changed in part. */
static bool find_target(struct engine *engine, const struct replica_view *view, struct buf *target)
{
	struct engine_item item = {.target = target, .service = view->service, .collection = view->collection};
	if (!engine->setup || view->deleted || view->span != REPLICA_DIVIDED)
		return false;
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == engine->options.self)
			item.local_id = view->members[i].local_id;
	return engine_service_find(engine->setup, view->service) && item.local_id.length > 0 &&
	       engine_item_find(engine, engine->setup, &item) && engine_operation_of(item.match.type, GLUE_ASSIGN) != NULL;
}

bool engine_redivide_can(struct engine *engine, const struct replica_view *view)
{
	struct buf target = {0};
	bool can = find_target(engine, view, &target);
	buf_free(&target);
	return can;
}

static bool submit(struct asked *asked, struct arena *arena)
{
	struct engine *engine = asked->engine;
	struct replica_view view;
	struct buf target = {0}, fields = {0};
	if (!engine->replica || replica_look(engine->replica, arena, asked->about.replicant, &view) != 0)
		return false;
	bool known = find_target(engine, &view, &target);
	if (known) {
		const struct engine_service *service = engine_service_find(engine->setup, view.service);
		buf_put(&fields, service->credential);
		buf_put(&fields, STR("Content-Type: application/merge-patch+json\r\n"));
		engine_submit(engine, &(struct engine_request){.service = view.service,
		                                               .method = STR("PATCH"),
		                                               .target = buf_str(&target),
		                                               .fields = buf_str(&fields),
		                                               .content_type = STR("application/merge-patch+json"),
		                                               .body = STR("{}"),
		                                               .span = REPLICA_DIVIDED,
		                                               .replicant = view.id,
		                                               .division = &asked->division,
		                                               .loop = asked->about.loop,
		                                               .done = asked->about.done,
		                                               .context = asked->about.context});
	}
	buf_free(&target);
	buf_free(&fields);
	return known;
}

/* In the engine's thread. */
static void take(struct http_task *task)
{
	struct asked *asked = (struct asked *)task;
	struct arena arena;
	arena_init(&arena, 0);
	bool submitted = submit(asked, &arena);
	engine_changed(asked->engine); /* looking begins a session of the store */
	arena_free(&arena);
	if (submitted) {
		free(asked);
		return;
	}
	asked->answer = (struct engine_answer){
		.code = ERR_NOT_FOUND,
		.status = 409,
		.problem = "not-replicated",
		.detail = STR("nothing of that id is divided and made at this site, or the description knows no PATCH of it")};
	asked->task.run = tell;
	http_loop_post(asked->about.loop, &asked->task);
}

void engine_redivide(struct engine *engine, const struct engine_redivision *redivision)
{
	struct asked *asked = calloc(1, sizeof(*asked));
	CHECK(asked);
	asked->engine = engine;
	asked->about = *redivision;
	asked->division = *redivision->division;
	asked->task.run = take;
	http_loop_post(engine->loop, &asked->task);
}
