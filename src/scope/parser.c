/* Tokens to a tree, by recursive descent over the grammar of docs/scope-lang.md.
 *
 * Accepted forms, told apart at the start of the text:
 *     compute: Site1, image: Site2            entries; the canonical form
 *     { compute: Site1, image: Site2 }        the same in braces
 *     {"compute": "Site1", "image": "Site2"}  a JSON object: braces around nothing but pairs of strings. Its values are
 *                                             locations, not names, so they are decoded and parsed in turn (json.c)
 *     ServiceB/Site2                          the first prototype's form: one service, one site
 *     Site1 & Site2                           a location alone
 *
 * The papers write names with a number apart, `DC 1`, and services with a letter apart, `Service A:`. Both are read as
 * one name, since nothing else could be meant; the canonical form quotes them.
 *
 * Operators of one kind are gathered in one node, also across parentheses, because each of them is associative. Depth,
 * sites, calls and entries are counted while parsing, so no input costs more than its own length.
 */
#include "scope/parser.h"

#include "base/check.h"

int scope_parser_advance(struct scope_parser *parser)
{
	parser->end = parser->token.offset + parser->token.length;
	return scope_lex(&parser->lexer, &parser->token);
}

struct scope_node *scope_parser_node(struct scope_parser *parser, enum scope_node_kind kind, struct scope_place place)
{
	struct scope_node *node = arena_new(parser->lexer.arena, struct scope_node);
	node->kind = kind;
	node->offset = place.offset;
	node->length = place.length;
	return node;
}

void scope_node_append(struct scope_node *node, struct scope_node **tail, struct scope_node *child)
{
	if (*tail)
		(*tail)->next = child;
	else
		node->first = child;
	*tail = child;
	node->children++;
}

/* ---- Limits ----------------------------------------------------------------------------------------------------- */

int scope_parser_enter(struct scope_parser *parser, struct scope_place place)
{
	struct scope_diag *diag = parser->lexer.diag;
	if (++parser->depth <= LIMIT_SCOPE_NESTING)
		return 0;
	int code = scope_refuse(diag, SCOPE_FAULT_TOO_DEEP, place, "nested more than %d deep", LIMIT_SCOPE_NESTING);
	return scope_hint(diag, code, "remove parentheses that change nothing: `((Site1))` is `Site1`");
}

int scope_parser_count_call(struct scope_parser *parser, struct scope_place place)
{
	if (++parser->calls <= LIMIT_SCOPE_CALLS)
		return 0;
	int code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_TOO_MANY_CALLS, place,
	                        "the scope uses more than %d functions and `!`", LIMIT_SCOPE_CALLS);
	return scope_hint(parser->lexer.diag, code, "name the sites, or tag them and use one tagged(key=value)");
}

/* ---- Refusals that need to know the grammar ---------------------------------------------------------------------- */

/* How an operator or separator is used. */
static const char *example_of(enum scope_token_kind kind)
{
	static const char *const examples[] = {
		[SCOPE_TOKEN_COLON] = "compute: Site1",       [SCOPE_TOKEN_SLASH] = "ServiceB/Site2",
		[SCOPE_TOKEN_EQUALS] = "tagged(region=west)", [SCOPE_TOKEN_NOT] = "!Site1",
		[SCOPE_TOKEN_SPAN] = "Site1 % Site2",         [SCOPE_TOKEN_ALL] = "Site1 & Site2",
		[SCOPE_TOKEN_ANY] = "Site1 | Site2",          [SCOPE_TOKEN_OTHERWISE] = "Site1; Site2",
	};
	return examples[kind];
}

