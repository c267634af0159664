/* Running an operation at a service of this site.
 *
 * The request is taken apart again, its meta-ids become local ids, and it is sent to an instance. Of the answer src/replica
 * needs to know what it means:
 *   2xx                                         it had its effect; what was made has this id
 *   401 and what else the description names     refused for the credential alone
 *   4xx                                         refused, for good. A 404 or 410 to a delete that comes from elsewhere: done
 *   408, 425, 429, 502, 503, 504 before an effect, no connection     it may work later
 *   anything else, or no answer                 nobody knows
 */
#include "engine/engine_int.h"
#include "engine/relations.h"

#include "base/check.h"
#include "base/percent.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- Life ---------------------------------------------------------------------------------------------------------- */

static struct str copy(struct arena *arena, struct str text)
{
	return str_make(arena_copy(arena, text.at, text.length), text.length);
}

struct run *engine_run_copy(struct engine *engine, const struct replica_task *task)
{
	struct run *run = calloc(1, sizeof(*run));
	CHECK(run);
	run->engine = engine;
	arena_init(&run->arena, 0);
	run->task = *task;
	run->class = *task->class;
	run->class.name = copy(&run->arena, task->class->name);
	run->request = *task->request;
	run->request.head = copy(&run->arena, task->request->head);
	run->request.body = copy(&run->arena, task->request->body);
	run->request.secret = copy(&run->arena, task->request->secret);
	if (task->request->blob.length == sizeof(run->blob))
		memcpy(run->blob, task->request->blob.at, sizeof(run->blob));
	run->request.blob = str_make((const char *)run->blob, task->request->blob.length);
	run->fd = -1;
	run->task.class = &run->class;
	run->task.request = &run->request;
	run->task.service = copy(&run->arena, task->service);
	run->task.type = copy(&run->arena, task->type);
	run->task.collection = copy(&run->arena, task->collection);
	run->task.local_id = copy(&run->arena, task->local_id);
	if (task->request->references_count > 0)
		run->request.references =
			(const struct replica_id *)arena_copy(&run->arena, (const char *)task->request->references,
		                                          task->request->references_count * sizeof(struct replica_id));
	const struct ticket *ticket = task->first && task->kind == REPLICA_RUN ? engine_ticket(engine, task->ticket) : NULL;
	if (ticket)
		engine_ticket_first(ticket, run);
	run->own = (struct engine_name){.service = run->task.service, .type = run->task.type};
	run->next = engine->runs;
	if (engine->runs)
		engine->runs->previous = run;
	engine->runs = run;
	return run;
}

void engine_run_free(struct run *run)
{
	*(run->previous ? &run->previous->next : &run->engine->runs) = run->next;
	if (run->next)
		run->next->previous = run->previous;
	if (run->call)
		http_call_cancel(run->call);
	engine_run_facets_end(run);
	explicit_bzero((void *)run->request.secret.at, run->request.secret.length);
	if (run->fd >= 0)
		close(run->fd);
	engine_admit_leave(run);
	arena_free(&run->arena);
	engine_setup_drop(run->setup);
	buf_free(&run->target);
	buf_free(&run->body);
	free(run);
}

void engine_run_tell(struct run *run, const struct replica_outcome *outcome)
{
	struct engine *engine = run->engine;
	if (engine->replica && outcome->kind == REPLICA_ACCEPTED)
		engine_relations_ran(run);
	engine_division_ran(run, outcome);
	if (engine->replica)
		replica_executed(engine->replica, run->task.number, outcome, engine_now());
	if (outcome->kind == REPLICA_ACCEPTED)
		engine_names_ran(run);
	else
		engine_names_ended(run);
	engine_changed_soon(engine);
	engine_run_free(run);
}

void engine_run_fail(struct run *run, enum replica_outcome_kind kind, const char *format, ...)
{
	struct buf text = {0};
	va_list arguments;
	va_start(arguments, format);
	buf_vprintf(&text, format, arguments);
	va_end(arguments);
	engine_run_tell(run, &(struct replica_outcome){.kind = kind, .answer = buf_str(&text)});
	buf_free(&text);
}

/* ---- The answer ---------------------------------------------------------------------------------------------------- */

