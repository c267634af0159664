/* What a description says of lists beyond where they are: which members of a query ask for a page or an order. Lists of several sites
 * cannot be cut or sorted by asking each site for a part, so who puts them together has to know these (gather.h).
 *
 *     paging: {query: [limit, marker], next: /next}
 *     sort: [sort_key, sort_dir]
 */
#include "glue/load.h"

#include "base/text.h"

/* ---- Reading ----------------------------------------------------------------------------------------------------- */

static bool read_member(struct glue_load *load, const struct yaml_entry *entry, struct str *name)
{
	return glue_name(load, entry, "a member of the query, such as `limit`", name);
}

void glue_read_paging(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	enum { QUERY, NEXT, KEYS };
	static const char *const keys[] = {[QUERY] = "query", [NEXT] = "next", NULL};
	struct yaml_entry found[KEYS] = {0};
	if (!glue_keys(load, entry, keys, "paging: {query: [limit, marker], next: /next}", found))
		return;
	if (found[QUERY].value != NULL)
		type->paging = glue_list(load, &found[QUERY], LIMIT_GLUE_VALUES, read_member);
	if (found[NEXT].value != NULL && glue_pointer(load, &found[NEXT], &type->next) && type->next.length == 0)
		glue_complain(load, ERR_INVALID, found[NEXT].value->start_mark,
		              "`next` is the whole body; it is the place that says that there is another page, such as /next");
}

void glue_read_sort(struct glue_load *load, const struct yaml_entry *entry, struct glue_type *type)
{
	type->sort = glue_list(load, entry, LIMIT_GLUE_VALUES, read_member);
}

/* ---- Asking ------------------------------------------------------------------------------------------------------ */

bool glue_operation_list(const struct glue_operation *operation, struct glue_list_about *about)
{
	const struct glue_type *type = operation->type;
	*about = (struct glue_list_about){.list = type->list, .next = type->next};
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
