/* Scopes and the plans that they give in the small world of scope_test.h. */
#include "scope_test.h"

static int open_world(void **state)
{
	static struct world world;
	world_open(&world);
	*state = &world;
	return 0;
}

static int close_world(void **state)
{
	world_close(*state);
	return 0;
}

/* A plan in short: Site1, all(…), strong(…), weak(…), span(…), otherwise(…), any(…). Turns the JSON into that, so that
 * tables stay readable and yet compare what programs see. */
static void shorten(struct buf *out, const char *json)
{
	static const struct {
		const char *from, *to;
	} rules[] = {
		{"{\"op\":\"one\",\"site\":\"", ""},
		{"{\"op\":\"all\",\"consistency\":\"eventual\",\"of\":[", "all("},
		{"{\"op\":\"all\",\"consistency\":\"strong\",\"of\":[", "strong("},
		{"{\"op\":\"all\",\"consistency\":\"weak\",\"of\":[", "weak("},
		{"{\"op\":\"otherwise\",\"of\":[", "otherwise("},
		{"{\"op\":\"any\",\"of\":[", "any("},
		{"{\"op\":\"span\",\"prime\":\"", "span("},
		{"\",\"sites\":[", ": "},
		{"]}", ")"},
		{"\"}", ""},
		{"\"", ""},
		{",", " "},
	};
	while (*json) {
		size_t i = 0;
		while (i < sizeof(rules) / sizeof(rules[0]) && strncmp(json, rules[i].from, strlen(rules[i].from)) != 0)
			i++;
		if (i == sizeof(rules) / sizeof(rules[0])) {
			buf_put_char(out, *json++);
			continue;
		}
		buf_put(out, str_of(rules[i].to));
		json += strlen(rules[i].from);
	}
}

struct row {
	const char *text;
	const char *service;
	const char *plan;
};

static void check_rows(const struct world *world, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct outcome outcome = outcome_plan(world, str_of(rows[i].text), rows[i].service);
		if (outcome.code)
			fail_msg("%s: %s", rows[i].text, outcome.diag.message);
		struct buf plan = {0};
		shorten(&plan, buf_c(&outcome.plan));
		if (strcmp(buf_c(&plan), rows[i].plan) != 0)
			fail_msg("%s: expected %s, got %s", rows[i].text, rows[i].plan, buf_c(&plan));
		buf_free(&plan);
		outcome_free(&outcome);
	}
}

#define CHECK_ROWS(world, rows) check_rows((world), (rows), sizeof(rows) / sizeof((rows)[0]))

static void test_which_service_runs_where(void **state)
{
	static const struct row rows[] = {
		{"{compute: Site1, image: Site2}", "compute", "Site1"},
		{"{compute: Site1, image: Site2}", "image", "Site2"},
		{"{image: Site2}", "compute", "Site1"},
		{"{compute: Site3}", "compute", "Site3"},
		{"Site2", "compute", "Site2"},
		{"Site2", "image", "Site2"},
		{"Site2, image: Site3", "compute", "Site2"},
		{"Site2, image: Site3", "other", "Site2"},
	};
	CHECK_ROWS(*state, rows);
	/* what is not named runs where the request is, not where it came from */
	struct outcome outcome = outcome_plan_at(*state, STR("compute: Site3"), "image", "Site3");
	assert_string_equal(buf_c(&outcome.plan), "{\"op\":\"one\",\"site\":\"Site3\"}");
	outcome_free(&outcome);
}

static void test_operators(void **state)
{
	static const struct row rows[] = {
		{"Site1 & Site2", "compute", "all(Site1 Site2)"},
		{"Site3 & Site1", "compute", "all(Site3 Site1)"},
		{"Site2 % Site1", "compute", "span(Site2: Site2 Site1)"},
		{"Site3; Site2", "compute", "otherwise(Site3 Site2)"},
		{"Site3 | Site2 | Site1", "compute", "any(Site1 Site2 Site3)"},
		{"Site1 & Site2; Site3", "compute", "otherwise(all(Site1 Site2) Site3)"},
		{"Site1 & (Site2; Site3)", "compute", "all(Site1 otherwise(Site2 Site3))"},
		{"Site1 | Site2; Site3", "compute", "otherwise(any(Site1 Site2) Site3)"},
		{"(Site1 % Site2) | Site3", "compute", "any(span(Site1: Site1 Site2) Site3)"},
		{"Site1 & Site2 % Site3", "compute", "all(Site1 span(Site2: Site2 Site3))"},
		{"Site2; (Site3; Site1)", "compute", "otherwise(Site2 Site3 Site1)"},
		{"Site2; Site2", "compute", "Site2"},
	};
	CHECK_ROWS(*state, rows);
}