/* Something stands where a location should start. */
static int refuse_no_location(struct scope_parser *parser)
{
	struct scope_diag *diag = parser->lexer.diag;
	const struct scope_token *token = &parser->token;
	struct scope_place place = scope_token_place(token);
	const char *name = scope_token_name(token->kind);
	int code;
	if (scope_token_is_operator(token->kind) && token->kind == parser->operand_of) {
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`%s` stands twice in a row", name);
		return scope_hint(diag, code, "once is enough, as in `%s`", example_of(token->kind));
	}
	if (parser->operand_of != SCOPE_TOKEN_END) {
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`%s` needs a site on its right, found " SCOPE_TOKEN_FMT,
		                    scope_token_name(parser->operand_of), SCOPE_TOKEN_ARG(*token));
		return scope_hint(diag, code, "as in `%s`", example_of(parser->operand_of));
	}
	if (scope_token_is_operator(token->kind) || token->kind == SCOPE_TOKEN_EQUALS || token->kind == SCOPE_TOKEN_COLON ||
	    token->kind == SCOPE_TOKEN_SLASH) {
		const char *what = scope_token_is_operator(token->kind) ? "a site" : "a name";
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`%s` needs %s on its left", name, what);
		return scope_hint(diag, code, "as in `%s`", example_of(token->kind));
	}
	code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "expected a site, a function or `(`, found " SCOPE_TOKEN_FMT,
	                    SCOPE_TOKEN_ARG(*token));
	return scope_hint(diag, code,
	                  "a location is a site (`Site1`), several joined by `&`, `|`, `;` or `%%`, or a function "
	                  "such as `around(Site1, 10ms)`");
}

/* Something follows a complete location that cannot. `parser->end` is where the location ended. */
static int refuse_after_location(struct scope_parser *parser)
{
	struct scope_diag *diag = parser->lexer.diag;
	struct scope_token found = parser->token;
	struct scope_place place = scope_token_place(&found);
	int code;
	switch (found.kind) {
	case SCOPE_TOKEN_CLOSE:
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "this `)` has no `(`");
		return scope_hint(diag, code, "remove it, or open a parenthesis before it");
	case SCOPE_TOKEN_RBRACE:
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "this `}` has no `{`");
		return scope_hint(diag, code, "braces go around the whole scope, or are left out");
	case SCOPE_TOKEN_LBRACE:
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`{` can only open the whole scope");
		return scope_hint(diag, code, "group locations with parentheses: `(Site1 & Site2); Site3`");
	case SCOPE_TOKEN_COLON:
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`:` has to follow the name of a service");
		return scope_hint(diag, code, "separate the services by `,`, as in `compute: Site1, image: Site2`");
	case SCOPE_TOKEN_SLASH:
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`/` has to follow the name of a service");
		return scope_hint(diag, code, "the short form is one service and one site: `ServiceB/Site2`");
	case SCOPE_TOKEN_EQUALS:
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "`=` is not an operator");
		return scope_hint(diag, code, "a service is given its location with `:`, a tag is chosen by tagged(key=value)");
	default: break;
	}
	code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "an operator is missing before " SCOPE_TOKEN_FMT,
	                    SCOPE_TOKEN_ARG(found));
	/* `compute: Site1 image: Site2`: the next word is a service, so it is the comma that is missing. */
	struct scope_diag ignored;
	struct scope_parser ahead = *parser;
	ahead.lexer.diag = &ignored;
	bool service = scope_parser_advance(&ahead) == 0 && ahead.token.kind == SCOPE_TOKEN_COLON;
	if (parser->lexer.shift > 0 || parser->lexer.origin)
		return scope_hint(diag, code,
		                  "join sites by an operator; in JSON a name with a space is quoted inside the string: "
		                  "\"\\\"DC West\\\"\"");
	return scope_hint(diag, code,
	                  service ? "separate the services by `,`"
	                          : "join sites by `&` (all of them), `|` (the first that answers), `;` (otherwise "
	                            "the next) or `%%` (one resource over them); quote a name with a space in it");
}

/* ---- Names ------------------------------------------------------------------------------------------------------ */

static bool all_digits(struct str word)
{
	int64_t ignored;
	return scope_number_read(word, &ignored) == SCOPE_NUMBER_INTEGER;
}

static struct str join_words(struct scope_parser *parser, struct str first, struct str second)
{
	size_t length = first.length + 1 + second.length;
	char *name = arena_alloc(parser->lexer.arena, length, 1);
	memcpy(name, first.at, first.length);
	name[first.length] = ' ';
	memcpy(name + first.length + 1, second.at, second.length);
	return str_make(name, length);
}

static int refuse_number_as_site(struct scope_parser *parser, const struct scope_token *word)
{
	struct scope_diag *diag = parser->lexer.diag;
	int64_t ignored;
	const char *kind = scope_number_read(word->text, &ignored) == SCOPE_NUMBER_DURATION ? "duration" : "number";
	int code = scope_refuse(diag, SCOPE_FAULT_NOT_A_SITE, scope_token_place(word),
	                        "expected a site, found the %s " TEXT_NAME_FMT, kind, TEXT_NAME(word->text));
	return scope_hint(diag, code, "if a site has that name, quote it: \"%.*s%s\"", STR_FMT(text_shown(word->text)),
	                  text_ellipsis(word->text));
}

