/* What is known of a match: effects, facets, resolutions, credentials, and where ids stand. */
#include "glue_test.h"

static const char description[] =
	"format: 1\n"
	"application: known\n"
	"credentials: {headers: [X-Auth-Token], run: agent, refused: [401, 403]}\n"
	"services:\n"
	"  image:\n"
	"    address: http://127.0.0.1:9292\n"
	"    version: {path: /versions, pointer: /versions/0/id}\n"
	"    carry: [header, 'request-id:X-Request-Id']\n"
	"  compute:\n"
	"    credentials:\n"
	"      run: impersonate\n"
	"      user: {claim: sub}\n"
	"      impersonate: {Impersonate-User: '{user}', X-Why: cheops}\n"
	"  volume:\n"
	"    under: [/v3, /volume/v3]\n"
	"    base: /v3\n"
	"    credentials: {headers: [X-Auth-Token, X-Service-Token], accompany: X-Service-Token}\n"
	"types:\n"
	"  image.image:\n"
	"    collection: /images\n"
	"    item: /images/{id}\n"
	"    object: /image\n"
	"    list: /images\n"
	"    paging: {query: [limit, marker], next: /next, most: limit=100}\n"
	"    sort: order\n"
	"    id: [/id, /uuid]\n"
	"    name: /name\n"
	"    unique: true\n"
	"    find: 'name={name}&limit=1'\n"
	"    links: [/self, '/links/*/href']\n"
	"    delete: loses\n"
	"    references: {body: {/base: image.image}}\n"
	"    operations:\n"
	"      create: {replays: true}\n"
	"      replace: {creates: true}\n"
	"      upload: {method: PUT, path: '{item}/file', facet: file, body: opaque}\n"
	"      tag: {method: POST, path: '{item}/tags', facet: tags, object: '', references: {/by: compute.user}, answer: "
	"none}\n"
	"      grow: {method: POST, path: '{item}/grow', repeatable: true}\n"
	"      watch: {method: GET, path: '{item}', query: {watch: '*'}, answer: stream}\n"
	"      login: {method: POST, path: /login, effect: pass}\n"
	"    resolutions:\n"
	"      - {between: [grow, grow], as: keep-order}\n"
	"      - {between: [relative, assign], as: reverse-order}\n"
	"  volume.volume: {collection: /volumes, item: '/volumes/{id}', identity: suggested}\n"
	"  compute.user: {collection: /users, item: '/users/{name}', identity: chosen, id: /name, name: /name}\n";

static const struct glue_operation *operation_of(const struct glue *glue, const char *service, const char *text)
{
	struct glue_match match;
	struct glue_request request = request_of(service, text);
	if (!glue_match(glue, &request, &match))
		fail_msg("%s is unknown", text);
	assert_non_null(match.operation);
	return match.operation;
}

