/* What a request is: the shipped descriptions, the order of templates and operations, and paths with two readings. */
#include "glue_test.h"

struct reading {
	const char *service;
	const char *request;
	const char *is;
};

static void check(const struct glue *glue, const struct reading *readings, size_t count)
{
	for (size_t i = 0; i < count; i++)
		assert_match(glue, readings[i].service, readings[i].request, readings[i].is);
}

/* ---- Shipped descriptions ---------------------------------------------------------------------------------------- */

static void the_sample(void **state)
{
	(void)state;
	static const struct reading readings[] = {
		{"image", "GET /images", "image.image list list in=/images"},
		{"image", "HEAD /images", "image.image list list in=/images"},
		{"image", "POST /images", "image.image create create in=/images"},
		{"image", "GET /images/7", "image.image read read id=7 in=/images"},
		{"image", "PUT /images/7", "image.image replace replace id=7 in=/images"},
		{"image", "PATCH /images/7", "image.image patch assign id=7 in=/images"},
		{"image", "DELETE /images/7", "image.image delete delete id=7 in=/images"},
		{"image", "PUT /images/7/file", "image.image upload replace id=7 in=/images"},
		{"image", "GET /images/7/file", "image.image download read id=7 in=/images"},
		{"image", "DELETE /images/7/file", ""},
		{"image", "GET /whoami", ""},
		{"image", "GET /servers", ""},
		{"image", "BREW /images", ""},
		{"nobody", "GET /images", ""},
		{"compute", "POST /servers", "compute.server create create in=/servers"},
		{"compute", "PUT /servers/7", ""},
		{"compute", "PATCH /servers/7", ""},
		{"compute", "POST /servers/7/action", "compute.server ? id=7 in=/servers"},
		{"network", "GET /networks/7", "network.network read read id=7 in=/networks"},
		{"network", "DELETE /networks/7", ""},
		{"network", "POST /ports", "network.port create create in=/ports"},
		{"network", "GET /pools?name=x", "network.pool list list in=/pools"},
		{"network", "POST /pools/7/grow", "network.pool grow relative id=7 in=/pools"},
		{"network", "POST /pools/7/allocate", "network.pool allocate relative id=7 in=/pools"},
		{"image", "PUT /secrets/7", "image.secret replace replace id=7 in=/secrets"},
		{"image", "POST /projects/7/secrets", ""},
		{"compute", "DELETE /projects/7", "compute.project delete delete id=7 in=/projects"},
		{"compute", "GET /projects/7/servers", "compute.server list list in=/projects/7/servers"},
		{"compute", "POST /projects/7/servers", "compute.server create create in=/projects/7/servers"},
		{"compute", "DELETE /projects/7/servers/8", "compute.server delete delete id=8 in=/projects/7/servers"},
		{"compute", "POST /projects/7/servers/8/action", "compute.server ? id=8 in=/projects/7/servers"},
		{"compute", "POST /volumes/8/attach", "compute.volume attach relative id=8 in=/volumes"},
		{"compute", "POST /projects/7/volumes/8/detach", "compute.volume detach relative id=8 in=/projects/7/volumes"},
		{"compute", "PATCH /projects/7/stacks/8", "compute.stack patch assign id=8 in=/projects/7/stacks"},
		{"compute", "PUT /stacks/8", ""},
		{"compute", "GET /projects/7/ports", ""},
	};
	struct glue *glue = read_app("apps/sample.yaml");
	check(glue, readings, COUNT(readings));
	assert_true(str_equal(glue_application(glue), STR("sample")));
	glue_free(glue);
}

static void any_rest_application(void **state)
{
	(void)state;
	static const struct reading readings[] = {
		{"shop", "GET /things", "shop.things list list in=/things"},
		{"shop", "POST /things", "shop.things create create in=/things"},
		{"shop", "GET /things/7", "shop.things read read id=7 in=/things"},
		{"shop", "DELETE /things/7", "shop.things delete delete id=7 in=/things"},
		{"other", "PATCH /posts/a%20b", "other.posts patch assign id=a%20b in=/posts"},
		{"shop", "GET /things/7/parts", "shop.parts list list in=/things/7/parts"},
		{"shop", "PUT /things/7/parts/3", "shop.parts replace replace id=3 in=/things/7/parts"},
		{"shop", "GET /a/1/b/2/c/3", "shop.c read read id=3 in=/a/1/b/2/c"},
		{"shop", "GET /a/1/b/2/c/3/d", ""},
		{"shop", "GET /api/v1/things/7", "shop.things read read id=7 in=/things"},
		{"shop", "POST /v2/things", "shop.things create create in=/things"},
		{"shop", "GET /", ""},
		{"shop", "GET /things/", ""},
	};
	struct glue *glue = read_app("apps/rest.yaml");
	check(glue, readings, COUNT(readings));
	glue_free(glue);
}

