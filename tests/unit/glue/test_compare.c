/* What is compared between replicas: equal states give equal texts, whatever way they are written in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "glue/glue_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct str volatiles[] = {STR_INIT("/updated_at"), STR_INIT("/status/*/time"), STR_INIT("/tags/1"),
                                 STR_INIT("/a~1b")};
static const struct glue_type plain = {.name = STR_INIT("t.plain"), .volatiles = {volatiles, COUNT(volatiles)}};
static const struct glue_type wrapped = {
	.name = STR_INIT("t.wrapped"), .object = STR_INIT("/server"), .volatiles = {volatiles, COUNT(volatiles)}};

static void canonical(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		const char *text;
	} cases[] = {
		{"{}", "{}"},
		{" [ ] ", "[]"},
		{"{\"b\": 1, \"a\": [ 2 , {\"d\":null,\"c\":true} ]}", "{\"a\":[2,{\"c\":true,\"d\":null}],\"b\":1}"},
		{"{\"a\":1,\"b\":2,\"c\":3}", "{\"a\":1,\"b\":2,\"c\":3}"},
		{"{\"ab\":1,\"a\":2,\"\":3}", "{\"\":3,\"a\":2,\"ab\":1}"},
		/* numbers as they are written */
		{"[1.0,1,1e0,-0,10000000000000000000001]", "[1.0,1,1e0,-0,10000000000000000000001]"},
		/* strings in one way, in keys too */
		{"[\"\\u0061\\/\\u00e9\\ud83d\\ude00\"]", "[\"a/\xc3\xa9\xf0\x9f\x98\x80\"]"},
		{"[\"\\u0001\\n\\u000A\\\"\\u0022\\\\\\u005C\"]", "[\"\\u0001\\n\\n\\\"\\\"\\\\\\\\\"]"},
		{"[\"\\uD800\",\"\\ud800x\"]", "[\"\\ud800\",\"\\ud800x\"]"},
		{"{\"\\u0062\":1,\"a\":2}", "{\"a\":2,\"b\":1}"},
		/* the same name twice: both, in their order */
		{"{\"b\":0,\"a\":2,\"a\":1}", "{\"a\":2,\"a\":1,\"b\":0}"},
		{"{\"b\":{\"z\":1,\"y\":{\"x\":1,\"w\":2}},\"a\":{\"z\":1,\"y\":2}}",
	     "{\"a\":{\"y\":2,\"z\":1},\"b\":{\"y\":{\"w\":2,\"x\":1},\"z\":1}}"},
		/* what may differ */
		{"{\"updated_at\":\"now\",\"x\":1}", "{\"x\":1}"},
		{"{\"x\":1,\"updated_at\":{\"y\":[1]}}", "{\"x\":1}"},
		{"{\"updated_at\":1}", "{}"},
		{"{\"\\u0075pdated_at\":1}", "{}"},
		{"{\"x\":{\"updated_at\":1}}", "{\"x\":{\"updated_at\":1}}"},
		{"{\"status\":[{\"time\":1,\"is\":2},{\"is\":3,\"time\":4}]}", "{\"status\":[{\"is\":2},{\"is\":3}]}"},
		{"{\"status\":{\"up\":{\"time\":1}}}", "{\"status\":{\"up\":{}}}"},
		{"{\"status\":{\"time\":1}}", "{\"status\":{\"time\":1}}"},
		{"{\"tags\":[1,2,3]}", "{\"tags\":[1,3]}"},
		{"{\"a/b\":1,\"a\":{\"b\":2}}", "{\"a\":{\"b\":2}}"},
		{"\"text\"", "\"text\""},
		{"12 ", "12"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = {0};
		struct err err = {0};
		buf_put(&out, STR("before "));
		if (glue_comparable(&plain, str_of(cases[i].body), &out, &err))
			fail_msg("%s: %s", cases[i].body, err.text);
		assert_string_equal(buf_c(&out) + 7, cases[i].text);
		buf_free(&out);
	}
}

static void within_the_object(void **state)
{
	(void)state;
	struct buf out = {0};
	assert_int_equal(
		glue_comparable(&wrapped, STR("{\"updated_at\":1,\"server\":{\"x\":1,\"updated_at\":2}}"), &out, NULL), 0);
	assert_string_equal(buf_c(&out), "{\"server\":{\"x\":1},\"updated_at\":1}");
	buf_free(&out);
}

struct texts {
	const char *body, *text;
};

static void must_become(const struct glue_type *type, const struct texts *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct buf out = {0};
		struct err err = {0};
		if (glue_comparable(type, str_of(cases[i].body), &out, &err))
			fail_msg("%s: %s", cases[i].body, err.text);
		assert_string_equal(buf_c(&out), cases[i].text);
		buf_free(&out);
	}
}

