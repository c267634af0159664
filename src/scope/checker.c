/* What has a meaning, whatever sites there are.
 *
 * Each location has a shape: one site, a choice of which one will serve, copies at several sites, or a span of one
 * resource over several. The operators and functions accept some shapes and give another:
 *
 *     site                          one
 *     a ; b    a | b    !a          choice      of anything
 *     around(site, radius)          choice
 *     a & b                         copies      of sites and choices; of spans with a warning
 *     all() nearest(n) tagged(…)    copies
 *     a % b                         span        of sites only: a resource lies on given sites
 *     fallback(a) either(a)         choice      of copies, which they turn into `;` or `|`
 *     eventual(a) weak(a)           copies      of copies: consistency is a property of copies
 *     strong(a)                     copies      of copies at given sites: agreement needs to know its members
 *     with_requirements(a)          that of a   of anything; it has to be the whole location of an entry, since what is required is
 *                                               brought to wherever the whole runs
 *
 * A site may not stand twice under one `&` or `%`: a site keeps one copy, or one part, of a resource.
 */
#include "base/check.h"
#include "scope/scope_int.h"

enum shape { SHAPE_ONE, SHAPE_CHOICE, SHAPE_COPIES, SHAPE_SPAN };

static const char *const shape_phrases[] = {
	[SHAPE_ONE] = "one site",
	[SHAPE_CHOICE] = "a choice of one site",
	[SHAPE_COPIES] = "several copies",
	[SHAPE_SPAN] = "one resource over several sites",
};

struct meaning {
	enum shape shape;
	bool marked;  /* its consistency was said */
	bool chooses; /* copies: which sites they are at is left open somewhere */
	bool spans;   /* copies: some are spans */
	enum scope_function consistency;
};

struct checker {
	struct scope *scope;
	struct scope_diag *diag;
	struct scope_warnings warnings;
	uint32_t owner[LIMIT_SCOPE_SITES]; /* scratch of check_distinct() */
};

static int check_node(struct checker *checker, const struct scope_node *node, struct meaning *meaning);

/* ---- No site twice ---------------------------------------------------------------------------------------------- */

static void find_twins(struct scope *scope)
{
	for (uint32_t i = 0; i < scope->sites_count; i++) {
		uint32_t twin = 0;
		while (!str_equal(scope->sites[twin]->name, scope->sites[i]->name))
			twin++;
		scope->sites[i]->twin = twin;
	}
}

/* A site inside operand number `operand` (from 1) of `group`: no other operand may hold it too. Arguments of around() and
 * `!` are places to measure from or to avoid, not places where something is put. */
static int check_member(struct checker *checker, const struct scope_node *node, const struct scope_node *group,
                        uint32_t operand)
{
	if (node->kind == SCOPE_NODE_SITE) {
		uint32_t owner = checker->owner[node->twin];
		checker->owner[node->twin] = operand;
		if (owner == 0 || owner == operand)
			return 0;
		const char *what = group->kind == SCOPE_NODE_ALL ? "copy" : "part";
		int code = scope_refuse(checker->diag, SCOPE_FAULT_SAME_SITE_TWICE, scope_node_place(node),
		                        TEXT_NAME_FMT " stands twice under one `%s`", TEXT_NAME(node->name),
		                        group->kind == SCOPE_NODE_ALL ? "&" : "%");
		return scope_hint(checker->diag, code, "a site keeps one %s of a resource; name it once", what);
	}
	if (node->kind == SCOPE_NODE_NOT || (node->kind == SCOPE_NODE_CALL && node->function == SCOPE_FN_AROUND))
		return 0;
	for (const struct scope_node *child = node->first; child; child = child->next) {
		int code = check_member(checker, child, group, operand);
		if (code)
			return code;
	}
	return 0;
}

static int check_distinct(struct checker *checker, const struct scope_node *group)
{
	memset(checker->owner, 0, checker->scope->sites_count * sizeof(checker->owner[0]));
	uint32_t operand = 1;
	for (const struct scope_node *child = group->first; child; child = child->next) {
		int code = check_member(checker, child, group, operand++);
		if (code)
			return code;
	}
	return 0;
}

/* ---- Operators -------------------------------------------------------------------------------------------------- */

