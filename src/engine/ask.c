/* Questions, from the loop that has them to src/replica, and their replies back. */
#include "engine/engine_int.h"

#include "base/check.h"
#include "base/text.h"

#include <stdlib.h>

enum {
	LOOKED_AT_ONCE = 64,   /* ids that are read before they are looked at */
	LOOKED_MOST = 2048,    /* for one page: where few match, a page is short, and the list goes on */
	CHANGES_AT_ONCE = 256, /* in one reply */
};

/* From engine_ask() to its reply. */
struct ask {
	struct wait wait;      /* first */
	struct http_task task; /* to the engine, then back */
	struct arena arena;
	struct engine_question question;
	char *fields; /* of the question: there may be a credential in them */
	struct engine_reply reply;
	struct site_snapshot *sites;
	struct err err;
	uint64_t ticket; /* of a site that is being added; 0: not asked yet */
	bool begun;      /* it was asked for, and the answer comes, or is held already */
};

static void ask_free(struct ask *ask)
{
	site_snapshot_drop(ask->sites);
	explicit_bzero(ask->fields, ask->question.fields.length);
	arena_free(&ask->arena);
	free(ask);
}

/* ---- Back ---------------------------------------------------------------------------------------------------------- */

/* In the loop of the question. */
static void tell(struct http_task *task)
{
	struct ask *ask = (struct ask *)((char *)task - offsetof(struct ask, task));
	ask->question.done(ask->question.context, &ask->reply);
	ask_free(ask);
}

void engine_ask_reply(struct ask *ask, const struct err *failure)
{
	struct engine *engine = ask->wait.engine;
	if (failure && ask->err.code == 0)
		err_set(&ask->err, ERR_UNAVAILABLE, "the store of this agent cannot be used: %s", failure->text);
	ask->reply.code = ask->err.code;
	ask->reply.text = str_of(ask->err.text);
	ask->reply.engine = engine;
	ask->reply.self = engine->options.self;
	if (engine->sites)
		ask->sites = site_snapshot_keep(engine->sites);
	ask->reply.sites = ask->sites;
	ask->task.run = tell;
	http_loop_post(ask->question.loop, &ask->task);
}

/* ---- Replicants ---------------------------------------------------------------------------------------------------- */

static const char *const copy_names[ENGINE_COPIES] = {
	[ENGINE_COPY_WITNESS] = "witness",   [ENGINE_COPY_SETTLED] = "settled",   [ENGINE_COPY_PENDING] = "pending",
	[ENGINE_COPY_STUCK] = "stuck",       [ENGINE_COPY_REJECTED] = "rejected", [ENGINE_COPY_IN_DOUBT] = "in-doubt",
	[ENGINE_COPY_DIVERGED] = "diverged", [ENGINE_COPY_DELETED] = "deleted",   [ENGINE_COPY_LEFT] = "left"};

const char *engine_copy_name(enum engine_copy copy)
{
	return copy_names[copy];
}

enum engine_copy engine_copy_of(const struct replica_view *view, const struct replica_member_view *member)
{
	if (view->left)
		return ENGINE_COPY_LEFT;
	if (member->diverged)
		return ENGINE_COPY_DIVERGED;
	if (member->in_doubt > 0)
		return ENGINE_COPY_IN_DOUBT;
	if (member->rejected > 0)
		return ENGINE_COPY_REJECTED;
	if (member->stuck)
		return ENGINE_COPY_STUCK;
	if (!member->settled)
		return ENGINE_COPY_PENDING;
	if (view->deleted)
		return ENGINE_COPY_DELETED;
	return member->witness ? ENGINE_COPY_WITNESS : ENGINE_COPY_SETTLED;
}

/* A type is named as the description does, or in short, without what it is in. */
static bool type_is(struct str type, struct str wanted)
{
	if (wanted.length == 0 || str_equal(type, wanted))
		return true;
	return type.length > wanted.length &&
	       (type.at[type.length - wanted.length - 1] == '.' || type.at[type.length - wanted.length - 1] == '/') &&
	       str_equal(str_make(type.at + type.length - wanted.length, wanted.length), wanted);
}

