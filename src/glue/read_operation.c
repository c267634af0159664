/* operations and resolutions of a type: what HTTP's methods mean by themselves, and what the description says instead. */
#include "glue/load.h"

#include "base/text.h"

enum {
	METHOD,
	PATH,
	CONTENT,
	QUERY,
	KEY,
	EFFECT,
	FACET,
	BODY,
	ANSWER,
	READER,
	OBJECT,
	REFERENCES,
	BESIDE,
	CREATES,
	REPEATABLE,
	REPLAYS,
	USES,
	DIVIDE,
	OPERATION_KEYS
};

static const char *const operation_keys[] = {[METHOD] = "method",
                                             [PATH] = "path",
                                             [CONTENT] = "content",
                                             [QUERY] = "query",
                                             [KEY] = "key",
                                             [EFFECT] = "effect",
                                             [FACET] = "facet",
                                             [BODY] = "body",
                                             [ANSWER] = "answer",
                                             [READER] = "reader",
                                             [OBJECT] = "object",
                                             [REFERENCES] = "references",
                                             [BESIDE] = "beside",
                                             [CREATES] = "creates",
                                             [REPEATABLE] = "repeatable",
                                             [REPLAYS] = "replays",
                                             [USES] = "uses",
                                             [DIVIDE] = "divide",
                                             NULL};

static const char operation_example[] = "reboot: {method: POST, path: \"{item}/action\", key: reboot}";

/* ---- Operations that need no telling ----------------------------------------------------------------------------- */

enum { JSON_PATCH = 5 };
static const char json_patch_type[] = "application/json-patch+json";

struct usual {
	const char *name;
	uint32_t methods;
	bool on_item;
	bool on_lists;
	const char *content;
};

static const struct usual usuals[] = {
	{"list", 1u << GLUE_GET | 1u << GLUE_HEAD, false, true, NULL},
	{"create", 1u << GLUE_POST, false, false, NULL},
	{"read", 1u << GLUE_GET | 1u << GLUE_HEAD, true, false, NULL},
	{"replace", 1u << GLUE_PUT, true, false, NULL},
	{"patch", 1u << GLUE_PATCH, true, false, NULL},
	[JSON_PATCH] = {"json-patch", 1u << GLUE_PATCH, true, false, json_patch_type},
	{"delete", 1u << GLUE_DELETE_METHOD, true, false, NULL},
};
enum { USUALS = sizeof(usuals) / sizeof(usuals[0]) };

/* An operation being read. */
struct reading {
	struct glue_load *load;
	struct glue_type *type;
	struct glue_operation *operation;
	const struct usual *usual; /* NULL: none of that name */
	yaml_mark_t mark;
	struct yaml_entry found[OPERATION_KEYS];
	const struct glue_template *front; /* of the path being read: what stands before its `{item}`; NULL: nothing */
};

/* ---- Paths ------------------------------------------------------------------------------------------------------- */

/* What the path is of: the longest item or collection that it begins with. */
static void relate(const struct glue_type *type, struct glue_template *template)
{
	uint32_t depth = 0;
	template->id_variable = -1;
	for (uint32_t i = 0; i < type->collections_count; i++) {
		const struct glue_template *collection = &type->collections[i];
		if (glue_template_depth(collection) < depth || !glue_template_begins(template, collection))
			continue;
		depth = glue_template_depth(collection);
		template->collection_segments = depth;
	}
	for (uint32_t i = 0; i < type->items_count; i++) {
		const struct glue_template *item = &type->items[i];
		if (item->id_variable < 0 || glue_template_depth(item) <= depth || !glue_template_begins(template, item))
			continue;
		depth = glue_template_depth(item);
		template->id_variable = item->id_variable;
		template->collection_segments = item->collection_segments;
	}
}

