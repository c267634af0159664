/* cheops app import: a first draft of a description from an OpenAPI document.
 *
 * Paths are taken for what they look like. A path that ends with a variable is an item, the one without that segment its
 * collection; a path that is neither, but has a POST, is a collection without items. What is below an item is an operation on
 * it. The rest is listed in comments. Where ids, names and lists stand is taken from the schemas of answers; what a schema cannot
 * say (resolutions, credentials, references that are not called like what they refer to) is left to the reader.
 */
#include "cli/cmd_app.h"
#include "cli/openapi.h"

#include "base/check.h"

#include <ctype.h>
#include <stdlib.h>

static const char *const methods[] = {"get", "post", "put", "patch", "delete"};
enum { GET, POST, PUT, PATCH, DELETE, METHODS };
static const char *const method_names[METHODS] = {"GET", "POST", "PUT", "PATCH", "DELETE"};

enum { PATHS_MOST = LIMIT_GLUE_TEMPLATES / 4, SEGMENTS_MOST = LIMIT_GLUE_SEGMENTS };

struct path {
	const char *text;
	const char *segments[SEGMENTS_MOST];
	uint32_t count;
	const json_t *operations[METHODS]; /* NULL: there is none */
	bool bad;                          /* cannot be described */
	bool used;
};

struct type {
	struct path *collection; /* NULL: none */
	struct path *item;       /* NULL: none */
	const char *name;        /* without the service */
};

struct draft {
	struct app_call *call;
	struct openapi document;
	struct buf *out;
	const char *service;
	struct path *paths;
	uint32_t paths_count;
	struct type types[LIMIT_GLUE_TYPES];
	uint32_t types_count;
};

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

static bool is_variable(const char *segment)
{
	return segment[0] == '{';
}

static const char *segment_copy(struct draft *draft, const char *at, size_t length)
{
	return arena_copy(&draft->call->arena, at, length);
}

/* Only what a template can have: whole segments that are variables of a plain name, and literals without surprises. */
static bool segment_is_fine(const char *segment)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789";
	size_t length = strlen(segment);
	if (!is_variable(segment))
		return length > 0 &&
		       length ==
		           strspn(segment, "-.~:@!$&'()*+,;=abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") &&
		       strcmp(segment, ".") != 0 && strcmp(segment, "..") != 0;
	return length > 2 && length < LIMIT_GLUE_NAME_BYTES && segment[length - 1] == '}' &&
	       !isdigit((unsigned char)segment[1]) && strspn(segment + 1, letters) == length - 2;
}

/* `{pet-id}` is `{pet_id}` to us. */
static const char *variable_made_plain(struct draft *draft, const char *segment)
{
	char *copy = arena_copy(&draft->call->arena, segment, strlen(segment));
	for (char *c = copy; *c != '\0'; c++) {
		if (*c == '-' || *c == '.')
			*c = '_';
	}
	return copy;
}

static void path_cut(struct draft *draft, struct path *path)
{
	uint32_t variables = 0;
	path->bad = path->text[0] != '/' || strlen(path->text) > LIMIT_GLUE_TEXT_BYTES / 2;
	for (const char *at = path->text; !path->bad && at[0] == '/' && at[1] != '\0';) {
		size_t length = strcspn(at + 1, "/");
		const char *segment = segment_copy(draft, at + 1, length);
		if (is_variable(segment))
			segment = variable_made_plain(draft, segment);
		variables += is_variable(segment);
		path->bad = path->count == SEGMENTS_MOST - 4 || variables > LIMIT_GLUE_VARIABLES || !segment_is_fine(segment);
		for (uint32_t i = 0; !path->bad && i < path->count; i++)
			path->bad = is_variable(segment) && strcmp(path->segments[i], segment) == 0;
		if (!path->bad)
			path->segments[path->count++] = segment;
		at += length + 1;
		/* A `/` at the end would be an empty segment. */
		path->bad |= at[0] == '/' && at[1] == '\0';
	}
	path->bad |= path->count == 0;
}

/* Have they the same literals and variables at the first `count` places? */
static bool same_shape(const struct path *a, const struct path *b, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		bool variable = is_variable(a->segments[i]);
		if (variable != is_variable(b->segments[i]) || (!variable && strcmp(a->segments[i], b->segments[i]) != 0))
			return false;
	}
	return true;
}