static bool is_wanted(const struct ask *ask, site_id site, const struct replica_view *view)
{
	const struct engine_question *question = &ask->question;
	bool member = site == 0, state = question->state < 0;
	for (uint32_t i = 0; i < view->members_count; i++) {
		if (site != 0 && view->members[i].site != site)
			continue;
		member = true;
		state |= (int)engine_copy_of(view, &view->members[i]) == question->state;
	}
	if (view->deleted && question->state < 0)
		return false; /* who wants to see what is gone says so */
	return member && state && (question->service.length == 0 || str_equal(question->service, view->service)) &&
	       type_is(view->type, question->type);
}

static void look_at_names(struct ask *ask)
{
	struct engine_child *children = arena_array(&ask->arena, struct engine_child, ask->reply.replicants_count + 1);
	for (uint32_t i = 0; i < ask->reply.replicants_count; i++)
		children[i] = engine_child_look(ask->wait.engine, &ask->arena, ask->reply.replicants[i].id);
	ask->reply.children = children;
}

static void look_at_divisions(struct ask *ask)
{
	uint32_t count = ask->reply.replicants_count;
	const struct cross_division **divisions = arena_array(&ask->arena, const struct cross_division *, count);
	for (uint32_t i = 0; i < count; i++) {
		const struct replica_view *view = &ask->reply.replicants[i];
		if (view->span != REPLICA_DIVIDED)
			continue;
		struct cross_division *division = arena_new(&ask->arena, struct cross_division);
		if (engine_division_get(ask->wait.engine, view->id, division))
			divisions[i] = division;
	}
	ask->reply.divisions = divisions;
}

static void look_at_replicant(struct ask *ask)
{
	struct replica_view *view = arena_new(&ask->arena, struct replica_view);
	if (replica_look(ask->wait.engine->replica, &ask->arena, ask->question.replicant, view) != 0) {
		err_set(&ask->err, ERR_NOT_FOUND,
		        "no replicated resource of that id is known at this site; it may be known at others");
		return;
	}
	engine_names_show(ask->wait.engine, view);
	ask->reply.replicants = view;
	ask->reply.replicants_count = 1;
	look_at_names(ask);
	look_at_divisions(ask);
}

static void list_replicants(struct ask *ask, site_id site)
{
	struct engine *engine = ask->wait.engine;
	struct replica_view *views = arena_array(&ask->arena, struct replica_view, ask->question.most);
	struct replica_id ids[LOOKED_AT_ONCE], last = {0};
	const struct replica_id *after = ask->question.after_replicant;
	uint32_t count, found = 0, looked = 0;
	ask->reply.replicants = views;
	do {
		count = replica_list(engine->replica, after, ids, LOOKED_AT_ONCE);
		for (uint32_t i = 0; i < count; i++) {
			if (found == ask->question.most || looked == LOOKED_MOST) {
				ask->reply.more = true;
				ask->reply.next_replicant = last;
				break;
			}
			looked++;
			last = ids[i];
			/* An alias is shown as what it became, where that stands. */
			if (replica_look(engine->replica, &ask->arena, ids[i], &views[found]) == 0 &&
			    memcmp(views[found].id.bytes, ids[i].bytes, sizeof(ids[i].bytes)) == 0 &&
			    is_wanted(ask, site, &views[found]))
				engine_names_show(engine, &views[found++]);
		}
		after = &last;
	} while (count == LOOKED_AT_ONCE && !ask->reply.more);
	ask->reply.replicants_count = found;
	look_at_names(ask);
	look_at_divisions(ask);
}

/* ---- Operations ---------------------------------------------------------------------------------------------------- */

