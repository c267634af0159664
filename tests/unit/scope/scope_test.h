/* What the tests of scope-lang share: a small world, and texts turned into canonical form, plan or refusal in one call. */
#ifndef TESTS_UNIT_SCOPE_SCOPE_TEST_H
#define TESTS_UNIT_SCOPE_SCOPE_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "scope/scope.h"

/* The world of most tests. Requests are at Site1.
 *
 *     Site1  --8 ms--  Site2     Site1 and Site2 are in the west, Site3 and Site4 in the east
 *       |   \           |        Site4 is absent, Site5 unknown since 2026-11-01T10:00:00Z
 *     25 ms  40 ms     10 ms     compute: 2.1 2.3 2.0 2.0 2.0   image: 1 at Site1 to Site3
 *       |       \       |        volume: 3.0 at Site1, 4.0 at Site2
 *     Site3     Site4  Site3     Site5's distance is known from nowhere
 */
struct world {
	struct arena arena;
	struct scope_table *table;
	struct scope_view view;
};

void world_open(struct world *world);
void world_close(struct world *world);

/* What became of a text. One of the three is not empty. Free with outcome_free(). */
struct outcome {
	struct buf canonical; /* of the parsed text, also where the plan was refused */
	struct buf plan;      /* as JSON */
	struct buf warnings;  /* one a line */
	struct buf drawing;   /* as scope_plan_draw() has it, without colour */
	int code;
	struct scope_diag diag; /* where code is not 0 */
};

struct outcome outcome_parse(struct str text);
struct outcome outcome_plan(const struct world *world, struct str text, const char *service);
struct outcome outcome_plan_at(const struct world *world, struct str text, const char *service, const char *site);
void outcome_free(struct outcome *outcome);

#endif
