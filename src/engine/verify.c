/* Comparing the copies of all members: this one's is read (copy.c), the others' agents are asked for theirs (verify.h). And what
 * others ask of this one. */
#include "engine/verify_facets.h"

#include "base/check.h"

#include <jansson.h>
#include <stdlib.h>

enum { ENVELOPE_BYTES = 4096, COPY_MS = 10000 /* more than the other agent gives its service */ };

struct asked {
	struct verify *verify;
	struct asking asking;
	struct engine_reading reading; /* of the arena */
};

struct verify {
	struct verify *previous, *next;
	struct http_task task; /* to the engine, then back */
	struct engine *engine;
	struct engine_verification about;
	struct arena arena;
	struct replica_view view;
	struct asked asked[LIMIT_REPLICA_MEMBERS];
	uint32_t pending;
	uint32_t own; /* which of them is this site */
	struct copying copying;
	bool copying_begun;
	struct facet_round *round; /* on facets; NULL: none yet, or there are none */
	struct engine_verified verified;
	struct site_snapshot *sites;
	struct err err;
};

struct serve {
	struct serve *previous, *next;
	struct http_task task;
	struct engine_copy_question about;
	struct copying copying;
	bool copying_begun;
	int code;
};

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

static bool is_member(const struct replica_view *view, site_id site)
{
	for (uint32_t i = 0; i < view->members_count; i++)
		if (view->members[i].site == site)
			return true;
	return false;
}

/* ---- For other members ---------------------------------------------------------------------------------------------- */

static void serve_unlink(struct serve *serve)
{
	struct engine *engine = serve->copying.engine;
	*(serve->previous ? &serve->previous->next : &engine->serves) = serve->next;
	if (serve->next)
		serve->next->previous = serve->previous;
	engine->verifies_count--;
}

static void serve_free(struct serve *serve)
{
	if (serve->copying_begun)
		engine_copy_end(&serve->copying);
	free(serve);
}

/* In the loop of the question. */
static void serve_tell(struct http_task *task)
{
	struct serve *serve = (struct serve *)((char *)task - offsetof(struct serve, task));
	serve->about.done(serve->about.context, serve->code, &serve->copying.reading);
	serve_free(serve);
}

static void serve_reply(struct serve *serve, int code)
{
	serve_unlink(serve);
	engine_setup_drop(serve->copying.setup); /* which is for this thread to do */
	serve->copying.setup = NULL;
	serve->code = code;
	serve->task.run = serve_tell;
	http_loop_post(serve->about.loop, &serve->task);
}

static void serve_done(struct copying *copying)
{
	serve_reply((struct serve *)((char *)copying - offsetof(struct serve, copying)), 0);
}

/* In the engine's thread. */
static void serve_take(struct http_task *task)
{
	struct serve *serve = (struct serve *)((char *)task - offsetof(struct serve, task));
	struct engine *engine = serve->copying.engine;
	struct replica_view view;
	struct arena arena;
	serve->next = engine->serves;
	if (engine->serves)
		engine->serves->previous = serve;
	engine->serves = serve;
	engine->verifies_count++;
	arena_init(&arena, 0);
	bool known = engine->replica && replica_look(engine->replica, &arena, serve->about.replicant, &view) == 0 &&
	             is_member(&view, serve->about.from);
	arena_free(&arena);
	engine_changed(engine);
	if (!known) {
		serve_reply(serve, ERR_NOT_FOUND);
	} else if (engine->verifies_count > LIMIT_ENGINE_VERIFIES) {
		serve_reply(serve, ERR_LIMIT);
	} else {
		serve->copying.replicant = serve->about.replicant;
		serve->copying.wants_facets = serve->about.facets;
		serve->copying.done = serve_done;
		serve->copying_begun = true;
		engine_copy_start(&serve->copying);
	}
}

