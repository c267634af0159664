/* What is there: asked of a service after the outcome of an operation was lost, or to give the state to a member that cannot
 * get to it by itself.
 *
 * Inquiring (REPLICA_INQUIRE):
 *   a create, or a state that was to make it anew (REPLICA_INQUIRE_ANEW)
 *               by the id that its user chose or that was suggested, or by its natural name: it is there, or it is not, or it is known as another
 *               replicant's. Without either nobody can tell, and it stays in doubt
 *   a delete    by the local id: it is gone, or not
 *   others      nobody can tell
 * An answer that is neither 2xx nor 404 tells nothing for now, and the question is asked again later.
 *
 * The state (REPLICA_READ_STATE): GET of the item; what comes, with meta-ids, becomes the body of a PUT. A type that cannot
 * be PUT cannot be repaired so. Its files and other facets follow (state.c).
 */
#include "engine/engine_int.h"

#include "base/percent.h"

void engine_item_put(const struct run *run, struct str id, struct buf *out)
{
	buf_put(out, run->match.collection);
	buf_put_char(out, '/');
	percent_encode(out, id);
}

/* ---- Places of a body ---------------------------------------------------------------------------------------------- */

static bool note(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct engine_seen *seen = context;
	if (place->kind == GLUE_PLACE_ID && seen->id.length == 0) {
		buf_put(&seen->id, place->value);
		seen->id_quoted = place->quoted;
	}
	if (place->kind == GLUE_PLACE_NAME && seen->name.length == 0)
		buf_put(&seen->name, place->value);
	return false;
}

void engine_seen_take(const struct glue_places *places, struct str body, struct engine_seen *seen)
{
	struct buf unused = {0};
	if (places)
		engine_splice(places, &(struct glue_replacer){seen, note}, body, &unused);
	buf_free(&unused);
}

void engine_seen_free(struct engine_seen *seen)
{
	buf_free(&seen->id);
	buf_free(&seen->name);
}

const struct glue_operation *engine_operation_of(const struct glue_type *type, enum glue_effect effect)
{
	for (uint32_t i = 0; i < glue_operations_count(type); i++) {
		const struct glue_operation *operation = glue_operation_at(type, i);
		if (glue_operation_effect(operation) == effect && glue_facet_number(operation) == 0)
			return operation;
	}
	return NULL;
}

/* ---- Did it happen? ------------------------------------------------------------------------------------------------ */

static bool tells_nothing(struct run *run, const struct http_call_answer *answer)
{
	run->call = NULL;
	bool clear = answer->code == 0 &&
	             ((answer->status >= 200 && answer->status < 300) || answer->status == 404 || answer->status == 410);
	if (!clear)
		engine_run_fail(run, REPLICA_FAILED, "the service does not say: %s",
		                answer->code ? answer->err.text : http_reason(answer->status));
	return !clear;
}

static void item_told(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	if (tells_nothing(run, answer))
		return;
	bool there = answer->status < 300, wanted = run->class.effect != ORDER_DELETE;
	struct engine_seen seen = {0};
	engine_seen_take(there ? glue_answer_places(run->match.operation) : NULL, answer->body, &seen);
	engine_run_tell(run, &(struct replica_outcome){.kind = there == wanted ? REPLICA_ACCEPTED : REPLICA_REFUSED,
	                                               .status = (int)answer->status,
	                                               .local_id = wanted ? buf_str(&seen.id) : STR(""),
	                                               .local_id_quoted = seen.id_quoted});
	engine_seen_free(&seen);
}

/* What has the name is a replica of something else: it was made by another create. */
static bool is_of_another(const struct run *run, struct str local_id)
{
	struct engine_found found;
	struct engine_name name = run->own;
	name.id = local_id;
	return engine_find(run->engine, &name, &found) && !found.by_meta_id &&
	       memcmp(found.id.bytes, run->task.op.replicant.bytes, sizeof(found.id.bytes)) != 0;
}

static void list_told(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	if (tells_nothing(run, answer))
		return;
	const struct glue_operation *list = engine_operation_of(run->match.type, GLUE_LIST);
	struct engine_seen seen = {0};
	engine_seen_take(list && answer->status < 300 ? glue_answer_places(list) : NULL, answer->body, &seen);
	bool there = seen.id.length > 0 && !is_of_another(run, buf_str(&seen.id));
	engine_run_tell(run, &(struct replica_outcome){.kind = there ? REPLICA_ACCEPTED : REPLICA_REFUSED,
	                                               .status = there ? 201 : (int)answer->status,
	                                               .local_id = buf_str(&seen.id),
	                                               .local_id_quoted = seen.id_quoted});
	engine_seen_free(&seen);
}

static void ask_item(struct run *run, struct str id)
{
	buf_clear(&run->target);
	engine_item_put(run, id, &run->target);
	engine_run_ask(run, &(struct run_question){
							.method = "GET", .target = buf_str(&run->target), .repeatable = true, .done = item_told});
}

/* By the query that the description gives; false: it gives none, or there is no name. */
static bool ask_by_name(struct run *run)
{
	struct engine_seen seen = {0};
	struct buf query = {0};
	engine_seen_take(glue_request_places(run->match.operation), buf_str(&run->body), &seen);
	bool can = seen.name.length > 0 && glue_type_names_unique(run->match.type) &&
	           glue_type_find_put(run->match.type, buf_str(&seen.name), &query);
	if (can) {
		buf_clear(&run->target);
		buf_put(&run->target, run->match.collection);
		buf_put_char(&run->target, '?');
		buf_put(&run->target, buf_str(&query));
	}
	buf_free(&query);
	engine_seen_free(&seen);
	if (can)
		engine_run_ask(run,
		               &(struct run_question){
						   .method = "GET", .target = buf_str(&run->target), .repeatable = true, .done = list_told});
	return can;
}

