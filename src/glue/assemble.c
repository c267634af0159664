/* What is made of a description once its parts are read: the tries of paths, and where ids stand in bodies. */
#include "glue/load.h"
#include "glue/places.h"

#include "base/text.h"

/* ---- Places ------------------------------------------------------------------------------------------------------ */

/* Places being made. */
struct making {
	struct glue_load *load;
	const struct glue_type *type;
	struct glue_places *places;
	struct str front; /* pointer to the object */
	bool failed;
};

static yaml_mark_t mark_of(uint32_t line, uint32_t column)
{
	return (yaml_mark_t){.line = line > 0 ? line - 1 : 0, .column = column > 0 ? column - 1 : 0};
}

static void add(struct making *making, enum glue_place_kind kind, const struct glue_reference *place)
{
	struct buf whole = {0};
	struct err err = {0};
	if (making->failed)
		return;
	buf_put(&whole, making->front);
	buf_put(&whole, place->place);
	int code = kind == GLUE_PLACE_REFERENCE
	               ? glue_places_add_reference(making->places, buf_str(&whole), place->type, place->kind, &err)
	               : glue_places_add(making->places, buf_str(&whole), kind, place->type, &err);
	making->failed = code != 0;
	if (making->failed)
		glue_complain(making->load, code, mark_of(making->type->line, making->type->column), TEXT_NAME_FMT ": %s",
		              TEXT_NAME(making->type->name), err.text);
	buf_free(&whole);
}

static bool is_id(const struct glue_type *type, struct str pointer)
{
	for (uint32_t i = 0; i < type->ids.count; i++) {
		if (str_equal(type->ids.at[i], pointer))
			return true;
	}
	return false;
}

static void add_references(struct making *making, const struct glue_references *references)
{
	for (uint32_t i = 0; i < references->count; i++)
		add(making, GLUE_PLACE_REFERENCE, &references->at[i]);
}

/* The type's own, and those of one operation. */
static struct glue_places *make_places(struct glue_load *load, struct glue_type *type, struct str front,
                                       const struct glue_references *own, const struct glue_references *beside)
{
	struct making making = {.load = load, .type = type, .places = glue_places_new(), .front = front};
	for (uint32_t i = 0; i < type->ids.count; i++)
		add(&making, GLUE_PLACE_ID, &(struct glue_reference){.place = type->ids.at[i], .type = type});
	/* A name that is the id is told as such. */
	if (type->natural_name.length > 0 && !is_id(type, type->natural_name))
		add(&making, GLUE_PLACE_NAME, &(struct glue_reference){.place = type->natural_name, .type = type});
	for (uint32_t i = 0; i < type->links.count; i++)
		add(&making, GLUE_PLACE_LINK, &(struct glue_reference){.place = type->links.at[i]});
	add_references(&making, &type->in_body);
	add_references(&making, own);
	making.front = STR("");
	add_references(&making, beside);
	type->places[type->places_count++] = making.places;
	return making.places;
}

/* Most operations of a type have the same. */
static const struct glue_places *item_places(struct glue_load *load, struct glue_type *type,
                                             const struct glue_operation *operation)
{
	if (operation->own.count > 0 || operation->beside.count > 0 || !str_equal(operation->object, type->object))
		return make_places(load, type, operation->object, &operation->own, &operation->beside);
	if (type->item_places == NULL)
		type->item_places = make_places(load, type, type->object, &operation->own, &operation->beside);
	return type->item_places;
}

static const struct glue_places *list_places(struct glue_load *load, struct glue_type *type)
{
	static const struct glue_references none;
	if (type->list_places == NULL) {
		struct buf front = {0};
		buf_put(&front, type->list);
		buf_put(&front, STR("/*"));
		type->list_places = make_places(load, type, buf_str(&front), &none, &none);
		buf_free(&front);
	}
	return type->list_places;
}

void glue_make_places(struct glue_load *load, struct glue_type *type, struct glue_operation *operation)
{
	enum { OF_TYPE = 2, OF_OPERATION = 2 };
	if (type->places == NULL)
		type->places = arena_array(load->arena, struct glue_places *, OF_TYPE + OF_OPERATION * LIMIT_GLUE_OPERATIONS);
	/* What passes is read only where it says that there is something to be found. */
	bool passes = operation->effect == GLUE_PASS && operation->own.count == 0 && operation->beside.count == 0;
	/* Where something is wrong already, its consequences only confuse. */
	if (passes || load->errors_count > 0)
		return;
	bool has_body =
		operation->effect != GLUE_READ && operation->effect != GLUE_LIST && operation->effect != GLUE_DELETE;
	if (has_body && operation->body == GLUE_BODY_ITEM)
		operation->request_places = item_places(load, type, operation);
	if (operation->answer == GLUE_BODY_ITEM || operation->answer == GLUE_BODY_STREAM)
		operation->answer_places =
			operation->request_places != NULL ? operation->request_places : item_places(load, type, operation);
	else if (operation->answer == GLUE_BODY_LIST)
		operation->answer_places = list_places(load, type);
}

