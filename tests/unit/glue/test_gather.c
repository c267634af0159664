/* Lists of several sites as one: the text that comes out, whatever the pieces in which they come in, and whatever one of them sends. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/gather.h"
#include "glue/places.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define A "01890000-0000-7000-8000-00000000000a"
#define B "01890000-0000-7000-8000-00000000000b"
#define REPLICA(id) "\"cheops-replica\":\"" id "\""

struct scene {
	const char *list;
	const char *texts[3];
	const char *expected;  /* NULL: nothing at all */
	const char *faults[3]; /* by name; NULL: ok */
	const char *next;      /* pointer */
	bool one_page;
	bool alike;
	bool names, cut[3], more[3]; /* cut: the connection breaks off behind the text */
};

static const struct str site_names[] = {STR_INIT("Site1"), STR_INIT("Site\"2"), STR_INIT("Site3")};

/* The first piece of each text has `first` bytes, the others `piece`; each piece is gone once it was taken. */
static void feed_some(struct glue_gather *gather, const struct scene *scene, uint32_t site, size_t *at, size_t piece,
                      struct buf *out)
{
	struct str text = str_of(scene->texts[site]);
	size_t length = text.length - *at < piece ? text.length - *at : piece;
	char *copy = test_malloc(length + 1);
	memcpy(copy, text.at + *at, length);
	*at += length;
	glue_gather_feed(gather, site, str_make(copy, length), out);
	test_free(copy);
	if (*at < text.length)
		return;
	if (scene->cut[site])
		glue_gather_fail(gather, site, out);
	else
		glue_gather_end(gather, site, out);
	*at = SIZE_MAX;
}

static bool gather(const struct scene *scene, size_t first, size_t piece, struct buf *out)
{
	struct glue_gather_options options = {.sites_count = 3,
	                                      .list = str_of(scene->list),
	                                      .next = str_of(scene->next ? scene->next : ""),
	                                      .one_page = scene->one_page,
	                                      .alike = scene->alike,
	                                      .names = scene->names ? site_names : NULL};
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	size_t at[3] = {0};
	assert_non_null(gather);
	for (uint32_t i = 0; i < 3; i++)
		glue_gather_marked(gather, i);
	for (int round = 0; !glue_gather_ready(gather); round++) {
		assert_true(round < 100000);
		for (uint32_t i = 0; i < 3; i++)
			if (glue_gather_wants(gather, i))
				feed_some(gather, scene, i, &at[i], at[i] == 0 && first ? first : piece, out);
		assert_int_equal(out->length, 0);
	}
	bool any = glue_gather_begin(gather, out);
	assert_int_equal(any, scene->expected != NULL);
	while (any && glue_gather_turn(gather) < 3) {
		uint32_t turn = glue_gather_turn(gather);
		assert_true(glue_gather_wants(gather, turn));
		feed_some(gather, scene, turn, &at[turn], piece, out);
	}
	for (uint32_t i = 0; i < 3; i++) {
		struct str text;
		enum glue_gather_fault fault = glue_gather_fault(gather, i, &text);
		assert_string_equal(glue_gather_fault_name(fault), scene->faults[i] ? scene->faults[i] : "ok");
		assert_int_equal(glue_gather_has_more(gather, i), scene->more[i]);
	}
	glue_gather_free(gather);
	return any;
}

