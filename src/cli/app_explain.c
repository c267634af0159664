/* cheops app explain: what a request is by a description, where ids stand in it, and what becomes of it. */
#include "cli/cmd_app.h"

/* ---- Ids in the request ------------------------------------------------------------------------------------------ */

enum { PLACES_SHOWN = 256 };

struct place {
	const char *in; /* "path", "query", "body" */
	enum glue_place_kind kind;
	const struct glue_type *type; /* NULL: of any */
	enum glue_kind relation;
	struct str value;
	size_t at;
};

/* A request being explained. */
struct explaining {
	struct app_call *call;
	const struct glue *glue;
	struct glue_request request;
	struct str body;
	bool has_body;
	struct glue_match match;
	struct place places[PLACES_SHOWN];
	uint32_t places_count;
	bool more;          /* there are more of them */
	const char *in;     /* where they are looked for */
	uint32_t skip;      /* so many are there already */
	struct err trouble; /* with the body */
};

static bool note(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct explaining *explaining = context;
	if (explaining->skip > 0) {
		explaining->skip--;
		return false;
	}
	if (explaining->places_count == PLACES_SHOWN) {
		explaining->more = true;
		return false;
	}
	struct arena *arena = &explaining->call->arena;
	explaining->places[explaining->places_count++] = (struct place){
		.in = explaining->in,
		.kind = place->kind,
		.type = place->type,
		.relation = place->relation,
		.value = str_make(arena_copy(arena, place->value.at, place->value.length), place->value.length),
		.at = place->at,
	};
	return false;
}

static void find_places(struct explaining *explaining)
{
	struct glue_replacer replacer = {explaining, note};
	struct glue_request path = explaining->request;
	struct buf out = {0};
	path.query = STR("");
	explaining->in = "path";
	glue_splice_target(&explaining->match, &path, &replacer, &out);
	explaining->in = "query";
	explaining->skip = explaining->places_count;
	glue_splice_target(&explaining->match, &explaining->request, &replacer, &out);
	explaining->in = "body";
	explaining->skip = 0;
	const struct glue_operation *operation = explaining->match.operation;
	const struct glue_places *places = operation != NULL ? glue_request_places(operation) : NULL;
	if (explaining->has_body && places != NULL) {
		struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
		if (glue_splice(splicer, explaining->body, &out, &explaining->trouble) == 0)
			glue_splice_end(splicer, &out, &explaining->trouble);
		glue_splicer_free(splicer);
	}
	buf_free(&out);
}

/* ---- What it means ----------------------------------------------------------------------------------------------- */

static bool is_change(enum glue_effect effect)
{
	return effect == GLUE_REPLACE || effect == GLUE_ASSIGN || effect == GLUE_RELATIVE || effect == GLUE_DELETE;
}

static const char *effect_means(enum glue_effect effect)
{
	switch (effect) {
	case GLUE_READ: return "changes nothing";
	case GLUE_LIST: return "changes nothing, shows many items";
	case GLUE_CREATE: return "makes an item";
	case GLUE_REPLACE: return "sets the whole";
	case GLUE_ASSIGN: return "sets what it names";
	case GLUE_RELATIVE: return "depends on what is there";
	case GLUE_DELETE: return "ends the item";
	default: return "none of our business";
	}
}

/* Does `&` make it an operation that runs at every member? */
static bool replicates(const struct glue_match *match)
{
	if (match->operation == NULL)
		return false;
	enum glue_effect effect = glue_operation_effect(match->operation);
	return effect == GLUE_CREATE || (is_change(effect) && match->id.length > 0);
}

static const char *becomes(const struct glue_match *match)
{
	if (match->operation == NULL)
		return "unknown: the body has to say which operation it is";
	enum glue_effect effect = glue_operation_effect(match->operation);
	if (effect == GLUE_CREATE)
		return "runs at every member; the answer has the meta-id";
	if (is_change(effect) && match->id.length > 0)
		return "runs at every member that has the item, also without a scope if it is replicated";
	if (is_change(effect))
		return "passed on as it is: the path names no item";
	if (effect == GLUE_READ)
		return "answered by the local replica, else by one of those named";
	return effect == GLUE_LIST ? "answered where it is asked; shows meta-ids" : "passed on as it is";
}