/* Each site builds them with a host of its own. */
static void links(void **state)
{
	(void)state;
	static struct str places[] = {STR_INIT("/self"), STR_INIT("/links/*/href"), STR_INIT("/updated_at")};
	static const struct glue_type type = {
		.name = STR_INIT("t.linked"), .volatiles = {volatiles, COUNT(volatiles)}, .links = {places, COUNT(places)}};
	static const struct texts cases[] = {
		{"{\"self\":\"http://10.0.0.1:9292/v2/images/1\"}", "{\"self\":\"/v2/images/1\"}"},
		{"{\"self\":\"https:\\/\\/h\\/x?y=http://h/\"}", "{\"self\":\"/x?y=http://h/\"}"},
		{"{\"self\":\"//h/x#z\"}", "{\"self\":\"/x#z\"}"},
		{"{\"self\":\"/x\",\"a\":\"http://h/x\"}", "{\"a\":\"http://h/x\",\"self\":\"/x\"}"},
		{"{\"links\":[{\"href\":\"http://h/x\"},{\"href\":\"http://h2/y\",\"rel\":\"http://h/z\"}]}",
	     "{\"links\":[{\"href\":\"/x\"},{\"href\":\"/y\",\"rel\":\"http://h/z\"}]}"},
		/* what is no link, or has no path */
		{"{\"self\":\"x/y\"}", "{\"self\":\"x/y\"}"},
		{"{\"self\":\"http://h\"}", "{\"self\":\"http://h\"}"},
		{"{\"self\":\"\"}", "{\"self\":\"\"}"},
		{"{\"self\":null,\"links\":[1,{\"href\":[\"http://h/x\"]}]}",
	     "{\"links\":[1,{\"href\":[\"http://h/x\"]}],\"self\":null}"},
		/* what may differ is left out, a link or not */
		{"{\"updated_at\":\"http://h/x\"}", "{}"},
	};
	must_become(&type, cases, COUNT(cases));
}

static void sets_are_in_one_order(void **state)
{
	(void)state;
	static struct str places[] = {STR_INIT("/tags"), STR_INIT("/nets/*/ips"), STR_INIT("/updated_at")};
	static const struct glue_type type = {
		.name = STR_INIT("t.sets"), .volatiles = {volatiles, 2}, .sets = {places, COUNT(places)}};
	static const struct texts cases[] = {
		{"{\"tags\":[\"b\",\"a\",\"c\"],\"x\":[2,1]}", "{\"tags\":[\"a\",\"b\",\"c\"],\"x\":[2,1]}"},
		{"{\"tags\":[\"ab\", \"a\", \"\\u0061\"]}", "{\"tags\":[\"a\",\"a\",\"ab\"]}"},
		{"{\"tags\":[]}", "{\"tags\":[]}"},
		{"{\"tags\":[{\"b\":1,\"a\":[2,1]},{\"a\":[1]},[3,2]]}",
	     "{\"tags\":[[3,2],{\"a\":[1]},{\"a\":[2,1],\"b\":1}]}"},
		{"{\"nets\":[{\"ips\":[2,1]},{\"ips\":[4,3,5]}]}", "{\"nets\":[{\"ips\":[1,2]},{\"ips\":[3,4,5]}]}"},
		/* something else is there, and what is left out stays so */
		{"{\"tags\":{\"b\":1,\"a\":2},\"nets\":7}", "{\"nets\":7,\"tags\":{\"a\":2,\"b\":1}}"},
		{"{\"tags\":\"b\",\"updated_at\":[2,1]}", "{\"tags\":\"b\"}"},
	};
	must_become(&type, cases, COUNT(cases));
}

static void what_is_refused(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		const char *message;
	} cases[] = {
		{"", "no JSON: it ends at byte 0, where there should be a value"},
		{"{\"b\":1,\"a\":2", "no JSON: it ends at byte 12, where there should be `,` or `}`"},
		{"{} {}", "no JSON at byte 3: there is `{`, and should be nothing more"},
		{"{\"updated_at\":oops}", "no JSON at byte 14: there is `o`, and should be a value"},
	};
	struct buf out = {0}, large = {0};
	struct err err = {0};
	buf_put(&out, STR("before"));
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(glue_comparable(&plain, str_of(cases[i].body), &out, &err), ERR_INVALID);
		assert_string_equal(err.text, cases[i].message);
		assert_string_equal(buf_c(&out), "before");
	}
	buf_put_repeat(&large, ' ', LIMIT_GLUE_COMPARE_BYTES);
	buf_put(&large, STR("1"));
	assert_int_equal(glue_comparable(&plain, buf_str(&large), &out, &err), ERR_LIMIT);
	assert_string_equal(err.text, "a body of 16777217 bytes is too long to be compared; the limit is 16777216");
	large.length--;
	large.at[0] = '1';
	assert_int_equal(glue_comparable(&plain, buf_str(&large), &out, &err), 0);
	assert_string_equal(buf_c(&out), "before1");
	buf_free(&large);
	buf_free(&out);
}

