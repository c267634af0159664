#include "trust_test.h"

#include <openssl/err.h>

struct holder make_root(const char *name)
{
	struct holder root = {0};
	struct err err;
	assert_int_equal(trust_key_make(&root.key, &err), 0);
	assert_int_equal(trust_root_make(root.key, str_of(name), NOW_MS, 3650 * DAY_MS, &root.der, &err), 0);
	return root;
}

struct holder make_site(const struct holder *root, const char *name)
{
	struct holder site = {0};
	struct buf request = {0};
	struct err err;
	assert_int_equal(trust_key_make(&site.key, &err), 0);
	assert_int_equal(trust_request_make(site.key, str_of(name), &request, &err), 0);
	assert_int_equal(
		trust_request_sign(buf_str(&request), root->key, buf_str(&root->der), NOW_MS, 30 * DAY_MS, &site.der, &err), 0);
	buf_free(&request);
	return site;
}

void free_holder(struct holder *holder)
{
	trust_key_free(holder->key);
	buf_free(&holder->der);
}

struct trust_roots *roots_of(const struct holder *a, const struct holder *b)
{
	struct trust_roots *roots = trust_roots_new();
	struct err err;
	assert_int_equal(trust_roots_add(roots, buf_str(&a->der), &err), 0);
	if (b)
		assert_int_equal(trust_roots_add(roots, buf_str(&b->der), &err), 0);
	return roots;
}

site_id id_of(const struct holder *holder)
{
	return trust_key_id(holder->key);
}

static void add(X509 *x509, int kind, const char *given, const char *ours)
{
	const char *value = given ? given : ours;
	if (*value == '\0')
		return;
	X509V3_CTX context;
	X509V3_set_ctx(&context, x509, x509, NULL, NULL, 0);
	X509V3_set_ctx_nodb(&context);
	X509_EXTENSION *extension = X509V3_EXT_conf_nid(NULL, &context, kind, value);
	assert_non_null(extension);
	X509_add_ext(x509, extension, -1);
	X509_EXTENSION_free(extension);
}

static void add_name(GENERAL_NAMES *names, int kind, struct str text)
{
	GENERAL_NAME *name = GENERAL_NAME_new();
	ASN1_IA5STRING *string = ASN1_IA5STRING_new();
	ASN1_STRING_set(string, text.at, (int)text.length);
	GENERAL_NAME_set0_value(name, kind, string);
	sk_GENERAL_NAME_push(names, name);
}

static void add_names(X509 *x509, const struct forge *forge)
{
	GENERAL_NAMES *names = GENERAL_NAMES_new();
	for (size_t i = 0; i < COUNT(forge->uris); i++)
		if (forge->uris[i].at)
			add_name(names, GEN_URI, forge->uris[i]);
	if (forge->dns.at)
		add_name(names, GEN_DNS, forge->dns);
	if (sk_GENERAL_NAME_num(names) > 0)
		X509_add1_ext_i2d(x509, NID_subject_alt_name, names, 0, 0);
	GENERAL_NAMES_free(names);
}

static void add_critical(X509 *x509, struct str content)
{
	ASN1_OBJECT *object = OBJ_txt2obj("1.3.6.1.4.1.55555.1", 1);
	ASN1_OCTET_STRING *string = ASN1_OCTET_STRING_new();
	ASN1_OCTET_STRING_set(string, (const unsigned char *)content.at, (int)content.length);
	X509_EXTENSION *extension = X509_EXTENSION_create_by_OBJ(NULL, object, 1, string);
	X509_add_ext(x509, extension, -1);
	X509_EXTENSION_free(extension);
	ASN1_OCTET_STRING_free(string);
	ASN1_OBJECT_free(object);
}

static void set_name(X509_NAME *name, struct str text)
{
	ASN1_STRING *string = ASN1_STRING_type_new(V_ASN1_UTF8STRING);
	ASN1_STRING_set(string, text.at, (int)text.length);
	X509_NAME_ENTRY *entry = X509_NAME_ENTRY_create_by_NID(NULL, NID_commonName, V_ASN1_UTF8STRING, NULL, 0);
	X509_NAME_ENTRY_set_data(entry, V_ASN1_UTF8STRING, (const unsigned char *)text.at, (int)text.length);
	X509_NAME_add_entry(name, entry, -1, 0);
	X509_NAME_ENTRY_free(entry);
	ASN1_STRING_free(string);
}

static void set_issuer(X509 *x509, const struct forge *forge, const struct holder *root)
{
	if (forge->issuer) {
		set_name(X509_get_issuer_name(x509), str_of(forge->issuer));
		return;
	}
	X509 *issuer = trust_x509_parse(buf_str(&root->der), NULL);
	assert_non_null(issuer);
	X509_set_issuer_name(x509, X509_get_subject_name(issuer));
	X509_free(issuer);
}

void forge_certificate(const struct forge *forge, const struct holder *root, struct buf *der)
{
	EVP_PKEY *key = forge->key ? forge->key : EVP_EC_gen("P-256");
	const EVP_MD *digest =
		forge->digest ? EVP_get_digestbyname(forge->digest) : trust_digest_of(trust_key_evp(root->key));
	X509 *x509 = X509_new();
	assert_true(x509 && key);
	X509_set_version(x509, forge->version == 1 ? X509_VERSION_1 : X509_VERSION_3);
	ASN1_INTEGER_set(X509_get_serialNumber(x509), 4711);
	X509_set_pubkey(x509, key);
	set_name(X509_get_subject_name(x509), forge->subject.at ? forge->subject : STR("forged"));
	set_issuer(x509, forge, root);
	ASN1_TIME_set(X509_getm_notBefore(x509), (time_t)((forge->from_ms ? forge->from_ms : NOW_MS - DAY_MS) / 1000));
	ASN1_TIME_set(X509_getm_notAfter(x509), (time_t)((forge->to_ms ? forge->to_ms : NOW_MS + DAY_MS) / 1000));
	if (forge->version != 1) {
		add(x509, NID_basic_constraints, forge->basic, "critical,CA:FALSE");
		add(x509, NID_key_usage, forge->use, "critical,digitalSignature,keyAgreement");
		add(x509, NID_ext_key_usage, forge->extended, "serverAuth,clientAuth");
		add_names(x509, forge);
		if (forge->critical.at)
			add_critical(x509, forge->critical);
	}
	assert_true(X509_sign(x509, trust_key_evp(root->key), digest) > 0);
	trust_x509_write(x509, der);
	X509_free(x509);
	if (!forge->key)
		EVP_PKEY_free(key);
	ERR_clear_error();
}

void assert_refused_at(int code, const struct err *err, const char *part, const char *file, int line)
{
	if (code < 0 && err->code == code && strstr(err->text, part) && ERR_peek_error() == 0)
		return;
	print_error("code %d, text [%s]; wanted a refusal with [%s]\n", code, code < 0 ? err->text : "", part);
	_fail(file, line);
}
