/* types: first the names of all of them, since references may point forward; then what is said of each. */
#include "glue/load.h"

#include "base/text.h"

enum {
	COLLECTION,
	ITEM,
	LISTS,
	IGNORE,
	IDENTITY,
	IDS,
	OBJECT,
	LIST,
	PAGING,
	SORT,
	ID,
	NAME,
	UNIQUE,
	FIND,
	LINKS,
	VOLATILE,
	SETS,
	DERIVED,
	PRECONDITIONS,
	REFERENCES,
	OWNER,
	RELIED,
	ALIKE,
	CROSS,
	DELETE,
	OPERATIONS,
	FACETS,
	RESOLUTIONS,
	TYPE_KEYS
};

static const char *const type_keys[] = {[COLLECTION] = "collection",
                                        [ITEM] = "item",
                                        [LISTS] = "lists",
                                        [IGNORE] = "ignore",
                                        [IDENTITY] = "identity",
                                        [IDS] = "ids",
                                        [OBJECT] = "object",
                                        [LIST] = "list",
                                        [PAGING] = "paging",
                                        [SORT] = "sort",
                                        [ID] = "id",
                                        [NAME] = "name",
                                        [UNIQUE] = "unique",
                                        [FIND] = "find",
                                        [LINKS] = "links",
                                        [VOLATILE] = "volatile",
                                        [SETS] = "sets",
                                        [DERIVED] = "derived",
                                        [PRECONDITIONS] = "preconditions",
                                        [REFERENCES] = "references",
                                        [OWNER] = "owner",
                                        [RELIED] = "relied",
                                        [ALIKE] = "alike",
                                        [CROSS] = "cross",
                                        [DELETE] = "delete",
                                        [OPERATIONS] = "operations",
                                        [FACETS] = "facets",
                                        [RESOLUTIONS] = "resolutions",
                                        NULL};

static const char types_example[] = "types: {image.image: {collection: /images, item: \"/images/{id}\"}}";
static const char type_example[] = "image.image: {collection: /images, item: \"/images/{id}\"}";

/* ---- Templates --------------------------------------------------------------------------------------------------- */

bool glue_read_template(struct glue_load *load, const struct yaml_entry *entry, struct glue_template *template)
{
	struct str text;
	struct err err = {0};
	if (!glue_text(load, entry, "a path, such as \"/images/{id}\"", &text))
		return false;
	int code = glue_template_parse(load->arena, text, template, &err);
	if (code != 0)
		glue_complain(load, code, entry->value->start_mark, TEXT_NAME_FMT ": %s", TEXT_NAME(entry->key), err.text);
	return code == 0;
}

/* All variables of the type's name are in the template: otherwise a request could not be told what type it is of. */
static void check_name_variables(struct glue_load *load, const struct yaml_entry *entry, const struct glue_type *type,
                                 const struct glue_template *template)
{
	struct str rest = type->short_name;
	const char *open;
	while (rest.length > 0 && (open = memchr(rest.at, '{', rest.length)) != NULL) {
		const char *end = rest.at + rest.length;
		const char *close = memchr(open, '}', (size_t)(end - open));
		if (close == NULL)
			return; /* told when the name was read */
		struct str name = str_make(open + 1, (size_t)(close - open - 1));
		rest = str_make(close + 1, (size_t)(end - close - 1));
		if (glue_template_variable(template, name) < 0)
			glue_complain(load, ERR_INVALID, entry->value->start_mark,
			              TEXT_NAME_FMT " has no `{%.*s}`, which is in the name of the type, " TEXT_NAME_FMT,
			              TEXT_NAME(template->text), STR_FMT(text_shown(name)), TEXT_NAME(type->name));
	}
}

static struct glue_template *read_templates(struct glue_load *load, const struct yaml_entry *entry,
                                            const struct glue_type *type, uint32_t *count)
{
	size_t most = glue_list_count(entry->value);
	if (most == 0 || most > LIMIT_GLUE_VALUES) {
		glue_complain(load, most == 0 ? ERR_INVALID : ERR_LIMIT, entry->value->start_mark,
		              TEXT_NAME_FMT " has %zu templates; accepted are 1 to %d", TEXT_NAME(entry->key), most,
		              LIMIT_GLUE_VALUES);
		return NULL;
	}
	struct glue_template *templates = arena_array(load->arena, struct glue_template, most);
	for (size_t i = 0; i < most; i++) {
		struct yaml_entry item = glue_list_item(load, entry, i);
		if (!glue_read_template(load, &item, &templates[*count]))
			continue;
		check_name_variables(load, &item, type, &templates[*count]);
		(*count)++;
	}
	return templates;
}

