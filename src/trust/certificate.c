/* Reading certificates: X.509 in DER (RFC 5280), strictly. What is not understood is refused; nothing is guessed. */
#include "trust/trust_int.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <time.h>

enum { SIGNATURE_STRENGTH_BITS = 112 }; /* SHA-256 and better: not SHA-1, not MD5 */

X509 *trust_x509_parse(struct str der, struct err *err)
{
	if (der.length > LIMIT_TRUST_CERTIFICATE_BYTES) {
		err_set(err, ERR_LIMIT, "the certificate has %zu bytes; at most %d are read", der.length,
		        (int)LIMIT_TRUST_CERTIFICATE_BYTES);
		return NULL;
	}
	const unsigned char *at = (const unsigned char *)der.at;
	X509 *x509 = d2i_X509(NULL, &at, (long)der.length);
	if (x509 && at == (const unsigned char *)der.at + der.length)
		return x509;
	trust_openssl_failed(err, ERR_CORRUPT,
	                     x509 ? "there are bytes behind the certificate" : "this is not a certificate (X.509 in DER)");
	X509_free(x509);
	return NULL;
}

static int read_time(const ASN1_TIME *time, int64_t *ms)
{
	struct tm parts;
	if (!time || ASN1_TIME_to_tm(time, &parts) != 1)
		return ERR_CORRUPT;
	*ms = (int64_t)timegm(&parts) * 1000;
	return 0;
}

/* For people, of an authority: the common name, else the organisation. */
static int read_subject(const X509_NAME *subject, char name[LIMIT_AGENT_NAME_BYTES + 1], struct err *err)
{
	static const int kinds[] = {NID_commonName, NID_organizationName, NID_organizationalUnitName};
	int at = -1;
	for (size_t i = 0; at < 0 && i < sizeof(kinds) / sizeof(kinds[0]); i++)
		at = X509_NAME_get_index_by_NID(subject, kinds[i], -1);
	if (at < 0)
		return err_set(err, ERR_INVALID, "the authority's certificate has neither a common name nor an organisation");
	unsigned char *text = NULL;
	int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
	if (length < 0)
		return trust_openssl_failed(err, ERR_INVALID, "the name of the authority is not text");
	int code = trust_name_check(str_make((char *)text, (size_t)length), "the name of the authority", err);
	if (code == 0) {
		memcpy(name, text, (size_t)length);
		name[length] = '\0';
	}
	OPENSSL_free(text);
	return code;
}

static int read_site_name(X509 *x509, char name[LIMIT_AGENT_NAME_BYTES + 1], struct err *err)
{
	int found = -1;
	GENERAL_NAMES *names = X509_get_ext_d2i(x509, NID_subject_alt_name, &found, NULL);
	int code = found == -2            ? err_set(err, ERR_INVALID, "the certificate has two lists of alternative names")
	           : found >= 0 && !names ? err_set(err, ERR_CORRUPT, "the certificate's alternative names cannot be read")
	                                  : trust_names_read(names, "the certificate", name, err);
	GENERAL_NAMES_free(names);
	ERR_clear_error();
	return code;
}

/* The key's bytes as they stand in the certificate. A site's are of one form only; an authority's are what they are. */
static int read_id(X509 *x509, bool root, site_id *id, struct err *err)
{
	unsigned char *der = NULL;
	int length = i2d_X509_PUBKEY(X509_get_X509_PUBKEY(x509), &der);
	if (length <= 0 || !X509_get0_pubkey(x509)) {
		OPENSSL_free(der);
		return trust_openssl_failed(err, ERR_INVALID, "the certificate has a key that OpenSSL does not know");
	}
	bool good = root || trust_is_site_key(der, (size_t)length);
	*id = trust_id_of(der, (size_t)length);
	OPENSSL_free(der);
	return good ? 0 : err_set(err, ERR_INVALID, "the certificate's key is not P-256 (uncompressed), as a site's is");
}

int trust_x509_read(X509 *x509, struct str der, struct trust_certificate *certificate, struct err *err)
{
	struct trust_certificate read = {0};
	uint32_t flags = X509_get_extension_flags(x509);
	if (X509_get_version(x509) != X509_VERSION_3 || (flags & EXFLAG_INVALID))
		return trust_openssl_failed(err, ERR_INVALID,
		                            "the certificate is not of version 3, or an extension is malformed");
	if (flags & EXFLAG_CRITICAL)
		return err_set(err, ERR_VERSION, "the certificate has a critical extension that is not known here");
	read.root = flags & EXFLAG_CA;
	if (read_time(X509_get0_notBefore(x509), &read.from_ms) < 0 || read_time(X509_get0_notAfter(x509), &read.to_ms) < 0)
		return trust_openssl_failed(err, ERR_CORRUPT, "the certificate's times cannot be read");
	int code = read_id(x509, read.root, &read.id, err);
	if (code == 0)
		code = read.root ? read_subject(X509_get_subject_name(x509), read.name, err)
		                 : read_site_name(x509, read.name, err);
	if (code < 0)
		return code;
	CHECK(EVP_Digest(der.at, der.length, read.fingerprint, NULL, EVP_sha256(), NULL) == 1);
	*certificate = read;
	return 0;
}

