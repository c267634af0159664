/* Ids in targets and links: what is offered to the replacer, what is replaced, and that the rest stays as it was. */
#include "glue_test.h"

static const char description[] =
	"format: 1\n"
	"application: target\n"
	"services: {image: {under: [/image]}, compute: , }\n"
	"types:\n"
	"  image.image:\n"
	"    collection: /v2/images\n"
	"    item: '/v2/images/{id}'\n"
	"    references: {query: {member: image.image, 'of server': compute.server}, path: {borrower: compute.server}}\n"
	"    operations:\n"
	"      file: {method: PUT, path: '{item}/file', effect: replace, facet: file, body: opaque}\n"
	"      share: {method: PUT, path: '{item}/members/{server_id}', effect: relative}\n"
	"      lend: {method: PUT, path: '{item}/lent/{borrower}', effect: relative}\n"
	"  compute.server:\n"
	"    collection: ['/{version}/servers', '/{version}/hosts/{host}/servers']\n"
	"    item: ['/{version}/servers/{id}', '/{version}/hosts/{host}/servers/{id}']\n"
	"    references: {query: {image: image.image}, path: {host: image.image}}\n";

struct world {
	struct buf asked; /* "kind type value; " of each place */
	struct str text;  /* in which the places are; "": it is not looked at */
	bool refuses;
};

static bool replace(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	static const char *const kinds[] = {"id", "name", "reference", "link"};
	struct world *world = context;
	assert_true(place->quoted && *quoted && value->length == 0);
	buf_printf(&world->asked, "%s %.*s; ", kinds[place->kind], STR_FMT(place->value));
	if (world->text.length > 0)
		assert_true(place->at + place->length <= world->text.length);
	if (world->refuses || place->value.length == 0 || place->value.at[0] != 'L')
		return false;
	buf_put(value, STR("M/"));
	buf_put(value, str_make(place->value.at + 1, place->value.length - 1));
	return true;
}

static void targets(void **state)
{
	(void)state;
	static const struct {
		const char *service, *request, *target, *asked;
	} cases[] = {
		{"image", "GET /v2/images", "/v2/images", ""},
		{"image", "GET /v2/images/L1", "/v2/images/M%2F1", "id L1; "},
		{"image", "GET /v2/images/x%20y", "/v2/images/x%20y", "id x y; "},
		{"image", "GET /v2/images/L%20y", "/v2/images/M%2F%20y", "id L y; "},
		{"image", "GET /image/v2/images/L1", "/image/v2/images/M%2F1", "id L1; "},
		{"image", "PUT /v2/images/L1/file", "/v2/images/M%2F1/file", "id L1; "},
		{"image", "PUT /v2/images/L1/members/L2", "/v2/images/M%2F1/members/L2", "id L1; "},
		{"image", "PUT /v2/images/L1/lent/L2", "/v2/images/M%2F1/lent/M%2F2", "id L1; reference L2; "},
		{"compute", "GET /L2/servers/L1", "/L2/servers/M%2F1", "id L1; "},
		{"compute", "GET /v2/hosts/L1/servers/L2", "/v2/hosts/M%2F1/servers/M%2F2", "reference L1; id L2; "},
		{"compute", "POST /v2/hosts/L2/servers", "/v2/hosts/M%2F2/servers", "reference L2; "},

		{"compute", "GET /v2/servers?image=L1", "/v2/servers?image=M%2F1", "reference L1; "},
		{"compute", "GET /v2/servers?a=L1&image=L2&image=x&b&c=", "/v2/servers?a=L1&image=M%2F2&image=x&b&c=",
	     "reference L2; reference x; "},
		{"compute", "GET /v2/servers?im%61ge=L%31", "/v2/servers?im%61ge=M%2F1", "reference L1; "},
		{"compute", "GET /v2/servers?image", "/v2/servers?image", ""},
		{"compute", "GET /v2/servers?image=", "/v2/servers?image=", "reference ; "},
		{"compute", "GET /v2/servers?image=L%zz", "/v2/servers?image=L%zz", ""},
		{"compute", "GET /v2/servers?imag%=L1", "/v2/servers?imag%=L1", ""},
		{"compute", "GET /v2/servers?image=L1=2", "/v2/servers?image=M%2F1%3D2", "reference L1=2; "},
		{"compute", "GET /v2/servers?image=L1&&", "/v2/servers?image=M%2F1&&", "reference L1; "},
		{"image", "GET /v2/images?of+server=L+1", "/v2/images?of+server=M%2F%201", "reference L 1; "},
		/* by the URL of what is referred to */
		{"compute", "GET /v2/servers?image=http://h:1/v2/images/L1", "/v2/servers?image=http://h:1/v2/images/M%2F1",
	     "reference L1; "},
		{"compute", "GET /v2/servers?image=https%3A%2F%2Fh%2fimages%2fL1&x",
	     "/v2/servers?image=https%3A%2F%2Fh%2fimages%2fM%2F1&x", "reference L1; "},
		{"compute", "GET /v2/servers?image=http://L1", "/v2/servers?image=http://L1", "reference http://L1; "},
		{"image", "GET /v2/images/L1?member=L2", "/v2/images/M%2F1?member=M%2F2", "id L1; reference L2; "},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct glue_request request = request_of(cases[i].service, cases[i].request);
		struct glue_match match;
		struct buf out = {0};
		struct world world = {0};
		struct glue_replacer replacer = {&world, replace};
		assert_true(glue_match(glue, &request, &match));
		glue_splice_target(&match, &request, &replacer, &out);
		assert_string_equal(buf_c(&out), cases[i].target);
		assert_string_equal(buf_c(&world.asked), cases[i].asked);
		world.refuses = true;
		buf_clear(&out);
		glue_splice_target(&match, &request, &replacer, &out);
		assert_string_equal(buf_c(&out), strchr(cases[i].request, ' ') + 1);
		buf_free(&world.asked);
		buf_free(&out);
	}
	glue_free(glue);
}