/* Is what stands there replaced by each site's own id? */
static bool is_rewritten(const struct place *place)
{
	if (place->kind == GLUE_PLACE_NAME)
		return false;
	return place->type == NULL || glue_type_identity(place->type) != GLUE_CHOSEN;
}

static const char *kind_name(enum glue_place_kind kind)
{
	static const char *const names[] = {[GLUE_PLACE_ID] = "id",
	                                    [GLUE_PLACE_NAME] = "name",
	                                    [GLUE_PLACE_REFERENCE] = "reference",
	                                    [GLUE_PLACE_LINK] = "link"};
	return names[kind];
}

static const char *credential_name(enum glue_credential use)
{
	static const char *const names[] = {
		[GLUE_FORWARD] = "forward", [GLUE_IMPERSONATE] = "impersonate", [GLUE_AGENT] = "agent"};
	return names[use];
}

static const char *credential_means(enum glue_credential use)
{
	static const char *const means[] = {[GLUE_FORWARD] = "the user's own, as long as it is valid",
	                                    [GLUE_IMPERSONATE] = "the agent's own, on behalf of the user",
	                                    [GLUE_AGENT] = "the agent's own"};
	return means[use];
}

/* ---- For people -------------------------------------------------------------------------------------------------- */

static void put_line(struct buf *out, const char *label, struct str text)
{
	buf_printf(out, "%-12s ", label);
	text_put_harmless(out, text);
	buf_put_char(out, '\n');
}

static void put_operation(struct buf *out, const struct glue_match *match)
{
	const struct glue_operation *operation = match->operation;
	struct buf text = {0};
	if (operation == NULL) {
		put_line(out, "operation", STR("the body says which"));
		return;
	}
	enum glue_effect effect = glue_operation_effect(operation);
	buf_printf(&text, "%.*s", STR_FMT(glue_operation_name(operation)));
	if (match->key.length > 0)
		buf_printf(&text, ", by the body's member `%.*s`", STR_FMT(text_shown(match->key)));
	if (match->needs_body)
		buf_put(&text, STR(", if the body does not say otherwise"));
	put_line(out, "operation", buf_str(&text));
	buf_clear(&text);
	buf_printf(&text, "%s: %s", glue_effect_name(effect), effect_means(effect));
	if (glue_operation_creates(operation))
		buf_put(&text, STR("; makes it if it is not there"));
	if (effect != GLUE_READ && effect != GLUE_LIST && effect != GLUE_PASS)
		buf_put(&text, glue_operation_repeatable(operation) ? STR("; running it twice is running it once")
		                                                    : STR("; must not run twice"));
	put_line(out, "effect", buf_str(&text));
	if (glue_operation_facet(operation).length > 0)
		put_line(out, "facet", glue_operation_facet(operation));
	buf_free(&text);
}

/* The body as other sites get it; false: as it is. */
static bool put_carried(const struct explaining *explaining, struct buf *out)
{
	const struct glue_operation *operation = explaining->match.operation;
	return operation != NULL && explaining->has_body && replicates(&explaining->match) &&
	       glue_strip_preconditions(operation, explaining->request.content_type, explaining->body, out);
}

static void put_bodies(struct buf *out, const struct explaining *explaining)
{
	const struct glue_operation *operation = explaining->match.operation;
	if (operation == NULL)
		return;
	if (glue_operation_opaque(operation))
		put_line(out, "body", STR("never read: a file"));
	else if (explaining->trouble.code != 0)
		put_line(out, "body", str_of(explaining->trouble.text));
	if (glue_operation_streams(operation))
		put_line(out, "answer", STR("never ends: a stream, ids in it are looked for"));
	else
		put_line(out, "answer",
		         glue_answer_places(operation) != NULL ? STR("ids in it are looked for") : STR("never read"));
}

static void put_places(struct buf *out, const struct explaining *explaining)
{
	for (uint32_t i = 0; i < explaining->places_count; i++) {
		const struct place *place = &explaining->places[i];
		struct buf text = {0};
		buf_printf(&text, "%s: %s " TEXT_NAME_FMT, place->in, kind_name(place->kind), TEXT_NAME(place->value));
		if (place->type != NULL && place->kind == GLUE_PLACE_REFERENCE)
			buf_printf(&text, " to %.*s", STR_FMT(glue_type_name(place->type)));
		if (place->relation != GLUE_UNRELATED)
			buf_printf(&text, " (%s)", glue_kind_name(place->relation));
		buf_put(&text, is_rewritten(place) ? STR(", rewritten to each site's own") : STR(", left as it is"));
		put_line(out, i == 0 ? "ids" : "", buf_str(&text));
		buf_free(&text);
	}
	if (explaining->more)
		put_line(out, "", STR("and more"));
}

