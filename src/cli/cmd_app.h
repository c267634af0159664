/* Inside `cheops app`: one call of it, and its three actions. */
#ifndef CLI_CMD_APP_H
#define CLI_CMD_APP_H

#include "base/arena.h"
#include "cli/cli.h"
#include "glue/glue.h"

enum { APP_ARGUMENTS = 256 };

/* What the user asked for. */
struct app_call {
	const char *command;     /* "app explain" */
	const char *app;         /* --app; NULL: not given */
	struct str service;      /* --service; "": not given */
	struct str content_type; /* --content-type, or -H; "": not given */
	const char *name;        /* --name; NULL: not given */
	bool json;
	const char *arguments[APP_ARGUMENTS];
	uint32_t arguments_count;
	struct arena arena; /* for all that the call makes */
};

/* Each returns the exit status, and prints either a result or a refusal. */
int app_lint(struct app_call *call);
int app_explain(struct app_call *call);
int app_import(struct app_call *call);

/* ---- Shared (app_file.c) ----------------------------------------------------------------------------------------- */

/* Reads a file, or the standard input for "-", of at most so many bytes. CLI_USAGE: it cannot be read, and the user has been
 * told. */
int app_read(const char *path, size_t at_most, struct buf *out);

/* A description by its path, or, without `/` and `.yaml`, by the name of one that is shipped. */
const char *app_path(struct app_call *call, const char *name);

/* Reads and checks it. CLI_REFUSED: it is wrong, and the user has been told. */
int app_open(struct app_call *call, const char *name, struct glue **glue);

/* ---- Shared (app_request.c) -------------------------------------------------------------------------------------- */

/* METHOD and PATH, which may have a query, or be a whole URL. */
int app_request_take(const struct app_call *call, const char *method, const char *target, struct glue_request *request);

/* BODY: as it is, `@FILE`, or `-` for the standard input. */
int app_body_read(const char *argument, struct buf *kept, struct str *body);

/* What the request is: by --service, or else by the one that knows the path. */
int app_service_choose(struct app_call *call, const struct glue *glue, struct glue_request *request,
                       struct glue_match *match, bool *known);

/* For the reader's tables. */
struct hash_key app_hash_key(void);

#endif