static struct path *path_find(struct draft *draft, const struct path *like, uint32_t count)
{
	for (uint32_t i = 0; i < draft->paths_count; i++) {
		struct path *path = &draft->paths[i];
		if (!path->bad && path->count == count && same_shape(path, like, count))
			return path;
	}
	return NULL;
}

static int compare_paths(const void *a, const void *b)
{
	return strcmp(((const struct path *)a)->text, ((const struct path *)b)->text);
}

static void read_paths(struct draft *draft)
{
	const char *text;
	json_t *entry;
	draft->paths = arena_array(&draft->call->arena, struct path, PATHS_MOST);
	json_object_foreach((json_t *)draft->document.paths, text, entry)
	{
		const json_t *operations = openapi_resolve(&draft->document, entry);
		if (draft->paths_count == PATHS_MOST)
			break;
		struct path *path = &draft->paths[draft->paths_count++];
		path->text = text;
		for (int i = 0; i < METHODS; i++)
			path->operations[i] = json_object_get(operations, methods[i]);
		path_cut(draft, path);
	}
	qsort(draft->paths, draft->paths_count, sizeof(struct path), compare_paths);
	/* Of two that differ in the names of variables alone, the first counts. */
	for (uint32_t i = 0; i < draft->paths_count; i++) {
		struct path *path = &draft->paths[i];
		if (!path->bad && path_find(draft, path, path->count) != path)
			path->bad = true;
	}
}

/* ---- Types ------------------------------------------------------------------------------------------------------- */

static bool name_is_taken(const struct draft *draft, const char *name)
{
	for (uint32_t i = 0; i < draft->types_count; i++) {
		if (strcmp(draft->types[i].name, name) == 0)
			return true;
	}
	return false;
}

static void put_plain(struct buf *out, const char *text)
{
	for (; *text != '\0'; text++)
		buf_put_char(out, isalnum((unsigned char)*text) || *text == '-' || *text == '_' ? *text : '-');
}

/* The last literal of the path; with those before it, where that is taken. */
static const char *type_name(struct draft *draft, const struct path *path, uint32_t count)
{
	struct buf name = {0};
	for (uint32_t words = 1; words <= count + 1; words++) {
		uint32_t left = words, from = count;
		while (from > 0 && left > 0)
			left -= !is_variable(path->segments[--from]);
		buf_clear(&name);
		for (uint32_t i = from; i < count; i++) {
			if (is_variable(path->segments[i]))
				continue;
			if (name.length > 0)
				buf_put_char(&name, '-');
			put_plain(&name, path->segments[i]);
		}
		if (name.length > 0 && name.length < 80 && !name_is_taken(draft, buf_c(&name)))
			break;
	}
	if (name.length == 0 || name.length >= 80 || name_is_taken(draft, buf_c(&name))) {
		buf_clear(&name);
		buf_printf(&name, "type%u", draft->types_count + 1);
	}
	const char *kept = arena_copy(&draft->call->arena, name.at, name.length);
	buf_free(&name);
	return kept;
}

static bool ends_with_variable(const struct path *path)
{
	return path->count >= 2 && is_variable(path->segments[path->count - 1]) &&
	       !is_variable(path->segments[path->count - 2]);
}

static void add_type(struct draft *draft, struct path *collection, struct path *item)
{
	const struct path *path = item != NULL ? item : collection;
	CHECK(path != NULL);
	if (draft->types_count == LIMIT_GLUE_TYPES)
		return;
	struct type type = {.collection = collection, .item = item};
	type.name = type_name(draft, path, path->count - (item != NULL));
	draft->types[draft->types_count++] = type;
	if (collection != NULL)
		collection->used = true;
	if (item != NULL)
		item->used = true;
}

/* Is it below the item of some type? That makes a POST an action, not a create. */
static struct type *type_above(struct draft *draft, const struct path *path)
{
	struct type *found = NULL;
	for (uint32_t i = 0; i < draft->types_count; i++) {
		const struct path *item = draft->types[i].item;
		if (item != NULL && item->count < path->count && same_shape(item, path, item->count) &&
		    (found == NULL || item->count > found->item->count))
			found = &draft->types[i];
	}
	return found;
}

static bool is_list(struct draft *draft, const struct path *path);

static void find_types(struct draft *draft)
{
	for (uint32_t i = 0; i < draft->paths_count; i++) {
		struct path *path = &draft->paths[i];
		if (!path->bad && ends_with_variable(path))
			add_type(draft, path_find(draft, path, path->count - 1), path);
	}
	for (uint32_t i = 0; i < draft->paths_count; i++) {
		struct path *path = &draft->paths[i];
		if (!path->bad && !path->used && !is_variable(path->segments[path->count - 1]) &&
		    path->operations[POST] != NULL && is_list(draft, path))
			add_type(draft, path, NULL);
	}
}

