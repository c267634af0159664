/* The join tokens that this site gave out (STATE/tokens), and the names and keys that it signed for (STATE/issued).
 *
 *     tokens   <digest, 64 hexadecimal digits> <end, ms since 1970> <1: used, 0: not> <name, or nothing: for any>
 *     issued   <id of the key, 16 hexadecimal digits> <name>
 *
 * One line each, as they are written and in no other way. A file with a line that cannot be read, or that is cut, is refused
 * as a whole, and stays as it is: what is in memory is not to take its place. Otherwise a token that was used, or a name that
 * was given, would be free again.
 *
 * All of them are zeroed to begin with, and loaded before anything else is asked of them.
 */
#ifndef AGENT_TOKENS_H
#define AGENT_TOKENS_H

#include "trust/trust.h"

enum {
	AGENT_TOKENS_MOST = 1000,                   /* remembered: a token is, until some time after its end */
	AGENT_TOKEN_TTL_MOST_MS = 7 * 86400 * 1000, /* and so much longer, to say what is wrong with it */
};

struct agent_token {
	unsigned char digest[32];
	int64_t ends_ms;
	char name[LIMIT_AGENT_NAME_BYTES + 1]; /* "": for any */
	bool used;
};

struct agent_tokens {
	struct agent_token *at;
	uint32_t count;
	bool loaded;
};

/* Reads the file, if that was not done. ERR_CORRUPT: see above; it is read again next time. */
int agent_tokens_load(struct agent_tokens *tokens, const char *folder, struct err *err);
void agent_tokens_free(struct agent_tokens *tokens);

/* Remembers a token that is about to be given out; once 0 is returned, on the disk. ERR_LIMIT: there are too many. */
int agent_tokens_add(struct agent_tokens *tokens, const char *folder, const struct trust_token *token, int64_t now_ms,
                     struct err *err);

enum agent_token_state {
	AGENT_TOKEN_GOOD,
	AGENT_TOKEN_UNKNOWN,
	AGENT_TOKEN_USED,
	AGENT_TOKEN_EXPIRED,
	AGENT_TOKEN_FOR_ANOTHER, /* name */
};

/* Looks it up; *found, except where it is unknown, is good until the next call that adds. */
enum agent_token_state agent_tokens_find(struct agent_tokens *tokens, const struct trust_token *token, struct str name,
                                         int64_t now_ms, struct agent_token **found);

/* It serves once: marks it as used, and once 0 is returned, that is on the disk. Nothing is signed before. */
int agent_tokens_strike(struct agent_tokens *tokens, const char *folder, struct agent_token *token, struct err *err);

/* ---- Names ------------------------------------------------------------------------------------------------------- */

struct agent_issue {
	site_id id;
	char name[LIMIT_AGENT_NAME_BYTES + 1];
};

struct agent_issued {
	struct agent_issue *at;
	uint32_t count; /* at most LIMIT_SITES */
	bool loaded;
};

int agent_issued_load(struct agent_issued *issued, const char *folder, struct err *err);
void agent_issued_free(struct agent_issued *issued);

/* Both are on the disk once 0 is returned; otherwise nothing has changed. ERR_LIMIT: there are LIMIT_SITES. */
int agent_issued_add(struct agent_issued *issued, const char *folder, site_id id, struct str name, struct err *err);
int agent_issued_forget(struct agent_issued *issued, const char *folder, site_id id, struct err *err);

#endif
