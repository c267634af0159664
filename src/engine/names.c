/* Names of what is in the containers of this site: the shell of src/cross/children.h.
 *
 * Its rows are tables of the store, in the same commits as those of src/replica; what it asks to be sent, answered or told is held until then. A user's request that
 * makes a child, or gives it another name:
 *   1. take() (submit.c) has read and translated it, and asks engine_names_ready()
 *   2. the name is claimed. At another site's prime: a message goes there, POST /cheops/v1/names, and one comes back
 *   3. granted: the ticket goes on to src/replica. Refused: it is answered, and nothing was done
 *   4. the service has accepted it: engine_names_ran() has the name kept. What else becomes of it src/replica tells by its events
 *
 * A store that refuses a commit makes all of it start anew, with struct replica. */
#include "engine/engine_int.h"

#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

enum { FREE_MS = 2000 };

/* ---- Rows --------------------------------------------------------------------------------------------------------------- */

static enum replica_table table_of(enum cross_table table)
{
	static const enum engine_table tables[CROSS_TABLES] = {[CROSS_CONTAINERS] = ENGINE_CROSS_CONTAINERS,
	                                                       [CROSS_CLAIMS] = ENGINE_CROSS_CLAIMS,
	                                                       [CROSS_NAMES] = ENGINE_CROSS_NAMES,
	                                                       [CROSS_RIVALS] = ENGINE_CROSS_RIVALS,
	                                                       [CROSS_META] = ENGINE_CROSS_META,
	                                                       [CROSS_CHILDREN] = ENGINE_CROSS_CHILDREN};
	return (enum replica_table)tables[table];
}

static int get(void *context, enum cross_table table, struct str key, struct buf *row)
{
	return engine_row_get(context, table_of(table), key, row);
}

static void put(void *context, enum cross_table table, struct str key, struct str row)
{
	engine_row_put(context, table_of(table), key, row);
}

static void remove_row(void *context, enum cross_table table, struct str key)
{
	engine_row_remove(context, table_of(table), key);
}

static int scan(void *context, enum cross_table table, struct str prefix,
                bool (*each)(void *each_context, struct str key, struct str row), void *each_context)
{
	return engine_row_scan(context, table_of(table), prefix, STR(""), each, each_context);
}

/* ---- What is asked, until the commit --------------------------------------------------------------------------------------- */

static struct action *action_new(enum action_kind kind)
{
	struct action *action = calloc(1, sizeof(*action));
	CHECK(action);
	action->kind = kind;
	return action;
}

static void hold_tell(void *context, site_id to, struct str message)
{
	struct action *action = action_new(ACTION_TELL_NAMES);
	action->to = to;
	buf_put(&action->message, message);
	engine_hold(context, action);
}

static void hold_answer(void *context, const struct cross_answer *answer)
{
	struct engine *engine = context;
	struct action *action = action_new(ACTION_NAMED);
	action->named = *answer;
	engine->users_wait = true;
	engine_hold(engine, action);
}

/* It is told at each start: of those that were told before nobody has to hear again, but of all that is so `cheops get` shows it. */
static void hold_lost(void *context, const struct cross_lost *lost)
{
	struct engine *engine = context;
	struct action *action = action_new(ACTION_EVENT);
	if (engine->names_starting) {
		free(action);
		return;
	}
	action->event = (struct replica_event){.kind = REPLICA_EVENT_NAME_LOST,
	                                       .op = {.replicant = lost->claim.child},
	                                       .member = lost->holder_site,
	                                       .into = lost->holder};
	log_event(engine->options.log, LOG_WARN, "a name that could not be checked turned out to be another's",
	          LOG_STR("name", text_shown(lost->claim.name)), LOG_STR("type", text_shown(lost->claim.type)));
	engine_hold(engine, action);
}

static uint64_t draw(void *context)
{
	return engine_draw(context);
}

/* As the description has it now. Where nothing is said any more, the careful way. */
static bool is_optimistic(void *context, const struct replica_view *container)
{
	const struct engine *engine = context;
	struct glue_match match;
	struct glue_request asked = engine_request_of(container->service, STR("GET"), container->collection, STR(""));
	return engine->setup && engine->setup->about.glue && glue_match(engine->setup->about.glue, &asked, &match) &&
	       glue_type_cross(match.type)->optimistic;
}

