#include "trust_test.h"

#include <openssl/pem.h>
#include <openssl/rsa.h>

struct world {
	struct holder root, other, site;
	struct trust_roots *roots;
};

static int setup(void **state)
{
	struct world *world = calloc(1, sizeof(*world));
	world->root = make_root("first authority");
	world->other = make_root("second authority");
	world->site = make_site(&world->root, "Site1");
	world->roots = roots_of(&world->root, NULL);
	*state = world;
	return 0;
}

static int teardown(void **state)
{
	struct world *world = *state;
	free_holder(&world->root);
	free_holder(&world->other);
	free_holder(&world->site);
	trust_roots_free(world->roots);
	free(world);
	return 0;
}

static int check(struct world *world, const struct buf *der, struct err *err)
{
	struct trust_certificate certificate;
	*err = (struct err){0};
	return trust_check(world->roots, buf_str(der), NOW_MS, &certificate, err);
}

/* ---- Good ones --------------------------------------------------------------------------------------------------- */

static void a_site_gets_a_certificate(void **state)
{
	struct world *world = *state;
	struct trust_certificate site, root;
	struct err err;
	struct buf signature = {0};
	assert_int_equal(trust_check(world->roots, buf_str(&world->site.der), NOW_MS, &site, &err), 0);
	assert_string_equal(site.name, "Site1");
	assert_true(site.id == id_of(&world->site) && !site.root);
	assert_true(site.from_ms == NOW_MS - DAY_MS && site.to_ms == NOW_MS + 30 * DAY_MS);
	assert_int_equal(trust_certificate_read(buf_str(&world->root.der), &root, &err), 0);
	assert_true(root.root && root.id == id_of(&world->root));
	assert_string_equal(root.name, "first authority");
	trust_sign(world->site.key, STR("said"), &signature);
	assert_true(trust_verify(buf_str(&world->site.der), STR("said"), buf_str(&signature)));
	assert_false(trust_verify(buf_str(&world->site.der), STR("Said"), buf_str(&signature)));
	assert_false(trust_verify(buf_str(&world->root.der), STR("said"), buf_str(&signature)));
	assert_false(trust_verify(STR("nonsense"), STR("said"), buf_str(&signature)));
	assert_true(world->site.der.length < 500); /* it travels inside a card */
	buf_free(&signature);
}

static void any_name_that_can_be_shown_is_possible(void **state)
{
	struct world *world = *state;
	struct buf longest = {0};
	for (int i = 0; i < LIMIT_AGENT_NAME_BYTES / 4; i++)
		buf_put(&longest, STR("🏔"));
	const char *names[] = {"a", "Site 1", "état", "a/b?c#d%20&e=f", "*", "-.", "\"quoted\"", buf_c(&longest)};
	for (size_t i = 0; i < COUNT(names); i++) {
		struct trust_certificate certificate;
		struct err err;
		struct holder site = make_site(&world->root, names[i]);
		assert_int_equal(trust_check(world->roots, buf_str(&site.der), NOW_MS, &certificate, &err), 0);
		assert_string_equal(certificate.name, names[i]);
		assert_true(site.der.length + 300 < LIMIT_SITE_CARD_BYTES || i + 1 == COUNT(names));
		free_holder(&site);
	}
	buf_free(&longest);
}

static void names_that_cannot_be_shown_are_refused(void **state)
{
	struct world *world = *state;
	struct buf der = {0}, long_name = {0};
	struct err err;
	buf_put_repeat(&long_name, 'x', LIMIT_AGENT_NAME_BYTES + 1);
	assert_refused(trust_request_make(world->site.key, STR(""), &der, &err), err, "empty");
	assert_refused(trust_request_make(world->site.key, STR("a\0b"), &der, &err), err, "control");
	assert_refused(trust_request_make(world->site.key, STR("a\nb"), &der, &err), err, "control");
	assert_refused(trust_request_make(world->site.key, STR("a\xff"), &der, &err), err, "UTF-8");
	assert_refused(trust_request_make(world->site.key, buf_str(&long_name), &der, &err), err, "at most 128");
	assert_refused(trust_root_make(world->root.key, STR(""), NOW_MS, DAY_MS, &der, &err), err, "empty");
	assert_int_equal(der.length, 0);
	buf_free(&long_name);
}

