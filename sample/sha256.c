#include "sha256.h"

#include <stdio.h>

#include "memory.h"

void sha256_start(struct sha256 *hash)
{
	hash->context = need(EVP_MD_CTX_new());
	if (EVP_DigestInit_ex(hash->context, EVP_sha256(), NULL) != 1)
		abort();
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length)
{
	if (EVP_DigestUpdate(hash->context, bytes, length) != 1)
		abort();
}

void sha256_finish(struct sha256 *hash, char text[SHA256_TEXT_BYTES])
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned length = 0;
	if (EVP_DigestFinal_ex(hash->context, digest, &length) != 1)
		abort();
	for (unsigned i = 0; i < length && 2 * i + 2 < SHA256_TEXT_BYTES; i++)
		snprintf(text + (size_t)2 * i, 3, "%02x", digest[i]);
	sha256_drop(hash);
}

void sha256_drop(struct sha256 *hash)
{
	EVP_MD_CTX_free(hash->context);
	hash->context = NULL;
}
