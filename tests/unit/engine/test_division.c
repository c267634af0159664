/* Divided resources under the order of src/replica: members issue operations while they are apart, each with a division of its own,
 * meet, and run what order_next() says, each its own part. In the end their parts add up to what the agreed sequence makes of the whole,
 * and the division that each has kept is the same. Many times, by seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cross/cross.h"
#include "replica/order.h"

#include <stdio.h>
#include <string.h>

enum { MEMBERS = 3, OPS = 24, SEEDS = 4000 };

/* Of one operation: what it does. */
struct deed {
	int64_t number; /* the size, or by how much; of an assign that names something else: not used */
	bool sets_size;
	int label; /* 0: it does not say */
	struct cross_division division;
	uint64_t chance;
};

struct member {
	bool knows[OPS];
	struct order_step_done done[2 * OPS + 2];
	uint32_t done_count;
	int64_t part;
	int label;
	struct cross_division division;
};

struct world {
	struct order_op ops[OPS];
	uint32_t seen[OPS][MEMBERS];
	struct deed deeds[OPS];
	uint32_t count;
	uint32_t issued[MEMBERS];
	struct member members[MEMBERS];
	uint64_t dice, stamp;
};

static uint64_t draw(struct world *world, uint64_t below)
{
	uint64_t z = (world->dice += 0x9e3779b97f4a7c15);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
	z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
	return (z ^ (z >> 31)) % below;
}

/* As the sample's pools have it: what is added lands on top of what was set. Class 1 is the patch, 2 the change. */
static const uint8_t resolutions[] = {
	ORDER_DEFAULT, ORDER_DEFAULT, ORDER_DEFAULT, ORDER_DEFAULT, ORDER_DEFAULT,
	ORDER_KEEP,    ORDER_DEFAULT, ORDER_REVERSE, ORDER_DEFAULT,
};

static struct order_set set_of(const struct world *world, const struct member *member, struct order_op *ops,
                               uint32_t *numbers)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < world->count; i++) {
		if (!member->knows[i])
			continue;
		numbers[count] = i;
		ops[count++] = world->ops[i];
	}
	return (struct order_set){
		.ops = ops,
		.ops_count = count,
		.members_count = MEMBERS,
		.rules = {.classes = 3, .resolutions = resolutions, .create_replays = true},
	};
}

static void run(struct member *member, uint32_t self, const struct order_op *op, const struct deed *deed)
{
	int64_t parts[LIMIT_REPLICA_MEMBERS];
	if (op->effect == ORDER_RELATIVE) {
		assert_int_equal(cross_divide_change(deed->number, &deed->division, deed->chance, parts, NULL), 0);
		member->part += parts[self];
		return;
	}
	if (deed->sets_size) {
		assert_int_equal(cross_divide(deed->number, &deed->division, parts, NULL), 0);
		member->part = parts[self];
		member->division = deed->division;
	}
	if (deed->label || op->effect != ORDER_ASSIGN)
		member->label = deed->label;
}

/* Until there is nothing more to do for it. */
static void settle(struct world *world, uint32_t self, int64_t *whole)
{
	struct member *member = &world->members[self];
	struct order_op ops[OPS];
	uint32_t numbers[OPS], places[OPS];
	struct order_sequence sequence;
	struct order_next next;
	struct arena arena;
	arena_init(&arena, 0);
	struct order_set set = set_of(world, member, ops, numbers);
	for (uint32_t i = 0; i < set.ops_count; i++)
		places[numbers[i]] = i;
	for (uint32_t i = 0; i < member->done_count; i++) /* X has indexes into the set: those of the world, in between */
		member->done[i].op = places[member->done[i].op];
	order_build(&arena, &set, &sequence);
	for (int steps = 0;; steps++) {
		order_next(&arena, &set, &sequence, member->done, member->done_count, &next);
		if (next.action == ORDER_NOTHING)
			break;
		assert_int_not_equal(next.action, ORDER_STUCK);
		assert_true(steps < 1000);
		run(member, self, &ops[next.op], &world->deeds[numbers[next.op]]);
		order_step(member->done, &member->done_count, &next, ORDER_DONE);
	}
	for (uint32_t i = 0; i < member->done_count; i++)
		member->done[i].op = numbers[member->done[i].op];
	*whole = 0;
	for (uint32_t i = 0; i < sequence.ops_count; i++) {
		const struct deed *deed = &world->deeds[numbers[sequence.ops[i]]];
		if (ops[sequence.ops[i]].effect == ORDER_RELATIVE)
			*whole += deed->number;
		else if (deed->sets_size)
			*whole = deed->number;
	}
	arena_free(&arena);
}