static const struct scene scenes[] = {
	{.list = "/l",
     .texts = {"{\"l\":[1,2],\"n\":2}", "{\"l\":[3],\"n\":1}", "{\"l\":[4]}"},
     .expected = "{\"l\":[1,2,3,4],\"n\":2}"},
	{.list = "", .texts = {"[1]", "[]", "[2,3]"}, .expected = "[1,2,3]"},
	{.list = "", .texts = {"[]", "[ ]", "\n[\n]\n"}, .expected = "[]"},
	{.list = "", .texts = {" [ ] ", "[1]", "[2]"}, .expected = " [1,2 ] "},
	/* white space stays with what it was at */
	{.list = "/l",
     .texts = {"{\n \"l\": [\n  {\"a\": 1},\n  {\"b\": 2}\n ]\n}\n", "{\"l\":[ \n  3 , 4 ]}", "{\"l\":[]}"},
     .expected = "{\n \"l\": [\n  {\"a\": 1},\n  {\"b\": 2}, \n  3 , 4\n ]\n}\n"},
	/* what was set up alike: only objects, and only what is the same byte by byte; not where sites are shown */
	{.list = "",
     .texts = {"[{\"i\":1},7,{\"i\":2}]", "[{\"i\":1}, {\"i\": 2},7]", "[{\"i\":2}]"},
     .expected = "[{\"i\":1},7,{\"i\":2}, {\"i\": 2},7]",
     .alike = true},
	{.list = "",
     .texts = {"[{\"i\":1}]", "[{\"i\":1}]", "[{" REPLICA(A) ",\"i\":1}]"},
     .expected = "[{\"i\":1},{\"i\":1}]",
     .alike = true},
	{.list = "",
     .texts = {"[{\"i\":1}]", "[{\"i\":1}]", "[]"},
     .expected = "[{\"cheops-site\":\"Site1\",\"i\":1},{\"cheops-site\":\"Site\\\"2\",\"i\":1}]",
     .alike = true,
     .names = true},
	/* elements of all kinds */
	{.list = "",
     .texts = {"[\"a]\\\"\",[1,[2]],{}]", "[null,true,-1.5e3,\"\"]", "[{\"x\":{\"y\":[]}}]"},
     .expected = "[\"a]\\\"\",[1,[2]],{},null,true,-1.5e3,\"\",{\"x\":{\"y\":[]}}]"},
	/* deeper, with an escape in the key and in the pointer, behind another member */
	{.list = "/a~1b/l",
     .texts = {"{\"x\":[9],\"a\\/b\":{\"z\":{},\"l\":[1],\"y\":[]},\"w\":0}", "{\"a/b\":{\"l\":[2]}}",
               "{\"a/b\":{\"l\":[]}}"},
     .expected = "{\"x\":[9],\"a\\/b\":{\"z\":{},\"l\":[1,2],\"y\":[]},\"w\":0}"},
	{.list = "/1/l",
     .texts = {"[0,{\"l\":[1]},{\"l\":[7]}]", "[0,{\"l\":[2]}]", "[{\"l\":[7]},{\"l\":[3]}]"},
     .expected = "[0,{\"l\":[1,2,3]},{\"l\":[7]}]"},
	/* null is an empty list */
	{.list = "/l", .texts = {"{\"l\":null,\"n\":0}", "{\"l\":[1]}", "{\"l\":null}"}, .expected = "{\"l\":[1],\"n\":0}"},
	{.list = "/l", .texts = {"{\"l\":null}", "{\"l\":[]}", "{\"l\":null}"}, .expected = "{\"l\":null}"},
	/* a byte order mark is no part of it */
	{.list = "", .texts = {"\xef\xbb\xbf[1]", "\xef\xbb\xbf[2]", "[3]"}, .expected = "[1,2,3]"},
	{.list = "", .texts = {"\xef\xbb[1]", "[2]", "[3]"}, .expected = "[2,3]", .faults = {"no-json"}},
	/* replicas once, and their marks out */
	{.list = "",
     .texts = {"[{" REPLICA(A) ",\"i\":1},{\"i\":2}]", "[{" REPLICA(A) ",\"i\":1}, {" REPLICA(B) "}]",
               "[ {" REPLICA(B) " },{" REPLICA(A) ", \"i\":1} ,{\"i\":2}]"},
     .expected = "[{\"i\":1},{\"i\":2}, {} ,{\"i\":2}]"},
	/* a mark that says that it is none; one that is not the first member; one that is no string */
	{.list = "",
     .texts = {"[{" REPLICA("") ",\"cheops-replica\":\"mine\"}]", "[{\"i\":1," REPLICA(A) "}]",
               "[{\"cheops-replica\":{\"a\":1},\"b\":[]}]"},
     .expected = "[{\"cheops-replica\":\"mine\"},{\"i\":1," REPLICA(A) "},{\"cheops-replica\":{\"a\":1},\"b\":[]}]"},
	{.list = "", .texts = {"[{" REPLICA(A) " , \"i\":1}]", "[]", "[{" REPLICA(A) "}]"}, .expected = "[{ \"i\":1}]"},
	/* where they are */
	{.list = "",
     .texts = {"[{\"i\":1},{},7,[{}]]", "[{" REPLICA(A) ",\"i\":1}, { }]", "[{" REPLICA(A) "}]"},
     .expected = "[{\"cheops-site\":\"Site1\",\"i\":1},{\"cheops-site\":\"Site1\"},7,[{}],{\"cheops-site\":"
                 "\"Site\\\"2\",\"i\":1}, {\"cheops-site\":\"Site\\\"2\" }]",
     .names = true},
	/* pages */
	{.list = "/l",
     .texts = {"{\"next\":\"/p2\",\"l\":[1]}", "{\"l\":[2],\"next\":\"\"}", "{\"l\":[3],\"next\":[{}]}"},
     .expected = "{\"next\":\"/p2\",\"l\":[1,2,3]}",
     .next = "/next",
     .more = {true, false, true}},
	{.list = "/l",
     .texts = {"{\"m\":{\"c\":null},\"l\":[]}", "{\"l\":[],\"m\":{\"c\":{}}}", "{\"m\":{\"c\":{\"a\":[1]}},\"l\":[]}"},
     .expected = "{\"m\":{\"c\":null},\"l\":[]}",
     .next = "/m/c",
     .more = {false, false, true}},
	/* pages, of which the first is all that is shown: before the array and behind it */
	{.list = "/l",
     .texts = {"{\"next\" : \"/p2\" ,\"l\":[1]}", "{\"l\":[2],\"next\":\"\"}", "{\"l\":[3],\"next\":[{}]}"},
     .expected = "{\"next\" : null ,\"l\":[1,2,3]}",
     .next = "/next",
     .one_page = true,
     .more = {true, false, true}},
	{.list = "/l",
     .texts = {"{\"l\":[1],\"next\":[ {\"rel\":\"next\"}, [] ],\"z\":[1]}", "{\"l\":[2]}", "{\"next\":7,\"l\":[3]}"},
     .expected = "{\"l\":[1,2,3],\"next\":[],\"z\":[1]}",
     .next = "/next",
     .one_page = true,
     .more = {true, false, true}},
	{.list = "/l",
     .texts = {"{\"m\":{\"c\":{\"a\":[1]},\"d\":2},\"l\":[1]}", "{\"l\":[2]}", "{\"l\":[3]}"},
     .expected = "{\"m\":{\"c\":{},\"d\":2},\"l\":[1,2,3]}",
     .next = "/m/c",
     .one_page = true,
     .more = {true, false, false}},
	{.list = "/l",
     .texts = {"{\"l\":null,\"c\":12}", "{\"l\":[2]}", "{\"l\":[]}"},
     .expected = "{\"l\":[2],\"c\":null}",
     .next = "/c",
     .one_page = true,
     .more = {true, false, false}},
	{.list = "/l",
     .texts = {"{\"l\":[],\"c\":\"\"}", "{\"l\":[]}", "{\"l\":[]}"},
     .expected = "{\"l\":[],\"c\":\"\"}",
     .next = "/c",
     .one_page = true},
	/* no list there */
	{.list = "/l",
     .texts = {"{\"k\":[1]}", "{\"l\":[2]}", "{\"l\":{}}"},
     .expected = "{\"l\":[2]}",
     .faults = {"no-list", NULL, "no-list"}},
	{.list = "/l",
     .texts = {"[1]", "7", "{\"l\":true}"},
     .expected = NULL,
     .faults = {"no-list", "no-list", "no-list"}},
	{.list = "/a/l",
     .texts = {"{\"a\":null}", "{\"a\":{\"l\":[1]}}", "{}"},
     .expected = "{\"a\":{\"l\":[1]}}",
     .faults = {"no-list", NULL, "no-list"}},
	{.list = "", .texts = {"{}", "[1]", ""}, .expected = "[1]", .faults = {"no-list", NULL, "no-json"}},
	/* no JSON */
	{.list = "", .texts = {"<html>", "[1]", "[2"}, .expected = "[1]", .faults = {"no-json", NULL, "no-json"}},
	{.list = "", .texts = {"[1,]", "[,1]", "[1] x"}, .expected = NULL, .faults = {"no-json", "no-json", "no-json"}},
	{.list = "/l",
     .texts = {"{\"l\":[1]", "{\"l\":[2]}}", "{\"l\":[3]}"},
     .expected = "{\"l\":[3]}",
     .faults = {"no-json", "no-json"}},
	/* broken off before the answer began */
	{.list = "", .texts = {"[1,2", "[3]", "[4]"}, .expected = "[3,4]", .faults = {"given-up"}, .cut = {true}},
	/* what readers would take for the list instead */
	{.list = "/l",
     .texts = {"{\"l\":[1],\"l\":[]}", "{\"l\":[2]}", "{\"l\":null,\"\\u006c\":[3]}"},
     .expected = "{\"l\":[2]}",
     .faults = {"twice", NULL, "twice"}},
	{.list = "/a/l",
     .texts = {"{\"a\":{},\"a\":{\"l\":[1]}}", "{\"a\":{\"l\":[2],\"a\":0}}", "{\"a\":{\"l\":[3]},\"a\":0}"},
     .expected = "{\"a\":{\"l\":[2],\"a\":0}}",
     .faults = {"twice", NULL, "twice"}},
};