static void look_at_operation(struct ask *ask)
{
	struct replica_op_view *view = arena_new(&ask->arena, struct replica_op_view);
	if (engine_look_op(ask->wait.engine, &ask->arena, ask->question.operation, view) != 0) {
		err_set(&ask->err, ERR_NOT_FOUND,
		        "no operation of that id is known at this site; members of its resource know it, until it is deleted");
		return;
	}
	ask->reply.operations = view;
	ask->reply.operations_count = 1;
	engine_is_over(view, ask->question.until, ask->wait.site, &ask->reply.reached);
}

static bool has_state(const struct ask *ask, site_id site, const struct replica_op_view *view)
{
	bool member = site == 0, state = ask->question.state < 0;
	for (uint32_t i = 0; i < view->members_count; i++) {
		if (site != 0 && view->members[i].site != site)
			continue;
		member = true;
		state |= (int)view->members[i].state == ask->question.state;
	}
	return member && state;
}

static void list_operations(struct ask *ask, site_id site)
{
	struct engine *engine = ask->wait.engine;
	struct replica_op_view *views = arena_array(&ask->arena, struct replica_op_view, ask->question.most);
	struct replica_op_id ids[LOOKED_AT_ONCE], last = {0};
	const struct replica_op_id *after = ask->question.after_operation;
	uint32_t count, found = 0, looked = 0;
	ask->reply.operations = views;
	do {
		count = replica_list_ops(engine->replica, ask->question.of_replicant ? &ask->question.replicant : NULL, after,
		                         ids, LOOKED_AT_ONCE);
		for (uint32_t i = 0; i < count; i++) {
			if (found == ask->question.most || looked == LOOKED_MOST) {
				ask->reply.more = true;
				ask->reply.next_operation = last;
				break;
			}
			looked++;
			last = ids[i];
			if (replica_look_op(engine->replica, &ask->arena, ids[i], &views[found]) == 0 &&
			    has_state(ask, site, &views[found]))
				found++;
		}
		after = &last;
	} while (count == LOOKED_AT_ONCE && !ask->reply.more);
	ask->reply.operations_count = found;
}

/* Fresh credentials for it, if there are any among the fields. */
static void read_secret(struct ask *ask, struct buf *secret)
{
	struct engine *engine = ask->wait.engine;
	struct replica_view view;
	bool known = replica_look(engine->replica, &ask->arena, ask->question.operation.replicant, &view) == 0;
	if (!known || !engine->setup || !engine->setup->about.glue)
		return;
	const struct glue_service *service = glue_service_find(engine->setup->about.glue, view.service);
	if (engine_secret_make(service, ask->question.fields, secret, NULL) != 0)
		buf_clear(secret); /* nobody says who asks: it stays as it was */
}

static void judge(struct ask *ask)
{
	struct engine *engine = ask->wait.engine;
	struct buf secret = {0};
	look_at_operation(ask);
	if (ask->err.code)
		return;
	read_secret(ask, &secret);
	ask->reply.operations_count = 0;
	int code = replica_judge(engine->replica, ask->question.operation, ask->question.verdict, buf_str(&secret),
	                         engine_now(), &ask->err);
	if (code == 0) {
		look_at_operation(ask);
		ask->err = (struct err){0}; /* what was withheld is another operation from now on, or none */
	} else if (code == ERR_NOT_FOUND || code == ERR_INVALID) {
		ask->err.code = ERR_CONFLICT; /* it is there, but there is nothing to say of it */
	}
	if (secret.at)
		explicit_bzero(secret.at, secret.length);
	buf_free(&secret);
}

/* ---- Members ------------------------------------------------------------------------------------------------------- */

/* More than its files may take to be read (state.c); where none is read, src/replica gives up much sooner. */
enum { EXTEND_MS = 3700 * 1000 };