/* ---- Which of several -------------------------------------------------------------------------------------------- */

static const char several[] =
	"format: 1\n"
	"application: several\n"
	"services: {a: {under: [/a]}, b: }\n"
	"types:\n"
	"  a.thing:\n"
	"    collection: /v1/things\n"
	"    item: '/v1/things/{id}'\n"
	"    lists: [/v1/things/detail]\n"
	"    operations:\n"
	"      watch: {method: GET, path: '{collection}', query: {watch: ['true', '1']}, effect: read, answer: stream}\n"
	"      observe: {method: GET, path: '{item}', query: {watch: '*'}, answer: stream}\n"
	"      unwatch: {method: GET, path: '{item}', query: {watch: 'false'}}\n"
	"      unfollow: {method: GET, path: '{collection}', query: {follow: 'false'}, effect: list}\n"
	"      follow: {method: GET, path: '{collection}', query: {follow: '*'}, effect: read, answer: stream}\n"
	"      merge: {method: PATCH, path: '{item}', content: application/merge-patch+json}\n"
	"      tag: {method: [PUT, DELETE], path: '{item}/tags/{tag}', effect: relative, facet: tags}\n"
	"      lend: {method: PUT, path: '/x/lent{item}/to/{whom}', effect: assign, facet: lent}\n"
	"      rest: {method: GET, path: '{item}/proxy/{path*}', effect: pass}\n"
	"      stop: {method: POST, path: '{item}/action', key: stop}\n"
	"      act: {method: POST, path: '{item}/action', key: '*'}\n"
	"      poke: {method: POST, path: '{item}/action'}\n"
	"  'a.{kind}.{group}':\n"
	"    collection: '/apis/{group}/{version}/{kind}'\n"
	"    item: '/apis/{group}/{version}/{kind}/{name}'\n"
	"    ignore: version\n"
	"    identity: chosen\n"
	"  b.slashed: {collection: /things/, item: '/things/{id}/', operations: {go: {method: POST, path: '{item}/go/'}}}\n"
	"  '*.{plural}': {collection: '/{plural}', item: '/{plural}/{id}'}\n";

static void the_more_literal_one_wins(void **state)
{
	(void)state;
	static const struct reading readings[] = {
		{"a", "GET /v1/things/detail", "a.thing list list in=/v1/things"},
		{"a", "GET /v1/things/other", "a.thing read read id=other in=/v1/things"},
		{"a", "DELETE /v1/things/detail", "a.thing delete delete id=detail in=/v1/things"},
		{"a", "GET /a/v1/things/7", "a.thing read read id=7 in=/v1/things"},
		{"a", "GET /a/a/v1/things/7", ""},
		{"a", "GET /v1/thing", "a.v1 read read id=thing in=/v1"},
		{"a", "GET /a", "a.a list list in=/a"},
		{"c", "GET /v1/things", "c.v1 read read id=things in=/v1"},
		{"a", "GET /apis/apps/v1/deployments/x", "a.deployments.apps read read id=x in=/apis/apps/deployments"},
		{"a", "PUT /v1/things/7/tags/red", "a.thing tag relative id=7 in=/v1/things"},
		{"a", "DELETE /v1/things/7/tags/red", "a.thing tag relative id=7 in=/v1/things"},
		{"a", "PUT /x/lent/v1/things/7/to/me", "a.thing lend assign id=7 in=/v1/things"},
		{"a", "PUT /a/x/lent/v1/things/7/to/me", "a.thing lend assign id=7 in=/v1/things"},
		{"a", "GET /v1/things/7/proxy/a", "a.thing rest pass id=7 in=/v1/things"},
		{"a", "GET /v1/things/7/proxy/a/b/c", "a.thing rest pass id=7 in=/v1/things"},
		{"a", "GET /v1/things/7/proxy/", ""},
		{"a", "GET /v1/things/7/proxy", ""},
		{"b", "GET /things/7/", "b.slashed read read id=7 in=/things"},
		{"b", "GET /things/7", "b.things read read id=7 in=/things"},
		{"b", "POST /things/", "b.slashed create create in=/things"},
		{"b", "POST /things/7/go/", "b.slashed go relative id=7 in=/things"},
	};
	struct glue *glue = read_fine(several);
	check(glue, readings, COUNT(readings));
	glue_free(glue);
}

