/* The shipped descriptions of real applications: ids in answers, and what may differ between replicas. How they read requests is in
 * tests/e2e/glue. */
#include "glue_test.h"

static bool note(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	static const char *const kinds[] = {"id", "name", "ref", "link"};
	(void)value;
	(void)quoted;
	struct buf *noted = context;
	struct str type = place->type && place->kind == GLUE_PLACE_REFERENCE ? glue_type_name(place->type) : STR("");
	buf_printf(noted, "%s %.*s%s%.*s; ", kinds[place->kind], STR_FMT(place->value), type.length > 0 ? " " : "",
	           STR_FMT(type));
	return false;
}

static struct glue_match match_of(const struct glue *glue, const char *service, const char *text)
{
	struct glue_match match;
	struct glue_request request = request_of(service, text);
	if (!glue_match(glue, &request, &match))
		fail_msg("%s is unknown", text);
	return match;
}

static const struct {
	const char *app, *service, *request, *body, *answer, *places;
} answers[] = {
	{"openstack", "image", "GET /v2/images/i1", NULL,
     "{\"id\": \"i1\", \"name\": \"n\", \"self\": \"/v2/images/i1\", \"file\": \"/v2/images/i1/file\", \"owner\": "
     "\"p1\","
     " \"schema\": \"/v2/schemas/image\"}",
     "id i1; name n; link /v2/images/i1; link /v2/images/i1/file; ref p1 identity.project; "},
	{"openstack", "image", "GET /v2/images", NULL,
     "{\"images\": [{\"id\": \"i1\"}, {\"id\": \"i2\", \"kernel_id\": \"i3\"}], \"first\": \"/v2/images\"}",
     "id i1; id i2; ref i3 image.image; "},
	{"openstack", "image", "GET /v2/images/i1/members", NULL,
     "{\"members\": [{\"member_id\": \"p2\", \"image_id\": \"i1\", \"status\": \"pending\"}]}",
     "ref p2 identity.project; ref i1 image.image; "},
	{"openstack", "compute", "POST /v2.1/servers", NULL,
     "{\"server\": {\"id\": \"s1\", \"adminPass\": \"x\", \"links\": [{\"rel\": \"self\", \"href\": "
     "\"http://h/v2.1/servers/s1\"}], \"security_groups\": [{\"name\": \"default\"}]}}",
     "id s1; link http://h/v2.1/servers/s1; "},
	{"openstack", "compute", "GET /v2.1/servers/detail", NULL,
     "{\"servers\": [{\"id\": \"s1\", \"image\": {\"id\": \"i1\", \"links\": [{\"href\": \"http://h/images/i1\"}]},"
     " \"flavor\": {\"id\": \"1\"}, \"tenant_id\": \"p1\","
     " \"os-extended-volumes:volumes_attached\": [{\"id\": \"v1\"}]}]}",
     "id s1; ref i1 image.image; link http://h/images/i1; ref 1 compute.flavor; ref p1 identity.project; ref v1; "},
	{"openstack", "compute", "GET /v2.1/os-keypairs", NULL,
     "{\"keypairs\": [{\"keypair\": {\"name\": \"k\", \"fingerprint\": \"f\"}}]}", "id k; "},
	{"openstack", "compute", "POST /v2.1/servers/s1/action", "{\"createImage\": {\"name\": \"x\"}}",
     "{\"image_id\": \"i9\"}", "ref i9 image.image; "},
	{"openstack", "compute", "POST /v2.1/servers/s1/action", "{\"rebuild\": {\"imageRef\": \"i1\"}}",
     "{\"server\": {\"id\": \"s1\", \"image\": {\"id\": \"i1\"}}}", "ref s1 compute.server; ref i1 image.image; "},
	{"openstack", "compute", "GET /v2.1/servers/s1/os-volume_attachments", NULL,
     "{\"volumeAttachments\": [{\"id\": \"v1\", \"volumeId\": \"v1\", \"serverId\": \"s1\"}]}",
     "ref v1; ref v1; ref s1 compute.server; "},
	{"openstack", "network", "GET /v2.0/ports/o1", NULL,
     "{\"port\": {\"id\": \"o1\", \"network_id\": \"n1\", \"fixed_ips\": [{\"subnet_id\": \"b1\", \"ip_address\": "
     "\"a\"}],"
     " \"security_groups\": [\"g1\", \"g2\"]}}",
     "id o1; ref n1 network.network; ref b1 network.subnet; ref g1 network.security_group; "
     "ref g2 network.security_group; "},
	{"openstack", "network", "PUT /v2.0/routers/r1/add_router_interface", NULL,
     "{\"id\": \"r1\", \"subnet_id\": \"b1\", \"port_id\": \"o1\", \"network_id\": \"n1\"}",
     "id r1; ref b1 network.subnet; ref o1 network.port; ref n1 network.network; "},
	{"openstack", "network", "GET /v2.0/security-groups", NULL,
     "{\"security_groups\": [{\"id\": \"g1\", \"security_group_rules\": [{\"id\": \"u1\", \"remote_group_id\": "
     "null}]}]}",
     "id g1; ref u1 network.security_group_rule; "},
	{"openstack", "identity", "GET /v3/projects/p1", NULL,
     "{\"project\": {\"id\": \"p1\", \"domain_id\": \"d1\", \"links\": {\"self\": \"http://h/v3/projects/p1\"}}}",
     "id p1; ref d1 identity.domain; link http://h/v3/projects/p1; "},
	{"openstack", "identity", "GET /v3/projects/p1/users/u1/roles", NULL, "{\"roles\": [{\"id\": \"r1\"}]}",
     "ref r1 identity.role; "},
	{"kubernetes", "kubernetes", "GET /api/v1/pods", NULL,
     "{\"metadata\": {\"resourceVersion\": \"9\"}, \"items\": [{\"metadata\": {\"name\": \"a\"}}]}", "id a; "},
	{"kubernetes", "kubernetes", "GET /api/v1/pods?watch=1", NULL,
     "{\"type\": \"ADDED\", \"object\": {\"metadata\": {\"name\": \"a\"}}}\n"
     "{\"type\": \"DELETED\", \"object\": {\"metadata\": {\"name\": \"b\"}}}\n",
     "id a; id b; "},
	{"kubernetes", "kubernetes", "GET /apis/apps/v1/watch/namespaces/n/deployments/d", NULL,
     "{\"type\": \"MODIFIED\", \"object\": {\"metadata\": {\"name\": \"d\"}}}", "id d; "},
};

