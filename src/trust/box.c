/* Boxes: bytes that only this site can read again, for what is kept on its disk.
 *
 * A box is nonce (12 bytes), AES-256-GCM of the bytes, tag (16 bytes). `about` is not in it, but has to be the same when it is
 * opened: the place where it is kept, so that boxes cannot be exchanged. The key is random and never leaves the site.
 */
#include "trust/trust_int.h"

#include "base/check.h"

#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdlib.h>

enum { NONCE_BYTES = 12, TAG_BYTES = 16, NONCES = 100 };

_Static_assert((int)TRUST_BOX_EXTRA_BYTES == (int)NONCE_BYTES + (int)TAG_BYTES, "what a box adds");

/* The key is expanded once, for each direction; a box then costs a nonce. To fetch the cipher and set the key for each took
 * longer than a whole row; so did a nonce that was drawn alone: they are drawn a hundred at a time. */
struct trust_box {
	EVP_CIPHER_CTX *seals, *opens;
	unsigned char nonces[NONCES][NONCE_BYTES];
	unsigned nonces_left;
};

int trust_box_key_make(struct buf *key, struct err *err)
{
	unsigned char bytes[TRUST_BOX_KEY_BYTES];
	if (RAND_bytes(bytes, sizeof(bytes)) != 1)
		return trust_openssl_failed(err, ERR_UNAVAILABLE, "OpenSSL gives no random numbers");
	buf_put(key, str_make((const char *)bytes, sizeof(bytes)));
	OPENSSL_cleanse(bytes, sizeof(bytes));
	return 0;
}

int trust_box_new(struct trust_box **out, struct str key, struct err *err)
{
	if (key.length != TRUST_BOX_KEY_BYTES)
		return err_set(err, ERR_INVALID, "the key has %zu bytes; it has to have %d", key.length, TRUST_BOX_KEY_BYTES);
	struct trust_box *box = calloc(1, sizeof(*box));
	CHECK(box);
	box->seals = EVP_CIPHER_CTX_new();
	box->opens = EVP_CIPHER_CTX_new();
	CHECK(box->seals && box->opens);
	const unsigned char *bytes = (const unsigned char *)key.at;
	bool good = EVP_EncryptInit_ex2(box->seals, EVP_aes_256_gcm(), bytes, NULL, NULL) == 1 &&
	            EVP_DecryptInit_ex2(box->opens, EVP_aes_256_gcm(), bytes, NULL, NULL) == 1;
	CHECK(good);
	*out = box;
	return 0;
}

void trust_box_free(struct trust_box *box)
{
	if (!box)
		return;
	EVP_CIPHER_CTX_free(box->seals); /* and wipes what it had of the key */
	EVP_CIPHER_CTX_free(box->opens);
	free(box);
}

/* Each is used once. */
static const unsigned char *next_nonce(struct trust_box *box)
{
	if (box->nonces_left == 0) {
		bool good = RAND_bytes(box->nonces[0], sizeof(box->nonces)) == 1;
		CHECK(good);
		box->nonces_left = NONCES;
	}
	return box->nonces[--box->nonces_left];
}

void trust_box_seal(struct trust_box *box, struct str about, struct str bytes, struct buf *out)
{
	const unsigned char *nonce = next_nonce(box);
	unsigned char tag[TAG_BYTES];
	int length = 0;
	CHECK(bytes.length <= INT32_MAX && about.length <= INT32_MAX);
	bool good = EVP_EncryptInit_ex2(box->seals, NULL, NULL, nonce, NULL) == 1 &&
	            EVP_EncryptUpdate(box->seals, NULL, &length, (const unsigned char *)about.at, (int)about.length) == 1;
	CHECK(good);
	buf_put(out, str_make((const char *)nonce, NONCE_BYTES));
	size_t start = out->length;
	buf_put(out, bytes); /* and is made unreadable where it stands */
	unsigned char *at = (unsigned char *)out->at + start;
	good = EVP_EncryptUpdate(box->seals, at, &length, at, (int)bytes.length) == 1 &&
	       EVP_EncryptFinal_ex(box->seals, at + length, &length) == 1 &&
	       EVP_CIPHER_CTX_ctrl(box->seals, EVP_CTRL_GCM_GET_TAG, TAG_BYTES, tag) == 1;
	CHECK(good);
	buf_put(out, str_make((const char *)tag, sizeof(tag)));
}

int trust_box_open(struct trust_box *box, struct str about, struct str sealed, struct buf *out, struct err *err)
{
	if (sealed.length < NONCE_BYTES + TAG_BYTES || sealed.length > INT32_MAX)
		return err_set(err, ERR_CORRUPT, "%zu bytes are no box", sealed.length);
	const unsigned char *nonce = (const unsigned char *)sealed.at;
	size_t inner = sealed.length - NONCE_BYTES - TAG_BYTES, start = out->length;
	unsigned char tag[TAG_BYTES];
	int length = 0, last = 0;
	memcpy(tag, sealed.at + sealed.length - TAG_BYTES, sizeof(tag));
	buf_put(out, str_make(sealed.at + NONCE_BYTES, inner));
	unsigned char *at = (unsigned char *)out->at + start;
	bool good = EVP_DecryptInit_ex2(box->opens, NULL, NULL, nonce, NULL) == 1 &&
	            EVP_DecryptUpdate(box->opens, NULL, &length, (const unsigned char *)about.at, (int)about.length) == 1 &&
	            EVP_DecryptUpdate(box->opens, at, &length, at, (int)inner) == 1 &&
	            EVP_CIPHER_CTX_ctrl(box->opens, EVP_CTRL_GCM_SET_TAG, TAG_BYTES, tag) == 1 &&
	            EVP_DecryptFinal_ex(box->opens, at + length, &last) == 1;
	if (good)
		return 0;
	out->length = start;
	return err_set(err, ERR_CORRUPT, "it was not sealed with the key of this site, or was changed since");
}
