/*
 * Who asks. With --token-key FILE a service answers only those who show a token that was made with this key and is not yet
 * over:
 *   1. POST /tokens {"user": "ann", "seconds": 60} gives one, to anybody: this is a sample, and has no passwords;
 *   2. Authorization: Bearer TOKEN on every other request. None, a forged one, one that is over: 401.
 * The user `agent` may say on whose behalf it asks, by X-On-Behalf-Of. What is made belongs to that user: "owner".
 *
 * A token is a JWT (RFC 7519) with HS256: `sub` says whose it is, `exp` until when it is good. Services that share the key
 * accept each other's.
 */
#ifndef SAMPLE_LOGIN_H
#define SAMPLE_LOGIN_H

#include "server.h"

#define LOGIN_OWNER "owner" /* the member of a record that says whose it is */

struct login;

/* Reads the key; on failure says why on the standard error and returns NULL. */
struct login *login_open(const char *path);
void login_close(struct login *login);

/* Finds out who asks and sets request->user; refuses the request otherwise. Nothing to do without --token-key. */
void login_check(struct request *request);

/* POST /tokens. */
struct reply login_post(struct request *request);

#endif
