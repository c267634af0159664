/* Division of numbers and bodies: exact, and with the least movement. */
#include "cross_test.h"

/* One by one, as the method is defined. */
static void slowly(uint64_t whole, const struct cross_division *division, uint64_t *parts)
{
	memset(parts, 0, division->count * sizeof(*parts));
	for (; whole > 0; whole--) {
		uint32_t best = 0;
		for (uint32_t i = 1; i < division->count; i++)
			if (division->shares[i].weight * (2 * parts[best] + 1) > division->shares[best].weight * (2 * parts[i] + 1))
				best = i;
		parts[best]++;
	}
}

static struct cross_division some_division(uint64_t *luck, uint64_t weight_most)
{
	uint64_t weights[9];
	uint32_t count = 1 + (uint32_t)(next_random(luck) % 9);
	for (uint32_t i = 0; i < count; i++)
		weights[i] = next_random(luck) % 4 ? next_random(luck) % (weight_most + 1) : 0;
	weights[next_random(luck) % count] = 1 + next_random(luck) % weight_most;
	return division_of(weights, count);
}

static void it_is_what_handing_out_one_by_one_gives(void **state)
{
	(void)state;
	uint64_t luck = 1, fast[LIMIT_REPLICA_MEMBERS], slow[LIMIT_REPLICA_MEMBERS];
	for (int i = 0; i < 3000; i++) {
		struct cross_division division = some_division(&luck, i % 2 ? 5 : 1000);
		uint64_t whole = next_random(&luck) % 300;
		assert_int_equal(cross_apportion(whole, &division, fast, NULL), 0);
		slowly(whole, &division, slow);
		assert_memory_equal(fast, slow, division.count * sizeof(fast[0]));
	}
}

static void parts_add_up_whatever_the_size(void **state)
{
	(void)state;
	uint64_t luck = 2;
	int64_t parts[LIMIT_REPLICA_MEMBERS];
	static const int64_t edges[] = {0, 1, -1, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1};
	for (int i = 0; i < 20000; i++) {
		struct cross_division division = some_division(&luck, i % 3 ? 7 : INT64_MAX);
		int64_t whole = i < 700 ? edges[i % 7] : (int64_t)(next_random(&luck) >> (i % 64));
		assert_int_equal(cross_divide(whole, &division, parts, NULL), 0);
		__int128 sum = 0;
		for (uint32_t k = 0; k < division.count; k++) {
			sum += parts[k];
			assert_true(division.shares[k].weight > 0 || parts[k] == 0);
			assert_true(whole < 0 ? parts[k] <= 0 : parts[k] >= 0);
		}
		assert_true(sum == whole);
	}
}

static uint64_t distance(int64_t a, int64_t b)
{
	return a > b ? (uint64_t)a - (uint64_t)b : (uint64_t)b - (uint64_t)a;
}

static void a_change_moves_no_more_than_itself(void **state)
{
	(void)state;
	uint64_t luck = 3;
	int64_t before[LIMIT_REPLICA_MEMBERS], after[LIMIT_REPLICA_MEMBERS];
	for (int i = 0; i < 20000; i++) {
		struct cross_division division = some_division(&luck, i % 2 ? 9 : 1 << 20);
		int64_t from = (int64_t)(next_random(&luck) >> (8 + i % 55)) - 50;
		int64_t to = from + (int64_t)(next_random(&luck) % 200) - 100;
		assert_int_equal(cross_divide(from, &division, before, NULL), 0);
		assert_int_equal(cross_divide(to, &division, after, NULL), 0);
		uint64_t moved = 0;
		for (uint32_t k = 0; k < division.count; k++)
			moved += distance(before[k], after[k]);
		assert_int_equal(moved, distance(from, to));
	}
}

static void a_site_that_comes_only_takes_and_one_that_goes_only_gives(void **state)
{
	(void)state;
	uint64_t luck = 4;
	int64_t before[LIMIT_REPLICA_MEMBERS], after[LIMIT_REPLICA_MEMBERS];
	for (int i = 0; i < 20000; i++) {
		struct cross_division division = some_division(&luck, i % 2 ? 3 : 1 << 20);
		int64_t whole = (int64_t)(next_random(&luck) % 100000);
		assert_int_equal(cross_divide(whole, &division, before, NULL), 0);
		assert_int_equal(cross_division_add(&division, 77, next_random(&luck) % 9, NULL), 0);
		assert_int_equal(cross_divide(whole, &division, after, NULL), 0);
		for (uint32_t k = 0; k + 1 < division.count; k++)
			assert_true(after[k] <= before[k]);
		assert_int_equal(cross_division_withdraw(&division, 77, NULL), 0);
		assert_int_equal(cross_divide(whole, &division, after, NULL), 0);
		assert_memory_equal(before, after, division.count * sizeof(before[0]));
	}
}

