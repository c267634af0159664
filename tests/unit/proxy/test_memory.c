/* Which scope belongs to an id: what is certain, what is not, and that a flood of ids costs no more than its bound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "proxy/proxy_int.h"

static const struct str image_at_2 = STR_INIT("compute: Site1, image: Site2");
static const struct str image_at_3 = STR_INIT("compute: Site1, image: Site3");

enum { LIFE_MS = 10 * 60 * 1000 };

struct table {
	struct proxy_memory *memory;
	struct arena arena;
};

static int open_table(void **state)
{
	static struct table table;
	table.memory = proxy_memory_new((struct hash_key){1, 2});
	arena_init(&table.arena, 0);
	*state = &table;
	return 0;
}

static int close_table(void **state)
{
	struct table *table = *state;
	proxy_memory_free(table->memory);
	arena_free(&table->arena);
	return 0;
}

static void put(struct table *table, const char *id, const char *service, struct str scope, uint64_t now_ms)
{
	proxy_memory_put(table->memory, str_of(id), str_of(service), scope, now_ms);
}

/* "" nothing is known, "?" it is ambiguous, else the scope. */
static struct str get(struct table *table, const char *id, const char *service, uint64_t now_ms)
{
	struct str scope = STR("");
	switch (proxy_memory_get(table->memory, str_of(id), str_of(service), &table->arena, &scope, now_ms)) {
	case PROXY_MEMORY_AMBIGUOUS: return STR("?");
	case PROXY_MEMORY_FOUND: return scope;
	default: return STR("");
	}
}

#define assert_str(actual, expected) assert_true(str_equal((actual), (expected)))

static void test_a_call_finds_the_scope_of_its_id(void **state)
{
	put(*state, "a", "compute", image_at_2, 1);
	put(*state, "b", "compute", image_at_3, 1);
	assert_str(get(*state, "a", "image", 2), image_at_2);
	assert_str(get(*state, "b", "image", 2), image_at_3);
	assert_str(get(*state, "c", "image", 2), STR(""));
}

static void test_an_id_with_two_scopes_is_ambiguous(void **state)
{
	put(*state, "a", "compute", image_at_2, 1);
	put(*state, "a", "compute", image_at_2, 2);
	assert_str(get(*state, "a", "image", 3), image_at_2);
	put(*state, "a", "compute", image_at_3, 4);
	assert_str(get(*state, "a", "image", 5), STR("?"));
}

static void test_a_client_that_keeps_its_id_is_not_its_own_callee(void **state)
{
	put(*state, "a", "compute", image_at_2, 1);
	assert_str(get(*state, "a", "compute", 2), STR(""));
	assert_str(get(*state, "a", "image", 3), STR("?"));
}

static void test_a_workflow_may_come_back_to_its_first_service(void **state)
{
	put(*state, "a", "compute", image_at_2, 1);
	put(*state, "a", "image", image_at_2, 2);
	assert_str(get(*state, "a", "compute", 3), image_at_2);
}

static void test_ids_are_forgotten_in_time(void **state)
{
	put(*state, "a", "compute", image_at_2, 1);
	assert_str(get(*state, "a", "image", LIFE_MS), image_at_2);
	assert_str(get(*state, "a", "image", LIFE_MS + 1), STR(""));
	put(*state, "a", "compute", image_at_3, LIFE_MS + 2);
	assert_str(get(*state, "a", "image", LIFE_MS + 3), image_at_3);
}

static void test_ids_of_no_use_are_not_kept(void **state)
{
	char id[PROXY_ID_MOST_BYTES + 2];
	memset(id, 'x', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	put(*state, id, "compute", image_at_2, 1);
	assert_str(get(*state, id, "image", 2), STR(""));
	id[PROXY_ID_MOST_BYTES] = '\0';
	put(*state, id, "compute", image_at_2, 1);
	assert_str(get(*state, id, "image", 2), image_at_2);
	put(*state, "", "compute", image_at_2, 1);
	assert_str(get(*state, "", "image", 2), STR(""));
}

/* Half a million ids: the newest are there, the oldest are gone. */
static void test_a_flood_pushes_out_the_oldest(void **state)
{
	enum { FLOOD = 500000, HELD = 64 * 1024 };
	struct buf id = {0};
	uint32_t known = 0;
	for (uint32_t i = 0; i < FLOOD; i++) {
		buf_clear(&id);
		buf_put_number(&id, i, 8);
		put(*state, buf_c(&id), "compute", image_at_2, 1);
	}
	assert_str(get(*state, buf_c(&id), "image", 2), image_at_2);
	for (uint32_t i = 0; i < FLOOD; i++) {
		buf_clear(&id);
		buf_put_number(&id, i, 8);
		known += get(*state, buf_c(&id), "image", 2).length > 0;
	}
	assert_in_range(known, HELD / 2, HELD);
	assert_str(get(*state, "00000000", "image", 2), STR(""));
	buf_free(&id);
}

int main(void)
{
#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, open_table, close_table)
	const struct CMUnitTest tests[] = {
		WITH_TABLE(test_a_call_finds_the_scope_of_its_id),
		WITH_TABLE(test_an_id_with_two_scopes_is_ambiguous),
		WITH_TABLE(test_a_client_that_keeps_its_id_is_not_its_own_callee),
		WITH_TABLE(test_a_workflow_may_come_back_to_its_first_service),
		WITH_TABLE(test_ids_are_forgotten_in_time),
		WITH_TABLE(test_ids_of_no_use_are_not_kept),
		WITH_TABLE(test_a_flood_pushes_out_the_oldest),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