/* What it uses without naming an id. */
static void put_uses(struct buf *out, const struct glue_operation *operation)
{
	struct buf text = {0};
	for (uint32_t i = 0; operation != NULL && i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->where == GLUE_NOWHERE)
			buf_printf(&text, "%s%.*s", text.length > 0 ? ", " : "", STR_FMT(glue_type_name(relation->type)));
	}
	if (text.length > 0)
		put_line(out, "uses", buf_str(&text));
	buf_free(&text);
}

/* What spans sites, and how; whose it is, where that is not anybody's. */
static void put_sites(struct buf *out, const struct glue_match *match)
{
	const struct glue_cross *cross = glue_type_cross(match->type);
	struct buf text = {0};
	uint32_t own = 0;
	const struct str *divide = match->operation != NULL ? glue_operation_divide(match->operation, &own) : NULL;
	if (glue_type_owner(match->type) == GLUE_SITE)
		put_line(out, "owner", STR("site: what runs at another site cannot use it"));
	if (cross->strategy == GLUE_NO_CROSS)
		return;
	buf_printf(&text, "%s", glue_strategy_name(cross->strategy));
	if (cross->optimistic)
		buf_put(&text, STR("; names that cannot be checked are accepted"));
	for (uint32_t i = 0; i < cross->divide_count; i++)
		buf_printf(&text, "%s%.*s", i == 0 ? ": divides " : ", ", STR_FMT(cross->divide[i]));
	for (uint32_t i = 0; i < own; i++)
		buf_printf(&text, "%s%.*s", i == 0 ? "; here " : ", ", STR_FMT(divide[i]));
	if (cross->weight.length > 0)
		buf_printf(&text, "; by the tag `%.*s`", STR_FMT(cross->weight));
	for (uint32_t i = 0; i < cross->combine_count; i++)
		buf_printf(&text, "%s%s of %.*s", i == 0 ? "; reads " : ", ", glue_combine_name(cross->combine[i].as),
		           STR_FMT(cross->combine[i].pointer));
	put_line(out, "with %", buf_str(&text));
	buf_free(&text);
}

static void put_text(struct buf *out, const struct explaining *explaining)
{
	const struct glue_match *match = &explaining->match;
	struct buf text = {0};
	put_line(out, "application", glue_application(explaining->glue));
	put_line(out, "service", match->service_name);
	glue_type_put(match, &text);
	if (!str_equal(buf_str(&text), glue_type_name(match->type)))
		buf_printf(&text, ", by %.*s", STR_FMT(glue_type_name(match->type)));
	put_line(out, "type", buf_str(&text));
	put_operation(out, match);
	if (match->id.length > 0)
		put_line(out, "item", match->id);
	buf_clear(&text);
	glue_collection_put(match, &text);
	put_line(out, "collection", buf_str(&text));
	put_places(out, explaining);
	put_uses(out, match->operation);
	put_bodies(out, explaining);
	put_line(out, "with &", str_of(becomes(match)));
	put_sites(out, match);
	buf_clear(&text);
	if (put_carried(explaining, &text))
		put_line(out, "elsewhere", buf_str(&text));
	enum glue_credential use = glue_credential_use(match->service);
	buf_clear(&text);
	buf_printf(&text, "%s: %s", credential_name(use), credential_means(use));
	struct str accompany = glue_service_about(match->service)->accompany;
	if (accompany.length > 0)
		buf_printf(&text, ", and the agent's in %.*s", STR_FMT(accompany));
	if (replicates(match))
		put_line(out, "credentials", buf_str(&text));
	buf_free(&text);
}

/* ---- For programs ------------------------------------------------------------------------------------------------ */

static void put_member(struct buf *out, const char *name, struct str text)
{
	buf_printf(out, ",\"%s\":", name);
	buf_put_json(out, text);
}

static void put_member_or_null(struct buf *out, const char *name, struct str text)
{
	if (text.length > 0)
		put_member(out, name, text);
	else
		buf_printf(out, ",\"%s\":null", name);
}