/* Who only knows of it has nothing to give: whom to ask instead? */
static bool refers_to_prime(struct ask *ask)
{
	struct replica_view view;
	struct engine *engine = ask->wait.engine;
	bool witness = false;
	if (replica_look(engine->replica, &ask->arena, ask->question.replicant, &view) != 0 || view.deleted)
		return false;
	for (uint32_t i = 0; i < view.members_count; i++)
		witness |= view.members[i].site == engine->options.self && view.members[i].witness;
	uint32_t place = engine->sites && view.prime != 0 ? site_snapshot_find(engine->sites, view.prime) : SCOPE_NO_INDEX;
	if (!witness || place == SCOPE_NO_INDEX)
		return false;
	err_set(&ask->err, ERR_CONFLICT, "this site only knows of the resource: ask the agent of `%.*s`, which has it",
	        STR_FMT(utf8_truncate(engine->sites->places[place].name, LIMIT_NAME_SHOWN_BYTES)));
	return true;
}

/* True: it waits. */
static bool extend(struct ask *ask, site_id site)
{
	struct engine *engine = ask->wait.engine;
	if (ask->ticket != 0) {
		err_set(&ask->err, ERR_UNAVAILABLE, "nothing was heard of it for %d s: look whether it is a member now",
		        EXTEND_MS / 1000);
		return false;
	}
	struct engine_membership change = {ask->question.replicant, site, true, ask->question.hold};
	if (engine_follow_refuses(engine, &change, &ask->err) != 0 || refers_to_prime(ask))
		return false;
	if (site == engine->options.self) {
		err_set(&ask->err, ERR_INVALID,
		        "this site is asked to add itself: ask a member, which gives the copy that it has");
		return false;
	}
	ask->ticket = ++engine->tickets_made;
	ask->wait.answer = true;
	struct replica_extension extension = {.site = site, .hold = ask->question.hold, .ticket = ask->ticket};
	/* The answer may come at once. */
	ask->begun = engine_wait_start(engine, &ask->wait, EXTEND_MS);
	if (!ask->begun)
		err_set(&ask->err, ERR_LIMIT, "%d requests wait for something to happen already", LIMIT_ENGINE_WAITS);
	else if (replica_extend(engine->replica, ask->question.replicant, &extension, engine_now(), &ask->err) != 0)
		ask->begun = false;
	if (!ask->begun)
		engine_wait_end(&ask->wait);
	return ask->begun;
}

static void drop_member(struct ask *ask, site_id site)
{
	struct engine_membership change = {ask->question.replicant, site, false, false};
	if (engine_follow_refuses(ask->wait.engine, &change, &ask->err) != 0)
		return;
	struct replica_drop drop = {.site = site, .keep = ask->question.keep, .force = ask->question.force};
	if (replica_drop(ask->wait.engine->replica, ask->question.replicant, &drop, engine_now(), &ask->err) == 0)
		look_at_replicant(ask);
}

static void hold_reply(struct ask *ask);
static void over(struct wait *wait);

bool engine_ask_answered(struct engine *engine, const struct replica_answer *answer)
{
	for (struct wait *wait = engine->waits; wait; wait = wait->next) {
		struct ask *ask = (struct ask *)wait;
		if (wait->over != over || ask->ticket == 0 || ask->ticket != answer->ticket)
			continue;
		engine_wait_end(wait);
		if (answer->code)
			err_set(&ask->err, answer->code, "%.*s", STR_FMT(answer->text));
		else
			look_at_replicant(ask);
		hold_reply(ask);
		return true;
	}
	return false;
}

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

/* ---- Dependencies -------------------------------------------------------------------------------------------------- */

/* What is no replica is asked for by its type; in short, it has to be the only one. */
static int find_local(struct ask *ask, struct relation_target *target)
{
	const struct setup *setup = ask->wait.engine->setup;
	const struct glue *glue = setup ? setup->about.glue : NULL;
	const struct glue_type *found = NULL;
	uint32_t count = 0;
	for (uint32_t i = 0; glue && i < glue_types_count(glue); i++) {
		const struct glue_type *type = glue_type_at(glue, i);
		bool whole = str_equal(glue_type_name(type), ask->question.type);
		if (!type_is(glue_type_name(type), ask->question.type))
			continue;
		count = whole ? 1 : count + 1;
		found = type;
		if (whole)
			break;
	}
	if (count != 1)
		return err_set(&ask->err, ERR_INVALID, "the description of the application has %s type " TEXT_NAME_FMT "%s",
		               count == 0 ? "no" : "more than one", TEXT_NAME(ask->question.type),
		               count == 0 ? "" : "; with its service before it, as in `image.secret`, it is clear");
	/* The description may be another one when this is read. */
	*target = (struct relation_target){.service = copy(&ask->arena, glue_type_service(found)),
	                                   .type = copy(&ask->arena, glue_type_name(found)),
	                                   .name = ask->question.local_id};
	if (glue_type_ids_in_collection(found))
		target->collection = copy(&ask->arena, glue_type_only_collection(found));
	return 0;
}

