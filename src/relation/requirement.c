/* What a create requires has to be at each site at which it is to run, or the scope shares it.
 *
 * `POST /servers {"image": "42"}` with `compute: Site1 & Site2`: each copy takes the image from where the scope says, as seen from its
 * site; without a word of the scope, from its own. What is known of the image says whether it can be there:
 *   it is replicated         at its members, and nowhere else; when it was deleted, nowhere
 *   it is not                a service made its id, so it is at one site; two copies that take it from two sites cannot both have it
 * What users name themselves may be anywhere. Nothing is asked of any service: what is not known is not refused.
 */
#include "relation/relation_int.h"

#include "base/text.h"

struct requirement {
	const struct glue_type *type;
	struct str id;
};

struct check {
	struct arena *arena;
	const struct relation_question *question;
	const struct relation_whereabouts *whereabouts;
	struct relation_refusal *refusal;
	bool refused;
	/* of the one that is looked at */
	uint32_t single; /* where it is taken from; SCOPE_NO_INDEX: nowhere yet */
};

static struct str name_of(const struct check *check, uint32_t site)
{
	const struct scope_view *view = check->question->view;
	return view->site(view->context, site).name;
}

static struct str copy(const struct check *check, struct str text)
{
	return str_make(arena_copy(check->arena, text.at, text.length), text.length);
}

static void refuse_as(struct check *check, const struct requirement *requirement, uint32_t at)
{
	struct relation_refusal *refusal = check->refusal;
	refusal->site = copy(check, name_of(check, at));
	refusal->service = copy(check, glue_type_service(requirement->type));
	refusal->type = glue_type_name(requirement->type);
	check->refused = true;
}

static void refuse_gone(struct check *check, const struct requirement *requirement, uint32_t at)
{
	struct buf text = {0};
	relation_put_operation(&text, check->question->match);
	buf_printf(&text, " at %.*s requires %.*s " TEXT_NAME_FMT ", which was deleted", STR_FMT(name_of(check, at)),
	           STR_FMT(glue_type_name(requirement->type)), TEXT_NAME(requirement->id));
	relation_keep(check->refusal->message, &text);
	buf_put(&text, STR("name another one"));
	relation_keep(check->refusal->hint, &text);
	buf_free(&text);
	refuse_as(check, requirement, at);
}

/* `at` is where it runs, `from` where it would take it from, `other` where somebody else does. */
static void refuse(struct check *check, const struct requirement *requirement, uint32_t at, uint32_t from,
                   uint32_t other)
{
	struct relation_refusal *refusal = check->refusal;
	struct str type = glue_type_name(requirement->type), service = glue_type_service(requirement->type);
	struct str here = name_of(check, at), there = name_of(check, from);
	bool single = other != SCOPE_NO_INDEX;
	struct str keeper = single ? name_of(check, other) : STR("SITE");
	struct buf text = {0};
	relation_put_operation(&text, check->question->match);
	buf_printf(&text, " at %.*s requires %.*s " TEXT_NAME_FMT " at %.*s", STR_FMT(here), STR_FMT(type),
	           TEXT_NAME(requirement->id), STR_FMT(there));
	if (single)
		buf_printf(&text, ", and at %.*s as well, but it is not replicated: it is at one of them at most",
		           STR_FMT(keeper));
	else
		buf_put(&text, STR(", where it is not"));
	relation_keep(refusal->message, &text);
	if (single)
		buf_printf(&text, "make it with `%.*s: %.*s & %.*s` first", STR_FMT(service), STR_FMT(keeper), STR_FMT(there));
	else
		buf_printf(&text, "replicate it there first, `cheops replicant extend %.*s %.*s`",
		           STR_FMT(text_shown(requirement->id)), STR_FMT(there));
	buf_printf(&text,
	           ", or let it be brought along, by `with_requirements(…)` around the location, or share it: let the "
	           "scope say where %.*s is, as in `%.*s: %.*s`",
	           STR_FMT(service), STR_FMT(service), STR_FMT(keeper));
	relation_keep(refusal->hint, &text);
	buf_free(&text);
	refuse_as(check, requirement, at);
}

/* The site that a copy at `site` takes it from; SCOPE_NO_INDEX: one of several, or it cannot be said. */
static uint32_t taken_from(const struct check *check, struct str service, uint32_t site)
{
	const struct relation_question *question = check->question;
	struct scope_request request = {.service = service, .at = site, .inner = true};
	const struct scope_plan *plan;
	struct scope_diag diag;
	if (str_equal(service, question->match->service_name))
		return site;
	if (scope_evaluate(check->arena, question->scope, &request, question->view, &plan, &diag) != 0)
		return SCOPE_NO_INDEX;
	return plan->root->op == SCOPE_ONE ? plan->root->site_index : SCOPE_NO_INDEX;
}

static void check_at(struct check *check, const struct requirement *requirement, uint32_t site)
{
	uint32_t from = taken_from(check, glue_type_service(requirement->type), site);
	if (from == SCOPE_NO_INDEX)
		return;
	switch (check->whereabouts->find(check->whereabouts->context, requirement->type, requirement->id, from)) {
	case RELATION_GONE: refuse_gone(check, requirement, site); break;
	case RELATION_ABSENT: refuse(check, requirement, site, from, SCOPE_NO_INDEX); break;
	case RELATION_SINGLE:
		if (check->single != SCOPE_NO_INDEX && check->single != from)
			refuse(check, requirement, site, from, check->single);
		check->single = from;
		break;
	case RELATION_UNKNOWN:
	case RELATION_THERE: break;
	}
}

static void check_mention(void *context, const struct glue_mention *mention)
{
	struct check *check = context;
	const struct scope_step *root = check->question->plan->root;
	struct requirement requirement = {mention->type, mention->value};
	bool counts = mention->relation == GLUE_REQUIREMENT && mention->type != NULL && mention->value.length > 0 &&
	              !str_equal(glue_type_service(mention->type), STR("*"));
	check->single = SCOPE_NO_INDEX;
	for (uint32_t i = 0; counts && !check->refused && i < root->of_count; i++) {
		if (root->of[i]->op == SCOPE_ONE)
			check_at(check, &requirement, root->of[i]->site_index);
	}
}

bool relation_requires_something(const struct relation_question *question)
{
	const struct glue_operation *operation = question->match->operation;
	if (!question->has_body || operation == NULL || question->match->needs_body ||
	    glue_operation_effect(operation) != GLUE_CREATE)
		return false;
	for (uint32_t i = 0; i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		if (relation->where == GLUE_IN_BODY && relation->kind == GLUE_REQUIREMENT)
			return true;
	}
	return false;
}

enum relation_verdict relation_check_required(struct arena *arena, const struct relation_question *question,
                                              const struct relation_whereabouts *whereabouts,
                                              struct relation_refusal *refusal)
{
	const struct glue_operation *operation = question->match->operation;
	enum scope_step_op op = question->plan->root->op;
	struct check check = {
		.arena = arena, .question = question, .whereabouts = whereabouts, .refusal = refusal, .single = SCOPE_NO_INDEX};
	if ((op != SCOPE_ALL_OF && op != SCOPE_SPAN_OF) || !relation_requires_something(question))
		return RELATION_FINE;
	if (question->body == NULL)
		return RELATION_ASK_BODY;
	glue_mentions(operation, *question->body, check_mention, &check, NULL);
	return check.refused ? RELATION_REFUSED : RELATION_FINE;
}