void engine_copy_ask(struct engine *engine, const struct engine_copy_question *question)
{
	struct serve *serve = calloc(1, sizeof(*serve));
	CHECK(serve);
	serve->about = *question;
	serve->copying.engine = engine;
	serve->task.run = serve_take;
	http_loop_post(engine->loop, &serve->task);
}

/* ---- The answer ----------------------------------------------------------------------------------------------------- */

static void verify_unlink(struct verify *verify)
{
	struct engine *engine = verify->engine;
	*(verify->previous ? &verify->previous->next : &engine->verifies) = verify->next;
	if (verify->next)
		verify->next->previous = verify->previous;
	engine->verifies_count--;
}

/* In the engine's thread. */
static void end_round(struct verify *verify)
{
	if (verify->round)
		engine_round_end(verify->round);
	free(verify->round);
	verify->round = NULL;
}

static void verify_free(struct verify *verify)
{
	for (uint32_t i = 0; i < verify->view.members_count; i++)
		engine_asking_end(&verify->asked[i].asking);
	if (verify->copying_begun)
		engine_copy_end(&verify->copying);
	if (verify->sites)
		site_snapshot_drop(verify->sites);
	arena_free(&verify->arena);
	free(verify);
}

/* In the loop of the question. */
static void verify_tell(struct http_task *task)
{
	struct verify *verify = (struct verify *)((char *)task - offsetof(struct verify, task));
	verify->about.done(verify->about.context, &verify->verified);
	verify_free(verify);
}

static void verify_reply(struct verify *verify)
{
	struct engine *engine = verify->engine;
	struct engine_verified *verified = &verify->verified;
	verify_unlink(verify);
	end_round(verify);
	engine_setup_drop(verify->copying.setup);
	verify->copying.setup = NULL;
	verified->code = verify->err.code;
	verified->text = str_of(verify->err.text);
	verified->view = &verify->view;
	verified->self = engine->options.self;
	if (engine->sites)
		verify->sites = site_snapshot_keep(engine->sites);
	verified->sites = verify->sites;
	verify->task.run = verify_tell;
	http_loop_post(verify->about.loop, &verify->task);
}

struct noting {
	struct arena *arena;
	struct engine_difference *differences;
	uint32_t count;
};

static struct str show(struct arena *arena, struct str pointer, struct str value)
{
	struct buf shown = {0};
	engine_value_show(pointer, value, &shown);
	struct str kept = copy(arena, buf_str(&shown));
	buf_free(&shown);
	return kept;
}

static void note(void *context, const struct glue_difference *difference)
{
	struct noting *noting = context;
	noting->differences[noting->count++] = (struct engine_difference){
		.pointer = copy(noting->arena, utf8_truncate(difference->pointer, LIMIT_GLUE_TEXT_BYTES)),
		.here = show(noting->arena, difference->pointer, difference->a),
		.elsewhere = show(noting->arena, difference->pointer, difference->b)};
}

static void say_differences(struct verify *verify, const struct engine_reading *here,
                            const struct engine_reading *reference, struct engine_member_verdict *member)
{
	struct noting noting = {&verify->arena,
	                        arena_array(&verify->arena, struct engine_difference, LIMIT_ENGINE_DIFFERENCES), 0};
	if (here->text.length == 0 || reference->text.length == 0) {
		member->reason = STR("it is no JSON, or too long for its differences to be listed");
		return;
	}
	glue_differences(here->text, reference->text, LIMIT_ENGINE_DIFFERENCES, &member->more, note, &noting);
	member->differences = noting.differences;
	member->differences_count = noting.count;
}