static void find_deps(struct ask *ask)
{
	struct relation_target target = {.managed = true, .id = ask->question.replicant};
	if (ask->question.local_id.length > 0 && find_local(ask, &target) != 0)
		return;
	engine_deps_find(ask->wait.engine, &ask->arena, &target, ask->question.deps_view, &ask->reply.deps, &ask->err);
}

static void find_suffering(struct ask *ask, site_id site)
{
	struct engine *engine = ask->wait.engine;
	struct engine_suffering *found = arena_array(&ask->arena, struct engine_suffering, ask->question.most);
	struct replica_id ids[LOOKED_AT_ONCE], last = {0};
	const struct replica_id *after = ask->question.after_replicant;
	uint32_t count, looked = 0;
	ask->reply.suffering = found;
	do {
		count = replica_list(engine->replica, after, ids, LOOKED_AT_ONCE);
		for (uint32_t i = 0; i < count; i++) {
			struct replica_view *view = arena_new(&ask->arena, struct replica_view);
			const struct relation_risks *risks = NULL;
			if (ask->reply.suffering_count == ask->question.most || looked == LOOKED_MOST) {
				ask->reply.more = true;
				ask->reply.next_replicant = last;
				break;
			}
			looked++;
			last = ids[i];
			if (replica_look(engine->replica, &ask->arena, ids[i], view) != 0 || view->deleted || view->left ||
			    memcmp(view->id.bytes, ids[i].bytes, sizeof(ids[i].bytes)) != 0)
				continue;
			enum engine_loss loss = engine_loss_of(engine, &ask->arena, view, site, &risks);
			ask->reply.copies += loss == ENGINE_LOSS_COPY;
			if (loss == ENGINE_LOSS_ALL || loss == ENGINE_LOSS_RELIED)
				found[ask->reply.suffering_count++] = (struct engine_suffering){view, loss, risks};
		}
		after = &last;
	} while (count == LOOKED_AT_ONCE && !ask->reply.more);
}

/* ---- Changes ------------------------------------------------------------------------------------------------------- */

static void read_changes(struct ask *ask)
{
	const struct changes *changes = &ask->wait.engine->changes;
	uint64_t after = ask->question.after;
	ask->reply.last = changes->last;
	if (ask->question.from_now)
		return;
	if (after < changes->before || after > changes->last) {
		ask->reply.reset = true;
		return;
	}
	uint64_t count = changes->last - after < CHANGES_AT_ONCE ? changes->last - after : CHANGES_AT_ONCE;
	struct engine_change *found = arena_array(&ask->arena, struct engine_change, count);
	for (uint64_t i = 0; i < count; i++)
		found[i] = changes->ring[(after + 1 + i) % LIMIT_ENGINE_CHANGES];
	ask->reply.changes = found;
	ask->reply.changes_count = (uint32_t)count;
	ask->reply.last = after + count;
}

/* ---- In ------------------------------------------------------------------------------------------------------------ */

static int find_site(struct ask *ask, site_id *site)
{
	const struct site_snapshot *sites = ask->wait.engine->sites;
	struct str name = ask->question.site;
	*site = 0;
	if (name.length == 0)
		return 0;
	for (uint32_t i = 0; sites && i < sites->places_count; i++)
		if (str_equal(sites->places[i].name, name))
			*site = sites->places[i].id;
	if (*site != 0)
		return 0;
	return err_set(&ask->err, ERR_INVALID, "no site `%.*s` is known; `cheops sites` lists those that are",
	               STR_FMT(utf8_truncate(name, LIMIT_NAME_SHOWN_BYTES)));
}