/* Who deletes it is to hear that there is nothing, if that is a user. */
static bool cares_for_404(const struct run *run)
{
	const struct ticket *ticket = run->task.first ? engine_ticket(run->engine, run->task.ticket) : NULL;
	return run->task.first && !(ticket && ticket->request.settles);
}

static enum replica_outcome_kind meaning_of(const struct run *run, unsigned status)
{
	if (status >= 200 && status < 300)
		return REPLICA_ACCEPTED;
	if (run->match.service && glue_is_credential_fault(run->match.service, (int)status))
		return REPLICA_CREDENTIAL;
	bool gone = status == 404 || status == 410;
	bool removes = run->class.effect == ORDER_REPLACE && run->class.facet != 0 &&
	               str_equal(run->head.method, STR("DELETE")); /* a facet */
	if (gone && (run->class.effect == ORDER_DELETE || removes) && !cares_for_404(run))
		return REPLICA_ACCEPTED;
	if (status == 408 || status == 425 || status == 429 || status == 503)
		return REPLICA_FAILED;
	if (status >= 400 && status < 500)
		return REPLICA_REFUSED;
	return REPLICA_UNKNOWN;
}

struct id_taken {
	struct buf text;
	bool quoted;
	bool taken;
};

static bool take_id(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct id_taken *id = context;
	if (place->kind == GLUE_PLACE_ID && !id->taken) {
		buf_put(&id->text, place->value);
		id->quoted = place->quoted;
		id->taken = true;
	}
	return false;
}

/* What was made: by the body, or by where it is. */
static void find_id(struct run *run, const struct http_call_answer *answer, struct id_taken *id)
{
	struct buf unused = {0};
	const struct glue_places *places = glue_answer_places(run->match.operation);
	if (places)
		engine_splice(places, &(struct glue_replacer){id, take_id}, answer->body, &unused);
	buf_free(&unused);
	const struct http_field *location = http_find_named(answer->head, STR("location"));
	struct str named;
	if (!id->taken && glue_type_identity(run->match.type) == GLUE_CHOSEN && run->match.id.length > 0 &&
	    percent_decode(&run->arena, run->match.id, &named)) {
		buf_put(&id->text, named); /* it is what the user called it */
		id->quoted = id->taken = true;
	}
	if (id->taken || !location)
		return;
	struct str link = http_field_value(answer->head, location);
	size_t from = link.length;
	while (from > 0 && link.at[from - 1] != '/')
		from--;
	buf_put(&id->text, str_make(link.at + from, link.length - from));
	id->quoted = id->taken = true;
}

static void put_answer_fields(const struct http_head *head, struct buf *out)
{
	for (uint32_t i = 0; i < head->fields_count; i++) {
		buf_put(out, http_field_name(head, &head->fields[i]));
		buf_put(out, STR(": "));
		buf_put(out, http_field_value(head, &head->fields[i]));
		buf_put(out, STR("\r\n"));
	}
}

static void keep_for_user(struct run *run, const struct http_call_answer *answer)
{
	struct ticket *ticket = run->task.first ? engine_ticket(run->engine, run->task.ticket) : NULL;
	if (!ticket)
		return;
	ticket->status = answer->status;
	buf_clear(&ticket->fields);
	buf_clear(&ticket->body);
	put_answer_fields(answer->head, &ticket->fields);
	buf_put(&ticket->body, answer->body);
}

/* What the service calls it, the other sites are to call it, too. */
static bool is_named_here(const struct run *run)
{
	return run->task.first && run->task.kind == REPLICA_RUN && run->request.blob.length == 0 &&
	       run->match.id.length == 0 && glue_type_identity(run->match.type) == GLUE_CHOSEN;
}

/* ---- Is it the credential? ------------------------------------------------------------------------------------------ */

static void judged(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	bool there = answer->code == 0 && answer->status >= 200 && answer->status < 300;
	run->call = NULL;
	/* It may have come back in between. */
	if (there && !run->judged) {
		run->judged = true;
		engine_run_ask(run, &run->question);
	} else if (there)
		engine_run_tell(run, &(struct replica_outcome){.kind = REPLICA_CREDENTIAL,
		                                               .status = run->refused_status,
		                                               .answer = run->refused_answer});
	else
		engine_run_fail(
			run, REPLICA_FAILED,
			"the credential is refused with %d, and so may be any: %.*s, which judges them, does not give this "
			"agent what it asks for",
			run->refused_status, STR_FMT(glue_service_about(run->match.service)->judge_service));
}