/* ---- Schemas ----------------------------------------------------------------------------------------------------- */

struct choice {
	struct draft *draft;
	const char *type;   /* wanted of a property */
	const char *usual;  /* preferred name */
	const char *chosen; /* NULL: none */
	unsigned count;
};

static bool choose(void *context, const char *name, const json_t *schema)
{
	static const char *const usual[] = {"items", "data", "results"};
	struct choice *choice = context;
	if (strcmp(openapi_type(&choice->draft->document, schema), choice->type) != 0)
		return true;
	bool best = choice->usual != NULL && choice->chosen != NULL && strcmp(choice->chosen, choice->usual) == 0;
	bool better = choice->chosen == NULL || (choice->usual != NULL && strcmp(name, choice->usual) == 0);
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++)
		better |= choice->usual != NULL && strcmp(name, usual[i]) == 0 && !best;
	if (better)
		choice->chosen = name;
	choice->count++;
	return true;
}

static bool count_all(void *context, const char *name, const json_t *schema)
{
	(void)name;
	(void)schema;
	(*(unsigned *)context)++;
	return true;
}

static const char *last_literal(const struct path *path)
{
	for (uint32_t i = path->count; i > 0; i--) {
		if (!is_variable(path->segments[i - 1]))
			return path->segments[i - 1];
	}
	return "";
}

/* Where the array is in the answer to a GET: *key "" for the whole. NULL schema: it has none. */
static const json_t *list_schema(struct draft *draft, const struct path *path, const char **key)
{
	const struct openapi *document = &draft->document;
	const json_t *answer = openapi_answer(document, path->operations[GET]);
	*key = "";
	if (strcmp(openapi_type(document, answer), "array") == 0)
		return openapi_resolve(document, json_object_get(answer, "items"));
	struct choice choice = {.draft = draft, .type = "array", .usual = last_literal(path)};
	openapi_properties(document, answer, choose, &choice);
	if (choice.chosen == NULL)
		return NULL;
	*key = choice.chosen;
	return openapi_resolve(document, json_object_get(openapi_property(document, answer, choice.chosen), "items"));
}

static bool is_list(struct draft *draft, const struct path *path)
{
	const char *key;
	return list_schema(draft, path, &key) != NULL;
}

/* The object in the answer of an item, and the member that it is in: "" for the whole. */
static const json_t *object_schema(struct draft *draft, const struct path *item, const char **key)
{
	const struct openapi *document = &draft->document;
	const json_t *answer = openapi_answer(document, item->operations[GET]);
	*key = "";
	if (answer == NULL || openapi_property(document, answer, "id") != NULL)
		return answer;
	unsigned all = 0;
	struct choice choice = {.draft = draft, .type = "object"};
	openapi_properties(document, answer, choose, &choice);
	openapi_properties(document, answer, count_all, &all);
	if (all != 1 || choice.count != 1)
		return answer;
	*key = choice.chosen;
	return openapi_property(document, answer, choice.chosen);
}

/* ---- Writing ----------------------------------------------------------------------------------------------------- */

static void put_quoted(struct buf *out, const char *text)
{
	buf_put_json(out, str_of(text));
}

/* With what a pointer escapes. */
static void put_pointer(struct buf *out, const char *name)
{
	struct buf pointer = {0};
	buf_put_char(&pointer, '/');
	for (; *name != '\0'; name++) {
		if (*name == '~' || *name == '/')
			buf_put(&pointer, *name == '~' ? STR("~0") : STR("~1"));
		else
			buf_put_char(&pointer, *name);
	}
	buf_put_json(out, buf_str(&pointer));
	buf_free(&pointer);
}

static void put_template(struct buf *out, const struct path *path, uint32_t from)
{
	struct buf text = {0};
	for (uint32_t i = from; i < path->count; i++)
		buf_printf(&text, "/%s", path->segments[i]);
	buf_put_json(out, buf_str(&text));
	buf_free(&text);
}

/* A name that can stand in a pointer and in a file. */
static bool is_plain_name(const char *name)
{
	size_t length = strlen(name);
	return length > 0 && length < LIMIT_GLUE_NAME_BYTES && text_is_printable(str_make(name, length));
}

