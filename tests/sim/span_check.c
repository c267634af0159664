/* What has to be so, always and at the end. */
#include "sim/span.h"

#include "cross/names_int.h"

#include <inttypes.h>

/* ---- Always ----------------------------------------------------------------------------------------------------------------- */

/* A child was made, or renamed. Another one of that name may be there only if one of the two was accepted unchecked. */
void span_check_made(struct span *span, const struct span_child *child)
{
	for (uint32_t i = 0; i < span->children_count && !child->out; i++) {
		const struct span_child *other = &span->children[i];
		if (other != child && other->alive && !other->out && other->container == child->container &&
		    other->name == child->name && !other->unchecked && !child->unchecked && !other->lost)
			span_violation(span, "c%" PRIu32 " has two children %s, at s%" PRIu32 " and s%" PRIu32, child->container,
			               span_name(child->name).at, other->site, child->site);
	}
}

/* ---- At the end -------------------------------------------------------------------------------------------------------------- */

struct counting {
	struct span *span;
	const struct span_site *site;
	struct buf *why;
	uint32_t claims[SPAN_CONTAINERS]; /* that are kept, or lost */
};

static uint32_t container_number(const struct span *span, struct replica_id id)
{
	uint32_t i = 0;
	while (i < span->containers_count && !names_same(span->containers[i].id, id))
		i++;
	return i;
}

static void complain(struct buf *why, const struct span_site *it, const char *what, struct str name)
{
	if (why->length == 0)
		buf_printf(why, "s%" PRIu32 ": %s '%.*s'", it->number, what, STR_FMT(name));
}

static bool is_entry_of(struct span *span, const struct span_container *container, const struct cross_claim *claim)
{
	struct span_site *prime = &span->sites[span_site_of(span, container->list.sites[0].site)];
	struct cross_entry_view entry;
	return cross_names_entry(prime->names, container->id, claim->type, claim->name, &entry) == 0 && entry.kept &&
	       names_same(entry.child, claim->child);
}

static bool check_claim(void *context, const struct cross_claim_view *view)
{
	struct counting *counting = context;
	struct span *span = counting->span;
	uint32_t number = container_number(span, view->claim.container);
	struct span_child *child = span_child_of(span, view->claim.child);
	if (number == span->containers_count || !child || !child->alive || child->site != counting->site->number ||
	    !str_equal(span_name(child->name), view->claim.name)) {
		complain(counting->why, counting->site, "claims what is not there:", view->claim.name);
		return true;
	}
	const struct span_container *container = &span->containers[number];
	counting->claims[number]++;
	bool entered = is_entry_of(span, container, &view->claim);
	if (view->state == CROSS_KEPT && !entered)
		complain(counting->why, counting->site, "has a child whose name is not held:", view->claim.name);
	else if (view->state == CROSS_LOST && (entered || !child->lost))
		complain(counting->why, counting->site, "lost a name that it has, or nobody was told:", view->claim.name);
	else if (view->state == CROSS_LOST && !view->unchecked)
		complain(counting->why, counting->site, "lost a name that was checked:", view->claim.name);
	else if (view->state != CROSS_KEPT && view->state != CROSS_LOST)
		complain(counting->why, counting->site, "is not done with", view->claim.name);
	return true;
}

static void check_site(struct span *span, struct span_site *it, struct buf *why)
{
	struct counting counting = {span, it, why, {0}};
	cross_names_each(it->names, NULL, check_claim, &counting);
	for (uint32_t i = 0; i < span->containers_count; i++) {
		uint32_t children = 0;
		for (uint32_t k = 0; k < span->children_count; k++) {
			const struct span_child *child = &span->children[k];
			children += child->alive && !child->out && child->container == i && child->site == it->number;
		}
		if (children != counting.claims[i] && why->length == 0)
			buf_printf(why, "s%" PRIu32 " has %" PRIu32 " children in c%" PRIu32 " and claims %" PRIu32, it->number,
			           children, i, counting.claims[i]);
	}
	struct cross_names_counters counters = cross_names_counters(it->names);
	if (counters.active > 0 && why->length == 0)
		buf_printf(why, "s%" PRIu32 " has something to say on %" PRIu64 " things", it->number, counters.active);
	if (counters.damaged > 0 && why->length == 0)
		buf_printf(why, "s%" PRIu32 ": %" PRIu64 " damaged rows", it->number, counters.damaged);
}

/* Each entry is of a child that is there; only primes have any. */
static void check_entries(struct span *span, struct span_site *it, struct buf *why)
{
	const struct choir_table *names = &it->rows.tables[CROSS_NAMES];
	for (uint32_t i = 0; i < names->count; i++) {
		struct cross_claim claim;
		struct name_row row;
		struct str key = choir_row_key(names->rows[i]);
		if (!key_parse(key, false, &claim) || !name_row_parse(choir_row_value(names->rows[i]), &row)) {
			complain(why, it, "a row that makes no sense:", key);
			continue;
		}
		struct span_child *child = span_child_of(span, row.child);
		uint32_t number = container_number(span, claim.container);
		if (number == span->containers_count || span->containers[number].list.sites[0].site != it->id)
			complain(why, it, "has names, and is not the prime:", claim.name);
		else if (!child || !child->alive || child->out || !row.kept || !str_equal(span_name(child->name), claim.name))
			complain(why, it,
			         !child          ? "a name is held for nobody:"
			         : !child->alive ? "a name is held for a child that is gone:"
			         : child->out    ? "a name is held for a child elsewhere:"
			         : !row.kept     ? "a name is held, and not known to be a child's:"
			                         : "a name is held for a child of another name:",
			         claim.name);
	}
	if (it->rows.tables[CROSS_RIVALS].count > 0)
		complain(why, it, "rivals are left", STR(""));
}