static void name_variables(const struct glue_type *type, struct glue_template *template)
{
	for (uint32_t i = 0; i < template->variables_count; i++) {
		struct glue_variable *variable = &template->variables[i];
		variable->kind = (int32_t)i == template->id_variable ? GLUE_VARIABLE_ID : GLUE_VARIABLE_PLAIN;
		variable->type = (int32_t)i == template->id_variable ? type : NULL;
		for (uint32_t j = 0; j < type->in_path.count; j++) {
			if (variable->kind != GLUE_VARIABLE_PLAIN || !str_equal(type->in_path.at[j].place, variable->name))
				continue;
			variable->kind = GLUE_VARIABLE_REFERENCE;
			variable->type = type->in_path.at[j].type;
			variable->relation = type->in_path.at[j].kind;
		}
		for (uint32_t j = 0; j < type->ignored.count; j++)
			variable->ignored |= str_equal(type->ignored.at[j], variable->name);
	}
}

static void add_template(struct reading *reading, struct glue_template template)
{
	struct glue_operation *operation = reading->operation;
	struct glue_template *grown =
		arena_array(reading->load->arena, struct glue_template, operation->templates_count + 1);
	for (uint32_t i = 0; i < operation->templates_count; i++)
		grown[i] = operation->templates[i];
	relate(reading->type, &template);
	name_variables(reading->type, &template);
	if (reading->front != NULL)
		glue_template_prefix(reading->load->arena, &template, reading->front, &grown[operation->templates_count]);
	else
		grown[operation->templates_count] = template;
	operation->templates_count++;
	operation->templates = grown;
}

static void add_templates(struct reading *reading, const struct glue_template *templates, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add_template(reading, templates[i]);
}

/* The type's own template and what comes behind it. */
static void add_below(struct reading *reading, const struct yaml_entry *entry, const struct glue_template *base,
                      struct str rest)
{
	struct buf text = {0};
	struct err err = {0};
	struct glue_template template;
	struct str front = base->text;
	if (rest.length > 0 && front.at[front.length - 1] == '/')
		front.length--;
	buf_put(&text, front);
	buf_put(&text, rest);
	int code = glue_template_parse(reading->load->arena, buf_str(&text), &template, &err);
	if (code == 0)
		add_template(reading, template);
	else
		glue_complain(reading->load, code, entry->value->start_mark, "`path`: %s", err.text);
	buf_free(&text);
}

static bool take_front(struct str *text, struct str front)
{
	if (text->length < front.length || memcmp(text->at, front.at, front.length) != 0)
		return false;
	*text = str_make(text->at + front.length, text->length - front.length);
	return true;
}

/* What stands before `{item}` is taken off: `/inherited{item}/roles`. False: it is told what is wrong. */
static bool take_before_item(struct reading *reading, const struct yaml_entry *entry, struct str *text)
{
	struct err err = {0};
	reading->front = NULL;
	const char *item = memmem(text->at, text->length, "{item}", strlen("{item}"));
	if (item == NULL || item == text->at)
		return true;
	struct str before = str_make(text->at, (size_t)(item - text->at));
	struct glue_template *front = arena_new(reading->load->arena, struct glue_template);
	int code = glue_template_parse(reading->load->arena, before, front, &err);
	if (code == 0 && (front->variables_count > 0 || before.at[before.length - 1] == '/'))
		code = err_set(&err, ERR_INVALID,
		               TEXT_NAME_FMT
		               " comes before `{item}`; accepted are literal segments, as in `/inherited{item}/roles`",
		               TEXT_NAME(before));
	if (code != 0) {
		glue_complain(reading->load, code, entry->value->start_mark, "`path`: %s", err.text);
		return false;
	}
	*text = str_make(item, (size_t)(text->at + text->length - item));
	reading->front = front;
	return true;
}

