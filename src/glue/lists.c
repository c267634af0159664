/* What a description says of lists beyond where they are: which members of a query ask for a page or an order. Lists of several sites
 * cannot be cut or sorted by asking each site for a part, so who puts them together has to know these (gather.h).
 *
 *     paging: {query: [limit, marker], next: /next, most: limit=1000}
 *     sort: [sort_key, sort_dir]
 */
#include "glue/load.h"
#include "glue/match.h"

#include "base/percent.h"
#include "base/text.h"

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool read_member(struct glue_load *load, const struct yaml_entry *entry, struct str *name)
{
	return glue_name(load, entry, "a member of the query, such as `limit`", name);
}

/* MEMBER=VALUE, of a member that asks for a page; it goes into queries as it is. */
static bool is_most(const struct glue_type *type, struct str text)
{
	const char *equals = memchr(text.at, '=', text.length);
	struct str member = str_make(text.at, equals ? (size_t)(equals - text.at) : 0);
	struct buf encoded = {0};
	bool known = false;
	for (uint32_t i = 0; i < type->paging.count; i++)
		known |= str_equal(type->paging.at[i], member);
	percent_encode(&encoded, text);
	bool plain = encoded.length == text.length + 2; /* but for the one `=` */
	buf_free(&encoded);
	return known && plain && member.length + 1 < text.length;
}

static void read_most(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	if (glue_text(load, entry, "what asks for the longest page, such as `limit=1000`", &type->most) &&
	    !is_most(type, type->most))
		glue_complain(load, ERR_INVALID, entry->value->start_mark,
		              "`most` is " TEXT_NAME_FMT
		              "; it is one of the members of `query` and its value, such as limit=1000",
		              TEXT_NAME(type->most));
}

void glue_read_paging(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	enum { QUERY, NEXT, MOST, KEYS };
	static const char *const keys[] = {[QUERY] = "query", [NEXT] = "next", [MOST] = "most", NULL};
	struct yaml_entry found[KEYS] = {0};
	if (!glue_keys(load, entry, keys, "paging: {query: [limit, marker], next: /next}", found))
		return;
	if (found[QUERY].value != NULL)
		type->paging = glue_list(load, &found[QUERY], LIMIT_GLUE_VALUES, read_member);
	if (found[NEXT].value != NULL && glue_pointer(load, &found[NEXT], &type->next) && type->next.length == 0)
		glue_complain(load, ERR_INVALID, found[NEXT].value->start_mark,
		              "`next` is the whole body; it is the place that says that there is another page, such as /next");
	if (found[MOST].value != NULL)
		read_most(load, &found[MOST], type);
}

void glue_read_sort(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	type->sort = glue_list(load, entry, LIMIT_GLUE_VALUES, read_member);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

bool glue_operation_list(const struct glue_operation *operation, struct glue_list_about *about)
{
	const struct glue_type *type = operation->type;
	*about = (struct glue_list_about){.list = type->list, .next = type->next, .most = type->most};
	return operation->effect == GLUE_LIST && operation->answer == GLUE_BODY_LIST;
}

/* Percent-encoded or not. */
static bool names(struct str text, struct str name)
{
	size_t at = 0;
	for (size_t i = 0; i < text.length; i++, at++) {
		char c = text.at[i];
		if (c == '%' && text.length - i > 2 && str_hex_value(text.at[i + 1]) >= 0 &&
		    str_hex_value(text.at[i + 2]) >= 0) {
			c = (char)(str_hex_value(text.at[i + 1]) << 4 | str_hex_value(text.at[i + 2]));
			i += 2;
		}
		if (at == name.length || name.at[at] != c)
			return false;
	}
	return at == name.length;
}

static bool is_one_of(const struct glue_texts *texts, struct str member, struct str *found)
{
	for (uint32_t i = 0; i < texts->count; i++) {
		if (names(member, texts->at[i])) {
			*found = texts->at[i];
			return true;
		}
	}
	return false;
}

enum glue_list_query glue_list_query(const struct glue_operation *operation, struct str query, struct str *member)
{
	while (query.length > 0) {
		size_t length = 0, name = 0;
		while (length < query.length && query.at[length] != '&' && query.at[length] != ';')
			length++;
		while (name < length && query.at[name] != '=')
			name++;
		if (is_one_of(&operation->type->paging, str_make(query.at, name), member))
			return GLUE_QUERY_PAGES;
		if (is_one_of(&operation->type->sort, str_make(query.at, name), member))
			return GLUE_QUERY_SORTS;
		length += length < query.length;
		query = str_make(query.at + length, query.length - length);
	}
	return GLUE_QUERY_FREE;
}

/* ---- Over several collections ------------------------------------------------------------------------------------ */

static const struct glue_value *value_of(const struct glue_match *match, struct str name)
{
	for (uint32_t i = 0; i < match->template->variables_count; i++)
		if (str_equal(match->template->variables[i].name, name))
			return &match->values[i];
	return NULL;
}

/* A collection that is told by one variable more than the list has in its path. NULL: there is none. */
static const struct glue_template *narrower(const struct glue_match *match, const struct glue_variable **missing)
{
	for (uint32_t i = 0; i < match->type->collections_count; i++) {
		const struct glue_template *template = &match->type->collections[i];
		uint32_t count = 0;
		for (uint32_t k = 0; k < template->variables_count; k++) {
			if (template->variables[k].ignored || value_of(match, template->variables[k].name))
				continue;
			*missing = &template->variables[k];
			count++;
		}
		if (count == 1 && (*missing)->type)
			return template;
	}
	return NULL;
}

/* Where there are two such references, nobody can say which of them it is in. Ids that services make are replaced in answers, which needs
 * the collection while the element is read. */
bool glue_list_within(const struct glue_match *match, const struct glue_type **within)
{
	const struct glue_type *type = match->type;
	const struct glue_variable *missing;
	uint32_t count = 0;
	if (!type->ids_in_collection || type->identity != GLUE_CHOSEN || !narrower(match, &missing))
		return false;
	for (uint32_t i = 0; i < type->in_body.count; i++)
		count += type->in_body.at[i].type == missing->type;
	*within = missing->type;
	return count == 1;
}

void glue_list_collection_put(const struct glue_match *match, struct str within, struct buf *out)
{
	const struct glue_variable *missing;
	const struct glue_template *template = narrower(match, &missing);
	for (uint32_t i = template->prefix_segments, variable = 0; i < template->collection_segments; i++) {
		bool literal = template->segments[i].at != NULL;
		while (!literal && template->variables[variable].segment != i)
			variable++;
		if (!literal && template->variables[variable].ignored)
			continue;
		buf_put_char(out, '/');
		if (literal)
			buf_put(out, template->segments[i]);
		else if (&template->variables[variable] == missing)
			percent_encode(out, within);
		else
			glue_segment_put(out, value_of(match, template->variables[variable].name)->text);
	}
}
