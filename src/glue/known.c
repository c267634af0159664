/* What is known of a match: the answers that the description gives once it is read. */
#include "glue/match.h"

#include "base/check.h"
#include "base/percent.h"

/* ---- The application and its services ----------------------------------------------------------------------------- */

struct str glue_application(const struct glue *glue)
{
	return glue->application;
}

uint64_t glue_digest(const struct glue *glue)
{
	return glue->digest;
}

const struct glue_service_about *glue_service_about(const struct glue_service *service)
{
	return &service->about;
}

uint32_t glue_services_count(const struct glue *glue)
{
	return glue->services_count;
}

const struct glue_service *glue_service_at(const struct glue *glue, uint32_t index)
{
	CHECK(index < glue->services_count);
	return &glue->services[index];
}

enum glue_credential glue_credential_use(const struct glue_service *service)
{
	return service->credentials.run;
}

bool glue_is_credential(const struct glue_service *service, struct str header)
{
	for (uint32_t i = 0; i < service->credentials.headers.count; i++) {
		if (str_equal_nocase(service->credentials.headers.at[i], header))
			return true;
	}
	return false;
}

bool glue_is_credential_fault(const struct glue_service *service, int status)
{
	for (uint32_t i = 0; i < service->credentials.refused_count; i++) {
		if ((int)service->credentials.refused[i] == status)
			return true;
	}
	return false;
}

uint32_t glue_types_count(const struct glue *glue)
{
	return glue->types_count;
}

const struct glue_type *glue_type_at(const struct glue *glue, uint32_t index)
{
	CHECK(index < glue->types_count);
	return &glue->types[index];
}

/* ---- Types ------------------------------------------------------------------------------------------------------- */

struct str glue_type_name(const struct glue_type *type)
{
	return type->name;
}

enum glue_identity glue_type_identity(const struct glue_type *type)
{
	return type->identity;
}

bool glue_type_alike(const struct glue_type *type)
{
	return type->alike;
}

bool glue_type_ids_in_collection(const struct glue_type *type)
{
	return type->ids_in_collection;
}

struct str glue_type_only_collection(const struct glue_type *type)
{
	bool only = type->collections_count == 1 && type->collections[0].variables_count == 0;
	return only ? type->collections[0].text : STR("");
}

bool glue_type_names_unique(const struct glue_type *type)
{
	return type->unique;
}

bool glue_delete_wins(const struct glue_type *type)
{
	return type->delete_wins;
}

/* Writes a text, and for each {name} in it what put() makes of the name. */
static void put_filled(struct buf *out, struct str text, void (*put)(struct buf *, const void *, struct str),
                       const void *context)
{
	for (size_t i = 0; i < text.length;) {
		const char *open = memchr(text.at + i, '{', text.length - i);
		size_t plain = open != NULL ? (size_t)(open - text.at) : text.length;
		const char *close = open != NULL ? memchr(open, '}', text.length - plain) : NULL;
		if (close == NULL)
			plain = text.length;
		buf_put(out, str_make(text.at + i, plain - i));
		i = plain;
		if (close != NULL) {
			put(out, context, str_make(open + 1, (size_t)(close - open - 1)));
			i = (size_t)(close + 1 - text.at);
		}
	}
}

static void put_name(struct buf *out, const void *context, struct str variable)
{
	(void)variable;
	percent_encode(out, *(const struct str *)context);
}

bool glue_type_find_put(const struct glue_type *type, struct str name, struct buf *out)
{
	if (type->find.length == 0)
		return false;
	put_filled(out, type->find, put_name, &name);
	return true;
}

static void put_value(struct buf *out, const void *context, struct str variable)
{
	const struct glue_match *match = context;
	for (uint32_t i = 0; i < match->values_count; i++) {
		if (str_equal(match->values[i].name, variable))
			buf_put(out, match->values[i].text);
	}
}

void glue_type_put(const struct glue_match *match, struct buf *out)
{
	buf_put(out, match->service_name);
	buf_put_char(out, '.');
	put_filled(out, match->type->short_name, put_value, match);
}

/* Two ways to write one percent-encoded byte are one. */
void glue_segment_put(struct buf *out, struct str segment)
{
	for (size_t i = 0; i < segment.length; i++) {
		char c = segment.at[i];
		bool encoded = i > 0 && (segment.at[i - 1] == '%' || (i > 1 && segment.at[i - 2] == '%'));
		if (encoded && c >= 'a' && c <= 'f')
			c = "ABCDEF"[c - 'a'];
		buf_put_char(out, c);
	}
}

void glue_collection_put(const struct glue_match *match, struct buf *out)
{
	static const struct glue_replacer none;
	glue_collection_splice(match, &none, out);
}

void glue_collection_splice(const struct glue_match *match, const struct glue_replacer *replacer, struct buf *out)
{
	const struct glue_template *template = match->template;
	for (uint32_t i = template->prefix_segments, variable = 0; i < template->collection_segments; i++) {
		bool literal = template->segments[i].at != NULL;
		while (!literal && template->variables[variable].segment != i)
			variable++;
		if (!literal && template->variables[variable].ignored)
			continue;
		buf_put_char(out, '/');
		if (literal)
			buf_put(out, template->segments[i]);
		else if (replacer->replace == NULL || !glue_reference_splice(match, variable, replacer, out))
			glue_segment_put(out, match->values[variable].text);
	}
}

