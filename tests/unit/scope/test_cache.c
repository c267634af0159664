/* Scopes seen before: what is remembered, for how long, and that nobody can fill the memory with it. */
#include "scope_test.h"

#include <stdio.h>

static const struct hash_key key = {0x0123456789abcdef, 0xfedcba9876543210};

struct fixture {
	struct world world;
	struct scope_cache *cache;
};

static struct fixture fixture_open(void)
{
	struct fixture fixture;
	world_open(&fixture.world);
	fixture.cache = scope_cache_new(key);
	return fixture;
}

static void fixture_close(struct fixture *fixture)
{
	scope_cache_free(fixture->cache);
	world_close(&fixture->world);
}

static struct scope_lease *get_at(struct fixture *fixture, struct str text, const char *service, uint32_t at)
{
	struct scope_lease *lease = NULL;
	struct scope_diag diag;
	struct scope_request request = {.service = str_of(service), .at = at};
	if (scope_cache_get(fixture->cache, text, &request, &fixture->world.view, &lease, &diag))
		fail_msg("%.*s: %s", STR_FMT(text), diag.message);
	return lease;
}

static struct scope_lease *get(struct fixture *fixture, const char *text)
{
	return get_at(fixture, str_of(text), "compute", 0);
}

static void check_plan(const struct scope_lease *lease, const char *json)
{
	struct buf out = {0};
	scope_plan_json(&out, scope_lease_plan(lease));
	assert_string_equal(buf_c(&out), json);
	buf_free(&out);
}

static void check_stats(const struct fixture *fixture, uint64_t hits, uint64_t misses, uint32_t entries)
{
	struct scope_cache_stats stats = scope_cache_stats(fixture->cache);
	assert_int_equal(stats.hits, hits);
	assert_int_equal(stats.misses, misses);
	assert_int_equal(stats.entries, entries);
	assert_true((stats.bytes > 0) == (entries > 0));
}

static void check_bounds(const struct scope_cache *cache)
{
	struct scope_cache_stats stats = scope_cache_stats(cache);
	assert_true(stats.entries <= LIMIT_SCOPE_CACHE_ENTRIES);
	assert_true(stats.bytes <= LIMIT_SCOPE_CACHE_BYTES);
}

/* ---- What is remembered ------------------------------------------------------------------------------------------ */

static void test_a_repeated_scope_is_a_hit(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	check_stats(&fixture, 0, 0, 0);
	struct scope_lease *first = get(&fixture, "Site1 & Site2");
	check_stats(&fixture, 0, 1, 1);
	struct scope_lease *second = get(&fixture, "Site1 & Site2");
	check_stats(&fixture, 1, 1, 1);
	assert_ptr_equal(first, second);
	assert_true(str_equal(scope_text(scope_lease_scope(first)), STR("Site1 & Site2")));
	check_plan(second, "{\"op\":\"all\",\"consistency\":\"eventual\",\"of\":["
	                   "{\"op\":\"one\",\"site\":\"Site1\"},{\"op\":\"one\",\"site\":\"Site2\"}]}");
	scope_lease_drop(first);
	scope_lease_drop(second);

	/* The key is the text, not what it means. */
	scope_lease_drop(get(&fixture, "Site1&Site2"));
	check_stats(&fixture, 1, 2, 2);
	fixture_close(&fixture);
}

static void test_a_change_of_the_view_makes_the_plan_anew(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	struct scope_lease *old = get(&fixture, "around(Site1, 9ms)");
	scope_table_set_rtt(fixture.world.table, 0, 2, 1000);
	fixture.world.view = scope_table_view(fixture.world.table);
	struct scope_lease *new = get(&fixture, "around(Site1, 9ms)");
	check_stats(&fixture, 0, 2, 1);
	assert_int_equal(scope_cache_stats(fixture.cache).replaced, 1);
	check_plan(old, "{\"op\":\"otherwise\",\"of\":[{\"op\":\"one\",\"site\":\"Site1\"},"
	                "{\"op\":\"one\",\"site\":\"Site2\"}]}");
	check_plan(new, "{\"op\":\"otherwise\",\"of\":[{\"op\":\"one\",\"site\":\"Site1\"},"
	                "{\"op\":\"one\",\"site\":\"Site3\"},{\"op\":\"one\",\"site\":\"Site2\"}]}");
	scope_lease_drop(new);
	new = get(&fixture, "around(Site1, 9ms)");
	check_stats(&fixture, 1, 2, 1);
	scope_lease_drop(new);
	scope_lease_drop(old);
	fixture_close(&fixture);
}