static int check_choice(struct checker *checker, const struct scope_node *node, struct meaning *meaning)
{
	memset(checker->owner, 0, checker->scope->sites_count * sizeof(checker->owner[0]));
	for (const struct scope_node *child = node->first; child; child = child->next) {
		if (child->kind != SCOPE_NODE_SITE)
			continue;
		if (checker->owner[child->twin]++ == 1)
			scope_warn(&checker->warnings, TEXT_NAME_FMT " stands twice in one `%s`; it is tried once",
			           TEXT_NAME(child->name), node->kind == SCOPE_NODE_ANY ? "|" : ";");
	}
	for (const struct scope_node *child = node->first; child; child = child->next) {
		struct meaning ignored;
		int code = check_node(checker, child, &ignored);
		if (code)
			return code;
	}
	*meaning = (struct meaning){.shape = SHAPE_CHOICE};
	return 0;
}

static int refuse_marked_operand(struct checker *checker, const struct scope_node *operand)
{
	struct str name = scope_functions[operand->function].name;
	int code =
		scope_refuse(checker->diag, SCOPE_FAULT_MIXED_CONSISTENCY, scope_node_place(operand),
	                 "the copies of one resource have one consistency, but only some of them are %.*s", STR_FMT(name));
	return scope_hint(checker->diag, code, "put %.*s(…) around all of them: `%.*s(Site1 & Site2 & Site3)`",
	                  STR_FMT(name), STR_FMT(name));
}

static int check_copies(struct checker *checker, const struct scope_node *node, struct meaning *meaning)
{
	*meaning = (struct meaning){.shape = SHAPE_COPIES};
	for (const struct scope_node *child = node->first; child; child = child->next) {
		struct meaning operand;
		int code = check_node(checker, child, &operand);
		if (code)
			return code;
		if (operand.marked)
			return refuse_marked_operand(checker, child);
		meaning->chooses |= operand.shape == SHAPE_CHOICE || operand.chooses;
		meaning->spans |= operand.shape == SHAPE_SPAN || operand.spans;
		if (operand.shape == SHAPE_SPAN)
			scope_warn(&checker->warnings,
			           "`%%` inside `&`: a copy that itself spans sites has a meaning only for types of "
			           "resources whose description allows it");
	}
	return check_distinct(checker, node);
}

static int check_span(struct checker *checker, const struct scope_node *node, struct meaning *meaning)
{
	*meaning = (struct meaning){.shape = SHAPE_SPAN};
	for (const struct scope_node *child = node->first; child; child = child->next) {
		struct meaning operand;
		int code = check_node(checker, child, &operand);
		if (code)
			return code;
		if (operand.shape == SHAPE_ONE)
			continue;
		code = scope_refuse(checker->diag, SCOPE_FAULT_NO_MEANING, scope_node_place(child),
		                    "`%%` lays one resource over given sites, but this is %s", shape_phrases[operand.shape]);
		return scope_hint(checker->diag, code, "name the sites, as in `Site1 %% Site2 %% Site3`");
	}
	return check_distinct(checker, node);
}

/* ---- Functions -------------------------------------------------------------------------------------------------- */

/* fallback(x) and either(x): x has to be copies, to be turned into a choice. */
static int check_turned(struct checker *checker, const struct scope_node *call, struct meaning *meaning)
{
	struct meaning argument;
	int code = check_node(checker, call->first, &argument);
	if (code)
		return code;
	*meaning = (struct meaning){.shape = SHAPE_CHOICE};
	if (argument.shape == SHAPE_ONE || (argument.shape == SHAPE_COPIES && !argument.marked))
		return 0;
	struct str name = scope_functions[call->function].name;
	const char *turned = call->function == SCOPE_FN_FALLBACK ? ";" : "|";
	code = scope_refuse(checker->diag, SCOPE_FAULT_NO_MEANING, scope_node_place(call->first),
	                    "%.*s() turns `&` into `%s`, but this is %s%s", STR_FMT(name), turned,
	                    shape_phrases[argument.shape], argument.marked ? " with a consistency" : "");
	return scope_hint(checker->diag, code, "as in `%s`", scope_functions[call->function].example);
}

static int refuse_consistency(struct checker *checker, const struct scope_node *call, enum shape shape)
{
	struct str name = scope_functions[call->function].name;
	int code =
		scope_refuse(checker->diag, SCOPE_FAULT_NO_MEANING, scope_node_place(call->first),
	                 "%.*s() says how several copies agree, but this is %s", STR_FMT(name), shape_phrases[shape]);
	return scope_hint(checker->diag, code, "as in `%s`", scope_functions[call->function].example);
}

