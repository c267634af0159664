/* The small authority: roots that sign themselves, what a site asks to be signed (PKCS #10, RFC 2986), and its
 * signing.
 *
 * 1. The site makes a key and a request, which carries its name and proves that it has the key.
 * 2. The authority reads name and key out of it, and nothing else: whatever more the request asks for is not given.
 * 3. The certificate begins a day ago, because clocks may be apart, and ends with the root at the latest.
 *
 * Certificates are kept short, because each travels inside a card: no policy, no address of a list of revoked ones (a
 * site is shut out by a record that spreads), and no key identifier beyond what tells two roots of one name apart.
 */
#include "trust/trust_int.h"

#include "base/timestamp.h"

#include <openssl/bn.h>
#include <openssl/err.h>
#include <openssl/rand.h>

enum { SERIAL_BYTES = 16, COMMON_NAME_BYTES = 64 };
#define TIME_MOST_MS                                                                                                   \
	INT64_C(253402300799000) /* the end of the year 9999: what a certificate can say (RFC 5280, 4.1.2.5) */

static void set_common_name(X509_NAME *subject, struct str name)
{
	struct str cut = utf8_truncate(name, COMMON_NAME_BYTES);
	CHECK(X509_NAME_add_entry_by_NID(subject, NID_commonName, MBSTRING_UTF8, (const unsigned char *)cut.at,
	                                 (int)cut.length, -1, 0) == 1);
}

/* The one alternative name of a site. */
static GENERAL_NAMES *make_names(struct str name)
{
	struct buf uri = {0};
	trust_uri_write(&uri, name);
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	GENERAL_NAME *only = GENERAL_NAME_new();
	ASN1_IA5STRING *text = ASN1_IA5STRING_new();
	CHECK(names && only && text && ASN1_STRING_set(text, uri.at, (int)uri.length) == 1);
	GENERAL_NAME_set0_value(only, GEN_URI, text);
	CHECK(sk_GENERAL_NAME_push(names, only) > 0);
	buf_free(&uri);
	return names;
}

/* All values are constants of this file. */
static void add_extension(X509 *x509, X509 *issuer, int kind, const char *value)
{
	X509V3_CTX context;
	X509V3_set_ctx(&context, issuer, x509, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&context);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	CHECK(extension && X509_add_ext(x509, extension, -1) == 1);
	X509_EXTENSION_free(extension);
}

static int set_times(X509 *x509, int64_t from_ms, int64_t to_ms, struct err *err)
{
	if (to_ms > TIME_MOST_MS)
		return err_set(err, ERR_INVALID, "the certificate would end after the year 9999");
	CHECK(ASN1_TIME_set(X509_getm_notBefore(x509), (time_t)(from_ms / 1000)));
	CHECK(ASN1_TIME_set(X509_getm_notAfter(x509), (time_t)(to_ms / 1000)));
	return 0;
}

/* What root and site have in common; both names are still to be set. */
static X509 *start_certificate(EVP_PKEY *key)
{
	unsigned char serial[SERIAL_BYTES];
	X509 *x509 = X509_new();
	CHECK(x509 && X509_set_version(x509, X509_VERSION_3) == 1 && RAND_bytes(serial, sizeof(serial)) == 1);
	BIGNUM *number = BN_bin2bn(serial, sizeof(serial), NULL);
	CHECK(number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(x509)));
	BN_free(number);
	CHECK(X509_set_pubkey(x509, key) == 1);
	return x509;
}

/* What is past the range of a date is refused by set_times(). */
static int64_t add_ms(int64_t now_ms, int64_t more_ms)
{
	int64_t sum;
	return __builtin_add_overflow(now_ms, more_ms, &sum) ? INT64_MAX : sum;
}

