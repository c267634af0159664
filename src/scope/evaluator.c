/* A checked scope and a view give a plan (DESIGN 4).
 *
 * 1. Every name of the scope is looked up, so that a typing error in one entry shows at once and not in the middle of a
 *    workflow.
 * 2. The location of the service is turned into steps from the inside out. Functions choose among the sites of the view
 *    that have the service, in a compatible version (choice.c). Named sites are never left out: one that lacks the
 *    service is kept with a warning, one with another major version is refused.
 * 3. `|` is brought into order: the nearest first, and sites that gossip has lost last. `;` keeps the order that its user
 *    wrote, whatever gossip says of a site: whether the path to it works is found out where the plan is carried out. A site
 *    that a function adds to a group that already has it counts once.
 */
#include "scope/evaluator.h"

#include "base/check.h"

/* ---- Names ------------------------------------------------------------------------------------------------------ */

static int refuse_unknown_site(struct scope_eval *eval, const struct scope_node *node)
{
	const struct scope_view *view = eval->view;
	struct suggest suggest;
	suggest_start(&suggest, node->name);
	for (uint32_t i = 0; i < view->sites_count; i++)
		suggest_offer(&suggest, view->site(view->context, i).name);
	int code = scope_refuse(eval->diag, SCOPE_FAULT_UNKNOWN_SITE, scope_node_place(node), "unknown site " TEXT_NAME_FMT,
	                        TEXT_NAME(node->name));
	if (suggest.best.length)
		return scope_hint(eval->diag, code, "did you mean " TEXT_NAME_FMT "?", TEXT_NAME(suggest.best));
	if (view->sites_count == 0)
		return scope_hint(eval->diag, code, "no site is known here");
	struct str first = view->site(view->context, 0).name;
	struct str last = view->site(view->context, view->sites_count - 1).name;
	if (view->sites_count == 1)
		return scope_hint(eval->diag, code, "the only known site is " TEXT_NAME_FMT, TEXT_NAME(first));
	return scope_hint(eval->diag, code, "%u sites are known, from " TEXT_NAME_FMT " to " TEXT_NAME_FMT,
	                  view->sites_count, TEXT_NAME(first), TEXT_NAME(last));
}

static int find_sites(struct scope_eval *eval)
{
	const struct scope *scope = eval->scope;
	eval->resolved = arena_alloc(eval->arena, scope->sites_count * sizeof(uint32_t), _Alignof(uint32_t));
	for (uint32_t i = 0; i < scope->sites_count; i++) {
		const struct scope_node *node = scope->sites[i];
		if (node->twin != i) {
			eval->resolved[i] = eval->resolved[node->twin];
			continue;
		}
		eval->resolved[i] = eval->view->find_site(eval->view->context, node->name);
		if (eval->resolved[i] == SCOPE_NO_INDEX)
			return refuse_unknown_site(eval, node);
	}
	return 0;
}

/* "compute, image, network", as far as there is room for it. */
static const char *list_services(struct scope_eval *eval)
{
	const struct scope_view *view = eval->view;
	char *names = arena_alloc(eval->arena, LIMIT_ERROR_TEXT_BYTES, 1);
	size_t length = 0;
	for (uint32_t i = 0; i < view->services_count; i++) {
		struct str name = text_shown(view->service(view->context, i));
		if (length + strlen(", ") + name.length + sizeof(", …") > LIMIT_ERROR_TEXT_BYTES) {
			memcpy(names + length, ", …", sizeof(", …"));
			return names;
		}
		if (i > 0) {
			memcpy(names + length, ", ", 2);
			length += 2;
		}
		memcpy(names + length, name.at, name.length);
		length += name.length;
	}
	names[length] = '\0';
	return names;
}

static int refuse_unknown_service(struct scope_eval *eval, const struct scope_entry *entry)
{
	const struct scope_view *view = eval->view;
	struct suggest suggest;
	suggest_start(&suggest, entry->service);
	for (uint32_t i = 0; i < view->services_count; i++)
		suggest_offer(&suggest, view->service(view->context, i));
	int code = scope_refuse(eval->diag, SCOPE_FAULT_UNKNOWN_SERVICE, (struct scope_place){entry->offset, entry->length},
	                        "unknown service " TEXT_NAME_FMT, TEXT_NAME(entry->service));
	if (suggest.best.length)
		return scope_hint(eval->diag, code, "did you mean " TEXT_NAME_FMT "?", TEXT_NAME(suggest.best));
	return scope_hint(eval->diag, code, "known services: %s", list_services(eval));
}

