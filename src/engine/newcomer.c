/* A copy for a new member, and what is left where a site is a member no longer (src/replica/members.c).
 *
 * The copy (REPLICA_READ_COPY): GET of the item; what comes, with meta-ids and without what each service sets by itself (its id, where
 * it assigns it, and what the description calls volatile), becomes the body of a create: POST to the collection, or PUT of the item
 * where the description says that this makes what is not there. What it refers to has to be at the new member as well: the create
 * waits there until it is. Its files and other facets are read behind it, and follow as requests of their own (state.c); so is a
 * body that is too long to travel with its operation.
 * Of what is divided the new member has nothing at first (parts.c).
 * It is refused for a type that has a facet which no request reads, or sets as a whole, unless the description says how it is copied
 * (`facets`): nobody could tell whether there is anything in it that would be missing at the new member.
 *
 * Leaving (REPLICA_LEAVE): DELETE of the item.
 *
 * Both use the credential of this agent where it has one, since nobody's request is behind them; so does who makes the copy.
 */
#include "engine/engine_int.h"

#include "base/percent.h"

static bool find_item(struct run *run)
{
	struct engine_item item = {.service = run->task.service,
	                           .collection = run->task.collection,
	                           .local_id = run->task.local_id,
	                           .target = &run->target};
	bool known = run->task.local_id.length > 0 && engine_item_find(run->engine, run->setup, &item);
	run->asked = item.asked;
	run->match = item.match;
	if (known)
		engine_run_name(run);
	return known;
}

/* A facet that cannot be copied; "": there is none. */
static struct str find_odd_facet(const struct glue_type *type)
{
	struct glue_facet facet;
	for (uint32_t i = 1; i < glue_facets_count(type); i++)
		if (!glue_facet_find(type, i, &facet) && !glue_facet_is_shown(type, i) &&
		    glue_facet_copying(type, i)->how == GLUE_COPY_UNTOLD)
			return glue_facet_name(type, i);
	return STR("");
}

/* ---- What it shows ------------------------------------------------------------------------------------------------- */

struct shown {
	struct engine_to_meta to;
	struct replica_id references[LIMIT_REPLICA_REFERENCES];
	uint32_t references_count;
	bool more;     /* than there can be */
	bool keeps_id; /* a create may say it: the new copy is called as the one here */
};

static void note_reference(struct shown *shown, struct replica_id id)
{
	for (uint32_t i = 0; i < shown->references_count; i++)
		if (memcmp(&shown->references[i], &id, sizeof(id)) == 0)
			return;
	if (shown->references_count < LIMIT_REPLICA_REFERENCES)
		shown->references[shown->references_count++] = id;
	else
		shown->more = true;
}

static bool put_meta(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct shown *shown = context;
	struct glue_replacer meta = engine_to_meta(&shown->to);
	struct engine_found found;
	if (place->kind == GLUE_PLACE_ID && shown->keeps_id)
		return false;
	if (place->kind == GLUE_PLACE_REFERENCE && place->relation != GLUE_COMPOSITION &&
	    engine_place_find(&shown->to, place, &found))
		note_reference(shown, found.id);
	return meta.replace(meta.context, place, value, quoted);
}

/* ---- A request that makes it ---------------------------------------------------------------------------------------- */

static bool makes_it(const struct run *run, struct str method, struct str target)
{
	struct glue_match match;
	struct glue_request asked = engine_request_of(run->task.service, method, target, STR("application/json"));
	if (!glue_match(run->setup->about.glue, &asked, &match) || match.needs_body || !match.operation)
		return false;
	return glue_operation_effect(match.operation) == GLUE_CREATE || glue_operation_creates(match.operation);
}

/* In words that all members understand. False: the application has no way. */
static bool put_create(const struct run *run, struct str fields, struct buf *head)
{
	struct buf target = {0};
	struct str method = STR("POST");
	engine_base_put(run->setup, run->task.service, &target);
	buf_put(&target, run->task.collection);
	bool can = makes_it(run, method, buf_str(&target));
	if (!can && glue_type_identity(run->match.type) == GLUE_CHOSEN) {
		method = STR("PUT");
		buf_put_char(&target, '/');
		percent_encode(&target, run->task.local_id);
		can = makes_it(run, method, buf_str(&target));
	}
	if (can)
		engine_head_put(&(struct engine_head){method, buf_str(&target), fields, STR("application/json")}, head);
	buf_free(&target);
	return can;
}