static void read_path(struct reading *reading, const struct yaml_entry *entry)
{
	struct glue_load *load = reading->load;
	const struct glue_type *type = reading->type;
	struct str text;
	struct glue_template template;
	if (!glue_text(load, entry, "a path, such as \"{item}/action\"", &text) || !take_before_item(reading, entry, &text))
		return;
	bool on_item = take_front(&text, STR("{item}"));
	bool on_collection = !on_item && take_front(&text, STR("{collection}"));
	if (!on_item && !on_collection) {
		if (glue_read_template(load, entry, &template))
			add_template(reading, template);
		return;
	}
	const struct glue_template *bases = on_item ? type->items : type->collections;
	uint32_t count = on_item ? type->items_count : type->collections_count;
	if (text.length > 0 && text.at[0] != '/') {
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`path`: after `{%s}` comes a `/`, as in `{%s}/action`", on_item ? "item" : "collection",
		              on_item ? "item" : "collection");
		return;
	}
	if (count == 0)
		glue_complain(load, ERR_INVALID, entry->value->start_mark, "`path` has `{%s}`, but the type has no `%s`",
		              on_item ? "item" : "collection", on_item ? "item" : "collection");
	for (uint32_t i = 0; i < count; i++)
		add_below(reading, entry, &bases[i], text);
}

static void read_paths(struct reading *reading)
{
	const struct yaml_entry *entry = &reading->found[PATH];
	const struct glue_type *type = reading->type;
	const struct usual *usual = reading->usual;
	if (entry->value != NULL) {
		size_t count = glue_list_count(entry->value);
		if (count == 0 || count > LIMIT_GLUE_VALUES)
			glue_complain(reading->load, count == 0 ? ERR_INVALID : ERR_LIMIT, entry->value->start_mark,
			              "`path` has %zu templates; accepted are 1 to %d", count, LIMIT_GLUE_VALUES);
		for (size_t i = 0; i < count && count <= LIMIT_GLUE_VALUES; i++) {
			struct yaml_entry item = glue_list_item(reading->load, entry, i);
			read_path(reading, &item);
		}
	} else if (usual == NULL) {
		glue_complain(reading->load, ERR_INVALID, reading->mark,
		              "there is no `path`; what is no usual operation needs one, as in `%s`", operation_example);
	} else if (usual->on_item) {
		add_templates(reading, type->items, type->items_count);
	} else {
		add_templates(reading, type->collections, type->collections_count);
		if (usual->on_lists)
			add_templates(reading, type->lists, type->lists_count);
	}
}

/* ---- Methods and what else it asks for --------------------------------------------------------------------------- */

static bool read_method(struct glue_load *load, const struct yaml_entry *entry, struct str *name)
{
	static const char *const words[] = {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", NULL};
	int word;
	if (!glue_word(load, entry, words, "method", &word))
		return false;
	*name = str_of(words[word]);
	return true;
}

static void read_methods(struct reading *reading)
{
	if (reading->found[METHOD].value == NULL) {
		if (reading->usual == NULL)
			glue_complain(reading->load, ERR_INVALID, reading->mark,
			              "there is no `method`; what is no usual operation needs one, as in `%s`", operation_example);
		reading->operation->methods = reading->usual != NULL ? reading->usual->methods : 0;
		return;
	}
	if (glue_list_count(reading->found[METHOD].value) == 0)
		glue_complain(reading->load, ERR_INVALID, reading->found[METHOD].value->start_mark,
		              "`method` is an empty list; it has to be one, such as POST, or several");
	struct glue_texts names = glue_list(reading->load, &reading->found[METHOD], LIMIT_GLUE_VALUES, read_method);
	for (uint32_t i = 0; i < names.count; i++)
		reading->operation->methods |= 1u << glue_method_find(names.at[i]);
}

static bool read_content(struct glue_load *load, const struct yaml_entry *entry, struct str *content)
{
	if (!glue_name(load, entry, "a media type, such as `application/json`", content))
		return false;
	const char *slash = memchr(content->at, '/', content->length);
	size_t length = slash != NULL ? (size_t)(slash - content->at) : 0;
	if (glue_is_token(str_make(content->at, length)) &&
	    glue_is_token(str_make(content->at + length + 1, content->length - length - 1)))
		return true;
	glue_complain(load, ERR_INVALID, entry->value->start_mark,
	              "`content` has " TEXT_NAME_FMT
	              ", which is no media type without parameters, such as `application/json`",
	              TEXT_NAME(*content));
	return false;
}

static bool read_query_value(struct glue_load *load, const struct yaml_entry *entry, struct str *value)
{
	return glue_name(load, entry, "a value, such as \"true\", or \"*\" for any", value);
}

static void read_query(struct reading *reading)
{
	struct glue_load *load = reading->load;
	const struct yaml_entry *entry = &reading->found[QUERY];
	struct glue_operation *operation = reading->operation;
	if (entry->value == NULL || !glue_mapping(load, entry, "query: {watch: \"true\"}", LIMIT_GLUE_VALUES))
		return;
	size_t count = yaml_entries_count(entry->value);
	operation->conditions = arena_array(load->arena, struct glue_condition, count);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry member = yaml_entry_at(&load->yaml, entry->value, i);
		struct glue_condition *condition = &operation->conditions[operation->conditions_count];
		if (!glue_key_name(load, &member, "a member of the query", &condition->name))
			continue;
		condition->values = glue_list(load, &member, LIMIT_GLUE_VALUES, read_query_value);
		if (condition->values.count == 1 && str_equal(condition->values.at[0], STR("*")))
			condition->values.count = 0;
		operation->conditions_count++;
	}
}