static bool is_removed(void *context, site_id site)
{
	const struct engine *engine = context;
	return engine->sites && site_snapshot_is_removed(engine->sites, site);
}

/* ---- Life ------------------------------------------------------------------------------------------------------------------ */

int engine_names_start(struct engine *engine, struct err *err)
{
	struct cross_names_options options = cross_names_options_default();
	options.self = engine->options.self;
	options.hash_key = engine->options.hash_key;
	struct cross_children_host host = {.names = {.context = engine,
	                                             .get = get,
	                                             .put = put,
	                                             .remove = remove_row,
	                                             .scan = scan,
	                                             .send = hold_tell,
	                                             .answer = hold_answer,
	                                             .lost = hold_lost,
	                                             .draw = draw},
	                                   .optimistic = is_optimistic,
	                                   .is_removed = is_removed};
	engine->names_starting = true;
	int code = cross_children_new(&engine->children, &options, engine->replica, &host, engine_now(), err);
	engine->names_starting = false;
	return code;
}

void engine_names_stop(struct engine *engine)
{
	if (engine->children)
		cross_children_free(engine->children);
	engine->children = NULL;
	http_timer_clear(engine->loop, &engine->names_timer);
	http_timer_clear(engine->loop, &engine->follow_timer);
	engine->follow_timed = false;
	engine->follow_all = true;
}

void engine_names_tick(struct http_timer *timer)
{
	struct engine *engine = (struct engine *)((char *)timer - offsetof(struct engine, names_timer));
	if (!engine->children)
		return;
	cross_names_tick(cross_children_names(engine->children), engine_now());
	engine_changed(engine);
}

void engine_names_review(struct engine *engine)
{
	if (engine->children)
		cross_children_review(engine->children, engine_now());
}

void engine_names_timer(struct engine *engine)
{
	http_timer_clear(engine->loop, &engine->names_timer);
	if (!engine->children)
		return;
	uint64_t due_us = cross_names_due(cross_children_names(engine->children)), now_us = engine_now().us;
	if (due_us != UINT64_MAX)
		http_timer_set(engine->loop, &engine->names_timer, due_us > now_us ? (due_us - now_us) / 1000 : 0);
}

void engine_names_event(struct engine *engine, const struct replica_event *event)
{
	if (engine->children)
		cross_children_event(engine->children, event);
}

/* ---- A user's request -------------------------------------------------------------------------------------------------------- */

static struct str site_name(const struct engine *engine, site_id site)
{
	const struct site_place *place = engine_find_place(engine, site);
	return place ? place->name : STR("a site that is not known any more");
}

static void refuse_elsewhere(struct ticket *ticket, site_id at)
{
	struct str name = site_name(ticket->engine, at);
	ticket->answer.elsewhere = at;
	engine_ticket_refuse(ticket, 409, "name-elsewhere",
	                     "the name of what is in a container is the business of the site that made it: ask %.*s to "
	                     "change it; everything else of it can be changed here",
	                     STR_FMT(name));
}

/* Loops of the data plane may find it for a moment longer than there are names in it. */
static bool container_is_gone(struct ticket *ticket)
{
	struct replica_view view;
	return ticket->request.in_container &&
	       replica_look(ticket->engine->replica, &ticket->arena, ticket->request.container, &view) == 0 &&
	       (view.deleted || view.left);
}

static bool refuse(struct ticket *ticket, int code, site_id at, const struct err *err)
{
	if (code == ERR_CONFLICT && at != 0)
		refuse_elsewhere(ticket, at);
	else if (code == ERR_UNAVAILABLE)
		engine_ticket_refuse(ticket, 503, "earlier-first", "%s", err->text);
	else if (code == ERR_NOT_FOUND && container_is_gone(ticket))
		engine_ticket_refuse(ticket, 404, "not-replicated",
		                     "the container was deleted, or is not at this site any more");
	else if (code == ERR_NOT_FOUND)
		engine_ticket_refuse(ticket, 503, "not-seen-yet",
		                     "this site has not heard yet which sites have the container; try again");
	else if (code == ERR_LIMIT)
		engine_ticket_refuse(ticket, 429, "not-replicated", "%s", err->text);
	else
		engine_ticket_refuse(ticket, 409, "not-replicated", "%s", err->text);
	return false;
}