int trust_certificate_read(struct str der, struct trust_certificate *certificate, struct err *err)
{
	struct err own;
	X509 *x509 = trust_x509_parse(der, &own);
	int code = x509 ? trust_x509_read(x509, der, certificate, err) : err_set(err, own.code, "%s", own.text);
	X509_free(x509);
	ERR_clear_error();
	return code;
}

int trust_x509_check_root(X509 *x509, struct err *err)
{
	if (!(X509_get_extension_flags(x509) & EXFLAG_CA))
		return err_set(err, ERR_INVALID, "the certificate is not that of an authority (CA:TRUE)");
	if (!(X509_get_key_usage(x509) & KU_KEY_CERT_SIGN)) /* all bits are set where there is no such extension */
		return err_set(err, ERR_INVALID, "the authority's certificate is not for signing certificates (keyCertSign)");
	const EVP_PKEY *key = X509_get0_pubkey(x509);
	if (!key || EVP_PKEY_get_security_bits(key) < SIGNATURE_STRENGTH_BITS)
		return trust_openssl_failed(err, ERR_INVALID,
		                            "the authority's key is too weak; P-256 or RSA of 2048 bits is the least");
	return 0;
}

void trust_x509_write(X509 *x509, struct buf *der)
{
	unsigned char *bytes = NULL;
	int length = i2d_X509(x509, &bytes);
	CHECK(length > 0);
	buf_put(der, str_make((char *)bytes, (size_t)length));
	OPENSSL_free(bytes);
}

bool trust_verify(struct str certificate_der, struct str bytes, struct str signature)
{
	X509 *x509 = trust_x509_parse(certificate_der, NULL);
	EVP_PKEY *key = x509 ? X509_get0_pubkey(x509) : NULL;
	bool good = key && trust_verify_with(key, bytes, signature);
	X509_free(x509);
	ERR_clear_error();
	return good;
}

int trust_pem_each(struct str pem, void (*each)(void *context, struct str der), void *context, struct err *err)
{
	if (pem.length > LIMIT_TRUST_FILE_BYTES)
		return err_set(err, ERR_LIMIT, "the certificates have %zu bytes; at most %d are read", pem.length,
		               (int)LIMIT_TRUST_FILE_BYTES);
	BIO *bio = BIO_new_mem_buf(pem.at, (int)pem.length);
	CHECK(bio);
	int count = 0;
	char *name, *header;
	unsigned char *der;
	long length;
	while (PEM_read_bio(bio, &name, &header, &der, &length) == 1) {
		if (strcmp(name, PEM_STRING_X509) == 0) {
			each(context, str_make((char *)der, (size_t)length));
			count++;
		}
		OPENSSL_free(name);
		OPENSSL_free(header);
		OPENSSL_free(der);
	}
	/* The last look finds no further beginning; anything else is damage in the middle. */
	bool damaged = ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE;
	BIO_free(bio);
	ERR_clear_error();
	if (damaged)
		return err_set(err, ERR_CORRUPT, "certificate %d of the PEM text is damaged", count + 1);
	return count > 0 ? 0 : err_set(err, ERR_INVALID, "there is no certificate in PEM (BEGIN CERTIFICATE)");
}

static void keep_first(void *context, struct str der)
{
	struct buf *first = context;
	if (first->length == 0)
		buf_put(first, der);
}

int trust_pem_first(struct str pem, struct buf *der, struct err *err)
{
	struct buf first = {0};
	int code = trust_pem_each(pem, keep_first, &first, err);
	if (code == 0)
		buf_put(der, buf_str(&first));
	buf_free(&first);
	return code;
}

void trust_pem_write(struct buf *pem, struct str der)
{
	BIO *bio = BIO_new(BIO_s_mem());
	CHECK(bio && PEM_write_bio(bio, PEM_STRING_X509, "", (const unsigned char *)der.at, (long)der.length) > 0);
	char *text = NULL;
	long length = BIO_get_mem_data(bio, &text);
	buf_put(pem, str_make(text, (size_t)length));
	BIO_free(bio);
}