static void ids_in_answers(void **state)
{
	(void)state;
	struct glue *openstack = read_app("apps/openstack.yaml"), *kubernetes = read_app("apps/kubernetes.yaml");
	for (size_t i = 0; i < COUNT(answers); i++) {
		const struct glue *glue = strcmp(answers[i].app, "openstack") == 0 ? openstack : kubernetes;
		struct glue_match match = match_of(glue, answers[i].service, answers[i].request);
		struct buf noted = {0}, out = {0};
		struct err err = {0};
		if (answers[i].body != NULL)
			assert_true(glue_match_body(glue, str_of(answers[i].body), &match, &err));
		assert_non_null(match.operation);
		const struct glue_places *places = glue_answer_places(match.operation);
		assert_non_null(places);
		struct glue_splicer *splicer = glue_splicer_new(places, &(struct glue_replacer){&noted, note});
		assert_int_equal(glue_splice(splicer, str_of(answers[i].answer), &out, &err), 0);
		assert_int_equal(glue_splice_end(splicer, &out, &err), 0);
		glue_splicer_free(splicer);
		if (strcmp(buf_c(&noted), answers[i].places) != 0)
			fail_msg("%s: found \"%s\", expected \"%s\"", answers[i].request, buf_c(&noted), answers[i].places);
		assert_string_equal(buf_c(&out), answers[i].answer);
		buf_free(&noted);
		buf_free(&out);
	}
	glue_free(openstack);
	glue_free(kubernetes);
}