/* Facets that no request reads, or sets as a whole; and those that none takes away. And what each site has its own of. */
static void note_not_compared(struct verify *verify, const struct str *own, uint32_t own_count)
{
	const struct glue_type *type = verify->copying.match.type;
	struct str *names = arena_array(&verify->arena, struct str, LIMIT_GLUE_FACETS + own_count);
	struct str *others = arena_array(&verify->arena, struct str, LIMIT_GLUE_FACETS);
	struct glue_facet facet;
	uint32_t count = 0, others_count = 0;
	for (uint32_t i = 1; type && i < glue_facets_count(type); i++) {
		bool found = glue_facet_find(type, i, &facet);
		if (!found && !glue_facet_is_shown(type, i))
			names[count++] = copy(&verify->arena, glue_facet_name(type, i));
		else if (found && !facet.remove)
			others[others_count++] = copy(&verify->arena, facet.name);
	}
	for (uint32_t i = 0; i < own_count; i++)
		names[count++] = own[i];
	verify->verified.not_compared = names;
	verify->verified.not_compared_count = count;
	verify->verified.not_removable = others;
	verify->verified.not_removable_count = others_count;
}

/* All have said what they have. */
static void judge(struct verify *verify)
{
	uint32_t count = verify->view.members_count, reference;
	struct engine_reading readings[LIMIT_REPLICA_MEMBERS];
	enum engine_verdict verdicts[LIMIT_REPLICA_MEMBERS];
	struct engine_member_verdict *members = arena_array(&verify->arena, struct engine_member_verdict, count);
	for (uint32_t i = 0; i < count; i++)
		readings[i] = verify->asked[i].reading;
	struct engine_reading *read = arena_array(&verify->arena, struct engine_reading, count);
	memcpy(read, readings, count * sizeof(*read));
	verify->verified.readings = read;
	const struct str *own = NULL;
	uint32_t own_count = 0;
	if (verify->view.span == REPLICA_DIVIDED && verify->copying.match.type)
		own_count = engine_division_level(&verify->arena, &verify->copying.match, readings, count, &own);
	engine_compare(readings, count, verdicts, &reference, &verify->verified.tie);
	for (uint32_t i = 0; i < count; i++) {
		members[i] = (struct engine_member_verdict){.site = verify->asked[i].asking.site,
		                                            .verdict = verdicts[i],
		                                            .reason = readings[i].reason,
		                                            .parts = readings[i].parts};
		if (verdicts[i] == ENGINE_DIFFERS && !str_equal(readings[i].digest, readings[reference].digest))
			say_differences(verify, &readings[i], &readings[reference], &members[i]);
		else if (verdicts[i] == ENGINE_NOT_SETTLED && readings[i].reason.length == 0)
			members[i].reason = STR("another member has seen other operations");
	}
	if (verify->round)
		engine_round_judge(verify->round, verify->copying.match.type, readings, members, &verify->verified.tie);
	verify->verified.members = members;
	verify->verified.members_count = count;
	verify->verified.reference = reference < count ? verify->asked[reference].asking.site : 0;
	note_not_compared(verify, own, own_count);
	verify_reply(verify);
}

static void facets_done(struct facet_round *round)
{
	judge(round->context);
}

/* The items were read: now their facets, if they have any. */
static void go_on(struct verify *verify)
{
	const struct glue_type *type = verify->copying.match.type;
	struct glue_facet facet;
	bool any = false;
	for (uint32_t i = 1; type && i < glue_facets_count(type); i++)
		any |= glue_facet_find(type, i, &facet);
	if (!any || verify->about.parts) {
		judge(verify);
		return;
	}
	struct facet_round *round = calloc(1, sizeof(*round));
	CHECK(round);
	round->engine = verify->engine;
	round->replicant = verify->view.id;
	round->arena = &verify->arena;
	round->done = facets_done;
	round->context = verify;
	round->asked_count = verify->view.members_count;
	for (uint32_t i = 0; i < round->asked_count; i++) {
		round->asked[i].asking.site = verify->asked[i].asking.site;
		round->asked[i].wanted = verify->asked[i].reading.kind == ENGINE_READ_HERE;
	}
	verify->round = round;
	engine_round_start(round);
}

static void one_more(struct verify *verify)
{
	if (--verify->pending == 0)
		go_on(verify);
}

/* ---- Asking --------------------------------------------------------------------------------------------------------- */

