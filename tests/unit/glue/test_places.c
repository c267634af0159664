/* Pointers to places: what they fit, which of several counts, and what is no pointer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/places.h"

#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Walks along a path of names; a number in brackets is an element: "networks [0] uuid". */
static const struct glue_places_node *walk(const struct glue_places *places, const char *path)
{
	const struct glue_places_node *node = glue_places_root(places);
	while (node && *path != '\0') {
		size_t length = strcspn(path, " ");
		if (path[0] == '[')
			node = glue_places_element(node, (uint32_t)strtoul(path + 1, NULL, 10));
		else
			node = glue_places_member(node, str_make(path, length));
		path += length + (path[length] == ' ');
	}
	return node;
}

static struct glue_places *places_of(const char *const *pointers, size_t count)
{
	struct glue_places *places = glue_places_new();
	for (size_t i = 0; i < count && pointers[i]; i++) {
		struct err err = {0};
		if (glue_places_add(places, str_of(pointers[i]), (enum glue_place_kind)(i % 4), NULL, &err))
			fail_msg("%s: %s", pointers[i], err.text);
	}
	return places;
}

enum { NO = -1, WAY = -2 }; /* nothing there; no place, but on the way to one */

static const struct {
	const char *pointers[4];
	const char *path;
	int place; /* the number of the pointer */
} fits[] = {
	{{"/id"}, "id", 0},
	{{"/id"}, "", WAY},
	{{"/id"}, "name", NO},
	{{"/id"}, "id x", NO},
	{{"/id"}, "[0]", NO},
	{{""}, "", 0},
	{{"", "/a"}, "a", 1},
	{{"/"}, "", WAY},
	{{"/a//b"}, "a", WAY},
	{{"/a/b", "/a/c", "/d"}, "a c", 1},
	{{"/a/b", "/a/c", "/d"}, "d", 2},
	{{"/a~1b", "/a~0b", "/~01"}, "a/b", 0},
	{{"/a~1b", "/a~0b", "/~01"}, "a~b", 1},
	{{"/a~1b", "/a~0b", "/~01"}, "~1", 2},
	{{"/a/0"}, "a [0]", 0},
	{{"/a/0"}, "a 0", 0}, /* a member whose name is 0 */
	{{"/a/0"}, "a [1]", NO},
	{{"/a/00"}, "a [0]", NO},
	{{"/a/10"}, "a [10]", 0},
	{{"/a/4294967296"}, "a [0]", NO},
	{{"/a/*"}, "a [7]", 0},
	{{"/a/*"}, "a x", 0},
	{{"/a/*"}, "a", WAY},
	{{"/*/*/id"}, "x [1] id", 0},
	{{"/**"}, "x", NO},
	{{"/**"}, "**", 0},
	/* A name and `*` for one member: both lead on, in whichever order they came. */
	{{"/*/x", "/a/y"}, "a x", 0},
	{{"/*/x", "/a/y"}, "a y", 1},
	{{"/*/x", "/a/y"}, "b x", 0},
	{{"/*/x", "/a/y"}, "b y", NO},
	{{"/a/y", "/*/x"}, "a x", 1},
	{{"/a/y", "/*/x"}, "a y", 0},
	{{"/a/y", "/*/x"}, "b y", NO},
	{{"/n/*/uuid", "/n/0/port"}, "n [0] uuid", 0},
	{{"/n/*/uuid", "/n/0/port"}, "n [0] port", 1},
	{{"/n/*/uuid", "/n/0/port"}, "n [1] port", NO},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "a b x", 0},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "a b y", 1},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "a b z", 2},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "a b t", 3},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "a c y", 1},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "a c z", NO},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "c b z", 2},
	{{"/*/*/x", "/a/*/y", "/*/b/z", "/a/b/t"}, "c b y", NO},
	/* The same value: a name counts more than `*`, from the left. */
	{{"/*/b", "/a/*"}, "a b", 1},
	{{"/a/*", "/*/b"}, "a b", 0},
	{{"/a/*", "/*/b", "/a/b", "/*/*"}, "a b", 2},
	{{"/a/*", "/*/b", "/a/b", "/*/*"}, "c b", 1},
	{{"/a/*", "/*/b", "/a/b", "/*/*"}, "c d", 3},
	{{"/*/*", "/a/b", "/*/b", "/a/*"}, "a d", 3},
	{{"/*", "/a/b"}, "a", 0},
	{{"/*", "/a/b"}, "a b", 1},
};

