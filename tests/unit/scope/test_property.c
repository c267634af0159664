/* What holds for every scope, tried on thousands that a grammar made. Seeds are fixed: a failure names its own. */
#include "scope_test.h"

#include "generator.h"

#include <stdio.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum {
	SCOPES_PARSED = 20000,
	SCOPES_MUTATED = 40,
	SCOPES_PLANNED = 4000,
	WORLDS = 400,
	WORLD_SITES_MOST = 20,
	MUTATED_BYTES_MOST = 160,
};

/* ---- Text to tree and back --------------------------------------------------------------------------------------- */

static void print(struct buf *out, const struct scope *scope)
{
	buf_clear(out);
	scope_print(out, scope, STR(""));
}

static struct scope *parse(struct arena *arena, struct str text, uint64_t seed)
{
	struct scope *scope;
	struct scope_diag diag;
	if (scope_parse(arena, text, &scope, &diag))
		fail_msg("seed %llu: %s, at %u, of: %.*s", (unsigned long long)seed, diag.message, diag.offset, STR_FMT(text));
	return scope;
}

static void test_parse_print_parse_is_the_identity(void **state)
{
	(void)state;
	struct buf text = {0}, canonical = {0}, again = {0};
	uint32_t too_long = 0;
	for (uint64_t seed = 0; seed < SCOPES_PARSED; seed++) {
		struct arena arena;
		arena_init(&arena, 0);
		struct generator generator = {.dice = {seed}, .arena = &arena, .functions = true};
		const struct scope *meant = generator_scope(&generator);
		buf_clear(&text);
		generator_write(&generator, &text, meant);
		if (text.length > LIMIT_SCOPE_TEXT_BYTES) {
			too_long++;
			arena_free(&arena);
			continue;
		}
		const struct scope *first = parse(&arena, buf_str(&text), seed);
		if (!scope_same(first, meant))
			fail_msg("seed %llu: another tree than was meant: %s", (unsigned long long)seed, buf_c(&text));
		print(&canonical, first);
		const struct scope *second = parse(&arena, buf_str(&canonical), seed);
		if (!scope_same(first, second))
			fail_msg("seed %llu: another tree after printing: %s", (unsigned long long)seed, buf_c(&canonical));
		print(&again, second);
		assert_string_equal(buf_c(&canonical), buf_c(&again));
		arena_free(&arena);
	}
	assert_true(too_long < SCOPES_PARSED / 100);
	buf_free(&text);
	buf_free(&canonical);
	buf_free(&again);
}

/* With a service the bare entry gets that one: the same as if it had been written so. */
static void test_printing_with_a_service_names_the_bare_entry(void **state)
{
	(void)state;
	struct buf text = {0}, named = {0};
	for (uint64_t seed = 0; seed < SCOPES_PARSED / 10; seed++) {
		struct arena arena;
		arena_init(&arena, 0);
		struct generator generator = {.dice = {seed}, .arena = &arena, .functions = true};
		struct scope *meant = generator_scope(&generator);
		buf_clear(&text);
		buf_clear(&named);
		scope_print(&text, meant, STR("the addressed one"));
		for (uint32_t i = 0; i < meant->entries_count; i++)
			if (meant->entries[i].service.length == 0)
				meant->entries[i].service = STR("the addressed one");
		scope_print(&named, meant, STR(""));
		assert_string_equal(buf_c(&text), buf_c(&named));
		assert_true(scope_same(parse(&arena, buf_str(&text), seed), meant));
		arena_free(&arena);
	}
	buf_free(&text);
	buf_free(&named);
}

/* ---- Damaged texts ------------------------------------------------------------------------------------------------ */

/* Parses and prints as itself, or is refused with a place inside the text and words for it. */
static void check_any_text(struct str text)
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag = {0};
	struct buf canonical = {0}, again = {0};
	arena_init(&arena, 0);
	int code = scope_parse(&arena, text, &scope, &diag);
	if (code) {
		assert_true(code < 0);
		assert_true(diag.fault > SCOPE_FAULT_NONE && diag.fault < SCOPE_FAULT_COUNT);
		assert_true(diag.offset <= text.length && diag.length <= text.length - diag.offset);
		assert_true(diag.message[0] != '\0');
	} else {
		print(&canonical, scope);
		if (canonical.length <= LIMIT_SCOPE_TEXT_BYTES) {
			print(&again, parse(&arena, buf_str(&canonical), 0));
			assert_string_equal(buf_c(&canonical), buf_c(&again));
		}
	}
	buf_free(&canonical);
	buf_free(&again);
	arena_free(&arena);
}

