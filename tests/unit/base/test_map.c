#include "base_test.h"

#include "base/map.h"

static const struct hash_key hash_key = {0x1234, 0x5678};

static void an_empty_map(void **state)
{
	(void)state;
	struct map map;
	map_init(&map, hash_key);
	assert_null(map_get(&map, STR("a")));
	assert_null(map_remove(&map, STR("a")));
	size_t cursor = 0;
	struct str key;
	void *value;
	assert_false(map_next(&map, &cursor, &key, &value));
	assert_null(map.slots);
	map_free(&map);
}

static void set_get_replace_remove(void **state)
{
	(void)state;
	struct map map;
	map_init(&map, hash_key);
	int one, two;
	char first_key[] = "Site1";
	char second_key[] = "Site1";
	assert_null(map_set(&map, str_of(first_key), &one));
	assert_ptr_equal(map_get(&map, STR("Site1")), &one);
	assert_null(map_get(&map, STR("Site")));
	assert_null(map_get(&map, STR("site1")));
	assert_ptr_equal(map_set(&map, str_of(second_key), &two), &one);
	assert_int_equal(map.count, 1);

	size_t cursor = 0;
	struct str key;
	void *value;
	assert_true(map_next(&map, &cursor, &key, &value));
	assert_ptr_equal(key.at, first_key); /* the old slice stays in use */
	assert_ptr_equal(value, &two);
	assert_false(map_next(&map, &cursor, &key, &value));
	assert_false(map_next(&map, &cursor, &key, &value));

	assert_ptr_equal(map_remove(&map, STR("Site1")), &two);
	assert_null(map_remove(&map, STR("Site1")));
	assert_null(map_get(&map, STR("Site1")));
	assert_int_equal(map.count, 0);
	map_free(&map);
	assert_null(map_set(&map, STR("again"), &one));
	assert_ptr_equal(map_get(&map, STR("again")), &one);
	map_free(&map);
}

static void any_bytes_are_a_key(void **state)
{
	(void)state;
	const struct str keys[] = {{NULL, 0}, STR("\0"), STR("\0\0"), STR("a"), STR("a\0"), STR("\xff\xfe")};
	char values[COUNT(keys)];
	struct map map;
	map_init(&map, hash_key);
	for (size_t i = 0; i < COUNT(keys); i++)
		assert_null(map_set(&map, keys[i], &values[i]));
	for (size_t i = 0; i < COUNT(keys); i++)
		assert_ptr_equal(map_get(&map, keys[i]), &values[i]);
	map_free(&map);
}

/* The model: for each of the possible keys, what the map should hold. */
enum { KEYS = 700 };

struct model {
	char names[KEYS][12];
	void *values[KEYS];
	size_t count;
};

static struct str model_key(const struct model *model, size_t i)
{
	return str_of(model->names[i]);
}

/* All entries of the map are in the model, and come once each; as their number is right too, none is missing. */
static void check_all(const struct map *map, const struct model *model)
{
	bool seen[KEYS] = {false};
	size_t count = 0;
	size_t cursor = 0;
	struct str key;
	void *value;
	while (map_next(map, &cursor, &key, &value)) {
		size_t i = (size_t)strtoul(key.at + 3, NULL, 10);
		assert_str_equal(key, model_key(model, i));
		assert_ptr_equal(value, model->values[i]);
		assert_false(seen[i]);
		seen[i] = true;
		count++;
	}
	assert_int_equal(count, model->count);
	for (size_t i = 0; i < KEYS; i++)
		assert_ptr_equal(map_get(map, model_key(model, i)), model->values[i]);
}

