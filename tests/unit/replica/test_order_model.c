/* Random histories of two to four sites, with a model application (order_model.h). Each site gets operations in a random order
 * that respects cause and effect, issues some of its own at any moment, and runs what order_next() says in between. After each
 * step the state must be what X, run from the start, gives; at the end, what E gives, or the site says that it is stuck.
 *
 * CHEOPS_ORDER_HISTORIES says how many, CHEOPS_ORDER_SEED which one alone. */
#include "order_model.h"

#include "base/arena.h"

struct site {
	bool known[MODEL_OPS]; /* forgotten or not */
	uint32_t arrived[MODEL_OPS];
	uint32_t arrived_count;
	uint32_t known_to[MODEL_SITES];
	uint32_t settled[MODEL_SITES];
	uint32_t seen[MODEL_SITES]; /* of its latest own */
	uint32_t base[MODEL_SITES];
	bool refuses[MODEL_OPS];
	bool stubborn; /* refuses what was run before, now and then */
	bool stuck;
	bool again;                                 /* it ran something again */
	struct order_step_done done[MODEL_OPS + 1]; /* by index in the world */
	uint32_t done_count;
	struct model_item item;
	struct model_item base_item;
	/* What it knows, as order.h wants it. */
	struct order_op ops[MODEL_OPS];
	uint32_t world_of[MODEL_OPS];
	uint32_t index_of[MODEL_OPS];
	struct order_set set;
	struct order_sequence sequence;
	struct order_step_done entries[MODEL_OPS + 1];
};

struct figures {
	uint64_t histories, operations, sites, again, stuck, stuck_though_replays, runs, reruns, replays, rejected, kept,
		forgotten;
};

struct model {
	struct model_world world;
	struct site sites[MODEL_SITES];
	struct arena arena;
	struct figures *figures;
	uint64_t seed;
	bool plain; /* default rules, nothing refused */
	bool forgets;
};

