/* facets: how those that no request sets as a whole get to a new site. */
#include "glue/load.h"

#include "base/text.h"

enum { COPY, EACH, BODY, WHEN, FACET_KEYS };

static const char *const facet_keys[] = {[COPY] = "copy", [EACH] = "each", [BODY] = "body", [WHEN] = "when", NULL};

static const char facets_example[] = "facets: {tags: {copy: item}}";
static const char facet_example[] = "members: {copy: share, each: /members, body: {/member: /member_id}}";

struct reading {
	struct glue_load *load;
	struct glue_type *type;
	uint32_t number;
	struct glue_copying *copying;
	struct yaml_entry found[FACET_KEYS];
};

/* ---- What is said ------------------------------------------------------------------------------------------------ */

/* The operation, by its name; it is asked for below the item, with nothing more to fill in. */
static void find_by(struct reading *reading, struct str name)
{
	const struct glue_type *type = reading->type;
	yaml_mark_t mark = reading->found[COPY].value->start_mark;
	struct str facet = glue_facet_name(type, reading->number);
	for (uint32_t i = 0; i < type->operations_count; i++) {
		const struct glue_operation *operation = &type->operations[i];
		bool changes = operation->effect != GLUE_READ && operation->effect != GLUE_LIST;
		if (str_equal(operation->name, name) && operation->facet_number == reading->number && changes)
			reading->copying->by = operation;
	}
	if (!reading->copying->by)
		glue_complain(reading->load, ERR_NOT_FOUND, mark,
		              TEXT_NAME_FMT " is no operation that changes the facet " TEXT_NAME_FMT
		                            "; accepted are `item`, `none`, and the name of one",
		              TEXT_NAME(name), TEXT_NAME(facet));
	else if (!glue_operation_is_plain(reading->copying->by))
		glue_complain(reading->load, ERR_INVALID, mark,
		              "the path of " TEXT_NAME_FMT
		              " has to be below that of the item, with nothing more to fill in, and no query",
		              TEXT_NAME(name));
}

/* By pointers: what stands in a request, and where that stands in an element. */
static void read_body(struct reading *reading, const struct yaml_entry *entry)
{
	struct glue_load *load = reading->load;
	struct glue_copying *copying = reading->copying;
	if (!glue_mapping(load, entry, "body: {/member: /member_id}", LIMIT_GLUE_VALUES))
		return;
	size_t count = yaml_entries_count(entry->value);
	struct str *body = arena_array(load->arena, struct str, count + 1);
	struct str *from = arena_array(load->arena, struct str, count + 1);
	for (size_t i = 0; i < count; i++) {
		struct yaml_entry each = yaml_entry_at(&load->yaml, entry->value, i);
		bool fine = glue_check_pointer(load, each.key_node->start_mark, each.key);
		body[copying->body_count] = glue_copy(load, each.key);
		copying->body_count += glue_pointer(load, &each, &from[copying->body_count]) && fine;
	}
	copying->body = body;
	copying->from = from;
}

static void read_when(struct reading *reading, const struct yaml_entry *entry)
{
	struct glue_load *load = reading->load;
	struct glue_copying *copying = reading->copying;
	if (!glue_mapping(load, entry, "when: {/status: deactivated}", 1))
		return;
	if (yaml_entries_count(entry->value) == 0) {
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`when` is empty; it has what the item shows, such as `when: {/status: deactivated}`");
		return;
	}
	struct yaml_entry shown = yaml_entry_at(&load->yaml, entry->value, 0);
	if (glue_check_pointer(load, shown.key_node->start_mark, shown.key) &&
	    glue_text(load, &shown, "what the item shows there", &copying->value))
		copying->place = glue_copy(load, shown.key);
}

static void read_each(struct reading *reading)
{
	struct glue_load *load = reading->load;
	struct glue_copying *copying = reading->copying;
	const struct yaml_entry *each = &reading->found[EACH], *body = &reading->found[BODY];
	glue_pointer(load, each, &copying->each);
	copying->read = glue_facet_reader(reading->type, reading->number);
	if (!copying->read)
		glue_complain(load, ERR_NOT_FOUND, each->value->start_mark,
		              "no GET of a path below the item, with nothing more to fill in, reads the facet " TEXT_NAME_FMT,
		              TEXT_NAME(glue_facet_name(reading->type, reading->number)));
	if (body->value != NULL)
		read_body(reading, body);
	if (copying->body_count == 0)
		glue_complain(load, ERR_INVALID, each->key_node->start_mark,
		              "what `each` finds is not said in any request: `body` says where, as in `body: {/member: "
		              "/member_id}`");
}

static void read_how(struct reading *reading)
{
	struct yaml_entry *found = reading->found;
	struct str how;
	if (!glue_name(reading->load, &found[COPY], "`item`, `none`, or the name of an operation", &how))
		return;
	bool item = str_equal(how, STR("item")), none = str_equal(how, STR("none"));
	bool each = found[EACH].value != NULL, when = found[WHEN].value != NULL;
	if (!item && !none)
		find_by(reading, how);
	if (item || none ? each || when || found[BODY].value != NULL : !each && !when) {
		glue_complain(reading->load, ERR_INVALID, found[COPY].value->start_mark,
		              "an operation has `each`, a list whose elements it is asked for, or `when`, what the item has to "
		              "show, or both; `item` and `none` have neither");
		return;
	}
	reading->copying->how = item ? GLUE_COPY_ITEM : none ? GLUE_COPY_NONE : each ? GLUE_COPY_EACH : GLUE_COPY_WHEN;
	if (each)
		read_each(reading);
	if (when)
		read_when(reading, &found[WHEN]);
}

/* ---- All of them ------------------------------------------------------------------------------------------------- */

/* 0: no operation has it. */
static uint32_t number_of(const struct glue_type *type, struct str name)
{
	for (uint32_t i = 1; i < type->facets_count; i++)
		if (str_equal(type->facets[i], name))
			return i;
	return 0;
}

static void read_facet(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	struct reading reading = {.load = load, .type = type, .number = number_of(type, entry->key)};
	if (!glue_keys(load, entry, facet_keys, facet_example, reading.found))
		return;
	if (reading.number == 0) {
		glue_complain(load, ERR_NOT_FOUND, entry->key_node->start_mark,
		              "no operation of the type has the facet " TEXT_NAME_FMT, TEXT_NAME(entry->key));
		return;
	}
	reading.copying = &type->copies[reading.number];
	if (reading.found[COPY].value != NULL)
		read_how(&reading);
	else
		glue_complain(load, ERR_INVALID, entry->key_node->start_mark,
		              "the facet " TEXT_NAME_FMT " has no `copy`: `item`, `none`, or the name of an operation",
		              TEXT_NAME(entry->key));
}

void glue_read_facets(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	if (!glue_mapping(load, entry, facets_example, LIMIT_GLUE_FACETS))
		return;
	type->copies = arena_array(load->arena, struct glue_copying, LIMIT_GLUE_FACETS);
	size_t where = glue_enter(load, entry->key);
	for (size_t i = 0; i < yaml_entries_count(entry->value); i++) {
		struct yaml_entry facet = yaml_entry_at(&load->yaml, entry->value, i);
		size_t inner = glue_enter(load, facet.key);
		read_facet(load, &facet, type);
		glue_leave(load, inner);
	}
	glue_leave(load, where);
}
