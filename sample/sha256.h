/* SHA-256 of bytes that come piece by piece. */
#ifndef SAMPLE_SHA256_H
#define SAMPLE_SHA256_H

#include <openssl/evp.h>

enum { SHA256_TEXT_BYTES = 65 };

struct sha256 {
	EVP_MD_CTX *context;
};

/* Each start needs one finish, or one drop. */
void sha256_start(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
void sha256_finish(struct sha256 *hash, char text[SHA256_TEXT_BYTES]);
void sha256_drop(struct sha256 *hash);

#endif