/* ---- Tries ------------------------------------------------------------------------------------------------------- */

static bool add_path(struct glue_load *load, struct glue_service *service, const struct glue_operation *operation,
                     const struct glue_template *template)
{
	const struct glue_candidate *clash = NULL;
	const struct glue_type *type = operation->type;
	yaml_mark_t mark =
		operation->line > 0 ? mark_of(operation->line, operation->column) : mark_of(type->line, type->column);
	if (load->templates_count++ == LIMIT_GLUE_TEMPLATES) {
		glue_complain(load, ERR_LIMIT, mark,
		              "more than %d paths, the limit of a description: of all operations, with all prefixes",
		              LIMIT_GLUE_TEMPLATES);
		return false;
	}
	int code = glue_trie_add(load->arena, service->root, operation, template, &clash);
	if (code == ERR_CONFLICT)
		glue_complain(load, code, mark,
		              TEXT_NAME_FMT " of " TEXT_NAME_FMT " cannot be told apart from " TEXT_NAME_FMT
		                            " of " TEXT_NAME_FMT ", line %u: " TEXT_NAME_FMT " is " TEXT_NAME_FMT
		                            " with the same method, query, content and key",
		              TEXT_NAME(operation->name), TEXT_NAME(type->name), TEXT_NAME(clash->operation->name),
		              TEXT_NAME(clash->operation->type->name),
		              clash->operation->line > 0 ? clash->operation->line : clash->operation->type->line,
		              TEXT_NAME(template->text), TEXT_NAME(clash->template->text));
	else if (code != 0)
		glue_complain(load, code, mark, "more than %d operations on " TEXT_NAME_FMT, LIMIT_GLUE_OPERATIONS,
		              TEXT_NAME(template->text));
	return code == 0;
}

/* The template by itself, and behind each prefix of the service. */
static void add_paths(struct glue_load *load, struct glue_service *service, const struct glue_operation *operation,
                      const struct glue_template *template)
{
	bool fine = add_path(load, service, operation, template);
	for (uint32_t i = 0; fine && i < service->under.count; i++) {
		struct glue_template prefix, *whole = arena_new(load->arena, struct glue_template);
		if (glue_template_parse(load->arena, service->under.at[i], &prefix, NULL) != 0)
			continue;
		glue_template_prefix(load->arena, template, &prefix, whole);
		if (whole->segments_count > LIMIT_GLUE_SEGMENTS) {
			glue_complain(load, ERR_LIMIT, mark_of(operation->type->line, operation->type->column),
			              TEXT_NAME_FMT " has %u segments; the limit is %d", TEXT_NAME(whole->text),
			              whole->segments_count, LIMIT_GLUE_SEGMENTS);
			return;
		}
		fine = add_path(load, service, operation, whole);
	}
}

static void add_type(struct glue_load *load, struct glue_service *service, const struct glue_type *type)
{
	size_t where = glue_enter(load, type->name);
	for (uint32_t i = 0; i < type->operations_count; i++) {
		for (uint32_t j = 0; j < type->operations[i].templates_count; j++)
			add_paths(load, service, &type->operations[i], &type->operations[i].templates[j]);
	}
	glue_leave(load, where);
}

static bool has_types_of_any(const struct glue *glue)
{
	for (uint32_t i = 0; i < glue->types_count; i++) {
		if (glue->types[i].service == NULL)
			return true;
	}
	return false;
}

/* Types of any service also need a service that is none of those named. */
static void add_any(struct glue_load *load, const struct yaml_entry *credentials)
{
	struct glue *glue = load->glue;
	if (glue->any != NULL || !has_types_of_any(glue))
		return;
	glue->any = &glue->services[glue->services_count++];
	glue->any->about.name = STR("*");
	glue_read_credentials(load, credentials, glue->any);
}

void glue_assemble(struct glue_load *load, const struct yaml_entry *credentials)
{
	struct glue *glue = load->glue;
	add_any(load, credentials);
	size_t where = glue_enter(load, STR("types"));
	for (uint32_t i = 0; i < glue->services_count; i++) {
		struct glue_service *service = &glue->services[i];
		service->root = glue_trie_new(load->arena);
		for (uint32_t j = 0; j < glue->types_count; j++) {
			if (glue->types[j].service == service || glue->types[j].service == NULL)
				add_type(load, service, &glue->types[j]);
		}
	}
	glue_leave(load, where);
}