static void test_scenes(void **state)
{
	(void)state;
	struct buf out = {0};
	for (size_t i = 0; i < COUNT(scenes); i++) {
		size_t longest = 0;
		for (int j = 0; j < 3; j++)
			longest = strlen(scenes[i].texts[j]) > longest ? strlen(scenes[i].texts[j]) : longest;
		/* In two pieces, cut at each place; and in pieces of each size. */
		for (size_t n = 1; n <= longest + 1; n++) {
			buf_clear(&out);
			if (gather(&scenes[i], n, SIZE_MAX, &out))
				assert_string_equal(buf_c(&out), scenes[i].expected);
			buf_clear(&out);
			if (gather(&scenes[i], 0, n, &out))
				assert_string_equal(buf_c(&out), scenes[i].expected);
		}
	}
	buf_free(&out);
}

/* ---- What goes wrong once the answer has begun --------------------------------------------------------------------- */

/* A list that is longer than the window, so that the answer begins before its end is there. */
static void put_long(struct buf *out, int number)
{
	buf_put(out, STR("{\"l\":["));
	for (int i = 0; out->length < 2 * LIMIT_GATHER_WINDOW_BYTES; i++)
		buf_printf(out, "%s{\"n\":%d}", i ? "," : "", number * 1000000 + i);
}