static void own_done(struct copying *copying)
{
	struct verify *verify = (struct verify *)((char *)copying - offsetof(struct verify, copying));
	verify->asked[verify->own].reading = copying->reading;
	one_more(verify);
}

static void put_failed(struct asked *asked, struct str reason)
{
	asked->reading = (struct engine_reading){.kind = ENGINE_READ_FAILED, .reason = copy(&asked->verify->arena, reason)};
}

static struct str text_of(struct verify *verify, const json_t *json, const char *name)
{
	const json_t *value = json_object_get(json, name);
	if (!json_is_string(value))
		return STR("");
	return copy(&verify->arena, str_make(json_string_value(value), json_string_length(value)));
}

/* What it sent is read as if it came from a service: only then it is known to be in the form that is compared. */
static void take_text(struct asked *asked, struct str text)
{
	struct verify *verify = asked->verify;
	struct engine_reading *reading = &asked->reading;
	struct buf made = {0};
	char *digest = arena_array(&verify->arena, char, (size_t)2 * ENGINE_BLOB_BYTES);
	const struct glue_type *type = verify->copying.match.type;
	if (type && glue_comparable(type, text, &made, NULL) == 0) {
		engine_copy_digest(buf_str(&made), digest);
		reading->text = copy(&verify->arena, buf_str(&made));
		reading->digest = str_make(digest, (size_t)2 * ENGINE_BLOB_BYTES);
	}
	buf_free(&made);
}

/* What another agent says, in our words. */
static struct str parts_of(struct verify *verify, const json_t *json)
{
	json_t *parts = json_object_get(json, "parts"), *part;
	size_t index;
	struct buf out = {0};
	if (!json_is_array(parts) || json_array_size(parts) > LIMIT_ENGINE_PARTS)
		return STR("");
	buf_put_char(&out, '[');
	json_array_foreach(parts, index, part)
	{
		static const char *const names[] = {"service", "type", "id"};
		for (size_t i = 0; i < 3; i++) {
			const json_t *value = json_object_get(part, names[i]);
			buf_printf(&out, "%s\"%s\":", i > 0 ? "," : index > 0 ? ",{" : "{", names[i]);
			buf_put_json(&out, json_is_string(value) ? str_make(json_string_value(value), json_string_length(value))
			                                         : STR(""));
		}
		buf_put_char(&out, '}');
	}
	buf_put_char(&out, ']');
	struct str kept = copy(&verify->arena, buf_str(&out));
	buf_free(&out);
	return kept;
}

static void read_answer(struct asked *asked, struct str body)
{
	struct verify *verify = asked->verify;
	json_t *json = json_loadb(body.at, body.length, 0, NULL);
	struct str kind = text_of(verify, json, "copy"), text = text_of(verify, json, "text");
	struct engine_reading *reading = &asked->reading;
	*reading = (struct engine_reading){.kind = ENGINE_READS,
	                                   .session = text_of(verify, json, "session"),
	                                   .digest = text_of(verify, json, "digest"),
	                                   .reason = text_of(verify, json, "reason"),
	                                   .parts = parts_of(verify, json)};
	for (int i = 0; i < ENGINE_READS; i++)
		if (str_equal(kind, str_of(engine_read_name((enum engine_read)i))))
			reading->kind = (enum engine_read)i;
	if (reading->kind == ENGINE_READ_HERE && text.length > 0)
		take_text(asked, text);
	json_decref(json);
	if (reading->kind == ENGINE_READS ||
	    (reading->kind == ENGINE_READ_HERE && reading->digest.length != 2 * (size_t)ENGINE_BLOB_BYTES))
		put_failed(asked, STR("the agent there answers with something else than a copy"));
}

static void answered(struct asking *asking, struct str body, struct str failure)
{
	struct asked *asked = (struct asked *)((char *)asking - offsetof(struct asked, asking));
	if (failure.length > 0)
		put_failed(asked, failure);
	else
		read_answer(asked, body);
	one_more(asked->verify);
}

