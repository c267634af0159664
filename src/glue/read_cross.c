/* cross of a type: how one resource of it spans several sites; and what of an operation is split over them. */
#include "glue/load.h"

#include "base/text.h"

static const char cross_example[] = "cross: {as: divisible, divide: [/size]}";

static const char *const strategies[] = {"container", "divisible", "indivisible", NULL};

/* ---- Pointers ---------------------------------------------------------------------------------------------------- */

/* One place of one object: not the whole of it, and no `*`. */
static bool check_one(struct glue_load *load, yaml_mark_t mark, struct str pointer)
{
	bool any = false;
	if (!glue_check_pointer(load, mark, pointer))
		return false;
	for (size_t i = 0; i < pointer.length; i++)
		any |=
			pointer.at[i] == '*' && pointer.at[i - 1] == '/' && (i + 1 == pointer.length || pointer.at[i + 1] == '/');
	if (pointer.length > 0 && !any)
		return true;
	glue_complain(load, ERR_INVALID, mark,
	              TEXT_NAME_FMT " is not one place of the object; one looks like `/spec/size`, without `*`",
	              TEXT_NAME(pointer));
	return false;
}

static bool read_one(struct glue_load *load, const struct yaml_entry *entry, struct str *pointer)
{
	return glue_pointer(load, entry, pointer) && check_one(load, entry->value->start_mark, *pointer);
}

/* Is one the other, or within it? */
static bool overlap(struct str a, struct str b)
{
	size_t shorter = a.length < b.length ? a.length : b.length;
	struct str longer = a.length < b.length ? b : a;
	return memcmp(a.at, b.at, shorter) == 0 && (longer.length == shorter || longer.at[shorter] == '/');
}

static void read_pointers(struct glue_load *load, const struct yaml_entry *entry, struct glue_texts *pointers)
{
	*pointers = glue_list(load, entry, LIMIT_GLUE_VALUES, read_one);
	for (uint32_t i = 0; i < pointers->count; i++) {
		for (uint32_t j = 0; j < i; j++) {
			if (overlap(pointers->at[i], pointers->at[j]))
				glue_complain(load, ERR_CONFLICT, entry->value->start_mark,
				              "`divide` has " TEXT_NAME_FMT " and " TEXT_NAME_FMT ", of which one is within the other",
				              TEXT_NAME(pointers->at[j]), TEXT_NAME(pointers->at[i]));
		}
	}
}

/* ---- How it is divided ------------------------------------------------------------------------------------------- */

/* The id and the name are those of the whole. */
static void check_divided(struct glue_load *load, const struct yaml_entry *entry, const struct glue_type *type)
{
	for (uint32_t i = 0; i < type->cross.divide_count; i++) {
		struct str pointer = type->cross.divide[i];
		bool id = false;
		for (uint32_t j = 0; j < type->ids.count; j++)
			id |= str_equal(type->ids.at[j], pointer);
		if (id || (type->natural_name.length > 0 && str_equal(type->natural_name, pointer)))
			glue_complain(load, ERR_CONFLICT, entry->value->start_mark,
			              "`divide` has " TEXT_NAME_FMT
			              ", which is the %s of the object; only numbers and lists are split",
			              TEXT_NAME(pointer), id ? "id" : "name");
	}
}

static bool is_divided(const struct glue_cross *cross, struct str pointer)
{
	for (uint32_t i = 0; i < cross->divide_count; i++) {
		if (str_equal(cross->divide[i], pointer))
			return true;
	}
	return false;
}

static void read_combine(struct glue_load *load, const struct yaml_entry *entry, struct glue_cross *cross)
{
	static const char *const words[] = {[GLUE_SUM] = "sum",
	                                    [GLUE_UNION] = "union",
	                                    [GLUE_CONCAT] = "concat",
	                                    [GLUE_MIN] = "min",
	                                    [GLUE_MAX] = "max",
	                                    [GLUE_PRIME] = "prime",
	                                    NULL};
	if (!glue_mapping(load, entry, "combine: {/used: sum, /status: prime}", LIMIT_GLUE_POINTERS))
		return;
	size_t count = yaml_entries_count(entry->value);
	struct glue_combination *combine = arena_array(load->arena, struct glue_combination, count);
	cross->combine = combine;
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry one = yaml_entry_at(&load->yaml, entry->value, i);
		int word;
		if (!check_one(load, one.key_node->start_mark, one.key) ||
		    !glue_word(load, &one, words, "way to combine", &word))
			continue;
		/* Its parts have to add up to the whole. */
		if (is_divided(cross, one.key) && (word == GLUE_MIN || word == GLUE_MAX || word == GLUE_PRIME)) {
			glue_complain(load, ERR_CONFLICT, one.value->start_mark,
			              TEXT_NAME_FMT " is divided, so its parts are put together again: by `sum` a number, by "
			                            "`concat` or `union` a list",
			              TEXT_NAME(one.key));
			continue;
		}
		combine[cross->combine_count++] =
			(struct glue_combination){.pointer = glue_copy(load, one.key), .as = (enum glue_combine)word};
	}
}