static void renewing_keeps_the_id(void **state)
{
	struct world *world = *state;
	struct buf request = {0}, der = {0};
	struct trust_certificate before, after;
	struct err err;
	assert_int_equal(trust_request_make(world->site.key, STR("Site1"), &request, &err), 0);
	assert_int_equal(trust_request_sign(buf_str(&request), world->root.key, buf_str(&world->root.der), NOW_MS + DAY_MS,
	                                    30 * DAY_MS, &der, &err),
	                 0);
	assert_int_equal(trust_certificate_read(buf_str(&world->site.der), &before, &err), 0);
	assert_int_equal(trust_check(world->roots, buf_str(&der), NOW_MS, &after, &err), 0);
	assert_true(before.id == after.id && after.to_ms == before.to_ms + DAY_MS);
	assert_memory_not_equal(before.fingerprint, after.fingerprint, sizeof(before.fingerprint));
	buf_free(&request);
	buf_free(&der);
}

static void an_end_is_never_after_that_of_the_root(void **state)
{
	struct world *world = *state;
	struct buf request = {0}, der = {0};
	struct trust_certificate certificate;
	struct err err;
	struct str root = buf_str(&world->root.der);
	assert_int_equal(trust_request_make(world->site.key, STR("Site1"), &request, &err), 0);
	struct str asked = buf_str(&request);
	assert_int_equal(trust_request_sign(asked, world->root.key, root, NOW_MS, INT64_MAX, &der, &err), 0);
	assert_int_equal(trust_certificate_read(buf_str(&der), &certificate, &err), 0);
	assert_true(certificate.to_ms == NOW_MS + 3650 * DAY_MS);
	int64_t late = NOW_MS + 3651 * DAY_MS;
	assert_refused(trust_request_sign(asked, world->root.key, root, late, DAY_MS, &der, &err), err, "has ended");
	assert_refused(trust_request_sign(asked, world->root.key, root, NOW_MS, 0, &der, &err), err, "some time");
	assert_refused(trust_request_sign(asked, world->other.key, root, NOW_MS, DAY_MS, &der, &err), err,
	               "not that of the root");
	assert_refused(trust_root_make(world->root.key, STR("x"), NOW_MS, INT64_MAX, &der, &err), err, "9999");
	assert_refused(trust_request_sign(asked, world->site.key, buf_str(&world->site.der), NOW_MS, DAY_MS, &der, &err),
	               err, "not that of an authority");
	buf_free(&request);
	buf_free(&der);
}

/* ---- Refusals ---------------------------------------------------------------------------------------------------- */

static void only_trusted_roots_count(void **state)
{
	struct world *world = *state;
	struct trust_certificate certificate;
	struct err err;
	struct holder stranger = make_site(&world->other, "Site2"), twin = make_root("first authority");
	struct holder imitated = make_site(&twin, "Site3");
	assert_refused(check(world, &stranger.der, &err), err, "Site2 is signed by no root");
	assert_refused(check(world, &imitated.der, &err), err, "Site3 is signed by no root"); /* same name, other key */

	assert_int_equal(trust_roots_add(world->roots, buf_str(&world->other.der), &err), 0);
	assert_int_equal(trust_roots_add(world->roots, buf_str(&twin.der), &err), 0);
	assert_int_equal(check(world, &stranger.der, &err), 0);
	assert_int_equal(check(world, &imitated.der, &err), 0);
	assert_int_equal(check(world, &world->site.der, &err), 0);

	assert_true(trust_roots_remove(world->roots, id_of(&world->root)));
	assert_false(trust_roots_remove(world->roots, id_of(&world->root)));
	assert_int_equal(trust_roots_count(world->roots), 2);
	assert_refused(check(world, &world->site.der, &err), err, "Site1 is signed by no root");
	assert_int_equal(check(world, &stranger.der, &err), 0);
	assert_int_equal(trust_roots_find(world->roots, id_of(&world->root)).length, 0);
	assert_true(str_equal(trust_roots_find(world->roots, id_of(&twin)), buf_str(&twin.der)));
	assert_true(str_equal(trust_roots_at(world->roots, 1), buf_str(&twin.der)));
	assert_int_equal(trust_check(world->roots, buf_str(&stranger.der), NOW_MS, &certificate, NULL), 0);
	free_holder(&stranger);
	free_holder(&imitated);
	free_holder(&twin);
}

