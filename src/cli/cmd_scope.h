/* Inside `cheops scope`: one call of it, and its four actions. */
#ifndef CLI_CMD_SCOPE_H
#define CLI_CMD_SCOPE_H

#include "cli/cli.h"
#include "scope/scope.h"

/* What the user asked for. */
struct scope_call {
	const char *command;       /* "scope explain" */
	struct str service;        /* --service; "": not given */
	struct str at;             /* --at; "": not given */
	const char *view_path;     /* --view; NULL: not given */
	struct scope_table *table; /* what that file says; NULL: not given */
	bool json;
	enum cli_colour colour;
	struct str text;
	const char *app;    /* --app; NULL: not given. Then there is a request: */
	const char *method; /* NULL: not given */
	const char *path;
	const char *body;   /* NULL: not given */
	struct arena arena; /* for all that the call makes */
};

/* Each returns the exit status, and prints either a result or a refusal. */
int scope_fmt(struct scope_call *call);
int scope_tokens_list(struct scope_call *call);
int scope_check_text(struct scope_call *call);
int scope_explain(struct scope_call *call);

/* Tells why the text is refused: on standard error, or as JSON on standard output. Returns CLI_REFUSED. */
int scope_refused(const struct scope_call *call, const struct scope_diag *diag);

/* scope_owner.c: of check, with --app: may the request use what the scope gives it? Adds a warning, or "". CLI_REFUSED: it may not,
 * and the user has been told. */
int scope_check_request(struct scope_call *call, const struct scope *scope, struct str *warning);

/* Where the plan is made for: the view, and the site in it. */
struct scope_world {
	struct scope_view view;
	uint32_t at;
	struct str warning; /* "": none */
};

/* The world of --view and --at, or without a view the sites that the scope names. Returns CLI_FINE, or CLI_USAGE after
 * having told what is missing. */
int scope_world_make(struct scope_call *call, const struct scope *scope, struct scope_world *world);

#endif
