/* references, owner and relied of a type: what it refers to and uses, how it relates to that, and whose it is. */
#include "glue/load.h"

#include "base/text.h"

/* ---- One reference ----------------------------------------------------------------------------------------------- */

static const char reference_example[] = "{type: image.image, kind: requirement}";

static bool find_type(struct glue_load *load, const struct yaml_entry *entry, const char *what,
                      const struct glue_type **type)
{
	struct suggest suggest;
	char meant[TEXT_SUGGESTION_BYTES];
	struct str name = yaml_text(entry->value);
	suggest_start(&suggest, name);
	for (uint32_t i = 0; i < load->glue->types_count; i++) {
		suggest_offer(&suggest, load->glue->types[i].name);
		if (str_equal(load->glue->types[i].name, name)) {
			*type = &load->glue->types[i];
			return true;
		}
	}
	glue_complain(load, ERR_NOT_FOUND, entry->value->start_mark,
	              "%s " TEXT_NAME_FMT ", which is no type of this file%s", what, TEXT_NAME(name),
	              text_did_you_mean(&suggest, meant));
	return false;
}

/* `*`: of any type. */
static bool read_target(struct glue_load *load, const struct yaml_entry *entry, struct glue_reference *reference)
{
	if (yaml_check_value(&load->yaml, entry, "the name of a type, such as image.image, or \"*\" for any") != 0)
		return false;
	if (str_equal(yaml_text(entry->value), STR("*")))
		return true;
	return find_type(load, entry, "a reference to", &reference->type);
}

/* {type: image.image, kind: requirement} */
static bool read_long(struct glue_load *load, const struct yaml_entry *entry, struct glue_reference *reference)
{
	enum { TYPE, KIND, KEYS };
	static const char *const keys[] = {[TYPE] = "type", [KIND] = "kind", NULL};
	static const char *const kinds[] = {"requirement", "reliance", "composition", "container", NULL};
	struct yaml_entry found[KEYS] = {0};
	int word = 0;
	if (!glue_keys(load, entry, keys, reference_example, found))
		return false;
	if (found[TYPE].value == NULL) {
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              TEXT_NAME_FMT " has no `type`: what it refers to, as in `%s`", TEXT_NAME(entry->key),
		              reference_example);
		return false;
	}
	bool fine = read_target(load, &found[TYPE], reference);
	if (found[KIND].value == NULL)
		return fine;
	fine &= glue_word(load, &found[KIND], kinds, "kind of relation", &word);
	reference->kind = (enum glue_kind)(GLUE_REQUIREMENT + word);
	return fine;
}

static bool read_reference(struct glue_load *load, const struct yaml_entry *entry, struct glue_reference *reference)
{
	*reference = (struct glue_reference){
		.line = (uint32_t)entry->value->start_mark.line + 1,
		.column = (uint32_t)entry->value->start_mark.column + 1,
	};
	bool fine = entry->value->type == YAML_MAPPING_NODE ? read_long(load, entry, reference)
	                                                    : read_target(load, entry, reference);
	if (fine)
		reference->place = glue_copy(load, entry->key);
	return fine;
}

/* ---- References of a type ---------------------------------------------------------------------------------------- */

static bool check_pointer_key(struct glue_load *load, const struct yaml_entry *entry)
{
	return glue_check_pointer(load, entry->key_node->start_mark, entry->key);
}

static bool check_name_key(struct glue_load *load, const struct yaml_entry *entry)
{
	struct str name;
	return glue_key_name(load, entry, "a member of the query", &name);
}

static bool check_variable_key(struct glue_load *load, const struct yaml_entry *entry)
{
	if (glue_is_variable_name(entry->key))
		return true;
	glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
	              TEXT_NAME_FMT " is no name of a variable; write it without braces", TEXT_NAME(entry->key));
	return false;
}