/* ---- Effects ----------------------------------------------------------------------------------------------------- */

/* What the path is: an item, below one, a collection, or something else. */
enum target { TARGET_ITEM, TARGET_BELOW_ITEM, TARGET_COLLECTION, TARGET_OTHER };

static enum target target_of(const struct glue_type *type, const struct glue_template *template)
{
	if (template->id_variable >= 0)
		return glue_template_depth(template) == template->variables[template->id_variable].segment + 1
		           ? TARGET_ITEM
		           : TARGET_BELOW_ITEM;
	for (uint32_t i = 0; i < type->collections_count; i++) {
		if (glue_template_depth(&type->collections[i]) == glue_template_depth(template) &&
		    glue_template_begins(template, &type->collections[i]))
			return TARGET_COLLECTION;
	}
	return TARGET_OTHER;
}

static bool only_json_patch(const struct glue_operation *operation)
{
	return operation->contents.count == 1 && str_equal_nocase(operation->contents.at[0], str_of(json_patch_type));
}

static enum glue_effect effect_of(const struct glue_operation *operation, enum glue_method method, enum target target)
{
	switch (method) {
	case GLUE_POST: return target == TARGET_COLLECTION ? GLUE_CREATE : GLUE_RELATIVE;
	case GLUE_PUT: return GLUE_REPLACE;
	case GLUE_PATCH: return only_json_patch(operation) ? GLUE_RELATIVE : GLUE_ASSIGN;
	case GLUE_DELETE_METHOD: return target == TARGET_ITEM ? GLUE_DELETE : GLUE_RELATIVE;
	case GLUE_OPTIONS: return GLUE_PASS;
	default: return target == TARGET_COLLECTION || target == TARGET_OTHER ? GLUE_LIST : GLUE_READ;
	}
}

static bool changes_item(enum glue_effect effect)
{
	return effect == GLUE_REPLACE || effect == GLUE_ASSIGN || effect == GLUE_RELATIVE || effect == GLUE_DELETE;
}

