/* Calls: a function, its arguments, and what can be wrong with them. */
#include "scope/parser.h"

#include "base/check.h"

/* What is wrong with an argument that is there but of another kind. */
static int refuse_argument(struct scope_parser *parser, enum scope_function function, const char *wanted)
{
	const struct scope_function_info *info = &scope_functions[function];
	int code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_ARGUMENT_KIND, scope_token_place(&parser->token),
	                        "%.*s() expects %s here, found " SCOPE_TOKEN_FMT, STR_FMT(info->name), wanted,
	                        SCOPE_TOKEN_ARG(parser->token));
	return scope_hint(parser->lexer.diag, code, "as in `%s`", info->example);
}

static int parse_duration(struct scope_parser *parser, enum scope_function function, struct scope_node **out)
{
	struct scope_diag *diag = parser->lexer.diag;
	struct scope_token word = parser->token;
	int64_t value = 0;
	enum scope_number number = word.kind == SCOPE_TOKEN_WORD ? scope_number_read(word.text, &value) : SCOPE_NUMBER_NONE;
	int code;
	switch (number) {
	case SCOPE_NUMBER_DURATION:
		*out = scope_parser_node(parser, SCOPE_NODE_DURATION, scope_token_place(&word));
		(*out)->number = value;
		return scope_parser_advance(parser);
	case SCOPE_NUMBER_INTEGER:
		code = scope_refuse(diag, SCOPE_FAULT_UNKNOWN_UNIT, scope_token_place(&word),
		                    TEXT_NAME_FMT " is a duration without a unit", TEXT_NAME(word.text));
		return scope_hint(diag, code, "write `%.*sms`, without a space, or use us or s",
		                  STR_FMT(text_shown(word.text)));
	case SCOPE_NUMBER_OTHER_UNIT:
		code = scope_refuse(diag, SCOPE_FAULT_UNKNOWN_UNIT, scope_token_place(&word), "unknown unit in " TEXT_NAME_FMT,
		                    TEXT_NAME(word.text));
		return scope_hint(diag, code, "durations are in us, ms or s: `10ms`");
	case SCOPE_NUMBER_OUT_OF_RANGE:
		code = scope_refuse(diag, SCOPE_FAULT_NUMBER_RANGE, scope_token_place(&word),
		                    "the duration " TEXT_NAME_FMT " is out of range", TEXT_NAME(word.text));
		return scope_hint(diag, code, "durations go up to %ds, in whole microseconds", LIMIT_SCOPE_DURATION_S);
	case SCOPE_NUMBER_NONE: break;
	}
	return refuse_argument(parser, function, "a duration");
}

static int parse_integer(struct scope_parser *parser, enum scope_function function, struct scope_node **out)
{
	struct scope_token word = parser->token;
	int64_t value = 0;
	enum scope_number number = word.kind == SCOPE_TOKEN_WORD ? scope_number_read(word.text, &value) : SCOPE_NUMBER_NONE;
	bool integer = number == SCOPE_NUMBER_INTEGER || (number == SCOPE_NUMBER_OUT_OF_RANGE && word.text.length > 12);
	if (!integer)
		return refuse_argument(parser, function, "a whole number");
	if (number == SCOPE_NUMBER_OUT_OF_RANGE || value < 1 || value > LIMIT_SCOPE_SITES) {
		int code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_NUMBER_RANGE, scope_token_place(&word),
		                        TEXT_NAME_FMT " sites cannot be chosen", TEXT_NAME(word.text));
		return scope_hint(parser->lexer.diag, code, "a number from 1 to %d", LIMIT_SCOPE_SITES);
	}
	*out = scope_parser_node(parser, SCOPE_NODE_INTEGER, scope_token_place(&word));
	(*out)->number = value;
	return scope_parser_advance(parser);
}