/* In a buffer of exactly its size, so that the address sanitizer sees every step past its end. */
static void check_exact_text(const char *bytes, size_t length)
{
	char *exact = test_malloc(length ? length : 1);
	if (length)
		memcpy(exact, bytes, length);
	check_any_text(str_make(exact, length));
	test_free(exact);
}

static void check_prefixes(struct str text)
{
	for (size_t length = 0; length <= text.length; length++)
		check_exact_text(text.at, length);
}

/* At each place: the byte replaced, one put in before it, and the byte left out. */
static void check_mutations(struct str text, const unsigned char *bytes, size_t bytes_count)
{
	char *mutant = test_malloc(text.length + 1);
	for (size_t at = 0; at <= text.length; at++) {
		size_t rest = text.length - at;
		for (size_t i = 0; i < bytes_count; i++) {
			memcpy(mutant, text.at, at);
			mutant[at] = (char)bytes[i];
			memcpy(mutant + at + 1, text.at + at, rest);
			check_exact_text(mutant, text.length + 1);
			if (rest == 0)
				continue;
			memcpy(mutant + at + 1, text.at + at + 1, rest - 1);
			check_exact_text(mutant, text.length);
		}
		if (rest == 0)
			continue;
		memcpy(mutant + at, text.at + at + 1, rest - 1);
		check_exact_text(mutant, text.length - 1);
	}
	test_free(mutant);
}

static const char *const typical[] = {
	"{compute: Site1, image: around(Site1, 1.5ms)}",
	"{\"a\": \"\\\"DC 1\\\" & \\u0041\", \"b\": \"!c\"}",
	"Service A: DC 1 % DC 2; strong(x & \"\xc3\xa9\\ud83d\\ude00\")",
	"a/b, tagged(k=\"v w\", x=1) | nearest(3) \\\n& either(all())",
};

static void test_every_byte_at_every_place_of_typical_scopes(void **state)
{
	(void)state;
	unsigned char all[256];
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (unsigned char)i;
	for (size_t i = 0; i < COUNT(typical); i++) {
		check_prefixes(str_of(typical[i]));
		check_mutations(str_of(typical[i]), all, sizeof(all));
	}
}

static void test_prefixes_and_mutations_of_generated_scopes(void **state)
{
	(void)state;
	static const unsigned char telling[] = "\0\n\x1b !\"%&'(),/:;=@\\{|}0z\x7f\x80\xbf\xc3\xe2\xf0\xff";
	struct buf text = {0};
	uint32_t tried = 0;
	for (uint64_t seed = 1000000; tried < SCOPES_MUTATED; seed++) {
		struct arena arena;
		arena_init(&arena, 0);
		struct generator generator = {.dice = {seed}, .arena = &arena, .functions = true};
		buf_clear(&text);
		generator_write(&generator, &text, generator_scope(&generator));
		if (text.length >= 20 && text.length <= MUTATED_BYTES_MOST) {
			check_prefixes(buf_str(&text));
			check_mutations(buf_str(&text), telling, sizeof(telling) - 1);
			tried++;
		}
		arena_free(&arena);
	}
	buf_free(&text);
}

/* ---- Plans -------------------------------------------------------------------------------------------------------- */

/* A world at random: what it knows of each site, by number. */
struct random_world {
	struct arena arena;
	struct scope_view view;
	uint32_t sites_count;
	struct str names[WORLD_SITES_MOST];
	enum scope_state states[WORLD_SITES_MOST];
	int64_t rtt_us[WORLD_SITES_MOST][WORLD_SITES_MOST]; /* or SCOPE_RTT_UNKNOWN */
	const char *regions[WORLD_SITES_MOST];
	const char *versions[WORLD_SITES_MOST]; /* of compute; NULL: none there */
};

static const struct str world_services[] = {STR_INIT("compute"), STR_INIT("image")};