static void test_services_do_not_mix(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	const struct str text = STR("compute: Site1, image: Site2");
	for (int round = 0; round < 3; round++) {
		struct scope_lease *compute = get_at(&fixture, text, "compute", 0);
		struct scope_lease *image = get_at(&fixture, text, "image", 0);
		struct scope_lease *volume = get_at(&fixture, text, "volume", 0);
		check_plan(compute, "{\"op\":\"one\",\"site\":\"Site1\"}");
		check_plan(image, "{\"op\":\"one\",\"site\":\"Site2\"}");
		check_plan(volume, "{\"op\":\"one\",\"site\":\"Site1\"}");
		assert_true(str_equal(scope_lease_plan(volume)->service, STR("volume")));
		scope_lease_drop(compute);
		scope_lease_drop(image);
		scope_lease_drop(volume);
		check_stats(&fixture, 3 * (uint64_t)round, 3, 3);
	}
	fixture_close(&fixture);
}

static void test_places_do_not_mix(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	for (int round = 0; round < 3; round++) {
		for (uint32_t at = 0; at < 3; at++) {
			struct scope_lease *lease = get_at(&fixture, STR("nearest(1)"), "compute", at);
			static const char *const nearest[] = {"{\"op\":\"one\",\"site\":\"Site1\"}",
			                                      "{\"op\":\"one\",\"site\":\"Site2\"}",
			                                      "{\"op\":\"one\",\"site\":\"Site3\"}"};
			check_plan(lease, nearest[at]);
			scope_lease_drop(lease);
		}
	}
	fixture_close(&fixture);
}

/* The entry without a service is for the addressed one only: the same text and service, but not the same plan. */
static void test_inner_requests_do_not_mix(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	for (int round = 0; round < 6; round++) {
		struct scope_lease *lease;
		struct scope_diag diag;
		struct scope_request request = {.service = STR("compute"), .inner = round % 2};
		assert_int_equal(
			scope_cache_get(fixture.cache, STR("Site2, image: Site3"), &request, &fixture.world.view, &lease, &diag),
			0);
		check_plan(lease,
		           request.inner ? "{\"op\":\"one\",\"site\":\"Site1\"}" : "{\"op\":\"one\",\"site\":\"Site2\"}");
		scope_lease_drop(lease);
	}
	fixture_close(&fixture);
}

static void check_bound(struct fixture *fixture, const char *text, bool inner, const char *expected)
{
	struct scope_lease *lease;
	struct scope_diag diag;
	struct scope_request request = {.service = STR("compute"), .inner = inner};
	for (int again = 0; again < 2; again++) {
		int code = scope_cache_get(fixture->cache, str_of(text), &request, &fixture->world.view, &lease, &diag);
		assert_int_equal(code, 0);
		assert_true(str_equal(scope_lease_bound(lease), str_of(expected)));
		scope_lease_drop(lease);
	}
}

/* What travels on: the entry without a service now says whose it is, and only where it is that of this request. */
static void test_the_text_that_travels_on(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	check_bound(&fixture, "Site2", false, "compute: Site2");
	check_bound(&fixture, "{image:Site3,Site1&Site2}", false, "image: Site3, compute: Site1 & Site2");
	check_bound(&fixture, "compute: Site2", false, "compute: Site2");
	check_bound(&fixture, "Site2, compute: Site3", true, "Site2, compute: Site3");
	fixture_close(&fixture);
}

/* ---- What is not ------------------------------------------------------------------------------------------------- */

static void test_a_refused_scope_is_not_remembered(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	static const struct {
		const char *text;
		enum scope_fault fault;
	} refused[] = {
		{"Site1 &", SCOPE_FAULT_SYNTAX},
		{"strong(Site1; Site2)", SCOPE_FAULT_NO_MEANING},
		{"Site9", SCOPE_FAULT_UNKNOWN_SITE},
	};
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
		for (int again = 0; again < 2; again++) {
			struct scope_lease *lease = NULL;
			struct scope_diag diag;
			struct scope_request request = {.service = STR("compute"), .at = 0};
			assert_true(scope_cache_get(fixture.cache, str_of(refused[i].text), &request, &fixture.world.view, &lease,
			                            &diag) < 0);
			assert_int_equal(diag.fault, refused[i].fault);
			assert_null(lease);
		}
	}
	check_stats(&fixture, 0, 6, 0);
	fixture_close(&fixture);
}