static void time_counts(void **state)
{
	struct world *world = *state;
	struct trust_certificate certificate;
	struct err err;
	struct str der = buf_str(&world->site.der);
	int64_t from = NOW_MS - DAY_MS, to = NOW_MS + 30 * DAY_MS;
	assert_int_equal(trust_check(world->roots, der, from, &certificate, &err), 0);
	assert_int_equal(trust_check(world->roots, der, to, &certificate, &err), 0);
	assert_refused(
		trust_check(world->roots, der, from - 1, &certificate, &err), err,
		"the certificate of Site1 is not valid before 2026-11-14T09:00:00Z, and now it is 2026-11-14T08:59:59.999Z");
	assert_refused(trust_check(world->roots, der, to + 1, &certificate, &err), err,
	               "the certificate of Site1 ended 2026-12-15T09:00:00Z, and now it is 2026-12-15T09:00:00.001Z");

	/* One that outlives its root, as somebody else's authority may sign. */
	struct buf der_long = {0};
	forge_certificate(&(struct forge){.uris = {STR("cheops://site/a")}, .to_ms = NOW_MS + 9999 * DAY_MS}, &world->root,
	                  &der_long);
	assert_refused(trust_check(world->roots, buf_str(&der_long), NOW_MS + 3651 * DAY_MS, &certificate, &err), err,
	               "the root of first authority ended");
	buf_free(&der_long);
}

