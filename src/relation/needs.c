/* What a create requires, and at which sites: to be brought there before it runs (`with_requirements(…)`, docs/requirements.md).
 *
 * As in requirement.c each copy takes it from its own site, unless the scope says where that service is: then it is shared, and nothing is
 * brought. What is made at one site needs it there; what lies at its prime (`indivisible`), there. Where one of several sites is chosen when the request runs,
 * nobody knows at which: nothing is brought.
 */
#include "relation/relation_int.h"

struct needing {
	const struct relation_question *question;
	const struct relation_needs *needs;
	uint32_t sites[LIMIT_SCOPE_SITES];
	uint32_t sites_count;
};

static void find_sites(struct needing *needing)
{
	const struct scope_step *root = needing->question->plan->root;
	bool first =
		root->op == SCOPE_SPAN_OF && glue_type_cross(needing->question->match->type)->strategy == GLUE_INDIVISIBLE;
	if (root->op == SCOPE_ONE)
		needing->sites[needing->sites_count++] = root->site_index;
	bool several = root->op == SCOPE_ALL_OF || root->op == SCOPE_SPAN_OF;
	for (uint32_t i = 0; several && i < root->of_count && i < LIMIT_SCOPE_SITES; i++)
		if (root->of[i]->op == SCOPE_ONE && (i == 0 || !first))
			needing->sites[needing->sites_count++] = root->of[i]->site_index;
}

/* Somewhere else than where the request is. */
static bool is_elsewhere(const struct needing *needing)
{
	for (uint32_t i = 0; i < needing->sites_count; i++)
		if (needing->sites[i] != needing->question->at)
			return true;
	return false;
}

static bool is_shared(const struct relation_question *question, struct str service)
{
	for (uint32_t i = 0; i < scope_entries_count(question->scope); i++)
		if (str_equal(scope_entry_service(question->scope, i), service) &&
		    !str_equal(service, question->match->service_name))
			return true;
	return false;
}

static void take_mention(void *context, const struct glue_mention *mention)
{
	struct needing *needing = context;
	if (mention->relation != GLUE_REQUIREMENT || !mention->type || mention->value.length == 0)
		return;
	struct str service = glue_type_service(mention->type);
	if (str_equal(service, STR("*")) || glue_type_identity(mention->type) == GLUE_CHOSEN ||
	    glue_type_only_collection(mention->type).length == 0 || is_shared(needing->question, service))
		return;
	struct relation_need need = {mention->type, mention->value, needing->sites, needing->sites_count};
	needing->needs->each(needing->needs->context, &need);
}

enum relation_verdict relation_find_needs(const struct relation_question *question, const struct relation_needs *needs)
{
	struct needing needing = {.question = question, .needs = needs};
	if (!question->plan->with_requirements || !relation_requires_something(question))
		return RELATION_FINE;
	find_sites(&needing);
	if (!is_elsewhere(&needing))
		return RELATION_FINE;
	if (question->body == NULL)
		return RELATION_ASK_BODY;
	glue_mentions(question->match->operation, *question->body, take_mention, &needing, NULL);
	return RELATION_FINE;
}
