/* Any bytes as a request: what the trie finds is what a walk over all templates finds, and all slices lie in the path.
 *
 * The first byte says which service and method it is; then come, each ended by a newline, the path, the query, the content
 * type, and the body. */
#include "base/check.h"
#include "glue/glue_int.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char description[] =
	"format: 1\n"
	"application: fuzz\n"
	"services: {a: , b: {under: [/p, /p/q]}}\n"
	"types:\n"
	"  a.a: {collection: /a, item: '/a/{id}', lists: [/a/b], operations: {go: {method: POST, path: '{item}/a'},\n"
	"    all: {method: POST, path: '{item}/{rest*}', effect: pass}}}\n"
	"  a.b: {collection: '/{x}/b', item: '/{x}/b/{id}', operations: {patch: {content: a/b}, json-patch: ~,\n"
	"    watch: {method: GET, path: '{item}', query: {w: ['1', 'a b']}}}}\n"
	"  a.c: {collection: '/a/{x}/{y}/', item: '/a/{x}/{y}/{id}/', operations: {\n"
	"    act: {method: POST, path: '{item}/x', key: k},\n"
	"    any: {method: POST, path: '{item}/x', key: '*'}}}\n"
	"  'b.{k}': {collection: '/{k}', item: '/{k}/{id}', ignore: k}\n"
	"  '*.{n}': {collection: '/n/{n}', item: '/n/{n}/{id}'}\n";

/* ---- The same, by looking at each template ------------------------------------------------------------------------ */

/* Fits the template's segments to the path; says in `literal` which of them are literals, the first one uppermost. */
static bool fits(const struct glue_template *template, struct str path, uint64_t *literal)
{
	size_t at = 0;
	*literal = 0;
	for (uint32_t i = 0; i < template->segments_count; i++) {
		if (at >= path.length || path.at[at] != '/')
			return false;
		const char *start = path.at + at + 1;
		const char *slash = memchr(start, '/', path.length - at - 1);
		struct str segment = str_make(start, slash != NULL ? (size_t)(slash - start) : path.length - at - 1);
		if (template->takes_rest && i + 1 == template->segments_count)
			return segment.length > 0;
		if (template->segments[i].at != NULL ? !str_equal(template->segments[i], segment) : segment.length == 0)
			return false;
		/* A segment that is a variable is better than one of those that are left. */
		*literal |= (template->segments[i].at != NULL ? UINT64_C(2) : UINT64_C(1)) << (62 - 2 * i);
		at += 1 + segment.length;
	}
	return at == path.length;
}

/* The best way in which the service's types know the path, by any method. */
static bool look_at_all(const struct glue *glue, const struct glue_service *service, struct str path, uint64_t *best)
{
	bool found = false;
	uint64_t literal;
	*best = 0;
	for (uint32_t i = 0; i < glue->types_count; i++) {
		const struct glue_type *type = &glue->types[i];
		if (type->service != NULL && type->service != service)
			continue;
		for (uint32_t j = 0; j < type->operations_count; j++) {
			const struct glue_operation *operation = &type->operations[j];
			for (uint32_t k = 0; k < operation->templates_count; k++) {
				if (!fits(&operation->templates[k], path, &literal))
					continue;
				found = true;
				*best = literal > *best ? literal : *best;
			}
		}
	}
	return found;
}

/* ---- The check ---------------------------------------------------------------------------------------------------- */

static void check_match(const struct glue_request *request, const struct glue_match *match)
{
	const char *end = request->path.at + request->path.length;
	uint64_t literal;
	CHECK(match->template != NULL && fits(match->template, request->path, &literal));
	CHECK(match->operation != NULL || match->needs_body);
	CHECK(match->values_count == match->template->variables_count);
	for (uint32_t i = 0; i < match->values_count; i++)
		CHECK(match->values[i].text.at > request->path.at &&
		      match->values[i].text.at + match->values[i].text.length <= end);
	CHECK((match->id.length > 0) == (match->template->id_variable >= 0));
	CHECK(match->collection.length <= request->path.length);
}

static void check(const struct glue *glue, const struct glue_request *request, struct str body)
{
	struct glue_match match;
	struct glue_value values[LIMIT_GLUE_VARIABLES];
	uint32_t count;
	const struct glue_type *type;
	uint64_t best, literal = 0;
	const struct glue_service *service = glue_service_find(glue, request->service);
	const struct glue_template *template =
		glue_find_template(glue, request->service, request->path, values, &count, &type);
	bool known = look_at_all(glue, service, request->path, &best);
	/* Paths with two readings are unknown, whatever they look like; prefixes are not looked at. */
	if (template != NULL && template->prefix_segments == 0)
		CHECK(known && fits(template, request->path, &literal) && literal == best);
	if (!glue_match(glue, request, &match))
		return;
	CHECK(template != NULL);
	check_match(request, &match);
	if (!match.needs_body)
		return;
	bool told = glue_match_body(glue, body, &match, NULL);
	CHECK(told == !match.needs_body || match.operation != NULL);
	check_match(request, &match);
}

static struct str next_line(struct str *rest)
{
	const char *newline = rest->length > 0 ? memchr(rest->at, '\n', rest->length) : NULL;
	struct str line = str_make(rest->at, newline != NULL ? (size_t)(newline - rest->at) : rest->length);
	size_t taken = line.length + (newline != NULL);
	*rest = str_make(rest->at + taken, rest->length - taken);
	return line;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const services[] = {"a", "b", "other"};
	static const char *const methods[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW"};
	static struct glue *glue; /* for ever: it is always the same */
	struct glue_options options = {.path = "fuzz.yaml", .hash_key = {1, 2}};
	if (size == 0)
		return 0;
	if (glue == NULL)
		CHECK(glue_read(&glue, str_of(description), &options, NULL) == 0);
	struct str rest = str_make((const char *)data + 1, size - 1);
	struct glue_request request = {.service = str_of(services[data[0] / 8 % COUNT(services)]),
	                               .method = str_of(methods[data[0] % COUNT(methods)])};
	request.path = next_line(&rest);
	request.query = next_line(&rest);
	request.content_type = next_line(&rest);
	check(glue, &request, rest);
	return 0;
}