static void describe_world(struct random_world *world, struct dice *dice)
{
	static const char *const versions[] = {"2", "2.1", "v2.2", "", NULL, "3.0"};
	world->sites_count = 2 + dice_below(dice, WORLD_SITES_MOST - 1);
	uint32_t versions_count = dice_chance(dice, 4) ? COUNT(versions) : 2;
	for (uint32_t i = 0; i < world->sites_count; i++) {
		char name[16];
		int length = snprintf(name, sizeof(name), "%c%u", "zyxab"[dice_below(dice, 5)], i);
		world->names[i] = str_make(arena_copy(&world->arena, name, (size_t)length), (size_t)length);
		world->states[i] = dice_chance(dice, 3) ? (enum scope_state)dice_below(dice, 3) : SCOPE_PRESENT;
		world->regions[i] = dice_chance(dice, 2) ? "west" : "east";
		world->versions[i] = versions[dice_below(dice, versions_count)];
		/* Few distances, so that many are equal. */
		for (uint32_t j = 0; j < i; j++)
			world->rtt_us[i][j] = world->rtt_us[j][i] =
				dice_chance(dice, 6) ? SCOPE_RTT_UNKNOWN : 1000 * (1 + dice_below(dice, 12));
	}
}

/* The same world, its sites numbered from `first` on, round and round. */
static void build_view(struct random_world *world, uint32_t first)
{
	struct scope_table *table = scope_table_new(&world->arena);
	uint32_t count = world->sites_count;
	for (uint32_t n = 0; n < count; n++) {
		uint32_t i = (first + n) % count;
		assert_int_equal(scope_table_add_site(table, (struct scope_site){world->names[i], world->states[i], 0}), n);
	}
	for (uint32_t s = 0; s < COUNT(world_services); s++)
		assert_int_equal(scope_table_add_service(table, world_services[s]), s);
	for (uint32_t n = 0; n < count; n++) {
		uint32_t i = (first + n) % count;
		scope_table_tag(table, n, STR("region"), str_of(world->regions[i]));
		scope_table_offer(table, 1, n, STR("1"));
		if (world->versions[i])
			scope_table_offer(table, 0, n, str_of(world->versions[i]));
		for (uint32_t m = 0; m < n; m++)
			if (world->rtt_us[i][(first + m) % count] != SCOPE_RTT_UNKNOWN)
				scope_table_set_rtt(table, n, m, world->rtt_us[i][(first + m) % count]);
	}
	world->view = scope_table_view(table);
}

static void random_world_open(struct random_world *world, struct dice *dice)
{
	memset(world, 0, sizeof(*world));
	arena_init(&world->arena, 0);
	describe_world(world, dice);
	build_view(world, 0);
}

static void random_world_close(struct random_world *world)
{
	arena_free(&world->arena);
}

struct asked {
	const struct scope *scope;
	const struct scope_plan *plan; /* NULL: refused */
	struct scope_diag diag;
};

/* Parses, checks and evaluates. False: the scope has no meaning. */
static bool ask(struct random_world *world, struct str text, struct str service, struct str at, struct asked *asked)
{
	struct scope *scope;
	struct scope_request request = {.service = service, .at = world->view.find_site(world->view.context, at)};
	*asked = (struct asked){0};
	assert_int_equal(scope_parse(&world->arena, text, &scope, &asked->diag), 0);
	asked->scope = scope;
	if (scope_check(&world->arena, scope, &asked->diag))
		return false;
	int code = scope_evaluate(&world->arena, scope, &request, &world->view, &asked->plan, &asked->diag);
	if (code) {
		assert_null(asked->plan);
		assert_true(asked->diag.fault != SCOPE_FAULT_NONE && asked->diag.message[0] != '\0');
		assert_true(asked->diag.offset + asked->diag.length <= text.length);
	}
	return true;
}

static bool visits(const struct scope_step *step, struct str site)
{
	if (step->op == SCOPE_ONE)
		return str_equal(step->site, site);
	for (uint32_t i = 0; i < step->of_count; i++)
		if (visits(step->of[i], site))
			return true;
	return false;
}

/* Sites below a `!` need not be visited; all others, the centre of around() among them, have to. */
static void check_named_visited(const struct scope_plan *plan, const struct scope_node *node)
{
	if (node->kind == SCOPE_NODE_SITE)
		assert_true(visits(plan->root, node->name));
	if (node->kind == SCOPE_NODE_NOT)
		return;
	for (const struct scope_node *child = node->first; child; child = child->next)
		check_named_visited(plan, child);
}

/* `|` tries what is away last, and the nearest first; no group has a group of its kind, or a site twice, in it. */
static void check_groups(const struct scope_step *group)
{
	for (uint32_t i = 0; i < group->of_count; i++) {
		const struct scope_step *part = group->of[i];
		assert_true(part->op != group->op);
		for (uint32_t j = 0; j < i; j++)
			assert_false(part->op == SCOPE_ONE && group->of[j]->op == SCOPE_ONE &&
			             part->site_index == group->of[j]->site_index);
		check_groups(part);
		if (i == 0 || group->op != SCOPE_ANY_OF)
			continue;
		const struct scope_step *before = group->of[i - 1];
		assert_true(before->state <= part->state);
		if (before->state == part->state)
			assert_true((uint64_t)before->latency_us <= (uint64_t)part->latency_us);
	}
}