/* Of three long lists one ends in another way. Returns what came out. */
static void broken(uint32_t which, const char *end, bool cut, const char *fault, struct buf *out)
{
	struct glue_gather_options options = {.sites_count = 3, .list = STR("/l")};
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	struct buf texts[3] = {0};
	struct str why;
	for (int i = 0; i < 3; i++)
		put_long(&texts[i], i + 1);
	for (uint32_t i = 0; i < 3; i++)
		glue_gather_feed(gather, i, str_make(texts[i].at, LIMIT_GATHER_WINDOW_BYTES + 100), out);
	assert_true(glue_gather_ready(gather));
	assert_true(glue_gather_begin(gather, out));
	for (uint32_t i = 0; i < 3; i++) {
		struct str rest =
			str_make(texts[i].at + LIMIT_GATHER_WINDOW_BYTES + 100, texts[i].length - LIMIT_GATHER_WINDOW_BYTES - 100);
		assert_int_equal(glue_gather_turn(gather), i);
		glue_gather_feed(gather, i, rest, out);
		glue_gather_feed(gather, i, str_of(i == which ? end : "],\"after\":[]}"), out);
		if (i == which && cut)
			glue_gather_fail(gather, i, out);
		else
			glue_gather_end(gather, i, out);
		assert_string_equal(glue_gather_fault_name(glue_gather_fault(gather, i, &why)), i == which ? fault : "ok");
	}
	assert_int_equal(glue_gather_turn(gather), 3);
	/* All whole elements of all three are there. */
	struct buf expected = {0};
	for (int i = 0; i < 3; i++) {
		buf_put(&expected, i ? STR(",") : STR("{\"l\":["));
		buf_put(&expected, str_make(texts[i].at + 6, texts[i].length - 6));
		buf_free(&texts[i]);
	}
	buf_put(&expected, which == 0 ? STR("]}") : STR("],\"after\":[]}"));
	assert_int_equal(out->length, expected.length);
	assert_memory_equal(out->at, expected.at, expected.length);
	buf_free(&expected);
	glue_gather_free(gather);
}

