/* Lists: each element at exactly one site, as many as a number would give, and few move. */
#include "cross_test.h"

#include <stdlib.h>

enum { ELEMENTS = 200 };

/* A list of numbers, and who has each: owner[number], or -1. */
static void place(const bool *there, const struct cross_division *division, int *owner)
{
	struct buf text = {0};
	const char *separator = "[";
	uint32_t count = 0, owners[ELEMENTS] = {0};
	int numbers[ELEMENTS];
	for (int i = 0; i < ELEMENTS; i++) {
		owner[i] = -1;
		if (!there[i])
			continue;
		buf_printf(&text, "%s{\"host\":%d}", separator, i);
		separator = ",";
		numbers[count++] = i;
	}
	buf_printf(&text, "%s]", count ? "" : "[");
	struct cross_list list;
	assert_int_equal(cross_list_read(buf_str(&text), &list, NULL), 0);
	assert_int_equal(list.count, count);
	uint64_t parts[LIMIT_REPLICA_MEMBERS], room[LIMIT_REPLICA_MEMBERS], have[LIMIT_REPLICA_MEMBERS] = {0};
	assert_int_equal(cross_apportion(count, division, parts, NULL), 0);
	memcpy(room, parts, sizeof(room));
	assert_int_equal(cross_list_place(&list, division, room, owners, NULL), 0);
	for (uint32_t i = 0; i < count; i++) {
		owner[numbers[i]] = (int)owners[i];
		have[owners[i]]++;
	}
	assert_memory_equal(parts, have, division->count * sizeof(parts[0]));
	cross_list_free(&list);
	buf_free(&text);
}

static uint32_t moved(const int *before, const int *after)
{
	uint32_t count = 0;
	for (int i = 0; i < ELEMENTS; i++)
		count += before[i] >= 0 && after[i] >= 0 && before[i] != after[i];
	return count;
}

static void an_element_more_or_less_moves_few(void **state)
{
	(void)state;
	uint64_t luck = 1;
	uint32_t all = 0, changes = 0, worst = 0;
	for (int round = 0; round < 20; round++) {
		bool there[ELEMENTS];
		int before[ELEMENTS], after[ELEMENTS];
		uint64_t weights[8];
		uint32_t sites = 2 + (uint32_t)(next_random(&luck) % 7);
		for (uint32_t i = 0; i < sites; i++)
			weights[i] = 1 + next_random(&luck) % 4;
		struct cross_division division = division_of(weights, sites);
		for (int i = 0; i < ELEMENTS; i++)
			there[i] = next_random(&luck) % 2;
		place(there, &division, before);
		for (int change = 0; change < 50; change++) {
			int which = (int)(next_random(&luck) % ELEMENTS);
			there[which] = !there[which];
			place(there, &division, after);
			uint32_t count = moved(before, after);
			all += count;
			changes++;
			worst = count > worst ? count : worst;
			memcpy(before, after, sizeof(before));
		}
	}
	/* Measured: 1.18 on average, 5 at the most. */
	assert_true(all <= 2 * changes);
	assert_true(worst <= 16);
}

static void a_site_that_goes_gives_and_the_others_mostly_keep(void **state)
{
	(void)state;
	bool there[ELEMENTS];
	int before[ELEMENTS], after[ELEMENTS];
	memset(there, true, sizeof(there));
	struct cross_division division = division_of((uint64_t[]){1, 1, 1, 1, 1}, 5);
	place(there, &division, before);
	assert_int_equal(cross_division_withdraw(&division, 101, NULL), 0);
	place(there, &division, after);
	uint32_t others = 0; /* measured: 5 of 160 */
	for (int i = 0; i < ELEMENTS; i++)
		others += before[i] > 0 && before[i] - 1 != after[i];
	assert_true(others <= ELEMENTS / 5);
}

static void the_order_of_the_list_does_not_matter(void **state)
{
	(void)state;
	struct cross_division division = division_of((uint64_t[]){1, 1}, 2);
	struct cross_list a, b;
	uint32_t owners_a[4], owners_b[4];
	assert_int_equal(cross_list_read(STR("[ {\"a\":1, \"b\":2} ,\"x\", 3,null]"), &a, NULL), 0);
	assert_int_equal(cross_list_read(STR("[null,3,\"\\u0078\",{\"b\":2,\"a\":1}]"), &b, NULL), 0);
	assert_int_equal(cross_list_place(&a, &division, (uint64_t[]){2, 2}, owners_a, NULL), 0);
	assert_int_equal(cross_list_place(&b, &division, (uint64_t[]){2, 2}, owners_b, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(owners_a[i], owners_b[3 - i]);
	cross_list_free(&a);
	cross_list_free(&b);
}

static void equal_elements_are_told_apart(void **state)
{
	(void)state;
	struct cross_division division = division_of((uint64_t[]){1, 1, 1}, 3);
	struct str pointer = STR("/l");
	struct cross_fields fields = {&pointer, 1};
	struct buf out = {0};
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(cross_divide_body(STR("{\"l\":[7,7,7,7,7,7]}"), &fields, &division, 101 + i, &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"l\":[7,7]}{\"l\":[7,7]}{\"l\":[7,7]}");
	buf_free(&out);
}

static void it_is_the_same_in_every_version(void **state)
{
	(void)state;
	struct cross_division division = division_of((uint64_t[]){2, 1, 1}, 3);
	struct str pointer = STR("/l");
	struct cross_fields fields = {&pointer, 1};
	struct buf out = {0};
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(cross_divide_body(STR("{\"l\":[\"a\",\"b\",\"c\",\"d\",\"e\",\"f\",\"g\"]}"), &fields,
		                                   &division, 101 + i, &out, NULL),
		                 0);
	assert_string_equal(buf_c(&out), "{\"l\":[\"a\",\"b\",\"g\"]}{\"l\":[\"c\",\"f\"]}{\"l\":[\"d\",\"e\"]}");
	buf_free(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_element_more_or_less_moves_few),
		cmocka_unit_test(a_site_that_goes_gives_and_the_others_mostly_keep),
		cmocka_unit_test(the_order_of_the_list_does_not_matter),
		cmocka_unit_test(equal_elements_are_told_apart),
		cmocka_unit_test(it_is_the_same_in_every_version),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