int scope_parser_site(struct scope_parser *parser, struct scope_token word, struct scope_node **out)
{
	struct scope_diag *diag = parser->lexer.diag;
	struct str name = word.text;
	if (word.kind == SCOPE_TOKEN_WORD) {
		enum scope_function function = scope_function_find(name);
		if (function != SCOPE_FN_COUNT) {
			int code = scope_refuse(diag, SCOPE_FAULT_RESERVED_NAME, scope_token_place(&word),
			                        TEXT_NAME_FMT " is a function", TEXT_NAME(name));
			return scope_hint(diag, code, "call it, as in `%s`, or quote the name of a site: \"%.*s\"",
			                  scope_functions[function].example, STR_FMT(name));
		}
		if (scope_reads_as_number(name))
			return refuse_number_as_site(parser, &word);
		if (parser->token.kind == SCOPE_TOKEN_WORD && all_digits(parser->token.text)) {
			name = join_words(parser, name, parser->token.text);
			int code = scope_parser_advance(parser);
			if (code)
				return code;
		}
	}
	struct scope *scope = parser->scope;
	if (scope->sites_count == LIMIT_SCOPE_SITES) {
		int code = scope_refuse(diag, SCOPE_FAULT_TOO_MANY_SITES, scope_token_place(&word),
		                        "the scope names more than %d sites", LIMIT_SCOPE_SITES);
		return scope_hint(diag, code, "select them by a function instead: all(), nearest(3), tagged(region=west)");
	}
	*out = scope_parser_node(parser, SCOPE_NODE_SITE, (struct scope_place){word.offset, parser->end - word.offset});
	(*out)->name = name;
	(*out)->ordinal = scope->sites_count;
	scope->sites[scope->sites_count++] = *out;
	return 0;
}

/* ---- Locations -------------------------------------------------------------------------------------------------- */

static int parse_group(struct scope_parser *parser, struct scope_node **out)
{
	struct scope_token open = parser->token;
	int code = scope_parser_enter(parser, scope_token_place(&open));
	if (code == 0)
		code = scope_parser_advance(parser);
	parser->operand_of = SCOPE_TOKEN_END;
	if (code == 0)
		code = scope_parse_location(parser, SCOPE_NODE_OTHERWISE, out);
	if (code)
		return code;
	parser->depth--;
	if (parser->token.kind == SCOPE_TOKEN_CLOSE)
		return scope_parser_advance(parser);
	if (parser->token.kind != SCOPE_TOKEN_END && parser->token.kind != SCOPE_TOKEN_RBRACE &&
	    parser->token.kind != SCOPE_TOKEN_COMMA)
		return refuse_after_location(parser);
	code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_SYNTAX, scope_token_place(&open), "this `(` is not closed");
	return scope_hint(parser->lexer.diag, code, "a `)` is missing before " SCOPE_TOKEN_FMT,
	                  SCOPE_TOKEN_ARG(parser->token));
}

static int parse_not(struct scope_parser *parser, struct scope_node **out)
{
	struct scope_token mark = parser->token;
	int code = scope_parser_enter(parser, scope_token_place(&mark));
	if (code == 0)
		code = scope_parser_count_call(parser, scope_token_place(&mark));
	if (code == 0)
		code = scope_parser_advance(parser);
	if (code)
		return code;
	struct scope_node *operand = NULL;
	parser->operand_of = SCOPE_TOKEN_NOT;
	code = scope_parse_unary(parser, &operand);
	if (code)
		return code;
	parser->depth--;
	parser->scope->needs_view = true;
	*out = scope_parser_node(parser, SCOPE_NODE_NOT, (struct scope_place){mark.offset, parser->end - mark.offset});
	(*out)->first = operand;
	(*out)->children = 1;
	return 0;
}

int scope_parse_unary(struct scope_parser *parser, struct scope_node **out)
{
	struct scope_token first = parser->token;
	if (first.kind == SCOPE_TOKEN_NOT)
		return parse_not(parser, out);
	if (first.kind == SCOPE_TOKEN_OPEN)
		return parse_group(parser, out);
	if (!scope_token_is_name(first.kind))
		return refuse_no_location(parser);
	int code = scope_parser_advance(parser);
	if (code)
		return code;
	if (parser->token.kind == SCOPE_TOKEN_OPEN)
		return scope_parse_call(parser, &first, out);
	return scope_parser_site(parser, first, out);
}

