/* Deleting a container: what is in it.
 *
 * Who deletes a container that is not empty, as far as this site knows, is told what is in it, and nothing is done. With `Prefer: cheops-contents` that is deleted,
 * too, and the container last:
 *   1. what is in it is read from the recorded relations (relations.h), at most LIMIT_CROSS_CONTENTS at a time
 *   2. each child is deleted, one after the other, as an operation of its own with its user's credentials: here, or by the agent of a site that holds it. One
 *      that several sites hold is waited for: a service may refuse to delete a container in which something is left
 *   3. what was put in meanwhile goes the same way, a few times over
 *   4. the delete of the container goes on
 *
 * What goes wrong:
 *   a child cannot be deleted, or a site does not answer    it ends there, and says which; what was deleted is gone, the container is there
 *   somebody makes a child that nobody here has heard of    the service of that site refuses to delete the container (409), or deletes the child with it, as the
 *                                                           application does; the first is shown as a rejected operation, for a person
 *   the agent is killed                                     the same as in the first line; the request can be sent again
 */
#include "engine/engine_int.h"

#include "engine/relations.h"

#include "base/check.h"
#include "base/percent.h"
#include "scope/scope.h"

#include <stdlib.h>

enum { PASSES_MOST = 8, WAIT_S = 20, DELETE_MS = 60000, ANSWER_BYTES = 256 << 10 };

struct content {
	struct replica_id id;
	bool deleted;
};

struct emptying {
	struct content *contents;
	uint32_t count, capacity, at;
	uint32_t passes;
	uint32_t deleted;
	struct step *step; /* that is under way; NULL: none */
	struct http_call *call;
};

/* One child's delete. It may outlive the ticket that it is for. */
struct step {
	struct engine *engine;
	uint64_t ticket;
	site_id site; /* who is asked */
	site_id holders[LIMIT_REPLICA_MEMBERS];
	uint32_t holders_count;
};

/* ---- What is in it? ---------------------------------------------------------------------------------------------------------- */

static bool is_same(struct replica_id a, struct replica_id b)
{
	return memcmp(a.bytes, b.bytes, sizeof(a.bytes)) == 0;
}

static bool add(void *context, const struct engine_referrer *referrer)
{
	struct emptying *it = context;
	for (uint32_t i = 0; i < it->count; i++)
		if (is_same(it->contents[i].id, referrer->from))
			return true;
	if (it->count == it->capacity) {
		it->capacity = it->capacity ? 2 * it->capacity : 16;
		it->contents = realloc(it->contents, it->capacity * sizeof(*it->contents));
		CHECK(it->contents);
	}
	it->contents[it->count++] = (struct content){.id = referrer->from};
	return it->count < LIMIT_CROSS_CONTENTS;
}

/* Those that were not there before are behind the others. False: there are none. */
static bool look_into(struct engine *engine, struct replica_id container, struct emptying *it)
{
	struct relation_target target = {.managed = true, .id = container};
	uint32_t before = it->count, kept = it->count;
	engine_relations_to(engine, &target, engine->options.self, 1u << GLUE_CONTAINED, add, it);
	for (uint32_t i = before; i < it->count; i++) {
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		if (replica_look(engine->replica, &arena, it->contents[i].id, &view) == 0 && !view.deleted)
			it->contents[kept++] = it->contents[i];
		arena_free(&arena);
	}
	it->count = kept;
	return kept > before;
}

static struct str site_name(const struct engine *engine, site_id site)
{
	const struct site_place *place = engine_find_place(engine, site);
	return place ? place->name : STR("");
}

static void put_content(const struct engine *engine, const struct replica_view *view, struct buf *out)
{
	bool any = false;
	buf_put(out, STR("{\"type\":"));
	buf_put_json(out, view->type);
	buf_put(out, STR(",\"id\":\""));
	replica_id_put(view->id, out);
	buf_put(out, STR("\",\"name\":"));
	if (view->name.length > 0)
		buf_put_json(out, view->name);
	else
		buf_put(out, STR("null"));
	buf_put(out, STR(",\"sites\":["));
	for (uint32_t i = 0; i < view->members_count; i++) {
		if (view->members[i].witness)
			continue;
		buf_put(out, any ? STR(",") : STR(""));
		buf_put_json(out, site_name(engine, view->members[i].site));
		any = true;
	}
	buf_put(out, STR("]}"));
}