/* The last variable is the id, and what comes before it the collection. */
static void finish_items(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	for (uint32_t i = 0; i < type->items_count; i++) {
		struct glue_template *item = &type->items[i];
		if (item->variables_count == 0 || item->takes_rest) {
			glue_complain(load, ERR_INVALID, entry->value->start_mark,
			              TEXT_NAME_FMT " has no variable of one segment for the id, as `/images/{id}` has",
			              TEXT_NAME(item->text));
			continue;
		}
		item->id_variable = (int32_t)item->variables_count - 1;
		item->variables[item->id_variable].kind = GLUE_VARIABLE_ID;
		item->variables[item->id_variable].type = type;
		item->collection_segments = item->variables[item->id_variable].segment;
		bool below = type->collections_count == 0;
		for (uint32_t j = 0; j < type->collections_count; j++)
			below |= glue_template_begins(item, &type->collections[j]) &&
			         glue_template_depth(&type->collections[j]) == item->collection_segments;
		if (!below)
			glue_warn(load, entry->value->start_mark,
			          "the item " TEXT_NAME_FMT " is in no `collection` of the type: names that are unique within a "
			          "collection cannot be compared",
			          TEXT_NAME(item->text));
	}
}

/* ---- Variables that are spoken of -------------------------------------------------------------------------------- */

static bool in_templates(const struct glue_template *templates, uint32_t count, struct str name,
                         struct suggest *suggest)
{
	bool found = false;
	for (uint32_t i = 0; i < count; i++) {
		found |= glue_template_variable(&templates[i], name) >= 0;
		for (uint32_t j = 0; j < templates[i].variables_count; j++)
			suggest_offer(suggest, templates[i].variables[j].name);
	}
	return found;
}

/* Those of operations count as well: {item}/members/{member}. */
static bool has_variable(const struct glue_type *type, struct str name, struct suggest *suggest)
{
	bool found = in_templates(type->collections, type->collections_count, name, suggest);
	found |= in_templates(type->items, type->items_count, name, suggest);
	found |= in_templates(type->lists, type->lists_count, name, suggest);
	for (uint32_t i = 0; i < type->operations_count; i++)
		found |= in_templates(type->operations[i].templates, type->operations[i].templates_count, name, suggest);
	return found;
}

static void check_variable(struct glue_load *load, yaml_mark_t mark, const struct glue_type *type, struct str name)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	suggest_start(&suggest, name);
	if (!has_variable(type, name, &suggest))
		glue_complain(load, ERR_NOT_FOUND, mark, "no template of the type has the variable " TEXT_NAME_FMT "%s",
		              TEXT_NAME(name), text_did_you_mean(&suggest, meant));
}

static bool read_variable(struct glue_load *load, const struct yaml_entry *entry, struct str *name)
{
	return glue_name(load, entry, "the name of a variable, such as `version`", name);
}

static void check_variables(struct glue_load *load, const struct yaml_entry found[TYPE_KEYS],
                            const struct glue_type *type)
{
	for (uint32_t i = 0; i < type->ignored.count; i++)
		check_variable(load, found[IGNORE].value->start_mark, type, type->ignored.at[i]);
	for (uint32_t i = 0; i < type->in_path.count; i++) {
		struct str name = type->in_path.at[i].place;
		check_variable(load, found[REFERENCES].value->start_mark, type, name);
		for (uint32_t j = 0; j < type->items_count; j++) {
			const struct glue_template *item = &type->items[j];
			if (item->id_variable >= 0 && str_equal(item->variables[item->id_variable].name, name))
				glue_complain(load, ERR_CONFLICT, found[REFERENCES].value->start_mark,
				              TEXT_NAME_FMT " is the id of the item itself in " TEXT_NAME_FMT
				                            "; it refers to nothing else",
				              TEXT_NAME(name), TEXT_NAME(item->text));
		}
	}
}

/* ---- The object -------------------------------------------------------------------------------------------------- */

/* "name={name}" */
static void read_find(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	static const char accepted[] = "{name}";
	if (!glue_text(load, entry, "a query, such as \"name={name}\"", &type->find))
		return;
	if (memmem(type->find.at, type->find.length, accepted, sizeof(accepted) - 1) == NULL)
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`find` is " TEXT_NAME_FMT ", which has no `{name}`; a query looks like \"name={name}\"",
		              TEXT_NAME(type->find));
	else if (type->natural_name.length == 0)
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "there is a `find`, but no `name`: where the name of an object stands, such as `name: /name`");
}

