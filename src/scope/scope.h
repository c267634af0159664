/* scope-lang: where a request is to run (docs/scope-lang.md).
 *
 *     text --scope_parse--> scope --scope_check--> meaningful scope --scope_evaluate + view--> plan
 *
 * The room is pure: it does no I/O, reads no clock, and takes memory from the caller's arena only. A checked scope and a
 * plan never change again, so threads may share them as long as their arena lives.
 *
 * Every function that can refuse its input returns 0 or a negative code of base/err.h, and tells a person why in a
 * struct scope_diag.
 */
#ifndef SCOPE_SCOPE_H
#define SCOPE_SCOPE_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/hash.h"
#include "base/limits.h"
#include "base/str.h"

/* ---- Diagnostics ---------------------------------------------------------------------------------------------- */

/* What can be wrong with a scope. The names that programs see (scope_fault_name) never change. */
enum scope_fault {
	SCOPE_FAULT_NONE,
	/* the text */
	SCOPE_FAULT_EMPTY,
	SCOPE_FAULT_TOO_LONG,
	SCOPE_FAULT_INVALID_UTF8,
	SCOPE_FAULT_CONTROL_CHARACTER,
	SCOPE_FAULT_UNEXPECTED_CHARACTER,
	SCOPE_FAULT_UNTERMINATED_STRING,
	SCOPE_FAULT_BAD_ESCAPE,
	SCOPE_FAULT_EMPTY_NAME,
	/* the grammar */
	SCOPE_FAULT_SYNTAX,
	SCOPE_FAULT_TOO_DEEP,
	SCOPE_FAULT_TOO_MANY_SITES,
	SCOPE_FAULT_TOO_MANY_CALLS,
	SCOPE_FAULT_TOO_MANY_ENTRIES,
	SCOPE_FAULT_DUPLICATE_SERVICE,
	SCOPE_FAULT_RESERVED_NAME,
	SCOPE_FAULT_NOT_A_SITE,
	SCOPE_FAULT_UNKNOWN_FUNCTION,
	SCOPE_FAULT_ARGUMENT_COUNT,
	SCOPE_FAULT_ARGUMENT_KIND,
	SCOPE_FAULT_NUMBER_RANGE,
	SCOPE_FAULT_UNKNOWN_UNIT,
	/* the meaning */
	SCOPE_FAULT_NO_MEANING,
	SCOPE_FAULT_SAME_SITE_TWICE,
	SCOPE_FAULT_MIXED_CONSISTENCY,
	SCOPE_FAULT_AMBIGUOUS_SERVICE,
	/* the view */
	SCOPE_FAULT_UNKNOWN_SITE,
	SCOPE_FAULT_UNKNOWN_SERVICE,
	SCOPE_FAULT_NO_SITE_LEFT,
	SCOPE_FAULT_VERSION_MISMATCH,
	SCOPE_FAULT_COUNT,
};

struct scope_diag {
	enum scope_fault fault;
	uint32_t offset; /* where in the text, in bytes; at its end when something is missing there */
	uint32_t length; /* how much of it; 0 at the end of the text */
	char message[LIMIT_ERROR_TEXT_BYTES];
	char hint[LIMIT_ERROR_TEXT_BYTES]; /* what would be right; "" where nothing useful can be said */
};

/* "unknown-site", "syntax", ... */
const char *scope_fault_name(enum scope_fault fault);

/* Line and column (in characters), both from 1. */
void scope_diag_position(struct str text, const struct scope_diag *diag, unsigned *line, unsigned *column);

/* Message, the line of the text with carets below it, and the hint, as a person reads them. */
void scope_diag_render(struct buf *out, struct str text, const struct scope_diag *diag, bool colour);

/* {"type":…,"message":…,"offset":…,"length":…,"hint":…} */
void scope_diag_json(struct buf *out, const struct scope_diag *diag);

/* ---- Text to scope -------------------------------------------------------------------------------------------- */

struct scope; /* a parsed scope; lives in the arena that it was parsed into */

/* Reads any of the accepted forms: canonical, in braces, JSON object, Service/Site, bare location. Copies the text. On
 * error *scope is left alone and diag says why. */
int scope_parse(struct arena *arena, struct str text, struct scope **scope, struct scope_diag *diag);

/* Refuses what parses but has no meaning, and keeps what is only doubtful as warnings (they show up in each plan). A
 * scope has to be checked once before it is evaluated; it does not change afterwards. */
int scope_check(struct arena *arena, struct scope *scope, struct scope_diag *diag);

struct str scope_text(const struct scope *scope);