static const struct scope_entry *entry_for(const struct scope *scope, struct str service)
{
	for (uint32_t i = 0; i < scope->entries_count; i++)
		if (scope->entries[i].service.length == 0 || str_equal(scope->entries[i].service, service))
			return &scope->entries[i];
	return NULL;
}

static void check_plan(const struct asked *asked, struct str service, struct str at)
{
	const struct scope_plan *plan = asked->plan;
	const struct scope_entry *entry = entry_for(asked->scope, service);
	assert_true(str_equal(plan->service, service) && str_equal(plan->at, at));
	if (entry) {
		check_named_visited(plan, entry->location);
	} else {
		assert_int_equal(plan->root->op, SCOPE_ONE);
		assert_true(str_equal(plan->root->site, at));
	}
	check_groups(plan->root);
}

static void json_of(struct buf *out, const struct asked *asked)
{
	buf_clear(out);
	if (asked->plan)
		scope_plan_json(out, asked->plan);
	else
		buf_put(out, str_of(scope_fault_name(asked->diag.fault)));
}

static void test_named_sites_are_visited_and_numbering_does_not_matter(void **state)
{
	(void)state;
	struct buf text = {0}, json = {0}, renumbered = {0};
	uint32_t planned = 0, with_meaning = 0;
	for (uint64_t seed = 0; seed < SCOPES_PLANNED; seed++) {
		struct dice dice = {seed};
		struct random_world world;
		random_world_open(&world, &dice);
		struct generator generator = {.dice = dice,
		                              .arena = &world.arena,
		                              .sites = world.names,
		                              .sites_count = world.sites_count,
		                              .services = world_services,
		                              .services_count = COUNT(world_services),
		                              .meaningful = true,
		                              .functions = true};
		buf_clear(&text);
		generator_write(&generator, &text, generator_scope(&generator));
		struct str service = world_services[dice_below(&generator.dice, COUNT(world_services))];
		struct str at = world.names[dice_below(&generator.dice, world.sites_count)];
		struct asked asked;
		if (text.length <= LIMIT_SCOPE_TEXT_BYTES && ask(&world, buf_str(&text), service, at, &asked)) {
			with_meaning++;
			planned += asked.plan != NULL;
			if (asked.plan)
				check_plan(&asked, service, at);
			json_of(&json, &asked);
			build_view(&world, 1 + dice_below(&generator.dice, world.sites_count));
			assert_true(ask(&world, buf_str(&text), service, at, &asked));
			json_of(&renumbered, &asked);
			if (strcmp(buf_c(&json), buf_c(&renumbered)) != 0)
				fail_msg("seed %llu: %s\n%s\n%s", (unsigned long long)seed, buf_c(&text), buf_c(&json),
				         buf_c(&renumbered));
		}
		random_world_close(&world);
	}
	/* The generator is of use only as long as most of what it makes can be planned. */
	assert_true(with_meaning > SCOPES_PLANNED / 2);
	assert_true(planned > SCOPES_PLANNED / 3);
	buf_free(&text);
	buf_free(&json);
	buf_free(&renumbered);
}

/* ---- Order, held against a second reading of the rules ------------------------------------------------------------ */

/* Numbers of sites, in an expected order. */
struct order {
	uint32_t sites[WORLD_SITES_MOST];
	uint32_t count;
};

static enum scope_state state_at(const struct random_world *world, uint32_t site, uint32_t at)
{
	return site == at ? SCOPE_PRESENT : world->states[site];
}

/* Stable: what is away goes behind, in its order. */
static void sort_by_state(const struct random_world *world, struct order *order, uint32_t at)
{
	struct order sorted = {.count = 0};
	for (enum scope_state s = SCOPE_PRESENT; s <= SCOPE_ABSENT; s++)
		for (uint32_t i = 0; i < order->count; i++)
			if (state_at(world, order->sites[i], at) == s)
				sorted.sites[sorted.count++] = order->sites[i];
	*order = sorted;
}