static bool is_member(const struct replica_op_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return true;
	return false;
}

/* True: it waits. */
static bool answer(struct ask *ask)
{
	struct engine *engine = ask->wait.engine;
	site_id site;
	if (!engine->replica)
		return err_set(&ask->err, ERR_UNAVAILABLE, "the store of this agent cannot be used; see its log") == 0;
	if (find_site(ask, &site) != 0)
		return false;
	switch (ask->question.kind) {
	case ENGINE_ASK_REPLICANT: look_at_replicant(ask); break;
	case ENGINE_ASK_REPLICANTS: list_replicants(ask, site); break;
	case ENGINE_ASK_OPERATIONS: list_operations(ask, site); break;
	case ENGINE_ASK_JUDGE: judge(ask); break;
	case ENGINE_ASK_HOOKS: ask->reply.hooks = engine_hooks_look(engine, &ask->arena, &ask->reply.hooks_count); break;
	case ENGINE_ASK_EXTEND: return extend(ask, site);
	case ENGINE_ASK_DROP: drop_member(ask, site); break;
	case ENGINE_ASK_DEPS: find_deps(ask); break;
	case ENGINE_ASK_SUFFERING: find_suffering(ask, site); break;
	case ENGINE_ASK_OPERATION:
		ask->wait.op = ask->question.operation;
		ask->wait.until = ask->question.until;
		ask->wait.site = site;
		look_at_operation(ask);
		if (ask->err.code)
			break;
		if (site != 0 && !is_member(ask->reply.operations, site)) {
			err_set(&ask->err, ERR_INVALID, "`%.*s` is no member of the resource, and never has the operation",
			        STR_FMT(utf8_truncate(ask->question.site, LIMIT_NAME_SHOWN_BYTES)));
			break;
		}
		return !engine_is_over(ask->reply.operations, ask->question.until, site, &ask->reply.reached);
	case ENGINE_ASK_CHANGES:
		ask->wait.any = true;
		read_changes(ask);
		return ask->reply.changes_count == 0 && !ask->reply.reset && !ask->question.from_now;
	}
	return false;
}

/* What was seen may have been put just now: nobody hears of it before it is durable. */
static void hold_reply(struct ask *ask)
{
	struct action *action = calloc(1, sizeof(*action));
	CHECK(action);
	action->kind = ACTION_REPLY;
	action->ask = ask;
	engine_hold(ask->wait.engine, action);
	engine_changed(ask->wait.engine);
}

/* What it waited for has come, or its time is over. */
static void over(struct wait *wait)
{
	struct ask *ask = (struct ask *)wait;
	answer(ask);
	hold_reply(ask);
}

static void begin(struct ask *ask)
{
	struct engine *engine = ask->wait.engine;
	bool waits = answer(ask) && ask->question.timeout_ms > 0;
	if (ask->begun) {
		engine_changed(engine);
		return;
	}
	if (waits && engine_wait_start(engine, &ask->wait, ask->question.timeout_ms)) {
		engine_changed(engine); /* looking has begun a session */
		return;
	}
	if (waits)
		err_set(&ask->err, ERR_LIMIT, "%d requests wait for something to happen already", LIMIT_ENGINE_WAITS);
	hold_reply(ask);
}

static void parted(void *context, const struct err *refusal)
{
	struct ask *ask = context;
	if (!refusal) {
		begin(ask);
		return;
	}
	ask->err = *refusal;
	hold_reply(ask);
}

static void not_parted(void *context)
{
	engine_ask_drop(context);
}

