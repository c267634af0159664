#include "order_model.h"

uint32_t model_random(struct model_world *world, uint32_t below)
{
	/* xorshift64* (Vigna, 2016) */
	world->random ^= world->random >> 12;
	world->random ^= world->random << 25;
	world->random ^= world->random >> 27;
	return (uint32_t)((world->random * 0x2545f4914f6cdd1d) >> 33) % below;
}

/* In one facet. As a bag, a log does not tell in which order things were appended. */
static bool really_commute(enum model_class x, enum model_class y)
{
	bool appends_x = x == MODEL_APPEND || x == MODEL_NOTE, appends_y = y == MODEL_APPEND || y == MODEL_NOTE;
	bool values_x = x == MODEL_SET || x == MODEL_INCREMENT, values_y = y == MODEL_SET || y == MODEL_INCREMENT;
	if (x == MODEL_PATCH || y == MODEL_PATCH)
		return appends_x || appends_y || values_x || values_y;
	if (appends_x && appends_y)
		return true;
	if (values_x && values_y)
		return x == MODEL_INCREMENT && y == MODEL_INCREMENT;
	return (x == MODEL_APPEND && values_y) || (values_x && y == MODEL_APPEND);
}

static uint8_t random_resolution(struct model_world *world, enum model_class x, enum model_class y)
{
	for (;;) {
		uint8_t resolution = (uint8_t)model_random(world, ORDER_RESOLUTIONS);
		if (resolution != ORDER_ANY || really_commute(x, y))
			return resolution;
	}
}

void model_world_make(struct model_world *world, uint64_t seed, uint32_t wild)
{
	memset(world, 0, sizeof(*world));
	world->random = seed * 0x9e3779b97f4a7c15 + 1;
	for (int i = 0; i < 8; i++)
		model_random(world, 2);
	world->sites_count = 2 + model_random(world, MODEL_SITES - 1);
	memset(world->resolutions, ORDER_DEFAULT, sizeof(world->resolutions));
	for (uint32_t x = MODEL_PUT; x < MODEL_CLASSES; x++)
		for (uint32_t y = MODEL_PUT; y < MODEL_CLASSES; y++)
			if (model_random(world, 100) < wild)
				world->resolutions[x * MODEL_CLASSES + y] = random_resolution(world, x, y);
	world->default_rules = wild == 0;
	for (uint32_t x = MODEL_SET; x < MODEL_DELETE; x++)
		for (uint32_t y = MODEL_SET; y < MODEL_DELETE; y++) {
			uint8_t *resolution = &world->resolutions[x * MODEL_CLASSES + y];
			/* Where the default is wrong, a description has to say so. */
			if (*resolution == ORDER_DEFAULT && !really_commute(x, y))
				*resolution = x == MODEL_INCREMENT && y == MODEL_SET ? ORDER_REVERSE : ORDER_KEEP;
		}
	uint8_t appends = world->resolutions[MODEL_APPEND * MODEL_CLASSES + MODEL_APPEND];
	world->log_is_bag = appends == ORDER_DEFAULT || appends == ORDER_ANY;
	for (uint32_t x = MODEL_APPEND; x <= MODEL_NOTE; x++) /* all that append, or none */
		for (uint32_t y = MODEL_APPEND; y <= MODEL_NOTE; y++)
			if (!world->log_is_bag || x != y)
				world->resolutions[x * MODEL_CLASSES + y] = world->log_is_bag ? ORDER_ANY : appends;
	world->rules = (struct order_rules){
		.classes = MODEL_CLASSES,
		.resolutions = world->resolutions,
		.delete_loses = model_random(world, 2) == 0,
		.create_replays = model_random(world, 2) == 0,
	};
}

static uint8_t effect_of(enum model_class class)
{
	static const uint8_t effects[MODEL_CLASSES] = {
		[MODEL_CREATE] = ORDER_CREATE,   [MODEL_PUT] = ORDER_REPLACE,        [MODEL_PATCH] = ORDER_ASSIGN,
		[MODEL_SET] = ORDER_ASSIGN,      [MODEL_INCREMENT] = ORDER_RELATIVE, [MODEL_NOTE] = ORDER_RELATIVE,
		[MODEL_APPEND] = ORDER_RELATIVE, [MODEL_DELETE] = ORDER_DELETE,
	};
	return effects[class];
}

enum model_class model_random_class(struct model_world *world)
{
	if (model_random(world, 25) == 0)
		return MODEL_DELETE;
	enum model_class class = (enum model_class)(MODEL_PUT + (int)model_random(world, MODEL_DELETE - MODEL_PUT));
	return world->default_rules && (class == MODEL_SET || class == MODEL_NOTE) ? MODEL_PATCH : class;
}

uint32_t model_issue(struct model_world *world, uint32_t site, enum model_class class, const uint32_t *seen)
{
	uint32_t index = world->ops_count++;
	struct order_op *op = &world->ops[index];
	memcpy(world->seen[index], seen, sizeof(world->seen[index]));
	*op = (struct order_op){
		.member = site,
		.number = seen[site] + 1,
		.seen = world->seen[index],
		.effect = effect_of(class),
		.class = (uint8_t) class,
		.facet = (uint16_t)(class != MODEL_CREATE && class != MODEL_DELETE && model_random(world, 5) == 0),
	};
	for (uint32_t i = 0; i < index; i++)
		if (order_saw(op, &world->ops[i]) && op->stamp < world->ops[i].stamp)
			op->stamp = world->ops[i].stamp;
	op->stamp += 1 + model_random(world, 6);
	world->arguments[index] = (int)model_random(world, 1000);
	return index;
}

