/* One side of TLS connections: what it shows, and whom it trusts.
 *
 * Between agents everything is decided here: TLS 1.3, certificates on both sides, the given roots and no others, no
 * resumption. Towards clients and applications TLS 1.2 is good enough, with ciphers that keep what was recorded secret.
 *
 * PEM texts are written by people. Each complaint says which of them is wrong, and a text that needs a passphrase is refused
 * instead of asking for one.
 */
#include "http/http_int.h"

#include "base/check.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdatomic.h>
#include <stdlib.h>

struct http_tls {
	atomic_uint references;
	SSL_CTX *context;
	bool peers;
	bool pinned;
	unsigned char root[32]; /* pinned: fingerprint of the only root */
};

SSL *http_tls_session(const struct http_tls *tls)
{
	SSL *ssl = SSL_new(tls->context);
	CHECK(ssl);
	return ssl;
}

bool http_tls_is_peers(const struct http_tls *tls)
{
	return tls->peers;
}

/* ---- PEM -------------------------------------------------------------------------------------------------------- */

static const char *name_or(const char *name, const char *otherwise)
{
	return name ? name : otherwise;
}

/* What OpenSSL says, without its codes; forgets it. */
static const char *reason(void)
{
	const char *text = ERR_reason_error_string(ERR_peek_error()); /* the first is the most exact */
	ERR_clear_error();
	return text ? text : "unknown reason";
}

/* There is nobody to ask. */
static int no_passphrase(char *at, int size, int writing, void *asked)
{
	(void)at;
	(void)size;
	(void)writing;
	*(bool *)asked = true;
	return -1;
}

static BIO *pem_open(struct str pem)
{
	BIO *bio = BIO_new_mem_buf(pem.length ? pem.at : "", pem.length < INT32_MAX ? (int)pem.length : INT32_MAX);
	CHECK(bio);
	return bio;
}

/* Hands each certificate of the text to `each`, which takes it over. */
static int each_certificate(struct str pem, const char *name, int (*each)(void *context, X509 *certificate),
                            void *context, struct err *err)
{
	bool asked = false;
	unsigned count = 0;
	int code = 0;
	BIO *bio = pem_open(pem);
	X509 *certificate;
	ERR_clear_error();
	while (code == 0 && (certificate = PEM_read_bio_X509(bio, NULL, no_passphrase, &asked)) != NULL) {
		count++;
		if (each(context, certificate) != 0)
			code = err_set(err, ERR_INVALID, "%s: certificate %u cannot be used: %s", name, count, reason());
	}
	BIO_free(bio);
	unsigned long last = ERR_peek_last_error();
	bool at_end = ERR_GET_LIB(last) == ERR_LIB_PEM && ERR_GET_REASON(last) == PEM_R_NO_START_LINE;
	if (code == 0 && !at_end)
		code = err_set(err, ERR_INVALID, "%s: certificate %u is not well-formed: %s", name, count + 1, reason());
	else if (code == 0 && count == 0)
		code = err_set(err, ERR_INVALID,
		               "%s: there is no certificate in it; it begins with -----BEGIN CERTIFICATE-----", name);
	ERR_clear_error();
	return code;
}

struct chain {
	SSL_CTX *context;
	bool first_is_set;
};

static int put_in_chain(void *context, X509 *certificate)
{
	struct chain *chain = context;
	int good = chain->first_is_set ? (int)SSL_CTX_add1_chain_cert(chain->context, certificate)
	                               : SSL_CTX_use_certificate(chain->context, certificate);
	chain->first_is_set = true;
	X509_free(certificate);
	return good == 1 ? 0 : -1;
}

