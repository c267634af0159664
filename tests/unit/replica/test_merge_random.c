/* One name, made by several at once, by chance: members are cut off, messages are lost, services fail and forget, agents crash. In the end
 * there is one replicant of each name, its ids lead there everywhere, and each addition that was acknowledged counts once. */
#include "chance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

enum { SECOND = 1000000, NAMES = 2, REPLICANTS = 5, STEPS = 70 };

struct history {
	uint64_t seed;
	struct chance chance;
	struct world *world;
	bool services, plain; /* plain: only additions, each of one bit */
	uint32_t created;
	uint64_t tickets[REPLICANTS + 1]; /* of the creates */
	uint64_t adds[64];                /* tickets, by bit */
	uint32_t add_name[64];
	uint32_t adds_count;
};

static uint32_t name_of(uint32_t number)
{
	return number % NAMES;
}

static void create(struct history *history)
{
	char text[32];
	struct world *world = history->world;
	uint32_t number = history->created + 1, site = chance_draw(&history->chance, world->sites_count);
	if (number > REPLICANTS || !world->sites[site].replica)
		return;
	snprintf(text, sizeof(text), "create 0 @%c/%c", 'x' + (char)name_of(number), 'A' + (char)number);
	history->created = number;
	history->tickets[number] = world_create(world, site, number, (1u << world->sites_count) - 1, text);
}

static void change(struct history *history)
{
	char text[32];
	struct world *world = history->world;
	uint32_t number = 1 + chance_draw(&history->chance, REPLICANTS),
			 site = chance_draw(&history->chance, world->sites_count);
	uint32_t what = chance_draw(&history->chance, 20);
	if (number > history->created || !world->sites[site].replica)
		return;
	if (history->plain && history->adds_count < 50) {
		snprintf(text, sizeof(text), "add %llu", 1ull << history->adds_count);
		history->add_name[history->adds_count] = name_of(number);
		history->adds[history->adds_count++] = world_ask(world, site, number, text);
		return;
	}
	if (history->plain)
		return;
	if (what < 8)
		snprintf(text, sizeof(text), "add %u", 1 + chance_draw(&history->chance, 9));
	else if (what < 12)
		snprintf(text, sizeof(text), "mark %c", 'a' + (char)chance_draw(&history->chance, 26));
	else if (what < 18)
		snprintf(text, sizeof(text), "set %u", 100 + chance_draw(&history->chance, 900));
	else
		snprintf(text, sizeof(text), "delete");
	world_ask(world, site, number, text);
}

static void disturb(struct history *history)
{
	struct world *world = history->world;
	struct chance *chance = &history->chance;
	uint32_t site = chance_draw(chance, world->sites_count), other = chance_draw(chance, world->sites_count);
	switch (chance_draw(chance, history->services ? 10 : 6)) {
	case 0:
	case 1: world_cut(world, chance_draw(chance, 1u << world->sites_count)); break;
	case 2: world_cut(world, 0); break;
	case 3: world->lose_percent = chance_draw(chance, 2) * 30; break;
	case 4: world->cut[site][other] = !world->cut[site][other]; break;
	case 5: chance_crash(world, site); break;
	case 6: chance_mood(world, site, 0); break;
	case 7: chance_mood(world, site, 1); break;
	case 8: chance_mood(world, site, 2); break;
	case 9: chance_mood(world, site, 3); break;
	}
}

#define ensure(history, condition, ...)                                                                                \
	do {                                                                                                               \
		if (!(condition)) {                                                                                            \
			chance_show((history)->world, REPLICANTS);                                                                 \
			print_message("seed %llu: ", (unsigned long long)(history)->seed);                                         \
			fail_msg(__VA_ARGS__);                                                                                     \
		}                                                                                                              \
	} while (0)

static bool is_gone(struct world *world, uint32_t site, uint32_t number)
{
	struct replicant *r;
	return replicant_resolve(world->sites[site].replica, world_id(number), &r) != 0 || r->kind != REPLICANT_LIVE;
}

/* One replicant, at most, of each name, and all ids of the name that are not gone lead there. */
static void check_aliases(struct history *history)
{
	struct world *world = history->world;
	for (uint32_t n = 1; n <= history->created; n++) {
		for (uint32_t i = 0; i < world->sites_count; i++) {
			ensure(history, is_gone(world, i, n) == is_gone(world, 0, n), "replicant %u is gone at site %u or 0 only",
			       n, i);
			if (is_gone(world, i, n))
				continue;
			ensure(history, world_leads_to(world, i, n) == world_leads_to(world, 0, n),
			       "replicant %u is %u at site %u, %u at site 0", n, world_leads_to(world, i, n), i,
			       world_leads_to(world, 0, n));
			for (uint32_t k = 1; k < n; k++)
				ensure(history,
				       name_of(k) != name_of(n) || is_gone(world, i, k) ||
				           world_leads_to(world, i, k) == world_leads_to(world, i, n),
				       "two replicants of one name at site %u: %u and %u", i, world_leads_to(world, i, k),
				       world_leads_to(world, i, n));
		}
	}
}