static void ask_by_chosen_id(struct run *run)
{
	struct engine_seen seen = {0};
	engine_seen_take(glue_request_places(run->match.operation), buf_str(&run->body), &seen);
	struct str id = run->match.id.length > 0 ? run->match.id : buf_str(&seen.id);
	if (id.length > 0)
		ask_item(run, id);
	else
		engine_run_fail(run, REPLICA_UNKNOWN, "the request has no id to ask for");
	engine_seen_free(&seen);
}

/* The id that was suggested to the service is this replicant's: what has it can be nothing else. */
static bool has_meta_id(const struct run *run)
{
	struct engine_seen seen = {0};
	struct buf id = {0};
	if (glue_type_identity(run->match.type) != GLUE_SUGGESTED)
		return false;
	engine_seen_take(glue_request_places(run->match.operation), buf_str(&run->body), &seen);
	replica_id_put(run->task.op.replicant, &id);
	bool same = str_equal(buf_str(&seen.id), buf_str(&id));
	engine_seen_free(&seen);
	buf_free(&id);
	return same;
}

void engine_inquire(struct run *run)
{
	bool copies = run->class.effect == ORDER_ADOPT && run->class.facet == 0;
	bool creates = run->class.effect == ORDER_CREATE || copies || run->task.kind == REPLICA_INQUIRE_ANEW;
	if (creates && (glue_type_identity(run->match.type) == GLUE_CHOSEN || has_meta_id(run)))
		ask_by_chosen_id(run);
	else if (run->class.effect == ORDER_DELETE && run->task.local_id.length > 0)
		ask_item(run, run->task.local_id);
	else if (!creates || !ask_by_name(run))
		engine_run_fail(run, REPLICA_UNKNOWN, "nothing at the service tells whether this has happened");
}

/* ---- The state ----------------------------------------------------------------------------------------------------- */

/* The services of the others make their own. What is no JSON stays as it is. */
static void drop_parts(const struct glue_type *type, struct buf *body)
{
	struct buf rest = {0};
	if (!glue_type_has_parts(type) || glue_without_parts(type, buf_str(body), &rest, NULL) != 0) {
		buf_free(&rest);
		return;
	}
	buf_free(body);
	*body = rest;
}

static void state_told(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	const struct glue_operation *replace = engine_operation_of(run->match.type, GLUE_REPLACE);
	const struct glue_operation *read = engine_operation_of(run->match.type, GLUE_READ);
	run->call = NULL;
	if (answer->code || answer->status != 200 || !replace || !read) {
		bool later = answer->code ? answer->code != ERR_LIMIT : answer->status >= 500;
		engine_run_fail(run, later ? REPLICA_FAILED : REPLICA_REFUSED, "the state cannot be read: %s",
		                answer->code ? answer->err.text : http_reason(answer->status));
		return;
	}
	struct buf body = {0};
	struct engine_to_meta to = {run->engine, run->own, run->setup->about.glue};
	struct glue_replacer meta = engine_to_meta(&to);
	engine_splice(glue_answer_places(read), &meta, answer->body, &body);
	drop_parts(run->match.type, &body);
	engine_state_give(run, replace, &body);
}

void engine_base_put(const struct setup *setup, struct str service, struct buf *out)
{
	const struct glue_service *known = glue_service_find(setup->about.glue, service);
	if (known)
		buf_put(out, glue_service_about(known)->base);
}

bool engine_item_find(struct engine *engine, const struct setup *setup, struct engine_item *item)
{
	struct buf path = {0};
	struct glue_replacer local = engine_to_local(engine);
	engine_base_put(setup, item->service, &path);
	buf_put(&path, item->collection);
	buf_put_char(&path, '/');
	percent_encode(&path, item->local_id);
	item->asked = engine_request_of(item->service, STR("GET"), buf_str(&path), STR(""));
	bool known = glue_match(setup->about.glue, &item->asked, &item->match);
	if (known)
		glue_splice_target(&item->match, &item->asked, &local, item->target);
	buf_free(&path);
	item->asked = engine_request_of(item->service, STR("GET"), buf_str(item->target), STR(""));
	return known && glue_match(setup->about.glue, &item->asked, &item->match) && !item->match.needs_body;
}

void engine_read_state(struct run *run)
{
	/* There is no request to read it from: the replicant says where it is. */
	struct engine_item item = {.service = run->task.service,
	                           .collection = run->task.collection,
	                           .local_id = run->task.local_id,
	                           .target = &run->target};
	bool known = engine_item_find(run->engine, run->setup, &item);
	run->asked = item.asked;
	run->match = item.match;
	if (!known || !engine_operation_of(run->match.type, GLUE_REPLACE)) {
		engine_run_fail(run, REPLICA_REFUSED, "the application has no way to set the whole of it");
		return;
	}
	engine_run_name(run);
	engine_run_ask(run, &(struct run_question){
							.method = "GET", .target = buf_str(&run->target), .repeatable = true, .done = state_told});
}