/* Is one of the sites that are to hold it to be withdrawn from the container? 0: none. */
static site_id find_leaving(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	const struct engine_request *request = &ticket->request;
	struct replica_view view;
	if (replica_is_leaving(engine->replica, request->container))
		return engine->options.self;
	if (request->holders_count < 2 || replica_look(engine->replica, &ticket->arena, request->container, &view) != 0)
		return 0;
	for (uint32_t i = 0; i < view.members_count; i++)
		for (uint32_t k = 0; k < request->holders_count; k++)
			if (view.members[i].leaving && view.members[i].site == request->holders[k] &&
			    request->holders[k] != engine->options.self)
				return request->holders[k];
	return 0;
}

/* Also of what has no name: the container goes once nothing of it lies there. */
static bool refuse_leaving(struct ticket *ticket, site_id site)
{
	struct str name = site_name(ticket->engine, site);
	engine_ticket_refuse(ticket, 409, "not-in-container",
	                     "the container is being withdrawn from %.*s: nothing new is made in it there; ask another of "
	                     "its sites, or name others in the scope",
	                     STR_FMT(name));
	return false;
}

/* A name that its child has, and will not once it is deleted, or renamed. */
static void note_freed(struct ticket *ticket, struct str name)
{
	struct cross_claim_view view;
	bool deletes = glue_operation_effect(ticket->match.operation) == GLUE_DELETE;
	if ((name.length == 0 && !deletes) ||
	    cross_children_look(ticket->engine->children, ticket->replicant, &view) != 0 ||
	    str_equal(view.claim.name, name))
		return;
	struct str type = view.claim.type, had = view.claim.name;
	ticket->frees = view.claim;
	ticket->frees.type = str_make(arena_copy(&ticket->arena, type.at, type.length), type.length);
	ticket->frees.name = str_make(arena_copy(&ticket->arena, had.at, had.length), had.length);
}

/* Where it counts: among children, and of what is replicated under a name that is unique. */
static bool is_too_long(struct ticket *ticket, struct str name)
{
	struct engine *engine = ticket->engine;
	struct replica_id container;
	if (name.length <= LIMIT_REPLICA_NAME_BYTES)
		return false;
	if (ticket->request.members_count > 0)
		return ticket->request.in_container || glue_type_names_unique(ticket->match.type);
	return engine->children && cross_children_container(engine->children, ticket->replicant, &container);
}

static bool refuse_length(struct ticket *ticket, struct str name)
{
	engine_ticket_refuse(ticket, 400, "name-too-long",
	                     "the name " TEXT_NAME_FMT " has %zu bytes; at most %d can be kept unique over sites",
	                     TEXT_NAME(name), name.length, LIMIT_REPLICA_NAME_BYTES);
	return false;
}

bool engine_names_ready(struct ticket *ticket, struct str name)
{
	struct engine *engine = ticket->engine;
	bool creates = ticket->request.members_count > 0;
	if (is_too_long(ticket, name))
		return refuse_length(ticket, name);
	struct cross_wish wish = {.creates = creates,
	                          .container = ticket->request.container,
	                          .type = buf_str(&ticket->type),
	                          .child = ticket->replicant,
	                          .name = name};
	if (engine->children && !creates)
		note_freed(ticket, name);
	site_id leaving = creates && ticket->request.in_container ? find_leaving(ticket) : 0;
	if (leaving != 0)
		return refuse_leaving(ticket, leaving);
	if (!engine->children || name.length == 0 || (creates && !ticket->request.in_container))
		return true;
	/* The same request again: what became of it is known, or it waits behind the first. */
	if (ticket->request.key.length > 0 && replica_knows_key(engine->replica, ticket->request.key))
		return true;
	struct err err = {0};
	site_id at = 0;
	int code = cross_children_claim(engine->children, &wish, ticket->number, engine_now(), &at, &err);
	if (code == CROSS_NOTHING_TO_ASK)
		return true;
	if (code != CROSS_ASKED_FOR)
		return refuse(ticket, code, at, &err);
	ticket->claims = true;
	ticket->wishes = str_make(arena_copy(&ticket->arena, name.at, name.length), name.length);
	engine_changed(engine);
	return false;
}

