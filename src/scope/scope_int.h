/* Inside the scope room: the syntax tree, the lexer, the table of functions, and how errors are made. */
#ifndef SCOPE_SCOPE_INT_H
#define SCOPE_SCOPE_INT_H

#include "base/text.h"
#include "scope/scope.h"

/* ---- The lexer -------------------------------------------------------------------------------------------------- */

/* Walks over a text. For the location inside a JSON string the text is the decoded one, and `origin` says where each of
 * its bytes stood in the text that the user wrote, so that errors point there. */
struct scope_lexer {
	struct arena *arena;
	struct str text;
	uint32_t at;
	uint32_t shift;         /* added to offsets where there is no origin table */
	const uint16_t *origin; /* text.length + 1 entries, or NULL */
	struct scope_diag *diag;
};

int scope_lex(struct scope_lexer *lexer, struct scope_token *token);

/* Where a place of the lexer's text stands in the text that the user wrote. */
uint32_t scope_lex_offset(const struct scope_lexer *lexer, uint32_t at);

/* The table of origins for the decoded text of a string token that had escapes. `token` is at its opening quote. */
const uint16_t *scope_lex_origins(const struct scope_lexer *lexer, const struct scope_token *token);

/* Can the name stand without quotes, as far as its characters go? */
bool scope_is_word(struct str name);

/* ---- The tree --------------------------------------------------------------------------------------------------- */

/* Tighter binding is greater: the printer compares these. */
enum scope_node_kind {
	SCOPE_NODE_OTHERWISE,
	SCOPE_NODE_ANY,
	SCOPE_NODE_ALL,
	SCOPE_NODE_SPAN,
	SCOPE_NODE_NOT,
	SCOPE_NODE_SITE,
	SCOPE_NODE_CALL,
	/* arguments only */
	SCOPE_NODE_DURATION,
	SCOPE_NODE_INTEGER,
	SCOPE_NODE_TAG,
};

enum scope_function {
	SCOPE_FN_AROUND,
	SCOPE_FN_ALL,
	SCOPE_FN_NEAREST,
	SCOPE_FN_TAGGED,
	SCOPE_FN_FALLBACK,
	SCOPE_FN_EITHER,
	SCOPE_FN_STRONG,
	SCOPE_FN_EVENTUAL,
	SCOPE_FN_WEAK,
	SCOPE_FN_WITH_REQUIREMENTS,
	SCOPE_FN_COUNT,
};

struct scope_node {
	enum scope_node_kind kind;
	enum scope_function function; /* SCOPE_NODE_CALL */
	uint32_t offset;              /* in the user's text */
	uint32_t length;
	uint32_t children;        /* how many follow `first` */
	struct scope_node *first; /* operands or arguments */
	struct scope_node *next;  /* sibling */
	uint32_t ordinal;         /* SITE: its place in scope->sites */
	uint32_t twin;            /* SITE, once checked: the ordinal of the first one with the same name */
	struct str name;          /* SITE: its name; TAG: the key */
	struct str value;         /* TAG */
	int64_t number;           /* DURATION in µs, INTEGER */
};

struct scope_entry {
	struct str service; /* "": the one that the request is addressed to */
	uint32_t offset;
	uint32_t length;
	struct scope_node *location;
};

struct scope {
	struct str text;
	struct scope_entry *entries;
	uint32_t entries_count;
	uint32_t sites_count;      /* SITE nodes */
	struct scope_node **sites; /* each of them */
	bool needs_view;
	bool checked;
	uint32_t warnings_count;
	struct str *warnings;
};

/* ---- Functions -------------------------------------------------------------------------------------------------- */

enum scope_argument {
	SCOPE_ARG_NONE,
	SCOPE_ARG_SITE,     /* one site, by name */
	SCOPE_ARG_LOCATION, /* anything */
	SCOPE_ARG_DURATION,
	SCOPE_ARG_INTEGER,
	SCOPE_ARG_TAGS, /* one or more key=value */
};

struct scope_function_info {
	struct str name;
	enum scope_argument arguments[2];
	const char *example; /* in hints: "around(Site1, 10ms)" */
};

extern const struct scope_function_info scope_functions[SCOPE_FN_COUNT];

/* What with_requirements() is put around; anything else is itself. */
static inline const struct scope_node *scope_unwrap(const struct scope_node *location)
{
	bool wrapped = location->kind == SCOPE_NODE_CALL && location->function == SCOPE_FN_WITH_REQUIREMENTS;
	return wrapped ? location->first : location;
}

/* SCOPE_FN_COUNT if there is none of that name. */
enum scope_function scope_function_find(struct str name);

/* ---- Numbers ---------------------------------------------------------------------------------------------------- */

enum scope_number {
	SCOPE_NUMBER_NONE,         /* does not look like a number */
	SCOPE_NUMBER_INTEGER,      /* 3 */
	SCOPE_NUMBER_DURATION,     /* 10ms, 1.5s */
	SCOPE_NUMBER_OTHER_UNIT,   /* 10parsec */
	SCOPE_NUMBER_OUT_OF_RANGE, /* past what is accepted, or finer than 1 µs */
};

/* What a word is when a number is wanted. Durations come in µs. */
enum scope_number scope_number_read(struct str word, int64_t *value);

/* Would a reader take the word for a number or a duration? Then it needs quotes to be a site. `3com` does not. */
bool scope_reads_as_number(struct str word);

void scope_duration_print(struct buf *out, int64_t duration_us);

/* ---- Errors ----------------------------------------------------------------------------------------------------- */

struct scope_place {
	uint32_t offset;
	uint32_t length;
};

static inline struct scope_place scope_node_place(const struct scope_node *node)
{
	return (struct scope_place){node->offset, node->length};
}

/* Fills in place, fault and message, clears the hint, and returns the code that belongs to the fault. */
__attribute__((format(printf, 4, 5))) int scope_refuse(struct scope_diag *diag, enum scope_fault fault,
                                                       struct scope_place place, const char *format, ...);

/* Adds the hint, and returns `code` so that it can end a return statement. */
__attribute__((format(printf, 3, 4))) int scope_hint(struct scope_diag *diag, int code, const char *format, ...);

/* The one refusal that tokens and parser share: the text is longer than the limit. */
int scope_refuse_length(struct scope_diag *diag, struct str text);

/* ---- Printing --------------------------------------------------------------------------------------------------- */

void scope_print_node(struct buf *out, const struct scope_node *node);

/* Keeps a warning, up to LIMIT_SCOPE_WARNINGS of them. */
struct scope_warnings {
	struct arena *arena;
	struct str *list;
	uint32_t count;
};

__attribute__((format(printf, 2, 3))) void scope_warn(struct scope_warnings *warnings, const char *format, ...);

#endif