/* Who judges credentials may be away: then all are refused. Only what is refused again, when that was found to be there, counts. A user is told what
 * his service said. False: it counts as it is. */
static bool ask_judge(struct run *run, const struct http_call_answer *answer)
{
	const struct glue_service_about *about = run->match.service ? glue_service_about(run->match.service) : NULL;
	const struct engine_service *judge =
		about && about->judge_path.length > 0 ? engine_service_find(run->setup, about->judge_service) : NULL;
	struct err err = {0};
	if (!judge || judge->credential.length == 0 || run->task.first)
		return false;
	size_t length =
		answer->body.length < LIMIT_REPLICA_ANSWER_BYTES ? answer->body.length : (size_t)LIMIT_REPLICA_ANSWER_BYTES;
	run->refused_status = (int)answer->status;
	run->refused_answer = copy(&run->arena, str_make(answer->body.at, length));
	if (engine_service_read(run->engine,
	                        &(struct engine_service_reading){.setup = run->setup,
	                                                         .service = judge,
	                                                         .target = about->judge_path,
	                                                         .credentials = judge->credential,
	                                                         .done = judged,
	                                                         .context = run},
	                        &run->call, &err) == 0)
		return true;
	run->call = NULL;
	engine_run_fail(run, REPLICA_FAILED, "%s", err.text);
	return true;
}

/* A scope may name the site whose judge it is: the service has asked there, and could not. */
static bool is_unjudged(struct run *run, const struct http_call_answer *answer)
{
	const struct engine_carrier *carrier = &run->setup->about.carrier;
	struct buf why = {0};
	bool unjudged =
		run->match.service && run->mark.length > 0 &&
		carrier->find_fault(carrier->context, run->mark, glue_service_about(run->match.service)->judge_service, &why);
	if (unjudged)
		engine_run_fail(run, REPLICA_FAILED, "the credential is refused with %u, for it could not be judged: %.*s",
		                answer->status, STR_FMT(buf_str(&why)));
	buf_free(&why);
	return unjudged;
}

static void done(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	run->call = NULL;
	if (answer->code == 0 && meaning_of(run, answer->status) == REPLICA_CREDENTIAL &&
	    (is_unjudged(run, answer) || ask_judge(run, answer)))
		return;
	if (answer->code) {
		engine_run_fail(run, answer->sent ? REPLICA_UNKNOWN : REPLICA_FAILED, "%s", answer->err.text);
		return;
	}
	struct id_taken id = {0};
	struct buf named = {0};
	struct replica_request carried = run->request;
	struct replica_outcome outcome = {.kind = meaning_of(run, answer->status), .status = (int)answer->status};
	bool anew = run->task.kind == REPLICA_RUN_ANEW;
	bool copies = run->class.effect == ORDER_ADOPT && run->class.facet == 0;
	bool makes = anew || run->class.effect == ORDER_CREATE || copies;
	if (outcome.kind == REPLICA_ACCEPTED && makes)
		find_id(run, answer, &id);
	if (outcome.kind == REPLICA_ACCEPTED && anew && !id.taken)
		outcome.kind = REPLICA_UNKNOWN; /* something was made, and nobody knows what it is called */
	keep_for_user(run, answer);
	outcome.local_id = buf_str(&id.text);
	outcome.local_id_quoted = id.quoted;
	outcome.answer =
		str_make(answer->body.at,
	             answer->body.length < LIMIT_REPLICA_ANSWER_BYTES ? answer->body.length : LIMIT_REPLICA_ANSWER_BYTES);
	if (id.taken && is_named_here(run) &&
	    glue_insert_id(run->match.operation, run->request.body, buf_str(&id.text), &named)) {
		carried.body = buf_str(&named);
		outcome.carried = &carried;
	}
	run->answer = answer->body;
	engine_run_tell(run, &outcome);
	buf_free(&named);
	buf_free(&id.text);
}

/* ---- The request --------------------------------------------------------------------------------------------------- */

const struct engine_service *engine_service_find(const struct setup *setup, struct str name)
{
	for (uint32_t i = 0; i < setup->about.services_count; i++)
		if (str_equal(setup->about.services[i].name, name))
			return &setup->about.services[i];
	return NULL;
}