static int find_services(struct scope_eval *eval)
{
	const struct scope_view *view = eval->view;
	eval->service = SCOPE_NO_INDEX;
	if (view->services_count == 0)
		return 0;
	for (uint32_t i = 0; i < eval->scope->entries_count; i++) {
		const struct scope_entry *entry = &eval->scope->entries[i];
		if (entry->service.length && view->find_service(view->context, entry->service) == SCOPE_NO_INDEX)
			return refuse_unknown_service(eval, entry);
	}
	eval->service = view->find_service(view->context, eval->request->service);
	if (eval->service != SCOPE_NO_INDEX &&
	    !view->offers(view->context, eval->service, eval->request->at, &eval->version))
		eval->version = STR("");
	return 0;
}

/* ---- Versions --------------------------------------------------------------------------------------------------- */

/* "v2.1" -> "2": what is before the first dot, less a leading v. */
static struct str major_of(struct str version)
{
	if (version.length > 1 && (version.at[0] == 'v' || version.at[0] == 'V'))
		version = str_make(version.at + 1, version.length - 1);
	const char *dot = version.length ? memchr(version.at, '.', version.length) : NULL;
	return dot ? str_make(version.at, (size_t)(dot - version.at)) : version;
}

static bool same_major(struct str a, struct str b)
{
	return a.length == 0 || b.length == 0 || str_equal(major_of(a), major_of(b));
}

bool scope_eval_usable(struct scope_eval *eval, uint32_t site)
{
	struct str version;
	if (eval->service == SCOPE_NO_INDEX)
		return true;
	return eval->view->offers(eval->view->context, eval->service, site, &version) && same_major(version, eval->version);
}

static int check_named(struct scope_eval *eval, const struct scope_node *node, uint32_t site)
{
	struct str version;
	if (eval->service == SCOPE_NO_INDEX || eval->excluding)
		return 0;
	if (!eval->view->offers(eval->view->context, eval->service, site, &version)) {
		scope_warn(&eval->warnings, TEXT_NAME_FMT " has no service " TEXT_NAME_FMT " at present", TEXT_NAME(node->name),
		           TEXT_NAME(eval->request->service));
		return 0;
	}
	if (eval->version.length == 0)
		eval->version = version;
	if (same_major(version, eval->version))
		return 0;
	int code = scope_refuse(eval->diag, SCOPE_FAULT_VERSION_MISMATCH, scope_node_place(node),
	                        TEXT_NAME_FMT " has version " TEXT_NAME_FMT " of the service " TEXT_NAME_FMT
	                                      ", which does not work together with " TEXT_NAME_FMT,
	                        TEXT_NAME(node->name), TEXT_NAME(version), TEXT_NAME(eval->request->service),
	                        TEXT_NAME(eval->version));
	return scope_hint(eval->diag, code, "sites collaborate on a service only where its major version is the same");
}

/* The site where the request is has no version of the service to go by: then the first named one with the service gives
 * it, wherever in the location it stands, so that functions choose what goes with it. */
static void find_version(struct scope_eval *eval, const struct scope_node *node)
{
	if (eval->version.length || node->kind == SCOPE_NODE_NOT)
		return;
	struct str version;
	if (node->kind == SCOPE_NODE_SITE &&
	    eval->view->offers(eval->view->context, eval->service, eval->resolved[node->ordinal], &version))
		eval->version = version;
	for (const struct scope_node *child = node->first; child; child = child->next)
		find_version(eval, child);
}

/* ---- Steps ------------------------------------------------------------------------------------------------------ */

struct scope_step *scope_eval_one(struct scope_eval *eval, uint32_t site)
{
	const struct scope_view *view = eval->view;
	struct scope_site known = view->site(view->context, site);
	struct scope_step *step = arena_new(eval->arena, struct scope_step);
	step->op = SCOPE_ONE;
	step->site = str_make(arena_copy(eval->arena, known.name.at, known.name.length), known.name.length);
	step->site_index = site;
	bool here = site == eval->request->at;
	step->state = here ? SCOPE_PRESENT : known.state;
	step->since_ms = here ? 0 : known.since_ms;
	step->latency_us = here ? 0 : view->rtt_us(view->context, eval->request->at, site);
	return step;
}