/* ---- The whole --------------------------------------------------------------------------------------------------- */

enum { AS, NAMES, DIVIDE, WEIGHT, COMBINE, CROSS_KEYS };

/* What only one strategy has. */
static void check_fits(struct glue_load *load, const struct yaml_entry found[CROSS_KEYS], enum glue_strategy strategy)
{
	for (int key = NAMES; key < CROSS_KEYS; key++) {
		enum glue_strategy of = key == NAMES ? GLUE_CONTAINER : GLUE_DIVISIBLE;
		if (found[key].value != NULL && strategy != of)
			glue_complain(load, ERR_INVALID, found[key].key_node->start_mark,
			              TEXT_NAME_FMT " is of what is `%s`; this type is `%s`", TEXT_NAME(found[key].key),
			              glue_strategy_name(of), glue_strategy_name(strategy));
	}
}

static void read_divisible(struct glue_load *load, const struct yaml_entry found[CROSS_KEYS], struct glue_type *type)
{
	struct glue_texts divide = {0};
	if (found[DIVIDE].value != NULL) {
		read_pointers(load, &found[DIVIDE], &divide);
		type->cross.divide = divide.at;
		type->cross.divide_count = divide.count;
		check_divided(load, &found[DIVIDE], type);
	}
	if (found[WEIGHT].value != NULL)
		glue_name(load, &found[WEIGHT], "a tag of the sites, such as `capacity`", &type->cross.weight);
	if (found[COMBINE].value != NULL)
		read_combine(load, &found[COMBINE], &type->cross);
	uint32_t fields = type->cross.divide_count + type->cross.combine_count;
	if (fields > LIMIT_CROSS_FIELDS)
		glue_complain(load, ERR_LIMIT, found[COMBINE].value->start_mark,
		              "`divide` and `combine` have %u fields; the limit is %d of both", fields, LIMIT_CROSS_FIELDS);
}

void glue_read_cross(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	static const char *const keys[] = {
		[AS] = "as", [NAMES] = "names", [DIVIDE] = "divide", [WEIGHT] = "weight", [COMBINE] = "combine", NULL};
	static const char *const policies[] = {"strict", "optimistic", NULL};
	struct yaml_entry found[CROSS_KEYS] = {[AS] = *entry};
	int word, names = 0;
	if (entry->value->type == YAML_MAPPING_NODE) {
		found[AS].value = NULL;
		if (!glue_keys(load, entry, keys, cross_example, found))
			return;
	}
	if (found[AS].value == NULL) {
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`cross` has no `as`: `container`, `divisible` or `indivisible`, as in `%s`", cross_example);
		return;
	}
	if (!glue_word(load, &found[AS], strategies, "strategy", &word))
		return;
	type->cross.strategy = (enum glue_strategy)(GLUE_CONTAINER + word);
	check_fits(load, found, type->cross.strategy);
	if (found[NAMES].value != NULL && glue_word(load, &found[NAMES], policies, "policy of names", &names))
		type->cross.optimistic = names == 1;
	if (type->cross.strategy == GLUE_DIVISIBLE)
		read_divisible(load, found, type);
	if (type->cross.strategy == GLUE_DIVISIBLE && found[DIVIDE].value == NULL)
		glue_complain(
			load, ERR_INVALID, entry->value->start_mark,
			"what is `divisible` needs a `divide`: numbers or lists that are split over the sites, as in `%s`",
			cross_example);
	if (type->cross.strategy == GLUE_INDIVISIBLE && type->owner == GLUE_SITE)
		glue_complain(
			load, ERR_CONFLICT, entry->value->start_mark,
			"what is `indivisible` is used from other sites, but the `owner` of this type is `site`: they cannot");
}

void glue_read_divide(struct glue_load *load, const struct yaml_entry *entry, struct glue_operation *operation)
{
	bool has_body = operation->effect == GLUE_CREATE || operation->effect == GLUE_REPLACE ||
	                operation->effect == GLUE_ASSIGN || operation->effect == GLUE_RELATIVE;
	if (operation->type->cross.strategy != GLUE_DIVISIBLE)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "there is a `divide`, but the type is not `divisible`; say so with `%s`", cross_example);
	else if (!has_body || operation->body != GLUE_BODY_ITEM)
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "there is a `divide`, but no JSON in which a number could be split");
	else
		read_pointers(load, entry, &operation->divide);
}
