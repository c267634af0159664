/* Users and what they ask for, the service, and who is a site of which container. */
#include "sim/span.h"

#include "base/check.h"

#include <inttypes.h>
#include <stdlib.h>

enum { CALL_MOST_US = 60000, SLOW_CALL_MOST_US = 5000000, REFUSED_ONE_IN = 8 };

static const struct str type = STR_INIT("sample.server");

/* ---- The plan --------------------------------------------------------------------------------------------------------------- */

static enum span_verb draw_verb(const struct span *span, uint64_t dice)
{
	uint64_t of = dice % 100;
	return of < 50                           ? SPAN_CREATE
	       : of < 63                         ? SPAN_RENAME
	       : of < 83                         ? SPAN_DELETE
	       : of < 88 && span->options.adopts ? SPAN_ADOPT
	       : of < 88                         ? SPAN_CREATE
	                                         : SPAN_POOL;
}

static void draw_containers(struct span *span, struct sim_random *random)
{
	span->containers_count = (uint32_t)sim_random_range(random, 1, SPAN_CONTAINERS);
	for (uint32_t i = 0; i < span->containers_count; i++) {
		site_id sites[SPAN_SITES];
		uint32_t count = 0, first = (uint32_t)sim_random_below(random, span->options.sites);
		for (uint32_t k = 0; k < span->options.sites; k++) {
			if (k < 2 || sim_random_chance(random, 0.7))
				sites[count++] = span->sites[(first + k) % span->options.sites].id;
		}
		struct span_container *it = &span->containers[i];
		it->id = replica_id_make(1700000000000, sim_random_next(random), sim_random_next(random));
		it->leaving = it->withdrawn.site = SPAN_NOBODY;
		cross_container_make(&it->list, sites, count, span->options.optimistic && sim_random_chance(random, 0.6));
	}
}

static int by_time(const void *a, const void *b)
{
	const struct span_action *x = a, *y = b;
	return x->at_us < y->at_us ? -1 : x->at_us > y->at_us;
}

void span_draw(struct span *span)
{
	struct sim_random random;
	uint64_t end_us = (uint64_t)span->options.steps * SPAN_STEP_US;
	sim_random_seed(&random, span->options.seed, 2);
	draw_containers(span, &random);
	span->actions_count = span->options.actions;
	span->actions = calloc((size_t)span->actions_count + 1, sizeof(*span->actions));
	span->children = calloc((size_t)span->actions_count + 1, sizeof(*span->children));
	span->changes = calloc((size_t)span->options.changes + 1, sizeof(*span->changes));
	CHECK(span->actions != NULL && span->children != NULL && span->changes != NULL);
	for (uint32_t i = 0; i < span->actions_count; i++) {
		struct span_action *it = &span->actions[i];
		it->dice = sim_random_next(&random);
		it->verb = draw_verb(span, it->dice >> 8);
		it->at_us = sim_random_below(&random, end_us);
		if (i > 0 && sim_random_chance(&random, 0.4)) /* with another one, at the same moment */
			it->at_us = span->actions[i - 1].at_us + sim_random_below(&random, 100000);
		it->site = (uint32_t)sim_random_below(&random, span->options.sites);
		it->container = (uint32_t)sim_random_below(&random, span->containers_count);
		it->name = (uint32_t)sim_random_below(&random, SPAN_NAMES);
		it->child = SPAN_NOBODY;
		it->phase = SPAN_DONE;
	}
	qsort(span->actions, span->actions_count, sizeof(*span->actions), by_time);
	for (uint32_t i = 0; i < span->actions_count; i++)
		span->actions[i].skipped = !sim_list_has(&span->options.keep_actions, i);
	span->changes_count = span->options.changes;
	for (uint32_t i = 0; i < span->changes_count; i++)
		span->changes[i] =
			(struct span_change){sim_random_below(&random, end_us),
		                         (uint32_t)sim_random_below(&random, span->containers_count), sim_random_next(&random)};
}

/* ---- Requests ----------------------------------------------------------------------------------------------------------------- */

struct cross_claim span_claim_of(const struct span *span, const struct span_child *child, uint32_t name)
{
	return (struct cross_claim){span->containers[child->container].id, type, span_name(name), child->id};
}