#define MODEL_ASSERT(model, condition)                                                                                 \
	do {                                                                                                               \
		if (!(condition)) {                                                                                            \
			print_error("seed %llu: " #condition "\n", (unsigned long long)(model)->seed);                             \
			fail();                                                                                                    \
		}                                                                                                              \
	} while (0)

/* ---- One site --------------------------------------------------------------------------------------------------------- */

static bool is_forgotten(const struct model *model, const struct site *site, uint32_t op)
{
	return model->world.ops[op].number <= site->base[model->world.ops[op].member];
}

/* The set, in the order of arrival, and E. */
static void refresh(struct model *model, struct site *site)
{
	uint32_t count = 0;
	arena_reset(&model->arena);
	for (uint32_t i = 0; i < site->arrived_count; i++) {
		uint32_t op = site->arrived[i];
		if (is_forgotten(model, site, op))
			continue;
		site->index_of[op] = count;
		site->world_of[count] = op;
		site->ops[count++] = model->world.ops[op];
	}
	site->set = (struct order_set){.ops = site->ops,
	                               .ops_count = count,
	                               .members_count = model->world.sites_count,
	                               .rules = model->world.rules,
	                               .base = site->base};
	order_build(&model->arena, &site->set, &site->sequence);
	for (uint32_t i = 0; i < site->done_count; i++)
		site->entries[i] = (struct order_step_done){.op = site->index_of[site->done[i].op], .how = site->done[i].how};
}

static void take_entries(struct site *site, uint32_t count)
{
	site->done_count = count;
	for (uint32_t i = 0; i < count; i++)
		site->done[i] =
			(struct order_step_done){.op = site->world_of[site->entries[i].op], .how = site->entries[i].how};
}

/* For who looks at a seed that failed. */
static void describe(const struct model *model, const struct site *site)
{
	const struct model_world *world = &model->world;
	for (uint32_t i = 0; i < world->ops_count; i++) {
		const struct order_op *op = &world->ops[i];
		print_error("# %u: %c%u class %u facet %u stamp %llu seen", i, (char)('A' + op->member), op->number, op->class,
		            op->facet, (unsigned long long)op->stamp);
		for (uint32_t j = 0; j < world->sites_count; j++)
			print_error(" %u", op->seen[j]);
		print_error("%s\n", site->known[i] ? "" : ", not known here");
	}
	print_error("# site %c, delete %s, create %s, base", (char)('A' + (site - model->sites)),
	            world->rules.delete_loses ? "loses" : "wins",
	            world->rules.create_replays ? "replays" : "does not replay");
	for (uint32_t j = 0; j < world->sites_count; j++)
		print_error(" %u", site->base[j]);
	print_error("\n# X:");
	for (uint32_t i = 0; i < site->done_count; i++)
		print_error(" %u/%d", site->done[i].op, (int)site->done[i].how);
	print_error("\n# E:");
	for (uint32_t i = 0; i < site->sequence.ops_count; i++)
		print_error(" %u", site->world_of[site->sequence.ops[i]]);
	print_error("\n");
}

/* The state is what X gives. */
static void check_invariant(struct model *model, const struct site *site)
{
	struct model_item item = site->base_item;
	for (uint32_t i = 0; i < site->done_count; i++)
		if (site->done[i].how != ORDER_REJECTED)
			model_run(&model->world, &item, site->done[i].op, site->done[i].how == ORDER_REPLAYED);
	if (!model_equal(&model->world, &item, &site->item))
		describe(model, site);
	MODEL_ASSERT(model, model_equal(&model->world, &item, &site->item));
}

static bool is_done(const struct site *site, uint32_t op)
{
	for (uint32_t i = 0; i < site->done_count; i++)
		if (site->done[i].op == op)
			return true;
	return false;
}

static bool service_refuses(struct model *model, const struct site *site, const struct order_next *next, uint32_t op)
{
	if (site->refuses[op])
		return true;
	return next->action == ORDER_RERUN && site->stubborn && model_random(&model->world, 4) == 0;
}

/* Runs one thing; returns false if there is none. */
static bool run_one(struct model *model, struct site *site)
{
	struct order_next next;
	refresh(model, site);
	order_next(&model->arena, &site->set, &site->sequence, site->entries, site->done_count, &next);
	site->stuck = next.action == ORDER_STUCK;
	if (next.action == ORDER_NOTHING)
		memcpy(site->settled, site->known_to, sizeof(site->settled));
	if (next.action == ORDER_NOTHING || next.action == ORDER_STUCK)
		return false;
	uint32_t op = site->world_of[next.op];
	enum order_done how = model_random(&model->world, 20) == 0 ? ORDER_DOUBT : ORDER_DONE;
	if (service_refuses(model, site, &next, op) || !model_run(&model->world, &site->item, op, next.as_replace))
		how = ORDER_REJECTED;
	model->figures->runs++;
	model->figures->reruns += next.action == ORDER_RERUN;
	site->again = site->again || next.action == ORDER_RERUN;
	model->figures->replays += next.as_replace;
	model->figures->rejected += how == ORDER_REJECTED;
	model->figures->kept += how == ORDER_REJECTED && next.standing;
	uint32_t count = site->done_count;
	order_step(site->entries, &count, &next, how);
	take_entries(site, count);
	check_invariant(model, site);
	return true;
}

static void learn(struct model *model, struct site *site, uint32_t op)
{
	const struct order_op *is = &model->world.ops[op];
	site->known[op] = true;
	site->arrived[site->arrived_count++] = op;
	site->known_to[is->member] = is->number;
}

static bool can_learn(const struct model *model, const struct site *site, uint32_t op)
{
	const struct order_op *is = &model->world.ops[op];
	bool can = !site->known[op];
	for (uint32_t i = 0; i < model->world.sites_count; i++)
		can = can && is->seen[i] <= site->known_to[i];
	return can;
}

/* One of those that it could get now. */
static bool deliver_one(struct model *model, struct site *site)
{
	uint32_t ready[MODEL_OPS], count = 0;
	for (uint32_t i = 0; i < model->world.ops_count; i++)
		if (can_learn(model, site, i))
			ready[count++] = i;
	if (count == 0)
		return false;
	learn(model, site, ready[model_random(&model->world, count)]);
	return true;
}

/* ---- What an operation had seen ----------------------------------------------------------------------------------- */

static bool is_handled(const struct model *model, const struct site *site, uint32_t op)
{
	if (is_forgotten(model, site, op) || is_done(site, op))
		return true;
	const struct order_place *place = &site->sequence.places[site->index_of[op]];
	return place->fate == ORDER_SUPERSEDED ||
	       (place->fate == ORDER_OBSOLETE && is_done(site, site->world_of[place->by]));
}

static const struct order_op *find_op(const struct model *model, uint32_t member, uint32_t number)
{
	for (uint32_t i = 0; i < model->world.ops_count; i++)
		if (model->world.ops[i].member == member && model->world.ops[i].number == number)
			return &model->world.ops[i];
	return NULL;
}

static bool is_covered(const struct model *model, const struct order_op *op, const uint32_t *seen)
{
	for (uint32_t i = 0; i < model->world.sites_count; i++)
		if (op->seen[i] > seen[i])
			return false;
	return true;
}

/* What was handled, without gaps and with all that those had seen; and at least what the latest own one had seen, and what
 * this site said that it has settled, even if that was undone since and is to be run again: others forget because of it. */
static void find_seen(struct model *model, struct site *site, uint32_t *seen)
{
	refresh(model, site);
	for (uint32_t i = 0; i < model->world.sites_count; i++)
		if (site->seen[i] < site->settled[i])
			site->seen[i] = site->settled[i];
	for (uint32_t i = 0; i < model->world.sites_count; i++) {
		seen[i] = site->seen[i];
		for (uint32_t number = seen[i] + 1; number <= site->known_to[i]; number++) {
			const struct order_op *op = find_op(model, i, number);
			if (!is_handled(model, site, (uint32_t)(op - model->world.ops)))
				break;
			seen[i] = number;
		}
	}
	for (uint32_t i = 0; i < model->world.sites_count;) {
		if (seen[i] > site->seen[i] && !is_covered(model, find_op(model, i, seen[i]), seen)) {
			seen[i]--;
			i = 0;
		} else {
			i++;
		}
	}
}

static void issue_one(struct model *model, uint32_t number, enum model_class class)
{
	struct model_world *world = &model->world;
	struct site *site = &model->sites[number];
	uint32_t seen[MODEL_SITES] = {0};
	find_seen(model, site, seen);
	uint32_t op = model_issue(world, number, class, seen);
	if (!model_run(world, &site->item, op, false)) {
		world->ops_count--; /* refused where it was asked: nobody ever hears of it */
		return;
	}
	for (uint32_t i = 0; i < world->sites_count && !model->plain; i++)
		model->sites[i].refuses[op] = i != number && model_random(world, 30) == 0;
	learn(model, site, op);
	memcpy(site->seen, seen, sizeof(seen));
	site->seen[number]++;
	site->done[site->done_count++] = (struct order_step_done){.op = op, .how = ORDER_DONE};
	check_invariant(model, site);
}

/* ---- Forgetting ----------------------------------------------------------------------------------------------------- */

static bool is_held(const struct model *model, uint32_t op)
{
	for (uint32_t i = 0; i < model->world.sites_count; i++) {
		const struct site *site = &model->sites[i];
		if (model->world.ops[op].number > site->settled[model->world.ops[op].member])
			return true;
		for (uint32_t j = 0; j < site->done_count; j++)
			if (site->done[j].op == op && site->done[j].how == ORDER_REJECTED)
				return true;
	}
	return false;
}

static bool knows_all_settled(const struct model *model, const struct site *site)
{
	for (uint32_t i = 0; i < model->world.sites_count; i++)
		for (uint32_t j = 0; j < model->world.sites_count; j++)
			if (model->sites[i].settled[j] > site->known_to[j])
				return false;
	return true;
}

static void forget_some(struct model *model, struct site *site)
{
	if (!knows_all_settled(model, site))
		return;
	bool settled[MODEL_OPS];
	uint32_t base[MODEL_SITES];
	struct order_next next;
	refresh(model, site);
	order_next(&model->arena, &site->set, &site->sequence, site->entries, site->done_count, &next);
	if (next.action != ORDER_NOTHING)
		return;
	for (uint32_t i = 0; i < site->set.ops_count; i++)
		settled[i] = !is_held(model, site->world_of[i]) && model_random(&model->world, 8) != 0;
	order_forget(&model->arena, &site->set, &site->sequence, settled, base);
	for (uint32_t i = 0; i < site->sequence.ops_count; i++) {
		const struct order_op *op = &site->set.ops[site->sequence.ops[i]];
		if (op->number <= base[op->member])
			model_run(&model->world, &site->base_item, site->world_of[site->sequence.ops[i]], false);
	}
	uint32_t count = site->done_count;
	order_trim(&model->arena, &site->set, base, site->entries, &count);
	take_entries(site, count);
	for (uint32_t i = 0; i < model->world.sites_count; i++)
		model->figures->forgotten += base[i] - site->base[i];
	memcpy(site->base, base, model->world.sites_count * sizeof(base[0]));
	check_invariant(model, site);
}

/* ---- At the end ------------------------------------------------------------------------------------------------------- */

/* The item was made again after that. */
static bool is_made_after(const struct model *model, const struct site *site, uint32_t at)
{
	for (uint32_t i = at + 1; i < site->done_count; i++)
		if (model->world.ops[site->done[i].op].class == MODEL_CREATE && site->done[i].how != ORDER_REPLAYED &&
		    site->done[i].how != ORDER_REJECTED)
			return true;
	return false;
}

/* What E gives from the very start, without what was rejected here. */
static void run_sequence(const struct model *model, const struct site *site, struct model_item *item)
{
	bool counts[MODEL_OPS] = {0};
	bool known[MODEL_OPS] = {0};
	uint32_t all[MODEL_OPS];
	for (uint32_t i = 0; i < model->world.ops_count; i++)
		known[i] = counts[i] = true;
	for (uint32_t i = 0; i < site->done_count; i++)
		if (site->done[i].how == ORDER_REJECTED && !is_made_after(model, site, i))
			counts[site->done[i].op] = false;
	memset(item, 0, sizeof(*item));
	uint32_t count = model_sequence(&model->world, known, all);
	for (uint32_t i = 0; i < count; i++)
		if (counts[all[i]] && !model_superseded(&model->world, counts, all[i]))
			model_run(&model->world, item, all[i], false);
}

/* Whatever a log has, cause is before effect, and nothing twice. */
static void check_log(const struct model *model, const struct model_facet *facet)
{
	for (uint32_t i = 0; i < facet->log_count; i++)
		for (uint32_t j = i + 1; j < facet->log_count; j++) {
			uint32_t x = (uint32_t)facet->log[i], y = (uint32_t)facet->log[j];
			MODEL_ASSERT(model, x != y);
			MODEL_ASSERT(model, !order_saw(&model->world.ops[x], &model->world.ops[y]));
		}
}

static void check_end(struct model *model, struct site *site)
{
	struct model_item wanted;
	run_sequence(model, site, &wanted);
	model->figures->sites++;
	model->figures->again += site->again;
	if (site->stuck) {
		model->figures->stuck++;
		model->figures->stuck_though_replays += model->world.rules.create_replays;
		return;
	}
	if (!model_equal(&model->world, &site->item, &wanted))
		describe(model, site);
	MODEL_ASSERT(model, model_equal(&model->world, &site->item, &wanted));
	check_log(model, &site->item.facets[0]);
	check_log(model, &site->item.facets[1]);
}

static void play(struct model *model, uint32_t operations)
{
	struct model_world *world = &model->world;
	issue_one(model, 0, MODEL_CREATE);
	for (uint32_t events = 0; events < 12 * operations; events++) {
		uint32_t number = model_random(world, world->sites_count);
		struct site *site = &model->sites[number];
		uint32_t what = model_random(world, 10);
		if (what < 2 && world->ops_count < operations && site->item.here)
			issue_one(model, number, model_random_class(world));
		else if (what < 5)
			deliver_one(model, site);
		else if (what < 9)
			run_one(model, site);
		else if (model->forgets)
			forget_some(model, site);
	}
	for (uint32_t i = 0; i < world->sites_count; i++) {
		struct site *site = &model->sites[i];
		while (deliver_one(model, site))
			if (model_random(world, 2) == 0)
				run_one(model, site);
		uint32_t steps = 0;
		while (run_one(model, site))
			MODEL_ASSERT(model, ++steps < 4 * MODEL_OPS);
		check_end(model, site);
	}
	model->figures->operations += world->ops_count;
	model->figures->histories++;
}

/* Rules are the defaults, with some overrides, or wild. In the first kind nothing is refused either. */
static const struct {
	const char *name;
	uint32_t wild;
} kinds[] = {{"default rules", 0}, {"some overrides", 5}, {"wild rules", 40}};

enum { KINDS = 3 };

static void play_seed(uint64_t seed, struct figures *figures)
{
	static struct model model;
	uint32_t kind = (uint32_t)(seed % KINDS);
	memset(&model, 0, sizeof(model));
	arena_init(&model.arena, 0);
	model.figures = &figures[kind];
	model.seed = seed;
	model.plain = kind == 0;
	model.forgets = seed % 2 == 0;
	model_world_make(&model.world, seed, kinds[kind].wild);
	for (uint32_t i = 0; i < MODEL_SITES; i++)
		model.sites[i].stubborn = !model.plain && model_random(&model.world, 8) == 0;
	play(&model, 3 + model_random(&model.world, MODEL_OPS / 2 - 3));
	arena_free(&model.arena);
}

static void print_figures(const char *name, const struct figures *figures)
{
#define PRINT(field) print_message(" %s %llu", #field, (unsigned long long)figures->field)
	print_message("# %s:", name);
	PRINT(histories);
	PRINT(operations);
	PRINT(sites);
	PRINT(again);
	PRINT(stuck);
	PRINT(stuck_though_replays);
	PRINT(runs);
	PRINT(reruns);
	PRINT(replays);
	PRINT(rejected);
	PRINT(kept);
	PRINT(forgotten);
	print_message("\n");
#undef PRINT
}

static uint64_t number_from(const char *name, uint64_t otherwise)
{
	const char *text = getenv(name);
	return text ? strtoull(text, NULL, 10) : otherwise;
}

static void every_site_ends_in_the_state_of_e(void **state)
{
	(void)state;
	struct figures figures[KINDS] = {0};
	uint64_t alone = number_from("CHEOPS_ORDER_SEED", 0);
	uint64_t count = number_from("CHEOPS_ORDER_HISTORIES", 2000);
	for (uint64_t seed = alone ? alone : 1; seed <= (alone ? alone : count); seed++)
		play_seed(seed, figures);
	for (uint32_t i = 0; i < KINDS; i++) {
		print_figures(kinds[i].name, &figures[i]);
		assert_true(figures[i].stuck * 4 <= figures[i].sites); /* to be stuck is the exception */
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_site_ends_in_the_state_of_e),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
