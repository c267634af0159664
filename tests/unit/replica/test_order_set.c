/* E is a function of the set: of random sets, each closed under what its operations had seen. */
#include "order_model.h"

#include "base/arena.h"

enum { SETS = 4000 };

struct built {
	struct order_op ops[MODEL_OPS];
	uint32_t world_of[MODEL_OPS];
	struct order_set set;
	struct order_sequence sequence;
};

/* Operations at random sites, each of which had seen what some earlier ones had, and at least `floor`. */
static void grow(struct model_world *world, uint32_t count, const uint32_t *floor)
{
	for (uint32_t i = 0; i < count; i++) {
		uint32_t site = model_random(world, world->sites_count);
		uint32_t seen[MODEL_SITES] = {0};
		for (uint32_t j = 0; j < world->sites_count; j++)
			seen[j] = floor[j];
		for (uint32_t j = 0; j < world->ops_count; j++) {
			const struct order_op *op = &world->ops[j];
			if (op->member != site && model_random(world, 6) != 0)
				continue;
			for (uint32_t k = 0; k < world->sites_count; k++)
				seen[k] = seen[k] < op->seen[k] ? op->seen[k] : seen[k];
			seen[op->member] = seen[op->member] < op->number ? op->number : seen[op->member];
		}
		bool deletes = model_random(world, 12) == 0;
		model_issue(world, site,
		            world->ops_count == 0 ? MODEL_CREATE
		            : deletes             ? MODEL_DELETE
		                                  : model_random_class(world),
		            seen);
	}
}

/* What is beyond base, in some order. */
static void build(struct arena *arena, struct model_world *world, const uint32_t *base, bool shuffled,
                  struct built *built)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < world->ops_count; i++)
		if (world->ops[i].number > base[world->ops[i].member])
			built->world_of[count++] = i;
	for (uint32_t i = 0; shuffled && i + 1 < count; i++) {
		uint32_t other = i + model_random(world, count - i), kept = built->world_of[i];
		built->world_of[i] = built->world_of[other];
		built->world_of[other] = kept;
	}
	for (uint32_t i = 0; i < count; i++)
		built->ops[i] = world->ops[built->world_of[i]];
	built->set = (struct order_set){.ops = built->ops,
	                                .ops_count = count,
	                                .members_count = world->sites_count,
	                                .rules = world->rules,
	                                .base = base};
	order_build(arena, &built->set, &built->sequence);
}

static uint32_t nth(const struct built *built, uint32_t i)
{
	return built->world_of[built->sequence.ops[i]];
}

static void check_letter(const struct model_world *world, const struct built *built)
{
	bool known[MODEL_OPS];
	uint32_t all[MODEL_OPS], count = model_sequence(world, memset(known, true, sizeof(known)), all), kept = 0;
	assert_int_equal(count, built->set.ops_count);
	for (uint32_t i = 0; i < count; i++) {
		assert_int_equal(all[i], built->world_of[built->sequence.all[i]]);
		const struct order_place *place = &built->sequence.places[built->sequence.all[i]];
		bool lost = model_superseded(world, known, all[i]);
		assert_int_equal(lost, place->fate == ORDER_SUPERSEDED);
		if (!lost)
			assert_int_equal(nth(built, kept++), all[i]);
	}
	assert_int_equal(kept, built->sequence.ops_count);
}

static void check_causes(const struct built *built)
{
	for (uint32_t i = 0; i < built->set.ops_count; i++)
		for (uint32_t j = i + 1; j < built->set.ops_count; j++)
			assert_false(order_saw(&built->ops[built->sequence.all[i]], &built->ops[built->sequence.all[j]]));
}

static void each_set(uint64_t salt, void (*check)(struct arena *arena, struct model_world *world))
{
	static struct model_world world;
	struct arena arena;
	arena_init(&arena, 0);
	for (uint64_t seed = 1; seed <= SETS; seed++) {
		static const uint32_t none[MODEL_SITES];
		static const uint32_t wild[] = {0, 5, 50};
		arena_reset(&arena);
		model_world_make(&world, salt + seed, wild[seed % 3]);
		grow(&world, 1 + model_random(&world, MODEL_OPS - 12), none);
		check(&arena, &world);
	}
	arena_free(&arena);
}