/* Gossip may be wrong, or late: what the user wrote stays as it was written. Only where the order is ours they come last. */
static void test_sites_that_are_away_stay_where_they_were_written(void **state)
{
	static const struct row rows[] = {
		{"Site4; Site1", "compute", "otherwise(Site4 Site1)"},
		{"Site4; Site5; Site3; Site2", "compute", "otherwise(Site4 Site5 Site3 Site2)"},
		{"Site3; Site4; Site2", "compute", "otherwise(Site3 Site4 Site2)"},
		{"Site4 & Site1", "compute", "all(Site4 Site1)"},
		{"Site4 % Site1", "compute", "span(Site4: Site4 Site1)"},
		{"(Site4 & Site5); Site3", "compute", "otherwise(all(Site4 Site5) Site3)"},
		{"(Site4 % Site1); Site3", "compute", "otherwise(span(Site4: Site4 Site1) Site3)"},
		{"strong(Site1 & Site4 & Site5); Site3", "compute", "otherwise(strong(Site1 Site4 Site5) Site3)"},
		{"(Site4; Site2); Site3", "compute", "otherwise(Site4 Site2 Site3)"},
		{"fallback(Site4 & Site2)", "compute", "otherwise(Site4 Site2)"},
		{"Site4; !Site1", "compute", "otherwise(Site4 Site2 Site3 Site5)"},
	};
	CHECK_ROWS(*state, rows);
}

static void test_sites_that_are_away_come_last_where_the_order_is_ours(void **state)
{
	static const struct row rows[] = {
		{"Site4 | Site3 | Site2", "compute", "any(Site2 Site3 Site4)"},
		{"(Site4 & Site5) | Site3", "compute", "any(Site3 all(Site4 Site5))"},
		{"(Site4 & Site1) | Site3", "compute", "any(all(Site4 Site1) Site3)"},
		{"(Site4 % Site1) | Site3", "compute", "any(Site3 span(Site4: Site4 Site1))"},
		{"strong(Site1 & Site2 & Site4) | Site3", "compute", "any(strong(Site1 Site2 Site4) Site3)"},
		{"strong(Site1 & Site4 & Site5) | Site3", "compute", "any(Site3 strong(Site1 Site4 Site5))"},
		{"(Site4 | Site2); Site3", "compute", "otherwise(any(Site2 Site4) Site3)"},
		{"either(Site4 & Site2)", "compute", "any(Site2 Site4)"},
	};
	CHECK_ROWS(*state, rows);
}

static void test_functions_that_choose_one(void **state)
{
	static const struct row rows[] = {
		{"around(Site1, 10ms)", "compute", "otherwise(Site1 Site2)"},
		{"around(Site2, 10ms)", "compute", "otherwise(Site2 Site1 Site3)"},
		{"around(Site2, 9999us)", "compute", "otherwise(Site2 Site1)"},
		{"around(Site1, 0ms)", "compute", "Site1"},
		{"around(Site1, 1s)", "compute", "otherwise(Site1 Site2 Site3 Site4)"},
		{"around(Site4, 40ms)", "compute", "otherwise(Site4 Site1)"}, /* it is named */
		{"around(Site4, 1s)", "compute", "otherwise(Site4 Site1)"},
		{"around(Site5, 1s)", "compute", "Site5"},
		{"!Site1", "compute", "otherwise(Site2 Site3 Site5 Site4)"},
		{"!(Site1 & Site2)", "compute", "otherwise(Site3 Site5 Site4)"},
		{"!!Site2", "compute", "Site2"},
		{"!around(Site1, 10ms)", "compute", "otherwise(Site3 Site5 Site4)"},
		{"!all()", "compute", "otherwise(Site5 Site4)"},
		{"around(Site1, 10ms); Site3", "compute", "otherwise(Site1 Site2 Site3)"},
		{"around(Site1, 10ms); Site2", "compute", "otherwise(Site1 Site2)"},
		{"Site3 | around(Site1, 10ms)", "compute", "any(otherwise(Site1 Site2) Site3)"},
	};
	CHECK_ROWS(*state, rows);
}