static void test_a_long_text_is_planned_but_not_remembered(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	char text[LIMIT_SCOPE_CACHED_BYTES + 1];
	memset(text, ' ', sizeof(text));
	memcpy(text, "Site2", 5);
	for (int again = 0; again < 2; again++) {
		struct scope_lease *lease = get_at(&fixture, str_make(text, sizeof(text)), "compute", 0);
		check_plan(lease, "{\"op\":\"one\",\"site\":\"Site2\"}");
		scope_lease_drop(lease);
	}
	check_stats(&fixture, 0, 2, 0);
	for (int again = 0; again < 2; again++)
		scope_lease_drop(get_at(&fixture, str_make(text, sizeof(text) - 1), "compute", 0));
	check_stats(&fixture, 1, 3, 1);
	fixture_close(&fixture);
}

/* A world of many sites, in which a short text makes a large plan. */
static void open_large_world(struct fixture *fixture, uint32_t sites)
{
	arena_init(&fixture->world.arena, 0);
	fixture->world.table = scope_table_new(&fixture->world.arena);
	for (uint32_t i = 0; i < sites; i++) {
		char name[16];
		int length = snprintf(name, sizeof(name), "s%u", i);
		scope_table_add_site(fixture->world.table, (struct scope_site){.name = str_make(name, (size_t)length)});
	}
	fixture->world.view = scope_table_view(fixture->world.table);
	fixture->cache = scope_cache_new(key);
}

static void test_a_large_plan_is_not_remembered(void **state)
{
	(void)state;
	struct fixture fixture;
	open_large_world(&fixture, 300);
	for (int again = 0; again < 2; again++) {
		struct scope_lease *lease = get(&fixture, "!s1");
		assert_int_equal(scope_lease_plan(lease)->root->of_count, LIMIT_SCOPE_SITES);
		scope_lease_drop(lease);
	}
	check_stats(&fixture, 0, 2, 0);
	fixture_close(&fixture);
}

/* ---- Bounds ------------------------------------------------------------------------------------------------------ */

/* Distinct scopes, as many as somebody cares to send. In between, one that is asked for all the time. */
static void test_a_stream_of_distinct_scopes(void **state)
{
	(void)state;
	enum { STREAM = 200000, POPULAR_EACH = 8 };
	struct fixture fixture = fixture_open();
	uint32_t asked = 0, popular_hits = 0;
	for (uint32_t i = 0; i < STREAM; i++) {
		char text[64];
		int length = snprintf(text, sizeof(text), "around(Site%u, %uus)", i % 5 + 1, i + 1);
		scope_lease_drop(get_at(&fixture, str_make(text, (size_t)length), "compute", 0));
		check_bounds(fixture.cache);
		if (i % POPULAR_EACH)
			continue;
		uint64_t before = scope_cache_stats(fixture.cache).hits;
		scope_lease_drop(get(&fixture, "Site1 & Site2"));
		popular_hits += scope_cache_stats(fixture.cache).hits > before;
		asked++;
	}
	struct scope_cache_stats stats = scope_cache_stats(fixture.cache);
	assert_int_equal(stats.hits + stats.misses, STREAM + asked);
	assert_true(stats.misses >= STREAM);
	assert_int_equal(stats.entries + stats.replaced, stats.misses);
	/* It shares a set with one in 64 of the others: they hardly ever fill all ways between two of its turns. */
	assert_true(popular_hits > asked / 100 * 99);
	fixture_close(&fixture);
}

