/* Any bytes as a scope: they are refused with a place inside them, or parse; and what parses is printed, parsed again to
 * the same tree, and printed again to the same text. */
#include "scope_fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool same_node(const struct scope_node *a, const struct scope_node *b)
{
	if (a->kind != b->kind || a->function != b->function || a->children != b->children || a->number != b->number ||
	    !str_equal(a->name, b->name) || !str_equal(a->value, b->value) || a->ordinal != b->ordinal)
		return false;
	const struct scope_node *x = a->first, *y = b->first;
	for (; x && y; x = x->next, y = y->next)
		if (!same_node(x, y))
			return false;
	return !x && !y;
}

static bool same_scope(const struct scope *a, const struct scope *b)
{
	if (a->entries_count != b->entries_count || a->sites_count != b->sites_count || a->needs_view != b->needs_view)
		return false;
	for (uint32_t i = 0; i < a->entries_count; i++)
		if (!str_equal(a->entries[i].service, b->entries[i].service) ||
		    !same_node(a->entries[i].location, b->entries[i].location))
			return false;
	return true;
}

/* Every place of the tree lies inside the text, and inside that of its parent. */
static void check_places(const struct scope_node *node, uint32_t from, uint32_t to)
{
	CHECK(node->offset >= from && node->offset <= to && node->length <= to - node->offset);
	uint32_t count = 0;
	for (const struct scope_node *child = node->first; child; child = child->next, count++)
		check_places(child, node->offset, node->offset + node->length);
	CHECK(count == node->children);
}

static void check_tokens(struct arena *arena, struct str text)
{
	struct scope_token *tokens;
	uint32_t count, end = 0;
	struct scope_diag diag;
	int code = scope_tokens(arena, text, &tokens, &count, &diag);
	if (code) {
		check_diag(text, code, &diag);
		return;
	}
	for (uint32_t i = 0; i < count; i++) {
		CHECK(tokens[i].offset >= end && tokens[i].length > 0);
		end = tokens[i].offset + tokens[i].length;
		CHECK(end <= text.length);
		CHECK(scope_token_name(tokens[i].kind) != NULL && tokens[i].kind != SCOPE_TOKEN_END);
	}
}

static void check_accessors(const struct scope *scope, struct str text)
{
	CHECK(str_equal(scope_text(scope), text));
	CHECK(scope_entries_count(scope) >= 1 && scope_entries_count(scope) <= LIMIT_SCOPE_ENTRIES);
	CHECK(scope_named_count(scope) <= LIMIT_SCOPE_SITES);
	for (uint32_t i = 0; i < scope_entries_count(scope); i++) {
		CHECK(utf8_length(scope_entry_service(scope, i)) <= scope_entry_service(scope, i).length);
		check_places(scope->entries[i].location, 0, (uint32_t)text.length);
	}
	for (uint32_t i = 0; i < scope_named_count(scope); i++)
		CHECK(scope_named_site(scope, i).length > 0 && scope->sites[i]->ordinal == i);
}

/* The canonical text is the same scope, and prints as itself. */
static void check_canonical(struct arena *arena, const struct scope *scope, struct str service)
{
	struct scope *again;
	struct scope_diag diag;
	struct buf first = {0}, second = {0};
	scope_print(&first, scope, service);
	CHECK(is_printable(buf_str(&first), false));
	/* White space that the user left out may push a scope that just fitted past the limit. */
	int code = scope_parse(arena, buf_str(&first), &again, &diag);
	if (code) {
		check_diag(buf_str(&first), code, &diag);
		CHECK(diag.fault == SCOPE_FAULT_TOO_LONG ||
		      (diag.fault == SCOPE_FAULT_DUPLICATE_SERVICE && service.length > 0));
	} else {
		CHECK(service.length > 0 || same_scope(scope, again));
		scope_print(&second, again, STR(""));
		CHECK(str_equal(buf_str(&first), buf_str(&second)));
	}
	buf_free(&first);
	buf_free(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct str text = size ? str_make((const char *)data, size) : STR("");
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	arena_init(&arena, 0);
	check_tokens(&arena, text);
	int code = scope_parse(&arena, text, &scope, &diag);
	if (code) {
		check_diag(text, code, &diag);
	} else {
		check_accessors(scope, text);
		check_canonical(&arena, scope, STR(""));
		check_canonical(&arena, scope, STR("compute"));
		code = scope_check(&arena, scope, &diag);
		if (code)
			check_diag(text, code, &diag);
		for (uint32_t i = 0; code == 0 && i < scope_warnings_count(scope); i++)
			CHECK(is_printable(scope_warning(scope, i), false));
	}
	arena_free(&arena);
	return 0;
}