/* Times that the service notes by itself. */
static bool put_volatile(void *context, const char *name, const json_t *schema)
{
	struct buf *out = context;
	const char *format = json_string_value(json_object_get(schema, "format"));
	bool noted = strncmp(name, "created", 7) == 0 || strncmp(name, "updated", 7) == 0 ||
	             strncmp(name, "modified", 8) == 0 || json_is_true(json_object_get(schema, "readOnly"));
	if (format == NULL || strcmp(format, "date-time") != 0 || !noted || !is_plain_name(name) || out->length > 2000)
		return true;
	if (out->length > 0)
		buf_put(out, STR(", "));
	put_pointer(out, name);
	return true;
}

static void put_objects(struct draft *draft, const struct type *type)
{
	const struct openapi *document = &draft->document;
	struct buf *out = draft->out;
	const char *key = "", *list = "";
	const json_t *listed = type->collection != NULL ? list_schema(draft, type->collection, &list) : NULL;
	const json_t *object = type->item != NULL ? object_schema(draft, type->item, &key) : NULL;
	if (object == NULL)
		object = listed;
	if (key[0] != '\0' && is_plain_name(key)) {
		buf_put(out, STR("    object: "));
		put_pointer(out, key);
		buf_put_char(out, '\n');
	}
	if (list[0] != '\0' && is_plain_name(list)) {
		buf_put(out, STR("    list: "));
		put_pointer(out, list);
		buf_put_char(out, '\n');
	}
	if (object == NULL)
		return;
	if (type->item != NULL && openapi_property(document, object, "id") == NULL) {
		const char *segment = type->item->segments[type->item->count - 1];
		struct buf name = {0};
		buf_put(&name, str_make(segment + 1, strlen(segment) - 2));
		bool chosen = openapi_property(document, object, buf_c(&name)) != NULL;
		if (chosen) {
			buf_put(out, STR("    id: "));
			put_pointer(out, buf_c(&name));
			const json_t *body =
				type->collection != NULL ? openapi_body(document, type->collection->operations[POST]) : NULL;
			if (openapi_property(document, body, buf_c(&name)) != NULL)
				buf_put(out, STR("\n    identity: chosen   # whoever creates one says so in the body"));
			buf_put_char(out, '\n');
		} else {
			buf_put(out, STR("    # id: /id           no answer has it: where does it stand?\n"));
		}
		buf_free(&name);
	}
	if (openapi_property(document, object, "name") != NULL)
		buf_put(out, STR("    name: /name\n"));
	struct buf volatiles = {0};
	openapi_properties(document, object, put_volatile, &volatiles);
	if (volatiles.length > 0)
		buf_printf(out, "    volatile: [%s]\n", buf_c(&volatiles));
	buf_free(&volatiles);
}

/* Variables before the last one that are the ids of other types. */
static void put_references(struct draft *draft, const struct type *type)
{
	const struct path *path = type->item != NULL ? type->item : type->collection;
	CHECK(path != NULL);
	uint32_t last = path->count - (type->item != NULL);
	struct buf text = {0};
	for (uint32_t i = 0; i < draft->types_count; i++) {
		const struct path *item = draft->types[i].item;
		if (item == NULL || item->count > last || !same_shape(item, path, item->count))
			continue;
		const char *segment = path->segments[item->count - 1];
		buf_printf(&text, "%s%.*s: %s.%s", text.length > 0 ? ", " : "", (int)strlen(segment) - 2, segment + 1,
		           draft->service, draft->types[i].name);
	}
	if (text.length > 0)
		buf_printf(draft->out, "    references: {path: {%s}}\n", buf_c(&text));
	buf_free(&text);
}

/* What HTTP would mean but is not there. */
static bool put_absent(struct buf *out, const struct type *type)
{
	static const struct {
		const char *name;
		int method;
		bool on_item;
	} usual[] = {{"list", GET, false},   {"create", POST, false}, {"read", GET, true},
	             {"replace", PUT, true}, {"patch", PATCH, true},  {"delete", DELETE, true}};
	bool any = false;
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		const struct path *path = usual[i].on_item ? type->item : type->collection;
		if (path == NULL || path->operations[usual[i].method] != NULL)
			continue;
		buf_printf(out, "      %s: ~\n", usual[i].name);
		any = true;
	}
	return any;
}

