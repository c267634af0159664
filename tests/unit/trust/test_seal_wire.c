/* Fixed keys and numbers give fixed bytes: agents of one version talk to those of the next. The bytes are those of
 * docs/protocol/seal.md, and were computed by another program. */
#include "seal_world.h"

static const char pem_a[] = "-----BEGIN PRIVATE KEY-----\n"
							"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgEFvVDwh0GAZyoQ7E\n"
							"K1kef7nhXRkurPI+C93NOuErBwqhRANCAAQMZktyun743Y/lAQlZBGBT7E2XPjow\n"
							"XCpRawcDceoSxaKbg3YaKHJGzo+KxC4dpUdoQuODRepluMusk4BPl1oM\n"
							"-----END PRIVATE KEY-----\n";
static const char pem_b[] = "-----BEGIN PRIVATE KEY-----\n"
							"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgBTyhadVA9xoNiCZQ\n"
							"MsJFbjeZl0f2+moS4qKa3zPvraWhRANCAARDQd6nbxfRRqr8S/MlG0cO02DLJ2Hg\n"
							"mZtj4UdEyTF7AZhz9oykF/TIpPyDIhgyIIBrtV2H5gIvejyw3mb+khm4\n"
							"-----END PRIVATE KEY-----\n";

enum { A_NUMBER = 1, B_NUMBER, NEXT_NUMBER };
static const uint64_t numbers[] = {0, 0x0102030405060708, 0x1112131415161718, 0x2122232425262728};

struct pair {
	struct trust_key *a, *b;
	unsigned char secret[SEAL_KEY_BYTES];
	struct seal_crypto crypto;
	struct seal_data data;
	struct seal_greeting greeting;
};

static int setup(void **state)
{
	struct pair *pair = calloc(1, sizeof(*pair));
	struct err err;
	assert_int_equal(trust_key_read(&pair->a, str_of(pem_a), &err), 0);
	assert_int_equal(trust_key_read(&pair->b, str_of(pem_b), &err), 0);
	assert_true(seal_shared(trust_key_evp(pair->a), trust_key_evp(pair->b), pair->secret));
	seal_crypto_init(&pair->crypto);
	pair->data = (struct seal_data){.from = trust_key_id(pair->a),
	                                .to_number = numbers[B_NUMBER],
	                                .from_number = numbers[A_NUMBER],
	                                .next_number = numbers[NEXT_NUMBER],
	                                .counter = 9};
	pair->greeting = (struct seal_greeting){.kind = SEAL_GREETING,
	                                        .from = trust_key_id(pair->a),
	                                        .to = trust_key_id(pair->b),
	                                        .number = numbers[A_NUMBER],
	                                        .echo = numbers[B_NUMBER]};
	*state = pair;
	return 0;
}

static int teardown(void **state)
{
	struct pair *pair = *state;
	trust_key_free(pair->a);
	trust_key_free(pair->b);
	seal_crypto_free(&pair->crypto);
	free(pair);
	return 0;
}

static void assert_bytes(const unsigned char *bytes, size_t length, const char *hex)
{
	struct buf text = {0};
	for (size_t i = 0; i < length; i++)
		buf_printf(&text, "%02x", bytes[i]);
	assert_string_equal(buf_c(&text), hex);
	buf_free(&text);
}

static void both_sides_share_a_secret(void **state)
{
	struct pair *pair = *state;
	unsigned char other[SEAL_KEY_BYTES];
	assert_true(seal_shared(trust_key_evp(pair->b), trust_key_evp(pair->a), other));
	assert_memory_equal(pair->secret, other, sizeof(other));
	assert_bytes(other, sizeof(other), "dc3422776ec046f1ac01a78589aec37836859b2d827bef94afff60a050b59881");
	assert_true(trust_key_id(pair->a) == 0x25dd7dac0661c88b && trust_key_id(pair->b) == 0x7e1236917dbf4190);
	EVP_PKEY *p384 = EVP_EC_gen("P-384"); /* of no use here */
	assert_false(seal_shared(trust_key_evp(pair->a), p384, other));
	EVP_PKEY_free(p384);
}