static bool read_by_key(struct glue_load *load, const struct yaml_entry *entry, const char *example,
                        bool (*check)(struct glue_load *, const struct yaml_entry *),
                        struct glue_references *references)
{
	if (!glue_mapping(load, entry, example, LIMIT_GLUE_POINTERS))
		return false;
	size_t count = yaml_entries_count(entry->value);
	references->at = arena_array(load->arena, struct glue_reference, count);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry one = yaml_entry_at(&load->yaml, entry->value, i);
		if (check(load, &one) && read_reference(load, &one, &references->at[references->count]))
			references->count++;
	}
	return true;
}

bool glue_read_references(struct glue_load *load, const struct yaml_entry *entry, struct glue_references *references)
{
	return read_by_key(load, entry, "references: {/image: image.image}", check_pointer_key, references);
}

void glue_read_uses(struct glue_load *load, const struct yaml_entry *entry, struct glue_uses *uses)
{
	size_t count = glue_list_count(entry->value);
	if (count > LIMIT_GLUE_VALUES) {
		glue_complain(load, ERR_LIMIT, entry->value->start_mark, TEXT_NAME_FMT " has %zu values; the limit is %d",
		              TEXT_NAME(entry->key), count, LIMIT_GLUE_VALUES);
		return;
	}
	uses->at = arena_array(load->arena, const struct glue_type *, count);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry one = glue_list_item(load, entry, i);
		const struct glue_type *type;
		bool twice = false;
		if (yaml_check_value(&load->yaml, &one, "the name of a type, such as network.port") != 0 ||
		    !find_type(load, &one, "`uses` has", &type))
			continue;
		for (uint32_t j = 0; j < uses->count; j++)
			twice |= uses->at[j] == type;
		if (twice)
			glue_complain(load, ERR_CONFLICT, one.value->start_mark,
			              "`uses` has " TEXT_NAME_FMT " twice; once is enough", TEXT_NAME(type->name));
		else
			uses->at[uses->count++] = type;
	}
}

void glue_read_relations(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	enum { BODY, QUERY, PATH, USES, KEYS };
	static const char *const keys[] = {[BODY] = "body", [QUERY] = "query", [PATH] = "path", [USES] = "uses", NULL};
	struct yaml_entry found[KEYS] = {0};
	if (!glue_keys(load, entry, keys, "references: {body: {/image: image.image}}", found))
		return;
	if (found[BODY].value != NULL)
		read_by_key(load, &found[BODY], "body: {/image: image.image}", check_pointer_key, &type->in_body);
	if (found[QUERY].value != NULL)
		read_by_key(load, &found[QUERY], "query: {image: image.image}", check_name_key, &type->in_query);
	if (found[PATH].value != NULL)
		read_by_key(load, &found[PATH], "path: {image_id: image.image}", check_variable_key, &type->in_path);
	if (found[USES].value != NULL)
		glue_read_uses(load, &found[USES], &type->uses);
}

/* ---- Whose it is ------------------------------------------------------------------------------------------------- */

void glue_read_owner(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	static const char *const words[] = {[GLUE_GLOBAL] = "global", [GLUE_SITE] = "site", NULL};
	int word = GLUE_GLOBAL;
	glue_word(load, entry, words, "owner", &word);
	type->owner = (enum glue_owner)word;
}

void glue_read_relied(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	static const char *const words[] = {[GLUE_RELIED_WARN] = "warn", [GLUE_RELIED_REFUSE] = "refuse", NULL};
	int word = GLUE_RELIED_WARN;
	glue_word(load, entry, words, "answer", &word);
	type->relied = (enum glue_relied)word;
}

/* ---- Once all types are read ------------------------------------------------------------------------------------- */

static void check_container(struct glue_load *load, const struct glue_type *type,
                            const struct glue_reference *reference)
{
	yaml_mark_t mark = {.line = reference->line - 1, .column = reference->column - 1};
	if (reference->kind != GLUE_CONTAINED)
		return;
	if (reference->type == NULL)
		glue_complain(load, ERR_INVALID, mark,
		              "the kind of " TEXT_NAME_FMT
		              " is `container`, but it refers to any type; name the one that it is",
		              TEXT_NAME(reference->place));
	else if (reference->type->cross.strategy != GLUE_CONTAINER)
		glue_complain(load, ERR_INVALID, mark,
		              "the kind of " TEXT_NAME_FMT " is `container`, but " TEXT_NAME_FMT
		              " is none; give that type `cross: container`",
		              TEXT_NAME(reference->place), TEXT_NAME(reference->type->name));
	else if (reference->type == type)
		glue_complain(load, ERR_INVALID, mark,
		              "the kind of " TEXT_NAME_FMT " is `container`, but a type is not in itself",
		              TEXT_NAME(reference->place));
}