static void test_functions_that_choose_many(void **state)
{
	static const struct row rows[] = {
		{"all()", "compute", "all(Site1 Site2 Site3)"},
		{"nearest(1)", "compute", "Site1"},
		{"nearest(2)", "compute", "all(Site1 Site2)"},
		{"tagged(region=west)", "compute", "all(Site1 Site2)"},
		{"tagged(region=east)", "compute", "all(Site3 Site4)"},
		{"tagged(region=west, tier=1)", "compute", "Site2"},
		{"fallback(tagged(region=east))", "compute", "otherwise(Site3 Site4)"},
		{"fallback(Site3 & Site2)", "compute", "otherwise(Site3 Site2)"},
		{"either(Site3 & Site2)", "compute", "any(Site2 Site3)"},
		{"either(Site2)", "compute", "Site2"},
		{"fallback(Site1 & (Site2; Site3))", "compute", "otherwise(Site1 Site2 Site3)"},
		{"Site3 & nearest(2)", "compute", "all(Site3 Site1 Site2)"},
		{"Site2 & all()", "compute", "all(Site2 Site1 Site3)"},
		{"Site1 & around(Site1, 10ms)", "compute", "all(Site1 Site2)"},
		{"Site1 & !Site1", "compute", "all(Site1 otherwise(Site2 Site3 Site5 Site4))"},
		{"Site1 & Site2 & !Site1", "compute", "all(Site1 Site2 otherwise(Site3 Site5 Site4))"},
	};
	CHECK_ROWS(*state, rows);
}

static void test_consistency(void **state)
{
	static const struct row rows[] = {
		{"strong(Site1 & Site2 & Site3)", "compute", "strong(Site1 Site2 Site3)"},
		{"weak(all())", "compute", "weak(Site1 Site2 Site3)"},
		{"eventual(Site1 & Site2)", "compute", "all(Site1 Site2)"},
		{"strong(Site2)", "compute", "strong(Site2)"},
		{"strong(Site1 & Site2); Site3", "compute", "otherwise(strong(Site1 Site2) Site3)"},
		{"weak(Site1 & (Site2; Site3))", "compute", "weak(Site1 otherwise(Site2 Site3))"},
		{"strong(strong(Site1 & Site2))", "compute", "strong(Site1 Site2)"},
		{"strong(Site3 & nearest(2))", "compute", "strong(Site3 Site1 Site2)"},
	};
	CHECK_ROWS(*state, rows);
}

/* The same steps as without it; the plan says that it is so. */
static void test_with_requirements(void **state)
{
	static const struct row rows[] = {
		{"with_requirements(Site2)", "compute", "{op:one with_requirements:true site:Site2"},
		{"with_requirements(Site1 & Site2)", "compute",
	     "{op:all with_requirements:true consistency:eventual of:[Site1 Site2)"},
		{"image: with_requirements(Site1 & Site2), compute: Site1", "compute", "Site1"},
		{"with_requirements(Site1 % Site2)", "compute", "{op:span with_requirements:true prime:Site1: Site1 Site2)"},
	};
	CHECK_ROWS(*state, rows);
}

static void test_functions_choose_only_sites_with_the_service(void **state)
{
	static const struct row rows[] = {
		{"!Site1", "image", "otherwise(Site2 Site3)"},
		{"tagged(region=east)", "image", "Site3"},
		/* volume is 3.0 here and 4.0 at Site2: another major version */
		{"all()", "volume", "Site1"},
		{"around(Site1, 1s)", "volume", "Site1"},
		/* what is only avoided need not have the service */
		{"!Site4", "image", "otherwise(Site1 Site2 Site3)"},
		{"!Site2", "volume", "Site1"},
		/* without a version here, a name gives it, wherever it stands; else the nearest site does */
		/* a service that the view does not know of is not filtered */
		{"nearest(2)", "other", "all(Site1 Site2)"},
	};
	CHECK_ROWS(*state, rows);
	/* Site3 has no volume service: a name gives the version, wherever it stands, else the nearest site does. */
	struct outcome outcome = outcome_plan_at(*state, STR("all() & Site1"), "volume", "Site3");
	assert_string_equal(buf_c(&outcome.plan), "{\"op\":\"one\",\"site\":\"Site1\"}");
	outcome_free(&outcome);
	outcome = outcome_plan_at(*state, STR("all()"), "volume", "Site3");
	assert_string_equal(buf_c(&outcome.plan), "{\"op\":\"one\",\"site\":\"Site2\"}");
	outcome_free(&outcome);
}

