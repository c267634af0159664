/* The parser's state and helpers, shared by its files: parser.c (the grammar), call.c (functions), json.c (the JSON form). */
#ifndef SCOPE_PARSER_H
#define SCOPE_PARSER_H

#include "scope/scope_int.h"

struct scope_parser {
	struct scope_lexer lexer;
	struct scope_token token;         /* the next one, not yet passed */
	uint32_t end;                     /* where the last passed token ended */
	enum scope_token_kind operand_of; /* whose operand is being read, for messages; END: none */
	uint32_t depth;
	uint32_t calls;
	struct scope *scope;
};

/* A token as messages name it. */
#define SCOPE_TOKEN_FMT "%s%.*s%s%s"
#define SCOPE_TOKEN_ARG(t)                                                                                             \
	((t).kind == SCOPE_TOKEN_END ? "the end" : "`"), STR_FMT(text_shown((t).text)), text_ellipsis((t).text),           \
		((t).kind == SCOPE_TOKEN_END ? "" : "`")

static inline struct scope_place scope_token_place(const struct scope_token *token)
{
	return (struct scope_place){token->offset, token->length};
}

static inline bool scope_token_is_name(enum scope_token_kind kind)
{
	return kind == SCOPE_TOKEN_WORD || kind == SCOPE_TOKEN_STRING;
}

static inline bool scope_token_is_operator(enum scope_token_kind kind)
{
	return kind >= SCOPE_TOKEN_SPAN;
}

/* Passes the next token. */
int scope_parser_advance(struct scope_parser *parser);

/* One level deeper (the caller lowers parser->depth again); one more call or `!`. They refuse what is past the limits. */
int scope_parser_enter(struct scope_parser *parser, struct scope_place place);
int scope_parser_count_call(struct scope_parser *parser, struct scope_place place);

struct scope_node *scope_parser_node(struct scope_parser *parser, enum scope_node_kind kind, struct scope_place place);
void scope_node_append(struct scope_node *node, struct scope_node **tail, struct scope_node *child);

/* `word` (a word or a string) has been passed, and no parenthesis follows: makes the site of it. */
int scope_parser_site(struct scope_parser *parser, struct scope_token word, struct scope_node **out);

/* `word` has been passed, and the parenthesis is next. */
int scope_parse_call(struct scope_parser *parser, const struct scope_token *word, struct scope_node **out);

/* A location of operators that bind at least as tightly as `loosest`. */
int scope_parse_location(struct scope_parser *parser, enum scope_node_kind loosest, struct scope_node **out);
int scope_parse_unary(struct scope_parser *parser, struct scope_node **out);

int scope_parser_add_entry(struct scope_parser *parser, struct str service, struct scope_place place,
                           struct scope_node *location);

/* Refuses what is left of the text. */
int scope_parser_finish(struct scope_parser *parser);

/* The parser is at the opening brace: is this a JSON object of strings? If so, scope_parse_json() reads it. */
bool scope_is_json(const struct scope_parser *parser);
int scope_parse_json(struct scope_parser *parser);

#endif