/* The services that the scope names, in its order; "" for the entry without a service. */
uint32_t scope_entries_count(const struct scope *scope);
struct str scope_entry_service(const struct scope *scope, uint32_t index);
/* Is it one of them? Of a text that is no scope, none is. */
bool scope_text_names(struct str text, struct str service);

/* The sites that the scope names anywhere, also as arguments; with repetitions. */
uint32_t scope_named_count(const struct scope *scope);
struct str scope_named_site(const struct scope *scope, uint32_t index);

/* Warnings of scope_check(). */
uint32_t scope_warnings_count(const struct scope *scope);
struct str scope_warning(const struct scope *scope, uint32_t index);

/* Does some part of it (`around`, `!`, `nearest`...) depend on which sites there are? */
bool scope_needs_view(const struct scope *scope);

/* The canonical text. With a service, the entry that names none is printed with that one: this is what travels on
 * with a workflow, since the next service must not take that entry for its own. */
void scope_print(struct buf *out, const struct scope *scope, struct str service);
/* A name as it has to stand in a scope: quoted where it is no word. */
void scope_put_service(struct buf *out, struct str name);
void scope_put_site(struct buf *out, struct str name);

enum scope_token_kind {
	SCOPE_TOKEN_END,
	SCOPE_TOKEN_WORD,   /* a bare name, a number or a duration */
	SCOPE_TOKEN_STRING, /* a quoted name */
	SCOPE_TOKEN_OPEN,   /* ( */
	SCOPE_TOKEN_CLOSE,  /* ) */
	SCOPE_TOKEN_LBRACE,
	SCOPE_TOKEN_RBRACE,
	SCOPE_TOKEN_COLON,
	SCOPE_TOKEN_COMMA,
	SCOPE_TOKEN_SLASH,
	SCOPE_TOKEN_EQUALS,
	SCOPE_TOKEN_NOT,
	SCOPE_TOKEN_SPAN,      /* % */
	SCOPE_TOKEN_ALL,       /* & */
	SCOPE_TOKEN_ANY,       /* | */
	SCOPE_TOKEN_OTHERWISE, /* ; */
};

struct scope_token {
	enum scope_token_kind kind;
	uint32_t offset;
	uint32_t length;
	struct str text; /* of a word or string: the name it stands for, escapes resolved */
};

/* All tokens of a text, without the END. For tools: the parser itself takes them one by one. */
int scope_tokens(struct arena *arena, struct str text, struct scope_token **tokens, uint32_t *count,
                 struct scope_diag *diag);

/* "word", "string", "(", "&", ... */
const char *scope_token_name(enum scope_token_kind kind);

/* ---- The view: what is known of the world ---------------------------------------------------------------------- */

/* In the order in which sites are tried. */
enum scope_state {
	SCOPE_PRESENT, /* it answers */
	SCOPE_UNKNOWN, /* nothing heard of it since some time */
	SCOPE_ABSENT,  /* it is known to be away */
};

#define SCOPE_NO_INDEX UINT32_MAX
#define SCOPE_RTT_UNKNOWN INT64_C(-1)

struct scope_site {
	struct str name;
	enum scope_state state;
	int64_t since_ms; /* since when it is in this state, in ms since 1970; 0: not known */
};

/* Sites and services are numbered from 0; numbers and strings are valid for as long as the epoch stays the same. All
 * functions are pure reads: a view may be used by several threads at once. */
struct scope_view {
	const void *context;
	uint64_t
		epoch; /* changes with every change of what the view would answer; a cache serves views of one origin only */
	uint32_t sites_count;
	uint32_t services_count; /* 0: the view knows nothing of services */
	struct scope_site (*site)(const void *context, uint32_t site);
	uint32_t (*find_site)(const void *context, struct str name);
	/* Round trip in µs, or SCOPE_RTT_UNKNOWN. */
	int64_t (*rtt_us)(const void *context, uint32_t from, uint32_t to);
	/* The n-th tag of a site; false past the last. */
	bool (*tag)(const void *context, uint32_t site, uint32_t n, struct str *key, struct str *value);
	struct str (*service)(const void *context, uint32_t service);
	uint32_t (*find_service)(const void *context, struct str name);
	/* Is there an instance of the service at the site, and in which version ("" if that is not known)? */
	bool (*offers)(const void *context, uint32_t service, uint32_t site, struct str *version);
};

/* A view in memory, filled by hand: for tools, tests, and agents with a fixed list of peers. Add the sites first.
 * Strings are copied into the arena, in which the table lives. Adding returns the number, or SCOPE_NO_INDEX where the
 * name is taken or LIMIT_VIEW_SITES is reached. */
