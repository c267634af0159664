/* Distances that nobody measured. */
#include "site_test.h"

#include "base/bytes.h"

#include <math.h>

enum { SITES = 20 };

/* Twenty towns by longitude and latitude. A path is a bit longer than the shortest one, each pair by its own part; each has
 * an access line. */
static const struct {
	double east;
	double north;
} towns[SITES] = {
	{-1.6, 48.1},   {2.4, 48.9},   {4.8, 45.8},  {5.7, 45.2},    {7.3, 43.7},   {-0.1, 51.5},   {4.9, 52.4},
	{13.4, 52.5},   {-3.7, 40.4},  {12.5, 41.9}, {-74.0, 40.7},  {-87.6, 41.9}, {-122.4, 37.8}, {-99.1, 19.4},
	{-46.6, -23.5}, {139.7, 35.7}, {103.8, 1.3}, {151.2, -33.9}, {77.2, 28.6},  {18.4, -33.9},
};

static double distance_km(uint32_t a, uint32_t b)
{
	double f = 3.14159265 / 180, dn = (towns[a].north - towns[b].north) * f, de = (towns[a].east - towns[b].east) * f;
	double h =
		sin(dn / 2) * sin(dn / 2) + cos(towns[a].north * f) * cos(towns[b].north * f) * sin(de / 2) * sin(de / 2);
	return 12742 * asin(sqrt(h));
}

static uint32_t one_way_us(uint32_t a, uint32_t b)
{
	uint64_t pair = site_place((a < b ? a : b) * 100 + (a < b ? b : a));
	double detour = 1.3 + 0.5 * (double)(pair % 1000) / 1000; /* of the shortest path, in glass: 5 µs per km */
	double lines = 200.0 + 300.0 * (a % 5) + 200.0 + 300.0 * (b % 5);
	return (uint32_t)(distance_km(a, b) * 5 * detour + lines);
}

static struct world *towns_world(void)
{
	struct world *world = world_new(SITES);
	for (uint32_t i = 0; i < SITES; i++)
		for (uint32_t j = 0; j < SITES; j++)
			world->one_way_us[i][j] = one_way_us(i, j);
	world_start_some(world, SITES);
	return world;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* As seen from one site: all pairs. */
static double median_error(const struct world *world, uint32_t at)
{
	const struct site *site = world->nodes[at].site;
	double errors[SITES * SITES];
	size_t count = 0;
	for (uint32_t a = 0; a < SITES; a++) {
		for (uint32_t b = a + 1; b < SITES; b++) {
			double real = 2.0 * one_way_us(a, b);
			int64_t estimate = site_estimate_us(site, site_find(site, world_id(a)), site_find(site, world_id(b)));
			assert_true(estimate > 0);
			errors[count++] = fabs((double)estimate - real) / real;
		}
	}
	qsort(errors, count, sizeof(double), compare);
	return errors[count / 2];
}

static void distances_between_any_two_are_known_everywhere(void **state)
{
	(void)state;
	struct world *world = towns_world();
	world_run(world, 180 * (uint64_t)SECOND_US);
	for (uint32_t at = 0; at < SITES; at += 6) {
		double error = median_error(world, at);
		print_message("# median error at Site%u: %.1f %%\n", at, 100 * error);
		assert_true(error < 0.15);
	}
	world_free(world);
}

/* A busy machine reads late what came in time, at either end. */
static void what_waits_is_not_far(void **state)
{
	(void)state;
	struct world *world = world_of(2);
	world->waits_us[0] = 30000;
	world->waits_us[1] = 70000;
	world_run(world, 60 * (uint64_t)SECOND_US);
	for (uint32_t at = 0; at < 2; at++) {
		struct site *site = world->nodes[at].site;
		uint32_t number = site_find(site, world_id(1 - at));
		uint64_t real_us = 2 * (uint64_t)world->one_way_us[0][1];
		struct site_member member;
		site_member(site, number, &member);
		assert_in_range(member.rtt_us, real_us - real_us / 20, real_us + real_us / 20);
		assert_in_range(site_estimate_us(site, 0, number), real_us - real_us / 5, real_us + real_us / 5);
	}
	world_free(world);
}

/* Whoever says that it waited longer than all of it took has only said that it is near. */
static void who_exaggerates_is_near(void **state)
{
	(void)state;
	struct world *world = world_of(2);
	struct site *site = world->nodes[0].site;
	world_run(world, 10 * (uint64_t)SECOND_US);
	for (uint32_t sequence = 1; sequence < 100; sequence++) {
		struct buf bytes = {0};
		struct message message = {.type = TYPE_ACK, .incarnation = 1, .sequence = sequence};
		message_begin(&bytes, &message);
		size_t at = section_begin(&bytes, SECTION_WAITED);
		put_number(&bytes, UINT32_MAX, WAITED_BYTES);
		section_end(&bytes, at);
		site_receive(site, world_id(1), buf_str(&bytes), world->now);
		buf_free(&bytes);
	}
	world_run(world, 10 * (uint64_t)SECOND_US);
	assert_in_range(site_estimate_us(site, 0, site_find(site, world_id(1))), 0, 1000000);
	world_free(world);
}

/* One answer in twenty is a second late. */
static void late_answers_move_nothing(void **state)
{
	(void)state;
	struct world *world = world_of(2);
	world_run(world, 60 * (uint64_t)SECOND_US);
	struct site *site = world->nodes[0].site;
	uint32_t number = site_find(site, world_id(1));
	for (int i = 0; i < 200; i++)
		coordinate_sample(site, number, i % 20 == 0 ? 1000000 : 20000);
	struct site_member member;
	site_member(site, number, &member);
	assert_in_range(member.rtt_us, 19000, 21000);
	assert_in_range(site_estimate_us(site, 0, number), 18000, 22000);
	world_free(world);
}

/* Who sends requests goes by the distance that was published: a first measurement that is far from it is told at once, other
 * changes as drift. */
static void a_measured_distance_that_surprises_is_told(void **state)
{
	(void)state;
	static const struct {
		uint64_t rtt_us;
		bool told;
	} rows[] = {{2000000, true}, {100000, true}, {21000, false}, {19000, false}};
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct world *world = world_of(2);
		world_run(world, 60 * (uint64_t)SECOND_US);
		struct site *site = world->nodes[0].site;
		uint32_t number = site_find(site, world_id(1));
		for (int n = 0; n < 200; n++)
			coordinate_sample(site, number, 20000);
		site_drift_reset(site);
		for (int n = 0; n < SITE_SAMPLES; n++) /* a low one of some counts */
			coordinate_sample(site, number, rows[i].rtt_us);
		assert_int_equal(site_drift(site) > 0.5, rows[i].told);
		/* And as the first that was measured, where coordinates know nothing: both are at one place. */
		site->members[number].coordinate = site->members[0].coordinate;
		site->members[number].rtt_us = 0;
		uint64_t epoch = site_epoch(site);
		coordinate_sample(site, number, rows[i].rtt_us);
		assert_true(site_epoch(site) > epoch);
		/* Once only: from then on it is drift. */
		epoch = site_epoch(site);
		coordinate_sample(site, number, rows[i].rtt_us);
		assert_int_equal(site_epoch(site), epoch);
		world_free(world);
	}
}