static void links(void **state)
{
	(void)state;
	static const struct {
		const char *service, *link, *spliced;
	} cases[] = {
		{"image", "/v2/images/L1", "/v2/images/M%2F1"},
		{"image", "http://host:9292/v2/images/L1", "http://host:9292/v2/images/M%2F1"},
		{"image", "https://[::1]:9292/image/v2/images/L1/file", "https://[::1]:9292/image/v2/images/M%2F1/file"},
		{"image", "//host/v2/images/L1", "//host/v2/images/M%2F1"},
		{"image", "/v2/images/L1?member=L2&x=L3#L4", "/v2/images/M%2F1?member=M%2F2&x=L3#L4"},
		{"image", "/v2/images/L1#?member=L2", "/v2/images/M%2F1#?member=L2"},
		{"image", "/v2/images/x1?y", "/v2/images/x1?y"},
		/* only a method that changes something is there */
		{"image", "/v2/images/L1/members/a", "/v2/images/M%2F1/members/a"},
		{"compute", "/v2/hosts/L1/servers/L2", "/v2/hosts/M%2F1/servers/M%2F2"},
		/* a whole URL may be another service's, a path is not */
		{"compute", "http://host:9292/v2/images/L1", "http://host:9292/v2/images/M%2F1"},
		{"compute", "/v2/images/L1", "/v2/images/L1"},
		/* nothing that is known */
		{"image", "", ""},
		{"image", "/", "/"},
		{"image", "?member=L1", "?member=L1"},
		{"image", "#/v2/images/L1", "#/v2/images/L1"},
		{"image", "v2/images/L1", "v2/images/L1"},
		{"image", "../images/L1", "../images/L1"},
		{"image", "http:", "http:"},
		{"image", "http://", "http://"},
		{"image", "http://L1", "http://L1"},
		{"image", "http://host?/v2/images/L1", "http://host?/v2/images/L1"},
		{"image", "http:///v2/images/L1", "http:///v2/images/M%2F1"},
		{"image", "/v2/images/L%zz", "/v2/images/L%zz"},
		{"image", "/v2/images/L1/", "/v2/images/L1/"},
		{"image", "/v2//images/L1", "/v2//images/L1"},
		{"image", "mailto:/v2/images/L1", "mailto:/v2/images/L1"},
		{"nobody", "/v2/images/L1", "/v2/images/L1"},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf out = {0};
		struct world world = {.text = str_of(cases[i].link)};
		struct glue_replacer replacer = {&world, replace};
		glue_splice_link(glue, str_of(cases[i].service), world.text, &replacer, &out);
		if (strcmp(buf_c(&out), cases[i].spliced) != 0)
			fail_msg("%s became %s", cases[i].link, buf_c(&out));
		world.refuses = true;
		buf_clear(&out);
		glue_splice_link(glue, str_of(cases[i].service), world.text, &replacer, &out);
		assert_string_equal(buf_c(&out), cases[i].link);
		buf_free(&world.asked);
		buf_free(&out);
	}
	glue_free(glue);
}

/* What the path up to it is; "" where the place has none. */
static bool tell_item(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	struct buf *told = context;
	(void)quoted;
	if (place->kind != GLUE_PLACE_REFERENCE && !place->item)
		return false;
	buf_printf(told, "%.*s:", STR_FMT(place->value));
	if (place->item) {
		glue_type_put(place->item, told);
		buf_put(told, STR(" in "));
		glue_collection_put(place->item, told);
	}
	buf_put(told, STR("; "));
	buf_put(value, STR("M"));
	buf_put(value, place->value);
	return true;
}

