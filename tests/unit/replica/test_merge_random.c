/* One name, made by several at once, by chance: members are cut off, messages are lost, services fail and forget, agents crash. In the end
 * there is one replicant of each name, its ids lead there everywhere, and each addition that was acknowledged counts once.
 * CHEOPS_SEED=N runs one, CHEOPS_SEEDS=N that many. */
#include "world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { SECOND = 1000000 };

enum { NAMES = 2, REPLICANTS = 5, STEPS = 70 };

struct chance {
	uint64_t state;
};

static uint32_t draw(struct chance *chance, uint32_t below)
{
	chance->state = chance->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((chance->state >> 33) % below);
}

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
	uint32_t number = history->created + 1, site = draw(&history->chance, world->sites_count);
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
	uint32_t number = 1 + draw(&history->chance, REPLICANTS), site = draw(&history->chance, world->sites_count);
	uint32_t what = draw(&history->chance, 20);
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
		snprintf(text, sizeof(text), "add %u", 1 + draw(&history->chance, 9));
	else if (what < 12)
		snprintf(text, sizeof(text), "mark %c", 'a' + (char)draw(&history->chance, 26));
	else if (what < 18)
		snprintf(text, sizeof(text), "set %u", 100 + draw(&history->chance, 900));
	else
		snprintf(text, sizeof(text), "delete");
	world_ask(world, site, number, text);
}

static void disturb(struct history *history)
{
	struct world *world = history->world;
	struct chance *chance = &history->chance;
	uint32_t site = draw(chance, world->sites_count), other = draw(chance, world->sites_count);
	switch (draw(chance, history->services ? 10 : 6)) {
	case 0:
	case 1: world_cut(world, draw(chance, 1u << world->sites_count)); break;
	case 2: world_cut(world, 0); break;
	case 3: world->lose_percent = draw(chance, 2) * 30; break;
	case 4: world->cut[site][other] = !world->cut[site][other]; break;
	case 5:
		if (world->sites[site].replica)
			world_crash(world, site);
		else
			world_start(world, site);
		break;
	case 6: world->sites[site].mode = SERVICE_FINE; break;
	case 7: world->sites[site].mode = SERVICE_DOWN; break;
	case 8: world->sites[site].mode = SERVICE_LOSES_ANSWERS; break;
	case 9: world->sites[site].mode = SERVICE_LOSES_REQUESTS; break;
	}
}

static void heal(struct world *world)
{
	world_cut(world, 0);
	world->lose_percent = world->double_percent = 0;
	for (uint32_t i = 0; i < world->sites_count; i++) {
		world->sites[i].mode = SERVICE_FINE;
		if (!world->sites[i].replica)
			world_start(world, i);
	}
}

static void show(struct world *world)
{
	for (uint32_t i = 0; i < world->sites_count; i++) {
		for (uint32_t n = 1; n <= REPLICANTS; n++) {
			struct replicant *r;
			if (replicant_load(world->sites[i].replica, world_id(n), &r) != 0)
				continue;
			if (r->kind != REPLICANT_LIVE) {
				print_message("site %u replicant %u: %s %u\n", i, n, r->kind == REPLICANT_ALIAS ? "alias" : "gone",
				              r->alias.bytes[15]);
				continue;
			}
			const struct report *own = own_report(r);
			print_message("site %u replicant %u: task %d unsure %d redo %d withheld %u stuck %d foreign %d diverged %d "
			              "created %d\n",
			              i, n, r->task.what, r->unsure, r->redo, r->withheld_count, own->stuck, own->foreign,
			              own->diverged, own->created);
			for (uint32_t k = 0; k < r->ops_count; k++)
				print_message("  op %u.%u effect %u flags %u\n", r->ops[k]->member, r->ops[k]->number,
				              r->ops[k]->effect, r->ops[k]->flags);
			for (uint32_t k = 0; k < r->steps_count; k++)
				print_message("  x %u.%u how %u\n", r->steps[k].member, r->steps[k].number, r->steps[k].how);
			for (uint32_t m = 0; m < r->members_count; m++) {
				const struct member *member = &r->members[m];
				print_message("  member %u: stuck %d foreign %d exceptions %u:", m, member->report.stuck,
				              member->report.foreign, member->report.exceptions_count);
				for (uint32_t k = 0; k < r->members_count; k++)
					print_message(" %u/%u/%u/%u", r->base[k], member->report.settled[k], member->has[k], r->known[k]);
				print_message("\n");
			}
		}
	}
}

#define ensure(history, condition, ...)                                                                                \
	do {                                                                                                               \
		if (!(condition)) {                                                                                            \
			show((history)->world);                                                                                    \
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

static void run(uint64_t seed, bool services, bool plain)
{
	struct history history = {.seed = seed, .chance = {seed * 2654435761u + 17}, .services = services, .plain = plain};
	struct chance *chance = &history.chance;
	struct world *world = history.world = world_new(2 + draw(chance, 4));
	world->random = seed;
	world->shuffle = draw(chance, 2);
	world->double_percent = draw(chance, 2) * 20;
	world->latency_us = 1000 + draw(chance, 100000);
	world->rules = (struct order_rules){.create_replays = draw(chance, 2)};
	world_cut(world, draw(chance, 1u << world->sites_count));
	for (uint32_t i = 0; i < STEPS; i++) {
		uint32_t what = draw(chance, 10);
		if (what < 2)
			create(&history);
		else if (what < 4)
			disturb(&history);
		else
			change(&history);
		if (draw(chance, 2) == 0)
			world_go(world, draw(chance, 20) * 100000);
	}
	heal(world);
	world_go(world, 3000ull * SECOND);
	check_aliases(&history);
	check_items(&history);
	if (plain)
		check_additions(&history);
	check_quiet(&history);
	world_free(world);
}

static void run_all(bool services, bool plain)
{
	const char *one = getenv("CHEOPS_SEED");
	const char *many = getenv("CHEOPS_SEEDS");
	uint64_t count = many ? strtoull(many, NULL, 10) : 200;
	if (one)
		run(strtoull(one, NULL, 10), services, plain);
	for (uint64_t seed = 1; seed <= count && !one; seed++)
		run(seed, services, plain);
}

static void test_exactly_once(void **state)
{
	(void)state;
	run_all(false, true);
}

static void test_exactly_once_with_services(void **state)
{
	(void)state;
	run_all(true, true);
}

static void test_everything(void **state)
{
	(void)state;
	run_all(false, false);
}

static void test_everything_with_services(void **state)
{
	(void)state;
	run_all(true, false);
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