void scope_steps_push(struct arena *arena, struct scope_steps *steps, struct scope_step *step)
{
	if (steps->count == steps->capacity) {
		uint32_t capacity = steps->capacity ? 2 * steps->capacity : 4;
		struct scope_step **list = arena_alloc(arena, capacity * sizeof(*list), _Alignof(struct scope_step *));
		if (steps->count)
			memcpy(list, steps->list, steps->count * sizeof(*list));
		steps->list = list;
		steps->capacity = capacity;
	}
	steps->list[steps->count++] = step;
}

/* Adds a step to a group of kind `op`. A group of the same kind gives its parts instead. */
static void push_part(struct scope_eval *eval, struct scope_steps *steps, enum scope_step_op op,
                      struct scope_step *part)
{
	if (part->op != op) {
		scope_steps_push(eval->arena, steps, part);
		return;
	}
	for (uint32_t i = 0; i < part->of_count; i++)
		scope_steps_push(eval->arena, steps, (struct scope_step *)part->of[i]);
}

/* Keeps the first of several steps at the same site. Returns the sites. */
static struct scope_set drop_repeated(struct scope_eval *eval, struct scope_steps *steps)
{
	struct scope_set seen = scope_set_new(eval);
	uint32_t kept = 0;
	for (uint32_t i = 0; i < steps->count; i++) {
		struct scope_step *step = steps->list[i];
		if (step->op != SCOPE_ONE || scope_set_add(&seen, step->site_index))
			steps->list[kept++] = step;
	}
	steps->count = kept;
	return seen;
}

/* ---- Order and cost --------------------------------------------------------------------------------------------- */

/* Unknown distances are farther than known ones. */
static bool farther(int64_t a, int64_t b)
{
	return (uint64_t)a > (uint64_t)b;
}

static bool goes_after(const struct scope_step *a, const struct scope_step *b)
{
	return a->state != b->state ? a->state > b->state : farther(a->latency_us, b->latency_us);
}

/* Insertion sort: stable, and quick where little is out of place, which is nearly always. */
static void order_parts(struct scope_steps *steps)
{
	for (uint32_t i = 1; i < steps->count; i++) {
		struct scope_step *step = steps->list[i];
		uint32_t at = i;
		for (; at > 0 && goes_after(steps->list[at - 1], step); at--)
			steps->list[at] = steps->list[at - 1];
		steps->list[at] = step;
	}
}

/* The k-th smallest (from 0) of the parts' latencies. Those of unknown latency, and those that are away, count as the
 * largest. */
static int64_t kth_latency(struct scope_eval *eval, const struct scope_steps *steps, uint32_t k)
{
	int64_t *sorted = arena_alloc(eval->arena, steps->count * sizeof(int64_t), _Alignof(int64_t));
	for (uint32_t i = 0; i < steps->count; i++) {
		uint32_t at = i;
		const struct scope_step *step = steps->list[i];
		int64_t latency = step->state == SCOPE_PRESENT ? step->latency_us : SCOPE_RTT_UNKNOWN;
		for (; at > 0 && farther(sorted[at - 1], latency); at--)
			sorted[at] = sorted[at - 1];
		sorted[at] = latency;
	}
	return sorted[k];
}

/* That of the first alternative that is there; of the first one if none is. */
static int64_t first_latency(const struct scope_steps *steps)
{
	for (uint32_t i = 0; i < steps->count; i++)
		if (steps->list[i]->state == SCOPE_PRESENT)
			return steps->list[i]->latency_us;
	return steps->list[0]->latency_us;
}

/* Round trips until the user has an answer (DESIGN 7): the first copy to answer, or a majority for `strong`; all parts of
 * a span; the first of the alternatives in order. */
static int64_t group_latency(struct scope_eval *eval, const struct scope_step *group, const struct scope_steps *steps)
{
	switch (group->op) {
	case SCOPE_OTHERWISE: return first_latency(steps);
	case SCOPE_SPAN_OF: return kth_latency(eval, steps, steps->count - 1);
	case SCOPE_ALL_OF: return kth_latency(eval, steps, group->consistency == SCOPE_STRONG ? steps->count / 2 : 0);
	default: return kth_latency(eval, steps, 0);
	}
}