struct glue_request engine_request_of(struct str service, struct str method, struct str target, struct str content_type)
{
	const char *query = memchr(target.at, '?', target.length);
	size_t path = query ? (size_t)(query - target.at) : target.length;
	return (struct glue_request){.service = service,
	                             .method = method,
	                             .path = str_make(target.at, path),
	                             .query = query ? str_make(query + 1, target.length - path - 1) : STR(""),
	                             .content_type = content_type};
}

/* A body that is a blob: read, where ids may be in it; else it will be sent as it is. It was here, or the operation would not
 * run: if it is gone, it is fetched once more. */
static int find_blob(struct run *run, struct err *err)
{
	struct engine *engine = run->engine;
	uint64_t bytes = 0;
	run->fd = engine_blob_open(engine, run->request.blob, &bytes);
	if (run->fd >= 0 && bytes == run->request.blob_bytes)
		return 0;
	if (run->task.op.site != engine->options.self)
		engine_fetch(engine, run->request.blob, run->request.blob_bytes, run->task.op.site);
	return err_set(err, ERR_NOT_FOUND, "the file with its body is no longer here");
}

/* What was asked for so is a state, as a create. */
static bool is_anew(const struct run *run)
{
	return run->task.kind == REPLICA_RUN_ANEW || run->task.kind == REPLICA_INQUIRE_ANEW;
}

static bool is_read(const struct run *run)
{
	const struct glue_operation *operation = run->match.operation;
	return run->match.needs_body || (operation && !glue_operation_opaque(operation) && glue_request_places(operation));
}

/* Its body in memory, if it has to be looked at. */
static int take_blob(struct run *run, struct err *err)
{
	struct buf body = {0};
	bool divided = engine_field(run->head.fields, engine_division_field).length > 0;
	bool wanted = is_read(run) || is_anew(run) || divided;
	if (run->whole.length > 0 || run->request.blob.length == 0 || !wanted ||
	    run->request.blob_bytes > LIMIT_REPLICA_READ_BYTES)
		return 0;
	int code = engine_blobs_read(run->engine, run->request.blob, &body, err);
	run->request.body = copy(&run->arena, buf_str(&body));
	buf_free(&body);
	if (run->fd >= 0)
		close(run->fd);
	run->fd = -1;
	return code;
}

static int match_target(struct run *run, struct str target, struct err *err)
{
	run->asked = engine_request_of(run->task.service, run->head.method, target, run->head.content_type);
	if (!glue_match(run->setup->about.glue, &run->asked, &run->match))
		return err_set(err, ERR_INVALID, "the description of the application here has no such path");
	return 0;
}

/* Whose ids are unique only within their collection, it is named with it. */
void engine_run_name(struct run *run)
{
	struct buf collection = {0};
	if (!glue_type_ids_in_collection(run->match.type))
		return;
	engine_collection_put(run->engine, &run->match, &collection);
	run->own.collection = copy(&run->arena, buf_str(&collection));
	buf_free(&collection);
}

/* The request as it is sent here: with local ids. */
static int translate(struct run *run, struct err *err)
{
	int code = engine_head_parse(run->request.head, &run->head, err);
	if (code == 0)
		code = match_target(run, run->head.target, err);
	if (code)
		return code;
	struct glue_replacer local = engine_to_local(run->engine);
	glue_splice_target(&run->match, &run->asked, &local, &run->target);
	/* From here on in the words of this site: other paths are made of it. */
	code = match_target(run, copy(&run->arena, buf_str(&run->target)), err);
	if (code)
		return code;
	if (take_blob(run, err) != 0)
		return ERR_UNAVAILABLE;
	struct str body = run->whole.length > 0 ? run->whole : run->request.body;
	if (run->match.needs_body && !glue_match_body(run->setup->about.glue, body, &run->match, err))
		return ERR_INVALID;
	engine_run_name(run);
	code = engine_division_part(run, &body, err);
	if (code)
		return code;
	bool opaque = glue_operation_opaque(run->match.operation);
	engine_splice(opaque ? NULL : glue_request_places(run->match.operation), &local, body, &run->body);
	return 0;
}

/* ---- Sending ------------------------------------------------------------------------------------------------------- */

static bool any(void *context, struct str name)
{
	(void)context;
	(void)name;
	return true;
}

