/* What a create requires has to be at all the sites at which it is to run, or the scope shares it. */
#include "relation/relation.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

static const char description[] =
	"format: 1\n"
	"application: cloud\n"
	"services: {compute: , image: }\n"
	"types:\n"
	"  compute.server:\n"
	"    collection: /servers\n"
	"    item: /servers/{id}\n"
	"    references: {body: {/image: {type: image.image, kind: requirement}, /key: {type: compute.key, kind: "
	"requirement},\n"
	"      /logo: image.image, /any: {type: '*', kind: requirement}, /backup: {type: image.image, kind: reliance}}}\n"
	"  compute.key: {collection: /keys, item: '/keys/{id}'}\n"
	"  image.image: {collection: /images, item: '/images/{id}'}\n";

/* `both` is replicated over Site1 and Site2, `alone` is of one site, of `other` nothing is known. */
static enum relation_presence find(void *context, const struct glue_type *type, struct str id, uint32_t site)
{
	(void)context;
	(void)type;
	if (str_equal(id, STR("both")))
		return site < 2 ? RELATION_THERE : RELATION_ABSENT;
	return str_equal(id, STR("alone")) ? RELATION_SINGLE : RELATION_UNKNOWN;
}

#define CREATE "POST /servers"
#define ABSENT_3 "server.create at Site3 requires image.image `both` at Site3, where it is not"
#define SINGLE                                                                                                         \
	"server.create at Site2 requires image.image `alone` at Site2, and at Site1 as well, but it is not replicated: "   \
	"it is "                                                                                                           \
	"at one of them at most"

static const struct {
	const char *request, *body, *scope, *message, *hint;
} rows[] = {
	{CREATE, "{\"image\": \"both\"}", "Site1 & Site2", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "Site1 & Site3", ABSENT_3,
     "replicate it there first, `cheops replicant extend both Site3`, or share it: let the scope say where image is, "
     "as in "
     "`image: SITE`"},
	{CREATE, "{\"image\": \"both\"}", "Site1 % Site3", ABSENT_3, NULL},
	{CREATE, "{\"image\": \"both\"}", "{compute: Site1 & Site3, image: Site1}", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "{compute: Site1 & Site3, image: Site3}",
     "server.create at Site1 requires image.image `both` at Site3, where it is not", NULL},
	{CREATE, "{\"image\": \"both\"}", "{compute: Site1 & Site3, image: Site3; Site1}", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "Site1; Site3", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "Site3", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "all()", ABSENT_3, NULL},
	{CREATE, "{\"image\": \"alone\"}", "Site1 & Site2", SINGLE,
     "make it with `image: Site1 & Site2` first, or share it: let the scope say where image is, as in `image: Site1`"},
	{CREATE, "{\"image\": \"alone\"}", "{compute: Site1 & Site2, image: Site1}", NULL, NULL},
	{CREATE, "{\"image\": \"alone\"}", "{compute: Site1 & Site2, image: Site3}", NULL, NULL},
	{CREATE, "{\"image\": \"alone\"}", "Site2", NULL, NULL},
	{CREATE, "{\"image\": \"other\"}", "Site1 & Site3", NULL, NULL},
	{CREATE, "{\"image\": true}", "Site1 & Site3", NULL, NULL},
	{CREATE, "{\"image\": null}", "Site1 & Site3", NULL, NULL},
	{CREATE, "{\"logo\": \"both\", \"backup\": \"both\", \"any\": \"both\"}", "Site1 & Site3", NULL, NULL},
	/* of the same service: where the copy is, whatever the scope says of others */
	{CREATE, "{\"key\": \"both\"}", "{compute: Site1 & Site3, image: Site1}",
     "server.create at Site3 requires compute.key `both` at Site3, where it is not", NULL},
	{CREATE, "no JSON", "Site1 & Site3", NULL, NULL},
	{CREATE, "?", "Site1 & Site3", "?", NULL},
	{CREATE, "?", "Site1", NULL, NULL},
	{"PUT /servers/1", "{\"image\": \"both\"}", "Site1 & Site3", NULL, NULL},
	{"POST /images", "{\"image\": \"both\"}", "Site1 & Site3", NULL, NULL},
};

static void check_row(size_t number, struct glue *glue)
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct glue_match match;
	struct relation_refusal refusal = {0};
	const struct scope_plan *plan = NULL;
	const char *space = strchr(rows[number].request, ' ');
	bool is_image = strcmp(space + 1, "/images") == 0, unknown = strcmp(rows[number].body, "?") == 0;
	struct glue_request request = {.service = is_image ? STR("image") : STR("compute"),
	                               .method = str_make(rows[number].request, (size_t)(space - rows[number].request)),
	                               .path = str_of(space + 1),
	                               .query = STR("")};
	arena_init(&arena, 0);
	struct scope_table *table = scope_table_new(&arena);
	static const char *const names[] = {"Site1", "Site2", "Site3"};
	for (int i = 0; i < 3; i++)
		scope_table_add_site(table, (struct scope_site){.name = str_of(names[i])});
	struct scope_view view = scope_table_view(table);
	struct scope_request asked = {.service = request.service};
	if (scope_parse(&arena, str_of(rows[number].scope), &scope, &diag) != 0 || scope_check(&arena, scope, &diag) != 0 ||
	    scope_evaluate(&arena, scope, &asked, &view, &plan, &diag) != 0)
		fail_msg("%s: %s", rows[number].scope, diag.message);
	assert_true(glue_match(glue, &request, &match));
	struct str body = str_of(rows[number].body);
	struct relation_question question = {.glue = glue,
	                                     .match = &match,
	                                     .request = &request,
	                                     .scope = scope,
	                                     .plan = plan,
	                                     .view = &view,
	                                     .has_body = true,
	                                     .body = unknown ? NULL : &body};
	struct relation_whereabouts whereabouts = {NULL, find};
	enum relation_verdict verdict = relation_check_required(&arena, &question, &whereabouts, &refusal);
	const char *message = rows[number].message;
	enum relation_verdict expected = message == NULL             ? RELATION_FINE
	                                 : strcmp(message, "?") == 0 ? RELATION_ASK_BODY
	                                                             : RELATION_REFUSED;
	if (verdict != expected)
		fail_msg("row %zu: verdict %d, not %d; %s", number, (int)verdict, (int)expected, refusal.message);
	if (expected == RELATION_REFUSED)
		assert_string_equal(refusal.message, message);
	if (rows[number].hint != NULL)
		assert_string_equal(refusal.hint, rows[number].hint);
	arena_free(&arena);
}

static void requirements(void **state)
{
	(void)state;
	struct glue *glue = NULL;
	struct err err = {0};
	struct glue_options options = {.path = "cloud.yaml", .hash_key = {1, 2}};
	if (glue_read(&glue, str_of(description), &options, &err) != 0)
		fail_msg("%s", err.text);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		check_row(i, glue);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(requirements)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