static void operations(void **state)
{
	(void)state;
	static const struct {
		const char *request, *name, *facet;
		enum glue_effect effect;
		bool creates, repeatable, replays, opaque, streams, reads_request, reads_answer;
	} rows[] = {
		{"GET /images", "list", "", GLUE_LIST, false, true, false, false, false, false, true},
		{"POST /images", "create", "", GLUE_CREATE, false, false, true, false, false, true, true},
		{"GET /images/7", "read", "", GLUE_READ, false, true, false, false, false, false, true},
		{"PUT /images/7", "replace", "", GLUE_REPLACE, true, true, false, false, false, true, true},
		{"PATCH /images/7", "patch", "", GLUE_ASSIGN, false, true, false, false, false, true, true},
		{"DELETE /images/7", "delete", "", GLUE_DELETE, false, true, false, false, false, false, true},
		{"PUT /images/7/file", "upload", "file", GLUE_REPLACE, false, true, false, true, false, false, true},
		{"POST /images/7/tags", "tag", "tags", GLUE_RELATIVE, false, false, false, false, false, true, false},
		{"POST /images/7/grow", "grow", "", GLUE_RELATIVE, false, true, false, false, false, true, true},
		{"GET /images/7?watch", "watch", "", GLUE_READ, false, true, false, false, true, false, true},
		{"POST /login", "login", "", GLUE_PASS, false, true, false, false, false, false, false},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct glue_operation *operation = operation_of(glue, "image", rows[i].request);
		assert_true(str_equal(glue_operation_name(operation), str_of(rows[i].name)));
		assert_int_equal(glue_operation_effect(operation), rows[i].effect);
		assert_true(str_equal(glue_operation_facet(operation), str_of(rows[i].facet)));
		assert_int_equal(glue_operation_creates(operation), rows[i].creates);
		assert_int_equal(glue_operation_repeatable(operation), rows[i].repeatable);
		assert_int_equal(glue_operation_replays(operation), rows[i].replays);
		assert_int_equal(glue_operation_opaque(operation), rows[i].opaque);
		assert_int_equal(glue_operation_streams(operation), rows[i].streams);
		assert_int_equal(glue_request_places(operation) != NULL, rows[i].reads_request);
		assert_int_equal(glue_answer_places(operation) != NULL, rows[i].reads_answer);
	}
	glue_free(glue);
}

static void operations_and_facets_are_numbered(void **state)
{
	(void)state;
	struct glue *glue = read_fine(description);
	const struct glue_type *type = glue_type_at(glue, 0);
	assert_int_equal(glue_types_count(glue), 3);
	assert_int_equal(glue_operations_count(type), 12);
	for (uint32_t i = 0; i < glue_operations_count(type); i++)
		assert_int_equal(glue_operation_number(glue_operation_at(type, i)), i);
	assert_int_equal(glue_facet_number(operation_of(glue, "image", "PUT /images/7")), 0);
	assert_int_equal(glue_facet_number(operation_of(glue, "image", "PUT /images/7/file")), 1);
	assert_int_equal(glue_facet_number(operation_of(glue, "image", "POST /images/7/tags")), 2);
	glue_free(glue);
}

static void types(void **state)
{
	(void)state;
	struct glue *glue = read_fine(description);
	const struct glue_type *image = glue_type_at(glue, 0), *user = glue_type_at(glue, 2),
						   *volume = glue_type_at(glue, 1);
	struct buf query = {0};
	assert_int_equal(glue_type_identity(image), GLUE_ASSIGNED);
	assert_int_equal(glue_type_identity(volume), GLUE_SUGGESTED);
	assert_false(glue_type_ids_in_collection(volume));
	assert_true(glue_operation_needs_json(operation_of(glue, "volume", "POST /v3/volumes")));
	assert_int_equal(glue_type_identity(user), GLUE_CHOSEN);
	assert_false(glue_type_ids_in_collection(image));
	assert_true(glue_type_ids_in_collection(user));
	assert_true(glue_type_names_unique(image));
	assert_false(glue_type_names_unique(user));
	assert_false(glue_delete_wins(image));
	assert_true(glue_delete_wins(user));
	assert_true(glue_type_find_put(image, STR("a&b c"), &query));
	assert_string_equal(buf_c(&query), "name=a%26b%20c&limit=1");
	assert_false(glue_type_find_put(user, STR("x"), &query));
	assert_true(str_equal(glue_type_name(user), STR("compute.user")));
	buf_free(&query);
	glue_free(glue);
}