static void put_operation(struct draft *draft, const struct type *type, const struct path *path, int method,
                          struct buf *out)
{
	static const char *const effects[METHODS] = {"read", "relative", "replace", "assign", "relative"};
	struct buf name = {0}, rest = {0};
	for (uint32_t i = type->item->count; i < path->count; i++) {
		if (!is_variable(path->segments[i])) {
			put_plain(&name, path->segments[i]);
			buf_put_char(&name, '-');
		}
		buf_printf(&rest, "/%s", path->segments[i]);
	}
	/* Two paths may have the same literals: the segments' number tells them apart. */
	buf_printf(&name, "%s%s", methods[method], is_variable(path->segments[path->count - 1]) ? "-one" : "");
	buf_put(out, STR("      "));
	put_quoted(out, buf_c(&name));
	buf_printf(out, ": {method: %s, path: \"{item}%s\", effect: %s", method_names[method], buf_c(&rest),
	           effects[method]);
	if (method == PUT || method == PATCH)
		buf_printf(out, ", facet: \"%s\"", buf_c(&rest) + 1);
	if (method == DELETE)
		buf_put(out, STR(", repeatable: true"));
	if (openapi_body(&draft->document, path->operations[method]) == NULL &&
	    json_object_get(path->operations[method], "requestBody") != NULL)
		buf_put(out, STR(", body: opaque"));
	if (openapi_answer(&draft->document, path->operations[method]) == NULL)
		buf_put(out, method == GET ? STR(", answer: opaque") : STR(", answer: none"));
	buf_put(out, STR("}\n"));
	buf_free(&name);
	buf_free(&rest);
}

/* A literal where the item has its id: it must not be taken for an item of that name. */
static bool is_beside(const struct path *path, const struct path *item)
{
	return path->count == item->count && !is_variable(path->segments[path->count - 1]) &&
	       same_shape(path, item, path->count - 1);
}

static void put_beside(struct draft *draft, const struct path *path, struct buf *out)
{
	struct buf name = {0};
	const char *last = path->segments[path->count - 1];
	for (int method = 0; method < METHODS; method++) {
		if (path->operations[method] == NULL)
			continue;
		bool list = method == GET && is_list(draft, path);
		buf_clear(&name);
		put_plain(&name, last);
		buf_printf(out, "      \"%s-%s\": {method: %s, path: ", buf_c(&name), methods[method], method_names[method]);
		put_template(out, path, 0);
		buf_printf(out, ", effect: %s}\n", list ? "list" : "pass");
	}
	buf_free(&name);
}

/* As many as a type may have: the rest is left out, and listed at the end. */
static void put_below(struct draft *draft, struct type *type, struct buf *out)
{
	enum { OPERATIONS_MOST = LIMIT_GLUE_OPERATIONS - 2 * METHODS - 8, FACETS_MOST = LIMIT_GLUE_FACETS - 2 };
	uint32_t operations = 0, facets = 0;
	for (uint32_t i = 0; type->item != NULL && i < draft->paths_count; i++) {
		struct path *path = &draft->paths[i];
		bool beside = !path->bad && is_beside(path, type->item);
		if (path->bad || path->used || (!beside && type_above(draft, path) != type))
			continue;
		if (operations >= OPERATIONS_MOST || facets >= FACETS_MOST)
			continue;
		path->used = true;
		facets++;
		for (int method = 0; method < METHODS; method++)
			operations += path->operations[method] != NULL;
		if (beside)
			put_beside(draft, path, out);
		for (int method = beside ? METHODS : 0; method < METHODS; method++) {
			if (path->operations[method] != NULL)
				put_operation(draft, type, path, method, out);
		}
	}
}

static void put_type(struct draft *draft, struct type *type)
{
	struct buf *out = draft->out, operations = {0};
	buf_printf(out, "\n  %s.%s:\n", draft->service, type->name);
	if (type->collection != NULL) {
		buf_put(out, STR("    collection: "));
		put_template(out, type->collection, 0);
		buf_put_char(out, '\n');
	}
	if (type->item != NULL) {
		buf_put(out, STR("    item: "));
		put_template(out, type->item, 0);
		buf_put_char(out, '\n');
	}
	put_objects(draft, type);
	put_references(draft, type);
	put_absent(&operations, type);
	put_below(draft, type, &operations);
	if (operations.length > 0)
		buf_printf(out, "    operations:\n%s", buf_c(&operations));
	buf_free(&operations);
}

static void put_left(struct draft *draft)
{
	bool first = true;
	for (uint32_t i = 0; i < draft->paths_count; i++) {
		if (draft->paths[i].used)
			continue;
		if (first)
			buf_put(draft->out, STR("\n# Not described: passed on as they are.\n"));
		first = false;
		buf_put(draft->out, STR("#   "));
		text_put_harmless(draft->out, str_of(draft->paths[i].text));
		buf_put_char(draft->out, '\n');
	}
}