/* As members of the problem. */
static void put_contents(struct engine *engine, const struct emptying *it, struct buf *out)
{
	uint32_t shown = 0;
	buf_put(out, STR(",\"contents\":["));
	for (uint32_t i = 0; i < it->count && shown < LIMIT_CROSS_CONTENTS_SHOWN; i++) {
		struct arena arena;
		struct replica_view view;
		arena_init(&arena, 0);
		if (!it->contents[i].deleted && replica_look(engine->replica, &arena, it->contents[i].id, &view) == 0) {
			buf_put(out, shown++ > 0 ? STR(",") : STR(""));
			put_content(engine, &view, out);
		}
		arena_free(&arena);
	}
	uint32_t left = it->count - it->deleted;
	buf_printf(out, "],\"contents_more\":%s", left > shown || it->count == LIMIT_CROSS_CONTENTS ? "true" : "false");
}

/* ---- One after the other ------------------------------------------------------------------------------------------------------- */

static void next_content(struct ticket *ticket);

void engine_contents_end(struct ticket *ticket)
{
	struct emptying *it = ticket->emptying;
	if (!it)
		return;
	ticket->emptying = NULL;
	if (it->call) {
		http_call_cancel(it->call);
		free(it->step); /* else its own ticket has it */
	}
	free(it->contents);
	free(it);
}

static void put_deleted(struct ticket *ticket)
{
	const struct emptying *it = ticket->emptying;
	uint32_t shown = 0;
	if (it->deleted == 0)
		return;
	buf_printf(&ticket->answer_fields, "Cheops-Contents: deleted=%u; ids=\"", it->deleted);
	for (uint32_t i = 0; i < it->count && shown < LIMIT_CROSS_CONTENTS_SHOWN; i++) {
		if (!it->contents[i].deleted)
			continue;
		buf_put(&ticket->answer_fields, shown++ > 0 ? STR(" ") : STR(""));
		replica_id_put(it->contents[i].id, &ticket->answer_fields);
	}
	buf_put(&ticket->answer_fields, STR("\"\r\n"));
}

__attribute__((format(printf, 2, 3))) static void give_up(struct ticket *ticket, const char *format, ...)
{
	struct emptying *it = ticket->emptying;
	struct buf why = {0}, id = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&why, format, arguments);
	va_end(arguments);
	replica_id_put(it->contents[it->at].id, &id);
	engine_ticket_refuse(ticket, 409, "container-not-empty",
	                     "%u of what is in it were deleted, then %s could not be: %s; the container is as it was: send "
	                     "the request again once that is mended",
	                     it->deleted, buf_c(&id), buf_c(&why));
	buf_clear(&ticket->answer_body);
	put_contents(ticket->engine, it, &ticket->answer_body);
	put_deleted(ticket);
	buf_free(&why);
	buf_free(&id);
	engine_ticket_finish(ticket);
}

/* "Site1=204 Site2=pending": has a site that holds it not done it yet? */
static struct str find_pending(const struct step *step, struct str replicas)
{
	for (uint32_t i = 0; i < step->holders_count; i++) {
		struct str name = site_name(step->engine, step->holders[i]);
		struct buf wanted = {0};
		buf_put(&wanted, name);
		buf_put(&wanted, STR("=pending"));
		bool found = name.length > 0 && replicas.length > 0 &&
		             memmem(replicas.at, replicas.length, wanted.at, wanted.length) != NULL;
		buf_free(&wanted);
		if (found)
			return name;
	}
	return STR("");
}