static void read_effect(struct reading *reading)
{
	static const char *const words[] = {
		[GLUE_READ] = "read",       [GLUE_LIST] = "list",     [GLUE_CREATE] = "create",
		[GLUE_REPLACE] = "replace", [GLUE_ASSIGN] = "assign", [GLUE_RELATIVE] = "relative",
		[GLUE_DELETE] = "delete",   [GLUE_PASS] = "pass",     NULL};
	struct glue_operation *operation = reading->operation;
	int word = -1;
	if (reading->found[EFFECT].value != NULL) {
		glue_word(reading->load, &reading->found[EFFECT], words, "effect", &word);
		operation->effect = word >= 0 ? (enum glue_effect)word : GLUE_PASS;
		return;
	}
	bool first = true, same = true;
	for (uint32_t i = 0; i < operation->templates_count; i++) {
		enum target target = target_of(reading->type, &operation->templates[i]);
		for (int method = 0; method < GLUE_METHODS; method++) {
			if ((operation->methods >> method & 1) == 0)
				continue;
			enum glue_effect effect = effect_of(operation, (enum glue_method)method, target);
			same &= first || effect == operation->effect;
			operation->effect = effect;
			first = false;
		}
	}
	if (!same)
		glue_complain(reading->load, ERR_INVALID, reading->mark,
		              "its methods and paths have several effects by themselves; say which with `effect`");
}

/* ---- The rest ---------------------------------------------------------------------------------------------------- */

static void number_facet(struct reading *reading)
{
	struct glue_type *type = reading->type;
	struct glue_operation *operation = reading->operation;
	for (uint32_t i = 0; i < type->facets_count; i++) {
		if (str_equal(type->facets[i], operation->facet)) {
			operation->facet_number = i;
			return;
		}
	}
	if (type->facets_count == LIMIT_GLUE_FACETS) {
		glue_complain(reading->load, ERR_LIMIT, reading->mark, "more than %d facets, the limit of a type",
		              LIMIT_GLUE_FACETS);
		return;
	}
	operation->facet_number = type->facets_count;
	type->facets[type->facets_count++] = operation->facet;
}

static void read_facet(struct reading *reading)
{
	struct glue_operation *operation = reading->operation;
	const struct yaml_entry *entry = &reading->found[FACET];
	if (entry->value != NULL &&
	    glue_name(reading->load, entry, "the name of a part, such as `file`", &operation->facet) &&
	    (operation->effect == GLUE_CREATE || operation->effect == GLUE_DELETE))
		glue_complain(reading->load, ERR_INVALID, entry->value->start_mark,
		              "there is a `facet`, but the effect is `%s`, which concerns the whole item",
		              glue_effect_name(operation->effect));
	number_facet(reading);
}

static void read_bodies(struct reading *reading)
{
	static const char *const bodies[] = {"json", "opaque", "none", NULL};
	static const enum glue_body of_bodies[] = {GLUE_BODY_ITEM, GLUE_BODY_OPAQUE, GLUE_BODY_NONE};
	static const char *const answers[] = {
		[GLUE_BODY_ITEM] = "item",     [GLUE_BODY_LIST] = "list", [GLUE_BODY_STREAM] = "stream",
		[GLUE_BODY_OPAQUE] = "opaque", [GLUE_BODY_NONE] = "none", NULL};
	struct glue_operation *operation = reading->operation;
	int body = 0, answer = operation->effect == GLUE_LIST ? GLUE_BODY_LIST : GLUE_BODY_ITEM;
	if (reading->found[BODY].value != NULL)
		glue_word(reading->load, &reading->found[BODY], bodies, "kind of body", &body);
	if (reading->found[ANSWER].value != NULL)
		glue_word(reading->load, &reading->found[ANSWER], answers, "kind of answer", &answer);
	operation->body = of_bodies[body];
	operation->answer = (enum glue_body)answer;
	operation->object = reading->type->object;
	if (reading->found[OBJECT].value != NULL)
		glue_pointer(reading->load, &reading->found[OBJECT], &operation->object);
	if (reading->found[REFERENCES].value != NULL)
		glue_read_references(reading->load, &reading->found[REFERENCES], &operation->own);
	if (reading->found[BESIDE].value != NULL)
		glue_read_references(reading->load, &reading->found[BESIDE], &operation->beside);
	if (reading->found[USES].value != NULL)
		glue_read_uses(reading->load, &reading->found[USES], &operation->uses);
	if (reading->found[DIVIDE].value != NULL)
		glue_read_divide(reading->load, &reading->found[DIVIDE], operation);
	if (reading->found[KEY].value == NULL)
		return;
	if (glue_name(reading->load, &reading->found[KEY], "the name of the body's first member, such as `reboot`",
	              &operation->key) &&
	    operation->body != GLUE_BODY_ITEM)
		glue_complain(reading->load, ERR_INVALID, reading->found[KEY].value->start_mark,
		              "there is a `key`, but the body is `%s`; only `json` has members", bodies[body]);
}