/* Two sites' answers, with the ids that users see; and one that differs in what they asked for. */
static void replicas_are_compared(void **state)
{
	(void)state;
	static const struct {
		const char *app, *service, *request, *here, *there, *other;
	} rows[] = {
		{"kubernetes", "kubernetes", "GET /apis/apps/v1/namespaces/n/deployments/d",
	     "{\"metadata\": {\"name\": \"d\", \"uid\": \"1\", \"resourceVersion\": \"5\", \"annotations\": "
	     "{\"deployment.kubernetes.io/revision\": \"1\", \"a\": \"b\"}}, \"spec\": {\"replicas\": 2}, \"status\": "
	     "{\"x\": 1}}",
	     "{\"spec\": {\"replicas\": 2}, \"metadata\": {\"annotations\": {\"a\": \"b\", "
	     "\"deployment.kubernetes.io/revision\": \"3\"}, \"name\": \"d\", \"uid\": \"2\", \"generation\": 4}}",
	     "{\"metadata\": {\"name\": \"d\", \"annotations\": {\"a\": \"b\"}}, \"spec\": {\"replicas\": 3}}"},
		{"kubernetes", "kubernetes", "GET /api/v1/namespaces/n/services/s",
	     "{\"spec\": {\"clusterIP\": \"192.0.2.1\", \"ports\": [{\"port\": 80, \"nodePort\": 30001}]}, \"metadata\": "
	     "{}}",
	     "{\"spec\": {\"clusterIP\": \"192.0.2.2\", \"ports\": [{\"port\": 80, \"nodePort\": 30002}]}, \"metadata\": "
	     "{}}",
	     "{\"spec\": {\"ports\": [{\"port\": 81}]}, \"metadata\": {}}"},
		{"openstack", "compute", "GET /v2.1/servers/s1",
	     "{\"server\": {\"id\": \"m\", \"name\": \"vm\", \"created\": \"1\", \"addresses\": {\"n\": []}, \"hostId\": "
	     "\"h1\"}}",
	     "{\"server\": {\"id\": \"m\", \"name\": \"vm\", \"created\": \"2\", \"addresses\": {}, "
	     "\"OS-EXT-SRV-ATTR:host\": "
	     "\"h2\"}}",
	     "{\"server\": {\"id\": \"m\", \"name\": \"other\"}}"},
		{"openstack", "network", "GET /v2.0/ports/o1",
	     "{\"port\": {\"id\": \"m\", \"mac_address\": \"1\", \"fixed_ips\": [{\"subnet_id\": \"b\", \"ip_address\": "
	     "\"1\"}]}}",
	     "{\"port\": {\"id\": \"m\", \"mac_address\": \"2\", \"fixed_ips\": [{\"ip_address\": \"2\", \"subnet_id\": "
	     "\"b\"}]}}",
	     "{\"port\": {\"id\": \"m\", \"fixed_ips\": [{\"subnet_id\": \"c\"}]}}"},
	};
	for (size_t i = 0; i < COUNT(rows); i++) {
		struct buf path = {0}, here = {0}, there = {0}, other = {0};
		buf_printf(&path, "apps/%s.yaml", rows[i].app);
		struct glue *glue = read_app(buf_c(&path));
		const struct glue_type *type = match_of(glue, rows[i].service, rows[i].request).type;
		assert_int_equal(glue_comparable(type, str_of(rows[i].here), &here, NULL), 0);
		assert_int_equal(glue_comparable(type, str_of(rows[i].there), &there, NULL), 0);
		assert_int_equal(glue_comparable(type, str_of(rows[i].other), &other, NULL), 0);
		assert_string_equal(buf_c(&here), buf_c(&there));
		assert_string_not_equal(buf_c(&here), buf_c(&other));
		glue_free(glue);
		buf_free(&path);
		buf_free(&here);
		buf_free(&there);
		buf_free(&other);
	}
}

/* Whatever is not told apart by facets is run in the same order everywhere. */
static void what_was_asked_later_stands(void **state)
{
	(void)state;
	static const char *const changes[][2] = {{"{\"os-stop\": null}", "{\"os-start\": null}"},
	                                         {"{\"lock\": null}", "{\"unlock\": null}"},
	                                         {"{\"resize\": {}}", "{\"rebuild\": {}}"}};
	struct glue *glue = read_app("apps/openstack.yaml");
	for (size_t i = 0; i < COUNT(changes); i++) {
		struct glue_match x = match_of(glue, "compute", "POST /servers/s1/action"), y = x;
		assert_true(glue_match_body(glue, str_of(changes[i][0]), &x, NULL));
		assert_true(glue_match_body(glue, str_of(changes[i][1]), &y, NULL));
		assert_int_equal(glue_resolve(x.type, x.operation, y.operation), GLUE_KEEP_ORDER);
		assert_int_equal(glue_resolve(x.type, y.operation, x.operation), GLUE_KEEP_ORDER);
	}
	struct glue_match grant = match_of(glue, "identity", "PUT /projects/p/users/u/roles/r");
	struct glue_match revoke = match_of(glue, "identity", "DELETE /projects/p/users/u/roles/r");
	assert_int_equal(glue_resolve(grant.type, grant.operation, revoke.operation), GLUE_KEEP_ORDER);
	assert_int_equal(glue_resolve(grant.type, revoke.operation, grant.operation), GLUE_KEEP_ORDER);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_in_answers),
		cmocka_unit_test(replicas_are_compared),
		cmocka_unit_test(what_was_asked_later_stands),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