static void what_fits(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(fits); i++) {
		struct glue_places *places = places_of(fits[i].pointers, COUNT(fits[i].pointers));
		const struct glue_places_node *node = walk(places, fits[i].path);
		int found = !node ? NO : !node->is_place ? WAY : (int)node->kind;
		if (found != fits[i].place)
			fail_msg("case %zu, %s: place %d, and should be %d", i, fits[i].path, found, fits[i].place);
		if (node)
			assert_int_equal(node->leads_on, node->below != NULL || node->any != NULL);
		glue_places_free(places);
	}
}

static void what_is_refused(void **state)
{
	(void)state;
	char too_deep[3 * (LIMIT_GLUE_SEGMENTS + 1)] = "", too_long[LIMIT_GLUE_MEMBER_BYTES + 3] = "/";
	for (int i = 0; i <= LIMIT_GLUE_SEGMENTS; i++)
		strcat(too_deep, "/a");
	memset(too_long + 1, 'a', LIMIT_GLUE_MEMBER_BYTES + 1);
	const struct {
		const char *pointer;
		int code;
		const char *message;
	} cases[] = {
		{"id", ERR_INVALID, "`id` is no JSON pointer: it has to be empty, or begin with `/`"},
		{"*", ERR_INVALID, "`*` is no JSON pointer: it has to be empty, or begin with `/`"},
		{"/a~", ERR_INVALID, "`/a~` is no JSON pointer: after `~` comes `0` (for `~`) or `1` (for `/`)"},
		{"/a~/b", ERR_INVALID, "`/a~/b` is no JSON pointer: after `~` comes `0` (for `~`) or `1` (for `/`)"},
		{"/~2", ERR_INVALID, "`/~2` is no JSON pointer: after `~` comes `0` (for `~`) or `1` (for `/`)"},
		{too_deep, ERR_LIMIT, " goes deeper than 32"},
		{too_long, ERR_LIMIT, " has a name of more than 256 bytes"},
		{"/taken", ERR_CONFLICT, "`/taken` is already the place of something else"},
		{"/x/*", ERR_CONFLICT, "`/x/*` is already the place of something else"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct glue_places *places = glue_places_new();
		struct err err = {0};
		assert_int_equal(glue_places_add(places, STR("/taken"), GLUE_PLACE_ID, NULL, &err), 0);
		assert_int_equal(glue_places_add(places, STR("/x/*"), GLUE_PLACE_ID, NULL, &err), 0);
		assert_int_equal(glue_places_add(places, STR("/taken"), GLUE_PLACE_ID, NULL, &err), 0); /* the same: fine */
		assert_int_equal(glue_places_add(places, str_of(cases[i].pointer), GLUE_PLACE_LINK, NULL, &err), cases[i].code);
		assert_non_null(strstr(err.text, cases[i].message));
		glue_places_free(places);
	}
}

/* Names beside `*` at each level need a node for each combination: refused before it is felt. */
static void too_many(void **state)
{
	(void)state;
	struct glue_places *places = glue_places_new();
	struct err err = {0};
	int code = 0;
	for (unsigned i = 0; i < LIMIT_GLUE_POINTERS && code == 0; i++) {
		struct buf pointer = {0};
		for (unsigned level = 0; level < 24; level++)
			buf_put(&pointer, level == i % 24 ? STR("/name") : STR("/*"));
		buf_printf(&pointer, "/%u", i);
		code = glue_places_add(places, buf_str(&pointer), GLUE_PLACE_ID, NULL, &err);
		buf_free(&pointer);
	}
	assert_int_equal(code, ERR_LIMIT);
	assert_non_null(strstr(err.text, "more than 4096 parts"));
	glue_places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_fits),
		cmocka_unit_test(what_is_refused),
		cmocka_unit_test(too_many),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