static void absurd_samples_are_not_taken(void **state)
{
	(void)state;
	struct site_coordinate at = {{1, 2, 3, 4}, 100, 0.5f}, other = {{9, 2, 3, 4}, 100, 0.5f}, was = at;
	assert_false(coordinate_move(&at, &other, 0, 1));
	assert_false(coordinate_move(&at, &other, 31 * SECOND_US, 1));
	assert_memory_equal(&at, &was, sizeof(at));
	const struct site_coordinate unsound[] = {
		{{NAN, 0, 0, 0}, 0, 1},
		{{0, 0, 0, INFINITY}, 0, 1},
		{{1e9f, 0, 0, 0}, 0, 1},
		{{0}, -1, 1},
		{{0}, NAN, 1},
		{{0}, 0, NAN},
		{{0}, 0, 0},
	};
	for (size_t i = 0; i < COUNT(unsound); i++) {
		assert_false(coordinate_is_sound(&unsound[i]));
		assert_true(coordinate_move(&at, &unsound[i], 20000, 7)); /* as if it were nowhere yet */
		assert_true(coordinate_is_sound(&at));
	}
}

/* Whatever is measured: it stays where it can be told. */
static void a_place_stays_within_bounds(void **state)
{
	(void)state;
	struct site_coordinate at = {.error = 0}, others[8];
	uint64_t random = 3;
	for (int i = 0; i < 20000; i++) {
		random = site_place(random);
		struct site_coordinate *other = &others[random % 8];
		for (int j = 0; j < SITE_DIMENSIONS; j++)
			other->at[j] = (float)((int64_t)(site_place(random + (uint64_t)j) % 16000000) - 8000000);
		other->height = (float)(random % 8000000);
		other->error = (float)(random % 1000 + 1) / 1000;
		coordinate_move(&at, other, (uint32_t)(random >> 40) % (30 * SECOND_US) + 1, random);
		assert_true(coordinate_is_sound(&at));
		assert_true(at.error <= 1.5f && at.height >= 0 && fabsf(at.at[0]) <= 8.0e6f);
	}
}

static void drift_tells_how_much_distances_changed(void **state)
{
	(void)state;
	struct world *world = world_of(5);
	world_run(world, 120 * (uint64_t)SECOND_US);
	struct site *site = world->nodes[0].site;
	site_drift_reset(site);
	assert_true(site_drift(site) < 0.001);
	world_run(world, 10 * (uint64_t)SECOND_US);
	assert_true(site_drift(site) < 0.3);
	for (uint32_t i = 0; i < 4; i++)
		world->one_way_us[i][4] = world->one_way_us[4][i] = 200000;
	world_run(world, 60 * (uint64_t)SECOND_US);
	assert_true(site_drift(site) > 0.3);
	world_free(world);
}

static void nowhere_is_not_a_place(void **state)
{
	(void)state;
	struct world *world = world_new(2);
	world_start(world, 0);
	world_introduce(world, 0, 1);
	assert_int_equal(site_estimate_us(world->nodes[0].site, 0, 1), SCOPE_RTT_UNKNOWN);
	assert_int_equal(site_estimate_us(world->nodes[0].site, 1, 1), 0);
	world_free(world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(distances_between_any_two_are_known_everywhere),
		cmocka_unit_test(what_waits_is_not_far),
		cmocka_unit_test(who_exaggerates_is_near),
		cmocka_unit_test(late_answers_move_nothing),
		cmocka_unit_test(a_measured_distance_that_surprises_is_told),
		cmocka_unit_test(absurd_samples_are_not_taken),
		cmocka_unit_test(a_place_stays_within_bounds),
		cmocka_unit_test(drift_tells_how_much_distances_changed),
		cmocka_unit_test(nowhere_is_not_a_place),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