static void put_flag(struct buf *out, const char *name, bool flag)
{
	buf_printf(out, ",\"%s\":%s", name, flag ? "true" : "false");
}

static void put_operation_json(struct buf *out, const struct glue_match *match)
{
	const struct glue_operation *operation = match->operation;
	put_flag(out, "needs_body", match->needs_body);
	if (operation == NULL) {
		buf_put(out, STR(",\"operation\":null,\"effect\":null"));
		return;
	}
	put_member(out, "operation", glue_operation_name(operation));
	put_member_or_null(out, "key", match->key);
	put_member(out, "effect", str_of(glue_effect_name(glue_operation_effect(operation))));
	put_member_or_null(out, "facet", glue_operation_facet(operation));
	put_flag(out, "repeatable", glue_operation_repeatable(operation));
	put_flag(out, "creates", glue_operation_creates(operation));
	put_flag(out, "opaque", glue_operation_opaque(operation));
	put_flag(out, "streams", glue_operation_streams(operation));
	put_flag(out, "answer_read", glue_answer_places(operation) != NULL);
}

static void put_place_json(struct buf *out, const struct place *place)
{
	buf_printf(out, "{\"in\":\"%s\",\"kind\":\"%s\",\"at\":%zu,\"value\":", place->in, kind_name(place->kind),
	           place->at);
	buf_put_json(out, place->value);
	put_member_or_null(out, "type", place->type != NULL ? glue_type_name(place->type) : STR(""));
	if (place->relation != GLUE_UNRELATED)
		put_member(out, "relation", str_of(glue_kind_name(place->relation)));
	put_flag(out, "rewritten", is_rewritten(place));
	buf_put_char(out, '}');
}

static void put_pointers(struct buf *out, const char *name, const struct str *pointers, uint32_t count)
{
	buf_printf(out, ",\"%s\":[", name);
	for (uint32_t i = 0; i < count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		buf_put_json(out, pointers[i]);
	}
	buf_put_char(out, ']');
}

static void put_cross_json(struct buf *out, const struct glue_cross *cross)
{
	if (cross->strategy == GLUE_NO_CROSS) {
		buf_put(out, STR(",\"cross\":null"));
		return;
	}
	buf_printf(out, ",\"cross\":{\"as\":\"%s\"", glue_strategy_name(cross->strategy));
	if (cross->strategy == GLUE_CONTAINER)
		put_member(out, "names", cross->optimistic ? STR("optimistic") : STR("strict"));
	if (cross->strategy == GLUE_DIVISIBLE) {
		put_pointers(out, "divide", cross->divide, cross->divide_count);
		put_member_or_null(out, "weight", cross->weight);
		buf_put(out, STR(",\"combine\":{"));
		for (uint32_t i = 0; i < cross->combine_count; i++) {
			buf_put(out, i > 0 ? STR(",") : STR(""));
			buf_put_json(out, cross->combine[i].pointer);
			buf_printf(out, ":\"%s\"", glue_combine_name(cross->combine[i].as));
		}
		buf_put_char(out, '}');
	}
	buf_put_char(out, '}');
}

static void put_relations_json(struct buf *out, const struct glue_match *match)
{
	uint32_t count = 0;
	const struct str *divide = match->operation != NULL ? glue_operation_divide(match->operation, &count) : NULL;
	bool first = true;
	put_member(out, "owner", glue_type_owner(match->type) == GLUE_SITE ? STR("site") : STR("global"));
	put_member(out, "relied", glue_type_relied(match->type) == GLUE_RELIED_REFUSE ? STR("refuse") : STR("warn"));
	put_cross_json(out, glue_type_cross(match->type));
	put_pointers(out, "divide", divide, count);
	buf_put(out, STR(",\"uses\":["));
	for (uint32_t i = 0; match->operation != NULL && i < glue_relations_count(match->operation); i++) {
		const struct glue_relation *relation = glue_relation_at(match->operation, i);
		if (relation->where != GLUE_NOWHERE)
			continue;
		buf_put(out, first ? STR("") : STR(","));
		buf_put_json(out, glue_type_name(relation->type));
		first = false;
	}
	buf_put_char(out, ']');
}