static uint32_t new_child(struct span *span, const struct span_action *action)
{
	struct span_child *child = &span->children[span->children_count];
	*child = (struct span_child){.container = action->container, .site = action->site, .name = action->name};
	child->heir = span_heir_draw(span, action->container, action->site, action->dice);
	child->id = replica_id_make(1700000000000 + span->sim.now_us / 1000,
	                            sim_mix(span->options.seed, span->children_count), span->children_count);
	return span->children_count++;
}

/* One that is there at this site, and to which nothing is done. */
static uint32_t pick_child(struct span *span, const struct span_action *action)
{
	uint32_t count = span->children_count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t at = (uint32_t)((action->dice >> 16) + i) % count;
		const struct span_child *child = &span->children[at];
		if (child->alive && !child->out && !child->busy && child->site == action->site &&
		    child->container == action->container)
			return at;
	}
	return SPAN_NOBODY;
}

static void call_service(struct span *span, struct span_site *it, uint32_t number)
{
	span->actions[number].phase = SPAN_CALLS;
	uint64_t most_us = it->slow ? SLOW_CALL_MOST_US : CALL_MOST_US;
	span_at(span, span->sim.now_us + 1 + sim_random_below(&it->luck, most_us), SPAN_ACT_SERVICE, number);
}

static void ask_for_name(struct span *span, struct span_site *it, uint32_t number)
{
	struct span_action *action = &span->actions[number];
	struct span_child *child = &span->children[action->child];
	struct cross_claim claim = span_claim_of(span, child, action->name);
	struct str instead_of = action->verb == SPAN_RENAME ? span_name(child->name) : STR("");
	struct err err = {0};
	action->phase = SPAN_WAITS;
	child->busy = true;
	int code = cross_names_claim(it->names, &claim, instead_of, number + 1, span_now(span, it), &err);
	if (code) {
		action->phase = SPAN_DONE;
		child->busy = false;
	}
	span_leave(it);
}

static void adopt(struct span *span, struct span_site *it, struct span_action *action)
{
	struct span_child *child = &span->children[new_child(span, action)];
	child->alive = child->adopted = child->unchecked = true;
	child->heir = SPAN_NOBODY; /* it may never have had its name */
	struct cross_claim claim = span_claim_of(span, child, child->name);
	span_tell(span, "s%" PRIu32 " adopts %s", it->number, span_name(child->name).at);
	if (cross_names_adopt(it->names, &claim, span_now(span, it), NULL))
		child->out = true;
	span_leave(it);
}

void span_act_user(struct span *span, uint32_t number)
{
	struct span_action *action = &span->actions[number];
	struct span_site *it = &span->sites[action->site];
	if (!it->names)
		return;
	span->figures.actions++;
	action->generation = it->generation;
	if (action->verb == SPAN_POOL) {
		span_pool_user(span, action);
		return;
	}
	struct cross_container list;
	if (!cross_names_get(it->names, span->containers[action->container].id, &list) || !span_is_member(&list, it->id))
		return;
	bool makes = action->verb == SPAN_CREATE || action->verb == SPAN_ADOPT;
	if (makes && span_is_withdrawn(&span->containers[action->container], it))
		return;
	if (action->verb == SPAN_ADOPT) {
		adopt(span, it, action);
		return;
	}
	action->child = action->verb == SPAN_CREATE ? new_child(span, action) : pick_child(span, action);
	if (action->child == SPAN_NOBODY)
		return;
	if (action->verb == SPAN_DELETE) {
		span->children[action->child].busy = true;
		call_service(span, it, number);
	} else if (action->verb == SPAN_CREATE || span->children[action->child].name != action->name) {
		ask_for_name(span, it, number);
	}
}

void span_answered(struct span *span, struct span_site *it, const struct cross_answer *answer)
{
	uint32_t number = (uint32_t)answer->ticket - 1;
	CHECK(number < span->actions_count);
	struct span_action *action = &span->actions[number];
	if (action->phase != SPAN_WAITS || action->generation != it->generation) {
		span_violation(span, "s%" PRIu32 " answers a request twice, or one that is not there", it->number);
		return;
	}
	span->figures.taken += answer->code == ERR_CONFLICT;
	span->figures.unavailable += answer->code == ERR_UNAVAILABLE;
	span->figures.unchecked += answer->code == 0 && answer->unchecked;
	span_tell(span, "s%" PRIu32 ": c%" PRIu32 " %s %s: %d%s", it->number, action->container,
	          action->verb == SPAN_CREATE ? "create" : "rename", span_name(action->name).at, answer->code,
	          answer->unchecked ? ", unchecked" : "");
	action->unchecked = answer->unchecked;
	if (action->trial) {
		action->phase = SPAN_DONE;
	} else if (answer->code == 0 || (span->options.mutation == SPAN_EAGER && answer->code == ERR_CONFLICT)) {
		call_service(span, it, number);
	} else {
		action->phase = SPAN_DONE;
		span->children[action->child].busy = false;
	}
}