static int set_certificate(SSL_CTX *context, const struct http_tls_options *options, struct err *err)
{
	const char *key_name = name_or(options->key_name, "the key");
	struct chain chain = {.context = context};
	int code = each_certificate(options->certificate_pem, name_or(options->certificate_name, "the certificate"),
	                            put_in_chain, &chain, err);
	if (code)
		return code;
	bool asked = false;
	BIO *bio = pem_open(options->key_pem);
	EVP_PKEY *key = PEM_read_bio_PrivateKey(bio, NULL, no_passphrase, &asked);
	BIO_free(bio);
	if (asked)
		code = err_set(err, ERR_INVALID, "%s: it is locked with a passphrase; store it without one", key_name);
	else if (!key)
		code = err_set(err, ERR_INVALID,
		               "%s: there is no private key in it; it begins with -----BEGIN PRIVATE KEY-----", key_name);
	else if (X509_check_private_key(SSL_CTX_get0_certificate(context), key) != 1)
		code = err_set(err, ERR_INVALID, "%s: the key does not belong to the certificate", key_name);
	else if (SSL_CTX_use_PrivateKey(context, key) != 1)
		code = err_set(err, ERR_INVALID, "%s: the key cannot be used: %s", key_name, reason());
	EVP_PKEY_free(key);
	ERR_clear_error();
	return code;
}

/* ---- Trust ------------------------------------------------------------------------------------------------------ */

struct roots {
	SSL_CTX *context;
	bool announce; /* to clients, so that they can choose among their certificates */
};

static int put_in_roots(void *context, X509 *certificate)
{
	struct roots *roots = context;
	/* What of it OpenSSL reads when it is first used, it reads now: threads share it. */
	X509_check_purpose(certificate, -1, 0);
	int good = X509_STORE_add_cert(SSL_CTX_get_cert_store(roots->context), certificate);
	if (good == 1 && roots->announce)
		good = SSL_CTX_add_client_CA(roots->context, certificate);
	X509_free(certificate);
	return good == 1 ? 0 : -1;
}

/* The only trusted root is the one with the fingerprint, which the server sends along. */
static int verify_pinned(X509_STORE_CTX *store, void *context)
{
	const struct http_tls *tls = context;
	STACK_OF(X509) *sent = X509_STORE_CTX_get0_untrusted(store), *trusted = sk_X509_new_null();
	CHECK(trusted);
	for (int i = 0; i < sk_X509_num(sent); i++) {
		unsigned char digest[EVP_MAX_MD_SIZE];
		unsigned length;
		X509 *certificate = sk_X509_value(sent, i);
		if (X509_digest(certificate, EVP_sha256(), digest, &length) == 1 && length == sizeof(tls->root) &&
		    memcmp(digest, tls->root, length) == 0)
			sk_X509_push(trusted, certificate);
	}
	X509_STORE_CTX_set0_trusted_stack(store, trusted);
	int good = X509_verify_cert(store);
	sk_X509_free(trusted);
	return good;
}

static int set_roots(struct http_tls *tls, const struct http_tls_options *options, struct err *err)
{
	struct roots roots = {.context = tls->context, .announce = options->server && !options->peers};
	/* A root may be one that another signed: who configured it trusts it. */
	X509_VERIFY_PARAM_set_flags(SSL_CTX_get0_param(tls->context), X509_V_FLAG_PARTIAL_CHAIN);
	SSL_CTX_set_verify_depth(tls->context, LIMIT_TLS_CHAIN);
	if (options->root_sha256) {
		tls->pinned = true;
		memcpy(tls->root, options->root_sha256, sizeof(tls->root));
		SSL_CTX_set_cert_verify_callback(tls->context, verify_pinned, tls);
		return 0;
	}
	if (options->roots_pem.length)
		return each_certificate(options->roots_pem, name_or(options->roots_name, "the roots"), put_in_roots, &roots,
		                        err);
	if (options->verify == HTTP_TLS_VERIFY_NONE)
		return 0;
	if (options->server || options->peers)
		return err_set(err, ERR_INVALID, "%s: there is no certificate in it",
		               name_or(options->roots_name, "the roots"));
	if (SSL_CTX_set_default_verify_paths(tls->context) != 1)
		return err_set(err, ERR_IO, "the roots of the system cannot be read: %s", reason());
	return 0;
}

