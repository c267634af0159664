/* The ownership checker: a small type checker over (description, scope, request).
 *
 * An operation of a type of service A runs at each site of the plan of A, whichever way the plan has them. At each such site l it
 * may use types of another service B; if one of these belongs to its site, the scope has to give B at l:
 *
 *     B is not in the scope           it is used at l: fine
 *     a site                          fine if it is l
 *     a & b, a % b                    fine if one of them is: there is a copy, or a part, at l
 *     a ; b, a | b, and choices       fine if all of them are: any of them may be taken
 *
 * Choices (`around`, `!`, `nearest`...) are evaluated as seen from l, because that is where the service will make its call. What is
 * used: references in path, query and body that the request really has, and `uses` of the description.
 *
 * A call that a service at l makes is itself the use: its plan is what B is at.
 */
#include "relation/relation_int.h"

/* ---- Places ------------------------------------------------------------------------------------------------------ */

static bool gives(const struct scope_step *step, uint32_t site)
{
	if (step->op == SCOPE_ONE)
		return step->site_index == site;
	bool all = step->op == SCOPE_OTHERWISE || step->op == SCOPE_ANY_OF;
	for (uint32_t i = 0; i < step->of_count; i++) {
		if (gives(step->of[i], site) != all)
			return !all;
	}
	return all;
}

static bool has_entry(const struct scope *scope, struct str service)
{
	for (uint32_t i = 0; i < scope_entries_count(scope); i++) {
		if (str_equal(scope_entry_service(scope, i), service))
			return true;
	}
	return false;
}

/* ---- Telling ----------------------------------------------------------------------------------------------------- */

enum { SITES_TOLD = 4 };

struct telling {
	struct buf text;
	struct str service;
	uint32_t count;
	bool all;
};

static void tell_sites(struct telling *telling, const struct scope_step *step)
{
	for (uint32_t i = 0; step->op != SCOPE_ONE && i < step->of_count; i++)
		tell_sites(telling, step->of[i]);
	if (step->op != SCOPE_ONE || telling->count++ >= SITES_TOLD)
		return;
	if (telling->count > 1)
		buf_put(&telling->text, telling->all ? STR(" and ") : STR(" or "));
	buf_put(&telling->text, step->site);
	buf_put_char(&telling->text, '/');
	buf_put(&telling->text, telling->service);
}

/* ---- The check --------------------------------------------------------------------------------------------------- */

struct check {
	struct arena *arena;
	const struct relation_question *question;
	struct relation_refusal *refusal;
	const struct glue_operation *operation;
	const struct glue_type *failed; /* of a mention in the body that is not allowed */
};

static struct scope_site site_at(const struct check *check, uint32_t site)
{
	const struct scope_view *view = check->question->view;
	return view->site(view->context, site);
}

void relation_put_operation(struct buf *out, const struct glue_match *match)
{
	struct buf type = {0};
	glue_type_put(match, &type);
	const char *dot = memchr(type.at, '.', type.length);
	size_t skip = dot != NULL ? (size_t)(dot + 1 - type.at) : 0;
	buf_printf(out, "%.*s.%.*s", (int)(type.length - skip), type.at + skip,
	           STR_FMT(glue_operation_name(match->operation)));
	buf_free(&type);
}

/* It ends with a whole character. */
void relation_keep(char out[LIMIT_ERROR_TEXT_BYTES], struct buf *text)
{
	size_t length = text->length < LIMIT_ERROR_TEXT_BYTES ? text->length : LIMIT_ERROR_TEXT_BYTES - 1;
	while (length < text->length && length > 0 && ((unsigned char)text->at[length] & 0xc0) == 0x80)
		length--;
	memcpy(out, text->at, length);
	out[length] = '\0';
	buf_clear(text);
}

static void refuse(struct check *check, uint32_t site, const struct glue_type *type, struct str service,
                   const struct scope_plan *plan)
{
	const struct relation_question *question = check->question;
	struct relation_refusal *refusal = check->refusal;
	struct str here = site_at(check, site).name, type_name = glue_type_name(type);
	struct telling given = {.service = service,
	                        .all = plan->root->op == SCOPE_ALL_OF || plan->root->op == SCOPE_SPAN_OF};
	struct buf operation = {0}, caller = {0}, text = {0};
	relation_put_operation(&operation, question->match);
	tell_sites(&given, plan->root);
	if (given.count > SITES_TOLD)
		buf_printf(&given.text, " (and %u more)", given.count - SITES_TOLD);
	if (question->inner && question->caller.length > 0)
		buf_printf(&caller, ", called by %.*s", STR_FMT(question->caller));
	else if (question->inner)
		buf_put(&caller, STR(", called"));
	refusal->site = str_make(arena_copy(check->arena, here.at, here.length), here.length);
	refusal->service = str_make(arena_copy(check->arena, service.at, service.length), service.length);
	refusal->type = type_name;
	buf_printf(&text, "%s%s at %.*s%s expects %.*s/%.*s, but the scope gives %s", buf_c(&operation), buf_c(&caller),
	           STR_FMT(here), question->inner ? "," : "", STR_FMT(here), STR_FMT(service), buf_c(&given.text));
	relation_keep(refusal->message, &text);
	buf_printf(
		&text,
		"%.*s belongs to its site, and cannot be used from another one: let the scope name %.*s for %.*s, or leave "
		"%.*s out of it",
		STR_FMT(type_name), STR_FMT(here), STR_FMT(service), STR_FMT(service));
	relation_keep(refusal->hint, &text);
	buf_free(&text);
	buf_free(&given.text);
	buf_free(&operation);
	buf_free(&caller);
}