/* Of what is divided all parts have to be known before a site comes to it, and who goes has nothing of it any more. True: it is seen to. */
static bool sees_to_parts(struct ask *ask)
{
	struct engine *engine = ask->wait.engine;
	bool adds = ask->question.kind == ENGINE_ASK_EXTEND, is = false, leaving = false;
	struct replica_view view;
	site_id site;
	if ((!adds && ask->question.kind != ENGINE_ASK_DROP) || ask->question.force || !engine->replica ||
	    find_site(ask, &site) != 0 || replica_look(engine->replica, &ask->arena, ask->question.replicant, &view) != 0)
		return false;
	for (uint32_t i = 0; i < view.members_count; i++) {
		is |= view.members[i].site == site;
		leaving |= view.members[i].site == site && view.members[i].leaving;
	}
	/* What is refused anyway is refused at once. */
	if (view.span != REPLICA_DIVIDED || view.deleted || view.left || is == adds || leaving ||
	    (adds && site == engine->options.self))
		return false;
	engine_parts_ask(
		engine,
		&(struct engine_parting){
			.replicant = view.id, .site = adds ? 0 : site, .done = parted, .dropped = not_parted, .context = ask});
	return true;
}

/* In the engine's thread. */
static void take(struct http_task *task)
{
	struct ask *ask = (struct ask *)((char *)task - offsetof(struct ask, task));
	ask->wait.over = over;
	if (sees_to_parts(ask))
		engine_changed(ask->wait.engine);
	else
		begin(ask);
}

void engine_ask(struct engine *engine, const struct engine_question *question)
{
	struct ask *ask = calloc(1, sizeof(*ask));
	CHECK(ask);
	arena_init(&ask->arena, 0);
	ask->wait.engine = engine;
	ask->question = *question;
	ask->question.service = copy(&ask->arena, question->service);
	ask->question.type = copy(&ask->arena, question->type);
	ask->question.site = copy(&ask->arena, question->site);
	ask->question.local_id = copy(&ask->arena, question->local_id);
	ask->fields = arena_copy(&ask->arena, question->fields.at, question->fields.length);
	ask->question.fields = str_make(ask->fields, question->fields.length);
	if (question->after_replicant) {
		struct replica_id *after = arena_new(&ask->arena, struct replica_id);
		*after = *question->after_replicant;
		ask->question.after_replicant = after;
	}
	if (question->after_operation) {
		struct replica_op_id *after = arena_new(&ask->arena, struct replica_op_id);
		*after = *question->after_operation;
		ask->question.after_operation = after;
	}
	ask->task.run = take;
	http_loop_post(engine->loop, &ask->task);
}

void engine_ask_drop(struct ask *ask)
{
	if (ask->question.dropped)
		ask->question.dropped(ask->question.context);
	ask_free(ask);
}

void engine_asks_drop(struct engine *engine)
{
	for (struct wait *wait = engine->waits, *next; wait; wait = next) {
		next = wait->next;
		engine_wait_end(wait);
		if (wait->over == over)
			engine_ask_drop((struct ask *)wait);
	}
}

/* ---- Figures ------------------------------------------------------------------------------------------------------- */

void engine_figures_note(struct engine *engine)
{
	struct engine_figures figures = {.commit_failures = engine->commit_failures,
	                                 .at_risk = engine->risks.count,
	                                 .changes = engine->changes.last - engine->changes.first};
	figures.commits = engine->journal.commits;
	if (engine->replica)
		figures.replica = replica_counters(engine->replica);
	engine_hooks_count(engine, &figures);
	engine_names_count(engine, &figures);
	pthread_mutex_lock(&engine->figures_lock);
	engine->figures = figures;
	pthread_mutex_unlock(&engine->figures_lock);
}

void engine_figures(struct engine *engine, struct engine_figures *figures)
{
	struct store_usage usage;
	pthread_mutex_lock(&engine->figures_lock);
	*figures = engine->figures;
	pthread_mutex_unlock(&engine->figures_lock);
	if (store_usage(engine->store, &usage, NULL) != 0)
		return;
	figures->commits += usage.commits;
	figures->store_rows = usage.rows;
	figures->store_bytes_used = usage.bytes_used;
	figures->store_bytes_file = usage.bytes_file;
	figures->store_bytes_most = usage.bytes_most;
}
