/* The one canonical text of a scope: no braces, one space around operators, quotes and parentheses only where needed. */
#include "scope/scope_int.h"

static void put_quoted(struct buf *out, struct str name)
{
	buf_put_char(out, '"');
	for (size_t i = 0; i < name.length; i++) {
		if (name.at[i] == '"' || name.at[i] == '\\')
			buf_put_char(out, '\\');
		buf_put_char(out, name.at[i]);
	}
	buf_put_char(out, '"');
}

void scope_put_service(struct buf *out, struct str name)
{
	if (scope_is_word(name))
		buf_put(out, name);
	else
		put_quoted(out, name);
}

/* A site is quoted also where the parser would take it for something else. */
void scope_put_site(struct buf *out, struct str name)
{
	if (scope_function_find(name) != SCOPE_FN_COUNT || scope_reads_as_number(name))
		put_quoted(out, name);
	else
		scope_put_service(out, name);
}

static void put_operand(struct buf *out, const struct scope_node *node, enum scope_node_kind parent)
{
	if (node->kind >= parent) {
		scope_print_node(out, node);
		return;
	}
	buf_put_char(out, '(');
	scope_print_node(out, node);
	buf_put_char(out, ')');
}

static void put_joined(struct buf *out, const struct scope_node *node, struct str separator)
{
	for (const struct scope_node *child = node->first; child; child = child->next) {
		if (child != node->first)
			buf_put(out, separator);
		if (node->kind == SCOPE_NODE_CALL)
			scope_print_node(out, child);
		else
			put_operand(out, child, node->kind);
	}
}

void scope_print_node(struct buf *out, const struct scope_node *node)
{
	switch (node->kind) {
	case SCOPE_NODE_OTHERWISE: put_joined(out, node, STR("; ")); break;
	case SCOPE_NODE_ANY: put_joined(out, node, STR(" | ")); break;
	case SCOPE_NODE_ALL: put_joined(out, node, STR(" & ")); break;
	case SCOPE_NODE_SPAN: put_joined(out, node, STR(" % ")); break;
	case SCOPE_NODE_NOT:
		buf_put_char(out, '!');
		put_operand(out, node->first, SCOPE_NODE_NOT);
		break;
	case SCOPE_NODE_SITE: scope_put_site(out, node->name); break;
	case SCOPE_NODE_CALL:
		buf_put(out, scope_functions[node->function].name);
		buf_put_char(out, '(');
		put_joined(out, node, STR(", "));
		buf_put_char(out, ')');
		break;
	case SCOPE_NODE_DURATION: scope_duration_print(out, node->number); break;
	case SCOPE_NODE_INTEGER: buf_printf(out, "%lld", (long long)node->number); break;
	case SCOPE_NODE_TAG:
		scope_put_service(out, node->name);
		buf_put_char(out, '=');
		scope_put_service(out, node->value);
		break;
	}
}

void scope_print(struct buf *out, const struct scope *scope, struct str service)
{
	for (uint32_t i = 0; i < scope->entries_count; i++) {
		const struct scope_entry *entry = &scope->entries[i];
		struct str name = entry->service.length ? entry->service : service;
		if (i > 0)
			buf_put(out, STR(", "));
		if (name.length) {
			scope_put_service(out, name);
			buf_put(out, STR(": "));
		}
		scope_print_node(out, entry->location);
	}
}