static void check_items(struct history *history)
{
	struct world *world = history->world;
	for (uint32_t n = 1; n <= history->created; n++) {
		struct world_item *first = world_item_by(world, 0, n);
		for (uint32_t i = 0; i < world->sites_count; i++) {
			struct world_item *other = world_item_by(world, i, n);
			bool same = !first == !other && (!first || (first->value == other->value && first->mark == other->mark));
			ensure(history, same, "replicant %u: %lld%c at site 0, %lld%c at site %u", n,
			       first ? (long long)first->value : -1, first ? first->mark : '!',
			       other ? (long long)other->value : -1, other ? other->mark : '!', i);
		}
	}
	for (uint32_t i = 1; i < world->sites_count; i++)
		ensure(history, world_items_at(world, i) == world_items_at(world, 0), "%u items at site %u, %u at site 0",
		       world_items_at(world, i), i, world_items_at(world, 0));
}

static bool was_accepted(const struct world *world, uint64_t ticket)
{
	return ticket > 0 && world->answers[ticket].there && world->answers[ticket].answer.code == 0 &&
	       world->answers[ticket].answer.outcome.kind == REPLICA_ACCEPTED;
}

static bool was_refused(const struct world *world, uint64_t ticket)
{
	const struct replica_answer *answer = &world->answers[ticket].answer;
	return world->answers[ticket].there && (answer->code != 0 || answer->outcome.kind == REPLICA_REFUSED);
}

/* Each addition that was acknowledged counts once, and none that was refused: each has a bit of its own. */
static void check_additions(struct history *history)
{
	struct world *world = history->world;
	for (uint32_t n = 1; n <= history->created; n++) {
		const struct world_item *item = world_item_by(world, 0, n);
		for (uint32_t bit = 0; bit < history->adds_count && item; bit++) {
			if (history->add_name[bit] != name_of(n))
				continue;
			bool counts = item->value >> bit & 1;
			ensure(history, counts || !was_accepted(world, history->adds[bit]),
			       "replicant %u: addition %u was acknowledged, and is missing in %llx", n, bit,
			       (long long)item->value);
			ensure(history, !counts || !was_refused(world, history->adds[bit]),
			       "replicant %u: addition %u was refused, and counts in %llx", n, bit, (long long)item->value);
		}
		for (uint32_t bit = 0; bit < 63 && item; bit++)
			ensure(history,
			       !(item->value >> bit & 1) || (bit < history->adds_count && history->add_name[bit] == name_of(n)),
			       "replicant %u: %llx has a bit %u that nobody added", n, (long long)item->value, bit);
		/* It is as that replicant's create made it. */
		ensure(history, !item || item->mark == 'A' + (char)world_leads_to(world, 0, n), "replicant %u is marked %c", n,
		       item->mark);
		ensure(history, item || !was_accepted(world, history->tickets[n]), "replicant %u is lost", n);
	}
}

static void check_quiet(struct history *history)
{
	static const enum replica_table tables[] = {REPLICA_OUTBOX, REPLICA_BLOBS, REPLICA_OPERATIONS, REPLICA_LANES};
	for (uint32_t i = 0; i < history->world->sites_count; i++)
		for (uint32_t t = 0; t < 4; t++)
			ensure(history, world_rows(history->world, i, tables[t]) == 0, "%u rows in table %u at site %u",
			       world_rows(history->world, i, tables[t]), tables[t], i);
}

struct how {
	bool services, plain;
};

static void run(uint64_t seed, const void *context)
{
	const struct how *how = context;
	struct history history = {.seed = seed, .chance = chance_of(seed), .services = how->services, .plain = how->plain};
	struct chance *chance = &history.chance;
	struct world *world = history.world = chance_world(chance, seed, 3);
	world->rules = (struct order_rules){.create_replays = chance_draw(chance, 2)};
	world_cut(world, chance_draw(chance, 1u << world->sites_count));
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t what = chance_draw(chance, 10);
		if (what < 2)
			create(&history);
		else if (what < 4)
			disturb(&history);
		else
			change(&history);
		if (chance_draw(chance, 2) == 0)
			world_go(world, chance_draw(chance, 20) * 100000);
	}
	chance_heal(world);
	world_go(world, 3000ull * SECOND);
	check_aliases(&history);
	check_items(&history);
	if (how->plain)
		check_additions(&history);
	check_quiet(&history);
	world_free(world);
}

static void test_exactly_once(void **state)
{
	(void)state;
	chance_seeds(200, run, &(struct how){false, true});
}

static void test_exactly_once_with_services(void **state)
{
	(void)state;
	chance_seeds(200, run, &(struct how){true, true});
}

static void test_everything(void **state)
{
	(void)state;
	chance_seeds(200, run, &(struct how){false, false});
}

static void test_everything_with_services(void **state)
{
	(void)state;
	chance_seeds(200, run, &(struct how){true, false});
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_exactly_once),
		cmocka_unit_test(test_exactly_once_with_services),
		cmocka_unit_test(test_everything),
		cmocka_unit_test(test_everything_with_services),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