static void references_in_paths(void **state)
{
	(void)state;
	static const struct {
		const char *app, *service, *request, *items, *collection;
	} cases[] = {
		{"apps/rest.yaml", "blog", "GET /posts/7", "", "/posts"},
		{"apps/rest.yaml", "blog", "GET /posts/7/comments/2", "7:blog.posts in /posts; ", "/posts/M7/comments"},
		{"apps/rest.yaml", "blog", "POST /api/v1/a/1/b/2/c", "1:blog.a in /a; 2:blog.b in /a/1/b; ", "/a/M1/b/M2/c"},
		{"apps/kubernetes.yaml", "kubernetes", "GET /apis/apps/v1/namespaces/red/deployments/d", "red:; ",
	     "/apis/apps/namespaces/Mred/deployments"},
		{"apps/kubernetes.yaml", "kubernetes", "GET /api/v1/namespaces/red/pods/p",
	     "red:kubernetes.namespaces in /api/v1/namespaces; ", "/api/v1/namespaces/Mred/pods"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct glue *glue = read_app(cases[i].app);
		struct glue_request request = request_of(cases[i].service, cases[i].request);
		struct glue_match match;
		struct buf told = {0}, out = {0};
		struct glue_replacer replacer = {&told, tell_item};
		assert_true(glue_match(glue, &request, &match));
		glue_splice_target(&match, &request, &replacer, &out);
		assert_string_equal(buf_c(&told), cases[i].items);
		buf_clear(&out);
		glue_collection_splice(&match, &replacer, &out);
		assert_string_equal(buf_c(&out), cases[i].collection);
		buf_free(&told);
		buf_free(&out);
		glue_free(glue);
	}
}

/* A link leads to something of a type of its own: a server shows those of its image and its flavor. */
static void items_of_links(void **state)
{
	(void)state;
	static const struct {
		const char *app, *service, *link, *items;
	} cases[] = {
		{"apps/openstack.yaml", "compute", "http://h/v2.1/servers/1", "1:compute.server in /servers; "},
		{"apps/openstack.yaml", "compute", "http://h/flavors/1", "1:compute.flavor in /flavors; "},
		{"apps/openstack.yaml", "compute", "http://h/images/1", "1:image.image in /images; "},
		{"apps/openstack.yaml", "image", "/v2/images/1/file", "1:image.image in /images; "},
		{"apps/openstack.yaml", "image", "/v2/images?marker=1", "1:; "},
		{"apps/openstack.yaml", "compute", "http://h/what/1", ""},
		{"apps/rest.yaml", "blog", "/posts/7/comments/2",
	     "7:blog.posts in /posts; 2:blog.comments in /posts/7/comments; "},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct glue *glue = read_app(cases[i].app);
		struct buf told = {0}, out = {0};
		struct glue_replacer replacer = {&told, tell_item};
		glue_splice_link(glue, str_of(cases[i].service), str_of(cases[i].link), &replacer, &out);
		assert_string_equal(buf_c(&told), cases[i].items);
		buf_free(&told);
		buf_free(&out);
		glue_free(glue);
	}
}

/* The sample application's bodies, with its own description. */
static void bodies(void **state)
{
	(void)state;
	static const struct {
		const char *service, *request, *body, *spliced;
		bool is_request;
	} cases[] = {
		{"compute", "POST /servers", "{\"name\":\"L\",\"image\":\"L1\",\"network\":\"L2\",\"flavor\":\"L3\"}",
	     "{\"name\":\"M/\",\"image\":\"M/1\",\"network\":\"M/2\",\"flavor\":\"L3\"}", true},
		{"compute", "GET /servers/L1", "{\"id\":\"L1\",\"image\":\"L2\"}", "{\"id\":\"M/1\",\"image\":\"M/2\"}", false},
		{"compute", "POST /volumes/L1/attach", "{\"server\":\"L2\",\"attached\":\"L3\"}",
	     "{\"server\":\"M/2\",\"attached\":\"M/3\"}", true},
		{"compute", "GET /projects/L1/stacks", "{\"stacks\":[{\"id\":\"L2\",\"servers\":[\"L3\"],\"project\":\"L1\"}]}",
	     "{\"stacks\":[{\"id\":\"M/2\",\"servers\":[\"M/3\"],\"project\":\"M/1\"}]}", false},
		{"image", "GET /images", "{\"images\":[{\"id\":\"L1\"},{\"id\":\"2\"}]}",
	     "{\"images\":[{\"id\":\"M/1\"},{\"id\":\"2\"}]}", false},
	};
	struct glue *glue = read_app("apps/sample.yaml");
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct glue_request request = request_of(cases[i].service, cases[i].request);
		struct glue_match match;
		struct buf out = {0};
		struct world world = {.text = str_of(cases[i].body)};
		struct glue_replacer replacer = {&world, replace};
		assert_true(glue_match(glue, &request, &match));
		struct glue_splicer *splicer = glue_splicer_new(cases[i].is_request ? glue_request_places(match.operation)
		                                                                    : glue_answer_places(match.operation),
		                                                &replacer);
		assert_int_equal(glue_splice(splicer, world.text, &out, NULL), 0);
		assert_int_equal(glue_splice_end(splicer, &out, NULL), 0);
		assert_string_equal(buf_c(&out), cases[i].spliced);
		glue_splicer_free(splicer);
		buf_free(&world.asked);
		buf_free(&out);
	}
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(targets),        cmocka_unit_test(links),  cmocka_unit_test(references_in_paths),
		cmocka_unit_test(items_of_links), cmocka_unit_test(bodies),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