static void run_in_facet(const struct model_world *world, struct model_facet *facet, uint32_t op)
{
	int argument = world->arguments[op];
	bool is_note = world->ops[op].class == MODEL_NOTE;
	switch ((enum model_class)world->ops[op].class) {
	case MODEL_CREATE:
	case MODEL_PUT:
		memset(facet, 0, sizeof(*facet));
		facet->value = argument;
		facet->map[argument % MODEL_KEYS] = argument;
		break;
	case MODEL_PATCH: /* one key, or two */
		facet->map[argument % MODEL_KEYS] = argument;
		if (argument % 2 == 0)
			facet->map[(argument + 1) % MODEL_KEYS] = argument;
		break;
	case MODEL_SET: facet->value = argument; break;
	case MODEL_INCREMENT: facet->value += argument; break;
	case MODEL_APPEND:
	case MODEL_NOTE:
		assert_true(facet->log_count < 2 * MODEL_OPS);
		facet->log[facet->log_count++] = op | (uint64_t)(is_note ? (uint32_t)facet->value : 0) << 32;
		break;
	case MODEL_DELETE:
	case MODEL_CLASSES: fail();
	}
}

bool model_run(const struct model_world *world, struct model_item *item, uint32_t op, bool as_replace)
{
	const struct order_op *is = &world->ops[op];
	if (is->class == MODEL_DELETE || (is->class == MODEL_CREATE && !as_replace)) {
		if (is->class == MODEL_CREATE && item->here)
			return false;
		memset(item, 0, sizeof(*item));
		item->here = is->class == MODEL_CREATE;
	}
	if (is->class == MODEL_DELETE)
		return true;
	if (!item->here)
		return false;
	run_in_facet(world, &item->facets[is->facet], op);
	return true;
}

static int compare_numbers(const void *left, const void *right)
{
	uint64_t x = *(const uint64_t *)left, y = *(const uint64_t *)right;
	return x < y ? -1 : x > y;
}

bool model_equal(const struct model_world *world, const struct model_item *left, const struct model_item *right)
{
	struct model_item items[2] = {*left, *right};
	for (int i = 0; world->log_is_bag && i < 4; i++) {
		struct model_facet *facet = &items[i / 2].facets[i % 2];
		qsort(facet->log, facet->log_count, sizeof(facet->log[0]), compare_numbers);
	}
	for (int i = 0; i < 4; i++) { /* what was in a log before a reset does not matter */
		struct model_facet *facet = &items[i / 2].facets[i % 2];
		memset(&facet->log[facet->log_count], 0, sizeof(facet->log) - facet->log_count * sizeof(facet->log[0]));
	}
	for (int i = 0; i < 2; i++) {
		const struct model_facet *x = &items[0].facets[i], *y = &items[1].facets[i];
		if (x->value != y->value || memcmp(x->map, y->map, sizeof(x->map)) != 0 || x->log_count != y->log_count ||
		    memcmp(x->log, y->log, sizeof(x->log)) != 0)
			return false;
	}
	return items[0].here == items[1].here;
}

/* ---- The letter of the design ---------------------------------------------------------------------------------------- */

static enum order_resolution resolution_of(const struct model_world *world, uint32_t x, uint32_t y)
{
	const struct order_op *first = &world->ops[x], *second = &world->ops[y];
	if (order_saw(first, second) || order_saw(second, first))
		return ORDER_KEEP;
	return order_resolve(&world->rules, first, second);
}

bool model_superseded(const struct model_world *world, const bool *known, uint32_t op)
{
	for (uint32_t i = 0; i < world->ops_count; i++) {
		if (!known[i] || i == op)
			continue;
		if (order_before(&world->ops[op], &world->ops[i]) ? resolution_of(world, op, i) == ORDER_TAKE_ONE
		                                                  : resolution_of(world, i, op) == ORDER_TAKE_FIRST)
			return true;
	}
	return false;
}

static uint32_t next_in_time(const struct model_world *world, const bool *known, uint32_t after)
{
	uint32_t best = MODEL_OPS;
	for (uint32_t i = 0; i < world->ops_count; i++)
		if (known[i] && (after == MODEL_OPS || order_before(&world->ops[after], &world->ops[i])) &&
		    (best == MODEL_OPS || order_before(&world->ops[i], &world->ops[best])))
			best = i;
	return best;
}

uint32_t model_sequence(const struct model_world *world, const bool *known, uint32_t *all)
{
	uint32_t count = 0;
	for (uint32_t y = next_in_time(world, known, MODEL_OPS); y != MODEL_OPS; y = next_in_time(world, known, y)) {
		uint32_t end = count, place = count;
		while (end > 0 && !order_saw(&world->ops[y], &world->ops[all[end - 1]]))
			end--;
		for (uint32_t i = end; i < count && place == count; i++)
			if (resolution_of(world, all[i], y) == ORDER_REVERSE)
				place = i;
		for (uint32_t i = count++; i > place; i--)
			all[i] = all[i - 1];
		all[place] = y;
	}
	return count;
}
