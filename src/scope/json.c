/* The JSON form: {"compute": "Site1", "image": "Site2 & Site3"}.
 *
 * The keys are names of services, the values are locations in scope-lang. A value is decoded and parsed by a parser of
 * its own, whose places are mapped back, so that an error points into the text that the user wrote.
 */
#include "scope/parser.h"

/* A copy of the parser walks ahead; what it stumbles over is told later by whoever parses the text for good. */
bool scope_is_json(const struct scope_parser *parser)
{
	static const enum scope_token_kind pair[] = {SCOPE_TOKEN_STRING, SCOPE_TOKEN_COLON, SCOPE_TOKEN_STRING};
	struct scope_diag ignored;
	struct scope_parser ahead = *parser;
	ahead.lexer.diag = &ignored;
	do {
		for (size_t i = 0; i < sizeof(pair) / sizeof(pair[0]); i++)
			if (scope_parser_advance(&ahead) != 0 || ahead.token.kind != pair[i])
				return false;
		if (scope_parser_advance(&ahead) != 0)
			return false;
	} while (ahead.token.kind == SCOPE_TOKEN_COMMA);
	return ahead.token.kind == SCOPE_TOKEN_RBRACE;
}

static int parse_value(struct scope_parser *parser, const struct scope_token *value, struct scope_node **location)
{
	bool escaped = value->length != value->text.length + 2;
	struct scope_parser inner = *parser;
	inner.lexer.text = value->text;
	inner.lexer.at = 0;
	inner.lexer.shift = value->offset + 1;
	inner.lexer.origin = escaped ? scope_lex_origins(&parser->lexer, value) : NULL;
	inner.token = (struct scope_token){.kind = SCOPE_TOKEN_END, .offset = value->offset + 1};
	inner.operand_of = SCOPE_TOKEN_END;
	int code = scope_parser_advance(&inner);
	if (code == 0)
		code = scope_parse_location(&inner, SCOPE_NODE_OTHERWISE, location);
	if (code == 0)
		code = scope_parser_finish(&inner);
	parser->calls = inner.calls;
	return code;
}

/* scope_is_json() has seen the tokens, so their kinds are as they should be. */
int scope_parse_json(struct scope_parser *parser)
{
	do {
		int code = scope_parser_advance(parser);
		struct scope_token key = parser->token;
		if (code == 0)
			code = scope_parser_advance(parser);
		if (code == 0)
			code = scope_parser_advance(parser);
		if (code)
			return code;
		struct scope_token value = parser->token;
		struct scope_node *location;
		code = parse_value(parser, &value, &location);
		if (code == 0)
			code = scope_parser_add_entry(parser, key.text, (struct scope_place){key.offset, key.length}, location);
		if (code == 0)
			code = scope_parser_advance(parser);
		if (code)
			return code;
	} while (parser->token.kind == SCOPE_TOKEN_COMMA);
	return scope_parser_advance(parser);
}