static int make_copy(struct run *run, struct str answer, struct buf *head, struct buf *body, struct shown *shown,
                     struct err *err)
{
	struct buf text = {0}, fields = {0};
	engine_splice(glue_answer_places(run->match.operation), &(struct glue_replacer){shown, put_meta}, answer, &text);
	int code = 0;
	if (shown->more)
		code = err_set(err, ERR_LIMIT, "it refers to more than %d replicated resources", LIMIT_REPLICA_REFERENCES);
	else
		code = glue_anew(run->match.type, buf_str(&text), true, body, err);
	buf_put(&fields, STR("Content-Type: application/json\r\n"));
	if (code == 0)
		code = engine_parts_none(run, &fields, body, err);
	if (code == 0 && !put_create(run, buf_str(&fields), head))
		code = err_set(err, ERR_INVALID, "the application has no way to make it from what it shows");
	buf_free(&text);
	buf_free(&fields);
	return code;
}

static void copy_told(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	struct err err = {0};
	run->call = NULL;
	if (answer->code || answer->status != 200) {
		bool later = answer->code || answer->status >= 500 || answer->status == 429;
		engine_run_fail(run, later ? REPLICA_FAILED : REPLICA_REFUSED, "the service says: %s",
		                answer->code ? answer->err.text : http_reason(answer->status));
		return;
	}
	struct buf head = {0}, body = {0};
	struct shown shown = {.to = {run->engine, run->own, run->setup->about.glue},
	                      .keeps_id = glue_type_identity(run->match.type) == GLUE_SUGGESTED};
	if (make_copy(run, answer->body, &head, &body, &shown, &err) != 0) {
		engine_run_fail(run, REPLICA_REFUSED, "%s", err.text);
		buf_free(&head);
		buf_free(&body);
		return;
	}
	/* The run has no request of its own: it is that of the copy. */
	run->request.references_count = shown.references_count;
	run->request.references = (const struct replica_id *)arena_copy(
		&run->arena, (const char *)shown.references, shown.references_count * sizeof(shown.references[0]));
	engine_state_copy(run, answer->body, &head, &body);
}

void engine_read_copy(struct run *run)
{
	bool known = find_item(run) && run->match.operation;
	struct str odd = known ? find_odd_facet(run->match.type) : STR("");
	if (!known)
		engine_run_fail(run, REPLICA_REFUSED, "the description of the application here has no such path");
	else if (odd.length > 0)
		engine_run_fail(run, REPLICA_REFUSED,
		                "what it has as `%.*s` cannot be copied: the description knows no GET and PUT of one path that "
		                "read it and set it as a whole, and says nothing else of it in `facets`",
		                STR_FMT(odd));
	else
		engine_run_ask(run,
		               &(struct run_question){
						   .method = "GET", .target = buf_str(&run->target), .repeatable = true, .done = copy_told});
}

/* ---- Leaving --------------------------------------------------------------------------------------------------------- */

static void deleted(void *context, const struct http_call_answer *answer)
{
	struct run *run = context;
	run->call = NULL;
	if (answer->code || answer->status >= 500 || answer->status == 408 || answer->status == 429)
		engine_run_fail(run, REPLICA_FAILED, "%s", answer->code ? answer->err.text : http_reason(answer->status));
	else if (answer->status < 300)
		engine_run_tell(run, &(struct replica_outcome){.kind = REPLICA_ACCEPTED, .status = (int)answer->status});
	else if (run->match.service && glue_is_credential_fault(run->match.service, (int)answer->status))
		engine_run_fail(run, REPLICA_CREDENTIAL, "%s", http_reason(answer->status));
	else
		engine_run_tell(run, &(struct replica_outcome){.kind = REPLICA_REFUSED, .status = (int)answer->status});
}

void engine_leave(struct run *run)
{
	if (!find_item(run)) {
		engine_run_fail(run, REPLICA_REFUSED, "the description of the application here has no such path");
		return;
	}
	engine_run_ask(run, &(struct run_question){
							.method = "DELETE", .target = buf_str(&run->target), .repeatable = true, .done = deleted});
}