static void step_over(struct step *step, unsigned status, struct str why, struct str replicas)
{
	struct ticket *ticket = step->engine->ending ? NULL : engine_ticket(step->engine, step->ticket);
	struct emptying *it = ticket ? ticket->emptying : NULL;
	if (!it) {
		free(step);
		return;
	}
	it->call = NULL;
	it->step = NULL;
	struct str pending = find_pending(step, replicas), site = site_name(step->engine, step->site);
	if (status == 404 || status == 410 || (status >= 200 && status < 300 && pending.length == 0)) {
		it->contents[it->at++].deleted = true;
		it->deleted++;
		free(step);
		next_content(ticket);
		return;
	}
	if (pending.length > 0)
		give_up(ticket, "%.*s has not carried it out yet", STR_FMT(pending));
	else if (status > 0)
		give_up(ticket, "%.*s answered %u", STR_FMT(site), status);
	else
		give_up(ticket, "%.*s: %.*s", STR_FMT(site), STR_FMT(why));
	free(step);
}

/* In the engine's loop. */
static void deleted_here(void *context, const struct engine_answer *answer)
{
	step_over(context, answer->status, answer->detail, engine_field(answer->fields, STR("cheops-replicas")));
}

static void deleted_there(void *context, const struct http_call_answer *answer)
{
	const struct http_field *field = answer->code == 0 ? http_find_named(answer->head, STR("cheops-replicas")) : NULL;
	step_over(context, answer->code ? 0 : answer->status, str_of(answer->err.text),
	          field ? http_field_value(answer->head, field) : STR(""));
}

static bool is_of_the_user(void *context, struct str name)
{
	static const char *const others[] = {"prefer",        "idempotency-key",     "if-match",
	                                     "if-none-match", "if-unmodified-since", "if-modified-since",
	                                     "range",         "content-type"};
	(void)context;
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		if (str_equal_nocase(name, str_of(others[i])))
			return false;
	return true;
}

static int check_site(void *context, struct str certificate_der, struct err *err)
{
	const struct step *step = context;
	return engine_check_site(step->site, certificate_der, err);
}

static void put_hop(struct buf *fields, struct str service, struct str site)
{
	buf_put(fields, STR("Cheops-Hop: v2 service="));
	percent_encode(fields, service);
	buf_put(fields, STR(" hops=1\r\nScope: "));
	scope_put_service(fields, service);
	buf_put(fields, STR(": "));
	scope_put_site(fields, site);
	buf_put(fields, STR("\r\n"));
}

static void delete_there(struct ticket *ticket, struct step *step, struct str target, struct buf *fields)
{
	struct engine *engine = ticket->engine;
	const struct site_place *place = engine_find_place(engine, step->site);
	struct emptying *it = ticket->emptying;
	struct err err = {0};
	if (!place || !engine->client) {
		step_over(step, 0, STR("it cannot be reached"), STR(""));
		return;
	}
	put_hop(fields, ticket->request.service, place->name);
	struct http_call_options options = {.tls = engine->client,
	                                    .method = "DELETE",
	                                    .target = target,
	                                    .fields = buf_str(fields),
	                                    .pool = engine->pool,
	                                    .timeout_ms = DELETE_MS,
	                                    .answer_bytes = ANSWER_BYTES,
	                                    .done = deleted_there,
	                                    .check = check_site,
	                                    .context = step};
	http_address_of_site(&options.address, &place->address);
	if (http_call_start(&it->call, engine->loop, &options, &err) != 0) {
		it->call = NULL;
		step_over(step, 0, str_of(err.text), STR(""));
	}
}