static int parse_tag(struct scope_parser *parser, enum scope_function function, struct scope_node **out)
{
	struct scope_token key = parser->token;
	if (!scope_token_is_name(key.kind))
		return refuse_argument(parser, function, "key=value");
	int code = scope_parser_advance(parser);
	if (code)
		return code;
	if (parser->token.kind != SCOPE_TOKEN_EQUALS)
		return refuse_argument(parser, function, "`=` and a value");
	code = scope_parser_advance(parser);
	if (code)
		return code;
	struct scope_token value = parser->token;
	if (!scope_token_is_name(value.kind))
		return refuse_argument(parser, function, "a value");
	code = scope_parser_advance(parser);
	if (code)
		return code;
	*out = scope_parser_node(parser, SCOPE_NODE_TAG, (struct scope_place){key.offset, parser->end - key.offset});
	(*out)->name = key.text;
	(*out)->value = value.text;
	return 0;
}

/* The site that around() starts from: one site, by its name. */
static int parse_site_argument(struct scope_parser *parser, enum scope_function function, struct scope_node **out)
{
	struct scope_token word = parser->token;
	bool number = word.kind == SCOPE_TOKEN_WORD && scope_reads_as_number(word.text);
	if (number || !scope_token_is_name(word.kind))
		return refuse_argument(parser, function, "a site");
	int code = scope_parser_advance(parser);
	if (code)
		return code;
	if (parser->token.kind == SCOPE_TOKEN_OPEN || scope_token_is_operator(parser->token.kind)) {
		code = scope_refuse(parser->lexer.diag, SCOPE_FAULT_ARGUMENT_KIND, scope_token_place(&parser->token),
		                    "%.*s() starts from one site, by its name", STR_FMT(scope_functions[function].name));
		return scope_hint(parser->lexer.diag, code,
		                  "as in `%s`; join several: `around(Site1, 10ms); around(Site2, 10ms)`",
		                  scope_functions[function].example);
	}
	return scope_parser_site(parser, word, out);
}

static int parse_argument(struct scope_parser *parser, enum scope_function function, enum scope_argument kind,
                          struct scope_node **out)
{
	parser->operand_of = SCOPE_TOKEN_END;
	switch (kind) {
	case SCOPE_ARG_SITE: return parse_site_argument(parser, function, out);
	case SCOPE_ARG_LOCATION: return scope_parse_location(parser, SCOPE_NODE_OTHERWISE, out);
	case SCOPE_ARG_DURATION: return parse_duration(parser, function, out);
	case SCOPE_ARG_INTEGER: return parse_integer(parser, function, out);
	case SCOPE_ARG_TAGS: return parse_tag(parser, function, out);
	case SCOPE_ARG_NONE: break;
	}
	UNREACHABLE("an argument kind that is not in the grammar");
}

static uint32_t arguments_wanted(enum scope_function function)
{
	const enum scope_argument *kinds = scope_functions[function].arguments;
	return kinds[0] == SCOPE_ARG_NONE ? 0 : kinds[1] == SCOPE_ARG_NONE ? 1 : 2;
}

/* Too few or too many arguments, or something else than `,` or `)` behind one. */
static int refuse_argument_count(struct scope_parser *parser, const struct scope_node *call)
{
	static const char *const counts[] = {"no argument", "one argument", "two arguments"};
	struct scope_diag *diag = parser->lexer.diag;
	const struct scope_function_info *info = &scope_functions[call->function];
	enum scope_token_kind found = parser->token.kind;
	struct scope_place place = scope_token_place(&parser->token);
	uint32_t wanted = arguments_wanted(call->function);
	int code;
	if (found == SCOPE_TOKEN_END)
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place, "the call of %.*s() is not closed", STR_FMT(info->name));
	else if (wanted > 0 && found != SCOPE_TOKEN_COMMA && found != SCOPE_TOKEN_CLOSE)
		code = scope_refuse(diag, SCOPE_FAULT_SYNTAX, place,
		                    "expected `,` or `)` in the call of %.*s(), found " SCOPE_TOKEN_FMT, STR_FMT(info->name),
		                    SCOPE_TOKEN_ARG(parser->token));
	else if (call->function == SCOPE_FN_AROUND && call->children == 1)
		code = scope_refuse(diag, SCOPE_FAULT_ARGUMENT_COUNT, place, "around() needs a radius: how far from the site");
	else if (call->function == SCOPE_FN_TAGGED)
		code = scope_refuse(diag, SCOPE_FAULT_ARGUMENT_COUNT, place, "tagged() takes one to %d tags", LIMIT_SCOPE_TAGS);
	else
		code = scope_refuse(diag, SCOPE_FAULT_ARGUMENT_COUNT, place, "%.*s() takes %s", STR_FMT(info->name),
		                    counts[wanted]);
	return scope_hint(diag, code, "as in `%s`", info->example);
}