static void wipe(struct buf *text)
{
	if (text->at)
		explicit_bzero(text->at, text->length);
	buf_free(text);
}

/* What a user showed at another site may be known to the judge of that site alone. So what is refused here, with its judge there, is shown once
 * more, to be judged where it was accepted; unless the scope says where. */
static void put_scope(const struct run *run, struct buf *out)
{
	struct str scope = engine_scope_of(run->head.fields), secret = run->request.secret;
	const struct site_place *shown = run->judged ? engine_find_place(run->engine, run->task.op.site) : NULL;
	struct str judge = run->match.service ? glue_service_about(run->match.service)->judge_service : STR("");
	buf_put(out, scope);
	if (!shown || judge.length == 0 || secret.length == 0 || secret.at[0] != 'F' ||
	    (scope.length > 0 && scope_text_names(scope, judge)))
		return;
	buf_put(out, scope.length > 0 ? STR(", ") : STR(""));
	scope_put_service(out, judge);
	buf_put(out, STR(": "));
	scope_put_site(out, shown->name);
}

/* The scope that came with the operation goes the way in which this service lets one follow its calls; what is between agents stays here. */
static void carry_scope(struct run *run, struct buf *fields)
{
	const struct engine_carrier *carrier = &run->setup->about.carrier;
	struct buf scope = {0}, plain = {0}, carried = {0}, mark = {0};
	put_scope(run, &scope);
	if (scope.length == 0 && engine_field(run->head.fields, engine_division_field).length == 0)
		return;
	engine_fields_put(&plain, buf_str(fields), any, NULL);
	if (carrier->carry && scope.length > 0)
		carrier->carry(carrier->context,
		               &(struct engine_carried){run->task.service, buf_str(&scope), buf_str(&plain),
		                                        http_loop_now_ms(run->engine->loop)},
		               &carried, &mark);
	else
		buf_put(&carried, buf_str(&plain));
	run->mark = copy(&run->arena, buf_str(&mark));
	buf_free(&mark);
	buf_free(&scope);
	wipe(&plain);
	wipe(fields);
	*fields = carried;
}

void engine_run_ask(struct run *run, const struct run_question *question)
{
	struct engine *engine = run->engine;
	const struct engine_service *service = run->service;
	struct buf fields = {0};
	struct err err = {0};
	uint32_t instance = engine->turn++ % service->instances_count;
	if (question != &run->question && question->done == done) {
		run->question = *question;
		run->question.method = arena_copy(&run->arena, question->method, strlen(question->method) + 1);
	}
	if (run->match.operation && glue_answer_places(run->match.operation))
		engine_fields_readable(run->head.fields, &fields);
	else
		buf_put(&fields, run->head.fields);
	buf_put(&fields, question->conditions);
	if (engine_secret_show(run, &fields, &err) != 0) {
		buf_free(&fields);
		engine_run_fail(run, REPLICA_CREDENTIAL, "%s", err.text);
		return;
	}
	carry_scope(run, &fields);
	uint64_t answer_ms = run->setup->about.answer_ms;
	struct http_call_options options = {.address = service->instances[instance],
	                                    .tls = service->tls,
	                                    .tls_name = service->tls ? service->names[instance] : NULL,
	                                    .host = run->host,
	                                    .method = question->method,
	                                    .target = question->target,
	                                    .fields = buf_str(&fields),
	                                    .body = question->body,
	                                    .body_fd = run->fd,
	                                    .body_bytes = question->blob ? run->request.blob_bytes : 0,
	                                    .pool = engine->pool,
	                                    .repeatable = question->repeatable,
	                                    .timeout_ms = answer_ms ? answer_ms : ENGINE_ANSWER_MS,
	                                    .answer_bytes = ENGINE_ANSWER_BYTES,
	                                    .done = question->done,
	                                    .context = run};
	int code = http_call_start(&run->call, engine->loop, &options, &err);
	wipe(&fields);
	if (code) {
		run->call = NULL;
		engine_run_fail(run, REPLICA_FAILED, "%s", err.text);
	}
}

static void send_operation(struct run *run)
{
	char method[32];
	snprintf(method, sizeof(method), "%.*s", STR_FMT(run->head.method));
	engine_run_ask(run, &(struct run_question){.method = method,
	                                           .target = buf_str(&run->target),
	                                           .body = buf_str(&run->body),
	                                           .blob = run->fd >= 0,
	                                           .repeatable = run->class.repeatable && run->whole.length == 0 &&
	                                                         run->conditions.length == 0,
	                                           .conditions = run->conditions,
	                                           .done = done});
}