/* The node that an operator makes, or SCOPE_NODE_SITE for anything that is none. */
static enum scope_node_kind operator_kind(enum scope_token_kind token)
{
	switch (token) {
	case SCOPE_TOKEN_SPAN: return SCOPE_NODE_SPAN;
	case SCOPE_TOKEN_ALL: return SCOPE_NODE_ALL;
	case SCOPE_TOKEN_ANY: return SCOPE_NODE_ANY;
	case SCOPE_TOKEN_OTHERWISE: return SCOPE_NODE_OTHERWISE;
	default: return SCOPE_NODE_SITE;
	}
}

/* Adds an operand. One of the same kind gives its operands instead, so that `(a & b) & c` is `a & b & c`. */
static void append_operand(struct scope_node *node, struct scope_node **tail, struct scope_node *operand)
{
	if (operand->kind != node->kind) {
		scope_node_append(node, tail, operand);
		return;
	}
	for (struct scope_node *child = operand->first, *next; child; child = next) {
		next = child->next;
		scope_node_append(node, tail, child);
	}
}

int scope_parse_location(struct scope_parser *parser, enum scope_node_kind loosest, struct scope_node **out)
{
	*out = NULL;
	uint32_t from = parser->token.offset;
	int code = scope_parse_unary(parser, out);
	while (code == 0) {
		enum scope_token_kind token = parser->token.kind;
		enum scope_node_kind kind = operator_kind(token);
		if (kind == SCOPE_NODE_SITE || kind < loosest)
			return 0;
		struct scope_node *node = scope_parser_node(parser, kind, (struct scope_place){from, 0}), *tail = NULL;
		append_operand(node, &tail, *out);
		while (code == 0 && parser->token.kind == token) {
			struct scope_node *operand = NULL;
			code = scope_parser_advance(parser);
			parser->operand_of = token;
			if (code == 0)
				code = scope_parse_location(parser, kind + 1, &operand);
			if (code == 0)
				append_operand(node, &tail, operand);
		}
		node->length = parser->end - from;
		*out = node;
	}
	return code;
}

/* ---- Entries ---------------------------------------------------------------------------------------------------- */

int scope_parser_add_entry(struct scope_parser *parser, struct str service, struct scope_place place,
                           struct scope_node *location)
{
	struct scope *scope = parser->scope;
	struct scope_diag *diag = parser->lexer.diag;
	for (uint32_t i = 0; i < scope->entries_count; i++) {
		if (!str_equal(scope->entries[i].service, service))
			continue;
		if (service.length) {
			int code = scope_refuse(diag, SCOPE_FAULT_DUPLICATE_SERVICE, place,
			                        "the service " TEXT_NAME_FMT " is given twice", TEXT_NAME(service));
			return scope_hint(diag, code, "give it one location; join sites by `&`, `|`, `;` or `%%`");
		}
		int code = scope_refuse(diag, SCOPE_FAULT_DUPLICATE_SERVICE, scope_node_place(location),
		                        "a second location without a service");
		return scope_hint(diag, code,
		                  "`,` separates services, as in `compute: Site1, image: Site2`; sites are joined by `&`, "
		                  "`|`, `;` or `%%`");
	}
	if (scope->entries_count == LIMIT_SCOPE_ENTRIES) {
		int code = scope_refuse(diag, SCOPE_FAULT_TOO_MANY_ENTRIES, place, "the scope names more than %d services",
		                        LIMIT_SCOPE_ENTRIES);
		return scope_hint(diag, code, "leave out the services that run where the request is");
	}
	scope->entries[scope->entries_count++] = (struct scope_entry){service, place.offset, place.length, location};
	return 0;
}

/* After `Service/`: one site. */
static int parse_short_form(struct scope_parser *parser, struct scope_node **location)
{
	struct scope_token site = parser->token;
	if (!scope_token_is_name(site.kind))
		return refuse_no_location(parser);
	int code = scope_parser_advance(parser);
	if (code == 0)
		code = scope_parser_site(parser, site, location);
	if (code)
		return code;
	if (!scope_token_is_operator(parser->token.kind) && parser->token.kind != SCOPE_TOKEN_OPEN &&
	    parser->token.kind != SCOPE_TOKEN_SLASH)
		return 0;
	code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_SYNTAX, scope_token_place(&parser->token),
	                    "the short form `Service/Site` is one service and one site");
	return scope_hint(parser->lexer.diag, code, "write `Service: Site1 & Site2`");
}

