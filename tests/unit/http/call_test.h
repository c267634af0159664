/* What the tests of calls share: a server in the same loop that says what a test wants it to say, and a client that notes what it is told. */
#ifndef CALL_TEST_H
#define CALL_TEST_H

#include "tls_test.h"

enum { BOUND_MS = 20000, SHORT_MS = 50 };

extern struct http_loop *loop;

/* ---- A server ---------------------------------------------------------------------------------------------------- */

/* Takes one connection at a time, reads a request whole, answers, closes. One for all tests: the loop, which goes after a
 * test, looks at its listener once more. */
extern struct server {
	struct http_listener listener; /* first */
	struct http_address address;
	struct str answer;    /* what is sent, as it is */
	size_t piece;         /* bytes sent at once; 0: all */
	bool mute;            /* neither answers nor closes */
	bool hasty;           /* answers without reading, and closes with a reset */
	bool keeps;           /* the connection stays open for another request */
	int accepted;         /* connections so far */
	struct http_tls *tls; /* NULL: plain */
	struct buf request;
	struct visit *visits; /* under way */
} server;

struct visit {
	struct http_conn conn; /* first */
	struct visit *next;
	size_t sent;
};

void server_start(void);
void server_stop(void);
void visit_close(struct visit *visit);
void address_of(int fd, struct http_address *address); /* of a socket that listens at loopback */

/* ---- A client ---------------------------------------------------------------------------------------------------- */

struct outcome {
	int times;
	int code;
	char text[LIMIT_ERROR_TEXT_BYTES];
	unsigned status;
	struct buf type, body;
	bool sent;
	char location[32]; /* a field of the answer */
};

/* A GET whose outcome is noted there. */
struct http_call_options get(struct outcome *outcome);
void note(void *context, const struct http_call_answer *answer);
void forget(struct outcome *outcome);
/* Until an outcome was noted. */
void run_bounded(void);
/* Has the answer sent, all at once or in pieces, and tells what became of it. */
struct outcome ask_server(void);
/* A call whose outcome is noted in its context. */
void ask_by(const struct http_call_options *options);
int make_loop(void **state);
int drop_loop(void **state);

#endif