static void test_named_sites_are_kept_with_a_warning(void **state)
{
	struct outcome outcome = outcome_plan(*state, STR("Site4; Site1"), "image");
	assert_non_null(strstr(buf_c(&outcome.plan), "Site4"));
	assert_string_equal(buf_c(&outcome.warnings), "`Site4` has no service `image` at present\n");
	outcome_free(&outcome);
	outcome = outcome_plan(*state, STR("around(Site1, 10ms) & around(Site2, 5ms)"), "compute");
	assert_string_equal(buf_c(&outcome.warnings), "");
	outcome_free(&outcome);
	outcome = outcome_plan(*state, STR("around(Site2, 10ms) & around(Site3, 10ms)"), "compute");
	assert_non_null(strstr(buf_c(&outcome.warnings), "more than one copy may be put at `Site2`"));
	outcome_free(&outcome);
	/* two copies are asked for beside Site1, and only Site2 and Site3 have the service */
	outcome = outcome_plan(*state, STR("Site1 & !Site3 & !Site3"), "image");
	assert_string_equal(scope_fault_name(outcome.diag.fault), "no-site-left");
	outcome_free(&outcome);
	outcome = outcome_plan(*state, STR("nearest(9)"), "compute");
	assert_string_equal(buf_c(&outcome.warnings),
	                    "nearest(9) gives only 3: no more sites are live and have the service\n");
	outcome_free(&outcome);
}

static void test_expected_latency(void **state)
{
	static const struct {
		const char *text;
		const char *says;
	} rows[] = {
		{"Site2", "expected latency 8 ms"},
		{"Site2 & Site3", "expected latency 8 ms"},
		{"Site1 & Site3", "expected latency 0 ms"},
		{"strong(Site1 & Site2 & Site3)", "expected latency 8 ms"},
		{"strong(Site2 & Site3)", "expected latency 25 ms"},
		{"Site2 % Site3", "expected latency 25 ms"},
		{"Site3; Site2", "expected latency 25 ms"},
		{"Site3 | Site2", "expected latency 8 ms"},
		{"Site5", "asked at Site1\n"},
		{"Site2 % Site5", "asked at Site1\n"},
		{"Site4 & Site3", "expected latency 25 ms"},
		{"around(Site2, 1us)", "expected latency 8 ms"},
		{"Site4 | Site3", "expected latency 25 ms"},
		{"Site4; Site3; Site2", "expected latency 25 ms"}, /* of the first that is there */
		{"Site4; Site5", "expected latency 40 ms"},
		{"strong(Site4 & Site3 & Site2)", "expected latency 25 ms"},
		{"strong(Site4 & Site5 & Site1)", "asked at Site1\n"},
	};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome outcome = outcome_plan(*state, str_of(rows[i].text), "compute");
		if (!strstr(buf_c(&outcome.drawing), rows[i].says))
			fail_msg("%s: no \"%s\" in %s", rows[i].text, rows[i].says, buf_c(&outcome.drawing));
		outcome_free(&outcome);
	}
}

static void test_drawing(void **state)
{
	static const char expected[] = "compute, asked at Site1, expected latency 0 ms\n"
								   "otherwise: the first that works, in this order\n"
								   "├─ any: whichever answers first, asked in this order\n"
								   "│  ├─ all, eventual: at every one of these; answered by the first\n"
								   "│  │  ├─ Site1 (here)\n"
								   "│  │  └─ otherwise: the first that works, in this order\n"
								   "│  │     ├─ Site5 (distance unknown, unknown since 2026-11-01T10:00:00Z)\n"
								   "│  │     └─ Site4 (40 ms, absent)\n"
								   "│  └─ all, strong: at every one of these; answered once a majority agrees\n"
								   "│     ├─ Site1 (here)\n"
								   "│     └─ Site2 (8 ms)\n"
								   "└─ span: one resource over these; Site1 is its prime site\n"
								   "   ├─ Site1 (here)\n"
								   "   └─ Site3 (25 ms)\n";
	struct str text = STR("strong(Site1 & Site2) | Site1 & (Site5; Site4); Site1 % Site3");
	struct outcome outcome = outcome_plan(*state, text, "compute");
	assert_string_equal(buf_c(&outcome.drawing), expected);
	outcome_free(&outcome);
}

