/* Base64: the vectors of RFC 4648, 10; every length and byte comes back; and there is one text for each meaning. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base64.h"

static void check_both_ways(enum base64_alphabet alphabet, struct str bytes, const char *text)
{
	struct buf encoded = {0}, decoded = {0};
	base64_encode(&encoded, alphabet, bytes);
	assert_string_equal(buf_c(&encoded), text);
	assert_true(base64_decode_to(&decoded, alphabet, str_of(text)));
	assert_true(str_equal(buf_str(&decoded), bytes));
	buf_free(&encoded);
	buf_free(&decoded);
}

static void the_vectors_of_the_rfc(void **state)
{
	(void)state;
	static const struct {
		const char *bytes, *padded, *plain;
	} vectors[] = {
		{"", "", ""},
		{"f", "Zg==", "Zg"},
		{"fo", "Zm8=", "Zm8"},
		{"foo", "Zm9v", "Zm9v"},
		{"foob", "Zm9vYg==", "Zm9vYg"},
		{"fooba", "Zm9vYmE=", "Zm9vYmE"},
		{"foobar", "Zm9vYmFy", "Zm9vYmFy"},
		{"\xfb\xff\xfe", "+//+", "-__-"}, /* where the alphabets differ */
	};
	for (size_t i = 0; i < sizeof(vectors) / sizeof(vectors[0]); i++) {
		check_both_ways(BASE64_STANDARD, str_of(vectors[i].bytes), vectors[i].padded);
		check_both_ways(BASE64_URL, str_of(vectors[i].bytes), vectors[i].plain);
	}
	check_both_ways(BASE64_URL_PADDED,
	                STR("\xfb\xff\xfe"
	                    "f"),
	                "-__-Zg==");
}

static void every_byte_survives_at_every_length(void **state)
{
	(void)state;
	char bytes[256];
	for (int i = 0; i < 256; i++)
		bytes[i] = (char)(i * 167 + 13); /* each value once, in no order */
	for (int alphabet = BASE64_STANDARD; alphabet <= BASE64_URL_PADDED; alphabet++) {
		for (size_t length = 0; length <= sizeof(bytes); length++) {
			struct buf encoded = {0};
			unsigned char decoded[BASE64_BYTES(344)];
			size_t got;
			base64_encode(&encoded, (enum base64_alphabet)alphabet, str_make(bytes, length));
			assert_in_range(length, 0, BASE64_BYTES(encoded.length));
			assert_true(base64_decode((enum base64_alphabet)alphabet, buf_str(&encoded), decoded, &got));
			assert_int_equal(got, length);
			assert_memory_equal(decoded, bytes, length);
			buf_free(&encoded);
		}
	}
}

static void check_refused(enum base64_alphabet alphabet, struct str text)
{
	struct buf out = {0};
	buf_put(&out, STR("before"));
	if (base64_decode_to(&out, alphabet, text))
		fail_msg("`%.*s` was taken", STR_FMT(text));
	assert_string_equal(buf_c(&out), "before");
	buf_free(&out);
}

static void what_is_malformed_is_refused(void **state)
{
	(void)state;
	static const struct str standard[] = {
		STR_INIT("Z"),     STR_INIT("Zg"),         STR_INIT("Zg="),          STR_INIT("Zm8"),      /* wrong length */
		STR_INIT("Zm9vY"), STR_INIT("Zm9v="),      STR_INIT("Zm9v===="),                           /* wrong length */
		STR_INIT("===="),  STR_INIT("Z==="),       STR_INIT("=Zg="),         STR_INIT("Zg==Zm9v"), /* wrong padding */
		STR_INIT("Zg=v"),  STR_INIT("Zm9v=="),                                                     /* wrong padding */
		STR_INIT("-__-"),  STR_INIT("Zm9\n"),      STR_INIT("Zm9v\r\n\r\n"), STR_INIT(" m9v"), /* wrong characters */
		STR_INIT("Zm\0v"), STR_INIT("Zm\xc3\xa9"),                                             /* wrong characters */
		STR_INIT("Zh=="),  STR_INIT("Zv=="),       STR_INIT("Zm9="),         STR_INIT("Zm+="), /* bits left over */
	};
	static const struct str url[] = {
		STR_INIT("Z"),    STR_INIT("Zm9vY"),                                      /* wrong length */
		STR_INIT("Zg=="), STR_INIT("Zm8="),   STR_INIT("="),    STR_INIT("===="), /* padded */
		STR_INIT("+//+"), STR_INIT("Zm9v\n"), STR_INIT("Zm.v"), STR_INIT("Z\0"),  /* wrong characters */
		STR_INIT("Zh"),   STR_INIT("Zm9"),    STR_INIT("Zm-"),                    /* bits left over */
	};
	for (size_t i = 0; i < sizeof(standard) / sizeof(standard[0]); i++)
		check_refused(BASE64_STANDARD, standard[i]);
	for (size_t i = 0; i < sizeof(url) / sizeof(url[0]); i++)
		check_refused(BASE64_URL, url[i]);
}

/* Of all texts of four characters that begin alike, only those that are written are read. */
static void each_meaning_has_one_text(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		for (int d = 0; d < 256; d++) {
			char text[] = {'Z', (char)c, (char)d, '='};
			struct buf bytes = {0}, again = {0};
			if (base64_decode_to(&bytes, BASE64_STANDARD, str_make(text, sizeof(text)))) {
				base64_encode(&again, BASE64_STANDARD, buf_str(&bytes));
				assert_true(str_equal(buf_str(&again), str_make(text, sizeof(text))));
			}
			buf_free(&bytes);
			buf_free(&again);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_vectors_of_the_rfc),
		cmocka_unit_test(every_byte_survives_at_every_length),
		cmocka_unit_test(what_is_malformed_is_refused),
		cmocka_unit_test(each_meaning_has_one_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