static void check_ones(const struct random_world *world, const struct scope_plan *plan, const struct order *expected)
{
	const struct scope_step *root = plan->root;
	if (expected->count == 1) {
		assert_int_equal(root->op, SCOPE_ONE);
		assert_true(str_equal(root->site, world->names[expected->sites[0]]));
		return;
	}
	assert_int_equal(root->of_count, expected->count);
	for (uint32_t i = 0; i < expected->count; i++)
		if (!str_equal(root->of[i]->site, world->names[expected->sites[i]]))
			fail_msg("site %u is %.*s, expected %.*s", i, STR_FMT(root->of[i]->site),
			         STR_FMT(world->names[expected->sites[i]]));
}

static void put_site_list(struct buf *out, const struct random_world *world, const struct order *order,
                          const char *sign)
{
	buf_clear(out);
	for (uint32_t i = 0; i < order->count; i++)
		buf_printf(out, "%s%.*s", i ? sign : "", STR_FMT(world->names[order->sites[i]]));
}

static void shuffle(struct order *order, struct dice *dice, uint32_t sites_count)
{
	order->count = 0;
	for (uint32_t i = 0; i < sites_count; i++) {
		uint32_t at = dice_below(dice, ++order->count);
		order->sites[i] = order->sites[at];
		order->sites[at] = i;
	}
	order->count = 2 + dice_below(dice, sites_count - 1);
}

/* In `&`, `%` and `;` sites stay where they were written, up or down. */
static void test_sites_that_are_down_stay(void **state)
{
	(void)state;
	struct buf text = {0};
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct dice dice = {seed};
		struct random_world world;
		struct order order;
		struct asked asked;
		random_world_open(&world, &dice);
		shuffle(&order, &dice, world.sites_count);
		uint32_t at = dice_below(&dice, world.sites_count);
		static const char *const signs[] = {"&", "%", ";"};
		static const enum scope_step_op ops[] = {SCOPE_ALL_OF, SCOPE_SPAN_OF, SCOPE_OTHERWISE};
		for (size_t i = 0; i < COUNT(signs); i++) {
			put_site_list(&text, &world, &order, signs[i]);
			assert_true(ask(&world, buf_str(&text), STR(""), world.names[at], &asked));
			assert_non_null(asked.plan);
			assert_int_equal(asked.plan->root->op, ops[i]);
			check_ones(&world, asked.plan, &order);
		}
		random_world_close(&world);
	}
	buf_free(&text);
}

static bool nearer(const struct random_world *world, uint32_t from, uint32_t a, uint32_t b)
{
	int64_t x = world->rtt_us[from][a], y = world->rtt_us[from][b];
	if (x != y)
		return y == SCOPE_RTT_UNKNOWN || (x != SCOPE_RTT_UNKNOWN && x < y);
	return str_compare(world->names[a], world->names[b]) < 0;
}

/* Adds the sites for which want() holds, nearest to `from` first. */
static void add_by_distance(const struct random_world *world, struct order *order, uint32_t from, const bool *wanted)
{
	bool added[WORLD_SITES_MOST] = {false};
	for (;;) {
		uint32_t next = SCOPE_NO_INDEX;
		for (uint32_t i = 0; i < world->sites_count; i++)
			if (wanted[i] && !added[i] && (next == SCOPE_NO_INDEX || nearer(world, from, i, next)))
				next = i;
		if (next == SCOPE_NO_INDEX)
			return;
		added[next] = true;
		order->sites[order->count++] = next;
	}
}

/* The centre, whatever its state, since it is named; then by distance from it, whatever the numbering, and what is away
 * behind. */
static void test_around_goes_by_distance_from_its_centre(void **state)
{
	(void)state;
	struct buf text = {0};
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct dice dice = {seed};
		struct random_world world;
		random_world_open(&world, &dice);
		uint32_t centre = dice_below(&dice, world.sites_count), at = dice_below(&dice, world.sites_count);
		uint32_t radius_ms = dice_below(&dice, 14) + 1;
		struct order order = {.sites = {centre}, .count = 1}, behind = {.count = 0};
		bool wanted[WORLD_SITES_MOST];
		for (uint32_t i = 0; i < world.sites_count; i++)
			wanted[i] = i != centre && world.rtt_us[centre][i] != SCOPE_RTT_UNKNOWN &&
			            world.rtt_us[centre][i] <= 1000 * (int64_t)radius_ms;
		add_by_distance(&world, &behind, centre, wanted);
		sort_by_state(&world, &behind, at);
		for (uint32_t i = 0; i < behind.count; i++)
			order.sites[order.count++] = behind.sites[i];
		buf_clear(&text);
		buf_printf(&text, "around(%.*s, %ums)", STR_FMT(world.names[centre]), radius_ms);
		for (uint32_t first = 0; first < world.sites_count; first++) {
			struct asked asked;
			build_view(&world, first);
			assert_true(ask(&world, buf_str(&text), STR(""), world.names[at], &asked));
			assert_non_null(asked.plan);
			check_ones(&world, asked.plan, &order);
		}
		random_world_close(&world);
	}
	buf_free(&text);
}

