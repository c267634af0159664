/* Inside `cheops site`: one call of it, and its actions.
 *
 *     cmd_site.c    arguments and help
 *     site_local.c  init: what is made at this site alone
 *     site_join.c   join
 *     site_mesh.c   what an agent is asked to do: token, remove, revoke, root
 */
#ifndef CLI_CMD_SITE_H
#define CLI_CMD_SITE_H

#include "cli/client.h"

struct site_call {
	const char *command;  /* "site join" */
	const char *argument; /* NULL: not given */
	const char *config;   /* NULL: not given, as with all that follow */
	const char *api;
	const char *root_cert;
	const char *root_key;
	const char *lifetime;
	const char *ttl;
	bool yes;
	bool force;
};

/* Each returns the exit status, and has told the outcome. */
int site_init(const struct site_call *call);
int site_join(const struct site_call *call);
int site_token(const struct site_call *call);
int site_remove(const struct site_call *call);
int site_revoke(const struct site_call *call);
int site_root(const struct site_call *call);

/* A duration of an option, such as 90d, 12h, 30m or 45s. CLI_USAGE: the user has been told. */
struct site_duration {
	const char *option;
	const char *text; /* NULL: the default */
	int64_t default_ms;
	int64_t most_ms;
};
int site_duration_parse(const struct site_call *call, const struct site_duration *duration, int64_t *ms);

/* Has a running agent of this configuration read everything again, and puts what came of it and what is to be done. */
void site_put_reload(struct buf *out, const struct cli_settings *settings);

/* A name of a site, in backquotes. */
void site_put_name(struct buf *out, struct str name);

#endif