/* What the scope gives for a service, as seen from a site. NULL: it cannot be said; the call will be refused when it is made. */
static const struct scope_plan *plan_from(const struct check *check, struct str service, uint32_t site)
{
	const struct relation_question *question = check->question;
	struct scope_request request = {.service = service, .at = site, .inner = true};
	const struct scope_plan *plan;
	struct scope_diag diag;
	int code = scope_evaluate(check->arena, question->scope, &request, question->view, &plan, &diag);
	return code == 0 ? plan : NULL;
}

/* At every site where the operation may run. True: nothing is wrong. */
static bool check_step(struct check *check, const struct scope_step *step, const struct glue_type *type,
                       const struct scope_plan **given)
{
	for (uint32_t i = 0; step->op != SCOPE_ONE && i < step->of_count; i++) {
		if (!check_step(check, step->of[i], type, given))
			return false;
	}
	if (step->op != SCOPE_ONE)
		return true;
	struct str service = glue_type_service(type);
	/* Given sites are the same from everywhere. */
	if (*given == NULL || scope_needs_view(check->question->scope))
		*given = plan_from(check, service, step->site_index);
	if (*given == NULL || gives((*given)->root, step->site_index))
		return true;
	if (check->refusal != NULL)
		refuse(check, step->site_index, type, service, *given);
	return false;
}

/* May an operation of the question's service use that type? */
static bool check_use(struct check *check, const struct glue_type *type)
{
	const struct relation_question *question = check->question;
	const struct scope_plan *given = NULL;
	if (type == NULL || glue_type_owner(type) != GLUE_SITE)
		return true;
	struct str service = glue_type_service(type);
	/* What is of the same service is where the operation is; one that the scope does not name too. */
	if (str_equal(service, STR("*")) || str_equal(service, question->match->service_name) ||
	    !has_entry(question->scope, service))
		return true;
	return check_step(check, question->plan->root, type, &given);
}

/* ---- What the request has ---------------------------------------------------------------------------------------- */

static bool note_place(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)value;
	(void)quoted;
	struct check *check = context;
	if (place->kind == GLUE_PLACE_REFERENCE && check->failed == NULL && !check_use(check, place->type))
		check->failed = place->type;
	return false;
}

static void note_mention(void *context, const struct glue_mention *mention)
{
	struct check *check = context;
	if (check->failed == NULL && !check_use(check, mention->type))
		check->failed = mention->type;
}

static bool check_target(struct check *check)
{
	const struct relation_question *question = check->question;
	struct glue_replacer replacer = {check, note_place};
	struct buf out = {0};
	glue_splice_target(question->match, question->request, &replacer, &out);
	buf_free(&out);
	return check->failed == NULL;
}

/* Would the operation be refused if its body had all that it may have? Looks without telling. */
static bool may_fail(struct check *check, const struct glue_operation *operation)
{
	struct relation_refusal *refusal = check->refusal;
	bool fine = true;
	check->refusal = NULL;
	for (uint32_t i = 0; fine && i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		bool counts = relation->where == GLUE_IN_BODY || (relation->where == GLUE_NOWHERE && check->operation == NULL);
		fine = !counts || check_use(check, relation->type);
	}
	check->refusal = refusal;
	return !fine;
}

static enum relation_verdict check_body(struct check *check)
{
	const struct relation_question *question = check->question;
	if (!question->has_body || !may_fail(check, check->operation))
		return RELATION_FINE;
	if (question->body == NULL)
		return RELATION_ASK_BODY;
	glue_mentions(check->operation, *question->body, note_mention, check, NULL);
	return check->failed == NULL ? RELATION_FINE : RELATION_REFUSED;
}

/* The body says what it is: has any of those that it may be something to say? */
static enum relation_verdict check_any(struct check *check)
{
	const struct glue_type *type = check->question->match->type;
	for (uint32_t i = 0; check->question->has_body && i < glue_operations_count(type); i++) {
		if (may_fail(check, glue_operation_at(type, i)))
			return RELATION_ASK_BODY;
	}
	return RELATION_FINE;
}

static bool check_uses(struct check *check)
{
	for (uint32_t i = 0; i < glue_relations_count(check->operation); i++) {
		const struct glue_relation *relation = glue_relation_at(check->operation, i);
		if (relation->where == GLUE_NOWHERE && !check_use(check, relation->type))
			return false;
	}
	return true;
}

/* A call of a service at `at` is a use of what it is sent to. */
static bool check_call(struct check *check)
{
	const struct relation_question *question = check->question;
	const struct glue_type *type = question->match->type;
	if (!question->inner || glue_type_owner(type) != GLUE_SITE || gives(question->plan->root, question->at))
		return true;
	refuse(check, question->at, type, question->match->service_name, question->plan);
	return false;
}

enum relation_verdict relation_check_owner(struct arena *arena, const struct relation_question *question,
                                           struct relation_refusal *refusal)
{
	struct glue_match match = *question->match;
	struct relation_question asked = *question;
	struct check check = {.arena = arena, .question = &asked, .refusal = refusal};
	asked.match = &match;
	if (match.needs_body && question->body != NULL && !glue_match_body(question->glue, *question->body, &match, NULL))
		match.operation = NULL;
	if (match.needs_body && question->body == NULL && check_any(&check) != RELATION_FINE)
		return RELATION_ASK_BODY;
	check.operation = match.operation;
	if (check.operation == NULL)
		return RELATION_FINE;
	if (!check_call(&check) || !check_uses(&check) || !check_target(&check))
		return RELATION_REFUSED;
	return check_body(&check);
}