/* DESIGN 7, "Ordering, exactly", 3; then what the description says instead. */
static void resolutions(void **state)
{
	(void)state;
	enum { R, A, L, D, C, F, G, OPERATIONS };
	static const struct {
		const char *request;
		const char *name;
	} names[OPERATIONS] = {
		[R] = {"PUT /images/7", "replace"},    [A] = {"PATCH /images/7", "assign"},
		[L] = {"POST /images/7/tags", "tag"},  [D] = {"DELETE /images/7", "delete"},
		[C] = {"POST /images", "create"},      [F] = {"PUT /images/7/file", "file"},
		[G] = {"POST /images/7/grow", "grow"},
	};
	static const struct {
		int x, y;
		enum glue_resolution resolution;
	} rows[] = {
		{R, R, GLUE_TAKE_ONE},      {A, A, GLUE_KEEP_ORDER},
		{L, L, GLUE_ANY_ORDER},     {A, L, GLUE_ANY_ORDER}, /* other facets */
		{L, A, GLUE_REVERSE_ORDER},                         /* but this pair is written down, by effect */
		{A, G, GLUE_ANY_ORDER},     {G, A, GLUE_REVERSE_ORDER},
		{G, G, GLUE_KEEP_ORDER},    {R, A, GLUE_KEEP_ORDER},
		{A, R, GLUE_REVERSE_ORDER}, {R, G, GLUE_KEEP_ORDER},
		{G, R, GLUE_REVERSE_ORDER}, {R, F, GLUE_ANY_ORDER},
		{F, F, GLUE_TAKE_ONE},      {F, L, GLUE_ANY_ORDER},
		{C, A, GLUE_KEEP_ORDER},    {A, C, GLUE_REVERSE_ORDER},
		{C, F, GLUE_KEEP_ORDER},    {C, C, GLUE_TAKE_ONE},
		{D, A, GLUE_KEEP_ORDER}, /* a delete that loses comes first */
		{A, D, GLUE_REVERSE_ORDER}, {D, F, GLUE_KEEP_ORDER},
		{D, D, GLUE_ANY_ORDER},
	};
	struct glue *glue = read_fine(description);
	const struct glue_operation *operations[OPERATIONS];
	for (int i = 0; i < OPERATIONS; i++)
		operations[i] = operation_of(glue, "image", names[i].request);
	for (size_t i = 0; i < COUNT(rows); i++) {
		enum glue_resolution got = glue_resolve(glue_type_at(glue, 0), operations[rows[i].x], operations[rows[i].y]);
		if (got != rows[i].resolution)
			fail_msg("%s, %s: %s, expected %s", names[rows[i].x].name, names[rows[i].y].name, glue_resolution_name(got),
			         glue_resolution_name(rows[i].resolution));
	}
	glue_free(glue);
}

static void a_delete_that_wins_comes_last(void **state)
{
	(void)state;
	struct glue *glue = read_app("apps/sample.yaml");
	const struct glue_operation *patch = operation_of(glue, "image", "PATCH /images/7");
	const struct glue_operation *delete = operation_of(glue, "image", "DELETE /images/7");
	const struct glue_type *type = glue_type_at(glue, 0);
	assert_int_equal(glue_resolve(type, patch, delete), GLUE_KEEP_ORDER);
	assert_int_equal(glue_resolve(type, delete, patch), GLUE_REVERSE_ORDER);
	glue_free(glue);
}

