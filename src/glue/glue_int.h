/* Inside the room: what a description becomes once it is read. All of it lies in the arena of its struct glue, but for the
 * places, which are owned one by one.
 *
 *   struct glue ── services[] ── trie ──▶ endpoint ── candidates[] ──▶ (operation, template)
 *        └──────── types[] ──── operations[] ── templates[]
 */
#ifndef GLUE_GLUE_INT_H
#define GLUE_GLUE_INT_H

#include "glue/glue.h"

#include "base/arena.h"

/* ---- Templates (template.c) -------------------------------------------------------------------------------------- */

enum glue_variable_kind {
	GLUE_VARIABLE_PLAIN,     /* tells items apart, or says where they are: a namespace, a version */
	GLUE_VARIABLE_ID,        /* the id of the item */
	GLUE_VARIABLE_REFERENCE, /* the id of another item */
};

struct glue_variable {
	struct str name;
	enum glue_variable_kind kind;
	const struct glue_type *type; /* of what it is the id; NULL: plain, or a reference to any type */
	enum glue_kind relation;      /* of a reference */
	uint32_t segment;             /* which of the path's it is */
	bool ignored;                 /* does not tell items apart */
};

/* A path of an operation. glue_match's values[i] is what stood for variables[i]. */
struct glue_template {
	struct str text;                 /* whole, for people: "/v2/images/{id}/file" */
	struct str *segments;            /* of a literal; `at` is NULL for a variable */
	struct glue_variable *variables; /* from left to right */
	uint32_t segments_count;
	uint32_t variables_count;
	uint32_t prefix_segments; /* of the service's `under`, and before `{item}`: come first, say nothing of the item */
	uint32_t collection_segments; /* the first so many, with the prefix, are the collection's path */
	int32_t id_variable;          /* index of the item's id; -1: the path is that of no item */
	bool takes_rest;              /* the last variable stands for all segments that are left: {path*} */
};

/* ---- Types and operations ---------------------------------------------------------------------------------------- */

/* A list of texts, or of JSON pointers. */
struct glue_texts {
	struct str *at;
	uint32_t count;
};

/* A place that holds the id of another item: a pointer within the object, or the name of a query's member. */
struct glue_reference {
	struct str place;
	const struct glue_type *type; /* NULL: of any */
	enum glue_kind kind;
	uint32_t line, column; /* in the file */
};

struct glue_references {
	struct glue_reference *at;
	uint32_t count;
};

/* Types that are used without naming an id. */
struct glue_uses {
	const struct glue_type **at;
	uint32_t count;
};

/* A member that the query has to have. */
struct glue_condition {
	struct str name;
	struct glue_texts values; /* one of them; none: any value */
};

enum glue_body {
	GLUE_BODY_ITEM,
	GLUE_BODY_LIST,
	GLUE_BODY_STREAM,
	GLUE_BODY_OPAQUE,
	GLUE_BODY_NONE,
};

struct glue_operation {
	struct str name;
	const struct glue_type *type;
	uint32_t methods; /* bits of enum glue_method */
	enum glue_effect effect;
	struct str facet;
	struct glue_texts contents; /* media types; none: any */
	struct glue_condition *conditions;
	uint32_t conditions_count;
	struct str key;      /* of the body's first member; "": does not matter; "*": there is one */
	enum glue_body body; /* GLUE_BODY_ITEM, OPAQUE or NONE */
	enum glue_body answer;
	bool for_service;  /* its answer is read by services */
	struct str object; /* pointer to the object in its bodies; "": the body is it */
	bool creates;
	bool repeatable;
	bool replays;
	struct glue_references own;      /* in its bodies only */
	struct glue_references beside;   /* in its bodies, not within the object */
	struct glue_uses uses;           /* its own */
	struct glue_texts divide;        /* numbers in its body that are split over sites */
	struct glue_relation *relations; /* all that it may use */
	uint32_t relations_count;
	uint32_t facet_number; /* 0: the item itself */
	struct glue_template *templates;
	uint32_t templates_count;
	const struct glue_places *request_places; /* owned by the type */
	const struct glue_places *answer_places;
	uint32_t line, column; /* in the file; 0: a default one */
};

/* What was said of two operations: each is the name of an operation, or of an effect. */
struct glue_rule {
	struct str x;
	struct str y;
	enum glue_resolution resolution;
};

