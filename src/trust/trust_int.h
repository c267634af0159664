/* Shared by the files of this room and its tests. */
#ifndef TRUST_TRUST_INT_H
#define TRUST_TRUST_INT_H

#include "trust/trust.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/x509v3.h>

/* A public key in DER (SubjectPublicKeyInfo): the id of whoever has it. */
site_id trust_id_of(const unsigned char *der, size_t length);
/* Is it a P-256 key, named and uncompressed? There is one such form of each key: it has one id. */
bool trust_is_site_key(const unsigned char *der, size_t length);

bool trust_key_is_of_site(const struct trust_key *key);

/* Which hash goes with a signature of this key: NULL where the algorithm brings its own. */
const EVP_MD *trust_digest_of(const EVP_PKEY *key);
bool trust_verify_with(EVP_PKEY *key, struct str bytes, struct str signature);

/* Is this a name of a site? The text calls it `what`. */
int trust_name_check(struct str name, const char *what, struct err *err);
/* cheops://site/<percent-encoded name>, and back. */
void trust_uri_write(struct buf *uri, struct str name);
int trust_uri_read(struct str uri, char name[LIMIT_AGENT_NAME_BYTES + 1], struct err *err);
/* The name in the one URI of the list; `where` is for texts ("the certificate"). */
int trust_names_read(const GENERAL_NAMES *names, const char *where, char name[LIMIT_AGENT_NAME_BYTES + 1],
                     struct err *err);

/* Takes apart, all bytes and no more. NULL: the text says why. `where` is for texts. */
X509 *trust_x509_parse(struct str der, struct err *err);
/* As trust_certificate_read(), of one that was parsed from `der`. */
int trust_x509_read(X509 *x509, struct str der, struct trust_certificate *certificate, struct err *err);
/* Can others rely on its signature: an authority, strong enough? */
int trust_x509_check_root(X509 *x509, struct err *err);
/* As trust_certificate_read(), of a root; and that it may be one. */
int trust_root_read(struct str der, struct trust_certificate *certificate, struct err *err);
/* As trust_check(), for one more look at it: to take it apart takes longer than anything else here. NULL: refused. */
X509 *trust_check_x509(const struct trust_roots *roots, struct str der, int64_t now_ms,
                       struct trust_certificate *certificate, struct err *err);
/* The certificate in DER, appended. */
void trust_x509_write(X509 *x509, struct buf *der);

/* A token of these bytes: adds the sum and the prefix. */
void trust_token_write_body(const unsigned char *body, size_t length, struct buf *text);

/* OpenSSL keeps a list of errors per thread, and TLS looks at it: what fails here leaves nothing there. */
int trust_openssl_failed(struct err *err, int code, const char *what);

void trust_put_u64(unsigned char out[8], uint64_t number);
uint64_t trust_get_u64(const unsigned char in[8]);

#endif