/* What a group needs: a choice and copies can begin at their best part, strong copies need a majority, a span all. */
static enum scope_state group_state(const struct scope_step *group, const struct scope_steps *steps)
{
	uint32_t counts[SCOPE_ABSENT + 1] = {0}, needed = 1, reached = 0;
	for (uint32_t i = 0; i < steps->count; i++)
		counts[steps->list[i]->state]++;
	if (group->op == SCOPE_SPAN_OF)
		needed = steps->count;
	else if (group->op == SCOPE_ALL_OF && group->consistency == SCOPE_STRONG)
		needed = steps->count / 2 + 1;
	enum scope_state state = SCOPE_PRESENT;
	while ((reached += counts[state]) < needed)
		state++;
	return state;
}

struct scope_step *scope_eval_group(struct scope_eval *eval, enum scope_step_op op, enum scope_consistency consistency,
                                    struct scope_steps *steps)
{
	CHECK(steps->count > 0);
	if (op == SCOPE_ANY_OF)
		order_parts(steps);
	struct scope_step *group = arena_new(eval->arena, struct scope_step);
	group->op = op;
	group->consistency = consistency;
	group->site_index = SCOPE_NO_INDEX;
	group->of = (const struct scope_step *const *)steps->list;
	group->of_count = steps->count;
	group->state = group_state(group, steps);
	group->latency_us = group_latency(eval, group, steps);
	return group;
}

/* A group of one is that one. */
static struct scope_step *group_or_one(struct scope_eval *eval, enum scope_step_op op, struct scope_steps *steps)
{
	return steps->count == 1 ? steps->list[0] : scope_eval_group(eval, op, SCOPE_EVENTUAL, steps);
}

/* ---- Copies ----------------------------------------------------------------------------------------------------- */

/* A copy whose site is still to be chosen cannot go where another copy already is: `Site1 & around(Site1, 10ms)` means
 * Site1 and one of its neighbours. */
static int narrow_choice(struct scope_eval *eval, const struct scope_node *node, const struct scope_set *taken,
                         struct scope_step **choice_step)
{
	const struct scope_step *choice = *choice_step;
	struct scope_steps left = {0};
	for (uint32_t i = 0; i < choice->of_count; i++) {
		struct scope_step *part = (struct scope_step *)choice->of[i];
		if (part->op != SCOPE_ONE || !scope_set_has(taken, part->site_index))
			scope_steps_push(eval->arena, &left, part);
	}
	if (left.count == choice->of_count)
		return 0;
	if (left.count == 0) {
		int code = scope_refuse(eval->diag, SCOPE_FAULT_NO_SITE_LEFT, scope_node_place(node),
		                        "every site that could hold one of these copies already holds another");
		return scope_hint(eval->diag, code, "name a further site, or widen the choice");
	}
	*choice_step = group_or_one(eval, choice->op, &left);
	return 0;
}

/* Notes the sites of a choice; warns where one of them can hold another copy too. */
static void check_overlap(struct scope_eval *eval, struct scope_set *taken, const struct scope_step *step)
{
	if (step->op == SCOPE_ONE && scope_set_has(taken, step->site_index))
		scope_warn(&eval->warnings, "more than one copy may be put at " TEXT_NAME_FMT "; it is given one only",
		           TEXT_NAME(step->site));
	for (uint32_t i = 0; i < step->of_count; i++)
		check_overlap(eval, taken, step->of[i]);
}

static void take_sites(struct scope_set *taken, const struct scope_step *step)
{
	if (step->op == SCOPE_ONE)
		scope_set_add(taken, step->site_index);
	for (uint32_t i = 0; i < step->of_count; i++)
		take_sites(taken, step->of[i]);
}

/* Choices are narrowed to sites that hold no copy yet. One that narrows down to copies gives them to the group. */
static int narrow_choices(struct scope_eval *eval, const struct scope_node *node, struct scope_steps *copies)
{
	struct scope_set taken = drop_repeated(eval, copies);
	struct scope_steps narrowed = {0};
	for (uint32_t i = 0; i < copies->count; i++) {
		enum scope_step_op op = copies->list[i]->op;
		if (op == SCOPE_OTHERWISE || op == SCOPE_ANY_OF) {
			int code = narrow_choice(eval, node, &taken, &copies->list[i]);
			if (code)
				return code;
			if (copies->list[i]->op == SCOPE_ONE)
				scope_set_add(&taken, copies->list[i]->site_index);
		}
		push_part(eval, &narrowed, SCOPE_ALL_OF, copies->list[i]);
	}
	*copies = narrowed;
	return 0;
}