static void refuse_taken(struct ticket *ticket, const struct cross_answer *answer)
{
	struct str site = site_name(ticket->engine, answer->holder_site);
	struct buf id = {0};
	replica_id_put(answer->holder, &id);
	engine_ticket_refuse(ticket, 409, "name-taken",
	                     "the name " TEXT_NAME_FMT
	                     " is taken: names are unique over all sites of a container, and %.*s "
	                     "has one of this type called so, %s; choose another name",
	                     TEXT_NAME(ticket->wishes), STR_FMT(site), buf_c(&id));
	buf_free(&id);
}

static site_id prime_of(struct engine *engine, const struct ticket *ticket)
{
	struct cross_container list;
	struct replica_id container = ticket->request.container;
	bool known =
		ticket->request.in_container || cross_children_container(engine->children, ticket->replicant, &container);
	return known && cross_names_get(cross_children_names(engine->children), container, &list) ? list.sites[0].site : 0;
}

static void refuse_unchecked(struct ticket *ticket)
{
	struct str prime = site_name(ticket->engine, prime_of(ticket->engine, ticket));
	engine_ticket_refuse(ticket, 503, "name-unchecked",
	                     "whether the name is free is for %.*s to say, the prime of the container, and it does not "
	                     "answer; nothing was done: try again when it does",
	                     STR_FMT(prime));
}

void engine_names_answered(struct engine *engine, const struct cross_answer *answer)
{
	struct ticket *ticket = engine_ticket(engine, answer->ticket);
	if (!ticket)
		return;
	if (answer->code == ERR_CONFLICT)
		refuse_taken(ticket, answer);
	else if (answer->code)
		refuse_unchecked(ticket);
	if (answer->unchecked) {
		struct str prime = site_name(engine, prime_of(engine, ticket));
		buf_printf(&ticket->answer_fields, "Cheops-Name: unchecked; prime=\"%.*s\"\r\n", STR_FMT(prime));
	}
	if (answer->code) {
		ticket->claims = false;
		engine_ticket_finish(ticket);
	} else {
		engine_ticket_continue(ticket);
	}
}

/* It is in the hands of src/replica, or never will be. */
void engine_names_over(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	if (!ticket->claims || !engine->children)
		return;
	ticket->claims = false;
	cross_children_over(engine->children, ticket->replicant);
	engine_changed(engine);
}

/* ---- What is left is free ---- */

static bool is_held(struct ticket *ticket)
{
	return ticket->frees.name.length > 0 && ticket->engine->children &&
	       cross_names_has(cross_children_names(ticket->engine->children), &ticket->frees);
}

static void end_freeing(struct ticket *ticket)
{
	ticket->freeing = false;
	ticket->engine->freeing--;
	engine_ticket_finish(ticket);
}

static void freeing_over(struct wait *wait)
{
	end_freeing((struct ticket *)((char *)wait - offsetof(struct ticket, wait)));
}

/* Who deletes and makes again, wherever, is not to be told that the name is taken: so the prime's word is waited for, where it can be expected. */
bool engine_names_frees(struct ticket *ticket)
{
	struct engine *engine = ticket->engine;
	struct cross_container list;
	if (!ticket->accepted || !is_held(ticket) ||
	    !cross_names_get(cross_children_names(engine->children), ticket->frees.container, &list))
		return false;
	if (list.sites[0].site != engine->options.self && !engine_reachable(engine, list.sites[0].site))
		return false;
	ticket->wait = (struct wait){.op = ticket->op, .answer = true, .over = freeing_over};
	if (!engine_wait_start(engine, &ticket->wait, FREE_MS))
		return false;
	ticket->freeing = true;
	engine->freeing++;
	return true;
}

void engine_names_freed(struct engine *engine)
{
	for (struct ticket *ticket = engine->freeing > 0 ? engine->tickets : NULL, *next; ticket; ticket = next) {
		next = ticket->next;
		if (!ticket->freeing || is_held(ticket))
			continue;
		engine_wait_end(&ticket->wait);
		end_freeing(ticket);
	}
}