static void the_one_that_asks_for_more_wins(void **state)
{
	(void)state;
	static const struct reading readings[] = {
		{"a", "GET /v1/things?watch=true", "a.thing watch read in=/v1/things"},
		{"a", "GET /v1/things?x=y&watch=1", "a.thing watch read in=/v1/things"},
		{"a", "GET /v1/things?w%61tch=tru%65", "a.thing watch read in=/v1/things"},
		{"a", "GET /v1/things?watch=truer", "a.thing list list in=/v1/things"},
		{"a", "GET /v1/things?watch=", "a.thing list list in=/v1/things"},
		{"a", "GET /v1/things?watcher=true&awatch=true", "a.thing list list in=/v1/things"},
		{"a", "GET /v1/things?follow", "a.thing follow read in=/v1/things"},
		{"a", "GET /v1/things?&&follow=%zz", "a.thing follow read in=/v1/things"},
		{"a", "GET /v1/things?follow=false", "a.thing unfollow list in=/v1/things"},
		{"a", "GET /v1/things/7?watch=1", "a.thing observe read id=7 in=/v1/things"},
		{"a", "GET /v1/things/7?watch=false", "a.thing unwatch read id=7 in=/v1/things"},
		{"a", "GET /v1/things/7?x=false", "a.thing read read id=7 in=/v1/things"},
		{"a", "GET /v1/things?", "a.thing list list in=/v1/things"},
		{"a", "POST /v1/things/7/action", "a.thing ?poke relative id=7 in=/v1/things"},
	};
	static const struct {
		const char *content;
		const char *is;
	} contents[] = {
		{"application/merge-patch+json", "a.thing merge assign id=7 in=/v1/things"},
		{"Application/Merge-Patch+JSON ; charset=utf-8", "a.thing merge assign id=7 in=/v1/things"},
		{"application/json-patch+json", "a.thing json-patch relative id=7 in=/v1/things"},
		{"application/json", "a.thing patch assign id=7 in=/v1/things"},
		{"", "a.thing patch assign id=7 in=/v1/things"},
	};
	struct glue *glue = read_fine(several);
	check(glue, readings, COUNT(readings));
	for (size_t i = 0; i < COUNT(contents); i++) {
		struct buf got = {0};
		struct glue_request request = request_of("a", "PATCH /v1/things/7");
		request.content_type = str_of(contents[i].content);
		put_match(&got, glue, &request);
		assert_string_equal(buf_c(&got), contents[i].is);
		buf_free(&got);
	}
	glue_free(glue);
}

static void the_body_says(void **state)
{
	(void)state;
	static const struct {
		const char *body;
		const char *operation;
		const char *key;
	} bodies[] = {
		{"{\"stop\": null}", "stop", "stop"},
		{" \t\r\n{ \"stop\"", "stop", "stop"},
		{"{\"reboot\": {}, \"stop\": null}", "act", "reboot"},
		{"{\"st\\u006fp\": null}", "stop", "stop"},
		{"{\"r\\u0065boot\": null}", "act", "*"},
		{"{\"st\\ud800p\": null}", "poke", ""},
		{"{\"st\\qop\": null}", "poke", ""},
		{"{}", "poke", ""},
		{"[\"stop\"]", "poke", ""},
		{"", "poke", ""},
		{"{\"sto", "poke", ""},
	};
	struct glue *glue = read_fine(several);
	for (size_t i = 0; i < COUNT(bodies); i++) {
		struct glue_match match;
		struct glue_request request = request_of("a", "POST /v1/things/7/action");
		assert_true(glue_match(glue, &request, &match) && match.needs_body);
		assert_true(glue_match_body(glue, str_of(bodies[i].body), &match, NULL));
		assert_true(str_equal(glue_operation_name(match.operation), str_of(bodies[i].operation)));
		assert_true(str_equal(match.key, str_of(bodies[i].key)));
		assert_true(str_equal(match.id, STR("7")) && !match.needs_body);
	}
	glue_free(glue);
}