/* Reads the service of an entry, if it has one. Where it has none, the parser stays where it is. `*separator` is what
 * followed the name. */
static int parse_service(struct scope_parser *parser, struct str *service, struct scope_place *place,
                         enum scope_token_kind *separator)
{
	struct scope_parser start = *parser;
	struct scope_token first = parser->token;
	*service = STR("");
	*separator = SCOPE_TOKEN_END;
	*place = scope_token_place(&first);
	if (!scope_token_is_name(first.kind))
		return 0;
	int code = scope_parser_advance(parser);
	if (code)
		return code;
	struct str name = first.text;
	struct scope_token second = parser->token;
	/* `Service A:` and `Service 1:` */
	if (first.kind == SCOPE_TOKEN_WORD && second.kind == SCOPE_TOKEN_WORD &&
	    (second.length == 1 || all_digits(second.text))) {
		code = scope_parser_advance(parser);
		if (code)
			return code;
		name = join_words(parser, name, second.text);
		place->length = parser->end - place->offset;
	}
	if (parser->token.kind != SCOPE_TOKEN_COLON && parser->token.kind != SCOPE_TOKEN_SLASH) {
		*parser = start;
		return 0;
	}
	*service = name;
	*separator = parser->token.kind;
	return scope_parser_advance(parser);
}

static int parse_entry(struct scope_parser *parser)
{
	struct str service;
	struct scope_place place;
	enum scope_token_kind separator;
	struct scope_node *location = NULL;
	int code = parse_service(parser, &service, &place, &separator);
	if (code)
		return code;
	parser->operand_of = separator;
	if (separator == SCOPE_TOKEN_SLASH)
		code = parse_short_form(parser, &location);
	else
		code = scope_parse_location(parser, SCOPE_NODE_OTHERWISE, &location);
	return code ? code : scope_parser_add_entry(parser, service, place, location);
}

int scope_parser_finish(struct scope_parser *parser)
{
	return parser->token.kind == SCOPE_TOKEN_END ? 0 : refuse_after_location(parser);
}

static int parse_entries(struct scope_parser *parser)
{
	int code = parse_entry(parser);
	while (code == 0 && parser->token.kind == SCOPE_TOKEN_COMMA) {
		struct scope_token comma = parser->token;
		code = scope_parser_advance(parser);
		if (code)
			return code;
		if (parser->token.kind == SCOPE_TOKEN_END || parser->token.kind == SCOPE_TOKEN_RBRACE) {
			code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_SYNTAX, scope_token_place(&comma),
			                    "nothing follows this `,`");
			return scope_hint(parser->lexer.diag, code, "remove it, or add an entry such as `image: Site2`");
		}
		code = parse_entry(parser);
	}
	return code;
}

static int parse_braces(struct scope_parser *parser)
{
	struct scope_diag *diag = parser->lexer.diag;
	struct scope_token open = parser->token;
	int code = scope_parser_advance(parser);
	if (code)
		return code;
	if (parser->token.kind == SCOPE_TOKEN_RBRACE) {
		code = scope_refuse(diag, SCOPE_FAULT_EMPTY, (struct scope_place){open.offset, 0}, "the scope is empty");
		diag->length = parser->token.offset + 1 - open.offset;
		return scope_hint(diag, code,
		                  "name a location, as in `{compute: Site1}`; to run where the request is, send no scope");
	}
	code = parse_entries(parser);
	if (code)
		return code;
	if (parser->token.kind == SCOPE_TOKEN_RBRACE) {
		code = scope_parser_advance(parser);
		if (code || parser->token.kind == SCOPE_TOKEN_END)
			return code;
		code =
			scope_refuse(diag, SCOPE_FAULT_SYNTAX, scope_token_place(&parser->token), "text follows the closing `}`");
		return scope_hint(diag, code, "braces go around the whole scope");
	}
	if (parser->token.kind != SCOPE_TOKEN_END)
		return refuse_after_location(parser);
	code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, scope_token_place(&open), "this `{` is not closed");
	return scope_hint(diag, code, "add a `}` at the end, or leave both out");
}

/* ---- The whole -------------------------------------------------------------------------------------------------- */

