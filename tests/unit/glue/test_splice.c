/* Bodies that are spliced: what is replaced, and that every other byte stays, in pieces of any size. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/places.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* Replaces local ids by meta-ids, and notes what it was asked. */
struct world {
	struct str text;  /* all that is fed */
	struct buf asked; /* "kind value; " of each place */
	bool refuses;
};

static const struct {
	const char *from, *to;
	bool quoted;
} table[] = {
	{"local", "meta", true},
	{"7", "70", false},      /* a number stays one */
	{"8", "meta-8", true},   /* a number becomes a string */
	{"nine", "-9e1", false}, /* a string becomes a number */
	{"a/b", "x\"\\\n\x01\xc3\xa9", true},
	{"", "was empty", true},
	{"empties", "", true},
	{"no number", "12 34", false},
	{"\xc3\xa9\xf0\x9f\x98\x80", "found", true},
	{"long", "a value that is a good deal longer than the one that it stands for, by far", true},
};

static bool replace(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	static const char *const kinds[] = {"id", "name", "reference", "link"};
	struct world *world = context;
	buf_printf(&world->asked, "%s %.*s; ", kinds[place->kind], STR_FMT(place->value));
	assert_true(place->at + place->length <= world->text.length);
	const char *token = world->text.at + place->at;
	assert_int_equal(token[0] == '"', place->quoted);
	assert_int_equal(token[place->length - 1] == '"', place->quoted);
	assert_int_equal(value->length, 0);
	for (size_t i = 0; i < COUNT(table) && !world->refuses; i++) {
		if (!str_equal(place->value, str_of(table[i].from)))
			continue;
		buf_put(value, str_of(table[i].to));
		*quoted = table[i].quoted;
		return true;
	}
	return false;
}

static struct glue_places *places_make(void)
{
	static const struct {
		const char *pointer;
		enum glue_place_kind kind;
	} pointers[] = {
		{"", GLUE_PLACE_ID},
		{"/id", GLUE_PLACE_ID},
		{"/name", GLUE_PLACE_NAME},
		{"/networks/*/uuid", GLUE_PLACE_REFERENCE},
		{"/networks/1/port", GLUE_PLACE_REFERENCE},
		{"/links/*", GLUE_PLACE_LINK},
		{"/deep/*/*/id", GLUE_PLACE_REFERENCE},
		{"/a~1b/\"\\\xc3\xa9", GLUE_PLACE_REFERENCE},
	};
	struct glue_places *places = glue_places_new();
	for (size_t i = 0; i < COUNT(pointers); i++)
		assert_int_equal(glue_places_add(places, str_of(pointers[i].pointer), pointers[i].kind, NULL, NULL), 0);
	return places;
}

/* Feeds the text up to `first`, then in pieces of `piece`. Each piece is gone once it was taken. */
static int splice(struct world *world, const struct glue_places *places, size_t first, size_t piece, struct buf *out,
                  struct err *err)
{
	struct glue_replacer replacer = {world, replace};
	struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
	int code = 0;
	buf_clear(out);
	buf_clear(&world->asked);
	for (size_t at = 0; at < world->text.length;) {
		size_t length = at == 0 && first > 0 ? first : piece;
		struct buf bytes = {0};
		if (length > world->text.length - at)
			length = world->text.length - at;
		buf_put(&bytes, str_make(world->text.at + at, length));
		struct err ignored = {0};
		int now = glue_splice(splicer, buf_str(&bytes), out, code ? &ignored : err);
		assert_true(code == 0 || now == 0); /* an error is told once */
		code = code ? code : now;
		buf_free(&bytes);
		at += length;
	}
	int now = glue_splice_end(splicer, out, code ? NULL : err);
	assert_true(code == 0 || now == 0);
	glue_splicer_free(splicer);
	return code ? code : now;
}

