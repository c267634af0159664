/* Commands that show what an agent answers, once or again and again: `get`, `ops` and `sites`. Here is what they have in
 * common: the options, the help around them, where the agent is, and how often it is asked. */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/client.h"

enum cli_format { CLI_FORMAT_TABLE, CLI_FORMAT_JSON, CLI_FORMAT_YAML };

/* The value of `--output`. */
int cli_format_take(const char *command, const char *value, enum cli_format *format);

/* The options that they all have. A command's table has its own first, and ends with these. */
#define CLI_WATCH_OPTIONS                                                                                              \
	{"watch", 'w', NULL, "show it again every two seconds, until Ctrl-C"},                                             \
		{"output", 'o', "FORMAT", "`table` (default), `json` or `yaml`"},                                              \
		{"api", 0, "ADDRESS", "where the agent is asked, or set CHEOPS_API"},                                          \
		{"config", 'c', "FILE", "the agent's configuration: its `api` is asked"},                                      \
		{"color", 0, "WHEN", "`auto` (default; see NO_COLOR), `always` or `never`"},                                   \
	{                                                                                                                  \
		"help", 'h', NULL, "this help"                                                                                 \
	}

/* A command of this kind. */
struct cli_watcher {
	const char *command;
	const char *about; /* the help in front of the options, with the usage; whole lines */
	const char *more;  /* and behind them */
	const struct cli_option *options;
	int options_own; /* how many of them come before CLI_WATCH_OPTIONS */
	/* An option of its own, or CLI_ARGUMENT. */
	int (*take)(void *call, int kind, const char *value);
	/* Whether what was said goes together; NULL: it always does. */
	int (*check)(const void *call);
	/* Asks, and puts what there is to see. Returns the exit status, and has told what is wrong. */
	int (*show)(const void *call, struct buf *out);
};

/* What the user said with CLI_WATCH_OPTIONS, and where the agent is. */
struct cli_watch {
	enum cli_format format;
	enum cli_colour colour;
	bool again;
	const char *api;
	const char *config;
	struct http_address address;
	void *call; /* the command's own, that this is of */
};

/* Runs the command. `watch` has but its `call` when this is called; it is filled before check() and show(). Returns the
 * exit status. */
int cli_watch_run(const struct cli_watcher *watcher, struct cli_watch *watch, int argc, char **argv);

/* Puts the answer as it is, where it is for programs. False: a table is wanted. */
bool cli_watch_put_data(const struct cli_watch *watch, struct buf *out, json_t *answer);
/* Whether that table has colours. */
bool cli_watch_colour(const struct cli_watch *watch);

#endif