/* Of those of one name, all but one have lost it, and only what was unchecked can. */
static void check_unique(struct span *span, struct buf *why)
{
	for (uint32_t i = 0; i < span->children_count; i++) {
		for (uint32_t k = 0; k < i; k++) {
			const struct span_child *a = &span->children[i], *b = &span->children[k];
			if (a->alive && b->alive && !a->out && !b->out && a->container == b->container && a->name == b->name &&
			    !a->lost && !b->lost)
				complain(why, &span->sites[a->site], "two children have the name", span_name(a->name));
		}
	}
}

bool span_converged(struct span *span, struct buf *why)
{
	buf_clear(why);
	for (uint32_t i = 0; i < span->containers_count; i++) {
		for (uint32_t k = 0; k < span->containers[i].list.count; k++) {
			struct cross_container list;
			const struct span_site *it = &span->sites[span_site_of(span, span->containers[i].list.sites[k].site)];
			if (it->rows.changes_count > 0 || !it->names ||
			    !cross_names_get(it->names, span->containers[i].id, &list) ||
			    list.term != span->containers[i].list.term) {
				buf_printf(why, "s%" PRIu32 " does not know the sites of c%" PRIu32, it->number, i);
				/* A host that nobody asks anything hears of it from the operation on the container itself. */
				bool left = span_is_withdrawn(&span->containers[i], it) && span->containers[i].withdrawn.gone;
				if (it->names && span->healed && !left) {
					cross_names_set(it->names, span->containers[i].id, &span->containers[i].list, span_now(span, it));
					span_leave(&span->sites[it->number]);
				}
				return false;
			}
		}
	}
	for (uint32_t i = 0; i < span->options.sites; i++) {
		if (span->sites[i].dead)
			continue;
		check_site(span, &span->sites[i], why);
		check_entries(span, &span->sites[i], why);
	}
	check_unique(span, why);
	return why->length == 0 && span_pools_right(span, why);
}

/* ---- Names that are free can be had, and others not ---------------------------------------------------------------------------- */

void span_check_names(struct span *span)
{
	for (uint32_t i = 0; i < span->containers_count * SPAN_NAMES && span->violations_count == 0; i++) {
		struct span_container *container = &span->containers[i / SPAN_NAMES];
		uint32_t name = i % SPAN_NAMES;
		struct span_site *it = &span->sites[span_site_of(
			span, container->list.sites[sim_random_below(&span->random, container->list.count)].site)];
		struct cross_claim claim = {container->id, STR_INIT("sample.server"), span_name(name), {{0}}};
		struct cross_entry_view entry;
		struct span_site *prime = &span->sites[span_site_of(span, container->list.sites[0].site)];
		bool taken = cross_names_entry(prime->names, container->id, claim.type, claim.name, &entry) == 0;
		/* The child is a request of nobody: the last action, which is over. */
		struct span_action *action = &span->actions[span->actions_count];
		*action = (struct span_action){.verb = SPAN_CREATE,
		                               .site = it->number,
		                               .container = i / SPAN_NAMES,
		                               .name = name,
		                               .phase = SPAN_WAITS,
		                               .generation = it->generation,
		                               .child = span->children_count,
		                               .trial = true};
		claim.child = replica_id_make(1800000000000, i, span->options.seed);
		span->children[span->children_count] = (struct span_child){.id = claim.child, .site = it->number, .busy = true};
		uint32_t before = (uint32_t)span->figures.taken;
		span->actions_count++;
		int code = cross_names_claim(it->names, &claim, STR(""), span->actions_count, span_now(span, it), NULL);
		span_leave(it);
		for (uint32_t k = 0; k < 30 && action->phase == SPAN_WAITS; k++)
			sim_run(&span->sim, span->sim.now_us + SPAN_STEP_US);
		span->actions_count--;
		bool refused = span->figures.taken > before;
		if (code || (action->phase == SPAN_WAITS) || refused != taken)
			span_violation(span, "%s is %s in c%" PRIu32 ", but a claim at s%" PRIu32 " was %s", span_name(name).at,
			               taken ? "taken" : "free", i / SPAN_NAMES, it->number,
			               code || action->phase == SPAN_WAITS ? "not answered"
			               : refused                           ? "refused"
			                                                   : "granted");
		action->phase = SPAN_DONE;
		cross_names_release(it->names, &claim, span_now(span, it));
		span_leave(it);
		sim_run(&span->sim, span->sim.now_us + SPAN_SECOND_US);
	}
}