static void put_json(struct buf *out, const struct explaining *explaining)
{
	static const char *const identities[] = {
		[GLUE_ASSIGNED] = "assigned", [GLUE_CHOSEN] = "chosen", [GLUE_SUGGESTED] = "suggested"};
	const struct glue_match *match = &explaining->match;
	struct buf text = {0};
	buf_put(out, STR("{\"known\":true"));
	put_member(out, "application", glue_application(explaining->glue));
	put_member(out, "service", match->service_name);
	glue_type_put(match, &text);
	put_member(out, "type", buf_str(&text));
	put_member(out, "described_as", glue_type_name(match->type));
	put_member(out, "identity", str_of(identities[glue_type_identity(match->type)]));
	put_member(out, "ids", glue_type_ids_in_collection(match->type) ? STR("collection") : STR("everywhere"));
	put_operation_json(out, match);
	put_relations_json(out, match);
	put_member_or_null(out, "id", match->id);
	buf_clear(&text);
	glue_collection_put(match, &text);
	put_member(out, "collection", buf_str(&text));
	buf_clear(&text);
	put_member_or_null(out, "elsewhere", put_carried(explaining, &text) ? buf_str(&text) : STR(""));
	buf_free(&text);
	buf_put(out, STR(",\"values\":{"));
	for (uint32_t i = 0; i < match->values_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		buf_put_json(out, match->values[i].name);
		buf_put_char(out, ':');
		buf_put_json(out, match->values[i].text);
	}
	buf_put(out, STR("},\"places\":["));
	for (uint32_t i = 0; i < explaining->places_count; i++) {
		buf_put(out, i > 0 ? STR(",") : STR(""));
		put_place_json(out, &explaining->places[i]);
	}
	buf_put(out, STR("]"));
	put_flag(out, "replicates", replicates(match));
	put_member(out, "credentials", str_of(credential_name(glue_credential_use(match->service))));
	put_member_or_null(out, "trouble", str_of(explaining->trouble.text));
	buf_put(out, STR("}\n"));
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

static int unknown(const struct explaining *explaining)
{
	struct buf out = {0};
	if (explaining->call->json)
		buf_put(&out, STR("{\"known\":false}\n"));
	else
		buf_put(&out, STR("unknown to the description: passed on as it is\n"));
	int status = cli_print(buf_str(&out));
	buf_free(&out);
	return status == CLI_FINE ? CLI_REFUSED : status;
}

static int tell(struct explaining *explaining)
{
	struct buf out = {0};
	bool known = false;
	int status =
		app_service_choose(explaining->call, explaining->glue, &explaining->request, &explaining->match, &known);
	if (status != CLI_FINE)
		return status;
	if (!known)
		return unknown(explaining);
	if (explaining->match.needs_body && explaining->has_body)
		glue_match_body(explaining->glue, explaining->body, &explaining->match, &explaining->trouble);
	find_places(explaining);
	if (explaining->call->json)
		put_json(&out, explaining);
	else
		put_text(&out, explaining);
	if (explaining->match.operation == NULL && explaining->trouble.code != 0 && !explaining->call->json)
		put_line(&out, "body", str_of(explaining->trouble.text));
	status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

int app_explain(struct app_call *call)
{
	struct glue *glue = NULL;
	struct buf kept = {0};
	if (call->arguments_count < 2 || call->arguments_count > 3)
		return cli_usage(call->command, "%s",
		                 call->arguments_count < 2 ? "a request is needed: METHOD PATH, as in GET /images/42"
		                                           : "more than METHOD, PATH and BODY; put quotes around the body");
	struct explaining *explaining = arena_new(&call->arena, struct explaining);
	explaining->call = call;
	explaining->has_body = call->arguments_count == 3;
	int status = app_request_take(call, call->arguments[0], call->arguments[1], &explaining->request);
	if (status == CLI_FINE)
		status = app_open(call, call->app != NULL ? call->app : "rest", &glue);
	if (status == CLI_FINE && explaining->has_body)
		status = app_body_read(call->arguments[2], &kept, &explaining->body);
	explaining->request.content_type = call->content_type.length > 0 ? call->content_type
	                                   : explaining->has_body        ? STR("application/json")
	                                                                 : STR("");
	explaining->glue = glue;
	if (status == CLI_FINE)
		status = tell(explaining);
	glue_free(glue);
	buf_free(&kept);
	return status;
}