static void whole_shares_are_the_parts(void **state)
{
	(void)state;
	uint64_t luck = 5;
	int64_t parts[LIMIT_REPLICA_MEMBERS];
	for (int i = 0; i < 20000; i++) {
		struct cross_division division = some_division(&luck, i % 2 ? 9 : (INT64_MAX >> 4));
		int64_t times = division.shares[0].weight < 100 && i % 3 ? (int64_t)(1 + next_random(&luck) % 50) : 1, sum = 0;
		for (uint32_t k = 0; k < division.count; k++)
			sum += (int64_t)division.shares[k].weight;
		if (__builtin_mul_overflow(sum, times, &sum))
			continue;
		assert_int_equal(cross_divide(sum, &division, parts, NULL), 0);
		for (uint32_t k = 0; k < division.count; k++)
			assert_int_equal(parts[k], (int64_t)division.shares[k].weight * times);
	}
}

static void changes_add_up_and_are_fair_in_the_end(void **state)
{
	(void)state;
	uint64_t luck = 6;
	int64_t parts[LIMIT_REPLICA_MEMBERS], all[3] = {0};
	for (int i = 0; i < 20000; i++) {
		struct cross_division division = some_division(&luck, i % 3 ? 7 : INT64_MAX);
		int64_t change = (int64_t)next_random(&luck) >> (i % 64);
		__int128 sum = 0, weights = 0;
		assert_int_equal(cross_divide_change(change, &division, next_random(&luck), parts, NULL), 0);
		for (uint32_t k = 0; k < division.count; k++)
			weights += division.shares[k].weight;
		for (uint32_t k = 0; k < division.count; k++) {
			sum += parts[k];
			assert_true(division.shares[k].weight > 0 || parts[k] == 0);
			if (i % 3 && (change >> 40 == 0 || change >> 40 == -1)) { /* within one unit of its share */
				__int128 off = (__int128)change * division.shares[k].weight - (__int128)parts[k] * weights;
				assert_true(off < weights && off > -weights);
			}
		}
		assert_true(sum == change);
	}
	struct cross_division division = division_of((uint64_t[]){2, 1, 0}, 3);
	for (int i = 0; i < 3000; i++) {
		assert_int_equal(cross_divide_change(1, &division, next_random(&luck), parts, NULL), 0);
		for (int k = 0; k < 3; k++)
			all[k] += parts[k];
	}
	assert_in_range(all[0], 1900, 2100);
	assert_int_equal(all[0] + all[1], 3000);
	struct str pointer = STR("/by");
	struct cross_fields fields = {&pointer, 1};
	struct buf out = {0};
	for (uint32_t k = 0; k < 3; k++)
		assert_int_equal(cross_divide_change_body(STR("{\"by\":5}"), &fields, &division, 101 + k, 0, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"by\":3}{\"by\":2}{\"by\":0}");
	buf_free(&out);
}

static void nothing_to_divide_by_is_refused(void **state)
{
	(void)state;
	int64_t parts[LIMIT_REPLICA_MEMBERS];
	struct err err = {0};
	struct cross_division none = division_of((uint64_t[]){0, 0}, 2), one = division_of((uint64_t[]){5, 0}, 2);
	assert_int_equal(cross_divide(3, &none, parts, &err), ERR_INVALID);
	assert_string_equal(err.text, "nothing can be divided: all weights are 0");
	assert_int_equal(cross_division_withdraw(&one, 101, &err), ERR_INVALID);
	assert_int_equal(cross_division_withdraw(&one, 999, &err), ERR_NOT_FOUND);
	assert_int_equal(cross_division_add(&one, 102, 1, &err), ERR_CONFLICT);
}

static void tags_are_weights(void **state)
{
	(void)state;
	struct cross_site sites[] = {{101, STR_INIT("Site1")}, {102, STR_INIT("Site2")}};
	struct cross_division division;
	struct err err = {0};
	assert_int_equal(
		cross_division_by_tags(sites, (struct str[]){STR("1.5"), STR("4")}, 2, STR("capacity"), &division, &err), 0);
	assert_int_equal(division.shares[0].weight, 15);
	assert_int_equal(division.shares[1].weight, 40);
	assert_int_equal(
		cross_division_by_tags(sites, (struct str[]){STR("big"), STR("4")}, 2, STR("capacity"), &division, &err),
		ERR_INVALID);
	assert_string_equal(
		err.text,
		"the tag `capacity` of `Site1` is `big`; it has to be a number that is not negative, such as 4 or 1.5");
	assert_int_equal(
		cross_division_by_tags(sites, (struct str[]){STR("1"), STR("")}, 2, STR("capacity"), &division, &err),
		ERR_INVALID);
	assert_string_equal(err.text, "`Site2` has no tag `capacity`, which says how much each site gets");
	assert_int_equal(
		cross_division_by_tags(sites, (struct str[]){STR("0"), STR("0.0")}, 2, STR("capacity"), &division, &err),
		ERR_INVALID);
}

static void a_division_travels(void **state)
{
	(void)state;
	struct cross_division division = division_of((uint64_t[]){4, 0, INT64_MAX}, 3), back;
	struct buf bytes = {0};
	cross_division_put(&division, &bytes);
	assert_int_equal(bytes.length, 2 + 3 * 16);
	assert_int_equal(cross_division_parse(buf_str(&bytes), &back, NULL), 0);
	assert_int_equal(back.count, 3);
	assert_memory_equal(back.shares, division.shares, 3 * sizeof(back.shares[0]));
	for (size_t i = 0; i < bytes.length; i++)
		assert_true(cross_division_parse(str_make(bytes.at, i), &back, NULL) < 0);
	bytes.at[0] = 9;
	assert_int_equal(cross_division_parse(buf_str(&bytes), &back, NULL), ERR_VERSION);
	buf_free(&bytes);
}

static void check_body(const char *body, site_id site, const char *expected)
{
	static const struct str pointers[] = {STR_INIT("/size"), STR_INIT("/spec/replicas"), STR_INIT("/hosts")};
	struct cross_fields fields = {pointers, 3};
	struct cross_division division = division_of((uint64_t[]){2, 1}, 2);
	struct buf out = {0};
	struct err err = {0};
	int code = cross_divide_body(str_of(body), &fields, &division, site, &out, &err);
	assert_string_equal(code ? err.text : buf_c(&out), expected);
	assert_true(code == 0 || out.length == 0);
	buf_free(&out);
}

static void bodies_keep_every_other_byte(void **state)
{
	(void)state;
	check_body("{ \"size\" : 7,\t\"x\": [1, 2.0] }", 101, "{ \"size\" : 5,\t\"x\": [1, 2.0] }");
	check_body("{ \"size\" : 7,\t\"x\": [1, 2.0] }", 102, "{ \"size\" : 2,\t\"x\": [1, 2.0] }");
	check_body("{\"spec\":{\"replicas\":3,\"size\":9},\"size\":0.5}", 102,
	           "{\"spec\":{\"replicas\":1,\"size\":9},\"size\":0.2}");
	check_body("{\"spec\":null,\"size\":null}", 101, "{\"spec\":null,\"size\":null}");
	check_body("{\"name\":\"x\"}", 102, "{\"name\":\"x\"}");
	check_body("{\"hosts\":[]}", 102, "{\"hosts\":[]}");
	check_body("{\"s\\u0069ze\":-9}", 101, "{\"s\\u0069ze\":-6}");
}

static void bodies_that_cannot_be_divided_are_refused(void **state)
{
	(void)state;
	check_body("{\"size\":\"7\"}", 101, "dividing `/size`: only a number or a list can be divided");
	check_body("{\"size\":7,\"size\":8}", 101, "on the way to `/size` a member is there twice");
	check_body("{\"spec\":{\"replicas\":1},\"spec\":{}}", 101,
	           "on the way to `/spec/replicas` a member is there twice");
	check_body("{\"size\":99999999999999999999}", 101,
	           "dividing `/size`: 99999999999999999999 does not fit into 64 bits");
	check_body("{\"size\":7}", 103, "this site has no part of it");
	struct str bad = STR("/a/*/b");
	struct cross_fields fields = {&bad, 1};
	struct cross_division division = division_of((uint64_t[]){1}, 1);
	struct buf out = {0};
	struct err err = {0};
	assert_int_equal(cross_divide_body(STR("{}"), &fields, &division, 101, &out, &err), ERR_INVALID);
	assert_string_equal(err.text, "`/a/*/b` is no pointer to one field; one looks like `/size` or `/spec/replicas`");
	buf_free(&out);
}

static void who_comes_gets_as_much_as_others(void **state)
{
	(void)state;
	struct cross_division division = {.count = 2, .shares = {{101, 8}, {102, 4}}};
	assert_int_equal(cross_division_mean(&division), 6);
	division.shares[0].weight = division.shares[1].weight = UINT64_MAX >> 1;
	assert_true(cross_division_mean(&division) == UINT64_MAX >> 1);
	division = (struct cross_division){.count = 2, .shares = {{101, 1}, {102, 0}}};
	assert_int_equal(cross_division_mean(&division), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_comes_gets_as_much_as_others),
		cmocka_unit_test(it_is_what_handing_out_one_by_one_gives),
		cmocka_unit_test(parts_add_up_whatever_the_size),
		cmocka_unit_test(a_change_moves_no_more_than_itself),
		cmocka_unit_test(a_site_that_comes_only_takes_and_one_that_goes_only_gives),
		cmocka_unit_test(whole_shares_are_the_parts),
		cmocka_unit_test(changes_add_up_and_are_fair_in_the_end),
		cmocka_unit_test(nothing_to_divide_by_is_refused),
		cmocka_unit_test(tags_are_weights),
		cmocka_unit_test(a_division_travels),
		cmocka_unit_test(bodies_keep_every_other_byte),
		cmocka_unit_test(bodies_that_cannot_be_divided_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