/* ---- The service ---------------------------------------------------------------------------------------------------------------- */

/* False: it was refused. */
static bool take_effect(struct span *span, struct span_site *it, struct span_action *action)
{
	struct span_child *child = &span->children[action->child];
	if (action->verb == SPAN_DELETE) {
		child->alive = false;
		return true;
	}
	if (it->refuses || sim_random_below(&it->luck, REFUSED_ONE_IN) == 0) {
		span->figures.refused++;
		return false;
	}
	child->name = action->name;
	child->alive = true;
	child->lost = false;
	child->adopted = false;
	child->unchecked = action->unchecked;
	struct cross_container *list = &span->containers[child->container].list;
	child->out =
		child->out || !span_is_member(list, it->id) || span->containers[child->container].leaving == it->number;
	span_check_made(span, child);
	return true;
}

void span_act_service(struct span *span, uint32_t number)
{
	struct span_action *action = &span->actions[number];
	struct span_site *it = &span->sites[action->site];
	if (action->phase != SPAN_CALLS || action->generation != it->generation)
		return;
	struct span_child *child = &span->children[action->child];
	struct cross_claim claim = span_claim_of(span, child, action->verb == SPAN_DELETE ? child->name : action->name);
	bool done = take_effect(span, it, action);
	action->phase = SPAN_DONE;
	child->busy = false;
	if (action->verb == SPAN_DELETE || !done) {
		if (span->options.mutation != SPAN_DEAF)
			cross_names_release(it->names, &claim, span_now(span, it));
	} else {
		child->acknowledged = true;
		span->figures.acknowledged++;
		cross_names_kept(it->names, &claim, span_now(span, it));
	}
	span_leave(it);
}

/* The agent is gone: a call under way has its effect at this moment, or never; and nobody hears of it. */
void span_calls_end(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < span->actions_count; i++) {
		struct span_action *action = &span->actions[i];
		if (action->phase == SPAN_DONE || action->site != it->number)
			continue;
		if (action->phase == SPAN_CALLS && sim_random_chance(&it->luck, 0.5))
			take_effect(span, it, action);
		action->phase = SPAN_DONE;
		if (action->child != SPAN_NOBODY)
			span->children[action->child].busy = false;
	}
}

/* What was not claimed before a crash is claimed now. */
void span_adopt_all(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < span->children_count; i++) {
		struct span_child *child = &span->children[i];
		struct cross_claim claim = span_claim_of(span, child, child->name);
		if (child->alive && child->adopted && !child->out && child->site == it->number)
			cross_names_adopt(it->names, &claim, span_now(span, it), NULL);
	}
}

/* ---- Who is a site of what --------------------------------------------------------------------------------------------------------- */

void span_tell_lists(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < span->containers_count; i++) {
		struct span_container *container = &span->containers[i];
		const struct cross_container *list = container->leaving == it->number ? &container->next : &container->list;
		if (span_is_withdrawn(container, it) && container->withdrawn.gone)
			continue;
		cross_names_set(it->names, container->id, list, span_now(span, it));
	}
}

static void publish(struct span *span, struct span_container *container, const struct cross_container *list)
{
	container->list = *list;
	container->leaving = SPAN_NOBODY;
	span->figures.terms++;
	span_heirs_follow(span, (uint32_t)(container - span->containers), list);
	for (uint32_t i = 0; i < span->children_count; i++) {
		struct span_child *child = &span->children[i];
		if (&span->containers[child->container] == container && child->heir == SPAN_NOBODY &&
		    !span_is_member(list, span->sites[child->site].id))
			child->out = true;
	}
	/* The prime and some others hear of it from their hosts, the rest from each other. */
	for (uint32_t i = 0; i < span->options.sites; i++) {
		struct span_site *it = &span->sites[i];
		bool first = list->sites[0].site == it->id, newest = list->sites[list->count - 1].site == it->id;
		if (it->names && (first || newest || sim_random_chance(&span->random, 0.4))) {
			cross_names_set(it->names, container->id, list, span_now(span, it));
			span_leave(it);
		}
	}
}

