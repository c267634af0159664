/* Inside the http room. */
#ifndef HTTP_HTTP_INT_H
#define HTTP_HTTP_INT_H

#include "http/http.h"

#include <openssl/types.h>

/* Buffers come in sizes of 4, 8, 16, 32 and 64 KiB; a loop keeps some of each. */
enum { HTTP_BUFFER_LEAST = 4096, HTTP_SHELVES = 5, HTTP_SHELF_MOST = 64 };

_Static_assert(HTTP_BUFFER_LEAST << (HTTP_SHELVES - 1) == LIMIT_HTTP_BUFFER_BYTES, "the last shelf is for the largest");

/* ---- TLS on a connection (secure.c) ------------------------------------------------------------------------------ */

/* conn.c hands over here where conn->tls is set. True: the owner has to be told. */
bool http_secure_ready(struct http_conn *conn, uint32_t events);
enum http_io http_secure_read(struct http_conn *conn);
enum http_io http_secure_write(struct http_conn *conn, const struct iovec *pieces, int count, size_t *written);
void http_secure_end(struct http_conn *conn);
void http_secure_free(struct http_conn *conn);
/* OpenSSL's question for each certificate of a chain: is it to be accepted though not good? Never; but why is noted. */
int http_secure_verified(int good, X509_STORE_CTX *store);

/* tls.c */
SSL *http_tls_session(const struct http_tls *tls);
bool http_tls_is_peers(const struct http_tls *tls);

/* HTTP_FIELD_OTHER for a name that is not known. */
enum http_field_id http_field_id_of(struct str name);

#endif