static void read_reader(struct reading *reading)
{
	static const char *const readers[] = {"user", "service", NULL};
	struct glue_operation *operation = reading->operation;
	int reader = 0;
	if (reading->found[READER].value == NULL ||
	    !glue_word(reading->load, &reading->found[READER], readers, "reader", &reader))
		return;
	operation->for_service = reader == 1;
	if (operation->for_service && operation->effect != GLUE_READ)
		glue_complain(reading->load, ERR_INVALID, reading->found[READER].value->start_mark,
		              "the `reader` of answers is a service where the effect is `read`; that of this one is `%s`",
		              glue_effect_name(operation->effect));
}

static void read_flags(struct reading *reading)
{
	struct glue_operation *operation = reading->operation;
	operation->repeatable = operation->effect != GLUE_CREATE && operation->effect != GLUE_RELATIVE;
	if (reading->found[CREATES].value != NULL)
		glue_flag(reading->load, &reading->found[CREATES], &operation->creates);
	if (reading->found[REPEATABLE].value != NULL)
		glue_flag(reading->load, &reading->found[REPEATABLE], &operation->repeatable);
	if (reading->found[REPLAYS].value == NULL)
		return;
	glue_flag(reading->load, &reading->found[REPLAYS], &operation->replays);
	if (operation->replays && operation->effect != GLUE_CREATE)
		glue_complain(reading->load, ERR_INVALID, reading->found[REPLAYS].value->start_mark,
		              "`replays` is of operations that create; the effect of this one is `%s`",
		              glue_effect_name(operation->effect));
}

/* Whether an item was made or is gone is asked at its path, which is taken from that of the operation. */
static void check_front(struct reading *reading)
{
	const struct glue_operation *operation = reading->operation;
	if (!operation->creates && operation->effect != GLUE_CREATE && operation->effect != GLUE_DELETE)
		return;
	for (uint32_t i = 0; i < operation->templates_count; i++)
		if (operation->templates[i].prefix_segments > 0)
			glue_complain(reading->load, ERR_INVALID, reading->found[PATH].value->start_mark,
			              "`path`: " TEXT_NAME_FMT
			              " has something before the item, which what makes or ends one cannot",
			              TEXT_NAME(operation->templates[i].text));
}

/* What is allowed, but hardly meant. */
static void doubt(struct reading *reading)
{
	const struct glue_operation *operation = reading->operation;
	for (uint32_t i = 0; i < operation->templates_count; i++) {
		const struct glue_template *template = &operation->templates[i];
		enum target target = target_of(reading->type, template);
		if (changes_item(operation->effect) && template->id_variable < 0)
			glue_warn(reading->load, reading->mark,
			          "the effect is `%s`, but " TEXT_NAME_FMT " is the path of no item: it is passed on as it is",
			          glue_effect_name(operation->effect), TEXT_NAME(template->text));
		if (operation->effect == GLUE_REPLACE && target == TARGET_BELOW_ITEM && operation->facet.length == 0)
			glue_warn(reading->load, reading->mark,
			          "the effect is `replace`, of the whole item, but " TEXT_NAME_FMT
			          " is below it; if that is a part of its own, give it a `facet`",
			          TEXT_NAME(template->text));
	}
	if (operation->creates && reading->type->identity == GLUE_ASSIGNED)
		glue_warn(
			reading->load, reading->mark,
			"it `creates` an item by a path with its id, but ids are `assigned` by the service; is the `identity` "
			"`chosen`?");
}

/* ---- One operation ----------------------------------------------------------------------------------------------- */