static void services(void **state)
{
	(void)state;
	struct glue *glue = read_fine(description);
	const struct glue_service *image = glue_service_find(glue, STR("image"));
	const struct glue_service *compute = glue_service_find(glue, STR("compute"));
	assert_null(glue_service_find(glue, STR("network")));
	assert_int_equal(glue_services_count(glue), 3);
	assert_ptr_equal(glue_service_at(glue, 1), compute);

	const struct glue_service_about *about = glue_service_about(image);
	assert_true(str_equal(about->address, STR("http://127.0.0.1:9292")));
	assert_true(str_equal(about->version_path, STR("/versions")));
	assert_true(str_equal(about->version_pointer, STR("/versions/0/id")));
	assert_int_equal(about->carry_count, 2);
	assert_true(str_equal(about->carry[1], STR("request-id:X-Request-Id")));

	assert_int_equal(glue_credential_use(image), GLUE_AGENT);
	assert_true(glue_is_credential(image, STR("x-auth-token")));
	assert_false(glue_is_credential(image, STR("Authorization")));
	assert_true(glue_is_credential_fault(image, 403));
	assert_false(glue_is_credential_fault(image, 404));

	about = glue_service_about(compute);
	assert_int_equal(glue_credential_use(compute), GLUE_IMPERSONATE);
	assert_true(glue_is_credential(compute, STR("Authorization")));
	assert_false(glue_is_credential_fault(compute, 403));
	assert_true(str_equal(about->user_claim, STR("sub")));
	assert_int_equal(about->impersonate_count, 2);
	assert_true(str_equal(about->impersonate[0].name, STR("Impersonate-User")));
	assert_true(str_equal(about->impersonate[0].value, STR("{user}")));
	assert_int_equal(about->accompany.length, 0);
	assert_int_equal(about->base.length, 0);

	about = glue_service_about(glue_service_at(glue, 2));
	assert_int_equal(glue_credential_use(glue_service_at(glue, 2)), GLUE_FORWARD);
	assert_true(str_equal(about->accompany, STR("X-Service-Token")));
	assert_true(str_equal(about->base, STR("/v3")));
	glue_free(glue);
}

static void equal_texts_have_equal_digests(void **state)
{
	(void)state;
	struct glue *a = read_fine(description), *b = NULL;
	struct glue_options options = {.path = "other", .hash_key = {7, 8}};
	assert_int_equal(glue_read(&b, str_of(description), &options, NULL), 0);
	assert_true(glue_digest(a) == glue_digest(b));
	struct glue *c = read_app("apps/rest.yaml");
	assert_true(glue_digest(a) != glue_digest(c));
	glue_free(a);
	glue_free(b);
	glue_free(c);
}

/* ---- Ids ---------------------------------------------------------------------------------------------------------- */

static bool note(void *context, const struct glue_place *place, struct buf *value, bool *quoted)
{
	static const char *const kinds[] = {"id", "name", "reference", "link"};
	(void)value;
	(void)quoted;
	buf_printf(context, "%s %.*s", kinds[place->kind], STR_FMT(place->value));
	if (place->kind == GLUE_PLACE_REFERENCE && place->type != NULL)
		buf_printf(context, " (%.*s)", STR_FMT(glue_type_name(place->type)));
	buf_put(context, STR("; "));
	return false;
}

static void ids_stand_where_the_description_says(void **state)
{
	(void)state;
	static const struct {
		const char *request;
		bool answer;
		const char *body;
		const char *found;
	} rows[] = {
		{"POST /images", false, "{\"id\": 1, \"image\": {\"id\": 2, \"name\": \"n\", \"base\": 3}}",
	     "id 2; name n; reference 3 (image.image); "},
		{"POST /images", true, "{\"image\": {\"uuid\": 2, \"self\": \"/images/2\", \"links\": [{\"href\": \"x\"}]}}",
	     "id 2; link /images/2; link x; "},
		{"GET /images", true,
	     "{\"images\": [{\"id\": 1}, {\"id\": 2, \"base\": 1, \"image\": {\"id\": 9}}], \"id\": 3}",
	     "id 1; id 2; reference 1 (image.image); "},
		{"POST /images/7/tags", false, "{\"id\": 1, \"by\": \"me\", \"image\": {\"id\": 2}}",
	     "id 1; reference me (compute.user); "},
	};
	struct glue *glue = read_fine(description);
	for (size_t i = 0; i < COUNT(rows); i++) {
		const struct glue_operation *operation = operation_of(glue, "image", rows[i].request);
		struct buf found = {0}, out = {0};
		struct glue_replacer replacer = {&found, note};
		struct glue_splicer *splicer = glue_splicer_new(
			rows[i].answer ? glue_answer_places(operation) : glue_request_places(operation), &replacer);
		assert_int_equal(glue_splice(splicer, str_of(rows[i].body), &out, NULL), 0);
		assert_int_equal(glue_splice_end(splicer, &out, NULL), 0);
		assert_string_equal(buf_c(&found), rows[i].found);
		assert_string_equal(buf_c(&out), rows[i].body);
		glue_splicer_free(splicer);
		buf_free(&found);
		buf_free(&out);
	}
	glue_free(glue);
}