static int check_consistency(struct checker *checker, const struct scope_node *call, struct meaning *meaning)
{
	struct meaning argument;
	struct str name = scope_functions[call->function].name;
	int code = check_node(checker, call->first, &argument);
	if (code)
		return code;
	if (argument.shape == SHAPE_CHOICE || argument.shape == SHAPE_SPAN)
		return refuse_consistency(checker, call, argument.shape);
	if (argument.marked && argument.consistency != call->function) {
		struct str inner = scope_functions[argument.consistency].name;
		code = scope_refuse(checker->diag, SCOPE_FAULT_MIXED_CONSISTENCY, scope_node_place(call->first),
		                    "%.*s() inside %.*s(): a resource has one consistency", STR_FMT(inner), STR_FMT(name));
		return scope_hint(checker->diag, code, "keep one of the two");
	}
	if (call->function == SCOPE_FN_STRONG && (argument.chooses || argument.spans)) {
		code = scope_refuse(checker->diag, SCOPE_FAULT_NO_MEANING, scope_node_place(call->first),
		                    "strong() needs to know at which sites the copies are, but one of them is %s",
		                    shape_phrases[argument.chooses ? SHAPE_CHOICE : SHAPE_SPAN]);
		return scope_hint(checker->diag, code, "name the sites, as in `strong(Site1 & Site2 & Site3)`");
	}
	if (argument.shape == SHAPE_ONE)
		scope_warn(&checker->warnings, "%.*s() around one site: there is no other copy to agree with", STR_FMT(name));
	*meaning = argument;
	meaning->shape = SHAPE_COPIES;
	meaning->marked = true;
	meaning->consistency = call->function;
	return 0;
}

/* The whole location is unwrapped before (check_entry()). */
static int refuse_inside(struct checker *checker, const struct scope_node *call)
{
	int code = scope_refuse(checker->diag, SCOPE_FAULT_NO_MEANING, scope_node_place(call),
	                        "with_requirements() is for a whole location, but here it is a part of one");
	return scope_hint(checker->diag, code, "put it around all of it: `with_requirements(Site1 & Site2)`");
}

static int check_call(struct checker *checker, const struct scope_node *call, struct meaning *meaning)
{
	switch (call->function) {
	case SCOPE_FN_WITH_REQUIREMENTS: return refuse_inside(checker, call);
	case SCOPE_FN_FALLBACK:
	case SCOPE_FN_EITHER: return check_turned(checker, call, meaning);
	case SCOPE_FN_STRONG:
	case SCOPE_FN_EVENTUAL:
	case SCOPE_FN_WEAK: return check_consistency(checker, call, meaning);
	case SCOPE_FN_AROUND: *meaning = (struct meaning){.shape = SHAPE_CHOICE}; return 0;
	default: *meaning = (struct meaning){.shape = SHAPE_COPIES}; return 0;
	}
}

static int check_not(struct checker *checker, const struct scope_node *node, struct meaning *meaning)
{
	int code = check_node(checker, node->first, meaning);
	*meaning = (struct meaning){.shape = SHAPE_CHOICE};
	return code;
}

static int check_node(struct checker *checker, const struct scope_node *node, struct meaning *meaning)
{
	switch (node->kind) {
	case SCOPE_NODE_SITE: *meaning = (struct meaning){.shape = SHAPE_ONE}; return 0;
	case SCOPE_NODE_OTHERWISE:
	case SCOPE_NODE_ANY: return check_choice(checker, node, meaning);
	case SCOPE_NODE_ALL: return check_copies(checker, node, meaning);
	case SCOPE_NODE_SPAN: return check_span(checker, node, meaning);
	case SCOPE_NODE_NOT: return check_not(checker, node, meaning);
	case SCOPE_NODE_CALL: return check_call(checker, node, meaning);
	default: UNREACHABLE("an argument where a location should be");
	}
}

static int check_entry(struct checker *checker, const struct scope_node *location)
{
	struct meaning meaning;
	const struct scope_node *inner = scope_unwrap(location);
	int code = check_node(checker, inner, &meaning);
	if (code == 0 && inner != location && meaning.shape == SHAPE_CHOICE)
		scope_warn(&checker->warnings,
		           "with_requirements() around a choice of one site brings nothing along: which site it is "
		           "is known when the request runs there");
	return code;
}

int scope_check(struct arena *arena, struct scope *scope, struct scope_diag *diag)
{
	if (scope->checked)
		return 0;
	struct checker checker = {.scope = scope, .diag = diag, .warnings = {.arena = arena}};
	find_twins(scope);
	for (uint32_t i = 0; i < scope->entries_count; i++) {
		int code = check_entry(&checker, scope->entries[i].location);
		if (code)
			return code;
	}
	scope->warnings = checker.warnings.list;
	scope->warnings_count = checker.warnings.count;
	scope->checked = true;
	return 0;
}

uint32_t scope_warnings_count(const struct scope *scope)
{
	return scope->warnings_count;
}

struct str scope_warning(const struct scope *scope, uint32_t index)
{
	CHECK(index < scope->warnings_count);
	return scope->warnings[index];
}
