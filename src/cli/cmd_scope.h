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
	struct arena arena; /* for all that the call makes */
};

/* Each returns the exit status, and prints either a result or a refusal. */
int scope_fmt(struct scope_call *call);
int scope_tokens_list(struct scope_call *call);
int scope_check_text(struct scope_call *call);
int scope_explain(struct scope_call *call);

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
