/* Facets that can be read and set as a whole: the file of an image, the tags of a server.
 *
 * A facet is one if there is a GET, and a PUT that replaces it, of the same path below the item, without anything more to fill in.
 * Then what one site has of it can be compared with what another one has, and given to it. */
#include "glue/glue_int.h"

#include "base/check.h"

#include "glue/match.h"

/* Whose words behind the item's id are all written down; NULL: it has none such. */
static const struct glue_template *find_path(const struct glue_operation *operation)
{
	for (uint32_t i = 0; i < operation->templates_count; i++) {
		const struct glue_template *template = &operation->templates[i];
		if (template->id_variable < 0 || template->takes_rest)
			continue;
		uint32_t from = template->variables[template->id_variable].segment + 1;
		bool plain = from < template->segments_count;
		for (uint32_t k = from; k < template->segments_count; k++)
			plain = plain && template->segments[k].at != NULL && template->segments[k].length > 0;
		if (plain)
			return template;
	}
	return NULL;
}

static uint32_t words_from(const struct glue_template *template)
{
	return template->variables[template->id_variable].segment + 1;
}

static bool have_one_path(const struct glue_template *a, const struct glue_template *b)
{
	uint32_t from = words_from(a), other = words_from(b), count = a->segments_count - from;
	if (b->segments_count - other != count)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (!str_equal(a->segments[from + i], b->segments[other + i]))
			return false;
	return true;
}

/* Asked by its path and method alone. */
static bool is_plain(const struct glue_operation *operation, enum glue_method method)
{
	return (operation->methods & (1u << method)) != 0 && operation->conditions_count == 0 &&
	       operation->key.length == 0 && find_path(operation) != NULL;
}

static bool reads(const struct glue_operation *operation)
{
	return operation->effect == GLUE_READ && is_plain(operation, GLUE_GET) &&
	       (operation->answer == GLUE_BODY_ITEM || operation->answer == GLUE_BODY_OPAQUE);
}

static bool sets(const struct glue_operation *operation)
{
	return operation->effect == GLUE_REPLACE && is_plain(operation, GLUE_PUT) && operation->body != GLUE_BODY_NONE;
}

uint32_t glue_facets_count(const struct glue_type *type)
{
	return type->facets_count;
}

struct str glue_facet_name(const struct glue_type *type, uint32_t number)
{
	CHECK(number < type->facets_count);
	return type->facets[number];
}

const struct glue_operation *glue_facet_reader(const struct glue_type *type, uint32_t number)
{
	for (uint32_t i = 0; i < type->operations_count; i++)
		if (type->operations[i].facet_number == number && reads(&type->operations[i]))
			return &type->operations[i];
	return NULL;
}

bool glue_operation_is_plain(const struct glue_operation *operation)
{
	return operation->conditions_count == 0 && find_path(operation) != NULL;
}

struct str glue_plain_method(const struct glue_operation *operation)
{
	for (int method = 0; method < GLUE_METHODS; method++)
		if (operation->methods & (1u << method))
			return str_of(glue_method_name((enum glue_method)method));
	return STR("");
}

const struct glue_copying *glue_facet_copying(const struct glue_type *type, uint32_t number)
{
	static const struct glue_copying untold = {.how = GLUE_COPY_UNTOLD};
	CHECK(number < type->facets_count);
	return type->copies ? &type->copies[number] : &untold;
}

struct str glue_type_object(const struct glue_type *type)
{
	return type->object;
}

static const struct glue_operation *find_remove(const struct glue_type *type, const struct glue_operation *read)
{
	for (uint32_t i = 0; i < type->operations_count; i++) {
		const struct glue_operation *operation = &type->operations[i];
		if (operation->facet_number == read->facet_number && operation->effect == GLUE_REPLACE &&
		    is_plain(operation, GLUE_DELETE_METHOD) && have_one_path(find_path(read), find_path(operation)))
			return operation;
	}
	return NULL;
}

bool glue_facet_is_shown(const struct glue_type *type, uint32_t number)
{
	enum glue_copy how = glue_facet_copying(type, number)->how;
	if (how == GLUE_COPY_ITEM || how == GLUE_COPY_WHEN)
		return true;
	for (uint32_t i = 0; i < glue_operations_count(type); i++) {
		const struct glue_operation *operation = glue_operation_at(type, i);
		if (glue_facet_number(operation) == number && glue_operation_effect(operation) != GLUE_RELATIVE)
			return false;
	}
	return true;
}

bool glue_facet_find(const struct glue_type *type, uint32_t number, struct glue_facet *facet)
{
	CHECK(number < type->facets_count);
	for (uint32_t i = 0; i < type->operations_count && number > 0; i++) {
		const struct glue_operation *read = &type->operations[i];
		if (read->facet_number != number || !reads(read))
			continue;
		for (uint32_t k = 0; k < type->operations_count; k++) {
			const struct glue_operation *replace = &type->operations[k];
			bool alike = replace->facet_number == number && sets(replace) &&
			             (replace->body == GLUE_BODY_OPAQUE) == (read->answer == GLUE_BODY_OPAQUE);
			if (!alike || !have_one_path(find_path(read), find_path(replace)))
				continue;
			*facet = (struct glue_facet){.name = type->facets[number],
			                             .number = number,
			                             .read = read,
			                             .replace = replace,
			                             .remove = find_remove(type, read),
			                             .opaque = read->answer == GLUE_BODY_OPAQUE};
			if (replace->contents.count > 0)
				facet->content_type = replace->contents.at[0];
			return true;
		}
	}
	return false;
}

void glue_facet_put(const struct glue_facet *facet, struct str item, struct buf *out)
{
	glue_plain_put(facet->read, item, out);
}

void glue_plain_put(const struct glue_operation *operation, struct str item, struct buf *out)
{
	const struct glue_template *template = find_path(operation);
	buf_put(out, item);
	for (uint32_t i = words_from(template); i < template->segments_count; i++) {
		buf_put_char(out, '/');
		buf_put(out, template->segments[i]);
	}
}