static void data_has_these_bytes(void **state)
{
	struct pair *pair = *state;
	unsigned char key[SEAL_KEY_BYTES], out[LIMIT_SITE_DATAGRAM_BYTES], plain[LIMIT_SITE_DATAGRAM_BYTES];
	struct seal_data read;
	seal_data_key(&pair->crypto, pair->secret, trust_key_id(pair->b), &pair->data, key);
	assert_bytes(key, sizeof(key), "424bc7c4a4fadf208e95ae93ba294dd8fdd12f56193bbb8b142413f02621db3d");
	size_t length = seal_data_write(&pair->crypto, key, &pair->data, STR("a message"), out);
	assert_bytes(out, length,
	             "c10125dd7dac0661c88b1112131415161718010203040506070821222324252627280000000000000009"
	             "6cb8ee1637b7bd90603f3759eefc040d94d3c327fdad526b90");
	struct str datagram = str_make((char *)out, length);
	assert_true(seal_data_read(datagram, &read));
	assert_memory_equal(&read, &pair->data, sizeof(read));
	assert_true(seal_data_open(&pair->crypto, key, &read, datagram, plain));
	assert_memory_equal(plain, "a message", 9);
}

static void a_greeting_has_these_bytes(void **state)
{
	struct pair *pair = *state;
	unsigned char out[LIMIT_SITE_DATAGRAM_BYTES];
	struct seal_greeting read;
	struct str card;
	size_t length = seal_greeting_write(&pair->crypto, pair->secret, &pair->greeting, STR("card"), out);
	assert_bytes(out, length,
	             "c10225dd7dac0661c88b7e1236917dbf419001020304050607081112131415161718"
	             "636172646b57f8c6eafc66f63a2c9920f8d23c13");
	struct str datagram = str_make((char *)out, length);
	assert_true(seal_greeting_read(datagram, &read, &card));
	assert_true(str_equal(card, STR("card")) && read.echo == numbers[B_NUMBER] && read.number == numbers[A_NUMBER]);
	assert_true(seal_greeting_check(&pair->crypto, pair->secret, &read, datagram));
}

/* The two directions, and two sessions, have nothing in common. */
static void each_direction_has_its_key(void **state)
{
	struct pair *pair = *state;
	unsigned char there[SEAL_KEY_BYTES], back[SEAL_KEY_BYTES], later[SEAL_KEY_BYTES];
	struct seal_data reverse = {
		.from = trust_key_id(pair->b), .to_number = numbers[A_NUMBER], .from_number = numbers[B_NUMBER]};
	struct seal_data next = pair->data;
	next.from_number = numbers[NEXT_NUMBER];
	seal_data_key(&pair->crypto, pair->secret, trust_key_id(pair->b), &pair->data, there);
	seal_data_key(&pair->crypto, pair->secret, trust_key_id(pair->a), &reverse, back);
	seal_data_key(&pair->crypto, pair->secret, trust_key_id(pair->b), &next, later);
	assert_memory_not_equal(there, back, sizeof(there));
	assert_memory_not_equal(there, later, sizeof(there));
}

static void numbers_come_from_the_boot(void **state)
{
	struct pair *pair = *state;
	struct trust_seal_host host = {0};
	struct trust_seal *seal = trust_seal_new(pair->a, 0x1234, &host);
	struct seal_peer peer = {.offer = 1};
	seal_session_start(seal, &peer, 2);
	assert_true(peer.mine == 1 && peer.theirs == 2 && peer.offer == 0x69174ce864aae97b);
	trust_seal_free(seal);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_sides_share_a_secret),  TEST(data_has_these_bytes),       TEST(a_greeting_has_these_bytes),
		TEST(each_direction_has_its_key), TEST(numbers_come_from_the_boot),
	};
	return cmocka_run_group_tests_name("trust seal wire", tests, NULL, NULL);
}