/* ---- What became of it ----------------------------------------------------------------------------------------------------------- */

struct named {
	struct buf name;
	bool found;
};

static bool take_name(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct named *named = context;
	if (place->kind == GLUE_PLACE_NAME && !named->found) {
		buf_put(&named->name, place->value);
		named->found = true;
	}
	return false;
}

/* A request was accepted here, or it turned out that it was. */
void engine_names_ran(struct run *run)
{
	struct engine *engine = run->engine;
	struct replica_id child = run->task.op.replicant;
	struct named named = {0};
	struct buf body = {0}, unused = {0};
	if (!engine->children || !run->match.operation || !cross_children_has(engine->children, child))
		return;
	const struct glue_places *places =
		glue_operation_opaque(run->match.operation) ? NULL : glue_request_places(run->match.operation);
	struct str text = buf_str(&run->body);
	if (text.length == 0 && run->request.blob.length > 0 && places &&
	    run->request.blob_bytes <= LIMIT_REPLICA_READ_BYTES &&
	    engine_blobs_read(engine, run->request.blob, &body, NULL) == 0)
		text = buf_str(&body);
	if (places)
		engine_splice(places, &(struct glue_replacer){&named, take_name}, text, &unused);
	if (named.found)
		cross_children_named(engine->children, child, buf_str(&named.name), engine_now());
	cross_children_note(engine->children, child);
	buf_free(&unused);
	buf_free(&body);
	buf_free(&named.name);
}

/* What was refused leaves no trace, so no event tells of it. */
void engine_names_ended(struct run *run)
{
	if (run->engine->children)
		cross_children_note(run->engine->children, run->task.op.replicant);
}

/* ---- From elsewhere ---------------------------------------------------------------------------------------------------------------- */

struct letter {
	struct http_task task;
	struct engine *engine;
	site_id from;
	struct buf message;
};

static void take_letter(struct http_task *task)
{
	struct letter *letter = (struct letter *)task;
	struct engine *engine = letter->engine;
	if (engine->children) {
		cross_children_receive(engine->children, letter->from, buf_str(&letter->message), engine_now());
		engine_changed(engine);
	}
	buf_free(&letter->message);
	free(letter);
}

void engine_receive_names(struct engine *engine, site_id from, struct str message)
{
	struct letter *letter = calloc(1, sizeof(*letter));
	CHECK(letter);
	letter->task = (struct http_task){.run = take_letter};
	letter->engine = engine;
	letter->from = from;
	buf_put(&letter->message, message);
	http_loop_post(engine->loop, &letter->task);
}

void engine_names_removed(struct engine *engine, site_id site)
{
	if (engine->children)
		cross_children_site_removed(engine->children, site, engine_now());
}

/* ---- To look at --------------------------------------------------------------------------------------------------------------------- */

void engine_names_show(struct engine *engine, struct replica_view *view)
{
	struct cross_container list;
	if (engine->children && view->span == REPLICA_CONTAINER && !view->deleted && !view->left &&
	    cross_names_get(cross_children_names(engine->children), view->id, &list))
		view->prime = list.sites[0].site;
}

struct engine_child engine_child_look(struct engine *engine, struct arena *arena, struct replica_id child)
{
	struct cross_claim_view view;
	if (!engine->children || cross_children_look(engine->children, child, &view) != 0)
		return (struct engine_child){.state = ENGINE_NAME_NONE};
	bool unchecked = view.unchecked && !view.settled;
	struct str name = view.claim.name;
	return (struct engine_child){.state = view.state == CROSS_LOST ? ENGINE_NAME_LOST
	                                      : unchecked              ? ENGINE_NAME_UNCHECKED
	                                                               : ENGINE_NAME_FINE,
	                             .name = str_make(arena_copy(arena, name.at, name.length), name.length),
	                             .holder = view.holder,
	                             .holder_site = view.holder_site};
}

void engine_names_count(const struct engine *engine, struct engine_figures *figures)
{
	if (engine->children)
		figures->names = cross_names_counters(cross_children_names(engine->children));
}