struct glue_type {
	struct str name;                    /* whole, as written: "image.image", "*.{plural}" */
	struct str service_name;            /* "image"; "*": of any service */
	struct str short_name;              /* "image", "{plural}" */
	const struct glue_service *service; /* NULL: of any */
	enum glue_identity identity;
	struct str object;       /* pointers: to the object in an item's body, */
	struct str list;         /* to the array in a list's, */
	struct glue_texts ids;   /* and within the object to its id (the first that is there), */
	struct str natural_name; /* its name ("": has none), */
	struct glue_texts links;
	struct glue_texts volatiles;     /* and to what may differ between replicas, */
	struct glue_texts sets;          /* in any order, */
	struct glue_texts derived;       /* what its service finds out by itself, */
	struct glue_texts preconditions; /* or has to be so for a request to be carried out */
	struct glue_texts paging;        /* members of a list's query that ask for a page, */
	struct glue_texts sort;          /* or an order */
	struct str next;                 /* what says in a list that there is another page; "": nothing does */
	struct str most;                 /* what asks for the longest page; "" */
	struct glue_references in_body;
	struct glue_references in_query;
	struct glue_references in_path; /* by the names of variables */
	struct glue_uses uses;          /* by operations that change something */
	struct glue_texts ignored;      /* variables */
	enum glue_owner owner;
	enum glue_relied relied;
	bool may_be_relied; /* something refers to it, or to any type, and relies on that */
	struct glue_cross cross;
	bool unique;
	bool alike; /* what is the same at two sites, byte by byte, is one thing that was set up alike */
	bool ids_in_collection;
	bool delete_wins;
	struct str find; /* "name={name}"; "": there is no such query */
	struct glue_template *collections;
	uint32_t collections_count;
	struct glue_template *items;
	uint32_t items_count;
	struct glue_template *lists;
	uint32_t lists_count;
	struct glue_operation *operations;
	uint32_t operations_count;
	struct glue_rule *rules;
	uint32_t rules_count;
	struct str *facets;          /* by number; [0] is "" */
	struct glue_copying *copies; /* by the same; NULL: nothing is said of any */
	uint32_t facets_count;
	struct glue_places **places; /* all that its operations use, to be freed */
	uint32_t places_count;
	const struct glue_places *item_places; /* of them: what most operations use; NULL: none does */
	const struct glue_places *list_places;
	uint32_t line, column; /* in the file */
};

/* ---- Services and the trie of paths (trie.c) --------------------------------------------------------------------- */

/* One of the operations that an endpoint's path may mean; those that ask for more come first. */
struct glue_candidate {
	const struct glue_operation *operation;
	const struct glue_template *template;
};

struct glue_node;

struct glue_credentials {
	struct glue_texts headers;
	enum glue_credential run;
	uint32_t refused[LIMIT_GLUE_STATUSES];
	uint32_t refused_count;
};

struct glue_error_name {
	unsigned status;
	struct str name;
};

/* How a service tells its errors (failure.c). */
struct glue_shape {
	struct str type; /* of the content */
	struct str body; /* "": not said */
	const struct glue_error_name *names;
	uint32_t names_count;
	struct str other; /* the name of those that have none of their own */
};

struct glue_service {
	struct glue_service_about about;
	struct glue_shape shape;
	struct glue_credentials credentials;
	struct glue_texts under; /* prefixes, each beginning with `/` */
	struct glue_node *root;
};

struct glue {
	struct arena arena;
	struct str application;
	uint64_t digest;
	struct glue_service *services; /* one of them may be `*`: any that is not named */
	uint32_t services_count;
	struct glue_service *any; /* that one; NULL: there is none */
	struct glue_type *types;
	uint32_t types_count;
};

/* ---- For the splicer --------------------------------------------------------------------------------------------- */

/* What a path is, whatever the method: for links. Fills values as glue_match() does; NULL: unknown. */
const struct glue_template *glue_find_template(const struct glue *glue, struct str service, struct str path,
                                               struct glue_value values[LIMIT_GLUE_VARIABLES], uint32_t *values_count,
                                               const struct glue_type **type);

/* facet.c: is it asked for by its method and its path, which is below that of an item, alone? And the GET so of a facet; NULL. */
bool glue_operation_is_plain(const struct glue_operation *operation);
const struct glue_operation *glue_facet_reader(const struct glue_type *type, uint32_t number);

/* splice_target.c: where the path of a link begins: behind `http://host:port`, or `//host:port`. */
size_t glue_link_path(struct str link);

/* known.c: a segment of a path as it stands in a collection: two ways to write one percent-encoded byte are one. */
void glue_segment_put(struct buf *out, struct str segment);

#endif