static int finish_copies(struct scope_eval *eval, const struct scope_node *node, struct scope_steps *copies)
{
	int code = narrow_choices(eval, node, copies);
	if (code)
		return code;
	struct scope_set taken = drop_repeated(eval, copies);
	for (uint32_t i = 0; i < copies->count; i++) {
		if (copies->list[i]->op == SCOPE_ONE)
			continue;
		check_overlap(eval, &taken, copies->list[i]);
		take_sites(&taken, copies->list[i]);
	}
	return 0;
}

/* ---- Nodes ------------------------------------------------------------------------------------------------------ */

/* The operands of a node, as parts of a group of kind `op`. */
static int eval_operands(struct scope_eval *eval, const struct scope_node *node, enum scope_step_op op,
                         struct scope_steps *steps)
{
	for (const struct scope_node *child = node->first; child; child = child->next) {
		struct scope_step *part;
		int code = scope_eval_node(eval, child, &part);
		if (code)
			return code;
		push_part(eval, steps, op, part);
	}
	return 0;
}

static int eval_group(struct scope_eval *eval, const struct scope_node *node, enum scope_step_op op,
                      struct scope_step **out)
{
	struct scope_steps steps = {0};
	int code = eval_operands(eval, node, op, &steps);
	if (code)
		return code;
	if (op == SCOPE_ALL_OF)
		code = finish_copies(eval, node, &steps);
	else if (op != SCOPE_SPAN_OF)
		drop_repeated(eval, &steps);
	if (code == 0)
		*out = group_or_one(eval, op, &steps);
	return code;
}

/* strong(x), eventual(x), weak(x): x is one site or copies. */
static int eval_consistency(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	static const enum scope_consistency marks[SCOPE_FN_COUNT] = {
		[SCOPE_FN_STRONG] = SCOPE_STRONG, [SCOPE_FN_EVENTUAL] = SCOPE_EVENTUAL, [SCOPE_FN_WEAK] = SCOPE_WEAK};
	struct scope_steps steps = {0};
	struct scope_step *inner;
	int code = scope_eval_node(eval, call->first, &inner);
	if (code)
		return code;
	push_part(eval, &steps, SCOPE_ALL_OF, inner);
	*out = scope_eval_group(eval, SCOPE_ALL_OF, marks[call->function], &steps);
	return 0;
}

/* fallback(x), either(x): the copies of x become alternatives. */
static int eval_turned(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	struct scope_steps steps = {0};
	struct scope_step *inner;
	int code = scope_eval_node(eval, call->first, &inner);
	if (code)
		return code;
	enum scope_step_op op = call->function == SCOPE_FN_FALLBACK ? SCOPE_OTHERWISE : SCOPE_ANY_OF;
	if (inner->op != SCOPE_ALL_OF)
		push_part(eval, &steps, op, inner);
	for (uint32_t i = 0; inner->op == SCOPE_ALL_OF && i < inner->of_count; i++)
		push_part(eval, &steps, op, (struct scope_step *)inner->of[i]);
	drop_repeated(eval, &steps);
	*out = group_or_one(eval, op, &steps);
	return 0;
}

static int eval_call(struct scope_eval *eval, const struct scope_node *call, struct scope_step **out)
{
	switch (call->function) {
	case SCOPE_FN_STRONG:
	case SCOPE_FN_EVENTUAL:
	case SCOPE_FN_WEAK: return eval_consistency(eval, call, out);
	case SCOPE_FN_FALLBACK:
	case SCOPE_FN_EITHER: return eval_turned(eval, call, out);
	default: return scope_eval_choice(eval, call, out);
	}
}

int scope_eval_named(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out)
{
	uint32_t site = eval->resolved[node->ordinal];
	int code = check_named(eval, node, site);
	if (code == 0)
		*out = scope_eval_one(eval, site);
	return code;
}