static void agrees_with_a_model(void **state)
{
	(void)state;
	static struct model model;
	static char values[64];
	memset(&model, 0, sizeof(model));
	for (size_t i = 0; i < KEYS; i++)
		snprintf(model.names[i], sizeof(model.names[i]), "key%zu", i);
	struct map map;
	map_init(&map, hash_key);
	uint64_t seed = 5;
	for (int step = 0; step < 60000; step++) {
		/* Seasons of growing and of shrinking: the map is now nearly full, now nearly empty. */
		bool growing = step / 5000 % 2 == 0;
		size_t i = random_below(&seed, KEYS);
		struct str key = model_key(&model, i);
		void *old = model.values[i];
		assert_ptr_equal(map_get(&map, key), old);
		if (random_below(&seed, 10) < (growing ? 8 : 2)) {
			model.values[i] = &values[random_below(&seed, COUNT(values))];
			model.count += old == NULL;
			assert_ptr_equal(map_set(&map, key, model.values[i]), old);
		} else {
			model.values[i] = NULL;
			model.count -= old != NULL;
			assert_ptr_equal(map_remove(&map, key), old);
		}
		assert_int_equal(map.count, model.count);
		assert_true(map.count * 4 <= map.capacity * 3);
		if (step % 500 == 0)
			check_all(&map, &model);
	}
	check_all(&map, &model);
	map_free(&map);
}

static size_t home_of(const char *name)
{
	return (size_t)hash_bytes(&hash_key, str_of(name)) & 7;
}

/* Six keys in a table of eight, wanting the places 6, 6, 7, 7, 0, 1: one run that goes round the end of the table. Taken
 * out in each of the 720 orders, the others must be found each time. */
static void removal_keeps_runs_together(void **state)
{
	(void)state;
	enum { ENTRIES = 6 };
	static const size_t homes[ENTRIES] = {6, 6, 7, 7, 0, 1};
	char names[ENTRIES][16];
	unsigned serial = 0;
	for (size_t i = 0; i < ENTRIES; i++)
		do
			snprintf(names[i], sizeof(names[i]), "n%u", serial++);
		while (home_of(names[i]) != homes[i]);
	for (unsigned order = 0; order < 720; order++) {
		struct map map;
		map_init(&map, hash_key);
		for (size_t i = 0; i < ENTRIES; i++)
			map_set(&map, str_of(names[i]), names[i]);
		assert_int_equal(map.capacity, 8);
		bool gone[ENTRIES] = {false};
		unsigned rest = order;
		for (unsigned left = ENTRIES; left > 0; left--) {
			unsigned skip = rest % left;
			rest /= left;
			size_t i = 0;
			while (gone[i] || skip-- > 0)
				i++;
			assert_ptr_equal(map_remove(&map, str_of(names[i])), names[i]);
			gone[i] = true;
			for (size_t j = 0; j < ENTRIES; j++)
				assert_ptr_equal(map_get(&map, str_of(names[j])), gone[j] ? NULL : names[j]);
		}
		map_free(&map);
	}
}

static void coming_and_going_does_not_grow_it(void **state)
{
	(void)state;
	enum { ALIVE = 6, ROUNDS = 10000 };
	static char names[ROUNDS][12];
	struct map map;
	map_init(&map, hash_key);
	for (size_t i = 0; i < ROUNDS; i++) {
		snprintf(names[i], sizeof(names[i]), "%zu", i);
		if (i >= ALIVE)
			assert_ptr_equal(map_remove(&map, str_of(names[i - ALIVE])), names[i - ALIVE]);
		assert_null(map_set(&map, str_of(names[i]), names[i]));
		assert_int_equal(map.capacity, 8);
	}
	map_free(&map);
}

static void call_set_null(void *map)
{
	map_set(map, STR("a"), NULL);
}

static void a_value_is_something(void **state)
{
	(void)state;
	struct map map;
	map_init(&map, hash_key);
	assert_aborts(call_set_null, &map, "value != NULL");
	map_free(&map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_empty_map),
		cmocka_unit_test(set_get_replace_remove),
		cmocka_unit_test(any_bytes_are_a_key),
		cmocka_unit_test(agrees_with_a_model),
		cmocka_unit_test(removal_keeps_runs_together),
		cmocka_unit_test(coming_and_going_does_not_grow_it),
		cmocka_unit_test(a_value_is_something),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