static void read_one(struct reading *reading)
{
	struct glue_operation *operation = reading->operation;
	operation->type = reading->type;
	read_paths(reading);
	read_methods(reading);
	if (reading->found[CONTENT].value != NULL) {
		operation->contents = glue_list(reading->load, &reading->found[CONTENT], LIMIT_GLUE_VALUES, read_content);
	} else if (reading->usual != NULL && reading->usual->content != NULL) {
		struct str *content = arena_new(reading->load->arena, struct str);
		*content = str_of(reading->usual->content);
		operation->contents = (struct glue_texts){content, 1};
	}
	read_query(reading);
	read_effect(reading);
	read_facet(reading);
	read_bodies(reading);
	read_reader(reading);
	read_flags(reading);
	check_front(reading);
	if (operation->line > 0)
		doubt(reading);
	glue_make_places(reading->load, reading->type, operation);
	glue_make_relations(reading->load, operation);
}

static struct glue_operation *new_operation(struct glue_type *type, struct str name)
{
	struct glue_operation *operation = &type->operations[type->operations_count++];
	operation->name = name;
	return operation;
}

/* One that the file has an entry for. */
static void read_entry(struct glue_load *load, struct glue_type *type, const struct yaml_entry *entry,
                       const struct usual *usual)
{
	struct str name;
	struct reading reading = {.load = load, .type = type, .usual = usual, .mark = entry->key_node->start_mark};
	if (!glue_key_name(load, entry, "an operation", &name))
		return;
	size_t where = glue_enter(load, entry->key);
	if (glue_keys(load, entry, operation_keys, operation_example, reading.found)) {
		reading.operation = new_operation(type, name);
		reading.operation->line = (uint32_t)reading.mark.line + 1;
		reading.operation->column = (uint32_t)reading.mark.column + 1;
		read_one(&reading);
	}
	glue_leave(load, where);
}

static bool has_paths(const struct glue_type *type, const struct usual *usual)
{
	return usual->on_item ? type->items_count > 0
	                      : type->collections_count > 0 || (usual->on_lists && type->lists_count > 0);
}

static const struct usual *usual_find(struct str name)
{
	for (size_t i = 0; i < USUALS; i++) {
		if (str_equal(str_of(usuals[i].name), name))
			return &usuals[i];
	}
	return NULL;
}

/* `patch: ~` means that there is no PATCH, of whatever content. */
static bool is_told(struct glue_load *load, const yaml_node_t *node, const struct usual *usual)
{
	for (size_t i = 0; node != NULL && i < yaml_entries_count(node); i++) {
		struct yaml_entry entry = yaml_entry_at(&load->yaml, node, i);
		if (str_equal(entry.key, str_of(usual->name)))
			return true;
		if (usual == &usuals[JSON_PATCH] && str_equal(entry.key, STR("patch")) && yaml_is_null(entry.value))
			return true;
	}
	return false;
}

void glue_read_operations(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	const yaml_node_t *node = entry->value;
	if (node != NULL && !glue_mapping(load, entry, operation_example, LIMIT_GLUE_OPERATIONS - USUALS))
		node = NULL;
	size_t count = node != NULL ? yaml_entries_count(node) : 0;
	type->operations = arena_array(load->arena, struct glue_operation, count + USUALS);
	type->facets = arena_array(load->arena, struct str, LIMIT_GLUE_FACETS);
	type->facets[type->facets_count++] = STR("");
	size_t where = glue_enter(load, STR("operations"));
	for (size_t i = 0; i < USUALS; i++) {
		if (is_told(load, node, &usuals[i]) || !has_paths(type, &usuals[i]))
			continue;
		struct reading reading = {.load = load, .type = type, .usual = &usuals[i]};
		reading.operation = new_operation(type, str_of(usuals[i].name));
		read_one(&reading);
	}
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry one = yaml_entry_at(&load->yaml, node, i);
		const struct usual *usual = usual_find(one.key);
		if (!yaml_is_null(one.value))
			read_entry(load, type, &one, usual);
		else if (usual == NULL)
			glue_complain(load, ERR_INVALID, one.key_node->start_mark,
			              TEXT_NAME_FMT
			              " is empty, which takes a usual operation away, such as `replace`; what it is has "
			              "to be said, as in `%s`",
			              TEXT_NAME(one.key), operation_example);
	}
	glue_leave(load, where);
}