static const struct {
	const char *text;
	const char *spliced;
	const char *asked;
	int code;
} cases[] = {
	{"{\"id\":\"local\"}", "{\"id\":\"meta\"}", "id local; ", 0},
	{"{ \"id\" : \"local\" , \"n\":1.0}", "{ \"id\" : \"meta\" , \"n\":1.0}", "id local; ", 0},
	{"{\"id\":\"other\"}", "{\"id\":\"other\"}", "id other; ", 0},
	{"{\"id\":\"long\"}", "{\"id\":\"a value that is a good deal longer than the one that it stands for, by far\"}",
     "id long; ", 0},
	{"{\"x\":{\"id\":\"local\"}}", "{\"x\":{\"id\":\"local\"}}", "", 0},
	{"[{\"id\":\"local\"}]", "[{\"id\":\"local\"}]", "", 0},
	{"{}", "{}", "", 0},
	{"", "", "", 0},
	{" \r\n\t", " \r\n\t", "", 0},

	/* numbers and strings */
	{"{\"id\":7}", "{\"id\":70}", "id 7; ", 0},
	{"{\"id\":7,\"name\":8 }", "{\"id\":70,\"name\":\"meta-8\" }", "id 7; name 8; ", 0},
	{"{\"id\":7.0}", "{\"id\":7.0}", "id 7.0; ", 0},
	{"{\"id\":\"7\"}", "{\"id\":70}", "id 7; ", 0},
	{"{\"id\":\"nine\"}", "{\"id\":-9e1}", "id nine; ", 0},
	{"{\"id\":\"no number\"}", "{\"id\":\"12 34\"}", "id no number; ", 0},
	{"{\"id\":\"\"}", "{\"id\":\"was empty\"}", "id ; ", 0},
	{"{\"id\":\"empties\"}", "{\"id\":\"\"}", "id empties; ", 0},
	{"{\"id\":true,\"name\":null,\"networks\":false,\"links\":\"local\"}",
     "{\"id\":true,\"name\":null,\"networks\":false,\"links\":\"local\"}", "", 0},
	{"{\"id\":[\"local\"],\"name\":{\"id\":\"local\"}}", "{\"id\":[\"local\"],\"name\":{\"id\":\"local\"}}", "", 0},

	/* escapes, in values and in keys */
	{"{\"id\":\"loc\\u0061l\"}", "{\"id\":\"meta\"}", "id local; ", 0},
	{"{\"id\":\"oth\\u0065r\"}", "{\"id\":\"oth\\u0065r\"}", "id other; ", 0},
	{"{\"id\":\"a\\/b\"}", "{\"id\":\"x\\\"\\\\\\n\\u0001\xc3\xa9\"}", "id a/b; ", 0},
	{"{\"id\":\"\\u00E9\\uD83D\\uDE00\"}", "{\"id\":\"found\"}", "id \xc3\xa9\xf0\x9f\x98\x80; ", 0},
	{"{\"id\":\"\xc3\xa9\xf0\x9f\x98\x80\"}", "{\"id\":\"found\"}", "id \xc3\xa9\xf0\x9f\x98\x80; ", 0},
	{"{\"id\":\"\\ud83d\",\"name\":\"local\"}", "{\"id\":\"\\ud83d\",\"name\":\"meta\"}", "name local; ", 0},
	{"{\"\\u0069\\u0064\":\"local\"}", "{\"\\u0069\\u0064\":\"meta\"}", "id local; ", 0},
	{"{\"i\\ud83d\":\"local\"}", "{\"i\\ud83d\":\"local\"}", "", 0},
	{"{\"a/b\":{\"\\\"\\\\\\u00e9\":\"local\"}}", "{\"a/b\":{\"\\\"\\\\\\u00e9\":\"meta\"}}", "reference local; ", 0},
	{"{\"a\\/b\":{\"\\u0022\\u005c\xc3\xa9\":\"local\"}}", "{\"a\\/b\":{\"\\u0022\\u005c\xc3\xa9\":\"meta\"}}",
     "reference local; ", 0},

	/* arrays, and any member */
	{"{\"networks\":[{\"uuid\":\"local\"},{\"uuid\":\"other\",\"port\":\"local\"},{\"port\":\"local\"}],\"id\":"
     "\"local\"}",
     "{\"networks\":[{\"uuid\":\"meta\"},{\"uuid\":\"other\",\"port\":\"meta\"},{\"port\":\"local\"}],\"id\":\"meta\"}",
     "reference local; reference other; reference local; id local; ", 0},
	/* by the URL of what is referred to; only a reference may be one */
	{"{\"networks\":[{\"uuid\":\"http://h:1/n\\/local\"}]}", "{\"networks\":[{\"uuid\":\"http://h:1/n/meta\"}]}",
     "reference local; ", 0},
	{"{\"networks\":[{\"uuid\":\"https://h/7\"}]}", "{\"networks\":[{\"uuid\":\"https://h/70\"}]}", "reference 7; ", 0},
	{"{\"networks\":[{\"uuid\":\"http://h/other\"},{\"uuid\":\"http://local\"},{\"uuid\":\"http://h/"
     "?local\"},{\"uuid\":\"http://h/\"}]}",
     "{\"networks\":[{\"uuid\":\"http://h/other\"},{\"uuid\":\"http://local\"},{\"uuid\":\"http://h/"
     "?local\"},{\"uuid\":\"http://h/\"}]}",
     "reference other; reference http://local; reference ?local; reference http://h/; ", 0},
	{"{\"id\":\"http://h/local\"}", "{\"id\":\"http://h/local\"}", "id http://h/local; ", 0},
	{"{\"networks\":[1,[],{\"uuid\":\"local\"}]}", "{\"networks\":[1,[],{\"uuid\":\"meta\"}]}", "reference local; ", 0},
	{"{\"networks\":{\"a\":{\"uuid\":\"local\"}}}", "{\"networks\":{\"a\":{\"uuid\":\"meta\"}}}", "reference local; ",
     0},
	{"{\"networks\":{\"\\ud800\":{\"uuid\":\"local\"}}}", "{\"networks\":{\"\\ud800\":{\"uuid\":\"meta\"}}}",
     "reference local; ", 0},
	{"{\"links\":[\"local\",{\"href\":\"local\"},\"local\"]}", "{\"links\":[\"meta\",{\"href\":\"local\"},\"meta\"]}",
     "link local; link local; ", 0},
	{"{\"deep\":[[{\"id\":\"local\"},[]],{\"x\":{\"id\":\"local\",\"y\":{\"id\":\"local\"}}}]}",
     "{\"deep\":[[{\"id\":\"meta\"},[]],{\"x\":{\"id\":\"meta\",\"y\":{\"id\":\"local\"}}}]}",
     "reference local; reference local; ", 0},

	/* the same key twice: who reads it may take either, so both are replaced */
	{"{\"id\":\"local\",\"id\":\"local\"}", "{\"id\":\"meta\",\"id\":\"meta\"}", "id local; id local; ", 0},

	/* several texts */
	{"{\"id\":\"local\"}\n{\"id\":\"local\"}\n", "{\"id\":\"meta\"}\n{\"id\":\"meta\"}\n", "id local; id local; ", 0},
	{"{\"id\":\"local\"}{\"id\":\"local\"}", "{\"id\":\"meta\"}{\"id\":\"meta\"}", "id local; id local; ", 0},
	{"\"local\"", "\"meta\"", "id local; ", 0},
	{" 7 \"local\"\n7", " 70 \"meta\"\n70", "id 7; id local; id 7; ", 0},

	/* no JSON: what came before is spliced, the rest is not */
	{"{\"id\":\"local\",oops,\"id\":\"local\"}", "{\"id\":\"meta\",oops,\"id\":\"local\"}", "id local; ", ERR_INVALID},
	{"{\"id\":\"local\"", "{\"id\":\"meta\"", "id local; ", ERR_INVALID},
	{"{\"id\":\"loc", "{\"id\":\"loc", "", ERR_INVALID},
	{"{\"id\":\"loc\x01\",\"id\":\"local\"}", "{\"id\":\"loc\x01\",\"id\":\"local\"}", "", ERR_INVALID},
	{"{\"id\":7x}", "{\"id\":70x}", "id 7; ", ERR_INVALID}, /* the number had ended */
	{"{\"id\":-}", "{\"id\":-}", "", ERR_INVALID},
	{"<html>\"local\"</html>", "<html>\"local\"</html>", "", ERR_INVALID},
	{"{\"id\":\"local\"}\n<{\"id\":\"local\"}\n", "{\"id\":\"meta\"}\n<{\"id\":\"local\"}\n", "id local; ",
     ERR_INVALID},
};