/* Who leaves has made it durable: now the others may know. */
void span_published(struct span *span, struct span_site *it)
{
	for (uint32_t i = 0; i < span->containers_count; i++) {
		struct span_container *container = &span->containers[i];
		struct cross_container known;
		if (container->leaving == it->number && it->names && it->rows.changes_count == 0 &&
		    cross_names_get(it->names, container->id, &known) && known.term == container->next.term) {
			span_tell(span, "c%" PRIu32 ": s%" PRIu32 " has left", i, it->number);
			publish(span, container, &container->next);
		}
	}
}

static void leave(struct span *span, struct span_container *container, struct span_site *it)
{
	struct cross_container next = container->list;
	if (!it->names || cross_container_drop(&next, it->id, NULL))
		return;
	container->next = next;
	container->leaving = it->number;
	span_heirs_follow(span, (uint32_t)(container - span->containers), &next);
	for (uint32_t i = 0; i < span->children_count; i++) {
		struct span_child *child = &span->children[i];
		if (&span->containers[child->container] == container && child->heir == SPAN_NOBODY && child->site == it->number)
			child->out = true;
	}
	cross_names_set(it->names, container->id, &next, span_now(span, it));
	span_leave(it);
}

/* A site that is gone for good is removed from the mesh: all containers are without it. */
static void die(struct span *span, struct span_site *it)
{
	span_crash(span, it);
	it->dead = true;
	span->figures.deaths++;
	for (uint32_t i = 0; i < span->containers_count; i++) {
		struct span_container *container = &span->containers[i];
		struct cross_container next = container->list;
		if (span_is_withdrawn(container, it))
			container->withdrawn.site = SPAN_NOBODY;
		if (span_is_member(&next, it->id) && cross_container_drop(&next, it->id, NULL) == 0)
			publish(span, container, &next);
	}
	for (uint32_t i = 0; i < span->options.sites; i++) {
		if (span->sites[i].names) {
			cross_names_site_removed(span->sites[i].names, it->id, span_now(span, &span->sites[i]));
			span_leave(&span->sites[i]);
		}
	}
}

static bool may_die(const struct span *span, const struct span_site *it)
{
	for (uint32_t i = 0; i < span->containers_count; i++) {
		bool going = span->containers[i].withdrawn.site != SPAN_NOBODY && span->containers[i].withdrawn.going;
		if (span->containers[i].leaving != SPAN_NOBODY || going ||
		    (span->containers[i].list.count < 3 && span_is_member(&span->containers[i].list, it->id)))
			return false;
	}
	return !it->dead && span->figures.deaths < span->options.sites / 3;
}

static void come(struct span *span, uint32_t number, uint32_t who)
{
	struct span_container *container = &span->containers[number];
	struct cross_container next = container->list;
	if (span->sites[who].dead || cross_container_add(&next, span->sites[who].id, NULL) != 0)
		return;
	span_tell(span, "c%" PRIu32 ": s%" PRIu32 " comes", number, who);
	publish(span, container, &next);
}

void span_act_change(struct span *span, uint32_t number)
{
	const struct span_change *change = &span->changes[number];
	struct span_container *container = &span->containers[change->container];
	uint32_t kind = (uint32_t)(change->dice % 10), who = (uint32_t)(change->dice >> 8) % span->options.sites;
	if (container->leaving != SPAN_NOBODY || (container->withdrawn.site != SPAN_NOBODY && kind < 8))
		return;
	if (kind < 5) /* the prime, as a rule: that is what is hard */
		who = span_site_of(span, container->list.sites[kind < 4 ? 0 : container->list.count - 1].site);
	struct span_site *it = &span->sites[who];
	bool member = span_is_member(&container->list, it->id);
	if (kind >= 8 && may_die(span, it)) {
		span_tell(span, "s%" PRIu32 " dies for good", who);
		die(span, it);
	} else if (container->withdrawn.site != SPAN_NOBODY) {
		return;
	} else if (kind < 4 && span->options.withdraws && container->list.count > 1 && change->dice >> 40 & 1) {
		if (change->dice >> 41 & 1) /* its last list is a new one, which not all have heard of */
			come(span, change->container, (uint32_t)(change->dice >> 8) % span->options.sites);
		span_withdraw(span, change->container);
	} else if (member && container->list.count > 2) {
		span_tell(span, "c%" PRIu32 ": s%" PRIu32 " leaves", change->container, who);
		leave(span, container, it);
	} else if (!member) {
		come(span, change->container, who);
	}
}
