/* When there is nothing left to wait for; and the word for a copy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/engine_int.h"

enum { MEMBERS = 3 };

#define P REPLICA_PENDING
#define A REPLICA_APPLIED
#define S REPLICA_SUPERSEDED
#define R REPLICA_REJECTED
#define D REPLICA_IN_DOUBT

static const struct {
	enum replica_member_state states[MEMBERS]; /* of the sites 1, 2, 3 */
	enum engine_until until;
	site_id site;
	bool over;
	bool reached;
} cases[] = {
	{{P, P, P}, ENGINE_NOW, 0, true, true},
	{{A, P, P}, ENGINE_ALL, 0, false, false},
	{{A, A, P}, ENGINE_ALL, 0, false, false},
	{{A, S, A}, ENGINE_ALL, 0, true, true},
	{{A, R, P}, ENGINE_ALL, 0, false, false}, /* somebody may still decide on it, while another is awaited anyway */
	{{A, R, A}, ENGINE_ALL, 0, true, false},
	{{A, D, A}, ENGINE_ALL, 0, true, false},
	{{A, P, P}, ENGINE_MAJORITY, 0, false, false},
	{{A, P, S}, ENGINE_MAJORITY, 0, true, true},
	{{R, A, A}, ENGINE_MAJORITY, 0, true, true},
	{{R, R, A}, ENGINE_MAJORITY, 0, true, false},
	{{A, P, P}, ENGINE_SITE, 1, true, true},
	{{A, P, P}, ENGINE_SITE, 2, false, false},
	{{A, D, P}, ENGINE_SITE, 2, true, false},
	{{A, A, A}, ENGINE_SITE, 9, true, false}, /* no member: there is nothing to wait for */
};

static void when_it_is_over(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct replica_op_view view = {.members_count = MEMBERS};
		bool reached;
		for (uint32_t m = 0; m < MEMBERS; m++) {
			view.members[m].site = m + 1;
			view.members[m].state = cases[i].states[m];
		}
		assert_int_equal(engine_is_over(&view, cases[i].until, cases[i].site, &reached), cases[i].over);
		assert_int_equal(reached, cases[i].reached);
	}
}

static void the_worst_of_a_copy(void **state)
{
	(void)state;
	static const struct {
		struct replica_member_view member;
		bool deleted;
		const char *word;
	} copies[] = {
		{{.settled = true}, false, "settled"},
		{{.settled = true}, true, "deleted"},
		{{.pending = 1}, false, "pending"},
		{{.pending = 1}, true, "pending"},
		{{.pending = 1, .stuck = true}, false, "stuck"},
		{{.settled = true, .rejected = 1}, false, "rejected"},
		{{.pending = 1, .rejected = 1, .in_doubt = 1}, false, "in-doubt"},
		{{.stuck = true, .diverged = true, .in_doubt = 1}, false, "diverged"},
	};
	for (size_t i = 0; i < sizeof(copies) / sizeof(copies[0]); i++) {
		struct replica_view view = {.deleted = copies[i].deleted};
		assert_string_equal(engine_copy_name(engine_copy_of(&view, &copies[i].member)), copies[i].word);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(when_it_is_over), cmocka_unit_test(the_worst_of_a_copy)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