static void ask_agent(struct asked *asked)
{
	asked->asking.unknown = "the agent there does not know it, or not that this site is a member";
	asked->asking.done = answered;
	engine_asking_start(
		asked->verify->engine, &asked->asking,
		&(struct asking_about){.replicant = asked->verify->view.id,
	                           .part = STR(""),
	                           .timeout_ms = COPY_MS,
	                           .answer_bytes = 6 * (size_t)LIMIT_ENGINE_COMPARED_BYTES + ENVELOPE_BYTES});
}

static void begin(struct verify *verify)
{
	struct engine *engine = verify->engine;
	uint32_t count = verify->view.members_count;
	verify->pending = count + 1;
	verify->own = count;
	for (uint32_t i = 0; i < count; i++) {
		verify->asked[i] = (struct asked){.verify = verify, .asking.site = verify->view.members[i].site};
		if (verify->asked[i].asking.site == engine->options.self)
			verify->own = i;
	}
	verify->copying = (struct copying){.engine = engine, .replicant = verify->view.id, .done = own_done};
	verify->copying_begun = true;
	engine_copy_start(&verify->copying);
	for (uint32_t i = 0; i < count; i++)
		if (i != verify->own)
			ask_agent(&verify->asked[i]);
	one_more(verify);
}

/* In the engine's thread. */
static void verify_take(struct http_task *task)
{
	struct verify *verify = (struct verify *)((char *)task - offsetof(struct verify, task));
	struct engine *engine = verify->engine;
	verify->next = engine->verifies;
	if (engine->verifies)
		engine->verifies->previous = verify;
	engine->verifies = verify;
	engine->verifies_count++;
	engine_changed(engine); /* looking begins a session of the store */
	bool known =
		engine->replica && replica_look(engine->replica, &verify->arena, verify->about.replicant, &verify->view) == 0;
	if (!engine->replica)
		err_set(&verify->err, ERR_UNAVAILABLE, "the store of this agent cannot be used; see its log");
	else if (!known || !is_member(&verify->view, engine->options.self))
		err_set(&verify->err, ERR_NOT_FOUND,
		        "no replicated resource of that id is known at this site; it may be known at others");
	else if (verify->view.deleted)
		err_set(&verify->err, ERR_NOT_FOUND, "it was deleted: there are no copies to compare");
	else if (engine->verifies_count > LIMIT_ENGINE_VERIFIES)
		err_set(&verify->err, ERR_LIMIT, "%d resources are being compared already", LIMIT_ENGINE_VERIFIES);
	if (verify->err.code)
		verify_reply(verify);
	else
		begin(verify);
}

void engine_verify(struct engine *engine, const struct engine_verification *verification)
{
	struct verify *verify = calloc(1, sizeof(*verify));
	CHECK(verify);
	arena_init(&verify->arena, 0);
	verify->engine = engine;
	verify->about = *verification;
	verify->task.run = verify_take;
	http_loop_post(engine->loop, &verify->task);
}

void engine_verifies_review(struct engine *engine)
{
	for (struct verify *verify = engine->verifies, *next; verify; verify = next) {
		next = verify->next;
		if (verify->round)
			engine_round_review(verify->round);
	}
}

void engine_verifies_drop(struct engine *engine)
{
	struct verify *verify = engine->verifies;
	struct serve *serve = engine->serves;
	engine->verifies = NULL;
	engine->serves = NULL;
	engine->verifies_count = 0;
	for (struct verify *next; verify; verify = next) {
		next = verify->next;
		end_round(verify);
		if (verify->about.dropped)
			verify->about.dropped(verify->about.context);
		verify_free(verify);
	}
	for (struct serve *next; serve; serve = next) {
		next = serve->next;
		if (serve->about.dropped)
			serve->about.dropped(serve->about.context);
		serve_free(serve);
	}
}
