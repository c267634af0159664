/* What the tests of TLS share: certificates made on the spot, and two ends of a connection in one loop. */
#ifndef TLS_TEST_H
#define TLS_TEST_H

#include "http_test.h"

#include <openssl/ssl.h>

/* ---- Certificates ----------------------------------------------------------------------------------------------- */

struct pair {
	EVP_PKEY *key;
	X509 *certificate;
	char *certificate_pem, *key_pem;
};

struct issue {
	const char *names; /* as OpenSSL writes alternative names: "DNS:a,IP:127.0.0.1,URI:cheops://site/A" */
	int from_s, to_s;  /* relative to now; both 0: from yesterday to tomorrow */
};

void pair_root(struct pair *root, const char *name);
void pair_issue(struct pair *pair, const struct pair *root, const struct issue *issue);
void pair_free(struct pair *pair);

/* ---- Ends ------------------------------------------------------------------------------------------------------- */

/* Sends bytes [0, to_send) of a pattern in pieces of many sizes, and compares what it reads with the same pattern. */
struct end {
	struct http_conn conn; /* first */
	size_t to_send, sent;
	size_t received;
	bool end_after; /* http_conn_end() once all is sent */
	bool ended;
	bool told;         /* `changed` ran */
	bool wrong;        /* a byte was not the one that was sent */
	enum http_io last; /* of reading */
};

extern struct http_loop *test_loop;

void end_changed(struct http_conn *conn);
/* Two ends of a TCP connection, not blocking. */
void tcp_pair(int ends[2]);
/* Two sockets of which the kernel holds few bytes. */
void narrow_pair(int ends[2], int buffer_bytes);
/* Runs the loop until the condition holds, which is asked after every round; fails the test after some seconds. */
void run_until(bool (*condition)(void *context), void *context);

#endif
