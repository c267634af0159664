#include "trust_test.h"

#include <openssl/pem.h>
#include <openssl/rsa.h>

static void pem_of(EVP_PKEY *key, const char *phrase, struct buf *pem)
{
	BIO *bio = BIO_new(BIO_s_mem());
	assert_true(PEM_write_bio_PKCS8PrivateKey(bio, key, phrase ? EVP_aes_128_cbc() : NULL, phrase,
	                                          phrase ? (int)strlen(phrase) : 0, NULL, NULL));
	char *text;
	long length = BIO_get_mem_data(bio, &text);
	buf_put(pem, str_make(text, (size_t)length));
	BIO_free(bio);
}

static void a_key_survives_its_file(void **state)
{
	(void)state;
	struct trust_key *key, *again;
	struct buf pem = {0}, signature = {0};
	struct err err;
	assert_int_equal(trust_key_make(&key, &err), 0);
	trust_key_write(key, &pem);
	assert_non_null(strstr(buf_c(&pem), "BEGIN PRIVATE KEY"));
	assert_int_equal(trust_key_read(&again, buf_str(&pem), &err), 0);
	assert_true(trust_key_id(key) == trust_key_id(again) && trust_key_id(key) != 0);
	trust_sign(again, STR("text"), &signature);
	assert_true(trust_verify_with(trust_key_evp(key), STR("text"), buf_str(&signature)));
	assert_false(trust_verify_with(trust_key_evp(key), STR("Text"), buf_str(&signature)));
	trust_key_free(key);
	trust_key_free(again);
	buf_free(&pem);
	buf_free(&signature);
}

/* The id is in cards, certificates and files of every version: it may not change. */
static void an_id_is_the_start_of_a_hash_of_the_key(void **state)
{
	(void)state;
	static const char pem[] = "-----BEGIN PRIVATE KEY-----\n"
							  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEFvVDwh0GAZyoQ7E\n"
							  "K1kef7nhXRkurPI+C93NOuErBwqhRANCAAQMZktyun743Y/lAQlZBGBT7E2XPjow\n"
							  "XCpRawcDceoSxaKbg3YaKHJGzo+KxC4dpUdoQuODRepluMusk4BPl1oM\n"
							  "-----END PRIVATE KEY-----\n";
	struct trust_key *key;
	struct err err = {0};
	int code = trust_key_read(&key, str_of(pem), &err);
	assert_string_equal(err.text, "");
	assert_int_equal(code, 0);
	assert_true(trust_key_id(key) == 0x25dd7dac0661c88b);
	trust_key_free(key);
}

static void what_is_no_key_is_refused(void **state)
{
	(void)state;
	struct trust_key *key;
	struct err err;
	struct buf pem = {0}, long_text = {0};
	assert_refused(trust_key_read(&key, STR(""), &err), err, "no private key");
	assert_refused(trust_key_read(&key, STR("-----BEGIN PRIVATE KEY-----\nAAAA\n"), &err), err, "no private key");
	EVP_PKEY *evp = EVP_EC_gen("P-256");
	pem_of(evp, "secret", &pem);
	assert_refused(trust_key_read(&key, buf_str(&pem), &err), err, "pass phrase");
	EVP_PKEY_free(evp);
	buf_put_repeat(&long_text, 'x', LIMIT_TRUST_FILE_BYTES + 1);
	assert_refused(trust_key_read(&key, buf_str(&long_text), &err), err, "at most 65536");
	buf_free(&pem);
	buf_free(&long_text);
}

static void weak_and_unfit_keys_are_refused(void **state)
{
	(void)state;
	struct trust_key *key;
	struct err err;
	struct buf pem = {0};
	EVP_PKEY *weak = EVP_RSA_gen(1024);
	pem_of(weak, NULL, &pem);
	assert_refused(trust_key_read(&key, buf_str(&pem), &err), err, "too weak");
	EVP_PKEY_free(weak);
	buf_clear(&pem);
	EVP_PKEY *unfit = EVP_PKEY_Q_keygen(NULL, NULL, "X25519");
	pem_of(unfit, NULL, &pem);
	assert_refused(trust_key_read(&key, buf_str(&pem), &err), err, "X25519 is not supported");
	EVP_PKEY_free(unfit);
	buf_free(&pem);
}

/* A key that is not for a site, but may be an authority's. */
static void an_authority_may_have_other_keys(void **state)
{
	(void)state;
	EVP_PKEY *kinds[] = {EVP_RSA_gen(2048), EVP_EC_gen("P-384"), EVP_PKEY_Q_keygen(NULL, NULL, "ED25519")};
	for (size_t i = 0; i < COUNT(kinds); i++) {
		struct trust_key *key;
		struct err err;
		struct buf pem = {0}, signature = {0}, request = {0};
		pem_of(kinds[i], NULL, &pem);
		assert_int_equal(trust_key_read(&key, buf_str(&pem), &err), 0);
		trust_sign(key, STR("text"), &signature);
		assert_true(trust_verify_with(kinds[i], STR("text"), buf_str(&signature)));
		assert_refused(trust_request_make(key, STR("Site1"), &request, &err), err, "not P-256");
		trust_key_free(key);
		buf_free(&pem);
		buf_free(&signature);
		buf_free(&request);
		EVP_PKEY_free(kinds[i]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_key_survives_its_file),          cmocka_unit_test(an_id_is_the_start_of_a_hash_of_the_key),
		cmocka_unit_test(what_is_no_key_is_refused),        cmocka_unit_test(weak_and_unfit_keys_are_refused),
		cmocka_unit_test(an_authority_may_have_other_keys),
	};
	return cmocka_run_group_tests_name("trust key", tests, NULL, NULL);
}