/* Each as large as the cache takes: now it is the memory that is short. */
static void test_a_stream_of_large_scopes(void **state)
{
	(void)state;
	enum { STREAM = 4000, POPULAR_EACH = 8 };
	struct fixture fixture;
	open_large_world(&fixture, 100);
	uint32_t asked = 0, popular_hits = 0, most_entries = 0;
	size_t most_bytes = 0;
	for (uint32_t i = 0; i < STREAM; i++) {
		/* A different number of spaces makes a different text. */
		char text[LIMIT_SCOPE_CACHED_BYTES];
		int length = snprintf(text, sizeof(text), "!s%u%*s", i % 100, (int)(1 + i / 100), "");
		scope_lease_drop(get_at(&fixture, str_make(text, (size_t)length), "compute", 0));
		check_bounds(fixture.cache);
		struct scope_cache_stats stats = scope_cache_stats(fixture.cache);
		most_entries = stats.entries > most_entries ? stats.entries : most_entries;
		most_bytes = stats.bytes > most_bytes ? stats.bytes : most_bytes;
		if (i % POPULAR_EACH)
			continue;
		uint64_t before = stats.hits;
		scope_lease_drop(get(&fixture, "s1 & s2"));
		popular_hits += scope_cache_stats(fixture.cache).hits > before;
		asked++;
	}
	assert_true(most_bytes > LIMIT_SCOPE_CACHE_BYTES - LIMIT_SCOPE_CACHED_PLAN_BYTES);
	assert_true(most_entries < LIMIT_SCOPE_CACHE_ENTRIES);
	assert_true(popular_hits > asked / 4 * 3);
	fixture_close(&fixture);
}

/* ---- Leases ------------------------------------------------------------------------------------------------------ */

static void test_a_lease_outlives_its_entry_and_the_cache(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	struct scope_lease *lease = get(&fixture, "Site2 % Site1");
	struct scope_lease *kept = scope_lease_keep(lease);
	assert_ptr_equal(kept, lease);
	for (uint32_t i = 0; i < 20 * LIMIT_SCOPE_CACHE_ENTRIES; i++) {
		char text[32];
		int length = snprintf(text, sizeof(text), "around(Site1, %uus)", i + 1);
		scope_lease_drop(get_at(&fixture, str_make(text, (size_t)length), "compute", 0));
	}
	uint64_t misses = scope_cache_stats(fixture.cache).misses;
	struct scope_lease *anew = get(&fixture, "Site2 % Site1");
	assert_int_equal(scope_cache_stats(fixture.cache).misses, misses + 1);
	assert_ptr_not_equal(anew, lease);
	fixture_close(&fixture);

	static const char *const json = "{\"op\":\"span\",\"prime\":\"Site2\",\"sites\":[\"Site2\",\"Site1\"]}";
	check_plan(anew, json);
	scope_lease_drop(anew);
	scope_lease_drop(lease);
	check_plan(kept, json);
	assert_true(str_equal(scope_text(scope_lease_scope(kept)), STR("Site2 % Site1")));
	assert_true(str_equal(scope_lease_plan(kept)->at, STR("Site1")));
	scope_lease_drop(kept);
}

/* The plan holds no pointer into what the caller gave. */
static void test_a_lease_keeps_nothing_of_the_request(void **state)
{
	(void)state;
	struct fixture fixture = fixture_open();
	char *text = test_malloc(8), *service = test_malloc(7);
	memcpy(text, "{Site2 }", 8);
	memcpy(service, "compute", 7);
	struct scope_lease *lease;
	struct scope_diag diag;
	struct scope_request request = {.service = str_make(service, 7), .at = 0};
	assert_int_equal(scope_cache_get(fixture.cache, str_make(text, 8), &request, &fixture.world.view, &lease, &diag),
	                 0);
	test_free(text);
	test_free(service);
	fixture_close(&fixture);
	check_plan(lease, "{\"op\":\"one\",\"site\":\"Site2\"}");
	assert_true(str_equal(scope_lease_plan(lease)->service, STR("compute")));
	assert_true(str_equal(scope_text(scope_lease_scope(lease)), STR("{Site2 }")));
	scope_lease_drop(lease);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_a_repeated_scope_is_a_hit),
		cmocka_unit_test(test_a_change_of_the_view_makes_the_plan_anew),
		cmocka_unit_test(test_services_do_not_mix),
		cmocka_unit_test(test_places_do_not_mix),
		cmocka_unit_test(test_inner_requests_do_not_mix),
		cmocka_unit_test(test_the_text_that_travels_on),
		cmocka_unit_test(test_a_refused_scope_is_not_remembered),
		cmocka_unit_test(test_a_long_text_is_planned_but_not_remembered),
		cmocka_unit_test(test_a_large_plan_is_not_remembered),
		cmocka_unit_test(test_a_stream_of_distinct_scopes),
		cmocka_unit_test(test_a_stream_of_large_scopes),
		cmocka_unit_test(test_a_lease_outlives_its_entry_and_the_cache),
		cmocka_unit_test(test_a_lease_keeps_nothing_of_the_request),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