static void put_all(struct draft *draft, const char *title)
{
	struct buf *out = draft->out, base = {0};
	openapi_base(&draft->document, &base);
	buf_put(out, STR("# A first draft, from the OpenAPI document of "));
	text_put_harmless(out, str_of(title));
	buf_put(out, STR(". Read it before you use it:\n"
	                 "# docs/descriptions.md says what each key means. No document says how concurrent operations are\n"
	                 "# resolved, which credentials there are, and which fields refer to what.\n"
	                 "format: 1\n"));
	buf_printf(out, "application: %s\n\nservices:\n  %s:\n", draft->service, draft->service);
	if (base.length > 0) {
		buf_put(out, STR("    under: ["));
		buf_put_json(out, buf_str(&base));
		buf_put(out, STR("]\n"));
	}
	buf_put(out, STR("\ntypes:"));
	for (uint32_t i = 0; i < draft->types_count; i++)
		put_type(draft, &draft->types[i]);
	put_left(draft);
	buf_free(&base);
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

/* Of the application and its service: --name, or what is plain of the title. */
static const char *service_name(struct app_call *call, const char *title)
{
	struct buf name = {0};
	for (const char *c = call->name != NULL ? call->name : title; *c != '\0' && name.length < 40; c++) {
		if (isalnum((unsigned char)*c))
			buf_put_char(&name, (char)tolower((unsigned char)*c));
		else if (name.length > 0 && name.at[name.length - 1] != '-')
			buf_put_char(&name, '-');
	}
	while (name.length > 0 && name.at[name.length - 1] == '-')
		name.length--;
	/* A number would be read as one. */
	bool plain = name.length > 0 && isalpha((unsigned char)name.at[0]);
	const char *kept = plain ? arena_copy(&call->arena, name.at, name.length) : "service";
	buf_free(&name);
	return kept;
}

/* A draft that is wrong would be our fault: better none than one that surprises. */
static int check(const struct buf *out)
{
	struct glue *glue = NULL;
	struct err err = {0};
	struct glue_options options = {.path = "draft", .hash_key = app_hash_key()};
	int code = glue_read(&glue, buf_str(out), &options, &err);
	glue_free(glue);
	if (code == 0)
		return CLI_FINE;
	cli_say("no description could be made of this document: %s", err.text);
	return CLI_REFUSED;
}

static int import(struct app_call *call, const json_t *root)
{
	const char *why;
	struct buf out = {0};
	struct draft *draft = arena_new(&call->arena, struct draft);
	draft->call = call;
	draft->out = &out;
	if (!openapi_open(&draft->document, root, &why)) {
		cli_say("`" TEXT_PATH_FMT "` is no OpenAPI 3 or Swagger 2 document: %s", TEXT_PATH(call->arguments[0]), why);
		return CLI_REFUSED;
	}
	const char *title = json_string_value(json_object_get(json_object_get(root, "info"), "title"));
	title = title != NULL ? title : "an application";
	draft->service = service_name(call, title);
	read_paths(draft);
	find_types(draft);
	int status = CLI_REFUSED;
	if (draft->types_count == 0) {
		cli_say("`" TEXT_PATH_FMT "` has no path that looks like a collection or an item",
		        TEXT_PATH(call->arguments[0]));
	} else {
		put_all(draft, title);
		status = check(&out);
	}
	if (status == CLI_FINE)
		status = cli_print(buf_str(&out));
	buf_free(&out);
	return status;
}

int app_import(struct app_call *call)
{
	struct buf text = {0};
	json_error_t error;
	if (call->arguments_count != 1)
		return cli_usage(call->command, "one FILE is needed: an OpenAPI document, as JSON");
	int status = app_read(call->arguments[0], LIMIT_GLUE_OPENAPI_BYTES, &text);
	json_t *root = status == CLI_FINE ? json_loadb(text.at, text.length, 0, &error) : NULL;
	if (status == CLI_FINE && root == NULL) {
		cli_say(TEXT_PATH_FMT ":%d:%d: not valid JSON: %s", TEXT_PATH(call->arguments[0]), error.line, error.column,
		        error.text);
		status = CLI_REFUSED;
	}
	if (status == CLI_FINE)
		status = import(call, root);
	json_decref(root);
	buf_free(&text);
	return status;
}