static void issue(struct world *world, uint32_t self)
{
	struct member *member = &world->members[self];
	uint32_t number = world->count++;
	struct order_op *op = &world->ops[number];
	struct deed *deed = &world->deeds[number];
	static const uint8_t effects[] = {ORDER_ASSIGN, ORDER_ASSIGN, ORDER_RELATIVE, ORDER_RELATIVE, ORDER_REPLACE};
	for (uint32_t i = 0; i < number; i++)
		if (member->knows[i] && world->ops[i].number > world->seen[number][world->ops[i].member])
			world->seen[number][world->ops[i].member] = world->ops[i].number;
	uint8_t effect = number == 0 ? ORDER_CREATE : effects[draw(world, sizeof(effects))];
	*op = (struct order_op){.member = self,
	                        .number = ++world->issued[self],
	                        .stamp = world->stamp += draw(world, 2), /* so some have the same */
	                        .seen = world->seen[number],
	                        .effect = effect,
	                        .class = effect == ORDER_ASSIGN     ? 1
	                                 : effect == ORDER_RELATIVE ? 2
	                                                            : 0,
	                        .site = 100 + self};
	for (uint32_t i = 0; i < number; i++) /* later than all that it had seen */
		if (member->knows[i] && world->ops[i].stamp >= op->stamp)
			op->stamp = world->stamp = world->ops[i].stamp + 1;
	*deed = (struct deed){.number = (int64_t)draw(world, 300) - 50,
	                      .sets_size = effect != ORDER_ASSIGN || draw(world, 3) > 0,
	                      .chance = draw(world, UINT64_MAX)};
	if (!deed->sets_size || effect != ORDER_ASSIGN)
		deed->label = (int)draw(world, 100) + 1;
	for (uint32_t i = 0; i < MEMBERS; i++)
		cross_division_add(&deed->division, 100 + i, i == 0 ? 1 + draw(world, 4) : draw(world, 4), NULL);
	member->knows[number] = true;
}

/* They meet: each hears of all that the other has. */
static void meet(struct world *world, uint32_t a, uint32_t b)
{
	for (uint32_t i = 0; i < world->count; i++)
		world->members[a].knows[i] = world->members[b].knows[i] =
			world->members[a].knows[i] || world->members[b].knows[i];
}

static void check_all(struct world *world, uint64_t seed)
{
	int64_t wholes[MEMBERS], sum = 0;
	for (uint32_t i = 1; i < MEMBERS; i++)
		meet(world, 0, i);
	for (uint32_t i = 1; i < MEMBERS; i++)
		meet(world, 0, i);
	for (uint32_t i = 0; i < MEMBERS; i++) {
		settle(world, i, &wholes[i]);
		sum += world->members[i].part;
	}
	bool fine = sum == wholes[0];
	for (uint32_t i = 1; i < MEMBERS; i++)
		fine &= wholes[i] == wholes[0] && world->members[i].label == world->members[0].label &&
		        memcmp(&world->members[i].division, &world->members[0].division, sizeof(struct cross_division)) == 0;
	if (!fine)
		print_error("seed %llu: %lld is divided to %lld\n", (unsigned long long)seed, (long long)wholes[0],
		            (long long)sum);
	assert_true(fine);
}

static void parts_add_up_after_any_partition(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= SEEDS; seed++) {
		struct world *world = test_calloc(1, sizeof(*world));
		int64_t whole;
		world->dice = seed;
		issue(world, (uint32_t)draw(world, MEMBERS));
		for (uint32_t i = 1; i < MEMBERS; i++)
			world->members[(world->ops[0].member + i) % MEMBERS].knows[0] = true;
		while (world->count < OPS) {
			uint32_t a = (uint32_t)draw(world, MEMBERS);
			uint64_t what = draw(world, 6);
			settle(world, a, &whole); /* it has run what it knows, and has seen that */
			if (what < 3)
				issue(world, a);
			else if (what < 5)
				meet(world, a, (a + 1) % MEMBERS);
			else
				check_all(world, seed);
			settle(world, a, &whole);
		}
		check_all(world, seed);
		test_free(world);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(parts_add_up_after_any_partition)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
