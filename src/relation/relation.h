/* Relations between resources (DESIGN 9).
 *
 * Ownership: a type is `global` or `site`-owned by the description. A request whose scope would use a site-owned resource from
 * another site is refused before anything runs. docs/ownership.md has the rules, with a table of examples.
 *
 * The room is pure: a question has all that is needed for an answer.
 */
#ifndef RELATION_RELATION_H
#define RELATION_RELATION_H

#include "glue/glue.h"
#include "scope/scope.h"

/* A request and its scope. */
struct relation_question {
	const struct glue *glue;
	const struct glue_match *match; /* what it is */
	const struct glue_request *request;
	const struct scope *scope;     /* checked */
	const struct scope_plan *plan; /* where the request runs: of its service, made at `at` */
	const struct scope_view *view; /* the one that the plan was made with */
	uint32_t at;                   /* the site where the request is, as a number of the view */
	bool inner;                    /* a service that runs at `at` makes it, on behalf of another request */
	struct str caller;             /* inner: that service; "": not known */
	bool has_body;
	const struct str *body; /* NULL: there is none, or it is not known (yet) */
};

enum relation_verdict {
	RELATION_FINE,
	RELATION_REFUSED,
	RELATION_ASK_BODY, /* what it uses stands in the body, which has to be read first */
};

/* What is known of where an item is. */
enum relation_presence {
	RELATION_UNKNOWN,
	RELATION_THERE,  /* at that site, or on its way to it */
	RELATION_ABSENT, /* not at that site */
	RELATION_GONE,   /* it was replicated, and is deleted */
	RELATION_SINGLE, /* it is no replica, and its id was made by a service: at one site at most */
};

struct relation_whereabouts {
	void *context;
	/* Of the item of that id, at a site as a number of the view. */
	enum relation_presence (*find)(void *context, const struct glue_type *type, struct str id, uint32_t site);
};

/* Why it is refused; slices live in the arena. */
struct relation_refusal {
	struct str site;    /* where the operation would run, */
	struct str service; /* the service that it uses there, */
	struct str type;    /* and the type, of which that site has its own */
	char message
		[LIMIT_ERROR_TEXT_BYTES]; /* "server.create at Site1 expects Site1/network, but the scope gives Site2/network" */
	char hint[LIMIT_ERROR_TEXT_BYTES]; /* what would be right */
};

/* May the request use what its scope gives it? Where it has a body that is no JSON, only what is known without it counts. */
enum relation_verdict relation_check_owner(struct arena *arena, const struct relation_question *question,
                                           struct relation_refusal *refusal);

/* Is what a create requires there at all the sites at which it is to run, or shared by the scope? Only of copies and parts (`&`, `%`):
 * elsewhere the service says it itself. */
enum relation_verdict relation_check_required(struct arena *arena, const struct relation_question *question,
                                              const struct relation_whereabouts *whereabouts,
                                              struct relation_refusal *refusal);

/* What a create requires, and at which sites it has to be there. */
struct relation_need {
	const struct glue_type *type;
	struct str id;         /* lives until `each` returns */
	const uint32_t *sites; /* numbers of the view; so do they */
	uint32_t sites_count;
};

struct relation_needs {
	void *context;
	void (*each)(void *context, const struct relation_need *need);
};

/* Tells of each that is to be brought along: only where the plan says so (`with_requirements(…)`), and to elsewhere. */
enum relation_verdict relation_find_needs(const struct relation_question *question, const struct relation_needs *needs);

#endif