/* The arguments and the closing parenthesis; the opening one has been passed. */
static int parse_arguments(struct scope_parser *parser, struct scope_node *call)
{
	const struct scope_function_info *info = &scope_functions[call->function];
	bool tags = info->arguments[0] == SCOPE_ARG_TAGS;
	uint32_t wanted = arguments_wanted(call->function), most = tags ? LIMIT_SCOPE_TAGS : wanted;
	struct scope_node *tail = NULL;
	while (call->children < most) {
		if (parser->token.kind == SCOPE_TOKEN_CLOSE || parser->token.kind == SCOPE_TOKEN_END)
			break;
		struct scope_node *argument = NULL;
		enum scope_argument kind = info->arguments[tags ? 0 : call->children];
		int code = parse_argument(parser, call->function, kind, &argument);
		if (code)
			return code;
		scope_node_append(call, &tail, argument);
		if (parser->token.kind != SCOPE_TOKEN_COMMA || call->children == most)
			break;
		code = scope_parser_advance(parser);
		if (code)
			return code;
	}
	if (call->children < wanted || parser->token.kind != SCOPE_TOKEN_CLOSE)
		return refuse_argument_count(parser, call);
	int code = scope_parser_advance(parser);
	call->length = parser->end - call->offset;
	return code;
}

static int refuse_function(struct scope_parser *parser, const struct scope_token *word)
{
	struct scope_diag *diag = parser->lexer.diag;
	if (word->kind == SCOPE_TOKEN_STRING) {
		int code =
			scope_refuse(diag, SCOPE_FAULT_SYNTAX, scope_token_place(&parser->token), "a quoted name cannot be called");
		return scope_hint(diag, code,
		                  "write the function without quotes, or join the site and the parentheses by an operator");
	}
	struct suggest suggest;
	suggest_start(&suggest, word->text);
	for (enum scope_function f = 0; f < SCOPE_FN_COUNT; f++)
		suggest_offer(&suggest, scope_functions[f].name);
	int code = scope_refuse(diag, SCOPE_FAULT_UNKNOWN_FUNCTION, scope_token_place(word),
	                        "unknown function " TEXT_NAME_FMT, TEXT_NAME(word->text));
	if (suggest.best.length)
		return scope_hint(diag, code, "did you mean `%s`?", scope_functions[scope_function_find(suggest.best)].example);
	return scope_hint(
		diag, code,
		"functions are around, all, nearest, tagged, fallback, either, strong, eventual, weak and with_requirements; "
		"sites are joined by an operator: `Site1 & (Site2; Site3)`");
}

int scope_parse_call(struct scope_parser *parser, const struct scope_token *word, struct scope_node **out)
{
	enum scope_function function = word->kind == SCOPE_TOKEN_WORD ? scope_function_find(word->text) : SCOPE_FN_COUNT;
	if (function == SCOPE_FN_COUNT)
		return refuse_function(parser, word);
	int code = scope_parser_enter(parser, scope_token_place(word));
	if (code == 0)
		code = scope_parser_count_call(parser, scope_token_place(word));
	if (code == 0)
		code = scope_parser_advance(parser);
	if (code)
		return code;
	struct scope_node *call = scope_parser_node(parser, SCOPE_NODE_CALL, scope_token_place(word));
	call->function = function;
	code = parse_arguments(parser, call);
	if (code)
		return code;
	enum scope_argument first = scope_functions[function].arguments[0];
	if (first != SCOPE_ARG_LOCATION)
		parser->scope->needs_view = true;
	parser->depth--;
	*out = call;
	return 0;
}