/* The members of a nested object in any order: one text. */
static void any_order(void **state)
{
	(void)state;
	enum { MEMBERS = 40, ROUNDS = 200 };
	struct buf body = {0}, first = {0}, out = {0};
	uint64_t random = 1;
	for (int round = 0; round < ROUNDS; round++) {
		unsigned order[MEMBERS];
		for (unsigned i = 0; i < MEMBERS; i++) {
			random = random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
			unsigned other = (unsigned)(random >> 33) % (i + 1);
			order[i] = order[other];
			order[other] = i;
		}
		buf_clear(&body);
		buf_put(&body, STR("{\"outer\":{"));
		for (unsigned i = 0; i < MEMBERS; i++)
			buf_printf(&body, "%s\"m%u\":%s", i ? "," : "", order[i],
			           order[i] % 2 == (unsigned)round % 2 ? "{\"a\":1,\"b\":2}" : "{ \"b\":2, \"a\":1}");
		buf_put(&body, STR("}}"));
		buf_clear(&out);
		assert_int_equal(glue_comparable(&plain, buf_str(&body), &out, NULL), 0);
		if (round == 0)
			buf_put(&first, buf_str(&out));
		assert_string_equal(buf_c(&out), buf_c(&first));
	}
	buf_free(&body);
	buf_free(&first);
	buf_free(&out);
}

/* Parts are of one site: a list of them goes as a whole, also where nothing calls it volatile. */
static void test_parts(void **state)
{
	(void)state;
	static const char description[] =
		"format: 1\n"
		"application: cloud\n"
		"services: {compute: }\n"
		"types:\n"
		"  compute.server: {collection: /servers, item: '/servers/{id}'}\n"
		"  compute.stack:\n"
		"    collection: /stacks\n"
		"    item: /stacks/{id}\n"
		"    volatile: [/created]\n"
		"    references: {body: {'/servers/*': {type: compute.server, kind: composition},\n"
		"      '/groups/*/servers/*': {type: compute.server, kind: composition}, /first: compute.server}}\n";
	static const char body[] =
		"{\"id\":\"7\",\"count\":2,\"created\":1,\"first\":\"a\",\"groups\":[{\"name\":\"g\",\"servers\":[\"c\"]}],"
		"\"servers\":[\"a\",\"b\"]}";
	struct glue *glue = NULL;
	struct glue_options options = {.path = "cloud.yaml", .hash_key = {1, 2}};
	struct err err = {0};
	struct buf out = {0};
	if (glue_read(&glue, str_of(description), &options, &err) != 0)
		fail_msg("%s", err.text);
	const struct glue_type *server = glue_type_at(glue, 0), *stack = glue_type_at(glue, 1);
	assert_false(glue_type_has_parts(server));
	assert_true(glue_type_has_parts(stack));
	assert_int_equal(glue_without_parts(stack, str_of(body), &out, &err), 0);
	assert_string_equal(buf_c(&out),
	                    "{\"count\":2,\"created\":1,\"first\":\"a\",\"groups\":[{\"name\":\"g\"}],\"id\":\"7\"}");
	buf_clear(&out);
	assert_int_equal(glue_comparable(stack, str_of(body), &out, &err), 0);
	assert_string_equal(buf_c(&out), "{\"count\":2,\"first\":\"a\",\"groups\":[{\"name\":\"g\"}],\"id\":\"7\"}");
	buf_clear(&out);
	assert_int_equal(glue_anew(stack, str_of(body), false, &out, &err), 0);
	assert_string_equal(buf_c(&out), "{\"count\":2,\"first\":\"a\",\"groups\":[{\"name\":\"g\"}]}");
	buf_clear(&out);
	assert_int_equal(glue_without_parts(stack, STR("no JSON"), &out, &err), ERR_INVALID);
	buf_free(&out);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(canonical),       cmocka_unit_test(within_the_object),
		cmocka_unit_test(links),           cmocka_unit_test(sets_are_in_one_order),
		cmocka_unit_test(what_is_refused), cmocka_unit_test(test_parts),
		cmocka_unit_test(any_order),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
