/* Keys. Those of sites are P-256; that of an authority may be any kind that signs well: the operator may bring one.
 *
 * An id is the first eight bytes, big-endian, of the SHA-256 of the public key in DER (SubjectPublicKeyInfo),
 * whatever kind of key it is. For P-256 only the form with the curve's name and an uncompressed point is taken, so
 * that a key has one id.
 */
#include "trust/trust_int.h"

#include <openssl/bio.h>
#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/sha.h>
#include <stdlib.h>

struct trust_key {
	EVP_PKEY *evp;
	site_id id;
	bool of_site; /* P-256 */
};

enum { KEY_STRENGTH_BITS = 112 }; /* RSA of 2048 bits, and better */

int trust_openssl_failed(struct err *err, int code, const char *what)
{
	ERR_clear_error();
	return err_set(err, code, "%s", what);
}

void trust_put_u64(unsigned char out[8], uint64_t number)
{
	for (int i = 0; i < 8; i++)
		out[i] = (unsigned char)(number >> (56 - 8 * i));
}

uint64_t trust_get_u64(const unsigned char in[8])
{
	uint64_t number = 0;
	for (int i = 0; i < 8; i++)
		number = number << 8 | in[i];
	return number;
}

site_id trust_id_of(const unsigned char *der, size_t length)
{
	unsigned char hash[SHA256_DIGEST_LENGTH];
	CHECK(EVP_Digest(der, length, hash, NULL, EVP_sha256(), NULL) == 1);
	return trust_get_u64(hash);
}

bool trust_is_site_key(const unsigned char *der, size_t length)
{
	/* id-ecPublicKey, prime256v1, and a BIT STRING with 04, x, y (RFC 5480). */
	static const unsigned char start[] = {0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
	                                      0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86, 0x48,
	                                      0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04};
	return length == sizeof(start) + 64 && memcmp(der, start, sizeof(start)) == 0;
}

static struct trust_key *key_of(EVP_PKEY *evp)
{
	unsigned char *der = NULL;
	int length = i2d_PUBKEY(evp, &der);
	CHECK(length > 0);
	struct trust_key *key = calloc(1, sizeof(*key));
	CHECK(key);
	*key = (struct trust_key){
		.evp = evp, .id = trust_id_of(der, (size_t)length), .of_site = trust_is_site_key(der, (size_t)length)};
	OPENSSL_free(der);
	return key;
}

int trust_key_make(struct trust_key **key, struct err *err)
{
	EVP_PKEY *evp = EVP_EC_gen("P-256");
	if (!evp)
		return trust_openssl_failed(err, ERR_UNAVAILABLE, "OpenSSL makes no P-256 key");
	*key = key_of(evp);
	return 0;
}

/* There is nobody to ask for a pass phrase. */
static int no_phrase(char *phrase, int size, int writing, void *context)
{
	(void)phrase, (void)size, (void)writing;
	*(bool *)context = true;
	return -1;
}

/* Reading a key does not make sure that its halves belong together; for RSA that would take too long. */
static int check_key(EVP_PKEY *evp, struct err *err)
{
	bool curve = EVP_PKEY_is_a(evp, "EC");
	if (!curve && !EVP_PKEY_is_a(evp, "RSA") && !EVP_PKEY_is_a(evp, "ED25519") && !EVP_PKEY_is_a(evp, "ED448"))
		return err_set(err, ERR_INVALID,
		               "a key of the kind %s is not supported; P-256 is what sites have, and an "
		               "authority may also have another EC key, RSA, Ed25519 or Ed448",
		               EVP_PKEY_get0_type_name(evp));
	if (EVP_PKEY_get_security_bits(evp) < KEY_STRENGTH_BITS)
		return err_set(err, ERR_INVALID, "the key (%s, %d bits) is too weak; use P-256, or RSA of 2048 bits or more",
		               EVP_PKEY_get0_type_name(evp), EVP_PKEY_get_bits(evp));
	EVP_PKEY_CTX *context = curve ? EVP_PKEY_CTX_new_from_pkey(NULL, evp, NULL) : NULL;
	int good = curve ? EVP_PKEY_check(context) : 1;
	EVP_PKEY_CTX_free(context);
	if (good != 1)
		return trust_openssl_failed(err, ERR_CORRUPT,
		                            "the private and the public half of the key do not belong together");
	return 0;
}

int trust_key_read(struct trust_key **key, struct str pem, struct err *err)
{
	if (pem.length > LIMIT_TRUST_FILE_BYTES)
		return err_set(err, ERR_LIMIT, "the key has %zu bytes; at most %d are read", pem.length,
		               (int)LIMIT_TRUST_FILE_BYTES);
	bool encrypted = false;
	BIO *bio = BIO_new_mem_buf(pem.at, (int)pem.length);
	CHECK(bio);
	EVP_PKEY *evp = PEM_read_bio_PrivateKey(bio, NULL, no_phrase, &encrypted);
	BIO_free(bio);
	if (!evp)
		return trust_openssl_failed(err, ERR_INVALID,
		                            encrypted ? "the private key is encrypted with a pass phrase; one without is needed"
		                                      : "there is no private key in PEM (PKCS #8: BEGIN PRIVATE KEY)");
	int code = check_key(evp, err);
	if (code < 0) {
		EVP_PKEY_free(evp);
		return code;
	}
	ERR_clear_error();
	*key = key_of(evp);
	return 0;
}

void trust_key_write(const struct trust_key *key, struct buf *pem)
{
	BIO *bio = BIO_new(BIO_s_secmem());
	CHECK(bio && PEM_write_bio_PKCS8PrivateKey(bio, key->evp, NULL, NULL, 0, NULL, NULL) == 1);
	char *text = NULL;
	long length = BIO_get_mem_data(bio, &text);
	CHECK(length > 0);
	buf_put(pem, str_make(text, (size_t)length));
	BIO_free(bio);
}

void trust_key_free(struct trust_key *key)
{
	if (!key)
		return;
	EVP_PKEY_free(key->evp);
	free(key);
}

site_id trust_key_id(const struct trust_key *key)
{
	return key->id;
}

bool trust_key_is_of_site(const struct trust_key *key)
{
	return key->of_site;
}

EVP_PKEY *trust_key_evp(const struct trust_key *key)
{
	return key->evp;
}

const EVP_MD *trust_digest_of(const EVP_PKEY *key)
{
	return EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448") ? NULL : EVP_sha256();
}

void trust_sign(const struct trust_key *key, struct str bytes, struct buf *signature)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	size_t length = 0;
	const unsigned char *at = (const unsigned char *)bytes.at;
	CHECK(context && EVP_DigestSignInit(context, NULL, trust_digest_of(key->evp), NULL, key->evp) == 1);
	CHECK(EVP_DigestSign(context, NULL, &length, at, bytes.length) == 1);
	unsigned char *out = malloc(length);
	CHECK(out && EVP_DigestSign(context, out, &length, at, bytes.length) == 1);
	buf_put(signature, str_make((char *)out, length));
	free(out);
	EVP_MD_CTX_free(context);
}

bool trust_verify_with(EVP_PKEY *key, struct str bytes, struct str signature)
{
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	CHECK(context);
	bool good = EVP_DigestVerifyInit(context, NULL, trust_digest_of(key), NULL, key) == 1 &&
	            EVP_DigestVerify(context, (const unsigned char *)signature.at, signature.length,
	                             (const unsigned char *)bytes.at, bytes.length) == 1;
	EVP_MD_CTX_free(context);
	ERR_clear_error();
	return good;
}