static void check_function(struct arena *arena, struct model_world *world)
{
	static const uint32_t none[MODEL_SITES];
	struct built built, other;
	build(arena, world, none, false, &built);
	check_letter(world, &built);
	check_causes(&built);
	build(arena, world, none, true, &other);
	assert_int_equal(other.sequence.ops_count, built.sequence.ops_count);
	for (uint32_t i = 0; i < built.sequence.ops_count; i++)
		assert_int_equal(nth(&other, i), nth(&built, i));
}

static void arrival_makes_no_difference(void **state)
{
	(void)state;
	each_set(1000000, check_function);
}

static void check_appended(struct arena *arena, struct model_world *world)
{
	static const uint32_t none[MODEL_SITES];
	struct built before, after;
	uint32_t seen[MODEL_SITES] = {0};
	build(arena, world, none, false, &before);
	for (uint32_t i = 0; i < world->ops_count; i++)
		if (seen[world->ops[i].member] < world->ops[i].number)
			seen[world->ops[i].member] = world->ops[i].number;
	uint32_t added = model_issue(world, model_random(world, world->sites_count), model_random_class(world), seen);
	build(arena, world, none, true, &after);
	assert_int_equal(after.sequence.ops_count, before.sequence.ops_count + 1);
	for (uint32_t i = 0; i < before.sequence.ops_count; i++)
		assert_int_equal(nth(&after, i), nth(&before, i));
	assert_int_equal(nth(&after, before.sequence.ops_count), added);
}

static void what_had_seen_all_is_appended(void **state)
{
	(void)state;
	each_set(2000000, check_appended);
}

static uint32_t forgotten_in_all;

static void check_forgotten(struct arena *arena, struct model_world *world)
{
	static const uint32_t none[MODEL_SITES];
	struct built before, whole, rest;
	bool settled[MODEL_OPS];
	uint32_t base[MODEL_SITES] = {0};
	build(arena, world, none, true, &before);
	for (uint32_t i = 0; i < world->ops_count; i++)
		settled[i] = model_random(world, 10) != 0;
	order_forget(arena, &before.set, &before.sequence, settled, base);
	grow(world, 10, base);
	build(arena, world, none, true, &whole);
	build(arena, world, base, true, &rest);
	uint32_t at = 0;
	while (at < whole.sequence.ops_count &&
	       whole.ops[whole.sequence.ops[at]].number <= base[whole.ops[whole.sequence.ops[at]].member])
		at++;
	forgotten_in_all += at;
	assert_int_equal(whole.sequence.ops_count, at + rest.sequence.ops_count);
	for (uint32_t i = 0; i < rest.sequence.ops_count; i++)
		assert_int_equal(nth(&whole, at + i), nth(&rest, i));
}

static void a_beginning_can_be_forgotten(void **state)
{
	(void)state;
	forgotten_in_all = 0;
	each_set(3000000, check_forgotten);
	assert_true(forgotten_in_all > SETS);
}

/* Whoever lets in an operation checks it. If that fails, the order may make no sense, but nothing breaks, and it ends. */
static void check_nonsense(struct arena *arena, struct model_world *world)
{
	static const uint32_t none[MODEL_SITES];
	struct built built;
	struct order_step_done done[MODEL_OPS + 1];
	uint32_t done_count = 0, base[MODEL_SITES];
	bool settled[MODEL_OPS];
	for (uint32_t i = 0; i < world->ops_count; i++) {
		if (model_random(world, 3) == 0)
			world->ops[i].stamp = model_random(world, 20);
		for (uint32_t j = 0; j < world->sites_count; j++)
			if (model_random(world, 3) == 0)
				world->seen[i][j] = model_random(world, 12);
		settled[i] = model_random(world, 3) != 0;
	}
	build(arena, world, none, true, &built);
	for (uint32_t steps = 0;; steps++) {
		struct order_next next;
		assert_true(steps < MODEL_OPS * MODEL_OPS);
		order_next(arena, &built.set, &built.sequence, done, done_count, &next);
		if (next.action == ORDER_NOTHING || next.action == ORDER_STUCK)
			break;
		order_step(done, &done_count, &next, model_random(world, 9) == 0 ? ORDER_REJECTED : ORDER_DONE);
	}
	order_forget(arena, &built.set, &built.sequence, settled, base);
	order_trim(arena, &built.set, base, done, &done_count);
}

static void nonsense_does_no_harm(void **state)
{
	(void)state;
	each_set(4000000, check_nonsense);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arrival_makes_no_difference),
		cmocka_unit_test(what_had_seen_all_is_appended),
		cmocka_unit_test(a_beginning_can_be_forgotten),
		cmocka_unit_test(nonsense_does_no_harm),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