/* 300 sites: alternatives beyond the limit are cut with a warning, copies are refused. */
static void test_many_sites(void **state)
{
	(void)state;
	struct world world;
	arena_init(&world.arena, 0);
	world.table = scope_table_new(&world.arena);
	for (uint32_t i = 0; i < 300; i++) {
		char name[16];
		struct buf text = {0};
		buf_printf(&text, "s%03u", i);
		memcpy(name, text.at, 5);
		buf_free(&text);
		assert_int_equal(scope_table_add_site(world.table, (struct scope_site){str_of(name), SCOPE_PRESENT, 0}), i);
		if (i > 0)
			scope_table_set_rtt(world.table, 0, i, 1000 * (300 - i));
	}
	world.view = scope_table_view(world.table);
	struct outcome outcome = outcome_plan_at(&world, STR("!s000"), "compute", "s000");
	assert_int_equal(outcome.code, 0);
	assert_non_null(
		strstr(buf_c(&outcome.plan), "[{\"op\":\"one\",\"site\":\"s299\"},{\"op\":\"one\",\"site\":\"s298\"}"));
	assert_null(strstr(buf_c(&outcome.plan), "s010"));
	assert_string_equal(buf_c(&outcome.warnings), "only the nearest 256 of 299 sites are alternatives\n");
	outcome_free(&outcome);
	outcome = outcome_plan_at(&world, STR("all()"), "compute", "s000");
	assert_int_equal(outcome.code, ERR_LIMIT);
	assert_string_equal(scope_fault_name(outcome.diag.fault), "too-many-sites");
	outcome_free(&outcome);
	outcome = outcome_plan_at(&world, STR("nearest(200) & (!s000; s001)"), "compute", "s000");
	assert_string_equal(scope_fault_name(outcome.diag.fault), "too-many-sites");
	outcome_free(&outcome);
	outcome = outcome_plan_at(&world, STR("nearest(3)"), "compute", "s000");
	assert_string_equal(buf_c(&outcome.plan),
	                    "{\"op\":\"all\",\"consistency\":\"eventual\",\"of\":[{\"op\":\"one\",\"site\":\"s000\"},"
	                    "{\"op\":\"one\",\"site\":\"s299\"},{\"op\":\"one\",\"site\":\"s298\"}]}");
	outcome_free(&outcome);
	arena_free(&world.arena);
}

static void test_round_trips_are_symmetric_until_both_ways_are_given(void **state)
{
	struct world *world = *state;
	const struct scope_view *view = &world->view;
	assert_int_equal(view->rtt_us(view->context, 1, 0), 8000);
	scope_table_set_rtt(world->table, 1, 0, 9000);
	struct scope_view changed = scope_table_view(world->table);
	assert_int_not_equal(changed.epoch, view->epoch);
	assert_int_equal(changed.rtt_us(changed.context, 1, 0), 9000);
	assert_int_equal(changed.rtt_us(changed.context, 0, 1), 8000);
	assert_int_equal(changed.rtt_us(changed.context, 4, 0), SCOPE_RTT_UNKNOWN);
	assert_int_equal(changed.rtt_us(changed.context, 4, 4), 0);
}

static void test_names_in_a_table_are_unique(void **state)
{
	struct world *world = *state;
	assert_int_equal(scope_table_add_site(world->table, (struct scope_site){STR("Site1"), SCOPE_PRESENT, 0}),
	                 SCOPE_NO_INDEX);
	assert_int_equal(scope_table_add_service(world->table, STR("image")), SCOPE_NO_INDEX);
	for (uint32_t i = 5; i < LIMIT_VIEW_SITES; i++) {
		char name[8] = {'x', (char)('a' + i / 400), (char)('a' + i / 20 % 20), (char)('a' + i % 20)};
		assert_int_equal(scope_table_add_site(world->table, (struct scope_site){str_of(name), SCOPE_PRESENT, 0}), i);
	}
	assert_int_equal(scope_table_add_site(world->table, (struct scope_site){STR("one more"), SCOPE_PRESENT, 0}),
	                 SCOPE_NO_INDEX);
	struct scope_view view = scope_table_view(world->table);
	assert_int_equal(view.find_site(view.context, STR("Site5")), 4);
	struct str key, value;
	assert_true(view.tag(view.context, 1, 1, &key, &value));
	assert_true(str_equal(key, STR("tier")));
}

int main(void)
{
#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)
	const struct CMUnitTest tests[] = {
		IN_WORLD(test_which_service_runs_where),
		IN_WORLD(test_operators),
		IN_WORLD(test_sites_that_are_away_stay_where_they_were_written),
		IN_WORLD(test_sites_that_are_away_come_last_where_the_order_is_ours),
		IN_WORLD(test_functions_that_choose_one),
		IN_WORLD(test_functions_that_choose_many),
		IN_WORLD(test_consistency),
		IN_WORLD(test_with_requirements),
		IN_WORLD(test_functions_choose_only_sites_with_the_service),
		IN_WORLD(test_named_sites_are_kept_with_a_warning),
		IN_WORLD(test_expected_latency),
		IN_WORLD(test_drawing),
		cmocka_unit_test(test_many_sites),
		IN_WORLD(test_round_trips_are_symmetric_until_both_ways_are_given),
		IN_WORLD(test_names_in_a_table_are_unique),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