struct scope_table;
struct scope_table *scope_table_new(struct arena *arena);
uint32_t scope_table_add_site(struct scope_table *table, struct scope_site site);
uint32_t scope_table_add_service(struct scope_table *table, struct str name);
void scope_table_tag(struct scope_table *table, uint32_t site, struct str key, struct str value);
/* One way. The way back counts as the same until it is given too. */
void scope_table_set_rtt(struct scope_table *table, uint32_t from, uint32_t to, int64_t rtt_us);
void scope_table_offer(struct scope_table *table, uint32_t service, uint32_t site, struct str version);
/* The view stays valid, with one epoch, until the table changes. */
struct scope_view scope_table_view(const struct scope_table *table);

/* ---- Scope to plan --------------------------------------------------------------------------------------------- */

enum scope_step_op {
	SCOPE_ONE,       /* run at `site` */
	SCOPE_ALL_OF,    /* run at all of them, with `consistency` */
	SCOPE_SPAN_OF,   /* one resource over them; the first is its prime site */
	SCOPE_OTHERWISE, /* the first that works, in this order */
	SCOPE_ANY_OF,    /* whichever answers first */
};

enum scope_consistency {
	SCOPE_EVENTUAL,
	SCOPE_STRONG,
	SCOPE_WEAK,
};

struct scope_step {
	enum scope_step_op op;
	enum scope_consistency consistency; /* SCOPE_ALL_OF only */
	struct str site;                    /* SCOPE_ONE only: name and number in the view */
	uint32_t site_index;
	enum scope_state state; /* of what it needs: the worst of all, the best of a choice */
	int64_t since_ms;       /* SCOPE_ONE only, as in the view */
	int64_t latency_us;     /* expected round trips before the user has an answer, or SCOPE_RTT_UNKNOWN */
	uint32_t of_count;      /* all but SCOPE_ONE: the parts, in the order in which they are tried */
	const struct scope_step *const *of;
};

struct scope_plan {
	struct str service;
	struct str at;
	const struct scope_step *root;
	bool with_requirements; /* what a create requires is brought to where it runs, before it runs */
	uint32_t warnings_count;
	const struct str *warnings;
};

struct scope_request {
	struct str service; /* that the plan is for */
	uint32_t at;        /* the site where the request is now, as a number of the view */
	bool inner;         /* it was sent to another service: the entry without a service is not for this one */
};

/* The plan for one service. All names of the scope are looked up, also those of other services' entries. Where the scope
 * says nothing of the service the plan is to run where the request is. The plan lives in the arena. */
int scope_evaluate(struct arena *arena, const struct scope *scope, const struct scope_request *request,
                   const struct scope_view *view, const struct scope_plan **plan, struct scope_diag *diag);

/* ---- Plans for people and programs ------------------------------------------------------------------------------ */

/* A tree, one step a line, with states and latencies. */
void scope_plan_draw(struct buf *out, const struct scope_plan *plan, bool colour);

/* {"op":"one","site":"Site1"} and so on: the shape documented in docs/scope-lang.md. */
void scope_plan_json(struct buf *out, const struct scope_plan *plan);

/* "all", "one", "eventual", "present", ... */
const char *scope_step_name(enum scope_step_op op);
const char *scope_consistency_name(enum scope_consistency consistency);
const char *scope_state_name(enum scope_state state);

/* ---- Scopes seen before ----------------------------------------------------------------------------------------- */

/* Remembers texts and their plans, so that a repeated scope costs one look-up. Bounded in entries and bytes: a stream of
 * distinct scopes replaces entries and does nothing worse. One cache per event loop: it has no lock. The leases that it
 * gives out may be shared between threads and outlive the cache. */
struct scope_cache;
struct scope_lease;

struct scope_cache_stats {
	uint64_t hits;
	uint64_t misses;
	uint64_t replaced; /* entries that gave way to another */
	size_t bytes;      /* memory of all entries now */
	uint32_t entries;
};

struct scope_cache *scope_cache_new(struct hash_key key);
void scope_cache_free(struct scope_cache *cache);

/* Text to plan. On success *lease has to be given back with scope_lease_drop(). A refused text is not remembered. */
int scope_cache_get(struct scope_cache *cache, struct str text, const struct scope_request *request,
                    const struct scope_view *view, struct scope_lease **lease, struct scope_diag *diag);

const struct scope *scope_lease_scope(const struct scope_lease *lease);
const struct scope_plan *scope_lease_plan(const struct scope_lease *lease);
/* The canonical text, in which the entry that names no service has the one that the plan is for. */
struct str scope_lease_bound(const struct scope_lease *lease);
struct scope_lease *scope_lease_keep(struct scope_lease *lease);
void scope_lease_drop(struct scope_lease *lease);

struct scope_cache_stats scope_cache_stats(const struct scope_cache *cache);

#endif