static const char related[] =
	"format: 1\n"
	"application: related\n"
	"services: {a: }\n"
	"types:\n"
	"  a.thing:\n"
	"    collection: /projects/{project}/things\n"
	"    item: /projects/{project}/things/{id}\n"
	"    references:\n"
	"      body: {/image: {type: a.image, kind: requirement}, '/keys/*': {type: '*', kind: reliance}, /plain: "
	"a.image}\n"
	"      query: {of: {type: a.image, kind: composition}}\n"
	"      path: {project: {type: a.project, kind: container}, peer: a.image}\n"
	"      uses: [a.image]\n"
	"    operations:\n"
	"      grow: {method: POST, path: '{item}/grow', references: {/by: a.image}, uses: [a.project, a.image]}\n"
	"      peer: {method: GET, path: '{item}/peers/{peer}', uses: a.project}\n"
	"  a.image:\n"
	"    item: /images/{id}\n"
	"    owner: site\n"
	"    relied: refuse\n"
	"    cross: {as: divisible, divide: [/size, /hosts], weight: capacity, combine: {/used: max, /hosts: union}}\n"
	"    operations: {grow: {method: POST, path: '{item}/grow', divide: [/by]}}\n"
	"  a.project: {item: '/projects/{id}', cross: {as: container, names: optimistic}}\n"
	"  a.disk: {item: '/disks/{id}', cross: indivisible}\n";

/* Each as "where place kind type". */
static void put_relations(struct buf *out, const struct glue_operation *operation)
{
	static const char *const where[] = {"path", "query", "body", "uses"};
	for (uint32_t i = 0; i < glue_relations_count(operation); i++) {
		const struct glue_relation *relation = glue_relation_at(operation, i);
		struct str type = relation->type != NULL ? glue_type_name(relation->type) : STR("*");
		buf_printf(out, "%s %.*s %s %.*s; ", where[relation->where], STR_FMT(relation->place),
		           glue_kind_name(relation->kind), STR_FMT(type));
	}
}

static void relations(void **state)
{
	(void)state;
	static const struct {
		const char *request, *relations;
	} rows[] = {
		{"POST /projects/p/things", "path project container a.project; query of composition a.image; body /image "
	                                "requirement a.image; body /keys/* "
	                                "reliance *; body /plain none a.image; uses  none a.image; "},
		{"GET /projects/p/things/1", "path project container a.project; query of composition a.image; "},
		{"DELETE /projects/p/things/1",
	     "path project container a.project; query of composition a.image; uses  none a.image; "},
		{"POST /projects/p/things/1/grow",
	     "path project container a.project; query of composition a.image; body /image requirement a.image; body "
	     "/keys/* "
	     "reliance *; body /plain none a.image; body /by none a.image; uses  none a.image; uses  none a.project; "},
		{"GET /projects/p/things/1/peers/2", "path project container a.project; path peer none a.image; query of "
	                                         "composition a.image; uses  none a.project; "},
		{"PUT /images/1", ""},
	};
	struct glue *glue = read_fine(related);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf found = {0};
		put_relations(&found, operation_of(glue, "a", rows[i].request));
		buf_put_char(&found, '\0');
		assert_string_equal(found.at, rows[i].relations);
		buf_free(&found);
	}
	glue_free(glue);
}