static void a_body_that_says_nothing_known(void **state)
{
	(void)state;
	struct glue *glue = read_app("apps/sample.yaml");
	struct glue_match match;
	struct err err = {0};
	struct glue_request request = request_of("compute", "POST /servers/7/action");
	assert_true(glue_match(glue, &request, &match) && match.needs_body);
	assert_null(match.operation);
	assert_false(glue_match_body(glue, STR("{\"explode\": 1}"), &match, &err));
	assert_string_equal(err.text, "the body's first member is `explode`; described are `stop`, `start`, `reboot`");
	assert_false(glue_match_body(glue, STR("explode"), &match, &err));
	assert_string_equal(err.text,
	                    "the body is no JSON object with a first member; described are `stop`, `start`, `reboot`");
	glue_free(glue);
}

/* ---- What a match tells ------------------------------------------------------------------------------------------ */

static void values_are_slices_of_the_path(void **state)
{
	(void)state;
	struct glue *glue = read_fine(several);
	struct glue_match match;
	struct glue_request request = request_of("a", "GET /a/v1/things/7/proxy/x/y");
	assert_true(glue_match(glue, &request, &match));
	assert_int_equal(match.values_count, 2);
	assert_true(str_equal(match.values[0].name, STR("id")) && str_equal(match.values[0].text, STR("7")));
	assert_true(str_equal(match.values[1].name, STR("path")) && str_equal(match.values[1].text, STR("x/y")));
	assert_true(str_equal(match.collection, STR("/a/v1/things")));
	assert_ptr_equal(match.collection.at, request.path.at);
	assert_ptr_equal(match.id.at, request.path.at + strlen("/a/v1/things/"));
	assert_true(str_equal(match.service_name, STR("a")));
	glue_free(glue);
}

static void two_spellings_are_one_collection(void **state)
{
	(void)state;
	struct glue *glue = read_app("apps/rest.yaml");
	assert_match(glue, "x", "GET /a/%c3%a9/b", "x.b list list in=/a/%C3%A9/b");
	assert_match(glue, "x", "GET /a/%C3%A9/b", "x.b list list in=/a/%C3%A9/b");
	glue_free(glue);
}

/* A service may decode before it cuts, or cut before it decodes; may drop dots, or empty segments. */
static void paths_with_two_readings_match_nothing(void **state)
{
	(void)state;
	static const char *const paths[] = {
		"",
		"images",
		"/images/../images/7",
		"/images/./7",
		"/images//7",
		"//images",
		"/images/..",
		"/images/.",
		"/im%61ges/7",
		"/images/%2e%2e",
		"/images/a%2Fb",
		"/images/a%2fb",
		"/images/a%5Cb",
		"/images/a\\b",
		"/images/%",
		"/images/%4",
		"/images/%zz",
		"/images/%00",
		"/images/a\tb",
		"/images/%7E",
		"/images/%30",
	};
	struct glue *glue = read_app("apps/sample.yaml");
	for (size_t i = 0; i < COUNT(paths); i++) {
		struct glue_match match;
		struct glue_request request = request_of("image", "GET /images/7");
		assert_true(glue_match(glue, &request, &match));
		request.path = str_of(paths[i]);
		if (glue_match(glue, &request, &match))
			fail_msg("%s matched", paths[i]);
	}
	assert_match(glue, "image", "GET /images/%20", "image.image read read id=%20 in=/images");
	assert_match(glue, "image", "GET /images/...", "image.image read read id=... in=/images");
	assert_match(glue, "image", "GET /images/.a", "image.image read read id=.a in=/images");
	glue_free(glue);
}

static void long_paths(void **state)
{
	(void)state;
	struct glue *glue = read_app("apps/rest.yaml");
	struct buf path = {0};
	struct glue_match match;
	struct glue_request request = request_of("x", "GET /");
	for (int i = 0; i < 2 * LIMIT_GLUE_SEGMENTS; i++) {
		buf_put(&path, STR("/a"));
		request.path = buf_str(&path);
		assert_int_equal(glue_match(glue, &request, &match), i < 6);
	}
	buf_free(&path);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sample),
		cmocka_unit_test(any_rest_application),
		cmocka_unit_test(the_more_literal_one_wins),
		cmocka_unit_test(the_one_that_asks_for_more_wins),
		cmocka_unit_test(the_body_says),
		cmocka_unit_test(a_body_that_says_nothing_known),
		cmocka_unit_test(values_are_slices_of_the_path),
		cmocka_unit_test(two_spellings_are_one_collection),
		cmocka_unit_test(paths_with_two_readings_match_nothing),
		cmocka_unit_test(long_paths),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