static void read_object(struct glue_load *load, const struct yaml_entry found[TYPE_KEYS], struct glue_type *type)
{
	static const char *const identities[] = {
		[GLUE_ASSIGNED] = "assigned", [GLUE_CHOSEN] = "chosen", [GLUE_SUGGESTED] = "suggested", NULL};
	static const char *const reaches[] = {"everywhere", "collection", NULL};
	static const char *const deletes[] = {"loses", "wins", NULL};
	int identity = GLUE_ASSIGNED, delete = 1;
	if (found[IDENTITY].value != NULL)
		glue_word(load, &found[IDENTITY], identities, "identity", &identity);
	/* Who chooses a name looks at the collection; who makes an id makes it for good. */
	int reach = identity == GLUE_CHOSEN;
	if (found[IDS].value != NULL)
		glue_word(load, &found[IDS], reaches, "reach of ids", &reach);
	if (found[DELETE].value != NULL)
		glue_word(load, &found[DELETE], deletes, "outcome", &delete);
	type->identity = (enum glue_identity)identity;
	type->ids_in_collection = reach == 1;
	type->delete_wins = delete == 1;
	if (found[OBJECT].value != NULL)
		glue_pointer(load, &found[OBJECT], &type->object);
	if (found[LIST].value != NULL)
		glue_pointer(load, &found[LIST], &type->list);
	if (found[PAGING].value != NULL)
		glue_read_paging(load, &found[PAGING], type);
	if (found[SORT].value != NULL)
		glue_read_sort(load, &found[SORT], type);
	if (found[ID].value != NULL)
		type->ids = glue_list(load, &found[ID], LIMIT_GLUE_VALUES, glue_pointer);
	if (found[NAME].value != NULL)
		glue_pointer(load, &found[NAME], &type->natural_name);
	if (found[UNIQUE].value != NULL)
		glue_flag(load, &found[UNIQUE], &type->unique);
	if (type->unique && found[NAME].value == NULL)
		glue_complain(load, ERR_INVALID, found[UNIQUE].key_node->start_mark,
		              "names are `unique`, but there is no `name`: where one stands, such as `name: /name`");
	if (found[FIND].value != NULL)
		read_find(load, &found[FIND], type);
	if (found[LINKS].value != NULL)
		type->links = glue_list(load, &found[LINKS], LIMIT_GLUE_POINTERS, glue_pointer);
	if (found[VOLATILE].value != NULL)
		type->volatiles = glue_list(load, &found[VOLATILE], LIMIT_GLUE_POINTERS, glue_pointer);
	if (found[SETS].value != NULL)
		type->sets = glue_list(load, &found[SETS], LIMIT_GLUE_POINTERS, glue_pointer);
	if (found[DERIVED].value != NULL)
		type->derived = glue_list(load, &found[DERIVED], LIMIT_GLUE_POINTERS, glue_pointer);
	if (found[PRECONDITIONS].value != NULL)
		type->preconditions = glue_list(load, &found[PRECONDITIONS], LIMIT_GLUE_POINTERS, glue_pointer);
	if (found[REFERENCES].value != NULL)
		glue_read_relations(load, &found[REFERENCES], type);
	if (found[OWNER].value != NULL)
		glue_read_owner(load, &found[OWNER], type);
	if (found[ALIKE].value != NULL)
		glue_flag(load, &found[ALIKE], &type->alike);
	if (found[RELIED].value != NULL)
		glue_read_relied(load, &found[RELIED], type);
	if (found[CROSS].value != NULL)
		glue_read_cross(load, &found[CROSS], type);
	uint32_t pointers = type->ids.count + type->links.count + type->volatiles.count + type->sets.count +
	                    type->derived.count + type->preconditions.count + type->in_body.count;
	if (pointers > LIMIT_GLUE_POINTERS)
		glue_complain(load, ERR_LIMIT,
		              found[LINKS].value != NULL ? found[LINKS].key_node->start_mark : (yaml_mark_t){0},
		              "the type has %u pointers; the limit is %d", pointers, LIMIT_GLUE_POINTERS);
}

/* ---- A type ------------------------------------------------------------------------------------------------------ */

static void read_paths(struct glue_load *load, const struct yaml_entry found[TYPE_KEYS], struct glue_type *type)
{
	if (found[COLLECTION].value != NULL)
		type->collections = read_templates(load, &found[COLLECTION], type, &type->collections_count);
	if (found[ITEM].value != NULL)
		type->items = read_templates(load, &found[ITEM], type, &type->items_count);
	if (found[LISTS].value != NULL)
		type->lists = read_templates(load, &found[LISTS], type, &type->lists_count);
	if (found[ITEM].value != NULL)
		finish_items(load, &found[ITEM], type);
	if (found[IGNORE].value != NULL)
		type->ignored = glue_list(load, &found[IGNORE], LIMIT_GLUE_VARIABLES, read_variable);
}

