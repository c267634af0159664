/* Leases and scopes shared between threads. Also run under the thread sanitizer, which is what sees most of it.
 *
 * A cache belongs to one thread. The leases that it gives out may go anywhere: here its thread puts them on a board, from
 * which others take, use and drop them, while the cache replaces their entries all the time.
 */
#include "scope_test.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

enum { WORKERS = 4, BOARD = 16, ROUNDS = 4000, EVALUATIONS = 400 };

struct board {
	pthread_mutex_t mutex;
	struct scope_lease *places[BOARD]; /* each a reference, or NULL */
	bool closed;
	atomic_uint used;  /* by all workers */
	atomic_uint wrong; /* plans that were not what they should be */
};

/* Every text of the stream has the same plan, so that it can be checked without knowing the text. */
static const char *const wanted = "{\"op\":\"otherwise\",\"of\":[{\"op\":\"one\",\"site\":\"Site1\"},"
								  "{\"op\":\"one\",\"site\":\"Site2\"}]}";

static bool is_wanted(const struct scope_lease *lease)
{
	struct buf json = {0};
	scope_plan_json(&json, scope_lease_plan(lease));
	bool right = strcmp(buf_c(&json), wanted) == 0 && scope_text(scope_lease_scope(lease)).length > 0 &&
	             scope_entries_count(scope_lease_scope(lease)) == 1;
	buf_free(&json);
	return right;
}

/* Takes a reference of its own from a place, or the one that is there. NULL: nothing there. */
static struct scope_lease *take(struct board *board, uint32_t place, bool away, bool *closed)
{
	pthread_mutex_lock(&board->mutex);
	struct scope_lease *lease = board->places[place];
	*closed = board->closed;
	if (lease && away)
		board->places[place] = NULL;
	else if (lease)
		scope_lease_keep(lease);
	pthread_mutex_unlock(&board->mutex);
	return lease;
}

static void *work(void *argument)
{
	struct board *board = argument;
	struct scope_lease *held[8] = {NULL};
	bool closed = false;
	for (uint32_t i = 0; !closed; i++) {
		struct scope_lease *lease = take(board, i * 7 % BOARD, i % 3 == 0, &closed);
		if (!lease)
			continue;
		atomic_fetch_add(&board->used, 1);
		if (!is_wanted(lease))
			atomic_fetch_add(&board->wrong, 1);
		struct scope_lease **older = &held[i % 8];
		if (*older)
			scope_lease_drop(*older);
		*older = scope_lease_keep(lease);
		scope_lease_drop(lease);
	}
	/* By now the cache may be gone. */
	for (size_t i = 0; i < sizeof(held) / sizeof(held[0]); i++) {
		if (!held[i])
			continue;
		if (!is_wanted(held[i]))
			atomic_fetch_add(&board->wrong, 1);
		scope_lease_drop(held[i]);
	}
	return NULL;
}

static void put(struct board *board, uint32_t place, struct scope_lease *lease)
{
	pthread_mutex_lock(&board->mutex);
	struct scope_lease *old = board->places[place];
	board->places[place] = lease;
	pthread_mutex_unlock(&board->mutex);
	if (old)
		scope_lease_drop(old);
}

static void test_leases_go_anywhere(void **state)
{
	(void)state;
	struct world world;
	world_open(&world);
	struct board board = {.mutex = PTHREAD_MUTEX_INITIALIZER};
	pthread_t workers[WORKERS];
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i], NULL, work, &board), 0);

	struct scope_cache *cache = scope_cache_new((struct hash_key){3, 4});
	struct scope_request request = {.service = STR("compute"), .at = 0};
	/* At least this many, and until the workers have had their share. */
	for (uint32_t i = 0; i < ROUNDS || atomic_load(&board.used) < ROUNDS; i++) {
		char text[64];
		struct scope_lease *lease;
		struct scope_diag diag;
		/* Mostly new ones, which replace others; some again, so that the cache and the workers hold the same. */
		int length = snprintf(text, sizeof(text), "around(Site1, %u.%03ums)", 8 + i % 2, i % 5 == 0 ? 0 : i / 2 % 1000);
		assert_int_equal(scope_cache_get(cache, str_make(text, (size_t)length), &request, &world.view, &lease, &diag),
		                 0);
		put(&board, i % BOARD, lease);
	}
	struct scope_cache_stats stats = scope_cache_stats(cache);
	scope_cache_free(cache);
	pthread_mutex_lock(&board.mutex);
	board.closed = true;
	pthread_mutex_unlock(&board.mutex);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(workers[i], NULL), 0);
	for (uint32_t i = 0; i < BOARD; i++)
		put(&board, i, NULL);
	pthread_mutex_destroy(&board.mutex);
	world_close(&world);
	assert_true(stats.replaced > 0 && stats.hits > 0);
	assert_int_equal(atomic_load(&board.wrong), 0);
}

/* ---- One scope, many evaluations ---------------------------------------------------------------------------------- */

struct shared {
	const struct scope *scope;
	const struct scope_view *view;
	struct buf expected[3]; /* plan by place */
	atomic_uint wrong;
};

static bool evaluate(struct arena *arena, const struct shared *shared, uint32_t at, struct buf *json)
{
	const struct scope_plan *plan;
	struct scope_diag diag;
	struct scope_request request = {.service = STR("compute"), .at = at};
	if (scope_evaluate(arena, shared->scope, &request, shared->view, &plan, &diag))
		return false;
	buf_clear(json);
	scope_plan_json(json, plan);
	scope_plan_draw(json, plan, true);
	scope_print(json, shared->scope, STR("compute"));
	return true;
}

static void *evaluate_often(void *argument)
{
	struct shared *shared = argument;
	struct arena arena;
	struct buf json = {0};
	arena_init(&arena, 0);
	for (uint32_t i = 0; i < EVALUATIONS; i++) {
		uint32_t at = i % 3;
		if (!evaluate(&arena, shared, at, &json) || !str_equal(buf_str(&json), buf_str(&shared->expected[at])))
			atomic_fetch_add(&shared->wrong, 1);
		arena_reset(&arena);
	}
	buf_free(&json);
	arena_free(&arena);
	return NULL;
}

static void test_one_scope_is_evaluated_by_many(void **state)
{
	(void)state;
	struct world world;
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	world_open(&world);
	arena_init(&arena, 0);
	const struct str text =
		STR("image: Site3, compute: !Site1 | around(Site2, 10ms) ; weak(nearest(2) & Site4); (Site1 % Site3) & Site2");
	assert_int_equal(scope_parse(&arena, text, &scope, &diag), 0);
	assert_int_equal(scope_check(&arena, scope, &diag), 0);
	struct shared shared = {.scope = scope, .view = &world.view};
	for (uint32_t at = 0; at < 3; at++)
		assert_true(evaluate(&arena, &shared, at, &shared.expected[at]));
	pthread_t workers[WORKERS];
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_create(&workers[i], NULL, evaluate_often, &shared), 0);
	for (int i = 0; i < WORKERS; i++)
		assert_int_equal(pthread_join(workers[i], NULL), 0);
	assert_int_equal(atomic_load(&shared.wrong), 0);
	for (uint32_t at = 0; at < 3; at++)
		buf_free(&shared.expected[at]);
	arena_free(&arena);
	world_close(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_leases_go_anywhere),
		cmocka_unit_test(test_one_scope_is_evaluated_by_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
