#include "scope_test.h"

static uint32_t add_site(struct scope_table *table, const char *name, enum scope_state state, int64_t since_ms)
{
	uint32_t index = scope_table_add_site(table, (struct scope_site){str_of(name), state, since_ms});
	assert_true(index != SCOPE_NO_INDEX);
	return index;
}

static void add_service(struct scope_table *table, const char *name, const char *const versions[5])
{
	uint32_t service = scope_table_add_service(table, str_of(name));
	assert_true(service != SCOPE_NO_INDEX);
	for (uint32_t site = 0; site < 5; site++)
		if (versions[site])
			scope_table_offer(table, service, site, str_of(versions[site]));
}

void world_open(struct world *world)
{
	arena_init(&world->arena, 0);
	struct scope_table *table = world->table = scope_table_new(&world->arena);
	uint32_t site1 = add_site(table, "Site1", SCOPE_PRESENT, 0);
	uint32_t site2 = add_site(table, "Site2", SCOPE_PRESENT, 0);
	uint32_t site3 = add_site(table, "Site3", SCOPE_PRESENT, 0);
	uint32_t site4 = add_site(table, "Site4", SCOPE_ABSENT, 0);
	add_site(table, "Site5", SCOPE_UNKNOWN, INT64_C(1793527200000));
	scope_table_tag(table, site1, STR("region"), STR("west"));
	scope_table_tag(table, site2, STR("region"), STR("west"));
	scope_table_tag(table, site2, STR("tier"), STR("1"));
	scope_table_tag(table, site3, STR("region"), STR("east"));
	scope_table_tag(table, site4, STR("region"), STR("east"));
	scope_table_set_rtt(table, site1, site2, 8000);
	scope_table_set_rtt(table, site1, site3, 25000);
	scope_table_set_rtt(table, site1, site4, 40000);
	scope_table_set_rtt(table, site2, site3, 10000);
	add_service(table, "compute", (const char *const[]){"2.1", "2.3", "2.0", "2.0", "2.0"});
	add_service(table, "image", (const char *const[]){"1", "1", "1", NULL, NULL});
	add_service(table, "volume", (const char *const[]){"3.0", "4.0", NULL, NULL, NULL});
	world->view = scope_table_view(table);
}

void world_close(struct world *world)
{
	arena_free(&world->arena);
}

static int parse_and_check(struct arena *arena, struct str text, struct scope **scope, struct outcome *outcome)
{
	outcome->code = scope_parse(arena, text, scope, &outcome->diag);
	if (outcome->code)
		return outcome->code;
	scope_print(&outcome->canonical, *scope, STR(""));
	outcome->code = scope_check(arena, *scope, &outcome->diag);
	return outcome->code;
}

struct outcome outcome_parse(struct str text)
{
	struct outcome outcome = {0};
	struct arena arena;
	struct scope *scope;
	arena_init(&arena, 0);
	if (parse_and_check(&arena, text, &scope, &outcome) == 0)
		for (uint32_t i = 0; i < scope_warnings_count(scope); i++)
			buf_printf(&outcome.warnings, "%.*s\n", STR_FMT(scope_warning(scope, i)));
	arena_free(&arena);
	return outcome;
}

struct outcome outcome_plan_at(const struct world *world, struct str text, const char *service, const char *site)
{
	struct outcome outcome = {0};
	struct arena arena;
	struct scope *scope;
	const struct scope_plan *plan;
	arena_init(&arena, 0);
	struct scope_request request = {.service = str_of(service),
	                                .at = world->view.find_site(world->view.context, str_of(site))};
	if (parse_and_check(&arena, text, &scope, &outcome) == 0)
		outcome.code = scope_evaluate(&arena, scope, &request, &world->view, &plan, &outcome.diag);
	if (outcome.code == 0) {
		scope_plan_json(&outcome.plan, plan);
		scope_plan_draw(&outcome.drawing, plan, false);
		for (uint32_t i = 0; i < plan->warnings_count; i++)
			buf_printf(&outcome.warnings, "%.*s\n", STR_FMT(plan->warnings[i]));
	}
	arena_free(&arena);
	return outcome;
}

struct outcome outcome_plan(const struct world *world, struct str text, const char *service)
{
	return outcome_plan_at(world, text, service, "Site1");
}

void outcome_free(struct outcome *outcome)
{
	buf_free(&outcome->canonical);
	buf_free(&outcome->plan);
	buf_free(&outcome->warnings);
	buf_free(&outcome->drawing);
}