static void check(struct world *world, const struct glue_places *places, size_t i, size_t first, size_t piece)
{
	struct buf out = {0};
	struct err err = {0};
	world->refuses = false;
	int code = splice(world, places, first, piece, &out, &err);
	if (code != cases[i].code || strcmp(buf_c(&out), cases[i].spliced) != 0 ||
	    strcmp(buf_c(&world->asked), cases[i].asked) != 0)
		fail_msg("case %zu, %zu then %zu: %d, %s, asked %s", i, first, piece, code, buf_c(&out), buf_c(&world->asked));
	assert_int_equal(code != 0, err.text[0] != '\0');
	world->refuses = true;
	assert_int_equal(splice(world, places, first, piece, &out, &err), cases[i].code);
	assert_true(str_equal(buf_str(&out), world->text));
	buf_free(&out);
}

static void what_is_replaced(void **state)
{
	(void)state;
	struct glue_places *places = places_make();
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct world world = {.text = str_of(cases[i].text)};
		for (size_t piece = 1; piece <= world.text.length + 1; piece++)
			check(&world, places, i, 0, piece);
		for (size_t first = 1; first < world.text.length; first++)
			check(&world, places, i, first, world.text.length);
		buf_free(&world.asked);
	}
	glue_places_free(places);
}