/* ---- The rest --------------------------------------------------------------------------------------------------- */

static const unsigned char protocol[] = "\x08http/1.1";

/* A client that names protocols, but not ours, is refused: it would be misunderstood. */
static int choose_protocol(SSL *ssl, const unsigned char **chosen, unsigned char *length, const unsigned char *offered,
                           unsigned offered_length, void *context)
{
	(void)ssl;
	(void)context;
	unsigned char *match;
	if (SSL_select_next_proto(&match, length, protocol, sizeof(protocol) - 1, offered, offered_length) !=
	    OPENSSL_NPN_NEGOTIATED)
		return SSL_TLSEXT_ERR_ALERT_FATAL;
	*chosen = match;
	return SSL_TLSEXT_ERR_OK;
}

static void set_protocol(SSL_CTX *context, const struct http_tls_options *options)
{
	bool good = SSL_CTX_set_min_proto_version(context, options->peers ? TLS1_3_VERSION : TLS1_2_VERSION) == 1 &&
	            SSL_CTX_set_max_proto_version(context, TLS1_3_VERSION) == 1 &&
	            SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1 &&
	            SSL_CTX_set_alpn_protos(context, protocol, sizeof(protocol) - 1) == 0;
	CHECK(good);
	SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
	/* One read of the socket takes in all that is there, and memory is held only while something is under way. */
	SSL_CTX_set_read_ahead(context, 1);
	SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
	SSL_CTX_set_max_cert_list(context, LIMIT_TLS_PEER_CHAIN_BYTES);
	SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
	if (!options->server)
		return;
	SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
	SSL_CTX_set_max_early_data(context, 0);
	/* A ticket would let in who showed a certificate once, without looking at it again. */
	if (options->peers || options->verify != HTTP_TLS_VERIFY_NONE) {
		SSL_CTX_set_num_tickets(context, 0);
		SSL_CTX_set_options(context, SSL_OP_NO_TICKET);
	}
}

static int set_up(struct http_tls *tls, const struct http_tls_options *options, struct err *err)
{
	set_protocol(tls->context, options);
	int code = 0;
	if (options->server || options->certificate_pem.length || options->key_pem.length)
		code = set_certificate(tls->context, options, err);
	if (code == 0)
		code = set_roots(tls, options, err);
	int mode = options->verify == HTTP_TLS_VERIFY_NONE ? SSL_VERIFY_NONE : SSL_VERIFY_PEER;
	if (options->verify == HTTP_TLS_VERIFY_ALWAYS)
		mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
	SSL_CTX_set_verify(tls->context, mode, http_secure_verified);
	return code;
}

int http_tls_new(struct http_tls **out, const struct http_tls_options *options, struct err *err)
{
	CHECK(options->server || options->verify == HTTP_TLS_VERIFY_ALWAYS);
	CHECK(!options->root_sha256 || (options->peers && !options->server));
	struct http_tls *tls = calloc(1, sizeof(*tls));
	CHECK(tls);
	atomic_init(&tls->references, 1);
	tls->peers = options->peers;
	ERR_clear_error();
	tls->context = SSL_CTX_new(options->server ? TLS_server_method() : TLS_client_method());
	CHECK(tls->context);
	int code = set_up(tls, options, err);
	if (code)
		http_tls_drop(tls);
	else
		*out = tls;
	return code;
}

struct http_tls *http_tls_keep(struct http_tls *tls)
{
	atomic_fetch_add_explicit(&tls->references, 1, memory_order_relaxed);
	return tls;
}

void http_tls_drop(struct http_tls *tls)
{
	if (!tls || atomic_fetch_sub_explicit(&tls->references, 1, memory_order_acq_rel) != 1)
		return;
	SSL_CTX_free(tls->context);
	free(tls);
}