int scope_eval_node(struct scope_eval *eval, const struct scope_node *node, struct scope_step **out)
{
	switch (node->kind) {
	case SCOPE_NODE_SITE: return scope_eval_named(eval, node, out);
	case SCOPE_NODE_OTHERWISE: return eval_group(eval, node, SCOPE_OTHERWISE, out);
	case SCOPE_NODE_ANY: return eval_group(eval, node, SCOPE_ANY_OF, out);
	case SCOPE_NODE_ALL: return eval_group(eval, node, SCOPE_ALL_OF, out);
	case SCOPE_NODE_SPAN: return eval_group(eval, node, SCOPE_SPAN_OF, out);
	case SCOPE_NODE_NOT: return scope_eval_choice(eval, node, out);
	case SCOPE_NODE_CALL: return eval_call(eval, node, out);
	default: UNREACHABLE("an argument where a location should be");
	}
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

/* The entry for the service, NULL where the scope says nothing of it. */
static int find_entry(struct scope_eval *eval, const struct scope_entry **found)
{
	const struct scope_entry *bare = NULL;
	*found = NULL;
	for (uint32_t i = 0; i < eval->scope->entries_count; i++) {
		const struct scope_entry *entry = &eval->scope->entries[i];
		if (entry->service.length == 0)
			bare = eval->request->inner ? NULL : entry;
		else if (str_equal(entry->service, eval->request->service))
			*found = entry;
	}
	if (*found && bare) {
		struct str service = eval->request->service;
		int code =
			scope_refuse(eval->diag, SCOPE_FAULT_AMBIGUOUS_SERVICE, scope_node_place(bare->location),
		                 "two locations for the service " TEXT_NAME_FMT ": this one, which names none, and its own",
		                 TEXT_NAME(service));
		return scope_hint(eval->diag, code,
		                  "a location without a service is for the service that the request is sent to; "
		                  "remove one of the two");
	}
	if (!*found)
		*found = bare;
	return 0;
}

static uint32_t count_sites(const struct scope_step *step)
{
	uint32_t count = step->op == SCOPE_ONE;
	for (uint32_t i = 0; i < step->of_count; i++)
		count += count_sites(step->of[i]);
	return count;
}

static struct str keep(struct scope_eval *eval, struct str text)
{
	return str_make(arena_copy(eval->arena, text.at, text.length), text.length);
}

static const struct scope_plan *plan_new(struct scope_eval *eval, const struct scope_entry *entry,
                                         const struct scope_step *root)
{
	const struct scope_view *view = eval->view;
	struct scope_plan *plan = arena_new(eval->arena, struct scope_plan);
	plan->service = keep(eval, eval->request->service);
	plan->at = keep(eval, view->site(view->context, eval->request->at).name);
	plan->root = root;
	plan->with_requirements = entry && scope_unwrap(entry->location) != entry->location;
	for (uint32_t i = 0; i < eval->scope->warnings_count; i++)
		scope_warn(&eval->warnings, "%.*s", STR_FMT(eval->scope->warnings[i]));
	plan->warnings = eval->warnings.list;
	plan->warnings_count = eval->warnings.count;
	return plan;
}

int scope_evaluate(struct arena *arena, const struct scope *scope, const struct scope_request *request,
                   const struct scope_view *view, const struct scope_plan **plan, struct scope_diag *diag)
{
	CHECK(scope->checked && request->at < view->sites_count);
	struct scope_eval eval = {
		.arena = arena,
		.scope = scope,
		.request = request,
		.view = view,
		.diag = diag,
		.warnings = {.arena = arena},
	};
	const struct scope_entry *entry = NULL;
	int code = find_services(&eval);
	if (code == 0)
		code = find_sites(&eval);
	if (code == 0)
		code = find_entry(&eval, &entry);
	if (code == 0 && entry && eval.service != SCOPE_NO_INDEX)
		find_version(&eval, entry->location);
	struct scope_step *root = NULL;
	if (code == 0 && entry)
		code = scope_eval_node(&eval, scope_unwrap(entry->location), &root);
	else if (code == 0)
		root = scope_eval_one(&eval, request->at);
	if (code)
		return code;
	uint32_t sites = count_sites(root);
	if (entry && sites > LIMIT_SCOPE_SITES) {
		code = scope_refuse(diag, SCOPE_FAULT_TOO_MANY_SITES, scope_node_place(entry->location),
		                    "the plan would hold %u sites; the limit is %d", sites, LIMIT_SCOPE_SITES);
		return scope_hint(diag, code, "choose fewer, as with nearest(%d)", LIMIT_SCOPE_SITES);
	}
	*plan = plan_new(&eval, entry, root);
	return 0;
}