/* As long as LIMIT_GLUE_VALUE_BYTES as it is written, and one byte longer. */
static void long_values(void **state)
{
	(void)state;
	struct glue_places *places = places_make();
	struct buf text = {0}, out = {0};
	for (size_t length = LIMIT_GLUE_VALUE_BYTES; length <= LIMIT_GLUE_VALUE_BYTES + 1; length++) {
		buf_clear(&text);
		buf_put(&text, STR("{\"id\":\""));
		buf_put_repeat(&text, 'x', length - 2);
		buf_put(&text, STR("\",\"name\":\"local\"}"));
		struct world world = {.text = buf_str(&text)};
		for (size_t piece = 1; piece < text.length + 1000; piece = piece * 3 / 2 + 1) {
			assert_int_equal(splice(&world, places, 0, piece, &out, NULL), 0);
			assert_int_equal(out.length, text.length - 1);
			assert_memory_equal(out.at, text.at, length + 14);
			assert_string_equal(out.at + length + 14, "\"meta\"}");
			assert_int_equal(strncmp(world.asked.at, "id x", 4) == 0, length <= LIMIT_GLUE_VALUE_BYTES);
		}
		buf_free(&world.asked);
	}
	buf_free(&text);
	buf_free(&out);
	glue_places_free(places);
}

/* A name in which every byte is escaped is still found. */
static void long_keys(void **state)
{
	(void)state;
	struct buf pointer = {0}, text = {0}, out = {0};
	buf_put_char(&pointer, '/');
	buf_put_repeat(&pointer, 'k', LIMIT_GLUE_MEMBER_BYTES);
	struct glue_places *places = glue_places_new();
	assert_int_equal(glue_places_add(places, buf_str(&pointer), GLUE_PLACE_ID, NULL, NULL), 0);
	buf_put(&text, STR("{\""));
	for (int i = 0; i < LIMIT_GLUE_MEMBER_BYTES; i++)
		buf_put(&text, STR("\\u006B"));
	buf_put(&text, STR("\":\"local\"}"));
	struct world world = {.text = buf_str(&text)};
	for (size_t piece = 1; piece < text.length + 1000; piece = piece * 3 / 2 + 1) {
		assert_int_equal(splice(&world, places, 0, piece, &out, NULL), 0);
		assert_string_equal(out.at + out.length - 7, "\"meta\"}");
	}
	buf_free(&world.asked);
	buf_free(&pointer);
	buf_free(&text);
	buf_free(&out);
	glue_places_free(places);
}