/* ---- Resolutions ------------------------------------------------------------------------------------------------- */

static bool is_known(const struct glue_type *type, struct str word, struct suggest *suggest)
{
	bool known = false;
	for (int i = 0; i < GLUE_EFFECTS; i++) {
		known |= str_equal(word, str_of(glue_effect_name((enum glue_effect)i)));
		suggest_offer(suggest, str_of(glue_effect_name((enum glue_effect)i)));
	}
	for (uint32_t i = 0; i < type->operations_count; i++) {
		known |= str_equal(word, type->operations[i].name);
		suggest_offer(suggest, type->operations[i].name);
	}
	return known;
}

static bool read_side(struct glue_load *load, const struct yaml_entry *entry, const struct glue_type *type,
                      struct str *side)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	if (!glue_name(load, entry, "the name of an operation or of an effect", side))
		return false;
	suggest_start(&suggest, *side);
	if (is_known(type, *side, &suggest))
		return true;
	glue_complain(load, ERR_NOT_FOUND, entry->value->start_mark,
	              TEXT_NAME_FMT " is neither an operation of the type nor an effect%s", TEXT_NAME(*side),
	              text_did_you_mean(&suggest, meant));
	return false;
}

static void read_rule(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	enum { BETWEEN, AS, KEYS };
	static const char *const keys[] = {[BETWEEN] = "between", [AS] = "as", NULL};
	static const char *const words[] = {[GLUE_TAKE_ONE] = "take-one",
	                                    [GLUE_ANY_ORDER] = "any-order",
	                                    [GLUE_KEEP_ORDER] = "keep-order",
	                                    [GLUE_REVERSE_ORDER] = "reverse-order",
	                                    NULL};
	struct yaml_entry found[KEYS] = {0};
	struct glue_rule rule;
	int word;
	if (!glue_keys(load, entry, keys, "{between: [increment, increment], as: any-order}", found))
		return;
	if (found[BETWEEN].value == NULL || found[AS].value == NULL || found[BETWEEN].value->type != YAML_SEQUENCE_NODE ||
	    yaml_items_count(found[BETWEEN].value) != 2) {
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "a resolution has two operations, `between`, and what becomes of them, `as`: "
		              "{between: [increment, increment], as: any-order}");
		return;
	}
	struct yaml_entry x = glue_list_item(load, &found[BETWEEN], 0), y = glue_list_item(load, &found[BETWEEN], 1);
	bool fine = read_side(load, &x, type, &rule.x);
	fine &= read_side(load, &y, type, &rule.y);
	if (!glue_word(load, &found[AS], words, "resolution", &word) || !fine)
		return;
	rule.resolution = (enum glue_resolution)word;
	type->rules[type->rules_count++] = rule;
}

void glue_read_resolutions(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	size_t count = yaml_items_count(entry->value);
	if ((entry->value->type != YAML_SEQUENCE_NODE && !yaml_is_null(entry->value)) || count > LIMIT_GLUE_RULES) {
		glue_complain(load, count > LIMIT_GLUE_RULES ? ERR_LIMIT : ERR_INVALID, entry->value->start_mark,
		              "`resolutions` is %s of %zu; it has to be a list of at most %d, such as "
		              "[{between: [increment, increment], as: any-order}]",
		              yaml_kind(entry->value), count, LIMIT_GLUE_RULES);
		return;
	}
	type->rules = arena_array(load->arena, struct glue_rule, count);
	size_t where = glue_enter(load, entry->key);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry one = *entry;
		one.value = yaml_item_at(&load->yaml, entry->value, i);
		read_rule(load, &one, type);
	}
	glue_leave(load, where);
}