static uint32_t count_byte(struct str text, char byte)
{
	uint32_t count = 0;
	for (size_t i = 0; i < text.length; i++)
		count += text.at[i] == byte;
	return count;
}

/* Room for as many sites and entries as the text can hold: a site takes two bytes, an entry one comma. */
static struct scope *scope_new(struct arena *arena, struct str text)
{
	struct scope *scope = arena_new(arena, struct scope);
	scope->text = str_make(arena_copy(arena, text.at, text.length), text.length);
	size_t sites = text.length / 2 + 1;
	if (sites > LIMIT_SCOPE_SITES)
		sites = LIMIT_SCOPE_SITES;
	scope->sites = arena_alloc(arena, sites * sizeof(*scope->sites), _Alignof(struct scope_node *));
	uint32_t entries = count_byte(text, ',') + 1;
	if (entries > LIMIT_SCOPE_ENTRIES)
		entries = LIMIT_SCOPE_ENTRIES;
	scope->entries = arena_array(arena, struct scope_entry, entries);
	return scope;
}

/* The canonical form has spaces where the text may have none. It is what travels on, so it has to be accepted too. */
static int check_canonical(const struct scope *scope, struct scope_diag *diag)
{
	if (scope->text.length <= LIMIT_SCOPE_TEXT_BYTES / 3)
		return 0;
	struct buf canonical = {0};
	scope_print(&canonical, scope, STR(""));
	size_t length = canonical.length;
	buf_free(&canonical);
	if (length <= LIMIT_SCOPE_TEXT_BYTES)
		return 0;
	int code = scope_refuse(diag, SCOPE_FAULT_TOO_LONG, (struct scope_place){0, (uint32_t)scope->text.length},
	                        "the scope is %zu bytes long in its canonical form; the limit is %d", length,
	                        LIMIT_SCOPE_TEXT_BYTES);
	return scope_hint(diag, code, "select the sites by a function instead: all(), nearest(3), tagged(region=west)");
}

int scope_parse(struct arena *arena, struct str text, struct scope **scope, struct scope_diag *diag)
{
	if (text.length > LIMIT_SCOPE_TEXT_BYTES)
		return scope_refuse_length(diag, text);
	struct scope *made = scope_new(arena, text);
	struct scope_parser parser = {
		.lexer = {.arena = arena, .text = made->text, .diag = diag},
		.scope = made,
		.operand_of = SCOPE_TOKEN_END,
	};
	int code = scope_parser_advance(&parser);
	if (code)
		return code;
	if (parser.token.kind == SCOPE_TOKEN_END) {
		code =
			scope_refuse(diag, SCOPE_FAULT_EMPTY, (struct scope_place){0, (uint32_t)text.length}, "the scope is empty");
		return scope_hint(diag, code,
		                  "name a location, as in `Site1` or `{compute: Site1}`; to run where the request is, "
		                  "send no scope");
	}
	if (parser.token.kind == SCOPE_TOKEN_LBRACE)
		code = scope_is_json(&parser) ? scope_parse_json(&parser) : parse_braces(&parser);
	else
		code = parse_entries(&parser);
	if (code == 0)
		code = scope_parser_finish(&parser);
	if (code == 0)
		code = check_canonical(made, diag);
	if (code)
		return code;
	*scope = made;
	return 0;
}

struct str scope_text(const struct scope *scope)
{
	return scope->text;
}

uint32_t scope_entries_count(const struct scope *scope)
{
	return scope->entries_count;
}

struct str scope_entry_service(const struct scope *scope, uint32_t index)
{
	CHECK(index < scope->entries_count);
	return scope->entries[index].service;
}

bool scope_text_names(struct str text, struct str service)
{
	struct arena arena;
	struct scope *scope;
	struct scope_diag diag;
	bool named = false;
	arena_init(&arena, 0);
	if (scope_parse(&arena, text, &scope, &diag) == 0)
		for (uint32_t i = 0; i < scope_entries_count(scope); i++)
			named |= str_equal(scope_entry_service(scope, i), service);
	arena_free(&arena);
	return named;
}

uint32_t scope_named_count(const struct scope *scope)
{
	return scope->sites_count;
}

struct str scope_named_site(const struct scope *scope, uint32_t index)
{
	CHECK(index < scope->sites_count);
	return scope->sites[index]->name;
}

bool scope_needs_view(const struct scope *scope)
{
	return scope->needs_view;
}