static void test_broken_later(void **state)
{
	(void)state;
	static const struct {
		const char *end;
		bool cut;
		const char *fault;
	} ends[] = {
		{",{\"n\":5", true, "given-up"},
		{",{\"n\":5", false, "no-json"},
		{",<", false, "no-json"},
		{"],\"l\":[]}", false, "twice"},
		{"],\"after\":", true, "given-up"},
		{"]}]", false, "no-json"},
		{"],\"after\":[1,2}", false, "no-json"},
		{",", false, "no-json"},
	};
	struct buf out = {0};
	for (size_t i = 0; i < COUNT(ends); i++) {
		for (uint32_t which = 0; which < 3; which++) {
			buf_clear(&out);
			broken(which, ends[i].end, ends[i].cut, ends[i].fault, &out);
		}
	}
	buf_free(&out);
}

/* ---- Limits -------------------------------------------------------------------------------------------------------- */

static void test_limits(void **state)
{
	(void)state;
	struct glue_gather_options options = {.sites_count = 2, .list = STR("/l")};
	struct buf out = {0}, spaces = {0};
	struct str why;
	buf_put_repeat(&spaces, ' ', 1 << 20);
	for (int where = 0; where < 3; where++) { /* before the array, in an element, behind */
		struct glue_gather *gather = glue_gather_new(&options, NULL);
		buf_clear(&out);
		glue_gather_feed(gather, 1, STR("{\"l\":[2]}"), &out);
		glue_gather_end(gather, 1, &out);
		glue_gather_feed(gather, 0, where == 0 ? STR("{") : where == 1 ? STR("{\"l\":[1,[") : STR("{\"l\":[1]"), &out);
		while (glue_gather_wants(gather, 0))
			glue_gather_feed(gather, 0, buf_str(&spaces), &out);
		assert_true(glue_gather_begin(gather, &out));
		for (int i = 0; i < 8; i++)
			glue_gather_feed(gather, 0, buf_str(&spaces), &out);
		glue_gather_end(gather, 0, &out);
		assert_int_equal(glue_gather_fault(gather, 0, &why), GLUE_GATHER_TOO_LONG);
		assert_non_null(strstr(why.at, "is longer than"));
		assert_string_equal(buf_c(&out), where == 0 ? "{\"l\":[2]}" : "{\"l\":[1,2]}");
		glue_gather_free(gather);
	}
	buf_free(&out);
	buf_free(&spaces);
}

static void test_many_replicas(void **state)
{
	(void)state;
	struct glue_gather_options options = {.sites_count = 2, .list = STR("")};
	struct glue_gather *gather = glue_gather_new(&options, NULL);
	struct buf out = {0}, piece = {0};
	struct str why;
	glue_gather_marked(gather, 0);
	glue_gather_feed(gather, 1, STR("[2]"), &out);
	glue_gather_end(gather, 1, &out);
	glue_gather_feed(gather, 0, STR("[0"), &out);
	for (int i = 0; i < LIMIT_GATHER_REPLICAS + 10; i++) {
		buf_clear(&piece);
		buf_printf(&piece, ",{\"cheops-replica\":\"01890000-0000-7000-8000-%012x\"}", i);
		glue_gather_feed(gather, 0, buf_str(&piece), &out);
		if (i == LIMIT_GATHER_WINDOW_BYTES)
			assert_true(glue_gather_begin(gather, &out));
	}
	assert_int_equal(glue_gather_fault(gather, 0, &why), GLUE_GATHER_REPLICAS);
	assert_non_null(strstr(why.at, "1048576"));
	assert_int_equal(out.length, 2 + 3 * (size_t)LIMIT_GATHER_REPLICAS + 3);
	assert_string_equal(out.at + out.length - 7, "},{},2]");
	glue_gather_free(gather);
	buf_free(&out);
	buf_free(&piece);
}

static void test_bad_pointers(void **state)
{
	(void)state;
	struct err err;
	assert_null(glue_gather_new(&(struct glue_gather_options){.sites_count = 1, .list = STR("/a/*")}, &err));
	assert_non_null(strstr(err.text, "no `*`"));
	assert_null(glue_gather_new(&(struct glue_gather_options){.sites_count = 1, .list = STR("a")}, &err));
}

/* ---- Marks --------------------------------------------------------------------------------------------------------- */

static bool to_meta(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	(void)context;
	if (!str_equal(place->value, STR("7")))
		return false;
	buf_put(value, STR(A));
	*quoted = true;
	return true;
}

