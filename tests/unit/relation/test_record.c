/* What of a resource's references is in force, and its row. */
#include "relation/record.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

enum { SELF = 7 };

static struct relation_fact fact_of(const char *place, enum glue_kind kind, const char *name)
{
	return (struct relation_fact){.where = RELATION_IN_BODY,
	                              .place = str_of(place),
	                              .kind = kind,
	                              .to = {.service = STR("image"), .type = STR("image.secret"), .name = str_of(name)}};
}

static void set(struct relation_record *record, const char *place, const char *name)
{
	struct relation_fact fact = fact_of(place, GLUE_RELIANCE, name);
	relation_record_set(record, &fact);
}

static const char *name_at(const struct relation_record *record, const char *place)
{
	static char name[64];
	for (uint32_t i = 0; i < record->count; i++) {
		if (!str_equal(record->facts[i].place, str_of(place)))
			continue;
		memcpy(name, record->facts[i].to.name.at, record->facts[i].to.name.length);
		name[record->facts[i].to.name.length] = '\0';
		return name;
	}
	return "";
}

static void the_last_word_counts(void **state)
{
	(void)state;
	struct relation_record record = {0};
	set(&record, "/secret", "a");
	set(&record, "/image", "i");
	set(&record, "/secret", "b");
	assert_int_equal(record.count, 2);
	assert_string_equal(name_at(&record, "/secret"), "b");
	relation_record_clear(&record, RELATION_IN_BODY, STR("/secret"));
	assert_string_equal(name_at(&record, "/secret"), "");
	assert_string_equal(name_at(&record, "/image"), "i");
}

static void what_is_below_a_place_goes_with_it(void **state)
{
	(void)state;
	struct relation_record record = {0};
	set(&record, "/env/A", "a");
	set(&record, "/env/B", "b");
	set(&record, "/environment", "c");
	set(&record, "file:/env/A", "d");
	relation_record_clear(&record, RELATION_IN_PATH, STR("/env"));
	assert_int_equal(record.count, 4);
	relation_record_clear(&record, RELATION_IN_BODY, STR("/env"));
	assert_int_equal(record.count, 2);
	relation_record_clear(&record, RELATION_IN_BODY, STR(""));
	assert_int_equal(record.count, 1); /* what a facet says is its own */
	relation_record_clear(&record, RELATION_IN_BODY, STR("file:"));
	assert_int_equal(record.count, 0);
}

static void a_row_comes_back_as_it_was(void **state)
{
	(void)state;
	struct relation_record record = {.more = true}, again;
	struct buf row = {0}, twice = {0};
	set(&record, "/secret", "a");
	record.facts[0].sites[record.facts[0].sites_count++] = 12;
	struct relation_fact in = {.where = RELATION_IN_PATH,
	                           .place = STR("path:0"),
	                           .kind = GLUE_CONTAINED,
	                           .to = {.managed = true, .id = {{1, 2, 3}}}};
	relation_record_set(&record, &in);
	relation_record_put(&record, &row);
	assert_int_equal(relation_record_parse(buf_str(&row), &again, NULL), 0);
	assert_int_equal(again.count, 2);
	assert_true(again.more);
	assert_true(relation_target_equal(&again.facts[1].to, &in.to));
	assert_int_equal(again.facts[0].sites[0], 12);
	relation_record_put(&again, &twice);
	assert_true(str_equal(buf_str(&row), buf_str(&twice)));
	for (size_t cut = 0; cut < row.length; cut++)
		assert_int_equal(relation_record_parse(str_make(row.at, cut), &again, NULL), ERR_CORRUPT);
	buf_free(&row);
	buf_free(&twice);
}

static void there_is_a_limit(void **state)
{
	(void)state;
	struct relation_record record = {0};
	char places[LIMIT_RELATION_FACTS + 1][32];
	for (int i = 0; i <= LIMIT_RELATION_FACTS; i++) {
		snprintf(places[i], sizeof(places[i]), "/secrets/%d", i);
		set(&record, places[i], "a");
	}
	assert_int_equal(record.count, LIMIT_RELATION_FACTS);
	assert_true(record.more);
}

static void one_target_may_be_meant_in_several_ways(void **state)
{
	(void)state;
	struct relation_record record = {0};
	struct relation_fact relied = fact_of("/secret", GLUE_RELIANCE, "a"),
						 required = fact_of("/seed", GLUE_REQUIREMENT, "a");
	struct relation_fact elsewhere = fact_of("/other", GLUE_RELIANCE, "a");
	elsewhere.sites[elsewhere.sites_count++] = 12;
	relation_record_set(&record, &relied);
	relation_record_set(&record, &required);
	relation_record_set(&record, &elsewhere);
	assert_int_equal(relation_kinds_to(&record, &relied, SELF), 1 << GLUE_RELIANCE | 1 << GLUE_REQUIREMENT);
	assert_int_equal(relation_kinds_to(&record, &elsewhere, SELF), 1 << GLUE_RELIANCE);
	struct buf here = {0}, there = {0};
	relation_fact_key(&relied, SELF, &here);
	relation_fact_key(&elsewhere, SELF, &there);
	assert_int_equal(here.length, RELATION_KEY_BYTES);
	assert_false(str_equal(buf_str(&here), buf_str(&there)));
	buf_free(&here);
	buf_free(&there);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_last_word_counts),
		cmocka_unit_test(what_is_below_a_place_goes_with_it),
		cmocka_unit_test(a_row_comes_back_as_it_was),
		cmocka_unit_test(there_is_a_limit),
		cmocka_unit_test(one_target_may_be_meant_in_several_ways),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
