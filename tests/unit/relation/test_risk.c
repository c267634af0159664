/* Who is at risk, by what is known of sites and of what is relied on. */
#include "relation/risk.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { SELF = 1, NEAR = 2, LOST = 3, UNHEARD = 4 };

static enum relation_reach reach(void *context, site_id site)
{
	(void)context;
	return site == LOST ? RELATION_LOST : site == UNHEARD ? RELATION_UNHEARD : RELATION_REACHED;
}

/* The place of all that is asked for. */
static void find(void *context, const struct relation_fact *fact, struct relation_place *place)
{
	(void)fact;
	*place = *(const struct relation_place *)context;
}

static const struct relation_place here = {.here = true}, gone = {.gone = true},
								   at_near = {.sites = {NEAR}, .sites_count = 1},
								   at_lost = {.sites = {LOST}, .sites_count = 1},
								   at_both = {.sites = {LOST, NEAR}, .sites_count = 2},
								   at_unheard = {.sites = {LOST, UNHEARD}, .sites_count = 2};

static enum relation_risk risk_of(enum glue_kind kind, const struct relation_place *place, site_id site)
{
	struct relation_fact fact = {.kind = kind, .sites = {site}, .sites_count = site != 0};
	struct relation_world world = {(void *)place, find, reach};
	return relation_fact_risk(&fact, &world);
}

static void what_is_in_reach_is_safe(void **state)
{
	(void)state;
	assert_int_equal(risk_of(GLUE_RELIANCE, &here, 0), RELATION_SAFE);
	assert_int_equal(risk_of(GLUE_RELIANCE, &at_near, 0), RELATION_SAFE);
	assert_int_equal(risk_of(GLUE_RELIANCE, &at_lost, 0), RELATION_UNREACHABLE);
	assert_int_equal(risk_of(GLUE_RELIANCE, &at_both, 0), RELATION_SAFE);
	assert_int_equal(risk_of(GLUE_RELIANCE, &at_unheard, 0), RELATION_UNDECIDED);
	assert_int_equal(risk_of(GLUE_RELIANCE, &gone, 0), RELATION_GONE);
}

static void where_the_scope_says_it_is_taken_from_counts(void **state)
{
	(void)state;
	assert_int_equal(risk_of(GLUE_RELIANCE, &here, LOST), RELATION_UNREACHABLE);
	assert_int_equal(risk_of(GLUE_RELIANCE, &here, UNHEARD), RELATION_UNDECIDED);
	assert_int_equal(risk_of(GLUE_RELIANCE, &at_lost, NEAR), RELATION_SAFE);
	assert_int_equal(risk_of(GLUE_RELIANCE, &gone, NEAR), RELATION_GONE);
}

static void only_what_is_needed_for_life(void **state)
{
	(void)state;
	assert_int_equal(risk_of(GLUE_REQUIREMENT, &gone, 0), RELATION_SAFE);
	assert_int_equal(risk_of(GLUE_COMPOSITION, &at_lost, 0), RELATION_SAFE);
	assert_int_equal(risk_of(GLUE_CONTAINED, &at_lost, LOST), RELATION_SAFE);
}

static void what_is_not_decided_stays_as_it_was(void **state)
{
	(void)state;
	struct relation_record record = {.count = 1};
	struct relation_risks before = {0}, now = {0}, again = {0};
	struct buf row = {0};
	record.facts[0] = (struct relation_fact){.kind = GLUE_RELIANCE, .place = STR("/a"), .to.name = STR("x")};
	struct relation_world lost = {(void *)&at_lost, find, reach}, unheard = {(void *)&at_unheard, find, reach};
	relation_risks_find(&record, &unheard, &before, &now);
	assert_int_equal(now.record.count, 0);
	relation_risks_find(&record, &lost, &before, &now);
	assert_int_equal(now.record.count, 1);
	relation_risks_put(&now, &row);
	assert_int_equal(relation_risks_parse(buf_str(&row), &before, NULL), 0);
	assert_int_equal(before.why[0], RELATION_UNREACHABLE);
	relation_risks_find(&record, &unheard, &before, &again);
	assert_int_equal(again.record.count, 1);
	for (size_t cut = 0; cut < row.length; cut++)
		assert_int_equal(relation_risks_parse(str_make(row.at, cut), &before, NULL), ERR_CORRUPT);
	buf_free(&row);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_reach_is_safe),
		cmocka_unit_test(where_the_scope_says_it_is_taken_from_counts),
		cmocka_unit_test(only_what_is_needed_for_life),
		cmocka_unit_test(what_is_not_decided_stays_as_it_was),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