static void note_reliance(struct glue_load *load, const struct glue_reference *reference)
{
	if (reference->kind != GLUE_RELIANCE)
		return;
	for (uint32_t i = 0; i < load->glue->types_count; i++)
		load->glue->types[i].may_be_relied |= !reference->type || reference->type == &load->glue->types[i];
}

static void check_all(struct glue_load *load, const struct glue_type *type, const struct glue_references *references)
{
	for (uint32_t i = 0; i < references->count; i++) {
		check_container(load, type, &references->at[i]);
		note_reliance(load, &references->at[i]);
	}
}

void glue_check_relations(struct glue_load *load)
{
	for (uint32_t i = 0; i < load->glue->types_count; i++) {
		const struct glue_type *type = &load->glue->types[i];
		size_t where = glue_enter(load, type->name);
		check_all(load, type, &type->in_body);
		check_all(load, type, &type->in_query);
		check_all(load, type, &type->in_path);
		for (uint32_t j = 0; j < type->operations_count; j++)
			check_all(load, type, &type->operations[j].own);
		glue_leave(load, where);
	}
}

/* ---- What an operation may use ----------------------------------------------------------------------------------- */

static void add_relation(struct glue_operation *operation, enum glue_where where,
                         const struct glue_reference *reference)
{
	operation->relations[operation->relations_count++] = (struct glue_relation){
		.where = where, .place = reference->place, .kind = reference->kind, .type = reference->type};
}

static void add_relations(struct glue_operation *operation, enum glue_where where,
                          const struct glue_references *references)
{
	for (uint32_t i = 0; i < references->count; i++)
		add_relation(operation, where, &references->at[i]);
}

static void add_uses(struct glue_operation *operation, const struct glue_uses *uses)
{
	for (uint32_t i = 0; i < uses->count; i++) {
		bool there = false;
		for (uint32_t j = 0; j < operation->relations_count; j++)
			there |= operation->relations[j].where == GLUE_NOWHERE && operation->relations[j].type == uses->at[i];
		if (!there)
			add_relation(operation, GLUE_NOWHERE, &(struct glue_reference){.place = STR(""), .type = uses->at[i]});
	}
}

static bool has_reference(const struct glue_operation *operation, struct str name)
{
	for (uint32_t i = 0; i < operation->templates_count; i++) {
		int32_t variable = glue_template_variable(&operation->templates[i], name);
		if (variable >= 0 && operation->templates[i].variables[variable].kind == GLUE_VARIABLE_REFERENCE)
			return true;
	}
	return false;
}

void glue_make_relations(struct glue_load *load, struct glue_operation *operation)
{
	const struct glue_type *type = operation->type;
	bool changes = operation->effect != GLUE_READ && operation->effect != GLUE_LIST && operation->effect != GLUE_PASS;
	bool has_body = changes && operation->effect != GLUE_DELETE && operation->body == GLUE_BODY_ITEM;
	operation->relations = arena_array(load->arena, struct glue_relation,
	                                   type->in_path.count + type->in_query.count + type->in_body.count +
	                                       operation->own.count + type->uses.count + operation->uses.count);
	for (uint32_t i = 0; i < type->in_path.count; i++)
		if (has_reference(operation, type->in_path.at[i].place))
			add_relation(operation, GLUE_IN_PATH, &type->in_path.at[i]);
	add_relations(operation, GLUE_IN_QUERY, &type->in_query);
	if (has_body) {
		add_relations(operation, GLUE_IN_BODY, &type->in_body);
		add_relations(operation, GLUE_IN_BODY, &operation->own);
	}
	/* Reading an item does not use what was needed to make it. */
	if (changes)
		add_uses(operation, &type->uses);
	add_uses(operation, &operation->uses);
}
