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

/* `both` is replicated over Site1 and Site2, `gone` was, `alone` is of one site, of `other` nothing is known. */
static enum relation_presence find(void *context, const struct glue_type *type, struct str id, uint32_t site)
{
	(void)context;
	(void)type;
	if (str_equal(id, STR("both")))
		return site < 2 ? RELATION_THERE : RELATION_ABSENT;
	if (str_equal(id, STR("gone")))
		return RELATION_GONE;
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
     "replicate it there first, `cheops replicant extend both Site3`, or let it be brought along, by "
     "`with_requirements(…)` around the location, or share it: let the scope say where image is, "
     "as in "
     "`image: SITE`"},
	{CREATE, "{\"image\": \"both\"}", "Site1 % Site3", ABSENT_3, NULL},
	{CREATE, "{\"image\": \"gone\"}", "Site1 & Site2",
     "server.create at Site1 requires image.image `gone`, which was deleted", "name another one"},
	{CREATE, "{\"image\": \"gone\"}", "Site1", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "{compute: Site1 & Site3, image: Site1}", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "{compute: Site1 & Site3, image: Site3}",
     "server.create at Site1 requires image.image `both` at Site3, where it is not", NULL},
	{CREATE, "{\"image\": \"both\"}", "{compute: Site1 & Site3, image: Site3; Site1}", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "Site1; Site3", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "Site3", NULL, NULL},
	{CREATE, "{\"image\": \"both\"}", "all()", ABSENT_3, NULL},
	{CREATE, "{\"image\": \"alone\"}", "Site1 & Site2", SINGLE,
     "make it with `image: Site1 & Site2` first, or let it be brought along, by `with_requirements(…)` around the "
     "location, or share it: let the scope say where image is, as in `image: Site1`"},
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

/* What is brought along, as "type id: sites". */
static const struct {
	const char *request, *body, *scope, *needs;
} brought[] = {
	{CREATE, "{\"image\": \"i\"}", "with_requirements(Site1 & Site2)", "image.image i: 0 1\n"},
	{CREATE, "{\"image\": \"i\"}", "with_requirements(Site2)", "image.image i: 1\n"},
	{CREATE, "{\"image\": \"i\"}", "with_requirements(Site2 % Site3)", "image.image i: 1 2\n"},
	{CREATE, "{\"image\": \"i\", \"key\": \"k\"}", "compute: with_requirements(all())",
     "image.image i: 0 1 2\ncompute.key k: 0 1 2\n"},
	{CREATE, "?", "with_requirements(Site1 & Site2)", "?"},
	{CREATE, "?", "Site1 & Site2", ""},
	/* without the word; only here; where nobody knows where it will run; shared, but for the service's own */
	{CREATE, "{\"image\": \"i\"}", "Site1 & Site2", ""},
	{CREATE, "{\"image\": \"i\"}", "image: with_requirements(Site1 & Site2)", ""},
	{CREATE, "?", "with_requirements(Site1)", ""},
	{CREATE, "?", "with_requirements(Site2; Site3)", ""},
	{CREATE, "{\"image\": \"i\", \"key\": \"k\"}", "compute: with_requirements(Site1 & Site2), image: Site1",
     "compute.key k: 0 1\n"},
	/* what is no requirement, or none that is known */
	{CREATE, "{\"logo\": \"i\", \"backup\": \"i\", \"any\": \"i\"}", "with_requirements(Site1 & Site2)", ""},
	{CREATE, "{\"image\": true}", "with_requirements(Site1 & Site2)", ""},
	{CREATE, "no JSON", "with_requirements(Site1 & Site2)", ""},
	{"PUT /servers/1", "{\"image\": \"i\"}", "with_requirements(Site1 & Site2)", ""},
	{"POST /images", "{\"image\": \"i\"}", "with_requirements(Site1 & Site2)", ""},
};

static void note_need(void *context, const struct relation_need *need)
{
	struct buf *out = context;
	buf_printf(out, "%.*s %.*s:", STR_FMT(glue_type_name(need->type)), STR_FMT(need->id));
	for (uint32_t i = 0; i < need->sites_count; i++)
		buf_printf(out, " %u", need->sites[i]);
	buf_put_char(out, '\n');
}

struct asked {
	const char *request, *body, *scope;
};

static void with_question(struct glue *glue, const struct asked *asked_for, size_t number,
                          void (*check)(struct arena *arena, const struct relation_question *question, size_t number))
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct glue_match match;
	const struct scope_plan *plan = NULL;
	const char *space = strchr(asked_for->request, ' ');
	bool is_image = strcmp(space + 1, "/images") == 0, unknown = strcmp(asked_for->body, "?") == 0;
	struct glue_request request = {.service = is_image ? STR("image") : STR("compute"),
	                               .method = str_make(asked_for->request, (size_t)(space - asked_for->request)),
	                               .path = str_of(space + 1),
	                               .query = STR("")};
	arena_init(&arena, 0);
	struct scope_table *table = scope_table_new(&arena);
	static const char *const names[] = {"Site1", "Site2", "Site3"};
	for (int i = 0; i < 3; i++)
		scope_table_add_site(table, (struct scope_site){.name = str_of(names[i])});
	struct scope_view view = scope_table_view(table);
	struct scope_request asked = {.service = request.service};
	if (scope_parse(&arena, str_of(asked_for->scope), &scope, &diag) != 0 || scope_check(&arena, scope, &diag) != 0 ||
	    scope_evaluate(&arena, scope, &asked, &view, &plan, &diag) != 0)
		fail_msg("%s: %s", asked_for->scope, diag.message);
	assert_true(glue_match(glue, &request, &match));
	struct str body = str_of(asked_for->body);
	struct relation_question question = {.glue = glue,
	                                     .match = &match,
	                                     .request = &request,
	                                     .scope = scope,
	                                     .plan = plan,
	                                     .view = &view,
	                                     .has_body = true,
	                                     .body = unknown ? NULL : &body};
	check(&arena, &question, number);
	arena_free(&arena);
}

static void check_row(struct arena *arena, const struct relation_question *question, size_t number)
{
	struct relation_refusal refusal = {0};
	struct relation_whereabouts whereabouts = {NULL, find};
	enum relation_verdict verdict = relation_check_required(arena, question, &whereabouts, &refusal);
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
}

static void check_brought(struct arena *arena, const struct relation_question *question, size_t number)
{
	struct buf found = {0};
	enum relation_verdict verdict = relation_find_needs(question, &(struct relation_needs){&found, note_need});
	(void)arena;
	if (verdict == RELATION_ASK_BODY)
		buf_put(&found, STR("?"));
	if (strcmp(buf_c(&found), brought[number].needs) != 0)
		fail_msg("row %zu: %s", number, buf_c(&found));
	buf_free(&found);
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
		with_question(glue, &(struct asked){rows[i].request, rows[i].body, rows[i].scope}, i, check_row);
	for (size_t i = 0; i < sizeof(brought) / sizeof(brought[0]); i++)
		with_question(glue, &(struct asked){brought[i].request, brought[i].body, brought[i].scope}, i, check_brought);
	glue_free(glue);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(requirements)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
