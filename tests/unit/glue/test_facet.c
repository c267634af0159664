/* Facets that can be read and set as a whole, of the shipped descriptions, and what keeps one from being so. */
#include "glue_test.h"

static const struct glue_type *type_of(const struct glue *glue, const char *name)
{
	for (uint32_t i = 0; i < glue_types_count(glue); i++)
		if (str_equal(glue_type_name(glue_type_at(glue, i)), str_of(name)))
			return glue_type_at(glue, i);
	fail_msg("no type %s", name);
	return NULL;
}

/* "NAME PATH CONTENT-TYPE; ", with `*` behind the name of one that is bytes. */
static void put_facets(struct buf *out, const struct glue_type *type, const char *item)
{
	for (uint32_t i = 0; i < glue_facets_count(type); i++) {
		struct glue_facet facet;
		if (!glue_facet_find(type, i, &facet))
			continue;
		assert_true(str_equal(facet.name, glue_facet_name(type, i)));
		assert_int_equal(glue_facet_number(facet.read), i);
		assert_int_equal(glue_facet_number(facet.replace), i);
		assert_int_equal(glue_operation_effect(facet.replace), GLUE_REPLACE);
		buf_printf(out, "%.*s%s ", STR_FMT(facet.name), facet.opaque ? "*" : "");
		glue_facet_put(&facet, str_of(item), out);
		buf_printf(out, "%s%.*s; ", facet.content_type.length > 0 ? " " : "", STR_FMT(facet.content_type));
	}
}

static void assert_facets(const struct glue *glue, const char *type, const char *item, const char *expected)
{
	struct buf found = {0};
	put_facets(&found, type_of(glue, type), item);
	if (strcmp(buf_c(&found), expected) != 0)
		fail_msg("%s: got \"%s\", expected \"%s\"", type, buf_c(&found), expected);
	buf_free(&found);
}

static void test_shipped(void **state)
{
	(void)state;
	struct glue *sample = read_app("apps/sample.yaml"), *openstack = read_app("apps/openstack.yaml"),
				*kubernetes = read_app("apps/kubernetes.yaml"), *rest = read_app("apps/rest.yaml");
	assert_facets(sample, "image.image", "/images/7", "file* /images/7/file; ");
	assert_facets(sample, "network.pool", "/pools/7", "");
	/* What is staged cannot be read, and members are set one by one. */
	assert_facets(openstack, "image.image", "/v2/images/i1", "file* /v2/images/i1/file; ");
	assert_facets(openstack, "compute.server", "/v2.1/servers/s1",
	              "metadata /v2.1/servers/s1/metadata; tags /v2.1/servers/s1/tags; ");
	/* The status is what a site's own controllers found there. */
	assert_facets(kubernetes, "kubernetes.{plural}", "/api/v1/namespaces/n/pods/p", "");
	assert_facets(rest, "*.{things}", "/things/7", "");
	glue_free(sample);
	glue_free(openstack);
	glue_free(kubernetes);
	glue_free(rest);
}

static const struct {
	const char *operations, *expected;
} cases[] = {
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, body: opaque}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: f, answer: opaque}\n",
     "f* /things/1/f; "},
	{"      put: {method: PUT, path: \"{item}/f/raw\", facet: f, body: opaque, content: application/x-raw}\n"
     "      get: {method: [GET, HEAD], path: [\"{item}/f/{part}\", \"{item}/f/raw\"], facet: f, answer: opaque}\n",
     "f* /things/1/f/raw application/x-raw; "},
	{"      put: {method: PUT, path: \"{item}/f\", facet: f}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: f}\n",
     "f /things/1/f; "},
	/* Another path, another kind of body, none at all, a query, another effect. */
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, body: opaque}\n"
     "      get: {method: GET, path: \"{item}/g\", facet: f, answer: opaque}\n",
     ""},
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, body: opaque}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: f}\n",
     ""},
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, body: none}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: f}\n",
     ""},
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, body: opaque}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: f, answer: opaque, query: {raw: \"1\"}}\n",
     ""},
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, effect: assign}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: f}\n",
     ""},
	{"      put: {method: PUT, path: \"{item}/f/{name}\", facet: f, body: opaque}\n"
     "      get: {method: GET, path: \"{item}/f/{name}\", facet: f, answer: opaque}\n",
     ""},
	{"      put: {method: PUT, path: \"{item}/f\", facet: f, body: opaque}\n"
     "      get: {method: GET, path: \"{item}/f\", facet: g, answer: opaque}\n",
     ""},
};

static void test_what_makes_one(void **state)
{
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf text = {0};
		buf_printf(&text,
		           "format: 1\napplication: a\nservices:\n  s: {}\ntypes:\n  s.thing:\n    collection: /things\n"
		           "    item: /things/{id}\n    operations:\n%s",
		           cases[i].operations);
		struct glue *glue = read_fine(buf_c(&text));
		assert_facets(glue, "s.thing", "/things/1", cases[i].expected);
		glue_free(glue);
		buf_free(&text);
	}
}

/* "NAME: HOW METHOD PATH; " of those of which something is said. */
static void put_copies(struct buf *out, const struct glue_type *type, const char *item)
{
	static const char *const words[] = {"", "item", "none", "each", "when"};
	for (uint32_t i = 1; i < glue_facets_count(type); i++) {
		const struct glue_copying *copying = glue_facet_copying(type, i);
		if (copying->how == GLUE_COPY_UNTOLD)
			continue;
		buf_printf(out, "%.*s: %s", STR_FMT(glue_facet_name(type, i)), words[copying->how]);
		if (copying->by) {
			buf_printf(out, " %.*s ", STR_FMT(glue_plain_method(copying->by)));
			glue_plain_put(copying->by, str_of(item), out);
		}
		if (copying->read)
			buf_printf(out, " of %.*s", STR_FMT(copying->each));
		for (uint32_t k = 0; k < copying->body_count; k++)
			buf_printf(out, " %.*s=%.*s", STR_FMT(copying->body[k]), STR_FMT(copying->from[k]));
		if (copying->place.length > 0)
			buf_printf(out, " if %.*s=%.*s", STR_FMT(copying->place), STR_FMT(copying->value));
		buf_put(out, STR("; "));
	}
}

static void test_copies(void **state)
{
	(void)state;
	struct glue *openstack = read_app("apps/openstack.yaml"), *sample = read_app("apps/sample.yaml");
	struct buf found = {0};
	const struct glue_type *image = type_of(openstack, "image.image");
	put_copies(&found, image, "/images/i1");
	assert_string_equal(
		buf_c(&found),
		"stage: none; active: when POST /images/i1/actions/deactivate if /status=deactivated; tags: item; "
		"members: each POST /images/i1/members of /members /member=/member_id if /visibility=shared; ");
	for (uint32_t i = 1; i < glue_facets_count(image); i++) {
		struct str name = glue_facet_name(image, i);
		assert_int_equal(glue_facet_is_shown(image, i), str_equal(name, STR("tags")) || str_equal(name, STR("active")));
	}
	buf_clear(&found);
	put_copies(&found, type_of(sample, "image.image"), "/images/7");
	assert_string_equal(buf_c(&found), "");
	buf_free(&found);
	glue_free(openstack);
	glue_free(sample);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_shipped), cmocka_unit_test(test_what_makes_one),
	                                   cmocka_unit_test(test_copies)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