/* Whoever reads a stream gets each byte at once, but for a value that may be replaced. */
static void what_is_held_back(void **state)
{
	(void)state;
	static const char text[] = "{\"x\":[1,\"abc\"],\"id\":\"local\",\"y\":{\"id\":7}}\n{\"n\":12";
	size_t from = (size_t)(strstr(text, "\"local\"") - text), to = from + strlen("\"local\"");
	struct glue_places *places = places_make();
	struct world world = {.text = str_of(text), .refuses = true};
	struct glue_replacer replacer = {&world, replace};
	struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
	struct buf out = {0};
	for (size_t fed = 1; fed <= strlen(text); fed++) {
		assert_int_equal(glue_splice(splicer, str_make(text + fed - 1, 1), &out, NULL), 0);
		assert_int_equal(out.length, fed > from && fed < to ? from : fed);
	}
	glue_splicer_free(splicer);
	buf_free(&world.asked);
	buf_free(&out);
	glue_places_free(places);
}

/* Too deep is an error of its own; where nothing is looked for, nothing is read. */
static void other_ends(void **state)
{
	(void)state;
	struct glue_places *places = places_make();
	struct buf text = {0}, out = {0};
	struct err err = {0};
	buf_put(&text, STR("{\"id\":\"local\",\"x\":"));
	buf_put_repeat(&text, '[', LIMIT_GLUE_NESTING);
	struct world world = {.text = buf_str(&text)};
	assert_int_equal(splice(&world, places, 0, 10, &out, &err), ERR_LIMIT);
	assert_string_equal(err.text, "JSON at byte 273 is nested deeper than 256");
	assert_int_equal(splice(&world, NULL, 0, 10, &out, &err), 0);
	assert_true(str_equal(buf_str(&out), world.text));
	buf_free(&world.asked);
	buf_free(&text);
	buf_free(&out);
	glue_places_free(places);
}

/* Damaged at random: pieces make no difference, and who says no to everything gets what he gave. */
static void any_bytes(void **state)
{
	(void)state;
	static const char alphabet[] = "{}[]\",:\\ \n09-.eEtfnu\"i\x80\xc3\x00"
								   "a";
	struct glue_places *places = places_make();
	struct buf text = {0}, whole = {0}, parts = {0}, asked = {0};
	uint64_t random = 1;
	for (int round = 0; round < 20000; round++) {
		buf_clear(&text);
		buf_put(&text, str_of(cases[(size_t)round % COUNT(cases)].text));
		for (int damage = 0; damage < round % 4 && text.length > 0; damage++) {
			random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			text.at[(random >> 33) % text.length] = alphabet[(random >> 20) % (sizeof(alphabet) - 1)];
		}
		struct world world = {.text = buf_str(&text)};
		struct err a = {0}, b = {0};
		int code = splice(&world, places, 0, text.length + 1, &whole, &a);
		buf_clear(&asked);
		buf_put(&asked, buf_str(&world.asked));
		assert_int_equal(splice(&world, places, (size_t)round % 7, 1 + (size_t)round % 5, &parts, &b), code);
		assert_true(str_equal(buf_str(&whole), buf_str(&parts)));
		assert_true(str_equal(buf_str(&asked), buf_str(&world.asked)));
		assert_string_equal(a.text, b.text);
		world.refuses = true;
		assert_int_equal(splice(&world, places, (size_t)round % 7, 1 + (size_t)round % 5, &parts, &b), code);
		assert_true(str_equal(buf_str(&parts), world.text));
		buf_free(&world.asked);
	}
	buf_free(&text);
	buf_free(&whole);
	buf_free(&parts);
	buf_free(&asked);
	glue_places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_replaced),  cmocka_unit_test(long_values), cmocka_unit_test(long_keys),
		cmocka_unit_test(what_is_held_back), cmocka_unit_test(other_ends),  cmocka_unit_test(any_bytes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