/* ---- Operations -------------------------------------------------------------------------------------------------- */

uint32_t glue_operations_count(const struct glue_type *type)
{
	return type->operations_count;
}

const struct glue_operation *glue_operation_at(const struct glue_type *type, uint32_t number)
{
	CHECK(number < type->operations_count);
	return &type->operations[number];
}

uint32_t glue_operation_number(const struct glue_operation *operation)
{
	return (uint32_t)(operation - operation->type->operations);
}

uint32_t glue_facet_number(const struct glue_operation *operation)
{
	return operation->facet_number;
}

struct str glue_operation_name(const struct glue_operation *operation)
{
	return operation->name;
}

enum glue_effect glue_operation_effect(const struct glue_operation *operation)
{
	return operation->effect;
}

struct str glue_operation_facet(const struct glue_operation *operation)
{
	return operation->facet;
}

bool glue_operation_creates(const struct glue_operation *operation)
{
	return operation->creates;
}

bool glue_operation_repeatable(const struct glue_operation *operation)
{
	return operation->repeatable;
}

bool glue_operation_replays(const struct glue_operation *operation)
{
	return operation->replays;
}

bool glue_operation_opaque(const struct glue_operation *operation)
{
	return operation->body == GLUE_BODY_OPAQUE;
}

bool glue_operation_needs_json(const struct glue_operation *operation)
{
	bool names = operation->effect == GLUE_CREATE && operation->type->identity != GLUE_ASSIGNED;
	return operation->body == GLUE_BODY_ITEM && (names || operation->type->preconditions.count > 0);
}

bool glue_operation_streams(const struct glue_operation *operation)
{
	return operation->answer == GLUE_BODY_STREAM;
}

bool glue_operation_for_service(const struct glue_operation *operation)
{
	return operation->for_service;
}

const struct glue_places *glue_request_places(const struct glue_operation *operation)
{
	return operation->request_places;
}

const struct glue_places *glue_answer_places(const struct glue_operation *operation)
{
	return operation->answer_places;
}

/* ---- Concurrent operations ---------------------------------------------------------------------------------------- */

/* DESIGN 7, "Ordering, exactly", 3: whatever sets the whole comes first, so that the smaller change lands on top of it. A
 * create comes before all; a delete that wins comes last, one that loses has nothing to say. */
enum { WEIGHT_LOST, WEIGHT_CREATE, WEIGHT_WHOLE, WEIGHT_PART, WEIGHT_END };

static int weight(const struct glue_type *type, enum glue_effect effect)
{
	switch (effect) {
	case GLUE_CREATE: return WEIGHT_CREATE;
	case GLUE_REPLACE: return WEIGHT_WHOLE;
	case GLUE_DELETE: return type->delete_wins ? WEIGHT_END : WEIGHT_LOST;
	default: return WEIGHT_PART;
	}
}

static enum glue_resolution default_resolution(const struct glue_type *type, const struct glue_operation *x,
                                               const struct glue_operation *y)
{
	bool whole = x->effect == GLUE_CREATE || x->effect == GLUE_DELETE || y->effect == GLUE_CREATE ||
	             y->effect == GLUE_DELETE; /* these concern all facets */
	if (!whole && !str_equal(x->facet, y->facet))
		return GLUE_ANY_ORDER;
	int of_x = weight(type, x->effect), of_y = weight(type, y->effect);
	if (of_x != of_y)
		return of_x < of_y ? GLUE_KEEP_ORDER : GLUE_REVERSE_ORDER;
	if (of_x == WEIGHT_CREATE || of_x == WEIGHT_WHOLE)
		return GLUE_TAKE_ONE;
	return x->effect == GLUE_ASSIGN && y->effect == GLUE_ASSIGN ? GLUE_KEEP_ORDER : GLUE_ANY_ORDER;
}

static bool is_called(const struct glue_operation *operation, struct str word)
{
	return str_equal(operation->name, word) || str_equal(str_of(glue_effect_name(operation->effect)), word);
}

static const struct glue_rule *find_rule(const struct glue_type *type, const struct glue_operation *x,
                                         const struct glue_operation *y)
{
	for (uint32_t i = 0; i < type->rules_count; i++) {
		if (is_called(x, type->rules[i].x) && is_called(y, type->rules[i].y))
			return &type->rules[i];
	}
	return NULL;
}

bool glue_resolution_is_said(const struct glue_type *type, const struct glue_operation *x,
                             const struct glue_operation *y)
{
	return find_rule(type, x, y) != NULL;
}

enum glue_resolution glue_resolve(const struct glue_type *type, const struct glue_operation *x,
                                  const struct glue_operation *y)
{
	const struct glue_rule *rule = find_rule(type, x, y);
	return rule ? rule->resolution : default_resolution(type, x, y);
}