static void mark(void *context, const struct glue_place *place, struct str within, struct buf *meta_id)
{
	(void)context;
	assert_int_equal(within.length, 0);
	if (str_equal(place->value, STR("9")))
		buf_put(meta_id, STR(B));
}

/* Marks that were put in are taken out again, and nothing else changes. */
static void check_taken_out(struct str marked, const char *expected)
{
	struct glue_gather *gather =
		glue_gather_new(&(struct glue_gather_options){.sites_count = 1, .list = STR("/l")}, NULL);
	struct buf out = {0};
	glue_gather_marked(gather, 0);
	glue_gather_feed(gather, 0, marked, &out);
	glue_gather_end(gather, 0, &out);
	assert_true(glue_gather_begin(gather, &out));
	assert_string_equal(buf_c(&out), expected);
	glue_gather_free(gather);
	buf_free(&out);
}

static void test_marks(void **state)
{
	(void)state;
	static const struct {
		const char *text, *expected, *unmarked; /* NULL: it is no list */
	} cases[] = {
		{"{\"l\":[{\"id\":7},{\"id\":9}]}", "{\"l\":[{" REPLICA(A) ",\"id\":\"" A "\"},{" REPLICA(B) ",\"id\":9}]}",
	     "{\"l\":[{\"id\":\"" A "\"},{\"id\":9}]}"},
		{"{\"l\":[{ \"x\":{\"id\":7}, \"id\": \"7\" } , {}, { }, 7]}",
	     "{\"l\":[{" REPLICA(A) ", \"x\":{\"id\":7}, \"id\": \"" A "\" } , {}, { }, 7]}",
	     "{\"l\":[{ \"x\":{\"id\":7}, \"id\": \"" A "\" } , {}, { }, 7]}"},
		{"{\"l\":[{\"cheops-replica\":\"x\",\"id\":8}, {\"cheops-replica\":1,\"id\":7}]}",
	     "{\"l\":[{" REPLICA("") ",\"cheops-replica\":\"x\",\"id\":8}, {" REPLICA(A) ",\"cheops-replica\":1,\"id\":\"" A
	                                                                                 "\"}]}",
	     "{\"l\":[{\"cheops-replica\":\"x\",\"id\":8}, {\"cheops-replica\":1,\"id\":\"" A "\"}]}"},
		{"\xef\xbb\xbf{\"l\":[{" REPLICA(B) "}]}", "\xef\xbb\xbf{\"l\":[{" REPLICA("") "," REPLICA(B) "}]}",
	     "{\"l\":[{" REPLICA(B) "}]}"},
		{"{\"k\":[{\"id\":7}],\"l\":[{\"id\":7,", "{\"k\":[{\"id\":7}],\"l\":[{\"id\":\"" A "\",", NULL},
		{"{\"l\":[{\"id\":7,}]}", "{\"l\":[{\"id\":\"" A "\",}]}", NULL},
		{"{\"l\":{\"id\":7}}", "{\"l\":{\"id\":7}}", NULL},
	};
	struct glue_places *places = glue_places_new();
	struct glue_replacer replacer = {.replace = to_meta};
	struct glue_marker marker = {.mark = mark};
	struct buf out = {0};
	assert_int_equal(glue_places_add(places, STR("/l/*/id"), GLUE_PLACE_ID, NULL, NULL), 0);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct str text = str_of(cases[i].text);
		for (size_t piece = 1; piece <= text.length; piece++) {
			struct glue_splicer *splicer = glue_splicer_new(places, &replacer);
			assert_true(glue_splicer_mark(splicer, STR("/l"), &marker));
			buf_clear(&out);
			for (size_t at = 0; at < text.length; at += piece)
				glue_splice(splicer, str_make(text.at + at, text.length - at < piece ? text.length - at : piece), &out,
				            NULL);
			glue_splice_end(splicer, &out, NULL);
			assert_string_equal(buf_c(&out), cases[i].expected);
			if (cases[i].unmarked)
				check_taken_out(buf_str(&out), cases[i].unmarked);
			glue_splicer_free(splicer);
		}
	}
	buf_free(&out);
	glue_places_free(places);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_scenes),        cmocka_unit_test(test_broken_later), cmocka_unit_test(test_limits),
		cmocka_unit_test(test_many_replicas), cmocka_unit_test(test_bad_pointers), cmocka_unit_test(test_marks),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