/* The state of another member, where there is nothing to set any more: as a create, in the collection that it was in. The
 * description has to know one there. False: it does not, and that was told. */
static bool become_create(struct run *run)
{
	struct buf body = {0};
	struct err err = {0};
	buf_clear(&run->target);
	buf_put(&run->target, run->match.collection);
	run->asked = engine_request_of(run->task.service, STR("POST"), buf_str(&run->target), run->head.content_type);
	bool known = glue_match(run->setup->about.glue, &run->asked, &run->match) && !run->match.needs_body &&
	             glue_operation_effect(run->match.operation) == GLUE_CREATE;
	bool fine = known && glue_anew(run->match.type, buf_str(&run->body), false, &body, &err) == 0;
	if (fine) {
		buf_free(&run->body);
		run->body = body;
		return true;
	}
	buf_free(&body);
	if (known)
		engine_run_fail(run, REPLICA_REFUSED, "it is gone from the service here, and its state cannot be read: %s",
		                err.text);
	else
		engine_run_fail(run, REPLICA_REFUSED,
		                "it is gone from the service here, and the description knows no request that makes it anew");
	return false;
}

static void send_anew(struct run *run)
{
	if (become_create(run))
		engine_run_ask(
			run, &(struct run_question){
					 .method = "POST", .target = buf_str(&run->target), .body = buf_str(&run->body), .done = done});
}

/* Whether that was done, after its answer was lost. */
static void inquire_anew(struct run *run)
{
	if (become_create(run))
		engine_inquire(run);
}

/* The create, on what is there already. */
static void send_as_replace(struct run *run)
{
	buf_clear(&run->target);
	engine_item_put(run, run->task.local_id, &run->target);
	engine_run_ask(run, &(struct run_question){.method = "PUT",
	                                           .target = buf_str(&run->target),
	                                           .body = buf_str(&run->body),
	                                           .blob = run->fd >= 0,
	                                           .repeatable = true,
	                                           .done = done});
}

static bool has_effect(const struct run *run)
{
	return run->task.kind == REPLICA_RUN || run->task.kind == REPLICA_RUN_CREATE_AS_REPLACE;
}

void engine_run_go(struct run *run)
{
	struct err err = {0};
	if (has_effect(run) && run->whole.length == 0 && run->request.blob.length > 0 && find_blob(run, &err) != 0) {
		engine_run_fail(run, REPLICA_FAILED, "%s", err.text);
		return;
	}
	bool has_request = has_effect(run) || run->task.kind == REPLICA_INQUIRE || is_anew(run);
	int code = has_request ? translate(run, &err) : 0;
	if (code) {
		engine_run_fail(run, code == ERR_UNAVAILABLE ? REPLICA_FAILED : REPLICA_REFUSED, "%s", err.text);
		return;
	}
	switch (run->task.kind) {
	case REPLICA_RUN: send_operation(run); break;
	case REPLICA_RUN_CREATE_AS_REPLACE: send_as_replace(run); break;
	case REPLICA_INQUIRE: engine_inquire(run); break;
	case REPLICA_READ_STATE: engine_read_state(run); break;
	case REPLICA_RUN_ANEW: send_anew(run); break;
	case REPLICA_READ_COPY: engine_read_copy(run); break;
	case REPLICA_LEAVE: engine_leave(run); break;
	case REPLICA_INQUIRE_ANEW: inquire_anew(run); break;
	}
}

void engine_run_start(struct run *run)
{
	struct engine *engine = run->engine;
	if (!engine->setup || !engine->setup->about.glue) {
		engine_run_fail(run, REPLICA_FAILED, "the agent is not configured yet");
		return;
	}
	run->setup = engine_setup_keep(engine->setup);
	run->service = engine_service_find(run->setup, run->task.service);
	if (!run->service) {
		engine_run_fail(run, REPLICA_FAILED, "this site has no service %.*s", STR_FMT(run->task.service));
		return;
	}
	if (has_effect(run) && !engine_admit(run))
		return;
	if (!engine_state_look(run))
		engine_run_go(run);
}