static void read_type(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	struct yaml_entry found[TYPE_KEYS] = {0};
	type->ids = (struct glue_texts){arena_new(load->arena, struct str), 1};
	type->ids.at[0] = STR("/id");
	type->delete_wins = true;
	if (!glue_keys(load, entry, type_keys, type_example, found))
		return;
	read_paths(load, found, type);
	read_object(load, found, type);
	if (found[COLLECTION].value == NULL && found[ITEM].value == NULL && found[LISTS].value == NULL &&
	    found[OPERATIONS].value == NULL)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              TEXT_NAME_FMT " has no path at all; a type has a `collection`, an `item`, or both",
		              TEXT_NAME(type->name));
	glue_read_operations(load, &found[OPERATIONS], type);
	check_variables(load, found, type);
	if (found[FACETS].value != NULL)
		glue_read_facets(load, &found[FACETS], type);
	if (found[RESOLUTIONS].value != NULL)
		glue_read_resolutions(load, &found[RESOLUTIONS], type);
}

/* ---- Names ------------------------------------------------------------------------------------------------------- */

static bool check_braces(struct glue_load *load, const struct yaml_entry *entry, struct str rest)
{
	while (rest.length > 0) {
		size_t plain = 0;
		while (plain < rest.length && rest.at[plain] != '{' && rest.at[plain] != '}')
			plain++;
		if (plain == rest.length)
			return true;
		const char *close = memchr(rest.at + plain, '}', rest.length - plain);
		size_t length = close != NULL ? (size_t)(close - rest.at) - plain : 0;
		if (rest.at[plain] != '{' || close == NULL ||
		    !glue_is_variable_name(str_make(rest.at + plain + 1, length - 1))) {
			glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
			              "the name of the type " TEXT_NAME_FMT " has braces that hold no variable, such as `{plural}`",
			              TEXT_NAME(entry->key));
			return false;
		}
		rest = str_make(close + 1, rest.length - plain - length - 1);
	}
	return true;
}

/* Without one it is read on, for what else there is to say. */
static void find_service(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	if (str_equal(type->service_name, STR("*")))
		return;
	suggest_start(&suggest, type->service_name);
	for (uint32_t i = 0; i < load->glue->services_count; i++) {
		struct glue_service *service = &load->glue->services[i];
		suggest_offer(&suggest, service->about.name);
		if (str_equal(service->about.name, type->service_name))
			type->service = service;
	}
	if (type->service == NULL)
		glue_complain(load, ERR_NOT_FOUND, entry->key_node->start_mark,
		              "the type " TEXT_NAME_FMT " is of the service " TEXT_NAME_FMT ", which is not in `services`%s",
		              TEXT_NAME(entry->key), TEXT_NAME(type->service_name), text_did_you_mean(&suggest, meant));
}

/* SERVICE.NAME */
static bool read_name(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	if (!glue_key_name(load, entry, "a type", &type->name))
		return false;
	type->line = (uint32_t)entry->key_node->start_mark.line + 1;
	type->column = (uint32_t)entry->key_node->start_mark.column + 1;
	const char *dot = memchr(type->name.at, '.', type->name.length);
	size_t length = dot != NULL ? (size_t)(dot - type->name.at) : 0;
	if (length == 0 || length + 1 == type->name.length) {
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              TEXT_NAME_FMT " is no name of a type; one is SERVICE.NAME, as in `image.image`, or `*.NAME`",
		              TEXT_NAME(entry->key));
		return false;
	}
	type->service_name = str_make(type->name.at, length);
	type->short_name = str_make(dot + 1, type->name.length - length - 1);
	find_service(load, entry, type);
	return check_braces(load, entry, type->short_name);
}

void glue_read_types(struct glue_load *load, const struct yaml_entry *entry)
{
	struct glue *glue = load->glue;
	if (!glue_mapping(load, entry, types_example, LIMIT_GLUE_TYPES))
		return;
	size_t count = yaml_entries_count(entry->value);
	if (count == 0)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "`types` is empty; a description has at least one, such as `%s`", type_example);
	glue->types = arena_array(load->arena, struct glue_type, count);
	uint32_t *entries = arena_array(&load->scratch, uint32_t, count);
	size_t where = glue_enter(load, entry->key);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry type = yaml_entry_at(&load->yaml, entry->value, i);
		size_t inner = glue_enter(load, type.key);
		entries[glue->types_count] = (uint32_t)i;
		if (read_name(load, &type, &glue->types[glue->types_count]))
			glue->types_count++;
		else
			glue->types[glue->types_count] = (struct glue_type){0};
		glue_leave(load, inner);
	}
	for (uint32_t i = 0; i < glue->types_count; i++) {
		struct yaml_entry type = yaml_entry_at(&load->yaml, entry->value, entries[i]);
		size_t inner = glue_enter(load, type.key);
		read_type(load, &type, &glue->types[i]);
		glue_leave(load, inner);
	}
	glue_check_relations(load);
	glue_leave(load, where);
}