/* `!x`, `!!x`, all() and nearest(n), likewise, from where the request is. */
static void test_other_choices_go_by_distance_from_here(void **state)
{
	(void)state;
	struct buf text = {0};
	for (uint64_t seed = 0; seed < WORLDS; seed++) {
		struct dice dice = {seed};
		struct random_world world;
		struct asked asked;
		random_world_open(&world, &dice);
		uint32_t at = dice_below(&dice, world.sites_count), avoided = dice_below(&dice, world.sites_count);
		bool others[WORLD_SITES_MOST], live[WORLD_SITES_MOST];
		for (uint32_t i = 0; i < world.sites_count; i++) {
			others[i] = i != avoided;
			live[i] = state_at(&world, i, at) == SCOPE_PRESENT;
		}
		struct order order = {.count = 0};
		add_by_distance(&world, &order, at, others);
		sort_by_state(&world, &order, at);
		buf_clear(&text);
		buf_printf(&text, "!%.*s", STR_FMT(world.names[avoided]));
		assert_true(ask(&world, buf_str(&text), STR(""), world.names[at], &asked));
		check_ones(&world, asked.plan, &order);
		buf_clear(&text);
		buf_printf(&text, "!!%.*s", STR_FMT(world.names[avoided]));
		assert_true(ask(&world, buf_str(&text), STR(""), world.names[at], &asked));
		check_ones(&world, asked.plan, &(struct order){.sites = {avoided}, .count = 1});

		order.count = 0;
		add_by_distance(&world, &order, at, live);
		assert_true(ask(&world, STR("all()"), STR(""), world.names[at], &asked));
		check_ones(&world, asked.plan, &order);
		order.count = order.count < 3 ? order.count : 3;
		assert_true(ask(&world, STR("nearest(3)"), STR(""), world.names[at], &asked));
		check_ones(&world, asked.plan, &order);
		random_world_close(&world);
	}
	buf_free(&text);
}

/* What a `!` avoids is not cut where a plan would be: with more sites than a plan may hold, `!!x` is still x. */
static void test_not_not_in_a_large_world(void **state)
{
	(void)state;
	struct arena arena;
	arena_init(&arena, 0);
	struct scope_table *table = scope_table_new(&arena);
	for (uint32_t i = 0; i < LIMIT_SCOPE_SITES + 44; i++) {
		char name[16];
		int length = snprintf(name, sizeof(name), "s%u", i);
		scope_table_add_site(table, (struct scope_site){.name = str_make(name, (size_t)length)});
	}
	struct scope_view view = scope_table_view(table);
	static const char *const same[] = {"!!s7", "!!!!s7", "!(!s7; !s7)"};
	for (size_t i = 0; i < COUNT(same); i++) {
		struct scope *scope;
		struct scope_diag diag;
		const struct scope_plan *plan;
		assert_int_equal(scope_parse(&arena, str_of(same[i]), &scope, &diag), 0);
		assert_int_equal(scope_check(&arena, scope, &diag), 0);
		assert_int_equal(
			scope_evaluate(&arena, scope, &(struct scope_request){.service = STR("")}, &view, &plan, &diag), 0);
		assert_int_equal(plan->root->op, SCOPE_ONE);
		assert_true(str_equal(plan->root->site, STR("s7")));
	}
	arena_free(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_parse_print_parse_is_the_identity),
		cmocka_unit_test(test_printing_with_a_service_names_the_bare_entry),
		cmocka_unit_test(test_every_byte_at_every_place_of_typical_scopes),
		cmocka_unit_test(test_prefixes_and_mutations_of_generated_scopes),
		cmocka_unit_test(test_named_sites_are_visited_and_numbering_does_not_matter),
		cmocka_unit_test(test_sites_that_are_down_stay),
		cmocka_unit_test(test_around_goes_by_distance_from_its_centre),
		cmocka_unit_test(test_other_choices_go_by_distance_from_here),
		cmocka_unit_test(test_not_not_in_a_large_world),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
