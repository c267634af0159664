/* Commands that ask an agent: where it is, the question, and its answer as JSON. */
#ifndef CLI_CLIENT_H
#define CLI_CLIENT_H

#include "cli/cli.h"
#include "http/http.h"

#include <jansson.h>

/* What commands need to know of the agent's configuration. */
struct cli_settings {
	char site[LIMIT_AGENT_NAME_BYTES + 1];
	struct buf state; /* the folder */
	struct http_address api;
};

/* Reads the file. Returns CLI_FINE, or CLI_USAGE after having told what is wrong. */
int cli_settings_read(const char *path, struct cli_settings *settings);
void cli_settings_free(struct cli_settings *settings);

#define CLI_CONFIG_DEFAULT "/etc/cheops/agent.yaml"
#define CLI_API_DEFAULT "127.0.0.1:8079"

/* Where the agent is asked: --api, else CHEOPS_API, else `api` of the configuration, else CLI_API_DEFAULT. `config` is
 * NULL where none was named: then the default one counts, if it can be read. Returns CLI_FINE, or CLI_USAGE. */
int cli_api_find(const char *api, const char *config, struct http_address *address);

/* A question; `body` may be NULL and stays the caller's. */
struct cli_question {
	const struct http_address *address;
	const char *method;
	struct str target;
	json_t *body;
	struct str fields;    /* of headers, complete lines; "" or zero: none */
	struct http_tls *tls; /* NULL: in the clear */
	int (*check)(void *context, struct str certificate_der, struct err *err);
	void *context;
	uint64_t patience_ms; /* that the answer may take, beyond the usual */
};

struct cli_reply {
	unsigned status;
	json_t *json; /* an object; NULL where there was no answer: then `err` says why */
	struct err err;
};

/* Has the question answered. Tells nothing. Returns 0, or a negative code where there is no answer in JSON. */
int cli_ask(const struct cli_question *question, struct cli_reply *reply);
void cli_reply_free(struct cli_reply *reply);

/* Was there no answer because nothing listens there? */
bool cli_nobody_listens(const struct cli_reply *reply);

/* Is it what was asked for, and not a problem (RFC 9457)? */
bool cli_reply_is_good(const struct cli_reply *reply);
/* Tells the problem in one message, followed by `advice` ("": none). Returns CLI_REFUSED. */
int cli_tell_problem(const struct cli_reply *reply, const char *advice);

/* The usual: asks, and tells what is wrong if anything is. CLI_FINE: *json is the caller's. */
int cli_ask_or_tell(const struct cli_question *question, json_t **json);

/* ---- JSON ------------------------------------------------------------------------------------------------------- */

/* The string of that name; "" where there is none. It may hold anything: show it with text_put_harmless(). */
struct str cli_json_text(const json_t *object, const char *name);
/* The number of that name; false where there is none. */
bool cli_json_number(const json_t *object, const char *name, double *number);
/* The RFC 3339 time of that name, in ms since 1970; false where there is none. */
bool cli_json_time(const json_t *object, const char *name, int64_t *ms);

/* Writes a value for programs: JSON in one line, or YAML. Neither does anything to a terminal. */
void cli_put_json(struct buf *out, json_t *value);
void cli_put_yaml(struct buf *out, const json_t *value);

/* ---- Times ------------------------------------------------------------------------------------------------------ */

/* The wall clock, ms since 1970. */
int64_t cli_now_ms(void);
/* "3s", "12m", "5h", "89d". */
void cli_put_age(struct buf *out, int64_t ms);
/* "12:03:14", with the date in front if it is another day than now. In the time zone of the machine. */
void cli_put_clock(struct buf *out, int64_t ms, int64_t now_ms);

#endif