int trust_root_make(const struct trust_key *key, struct str name, int64_t now_ms, int64_t lifetime_ms, struct buf *der,
                    struct err *err)
{
	int code = trust_name_check(name, "the name of the authority", err);
	if (code < 0)
		return code;
	if (lifetime_ms <= 0)
		return err_set(err, ERR_INVALID, "a root has to be valid for some time");
	EVP_PKEY *evp = trust_key_evp(key);
	X509 *x509 = start_certificate(evp);
	set_common_name(X509_get_subject_name(x509), name);
	CHECK(X509_set_issuer_name(x509, X509_get_subject_name(x509)) == 1);
	code = set_times(x509, now_ms - TRUST_BACKDATE_S * INT64_C(1000), add_ms(now_ms, lifetime_ms), err);
	if (code == 0) {
		add_extension(x509, x509, NID_basic_constraints, "critical,CA:TRUE,pathlen:0");
		add_extension(x509, x509, NID_key_usage, "critical,keyCertSign,cRLSign");
		add_extension(x509, x509, NID_subject_key_identifier, "hash");
		CHECK(X509_sign(x509, evp, trust_digest_of(evp)) > 0);
		trust_x509_write(x509, der);
	}
	X509_free(x509);
	return code;
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static void add_names(X509_REQ *request, struct str name)
{
	GENERAL_NAMES *names = make_names(name);
	STACK_OF(X509_EXTENSION) *extensions = NULL;
	CHECK(X509V3_add1_i2d(&extensions, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1);
	CHECK(X509_REQ_add_extensions(request, extensions) == 1);
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
	GENERAL_NAMES_free(names);
}

/* As in a certificate: the key's bytes as they stand there. */
static int read_request_id(X509_REQ *request, site_id *id, struct err *err)
{
	unsigned char *der = NULL;
	int length = i2d_X509_PUBKEY(X509_REQ_get_X509_PUBKEY(request), &der);
	bool good = length > 0 && trust_is_site_key(der, (size_t)length);
	if (good)
		*id = trust_id_of(der, (size_t)length);
	OPENSSL_free(der);
	return good ? 0
	            : trust_openssl_failed(err, ERR_INVALID,
	                                   "the request's key is not P-256 (uncompressed), as a site's is");
}

int trust_request_make(const struct trust_key *key, struct str name, struct buf *der, struct err *err)
{
	int code = trust_name_check(name, "the name of the site", err);
	if (code < 0)
		return code;
	EVP_PKEY *evp = trust_key_evp(key);
	site_id id;
	X509_REQ *request = X509_REQ_new();
	CHECK(request && X509_REQ_set_version(request, X509_REQ_VERSION_1) == 1);
	CHECK(X509_REQ_set_pubkey(request, evp) == 1);
	code = read_request_id(request, &id, err); /* a key from a file may be of any kind */
	if (code == 0) {
		set_common_name(X509_REQ_get_subject_name(request), name);
		add_names(request, name);
		CHECK(X509_REQ_sign(request, evp, EVP_sha256()) > 0);
		unsigned char *bytes = NULL;
		int length = i2d_X509_REQ(request, &bytes);
		CHECK(length > 0);
		buf_put(der, str_make((char *)bytes, (size_t)length));
		OPENSSL_free(bytes);
	}
	X509_REQ_free(request);
	return code;
}

static int read_request_name(X509_REQ *request, char name[LIMIT_AGENT_NAME_BYTES + 1], struct err *err)
{
	STACK_OF(X509_EXTENSION) *extensions = X509_REQ_get_extensions(request);
	int found = -1;
	GENERAL_NAMES *names = X509V3_get_d2i(extensions, NID_subject_alt_name, &found, NULL);
	int code = found == -2            ? err_set(err, ERR_INVALID, "the request has two lists of alternative names")
	           : found >= 0 && !names ? err_set(err, ERR_CORRUPT, "the request's alternative names cannot be read")
	                                  : trust_names_read(names, "the request", name, err);
	GENERAL_NAMES_free(names);
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
	return code;
}

static X509_REQ *parse_request(struct str der, struct err *err)
{
	if (der.length > LIMIT_TRUST_CERTIFICATE_BYTES) {
		err_set(err, ERR_LIMIT, "the request has %zu bytes; at most %d are read", der.length,
		        (int)LIMIT_TRUST_CERTIFICATE_BYTES);
		return NULL;
	}
	const unsigned char *at = (const unsigned char *)der.at;
	X509_REQ *request = d2i_X509_REQ(NULL, &at, (long)der.length);
	if (request && at == (const unsigned char *)der.at + der.length)
		return request;
	trust_openssl_failed(err, ERR_CORRUPT,
	                     request ? "there are bytes behind the request" : "this is not a request (PKCS #10 in DER)");
	X509_REQ_free(request);
	return NULL;
}

static int check_request(X509_REQ *request, char name[LIMIT_AGENT_NAME_BYTES + 1], site_id *id, struct err *err)
{
	int code = read_request_id(request, id, err);
	if (code < 0)
		return code;
	EVP_PKEY *key = X509_REQ_get0_pubkey(request);
	if (!key || X509_REQ_verify(request, key) != 1)
		return trust_openssl_failed(err, ERR_INVALID, "the request is not signed with the key that it is for");
	code = read_request_name(request, name, err);
	ERR_clear_error();
	return code;
}

int trust_request_read(struct str der, char name[LIMIT_AGENT_NAME_BYTES + 1], site_id *id, struct err *err)
{
	struct err own;
	X509_REQ *request = parse_request(der, &own);
	int code = request ? check_request(request, name, id, err) : err_set(err, own.code, "%s", own.text);
	X509_REQ_free(request);
	return code;
}

/* ---- Signing ----------------------------------------------------------------------------------------------------- */

struct signing {
	const struct trust_key *key;
	X509 *root;
	struct trust_certificate issuer;
	int64_t now_ms;
	int64_t to_ms;
};

static int start_signing(struct signing *signing, struct str root_der, int64_t lifetime_ms, struct err *err)
{
	struct err own;
	signing->root = trust_x509_parse(root_der, &own);
	int code = signing->root ? trust_x509_read(signing->root, root_der, &signing->issuer, &own) : own.code;
	if (code == 0)
		code = trust_x509_check_root(signing->root, &own);
	ERR_clear_error();
	if (code < 0) {
		err_set(err, code, "%s", own.text);
		return err_context(err, code, "the root");
	}
	if (signing->issuer.id != trust_key_id(signing->key))
		return err_set(err, ERR_INVALID,
		               "the key is not that of the root "
		               "%s",
		               signing->issuer.name);
	if (lifetime_ms <= 0)
		return err_set(err, ERR_INVALID, "a certificate has to be valid for some time");
	signing->to_ms = add_ms(signing->now_ms, lifetime_ms);
	if (signing->to_ms > signing->issuer.to_ms)
		signing->to_ms = signing->issuer.to_ms;
	if (signing->issuer.to_ms > signing->now_ms)
		return 0;
	char ended[TIMESTAMP_BYTES], now[TIMESTAMP_BYTES];
	timestamp_format(signing->issuer.to_ms, ended);
	timestamp_format(signing->now_ms, now);
	return err_set(err, ERR_INVALID, "the root %s has ended: it was valid until %s, and now it is %s",
	               signing->issuer.name, ended, now);
}

static void sign_certificate(const struct signing *signing, EVP_PKEY *subject, struct str name, struct buf *der,
                             int *code, struct err *err)
{
	EVP_PKEY *key = trust_key_evp(signing->key);
	X509 *x509 = start_certificate(subject);
	set_common_name(X509_get_subject_name(x509), name);
	CHECK(X509_set_issuer_name(x509, X509_get_subject_name(signing->root)) == 1);
	*code = set_times(x509, signing->now_ms - TRUST_BACKDATE_S * INT64_C(1000), signing->to_ms, err);
	if (*code == 0) {
		GENERAL_NAMES *names = make_names(name);
		add_extension(x509, signing->root, NID_basic_constraints, "critical,CA:FALSE");
		add_extension(x509, signing->root, NID_key_usage, "critical,digitalSignature,keyAgreement");
		add_extension(x509, signing->root, NID_ext_key_usage, "serverAuth,clientAuth");
		if (X509_get0_subject_key_id(signing->root)) /* two roots of one name are told apart by it */
			add_extension(x509, signing->root, NID_authority_key_identifier, "keyid");
		CHECK(X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, X509V3_ADD_DEFAULT) == 1);
		GENERAL_NAMES_free(names);
		CHECK(X509_sign(x509, key, trust_digest_of(key)) > 0);
		trust_x509_write(x509, der);
	}
	X509_free(x509);
}

int trust_request_sign(struct str request_der, const struct trust_key *root_key, struct str root_der, int64_t now_ms,
                       int64_t lifetime_ms, struct buf *der, struct err *err)
{
	char name[LIMIT_AGENT_NAME_BYTES + 1];
	site_id id;
	struct err own;
	struct signing signing = {.key = root_key, .now_ms = now_ms};
	X509_REQ *request = parse_request(request_der, &own);
	int code = request ? check_request(request, name, &id, err) : err_set(err, own.code, "%s", own.text);
	if (code == 0)
		code = start_signing(&signing, root_der, lifetime_ms, err);
	if (code == 0)
		sign_certificate(&signing, X509_REQ_get0_pubkey(request), str_of(name), der, &code, err);
	X509_free(signing.root);
	X509_REQ_free(request);
	return code;
}