static void delete_child(struct ticket *ticket, const struct replica_view *view)
{
	struct engine *engine = ticket->engine;
	struct emptying *it = ticket->emptying;
	struct step *step = calloc(1, sizeof(*step));
	CHECK(step);
	*step = (struct step){.engine = engine, .ticket = ticket->number};
	it->step = step;
	for (uint32_t i = 0; i < view->members_count; i++) {
		if (view->members[i].witness)
			continue;
		step->holders[step->holders_count++] = view->members[i].site;
		if (view->members[i].site == engine->options.self)
			step->site = engine->options.self;
	}
	if (step->site == 0)
		step->site = view->prime;
	struct buf target = {0}, fields = {0};
	buf_put(&target, view->collection);
	buf_put_char(&target, '/');
	replica_id_put(view->id, &target);
	engine_fields_put(&fields, ticket->request.fields, is_of_the_user, NULL);
	if (step->holders_count > 1)
		buf_printf(&fields, "Prefer: wait=%d\r\n", WAIT_S);
	if (step->site == engine->options.self)
		engine_submit(engine, &(struct engine_request){.service = view->service,
		                                               .method = STR("DELETE"),
		                                               .target = buf_str(&target),
		                                               .fields = buf_str(&fields),
		                                               .replicant = view->id,
		                                               .loop = engine->loop,
		                                               .done = deleted_here,
		                                               .context = step});
	else
		delete_there(ticket, step, buf_str(&target), &fields);
	if (fields.at)
		explicit_bzero(fields.at, fields.length);
	buf_free(&fields);
	buf_free(&target);
}

/* The next one that is still there. */
static void next_content(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	struct emptying *it = ticket->emptying;
	struct arena arena;
	arena_init(&arena, 0);
	for (;;) {
		struct replica_view view;
		if (it->at == it->count && it->passes++ < PASSES_MOST)
			look_into(engine, ticket->replicant, it);
		if (it->at == it->count)
			break;
		if (replica_look(engine->replica, &arena, it->contents[it->at].id, &view) == 0 && !view.deleted) {
			delete_child(ticket, &view); /* it may be over then */
			arena_free(&arena);
			return;
		}
		it->contents[it->at++].deleted = true; /* by somebody else */
	}
	arena_free(&arena);
	put_deleted(ticket);
	engine_contents_end(ticket);
	engine_ticket_continue(ticket);
}

/* Once whoever asked is not in the way any more: the ticket may come to its end at once. */
struct beginning {
	struct http_task task;
	struct engine *engine;
	uint64_t ticket;
};

static void begin(struct http_task *task)
{
	struct beginning *beginning = (struct beginning *)task;
	struct engine *engine = beginning->engine;
	struct ticket *ticket = engine->ending ? NULL : engine_ticket(engine, beginning->ticket);
	if (ticket && ticket->emptying)
		next_content(ticket);
	free(beginning);
}

static void begin_soon(struct ticket *ticket)
{
	struct beginning *beginning = calloc(1, sizeof(*beginning));
	CHECK(beginning);
	*beginning = (struct beginning){.task = {.run = begin}, .engine = ticket->engine, .ticket = ticket->number};
	http_loop_post(ticket->engine->loop, &beginning->task);
}

/* ---- Asked ------------------------------------------------------------------------------------------------------------------------ */

static bool deletes_container(struct ticket *ticket)
{
	struct arena arena;
	struct replica_view view;
	if (ticket->request.members_count > 0 || glue_operation_effect(ticket->match.operation) != GLUE_DELETE)
		return false;
	arena_init(&arena, 0);
	bool container = replica_look(ticket->engine->replica, &arena, ticket->replicant, &view) == 0 &&
	                 view.span == REPLICA_CONTAINER && !view.deleted;
	arena_free(&arena);
	return container;
}

bool engine_contents_ready(struct ticket *ticket)
{
	struct emptying found = {0};
	if (!deletes_container(ticket))
		return true;
	if (!look_into(ticket->engine, ticket->replicant, &found)) {
		free(found.contents);
		return true;
	}
	if (!ticket->preference.contents) {
		engine_ticket_refuse(
			ticket, 409, "container-not-empty",
			"%u resource%s in it, which `contents` lists with their sites: delete what is in it first, or "
			"send `Prefer: cheops-contents` to have that deleted with it",
			found.count, found.count == 1 ? " is" : "s are");
		put_contents(ticket->engine, &found, &ticket->answer_body);
		free(found.contents);
		return false;
	}
	ticket->emptying = malloc(sizeof(found));
	CHECK(ticket->emptying);
	*ticket->emptying = found;
	begin_soon(ticket);
	return false;
}