static void lists_and_what_is_asked_of_them(void **state)
{
	static const struct {
		const char *query;
		enum glue_list_query asks;
		const char *member;
	} cases[] = {
		{"", GLUE_QUERY_FREE, NULL},
		{"name=limit&limits=1&x=limit", GLUE_QUERY_FREE, NULL},
		{"limit=1", GLUE_QUERY_PAGES, "limit"},
		{"a=b&marker", GLUE_QUERY_PAGES, "marker"},
		{"a;l%69mit=2", GLUE_QUERY_PAGES, "limit"},
		{"&&order=up&limit=1", GLUE_QUERY_SORTS, "order"},
		{"limit%", GLUE_QUERY_FREE, NULL},
		{"limi", GLUE_QUERY_FREE, NULL},
	};
	(void)state;
	struct glue *glue = read_fine(description);
	const struct glue_operation *list = operation_of(glue, "image", "GET /images");
	struct glue_list_about about;
	struct str member;
	assert_true(glue_operation_list(list, &about));
	assert_true(str_equal(about.list, STR("/images")) && str_equal(about.next, STR("/next")));
	assert_true(str_equal(about.most, STR("limit=100")));
	assert_false(glue_operation_list(operation_of(glue, "image", "GET /images/1"), &about));
	for (size_t i = 0; i < COUNT(cases); i++) {
		assert_int_equal(glue_list_query(list, str_of(cases[i].query), &member), cases[i].asks);
		if (cases[i].member)
			assert_true(str_equal(member, str_of(cases[i].member)));
	}
	glue_free(glue);
}

static void ownership_and_several_sites(void **state)
{
	(void)state;
	uint32_t count;
	struct glue *glue = read_fine(related);
	const struct glue_type *thing = glue_type_at(glue, 0), *image = glue_type_at(glue, 1);
	assert_int_equal(glue_type_owner(thing), GLUE_GLOBAL);
	assert_int_equal(glue_type_relied(thing), GLUE_RELIED_WARN);
	assert_int_equal(glue_type_cross(thing)->strategy, GLUE_NO_CROSS);
	assert_int_equal(glue_type_owner(image), GLUE_SITE);
	assert_int_equal(glue_type_relied(image), GLUE_RELIED_REFUSE);
	assert_true(str_equal(glue_type_service(image), STR("a")));
	const struct glue_cross *cross = glue_type_cross(image);
	assert_int_equal(cross->strategy, GLUE_DIVISIBLE);
	assert_int_equal(cross->divide_count, 2);
	assert_true(str_equal(cross->divide[0], STR("/size")) && str_equal(cross->divide[1], STR("/hosts")));
	assert_true(str_equal(cross->weight, STR("capacity")));
	assert_int_equal(cross->combine_count, 2);
	assert_true(str_equal(cross->combine[0].pointer, STR("/used")) && cross->combine[0].as == GLUE_MAX);
	assert_true(str_equal(cross->combine[1].pointer, STR("/hosts")) && cross->combine[1].as == GLUE_UNION);
	const struct str *divide = glue_operation_divide(operation_of(glue, "a", "POST /images/1/grow"), &count);
	assert_true(count == 1 && str_equal(divide[0], STR("/by")));
	glue_operation_divide(operation_of(glue, "a", "PUT /images/1"), &count);
	assert_int_equal(count, 0);
	assert_int_equal(glue_type_cross(glue_type_at(glue, 2))->strategy, GLUE_CONTAINER);
	assert_true(glue_type_cross(glue_type_at(glue, 2))->optimistic);
	assert_int_equal(glue_type_cross(glue_type_at(glue, 3))->strategy, GLUE_INDIVISIBLE);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations),
		cmocka_unit_test(operations_and_facets_are_numbered),
		cmocka_unit_test(types),
		cmocka_unit_test(resolutions),
		cmocka_unit_test(a_delete_that_wins_comes_last),
		cmocka_unit_test(services),
		cmocka_unit_test(equal_texts_have_equal_digests),
		cmocka_unit_test(ids_stand_where_the_description_says),
		cmocka_unit_test(relations),
		cmocka_unit_test(ownership_and_several_sites),
		cmocka_unit_test(lists_and_what_is_asked_of_them),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
