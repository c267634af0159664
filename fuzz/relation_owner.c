/* Any bytes as a scope and a request: what is fine whatever the body has is fine with each body, and every refusal says why.
 *
 * The first byte says which service and method it is; then come, each ended by a newline, the scope, the path, the query, and the
 * body. */
#include "base/check.h"
#include "relation/relation.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char description[] =
	"format: 1\n"
	"application: fuzz\n"
	"services: {a: , b: , c: }\n"
	"types:\n"
	"  a.x:\n"
	"    collection: /x\n"
	"    item: /x/{id}\n"
	"    references: {body: {/y: b.y, '/l/*/y': b.y, /g: c.z}, query: {y: b.y}, path: {y: b.y}}\n"
	"    operations:\n"
	"      put: {method: PUT, path: '{item}/y/{y}', effect: assign}\n"
	"      act: {method: POST, path: '{item}/act', key: y, effect: relative, references: {/y/id: b.y}}\n"
	"      do: {method: POST, path: '{item}/act', key: '*', effect: relative}\n"
	"      see: {method: GET, path: '{item}/see', uses: b.y}\n"
	"  b.y: {collection: /y, item: '/y/{id}', owner: site}\n"
	"  c.z: {collection: /z, item: '/z/{id}', references: {uses: b.y}}\n";

static struct str next_line(struct str *rest)
{
	const char *newline = rest->length > 0 ? memchr(rest->at, '\n', rest->length) : NULL;
	struct str line = str_make(rest->at, newline != NULL ? (size_t)(newline - rest->at) : rest->length);
	size_t taken = line.length + (newline != NULL);
	*rest = str_make(rest->at + taken, rest->length - taken);
	return line;
}

static struct scope_table *make_table(struct arena *arena)
{
	static const char *const sites[] = {"A", "B", "C"};
	struct scope_table *table = scope_table_new(arena);
	for (size_t i = 0; i < COUNT(sites); i++)
		scope_table_add_site(table, (struct scope_site){.name = str_of(sites[i])});
	scope_table_set_rtt(table, 0, 1, 5000);
	scope_table_set_rtt(table, 1, 2, 7000);
	scope_table_tag(table, 1, STR("k"), STR("v"));
	return table;
}

static enum relation_verdict ask(struct arena *arena, const struct relation_question *question)
{
	struct relation_refusal refusal = {0};
	enum relation_verdict verdict = relation_check_owner(arena, question, &refusal);
	CHECK((verdict == RELATION_REFUSED) == (refusal.message[0] != '\0'));
	if (verdict == RELATION_REFUSED)
		CHECK(strstr(refusal.message, " expects ") != NULL && refusal.hint[0] != '\0' && refusal.site.length > 0 &&
		      str_equal(refusal.service, STR("b")));
	return verdict;
}

static void check(struct arena *arena, struct relation_question *question, struct str body)
{
	question->body = NULL;
	question->has_body = false;
	CHECK(ask(arena, question) != RELATION_ASK_BODY);
	question->has_body = true;
	enum relation_verdict without = ask(arena, question);
	question->body = &body;
	enum relation_verdict with = ask(arena, question);
	CHECK(with != RELATION_ASK_BODY);
	if (without == RELATION_FINE)
		CHECK(with == RELATION_FINE);
	if (without == RELATION_REFUSED && !question->match->needs_body)
		CHECK(with == RELATION_REFUSED);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const services[] = {"a", "b", "c"};
	static const char *const methods[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
	static struct glue *glue; /* for ever: it is always the same */
	struct glue_options options = {.path = "fuzz.yaml", .hash_key = {1, 2}};
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	struct glue_match match;
	if (size == 0)
		return 0;
	if (glue == NULL)
		CHECK(glue_read(&glue, str_of(description), &options, NULL) == 0);
	struct str rest = str_make((const char *)data + 1, size - 1), text = next_line(&rest);
	struct glue_request request = {.service = str_of(services[data[0] % COUNT(services)]),
	                               .method = str_of(methods[data[0] / 4 % COUNT(methods)])};
	request.path = next_line(&rest);
	request.query = next_line(&rest);
	arena_init(&arena, 0);
	struct scope_view view = scope_table_view(make_table(&arena));
	struct relation_question question = {
		.glue = glue, .match = &match, .request = &request, .view = &view, .inner = data[0] >> 7};
	struct scope_request asked = {.service = request.service, .inner = question.inner};
	if (scope_parse(&arena, text, &scope, &diag) == 0 && scope_check(&arena, scope, &diag) == 0 &&
	    scope_evaluate(&arena, scope, &asked, &view, &question.plan, &diag) == 0 &&
	    glue_match(glue, &request, &match)) {
		question.scope = scope;
		check(&arena, &question, rest);
	}
	arena_free(&arena);
	return 0;
}