static void strange_certificates_are_refused(void **state)
{
	struct world *world = *state;
	struct buf long_uri = {0}, huge = {0};
	buf_put(&long_uri, STR("cheops://site/"));
	buf_put_repeat(&long_uri, 'x', LIMIT_AGENT_NAME_BYTES + 1);
	buf_put_repeat(&huge, 'x', LIMIT_TRUST_CERTIFICATE_BYTES);
	EVP_PKEY *p384 = EVP_EC_gen("P-384"), *rsa = EVP_RSA_gen(2048);
	const struct {
		struct forge forge;
		const char *said;
	} cases[] = {
		{{.version = 3}, "names no site"},
		{{.dns = STR("site1.example")}, "that is not cheops://site/"},
		{{.uris = {STR("cheops://site/a"), STR("cheops://site/b")}}, "2 alternative names"},
		{{.uris = {STR("cheops://site/a")}, .dns = STR("site1.example")}, "2 alternative names"},
		{{.uris = {STR("https://site/a")}}, "is not cheops://site/"},
		{{.uris = {STR("cheops://site/")}}, "is empty"},
		{{.uris = {STR("cheops://site/a\0b")}}, "percent-encoded"},
		{{.uris = {STR("cheops://site/a%00b")}}, "control"},
		{{.uris = {STR("cheops://site/a%0")}}, "percent-encoded"},
		{{.uris = {STR("cheops://site/%c3%a9")}}, "percent-encoded"}, /* a second spelling */
		{{.uris = {STR("cheops://site/%41")}}, "percent-encoded"},
		{{.uris = {STR("cheops://site/a/b")}}, "percent-encoded"},
		{{.uris = {STR("cheops://site/%FF")}}, "UTF-8"},
		{{.uris = {buf_str(&long_uri)}}, "at most 128 are allowed"},
		{{.uris = {STR("cheops://site/a")}, .key = p384}, "not P-256"},
		{{.uris = {STR("cheops://site/a")}, .key = rsa}, "not P-256"},
		{{.uris = {STR("cheops://site/a")}, .basic = "critical,CA:TRUE"}, "of an authority"},
		{{.uris = {STR("cheops://site/a")}, .extended = ""}, "serverAuth, clientAuth"},
		{{.uris = {STR("cheops://site/a")}, .extended = "serverAuth"}, "serverAuth, clientAuth"},
		{{.uris = {STR("cheops://site/a")}, .extended = "clientAuth"}, "serverAuth, clientAuth"},
		{{.uris = {STR("cheops://site/a")}, .use = "critical,keyAgreement"}, "serverAuth, clientAuth"},
		{{.uris = {STR("cheops://site/a")}, .version = 1}, "version 3"},
		{{.uris = {STR("cheops://site/a")}, .critical = STR("?")}, "critical extension"},
		{{.uris = {STR("cheops://site/a")}, .critical = buf_str(&huge)}, "at most 4096"},
		{{.uris = {STR("cheops://site/a")}, .digest = "SHA1"}, "signed by no root"},
		{{.uris = {STR("cheops://site/a")}, .issuer = "somebody"}, "signed by no root"},
		{{.uris = {STR("cheops://site/a")}, .to_ms = NOW_MS - 1000}, "ended"},
		{{.uris = {STR("cheops://site/a")}, .from_ms = NOW_MS + 1000}, "not valid before"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf der = {0};
		struct err err;
		forge_certificate(&cases[i].forge, &world->root, &der);
		assert_refused(check(world, &der, &err), err, cases[i].said);
		buf_free(&der);
	}
	EVP_PKEY_free(p384);
	EVP_PKEY_free(rsa);
	buf_free(&long_uri);
	buf_free(&huge);
}

static void a_root_is_not_a_site(void **state)
{
	struct world *world = *state;
	struct err err;
	assert_refused(check(world, &world->root.der, &err), err, "not of a site");
	assert_refused(trust_roots_add(world->roots, buf_str(&world->site.der), &err), err, "not that of an authority");
}

static void cut_and_changed_bytes_are_refused(void **state)
{
	struct world *world = *state;
	struct err err;
	struct buf *der = &world->site.der;
	for (size_t cut = 0; cut < der->length; cut++) {
		struct buf part = {0};
		buf_put(&part, str_make(der->at, cut));
		assert_refused(check(world, &part, &err), err, "not a certificate");
		buf_free(&part);
	}
	for (size_t at = 0; at < der->length; at++) {
		for (int bit = 0; bit < 8; bit++) {
			der->at[at] = (char)(der->at[at] ^ 1 << bit);
			assert_true(check(world, der, &err) < 0);
			der->at[at] = (char)(der->at[at] ^ 1 << bit);
		}
	}
	assert_int_equal(check(world, der, &err), 0);
	buf_put_char(der, '\0');
	assert_refused(check(world, der, &err), err, "behind the certificate");
}

/* ---- Requests ---------------------------------------------------------------------------------------------------- */

static void a_request_proves_its_key(void **state)
{
	struct world *world = *state;
	struct buf request = {0};
	char name[LIMIT_AGENT_NAME_BYTES + 1];
	site_id id;
	struct err err;
	assert_int_equal(trust_request_make(world->site.key, STR("État 1"), &request, &err), 0);
	assert_int_equal(trust_request_read(buf_str(&request), name, &id, &err), 0);
	assert_string_equal(name, "État 1");
	assert_true(id == id_of(&world->site));
	for (size_t cut = 0; cut < request.length; cut++)
		assert_refused(trust_request_read(str_make(request.at, cut), name, &id, &err), err, "not a request");
	for (size_t at = 0; at < request.length; at++) {
		request.at[at] = (char)(request.at[at] ^ 4);
		assert_true(trust_request_read(buf_str(&request), name, &id, &err) < 0);
		request.at[at] = (char)(request.at[at] ^ 4);
	}
	buf_put_char(&request, 'x');
	assert_refused(trust_request_read(buf_str(&request), name, &id, &err), err, "behind the request");
	buf_put_repeat(&request, 'x', LIMIT_TRUST_CERTIFICATE_BYTES);
	assert_refused(trust_request_read(buf_str(&request), name, &id, &err), err, "at most 4096");
	buf_free(&request);
}

/* Name and key are all that a request can obtain. */
static void what_more_a_request_asks_for_is_not_given(void **state)
{
	struct world *world = *state;
	struct buf der = {0}, signed_der = {0};
	struct err err;
	X509_REQ *request = X509_REQ_new();
	STACK_OF(X509_EXTENSION) *extensions = sk_X509_EXTENSION_new_null();
	EVP_PKEY *key = trust_key_evp(world->site.key);
	sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE"));
	sk_X509_EXTENSION_push(extensions, X509V3_EXT_conf_nid(NULL, NULL, NID_key_usage, "keyCertSign"));
	sk_X509_EXTENSION_push(extensions,
	                       X509V3_EXT_conf_nid(NULL, NULL, NID_subject_alt_name, "URI:cheops://site/Site1"));
	X509_REQ_add_extensions(request, extensions);
	X509_NAME_add_entry_by_txt(X509_REQ_get_subject_name(request), "CN", MBSTRING_ASC, (const unsigned char *)"Site9",
	                           -1, -1, 0);
	X509_REQ_set_pubkey(request, key);
	X509_REQ_sign(request, key, EVP_sha256());
	unsigned char *bytes = NULL;
	int length = i2d_X509_REQ(request, &bytes);
	buf_put(&der, str_make((char *)bytes, (size_t)length));
	assert_int_equal(trust_request_sign(buf_str(&der), world->root.key, buf_str(&world->root.der), NOW_MS, DAY_MS,
	                                    &signed_der, &err),
	                 0);
	assert_int_equal(check(world, &signed_der, &err), 0);
	X509 *x509 = trust_x509_parse(buf_str(&signed_der), NULL);
	assert_int_equal(X509_check_ca(x509), 0);
	assert_int_equal(X509_get_key_usage(x509), KU_DIGITAL_SIGNATURE | KU_KEY_AGREEMENT);
	char common[80];
	X509_NAME_get_text_by_NID(X509_get_subject_name(x509), NID_commonName, common, sizeof(common));
	assert_string_equal(common, "Site1");
	X509_free(x509);
	OPENSSL_free(bytes);
	sk_X509_EXTENSION_pop_free(extensions, X509_EXTENSION_free);
	X509_REQ_free(request);
	buf_free(&der);
	buf_free(&signed_der);
}

/* ---- An operator's own authority --------------------------------------------------------------------------------- */

static struct trust_key *key_from(EVP_PKEY *evp)
{
	struct trust_key *key;
	struct err err;
	BIO *bio = BIO_new(BIO_s_mem());
	i2d_PKCS8PrivateKey_bio(bio, evp, NULL, NULL, 0, NULL, NULL);
	char *der, *pem = NULL;
	long length = BIO_get_mem_data(bio, &der);
	BIO *text = BIO_new(BIO_s_mem());
	PEM_write_bio(text, "PRIVATE KEY", "", (unsigned char *)der, length);
	length = BIO_get_mem_data(text, &pem);
	assert_int_equal(trust_key_read(&key, str_make(pem, (size_t)length), &err), 0);
	BIO_free(bio);
	BIO_free(text);
	EVP_PKEY_free(evp);
	return key;
}

/* RSA, other curves, Ed25519, and signed by somebody above: an intermediate authority. */
static void an_operator_may_bring_an_authority(void **state)
{
	struct world *world = *state;
	struct trust_key *keys[] = {key_from(EVP_RSA_gen(2048)), key_from(EVP_EC_gen("P-384")),
	                            key_from(EVP_PKEY_Q_keygen(NULL, NULL, "ED25519"))};
	for (size_t i = 0; i < COUNT(keys); i++) {
		struct holder own = {.key = keys[i]};
		struct err err;
		forge_certificate(&(struct forge){.key = trust_key_evp(keys[i]),
		                                  .subject = STR("Own Intermediate"),
		                                  .basic = "critical,CA:TRUE",
		                                  .use = "critical,keyCertSign",
		                                  .extended = "",
		                                  .to_ms = NOW_MS + 99 * DAY_MS},
		                  &world->other, &own.der);
		struct holder site = make_site(&own, "Site5");
		assert_refused(check(world, &site.der, &err), err, "no root");
		assert_int_equal(trust_roots_add(world->roots, buf_str(&own.der), &err), 0);
		assert_true(str_equal(trust_roots_find(world->roots, trust_key_id(own.key)), buf_str(&own.der)));
		assert_int_equal(check(world, &site.der, &err), 0);
		free_holder(&site);
		free_holder(&own);
	}
}

static void what_cannot_be_a_root_is_refused(void **state)
{
	struct world *world = *state;
	EVP_PKEY *weak = EVP_RSA_gen(1024);
	const struct {
		struct forge forge;
		const char *said;
	} cases[] = {
		{{.basic = "critical,CA:TRUE", .use = "critical,digitalSignature"}, "keyCertSign"},
		{{.basic = ""}, "not that of an authority"},
		{{.basic = "critical,CA:TRUE", .use = "critical,keyCertSign", .key = weak}, "too weak"},
		{{.basic = "critical,CA:TRUE", .use = "critical,keyCertSign", .subject = STR("a\0b")}, "control"},
		{{.basic = "critical,CA:TRUE", .use = "critical,keyCertSign", .critical = STR("?")}, "critical extension"},
		{{.version = 1}, "not that of an authority"},
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct buf der = {0};
		struct err err;
		forge_certificate(&cases[i].forge, &world->other, &der);
		assert_refused(trust_roots_add(world->roots, buf_str(&der), &err), err, cases[i].said);
		buf_free(&der);
	}
	EVP_PKEY_free(weak);
}

static void roots_are_few(void **state)
{
	struct world *world = *state;
	struct err err;
	struct holder more = {0};
	for (int i = 1; i < LIMIT_TRUST_ROOTS; i++) {
		more = make_root("more");
		assert_int_equal(trust_roots_add(world->roots, buf_str(&more.der), &err), 0);
		free_holder(&more);
	}
	assert_refused(trust_roots_add(world->roots, buf_str(&world->other.der), &err), err, "8 roots are trusted already");
	assert_int_equal(trust_roots_add(world->roots, buf_str(&world->root.der), &err), 0); /* is there: no news */
	assert_int_equal(trust_roots_count(world->roots), LIMIT_TRUST_ROOTS);
}

/* ---- PEM --------------------------------------------------------------------------------------------------------- */

static void collect(void *context, struct str der)
{
	struct buf *all = context;
	buf_put(all, der);
	buf_put_char(all, '|');
}

static void pem_holds_several(void **state)
{
	struct world *world = *state;
	struct buf pem = {0}, got = {0}, wanted = {0};
	struct err err;
	buf_put(&pem, STR("a comment\n"));
	trust_pem_write(&pem, buf_str(&world->root.der));
	trust_key_write(world->root.key, &pem);
	trust_pem_write(&pem, buf_str(&world->other.der));
	collect(&wanted, buf_str(&world->root.der));
	collect(&wanted, buf_str(&world->other.der));
	assert_int_equal(trust_pem_each(buf_str(&pem), collect, &got, &err), 0);
	assert_true(str_equal(buf_str(&got), buf_str(&wanted)));
	assert_refused(trust_pem_each(STR("nothing"), collect, &got, &err), err, "no certificate");
	assert_refused(trust_pem_each(str_make(pem.at, pem.length - 40), collect, &got, &err), err, "certificate 2");
	buf_put_repeat(&pem, 'x', LIMIT_TRUST_FILE_BYTES);
	assert_refused(trust_pem_each(buf_str(&pem), collect, &got, &err), err, "at most 65536");
	buf_free(&pem);
	buf_free(&got);
	buf_free(&wanted);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_site_gets_a_certificate),
		TEST(any_name_that_can_be_shown_is_possible),
		TEST(names_that_cannot_be_shown_are_refused),
		TEST(renewing_keeps_the_id),
		TEST(an_end_is_never_after_that_of_the_root),
		TEST(only_trusted_roots_count),
		TEST(time_counts),
		TEST(strange_certificates_are_refused),
		TEST(a_root_is_not_a_site),
		TEST(cut_and_changed_bytes_are_refused),
		TEST(a_request_proves_its_key),
		TEST(what_more_a_request_asks_for_is_not_given),
		TEST(an_operator_may_bring_an_authority),
		TEST(what_cannot_be_a_root_is_refused),
		TEST(roots_are_few),
		TEST(pem_holds_several),
	};
	return cmocka_run_group_tests_name("trust certificate", tests, NULL, NULL);
}
